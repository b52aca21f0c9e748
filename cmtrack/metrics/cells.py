"""The cells of a confusion table, in one representation for full and reduced matrices.

Every metric that is computed from a table depends only on the cell to which each row belongs. A
cell represents one actual class and one predicted class (or group). Either all or none of its rows
are hits. In a reduced matrix, mismatches are counted in separate cells, which are on the diagonal
but do not count as hits. The same code can therefore compute values and influence functions for
both kinds of matrix.
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
from cmtrack.statistics.counting import Counts, SparseCounts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.metric import Metric
    from cmtrack.metrics.views import EvaluationViews


_MOST_CELLS = 10**6
"""If a table has at most this number of cells, the influence is also computed for its empty cells.
"""
_POSITIVE = np.array([1, 1, 1, 0, 0, 0])
"""Whether each cell belongs to the positive group (1) or the negative group (0)."""


@dataclass(frozen=True, eq=False)
class SixCells(Weighted):
    """The six cells of a 2x2+IM matrix, in the order of :class:`BinaryCounts`, shape (6,)."""

    kinds = ("binary",)

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> SixCells | None:
        if views.binary is None:
            return None
        return cls.of_counts(views.binary)

    weight: FloatArray
    squares: FloatArray

    @classmethod
    def of_counts(cls, counts: Counted[BinaryCounts]) -> SixCells:
        """Return the cells that contain the six counts."""
        cells = counts.map(lambda six: np.array(six, dtype=np.float64))
        return cls(cells.sums, cells.squares)

    def evened(self) -> SixCells | None:
        if not self.fractional:
            return None
        return replace(self, squares=_evened(self, _POSITIVE))

    @property
    def table_size(self) -> int:
        return 6

    def argument(self, weight: Any = None) -> BinaryCounts:
        weight = self.weight if weight is None else weight
        if weight.dtype.kind == "c":
            # Python's complex numbers raise an error for undefined operations such as comparisons.
            weight = weight.tolist()
        return BinaryCounts(*weight)

    def in_table(self, values: FloatArray) -> FloatArray | None:
        return values if values.shape == (6,) else None

    def located(self, at: Influence, step: str) -> tuple[SixCells, IntArray]:
        groups = at.two_groups
        actual = at.rows.actual
        predicted = at.rows.predicted
        is_accepted = groups.accept[actual, predicted]
        is_called = is_positive(predicted, groups) == 1
        # The cells are tp, fn, imp, fp, tn, imn.
        of_positives = np.where(is_called, np.where(is_accepted, 0, 2), 1)
        of_negatives = np.where(is_called, 3, np.where(is_accepted, 4, 5))
        return self, np.where(is_positive(actual, groups) == 1, of_positives, of_negatives)


@dataclass(frozen=True, eq=False)
class Cells(Weighted):
    """The non-empty cells of a table with K classes.

    ``actual``, ``predicted``, shape (C,), int64.
    ``hit``, shape (C,), bool.
    ``weight``, shape (C,), float64: sum of the weights of the rows in each cell. If rows have no
        weights, it is the number of rows.
    ``squares``, shape (C,), float64: sum of the squared weights. It equals ``weight`` if each
        weight is the number of identical rows that a row stands for.
    ``size``: the number of classes K.
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
        return views.table_of(step).cells

    @classmethod
    def of_matrix(cls, counts: Counted[Any]) -> Cells:
        """Return the cells of a full matrix (K, K), which is an array or a sparse table."""
        tables = counts.map(SparseCounts.of_array)
        places = tables.sums.places
        cells = tables.map(lambda table: _floats(table.at(places)))
        size = tables.sums.shape[0]
        actual, predicted = np.divmod(places, size)
        return cls(actual, predicted, actual == predicted, cells.sums, cells.squares, size)

    @classmethod
    def of_reduced(cls, reduced: Counted[ReducedConfusionMatrix]) -> Cells:
        """Return the cells of a reduced matrix, including its mismatches."""
        size = len(reduced.sums.labels)
        rows, columns = np.divmod(np.arange(size * size), size)
        groups = np.arange(size)
        # The cells for the pairs of groups come first. The cells for the mismatches in each group,
        # which are not hits, follow.
        actual = np.concatenate((rows, groups))
        predicted = np.concatenate((columns, groups))
        hit = np.concatenate((rows == columns, np.zeros(size, dtype=bool)))
        tables = reduced.map(lambda part: np.concatenate((part.counts.ravel(), part.mismatches)))
        filled = tables.sums > 0
        cells = tables.map(lambda table: _floats(table[filled]))
        return cls(actual[filled], predicted[filled], hit[filled], cells.sums, cells.squares, size)

    def with_empty(
        self, actual: IntArray, predicted: IntArray, hit: BoolArray
    ) -> tuple[Cells, IntArray]:
        """Add cells for rows with the weight 0, and also return the cell of each row."""
        row_code = (actual * self.size + predicted) * 2 + hit
        cell_code = (self.actual * self.size + self.predicted) * 2 + self.hit
        codes = np.arange(2 * self.size**2)
        if self.size**2 > 8 * len(row_code):
            # Only the codes that occur are numbered, because nearly all cells are empty.
            codes = np.union1d(row_code, cell_code)
            row_code = np.searchsorted(codes, row_code)
            cell_code = np.searchsorted(codes, cell_code)
        number = np.full(len(codes), -1)
        number[cell_code] = np.arange(len(self.weight))
        new = np.unique(row_code[number[row_code] < 0])
        if not len(new):
            return self, number[row_code]
        number[new] = len(self.weight) + np.arange(len(new))
        pair, is_hit = np.divmod(codes[new], 2)
        without_weight = np.zeros(len(new))
        cells = replace(
            self,
            actual=np.concatenate((self.actual, pair // self.size)),
            predicted=np.concatenate((self.predicted, pair % self.size)),
            hit=np.concatenate((self.hit, is_hit == 1)),
            weight=np.concatenate((self.weight, without_weight)),
            squares=np.concatenate((self.squares, without_weight)),
        )
        return cells, number[row_code]

    def evened(self) -> Cells | None:
        if not self.fractional:
            return None
        return replace(self, squares=_evened(self, self.actual))

    def by_actual(self, values: FloatArray) -> FloatArray:
        """Sum values (C,) over the cells of each actual class, shape (K,)."""
        return np.bincount(self.actual, values, self.size).astype(np.float64, copy=False)

    def by_predicted(self, values: FloatArray) -> FloatArray:
        """Sum values (C,) over the cells of each predicted class, shape (K,)."""
        return np.bincount(self.predicted, values, self.size).astype(np.float64, copy=False)

    @property
    def is_mismatch(self) -> BoolArray:
        """Mask of the mismatch cells (group correct, but not a hit), as an array of shape (C,)."""
        return ~self.hit & (self.actual == self.predicted)

    @property
    def table_size(self) -> int:
        return self.size * self.size

    def argument(self, weight: Any = None) -> Any:
        """Return the counts, shape (K, K), with actual classes in rows.

        Mismatches are on the diagonal.
        """
        weight = self.weight if weight is None else weight
        table = np.zeros((self.size, self.size), dtype=weight.dtype)
        np.add.at(table, (self.actual, self.predicted), weight)
        return table

    def in_table(self, values: FloatArray) -> FloatArray | None:
        if values.shape != (self.size, self.size):
            return None
        return values[self.actual, self.predicted]

    def located(self, at: Influence, step: str) -> tuple[Cells, IntArray]:
        return self.with_empty(*at.answered(step))


class Table(Samples):
    """A table of K classes or groups, which caches its parts and is the argument of metrics.

    ``over``, shape (K,), bool: the classes that averages include. By default, all classes are
        included.
    ``whole``: whether the cells contain numbers of rows. If it is false, they contain fractional
        weights.
    """

    kinds = ("table", "whole table", "ordered table", "classes", "spans")

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> Table | None:
        # The cell for "no actual and no predicted span" is always empty, because spans do not
        # divide the data into a fixed number of parts.
        of_spans = views.over is not None
        if of_spans and kind == "whole table":
            return None
        if kind == "ordered table" and not views.ordered:
            return None
        if kind == "spans" and not of_spans:
            return None
        return views.table_of(step)

    def __init__(self, cells: Cells, over: BoolArray | None = None, whole: bool = True) -> None:
        self.cells = cells
        self.over = over
        self.whole = whole
        self.total = cells.total
        self.fractional = cells.fractional
        self._computed: dict[Any, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the cache, whose keys may be lambdas that cannot be pickled."""
        return self.__dict__ | {"_computed": {}}

    def standard_error(self, influence: FloatArray) -> float:
        return self.cells.standard_error(influence)

    def located(self, at: Influence, step: str) -> tuple[Table, IntArray]:
        cells, cell_of_row = self.cells.located(at, step)
        if cells is self.cells:
            return self, cell_of_row
        return Table(cells, self.over, self.whole), cell_of_row

    def effective(self, denominator: FloatArray | None) -> float:
        return self.cells.effective(denominator)

    def evened(self) -> Table | None:
        return self._evened

    @cached_property
    def _evened(self) -> Table | None:
        cells = self.cells.evened()
        if cells is None:
            return None
        return Table(cells, self.over, self.whole)

    def informing(self, metric: Metric) -> float:
        total_size = self.effective(None)
        if self.cells.size**2 > _MOST_CELLS or metric.function.influence(self) is None:
            return total_size
        table = self._of_all_cells
        with np.errstate(all="ignore"):
            psi = metric.influence_in(table)
        if psi is None:
            return total_size
        # A class without rows contributes no information.
        has_samples = (self.actual > 0) | (self.predicted > 0)
        is_possible = has_samples[table.cells.actual] & has_samples[table.cells.predicted]
        reach = float(np.ptp(psi[is_possible]))
        if not reach > 0:
            return total_size
        return min(total_size, total_size * (metric.high - metric.low) / reach)

    @cached_property
    def _of_all_cells(self) -> Table:
        """The table with its empty cells included."""
        actual, predicted = np.divmod(np.arange(self.cells.table_size), self.cells.size)
        cells, _ = self.cells.with_empty(actual, predicted, actual == predicted)
        return Table(cells, self.over, self.whole)

    def once(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``function(table, *arguments)``, which is computed only once and then cached."""
        key = (function, *arguments)
        if key not in self._computed:
            self._computed[key] = function(self, *arguments)
        return self._computed[key]

    @cached_property
    def kept(self) -> BoolArray:
        """Mask of the classes that averages include, shape (K,)."""
        if self.over is None:
            return np.ones(self.cells.size, dtype=np.bool_)
        return self.over

    @cached_property
    def hits(self) -> FloatArray:
        """Number of hits in each class, as an array of shape (K,)."""
        return self.cells.by_actual(self.cells.weight * self.cells.hit)

    @cached_property
    def actual(self) -> FloatArray:
        """Number of rows in each actual class, as an array of shape (K,)."""
        return self.cells.by_actual(self.cells.weight)

    @cached_property
    def predicted(self) -> FloatArray:
        """Number of rows for which each class is predicted, as an array of shape (K,)."""
        return self.cells.by_predicted(self.cells.weight)


def _evened(cells: Weighted, actual: IntArray) -> FloatArray:
    """Return squared weights by cell, distributed within each actual class as the weights are.

    The sum of the squared weights in a class does not change. The result is an array of shape (C,).
    """
    by_class = np.bincount(actual, cells.weight).astype(np.float64)
    squares = np.bincount(actual, cells.squares).astype(np.float64)
    return cells.weight * ratio(squares, by_class, 0.0)[actual]


def _floats(counts: Counts) -> FloatArray:
    return counts.astype(np.float64)


def ratio(
    numerator: FloatArray, denominator: FloatArray, undefined: float = math.nan
) -> FloatArray:
    """Divide elementwise; the result is ``undefined`` where the denominator is zero."""
    quotient = np.full(np.shape(numerator), undefined)
    return np.divide(numerator, denominator, out=quotient, where=denominator > 0)
