"""The error of a Fisher mean of one-vs-rest or one-vs-one correlations, from moments.

The influence of a row on each correlation is a quadratic in one of its scores, with coefficients that depend on the
row's class; so that on the mean is a quadratic in all of them, and its variance follows from joint moments.
Source of the mean: Gubbels (2023), section 1.3.1.
"""

from __future__ import annotations

import math

import numpy as np

from cmtrack.metrics.spcc import fisher_mean, off_diagonal, spcc_ovo
from cmtrack.statistics import ScoreMoments
from cmtrack.statistics.cross_moments import CrossMoments
from cmtrack.statistics.inputs import FloatArray

_CLIP = 1 - 1e-12


def fisher_influence(moments: ScoreMoments, kind: str) -> FloatArray:
    """Coefficients of a row's influence on the Fisher mean, by its class.

    Parameters
    ----------
    moments : ScoreMoments of shape (K, K)
    kind : "ovr" or "ovo"

    Returns
    -------
    ndarray of shape (K, 2K+1)
        Of the features (1, s, s^2) of :func:`cmtrack.statistics.cross_moments.features_of`.
    """
    size = len(moments.n)
    coefficients = np.zeros((size, 2 * size + 1))
    terms = list(_rest_terms(moments) if kind == "ovr" else _pair_terms(moments))
    known = np.array([r for r, *_ in terms])
    if not len(terms):
        return coefficients * math.nan
    mean = fisher_mean(known)
    for r, component, share, centre, variance, scale, members in terms:
        weight = scale * (1 - mean**2) / (len(terms) * (1 - min(r * r, _CLIP)))
        sd = math.sqrt(variance)
        middle = centre - 1 / size  # features are centred
        for positive, classes in ((True, [component]), (False, members)):
            z = (1 - share if positive else -share) / math.sqrt(share * (1 - share))
            constant = -z * middle / sd - r / 2 * (z * z + middle * middle / variance)
            linear = z / sd + r * middle / variance
            coefficients[classes, 0] += weight * constant
            coefficients[classes, 1 + component] += weight * linear
            coefficients[classes, 1 + size + component] += weight * -r / (2 * variance)
    return coefficients


def fisher_standard_error(
    moments: ScoreMoments, cross: CrossMoments, kind: str, squares: CrossMoments | None = None
) -> float:
    """Standard error of the Fisher mean; ``squares`` holds the sums with squared weights."""
    coefficients = fisher_influence(moments, kind)
    source = cross if squares is None else squares
    total = float(np.einsum("ki,kij,kj->", coefficients, source.sums, coefficients))
    return math.sqrt(total) / float(moments.n.sum()) if total >= 0 else math.nan


_Term = tuple[float, int, float, float, float, float, list[int]]


def _rest_terms(moments: ScoreMoments) -> list[_Term]:
    """(r, component, share of positives, mean, variance, scale, the other classes) of each class against the rest."""
    size = len(moments.n)
    return [_term(moments, c, [d for d in range(size) if d != c], 1.0) for c in range(size) if _usable(moments, c)]


def _pair_terms(moments: ScoreMoments) -> list[_Term]:
    matrix = spcc_ovo(moments)
    if np.isnan(off_diagonal(matrix)).all():
        return []
    n, size = moments.n.astype(np.float64), len(moments.n)
    return [
        _term(moments, c, [d], float(n.sum() / (n[c] + n[d])))
        for c in range(size)
        for d in range(size)
        if c != d and not math.isnan(matrix[c, d])
    ]


def _usable(moments: ScoreMoments, c: int) -> bool:
    n = moments.n
    pooled = moments.component(c).pooled()
    return bool(0 < n[c] < n.sum()) and float(pooled.m2[0, 0]) > 0


def _term(moments: ScoreMoments, c: int, others: list[int], scale: float) -> _Term:
    together = moments.select([c, *others]).component(c)
    pooled = together.pooled()
    n = float(pooled.n[0])
    share = float(moments.n[c]) / n
    variance = float(pooled.m2[0, 0]) / n
    gap = float(moments.mean[c, c]) - float(pooled.mean[0, 0])
    r = gap * math.sqrt(share / (1 - share) / variance)
    return r, c, share, float(pooled.mean[0, 0]), variance, scale, others
