"""Labelled scores compressed to at most 200 cells: what density models are fitted on, in any number of samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cmtrack.prevalence.densities import BinnedDensities, quantile_bins
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray, IntArray

MAX_CELLS = 200
_STEPS = 1 << 14


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """Counts of labelled scores by cell, each cell with a place on the real line.

    Attributes
    ----------
    cells : BinnedDensities
        Edges and counts. Edges lie halfway (in logits for scores in [0, 1]) between the labelled scores of
        neighbouring cells.
    place : ndarray of shape (B,)
        Where the models see the cell: the mean logit of its labelled scores where scores are probabilities,
        else the logit of its class-balanced mid-rank, which no increasing transformation changes.
    lower : ndarray of shape (B-1,) or None
        For scores that are no probabilities: the lowest labelled score of each cell but the first. ``edges``
        are then the highest ones, and a target score in the gap between is counted half in each cell.
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
        """Target samples of each cell, from the scores or from their counts (one channel)."""
        size = len(self.place)
        if isinstance(scores, ScoreCounts):
            values, weight = scores.values, scores.counts[0]
            places = [np.searchsorted(self.cells.edges, values, side="left")]
            if self.lower is not None:
                places.append(np.searchsorted(self.lower, values, side="right"))
            tallied = [np.bincount(place, weight, size).astype(np.float64) for place in places]
            return sum(tallied[1:], tallied[0]) / len(tallied)
        upper = _tally(self.cells.edges, "left", scores, size)
        if self.lower is None:
            return upper
        return (upper + _tally(self.lower, "right", scores, size)) / 2


def score_cells(labelled: ScoreCounts, cells: int = MAX_CELLS) -> ScoreCells:
    """Cells at class-balanced quantiles of labelled scores; single distinct scores where these are few.

    Parameters
    ----------
    labelled : ScoreCounts with two channels
        Negatives, positives.
    """
    bands = quantile_bins(labelled, cells)
    used = labelled.values[labelled.counts.sum(axis=0) > 0]
    last = np.searchsorted(used, bands.edges, side="right")
    upper, lower = used[last - 1], used[last]
    if bands.unit:
        middle = 1 / (1 + np.exp(-(bands.line(upper) + bands.line(lower)) / 2))
        edges = np.clip(middle, upper, np.nextafter(lower, upper))
        return ScoreCells(_moved(bands, edges), bands.centres, None)
    balanced = (bands.negatives / bands.m0 + bands.positives / bands.m1) / 2
    rank = np.cumsum(balanced) - balanced / 2
    return ScoreCells(_moved(bands, upper), np.log(rank / (1 - rank)), lower)


def _tally(keys: FloatArray, side: Literal["left", "right"], scores: FloatArray, size: int) -> FloatArray:
    """How many scores are put into each gap between the keys, as by ``searchsorted``.

    Of many scores each is first put into a step of an even grid; only steps that a key may cut are searched.
    """
    width = (keys[-1] - keys[0]) / _STEPS if len(keys) else 0.0
    if len(scores) < 8 * _STEPS or not 0 < width < np.inf:
        return _counted(np.searchsorted(keys, scores, side=side), size)
    bounds = keys[0] + np.arange(_STEPS + 1) * width
    margin = 1e-6 * width + 4 * np.spacing(np.abs(keys).max())  # far more than rounding moves a score
    below = np.searchsorted(keys, np.append(-np.inf, bounds[1:-1] - margin), side=side)
    above = np.searchsorted(keys, np.append(bounds[1:-1] + margin, np.inf), side=side)
    whole = below == above
    step = np.clip((scores - keys[0]) * (1 / width), 0, _STEPS - 1).astype(np.int64)
    by_step = np.bincount(step, minlength=_STEPS).astype(np.float64)
    cut = np.flatnonzero(~whole[step])
    known = np.bincount(below[whole], by_step[whole], size)
    total: FloatArray = known + _counted(np.searchsorted(keys, scores[cut], side=side), size)
    return total


def _counted(index: IntArray, size: int) -> FloatArray:
    return np.bincount(index, minlength=size).astype(np.float64)


def _moved(bands: BinnedDensities, edges: FloatArray) -> BinnedDensities:
    return BinnedDensities(edges, bands.negatives, bands.positives, bands.q, bands.p, bands.centres, bands.unit)
