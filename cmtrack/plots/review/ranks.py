"""How probable each rank of each run is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure

from cmtrack.plots import heatmap as heat
from cmtrack.plots import labels as text
from cmtrack.plots.style import caption_below, hit_map, name_axes

from . import checks

_SHARES = {0.0: "0%", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "100%"}
_ROOTS = {0.0: "0%", 0.01: "1%", 0.05: "5%", 0.1: "10%", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "100%"}


def plot_rank_distribution(
    names: Sequence[object],
    probabilities: npt.ArrayLike,
    *,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the probability of each rank (columns, 1 is the best) of each run (rows, best on top).

    Up to about 30 runs a probability of at least 1% is written into its cell; more runs are an image on a
    square-root colour scale.

    Parameters
    ----------
    names : sequence of length R
        Names of the runs, best first.
    probabilities : array_like of shape (R, R)
        ``[run, rank - 1]``; each row adds up to 1.
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
        If shapes do not fit together or a row is no distribution.
    """
    n_runs = checks.check_names(names)
    shares = checks.check_numbers("probabilities", probabilities, (n_runs, n_runs))
    if not (np.isfinite(shares).all() and shares.min() >= 0):
        raise ValueError(f"probabilities must be finite and not negative, got minimum {shares.min()}")
    sums = shares.sum(axis=1)
    worst = int(np.abs(sums - 1).argmax())
    if abs(sums[worst] - 1) > 1e-6:
        raise ValueError(f"each row of probabilities must add up to 1, got {sums[worst]} in row {worst}")
    cell = heat.Cell(60.0) if n_runs <= 3 and ax is None else heat.cell_for(n_runs, ax)
    if ax is None and 3 < n_runs <= 30:
        cell = heat.Cell(min(40.0, max(26.0, 300.0 / n_runs)))
    page = heat.matrix_sheet(n_runs, cell, ax)
    ax = page.ax
    norm = Normalize(0.0, 1.0) if cell.holds_text else PowerNorm(0.5, 0.0, 1.0)
    image = heat.draw_image(ax, shares, hit_map(), norm)
    if cell.holds_text:
        font = float(np.clip(cell.points / 4.2, 6.5, 9.5))
        heat.write_cells(ax, image, shares, lambda i, j: _entry(float(shares[i, j])), font)
    size = cell.font
    row_step = text.tick_step(cell.points, size)
    rank_step = text.tick_step(cell.points, 1.6 * size)
    short = text.short_names(names, 40)
    ranks = [i for i in range(n_runs) if i == 0 or (i + (rank_step != 2)) % rank_step == 0]
    ax.set_xticks(ranks, [str(i + 1) for i in ranks], fontsize=size)
    ax.set_yticks(range(0, n_runs, row_step), short[::row_step], fontsize=size)
    ax.tick_params(length=0 if cell.holds_text else 3)
    if cell.holds_text:
        heat.colour_bar(ax, image, "probability", _SHARES)
    else:
        heat.colour_bar(ax, image, "probability of the rank (square-root colour scale)", _ROOTS)
    thinned = "" if row_step == 1 else f"run (every {text.ordinal(row_step)} is named)"
    name_axes(ax, "rank (1: best)", thinned, title)
    small = cell.holds_text and bool(((shares > 0) & (shares < 0.01)).any())
    caption_below(ax, ["Below 1%: no number."] * small + text.numbered(short))
    return page.finish()


def _entry(share: float) -> str:
    return text.share_text(share) if share >= 0.01 else ""
