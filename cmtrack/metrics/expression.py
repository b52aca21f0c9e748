"""Functions of the six counts as lists of arithmetic steps, for readers that run no Python, such as a page's script.

A function is called with counts that record what is done with them. So a formula is written once, in its metric.
"""

from __future__ import annotations

import math
import numbers
from functools import partialmethod
from typing import Any

from cmtrack.metrics.metric import Metric
from cmtrack.statistics import BinaryCounts

Operation = list[Any]
"""A step: ``["+", a, b]`` and so on for ``- * /``, ``["sqrt", a]``, ``["number", value]``.

a and b are places of earlier steps, the first six of which are the counts.
"""


class NotArithmetic(TypeError):
    """Raised if a function compares, rounds, or does anything but + − × ÷ √."""


class Program:
    """Instruction list under construction, deduplicated."""

    def __init__(self) -> None:
        self.steps: list[Operation] = []
        self._places: dict[tuple[Any, ...], int] = {}

    def counts(self) -> BinaryCounts:
        """The six counts, as the first steps."""
        parts: Any = (Recorded(self, self.place("count", name)) for name in BinaryCounts._fields)
        return BinaryCounts(*parts)

    def place(self, *step: Any) -> int:
        """The place of a step, which is appended where it is new."""
        if step not in self._places:
            self._places[step] = len(self.steps)
            self.steps.append(list(step))
        return self._places[step]

    def forget(self, n: int) -> None:
        """Take back all but the first ``n`` steps."""
        del self.steps[n:]
        self._places = {step: place for step, place in self._places.items() if place < n}

    def place_of(self, value: Any) -> int:
        """The place of a recorded number, or of a constant."""
        if isinstance(value, Recorded):
            return value.place
        if isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value):
            return self.place("number", float(value))
        raise NotArithmetic(f"steps are of numbers, got {value!r:.60}")


class Recorded:
    """A number that records the operations applied to it."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, program: Program, place: int) -> None:
        self.program, self.place = program, place

    def _step(self, sign: str, first: Any, second: Any) -> Recorded:
        program = self.program
        return Recorded(program, program.place(sign, program.place_of(first), program.place_of(second)))

    def __add__(self, other: Any) -> Recorded:
        return self if _is(other, 0) else self._step("+", self, other)  # sums begin with 0

    __radd__ = __add__

    def _left_of(self, sign: str, other: Any) -> Recorded:
        return self._step(sign, self, other)

    def _right_of(self, sign: str, other: Any) -> Recorded:
        return self._step(sign, other, self)

    __sub__, __rsub__ = partialmethod(_left_of, "-"), partialmethod(_right_of, "-")
    __mul__, __rmul__ = partialmethod(_left_of, "*"), partialmethod(_right_of, "*")
    __truediv__, __rtruediv__ = partialmethod(_left_of, "/"), partialmethod(_right_of, "/")

    def __neg__(self) -> Recorded:
        return self._step("-", 0.0, self)

    def __pos__(self) -> Recorded:
        return self

    def __pow__(self, exponent: Any) -> Recorded:
        if _is(exponent, 0.5):
            return self.sqrt()
        if _is(exponent, 2):
            return self * self
        raise NotArithmetic(f"powers are 2 or 0.5, got {exponent!r:.60}")

    def sqrt(self) -> Recorded:
        """The square root; ``numpy.sqrt`` of an object calls it."""
        return Recorded(self.program, self.program.place("sqrt", self.place))

    def _refuse(self, *_: Any) -> Any:
        raise NotArithmetic("the function asks for the value of a count, or for more than + - * / and a square root")

    __bool__ = __float__ = __int__ = __complex__ = __index__ = __abs__ = __round__ = __iter__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __floordiv__ = __mod__ = __rpow__ = _refuse


def _is(value: Any, number: float) -> bool:
    return not isinstance(value, Recorded) and isinstance(value, numbers.Real) and float(value) == number


def record(metric: Metric, program: Program) -> int | None:
    """The place of a metric's value among the steps; None where its function cannot be recorded."""
    if metric.of != "binary" or metric.value is None:
        return None
    before = len(program.steps)
    try:
        return program.place_of(metric.value(program.counts()))
    except Exception:  # user code may raise anything on what is not a number
        program.forget(before)
        return None
