"""The forest plot of a ranking, which shows values and differences from the best run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
    DOT,
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

_ROW = 0.27  # inches
_WIDTH = 2.7  # inches per panel
_WORSE = {
    "higher": "left of zero is worse",
    "lower": "right of zero is worse",
    "nearest zero": "in distance from zero; right of zero is worse",
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
    chosen_label: str = "chosen",
    confidence_level: float = 0.95,
    max_rows: int = 30,
    title: str | None = None,
) -> Figure:
    """Draw runs from best to worst: values on the left, differences from the best on the right.

    The right side and the colour show which runs may be the best. The intervals on the left show
    the precision of each value. Differences are more precise, because they compare runs on the same
    test rows. If a run is far behind all other runs, the axis does not extend to it. Instead, an
    arrowhead next to the run's number points towards its value.

    ``names``: the names of the R runs, from best to worst. The first run is the leader.
    ``values``, shape (R,): the metric of each run, from best to worst; NaN values are last.
    ``intervals``, shape (R, 2): the limits of each value's interval; NaN if there is no interval.
    ``differences``, shape (R,): each value minus the best value of all other runs. For the leader,
        it is the difference from the second run, and for all other runs, the difference from the
        leader. If `better` is ``"nearest zero"``, absolute values are subtracted.
    ``difference_intervals``, shape (R, 2): the limits of the intervals of the differences; NaN if
        there is no interval.
    ``tied``, shape (R,): mask of the runs that may be the best.
    ``picked``, shape (R,): mask of the runs whose entry in `intervals` accounts for their
        selection.
    ``metric_title``: name of the metric.
    ``better``, {"higher", "lower", "nearest zero"}: the direction in which values are better.
    ``chosen``: index of the run that was chosen.
    ``chosen_label``: words for that run in the legend.
    ``confidence_level``: level of the intervals. The intervals of the differences hold for all runs
        together.
    ``max_rows``: largest number of runs to show.
    ``title``: title of the figure.
    """
    n_runs = len(names)
    n = min(n_runs, max_rows)
    level = digits.short_percent(confidence_level)
    star = chosen if chosen is not None and chosen < n else None
    may_be_best = tied[:n]
    metric_rows = _Rows(
        np.asarray(values, dtype=np.float64)[:n],
        np.asarray(intervals, dtype=np.float64)[:n],
        may_be_best,
        has_zero=better == "nearest zero",
    )
    gap_rows = _Rows(
        np.asarray(differences, dtype=np.float64)[:n],
        np.asarray(difference_intervals, dtype=np.float64)[:n],
        may_be_best,
        has_zero=True,
    )
    metric_texts = metric_rows.texts(sign=False)
    gap_texts = gap_rows.texts(sign=True)
    text_width = _inches(metric_texts)
    height = n * _ROW + 0.1
    gap_left = _WIDTH + text_width + 0.12
    figure, (left, right) = inch_figure([(0, 0, _WIDTH, height), (gap_left, 0, _WIDTH, height)])
    right.sharey(left)
    is_beyond = metric_rows.draw(left, metric_texts, star)
    is_beyond |= gap_rows.draw(right, gap_texts, star)
    metric = text.brief(metric_title, 44)
    name_axes(left, f"{text.wrap(metric, 36)}\n({BETTER[better]})", "", None)
    name_axes(right, f"from the best other run\n({_WORSE[better]})", "", None)
    left.set_ylim(n - 0.5 + 0.05 / _ROW, -0.5 - 0.05 / _ROW)
    short = text.short_names(names, 40)
    _name_rows(left, right, short[:n], star)
    star_label = None if star is None else chosen_label
    legend = _legend(left, may_be_best, level, star_label)
    lines = left_out(n_runs, n, "runs")
    if chosen is not None and star is None:
        lines.append(
            f"The chosen run, {quoted(short[chosen])}, is number {chosen + 1} of {n_runs}."
        )
    lines += _explanations(metric_rows.limits, gap_rows.limits, level, picked[:n])
    lines += text.numbered(short[:n])
    if is_beyond:
        lines.append("Arrowheads mark values beyond the axis; their numbers are next to it.")
    caption_under(left, legend, lines, 72 * (2 * _WIDTH + text_width))
    if title is not None:
        left.set_title(title, fontsize=TITLE_SIZE, color=INK, loc="left", pad=9)
    return fit(figure)


def _name_rows(left: Axes, right: Axes, names: Sequence[str], star: int | None) -> None:
    shown = [f"★ {name}" if row == star else name for row, name in enumerate(names)]
    left.set_yticks(range(len(names)), shown, fontsize=SMALL_SIZE, color=INK)
    for row, name in enumerate(left.get_yticklabels()):
        name.set_gid(f"{RUN}{row}")
        if row == star:
            name.set_fontweight("bold")
    left.tick_params(axis="y", length=0)
    right.tick_params(axis="y", length=0, labelleft=False)


def _legend(ax: Axes, tied: BoolArray, level: str, star_label: str | None) -> Artist:
    def handle(colour: str, marker: str, label: str, size: float = 5.5) -> Line2D:
        return Line2D(
            [], [], color=colour, marker=marker, markersize=size, linewidth=1.6, label=label
        )

    handles = [handle(BLUE, "o", f"{MAY_BE_BEST} (at {level} confidence)")] if tied.any() else []
    if not tied.all():
        handles.append(handle(ORANGE, "s", f"{RULED_OUT} (at {level} confidence)"))
    if star_label is not None:
        handles.append(
            Line2D([], [], color=INK, marker="*", markersize=10, linestyle="none", label=star_label)
        )
    drop = 22 + 12 * (1 + ax.get_xlabel().count("\n"))  # under the tick and axis labels
    return legend_below(ax, handles, drop, handlelength=2.2, ncols=3)


def _explanations(
    limits: FloatArray, gap_limits: FloatArray, level: str, picked: BoolArray
) -> list[str]:
    lines = []
    if np.isfinite(limits).any():
        lines.append(
            f"The left panel shows {level} intervals of single values. Do not compare them."
        )
    if picked.any():
        words = SELECTED[0] if picked.sum() == 1 else SELECTED[1]
        lines.append(f"{words}.")
    if np.isfinite(gap_limits).any():
        lines.append(f"The right panel shows simultaneous {level} intervals of the differences.")
    missing = int((~np.isfinite(gap_limits)).any(axis=1).sum())
    if missing:
        lines.append(f"No interval of the difference is known for {missing} of the runs shown.")
    return lines


# Rows whose distance exceeds a multiple of the median would stretch the axis and hide all other
# differences.
_FAR = 6.0  # multiple of the median distance from the first row
_WIDE = 3.0  # multiple of the median half-width of the intervals of tied runs


def _inches(texts: Sequence[str]) -> float:
    """Return the width of the numbers next to a panel, in inches."""
    return max(map(len, texts)) * 0.56 * SMALL_SIZE / 72 + 0.3


@dataclass(frozen=True)
class _Rows:
    """Values and intervals of runs, which a panel shows row by row.

    ``values``, shape (R,): the value of each run.
    ``limits``, shape (R, 2): the limits of each interval.
    ``tied``, shape (R,): mask of the runs that may be the best.
    ``has_zero``: True if the axis includes 0 and marks it with a line.
    """

    values: FloatArray
    limits: FloatArray
    tied: BoolArray
    has_zero: bool

    def texts(self, *, sign: bool) -> list[str]:
        """Return the text next to each row: its value and interval."""
        decimals = digits.places_apart(self.values.tolist())
        texts = []
        for value, (low, high) in zip(self.values, self.limits, strict=True):
            words = "undefined"
            if np.isfinite(value):
                words = digits.fixed(value, decimals, sign=sign)
            if np.isfinite([value, low, high]).all():
                start = digits.fixed(low, decimals, sign=sign)
                words += f" [{start}, {digits.fixed(high, decimals, sign=sign)}]"
            texts.append(words)
        return texts

    def axis_limits(self) -> tuple[float, float]:
        """Return axis limits around all rows except outlying values and wide intervals."""
        distances = np.abs(self.values - self.values[0])
        others = distances[1:][distances[1:] > 0]
        others = others[np.isfinite(others)]
        farthest = _FAR * np.median(others) if others.size else np.inf
        near = distances <= farthest
        arms = np.abs(self.limits - self.values[:, None]).max(axis=1)
        has_interval = np.isfinite(arms)
        usual = arms[has_interval & self.tied]
        if not usual.size:
            usual = arms[has_interval]
        longest = _WIDE * np.median(usual) if usual.size else np.inf
        centres = self.values[:, None]
        limits = np.clip(self.limits, centres - longest, centres + longest)
        reached = [self.values[near], limits[near].ravel(), limits[0]]
        if self.has_zero:
            reached.append(np.zeros(1))
        points = np.concatenate(reached)
        points = points[np.isfinite(points)]
        if not points.size:
            return -1.0, 1.0
        low = float(points.min())
        high = float(points.max())
        margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.1
        return low - margin, high + margin

    def draw(self, ax: Axes, texts: Sequence[str], star: int | None) -> bool:
        """Draw dots, intervals and numbers; return True if one of them is beyond the axis."""
        open_axes(ax, "x")
        ax.spines["left"].set_visible(False)
        ends = self.axis_limits()
        across = ax.get_yaxis_transform()
        # Bands mark the runs that may be the best, unless all runs may be. They extend over the
        # numbers.
        if not self.tied.all():
            look: dict[str, Any] = {"facecolor": BAND, "edgecolor": "none", "zorder": 0.2}
            width = 1 + _inches(texts) / _WIDTH
            for row in np.flatnonzero(self.tied).tolist():
                corner = (0.0, row - 0.5)
                band = Rectangle(corner, width, 1, transform=across, clip_on=False, **look)
                ax.add_patch(band)
        is_beyond = False
        for row in range(len(self.values)):
            is_beyond |= self._draw_interval(ax, row, ends)
            is_beyond |= self._draw_value(ax, row, ends, is_chosen=row == star)
        if self.has_zero:
            ax.axvline(0.0, color=INK, linewidth=0.9, zorder=1.5)
        ax.set_xlim(*ends)
        ax.xaxis.set_major_locator(MaxNLocator(5))
        ax.ticklabel_format(axis="x", style="plain", useOffset=False)  # no "+8.7e-1" at the axis
        beside = across + ScaledTranslation(8 / 72, 0, ax.figure.dpi_scale_trans)
        font: dict[str, Any] = {"va": "center", "ha": "left", "fontsize": SMALL_SIZE, "color": INK}
        for row, words in enumerate(texts):
            ax.text(1.0, row, words, transform=beside, gid=f"{RUN}{row}", **font)
        return is_beyond

    def _colour(self, row: int) -> str:
        return BLUE if self.tied[row] else ORANGE

    def _draw_interval(self, ax: Axes, row: int, ends: tuple[float, float]) -> bool:
        """Draw an interval; return True if it extends beyond the axis, which an arrowhead shows."""
        start, stop = self.limits[row]
        if not (np.isfinite(start) and np.isfinite(stop)):
            return False
        look: dict[str, Any] = {"color": self._colour(row), "gid": f"{RUN}{row}"}
        line: dict[str, Any] = {"linewidth": 1.6, "solid_capstyle": "butt", "zorder": 2}
        ax.plot([start, stop], [row, row], **line, **look)
        look |= {"markersize": 5.0, "markeredgecolor": "none", "linestyle": "none"}
        is_beyond = False
        for end, arrow in zip(ends, "<>", strict=True):
            if start < end < stop:
                is_beyond = True
                ax.plot([end], [row], marker=arrow, zorder=2.5, clip_on=False, **look)
        return is_beyond

    def _draw_value(
        self, ax: Axes, row: int, ends: tuple[float, float], *, is_chosen: bool
    ) -> bool:
        """Draw a dot, or return True after drawing an arrowhead to a value beyond the axis."""
        value = self.values[row]
        if not np.isfinite(value):
            return False
        place = float(np.clip(value, *ends))
        marker = "o" if self.tied[row] else "s"
        size = 5.5
        if is_chosen:
            marker = "*"
            size = 12.0
        if place != value:
            marker = ">" if value > place else "<"
            size = 7.0
        ax.plot(
            [place],
            [row],
            marker=marker,
            markersize=size,
            color=self._colour(row),
            markeredgewidth=0.6,
            zorder=3,
            gid=f"{RUN}{row}",
            **DOT,
        )
        return place != value
