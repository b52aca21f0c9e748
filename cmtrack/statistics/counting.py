"""Counting codes: one pass, in blocks that stay in cache, in 64-bit integers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.inputs import FloatArray, IntArray

Counts: TypeAlias = npt.NDArray[Any]
"""int64 where every weight is a whole number, else float64."""

_BLOCK = 1 << 16


def count_codes(codes: IntArray, size: int, weights: FloatArray | IntArray | None = None) -> Counts:
    """Count codes 0..size-1, or sum their weights; int64 unless the weights are fractions."""
    whole = weights is None or weights.dtype.kind == "i"
    total = np.zeros(size, dtype=np.int64 if whole else np.float64)
    length = max(_BLOCK, size)  # a block per pass over the totals, which should stay in cache
    for start in range(0, len(codes), length):
        block = slice(start, start + length)
        part = np.bincount(codes[block], None if weights is None else weights[block], size)
        total += part.astype(np.int64) if whole else part
    return total


def count_pairs(
    actual: IntArray, predicted: IntArray, n_classes: int, weights: FloatArray | IntArray | None = None
) -> Counts:
    """The (K, K) table of actual by predicted codes."""
    return count_codes(actual * n_classes + predicted, n_classes * n_classes, weights).reshape(n_classes, n_classes)
