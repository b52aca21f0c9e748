"""All rows of a table in a data frame in this process, for work that needs rows and not counts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cmtrack.sources import open_source
from cmtrack.sources.source import Stream, kind_of
from cmtrack.sources.table_file import column_names, read_frame


def read_rows(table: Any, *, labels: Sequence[str] = (), texts: Sequence[str] = ()) -> Any:
    """Return the rows of a table as a pandas frame with all columns.

    Parameters
    ----------
    table : path, list of paths, or frame
        As in :func:`cmtrack.evaluate_table`, except that the rows of Spark, Dask and Ray do not
        come to this process.
    labels, texts : sequence of str, optional
        Columns of labels, and columns of ids, clusters and segments. They set the types of the
        columns of CSV files; see :func:`cmtrack.sources.table_file.read_frame`. Names of columns
        that do not exist are ignored.

    Raises
    ------
    TypeError
        If the table is not supported, or its rows are on a cluster.
    ValueError, FileNotFoundError
        If a file cannot be read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from cmtrack.sources.frames import read_rows
    >>> read_rows(pa.table({"y": [0, 1], "p": [0.2, 0.9]}))["p"].tolist()
    [0.2, 0.9]
    """
    if kind_of(table) == ("pandas", "DataFrame"):
        return table
    if isinstance(table, (str, Path)) and Path(table).is_file():
        path = Path(table)
        names = column_names(path, [*labels, *texts])
        return read_frame(
            path,
            labels=[name for name in labels if name in names],
            texts=[name for name in texts if name in names],
        )
    source = open_source(table, [*labels, *texts])
    if not isinstance(source, Stream):
        package = kind_of(table)[0].removeprefix("py").capitalize()
        raise TypeError(
            f"rows must be in this process to be compared in pairs, got a {package} frame: write "
            "its predictions to Parquet"
        )
    schema = source.schema
    return pa.Table.from_batches(source.batches(schema.names), schema).to_pandas()


def name_of(table: Any) -> str:
    """Return a file's name without its folder for messages, or "the table".

    Examples
    --------
    >>> from cmtrack.sources.frames import name_of
    >>> name_of("data/june.parquet"), name_of({})
    ('june.parquet', 'the table')
    """
    return Path(table).name if isinstance(table, (str, Path)) else "the table"
