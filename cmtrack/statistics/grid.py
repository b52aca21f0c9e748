"""The fixed grid of 1,600 cells on [0, 1], by which scores of many rows are counted."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.counting import blocks
from cmtrack.statistics.inputs import FloatArray

CELLS = 1600
_LEADING = 10
"""Number of leading bits of the odds' fraction that look up a cell: 1,024 values per doubling."""
_AT_ONCE = 1 << 15
"""Number of scores whose cells are found at a time, so that the scores stay in cache."""


@cache
def grid_edges() -> FloatArray:
    """Return the 1,599 inner edges.

    The edges are 1,200 equal steps of logit(s) on [-12, 12] combined with steps of 1/400 in s. The
    grid is therefore fine in the middle and at both ends. Cells include their left edge.
    """
    logit = (np.arange(1201) - 600) / 50.0
    steps = np.delete(np.arange(1, 400), 199) / 400.0  # 200/400 is logit 0
    edges = np.sort(np.concatenate((1 / (1 + np.exp(-logit)), steps)))
    edges.setflags(write=False)
    return edges


@cache
def grid_centres() -> FloatArray:
    """Return the middle of each of the 1,600 cells."""
    bounds = np.concatenate(([0.0], grid_edges(), [1.0]))
    centres: FloatArray = (bounds[1:] + bounds[:-1]) / 2
    centres.setflags(write=False)
    return centres


class _LookUp(NamedTuple):
    """Numbers that are needed to look up the cells of scores in float64 or float32.

    ``low``, ``high``: a score below all edges, and a score above all edges.
    ``first``: the bits of the odds of ``low``.
    ``add``: the number to add to the bits minus ``first``, for each value of their leading bits.
        The leading bits of the sum are the number of the cell. The sum leads to the invalid cell
        ``CELLS`` if the leading bits do not determine the cell, because several edges share them,
        or because a score below an edge has the same odds as the edge.
    ``shift``: number of bits after the leading bits.
    """

    low: npt.NDArray[Any]
    high: npt.NDArray[Any]
    first: npt.NDArray[Any]
    add: npt.NDArray[Any]
    shift: int


@cache
def _look_up(kind: np.dtype[Any]) -> _LookUp:
    """Return the numbers for looking up the cells of float64 or float32 scores."""
    edges = grid_edges().astype(kind)
    # If rounding puts an edge below the exact edge, the next number is the first score in the cell.
    edges = np.where(edges < grid_edges(), np.nextafter(edges, kind.type(1)), edges)
    shift = int(np.finfo(kind).nmant) - _LEADING
    ends = np.array([edges[0] * 0.99, 1 - (1 - edges[-1]) * 0.99], dtype=kind)
    first, last = _bits(ends)
    bits = _bits(edges) - first
    leading = bits >> shift
    every_leading = np.arange(1 + int((last - first) >> shift))
    add = (np.searchsorted(leading, every_leading) - every_leading) << shift
    # At an edge, where the next cell begins, the sum carries into the leading bits.
    add[leading] += (1 << shift) - bits % (1 << shift)
    shares_edge = _bits(np.nextafter(edges, kind.type(0))) - first == bits
    holds_several = np.diff(leading) == 0
    unclear = np.concatenate((leading[shares_edge], leading[1:][holds_several]))
    add[unclear] = (CELLS - unclear) << shift
    return _LookUp(ends[0], ends[1], first, add.astype(bits.dtype), shift)


def _bits(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the odds of scores as integers that have the same order as the scores.

    The bit patterns of positive floats have the same order as the floats. Scores must be between 0
    and 1.
    """
    odds = np.subtract(1.0, scores)
    np.divide(scores, odds, out=odds)
    return odds.view(f"i{odds.itemsize}")


def cells_of(scores: npt.NDArray[Any], dtype: npt.DTypeLike = np.int64) -> npt.NDArray[Any]:
    """Return the number of each score's cell, from 0 to 1,599, in the shape of ``scores``.

    A number is added to the bits of a score's odds, so that the sum carries into the leading bits
    if the odds reach the next edge. For the few scores whose cell this does not determine, the cell
    is found by search. The function takes half the time for scores in single precision.
    """
    scores = np.asarray(scores)
    if scores.dtype != np.float32:
        scores = scores.astype(np.float64, copy=False)
    table = _look_up(scores.dtype)
    cells = np.empty(scores.shape, dtype)
    flat_scores = scores.reshape(-1)
    flat_cells = cells.reshape(-1)
    for rows in blocks(len(flat_scores), _AT_ONCE):
        inside = np.clip(flat_scores[rows], table.low, table.high)
        bits = _bits(inside)
        bits -= table.first
        # The leading bits overwrite the scores, which need the same memory.
        leading = np.right_shift(bits, table.shift, out=inside.view(bits.dtype))
        bits += table.add.take(leading, mode="clip")
        np.right_shift(bits, table.shift, out=flat_cells[rows], casting="same_kind")
    unclear = np.flatnonzero(flat_cells == CELLS)
    flat_cells[unclear] = np.searchsorted(grid_edges(), flat_scores[unclear], side="right")
    return cells
