"""Shares of more than two classes by matching moments of recalibrated probabilities.

For functions h of the probabilities, mean_target h = sum_c pi_c mean_c h whatever the densities
are, where mean_c is the mean over the labelled samples of class c. With the class ratios r and the
sizes n, m_c the K functions (of which K - 1 are free)

    h_k = r_k / sum_c (pi_c / n + pi_c^2 / m_c) r_c

are generalised least squares: known ratios and many labelled samples make them the score of the
likelihood, which spans the same as the posteriors under the shares. Every labelled sample is
weighed by an h that was fitted without it, the target by the mean of all (cross-fitting), so that
wrong ratios cost variance, not bias. Two classes: :mod:`._cross_fitting`. Method of moments: Hansen
(1982, Econometrica 50, 1029-1054); cross-fitting: Chernozhukov et al. (2018, Econometrics Journal
21, C1-C68).

The ratios are recalibrated probabilities over labelled shares, of up to four models that are
stacked by their cross-validated log score: the probabilities as they are; *temperature* (one slope,
a bias per class); *vector* scaling (a slope and a bias per class); *matrix* scaling (all slopes).
Sources: Guo, Pleiss, Sun and Weinberger (2017); Alexandari, Kundaje and Shrikumar (2020).

Maximum likelihood with these ratios has the smaller error where they are right, and a bias that
does not vanish where they are not. The estimate therefore moves from the moments' towards maximum
likelihood by the share

    min(1, tr(V^-1 L) / (d' V^-1 d)),

d the difference of the two, V the covariance of the moments' estimate and L the part of the
labelled samples in it, about what d has if the ratios are right (Hausman 1978, Econometrica 46,
1251-1271). A bias makes d large, and the share falls with the square of it. After Green and
Strawderman (1991, J. Amer. Statist. Assoc. 86, 1001-1006), who combine an unbiased with a possibly
biased estimate. The covariance stated is V.
"""

from __future__ import annotations

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
"""Target probabilities of which five folds' ratios are held at a time; of more, two folds are made."""
_FLOOR = 1e-12
_RIDGE = {"temperature": 0.1, "vector": 0.1, "matrix": 1.0}
"""Penalty on the squared distance of the parameters from those of the probabilities as they are, in log-likelihood."""
_STEPS = 100


# -- ratios ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scaling:
    """Recalibrations of probabilities, stacked, fitted without each fold of labelled samples.

    ``members``: weight of each form.
    ``parameters``, list of dict of str to ndarray of shape (P,): by fold that was left out.
    ``prior``, shape (K,): labelled shares.
    """

    members: dict[str, float]
    parameters: list[dict[str, FloatArray]]
    prior: FloatArray

    def ratios(self, probabilities: FloatArray) -> FloatArray:
        """Densities (n, K) up to a factor per row: posteriors if all classes were equally frequent."""
        return self.by_fold(probabilities).mean(axis=0)

    def by_fold(self, probabilities: FloatArray) -> FloatArray:
        """The same by each fold's models, shape (F, n, K)."""
        features = np.log(np.maximum(probabilities, _FLOOR))
        return np.stack([self._ratios(features, fitted) for fitted in self.parameters])

    def _ratios(self, features: FloatArray, fitted: dict[str, FloatArray]) -> FloatArray:
        out = np.zeros_like(features)
        for form, weight in self.members.items():
            out += weight * _balanced(form, features, fitted[form], self.prior)
        return out


def stacked_forms(n_classes: int) -> list[str]:
    """Return the forms that are stacked; with many classes some have too many parameters."""
    forms = ["identity", "temperature"]
    if n_classes <= 50:
        forms.append("vector")
    if n_classes <= 20:
        forms.append("matrix")
    return forms


def fit_scaling(
    actual: IntArray, probabilities: FloatArray, folds: int = _FOLDS
) -> tuple[Scaling, FloatArray]:
    """Fit recalibrations without each fold, and weigh them by the log score of the samples left out.

    Parameters
    ----------
    actual : ndarray of shape (m,)
        Class codes 0..K-1, each of them at least twice.
    probabilities : ndarray of shape (m, K)
        Held out or out of fold.
    folds : int
        At most; no more than the samples of the rarest class.

    Returns
    -------
    scaling : Scaling
    ratios : ndarray of shape (m, K)
        Of each labelled sample, by the models that were fitted without it.
    """
    counts = np.bincount(actual, minlength=probabilities.shape[1])
    prior = counts / len(actual)
    forms = stacked_forms(len(counts))
    folds = int(min(folds, counts.min()))
    held = _folds(actual, probabilities, folds)
    features = np.log(np.maximum(probabilities, _FLOOR))
    whole = {form: _fit(form, features, actual) for form in forms}
    parameters, left = [], np.empty((len(forms), *features.shape))
    for fold in range(folds):
        out = held == fold
        fitted = {form: _fit(form, features[~out], actual[~out], whole[form]) for form in forms}
        parameters.append(fitted)
        for place, form in enumerate(forms):
            left[place, out] = _balanced(form, features[out], fitted[form], prior)
    mass = len(actual) / len(counts) / counts[actual]
    weights = stacking_weights(left[:, np.arange(len(actual)), actual], mass)
    members = dict(zip(forms, weights.tolist(), strict=True))
    return Scaling(members, parameters, prior), np.tensordot(weights, left, 1)


def _folds(actual: IntArray, probabilities: FloatArray, folds: int) -> IntArray:
    """The fold of each sample, random with a fixed seed within a class.

    The same for every order of the rows and of the classes: samples are numbered by the probability
    of their own class.
    """
    of_label = probabilities[np.arange(len(actual)), actual]
    order = np.lexsort((*np.sort(probabilities, axis=1).T, of_label))
    out = np.empty(len(actual), dtype=np.int64)
    for k in range(probabilities.shape[1]):
        rows = order[actual[order] == k]
        out[rows] = np.random.default_rng(_SEED).permutation(len(rows)) % folds
    return out


def _fit(
    form: str, features: FloatArray, actual: IntArray, start: FloatArray | None = None
) -> FloatArray:
    """Parameters of the largest penalised likelihood."""
    m, size = features.shape
    slopes = {"vector": np.ones(size), "matrix": np.eye(size).ravel()}.get(form, np.ones(1))
    identity = np.concatenate((slopes, np.zeros(size)))
    if form == "identity":
        return identity
    rows, ridge = np.arange(m), _RIDGE[form] / m

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        log_p = log_softmax(_logits(form, features, parameters), axis=1)
        residual = np.exp(log_p)
        residual[rows, actual] -= 1
        if form == "matrix":
            slopes = (residual.T @ features).ravel()
        else:
            slopes = (residual * features).sum(axis=0)
            slopes = slopes.sum(keepdims=True) if form == "temperature" else slopes
        away = parameters - identity
        gradient = np.concatenate((slopes, residual.sum(axis=0))) / m + 2 * ridge * away
        return -float(log_p[rows, actual].mean()) + ridge * float(away @ away), gradient

    begin = identity if start is None else start
    fit = minimize(loss, begin, jac=True, method="L-BFGS-B", options={"maxiter": 200, "gtol": 1e-6})
    return fit.x


def _logits(form: str, features: FloatArray, parameters: FloatArray) -> FloatArray:
    size = features.shape[1]
    slopes, bias = parameters[:-size], parameters[-size:]
    scaled = features @ slopes.reshape(size, size).T if form == "matrix" else features * slopes
    return scaled + bias


def _balanced(
    form: str, features: FloatArray, parameters: FloatArray, prior: FloatArray
) -> FloatArray:
    """Posteriors at equal shares, from a model fitted at the labelled ones."""
    return np.exp(log_softmax(_logits(form, features, parameters) - np.log(prior), axis=1))


# -- moments --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Ratios of labelled and of target samples.

    ``actual``, shape (m,): class codes 0..K-1.
    ``labelled``, shape (m, K): ratios by a fit without the sample.
    ``target``, shape (F, n, K): ratios by the fit without each fold.
    ``weights``, shape (n,): their sum is the number of samples that the target's rows count for.
    """

    actual: IntArray
    labelled: FloatArray
    target: FloatArray
    weights: FloatArray

    @cached_property
    def counts(self) -> FloatArray:
        """Labelled samples of each class, shape (K,)."""
        return np.bincount(self.actual, minlength=self.labelled.shape[1]).astype(np.float64)

    @cached_property
    def n(self) -> float:
        """Target samples."""
        return float(self.weights.sum())

    @cached_property
    def _rows(self) -> list[IntArray]:
        return [np.flatnonzero(self.actual == k) for k in range(len(self.counts))]

    def at(self, shares: FloatArray, cautious: bool = True) -> Moments:
        """The moments of the h that is best at given shares, half a sample added to each class.

        The few labelled samples of a class may all be easy ones. ``cautious`` takes its variance by
        all labelled samples, as the ratios say that they are of the class, where that is larger.
        """
        size = len(shares)
        shares = (shares * self.n + 0.5) / (self.n + size / 2)
        noise = shares * (1 + shares * self.n / self.counts)
        h = self.labelled / (self.labelled @ noise)[:, None]
        of_target = np.zeros(self.target.shape[1:])
        for ratios in self.target:
            of_target += ratios / (ratios @ noise)[:, None]
        of_target /= len(self.target)
        each = self.weights / self.n
        means = np.stack([h[rows].mean(axis=0) for rows in self._rows], axis=1)
        target = _covariance(of_target, each) / self.n
        weight = shares**2 / self.counts
        classes = np.stack(
            [
                w * m / (m - 1) * _covariance(h[rows], np.full(len(rows), 1 / m))
                for w, m, rows in zip(weight, self.counts, self._rows, strict=True)
            ]
        )
        if cautious:
            precision = _inverse(target + classes.sum(axis=0))
            chances = (self.labelled / self.counts[self.actual][:, None]).T
            for k, (w, mass) in enumerate(zip(weight, chances, strict=True)):
                other = w * _covariance(h, mass / mass.sum())
                if (precision * other).sum() > (precision * classes[k]).sum():
                    classes[k] = other
        return Moments(each @ of_target, means, target, classes)

    def solve(self, start: FloatArray) -> FloatArray:
        """Shares (K,) whose own moments they match; the nearest ones in [0, 1] where there are none."""
        shares = start
        for step in range(_STEPS):
            following = self.at(shares, cautious=False).solve()
            following = following if step < 8 else (following + shares) / 2
            done = np.abs(following - shares).max() < 1e-8
            shares = following
            if done:
                break
        return shares


@dataclass(frozen=True, eq=False)
class Moments:
    """Means of K functions h.

    ``target``, shape (K,).
    ``classes``, shape (K, K): of each class (columns).
    ``of_target``, shape (K, K): covariance of the difference of both sides that the target samples
        cause.
    ``of_classes``, shape (K, K, K): what each class's labelled samples cause.
    """

    target: FloatArray
    classes: FloatArray
    of_target: FloatArray
    of_classes: FloatArray

    @cached_property
    def precision(self) -> FloatArray:
        """Inverse of the whole covariance where it has one; h has K - 1 free functions."""
        return _inverse(self.of_target + self.of_classes.sum(axis=0))

    def solve(self) -> FloatArray:
        """Shares of least squares, weighed by the precision, on the simplex."""
        strength, directions = np.linalg.eigh(self.precision)
        root = np.sqrt(np.maximum(strength, 0.0))[:, None] * directions.T
        matrix = root @ self.classes
        heavy = 1e4 * max(float(np.abs(matrix).max()), 1e-9)  # the row of the sum
        size = len(self.target)
        shares, _ = nnls(
            np.vstack((matrix, np.full(size, heavy))),
            np.append(root @ self.target, heavy),
            maxiter=50 * size,
        )
        return shares / shares.sum()

    @cached_property
    def gain(self) -> FloatArray:
        """Change of the shares (rows) by the means of h (columns), shape (K, K)."""
        size = len(self.target)
        free = np.linalg.svd(np.ones((1, size)))[2][1:].T  # shares that sum to 0
        slope = self.classes @ free
        inverse = np.linalg.pinv(slope.T @ self.precision @ slope, rcond=1e-12, hermitian=True)
        return free @ inverse @ slope.T @ self.precision

    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """Covariance of the shares by the target, shape (K, K), and by each class's labelled samples, (K, K, K)."""
        return self.gain @ self.of_target @ self.gain.T, self.gain @ self.of_classes @ self.gain.T


def scaled_shares(
    scaling: Scaling,
    labelled: tuple[IntArray, FloatArray],
    target: FloatArray,
    confidence_level: float = 0.95,
    weights: FloatArray | None = None,
) -> ClassShares:
    """Shares of the classes in a target (n, K), their covariance by source and their intervals.

    ``labelled``, (ndarray of shape (m,), ndarray of shape (m, K)): class codes, and the ratios of
        :func:`fit_scaling`.
    ``weights``, shape (n,): the target's rows count for as many samples as these sum to.
    """
    weights = np.ones(len(target)) if weights is None else weights
    moments = ClassMoments(*labelled, scaling.by_fold(target), weights)
    ratios = moments.target.mean(axis=0)
    likely = em_shares(ratios, weights)
    score = (ratios[:, :-1] - ratios[:, -1:]) / (ratios @ likely)[:, None]
    _, identified = inverse_information((score * (weights / moments.n)[:, None]).T @ score)
    shares = moments.solve(likely)
    of_target, of_labelled = moments.at(shares).covariances()
    labelled_part = of_labelled.sum(axis=0)
    shares = shares + _towards(likely - shares, of_target + labelled_part, labelled_part)
    by_class = np.diagonal(of_labelled, axis1=1, axis2=2)
    covariance = of_target + labelled_part
    return ClassShares.estimated(
        shares, covariance, by_class, identified, confidence_level, moments.n
    )


def folds_for(target: FloatArray) -> int:
    """Folds whose ratios of a target (n, K) are held at a time."""
    return _FOLDS if target.size <= _MOST_CELLS else 2


def matching_factors(
    ratios: FloatArray, shares: FloatArray, weights: FloatArray | None = None
) -> FloatArray:
    """Factors q (K,) with mean over rows of q_k r_k / sum_c q_c r_c = share_k, by Newton's method; sum 1.

    ``ratios``, shape (n, K).
    ``shares``, shape (K,): with NaN none can be matched: all factors are NaN.
    ``weights``, shape (n,).
    """
    used = np.flatnonzero(shares > 0)
    factors = np.where(np.isnan(shares).any(), np.nan, np.zeros(len(shares)))
    if np.isnan(factors).any():
        return factors
    wanted, inner = shares[used], np.log(ratios[:, used])
    each = np.full(len(ratios), 1 / len(ratios)) if weights is None else weights / weights.sum()
    at = np.log(wanted)

    def height(at: FloatArray) -> float:
        return float(each @ logsumexp(inner + at, axis=1) - wanted @ at)

    for _ in range(_STEPS):
        chance = np.exp(log_softmax(inner + at, axis=1))
        gap = each @ chance - wanted
        if np.abs(gap).max() < 1e-10:
            break
        curvature = np.diag(each @ chance) - (chance * each[:, None]).T @ chance
        step, low = np.linalg.lstsq(curvature, -gap, rcond=1e-12)[0], height(at)
        while height(at + step) > low and np.abs(step).max() > 1e-12:
            step /= 2
        at = at + step
    factors[used] = np.exp(log_softmax(at))
    return factors


def _towards(difference: FloatArray, covariance: FloatArray, labelled: FloatArray) -> FloatArray:
    """The part of the difference to maximum likelihood that the noise of the labelled samples explains."""
    precision = _inverse(covariance)
    noise, seen = float((precision * labelled).sum()), float(difference @ precision @ difference)
    return difference * min(1.0, noise / seen) if seen > 0 else np.zeros_like(difference)


def _inverse(covariance: FloatArray) -> FloatArray:
    """Inverse on the directions that vary, free of the scales."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 1e-300))
    inner = np.linalg.pinv(covariance / scale / scale[:, None], rcond=1e-8, hermitian=True)
    return inner / scale / scale[:, None]


def _covariance(values: FloatArray, each: FloatArray) -> FloatArray:
    """Covariance (K, K) of rows (n, K) with weights that sum to 1."""
    away = values - each @ values
    return (away * each[:, None]).T @ away
