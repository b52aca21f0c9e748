"""Source for DuckDB relations, which DuckDB computes batch by batch on all cores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from cmtrack._lazy import cached_property
from cmtrack.sources.source import Stream

_ROWS = 1 << 16
"""Number of rows per batch."""


def opened(table: Any) -> DuckDBStream | None:
    """Open a DuckDB relation."""
    if type(table).__name__ == "DuckDBPyRelation":
        return DuckDBStream(table)
    return None


class DuckDBStream(Stream):
    """Batches that are read from a DuckDB relation."""

    def __init__(self, relation: Any, connection: Any = None) -> None:
        # DuckDB before 1.5 closes a connection that nothing refers to, and its relations then fail.
        self.connection = connection
        self.relation = relation

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and types of all columns."""
        return _reader(self.relation.limit(0)).schema

    def categories(self, name: str) -> list[Any] | None:
        """Return the values of an ENUM column, in order."""
        kind = self.relation.types[self.relation.columns.index(name)]
        if kind.id != "enum":
            return None
        return list(dict(kind.children)["values"])

    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """Read only the named columns."""
        return explained(_reader(self.relation.project(", ".join(map(quoted, names)))))


def quoted(name: str) -> str:
    """Quote the name of a column for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _reader(relation: Any) -> pa.RecordBatchReader:
    if hasattr(relation, "to_arrow_reader"):
        return relation.to_arrow_reader(_ROWS)
    return relation.fetch_record_batch(_ROWS)  # older versions of DuckDB


def explained(reader: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches, and raise ValueError if the table cannot be read."""
    try:
        yield from reader
    except (OSError, pa.ArrowException) as error:  # Arrow also raises errors of DuckDB
        raise ValueError(f"the table could not be read: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """Return the first line of an error's text; the other lines contain the query and hints."""
    return str(error).partition("\n")[0]
