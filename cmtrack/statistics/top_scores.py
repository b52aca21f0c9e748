"""Counts by the most probable class and its probability, to estimate shares of many classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.statistics import plain
from cmtrack.statistics.counting import Counts, SparseCounts, count_codes
from cmtrack.statistics.inputs import FloatArray, IntArray

CELLS = 64
_LOW = -4.0
_HIGH = 12.0
"""Limits of the logits that are divided into cells.

With up to 55 classes, the most probable class has a probability of at least 1/55, whose logit is
above -4.
"""
_MOST_CELLS = 1 << 20
"""Maximum number of cells to count block by block; larger tables are counted at the end."""
_MOST_WAITING = 1 << 22
"""Maximum number of codes to keep until they are counted; this limits the memory."""


@dataclass(frozen=True, eq=False)
class TopScoreCounts(plain.Table):
    """Counts of rows by table row (such as actual class), predicted class and probability cell.

    ``table``, SparseCounts of shape (R, K, 64): the cells are equal steps of the logit on [-4, 12],
        and the outer cells are open.
    """

    @classmethod
    def from_plain(cls, data: Any, size: int, n_rows: int | None = None) -> TopScoreCounts:
        """Read data of :meth:`to_plain`; a known number of rows is checked before allocation."""
        return cls(plain.decode_table(data, (n_rows, size, CELLS)))

    @classmethod
    def from_scores(
        cls,
        rows: IntArray,
        scores: FloatArray,
        n_rows: int,
        weights: FloatArray | IntArray | None = None,
    ) -> TopScoreCounts:
        """Count ``scores`` (n, K) by the codes ``rows`` (n,) of table rows."""
        size = scores.shape[1]
        best = scores.argmax(axis=1)
        codes = (rows * size + best) * CELLS + cells_of(scores[np.arange(len(scores)), best])
        return cls(SparseCounts.of_codes(codes, (n_rows, size, CELLS), weights))

    @property
    def sums(self) -> Counts:
        """Non-zero counts, shape (U,), ascending by row, class and cell."""
        return self.table.sums

    @property
    def n_rows(self) -> int:
        """Number of table rows, R."""
        return self.table.shape[0]

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        """Table row of each non-zero count, and its class and cell as one number."""
        row, cell = np.divmod(self.table.places, self.table.shape[1] * CELLS)
        return row, cell

    def pooled(self) -> TopScoreCounts:
        """Return the counts of all table rows together."""
        shape = (1, *self.table.shape[1:])
        return TopScoreCounts(self.table.moved(self.cells[1], shape))

    def blocks(self, size: int) -> list[TopScoreCounts]:
        """Return separate counts for each block of ``size`` table rows, such as a fold."""
        row = self.cells[0]
        shape = (size, *self.table.shape[1:])
        parts = []
        for start in range(0, self.n_rows, size):
            inside = (start <= row) & (row < start + size)
            places = self.table.places[inside] - start * shape[1] * CELLS
            parts.append(TopScoreCounts(SparseCounts(shape, places, self.sums[inside])))
        return parts

    def arranged(self, place: IntArray, by_class: bool) -> TopScoreCounts:
        """Return the counts of the classes at the given indices, in this order.

        ``by_class``: whether table rows are classes, which are then also reordered.
        """
        size = len(place)
        number = np.argsort(place)
        row, cell = self.cells
        best, inside = np.divmod(cell, CELLS)
        if by_class:
            row = row // size * size + number[row % size]
        places = (row * size + number[best]) * CELLS + inside
        return TopScoreCounts(self.table.moved(places, self.table.shape))

    def __sub__(self, other: TopScoreCounts) -> TopScoreCounts:
        return TopScoreCounts(self.table - other.table)


class TopTally:
    """Accumulator of counts by actual class, most probable class and cell.

    With many classes, codes are collected and counted later, because updating the whole table
    would take longer than reading a block of rows.

    ``size``: number of classes.
    """

    def __init__(self, size: int) -> None:
        self.shape = (size, size, CELLS)
        self._counts: Any = 0
        self._codes: list[IntArray] = []
        self._weights: list[Any] = []

    def add(
        self,
        actual: IntArray,
        best: IntArray,
        top: FloatArray,
        weights: FloatArray | IntArray | None,
    ) -> None:
        """Count one block of rows by class, most probable class and its probability, all (b,)."""
        size = self.shape[0]
        n_cells = size * size * CELLS
        codes = (actual * size + best) * CELLS + cells_of(top)
        if n_cells <= _MOST_CELLS:
            self._counts = self._counts + count_codes(codes, n_cells, weights)
        else:
            self._wait(codes, np.ones(len(codes), dtype=np.int64) if weights is None else weights)

    def __add__(self, other: TopTally) -> TopTally:
        """Merge both sets of rows; neither tally may be used afterwards."""
        self._counts = self._counts + other._counts
        for codes, weights in zip(other._codes, other._weights, strict=True):
            self._wait(codes, weights)
        return self

    def result(self) -> TopScoreCounts:
        """Return the counts."""
        if not self._codes:
            return TopScoreCounts(SparseCounts.of_array(self._counts.reshape(self.shape)))
        codes = np.concatenate(self._codes)
        weights = np.concatenate(self._weights)
        return TopScoreCounts(SparseCounts.of_codes(codes, self.shape, weights))

    def _wait(self, codes: IntArray, weights: FloatArray | IntArray) -> None:
        self._codes.append(codes)
        self._weights.append(weights)
        if sum(map(len, self._codes)) > _MOST_WAITING and len(self._codes) > 1:
            distinct, place = np.unique(np.concatenate(self._codes), return_inverse=True)
            sums = count_codes(place, len(distinct), np.concatenate(self._weights))
            self._codes = [distinct]
            self._weights = [sums]


def cells_of(top: FloatArray) -> IntArray:
    """Return the cell of each probability, 0 to 63, in the shape of ``top``."""
    # The logits of 0 and 1 would be infinite.
    inside = np.clip(top, 1e-12, 1 - 1e-12, dtype=np.float64)
    cells = np.divide(inside, 1 - inside, out=inside)
    np.log(cells, out=cells)
    cells -= _LOW
    cells *= CELLS / (_HIGH - _LOW)
    return np.clip(cells, 0, CELLS - 1, out=cells).astype(np.int64)


def cell_middles() -> FloatArray:
    """Return the middle of each cell on the scale of logits, shape (64,)."""
    return np.asarray(_LOW + (np.arange(CELLS) + 0.5) * (_HIGH - _LOW) / CELLS)
