"""Drawings of confidence intervals in the rows of a ranking, on a scale that all rows share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cmtrack.report import formatting as fmt
from cmtrack.report.review.cells import Cell

WIDTH = 90.0
"""Width of a drawing in CSS pixels."""
_EDGE = 5.0
"""Number of pixels left free at each end of a drawing for marks and arrows."""
_REACH = 2.0
"""Largest width of a scale, as a multiple of the width needed for the runs that may be the best.

This limit prevents a single bad run from making the intervals of all other runs too small to read.
"""
_WIDEST = 3.0
"""Largest half-width of an interval on the scale, as a multiple of a median half-width.

The median is taken over the runs that may be the best. This limit prevents a single wide interval
from making all other intervals too small to read.
"""


@dataclass(frozen=True)
class Bar:
    """The drawing of one interval; all positions are in pixels from the left.

    ``at``, ``low``, ``high``: positions of the value and of both ends of the interval, limited to
        the drawing.
    ``zero``: position of the line at 0, or None if there is no such line.
    ``beyond``: the side ("left" or "right") on which the value is outside the scale; empty if the
        value is on the scale.
    ``arrows``: the sides ("left", "right") on which the interval continues outside the scale.
    ``first``, ``last``: the numbers at the left and right end of the scale.
    """

    at: float
    low: float
    high: float
    zero: float | None
    beyond: str
    arrows: tuple[str, ...]
    first: float
    last: float


def bars(
    intervals: Sequence[tuple[float, float, float]], matter: Sequence[bool], zero: bool = False
) -> list[Bar | None]:
    """Return the drawing of each row of a column, or None if a value or an end is not finite.

    ``intervals``: the value and both ends of its interval for each row.
    ``matter``: whether each run may be the best. The scale fits the runs that may be the best, and
        includes all other runs as far as it remains readable.
    ``zero``: whether the scale has a line at 0.
    """
    finite = []
    finite_tied = []
    for row, is_tied in zip(intervals, matter, strict=True):
        if all(map(math.isfinite, row)):
            finite.append(row)
            if is_tied:
                finite_tied.append(row)
    if not finite:
        return [None] * len(intervals)
    scale = _scale(finite, finite_tied, [0.0] if zero else [])
    return [_bar(row, scale, zero) if all(map(math.isfinite, row)) else None for row in intervals]


def _bar(interval: tuple[float, float, float], scale: tuple[float, float], has_zero: bool) -> Bar:
    """Return the drawing of a value and both ends of its interval."""
    value, low, high = interval
    first, last = scale

    def place_of(number: float) -> float:
        share = (number - first) / (last - first)
        return round(_EDGE + (WIDTH - 2 * _EDGE) * min(max(share, 0.0), 1.0), 2)

    beyond = ""
    arrows = []
    if value < first:
        beyond = "left"
    elif low < first:
        arrows.append("left")
    if value > last:
        beyond = "right"
    elif high > last:
        arrows.append("right")
    return Bar(
        at=place_of(value),
        low=place_of(low),
        high=place_of(high),
        zero=place_of(0.0) if has_zero else None,
        beyond=beyond,
        arrows=tuple(arrows),
        first=float(first),
        last=float(last),
    )


def draw_columns(
    rows: Sequence[Mapping[str, Cell]], matter: Sequence[bool], with_zero: str = ""
) -> dict[str, tuple[str, str]]:
    """Add drawings to the cells with intervals, and return the scale of each such column.

    A scale is returned as the numbers at its two ends, written as texts.

    ``rows``: for each row, a mapping from column keys to cells.
    ``matter``: as in :func:`bars`.
    ``with_zero``: the key of the column whose scale has a line at 0.
    """
    scales = {}
    for key, first in rows[0].items():
        if first.ends is None:
            continue
        intervals = [ends for row in rows if (ends := row[key].ends) is not None]
        drawn = bars(intervals, matter, key == with_zero)
        for row, bar in zip(rows, drawn, strict=True):
            row[key].bar = bar
            if bar is not None:
                # All drawings of a column have the same scale.
                scales[key] = (fmt.number(bar.first), fmt.number(bar.last))
    return scales


def _scale(
    rows: Sequence[tuple[float, float, float]],
    tied: Sequence[tuple[float, float, float]],
    zero: Sequence[float],
) -> tuple[float, float]:
    """Return the ends of the scale, which must include the tied rows and should include all rows.

    ``zero``: numbers that the scale must include, such as 0.
    """
    important = tied or rows
    widest = _WIDEST * median(max(high - value, value - low) for value, low, high in important)
    shown = [*_ends(rows, widest), *zero]
    needed = [*_ends(important, widest), *zero]
    first = min(needed)
    last = max(needed)
    reach = _REACH * (last - first)
    if reach > 0:
        # Limit the distance of each end from the opposite end of the part that is needed.
        low = max(min(shown), last - reach)
        high = min(max(shown), first + reach)
        return low, high
    # All values are equal and have no interval, so they are in the middle of the scale.
    return first - 0.5, last + 0.5


def _ends(rows: Sequence[tuple[float, float, float]], widest: float) -> Iterator[float]:
    """Yield both ends of each interval, but at most the distance ``widest`` from its value."""
    for value, low, high in rows:
        yield max(low, value - widest)
        yield min(high, value + widest)
