"""Randomisation test of a difference: what if each row's two predictions had been exchanged by a coin?"""

from __future__ import annotations

import math

import numpy as np

from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.from_arrays import evaluate_rows
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.spans import SpanRows


def randomization_test(
    first: Evaluation, second: Evaluation, metric: str, *, n_resamples: int = 1000, seed: int = 0
) -> float:
    """Two-sided p-value of a difference in any metric, without a distribution's assumption.

    Parameters
    ----------
    first, second : Evaluation
        Of the same rows, both with rows.
    metric : str
    n_resamples : int, default 1000
    seed : int, default 0

    Returns
    -------
    float
        ``(1 + number of exchanges with a difference at least as large) / (1 + n_resamples)``.

    Raises
    ------
    ValueError
        If a side has no rows, the rows differ, or the metric is undefined on one side.
    """
    if not (isinstance(first, Evaluation) and isinstance(second, Evaluation)):
        kinds = type(first).__name__, type(second).__name__
        raise TypeError(f"a randomisation test takes two Evaluations, got {kinds[0]} and {kinds[1]}")
    a, b = first.rows, second.rows
    if a is None or b is None or first.labels_digest != second.labels_digest or first.labels != second.labels:
        raise ValueError("a randomisation test needs two evaluations of the same rows, both with their rows")
    if isinstance(a, SpanRows) or isinstance(b, SpanRows):
        raise ValueError("a randomisation test exchanges predictions row by row; spans have none that two models share")
    observed = first.metrics[metric] - second.metrics[metric]
    if not math.isfinite(observed):
        raise ValueError(f"{metric!r} is undefined in one of the evaluations")
    rng = np.random.default_rng(seed)
    extreme = 0
    for _ in range(n_resamples):
        swap = rng.random(len(a)) < 0.5
        parts = []
        for one, other in ((a, b), (b, a)):
            probabilities = None
            if one.probabilities is not None and other.probabilities is not None:
                probabilities = np.where(swap[:, None], other.probabilities, one.probabilities)
            predicted = np.where(swap, other.predicted, one.predicted)
            rows = Predictions.from_arrays(one.labels, one.actual, predicted, probabilities, one.weights, one.clusters)
            parts.append(evaluate_rows(rows, first))
        gap = parts[0].metrics[metric] - parts[1].metrics[metric]
        # sums in another order differ in the last digits; ties count
        extreme += not abs(gap) < abs(observed) - 1e-12
    return (1 + extreme) / (1 + n_resamples)
