"""Confusion matrices: all classes, and reduced to groups with intragroup mismatches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure

from . import heatmap as heat
from . import labels as text
from .style import (
    EMPTY,
    MUTED,
    SMALL_SIZE,
    TEXT_SIZE,
    caption_below,
    figure_and_axes,
    hit_map,
    mismatch_map,
    name_axes,
)

_GAP = 0.14  # between the groups and the mismatches, in cells
_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 1.0)
_MISMATCH_CAPTION = (
    "Intragroup mismatch: right group, wrong class within it; neither hit nor false alarm.\n"
    "The row repeats the column, so that columns add up to the predicted totals as rows do to the actual ones."
)


def plot_confusion_matrix(
    counts: npt.ArrayLike,
    labels: Sequence[object],
    *,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a confusion matrix, coloured by the share of the actual class.

    Up to about 12 classes a cell shows its count and its share, up to about 30 the share; larger matrices
    are an image with as many class names as can be read, on a square-root colour scale so that rare
    confusions stay visible. Diagonal cells are framed. A class without samples has a hatched row: its
    shares are undefined, not 0.

    Parameters
    ----------
    counts : array_like of shape (K, K)
        Samples or weights, rows actual, columns predicted.
    labels : sequence of length K
        Class names in the order of the rows and columns.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default a new figure of a fitting size.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes. It is not registered with pyplot.

    Raises
    ------
    ValueError
        If `counts` is not square, is negative or not finite, or if `labels` has another length.
    """
    values = heat.check_matrix("counts", counts, labels)
    heat.check_counts("counts", values)
    totals = values.sum(axis=1)
    shares = heat.row_shares(values, totals)
    size = len(values)
    cell = heat.cell_for(size, ax)
    names = text.short_names(labels, 24 if cell.holds_text else 20)
    row_names = [_with_total(name, total) for name, total in zip(names, totals, strict=True)]
    row_names = row_names if cell.holds_text else names
    figure, ax = figure_and_axes(ax, heat.figure_size(size, cell, row_names))

    norm = Normalize(0.0, 1.0) if cell.holds_two_lines else PowerNorm(0.5, 0.0, 1.0)
    image = heat.draw_image(ax, shares, hit_map(), norm)
    empty = np.flatnonzero(totals <= 0)
    heat.hatch_rows(ax, empty, size)
    heat.frame_cells(ax, [(i, i) for i in range(size) if totals[i] > 0], cell)
    if cell.holds_text:
        heat.write_cells(ax, image, shares, _cell_text(values, shares, cell), _cell_font(cell))
        _write_no_samples(ax, empty, size)
    step = heat.name_ticks(ax, names, row_names, cell, range(size))
    scale = "" if cell.holds_two_lines else " (square-root colour scale)"
    heat.colour_bar(ax, image, "share of the actual class" + scale, _SHARES, [text.share_text(s) for s in _SHARES])
    thinned = "" if step == 1 else f" (every {text.ordinal(step)} is named)"
    name_axes(ax, "predicted class" + thinned, "actual class" + thinned, title)
    if empty.size:
        caption_below(ax, f"Hatched: no samples of this class ({empty.size} of {size} classes).")
    return figure


def plot_reduced_matrix(
    counts: npt.ArrayLike,
    mismatches: npt.ArrayLike,
    labels: Sequence[object],
    *,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a reduced confusion matrix with its intragroup mismatches (the M x M + IM layout).

    The mismatches stand apart in another hue, as an extra column and, repeated, as an extra row; the
    corner is blank. Shares are of the actual group's total, which is the row's sum with its mismatches.

    Parameters
    ----------
    counts : array_like of shape (M, M)
        Samples or weights by actual (rows) and predicted group (columns), hits on the diagonal.
    mismatches : array_like of shape (M,)
        Samples of each group that were put into the right group but into a wrong class within it.
    labels : sequence of length M
        Group names.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default a new figure of a fitting size.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes. It is not registered with pyplot.

    Raises
    ------
    ValueError
        If shapes do not fit together or a count is negative or not finite.

    References
    ----------
    Markoulidakis et al. (2021), "Multiclass Confusion Matrix Reduction Method and Its Application on Net
    Promoter Score Classification Problem", figures 4 and 5.
    """
    values = heat.check_matrix("counts", counts, labels)
    aside = np.asarray(mismatches, dtype=np.float64)
    if aside.shape != (len(values),):
        raise ValueError(f"mismatches must have shape ({len(values)},), got {aside.shape}")
    heat.check_counts("counts", values)
    heat.check_counts("mismatches", aside)
    totals = values.sum(axis=1) + aside
    shares = heat.row_shares(values, totals)
    aside_shares = heat.row_shares(aside[:, None], totals)
    size = len(values)
    cell = heat.cell_for(size + 1, ax)
    names = text.short_names(labels, 24)
    row_names = [_with_total(name, total) for name, total in zip(names, totals, strict=True)]
    figure, ax = figure_and_axes(ax, heat.figure_size(size + 1, cell, row_names, below=0.9))

    apart = size + _GAP
    image = heat.draw_image(ax, shares, hit_map(), Normalize(0.0, 1.0))
    column = heat.draw_image(ax, aside_shares, mismatch_map(), Normalize(0.0, 1.0), at=(apart, 0.0))
    row = heat.draw_image(ax, aside_shares.T, mismatch_map(), Normalize(0.0, 1.0), at=(0.0, apart))
    ax.set(xlim=(-0.5, apart + 0.5), ylim=(apart + 0.5, -0.5))
    empty = np.flatnonzero(totals <= 0)
    heat.hatch_rows(ax, empty, size)
    heat.frame_cells(ax, [(i, i) for i in range(size) if totals[i] > 0], cell)
    if cell.holds_text:
        font = _cell_font(cell)
        heat.write_cells(ax, image, shares, _cell_text(values, shares, cell), font)
        aside_text = _cell_text(aside[:, None], aside_shares, cell)
        heat.write_cells(ax, column, aside_shares, aside_text, font, at=(apart, 0.0))
        heat.write_cells(ax, row, aside_shares.T, lambda _, j: text.count_text(aside[j]), font, at=(0.0, apart))
        _write_no_samples(ax, empty, size)
    _frame_parts(ax, size, apart)
    extra = ["intragroup\nmismatch"]
    heat.name_ticks(ax, names + extra, row_names + extra, cell, [*range(size), apart])
    heat.colour_bar(ax, image, "share of the actual group", _SHARES[:1] + _SHARES[2:], ["0%", "25%", "50%", "75%", "100%"])
    name_axes(ax, "predicted group", "actual group", title)
    caption_below(ax, _MISMATCH_CAPTION)
    return figure
