"""The boundary for numbers: probabilities and weights become NumPy arrays once, and pandas rows go by their index."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.grouping.step import plain

IntArray: TypeAlias = npt.NDArray[np.int64]
FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]


FREQUENCY, SAMPLING = "frequency", "sampling"


def check_weights_are(weights_are: Any) -> str | None:
    """Check what weights are: "frequency", "sampling", or None for what their type says."""
    if weights_are is not None and weights_are not in (FREQUENCY, SAMPLING):
        raise ValueError(
            f'weights_are must be "{FREQUENCY}", "{SAMPLING}" or None, got {weights_are!r:.40}'
        )
    return None if weights_are is None else str(weights_are)


def as_weights(
    sample_weight: Any, n_rows: int, weights_are: str | None = None, may_be_zero: bool = False
) -> FloatArray | IntArray | None:
    """Checked sample weights of shape (n,): int64 are frequencies, float64 are sampling weights, here and further on.

    ``sample_weight``, array-like of shape (n,).
    ``weights_are``, "frequency" or "sampling": by default integers are frequencies, floats sampling weights, also where
        these are whole numbers.
    ``may_be_zero``: whether all of them may be.
    """
    if sample_weight is None:
        return None
    numbers = to_numbers("sample_weight", sample_weight)
    kinds = numbers.dtype.kind, getattr(getattr(sample_weight, "dtype", None), "kind", "f")
    whole = any(kind in "iub" for kind in kinds)
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
            f"sample_weight must be 0 or between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}, got {weights[row]:g} at row "
            f"{row}: divide all weights by their mean"
        )
    if not (may_be_zero or weights.any()):
        raise ValueError("sample_weight must be above 0 in at least one row, got 0 in all")
    if (weights_are or (FREQUENCY if whole else SAMPLING)) == SAMPLING:
        return weights
    fractions = not_whole(weights) if numbers.dtype.kind not in "iub" else weights >= _MOST_ROWS
    if fractions.any():
        row = int(np.argmax(fractions))
        raise ValueError(f"{WHOLE}, got {weights[row]} at row {row}")
    return weights.astype(np.int64)


LEAST_WEIGHT, MOST_WEIGHT = 1e-30, 1e30
"""Weights outside overflow or vanish in sums of their squares and fourth powers, which errors are made of."""
_MOST_ROWS = 2.0**63
WHOLE = f'sample_weight must be whole numbers below 2**63 where weights_are="{FREQUENCY}"'


def not_whole(weights: FloatArray) -> BoolArray:
    """True for weights that are no number of rows, shape (n,)."""
    return np.asarray((weights != np.floor(weights)) | (weights >= _MOST_ROWS))


def kind_of_weights(weights: FloatArray | IntArray | None) -> str | None:
    """Kind of checked weights; None without weights."""
    return None if weights is None else FREQUENCY if weights.dtype.kind == "i" else SAMPLING


def same_kind_of_weights(ours: str | None, theirs: str | None, what: str) -> str | None:
    """Kind of the weights of two sets of rows together; rows without weights go with both kinds."""
    if None not in (ours, theirs) and ours != theirs:
        raise ValueError(
            f'{what} must have weights of one kind, got {ours} and {theirs} weights: weights_are="{SAMPLING}" takes '
            "integers too"
        )
    return ours or theirs


def to_float_array(name: str, values: Any) -> FloatArray:
    """A float64 array without missing or infinite values, from any array-like."""
    array: FloatArray = to_numbers(name, values).astype(np.float64, copy=False)
    finite = np.isfinite(array)
    if not finite.all():
        place = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {array[place]} at row {place[0]}")
    return array


def as_array(values: Any) -> Any:
    """A NumPy array from a tensor on any device, or from anything that NumPy converts."""
    if hasattr(values, "detach"):
        values = values.detach()
        if str(getattr(values, "dtype", "")) in ("torch.bfloat16", "torch.float16"):
            values = values.float()
        return values.cpu().numpy()
    return np.asarray(values)


def to_numbers(name: str, values: Any) -> npt.NDArray[Any]:
    """An array of numbers, as it is where it is one already; what else can be read becomes float64."""
    no_masked(name, values)
    try:
        array = as_array(values)
        if array.dtype.kind not in "fiub":
            array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        column = (
            name == "y_prob" and isinstance(values, Iterable) and getattr(values, "ndim", 1) == 1
        )
        way_out = (
            "; labels are given as y_pred="
            if column and any(isinstance(v, str) for v in values)
            else ""
        )
        raise ValueError(
            f"{name} must hold numbers in a regular array, got {_describe(values)}{way_out}"
        ) from None
    if array.ndim == 0:
        raise ValueError(f"{name} must be an array, got the single value {values!r}")
    return array


def no_masked(name: str, values: Any) -> None:
    """Refuse masked entries of ``numpy.ma``: a masked value is unknown."""
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


_WAY_OUT = (
    "sort both with .sort_index() to go by index, or pass .to_numpy() of both to go by position"
)


def align_rows(columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns with their rows in one order.

    ``columns``: by the names that error texts use; the first one gives the order (``y_true``).

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
    for _, part, names in parts:
        if _is_default(names) and _contradicts(names, index):
            raise ValueError(
                f"the rows of {first} and {part} must be in one order: their indexes hold the same keys in another "
                "order, and one is the default 0 to n - 1, so it cannot be known whether rows go by index or by "
                f"position; {_WAY_OUT}"
            )
    for name, part, names in named[1:]:
        order = _order(first, index, part, names)
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
    columns = (
        [(f"{name}[{key!r}]", one) for key, one in values.items()]
        if isinstance(values, Mapping)
        else []
    )
    for part, one in columns or [(name, values)]:
        # of a pandas Series or frame; a list has a method of that name
        index = getattr(one, "index", None)
        if hasattr(index, "get_indexer") and hasattr(one, "iloc"):
            yield part, index


def has_named_rows(values: Any) -> bool:
    """True for a pandas Series whose index is not the default one, so that it names its values."""
    return hasattr(values, "to_dict") and np.ndim(values) == 1 and not _is_default(values.index)


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
    return {
        key: one.iloc[order] if f"{name}[{key!r}]" == part else one for key, one in values.items()
    }


def check_threshold(threshold: Any) -> float | None:
    """Validate a threshold: a finite number, infinity, or None."""
    if threshold is None:
        return None
    if isinstance(threshold, bool) or not isinstance(threshold, Real):
        raise TypeError(f"threshold must be a number or a Threshold, got {threshold!r:.60}")
    value = float(threshold)
    if not (math.isfinite(value) or value == math.inf):
        raise ValueError(f"threshold must be finite, or infinity, got {threshold!r}")
    return value


def check_threshold_of_probabilities(threshold: float) -> None:
    """Validate a threshold of probabilities: a number from 0 to 1, or infinity."""
    if not (0 <= threshold <= 1 or threshold == math.inf):
        raise ValueError(
            f"threshold must lie between 0 and 1, or be infinity, got {threshold!r}; decision values, which have "
            "other thresholds, go to y_score"
        )


def as_shares(shares: Any, what: str) -> dict[Any, float] | tuple[float, ...]:
    """Checked shares that sum to 1, by label or in the order of the labels."""
    try:
        named = (
            {plain(label): float(share) for label, share in shares.items()}
            if isinstance(shares, Mapping)
            else None
        )
        numbers = (
            tuple(named.values()) if named is not None else tuple(float(share) for share in shares)
        )
    except (TypeError, ValueError):
        raise TypeError(
            f"{what} must be shares of the classes, by label or in their order, got {shares!r:.80}"
        ) from None
    if not all(0 <= share <= 1 for share in numbers) or abs(sum(numbers) - 1) > 1e-6:
        raise ValueError(f"{what} must be shares between 0 and 1 that sum to 1, got {shares!r:.80}")
    return numbers if named is None else named


def shares_of(shares: Any, labels: Sequence[Any], what: str) -> tuple[float, ...] | None:
    """Checked shares in the order of the labels; a label that is not named has the share 0."""
    if shares is None:
        return None
    if isinstance(shares, dict):
        unknown = [label for label in shares if label not in labels]
        if unknown:
            raise ValueError(
                f"{what} must be of the labels {list(labels)!r:.80}, got {unknown[0]!r:.80}"
            )
        return tuple(shares.get(label, 0.0) for label in labels)
    if len(shares) != len(labels):
        raise ValueError(
            f"{what} must have one share for each of {len(labels)} labels, got {len(shares)}"
        )
    return tuple(shares)
