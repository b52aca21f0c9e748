"""Statistics of segments: rows divided by the values of a column, counted in the same pass as all rows.

Rows of a segment and an actual class are counted as a class of their own, so that the kernel's blocks serve. Counts of
all segments sum to those of all rows, bit for bit; moments do but for rounding.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.statistics import plain
from cmtrack.statistics.actual_class import ProperScores, RankCounts
from cmtrack.statistics.confusion import merged_labels, places_of
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.counting import Codes, Counts, blocks, count_codes
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import ClassBlock, ScoreMoments
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

MOMENTS = ("n", "mean", "m2", "m3", "m4")
_FEWEST_ROWS, _VALUES, _ROWS_OF_CELL = 1 << 16, 1 << 23, 64
"""Rows at a time: so many of each segment and class that its sums, and not the arrays of all of them, take the time, as
far as their probabilities are not too many for the memory."""


def _plain(value: Any) -> Any:
    """A segment's value as plain data."""
    if isinstance(value, Others):
        return {"others": True}
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _value(data: Any, inside: bool = False) -> Any:
    """Read :func:`_plain`; a list is of crossed columns."""
    if data == {"others": True} and isinstance(data, dict):
        return Others.OTHERS
    if isinstance(data, list) and len(data) > 1 and not inside:
        return tuple(_value(one, True) for one in data)
    if (
        data is None
        or isinstance(data, (str, int))
        or (isinstance(data, float) and math.isfinite(data))
    ):
        return data
    raise ValueError(
        f"a segment must be a text, number or boolean, or a list of them, got {data!r:.80}"
    )


@dataclass(frozen=True, eq=False)
class SegmentCounts(Record):
    """Statistics of each segment of one column, with C = S K classes: those of the first segment first.

    ``values``, tuple of length S: as of :class:`~cmtrack.statistics.segment_values.SegmentRows`, and ``Others.OTHERS``.
    ``rows``, shape (C,): rows, whatever their weight.
    ``matrix``, shape (C, K): rows, or weight, by predicted class.
    ``ranks``, RankCounts of shape (C, K).
    ``moments``, ScoreMoments of shape (C, K), or (C, K + 1): of each class's probability and, where there are two
        groups, of the positive group's score.
    """

    values: tuple[Any, ...]
    rows: IntArray
    matrix: Counts
    losses: ProperScores | None = None
    ranks: RankCounts | None = None
    moments: ScoreMoments | None = None

    def to_plain(self) -> dict[str, Any]:
        """The values and the arrays by name as plain data."""
        out = {
            "values": [_plain(value) for value in self.values],
            **plain.encode_fields(self, ("rows", "matrix")),
        }
        if self.ranks is not None:
            out["ranks"] = plain.encode_array(self.ranks.counts)
        for name in ("losses", "moments"):
            if getattr(self, name) is not None:
                out[name] = plain.encode_fields(
                    getattr(self, name), None if name == "losses" else MOMENTS
                )
        return out

    @classmethod
    def from_plain(cls, data: Any, size: int, column: str) -> SegmentCounts:
        """Read :meth:`to_plain`, of classes of this number and a column of this name."""
        values = data["values"]
        if not isinstance(values, list) or not 0 < len(values) <= MAX_SEGMENTS:
            raise ValueError(
                f"{column!r:.80} must have 1 to {MAX_SEGMENTS} segments, got {values!r:.80}"
            )
        read = tuple(map(_value, values))
        if len(set(read)) != len(read):
            raise ValueError(f"segments of {column!r:.80} must differ, got {values!r:.80}")
        n, ranks = len(read) * size, None
        if "ranks" in data:
            ranks = RankCounts.of_array(plain.decode_counts(data["ranks"], (n, size)))
        moments = ScoreMoments.from_plain(data["moments"], n) if "moments" in data else None
        if moments is not None and moments.mean.shape[1] not in (size, size + 1):
            raise ValueError(
                f"moments of segments must be of {size} scores, got {moments.mean.shape[1]}"
            )
        rows, matrix = (
            plain.decode_counts(data["rows"], (n,)),
            plain.decode_counts(data["matrix"], (n, size)),
        )
        losses = ProperScores.from_plain(data["losses"], n, size) if "losses" in data else None
        return cls(read, rows, matrix, losses, ranks, moments)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.matrix.shape[1])

    @property
    def sizes(self) -> IntArray:
        """Rows of each segment, shape (S,)."""
        return np.asarray(self.rows.reshape(len(self.values), -1).sum(axis=1))

    def take(self, places: Sequence[int] | IntArray) -> SegmentCounts:
        """The counts of some segments; those at the place -1 have no rows."""
        chosen = np.asarray(places, dtype=np.int64)
        classes = chosen[:, None] * self.n_classes + np.arange(self.n_classes)
        classes[chosen < 0] = -1
        classes = classes.ravel()
        rows = self.rows[classes]
        rows[classes < 0] = 0
        matrix = self.matrix[classes]
        matrix[classes < 0] = 0
        return SegmentCounts(
            tuple(self.values[k] for k in chosen.tolist()),
            rows,
            matrix,
            None if self.losses is None else self.losses.select(classes),
            None if self.ranks is None else self.ranks.select(classes),
            None if self.moments is None else self.moments.select(classes),
        )

    def each(self) -> Iterator[SegmentCounts]:
        """The counts of each segment alone."""
        without_ranks = replace(self, ranks=None)
        table = None if self.ranks is None else self.ranks.counts  # made once for all segments
        for k in range(len(self.values)):
            segment = without_ranks.take([k])
            if table is not None:
                classes = slice(k * self.n_classes, (k + 1) * self.n_classes)
                segment = replace(segment, ranks=RankCounts.of_array(table[classes]))
            yield segment

    def rests(self) -> SegmentCounts:
        """The counts of the rows outside each segment.

        Moments merge and do not subtract: outside a segment are its neighbour, and all outside both of them.
        """
        size = len(self.values)
        if size < 2:
            raise ValueError(f"the rest of a segment needs two segments at least, got {size}")
        places = np.arange(size + size % 2)
        places[size:] = -1  # no rows
        neighbours = places.reshape(-1, 2)[:, ::-1].ravel()[:size]
        outside = self.take(neighbours)
        if size > 2:
            pairs = _merged(
                [
                    self.take(places[0::2]),
                    replace(self.take(places[1::2]), values=self.values[0::2]),
                ]
            )
            outside = _merged([pairs.rests().take(places[:size] // 2), outside])
        return replace(outside, values=self.values)

    def group_scores(self, positive: BoolArray) -> tuple[ScoreMoments, FloatArray] | None:
        """Moments of the positive group's score by segment, negatives before positives; None where it has none.

        Parameters
        ----------
        positive : ndarray of shape (K,), bool
            The classes of the positive group.

        Returns
        -------
        moments : ScoreMoments of shape (S, 2, 1)
        variances : ndarray of shape (S,)
            Sums of s (1-s) over the scores.
        """
        size, moments = self.n_classes, self.moments
        if moments is None or moments.mean.shape[1] <= size:
            return None
        scores, starts = moments.component(size), size * np.arange(len(self.values))
        sides = [
            [scores.select(starts + c) for c in np.flatnonzero(positive == side)]
            for side in (False, True)
        ]
        both = [
            ScoreMoments.merge(side) if side else ScoreMoments.empty(len(starts), 1)
            for side in sides
        ]
        stacked = ScoreMoments(
            *(np.stack([getattr(side, name) for side in both], axis=1) for name in MOMENTS)
        )
        spread = stacked.n[:, :, None] * stacked.mean * (1 - stacked.mean) - stacked.m2
        return stacked, np.asarray(spread.sum(axis=(1, 2)))

    def spread(self, values: tuple[Any, ...]) -> SegmentCounts:
        """The same with the segments of these values, in this order; those that are not there have no rows."""
        if values == self.values:
            return self
        place = {value: s for s, value in enumerate(self.values)}
        return replace(self.take([place.get(value, -1) for value in values]), values=values)

    def __add__(self, other: SegmentCounts) -> SegmentCounts:
        """Merge disjoint samples; segments of equal values are one."""
        held = set(self.values)
        values = (*self.values, *(value for value in other.values if value not in held))
        return _merged([self.spread(values), other.spread(values)])

    def limited(self) -> SegmentCounts:
        """The largest segments, the others together as the last; the same where there are at most 1,000."""
        if len(self.values) <= MAX_SEGMENTS:
            return self
        places = [k for k, value in enumerate(self.values) if value is not Others.OTHERS]
        largest_places = [places[k] for k in largest(self.sizes[places])]
        others = set(range(len(self.values))).difference(largest_places)
        return self.take([*largest_places, -1]).with_last(_merged([self.take([k]) for k in others]))

    def with_last(self, last: SegmentCounts) -> SegmentCounts:
        """The same with the rows of one segment as those of the others, the last one."""
        values = (*self.values[:-1], Others.OTHERS)
        return _merged(
            [replace(self, values=values), replace(last, values=(Others.OTHERS,)).spread(values)]
        )

    def in_classes(self, place: IntArray, size: int) -> SegmentCounts:
        """The same with more classes, ``place`` those of the present ones; of counts without probabilities."""
        segments, old = len(self.values), self.n_classes
        rows = np.zeros((segments, size), dtype=self.rows.dtype)
        matrix = np.zeros((segments, size, size), dtype=self.matrix.dtype)
        rows[:, place] = self.rows.reshape(segments, old)
        matrix[np.ix_(np.arange(segments), place, place)] = self.matrix.reshape(segments, old, old)
        return SegmentCounts(self.values, rows.ravel(), matrix.reshape(-1, size))

    def without_group_score(self) -> SegmentCounts:
        """The same without the moments of the positive group's score."""
        moments = self.moments
        return replace(
            self, moments=None if moments is None else moments.components(slice(0, self.n_classes))
        )


@dataclass(frozen=True, eq=False)
class Segmented(Record):
    """Statistics of the segments of each column.

    ``labels``, tuple of length K.
    """

    labels: tuple[Label, ...]
    columns: dict[str, SegmentCounts]

    def to_plain(self) -> list[dict[str, Any]]:
        """The counts of each column as plain data."""
        return [{"name": name, **one.to_plain()} for name, one in self.columns.items()]

    @classmethod
    def from_plain(cls, data: Any, labels: tuple[Label, ...]) -> Segmented:
        """Read :meth:`to_plain`."""
        columns: dict[str, SegmentCounts] = {}
        for column in data:
            name = column["name"]
            if not isinstance(name, str) or name in columns:
                raise ValueError(f"segment columns must have names of their own, got {name!r:.80}")
            columns[name] = SegmentCounts.from_plain(column, len(labels), name)
        return cls(labels, columns)

    def __add__(self, other: Segmented) -> Segmented:
        """Merge disjoint samples."""
        if list(self.columns) != list(other.columns):
            raise ValueError(
                f"evaluations must have the same segments to be merged, got {list(self.columns)} and "
                f"{list(other.columns)}"
            )
        labels = merged_labels(self.labels, other.labels)
        ours, theirs = self.arranged(labels).columns, other.arranged(labels).columns
        merged = {name: own + theirs[name] for name, own in ours.items()}
        for name, own in merged.items():
            check_number(name, len(own.values))
        return Segmented(labels, merged)

    def arranged(self, labels: tuple[Label, ...]) -> Segmented:
        """The same with all of ``labels`` in their order; labels that are new have no rows."""
        if labels == self.labels:  # maybe as numbers of another kind
            return Segmented(labels, self.columns)
        place = places_of(labels, self.labels)
        return Segmented(
            labels, {name: one.in_classes(place, len(labels)) for name, one in self.columns.items()}
        )

    def checked(self, categories: Mapping[str, Sequence[Any]] | None = None) -> Segmented:
        """The segments in sorted order, or in that of the categories, at most 1,000 of each column."""
        columns = {}
        for name, one in self.columns.items():
            check_values(name, one.values, one.sizes)
            if name not in (categories or {}):
                check_fractions(name, one.values)
            chosen = [plain_value(value) for value in (categories or {}).get(name, ())]
            first = [one.values.index(value) for value in chosen if value in one.values]
            rest = [k for k in value_order(one.values) if k not in set(first)]
            columns[name] = one.take([k for k in (*first, *rest) if one.sizes[k]]).limited()
        return Segmented(self.labels, columns)

    def limited(self) -> Segmented:
        """At most 1,000 segments of each column."""
        return Segmented(self.labels, {name: one.limited() for name, one in self.columns.items()})

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on columns with more than 1,000 values."""
        held = [(name, one) for name, one in self.columns.items() if Others.OTHERS in one.values]
        return tuple(
            note_of_others(
                name,
                None,
                int(one.sizes[one.values.index(Others.OTHERS)]),
                value_texts(one.values)[-1],
            )
            for name, one in held
        )

    def without_group_score(self) -> Segmented:
        """The same without the moments of the positive group's score."""
        return Segmented(
            self.labels, {name: one.without_group_score() for name, one in self.columns.items()}
        )


def count_segments(
    counting: Counting,
    actual: Codes,
    predicted: Codes,
    segments: Sequence[SegmentRows],
    probabilities: Probabilities | None,
    weights: FloatArray | IntArray | None,
    threads: int | None = None,
) -> Segmented:
    """Count rows by segment; the probabilities were checked before."""
    size, step = len(counting.labels), counting.step

    def count(column: SegmentRows, rows: slice) -> SegmentCounts:
        own_weights = None if weights is None else weights[rows]
        codes = column.codes[rows] * size + actual.block(rows)
        n_codes = len(column.values) * size
        pairs = count_codes(codes * size + predicted.block(rows), n_codes * size, own_weights)
        counts = SegmentCounts(
            column.values, np.bincount(codes, minlength=n_codes), pairs.reshape(n_codes, size)
        )
        if probabilities is None:
            return counts
        block = ClassBlock.sort(codes, n_codes, own_weights)
        values = np.empty((size + (step is not None), len(codes)))
        probabilities.fill(values[:size], rows, block.order)
        classes = block.codes % size
        if size > 2:
            counts = replace(counts, ranks=RankCounts.of_block(block, values[:size], classes))
        if probabilities.ranking_only:
            return counts
        losses = ProperScores.of_block(block, values[:size], counting.groups, classes)
        if step is not None:
            values[size] = sum_of_group(values[:size], np.flatnonzero(step.in_positive))
        moments = ScoreMoments.of_block(block, *block.centre(values))
        return replace(counts, losses=losses, moments=moments)

    counts = {}
    for column in segments:
        check_number(column.name, len(column.values))
        wanted = min(_ROWS_OF_CELL * len(column.values) * size, _VALUES // (size + 1))
        chunks = list(blocks(len(actual), max(_FEWEST_ROWS, wanted)))
        counts[column.name] = _merged(in_threads(partial(count, column), chunks, threads))
    return Segmented(counting.labels, counts)


def _merged(parts: Sequence[SegmentCounts]) -> SegmentCounts:
    """Parts with the same segments in one."""
    if len(parts) == 1:
        return parts[0]
    losses = [part.losses for part in parts if part.losses is not None]
    ranks = [part.ranks for part in parts if part.ranks is not None]
    moments = [part.moments for part in parts if part.moments is not None]
    # A statistic that a part lacks is not known of all rows.
    return SegmentCounts(
        parts[0].values,
        reduce(operator.add, [part.rows for part in parts]),
        reduce(operator.add, [part.matrix for part in parts]),
        ProperScores.merge(losses) if len(losses) == len(parts) else None,
        reduce(operator.add, ranks) if len(ranks) == len(parts) else None,
        ScoreMoments.merge(moments) if len(moments) == len(parts) else None,
    )
