"""Everything that one evaluation keeps of the data, collected in one pass and merged field by field."""

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
from cmtrack.statistics.counting import Codes, CompactCodes, Counts, blocks, count_pairs
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
"""What files of the first versions do not hold."""
_SHARED = ("labelled", "target", "labelled_tops", "target_tops")


def _check_blocks(name: str, rows: int, size: int) -> None:
    if not rows or rows % size:
        raise ValueError(
            f"{name} must have one row for each of {size} classes, or so many for each fold, got {rows}"
        )


def _in_blocks(scores: ScoreCounts) -> ScoreCounts:
    _check_blocks("labelled", len(scores.counts), 2)
    return scores


def _tops_by_class(data: Any, size: int) -> TopScoreCounts:
    return TopScoreCounts.from_plain(data, size, size)


def _tops_of_one_set(data: Any, size: int) -> TopScoreCounts:
    return TopScoreCounts.from_plain(data, size, 1)


def _tops_in_blocks(data: Any, size: int) -> TopScoreCounts:
    tops = TopScoreCounts.from_plain(data, size)
    _check_blocks("labelled_tops", tops.n_rows, size)
    return tops


def _whole_number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"a number of rows must be a whole number from 0, got {value!r:.40}")
    return value


@dataclass(frozen=True)
class Statistics:
    """The mergeable statistics of one evaluation; what does not apply is None.

    Attributes
    ----------
    matrix : ConfusionMatrix
    digest : LabelDigest
        Of the evaluated labels.
    row_ids : LabelDigest
        Of the ids of the evaluated rows, where they were given.
    moments : ScoreMoments of shape (K, K)
        Of each class's probability in each actual class.
    scores : ScoreCounts with four channels
        Accepted and rejected positives, accepted and rejected negatives, by the positive group's score.
    cross : CrossMoments
        Joint moments of all probabilities, for 3 to 30 classes.
    losses : ProperScores
        Of the classes, and of the groups of each step.
    ranks : RankCounts
        Of the actual class's probability, where there are more than two classes.
    hits : HitCounts
        By the probability that a prediction is a hit: of the classes, and of each step.
    class_scores : ClassScoreCounts
        Each class's probability, for 3 to 30 classes.
    decisions : DecisionCounts
        Decisions under the costs that were given, and the costs that were expected.
    score_moments : ScoreMoments of shape (2, 1)
        Of the positive group's score: negatives, positives.
    labels_variance : float
        Sum of s (1-s) over the positive group's scores.
    tops : TopScoreCounts
        By actual class, where there are more than two classes and no two groups.
    labelled, target : ScoreCounts
        Calibration scores (negatives, positives) and unlabelled target scores, where they were given. Calibration
        scores out of fold with a target that one model scored have two channels for each fold; the counts of a target
        that the models of all folds scored sum to its rows.
    labelled_tops, target_tops : TopScoreCounts
        The same for more than two classes, with a block of K rows for each fold.
    scaled_rows : int, optional
        How many rows of probabilities did not sum to 1 and were scaled, where that is to be told.
    segments : Segmented
        Of the rows by the values of columns, where these were given.
    squares : Statistics
        The same sums with squared sample weights, where weights are fractions.
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
    tops: TopScoreCounts | None = part_by_size(_tops_by_class)
    labelled: ScoreCounts | None = part(
        lambda data, labels: _in_blocks(ScoreCounts.from_plain(data))
    )
    target: ScoreCounts | None = part(lambda data, labels: ScoreCounts.from_plain(data))
    labelled_tops: TopScoreCounts | None = part_by_size(_tops_in_blocks)
    target_tops: TopScoreCounts | None = part_by_size(_tops_of_one_set)
    scaled_rows: int | None = part(lambda data, labels: _whole_number(data))
    segments: Segmented | None = part(Segmented.from_plain)
    squares: Statistics | None = part(lambda data, labels: Statistics.from_plain(data, labels))

    def to_plain(self) -> dict[str, Any]:
        """The parts by name as plain data, without those that do not apply."""
        parts = {item.name: getattr(self, item.name) for item in fields(self)}
        return {
            name: value if isinstance(value, (int, float)) else value.to_plain()
            for name, value in parts.items()
            if value is not None
        }

    @classmethod
    def from_plain(cls, data: Any, labels: tuple[Label, ...]) -> Statistics:
        """Read :meth:`to_plain`."""
        read = {item.name: item.metadata["read"] for item in fields(cls)}
        for name in data:
            if name not in read:
                raise ValueError(
                    f"a statistic must be one that this version knows, got {name!r:.80}"
                )
        return cls(
            **{name: read[name](value, labels) for name, value in data.items()}
        )._with_decisions_as_given()

    def _with_decisions_as_given(self) -> Statistics:
        """Decision values of a file of cmtrack 0.2, which has them between 0 and 1, on their own scale."""
        if not self.ranking_only:
            return self
        scores = self.scores
        if scores is not None and scores.dropped_bits is None:
            scores = scores.of_decisions()
        by_class = self.class_scores
        if by_class is not None and by_class.tables[0].dropped_bits is None:
            by_class = replace(
                by_class, tables=tuple(table.of_decisions() for table in by_class.tables)
            )
        return replace(self, scores=scores, class_scores=by_class)

    @property
    def counts(self) -> Counted[Counts]:
        """The confusion matrix's counts, shape (K, K)."""
        squares = self.matrix if self.squares is None else self.squares.matrix
        return Counted(self.matrix, squares).map(lambda matrix: matrix.counts)

    @property
    def has_sampling_weights(self) -> bool:
        """True if weights are fractions, whose squares are kept."""
        return self.squares is not None

    def counted(self, name: str) -> Counted[Any] | None:
        """One of the statistics with weights and with squared weights; None if it is not kept."""
        sums = getattr(self, name)
        squares = None if self.squares is None else getattr(self.squares, name)
        if sums is None:
            return None
        return Counted(sums, sums if squares is None else squares)

    def apply(self, change: Callable[[Statistics], Statistics]) -> Statistics:
        """Change the sums, and those of squared weights in the same way."""
        squares = None if self.squares is None else change(self.squares)
        return replace(change(self), squares=squares)

    @property
    def ranking_only(self) -> bool:
        """True where the scores are decision values, which rank samples and are no probabilities."""
        counted = (self.scores, self.class_scores, self.ranks)
        return self.moments is None and any(part is not None for part in counted)

    def __add__(self, other: Statistics) -> Statistics:
        """Merge disjoint samples.

        A calibration or target set that is the same on both sides is taken to be one set, used twice; sets that
        differ are put together.
        """
        merged: dict[str, Any] = {}
        for item in fields(self):
            ours, theirs = getattr(self, item.name), getattr(other, item.name)
            if item.name == "scaled_rows":
                merged[item.name] = (ours or 0) + (theirs or 0) or None
                continue
            if item.name == "squares" and (ours or theirs):
                merged[item.name] = self._sums_of_squares() + other._sums_of_squares()
                continue
            if (ours is None) != (theirs is None):
                if item.name in _ADDED:
                    merged[item.name] = None
                    continue
                raise ValueError(
                    f"evaluations must hold the same statistics, one has no {item.name!r}"
                )
            if item.name in _SHARED and ours == theirs:
                merged[item.name] = ours
            else:
                merged[item.name] = None if ours is None else ours + theirs
        return Statistics(**merged)

    def _sums_of_squares(self) -> Statistics:
        """The sums of squared weights: the sums themselves for numbers of equal rows."""
        # Calibration and target sets carry no weights.
        absent: dict[str, Any] = dict.fromkeys(("squares", *_SHARED))
        return replace(self.squares or self, **absent)


def collect_rows(rows: Predictions, counting: Counting) -> Statistics:
    """Collect the statistics of the rows of an evaluation."""
    given = {
        "probabilities": rows.source,
        "weights": rows.design.weights,
        "segments": rows.segments,
    }
    return collect(counting, rows.actual_codes, rows.predicted_codes, **given)[0]


def collect(
    counting: Counting, actual: Codes, predicted: Codes | None, **more: Any
) -> tuple[Statistics, Codes]:
    """Collect the statistics of rows that are in memory, in their order, and their predicted classes.

    The arguments and the errors are those of :func:`count_rows`.
    """
    counts, predicted = count_rows(counting, actual, predicted, **more)
    digest = _digest(actual, counting.labels)
    for one in (counts, counts.get("squares", {})):
        one["digest"] = digest
    return finished(counts), predicted


def with_decisions(statistics: Statistics, rows: object, costs: FloatArray) -> Statistics:
    """The statistics with the decisions under other costs (K, K), if rows with probabilities are available.

    Without them decisions under the same costs stay, and others are left out.
    """
    held = statistics.decisions
    if held is not None and np.array_equal(held.costs, costs):
        return statistics
    if not isinstance(rows, Predictions) or rows.source is None or rows.source.ranking_only:
        return statistics.apply(lambda sums: replace(sums, decisions=None))
    decisions = DecisionCounts.of_rows(rows, costs)
    squares = statistics.squares
    if squares is not None:
        squared = replace(rows, design=replace(rows.design, weights=rows.design.row_weights**2))
        squares = replace(squares, decisions=DecisionCounts.of_rows(squared, costs))
    return replace(statistics, decisions=decisions, squares=squares)


def count_rows(
    counting: Counting,
    actual: Codes,
    predicted: Codes | None,
    *,
    probabilities: Probabilities | None = None,
    weights: FloatArray | IntArray | None = None,
    pairs: Counts | None = None,
    segments: Sequence[SegmentRows] = (),
    exact_rows: int | None = None,
    threads: int | None = None,
) -> tuple[dict[str, Any], Codes]:
    """Count rows: the kernel that every source of rows comes to.

    Parameters
    ----------
    counting : Counting
    actual : Codes of n rows
    predicted : Codes of n rows, or None
        None: the most probable class.
    probabilities : Probabilities of n rows, optional
        They are checked on the way.
    weights : ndarray of shape (n,), optional
    pairs : ndarray of shape (K, K), optional
        The counts of actual and predicted classes, where they are known.
    segments : sequence of SegmentRows
        Each divides the rows.
    exact_rows, threads : int, optional
        As in :class:`cmtrack.statistics.score_pass.ScorePass`.

    Returns
    -------
    kept : dict
        What :func:`finished` makes ``Statistics`` of, all but the digest; see :func:`merged`.
    predicted : Codes of n rows
    """
    labels = counting.labels
    counts: dict[str, Any] = {}
    if probabilities is not None:
        best = CompactCodes(len(actual), len(labels)) if predicted is None else None
        rows = ScorePass(
            counting, actual, probabilities, weights, predicted, best, exact_rows, threads
        )
        counts = rows.run()
        counts["scaled_rows"] = probabilities.scaled_rows
        predicted = Codes(best.array) if best is not None else predicted
    assert predicted is not None  # there are predictions or probabilities
    by_segment = partial(
        count_segments, counting, actual, predicted, segments, probabilities, threads=threads
    )
    if weights is not None and weights.dtype.kind == "f":
        squared = weights**2
        squares = {}
        if probabilities is not None:
            squares = replace(rows, weights=squared, predicted=predicted, best=None).run()
        squares["matrix"] = ConfusionMatrix(
            count_pairs(actual, predicted, len(labels), squared), labels
        )
        counts["squares"] = squares
        if segments:
            squares["segments"] = by_segment(weights=squared)
    if pairs is None:
        pairs = count_pairs(actual, predicted, len(labels), weights)
    for own in (pairs, pairs.base):
        if own is not None:
            own.setflags(write=False)
    counts["matrix"] = ConfusionMatrix(pairs, labels)
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
    """The statistics of each segment, or of the rows outside each.

    ``step``: the two groups of the whole whose positive one is scored.
    ``places``: of the segments that are asked for; by default all.
    """
    assert whole.segments is not None  # the caller's choice
    labels, counts = whole.matrix.labels, whole.segments.columns[column]
    counts = counts.rests() if outside else counts
    counts = counts if places is None else counts.take(places)
    squares: Sequence[Statistics | None] = [None] * len(counts.values)
    if whole.squares is not None:
        squares = of_segments(whole.squares, column, step, places, outside)
    scores = None if step is None else counts.group_scores(step.in_positive)
    digests = LabelDigest.unordered_each(counts.rows.reshape(-1, len(labels)), labels)
    out = []
    for k, (segment, squared) in enumerate(zip(counts.each(), squares, strict=True)):
        parts: dict[str, Any] = {"losses": segment.losses, "ranks": segment.ranks}
        if segment.moments is not None:
            parts["moments"] = segment.moments.components(slice(0, len(labels)))
        if scores is not None:
            parts["score_moments"] = ScoreMoments(
                *(getattr(scores[0], name)[k] for name in MOMENTS)
            )
            parts["labels_variance"] = float(scores[1][k])
        out.append(
            Statistics(
                ConfusionMatrix(segment.matrix, labels), digests[k], squares=squared, **parts
            )
        )
    return out


def with_segments(statistics: Statistics, change: Callable[[Segmented], Segmented]) -> Statistics:
    """The statistics with other segments, of squared weights too."""

    def changed(sums: Statistics) -> Statistics:
        if sums.segments is None:
            return sums
        return replace(sums, segments=change(sums.segments))

    return statistics.apply(changed)


def with_segments_of(statistics: Statistics, other: Statistics) -> Statistics:
    """Copy segments, and those of squared weights, from other statistics of the same rows."""
    squares = statistics.squares
    if squares is not None and other.squares is not None:
        squares = replace(squares, segments=other.squares.segments)
    return replace(statistics, segments=other.segments, squares=squares)


def merged(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Merge the tallies of two sets of rows; neither may be used afterwards."""
    return {
        name: merged(value, theirs[name]) if isinstance(value, dict) else value + theirs[name]
        for name, value in ours.items()
    }


def finished(kept: dict[str, Any]) -> Statistics:
    """Finish the statistics from the kernel's tallies."""
    done = {
        name: value.result() if hasattr(value, "result") else value for name, value in kept.items()
    }
    if "squares" in done:
        done["squares"] = finished(done["squares"])
    return Statistics(**done | {"scaled_rows": done.get("scaled_rows") or None})


def _digest(actual: Codes, labels: Sequence[Label]) -> LabelDigest:
    hashes = label_hashes(labels)
    parts = (
        LabelDigest.from_hashes(hashes.take(actual.block(rows))) for rows in blocks(len(actual))
    )
    return reduce(operator.add, parts)


def group_scores(probabilities: FloatArray, step: ComposedStep) -> FloatArray:
    """The positive group's score: the sum of its classes' probabilities, shape (n,).

    See :func:`cmtrack.statistics.score_pass.sum_of_group`.
    """
    return sum_of_group(probabilities.T, np.flatnonzero(step.in_positive))


def is_positive(codes: IntArray, step: ComposedStep) -> IntArray:
    """1 where the class belongs to the positive group, else 0."""
    return step.in_positive[codes].astype(np.int64)


def accepted_within(actual: IntArray, probabilities: FloatArray, step: ComposedStep) -> BoolArray:
    """True where the most probable class of a row's own group is accepted for it, shape (n,); the first one on ties."""
    block = ClassBlock.sort(actual, len(step.group_of_class))
    accepted = np.empty(len(actual), dtype=np.bool_)
    accepted[block.order] = accepted_in_block(
        block, probabilities.T.take(block.order, axis=1), step
    )
    return accepted
