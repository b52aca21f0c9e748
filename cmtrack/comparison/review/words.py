"""A comparison in plain words: the decision first, then what it rests on.

Nothing here says more than the statistics: runs that cannot be told apart are not said to be equal.
"""

from __future__ import annotations

import math

from cmtrack.comparison.cohorts import apart
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.review import repeated_words
from cmtrack.comparison.review.around import left_out, stopped, unpaired
from cmtrack.comparison.review.tie_words import rule_title, tie_sentence
from cmtrack.comparison.review.titles import and_list, criterion_title, level, metric_title, p_equals, signed
from cmtrack.tracking import words


def lead(comparison: Comparison) -> str:
    """One short clause: who leads, with what, and how many cannot be told apart from it."""
    if comparison.repeated is not None:
        return repeated_words.lead(comparison.repeated)
    ranking = comparison.ranking
    if ranking is None:
        return "no run is ranked"
    first, ties = ranking.leader, len(ranking.tied) - 1
    tied = f", {ties} tied" if ties else ""
    if comparison.criterion.pareto:
        front = [run for run in ranking.runs if run.rank == 1]
        text = f"{and_list([run.name for run in front])} on the Pareto front"
    elif comparison.criterion.single:
        title = metric_title(comparison.criterion.metrics[0], brief=True)
        text = f"{words.short(first.name)} leads with {title} {_value(first)}{tied}"
    else:
        text = f"{words.short(first.name)} leads the weighted sum{tied}"
    if ranking.chosen is not first:
        text = f"take {words.short(ranking.chosen.name)}; {text}"
    return text


def verdict(comparison: Comparison) -> list[str]:
    """The decision and its evidence, sentence by sentence."""
    return [*decision(comparison), *further(comparison)]


def decision(comparison: Comparison) -> list[str]:
    """What to take and why: what a reader must know first."""
    if comparison.repeated is not None:
        return [*repeated_words.decision(comparison, comparison.repeated), *stopped(comparison)]
    ranking = comparison.ranking
    if ranking is None:
        return _nothing(comparison)
    said = [_headline(ranking), *_standing(ranking)]
    said += tie_sentence(
        [(run.name, run.run, run.evaluation.metrics) for run in ranking.tied],
        ranking.decision,
        comparison.how.get("tie_breakers", ()),
        "run",
    )
    said += _price(ranking)
    said += [*stopped(comparison), *unpaired(ranking)]
    return [*said, *_several(comparison)]


def further(comparison: Comparison) -> list[str]:
    """What else a reader should know: other rankings, runs that are not in one, how it was made."""
    said = [_other(place, ranking) for place, ranking in enumerate(comparison.rankings[1:], 2)]
    said += left_out(comparison)
    known = {*apart(comparison.rankings)}
    said += [note if note.endswith(".") else f"{note}." for note in comparison.notes if note not in known]
    if comparison.passed_over and not any("not looked at closely" in note for note in comparison.notes):
        names = and_list([run.name for run in comparison.passed_over])
        said.append(f"Not looked at closely, as their logged values are lower: {names}.")
    return said


def _headline(ranking: Ranking) -> str:
    chosen, ties = words.short(ranking.chosen.name), len(ranking.tied)
    if len(ranking.runs) == 1:
        return f"Take {chosen}: there is no other run."
    if ties == 1:
        return f"Take {chosen}: {'the other run' if len(ranking.runs) == 2 else 'every other run'} is behind it."
    if ranking.decision.by is not None:
        of = f"of the {ties} runs that cannot be told apart"
        return f"Take {chosen}: {of} it has the {rule_title(ranking.decision.by)}."
    others = "another run" if ties == 2 else f"{ties - 1} other runs"
    if ranking.criterion.pareto:
        if sum(run.rank == 1 for run in ranking.runs) == 1:
            be = "is" if ties == 2 else "are"
            return f"Take {chosen}: none is better in any metric, though {others} {be} not shown to be worse."
        return (
            f"Take {chosen}, or {'the other' if ties == 2 else f'one of {others}'}: the metrics give no single order."
        )
    return f"Take {chosen}, for its value alone: {others} cannot be told apart from it."


def _value(run: RankedRun) -> str:
    return words.with_interval(run.value, (run.low, run.high))


def _article(title: str) -> str:
    return f"an {title}" if title[:1].lower() in "aeio" or title.startswith("F1") else f"a {title}"


def _standing(ranking: Ranking) -> list[str]:
    """Who leads, who is tied with it, who is behind."""
    criterion, positive = ranking.criterion, ranking.evaluation.positive
    first = ranking.leader
    name = words.short(first.name)
    if len(ranking.runs) == 1:
        said = f"{name} is the only run in the ranking, so there is nothing to compare it with"
        if criterion.single:
            said += f"; it has {_article(criterion_title(criterion, positive))} of {_value(first)}"
        return [f"{said}."]
    if criterion.pareto:
        return _front(ranking)
    if criterion.single:
        said = f"{name} leads with {_article(criterion_title(criterion, positive))} of {_value(first)}"
        if criterion.direction == "lower":
            said += ", where lower is better"
        elif criterion.direction == "nearest zero":
            said += ", the nearest to zero"
    else:
        shown = and_list([f"{metric_title(n, positive)} {words.number(v)}" for n, v in (first.values or {}).items()], 6)
        said = f"{name} leads {criterion_title(criterion, positive)}, each in units of its standard error ({shown})"
    parts = [said, *_others(ranking)]
    out = ["; ".join(parts) + "."]
    out += _chances(ranking)
    return out


def _others(ranking: Ranking) -> list[str]:
    unsure = [run for run in ranking.runs[1:] if math.isnan(run.p_set)]
    tied = [run.name for run in ranking.tied if run is not ranking.leader and run not in unsure]
    behind = [run.name for run in ranking.runs if not run.tied]
    parts = []
    if tied:
        parts.append(f"{and_list(tied)} cannot be told apart from it at the {level(ranking.confidence_level)} level")
    if unsure:
        names = and_list([run.name for run in unsure])
        who = "it is" if len(unsure) == 1 else "they are"
        parts.append(f"no error is known of {names}, so nothing tells whether {who} behind")
    if behind:
        every = len(behind) == len(ranking.runs) - 1 and len(behind) > 1
        be = "is" if len(behind) == 1 else "are"
        names = f"all {len(behind)} others" if every and len(behind) > 4 else and_list(behind)
        clearly = "" if tied or unsure else f" at the {level(ranking.confidence_level)} level"
        parts.append(f"{names} {be} behind it{clearly}")
    return parts


def _chances(ranking: Ranking) -> list[str]:
    """How probable it is that the leader is the best."""
    first = ranking.leader
    if math.isnan(first.probability_best) or len(ranking.tied) < 2:
        return []
    rivals = [run for run in ranking.runs if run is not first]
    second = max(rivals, key=lambda run: run.probability_best)
    return [
        f"In resamples of the test rows {words.short(first.name)} comes first in about "
        f"{100 * first.probability_best:.0f} %, {words.short(second.name)} in {100 * second.probability_best:.0f} %."
    ]


def _front(ranking: Ranking) -> list[str]:
    criterion, positive = ranking.criterion, ranking.evaluation.positive
    front = [run for run in ranking.runs if run.rank == 1]
    maybe = [run.name for run in ranking.runs if run.rank > 1 and run.tied]
    off = [run.name for run in ranking.runs if not run.tied]
    titles = and_list([metric_title(name, positive) for name in criterion.metrics], 6)
    shown = and_list(
        [
            f"{words.short(run.name, 40)} ({', '.join(words.number(value) for value in (run.values or {}).values())})"
            for run in front
        ],
        4,
    )
    if len(front) == 1:
        said = f"{shown} is at least as good as every other run in {titles}: it is the Pareto front alone"
    else:
        said = f"There is no single order by {titles}: on the Pareto front, where no other run is at least as good in "
        said += f"all of them and better in one, stand {shown}"
    parts = [said]
    at = f"at the {level(ranking.confidence_level)} level"
    if maybe:
        parts.append(f"{and_list(maybe)} {'is' if len(maybe) == 1 else 'are'} not shown to be off it {at}")
    if off:
        parts.append(f"for {and_list(off)} another run is better in every one of them {at}")
    return ["; ".join(parts) + "."]


def _price(ranking: Ranking) -> list[str]:
    """What the chosen run gives up against the leader."""
    chosen, first = ranking.chosen, ranking.leader
    if chosen is first or not ranking.criterion.single:
        return []
    name, ends = words.short(chosen.name), (chosen.difference_low, chosen.difference_high)
    if math.isnan(chosen.p_set):
        return [f"{name} differs from {words.short(first.name)} by {signed(chosen.difference)}, of unknown error."]
    return [
        f"{name} has {_value(chosen)}: {signed(chosen.difference, ends)} from {words.short(first.name)} "
        f"({p_equals(chosen.p_max_t)}), which these data do not tell from no difference."
    ]


def _several(comparison: Comparison) -> list[str]:
    said = list(apart(comparison.rankings))
    if said:
        n = len(comparison.rankings[0].runs)
        said.append(f"The decision above is about the largest of them, of {words.counted(n, 'run')}.")
    return said


def _other(place: int, ranking: Ranking) -> str:
    first, ties = ranking.leader, [run.name for run in ranking.tied if run is not ranking.leader]
    value = "" if ranking.criterion.pareto or not ranking.criterion.single else f" with {_value(first)}"
    of = f"{words.counted(len(ranking.runs), 'run')} on {words.samples(ranking.evaluation)}"
    said = f"In ranking {place} ({of}) {words.short(first.name)} leads{value}"
    if ties:
        said += f"; {and_list(ties)} cannot be told apart from it"
    if ranking.chosen is not first:
        said += f"; {words.short(ranking.chosen.name)} is the one to take there"
    return f"{said}."


def _nothing(comparison: Comparison) -> list[str]:
    if comparison.failed:
        n = words.counted(len(comparison.failed), "run")
        every = "no run that could be judged passes the gates" if comparison.left_out else "no run passes the gates"
        return [f"Take none: {every} ({n} stopped).", *stopped(comparison)]
    return ["Take none: no run could be ranked."]
