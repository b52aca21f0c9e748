"""Metrics that are functions of sums over the classes of a table, and their influence."""

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
"""Column 0 has no step, and each further column has a step of one argument.

Derivatives are taken by four sums of each class, and a metric has at most four terms.
"""


class ClassSums(NamedTuple):
    """Rows of each class, shape (K,), and of all classes.

    ``agreed``: rows whose actual and predicted group are equal: the hits and, in a reduced matrix,
        the mismatches.
    ``all_actual``, ``all_predicted``: the sums of ``actual`` and of ``predicted``. They are
        constants and may differ by rounding. Keeping both makes differences exact: if a class has
        all rows, the other classes have exactly 0.
    """

    hits: Any
    agreed: Any
    actual: Any
    predicted: Any
    all_actual: float
    all_predicted: float

    @classmethod
    def of_table(cls, table: Table) -> ClassSums:
        """Return the sums of a table."""
        cells = table.cells
        agreed = cells.by_actual(cells.weight * (cells.actual == cells.predicted))
        totals = (float(table.actual.sum()), float(table.predicted.sum()))
        return cls(table.hits, agreed, table.actual, table.predicted, *totals)


@dataclass(frozen=True)
class OfClassSums(Fraction):
    """A metric ``outer(*sums)`` of the sums over the classes of ``terms(class_sums)``.

    The sums include only the classes that averages include. Both functions must be elementwise and
    accept complex numbers, because the influence is their derivative by complex steps.

    A metric must not change if all weights are multiplied by the same number, so it is a function
    of shares. Its derivative treats the totals as constants. Subtracting the mean of the derivative
    gives the influence.
    """

    terms: Callable[[ClassSums], tuple[Any, ...]]
    outer: Callable[..., Any]

    def __call__(self, table: Table) -> float:
        with np.errstate(all="ignore"):
            sums, _ = table.once(_expand, self)
            return float(self.outer(*sums))

    def influence(self, table: Table) -> FloatArray:
        """Return the influence per cell, shape (C,)."""
        with np.errstate(all="ignore"):
            psi: FloatArray = table.once(_influence, self)
        return psi

    def denominator(self, table: Table) -> None:
        """Return None, because every row counts."""


def _stepped(table: Table) -> ClassSums:
    """Return the sums without a step and with a step in each of the first four, shape (5, K).

    The first point gives the value of each metric, and the other four give its derivatives.
    """
    classes: ClassSums = table.once(ClassSums.of_table)
    hits, agreed, actual, predicted = _steps_of(np.array(classes[:4]))
    return classes._replace(hits=hits, agreed=agreed, actual=actual, predicted=predicted)


def _expand(table: Table, metric: OfClassSums) -> tuple[FloatArray, FloatArray]:
    """Return the sums of the terms, shape (m,), and their derivatives by class, (m, 4, K)."""
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
    """Return n numbers (n, ...) without a step and with a step in each, shape (n, n + 1, ...)."""
    n = len(numbers)
    steps = _STEPS[:n, : n + 1].reshape(n, n + 1, *[1] * (numbers.ndim - 1))
    return numbers[:, None] + steps
