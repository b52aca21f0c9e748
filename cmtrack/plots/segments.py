"""Forest plot of segments, which shows their values and simultaneous intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from cmtrack import digits
from cmtrack.metrics.intervals import check_level

from . import _text as text
from .style import (
    BLUE,
    DOT,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    SMALL_SIZE,
    TEXT_SIZE,
    TITLE_SIZE,
    fit,
    fold,
    inch_figure,
    legend_below,
    of_shape,
    open_axes,
    write_beside,
)

_ROW = 0.235  # inches
_WIDTH = 2.7
_STEP = _WIDTH + 0.2  # inches from a panel to the next
_LEAST_OF_RANGE = 0.1
"""Smallest part of a common range that a panel must span, so that its intervals stay visible."""
_LOOK = {
    -1: (ORANGE, "s", "worse than the rest"),
    0: (BLUE, "o", "not significantly different from the rest"),
    1: (GREEN, "D", "better than the rest"),
}


_WHOLE: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (4, 3))}
"""The style of the line that marks the value of all rows."""


@dataclass(frozen=True)
class SegmentPanel:
    """The values of a metric in S segments.

    Attributes
    ----------
    title : str
    values, low, high : array_like of shape (S,)
        Values, and limits of their intervals; NaN if a value or its interval is undefined.
    whole : float
        The value of the metric for all rows.
    apart : array_like of shape (S,), int
        -1 for segments that are significantly worse than all other rows, 1 for segments that are
        significantly better, and 0 for all other segments.

    Examples
    --------
    >>> from cmtrack.plots import SegmentPanel
    >>> low, high = [0.6, 0.85], [0.8, 0.94]
    >>> SegmentPanel("recall", [0.7, 0.9], low, high, whole=0.85, apart=[-1, 0]).title
    'recall'
    """

    title: str
    values: npt.ArrayLike
    low: npt.ArrayLike
    high: npt.ArrayLike
    whole: float
    apart: npt.ArrayLike


def plot_segments(
    names: Sequence[object],
    sizes: npt.ArrayLike,
    panels: Sequence[SegmentPanel],
    *,
    positives: npt.ArrayLike | None = None,
    confidence_level: float = 0.95,
    max_rows: int = 40,
    order: str = "",
    title: str | None = None,
) -> Figure:
    """Draw a row for each segment, which shows the values of up to three metrics side by side.

    Parameters
    ----------
    names : sequence of length S
        Names of the segments, from top to bottom.
    sizes : array_like of shape (S,)
        Number of rows of each segment.
    panels : sequence of SegmentPanel
    positives : array_like of shape (S,), optional
        Number of positive rows of each segment, which is written next to the number of rows.
    confidence_level : float, default 0.95
        Simultaneous confidence level of the intervals of all segments.
    max_rows : int, default 40
        Largest number of segments to show. The first segments are shown.
    order : str, optional
        A description of the order, such as "by accuracy, the worst first". The description is
        written below the figure if some segments are not shown.
    title : str, optional

    Raises
    ------
    ValueError
        If there are no segments or no panels, the shapes do not match, or the level is invalid.

    Examples
    --------
    >>> from cmtrack.plots import SegmentPanel, plot_segments
    >>> low, high = [0.6, 0.85], [0.8, 0.94]
    >>> recall = SegmentPanel("recall", [0.7, 0.9], low, high, whole=0.85, apart=[-1, 0])
    >>> plot_segments(["south", "north"], [120, 480], [recall]).savefig("segments.png")
    """
    check_level(confidence_level)
    n_segments = len(names)
    if not n_segments or not panels:
        raise ValueError(
            "names and panels must not be empty, "
            f"got {n_segments} segments and {len(panels)} panels"
        )
    counts = of_shape("sizes", sizes, (n_segments,))
    n = min(n_segments, max_rows)
    height = _ROW * (n + 0.4)
    lefts = [k * _STEP for k in range(len(panels))]
    figure, axes = inch_figure([(left, 0, _WIDTH, height) for left in lefts])
    seen: set[int] = set()
    for ax, panel in zip(axes, panels, strict=True):
        seen |= _draw(ax, panel, n_segments, n)
    _share_range(axes)
    short = text.short_names(names, 34)[:n]
    sizes_in_words = [digits.short_count(size) for size in counts[:n].tolist()]
    brackets = "In parentheses: rows."
    if positives is not None:
        brackets = "In parentheses: rows, and positive rows."
        n_positive = of_shape("positives", positives, (n_segments,))
        for k in range(n):
            sizes_in_words[k] += f", {digits.short_count(float(n_positive[k]))} positive"
    rows = [f"{name}  ({size})" for name, size in zip(short, sizes_in_words, strict=True)]
    axes[0].set_yticks(range(n), rows, fontsize=SMALL_SIZE, color=INK)
    if title is not None:
        axes[0].set_title(text.verbatim(title), fontsize=TITLE_SIZE, color=INK, loc="left", pad=9)
    level = digits.short_percent(confidence_level)
    lines = [f"{level} intervals hold for all segments together. {brackets}"]
    if n_segments > n:
        shown = f"{n} of {n_segments:,} segments are shown"
        lines.append(f"{shown}, {order}." if order else f"{shown}.")
    lines += text.numbered(short)
    _explain(axes[0], seen, lines, 72 * (_STEP * len(panels) + 1))
    return fit(figure)


def _share_range(axes: Sequence[Axes]) -> None:
    """Give all panels one range, unless the values of a panel would then be too close together."""
    limits = np.array([ax.get_xlim() for ax in axes])
    low = limits[:, 0].min()
    high = limits[:, 1].max()
    if np.ptp(limits, axis=1).min() >= _LEAST_OF_RANGE * (high - low):
        for ax in axes:
            ax.set_xlim(low, high)


def _draw(ax: Axes, panel: SegmentPanel, n_segments: int, n: int) -> set[int]:
    """Draw the first n segments of a panel, and return the kinds of markers used."""
    values, low, high, apart = (
        of_shape(name, getattr(panel, name), (n_segments,))[:n]
        for name in ("values", "low", "high", "apart")
    )
    is_defined = np.isfinite(values)
    open_axes(ax, "x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.set_yticks(range(n), [""] * n)
    ax.set_ylim(n - 0.4, -0.6)
    ax.axvline(panel.whole, zorder=1, **_WHOLE)
    places = np.arange(n)
    for kind, (colour, marker, _) in _LOOK.items():
        drawn = is_defined & (apart == kind)
        x = values[drawn]
        y = places[drawn]
        ax.hlines(y, low[drawn], high[drawn], color=colour, linewidth=1.6, zorder=2)
        look: dict[str, Any] = {"marker": marker, "markersize": 5.0, "markeredgewidth": 0.6}
        ax.plot(x, y, color=colour, zorder=3, **DOT, **look)
    across = ax.get_yaxis_transform()
    for place in places[~is_defined]:
        write_beside(ax, "undefined", (0.02, float(place)), (0, 0), across, colour=MUTED)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel(text.wrap(text.brief(panel.title, 60), 34), fontsize=TEXT_SIZE, color=INK)
    return set(apart[is_defined].astype(int).tolist())


def _explain(ax: Axes, seen: set[int], lines: Sequence[str], points: float) -> None:
    """Add a legend below the panels that ends with an explanation of the intervals."""
    handles = [
        Line2D([], [], color=colour, marker=marker, markersize=5.0, linewidth=1.6, label=label)
        for kind, (colour, marker, label) in _LOOK.items()
        if kind in seen
    ]
    handles.append(Line2D([], [], label="all rows", **_WHOLE))
    handles += [Line2D([], [], linestyle="none", label=fold(line, points)) for line in lines]
    legend_below(ax, handles)
