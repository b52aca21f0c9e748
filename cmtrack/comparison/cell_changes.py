"""Differences of two classifiers' confusion matrices, with a test for each cell."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, ndtr

from cmtrack.comparison.comparability import in_order_of, why_unpaired
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import ComposedStep, Label
from cmtrack.metrics.intervals import holm
from cmtrack.metrics.paired import binomial_pvalues
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions

MAX_CLASSES = 30


@dataclass(frozen=True, eq=False)
class CellChanges:
    """Two confusion matrices of the same data, cell by cell; the second less the first.

    ``labels``: classes, or the groups of a step.
    ``step``: the step's name; empty for the classes.
    ``difference``, of shape (K, K): of the shares of the actual class; NaN where it has no samples.
    ``counts``, of shape (K, K): of samples (or weight).
    ``only_first``, ``only_second``, of shape (K, K): rows of actual class i that only the one, or
    only the other, predicts as j; NaN where rows are not paired.
    ``pvalues``, ``adjusted``, of shape (K, K): that nothing changed; adjusted by Holm over the
    cells in which anything did. NaN where nothing did.
    ``reason``: why the rows are not paired; empty where they are.
    ``mismatches``, of shape (K,): of a step: change of the share of its intragroup mismatches; NaN
    for classes.
    """

    labels: tuple[Label, ...]
    step: str
    difference: FloatArray
    counts: FloatArray
    only_first: FloatArray
    only_second: FloatArray
    pvalues: FloatArray
    adjusted: FloatArray
    reason: str
    mismatches: FloatArray

    @property
    def paired(self) -> bool:
        """True if the tests use that the rows are the same."""
        return not self.reason

    def significant(
        self, confidence_level: float
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Cells that differ significantly, over all cells together."""
        return np.nan_to_num(self.adjusted, nan=1.0) <= 1 - confidence_level

    def gains(self) -> FloatArray:
        """The differences turned so that more is better: hits as they are, confusions with the other sign."""
        return np.where(np.eye(len(self.labels), dtype=bool), self.difference, -self.difference)


def cell_changes(first: Evaluation, second: Evaluation) -> CellChanges:
    """Compare two evaluations of the same data cell by cell.

    Paired rows are tested by the exact mid-p McNemar test on the rows of one actual class that only
    one of the two sends to a cell; with weights or clusters by the normal distribution of the
    clusters' sums. Unpaired ones by the chi-square test of two proportions. With more than 30
    classes the groups of the first step of at most 30 are compared instead, where there is one.

    ValueError if the classes differ.
    """
    second = in_order_of(first, second)
    if first.labels != second.labels:
        raise ValueError(
            f"the classes must be the same, got {list(first.labels)[:5]} and "
            f"{list(second.labels)[:5]}"
        )
    step = _step(first) if first.grouping == second.grouping else None
    labels = first.labels if step is None else step.labels
    tables = [_table(evaluation, step) for evaluation in (first, second)]
    totals = [counts.sum(axis=1) + extra for counts, extra in tables]
    shares = [
        _over(counts, total[:, None]) for (counts, _), total in zip(tables, totals, strict=True)
    ]
    lost = [_over(extra, total) for (_, extra), total in zip(tables, totals, strict=True)]
    apart = why_unpaired(first, second)
    reason = "" if apart is None else apart.between(first, second)
    if reason or not (isinstance(first.rows, Predictions) and isinstance(second.rows, Predictions)):
        pvalues = _two_proportions(tables[0][0], totals[0], tables[1][0], totals[1])
        sides = (np.full(pvalues.shape, math.nan),) * 2
    else:
        sides, pvalues = _paired(first.rows, second.rows, len(labels), step)
    return CellChanges(
        labels,
        "" if step is None else step.name,
        shares[1] - shares[0],
        tables[1][0] - tables[0][0],
        *sides,
        pvalues,
        holm(pvalues),
        reason,
        np.full(len(labels), math.nan) if step is None else lost[1] - lost[0],
    )


def _step(evaluation: Evaluation) -> ComposedStep | None:
    """The first step of the grouping with few enough groups, if the classes are too many."""
    if len(evaluation.labels) <= MAX_CLASSES or evaluation.grouping is None:
        return None
    return next(
        (s for s in evaluation.grouping.compose(evaluation.labels) if len(s.labels) <= MAX_CLASSES),
        None,
    )


def _table(evaluation: Evaluation, step: ComposedStep | None) -> tuple[FloatArray, FloatArray]:
    """Counts, and the mismatches within each group."""
    if step is None:
        counts = evaluation.confusion_matrix.counts.astype(np.float64)
        return counts, np.zeros(len(counts))
    reduced = evaluation.reduced[step.name]
    return reduced.counts.astype(np.float64), reduced.mismatches.astype(np.float64)


def _over(part: FloatArray, whole: FloatArray) -> FloatArray:
    out = np.full(part.shape, math.nan)
    return np.asarray(np.divide(part, whole, out=out, where=np.broadcast_to(whole > 0, part.shape)))


def _paired(
    first: Predictions, second: Predictions, size: int, step: ComposedStep | None
) -> tuple[tuple[FloatArray, FloatArray], FloatArray]:
    actual, cells = _codes(first, second, step)
    moved = np.flatnonzero(cells[0] != cells[1])
    actual, cells = actual[moved], (cells[0][moved], cells[1][moved])
    design = first.design.take(moved)
    weights = design.row_weights
    sides: list[FloatArray] = []
    for cell in cells:
        inside = cell >= 0  # a mismatch is in no cell
        flat = actual[inside] * size + cell[inside]
        sides.append(
            np.bincount(flat, weights[inside], size * size).reshape(size, size).astype(np.float64)
        )
    a, b = sides
    if design.is_independent:
        return (a, b), binomial_pvalues(a, b)[1]
    pvalues: FloatArray = np.full((size, size), math.nan)
    for i, j in zip(*np.nonzero(a + b), strict=True):
        gain = ((cells[1] == j).astype(float) - (cells[0] == j)) * (actual == i)
        pvalues[i, j] = 2 * float(ndtr(-abs(design.sum_statistic(gain))))
    return (a, b), pvalues


def _codes(
    first: Predictions, second: Predictions, step: ComposedStep | None
) -> tuple[IntArray, tuple[IntArray, IntArray]]:
    """Actual class, and the cell's column in either matrix; -1 for a mismatch."""
    if step is None:
        return first.actual, (first.predicted, second.predicted)
    group = step.group_of_class
    columns = []
    for rows in (first, second):
        cell = group[rows.predicted]
        missed = (cell == group[rows.actual]) & ~step.accept[rows.actual, rows.predicted]
        columns.append(np.where(missed, -1, cell))
    return group[first.actual], (columns[0], columns[1])


def _two_proportions(a: FloatArray, n: FloatArray, b: FloatArray, m: FloatArray) -> FloatArray:
    """Pearson's test of a / n = b / m for each cell; NaN where the cell is empty or full on both sides."""
    both, all_rows = a + b, (n + m)[:, None]
    pooled = _over(both, all_rows)
    variance = (
        pooled
        * (1 - pooled)
        * (_over(np.ones_like(a), n[:, None]) + _over(np.ones_like(b), m[:, None]))
    )
    gap = _over(a, n[:, None]) - _over(b, m[:, None])
    square = np.divide(
        gap**2, variance, out=np.full(a.shape, math.nan), where=np.nan_to_num(variance) > 0
    )
    return np.asarray(chdtrc(1, square))
