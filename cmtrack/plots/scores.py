"""Histograms of a score for each actual class, before and after calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.patches import Patch, StepPatch
from matplotlib.ticker import LogLocator, NullLocator, PercentFormatter

from cmtrack import digits

from . import _text as text
from .style import (
    BLUE,
    BROWN,
    GREEN,
    INK,
    MUTED,
    PINK,
    SKY,
    SMALL_SIZE,
    FloatArray,
    arrange,
    legend_of_panels,
    name_axes,
    new_figure,
    of_shape,
    open_axes,
)

_NEGATIVES = (MUTED, BROWN, PINK)
_POSITIVES = (BLUE, SKY, GREEN)
_DASHES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1.2, 1.2)))


def plot_score_histogram(
    values: npt.ArrayLike,
    counts: npt.ArrayLike,
    names: Sequence[object],
    *,
    calibrated: npt.ArrayLike | None = None,
    with_counts: bool = True,
    n_bins: int = 40,
    title: str | None = None,
) -> Figure:
    """Draw the score histogram of each actual class, as shares and as counts on a log axis.

    Shares make the shapes of a small and a very large class comparable. Counts on a logarithmic
    axis show the real proportions of the classes.

    Parameters
    ----------
    values : array_like of shape (U,)
        Distinct scores, or centres of the cells in which scores were counted, in [0, 1].
    counts : array_like of shape (C, U)
        Number of rows (or total weight) of each class at each value. The positive class is last.
    names : sequence of length C
        Class names.
    calibrated : array_like of shape (U,), optional
        The recalibrated probability at each value. If given, a second row of panels is drawn.
    with_counts : bool, default True
        Whether to also draw panels of counts. If False, the figure is half as wide.
    n_bins : int, default 40
        Number of bins, which divide [0, 1] into equal parts.
    title : str, optional
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure has one or two rows (before and after calibration) and one or two columns (shares
        and counts). The figure is not registered with pyplot.

    Raises
    ------
    ValueError
        If the shapes do not match, a value is outside [0, 1], or `n_bins` is below 1.

    References
    ----------
    Gubbels (2023), "The sample Pearson Correlation Coefficient for classification models and
    identifying platform economy businesses from web-scraped data", figure 1.2.

    Examples
    --------
    >>> from cmtrack.plots import plot_score_histogram
    >>> figure = plot_score_histogram([0.1, 0.4, 0.8], [[95, 50, 30], [5, 50, 70]], ["no", "yes"])
    >>> figure.savefig("scores.png")
    """
    weights = np.asarray(counts, dtype=np.float64)
    if weights.ndim != 2 or len(weights) != len(names) or not len(weights):
        raise ValueError(f"counts must have shape ({len(names)}, n_values), got {weights.shape}")
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    rows = {"score": _unit_values("values", values, weights)}
    if calibrated is not None:
        rows["calibrated probability"] = _unit_values("calibrated", calibrated, weights)
    colours = _class_colours(len(weights))
    totals = weights.sum(axis=1)
    figure = new_figure((9.0 if with_counts else 4.9, 0.9 + 2.7 * len(rows)))
    panels = figure.subplots(len(rows), 1 + with_counts, sharex=True, squeeze=False)
    for (name, where), (linear, *others) in zip(rows.items(), panels, strict=True):
        histograms, edges = histogram(where, weights, n_bins)
        # If a class has no rows, all its shares are 0.
        shares = histograms / np.where(totals > 0, totals, 1.0)[:, None]
        draw_panel(linear, shares, edges, colours, totals)
        linear.yaxis.set_major_formatter(lambda share, _: digits.short_percent(share))
        name_axes(linear, name, "share of the class", None)
        for logarithmic in others:
            draw_panel(logarithmic, histograms, edges, colours, totals)
            use_log_counts(logarithmic, histograms)
            name_axes(logarithmic, name, "rows (log scale)", None)
        if calibrated is not None:
            heading = "before calibration" if name == "score" else "after calibration"
            linear.set_title(heading, loc="left", fontsize=SMALL_SIZE + 1, color=INK, y=1.0)
    arrange(figure, panels.tolist(), _shared_legend(figure, names, totals, colours), title=title)
    return figure


def histogram(
    values: FloatArray, weights: FloatArray, n_bins: int
) -> tuple[FloatArray, FloatArray]:
    """Sum weights of shape (C, U) in equal bins over [0, 1]; also return the bin edges.

    If a value equals an edge, up to rounding, it belongs to the bin above the edge. The value 1
    belongs to the last bin.
    """
    cells = np.clip(np.floor(values * n_bins + 1e-9), 0, n_bins - 1).astype(np.intp)
    sums = [np.bincount(cells, weights=row, minlength=n_bins) for row in weights]
    return np.stack(sums).astype(np.float64), np.linspace(0.0, 1.0, n_bins + 1)


def _unit_values(name: str, values: npt.ArrayLike, weights: FloatArray) -> FloatArray:
    array = of_shape(name, values, weights.shape[1:])
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"{name} must be in [0, 1], got {array.min()} to {array.max()}")
    return array


def _class_colours(n_classes: int) -> list[str]:
    """Return colours for the negatives, the first half of the classes, and for the positives.

    The last class, which is positive, is always blue.
    """
    negatives = [_NEGATIVES[i % 3] for i in range(n_classes // 2)]
    return negatives + [_POSITIVES[i % 3] for i in reversed(range(n_classes - n_classes // 2))]


def _dashes(row: int, colours: Sequence[str]) -> Any:
    """Return the line style of a class: dashed unless the class is the first or the last."""
    # Each half of the classes has its own colours, so the line styles also start again in each
    # half.
    distance = row
    if row >= len(colours) // 2:
        distance = len(colours) - 1 - row
    return _DASHES[distance % len(_DASHES)]


def draw_panel(
    ax: Axes, histograms: FloatArray, edges: FloatArray, colours: Sequence[str], totals: FloatArray
) -> None:
    """Draw overlaid histograms of classes, with small classes in front."""
    open_axes(ax)
    for row in np.argsort(-totals, kind="stable"):  # small classes are drawn over large ones
        heights = histograms[row]
        colour = colours[row]
        # The limits of the axes are set below, so matplotlib need not measure the artists.
        ax.add_artist(StepPatch(heights, edges, fill=True, facecolor=(colour, 0.35), linewidth=0))
        outline: dict[str, Any] = {"linewidth": 1.3, "linestyle": _dashes(row, colours)}
        ax.add_artist(StepPatch(heights, edges, fill=False, edgecolor=colour, **outline))
    ax.set(xlim=(0, 1), ylim=(0, 1.05 * max(float(histograms.max()), 1e-9)))
    ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.yaxis.set_major_formatter(_count_tick)
    ax.tick_params(labelbottom=True)


def use_log_counts(ax: Axes, histograms: FloatArray, *, low_axis: bool = False) -> None:
    """Set a logarithmic axis for counts, with limits around the smallest and largest bar."""
    counts = histograms[histograms > 0]
    low = high = 1.0
    if counts.size:
        low = counts.min()
        high = counts.max()
    ax.set_yscale("log", nonpositive="clip")
    if high < 100 * low:
        # Powers of ten alone are too few labels. On a low axis, all these ticks are too many.
        subs: tuple[int, ...] = (1, 2, 5)
        if low_axis:
            subs = (1,) if high >= 10 * low else (1, 3)
        ax.yaxis.set_major_locator(LogLocator(subs=subs))
    ax.yaxis.set_major_formatter(_count_tick)
    # Minor ticks are not labelled, and drawing them would take most of the time.
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_ylim(0.6 * low, 2.0 * high)


def _count_tick(value: float, _: object) -> str:
    return digits.short_count(value)


def _shared_legend(
    figure: Figure, names: Sequence[object], totals: FloatArray, colours: Sequence[str]
) -> Legend:
    handles = []
    for row, name in enumerate(text.short_names(names, 48)):
        label = f"{name} (n={digits.short_count(totals[row])})"
        handle = Patch(facecolor=(colours[row], 0.35), edgecolor=colours[row], label=label)
        handle.set(linewidth=1.3, linestyle=_dashes(row, colours))
        handles.append(handle)
    return legend_of_panels(figure, handles, 1 + (figure.get_figwidth() > 5), SMALL_SIZE + 1)
