"""Proper scores and ranks, which are computed from the probability of the actual class.

Sources: Good (1952) for the log loss, Brier (1950), and Roby (1965) for the spherical score.
Probabilities are not clipped. If the actual class has probability 0, the log loss is infinite, so
such rows are counted separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cmtrack.statistics import plain
from cmtrack.statistics.counting import Counts, SparseCounts, picked
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import ClassBlock, merged_spread
from cmtrack.statistics.records import Record

LOSSES = ("log", "brier", "spherical", "within")
"""Names of the losses. The first three losses are computed for classes, and all four for groups.
The losses are minus the logarithm of the actual class's probability, the Brier term, one minus the
cosine between the probabilities and the actual class, and minus the logarithm of the class's
conditional probability given its group.
"""
RANKED = "ranked"
"""Name of the ranked loss, which is computed only if the classes are ordered. It comes last."""
_CLASS_LOSSES = 3
_STEP_LOSSES = len(LOSSES)


def in_order(groups: IntArray) -> IntArray:
    """Renumber groups in order of appearance, so that equal partitions give equal arrays."""
    _, first, place = np.unique(groups, return_index=True, return_inverse=True)
    # The second argsort returns the rank of the position at which each group first appears.
    return np.asarray(np.argsort(np.argsort(first))[place], dtype=np.int64)


def losses_of(
    values: FloatArray, codes: IntArray, groups: IntArray, ordered: bool = False
) -> tuple[FloatArray, BoolArray]:
    """Return the losses of rows, and a mask of rows whose actual class has probability 0.

    Parameters
    ----------
    values : ndarray of shape (K, b)
        Probabilities.
    codes : ndarray of shape (b,)
        The actual classes.
    groups : ndarray of shape (S, K)
        The group of each class in each step.
    ordered : bool
        Whether to add the ranked loss as the last loss.

    Returns
    -------
    losses : ndarray of shape (3 + 4 S, b) or (4 + 4 S, b)
        The losses for the classes, followed by the losses for the groups of each step, in the order
        of :data:`LOSSES`, and the ranked loss. The logarithm of 0 is replaced with 0.
    impossible : ndarray of shape (1 + S, b), bool
    """
    n = values.shape[1]
    losses = np.empty((_CLASS_LOSSES + _STEP_LOSSES * len(groups) + ordered, n))
    impossible = np.empty((1 + len(groups), n), dtype=np.bool_)
    probability = picked(values, codes)
    _write_losses(losses, impossible[0], values, probability)
    for s, step in enumerate(groups):
        start = _CLASS_LOSSES + _STEP_LOSSES * s
        of_step = losses[start : start + _STEP_LOSSES]
        sums = _group_sums(values, step)
        _write_losses(of_step, impossible[1 + s], sums, picked(sums, step[codes]))
        # This uses log p(class) = log p(group) + log p(class inside its group).
        within = of_step[LOSSES.index("within")]
        np.subtract(losses[0], of_step[0], out=within, where=probability > 0)
        within[probability <= 0] = 0.0
    if ordered:
        losses[-1] = _ranked_loss(values, codes)
    return losses, impossible


def _ranked_loss(values: FloatArray, codes: IntArray) -> FloatArray:
    """Return the ranked loss of rows, shape (b,), for classes in their order.

    The loss is Σ (F_k - 1[actual <= k])² / (K - 1), with the cumulative probability F_k of class k
    (Epstein 1969, Journal of Applied Meteorology 8, 985-987).
    """
    cumulative = np.zeros(values.shape[1])
    loss = np.zeros(values.shape[1])
    for k, column in enumerate(values[:-1]):
        cumulative += column
        loss += (cumulative - (codes <= k)) ** 2
    # A single class has no order, and its loss is 0.
    return loss / max(len(values) - 1, 1)


def _group_sums(values: FloatArray, groups: IntArray) -> FloatArray:
    """Sum the values of the classes in each group, shape (M, b)."""
    sums = np.zeros((int(groups.max()) + 1, values.shape[1]))
    for group, column in zip(groups, values, strict=True):
        sums[group] += column
    return sums


def _write_losses(
    losses: FloatArray, impossible: BoolArray, values: FloatArray, probability: FloatArray
) -> None:
    """Write the first three losses, and the mask of rows whose class has probability 0.

    ``values``, shape (M, b): probabilities of classes or groups.
    ``probability``, shape (b,): probability of the actual class or group.
    """
    log, brier, spherical = losses[:3]
    np.less_equal(probability, 0.0, out=impossible)
    possible = probability
    if impossible.any():
        possible = np.where(impossible, 1.0, probability)
        probability = np.where(impossible, 0.0, probability)
    np.negative(np.log(possible, out=log), out=log)
    # The Brier term is |p|^2 - 2 p(actual) + 1, which rounding can make negative.
    square = np.einsum("kb,kb->b", values, values)
    np.subtract(square, probability, out=brier)
    brier -= probability
    brier += 1
    np.maximum(brier, 0.0, out=brier)
    if len(values) == 2:
        # With two classes, the Brier score is a sum of two equal terms. Usually only one is used.
        brier *= 0.5
    if square.all():
        np.divide(probability, np.sqrt(square, out=square), out=spherical)
    else:
        np.divide(probability, np.sqrt(square), out=spherical, where=square > 0)
        spherical[square <= 0] = 0.0
    np.subtract(1.0, spherical, out=spherical)


@dataclass(frozen=True, eq=False)
class ProperScores(Record):
    """Proper scores by actual class, for the classes and for the groups in each step.

    ``groups``, shape (S, K): the group of each class in each step, numbered by :func:`in_order`.
    ``n``, shape (K,): number of rows (or total weight) of each actual class.
    ``impossible``, shape (1 + S, K): number of rows (or total weight) whose actual class, or whose
        group in a step, has probability 0.
    ``mean``, ``m2``, shape (K, 3 + 4 S): mean and sum of squared deviations of each loss. There are
        three losses for the classes and four losses for each step. If the classes are ordered, the
        ranked loss follows in one more column. A logarithm of 0 is replaced with 0.
    """

    groups: IntArray
    n: Counts
    impossible: Counts
    mean: FloatArray
    m2: FloatArray

    @classmethod
    def of_block(
        cls,
        block: ClassBlock,
        values: FloatArray,
        groups: IntArray,
        actual: IntArray | None = None,
        ordered: bool = False,
    ) -> ProperScores:
        """Compute the scores from one block of rows.

        ``values``, shape (K, b): probabilities, in the order of the block's classes.
        ``actual``, shape (b,): the actual classes; needed only if the block is sorted by segment
            and class.
        ``ordered``: whether to compute the ranked loss.
        """
        codes = block.codes if actual is None else actual
        losses, is_impossible = losses_of(values, codes, groups, ordered)
        impossible: Counts = np.zeros((len(is_impossible), len(block.present)), np.int64)
        if is_impossible.any():
            impossible = block.total(is_impossible.astype(np.int64))
        means, deviations = block.centre(losses)
        m2 = block.total(np.square(deviations, out=deviations))
        return cls(
            groups,
            block.spread(block.sums, dtype=block.sums.dtype),
            block.spread(impossible, dtype=impossible.dtype).T,
            block.spread(means),
            block.spread(m2),
        )

    @classmethod
    def merge(cls, parts: Sequence[ProperScores]) -> ProperScores:
        """Merge the scores of disjoint sets of rows."""
        groups = parts[0].groups
        if any(not np.array_equal(part.groups, groups) for part in parts):
            raise ValueError("proper scores must be for the same groups of classes to be merged")
        if not all(part.has_ranked for part in parts):
            parts = [part.without_ranked() for part in parts]
        n = np.stack([part.n for part in parts])
        impossible = np.stack([part.impossible for part in parts]).sum(axis=0)
        mean, m2 = merged_spread(
            n[:, :, None].astype(np.float64),
            np.stack([part.mean for part in parts]),
            np.stack([part.m2 for part in parts]),
        )
        return cls(groups, n.sum(axis=0), impossible, mean, m2)

    def select(self, classes: IntArray) -> ProperScores:
        """Return the scores for the given classes; negative numbers mean classes without rows."""
        arrays = [self.n[classes], self.impossible.T[classes], self.mean[classes], self.m2[classes]]
        for array in arrays:
            array[classes < 0] = 0
        n, impossible, mean, m2 = arrays
        return ProperScores(self.groups, n, impossible.T, mean, m2)

    def __add__(self, other: ProperScores) -> ProperScores:
        return ProperScores.merge([self, other])

    @property
    def _n_usual(self) -> int:
        """Number of the losses that do not depend on the order of the classes."""
        return _CLASS_LOSSES + _STEP_LOSSES * len(self.groups)

    @property
    def has_ranked(self) -> bool:
        """Return whether the ranked loss was computed."""
        return self.mean.shape[1] > self._n_usual

    def without_ranked(self) -> ProperScores:
        """Return the scores without the ranked loss, which depends on the order of the classes."""
        usual = slice(self._n_usual)
        return replace(self, mean=self.mean[:, usual], m2=self.m2[:, usual])

    def holds(self, groups: IntArray) -> bool:
        """Return whether losses were computed for ``groups``, shape (K,)."""
        return self.place("log", groups) is not None

    def place(self, loss: str, groups: IntArray | None) -> tuple[int, int] | None:
        """Return the column of a loss in ``mean``, and the matching row of ``impossible``.

        The result is None if losses were not computed for these groups.
        """
        if loss == RANKED:
            return (self._n_usual, 0) if self.has_ranked else None
        number = LOSSES.index(loss)
        if groups is None:
            return number, 0
        steps = np.flatnonzero((self.groups == in_order(groups)).all(axis=1))
        if not len(steps):
            return None
        step = int(steps[0])
        return _CLASS_LOSSES + _STEP_LOSSES * step + number, 1 + step

    def to_plain(self) -> Any:
        """Return all non-empty arrays by name as plain data."""
        return plain.encode_fields(self)

    @classmethod
    def from_plain(cls, data: Any, rows: int, size: int) -> ProperScores:
        """Read data written by :meth:`to_plain`."""
        groups = np.empty((0, size), dtype=np.int64)
        if "groups" in data:
            groups = plain.decode_array(data["groups"], (None, size))
        n_steps = len(groups)
        shapes: dict[str, tuple[int | None, ...]] = {
            "n": (rows,),
            "impossible": (1 + n_steps, rows),
            "mean": (rows, None),
            "m2": (rows, None),
        }
        scores = cls(groups, **plain.decode_fields(data, shapes, signed=("mean",)))
        n_losses = scores.mean.shape[1]
        n_usual = scores._n_usual
        if n_losses not in (n_usual, n_usual + 1) or scores.m2.shape != scores.mean.shape:
            raise ValueError(
                f"losses must have {n_usual} or {n_usual + 1} columns, got {n_losses} means and "
                f"{scores.m2.shape[1]} sums of squares"
            )
        return scores


def ranks_of(values: FloatArray, codes: IntArray) -> IntArray:
    """Return the rank of the actual class by probability, counted from 0, shape (b,).

    The rank is the number of classes that come before the actual class. Classes with equal
    probabilities keep their order, as in the arg-max.

    ``values``, shape (K, b): probabilities.
    ``codes``, shape (b,): actual classes.
    """
    probability = picked(values, codes)
    before, equal = np.zeros((2, len(probability)), dtype=np.min_scalar_type(len(values)))
    for column in values:
        # Booleans are bytes of 0 and 1, so a view adds them without a conversion.
        before += (column > probability).view(np.uint8)
        equal += (column == probability).view(np.uint8)
    ties = np.flatnonzero(equal > 1)
    is_equal = values[:, ties] == probability[ties]
    is_earlier = np.arange(len(values))[:, None] < codes[ties]
    before[ties] += (is_equal & is_earlier).sum(axis=0, dtype=before.dtype)
    return before.astype(np.int64)


@dataclass(frozen=True, eq=False)
class RankCounts(plain.Table):
    """Counts of rows by actual class and the rank of its probability.

    ``table``, SparseCounts of shape (K, K): entry (k, r) is the number (or total weight) of rows of
        class k in which the actual class has rank r.
    """

    @classmethod
    def from_plain(cls, data: Any, size: int) -> RankCounts:
        """Read data written by :meth:`to_plain`."""
        return cls(plain.decode_table(data, (size, size)))

    @classmethod
    def of_block(
        cls, block: ClassBlock, values: FloatArray, actual: IntArray | None = None
    ) -> RankCounts:
        """Count one block of rows; for the arguments see :meth:`ProperScores.of_block`."""
        size = len(values)
        cells = block.codes * size + ranks_of(values, block.codes if actual is None else actual)
        return cls(SparseCounts.of_codes(cells, (block.n_classes, size), block.weights))

    @classmethod
    def of_array(cls, counts: Counts) -> RankCounts:
        """Convert a dense table (K, K) to counts."""
        return cls(SparseCounts.of_array(counts))

    def select(self, classes: IntArray) -> RankCounts:
        """Return the counts for the given classes; negative numbers mean classes without rows."""
        counts = self.counts[classes]
        counts[classes < 0] = 0
        return RankCounts.of_array(counts)

    @property
    def by_rank(self) -> FloatArray:
        """Number of rows (or total weight) with each rank, shape (K,)."""
        size = self.table.shape[1]
        rows = np.bincount(self.table.places % size, self.table.sums, size)
        return rows.astype(np.float64, copy=False)
