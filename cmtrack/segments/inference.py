"""Simultaneous inference over several segments: intervals, differences, gaps and tests.

All functions use only the segments' values and standard errors and, for shares of rows, the numbers
of rows. Some functions require disjoint segments, as their docstrings state.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betaln, chdtrc, ndtr, ndtri, stdtrit

from cmtrack.metrics.intervals import (
    ROUNDING,
    Interval,
    exact_ends,
    simultaneous_level,
    wilson_ends,
    within_bounds,
)
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, to_float_array

FEW = 20
"""Number of rows below which an exact test must confirm that two shares differ."""
RARE = 20
"""Number of hits or misses below which simultaneous Wilson intervals are too narrow."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """The values of one metric in S segments.

    Attributes
    ----------
    values : ndarray of shape (S,)
        Value of each segment; NaN if the metric is undefined there.
    errors : ndarray of shape (S,)
        Standard error of each value; NaN if unknown.
    n : ndarray of shape (S,), optional
        The effective number of rows in the denominator, if the metric is a share of rows such as
        recall or accuracy. With these numbers, intervals are computed by Wilson's method, which
        does not use ``errors``.
    degrees : ndarray of shape (S,), optional
        Degrees of freedom of the standard errors, if the data contain few clusters.
    bounds : (low, high)
        Range of the metric.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.segments import Estimates
    >>> estimates = Estimates(np.array([0.31, 0.42]), np.array([0.02, 0.03]))
    >>> low, high = estimates.intervals("wald", confidence_level=0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.265, 0.353], [0.355, 0.487])
    """

    values: FloatArray
    errors: FloatArray
    n: FloatArray | None = None
    degrees: FloatArray | None = None
    bounds: Interval = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        for name in ("values", "errors", "n", "degrees"):
            column = getattr(self, name)
            if column is None:
                continue
            array = np.asarray(column, dtype=np.float64)
            if array.ndim != 1 or len(array) != len(np.atleast_1d(self.values)):
                raise ValueError(f"{name} must have one entry per segment, got {array.shape}")
            object.__setattr__(self, name, array)

    @classmethod
    def of_shares(cls, hits: Any, n: Any) -> Estimates:
        """Compute the share of hits in each segment from numbers of hits and rows, shape (S,)."""
        hits = to_float_array("hits", hits)
        n = to_float_array("n", n)
        with np.errstate(all="ignore"):
            values = np.where(n > 0, hits / n, math.nan)
            return cls(values, np.sqrt(values * (1 - values) / n), n)

    @property
    def known(self) -> Any:
        """True where the metric is defined, shape (S,)."""
        return np.isfinite(self.values)

    def _take(self, positions: IntArray) -> Estimates:
        """Return the estimates of the segments at the given positions."""
        n = self.n
        if n is not None:
            n = n[positions]
        degrees = self.degrees
        if degrees is not None:
            degrees = degrees[positions]
        return Estimates(self.values[positions], self.errors[positions], n, degrees, self.bounds)

    def _quantiles(self, level: float) -> FloatArray:
        """Return quantiles for two-sided intervals: normal or, with few clusters, Student's t."""
        share = 0.5 + level / 2
        quantiles = np.full(len(self.values), float(ndtri(share)))
        if self.degrees is not None:
            finite = np.isfinite(self.degrees)
            quantiles[finite] = stdtrit(self.degrees[finite], share)
        return quantiles

    def arms(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the distances from a value to the lower end and to the upper end of its interval.

        Wilson intervals are used for shares, and Wald intervals for all other metrics. The
        distances are NaN if the standard error is unknown. If the metric is not a share, a standard
        error of exactly 0 counts as unknown.
        """
        z = self._quantiles(level)
        values = self.values
        with np.errstate(all="ignore"):
            if self.n is None:
                reach = np.where(self.errors > ROUNDING, z * self.errors, math.nan)
                return reach, reach
            low, high = wilson_ends(values, np.where(self.n > 0, self.n, math.nan), z)
            # Despite rounding errors, the interval must contain the value. If the value is 0 or 1,
            # this must also be an end of the interval.
            low = np.where(values <= ROUNDING, 0.0, np.minimum(np.maximum(low, 0.0), values))
            high = np.where(values >= 1 - ROUNDING, 1.0, np.maximum(np.minimum(high, 1.0), values))
        return values - low, high - values

    def ends(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the lower and the upper end of each interval.

        The intervals are exact (Clopper and Pearson 1934) for segments with fewer than 20 hits or
        misses. With fewer hits or misses, simultaneous Wilson intervals at level 0.95 all contain
        the true values in only 81% of data sets, or in 91% if nine hits are expected in each of ten
        segments. All other intervals are computed by :meth:`arms`. With few clusters, the level of
        the exact intervals is derived from Student's t distribution.
        """
        down, up = self.arms(level)
        low = self.values - down
        high = self.values + up
        if self.n is None:
            return low, high
        hits = self.values * self.n
        is_rare = np.minimum(hits, self.n - hits) < RARE  # False for NaN
        share = 2 * ndtr(self._quantiles(level)) - 1
        exact_low, exact_high = exact_ends(hits, self.n, share)
        return np.where(is_rare, exact_low, low), np.where(is_rare, exact_high, high)

    def _within(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the result of :meth:`arms` after limiting the intervals to the metric's range."""
        down, up = self.arms(level)
        low, high = self.bounds
        down = np.minimum(down, np.maximum(self.values - low, 0.0))
        up = np.minimum(up, np.maximum(high - self.values, 0.0))
        return down, up

    def intervals(
        self, scale: str, confidence_level: float = 0.95, bounds: Interval = (-math.inf, math.inf)
    ) -> tuple[FloatArray, FloatArray]:
        """Compute simultaneous intervals of several segments on a given scale.

        Returns the lower ends and the upper ends as two arrays of shape (S,). The ends are NaN for
        segments whose interval is undefined.

        Parameters
        ----------
        scale : "wilson", "atanh", "logit", "log" or "wald"
            The scale on which to compute the intervals; "wilson" requires ``n``.
        confidence_level : float
            The level at which all intervals hold together.
        bounds : (low, high)
            Range of the metric.
        """
        level = simultaneous_level(max(int(self.known.sum()), 1), confidence_level)
        if scale == "wilson":
            if self.n is None:
                raise ValueError(
                    'scale="wilson" needs n, the number of rows of each share, got none'
                )
            down, up = self.arms(level)
            return self.values - down, self.values + up
        size = len(self.values)
        degrees = np.full(size, math.inf) if self.degrees is None else self.degrees
        low = np.full(size, math.nan)
        high = np.full(size, math.nan)
        for k in np.flatnonzero(self.known):
            interval = within_bounds(
                scale,
                float(self.values[k]),
                float(self.errors[k]),
                level,
                bounds,
                None if self.n is None else float(self.n[k]),
                float(degrees[k]),
            )
            if interval is not None:
                low[k], high[k] = interval
        return low, high


# -- differences ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of S pairs of values, with simultaneous intervals.

    Attributes
    ----------
    values, low, high : ndarray of shape (S,)
        The differences, and the lower and upper ends of their intervals. NaN if one of the two
        values is undefined or its standard error is unknown.
    level : float
        Confidence level of each individual interval.

    Examples
    --------
    >>> from cmtrack.segments import Estimates, differences
    >>> inside = Estimates.of_shares([90, 40], [100, 50])
    >>> outside = Estimates.of_shares([40, 90], [50, 100])
    >>> found = differences(inside, outside)
    >>> found.values.round(2).tolist(), found.low.round(3).tolist(), round(found.level, 4)
    ([0.1, -0.1], [-0.03, -0.259], 0.9747)
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    level: float


def differences(
    first: Estimates, second: Estimates, confidence_level: float = 0.95, together: int | None = None
) -> Differences:
    """For each segment, compute the difference between two independent estimates.

    An example is the difference between the rows inside a segment and the rows outside it. For
    shares, Newcombe's square-and-add method (1998, method 10) combines the Wilson intervals of the
    two shares. If one of the shares is computed from fewer than 20 rows, the interval of the
    difference excludes 0 only if Fisher's exact test (1935) rejects at the same level. Fisher's
    test does not account for clusters or sampling weights, so if the data contain either, such an
    interval never excludes 0. For all other metrics, the intervals are Wald intervals.

    Parameters
    ----------
    first, second : Estimates of S segments
    confidence_level : float
        The level at which all intervals hold together.
    together : int, optional
        Number of simultaneous intervals; by default the number of defined differences.

    Raises
    ------
    ValueError
        If the two sets differ in their numbers of segments.

    Examples
    --------
    >>> from cmtrack.segments import Estimates, differences
    >>> found = differences(Estimates.of_shares([90], [100]), Estimates.of_shares([40], [50]))
    >>> found.values.round(3).tolist(), found.low.round(3).tolist(), found.high.round(3).tolist()
    ([0.1], [-0.015], [0.238])
    """
    if len(first.values) != len(second.values):
        raise ValueError(
            f"both sides must have the same segments, got {len(first.values)} and "
            f"{len(second.values)} of them"
        )
    gap = first.values - second.values
    if together is None:
        together = max(int(np.isfinite(gap).sum()), 1)
    level = simultaneous_level(together, confidence_level)
    first_down, first_up = first._within(level)
    second_down, second_up = second._within(level)
    low = gap - np.hypot(first_down, second_up)
    high = gap + np.hypot(first_up, second_down)
    low, high = with_zero(low, high, _is_unproven(first, second, low, high, level))
    return Differences(gap, low, high, level)


def with_zero(low: FloatArray, high: FloatArray, where: Any) -> tuple[FloatArray, FloatArray]:
    """Return the interval ends after extending each interval that ``where`` marks to include 0."""
    return np.where(where, np.minimum(low, 0.0), low), np.where(where, np.maximum(high, 0.0), high)


def _is_unproven(
    first: Estimates, second: Estimates, low: FloatArray, high: FloatArray, level: float
) -> BoolArray:
    """Mark intervals that exclude 0 despite too few rows to show a difference, shape (S,)."""
    unproven = np.zeros(len(low), dtype=bool)
    if first.n is None or second.n is None:
        return unproven
    with np.errstate(invalid="ignore"):
        excludes_zero = (low > 0) | (high < 0)
        doubtful = np.flatnonzero(excludes_zero & (np.minimum(first.n, second.n) < FEW))
    unproven[doubtful] = True
    if first.degrees is not None or second.degrees is not None:
        return unproven
    tables = np.array([first.values * first.n, first.n, second.values * second.n, second.n])
    tables = tables[:, doubtful]
    counts = np.round(tables)
    is_whole = (np.abs(tables - counts) < 1e-6).all(axis=0)  # Fisher's test needs counts
    unproven[doubtful[is_whole]] = _fisher(*counts[:, is_whole]) > 1 - level
    return unproven


def _fisher(hits: FloatArray, n: FloatArray, hits_2: FloatArray, n_2: FloatArray) -> FloatArray:
    """Return two-sided p-values of Fisher's exact test for pairs in which a share uses few rows."""
    # The smaller side has fewer than FEW rows, so an array with FEW entries per segment can list
    # all possible numbers of hits.
    small_n = np.minimum(n, n_2)[:, None]
    large_n = np.maximum(n, n_2)[:, None]
    small_hits = np.where(n > n_2, hits_2, hits)[:, None]
    k = np.arange(FEW)[None, :]
    rest = (hits + hits_2)[:, None] - k
    # The logarithm of (n over k) (n_2 over total - k), for each possible k.
    with np.errstate(all="ignore"):
        of_small = -np.log(small_n + 1) - betaln(small_n - k + 1, k + 1)
        logs = of_small - betaln(large_n - rest + 1, rest + 1)
    is_possible = (k <= small_n) & (rest >= 0) & (rest <= large_n)
    logs = np.where(is_possible, logs, -math.inf)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    seen = np.take_along_axis(weights, small_hits.astype(np.int64), axis=1)
    # Add up the probabilities of all tables that are at most as likely as the observed table. The
    # tolerance allows for rounding errors.
    as_rare = weights * (weights <= seen * (1 + 1e-7))
    return np.asarray(as_rare.sum(axis=1) / weights.sum(axis=1))


# -- disparity ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Disparity:
    """Difference and ratio between the segments with the highest and the lowest value.

    Attributes
    ----------
    gap, gap_low, gap_high : float
        Highest value minus lowest value, and the ends of the interval of this difference.
    ratio, ratio_low, ratio_high : float
        Lowest value divided by highest value, and the ends of the interval of this ratio.
    lowest, highest : int
        Positions of the segments with the lowest and the highest value; -1 if the gap is undefined.
    pairs : int
        Number of pairs of segments among which the two extreme segments were selected. The
        intervals account for this selection.
    reason : str
        Reason why a gap, a ratio or an interval is undefined.

    Examples
    --------
    >>> from cmtrack.segments import Estimates, disparity
    >>> found = disparity(Estimates.of_shares([90, 70, 40], [100, 100, 50]))
    >>> found.highest, found.lowest, round(found.gap, 2), round(found.ratio, 3)
    (0, 1, 0.2, 0.778)
    >>> round(found.gap_low, 3), round(found.gap_high, 3), found.pairs
    (0.065, 0.328, 3)
    """

    gap: float
    gap_low: float
    gap_high: float
    ratio: float
    ratio_low: float
    ratio_high: float
    lowest: int
    highest: int
    pairs: int
    reason: str = ""


def disparity(estimates: Estimates, confidence_level: float = 0.95) -> Disparity:
    """Return the difference and the ratio between the segments' highest and lowest values.

    The intervals account for the selection of the two extreme segments. The true gap is the largest
    difference among all S (S - 1) / 2 pairs of segments. The interval for the gap therefore extends
    from the greatest lower limit to the greatest upper limit of the simultaneous intervals of all
    pairs, which :func:`differences` computes. If there are only two segments, this interval equals
    the interval for the difference between one segment and the remaining rows. The interval for the
    ratio is computed by the same method on the log scale, and it contains 1 if the interval for the
    gap contains 0. On average, the observed gap is larger than the true gap.

    Parameters
    ----------
    estimates : Estimates
        Estimates of disjoint segments. Segments without a value are ignored. If the standard error
        of a value is unknown, the interval is undefined.
    confidence_level : float

    Examples
    --------
    >>> from cmtrack.segments import Estimates, disparity
    >>> found = disparity(Estimates.of_shares([90, 70, 40], [100, 100, 50]))
    >>> round(found.gap, 2), round(found.gap_low, 3), round(found.gap_high, 3)
    (0.2, 0.065, 0.328)
    """
    defined = np.flatnonzero(estimates.known)
    size = len(defined)
    nan = math.nan
    if size < 2:
        reason = (
            f"the metric is defined in {size} of {len(estimates.values)} segments, "
            "and a gap needs two"
        )
        return Disparity(nan, nan, nan, nan, nan, nan, -1, -1, 0, reason)
    inside = estimates._take(defined)
    values = inside.values
    n_pairs = size * (size - 1) // 2
    together = max(n_pairs, size)  # with two segments, each is also compared with the rest
    down, up = inside.arms(simultaneous_level(together, confidence_level))
    lacking = int(np.isnan(down).sum())
    gap_low = nan
    gap_high = nan
    reason = ""
    if lacking:
        reason = f"{lacking} of {size} segments have no standard error"
    else:
        first, second = np.nonzero(~np.eye(size, dtype=bool))
        gaps = differences(inside._take(first), inside._take(second), confidence_level, together)
        gap_low = max(0.0, float(gaps.low.max()))
        gap_high = float(gaps.high.max())
    ratio = nan
    ratio_low = nan
    ratio_high = nan
    if values.min() < 0 or values.max() <= 0:
        reason = (
            reason or "a ratio needs values that are not negative, and at least one that is not 0"
        )
    else:
        ratio = float(values.min() / values.max())
        if not lacking:
            ratio_low, ratio_high = _ratio_limits(values, down, up, inside.n is not None)
            if not gap_low > 0:  # there may be no gap
                ratio_high = 1.0
    return Disparity(
        gap=float(values.max() - values.min()),
        gap_low=gap_low,
        gap_high=gap_high,
        ratio=ratio,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        lowest=int(defined[values.argmin()]),
        highest=int(defined[values.argmax()]),
        pairs=n_pairs,
        reason=reason,
    )


def _ratio_limits(values: FloatArray, down: FloatArray, up: FloatArray, shares: bool) -> Interval:
    """Return the smallest lower and the smallest upper limit of the ratios of all pairs.

    The limits are at most 1. The intervals of shares are Wilson intervals on the log scale. The
    logarithm of 0 does not exist. If a pair contains the value 0, its limits are therefore the
    quotients of the ends of the two intervals. These limits are wider.
    """
    ends_low = np.maximum(values - down, 0.0)[:, None]
    ends_high = (values + up)[:, None]
    is_zero = (values <= 0)[:, None]
    with np.errstate(all="ignore"):
        logs = np.log(values)[:, None]
        below = (up / values)[:, None]
        above = below
        if shares:
            below = logs - np.log(values - down)[:, None]
            above = np.log(ends_high) - logs
        apart = logs - logs.T
        low = np.exp(apart - np.hypot(below, above.T))
        high = np.exp(apart + np.hypot(above, below.T))
        divided_low = ends_low / ends_high.T
        divided_high = np.where(ends_low.T > 0, ends_high / ends_low.T, math.inf)
    has_zero = is_zero | is_zero.T
    low = np.where(has_zero, divided_low, low)
    high = np.where(has_zero, divided_high, high)
    is_pair = ~np.eye(len(values), dtype=bool)
    return min(1.0, float(np.nanmin(low[is_pair]))), min(1.0, float(np.nanmin(high[is_pair])))


# -- order ----------------------------------------------------------------------------------------


def order_of_segments(estimates: Estimates, support: Any, better: str = "higher") -> IntArray:
    """Return the segments' positions, ordered from the worst to the best value, shape (S,).

    If two values are equal, the segment with more rows comes first. Segments without a value come
    last.

    Parameters
    ----------
    estimates : Estimates
    support : array-like of shape (S,)
        Number of rows in each segment.
    better : "higher" or "lower"
        Whether higher or lower values are better.

    Examples
    --------
    >>> from cmtrack.segments import Estimates, order_of_segments
    >>> order_of_segments(Estimates.of_shares([0, 60, 90], [1, 100, 100]), [1, 100, 100]).tolist()
    [0, 1, 2]
    """
    if better not in ("higher", "lower"):
        raise ValueError(f'better must be "higher" or "lower", got {better!r}')
    keys = estimates.values if better == "higher" else -estimates.values
    keys = np.where(np.isfinite(keys), keys, math.inf)
    return np.lexsort((-np.asarray(support, dtype=np.float64), keys))


# -- two models -----------------------------------------------------------------------------------


class Interaction(NamedTuple):
    """Result of Gail and Simon's test (1985) for differences of both signs among segments.

    Attributes
    ----------
    positive, negative : float
        ``positive`` is the sum of (difference / standard error)^2 over the segments with a positive
        difference, and ``negative`` is this sum over the segments with a negative difference.
    pvalue : float
        p-value of the hypothesis that no two segments have differences of opposite sign. NaN if the
        difference and its standard error are known for fewer than two segments.
    segments : int
        Number of segments with a difference and a standard error.

    Examples
    --------
    >>> from cmtrack.segments import qualitative_interaction
    >>> test = qualitative_interaction([0.10, -0.06], [0.02, 0.03])
    >>> round(test.positive, 1), round(test.negative, 1), test.segments
    (25.0, 4.0, 2)
    """

    positive: float
    negative: float
    pvalue: float
    segments: int


def qualitative_interaction(differences: Any, errors: Any) -> Interaction:
    """Test whether a model is better than another model in some segments and worse in others.

    The test by Gail and Simon (1985) is conservative: if all true differences are equal, it rejects
    far less often than its significance level permits.

    Parameters
    ----------
    differences, errors : array-like of shape (S,)
        Paired differences and their standard errors. Segments with an undefined difference or a
        standard error of 0 are ignored.

    Examples
    --------
    >>> from cmtrack.segments import qualitative_interaction
    >>> round(qualitative_interaction([0.10, -0.06, 0.01], [0.02, 0.02, 0.02]).pvalue, 4)
    0.0041
    """
    values = np.asarray(differences, dtype=np.float64)
    spreads = np.asarray(errors, dtype=np.float64)
    if values.shape != spreads.shape or values.ndim != 1:
        raise ValueError(
            "differences and errors must have one entry per segment, "
            f"got {values.shape} and {spreads.shape}"
        )
    is_usable = np.isfinite(values) & np.isfinite(spreads) & (spreads > 0)
    values = values[is_usable]
    size = len(values)
    if size < 2:
        return Interaction(math.nan, math.nan, math.nan, size)
    squares = (values / spreads[is_usable]) ** 2
    positive = float(squares[values > 0].sum())
    negative = float(squares[values < 0].sum())
    least = min(positive, negative)
    if least <= 0:
        return Interaction(positive, negative, 1.0, size)
    from scipy.stats import binom

    h = np.arange(1, size)
    pvalue = float(binom.pmf(h, size - 1, 0.5) @ chdtrc(h, least))
    return Interaction(positive, negative, pvalue, size)
