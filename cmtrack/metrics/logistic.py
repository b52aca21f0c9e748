"""Logistic regression on a few features, for rows with weights."""

from __future__ import annotations

import numpy as np
from scipy.optimize import root
from scipy.special import expit

from cmtrack.statistics.inputs import FloatArray


def fit_logistic(
    features: FloatArray,
    positive: FloatArray,
    total: FloatArray,
    ridge: float = 0.0,
    start: FloatArray | None = None,
) -> FloatArray:
    """Return the maximum-likelihood coefficients, shape (P,), or NaN if the search fails.

    The method of Levenberg and Marquardt solves the likelihood equations. A minimizer would compare
    likelihoods instead. Because of rounding, likelihoods become equal when only half of the digits
    of the coefficients are correct.

    ``features``, shape (P, U): values whose magnitude should be about 1. Add a row of ones for an
        intercept.
    ``positive``, shape (U,): weight of the positive rows with these features.
    ``total``, shape (U,): weight of all rows with these features.
    ``ridge``: the strength of the penalty. The log likelihood is reduced by ``ridge`` / 2 times the
        sum of the squared coefficients.
    ``start``, shape (P,): coefficients at which the search starts; 0 by default.
    """
    penalty = ridge * np.eye(len(features))

    def equations(coefficients: FloatArray) -> FloatArray:
        expected = total * expit(coefficients @ features)
        return features @ (expected - positive) + penalty @ coefficients

    def slopes(coefficients: FloatArray) -> FloatArray:
        chance = expit(coefficients @ features)
        return (features * (total * chance * (1 - chance))) @ features.T + penalty

    options = {
        # The tolerance is close to the rounding error, because the influence of each row is
        # computed at the solution.
        "xtol": 1e-8,
        "ftol": 1e-15,
        "gtol": 0.0,
        "maxiter": 2000,
        # All features have the same scale. With the default setting, the first step would be
        # shorter if there were more rows.
        "diag": np.ones(len(features)),
    }
    first = np.zeros(len(features)) if start is None else start
    solution = root(equations, first, jac=slopes, method="lm", options=options)
    if not solution.success:
        return np.full(len(features), np.nan)
    return solution.x
