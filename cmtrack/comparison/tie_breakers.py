"""Tie-breakers, such as a parameter or a second metric, which choose among tied runs."""

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
    """Error raised if a tie-breaker reads a parameter, metric or tag that every run lacks."""


@dataclass(frozen=True)
class TieBreaker:
    """A rule that chooses one of several tied runs.

    ``name``: a metric that cmtrack computes, or ``params.<name>``, ``metrics.<name>`` or
    ``tags.<name>`` of the run.
    ``descending``: whether the run with the largest value wins.
    ``title``: name of the tie-breaker in texts and tables.
    """

    name: str
    descending: bool
    nearest_zero: bool = False
    title: str = field(default="", compare=False, repr=False)

    @classmethod
    def parse(cls, text: str, catalog: Catalog = BUILT_IN) -> TieBreaker:
        """Parse ``"params.depth"``, ``"metrics.seconds asc"`` or ``"multiclass/accuracy"``.

        If cmtrack computes the metric, the run with the best value wins. For all other names, the
        smallest value wins; if the text ends in ``desc``, the largest value wins.

        Raises TypeError or ValueError if the text does not have one of the three forms.
        """
        if not isinstance(text, str):
            raise TypeError(f"a tie-breaker must be a string such as 'params.depth', got {text!r}")
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
        """Return the value of a run for this tie-breaker; None if it is missing or undefined."""
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
    """Check that at least one run has the value that each rule reads.

    Raises NothingToDecideBy if no run has the parameter, logged metric or tag. The error message
    suggests similar names.
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
                hint = "; the runs have none"
            elif not hint:
                hint = f"; the runs have {sorted(names)[:10]}"
            raise NothingToDecideBy(
                f"the tie-breaker needs a run with {_NOUNS[source]} {rest!r}, but no run has "
                f"it{hint}"
            )


@dataclass(frozen=True)
class Decision:
    """The choice of one of the runs that are within the margin.

    ``place``: position of the chosen run in the given sequence of tied runs, best first.
    ``by``: the decisive tie-breaker; None if no tie-breaker was given, or if all values were equal.
    ``values``: values that this tie-breaker compares, in the order of the runs.
    """

    place: int
    by: TieBreaker | None = None
    values: tuple[float | str | None, ...] = ()


def decide(
    runs: Sequence[tuple[Run, Mapping[str, float]]], rules: Sequence[TieBreaker]
) -> Decision:
    """Choose one of several runs by applying tie-breakers one after the other.

    The runs are given in order, best first. A run without a value loses against any run with a
    value. If several runs remain after all tie-breakers, the first of them is chosen.
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
    """Return the sort key of a value among all values.

    The run with the smallest key wins, and missing values come last.
    """
    if value is None:
        return True, 0
    if any(isinstance(other, str) for other in all_values):
        text = str(value)
        # Text cannot be negated, so the key contains the negated codes of its characters.
        return False, tuple(-ord(c) for c in text) if rule.descending else text
    number = float(value)
    if rule.nearest_zero:
        number = abs(number)
    elif rule.descending:
        number = -number
    return False, number
