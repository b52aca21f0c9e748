"""Gates: what a run must reach to be ranked at all, such as ``prevalence/bias.abs <= 0.01``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack.metrics.catalog import known_names, lookup
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.names import near

if TYPE_CHECKING:
    from cmtrack.comparison.differences import Difference

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_BOUNDS = ("low", "high")
_PARTS = re.compile(r"(?P<left>.*?)(?P<operator><=|>=|==|!=|<|>|=)(?P<right>.*)", re.DOTALL)
_FORM = "the form is 'metric >= number', the metric optionally followed by .abs, .difference, and .low or .high"


@dataclass(frozen=True)
class Gate:
    """A bound that a metric must keep.

    Attributes
    ----------
    text : str
        As it was given.
    metric : str
    bound : float
    operator : "<=", ">=", "<" or ">"
    absolute : bool
        Whether the metric's distance from zero is meant (``.abs``).
    difference : bool
        Whether the difference from the baseline is meant (``.difference``).
    end : "", "low" or "high"
        Whether an end of the interval is meant instead of the value.
    """

    text: str
    metric: str
    bound: float
    operator: str
    absolute: bool = False
    difference: bool = False
    end: str = ""

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read a gate.

        Raises
        ------
        TypeError, ValueError
            With the place where it does not parse, or the metrics most like an unknown one.
        """
        if not isinstance(text, str):
            raise TypeError(f"a gate must be a text such as 'class/3/recall >= 0.6', got {text!r}")
        parts = _PARTS.fullmatch(text)
        if parts is None:
            raise ValueError(f"gate {text!r}: expected a comparison (<=, >=, < or >); {_FORM}")
        sign = parts["operator"]
        if sign not in OPERATORS:
            where = parts.start("operator") + 1
            raise ValueError(f"gate {text!r}: expected <=, >=, < or > at character {where}, got {sign!r}")
        right = parts["right"].strip()
        try:
            bound = float(right)
        except ValueError:
            bound = math.nan
        if not math.isfinite(bound):
            where = parts.start("right") + 1
            raise ValueError(f"gate {text!r}: expected a number after {sign!r} (character {where}), got {right!r}")
        name, suffixes = _split(parts["left"].strip(), text)
        return cls(
            text.strip(),
            name,
            bound,
            sign,
            absolute="abs" in suffixes,
            difference="difference" in suffixes,
            end=next((s for s in suffixes if s in _BOUNDS), ""),
        )

    @property
    def of_value(self) -> bool:
        """True if the metric's value alone decides (no interval, no baseline)."""
        return not self.end and not self.difference

    def keeps(self, value: float) -> bool:
        """True if a value is within the bound; an undefined one is not."""
        return math.isfinite(value) and bool(OPERATORS[self.operator](value, self.bound))

    def check(
        self,
        metrics: Mapping[str, float],
        intervals: Mapping[str, Interval],
        against: Difference | None = None,
    ) -> GateResult:
        """Judge one run.

        Parameters
        ----------
        metrics, intervals : mapping
            Of the run.
        against : Difference, optional
            The run's difference from the baseline in this metric.
        """
        if self.difference:
            if against is None:
                return GateResult(self, math.nan, False, "there is no baseline to take a difference from")
            value, ends = against.difference, (against.low, against.high)
        else:
            value = metrics.get(self.metric, math.nan)
            ends = intervals.get(self.metric, (math.nan, math.nan))
        if self.absolute:
            value, ends = abs(value), _absolute(ends)
        if self.end:
            value = ends[_BOUNDS.index(self.end)]
        if math.isfinite(value):
            return GateResult(self, value, self.keeps(value), "")
        if self.metric not in metrics:
            reason = f"the run has no {self.metric}"
        elif not math.isfinite(metrics[self.metric]):
            reason = f"{self.metric} is undefined"
        else:
            reason = f"{self.metric} has no interval"
        return GateResult(self, math.nan, False, reason)


@dataclass(frozen=True)
class GateResult:
    """A gate and what became of it.

    Attributes
    ----------
    gate : Gate
    value : float
        What was compared with the bound; NaN where there is nothing.
    passed : bool
    reason : str
        Why there is nothing to compare.
    """

    gate: Gate
    value: float
    passed: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "gate": self.gate.text,
            "value": self.value,
            "bound": self.gate.bound,
            "passed": self.passed,
            "reason": self.reason,
        }

    def __str__(self) -> str:
        if self.reason:
            return f"{self.gate.text} ({self.reason})"
        return f"{self.gate.text} (is {self.value:.4g})"


def check_known(gates: Collection[Gate], known: Collection[str]) -> None:
    """Refuse gates on metrics that no run has.

    Raises
    ------
    ValueError
        Naming the metrics most like it.
    """
    for gate in gates:
        if gate.metric not in known:
            raise ValueError(f"gate {gate.text!r}: no run has {gate.metric!r}{near(gate.metric, known)}")


def _split(left: str, text: str) -> tuple[str, set[str]]:
    """The metric's name and the suffixes behind it."""
    suffixes: set[str] = set()
    name = left
    while True:
        head, dot, last = name.rpartition(".")
        if not dot or last not in ("abs", "difference", *_BOUNDS):
            break
        if last in suffixes or (last in _BOUNDS and suffixes):
            raise ValueError(f"gate {text!r}: unexpected '.{last}' at character {len(head) + 1}; {_FORM}")
        if last in _BOUNDS and suffixes & set(_BOUNDS):
            raise ValueError(f"gate {text!r}: either .low or .high, not both")
        suffixes.add(last)
        name = head
    if not name:
        raise ValueError(f"gate {text!r}: expected a metric before the comparison; {_FORM}")
    try:
        lookup(name)
    except KeyError:
        raise ValueError(f"gate {text!r}: no metric is called {name!r}{near(name, known_names())}") from None
    return name, suffixes


def _absolute(ends: Interval) -> Interval:
    low, high = ends
    if low <= 0 <= high:
        return 0.0, max(-low, high)
    return (low, high) if low > 0 else (-high, -low)
