"""Influence values of the metrics of one score against one two-class label."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from cmtrack.metrics.densities import quantile_bins
from cmtrack.statistics import ScoreCounts
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
        self._y = positive.astype(np.float64)
        self._s = score
        self._w = np.ones(len(score)) if weights is None else weights.astype(np.float64)
        self._accepted = np.ones(len(score), dtype=bool) if accepted is None else accepted
        self.total = float(self._w.sum())
        self._share = float(self._w @ self._y) / self.total

    # -- moments ---------------------------------------------------------------------------------------

    def _mean(self, values: FloatArray) -> float:
        return float(self._w @ values) / self.total

    @cached_property
    def _z(self) -> tuple[FloatArray, FloatArray]:
        """Standardised label and score."""
        centred = self._s - self._mean(self._s)
        sd_y = math.sqrt(self._share * (1 - self._share))
        sd_s = math.sqrt(self._mean(centred**2))
        if sd_y == 0 or sd_s == 0:
            return np.full(len(self._s), math.nan), np.full(len(self._s), math.nan)
        return (self._y - self._share) / sd_y, centred / sd_s

    @cached_property
    def correlation(self) -> float:
        """The sPCC; NaN where label or score does not vary."""
        z_y, z_s = self._z
        return self._mean(z_y * z_s)

    def spcc(self) -> FloatArray:
        """psi of the sPCC: z_y z_s - r/2 (z_y^2 + z_s^2)."""
        z_y, z_s = self._z
        return z_y * z_s - self.correlation / 2 * (z_y**2 + z_s**2)

    def separation(self, name: str) -> FloatArray:
        """psi of d_a, d_e or d_b."""
        if name == "d_b":
            return self._bayes_index()
        sides = []
        for own, share in ((1 - self._y, 1 - self._share), (self._y, self._share)):
            size = float(self._w @ own)
            mean = float(self._w @ (own * self._s)) / size
            deviation = self._s - mean
            sum_of_squares = float(self._w @ (own * deviation**2))
            # variances are those of the index, with n - 1
            variance = sum_of_squares / (size - 1) if size > 1 else math.nan
            scale = size / (size - 1) if size > 1 else math.nan
            psi_variance = own / share * (scale * deviation**2 - variance)
            sides.append((mean, variance, own / share * deviation, psi_variance))
        (m0, v0, psi_m0, psi_v0), (m1, v1, psi_m1, psi_v1) = sides
        gap, sign = abs(m1 - m0), math.copysign(1.0, m1 - m0)
        psi_gap = sign * (psi_m1 - psi_m0)
        if name == "d_a":
            mean = (v1 + v0) / 2
            return psi_gap / math.sqrt(mean) - gap / (4 * mean**1.5) * (psi_v1 + psi_v0)
        s1, s0 = math.sqrt(v1), math.sqrt(v0)
        total = s1 + s0
        spread = (psi_v1 / (2 * s1) if s1 else 0.0) + (psi_v0 / (2 * s0) if s0 else 0.0)
        return 2 * psi_gap / total - 2 * gap / total**2 * spread

    def _bayes_index(self) -> FloatArray:
        """psi of d_b with the bins taken as given."""
        channel = self._y.astype(np.int64)
        whole = bool((self._w == np.round(self._w)).all())
        weights = self._w.astype(np.int64) if whole else self._w
        bands = quantile_bins(ScoreCounts.from_scores(self._s, channel, 2, weights))
        error = 0.5 * float(np.minimum(bands.p, bands.q).sum())
        slope = -2 * math.sqrt(2 * math.pi) * math.exp(float(ndtri(error)) ** 2 / 2)
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
        correction = np.where(self._y == 1, _bessel(n_pos), _bessel(n_neg))
        return (value - auc) / share * correction, auc, float(accepted.sum()) / n_pos

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

    # -- prevalence ------------------------------------------------------------------------------------

    def prevalence(self, name: str) -> FloatArray | None:
        """psi of actual, expected, expected_count, bias and the labels-only sd."""
        spread = self._s * (1 - self._s)
        root = math.sqrt(max(float(self._w @ spread), 0.0))
        values = {
            "actual": self._y,
            "expected": self._s,
            "expected_count": self._s * self.total,
            "bias": self._s - self._y,
            "expected_count_sd_labels_only": spread * (self.total / (2 * root)) if root else None,
        }
        value = values.get(name)
        return None if value is None else value - self._mean(value)


def _bessel(n: float) -> float:
    return math.sqrt(n / (n - 1)) if n > 1 else math.nan
