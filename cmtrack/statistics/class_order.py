"""Statistics and rows with their classes reordered: per-class values move, all others stay."""

from __future__ import annotations

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
from cmtrack.statistics.top_scores import TopScoreCounts


def ordered_statistics(statistics: Statistics, labels: tuple[Label, ...]) -> Statistics:
    """The statistics with their labels in this order."""
    return statistics.apply(lambda sums: _ordered(sums, labels))


def _ordered(kept: Statistics, labels: tuple[Label, ...]) -> Statistics:
    place = places_of(kept.matrix.labels, labels)
    moved: dict[str, Any] = {"matrix": kept.matrix.arranged(labels)}
    if kept.moments is not None:
        moved["moments"] = _moments(kept.moments, place, place)
    if kept.cross is not None:
        features = np.concatenate(([0], 1 + place, 1 + len(place) + place))
        moved["cross"] = CrossMoments(kept.cross.sums[place][:, features][:, :, features])
    if kept.losses is not None:
        moved["losses"] = _losses(kept.losses, place, place)
    if kept.ranks is not None:
        moved["ranks"] = RankCounts.of_array(kept.ranks.counts[place])
    if kept.hits is not None:
        moved["hits"] = HitCounts(kept.hits.accept[:, place][:, :, place], kept.hits.tables)
    if kept.class_scores is not None:
        tables = [kept.class_scores.tables[k] for k in place]
        if kept.class_scores.by_actual_class:
            tables = [table.channels(*((k,) for k in place.tolist())) for table in tables]
        moved["class_scores"] = ClassScoreCounts(tuple(tables))
    if kept.decisions is not None:
        pairs = np.ix_(place, place)
        own = kept.decisions
        moved["decisions"] = DecisionCounts(
            own.costs[pairs], own.counts[pairs], own.mean[place], own.m2[place]
        )
    for name in ("tops", "labelled_tops", "target_tops"):
        part: TopScoreCounts | None = getattr(kept, name)
        if part is not None:
            # rows are actual classes, for each fold
            moved[name] = part.arranged(place, name != "target_tops")
    if kept.segments is not None:
        columns = {name: _segments(one, place) for name, one in kept.segments.columns.items()}
        moved["segments"] = Segmented(labels, columns)
    return replace(kept, **moved)


def ordered_rows(rows: Predictions | SpanRows, labels: tuple[Label, ...]) -> Predictions | SpanRows:
    """The rows with their labels in this order."""
    if isinstance(rows, SpanRows):
        matches = ordered_rows(rows.matches, labels)
        assert isinstance(matches, Predictions)  # as they were
        return replace(rows, matches=matches)
    place = places_of(rows.labels, labels)
    code = np.argsort(place)
    source = rows.source
    return replace(
        rows,
        labels=labels,
        actual_codes=_codes(rows.actual_codes, code),
        predicted_codes=_codes(rows.predicted_codes, code),
        source=None if source is None else source.in_order(place),
    )


def _codes(codes: Codes, code: IntArray) -> Codes:
    return (
        Codes(codes.raw, 0, code)
        if codes.place is None
        else replace(codes, place=code[codes.place])
    )


def _moments(own: ScoreMoments, classes: IntArray, scores: IntArray) -> ScoreMoments:
    n = own.n[classes]
    present = None if own.present is None else np.flatnonzero(n)
    held = classes if present is None else classes[present]
    return ScoreMoments(n, *(own.rows(name, held)[:, scores] for name in POWERS), present=present)


def _losses(own: ProperScores, classes: IntArray, place: IntArray) -> ProperScores:
    groups = np.array([in_order(step[place]) for step in own.groups], dtype=np.int64).reshape(
        own.groups.shape
    )
    return ProperScores(
        groups, own.n[classes], own.impossible[:, classes], own.mean[classes], own.m2[classes]
    )


def _segments(own: SegmentCounts, place: IntArray) -> SegmentCounts:
    size = len(place)
    classes = (size * np.arange(len(own.values))[:, None] + place).ravel()
    moments = own.moments
    if moments is not None:
        # the group's score stays last
        scores = np.concatenate((place, np.arange(size, moments.mean.shape[1])))
        moments = _moments(moments, classes, scores)
    return SegmentCounts(
        own.values,
        own.rows[classes],
        own.matrix[classes][:, place],
        None if own.losses is None else _losses(own.losses, classes, place),
        None if own.ranks is None else RankCounts.of_array(own.ranks.counts[classes]),
        moments,
    )
