"""Phrases on a ranking of runs, or of models over repeated runs: names, standings, gaps, and what decided a tie.

The p-value that decides is the one that is shown: a run is ruled out where its p-value of being the best is at most
one less the confidence level. `EXPLAINED` says it once on a page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison.compare import shares_in_words
from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.ranking import Ranked, Ranking
from cmtrack.comparison.result import Comparison
from cmtrack.comparison.run import Run
from cmtrack.comparison.spec import several
from cmtrack.comparison.tie_breakers import Decision, TieBreaker, place_of
from cmtrack.digits import short_percent, significant
from cmtrack.evaluation.catalog import OPEN
from cmtrack.grouping import Label
from cmtrack.metrics.metric import BETTER
from cmtrack.names import MAY_BE_BEST, RULED_OUT, distinct, quoted
from cmtrack.report import formatting as fmt

WIDTH = 60  # characters of a run's name in sentences and tables
STANDINGS = {
    "chosen": "chosen",
    "leads": "leads",
    "equivalent": "equivalent",
    "tied": MAY_BE_BEST,
    "behind": "ruled out",
}
"""Of a status in data its word."""
_ON_FRONTS = {"tied": "not dominated", "behind": "dominated"}
_LEAST_SELECTION = 0.01
"""Part of the leader's interval below which what selection is worth has no sentence."""
_MANY = 1000
Say: TypeAlias = Callable[[str], str]
Tied: TypeAlias = tuple[str, Run, Mapping[str, float]]


# -- names -----------------------------------------------------------------------------------------------------


def short_names(comparison: Comparison) -> dict[str, str]:
    """The names of a comparison's runs, without their shared parts if too long."""
    full = [entry.name for entry in comparison.standings]
    full += [stop.name for stop in comparison.failed] + [
        unranked.run.name for unranked in comparison.left_out
    ]
    full += [run.name for run in comparison.passed_over]
    return dict(zip(full, distinct(full, WIDTH), strict=True))


def say_of(comparison: Comparison) -> Say:
    """The short names of a comparison's runs as its sentences write them: quoted."""
    short = short_names(comparison)
    return lambda name: quoted(short.get(name, name))


def criterion_title(criterion: Criterion, positive: Label | None = None) -> str:
    """The criterion in words."""
    titles = [
        fmt.metric_title(name, positive, catalog=criterion.catalog) for name in criterion.metrics
    ]
    if criterion.pareto:
        return f"{fmt.join_names(titles, 6)} side by side (Pareto front)"
    return titles[0]


def shared_positive(comparison: Comparison) -> Label | None:
    """The positive group of all runs; None where they have none, or several."""
    positives = {run.evaluation.positive for run in comparison.runs}
    return positives.pop() if len(positives) == 1 else None


def direction(criterion: Criterion) -> str:
    """The better values, in words."""
    if criterion.pareto:
        catalog = criterion.catalog
        ways = {name: BETTER[catalog.lookup(name).better] for name in criterion.metrics}
        if len(set(ways.values())) == 1:
            return ways[criterion.metrics[0]]
        return "; ".join(
            f"{fmt.metric_title(name, brief=True, catalog=catalog)}: {way}"
            for name, way in ways.items()
        )
    return BETTER[criterion.direction]


# -- standings -------------------------------------------------------------------------------------------------


LAST = "last"
"""The word for a run whose loss is infinite."""


def standing(run: Ranked, ranking: Ranking) -> str:
    """The status of a run of a ranking, or a model of repeated runs: a key of :data:`STANDINGS`."""
    if run.chosen:
        return "chosen"
    if run is ranking.leader and not ranking.criterion.pareto:
        return "leads"
    if math.isfinite(run.equivalent_within):
        return "equivalent"
    return "tied" if run.tied else "behind"


def standing_word(status: str, ranking: Ranking, tied: bool = True) -> str:
    """The word for a status: "may be the best", or "ruled out"; of an equivalent run also whether it is ruled out."""
    if status == "equivalent" and ranking.equivalence is not None:
        return f"{'' if tied else 'ruled out, but '}equivalent within {ranking.equivalence:g}"
    return (_ON_FRONTS if ranking.criterion.pareto else STANDINGS).get(status, status)


def marked(status: str, tied: bool) -> str:
    """The status as the class of a row; of an equivalent run that is ruled out both."""
    return f"{status} behind" if status == "equivalent" and not tied else status


def explained(level: float, noun: str = "run") -> str:
    """The meaning of "may be the best" and "ruled out", of runs or of models."""
    if noun == "model":
        test = f"p, adjusted for all pairs of models, is at most {significant(1 - level)}"
        return f"A model is {RULED_OUT} where {test}; all others {MAY_BE_BEST}."
    return (
        f"A run is {RULED_OUT} where p, of being the best, is at most {significant(1 - level)}: then its interval from the best "
        f"other run ends at exactly 0. All others {MAY_BE_BEST}. The best run is ruled out in at most "
        f"{fmt.level(1 - level)} of reviews. If several runs are equally good, this holds for each of them, and one or "
        "another of them is ruled out more often."
    )


def how_many(ties: int, of: int, noun: str) -> str:
    """The number that may be the best: "6 of 7 runs may be the best", "both runs may be the best"."""
    return f"{'both' if ties == of == 2 else f'all {of}' if ties == of else f'{ties} of {of}'} {noun}s {MAY_BE_BEST}"


def all_others(n: int, noun: str) -> str:
    """All but one, with the verb: "the other run is", "both other runs are", "all 5 other runs are"."""
    if n == 1:
        return f"the other {noun} is"
    return f"{'both' if n == 2 else f'all {n}'} other {noun}s are"


def behind_words(ranking: Ranking) -> str:
    """The words for runs that are ruled out or dominated."""
    return "dominated" if ranking.criterion.pareto else RULED_OUT


def gap_words(difference: float, ends: tuple[float, float], direction: str, name: str) -> str:
    """A difference such as "0.019 lower than “A” [−0.049, 0.012]"; the interval is that of the signed difference."""
    if difference == 0:
        return f"equal to {name} {fmt.interval(difference, ends)}".rstrip()
    shown = fmt.number(abs(difference), ends if all(map(math.isfinite, ends)) else None)
    way = "lower than" if difference < 0 else "higher than"
    if direction == "nearest zero":
        way = "closer to zero than" if difference < 0 else "farther from zero than"
    return f"{shown} {way} {name} {fmt.interval(difference, ends)}".rstrip()


# -- what the rows can show, and were asked --------------------------------------------------------------------


def asked(comparison: Comparison, name: str) -> Any:
    """``comparison.looks`` or ``comparison.resolution``; None where a comparison has none."""
    try:
        return getattr(comparison, name)
    except ValueError:
        return None


def selection_words(comparison: Comparison) -> list[str]:
    """The selection bias of the leader's value, in words; empty if too small to mention."""
    looks = asked(comparison, "looks")
    if (
        looks is None
        or looks.runs < 2
        or not looks.optimism > _LEAST_SELECTION * (looks.high - looks.low)
    ):
        return []
    end = "highest" if comparison.criterion.direction == "higher" else "lowest"
    part = np.format_float_positional(float(f"{looks.optimism:.2g}"), trim="-")
    return [f"About {part} of it is selection: the {end} of {looks.among}."]


def assumed_shares(comparison: Comparison) -> str:
    """The class shares that a review assumes, as a condition; empty if these are the rows' own.

    "If 2 % of the rows were “spam”", and "If 2 % of the rows were positive" if the positive class has no one name.
    """
    shares = comparison.how.get("at")
    if shares is None:
        return ""
    named = {shared_positive(comparison): shares} if isinstance(shares, float) else shares
    parts = [
        f"{short_percent(share)} of the rows were {'positive' if name is None else quoted(name)}"
        for name, share in named.items()
    ]
    return f"If {fmt.join_names(parts, 8)}"


def judged_at(comparison: Comparison) -> str:
    """The class shares at which runs are judged; empty if these are the rows' own."""
    shares = comparison.how.get("at")
    return (
        ""
        if shares is None
        else f"judged at {shares_in_words(shares, shared_positive(comparison))}"
    )


def at_shares(comparison: Comparison) -> str:
    """Return what a head adds to a metric that is not of the rows' own class shares: " at 2 %"; else empty."""
    shares = comparison.how.get("at")
    if shares is None:
        return ""
    return f" at {short_percent(shares)}" if isinstance(shares, float) else " at other shares"


def counts_rows(evaluation: BaseEvaluation) -> bool:
    """False if sampling weights count in other units than rows."""
    rows = evaluation.statistics.digest.rows
    return (
        getattr(evaluation, "weights_are", None) != "sampling"
        or abs(evaluation.n_samples - rows) < 0.5
    )


def samples(comparison: Comparison, evaluation: BaseEvaluation) -> str:
    """The number of samples that runs are judged on, with their weight where it is more than that of the shares."""
    return fmt.samples(evaluation, comparison.how.get("at") is None or not counts_rows(evaluation))


def about_rows(more: float, rows: float) -> str:
    """A number of rows in two digits: "about 1,400 rows"; very many by how many times these they are."""
    return (
        f"about {significant(more, 2)} rows"
        if more < _MANY * rows
        else f"over {_MANY:,} times these rows"
    )


# -- ties ------------------------------------------------------------------------------------------------------


def near_words(margin: float | None, criterion: Criterion) -> str:
    """The margin within which a tie-breaker may choose."""
    if criterion.pareto:
        return "on the Pareto front"
    if margin is None:
        return "within one standard error of the leader"
    return f"shown not to be worse than the best by more than {margin:g}"


def tie_sentence(
    near: Sequence[Tied],
    n_tied: int,
    decision: Decision,
    rules: Any,
    where: str,
    say: Say,
    noun: str,
    shared: bool = False,
    unknown: int = 0,
) -> list[str]:
    """The sentence on what chose among those that may be the best; nothing where there is only one.

    ``near``: the tied ones within the margin, in the decision's order.
    ``n_tied``: how many are tied with the leader, which is among them.
    ``rules``: the tie-breakers that were given.
    ``where``: the margin in words, from :func:`near_words`.
    ``noun``: "run" or "model".
    ``shared``: whether another one has the same value.
    ``unknown``: how many of the tied ones have a difference from the leader whose error is not known.
    """
    if n_tied < 2:
        return []
    chosen = say(near[decision.place][0])
    asked = several(rules or ())
    if decision.by is not None:
        return [_by_rule(near, decision, decision.by, where, say, noun)]
    others = "the other" if n_tied == 2 else f"another of the {fmt.in_words(n_tied)}"
    but = "" if shared else "but its score "
    alone = f"Nothing {but}speaks for {chosen}: if {others} is cheaper or simpler, take that one."
    if not asked:
        return [alone]
    if len(near) == 1:
        start = (
            f"None of the {fmt.in_words(n_tied - 1)} others is"
            if n_tied > 2
            else f"The other {noun} is not"
        )
        if unknown == n_tied - 1:
            who = (
                f"the other {noun}" if n_tied == 2 else f"any of the {fmt.in_words(unknown)} others"
            )
            start = f"No error is known for the difference of {who} from the leader"
            return [f"{start}, so no tie-breaker was used. {alone}"]
        has = "has" if unknown == 1 else "have"
        known = (
            f" {fmt.capital(fmt.in_words(unknown))} of them {has} no known error."
            if unknown
            else ""
        )
        where = f"shown to be {where}" if unknown and not where.startswith("shown") else where
        return [f"{start} {where}, so that no tie-breaker was used.{known} {alone}"]
    them = (
        f"The tie-breaker {asked[0]} does"
        if len(asked) == 1
        else f"The tie-breakers {fmt.join_names(asked, 6)} do"
    )
    parsed = [TieBreaker.parse(rule, OPEN) for rule in asked]
    none = all(rule.value(run, metrics) is None for rule in parsed for _, run, metrics in near)
    why = "none of them has a value" if none else "all have the same value or none"
    return [f"{them} not decide among the {len(near)} {noun}s {where}: {why}. {alone}"]


def rule_title(rule: TieBreaker) -> str:
    """A tie-breaker in words: "smallest params.depth", "largest accuracy"."""
    way = "nearest zero" if rule.nearest_zero else "largest" if rule.descending else "smallest"
    return f"{rule.title} {way}" if rule.nearest_zero else f"{way} {rule.title}"


def _by_rule(
    near: Sequence[Tied], decision: Decision, rule: TieBreaker, where: str, say: Say, noun: str
) -> str:
    values = decision.values
    best = values[decision.place]
    others = [place for place in range(len(near)) if place != decision.place]
    keys = [place_of(rule, value, values) for value in values]
    same = [place for place in others if values[place] == best]
    worse = [place for place in others if place not in same and keys[place] >= keys[decision.place]]
    earlier = [place for place in others if place not in same and place not in worse]

    def shown(place: int) -> str:
        return f"{say(near[place][0])} ({fmt.plain_number(values[place])})"

    sentence = f"Among the {len(near)} {noun}s {where}, the {rule_title(rule)} decides: {shown(decision.place)}"
    if worse:
        sentence += f" before {fmt.join_names([shown(place) for place in worse], 2)}"
    sentence += "."
    if earlier:
        sentence += f" An earlier tie-breaker dropped {fmt.join_names([say(near[place][0]) for place in earlier])}."
    if same:
        has = "has" if len(same) == 1 else "have"
        sentence += f" {fmt.join_names([say(near[place][0]) for place in same])} {has} the same value, so that "
        sentence += f"{say(near[decision.place][0])} is chosen for its score."
    return sentence
