"""Repeated runs in plain words."""

from __future__ import annotations

import math

from cmtrack.comparison.blocks import RankedModel, RepeatedRanking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.review.tie_words import rule_title, tie_sentence
from cmtrack.comparison.review.titles import and_list, level, metric_title, p_equals, signed
from cmtrack.grouping import Label
from cmtrack.tracking import words

KINDS = {"folds": "fold", "seeds": "seed", "datasets": "data set"}


def over(ranking: RepeatedRanking) -> str:
    """ "10 folds", "30 seeds", "12 data sets"."""
    return words.counted(len(ranking.block_names), KINDS[ranking.kind])


def lead(ranking: RepeatedRanking) -> str:
    """One short clause."""
    first, ties = ranking.leader, len(ranking.tied) - 1
    title = metric_title(ranking.criterion.metrics[0], brief=True)
    text = f"{words.short(first.name)} leads over {over(ranking)} with mean {title} {words.number(first.mean)}"
    text += f", {ties} tied" if ties else ""
    return text if ranking.chosen is first else f"take {words.short(ranking.chosen.name)}; {text}"


def decision(comparison: Comparison, ranking: RepeatedRanking) -> list[str]:
    """What to take and why."""
    first, at = ranking.leader, f"at the {level(ranking.confidence_level)} level"
    title = metric_title(ranking.criterion.metrics[0], _positive(ranking))
    said = [_headline(ranking)]
    text = f"Over {over(ranking)} {words.short(first.name)} leads"
    mean = f"mean {title} of {words.number(first.mean)} (standard deviation over the {KINDS[ranking.kind]}s "
    mean += f"{words.number(first.sd)})"
    if math.isfinite(first.average_rank):
        text += f" with an average rank of {first.average_rank:.2f} of {len(ranking.models)} and a {mean}"
    else:
        text += f" with a {mean}"
    tied = [model.name for model in ranking.tied if model is not first]
    behind = [model.name for model in ranking.models if not model.tied]
    if tied:
        text += f"; {and_list(tied)} cannot be told apart from it {at}"
    if behind:
        text += f"; {and_list(behind)} {'is' if len(behind) == 1 else 'are'} behind it{'' if tied else f' {at}'}"
    said.append(f"{text}.")
    other = ranking.chosen if ranking.chosen is not first else ranking.models[1] if len(ranking.models) > 1 else None
    if other is not None:
        said += _gap(other, ranking)
    said += tie_sentence(
        [(model.name, model.runs[0].run, model.runs[0].evaluation.metrics) for model in ranking.tied],
        ranking.decision,
        comparison.how.get("tie_breakers", ()),
        "model",
    )
    return said


def _headline(ranking: RepeatedRanking) -> str:
    chosen, ties = words.short(ranking.chosen.name), len(ranking.tied)
    if len(ranking.models) == 1:
        return f"Take {chosen}: there is no other model."
    if ties == 1:
        others = "the other model" if len(ranking.models) == 2 else "every other model"
        return f"Take {chosen}: {others} is behind it."
    if ranking.decision.by is not None:
        of = f"of the {ties} models that cannot be told apart"
        return f"Take {chosen}: {of} it has the {rule_title(ranking.decision.by)}."
    others = "another model" if ties == 2 else f"{ties - 1} other models"
    return f"Take {chosen}, for its values alone: {others} cannot be told apart from it."


def _positive(ranking: RepeatedRanking) -> Label | None:
    return ranking.leader.runs[0].evaluation.positive


def _gap(model: RankedModel, ranking: RepeatedRanking) -> list[str]:
    """The chosen or next model against the leader."""
    if not math.isfinite(model.difference):
        return []
    ends = (model.difference_low, model.difference_high)
    text = f"{words.short(model.name)} differs from it by {signed(model.difference, ends)}"
    if math.isfinite(model.p_holm):
        text += f" ({p_equals(model.p_holm)}, adjusted for all pairs)"
    rope = ranking.result.rope
    if rope is not None and math.isfinite(model.equivalent):
        text += (
            f"; it is worse by more than {rope:g} with a probability of {words.percent(model.worse)}, and within "
            f"{rope:g} of it with {words.percent(model.equivalent)}"
        )
    return [f"{text}."]
