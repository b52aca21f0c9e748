"""Conversion of columns with values of any type to numbers, for attributes and segments.

All missing values together are treated as one separate value. pandas, polars and Arrow objects are
recognised by their attributes, so that this module does not import these libraries.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping.step import plain
from cmtrack.statistics.factorize import is_missing
from cmtrack.statistics.inputs import BoolArray, IntArray, is_categorical, listed, n_nulls

_RANGE = 1 << 16
"""Largest range of integers for a lookup table; four times the number of rows is added."""


@dataclass(frozen=True)
class Called:
    """Words that error messages use for columns.

    ``data``: word for all columns together.
    ``column``: word for a single column.
    ``names``: the argument that selects columns.
    ``hint``: advice for a caller who passes a text instead of columns.
    """

    data: str = "X"
    column: str = "attribute"
    names: str = "attributes"
    hint: str = ""


ATTRIBUTES = Called()


def attribute_columns(
    data: Any, attributes: Sequence[Hashable] | None = None, called: Called = ATTRIBUTES
) -> dict[Hashable, Any]:
    """Return the selected columns by name; columns of an array are named by position.

    ``data``: a frame, a mapping of columns, a series or an array.
    ``attributes``: the names of the selected columns; None for all columns.
    """
    columns = _columns(data, called)
    names = called.names
    if not columns:
        raise ValueError(f"{called.data} must have at least one {called.column}, got none")
    if attributes is None:
        return columns
    if isinstance(attributes, (str, bytes)):
        raise TypeError(f"{names} must be a sequence of names, got the string {attributes!r}")
    chosen = [plain(name) for name in attributes]
    if not chosen:
        raise ValueError(
            f"{names} must name at least one column, got none; None selects all of them"
        )
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"{names} must not repeat, got {chosen[:20]}")
    unknown = [name for name in chosen if name not in columns]
    if unknown:
        raise ValueError(
            f"{names} must be columns of {called.data}, {listed(unknown)} are not in "
            f"{listed(list(columns), 20)}"
        )
    return {name: columns[name] for name in chosen}


def encode_attribute(
    name: Hashable, column: Any, called: Called = ATTRIBUTES
) -> tuple[IntArray, list[Any]]:
    """Number the distinct values of one attribute.

    Missing values (None, NaN, NA, NaT) become one separate value, None. Times are rounded to
    microseconds.

    Returns
    -------
    codes : ndarray of shape (n,), int64
    values : list
        The value that each code represents.
    """
    if is_categorical(column):
        holder = getattr(column, "cat", column)
        codes = np.asarray(holder.codes, dtype=np.int64)
        return _with_missing(codes, [plain(v) for v in holder.categories], codes < 0)
    shown_name = f"{called.column} {name!r}"
    array, missing = _array(column)
    if array.ndim != 1:
        raise ValueError(f"{shown_name} must have shape (n_samples,), got {array.shape}")
    kind = array.dtype.kind
    if kind == "m":
        array = array.astype("timedelta64[us]")
    elif kind == "M":
        array = array.astype("datetime64[us]")
    elif kind not in "fiubUS":
        return _encode_objects(shown_name, array)
    if kind in "mMf":
        missing = missing | np.isnan(array)
    if not missing.any():
        values, codes = distinct(array)
        return codes, values.tolist()
    values, numbers = distinct(array[~missing])
    codes = np.zeros(len(array), dtype=np.int64)
    codes[~missing] = numbers
    return _with_missing(codes, values.tolist(), missing)


def distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], IntArray]:
    """Return the sorted distinct values, and the index of each value among them.

    Whole numbers with a small range are numbered without sorting.
    """
    if values.dtype.kind in "iub" and len(values):
        low = int(values.min())
        width = int(values.max()) - low + 1
        # Below 2**62 the difference of two 64-bit integers cannot overflow.
        if width <= _RANGE + 4 * len(values) and abs(low) < 1 << 62:
            shifted = values.astype(np.int64) - low
            is_present = np.zeros(width, dtype=bool)
            is_present[shifted] = True
            place = np.cumsum(is_present, dtype=np.int64) - 1
            return (np.flatnonzero(is_present) + low).astype(values.dtype), place[shifted]
    sorted_values, place = np.unique(values, return_inverse=True)
    return sorted_values, place.astype(np.int64, copy=False)


def _columns(data: Any, called: Called) -> dict[Hashable, Any]:
    """Return all columns of a table, mapping, series or array, by name or position."""
    if isinstance(data, Mapping):
        return {plain(name): column for name, column in data.items()}
    names = getattr(data, "column_names", None)  # Arrow
    if names is None:
        names = getattr(data, "columns", None)  # pandas, polars
    if names is not None and not callable(names):
        names = [plain(name) for name in names]
        if len(set(names)) != len(names):
            raise ValueError(
                f"the columns of {called.data} must have different names, got {names[:20]}"
            )
        return {name: data[name] for name in names}
    if getattr(data, "ndim", None) == 1 or hasattr(data, "to_list"):
        # The data is a series, or one column of an array.
        name = plain(getattr(data, "name", None))
        return {0 if name in (None, "") else name: data}
    if isinstance(data, (list, tuple)):
        if data and not any(map(_is_row, data)):
            return {0: data}
        data = _rows(data, called.data)
    array = np.asarray(data)
    if array.ndim == 0:
        raise TypeError(
            f"{called.data} must be a table, a mapping of name to column, a series or an array, "
            f"got {data!r:.60}{called.hint}"
        )
    if array.ndim != 2:
        raise ValueError(
            f"{called.data} must have shape (n_samples, n_{called.names}), got {array.shape}"
        )
    return dict(enumerate(array.T))


def _is_row(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray))


def _rows(data: Sequence[Any], name: str) -> npt.NDArray[Any]:
    """Convert a list of rows to an array of objects, so that mixed values do not become texts."""
    if not data:
        raise ValueError(f"{name} must not be empty")
    widths = {len(row) for row in data if _is_row(row)}
    if len(widths) != 1 or not all(map(_is_row, data)):
        raise ValueError(f"{name} must have rows of equal length, got {data[0]!r:.40}, …")
    array = np.empty((len(data), widths.pop()), dtype=object)
    for i, row in enumerate(data):
        array[i] = row
    return array


def _array(column: Any) -> tuple[npt.NDArray[Any], BoolArray]:
    """Convert a column to an array, and return it with a mask of the missing entries."""
    if hasattr(column, "isna") and hasattr(column, "index"):  # pandas, whatever backs it
        missing = np.asarray(column.isna()).ravel()
        # In an array of objects, integers stay integers even if some values are missing.
        return np.asarray(column.astype(object) if missing.any() else column), missing
    missing = np.zeros(len(column), dtype=bool)
    if n_nulls(column):
        # polars, then Arrow
        values = column.to_list() if hasattr(column, "to_list") else column.to_pylist()
        return _objects(values), np.asarray(column.is_null())
    if isinstance(column, (list, tuple)):
        return _objects(column), missing
    return np.asarray(column), missing


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _encode_objects(shown_name: str, array: npt.NDArray[Any]) -> tuple[IntArray, list[Any]]:
    """Number distinct objects in order of appearance."""
    numbers: dict[Any, int] = {}
    values = (None if is_missing(value) else plain(value) for value in array.tolist())
    codes = (numbers.setdefault(value, len(numbers)) for value in values)
    try:
        return np.fromiter(codes, np.int64, len(array)), list(numbers)
    except TypeError:
        raise ValueError(
            f"{shown_name} must contain one value per row, got values like {array[0]!r:.80}"
        ) from None


def _with_missing(
    codes: IntArray, values: list[Any], missing: BoolArray
) -> tuple[IntArray, list[Any]]:
    if not missing.any():
        return codes, values
    return np.where(missing, len(values), codes), [*values, None]
