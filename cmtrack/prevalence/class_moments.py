"""Shares of more than two classes by matching moments of recalibrated probabilities.

For any densities and any functions h of the probabilities, mean_target h = sum_c pi_c mean_c h.
Here mean_c is the mean over the labelled rows of class c. With the class ratios r and the sizes n
and m_c, the K functions (of which K - 1 are free)

    h_k = r_k / sum_c (pi_c / n + pi_c^2 / m_c) r_c

are generalised least squares. With known ratios and many labelled rows they are the score of the
likelihood, which spans the same space as the posteriors under the shares. Every labelled row is
weighted by an h that was fitted without it, and the target by the mean of all h (cross-fitting), so
wrong ratios increase the variance and cause no bias. For two classes see :mod:`._cross_fitting`.
Method of moments: Hansen (1982, Econometrica 50, 1029-1054). Cross-fitting: Chernozhukov et al.
(2018, Econometrics Journal 21, C1-C68).

The ratios are recalibrated probabilities divided by labelled shares. Up to four models are stacked
by their cross-validated log score: the probabilities as they are; *temperature* (one slope, a bias
per class); *vector* scaling (a slope and a bias per class); *matrix* scaling (all slopes).
Sources: Guo, Pleiss, Sun and Weinberger (2017); Alexandari, Kundaje and Shrikumar (2020).

Maximum likelihood with these ratios has the smaller error if they are correct, and a bias that does
not vanish if they are not. The estimate therefore moves from the moments' estimate towards maximum
likelihood by the fraction

    min(1, tr(V^-1 L) / (d' V^-1 d)),

in which d is the difference of the two estimates, V the covariance of the moments' estimate, and L
the part of V that comes from the labelled rows. L is approximately the covariance of d if the
ratios are correct (Hausman 1978, Econometrica 46, 1251-1271). A bias makes d large, and the
fraction falls with its square. After Green and Strawderman (1991, J. Amer. Statist. Assoc. 86,
1001-1006), who combine an unbiased with a possibly biased estimate. The stated covariance is V.
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
"""Most target probabilities for which five folds' ratios are in memory at a time; else two."""
_FLOOR = 1e-12
"""Smallest probability whose logarithm is taken."""
_RIDGE = {"temperature": 0.1, "vector": 0.1, "matrix": 1.0}
"""Penalty, in log-likelihood, on the squared distance of the parameters from the identity's."""
_STEPS = 100
_FULL_STEPS = 8
"""Number of full fixed-point steps; later ones are halved, as some problems alternate."""


# -- ratios ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scaling:
    """Stacked recalibrations of probabilities, fitted without each fold of labelled rows.

    ``members``: weight of each form.
    ``parameters``, list of dict of str to ndarray of shape (P,): by the fold that was left out.
    ``prior``, shape (K,): labelled shares.
    """

    members: dict[str, float]
    parameters: list[dict[str, FloatArray]]
    prior: FloatArray

    def ratios(self, probabilities: FloatArray) -> FloatArray:
        """Return densities (n, K) up to a factor per row: the posteriors if shares are equal."""
        return self.by_fold(probabilities).mean(axis=0)

    def by_fold(self, probabilities: FloatArray) -> FloatArray:
        """Return the :meth:`ratios` by each fold's models, shape (F, n, K)."""
        features = np.log(np.maximum(probabilities, _FLOOR))
        return np.stack([self._ratios(features, fitted) for fitted in self.parameters])

    def _ratios(self, features: FloatArray, fitted: dict[str, FloatArray]) -> FloatArray:
        ratios = np.zeros_like(features)
        for form, weight in self.members.items():
            ratios += weight * _balanced(form, features, fitted[form], self.prior)
        return ratios


def stacked_forms(n_classes: int) -> list[str]:
    """Return the forms to stack; with many classes, some forms have too many parameters."""
    forms = ["identity", "temperature"]
    if n_classes <= 50:
        forms.append("vector")
    if n_classes <= 20:
        forms.append("matrix")
    return forms


def fit_scaling(
    actual: IntArray, probabilities: FloatArray, folds: int = _FOLDS
) -> tuple[Scaling, FloatArray]:
    """Fit recalibrations without each fold, and weight them by the log score of that fold.

    Parameters
    ----------
    actual : ndarray of shape (m,)
        Class codes 0..K-1, each at least twice.
    probabilities : ndarray of shape (m, K)
        Held out or out of fold.
    folds : int
        Largest number of folds; it is never more than the number of rows of the rarest class.

    Returns
    -------
    scaling : Scaling
    ratios : ndarray of shape (m, K)
        Ratios of each labelled row, by the models that were fitted without it.
    """
    counts = np.bincount(actual, minlength=probabilities.shape[1])
    prior = counts / len(actual)
    forms = stacked_forms(len(counts))
    folds = int(min(folds, counts.min()))
    fold_of_row = _folds(actual, probabilities, folds)
    features = np.log(np.maximum(probabilities, _FLOOR))
    # A fit without a fold starts from the fit to all rows, because the two are close.
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
    """Return the fold of each row, random within a class with a fixed seed.

    Rows are numbered by the probability of their actual class, so the order of the rows or of the
    classes does not change their folds.
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
    """Return the parameters of the largest penalised likelihood."""
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
    """Return posteriors at equal shares, from a model fitted at the labelled shares."""
    return np.exp(log_softmax(_logits(form, features, parameters) - np.log(prior), axis=1))


# -- moments --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Ratios of labelled and of target rows.

    ``actual``, shape (m,): class codes 0..K-1.
    ``labelled``, shape (m, K): ratios by a fit without the row.
    ``target``, shape (F, n, K): ratios by the fit without each fold.
    ``weights``, shape (n,): their sum is the number of rows for which the target's rows count.
    """

    actual: IntArray
    labelled: FloatArray
    target: FloatArray
    weights: FloatArray

    @cached_property
    def counts(self) -> FloatArray:
        """Labelled rows of each class, shape (K,)."""
        return np.bincount(self.actual, minlength=self.labelled.shape[1]).astype(np.float64)

    @cached_property
    def n(self) -> float:
        """Number of target rows."""
        return float(self.weights.sum())

    @cached_property
    def _rows(self) -> list[IntArray]:
        return [np.flatnonzero(self.actual == k) for k in range(len(self.counts))]

    def at(self, shares: FloatArray, cautious: bool = True) -> Moments:
        """Return the moments of the h that is best at given shares.

        Half a row is added to each class.

        The few labelled rows of a class may all be easy ones. ``cautious`` also computes the
        variance of a class over all labelled rows, weighted by their ratios for that class, and
        uses the larger variance.
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
        """Return the shares (K,) that match their own moments; else the nearest ones in [0, 1]."""
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
    """Means of K functions h.

    ``target``, shape (K,).
    ``classes``, shape (K, K): means of each class (columns).
    ``of_target``, shape (K, K): covariance, caused by the target rows, of the difference of both
        sides.
    ``of_classes``, shape (K, K, K): covariance that each class's labelled rows cause.
    """

    target: FloatArray
    classes: FloatArray
    of_target: FloatArray
    of_classes: FloatArray

    @cached_property
    def precision(self) -> FloatArray:
        """Inverse of the whole covariance in directions that vary; h has K - 1 free functions."""
        return _inverse(self.of_target + self.of_classes.sum(axis=0))

    def solve(self) -> FloatArray:
        """Return the least-squares shares on the simplex, weighted by the precision."""
        strength, directions = np.linalg.eigh(self.precision)
        root = np.sqrt(np.maximum(strength, 0.0))[:, None] * directions.T
        matrix = root @ self.classes
        # A row that outweighs all others makes the shares sum to 1.
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
        """Return the change of the shares (rows) by the means of h (columns), shape (K, K)."""
        size = len(self.target)
        free = np.linalg.svd(np.ones((1, size)))[2][1:].T  # directions in which shares sum to 0
        slope = self.classes @ free
        inverse = np.linalg.pinv(slope.T @ self.precision @ slope, rcond=1e-12, hermitian=True)
        return free @ inverse @ slope.T @ self.precision

    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """Return the shares' covariance by source.

        The target's part has shape (K, K), the part of each class's labelled rows (K, K, K).
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
    """Return the classes' shares in a target (n, K), their covariance by source and intervals.

    ``labelled``, (ndarray of shape (m,), ndarray of shape (m, K)): class codes, and the ratios of
        :func:`fit_scaling`.
    ``weights``, shape (n,): their sum is the number of rows for which the target's rows count.
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
    """Return how many folds' ratios of a target (n, K) are in memory at a time."""
    return _FOLDS if target.size <= _MOST_CELLS else 2


def matching_factors(
    ratios: FloatArray, shares: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Return factors q (K,) for which the mean over rows of q_k r_k / sum_c q_c r_c is share_k.

    They sum to 1. They are the minimum of a convex function of log q, found by Newton's method.

    ``ratios``, shape (n, K).
    ``shares``, shape (K,): if a share is NaN, all factors are NaN.
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
        # A whole step may overshoot far from the minimum.
        while height(log_factors + step) > low and np.abs(step).max() > 1e-12:
            step /= 2
        log_factors = log_factors + step
    factors = np.zeros(len(shares))
    factors[used] = np.exp(log_softmax(log_factors))
    return factors


def _explained(difference: FloatArray, covariance: FloatArray, labelled: FloatArray) -> FloatArray:
    """Return the part of a difference that the noise of the labelled rows explains."""
    precision = _inverse(covariance)
    noise = float((precision * labelled).sum())
    seen = float(difference @ precision @ difference)
    if not seen > 0:
        return np.zeros_like(difference)
    return difference * min(1.0, noise / seen)


def _inverse(covariance: FloatArray) -> FloatArray:
    """Return the inverse in the directions that vary, for any scales of the shares."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    inner = np.linalg.pinv(covariance / scale / scale[:, None], rcond=1e-8, hermitian=True)
    return inner / scale / scale[:, None]


def _covariance(values: FloatArray, row_shares: FloatArray) -> FloatArray:
    """Return the covariance (K, K) of rows (n, K) with weights that sum to 1."""
    centred = values - row_shares @ values
    return (centred * row_shares[:, None]).T @ centred
