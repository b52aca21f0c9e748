"""The one-vs-one sPCC matrix: an inverse confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from . import heatmap as heat
from . import labels as text
from .style import FRAME, caption_below, name_axes, separation_map

_TICKS = {-1.0: "−1", -0.5: "−0.5", 0.0: "0", 0.5: "0.5", 1.0: "1"}


def plot_spcc_matrix(
    matrix: npt.ArrayLike,
    labels: Sequence[object],
    *,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the one-vs-one sPCC of all ordered pairs of classes; dark cells are the pairs that get confused.

    Entry (c, d) is the correlation of "the actual class is c" with the score of class c over the samples of
    c and d: 1 where the score separates the two, 0 where it does not, negative where it points the wrong way.
    The matrix is in general not symmetric. The diagonal is blank; undefined entries are grey.

    Parameters
    ----------
    matrix : array_like of shape (K, K)
        Entries in [-1, 1] or NaN; the diagonal is not read.
    labels : sequence of length K
        Class names.
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
        If `matrix` is not square, has an entry outside [-1, 1], or if `labels` has another length.

    References
    ----------
    Gubbels (2023), "The sample Pearson Correlation Coefficient for classification models and identifying
    platform economy businesses from web-scraped data": the one-vs-one matrix as "some sort of inverse
    confusion matrix".
    """
    values = heat.check_matrix("matrix", matrix, labels).copy()
    np.fill_diagonal(values, np.nan)
    known = values[np.isfinite(values)]
    if known.size and np.abs(known).max() > 1 + 1e-9:
        raise ValueError(f"matrix must lie in [-1, 1], got {known[np.abs(known).argmax()]}")
    size = len(values)
    cell = heat.cell_for(size, ax)
    names = text.short_names(labels, 30)
    sheet = heat.matrix_sheet(size, cell, ax)
    ax = sheet.ax
    image = heat.draw_image(ax, values, separation_map(), Normalize(-1.0, 1.0))
    heat.frame_cells(ax, [(i, i) for i in range(size)], cell, face="white", edge=FRAME)
    if cell.holds_text:
        font = 9.5 if cell.holds_two_lines else 7.0
        heat.write_cells(ax, image, values, lambda i, j: _entry(values[i, j], cell), font)
    step = heat.name_ticks(ax, names, names, cell, range(size))
    heat.colour_bar(ax, image, "one-vs-one sPCC: 1 separated, 0 confused, below 0 reversed", _TICKS)
    thinned = "" if step == 1 else f" (every {text.ordinal(step)} is named)"
    name_axes(ax, "against class" + thinned, "class whose score is judged" + thinned, title)
    undefined = np.isnan(values).sum() - size
    grey = [f"Grey: undefined ({undefined} of {size * (size - 1)} pairs)."] if undefined else []
    caption_below(ax, grey + heat.notes(names))
    return sheet.finish()


def _entry(value: float, cell: heat.Cell) -> str:
    if np.isnan(value):
        return ""
    shown = f"{round(value, 2) + 0.0:.2f}".replace("-", "−")  # adding 0.0 keeps "−0.00" away
    return shown if cell.holds_two_lines else shown.replace("0.", ".", 1)
