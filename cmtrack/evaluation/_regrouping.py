"""Evaluation under a different grouping, from the rows or, if they are missing, the statistics."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.evaluation.compute import scored_step
from cmtrack.evaluation.row_facts import RowFacts
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.statistics.collected import Statistics, collect_rows, with_segments, with_segments_of
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.segmented import Segmented
from cmtrack.statistics.spans import SpanRows

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

_OTHER_ROWS = ("labelled", "target", "labelled_tops", "target_tops")
"""Statistics of the calibration set and the target, whose rows are not evaluated."""
_GROUP_SCORES = ("scores", "score_moments", "labels_variance", "labelled", "target")


class Lost(Enum):
    """A part that was lost when an evaluation was regrouped, or was extended without its rows.

    The value of each enumeration member is the note that users read.
    """

    SCORES = (
        "regrouped without the data: the counts by the positive group's score do not fit this "
        "grouping, so ROC, sPCC and calibrated prevalence of the positive group are missing"
    )
    LOSSES = (
        "regrouped without the data: log loss and Brier score are missing for steps that were not "
        "evaluated before"
    )
    HITS = (
        "regrouped without the data: the calibration of the confidence is missing for steps that "
        "were not evaluated before"
    )
    TOPS = "regrouped without the data: the calibrated prevalence of each class is missing"
    TARGET = (
        "regrouped without the target, whose scores were stored for the former grouping only: the "
        "calibrated prevalence is for the evaluated rows, to which it is cross-fitted"
    )
    HELD = (
        "regrouped without the calibration set, whose scores were stored for the former grouping "
        "only: the calibrated prevalence is cross-fitted on the evaluated rows, so it is close to "
        "their actual share by construction"
    )
    COSTS = "regrouped: the costs name groups that this grouping does not have, so cost/ is missing"
    THRESHOLD = (
        "regrouped: the predictions were made with a threshold for the score of another "
        "positive group"
    )
    ROWS = "regrouped without the rows: the intervals ignore which rows belong together"
    CLUSTERS = (
        "sections or metrics were added without the rows: their intervals ignore which rows belong "
        "together, or are missing"
    )


_STAYS = frozenset({Lost.TARGET, Lost.HELD})


def regroup(evaluation: Evaluation, grouping: Grouping, positive: Label | None) -> Evaluation:
    """Evaluate under a different grouping (see :meth:`Evaluation.regroup`)."""
    if not isinstance(grouping, Grouping):
        raise TypeError(f"grouping must be a Grouping, got {type(grouping).__name__}")
    labels = evaluation.labels
    old = evaluation.scored
    new = scored_step(labels, grouping, positive)
    if positive is not None and len(grouping.labels) == 2:
        grouping = grouping.with_positive(positive)
    lost: set[Lost] = set()
    costs = evaluation.costs
    prices = None
    if costs is not None:
        try:
            prices = costs.matrix(labels, grouping)
        except ValueError:
            costs = None
            lost.add(Lost.COSTS)
    counting = Counting(labels, new, grouping, prices, evaluation.spec.ordered)
    if isinstance(evaluation.rows, SpanRows):
        statistics = evaluation.statistics  # spans have no scores
    elif evaluation.rows is not None:
        statistics = _from_rows(evaluation, evaluation.rows, counting)
        lost |= _lost_other_rows(evaluation.statistics, statistics)
    else:
        statistics = _still_valid(evaluation.statistics, old, new)
        lost |= _lost_without_rows(evaluation, statistics, counting)
    # Parts that an earlier regrouping lost stay lost.
    if statistics.scores is not None or statistics.tops is not None:
        lost |= _STAYS & evaluation.lost
    lost |= {Lost.THRESHOLD} & evaluation.lost
    threshold = evaluation.decision_threshold
    if threshold is not None and not _has_same_positives(old, new):
        threshold = None
        lost.add(Lost.THRESHOLD)
    spec = replace(
        evaluation.spec,
        threshold=threshold,
        costs=costs,
        grouping=grouping,
        positive=None if new is None or new.positive is None else new.labels[new.positive],
    )
    facts = RowFacts(errors=evaluation.of_rows.errors)  # errors of classes, in any grouping equal
    regrouped = type(evaluation)(statistics, spec, evaluation.rows, facts, frozenset(lost))
    return regrouped.with_cluster_errors()


def _has_same_positives(old: ComposedStep | None, new: ComposedStep | None) -> bool:
    if old is None or new is None:
        return False
    return np.array_equal(old.in_positive, new.in_positive)


def _from_rows(evaluation: Evaluation, rows: Predictions, counting: Counting) -> Statistics:
    """Recount the rows, and keep the valid statistics of the calibration set and the target."""
    valid = _still_valid(evaluation.statistics, evaluation.scored, counting.step)
    statistics = collect_rows(rows, counting)
    if not rows.segments:  # rows from files of earlier versions may lack segments
        statistics = with_segments_of(statistics, valid)
    names = (*_OTHER_ROWS, "row_ids", "scaled_rows")
    kept: dict[str, Any] = {name: getattr(valid, name) for name in names}
    return replace(statistics, **kept)


def _lost_other_rows(before: Statistics, after: Statistics) -> set[Lost]:
    """Return the lost part if the calibration set or the target was lost; else an empty set."""
    absent = {
        name
        for name in _OTHER_ROWS
        if getattr(before, name) is not None and getattr(after, name) is None
    }
    if not absent:
        return set()
    return {Lost.TARGET} if absent & {"target", "target_tops"} else {Lost.HELD}


def _lost_without_rows(evaluation: Evaluation, valid: Statistics, counting: Counting) -> set[Lost]:
    """Return the parts that are lost if an evaluation is regrouped without its rows."""
    before = evaluation.statistics
    lost = set()
    if valid.moments is not None:
        if counting.step is None and valid.tops is None:
            lost.add(Lost.TOPS)
        if counting.step is not None and valid.scores is None:
            lost.add(Lost.SCORES)
    losses = before.losses
    if losses is not None and not all(losses.holds(groups) for groups in counting.groups):
        lost.add(Lost.LOSSES)
    hits = before.hits
    if hits is not None and any(hits.of(pairs) is None for pairs in counting.accept):
        lost.add(Lost.HITS)
    if evaluation.cluster_errors is not None:
        lost.add(Lost.ROWS)
    return lost


def _still_valid(
    statistics: Statistics, old: ComposedStep | None, new: ComposedStep | None
) -> Statistics:
    """Return the statistics without those that are invalid for the new step."""
    if new is None:
        return statistics if old is None else _without(statistics, _GROUP_SCORES)
    if old is None or not np.array_equal(old.in_positive, new.in_positive):
        return _without(statistics, (*_GROUP_SCORES, "tops", "labelled_tops", "target_tops"))
    if statistics.scores is None or np.array_equal(old.accept, new.accept):
        return statistics
    inside = new.group_of_class[:, None] == new.group_of_class[None, :]
    if new.accept[inside].all():  # relaxed: the step now accepts all classes of the right group
        return statistics.apply(_all_accepted)
    return _without(statistics, ("scores",))


def _all_accepted(statistics: Statistics) -> Statistics:
    if statistics.scores is None:
        return statistics
    scores = statistics.scores.channels((0, 1), (), (2, 3), ())
    return replace(statistics, scores=scores)


def _without(statistics: Statistics, names: tuple[str, ...]) -> Statistics:
    absent: dict[str, Any] = dict.fromkeys(names)
    without = statistics.apply(lambda sums: replace(sums, **absent))
    if "score_moments" not in names:
        return without
    return with_segments(without, Segmented.without_group_score)
