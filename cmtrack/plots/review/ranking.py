"""The forest plot of a ranking: values, and differences from the best other run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from cmtrack import digits
from cmtrack.metrics.metric import BETTER
from cmtrack.names import MAY_BE_BEST, RULED_OUT, SELECTED, quoted
from cmtrack.plots import _text as text
from cmtrack.plots.style import (
    BAND,
    BLUE,
    INK,
    ORANGE,
    RUN,
    SMALL_SIZE,
    TITLE_SIZE,
    FloatArray,
    fit,
    inch_figure,
    legend_below,
    name_axes,
    open_axes,
)

from ._layout import BoolArray, caption_under, left_out

_ROW, _WIDTH = 0.27, 2.7  # inches: a row, a panel
_WORSE = {
    "higher": "left of zero: worse",
    "lower": "right of zero: worse",
    "nearest zero": "in distance from zero; right of zero: worse",
}


def plot_ranking(
    names: Sequence[object],
    values: npt.ArrayLike,
    intervals: npt.ArrayLike,
    differences: npt.ArrayLike,
    difference_intervals: npt.ArrayLike,
    *,
    tied: BoolArray,
    picked: BoolArray,
    metric_title: str,
    better: str,
    chosen: int | None = None,
    confidence_level: float = 0.95,
    max_rows: int = 30,
    title: str | None = None,
) -> Figure:
    """Draw runs from the best to the worst: on the left the metric, on the right the difference from the best other.

    Whether a run can be told from the best is seen on the right and by the colour. The intervals on the left say how
    well each value is known; on the same test rows the differences are known better than that. A run that is many times
    further from the leader than the others does not stretch the axis: an arrowhead points at it, and its number stands
    beside it.

    ``names``, sequence of length R: names of the runs, best first. The first one is the leader.
    ``values``, shape (R,): the metric, best first; NaN last.
    ``intervals``, shape (R, 2): limits of each value by itself; NaN where there are none.
    ``differences``, shape (R,): value minus the best other value: of the leader its lead, of the others their
        difference from the leader. Of the absolute values where `better` is ``"nearest zero"``.
    ``difference_intervals``, shape (R, 2): limits of the differences; NaN where there are none.
    ``tied``, shape (R,): runs that may be the best.
    ``picked``, shape (R,): runs of which the interval in `intervals` allows for their selection from the
        others.
    ``metric_title``: name of the metric.
    ``better``, {"higher", "lower", "nearest zero"}: which values are good.
    ``chosen``: index of the run that was chosen.
    ``confidence_level``: level of the intervals; those of the differences hold for all runs at once.
    ``max_rows``: runs that are shown at most.
    ``title``: title of the figure.
    """
    n_runs, n = len(names), min(len(names), max_rows)
    given = (values, intervals, differences, difference_intervals)
    value, limits, gap, gap_limits = (np.asarray(part, dtype=np.float64)[:n] for part in given)
    same, wider = tied[:n], picked[:n]
    high = n * _ROW + 0.1
    texts = _numbers(value, limits, sign=False), _numbers(gap, gap_limits, sign=True)
    columns = [max(map(len, words)) * 0.56 * _FONT / 72 + 0.3 for words in texts]
    figure, (left, right) = inch_figure(
        [(0, 0, _WIDTH, high), (_WIDTH + columns[0] + 0.12, 0, _WIDTH, high)]
    )
    right.sharey(left)
    star = chosen if chosen is not None and chosen < n else None
    metric = text.brief(metric_title, 44)
    level = digits.figure_percent(confidence_level)

    beyond = [
        _draw_panel(
            left,
            value,
            limits,
            texts[0],
            same,
            star,
            1 + columns[0] / _WIDTH,
            better == "nearest zero",
        ),
        _draw_panel(right, gap, gap_limits, texts[1], same, star, 1 + columns[1] / _WIDTH, True),
    ]
    name_axes(left, f"{text.wrap(metric, 36)}\n({BETTER[better]})", "", None)
    name_axes(right, f"from the best other run\n({_WORSE[better]})", "", None)
    left.set_ylim(n - 0.5 + 0.05 / _ROW, -0.5 - 0.05 / _ROW)
    short = text.short_names(names, 40)
    _name_rows(left, right, short[:n], star)
    legend = _legend(left, same, level, star is not None)
    lines = left_out(n_runs, n, "runs")
    if chosen is not None and star is None:
        lines.append(
            f"The chosen run, {quoted(short[chosen])}, is number {chosen + 1} of {n_runs}."
        )
    lines += _explanations(limits, gap_limits, level, wider)
    lines += text.numbered(short[:n])
    if any(beyond):
        lines.append("Arrowheads: beyond the axis; the numbers stand beside it.")
    caption_under(left, legend, lines, 72 * (2 * _WIDTH + columns[0]))
    if title is not None:
        left.set_title(title, fontsize=TITLE_SIZE, color=INK, loc="left", pad=9)
    return fit(figure)


def _name_rows(left: Axes, right: Axes, names: Sequence[str], star: int | None) -> None:
    shown = [f"★ {name}" if row == star else name for row, name in enumerate(names)]
    left.set_yticks(range(len(names)), shown, fontsize=SMALL_SIZE + 0.5, color=INK)
    for row, name in enumerate(left.get_yticklabels()):
        name.set_gid(f"{RUN}{row}")
        if row == star:
            name.set_fontweight("bold")
    left.tick_params(axis="y", length=0)
    right.tick_params(axis="y", length=0, labelleft=False)


def _legend(ax: Axes, tied: BoolArray, level: str, star: bool) -> Artist:
    def handle(colour: str, marker: str, label: str, size: float = 5.5) -> Line2D:
        return Line2D(
            [], [], color=colour, marker=marker, markersize=size, linewidth=1.6, label=label
        )

    handles = [handle(BLUE, "o", f"{MAY_BE_BEST} ({level})")] if tied.any() else []
    if not tied.all():
        handles.append(handle(ORANGE, "s", f"{RULED_OUT} ({level})"))
    if star:
        handles.append(
            Line2D([], [], color=INK, marker="*", markersize=10, linestyle="none", label="chosen")
        )
    drop = 22 + 12 * (1 + ax.get_xlabel().count("\n"))  # under the tick and axis labels
    return legend_below(ax, handles, drop, handlelength=2.2, ncols=3)


def _explanations(
    limits: FloatArray, gap_limits: FloatArray, level: str, picked: BoolArray
) -> list[str]:
    lines = []
    if np.isfinite(limits).any():
        lines.append(f"Left: {level} interval of each value; do not compare these.")
    if picked.any():
        lines.append(f"{SELECTED[int(picked.sum()) > 1]}.")
    if np.isfinite(gap_limits).any():
        lines.append(f"Right: simultaneous {level} intervals of the differences.")
    missing = int((~np.isfinite(gap_limits)).any(axis=1).sum())
    if missing:
        lines.append(f"No interval of the difference is known for {missing} of the runs shown.")
    return lines


_FONT = 7.5  # of the numbers
_FAR = 6.0  # times the median distance from the first row: beyond, a row does not stretch the axis
# times the median half-width of the intervals of tied rows: nor does what reaches further
_WIDE = 3.0


def _range(
    centres: FloatArray, limits: FloatArray, tied: BoolArray, zero: bool
) -> tuple[float, float]:
    """Axis limits around all rows except outliers in position or width."""
    distance = np.abs(centres - centres[0])
    others = distance[1:][np.isfinite(distance[1:]) & (distance[1:] > 0)]
    near = distance <= (_FAR * np.median(others) if others.size else np.inf)
    arms = np.abs(limits - centres[:, None]).max(axis=1)
    usual = (
        arms[np.isfinite(arms) & tied] if np.isfinite(arms[tied]).any() else arms[np.isfinite(arms)]
    )
    most = _WIDE * np.median(usual) if usual.size else np.inf
    limits = np.clip(limits, (centres - most)[:, None], (centres + most)[:, None])
    reached = np.concatenate(
        [centres[near], limits[near].ravel(), limits[:1].ravel(), [0.0] * zero]
    )
    reached = reached[np.isfinite(reached)]
    if not reached.size:
        return -1.0, 1.0
    low, high = float(reached.min()), float(reached.max())
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.1
    return low - margin, high + margin


def _draw_panel(
    ax: Axes,
    centres: FloatArray,
    limits: FloatArray,
    texts: Sequence[str],
    tied: BoolArray,
    star: int | None,
    reach: float,
    zero: bool,
) -> bool:
    """Dots, intervals and their numbers in rows, bands up to `reach` panel widths; `zero`: with a line there.

    Returns whether a row, or an end of its interval, lies beyond the axis.
    """
    open_axes(ax, "x")
    ax.spines["left"].set_visible(False)
    low, high = _range(centres, limits, tied, zero)
    across = ax.get_yaxis_transform()
    look: dict[str, Any] = {
        "transform": across,
        "facecolor": BAND,
        "edgecolor": "none",
        "zorder": 0.2,
    }
    for top in np.flatnonzero(tied & ~tied.all()) - 0.5:
        ax.add_patch(Rectangle((0.0, float(top)), reach, 1, clip_on=False, **look))
    beyond = False
    for row, (centre, (start, stop)) in enumerate(zip(centres, limits, strict=True)):
        colour, marker = (BLUE, "o") if tied[row] else (ORANGE, "s")
        if np.isfinite(start) and np.isfinite(stop):
            ax.plot(
                [start, stop],
                [row, row],
                color=colour,
                linewidth=1.6,
                solid_capstyle="butt",
                zorder=2,
                gid=f"{RUN}{row}",
            )
            for end, arrow, there in (
                (low, "<", start < low < stop),
                (high, ">", start < high < stop),
            ):
                if there:
                    beyond = True
                    ax.plot(
                        [end],
                        [row],
                        marker=arrow,
                        markersize=5.0,
                        color=colour,
                        markeredgecolor="none",
                        linestyle="none",
                        zorder=2.5,
                        clip_on=False,
                        gid=f"{RUN}{row}",
                    )
        if not np.isfinite(centre):
            continue
        where = float(np.clip(centre, low, high))
        size = 5.5
        if where != centre:
            beyond = True
            marker, size = (">" if centre > high else "<"), 7.0
        elif row == star:
            marker, size = "*", 12.0
        ax.plot(
            [where],
            [row],
            marker=marker,
            markersize=size,
            color=colour,
            markeredgecolor="white",
            markeredgewidth=0.6,
            linestyle="none",
            zorder=3,
            clip_on=False,
            gid=f"{RUN}{row}",
        )
    if zero:
        ax.axvline(0.0, color=INK, linewidth=0.9, zorder=1.5)
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.ticklabel_format(axis="x", style="plain", useOffset=False)  # no "+8.7e-1" at the axis
    beside = across + ScaledTranslation(8 / 72, 0, ax.figure.dpi_scale_trans)
    for row, words in enumerate(texts):
        ax.text(
            1.0,
            row,
            words,
            transform=beside,
            va="center",
            ha="left",
            fontsize=_FONT,
            color=INK,
            gid=f"{RUN}{row}",
        )
    return beyond


def _numbers(centres: FloatArray, limits: FloatArray, *, sign: bool) -> list[str]:
    """The texts next to the rows: each value with its interval."""
    places = digits.places_apart(centres.tolist())
    texts = []
    for centre, (low, high) in zip(centres, limits, strict=True):
        words = digits.fixed(centre, places, sign=sign) if np.isfinite(centre) else "undefined"
        if np.isfinite([centre, low, high]).all():
            words += f" ({digits.fixed(low, places, sign=sign)} to {digits.fixed(high, places, sign=sign)})"
        texts.append(words)
    return texts
