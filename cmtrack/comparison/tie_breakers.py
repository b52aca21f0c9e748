"""Tie-breakers, such as a parameter or a second metric: the choice among tied runs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cmtrack.comparison.run import Run, source_of
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.names import near, near_metric

_FORM = re.compile(r"(?P<name>.+?)(?:\s+(?P<order>asc|desc))?", re.IGNORECASE | re.DOTALL)
_NOUNS = {"params": "the parameter", "metrics": "the logged metric", "tags": "the tag"}


class NothingToDecideBy(ValueError):
    """No run has what a tie-breaker reads: parameter, metric or tag."""


@dataclass(frozen=True)
class TieBreaker:
    """One rule.

    ``name``: a metric of the registry, or ``params.<name>``, ``metrics.<name>`` or ``tags.<name>``
    of the run.
    ``descending``: whether the largest wins.
    ``title``: its name for people.
    """

    name: str
    descending: bool
    nearest_zero: bool = False
    title: str = field(default="", compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, catalog: Catalog = BUILT_IN) -> TieBreaker:
        """Read ``"params.depth"``, ``"metrics.seconds asc"`` or ``"multiclass/accuracy"``.

        A metric of cmtrack goes by its own direction; of anything else the smallest value wins, or
        with ``desc`` the largest.

        TypeError, ValueError if it is none of these.
        """
        if not isinstance(text, str):
            raise TypeError(f"a tie-breaker must be a text such as 'params.depth', got {text!r}")
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"a tie-breaker must name a metric or a parameter, got {text!r}")
        name = match["name"]
        order = (match["order"] or "").lower()
        if name.split(".", 1)[0] in _NOUNS and "." in name:
            return cls(name, order == "desc", title=name)
        try:
            better = catalog.lookup(name).better
            title = catalog.title(name)
        except KeyError:
            hint = near_metric(name, catalog.names)
            raise ValueError(
                "a tie-breaker must be a metric, 'params.…', 'metrics.…' or 'tags.…', got "
                f"{name!r}{hint}"
            ) from None
        if order or not better:
            return cls(name, order == "desc", title=title)
        return cls(name, better == "higher", better == "nearest zero", title)

    def value(self, run: Run, metrics: Mapping[str, float]) -> float | str | None:
        """Value of a run for this tie-breaker; None if absent or undefined."""
        value = run.read(self.name) if source_of(self.name) else metrics.get(self.name)
        if value is None:
            return None
        try:
            number = float(value)
        except ValueError:
            return str(value)
        return number if math.isfinite(number) else None

    def __str__(self) -> str:
        if self.nearest_zero:
            return f"nearest zero {self.name}"
        return f"largest {self.name}" if self.descending else f"smallest {self.name}"


def check_there(rules: Sequence[TieBreaker], runs: Sequence[Run]) -> None:
    """Refuse rules on a parameter, a logged metric or a tag that no run has.

    NothingToDecideBy names those most like it.
    """
    for rule in rules:
        named = source_of(rule.name)
        if named is None:
            continue
        source, rest = named
        names = {name for run in runs for name in getattr(run, source)}
        if rest not in names:
            hint = near(rest, names)
            if not names:
                hint = "; they have none"
            elif not hint:
                hint = f"; there are {sorted(names)[:10]}"
            raise NothingToDecideBy(
                f"a tie-breaker must read what at least one run has: no run has {_NOUNS[source]} "
                f"{rest!r}{hint}"
            )


@dataclass(frozen=True)
class Decision:
    """The run that is chosen among those within the margin.

    ``place``: in the sequence of runs that was given: the tied ones within the margin, best first.
    ``by``: what decided; None where nothing was asked for, or nothing differed.
    ``values``: what the runs have in it, in their order.
    """

    place: int
    by: TieBreaker | None = None
    values: tuple[float | str | None, ...] = ()


def decide(
    runs: Sequence[tuple[Run, Mapping[str, float]]], rules: Sequence[TieBreaker]
) -> Decision:
    """Choose among runs, given best first, by one rule after the other.

    A run without a value loses to any that has one. Where no rule tells the last ones apart, the
    first of them in the given order is chosen.
    """
    remaining = list(range(len(runs)))
    by: TieBreaker | None = None
    shown: tuple[float | str | None, ...] = ()
    for rule in rules:
        values = tuple(rule.value(run, metrics) for run, metrics in runs)
        keys = {place: place_of(rule, values[place], values) for place in remaining}
        best = min(keys.values())
        best_places = [place for place in remaining if keys[place] == best]
        if len(best_places) < len(remaining):
            by = rule
            shown = values
        remaining = best_places
        if len(remaining) == 1:
            break
    return Decision(remaining[0], by, shown)


def place_of(
    rule: TieBreaker, value: float | str | None, all_values: Sequence[float | str | None]
) -> Any:
    """Return the sort key of a value among all: the smallest wins; None comes last."""
    if value is None:
        return True, 0
    if any(isinstance(other, str) for other in all_values):
        text = str(value)
        # Text has no negative: its characters are turned instead.
        return False, tuple(-ord(c) for c in text) if rule.descending else text
    number = float(value)
    if rule.nearest_zero:
        number = abs(number)
    elif rule.descending:
        number = -number
    return False, number
