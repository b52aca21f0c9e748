"""Tables as they are given: files become DuckDB relations, frames stay what they are."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals as nw

if TYPE_CHECKING:
    import duckdb

PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


class Tables:
    """Opens tables; files, pandas and Arrow are read by one connection to DuckDB.

    Attributes
    ----------
    connection : DuckDBPyConnection or None
        Where one was needed.
    """

    def __init__(self) -> None:
        self.connection: duckdb.DuckDBPyConnection | None = None

    def open(self, table: Any) -> nw.LazyFrame[Any] | nw.DataFrame[Any]:
        """A frame of narwhals, of which nothing has been read but the names and kinds of its columns.

        Raises
        ------
        TypeError
            If it is no table.
        ValueError
            If files are of different kinds, or cannot be read.
        FileNotFoundError
            If there is no such file.
        """
        if is_path(table):
            table = self._read(_files(table))
        frame: Any = nw.from_native(table, pass_through=True)
        if not isinstance(frame, (nw.DataFrame, nw.LazyFrame)):
            raise TypeError(
                "table must be a path, a glob, a list of paths, or a frame that narwhals knows (DuckDB, Polars, "
                f"pandas, PyArrow, PySpark, Dask, Ibis), got {type(table).__name__}"
            )
        return frame

    def lazy(self, frame: nw.LazyFrame[Any] | nw.DataFrame[Any], names: Sequence[str]) -> nw.LazyFrame[Any]:
        """The named columns, to be computed by an engine that does not hold all intermediate columns at once."""
        chosen = frame.select(*names)
        if isinstance(chosen, nw.LazyFrame):
            return _dask_categories(chosen) if chosen.implementation.is_dask() else chosen
        if chosen.implementation.is_polars():
            return chosen.lazy()
        return nw.from_native(self._connect().from_arrow(chosen.to_arrow())).lazy()

    def close(self) -> None:
        """Close the connection, if there is one."""
        if self.connection is not None:
            self.connection.close()

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self.connection is None:
            import duckdb

            config: dict[str, Any] = {"preserve_insertion_order": False, "temp_directory": tempfile.gettempdir()}
            self.connection = duckdb.connect(config=config)
        return self.connection

    def _read(self, files: list[str]) -> Any:
        import duckdb

        kinds = {_kind(file) for file in files}
        if len(kinds) > 1:
            raise ValueError(f"the files must be of one kind, Parquet or CSV, got both among {files[:5]}")
        connection = self._connect()
        try:
            read: Any = connection.read_parquet if kinds == {"Parquet"} else connection.read_csv
            return read(files)
        except duckdb.IOException as error:
            raise FileNotFoundError(f"no file can be read at {files[:5]}: {_first_line(error)}") from None
        except duckdb.Error as error:
            raise ValueError(f"{files[:5]} could not be read as {kinds.pop()}: {_first_line(error)}") from None


@contextlib.contextmanager
def opened() -> Iterator[Tables]:
    """Tables whose connection is closed in the end.

    Raises
    ------
    ValueError
        If DuckDB fails at what it reads for us.
    """
    tables = Tables()
    try:
        yield tables
    except Exception as error:
        if tables.connection is not None and type(error).__module__.startswith(("duckdb", "_duckdb")):
            raise ValueError(f"the table could not be read: {_first_line(error)}") from error
        raise
    finally:
        tables.close()


def is_path(table: Any) -> bool:
    """Whether this is a path, or a list of them."""
    if isinstance(table, list):
        return bool(table) and all(isinstance(part, (str, Path)) for part in table)
    return isinstance(table, (str, Path))


def is_table(table: Any) -> bool:
    """Whether this is a path or a frame."""
    frame: Any = nw.from_native(table, pass_through=True)
    return is_path(table) or isinstance(frame, (nw.DataFrame, nw.LazyFrame))


def categories_of(frame: nw.LazyFrame[Any] | nw.DataFrame[Any], name: str) -> list[Any] | None:
    """The categories of a column whose order someone chose; None for any other column."""
    kind = frame.collect_schema()[name]
    if isinstance(kind, nw.Enum):
        return list(kind.categories)
    if not isinstance(kind, nw.Categorical):
        return None
    column: Any = frame.to_native()[name]
    if frame.implementation.is_pandas_like() or frame.implementation.is_dask():
        return list(column.cat.categories) if getattr(column.cat, "known", True) else None
    if hasattr(column, "unify_dictionaries") and column.type.ordered:  # Arrow
        return list(column.unify_dictionaries().chunk(0).dictionary.to_pylist())
    return None


def _files(table: Any) -> list[str]:
    """Paths and globs as DuckDB reads them; a folder stands for all its files."""
    found = []
    for part in table if isinstance(table, list) else [table]:
        path = Path(part)
        if "://" in str(part) or not path.is_dir():
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


def _dask_categories(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Dask frames with categories as what they stand for, which narwhals would turn into texts."""
    native: Any = frame.to_native()
    kinds: Mapping[str, Any] = {name: kind for name, kind in native.dtypes.items() if hasattr(kind, "categories")}
    plain: nw.LazyFrame[Any] = nw.from_native(
        native.astype({name: kind.categories.dtype for name, kind in kinds.items()})
    ).lazy()
    return plain


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
