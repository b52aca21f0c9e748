"""Counts by the most probable class and its probability, for the shares of many classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.statistics.counting import Counts, count_codes
from cmtrack.statistics.inputs import FloatArray, IntArray

CELLS = 64
_LOW, _HIGH = -4.0, 12.0
_MOST_CODES = 1 << 20
"""Tables of more cells are counted once at the end, not block by block."""
_MOST_WAITING = 1 << 22


@dataclass(frozen=True, eq=False)
class TopScoreCounts:
    """Samples by row (such as actual class), most probable class and cell of its probability.

    Attributes
    ----------
    counts : ndarray of shape (R, K, 64)
        The cells are equal steps of the logit on [-4, 12]; the outer ones are open.
    """

    counts: Counts

    @classmethod
    def from_scores(
        cls, rows: IntArray, scores: FloatArray, n_rows: int, weights: FloatArray | IntArray | None = None
    ) -> TopScoreCounts:
        """Count ``scores`` (n, K) by the codes ``rows`` (n,)."""
        size = scores.shape[1]
        best = scores.argmax(axis=1)
        codes = (rows * size + best) * CELLS + cells_of(scores[np.arange(len(scores)), best])
        return cls(count_codes(codes, n_rows * size * CELLS, weights).reshape(n_rows, size, CELLS))

    def __add__(self, other: TopScoreCounts) -> TopScoreCounts:
        return TopScoreCounts(self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopScoreCounts):
            return NotImplemented
        return np.array_equal(self.counts, other.counts)


class TopTally:
    """Counts by actual class, most probable class and cell in the making; of many classes the codes wait.

    Parameters
    ----------
    size : int
        Number of classes.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._counts: Any = 0
        self._codes: list[IntArray] = []
        self._weights: list[Any] = []

    def add(self, actual: IntArray, best: IntArray, top: FloatArray, weights: FloatArray | IntArray | None) -> None:
        """Count one block of rows by class, most probable class and its probability, all of shape (b,)."""
        codes = (actual * self.size + best) * CELLS + cells_of(top)
        if self.size * self.size * CELLS <= _MOST_CODES:
            self._counts = self._counts + count_codes(codes, self.size * self.size * CELLS, weights)
        else:
            self._wait(codes, np.ones(len(codes), dtype=np.int64) if weights is None else weights)

    def __add__(self, other: TopTally) -> TopTally:
        """Both sets of rows; neither tally may be used afterwards."""
        self._counts = self._counts + other._counts
        for codes, weights in zip(other._codes, other._weights, strict=True):
            self._wait(codes, weights)
        return self

    def result(self) -> TopScoreCounts:
        """The counts."""
        counts = self._counts
        if self._codes:
            cells = self.size * self.size * CELLS
            counts = count_codes(np.concatenate(self._codes), cells, np.concatenate(self._weights))
        return TopScoreCounts(counts.reshape(self.size, self.size, CELLS))

    def _wait(self, codes: IntArray, weights: FloatArray | IntArray) -> None:
        self._codes.append(codes)
        self._weights.append(weights)
        if sum(map(len, self._codes)) > _MOST_WAITING and len(self._codes) > 1:
            found, place = np.unique(np.concatenate(self._codes), return_inverse=True)
            self._codes = [found]
            self._weights = [count_codes(place, len(found), np.concatenate(self._weights))]


def cells_of(top: FloatArray) -> IntArray:
    """The cell of each probability, 0 to 63; shape as given."""
    inside = np.clip(top, 1e-12, 1 - 1e-12)
    place = (np.log(inside / (1 - inside)) - _LOW) * (CELLS / (_HIGH - _LOW))
    return np.clip(place, 0, CELLS - 1).astype(np.int64)
