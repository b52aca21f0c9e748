"""Sources of rows: files and frames in batches, and clusters whose workers run the kernel.

This room turns tables of other libraries into batches for the kernel of ``statistics``. It does not
count rows and has no metrics. Start with ``source``, which has the interface of all sources, then
read a short source such as ``polars``. ``columns`` finds the columns of an evaluation and checks
their types, ``batches`` makes the kernel's batches, and ``texts`` has the rules for CSV files,
which have no types.

A new source is a module in this room with a class of :mod:`cmtrack.sources.source` and a function
``opened``. The function returns a source for its own tables and None for other tables. Add the
module's name to :data:`MODULES`. Files are tried first.
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
    """Find the source of a table; None for an unsupported type.

    Parameters
    ----------
    table
        A path, a glob, a list of paths, or a frame.
    names : sequence of str, optional
        Columns that the caller names. They determine the header and separator of a CSV file.
    missing : sequence of str, optional
        Texts that mean a missing value in CSV files; by default an empty field.

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

    source: Source | None = files.opened(table, names, missing)
    for name in MODULES:
        if source is not None:
            break
        # A module does not import its library, which may be missing, before it gets such a table.
        source = import_module(f"cmtrack.sources.{name}").opened(table)
    return source


def open_source(
    table: Any, names: Sequence[str] = (), missing: Sequence[str] | None = None
) -> Source:
    """Open a table as a source of rows; only the names and kinds of its columns are read.

    Parameters
    ----------
    table, names, missing
        As in :func:`find_source`.

    Raises
    ------
    TypeError
        If it is not a table.
    ValueError, FileNotFoundError
        As in :func:`find_source`.

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
            "table must be a path, a glob, a list of paths, or a frame (DuckDB, Polars, pandas, "
            "PyArrow, PySpark, Dask, Ray, Ibis, or any other that streams Arrow), got "
            f"{type(table).__name__}"
        )
    return source
