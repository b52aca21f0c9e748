"""Source for Polars frames, and for lazy frames, which Polars computes batch by batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from cmtrack._lazy import cached_property
from cmtrack.sources.source import Stream, kind_of

_ROWS = 1 << 16
"""Number of rows per batch."""


def opened(table: Any) -> PolarsStream | None:
    """Open a Polars frame or lazy frame."""
    if kind_of(table) in (("polars", "DataFrame"), ("polars", "LazyFrame")):
        return PolarsStream(table)
    return None


class PolarsStream(Stream):
    """Batches that are read from a Polars frame."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.n_rows = getattr(frame, "height", None)

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self.frame.lazy().limit(0).collect().to_arrow().schema

    def categories(self, name: str) -> list[Any] | None:
        """Return the ordered values of an Enum column; None for all other columns."""
        kind = self.frame.lazy().collect_schema()[name]
        if type(kind).__name__ != "Enum":
            return None
        return kind.categories.to_list()

    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """Read only the named columns."""
        for slice_of_rows in self._slices(names):
            yield from slice_of_rows.to_arrow().to_batches()

    def _slices(self, names: list[str]) -> Iterator[Any]:
        chosen = self.frame.select(names)
        if hasattr(chosen, "collect_batches"):
            return chosen.collect_batches(chunk_size=_ROWS, maintain_order=False)
        if hasattr(chosen, "collect"):  # before Polars 1.34
            chosen = chosen.collect(engine="streaming")
        return chosen.iter_slices(_ROWS)
