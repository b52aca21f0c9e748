"""Batches of Arrow -> the kernel's batches, wherever they are read."""

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

_MOST_ROWS, _FEWEST_ROWS, _VALUES = 1 << 17, 1 << 13, 1 << 21


@dataclass(frozen=True, eq=False)
class Work:
    """A unit of work that is sent to the rows: the kernel, and the columns to count.

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
        """Count all batches in this thread."""
        tally = Tally(self.kernel)
        for batch in self.whole(batches):
            tally.add(self.read(batch))
        return tally

    def packed(self, batches: Iterable[pa.RecordBatch]) -> bytes:
        """The tally of a partition, or the error of its rows, as bytes that a driver takes."""
        try:
            return _packed(self.tally(batches))
        except (TypeError, ValueError) as error:
            return _packed(error)

    def whole(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same rows in batches that are neither small nor large."""
        waiting: list[pa.RecordBatch] = []
        n_waiting, wanted = 0, _MOST_ROWS
        for batch in batches:
            wanted = rows_at_once(self._width(batch))
            for start in range(0, batch.num_rows, wanted):
                part = batch.slice(start, wanted)
                if part.num_rows + n_waiting > wanted:
                    yield _joined(waiting)
                    waiting, n_waiting = [], 0
                waiting.append(part)
                n_waiting += part.num_rows
        if waiting:
            yield _joined(waiting)

    def read(self, batch: pa.RecordBatch, copies: npt.NDArray[Any] | None = None) -> Batch:
        """A batch of Arrow as columns of NumPy; columns of strings stay Arrow's."""
        columns = self.columns
        lengths: Counter[int] | None = None
        scores: tuple[npt.NDArray[Any], ...] = ()
        if columns.lists:
            scores, lengths = _lists(batch.column(columns.scores[0]))
        else:
            scores = tuple(_numbers(batch.column(name)) for name in columns.scores)
        numbered = self.kernel.labels is not None
        return Batch(
            batch.num_rows if copies is None else int(copies.sum()),
            None if columns.y_true is None else _labels(batch.column(columns.y_true), numbered),
            None if columns.y_pred is None else _labels(batch.column(columns.y_pred), numbered),
            scores,
            None if columns.weight is None else _numbers(batch.column(columns.weight)),
            None if columns.row_ids is None else _labels(batch.column(columns.row_ids), False),
            lengths,
            {name: _segments(name, batch.column(name)) for name in columns.dividing},
            copies,
        )

    def _width(self, batch: pa.RecordBatch) -> int:
        """Numbers in a row, about."""
        width: int = batch.num_columns
        if self.columns.lists and batch.num_rows:
            width += len(batch.column(self.columns.scores[0]).slice(0, 100).flatten()) // min(
                100, batch.num_rows
            )
        return width


def rows_at_once(width: int) -> int:
    """Rows per batch, given the numbers in each row."""
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _VALUES // max(width, 1)))


def unpacked(packed: Any) -> Tally:
    """The tally of a partition."""
    result = pickle.loads(zlib.decompress(bytes(packed)))
    if isinstance(result, Exception):
        raise result
    return result


def packed_sum(packed: Iterable[Any]) -> bytes:
    """The sum of several tallies, as bytes."""
    try:
        tallies = map(unpacked, packed)
        return _packed(sum(tallies, next(tallies)))
    except (TypeError, ValueError) as error:
        return _packed(error)


def _packed(found: Any) -> bytes:
    """Bytes of a tally, which is mostly zeros where scores are counted by cell."""
    return zlib.compress(pickle.dumps(found, protocol=5), 1)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches).unify_dictionaries().combine_chunks()
    return pa.RecordBatch.from_arrays(
        [
            column.chunk(0) if column.num_chunks else pa.array([], column.type)
            for column in table.columns
        ],
        names=table.column_names,
    )


def _labels(column: pa.Array, coded: bool) -> Any:
    """Labels without a copy where they are numbers; ``coded``: dictionaries may stay what they are."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column if coded else _labels(column.dictionary_decode(), coded)
    if pa.types.is_null(kind) or str(kind) == "string_view":
        return column.cast(pa.string())
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    if column.null_count or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    return column.to_numpy(zero_copy_only=False)


def _segments(name: str, column: pa.Array) -> SegmentRows:
    """The values of a column that divides the rows; categories are not looked at as numbers."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    values = [None if is_missing(value) else value for value in coded.dictionary.to_pylist()]
    missing = coded.indices.is_null().to_numpy(zero_copy_only=False)
    codes = coded.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    if missing.any():
        values, codes = [*values, None], np.where(missing, len(values), codes)
    rows = SegmentRows.of(name, values, codes)
    if coded is not column:
        check_fractions(name, rows.values)
    return rows


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """Numbers without a copy where none is missing; NaN for null."""
    kind = column.type
    if (
        pa.types.is_decimal(kind)
        or pa.types.is_null(kind)
        or (column.null_count and not pa.types.is_floating(kind))
    ):
        column = column.cast(pa.float64())
    return column.to_numpy(zero_copy_only=False)


def _lists(column: pa.Array) -> tuple[tuple[npt.NDArray[Any], ...], Counter[int]]:
    """Columns of the lists' entries, if the lists are of one length, and rows by length."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not is_list(column.type):
        raise ValueError(f"y_prob must hold lists of numbers, got {column.type}")
    lengths_counted = pc.fill_null(pc.list_value_length(column), -1).value_counts().to_pylist()
    lengths = Counter({int(each["values"]): each["counts"] for each in lengths_counted})
    if len(lengths) != 1 or min(lengths) < 1:
        return (), lengths
    values = _numbers(column.flatten()).reshape(len(column), -1)
    return tuple(values.T), lengths
