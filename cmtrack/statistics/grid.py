"""The fixed grid of 1,600 cells on [0, 1] that the scores of many samples are counted by."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.counting import blocks
from cmtrack.statistics.inputs import FloatArray

CELLS = 1600
_LEADING = 10
"""Bits of the odds' fraction by which a cell is looked up: 1,024 values for each doubling."""
_AT_ONCE = 1 << 15


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
def _table(kind: np.dtype[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], int]:
    """The numbers that find the cells of scores of this kind.

    A score below all edges and one above; the first's bits; what to add to bits above it, by their leading ones; how
    many bits follow these.

    The sum's leading bits are then the cell, or one cell more than there are where these odds hold several edges, or an
    edge that a lower score shares them with.
    """
    edges = grid_edges().astype(kind)
    # the least scores not below them
    edges = np.where(edges < grid_edges(), np.nextafter(edges, kind.type(1)), edges)
    shift = int(np.finfo(kind).nmant) - _LEADING
    ends = np.array([edges[0] * 0.99, 1 - (1 - edges[-1]) * 0.99], dtype=kind)
    first = _bits(ends[:1])
    bits = _bits(edges) - first
    bucket, buckets = bits >> shift, np.arange(1 + int((_bits(ends[1:]) - first)[0] >> shift))
    add = (np.searchsorted(bucket, buckets) - buckets) << shift
    add[bucket] += (1 << shift) - bits % (1 << shift)
    unclear = np.concatenate(
        (
            bucket[_bits(np.nextafter(edges, kind.type(0))) - first == bits],
            bucket[1:][np.diff(bucket) == 0],
        )
    )
    add[unclear] = (CELLS - unclear) << shift
    return ends, first, add.astype(bits.dtype), shift


def _bits(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The odds of scores between 0 and 1 as integers, of which none is above that of a greater score."""
    odds = np.subtract(1.0, scores)
    np.divide(scores, odds, out=odds)
    return odds.view(f"i{odds.itemsize}")


def cells_of(scores: npt.NDArray[Any], dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """The cell of each score in [0, 1], 0 to 1,599; shape as given.

    What is added to the bits of a score's odds carries into the leading ones where the odds are those of the next edge
    or above; the few scores that this cannot tell are searched for. Single precision takes half the time.
    """
    scores = np.asarray(scores)
    scores = scores if scores.dtype == np.float32 else scores.astype(np.float64, copy=False)
    (low, high), first, add, shift = _table(scores.dtype)
    cells = np.empty(scores.shape, dtype)
    flat, into = scores.reshape(-1), cells.reshape(-1)
    for part in blocks(len(flat), _AT_ONCE):
        inside = np.clip(flat[part], low, high)
        bits = _bits(inside)
        bits -= first
        leading = np.right_shift(bits, shift, out=inside.view(bits.dtype))
        bits += add.take(leading, mode="clip")
        np.right_shift(bits, shift, out=into[part], casting="same_kind")
    unclear = np.flatnonzero(into == CELLS)
    into[unclear] = np.searchsorted(grid_edges(), flat[unclear], side="right")
    return cells
