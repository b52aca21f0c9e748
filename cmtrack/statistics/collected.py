"""All statistics of an evaluation, computed in one pass over the data and merged by field.

The kernel :func:`count_rows` returns tallies that can be merged, and :func:`finished` converts the
merged tallies to ``Statistics``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from cmtrack.grouping import ComposedStep, Label
from cmtrack.statistics.actual_class import ProperScores, RankCounts
from cmtrack.statistics.class_scores import ClassScoreCounts, HitCounts
from cmtrack.statistics.confusion import ConfusionMatrix
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.counting import (
    Codes,
    CompactCodes,
    Counts,
    SparseCounts,
    blocks,
    count_pairs,
)
from cmtrack.statistics.decisions import DecisionCounts
from cmtrack.statistics.digest import LabelDigest, label_hashes
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.moments import MOMENTS, ClassBlock, CrossMoments, ScoreMoments
from cmtrack.statistics.plain import part, part_by_size
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.probabilities import Probabilities
from cmtrack.statistics.score_pass import ScorePass, accepted_in_block, sum_of_group
from cmtrack.statistics.scores import ScoreCounts
from cmtrack.statistics.segment_values import SegmentRows
from cmtrack.statistics.segmented import Segmented, count_segments
from cmtrack.statistics.top_scores import TopScoreCounts

_ADDED = ("losses", "ranks", "hits", "class_scores", "decisions")
"""Statistics that may be missing in files of the first versions."""
_SHARED = ("labelled", "target", "labelled_tops", "target_tops")
"""Statistics of calibration and target sets; several evaluations may use the same set."""


def _check_blocks(name: str, rows: int, size: int) -> None:
    if not rows or rows % size:
        raise ValueError(
            f"{name} must have one row for each of {size} classes, or for each class and fold, got "
            f"{rows}"
        )


def _labelled(data: Any, labels: Any) -> ScoreCounts:
    scores = ScoreCounts.from_plain(data)
    _check_blocks("labelled", len(scores.counts), 2)
    return scores


def _labelled_tops(data: Any, size: int) -> TopScoreCounts:
    tops = TopScoreCounts.from_plain(data, size)
    _check_blocks("labelled_tops", tops.n_rows, size)
    return tops


def _whole_number(value: Any, labels: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"a number of rows must be a whole number from 0, got {value!r:.40}")
    return value


@dataclass(frozen=True)
class Statistics:
    """All statistics of one evaluation; a statistic that does not apply to it is None.

    Attributes
    ----------
    matrix : ConfusionMatrix
    digest : LabelDigest
        Digest of the evaluated labels.
    row_ids : LabelDigest
        Digest of the ids of the evaluated rows, if ids were given.
    moments : ScoreMoments of shape (K, K)
        Moments of the probability of each class, by actual class.
    scores : ScoreCounts with four channels
        Counts by the positive group's score. The channels are accepted positives, rejected
        positives, accepted negatives and rejected negatives.
    cross : CrossMoments
        Joint moments of all probabilities, for 3 to 30 classes.
    losses : ProperScores
        Losses for the classes, and for the groups in each step.
    ranks : RankCounts
        Ranks of the actual class's probability, for more than two classes.
    hits : HitCounts
        Counts of hits for the classes and for each step, by the probability that a prediction is a
        hit.
    class_scores : ClassScoreCounts
        Counts by the probability of each class, for 3 to 30 classes.
    decisions : DecisionCounts
        Counts of the decisions with the lowest expected cost, and their costs.
    score_moments : ScoreMoments of shape (2, 1)
        Moments of the positive group's score, for negatives and for positives.
    labels_variance : float
        Sum of s (1-s) over all rows, where s is the positive group's score.
    tops : TopScoreCounts
        Counts by highest probability and actual class. These scores are counted only for more than
        two classes that are not grouped into two groups.
    labelled, target : ScoreCounts
        Counts of calibration scores, with the channels negatives and positives, and counts of
        unlabelled target scores, if given. If one model scored the target, out-of-fold calibration
        scores have two channels for each fold. If the models of all folds scored the target, the
        counts of the target still sum to its number of rows.
    labelled_tops, target_tops : TopScoreCounts
        The same as ``labelled`` and ``target`` for more than two classes, with a block of K table
        rows for each fold.
    scaled_rows : int, optional
        Number of rows whose probabilities were scaled because they did not sum to 1; None if no
        warning is needed.
    segments : Segmented
        Statistics for each value of the segment columns, if segments were given.
    squares : Statistics
        The same statistics computed with squared sample weights, if the weights are sampling
        weights.
    """

    matrix: ConfusionMatrix = part(ConfusionMatrix.from_plain, MISSING)
    digest: LabelDigest = part(lambda data, labels: LabelDigest.parse(data), MISSING)
    row_ids: LabelDigest | None = part(lambda data, labels: LabelDigest.parse(data))
    moments: ScoreMoments | None = part_by_size(
        lambda data, size: ScoreMoments.from_plain(data, size, True)
    )
    scores: ScoreCounts | None = part(lambda data, labels: ScoreCounts.from_plain(data, 4))
    cross: CrossMoments | None = part_by_size(CrossMoments.from_plain)
    losses: ProperScores | None = part_by_size(
        lambda data, size: ProperScores.from_plain(data, size, size)
    )
    ranks: RankCounts | None = part_by_size(RankCounts.from_plain)
    hits: HitCounts | None = part_by_size(HitCounts.from_plain)
    class_scores: ClassScoreCounts | None = part_by_size(ClassScoreCounts.from_plain)
    decisions: DecisionCounts | None = part_by_size(DecisionCounts.from_plain)
    score_moments: ScoreMoments | None = part(lambda data, labels: ScoreMoments.from_plain(data, 2))
    labels_variance: float | None = part(lambda data, labels: float(data))
    tops: TopScoreCounts | None = part_by_size(
        lambda data, size: TopScoreCounts.from_plain(data, size, size)
    )
    labelled: ScoreCounts | None = part(_labelled)
    target: ScoreCounts | None = part(lambda data, labels: ScoreCounts.from_plain(data))
    labelled_tops: TopScoreCounts | None = part_by_size(_labelled_tops)
    target_tops: TopScoreCounts | None = part_by_size(
        lambda data, size: TopScoreCounts.from_plain(data, size, 1)
    )
    scaled_rows: int | None = part(_whole_number)
    segments: Segmented | None = part(Segmented.from_plain)
    squares: Statistics | None = part(lambda data, labels: Statistics.from_plain(data, labels))

    def to_plain(self) -> dict[str, Any]:
        """Return all statistics that are not None by name as plain data."""
        data = {}
        for name in (item.name for item in fields(self)):
            value = getattr(self, name)
            if isinstance(value, (int, float)):
                data[name] = value
            elif value is not None:
                data[name] = value.to_plain()
        return data

    @classmethod
    def from_plain(cls, data: Any, labels: tuple[Label, ...]) -> Statistics:
        """Read data written by :meth:`to_plain`."""
        readers = {item.name: item.metadata["read"] for item in fields(cls)}
        for name in data:
            if name not in readers:
                raise ValueError(
                    f"a statistic must be one that this version knows, got {name!r:.80}"
                )
        parts = {name: readers[name](value, labels) for name, value in data.items()}
        return cls(**parts)._with_decisions_as_given()

    def _with_decisions_as_given(self) -> Statistics:
        """Restore the original decision values; cmtrack 0.2 mapped them to [0, 1] in files."""
        if not self.ranking_only:
            return self
        scores = self.scores
        if scores is not None and scores.dropped_bits is None:
            scores = scores.of_decisions()
        by_class = self.class_scores
        if by_class is not None and by_class.tables[0].dropped_bits is None:
            tables = tuple(table.of_decisions() for table in by_class.tables)
            by_class = replace(by_class, tables=tables)
        return replace(self, scores=scores, class_scores=by_class)

    @property
    def matrices(self) -> Counted[ConfusionMatrix]:
        """The confusion matrix."""
        return Counted(self.matrix, self.matrix if self.squares is None else self.squares.matrix)

    @property
    def counts(self) -> Counted[Counts]:
        """Counts of the confusion matrix, shape (K, K)."""
        return self.matrices.map(lambda matrix: matrix.counts)

    @property
    def tables(self) -> Counted[Counts | SparseCounts]:
        """Counts of the confusion matrix as they are stored, which may be a sparse table."""
        return self.matrices.map(lambda matrix: matrix.stored)

    @property
    def has_sampling_weights(self) -> bool:
        """True if the rows have sampling weights, which need sums of squared weights."""
        return self.squares is not None

    def counted(self, name: str) -> Counted[Any] | None:
        """Return a statistic summed with weights and with squared weights; None if missing."""
        sums = getattr(self, name)
        squares = None if self.squares is None else getattr(self.squares, name)
        if sums is None:
            return None
        return Counted(sums, sums if squares is None else squares)

    def apply(self, change: Callable[[Statistics], Statistics]) -> Statistics:
        """Apply a function to the statistics, and to the statistics with squared weights."""
        squares = None if self.squares is None else change(self.squares)
        return replace(change(self), squares=squares)

    @property
    def ranking_only(self) -> bool:
        """True if the scores are decision values, which rank rows but are not probabilities."""
        if self.moments is not None:
            return False
        return any(part is not None for part in (self.scores, self.class_scores, self.ranks))

    def __add__(self, other: Statistics) -> Statistics:
        """Merge the statistics of disjoint sets of rows.

        If both sides use the same calibration or target set, the set is kept once. Two different
        sets are combined.
        """
        merged: dict[str, Any] = {}
        for name in (item.name for item in fields(self)):
            if name not in ("scaled_rows", "squares"):
                merged[name] = _merged_part(name, getattr(self, name), getattr(other, name))
        merged["scaled_rows"] = (self.scaled_rows or 0) + (other.scaled_rows or 0) or None
        if self.squares or other.squares:
            merged["squares"] = self._sums_of_squares() + other._sums_of_squares()
        return Statistics(**merged)

    def _sums_of_squares(self) -> Statistics:
        """Return statistics with squared weights; for frequencies, they equal the plain sums."""
        # Calibration and target sets have no weights.
        absent: dict[str, Any] = dict.fromkeys(("squares", *_SHARED))
        return replace(self.squares or self, **absent)


def collect_rows(rows: Predictions, counting: Counting) -> Statistics:
    """Compute the statistics of the rows of an evaluation."""
    return collect(
        counting,
        rows.actual_codes,
        rows.predicted_codes,
        probabilities=rows.source,
        weights=rows.design.weights,
        segments=rows.segments,
    )[0]


def collect(
    counting: Counting, actual: Codes, predicted: Codes | None, **options: Any
) -> tuple[Statistics, Codes]:
    """Compute the statistics of rows in memory, and the predicted class of each row.

    See :func:`count_rows` for the arguments and the exceptions.
    """
    counts, predicted = count_rows(counting, actual, predicted, **options)
    digest = _digest(actual, counting.labels)
    for sums in (counts, counts.get("squares", {})):
        sums["digest"] = digest
    return finished(counts), predicted


def with_decisions(statistics: Statistics, rows: object, costs: FloatArray) -> Statistics:
    """Return the statistics with the decisions recomputed for ``costs`` (K, K).

    Decisions can be recomputed only from rows with probabilities. Without such rows, the decisions
    are kept if the costs have not changed, and are dropped otherwise.
    """
    decisions = statistics.decisions
    if decisions is not None and np.array_equal(decisions.costs, costs):
        return statistics
    if not isinstance(rows, Predictions) or rows.source is None or rows.source.ranking_only:
        return statistics.apply(lambda sums: replace(sums, decisions=None))
    squares = statistics.squares
    if squares is not None:
        squared = replace(rows, design=replace(rows.design, weights=rows.design.row_weights**2))
        squares = replace(squares, decisions=DecisionCounts.of_rows(squared, costs))
    return replace(statistics, decisions=DecisionCounts.of_rows(rows, costs), squares=squares)


def count_rows(
    counting: Counting,
    actual: Codes,
    predicted: Codes | None,
    *,
    probabilities: Probabilities | None = None,
    weights: FloatArray | IntArray | None = None,
    pairs: Counts | SparseCounts | None = None,
    segments: Sequence[SegmentRows] = (),
    exact_rows: int | None = None,
    threads: int | None = None,
) -> tuple[dict[str, Any], Codes]:
    """Count rows and return tallies; every source of rows uses this kernel.

    Parameters
    ----------
    counting : Counting
    actual : Codes of n rows
    predicted : Codes of n rows, or None
        None means the most probable class of each row.
    probabilities : Probabilities of n rows, optional
        Probabilities, which are checked while they are read from memory.
    weights : ndarray of shape (n,), optional
    pairs : ndarray or SparseCounts of shape (K, K), optional
        The counts by actual and predicted class, if they are already known.
    segments : sequence of SegmentRows
        Columns that divide the rows.
    exact_rows, threads : int, optional
        See :class:`cmtrack.statistics.score_pass.ScorePass`.

    Returns
    -------
    kept : dict
        Tallies for :func:`finished` and :func:`merged`. Only the digest is missing.
    predicted : Codes of n rows
    """
    labels = counting.labels
    counts: dict[str, Any] = {}
    first_pass: ScorePass | None = None
    if probabilities is not None:
        best = CompactCodes(len(actual), len(labels)) if predicted is None else None
        first_pass = ScorePass(
            counting, actual, probabilities, weights, predicted, best, exact_rows, threads
        )
        counts = first_pass.run()
        counts["scaled_rows"] = probabilities.scaled_rows
        if best is not None:
            predicted = Codes(best.array)
    if predicted is None:
        raise ValueError("rows need predicted classes or probabilities, got neither")
    by_segment = partial(
        count_segments, counting, actual, predicted, segments, probabilities, threads=threads
    )
    if weights is not None and weights.dtype.kind == "f":
        squared = weights**2
        squares: dict[str, Any] = {}
        if first_pass is not None:
            # The first pass found the predicted classes, so the second pass reuses them.
            squares = replace(first_pass, weights=squared, predicted=predicted, best=None).run()
        squared_pairs = count_pairs(actual, predicted, len(labels), squared)
        squares["matrix"] = ConfusionMatrix.of_table(squared_pairs, labels)
        if segments:
            squares["segments"] = by_segment(weights=squared)
        counts["squares"] = squares
    if pairs is None:
        pairs = count_pairs(actual, predicted, len(labels), weights)
    # ConfusionMatrix does not copy read-only counts.
    for array in (pairs, getattr(pairs, "base", None)):
        if isinstance(array, np.ndarray):
            array.setflags(write=False)
    counts["matrix"] = ConfusionMatrix.of_table(pairs, labels)
    if segments:
        counts["segments"] = by_segment(weights=weights)
    return counts, predicted


def of_segments(
    whole: Statistics,
    column: str,
    step: ComposedStep | None,
    places: Sequence[int] | None = None,
    outside: bool = False,
) -> list[Statistics]:
    """Return one ``Statistics`` for each segment, or for the rows outside each segment.

    ``step``: the step that divides the classes into a positive and a negative group.
    ``places``: indices of the requested segments; by default all segments.
    """
    if whole.segments is None:
        raise ValueError("the statistics must have segments, got none")
    labels = whole.matrix.labels
    counts = whole.segments.columns[column]
    if outside:
        counts = counts.rests()
    if places is not None:
        counts = counts.take(places)
    squares: Sequence[Statistics | None] = [None] * len(counts.values)
    if whole.squares is not None:
        squares = of_segments(whole.squares, column, step, places, outside)
    scores = None if step is None else counts.group_scores(step.in_positive)
    digests = LabelDigest.unordered_each(counts.rows.reshape(-1, len(labels)), labels)
    segments = []
    for k, (segment, squared) in enumerate(zip(counts.each(), squares, strict=True)):
        parts: dict[str, Any] = {"losses": segment.losses, "ranks": segment.ranks}
        if segment.moments is not None:
            parts["moments"] = segment.moments.components(slice(0, len(labels)))
        if scores is not None:
            moments, variances = scores
            parts["score_moments"] = ScoreMoments(*(getattr(moments, name)[k] for name in MOMENTS))
            parts["labels_variance"] = float(variances[k])
        matrix = ConfusionMatrix(segment.matrix, labels)
        segments.append(Statistics(matrix, digests[k], squares=squared, **parts))
    return segments


def with_segments(statistics: Statistics, change: Callable[[Segmented], Segmented]) -> Statistics:
    """Apply a function to the segments, and to the segments computed with squared weights."""

    def changed(sums: Statistics) -> Statistics:
        if sums.segments is None:
            return sums
        return replace(sums, segments=change(sums.segments))

    return statistics.apply(changed)


def with_segments_of(statistics: Statistics, other: Statistics) -> Statistics:
    """Copy the segments from other statistics of the same rows."""
    squares = statistics.squares
    if squares is not None and other.squares is not None:
        squares = replace(squares, segments=other.squares.segments)
    return replace(statistics, segments=other.segments, squares=squares)


def merged(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Merge the tallies of two sets of rows; do not use either tally afterwards."""
    return {
        name: merged(value, theirs[name]) if isinstance(value, dict) else value + theirs[name]
        for name, value in ours.items()
    }


def _merged_part(name: str, ours: Any, theirs: Any) -> Any:
    """Merge one statistic of two disjoint sets of rows."""
    if name in _SHARED and ours == theirs:
        return ours
    if ours is not None and theirs is not None:
        return ours + theirs
    if (ours is None) != (theirs is None) and name not in _ADDED:
        raise ValueError(f"evaluations must contain the same statistics, one has no {name!r}")
    # A file of an earlier version may lack the statistic, and then it is unknown for the union.
    return None


def finished(kept: dict[str, Any]) -> Statistics:
    """Convert the kernel's tallies to ``Statistics``."""
    parts: dict[str, Any] = {}
    for name, value in kept.items():
        if name == "squares":
            parts[name] = finished(value)
        else:
            parts[name] = value.result() if hasattr(value, "result") else value
    # If no row was scaled, a warning is not needed.
    parts["scaled_rows"] = parts.get("scaled_rows") or None
    return Statistics(**parts)


def _digest(actual: Codes, labels: Sequence[Label]) -> LabelDigest:
    hashes = label_hashes(labels)
    parts = (
        LabelDigest.from_hashes(hashes.take(actual.block(rows))) for rows in blocks(len(actual))
    )
    return reduce(operator.add, parts)


def group_scores(probabilities: FloatArray, step: ComposedStep) -> FloatArray:
    """Add up the probabilities of the positive group's classes, shape (n,).

    See :func:`cmtrack.statistics.score_pass.sum_of_group`.
    """
    return sum_of_group(probabilities.T, np.flatnonzero(step.in_positive))


def is_positive(codes: IntArray, step: ComposedStep) -> IntArray:
    """Return 1 for each class in the positive group and 0 for each other class."""
    return step.in_positive[codes].astype(np.int64)


def accepted_within(actual: IntArray, probabilities: FloatArray, step: ComposedStep) -> BoolArray:
    """Return whether the most probable class in the actual group is accepted, shape (n,).

    If several classes are equally probable, the first one is used.
    """
    block = ClassBlock.sort(actual, len(step.group_of_class))
    values = probabilities.T.take(block.order, axis=1)
    accepted = np.empty(len(actual), dtype=np.bool_)
    accepted[block.order] = accepted_in_block(block, values, step)
    return accepted
