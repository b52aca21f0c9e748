"""Conversion of Arrow batches to batches for the kernel, in this process and on workers."""

from __future__ import annotations

import pickle
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cmtrack.sources.columns import Columns, is_list
from cmtrack.statistics.factorize import is_missing
from cmtrack.statistics.kernel import Batch, Kernel, Tally
from cmtrack.statistics.segment_values import SegmentRows, check_fractions

_MOST_ROWS = 1 << 17
_FEWEST_ROWS = 1 << 13
_VALUES = 1 << 21
"""Number of values in a batch, about 16 MB; a batch of wide rows therefore contains fewer rows."""


@dataclass(frozen=True, eq=False)
class Work:
    """The kernel and the columns that a process needs to count the rows that it holds.

    Attributes
    ----------
    columns : Columns
    kernel : Kernel

    Examples
    --------
    >>> import pickle
    >>> from cmtrack.sources import Columns, Work
    >>> from cmtrack.statistics.counted_for import Counting
    >>> from cmtrack.statistics.kernel import Kernel
    >>> pickle.loads(pickle.dumps(Work(Columns("y", "z"), Kernel(Counting((0, 1)))))).columns.names
    ['y', 'z']
    """

    columns: Columns
    kernel: Kernel

    def tally(self, batches: Iterable[pa.RecordBatch]) -> Tally:
        """Count the rows of all batches in this thread."""
        tally = Tally(self.kernel)
        for batch in self.whole(batches):
            tally.add(self.read(batch))
        return tally

    def packed(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """Return a partition's tally, or the error that its rows raise, as bytes for the driver."""
        try:
            return _packed(self.tally(batches))
        except (TypeError, ValueError) as error:
            return _packed(error)

    def whole(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield all rows after splitting large batches and joining small ones."""
        waiting: list[pa.RecordBatch] = []
        n_waiting = 0
        for batch in batches:
            most = rows_at_once(self._width(batch))
            for start in range(0, batch.num_rows, most):
                rows = batch.slice(start, most)
                if rows.num_rows + n_waiting > most:
                    yield _joined(waiting)
                    waiting = []
                    n_waiting = 0
                waiting.append(rows)
                n_waiting += rows.num_rows
        if waiting:
            yield _joined(waiting)

    def read(self, batch: pa.RecordBatch, copies: npt.NDArray[Any] | None = None) -> Batch:
        """Convert an Arrow batch to NumPy columns; columns of strings remain Arrow arrays.

        ``copies``: for each row of the batch, the number of identical rows that it represents; by
            default 1.
        """
        columns = self.columns
        lengths: Counter[int] | None = None
        scores: tuple[npt.NDArray[Any], ...] = ()
        if columns.lists:
            scores, lengths = _lists(batch.column(columns.scores[0]))
        else:
            scores = tuple(_numbers(batch.column(name)) for name in columns.scores)
        n_rows = batch.num_rows
        if copies is not None:
            n_rows = int(copies.sum())

        def labels(name: str | None, coded: bool) -> Any:
            if name is None:
                return None
            return _labels(batch.column(name), coded)

        weights = None
        if columns.weight is not None:
            weights = _numbers(batch.column(columns.weight))
        # Dictionaries may stay encoded only if the kernel has numbered the classes.
        numbered = self.kernel.labels is not None
        return Batch(
            n_rows,
            labels(columns.y_true, coded=numbered),
            labels(columns.y_pred, coded=numbered),
            scores,
            weights,
            labels(columns.row_ids, coded=False),
            lengths,
            {name: _segments(name, batch.column(name)) for name in columns.dividing},
            copies,
        )

    def _width(self, batch: pa.RecordBatch) -> int:
        """Estimate the number of values per row; list lengths come from the first rows."""
        width: int = batch.num_columns
        if self.columns.lists and batch.num_rows:
            lists = batch.column(self.columns.scores[0]).slice(0, 100)
            width += len(lists.flatten()) // len(lists)
        return width


def rows_at_once(width: int) -> int:
    """Return the number of rows in a batch, given the number of values in each row."""
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _VALUES // max(width, 1)))


def unpacked(packed: Any) -> Tally:
    """Return the tally of a partition, or raise the error that its rows caused."""
    result = pickle.loads(zlib.decompress(bytes(packed)))
    if isinstance(result, Exception):
        raise result
    return result


def packed_sum(packed: Iterable[Any]) -> bytes:
    """Add up several tallies, and return the sum as bytes."""
    try:
        tallies = map(unpacked, packed)
        return _packed(sum(tallies, next(tallies)))
    except (TypeError, ValueError) as error:
        return _packed(error)


def _packed(result: Any) -> bytes:
    """Return a tally as compressed bytes; it is mostly zeros if scores are counted by grid cell."""
    return zlib.compress(pickle.dumps(result, protocol=5), 1)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    arrays = [
        column.chunk(0) if column.num_chunks else pa.array([], column.type)
        for column in table.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=table.column_names)


def _labels(column: pa.Array, coded: bool) -> Any:
    """Return a column of labels; ``coded``: whether dictionary encoding may be kept."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        if coded:
            return column
        return _labels(column.dictionary_decode(), coded)
    if pa.types.is_null(kind) or str(kind) == "string_view":
        return column.cast(pa.string())
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if column.null_count or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    return column.to_numpy(zero_copy_only=False)


def _segments(name: str, column: pa.Array) -> SegmentRows:
    """Return the segment of each row, given one column; each number is a separate segment."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = [None if is_missing(value) else value for value in coded.dictionary.to_pylist()]
    missing = coded.indices.is_null().to_numpy(zero_copy_only=False)
    codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if missing.any():
        codes = np.where(missing, len(values), codes)
        values.append(None)
    rows = SegmentRows.of(name, values, codes)
    if coded is not column:
        check_fractions(name, rows.values)
    return rows


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """Return a column of numbers, with NaN for null; without nulls, it is not copied."""
    kind = column.type
    has_no_numpy_type = pa.types.is_decimal(kind) or pa.types.is_null(kind)
    if has_no_numpy_type or (column.null_count and not pa.types.is_floating(kind)):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)


def _lists(column: pa.Array) -> tuple[tuple[npt.NDArray[Any], ...], Counter[int]]:
    """Convert lists of equal length to columns; also return the number of rows of each length."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not is_list(column.type):
        raise ValueError(f"y_prob must contain lists of numbers, got {column.type}")
    counts = pc.fill_null(pc.list_value_length(column), -1).value_counts()
    lengths = Counter({int(entry["values"]): entry["counts"] for entry in counts.to_pylist()})
    if len(lengths) != 1 or min(lengths) < 1:
        return (), lengths
    values = _numbers(column.flatten()).reshape(len(column), -1)
    return tuple(values.T), lengths
