"""Counts by the most probable class and its probability, for the shares of many classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack.statistics.counting import Counts, count_codes
from cmtrack.statistics.inputs import FloatArray, IntArray

CELLS = 64
_LOW, _HIGH = -4.0, 12.0


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


def cells_of(top: FloatArray) -> IntArray:
    """The cell of each probability, 0 to 63; shape as given."""
    inside = np.clip(top, 1e-12, 1 - 1e-12)
    place = (np.log(inside / (1 - inside)) - _LOW) * (CELLS / (_HIGH - _LOW))
    return np.clip(place, 0, CELLS - 1).astype(np.int64)
