"""Metrics of each class, or of each group of a reduced table: ``class/``, ``reduced/<step>/``.

All but the counts are ratios of a class's hits to its margins. Ratios without a denominator are
NaN.
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
    """A ratio of a class's hits to its margins.

    Of each class it is
    ``hits × C_ii / (actual × row total + predicted × column total + common × C_ii)``.

    ``common`` is -1 where the denominator counts the samples of the row or the column, each once.
    """

    hits: float
    actual: float
    predicted: float
    common: float = 0.0

    def __call__(self, table: Table) -> FloatArray:
        """Return the ratio of each class, shape (K,); NaN where the denominator is 0."""
        return ratio(self.hits * table.hits, self.below(table))

    def below(self, table: Table | ClassSums) -> FloatArray:
        """Return the denominator of each class, shape (K,)."""
        return (
            self.actual * table.actual + self.predicted * table.predicted + self.common * table.hits
        )

    def spread(self, table: Table) -> FloatArray:
        """Return the standard error of each class's ratio, shape (K,)."""
        return ratio(np.sqrt(self._squares(table.cells, self.hits, self(table))), self.below(table))

    def size(self, table: Table) -> FloatArray:
        """Return the effective number of samples that each class's ratio is of, shape (K,)."""
        return ratio(self.below(table) ** 2, self._squares(table.cells, 0.0, None), 0.0)

    def _squares(self, cells: Cells, hits: float, values: FloatArray | None) -> FloatArray:
        """Return sums of squared weights times squares of ``hits × hit - value × denominator``.

        Without values the squares are of the denominator.
        """
        i, j = cells.actual, cells.predicted
        diagonal = i == j
        both = self.actual + self.predicted + self.common * cells.hit
        if values is None:
            row, column = (
                np.where(diagonal, both, self.actual),
                np.where(diagonal, 0.0, self.predicted),
            )
        else:
            row = np.where(diagonal, hits * cells.hit - both * values[i], self.actual * values[i])
            column = np.where(diagonal, 0.0, self.predicted * values[j])
        return cells.by_actual(cells.squares * row**2) + cells.by_predicted(
            cells.squares * column**2
        )

    def influence_of(self, table: Table, k: int) -> FloatArray:
        """Return the influence per cell of class k's ratio, shape (C,)."""
        cells = table.cells
        row, column = 1.0 * (cells.actual == k), 1.0 * (cells.predicted == k)
        hit = row * cells.hit
        below = self.actual * row + self.predicted * column + self.common * row * column
        base = float(cells.weight @ below)
        if base == 0:
            return np.full(len(below), math.nan)
        value = float(cells.weight @ (self.hits * hit)) / base
        return (self.hits * hit - value * below) * (cells.total / base)


@dataclass(frozen=True)
class ClassCount(Function):
    """The samples of each actual class, or only its mismatches.

    A mismatch is in the right group and a pair of classes that is not accepted.
    """

    mismatches: bool = False

    @property
    def of_labels(self) -> bool:
        """True of all samples of a class."""
        return not self.mismatches

    def __call__(self, table: Table) -> FloatArray:
        """Return the count of each class, shape (K,)."""
        if not self.mismatches:
            return table.actual
        cells = table.cells
        return cells.by_actual(cells.weight * (~cells.hit & (cells.actual == cells.predicted)))

    def spread(self, table: Table) -> FloatArray:
        """Return the standard error of each class's count, shape (K,)."""
        cells, part = table.cells, self(table) / table.total
        counted = ~cells.hit & (cells.actual == cells.predicted) if self.mismatches else True
        inside = cells.by_actual(cells.squares * counted)
        return np.sqrt(inside * (1 - part) ** 2 + (cells.squares.sum() - inside) * part**2)

    def influence_of(self, table: Table, k: int) -> FloatArray:
        """Return the influence per cell on class k's count (C,): n times that on its share."""
        cells = table.cells
        inside = 1.0 * (cells.actual == k)
        if self.mismatches:
            inside = inside * (cells.predicted == k) * ~cells.hit
        return (inside - float(cells.weight @ inside) / cells.total) * cells.total


PRECISION, RECALL, F1 = ClassRatio(1, 0, 1), ClassRatio(1, 1, 0), ClassRatio(2, 1, 1)
_NEVER, _NO_ACTUAL, _NEITHER = (
    "never predicted",
    "no actual samples",
    "neither actual nor predicted samples",
)
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
        formula="IM_g: right group, a pair of classes that is not accepted",
        source=f"{_MARKOULIDAKIS}, eq. 7",
        **_COUNT,
    ),
)
