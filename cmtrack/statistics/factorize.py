"""Any column of labels as integers and the classes that they stand for.

pandas, polars and Arrow objects are recognised by their own attributes and methods, so that none of these
libraries is imported here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.counting import CompactCodes, RawIntegers, blocks, compact
from cmtrack.statistics.inputs import as_array, no_masked

_BLOCK = 1 << 14
_MOST = 256
"""Distinct strings; columns with more are numbered by a dictionary."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_BITS = (12, 14, 16, 18)

_Words = npt.NDArray[Any]
_Keys = npt.NDArray[np.uint64]


def number_fixed_width(array: npt.NDArray[Any]) -> tuple[RawIntegers, list[Any]] | None:
    """Number strings by a hash of their words; every row is compared with the string whose number it gets.

    Parameters
    ----------
    array : ndarray of shape (n,), of kind "U" or "S"

    Returns
    -------
    codes : ndarray of shape (n,), the smallest unsigned integers
    distinct : list
        The strings in the order in which they appear.

    None where there are more than 256 distinct strings.
    """
    if not array.dtype.itemsize or not array.dtype.isnative:
        return None
    word = np.dtype(np.uint32 if array.dtype.itemsize % 4 == 0 else np.uint8)
    width = array.dtype.itemsize // word.itemsize
    factors = np.random.default_rng(0).integers(1, 1 << 63, width).astype(np.uint64) * np.uint64(
        2
    ) + np.uint64(1)
    table = _Slots(width, word)
    codes = CompactCodes(len(array))
    for rows in blocks(len(array), _BLOCK):
        words = np.ascontiguousarray(array[rows]).view(word).reshape(-1, width)
        keys = words @ factors
        places = table.find(keys)
        if (places < 0).any():
            if not table.add(keys, words, places < 0):
                return None
            places = table.find(keys)
        if not np.array_equal(table.words.take(places, axis=0), words):  # two strings of one hash
            return None
        codes.put(rows, places, len(table.words))
    return codes.array, table.words.view(array.dtype).ravel().tolist()


class _Slots:
    """A table of hashes in which no two share a slot."""

    def __init__(self, width: int, word: np.dtype[Any]) -> None:
        self.words: _Words = np.empty((0, width), dtype=word)
        self._keys: _Keys = np.empty(0, dtype=np.uint64)
        self._place(_BITS[0])

    def find(self, keys: _Keys) -> npt.NDArray[np.int64]:
        """The number of each key, -1 where it is new."""
        slots = ((keys * _MIX) >> self._shift).view(np.int64)
        numbers = self._numbers.take(slots)
        numbers[self._held.take(slots) != keys] = -1
        return numbers

    def add(self, keys: _Keys, words: _Words, new: npt.NDArray[np.bool_]) -> bool:
        """Number the new keys in order of appearance; False where there is no room."""
        fresh, first = np.unique(keys[new], return_index=True)
        order = first.argsort()
        self._keys = np.concatenate((self._keys, fresh[order]))
        self.words = np.concatenate((self.words, words[new][first[order]]))
        return len(self._keys) <= _MOST and any(self._place(bits) for bits in _BITS)

    def _place(self, bits: int) -> bool:
        self._shift = np.uint64(64 - bits)
        slots = ((self._keys * _MIX) >> self._shift).view(np.int64)
        self._numbers = np.full(1 << bits, -1, dtype=np.int64)
        self._held = np.zeros(1 << bits, dtype=np.uint64)
        self._numbers[slots] = np.arange(len(slots))
        self._held[slots] = self._keys
        return len(np.unique(slots)) == len(slots)


_DENSE_RANGE = 1_000_000


@dataclass(frozen=True, eq=False)
class Factor:
    """One column of labels.

    ``raw``, shape (n,), integers or booleans: integer labels as they are, or numbers of ``classes``.
    ``classes``: the class of value ``low + i``; None where no row has it.
    ``ordered``: whether the classes come in an order that someone chose (categorical data).
    """

    raw: RawIntegers
    classes: Sequence[Label | None]
    low: int = 0
    ordered: bool = False

    @property
    def present(self) -> list[Label]:
        """The classes that rows have or categories declare."""
        return [label for label in self.classes if label is not None]

    def numbers(self) -> npt.NDArray[np.int64]:
        """The place of each row's class among ``present``, shape (n,)."""
        place = np.cumsum([label is not None for label in self.classes], dtype=np.int64) - 1
        return place[self.raw.astype(np.int64, copy=False) - self.low]


def read_labels(name: str, values: Any) -> Factor | RawIntegers:
    """A column of labels; plain integers come back as they are, without a look at their values."""
    no_masked(name, values)
    declared = _categories(name, values) or _dictionary(name, values)
    if declared is not None:
        _no_missing(name, declared.raw < 0)
        return declared
    array = _label_array(name, values)
    if array.dtype.kind == "b":
        return Factor(array, [False, True])
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "f":
        _no_missing(name, ~np.isfinite(array))
        distinct, codes = np.unique(array, return_inverse=True)
        return Factor(compact(codes, len(distinct)), distinct.tolist())
    if array.dtype.kind in "US":
        numbered = number_fixed_width(array)
        if numbered is not None:
            return Factor(*numbered)
    return _by_dictionary(name, array)


def factorize(name: str, values: Any) -> Factor:
    """Encode a column of labels as integers, with the classes that these number."""
    read = read_labels(name, values)
    return read if isinstance(read, Factor) else integer_factor(read)


def integer_factor(array: RawIntegers) -> Factor:
    """The classes that a column of integers holds."""
    if not len(array):
        return Factor(array, [])
    low, high = int(array.min()), int(array.max())
    if high - low >= _DENSE_RANGE or high >= 1 << 63:
        classes, codes = np.unique(array, return_inverse=True)
        return Factor(compact(codes, len(classes)), classes.tolist())
    width = high - low + 1
    present = np.zeros(width, dtype=np.bool_)
    for rows in blocks(len(array), max(1 << 16, width)):
        present |= np.bincount(array[rows].astype(np.int64, copy=False) - low, minlength=width) > 0
    return Factor(array, integer_classes(low, present), low)


def integer_classes(low: int, present: npt.NDArray[np.bool_]) -> list[Label | None]:
    """Class ``low + i`` where it is present, else None."""
    return [low + i if held else None for i, held in enumerate(present.tolist())]


def is_missing(value: Any) -> bool:
    """True for a missing value: None, NaN, NA or NaT."""
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
    )


def _by_dictionary(name: str, array: npt.NDArray[Any]) -> Factor:
    seen: defaultdict[Any, int] = defaultdict(count().__next__)
    codes = CompactCodes(len(array))
    for rows in blocks(len(array)):
        listed = array[rows].tolist()
        try:
            numbers = np.fromiter(map(seen.__getitem__, listed), np.int64, len(listed))
        except TypeError:
            raise ValueError(
                f"{name} must hold one label per row, got rows like {listed[0]!r:.80}"
            ) from None
        codes.put(rows, numbers, len(seen))
    missing = [code for value, code in seen.items() if is_missing(value)]
    if missing:
        _no_missing(name, np.isin(codes.array, missing))
    return Factor(codes.array, [plain(v) for v in seen])


def _categories(name: str, values: Any) -> Factor | None:
    """Codes and categories, as they are."""
    kind = type(getattr(values, "dtype", None)).__name__
    if kind == "CategoricalDtype":  # pandas Series, Index or Categorical
        holder = getattr(values, "cat", values)
        return Factor(np.asarray(holder.codes), [plain(v) for v in holder.categories], ordered=True)
    if kind == "Enum":  # polars, declared order; its Categorical has none and is read as strings
        _no_missing(name, np.asarray(values.is_null()))
        return Factor(np.asarray(values.to_physical()), list(values.dtype.categories), ordered=True)
    return None


def _dictionary(name: str, values: Any) -> Factor | None:
    """Strings of pandas, polars and Arrow, numbered by their own library."""
    if type(getattr(values, "dtype", None)).__name__ in ("StringDtype", "ArrowDtype") and hasattr(
        values, "factorize"
    ):
        codes, classes = values.factorize()
        listed = [plain(v) for v in classes.tolist()]
        return Factor(codes, listed) if all(isinstance(v, str) for v in listed) else None
    if type(getattr(values, "dtype", None)).__name__ in ("String", "Categorical") and hasattr(
        values, "to_arrow"
    ):
        values = values.to_arrow()  # polars
    type_name = str(getattr(values, "type", ""))
    if not hasattr(values, "dictionary_encode") or not (
        "dictionary" in type_name or "string" in type_name
    ):
        return None
    encoded = values if "dictionary" in type_name else values.dictionary_encode()
    merged = (
        encoded.unify_dictionaries().combine_chunks() if hasattr(encoded, "chunks") else encoded
    )
    merged = merged.chunk(0) if hasattr(merged, "chunks") else merged
    codes = merged.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return Factor(codes, merged.dictionary.to_pylist(), ordered=bool(merged.type.ordered))


def _label_array(name: str, values: Any) -> npt.NDArray[Any]:
    if hasattr(values, "isna") and hasattr(values, "index"):  # pandas, whatever backs it
        _no_missing(name, np.asarray(values.isna()).ravel())
    if hasattr(values, "null_count"):
        nulls = values.null_count() if callable(values.null_count) else values.null_count
        if nulls:
            _no_missing(name, np.asarray(values.is_null()))
    if isinstance(values, (list, tuple)) and any(isinstance(v, (list, tuple)) for v in values):
        raise ValueError(f"{name} must hold one label per row, got rows like {values[0]!r:.80}")
    array = as_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(
            f"{name} must have shape (n_samples,), got {array.shape}{_what_rows_are(name, array)}"
        )
    if (
        array.dtype.kind == "U"
        and isinstance(values, (list, tuple))
        and not all(isinstance(v, str) for v in values)
    ):
        array = np.array(list(values), dtype=object)  # NumPy turned mixed labels into strings
    if array.dtype.kind not in "iubfUSOT":
        raise ValueError(
            f"{name} must hold integers, strings, booleans or floats, got {array.dtype}"
        )
    return array


def _what_rows_are(name: str, array: npt.NDArray[Any]) -> str:
    """Hint for rows of numbers that were given as labels; nothing for other columns."""
    if name not in ("y_true", "y_pred") or array.ndim != 2 or array.dtype.kind not in "iubf":
        return ""
    if np.isin(array, (0, 1)).all():
        return f"; one-hot rows become labels as classes[{name}.argmax(axis=1)]"
    return "; probabilities are given as y_prob="


def _no_missing(name: str, missing: npt.NDArray[np.bool_]) -> None:
    if missing.any():
        rows = np.flatnonzero(missing)
        raise ValueError(
            f"{name} must not have missing labels, got {len(rows)}, the first at row {rows[0]}"
        )
