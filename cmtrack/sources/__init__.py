"""Sources of rows: files and frames that are read in batches, and clusters of workers.

This package converts tables from other libraries to batches for the kernel in ``statistics``. The
package does not count rows and does not compute metrics. Start with ``source``, which defines the
interface of all sources, and then read a short source such as ``polars``. ``columns`` finds the
columns for an evaluation and checks their types, ``batches`` creates the batches for the kernel,
and ``texts`` defines the rules for CSV files, whose columns have no types.

To add a source, write a module in this package with a subclass of a class in
:mod:`cmtrack.sources.source` and a function ``opened``. The function returns a source for tables
from its library, and None for any other table. Then add the module's name to :data:`MODULES`. The
modules are tried in this order, with files first.
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
        Columns that the caller names. These names are used to find the header and separator of a
        CSV file.
    missing : sequence of str, optional
        Texts that mark a missing value in a CSV file; by default an empty field.

    Raises
    ------
    ValueError
        If the files are of different kinds, or cannot be read.
    FileNotFoundError
        If a file does not exist.

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
        # The library may not be installed, so a module imports it only for a table of this library.
        source = import_module(f"cmtrack.sources.{name}").opened(table)
    return source


def open_source(
    table: Any, names: Sequence[str] = (), missing: Sequence[str] | None = None
) -> Source:
    """Open a table as a source of rows; this reads only the names and types of its columns.

    Parameters
    ----------
    table, names, missing
        As in :func:`find_source`.

    Raises
    ------
    TypeError
        If the argument is not a supported table.
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
