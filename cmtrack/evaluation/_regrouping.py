"""An evaluation under another grouping: from its rows where it has them, else from its statistics alone."""

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
from cmtrack.statistics.segmented import Segmented
from cmtrack.statistics.spans import SpanRows

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

_HELD = ("labelled", "target", "labelled_tops", "target_tops")
_GROUP_SCORES = ("scores", "score_moments", "labels_variance", "labelled", "target")


class Lost(Enum):
    """A loss of a regrouping, or of adding something without the rows; the value is the note for people."""

    SCORES = (
        "regrouped without the data: the counts by the positive group's score do not fit this grouping, so ROC, "
        "sPCC and calibrated prevalence of the positive group are left out"
    )
    LOSSES = (
        "regrouped without the data: log loss and Brier score of the groups of steps that were not evaluated before "
        "are left out"
    )
    HITS = (
        "regrouped without the data: the calibration of the confidence in steps that were not evaluated before is left "
        "out"
    )
    TOPS = "regrouped without the data: the calibrated prevalence of each class is left out"
    TARGET = (
        "regrouped without the target, whose scores were kept for the former grouping only: the calibrated prevalence "
        "is that of the evaluated rows, to which it is cross-fitted"
    )
    HELD = (
        "regrouped without the calibration set, whose scores were kept for the former grouping only: the calibrated "
        "prevalence is cross-fitted on the evaluated rows and close to their actual share by construction"
    )
    COSTS = "regrouped: the costs are of groups that this grouping does not have, so that cost/ is left out"
    THRESHOLD = "regrouped: the predictions are those that a threshold of another positive group's score made"
    ROWS = "regrouped without the rows: the intervals do not know which rows belong together"
    CLUSTERS = "sections were added without the rows: the intervals of their metrics do not know which rows belong together"


_STAYS = frozenset({Lost.TARGET, Lost.HELD})


def regroup(evaluation: Evaluation, grouping: Grouping, positive: Label | None) -> Evaluation:
    """Evaluate under another grouping (see :meth:`Evaluation.regroup`)."""
    if not isinstance(grouping, Grouping):
        raise TypeError(f"grouping must be a Grouping, got {type(grouping).__name__}")
    labels, before, rows = evaluation.labels, evaluation.statistics, evaluation.rows
    old, new = evaluation.scored, scored_step(labels, grouping, positive)
    name = None if new is None or new.positive is None else new.labels[new.positive]
    if positive is not None and len(grouping.labels) == 2:
        grouping = grouping.with_positive(positive)
    lost: set[Lost] = set()
    costs, prices = evaluation.costs, None
    if costs is not None:
        try:
            prices = costs.matrix(labels, grouping)
        except ValueError:
            costs = None
            lost.add(Lost.COSTS)
    counting, valid = Counting(labels, new, grouping, prices), _still_valid(before, old, new)
    if isinstance(rows, SpanRows):
        statistics = before  # spans have no scores
    elif rows is not None:
        statistics = collect_rows(rows, counting)
        # as those of files of earlier versions, rows may lack their segments; the sets are not among the rows
        statistics = statistics if rows.segments else with_segments_of(statistics, valid)
        held = {name: getattr(valid, name) for name in (*_HELD, "row_ids", "scaled_rows")}
        statistics = replace(statistics, **held)
        away = {name for name in _HELD if held[name] is None and getattr(before, name) is not None}
        if away:
            lost.add(Lost.TARGET if away & {"target", "target_tops"} else Lost.HELD)
    else:
        statistics = valid
        if valid.moments is not None and (valid.tops if new is None else valid.scores) is None:
            lost.add(Lost.TOPS if new is None else Lost.SCORES)
        if before.losses is not None and not all(map(before.losses.holds, counting.groups)):
            lost.add(Lost.LOSSES)
        if before.hits is not None and any(
            before.hits.of(pairs) is None for pairs in counting.accept
        ):
            lost.add(Lost.HITS)
        if evaluation.cluster_errors is not None:
            lost.add(Lost.ROWS)
    # what an earlier regrouping lost stays lost
    if statistics.scores is not None or statistics.tops is not None:
        lost |= _STAYS & evaluation.lost
    threshold = evaluation.decision_threshold
    if threshold is not None and (
        old is None or new is None or not np.array_equal(old.in_positive, new.in_positive)
    ):
        threshold = None
        lost.add(Lost.THRESHOLD)
    lost |= {Lost.THRESHOLD} & evaluation.lost
    spec = replace(
        evaluation.spec, threshold=threshold, costs=costs, grouping=grouping, positive=name
    )
    facts = RowFacts(errors=evaluation.of_rows.errors)  # of classes: no grouping changes them
    return type(evaluation)(statistics, spec, rows, facts, frozenset(lost)).with_cluster_errors()


def _still_valid(
    statistics: Statistics, old: ComposedStep | None, new: ComposedStep | None
) -> Statistics:
    if new is None:
        return statistics if old is None else _without(statistics, _GROUP_SCORES)
    if old is None or not np.array_equal(old.in_positive, new.in_positive):
        return _without(statistics, (*_GROUP_SCORES, "tops", "labelled_tops", "target_tops"))
    if statistics.scores is None or np.array_equal(old.accept, new.accept):
        return statistics
    inside = new.group_of_class[:, None] == new.group_of_class[None, :]
    if new.accept[inside].all():  # relaxed: what was rejected is accepted now
        return statistics.apply(_all_accepted)
    return _without(statistics, ("scores",))


def _all_accepted(statistics: Statistics) -> Statistics:
    scores = (
        None if statistics.scores is None else statistics.scores.channels((0, 1), (), (2, 3), ())
    )
    return replace(statistics, scores=scores)


def _without(statistics: Statistics, names: tuple[str, ...]) -> Statistics:
    absent: dict[str, Any] = dict.fromkeys(names)
    without = statistics.apply(lambda sums: replace(sums, **absent))
    if "score_moments" not in names:
        return without
    return with_segments(without, Segmented.without_group_score)
