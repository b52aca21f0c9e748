"""Differences between the confusion matrices of two classifiers, with a test for each cell."""

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
"""Largest number of classes to compare cell by cell.

If there are more classes, cmtrack compares the groups of a grouping step.
"""


@dataclass(frozen=True, eq=False)
class CellChanges:
    """Cell-by-cell differences of two confusion matrices of the same data: second minus first.

    ``labels``: the classes, or the groups of a step if groups are compared.
    ``step``: the step's name; empty if classes are compared.
    ``difference``, of shape (K, K): for each cell, the change in the share of its actual class's
    rows; NaN if the class has no rows.
    ``counts``, of shape (K, K): for each cell, the change in the number or total weight of its
    rows.
    ``only_first``, of shape (K, K): number of rows of actual class i that only the first classifier
    predicts as j; NaN if rows are not paired.
    ``only_second``, of shape (K, K): number of rows of actual class i that only the second
    classifier predicts as j; NaN if rows are not paired.
    ``pvalues``, of shape (K, K): p-value of the hypothesis that a cell does not change; NaN if the
    data show no change in the cell.
    ``adjusted``, of shape (K, K): the p-values adjusted by Holm's method for the number of changed
    cells.
    ``reason``: reason why the rows are not paired; empty if they are paired.
    ``mismatches``, of shape (K,): change in the share of mismatches among the rows of each group;
    NaN if classes are compared.
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
        """True if the tests compare the two classifiers row by row."""
        return not self.reason

    def significant(
        self, confidence_level: float
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Mark the cells whose change is significant after adjustment for all changed cells."""
        return np.nan_to_num(self.adjusted, nan=1.0) <= 1 - confidence_level

    def gains(self) -> FloatArray:
        """Return the differences, with the sign of confusions reversed so that larger is better."""
        return np.where(np.eye(len(self.labels), dtype=bool), self.difference, -self.difference)


def cell_changes(first: Evaluation, second: Evaluation) -> CellChanges:
    """Compare two evaluations of the same data cell by cell.

    If the rows are paired, each cell is tested by McNemar's mid-p test. McNemar's test counts the
    rows that only one of the two evaluations puts into the cell. If the rows have weights or
    clusters, McNemar's test is replaced by a test that assumes that the sums over clusters are
    normally distributed. If the rows are not paired, each cell is tested by a chi-square test that
    compares two proportions. If the evaluations have more than 30 classes, the groups of the first
    step with at most 30 groups are compared instead, if such a step exists.

    Raises ValueError if the classes differ.
    """
    second = in_order_of(first, second)
    if first.labels != second.labels:
        raise ValueError(
            f"the classes must be the same, got {list(first.labels)[:5]} and "
            f"{list(second.labels)[:5]}"
        )
    step = _step(first) if first.grouping == second.grouping else None
    before = _Table.of(first, step)
    after = _Table.of(second, step)
    mismatches = after.mismatch_shares - before.mismatch_shares
    difference = after.counts - before.counts
    unpaired = why_unpaired(first, second)
    reason = "" if unpaired is None else unpaired.between(first, second)
    if reason or not (isinstance(first.rows, Predictions) and isinstance(second.rows, Predictions)):
        only_first = np.full(difference.shape, math.nan)
        only_second = only_first
        pvalues = _two_proportions(before, after)
    else:
        only_first, only_second, pvalues = _paired(first.rows, second.rows, len(difference), step)
    return CellChanges(
        labels=first.labels if step is None else step.labels,
        step="" if step is None else step.name,
        difference=after.shares - before.shares,
        counts=difference,
        only_first=only_first,
        only_second=only_second,
        pvalues=pvalues,
        adjusted=holm(pvalues),
        reason=reason,
        mismatches=np.full_like(mismatches, math.nan) if step is None else mismatches,
    )


def _step(evaluation: Evaluation) -> ComposedStep | None:
    """Return the step whose groups replace more than 30 classes; None for at most 30 classes.

    The function chooses the first step with at most 30 groups.
    """
    if len(evaluation.labels) <= MAX_CLASSES or evaluation.grouping is None:
        return None
    for step in evaluation.grouping.compose(evaluation.labels):
        if len(step.labels) <= MAX_CLASSES:
            return step
    return None


@dataclass(frozen=True, eq=False)
class _Table:
    """Counts of a confusion matrix, with the number of mismatches within each group of a step."""

    counts: FloatArray
    mismatches: FloatArray

    @classmethod
    def of(cls, evaluation: Evaluation, step: ComposedStep | None) -> _Table:
        """Return the table of an evaluation's classes, or of the groups of a step."""
        if step is None:
            counts = evaluation.confusion_matrix.counts.astype(np.float64)
            return cls(counts, np.zeros(len(counts)))
        reduced = evaluation.reduced[step.name]
        return cls(reduced.counts.astype(np.float64), reduced.mismatches.astype(np.float64))

    @property
    def totals(self) -> FloatArray:
        """Number of rows of each class or group, including mismatches, shape (K,)."""
        return np.asarray(self.counts.sum(axis=1) + self.mismatches)

    @property
    def shares(self) -> FloatArray:
        return _over(self.counts, self.totals[:, None])

    @property
    def mismatch_shares(self) -> FloatArray:
        return _over(self.mismatches, self.totals)


def _over(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Return the quotient of two numbers; NaN if the denominator is 0."""
    shape = numerator.shape
    out = np.full(shape, math.nan)
    is_defined = np.broadcast_to(denominator > 0, shape)
    return np.asarray(np.divide(numerator, denominator, out=out, where=is_defined))


def _paired(
    first: Predictions, second: Predictions, size: int, step: ComposedStep | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the numbers of rows that only one evaluation puts into each cell, and p-values."""
    first_cells = _cells(first, step)
    second_cells = _cells(second, step)
    moved = np.flatnonzero(first_cells != second_cells)
    actual = first.actual[moved]
    if step is not None:
        actual = step.group_of_class[actual]
    first_cells = first_cells[moved]
    second_cells = second_cells[moved]
    design = first.design.take(moved)

    def count(cells: IntArray) -> FloatArray:
        """Count the moved rows in each cell; mismatches do not belong to any cell."""
        inside = cells >= 0
        flat = actual[inside] * size + cells[inside]
        counts = np.bincount(flat, design.row_weights[inside], size * size)
        return counts.reshape(size, size).astype(np.float64)

    only_first = count(first_cells)
    only_second = count(second_cells)
    if design.is_independent:
        return only_first, only_second, binomial_pvalues(only_first, only_second)[1]
    pvalues: FloatArray = np.full((size, size), math.nan)
    for i, j in zip(*np.nonzero(only_first + only_second), strict=True):
        gain = ((second_cells == j).astype(float) - (first_cells == j)) * (actual == i)
        pvalues[i, j] = 2 * float(ndtr(-abs(design.sum_statistic(gain))))
    return only_first, only_second, pvalues


def _cells(rows: Predictions, step: ComposedStep | None) -> IntArray:
    """Return the predicted class or group of each row; -1 for a mismatch within its group."""
    if step is None:
        return rows.predicted
    groups = step.group_of_class
    cells = groups[rows.predicted]
    mismatched = (cells == groups[rows.actual]) & ~step.accept[rows.actual, rows.predicted]
    return np.where(mismatched, -1, cells)


def _two_proportions(before: _Table, after: _Table) -> FloatArray:
    """Return the p-value of Pearson's test of equal shares for each cell.

    The p-value is NaN if the cell is empty in both tables, or if it contains all rows of its class
    in both tables.
    """
    n = before.totals[:, None]
    m = after.totals[:, None]
    ones = np.ones_like(before.counts)
    pooled = _over(before.counts + after.counts, n + m)
    variance = pooled * (1 - pooled) * (_over(ones, n) + _over(ones, m))
    square = np.full(ones.shape, math.nan)
    is_defined = np.nan_to_num(variance) > 0
    np.divide((before.shares - after.shares) ** 2, variance, out=square, where=is_defined)
    return np.asarray(chdtrc(1, square))
