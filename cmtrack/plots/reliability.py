"""Reliability of scores: the observed share of positives over the score, without bins, above the scores themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from . import _text as text
from .scores import draw_panel, histogram, use_log_counts
from .style import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    PAD,
    SKY,
    SMALL_SIZE,
    TINY_SIZE,
    TITLE_SIZE,
    FloatArray,
    arrange,
    fold,
    legend_below,
    name_axes,
    new_figure,
    open_axes,
    plain_axes,
    sheet,
)

_BINS, _SMALL_BINS = 40, 20


def plot_reliability(
    scores: npt.ArrayLike,
    recalibrated: npt.ArrayLike,
    positive: npt.ArrayLike,
    negative: npt.ArrayLike,
    *,
    band: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    band_of: str = "consistency",
    level: float = 0.95,
    error: str = "",
    names: tuple[object, object] = ("negative", "positive"),
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the reliability curve of a score, with a histogram of the scores below.

    Parameters
    ----------
    scores : array_like of shape (U,)
        Distinct scores in ascending order, in [0, 1].
    recalibrated : array_like of shape (U,)
        Observed share of positives at each, by isotonic regression (Dimitriadis, Gneiting and Jordan 2021).
    positive, negative : array_like of shape (U,)
        Samples, or weight, of each score.
    band : (array_like, array_like) of shape (U,), optional
        Simultaneous band at each score.
    band_of : "consistency" or "confidence"
        The curve that lies in it: that of a calibrated score, or the true one. Between two scores a confidence band
        reaches from the low end of the first to the high end of the second.
    level : float, default 0.95
        Of the band.
    error : str
        The calibration error with its interval, for the legend.
    names : (object, object)
        Names of the negatives and of the positives.
    title : str, optional
    ax : matplotlib.axes.Axes, optional
        Axes to draw the curve alone into; by default a new figure, with the scores below.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional and of equal length, or `band_of` is another word.

    Examples
    --------
    >>> from cmtrack.plots import plot_reliability
    >>> figure = plot_reliability([0.1, 0.4, 0.8], [0.05, 0.5, 0.7], [5, 50, 70], [95, 50, 30])
    >>> figure.savefig("reliability.png")
    """
    if band_of not in ("consistency", "confidence"):
        raise ValueError(f"band_of must be 'consistency' or 'confidence', got {band_of!r}")
    x, y, above, below = (np.asarray(part, dtype=np.float64) for part in (scores, recalibrated, positive, negative))
    if x.ndim != 1 or any(part.shape != x.shape for part in (y, above, below)):
        shapes = ", ".join(str(part.shape) for part in (x, y, above, below))
        raise ValueError(f"scores, recalibrated, positive and negative must have one shape (n_scores,), got {shapes}")
    on_score = f"score: probability of {text.brief(names[1], 28)}"
    if ax is not None:
        page = sheet(ax, (4.7, 4.7))
        _draw_curve(ax, x, y, band, band_of, level, error)
        name_axes(ax, on_score, "observed share", title)
        legend_below(ax)
        return page.finish()
    figure = new_figure((4.9, 6.3))
    top, bottom = figure.add_subplot(211), figure.add_subplot(212)
    plain_axes(top)
    _draw_curve(top, x, y, band, band_of, level, error)
    weights = np.stack((below, above))
    reach = reach_of(float(x[-1]))
    heights, edges = histogram(x / reach, weights, _BINS)
    colours = [BLUE, ORANGE]
    draw_panel(bottom, heights, edges * reach, colours, weights.sum(axis=1))
    use_log_counts(bottom, heights)
    areas = [
        Patch(facecolor=(colour, 0.35), edgecolor=colour, label=f"{text.brief(name, 30)} (n={total:,.6g})")
        for colour, name, total in zip(colours, names, weights.sum(axis=1), strict=True)
    ]
    bottom.set_xlim(top.get_xlim())
    bottom.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    name_axes(top, "", "observed share", None)
    name_axes(bottom, on_score, "samples (log scale)", None)
    handles = [*top.get_legend_handles_labels()[0], *areas]
    if title is not None:
        figure.suptitle(title, fontsize=TITLE_SIZE, color=INK, y=1 - 0.5 * PAD / figure.get_figheight())
    arrange(figure, [[top], [bottom]], legend_below(bottom, handles))
    return figure


@dataclass(frozen=True)
class ReliabilityPanel:
    """One score of :func:`plot_reliability_panels`.

    Attributes
    ----------
    name : object
    scores, recalibrated, positive, negative : array_like of shape (U,)
        As in :func:`plot_reliability`.
    band : (array_like, array_like) of shape (U,), optional
        Consistency band.
    note : str
        A line under the name.
    marked : bool
        Whether the note stands out.

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
    band: tuple[npt.ArrayLike, npt.ArrayLike] | None = None
    note: str = ""
    marked: bool = False


def plot_reliability_panels(
    panels: Sequence[ReliabilityPanel],
    *,
    level: float = 0.95,
    names: tuple[str, str] = ("other classes", "the class"),
    title: str | None = None,
) -> Figure:
    """Draw reliability curves of several scores side by side, each with its histogram.

    All axes are the same, but for scores of rare positives: where all are below a fifth of the others' largest, both
    axes end where they do.

    Parameters
    ----------
    panels : sequence of ReliabilityPanel
        At least one.
    level : float, default 0.95
        Of the bands.
    names : (str, str)
        Names of the negatives and of the positives, for the legend.
    title : str, optional

    Raises
    ------
    ValueError
        If there is no panel.

    Examples
    --------
    >>> from cmtrack.plots import ReliabilityPanel, plot_reliability_panels
    >>> panels = [ReliabilityPanel(name, [0.1, 0.8], [0.0, 0.9], [0, 45], [50, 5]) for name in ("cat", "dog")]
    >>> plot_reliability_panels(panels).savefig("reliability.png")
    """
    if not panels:
        raise ValueError("panels must have at least one panel, got none")
    columns = min(range(3, 6), key=lambda n: (-len(panels) % n, -n)) if len(panels) > 5 else len(panels)
    rows = -(-len(panels) // columns)
    figure = new_figure((0.7 + 1.75 * max(columns, 2), 1.0 + 2.6 * rows))
    axes = figure.subplots(2 * rows, columns, squeeze=False)
    shown = text.short_names([panel.name for panel in panels], 22)
    reaches = [reach_of(float(np.asarray(panel.scores)[-1])) for panel in panels]
    reaches = [own if own <= max(reaches) / 5 else max(reaches) for own in reaches]
    strips = [_strip(panel, reach) for panel, reach in zip(panels, reaches, strict=True)]
    every = np.stack([heights for heights, _ in strips])
    handles: list[Any] = []
    for place, (top, bottom) in enumerate(zip(axes[::2].ravel(), axes[1::2].ravel(), strict=True)):
        if place >= len(panels):
            top.set_visible(False)
            bottom.set_visible(False)
            continue
        panel, reach, (heights, totals) = panels[place], reaches[place], strips[place]
        first, last = place % columns == 0, place >= (rows - 1) * columns
        plain_axes(top)
        x, y = (np.asarray(part, dtype=np.float64) for part in (panel.scores, panel.recalibrated))
        _draw_curve(top, x, y, panel.band, "consistency", level, "")
        draw_panel(bottom, heights, np.linspace(0, reach, _SMALL_BINS + 1), [BLUE, ORANGE], totals)
        use_log_counts(bottom, every, low_axis=True)
        own = reach < max(reaches)
        top.set_ylim(0, reach if own else 1)
        for axis in (top.xaxis, bottom.xaxis, top.yaxis):
            axis.set_major_locator(MaxNLocator(3, steps=[1, 2.5, 5, 10]))
            axis.set_major_formatter(lambda share, _: f"{100 * share:.3g}%")
        for ax in (top, bottom):
            ax.set_xlim(0, reach)
            ax.tick_params(labelsize=TINY_SIZE, labelleft=first or (own and ax is top), labelbottom=ax is bottom)
        name_axes(top, "", "observed share" if first else "", None)
        name_axes(bottom, "score" if last else "", "samples" if first else "", None)
        for label in (top.yaxis.label, bottom.xaxis.label, bottom.yaxis.label):
            label.set_fontsize(SMALL_SIZE)
        top.set_title(shown[place], loc="left", fontsize=SMALL_SIZE, color=INK, pad=4 + 1.4 * TINY_SIZE)
        top.annotate(
            panel.note, xy=(0, 1), xycoords="axes fraction", xytext=(0, 4), textcoords="offset points",
            fontsize=TINY_SIZE, color=ORANGE if panel.marked else MUTED, annotation_clip=False,
        )  # fmt: skip
        handles = max(handles, top.get_legend_handles_labels()[0], key=len)
    areas = [
        Patch(facecolor=(colour, 0.35), edgecolor=colour, label=name)
        for colour, name in zip((BLUE, ORANGE), names, strict=True)
    ]
    legend = figure.legend(
        handles=[*handles, *areas], loc="lower center", ncols=min(3, max(1, columns - 1)), frameon=False,
        fontsize=SMALL_SIZE, labelcolor=INK, bbox_to_anchor=(0.5, 0.0), borderaxespad=0.4,
    )  # fmt: skip
    if title is not None:
        figure.suptitle(title, fontsize=TITLE_SIZE, color=INK, y=1 - 0.5 * PAD / figure.get_figheight())
    arrange(figure, axes.tolist(), legend, heights=[4, 1] * rows)
    return figure


def _strip(panel: ReliabilityPanel, reach: float) -> tuple[FloatArray, FloatArray]:
    """The histogram of a score up to the end of its axis, shape (2, bins), and both totals."""
    x, positive, negative = (
        np.asarray(part, dtype=np.float64) for part in (panel.scores, panel.positive, panel.negative)
    )
    weights = np.stack((negative, positive))
    return histogram(x / reach, weights, _SMALL_BINS)[0], weights.sum(axis=1)


def _draw_curve(
    ax: Axes,
    x: FloatArray,
    y: FloatArray,
    band: tuple[npt.ArrayLike, npt.ArrayLike] | None,
    band_of: str,
    level: float,
    error: str,
) -> None:
    open_axes(ax)
    if band is not None:
        low, high = (np.asarray(end, dtype=np.float64) for end in band)
        where: dict[str, Any] = {"x": x, "y1": low, "y2": high, "step": "mid"}
        if band_of == "confidence":
            ends = np.concatenate(([0.0], np.repeat(x, 2), [1.0]))
            where = {"x": ends, "y1": np.repeat(np.append(0.0, low), 2), "y2": np.repeat(np.append(high, 1.0), 2)}
        words = "where the true curve lies" if band_of == "confidence" else "a perfectly calibrated model"
        label = f"{100 * level:g} % band of {words}" if band_of == "consistency" else f"{words} ({100 * level:g} %)"
        ax.fill_between(**where, color=SKY, alpha=0.35, linewidth=0, zorder=1, label=label)
        if len(x) == 1:
            ax.vlines(x, low, high, color=SKY, alpha=0.35, linewidth=6, zorder=1)
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1.0, linestyle=":", label="perfect: as often as the score says")
    alone: dict[str, Any] = {"marker": "o", "markersize": 5, "clip_on": False} if len(x) == 1 else {}
    ax.plot(
        x, y, color=BLUE, linewidth=1.8, zorder=3, drawstyle="steps-mid", **alone,
        label=fold("observed share" + (f"; calibration error {error}" if error else ""), 300),
    )  # fmt: skip
    ax.set(xlim=(0, reach_of(float(x[-1]))), ylim=(0, 1))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def reach_of(largest: float) -> float:
    """The upper limit of the score axis; all scores of rare positives are small."""
    return 1.0 if largest > 0.5 else min(1.0, math.ceil(largest * 21) / 20)
