"""Shares of K classes in a target, jointly, with their covariance: by bins, for any number of classes, without a model.

A sample's bin is its most probable class and the quantile group of that class's probability; labelled counts give each
class's density over the bins, half a count added. Expectation-maximisation gives the shares, a sandwich their
covariance. By recalibrated probabilities: :mod:`.class_moments`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.special import chdtrc

from cmtrack.metrics.intervals import normal_quantile
from cmtrack.prevalence.densities import smoothed
from cmtrack.prevalence.mixture import climb
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.top_scores import TopScoreCounts

GROUPS = 5
_LEAST = 1e-9
"""Information of one sample about a direction of shares that a target of any size would leave within 0 to 1."""


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Estimated shares of all classes.

    Attributes
    ----------
    values, low, high : ndarray of shape (K,)
        Shares that sum to 1, and the ends of Wald intervals cut at 0 and 1; NaN for classes without labelled
        samples.
    covariance : ndarray of shape (K, K)
    of_labelled : ndarray of shape (K, K)
        The part of each share's variance (columns) that each class's labelled samples (rows) cause.
    identified : bool ndarray of shape (K,)
        False where any share of the class, given up by others, would explain the target as well; its value is NaN.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    covariance: FloatArray
    of_labelled: FloatArray
    identified: BoolArray

    @classmethod
    def estimated(
        cls, values: FloatArray, covariance: FloatArray, of_labelled: FloatArray, identified: BoolArray, level: float
    ) -> ClassShares:
        """Make shares with the ends of their Wald intervals; NaN where they are not identified."""
        values = np.where(identified, values, math.nan)
        with np.errstate(invalid="ignore"):
            reach = normal_quantile(level) * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        low, high = np.clip(values - reach, 0, 1), np.clip(values + reach, 0, 1)
        return cls(values, low, high, covariance, of_labelled, identified)

    def covering(self, others: Sequence[ClassShares]) -> ClassShares:
        """The same with intervals that reach over the shares of others."""
        values = [shares.values for shares in others]
        low = np.fmin.reduce([self.low, *values])
        high = np.fmax.reduce([self.high, *values])
        known = ~np.isnan(self.values)
        return replace(self, low=np.where(known, low, math.nan), high=np.where(known, high, math.nan))

    @classmethod
    def nothing(cls) -> ClassShares:
        """Shares of no classes."""
        return cls(*(np.empty(0),) * 5, np.empty(0, dtype=bool))


def class_shares(
    labelled: TopScoreCounts,
    target: TopScoreCounts | None,
    confidence_level: float = 0.95,
    scales: tuple[float, float] = (1.0, 1.0),
) -> ClassShares:
    """Estimate the shares of all classes.

    Parameters
    ----------
    labelled : TopScoreCounts of shape (K, K, cells)
        By actual class.
    target : TopScoreCounts of shape (1, K, cells), or None
        None: the labelled samples are the target too, each left out of its own class's density.
    scales : (float, float)
        Effective over nominal size of the labelled and of the target samples, where these are weighted.
    """
    table, binned = _grouped(labelled, target, GROUPS)
    table, binned = table * scales[0], binned * (scales[0] if target is None else scales[1])
    size = len(table)
    known = table.sum(axis=1) > 0
    counts = table[known]
    densities = np.stack([smoothed(row) for row in counts], axis=1)  # (bins, classes)
    shares = _most_likely(counts, None if target is None else binned)
    values, covariance = np.full(size, math.nan), np.full((size, size), math.nan)
    values[known] = shares
    m = counts.sum(axis=1)
    of_target, of_labelled, variances, sure = covariance_parts(densities, shares, float(binned.sum()), m)
    covariance[np.ix_(known, known)] = of_target + of_labelled
    identified = np.ones(size, dtype=bool)
    identified[known] = sure
    by_class = np.zeros((size, size))
    by_class[np.ix_(known, known)] = variances
    return ClassShares.estimated(values, covariance, by_class, identified, confidence_level)


def covariance_parts(
    densities: FloatArray, shares: FloatArray, n: float, labelled: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Covariance of the shares by source.

    Parameters
    ----------
    densities : ndarray of shape (B, K), columns summing to 1
    shares : ndarray of shape (K,)
    n : float
        Target samples.
    labelled : ndarray of shape (K,)
        Labelled samples of each class.

    Returns
    -------
    of_target : ndarray of shape (K, K)
        The covariance that the target samples cause.
    of_labelled : ndarray of shape (K, K)
        The covariance that the labelled samples cause.
    variances : ndarray of shape (K, K)
        What each class's labelled samples (rows) add to the variance of each share (columns).
    identified : bool ndarray of shape (K,)
    """
    gap = densities[:, :-1] - densities[:, -1:]
    mix = (densities @ shares)[:, None]
    information = (gap / mix).T @ gap
    spread, identified = inverse_information(information)
    # One labelled sample of class c in bin b moves the shares by -share_c / m_c times row b of `pull`, less its mean.
    pull = (gap / mix) @ spread.T
    weight = shares**2 / labelled
    means = pull.T @ densities
    of_labelled = (pull * (densities @ weight)[:, None]).T @ pull - (means * weight) @ means.T
    variances = weight[:, None] * ((pull**2).T @ densities - means**2).T
    return spread @ (information / n) @ spread.T, of_labelled, variances, identified


def inverse_information(information: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Change of all K shares (rows) by a score of the first K-1 (columns), and flags of the identified shares.

    A direction of the shares without information is left out; the classes that it would change are not identified.
    """
    size = len(information)
    shares = np.vstack((np.eye(size), -np.ones(size)))
    strength, directions = np.linalg.eigh(information)
    known = strength > max(_LEAST, size * np.finfo(float).eps * float(strength[-1]))
    free = shares @ directions[:, ~known]
    inverse = (directions[:, known] / strength[known]) @ directions[:, known].T
    return shares @ inverse, (np.abs(free) < 1e-3).all(axis=1)


def fit_of_shares(labelled: TopScoreCounts, target: TopScoreCounts, shares: FloatArray) -> tuple[float, int, float]:
    """Pearson's X^2 of the target's bins against the mixture of the labelled ones: statistic, df, p-value.

    Taken at its minimum over shares, with the errors at the given ones. At those, which know more than the bins,
    it would not lose a degree of freedom for each share (Chernoff & Lehmann 1954, Ann. Math. Statist. 25, 579-586).
    Classes without labelled samples have no share.
    """
    table, binned = _grouped(labelled, target, GROUPS)
    known = table.sum(axis=1) > 0
    counts, own = table[known], np.nan_to_num(shares[known])
    densities = np.stack([smoothed(row) for row in counts], axis=1)
    n = float(binned.sum())
    error = np.sqrt(densities @ (own / n + own**2 / counts.sum(axis=1)))
    gap = (binned / n - densities @ own) / error
    change = (densities[:, :-1] - densities[:, -1:]) / error[:, None]
    statistic = float(((gap - change @ np.linalg.lstsq(change, gap, rcond=None)[0]) ** 2).sum())
    df = len(error) - len(own)
    return statistic, df, float(chdtrc(df, statistic)) if df > 0 else math.nan


def _most_likely(counts: FloatArray, target: FloatArray | None) -> FloatArray:
    """Maximum-likelihood shares of the classes, shape (K,), by labelled counts (K, B).

    The densities are those of :func:`smoothed`: half a count everywhere, and few whole counts. So a step takes as long
    as there are bins with counts, not bins times classes.

    Parameters
    ----------
    target : ndarray of shape (B,), or None
        None: the labelled samples themselves, each left out of its own class's density.
    """
    size, n_bins = counts.shape
    totals = counts.sum(axis=1) + n_bins / 2
    floor, heights = 0.5 / totals, csr_array(counts / totals[:, None])
    by_bin = heights.T.tocsr()
    if target is not None:
        return climb(
            lambda shares: by_bin @ shares + floor @ shares,
            lambda ratio: heights @ ratio + floor * ratio.sum(),
            target,
            size,
        )
    actual, bins = np.nonzero(counts)  # one row for the samples of a class in a bin
    own = counts[actual, bins]
    left = np.minimum(own, 1.0)
    less = (own - left + 0.5) / (totals[actual] - left) - (own + 0.5) / totals[actual]

    def mix(shares: FloatArray) -> FloatArray:
        mixed: FloatArray = (by_bin @ shares + floor @ shares)[bins] + less * shares[actual]
        return mixed

    def pull(ratio: FloatArray) -> FloatArray:
        inside = heights @ np.bincount(bins, ratio, n_bins) + floor * ratio.sum()
        gain: FloatArray = inside + np.bincount(actual, less * ratio, size)
        return gain

    return climb(mix, pull, own, size)


def _groups(labelled: TopScoreCounts, groups: int) -> IntArray:
    """The quantile group of each (predicted class, cell), by all labelled samples of that predicted class."""
    per_cell = labelled.counts.sum(axis=0).astype(np.float64)
    total = per_cell.sum(axis=1, keepdims=True)
    before = np.cumsum(per_cell, axis=1) - per_cell / 2
    share = np.divide(before, total, out=np.zeros_like(before), where=total > 0)
    group: IntArray = np.minimum((share * groups).astype(np.int64), groups - 1)
    return group


def _grouped(labelled: TopScoreCounts, target: TopScoreCounts | None, groups: int) -> tuple[FloatArray, FloatArray]:
    """Counts (K, bins) of the labelled and (bins,) of the target samples over the bins that the former define.

    Bins that hold neither are dropped.
    """
    group = _groups(labelled, groups)
    size = group.shape[0]
    code = (np.arange(size)[:, None] * groups + group).ravel()
    rows = [np.bincount(code, row.ravel(), size * groups) for row in labelled.counts]
    table = np.array(rows, dtype=np.float64)
    binned = table.sum(axis=0)
    used = binned > 0
    if target is not None:
        binned = np.bincount(code, target.counts.sum(axis=0).ravel(), size * groups).astype(np.float64)
        used |= binned > 0
    return table[:, used], binned[used]
