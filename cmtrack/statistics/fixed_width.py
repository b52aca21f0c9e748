"""Numbering NumPy strings of fixed width without making a Python string of each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.codes import CompactCodes, RawIntegers, blocks

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
    factors = np.random.default_rng(0).integers(1, 1 << 63, width).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    table = _Slots(width, word)
    codes = CompactCodes(len(array))
    for rows in blocks(len(array), _BLOCK):
        words = np.ascontiguousarray(array[rows]).view(word).reshape(-1, width)
        keys = words @ factors
        found = table.find(keys)
        if (found < 0).any():
            if not table.add(keys, words, found < 0):
                return None
            found = table.find(keys)
        if not np.array_equal(table.words.take(found, axis=0), words):  # two strings of one hash
            return None
        codes.put(rows, found, len(table.words))
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
