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
_LONGEST = 700.0
"""Half-width on the log scale beyond which the back-transform overflows, so that there is no
interval.
"""
_FEWEST = 1e-30
"""Effective samples, fewer of which tell nothing of a share."""
NEAR, EDGE = 5.0, 0.1
"""Standard errors, and share of its range, from an end of it within which a value's error rests on few
samples.

Of a share, five standard errors are fewer than 25 samples.
"""


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
    tested = ~np.isnan(values)
    size, given = int(tested.sum()), values[tested]
    order = np.argsort(given, kind="stable")
    stepped = np.maximum.accumulate((size - np.arange(size)) * given[order])
    adjusted, ordered = np.full(values.shape, math.nan), np.empty(size)
    ordered[order] = np.minimum(1.0, stepped)
    adjusted[tested] = ordered
    return adjusted


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
        if (
            math.isfinite(end)
            and abs(value - end) <= ROUNDING * max(1.0, abs(end))
            and (end or low < 0)
        ):
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
    hits, n = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
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
    given = (float(bounds[0]), float(bounds[1]))
    ranges = {"atanh": (-1.0, 1.0), "logit": (0.0, 1.0), "log": given, "wald": given}
    if scale not in ranges:
        raise ValueError(f"scale must be 'atanh', 'logit', 'log' or 'wald', got {scale!r}")
    lowest, highest = ranges[scale]
    value = settled(value, lowest, highest)
    if standard_error <= (ROUNDING if value in (lowest, 0.0, highest) else 0.0):
        return None  # a share of exactly 0 or 1 is not known without error
    reach = normal_quantile(confidence_level, degrees) * standard_error
    if scale == "wald":
        return max(lowest, value - reach), min(highest, value + reach)
    # a skill: 1 less a ratio of losses
    if scale == "log" and math.isinf(lowest) and math.isfinite(highest):
        ends = on_scale(
            "log", highest - value, standard_error, confidence_level, (0.0, math.inf), degrees
        )
        return None if ends is None else (highest - ends[1], highest - ends[0])
    if scale == "log":
        if not value > 0 or reach / value > _LONGEST:
            return None
        return value * math.exp(-reach / value), min(highest, value * math.exp(reach / value))
    if value in (lowest, highest):
        return None
    if scale == "atanh":
        centre, reach = math.atanh(value), reach / (1 - value * value)
        low, high = math.tanh(centre - reach), math.tanh(centre + reach)
    else:
        centre, reach = math.log(value / (1 - value)), reach / (value * (1 - value))
        low, high = float(expit(centre - reach)), float(expit(centre + reach))
    return min(low, value), max(high, value)


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
    if scale == "log" or not (
        math.isfinite(span) and math.isfinite(value) and math.isfinite(standard_error)
    ):
        return on_scale(scale, value, standard_error, confidence_level, bounds, degrees)
    if standard_error > 0 and min(value - low, high - value) >= min(
        NEAR * standard_error, EDGE * span
    ):
        return on_scale(scale, value, standard_error, confidence_level, bounds, degrees)
    candidates = []
    share = (value - low) / span
    if 0 < share < 1 and standard_error > 0:
        candidates.append(
            wilson(
                share, share * (1 - share) * (span / standard_error) ** 2, confidence_level, degrees
            )
        )
    if isinstance(n, np.ndarray):
        candidates.append(newcombe(share, float(n[0]), float(n[1]), confidence_level))
    elif n is not None and n > 0 and not candidates:
        reach = normal_quantile(confidence_level) ** 2
        reach /= n + reach
        candidates.append((max(0.0, share - reach), min(1.0, share + reach)))
    intervals = [ends for ends in candidates if ends is not None]
    if not intervals:
        return None
    first, last = min(ends[0] for ends in intervals), max(ends[1] for ends in intervals)
    return min(value, low + span * first), max(value, high if last == 1 else low + span * last)


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
    r, error, n = np.clip(values[usable], -1.0, 1.0), errors[usable], n[usable]
    error = np.where((error <= ROUNDING) & (np.abs(r) >= 1 - ROUNDING), 0.0, error)
    edge = np.minimum(1 + r, 1 - r) < np.minimum(NEAR * error, 2 * EDGE)
    share, least = (r + 1) / 2, []
    for k, level in enumerate((confidence_level, 1 - (1 - confidence_level) / (many or len(r)))):
        z = normal_quantile(level, degrees)
        with np.errstate(all="ignore"):
            middle = np.tanh(np.arctanh(r) + (2 * k - 1) * z * error / (1 - r**2))
            near = 2 * wilson_ends(share, share * (1 - share) * (2 / error) ** 2, z)[k] - 1
        alone = r + 2 * (2 * k - 1) * z * z / (n + z * z)
        ends = np.where(error == 0, alone, np.where(edge, near, middle))
        least.append(float(np.clip(ends, -1.0, 1.0).min()))
    return min(least[0], float(r.min())), max(least[1], float(r.min()))


def newcombe(
    area: float, positives: float, negatives: float, confidence_level: float = 0.95
) -> Interval | None:
    """Return the interval of an area under a ROC curve from two sizes: Newcombe (2006), method 5.

    The values whose own variance, by Hanley and McNeil (1982) with the mean of both sizes in it,
    makes the area no surprise. It is defined for an area of 0 or 1 too.
    """
    if not (positives > 0 and negatives > 0) or math.isnan(area):
        return None
    z, more = normal_quantile(confidence_level), max((positives + negatives) / 2 - 1, 0.0)

    def lower(area: float) -> float:
        near, far = 0.0, area
        for _ in range(60):
            a = (near + far) / 2
            variance = (
                a
                * (1 - a)
                * (1 + more * ((1 - a) / (2 - a) + a / (1 + a)))
                / (positives * negatives)
            )
            near, far = (a, far) if (area - a) ** 2 > z * z * variance else (near, a)
        return near

    return lower(area), 1 - lower(1 - area)


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
    b, c, n, k = np.broadcast_arrays(
        *(np.asarray(x, dtype=np.float64) for x in (only_first, only_second, n, quantile))
    )
    near, far = np.asarray((b - c) / n), np.ones(b.shape)
    for _ in range(45):
        delta = (near + far) / 2
        middle = (2 * n - b + c) * delta - b - c
        root = np.sqrt(np.maximum(middle**2 + 8 * n * c * delta * (1 - delta), 0.0))
        variance = n * ((root - middle) / (2 * n) + delta * (1 - delta))
        inside = n * delta - b + c <= k * np.sqrt(np.maximum(variance, 0.0))
        near, far = np.where(inside, delta, near), np.where(inside, far, delta)
    return near
