"""Metrics that are computed from sums over the classes of a table, and their influence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmtrack.metrics.cells import Table
from cmtrack.metrics.function import Fraction
from cmtrack.statistics.inputs import FloatArray

_STEP = 1e-30
_STEPS = 1j * _STEP * np.eye(4, 5, k=1)
"""Column 0 contains no step, and each further column contains a step for one argument.

Derivatives are computed with respect to four sums per class. A metric may use at most four terms.
"""


class ClassSums(NamedTuple):
    """Numbers of rows in each class (arrays of shape (K,)), and in all classes together.

    ``agreed``: number of rows whose actual and predicted group are equal. These rows are the hits
        and, in a reduced matrix, the mismatches.
    ``all_actual``, ``all_predicted``: the sums of ``actual`` and of ``predicted``. They are
        constants and may differ by rounding. Two separate sums make differences exact: if all rows
        belong to one class, the difference for the other classes is exactly 0.
    """

    hits: Any
    agreed: Any
    actual: Any
    predicted: Any
    all_actual: float
    all_predicted: float

    @classmethod
    def of_table(cls, table: Table) -> ClassSums:
        """Return the sums over the classes of a table."""
        cells = table.cells
        agreed = cells.by_actual(cells.weight * (cells.actual == cells.predicted))
        totals = (float(table.actual.sum()), float(table.predicted.sum()))
        return cls(table.hits, agreed, table.actual, table.predicted, *totals)


@dataclass(frozen=True)
class OfClassSums(Fraction):
    """A metric ``outer(*sums)`` of the sums over the classes of ``terms(class_sums)``.

    The sums include only the classes that averages include. Both functions must work elementwise
    and accept complex numbers, because the influence is their derivative, which is computed with
    complex steps.

    A metric must not change if all weights are multiplied by the same number, so it depends only on
    the shares of the classes. Its derivative treats the totals as constants. Subtracting the mean
    of the derivative gives the influence.
    """

    terms: Callable[[ClassSums], tuple[Any, ...]]
    outer: Callable[..., Any]

    def __call__(self, table: Table) -> float:
        with np.errstate(all="ignore"):
            sums, _ = table.once(_expand, self)
            return float(self.outer(*sums))

    def influence(self, table: Table) -> FloatArray:
        """Return the influence of a row in each cell, as an array of shape (C,)."""
        with np.errstate(all="ignore"):
            psi: FloatArray = table.once(_influence, self)
        return psi

    def denominator(self, table: Table) -> None:
        """Return None, because every row counts."""


def _stepped(table: Table) -> ClassSums:
    """Return the sums, first without a step and then with a step in each of the first four sums.

    Each sum is an array of shape (5, K). The value of a metric is computed from the first row of
    the arrays, and its derivatives from the other four rows.
    """
    classes: ClassSums = table.once(ClassSums.of_table)
    hits, agreed, actual, predicted = _steps_of(np.array(classes[:4]))
    return classes._replace(hits=hits, agreed=agreed, actual=actual, predicted=predicted)


def _expand(table: Table, metric: OfClassSums) -> tuple[FloatArray, FloatArray]:
    """Return the sums of the m terms, and their derivatives for each class, shape (m, 4, K)."""
    terms = np.where(table.kept, np.array(metric.terms(table.once(_stepped))), 0.0)
    return terms[:, 0].real.sum(axis=1), terms[:, 1:].imag / _STEP


def _influence(table: Table, metric: OfClassSums) -> FloatArray:
    sums, derivatives = table.once(_expand, metric)
    slopes = np.imag(metric.outer(*_steps_of(sums)))[1:] / _STEP
    by_class = np.tensordot(slopes, derivatives, axes=1) * table.total
    by_hit, by_agreed, by_actual, by_predicted = by_class
    cells = table.cells
    i = cells.actual
    j = cells.predicted
    psi = cells.hit * by_hit[i] + (i == j) * by_agreed[i] + by_actual[i] + by_predicted[j]
    return psi - float(cells.weight @ psi) / cells.total


def _steps_of(numbers: FloatArray) -> npt.NDArray[np.complex128]:
    """Return n numbers without a step, then with a step in each number, shape (n, n + 1, ...)."""
    n = len(numbers)
    steps = _STEPS[:n, : n + 1].reshape(n, n + 1, *[1] * (numbers.ndim - 1))
    return numbers[:, None] + steps
