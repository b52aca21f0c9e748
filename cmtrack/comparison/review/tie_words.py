"""Which tie-breaker chose, and with what values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cmtrack.comparison.review.titles import and_list, metric_title, plain_number
from cmtrack.comparison.tie_breakers import Decision, TieBreaker
from cmtrack.tracking import words
from cmtrack.tracking.runs import TrackedRun

Tied = tuple[str, TrackedRun, Mapping[str, float]]


def tie_sentence(tied: Sequence[Tied], decision: Decision, rules: Any, noun: str) -> list[str]:
    """What chose among the tied ones; nothing where there is only one.

    Parameters
    ----------
    tied : sequence of (name, run, metrics)
        In the decision's order.
    decision : Decision
    rules : str or sequence of str
        The tie-breakers that were given.
    noun : str
        "run" or "model".
    """
    if len(tied) < 2:
        return []
    chosen = words.short(tied[decision.place][0])
    asked = [rules] if isinstance(rules, str) else list(rules or ())
    if decision.by is None:
        if asked:
            them = f"the tie-breaker {asked[0]}" if len(asked) == 1 else f"the tie-breakers {and_list(asked, 6)}"
            does = "does" if len(asked) == 1 else "do"
            start = f"Among the {len(tied)} tied {noun}s {them} {does} not decide, as all have the same or nothing"
            return [f"{start}; {chosen} is listed first for its value alone."]
        return [
            f"Nothing in these data decides among the {len(tied)} tied {noun}s; {chosen} is listed first for its "
            "value alone, and a cheaper or simpler one of them may be preferred."
        ]
    return [_by_rule(tied, decision, decision.by, noun)]


def rule_title(rule: TieBreaker) -> str:
    """ "smallest params.depth", "largest accuracy"."""
    way = "nearest zero" if rule.nearest_zero else "largest" if rule.descending else "smallest"
    known = rule.name.split(".", 1)[0] not in ("params", "metrics", "tags")
    name = metric_title(rule.name) if known else rule.name
    return f"{name} {way}" if rule.nearest_zero else f"{way} {name}"


def _by_rule(tied: Sequence[Tied], decision: Decision, rule: TieBreaker, noun: str) -> str:
    values = decision.values
    best = values[decision.place]
    others = [place for place in range(len(tied)) if place != decision.place]
    same = [place for place in others if values[place] == best]
    worse = [place for place in others if values[place] != best and not _before(rule, values[place], best)]
    earlier = [place for place in others if place not in same and place not in worse]

    def shown(place: int) -> str:
        return f"{words.short(tied[place][0], 40)} ({plain_number(values[place])})"

    said = f"Among the {len(tied)} tied {noun}s the {rule_title(rule)} decides: {shown(decision.place)}"
    if worse:
        said += f" before {and_list([shown(place) for place in worse], 2)}"
    if earlier:
        said += f"; an earlier tie-breaker had set {and_list([tied[place][0] for place in earlier])} aside"
    if same:
        has = "has" if len(same) == 1 else "have"
        said += f"; {and_list([tied[place][0] for place in same])} {has} the same, and "
        said += f"{words.short(tied[decision.place][0])} is listed first for its value alone"
    return f"{said}."


def _before(rule: TieBreaker, value: float | str | None, best: float | str | None) -> bool:
    """Whether a value is better than the chosen one's, so that another rule had decided against its run."""
    if value is None or best is None:
        return best is None
    if isinstance(value, str) or isinstance(best, str):
        return (str(value) > str(best)) == rule.descending
    if rule.nearest_zero:
        return abs(value) < abs(best)
    return value > best if rule.descending else value < best
