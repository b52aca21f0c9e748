"""Which tie-breaker chose, among which runs, and with what values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.run import Run
from cmtrack.comparison.tie_breakers import Decision, TieBreaker
from cmtrack.report.review.titles import Say, and_list, metric_title, plain_number

Tied = tuple[str, Run, Mapping[str, float]]


def near_words(margin: float | None, criterion: Criterion) -> str:
    """The margin within which a tie-breaker may choose."""
    if criterion.pareto:
        return "on the Pareto front"
    if margin is None:
        return "within one standard error of the leader"
    return f"shown not to be worse than the leader by more than {margin:g}"


def tie_sentence(
    near: Sequence[Tied], n_tied: int, decision: Decision, rules: Any, where: str, say: Say, noun: str
) -> list[str]:
    """What chose among the tied ones; nothing where there is only one.

    Parameters
    ----------
    near : sequence of (name, run, metrics)
        The tied ones within the margin, in the decision's order.
    n_tied : int
        How many are tied with the leader, which is among them.
    decision : Decision
    rules : str or sequence of str
        The tie-breakers that were given.
    where : str
        The margin in words, from :func:`near_words`.
    say : callable
    noun : str
        "run" or "model".
    """
    if n_tied < 2:
        return []
    chosen = say(near[decision.place][0])
    asked = [rules] if isinstance(rules, str) else list(rules or ())
    if decision.by is not None:
        return [_by_rule(near, decision, decision.by, where, say, noun)]
    alone = f"{chosen} is chosen for its value alone"
    if len(near) == 1:
        start = f"None of the {n_tied - 1} other tied {noun}s is" if n_tied > 2 else f"The other tied {noun} is not"
        unused = ", so that no tie-breaker was used" if asked else ""
        return [f"{start} {where}{unused}: {alone}."]
    if asked:
        them = f"The tie-breaker {asked[0]} does" if len(asked) == 1 else f"The tie-breakers {and_list(asked, 6)} do"
        parsed = [TieBreaker.parse(rule) for rule in asked]
        none = all(rule.value(run, metrics) is None for rule in parsed for _, run, metrics in near)
        why = "none of them has a value" if none else "all have the same value or none"
        return [f"{them} not decide among the {len(near)} tied {noun}s {where}: {why}. {alone[0].upper()}{alone[1:]}."]
    which = f"{len(near)} of the {n_tied} tied {noun}s are" if len(near) < n_tied else f"All {n_tied} tied {noun}s are"
    return [f"{alone[0].upper()}{alone[1:]}. {which} {where}: prefer the cheapest or simplest, or name a tie-breaker."]


def rule_title(rule: TieBreaker) -> str:
    """ "smallest params.depth", "largest accuracy"."""
    way = "nearest zero" if rule.nearest_zero else "largest" if rule.descending else "smallest"
    known = rule.name.split(".", 1)[0] not in ("params", "metrics", "tags")
    name = metric_title(rule.name) if known else rule.name
    return f"{name} {way}" if rule.nearest_zero else f"{way} {name}"


def _by_rule(near: Sequence[Tied], decision: Decision, rule: TieBreaker, where: str, say: Say, noun: str) -> str:
    values = decision.values
    best = values[decision.place]
    others = [place for place in range(len(near)) if place != decision.place]
    same = [place for place in others if values[place] == best]
    worse = [place for place in others if values[place] != best and not _before(rule, values[place], best)]
    earlier = [place for place in others if place not in same and place not in worse]

    def shown(place: int) -> str:
        return f"{say(near[place][0])} ({plain_number(values[place])})"

    said = f"Among the {len(near)} tied {noun}s {where}, the {rule_title(rule)} decides: {shown(decision.place)}"
    if worse:
        said += f" before {and_list([shown(place) for place in worse], 2)}"
    said += "."
    if earlier:
        said += f" An earlier tie-breaker ruled out {and_list([say(near[place][0]) for place in earlier])}."
    if same:
        has = "has" if len(same) == 1 else "have"
        said += f" {and_list([say(near[place][0]) for place in same])} {has} the same value, so that "
        said += f"{say(near[decision.place][0])} is chosen for its score."
    return said


def _before(rule: TieBreaker, value: float | str | None, best: float | str | None) -> bool:
    """Whether a value is better than the chosen one's, so that another rule had decided against its run."""
    if value is None or best is None:
        return best is None
    if isinstance(value, str) or isinstance(best, str):
        return (str(value) > str(best)) == rule.descending
    if rule.nearest_zero:
        return abs(value) < abs(best)
    return value > best if rule.descending else value < best
