"""Pairs of unmatched codes of one document and family, counted under all matchings at once."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from cmtrack.families.counts import UNIT, PairCounts, sum_by_key
from cmtrack.families.hierarchy import Families
from cmtrack.statistics.inputs import IntArray

_DENSE = 1 << 22  # cells within families that are counted in a table
_PAIRS = 2_000_000  # made at a time


class Left(NamedTuple):
    """Codes of one side, the codes of a (document, family) side by side, and how many each of these has."""

    code: IntArray
    size: IntArray


class PairSum:
    """Adds up pairs.

    With a predicted and b actual codes left, a pair counts 1 (product), 1/b (row: each predicted code has mass 1), 1/a
    (column: each actual code has mass 1) and 1/max(a, b) (balanced: the mean of all largest one-to-one pairings);
    what is left of a code's balanced mass goes out of the family.
    """

    def __init__(self, families: Families) -> None:
        self._families = families
        self._size = len(families.codes)
        width = np.diff(families.starts)
        self._width = width[families.family_of_code]
        self._place = np.arange(self._size) - families.starts[families.family_of_code]
        cells = np.concatenate(([0], np.cumsum(width * width)))
        self._offset = cells[families.family_of_code]
        self._dense = np.zeros((4, int(cells[-1])), dtype=np.int64) if cells[-1] <= _DENSE else None
        self._sparse: list[tuple[IntArray, IntArray]] = []
        self._pending = 0
        self._surplus = np.zeros((self._size, 2), dtype=np.int64)

    def add(self, predicted: Left, actual: Left) -> None:
        """Add runs (G) that stand in the same order on both sides."""
        a, b = predicted.size, actual.size
        most = np.maximum(a, b)
        ends = np.cumsum(a * b)
        cuts = np.searchsorted(ends, np.arange(0, ends[-1] if len(ends) else 0, _PAIRS)[1:])
        edges = np.unique(np.concatenate(([0], cuts, [len(a)])))
        starts = np.cumsum(a) - a, np.cumsum(b) - b
        unit = np.stack((np.ones_like(a), _share(b), _share(a), _share(most)))
        for first, last in pairwise(edges):
            part = slice(first, last)
            times = a[part] * b[part]
            run = np.repeat(np.arange(last - first), times)
            k = np.arange(len(run)) - np.repeat(np.cumsum(times) - times, times)
            each = b[part][run]
            x = predicted.code[starts[0][part][run] + k // each]
            y = actual.code[starts[1][part][run] + k % each]
            self._count(x, y, unit[:, part], run)
        for side, (left, mine, other) in enumerate(((predicted, a, b), (actual, b, a))):
            rest = np.where(mine > other, UNIT - other * unit[3], 0)
            if rest.any():
                np.add.at(self._surplus[:, side], left.code, np.repeat(rest, mine))

    def _count(self, x: IntArray, y: IntArray, unit: IntArray, run: IntArray) -> None:
        if self._dense is not None:
            cell = self._offset[y] + self._place[y] * self._width[y] + self._place[x]
            for column in range(4):
                np.add.at(self._dense[column], cell, unit[column][run])
            return
        self._sparse.append(sum_by_key(y * self._size + x, unit[:, run].T))
        self._pending += len(self._sparse[-1][0])
        if len(self._sparse) > 1 and self._pending > 4 * _PAIRS:
            self._sparse = [self._compact()]
            self._pending = len(self._sparse[0][0]) // 2  # so that what is large already is not put together each time

    def _compact(self) -> tuple[IntArray, IntArray]:
        if not self._sparse:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 4), dtype=np.int64)
        keys, values = zip(*self._sparse, strict=True)
        return sum_by_key(np.concatenate(keys), np.concatenate(values))

    def result(self) -> PairCounts:
        """What was added."""
        if self._dense is None:
            keys, masses = self._compact()
        else:
            cell = np.flatnonzero(self._dense[0])
            first = self._offset[self._families.starts[:-1]]  # of each family
            family = np.searchsorted(first, cell, side="right") - 1
            start = self._families.starts[family]
            width = self._width[start]
            inside = cell - first[family]
            keys = (start + inside // width) * self._size + start + inside % width
            masses = self._dense[:, cell].T.copy()
        return PairCounts(keys, masses, self._surplus)


def _share(n: IntArray) -> IntArray:
    """UNIT / n, rounded."""
    return (2 * UNIT + n) // (2 * n)
