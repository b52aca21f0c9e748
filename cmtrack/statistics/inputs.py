"""The boundary for numbers: user's probabilities and weights become NumPy arrays, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.grouping.step import plain

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


def as_weights(sample_weight: Any, n_rows: int, may_be_zero: bool = False) -> FloatArray | IntArray | None:
    """Checked sample weights of shape (n,); whole numbers come back as int64 (they mean repeated rows).

    Raises
    ------
    ValueError
        Wrong shape, negative, NaN or infinite weights, or, unless they may, weights that are all zero.
    """
    if sample_weight is None:
        return None
    weights = to_float_array("sample_weight", sample_weight)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), got {weights.shape}")
    if weights.min(initial=0) < 0:
        row = int(np.argmax(weights < 0))
        raise ValueError(f"sample_weight must be finite and not negative, got {weights[row]} at row {row}")
    if not (may_be_zero or weights.any()):
        raise ValueError("sample_weight must not be zero everywhere")
    whole = weights.astype(np.int64)
    return whole if np.array_equal(whole, weights) else weights


def to_float_array(name: str, values: Any) -> FloatArray:
    """A float64 array without missing or infinite values, from any array-like."""
    array: FloatArray = to_numbers(name, values).astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {array[place]} at row {place[0]}")
    return array


def to_numbers(name: str, values: Any) -> npt.NDArray[Any]:
    """An array of numbers, as it is where it is one already; what else can be read becomes float64."""
    no_masked(name, values)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "fiub":
            array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers in a regular array, got {_describe(values)}") from None
    if array.ndim == 0:
        raise ValueError(f"{name} must be an array, got the single value {values!r}")
    return array


def no_masked(name: str, values: Any) -> None:
    """Refuse masked entries of ``numpy.ma``: nobody can be asked what stands behind a mask.

    Raises
    ------
    ValueError
        If there are any; the text has their number and the first row.
    """
    if isinstance(values, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(values)
        if masked.any():
            row = int(np.argwhere(masked)[0][0])
            raise ValueError(
                f"{name} must not have masked entries, got {int(masked.sum())}, the first at row {row}: leave these "
                "rows out of all columns first"
            )


def listed(values: Sequence[Any], most: int = 10) -> str:
    """Values as a list in an error text; a long one is cut, and says so.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    "['a', 'b', … (3 in all)]"
    """
    shown = ", ".join(map(repr, values[:most]))
    return f"[{shown}]" if len(values) <= most else f"[{shown}, … ({len(values)} in all)]"


def column_names(data: Any) -> list[Any] | None:
    """Column names of a mapping or frame; None for plain arrays and for frames of a single column."""
    if isinstance(data, Mapping):
        return list(data)
    names = getattr(data, "column_names", None)
    if names is None:
        names = getattr(data, "columns", None)
    if names is None or callable(names) or len(names) == 1:
        return None
    return [plain(name) for name in names]


def n_rows(data: Any) -> int:
    """Number of rows of an array, a frame or a mapping of columns."""
    names = column_names(data)
    return len(data) if names is None else len(data[names[0]])


def _describe(values: Any) -> str:
    dtype = getattr(values, "dtype", None)
    return f"{type(values).__name__}" + (f" of {dtype}" if dtype is not None else "")
