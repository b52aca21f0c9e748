"""Gates: what a run must reach to be ranked at all, such as ``prevalence/bias.abs <= 0.01``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack.digits import significant
from cmtrack.evaluation.catalog import OPEN
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.names import OF_SEGMENTS, near_metric, segment_parts
from cmtrack.metrics.own import near_or_own
from cmtrack.names import quoted
from cmtrack.rows.flips import FLIPS

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
_PARTS_OF_SEGMENTS = re.compile(
    r"(?P<left>.*?)(?P<operator><=|>=|==|!=|<|>|=)(?P<right>[^<>=!]*)", re.DOTALL
)
"""The last comparison: a segment may be called "> 40"."""
_FORM_OF_SEGMENTS = "the form is 'segment/column/value/metric >= number', with * for all values; a slash in a name is written _u2f_"
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
    column : str
        Of segments of the rows (``segment/region/*/binary/recall``): what divides the rows; empty of all rows.
    segment : str
        The segment that must keep the bound; "*" for all.
    """

    text: str
    metric: str
    bound: float
    operator: str
    absolute: bool = False
    difference: bool = False
    end: str = ""
    column: str = ""
    segment: str = ""

    @classmethod
    def parse(cls, text: str) -> Gate:
        """Read a gate."""
        if not isinstance(text, str):
            raise TypeError(f"a gate must be a text such as 'class/3/recall >= 0.6', got {text!r}")
        of_segments = text.strip().startswith(OF_SEGMENTS)
        parts = (of_segments and _PARTS_OF_SEGMENTS.fullmatch(text)) or _PARTS.fullmatch(text)
        if parts is None:
            raise ValueError(f"gate {text!r}: expected a comparison (<=, >=, < or >); {_FORM}")
        sign = parts["operator"]
        if sign not in OPERATORS:
            where = parts.start("operator") + 1
            raise ValueError(
                f"gate {text!r}: expected <=, >=, < or > at character {where}, got {sign!r}"
            )
        right = parts["right"].strip()
        try:
            bound = float(right)
        except ValueError:
            bound = math.nan
        if not math.isfinite(bound):
            where = parts.start("right") + 1
            raise ValueError(
                f"gate {text!r}: expected a number after {sign!r} (character {where}), got {right!r}"
            )
        left, column, segment = parts["left"].strip(), "", ""
        if of_segments:
            column, segment, left = _of_segments(left, text)
        name, suffixes = _split(left, text)
        if name.split("/")[0] == FLIPS.name and (column or "difference" in suffixes):
            raise ValueError(f"gate {text!r}: {name} is of all rows, and of a baseline as it is")
        return cls(
            text.strip(),
            name,
            bound,
            sign,
            absolute="abs" in suffixes,
            difference="difference" in suffixes,
            end=next((s for s in suffixes if s in _BOUNDS), ""),
            column=column,
            segment=segment,
        )

    @property
    def of_flips(self) -> bool:
        """True if the gate is about rows that the run breaks or fixes against the baseline."""
        return self.metric.split("/")[0] == FLIPS.name

    @property
    def against(self) -> bool:
        """True if it needs a baseline."""
        return self.difference or self.of_flips

    @property
    def of_value(self) -> bool:
        """True if the metric's value alone decides (no interval, no baseline, no segments)."""
        return not self.end and not self.against and not self.column

    def keeps(self, value: float) -> bool:
        """True if a value is within the bound; False for an undefined one."""
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
                return GateResult(
                    self, math.nan, False, "there is no baseline to take a difference from"
                )
            value, ends = against.difference, (against.low, against.high)
        else:
            value = metrics.get(self.metric, math.nan)
            ends = intervals.get(self.metric, (math.nan, math.nan))
        value = self._meant(value, ends)
        if math.isfinite(value):
            return GateResult(self, value, self.keeps(value), "")
        if self.metric not in metrics:
            return GateResult(self, math.nan, False, f"the run has no {self.metric}")
        if not math.isfinite(metrics[self.metric]):
            return GateResult(self, math.nan, False, f"{self.metric} is undefined")
        why = against.reason if self.difference and against is not None else ""
        return GateResult(
            self, math.nan, False, why or f"{self.metric} has no interval", undecided=True
        )

    def check_segments(
        self, found: Mapping[str, tuple[float, Interval]], too_few: Mapping[str, str] | None = None
    ) -> GateResult:
        """Judge one run by its segments: each of them must keep the bound.

        Parameters
        ----------
        found : mapping of str to (value, interval)
            By the text of the segment; differences from the baseline where these are meant.
        too_few : mapping of str to str, optional
            The words for segments that are too small for an interval, or for one that decides.

        Returns
        -------
        GateResult
            With the value of the segment that is farthest out, and its name.
        """
        values = {text: self._meant(*given) for text, given in found.items()}
        worst = max if self.operator.startswith("<") else min
        finite = {text: value for text, value in values.items() if math.isfinite(value)}
        last = worst(finite, key=finite.__getitem__, default="")
        lacking = [text for text in values if text not in finite]
        words = too_few or {}
        # an end beyond the bound, of a value that keeps it, says nothing where the segment is too small
        unsure = [
            text
            for text in words
            if text in finite and self.keeps(found[text][0]) and not self.keeps(finite[text])
        ]
        failing = [text for text in finite if text not in unsure and not self.keeps(finite[text])]
        if finite and not unsure and (not lacking or failing):
            return GateResult(self, finite[last], self.keeps(finite[last]), "", last)
        if failing:
            last = worst(failing, key=finite.__getitem__)
            return GateResult(self, finite[last], False, "", last)
        lacking = lacking or unsure
        first = next((text for text in lacking if not math.isfinite(found[text][0])), lacking[0])
        defined = math.isfinite(found[first][0])
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        meant = f"the difference in {self.metric}" if self.difference else self.metric
        lack = (
            f"has no interval for {quoted(first)}{more}"
            if defined
            else f"is undefined for {quoted(first)}{more}"
        )
        reason = (
            f"{quoted(first)}{more}: {words[first]}"
            if defined and first in words
            else f"{meant} {lack}"
        )
        return GateResult(self, math.nan, False, reason, undecided=defined)

    def _meant(self, value: float, ends: Interval) -> float:
        """The number to compare with the bound."""
        if self.absolute:
            value, ends = abs(value), _absolute(ends)
        return ends[_BOUNDS.index(self.end)] if self.end else value


@dataclass(frozen=True)
class GateResult:
    """A gate and its outcome.

    Attributes
    ----------
    gate : Gate
    value : float
        What was compared with the bound; NaN where there is nothing.
    passed : bool
    reason : str
        Why there is nothing to compare.
    segment : str
        The segment that the value is of, of a gate on segments.
    undecided : bool
        Whether the data cannot say: there is no interval, or too few rows or clusters for one that tells.
    """

    gate: Gate
    value: float
    passed: bool
    reason: str
    segment: str = ""
    undecided: bool = False

    @property
    def found(self) -> str:
        """The value with four digits, and its segment; the reason if there is none."""
        return self.reason or self._shown

    @property
    def _shown(self) -> str:
        largest = max(abs(self.value), abs(self.gate.bound))
        # no digits that the bound does not ask for
        places = 3 - math.floor(math.log10(largest)) if largest > 0 else 0
        # Four digits, since 0.8999 must not read as 0.9 next to the bound 0.9. Adding 0 makes 0 of -0.
        shown = significant(round(self.value, places) + 0.0, 4)
        return f"{shown} for {quoted(self.segment)}" if self.segment else shown

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "gate": self.gate.text,
            "value": self.value,
            "bound": self.gate.bound,
            "passed": self.passed,
            "reason": self.reason,
        } | ({"segment": self.segment} if self.gate.column else {})

    def __str__(self) -> str:
        if self.reason:
            return f"{self.gate.text} ({self.reason})"
        return f"{self.gate.text} (is {self._shown})"


def check_known(gates: Collection[Gate], known: Collection[str]) -> None:
    """Refuse gates on metrics that no run has."""
    for gate in gates:
        if gate.metric not in known and not gate.of_flips:
            raise ValueError(
                f"gate {gate.text!r}: no run has {gate.metric!r}{near_or_own(gate.metric, known)}"
            )


def _of_segments(left: str, text: str) -> tuple[str, str, str]:
    """Split the left side of a gate into column, segment and metric."""
    parts = segment_parts(left)
    if parts is None:
        raise ValueError(
            f"gate {text!r}: expected a column, a segment and a metric; {_FORM_OF_SEGMENTS}"
        )
    return parts


def _split(left: str, text: str) -> tuple[str, set[str]]:
    """The metric's name and the suffixes behind it."""
    suffixes: set[str] = set()
    name = left
    while True:
        head, dot, last = name.rpartition(".")
        if not dot or last not in ("abs", "difference", *_BOUNDS):
            break
        if last in suffixes or (last in _BOUNDS and suffixes):
            raise ValueError(
                f"gate {text!r}: unexpected '.{last}' at character {len(head) + 1}; {_FORM}"
            )
        if last in _BOUNDS and suffixes & set(_BOUNDS):
            raise ValueError(f"gate {text!r}: either .low or .high, not both")
        suffixes.add(last)
        name = head
    if not name:
        raise ValueError(f"gate {text!r}: expected a metric before the comparison; {_FORM}")
    try:
        # a run may bring a metric of its user's own; check_known refuses one that none has
        OPEN.find(name)
    except KeyError:
        raise ValueError(
            f"gate {text!r}: no metric is called {name!r}{near_metric(name, OPEN.names)}"
        ) from None
    return name, suffixes


def _absolute(ends: Interval) -> Interval:
    low, high = ends
    if low <= 0 <= high:
        return 0.0, max(-low, high)
    return (low, high) if low > 0 else (-high, -low)
