"""Statistics of segments: rows divided by the values of a column, counted in the same pass as all rows.

Rows of a segment and an actual class are counted as a class of their own, so that the kernel's blocks serve. Counts of
all segments sum to those of all rows, bit for bit; moments do but for rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import ComposedStep, Label
from cmtrack.statistics.actual_class import ProperScores, RankCounts
from cmtrack.statistics.counting import Codes, Counts, blocks, count_codes
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.moments import ClassBlock, ScoreMoments
from cmtrack.statistics.probabilities import Probabilities
from cmtrack.statistics.score_pass import sum_of_group

_ROWS = 1 << 17
"""Rows at a time: arrays of all segments are merged once for each."""


@dataclass(frozen=True, eq=False)
class SegmentRows:
    """The segment of each row, by one column.

    Attributes
    ----------
    name : str
    values : tuple of length S
        Texts, numbers, booleans; None for rows without a value.
    codes : ndarray of shape (n,), int64
    """

    name: str
    values: tuple[Any, ...]
    codes: IntArray


@dataclass(frozen=True, eq=False)
class SegmentCounts:
    """Statistics of each segment of one column, with C = S K classes: those of the first segment first.

    Attributes
    ----------
    values : tuple of length S
    rows : ndarray of shape (C,)
        Rows, whatever their weight.
    matrix : ndarray of shape (C, K)
        Rows, or weight, by predicted class.
    losses : ProperScores of C classes
    ranks : RankCounts of shape (C, K)
    moments : ScoreMoments of shape (C, K), or (C, K + 1)
        Of each class's probability and, where there are two groups, of the positive group's score.
    """

    values: tuple[Any, ...]
    rows: IntArray
    matrix: Counts
    losses: ProperScores | None = None
    ranks: RankCounts | None = None
    moments: ScoreMoments | None = None

    @property
    def n_classes(self) -> int:
        """K."""
        return self.matrix.shape[1]

    @property
    def sizes(self) -> IntArray:
        """Rows of each segment, shape (S,)."""
        return np.asarray(self.rows.reshape(len(self.values), -1).sum(axis=1))

    def spread(self, values: tuple[Any, ...]) -> SegmentCounts:
        """The same with the segments of these values, in this order; those that are not there have no rows."""
        if values == self.values:
            return self
        place = {value: s for s, value in enumerate(values)}
        size = self.n_classes
        own = np.array([place[value] for value in self.values], dtype=np.int64)
        classes = (own[:, None] * size + np.arange(size)).ravel()

        def wide(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
            whole = np.zeros((len(values) * size, *array.shape[1:]), dtype=array.dtype)
            whole[classes] = array
            return whole

        losses, ranks, moments = self.losses, self.ranks, self.moments
        if losses is not None:
            impossible = wide(losses.impossible.T).T
            losses = ProperScores(losses.groups, wide(losses.n), impossible, wide(losses.mean), wide(losses.m2))
        if ranks is not None:
            ranks = RankCounts(wide(ranks.counts))
        if moments is not None:
            moments = ScoreMoments(*(wide(getattr(moments, name)) for name in ("n", "mean", "m2", "m3", "m4")))
        return SegmentCounts(values, wide(self.rows), wide(self.matrix), losses, ranks, moments)

    def __add__(self, other: SegmentCounts) -> SegmentCounts:
        """Merge disjoint samples; segments of equal values are one."""
        values = (*self.values, *(value for value in other.values if value not in set(self.values)))
        a, b = self.spread(values), other.spread(values)
        return SegmentCounts(
            values,
            a.rows + b.rows,
            a.matrix + b.matrix,
            None if a.losses is None or b.losses is None else a.losses + b.losses,
            None if a.ranks is None or b.ranks is None else a.ranks + b.ranks,
            None if a.moments is None or b.moments is None else ScoreMoments.merge([a.moments, b.moments]),
        )

    def of(self, s: int) -> SegmentCounts:
        """The counts of one segment."""
        part = slice(s * self.n_classes, (s + 1) * self.n_classes)
        losses, ranks, moments = self.losses, self.ranks, self.moments
        if losses is not None:
            losses = ProperScores(
                losses.groups, losses.n[part], losses.impossible[:, part], losses.mean[part], losses.m2[part]
            )
        if moments is not None:
            moments = ScoreMoments(*(getattr(moments, name)[part] for name in ("n", "mean", "m2", "m3", "m4")))
        return SegmentCounts(
            self.values[s : s + 1],
            self.rows[part],
            self.matrix[part],
            losses,
            None if ranks is None else RankCounts(ranks.counts[part]),
            moments,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SegmentCounts) and (
            self.values == other.values
            and np.array_equal(self.rows, other.rows)
            and np.array_equal(self.matrix, other.matrix)
            and self.losses == other.losses
            and self.ranks == other.ranks
            and _same(self.moments, other.moments)
        )

    __hash__ = None  # type: ignore[assignment]


def _same(ours: ScoreMoments | None, theirs: ScoreMoments | None) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return all(np.array_equal(getattr(ours, name), getattr(theirs, name)) for name in ("n", "mean", "m2", "m3", "m4"))


@dataclass(frozen=True, eq=False)
class Segmented:
    """Statistics of the segments of each column.

    Attributes
    ----------
    columns : dict of str to SegmentCounts
    """

    columns: dict[str, SegmentCounts]

    def __add__(self, other: Segmented) -> Segmented:
        """Merge disjoint samples.

        Raises
        ------
        ValueError
            If they are divided by other columns.
        """
        if list(self.columns) != list(other.columns):
            raise ValueError(
                f"evaluations must have the same segments to be merged, got {list(self.columns)} and "
                f"{list(other.columns)}"
            )
        return Segmented({name: own + other.columns[name] for name, own in self.columns.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Segmented) and self.columns == other.columns

    __hash__ = None  # type: ignore[assignment]


def count_segments(
    actual: Codes,
    predicted: Codes,
    labels: tuple[Label, ...],
    segments: Sequence[SegmentRows],
    *,
    probabilities: Probabilities | None = None,
    step: ComposedStep | None = None,
    groups: IntArray,
    weights: FloatArray | IntArray | None = None,
) -> Segmented:
    """Count rows by segment.

    Parameters
    ----------
    actual, predicted : Codes of n rows
    labels : tuple of length K
    segments : sequence of SegmentRows
    probabilities : Probabilities of n rows, optional
        They are checked already.
    step : ComposedStep, optional
        The two groups whose positive one is scored.
    groups : ndarray of shape (S, K)
        The steps of a grouping, as :func:`cmtrack.statistics.actual_class.partitions` gives them.
    weights : ndarray of shape (n,), optional
    """
    found = {}
    for column in segments:
        parts = [
            _count(actual, predicted, len(labels), column, rows, probabilities, step, groups, weights)
            for rows in blocks(len(actual), _ROWS)
        ]
        found[column.name] = _merged(parts)
    return Segmented(found)


def _merged(parts: Sequence[SegmentCounts]) -> SegmentCounts:
    """Parts with the same segments in one."""
    first = parts[0]
    if len(parts) == 1:
        return first
    return replace(
        first,
        rows=sum(part.rows for part in parts),
        matrix=sum(part.matrix for part in parts),
        losses=None if first.losses is None else ProperScores.merge([part.losses for part in parts if part.losses]),
        ranks=None if first.ranks is None else RankCounts(sum(part.ranks.counts for part in parts if part.ranks)),
        moments=None if first.moments is None else ScoreMoments.merge([p.moments for p in parts if p.moments]),
    )


def _count(
    actual: Codes,
    predicted: Codes,
    size: int,
    column: SegmentRows,
    rows: slice,
    probabilities: Probabilities | None,
    step: ComposedStep | None,
    groups: IntArray,
    weights: FloatArray | IntArray | None,
) -> SegmentCounts:
    own = None if weights is None else weights[rows]
    codes = column.codes[rows] * size + actual.block(rows)
    classes = len(column.values) * size
    numbers = np.bincount(codes, minlength=classes)
    matrix = count_codes(codes * size + predicted.block(rows), classes * size, own).reshape(classes, size)
    kept: dict[str, Any] = {}
    if probabilities is not None:
        block = ClassBlock.sort(codes, classes, own)
        values = np.empty((size + (step is not None), rows.stop - rows.start))
        probabilities.fill(values[:size], rows, block.order)
        within = block.codes % size
        if size > 2:
            kept["ranks"] = RankCounts.of_block(block, values[:size], within)
        if not probabilities.ranking_only:
            kept["losses"] = ProperScores.of_block(block, values[:size], groups, within)
            if step is not None:
                values[size] = sum_of_group(values[:size], np.flatnonzero(step.in_positive))
            kept["moments"] = ScoreMoments.of_block(block, *block.centre(values))
    return SegmentCounts(column.values, numbers, matrix, **kept)
