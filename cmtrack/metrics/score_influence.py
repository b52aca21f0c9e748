"""Influence values of the metrics of one score against one two-class label."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from cmtrack.metrics.score_errors import row_influence
from cmtrack.metrics.spcc import bayes_index_slope, spcc
from cmtrack.prevalence.densities import quantile_bins
from cmtrack.statistics import ScoreCounts, ScoreMoments
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray


class ScoreInfluence:
    """psi of correlation, area, separation and prevalence metrics.

    Parameters
    ----------
    positive : ndarray of shape (n,)
        1 for positives, 0 for negatives.
    score : ndarray of shape (n,)
    weights : ndarray of shape (n,), optional
    accepted : ndarray of shape (n,), bool, optional
        Whether the class within the group comes out right; by default always.
    """

    def __init__(
        self,
        positive: IntArray,
        score: FloatArray,
        weights: FloatArray | IntArray | None = None,
        accepted: BoolArray | None = None,
    ) -> None:
        self._code = positive
        self._y = positive.astype(np.float64)
        self._s = score
        self._weights = weights
        self._w = np.ones(len(score)) if weights is None else weights.astype(np.float64)
        self._accepted = np.ones(len(score), dtype=bool) if accepted is None else accepted
        self.total = float(self._w.sum())
        self._share = float(self._w @ self._y) / self.total

    # -- moments ---------------------------------------------------------------------------------------

    @cached_property
    def _moments(self) -> tuple[ScoreMoments, ScoreMoments | None]:
        fractions = self._weights is not None and self._weights.dtype.kind == "f"
        column = self._s[:, None]
        squares = ScoreMoments.from_scores(self._code, column, 2, self._w**2) if fractions else None
        return ScoreMoments.from_scores(self._code, column, 2, self._weights), squares

    @property
    def correlation(self) -> float:
        """The sPCC; NaN where label or score does not vary."""
        return spcc(self._moments[0])

    def of(self, name: str) -> FloatArray:
        """psi of one of the metrics of :func:`cmtrack.metrics.score_errors.coefficients`, or of d_b."""
        if name == "d_b":
            return self._bayes_index()
        moments, squares = self._moments
        return row_influence(name, moments, self._code, self._s, squares)

    def _bayes_index(self) -> FloatArray:
        """psi of d_b with the bins taken as given."""
        counts = ScoreCounts.from_scores(self._s, self._code, 2, self._weights)
        if self._weights is not None and self._weights.dtype.kind == "f":  # half a count is half an effective sample
            counts = replace(counts, counts=counts.counts * (self.total / float(self._w @ self._w)))
        bands = quantile_bins(counts)
        slope = bayes_index_slope(bands.p, bands.q)
        place = bands.bin_of(self._s)
        psi = np.zeros(len(self._s))
        for own, share, lower in (
            (self._y, self._share, 1.0 * (bands.p < bands.q)),
            (1 - self._y, 1 - self._share, 1.0 * (bands.q <= bands.p)),
        ):
            inside = lower[place]
            mean = float(self._w @ (own * inside)) / float(self._w @ own)
            psi += own / share * (inside - mean) / 2
        return slope * psi

    # -- area ------------------------------------------------------------------------------------------

    @cached_property
    def _placements(self) -> tuple[FloatArray, float, float]:
        """psi of the area under the curve, the area and the ceiling (DeLong's placement values)."""
        distinct, place = np.unique(self._s, return_inverse=True)
        size = len(distinct)
        negative = np.bincount(place, self._w * (1 - self._y), size)
        accepted = np.bincount(place, self._w * self._y * self._accepted, size)
        n_pos, n_neg = float(self._w @ self._y), float(self._w @ (1 - self._y))
        below = (np.cumsum(negative) - negative / 2) / n_neg
        above = (accepted.sum() - np.cumsum(accepted) + accepted / 2) / n_pos
        auc = float(accepted @ below) / n_pos
        value = np.where(self._y == 1, below[place] * self._accepted, above[place])
        # one degree of freedom is spent on each mean
        share = np.where(self._y == 1, self._share, 1 - self._share)
        correction = np.where(self._y == 1, self._bessel(self._y), self._bessel(1 - self._y))
        return (value - auc) / share * correction, auc, float(accepted.sum()) / n_pos

    def _bessel(self, own: FloatArray) -> float:
        """sqrt(n/(n-1)) of one side, n its effective size."""
        total = float(self._w @ own)
        fractions = self._weights is not None and self._weights.dtype.kind == "f"
        n = total**2 / float(self._w**2 @ own) if fractions else total
        return math.sqrt(n / (n - 1)) if n > 1 else math.nan

    def roc(self, name: str) -> FloatArray | None:
        """psi of roc_auc, roc_auc_ceiling or roc_auc_normalized; None where a side is empty."""
        if not 0 < self._share < 1:
            return None
        psi, auc, ceiling = self._placements
        if name == "roc_auc":
            return psi
        reached = self._y / self._share * (self._accepted - ceiling)
        if name == "roc_auc_ceiling":
            return reached
        return None if ceiling == 0 else psi / ceiling - auc / ceiling**2 * reached
