"""The fixed grid of 1,600 cells on [0, 1] that the scores of many samples are counted by."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.inputs import FloatArray, IntArray

CELLS = 1600
_SHIFT = 52 - 7
"""Bits of the odds that are left out in finding a cell: 128 buckets for each doubling."""


@cache
def grid_edges() -> FloatArray:
    """The 1,599 inner edges.

    1,200 equal steps of logit(s) on [-12, 12] united with steps of 1/400 in s: fine in the middle and at
    both ends. Cells are closed on the left.
    """
    logit = (np.arange(1201) - 600) / 50.0
    steps = np.delete(np.arange(1, 400), 199) / 400.0  # 200/400 is logit 0
    edges = np.sort(np.concatenate((1 / (1 + np.exp(-logit)), steps)))
    edges.setflags(write=False)
    return edges


@cache
def grid_centres() -> FloatArray:
    """The middle of each of the 1,600 cells."""
    bounds = np.concatenate(([0.0], grid_edges(), [1.0]))
    centres: FloatArray = (bounds[1:] + bounds[:-1]) / 2
    centres.setflags(write=False)
    return centres


@cache
def _table() -> tuple[int, IntArray, FloatArray, int]:
    """The first bucket, the edges below each bucket, the edges with an end, and the most edges in one bucket."""
    edges = grid_edges()
    bucket = _buckets(edges)
    low = int(bucket.min())
    below = np.searchsorted(bucket - low, np.arange(int(bucket.max()) - low + 2), side="left")
    most = int(np.bincount(bucket - low).max())
    return low, below.astype(np.intp), np.concatenate((edges, np.full(most, np.inf))), most


def _buckets(scores: FloatArray) -> npt.NDArray[np.int64]:
    """Leading bits of the odds: no score is in a bucket above that of a greater score."""
    with np.errstate(divide="ignore"):
        odds = np.subtract(1.0, scores)
        np.divide(scores, odds, out=odds)
    bits: npt.NDArray[np.int64] = odds.view(np.int64)
    bits >>= _SHIFT
    return bits


def cells_of(scores: FloatArray) -> IntArray:
    """The cell of each score in [0, 1], 0 to 1,599; shape as given.

    The leading bits of a score's odds say which edges lie below; the one or two edges that share these bits are
    compared with the score itself.
    """
    low, below, edges, most = _table()
    bucket = _buckets(np.ascontiguousarray(scores, dtype=np.float64))
    bucket -= low
    cells = below.take(bucket, mode="clip")
    for _ in range(most):
        cells += scores >= edges.take(cells, mode="clip")
    return cells
