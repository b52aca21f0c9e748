"""A Parquet or CSV file as a frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cmtrack.untrusted import one_line, open_file

if TYPE_CHECKING:
    import pandas as pd

Result = TypeVar("Result")
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def file_kind(name: str) -> str:
    """Parquet or CSV, by the end of the name; ValueError if it is another."""
    lowered = name.lower()
    if lowered.endswith(PARQUET):
        return "Parquet"
    if lowered.endswith(CSV):
        return "CSV"
    raise ValueError(f"a file must end in {', '.join((*PARQUET, *CSV))}, got {name!r:.300}")


def column_names(path: Path) -> list[str]:
    """Names of the file's columns; ValueError as in :func:`read_frame`."""
    if file_kind(path.name) == "CSV":
        from cmtrack._pandas import pd

        return readable(path, lambda: [str(name) for name in pd.read_csv(path, nrows=0, sep=_separator(path)).columns])
    import pyarrow.parquet as pq

    return readable(path, lambda: [str(name) for name in pq.read_schema(path).names])


def read_frame(path: Path, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """The file, or the named columns of it; ValueError if it is of another kind or cannot be read."""
    from cmtrack._pandas import pd

    names = None if columns is None else list(columns)
    if file_kind(path.name) == "Parquet":
        return readable(path, lambda: pd.read_parquet(path, columns=names))
    return readable(path, lambda: pd.read_csv(path, usecols=names, low_memory=False, sep=_separator(path)))


def readable(path: Path, read: Callable[[], Result]) -> Result:
    """Read a plain file by a function; ValueError if it is no plain file or cannot be read."""
    try:
        open_file(path, own=True).close()
        return read()
    except Exception as error:  # pandas and Arrow raise many kinds
        name, why = one_line(path.name)[:80], one_line(error)[:200]
        raise ValueError(f"{name} could not be read as {file_kind(path.name)}: {why}") from None


def _separator(path: Path) -> str:
    return "\t" if ".tsv" in path.name.lower()[-7:] else ","
