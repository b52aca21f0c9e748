"""Metrics of each class or group, for the sections ``class/`` and ``reduced/<step>/``.

All metrics except the counts divide the hits of a class by a combination of its row total and its
column total. Such a ratio is NaN if its denominator is 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.metrics.cells import Cells, Table, ratio
from cmtrack.metrics.class_curves import CLASS_CURVES
from cmtrack.metrics.class_sums import ClassSums
from cmtrack.metrics.function import Function
from cmtrack.metrics.metric import Metric, Section
from cmtrack.statistics.inputs import FloatArray


@dataclass(frozen=True)
class ClassRatio(Function):
    """The hits of a class, divided by a combination of its row total and its column total.

    The value of a class with index i is ``hits × C_ii / (actual × row total + predicted × column
    total + common × C_ii)``.

    If ``common`` is -1, the denominator counts each row of data in the table's row or column of the
    class once.
    """

    hits: float
    actual: float
    predicted: float
    common: float = 0.0

    def __call__(self, table: Table) -> FloatArray:
        """Return the ratio of each class, shape (K,), which is NaN if its denominator is 0."""
        return ratio(self.hits * table.hits, self.below(table))

    def below(self, table: Table | ClassSums) -> FloatArray:
        """Return the denominator of each class, shape (K,)."""
        margins = self.actual * table.actual + self.predicted * table.predicted
        return margins + self.common * table.hits

    def spread(self, table: Table) -> FloatArray:
        """Return the standard error of each class's ratio, shape (K,)."""
        squares = self._squares(table.cells, self.hits, self(table))
        return ratio(np.sqrt(squares), self.below(table))

    def size(self, table: Table) -> FloatArray:
        """Return the effective number of rows in each class's denominator, shape (K,)."""
        # If hits is 0 and value is 1, the residual of a row is minus its part of the denominator.
        squares = self._squares(table.cells, 0.0, np.ones(table.cells.size))
        return ratio(self.below(table) ** 2, squares, 0.0)

    def _squares(self, cells: Cells, hits: float, values: FloatArray) -> FloatArray:
        """Return sums of squared weights times squares of ``hits × hit - value × denominator``."""
        i = cells.actual
        j = cells.predicted
        # A diagonal cell belongs to both the row and the column of a class, but must count only
        # once.
        is_diagonal = i == j
        of_diagonal = self.actual + self.predicted + self.common * cells.hit
        of_actual = self.actual * values[i]
        of_predicted = self.predicted * values[j]
        row = np.where(is_diagonal, hits * cells.hit - of_diagonal * values[i], of_actual)
        column = np.where(is_diagonal, 0.0, of_predicted)
        squares = cells.squares
        return cells.by_actual(squares * row**2) + cells.by_predicted(squares * column**2)

    def influence_of(self, table: Table, k: int) -> FloatArray:
        """Return the influence of a row in each cell on the ratio of class k, shape (C,)."""
        cells = table.cells
        row = 1.0 * (cells.actual == k)
        column = 1.0 * (cells.predicted == k)
        hits = self.hits * row * cells.hit
        below = self.actual * row + self.predicted * column + self.common * row * column
        base = float(cells.weight @ below)
        if base == 0:
            return np.full(len(below), math.nan)
        value = float(cells.weight @ hits) / base
        return (hits - value * below) * (cells.total / base)


@dataclass(frozen=True)
class ClassCount(Function):
    """The number of rows in each actual class, or only the number of mismatches in the class.

    A mismatch is a row whose group is predicted correctly, but whose pair of actual and predicted
    class is not accepted.
    """

    mismatches: bool = False

    @property
    def of_labels(self) -> bool:
        """True for the count of all rows, which depends only on the actual labels."""
        return not self.mismatches

    def __call__(self, table: Table) -> FloatArray:
        """Return the count of each class, shape (K,)."""
        if not self.mismatches:
            return table.actual
        cells = table.cells
        return cells.by_actual(cells.weight * cells.is_mismatch)

    def spread(self, table: Table) -> FloatArray:
        """Return the standard error of each class's count, shape (K,)."""
        squares = table.cells.squares
        inside = table.cells.by_actual(
            squares * table.cells.is_mismatch if self.mismatches else squares
        )
        share = self(table) / table.total
        return np.sqrt(inside * (1 - share) ** 2 + (squares.sum() - inside) * share**2)

    def influence_of(self, table: Table, k: int) -> FloatArray:
        """Return n times the influence by cell on the share that class k's count is of all rows."""
        cells = table.cells
        inside = 1.0 * (cells.actual == k)
        if self.mismatches:
            inside = inside * cells.is_mismatch
        return (inside - float(cells.weight @ inside) / cells.total) * cells.total


PRECISION = ClassRatio(1, 0, 1)
RECALL = ClassRatio(1, 1, 0)
F1 = ClassRatio(2, 1, 1)
_NEVER = "never predicted"
_NO_ACTUAL = "no actual rows"
_NEITHER = "neither actual nor predicted rows"
_SHARE: dict[str, Any] = {"of": "classes", "low": 0.0, "high": 1.0, "headline": False}
_COUNT: dict[str, Any] = {
    "of": "classes",
    "low": 0.0,
    "better": "",
    "interval": "count",
    "headline": False,
}
_SOKOLOVA = "Sokolova & Lapalme (2009)"
_MARKOULIDAKIS = "Markoulidakis et al. (2021)"

CLASS = Section(
    "class",
    "Each class",
    (
        Metric(
            "class/<label>/precision",
            PRECISION,
            interval="wilson",
            formula="C_ii / predicted total",
            source=_SOKOLOVA,
            reason=_NEVER,
            **_SHARE,
        ),
        Metric(
            "class/<label>/recall",
            RECALL,
            interval="wilson",
            one_sided=True,
            formula="C_ii / actual total",
            source=_SOKOLOVA,
            reason=_NO_ACTUAL,
            **_SHARE,
        ),
        Metric(
            "class/<label>/f1",
            F1,
            formula="2 C_ii / (actual + predicted total)",
            source="van Rijsbergen (1979)",
            reason=_NEITHER,
            **_SHARE,
        ),
        Metric("class/<label>/support", ClassCount(), formula="actual total", **_COUNT),
        *CLASS_CURVES,
    ),
)

GROUPS = (
    Metric(
        "reduced/<step>/<group>/precision",
        PRECISION,
        interval="wilson",
        formula="TP_g / (TP_g + FP_g + IM_g)",
        source=f"{_MARKOULIDAKIS}, Table 4",
        reason=_NEVER,
        **_SHARE,
    ),
    Metric(
        "reduced/<step>/<group>/recall",
        RECALL,
        interval="wilson",
        one_sided=True,
        formula="TP_g / (TP_g + FN_g + IM_g)",
        source=f"{_MARKOULIDAKIS}, Table 4",
        reason=_NO_ACTUAL,
        **_SHARE,
    ),
    Metric(
        "reduced/<step>/<group>/f1",
        F1,
        formula="2 TP_g / (actual + predicted total)",
        source=f"{_MARKOULIDAKIS}, Table 4",
        reason=_NEITHER,
        **_SHARE,
    ),
    Metric(
        "reduced/<step>/<group>/mismatches",
        ClassCount(mismatches=True),
        formula="IM_g: correct group, but a pair of classes that is not accepted",
        source=f"{_MARKOULIDAKIS}, eq. 7",
        **_COUNT,
    ),
)
