"""Counts by the most probable class and its probability, for the shares of many classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.statistics import plain
from cmtrack.statistics.counting import Counts, SparseCounts, count_codes
from cmtrack.statistics.inputs import FloatArray, IntArray

CELLS = 64
_LOW, _HIGH = -4.0, 12.0
_MOST_CODES = 1 << 20
"""Tables of more cells are counted once at the end, not block by block."""
_MOST_WAITING = 1 << 22


@dataclass(frozen=True, eq=False)
class TopScoreCounts(plain.Table):
    """Samples by row (such as actual class), most probable class and cell of its probability.

    ``table``, SparseCounts of shape (R, K, 64): the cells are equal steps of the logit on [-4, 12]; the outer ones are
        open.
    """

    @classmethod
    def from_plain(cls, data: Any, size: int, n_rows: int | None = None) -> TopScoreCounts:
        """Read :meth:`to_plain`; the number of rows is checked before anything is allocated, where it is known."""
        return cls(plain.decode_table(data, (n_rows, size, CELLS)))

    @classmethod
    def from_scores(
        cls,
        rows: IntArray,
        scores: FloatArray,
        n_rows: int,
        weights: FloatArray | IntArray | None = None,
    ) -> TopScoreCounts:
        """Count ``scores`` (n, K) by the codes ``rows`` (n,)."""
        size = scores.shape[1]
        best = scores.argmax(axis=1)
        codes = (rows * size + best) * CELLS + cells_of(scores[np.arange(len(scores)), best])
        return cls(SparseCounts.of_codes(codes, (n_rows, size, CELLS), weights))

    @property
    def sums(self) -> Counts:
        """The counts that are not 0, shape (U,), ascending by row, class and cell."""
        return self.table.sums

    @property
    def n_rows(self) -> int:
        """R."""
        return self.table.shape[0]

    @property
    def cells(self) -> tuple[IntArray, IntArray]:
        """The row, and the class and cell as one number, of each count that is not 0."""
        row, cell = np.divmod(self.table.places, self.table.shape[1] * CELLS)
        return row, cell

    def pooled(self) -> TopScoreCounts:
        """All rows as one."""
        shape = (1, *self.table.shape[1:])
        return TopScoreCounts(self.table.moved(self.cells[1], shape))

    def blocks(self, size: int) -> list[TopScoreCounts]:
        """Each ``size`` rows for themselves, such as those of a fold."""
        row, shape = self.cells[0], (size, *self.table.shape[1:])
        parts = []
        for start in range(0, self.n_rows, size):
            inside = (start <= row) & (row < start + size)
            places = self.table.places[inside] - start * shape[1] * CELLS
            parts.append(TopScoreCounts(SparseCounts(shape, places, self.sums[inside])))
        return parts

    def arranged(self, place: IntArray, by_class: bool) -> TopScoreCounts:
        """The counts with the classes at these places, in their order; of the rows too, where these are classes."""
        (row, cell), to, size = self.cells, np.argsort(place), len(place)
        best, inside = np.divmod(cell, CELLS)
        row = row // size * size + to[row % size] if by_class else row
        return TopScoreCounts(
            self.table.moved((row * size + to[best]) * CELLS + inside, self.table.shape)
        )

    def __sub__(self, other: TopScoreCounts) -> TopScoreCounts:
        return TopScoreCounts(self.table - other.table)


class TopTally:
    """Counts by actual class, most probable class and cell in the making; of many classes the codes wait.

    ``size``: number of classes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
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
        """Count one block of rows by class, most probable class and its probability, all of shape (b,)."""
        codes = (actual * self.size + best) * CELLS + cells_of(top)
        if self.size * self.size * CELLS <= _MOST_CODES:
            self._counts = self._counts + count_codes(codes, self.size * self.size * CELLS, weights)
        else:
            self._wait(codes, np.ones(len(codes), dtype=np.int64) if weights is None else weights)

    def __add__(self, other: TopTally) -> TopTally:
        """Both sets of rows; neither tally may be used afterwards."""
        self._counts = self._counts + other._counts
        for codes, weights in zip(other._codes, other._weights, strict=True):
            self._wait(codes, weights)
        return self

    def result(self) -> TopScoreCounts:
        """The counts."""
        shape = (self.size, self.size, CELLS)
        if self._codes:
            codes, weights = np.concatenate(self._codes), np.concatenate(self._weights)
            return TopScoreCounts(SparseCounts.of_codes(codes, shape, weights))
        return TopScoreCounts(SparseCounts.of_array(self._counts.reshape(shape)))

    def _wait(self, codes: IntArray, weights: FloatArray | IntArray) -> None:
        self._codes.append(codes)
        self._weights.append(weights)
        if sum(map(len, self._codes)) > _MOST_WAITING and len(self._codes) > 1:
            distinct, place = np.unique(np.concatenate(self._codes), return_inverse=True)
            self._codes = [distinct]
            self._weights = [count_codes(place, len(distinct), np.concatenate(self._weights))]


def cells_of(top: FloatArray) -> IntArray:
    """The cell of each probability, 0 to 63; shape as given."""
    inside = np.clip(top, 1e-12, 1 - 1e-12, dtype=np.float64)
    place = np.divide(inside, 1 - inside, out=inside)
    np.log(place, out=place)
    place -= _LOW
    place *= CELLS / (_HIGH - _LOW)
    return np.clip(place, 0, CELLS - 1, out=place).astype(np.int64)


def cell_middles() -> FloatArray:
    """The middle of each cell on the scale of logits, shape (64,)."""
    return np.asarray(_LOW + (np.arange(CELLS) + 0.5) * (_HIGH - _LOW) / CELLS)
