"""Confusion matrices of several runs beside each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure

from cmtrack.plots import heatmap as heat
from cmtrack.plots import labels as text
from cmtrack.plots.style import INK, SMALL_SIZE, TEXT_SIZE, TITLE_SIZE, FloatArray, hit_map, name_axes

from . import checks
from .layout import caption_under, fit, inch_figure, left_out

_SHARES = {0.0: "0%", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "100%"}
_ROOTS = {0.0: "0%", 0.01: "1%", 0.05: "5%", 0.1: "10%", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "100%"}
_ACROSS = 0.22  # inches between matrices; above each row of them there is room for three lines of a name
_ABOVE = 0.6


def plot_matrices(
    matrices: Sequence[tuple[object, npt.ArrayLike]],
    labels: Sequence[object],
    *,
    max_matrices: int = 6,
    title: str | None = None,
) -> Figure:
    """Draw confusion matrices side by side on one colour scale, coloured by the share of the actual class.

    Cells hold counts, with shares where there is room, as long as both can be read; larger matrices are images
    on a square-root colour scale. The classes are named at the left and at the bottom only.

    Parameters
    ----------
    matrices : sequence of (name, array_like of shape (K, K))
        Name of a run and its samples or weights, rows actual, columns predicted; best first.
    labels : sequence of length K
        Class names in the order of the rows and columns.
    max_matrices : int, default 6
        Matrices that are drawn at most.
    title : str, optional
        Title of the figure.

    Returns
    -------
    matplotlib.figure.Figure
        A figure of up to three matrices in a row. It is not registered with pyplot.

    Raises
    ------
    ValueError
        If there is no matrix, or one of them is not of shape (K, K), is negative or not finite.
    """
    if not matrices:
        raise ValueError("matrices must hold at least one (name, counts), got none")
    checks.check_limit("max_matrices", max_matrices)
    counts = [heat.check_matrix(f"counts of {name!r}", matrix, labels) for name, matrix in matrices]
    for (name, _), values in zip(matrices, counts, strict=True):
        heat.check_counts(f"counts of {name!r}", values)
    n = min(len(counts), max_matrices)
    counts = counts[:n]
    size = len(labels)
    cell = _cell(size)
    side = size * cell.points / 72
    wide = max(12, int(text.characters(72 * side, TEXT_SIZE)))
    titles = text.short_names([name for name, _ in matrices], min(44, int(2.2 * wide)))[:n]
    columns = {1: 1, 2: 2, 4: 2}.get(n, 3)
    n_rows = math.ceil(n / columns)
    places = [
        ((i % columns) * (side + _ACROSS), (n_rows - 1 - i // columns) * (side + _ABOVE), side, side)
        for i in range(n)
    ]  # fmt: skip
    figure, panels = inch_figure(places)
    names = text.short_names(labels, 30)
    totals = [values.sum(axis=1) for values in counts]
    alike = all(np.allclose(total, totals[0]) for total in totals)
    row_names = [f"{k} (n={text.count_text(t)})" for k, t in zip(names, totals[0], strict=True)] if alike else names
    write = _writes(counts, cell)
    norm = Normalize(0.0, 1.0) if write else PowerNorm(0.5, 0.0, 1.0)
    step, last = 1, panels[0]
    for i, (ax, values, total) in enumerate(zip(panels, counts, totals, strict=True)):
        shares = heat.row_shares(values, total)
        image = heat.draw_image(ax, shares, hit_map(), norm, strength=heat.row_strength(total))
        heat.hatch_rows(ax, np.flatnonzero(total <= 0), size)
        heat.frame_cells(ax, [(k, k) for k in range(size) if total[k] > 0], cell)
        if write:
            heat.write_cells(ax, image, shares, _content(values, shares, cell), _font(cell))
        step = heat.name_ticks(ax, names, row_names, cell, range(size))
        ax.tick_params(labelleft=i % columns == 0, labelbottom=i + columns >= n)
        name = text.wrap(titles[i], wide)
        ax.set_title(name, fontsize=TEXT_SIZE if name.count("\n") < 2 else SMALL_SIZE, color=INK, pad=5)
        if i == min(columns, n) - 1:
            label = "share of the actual class"
            ticks = _SHARES if write else _ROOTS
            heat.colour_bar(ax, image, label if write else f"{label} (square-root colour scale)", ticks)
        thinned = "" if step == 1 else f" (every {text.ordinal(step)} is named)"
        across = "predicted class" + thinned if i + columns >= n else ""
        name_axes(ax, across, "actual class" + thinned if i % columns == 0 else "", None)
        last = ax if i % columns == 0 else last
    few = int(heat.few_samples(totals[0]).sum())
    lines = left_out(len(matrices), n, "matrices") + heat.notes(names, int((totals[0] <= 0).sum()), few)
    width = columns * (side + _ACROSS) * 72
    caption_under(last, last.xaxis.label, lines, max(width, 200.0))
    if title is not None:
        pad = 12 + 14 * max(1, panels[0].get_title().count("\n") + 1)
        panels[0].annotate(
            title, xy=(0, 1), xycoords="axes fraction", xytext=(0, pad), textcoords="offset points", ha="left",
            va="bottom", fontsize=TITLE_SIZE, color=INK, annotation_clip=False,
        )  # fmt: skip
    return fit(figure)


def _cell(size: int) -> heat.Cell:
    """Smaller cells than for one matrix alone."""
    if size <= 3:
        return heat.Cell(56.0)
    if size <= 12:
        return heat.Cell(max(27.0, 200.0 / size))
    return heat.Cell(max(3.5, 330.0 / size))


def _font(cell: heat.Cell) -> float:
    return float(np.clip(cell.points / 5.0, 6.5, 9.5))


def _writes(counts: Sequence[FloatArray], cell: heat.Cell) -> bool:
    """Whether the longest count fits into a cell."""
    longest = max(text.text_width(text.count_text(value), _font(cell)) for m in counts for value in m.flat)
    return cell.points >= 20 and longest <= 0.95 * cell.points


def _content(counts: FloatArray, shares: FloatArray, cell: heat.Cell) -> Callable[[int, int], str]:
    def content(i: int, j: int) -> str:
        if np.isnan(shares[i, j]):
            return ""
        count = text.count_text(counts[i, j])
        two = cell.holds_two_lines and counts[i, j] > 0
        return f"{count}\n{text.share_text(float(shares[i, j]))}" if two else count

    return content
