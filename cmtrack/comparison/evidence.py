"""What the runs' evaluations say about a criterion: values and the covariance of their errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.differences import why_no_error, why_unpaired
from cmtrack.metrics.catalog import lookup
from cmtrack.metrics.influence import covariance
from cmtrack.metrics.intervals import normal_quantile
from cmtrack.statistics.inputs import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class Evidence:
    """R runs in M metrics.

    Attributes
    ----------
    values : ndarray of shape (R, M)
        Larger is better, except where ``folded``.
    covariance : ndarray of shape (R, M, R, M)
        Of the errors; 0 between runs that are not paired.
    folded : bool
        A single metric that is best nearest to zero, with its sign.
    known : ndarray of shape (R,), bool
        Whether the error of each metric is known.
    unpaired : dict of int to str
        Why a run is not paired with the others, by its place.
    """

    values: FloatArray
    covariance: FloatArray
    folded: bool
    known: BoolArray
    unpaired: dict[int, str]

    def of_metric(self, m: int) -> tuple[FloatArray, FloatArray]:
        """Values (R,) and covariance (R, R) of one metric."""
        return self.values[:, m], self.covariance[:, m, :, m]

    def weighted(self, weights: Sequence[float]) -> tuple[FloatArray, FloatArray]:
        """Values and covariance of the weighted sum, each metric in units of its runs' median standard error."""
        factors = np.asarray(weights, dtype=np.float64) / self._typical_errors()
        return self.values @ factors, np.einsum("m,imjn,n->ij", factors, self.covariance, factors)

    def _typical_errors(self) -> FloatArray:
        variances = np.einsum("imim->im", self.covariance)[self.known]
        typical = np.sqrt(np.median(variances, axis=0)) if len(variances) else np.ones(self.values.shape[1])
        return np.where(typical > 0, typical, 1.0)


def gather(evaluations: Sequence[BaseEvaluation], criterion: Criterion) -> Evidence:
    """Values and errors of a criterion's metrics.

    Runs that kept their rows are paired with each other: their errors come from the influence values of the same
    rows. Any other run's error stands for itself, which makes its differences look less certain than they are.

    Parameters
    ----------
    evaluations : sequence of evaluations, length R
        Of the same data, with all of the criterion's metrics defined.
    criterion : Criterion
    """
    size, names = len(evaluations), criterion.metrics
    folded = criterion.single and criterion.direction == "nearest zero"
    raw = np.array([[evaluation.metrics[name] for name in names] for evaluation in evaluations]).reshape(size, -1)
    signs = np.array(
        [[1.0 if folded else _sign(name, value) for name, value in zip(names, row, strict=True)] for row in raw]
    )
    unpaired = _unpaired(evaluations)
    joint = np.zeros((size, len(names), size, len(names)))
    inside = [r for r in range(size) if r not in unpaired]
    columns: list[FloatArray] = []
    places: list[tuple[int, int]] = []
    known = np.ones(size, dtype=bool)
    for r, evaluation in enumerate(evaluations):
        for m, name in enumerate(names):
            psi = evaluation.influence(name) if r in inside else None
            if psi is not None and np.isfinite(psi).all():
                columns.append(psi * signs[r, m])
                places.append((r, m))
                continue
            error = own_error(evaluation, name)
            known[r] &= math.isfinite(error)
            joint[r, m, r, m] = error**2 if math.isfinite(error) else 0.0
            if r in inside:
                unpaired.setdefault(r, why_no_error(evaluation, name))
    if columns:
        rows = evaluations[inside[0]].rows
        assert rows is not None  # it is paired
        found = covariance(np.column_stack(columns), rows.weights, rows.clusters)
        first, metric = (np.array(index) for index in zip(*places, strict=True))
        joint[first[:, None], metric[:, None], first[None, :], metric[None, :]] = found
    return Evidence(raw * signs, joint, folded, known, unpaired)


def own_error(evaluation: BaseEvaluation, name: str) -> float:
    """A metric's standard error; from its interval's width where there is no other; NaN where there is none."""
    error = evaluation.standard_errors.get(name, math.nan)
    if math.isfinite(error):
        return error
    low, high = evaluation.intervals.get(name, (math.nan, math.nan))
    return (high - low) / (2 * normal_quantile(evaluation.confidence_level))


def _sign(name: str, value: float) -> float:
    """What makes larger better; nearest to zero, it gives minus the distance."""
    better = lookup(name).better
    if better == "nearest zero":
        return 1.0 if value < 0 else -1.0
    return 1.0 if better == "higher" else -1.0


def _unpaired(evaluations: Sequence[BaseEvaluation]) -> dict[int, str]:
    """Which runs cannot be compared row by row with the others, and why."""
    first = next((e for e in evaluations if e.rows is not None), None)
    out = {}
    for r, evaluation in enumerate(evaluations):
        if first is None or evaluation.rows is None:
            out[r] = "its predictions by row were not kept"
        elif evaluation is not first:
            reason = why_unpaired(first, evaluation)
            if reason:
                out[r] = reason
    if len(evaluations) - len(out) == 1 and out:
        alone = next(r for r in range(len(evaluations)) if r not in out)
        out[alone] = "no other run kept its predictions by row"
    return out
