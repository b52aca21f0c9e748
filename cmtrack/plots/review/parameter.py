"""A figure that shows a metric against a training parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
_LINE = 15  # largest number of values for which a line is still clear
_ASIDE = 8.0  # points between runs that have the same value, if there is room


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
    """Draw a metric of several runs, with error bars, against one of their parameters.

    A line joins the means at each value of the parameter. The line is not drawn if there are many
    values and only one run at each value. The axis is logarithmic if all values are positive and
    the largest value is at least 100 times the smallest. If there is room, runs with the same value
    of the parameter are drawn side by side in the given order.

    ``x``, sequence of length R: the parameter of each run; None if it is not set.
    ``values``, shape (R,): the metric of each run; NaN if it is undefined.
    ``intervals``, shape (R, 2): the limits of each value's interval; NaN if there is no interval.
    ``parameter``, ``metric_title``: names of the parameter and of the metric.
    ``names``, sequence of length R: names of the runs. Only the name of the highlighted run is
        written.
    ``tied``, shape (R,): mask of the runs that may be the best, which are drawn as blue circles.
        All other runs are orange squares. By default, all runs are drawn as runs that may be the
        best.
    ``highlight``: index of the chosen run, which is marked with a star, as in the ranking.
    ``title``, ``ax``: title of the axes, and axes to draw into; by default, a new figure is
        created, which is not registered with pyplot.
    """
    runs = _Runs(
        np.asarray(x, dtype=np.float64),
        np.asarray(values, dtype=np.float64),
        np.asarray(intervals, dtype=np.float64),
        np.ones(len(x), dtype=bool) if tied is None else tied,
        np.isin(np.arange(len(x)), [] if highlight is None else [highlight]),
    )
    page, ax = curve_sheet(ax, (5.6, 3.5))
    is_shown = np.isfinite(runs.x) & np.isfinite(runs.value)
    shown = runs.select(is_shown)
    distinct = np.unique(shown.x)
    _name_values(ax, distinct)
    has_means = 1 < distinct.size <= max(_LINE, shown.x.size // 2)
    if has_means:
        mean = [float(shown.value[shown.x == place].mean()) for place in distinct]
        ax.plot(distinct, mean, color=MUTED, linewidth=1.1, zorder=2, label="_means")
    _draw_runs(ax, shown)
    x_title = text.brief(parameter, 48)
    if ax.get_xscale() == "log":
        x_title += " (log scale)"
    name_axes(ax, x_title, text.brief(metric_title, 48), title)
    lines = []
    if not shown.may_be_best.all():
        lines.append(f"Runs with blue circles {MAY_BE_BEST}; orange squares are {RULED_OUT}.")
    if highlight is not None:
        name = quoted(text.short_names(names, 60)[highlight])
        hint = "" if is_shown[highlight] else " (left out)"
        lines.append(f"★ marks the chosen run, {name}{hint}.")
    if has_means and distinct.size < shown.x.size:
        lines.append("The grey line shows the mean of the runs at each value.")
    if shown.has_interval.any():
        lines.append("Bars show a separate interval for each value.")
    if not is_shown.all():
        n_hidden = f"{int((~is_shown).sum())} of {len(is_shown)} runs are left out"
        lines.append(f"{n_hidden}, because the parameter is not set or the metric is undefined.")
    caption_under(ax, ax.xaxis.label, lines, max(extent_points(ax)[0], 300.0))
    return page.finish()


@dataclass(frozen=True)
class _Runs:
    """Runs whose parameter is set, with one array per property of the runs."""

    x: FloatArray
    value: FloatArray
    limits: FloatArray
    may_be_best: BoolArray
    is_chosen: BoolArray

    @property
    def has_interval(self) -> BoolArray:
        """Mask of the runs for which both limits of the interval are known."""
        return np.asarray(np.isfinite(self.limits).all(axis=1))

    def select(self, rows: BoolArray) -> _Runs:
        """Return the runs that a mask selects."""
        return _Runs(*(array[rows] for array in vars(self).values()))


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
    # If there is room, label the axis with the values that were tried.
    if gaps.min() * extent_points(ax)[0] > 0.7 * SMALL_SIZE * (widest + 1):
        ax.set_xticks(distinct.tolist(), [f"{value:g}" for value in distinct], fontsize=SMALL_SIZE)
    elif ax.get_xscale() == "log":
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def _draw_runs(ax: Axes, runs: _Runs) -> None:
    has_interval = runs.has_interval
    ends = np.concatenate([runs.value, runs.limits[has_interval].ravel()])
    if ends.size:
        margin = 0.06 * float(np.ptp(ends)) or 0.05 * (abs(float(ends[0])) or 1.0)
        ax.ticklabel_format(axis="y", style="plain", useOffset=False)
        ax.set_ylim(float(ends.min()) - margin, float(ends.max()) + margin)
    for i, aside in enumerate(_sideways(ax, runs.x)):
        colour, marker = (BLUE, "o") if runs.may_be_best[i] else (ORANGE, "s")
        x = runs.x[i]
        shift = ScaledTranslation(aside / 72, 0, root_figure(ax).dpi_scale_trans)
        look: dict[str, Any] = {"color": colour, "transform": ax.transData + shift}
        # The limits are already set. With the shifted transform, matplotlib would compute wrong
        # limits.
        look |= {"scalex": False, "scaley": False}
        if has_interval[i]:
            bar: dict[str, Any] = {"linewidth": 1.4, "marker": "_", "markersize": 5, "zorder": 2.5}
            ax.plot([x, x], runs.limits[i], label="_interval", **look, **bar)
        look |= {"linestyle": "none", "markeredgecolor": "white", "markeredgewidth": 0.8}
        if runs.is_chosen[i]:
            look |= {"marker": "*", "markersize": 13, "zorder": 4, "label": "_highlight"}
        else:
            look |= {"marker": marker, "markersize": 5.5, "zorder": 3, "label": "_run"}
        ax.plot([x], [runs.value[i]], **look)


def _sideways(ax: Axes, where: FloatArray) -> FloatArray:
    """Return horizontal shifts in points, so that runs do not hide each other."""
    distinct = np.unique(where)
    middle = np.full(distinct.size, np.mean(ax.get_ylim()))
    pixels = ax.transData.transform(np.column_stack([distinct, middle]))[:, 0]
    gap = np.inf
    if distinct.size > 1:
        gap = float(np.diff(pixels).min()) * 72 / root_figure(ax).dpi
    aside = np.zeros(where.size)
    for value in distinct:
        rows = np.flatnonzero(where == value)
        step = min(_ASIDE, 0.6 * gap / rows.size)
        aside[rows] = step * (np.arange(rows.size) - (rows.size - 1) / 2)
    return aside
