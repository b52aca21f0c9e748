"""Files of Parquet and CSV, opened by DuckDB, and read by it or by PyArrow."""

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
from cmtrack.sources.duckdb import DuckDBStream, explained, quoted
from cmtrack.sources.source import Watch
from cmtrack.sources.table_file import CSV, PARQUET, file_kind
from cmtrack.sources.texts import KINDS, kind_of_texts, kinds_of_labels, lossless_kinds, read_header
from cmtrack.statistics.kernel import Tally
from cmtrack.statistics.labels import MAX_CLASSES
from cmtrack.statistics.score_pass import n_threads
from cmtrack.untrusted import open_file

_SAMPLE = 1 << 17
_BUFFER = 1 << 18
"""Bytes of a column that are read at a time."""
_FEW = 1000
"""Files whose ends are all read before."""
_SQL: dict[type | None, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}


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
        # no other column's name
        labels, n_rows = ", ".join(map(quoted, names)), quoted("".join([*names, "#"]))
        groups = self.relation.aggregate(f"{labels}, count(*) AS {n_rows}", labels)
        batches: list[pa.RecordBatch] = groups.to_arrow_table().to_batches()
        return batches


class CSVStream(FileStream):
    """Batches of CSV files, whose columns have no types of their own.

    DuckDB guesses the types of columns of numbers. It would guess the type of each label column alone, so
    :meth:`with_kinds` reads the texts of labels, ids and segments first.
    """

    def __init__(
        self, connection: Any, files: list[str], options: dict[str, Any], has_blanks: bool
    ) -> None:
        self.files = files
        self.options = options
        self.has_blanks = has_blanks
        self.connection = connection
        guessed = connection.read_csv(files, **options)
        self.clean_names = {raw: raw.strip() if has_blanks else raw for raw in guessed.columns}
        super().__init__(self._with_clean_names(guessed), connection)

    def with_kinds(self, columns: Columns, label_kinds: Collection[type] = KINDS) -> FileStream:
        """The same rows, in which labels, ids and segments have a kind that keeps every text."""
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
        """The relation with clean names, in which these columns are texts."""
        types = {raw: "VARCHAR" for raw, clean in self.clean_names.items() if clean in texts}
        return self._with_clean_names(
            self.connection.read_csv(self.files, **self.options, dtype=types)
        )

    def _with_clean_names(self, relation: Any) -> Any:
        renamed = [f"{quoted(raw)} AS {quoted(clean)}" for raw, clean in self.clean_names.items()]
        return relation.project(", ".join(renamed))

    def _converted(self, name: str, kind: type | None) -> str:
        """A column in SQL; None keeps its type."""
        column = quoted(name)
        if kind is str and self.has_blanks:
            return f"trim({column}) AS {column}"
        if kind in _SQL:
            return f"CAST(trim({column}) AS {_SQL[kind]}) AS {column}"
        return column


def _has(schema: pa.Schema, wanted: list[pa.Field]) -> bool:
    places = [schema.get_field_index(field.name) for field in wanted]
    return all(
        at >= 0 and schema.field(at).type == field.type
        for at, field in zip(places, wanted, strict=True)
    )


def _batches(files: Sequence[str], names: list[str]) -> Iterator[pa.RecordBatch]:
    for file in files:
        with parquet.ParquetFile(file, buffer_size=_BUFFER) as rows:
            # On few cores, which the kernel's own threads hold, one thread decodes in less time than several.
            for batch in rows.iter_batches(
                rows_at_once(len(names)), columns=names, use_threads=n_threads() > 8
            ):
                yield batch.select(names)


def opened(
    table: Any, names: Sequence[str] = (), missing: Sequence[str] | None = None
) -> FileStream | None:
    """The source of a path, a glob, a folder or a list of them.

    ``names``: columns that the caller names. If the first line of a CSV file has one of them, it is the header.
    ``missing``: texts that are missing values in CSV files; by default an empty field.
    """
    paths = table if isinstance(table, list) else [table]
    if not paths or not all(isinstance(part, (str, Path)) for part in paths):
        return None
    files = _files(paths)
    kinds = {file_kind(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(
            f"the files must be of one kind, Parquet or CSV, got both among {files[:5]}"
        )
    with needs("reading files", "duckdb"):
        import duckdb

    config: dict[str, Any] = {
        "preserve_insertion_order": False,
        "temp_directory": tempfile.gettempdir(),
    }
    connection = duckdb.connect(config=config)
    # whole row groups in advance cost memory, and help over a network
    if not any("://" in file for file in files):
        with contextlib.suppress(duckdb.Error):  # older ones have no such setting
            connection.execute("SET disable_parquet_prefetching = true")
    try:
        if kinds == {"CSV"}:
            return _csv_stream(connection, files, names, missing)
        source = FileStream(connection.read_parquet(files), connection)
        source.n_rows = source.relation.count("*").fetchall()[0][0]  # the files' ends know it
        local = _local_files(connection, files)
        if len(local) <= _FEW and not any("://" in file or "=" in file for file in local):
            source.parquet = local  # "=": a folder's name may be a column
        return source
    except duckdb.IOException as error:
        raise FileNotFoundError(
            f"no file can be read at {files[:5]}: {_first_line(error)}"
        ) from None
    except duckdb.Error as error:
        raise ValueError(
            f"{files[:5]} could not be read as {kinds.pop()}: {_first_line(error)}"
        ) from None


def _csv_stream(
    connection: Any, files: list[str], names: Sequence[str], missing: Sequence[str] | None
) -> CSVStream:
    options: dict[str, Any] = {}
    if missing is not None:
        options["na_values"] = list(missing)
    local = [] if "://" in files[0] else _local_files(connection, files[:1])
    header = read_header(Path(local[0]), names) if local else None
    # DuckDB looks for a header, unless the names are those that it gives
    if header is None or not header.n_found:
        if names and all(re.fullmatch(r"column[0-9]+", name) for name in names):
            options["header"] = False
        return CSVStream(connection, files, options, False)
    options |= {"header": True, "sep": header.separator}
    return CSVStream(connection, files, options, header.has_blanks)


def _local_files(connection: Any, files: Sequence[str]) -> list[str]:
    globs = [connection.execute("SELECT file FROM glob(?)", [file]).fetchall() for file in files]
    return [file for matches in globs for (file,) in matches]


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
            raise FileNotFoundError(
                f"the folder {str(path)!r} holds no {', '.join((*PARQUET, *CSV))} file"
            )
        out += [str(path / "**" / f"*{kind}") for kind in inside]
    return out


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
