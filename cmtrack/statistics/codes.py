"""Class numbers of rows, kept as the integers that they were given as and read in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.inputs import IntArray

RawIntegers: TypeAlias = npt.NDArray[Any]
"""Integers of any size, or booleans."""

BLOCK = 1 << 16


@dataclass(frozen=True, eq=False)
class Codes:
    """Class numbers of n rows.

    Attributes
    ----------
    raw : ndarray of shape (n,), integers or booleans
        The values as they were given, not copied.
    low : int
        The least value.
    place : ndarray of shape (R,), int64, optional
        The class number of the value ``low + i``. None: the values are the class numbers.
    """

    raw: RawIntegers
    low: int = 0
    place: IntArray | None = None

    def __len__(self) -> int:
        return len(self.raw)

    def block(self, rows: slice) -> IntArray:
        """The class numbers of some rows, int64."""
        values: IntArray = self.raw[rows].astype(np.int64, copy=False)
        if self.place is None:
            return values
        return self.place.take(values - self.low if self.low else values)

    def all(self) -> IntArray:
        """The class numbers of all rows, int64; not a copy where the values are these already."""
        return self.block(slice(None))


def blocks(n_rows: int, length: int = BLOCK) -> Iterator[slice]:
    """Slices that cover the rows in order."""
    return (slice(start, min(start + length, n_rows)) for start in range(0, n_rows, length))


class CompactCodes:
    """Codes that are written block by block into the smallest integers that hold them."""

    def __init__(self, n_rows: int, n_codes: int = 1) -> None:
        self.array: RawIntegers = np.empty(n_rows, dtype=np.min_scalar_type(n_codes - 1))

    def put(self, rows: Any, codes: IntArray, n_codes: int) -> None:
        """Write the codes of some rows; ``n_codes`` have been seen so far."""
        if n_codes - 1 > np.iinfo(self.array.dtype).max:
            self.array = self.array.astype(np.min_scalar_type(n_codes - 1))
        self.array[rows] = codes


def compact(codes: IntArray, n_codes: int) -> RawIntegers:
    """The same codes in the smallest integers that hold 0 to ``n_codes - 1``."""
    return codes.astype(np.min_scalar_type(max(n_codes - 1, 0)), copy=False)
