"""Sections 0.2 and 0.4 by numbers: priors that do not fit, a set instead of a multiset, Platt scaling."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LogisticRegression

from cmtrack import PrevalenceEstimate, estimate_prevalence, evaluate

FloatArray = NDArray[np.float64]


def printed_equation_3(
    estimate: PrevalenceEstimate, scores: FloatArray, trained: float
) -> FloatArray:
    """Equation 3 as printed, of each score: the training prevalence above, the target's below the line."""
    densities = estimate.densities
    if densities is None:
        raise ValueError("equation 3 needs an estimate with densities in bins")
    cells = densities.bin_of(scores)
    f1, f0 = densities.p[cells], densities.q[cells]
    return f1 * trained / (estimate.value * f1 + (1 - estimate.value) * f0)


class Family(NamedTuple):
    """Scores of both classes: how they are drawn, and the true log odds of a score at equal priors."""

    negatives: Callable[[np.random.Generator, int], FloatArray]
    positives: Callable[[np.random.Generator, int], FloatArray]
    log_odds: Callable[[FloatArray], FloatArray]


FAMILIES = {
    "normal, equal variances": Family(
        lambda rng, n: rng.normal(0, 1, n),
        lambda rng, n: rng.normal(1.5, 1, n),
        lambda s: 1.5 * s - 1.125,
    ),
    "exponential, not normal": Family(
        lambda rng, n: rng.exponential(1.0, n),
        lambda rng, n: rng.exponential(4.0, n),
        lambda s: 0.75 * s - np.log(4),
    ),
    "normal, unequal variances": Family(
        lambda rng, n: rng.normal(0, 1, n),
        lambda rng, n: rng.normal(1.0, 0.4, n),
        lambda s: stats.norm.logpdf(s, 1.0, 0.4) - stats.norm.logpdf(s),
    ),
    "probabilities that are right already": Family(
        lambda rng, n: rng.beta(0.5, 1.5, n),
        lambda rng, n: rng.beta(1.5, 0.5, n),
        lambda s: np.log(s / (1 - s)),
    ),
}


def platt(
    seed: int = 4, labelled: int = 5000, target: int = 100_000, share: float = 0.05
) -> pd.DataFrame:
    """Platt scaling of four families of scores: the mean error of its probabilities, and counts in a rare target.

    The sigmoid has the right form where the log odds are linear in the score, whatever the classes' distributions.
    """
    rows = {}
    for name, family in FAMILIES.items():
        rng = np.random.default_rng(seed)
        scores = np.concatenate((family.negatives(rng, labelled), family.positives(rng, labelled)))
        y = np.repeat([0, 1], labelled)
        sigmoid = LogisticRegression(C=np.inf).fit(scores[:, None], y)
        fitted = sigmoid.predict_proba(scores[:, None])[:, 1]
        right = 1 / (1 + np.exp(-family.log_odds(scores)))
        few = round(share * target)
        found = np.concatenate((family.negatives(rng, target - few), family.positives(rng, few)))
        actual = np.repeat([0, 1], [target - few, few])
        moved = sigmoid.decision_function(found[:, None]) + np.log(share / (1 - share))
        summed = evaluate(actual, y_prob=1 / (1 + np.exp(-moved)), labels=[0, 1]).metrics
        honest = estimate_prevalence(found, calibration=(y, scores))
        honest = honest.refused or honest  # the source's method does not test the fit
        rows[name] = {
            "error of Platt's probabilities": float(np.abs(fitted - right).mean()),
            "positives": few,
            "sum of Platt's, right prior": round(summed["prevalence/expected_count"]),
            "calibrated estimate": round(honest.count),
            "its interval": f"{honest.count_low:.0f} to {honest.count_high:.0f}",
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("scores")
