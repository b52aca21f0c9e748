"""Source for Parquet and CSV files, which DuckDB opens and DuckDB or PyArrow reads."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from cmtrack._lazy import needs
from cmtrack.sources.batches import Work, rows_at_once
from cmtrack.sources.columns import Columns, label_kind
from cmtrack.sources.duckdb import DuckDBStream, explained, first_line, quoted
from cmtrack.sources.source import Watch
from cmtrack.sources.table_file import CSV, PARQUET, file_kind
from cmtrack.sources.texts import (
    KINDS,
    Header,
    kind_of_texts,
    kinds_of_labels,
    lossless_kinds,
    read_header,
)
from cmtrack.statistics.kernel import Tally
from cmtrack.statistics.labels import MAX_CLASSES
from cmtrack.statistics.score_pass import n_threads
from cmtrack.untrusted import open_file

_SAMPLE = 1 << 17
"""Number of first rows whose distinct labels are estimated, to find columns with too many."""
_BUFFER = 1 << 18
"""Number of bytes of a column to read at a time."""
_FEW = 1000
"""Maximum number of files whose metadata are read before their rows."""
_SQL: dict[type | None, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}


class FileStream(DuckDBStream):
    """Batches that are read from files.

    If an evaluation needs only labels, DuckDB groups the rows by their labels.

    ``parquet``: local Parquet files. If DuckDB does not need to convert their columns, PyArrow
    reads the files, which takes half the time.
    """

    parquet: Sequence[str] = ()

    def batches(self, names: list[str]) -> Iterable[pa.RecordBatch]:
        """Read only the named columns."""
        wanted = [self.schema.field(name) for name in names]
        with contextlib.suppress(OSError, pa.ArrowException):
            schemas = [parquet.read_schema(file) for file in self.parquet]
            if schemas and all(_has(schema, wanted) for schema in schemas):
                return explained(_batches(self.parquet, names))
        return super().batches(names)

    def count(self, work: Work, watch: Watch) -> Tally:
        """Count groups of rows with the same labels, or each row if more columns are needed."""
        import duckdb

        tally = Tally(work.kernel)
        # If a group is invalid, the rows are counted one by one, because the error must name rows.
        with contextlib.suppress(ValueError, duckdb.Error):
            for batch in self._groups(work):
                tally.add(work.read(batch, batch.columns[-1].to_numpy()))
            if tally.faults.n_rows and not tally.faults:
                watch(tally.faults.n_rows)
                return tally
        return super().count(work, watch)

    def _groups(self, work: Work) -> list[pa.RecordBatch]:
        """Return the distinct labels with row counts; empty if other columns are also needed."""
        columns = work.columns
        names = columns.names
        if columns.row_ids or columns.weight or columns.scores or columns.segments:
            return []
        if any(label_kind(self.schema.field(name).type) not in (int, str, bool) for name in names):
            return []
        # Too many distinct labels are an error, which is found sooner by counting single rows.
        distinct = ", ".join(f"approx_count_distinct({quoted(name)})" for name in names)
        [counts] = self.relation.limit(_SAMPLE).aggregate(distinct).fetchall()
        if max(counts) > MAX_CLASSES:
            return []
        labels = ", ".join(map(quoted, names))
        n_rows = quoted("".join([*names, "#"]))  # this name is longer than all other names
        groups = self.relation.aggregate(f"{labels}, count(*) AS {n_rows}", labels)
        batches: list[pa.RecordBatch] = groups.to_arrow_table().to_batches()
        return batches


class CSVStream(FileStream):
    """Batches that are read from CSV files, whose columns have no types.

    DuckDB guesses the types of columns that contain numbers. DuckDB would guess a separate type for
    each label column, so :meth:`with_kinds` first reads labels, ids and segments as texts.
    """

    def __init__(
        self, connection: Any, files: list[str], options: dict[str, Any], has_blanks: bool
    ) -> None:
        self.files = files
        self.options = options
        self.has_blanks = has_blanks
        self.connection = connection
        guessed = connection.read_csv(files, **options)
        self.clean_names = dict(zip(guessed.columns, guessed.columns, strict=True))
        if has_blanks:
            self.clean_names = {name: name.strip() for name in guessed.columns}
        super().__init__(self._with_clean_names(guessed), connection)

    def with_kinds(self, columns: Columns, label_kinds: Collection[type] = KINDS) -> FileStream:
        """Return a source whose types for labels, ids and segments preserve every text."""
        numbers = {columns.weight, *columns.scores}
        texts = [name for name in columns.names if name not in numbers]
        if not texts:
            return FileStream(self.relation, self.connection)
        labels = [name for name in (columns.y_true, columns.y_pred) if name in texts]
        relation = self._read(texts)
        lossless = {name: set(KINDS) for name in texts}
        for batch in DuckDBStream(relation, self.connection).batches(texts):
            for name in texts:
                lossless[name] &= lossless_kinds(batch.column(name))
        kind_of = {name: kind_of_texts([lossless[name]]) for name in texts}
        kind_of |= kinds_of_labels({name: lossless[name] for name in labels}, label_kinds)
        converted = [self._converted(name, kind_of.get(name)) for name in relation.columns]
        return FileStream(relation.project(", ".join(converted)), self.connection)

    def _read(self, texts: Collection[str]) -> Any:
        """Return the relation with clean column names; read the columns ``texts`` as texts."""
        types = {raw: "VARCHAR" for raw, clean in self.clean_names.items() if clean in texts}
        relation = self.connection.read_csv(self.files, **self.options, dtype=types)
        return self._with_clean_names(relation)

    def _with_clean_names(self, relation: Any) -> Any:
        renamed = [f"{quoted(raw)} AS {quoted(clean)}" for raw, clean in self.clean_names.items()]
        return relation.project(", ".join(renamed))

    def _converted(self, name: str, kind: type | None) -> str:
        """Return an SQL expression that converts a column to ``kind``; None keeps its type."""
        column = quoted(name)
        if kind is str and self.has_blanks:
            return f"trim({column}) AS {column}"
        if kind in _SQL:
            return f"CAST(trim({column}) AS {_SQL[kind]}) AS {column}"
        return column


def _has(schema: pa.Schema, wanted: list[pa.Field]) -> bool:
    """Return whether a file contains each of the columns exactly once with the same type."""
    for field in wanted:
        index = schema.get_field_index(field.name)  # -1 unless exactly one column has this name
        if index < 0 or schema.field(index).type != field.type:
            return False
    return True


def _batches(files: Sequence[str], names: list[str]) -> Iterator[pa.RecordBatch]:
    # The kernel's threads already use all cores. If there are few cores, one thread decodes faster
    # than several.
    use_threads = n_threads() > 8
    batch_size = rows_at_once(len(names))
    for path in files:
        # By default, PyArrow reads all row groups in advance, so memory would grow with the file.
        with parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False) as file:
            for batch in file.iter_batches(batch_size, columns=names, use_threads=use_threads):
                yield batch.select(names)


def opened(
    table: Any, names: Sequence[str] = (), missing: Sequence[str] | None = None
) -> FileStream | None:
    """Open a path, a glob, a folder or a list of them; None for anything else.

    ``names``: columns that the caller names. If the first line of a CSV file contains one of them,
        this line is the header.
    ``missing``: texts that mark a missing value in a CSV file; by default an empty field.
    """
    paths = table if isinstance(table, list) else [table]
    if not paths or not all(isinstance(path, (str, Path)) for path in paths):
        return None
    files = _files(paths)
    kinds = {file_kind(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(f"the files must all be Parquet or all CSV, got both among {files[:5]}")
    with needs("reading files", "duckdb"):
        import duckdb

    connection = _connect(files)
    try:
        if kinds == {"CSV"}:
            return _csv_stream(connection, files, names, missing)
        return _parquet_stream(connection, files)
    except duckdb.IOException as error:
        raise FileNotFoundError(
            f"no file can be read at {files[:5]}: {first_line(error)}"
        ) from None
    except duckdb.Error as error:
        raise ValueError(
            f"{files[:5]} could not be read as {kinds.pop()}: {first_line(error)}"
        ) from None


def _connect(files: Sequence[str]) -> Any:
    """Connect to a DuckDB database in memory."""
    import duckdb

    config: dict[str, Any] = {
        "preserve_insertion_order": False,  # the order would keep many batches in memory
        "temp_directory": tempfile.gettempdir(),
    }
    connection = duckdb.connect(config=config)
    # Reading whole row groups in advance helps over a network, but costs memory.
    if not any(map(_is_remote, files)):
        with contextlib.suppress(duckdb.Error):  # older versions do not have this setting
            connection.execute("SET disable_parquet_prefetching = true")
    return connection


def _parquet_stream(connection: Any, files: list[str]) -> FileStream:
    source = FileStream(connection.read_parquet(files), connection)
    [(n_rows,)] = source.relation.count("*").fetchall()  # reads only metadata
    source.n_rows = n_rows
    local = _local_files(connection, files)
    # DuckDB adds a column for a folder with a name such as "year=2024". PyArrow does not.
    if len(local) <= _FEW and not any(_is_remote(file) or "=" in file for file in local):
        source.parquet = local
    return source


def _csv_stream(
    connection: Any, files: list[str], names: Sequence[str], missing: Sequence[str] | None
) -> CSVStream:
    options: dict[str, Any] = {}
    if missing is not None:
        options["na_values"] = list(missing)
    header = _header_of(connection, files[0], names)
    if header is not None and header.n_found:
        options |= {"header": True, "sep": header.separator}
        return CSVStream(connection, files, options, header.has_blanks)
    # DuckDB looks for a header, unless the caller uses the names that DuckDB gives to columns
    # without a header.
    if names and all(re.fullmatch(r"column[0-9]+", name) for name in names):
        options["header"] = False
    return CSVStream(connection, files, options, has_blanks=False)


def _header_of(connection: Any, file: str, names: Sequence[str]) -> Header | None:
    """Read the header of the first file that matches a glob; None if no local file matches."""
    if _is_remote(file):
        return None
    local = _local_files(connection, [file])
    if not local:
        return None
    return read_header(Path(local[0]), names)


def _is_remote(file: str) -> bool:
    return "://" in file


def _local_files(connection: Any, files: Sequence[str]) -> list[str]:
    """Return the files that match the globs."""
    matches = []
    for file in files:
        rows = connection.execute("SELECT file FROM glob(?)", [file]).fetchall()
        matches += [match for (match,) in rows]
    return matches


def _files(paths: list[Any]) -> list[str]:
    """Return paths and globs for DuckDB; a folder is replaced with globs for its files."""
    endings = (*PARQUET, *CSV)
    files = []
    for table in paths:
        path = Path(table)
        if not _is_remote(str(table)) and path.is_dir():
            globs = [f"*{ending}" for ending in endings if any(path.rglob(f"*{ending}"))]
            if not globs:
                raise FileNotFoundError(
                    f"the folder {str(path)!r} has no {', '.join(endings)} file"
                )
            files += [str(path / "**" / glob) for glob in globs]
        else:
            if path.exists():  # a glob is not an existing path
                open_file(path, own=True).close()
            files.append(str(table))
    return files
