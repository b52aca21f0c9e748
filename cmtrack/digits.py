"""Formatting of numbers for people: on pages, in figures, in messages and on the command line.

This module rounds every number by the same rule. The rule takes the shortest decimal number that
represents the float, and rounds halves to the even digit. A format specification would round the
float itself and show 0.8115 both as 0.811 and as 81.2%.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from cmtrack.untrusted import one_line

Interval = tuple[float, float]
_EXACT = Context(prec=400, rounding=ROUND_HALF_EVEN)
"""Context with enough digits for every float, so that a number is rounded only once."""


def minus(text: str) -> str:
    """Replace the hyphen in the text of a number with a typographic minus."""
    return text.replace("-", "−")


def fixed(value: float, places: int, times_ten: int = 0, *, sign: bool = False) -> str:
    """Format a number with fixed decimals and a typographic minus, but never as "−0".

    ``times_ten``: power of ten by which the number is multiplied, for example 2 for percent.
    ``sign``: whether to write a plus before a positive number. If so, a number that is rounded to 0
        keeps its sign.
    """
    if not math.isfinite(value):
        return minus(f"{value:.{places}f}")
    unit = Decimal(1).scaleb(-places)
    text = f"{_shifted(value, times_ten).quantize(unit, context=_EXACT):f}"
    if sign and value > 0:
        return f"+{text}"
    is_zero = not text.strip("-0.")
    if is_zero and not (sign and value):
        return text.lstrip("-")
    return minus(text)


def significant(value: float, digits: int = 3, times_ten: int = 0) -> str:
    """Format a number with at most ``digits`` significant digits: "0.812", "20", "1,300"."""
    if not math.isfinite(value):
        return minus(f"{value:g}")
    shifted = _shifted(value, times_ten)
    rounded = Context(prec=digits, rounding=ROUND_HALF_EVEN).plus(shifted)
    return minus(f"{float(rounded):,.10g}")


def significant_with_interval(value: float, low: float, high: float) -> str:
    """Format as ``0.250 [0.164, 0.491]``, or only the number if the interval is undefined."""
    if math.isnan(value):
        return "undefined"
    if not math.isfinite(low + high):
        return significant(value)
    texts = [significant(part) for part in (value, low, high)]
    places = max(len(text.partition(".")[2]) for text in texts)
    # All three have the same number of decimals, so that a reader can compare them.
    value_text, low_text, high_text = (_padded(text, places) for text in texts)
    return f"{value_text} [{low_text}, {high_text}]"


def _padded(text: str, places: int) -> str:
    """Append zeros to the text of a number until it has that many decimals; keep an exact 0."""
    whole, _, decimals = text.partition(".")
    if places == 0 or text == "0":
        return text
    return f"{whole}.{decimals.ljust(places, '0')}"


def _shifted(value: float, times_ten: int) -> Decimal:
    """Return the shortest decimal that represents a number, multiplied by a power of ten."""
    return Decimal(repr(float(value))).scaleb(times_ten, _EXACT)


def number(value: float, ends: Interval | None = None) -> str:
    """Format a number with decimals that suit its interval's width; NaN becomes "undefined"."""
    if math.isnan(value):
        return "undefined"
    if value == math.inf:
        return "∞"
    if value == -math.inf:
        return "−∞"
    size = abs(value)
    # 0 and 1 are shares more often than counts, so they get decimals like other shares.
    is_count = float(value).is_integer() and size >= 2
    if is_count or size >= 1000:
        return minus(f"{value:,.0f}")
    if 0 < size <= 5e-4:  # three decimals would show 0
        return minus(f"{value:.2g}")
    return fixed(value, _places(ends))


def count(value: float) -> str:
    """Format a number of rows as a whole number, or a sum of weights with one decimal."""
    if math.isnan(value):
        return "undefined"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.1f}"


def in_words(n: int) -> str:
    """Write a whole number for a sentence: up to ten as a word, and larger numbers in digits."""
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    if n < len(words):
        return words[n]
    return f"{n:,}"


def interval(value: float, ends: Interval | None) -> str:
    """Return ``[low, high]``, or an empty text if the interval is missing or not finite."""
    if ends is None or not all(map(math.isfinite, ends)):
        return ""
    places = _places(ends)
    low, high = (_limit(limit, places) for limit in ends)
    return f"[{low}, {high}]"


def _limit(limit: float, places: int) -> str:
    """Format a limit of an interval; only a limit of exactly 0 is printed as 0."""
    if 1e-9 < abs(limit) < 0.5 * 10**-places:
        places = -math.floor(math.log10(abs(limit)))
    return fixed(limit, places)


def with_interval(value: float, ends: Interval | None) -> str:
    """Return ``0.712 [0.653, 0.766]``, or only the number if the interval is not finite."""
    return f"{number(value, ends)} {interval(value, ends)}".rstrip()


def named_value(name: str, value: float, low: float, high: float) -> str:
    """Return ``recall 0.712 [0.653, 0.766]`` for a cell in one of MLflow's tables."""
    if not math.isfinite(value):
        return f"{name} undefined"
    if not math.isfinite(low + high):
        return f"{name} {fixed(value, 3)}"
    return f"{name} {fixed(value, 3)} [{fixed(low, 3)}, {fixed(high, 3)}]"


def percent(share: float) -> str:
    """Format a share in percent with one decimal, or with three decimals close to 0% and 100%."""
    if math.isnan(share):
        return "undefined"
    edge = min(share, 1 - share)
    if 0 < edge < 5e-6:  # rounding to three decimals would give 0 or 100%
        if share < 0.5:
            return "< 0.001%"
        return "> 99.999%"
    places = 1
    if edge == 0:
        places = 0
    elif 0 < edge < 0.001:
        places = 3
    return f"{fixed(share, places, 2)}%"


def percent_with_interval(share: float, ends: Interval | None) -> str:
    """Return ``79.9% [73.6, 85.0]``, with the percent sign only after the value."""
    if ends is None or not all(map(math.isfinite, (share, *ends))):
        return percent(share)
    places = max(1, _places(ends) - 2)
    shown, low, high = (fixed(value, places, 2) for value in (share, *ends))
    return f"{shown}% [{low}, {high}]"


def points(difference: float, ends: Interval | None) -> str:
    """Format the difference between two shares: ``3.7 percentage points [1.2, 6.2]``.

    A limit is printed as 0 only if 0 is inside the interval, because readers look for 0 in the
    interval to see whether the difference is significant.
    """
    value, bracket = _points_and_interval(difference, ends)
    return f"{value} percentage points {bracket}".rstrip()


def signed_points(difference: float, ends: Interval | None) -> str:
    """Format as in :func:`points`, with a sign and without the unit: ``+3.7 [1.2, 6.2]``."""
    value, bracket = _points_and_interval(difference, ends, sign=True)
    return f"{value} {bracket}".rstrip()


def _points_and_interval(
    difference: float, ends: Interval | None, *, sign: bool = False
) -> tuple[str, str]:
    places = max(1, _places(ends) - 2)
    if ends is None or not all(map(math.isfinite, ends)):
        return fixed(difference, places, 2, sign=sign), ""
    excludes_zero = ends[0] * ends[1] > 0
    nearest = 100 * min(map(abs, ends))
    while excludes_zero and places < 5 and not round(nearest, places):
        places += 1
    low, high = (fixed(value, places, 2) for value in ends)
    return fixed(difference, places, 2, sign=sign), f"[{low}, {high}]"


def _places(ends: Interval | None) -> int:
    """Return the number of decimals (3 to 7) that shows two digits of an interval's width."""
    if ends is None or not all(map(math.isfinite, ends)):
        return 3
    width = ends[1] - ends[0]
    if width < 1e-7:  # the width is 0 or a rounding error
        return 3
    return min(7, max(3, 1 - math.floor(math.log10(width))))


def level(confidence_level: float) -> str:
    """Return a confidence level in percent, such as ``95%``."""
    return f"{round(100 * confidence_level, 6):g}%"


def plain_numbers(values: Sequence[Any]) -> list[str]:
    """Format the values of a tie-breaker so that different numbers give different texts."""
    exact = {_plain_number(value, 17) for value in values}
    for digits in range(3, 17):
        texts = [_plain_number(value, digits) for value in values]
        if len(set(texts)) == len(exact):
            break
    return texts


def _plain_number(value: Any, digits: int) -> str:
    if value is None:
        return "none"
    if not isinstance(value, float):
        return one_line(value)
    if math.isnan(value):
        return "undefined"
    return significant(value, digits)


def signed(value: float, ends: tuple[float, float] | None = None) -> str:
    """Format a difference with its sign and, if given, its interval."""
    shown = with_interval(value, ends)
    is_shown_as_zero = shown.startswith("0.000 ")
    if value > 0 and not is_shown_as_zero:
        return f"+{shown}"
    return shown


def signed_or_why(value: float, ends: tuple[float, float], reason: str) -> str:
    """Format a difference with its sign and its interval, or why the interval is undefined."""
    shown = signed(value, ends)
    if reason:
        shown += f" ({reason})"
    return shown


def p_text(value: float, least: float = 0.001) -> str:
    """Format a p-value or a share of simulated draws, with ``≤`` for the least possible value."""
    if math.isnan(value):
        return "–"
    if value < 0.001:
        return "< 0.001"
    if value <= least * (1 + 1e-9):
        return f"≤ {least:.3f}"
    return f"{value:.3f}"


def p_equals(value: float) -> str:
    """Format a p-value as "p = 0.012" or "p < 0.001"; 999 draws may also give "p ≤ 0.001"."""
    shown = p_text(value)
    if shown[0] in "<≤":
        return f"p {shown}"
    return f"p = {shown}"


def two_places(value: float) -> str:
    """Format a number with two decimals."""
    return fixed(value, 2)


def two_places_interval(ends: Interval) -> str:
    """Return ``[low, high]`` with two decimals, or an empty text if it is not finite."""
    if not all(map(math.isfinite, ends)):
        return ""
    return f"[{two_places(ends[0])}, {two_places(ends[1])}]"


def rounded(value: float) -> float | None:
    """Round a number to six decimals for tables that programs read; None if undefined."""
    if not math.isfinite(value):
        return None
    return round(float(value), 6)


def short_percent(share: float) -> str:
    """Format a share in percent with three significant digits: "81.2%", "0.0123%", "20%"."""
    if not math.isfinite(share):
        return "undefined"
    return f"{significant(share, 3, 2)}%"


def short_count(value: float) -> str:
    """Format a count or a sum of weights in at most seven characters: 273, 12,345, 1.24M, 3.5."""
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= 0.9995 * unit:  # with three digits it is rounded up to 1 unit
            return f"{significant(value / unit)}{name}"
    if value >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    return significant(value)


def whole_percent(share: float) -> str:
    """Format a share in whole percent; "0%" and "100%" mean exact values, and NaN gives ""."""
    if not math.isfinite(share):
        return ""
    if 0 < share < 0.005:
        return "<1%"
    if 0.995 <= share < 1:
        return ">99%"
    return f"{fixed(share, 0, 2)}%"


def places_apart(values: Sequence[float]) -> int:
    """Return the number of decimals for a column: more for close values, fewer for large ones."""
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
