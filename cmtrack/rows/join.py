"""A table joined to the rows of an evaluation by their ids; nothing is guessed."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmtrack.statistics import LabelDigest
from cmtrack.statistics.inputs import IntArray
from cmtrack.statistics.labels import encode_row_ids


def by_index(table: Any, row_ids: Any, n_rows: int, digest: LabelDigest | None, instead: str) -> IntArray:
    """The row of a DataFrame, found by its index, of each of n rows with these ids; all must be there.

    Raises
    ------
    ValueError
        If it is none, ids repeat or are missing, or they are not those of the digest.
    """
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        raise ValueError(f"row_ids as an array need a DataFrame with ids as its index, got {type(table).__name__}")
    if len(row_ids) != n_rows:
        raise ValueError(f"row_ids must be those of the {n_rows:,} rows of the run, got {len(row_ids):,}")
    check_ids(row_ids, n_rows, digest, instead)
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


def by_ids(column: Any, ids: Any, name: str) -> IntArray:
    """The row of a table, by its column of ids in any order, of each of these ids; -1 where it has none.

    Raises
    ------
    ValueError
        If an id repeats in the table, or none is there.
    """
    import pandas as pd

    given = pd.Index(np.asarray(column).astype(str))
    if not given.is_unique:
        twice = given[given.duplicated()]
        raise ValueError(f"{name!r:.80} must not repeat an id, got {len(twice):,} repeats, such as {twice[0]!s:.80}")
    places = given.get_indexer(pd.Index(np.asarray(ids).astype(str)))
    if len(ids) and (places < 0).all():
        raise ValueError(f"{name!r:.80} must have ids of the rows, such as {ids[0]!s:.80}, got {given[:3].tolist()}")
    return np.asarray(places, dtype=np.int64)


def check_ids(ids: Any, n_rows: int, digest: LabelDigest | None, instead: str) -> None:
    """Check row ids against the digest of a run, which cannot show which ids differ.

    Raises
    ------
    ValueError
        If there is no digest (the text says what to do ``instead``), or they are others.
    """
    if digest is None:
        raise ValueError(f"it was logged without row ids: {instead}")
    given = LabelDigest.from_codes(*encode_row_ids(ids, n_rows))
    if given == digest:
        return
    same = given.content_only == digest.content_only
    why = "they are the same ids in another order" if same else "some are of other rows (the digest does not say which)"
    raise ValueError(f"row_ids must be those of the run, in its order, got others: {why}")
