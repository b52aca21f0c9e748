"""Files of Parquet and CSV, read by DuckDB on all cores."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from cmtrack.sources.duckdb import DuckDBStream
from cmtrack.untrusted import open_file

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def opened(table: Any) -> DuckDBStream | None:
    """The source of a path, a glob, a folder or a list of them."""
    paths = table if isinstance(table, list) else [table]
    if not paths or not all(isinstance(part, (str, Path)) for part in paths):
        return None
    files = _files(paths)
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise ValueError(f"the files must be of one kind, Parquet or CSV, got both among {files[:5]}")
    import duckdb

    config: dict[str, Any] = {"preserve_insertion_order": False, "temp_directory": tempfile.gettempdir()}
    connection = duckdb.connect(config=config)
    try:
        read: Any = connection.read_parquet if kinds == {"Parquet"} else connection.read_csv
        source = DuckDBStream(read(files), connection)
        if kinds == {"Parquet"}:
            source.n_rows = source.relation.count("*").fetchall()[0][0]  # the files' ends know it
        return source
    except duckdb.IOException as error:
        raise FileNotFoundError(f"no file can be read at {files[:5]}: {_first_line(error)}") from None
    except duckdb.Error as error:
        raise ValueError(f"{files[:5]} could not be read as {kinds.pop()}: {_first_line(error)}") from None


def _files(paths: list[Any]) -> list[str]:
    """Paths and globs as DuckDB reads them; a folder stands for all its files."""
    found = []
    for part in paths:
        path = Path(part)
        if "://" in str(part) or not path.is_dir():
            if path.exists():
                open_file(path, own=True).close()
            found.append(str(part))
            continue
        inside = [kind for kind in (*PARQUET, *CSV) if any(path.rglob(f"*{kind}"))]
        if not inside:
            raise FileNotFoundError(f"the folder {str(path)!r} holds no {', '.join((*PARQUET, *CSV))} file")
        found += [str(path / "**" / f"*{kind}") for kind in inside]
    return found


def _kind(file: str) -> str:
    name = file.lower()
    if name.endswith(PARQUET):
        return "Parquet"
    if name.endswith(CSV):
        return "CSV"
    raise ValueError(f"a file must end in {', '.join((*PARQUET, *CSV))}, got {file!r}")


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
