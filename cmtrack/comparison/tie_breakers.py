"""Tie-breakers: what chooses among tied runs within the margin, such as a parameter or a second metric."""

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
        name, order = match["name"], (match["order"] or "").lower()
        if name.split(".", 1)[0] in _NOUNS and "." in name:
            return cls(name, order == "desc", title=name)
        try:
            better, title = catalog.lookup(name).better, catalog.title(name)
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
        way = "nearest zero" if self.nearest_zero else "largest" if self.descending else "smallest"
        return f"{way} {self.name}"


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
            hint = near(rest, names) or (
                f"; there are {sorted(names)[:10]}" if names else "; they have none"
            )
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
    """Choose among runs, best first: by the first rule that separates the remaining ones, then the next.

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
            by, shown = rule, values
        remaining = best_places
        if len(remaining) == 1:
            break
    return Decision(remaining[0], by, shown)


def place_of(
    rule: TieBreaker, value: float | str | None, all_values: Sequence[float | str | None]
) -> Any:
    """Sort key of a value among all: the smallest wins; None comes last."""
    if value is None:
        return True, 0
    if any(isinstance(other, str) for other in all_values):
        text = str(value)
        return False, tuple(-ord(c) for c in text) if rule.descending else text
    number = float(value)
    return False, abs(number) if rule.nearest_zero else -number if rule.descending else number
