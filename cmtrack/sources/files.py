"""Files of Parquet and CSV, opened by DuckDB, and read by it or by PyArrow."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from cmtrack._lazy import needs
from cmtrack.sources.batches import Work, rows_at_once
from cmtrack.sources.columns import label_kind
from cmtrack.sources.duckdb import DuckDBStream, explained, quoted
from cmtrack.sources.source import Watch
from cmtrack.sources.table_file import CSV, PARQUET, file_kind
from cmtrack.statistics.kernel import Tally
from cmtrack.statistics.labels import MAX_CLASSES
from cmtrack.statistics.score_pass import n_threads
from cmtrack.untrusted import open_file

_SAMPLE = 1 << 17
_BUFFER = 1 << 18
"""Bytes of a column that are read at a time."""
_FEW = 1000
"""Files whose ends are all read before."""


class FileStream(DuckDBStream):
    """Batches of files; DuckDB groups the rows where only their labels are asked for.

    ``parquet``: local files of Parquet. Where DuckDB would give their columns as they are, PyArrow reads them, in
    half of its time.
    """

    parquet: Sequence[str] = ()

    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """The named columns."""
        wanted = [self.schema.field(name) for name in names]
        with contextlib.suppress(OSError, pa.ArrowException):
            schemas = [parquet.read_schema(file) for file in self.parquet]
            if schemas and all(_has(schema, wanted) for schema in schemas):
                return explained(_batches(self.parquet, names))
        return super().batches(names)

    def count(self, work: Work, watch: Watch) -> Tally:
        """Count the rows; those with faults are counted one by one, as their errors are."""
        import duckdb

        tally = Tally(work.kernel)
        with contextlib.suppress(ValueError, duckdb.Error):
            for batch in self._groups(work):
                tally.add(work.read(batch, batch.columns[-1].to_numpy()))
            if tally.faults.n_rows and not tally.faults:
                watch(tally.faults.n_rows)
                return tally
        return super().count(work, watch)

    def _groups(self, work: Work) -> list[pa.RecordBatch]:
        """Distinct labels and how many rows have them; none where more is asked for, or these are no classes."""
        columns, names = work.columns, work.columns.names
        if columns.row_ids or columns.weight or columns.scores or columns.segments:
            return []
        if any(label_kind(self.schema.field(name).type) not in (int, str, bool) for name in names):
            return []
        distinct = ", ".join(f"count(DISTINCT {quoted(name)})" for name in names)
        if max(self.relation.limit(_SAMPLE).aggregate(distinct).fetchall()[0]) > MAX_CLASSES:
            return []
        labels, n_rows = ", ".join(map(quoted, names)), quoted("".join([*names, "#"]))  # no other column's name
        groups = self.relation.aggregate(f"{labels}, count(*) AS {n_rows}", labels)
        batches: list[pa.RecordBatch] = groups.to_arrow_table().to_batches()
        return batches


def _has(schema: pa.Schema, wanted: list[pa.Field]) -> bool:
    places = [schema.get_field_index(field.name) for field in wanted]
    return all(at >= 0 and schema.field(at).type == field.type for at, field in zip(places, wanted, strict=True))


def _batches(files: Sequence[str], names: list[str]) -> Iterator[pa.RecordBatch]:
    for file in files:
        with parquet.ParquetFile(file, buffer_size=_BUFFER) as rows:
            # On few cores, which the kernel's own threads hold, one thread decodes in less time than several.
            for batch in rows.iter_batches(rows_at_once(len(names)), columns=names, use_threads=n_threads() > 8):
                yield batch.select(names)


def opened(table: Any) -> FileStream | None:
    """The source of a path, a glob, a folder or a list of them."""
    paths = table if isinstance(table, list) else [table]
    if not paths or not all(isinstance(part, (str, Path)) for part in paths):
        return None
    files = _files(paths)
    kinds = {file_kind(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(f"the files must be of one kind, Parquet or CSV, got both among {files[:5]}")
    with needs("reading files", "duckdb"):
        import duckdb

    config: dict[str, Any] = {"preserve_insertion_order": False, "temp_directory": tempfile.gettempdir()}
    connection = duckdb.connect(config=config)
    if not any("://" in file for file in files):  # whole row groups in advance cost memory, and help over a network
        with contextlib.suppress(duckdb.Error):  # older ones have no such setting
            connection.execute("SET disable_parquet_prefetching = true")
    try:
        read: Any = connection.read_parquet if kinds == {"Parquet"} else connection.read_csv
        source = FileStream(read(files), connection)
        if kinds == {"Parquet"}:
            source.n_rows = source.relation.count("*").fetchall()[0][0]  # the files' ends know it
            globs = [connection.execute("SELECT file FROM glob(?)", [file]).fetchall() for file in files]
            local = [file for matches in globs for (file,) in matches]
            if len(local) <= _FEW and not any("://" in file or "=" in file for file in local):
                source.parquet = local  # "=": a folder's name may be a column
        return source
    except duckdb.IOException as error:
        raise FileNotFoundError(f"no file can be read at {files[:5]}: {_first_line(error)}") from None
    except duckdb.Error as error:
        raise ValueError(f"{files[:5]} could not be read as {kinds.pop()}: {_first_line(error)}") from None


def _files(paths: list[Any]) -> list[str]:
    """Paths and globs as DuckDB reads them; a folder stands for all its files."""
    out = []
    for part in paths:
        path = Path(part)
        if "://" in str(part) or not path.is_dir():
            if path.exists():
                open_file(path, own=True).close()
            out.append(str(part))
            continue
        inside = [kind for kind in (*PARQUET, *CSV) if any(path.rglob(f"*{kind}"))]
        if not inside:
            raise FileNotFoundError(f"the folder {str(path)!r} holds no {', '.join((*PARQUET, *CSV))} file")
        out += [str(path / "**" / f"*{kind}") for kind in inside]
    return out


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
