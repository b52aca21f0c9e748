"""Gates such as ``binary/recall >= 0.9``: requirements that a run must meet to be ranked."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from cmtrack.digits import significant
from cmtrack.evaluation.catalog import OPEN
from cmtrack.metrics.intervals import Interval, further_rows, normal_quantile
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
"""Pattern that finds the last comparison sign; a segment's name may contain one, as in "> 40"."""
_FORM_OF_SEGMENTS = (
    "the form is 'segment/column/value/metric >= number', with * for all values; write a slash in "
    "a name as _u2f_"
)
_FORM = (
    "the form is 'metric >= number', the metric optionally followed by .abs, .difference, and "
    ".low or .high"
)


class GateOutcome(Enum):
    """Outcome of a gate: it holds, the rows refute it, or they leave it open."""

    HOLDS = "holds"
    REFUTED = "refuted"
    OPEN = "open"


@dataclass(frozen=True)
class Gate:
    """A bound that the value of a metric must meet.

    Attributes
    ----------
    text : str
        The text of the gate, as the user wrote it.
    metric : str
    bound : float
    operator : "<=", ">=", "<" or ">"
    absolute : bool
        Whether the gate bounds the metric's distance from zero (``.abs``).
    difference : bool
        Whether the gate bounds the difference from the baseline (``.difference``).
    end : "", "low" or "high"
        The limit of the interval that must meet the bound; empty if the value must meet it.
    column : str
        For a gate on segments (``segment/region/*/binary/recall``), the column that divides the
        rows; empty for a gate on all rows.
    segment : str
        The segment that must meet the bound; "*" for all segments.
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
        """Parse the text of a gate."""
        if not isinstance(text, str):
            raise TypeError(
                f"a gate must be a string such as 'class/3/recall >= 0.6', got {text!r}"
            )
        is_of_segments = text.strip().startswith(OF_SEGMENTS)
        parts = _PARTS.fullmatch(text)
        if is_of_segments:
            parts = _PARTS_OF_SEGMENTS.fullmatch(text) or parts
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
                f"gate {text!r}: expected a number after {sign!r} (character {where}), "
                f"got {right!r}"
            )
        left = parts["left"].strip()
        column = ""
        segment = ""
        if is_of_segments:
            column, segment, left = _split_segment(left, text)
        name, suffixes = _split_suffixes(left, text)
        if name.split("/")[0] == FLIPS.name and (column or "difference" in suffixes):
            raise ValueError(
                f"gate {text!r}: {name} compares all rows with a baseline, so it accepts no "
                "segment and no .difference"
            )
        return cls(
            text.strip(),
            name,
            bound,
            sign,
            absolute="abs" in suffixes,
            difference="difference" in suffixes,
            end=next((end for end in _BOUNDS if end in suffixes), ""),
            column=column,
            segment=segment,
        )

    @property
    def of_flips(self) -> bool:
        """True if the gate bounds how many rows a run breaks or fixes relative to the baseline."""
        return self.metric.split("/")[0] == FLIPS.name

    @property
    def against(self) -> bool:
        """True if the gate needs a baseline."""
        return self.difference or self.of_flips

    @property
    def of_value(self) -> bool:
        """True if the gate needs only the metric's value, and no interval, baseline or segment."""
        return not self.end and not self.against and not self.column

    def keeps(self, value: float) -> bool:
        """Return True if a value meets the bound, and False if it does not or is undefined."""
        return math.isfinite(value) and bool(OPERATORS[self.operator](value, self.bound))

    def check(
        self,
        metrics: Mapping[str, float],
        intervals: Mapping[str, Interval],
        against: Difference | None = None,
    ) -> GateResult:
        """Decide whether a run passes the gate.

        Parameters
        ----------
        metrics, intervals : mapping
            The run's metrics and intervals by name.
        against : Difference, optional
            The difference of this metric between the run and the baseline.
        """
        if self.difference:
            if against is None:
                return GateResult(
                    self, math.nan, False, "there is no baseline to take a difference from"
                )
            value = against.difference
            ends = (against.low, against.high)
        else:
            value = metrics.get(self.metric, math.nan)
            ends = intervals.get(self.metric, (math.nan, math.nan))
        value = self._compared(value, ends)
        if math.isfinite(value):
            return GateResult(self, value, self.keeps(value), "", crossed=self._is_crossed(ends))
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
        """Decide whether each segment of a run meets the bound.

        Parameters
        ----------
        found : mapping of str to (value, interval)
            The value of the metric, or its difference from the baseline, by the name of the
            segment.
        too_few : mapping of str to str, optional
            Segments that are too small for an interval, or too small for a decision based on the
            interval. The values of the mapping state the reason in words.

        Returns
        -------
        GateResult
            The value and name of the segment that is farthest from meeting the bound.
        """
        values = {text: self._compared(*estimate) for text, estimate in found.items()}
        finite = {text: value for text, value in values.items() if math.isfinite(value)}
        missing = [text for text in values if text not in finite]
        words = too_few or {}
        # In a small segment, an interval that crosses the bound is not a failure if the value
        # meets the bound.
        undecided = [
            text
            for text in words
            if text in finite and self.keeps(found[text][0]) and not self.keeps(finite[text])
        ]
        failing = [text for text in finite if not self.keeps(finite[text])]
        failing = [text for text in failing if text not in undecided]
        farthest = max if self.operator.startswith("<") else min
        if failing:
            # Undecided segments are not in this list, so the segment farthest from the bound really
            # fails.
            last = farthest(failing, key=finite.__getitem__)
            # The gate is refuted if any segment refutes it.
            crossed = all(self._is_crossed(found[text][1]) for text in failing)
            return GateResult(self, finite[last], False, "", last, crossed=crossed)
        if finite and not undecided and not missing:
            last = farthest(finite, key=finite.__getitem__)
            return GateResult(self, finite[last], True, "", last)
        return self._without_answer(found, missing or undecided, words)

    def _without_answer(
        self,
        found: Mapping[str, tuple[float, Interval]],
        segments: list[str],
        too_few: Mapping[str, str],
    ) -> GateResult:
        """Return the outcome if segments lack a number to compare, or are too small to decide."""
        undefined = [text for text in segments if not math.isfinite(found[text][0])]
        first = (undefined or segments)[0]
        names = quoted(first)
        if len(segments) > 1:
            names += f" and {len(segments) - 1} more"
        number = f"the difference in {self.metric}" if self.difference else self.metric
        if undefined:
            reason = f"{number} is undefined for {names}"
        elif first in too_few:
            reason = f"{names}: {too_few[first]}"
        else:
            reason = f"{number} has no interval for {names}"
        return GateResult(self, math.nan, False, reason, undecided=not undefined)

    def _is_crossed(self, ends: Interval) -> bool:
        """Return whether one end of an interval meets the bound and the other end does not.

        Only a gate on the end that is farther from meeting the bound, such as ``.low >= 0``, can be
        crossed. Every other gate is met or refuted by the number that it names.
        """
        facing = {"low": ">", "high": "<"}
        if self.absolute or not self.end or not self.operator.startswith(facing[self.end]):
            return False
        low, high = (bool(OPERATORS[self.operator](end, self.bound)) for end in ends)
        return low != high

    def _compared(self, value: float, ends: Interval) -> float:
        """Return the number that is compared with the bound."""
        if self.absolute:
            value = abs(value)
            ends = _absolute(ends)
        return ends[_BOUNDS.index(self.end)] if self.end else value


@dataclass(frozen=True)
class GateResult:
    """A gate, and the outcome of checking it.

    Attributes
    ----------
    gate : Gate
    value : float
        The number that was compared with the bound; NaN if no number could be compared.
    passed : bool
    reason : str
        The reason why no number could be compared with the bound.
    segment : str
        For a gate on segments, the segment whose number was compared.
    undecided : bool
        Whether the data do not permit a decision, because the interval is missing or is computed
        from too few rows or clusters.
    crossed : bool
        Whether the bound lies within the interval whose end was compared.
    rows_more : float
        For an open gate, the number of further rows that would decide it with 80% power if the
        estimate is the true value; NaN if there is no such number.
    """

    gate: Gate
    value: float
    passed: bool
    reason: str
    segment: str = ""
    undecided: bool = False
    crossed: bool = False
    rows_more: float = math.nan

    @property
    def outcome(self) -> GateOutcome:
        """The outcome; a gate without a number to compare is open, although it does not pass."""
        if self.passed:
            return GateOutcome.HOLDS
        if self.crossed or not math.isfinite(self.value):
            return GateOutcome.OPEN
        return GateOutcome.REFUTED

    @property
    def found(self) -> str:
        """The compared number with its segment, or the reason why no number could be compared."""
        return self.reason or self._shown

    @property
    def _shown(self) -> str:
        shown = ""
        for digits in (3, 4, 6, 17):
            rounded = self._rounded(digits)
            shown = significant(rounded, digits)
            # 0.8999 must not appear as 0.9 next to the bound 0.9, and 0.0002 not as 0.
            looks_equal = {self.gate.bound, 0.0}
            if rounded == self.value or rounded not in looks_equal:
                break
        return f"{shown} for {quoted(self.segment)}" if self.segment else shown

    def _rounded(self, digits: int) -> float:
        """Return the value, rounded to significant digits of the larger of value and bound."""
        largest = max(abs(self.value), abs(self.gate.bound))
        places = digits - 1 - math.floor(math.log10(largest)) if largest > 0 else 0
        return round(self.value, places) + 0.0  # adding 0 turns -0 into 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        data = {
            "gate": self.gate.text,
            "value": self.value,
            "bound": self.gate.bound,
            "passed": self.passed,
            "reason": self.reason,
        }
        if self.gate.column:
            data["segment"] = self.segment
        return data

    def __str__(self) -> str:
        if self.reason:
            return f"{self.gate.text} ({self.reason})"
        return f"{self.gate.text} (is {self._shown})"


def with_rows_more(
    result: GateResult, estimate: float, error: float, rows: float, level: float
) -> GateResult:
    """Return a gate's result with the number of further rows that would decide it.

    ``estimate``, ``error``: the value or difference that the gate bounds, and its standard error.
    ``rows``, ``level``: number of rows of the estimate, and confidence level of its interval.
    """
    if result.outcome is not GateOutcome.OPEN:
        return result
    distance = abs(estimate - result.gate.bound)
    more = further_rows(rows, error, distance, normal_quantile(level))
    return replace(result, rows_more=more)


def check_known(gates: Collection[Gate], known: Collection[str]) -> None:
    """Raise ValueError if a gate names a metric that no run contains."""
    for gate in gates:
        if gate.metric not in known and not gate.of_flips:
            raise ValueError(
                f"gate {gate.text!r}: no run has {gate.metric!r}{near_or_own(gate.metric, known)}"
            )


def _split_segment(left: str, text: str) -> tuple[str, str, str]:
    """Split the left side of a gate into column, segment and metric."""
    parts = segment_parts(left)
    if parts is None:
        raise ValueError(
            f"gate {text!r}: expected a column, a segment and a metric; {_FORM_OF_SEGMENTS}"
        )
    return parts


def _split_suffixes(left: str, text: str) -> tuple[str, set[str]]:
    """Split the left side of a gate into the name of the metric and its suffixes."""
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
            raise ValueError(f"gate {text!r}: expected .low or .high, got both")
        suffixes.add(last)
        name = head
    if not name:
        raise ValueError(f"gate {text!r}: expected a metric before the comparison; {_FORM}")
    try:
        # The name may belong to a custom metric. check_known raises if no run contains it.
        OPEN.find(name)
    except KeyError:
        raise ValueError(
            f"gate {text!r}: there is no metric named {name!r}{near_metric(name, OPEN.names)}"
        ) from None
    return name, suffixes


def _absolute(ends: Interval) -> Interval:
    low, high = ends
    if low <= 0 <= high:
        return 0.0, max(-low, high)
    return (low, high) if low > 0 else (-high, -low)
