"""Counts of all values of one column and all crossings of two, from few tables that slices share.

A table counts the rows by several columns at once; the sums of every slice of these columns are sums of its cells.
Eight columns of five values have 28 pairs, and few tables of four or five columns hold them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from cmtrack.segments.columns import SegmentColumn
from cmtrack.statistics.attributes import combine
from cmtrack.statistics.inputs import FloatArray, IntArray

Kept: TypeAlias = dict[tuple[int, ...], tuple[IntArray, IntArray]]
"""By columns: the keys of their slices of enough rows, and the slices' numbers."""
MAX_SLICES = 200_000
_CELLS = 4096
"""Cells of a table of several columns; where a pair of columns alone has more, only its own slices are cells."""


@dataclass(frozen=True, eq=False)
class Block:
    """A table of crossings.

    ``codes``, shape (u,), int64: the cell of each unit.
    ``size``: number of cells.
    ``selection``, scipy.sparse.csr_array of shape (S, size): 1 where a cell lies in one of the slices that this table
        serves.
    """

    codes: IntArray
    size: int
    selection: Any


@dataclass(frozen=True, eq=False)
class Lattice:
    """Slices of enough rows, and the tables that count them.

    ``slices``, tuple of tuples of (column, value) pairs of int: one pair, or two of crossings.
    ``rows``, shape (S,): rows of each slice.
    ``largest``: rows of the largest slice that is not all rows, searched or not.
    ``seen``: slices that have rows.
    """

    slices: tuple[tuple[tuple[int, int], ...], ...]
    rows: IntArray
    blocks: tuple[Block, ...]
    largest: int
    seen: int

    def sums(self, values: FloatArray | IntArray | None) -> FloatArray:
        """Per-slice sums of a per-unit value, shape (S,); None counts the units."""
        out = np.zeros(len(self.slices))
        for block in self.blocks:
            out += block.selection @ np.bincount(block.codes, values, block.size).astype(np.float64)
        return out

    def by_cluster(self, owner: IntArray, values: FloatArray) -> Any:
        """Sums of one value over the units of each cluster in each slice: csr_array of shape (S, clusters)."""
        from scipy.sparse import csr_array

        units = np.arange(len(owner))
        of_cluster = csr_array((values, (units, owner)), shape=(len(owner), 1 + int(owner.max())))
        ones = np.ones(len(owner))
        return sum(
            block.selection
            @ csr_array((ones, (block.codes, units)), shape=(block.size, len(owner)))
            @ of_cluster
            for block in self.blocks
        )


def lattice(
    columns: Sequence[SegmentColumn],
    codes: Sequence[IntArray],
    rows: IntArray,
    depth: int,
    least: int,
) -> Lattice:
    """The slices of at least ``least`` rows, without those of all rows.

    ``codes``, sequence of ndarray of shape (u,): the segment of each unit (row, or cluster of rows) in each column.
    ``rows``, shape (u,), int64: rows of each unit.
    """
    total = int(rows.sum())
    slices: list[tuple[tuple[int, int], ...]] = []
    supports: list[IntArray] = []
    largest = seen = 0
    large: Kept = {}
    sizes = [len(column.texts) for column in columns]
    for chosen in [c for n in range(1, depth + 1) for c in combinations(range(len(columns)), n)]:
        places, cells = _cells(codes, sizes, chosen)
        support = np.bincount(places, rows, len(cells)).astype(np.int64)
        inside = support < total
        largest, seen = max(largest, int(support[inside].max(initial=0))), seen + len(cells)
        enough = np.flatnonzero(inside & (support >= least))
        if not len(enough):
            continue
        if len(slices) + len(enough) > MAX_SLICES:
            raise ValueError(
                f"a search must have at most {MAX_SLICES:,} segments, got more: give fewer columns, or a min_rows "
                f"above {least}"
            )
        large[chosen] = (cells[enough], np.arange(len(slices), len(slices) + len(enough)))
        supports.append(support[enough])
        listed = cells[enough].tolist()
        values = (
            [divmod(key, sizes[chosen[1]]) for key in listed]
            if len(chosen) == 2
            else [(key,) for key in listed]
        )
        slices.extend(tuple(zip(chosen, cell, strict=True)) for cell in values)
    counts = np.concatenate(supports) if supports else np.zeros(0, dtype=np.int64)
    blocks = tuple(_blocks(codes, sizes, large, len(slices)))
    return Lattice(tuple(slices), counts, blocks, largest, seen)


def _keys(codes: Sequence[IntArray], sizes: Sequence[int], chosen: tuple[int, ...]) -> IntArray:
    """The crossing of one or two columns in which each unit lies."""
    return (
        codes[chosen[0]]
        if len(chosen) == 1
        else codes[chosen[0]] * sizes[chosen[1]] + codes[chosen[1]]
    )


def _cells(
    codes: Sequence[IntArray], sizes: Sequence[int], chosen: tuple[int, ...]
) -> tuple[IntArray, IntArray]:
    """Place of each unit among the crossings that occur, and these."""
    keys, span = _keys(codes, sizes, chosen), int(np.prod([sizes[c] for c in chosen]))
    if span > 4 * len(keys) + _CELLS:
        cells, places = np.unique(keys, return_inverse=True)
        return places, cells
    cells = np.flatnonzero(np.bincount(keys, minlength=span))
    place = np.zeros(span, dtype=np.int64)
    place[cells] = np.arange(len(cells))
    return place[keys], cells


def _blocks(codes: Sequence[IntArray], sizes: Sequence[int], kept: Kept, n: int) -> list[Block]:
    blocks = []
    left = dict(kept)
    while left:
        first = max(left, key=len)
        held, size = codes[first[0]], sizes[first[0]]
        for more in first[1:]:
            held, size = combine(held, size, codes[more], sizes[more])
        block = set(first)
        others = sorted({c for chosen in left for c in chosen} - block)
        alone = size > _CELLS
        if alone:  # one cell for each of its slices, and one for all other units
            keys, key = left[first][0], _keys(codes, sizes, first)
            held, size = np.searchsorted(keys, key), len(keys) + 1
            held[np.append(keys, -1)[held] != key] = len(keys)
        while others and not alone:
            gains = [
                sum(c in chosen and set(chosen) <= block | {c} for chosen in left) for c in others
            ]
            best = max(range(len(others)), key=gains.__getitem__)
            column = others.pop(best)
            if not gains[best]:
                break
            if size * sizes[column] <= 16 * _CELLS:
                wider, many = combine(held, size, codes[column], sizes[column])
                if many <= _CELLS:
                    held, size = wider, many
                    block.add(column)
        served = [first] if alone else [chosen for chosen in left if set(chosen) <= block]
        blocks.append(
            _block(codes, sizes, held, size, {chosen: left.pop(chosen) for chosen in served}, n)
        )
    return blocks


def _block(
    codes: Sequence[IntArray], sizes: Sequence[int], held: IntArray, size: int, served: Kept, n: int
) -> Block:
    from scipy.sparse import csr_array

    unit = np.zeros(size, dtype=np.int64)
    unit[held] = np.arange(len(held))  # some unit of each cell
    rows, cells = [], []
    for chosen, (keys, numbers) in served.items():
        key = _keys(codes, sizes, chosen)[unit]
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        inside = keys[place] == key
        rows.append(numbers[place[inside]])
        cells.append(np.flatnonzero(inside))
    row, cell = np.concatenate(rows), np.concatenate(cells)
    return Block(held, size, csr_array((np.ones(len(row)), (row, cell)), shape=(n, size)))
