"""Scores with their channel as sortable integers: one fast sort counts them, exactly or by grid cell.

The bits of the doubles from 0 to 1, read as integers, are in the same order, and their two highest are zero: there is
room for one of four channels.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.counting import Counts, zeros
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.scores import ScoreCounts, grid_edges

ScoreKeys: TypeAlias = npt.NDArray[np.uint64]
N_CHANNELS = 4
_SCORE = np.uint64((1 << 62) - 1)


def score_keys(scores: FloatArray, channel: IntArray) -> ScoreKeys:
    """Keys of scores in [0, 1] in channels 0 to 3, both of shape (n,)."""
    keys = (scores + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    keys |= channel.astype(np.uint64) << np.uint64(62)
    return keys


def exact_counts(keys: ScoreKeys, weights: FloatArray | IntArray | None) -> ScoreCounts:
    """Counts by distinct score."""
    bits, place = np.unique(keys & _SCORE, return_inverse=True)
    counts = zeros((N_CHANNELS, len(bits)), weights)
    np.add.at(counts, ((keys >> np.uint64(62)).view(np.int64), place), 1 if weights is None else weights)
    return ScoreCounts(bits.view(np.float64), counts, exact=True)


class GridCounts:
    """Counts by cell of the grid, with the least and the greatest score in each cell.

    Attributes
    ----------
    counts : ndarray of shape (4, 1600)
    lowest, highest : ndarray of shape (1600,)
    """

    def __init__(self, weights: FloatArray | IntArray | None) -> None:
        cells = len(grid_edges()) + 1
        self.counts: Counts = zeros((N_CHANNELS, cells), weights)
        self.lowest = np.full(cells, np.inf)
        self.highest = np.full(cells, -np.inf)

    def add(self, keys: ScoreKeys, weights: FloatArray | IntArray | None) -> None:
        """Count one block."""
        if weights is None:
            keys = np.sort(keys)
        else:
            order = np.argsort(keys)
            keys, weights = keys[order], weights[order]
        bounds = np.concatenate(([0], np.searchsorted(keys, _boundaries()), [len(keys)]))
        if weights is None:
            counts = np.diff(bounds)
        else:
            below = np.bincount(np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)), weights, len(bounds) - 1)
            counts = below.astype(self.counts.dtype)
        self.counts += counts.reshape(self.counts.shape)
        held = np.diff(bounds) > 0
        for ends, pick, places in (
            (self.lowest, np.minimum, bounds[:-1][held]),
            (self.highest, np.maximum, bounds[1:][held] - 1),
        ):
            pick.at(ends, np.flatnonzero(held) % len(ends), (keys[places] & _SCORE).view(np.float64))

    def __iadd__(self, other: GridCounts) -> GridCounts:
        self.counts += other.counts
        np.minimum(self.lowest, other.lowest, out=self.lowest)
        np.maximum(self.highest, other.highest, out=self.highest)
        return self

    def result(self) -> ScoreCounts:
        """The counts; by score where no cell holds two different ones."""
        return ScoreCounts.from_cells(self.counts, self.lowest, self.highest)


class ScoreTally:
    """Counts by score in the making: the same whatever the order and the number of the parts that are put together.

    The keys themselves are kept while there are at most ``limit`` rows, and counts by cell beyond that.

    Parameters
    ----------
    limit : int
        Rows whose scores are counted one by one; 0: none are.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.rows = 0
        self._keys: list[ScoreKeys] = []
        self._weights: list[Any] = []
        self._grid: GridCounts | None = None

    @property
    def exact(self) -> bool:
        """True while the rows are counted one by one."""
        return self._grid is None

    def add(self, keys: ScoreKeys, weights: FloatArray | IntArray | None) -> None:
        """Count one block."""
        self.rows += len(keys)
        self._keys.append(keys)
        self._weights.append(weights)
        self._to_grid()

    def __add__(self, other: ScoreTally) -> ScoreTally:
        """Both sets of rows; neither tally may be used afterwards."""
        self.rows += other.rows
        self.limit = max(self.limit, other.limit)
        self._keys += other._keys
        self._weights += other._weights
        if self._grid is None or other._grid is None:
            self._grid = self._grid or other._grid
        else:
            self._grid += other._grid
        self._to_grid()
        return self

    def result(self) -> ScoreCounts:
        """The counts: by score for few rows, or where no cell of the grid holds two different scores."""
        if self._grid is not None:
            return self._grid.result()
        return exact_counts(np.concatenate(self._keys), _joined(self._weights))

    def _to_grid(self) -> None:
        if not self._keys or (self._grid is None and self.rows <= self.limit):
            return
        if self._grid is None:
            self._grid = GridCounts(self._weights[0])
        for keys, weights in zip(self._keys, self._weights, strict=True):
            self._grid.add(keys, weights)
        self._keys, self._weights = [], []


def _joined(weights: list[Any]) -> FloatArray | IntArray | None:
    return None if weights[0] is None else np.concatenate(weights)


@cache
def _boundaries() -> ScoreKeys:
    """The keys at which a cell of a channel begins, all but the first of channel 0."""
    edges = np.concatenate(([0.0], grid_edges())).view(np.uint64)
    channels = np.arange(N_CHANNELS, dtype=np.uint64)[:, None] << np.uint64(62)
    inner: ScoreKeys = (channels | edges).ravel()[1:]
    return inner
