"""Intervals as the rows of a ranking draw them: places on a scale that all rows share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from cmtrack.report import formatting as fmt
from cmtrack.report.review.cells import Cell

WIDTH = 90.0
"""Of a drawing, in CSS pixels."""
_EDGE = 5.0  # left free at both ends, for marks and arrows
_REACH = 2.0
"""How many times as wide as the runs that matter a scale may be: one bad run does not flatten all others."""
_WIDEST = 3.0
"""How many median half-widths of the runs that matter count of each interval: nor does one wide one."""


@dataclass(frozen=True)
class Bar:
    """One interval on the scale of its column; places are pixels from the left.

    ``at``, ``low``, ``high``: of the value and both ends, cut to the drawing.
    ``zero``: of 0, where the scale has it as a line.
    ``beyond``: "left" or "right" where the value lies outside the scale; else empty.
    ``arrows``: "left" and "right" where the interval goes on outside the scale.
    ``first``, ``last``: the numbers at the ends of the scale.
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
    """The drawings of a column, one a row; None where a value or an end is not finite.

    ``intervals``: of each row the value and both ends.
    ``matter``: the runs that may be the best: the scale is theirs, and shows others as far as it stays readable.
    ``zero``: whether the scale has 0 as a line.
    """
    finite = [all(map(math.isfinite, row)) for row in intervals]
    if not any(finite):
        return [None] * len(finite)
    first, last = _scale(
        [row for row, there in zip(intervals, finite, strict=True) if there],
        [row for row, there, tied in zip(intervals, finite, matter, strict=True) if there and tied],
        [0.0] if zero else [],
    )

    def place_of(value: float) -> float:
        share = (value - first) / (last - first)
        return round(_EDGE + (WIDTH - 2 * _EDGE) * min(max(share, 0.0), 1.0), 2)

    out: list[Bar | None] = []
    for (value, low, high), there in zip(intervals, finite, strict=True):
        beyond = "left" if value < first else "right" if value > last else ""
        line = place_of(0.0) if zero else None
        cut = {"left": low < first and value >= first, "right": high > last and value <= last}
        arrows = tuple(side for side, there in cut.items() if there)
        bar = Bar(
            place_of(value),
            place_of(low),
            place_of(high),
            line,
            beyond,
            arrows,
            float(first),
            float(last),
        )
        out.append(bar if there else None)
    return out


def draw_columns(
    rows: Sequence[Mapping[str, Cell]], matter: Sequence[bool], with_zero: str = ""
) -> dict[str, tuple[str, str]]:
    """Give each cell that has ends its drawing, and return the numbers at both ends of each drawn column's scale.

    ``rows``: the cells of each row by the key of their column.
    ``matter``: as of :func:`bars`.
    ``with_zero``: the key of a column whose scale has 0 as a line.
    """
    scales = {}
    for key, first in rows[0].items():
        if first.ends is None:
            continue
        intervals = [ends for row in rows if (ends := row[key].ends) is not None]
        drawn = bars(intervals, matter, key == with_zero)
        for row, bar in zip(rows, drawn, strict=True):
            row[key].bar = bar
            if bar is not None:  # all of a column have one scale
                scales[key] = (fmt.number(bar.first), fmt.number(bar.last))
    return scales


def _scale(
    rows: Sequence[tuple[float, float, float]],
    tied: Sequence[tuple[float, float, float]],
    zero: Sequence[float],
) -> tuple[float, float]:
    """Ends of the scale: of all rows, or of the tied ones and their surroundings; 0 is on it where it is given."""
    chosen = tied or rows
    most = _WIDEST * median(max(high - value, value - low) for value, low, high in chosen)
    whole, near = (
        [
            *(
                end
                for value, low, high in some
                for end in (max(low, value - most), min(high, value + most))
            ),
            *zero,
        ]
        for some in (rows, chosen)
    )
    first, last = min(near), max(near)
    reach = _REACH * (last - first)
    if reach > 0:
        first, last = max(min(whole), last - reach), min(max(whole), first + reach)
    if last - first <= 0:
        first, last = first - 0.5, last + 0.5
    return first, last
