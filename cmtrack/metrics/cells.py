"""A confusion table as its cells: what full and reduced matrices have in common.

Every metric of a table depends on which cell a sample falls into. A cell has an actual and a
predicted class (or group) and is a hit or not; in a reduced matrix the mismatches are cells of
their own, on the diagonal and no hit. So one implementation serves both, values and influence
functions alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack._lazy import cached_property
from cmtrack.metrics.samples import Samples, Weighted
from cmtrack.statistics import BinaryCounts, ReducedConfusionMatrix
from cmtrack.statistics.collected import is_positive
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.metric import Metric
    from cmtrack.metrics.views import EvaluationViews


_MOST_CELLS = 10**6
_POSITIVE = np.array([1, 1, 1, 0, 0, 0])
"""Actual group of each of the six cells."""


@dataclass(frozen=True, eq=False)
class SixCells(Weighted):
    """The six cells of 2x2+IM, in the order of :class:`BinaryCounts`; arrays of shape (6,)."""

    kinds = ("binary",)

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> SixCells | None:
        return None if views.binary is None else cls.of_counts(views.binary)

    weight: FloatArray
    squares: FloatArray

    @classmethod
    def of_counts(cls, counts: Counted[BinaryCounts]) -> SixCells:
        """Return the cells of the six counts."""
        cells = counts.map(lambda six: np.array(six, dtype=np.float64))
        return cls(cells.sums, cells.squares)

    def evened(self) -> SixCells | None:
        return replace(self, squares=_evened(self, _POSITIVE)) if self.fractional else None

    @property
    def table_size(self) -> int:
        return 6

    def argument(self, weight: Any = None) -> BinaryCounts:
        weight = self.weight if weight is None else weight
        return BinaryCounts(*(weight.tolist() if weight.dtype.kind == "c" else weight))

    def in_table(self, values: FloatArray) -> FloatArray | None:
        return values if values.shape == (6,) else None

    def located(self, at: Influence, step: str) -> tuple[SixCells, IntArray]:
        actual, predicted, two = at.rows.actual, at.rows.predicted, at.views.step
        assert two is not None  # the section exists only with two groups
        positive, called = is_positive(actual, two), is_positive(predicted, two)
        accepted = two.accept[actual, predicted]
        # tp fn imp fp tn imn
        return self, np.where(
            positive == 1,
            np.where(called == 0, 1, np.where(accepted, 0, 2)),
            np.where(called == 1, 3, np.where(accepted, 4, 5)),
        )


@dataclass(frozen=True, eq=False)
class Cells(Weighted):
    """The non-empty cells of a table of K classes.

    ``actual``, ``predicted``, shape (C,), int64.
    ``hit``, shape (C,), bool.
    ``weight``, shape (C,), float64: sum of the samples' weights (their number where there are
        none).
    ``squares``, shape (C,), float64: sum of the squared weights; equals ``weight`` where weights
        are numbers of equal rows.
    ``size``: K.
    """

    actual: IntArray
    predicted: IntArray
    hit: BoolArray
    weight: FloatArray
    squares: FloatArray
    size: int
    kinds = ("counts",)

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> Cells | None:
        return (views.reduced[step][0] if step else views.table).cells

    @classmethod
    def of_matrix(cls, counts: Counted[Counts]) -> Cells:
        """Return the cells of a full matrix (K, K)."""
        actual, predicted = np.nonzero(counts.sums)
        cells = counts.map(lambda table: _floats(table[actual, predicted]))
        hit = actual == predicted
        return cls(actual, predicted, hit, cells.sums, cells.squares, len(counts.sums))

    @classmethod
    def of_reduced(cls, reduced: Counted[ReducedConfusionMatrix]) -> Cells:
        """Return the cells of a reduced matrix, its mismatches among them."""
        size = len(reduced.sums.labels)
        actual, predicted = (grid.ravel() for grid in np.indices((size, size)))
        groups = np.arange(size)
        actual, predicted = np.concatenate((actual, groups)), np.concatenate((predicted, groups))
        hit = np.concatenate(
            ((groups[:, None] == groups[None, :]).ravel(), np.zeros(size, dtype=bool))
        )
        tables = reduced.map(lambda one: np.concatenate((one.counts.ravel(), one.mismatches)))
        filled = tables.sums > 0
        cells = tables.map(lambda table: _floats(table[filled]))
        return cls(actual[filled], predicted[filled], hit[filled], cells.sums, cells.squares, size)

    def with_empty(
        self, actual: IntArray, predicted: IntArray, hit: BoolArray
    ) -> tuple[Cells, IntArray]:
        """Add the cells that only rows without weight fall into; also return the cell of each row."""
        code = (actual * self.size + predicted) * 2 + hit
        own_code = (self.actual * self.size + self.predicted) * 2 + self.hit
        codes = (
            np.arange(2 * self.size**2)
            if self.size**2 <= 8 * len(code)
            else np.union1d(code, own_code)
        )
        if len(codes) < 2 * self.size**2:  # nearly all cells are empty
            code, own_code = np.searchsorted(codes, code), np.searchsorted(codes, own_code)
        number = np.full(len(codes), -1)
        number[own_code] = np.arange(len(self.weight))
        new = np.unique(code[number[code] < 0])
        number[new] = len(self.weight) + np.arange(len(new))
        new = codes[new]
        group, none = new // 2, np.zeros(len(new))
        own = (group // self.size, group % self.size, new % 2 == 1, none, none)
        ours = {
            name: getattr(self, name)
            for name in ("actual", "predicted", "hit", "weight", "squares")
        }
        parts: dict[str, Any] = {
            name: np.concatenate(both)
            for (name, *both) in zip(ours, ours.values(), own, strict=True)
        }
        return (replace(self, **parts) if len(new) else self), number[code]

    def evened(self) -> Cells | None:
        return replace(self, squares=_evened(self, self.actual)) if self.fractional else None

    def by_actual(self, values: FloatArray) -> FloatArray:
        """Sum values (C,) over the cells of each actual class, shape (K,)."""
        return np.bincount(self.actual, values, self.size).astype(np.float64, copy=False)

    def by_predicted(self, values: FloatArray) -> FloatArray:
        """Sum values (C,) over the cells of each predicted class, shape (K,)."""
        return np.bincount(self.predicted, values, self.size).astype(np.float64, copy=False)

    @property
    def table_size(self) -> int:
        return self.size * self.size

    def argument(self, weight: Any = None) -> Any:
        """Return the counts (K, K), rows actual; a mismatch is on the diagonal."""
        weight = self.weight if weight is None else weight
        table = np.zeros((self.size, self.size), dtype=weight.dtype)
        np.add.at(table, (self.actual, self.predicted), weight)
        return table

    def in_table(self, values: FloatArray) -> FloatArray | None:
        return (
            values[self.actual, self.predicted] if values.shape == (self.size, self.size) else None
        )

    def located(self, at: Influence, step: str) -> tuple[Cells, IntArray]:
        return self.with_empty(*at.answered(step))


class Table(Samples):
    """A table of K classes or groups as its metrics see it: each part is computed once.

    ``over``, shape (K,), bool: the classes that averages are taken over; by default all.
    ``whole``: whether cells hold counts, not fractional weights.
    """

    kinds = ("table", "whole table", "classes", "spans")

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> Table | None:
        # the cell in which neither side names a span is always empty; spans are no partition
        if (kind == "whole table" and views.over is not None) or (
            kind == "spans" and views.over is None
        ):
            return None
        return views.reduced[step][0] if step else views.table

    def __init__(self, cells: Cells, over: BoolArray | None = None, whole: bool = True) -> None:
        self.cells, self.over, self.whole = cells, over, whole
        self._known: dict[Any, Any] = {}
        self.total, self.fractional = cells.total, cells.fractional

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without computed values: their keys may be lambdas, which do not pickle."""
        return self.__dict__ | {"_known": {}}

    def standard_error(self, influence: FloatArray) -> float:
        return self.cells.standard_error(influence)

    def located(self, at: Influence, step: str) -> tuple[Table, IntArray]:
        cells, place = self.cells.located(at, step)
        return (self if cells is self.cells else Table(cells, self.over, self.whole)), place

    def effective(self, denominator: FloatArray | None) -> float:
        return self.cells.effective(denominator)

    def evened(self) -> Table | None:
        return self._evened

    @cached_property
    def _evened(self) -> Table | None:
        cells = self.cells.evened()
        return None if cells is None else Table(cells, self.over, self.whole)

    def informing(self, metric: Metric) -> float:
        everyone, size = self.effective(None), self.cells.size
        if size * size > _MOST_CELLS or metric.function.influence(self) is None:
            return everyone
        with np.errstate(all="ignore"):
            psi = metric.influence_in(self._of_all_cells)
        there, cells = (self.actual > 0) | (self.predicted > 0), self._of_all_cells.cells
        # a class without samples tells nothing
        reach = (
            0.0 if psi is None else float(np.ptp(psi[there[cells.actual] & there[cells.predicted]]))
        )
        return (
            min(everyone, everyone * (metric.high - metric.low) / reach) if reach > 0 else everyone
        )

    @cached_property
    def _of_all_cells(self) -> Table:
        """The table with its empty cells."""
        actual, predicted = (
            grid.ravel() for grid in np.indices((self.cells.size, self.cells.size))
        )
        cells, _ = self.cells.with_empty(actual, predicted, actual == predicted)
        return Table(cells, self.over, self.whole)

    def once(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(table, *arguments)``, computed at the first call."""
        key = function, *arguments
        if key not in self._known:
            self._known[key] = function(self, *arguments)
        return self._known[key]

    @cached_property
    def kept(self) -> BoolArray:
        """The classes that averages are taken over, shape (K,)."""
        return np.ones(self.cells.size, dtype=np.bool_) if self.over is None else self.over

    @cached_property
    def hits(self) -> FloatArray:
        """Hits of each class, shape (K,)."""
        return self.cells.by_actual(self.cells.weight * self.cells.hit)

    @cached_property
    def actual(self) -> FloatArray:
        """Samples of each actual class, shape (K,)."""
        return self.cells.by_actual(self.cells.weight)

    @cached_property
    def predicted(self) -> FloatArray:
        """Samples of each predicted class, shape (K,)."""
        return self.cells.by_predicted(self.cells.weight)


def _evened(cells: Weighted, actual: IntArray) -> FloatArray:
    """Return the squares of the cells if those of each actual class were spread as its weights.

    The shape is (C,).
    """
    by_class = np.bincount(actual, cells.weight).astype(np.float64)
    squares = np.bincount(actual, cells.squares).astype(np.float64)
    return np.asarray(cells.weight * ratio(squares, by_class, 0.0)[actual])


def _floats(counts: Counts) -> FloatArray:
    return counts.astype(np.float64)


def ratio(
    numerator: FloatArray, denominator: FloatArray, undefined: float = math.nan
) -> FloatArray:
    """Divide elementwise; ``undefined`` where the denominator is zero."""
    out = np.full(np.shape(numerator), undefined)
    return np.divide(numerator, denominator, out=out, where=denominator > 0)
