"""A metric by a training parameter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from matplotlib.transforms import ScaledTranslation

from cmtrack.names import MAY_BE_BEST, RULED_OUT, quoted
from cmtrack.plots import _text as text
from cmtrack.plots.style import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    SMALL_SIZE,
    FloatArray,
    curve_sheet,
    extent_points,
    name_axes,
    root_figure,
)
from cmtrack.untrusted import one_line

from . import _layout as layout
from ._layout import caption_under

_SIZE = (5.6, 3.5)
_LOG_RATIO = 100.0
_LINE = 15  # values up to which a line through single runs is no tangle
_ASIDE = 8.0  # points between runs at one value, where there is room


def plot_metric_against_parameter(
    x: Sequence[Any],
    values: npt.ArrayLike,
    intervals: npt.ArrayLike,
    *,
    parameter: str,
    metric_title: str,
    names: Sequence[object] | None = None,
    tied: npt.ArrayLike | None = None,
    highlight: int | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a metric of runs against one of their parameters, with error bars.

    For a numeric parameter a line joins the means at each of its values, unless there are many values of one run each;
    the axis is logarithmic where all values are positive and the largest is at least 100 times the smallest. Categories
    are side by side in the order of their first run, with a short line at the mean where there are several runs. Runs
    at the same value are drawn side by side in the order given, as far as there is room. ValueError if there is no run,
    shapes do not fit together, an interval is reversed or `highlight` is no row.

    ``x``, sequence of length R: the parameter: numbers, or anything else, which is taken as a category by its text.
        None and NaN: not set.
    ``values``, shape (R,): the metric; NaN where undefined.
    ``intervals``, shape (R, 2): limits of the values; NaN where there are none.
    ``parameter``, ``metric_title``: names of the parameter and of the metric.
    ``names``, sequence of length R: names of the runs; that of the highlighted one is written.
    ``tied``, shape (R,): runs that may be the best: blue circles, the others orange squares. By default all.
    ``highlight``: index of the chosen run: a star, as in the ranking.
    ``title``, ``ax``: of the axes; by default those of a new figure, which pyplot does not know.
    """
    n_runs = len(x)
    if not n_runs:
        raise ValueError("x must hold the parameter of at least one run, got none")
    value = layout.check_numbers("values", values, (n_runs,))
    limits = layout.check_intervals("intervals", intervals, n_runs)
    if names is not None and len(names) != n_runs:
        raise ValueError(f"names must name the {n_runs} runs, got {len(names)}")
    same = np.ones(n_runs, dtype=bool) if tied is None else layout.check_flags("tied", tied, (n_runs,))
    layout.check_index("highlight", highlight, n_runs)
    categories, where = _places(x)
    width = _SIZE[0] if categories is None else float(np.clip(0.75 * len(categories), 3.6, 9.0))
    page, ax = curve_sheet(ax, (width, _SIZE[1]))
    shown = np.isfinite(where) & np.isfinite(value)
    if categories is None:
        _numeric_axis(ax, where[shown])
        _draw_means(ax, where[shown], value[shown])
    else:
        ax.grid(False, axis="x")
        _name_categories(ax, categories)
        _draw_category_means(ax, where[shown], value[shown])
    _draw_runs(ax, where, value, limits, shown, same, highlight)
    x_title, y_title = (text.brief(t, 48) for t in (parameter, metric_title))
    log = " (log scale)" if ax.get_xscale() == "log" else ""
    name_axes(ax, x_title + log, y_title, title)
    repeated = np.unique(where[shown]).size < int(shown.sum())
    means = repeated and any(line.get_label() == "_means" for line in ax.lines)
    words = f"Grey line{'s' if categories else ''}: mean of the runs at each value." if means else ""
    barred = bool(np.isfinite(limits[shown]).all(axis=1).any())
    lines = _explanations(n_runs, int(shown.sum()), barred, words)
    if highlight is not None:
        name = "the highlighted run" if names is None else quoted(text.short_names(names, 60)[highlight])
        lines.insert(0, f"★ chosen: {name}{'' if shown[highlight] else ' (left out)'}.")
    if not same[shown].all():
        lines.insert(0, f"Blue circles: {MAY_BE_BEST}. Orange squares: {RULED_OUT}.")
    lines += text.numbered(text.short_names(categories or [], 32))
    caption_under(ax, ax.xaxis.label, lines, max(extent_points(ax)[0], 300.0))
    return page.finish()


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def _is_unset(value: object) -> bool:
    return value is None or (_is_number(value) and math.isnan(float(value)))  # type: ignore[arg-type]


def _places(x: Sequence[Any]) -> tuple[list[str] | None, FloatArray]:
    """The categories (None for a numeric parameter) and each run's axis position, NaN if not set."""
    given = [value for value in x if not _is_unset(value)]
    if all(_is_number(value) for value in given):
        places = np.array([np.nan if _is_unset(value) else float(value) for value in x])
        return None, np.where(np.isfinite(places), places, np.nan)
    categories = list(dict.fromkeys(one_line(value) for value in given))
    index = {name: float(i) for i, name in enumerate(categories)}
    return categories, np.array([np.nan if _is_unset(value) else index[one_line(value)] for value in x])


def _numeric_axis(ax: Axes, places: FloatArray) -> None:
    if not places.size:
        return
    distinct = np.unique(places)
    low, high = float(distinct[0]), float(distinct[-1])
    if low > 0 and high / low >= _LOG_RATIO:
        ax.set_xscale("log")
        margin = (high / low) ** 0.05
        ax.set_xlim(low / margin, high * margin)
        gaps = np.diff(np.log(distinct)) / np.log(high / low)
    else:
        margin = 0.05 * (high - low) or 0.5 * (abs(high) or 1.0)
        ax.set_xlim(low - margin, high + margin)
        gaps = np.diff(distinct) / (high - low) if high > low else np.ones(1)
    widest = max(len(f"{value:g}") for value in distinct)
    if gaps.min() * extent_points(ax)[0] > 0.7 * SMALL_SIZE * (widest + 1):  # name the values that were tried
        ax.set_xticks(distinct.tolist(), [f"{value:g}" for value in distinct], fontsize=SMALL_SIZE)
    elif ax.get_xscale() == "log":
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _name_categories(ax: Axes, categories: Sequence[str]) -> None:
    n = len(categories)
    ax.set_xlim(-0.6, n - 0.4)
    room = 0.92 * extent_points(ax)[0] / (n + 0.2)
    short = text.short_names(categories, 32)
    wrapped = [text.wrap(name, int(text.characters(room, SMALL_SIZE))) for name in short]
    if all(text.text_width(name, SMALL_SIZE) <= room for name in wrapped):
        ax.set_xticks(range(n), wrapped, fontsize=SMALL_SIZE, color=INK)
    else:
        step = text.tick_step(room, SMALL_SIZE)
        ax.set_xticks(range(0, n, step), short[::step], fontsize=SMALL_SIZE, color=INK, rotation=40, ha="right",
                      rotation_mode="anchor")  # fmt: skip


def _draw_runs(
    ax: Axes,
    where: FloatArray,
    value: FloatArray,
    limits: FloatArray,
    shown: layout.BoolArray,
    same: layout.BoolArray,
    highlight: int | None,
) -> None:
    ends = np.concatenate([value[shown], limits[shown][np.isfinite(limits[shown]).all(axis=1)].ravel()])
    if ends.size:
        margin = 0.06 * float(np.ptp(ends)) or 0.05 * (abs(float(ends[0])) or 1.0)
        ax.ticklabel_format(axis="y", style="plain", useOffset=False)
        ax.set_ylim(float(ends.min()) - margin, float(ends.max()) + margin)
    aside = _sideways(ax, where, shown)
    for row in np.flatnonzero(shown):
        marked = row == highlight
        colour, marker = (BLUE, "o") if same[row] else (ORANGE, "s")
        place = ax.transData + ScaledTranslation(aside[row] / 72, 0, root_figure(ax).dpi_scale_trans)
        if np.isfinite(limits[row]).all():
            ax.plot(
                [where[row]] * 2, limits[row], color=colour, linewidth=1.4, marker="_", markersize=5, zorder=2.5,
                transform=place, scalex=False, scaley=False, label="_interval",
            )  # fmt: skip
        ax.plot(
            [where[row]], [value[row]], marker="*" if marked else marker, markersize=13 if marked else 5.5,
            color=colour, markeredgecolor="white", markeredgewidth=0.8, linestyle="none", zorder=4 if marked else 3,
            transform=place, scalex=False, scaley=False, label="_highlight" if marked else "_run",
        )  # fmt: skip


def _sideways(ax: Axes, where: FloatArray, shown: layout.BoolArray) -> FloatArray:
    """Horizontal jitter of each run in points, so that runs of one value do not hide each other."""
    distinct = np.unique(where[shown])
    pixels = ax.transData.transform(np.column_stack([distinct, np.full(distinct.size, np.mean(ax.get_ylim()))]))[:, 0]
    gap = float(np.diff(pixels).min()) * 72 / root_figure(ax).dpi if distinct.size > 1 else np.inf
    aside = np.zeros(where.size)
    for value in distinct:
        rows = np.flatnonzero(shown & (where == value))
        step = min(_ASIDE, 0.6 * gap / rows.size)
        aside[rows] = step * (np.arange(rows.size) - (rows.size - 1) / 2)
    return aside


def _draw_means(ax: Axes, places: FloatArray, values: FloatArray) -> None:
    distinct = np.unique(places)
    if 1 < distinct.size <= max(_LINE, places.size // 2):
        means = [float(values[places == place].mean()) for place in distinct]
        ax.plot(distinct, means, color=MUTED, linewidth=1.1, zorder=2, label="_means")


def _draw_category_means(ax: Axes, places: FloatArray, values: FloatArray) -> None:
    for place in np.unique(places):
        here = values[places == place]
        if here.size > 1:
            ax.plot([place - 0.22, place + 0.22], [here.mean()] * 2, color=MUTED, linewidth=1.6, zorder=2,
                    label="_means")  # fmt: skip


def _explanations(n_runs: int, shown: int, barred: bool, means: str) -> list[str]:
    lines = ([means] if means else []) + (["Bars: the interval of each value by itself."] if barred else [])
    if shown < n_runs:
        lines.append(
            f"{n_runs - shown} of {n_runs} runs are left out: the parameter is not set or the metric undefined."
        )
    return lines
