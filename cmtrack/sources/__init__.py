"""Sources of rows: files and frames that are read in batches, and clusters on whose workers the kernel runs.

A new source is a module here with a class of :mod:`cmtrack.sources.source` and a function ``opened``, which gives
one for the tables that are its own and None for others; its name stands in :data:`MODULES`. Files come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from cmtrack._lazy import needs

with needs("reading tables", "pyarrow"):
    import pyarrow  # noqa: F401
from cmtrack.sources.batches import Work
from cmtrack.sources.columns import Columns, check_kinds, choose_columns, label_kind, match_pattern
from cmtrack.sources.source import Cluster, Source, Stream

__all__ = [
    "Cluster",
    "Columns",
    "Source",
    "Stream",
    "Work",
    "check_kinds",
    "choose_columns",
    "find_source",
    "label_kind",
    "match_pattern",
    "open_source",
]

MODULES = ("duckdb", "polars", "pandas", "dask", "spark", "ray", "ibis", "arrow")


def find_source(
    table: Any, names: Sequence[str] = (), missing: Sequence[str] | None = None
) -> Source | None:
    """The source of a table; None for an unsupported type.

    Parameters
    ----------
    table
        A path, a glob, a list of paths, or a frame.
    names : sequence of str, optional
        Columns that the caller names. They tell the header of a CSV file and its separator.
    missing : sequence of str, optional
        Texts that are missing values in CSV files; by default an empty field.

    Raises
    ------
    ValueError
        If files are of different kinds, or cannot be read.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import pandas as pd
    >>> from cmtrack.sources import find_source
    >>> find_source(pd.DataFrame({"y": [0, 1]})).n_rows, find_source(7)
    (2, None)
    """
    if isinstance(table, Source):
        return table
    from cmtrack.sources import files

    stream = files.opened(table, names, missing)
    if stream is not None:
        return stream
    sources = (import_module(f"cmtrack.sources.{name}").opened(table) for name in MODULES)
    return next((source for source in sources if source is not None), None)


def open_source(
    table: Any, names: Sequence[str] = (), missing: Sequence[str] | None = None
) -> Source:
    """Open a table as a source of rows; only the names and kinds of its columns are read.

    Parameters
    ----------
    table, names, missing
        As of :func:`find_source`.

    Raises
    ------
    TypeError
        If it is not a table.
    ValueError, FileNotFoundError
        As of :func:`find_source`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack.sources import open_source
    >>> open_source(pa.table({"y": [0, 1], "p": [0.2, 0.9]})).schema.names
    ['y', 'p']
    """
    source = find_source(table, names, missing)
    if source is None:
        raise TypeError(
            "table must be a path, a glob, a list of paths, or a frame (DuckDB, Polars, pandas, PyArrow, PySpark, "
            f"Dask, Ray, Ibis, or any other that streams Arrow), got {type(table).__name__}"
        )
    return source


def kind_of(table: Any) -> tuple[str, str]:
    """The package and the name of a table's class, which tell a source without importing its package."""
    return type(table).__module__.partition(".")[0], type(table).__name__
