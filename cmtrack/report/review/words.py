"""A comparison in plain words: the decision first, then its evidence.

Nothing here says more than the statistics: runs that are not shown to differ are not said to be equal.
"""

from __future__ import annotations

import math

from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.comparison.comparability import apart, headings
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison, ModelComparison, RunComparison
from cmtrack.report import words
from cmtrack.report.review import repeated_words
from cmtrack.report.review.around import identical, left_out, passed_over, positives, stopped, unpaired
from cmtrack.report.review.standing import all_others, gap_words, standing_sentences
from cmtrack.report.review.tie_words import near_words, rule_title, tie_sentence
from cmtrack.report.review.titles import (
    Say,
    and_list,
    criterion_title,
    level,
    metric_title,
    p_equals,
    say_of,
)


def lead(comparison: Comparison) -> str:
    """One short clause: who leads, with what, and how many are tied with it."""
    say = say_of(comparison)
    ranking = comparison.ranking
    if ranking is None:
        return "no run is ranked"
    if isinstance(ranking, RepeatedRanking):
        return repeated_words.lead(ranking, say)
    first, ties = ranking.leader, len(ranking.tied) - 1
    tied = f", {ties} tied" if ties else ""
    if comparison.criterion.pareto:
        front = [say(run.name) for run in ranking.runs if run.rank == 1]
        text = f"{and_list(front)} on the Pareto front"
    elif comparison.criterion.single:
        title = metric_title(comparison.criterion.metrics[0], brief=True)
        text = f"{say(first.name)} leads with {title} {_value(first)}{tied}"
    else:
        text = f"{say(first.name)} leads the weighted sum{tied}"
    if ranking.foremost is not first:
        text = f"take {say(ranking.foremost.name)}; {text}"
    if len(comparison.rankings) > 1:
        text += f" (ranking 1 of {len(comparison.rankings)})"
    return text


def verdict(comparison: Comparison) -> list[str]:
    """The decision, its evidence and the notes, sentence by sentence."""
    return [*decision(comparison), *further(comparison)]


def decision(comparison: Comparison, *, beside_tables: bool = False) -> list[str]:
    """What to take and why: what a reader must know first.

    Parameters
    ----------
    comparison : Comparison
    beside_tables : bool, default False
        Whether a table of the gates stands on the same page, so that their values need no sentence.
    """
    say = say_of(comparison)
    gates = _stopped_briefly(comparison) if beside_tables else stopped(comparison, say)
    ranking = comparison.ranking
    if isinstance(ranking, RepeatedRanking):
        return [*repeated_words.decision(comparison, ranking, say), *gates]
    if isinstance(comparison, RunComparison) and ranking is not None:
        return _decision(comparison, ranking, gates, say)
    return [_nothing(comparison), *(gates if comparison.failed and not beside_tables else ())]


def _decision(comparison: RunComparison, ranking: Ranking, gates: list[str], say: Say) -> list[str]:
    """The same of rankings of runs."""
    if ranking.chosen is None:
        return [*_undecided(comparison, say), *gates]
    several = len(comparison.rankings)
    head = _headline(ranking, say)
    if several > 1:
        head += f" This covers ranking 1 of {several} only: the rankings were not compared with each other."
    said = [head, *_standing(ranking, say)]
    rules = comparison.how.get("tie_breakers", ())
    if rules or not ranking.criterion.pareto:
        said += tie_sentence(
            [(run.name, run.run, run.evaluation.metrics) for run in ranking.runs if run.within_margin],
            len(ranking.tied),
            ranking.decision,
            rules,
            near_words(ranking.margin, ranking.criterion),
            say,
            "run",
        )
    said += _price(ranking, say)
    said += [*gates, *unpaired(ranking, say)]
    return [*said, *apart(comparison.rankings, comparison.reads)]


def further(comparison: Comparison, *, beside_tables: bool = False) -> list[str]:
    """Notes: other rankings, runs that are in none, and how the comparison was made."""
    say = say_of(comparison)
    said = []
    known: set[str] = set()
    if isinstance(comparison, RunComparison):
        known = {*apart(comparison.rankings, comparison.reads)}
        if comparison.best is not None:
            said = [_other(comparison, place, say) for place in range(1, len(comparison.rankings))]
    said += [*positives(comparison, say), *identical(comparison, say)]
    if not beside_tables:
        said += [*left_out(comparison, say), *passed_over(comparison, say)]
    return said + [note if note.endswith(".") else f"{note}." for note in comparison.notes if note not in known]


def _best_of(run: RankedRun, ranking: Ranking, say: Say) -> str:
    """ "“A” scores highest (0.712)"."""
    criterion, name = ranking.criterion, say(run.name)
    if criterion.pareto:
        return f"{name} is on the Pareto front"
    if not criterion.single:
        return f"{name} has the highest weighted sum"
    value = words.number(run.value, (run.low, run.high))
    if criterion.direction == "nearest zero":
        return f"{name} is nearest to zero ({value})"
    return f"{name} scores {'highest' if criterion.direction == 'higher' else 'lowest, which is best'} ({value})"


def _headline(ranking: Ranking, say: Say) -> str:
    chosen, ties = say(ranking.foremost.name), len(ranking.tied)
    if len(ranking.runs) == 1:
        return f"Take {chosen}: it is the only run."
    if ties == 1:
        others = all_others(len(ranking.runs) - 1, "run")
        return f"Take {chosen}: {others} significantly worse."
    if ranking.decision.by is not None:
        near = sum(run.within_margin for run in ranking.runs)
        return (
            f"Take {chosen}: of the {near} tied runs {near_words(ranking.margin, ranking.criterion)}, it has the "
            f"{rule_title(ranking.decision.by)}."
        )
    others = "1 other run is" if ties == 2 else f"{ties - 1} other runs are"
    if ranking.criterion.pareto:
        front = [run for run in ranking.runs if run.rank == 1]
        if len(front) == 1:
            return f"Take {chosen}: no run is better in any metric, but {others} not significantly dominated."
        return f"No single best run. {len(front)} runs are on the Pareto front; {chosen} is the first of them."
    return (
        f"No clear winner. {_best_of(ranking.leader, ranking, say)}; {others} statistically indistinguishable from it."
    )


def _value(run: RankedRun) -> str:
    return words.with_interval(run.value, (run.low, run.high))


def _standing(ranking: Ranking, say: Say) -> list[str]:
    """Who leads, who is tied with it, who is behind."""
    criterion, positive = ranking.criterion, ranking.evaluation.positive
    first = ranking.leader
    name = say(first.name)
    if criterion.pareto:
        return _front(ranking, say)
    title = criterion_title(criterion, positive)
    if len(ranking.runs) == 1:
        return [f"Its {title} is {_value(first)}. There is no run to compare it with."] if criterion.single else []
    if not criterion.single:
        shown = and_list([f"{metric_title(n, positive)} {words.number(v)}" for n, v in (first.values or {}).items()], 6)
        said = f"{name} has the highest {title.removeprefix('the ')}, each metric in units of its standard error "
        said += f"({shown})."
    elif criterion.direction == "nearest zero":
        said = f"{name} has the {title} nearest to zero, {_value(first)}."
    else:
        said = f"{name} has the {'highest' if criterion.direction == 'higher' else 'lowest'} {title}, {_value(first)}."
    return [" ".join([said, *_others(ranking, say)]), *_chances(ranking, say)]


def _others(ranking: Ranking, say: Say) -> list[str]:
    unsure = [run for run in ranking.runs[1:] if math.isnan(run.p_set)]
    tied = [say(run.name) for run in ranking.tied if run is not ranking.leader and run not in unsure]
    behind = [say(run.name) for run in ranking.runs if not run.tied]
    return standing_sentences(tied, behind, [say(run.name) for run in unsure], ranking.confidence_level)


def _chances(ranking: Ranking, say: Say) -> list[str]:
    """How probable it is that the leader comes first again."""
    first = ranking.leader
    if math.isnan(first.probability_best) or len(ranking.tied) < 2:
        return []
    second = max((run for run in ranking.runs if run is not first), key=lambda run: run.probability_best)
    return [
        f"If the test rows were drawn again, {say(first.name)} would come first about "
        f"{100 * first.probability_best:.0f} % of the time, {say(second.name)} {100 * second.probability_best:.0f} %."
    ]


def _front(ranking: Ranking, say: Say) -> list[str]:
    criterion, positive = ranking.criterion, ranking.evaluation.positive
    front = [run for run in ranking.runs if run.rank == 1]
    maybe = [say(run.name) for run in ranking.runs if run.rank > 1 and run.tied]
    off = [say(run.name) for run in ranking.runs if not run.tied]
    titles = and_list([metric_title(name, positive) for name in criterion.metrics], 6)
    shown = and_list(
        [f"{say(run.name)} ({', '.join(map(words.number, (run.values or {}).values()))})" for run in front], 4
    )
    if len(ranking.runs) == 1:
        return [f"{titles[:1].upper()}{titles[1:]}: {shown}. There is no run to compare it with."]
    be = "is alone" if len(front) == 1 else "are"
    said = [f"By {titles}, {shown} {be} on the Pareto front."]
    if maybe:
        said.append(f"Not significantly dominated ({level(ranking.confidence_level)}): {and_list(maybe)}.")
    if off:
        said.append(f"Significantly dominated in every metric: {and_list(off)}.")
    return [" ".join(said)]


def _price(ranking: Ranking, say: Say) -> list[str]:
    """What the chosen run gives up against the leader."""
    chosen, first = ranking.foremost, ranking.leader
    if chosen is first or not ranking.criterion.single:
        return []
    gap = gap_words(
        chosen.difference,
        (chosen.difference_low, chosen.difference_high),
        ranking.criterion.direction,
        say(first.name),
    )
    said = f"{say(chosen.name)} has {_value(chosen)}: {gap}"
    if math.isnan(chosen.p_set):
        return [f"{said}, with an unknown error."]
    return [f"{said}, not a significant difference ({p_equals(chosen.p_set)})."]


def _undecided(comparison: RunComparison, say: Say) -> list[str]:
    """Several rankings, none of which is the one to decide by."""
    rankings = comparison.rankings
    rows = rankings[0].evaluation.statistics.digest.rows
    same = sum(ranking.evaluation.statistics.digest.rows == rows for ranking in rankings)
    which = f"the {same} rankings" if same == len(rankings) else f"{same} of the {len(rankings)} rankings"
    return [
        f"No decision: {which} have the same number of rows ({rows:,}) and were not compared with each other.",
        *(_other(comparison, place, say) for place in range(len(rankings))),
        *apart(rankings, comparison.reads),
    ]


def heading(comparison: RunComparison, place: int) -> str:
    """What one of several rankings is of: "Ranking 2 of 2: 3 runs on 719 samples, grouped by “parity”"."""
    ranking, several = comparison.rankings[place], len(comparison.rankings)
    said = f"{words.counted(len(ranking.runs), 'run')} on {words.samples(ranking.evaluation)}"
    if several == 1:
        return said
    own = headings(comparison.rankings, comparison.reads)[place]
    return f"Ranking {place + 1} of {several}: {said}{f', {own}' if own else ''}"


def _other(comparison: RunComparison, place: int, say: Say) -> str:
    ranking = comparison.rankings[place]
    first, ties = ranking.leader, len(ranking.tied) - 1
    if ranking.criterion.pareto:
        front = [say(run.name) for run in ranking.runs if run.rank == 1]
        said = f"{and_list(front)} on the Pareto front"
    else:
        value = f" with {_value(first)}" if ranking.criterion.single else ""
        said = f"{say(first.name)} leads{value}" if len(ranking.runs) > 1 else f"{say(first.name)} has{value[5:]}"
    tied = "" if not ties else f"; {ties} other {'run is' if ties == 1 else 'runs are'} tied with it"
    return f"{heading(comparison, place)}. There, {said}{tied}."


def _noun(comparison: Comparison) -> str:
    return "model" if isinstance(comparison, ModelComparison) else "run"


def _stopped_briefly(comparison: Comparison) -> list[str]:
    n = len(comparison.failed)
    noun = _noun(comparison)
    if not n:
        return []
    return [f"{words.counted(n, noun)} {'fails a gate and is' if n == 1 else 'fail a gate and are'} not ranked."]


def _nothing(comparison: Comparison) -> str:
    n = len(comparison.failed)
    if not n:
        return "Take none: no run could be ranked."
    noun = _noun(comparison)
    if n == 1:
        return f"Take none: the only evaluated {noun} fails a gate."
    return f"Take none: {'both' if n == 2 else f'all {n}'} evaluated {noun}s fail a gate."
