"""Simultaneous inference over several segments: intervals, differences, gaps, order, interaction.

Everything stands on the segments' values, standard errors and, of shares, sample sizes; segments
are disjoint where a function says so.
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
    check_level,
    exact_ends,
    wilson_ends,
    within_bounds,
)
from cmtrack.statistics.inputs import FloatArray, IntArray, to_float_array

FEW = 20
"""Samples without which a share is told from another by an exact test."""
RARE = 20
"""Hits, or misses, below which Wilson's interval of a share does not hold at the level of several at once."""


def simultaneous_level(n: int, confidence_level: float = 0.95) -> float:
    """Level of each of n intervals that are simultaneous at the confidence level: its n-th root (Šidák 1967).

    Exact for disjoint segments; for overlapping ones it is valid where errors are normal.

    Raises
    ------
    ValueError
        If n is not positive, or the level does not lie between 0 and 1.

    Examples
    --------
    >>> from cmtrack.segments import simultaneous_level
    >>> round(simultaneous_level(10), 4)
    0.9949
    """
    if n < 1:
        raise ValueError(f"n must be a number of intervals of at least 1, got {n!r}")
    return float(check_level(confidence_level) ** (1 / n))


@dataclass(frozen=True, eq=False)
class Estimates:
    """One metric of S segments.

    Attributes
    ----------
    values : ndarray of shape (S,)
        NaN where the metric is undefined.
    errors : ndarray of shape (S,)
        Standard errors, NaN where none is known.
    n : ndarray of shape (S,), optional
        For a share (recall, accuracy): the effective number of samples in its denominator. Its
        intervals are then Wilson's, and do not use ``errors``.
    degrees : ndarray of shape (S,), optional
        Degrees of freedom of the errors, where they rest on few clusters.
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
        given = {"values": self.values, "errors": self.errors, "n": self.n, "degrees": self.degrees}
        for name, column in given.items():
            if column is None:
                continue
            array = np.asarray(column, dtype=np.float64)
            if array.ndim != 1 or len(array) != len(np.atleast_1d(self.values)):
                raise ValueError(f"{name} must have one entry per segment, got {array.shape}")
            object.__setattr__(self, name, array)

    @classmethod
    def of_shares(cls, hits: Any, n: Any) -> Estimates:
        """Shares of counts: ``hits`` of ``n`` samples in each segment, both of shape (S,)."""
        hits, n = to_float_array("hits", hits), to_float_array("n", n)
        with np.errstate(all="ignore"):
            values = np.where(n > 0, hits / n, math.nan)
            return cls(values, np.sqrt(values * (1 - values) / n), n)

    @property
    def known(self) -> Any:
        """True where the metric is defined, shape (S,)."""
        return np.isfinite(self.values)

    def _take(self, places: Any) -> Estimates:
        """The estimates of some segments."""
        n, degrees = (None if part is None else part[places] for part in (self.n, self.degrees))
        return Estimates(self.values[places], self.errors[places], n, degrees, self.bounds)

    def arms(self, level: float) -> tuple[FloatArray, FloatArray]:
        """The reach of the interval of each value down and up: Wilson's of shares, Wald's of others.

        NaN where no error is known; an error of exactly 0 counts as unknown, except for a share.
        """
        z = _quantiles(level, self.degrees, len(self.values))
        with np.errstate(all="ignore"):
            if self.n is None:
                reach = np.where(self.errors > ROUNDING, z * self.errors, math.nan)
                return reach, reach
            low, high = wilson_ends(self.values, np.where(self.n > 0, self.n, math.nan), z)
            low = np.where(
                self.values <= ROUNDING, 0.0, np.minimum(np.maximum(low, 0.0), self.values)
            )
            high = np.where(
                self.values >= 1 - ROUNDING, 1.0, np.maximum(np.minimum(high, 1.0), self.values)
            )
        return self.values - low, high - self.values

    def ends(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Ends of the interval of each value: those of :meth:`arms`, of shares of fewer than 20 hits or misses exact.

        At the level of several intervals Wilson's intervals of rare events are simultaneous too
        seldom (at .95 in .81 of samples; with nine hits expected in each of ten segments in .91);
        Clopper and Pearson's (1934) do. Where the error rests on few clusters, its level is that of
        Student's quantile.
        """
        down, up = self.arms(level)
        low, high = self.values - down, self.values + up
        if self.n is None:
            return low, high
        hits = self.values * self.n
        rare = np.minimum(hits, self.n - hits) < RARE  # NaN is not
        share = 2 * ndtr(_quantiles(level, self.degrees, len(self.values))) - 1
        exact = exact_ends(hits, self.n, share)
        return np.where(rare, exact[0], low), np.where(rare, exact[1], high)

    def _within(self, level: float) -> tuple[FloatArray, FloatArray]:
        """:meth:`arms`, none of which reaches out of the metric's range: nor does a difference made of them."""
        (down, up), (low, high) = self.arms(level), self.bounds
        return np.minimum(down, np.maximum(self.values - low, 0.0)), np.minimum(
            up, np.maximum(high - self.values, 0.0)
        )

    def intervals(
        self, scale: str, confidence_level: float = 0.95, bounds: Interval = (-math.inf, math.inf)
    ) -> tuple[FloatArray, FloatArray]:
        """Simultaneous intervals on the metric's own scale: lower and upper ends (S,), NaN where there is none.

        Parameters
        ----------
        scale : "wilson", "atanh", "logit", "log" or "wald"
            Wilson's needs ``n``.
        confidence_level : float
            At which all hold together.
        bounds : (low, high)
            Of the metric.
        """
        level = simultaneous_level(max(int(self.known.sum()), 1), confidence_level)
        if scale == "wilson":
            if self.n is None:
                raise ValueError(
                    'scale must not be "wilson" where no n is given: it is for shares of samples'
                )
            down, up = self.arms(level)
            return self.values - down, self.values + up
        ends = np.full((2, len(self.values)), math.nan)
        degrees = np.full(len(self.values), math.inf) if self.degrees is None else self.degrees
        for k in np.flatnonzero(self.known):
            n, value, error = (
                None if self.n is None else float(self.n[k]),
                float(self.values[k]),
                float(self.errors[k]),
            )
            interval = within_bounds(scale, value, error, level, bounds, n, float(degrees[k]))
            ends[:, k] = (math.nan, math.nan) if interval is None else interval
        return ends[0], ends[1]


def _quantiles(level: float, degrees: FloatArray | None, size: int) -> FloatArray:
    share = 0.5 + level / 2
    normal = np.full(size, float(ndtri(share)))
    if degrees is None:
        return normal
    finite = np.isfinite(degrees)
    normal[finite] = stdtrit(degrees[finite], share)
    return normal


# -- differences ----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Differences:
    """Differences of S pairs of values with intervals that hold together.

    Attributes
    ----------
    values, low, high : ndarray of shape (S,)
        NaN where a side is undefined or has no error.
    level : float
        Of each interval.

    Examples
    --------
    >>> from cmtrack.segments import Estimates, differences
    >>> inside, outside = Estimates.of_shares([90, 40], [100, 50]), Estimates.of_shares([40, 90], [50, 100])
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
    """Differences of two independent samples by segment, such as each segment and all other rows.

    Shares: the square-and-add of both Wilson intervals (Newcombe 1998, method 10), and where a side
    has fewer than 20 samples an interval excludes 0 only if Fisher's exact test (1935) at its level
    agrees; where such a side has clusters or sampling weights, which the test does not allow for,
    it never excludes 0. Others: Wald.

    Parameters
    ----------
    first, second : Estimates of S segments
    confidence_level : float
        At which all intervals hold together.
    together : int, optional
        Number of intervals that hold together; by default those that are defined.

    Raises
    ------
    ValueError
        If the numbers of segments differ.

    Examples
    --------
    >>> from cmtrack.segments import Estimates, differences
    >>> found = differences(Estimates.of_shares([90], [100]), Estimates.of_shares([40], [50]))
    >>> found.values.round(3).tolist(), found.low.round(3).tolist(), found.high.round(3).tolist()
    ([0.1], [-0.015], [0.238])
    """
    if len(first.values) != len(second.values):
        raise ValueError(
            f"both sides must have the same segments, got {len(first.values)} and {len(second.values)} of them"
        )
    gap = first.values - second.values
    level = simultaneous_level(
        max(int(np.isfinite(gap).sum()), 1) if together is None else together, confidence_level
    )
    (down, up), (down_2, up_2) = first._within(level), second._within(level)
    low, high = gap - np.hypot(down, up_2), gap + np.hypot(up, down_2)
    return Differences(
        gap, *with_zero(low, high, _unproven(first, second, low, high, level)), level
    )


def with_zero(low: FloatArray, high: FloatArray, where: Any) -> tuple[FloatArray, FloatArray]:
    """Interval ends, extended to contain 0 if asked."""
    return np.where(where, np.minimum(low, 0.0), low), np.where(where, np.maximum(high, 0.0), high)


def _unproven(
    first: Estimates, second: Estimates, low: FloatArray, high: FloatArray, level: float
) -> Any:
    """True where an interval of a difference of shares excludes 0, and too few samples do not bear it out, (S,)."""
    out = np.zeros(len(low), dtype=bool)
    if first.n is None or second.n is None:
        return out
    with np.errstate(invalid="ignore"):
        few = np.flatnonzero(((low > 0) | (high < 0)) & (np.minimum(first.n, second.n) < FEW))
    out[few] = True
    if first.degrees is not None or second.degrees is not None:
        return out
    tables = np.array([first.values * first.n, first.n, second.values * second.n, second.n])[:, few]
    counts = np.round(tables)
    whole = (np.abs(tables - counts) < 1e-6).all(axis=0)
    out[few[whole]] = _fisher(*counts[:, whole]) > 1 - level
    return out


def _fisher(hits: FloatArray, n: FloatArray, hits_2: FloatArray, n_2: FloatArray) -> FloatArray:
    """Two-sided p-values of Fisher's exact test of two shares each, one of them of few samples."""
    swap = n > n_2
    (hits, hits_2), (n, n_2) = (
        np.where(swap, (b, a), (a, b)) for a, b in ((hits, hits_2), (n, n_2))
    )
    k, total = np.arange(FEW)[None, :], (hits + hits_2)[:, None]
    n, rest = n[:, None], total - k
    with np.errstate(all="ignore"):  # (n over k) (n_2 over total - k), where there are so many
        logs = -np.log(n + 1) - betaln(n - k + 1, k + 1) - betaln(n_2[:, None] - rest + 1, rest + 1)
    logs = np.where((k <= n) & (rest >= 0) & (rest <= n_2[:, None]), logs, -math.inf)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    seen = np.take_along_axis(weights, hits[:, None].astype(np.int64), axis=1)
    return np.asarray((weights * (weights <= seen * (1 + 1e-7))).sum(axis=1) / weights.sum(axis=1))


# -- disparity ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Disparity:
    """Difference and ratio of the segments with the highest and the lowest value.

    Attributes
    ----------
    gap, gap_low, gap_high : float
        Highest less lowest, and its interval.
    ratio, ratio_low, ratio_high : float
        Lowest by highest.
    lowest, highest : int
        The numbers of these segments; -1 where there are none.
    pairs : int
        Pairs of segments that the intervals account for.
    reason : str
        Why something is undefined.

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
    """Gap and ratio of the extremes, with intervals that allow for the choice of the extremes.

    The true gap is the difference of one of all S (S - 1) / 2 pairs of segments, so it lies between
    the greatest lower and the greatest upper limit of all pairs' simultaneous intervals; for two
    segments it is the difference to the rest, at its level. The intervals of differences are those
    of :func:`differences`; those of ratios are the same on the scale of logarithms, and contain 1
    where the gap's interval contains 0. The raw gap itself is too large on average.

    Parameters
    ----------
    estimates : Estimates
        Of disjoint segments. Segments without a value are passed over; where one with a value has
        no error, there is no interval.
    confidence_level : float

    Examples
    --------
    >>> from cmtrack.segments import Estimates, disparity
    >>> found = disparity(Estimates.of_shares([90, 70, 40], [100, 100, 50]))
    >>> round(found.gap, 2), round(found.gap_low, 3), round(found.gap_high, 3)
    (0.2, 0.065, 0.328)
    """
    places = np.flatnonzero(estimates.known)
    size = len(places)
    if size < 2:
        reason = f"the metric is defined in {size} of {len(estimates.values)} segments, and a gap needs two"
        return Disparity(*(math.nan,) * 6, -1, -1, 0, reason)
    values = estimates.values[places]
    pairs = size * (size - 1) // 2
    together = max(pairs, size)  # of two segments the gap is the difference of each to the rest
    lowest, highest = int(places[values.argmin()]), int(places[values.argmax()])
    gap = float(values.max() - values.min())
    down, up = (
        arm[places] for arm in estimates.arms(simultaneous_level(together, confidence_level))
    )
    lacking = int(np.isnan(down).sum())
    reason = f"{lacking} of {size} segments have no standard error" if lacking else ""
    low, high, ratio, ratio_low, ratio_high = (math.nan,) * 5
    if not lacking:
        first, second = np.nonzero(~np.eye(size, dtype=bool))
        apart = differences(
            estimates._take(places[first]),
            estimates._take(places[second]),
            confidence_level,
            together,
        )
        low, high = max(0.0, float(apart.low.max())), float(apart.high.max())
    if values.min() < 0 or values.max() <= 0:
        reason = reason or "a ratio needs values that are not negative, and one that is not 0"
    else:
        ratio = float(values.min() / values.max())
        if not lacking:
            ratio_low, ratio_high = _ratio_limits(values, down, up, estimates.n is not None)
            ratio_high = ratio_high if low > 0 else 1.0  # where there may be no gap
    return Disparity(gap, low, high, ratio, ratio_low, ratio_high, lowest, highest, pairs, reason)


def _ratio_limits(values: FloatArray, down: FloatArray, up: FloatArray, shares: bool) -> Interval:
    """The least lower and the least upper limit of the ratios of all pairs, at most 1.

    The arms of shares are those of Wilson's interval in logarithms. A value of 0 has no logarithm:
    the ends of both intervals are divided then, which is wider.
    """
    with np.errstate(all="ignore"):
        logs = np.log(values)
        if shares:
            below, above = logs - np.log(values - down), np.log(values + up) - logs
        else:
            below = above = up / values
        apart = logs[:, None] - logs[None, :]
        low = np.exp(apart - np.hypot(below[:, None], above[None, :]))
        high = np.exp(apart + np.hypot(above[:, None], below[None, :]))
        none = (values <= 0)[:, None] | (values <= 0)[None, :]
        ends_low, ends_high = np.maximum(values - down, 0.0), values + up
        low = np.where(none, ends_low[:, None] / ends_high[None, :], low)
        high = np.where(
            none, np.where(ends_low > 0, ends_high[:, None] / ends_low[None, :], math.inf), high
        )
    other = ~np.eye(len(values), dtype=bool)
    return min(1.0, float(np.nanmin(low[other]))), min(1.0, float(np.nanmin(high[other])))


# -- order ----------------------------------------------------------------------------------------


def order_of_segments(estimates: Estimates, support: Any, better: str = "higher") -> IntArray:
    """Return the numbers of the segments from worst to best by their values, shape (S,).

    Of equal values the segment of more rows is first; one without a value is last.

    Parameters
    ----------
    estimates : Estimates
    support : array-like of shape (S,)
        Rows of each segment.
    better : "higher" or "lower"

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
    """The test of "better in some segments, worse in others" (Gail, Simon 1985).

    Attributes
    ----------
    positive, negative : float
        Sums of (difference / error)^2 over the segments where it is positive, or negative.
    pvalue : float
        NaN where fewer than two segments have a difference and an error.
    segments : int
        Number of these.

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
    """Test whether the differences of two models have both signs among disjoint segments.

    The test is strict: where all true differences are equal, it rejects far less often than its
    level says.

    Parameters
    ----------
    differences, errors : array-like of shape (S,)
        Paired differences; segments with an undefined one, or an error of 0, are left out.

    Examples
    --------
    >>> from cmtrack.segments import qualitative_interaction
    >>> round(qualitative_interaction([0.10, -0.06, 0.01], [0.02, 0.02, 0.02]).pvalue, 4)
    0.0041
    """
    d, se = np.asarray(differences, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if d.shape != se.shape or d.ndim != 1:
        raise ValueError(
            f"differences and errors must have one entry per segment, got {d.shape} and {se.shape}"
        )
    usable = np.isfinite(d) & np.isfinite(se) & (se > 0)
    d, se = d[usable], se[usable]
    if len(d) < 2:
        return Interaction(math.nan, math.nan, math.nan, len(d))
    squares = (d / se) ** 2
    positive, negative = float(squares[d > 0].sum()), float(squares[d < 0].sum())
    least = min(positive, negative)
    if least <= 0:
        return Interaction(positive, negative, 1.0, len(d))
    from scipy.stats import binom

    h = np.arange(1, len(d))
    pvalue = float(binom.pmf(h, len(d) - 1, 0.5) @ chdtrc(h, least))
    return Interaction(positive, negative, pvalue, len(d))
