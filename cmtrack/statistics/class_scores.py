"""Counts of several scores of the same rows.

The scores are the probability of each class, and the probability that a prediction is a hit. As in
:mod:`cmtrack.statistics.scores`, scores of few rows are counted one by one, and scores of more rows
by cell of the grid. The limit is lower here, because each row has many scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics import plain
from cmtrack.statistics.counting import picked
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import MAX_CLASSES, ClassBlock
from cmtrack.statistics.records import Record
from cmtrack.statistics.scores import ScoreCounts, ScoreTally

FEW_ROWS = 1 << 11
"""Most rows whose scores are counted one by one, and most distinct scores after a merge."""
MOST_PAIRS = 12
"""Number of classes up to which probabilities are counted by actual class, to compare all pairs."""


@dataclass(frozen=True, eq=False)
class ClassScoreCounts(Record):
    """Counts of the probabilities of each of 3 to 30 classes.

    ``tables``: counts of each class's probability. With at most 12 classes they have a channel for
        each actual class. Otherwise they have two channels: rows of the class, and other rows.
    """

    tables: tuple[ScoreCounts, ...]

    @property
    def by_actual_class(self) -> bool:
        """True if there is a channel for each actual class."""
        return channels_of(len(self.tables)) > 2

    def one_vs_rest(self, k: int) -> ScoreCounts:
        """Return the counts of class k with two channels: rows of the class, and other rows."""
        table = self.tables[k]
        if not self.by_actual_class:
            return table
        return table.channels((k,), tuple(c for c in range(len(self.tables)) if c != k))

    def to_plain(self) -> Any:
        """Return the counts of each class as plain data."""
        return [table.to_plain() for table in self.tables]

    @classmethod
    def from_plain(cls, data: Any, size: int) -> ClassScoreCounts:
        """Read data written by :meth:`to_plain`."""
        return cls(ScoreCounts.each_from_plain(data, size, channels_of(size)))

    def __add__(self, other: ClassScoreCounts) -> ClassScoreCounts:
        return ClassScoreCounts(_merged(self.tables, other.tables))


def channels_of(n_classes: int) -> int:
    """Return the number of channels of each class's counts; 0 if they are not kept."""
    if not 2 < n_classes <= MAX_CLASSES:
        return 0
    return n_classes if n_classes <= MOST_PAIRS else 2


class ClassTally(ScoreTally):
    """Accumulator of counts of each class's probabilities."""

    def __init__(self, n_classes: int, limit: int, of_decisions: bool = False) -> None:
        super().__init__(n_classes, channels_of(n_classes), limit, of_decisions)

    def add_block(self, block: ClassBlock, values: FloatArray, single: npt.NDArray[Any]) -> None:
        """Count one block of probabilities (K, b) in the order of its classes.

        ``single``: the probabilities in their original precision.
        """
        channel: npt.NDArray[Any] = block.codes.astype(np.int8)
        if self.n_channels == 2:
            # The channel of a class is 0 for its own rows and 1 for other rows.
            channel = (channel != np.arange(self.n_scores, dtype=np.int8)[:, None]).view(np.int8)
        self.add(values, channel, block.weights, single)

    def result(self) -> ClassScoreCounts:
        """Return the counts."""
        return ClassScoreCounts(self.results())


@dataclass(frozen=True, eq=False)
class HitCounts(Record):
    """Counts of the hit probability of predictions.

    The hit probability is the sum of the probabilities of all classes that are accepted for the
    predicted class.

    ``accept``, shape (S, K, K), bool: for each step of a grouping, the pairs of actual and
        predicted class that count as hits.
    ``tables``: counts for the classes themselves and for each step, with two channels, hits and
        other rows.
    """

    accept: BoolArray
    tables: tuple[ScoreCounts, ...]

    def of(self, accept: BoolArray | None = None) -> ScoreCounts | None:
        """Return the counts of the classes, or of the step with the accepted pairs ``accept``.

        None if they are not kept.
        """
        if accept is None:
            return self.tables[0]
        steps = np.flatnonzero((self.accept == accept).all(axis=(1, 2)))
        return self.tables[1 + steps[0]] if len(steps) else None

    def to_plain(self) -> Any:
        """Return the counts and the accepted pairs as plain data."""
        data = {}
        if len(self.accept):
            data["accept"] = plain.encode_array(self.accept.astype(np.int64))
        data["tables"] = [table.to_plain() for table in self.tables]
        return data

    @classmethod
    def from_plain(cls, data: Any, size: int) -> HitCounts:
        """Read data written by :meth:`to_plain`."""
        accept = np.empty((0, size, size), dtype=np.bool_)
        if "accept" in data:
            accept = plain.decode_array(data["accept"], (None, size, size)) != 0
        return cls(accept, ScoreCounts.each_from_plain(data["tables"], 1 + len(accept), 2))

    def __add__(self, other: HitCounts) -> HitCounts:
        """Merge the counts of disjoint sets of rows."""
        if not np.array_equal(self.accept, other.accept):
            raise ValueError("hit counts must be of the same steps of grouping to be merged")
        return HitCounts(self.accept, _merged(self.tables, other.tables))


class HitTally(ScoreTally):
    """Accumulator of counts by hit probability.

    ``accept``, shape (S, K, K), bool: the accepted pairs of each step.
    """

    def __init__(self, accept: BoolArray, limit: int) -> None:
        super().__init__(1 + len(accept), 2, limit)
        self.accept = accept
        self.patterns = [Pattern.of(step) for step in accept]

    def add_block(
        self, block: ClassBlock, values: FloatArray, predicted: IntArray, own: npt.NDArray[Any]
    ) -> None:
        """Count one block of rows.

        See :func:`hit_probabilities` for the arguments, here in the order of the block's classes.
        """
        scores, hits = hit_probabilities(values, own, block.codes, predicted, self.patterns)
        self.add(scores, (~hits).view(np.int8), block.weights)

    def result(self) -> HitCounts:
        """Return the counts."""
        return HitCounts(self.accept, self.results())


@dataclass(frozen=True, eq=False)
class Pattern:
    """The pairs of classes that a step accepts, stored once for equal columns.

    ``accept``, shape (K, K), bool: accepted pairs, actual by predicted class.
    ``members``: the accepted classes of each distinct column.
    ``number``, shape (K,): index of each predicted class's column among the distinct ones.
    """

    accept: BoolArray
    members: tuple[IntArray, ...]
    number: IntArray

    @classmethod
    def of(cls, accept: BoolArray) -> Pattern:
        """Return the distinct columns of pairs (K, K)."""
        columns, number = np.unique(accept, axis=1, return_inverse=True)
        members = tuple(np.flatnonzero(column) for column in columns.T)
        return cls(accept, members, np.asarray(number, dtype=np.int64).ravel())

    def sums(self, values: FloatArray, predicted: IntArray) -> FloatArray:
        """Return the total probability of the accepted classes of each prediction (b,).

        If any total is a sum of several classes, all are rounded to 12 decimals and cut at 1, so
        that values that differ only by rounding are ties. The positive group's score is rounded in
        the same way.

        ``values``, shape (K, b): probabilities.
        """
        sums_of_members = np.zeros((len(self.members), len(predicted)))
        for row, members in zip(sums_of_members, self.members, strict=True):
            for k in members:
                row += values[k]
        sums = picked(sums_of_members, self.number[predicted])
        if any(len(members) > 1 for members in self.members):
            np.minimum(np.round(sums, 12, out=sums), 1.0, out=sums)
        return sums


def hit_probabilities(
    values: FloatArray,
    own: npt.NDArray[Any],
    codes: IntArray,
    predicted: IntArray,
    patterns: Sequence[Pattern],
) -> tuple[FloatArray, BoolArray]:
    """Return the probability that each prediction is a hit, and whether it is a hit.

    Both have the shape (1 + S, b), with the classes first and then each step.

    ``values``, shape (K, b): probabilities.
    ``own``, shape (b,): probabilities of the predicted classes.
    ``codes``, ``predicted``, shape (b,): actual and predicted classes.
    """
    scores = [own]
    hits = [codes == predicted]
    pairs = codes * len(values) + predicted
    for pattern in patterns:
        scores.append(pattern.sums(values, predicted))
        hits.append(pattern.accept.take(pairs))
    return np.stack(scores), np.stack(hits)


def _merged(
    ours: tuple[ScoreCounts, ...], theirs: tuple[ScoreCounts, ...]
) -> tuple[ScoreCounts, ...]:
    return tuple(a.plus(b, FEW_ROWS) for a, b in zip(ours, theirs, strict=True))
