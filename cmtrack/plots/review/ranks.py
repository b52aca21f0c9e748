"""A figure that shows the probability of each rank, estimated from resampled rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack import digits
from cmtrack.plots import _heatmap as heat
from cmtrack.plots import _text as text
from cmtrack.plots.style import (
    SMALL_SIZE,
    caption_below,
    hit_map,
    name_axes,
)


def plot_rank_distribution(
    names: Sequence[object],
    probabilities: npt.ArrayLike,
    *,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the probability of each rank (columns, from 1) for each run (rows, best at the top).

    With up to about 30 runs, the cells show all probabilities of at least 1%. With more runs, the
    figure is an image on a square-root colour scale.

    ``names``, sequence of length R: names of the runs, best first.
    ``probabilities``, shape (R, R): the probability of each rank, as ``[run, rank - 1]``; each row
        sums to 1.
    ``title``, ``ax``: title of the axes, and axes to draw into; by default, a new figure is
        created, which is not registered with pyplot.
    """
    n_runs = len(names)
    shares = np.asarray(probabilities, dtype=np.float64)
    cell = _cell_for(n_runs, ax)
    page, ax = heat.matrix_sheet(n_runs, cell, ax)
    norm, ticks, scale = heat.share_scale(cell.holds_text)
    image = heat.draw_image(ax, shares, hit_map(), norm)
    if cell.holds_text:
        heat.write_cells(ax, image, shares, lambda i, j: _entry(float(shares[i, j])), SMALL_SIZE)
    size = cell.font
    row_step = text.tick_step(cell.points, size)
    rank_step = text.tick_step(cell.points, 1.6 * size)
    short = text.short_names(names, 40)
    # Rank 1 and multiples of the step are labelled, such as 1, 5, 10. If the step is 2, odd ranks
    # are labelled.
    offset = 0 if rank_step == 2 else 1
    ranks = [i for i in range(n_runs) if i == 0 or (i + offset) % rank_step == 0]
    ax.set_xticks(ranks, [str(i + 1) for i in ranks], fontsize=size)
    ax.set_yticks(range(0, n_runs, row_step), short[::row_step], fontsize=size)
    ax.tick_params(length=0 if cell.holds_text else 3)
    label = f"probability of the rank{scale}" if scale else "probability"
    heat.colour_bar(ax, image, label, ticks)
    rows = "" if row_step == 1 else f"run{heat.thinned(row_step)}"
    name_axes(ax, "rank (1: best)", rows, title)
    lines = text.numbered(short)
    if cell.holds_text and ((shares > 0) & (shares < 0.01)).any():
        lines.insert(0, "Probabilities below 1% have no number.")
    caption_below(ax, lines)
    return page.finish()


def _cell_for(n_runs: int, ax: Axes | None) -> heat.Cell:
    """Return the cell size; in a new figure, cells are smaller than in a confusion matrix."""
    if ax is not None or n_runs > 30:
        return heat.cell_for(n_runs, ax)
    if n_runs <= 3:
        return heat.Cell(60.0)
    return heat.Cell(min(40.0, max(26.0, 300.0 / n_runs)))


def _entry(share: float) -> str:
    return digits.whole_percent(share) if share >= 0.01 else ""
