"""Reliability of scores: the observed share of positives at each score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from scipy.special import expit, logit

from cmtrack import digits
from cmtrack.metrics.intervals import wilson
from cmtrack.removed import refuse_removed

from . import _text as text
from .scores import draw_panel, histogram, use_log_counts
from .style import (
    BLUE,
    DOT,
    DOTTED,
    FRAME,
    INK,
    MUTED,
    ORANGE,
    SKY,
    SMALL_SIZE,
    FloatArray,
    arrange,
    fold,
    legend_below,
    legend_of_panels,
    logit_axis,
    name_axes,
    new_figure,
    of_one_shape,
    open_axes,
    sheet,
    write_beside,
)

Band: TypeAlias = tuple[npt.ArrayLike, npt.ArrayLike]
"""Lower and upper limits, both of shape (U,)."""
_BINS = 40
_SMALL_BINS = 20  # bins of a histogram in a figure with several panels
_DOTS = 10  # largest number of dots in a figure
_SMALL_DOTS = 5  # largest number of dots in a panel of a figure with several panels
_LEAST_ROWS = 10  # rows of a dot; with fewer rows, its interval would say nothing
CLASS_COLOURS = (MUTED, BLUE)
"""The colours of negatives and positives."""


@refuse_removed
def plot_reliability(
    scores: npt.ArrayLike,
    recalibrated: npt.ArrayLike,
    positive: npt.ArrayLike,
    negative: npt.ArrayLike,
    *,
    band: Band | None = None,
    level: float = 0.95,
    error: str = "",
    names: tuple[object, object] = ("negative", "positive"),
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the reliability curve of a score, and below it a histogram of the scores.

    Each dot is the observed share of positives in a tenth of the score axis. Neighbouring tenths
    with fewer than ten rows share a dot. The curve is estimated from all scores without bins. If
    the mean score is below 5%, the axes are logit axes.

    Parameters
    ----------
    scores : array_like of shape (U,)
        Distinct scores in ascending order, in [0, 1].
    recalibrated : array_like of shape (U,)
        Observed share of positives at each score, estimated by isotonic regression (Dimitriadis,
        Gneiting and Jordan 2021).
    positive, negative : array_like of shape (U,)
        Number (or total weight) of the positive and of the negative rows at each score.
    band : (array_like, array_like) of shape (U,), optional
        Lower and upper limits, at each score, of a simultaneous band that contains the curve if the
        score is calibrated. If it is given, the dots have Wilson intervals, which assume like the
        band that rows are independent.
    level : float, default 0.95
        Confidence level of the band and of the intervals.
    error : str
        The text that the legend shows for the calibration error and its interval.
    names : (object, object)
        Names of the negatives and the positives.
    title : str, optional
    ax : matplotlib.axes.Axes, optional
        Axes to draw the curve into, without a histogram. By default, the curve and a histogram are
        drawn in a new figure.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional, or if their lengths differ.

    Examples
    --------
    >>> from cmtrack.plots import plot_reliability
    >>> figure = plot_reliability([0.1, 0.4, 0.8], [0.05, 0.5, 0.7], [5, 50, 70], [95, 50, 30])
    >>> figure.savefig("reliability.png")
    """
    x, y, above, below = of_one_shape(
        0, scores=scores, recalibrated=recalibrated, positive=positive, negative=negative
    )
    curve = ReliabilityPanel("", x, y, above, below, band)
    weights = np.stack((below, above))
    n = below + above
    on_score = f"score: probability of {text.brief(names[1], 28)}"
    scale = _Scale.of(x, y, n)
    if scale.low:
        on_score += " (log-odds scale)"
    if ax is not None:
        page, ax = sheet(ax, (4.7, 4.7))
        _draw_curve(ax, curve, level, scale, error)
        _draw_dots(ax, curve, level, scale, _DOTS)
        name_axes(ax, on_score, "observed share", title)
        legend_below(ax)
        return page.finish()
    figure = new_figure((4.9, 7.0))
    top = figure.add_subplot(211)
    bottom = figure.add_subplot(212)
    _draw_curve(top, curve, level, scale, error)
    _draw_dots(top, curve, level, scale, _DOTS)
    heights, edges = histogram(scale.places(x), weights, _BINS)
    draw_panel(bottom, heights, scale.values(edges), CLASS_COLOURS, weights.sum(axis=1))
    use_log_counts(bottom, heights)
    totals = zip(names, weights.sum(axis=1), strict=True)
    areas = _areas(
        [f"{text.brief(name, 30)} (n={digits.short_count(total)})" for name, total in totals]
    )
    scale.use(bottom)
    name_axes(top, "", "observed share", None)
    name_axes(bottom, on_score, "rows (log scale)", None)
    handles = [*top.get_legend_handles_labels()[0], *areas]
    legend = legend_below(bottom, handles)
    arrange(figure, [[top], [bottom]], legend, heights=[3, 1], title=title)
    return figure


@dataclass(frozen=True)
class ReliabilityPanel:
    """A score that :func:`plot_reliability_panels` draws.

    Attributes
    ----------
    name : object
    scores, recalibrated, positive, negative : array_like of shape (U,)
        As in :func:`plot_reliability`.
    band : (array_like, array_like) of shape (U,), optional
        Lower and upper limits of the consistency band.
    note : str
        A line of text below the name.
    marked : bool
        Whether the note is highlighted.

    Examples
    --------
    >>> from cmtrack.plots import ReliabilityPanel
    >>> ReliabilityPanel("cat", [0.1, 0.8], [0.0, 0.9], [0, 45], [50, 5]).name
    'cat'
    """

    name: object
    scores: npt.ArrayLike
    recalibrated: npt.ArrayLike
    positive: npt.ArrayLike
    negative: npt.ArrayLike
    band: Band | None = None
    note: str = ""
    marked: bool = False


def plot_reliability_panels(
    panels: Sequence[ReliabilityPanel],
    *,
    level: float = 0.95,
    names: tuple[str, str] = ("other classes", "the class"),
    title: str | None = None,
) -> Figure:
    """Draw reliability curves and histograms of several scores side by side.

    All panels have the same axes, with one exception. If all scores of a panel are below a fifth of
    the largest score, its axes end at the largest score of the panel.

    Parameters
    ----------
    panels : sequence of ReliabilityPanel
        The panels, at least one.
    level : float, default 0.95
        Confidence level of the bands and of the intervals.
    names : (str, str)
        Names of the negatives and of the positives, for the legend.
    title : str, optional

    Raises
    ------
    ValueError
        If `panels` is empty.

    Examples
    --------
    >>> from cmtrack.plots import ReliabilityPanel, plot_reliability_panels
    >>> cat = ReliabilityPanel("cat", [0.1, 0.8], [0.0, 0.9], [0, 45], [50, 5])
    >>> dog = ReliabilityPanel("dog", [0.1, 0.8], [0.0, 0.9], [0, 35], [60, 5])
    >>> plot_reliability_panels([cat, dog]).savefig("reliability.png")
    """
    if not panels:
        raise ValueError("panels must have at least one panel, got none")
    columns = _count_columns(len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = new_figure((0.7 + 2.5 * max(columns, 2), 1.0 + 3.3 * rows))
    axes = figure.subplots(2 * rows, columns, squeeze=False)
    shown = text.short_names([panel.name for panel in panels], 22)
    reaches = _panel_reaches(panels)
    strips = [_strip(panel, reach) for panel, reach in zip(panels, reaches, strict=True)]
    every = np.stack([heights for heights, _ in strips])
    handles: list[Any] = []
    pairs = np.stack((axes[::2].ravel(), axes[1::2].ravel()), axis=1)
    for ax in pairs[len(panels) :].flat:
        ax.set_visible(False)
    for place, panel in enumerate(panels):
        top, bottom = pairs[place]
        reach = reaches[place]
        heights, totals = strips[place]
        scale = _Scale(reach_of(float(np.asarray(panel.scores)[-1])))
        _draw_curve(top, panel, level, scale)
        _draw_dots(top, panel, level, scale, _SMALL_DOTS)
        draw_panel(bottom, heights, np.linspace(0, reach, _SMALL_BINS + 1), CLASS_COLOURS, totals)
        use_log_counts(bottom, every, low_axis=True)
        is_near = reach < max(reaches)
        top.set_ylim(0, reach if is_near else 1)
        is_first = place % columns == 0
        _set_panel_ticks(top, bottom, reach)
        top.tick_params(labelleft=is_first or is_near, labelbottom=False)
        bottom.tick_params(labelleft=is_first, labelbottom=True)
        _name_panel(top, bottom, is_first, place >= (rows - 1) * columns)
        top.set_title(
            shown[place], loc="left", fontsize=SMALL_SIZE, color=INK, pad=4 + 1.4 * SMALL_SIZE
        )
        _write_note(top, panel)
        handles = max(handles, top.get_legend_handles_labels()[0], key=len)
    legend = legend_of_panels(figure, [*handles, *_areas(names)], min(3, max(1, columns - 1)))
    arrange(figure, axes.tolist(), legend, heights=[4, 1] * rows, title=title)
    return figure


def _count_columns(n_panels: int) -> int:
    """Return the number of columns into which panels are arranged."""
    if n_panels <= 4:
        return n_panels
    # Choose from three and four columns the number that leaves the fewest gaps in the last row.
    return min((3, 4), key=lambda n: (-n_panels % n, -n))


def _panel_reaches(panels: Sequence[ReliabilityPanel]) -> list[float]:
    """Return the upper limit of each score axis: the common limit, unless scores are small."""
    reaches = [reach_of(float(np.asarray(panel.scores)[-1])) for panel in panels]
    highest = max(reaches)
    return [reach if reach <= highest / 5 else highest for reach in reaches]


def _set_panel_ticks(top: Axes, bottom: Axes, reach: float) -> None:
    """Set a small number of ticks."""
    for axis in (top.xaxis, bottom.xaxis, top.yaxis):
        axis.set_major_locator(MaxNLocator(3, steps=[1, 2.5, 5, 10]))
        axis.set_major_formatter(lambda share, _: digits.short_percent(share))
    for ax in (top, bottom):
        ax.set_xlim(0, reach)


def _name_panel(top: Axes, bottom: Axes, is_first: bool, is_last: bool) -> None:
    """Name the vertical axes of a row's first panel and the horizontal axes of the last row."""
    name_axes(top, "", "observed share" if is_first else "", None)
    name_axes(bottom, "score" if is_last else "", "rows" if is_first else "", None)
    for label in (top.yaxis.label, bottom.xaxis.label, bottom.yaxis.label):
        label.set_fontsize(SMALL_SIZE)


def _write_note(ax: Axes, panel: ReliabilityPanel) -> None:
    """Write a panel's note below its title."""
    colour = ORANGE if panel.marked else MUTED
    look: dict[str, Any] = {"va": "baseline", "colour": colour}
    write_beside(ax, panel.note, (0, 1), (0, 4), "axes fraction", **look)


def _areas(names: Sequence[str]) -> list[Patch]:
    """Return the legend handles of the negatives and the positives."""
    colours = zip(CLASS_COLOURS, names, strict=True)
    return [
        Patch(facecolor=(colour, 0.35), edgecolor=colour, label=name) for colour, name in colours
    ]


def _strip(panel: ReliabilityPanel, reach: float) -> tuple[FloatArray, FloatArray]:
    """Return the histogram of a score up to the end of its axis, (2, bins), and its totals."""
    x, positive, negative = (
        np.asarray(part, dtype=np.float64)
        for part in (panel.scores, panel.positive, panel.negative)
    )
    weights = np.stack((negative, positive))
    return histogram(x / reach, weights, _SMALL_BINS)[0], weights.sum(axis=1)


def _draw_curve(
    ax: Axes, curve: ReliabilityPanel, level: float, scale: _Scale, error: str = ""
) -> None:
    """Draw a reliability curve without bins, and its band.

    ``error``: the calibration error as text, for the legend.
    """
    open_axes(ax)
    scale.use(ax, both=True)
    x, y = (
        scale.inside(np.asarray(part, dtype=np.float64))
        for part in (curve.scores, curve.recalibrated)
    )
    if curve.band is not None:
        low, high = (scale.inside(np.asarray(end, dtype=np.float64)) for end in curve.band)
        label = f"{digits.level(level)} band of a perfectly calibrated model"
        line: dict[str, Any] = {"color": FRAME, "linewidth": 0.7, "zorder": 1}
        ax.plot(x, low, drawstyle="steps-mid", label=label, **line)
        ax.plot(x, high, drawstyle="steps-mid", label="_upper", **line)
        ax.fill_between(x, low, high, step="mid", color=FRAME, alpha=0.12, linewidth=0, zorder=0.5)
        if len(x) == 1:
            ax.vlines(x, low, high, **line)
    ends = scale.inside(np.array([0.0, 1.0]))
    ax.plot(ends, ends, label="perfect calibration", **DOTTED)
    words = "isotonic curve"
    if error:
        words += f"; calibration error {error}"
    ax.plot(
        x,
        y,
        drawstyle="steps-mid",
        color=SKY,
        linewidth=1.2,
        zorder=2.5,
        label=fold(words, 300),
    )


def _draw_dots(ax: Axes, curve: ReliabilityPanel, level: float, scale: _Scale, most: int) -> None:
    """Draw a dot for each part of the score axis: its mean score and its share of positives.

    ``most``: the number of parts. The dots have intervals if the curve has a band, because both
    need independent rows.
    """
    dots = _pool_scores(curve, scale, most)
    scores = scale.inside(np.array([dot.score for dot in dots]))
    shares = scale.inside(np.array([dot.share for dot in dots]))
    words = "observed share"
    arms = None
    if curve.band is not None:
        words += f", with {digits.level(level)} interval"
        limits = [wilson(dot.share, dot.n_rows, level) or (0.0, 1.0) for dot in dots]
        low, high = scale.inside(np.array(limits).reshape(-1, 2)).T
        arms = np.stack((shares - low, high - shares))
    ax.errorbar(
        scores,
        shares,
        yerr=arms,
        color=BLUE,
        marker="o",
        markersize=6,
        linewidth=1.8,
        zorder=4,
        label=words,
        **DOT,
    )


class _Dot(NamedTuple):
    score: float
    share: float
    n_rows: float


def _pool_scores(curve: ReliabilityPanel, scale: _Scale, most: int) -> list[_Dot]:
    """Return the mean score, share of positives and size of each part of the score axis."""
    x, positive, negative = (
        np.asarray(part, dtype=np.float64)
        for part in (curve.scores, curve.positive, curve.negative)
    )
    rows = positive + negative
    cells = np.clip(np.floor(most * scale.places(x)), 0, most - 1)
    dots = []
    start = 0
    for stop in [*(np.flatnonzero(np.diff(cells)) + 1).tolist(), len(x)]:
        part = slice(start, stop)
        n_rows = float(rows[part].sum())
        is_last = stop == len(x)
        if n_rows >= _LEAST_ROWS or (is_last and n_rows > 0):
            score = float(x[part] @ rows[part]) / n_rows
            dots.append(_Dot(score, float(positive[part].sum()) / n_rows, n_rows))
            start = stop
    return dots


_RARE = 0.05
_TICKS = (1e-5, 1e-4, 1e-3, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


@dataclass(frozen=True)
class _Scale:
    """The scales of the score axis and of the axis of shares.

    ``reach``: the upper limit of the score axis.
    ``low``: the lower limit if the axes are logit axes; 0 if they are linear.
    ``top``: the upper limit of the axis of shares.
    """

    reach: float
    low: float = 0.0
    top: float = 1.0

    @classmethod
    def of(cls, x: FloatArray, y: FloatArray, n: FloatArray) -> _Scale:
        """Choose the scale for scores x and recalibrated scores y, given the numbers n of rows."""
        above_zero = x[(x > 0) & (n > 0)]
        if not above_zero.size or float(x @ n) >= _RARE * float(n.sum()):
            return cls(reach_of(float(x[-1])))
        # A log-odds axis cannot show 0, so it begins below the first percentile of the scores.
        percentile = float(x[np.searchsorted(np.cumsum(n) / n.sum(), 0.01)])
        low = max(percentile, float(above_zero[0]), 1e-5) / 1.5
        reach, top = (min(max(1.5 * float(values[-1]), 4 * low), 0.995) for values in (x, y))
        return cls(reach, low, max(reach, top))

    def inside(self, values: FloatArray) -> FloatArray:
        """Clip values to the limits of a logit axis; on a linear axis, return them unchanged."""
        return np.clip(values, self.low, self.top) if self.low else values

    def places(self, values: FloatArray) -> FloatArray:
        """Convert scores to positions on the axis, from 0 to 1."""
        if not self.low:
            return values / self.reach
        low, high = logit((self.low, self.reach))
        return np.asarray((logit(self.inside(values)) - low) / (high - low))

    def values(self, places: FloatArray) -> FloatArray:
        """Convert positions on the axis, from 0 to 1, to scores."""
        if not self.low:
            return places * self.reach
        low, high = logit((self.low, self.reach))
        return np.asarray(expit(low + places * (high - low)))

    def use(self, ax: Axes, *, both: bool = False) -> None:
        """Apply the scale to the horizontal axis, or to both axes."""
        self._set_ticks(ax.xaxis)
        if both:
            self._set_ticks(ax.yaxis)
        # A change of the scale resets the limits, so the limits are set after it.
        ax.set_xlim(self.low, self.reach)
        if both:
            ax.set_ylim(self.low, self.top)

    def _set_ticks(self, axis: XAxis | YAxis) -> None:
        if self.low:
            ticks = [tick for tick in _TICKS if self.low <= tick <= self.top]
            logit_axis(axis, ticks, digits.short_percent)
        else:
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def reach_of(largest: float) -> float:
    """Return the upper limit of the score axis, which is small if positives are rare."""
    if largest > 0.5:
        return 1.0
    return min(1.0, math.ceil(largest * 21) / 20)
