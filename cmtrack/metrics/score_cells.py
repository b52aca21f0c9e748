"""Labelled scores compressed to at most 200 cells: what density models are fitted on, in any number of samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack.metrics.densities import BinnedDensities, quantile_bins
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray, IntArray

MAX_CELLS = 200
_TABLE = 1 << 14


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

    def count(self, scores: FloatArray, weights: FloatArray | IntArray | None = None) -> FloatArray:
        """Target samples of each cell."""
        size = len(self.place)

        def counted(index: IntArray) -> FloatArray:
            return _counted(index, weights, size)

        if self.lower is not None:
            below = np.searchsorted(self.cells.edges, scores, side="left")
            return (counted(below) + counted(np.searchsorted(self.lower, scores, side="right"))) / 2
        if len(scores) < 8 * _TABLE:
            return counted(np.searchsorted(self.cells.edges, scores, side="left"))
        # many scores: look the cell up in an even grid over [0, 1], search only where an edge cuts a grid step
        first = np.searchsorted(self.cells.edges, np.arange(_TABLE + 1) / _TABLE, side="left")
        step = (np.clip(scores, 0.0, 1.0) * _TABLE).astype(np.int64)
        step_counts = _counted(step, weights, _TABLE + 1)
        whole = np.append(first[1:] == first[:-1], False)
        out = _counted(first[whole], step_counts[whole], size)
        rest = np.flatnonzero(~whole[step])
        cut = np.searchsorted(self.cells.edges, scores[rest], side="left")
        return out + _counted(cut, None if weights is None else weights[rest], size)


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


def _counted(index: IntArray, weights: FloatArray | IntArray | None, size: int) -> FloatArray:
    out: FloatArray = np.bincount(index, weights, size).astype(np.float64, copy=False)
    return out


def _moved(bands: BinnedDensities, edges: FloatArray) -> BinnedDensities:
    return BinnedDensities(edges, bands.negatives, bands.positives, bands.q, bands.p, bands.centres, bands.unit)


def fold_counts(counts: FloatArray, folds: int) -> FloatArray:
    """Split counts by cell into folds: the samples in score order go to the folds in turn.

    A function of the counts alone, so folds are the same for every order of the samples. Fractional counts
    (weights) are split in the same way.

    Returns
    -------
    ndarray of shape (folds, B)
    """
    ends = np.concatenate(([0.0], np.cumsum(counts)))
    turns, within = np.divmod(ends, folds)
    fold = np.arange(folds)[:, None]
    up_to = turns + np.clip(within - fold, 0.0, 1.0)
    return np.diff(up_to, axis=1)
