"""Counts by distinct score, or by cell of a fixed grid where there are many samples.

Up to 2**18 rows are counted by distinct score, more by grid cell; where no cell of the grid holds two different
scores the cells stand for these scores, and nothing is lost. Both forms merge exactly. A score with its channel is
a sortable integer, its key: one fast sort of keys counts them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.counting import Counts, count_codes, zeros
from cmtrack.statistics.inputs import FloatArray, IntArray

EXACT_ROWS = 1 << 18
"""Rows whose scores are counted one by one, and distinct scores that a merge keeps; beyond it the grid is used."""


@cache
def grid_edges() -> FloatArray:
    """The 1,599 inner edges of the fixed grid of 1,600 cells on [0, 1].

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


def cells_of(scores: FloatArray) -> IntArray:
    """The grid cell of each score, 0 to 1,599; shape as given."""
    return np.searchsorted(grid_edges(), scores, side="right")


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Counts of samples by score and channel.

    Attributes
    ----------
    values : ndarray of shape (U,)
        Ascending distinct scores, or the centres of all grid cells.
    counts : ndarray of shape (C, U)
        Samples (or weight) of each channel (such as actual positives and negatives) at each score.
    exact : bool
        True: ``values`` are the scores themselves. False: they are grid cells.
    """

    values: FloatArray
    counts: Counts
    exact: bool

    @classmethod
    def from_scores(
        cls,
        scores: FloatArray,
        channel: IntArray | None = None,
        n_channels: int = 1,
        weights: FloatArray | IntArray | None = None,
        exact: bool = False,
    ) -> ScoreCounts:
        """Count ``scores`` (n,) by the channel codes (n,); ``exact``: one by one however many there are."""
        exact = exact or len(scores) <= EXACT_ROWS
        if exact:
            values, place = np.unique(scores, return_inverse=True)
        else:
            values, place = grid_centres(), cells_of(scores)
        size = len(values)
        codes = place if channel is None else channel * size + place
        counts = count_codes(codes, n_channels * size, weights).reshape(n_channels, size)
        if exact:
            return cls(values, counts, exact=True)
        lowest, highest = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(lowest, place, scores)
        np.maximum.at(highest, place, scores)
        return cls.from_cells(counts, lowest, highest)

    @classmethod
    def from_cells(cls, counts: Counts, lowest: FloatArray, highest: FloatArray) -> ScoreCounts:
        """Counts by grid cell, or by score where each cell holds one score only.

        Parameters
        ----------
        counts : ndarray of shape (C, 1600)
        lowest, highest : ndarray of shape (1600,)
            The least and the greatest score in each cell, over all channels; anything in cells without samples.
        """
        held = np.flatnonzero(counts.any(axis=0))
        if np.array_equal(lowest[held], highest[held]):
            return cls(lowest[held], counts[:, held], exact=True)
        return cls(grid_centres(), counts, exact=False)

    def to_grid(self) -> ScoreCounts:
        """The same samples counted by grid cell."""
        if not self.exact:
            return self
        counts = np.zeros((len(self.counts), len(grid_centres())), dtype=self.counts.dtype)
        cells = cells_of(self.values)
        for channel, own in zip(counts, self.counts, strict=True):
            np.add.at(channel, cells, own)
        return ScoreCounts(grid_centres(), counts, exact=False)

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        """Merge disjoint samples with the same channels."""
        if len(self.counts) != len(other.counts):
            raise ValueError(
                f"score counts must have the same channels, got {len(self.counts)} and {len(other.counts)}"
            )
        if not (self.exact and other.exact):
            a, b = self.to_grid(), other.to_grid()
            return ScoreCounts(a.values, a.counts + b.counts, exact=False)
        values = np.union1d(self.values, other.values)
        counts = np.zeros((len(self.counts), len(values)), dtype=np.result_type(self.counts, other.counts))
        counts[:, np.searchsorted(values, self.values)] += self.counts
        counts[:, np.searchsorted(values, other.values)] += other.counts
        merged = ScoreCounts(values, counts, exact=True)
        return merged if len(values) <= EXACT_ROWS else merged.to_grid()

    def channels(self, *groups: tuple[int, ...]) -> ScoreCounts:
        """New channels as sums of these, for example ``channels((2, 3), (0, 1))``."""
        counts = np.stack([self.counts[list(group)].sum(axis=0) for group in groups])
        return ScoreCounts(self.values, counts, self.exact)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        return (
            self.exact == other.exact
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.counts, other.counts)
        )


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
