"""Counts of rows by several scores of the same rows.

The scores are the probability of each class, and the probability that a prediction is a hit. As in
:mod:`cmtrack.statistics.scores`, the scores of few rows are counted one by one, and the scores of
many rows are counted by grid cell. The limit is lower here, because each row has many scores.
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
"""Maximum number of rows, or of distinct scores after a merge, that are counted one by one."""
MOST_PAIRS = 12
"""Number of classes up to which probabilities are counted separately by actual class."""


@dataclass(frozen=True, eq=False)
class ClassScoreCounts(Record):
    """Counts of rows by the probability of each class, for 3 to 30 classes.

    ``tables``: for each class, counts by its probability. With at most 12 classes, the counts have
        a channel for each actual class, so that all pairs of classes can be compared. With more
        classes, they have two channels: rows of the class, and all other rows.
    """

    tables: tuple[ScoreCounts, ...]

    @property
    def by_actual_class(self) -> bool:
        """True if the counts have a channel for each actual class."""
        return channels_of(len(self.tables)) > 2

    def one_vs_rest(self, k: int) -> ScoreCounts:
        """Return counts by the probability of class k for rows of class k and for other rows."""
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
    """Return the number of channels in the counts of a class; 0 if there are no counts."""
    if not 2 < n_classes <= MAX_CLASSES:
        return 0
    return n_classes if n_classes <= MOST_PAIRS else 2


class ClassTally(ScoreTally):
    """Accumulator that counts rows by the probability of each class."""

    def __init__(self, n_classes: int, limit: int, of_decisions: bool = False) -> None:
        super().__init__(n_classes, channels_of(n_classes), limit, of_decisions)

    def add_block(self, block: ClassBlock, values: FloatArray, single: npt.NDArray[Any]) -> None:
        """Count one block of probabilities (K, b), with rows in the order of the block.

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
    """Counts of rows by the probability that the prediction is a hit.

    The hit probability is the sum of the probabilities of all classes that are accepted for the
    predicted class.

    ``accept``, shape (S, K, K), bool: for each step of a grouping, the pairs of actual and
        predicted class that count as hits.
    ``tables``: counts for the classes and for each step. The two channels are hits and other rows.
    """

    accept: BoolArray
    tables: tuple[ScoreCounts, ...]

    def of(self, accept: BoolArray | None = None) -> ScoreCounts | None:
        """Return the counts for the classes, or for the step that accepts the pairs ``accept``.

        The result is None if hits were not counted for this step.
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
            raise ValueError("hit counts must be for the same grouping steps to be merged")
        return HitCounts(self.accept, _merged(self.tables, other.tables))


class HitTally(ScoreTally):
    """Accumulator that counts rows by hit probability.

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

        For the arguments see :func:`hit_probabilities`. The rows must be in the order of the block.
        """
        scores, hits = hit_probabilities(values, own, block.codes, predicted, self.patterns)
        self.add(scores, (~hits).view(np.int8), block.weights)

    def result(self) -> HitCounts:
        """Return the counts."""
        return HitCounts(self.accept, self.results())


@dataclass(frozen=True, eq=False)
class Pattern:
    """The pairs of classes that a step accepts; equal columns are stored only once.

    ``accept``, shape (K, K), bool: accepted pairs, with actual classes in rows and predicted
        classes in columns.
    ``members``: the accepted classes of each distinct column.
    ``number``, shape (K,): for each predicted class, the index of its column among the distinct
        columns.
    """

    accept: BoolArray
    members: tuple[IntArray, ...]
    number: IntArray

    @classmethod
    def of(cls, accept: BoolArray) -> Pattern:
        """Find the distinct columns of the accepted pairs (K, K)."""
        columns, number = np.unique(accept, axis=1, return_inverse=True)
        members = tuple(np.flatnonzero(column) for column in columns.T)
        return cls(accept, members, np.asarray(number, dtype=np.int64).ravel())

    def sums(self, values: FloatArray, predicted: IntArray) -> FloatArray:
        """Return for each prediction the total probability of its accepted classes (b,).

        If any total is a sum over several classes, all totals are rounded to 12 decimals and
        limited to 1, so that totals that differ only by rounding errors are ties. The positive
        group's score is rounded in the same way.

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

    Both arrays have the shape (1 + S, b). The first row is for the classes, and the other rows are
    for the steps.

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
