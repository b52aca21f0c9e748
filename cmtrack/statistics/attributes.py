"""Columns of any values become numbers: attributes of granules, columns that divide the rows into segments.

Missing values are a value of their own. pandas, polars and Arrow objects are recognised by their own attributes, so
that none of these libraries is imported here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping.step import plain
from cmtrack.statistics.factorize import is_missing
from cmtrack.statistics.inputs import BoolArray, IntArray, listed

_RANGE = 1 << 16
"""Whole numbers that span no more, or four times their number more, are numbered by a table instead of sorting."""


@dataclass(frozen=True)
class Called:
    """The words of error texts.

    ``data``: all columns.
    ``column``: one of them.
    ``names``: the argument that chooses them.
    ``hint``: advice where a text is given in place of columns.
    """

    data: str = "X"
    column: str = "attribute"
    names: str = "attributes"
    hint: str = ""


ATTRIBUTES = Called()


def attribute_columns(
    data: Any, attributes: Sequence[Hashable] | None = None, called: Called = ATTRIBUTES
) -> dict[Hashable, Any]:
    """The chosen columns of a frame, a mapping of columns, a series or an array, by name; by position in an array."""
    columns, names = _columns(data, called), called.names
    if not columns:
        raise ValueError(f"{called.data} must have at least one {called.column}, got none")
    if attributes is None:
        return columns
    if isinstance(attributes, (str, bytes)):
        raise TypeError(f"{names} must be a sequence of names, got the text {attributes!r}")
    chosen = [plain(name) for name in attributes]
    if not chosen:
        raise ValueError(
            f"{names} must name at least one column, got none; None stands for all of them"
        )
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"{names} must not repeat, got {chosen[:20]}")
    strange = [name for name in chosen if name not in columns]
    if strange:
        raise ValueError(
            f"{names} must be columns of {called.data}, {listed(strange)} are not in {listed(list(columns), 20)}"
        )
    return {name: columns[name] for name in chosen}


def encode_attribute(
    name: Hashable, column: Any, called: Called = ATTRIBUTES
) -> tuple[IntArray, list[Any]]:
    """Number the values of one attribute.

    Missing values (None, NaN, NA, NaT) are one value of their own, written None. Times are read in microseconds.

    Returns
    -------
    codes : ndarray of shape (n,), int64
    values : list
        What each code stands for.
    """
    if type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype":  # pandas
        holder = getattr(column, "cat", column)
        codes, values = (
            np.asarray(holder.codes, dtype=np.int64),
            [plain(v) for v in holder.categories],
        )
        return _with_missing(codes, values, codes < 0)
    array, missing = _array(column)
    if array.ndim != 1:
        raise ValueError(
            f"{called.column} {name!r} must have shape (n_samples,), got {array.shape}"
        )
    if array.dtype.kind in "mM":
        array = array.astype(f"{'timedelta64' if array.dtype.kind == 'm' else 'datetime64'}[us]")
        missing = missing | np.isnat(array)
    elif array.dtype.kind == "f":
        missing = missing | np.isnan(array)
    elif array.dtype.kind not in "iubUS":
        return _encode_objects(f"{called.column} {name!r}", array)
    present = array[~missing] if missing.any() else array
    sorted_values, numbers = distinct(present)
    if len(present) == len(array):
        return numbers, sorted_values.tolist()
    codes = np.zeros(len(array), dtype=np.int64)
    codes[~missing] = numbers
    return _with_missing(codes, sorted_values.tolist(), missing)


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """Sorted distinct values, and the place of each value among them; small whole numbers are not sorted for it."""
    if values.dtype.kind in "iub" and len(values):
        low = int(values.min())
        if int(values.max()) - low < _RANGE + 4 * len(values) and abs(low) < 1 << 62:
            shifted = values.astype(np.int64) - low
            present = np.zeros(int(values.max()) - low + 1, dtype=bool)
            present[shifted] = True
            place = np.cumsum(present, dtype=np.int64) - 1
            return (np.flatnonzero(present) + low).astype(values.dtype), place[shifted]
    sorted_values, place = np.unique(values, return_inverse=True)
    return sorted_values, place.astype(np.int64, copy=False)


def _columns(data: Any, called: Called) -> dict[Hashable, Any]:
    if isinstance(data, Mapping):
        return {plain(name): column for name, column in data.items()}
    names = getattr(data, "column_names", None)  # Arrow
    names = getattr(data, "columns", None) if names is None else names  # pandas, polars
    if names is not None and not callable(names):
        listed = [plain(name) for name in names]
        if len(set(listed)) != len(listed):
            raise ValueError(
                f"the columns of {called.data} must have names of their own, got {listed[:20]}"
            )
        return {name: data[name] for name in listed}
    # a series, or one column of an array
    if getattr(data, "ndim", None) == 1 or hasattr(data, "to_list"):
        name = getattr(data, "name", None)
        return {0 if name is None or name == "" else plain(name): data}
    if isinstance(data, (list, tuple)):
        if data and not any(isinstance(row, (list, tuple, np.ndarray)) for row in data):
            return {0: data}
        data = _rows(data, called.data)
    array = np.asarray(data)
    if array.ndim == 0:
        raise TypeError(
            f"{called.data} must be a table, a mapping of name to column, a series or an array, got {data!r:.60}"
            f"{called.hint}"
        )
    if array.ndim != 2:
        raise ValueError(
            f"{called.data} must have shape (n_samples, n_{called.names}), got {array.shape}"
        )
    return dict(enumerate(array.T))


def _rows(data: Sequence[Any], what: str) -> npt.NDArray[Any]:
    """Rows in a list, each value as it is: NumPy would turn mixed ones into texts."""
    widths = {len(row) if isinstance(row, (list, tuple, np.ndarray)) else -1 for row in data}
    if len(widths) != 1 or -1 in widths:
        raise ValueError(
            f"{what} must have rows of one length, got {data[0]!r:.40}, …"
            if data
            else f"{what} must not be empty"
        )
    array = np.empty((len(data), widths.pop()), dtype=object)
    for i, row in enumerate(data):
        array[i] = row
    return array


def _array(column: Any) -> tuple[npt.NDArray[Any], BoolArray]:
    """A column as an array, and which of its entries are missing."""
    nothing = np.zeros(len(column), dtype=bool)
    if hasattr(column, "isna") and hasattr(column, "index"):  # pandas, whatever backs it
        missing = np.asarray(column.isna()).ravel()
        return (np.asarray(column.astype(object)) if missing.any() else np.asarray(column)), missing
    if hasattr(column, "null_count"):  # polars, Arrow
        nulls = column.null_count() if callable(column.null_count) else column.null_count
        if nulls:
            listed = column.to_list() if hasattr(column, "to_list") else column.to_pylist()
            return _objects(listed), np.asarray(column.is_null())
    if isinstance(column, (list, tuple)):
        return _objects(column), nothing
    return np.asarray(column), nothing


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _encode_objects(what: str, array: npt.NDArray[Any]) -> tuple[IntArray, list[Any]]:
    seen: dict[Any, int] = {}
    values = (None if is_missing(value) else plain(value) for value in array.tolist())
    try:
        codes = np.fromiter(
            (seen.setdefault(value, len(seen)) for value in values), np.int64, len(array)
        )
    except TypeError:
        raise ValueError(
            f"{what} must hold one value per row, got values like {array[0]!r:.80}"
        ) from None
    return codes, list(seen)


def _with_missing(
    codes: IntArray, values: list[Any], missing: BoolArray
) -> tuple[IntArray, list[Any]]:
    if not missing.any():
        return codes, values
    return np.where(missing, len(values), codes), [*values, None]
