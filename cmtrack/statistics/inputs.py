"""The boundary for numbers: user's probabilities and weights become checked NumPy arrays, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

ROW_SUM_TOLERANCE = 1e-3
ROUNDING = 1e-6


def as_probabilities(
    y_prob: Any, labels: Sequence[Label], n_rows: int, first: bool = False, what: str = "y_prob"
) -> FloatArray:
    """Class probabilities of shape (n, K) in the order of ``labels``.

    Parameters
    ----------
    y_prob : array-like of shape (n,) or (n, K), or mapping or frame of one column per label
        One column means the probability of the positive class of two.
    labels : sequence of length K
    n_rows : int
        The number of rows that y_true has.
    first : bool, default False
        Whether a single column is the probability of the first of two labels; else of the second.
    what : str
        The argument's name in error texts.

    Raises
    ------
    ValueError
        Wrong shape, a missing or strange column, NaN, values outside [0, 1], rows that do not sum to one
        (within 1e-3).
    """
    names = column_names(y_prob)
    array = _by_label(what, y_prob, names, labels) if names is not None else to_float_array(what, y_prob)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    expected = f"(n_samples, {len(labels)})" + (" or (n_samples,)" if len(labels) == 2 else "")
    if array.ndim > 2 or (array.ndim == 1 and len(labels) != 2):
        raise ValueError(f"{what} must have shape {expected}, got {array.shape}")
    if array.ndim == 2 and array.shape[1] != len(labels):
        raise ValueError(
            f"{what} must have shape {expected} for the labels {list(labels)[:12]}, got {array.shape}; "
            "name all classes of the model with labels="
        )
    if len(array) != n_rows:
        raise ValueError(f"{what} must have one row per label, got {len(array)} rows and {n_rows} labels")
    if not len(array):
        raise ValueError(f"{what} must not be empty, got shape {array.shape}")
    array = _in_unit_interval(what, array)
    if array.ndim == 1:
        return np.column_stack((array, 1 - array) if first else (1 - array, array))
    sums = array.sum(axis=1)
    worst = int(np.argmax(np.abs(sums - 1)))
    if abs(sums[worst] - 1) > ROW_SUM_TOLERANCE:
        raise ValueError(f"each row of {what} must sum to 1, row {worst} sums to {sums[worst]:.6g}")
    return array


def as_weights(sample_weight: Any, n_rows: int) -> FloatArray | IntArray | None:
    """Checked sample weights of shape (n,); whole numbers come back as int64 (they mean repeated rows).

    Raises
    ------
    ValueError
        Wrong shape, negative, NaN or infinite weights, or weights that are all zero.
    """
    if sample_weight is None:
        return None
    weights = to_float_array("sample_weight", sample_weight)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), got {weights.shape}")
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"sample_weight must be finite and not negative, got {weights[row]} at row {row}")
    if not weights.any():
        raise ValueError("sample_weight must not be zero everywhere")
    whole = weights.astype(np.int64)
    return whole if np.array_equal(whole, weights) else weights


def to_float_array(name: str, values: Any) -> FloatArray:
    """A float64 array without missing or infinite values, from any array-like."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers in a regular array, got {_describe(values)}") from None
    if array.ndim == 0:
        raise ValueError(f"{name} must be an array, got the single value {values!r}")
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {array[place]} at row {place[0]}")
    return array


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


# -- probabilities -------------------------------------------------------------------------------------------


def _by_label(what: str, data: Any, names: list[Any], labels: Sequence[Label]) -> FloatArray:
    by_text = {str(name): name for name in names}
    missing = [label for label in labels if label not in names and str(label) not in by_text]
    if missing:
        raise ValueError(f"{what} must have a column for each label, {missing[:10]} not in {names[:20]}")
    chosen = [label if label in names else by_text[str(label)] for label in labels]
    strange = [name for name in names if name not in chosen]
    if strange:
        raise ValueError(f"{what} has columns that are no labels: {strange[:10]}; labels are {list(labels)[:20]}")
    columns = [to_float_array(f"{what}[{name!r}]", data[name]) for name in chosen]
    shapes = {str(name): column.shape for name, column in zip(chosen, columns, strict=True)}
    if len(set(shapes.values())) > 1 or columns[0].ndim != 1:
        raise ValueError(f"the columns of {what} must have one value per row each, got shapes {shapes}")
    return np.column_stack(columns)


def _in_unit_interval(what: str, array: FloatArray) -> FloatArray:
    """The same probabilities; rounding errors beyond 0 and 1 (such as 1.0000001) are cut off."""
    low, high = array.min(), array.max()
    if low < -ROUNDING or high > 1 + ROUNDING:
        value = low if low < -ROUNDING else high
        row = int(np.argwhere(array == value)[0][0])
        raise ValueError(
            f"{what} must lie in [0, 1], got {value} at row {row}; decision scores are welcome in "
            "estimate_prevalence and in cmtrack.metrics"
        )
    return array if low >= 0 and high <= 1 else np.clip(array, 0.0, 1.0)


def _describe(values: Any) -> str:
    dtype = getattr(values, "dtype", None)
    return f"{type(values).__name__}" + (f" of {dtype}" if dtype is not None else "")


def n_rows(data: Any) -> int:
    """Number of rows of an array, a frame or a mapping of columns."""
    names = column_names(data)
    return len(data) if names is None else len(data[names[0]])
