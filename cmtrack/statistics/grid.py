"""The fixed grid of 1,600 cells on [0, 1] that the scores of many samples are counted by."""

from __future__ import annotations

from functools import cache

import numpy as np

from cmtrack.statistics.inputs import FloatArray, IntArray

CELLS = 1600
_SHIFT = 52 - 10
"""Bits of the odds that are left out in finding a cell: 1,024 values for each doubling."""


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
def _table() -> tuple[FloatArray, IntArray, IntArray]:
    """A score below all edges and one above, the first's bits, and what to add to bits above it by their leading ones.

    The sum's leading bits are then the cell, or one cell more than there are where these odds hold several edges, or an
    edge that a lower score shares them with.
    """
    edges = grid_edges()
    ends = np.array([edges[0] * 0.99, 1 - (1 - edges[-1]) * 0.99])
    first = _bits(ends[:1])
    bits = _bits(edges) - first
    bucket, buckets = bits >> _SHIFT, np.arange(1 + int((_bits(ends[1:]) - first)[0] >> _SHIFT))
    add = (np.searchsorted(bucket, buckets) - buckets) << _SHIFT
    add[bucket] += (1 << _SHIFT) - bits % (1 << _SHIFT)
    unclear = np.concatenate(
        (bucket[_bits(np.nextafter(edges, 0.0)) - first == bits], bucket[1:][np.diff(bucket) == 0])
    )
    add[unclear] = (CELLS - unclear) << _SHIFT
    return ends, first, add


def _bits(scores: FloatArray) -> IntArray:
    """The odds of scores between 0 and 1 as integers, of which none is above that of a greater score."""
    odds = np.subtract(1.0, scores)
    np.divide(scores, odds, out=odds)
    return odds.view(np.int64)


def cells_of(scores: FloatArray) -> IntArray:
    """The cell of each score in [0, 1], 0 to 1,599; shape as given.

    What is added to the bits of a score's odds carries into the leading ones where the odds are those of the next edge
    or above; the few scores that this cannot tell are searched for.
    """
    (low, high), first, add = _table()
    scores = np.asarray(scores, dtype=np.float64)
    bits = _bits(np.clip(scores, low, high))
    bits -= first
    cells = add.take(bits >> _SHIFT, mode="clip")
    cells += bits
    cells >>= _SHIFT
    unclear = np.nonzero(cells == CELLS)
    cells[unclear] = np.searchsorted(grid_edges(), scores[unclear], side="right")
    return cells
