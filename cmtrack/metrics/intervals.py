"""Interval scales: how a value and its standard error become an interval that stays within its range."""

from __future__ import annotations

import math
from typing import TypeAlias

from scipy.special import expit, ndtri

Interval: TypeAlias = tuple[float, float]
ROUNDING = 1e-13


def normal_quantile(confidence_level: float) -> float:
    """Two-sided standard normal quantile; 1.959963984540054 at 0.95."""
    return float(ndtri(0.5 + confidence_level / 2))


def settled(value: float, low: float, high: float) -> float:
    """A value that lies within rounding of an end of its range, or of the 0 inside it, put there.

    A perfect prediction's correlation computes as 0.9999999999999998, a constant one's kappa as 1e-16; as they stand,
    their intervals would be points that leave out 1 and 0. Ratios of sums are exact to some ``2**-52`` of the range,
    and no metric of fewer than 10^13 samples comes as near to an end without being there.

    Parameters
    ----------
    value : float
    low, high : float
        The range of the metric; infinite ends are none. A value beyond an end is put there too.
    """
    if not math.isfinite(value):
        return value
    for end in (low, high):
        if math.isfinite(end) and abs(value - end) <= ROUNDING * max(1.0, abs(end)) and (end or low < 0):
            return float(end)
    if low < 0 < high and abs(value) <= ROUNDING:
        return 0.0
    return min(max(value, low), high)


def wilson(share: float, n: float, confidence_level: float = 0.95) -> Interval | None:
    """Wilson interval of a proportion.

    Parameters
    ----------
    share : float
        The proportion.
    n : float
        Its denominator: a count, or an effective count where samples are weighted.

    Returns
    -------
    (low, high), or None where the proportion is undefined.
    """
    if not n > 0 or math.isnan(share):
        return None
    share = settled(share, 0.0, 1.0)
    z = normal_quantile(confidence_level)
    centre = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if share == 0 else max(0.0, (centre - reach) / scale)
    high = 1.0 if share == 1 else min(1.0, (centre + reach) / scale)
    return min(low, share), max(high, share)


def on_scale(
    scale: str,
    value: float,
    standard_error: float,
    confidence_level: float = 0.95,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Interval | None:
    """An interval that is symmetric on a scale and clipped to the metric's bounds.

    Parameters
    ----------
    scale : "atanh", "logit" or "wald"
        Correlations, areas under a curve, everything else.

    Returns
    -------
    (low, high), or None where value or error is undefined or the scale ends at the value (a correlation of
    exactly 1 has no interval on the atanh scale).
    """
    if not (math.isfinite(value) and math.isfinite(standard_error)):
        return None
    ends = {"atanh": (-1.0, 1.0), "logit": (0.0, 1.0), "wald": (float(bounds[0]), float(bounds[1]))}
    if scale not in ends:
        raise ValueError(f"scale must be 'atanh', 'logit' or 'wald', got {scale!r}")
    lowest, highest = ends[scale]
    value = settled(value, lowest, highest)
    if standard_error <= (ROUNDING if value in (lowest, 0.0, highest) else 0.0):
        return None  # a share of exactly 0 or 1 is not known without error
    reach = normal_quantile(confidence_level) * standard_error
    if scale == "wald":
        return max(lowest, value - reach), min(highest, value + reach)
    if value in (lowest, highest):
        return None
    if scale == "atanh":
        centre, reach = math.atanh(value), reach / (1 - value * value)
        low, high = math.tanh(centre - reach), math.tanh(centre + reach)
    else:
        centre, reach = math.log(value / (1 - value)), reach / (value * (1 - value))
        low, high = float(expit(centre - reach)), float(expit(centre + reach))
    return min(low, value), max(high, value)
