"""Rows of pandas objects go by their index: columns are put in one order, or refused, never mixed by position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cmtrack.statistics.inputs import listed

_WAY_OUT = "sort both with .sort_index() to go by index, or pass .to_numpy() of both to go by position"


def align_rows(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns with their rows in one order.

    Parameters
    ----------
    columns : mapping of name to array-like, mapping of array-likes, or None
        By the names that error texts use; the first one gives the order (``y_true``).

    Returns
    -------
    dict of name to array-like

    Raises
    ------
    ValueError
        If the indexes of pandas objects name different rows, or the same rows in an order that cannot be known.

    Notes
    -----
    A default index (0 to n - 1) names no rows: it stands beside any other by position, as the predictions of a part of
    the data do that ``train_test_split`` has shuffled. Where it holds the very keys of another index in another order,
    both readings are possible, and the columns are refused. Of two other indexes, equal ones need nothing; the same
    keys in another order are put in the first one's; others are refused. Columns of unequal length are left for the
    check of lengths.
    """
    parts = [(name, *part) for name, values in columns.items() for part in _parts(name, values)]
    named = [part for part in parts if not _is_default(part[2])]
    out = dict(columns)
    if not named:
        return out
    leader, first, index = named[0]
    for _, part, own in parts:
        if _is_default(own) and _contradicts(own, index):
            raise ValueError(
                f"the rows of {first} and {part} must be in one order: their indexes hold the same keys in another "
                "order, and one is the default 0 to n - 1, so it cannot be known whether rows go by index or by "
                f"position; {_WAY_OUT}"
            )
    for name, part, own in named[1:]:
        order = _order(first, index, part, own)
        if order is None:
            continue
        if leader != next(iter(columns)):
            raise ValueError(
                f"the rows of {first} and {part} must be in one order: their indexes hold the same keys in another "
                f"order, and {next(iter(columns))} has no such index to go by; {_WAY_OUT}"
            )
        out[name] = _taken(out[name], part, name, order)
    return out


def _parts(name: str, values: Any) -> Iterator[tuple[str, Any]]:
    """The indexes of a column, or of the columns of a mapping, each by the name that error texts use."""
    columns = [(f"{name}[{key!r}]", one) for key, one in values.items()] if isinstance(values, Mapping) else []
    for part, one in columns or [(name, values)]:
        index = getattr(one, "index", None)  # of a pandas Series or frame; a list has a method of that name
        if hasattr(index, "get_indexer") and hasattr(one, "iloc"):
            yield part, index


def _is_default(index: Any) -> bool:
    """True for the index that pandas gives by itself, 0 to n - 1."""
    return type(index).__name__ == "RangeIndex" and bool(index.start == 0 and index.step == 1)


def _contradicts(default: Any, index: Any) -> bool:
    """True for an index that holds the keys 0 to n - 1 in another order."""
    if len(index) != len(default) or index.equals(default) or not index.is_unique:
        return False
    return bool((default.get_indexer(index) >= 0).all())


def _order(first: str, index: Any, name: str, own: Any) -> Any:
    """Places of the first column's rows in another one, shape (n,); None where they are in order."""
    if own is index or len(own) != len(index) or own.equals(index):
        return None
    if not (own.is_unique and index.is_unique):
        raise ValueError(
            f"the rows of {first} and {name} must be in one order: their indexes differ and hold keys more than once; "
            f"{_WAY_OUT}"
        )
    place = own.get_indexer(index)
    if (place < 0).any():
        lacking = index[np.flatnonzero(place < 0)].tolist()
        raise ValueError(
            f"{first} and {name} must hold the same rows: the index of {name} lacks the keys {listed(lacking, 3)} of "
            f"{first}; pass .to_numpy() of both to go by position"
        )
    return place


def _taken(values: Any, part: str, name: str, order: Any) -> Any:
    if not isinstance(values, Mapping):
        return values.iloc[order]
    return {key: one.iloc[order] if f"{name}[{key!r}]" == part else one for key, one in values.items()}
