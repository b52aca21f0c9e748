"""Class numbers of rows, kept in their original integer type and counted block by block.

Counts are 64-bit integers, even if the codes have fewer bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.records import Record

RawIntegers: TypeAlias = npt.NDArray[Any]
"""Integers of any size, or booleans."""

BLOCK = 1 << 16
"""Rows per block, so that the 64-bit codes of a block stay in cache."""


@dataclass(frozen=True, eq=False)
class Codes:
    """Class numbers of n rows.

    ``raw``, shape (n,), integers or booleans: the original values, not copied.
    ``low``: the smallest value.
    ``place``, shape (R,), int64: the class number of the value ``low + i``. None if the values are
        the class numbers.
    """

    raw: RawIntegers
    low: int = 0
    place: IntArray | None = None

    def __len__(self) -> int:
        return len(self.raw)

    def block(self, rows: slice) -> IntArray:
        """Return the class numbers of some rows as int64."""
        values: IntArray = self.raw[rows].astype(np.int64, copy=False)
        if self.place is None:
            return values
        if self.low:
            values = values - self.low
        return self.place.take(values)

    def all(self) -> IntArray:
        """Return the class numbers of all rows as int64, without a copy if they are stored so."""
        return self.block(slice(None))


def blocks(n_rows: int, length: int = BLOCK) -> Iterator[slice]:
    """Return an iterator of slices that cover the rows in order."""
    return (slice(start, min(start + length, n_rows)) for start in range(0, n_rows, length))


AT_ONCE = 1 << 18
"""Elements of a matrix computed at a time, if the computation needs several times their memory."""


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Return an iterator of slices of a matrix's rows to compute at a time, given its width."""
    return blocks(n_rows, max(1, AT_ONCE // max(width, 1)))


class CompactCodes:
    """Codes written block by block into the smallest integer type that can store them."""

    def __init__(self, n_rows: int, n_codes: int = 1) -> None:
        self.array: RawIntegers = np.empty(n_rows, dtype=np.min_scalar_type(n_codes - 1))

    def put(self, rows: Any, codes: IntArray, n_codes: int) -> None:
        """Write the codes of some rows; ``n_codes`` is the number of distinct codes so far."""
        if n_codes - 1 > np.iinfo(self.array.dtype).max:
            self.array = self.array.astype(np.min_scalar_type(n_codes - 1))
        self.array[rows] = codes


def picked(values: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return one entry of each column of ``values`` (M, b), in the given row (b,)."""
    if len(values) << 8 <= len(rows) and (rows[1:] >= rows[:-1]).all():
        # If classes are sorted, long runs of columns use the same row and are copied as slices.
        ends = np.searchsorted(rows, np.arange(len(values) + 1))
        runs = zip(values, ends[:-1], ends[1:], strict=True)
        return np.concatenate([row[start:stop] for row, start, stop in runs])
    columns = np.arange(values.shape[1])
    if not values.flags.c_contiguous:
        return np.asarray(values[rows, columns])
    columns += np.multiply(rows, len(columns), dtype=np.int64)
    return values.reshape(-1).take(columns)


def compact(codes: IntArray, n_codes: int) -> RawIntegers:
    """Return the codes in the smallest integer type that can store 0 to ``n_codes - 1``."""
    return codes.astype(np.min_scalar_type(max(n_codes - 1, 0)), copy=False)


def take_weights(
    weights: FloatArray | IntArray | None, rows: slice
) -> FloatArray | IntArray | None:
    """Return the weights of some rows; None without weights."""
    return None if weights is None else weights[rows]


Counts: TypeAlias = npt.NDArray[Any]
"""Counts are int64, or float64 with sampling weights."""

MAX_RANGE = 1 << 11
"""Widest range of integer labels whose pairs are counted without numbering the labels first."""
_MOST_TWICE = 13
"""Range up to which two rows are counted together, because range**4 cells fit in the cache."""
_CELLS_OF_CODE = 16
"""Cells per code above which codes are sorted, because a pass over the table would take longer."""
_LONG_BLOCK = 1 << 17
_MOST_SIZE = 1 << 40
"""Largest absolute value of integers that are counted in pairs; products of larger ones may
overflow.
"""


def count_codes(codes: IntArray, size: int, weights: FloatArray | IntArray | None = None) -> Counts:
    """Count codes 0..size-1, or sum their weights; int64 unless the weights are fractions."""
    total = zeros(size, weights)
    if _CELLS_OF_CODE * len(codes) < size:
        present, place = np.unique(codes, return_inverse=True)
        total[present] = count_block(place, len(present), weights)
        return total
    # Each block needs a pass over the totals, so a block must not be shorter than the totals.
    for rows in blocks(len(codes), max(BLOCK, size)):
        total += count_block(codes[rows], size, take_weights(weights, rows))
    return total


def count_block(codes: IntArray, size: int, weights: FloatArray | IntArray | None = None) -> Counts:
    """Count the codes of one block."""
    return np.bincount(codes, weights, size).astype(count_type(weights), copy=False)


def sums_of_codes(codes: IntArray, values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Sum ``values`` (T, n) by codes 0..size-1 (T, n), int32, in their order; shape (T, size).

    Sparse rows of SciPy need less than half the time of :func:`numpy.bincount`, which first
    determines the range.
    """
    starts = np.arange(len(codes) + 1, dtype=np.int32) * np.int32(codes.shape[1])
    rows = csr_array((values.reshape(-1), codes.reshape(-1), starts), shape=(len(codes), size))
    sums: npt.NDArray[Any] = rows.toarray()
    return sums


def count_type(weights: npt.NDArray[Any] | None) -> type[np.generic]:
    """Return the type of counts, which is int64 unless the weights are fractions."""
    if weights is not None and weights.dtype.kind == "f":
        return np.float64
    return np.int64


def zeros(size: int | tuple[int, ...], weights: FloatArray | IntArray | None) -> Counts:
    """Return totals of 0 with the type of the counts."""
    return np.zeros(size, dtype=count_type(weights))


@dataclass(frozen=True, eq=False)
class SparseCounts(Record):
    """A table of counts with few non-zero cells, for example for many classes.

    ``places``, shape (U,), int64: ascending indices of the non-zero cells in the flattened table.
    ``sums``, shape (U,): counts in these cells.
    """

    shape: tuple[int, ...]
    places: IntArray
    sums: Counts

    @classmethod
    def of_codes(
        cls, codes: IntArray, shape: tuple[int, ...], weights: FloatArray | IntArray | None = None
    ) -> SparseCounts:
        """Count codes, which are indices into the flattened table, or sum their weights."""
        size = math.prod(shape)
        if size <= max(_CELLS_OF_CODE * len(codes), BLOCK):
            return cls.of_array(count_codes(codes, size, weights).reshape(shape))
        places, number = np.unique(codes, return_inverse=True)
        return cls(shape, places, count_codes(number, len(places), weights))._without_zeros()

    @classmethod
    def of_array(cls, counts: Counts) -> SparseCounts:
        """Return the non-zero cells of a table."""
        flat = counts.reshape(-1)
        places = np.flatnonzero(flat)
        return cls(counts.shape, places, flat[places])

    def array(self) -> Counts:
        """Return the whole table."""
        whole = np.zeros(math.prod(self.shape), dtype=self.sums.dtype)
        whole[self.places] = self.sums
        return whole.reshape(self.shape)

    def at(self, places: IntArray) -> Counts:
        """Return the counts at some indices, in the shape of ``places``."""
        if not len(self.places):
            return np.zeros(places.shape, dtype=self.sums.dtype)
        nearest = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        zero = self.sums.dtype.type(0)
        return np.where(self.places[nearest] == places, self.sums[nearest], zero)

    def moved(self, places: IntArray, shape: tuple[int, ...]) -> SparseCounts:
        """Return the same counts at other indices (U,), in a table of another shape."""
        return SparseCounts.of_codes(places, shape, self.sums)

    def __add__(self, other: SparseCounts) -> SparseCounts:
        if math.prod(self.shape) <= BLOCK:
            return SparseCounts.of_array(self.array() + other.array())
        places = np.union1d(self.places, other.places)
        return SparseCounts(self.shape, places, self.at(places) + other.at(places))

    def __sub__(self, other: SparseCounts) -> SparseCounts:
        sums = self.sums - other.at(self.places)
        return SparseCounts(self.shape, self.places, sums)._without_zeros()

    def _without_zeros(self) -> SparseCounts:
        cells = np.flatnonzero(self.sums)
        return SparseCounts(self.shape, self.places[cells], self.sums[cells])


def count_pairs(
    actual: Codes, predicted: Codes, n_classes: int, weights: FloatArray | IntArray | None = None
) -> Counts:
    """Return the (K, K) table of actual by predicted codes."""
    # A pair is encoded as the index of its cell in the flattened table.
    size = n_classes * n_classes
    if _CELLS_OF_CODE * len(actual) < size:
        codes = actual.all() * n_classes + predicted.all()
        return SparseCounts.of_codes(codes, (n_classes, n_classes), weights).array()
    total = zeros(size, weights)
    for rows in blocks(len(actual), max(BLOCK, size)):
        codes = actual.block(rows) * n_classes + predicted.block(rows)
        total += count_block(codes, size, take_weights(weights, rows))
    return total.reshape(n_classes, n_classes)


def count_integer_pairs(first: RawIntegers, second: RawIntegers) -> tuple[int, Counts] | None:
    """Count pairs of integers in one pass that also finds their range.

    Parameters
    ----------
    first, second : ndarray of shape (n,), integers or booleans, n > 0

    Returns
    -------
    low : int
        The smallest value in the table.
    table : ndarray of shape (W, W), int64
        ``table[i, j]``: rows with ``low + i`` and ``low + j``.

    The result is None if the values span more than 2,048, or are far from 0.
    """
    # About 1,000 rows are enough to estimate the range of most columns, so that few tables are
    # made.
    step = len(first) // 1000 + 1
    low, high = _range(first[::step], second[::step])
    if high < MAX_RANGE:
        # If 0 is the smallest value, the maximum alone shows whether a block is in range.
        low = min(low, 0)
    pairs: _Pairs | None = None
    for rows in blocks(len(first), _LONG_BLOCK):
        a = first[rows]
        b = second[rows]
        if low or max(_unsigned_max(a), _unsigned_max(b)) > high:
            least, greatest = _range(a, b)
            low = min(low, least)
            high = max(high, greatest)
        if high - low >= MAX_RANGE or max(-low, high) > _MOST_SIZE:
            return None
        width = high - low + 1
        if pairs is None or pairs.low != low or pairs.width != width:
            pairs = _Pairs(low, width, pairs)
        pairs.add(a, b)
    if pairs is None:
        raise ValueError("pairs of integers need at least one row, got none")
    return low, pairs.table()


class _Pairs:
    """Counts of pairs of integers from ``low``; with a small range, two rows are counted together.

    ``width``: number of integers.
    ``earlier``: previous counts, whose range is inside this one.
    """

    def __init__(self, low: int, width: int, earlier: _Pairs | None = None) -> None:
        self.low = low
        self.width = width
        self._counts = np.zeros((width, width), dtype=np.int64)
        if earlier is not None:
            start = earlier.low - low
            inside = slice(start, start + earlier.width)
            self._counts[inside, inside] = earlier.table()
        size = width * width
        self._counts_twice = np.zeros((0, 0), dtype=np.int64)
        if width <= _MOST_TWICE:
            self._counts_twice = np.zeros((size, size), dtype=np.int64)
        # Allocating memory for each block would take longer than counting.
        self._buffer = np.empty((2, _LONG_BLOCK), dtype=np.int64)

    def add(self, a: RawIntegers, b: RawIntegers) -> None:
        """Count the rows of one block."""
        size = self._counts.size
        codes = self._buffer[0, : len(a)]
        np.multiply(a, self.width, out=codes, dtype=np.int64, casting="unsafe")
        np.add(codes, b, out=codes, dtype=np.int64, casting="unsafe")
        if self.low:
            codes -= self.low * (self.width + 1)
        if len(self._counts_twice):
            # A row of the first half and a row of the second half make one code. If the number of
            # rows is odd, the last row is counted alone.
            half = len(codes) // 2
            both = np.multiply(codes[:half], size, out=self._buffer[1, :half])
            both += codes[half : 2 * half]
            self._counts_twice += np.bincount(both, minlength=size * size).reshape(size, size)
            codes = codes[2 * half :]
        self._counts += np.bincount(codes, minlength=size).reshape(self._counts.shape)

    def table(self) -> Counts:
        """Return the counts so far, shape (W, W)."""
        if not len(self._counts_twice):
            return self._counts
        of_halves = self._counts_twice.sum(axis=0) + self._counts_twice.sum(axis=1)
        return self._counts + of_halves.reshape(self._counts.shape)


def _range(first: RawIntegers, second: RawIntegers) -> tuple[int, int]:
    return int(min(first.min(), second.min())), int(max(first.max(), second.max()))


def _unsigned_max(values: RawIntegers) -> int:
    """Return the largest value; if a value is negative, the result is larger than any value."""
    if values.dtype.kind == "i":
        values = values.view(f"u{values.dtype.itemsize}")
    return int(values.max())
