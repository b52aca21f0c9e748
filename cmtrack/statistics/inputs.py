"""Checked conversion of probabilities and weights to NumPy arrays.

Rows of pandas objects are matched by index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.grouping.step import plain

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

FREQUENCY = "frequency"
SAMPLING = "sampling"
LEAST_WEIGHT = 1e-30
MOST_WEIGHT = 1e30
"""Weights outside the limits would overflow or vanish in sums of fourth powers, which standard
errors need.
"""
_MOST_ROWS = 2.0**63
WHOLE = f'sample_weight must be whole numbers below 2**63 with weights_are="{FREQUENCY}"'


def check_weights_are(weights_are: Any) -> str | None:
    """Check the kind of weights: "frequency", "sampling", or None to decide by their type."""
    if weights_are is None:
        return None
    if weights_are not in (FREQUENCY, SAMPLING):
        raise ValueError(
            f'weights_are must be "{FREQUENCY}", "{SAMPLING}" or None, got {weights_are!r:.40}'
        )
    return str(weights_are)


def as_weights(
    sample_weight: Any, n_rows: int, weights_are: str | None = None, may_be_zero: bool = False
) -> FloatArray | IntArray | None:
    """Check sample weights and return frequencies as int64 and sampling weights as float64.

    ``sample_weight``, array-like of shape (n,).
    ``weights_are``, "frequency" or "sampling": by default integers are frequencies, and floats are
        sampling weights, even if they are whole numbers.
    ``may_be_zero``: whether all weights may be 0.
    """
    if sample_weight is None:
        return None
    numbers = to_numbers("sample_weight", sample_weight)
    weights = to_float_array("sample_weight", numbers)
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight must have shape ({n_rows},), got {weights.shape}")
    if weights.min(initial=0) < 0:
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"sample_weight must be finite and not negative, got {weights[row]} at row {row}"
        )
    extreme = (weights > 0) & ~((weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT))
    if extreme.any():
        row = int(np.argmax(extreme))
        raise ValueError(
            f"sample_weight must be 0 or between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}, got "
            f"{weights[row]:g} at row {row}: divide all weights by their mean"
        )
    if not (may_be_zero or weights.any()):
        raise ValueError("sample_weight must be above 0 in at least one row, got 0 in all")
    has_integers = numbers.dtype.kind in "iub"
    if weights_are is None:
        # NumPy reads nullable integers of pandas as objects, which become floats.
        kind = getattr(getattr(sample_weight, "dtype", None), "kind", "f")
        weights_are = FREQUENCY if has_integers or kind in "iub" else SAMPLING
    if weights_are == SAMPLING:
        return weights
    fractions = weights >= _MOST_ROWS if has_integers else not_whole(weights)
    if fractions.any():
        row = int(np.argmax(fractions))
        raise ValueError(f"{WHOLE}, got {weights[row]} at row {row}")
    return weights.astype(np.int64)


def not_whole(weights: FloatArray) -> BoolArray:
    """Return a mask of the weights that are not whole numbers of rows, shape (n,)."""
    return np.asarray((weights != np.floor(weights)) | (weights >= _MOST_ROWS))


def kind_of_weights(weights: FloatArray | IntArray | None) -> str | None:
    """Return the kind of checked weights; None without weights."""
    if weights is None:
        return None
    return FREQUENCY if weights.dtype.kind == "i" else SAMPLING


def same_kind_of_weights(ours: str | None, theirs: str | None, what: str) -> str | None:
    """Return the common kind of weights of two sets of rows, or raise ValueError.

    Rows without weights can be combined with either kind.
    """
    if None not in (ours, theirs) and ours != theirs:
        raise ValueError(
            f"{what} must have weights of one kind, got {ours} and {theirs} weights: "
            f'weights_are="{SAMPLING}" also accepts integers'
        )
    return ours or theirs


def to_float_array(name: str, values: Any) -> FloatArray:
    """Return a float64 array without missing or infinite values, from any array-like."""
    array: FloatArray = to_numbers(name, values).astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        first = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {array[first]} at row {first[0]}")
    return array


def as_array(values: Any) -> Any:
    """Return a NumPy array from a tensor on any device, or from anything that NumPy converts."""
    if hasattr(values, "detach"):
        values = values.detach()
        # NumPy has no bfloat16, and half precision is too coarse for computations.
        if str(getattr(values, "dtype", "")) in ("torch.bfloat16", "torch.float16"):
            values = values.float()
        return values.cpu().numpy()
    return np.asarray(values)


def to_numbers(name: str, values: Any) -> npt.NDArray[Any]:
    """Return an array of numbers unchanged; other readable values become float64."""
    no_masked(name, values)
    try:
        array = as_array(values)
        if array.dtype.kind not in "fiub":
            array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        advice = ""
        if name == "y_prob" and _has_texts(values):
            advice = "; labels are given as y_pred="
        raise ValueError(
            f"{name} must contain numbers in a regular array, got {_describe(values)}{advice}"
        ) from None
    if array.ndim == 0:
        raise ValueError(f"{name} must be an array, got the single value {values!r}")
    return array


def _has_texts(values: Any) -> bool:
    is_column = isinstance(values, Iterable) and getattr(values, "ndim", 1) == 1
    return is_column and any(isinstance(value, str) for value in values)


def no_masked(name: str, values: Any) -> None:
    """Raise ValueError for masked entries of ``numpy.ma``, whose values are unknown."""
    if isinstance(values, np.ma.MaskedArray):
        masked = np.ma.getmaskarray(values)
        if masked.any():
            row = int(np.argwhere(masked)[0][0])
            raise ValueError(
                f"{name} must not have masked entries, got {int(masked.sum())}, the first at row "
                f"{row}: remove these rows from all columns first"
            )


def listed(values: Sequence[Any], most: int = 10) -> str:
    """Return values as a list for a message; a long list is cut and followed by its length.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    "['a', 'b', … (3 in all)]"
    """
    shown = ", ".join(map(repr, values[:most]))
    if len(values) > most:
        shown += f", … ({len(values)} in all)"
    return f"[{shown}]"


def column_names(data: Any) -> list[Any] | None:
    """Return the column names of a mapping or frame.

    The result is None for plain arrays and for frames with a single column.
    """
    if isinstance(data, Mapping):
        return list(data)
    names = getattr(data, "column_names", None)
    if names is None:
        names = getattr(data, "columns", None)
    if names is None or callable(names) or len(names) == 1:
        return None
    return [plain(name) for name in names]


def n_rows(data: Any) -> int:
    """Return the number of rows of an array, a frame or a mapping of columns."""
    names = column_names(data)
    return len(data) if names is None else len(data[names[0]])


def is_categorical(column: Any) -> bool:
    """Return whether a column is a pandas Series, Index or Categorical with categorical data."""
    return type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype"


def n_nulls(column: Any) -> int:
    """Return the number of missing values of a polars or Arrow column; 0 for other columns."""
    nulls = getattr(column, "null_count", 0)
    return int(nulls() if callable(nulls) else nulls)


def _describe(values: Any) -> str:
    dtype = getattr(values, "dtype", None)
    if dtype is None:
        return type(values).__name__
    return f"{type(values).__name__} of {dtype}"


_ADVICE = (
    "sort both with .sort_index() to match by index, or pass .to_numpy() of both to match by "
    "position"
)


class _Indexed(NamedTuple):
    """A column with an index.

    ``argument``: the name of the argument that contains the column.
    ``name``: the name for messages.
    ``index``: the pandas index.
    """

    argument: str
    name: str
    index: Any

    @property
    def has_default(self) -> bool:
        return _is_default(self.index)


def align_rows(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns with their rows in the same order.

    ``columns``: columns by their names in messages. The first column (``y_true``) determines the
    order.

    Notes
    -----
    A default index (0 to n - 1) does not identify rows. Such an index is matched with any other
    index by position, as for predictions of data that ``train_test_split`` has shuffled. If the
    other index has the same keys in a different order, rows could be matched by index or by
    position, and this raises an error. If neither index is the default one, both may be equal or
    contain the same keys in a different order. Rows then get the order of the first index. All
    other indexes raise an error. Columns of unequal length are rejected by a later check.
    """
    indexed = [part for name, values in columns.items() for part in _indexed(name, values)]
    named = [part for part in indexed if not part.has_default]
    aligned = dict(columns)
    if not named:
        return aligned
    leader = named[0]
    for part in indexed:
        if part.has_default and _contradicts(part.index, leader.index):
            raise ValueError(
                f"the rows of {leader.name} and {part.name} must be in the same order: their "
                "indexes contain the same keys in different orders, and one is the default 0 "
                "to n - 1, so it is unclear whether to match rows by index or by position; "
                f"{_ADVICE}"
            )
    first = next(iter(columns))
    for part in named[1:]:
        order = _order(leader, part)
        if order is None:
            continue
        if leader.argument != first:
            raise ValueError(
                f"the rows of {leader.name} and {part.name} must be in the same order: their "
                f"indexes contain the same keys in different orders, and {first} has no index "
                f"to match by; {_ADVICE}"
            )
        aligned[part.argument] = _with_order(aligned[part.argument], part, order)
    return aligned


def _indexed(name: str, values: Any) -> Iterator[_Indexed]:
    """Yield an argument that has an index, or the columns of a mapping that have an index."""
    columns = {name: values}
    if isinstance(values, Mapping) and values:
        columns = {_name_of_column(name, key): column for key, column in values.items()}
    for column_name, column in columns.items():
        # In other objects ``index`` may be something else, such as the method of a list.
        index = getattr(column, "index", None)
        if hasattr(index, "get_indexer") and hasattr(column, "iloc"):
            yield _Indexed(name, column_name, index)


def _name_of_column(name: str, key: Any) -> str:
    return f"{name}[{key!r}]"


def has_named_rows(values: Any) -> bool:
    """Return whether the values are a pandas Series whose index is not the default one."""
    return hasattr(values, "to_dict") and np.ndim(values) == 1 and not _is_default(values.index)


def _is_default(index: Any) -> bool:
    """Return whether an index is the default index of pandas, 0 to n - 1."""
    return type(index).__name__ == "RangeIndex" and bool(index.start == 0 and index.step == 1)


def _contradicts(default: Any, index: Any) -> bool:
    """Return whether an index contains the keys 0 to n - 1 in a different order."""
    if len(index) != len(default) or index.equals(default) or not index.is_unique:
        return False
    return bool((default.get_indexer(index) >= 0).all())


def _order(leader: _Indexed, part: _Indexed) -> Any:
    """Return where another column contains the leader's rows (n,); None if in the same order."""
    wanted = leader.index
    index = part.index
    if index is wanted or len(index) != len(wanted) or index.equals(wanted):
        return None
    if not (index.is_unique and wanted.is_unique):
        raise ValueError(
            f"the rows of {leader.name} and {part.name} must be in the same order: their "
            f"indexes differ and contain keys more than once; {_ADVICE}"
        )
    places = index.get_indexer(wanted)
    if (places < 0).any():
        lacking = wanted[np.flatnonzero(places < 0)].tolist()
        raise ValueError(
            f"{leader.name} and {part.name} must contain the same rows: the index of "
            f"{part.name} lacks the keys {listed(lacking, 3)} of {leader.name}; pass "
            ".to_numpy() of both to match by position"
        )
    return places


def _with_order(values: Any, part: _Indexed, order: Any) -> Any:
    """Return an argument after reordering the rows of one of its columns."""
    if not isinstance(values, Mapping):
        return values.iloc[order]
    ordered = dict(values)
    for key, column in values.items():
        if _name_of_column(part.argument, key) == part.name:
            ordered[key] = column.iloc[order]
    return ordered


def check_threshold(threshold: Any) -> float | None:
    """Check that a threshold is a finite number, infinity or None, and return it."""
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise TypeError(f"threshold must be a number or a Threshold, got {threshold!r:.60}")
    value = float(threshold)
    if not (math.isfinite(value) or value == math.inf):
        raise ValueError(f"threshold must be finite, or infinity, got {threshold!r}")
    return value


def check_threshold_of_probabilities(threshold: float) -> None:
    """Check that a threshold of probabilities is a number from 0 to 1, or infinity."""
    if not (0 <= threshold <= 1 or threshold == math.inf):
        raise ValueError(
            f"threshold must be between 0 and 1, or infinity, got {threshold!r}; pass decision "
            "values, which allow other thresholds, as y_score"
        )


def as_shares(shares: Any, what: str) -> dict[Any, float] | tuple[float, ...]:
    """Check that shares sum to 1, and return them by label or in the order of the labels."""
    checked: dict[Any, float] | tuple[float, ...]
    try:
        if isinstance(shares, Mapping):
            checked = {plain(label): float(share) for label, share in shares.items()}
            numbers = tuple(checked.values())
        else:
            checked = tuple(float(share) for share in shares)
            numbers = checked
    except (TypeError, ValueError):
        raise TypeError(
            f"{what} must be shares of the classes, by label or in their order, got {shares!r:.80}"
        ) from None
    if not all(0 <= share <= 1 for share in numbers) or abs(sum(numbers) - 1) > 1e-6:
        raise ValueError(f"{what} must be shares between 0 and 1 that sum to 1, got {shares!r:.80}")
    return checked


def shares_of(shares: Any, labels: Sequence[Any], what: str) -> tuple[float, ...] | None:
    """Return checked shares in the order of the labels; labels that are not named have share 0."""
    if shares is None:
        return None
    if isinstance(shares, dict):
        unknown = [label for label in shares if label not in labels]
        if unknown:
            raise ValueError(
                f"{what} must be for the labels {list(labels)!r:.80}, got {unknown[0]!r:.80}"
            )
        return tuple(shares.get(label, 0.0) for label in labels)
    if len(shares) != len(labels):
        raise ValueError(
            f"{what} must have one share for each of {len(labels)} labels, got {len(shares)}"
        )
    return tuple(shares)
