"""Data frames of pandas; Arrow uses columns of numbers without a copy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cmtrack.sources.arrow import ArrowStream
from cmtrack.sources.source import kind_of


def opened(table: Any) -> PandasStream | None:
    """Open a frame of pandas."""
    if kind_of(table) == ("pandas", "DataFrame"):
        return PandasStream(table)
    return None


class PandasStream(ArrowStream):
    """Batches of a frame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.n_rows = len(frame)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns; null for columns that Arrow has no type for."""
        return schema_of(self.table)

    def categories(self, name: str) -> list[Any] | None:
        """Return the categories of a categorical column."""
        column = self.table[name]
        if not hasattr(column.dtype, "categories"):
            return None
        return list(column.cat.categories)

    def batches(self, names: list[str]) -> Any:
        """Read the named columns."""
        return as_arrow(self.table[names]).to_batches()


def as_arrow(frame: Any) -> pa.Table:
    """Convert a frame to an Arrow table."""
    return pa.Table.from_pandas(frame, preserve_index=False)


def schema_of(frame: Any) -> pa.Schema:
    """Return the kinds of a frame's columns in Arrow; null for columns of objects without rows."""
    fields = []
    for name in frame.columns:
        column = frame[name]
        if column.dtype != object:  # the type of the first rows is the type of all rows
            column = column[:1000]
        try:
            kind = pa.Array.from_pandas(column).type
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kind = pa.binary()  # a mixture, which no column of an evaluation may have
        fields.append(pa.field(str(name), kind))
    return pa.schema(fields)
