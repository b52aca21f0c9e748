"""Shares of K classes in a target, jointly, with their covariance.

Two ways. Bins of (predicted class, confidence), for any number of classes and without a model: a sample's bin is its
most probable class and the quantile group of that class's probability; labelled counts give each class's density over
the bins, half a count added. Recalibrated probabilities: a multinomial logistic model in the logarithms of labelled
probabilities; the recalibrated probability over the labelled share is, up to a common factor, the class's density.
Three forms: *vector scaling* (a slope and a bias per class, the default), *matrix scaling* (all slopes, a small ridge;
for at least 50 K labelled samples of each class) and *temperature* (one slope and biases; for more than 50 classes).
Expectation-maximisation gives the shares, a sandwich their covariance. Source: Guo, Pleiss, Sun and Weinberger (2017)
for the forms; Alexandari, Kundaje and Shrikumar (2020) for recalibration before expectation-maximisation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import chdtrc, log_softmax

from cmtrack.metrics.intervals import normal_quantile
from cmtrack.prevalence.densities import smoothed
from cmtrack.prevalence.mixture import climb, em_shares
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.top_scores import TopScoreCounts

GROUPS = 5
_LEAST = 1e-9
"""Information of one sample about a direction of shares that a target of any size would leave within 0 to 1."""


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Estimated shares of all classes.

    Attributes
    ----------
    values, low, high : ndarray of shape (K,)
        Shares that sum to 1, and the ends of Wald intervals cut at 0 and 1; NaN for classes without labelled
        samples.
    covariance : ndarray of shape (K, K)
    of_labelled : ndarray of shape (K, K)
        The part of each share's variance (columns) that each class's labelled samples (rows) cause.
    identified : bool ndarray of shape (K,)
        False where any share of the class, given up by others, would explain the target as well; its value is NaN.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    covariance: FloatArray
    of_labelled: FloatArray
    identified: BoolArray

    @classmethod
    def estimated(
        cls, values: FloatArray, covariance: FloatArray, of_labelled: FloatArray, identified: BoolArray, level: float
    ) -> ClassShares:
        """Make shares with the ends of their Wald intervals; NaN where they are not identified."""
        values = np.where(identified, values, math.nan)
        with np.errstate(invalid="ignore"):
            reach = normal_quantile(level) * np.sqrt(np.maximum(np.diag(covariance), 0.0))
        low, high = np.clip(values - reach, 0, 1), np.clip(values + reach, 0, 1)
        return cls(values, low, high, covariance, of_labelled, identified)

    def covering(self, others: Sequence[ClassShares]) -> ClassShares:
        """The same with intervals that reach over the shares of others."""
        values = [shares.values for shares in others]
        low = np.fmin.reduce([self.low, *values])
        high = np.fmax.reduce([self.high, *values])
        known = ~np.isnan(self.values)
        return replace(self, low=np.where(known, low, math.nan), high=np.where(known, high, math.nan))

    @classmethod
    def nothing(cls) -> ClassShares:
        """Shares of no classes."""
        return cls(*(np.empty(0),) * 5, np.empty(0, dtype=bool))


def class_shares(
    labelled: TopScoreCounts,
    target: TopScoreCounts | None,
    confidence_level: float = 0.95,
    scales: tuple[float, float] = (1.0, 1.0),
) -> ClassShares:
    """Estimate the shares of all classes.

    Parameters
    ----------
    labelled : TopScoreCounts of shape (K, K, cells)
        By actual class.
    target : TopScoreCounts of shape (1, K, cells), or None
        None: the labelled samples are the target too, each left out of its own class's density.
    scales : (float, float)
        Effective over nominal size of the labelled and of the target samples, where these are weighted.
    """
    table, binned = _grouped(labelled, target, GROUPS)
    table, binned = table * scales[0], binned * (scales[0] if target is None else scales[1])
    size = len(table)
    known = table.sum(axis=1) > 0
    counts = table[known]
    densities = np.stack([smoothed(row) for row in counts], axis=1)  # (bins, classes)
    shares = _most_likely(counts, None if target is None else binned)
    values, covariance = np.full(size, math.nan), np.full((size, size), math.nan)
    values[known] = shares
    m = counts.sum(axis=1)
    of_target, of_labelled, variances, sure = covariance_parts(densities, shares, float(binned.sum()), m)
    covariance[np.ix_(known, known)] = of_target + of_labelled
    identified = np.ones(size, dtype=bool)
    identified[known] = sure
    by_class = np.zeros((size, size))
    by_class[np.ix_(known, known)] = variances
    return ClassShares.estimated(values, covariance, by_class, identified, confidence_level)


def covariance_parts(
    densities: FloatArray, shares: FloatArray, n: float, labelled: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    """Covariance of the shares by source.

    Parameters
    ----------
    densities : ndarray of shape (B, K), columns summing to 1
    shares : ndarray of shape (K,)
    n : float
        Target samples.
    labelled : ndarray of shape (K,)
        Labelled samples of each class.

    Returns
    -------
    of_target : ndarray of shape (K, K)
        The covariance that the target samples cause.
    of_labelled : ndarray of shape (K, K)
        The covariance that the labelled samples cause.
    variances : ndarray of shape (K, K)
        What each class's labelled samples (rows) add to the variance of each share (columns).
    identified : bool ndarray of shape (K,)
    """
    gap = densities[:, :-1] - densities[:, -1:]
    mix = (densities @ shares)[:, None]
    information = (gap / mix).T @ gap
    spread, identified = inverse_information(information)
    # One labelled sample of class c in bin b moves the shares by -share_c / m_c times row b of `pull`, less its mean.
    pull = (gap / mix) @ spread.T
    weight = shares**2 / labelled
    means = pull.T @ densities
    of_labelled = (pull * (densities @ weight)[:, None]).T @ pull - (means * weight) @ means.T
    variances = weight[:, None] * ((pull**2).T @ densities - means**2).T
    return spread @ (information / n) @ spread.T, of_labelled, variances, identified


def inverse_information(information: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Change of all K shares (rows) by a score of the first K-1 (columns), and flags of the identified shares.

    A direction of the shares without information is left out; the classes that it would change are not identified.
    """
    size = len(information)
    shares = np.vstack((np.eye(size), -np.ones(size)))
    strength, directions = np.linalg.eigh(information)
    known = strength > max(_LEAST, size * np.finfo(float).eps * float(strength[-1]))
    free = shares @ directions[:, ~known]
    inverse = (directions[:, known] / strength[known]) @ directions[:, known].T
    return shares @ inverse, (np.abs(free) < 1e-3).all(axis=1)


def fit_of_shares(labelled: TopScoreCounts, target: TopScoreCounts, shares: FloatArray) -> tuple[float, int, float]:
    """Pearson's X^2 of the target's bins against the mixture of the labelled ones: statistic, df, p-value.

    Classes without labelled samples have no share.
    """
    table, binned = _grouped(labelled, target, GROUPS)
    known = table.sum(axis=1) > 0
    counts, own = table[known], np.nan_to_num(shares[known])
    densities = np.stack([smoothed(row) for row in counts], axis=1)
    mix, n = densities @ own, float(binned.sum())
    error = mix / n + densities @ (own**2 / counts.sum(axis=1))
    statistic = float(((binned / n - mix) ** 2 / error).sum())
    df = len(mix) - len(own)
    return statistic, df, float(chdtrc(df, statistic)) if df > 0 else math.nan


def _most_likely(counts: FloatArray, target: FloatArray | None) -> FloatArray:
    """Maximum-likelihood shares of the classes, shape (K,), by labelled counts (K, B).

    The densities are those of :func:`smoothed`: half a count everywhere, and few whole counts. So a step takes as long
    as there are bins with counts, not bins times classes.

    Parameters
    ----------
    target : ndarray of shape (B,), or None
        None: the labelled samples themselves, each left out of its own class's density.
    """
    size, n_bins = counts.shape
    totals = counts.sum(axis=1) + n_bins / 2
    floor, heights = 0.5 / totals, csr_array(counts / totals[:, None])
    by_bin = heights.T.tocsr()
    if target is not None:
        return climb(
            lambda shares: by_bin @ shares + floor @ shares,
            lambda ratio: heights @ ratio + floor * ratio.sum(),
            target,
            size,
        )
    actual, bins = np.nonzero(counts)  # one row for the samples of a class in a bin
    own = counts[actual, bins]
    left = np.minimum(own, 1.0)
    less = (own - left + 0.5) / (totals[actual] - left) - (own + 0.5) / totals[actual]

    def mix(shares: FloatArray) -> FloatArray:
        mixed: FloatArray = (by_bin @ shares + floor @ shares)[bins] + less * shares[actual]
        return mixed

    def pull(ratio: FloatArray) -> FloatArray:
        inside = heights @ np.bincount(bins, ratio, n_bins) + floor * ratio.sum()
        gain: FloatArray = inside + np.bincount(actual, less * ratio, size)
        return gain

    return climb(mix, pull, own, size)


def _groups(labelled: TopScoreCounts, groups: int) -> IntArray:
    """The quantile group of each (predicted class, cell), by all labelled samples of that predicted class."""
    per_cell = labelled.counts.sum(axis=0).astype(np.float64)
    total = per_cell.sum(axis=1, keepdims=True)
    before = np.cumsum(per_cell, axis=1) - per_cell / 2
    share = np.divide(before, total, out=np.zeros_like(before), where=total > 0)
    group: IntArray = np.minimum((share * groups).astype(np.int64), groups - 1)
    return group


def _grouped(labelled: TopScoreCounts, target: TopScoreCounts | None, groups: int) -> tuple[FloatArray, FloatArray]:
    """Counts (K, bins) of the labelled and (bins,) of the target samples over the bins that the former define.

    Bins that hold neither are dropped.
    """
    group = _groups(labelled, groups)
    size = group.shape[0]
    code = (np.arange(size)[:, None] * groups + group).ravel()
    rows = [np.bincount(code, row.ravel(), size * groups) for row in labelled.counts]
    table = np.array(rows, dtype=np.float64)
    binned = table.sum(axis=0)
    used = binned > 0
    if target is not None:
        binned = np.bincount(code, target.counts.sum(axis=0).ravel(), size * groups).astype(np.float64)
        used |= binned > 0
    return table[:, used], binned[used]


# -- recalibrated probabilities -----------------------------------------------------------------------

FORMS = ("vector", "matrix", "temperature")
_FLOOR = 1e-12
_RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class Scaling:
    """A fitted recalibration.

    Attributes
    ----------
    form : str
    parameters : ndarray of shape (P,)
    covariances : ndarray of shape (K, P, P)
        Part of each class's labelled samples in the sandwich covariance of the parameters.
    prior : ndarray of shape (K,)
        Labelled shares.
    """

    form: str
    parameters: FloatArray
    covariances: FloatArray
    prior: FloatArray

    def ratios(self, probabilities: FloatArray, parameters: FloatArray | None = None) -> FloatArray:
        """Densities (n, K) up to a factor per row: recalibrated probability over labelled share."""
        used = self.parameters if parameters is None else parameters
        features = np.log(np.maximum(probabilities, _FLOOR))
        recalibrated: FloatArray = np.exp(log_softmax(_logits(self.form, features, used), axis=1))
        return recalibrated / self.prior


def default_form(labelled: FloatArray) -> str:
    """Choose the form by the numbers of labelled samples (K,)."""
    size = len(labelled)
    if size > 50:
        return "temperature"
    return "matrix" if labelled.min() >= 50 * size else "vector"


def fit_scaling(actual: IntArray, probabilities: FloatArray, form: str) -> Scaling:
    """Fit the recalibration on labelled samples.

    Parameters
    ----------
    actual : ndarray of shape (m,)
        Class codes 0..K-1, each of them present.
    probabilities : ndarray of shape (m, K)
        Held out or out of fold.
    """
    size = probabilities.shape[1]
    features = np.log(np.maximum(probabilities, _FLOOR))
    one_hot = np.eye(size)[actual]
    start = _start(form, size)

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        log_p = log_softmax(_logits(form, features, parameters), axis=1)
        residual = np.exp(log_p) - one_hot
        gradient = _backward(form, features, residual).sum(axis=0) / len(actual)
        away = parameters - start
        value = -float(log_p[np.arange(len(actual)), actual].mean()) + _RIDGE / len(actual) * float(away @ away)
        return value, gradient + 2 * _RIDGE / len(actual) * away

    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 500, "gtol": 1e-8})
    parameters: FloatArray = found.x
    covariances = _parameter_covariances(form, features, actual, parameters, size)
    return Scaling(form, parameters, covariances, np.bincount(actual, minlength=size) / len(actual))


def scaled_shares(
    scaling: Scaling, target: FloatArray, confidence_level: float = 0.95, weights: FloatArray | None = None
) -> ClassShares:
    """Shares of the classes in a target (n, K), their covariance by source and Wald intervals cut at 0 and 1.

    With weights (n,) the rows count for as many samples as these sum to.
    """
    weights = np.ones(len(target)) if weights is None else weights
    n = float(weights.sum())
    each = weights / n
    ratios = scaling.ratios(target)
    shares = em_shares(ratios, weights)
    influence = _score(ratios, shares)
    information = (influence * each[:, None]).T @ influence
    spread, identified = inverse_information(information)
    slopes = np.empty((len(shares) - 1, len(scaling.parameters)))
    for index in range(len(scaling.parameters)):
        step = np.zeros(len(scaling.parameters))
        step[index] = 1e-5
        up = each @ _score(scaling.ratios(target, scaling.parameters + step), shares)
        down = each @ _score(scaling.ratios(target, scaling.parameters - step), shares)
        slopes[:, index] = (up - down) / 2e-5
    of_target = spread @ (information / n) @ spread.T
    of_labelled = np.stack([spread @ slopes @ part @ slopes.T @ spread.T for part in scaling.covariances])
    covariance = of_target + of_labelled.sum(axis=0)
    by_class = np.diagonal(of_labelled, axis1=1, axis2=2)
    return ClassShares.estimated(shares, covariance, by_class, identified, confidence_level)


def _score(ratios: FloatArray, shares: FloatArray) -> FloatArray:
    """Score of each row for the first K-1 shares, shape (n, K-1)."""
    mix = ratios @ shares
    score: FloatArray = (ratios[:, :-1] - ratios[:, -1:]) / mix[:, None]
    return score


def _start(form: str, size: int) -> FloatArray:
    """Parameters of the identity."""
    slopes = {"vector": np.ones(size), "matrix": np.eye(size).ravel(), "temperature": np.ones(1)}[form]
    return np.concatenate((slopes, np.zeros(size)))


def _logits(form: str, features: FloatArray, parameters: FloatArray) -> FloatArray:
    size = features.shape[1]
    slopes, bias = parameters[:-size], parameters[-size:]
    scaled = features @ slopes.reshape(size, size).T if form == "matrix" else features * slopes
    logits: FloatArray = scaled + bias
    return logits


def _backward(form: str, features: FloatArray, residual: FloatArray) -> FloatArray:
    """Gradient of each row's loss, shape (m, P), from its residuals (m, K)."""
    if form == "matrix":
        slopes = (residual[:, :, None] * features[:, None, :]).reshape(len(features), -1)
    else:
        slopes = residual * features
        if form == "temperature":
            slopes = slopes.sum(axis=1, keepdims=True)
    return np.concatenate((slopes, residual), axis=1)


def _parameter_covariances(
    form: str, features: FloatArray, actual: IntArray, parameters: FloatArray, size: int
) -> FloatArray:
    """H^-1 G_k H^-1 for each class k, G_k the covariance sum of its samples' scores."""
    p = np.exp(log_softmax(_logits(form, features, parameters), axis=1))
    scores = _backward(form, features, p - np.eye(size)[actual])
    hessian = np.zeros((len(parameters),) * 2)
    for k in range(size):  # E over the model's labels of the scores' outer product
        rows = _backward(form, features, p - np.eye(size)[k]) * np.sqrt(p[:, k : k + 1])
        hessian += rows.T @ rows
    inverse = np.linalg.pinv(hessian + _RIDGE * np.eye(len(parameters)))
    parts = []
    for k in range(size):
        own = scores[actual == k]
        centred = (own - own.mean(axis=0)) @ inverse
        parts.append(centred.T @ centred)
    return np.stack(parts)
