"""Counting codes: one pass, in blocks that stay in cache, in 64-bit integers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.codes import BLOCK, Codes, RawIntegers, blocks
from cmtrack.statistics.inputs import FloatArray, IntArray

Counts: TypeAlias = npt.NDArray[Any]
"""int64 where every weight is a whole number, else float64."""

MAX_RANGE = 1 << 11
"""Widest range of integer labels whose pairs are counted as they are."""
_TWICE = 13
"""Up to this range two rows are counted as one: a table of its fourth power still fits the cache."""
_LONG_BLOCK = 1 << 16
_MOST = 1 << 40


def count_codes(codes: IntArray, size: int, weights: FloatArray | IntArray | None = None) -> Counts:
    """Count codes 0..size-1, or sum their weights; int64 unless the weights are fractions."""
    total = zeros(size, weights)
    for rows in blocks(len(codes), max(BLOCK, size)):  # a block per pass over the totals, which should stay in cache
        total += count_block(codes[rows], size, None if weights is None else weights[rows])
    return total


def count_block(codes: IntArray, size: int, weights: FloatArray | IntArray | None = None) -> Counts:
    """Count the codes of one block."""
    counts = np.bincount(codes, weights, size)
    return counts if weights is None or weights.dtype.kind == "f" else counts.astype(np.int64)


def zeros(size: int | tuple[int, ...], weights: FloatArray | IntArray | None) -> Counts:
    """Totals to add to: int64 unless the weights are fractions."""
    return np.zeros(size, dtype=np.float64 if weights is not None and weights.dtype.kind == "f" else np.int64)


def count_pairs(
    actual: Codes, predicted: Codes, n_classes: int, weights: FloatArray | IntArray | None = None
) -> Counts:
    """The (K, K) table of actual by predicted codes."""
    size = n_classes * n_classes
    total = zeros(size, weights)
    for rows in blocks(len(actual), max(BLOCK, size)):
        codes = actual.block(rows) * n_classes + predicted.block(rows)
        total += count_block(codes, size, None if weights is None else weights[rows])
    return total.reshape(n_classes, n_classes)


def count_integer_pairs(first: RawIntegers, second: RawIntegers) -> tuple[int, Counts] | None:
    """Count pairs of integers as they are, in one pass that finds their range on its way.

    Parameters
    ----------
    first, second : ndarray of shape (n,), integers or booleans, n > 0

    Returns
    -------
    low : int
        The least value that the table has a place for.
    table : ndarray of shape (W, W), int64
        ``table[i, j]``: rows with ``low + i`` and ``low + j``.

    None where the values span more than 2,048, or are far from 0.
    """
    low, high = _range(first[:: len(first) // 1000 + 1], second[:: len(second) // 1000 + 1])
    table: Counts | None = None
    buffer = np.empty(min(len(first), _LONG_BLOCK), dtype=np.int64)
    for rows in blocks(len(first), _LONG_BLOCK):
        a, b = first[rows], second[rows]
        least, greatest = _range(a, b)
        old = low
        low, high = min(low, least), max(high, greatest)
        if high - low >= MAX_RANGE or max(-low, high) > _MOST:
            return None
        width = high - low + 1
        if table is None or width > len(table):
            table = _widened(table, old - low, width)
        _add_pairs(table, a, b, low, buffer[: len(a)])
    assert table is not None  # at least one row
    return low, table


def _range(first: RawIntegers, second: RawIntegers) -> tuple[int, int]:
    return int(min(first.min(), second.min())), int(max(first.max(), second.max()))


def _widened(table: Counts | None, shift: int, width: int) -> Counts:
    wide = np.zeros((width, width), dtype=np.int64)
    if table is not None:
        old = slice(shift, shift + len(table))
        wide[old, old] = table
    return wide


def _add_pairs(table: Counts, a: RawIntegers, b: RawIntegers, low: int, codes: IntArray) -> None:
    width = len(table)
    np.multiply(a, width, out=codes, dtype=np.int64, casting="unsafe")
    np.add(codes, b, out=codes, dtype=np.int64, casting="unsafe")
    if low:
        codes -= low * (width + 1)
    size = width * width
    if width > _TWICE:
        table += np.bincount(codes, minlength=size).reshape(width, width)
        return
    half = len(codes) // 2
    fours = codes[:half] * size
    fours += codes[half : 2 * half]
    both = np.bincount(fours, minlength=size * size).reshape(size, size)
    counts = both.sum(axis=0) + both.sum(axis=1)
    if len(codes) % 2:
        counts[codes[-1]] += 1
    table += counts.reshape(width, width)
