"""Figures of a registered model's history: its metric by month, and its gain by month."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

from cmtrack import digits

from . import _text as text
from .style import (
    BLUE,
    DOT,
    DOTTED,
    GRID,
    INK,
    MUTED,
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

MOST_MONTHS = 36
"""Largest number of months that the figures show; the newest months are shown."""
_HEIGHT = 2.7  # inches of the panel with the metric
_WIDTHS = (4.7, 9.2)  # smallest and largest width of the panels in inches
_STEP = 0.34  # inches of a month
_LEVEL = 0.24  # inches of a champion in the lower panel
_MOST_LEVELS = 2.6  # largest height of the lower panel in inches
_ASIDE = 0.17
"""Distance of the dots of other versions from the champion, as a share of a month's width."""
_NAME = 22
"""Number of characters to which the names of months are shortened."""
_ROW = 0.25  # inches of a month in the forest plot
_FOREST = 3.3  # inches of the forest plot's axis


@dataclass(frozen=True)
class VersionMonth:
    """One month of :func:`plot_history`.

    Attributes
    ----------
    name : object
    champion : str
        The version that was champion before these rows were seen.
    value, low, high : float
        The champion's metric and the limits of its interval; NaN if unknown.
    challengers, others : mapping of str to float
        The metric of the challengers and of all other versions.
    by_hand : bool
        Whether somebody moved the alias to the champion without a record.

    Examples
    --------
    >>> from cmtrack.plots import VersionMonth
    >>> VersionMonth("June", "3", 0.85, 0.84, 0.86, challengers={"4": 0.86}).champion
    '3'
    """

    name: object
    champion: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    challengers: Mapping[str, float] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)
    by_hand: bool = False


def plot_history(
    months: Sequence[VersionMonth],
    *,
    metric: str,
    champion: str | None = None,
    by_hand: bool = False,
    is_share: bool = False,
    confidence_level: float = 0.95,
    title: str | None = None,
) -> Figure:
    """Plot the metric of the champion by month, and below it which version was champion.

    Parameters
    ----------
    months : sequence of VersionMonth
        The months in order, at least one. The newest 36 months are shown.
    metric : str
        Title of the metric.
    champion : str, optional
        Today's champion. By default, the champion of the newest month.
    by_hand : bool
        Whether somebody moved the alias to today's champion without a record.
    is_share : bool
        Whether to write the metric in percent.
    confidence_level : float
        Level of the intervals.
    title : str, optional

    Raises
    ------
    ValueError
        If there is no month.

    Examples
    --------
    >>> from cmtrack.plots import VersionMonth, plot_history
    >>> may = VersionMonth("May", "1", 0.83, 0.81, 0.85, challengers={"2": 0.86})
    >>> june = VersionMonth("June", "2", 0.85, 0.83, 0.87, others={"1": 0.83})
    >>> plot_history([may, june], metric="accuracy", is_share=True).savefig("history.png")
    """
    if not months:
        raise ValueError("months must contain at least one month, got none")
    shown = list(months[-MOST_MONTHS:])
    current = VersionMonth("", champion or shown[-1].champion, by_hand=by_hand)
    if champion is None:
        current = VersionMonth("", shown[-1].champion, by_hand=shown[-1].by_hand)
    levels = list(dict.fromkeys(month.champion for month in (*shown, current)))
    width = min(max(_WIDTHS[0], _STEP * len(shown)), _WIDTHS[1])
    steps_height = min(_LEVEL * (len(levels) + 0.4), _MOST_LEVELS)
    figure, (upper, lower) = inch_figure(
        [(0, steps_height + 0.12, width, _HEIGHT), (0, 0, width, steps_height)]
    )
    handles = _draw_values(upper, shown, digits.level(confidence_level))
    dashes = _draw_steps(lower, [*shown, current], levels)
    for ax in (upper, lower):
        ax.set_xlim(-0.6, len(shown) - 0.1)
        for place in _changes([*shown, current]):
            ax.axvline(place + 0.5, zorder=0.5, **DOTTED)
    if is_share:
        upper.yaxis.set_major_formatter(FuncFormatter(lambda share, _: digits.short_percent(share)))
    upper.set_ylabel(text.wrap(text.brief(metric, 60), 30), fontsize=TEXT_SIZE, color=INK)
    if title is not None:
        upper.set_title(text.verbatim(title), fontsize=TITLE_SIZE, color=INK, loc="left", pad=9)
    names = text.short_names([month.name for month in shown], _NAME)
    drop = _name_months(lower, names, 72 * width / len(shown))
    lines = text.numbered(names)
    if len(months) > len(shown):
        lines.append(f"The newest {len(shown)} of {len(months)} months are shown.")
    handles += dashes
    if lines:
        lower.set_xlabel(fold(" ".join(lines), 72 * width), fontsize=SMALL_SIZE, color=MUTED)
        drop += 14 * (1 + lower.get_xlabel().count("\n"))
    legend_below(lower, handles, drop, ncols=2)
    return fit(figure)


def _changes(months: Sequence[VersionMonth]) -> list[int]:
    """Return the places of the months after which the champion changed."""
    champions = [month.champion for month in months]
    return [place for place in range(len(months) - 1) if champions[place] != champions[place + 1]]


def _draw_values(ax: Axes, months: Sequence[VersionMonth], level: str) -> list[Line2D]:
    """Draw the metric of all versions, and return the handles for the legend."""
    open_axes(ax)
    ax.grid(False, axis="x")
    ax.xaxis.set_major_locator(FixedLocator([]))
    places = np.arange(len(months))
    values = np.array([month.value for month in months])
    low = np.array([month.low for month in months])
    high = np.array([month.high for month in months])
    ax.vlines(places, low, high, color=BLUE, linewidth=1.6, zorder=3)
    ax.plot(places, values, color=BLUE, marker="o", markersize=6.0, zorder=4, **DOT)
    handles = [
        Line2D(
            [], [], color=BLUE, marker="o", linewidth=1.6, label=f"champion, with {level} interval"
        )
    ]
    looks: dict[str, dict[str, Any]] = {
        "challengers": {"markerfacecolor": "white", "label": "challenger"},
        "others": {"label": "other version"},
    }
    sides = {"challengers": _ASIDE, "others": -_ASIDE}
    for kind, look in looks.items():
        points = [
            (place + sides[kind], value)
            for place, month in enumerate(months)
            for value in getattr(month, kind).values()
            if math.isfinite(value)
        ]
        if not points:
            continue
        marks: dict[str, Any] = {
            "color": MUTED,
            "marker": "o",
            "markersize": 4.0,
            "markeredgecolor": MUTED,
            "linestyle": "none",
            **look,
        }
        ax.plot(*np.array(points).T, zorder=2, clip_on=False, **marks)
        handles.append(Line2D([], [], **marks))
    ax.yaxis.set_major_locator(MaxNLocator(6))
    return handles


def _draw_steps(ax: Axes, months: Sequence[VersionMonth], levels: Sequence[str]) -> list[Line2D]:
    """Draw a step line that shows which version was champion; the last entry is today."""
    open_axes(ax)
    ax.grid(False, axis="x")
    last = len(months) - 1
    for place, month in enumerate(months):
        level = levels.index(month.champion)
        ends = (place - 0.5, place + 0.5)
        if place == last:
            ends = (place - 0.5, place - 0.1)
        style = "-"
        if month.by_hand:
            style = (0, (2.2, 1.4))  # type: ignore[assignment]  # matplotlib also takes dashes
        ax.plot(ends, (level, level), color=BLUE, linewidth=2.2, linestyle=style, zorder=3)
        if place and months[place - 1].champion != month.champion:
            before = levels.index(months[place - 1].champion)
            ax.plot((ends[0], ends[0]), (before, level), color=BLUE, linewidth=1.0, zorder=3)
    step = text.tick_step(72 * ax.get_window_extent().height / ax.figure.dpi / len(levels), 9.0)
    names = [f"version {level}" for level in levels]
    ax.set_yticks(range(0, len(levels), step), names[::step], fontsize=SMALL_SIZE, color=INK)
    ax.set_ylim(-0.7, len(levels) - 0.3)
    if not any(month.by_hand for month in months):
        return []
    label = "moved by hand, without a record"
    return [Line2D([], [], color=BLUE, linewidth=2.2, linestyle=(0, (2.2, 1.4)), label=label)]


def _name_months(ax: Axes, names: Sequence[str], step: float) -> float:
    """Write the names of the months, and return the height of the texts in points."""
    longest = max(text.text_width(name, SMALL_SIZE) for name in names)
    rotation = 0.0
    height = 12.0
    if longest > 0.94 * step:
        rotation = 90.0
        height = longest
    ax.set_xticks(range(len(names)), list(names), rotation=rotation, fontsize=SMALL_SIZE, color=INK)
    return height + 14


@dataclass(frozen=True)
class GainMonth:
    """One row of :func:`plot_gain_by_month`: a difference and the limits of its interval.

    The limits are NaN if there is no interval.

    Examples
    --------
    >>> from cmtrack.plots import GainMonth
    >>> GainMonth("June", 0.02, 0.01, 0.03, rows=4000).name
    'June'
    """

    name: object
    difference: float
    low: float
    high: float
    rows: float = math.nan


def plot_gain_by_month(
    months: Sequence[GainMonth],
    *,
    metric: str,
    joined: GainMonth,
    typical: GainMonth | None = None,
    is_share: bool = False,
    confidence_level: float = 0.95,
    title: str | None = None,
) -> Figure:
    """Plot the difference between two versions in each month, in all months, and in a typical one.

    Parameters
    ----------
    months : sequence of GainMonth
        The months in order, at least one. The newest 36 months are shown.
    metric : str
        Title of the metric.
    joined : GainMonth
        The difference on the rows of all months together.
    typical : GainMonth, optional
        The difference in a month like these.
    is_share : bool
        Whether to write the differences in percentage points.
    confidence_level : float
        Level of the intervals.
    title : str, optional

    Raises
    ------
    ValueError
        If there is no month.

    Examples
    --------
    >>> from cmtrack.plots import GainMonth, plot_gain_by_month
    >>> june = GainMonth("June", 0.02, 0.01, 0.03, 4000)
    >>> july = GainMonth("July", 0.01, 0.0, 0.02, 4000)
    >>> joined = GainMonth("all months", 0.015, 0.008, 0.022, 8000)
    >>> figure = plot_gain_by_month([june, july], metric="accuracy", joined=joined, is_share=True)
    >>> figure.savefig("gain.png")
    """
    if not months:
        raise ValueError("months must contain at least one month, got none")
    shown = list(months[-MOST_MONTHS:])
    summaries = [joined]
    if typical is not None:
        summaries.append(typical)
    rows = [*shown, *summaries]
    places = [*range(len(shown)), *(len(shown) + 0.4 + k for k in range(len(summaries)))]
    figure, (ax,) = inch_figure([(0, 0, _FOREST, _ROW * (places[-1] + 1.2))])
    open_axes(ax, "x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    write: Callable[..., str] = digits.signed
    unit = metric
    if is_share:
        write = digits.signed_points
        unit = f"{metric}, percentage points"
        ax.xaxis.set_major_formatter(
            FuncFormatter(lambda share, _: digits.significant(share, 3, 2))
        )
    for place, row in zip(places, rows, strict=True):
        _draw_gain(ax, place, row, is_summary=place >= len(shown))
        words = write(row.difference, (row.low, row.high))
        write_beside(ax, words, (1.0, place), (10, 0), ax.get_yaxis_transform())
    ax.axvline(0.0, color=INK, linewidth=0.9, zorder=1.5)
    ax.axhline(len(shown) - 0.3, color=GRID, linewidth=1.0, zorder=1)
    names = text.short_names([row.name for row in shown], 30)
    names += [str(row.name) for row in summaries]
    for place, row in enumerate(rows):
        if math.isfinite(row.rows):
            names[place] += f"  ({digits.short_count(row.rows)})"
    ax.set_yticks(places, names, fontsize=SMALL_SIZE, color=INK)
    ax.set_ylim(places[-1] + 0.6, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel(text.wrap(text.brief(unit, 60), 44), fontsize=TEXT_SIZE, color=INK)
    if title is not None:
        ax.set_title(text.verbatim(title), fontsize=TITLE_SIZE, color=INK, loc="left", pad=9)
    level = digits.level(confidence_level)
    lines = [f"{level} intervals of each month alone. In parentheses: rows."]
    if len(months) > len(shown):
        lines.append(f"The newest {len(shown)} of {len(months)} months are shown.")
    handles = [Line2D([], [], linestyle="none", label=fold(line, 320)) for line in lines]
    legend_below(ax, handles, 38 + 12 * ax.get_xlabel().count("\n"), handlelength=0)
    return fit(figure)


def _draw_gain(ax: Axes, place: float, row: GainMonth, *, is_summary: bool) -> None:
    """Draw a difference with its interval; the summaries are wider and have a diamond."""
    colour = BLUE
    look: dict[str, Any] = {"marker": "o", "markersize": 5.0}
    width = 1.6
    if is_summary:
        colour = INK
        look = {"marker": "D", "markersize": 6.0}
        width = 2.4
    if math.isfinite(row.low + row.high):
        ax.plot([row.low, row.high], [place, place], color=colour, linewidth=width, zorder=2)
    ax.plot([row.difference], [place], color=colour, zorder=3, **DOT, **look)
