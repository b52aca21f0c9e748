"""Source for PyArrow's tables and for all objects that stream data through Arrow's C interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from cmtrack._lazy import cached_property
from cmtrack.sources.source import Stream


def opened(table: Any) -> ArrowStream | None:
    """Open an Arrow table, batch or data set, or a similar object that can be read repeatedly."""
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if isinstance(table, pa.RecordBatchReader):
        raise TypeError(
            "table must be readable more than once, got RecordBatchReader: pass its read_all()"
        )
    if hasattr(table, "to_batches") or hasattr(table, "__arrow_c_stream__"):
        return ArrowStream(table)
    return None


class ArrowStream(Stream):
    """Batches that are read from an Arrow table or from an Arrow stream."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.n_rows = getattr(table, "num_rows", None)

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        if isinstance(self.table, pa.Table) or not self._streams:
            return self.table.schema
        return self._reader().schema

    def categories(self, name: str) -> list[Any] | None:
        """Return the values of a dictionary column that is ordered."""
        kind = self.schema.field(name).type
        if not (pa.types.is_dictionary(kind) and kind.ordered and isinstance(self.table, pa.Table)):
            return None
        column = self.table.column(name).unify_dictionaries()
        if not column.num_chunks:
            return []
        return list(column.chunk(0).dictionary.to_pylist())

    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """Read only the named columns."""
        if isinstance(self.table, pa.Table):
            return self.table.select(names).to_batches()
        if not self._streams:
            return self.table.to_batches(columns=names)
        return (batch.select(names) for batch in self._reader())

    @property
    def _streams(self) -> bool:
        """True for an object with Arrow's C interface, which PyArrow's data sets do not provide."""
        return hasattr(self.table, "__arrow_c_stream__")

    def _reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_stream(self.table)
