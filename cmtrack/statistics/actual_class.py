"""Proper scores and the rank of the actual class, of what the probabilities give it.

Source of the scores: Good (1952), Brier (1950); of the spherical one Roby (1965). Nothing is clipped: a probability of
0 for the actual class makes its log loss infinite, so such rows are counted apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.statistics import plain
from cmtrack.statistics.counting import Counts, SparseCounts, picked
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import ClassBlock, merged_spread
from cmtrack.statistics.records import Record

LOSSES = ("log", "brier", "spherical", "within")
"""Losses of a row: minus the log of the actual class's probability, the Brier term, one less the cosine to the truth;
and, of groups, minus the log of the class's probability inside its group."""


def in_order(groups: IntArray) -> IntArray:
    """Numbers of groups as they first appear, so that equal partitions are equal arrays."""
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[place], dtype=np.int64)


def losses_of(
    values: FloatArray, codes: IntArray, groups: IntArray
) -> tuple[FloatArray, BoolArray]:
    """Losses of rows, and where the probability of the actual class, or of its group, is 0.

    Parameters
    ----------
    values : ndarray of shape (K, b)
        Probabilities.
    codes : ndarray of shape (b,)
        The actual classes.
    groups : ndarray of shape (S, K)
        The group of each class in each step.

    Returns
    -------
    losses : ndarray of shape (3 + 4 S, b)
        Those of the classes and of the groups of each step, in the order of :data:`LOSSES`; 0 for a logarithm of 0.
    impossible : ndarray of shape (1 + S, b), bool
    """
    n = values.shape[1]
    losses = np.empty((3 + 4 * len(groups), n))
    impossible = np.empty((1 + len(groups), n), dtype=np.bool_)
    probability = picked(values, codes)
    _fill(losses, impossible[0], values, probability)
    for s, step in enumerate(groups):
        part = losses[3 + 4 * s : 7 + 4 * s]
        together = _sums(values, step)
        _fill(part, impossible[1 + s], together, picked(together, step[codes]))
        np.subtract(losses[0], part[0], out=part[3], where=probability > 0)
        part[3][probability <= 0] = 0.0
    return losses, impossible


def _sums(values: FloatArray, groups: IntArray) -> FloatArray:
    """Sums (M, b) over the classes of each group."""
    sums = np.zeros((int(groups.max()) + 1, values.shape[1]))
    for group, column in zip(groups, values, strict=True):
        sums[group] += column
    return sums


def _fill(losses: FloatArray, impossible: BoolArray, values: FloatArray, own: FloatArray) -> None:
    """Write the losses of rows from the scores ``values`` (M, b) and those of the actual class, ``own`` (b,)."""
    log, brier, spherical = losses[:3]
    np.less_equal(own, 0.0, out=impossible)
    if impossible.any():
        own = np.where(impossible, 1.0, own)
        np.negative(np.log(own, out=log), out=log)
        own = np.where(impossible, 0.0, own)
    else:
        np.negative(np.log(own, out=log), out=log)
    square = np.einsum("kb,kb->b", values, values)
    np.subtract(square, own, out=brier)
    brier -= own
    brier += 1
    np.maximum(brier, 0.0, out=brier)
    if len(values) == 2:
        brier *= 0.5
    if square.all():
        np.divide(own, np.sqrt(square, out=square), out=spherical)
    else:
        np.divide(own, np.sqrt(square), out=spherical, where=square > 0)
        spherical[square <= 0] = 0.0
    np.subtract(1.0, spherical, out=spherical)


@dataclass(frozen=True, eq=False)
class ProperScores(Record):
    """Proper scores by actual class: of the classes, and of the groups of each step of a grouping.

    ``groups``, shape (S, K): the steps, as :func:`partitions` gives them.
    ``n``, shape (K,): rows, or weight, of each actual class.
    ``impossible``, shape (1 + S, K): those that give their class, or its group, the probability 0.
    ``mean``, ``m2``, shape (K, 3 + 4 S): mean and sum of squared deviations of each loss: three of the classes, four of
        each step. A logarithm of 0 counts as 0 in them.
    """

    groups: IntArray
    n: Counts
    impossible: Counts
    mean: FloatArray
    m2: FloatArray

    @classmethod
    def of_block(
        cls, block: ClassBlock, values: FloatArray, groups: IntArray, actual: IntArray | None = None
    ) -> ProperScores:
        """The scores of one block of rows from their probabilities (K, b), in the order of its classes.

        ``actual`` are the actual classes (b,) where the block's own are finer.
        """
        losses, zero = losses_of(values, block.codes if actual is None else actual, groups)
        held = (
            block.total(zero.astype(np.int64))
            if zero.any()
            else np.zeros((len(zero), len(block.present)), np.int64)
        )
        means, deviations = block.centre(losses)
        m2 = block.total(np.square(deviations, out=deviations))
        return cls(
            groups,
            block.spread(block.sums, dtype=block.sums.dtype),
            block.spread(held, dtype=held.dtype).T,
            block.spread(means),
            block.spread(m2),
        )

    @classmethod
    def merge(cls, parts: Sequence[ProperScores]) -> ProperScores:
        """The scores of disjoint samples together."""
        groups = parts[0].groups
        if any(not np.array_equal(part.groups, groups) for part in parts):
            raise ValueError("proper scores must be of the same groups of classes to be merged")
        n = np.stack([part.n for part in parts])
        mean, m2 = (np.stack([getattr(part, name) for part in parts]) for name in ("mean", "m2"))
        mean, m2 = merged_spread(n[:, :, None].astype(np.float64), mean, m2)
        return cls(groups, n.sum(axis=0), sum(part.impossible for part in parts), mean, m2)  # type: ignore[arg-type]

    def select(self, classes: IntArray) -> ProperScores:
        """The scores of some classes only; a class below 0 has no rows."""
        arrays = [self.n[classes], self.impossible.T[classes], self.mean[classes], self.m2[classes]]
        for array in arrays:
            array[classes < 0] = 0
        n, impossible, mean, m2 = arrays
        return ProperScores(self.groups, n, impossible.T, mean, m2)

    def __add__(self, other: ProperScores) -> ProperScores:
        return ProperScores.merge([self, other])

    def holds(self, groups: IntArray) -> bool:
        """True where the losses of these groups, an array of shape (K,), are kept."""
        return self.place("log", groups) is not None

    def place(self, loss: str, groups: IntArray | None) -> tuple[int, int] | None:
        """The column of a loss in ``mean``, and the row of its table in ``impossible``; None without these groups."""
        if groups is None:
            return LOSSES.index(loss), 0
        same = np.flatnonzero((self.groups == in_order(groups)).all(axis=1))
        if not len(same):
            return None
        return 3 + 4 * int(same[0]) + LOSSES.index(loss), 1 + int(same[0])

    def to_plain(self) -> Any:
        """The arrays by name as plain data, without those that are empty."""
        return plain.encode_fields(self)

    @classmethod
    def from_plain(cls, data: Any, rows: int, size: int) -> ProperScores:
        """Read :meth:`to_plain`."""
        none = np.empty((0, size), dtype=np.int64)
        groups = plain.decode_array(data["groups"], (None, size)) if "groups" in data else none
        wide = (rows, 3 + 4 * len(groups))
        shapes = {"n": (rows,), "impossible": (1 + len(groups), rows), "mean": wide, "m2": wide}
        return cls(groups, **plain.decode_fields(data, shapes, signed=("mean",)))


def ranks_of(values: FloatArray, codes: IntArray) -> IntArray:
    """Zero-based rank of the actual class by probability: the number of classes before it, shape (b,).

    Of equal probabilities the first class stands first, as in the arg-max.

    ``values``, shape (K, b).
    ``codes``, shape (b,).
    """
    probability = picked(values, codes)
    before, equal = np.zeros((2, len(probability)), dtype=np.min_scalar_type(len(values)))
    for column in values:
        before += (column > probability).view(np.uint8)
        equal += (column == probability).view(np.uint8)
    ties = np.flatnonzero(equal > 1)
    before[ties] += (
        (values[:, ties] == probability[ties]) & (np.arange(len(values))[:, None] < codes[ties])
    ).sum(axis=0, dtype=before.dtype)
    return before.astype(np.int64)


@dataclass(frozen=True, eq=False)
class RankCounts(plain.Table):
    """Rows by actual class and the rank of its probability.

    ``table``, SparseCounts of shape (K, K): entry (k, r): rows, or weight, of class k that r classes stand before.
    """

    @classmethod
    def from_plain(cls, data: Any, size: int) -> RankCounts:
        """Read :meth:`to_plain`."""
        return cls(plain.decode_table(data, (size, size)))

    @classmethod
    def of_block(
        cls, block: ClassBlock, values: FloatArray, actual: IntArray | None = None
    ) -> RankCounts:
        """The counts of one block of rows from their probabilities (K, b), in the order of its classes.

        ``actual`` are the actual classes (b,) where the block's own are finer.
        """
        size = len(values)
        cell = block.codes * size + ranks_of(values, block.codes if actual is None else actual)
        return cls(SparseCounts.of_codes(cell, (block.n_classes, size), block.weights))

    @classmethod
    def of_array(cls, counts: Counts) -> RankCounts:
        """The counts of a whole table (K, K)."""
        return cls(SparseCounts.of_array(counts))

    def select(self, classes: IntArray) -> RankCounts:
        """The counts of some classes only; a class below 0 has no rows."""
        counts = self.counts[classes]
        counts[classes < 0] = 0
        return RankCounts.of_array(counts)

    @property
    def by_rank(self) -> FloatArray:
        """The rows, or weight, of each rank, shape (K,)."""
        size = self.table.shape[1]
        return np.bincount(self.table.places % size, self.table.sums, size).astype(
            np.float64, copy=False
        )
