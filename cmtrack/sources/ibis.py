"""Source for Ibis expressions, which the backend of the expression computes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from cmtrack.sources.source import Stream, kind_of


def opened(table: Any) -> IbisStream | None:
    """Open an Ibis expression whose result is a table."""
    package, _ = kind_of(table)
    if package == "ibis" and hasattr(table, "to_pyarrow_batches"):
        return IbisStream(table)
    return None


class IbisStream(Stream):
    """Batches that are read from an Ibis expression."""

    def __init__(self, table: Any) -> None:
        self.table = table

    @property
    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return self.table.schema().to_pyarrow()

    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """Read only the named columns."""
        return self.table.select(*names).to_pyarrow_batches(chunk_size=1 << 16)
