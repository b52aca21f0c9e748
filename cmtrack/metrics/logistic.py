"""Logistic regression on a few features, for rows with weights."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from cmtrack.statistics.inputs import FloatArray

_MOST_STEPS = 100
_MOST_HALVINGS = 50
_LAST_STEP = 1e-8
"""Size of the last step. Each step squares the error, so after this step the rest is rounding."""


def fit_logistic(
    features: FloatArray,
    positive: FloatArray,
    total: FloatArray,
    ridge: float = 0.0,
    start: FloatArray | None = None,
) -> FloatArray:
    """Return the maximum-likelihood coefficients, shape (P,), or NaN if the search fails.

    Newton's method solves the likelihood equations. A step is halved until it reduces the norm of
    the equations. A minimizer would compare likelihoods instead. Because of rounding, likelihoods
    become equal when only half of the digits of the coefficients are correct.

    ``features``, shape (P, U): values whose magnitude should be about 1. Add a row of ones for an
        intercept.
    ``positive``, shape (U,): weight of the positive rows with these features.
    ``total``, shape (U,): weight of all rows with these features.
    ``ridge``: the strength of the penalty. The log likelihood is reduced by ``ridge`` / 2 times the
        sum of the squared coefficients.
    ``start``, shape (P,): coefficients at which the search starts; 0 by default.
    """
    penalty = ridge * np.eye(len(features))

    def equations(coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the equations, which are 0 at the solution, and their derivatives."""
        chance = expit(coefficients @ features)
        expected = total * chance
        values = features @ (expected - positive) + penalty @ coefficients
        return values, (features * (expected * (1 - chance))) @ features.T + penalty

    coefficients = np.zeros(len(features)) if start is None else start
    values, slopes = equations(coefficients)
    for _ in range(_MOST_STEPS):
        try:
            step = np.linalg.solve(slopes, values)
        except np.linalg.LinAlgError:
            break
        if np.abs(step).max() <= _LAST_STEP * (1 + np.abs(coefficients).max()):
            return coefficients - step
        size = np.linalg.norm(values)
        for _ in range(_MOST_HALVINGS):
            values, slopes = equations(coefficients - step)
            if np.linalg.norm(values) < size:
                break
            step = step / 2
        else:
            break
        coefficients = coefficients - step
    return np.full(len(features), np.nan)
