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
"""Most classes to compare cell by cell; with more classes, the groups of a step are compared."""


@dataclass(frozen=True, eq=False)
class CellChanges:
    """Cell-by-cell differences of two confusion matrices of the same data: second minus first.

    ``labels``: classes, or the groups of a step.
    ``step``: the step's name; empty for the classes.
    ``difference``, of shape (K, K): difference of the shares of the actual class's rows; NaN if the
    class has no rows.
    ``counts``, of shape (K, K): difference of the numbers of rows (or of their weights).
    ``only_first``, ``only_second``, of shape (K, K): rows of actual class i that only the first, or
    only the second, predicts as j; NaN if rows are not paired.
    ``pvalues``, ``adjusted``, of shape (K, K): p-values for no change in a cell, and the same
    adjusted by Holm's method over all changed cells. NaN for cells without a change.
    ``reason``: why the rows are not paired; empty if they are.
    ``mismatches``, of shape (K,): for a step, the change in the share of each group's rows that are
    intragroup mismatches; NaN for classes.
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
        """True if the tests pair the rows."""
        return not self.reason

    def significant(
        self, confidence_level: float
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Mark the cells that differ significantly, adjusted for all cells."""
        return np.nan_to_num(self.adjusted, nan=1.0) <= 1 - confidence_level

    def gains(self) -> FloatArray:
        """Return the differences with the sign of confusions reversed, so that more is better."""
        return np.where(np.eye(len(self.labels), dtype=bool), self.difference, -self.difference)


def cell_changes(first: Evaluation, second: Evaluation) -> CellChanges:
    """Compare two evaluations of the same data cell by cell.

    For paired rows, each cell has an exact mid-p McNemar test. It uses the rows of an actual class
    that only one of the two predicts as the cell's class. With weights or clusters, the test uses
    the normal distribution of the clusters' sums instead. Rows that are not paired have the
    chi-square test of two proportions. If the evaluations have more than 30 classes, the groups of
    the first step with at most 30 groups are compared instead, if such a step exists.

    ValueError if the classes differ.
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
    """Return the first step with at most 30 groups, if the evaluation has more than 30 classes."""
    if len(evaluation.labels) <= MAX_CLASSES or evaluation.grouping is None:
        return None
    for step in evaluation.grouping.compose(evaluation.labels):
        if len(step.labels) <= MAX_CLASSES:
            return step
    return None


@dataclass(frozen=True, eq=False)
class _Table:
    """Counts of a confusion matrix, and the mismatches within each group of a step."""

    counts: FloatArray
    mismatches: FloatArray

    @classmethod
    def of(cls, evaluation: Evaluation, step: ComposedStep | None) -> _Table:
        """Return the table of the classes, or of a step's groups."""
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
    """Return a quotient that is NaN if the denominator is 0."""
    shape = numerator.shape
    out = np.full(shape, math.nan)
    is_defined = np.broadcast_to(denominator > 0, shape)
    return np.asarray(np.divide(numerator, denominator, out=out, where=is_defined))


def _paired(
    first: Predictions, second: Predictions, size: int, step: ComposedStep | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the numbers of rows that only one side has in each cell, and the cells' p-values."""
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
        """Count the moved rows in each cell; a mismatch is not in any cell."""
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
    """Return the column of each row's cell; -1 for a mismatch within the group."""
    if step is None:
        return rows.predicted
    groups = step.group_of_class
    cells = groups[rows.predicted]
    mismatched = (cells == groups[rows.actual]) & ~step.accept[rows.actual, rows.predicted]
    return np.where(mismatched, -1, cells)


def _two_proportions(before: _Table, after: _Table) -> FloatArray:
    """Return the p-value of Pearson's test of equal shares for each cell.

    It is NaN if the cell is empty on both sides, or has all rows of its class on both sides.
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
