"""Numbers as people read them: on pages, in figures, in messages and on the command line.

Every number is rounded here, by one rule: the shortest decimal that stands for it, half to even. A format
specification rounds the float instead, and shows 0.8115 as 0.811 and as 81.2 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from cmtrack.untrusted import one_line

Interval = tuple[float, float]
_EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)
"""Enough digits for every float, so that a number is rounded only once."""


def minus(text: str) -> str:
    """A number's text with a real minus."""
    return text.replace("-", "−")


def fixed(value: float, places: int, times_ten: int = 0, *, sign: bool = False) -> str:
    """Return a number with fixed decimals and a typographic minus; never "−0".

    ``times_ten``: powers of ten by which the number is multiplied: 2 for percent.
    ``sign``: whether a positive number has a plus; one that is rounded to 0 then keeps its sign.
    """
    if not math.isfinite(value):
        return minus(f"{value:.{places}f}")
    unit = Decimal(1).scaleb(-places)
    text = f"{_shifted(value, times_ten).quantize(unit, context=_EXACT):f}"
    if sign and value:
        return minus(text) if text.startswith("-") else f"+{text}"
    return minus(text) if text.strip("-0.") else text.lstrip("-")


def significant(value: float, digits: int = 3, times_ten: int = 0) -> str:
    """Return a number with at most this many significant digits, without zeros at its end: "0.812", "20", "1,300"."""
    if not math.isfinite(value):
        return minus(f"{value:g}")
    shifted = _shifted(value, times_ten)
    rounded = Context(prec=digits, rounding=ROUND_HALF_EVEN).plus(shifted)
    return minus(f"{float(rounded):,.10g}")


def significant_with_interval(value: float, low: float, high: float) -> str:
    """Return ``0.25 [0.164, 0.491]``, or the number alone without a finite interval; "undefined" for NaN."""
    if math.isnan(value):
        return "undefined"
    if not math.isfinite(low + high):
        return significant(value)
    return f"{significant(value)} [{significant(low)}, {significant(high)}]"


def _shifted(value: float, times_ten: int) -> Decimal:
    """The shortest decimal that stands for a number, times a power of ten."""
    return Decimal(repr(float(value))).scaleb(times_ten, _EXACT)


def number(value: float, ends: Interval | None = None) -> str:
    """A number with the digits that its interval supports; "undefined" for NaN."""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if (float(value).is_integer() and abs(value) >= 2) or abs(value) >= 1000:
        return minus(f"{value:,.0f}")
    if 0 < abs(value) <= 5e-4:
        return minus(f"{value:.2g}")
    return fixed(value, _places(value, ends))


def count(value: float) -> str:
    """A number of samples: whole, or with one decimal where it is not."""
    if math.isnan(value):
        return "undefined"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def in_words(n: int) -> str:
    """A number of things in a sentence: "six", and from 11 on "11"."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    return words[n] if n < len(words) else f"{n:,}"


def interval(value: float, ends: Interval | None) -> str:
    """``[low, high]``, or nothing where there is no interval."""
    if ends is None or not all(map(math.isfinite, ends)):
        return ""
    places = _places(value, ends)
    return f"[{_end(ends[0], places)}, {_end(ends[1], places)}]"


def _end(end: float, places: int) -> str:
    """An end of an interval; one that is not 0 is not printed as 0."""
    if end and 1e-9 < abs(end) < 0.5 * 10**-places:
        places = -math.floor(math.log10(abs(end)))
    return fixed(end, places)


def with_interval(value: float, ends: Interval | None) -> str:
    """``0.712 [0.653, 0.766]``."""
    return f"{number(value, ends)} {interval(value, ends)}".rstrip()


def named_value(name: str, value: float, low: float, high: float) -> str:
    """``recall 0.712 [0.653, 0.766]`` for a cell of MLflow's tables."""
    if not math.isfinite(value):
        return f"{name} undefined"
    shown, first, last = (fixed(part, 3) for part in (value, low, high))
    return f"{name} {shown} [{first}, {last}]" if math.isfinite(low + high) else f"{name} {shown}"


def percent(share: float) -> str:
    """A share in per cent, with more digits close to 0 and 100 %, and at most one beyond."""
    if math.isnan(share):
        return "undefined"
    edge = min(share, 1 - share)
    if 0 < edge < 5e-6:
        return "< 0.001 %" if share < 0.5 else "> 99.999 %"
    if edge == 0:
        return f"{fixed(share, 0, 2)} %"
    return f"{fixed(share, 3 if 0 < edge < 0.001 else 1, 2)} %"


def percent_with_interval(share: float, ends: Interval | None) -> str:
    """``79.9 % [73.6, 85.0]``: one unit for the value and its interval."""
    if ends is None or not all(map(math.isfinite, (share, *ends))):
        return percent(share)
    places = max(1, _places(share, ends) - 2)
    shown, low, high = (fixed(part, places, 2) for part in (share, *ends))
    return f"{shown} % [{low}, {high}]"


def points(difference: float, ends: Interval | None) -> str:
    """A difference of shares: ``3.7 percentage points [1.2, 6.2]``; an end reads as 0 only where 0 is inside."""
    places = max(1, _places(difference, ends) - 2)
    if ends is None or not all(map(math.isfinite, ends)):
        return f"{fixed(difference, places, 2)} percentage points"
    while ends[0] * ends[1] > 0 and places < 5 and not round(100 * min(map(abs, ends)), places):
        places += 1
    shown, low, high = (fixed(part, places, 2) for part in (difference, *ends))
    return f"{shown} percentage points [{low}, {high}]"


def _places(value: float, ends: Interval | None) -> int:
    if ends is None or not all(map(math.isfinite, ends)):
        return 3
    width = ends[1] - ends[0]
    return 3 if width < 1e-7 else min(7, max(3, 1 - math.floor(math.log10(width))))


def level(confidence_level: float) -> str:
    """``95 %``."""
    return f"{round(100 * confidence_level, 6):g} %"


def plain_number(value: Any) -> str:
    """A tie-breaker's value: a number with three significant digits, a text whole."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return "undefined" if math.isnan(value) else significant(value)
    return one_line(value)


def signed(value: float, ends: tuple[float, float] | None = None) -> str:
    """A difference with its sign, and its interval."""
    shown = with_interval(value, ends)
    return f"+{shown}" if value > 0 and not shown.startswith("0.000 ") else shown


def signed_or_why(value: float, ends: tuple[float, float], reason: str) -> str:
    """A difference with its sign and its interval, or the reason why it has none."""
    return signed(value, ends) + (f" ({reason})" if reason else "")


def p_text(value: float, least: float = 0.001) -> str:
    """A p-value, or a share of simulated draws; ``≤`` at the smallest possible value."""
    if math.isnan(value):
        return "–"
    if value < 0.001:
        return "< 0.001"
    return f"≤ {least:.3f}" if value <= least * (1 + 1e-9) else f"{value:.3f}"


def p_equals(value: float) -> str:
    """A p-value in a sentence: "p = 0.012", "p < 0.001" or, the least of 999 draws, "p ≤ 0.001"."""
    shown = p_text(value)
    return f"p {shown}" if shown[0] in "<≤" else f"p = {shown}"


def two_places(value: float) -> str:
    """A number with two decimals."""
    return fixed(value, 2)


def two_places_interval(ends: Interval) -> str:
    """``[low, high]`` with two decimals, or nothing where there is no interval."""
    return (
        f"[{two_places(ends[0])}, {two_places(ends[1])}]" if all(map(math.isfinite, ends)) else ""
    )


def rounded(value: float) -> float | None:
    """A number with six decimals, for tables that programs read; None where it is undefined."""
    return round(float(value), 6) if math.isfinite(value) else None


def short_percent(share: float) -> str:
    """A share in per cent with three significant digits: "81.2 %", "0.0123 %", "20 %"."""
    return f"{significant(share, 3, 2)} %"


def short_count(value: float) -> str:
    """A count or a sum of weights in at most seven characters: 273, 12,345, 1.24M, 3.5."""
    if value >= 999_500:
        for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
            if value >= 0.9995 * unit:
                return f"{significant(value / unit)}{name}"
    if value >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return significant(value)


def whole_percent(share: float) -> str:
    """A share in whole per cent for a cell of a figure; 0 and 100 only if exact, nothing for NaN."""
    if not math.isfinite(share):
        return ""
    if 0 < share < 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{fixed(share, 0, 2)}%"


def figure_percent(share: float) -> str:
    """A share in per cent with three significant digits for a figure, or the word for NaN."""
    if not math.isfinite(share):
        return "undefined"
    return f"{significant(share, 3, 2)}%"


def places_apart(values: Sequence[float]) -> int:
    """Decimals that tell values of a column apart: three for shares, more if they are close, fewer for large ones."""
    finite = [float(value) for value in values if math.isfinite(value)]
    if not finite:
        return 3
    largest = max(map(abs, finite))
    spread = max(finite) - min(finite)
    least = 3
    if largest > 1:
        least = max(0, 3 - math.ceil(math.log10(largest)))
    if spread == 0:
        return least
    return min(max(1 + math.ceil(-math.log10(spread)), least), 5)
