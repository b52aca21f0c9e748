"""Estimated shares by cell: one panel for each domain over time, or one row for each cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from cmtrack import digits

from . import _text as text
from .style import (
    BLUE,
    DOT,
    EMPTY,
    INK,
    SMALL_SIZE,
    TEXT_SIZE,
    TITLE_SIZE,
    fit,
    fold,
    inch_figure,
    legend_below,
    open_axes,
    write_beside,
)

MOST_PANELS = 12
"""Largest number of domains with a panel each; with more, the cells are rows."""
MOST_ROWS = 40
"""Largest number of rows with one cell each."""
_COLUMNS = 3  # panels side by side
_WIDTHS = (2.2, 5.6)  # smallest and largest width of a panel in inches
_STEP = 0.42  # inches of a period
_HEIGHT = 1.5  # inches of a panel
_GAP = (0.35, 0.42)  # inches between panels, side by side and one below the other
_LINE = 13.0  # points of a line of the axis name
_ROW = 0.25  # inches of a cell in the forest plot
_FOREST = 3.3  # inches of the forest plot's axis
_NAME = 40
"""Number of characters to which the names of cells are shortened."""


@dataclass(frozen=True)
class CountedCell:
    """One cell of :func:`plot_counts`.

    Attributes
    ----------
    domain, period : object
        Names of the cell's domain and period.
    value, low, high : float
        The share and the limits of its interval. If only the value is NaN, the limits are those of
        a range. If all are NaN, nothing is drawn.
    has_own_rows : bool
        Whether the value comes from labelled rows of the cell.

    Examples
    --------
    >>> from cmtrack.plots import CountedCell
    >>> CountedCell("north", 2019, 0.21, 0.18, 0.24).has_own_rows
    True
    """

    domain: object
    period: object
    value: float
    low: float
    high: float
    has_own_rows: bool = True


def plot_counts(
    cells: Sequence[CountedCell],
    *,
    is_over_time: bool,
    of: str = "share of positives",
    confidence_level: float = 0.95,
    notes: Sequence[str] = (),
    title: str | None = None,
) -> Figure:
    """Plot shares by cell with their intervals.

    Values from labelled rows of the cell are filled dots, and all others are hollow. A grey bar
    without a dot is a range of possible values.

    Parameters
    ----------
    cells : sequence of CountedCell
        At least one, in order.
    is_over_time : bool
        Whether periods have an order. If there are at most 12 domains, each gets a panel with the
        periods from left to right. Otherwise each cell is a row, and at most 40 are shown.
    of : str
        Name of the axis.
    confidence_level : float
    notes : sequence of str
        Sentences below the figure.
    title : str, optional

    Raises
    ------
    ValueError
        If there is no cell.

    Examples
    --------
    >>> from cmtrack.plots import CountedCell, plot_counts
    >>> cells = [
    ...     CountedCell("north", 2018, 0.21, 0.18, 0.24),
    ...     CountedCell("north", 2019, 0.23, 0.17, 0.29, has_own_rows=False),
    ... ]
    >>> plot_counts(cells, is_over_time=True).savefig("counts.png")
    """
    if not cells:
        raise ValueError("cells must contain at least one cell, got none")
    domains = list(dict.fromkeys(cell.domain for cell in cells))
    remarks = list(notes)
    if is_over_time and len(domains) <= MOST_PANELS:
        figure, below = _panels(cells, domains, of)
        drop = 40.0
    else:
        figure, below = _forest(cells[:MOST_ROWS], of)
        drop = 38.0 + _LINE * below.get_xlabel().count("\n")
        if len(cells) > MOST_ROWS:
            remarks.insert(0, f"{MOST_ROWS} of {len(cells):,} shares shown.")
    if title is not None:
        figure.axes[0].set_title(
            text.verbatim(title), fontsize=TITLE_SIZE, color=INK, loc="left", pad=22
        )
    handles = _handles(cells, digits.level(confidence_level))
    width = max(ax.get_position().x1 for ax in figure.axes) * figure.get_figwidth() * 72
    handles += [
        Line2D([], [], linestyle="none", label=text.verbatim(fold(remark, max(width, 380))))
        for remark in remarks
    ]
    drop += max(_name_height(below) - 12, 0.0)
    legend_below(below, handles, drop)
    return fit(figure)


def _panels(
    cells: Sequence[CountedCell], domains: Sequence[object], of: str
) -> tuple[Figure, Axes]:
    """Draw one panel for each domain, and return the figure and its lower left axes."""
    periods = list(dict.fromkeys(cell.period for cell in cells))
    n_columns = min(_COLUMNS, len(domains))
    n_rows = math.ceil(len(domains) / n_columns)
    width = min(max(_WIDTHS[0], _STEP * len(periods)), _WIDTHS[1] * 2 / (1 + n_columns))
    places = []
    for number in range(len(domains)):
        row, column = divmod(number, n_columns)
        left = column * (width + _GAP[0])
        bottom = (n_rows - 1 - row) * (_HEIGHT + _GAP[1])
        places.append((left, bottom, width, _HEIGHT))
    figure, axes = inch_figure(places)
    low, high = _limits(cells)
    names = [text.brief(period, _NAME) for period in periods]
    titles = text.short_names(domains, int(0.85 * text.characters(72 * width, TEXT_SIZE)))
    for number, (ax, domain) in enumerate(zip(axes, domains, strict=True)):
        open_axes(ax)
        ax.grid(False, axis="x")
        for cell in cells:
            if cell.domain == domain:
                _draw(ax, cell, periods.index(cell.period), is_vertical=True)
        ax.set(xlim=(-0.6, len(periods) - 0.4), ylim=(low, high))
        ax.yaxis.set_major_locator(MaxNLocator(4))
        ax.yaxis.set_major_formatter(lambda share, _: digits.short_percent(share))
        ax.set_title(titles[number], fontsize=TEXT_SIZE, color=INK, loc="left", pad=5)
        _name_periods(ax, names, 72 * width / len(periods))
        if number % n_columns:
            ax.set_yticklabels([])
        if number + n_columns < len(domains):
            ax.set_xticklabels([])
    below = axes[(n_rows - 1) * n_columns]
    axes[0].set_ylabel(text.wrap(text.brief(of, 60), 24), fontsize=TEXT_SIZE, color=INK)
    return figure, below


def _name_periods(ax: Axes, names: Sequence[str], step: float) -> None:
    """Write the periods below the axis, upright if they need the room, and not more than fit."""
    longest = max(text.text_width(name, SMALL_SIZE) for name in names)
    every = text.tick_step(step, SMALL_SIZE)
    rotation = 0.0
    if longest > 0.94 * step:
        rotation = 90.0
    ax.set_xticks(
        range(0, len(names), every),
        list(names[::every]),
        rotation=rotation,
        fontsize=SMALL_SIZE,
        color=INK,
    )


def _name_height(ax: Axes) -> float:
    """Return the height of the names below the x axis in points."""
    names = [label for label in ax.get_xticklabels() if label.get_text()]
    if not names or not names[0].get_rotation():
        return 12.0
    return max(text.text_width(name.get_text(), SMALL_SIZE) for name in names)


def _forest(cells: Sequence[CountedCell], of: str) -> tuple[Figure, Axes]:
    """Draw one row for each cell, and return the figure and its axes."""
    figure, (ax,) = inch_figure([(0, 0, _FOREST, _ROW * (len(cells) + 0.4))])
    open_axes(ax, "x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    for place, cell in enumerate(cells):
        _draw(ax, cell, place, is_vertical=False)
        words = "no estimate"
        if math.isfinite(cell.value):
            words = digits.percent_with_interval(cell.value, (cell.low, cell.high))
        elif math.isfinite(cell.low):
            limits = (digits.fixed(end, 1, 2) for end in (cell.low, cell.high))
            words = f"range [{', '.join(limits)}]"
        write_beside(ax, words, (1.0, place), (10, 0), ax.get_yaxis_transform())
    names = [", ".join(str(part) for part in _parts(cell)) for cell in cells]
    short = text.short_names(names, _NAME)
    ax.set_yticks(range(len(cells)), short, fontsize=SMALL_SIZE, color=INK)
    low, high = _limits(cells)
    ax.set(xlim=(low, high), ylim=(len(cells) - 0.4, -0.6))
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(lambda share, _: digits.short_percent(share))
    ax.set_xlabel(text.wrap(text.brief(of, 60), 44), fontsize=TEXT_SIZE, color=INK)
    return figure, ax


def _parts(cell: CountedCell) -> list[object]:
    return [part for part in (cell.domain, cell.period) if part != ""]


def _draw(ax: Axes, cell: CountedCell, place: int, *, is_vertical: bool) -> None:
    """Draw the interval or range of a cell, and the dot of its value."""
    if not math.isfinite(cell.low + cell.high):
        return
    look: dict[str, Any] = {"color": BLUE, "linewidth": 1.6, "zorder": 2}
    if math.isnan(cell.value):
        look = {"color": EMPTY, "linewidth": 7.0, "solid_capstyle": "butt", "zorder": 1.5}
    ends: tuple[Any, Any] = ([place, place], [cell.low, cell.high])
    dot: tuple[Any, Any] = ([place], [cell.value])
    if not is_vertical:
        ends = ends[::-1]
        dot = dot[::-1]
    ax.plot(*ends, **look)
    if math.isfinite(cell.value):
        ax.plot(*dot, zorder=3, **_dot(cell.has_own_rows))


def _dot(has_own_rows: bool) -> dict[str, Any]:
    """Return the look of a dot, which is hollow if the value comes from other rows."""
    if has_own_rows:
        return {"color": BLUE, "marker": "o", "markersize": 6.0, **DOT}
    return {
        "color": BLUE,
        "marker": "o",
        "markersize": 5.6,
        "markerfacecolor": "white",
        "markeredgecolor": BLUE,
        "markeredgewidth": 1.4,
    }


def _handles(cells: Sequence[CountedCell], level: str) -> list[Line2D]:
    """Return the entries of the legend for all kinds of cells that occur."""
    handles = []
    for has_own_rows, words in (
        (True, "from labelled rows of the cell"),
        (False, "from labelled rows of other cells"),
    ):
        if any(cell.has_own_rows == has_own_rows and math.isfinite(cell.value) for cell in cells):
            label = f"{words}, with {level} interval"
            look = {**_dot(has_own_rows), "linestyle": "-", "linewidth": 1.6}
            handles.append(Line2D([], [], label=label, **look))
    if any(math.isnan(cell.value) and math.isfinite(cell.low) for cell in cells):
        handles.append(
            Line2D([], [], color=EMPTY, linewidth=7.0, label="undecided: range of possible shares")
        )
    return handles


def _limits(cells: Sequence[CountedCell]) -> tuple[float, float]:
    """Return the limits of the axis of shares."""
    ends = [end for cell in cells for end in (cell.low, cell.high) if math.isfinite(end)]
    if not ends:
        return 0.0, 1.0
    low = min(ends)
    high = max(ends)
    margin = 0.06 * max(high - low, 0.02)
    return max(low - margin, -0.02), min(high + margin, 1.02)
