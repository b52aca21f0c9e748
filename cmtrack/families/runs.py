"""Runs of equal keys in sorted arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack.statistics.inputs import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Runs:
    """Runs of a sorted array.

    Attributes
    ----------
    key, start, size : ndarray of shape (R,), int64
    of_item : ndarray of shape (n,), int64
        The run of each item.
    """

    key: IntArray
    start: IntArray
    size: IntArray
    of_item: IntArray

    @classmethod
    def of(cls, keys: IntArray) -> Runs:
        """Find the runs of sorted keys (n,)."""
        new = np.empty(len(keys), dtype=bool)
        new[:1] = True
        np.not_equal(keys[1:], keys[:-1], out=new[1:])
        start = np.flatnonzero(new)
        return cls(keys[start], start, np.diff(start, append=len(keys)), np.cumsum(new) - 1)

    def sum(self, flags: BoolArray) -> IntArray:
        """Number of true flags in each run."""
        if not len(self.start):
            return np.zeros(0, dtype=np.int64)
        return np.add.reduceat(flags, self.start, dtype=np.int64)

    def partners(self, other: Runs) -> tuple[IntArray, IntArray]:
        """For each run the other side's run of the same key, and the reverse; -1 where there is none."""
        mine = np.full(len(self.key), -1, dtype=np.int64)
        theirs = np.full(len(other.key), -1, dtype=np.int64)
        if len(mine) and len(theirs):
            at = np.searchsorted(other.key, self.key)
            at[at == len(theirs)] = 0
            found = np.flatnonzero(other.key[at] == self.key)
            mine[found] = at[found]
            theirs[at[found]] = found
        return mine, theirs


def shared(ours: IntArray, theirs: IntArray) -> tuple[BoolArray, BoolArray]:
    """Which of the distinct sorted keys of each side are on the other side too."""
    mine, yours = np.zeros(len(ours), dtype=bool), np.zeros(len(theirs), dtype=bool)
    if len(ours) and len(theirs):
        at = np.searchsorted(theirs, ours)
        at[at == len(theirs)] = 0
        mine = theirs[at] == ours
        yours[at[mine]] = True
    return mine, yours
