"""DuckDB's relations, computed batch by batch on all cores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from cmtrack._lazy import cached_property
from cmtrack.sources.source import Stream

_ROWS = 1 << 16


def opened(table: Any) -> DuckDBStream | None:
    """The source of a relation."""
    return DuckDBStream(table) if type(table).__name__ == "DuckDBPyRelation" else None


class DuckDBStream(Stream):
    """Batches of a relation."""

    def __init__(self, relation: Any, connection: Any = None) -> None:
        # before 1.5, DuckDB closes one that nobody holds, under its relations
        self.connection = connection
        self.relation = relation

    @cached_property
    def schema(self) -> pa.Schema:
        """Names and kinds of all columns."""
        return _reader(self.relation.limit(0)).schema

    def categories(self, name: str) -> list[Any] | None:
        """The values of an ENUM."""
        kind = self.relation.types[self.relation.columns.index(name)]
        return list(dict(kind.children)["values"]) if kind.id == "enum" else None

    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """The named columns."""
        return explained(_reader(self.relation.project(", ".join(map(quoted, names)))))


def quoted(name: str) -> str:
    """A column's name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _reader(relation: Any) -> pa.RecordBatchReader:
    read = (
        relation.to_arrow_reader
        if hasattr(relation, "to_arrow_reader")
        else relation.fetch_record_batch
    )
    return read(_ROWS)


def explained(reader: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, with the error of a table that cannot be read."""
    try:
        yield from reader
    except (OSError, pa.ArrowException) as error:  # what DuckDB says comes through Arrow
        raise ValueError(
            f"the table could not be read: {str(error).partition(chr(10))[0]}"
        ) from error
