"""Class numbers of rows, which stay in their original integer type and are counted in blocks.

Counts are 64-bit integers, even if the class numbers have fewer bits.
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
"""Array of integers of any bit width, or of booleans."""

BLOCK = 1 << 16
"""Number of rows per block, chosen so that the 64-bit codes of a block fit into the cache."""


@dataclass(frozen=True, eq=False)
class Codes:
    """Class numbers of n rows.

    ``raw``, shape (n,), integers or booleans: the original values, not copied.
    ``low``: the smallest value.
    ``place``, shape (R,), int64: ``place[i]`` is the class number of the value ``low + i``. None if
        the values are already the class numbers.
    """

    raw: RawIntegers
    low: int = 0
    place: IntArray | None = None

    def __len__(self) -> int:
        return len(self.raw)

    def block(self, rows: slice) -> IntArray:
        """Return the class numbers of the selected rows as int64."""
        values: IntArray = self.raw[rows].astype(np.int64, copy=False)
        if self.place is None:
            return values
        if self.low:
            values = values - self.low
        return self.place.take(values)

    def all(self) -> IntArray:
        """Return the class numbers of all rows as int64; not a copy if they are stored as int64."""
        return self.block(slice(None))


def blocks(n_rows: int, length: int = BLOCK) -> Iterator[slice]:
    """Return an iterator of slices that cover the rows in order."""
    return (slice(start, min(start + length, n_rows)) for start in range(0, n_rows, length))


AT_ONCE = 1 << 18
"""Number of matrix elements to compute at a time if each one needs much temporary memory."""


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    """Return an iterator of slices that divide the rows of a matrix with ``width`` columns."""
    return blocks(n_rows, max(1, AT_ONCE // max(width, 1)))


class CompactCodes:
    """Array of codes that is filled in blocks and uses the smallest sufficient integer type."""

    def __init__(self, n_rows: int, n_codes: int = 1) -> None:
        self.array: RawIntegers = np.empty(n_rows, dtype=np.min_scalar_type(n_codes - 1))

    def put(self, rows: Any, codes: IntArray, n_codes: int) -> None:
        """Write the codes of some rows; ``n_codes``: number of distinct codes so far."""
        if n_codes - 1 > np.iinfo(self.array.dtype).max:
            self.array = self.array.astype(np.min_scalar_type(n_codes - 1))
        self.array[rows] = codes


def picked(values: npt.NDArray[Any], rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Pick one entry from each column of ``values`` (M, b); ``rows`` (b,) are the row indices."""
    if len(values) << 8 <= len(rows) and (rows[1:] >= rows[:-1]).all():
        # If the columns are sorted by class, many columns in a row use the same row of ``values``,
        # so they are copied as slices.
        ends = np.searchsorted(rows, np.arange(len(values) + 1))
        runs = zip(values, ends[:-1], ends[1:], strict=True)
        return np.concatenate([row[start:stop] for row, start, stop in runs])
    columns = np.arange(values.shape[1])
    if not values.flags.c_contiguous:
        return np.asarray(values[rows, columns])
    columns += np.multiply(rows, len(columns), dtype=np.int64)
    return values.reshape(-1).take(columns)


def compact(codes: IntArray, n_codes: int) -> RawIntegers:
    """Convert codes to the smallest integer type that can store 0 to ``n_codes - 1``."""
    return codes.astype(np.min_scalar_type(max(n_codes - 1, 0)), copy=False)


def take_weights(
    weights: FloatArray | IntArray | None, rows: slice
) -> FloatArray | IntArray | None:
    """Return the weights of the selected rows; None if the rows have no weights."""
    return None if weights is None else weights[rows]


Counts: TypeAlias = npt.NDArray[Any]
"""Array of counts, which are int64, or float64 with sampling weights."""

MAX_RANGE = 1 << 11
"""Largest range of integer labels for which pairs are counted before labels are numbered."""
_MOST_TWICE = 13
"""Largest range for which two rows are counted together; range**4 cells fit into the cache."""
_CELLS_OF_CODE = 16
"""Number of table cells per code above which sorting the codes is faster than using a table."""
_LONG_BLOCK = 1 << 17
_MOST_SIZE = 1 << 40
"""Largest absolute value of integers that are counted in pairs. Products of larger integers may
overflow.
"""


def count_codes(codes: IntArray, size: int, weights: FloatArray | IntArray | None = None) -> Counts:
    """Count each of the codes 0 to size - 1, or sum the weights of the rows with each code."""
    total = zeros(size, weights)
    if _CELLS_OF_CODE * len(codes) < size:
        present, place = np.unique(codes, return_inverse=True)
        total[present] = count_block(place, len(present), weights)
        return total
    # Each block adds an array of length ``size`` to the totals, so blocks must not be shorter than
    # this array.
    for rows in blocks(len(codes), max(BLOCK, size)):
        total += count_block(codes[rows], size, take_weights(weights, rows))
    return total


def count_block(codes: IntArray, size: int, weights: FloatArray | IntArray | None = None) -> Counts:
    """Count the codes in one block of rows."""
    return np.bincount(codes, weights, size).astype(count_type(weights), copy=False)


def sums_of_codes(codes: IntArray, values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Sum ``values`` (T, n) by the int32 codes 0 to size - 1 (T, n); return shape (T, size).

    The values are added in their original order. SciPy's sparse matrix takes less than half the
    time of :func:`numpy.bincount`, which first determines the range of the codes.
    """
    rows = csr_array((len(codes), size), dtype=values.dtype)
    # The constructor would check all codes, and copy values that are a part of a larger array.
    rows.data = values.ravel()
    rows.indices = codes.ravel()
    rows.indptr = np.arange(len(codes) + 1, dtype=np.int32) * codes.shape[1]
    sums: npt.NDArray[Any] = rows.toarray()
    return sums


def count_type(weights: npt.NDArray[Any] | None) -> type[np.generic]:
    """Return the type of counts, which is float64 for sampling weights and otherwise int64."""
    if weights is not None and weights.dtype.kind == "f":
        return np.float64
    return np.int64


def zeros(size: int | tuple[int, ...], weights: FloatArray | IntArray | None) -> Counts:
    """Return an array of zeros with the type of the counts."""
    return np.zeros(size, dtype=count_type(weights))


@dataclass(frozen=True, eq=False)
class SparseCounts(Record):
    """A table of counts with few non-zero cells, for example because there are many classes.

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
        """Count codes, which are indices of the flattened table, or sum their weights."""
        size = math.prod(shape)
        if size <= max(_CELLS_OF_CODE * len(codes), BLOCK):
            return cls.of_array(count_codes(codes, size, weights).reshape(shape))
        places, number = np.unique(codes, return_inverse=True)
        return cls(shape, places, count_codes(number, len(places), weights))._without_zeros()

    @classmethod
    def of_array(cls, counts: Counts | SparseCounts) -> SparseCounts:
        """Convert a dense table to a sparse one, which stores only the non-zero cells."""
        if isinstance(counts, SparseCounts):
            return counts
        flat = counts.reshape(-1)
        places = np.flatnonzero(flat)
        return cls(counts.shape, places, flat[places])

    def array(self) -> Counts:
        """Return the whole table as a dense array."""
        whole = np.zeros(math.prod(self.shape), dtype=self.sums.dtype)
        whole[self.places] = self.sums
        return whole.reshape(self.shape)

    def sum(self, axis: int | None = None) -> Any:
        """Return the total, or the sum of each column (axis 0) or row (axis 1) of a matrix."""
        if axis is None:
            return self.sums.sum()
        n_rows, n_columns = self.shape
        if axis == 0:
            return count_codes(self.places % n_columns, n_columns, self.sums)
        return count_codes(self.places // n_columns, n_rows, self.sums)

    def diagonal(self) -> Counts:
        """Return the diagonal of a square matrix."""
        return self.at(np.arange(self.shape[0]) * (self.shape[0] + 1))

    def at(self, places: IntArray) -> Counts:
        """Return the counts at the given indices of the flattened table, shape of ``places``."""
        if not len(self.places):
            return np.zeros(places.shape, dtype=self.sums.dtype)
        nearest = np.minimum(np.searchsorted(self.places, places), len(self.places) - 1)
        zero = self.sums.dtype.type(0)
        return np.where(self.places[nearest] == places, self.sums[nearest], zero)

    def moved(self, places: IntArray, shape: tuple[int, ...]) -> SparseCounts:
        """Move the counts to new indices ``places`` (U,) in a table with the given shape."""
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
) -> Counts | SparseCounts:
    """Return the (K, K) table of counts by actual and predicted code.

    If there are many classes and few rows, the table is sparse.
    """
    # A pair is encoded as the index of its cell in the flattened table.
    size = n_classes * n_classes
    if max(_CELLS_OF_CODE * len(actual), BLOCK) < size:
        codes = actual.all() * n_classes + predicted.all()
        return SparseCounts.of_codes(codes, (n_classes, n_classes), weights)
    total = zeros(size, weights)
    for rows in blocks(len(actual), max(BLOCK, size)):
        codes = actual.block(rows) * n_classes + predicted.block(rows)
        total += count_block(codes, size, take_weights(weights, rows))
    return total.reshape(n_classes, n_classes)


def count_integer_pairs(first: RawIntegers, second: RawIntegers) -> tuple[int, Counts] | None:
    """Count pairs of integers and find their range in one pass.

    Parameters
    ----------
    first, second : ndarray of shape (n,), integers or booleans, n > 0

    Returns
    -------
    low : int
        The value to which the first row and column of the table belong.
    table : ndarray of shape (W, W), int64
        ``table[i, j]`` is the number of rows with the values ``low + i`` and ``low + j``.

    The result is None if the range of the values is larger than 2,048, or if the values are far
    from 0.
    """
    # About 1,000 rows are enough to estimate the range of most columns, so the table rarely has to
    # be replaced with a larger table.
    step = len(first) // 1000 + 1
    low, high = _range(first[::step], second[::step])
    if high < MAX_RANGE:
        # If 0 is the smallest value, the maximum is enough to see whether a block is in range.
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
    """Counter of pairs of integers from ``low`` up, two rows at once if the range is small.

    ``width``: number of possible integers.
    ``earlier``: previous counts, whose range is inside the new range.
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
            # A row of the first half and a row of the second half are combined into one code. If
            # the number of rows is odd, the last row is counted separately.
            half = len(codes) // 2
            both = np.multiply(codes[:half], size, out=self._buffer[1, :half])
            both += codes[half : 2 * half]
            self._counts_twice += np.bincount(both, minlength=size * size).reshape(size, size)
            codes = codes[2 * half :]
        self._counts += np.bincount(codes, minlength=size).reshape(self._counts.shape)

    def table(self) -> Counts:
        """Return the counts of all blocks so far, shape (W, W)."""
        if not len(self._counts_twice):
            return self._counts
        of_halves = self._counts_twice.sum(axis=0) + self._counts_twice.sum(axis=1)
        return self._counts + of_halves.reshape(self._counts.shape)


def _range(first: RawIntegers, second: RawIntegers) -> tuple[int, int]:
    return int(min(first.min(), second.min())), int(max(first.max(), second.max()))


def _unsigned_max(values: RawIntegers) -> int:
    """Return the maximum of the values as unsigned integers; negative values become very large."""
    if values.dtype.kind == "i":
        values = values.view(f"u{values.dtype.itemsize}")
    return int(values.max())
