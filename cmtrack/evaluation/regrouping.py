"""An evaluation under another grouping, from its statistics alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.evaluation.steps import scored_step
from cmtrack.grouping import ComposedStep, Grouping, Label
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.collected import Statistics

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

_GROUP_SCORES = ("scores", "score_moments", "labels_variance", "labelled", "target")


def regroup(evaluation: Evaluation, grouping: Grouping, positive: Label | None) -> Evaluation:
    """See :meth:`Evaluation.regroup`."""
    if not isinstance(grouping, Grouping):
        raise TypeError(f"grouping must be a Grouping, got {type(grouping).__name__}")
    labels = evaluation.labels
    new = scored_step(labels, grouping, positive)
    old = scored_step(labels, evaluation.grouping, evaluation.positive)
    name = None if new is None or new.positive is None else new.labels[new.positive]
    if positive is not None and len(grouping.labels) == 2:
        grouping = grouping.with_positive(positive)
    statistics, note = _carry(evaluation.statistics, old, new)
    return replace(
        evaluation,
        statistics=statistics,
        grouping=grouping,
        positive=name,
        notes=(note,) if note else (),
    )


def _carry(statistics: Statistics, old: ComposedStep | None, new: ComposedStep | None) -> tuple[Statistics, str]:
    """The statistics that still hold, and what is lost."""
    if statistics.moments is None or new is None:
        return statistics if new is not None or old is None else _without(statistics, _GROUP_SCORES), ""
    if old is None or not np.array_equal(_members(old), _members(new)):
        return _without(statistics, (*_GROUP_SCORES, "tops", "labelled_tops", "target_tops")), (
            "regrouped without the data: the positive group's scores were not kept, so its ROC, sPCC and "
            "calibrated prevalence are left out"
        )
    if np.array_equal(old.accept, new.accept):
        return statistics, ""
    if statistics.scores is None:
        return statistics, ""
    inside = new.group_of_class[:, None] == new.group_of_class[None, :]
    if new.accept[inside].all():  # relaxed: what was rejected is accepted now
        return _map_scores(statistics, lambda scores: _all_accepted(scores)), ""
    return _without(statistics, ("scores",)), (
        "regrouped without the data: which positives have the right class was not kept by score, so ROC, sPCC "
        "and calibrated prevalence are left out"
    )


def _members(step: ComposedStep) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    return step.group_of_class == step.positive  # type: ignore[no-any-return]


def _all_accepted(scores: ScoreCounts) -> ScoreCounts:
    return scores.channels((0, 1), (), (2, 3), ())


def _map_scores(statistics: Statistics, change: object) -> Statistics:
    assert callable(change)
    squares = None if statistics.squares is None else _map_scores(statistics.squares, change)
    return replace(statistics, scores=change(statistics.scores), squares=squares)


def _without(statistics: Statistics, names: tuple[str, ...]) -> Statistics:
    squares = None if statistics.squares is None else _without(statistics.squares, names)
    left_out: dict[str, Any] = dict.fromkeys(names)
    return replace(statistics, squares=squares, **left_out)
