"""Densities of labelled scores by class: fine cells, and models of the ratio of two densities.

The densities of a prevalence estimate must come from labelled scores that the scorer was not
trained on: held out, or out of fold. Densities of training scores are badly wrong for flexible
scorers, and the scores give no hint of it.

Sources of the models: logistic, Platt (1999); beta, Kull, Silva Filho & Flach (2017); isotonic,
Zadrozny & Elkan (2002); kernel densities for quantification, Moreo, González & del Coz (2025), here
on the logit with the bandwidth of Silverman (1986).
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
    """Counts of labelled scores by cell, with a position of each cell on the real line.

    ``cells``: edges and counts. Edges lie halfway (in logits for scores in [0, 1]) between the
        labelled scores of neighbouring cells.
    ``place``, shape (B,): the cells' positions for the models. For probabilities, it is the mean
        logit of the cell's labelled scores. Otherwise it is the logit of the class-balanced
        mid-rank, which no increasing transformation changes.
    ``lower``, shape (B-1,) or None: set only if the scores are not probabilities: the lowest
        labelled score of each cell but the first. ``edges`` are then the highest scores, and half
        of a target score in the gap between two cells is counted in each.
    """

    cells: BinnedDensities
    place: FloatArray
    lower: FloatArray | None

    @property
    def positives(self) -> FloatArray:
        """Labelled positives of each cell."""
        return self.cells.positives

    @property
    def negatives(self) -> FloatArray:
        """Labelled negatives of each cell."""
        return self.cells.negatives

    def count(self, scores: FloatArray | ScoreCounts) -> FloatArray:
        """Return the target rows in each cell, by the scores or by their counts (one channel)."""
        size = len(self.place)
        counts = _tally(self.cells.edges, "left", scores, size)
        if self.lower is None:
            return counts
        return (counts + _tally(self.lower, "right", scores, size)) / 2


def score_cells(labelled: ScoreCounts, cells: int = MAX_CELLS) -> ScoreCells:
    """Return cells at class-balanced quantiles of labelled scores.

    If there are few distinct scores, each gets its own cell.

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
    """Return the number of scores in each gap between the keys, as by ``searchsorted``.

    Many scores are first assigned to the steps of an even grid. Only steps that a key may cut are
    then searched.
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
"""Penalty that makes the fit unique if all cells have the same position and no slope exists."""


def kde_logit(place: FloatArray, positives: FloatArray, negatives: FloatArray) -> FloatArray:
    """Return the log ratio of Gaussian kernel densities, with Silverman's bandwidth by class."""
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

    Half a count is added to each block and class. It keeps outer blocks of one class finite, and
    can let a small block step back.
    """
    return np.stack([_pooled(a, c) for a, c in zip(positives, negatives, strict=True)])


MODELS = {"isotonic": isotonic, "kde_logit": kde_logit, "beta": beta, "logistic": logistic}
"""The stacked models, in the order of the stack."""


def _kernel_density(place: FloatArray, counts: FloatArray) -> FloatArray:
    """Return densities at the cells, one for each row of counts, all with the same bandwidth.

    Each row of counts leaves out one fold. So each labelled row is in the sum of all rows of counts
    once less than there are rows of counts.
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
    """Return the log ratios of a logistic regression of each row of counts.

    Platt's targets give separated classes a finite fit.
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
