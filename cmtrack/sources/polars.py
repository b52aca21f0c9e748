"""Polars: frames as they are, and lazy frames that its streaming engine computes batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from cmtrack._lazy import cached_property
from cmtrack.sources.source import Stream

_ROWS = 1 << 16


def opened(table: Any) -> PolarsStream | None:
    """The source of a frame or lazy frame of Polars."""
    from cmtrack.sources import kind_of

    return (
        PolarsStream(table)
        if kind_of(table) in (("polars", "DataFrame"), ("polars", "LazyFrame"))
        else None
    )


class PolarsStream(Stream):
    """Batches of a frame."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.n_rows = getattr(frame, "height", None)

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and kinds of all columns."""
        return self.frame.lazy().limit(0).collect().to_arrow().schema

    def categories(self, name: str) -> list[Any] | None:
        """The values of an Enum; a Categorical has no order."""
        kind = self.frame.lazy().collect_schema()[name]
        return kind.categories.to_list() if type(kind).__name__ == "Enum" else None

    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """The named columns."""
        return (batch for part in self._parts(names) for batch in part.to_arrow().to_batches())

    def _parts(self, names: list[str]) -> Iterator[Any]:
        chosen = self.frame.select(names)
        if hasattr(chosen, "collect_batches"):
            return chosen.collect_batches(chunk_size=_ROWS, maintain_order=False)
        if hasattr(chosen, "collect"):  # before Polars 1.34
            chosen = chosen.collect(engine="streaming")
        return chosen.iter_slices(_ROWS)
