"""Counts by distinct score, or by cell of a fixed grid if there are many rows.

Up to 2**18 rows are counted by distinct score (2,048 if each row has many scores). More rows are
counted by cell of the grid, with the sum of the scores in each cell. If no cell contains two
different scores, the scores replace the cells, and no information is lost. Both forms merge
exactly, except that sums may differ by rounding.

Decision values have no limits, so a fixed grid cannot divide them. If there are many decision
values, they are counted without their last bits (:mod:`cmtrack.statistics.decision_cells`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmtrack.statistics import plain
from cmtrack.statistics.counting import (
    Counts,
    blocks,
    count_codes,
    count_type,
    sums_of_codes,
    zeros,
)
from cmtrack.statistics.decision_cells import CELLS as DECISION_CELLS
from cmtrack.statistics.decision_cells import (
    MANTISSA_BITS,
    distinct_cells,
    fewest_dropped_bits,
    given_to_old,
    placed_by_old,
    without_last_bits,
)
from cmtrack.statistics.grid import CELLS, cells_of, grid_centres
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

EXACT_ROWS = 1 << 18
"""Maximum number of rows to count by distinct score, and of distinct scores after a merge."""

_BLOCK_START = 1 << 13
"""Number of decision values in the first block, which gives a first estimate of bits to drop."""
_AT_FIRST = 1 << 8
"""Number of rows that are checked first for two scores in one cell; a few rows often suffice."""


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Counts of rows by score and channel.

    Attributes
    ----------
    values : ndarray of shape (U,)
        Ascending distinct scores, or the centres of all grid cells.
    counts : ndarray of shape (C, U)
        Number of rows (or total weight) in each channel, such as actual positives and negatives, at
        each score.
    exact : bool
        True if ``values`` are the scores themselves, False if they are grid cells.
    sums : ndarray of shape (U,), optional
        Only for cells: the sum of score minus centre over the rows of all channels. None if
        unknown, as in files of the first versions.
    dropped_bits : int, optional
        Only for decision values: the number of last bits that were dropped from ``values``, 0 if
        they are the scores themselves. None for probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.statistics import ScoreCounts
    >>> first = ScoreCounts.from_scores(np.array([0.2, 0.7]), np.array([0, 1]), n_channels=2)
    >>> second = ScoreCounts.from_scores(np.array([0.7, 0.9]), np.array([1, 0]), n_channels=2)
    >>> both = first + second
    >>> both.values.tolist(), both.counts.tolist()
    ([0.2, 0.7, 0.9], [[1, 0, 1], [0, 2, 0]])
    """

    values: FloatArray
    counts: Counts
    exact: bool
    sums: FloatArray | None = None
    dropped_bits: int | None = None

    def to_plain(self) -> Any:
        """Return the arrays by name as plain data, without the values of the fixed grid."""
        data: dict[str, Any] = {"exact": self.exact, "counts": plain.encode_array(self.counts)}
        if self.exact or self.dropped_bits is not None:
            data["values"] = plain.encode_array(self.values)
        if self.sums is not None:
            data["sums"] = plain.encode_array(self.sums)
        if self.dropped_bits is not None:
            data["dropped_bits"] = self.dropped_bits
        return data

    @classmethod
    def from_plain(cls, data: Any, n_channels: int | None = None) -> ScoreCounts:
        """Read data written by :meth:`to_plain`."""
        exact = bool(data["exact"])
        dropped_bits = data.get("dropped_bits")
        is_number = type(dropped_bits) is int and 0 <= dropped_bits <= MANTISSA_BITS
        if dropped_bits is not None and not is_number:
            raise ValueError(
                f"dropped_bits must be a number from 0 to {MANTISSA_BITS}, got {dropped_bits!r:.40}"
            )
        if exact or dropped_bits is not None:
            values = plain.decode_array(data["values"], (None,))
            if not (np.diff(values) > 0).all():
                raise ValueError("scores must increase")
            counts = plain.decode_counts(data["counts"], (n_channels, len(values)))
            return cls(values, counts, exact, dropped_bits=dropped_bits)
        counts = plain.decode_counts(data["counts"], (n_channels, CELLS))
        sums = None
        if "sums" in data:
            sums = plain.decode_array(data["sums"], (CELLS,))
        return cls(grid_centres(), counts, exact, sums)

    @classmethod
    def each_from_plain(cls, data: Any, n_scores: int, n_channels: int) -> tuple[ScoreCounts, ...]:
        """Read counts of several scores, each with ``n_channels`` channels."""
        if not isinstance(data, list) or len(data) != n_scores or not n_channels:
            got = len(data) if isinstance(data, list) else f"{data!r:.40}"
            raise ValueError(f"counts must be for {n_scores} scores, got {got}")
        return tuple(cls.from_plain(counts, n_channels) for counts in data)

    @classmethod
    def from_scores(
        cls,
        scores: FloatArray,
        channel: IntArray | None = None,
        n_channels: int = 1,
        weights: FloatArray | IntArray | None = None,
        exact: bool = False,
    ) -> ScoreCounts:
        """Count scores by channel.

        ``scores``, ``weights``, shape (n,).
        ``channel``, shape (n,): codes of the channels; by default all scores are in the first one.
        ``exact``: whether to count scores one by one for any number of rows.

        Examples
        --------
        >>> import numpy as np
        >>> from cmtrack.statistics import ScoreCounts
        >>> scores = np.array([0.2, 0.7, 0.7])
        >>> counted = ScoreCounts.from_scores(scores, np.array([0, 1, 0]), n_channels=2)
        >>> counted.exact, counted.counts.tolist()
        (True, [[1, 1], [0, 1]])
        """
        if channel is None:
            channel = np.zeros(len(scores), dtype=np.int64)
        tally = ScoreTally(1, n_channels, len(scores) if exact else EXACT_ROWS)
        tally.add(scores[None, :], channel, weights)
        return tally.result()

    @property
    def means(self) -> FloatArray:
        """Mean score of the rows at each value, shape (U,); ``values`` if sums are not kept."""
        if self.sums is None:
            return self.values
        weight = self.counts.sum(axis=0)
        above = np.divide(self.sums, weight, out=np.zeros(len(weight)), where=weight > 0)
        return self.values + above

    def to_grid(self) -> ScoreCounts:
        """Return the counts by grid cell; decision values are counted without their last bits."""
        if self.dropped_bits is not None:
            return self._without_bits(fewest_dropped_bits(self.values, DECISION_CELLS))
        if not self.exact:
            return self
        cells = cells_of(self.values)
        centres = grid_centres()
        counts = np.zeros((len(self.counts), CELLS), dtype=self.counts.dtype)
        for into, channel in zip(counts, self.counts, strict=True):
            # Several scores may share a cell.
            np.add.at(into, cells, channel)
        above = self.counts.sum(axis=0) * (self.values - centres[cells])
        sums = np.bincount(cells, above, CELLS).astype(np.float64)
        return ScoreCounts(centres, counts, exact=False, sums=sums)

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        """Merge the counts of disjoint sets of rows with the same channels."""
        return self.plus(other)

    def plus(self, other: ScoreCounts, most: int | None = None) -> ScoreCounts:
        """Merge the counts of disjoint sets of rows with the same channels.

        ``most``: number of distinct scores above which they are counted by grid cell; by default
            EXACT_ROWS.
        """
        if len(self.counts) != len(other.counts):
            raise ValueError(
                f"score counts must have the same channels, got {len(self.counts)} and "
                f"{len(other.counts)}"
            )
        if most is None:
            most = EXACT_ROWS
        if self.dropped_bits is not None and other.dropped_bits is not None:
            return self._plus_decisions(other, most)
        if not (self.exact and other.exact):
            return self._plus_cells(other)
        merged = ScoreCounts(*_together(self, other), exact=True)
        if len(merged.values) > most:
            return merged.to_grid()
        return merged

    def _plus_cells(self, other: ScoreCounts) -> ScoreCounts:
        ours = self.to_grid()
        theirs = other.to_grid()
        sums = None
        if ours.sums is not None and theirs.sums is not None:
            sums = ours.sums + theirs.sums
        return ScoreCounts(ours.values, ours.counts + theirs.counts, exact=False, sums=sums)

    def _plus_decisions(self, other: ScoreCounts, most: int) -> ScoreCounts:
        """Merge counts of decision values, and drop last bits if more than ``most`` are distinct.

        The smallest possible number of bits is dropped, and only if all rows together require it.
        The result therefore does not depend on the order of merges.
        """
        if self.is_of_old_grid != other.is_of_old_grid:
            raise ValueError(
                "decision values of more than 2**18 rows that cmtrack 0.2 counted cannot be merged "
                "with new ones: evaluate them again"
            )
        bits = max(self.dropped_bits or 0, other.dropped_bits or 0)
        values, counts = _together(self._without_bits(bits), other._without_bits(bits))
        merged = ScoreCounts(values, counts, self.exact and other.exact, dropped_bits=bits)
        limit = DECISION_CELLS
        if merged.exact:
            limit = max(most, DECISION_CELLS)
        # Cells of cmtrack 0.2 are not decision values, so bits cannot be dropped from them.
        if len(values) <= limit or self.is_of_old_grid:
            return merged
        return merged.to_grid()

    @property
    def is_of_old_grid(self) -> bool:
        """True for decision values that cmtrack 0.2 counted by cell of the grid on [0, 1]."""
        return self.dropped_bits == 0 and not self.exact

    def of_decisions(self) -> ScoreCounts:
        """Return the original decision values from a file of cmtrack 0.2, which are in [0, 1].

        Raises ValueError if the stored values are not between 0 and 1.
        """
        if len(self.values) and not 0 <= self.values[0] <= self.values[-1] <= 1:
            raise ValueError(
                "decision values stored without dropped_bits must be from 0 to 1, got "
                f"{self.values[0]:g} to {self.values[-1]:g}"
            )
        return ScoreCounts(given_to_old(self.values), self.counts, self.exact, dropped_bits=0)

    def _without_bits(self, bits: int) -> ScoreCounts:
        """Return the counts of decision values without their last ``bits``."""
        if bits == self.dropped_bits:
            return self
        values = without_last_bits(self.values, bits)
        # Dropping bits keeps the order, so values that became equal are next to each other.
        starts = np.flatnonzero(np.diff(values, prepend=np.nan))
        counts = self.counts
        if len(starts):
            counts = np.add.reduceat(counts, starts, axis=1)
        return ScoreCounts(values[starts], counts, exact=False, dropped_bits=bits)

    def places_of(self, scores: FloatArray) -> IntArray:
        """Return the index in ``values`` of the nearest value to each score, shape (n,).

        Rows stored in single precision have scores that differ slightly from the counted scores.
        """
        if self.is_of_old_grid:
            return cells_of(placed_by_old(scores))
        if self.dropped_bits:
            scores = without_last_bits(scores, self.dropped_bits)
        elif not self.exact:
            return cells_of(scores)
        values = self.values
        places = np.searchsorted(values, scores).clip(max=len(values) - 1)
        # A score that is not in ``values`` is between two values, or above the last one.
        unequal = np.flatnonzero(values[places] != scores)
        above = places[unequal]
        below = np.maximum(above - 1, 0)
        between = scores[unequal]
        is_nearer_below = between - values[below] < values[above] - between
        places[unequal] = np.where(is_nearer_below, below, above)
        return places

    def channels(self, *groups: tuple[int, ...]) -> ScoreCounts:
        """Return the counts with sums of channels, for example ``channels((2, 3), (0, 1))``."""
        counts = np.stack([self.counts[list(group)].sum(axis=0) for group in groups])
        # ``sums`` are over all channels, so they are valid only if each channel is in one group.
        used = sorted(channel for group in groups for channel in group)
        sums = self.sums
        if used != list(range(len(self.counts))):
            sums = None
        return replace(self, counts=counts, sums=sums)

    def __eq__(self, other: object) -> bool:
        """Return whether the counts are equal; sums may differ by rounding."""
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        equal_counts = (
            self.exact == other.exact
            and self.dropped_bits == other.dropped_bits
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.counts, other.counts)
        )
        if self.sums is None or other.sums is None:
            return equal_counts and self.sums is other.sums
        tolerance = 1e-12 * (1 + float(self.counts.sum()))
        return equal_counts and np.allclose(self.sums, other.sums, rtol=1e-9, atol=tolerance)


def _together(ours: ScoreCounts, theirs: ScoreCounts) -> tuple[FloatArray, Counts]:
    """Return the distinct scores of both counts in order, and the total counts by score."""
    values = np.union1d(ours.values, theirs.values)
    kind = np.result_type(ours.counts, theirs.counts)
    counts = np.zeros((len(ours.counts), len(values)), dtype=kind)
    counts[:, np.searchsorted(values, ours.values)] += ours.counts
    counts[:, np.searchsorted(values, theirs.values)] += theirs.counts
    return values, counts


class DecisionValueCounts:
    """Counts of several decision values per row, without their last bits if there are many values.

    ``n_scores``, ``n_channels``, ``weights``: see :class:`GridCounts`.
    """

    def __init__(
        self, n_scores: int, n_channels: int, weights: FloatArray | IntArray | None
    ) -> None:
        counts = zeros((n_channels, 0), weights)
        empty = ScoreCounts(np.empty(0), counts, exact=True, dropped_bits=0)
        self.counts = (empty,) * n_scores

    def add(
        self, values: npt.NDArray[Any], channel: npt.NDArray[Any], weights: Any, single: Any = None
    ) -> None:
        """Count one block: scores (T, b), channel codes (b,) or (T, b)."""
        channels = np.broadcast_to(channel, values.shape)
        self.counts = tuple(
            counts.plus(_count_decisions(counts, scores, codes, weights), DECISION_CELLS)
            for counts, scores, codes in zip(self.counts, values, channels, strict=True)
        )

    def __iadd__(self, other: DecisionValueCounts) -> DecisionValueCounts:
        pairs = zip(self.counts, other.counts, strict=True)
        self.counts = tuple(ours.plus(theirs, DECISION_CELLS) for ours, theirs in pairs)
        return self

    def results(self) -> tuple[ScoreCounts, ...]:
        """Return the counts of each score."""
        return self.counts


def _count_decisions(
    earlier: ScoreCounts, scores: FloatArray, channel: IntArray, weights: Any
) -> ScoreCounts:
    """Count a block of decision values without the bits that earlier counts have dropped."""
    bits = earlier.dropped_bits or 0
    if not len(earlier.values):
        bits = fewest_dropped_bits(np.sort(scores[:_BLOCK_START]), DECISION_CELLS)
    values, place = distinct_cells(scores, bits)
    shape = (len(earlier.counts), len(values))
    codes = channel.astype(np.int64) * len(values) + place
    counts = count_codes(codes, shape[0] * shape[1], weights).reshape(shape)
    return ScoreCounts(values, counts, exact=bits == 0, dropped_bits=bits)


class GridCounts:
    """Counts of several scores of the same rows by cell of the grid.

    ``counts``, shape (T, C, 1600).
    ``sums``, shape (T, 1600): sum of the scores in each cell.
    ``alone``, shape (T, 1600): the first score in each cell, NaN for an empty cell.
    ``several``, shape (T,), bool: whether some cell has two different scores.

    ``weights``: weights of a first block, which determine the type of the counts.
    """

    def __init__(
        self, n_scores: int, n_channels: int, weights: FloatArray | IntArray | None
    ) -> None:
        shape = (n_scores, n_channels, CELLS)
        if weights is None:
            # 32 bits are enough for the rows of a chunk.
            self.counts: Counts = np.zeros(shape, dtype=np.int32)
        else:
            self.counts = zeros(shape, weights)
        self.sums = np.zeros((n_scores, CELLS))
        self.alone = np.full((n_scores, CELLS), np.nan)
        self.several: BoolArray = np.zeros(n_scores, dtype=np.bool_)

    def add(
        self, values: npt.NDArray[Any], channel: npt.NDArray[Any], weights: Any, single: Any = None
    ) -> None:
        """Count one block: scores (T, b), channel codes (b,) or (T, b).

        ``single``: the scores in single precision, if that is their type. Finding their cells takes
            half the time.
        """
        cells = cells_of(values if single is None else single, np.int32)
        increments = np.empty(cells.shape, dtype=self.counts.dtype)
        if weights is None:
            weighted = values.astype(np.float64, copy=False)
            increments[...] = 1
        else:
            weighted = values * weights
            increments[...] = weights
        self.sums += sums_of_codes(cells, weighted, CELLS)
        for t in np.flatnonzero(~self.several):
            self.several[t] = self._has_several(self.alone[t], values[t], cells[t])
        # Codes of channel and cell overwrite the cells.
        cells += np.multiply(channel, CELLS, dtype=np.int32)
        counts = sums_of_codes(cells, increments, self.counts[0].size)
        self.counts += counts.reshape(self.counts.shape)

    @staticmethod
    def _has_several(alone: FloatArray, scores: npt.NDArray[Any], cells: npt.NDArray[Any]) -> bool:
        """Return whether a cell has two different scores; write the first score of each cell."""
        for rows in (slice(0, _AT_FIRST), *blocks(len(scores))):
            block_scores = scores[rows]
            block_cells = cells[rows]
            is_free = np.isnan(alone[block_cells])
            alone[block_cells[is_free]] = block_scores[is_free]
            if (alone[block_cells] != block_scores).any():
                return True
        return False

    def __iadd__(self, other: GridCounts) -> GridCounts:
        # Several chunks together may have too many rows for 32 bits.
        self.counts = self.counts.astype(count_type(self.counts), copy=False)
        self.counts += other.counts
        self.sums += other.sums
        is_in_both = ~np.isnan(self.alone) & ~np.isnan(other.alone)
        self.several |= other.several | (is_in_both & (self.alone != other.alone)).any(axis=1)
        self.alone = np.where(np.isnan(self.alone), other.alone, self.alone)
        return self

    def results(self) -> tuple[ScoreCounts, ...]:
        """Return the counts of each score by cell, or by value if no cell contains two values."""
        results = []
        for t, several in enumerate(self.several):
            counts = self.counts[t].astype(count_type(self.counts), copy=False)
            if several:
                above = self.sums[t] - counts.sum(axis=0) * grid_centres()
                results.append(ScoreCounts(grid_centres(), counts, exact=False, sums=above))
            else:
                filled = np.flatnonzero(counts.any(axis=0))
                results.append(ScoreCounts(self.alone[t, filled], counts[:, filled], exact=True))
        return tuple(results)


class ScoreTally:
    """Accumulator of counts of several scores, for any number of parts in any order.

    Up to ``limit`` rows, the scores themselves are kept. More rows are counted by cell.

    ``limit``: largest number of rows whose scores are counted one by one. If it is 0, scores are
    always counted by cell.
    ``of_decisions``: whether the scores are decision values, which do not fit the fixed grid.
    """

    def __init__(
        self, n_scores: int, n_channels: int, limit: int, of_decisions: bool = False
    ) -> None:
        self.n_scores = n_scores
        self.n_channels = n_channels
        self.limit = limit
        self.of_decisions = of_decisions
        self.rows = 0
        self._waiting: list[_Block] = []
        self._grid: Any = None  # GridCounts, or DecisionValueCounts

    @property
    def exact(self) -> bool:
        """True while rows are counted one by one."""
        return self._grid is None

    def add(
        self, values: npt.NDArray[Any], channel: npt.NDArray[Any], weights: Any, single: Any = None
    ) -> None:
        """Count one block; see :meth:`GridCounts.add`."""
        self.rows += values.shape[1]
        if self.exact and self.rows <= self.limit:
            # The caller reuses its buffer, so a copy is needed. Adding 0.0 turns -0.0 into 0.0.
            values = np.add(values, 0.0, dtype=np.float64)
            single = None
        self._waiting.append(_Block(values, channel, weights, single))
        self._to_grid()

    def __add__(self, other: ScoreTally) -> ScoreTally:
        """Merge both sets of rows; neither tally may be used afterwards."""
        self.rows += other.rows
        self.limit = max(self.limit, other.limit)
        self._waiting += other._waiting
        if self._grid is None or other._grid is None:
            self._grid = self._grid or other._grid
        else:
            self._grid += other._grid
        self._to_grid()
        return self

    def results(self) -> tuple[ScoreCounts, ...]:
        """Return the counts of each score.

        Scores are counted one by one for few rows, or if no cell of the grid contains two different
        scores.
        """
        if self._grid is not None:
            return self._grid.results()
        waiting = self._waiting
        weights = None
        if waiting[0].weights is not None:
            weights = np.concatenate([block.weights for block in waiting])
        values = np.concatenate([block.values for block in waiting], axis=1)
        channels = np.concatenate(
            [np.broadcast_to(block.channel, block.values.shape) for block in waiting], axis=1
        )
        return tuple(
            self._one_by_one(scores, channel, weights)
            for scores, channel in zip(values, channels, strict=True)
        )

    def result(self) -> Any:
        """Return the counts of the first score."""
        return self.results()[0]

    def _one_by_one(self, scores: FloatArray, channel: IntArray, weights: Any) -> ScoreCounts:
        values, place = np.unique(scores, return_inverse=True)
        counts = zeros((self.n_channels, len(values)), weights)
        np.add.at(counts, (channel, place), 1 if weights is None else weights)
        dropped_bits = 0 if self.of_decisions else None
        return ScoreCounts(values, counts, exact=True, dropped_bits=dropped_bits)

    def _to_grid(self) -> None:
        """Count the kept scores by cell if there are too many rows."""
        if not self._waiting or (self.exact and self.rows <= self.limit):
            return
        if self._grid is None:
            kind = DecisionValueCounts if self.of_decisions else GridCounts
            self._grid = kind(self.n_scores, self.n_channels, self._waiting[0].weights)
        for block in self._waiting:
            self._grid.add(*block)
        self._waiting = []


class _Block(NamedTuple):
    """A block of rows as the arguments of :meth:`GridCounts.add`."""

    values: npt.NDArray[Any]
    channel: npt.NDArray[Any]
    weights: Any
    single: Any
