"""Densities of labelled scores by class: fine cells, and models of the ratio of two densities.

The densities of a prevalence estimate must come from labelled scores that the scorer was not
trained on: held out, or out of fold. If the scorer is flexible, the densities of its training
scores are badly wrong, and you cannot see this from the scores.

The logistic model follows Platt (1999), the beta model Kull, Silva Filho & Flach (2017), and the
isotonic model Zadrozny & Elkan (2002). Kernel densities for quantification follow Moreo, González &
del Coz (2025), but cmtrack uses them on the logit with the bandwidth of Silverman (1986).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cmtrack.metrics.logistic import fit_logistic
from cmtrack.metrics.quantile_bins import BinnedDensities, quantile_bins
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray, IntArray

MAX_CELLS = 200
_STEPS = 1 << 14


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Counts of labelled scores by cell, and the position of each cell on the real line.

    ``cells``: edges and counts. Each edge is halfway between the labelled scores of two
        neighbouring cells. If scores are in [0, 1], the edge is halfway between the logits of these
        scores.
    ``place``, shape (B,): the position of each cell, which the models use. For probabilities, it is
        the mean logit of the cell's labelled scores. Otherwise it is the logit of the
        class-balanced mid-rank, which does not change if an increasing transformation is applied to
        the scores.
    ``lower``, shape (B-1,) or None: the lowest labelled score of each cell except the first, or
        None if the scores are probabilities. If it is not None, ``edges`` contains the highest
        labelled score of each cell, and a target score in the gap between two cells counts half in
        each of these cells.
    """

    cells: BinnedDensities
    place: FloatArray
    lower: FloatArray | None

    @property
    def positives(self) -> FloatArray:
        """Number of labelled positives in each cell."""
        return self.cells.positives

    @property
    def negatives(self) -> FloatArray:
        """Number of labelled negatives in each cell."""
        return self.cells.negatives

    def count(self, scores: FloatArray | ScoreCounts) -> FloatArray:
        """Count the target rows in each cell, from their scores or from counted scores."""
        size = len(self.place)
        counts = _tally(self.cells.edges, "left", scores, size)
        if self.lower is None:
            return counts
        return (counts + _tally(self.lower, "right", scores, size)) / 2


def score_cells(labelled: ScoreCounts, cells: int = MAX_CELLS) -> ScoreCells:
    """Return cells at class-balanced quantiles of labelled scores.

    If there are few distinct scores, each distinct score forms a separate cell.

    ``labelled``: negatives, positives.
    """
    bands = quantile_bins(labelled, cells)
    used = labelled.values[labelled.counts.sum(axis=0) > 0]
    last = np.searchsorted(used, bands.edges, side="right")
    upper = used[last - 1]
    lower = used[last]
    if bands.unit:
        middle = 1 / (1 + np.exp(-(bands.line(upper) + bands.line(lower)) / 2))
        edges = np.clip(middle, upper, np.nextafter(lower, upper))
        return ScoreCells(replace(bands, edges=edges), bands.centres, None)
    balanced = (bands.negatives / bands.m0 + bands.positives / bands.m1) / 2
    rank = np.cumsum(balanced) - balanced / 2
    return ScoreCells(replace(bands, edges=upper), np.log(rank / (1 - rank)), lower)


def _tally(
    keys: FloatArray, side: Literal["left", "right"], scores: FloatArray | ScoreCounts, size: int
) -> FloatArray:
    """Count the scores in each gap between the keys, with the same result as ``searchsorted``.

    Many scores are first assigned to the steps of an even grid. Only the scores in steps that may
    contain a key are then searched.
    """
    if isinstance(scores, ScoreCounts):
        index = np.searchsorted(keys, scores.values, side=side)
        return np.bincount(index, scores.counts[0], size).astype(np.float64)
    width = (keys[-1] - keys[0]) / _STEPS if len(keys) else 0.0
    if len(scores) < 8 * _STEPS or not 0 < width < np.inf:
        return _counted(np.searchsorted(keys, scores, side=side), size)
    bounds = keys[0] + np.arange(_STEPS + 1) * width
    # Rounding moves a score by far less than this margin.
    margin = 1e-6 * width + 4 * np.spacing(np.abs(keys).max())
    below = np.searchsorted(keys, np.append(-np.inf, bounds[1:-1] - margin), side=side)
    above = np.searchsorted(keys, np.append(bounds[1:-1] + margin, np.inf), side=side)
    is_whole = below == above
    step = np.clip((scores - keys[0]) * (1 / width), 0, _STEPS - 1).astype(np.int64)
    by_step = _counted(step, _STEPS)
    in_cut_steps = scores[np.flatnonzero(~is_whole[step])]
    in_whole_steps = np.bincount(below[is_whole], by_step[is_whole], size)
    return in_whole_steps + _counted(np.searchsorted(keys, in_cut_steps, side=side), size)


def _counted(index: IntArray, size: int) -> FloatArray:
    return np.bincount(index, minlength=size).astype(np.float64)


# -- models: log density ratio of each cell, for each row of counts -------------------------------

_SMALLEST = 1e-12
_RIDGE = 1e-6
"""Penalty that makes the fit unique if all cells have the same position."""


def kde_logit(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return the log ratio of Gaussian kernel densities, each with Silverman's bandwidth."""
    return np.log(_kernel_density(place, positives)) - np.log(_kernel_density(place, negatives))


def logistic(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return a log ratio that is linear in the logit of the score."""
    return _regression(np.stack((np.ones_like(place), place)), positives, negatives)


def beta(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return a log ratio that is linear in log s and log(1-s)."""
    features = (np.ones_like(place), -np.logaddexp(0, -place), -np.logaddexp(0, place))
    return _regression(np.stack(features), positives, negatives)


def isotonic(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return the log ratio of each block of a non-decreasing fit (pooled adjacent violators).

    Half a count is added to each block and class. With it, the ratio is finite even in an outer
    block with rows of only one class. But it may also make the ratio of a small block lower than
    the ratio of the block before it.
    """
    return np.stack([_pooled(a, c) for a, c in zip(positives, negatives, strict=True)])


MODELS = {"isotonic": isotonic, "kde_logit": kde_logit, "beta": beta, "logistic": logistic}
"""The stacked models, in the order of the stack."""


def _kernel_density(place: FloatArray, counts: FloatArray) -> FloatArray:
    """Return a density over the cells for each row of counts, all with the same bandwidth.

    Each row of counts leaves out one fold. If there are F rows of counts, their sum therefore
    counts each labelled row F - 1 times.
    """
    total = counts.sum(axis=0)
    width = _silverman(place, total, float(total.sum()) / max(len(counts) - 1, 1))
    kernel = np.exp(-0.5 * ((place[:, None] - place[None, :]) / width) ** 2) / width
    return counts @ kernel / counts.sum(axis=1, keepdims=True) + _SMALLEST


def _silverman(place: FloatArray, counts: FloatArray, size: float) -> float:
    """Return the bandwidth 0.9 min(standard deviation, interquartile range / 1.349) n^-1/5."""
    share = counts / counts.sum()
    mean = float(share @ place)
    spread = math.sqrt(float(share @ (place - mean) ** 2))
    order = np.argsort(place, kind="stable")
    ranks = np.cumsum(share[order]) - share[order] / 2
    low, high = np.interp((0.25, 0.75), ranks, place[order])
    if high > low:
        spread = min(spread, float(high - low) / 1.349)
    return max(0.9 * spread * float(size**-0.2), 1e-3)


def _regression(features: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Fit a logistic regression to each row of counts, and return the log ratios.

    With Platt's targets, the coefficients are finite even if a score separates the classes.
    """
    x = features / np.maximum(np.abs(features).max(axis=1, keepdims=True), 1.0)
    ratios = []
    for positive, negative in zip(positives, negatives, strict=True):
        m1 = positive.sum()
        m0 = negative.sum()
        hits = positive * ((m1 + 1) / (m1 + 2)) + negative / (m0 + 2)
        coefficients = fit_logistic(x, hits, positive + negative, _RIDGE)
        ratios.append(coefficients @ x + np.log(m0 / m1))
    return np.stack(ratios)


def _pooled(positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return the log ratio of each cell's block."""
    blocks: list[tuple[float, float, int]] = []  # positives, all, cells
    for hit, count in zip(positives.tolist(), (positives + negatives).tolist(), strict=True):
        block = (hit, count, 1)
        while blocks and (block[1] == 0 or blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]):
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    hits, counts, lengths = (np.array(column) for column in zip(*blocks, strict=True))
    half = len(blocks) / 2
    of_positives = (hits + 0.5) / (positives.sum() + half)
    of_negatives = (counts - hits + 0.5) / (negatives.sum() + half)
    return np.repeat(np.log(of_positives) - np.log(of_negatives), lengths)
