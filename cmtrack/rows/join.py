"""A table joined to the rows of an evaluation by their ids; nothing is guessed."""

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
    """The column of a table that an argument names; ValueError if there is none."""
    if not isinstance(name, str) or name not in columns:
        there = f"{listed(list(columns), 12)}{near(str(name), map(str, columns))}"
        raise ValueError(
            f"{argument} must be a column of the table, one of {there}, got {name!r:.80}"
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
    """The row of a table, found by its index, of each of n rows with these ids; None where both have one order.

    ValueError if numbers of rows or ids differ; the text says what to do ``instead`` where a run
    has no ids.
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
    from cmtrack._pandas import pd

    if not isinstance(table, pd.DataFrame):
        raise ValueError(
            f"row_ids as an array need a DataFrame with ids as its index, got {type(table).__name__}"
        )
    if len(row_ids) != n_rows:
        raise ValueError(
            f"row_ids must be those of the {n_rows:,} rows of the run, got {len(row_ids):,}"
        )
    _check_ids(row_ids, n_rows, digest, instead)
    if not table.index.is_unique:
        repeats = table.index[table.index.duplicated()]
        raise ValueError(
            f"the index of the table must not repeat, got {len(repeats):,} repeats, such as {repeats[0]!s:.80}"
        )
    places = table.index.get_indexer(pd.Index(np.asarray(row_ids)))
    lacking = int((places < 0).sum())
    if lacking:
        first = np.asarray(row_ids)[places < 0][0]
        raise ValueError(
            f"the table must have every row of the run: {lacking:,} of {n_rows:,} row ids are not in its index, "
            f"such as {first!s:.80}"
        )
    return np.asarray(places, dtype=np.int64)


def hashed_ids(ids: Any) -> npt.NDArray[np.uint64]:
    """Hashes of row ids, BLAKE2b of 8 bytes with the key of ``CMTRACK_ID_KEY``; short ids could be guessed without.

    ValueError if there is no key, it is longer than 64 bytes, or two ids have one hash.
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
        raise ValueError(f"two row ids have the same hash: another {ID_KEY} tells them apart")
    return np.array([int.from_bytes(one, "big") for one in hashes], dtype=np.uint64)


def by_ids(column: Any, ids: RowIds, name: str) -> IntArray:
    """The row of a table, by its column of ids in any order, of each of these ids; -1 where it has none.

    ValueError if an id repeats in the table, or none is there.
    """
    from cmtrack._pandas import pd

    lacking = np.flatnonzero(pd.isna(np.asarray(column)))
    if len(lacking):
        raise ValueError(
            f"{name!r:.80} must have an id in each row, got {len(lacking):,} without, the first is {lacking[0]:,}"
        )
    texts = np.asarray(column).astype(str)
    given = pd.Index(texts)
    if not given.is_unique:
        twice = given[given.duplicated()]
        raise ValueError(
            f"{name!r:.80} must not repeat an id, got {len(twice):,} repeats, such as {twice[0]!s:.80}"
        )
    given = pd.Index(hashed_ids(texts)) if ids.hashed else given
    places = given.get_indexer(pd.Index(ids.values if ids.hashed else ids.values.astype(str)))
    if (places < 0).all():
        key = f" (with this {ID_KEY})" if ids.hashed else ""
        first = ", ".join(f"{text!r:.80}" for text in texts[:3].tolist())
        raise ValueError(
            f"{name!r:.80} must have ids of the rows{key}, got {first}: none of {len(texts):,} is one"
        )
    return np.asarray(places, dtype=np.int64)


def _check_ids(ids: Any, n_rows: int, digest: LabelDigest | None, instead: str) -> None:
    """Check row ids against the digest of a run, which cannot show which ids differ."""
    if digest is None:
        raise ValueError(f"it was logged without row ids: {instead}")
    given = LabelDigest.from_codes(*encode_row_ids(ids, n_rows))
    if given == digest:
        return
    same = given.content_only == digest.content_only
    why = (
        "they are the same ids in another order"
        if same
        else "some are of other rows (the digest does not say which)"
    )
    raise ValueError(f"row_ids must be those of the run, in its order, got others: {why}")
