"""Standard errors of the metrics of one score, from class-wise moments up to the fourth.

The influence of a sample on each of these metrics is a quadratic in its score, with coefficients that depend on its
class. So the moments give the variance exactly, and rows give the influence values by the same coefficients.
"""

from __future__ import annotations

import math

import numpy as np

from cmtrack.metrics.spcc import bias, separation_indices, spcc
from cmtrack.statistics import ScoreMoments
from cmtrack.statistics.inputs import FloatArray, IntArray


def coefficients(name: str, moments: ScoreMoments, squares: ScoreMoments | None = None) -> FloatArray:
    """Influence of a sample of each class, of (1, d, d^2), d its score less the class's mean.

    Parameters
    ----------
    name : str
        "spcc", "d_a", "d_e", "actual", "expected", "bias", "expected_count" or "expected_count_sd_labels_only".
    moments : ScoreMoments of shape (2, 1)
        Negatives, positives.
    squares : ScoreMoments, optional
        With squared weights, where weights are fractions.

    Returns
    -------
    ndarray of shape (2, 3)
        NaN where the metric is undefined.
    """
    n = float(moments.n.sum())
    share = moments.n / n
    mean = moments.mean[:, 0]
    label = np.array([0.0, 1.0])
    if name == "spcc":
        return _correlation(moments)
    if name in ("d_a", "d_e"):
        return _separation(name, moments, squares)
    if name == "actual":
        return np.column_stack((label - share[1], np.zeros(2), np.zeros(2)))
    if name in ("expected", "expected_count", "bias"):
        scale = n if name == "expected_count" else 1.0
        value = bias(moments) if name == "bias" else float(share @ mean)
        own = mean - label if name == "bias" else mean
        return scale * np.column_stack((own - value, np.ones(2), np.zeros(2)))
    if name == "expected_count_sd_labels_only":
        spread = mean * (1 - mean) - moments.m2[:, 0] / np.where(moments.n > 0, moments.n, 1)
        total = float(moments.n @ spread)
        if not total > 0:
            return np.full((2, 3), math.nan)
        centred = mean * (1 - mean) - total / n
        return n / (2 * math.sqrt(total)) * np.column_stack((centred, 1 - 2 * mean, -np.ones(2)))
    raise KeyError(f"no score metric is called {name!r}")


def standard_error(name: str, moments: ScoreMoments, squares: ScoreMoments | None = None) -> float:
    """Standard error of a metric of :func:`coefficients`; NaN where it is undefined."""
    source = moments if squares is None else squares
    total = 0.0
    for k, (a, b, c) in enumerate(coefficients(name, moments, squares)):
        n = float(source.n[k])
        if n == 0:
            continue
        m2, m3, m4 = (float(getattr(source, field)[k, 0]) for field in ("m2", "m3", "m4"))
        e = float(source.mean[k, 0] - moments.mean[k, 0])  # squared weights have a mean of their own
        m4 += 4 * e * m3 + 6 * e * e * m2 + n * e**4
        m3 += 3 * e * m2 + n * e**3
        m2 += n * e * e
        total += a * a * n + 2 * a * b * n * e + (b * b + 2 * a * c) * m2 + 2 * b * c * m3 + c * c * m4
    return math.sqrt(max(total, 0.0)) / float(moments.n.sum()) if not math.isnan(total) else math.nan


def row_influence(
    name: str, moments: ScoreMoments, positive: IntArray, score: FloatArray, squares: ScoreMoments | None = None
) -> FloatArray:
    """Influence values of rows (n,): ``positive`` is 1 or 0."""
    a, b, c = coefficients(name, moments, squares).T
    deviation = score - moments.mean[positive, 0]
    psi: FloatArray = a[positive] + b[positive] * deviation + c[positive] * deviation**2
    return psi


def _correlation(moments: ScoreMoments) -> FloatArray:
    """psi = z_y z_s - r/2 (z_y^2 + z_s^2); the textbook 1/sqrt(n-3) is invalid for a two-class label."""
    r = spcc(moments)
    if math.isnan(r):
        return np.full((2, 3), math.nan)
    n = float(moments.n.sum())
    share = float(moments.n[1]) / n
    mean = moments.mean[:, 0]
    pooled = moments.pooled()
    centre, variance = float(pooled.mean[0, 0]), float(pooled.m2[0, 0]) / n
    sd, z, offset = math.sqrt(variance), np.array([-share, 1 - share]), mean - centre
    z = z / math.sqrt(share * (1 - share))
    constant = z * offset / sd - r / 2 * (z * z + offset * offset / variance)
    return np.column_stack((constant, z / sd - r * offset / variance, np.full(2, -r / (2 * variance))))


def _separation(name: str, moments: ScoreMoments, squares: ScoreMoments | None) -> FloatArray:
    if math.isnan(separation_indices(moments, squares)[0]):
        return np.full((2, 3), math.nan)
    n = moments.n.astype(np.float64)
    size = n if squares is None else n**2 / squares.n
    inflation = size / (size - 1)
    variance = moments.m2[:, 0] / n * inflation
    mean = moments.mean[:, 0]
    gap, sign = abs(mean[1] - mean[0]), math.copysign(1.0, mean[1] - mean[0])
    if name == "d_a":
        middle = variance.sum() / 2
        of_gap, of_variance = 1 / math.sqrt(middle), np.full(2, -gap / (4 * middle**1.5))
    else:
        sds = np.sqrt(variance)
        total = sds.sum()
        of_gap = 2 / total
        of_variance = -2 * gap / total**2 / (2 * np.where(sds > 0, sds, math.inf))
    weight = n.sum() / n  # a class's mean and variance answer to its own samples only
    linear = of_gap * sign * np.array([-1.0, 1.0]) * weight
    return np.column_stack((-of_variance * variance * weight, linear, of_variance * inflation * weight))
