"""Interval scales: how a value and its standard error become an interval that stays within its range."""

from __future__ import annotations

import math
from typing import TypeAlias

from scipy.special import expit, ndtri

Interval: TypeAlias = tuple[float, float]


def normal_quantile(confidence_level: float) -> float:
    """Two-sided standard normal quantile; 1.959963984540054 at 0.95."""
    return float(ndtri(0.5 + confidence_level / 2))


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
    z = normal_quantile(confidence_level)
    centre = share + z * z / (2 * n)
    reach = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if share == 0 else max(0.0, (centre - reach) / scale)
    high = 1.0 if share == 1 else min(1.0, (centre + reach) / scale)
    return low, high


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
    z = normal_quantile(confidence_level)
    if scale == "atanh":
        if abs(value) >= 1 or standard_error == 0:
            return None
        centre, reach = math.atanh(value), z * standard_error / (1 - value * value)
        return math.tanh(centre - reach), math.tanh(centre + reach)
    if scale == "logit":
        if not 0 < value < 1 or standard_error == 0:
            return None
        centre, reach = math.log(value / (1 - value)), z * standard_error / (value * (1 - value))
        return float(expit(centre - reach)), float(expit(centre + reach))
    if scale != "wald":
        raise ValueError(f"scale must be 'atanh', 'logit' or 'wald', got {scale!r}")
    if standard_error == 0:
        return None  # a share of exactly 0 or 1 is not known without error
    return max(float(bounds[0]), value - z * standard_error), min(float(bounds[1]), value + z * standard_error)
