"""Repeated runs in plain words."""

from __future__ import annotations

import math

from cmtrack.comparison.blocks import RankedModel, RepeatedRanking
from cmtrack.comparison.result import Comparison
from cmtrack.grouping import Label
from cmtrack.report import words
from cmtrack.report.review.standing import all_others, gap_words, standing_sentences
from cmtrack.report.review.tie_words import near_words, rule_title, tie_sentence
from cmtrack.report.review.titles import Say, metric_title, p_equals

KINDS = {"folds": "fold", "seeds": "seed", "datasets": "data set"}


def over(ranking: RepeatedRanking) -> str:
    """ "10 folds", "30 seeds", "12 data sets"."""
    return words.counted(len(ranking.block_names), KINDS[ranking.kind])


def lead(ranking: RepeatedRanking, say: Say) -> str:
    """One short clause."""
    first, ties = ranking.leader, len(ranking.tied) - 1
    title = metric_title(ranking.criterion.metrics[0], brief=True)
    text = f"{say(first.name)} leads over {over(ranking)} with mean {title} {words.number(first.mean)}"
    text += f", {ties} tied" if ties else ""
    return text if ranking.chosen is first else f"take {say(ranking.chosen.name)}; {text}"


def decision(comparison: Comparison, ranking: RepeatedRanking, say: Say) -> list[str]:
    """What to take and why."""
    said = [_headline(ranking, say), _standing(ranking, say)]
    other = ranking.chosen if ranking.chosen is not ranking.leader else next(iter(ranking.models[1:]), None)
    if other is not None:
        said += _gap(other, ranking, say)
    said += tie_sentence(
        [(m.name, m.runs[0].run, m.runs[0].evaluation.metrics) for m in ranking.models if m.within_margin],
        len(ranking.tied),
        ranking.decision,
        comparison.how.get("tie_breakers", ()),
        near_words(ranking.margin, ranking.criterion),
        say,
        "model",
    )
    return said


def _best(ranking: RepeatedRanking, title: str) -> str:
    direction = ranking.criterion.direction
    if direction == "nearest zero":
        return f"the mean {title} nearest to zero"
    return f"the {'highest' if direction == 'higher' else 'lowest'} mean {title}"


def _standing(ranking: RepeatedRanking, say: Say) -> str:
    first = ranking.leader
    title = metric_title(ranking.criterion.metrics[0], _positive(ranking))
    spread = f"standard deviation over the {KINDS[ranking.kind]}s {words.number(first.sd)}"
    if math.isfinite(first.average_rank):
        text = (
            f"Over {over(ranking)}, {say(first.name)} has the best average rank, {first.average_rank:.2f} of "
            f"{len(ranking.models)}; its mean {title} is {words.number(first.mean)} ({spread})."
        )
    else:
        text = f"Over {over(ranking)}, {say(first.name)} has {_best(ranking, title)}, "
        text += f"{words.number(first.mean)} ({spread})."
    tied = [say(model.name) for model in ranking.tied if model is not first]
    behind = [say(model.name) for model in ranking.models if not model.tied]
    return " ".join([text, *standing_sentences(tied, behind, [], ranking.confidence_level)])


def _headline(ranking: RepeatedRanking, say: Say) -> str:
    chosen, ties, size = say(ranking.chosen.name), len(ranking.tied), len(ranking.models)
    if size == 1:
        return f"Take {chosen}: it is the only model."
    if ties == 1:
        others = all_others(size - 1, "model")
        return f"Take {chosen}: {others} significantly worse."
    if ranking.decision.by is not None:
        near = sum(model.within_margin for model in ranking.models)
        return (
            f"Take {chosen}: of the {near} tied models {near_words(ranking.margin, ranking.criterion)}, it has the "
            f"{rule_title(ranking.decision.by)}."
        )
    others = "1 other model is" if ties == 2 else f"{ties - 1} other models are"
    first = ranking.leader
    how = f"mean {words.number(first.mean)}"
    if math.isfinite(first.average_rank):
        how = f"average rank {first.average_rank:.2f}"
    best = f"{say(first.name)} is best on average ({how})"
    return f"No clear winner. {best}; {others} statistically indistinguishable from it."


def _positive(ranking: RepeatedRanking) -> Label | None:
    return ranking.leader.runs[0].evaluation.positive


def _gap(model: RankedModel, ranking: RepeatedRanking, say: Say) -> list[str]:
    """The chosen or next model against the leader."""
    if not math.isfinite(model.difference):
        return []
    gap = gap_words(
        model.difference,
        (model.difference_low, model.difference_high),
        ranking.criterion.direction,
        say(ranking.leader.name),
    )
    text = f"{say(model.name)} is {gap}"
    if math.isnan(model.p_holm):
        return [f"{text}; the difference was not tested."]
    verdict = "not a significant difference" if model.tied else "a significant difference"
    return [f"{text}, {verdict} ({p_equals(model.p_holm)}, adjusted for all pairs of models)."]
