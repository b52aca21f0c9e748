"""Counts by distinct score, or by cell of a fixed grid where there are many samples.

Up to 2**18 rows are counted by distinct score (2,048 of scores that there are many of), more by grid cell with the
sum of the scores in each; where no cell of the grid holds two different scores the cells stand for these scores, and
nothing is lost. Both forms merge exactly, sums but for rounding.

Decision values have no bounds that a fixed grid could divide. Many of them are counted without their last bits
(:mod:`cmtrack.statistics.decision_cells`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics import plain
from cmtrack.statistics.counting import Counts, blocks, count_codes, sums_of_codes, zeros
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
"""Rows whose scores are counted one by one, and distinct scores that a merge keeps; beyond it the grid is used."""
FEW_ROWS = 1 << 11
"""The same of the scores of every class, and of hit probabilities, which there are many of."""

_BLOCK_START = 1 << 13
"""Decision values of a first block that tell how many bits all need at least."""
_AT_FIRST = 1 << 8
"""Rows in which a cell that holds two different scores is looked for at first."""


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
    sums : ndarray of shape (U,), optional
        Of cells, the sum of what their samples' scores lie above the centre, all channels together; None where that is
        not known, as of files of the first versions.
    dropped_bits : int, optional
        Of decision values, the number of last bits that ``values`` lack: 0 where they are the scores themselves. None:
        the scores are probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.statistics import ScoreCounts
    >>> one = ScoreCounts.from_scores(np.array([0.2, 0.7]), np.array([0, 1]), n_channels=2)
    >>> both = one + ScoreCounts.from_scores(np.array([0.7, 0.9]), np.array([1, 0]), n_channels=2)
    >>> both.values.tolist(), both.counts.tolist()
    ([0.2, 0.7, 0.9], [[1, 0, 1], [0, 2, 0]])
    """

    values: FloatArray
    counts: Counts
    exact: bool
    sums: FloatArray | None = None
    dropped_bits: int | None = None

    def to_plain(self) -> Any:
        """The arrays by name as plain data; the fixed grid has no values of its own."""
        has_values = self.exact or self.dropped_bits is not None
        arrays = {
            "counts": self.counts,
            "values": self.values if has_values else None,
            "sums": self.sums,
        }
        encoded = {
            name: plain.encode_array(array) for name, array in arrays.items() if array is not None
        }
        if self.dropped_bits is not None:
            encoded["dropped_bits"] = self.dropped_bits
        return {"exact": self.exact, **encoded}

    @classmethod
    def from_plain(cls, data: Any, n_channels: int | None = None) -> ScoreCounts:
        """Read :meth:`to_plain`."""
        exact = bool(data["exact"])
        dropped_bits = data.get("dropped_bits")
        is_number = type(dropped_bits) is int and 0 <= dropped_bits <= MANTISSA_BITS
        if dropped_bits is not None and not is_number:
            raise ValueError(
                f"dropped_bits must be a number from 0 to {MANTISSA_BITS}, got {dropped_bits!r:.40}"
            )
        has_values = exact or dropped_bits is not None
        values = plain.decode_array(data["values"], (None,)) if has_values else grid_centres()
        if has_values and len(values) and not (np.diff(values) > 0).all():
            raise ValueError("scores must increase")
        counts = plain.decode_counts(data["counts"], (n_channels, len(values)))
        sums = (
            plain.decode_array(data["sums"], (len(values),))
            if "sums" in data and not has_values
            else None
        )
        return cls(values, counts, exact, sums, dropped_bits)

    @classmethod
    def each_from_plain(cls, data: Any, n_scores: int, n_channels: int) -> tuple[ScoreCounts, ...]:
        """Read counts of several scores with as many channels each."""
        if not isinstance(data, list) or len(data) != n_scores or not n_channels:
            got = len(data) if isinstance(data, list) else f"{data!r:.40}"
            raise ValueError(f"counts must be of {n_scores} scores, got {got}")
        return tuple(cls.from_plain(one, n_channels) for one in data)

    @classmethod
    def from_scores(
        cls,
        scores: FloatArray,
        channel: IntArray | None = None,
        n_channels: int = 1,
        weights: FloatArray | IntArray | None = None,
        exact: bool = False,
    ) -> ScoreCounts:
        """Count ``scores`` (n,) by the channel codes (n,); ``exact``: one by one however many there are.

        Examples
        --------
        >>> import numpy as np
        >>> from cmtrack.statistics import ScoreCounts
        >>> counted = ScoreCounts.from_scores(np.array([0.2, 0.7, 0.7]), np.array([0, 1, 0]), n_channels=2)
        >>> counted.exact, counted.counts.tolist()
        (True, [[1, 1], [0, 1]])
        """
        tally = ScoreTally(1, n_channels, len(scores) if exact else EXACT_ROWS)
        tally.add(
            scores[None, :],
            np.zeros(len(scores), dtype=np.int8) if channel is None else channel,
            weights,
        )
        return tally.results()[0]

    @property
    def means(self) -> FloatArray:
        """The mean score of each place, shape (U,): the scores themselves, or the means of cells; centres without."""
        if self.sums is None:
            return self.values
        weight = self.counts.sum(axis=0)
        return self.values + np.divide(
            self.sums, weight, out=np.zeros(len(weight)), where=weight > 0
        )

    def to_grid(self) -> ScoreCounts:
        """The same samples counted by grid cell; decision values without their last bits."""
        if self.dropped_bits is not None:
            return self._without_bits(fewest_dropped_bits(self.values, DECISION_CELLS))
        if not self.exact:
            return self
        cells, centres = cells_of(self.values), grid_centres()
        counts = np.zeros((len(self.counts), CELLS), dtype=self.counts.dtype)
        for channel, counted in zip(counts, self.counts, strict=True):
            np.add.at(channel, cells, counted)
        above = self.counts.sum(axis=0) * (self.values - centres[cells])
        return ScoreCounts(
            centres, counts, exact=False, sums=np.bincount(cells, above, CELLS).astype(np.float64)
        )

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        """Merge disjoint samples with the same channels."""
        return self.plus(other)

    def plus(self, other: ScoreCounts, most: int | None = None) -> ScoreCounts:
        """Merge disjoint samples with the same channels; beyond ``most`` distinct scores by grid cell."""
        if len(self.counts) != len(other.counts):
            raise ValueError(
                f"score counts must have the same channels, got {len(self.counts)} and {len(other.counts)}"
            )
        if self.dropped_bits is not None and other.dropped_bits is not None:
            return self._plus_decisions(other, EXACT_ROWS if most is None else most)
        if not (self.exact and other.exact):
            a, b = self.to_grid(), other.to_grid()
            sums = None if a.sums is None or b.sums is None else a.sums + b.sums
            return ScoreCounts(a.values, a.counts + b.counts, exact=False, sums=sums)
        merged = ScoreCounts(*_together(self, other), exact=True)
        return (
            merged
            if len(merged.values) <= (EXACT_ROWS if most is None else most)
            else merged.to_grid()
        )

    def _plus_decisions(self, other: ScoreCounts, most: int) -> ScoreCounts:
        """Merge counts of decision values; beyond ``most`` distinct ones without as few of their last bits as may be.

        The result does not depend on the order of merges: bits are dropped only if all samples together need it.
        """
        if self.is_of_old_grid != other.is_of_old_grid:
            raise ValueError(
                "decision values of more than 2**18 rows that cmtrack 0.2 counted cannot be merged with new ones: "
                "evaluate them again"
            )
        bits = max(self.dropped_bits or 0, other.dropped_bits or 0)
        values, counts = _together(self._without_bits(bits), other._without_bits(bits))
        merged = ScoreCounts(values, counts, self.exact and other.exact, dropped_bits=bits)
        is_few = len(values) <= (max(most, DECISION_CELLS) if merged.exact else DECISION_CELLS)
        return merged if is_few or self.is_of_old_grid else merged.to_grid()

    @property
    def is_of_old_grid(self) -> bool:
        """True of decision values that cmtrack 0.2 put between 0 and 1 and counted there by cell of the grid."""
        return self.dropped_bits == 0 and not self.exact

    def of_decisions(self) -> ScoreCounts:
        """The counts of decision values that a file of cmtrack 0.2 has between 0 and 1, by these values.

        ValueError if they are not between 0 and 1.
        """
        if len(self.values) and not 0 <= self.values[0] <= self.values[-1] <= 1:
            raise ValueError(
                f"decision values stored without dropped_bits must be from 0 to 1, got {self.values[0]:g} to "
                f"{self.values[-1]:g}"
            )
        return ScoreCounts(given_to_old(self.values), self.counts, self.exact, dropped_bits=0)

    def _without_bits(self, bits: int) -> ScoreCounts:
        """The counts of decision values by what their first bits are."""
        if bits == self.dropped_bits:
            return self
        values = without_last_bits(self.values, bits)
        starts = np.flatnonzero(np.diff(values, prepend=np.nan))  # they still ascend
        counts = np.add.reduceat(self.counts, starts, axis=1) if len(starts) else self.counts
        values = values[starts]
        return ScoreCounts(values, counts, exact=False, dropped_bits=bits)

    def places_of(self, scores: FloatArray) -> IntArray:
        """The place of each score among ``values``, shape (n,).

        It is the nearest score's: rows that are kept in single precision have scores beside those that were counted.
        """
        if self.is_of_old_grid:
            return cells_of(placed_by_old(scores))
        if self.dropped_bits:
            scores = without_last_bits(scores, self.dropped_bits)
        elif not self.exact:
            return cells_of(scores)
        values = self.values
        place = np.searchsorted(values, scores).clip(max=len(values) - 1)
        beside = np.flatnonzero(values[place] != scores)
        above, below = place[beside], np.maximum(place[beside] - 1, 0)
        scores_beside = scores[beside]
        is_nearer_below = scores_beside - values[below] < values[above] - scores_beside
        place[beside] = np.where(is_nearer_below, below, above)
        return place

    def channels(self, *groups: tuple[int, ...]) -> ScoreCounts:
        """New channels as sums of these, for example ``channels((2, 3), (0, 1))``."""
        counts = np.stack([self.counts[list(group)].sum(axis=0) for group in groups])
        everyone = sorted(place for group in groups for place in group) == list(
            range(len(self.counts))
        )
        return replace(self, counts=counts, sums=self.sums if everyone else None)

    def __eq__(self, other: object) -> bool:
        """True for the same counts; sums may differ by rounding."""
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        same = (
            self.exact == other.exact
            and self.dropped_bits == other.dropped_bits
            and np.array_equal(self.values, other.values)
            and np.array_equal(self.counts, other.counts)
        )
        if not same or self.sums is None or other.sums is None:
            return same and (self.sums is None) == (other.sums is None)
        return np.allclose(
            self.sums, other.sums, rtol=1e-9, atol=1e-12 * (1 + float(self.counts.sum()))
        )


def _together(ours: ScoreCounts, theirs: ScoreCounts) -> tuple[FloatArray, Counts]:
    """The scores of both in order, and the counts of both by score."""
    values = np.union1d(ours.values, theirs.values)
    counts = np.zeros(
        (len(ours.counts), len(values)), dtype=np.result_type(ours.counts, theirs.counts)
    )
    counts[:, np.searchsorted(values, ours.values)] += ours.counts
    counts[:, np.searchsorted(values, theirs.values)] += theirs.counts
    return values, counts


class DecisionValueCounts:
    """Counts of several decision values of the same rows, without their last bits where there are many.

    ``n_scores``, ``n_channels``, ``weights``: as in :class:`GridCounts`.
    """

    def __init__(
        self, n_scores: int, n_channels: int, weights: FloatArray | IntArray | None
    ) -> None:
        none = (
            np.zeros((n_channels, 0), dtype=np.int64)
            if weights is None
            else zeros((n_channels, 0), weights)
        )
        self.counts = (ScoreCounts(np.empty(0), none, exact=True, dropped_bits=0),) * n_scores

    def add(
        self, values: npt.NDArray[Any], channel: npt.NDArray[Any], weights: Any, single: Any = None
    ) -> None:
        """Count one block: scores (T, b), channel codes (b,) or (T, b)."""
        channels = np.broadcast_to(channel, values.shape)
        self.counts = tuple(
            before.plus(_of_block(before, scores, channels[t], weights), DECISION_CELLS)
            for t, (before, scores) in enumerate(zip(self.counts, values, strict=True))
        )

    def __iadd__(self, other: DecisionValueCounts) -> DecisionValueCounts:
        pairs = zip(self.counts, other.counts, strict=True)
        self.counts = tuple(ours.plus(theirs, DECISION_CELLS) for ours, theirs in pairs)
        return self

    def results(self) -> tuple[ScoreCounts, ...]:
        """The counts of each score."""
        return self.counts


def _of_block(
    before: ScoreCounts, scores: FloatArray, channel: IntArray, weights: Any
) -> ScoreCounts:
    """The counts of a block of decision values, without the bits that earlier counts lack."""
    bits = before.dropped_bits or 0
    if not len(before.values):
        bits = fewest_dropped_bits(np.sort(scores[:_BLOCK_START]), DECISION_CELLS)
    values, place = distinct_cells(scores, bits)
    shape = (len(before.counts), len(values))
    counts = count_codes(
        channel.astype(np.int64) * len(values) + place, shape[0] * shape[1], weights
    )
    return ScoreCounts(values, counts.reshape(shape), exact=bits == 0, dropped_bits=bits)


class GridCounts:
    """Counts of several scores of the same rows by cell of the grid.

    ``counts``, shape (T, C, 1600).
    ``sums``, shape (T, 1600): of the scores in each cell.
    ``alone``, shape (T, 1600): the score in each cell, NaN where there is none.
    ``several``, shape (T,), bool: scores of which a cell holds two different ones.
    """

    def __init__(
        self, n_scores: int, n_channels: int, weights: FloatArray | IntArray | None
    ) -> None:
        shape = (n_scores, n_channels, CELLS)  # 32 bits hold the rows of a chunk
        self.counts: Counts = (
            np.zeros(shape, dtype=np.int32) if weights is None else zeros(shape, weights)
        )
        self.sums = np.zeros((n_scores, CELLS))
        self.alone = np.full((n_scores, CELLS), np.nan)
        self.several: BoolArray = np.zeros(n_scores, dtype=np.bool_)

    def add(
        self, values: npt.NDArray[Any], channel: npt.NDArray[Any], weights: Any, single: Any = None
    ) -> None:
        """Count one block: scores (T, b), channel codes (b,) or (T, b); ``single``: as they came."""
        cells = cells_of(values if single is None else single, np.int32)
        weighed = values.astype(np.float64, copy=False) if weights is None else values * weights
        self.sums += sums_of_codes(cells, weighed, CELLS)
        for t in np.flatnonzero(~self.several):
            self.several[t] = self._has_several(self.alone[t], values[t], cells[t])
        cells += np.multiply(channel, CELLS, dtype=np.int32)
        each = np.empty(cells.shape, dtype=self.counts.dtype)
        each[...] = 1 if weights is None else weights
        self.counts += sums_of_codes(cells, each, self.counts[0].size).reshape(self.counts.shape)

    @staticmethod
    def _has_several(alone: FloatArray, scores: npt.NDArray[Any], cells: npt.NDArray[Any]) -> bool:
        """True if a cell holds two different scores; writes those that are the first of their cells."""
        for rows in (slice(0, _AT_FIRST), *blocks(len(scores))):  # a few tell it of most
            own, cell = scores[rows], cells[rows]
            free = np.isnan(alone[cell])
            alone[cell[free]] = own[free]
            if (alone[cell] != own).any():
                return True
        return False

    def __iadd__(self, other: GridCounts) -> GridCounts:
        self.counts = self.counts.astype(zeros(0, self.counts).dtype, copy=False)
        self.counts += other.counts
        self.sums += other.sums
        both = ~np.isnan(self.alone) & ~np.isnan(other.alone)
        self.several |= other.several | (both & (self.alone != other.alone)).any(axis=1)
        self.alone = np.where(np.isnan(self.alone), other.alone, self.alone)
        return self

    def results(self) -> tuple[ScoreCounts, ...]:
        """The counts of each score; by score where no cell holds two different ones."""
        out = []
        for t, several in enumerate(self.several):
            counts = self.counts[t].astype(zeros(0, self.counts).dtype, copy=False)
            held = np.flatnonzero(counts.any(axis=0))
            if several:
                above = self.sums[t] - counts.sum(axis=0) * grid_centres()
                out.append(ScoreCounts(grid_centres(), counts, exact=False, sums=above))
            else:
                out.append(ScoreCounts(self.alone[t, held], counts[:, held], exact=True))
        return tuple(out)


class ScoreTally:
    """Counts of several scores of the same rows in the making: the same whatever the order and number of the parts.

    The scores themselves are kept while there are at most ``limit`` rows, and counts by cell beyond that.

    ``limit``: rows whose scores are counted one by one; 0: none are.
    ``of_decisions``: whether the scores are decision values, which the fixed grid does not hold.
    """

    def __init__(
        self, n_scores: int, n_channels: int, limit: int, of_decisions: bool = False
    ) -> None:
        self.n_scores, self.n_channels, self.limit = n_scores, n_channels, limit
        self.of_decisions = of_decisions
        self.rows = 0
        self._waiting: list[tuple[FloatArray, npt.NDArray[Any], Any, Any]] = []
        self._grid: Any = None  # GridCounts, or DecisionValueCounts

    @property
    def exact(self) -> bool:
        """True while the rows are counted one by one."""
        return self._grid is None

    def add(
        self, values: npt.NDArray[Any], channel: npt.NDArray[Any], weights: Any, single: Any = None
    ) -> None:
        """Count one block: scores (T, b), channel codes (b,) or (T, b); ``single``: as they came."""
        self.rows += values.shape[1]
        if self._grid is None and self.rows <= self.limit:
            values, single = np.add(values, 0.0, dtype=np.float64), None  # -0.0 becomes 0.0
        self._waiting.append((values, channel, weights, single))
        self._to_grid()

    def __add__(self, other: ScoreTally) -> ScoreTally:
        """Both sets of rows; neither tally may be used afterwards."""
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
        """The counts of each score: one by one for few rows, or where no cell of the grid holds two different ones."""
        if self._grid is not None:
            return self._grid.results()
        weights = (
            None
            if self._waiting[0][2] is None
            else np.concatenate([part[2] for part in self._waiting])
        )
        columns = [np.broadcast_to(channel, values.shape) for values, channel, *_ in self._waiting]
        together = (
            np.concatenate([part[0] for part in self._waiting], axis=1),
            np.concatenate(columns, axis=1),
        )
        return tuple(self._one_by_one(*own, weights) for own in zip(*together, strict=True))

    def result(self) -> Any:
        """The counts of the first score."""
        return self.results()[0]

    def _one_by_one(self, scores: FloatArray, channel: IntArray, weights: Any) -> ScoreCounts:
        values, place = np.unique(scores, return_inverse=True)
        counts = zeros((self.n_channels, len(values)), weights)
        np.add.at(counts, (channel, place), 1 if weights is None else weights)
        return ScoreCounts(
            values, counts, exact=True, dropped_bits=0 if self.of_decisions else None
        )

    def _to_grid(self) -> None:
        if not self._waiting or (self._grid is None and self.rows <= self.limit):
            return
        if self._grid is None:
            kind = DecisionValueCounts if self.of_decisions else GridCounts
            self._grid = kind(self.n_scores, self.n_channels, self._waiting[0][2])
        for part in self._waiting:
            self._grid.add(*part)
        self._waiting = []
