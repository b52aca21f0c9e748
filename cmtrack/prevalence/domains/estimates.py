"""Shares and scores of one cell, from counts by bin and class.

There are two assumptions. *Calibration*: a score means the same chance as in the labelled rows.
*Shift*: within each class, the scores are distributed as in the labelled rows. With labelled rows
of the cell itself, the estimate by calibration adds their mean residual, so it needs no assumption
about other cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from cmtrack._lazy import cached_property
from cmtrack.metrics.intervals import POWER, Interval, normal_quantile, wilson_ends
from cmtrack.prevalence.class_shares import (
    BinnedShares,
    ClassShares,
    added_count,
    covariance_parts,
    score_pull,
    table_shares,
)
from cmtrack.prevalence.domains.tables import ENOUGH
from cmtrack.prevalence.mixture import Mixture, Variance, profile_interval, variance
from cmtrack.prevalence.results import ClassShare
from cmtrack.statistics.inputs import FloatArray, IntArray

_LEAST_CHANCE = 1e-3
"""Chances and shares closer than this to 0 or 1 are replaced in variances and intervals."""


@dataclass(frozen=True, eq=False)
class Estimate:
    """An estimated mean of class values in a cell, with its variance by source.

    Attributes
    ----------
    value : float
    labelled : float
        Variance that the labelled rows cause.
    own, population : float
        Variance that the rows of the cell add: about the mean of these rows, and about the mean of
        the population from which they come.
    """

    value: float
    labelled: float
    own: float
    population: float

    def variance(self, own: bool) -> float:
        """Return the variance about the mean of these rows if ``own``, or of the population."""
        if own:
            return self.labelled + self.own
        return self.labelled + self.population


@dataclass(frozen=True, eq=False)
class DifferenceEstimate(Estimate):
    """Mean chance in the target plus the mean residual of labelled rows.

    Attributes
    ----------
    residual : float
        Mean residual of the source's rows; 0 if the source consists of all labelled rows.
    row_variance, model_variance : float
        The sampled variance of the labelled rows, and the variance that their chances imply. The
        larger one is used, because few rows of a rare class may have equal residuals.
    label_variance : float
        Mean variance of a target row's value if its score is known.
    base, local : ndarray of shape (B, K)
        How much each labelled row of a bin and class changes the value, and how much it changes the
        value in addition if it belongs to the source. Both are multiplied so that the sum of their
        squares over all rows is ``labelled``.
    """

    residual: float
    row_variance: float
    model_variance: float
    label_variance: float
    base: FloatArray
    local: FloatArray


def difference_estimate(
    total: FloatArray, target: FloatArray, values: FloatArray, source: FloatArray | None = None
) -> DifferenceEstimate:
    r"""Estimate the mean of class values by calibration, with the difference estimator.

    With :math:`G_b` the mean value of the labelled rows in bin b, :math:`t_b` and :math:`l_b` the
    shares of the bins in the target and in the source, and :math:`\bar r` the mean residual of the
    source's M rows, the estimate is :math:`\sum_b t_b G_b + \bar r`. A labelled row i in bin b
    changes it by

    .. math:: (y_i - G_b) (t_b - l_b) / N_b + 1[i \in L] (y_i - G_b - \bar r) / \sqrt{M (M - 1)}.

    The sources are Cassel, Särndal and Wretman (1976), Biometrika 63, 615-620, and Holt and Smith
    (1979), J. R. Statist. Soc. A 142, 33-46, if all labelled rows are the source.

    Parameters
    ----------
    total : ndarray of shape (B, K)
        All labelled rows by bin and class.
    target : ndarray of shape (B,)
        Target rows by bin.
    values : ndarray of shape (K,)
        The value of each class. For the share of a class, its value is 1 and all others are 0.
    source : ndarray of shape (B, K), optional
        Labelled rows whose mean residual is added, such as those of the cell. By default there is
        no such source, and :math:`\bar r = l_b = 0`.
    """
    rows = total.sum(axis=1)
    chances = (total + total.sum(axis=0) / total.sum()) / (rows + 1)[:, None]
    expected = chances @ values
    residuals = values - expected[:, None]
    n = float(target.sum())
    part = target / n
    variances = _label_variances(chances, values, 0.0, 0.0)
    # A bin that has no labelled rows has the variance of a bin with one row.
    sizes = np.maximum(rows, 1.0)
    if source is None:
        residual = 0.0
        base = residuals * (part / sizes)[:, None]
        local = np.zeros_like(base)
        row_variance = float((total * base**2).sum())
        model_variance = float((part**2 / sizes) @ variances)
        shown = _label_variances(chances, values, 0.0, _LEAST_CHANCE)
    else:
        m = float(source.sum())
        weight = source.sum(axis=1) / m
        residual = float((source * residuals).sum()) / m
        base = residuals * ((part - weight) / sizes)[:, None]
        local = (residuals - residual) / math.sqrt(m * max(m - 1, 1.0))
        row_variance = float((total * base**2).sum() + (source * local * (2 * base + local)).sum())
        shown = _label_variances(chances, values, residual, _LEAST_CHANCE)
        model_variance = float(weight @ shown) / m
    labelled = max(row_variance, model_variance)
    scale = 0.0
    if row_variance > 0:
        scale = math.sqrt(labelled / row_variance)
    mean = float(part @ expected)
    return DifferenceEstimate(
        value=mean + residual,
        labelled=labelled,
        own=float(part @ shown) / n,
        population=float(part @ (expected - mean) ** 2) / n,
        residual=residual,
        row_variance=row_variance,
        model_variance=model_variance,
        label_variance=float(part @ variances),
        base=scale * base,
        local=scale * local,
    )


def _label_variances(
    chances: FloatArray, values: FloatArray, residual: float, least: float
) -> FloatArray:
    """Return the variance of a row's value in each bin, shape (B,).

    If there are only two different values, the residual is added to the chance of the higher one,
    and chances are at least ``least`` and at most 1 - ``least``.
    """
    low = float(values.min())
    high = float(values.max())
    if high > low and ((values == low) | (values == high)).all():
        chance = chances @ ((values - low) / (high - low)) + residual / (high - low)
        chance = np.clip(chance, least, 1 - least)
        return np.asarray((high - low) ** 2 * chance * (1 - chance))
    return np.asarray(chances @ values**2 - (chances @ values) ** 2)


def share_interval(
    estimate: Estimate, own: bool, allowance: float = 0.0, confidence_level: float = 0.95
) -> Interval:
    """Return Wilson's interval of a share at its effective number of rows, share (1 - share) / V.

    The source is Korn and Graubard (1998), Survey Methodology 24, 193-201. ``allowance``: a
    variance that is added to V.
    """
    if math.isnan(estimate.value):
        return math.nan, math.nan
    variance = estimate.variance(own) + allowance
    # A share below the usual limit keeps its own interval if its standard error is small.
    least = min(_LEAST_CHANCE, math.sqrt(variance))
    share = min(max(estimate.value, least), 1 - least)
    size = share * (1 - share) / variance
    low, high = wilson_ends(share, size, normal_quantile(confidence_level))
    value = possible_share(estimate.value)
    return min(float(low), value), max(float(high), value)


def possible_share(value: float) -> float:
    """Return the share from 0 to 1 that is closest to an estimate, which residuals may exceed."""
    return min(max(value, 0.0), 1.0)


@dataclass(frozen=True, eq=False)
class ShiftEstimate:
    """Shares of the classes in a target, if the scores of each class are distributed as labelled.

    ``counts``, shape (K, B): labelled rows by class and bin. ``target``, shape (B,): target rows.
        Each class must have labelled rows.
    """

    counts: FloatArray
    target: FloatArray

    @cached_property
    def used(self) -> IntArray:
        """Indices of the bins that count.

        If there are more than two classes, empty bins are left out, because each bin increases the
        fraction of a count that is added.
        """
        is_used = (self.counts.sum(axis=0) + self.target > 0) | (len(self.counts) == 2)
        return np.flatnonzero(is_used)

    @cached_property
    def binned(self) -> BinnedShares:
        """The maximum-likelihood shares, and the test of their fit."""
        counts = self.counts[:, self.used]
        return BinnedShares(counts, self.target[self.used], np.zeros(len(self.used)))

    @property
    def is_identified(self) -> bool:
        """True if the scores distinguish all classes."""
        return self.binned.identified

    @property
    def fit_pvalue(self) -> float:
        """The p-value of the test whether the target's scores are a mixture of the classes."""
        return self.binned.fit_pvalue

    @cached_property
    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """The covariance of the shares that target rows cause, and that labelled rows cause."""
        binned = self.binned
        of_target, of_labelled, _, _ = covariance_parts(
            binned.densities, binned.shares, binned.n, binned.labelled
        )
        return of_target, of_labelled

    def estimate(self, values: FloatArray) -> Estimate:
        """Return the mean of class values."""
        of_target, of_labelled = self.covariances
        shares = self.binned.shares
        mean = float(shares @ values)
        population = float(values @ of_target @ values)
        of_labels = float(shares @ (values - mean) ** 2) / self.binned.n
        labelled = float(values @ of_labelled @ values)
        # Rounding, or a share of 0, may make the difference negative.
        return Estimate(mean, labelled, max(population - of_labels, 0.0), population)

    def influence(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how much labelled rows change the mean of class values, by bin and class (B, K).

        The fractions of a count that are added to each bin act like further labelled rows. The
        second array contains their influence. The sum of squares over all labelled rows and both
        arrays is the variance that the labelled rows cause, so two estimates from the same labelled
        rows have the right covariance.
        """
        binned = self.binned
        pull = score_pull(binned.densities, binned.shares)[0] @ values
        change = -(binned.shares / binned.labelled) * (pull[:, None] - pull @ binned.densities)
        added = added_count(binned.counts)
        change = change * np.sqrt(binned.labelled / (binned.counts + added).sum(axis=1))
        influence = np.zeros((len(self.target), len(self.counts)))
        influence[self.used] = change
        return influence, math.sqrt(added) * influence

    def share(
        self, k: int, own: bool, allowance: float = 0.0, confidence_level: float = 0.95
    ) -> ClassShare:
        """Return the share of a class with its interval.

        If there are two classes, it is the profile-likelihood interval of
        :func:`~cmtrack.prevalence.estimators.binned_estimate`. ``allowance``: a variance V_a that
        is added to the variance V. The distance of each end is multiplied by sqrt((V + V_a) / V).
        """
        if len(self.counts) > 2:
            shares = self._class_shares(confidence_level)
            ends = np.stack((shares.low, shares.high))
            if own:
                ends = shares.realised
            return ClassShare(float(shares.values[k]), *ends[:, k].tolist())
        binned = self.binned
        value = float(binned.shares[1])
        negatives, positives = binned.densities.T
        spread = self._spread
        error = spread.total
        if own:
            error = spread.about_target(value, binned.n)
        mixture = Mixture(positives, negatives, binned.target)
        low, high = profile_interval(mixture, value, error / spread.target, confidence_level)
        if allowance:
            factor = math.sqrt((error + allowance) / error)
            low = max(value - factor * (value - low), 0.0)
            high = min(value + factor * (high - value), 1.0)
        if k == 0:
            return ClassShare(1 - value, 1 - high, 1 - low)
        return ClassShare(value, low, high)

    @property
    def _spread(self) -> Variance:
        """Variance of the share of the second of two classes, divided by source."""
        binned = self.binned
        negatives, positives = binned.densities.T
        m0, m1 = binned.labelled.tolist()
        return variance(positives, negatives, float(binned.shares[1]), binned.n, m1, m0)

    def _class_shares(self, confidence_level: float) -> ClassShares:
        return table_shares(self.binned.counts, self.binned.target, confidence_level)


def rows_needed(
    label_variance: float, half_width: float, own_rows: float, confidence_level: float = 0.95
) -> float:
    """Return how many more labelled rows of the cell result in a half-width.

    It is ``label_variance (z / half_width)^2``, or the smallest number that a cell needs if that is
    larger, less the labelled rows that the cell has.
    """
    wanted = label_variance * (normal_quantile(confidence_level) / half_width) ** 2
    return max(max(wanted, float(ENOUGH)) - own_rows, 0.0)


def rows_to_tell(label_variance: float, distance: float) -> float:
    """Return how many labelled rows of the cell show which of two shares is wrong, with 80% power.

    ``distance``: difference between the two shares.
    """
    if not abs(distance) > 0:
        return math.inf
    return label_variance * ((normal_quantile(0.95) + float(ndtri(POWER))) / distance) ** 2
