"""Sources of rows: files and frames that are read in batches, and clusters on whose workers the kernel runs.

A new source is a module here with a class of :mod:`cmtrack.sources.source` and a function ``opened``, which gives
one for the tables that are its own and None for others; its name stands in :data:`MODULES`.
"""

from __future__ import annotations

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

MODULES = ("files", "duckdb", "polars", "pandas", "dask", "spark", "ray", "ibis", "arrow")


def find_source(table: Any) -> Source | None:
    """The source of a table; None for an unsupported type.

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
    sources = (import_module(f"cmtrack.sources.{name}").opened(table) for name in MODULES)
    return next((source for source in sources if source is not None), None)


def open_source(table: Any) -> Source:
    """Open a table as a source of rows; only the names and kinds of its columns are read.

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
    source = find_source(table)
    if source is None:
        raise TypeError(
            "table must be a path, a glob, a list of paths, or a frame (DuckDB, Polars, pandas, PyArrow, PySpark, "
            f"Dask, Ray, Ibis, or any other that streams Arrow), got {type(table).__name__}"
        )
    return source


def kind_of(table: Any) -> tuple[str, str]:
    """The package and the name of a table's class, which tell a source without importing its package."""
    return type(table).__module__.partition(".")[0], type(table).__name__
