"""Quantile bins of labelled scores, and the densities of both classes in these bins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class BinnedDensities:
    """Densities of the scores of negatives and of positives in quantile bins.

    ``edges``, shape (B-1,): upper edges of all bins except the last. A bin includes its upper edge.
        The first and the last bin are unlimited on one side.
    ``negatives``, ``positives``, shape (B,): numbers of labelled rows in each bin.
    ``q``, ``p``, shape (B,): the densities of negatives and positives, each summing to 1.
    ``centres``, shape (B,): mean of the labelled scores in each bin, on the scale of :meth:`line`.
    ``unit``: whether all labelled scores are in [0, 1].
    """

    edges: FloatArray
    negatives: FloatArray
    positives: FloatArray
    q: FloatArray
    p: FloatArray
    centres: FloatArray
    unit: bool

    @property
    def m0(self) -> float:
        """Number of labelled negatives."""
        return float(self.negatives.sum())

    @property
    def m1(self) -> float:
        """Number of labelled positives."""
        return float(self.positives.sum())

    def bin_of(self, scores: FloatArray) -> IntArray:
        """Return the bin index of each score, as an array with the shape of ``scores``."""
        return np.searchsorted(self.edges, scores, side="left").astype(np.int64, copy=False)

    def line(self, scores: FloatArray) -> FloatArray:
        """Return the logits if scores are probabilities, and otherwise the scores unchanged."""
        return _line(scores, self.unit)


def n_bins(m1: float, m0: float) -> int:
    """Return the number of bins according to the cube-root rule, from 4 to 30.

    For example, the number is 20 if about 2,400 labelled rows belong to the rarer class.
    """
    return int(np.clip(round(1.5 * min(m1, m0) ** (1 / 3)), 4, 30))


def smoothed(counts: FloatArray) -> FloatArray:
    """Return the shares of the counts after adding half a count to each bin."""
    return (counts + 0.5) / (counts.sum() + len(counts) / 2)


def quantile_bins(labelled: ScoreCounts, bins: int | None = None) -> BinnedDensities:
    """Bin labelled scores at the quantiles of both classes together.

    Each class contributes half of the total weight.

    ``labelled``: scores of negatives and positives.
    ``bins``: the number of bins before equal edges are merged. The default is the result of
        :func:`n_bins`.

    Notes
    -----
    The counts depend only on the order of the scores, so an increasing transformation of the scores
    does not change an estimate. Equal edges, which occur with discrete scores, are merged.
    """
    negatives, positives = labelled.counts.astype(np.float64)
    m0 = float(negatives.sum())
    m1 = float(positives.sum())
    if m0 <= 0 or m1 <= 0:
        raise ValueError(
            "calibration needs labelled scores of both classes, "
            f"got {m1:g} positive, {m0:g} negative"
        )
    if bins is None:
        bins = n_bins(m1, m0)
    values = labelled.values
    labels = negatives + positives
    share = (np.cumsum(negatives) / m0 + np.cumsum(positives) / m1) / 2
    last = np.flatnonzero(labels > 0)[-1]
    cuts = np.searchsorted(share, np.arange(1, bins) / bins - 1e-12, side="left")
    edges = values[np.unique(cuts[cuts < last])]
    unit = bool(values[0] >= 0 and values[-1] <= 1)
    starts = np.append(0, np.searchsorted(values, edges, side="right"))
    by_value = np.stack((negatives, positives, labels * _line(values, unit)))
    q_counts, p_counts, sums = np.add.reduceat(by_value, starts, axis=1)
    total = q_counts + p_counts
    return BinnedDensities(
        edges,
        q_counts,
        p_counts,
        smoothed(q_counts),
        smoothed(p_counts),
        centres=sums / np.where(total > 0, total, 1),
        unit=unit,
    )


def leave_one_out(own: FloatArray) -> FloatArray:
    """Return the smoothed share of each bin, computed without one of the rows in the bin.

    With these shares, the rows from which the densities are estimated can also be the target,
    because no row is evaluated with a density that was estimated from this row. This method is
    cross-fitting with one fold per row. Its result depends only on the counts. Therefore it needs
    no random folds, and merging shards is exact.
    """
    left = np.minimum(own, 1.0)
    return (own - left + 0.5) / (own.sum() - left + len(own) / 2)


def _line(scores: FloatArray, unit: bool) -> FloatArray:
    if not unit:
        return scores
    inside = np.clip(scores, 1e-12, 1 - 1e-12)
    return np.log(inside / (1 - inside))
