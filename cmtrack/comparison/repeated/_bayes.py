"""Probabilities that one model is worse, as good for all practical purposes, or better."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, stdtr

from cmtrack.comparison.repeated._scores import as_differences
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    import pandas as pd


_CELLS = 2_000_000  # weights that are held at a time


@dataclass(frozen=True)
class RopeProbabilities:
    """Probabilities of a difference with respect to the region of practical equivalence, [-rope, rope].

    ``left``, ``inside``, ``right``: they sum to 1; with a rope of zero, inside is 0.
    ``blocks``, ``left_out``: differences used, and those that are NaN.
    ``reason``: why there is NaN; else empty.
    """

    left: float
    inside: float
    right: float
    rope: float
    blocks: int
    left_out: int
    method: str
    reason: str = ""

    def to_frame(self) -> pd.DataFrame:
        """One row."""
        from cmtrack._pandas import pd

        return pd.DataFrame([vars(self)])


def bayesian_signed_rank(
    differences: Any, rope: float, *, n_draws: int = 10_000, seed: int = 0, prior_strength: float = 0.5
) -> RopeProbabilities:
    """Bayesian signed-rank test (Benavoli et al. 2014, ICML; Benavoli, Corani, Demšar and Zaffalon 2017, JMLR 18).

    The data sets and a pseudo-observation at 0 have random weights, from a Dirichlet distribution. Every draw of them
    gives the share of pairs whose mean difference lies left of, inside and right of the rope; a probability is the
    share of draws in which that region has the largest share. Ties between regions are split. A pair on the rope's
    edge counts half on either side.

    ``differences``, of shape (N,): first model less second, one per data set; NaN is left out.
    ``rope``: half the width of the region, in units of the metric.
    ``seed``: the same seed gives the same probabilities.
    ``prior_strength``: weight of the pseudo-observation, that of a data set being 1; 0.5 is what the authors' programs
    take.

    The result: left: the first model is worse. NaN with a reason without any difference.

    ValueError if the rope is negative, the prior strength or the number of draws not positive, or the differences no
    finite vector.
    """
    _check_rope(rope)
    if not 0 < prior_strength < math.inf:
        raise ValueError(f"prior_strength must be positive and finite, got {prior_strength!r}")
    if n_draws < 1:
        raise ValueError(f"n_draws must be at least 1, got {n_draws!r}")
    values, left_out = as_differences(differences)
    n, method = len(values), "Bayesian signed rank"
    if not n:
        return _unknown(rope, (n, left_out), method, "there is no block with a difference")
    points = np.concatenate(([0.0], values))
    sums = points[:, None] + points
    right, left = _beyond(sums, 2 * rope), _beyond(-sums, 2 * rope)
    strengths = np.ones(n + 1)
    strengths[0] = prior_strength
    rng = np.random.default_rng(seed)
    won, done = np.zeros(3), 0
    while done < n_draws:
        draws = min(n_draws - done, max(1, _CELLS // (n + 1)))
        weights = rng.dirichlet(strengths, draws)
        shares = np.empty((draws, 3))
        shares[:, 0] = ((weights @ left) * weights).sum(axis=1)
        shares[:, 2] = ((weights @ right) * weights).sum(axis=1)
        shares[:, 1] = 1 - shares[:, 0] - shares[:, 2]
        largest = shares >= shares.max(axis=1, keepdims=True) - 1e-12
        won += (largest / largest.sum(axis=1, keepdims=True)).sum(axis=0)
        done += draws
    worse, same, better = (float(v) for v in won / n_draws)
    return RopeProbabilities(worse, same, better, float(rope), n, left_out, method)


def bayesian_correlated_t(differences: Any, rope: float, correlation: float) -> RopeProbabilities:
    """Bayesian correlated t-test of folds (Corani and Benavoli 2015, Machine Learning 100, 285-304).

    The posterior of the mean difference is Student's, with J - 1 degrees of freedom, and s² · (1/J + ρ/(1 - ρ)) for
    its squared scale.

    ``differences``, of shape (J,): first model less second in each fold; NaN is left out.
    ``rope``: half the width of the region, in units of the metric.
    ``correlation``: of two folds' differences, ρ: n_test / (n_test + n_train), so 1/K in K-fold cross-validation. The
    factor is then that of `corrected_resampled_t`.

    The result: left: the first model is worse. NaN with a reason for fewer than two differences.

    ValueError if the rope is negative, the correlation not in [0, 1), or the differences no finite vector.
    """
    if not 0 <= correlation < 1:
        raise ValueError(f"correlation must be at least 0 and less than 1, got {correlation!r}")
    values, left_out = as_differences(differences)
    n, method = len(values), "Bayesian correlated t"
    if n < 2:
        _check_rope(rope)
        return _unknown(rope, (n, left_out), method, f"a variance needs two differences, there are {n}")
    scale = math.sqrt(float(values.var(ddof=1)) * (1 / n + correlation / (1 - correlation)))
    return student_regions(float(values.mean()), scale, n - 1.0, rope, (n, left_out), method)


def student_regions(
    mean: float, scale: float, df: float, rope: float, blocks: tuple[int, int], method: str, reason: str = ""
) -> RopeProbabilities:
    """Regions of a Student posterior; a scale of zero is a point, NaN gives NaN with the reason."""
    _check_rope(rope)
    if math.isnan(mean) or math.isnan(scale):
        return _unknown(rope, blocks, method, reason)
    if scale == 0:
        half = 0.5 if rope == 0 == mean else 0.0
        left, right = half + (mean < -rope), half + (mean > rope)
    else:
        low, high = (-rope - mean) / scale, (mean - rope) / scale
        left, right = (float(ndtr(v) if math.isinf(df) else stdtr(df, v)) for v in (low, high))
    return RopeProbabilities(left, max(0.0, 1 - left - right), right, float(rope), *blocks, method)


def _beyond(sums: FloatArray, edge: float) -> FloatArray:
    """1 beyond the edge, one half on it, else 0."""
    close = 1e-12 * max(float(np.abs(sums).max()), edge)
    beyond: FloatArray = np.where(sums > edge + close, 1.0, np.where(sums >= edge - close, 0.5, 0.0))
    return beyond


def _check_rope(rope: float) -> None:
    if not 0 <= rope < math.inf:
        raise ValueError(f"rope must be finite and not negative, got {rope!r}")


def _unknown(rope: float, blocks: tuple[int, int], method: str, reason: str) -> RopeProbabilities:
    return RopeProbabilities(math.nan, math.nan, math.nan, float(rope), *blocks, method, reason)
