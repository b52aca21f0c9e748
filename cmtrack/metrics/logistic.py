"""Logistic regression of weighted rows on a few features."""

from __future__ import annotations

import numpy as np
from scipy.optimize import root
from scipy.special import expit

from cmtrack.statistics.inputs import FloatArray


def fit_logistic(
    features: FloatArray, positive: FloatArray, total: FloatArray, ridge: float = 0.0
) -> FloatArray:
    """Return the maximum-likelihood coefficients, shape (P,); NaN if they are not found.

    The method of Levenberg and Marquardt solves the likelihood equations. A minimizer would compare
    likelihoods, which become equal by rounding when the coefficients have only half of their
    digits.

    ``features``, shape (P, U): values of about 1; add a row of ones for an intercept.
    ``positive``, ``total``, shape (U,): weight of the positive rows and of all rows that have these
        features.
    ``ridge``: half of it, times the sum of the squared coefficients, is subtracted from the log
        likelihood.
    """
    penalty = ridge * np.eye(len(features))

    def equations(coefficients: FloatArray) -> FloatArray:
        expected = total * expit(coefficients @ features)
        return features @ (expected - positive) + penalty @ coefficients

    def slopes(coefficients: FloatArray) -> FloatArray:
        return fisher_information(features, total, coefficients) + penalty

    options = {
        # Close to rounding, because the influence of each row is computed at the solution.
        "xtol": 1e-8,
        "ftol": 1e-15,
        "gtol": 0.0,
        "maxiter": 2000,
        # All features have the same scale. By default more rows would make the first step shorter.
        "diag": np.ones(len(features)),
    }
    solution = root(equations, np.zeros(len(features)), jac=slopes, method="lm", options=options)
    if not solution.success:
        return np.full(len(features), np.nan)
    return solution.x


def fisher_information(
    features: FloatArray, total: FloatArray, coefficients: FloatArray
) -> FloatArray:
    """Return the Fisher information of the coefficients, shape (P, P)."""
    chance = expit(coefficients @ features)
    return (features * (total * chance * (1 - chance))) @ features.T
