"""A metric by a training parameter."""

from __future__ import annotations

from collections.abc import Sequence

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
    MUTED,
    ORANGE,
    SMALL_SIZE,
    FloatArray,
    curve_sheet,
    extent_points,
    name_axes,
    root_figure,
)

from ._layout import BoolArray, caption_under

_LOG_RATIO = 100.0
_LINE = 15  # values up to which a line through single runs is no tangle
_ASIDE = 8.0  # points between runs at one value, where there is room


def plot_metric_against_parameter(
    x: Sequence[float | None],
    values: npt.ArrayLike,
    intervals: npt.ArrayLike,
    *,
    parameter: str,
    metric_title: str,
    names: Sequence[object] = (),
    tied: BoolArray | None = None,
    highlight: int | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a metric of runs against one of their parameters, with error bars.

    A line joins the means at each value of the parameter, unless there are many values of one run
    each; the axis is logarithmic where all values are positive and the largest is at least 100
    times the smallest. Runs at the same value are drawn side by side in the order given, as far as
    there is room.

    ``x``, sequence of length R: the parameter; None: not set.
    ``values``, shape (R,): the metric; NaN where undefined.
    ``intervals``, shape (R, 2): limits of the values; NaN where there are none.
    ``parameter``, ``metric_title``: names of the parameter and of the metric.
    ``names``, sequence of length R: names of the runs; that of the highlighted one is written.
    ``tied``, shape (R,): runs that may be the best: blue circles, the others orange squares. By
        default all.
    ``highlight``: index of the chosen run: a star, as in the ranking.
    ``title``, ``ax``: of the axes; by default those of a new figure, which pyplot does not know.
    """
    where, value, limits = (np.asarray(part, dtype=np.float64) for part in (x, values, intervals))
    same = np.ones(len(where), dtype=bool) if tied is None else tied
    page, ax = curve_sheet(ax, (5.6, 3.5))
    shown = np.isfinite(where) & np.isfinite(value)
    chosen = np.isin(np.arange(len(where)), () if highlight is None else highlight)
    drawn = where[shown]
    distinct = np.unique(drawn)
    _name_values(ax, distinct)
    means = 1 < distinct.size <= max(_LINE, drawn.size // 2)
    if means:
        mean = [float(value[shown][drawn == place].mean()) for place in distinct]
        ax.plot(distinct, mean, color=MUTED, linewidth=1.1, zorder=2, label="_means")
    _draw_runs(ax, drawn, value[shown], limits[shown], same[shown], chosen[shown])
    x_title, y_title = (text.brief(t, 48) for t in (parameter, metric_title))
    log = " (log scale)" if ax.get_xscale() == "log" else ""
    name_axes(ax, x_title + log, y_title, title)
    lines = []
    if means and distinct.size < drawn.size:
        lines.append("Grey line: mean of the runs at each value.")
    if np.isfinite(limits[shown]).all(axis=1).any():
        lines.append("Bars: the interval of each value by itself.")
    if not shown.all():
        away = f"{int((~shown).sum())} of {len(shown)} runs are left out"
        lines.append(f"{away}: the parameter is not set or the metric undefined.")
    if highlight is not None:
        name = quoted(text.short_names(names, 60)[highlight])
        if not shown[highlight]:
            name += " (left out)"
        lines.insert(0, f"★ chosen: {name}.")
    if not same[shown].all():
        lines.insert(0, f"Blue circles: {MAY_BE_BEST}. Orange squares: {RULED_OUT}.")
    caption_under(ax, ax.xaxis.label, lines, max(extent_points(ax)[0], 300.0))
    return page.finish()


def _name_values(ax: Axes, distinct: FloatArray) -> None:
    if not distinct.size:
        return
    low = float(distinct[0])
    high = float(distinct[-1])
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
    # name the values that were tried
    if gaps.min() * extent_points(ax)[0] > 0.7 * SMALL_SIZE * (widest + 1):
        ax.set_xticks(distinct.tolist(), [f"{value:g}" for value in distinct], fontsize=SMALL_SIZE)
    elif ax.get_xscale() == "log":
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _draw_runs(
    ax: Axes,
    where: FloatArray,
    value: FloatArray,
    limits: FloatArray,
    same: BoolArray,
    chosen: BoolArray,
) -> None:
    ends = np.concatenate([value, limits[np.isfinite(limits).all(axis=1)].ravel()])
    if ends.size:
        margin = 0.06 * float(np.ptp(ends)) or 0.05 * (abs(float(ends[0])) or 1.0)
        ax.ticklabel_format(axis="y", style="plain", useOffset=False)
        ax.set_ylim(float(ends.min()) - margin, float(ends.max()) + margin)
    for x, y, both, tied, marked, aside in zip(
        where, value, limits, same, chosen, _sideways(ax, where), strict=True
    ):
        colour, marker = (BLUE, "o") if tied else (ORANGE, "s")
        place = ax.transData + ScaledTranslation(aside / 72, 0, root_figure(ax).dpi_scale_trans)
        if np.isfinite(both).all():
            ax.plot(
                [x, x],
                both,
                color=colour,
                linewidth=1.4,
                marker="_",
                markersize=5,
                zorder=2.5,
                transform=place,
                scalex=False,
                scaley=False,
                label="_interval",
            )
        ax.plot(
            [x],
            [y],
            marker="*" if marked else marker,
            markersize=13 if marked else 5.5,
            color=colour,
            markeredgecolor="white",
            markeredgewidth=0.8,
            linestyle="none",
            zorder=4 if marked else 3,
            transform=place,
            scalex=False,
            scaley=False,
            label="_highlight" if marked else "_run",
        )


def _sideways(ax: Axes, where: FloatArray) -> FloatArray:
    """Horizontal jitter of each run in points, so that runs of one value do not hide each other."""
    distinct = np.unique(where)
    pixels = ax.transData.transform(
        np.column_stack([distinct, np.full(distinct.size, np.mean(ax.get_ylim()))])
    )[:, 0]
    gap = float(np.diff(pixels).min()) * 72 / root_figure(ax).dpi if distinct.size > 1 else np.inf
    aside = np.zeros(where.size)
    for value in distinct:
        rows = np.flatnonzero(where == value)
        step = min(_ASIDE, 0.6 * gap / rows.size)
        aside[rows] = step * (np.arange(rows.size) - (rows.size - 1) / 2)
    return aside
