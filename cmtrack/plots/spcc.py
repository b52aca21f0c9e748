"""The one-vs-one sPCC matrix, which is similar to an inverse confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from cmtrack import digits

from . import _heatmap as heat
from . import _text as text
from .style import (
    BLUE,
    DOTTED,
    FRAME,
    SMALL_SIZE,
    TEXT_SIZE,
    caption_below,
    name_axes,
    of_shape,
    open_axes,
    separation_map,
    sheet,
)

_TICKS = {-1.0: "−1", -0.5: "−0.5", 0.0: "0", 0.5: "0.5", 1.0: "1"}


def plot_spcc_matrix(
    matrix: npt.ArrayLike,
    labels: Sequence[object],
    *,
    samples: npt.ArrayLike | None = None,
    equal_shares: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the one-vs-one sPCC of all ordered pairs of classes; confused pairs are dark.

    The sPCC of a frequent and a rare class is low even if the score separates the two classes well.
    To compare pairs, pass the matrix at equal shares (:func:`cmtrack.metrics.spcc.spcc_ovo`).

    Entry (c, d) is computed from the rows of classes c and d. The entry is the correlation between
    "the actual class is c" and the score of class c. The entry is 1 if the score is constant within
    each class, 0 if both classes have the same mean score, and negative if the mean score of class
    d is higher. In general, the matrix is not symmetric. The diagonal is blank, and undefined
    entries are grey.

    Parameters
    ----------
    matrix : array_like of shape (K, K)
        Correlations in [-1, 1] or NaN. The diagonal is ignored.
    labels : sequence of length K
        Class names.
    samples : array_like of shape (K,), optional
        Number (or effective number) of rows of each class, which is written next to the class name.
        A pair is grey if one of its classes has fewer than 20 rows.
    equal_shares : bool, default False
        Whether the entries are computed at equal shares of both classes. The label of the colour
        bar says whether this is the case.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If `matrix` is not square or contains a number outside [-1, 1], or if the number of `labels`
        is not K.

    References
    ----------
    Gubbels (2023), "The sample Pearson Correlation Coefficient for classification models and
    identifying platform economy businesses from web-scraped data", which describes the one-vs-one
    matrix as "some sort of inverse confusion matrix".

    Examples
    --------
    >>> from cmtrack.plots import plot_spcc_matrix
    >>> figure = plot_spcc_matrix([[0, 0.9, 0.4], [0.8, 0, 0.7], [0.5, 0.6, 0]], ["a", "b", "c"])
    >>> figure.savefig("spcc.png")
    """
    values = heat.check_matrix("matrix", matrix, labels).copy()
    np.fill_diagonal(values, np.nan)
    there = values[np.isfinite(values)]
    if there.size and np.abs(there).max() > 1 + 1e-9:
        raise ValueError(f"matrix must be in [-1, 1], got {there[np.abs(there).argmax()]}")
    size = len(values)
    totals = np.full(size, np.inf) if samples is None else of_shape("samples", samples, (size,))
    few = (np.minimum(totals[:, None], totals) < heat.FEW) & np.isfinite(values)
    cell = heat.cell_for(size, ax)
    names = text.short_names(labels, 30)
    row_names = names if samples is None else heat.with_totals(names, totals, cell)
    page, ax = heat.matrix_sheet(size, cell, ax)
    image = heat.draw_image(
        ax, np.where(few, np.nan, values), separation_map(), Normalize(-1.0, 1.0)
    )
    heat.frame_cells(ax, [(i, i) for i in range(size)], cell, face="white", edge=FRAME)
    if cell.holds_text:
        font = TEXT_SIZE if cell.holds_two_lines else SMALL_SIZE
        drawn = np.where(few, np.nan, values)
        heat.write_cells(ax, image, drawn, lambda i, j: _entry(values[i, j], cell), font)
    step = heat.name_ticks(ax, names, row_names, cell, range(size))
    shares = " at equal shares of both classes" if equal_shares else ""
    heat.colour_bar(
        ax, image, f"one-vs-one sPCC{shares}: 1: constant within each class, 0: equal means", _TICKS
    )
    name_axes(
        ax,
        "against class" + heat.thinned(step),
        "class whose score is used" + heat.thinned(step),
        title,
    )
    undefined = np.isnan(values).sum() - size
    pairs = size * (size - 1)
    grey = []
    if undefined:
        grey.append(f"Grey pairs are undefined ({undefined} of {pairs} pairs).")
    if few.any():
        grey.append(
            f"Grey pairs contain a class with fewer than {heat.FEW} rows ({int(few.sum())} of "
            f"{pairs} pairs)."
        )
    caption_below(ax, grey + heat.notes(names))
    return page.finish()


class PairSeparation(NamedTuple):
    """A pair of classes, the one-vs-one sPCC of the first class's score, and its interval.

    If the interval is unknown, its limits are NaN.

    Examples
    --------
    >>> from cmtrack.plots import PairSeparation
    >>> PairSeparation("benign", "malignant", 0.4, 0.3, 0.5).value
    0.4
    """

    first: object
    second: object
    value: float
    low: float
    high: float


def plot_spcc_pairs(
    pairs: Sequence[PairSeparation],
    *,
    names: Sequence[object],
    n_pairs: int,
    level: float = 0.95,
    title: str | None = None,
) -> Figure:
    """Draw the one-vs-one sPCC, with intervals, of the least separated pairs of classes.

    Parameters
    ----------
    pairs : sequence of PairSeparation
        The pairs to draw, in ascending order of their sPCC.
    names : sequence
        The names of all classes, from which short distinct names are computed.
    n_pairs : int
        Number of pairs from which the shown pairs were chosen.
    level : float, default 0.95
        Confidence level of the intervals.
    title : str, optional

    Raises
    ------
    ValueError
        If `pairs` is empty.

    Examples
    --------
    >>> from cmtrack.plots import PairSeparation, plot_spcc_pairs
    >>> pairs = [PairSeparation("a", "b", 0.4, 0.3, 0.5), PairSeparation("c", "a", 0.6, 0.5, 0.7)]
    >>> plot_spcc_pairs(pairs, names="abc", n_pairs=3).savefig("pairs.png")
    """
    if not pairs:
        raise ValueError("pairs must contain at least one pair, got none")
    short = dict(zip(map(str, names), text.short_names(names, 24), strict=True))
    page, ax = sheet(None, (3.6, 0.26 * len(pairs) + 0.2))
    value, low, high = (
        np.array([getattr(pair, name) for pair in pairs]) for name in ("value", "low", "high")
    )
    y = np.arange(len(pairs))
    ax.hlines(y, low, high, color=BLUE, linewidth=1.6)
    ax.plot(
        value, y, linestyle="none", marker="o", markersize=5, color=BLUE, clip_on=False, zorder=3
    )
    ax.axvline(0.0, **DOTTED)
    open_axes(ax, "x")
    ax.set(
        xlim=(min(0.0, float(np.nanmin([*value, *low])) - 0.03), 1.0), ylim=(len(pairs) - 0.5, -0.5)
    )
    ax.set_yticks(
        y,
        [f"{short[str(one.first)]} / {short[str(one.second)]}" for one in pairs],
        fontsize=SMALL_SIZE,
    )
    words = "one-vs-one sPCC at equal shares\n(1: constant within each class, 0: equal means)"
    name_axes(ax, words, "", title)
    words = "Each point uses the score of the first class of the pair"
    if np.isfinite(low).any():
        words += f" and has a separate {digits.level(level)} interval"
    lines = [f"Shows {len(pairs)} of {n_pairs:,} pairs. {words}."]
    caption_below(ax, lines + text.numbered(list(short.values())))
    return page.finish()


def _entry(value: float, cell: heat.Cell) -> str:
    if np.isnan(value):
        return ""
    number = digits.fixed(value, 2)
    if cell.holds_two_lines:
        return number
    return number.replace("0.", ".", 1)
