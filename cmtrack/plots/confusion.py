"""Confusion matrices of all classes, and reduced matrices of groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cmtrack import digits

from . import _heatmap as heat
from . import _text as text
from ._text import use_fallbacks
from .style import (
    DPI,
    EMPTY,
    FRAME,
    INK,
    SMALL_SIZE,
    FloatArray,
    caption_below,
    hit_map,
    new_figure,
    of_shape,
)

_CHART = 512.0  # pixels on each side: twice the size in MLflow's image grid
_CHART_PAD = 8.0  # pixels around the matrix
_CHART_NAMES = 92.0  # pixels for the names of classes
_CHART_CLASSES = 12  # largest number of classes with readable numbers and names
_CHART_FEW = 3  # largest number of classes with percent signs and names of columns
_CHART_NAME = 7  # largest number of characters in a class name
_CHART_COLUMNS = 37  # largest number of characters in a title line
_MISMATCH_CAPTION = [
    "An intragroup mismatch is an error within the correct group. It lowers recall and precision.",
    "Mismatches appear twice, in a row and in a column. Rows add up to the actual totals and "
    "columns to the predicted totals.",
]


def plot_confusion_matrix(
    counts: npt.ArrayLike,
    labels: Sequence[object],
    *,
    positive: object | None = None,
    of: str = "class",
    is_pooled: bool = False,
    caption: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a confusion matrix; the colours show shares of the actual class.

    With up to about 12 classes, each cell shows a count and a share. With up to about 30 classes,
    each cell shows only a share. A larger matrix is drawn as an image, and only as many class names
    are written as can be read. The square-root colour scale of the image keeps rare confusions
    visible. Diagonal cells are framed. If a class has no data, its row is hatched, because its
    shares are undefined, not 0. If a class has fewer than 20 rows of data, its row is pale, unless
    it is the positive class.

    Parameters
    ----------
    counts : array_like of shape (K, K)
        Numbers (or total weights) of rows of data, by actual class (rows) and predicted class
        (columns).
    labels : sequence of length K
        Class names in the order of the rows and columns.
    positive : object, optional
        The label of the positive class, whose row is never pale.
    of : str, default "class"
        The noun that describes a row of the matrix.
    is_pooled : bool, default False
        Whether the last class combines all classes that are not shown. The last cell of the
        diagonal is then grey, because it counts correct predictions and errors.
    caption : str, default ""
        A sentence that is written below the matrix.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If `counts` is not square or contains a negative or infinite number, or if the number of
        `labels` is not K.

    Examples
    --------
    >>> from cmtrack.plots import plot_confusion_matrix
    >>> figure = plot_confusion_matrix([[50, 3, 1], [4, 40, 6], [0, 2, 44]], ["cat", "dog", "fox"])
    >>> figure.savefig("confusion.png")
    """
    values, totals, shares = _by_row(counts, labels)
    size = len(values)
    cell = heat.cell_for(size, ax)
    names, notes = heat.name_classes(labels, is_pooled=is_pooled)
    row_names = heat.with_totals(names, totals, cell)
    page, ax = heat.matrix_sheet(size, cell, ax)
    pale = heat.pale_rows(totals, labels, positive)

    norm, ticks, scale = heat.share_scale(cell.holds_two_lines)
    is_framed = totals > 0
    if is_pooled:
        values = values.copy()  # it may be the caller's array
        values[-1, -1] = 0.0
        shares[-1, -1] = np.nan
        is_framed[-1] = False
    texts = heat.cell_texts(values, shares, cell)
    image = heat.draw_image(ax, shares, hit_map(), norm, strength=heat.row_strength(pale))
    empty = np.flatnonzero(totals <= 0)
    heat.hatch_rows(ax, empty, size)
    heat.frame_cells(ax, heat.diagonal(is_framed), cell)
    if cell.holds_text:
        heat.write_cells(ax, image, shares, texts, cell.text_font)
        _write_no_samples(ax, empty, size)
    step = heat.name_ticks(ax, names, row_names, cell, range(size))
    if not cell.holds_two_lines:
        heat.colour_bar(ax, image, f"% of the actual {of}{scale}", ticks)
    heat.name_matrix_axes(ax, of, step, title)
    caption_below(ax, [caption, *notes, *heat.notes(names, empty.size, int(pale.sum()), of)])
    return page.finish()


def plot_reduced_matrix(
    counts: npt.ArrayLike,
    mismatches: npt.ArrayLike,
    labels: Sequence[object],
    *,
    positive: object | None = None,
    of: str = "group",
    caption: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a reduced confusion matrix and its intragroup mismatches (the M x M + IM layout).

    An extra column in a different hue shows the mismatches, and an extra row repeats them. The
    corner of this column and row is blank. Both are left out if there are no mismatches. Shares
    are relative to the total of the actual group, which is the sum of its row and its mismatches.

    Parameters
    ----------
    counts : array_like of shape (M, M)
        Numbers (or total weights) of rows of data, by actual group (rows) and predicted group
        (columns). Hits are on the diagonal.
    mismatches : array_like of shape (M,)
        For each group, the number of rows of data whose predicted group is correct but whose
        predicted class within the group is wrong.
    labels : sequence of length M
        Group names.
    positive : object, optional
        The label of the positive class, whose row is never pale.
    of : str, default "group"
        The noun that describes a row of the matrix.
    caption : str, default ""
        A sentence that is written before the explanation of mismatches.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If the shapes do not match, or if a count is negative or not finite.

    References
    ----------
    Markoulidakis et al. (2021), "Multiclass Confusion Matrix Reduction Method and Its Application
    on Net Promoter Score Classification Problem", figures 4 and 5.

    Examples
    --------
    >>> from cmtrack.plots import plot_reduced_matrix
    >>> plot_reduced_matrix([[80, 10], [5, 95]], [6, 2], ["low", "high"]).savefig("reduced.png")
    """
    values = heat.check_matrix("counts", counts, labels)
    aside = of_shape("mismatches", mismatches, (len(values),))
    heat.check_counts("counts", values)
    heat.check_counts("mismatches", aside)
    if not aside.any():
        return plot_confusion_matrix(
            values, labels, positive=positive, of=of, caption=caption, title=title, ax=ax
        )
    totals = values.sum(axis=1) + aside
    counts = np.column_stack((values, aside))
    shares = heat.row_shares(counts, totals)
    size = len(values)
    cell = heat.cell_for(size + 1, ax)
    names = text.short_names(labels, 30)
    row_names = heat.with_totals(names, totals, cell)
    apart = size + heat.GAP
    page, ax = heat.matrix_sheet(size + 1 + heat.GAP, cell, ax)
    pale = heat.pale_rows(totals, labels, positive)

    texts = heat.cell_texts(counts, shares, cell)

    def cell_text(i: int, j: int) -> str:
        # The last row repeats the mismatches, and the column already shows their shares.
        if i == size:
            return digits.short_count(aside[j])
        return texts(i, j)

    drawn = np.vstack((shares, np.append(np.nan_to_num(shares[:, -1]), np.nan)))
    strength = heat.row_strength(pale)
    image = heat.draw_with_aside(ax, drawn, cell_text, cell, Normalize(0.0, 1.0), strength)
    empty = np.flatnonzero(totals <= 0)
    heat.hatch_rows(ax, empty, size)
    heat.hatch_rows(ax, empty, 1, start=apart)
    heat.frame_cells(ax, heat.diagonal(totals > 0), cell)
    if cell.holds_text:
        _write_no_samples(ax, empty, size)
    # Write all names, because a reduced matrix has few groups.
    last = ["intragroup\nmismatch"]
    heat.name_ticks(ax, names + last, row_names + last, cell, [*range(size), apart])
    if not cell.holds_two_lines:
        heat.colour_bar(ax, image, f"share of the actual {of}", heat.SHARES)
    heat.name_matrix_axes(ax, of, 1, title)
    caption_below(ax, [caption, *_MISMATCH_CAPTION, *heat.notes(names, few=int(pale.sum()), of=of)])
    return page.finish()


def plot_confusion_chart(
    counts: npt.ArrayLike,
    labels: Sequence[object],
    *,
    mismatches: npt.ArrayLike = 0,
    positive: object | None = None,
    run: str = "",
    value: str = "",
) -> Figure:
    """Draw a confusion matrix that can be read as a thumbnail of 256 pixels.

    The thumbnail shows row percentages and few words. The image has 512 pixels on each side, for
    screens with a high resolution. With more than 12 classes, only the colours are drawn. Raises
    ValueError if `counts` is not square or contains a negative or infinite number, or if the number
    of `labels` is not K.

    ``counts``, shape (K, K): numbers (or total weights) of rows of data, by actual and predicted
    class.
    ``labels``: the K class names.
    ``mismatches``, shape (K,): numbers (or total weights) of intragroup mismatches, by actual
        group. They are not drawn, but the percentages are shares of all rows of the group.
    ``positive``: the label of the positive class, whose row is never pale.
    ``run``: the beginning of the title, such as ``svm`` in ``svm · step 7 · accuracy 0.94``. The
        middle of a long name is elided.
    ``value``: the rest of the title, such as ``step 7 · accuracy 0.94``. This text is written on a
        second line if it does not fit into the first line.
    """
    _, totals, shares = _by_row(counts, labels, mismatches)
    size = len(totals)
    is_written = size <= _CHART_CLASSES
    title = text.brief(run, _CHART_COLUMNS)
    lines = [" · ".join(filter(None, (title, value)))]
    if text.columns(lines[0]) > _CHART_COLUMNS:
        lines = [title, value]
    left = _CHART_NAMES if is_written else _CHART_PAD
    above = 12.0 + 27.0 * len(lines)
    side = _CHART - _CHART_PAD - max(left, above)
    cell = heat.Cell(side / size * 72 / DPI)
    figure = new_figure((_CHART / DPI, _CHART / DPI))
    bottom = _CHART - above - side
    ax = figure.add_axes((left / _CHART, bottom / _CHART, side / _CHART, side / _CHART))
    ax.set_axis_off()  # a frame and names are less work than ticks
    look: dict[str, Any] = {"fill": False, "edgecolor": FRAME, "linewidth": 0.8, "clip_on": False}
    frame = Rectangle((0, 0), 1, 1, transform=ax.transAxes, **look)
    frame.set_zorder(2.5)
    ax.add_artist(frame)
    norm = heat.share_scale(is_written)[0]
    strength = heat.row_strength(heat.pale_rows(totals, labels, positive))
    image = heat.draw_image(ax, shares, hit_map(), norm, strength=strength)
    heat.hatch_rows(ax, np.flatnonzero(totals <= 0), size)
    if is_written:
        has_space = size <= _CHART_FEW
        sign = "%" if has_space else ""

        def percentage(i: int, j: int) -> str:
            share = shares[i, j]
            return "" if np.isnan(share) else f"{round(100 * share)}{sign}"

        heat.write_cells(ax, image, shares, percentage, min(26.0, 0.52 * cell.points))
        x = (left - 2 * DPI / 72) / _CHART
        font = min(9.5, 0.6 * cell.points)
        for row, label in enumerate(labels):
            y = 1 - (above + (row + 0.5) * side / size) / _CHART
            name = _chart_name(label) if has_space else text.brief(label, _CHART_NAME)
            figure.text(x, y, name, ha="right", va="center_baseline", fontsize=font, color=INK)
        for column, label in enumerate(labels if has_space else ()):
            x = (left + (column + 0.5) * side / size) / _CHART
            y = (bottom - 4) / _CHART
            name = _chart_name(label)
            figure.text(x, y, name, ha="center", va="top", fontsize=font, color=INK)
    heading: dict[str, Any] = {"fontsize": 11.5, "color": INK, "linespacing": 1.15}
    figure.text(0.5, 1 - 6 / _CHART, "\n".join(lines), ha="center", va="top", **heading)
    use_fallbacks(figure)
    return figure


def _chart_name(label: object) -> str:
    """Return the name of a class on two lines if that shows all of it, or else a short name."""
    lines = text.wrap(str(label), _CHART_NAME + 1).split("\n")
    if len(lines) <= 2 and all(text.columns(line) <= _CHART_NAME + 1 for line in lines):
        return "\n".join(map(text.brief, lines, [_CHART_NAME + 1] * len(lines)))
    return text.brief(label, _CHART_NAME)


def chart_words(step: str, metric: str, value: float) -> str:
    """Return the second part of a chart's title: the step and one metric, if they exist."""
    words = [step] if step else []
    if not math.isnan(value):
        words.append(f"{metric} {digits.fixed(value, 2)}")
    return " · ".join(words)


def _write_no_samples(ax: Axes, rows: npt.NDArray[np.intp], columns: int) -> None:
    box = {"facecolor": EMPTY, "edgecolor": "none", "pad": 1.5}
    look: dict[str, Any] = {"fontsize": SMALL_SIZE, "color": INK, "bbox": box, "zorder": 3}
    middle = (columns - 1) / 2
    for row in rows:
        ax.text(middle, float(row), "no rows", ha="center", va="center", **look)


def _by_row(
    counts: npt.ArrayLike, labels: Sequence[object], mismatches: npt.ArrayLike = 0
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Check the counts; return them, the totals with the mismatches, and the shares."""
    values = heat.check_matrix("counts", counts, labels)
    heat.check_counts("counts", values)
    totals = values.sum(axis=1) + np.asarray(mismatches, dtype=np.float64)
    return values, totals, heat.row_shares(values, totals)
