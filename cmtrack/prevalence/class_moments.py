"""Shares of more than two classes, estimated by matching moments of recalibrated probabilities.

For any densities and any functions h of the probabilities, mean_target h = sum_c pi_c mean_c h.
Here mean_c is the mean over the labelled rows of class c. Let r be the class ratios, n the number
of target rows, and m_c the number of labelled rows in class c. The following K functions (of which
K - 1 are free)

    h_k = r_k / sum_c (pi_c / n + pi_c^2 / m_c) r_c

result in generalised least squares. If the ratios are known and there are many labelled rows, the
functions are the score of the likelihood, which spans the same space as the posteriors for these
shares. Every labelled row is weighted by a function h that was fitted without this row, and the
target is weighted by the mean of all functions h (cross-fitting). Therefore, wrong ratios increase
the variance but do not cause a bias. For two classes, see :mod:`._cross_fitting`. The method of
moments is described by Hansen (1982, Econometrica 50, 1029-1054), and cross-fitting by Chernozhukov
et al. (2018, Econometrics Journal 21, C1-C68).

The ratios are recalibrated probabilities divided by labelled shares. Up to four models are stacked,
with weights from their cross-validated log score. They are the unchanged probabilities,
*temperature* scaling (one slope for all classes, one bias per class), *vector* scaling (one slope
and one bias per class) and *matrix* scaling (all slopes). The sources are Guo, Pleiss, Sun and
Weinberger (2017), and Alexandari, Kundaje and Shrikumar (2020).

If these ratios are correct, the maximum-likelihood estimate has a smaller error than the moment
estimate. If they are not correct, the maximum-likelihood estimate has a bias that does not decrease
with more rows. The moment estimate is therefore moved towards the maximum-likelihood estimate by
the fraction

    min(1, tr(V^-1 L) / (d' V^-1 d)),

in which d is the difference of the two estimates, V the covariance of the moment estimate, and L
the part of V that the labelled rows cause. If the ratios are correct, L is approximately the
covariance of d (Hausman 1978, Econometrica 46, 1251-1271). A bias makes d large, and the fraction
decreases with the square of d. This method follows Green and Strawderman (1991, J. Amer. Statist.
Assoc. 86, 1001-1006), who combine an unbiased estimate with an estimate that may be biased. The
reported covariance is V.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import log_softmax, logsumexp

from cmtrack._lazy import cached_property
from cmtrack.prevalence._cross_fitting import stacking_weights
from cmtrack.prevalence.class_shares import ClassShares, inverse_information
from cmtrack.prevalence.mixture import em_shares
from cmtrack.statistics.inputs import FloatArray, IntArray

_SEED = 20230813
_FOLDS = 5
_MOST_CELLS = 5_000_000
"""Largest number of target probabilities for which the ratios of five folds are in memory
simultaneously. If there are more probabilities, only the ratios of two folds are in memory.
"""
_FLOOR = 1e-12
"""Smallest probability from which a logarithm is computed. It replaces all lower probabilities."""
_RIDGE = {"temperature": 0.1, "vector": 0.1, "matrix": 1.0}
"""Penalty on the squared distance between the parameters and those of the identity, in units of
log-likelihood.
"""
_STEPS = 100
_FULL_STEPS = 8
"""Number of full fixed-point steps. All later steps are halved, because full steps alternate
between two points for some problems.
"""


# -- ratios ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scaling:
    """Stacked recalibrations of probabilities, from fits that leave out each fold of labelled rows.

    ``members``: weight of each form of recalibration. ``parameters``, list of dict of str to
        ndarray of shape (P,): for each fold, the parameters from the fit that leaves out this fold.
    ``prior``, shape (K,): shares of the classes among the labelled rows.
    """

    members: dict[str, float]
    parameters: list[dict[str, FloatArray]]
    prior: FloatArray

    def ratios(self, probabilities: FloatArray) -> FloatArray:
        """Return densities up to a factor per row, which are the posteriors if shares are equal."""
        return self.by_fold(probabilities).mean(axis=0)

    def by_fold(self, probabilities: FloatArray) -> FloatArray:
        """Return the :meth:`ratios` from the models for each fold, shape (F, n, K)."""
        features = np.log(np.maximum(probabilities, _FLOOR))
        return np.stack([self._ratios(features, fitted) for fitted in self.parameters])

    def _ratios(self, features: FloatArray, fitted: dict[str, FloatArray]) -> FloatArray:
        ratios = np.zeros_like(features)
        for form, weight in self.members.items():
            ratios += weight * _balanced(form, features, fitted[form], self.prior)
        return ratios


def stacked_forms(n_classes: int) -> list[str]:
    """Return the forms to stack; some forms need too many parameters if there are many classes."""
    forms = ["identity", "temperature"]
    if n_classes <= 50:
        forms.append("vector")
    if n_classes <= 20:
        forms.append("matrix")
    return forms


def fit_scaling(
    actual: IntArray, probabilities: FloatArray, folds: int = _FOLDS
) -> tuple[Scaling, FloatArray]:
    """Fit recalibrations without each fold, and weight them by the log score in the left-out fold.

    Parameters
    ----------
    actual : ndarray of shape (m,)
        Class codes 0..K-1. Each code must occur at least twice.
    probabilities : ndarray of shape (m, K)
        Probabilities of the rows, which must be held out or out of fold.
    folds : int
        Largest number of folds. The number of folds is never larger than the number of rows in the
        rarest class.

    Returns
    -------
    scaling : Scaling
    ratios : ndarray of shape (m, K)
        Ratios of each labelled row, computed by the models that were fitted without this row.
    """
    counts = np.bincount(actual, minlength=probabilities.shape[1])
    prior = counts / len(actual)
    forms = stacked_forms(len(counts))
    folds = int(min(folds, counts.min()))
    fold_of_row = _folds(actual, probabilities, folds)
    features = np.log(np.maximum(probabilities, _FLOOR))
    # A fit without a fold starts from the fit to all rows, because the two fits are similar.
    starts = {form: _fit(form, features, actual) for form in forms}
    parameters = []
    ratios = np.empty((len(forms), *features.shape))
    for fold in range(folds):
        left_out = fold_of_row == fold
        fitted = {
            form: _fit(form, features[~left_out], actual[~left_out], starts[form]) for form in forms
        }
        parameters.append(fitted)
        for member, form in enumerate(forms):
            ratios[member, left_out] = _balanced(form, features[left_out], fitted[form], prior)
    mass = len(actual) / len(counts) / counts[actual]
    weights = stacking_weights(ratios[:, np.arange(len(actual)), actual], mass)
    members = dict(zip(forms, weights.tolist(), strict=True))
    return Scaling(members, parameters, prior), np.tensordot(weights, ratios, 1)


def _folds(actual: IntArray, probabilities: FloatArray, folds: int) -> IntArray:
    """Return the fold of each row, which is random within its class and uses a fixed seed.

    The rows are sorted by the probability of their actual class, so their folds do not depend on
    the order of the rows or of the classes.
    """
    of_label = probabilities[np.arange(len(actual)), actual]
    order = np.lexsort((*np.sort(probabilities, axis=1).T, of_label))
    fold_of_row = np.empty(len(actual), dtype=np.int64)
    for k in range(probabilities.shape[1]):
        rows = order[actual[order] == k]
        fold_of_row[rows] = np.random.default_rng(_SEED).permutation(len(rows)) % folds
    return fold_of_row


def _fit(
    form: str, features: FloatArray, actual: IntArray, start: FloatArray | None = None
) -> FloatArray:
    """Return the parameters that maximise the penalised likelihood."""
    m, size = features.shape
    slopes = np.ones(1)
    if form == "vector":
        slopes = np.ones(size)
    elif form == "matrix":
        slopes = np.eye(size).ravel()
    identity = np.concatenate((slopes, np.zeros(size)))
    if form == "identity":
        return identity
    rows = np.arange(m)
    ridge = _RIDGE[form] / m

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        log_p = log_softmax(_logits(form, features, parameters), axis=1)
        residual = np.exp(log_p)
        residual[rows, actual] -= 1
        if form == "matrix":
            by_slope = (residual.T @ features).ravel()
        else:
            by_slope = (residual * features).sum(axis=0)
        if form == "temperature":
            by_slope = by_slope.sum(keepdims=True)
        distance = parameters - identity
        gradient = np.concatenate((by_slope, residual.sum(axis=0))) / m + 2 * ridge * distance
        return -float(log_p[rows, actual].mean()) + ridge * float(distance @ distance), gradient

    begin = identity if start is None else start
    fit = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 200, "gtol": 1e-6})
    return fit.x


def _logits(form: str, features: FloatArray, parameters: FloatArray) -> FloatArray:
    size = features.shape[1]
    slopes = parameters[:-size]
    bias = parameters[-size:]
    if form == "matrix":
        return features @ slopes.reshape(size, size).T + bias
    return features * slopes + bias


def _balanced(
    form: str, features: FloatArray, parameters: FloatArray, prior: FloatArray
) -> FloatArray:
    """Return posteriors for equal shares, from a model that was fitted at the labelled shares."""
    return np.exp(log_softmax(_logits(form, features, parameters) - np.log(prior), axis=1))


# -- moments --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Ratios of the labelled rows and of the target rows.

    ``actual``, shape (m,): class codes 0..K-1.
    ``labelled``, shape (m, K): ratios of each labelled row, from a fit without this row.
    ``target``, shape (F, n, K): ratios of the target rows, from the fit without each fold.
    ``weights``, shape (n,): weights of the target rows. Their sum is the number of rows that the
        target counts as.
    """

    actual: IntArray
    labelled: FloatArray
    target: FloatArray
    weights: FloatArray

    @cached_property
    def counts(self) -> FloatArray:
        """Number of labelled rows in each class, shape (K,)."""
        return np.bincount(self.actual, minlength=self.labelled.shape[1]).astype(np.float64)

    @cached_property
    def n(self) -> float:
        """Number of target rows."""
        return float(self.weights.sum())

    @cached_property
    def _rows(self) -> list[IntArray]:
        return [np.flatnonzero(self.actual == k) for k in range(len(self.counts))]

    def at(self, shares: FloatArray, cautious: bool = True) -> Moments:
        """Return the moments of the functions h that are optimal for the given shares.

        Half a row is added to each class.

        If a class has only few labelled rows, all of them may be easy to classify. If ``cautious``
        is true, the variance in a class is also computed over all labelled rows, weighted by their
        ratios for this class, and the larger variance is used.
        """
        shares = (shares * self.n + 0.5) / (self.n + len(shares) / 2)
        noise = shares * (1 + shares * self.n / self.counts)
        h = self.labelled / (self.labelled @ noise)[:, None]
        target_h = np.zeros(self.target.shape[1:])
        for ratios in self.target:
            target_h += ratios / (ratios @ noise)[:, None]
        target_h /= len(self.target)
        row_shares = self.weights / self.n
        means = np.stack([h[rows].mean(axis=0) for rows in self._rows], axis=1)
        of_target = _covariance(target_h, row_shares) / self.n
        weight = shares**2 / self.counts
        of_classes = np.stack(
            [
                w * m / (m - 1) * _covariance(h[rows], np.full(len(rows), 1 / m))
                for w, m, rows in zip(weight, self.counts, self._rows, strict=True)
            ]
        )
        if cautious:
            precision = _inverse(of_target + of_classes.sum(axis=0))
            chances = (self.labelled / self.counts[self.actual][:, None]).T
            for k, (w, mass) in enumerate(zip(weight, chances, strict=True)):
                by_all = w * _covariance(h, mass / mass.sum())
                if (precision * by_all).sum() > (precision * of_classes[k]).sum():
                    of_classes[k] = by_all
        return Moments(row_shares @ target_h, means, of_target, of_classes)

    def solve(self, start: FloatArray) -> FloatArray:
        """Return the shares that match their own moments, or the nearest shares in [0, 1]."""
        shares = start
        for step in range(_STEPS):
            before = shares
            shares = self.at(before, cautious=False).solve()
            if step >= _FULL_STEPS:
                shares = (shares + before) / 2
            if np.abs(shares - before).max() < 1e-8:
                break
        return shares


@dataclass(frozen=True, eq=False)
class Moments:
    """Means of the K functions h, and the covariances of these means.

    ``target``, shape (K,): means over the target.
    ``classes``, shape (K, K): means over the labelled rows of each class, by column.
    ``of_target``, shape (K, K): the part of the covariance of the difference between both sides of
        the equations that the target rows cause.
    ``of_classes``, shape (K, K, K): the part that the labelled rows of each class cause.
    """

    target: FloatArray
    classes: FloatArray
    of_target: FloatArray
    of_classes: FloatArray

    @cached_property
    def precision(self) -> FloatArray:
        """Inverse of the total covariance in the K - 1 directions in which h can vary."""
        return _inverse(self.of_target + self.of_classes.sum(axis=0))

    def solve(self) -> FloatArray:
        """Return the least-squares shares on the simplex, weighted by the precision."""
        strength, directions = np.linalg.eigh(self.precision)
        root = np.sqrt(np.maximum(strength, 0.0))[:, None] * directions.T
        matrix = root @ self.classes
        # An additional row of the equations, which outweighs all others, makes the shares sum to 1.
        heavy = 1e4 * max(float(np.abs(matrix).max()), 1e-9)
        size = len(self.target)
        shares, _ = nnls(
            np.vstack((matrix, np.full(size, heavy))),
            np.append(root @ self.target, heavy),
            maxiter=50 * size,
        )
        return shares / shares.sum()

    @cached_property
    def gain(self) -> FloatArray:
        """Return the derivatives of the shares (rows) by the means of h (columns), shape (K, K)."""
        size = len(self.target)
        free = np.linalg.svd(np.ones((1, size)))[2][1:].T  # directions in which shares sum to 0
        slope = self.classes @ free
        inverse = np.linalg.pinv(slope.T @ self.precision @ slope, rcond=1e-12, hermitian=True)
        return free @ inverse @ slope.T @ self.precision

    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """Return the covariance of the shares, divided by source.

        The part that the target causes has the shape (K, K). The parts that the labelled rows of
        each class cause have the shape (K, K, K).
        """
        gain = self.gain
        return gain @ self.of_target @ gain.T, gain @ self.of_classes @ gain.T


def scaled_shares(
    scaling: Scaling,
    labelled: tuple[IntArray, FloatArray],
    target: FloatArray,
    confidence_level: float = 0.95,
    weights: FloatArray | None = None,
) -> ClassShares:
    """Estimate the class shares in a target, their covariance by source, and intervals.

    ``labelled``, (ndarray of shape (m,), ndarray of shape (m, K)): class codes, and the ratios from
    :func:`fit_scaling`.
    ``weights``, shape (n,): weights of the target rows. Their sum is the number of rows that the
        target counts as.
    """
    if weights is None:
        weights = np.ones(len(target))
    actual, labelled_ratios = labelled
    moments = ClassMoments(actual, labelled_ratios, scaling.by_fold(target), weights)
    ratios = moments.target.mean(axis=0)
    likely = em_shares(ratios, weights)
    score = (ratios[:, :-1] - ratios[:, -1:]) / (ratios @ likely)[:, None]
    _, identified = inverse_information((score * (weights / moments.n)[:, None]).T @ score)
    shares = moments.solve(likely)
    of_target, of_labelled = moments.at(shares).covariances()
    labelled_part = of_labelled.sum(axis=0)
    covariance = of_target + labelled_part
    shares = shares + _explained(likely - shares, covariance, labelled_part)
    by_class = np.diagonal(of_labelled, axis1=1, axis2=2)
    return ClassShares.estimated(
        shares, covariance, by_class, identified, confidence_level, moments.n
    )


def folds_for(target: FloatArray) -> int:
    """Return the number of folds whose ratios for a target are in memory simultaneously."""
    return _FOLDS if target.size <= _MOST_CELLS else 2


def matching_factors(
    ratios: FloatArray, shares: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Return factors q (K,) for which the mean over rows of q_k r_k / sum_c q_c r_c is share_k.

    The factors sum to 1. They minimise a convex function of log q, and are found with Newton's
    method.

    ``ratios``, shape (n, K): the ratios r of each row.
    ``shares``, shape (K,): the shares. If a share is NaN, all factors are NaN.
    ``weights``, shape (n,).
    """
    if np.isnan(shares).any():
        return np.full(len(shares), math.nan)
    if weights is None:
        weights = np.ones(len(ratios))
    row_shares = weights / weights.sum()
    used = np.flatnonzero(shares > 0)
    wanted = shares[used]
    log_ratios = np.log(ratios[:, used])

    def height(log_factors: FloatArray) -> float:
        total = float(row_shares @ logsumexp(log_ratios + log_factors, axis=1))
        return total - float(wanted @ log_factors)

    log_factors = np.log(wanted)
    for _ in range(_STEPS):
        chance = np.exp(log_softmax(log_ratios + log_factors, axis=1))
        mean = row_shares @ chance
        gap = mean - wanted
        if np.abs(gap).max() < 1e-10:
            break
        curvature = np.diag(mean) - (chance * row_shares[:, None]).T @ chance
        step = np.linalg.lstsq(curvature, -gap, rcond=1e-12)[0]
        low = height(log_factors)
        # Far from the minimum, a whole step may be too long.
        while height(log_factors + step) > low and np.abs(step).max() > 1e-12:
            step /= 2
        log_factors = log_factors + step
    factors = np.zeros(len(shares))
    factors[used] = np.exp(log_softmax(log_factors))
    return factors


def _explained(difference: FloatArray, covariance: FloatArray, labelled: FloatArray) -> FloatArray:
    """Return the fraction of a difference that the noise of the labelled rows explains."""
    precision = _inverse(covariance)
    noise = float((precision * labelled).sum())
    seen = float(difference @ precision @ difference)
    if not seen > 0:
        return np.zeros_like(difference)
    return difference * min(1.0, noise / seen)


def _inverse(covariance: FloatArray) -> FloatArray:
    """Return the inverse of a covariance in the directions that vary, for any scale of shares."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    inner = np.linalg.pinv(covariance / scale / scale[:, None], rcond=1e-8, hermitian=True)
    return inner / scale / scale[:, None]


def _covariance(values: FloatArray, row_shares: FloatArray) -> FloatArray:
    """Return the covariance, shape (K, K), of rows (n, K) with weights that sum to 1."""
    centred = values - row_shares @ values
    return (centred * row_shares[:, None]).T @ centred
