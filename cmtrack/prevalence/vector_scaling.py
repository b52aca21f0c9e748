"""Shares of K classes from recalibrated probabilities, with their covariance.

Labelled probabilities are recalibrated by a multinomial logistic model in their logarithms; the recalibrated
probability over the labelled share is, up to a common factor, the class's density, and expectation-maximisation gives
the shares of the target. Three forms: *vector scaling* (a slope and a bias per class, the default), *matrix scaling*
(all slopes, a small ridge; for at least 50 K labelled samples of each class) and *temperature* (one slope and biases;
for more than 50 classes). Source: Guo, Pleiss, Sun and Weinberger (2017) for the forms; Alexandari, Kundaje and
Shrikumar (2020) for recalibration before expectation-maximisation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax

from cmtrack.prevalence.class_shares import ClassShares, inverse_information
from cmtrack.prevalence.mixture import em_shares
from cmtrack.statistics.inputs import FloatArray, IntArray

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
    """The form that the numbers of labelled samples (K,) allow."""
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


def scaled_shares(scaling: Scaling, target: FloatArray, confidence_level: float = 0.95) -> ClassShares:
    """Shares of the classes in a target (n, K), their covariance by source and Wald intervals cut at 0 and 1."""
    n = len(target)
    ratios = scaling.ratios(target)
    shares = em_shares(ratios, np.ones(n))
    influence = _score(ratios, shares)
    information = influence.T @ influence / n
    spread, identified = inverse_information(information)
    slopes = np.empty((len(shares) - 1, len(scaling.parameters)))
    for index in range(len(scaling.parameters)):
        step = np.zeros(len(scaling.parameters))
        step[index] = 1e-5
        up = _score(scaling.ratios(target, scaling.parameters + step), shares).mean(axis=0)
        down = _score(scaling.ratios(target, scaling.parameters - step), shares).mean(axis=0)
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
    """The parameters that change nothing."""
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
