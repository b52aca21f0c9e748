"""Intervals that are within the range of a metric, of ratios, and of several numbers at once."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, expit, ndtri, stdtrit

from cmtrack.digits import Interval as Interval
from cmtrack.statistics.inputs import FloatArray

ROUNDING = 1e-13
"""Largest expected rounding error, as a fraction of the metric's range. The rounding error of a
ratio of sums is about 2**-52.
"""
_LONGEST = 700.0
"""Largest half-width of an interval on the log scale. If the half-width is larger, there is no
interval, because exp would overflow.
"""
_FEWEST = 1e-30
"""Smallest effective number of rows for which a share has an interval."""
NEAR = 5.0
"""Number of standard errors. If a value is closer than this to an end of its range, its standard
error is determined by few rows.

A share is within five standard errors of 0 or 1 if fewer than 25 rows have the rarer outcome.
"""
FEW_ROWS = 20
"""Number of rows below which the intervals of a class or group are approximate."""
EDGE = 0.1
"""Fraction of the range. Wilson's interval may be used for a value that is closer than this to an
end of its range.
"""


def check_level(confidence_level: float) -> float:
    """Check that a confidence level is a number between 0 and 1, and return it."""
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must be between 0 and 1, got {confidence_level!r}")
    return float(confidence_level)


def normal_quantile(confidence_level: float, degrees: float = math.inf) -> float:
    """Return the two-sided standard normal quantile, or Student's quantile for finite ``degrees``.

    For the confidence level 0.95, the normal quantile is 1.959963984540054.
    """
    share = 0.5 + confidence_level / 2
    return float(ndtri(share) if math.isinf(degrees) else stdtrit(degrees, share))


POWER = 0.8
"""Probability with which a planned number of rows detects a difference."""


def further_rows(rows: float, error: float, distance: float, quantile: float) -> float:
    """Return the number of additional rows that would show a distance with 80% power.

    This is ``n ((z + z_.8) s / distance)^2 - n``, rounded up and at least 0, if the observed
    distance is the true distance. The number is NaN if the distance or the standard error is 0 or
    unknown.

    ``rows``, ``error``: the present number n of rows, and the standard error s on these rows.
    ``quantile``: the two-sided normal quantile z that the distance must reach.
    """
    if not (distance > 0 and error > 0):
        return math.nan
    needed = rows * ((quantile + float(ndtri(POWER))) * error / distance) ** 2
    return float(np.ceil(max(needed - rows, 0.0)))


def holm(pvalues: npt.ArrayLike) -> FloatArray:
    """Adjust p-values for the number of tests, with the method of Holm.

    The source is Holm (1979), Scandinavian Journal of Statistics 6, 65-70. A p-value of NaN stays
    NaN and does not count as a test. statsmodels also provides this adjustment, but runs the
    garbage collector at each call, which takes longer than the adjustment itself.
    """
    values = np.asarray(pvalues, dtype=np.float64)
    # Sorting moves NaN to the end, where it stays.
    order = np.argsort(values, axis=None, kind="stable")
    n_tests = int((~np.isnan(values)).sum())
    factors = np.maximum(n_tests - np.arange(values.size), 1)
    adjusted = np.empty(values.size)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * values.ravel()[order]))
    return adjusted.reshape(values.shape)


def settled(value: float, low: float, high: float) -> float:
    """Replace a value by 0 or an end of its range if it differs only because of rounding.

    For perfect predictions, the computed correlation is 0.9999999999999998, and for constant
    predictions, the computed kappa is 1e-16. If these values were not rounded, their intervals
    would be single points that do not contain 1 and 0. The rounding error of a ratio of sums is
    about ``2**-52`` of the range. With fewer than 10^13 rows, no metric comes this close to an end
    of its range unless it is exactly at the end.

    ``low``, ``high``: the ends of the metric's range. An infinite end is ignored. A value beyond an
        end is also replaced by the end.
    """
    if not math.isfinite(value):
        return value
    for end in (low, high):
        is_near = math.isfinite(end) and abs(value - end) <= ROUNDING * max(1.0, abs(end))
        # A small loss is a real value, not 0 with a rounding error.
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
    ``n``: the denominator of the proportion. It is a number of rows, or an effective number if rows
        have weights.
    ``degrees``: degrees of freedom of the standard error if it was estimated from few clusters.

    The result is (low, high), or None if the proportion is undefined.
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
    """Return the low and high limits of Wilson's interval, for numbers or arrays.

    The limits are the two roots of ``(share - x)^2 = z^2 x (1 - x) / n``.
    """
    centre = share + z * z / (2 * n)
    reach = z * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    scale = 1 + z * z / n
    return (centre - reach) / scale, (centre + reach) / scale


def exact_ends(hits: Any, n: Any, confidence_level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the low and high limits of the exact interval for the share ``hits`` / ``n``.

    The source is Clopper and Pearson (1934), Biometrika 26. The tails of the binomial distribution
    equal tails of beta distributions, so effective numbers of rows need not be whole numbers. The
    arguments are numbers or arrays. The limits are NaN if n is 0.
    """
    hits = np.asarray(hits, dtype=np.float64)
    n = np.asarray(n, dtype=np.float64)
    tail = (1 - confidence_level) / 2
    with np.errstate(all="ignore"):
        low = np.where(hits > 0, betaincinv(hits, n - hits + 1, tail), 0.0)
        high = np.where(hits < n, betaincinv(hits + 1, n - hits, 1 - tail), 1.0)
    return np.where(n > 0, low, math.nan), np.where(n > 0, high, math.nan)


def size_of_share(share: Any, error: Any, units: Any, kish: Any = math.inf) -> Any:
    """Return the effective size of a share: share (1 - share) / error^2, but at most Kish's size.

    If few rows are errors, the standard error depends on the weights of these few rows. A single
    error with a small weight would make the interval narrower than the interval without any error.
    Kish's size, (sum of w)^2 / sum of w^2, uses the weights of all rows in the denominator. Kish's
    size is too large only if errors have larger weights than the other rows. In this case, the size
    that is computed from the standard error is smaller. It is therefore safe to use the smaller of
    the two sizes.

    Parameters
    ----------
    share, error : float or ndarray
    units : float or ndarray
        The effective size if the share is 0 or 1, or if the standard error is undefined. It is the
        number of rows, the number of clusters, or Kish's size.
    kish : float or ndarray
        Kish's size (1965, Survey Sampling, section 11.7) of the rows in the denominator; infinite
        if rows have no sampling weights.
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
    """Return an interval that is symmetric on a scale and limited to the metric's range.

    Parameters
    ----------
    scale : "atanh", "logit", "log" or "wald"
        "atanh" is for correlations and "logit" for areas under a curve. "log" is for losses, and
        for skills, whose range has only an upper end. "wald" is for all other metrics.

    Returns
    -------
    (low, high), or None if the value or the standard error is undefined. The result is also None if
    the scale is infinite at the value: a correlation of exactly 1, for example, has no interval on
    the atanh scale.
    """
    if not (math.isfinite(value) and math.isfinite(standard_error)):
        return None
    own_bounds = (float(bounds[0]), float(bounds[1]))
    ranges = {"atanh": (-1.0, 1.0), "logit": (0.0, 1.0), "log": own_bounds, "wald": own_bounds}
    if scale not in ranges:
        raise ValueError(f"scale must be 'atanh', 'logit', 'log' or 'wald', got {scale!r}")
    lowest, highest = ranges[scale]
    value = settled(value, lowest, highest)
    # A share of exactly 0 or 1 is still uncertain, although its standard error is 0.
    smallest = ROUNDING if value in (lowest, 0.0, highest) else 0.0
    if standard_error <= smallest:
        return None
    reach = normal_quantile(confidence_level, degrees) * standard_error
    if scale == "wald":
        return max(lowest, value - reach), min(highest, value + reach)
    if scale == "log":
        if math.isinf(lowest) and math.isfinite(highest):
            # A skill is 1 minus a ratio of losses.
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
    """Return an interval that is symmetric on the log scale, or None if the loss is 0."""
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
    """Return the interval of a metric: Wilson's near an end of the range, else on its scale.

    A value is near an end if its distance from the end is less than :data:`NEAR` standard errors
    and less than the fraction :data:`EDGE` of the range. Near an end, the standard error is
    determined by few rows, and the estimate is not normal on any scale. The value is then mapped to
    a number x from 0 to 1, and its interval is the interval for the share x of x (1 - x) / error^2
    rows. If the standard error is 0, Wilson's interval for 0 of n rows allows a share of at most
    z^2 / (n + z^2) for kinds of rows that were not observed. Such rows may change the value by its
    whole range.

    ``scale``: "atanh", "logit", "log" or "wald".
    ``bounds``, (low, high): the metric's range. If an end is infinite, the interval is always
        computed on the scale.
    ``n``, float, or ndarray of shape (2,): number of informative rows if the standard error is 0.
        An area under a curve has two numbers, one for the positives and one for the negatives. Near
        an end of the range, the interval for an area is wide enough to contain both Wilson's and
        Newcombe's interval.
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
    # The high end is set to the exact end of the range, because the sum would have a rounding
    # error.
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
    """Return an interval for the smallest of m correlations.

    The interval is [lowest lower end, lowest simultaneous upper end]. The smallest estimate is
    biased downward, and it is far from normal if several true values are similar. The smallest true
    value can be below the lowest lower end only if the interval for this correlation does not
    contain it. It is below all upper ends unless one of the m upper ends is too low (Bonferroni).
    Each end comes from :func:`within_bounds` on the scale of correlations.

    ``values``, ``errors``, shape (m,): NaN is ignored.
    ``n``, shape (m,): number of informative rows, which is used if a standard error is 0.
    ``degrees``: see :func:`wilson`.
    ``many``: number of all correlations. This number is needed if ``values`` contains only the
        correlations that may be the smallest.
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
    """Return the interval for an area under a ROC curve with method 5 of Newcombe (2006).

    The interval contains all areas that are compatible with the estimate. The variance of each area
    follows from a formula of Hanley and McNeil (1982), which uses the mean of the two sample sizes.
    An area of 0 or 1 also has an interval.
    """
    if not (positives > 0 and negatives > 0) or math.isnan(area):
        return None
    z = normal_quantile(confidence_level)
    # Hanley and McNeil use the size of each side minus one. Newcombe uses the mean of the sizes for
    # both sides.
    others = max((positives + negatives) / 2 - 1, 0.0)

    def is_excluded(lower: float, area: float) -> bool:
        pairs = others * ((1 - lower) / (2 - lower) + lower / (1 + lower))
        variance = lower * (1 - lower) * (1 + pairs) / (positives * negatives)
        return bool((area - lower) ** 2 > z * z * variance)

    def lower_end(area: float) -> float:
        # After 60 halvings of a range of 1, the remaining error is smaller than the rounding error.
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
    """Return the upper end of Tango's score interval for the difference between two paired shares.

    The interval contains the differences δ with ``|b - c - nδ| <= quantile * sqrt(n (2q + δ (1 -
    δ)))``. Here q is the maximum-likelihood estimate of the share of rows that c counts, if the
    difference is δ. The interval is within [-1, 1], and its width is above 0 even if the
    predictions are equal in all rows. The lower end is ``-tango(c, b, n, quantile)``.

    ``only_first``: b, the number of rows for which only the first prediction is correct.
    ``only_second``: c, the number of rows for which only the second prediction is correct. Both
        numbers may be effective numbers of rows.
    ``n``: number of rows.
    ``quantile``: the normal quantile.

    References
    ----------
    Tango, T. (1998). Equivalence test and confidence interval for the difference in proportions for
    the paired-sample design. Statistics in Medicine 17, 891-908.
    """
    numbers = [np.asarray(x, dtype=np.float64) for x in (only_first, only_second, n, quantile)]
    b, c, n, k = np.broadcast_arrays(*numbers)
    low = np.asarray((b - c) / n)
    high = np.ones(b.shape)
    # After 45 halvings of a range of at most 2, the remaining error is 6e-14, which is as small as
    # a rounding error.
    for _ in range(45):
        delta = (low + high) / 2
        middle = (2 * n - b + c) * delta - b - c
        root = np.sqrt(np.maximum(middle**2 + 8 * n * c * delta * (1 - delta), 0.0))
        variance = n * ((root - middle) / (2 * n) + delta * (1 - delta))
        is_inside = n * delta - b + c <= k * np.sqrt(np.maximum(variance, 0.0))
        low = np.where(is_inside, delta, low)
        high = np.where(is_inside, high, delta)
    return low


def simultaneous_level(n: int, confidence_level: float = 0.95) -> float:
    """Return the level at which each of n intervals must be computed to hold simultaneously.

    The level is the n-th root of the simultaneous level (Šidák 1967). For disjoint segments, the
    simultaneous level is exact. For overlapping segments, the simultaneous level is valid if the
    errors are normally distributed.

    Raises
    ------
    ValueError
        If n is not positive, or if the level is not between 0 and 1.

    Examples
    --------
    >>> from cmtrack.segments import simultaneous_level
    >>> round(simultaneous_level(10), 4)
    0.9949
    """
    if n < 1:
        raise ValueError(f"n, the number of intervals, must be at least 1, got {n!r}")
    return float(check_level(confidence_level) ** (1 / n))


def fieller(
    x: float, y: float, variances: tuple[float, float, float], z: float
) -> tuple[Interval, ...]:
    """Return the ratios r > 0 with (x + r y)^2 <= z^2 (V_x + 2 r V_xy + r^2 V_y), as ranges.

    The source is Fieller (1954), J. R. Statist. Soc. B 16, 175-185. The ranges are in
    ascending order. ``z`` is the two-sided normal quantile.
    """
    v_x, v_xy, v_y = variances
    # The condition is a r^2 + 2 b r + c <= 0.
    a = y * y - z * z * v_y
    b = x * y - z * z * v_xy
    c = x * x - z * z * v_x
    edges = [0.0, *(root for root in _roots(a, b, c) if root > 0), math.inf]
    pieces: list[Interval] = []
    for low, high in pairwise(edges):
        ratio = inside(low, high)
        if (a * ratio + 2 * b) * ratio + c <= 0:
            pieces.append((low, high))
    return tuple(pieces)


def _roots(a: float, b: float, c: float) -> list[float]:
    """Return the real roots of a r^2 + 2 b r + c, in ascending order."""
    discriminant = b * b - a * c
    if a == 0:
        return [] if b == 0 else [-c / (2 * b)]
    if discriminant < 0:
        return []
    # Both terms of the sum have the same sign. Subtracting nearly equal numbers would lose digits.
    q = -(b + math.copysign(math.sqrt(discriminant), b))
    roots = {q / a}
    if q:
        roots.add(c / q)
    return sorted(roots)


def inside(low: float, high: float) -> float:
    """Return an example of a ratio between two limits; the upper limit may be infinite."""
    return low + 1 if math.isinf(high) else (low + high) / 2
