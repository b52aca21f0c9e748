"""An evaluation under another grouping: from its rows where it has them, else from its statistics alone."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.evaluation.compute import scored_step
from cmtrack.evaluation.row_facts import RowFacts
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.statistics.collected import Statistics, collect_rows, with_segments_of
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.inputs import FloatArray
from cmtrack.statistics.predictions import Predictions
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
    CLUSTERS = (
        "sections were added without the rows: the intervals of their metrics do not know which rows belong together"
    )


_STAYS = frozenset({Lost.TARGET, Lost.HELD})


def regroup(evaluation: Evaluation, grouping: Grouping, positive: Label | None) -> Evaluation:
    """Evaluate under another grouping (see :meth:`Evaluation.regroup`)."""
    if not isinstance(grouping, Grouping):
        raise TypeError(f"grouping must be a Grouping, got {type(grouping).__name__}")
    labels = evaluation.labels
    new = scored_step(labels, grouping, positive)
    old = None
    if evaluation.none is None or evaluation.grouping is not None:
        old = scored_step(labels, evaluation.grouping, evaluation.positive)
    name = None if new is None or new.positive is None else new.labels[new.positive]
    if positive is not None and len(grouping.labels) == 2:
        grouping = grouping.with_positive(positive)
    kept = evaluation.statistics
    lost: set[Lost] = set()
    costs, prices = evaluation.costs, None
    if costs is not None:
        try:
            prices = costs.matrix(labels, grouping)
        except ValueError:
            costs = None
            lost.add(Lost.COSTS)
    if isinstance(evaluation.rows, SpanRows):
        statistics = kept  # spans have no scores
    elif evaluation.rows is not None:
        statistics, away = _from_rows(evaluation.rows, kept, old, new, grouping, prices)
        lost |= away
    else:
        statistics, away = _carry(kept, old, new)
        lost |= away
        counting = Counting(labels, grouping=grouping)
        if kept.losses is not None and not all(map(kept.losses.holds, counting.groups)):
            lost.add(Lost.LOSSES)
        if kept.hits is not None and any(kept.hits.of(pairs) is None for pairs in counting.accept):
            lost.add(Lost.HITS)
        if evaluation.cluster_errors is not None:
            lost.add(Lost.ROWS)
    if statistics.scores is not None or statistics.tops is not None:  # what an earlier regrouping lost stays lost
        lost |= _STAYS & evaluation.lost
    threshold = evaluation.decision_threshold
    if threshold is not None and not _same_groups(old, new):
        threshold = None
        lost.add(Lost.THRESHOLD)
    elif Lost.THRESHOLD in evaluation.lost:
        lost.add(Lost.THRESHOLD)
    return replace(
        evaluation,
        statistics=statistics,
        spec=replace(evaluation.spec, threshold=threshold, costs=costs, grouping=grouping, positive=name),
        remarks=(),
        lost=frozenset(lost),
        of_rows=RowFacts(errors=evaluation.of_rows.errors),  # of classes: no grouping changes them
        kept_numbers=None,
    ).with_cluster_errors()


def _same_groups(old: ComposedStep | None, new: ComposedStep | None) -> bool:
    """True where the positive group consists of the same classes."""
    return old is not None and new is not None and np.array_equal(old.in_positive, new.in_positive)


def _from_rows(
    rows: Predictions,
    kept: Statistics,
    old: ComposedStep | None,
    new: ComposedStep | None,
    grouping: Grouping,
    prices: FloatArray | None,
) -> tuple[Statistics, set[Lost]]:
    """All statistics anew; calibration and target scores, which are not among the rows, if still valid.

    So do segments where the rows do not hold theirs, as those of files of earlier versions.
    """
    valid = _still_valid(kept, old, new)
    held: dict[str, Any] = {name: getattr(valid, name) for name in _HELD}
    away = {name for name in _HELD if held[name] is None and getattr(kept, name) is not None}
    lost = {Lost.TARGET if away & {"target", "target_tops"} else Lost.HELD} if away else set()
    held |= {"row_ids": kept.row_ids, "scaled_rows": kept.scaled_rows}
    made = collect_rows(rows, Counting(rows.labels, new, grouping, prices))
    return replace(made if rows.segments else with_segments_of(made, valid), **held), lost


def _carry(statistics: Statistics, old: ComposedStep | None, new: ComposedStep | None) -> tuple[Statistics, set[Lost]]:
    """Carry over the statistics that still hold, and record the losses."""
    kept = _still_valid(statistics, old, new)
    if kept.moments is None:
        return kept, set()
    if new is None:
        return kept, set() if kept.tops is not None else {Lost.TOPS}
    return kept, set() if kept.scores is not None else {Lost.SCORES}


def _still_valid(statistics: Statistics, old: ComposedStep | None, new: ComposedStep | None) -> Statistics:
    if new is None:
        return statistics if old is None else _without(statistics, _GROUP_SCORES)
    if old is None or not np.array_equal(old.in_positive, new.in_positive):
        return _without(statistics, (*_GROUP_SCORES, "tops", "labelled_tops", "target_tops"))
    if statistics.scores is None or np.array_equal(old.accept, new.accept):
        return statistics
    inside = new.group_of_class[:, None] == new.group_of_class[None, :]
    if new.accept[inside].all():  # relaxed: what was rejected is accepted now
        return _all_accepted(statistics)
    return _without(statistics, ("scores",))


def _all_accepted(statistics: Statistics) -> Statistics:
    squares = None if statistics.squares is None else _all_accepted(statistics.squares)
    scores = None if statistics.scores is None else statistics.scores.channels((0, 1), (), (2, 3), ())
    return replace(statistics, scores=scores, squares=squares)


def _without(statistics: Statistics, names: tuple[str, ...]) -> Statistics:
    squares = None if statistics.squares is None else _without(statistics.squares, names)
    left_out: dict[str, Any] = dict.fromkeys(names)
    if "score_moments" in names and statistics.segments is not None:
        left_out["segments"] = statistics.segments.without_group_score()
    return replace(statistics, squares=squares, **left_out)
