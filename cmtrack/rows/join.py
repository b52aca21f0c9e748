"""Functions that match the rows of a table to the rows of an evaluation only by id."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.metrics.names import near
from cmtrack.statistics import LabelDigest
from cmtrack.statistics.inputs import IntArray, listed
from cmtrack.statistics.labels import encode_row_ids
from cmtrack.statistics.predictions import RowIds

ID_KEY = "CMTRACK_ID_KEY"


def column_called(argument: str, name: Any, columns: Mapping[Any, Any]) -> Any:
    """Return the table column with the given name; ValueError if it does not exist."""
    if not isinstance(name, str) or name not in columns:
        names = f"{listed(list(columns), 12)}{near(str(name), map(str, columns))}"
        raise ValueError(
            f"{argument} must be a column of the table, one of {names}, got {name!r:.80}"
        )
    return columns[name]


def places_in(
    table: Any,
    columns: Mapping[Any, Any],
    row_ids: Any,
    n_rows: int,
    digest: LabelDigest | None,
    instead: str,
) -> IntArray | None:
    """For each of n rows with ids, find the row's position in a table through the table's index.

    Returns None if the table and the rows are already in the same order. ValueError if the numbers
    of rows differ, or if the ids differ. If a run stores no ids, the error message includes the
    advice in ``instead``.
    """
    if row_ids is not None and not isinstance(row_ids, str):
        return _by_index(table, row_ids, n_rows, digest, instead)
    n_table = len(next(iter(columns.values())))
    if n_table != n_rows:
        raise ValueError(
            f"the table must have a row for each of the {n_rows:,} rows, got {n_table:,}: "
            f"{abs(n_table - n_rows):,} do not match"
        )
    if row_ids is not None:
        _check_ids(column_called("row_ids", row_ids, columns), n_rows, digest, instead)
    return None


def _by_index(
    table: Any, row_ids: Any, n_rows: int, digest: LabelDigest | None, instead: str
) -> IntArray:
    """For each id, find the position of its row in a frame through the frame's index."""
    from cmtrack._pandas import pd

    if not isinstance(table, pd.DataFrame):
        kind = type(table).__name__
        raise ValueError(f"row_ids as an array need a DataFrame with ids as its index, got {kind}")
    if len(row_ids) != n_rows:
        raise ValueError(
            f"row_ids must have one id for each of the run's {n_rows:,} rows, got {len(row_ids):,}"
        )
    _check_ids(row_ids, n_rows, digest, instead)
    if not table.index.is_unique:
        repeats = table.index[table.index.duplicated()]
        raise ValueError(
            f"the index of the table must not repeat, got {len(repeats):,} repeats, "
            f"such as {repeats[0]!s:.80}"
        )
    ids = np.asarray(row_ids)
    rows = table.index.get_indexer(pd.Index(ids))
    lacking = ids[rows < 0]
    if len(lacking):
        raise ValueError(
            f"the table must have every row of the run: {len(lacking):,} of {n_rows:,} row ids "
            f"are not in its index, such as {lacking[0]!s:.80}"
        )
    return np.asarray(rows, dtype=np.int64)


def hashed_ids(ids: Any) -> npt.NDArray[np.uint64]:
    """Return 8-byte BLAKE2b hashes of row ids, computed with the key in ``CMTRACK_ID_KEY``.

    Without the key, somebody could guess short ids by hashing all possible ids. ValueError if the
    key is not set, if it is longer than 64 bytes, or if two ids have the same hash.
    """
    key = os.environ.get(ID_KEY, "").encode("utf-8")
    if not 0 < len(key) <= 64:
        raise ValueError(
            f"hashes of row ids need a key of 1 to 64 bytes in {ID_KEY}, got {len(key)} bytes"
        )
    texts = map(str, np.asarray(ids).tolist())
    hashes = [
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key).digest()
        for text in texts
    ]
    if len(set(hashes)) < len(hashes):
        raise ValueError(f"two row ids have the same hash: choose another {ID_KEY}")
    return np.array([int.from_bytes(digest, "big") for digest in hashes], dtype=np.uint64)


def by_ids(column: Any, ids: RowIds, name: str) -> IntArray:
    """For each id, look up the position of its row in a table through the table's id column.

    The rows of the table may be in any order. The position is -1 if the id is not in the table.
    ValueError if an id occurs more than once in the table, or if the table contains none of the
    ids.
    """
    from cmtrack._pandas import pd

    lacking = np.flatnonzero(pd.isna(np.asarray(column)))
    if len(lacking):
        raise ValueError(
            f"{name!r:.80} must have an id in each row, got {len(lacking):,} without, "
            f"the first is {lacking[0]:,}"
        )
    texts = np.asarray(column).astype(str)
    index = pd.Index(texts)
    if not index.is_unique:
        repeats = index[index.duplicated()]
        raise ValueError(
            f"{name!r:.80} must not repeat an id, got {len(repeats):,} repeats, "
            f"such as {repeats[0]!s:.80}"
        )
    if ids.hashed:
        index = pd.Index(hashed_ids(texts))
        rows = index.get_indexer(pd.Index(ids.values))
    else:
        rows = index.get_indexer(pd.Index(ids.values.astype(str)))
    if (rows < 0).all():
        remark = f" (with this {ID_KEY})" if ids.hashed else ""
        first = ", ".join(f"{text!r:.80}" for text in texts[:3].tolist())
        raise ValueError(
            f"{name!r:.80} must contain ids of the rows{remark}, got {first}: the run has none "
            f"of these {len(texts):,} ids"
        )
    return np.asarray(rows, dtype=np.int64)


def _check_ids(ids: Any, n_rows: int, digest: LabelDigest | None, instead: str) -> None:
    """Check row ids against a run's digest, which cannot show which of the ids differ."""
    if digest is None:
        raise ValueError(f"it was logged without row ids: {instead}")
    found = LabelDigest.from_codes(*encode_row_ids(ids, n_rows))
    if found == digest:
        return
    why = "some ids belong to other rows (the digest does not show which)"
    if found.content_only == digest.content_only:
        why = "they are the same ids in another order"
    raise ValueError(f"row_ids must be the ids of the run, in the same order, got others: {why}")
