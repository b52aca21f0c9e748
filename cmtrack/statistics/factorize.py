"""Conversion of any column of labels to integers, with the class of each integer.

pandas, polars and Arrow objects are recognised by their attributes and methods, so that this module
does not import these libraries.
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
from cmtrack.statistics.inputs import as_array, is_categorical, n_nulls, no_masked

_BLOCK = 1 << 14
_MOST_STRINGS = 256
"""Maximum number of distinct strings to hash; a dictionary numbers columns with more."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
"""An odd number near 2**64 / (golden ratio), so that products have well mixed leading bits."""
_SLOT_BITS = (12, 14, 16, 18)
"""Sizes of the table of slots. The first size in which no two strings collide is used."""
_DENSE_RANGE = 1_000_000
"""Range of integers above which distinct integers are found by sorting, not with a table."""

_Words = npt.NDArray[Any]
_Keys = npt.NDArray[np.uint64]


def number_fixed_width(array: npt.NDArray[Any]) -> tuple[RawIntegers, list[Any]] | None:
    """Number strings by a hash of their bits, and check that equal hashes mean equal strings.

    Parameters
    ----------
    array : ndarray of shape (n,), of kind "U" or "S"

    Returns
    -------
    codes : ndarray of shape (n,), the smallest unsigned integers
    distinct : list
        The strings in order of appearance.

    The result is None if there are more than 256 distinct strings, or if hashes collide.
    """
    itemsize = array.dtype.itemsize
    if not itemsize or not array.dtype.isnative:
        return None
    word = np.dtype(np.uint32 if itemsize % 4 == 0 else np.uint8)
    width = itemsize // word.itemsize
    # Odd factors do not lose any bit of a word. The fixed seed makes them always the same.
    factors = np.random.default_rng(0).integers(1, 1 << 63, width).astype(np.uint64)
    factors = factors * np.uint64(2) + np.uint64(1)
    table = _Slots(width, word)
    codes = CompactCodes(len(array))
    for rows in blocks(len(array), _BLOCK):
        words = np.ascontiguousarray(array[rows]).view(word).reshape(-1, width)
        keys = words @ factors
        numbers = table.find(keys)
        if (numbers < 0).any():
            if not table.add(keys, words, numbers < 0):
                return None
            numbers = table.find(keys)
        if not np.array_equal(table.words.take(numbers, axis=0), words):
            # Two different strings have the same hash.
            return None
        codes.put(rows, numbers, len(table.words))
    return codes.array, table.words.view(array.dtype).ravel().tolist()


class _Slots:
    """A table of hashes in which no two hashes share a slot."""

    def __init__(self, width: int, word: np.dtype[Any]) -> None:
        self.words: _Words = np.empty((0, width), dtype=word)
        self._keys: _Keys = np.empty(0, dtype=np.uint64)
        self._fill(_SLOT_BITS[0])

    def find(self, keys: _Keys) -> npt.NDArray[np.int64]:
        """Return the number of each key, or -1 for a new key."""
        slots = self._slots(keys)
        numbers = self._numbers.take(slots)
        numbers[self._key_of_slot.take(slots) != keys] = -1
        return numbers

    def add(self, keys: _Keys, words: _Words, is_new: npt.NDArray[np.bool_]) -> bool:
        """Number the new keys in order of appearance; False if they cannot have separate slots."""
        new_keys, first = np.unique(keys[is_new], return_index=True)
        order = first.argsort()
        self._keys = np.concatenate((self._keys, new_keys[order]))
        self.words = np.concatenate((self.words, words[is_new][first[order]]))
        return len(self._keys) <= _MOST_STRINGS and any(map(self._fill, _SLOT_BITS))

    def _slots(self, keys: _Keys) -> npt.NDArray[np.int64]:
        return ((keys * _MIX) >> self._shift).view(np.int64)

    def _fill(self, bits: int) -> bool:
        """Put all keys into a table of ``2**bits`` slots; False if two keys share a slot."""
        self._shift = np.uint64(64 - bits)
        slots = self._slots(self._keys)
        self._numbers = np.full(1 << bits, -1, dtype=np.int64)
        self._numbers[slots] = np.arange(len(slots))
        self._key_of_slot = np.zeros(1 << bits, dtype=np.uint64)
        self._key_of_slot[slots] = self._keys
        return len(np.unique(slots)) == len(slots)


@dataclass(frozen=True, eq=False)
class Factor:
    """One column of labels.

    ``raw``, shape (n,), integers or booleans: the original integer labels, or indices into
        ``classes``.
    ``classes``: the class of the value ``low + i``; None if no row has this value.
    ``ordered``: whether the order of the classes was chosen by the user (categorical data).
    """

    raw: RawIntegers
    classes: Sequence[Label | None]
    low: int = 0
    ordered: bool = False

    @property
    def present(self) -> list[Label]:
        """Classes that occur in the rows or that categories declare."""
        return [label for label in self.classes if label is not None]

    def numbers(self) -> npt.NDArray[np.int64]:
        """Return the index of each row's class in ``present``, shape (n,)."""
        place = np.cumsum([label is not None for label in self.classes], dtype=np.int64) - 1
        return place[self.raw.astype(np.int64, copy=False) - self.low]


def read_labels(name: str, values: Any) -> Factor | RawIntegers:
    """Read a column of labels; plain integers are returned unchanged and unchecked."""
    no_masked(name, values)
    declared = _categories(name, values) or _dictionary(values)
    if declared is not None:
        _no_missing(name, declared.raw < 0)
        return declared
    array = _label_array(name, values)
    kind = array.dtype.kind
    if kind == "b":
        return Factor(array, [False, True])
    if kind in "iu":
        return array
    if kind == "f":
        _no_missing(name, ~np.isfinite(array))
        return _sorted_factor(array)
    if kind in "US":
        numbered = number_fixed_width(array)
        if numbered is not None:
            return Factor(*numbered)
    return _by_dictionary(name, array)


def factorize(name: str, values: Any) -> Factor:
    """Convert a column of labels to integers, and return the class of each integer."""
    column = read_labels(name, values)
    return column if isinstance(column, Factor) else integer_factor(column)


def integer_factor(array: RawIntegers) -> Factor:
    """Return the classes in a column of integers."""
    if not len(array):
        return Factor(array, [])
    low = int(array.min())
    high = int(array.max())
    # The difference of larger numbers would overflow 64 bits.
    if high - low >= _DENSE_RANGE or high >= 1 << 63:
        return _sorted_factor(array)
    width = high - low + 1
    is_present = np.zeros(width, dtype=np.bool_)
    for rows in blocks(len(array), max(1 << 16, width)):
        codes = array[rows].astype(np.int64, copy=False) - low
        is_present |= np.bincount(codes, minlength=width) > 0
    return Factor(array, integer_classes(low, is_present), low)


def _sorted_factor(array: npt.NDArray[Any]) -> Factor:
    classes, codes = np.unique(array, return_inverse=True)
    return Factor(compact(codes, len(classes)), classes.tolist())


def integer_classes(low: int, is_present: npt.NDArray[np.bool_]) -> list[Label | None]:
    """Return the list of classes ``low + i``, with None for classes that are not present."""
    return [low + i if present else None for i, present in enumerate(is_present.tolist())]


def is_missing(value: Any) -> bool:
    """Return whether a value is missing: None, NaN, NA or NaT."""
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
    )


def _by_dictionary(name: str, array: npt.NDArray[Any]) -> Factor:
    """Number labels of any type in order of appearance."""
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    codes = CompactCodes(len(array))
    for rows in blocks(len(array)):
        labels = array[rows].tolist()
        try:
            block = np.fromiter(map(numbers.__getitem__, labels), np.int64, len(labels))
        except TypeError:
            raise ValueError(
                f"{name} must contain one label per row, got rows like {labels[0]!r:.80}"
            ) from None
        codes.put(rows, block, len(numbers))
    missing = [code for label, code in numbers.items() if is_missing(label)]
    if missing:
        _no_missing(name, np.isin(codes.array, missing))
    return Factor(codes.array, [plain(label) for label in numbers])


def _categories(name: str, values: Any) -> Factor | None:
    """Return codes and categories of a pandas or polars column; None if it has no categories."""
    if is_categorical(values):
        holder = getattr(values, "cat", values)
        return Factor(np.asarray(holder.codes), [plain(v) for v in holder.categories], ordered=True)
    if _type_name(values) == "Enum":
        # A Categorical of polars has no declared order and is read as strings.
        _no_missing(name, np.asarray(values.is_null()))
        return Factor(np.asarray(values.to_physical()), list(values.dtype.categories), ordered=True)
    return None


def _dictionary(values: Any) -> Factor | None:
    """Return the numbers that pandas, polars or Arrow gave to strings; None for other data."""
    kind = _type_name(values)
    if kind in ("StringDtype", "ArrowDtype") and hasattr(values, "factorize"):
        codes, classes = values.factorize()
        labels = [plain(v) for v in classes.tolist()]
        if all(isinstance(label, str) for label in labels):
            return Factor(codes, labels)
        return None
    if kind in ("String", "Categorical") and hasattr(values, "to_arrow"):
        values = values.to_arrow()  # polars
    arrow_type = str(getattr(values, "type", ""))
    if not hasattr(values, "dictionary_encode"):
        return None
    if "dictionary" not in arrow_type:
        if "string" not in arrow_type:
            return None
        values = values.dictionary_encode()
    if hasattr(values, "chunks"):
        # Each chunk has its own dictionary.
        values = values.unify_dictionaries().combine_chunks()
    if hasattr(values, "chunk"):
        # Some versions of Arrow combine the chunks into a chunked array with one chunk.
        values = values.chunk(0)
    codes = values.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return Factor(codes, values.dictionary.to_pylist(), ordered=bool(values.type.ordered))


def _type_name(values: Any) -> str:
    return type(getattr(values, "dtype", None)).__name__


def _label_array(name: str, values: Any) -> npt.NDArray[Any]:
    """Return labels as an array of shape (n,); ValueError for missing or invalid labels."""
    if hasattr(values, "isna") and hasattr(values, "index"):  # pandas, whatever backs it
        _no_missing(name, np.asarray(values.isna()).ravel())
    if n_nulls(values):
        _no_missing(name, np.asarray(values.is_null()))
    is_list = isinstance(values, (list, tuple))
    if is_list and any(isinstance(label, (list, tuple)) for label in values):
        raise ValueError(f"{name} must contain one label per row, got rows like {values[0]!r:.80}")
    array = as_array(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        advice = _advice_on_rows(name, array)
        raise ValueError(f"{name} must have shape (n_samples,), got {array.shape}{advice}")
    if array.dtype.kind == "U" and is_list and not all(isinstance(v, str) for v in values):
        # NumPy converted labels of several types to strings.
        array = np.array(list(values), dtype=object)
    # "T" is NumPy's type for strings of any length.
    if array.dtype.kind not in "iubfUSOT":
        raise ValueError(
            f"{name} must contain integers, strings, booleans or floats, got {array.dtype}"
        )
    return array


def _advice_on_rows(name: str, array: npt.NDArray[Any]) -> str:
    """Return advice if rows of numbers were given as labels; otherwise an empty text."""
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
