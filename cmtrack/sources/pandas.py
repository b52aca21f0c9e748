"""pandas' data frames, whose columns Arrow takes without a copy where they are numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cmtrack.sources.arrow import ArrowStream


def opened(table: Any) -> PandasStream | None:
    """The source of a frame of pandas."""
    from cmtrack.sources import kind_of

    return PandasStream(table) if kind_of(table) == ("pandas", "DataFrame") else None


class PandasStream(ArrowStream):
    """Batches of a frame."""

    def __init__(self, frame: Any) -> None:
        super().__init__(frame)
        self.n_rows = len(frame)

    @property
    def schema(self) -> pa.Schema:
        """Names and kinds of all columns; null for those that Arrow has no kind for."""
        return schema_of(self.table)

    def categories(self, name: str) -> list[Any] | None:
        """The categories of a categorical column."""
        return (
            list(self.table[name].cat.categories)
            if hasattr(self.table[name].dtype, "categories")
            else None
        )

    def batches(self, names: list[str]) -> Any:
        """The named columns."""
        return as_arrow(self.table[names]).to_batches()


def as_arrow(frame: Any) -> pa.Table:
    """A frame as an Arrow table."""
    return pa.Table.from_pandas(frame, preserve_index=False)


def schema_of(frame: Any) -> pa.Schema:
    """The kinds of a frame's columns as Arrow has them; null for columns of objects without rows."""
    fields = []
    for name in frame.columns:
        try:
            kind = pa.Array.from_pandas(
                frame[name][:1000] if frame[name].dtype != object else frame[name]
            ).type
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            kind = pa.binary()
        fields.append(pa.field(str(name), kind))
    return pa.schema(fields)
