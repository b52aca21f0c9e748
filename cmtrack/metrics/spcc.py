"""Sample Pearson correlation (sPCC) of labels and scores, separation indices, bias.

Source: Gubbels (2023), chapter 1: equations 1.9-1.12 (binary, one-vs-one, one-vs-rest), section 1.2.2 (indices
d_a, d_e, d_b), and the bias of section 1.2.3. Corrected here: the Fisher averages carry the factor 1/m that the
printed ones lack (with it Table 1.7's one-vs-rest entries give the .7871 of Table 1.6; its one-vs-one .8351 is
not reproducible, the six entries give .8255); d_e is the root of the printed right side, with the predictions'
total variance in the numerator. A bias lies in [-pi, 1-pi], so the 2.8372 of Table 1.2 cannot be right.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from cmtrack.statistics import ScoreMoments
from cmtrack.statistics.inputs import FloatArray

_CLIP = 1 - 1e-12


def spcc(moments: ScoreMoments) -> float:
    """Correlation of a two-class indicator with a score.

    Parameters
    ----------
    moments : ScoreMoments of shape (2, 1)
        Negatives first, positives second.

    Returns
    -------
    float
        In [-1, 1]; 1 where the score is constant within each class; NaN where a class is empty or the score
        does not vary.
    """
    return float(_correlation(moments.n[1], moments.n[0], *_pair(moments)))


def one_vs_rest(moments: ScoreMoments) -> list[ScoreMoments]:
    """For each class k, the moments of score k over the others and over class k, shape (2, 1) each."""
    classes = np.arange(len(moments.n))
    return [moments.component(k).by_group((classes == k).astype(np.int64), 2) for k in range(len(classes))]


def spcc_ovo(moments: ScoreMoments, *, equal_shares: bool = False) -> FloatArray:
    """One-vs-one matrix (K, K): entry (c, d) correlates class c against d with score c, over their samples.

    The matrix is not symmetric; its diagonal is 0. With ``equal_shares`` each entry is what it would be if both classes
    had as many samples: the sPCC of a well separated pair is small where one class is rare.
    """
    n = moments.n.astype(np.float64)
    delta, own_m2, other_m2 = (
        np.diag(moments.mean)[:, None] - moments.mean.T,
        np.diag(moments.m2)[:, None],
        moments.m2.T,
    )
    if equal_shares:
        share = np.where(n > 0, 0.5, 0.0)
        safe = np.where(n > 0, n, 1.0)
        within = (own_m2 / safe[:, None] + other_m2 / safe[None, :]) / 2
        matrix = _correlation(share[:, None], share[None, :], delta, within)
    else:
        matrix = _correlation(n[:, None], n[None, :], delta, own_m2 + other_m2)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def fisher_mean(correlations: FloatArray) -> float:
    """tanh of the mean of atanh; undefined entries are passed over, +-1 is clipped to 1 - 1e-12.

    The mean hides a single bad entry: read the minimum beside it.
    """
    known = correlations[~np.isnan(correlations)]
    return math.tanh(float(np.arctanh(np.clip(known, -_CLIP, _CLIP)).mean())) if known.size else math.nan


def off_diagonal(matrix: FloatArray) -> FloatArray:
    """The K(K-1) entries off the diagonal."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


def least_pair(matrix: FloatArray) -> tuple[int, int] | None:
    """Row and column of the smallest entry off the diagonal; None where none is defined."""
    entries = matrix.copy()
    np.fill_diagonal(entries, math.nan)
    if np.isnan(entries).all():
        return None
    row, column = divmod(int(np.nanargmin(entries)), len(matrix))
    return row, column


def standardised_spcc(moments: ScoreMoments, prevalence: float) -> float:
    """The sPCC that these class-wise scores would have at another prevalence."""
    if not 0 < prevalence < 1:
        raise ValueError(f"prevalence must lie between 0 and 1, got {prevalence}")
    delta, _ = _pair(moments)
    if not (moments.n > 0).all():
        return math.nan
    v0, v1 = moments.m2[:, 0] / moments.n
    between = prevalence * (1 - prevalence)
    total = prevalence * v1 + (1 - prevalence) * v0 + between * delta**2
    return float(delta * math.sqrt(between) / math.sqrt(total)) if total > 0 else math.nan


def separation_indices(moments: ScoreMoments, squares: ScoreMoments | None = None) -> tuple[float, float]:
    """d_a (root mean square of the two sds) and d_e (their average); NaN below two samples a class.

    ``d_a = sqrt(2) z(AUC)`` holds for any two normal class distributions and fails otherwise. ``squares`` holds
    the moments with squared weights where weights are fractions: their effective numbers lose the degree of
    freedom, so that the scale of the weights does not matter.
    """
    if not (moments.n > 0).all():
        return math.nan, math.nan
    size = moments.n if squares is None else moments.n**2 / squares.n
    if not (size > 1 + 1e-9).all():
        return math.nan, math.nan
    delta = abs(float(_pair(moments)[0]))
    v0, v1 = moments.m2[:, 0] / moments.n * (size / (size - 1))
    if v0 + v1 == 0:
        return math.nan, math.nan
    return delta / math.sqrt((v0 + v1) / 2), 2 * delta / (math.sqrt(v0) + math.sqrt(v1))


def bayes_index(positive: FloatArray, negative: FloatArray) -> float:
    """d_b = -2 z(e), e the Bayes error at equal priors of two binned densities that each sum to 1."""
    error = 0.5 * float(np.minimum(positive, negative).sum())
    return float(-2 * ndtri(error)) if error > 0 else math.inf


def bayes_index_slope(positive: FloatArray, negative: FloatArray) -> float:
    """Derivative of d_b with respect to the Bayes error."""
    error = 0.5 * float(np.minimum(positive, negative).sum())
    return -2 * math.sqrt(2 * math.pi) * math.exp(float(ndtri(error)) ** 2 / 2)


def bias(moments: ScoreMoments) -> float:
    """Mean score minus share of positives (scores in [0, 1])."""
    n = float(moments.n.sum())
    mean = moments.mean[:, 0]
    return float(moments.n @ (mean - np.array([0.0, 1.0]))) / n


def _pair(moments: ScoreMoments) -> tuple[float, float]:
    if moments.mean.shape != (2, 1):
        raise ValueError(f"two classes and one score are needed, got shape {moments.mean.shape}")
    return moments.mean[1, 0] - moments.mean[0, 0], moments.m2.sum()


def _correlation(
    p: FloatArray | float, n: FloatArray | float, delta: FloatArray | float, within: FloatArray | float
) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.asarray(p, dtype=np.float64) * n / (np.asarray(p, dtype=np.float64) + n)
        value = delta * np.sqrt(share) / np.sqrt(within + delta**2 * share)
    value = np.where(share > 0, value, math.nan)
    return np.clip(value, -1.0, 1.0)
