"""Source for pandas data frames; Arrow uses numeric columns without copying them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cmtrack.sources.arrow import ArrowStream
from cmtrack.sources.source import kind_of


def opened(table: Any) -> PandasStream | None:
    """Open a pandas data frame."""
    if kind_of(table) == ("pandas", "DataFrame"):
        return PandasStream(table)
    return None


class PandasStream(ArrowStream):
    """Batches that are read from a pandas data frame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.n_rows = len(frame)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns; null if Arrow has no matching type."""
        return schema_of(self.table)

    def categories(self, name: str) -> list[Any] | None:
        """Return the categories of a categorical column."""
        column = self.table[name]
        if not hasattr(column.dtype, "categories"):
            return None
        return list(column.cat.categories)

    def batches(self, names: list[str]) -> Any:
        """Read only the named columns."""
        return as_arrow(self.table[names]).to_batches()


def as_arrow(frame: Any) -> pa.Table:
    """Convert a frame to an Arrow table."""
    return pa.Table.from_pandas(frame, preserve_index=False)


def schema_of(frame: Any) -> pa.Schema:
    """Return the Arrow types of a frame's columns; null for an empty column of objects."""
    fields = []
    for name in frame.columns:
        column = frame[name]
        if column.dtype != object:  # its first rows show the type of all rows
            column = column[:1000]
        try:
            kind = pa.Array.from_pandas(column).type
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kind = pa.binary()  # a mixture of types, which later checks refuse
        fields.append(pa.field(str(name), kind))
    return pa.schema(fields)
