"""Functions that reorder the classes in statistics and rows.

Values that belong to a class are moved. All other values stay the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cmtrack.grouping import Label
from cmtrack.statistics.actual_class import ProperScores, RankCounts, in_order
from cmtrack.statistics.class_scores import ClassScoreCounts, HitCounts
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.confusion import places_of as places_of
from cmtrack.statistics.counting import Codes
from cmtrack.statistics.decisions import DecisionCounts
from cmtrack.statistics.inputs import IntArray
from cmtrack.statistics.moments import POWERS, CrossMoments, ScoreMoments
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.segmented import SegmentCounts, Segmented
from cmtrack.statistics.spans import SpanRows


def ordered_statistics(statistics: Statistics, labels: tuple[Label, ...]) -> Statistics:
    """Return the statistics with their classes in the order of ``labels``."""
    return statistics.apply(lambda sums: _ordered(sums, labels))


def _ordered(sums: Statistics, labels: tuple[Label, ...]) -> Statistics:
    """Return sums of weights or of squared weights with classes in the order of ``labels``."""
    place = places_of(sums.matrix.labels, labels)
    moved: dict[str, Any] = {"matrix": sums.matrix.arranged(labels)}
    for name, move in _MOVES.items():
        part = getattr(sums, name)
        if part is not None:
            moved[name] = move(part, place)
    if sums.segments is not None:
        columns = {name: _segments(counts, place) for name, counts in sums.segments.columns.items()}
        moved["segments"] = Segmented(labels, columns)
    return replace(sums, **moved)


def ordered_rows(rows: Predictions | SpanRows, labels: tuple[Label, ...]) -> Predictions | SpanRows:
    """Return the rows with their classes in the order of ``labels``."""
    if isinstance(rows, SpanRows):
        return replace(rows, matches=_ordered_predictions(rows.matches, labels))
    return _ordered_predictions(rows, labels)


def _ordered_predictions(rows: Predictions, labels: tuple[Label, ...]) -> Predictions:
    place = places_of(rows.labels, labels)
    number = np.argsort(place)
    source = rows.source
    if source is not None:
        source = source.in_order(place)
    return replace(
        rows,
        labels=labels,
        actual_codes=_codes(rows.actual_codes, number),
        predicted_codes=_codes(rows.predicted_codes, number),
        source=source,
    )


def _codes(codes: Codes, number: IntArray) -> Codes:
    """Replace each class number k with ``number[k]``."""
    if codes.place is None:
        return Codes(codes.raw, 0, number)
    return replace(codes, place=number[codes.place])


def _moments(moments: ScoreMoments, classes: IntArray, scores: IntArray) -> ScoreMoments:
    """Return the moments with the given classes and scores, in this order."""
    n = moments.n[classes]
    present = None
    if moments.present is not None:
        present = np.flatnonzero(n)
        classes = classes[present]
    powers = (moments.rows(name, classes)[:, scores] for name in POWERS)
    return ScoreMoments(n, *powers, present=present)


def _cross(cross: CrossMoments, place: IntArray) -> CrossMoments:
    # The features are 1, the scores and their squares.
    features = np.concatenate(([0], 1 + place, 1 + len(place) + place))
    return CrossMoments(cross.sums[np.ix_(place, features, features)])


def _losses(losses: ProperScores, classes: IntArray, place: IntArray) -> ProperScores:
    """Return the losses with the given classes, and with their groups in the order ``place``."""
    if (place != np.arange(len(place))).any():
        losses = losses.without_ranked()
    groups = np.empty_like(losses.groups)
    for moved, step in zip(groups, losses.groups, strict=True):
        moved[:] = in_order(step[place])
    return ProperScores(
        groups,
        losses.n[classes],
        losses.impossible[:, classes],
        losses.mean[classes],
        losses.m2[classes],
    )


def _ranks(ranks: RankCounts, classes: IntArray) -> RankCounts:
    return RankCounts.of_array(ranks.counts[classes])


def _hits(hits: HitCounts, place: IntArray) -> HitCounts:
    return HitCounts(hits.accept[:, place][:, :, place], hits.tables)


def _class_scores(scores: ClassScoreCounts, place: IntArray) -> ClassScoreCounts:
    tables = [scores.tables[k] for k in place]
    if scores.by_actual_class:
        channels = [(k,) for k in place.tolist()]
        tables = [table.channels(*channels) for table in tables]
    return ClassScoreCounts(tuple(tables))


def _decisions(decisions: DecisionCounts, place: IntArray) -> DecisionCounts:
    pairs = np.ix_(place, place)
    return DecisionCounts(
        decisions.costs[pairs], decisions.counts[pairs], decisions.mean[place], decisions.m2[place]
    )


_MOVES: dict[str, Callable[[Any, IntArray], Any]] = {
    "moments": lambda moments, place: _moments(moments, place, place),
    "cross": _cross,
    "losses": lambda losses, place: _losses(losses, place, place),
    "ranks": _ranks,
    "hits": _hits,
    "class_scores": _class_scores,
    "decisions": _decisions,
    # In ``tops``, table rows are actual classes. A target has no actual classes.
    "tops": lambda tops, place: tops.arranged(place, by_class=True),
    "labelled_tops": lambda tops, place: tops.arranged(place, by_class=True),
    "target_tops": lambda tops, place: tops.arranged(place, by_class=False),
}
"""Functions that reorder the classes of a statistic; other statistics need no reordering."""


def _segments(counts: SegmentCounts, place: IntArray) -> SegmentCounts:
    size = len(place)
    classes = (size * np.arange(len(counts.values))[:, None] + place).ravel()
    parts: dict[str, Any] = {}
    if counts.losses is not None:
        parts["losses"] = _losses(counts.losses, classes, place)
    if counts.ranks is not None:
        parts["ranks"] = _ranks(counts.ranks, classes)
    if counts.moments is not None:
        # The score of the positive group is after the classes and stays last.
        scores = np.concatenate((place, np.arange(size, counts.moments.mean.shape[1])))
        parts["moments"] = _moments(counts.moments, classes, scores)
    matrix = counts.matrix[classes][:, place]
    return SegmentCounts(counts.values, counts.rows[classes], matrix, **parts)
