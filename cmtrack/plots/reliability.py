"""Reliability of a score: the observed share of positives over the score, without bins, above the scores themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from . import _text as text
from .scores import draw_panel, histogram, use_log_counts
from .style import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    PAD,
    SKY,
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

_BINS = 40


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
    """Draw the reliability curve of a score, and under it how often each score occurs.

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

    Returns
    -------
    matplotlib.figure.Figure
        It is not registered with pyplot.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional and of equal length, or `band_of` is another word.
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
    heights, edges = histogram(x, weights, _BINS)
    colours = [BLUE, ORANGE]
    draw_panel(bottom, heights, edges, colours, weights.sum(axis=1))
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
        words = "where the true curve lies" if band_of == "confidence" else "where a calibrated score's curve stays"
        ax.fill_between(
            **where, color=SKY, alpha=0.35, linewidth=0, zorder=1, label=f"{words} ({100 * level:g} %)",
        )  # fmt: skip
    ax.plot([0, 1], [0, 1], color=MUTED, linewidth=1.0, linestyle=":", label="perfect: as often as the score says")
    ax.plot(
        x, y, color=BLUE, linewidth=1.8, zorder=3, drawstyle="steps-mid",
        label=fold("observed share" + (f"; calibration error {error}" if error else ""), 300),
    )  # fmt: skip
    ax.set(xlim=(0, reach_of(float(x[-1]))), ylim=(0, 1))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def reach_of(largest: float) -> float:
    """The end of the axis of scores: of rare positives all are small."""
    return 1.0 if largest > 0.5 else min(1.0, math.ceil(largest * 21) / 20)
