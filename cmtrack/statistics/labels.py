"""The boundary for labels: any column of labels becomes class numbers, once.

pandas, polars and Arrow objects are recognised by their own attributes, so that none of these libraries is
imported here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.inputs import IntArray

MAX_CLASSES = 10_000
_DENSE_RANGE = 1_000_000


def encode_labels(
    columns: Mapping[str, Any],
    labels: Sequence[Label] | None = None,
    declared: Sequence[Any] | None = None,
) -> tuple[tuple[Label, ...], dict[str, IntArray]]:
    """Number the classes of one or more label columns alike.

    Parameters
    ----------
    columns : mapping of name to array-like of shape (n,)
        The columns, by the name that error texts use. Integers, strings, booleans, floats; lists, NumPy,
        pandas (also categorical and Arrow-backed), polars, Arrow.
    labels : sequence, optional
        The classes in order. By default every class that a column holds or, for categorical columns,
        declares: in the categories' order where all columns are categorical alike, else sorted.
    declared : sequence, optional
        Without ``labels``: classes that exist although no row may have them, such as the columns of a frame of
        probabilities (texts stand for the labels they spell) or the classes of a grouping.

    Returns
    -------
    labels : tuple
    codes : dict of name to ndarray of shape (n,), int64

    Raises
    ------
    ValueError
        Empty or unequal columns, missing values, unknown labels, repeated ``labels``, labels that cannot be
        put in one order, or fewer than two classes.
    """
    factors = {name: _factorize(name, values) for name, values in columns.items()}
    lengths = {name: len(codes) for name, (codes, _, _) in factors.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"columns must have the same length, got {lengths}")
    if not all(lengths.values()):
        raise ValueError(f"at least one row is needed, got {lengths}")
    if labels is not None:
        order = tuple(plain(v) for v in labels)
    else:
        order = _common_order(factors)
        if declared is not None:
            order = _with_declared(order, declared)
    if len(set(order)) != len(order):
        raise ValueError(f"labels must not repeat, got {list(order)[:20]}")
    if len({str(label) for label in order}) != len(order):
        raise ValueError(f"labels must differ as texts, for metric names, got {list(order)[:20]}")
    if len(order) < 2:
        raise ValueError(f"at least two classes are needed, got only {list(order)}; name absent classes with labels=")
    if len(order) > MAX_CLASSES:
        raise ValueError(f"at most {MAX_CLASSES} classes are supported, got {len(order)}: are these classes?")
    index = {label: i for i, label in enumerate(order)}
    return order, {name: _renumber(name, *factor[:2], index) for name, factor in factors.items()}


def encode_groups(groups: Any, n_rows: int) -> IntArray:
    """Number the groups (clusters) of rows, shape (n,).

    Raises
    ------
    ValueError
        If there is not one group per row, or a group is missing.
    """
    return _one_per_row("groups", groups, n_rows)[0]


def encode_row_ids(row_ids: Any, n_rows: int) -> tuple[IntArray, list[Label]]:
    """Number the ids of rows, shape (n,), and give the ids that the numbers stand for.

    Raises
    ------
    ValueError
        If there is not one id per row, or an id is missing or repeated.
    """
    codes, ids = _one_per_row("row_ids", row_ids, n_rows)
    if len(ids) != n_rows:
        repeated = ids[int(np.argmax(np.bincount(codes)))]
        raise ValueError(f"row_ids must not repeat, got {repeated!r} more than once")
    return codes, ids


def encode_values(name: str, values: Any) -> tuple[IntArray, list[Label]]:
    """Number the values of any column, shape (n,), and give the distinct values that the numbers stand for.

    Raises
    ------
    ValueError
        If a value is missing, or is no label.
    """
    if not len(values):
        return np.zeros(0, dtype=np.int64), []
    codes, distinct, _ = _factorize(name, values)
    return codes, distinct


def _one_per_row(name: str, values: Any, n_rows: int) -> tuple[IntArray, list[Label]]:
    codes, distinct, _ = _factorize(name, values)
    if len(codes) != n_rows:
        raise ValueError(f"{name} must have one entry per row, got {len(codes)} for {n_rows} rows")
    return codes, distinct


def _factorize(name: str, values: Any) -> tuple[IntArray, list[Label], bool]:
    """Codes, the classes they number, and whether the classes come in a declared (categorical) order."""
    declared = _categories(name, values)
    if declared is not None:
        codes, classes, ordered = declared
        _no_missing(name, codes < 0)
        return codes, classes, ordered
    array = _label_array(name, values)
    if array.dtype.kind in "iub":
        return (*_factorize_integers(array), False)
    if array.dtype.kind == "f":
        _no_missing(name, ~np.isfinite(array))
        distinct, codes = np.unique(array, return_inverse=True)
        return codes.astype(np.int64), distinct.tolist(), False
    listed = array.tolist()
    seen: dict[Any, int] = {}
    try:
        codes = np.fromiter((seen.setdefault(v, len(seen)) for v in listed), np.int64, len(listed))
    except TypeError:
        raise ValueError(f"{name} must hold one label per row, got rows like {listed[0]!r:.80}") from None
    missing = [code for value, code in seen.items() if is_missing(value)]
    if missing:
        _no_missing(name, np.isin(codes, missing))
    return codes, [plain(v) for v in seen], False


def _categories(name: str, values: Any) -> tuple[IntArray, list[Label], bool] | None:
    """Codes, categories, and whether the categories stand in an order that someone chose."""
    kind = type(getattr(values, "dtype", None)).__name__
    if kind == "CategoricalDtype":  # pandas Series, Index or Categorical
        holder = getattr(values, "cat", values)
        return np.asarray(holder.codes, dtype=np.int64), [plain(v) for v in holder.categories], True
    if kind == "Enum":  # polars, declared order; its Categorical has none and is read as strings
        _no_missing(name, np.asarray(values.is_null()))
        return np.asarray(values.to_physical(), dtype=np.int64), list(values.dtype.categories), True
    if hasattr(values, "dictionary_encode") and "dictionary" in str(getattr(values, "type", "")):  # Arrow
        merged = values.unify_dictionaries().combine_chunks() if hasattr(values, "chunks") else values
        merged = merged.chunk(0) if hasattr(merged, "chunks") else merged
        codes = merged.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return codes, merged.dictionary.to_pylist(), bool(merged.type.ordered)  # else in order of appearance
    return None


def _label_array(name: str, values: Any) -> npt.NDArray[Any]:
    if hasattr(values, "isna") and hasattr(values, "index"):  # pandas, whatever backs it
        _no_missing(name, np.asarray(values.isna()).ravel())
    if hasattr(values, "null_count"):
        nulls = values.null_count() if callable(values.null_count) else values.null_count
        if nulls:
            _no_missing(name, np.asarray(values.is_null()))
    array = np.asarray(_rectangular(name, values))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape (n_samples,), got {array.shape}")
    if array.dtype.kind == "U" and isinstance(values, (list, tuple)) and not all(isinstance(v, str) for v in values):
        array = np.array(list(values), dtype=object)  # NumPy turned mixed labels into strings
    if array.dtype.kind not in "iubfUSO":
        raise ValueError(f"{name} must hold integers, strings, booleans or floats, got {array.dtype}")
    return array


def _rectangular(name: str, values: Any) -> Any:
    if isinstance(values, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in values):
        raise ValueError(f"{name} must hold one label per row, got rows like {values[0]!r:.80}")
    return values


def _factorize_integers(array: npt.NDArray[Any]) -> tuple[IntArray, list[Any]]:
    if not len(array):
        return np.empty(0, np.int64), []
    if array.dtype.kind == "b":
        return array.astype(np.int64), [False, True]
    low, high = int(array.min()), int(array.max())
    if high - low >= _DENSE_RANGE:
        classes, codes = np.unique(array, return_inverse=True)
        return codes.astype(np.int64), classes.tolist()
    shifted = (array - low if low else array).astype(np.int64, copy=False)
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    classes = np.flatnonzero(present) + low
    if present.all():
        return shifted, classes.tolist()
    return (np.cumsum(present, dtype=np.int64) - 1)[shifted], classes.tolist()


def _common_order(factors: Mapping[str, tuple[IntArray, list[Label], bool]]) -> tuple[Label, ...]:
    lists = [classes for _, classes, _ in factors.values()]
    if all(declared for _, _, declared in factors.values()) and all(c == lists[0] for c in lists):
        return tuple(lists[0])
    declared = [classes for _, classes, is_declared in factors.values() if is_declared]
    union: dict[Any, None] = dict.fromkeys(label for classes in lists for label in classes)
    if declared and set(union) == set(declared[0]):
        return tuple(declared[0])
    try:
        return tuple(sorted(union))
    except TypeError:
        kinds = {name: sorted({type(v).__name__ for v in c}) for name, (_, c, _) in factors.items()}
        raise ValueError(f"labels must be of one kind that can be put in order, got {kinds}") from None


def _renumber(name: str, codes: IntArray, classes: list[Label], index: Mapping[Label, int]) -> IntArray:
    place = np.array([index.get(label, -1) for label in classes], dtype=np.int64)
    if np.array_equal(place, np.arange(len(place))):
        return codes
    renumbered = place[codes]
    if (renumbered < 0).any():
        strange = [label for label, p in zip(classes, place, strict=True) if p < 0]
        rows = int((renumbered < 0).sum())
        raise ValueError(f"{name} has labels that are not in {list(index)[:20]}: {strange[:10]} ({rows} rows)")
    return renumbered


def _no_missing(name: str, missing: npt.NDArray[np.bool_]) -> None:
    if missing.any():
        rows = np.flatnonzero(missing)
        raise ValueError(f"{name} must not have missing labels, got {len(rows)}, the first at row {rows[0]}")


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NA or NaT."""
    return (
        value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    )


def _spelled(name: str, kinds: set[type]) -> Any:
    """The absent class that a text spells where labels are numbers."""
    for kind in (int, float):
        if kinds == {kind}:
            try:
                return kind(name)
            except ValueError:
                break
    names = sorted(kind.__name__ for kind in kinds)
    raise ValueError(f"declared classes must be of the labels' kind {names}, got {name!r}")


def _with_declared(seen: tuple[Label, ...], declared: Sequence[Any]) -> tuple[Label, ...]:
    """The declared classes in order, as labels of the kind that was seen."""
    by_text = {str(label): label for label in seen}
    kinds = {type(label) for label in seen}
    order: list[Any] = []
    for name in declared:
        if name in seen or not isinstance(name, str) or str in kinds:
            order.append(name)
        elif name in by_text:
            order.append(by_text[name])
        else:
            order.append(_spelled(name, kinds))
    unknown = [label for label in seen if label not in order]
    if unknown:
        raise ValueError(
            f"labels must be among the declared classes {order[:20]}, got {unknown[:10]}; "
            "the columns of y_prob or the classes of the grouping declare them"
        )
    try:
        return tuple(sorted(order))
    except TypeError:
        return tuple(order)
