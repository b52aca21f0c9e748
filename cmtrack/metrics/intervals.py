"""Interval scales, which keep an interval within its metric's range; and Holm's p-values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, expit, ndtri, stdtrit

from cmtrack.digits import Interval as Interval
from cmtrack.statistics.inputs import FloatArray

ROUNDING = 1e-13
"""Part of a range that may be rounding of a value or an error: ratios of sums have some 2**-52."""
_LONGEST = 700.0
"""Half-width on the log scale beyond which the back-transform overflows: there is no interval."""
_FEWEST = 1e-30
"""Effective samples, fewer of which tell nothing of a share."""
NEAR = 5.0
"""Standard errors from an end of its range within which a value's error rests on few samples.

Of a share, five standard errors are fewer than 25 samples.
"""
EDGE = 0.1
"""Part of a range that is near its end, however many standard errors it has."""


def check_level(confidence_level: float) -> float:
    """Validate a confidence level: a number between 0 and 1."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1, got {confidence_level!r}")
    return float(confidence_level)


def normal_quantile(confidence_level: float, degrees: float = math.inf) -> float:
    """Return the two-sided standard normal quantile, or Student's of finite ``degrees``.

    At 0.95 it is 1.959963984540054.
    """
    share = 0.5 + confidence_level / 2
    return float(ndtri(share) if math.isinf(degrees) else stdtrit(degrees, share))


def holm(pvalues: npt.ArrayLike) -> FloatArray:
    """Adjust p-values for their number (Holm 1979, Scandinavian Journal of Statistics 6, 65-70).

    NaN stays NaN and does not count. statsmodels has it, too, but collects all garbage at each
    call, which takes longer than everything else here.
    """
    values = np.asarray(pvalues, dtype=np.float64)
    # NaN is sorted to the end, and stays there.
    order = np.argsort(values, axis=None, kind="stable")
    n_tests = int((~np.isnan(values)).sum())
    factors = np.maximum(n_tests - np.arange(values.size), 1)
    adjusted = np.empty(values.size)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * values.ravel()[order]))
    return adjusted.reshape(values.shape)


def settled(value: float, low: float, high: float) -> float:
    """Return a value, moved to an end of its range or to 0 if it is within rounding of these.

    A perfect prediction's correlation computes as 0.9999999999999998, a constant one's kappa as
    1e-16; as they stand, their intervals would be points that leave out 1 and 0. Ratios of sums are
    exact to some ``2**-52`` of the range, and no metric of fewer than 10^13 samples comes as near
    to an end without being there.

    ``low``, ``high``: the range of the metric; infinite ends are none. A value beyond an end is put
        there too.
    """
    if not math.isfinite(value):
        return value
    for end in (low, high):
        is_near = math.isfinite(end) and abs(value - end) <= ROUNDING * max(1.0, abs(end))
        # A small loss is a value, and no rounding of 0.
        is_small_loss = end == 0 and low == 0
        if is_near and not is_small_loss:
            return float(end)
    if low < 0 < high and abs(value) <= ROUNDING:
        return 0.0
    return min(max(value, low), high)


def wilson(
    share: float, n: float, confidence_level: float = 0.95, degrees: float = math.inf
) -> Interval | None:
    """Return the Wilson interval of a proportion.

    ``share``: the proportion.
    ``n``: its denominator: a count, or an effective count where samples are weighted.
    ``degrees``: degrees of freedom of its error, where this was estimated from few clusters.
    The result, (low, high), or None where the proportion is undefined.
    """
    if not n > 0 or math.isnan(share):
        return None
    if n < _FEWEST:
        return 0.0, 1.0
    share = settled(share, 0.0, 1.0)
    if math.isinf(n):
        return share, share
    quantile = normal_quantile(confidence_level, degrees)
    if math.isinf(quantile):
        return 0.0, 1.0
    low, high = wilson_ends(share, n, quantile)
    low = 0.0 if share == 0 else max(0.0, low)
    high = 1.0 if share == 1 else min(1.0, high)
    return min(low, share), max(high, share)


def wilson_ends(share: Any, n: Any, z: Any) -> tuple[Any, Any]:
    """Return the ends of Wilson's interval, of numbers or arrays.

    They are both roots of ``(share - x)^2 = z^2 x (1 - x) / n``.
    """
    centre = share + z * z / (2 * n)
    reach = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    scale = 1 + z * z / n
    return (centre - reach) / scale, (centre + reach) / scale


def exact_ends(hits: Any, n: Any, confidence_level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the exact interval of a share, ``hits`` of ``n`` samples.

    Clopper and Pearson (1934), Biometrika 26. The tails of the binomial distribution are those of
    beta distributions; effective numbers need not be whole. Numbers or arrays; NaN where n is 0.
    """
    hits = np.asarray(hits, dtype=np.float64)
    n = np.asarray(n, dtype=np.float64)
    tail = (1 - confidence_level) / 2
    with np.errstate(all="ignore"):
        low = np.where(hits > 0, betaincinv(hits, n - hits + 1, tail), 0.0)
        high = np.where(hits < n, betaincinv(hits + 1, n - hits, 1 - tail), 1.0)
    return np.where(n > 0, low, math.nan), np.where(n > 0, high, math.nan)


def size_of_share(share: Any, error: Any, units: Any, kish: Any = math.inf) -> Any:
    """Return the effective sample size of a share: share (1 - share) / error^2, at most Kish's.

    Where few rows are errors, the standard error rests on the weights of these few: one light error
    would make the interval narrower than no error does. Kish's size, (sum of w)^2 / sum of w^2,
    takes the weights of all rows that the share is of, and is too large only where the errors are
    heavier than the other rows, which the standard error shows. The smaller of both therefore holds
    in either case.

    Parameters
    ----------
    share, error : float or ndarray
    units : float or ndarray
        The size of a share of 0 or 1, or without an error: rows, clusters or Kish's size.
    kish : float or ndarray
        Kish's size (1965, Survey Sampling, section 11.7) of the rows that the share is of; infinite
        where rows have no sampling weights.
    """
    with np.errstate(all="ignore"):
        by_error = share * (1 - share) / np.square(error)
        has_error = (share > 0) & (share < 1) & (error > 0)
        size = np.where(has_error, np.minimum(by_error, kish), units)
    return size if size.ndim else float(size)


def on_scale(
    scale: str,
    value: float,
    standard_error: float,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    degrees: float = math.inf,
) -> Interval | None:
    """Return an interval that is symmetric on a scale and clipped to the metric's bounds.

    Parameters
    ----------
    scale : "atanh", "logit", "log" or "wald"
        Correlations, areas under a curve, losses (or skills, whose range has only an upper end),
        everything else.

    Returns
    -------
    (low, high), or None where value or error is undefined or the scale ends at the value (a
    correlation of exactly 1 has no interval on the atanh scale).
    """
    if not (math.isfinite(value) and math.isfinite(standard_error)):
        return None
    own_bounds = (float(bounds[0]), float(bounds[1]))
    ranges = {"atanh": (-1.0, 1.0), "logit": (0.0, 1.0), "log": own_bounds, "wald": own_bounds}
    if scale not in ranges:
        raise ValueError(f"scale must be 'atanh', 'logit', 'log' or 'wald', got {scale!r}")
    lowest, highest = ranges[scale]
    value = settled(value, lowest, highest)
    # A share of exactly 0 or 1 is not known without error.
    smallest = ROUNDING if value in (lowest, 0.0, highest) else 0.0
    if standard_error <= smallest:
        return None
    reach = normal_quantile(confidence_level, degrees) * standard_error
    if scale == "wald":
        return max(lowest, value - reach), min(highest, value + reach)
    if scale == "log":
        if math.isinf(lowest) and math.isfinite(highest):
            # A skill is 1 less a ratio of losses.
            ends = _on_log_scale(highest - value, reach, math.inf)
            if ends is None:
                return None
            return (highest - ends[1], highest - ends[0])
        return _on_log_scale(value, reach, highest)
    if value in (lowest, highest):
        return None
    if scale == "atanh":
        centre = math.atanh(value)
        reach /= 1 - value * value
        low = math.tanh(centre - reach)
        high = math.tanh(centre + reach)
    else:
        centre = math.log(value / (1 - value))
        reach /= value * (1 - value)
        low = float(expit(centre - reach))
        high = float(expit(centre + reach))
    return min(low, value), max(high, value)


def _on_log_scale(value: float, reach: float, highest: float) -> Interval | None:
    """Return an interval that is symmetric on the log scale; None for a loss of 0."""
    if not value > 0 or reach / value > _LONGEST:
        return None
    return value * math.exp(-reach / value), min(highest, value * math.exp(reach / value))


def within_bounds(
    scale: str,
    value: float,
    standard_error: float,
    confidence_level: float,
    bounds: tuple[float, float],
    n: float | FloatArray | None = None,
    degrees: float = math.inf,
) -> Interval | None:
    """Return the interval of a metric: on its scale, or Wilson's near an end of its range.

    Within :data:`NEAR` standard errors and :data:`EDGE` of the range of an end the error rests on
    few samples, and no scale makes it normal. The value x, mapped to 0 to 1, then has the interval
    of a share of x (1 - x) / error^2 samples. Where the error is 0, a share of at most z^2 / (n +
    z^2) of samples like none of the n, by Wilson, may move the value by its range.

    ``scale``, "atanh", "logit", "log" or "wald".
    ``bounds``, (low, high): of the metric; without both ends the scale's interval is all there is.
    ``n``, float, or ndarray of shape (2,): number of samples that tell where the error is 0; of an
        area under a curve the positives and the negatives, and near an end the wider of Wilson's
        and Newcombe's interval is taken.
    ``degrees``: as in :func:`wilson`.
    """
    low, high = bounds
    span = high - low
    distance = min(value - low, high - value)
    near = min(NEAR * standard_error, EDGE * span)
    is_bounded = math.isfinite(span) and math.isfinite(value) and math.isfinite(standard_error)
    is_inside = standard_error > 0 and distance >= near
    if scale == "log" or not is_bounded or is_inside:
        return on_scale(scale, value, standard_error, confidence_level, bounds, degrees)
    intervals = []
    share = (value - low) / span
    if 0 < share < 1 and standard_error > 0:
        size = share * (1 - share) * (span / standard_error) ** 2
        intervals.append(wilson(share, size, confidence_level, degrees))
    if isinstance(n, np.ndarray):
        intervals.append(newcombe(share, float(n[0]), float(n[1]), confidence_level))
    elif n is not None and n > 0 and not intervals:
        squared = normal_quantile(confidence_level) ** 2
        reach = squared / (n + squared)
        intervals.append((max(0.0, share - reach), min(1.0, share + reach)))
    ends = [interval for interval in intervals if interval is not None]
    if not ends:
        return None
    first = min(end for end, _ in ends)
    last = max(end for _, end in ends)
    # The range's end itself, not its rounded sum.
    highest = high if last == 1 else low + span * last
    return min(value, low + span * first), max(value, highest)


def least_correlation(
    values: FloatArray,
    errors: FloatArray,
    n: FloatArray,
    confidence_level: float = 0.95,
    degrees: float = math.inf,
    many: int | None = None,
) -> Interval | None:
    """Return the interval of the least of m correlations.

    It reaches from the lowest lower end to the lowest simultaneous upper end. The least estimate is
    biased downward, and where several true values are alike it is far from normal. The least true
    value lies above a lower end only where its own does, and below all upper ends unless one of the
    m is wrong (Bonferroni). Each end is that of :func:`within_bounds` on the scale of correlations.

    ``values``, ``errors``, shape (m,): those that are NaN are passed over.
    ``n``, shape (m,): number of samples that tell where an error is 0.
    ``degrees``: as in :func:`wilson`.
    ``many``: number of correlations in all, where those given are the ones that may be the least.
    """
    usable = np.isfinite(values) & np.isfinite(errors) & (n > 0)
    if not usable.any():
        return None
    r = np.clip(values[usable], -1.0, 1.0)
    error = errors[usable]
    n = n[usable]
    error = np.where((error <= ROUNDING) & (np.abs(r) >= 1 - ROUNDING), 0.0, error)
    is_near_end = np.minimum(1 + r, 1 - r) < np.minimum(NEAR * error, 2 * EDGE)
    share = (r + 1) / 2
    simultaneous = 1 - (1 - confidence_level) / (many or len(r))
    least = []
    for level, side in ((confidence_level, -1), (simultaneous, 1)):
        z = normal_quantile(level, degrees)
        with np.errstate(all="ignore"):
            on_atanh = np.tanh(np.arctanh(r) + side * z * error / (1 - r**2))
            size = share * (1 - share) * (2 / error) ** 2
            low, high = wilson_ends(share, size, z)
        by_wilson = 2 * (low if side < 0 else high) - 1
        without_error = r + 2 * side * z * z / (n + z * z)
        ends = np.where(error == 0, without_error, np.where(is_near_end, by_wilson, on_atanh))
        least.append(float(np.clip(ends, -1.0, 1.0).min()))
    value = float(r.min())
    return min(least[0], value), max(least[1], value)


def newcombe(
    area: float, positives: float, negatives: float, confidence_level: float = 0.95
) -> Interval | None:
    """Return the interval of an area under a ROC curve from two sizes: Newcombe (2006), method 5.

    The values whose own variance, by Hanley and McNeil (1982) with the mean of both sizes in it,
    makes the area no surprise. It is defined for an area of 0 or 1 too.
    """
    if not (positives > 0 and negatives > 0) or math.isnan(area):
        return None
    z = normal_quantile(confidence_level)
    # Hanley and McNeil have the number of each side, less one; Newcombe takes their mean for both.
    others = max((positives + negatives) / 2 - 1, 0.0)

    def is_excluded(lower: float, area: float) -> bool:
        pairs = others * ((1 - lower) / (2 - lower) + lower / (1 + lower))
        variance = lower * (1 - lower) * (1 + pairs) / (positives * negatives)
        return bool((area - lower) ** 2 > z * z * variance)

    def lower_end(area: float) -> float:
        # 60 halvings of a range of 1 leave less than rounding.
        low = 0.0
        high = area
        for _ in range(60):
            middle = (low + high) / 2
            if is_excluded(middle, area):
                low = middle
            else:
                high = middle
        return low

    return lower_end(area), 1 - lower_end(1 - area)


def tango(only_first: Any, only_second: Any, n: Any, quantile: Any) -> FloatArray:
    """Return the upper end of Tango's score interval of a difference of two paired shares.

    The interval holds the differences δ with ``|b - c - nδ| <= quantile * sqrt(n (2q + δ (1 -
    δ)))``, q the share of c under δ by maximum likelihood. It lies in [-1, 1] and has a width where
    no rows differ. Its lower end is minus the upper one of the other difference: ``-tango(c, b, n,
    quantile)``.

    ``only_first``, ``only_second``, ``n``, ``quantile``: rows that only the first (b) and only the
        second (c) gets right, all rows, and the normal quantile. Counts may be effective ones.

    References
    ----------
    Tango, T. (1998). Equivalence test and confidence interval for the difference in proportions for
    the paired-sample design. Statistics in Medicine 17, 891-908.
    """
    numbers = [np.asarray(x, dtype=np.float64) for x in (only_first, only_second, n, quantile)]
    b, c, n, k = np.broadcast_arrays(*numbers)
    low = np.asarray((b - c) / n)
    high = np.ones(b.shape)
    # 45 halvings of a range of at most 2 leave 6e-14, which is rounding of what is divided by n.
    for _ in range(45):
        delta = (low + high) / 2
        middle = (2 * n - b + c) * delta - b - c
        root = np.sqrt(np.maximum(middle**2 + 8 * n * c * delta * (1 - delta), 0.0))
        variance = n * ((root - middle) / (2 * n) + delta * (1 - delta))
        is_inside = n * delta - b + c <= k * np.sqrt(np.maximum(variance, 0.0))
        low = np.where(is_inside, delta, low)
        high = np.where(is_inside, high, delta)
    return low
