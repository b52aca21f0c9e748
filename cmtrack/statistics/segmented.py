"""Statistics of segments, which divide the rows by the values of a column.

The rows of each combination of segment and actual class are counted like a separate class, so that
the blocks of the kernel can be used. The counts of all segments add up exactly to the counts of all
rows. The moments add up to the moments of all rows, up to rounding.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.statistics import plain
from cmtrack.statistics.actual_class import ProperScores, RankCounts
from cmtrack.statistics.confusion import merged_labels, places_of
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.counting import Codes, Counts, blocks, count_codes, take_weights
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import MOMENTS, ClassBlock, ScoreMoments
from cmtrack.statistics.probabilities import Probabilities
from cmtrack.statistics.records import Record
from cmtrack.statistics.score_pass import in_threads, sum_of_group
from cmtrack.statistics.segment_values import (
    MAX_SEGMENTS,
    Others,
    SegmentRows,
    check_fractions,
    check_number,
    check_values,
    largest,
    note_of_others,
    plain_value,
    value_order,
    value_texts,
)

_FEWEST_ROWS = 1 << 16
"""Minimum number of rows to count at a time."""
_ROWS_OF_CELL = 64
"""Number of rows to count at a time per segment and class; fewer rows waste time on tables."""
_VALUES = 1 << 23
"""Maximum number of probabilities to process at a time, to limit the memory."""


def _plain(value: Any) -> Any:
    """Return a segment's value as plain data."""
    if isinstance(value, Others):
        return {"others": True}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value


def _value(data: Any) -> Any:
    """Read a value written by :func:`_plain`; a list is a combination of values."""
    if isinstance(data, list) and len(data) > 1:
        return tuple(map(_single_value, data))
    return _single_value(data)


def _single_value(data: Any) -> Any:
    if isinstance(data, dict) and data == {"others": True}:
        return Others.OTHERS
    if isinstance(data, float) and math.isfinite(data):
        return data
    if data is None or isinstance(data, (str, int)):
        return data
    raise ValueError(
        f"a segment must be a string, number or boolean, or a list of them, got {data!r:.80}"
    )


@dataclass(frozen=True, eq=False)
class SegmentCounts(Record):
    """Statistics of each segment of one column, with C = S K pairs of segment and class.

    The classes of the first segment come first.

    ``values``, tuple of length S: see :class:`~cmtrack.statistics.segment_values.SegmentRows`; may
        include ``Others.OTHERS``.
    ``rows``, shape (C,): number of rows, ignoring weights.
    ``matrix``, shape (C, K): number of rows (or total weight) by predicted class.
    ``ranks``, RankCounts of shape (C, K).
    ``moments``, ScoreMoments of shape (C, K), or (C, K + 1): moments of each class's probability
        and, with two groups, of the positive group's score.
    """

    values: tuple[Any, ...]
    rows: IntArray
    matrix: Counts
    losses: ProperScores | None = None
    ranks: RankCounts | None = None
    moments: ScoreMoments | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return the values and the arrays by name as plain data."""
        data: dict[str, Any] = {"values": [_plain(value) for value in self.values]}
        data |= plain.encode_fields(self, ("rows", "matrix"))
        if self.ranks is not None:
            data["ranks"] = plain.encode_array(self.ranks.counts)
        if self.losses is not None:
            data["losses"] = plain.encode_fields(self.losses)
        if self.moments is not None:
            data["moments"] = plain.encode_fields(self.moments, MOMENTS)
        return data

    @classmethod
    def from_plain(cls, data: Any, size: int, column: str) -> SegmentCounts:
        """Read data written by :meth:`to_plain`, for ``size`` classes and the name of a column."""
        listed = data["values"]
        if not isinstance(listed, list) or not 0 < len(listed) <= MAX_SEGMENTS:
            raise ValueError(
                f"{column!r:.80} must have 1 to {MAX_SEGMENTS} segments, got {listed!r:.80}"
            )
        values = tuple(map(_value, listed))
        if len(set(values)) != len(values):
            raise ValueError(f"segments of {column!r:.80} must differ, got {listed!r:.80}")
        n = len(values) * size
        ranks = None
        if "ranks" in data:
            ranks = RankCounts.of_array(plain.decode_counts(data["ranks"], (n, size)))
        moments = None
        if "moments" in data:
            moments = ScoreMoments.from_plain(data["moments"], n)
            n_scores = moments.mean.shape[1]
            if n_scores not in (size, size + 1):
                raise ValueError(f"moments of segments must be for {size} scores, got {n_scores}")
        losses = None
        if "losses" in data:
            losses = ProperScores.from_plain(data["losses"], n, size)
        rows = plain.decode_counts(data["rows"], (n,))
        matrix = plain.decode_counts(data["matrix"], (n, size))
        return cls(values, rows, matrix, losses, ranks, moments)

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return int(self.matrix.shape[1])

    @property
    def sizes(self) -> IntArray:
        """Number of rows of each segment, shape (S,)."""
        return np.asarray(self.rows.reshape(len(self.values), -1).sum(axis=1))

    def take(self, segments: Sequence[int] | IntArray) -> SegmentCounts:
        """Return the counts of some segments; the index -1 means a segment without rows."""
        chosen = np.asarray(segments, dtype=np.int64)
        classes = chosen[:, None] * self.n_classes + np.arange(self.n_classes)
        classes[chosen < 0] = -1
        classes = classes.ravel()
        rows = self.rows[classes]
        rows[classes < 0] = 0
        matrix = self.matrix[classes]
        matrix[classes < 0] = 0
        parts = {}
        for name in ("losses", "ranks", "moments"):
            part = getattr(self, name)
            if part is not None:
                parts[name] = part.select(classes)
        values = tuple(self.values[k] for k in chosen.tolist())
        return SegmentCounts(values, rows, matrix, **parts)

    def each(self) -> Iterator[SegmentCounts]:
        """Yield the counts of each segment separately."""
        without_ranks = replace(self, ranks=None)
        # The dense table of ranks is made once for all segments.
        table = None if self.ranks is None else self.ranks.counts
        for k in range(len(self.values)):
            segment = without_ranks.take([k])
            if table is not None:
                classes = slice(k * self.n_classes, (k + 1) * self.n_classes)
                segment = replace(segment, ranks=RankCounts.of_array(table[classes]))
            yield segment

    def rests(self) -> SegmentCounts:
        """Return the counts of the rows outside each segment.

        Moments can be merged but not subtracted. The rows outside a segment are the rows of its
        neighbour and the rows outside the pair that the two segments form. A recursive call with
        half the number of segments gives the rows outside each pair.
        """
        size = len(self.values)
        if size < 2:
            raise ValueError(f"the rest of a segment needs at least two segments, got {size}")
        segments = np.arange(size + size % 2)
        segments[size:] = -1  # the last one of an odd number is paired with an empty segment
        neighbours = segments.reshape(-1, 2)[:, ::-1].ravel()[:size]
        outside = self.take(neighbours)
        if size > 2:
            first = self.take(segments[0::2])
            second = replace(self.take(segments[1::2]), values=first.values)
            rests_of_pairs = _merged([first, second]).rests()
            outside = _merged([rests_of_pairs.take(segments[:size] // 2), outside])
        return replace(outside, values=self.values)

    def group_scores(self, positive: BoolArray) -> tuple[ScoreMoments, FloatArray] | None:
        """Return the moments of the positive group's score by segment, negatives before positives.

        None if the positive group has no score.

        Parameters
        ----------
        positive : ndarray of shape (K,), bool
            The classes of the positive group.

        Returns
        -------
        moments : ScoreMoments of shape (S, 2, 1)
        variances : ndarray of shape (S,)
            Sums of s (1-s) over the scores s.
        """
        size = self.n_classes
        moments = self.moments
        if moments is None or moments.mean.shape[1] <= size:
            return None
        scores = moments.component(size)
        starts = size * np.arange(len(self.values))
        sides = []
        for members in (np.flatnonzero(~positive), np.flatnonzero(positive)):
            side = ScoreMoments.empty(len(starts), 1)
            if len(members):
                side = ScoreMoments.merge([scores.select(starts + c) for c in members])
            sides.append(side)
        stacked = ScoreMoments(
            *(np.stack([getattr(side, name) for side in sides], axis=1) for name in MOMENTS)
        )
        # On each side, the sum of s (1 - s) is n mean (1 - mean) - m2.
        variances = stacked.n[:, :, None] * stacked.mean * (1 - stacked.mean) - stacked.m2
        return stacked, np.asarray(variances.sum(axis=(1, 2)))

    def spread(self, values: tuple[Any, ...]) -> SegmentCounts:
        """Return the counts with segments in the order of ``values``; new segments have no rows."""
        if values == self.values:
            return self
        place = {value: k for k, value in enumerate(self.values)}
        return replace(self.take([place.get(value, -1) for value in values]), values=values)

    def __add__(self, other: SegmentCounts) -> SegmentCounts:
        """Merge the counts of disjoint sets of rows; equal values become one segment."""
        values = tuple(dict.fromkeys((*self.values, *other.values)))
        return _merged([self.spread(values), other.spread(values)])

    def limited(self) -> SegmentCounts:
        """Return the counts of at most 1,000 segments; the last one combines the smallest."""
        if len(self.values) <= MAX_SEGMENTS:
            return self
        segments = [k for k, value in enumerate(self.values) if value is not Others.OTHERS]
        kept = [segments[k] for k in largest(self.sizes[segments])]
        dropped = set(range(len(self.values))).difference(kept)
        others = _merged([self.take([k]) for k in dropped])
        return self.take([*kept, -1]).with_last(others)

    def with_last(self, last: SegmentCounts) -> SegmentCounts:
        """Add the rows of one segment to the last segment, which combines all others."""
        values = (*self.values[:-1], Others.OTHERS)
        others = replace(last, values=(Others.OTHERS,)).spread(values)
        return _merged([replace(self, values=values), others])

    def in_classes(self, place: IntArray, size: int) -> SegmentCounts:
        """Add classes to the counts, which must not include probabilities.

        ``place``, shape (K,): index of each present class among all classes.
        ``size``: the number of all classes.
        """
        n_segments = len(self.values)
        old_size = self.n_classes
        rows = np.zeros((n_segments, size), dtype=self.rows.dtype)
        rows[:, place] = self.rows.reshape(n_segments, old_size)
        matrix = np.zeros((n_segments, size, size), dtype=self.matrix.dtype)
        pairs = np.ix_(np.arange(n_segments), place, place)
        matrix[pairs] = self.matrix.reshape(n_segments, old_size, old_size)
        return SegmentCounts(self.values, rows.ravel(), matrix.reshape(-1, size))

    def without_group_score(self) -> SegmentCounts:
        """Return the counts without the moments of the positive group's score."""
        if self.moments is None:
            return self
        return replace(self, moments=self.moments.components(slice(0, self.n_classes)))


@dataclass(frozen=True, eq=False)
class Segmented(Record):
    """Statistics of the segments of each column.

    ``labels``, tuple of length K.
    """

    labels: tuple[Label, ...]
    columns: dict[str, SegmentCounts]

    def to_plain(self) -> list[dict[str, Any]]:
        """Return the counts of each column as plain data."""
        return [{"name": name, **counts.to_plain()} for name, counts in self.columns.items()]

    @classmethod
    def from_plain(cls, data: Any, labels: tuple[Label, ...]) -> Segmented:
        """Read data written by :meth:`to_plain`."""
        columns: dict[str, SegmentCounts] = {}
        for column in data:
            name = column["name"]
            if not isinstance(name, str) or name in columns:
                raise ValueError(f"segment columns must have different names, got {name!r:.80}")
            columns[name] = SegmentCounts.from_plain(column, len(labels), name)
        return cls(labels, columns)

    def __add__(self, other: Segmented) -> Segmented:
        """Merge the segments of disjoint sets of rows."""
        if list(self.columns) != list(other.columns):
            raise ValueError(
                "evaluations must have the same segments to be merged, got "
                f"{list(self.columns)} and {list(other.columns)}"
            )
        labels = merged_labels(self.labels, other.labels)
        theirs = other.arranged(labels).columns
        columns = {}
        for name, counts in self.arranged(labels).columns.items():
            columns[name] = counts + theirs[name]
            check_number(name, len(columns[name].values))
        return Segmented(labels, columns)

    def arranged(self, labels: tuple[Label, ...]) -> Segmented:
        """Return the segments with classes in the order of ``labels``; new labels have no rows."""
        if labels == self.labels:
            # Equal labels may be numbers of another type, so the new labels are used.
            return Segmented(labels, self.columns)
        place = places_of(labels, self.labels)
        return self._with(lambda counts: counts.in_classes(place, len(labels)), labels)

    def checked(self, categories: Mapping[str, Sequence[Any]] | None = None) -> Segmented:
        """Return at most 1,000 segments per column, sorted or in the order of the categories."""
        categories = categories or {}
        columns = {}
        for name, counts in self.columns.items():
            values = counts.values
            check_values(name, values, counts.sizes)
            if name not in categories:
                check_fractions(name, values)
            declared = map(plain_value, categories.get(name, ()))
            first = [values.index(value) for value in declared if value in values]
            order = dict.fromkeys((*first, *value_order(values)))
            columns[name] = counts.take([k for k in order if counts.sizes[k]]).limited()
        return Segmented(self.labels, columns)

    def limited(self) -> Segmented:
        """Return at most 1,000 segments of each column."""
        return self._with(SegmentCounts.limited)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on columns with more than 1,000 values."""
        notes = []
        for name, counts in self.columns.items():
            if Others.OTHERS in counts.values:
                rows = int(counts.sizes[counts.values.index(Others.OTHERS)])
                text = value_texts(counts.values)[-1]
                notes.append(note_of_others(name, None, rows, text))
        return tuple(notes)

    def without_group_score(self) -> Segmented:
        """Return the segments without the moments of the positive group's score."""
        return self._with(SegmentCounts.without_group_score)

    def _with(
        self,
        change: Callable[[SegmentCounts], SegmentCounts],
        labels: tuple[Label, ...] | None = None,
    ) -> Segmented:
        """Apply a function to the counts of each column, and replace the labels if given."""
        columns = {name: change(counts) for name, counts in self.columns.items()}
        return Segmented(self.labels if labels is None else labels, columns)


def count_segments(
    counting: Counting,
    actual: Codes,
    predicted: Codes,
    segments: Sequence[SegmentRows],
    probabilities: Probabilities | None,
    weights: FloatArray | IntArray | None,
    threads: int | None = None,
) -> Segmented:
    """Count rows by segment; the probabilities must have been checked."""
    size = len(counting.labels)
    step = counting.step

    def count(column: SegmentRows, rows: slice) -> SegmentCounts:
        block_weights = take_weights(weights, rows)
        # A cell is the number of a pair of segment and actual class.
        cells = column.codes[rows] * size + actual.block(rows)
        n_cells = len(column.values) * size
        pairs = count_codes(cells * size + predicted.block(rows), n_cells * size, block_weights)
        counts = SegmentCounts(
            column.values, np.bincount(cells, minlength=n_cells), pairs.reshape(n_cells, size)
        )
        if probabilities is None:
            return counts
        block = ClassBlock.sort(cells, n_cells, block_weights)
        values = np.empty((size + (step is not None), len(cells)))
        probabilities.fill(values[:size], rows, block.order)
        classes = block.codes % size
        if size > 2:
            counts = replace(counts, ranks=RankCounts.of_block(block, values[:size], classes))
        if probabilities.ranking_only:
            return counts
        losses = ProperScores.of_block(
            block, values[:size], counting.groups, classes, counting.ordered
        )
        if step is not None:
            values[size] = sum_of_group(values[:size], np.flatnonzero(step.in_positive))
        moments = ScoreMoments.of_block(block, *block.centre(values))
        return replace(counts, losses=losses, moments=moments)

    columns = {}
    for column in segments:
        n_values = len(column.values)
        check_number(column.name, n_values)
        n_rows = min(_ROWS_OF_CELL * n_values * size, _VALUES // (size + 1))
        chunks = list(blocks(len(actual), max(_FEWEST_ROWS, n_rows)))
        columns[column.name] = _merged(in_threads(partial(count, column), chunks, threads))
    return Segmented(counting.labels, columns)


def _merged(parts: Sequence[SegmentCounts]) -> SegmentCounts:
    """Merge the counts of disjoint sets of rows with the same segments."""
    if len(parts) == 1:
        return parts[0]
    losses = [part.losses for part in parts if part.losses is not None]
    ranks = [part.ranks for part in parts if part.ranks is not None]
    moments = [part.moments for part in parts if part.moments is not None]
    # If a part lacks a statistic, it is unknown for all rows together.
    return SegmentCounts(
        parts[0].values,
        reduce(operator.add, [part.rows for part in parts]),
        reduce(operator.add, [part.matrix for part in parts]),
        ProperScores.merge(losses) if len(losses) == len(parts) else None,
        reduce(operator.add, ranks) if len(ranks) == len(parts) else None,
        ScoreMoments.merge(moments) if len(moments) == len(parts) else None,
    )
