"""Confusion matrices of several runs, side by side, and the difference of two."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, FuncNorm, Normalize
from matplotlib.figure import Figure

from cmtrack import digits
from cmtrack.names import quoted
from cmtrack.plots import _heatmap as heat
from cmtrack.plots import _text as text
from cmtrack.plots.style import (
    FRAME,
    INK,
    SMALL_SIZE,
    TEXT_SIZE,
    TITLE_SIZE,
    FloatArray,
    caption_below,
    fit,
    hit_map,
    inch_figure,
    name_axes,
    ramp,
    write_beside,
)

from ._layout import BoolArray, caption_under, left_out

# inches between matrices; above each row of them there is room for three lines of a name
_ACROSS = 0.22
_ABOVE = 0.6


def plot_matrices(
    matrices: Sequence[tuple[object, npt.ArrayLike]],
    labels: Sequence[object],
    *,
    max_matrices: int = 6,
    title: str | None = None,
) -> Figure:
    """Draw confusion matrices side by side on one colour scale, coloured by the share of the actual class.

    Cells hold counts, with shares where there is room, as long as both can be read; larger matrices are images on a
    square-root colour scale. The classes are named at the left and at the bottom only.

    ``matrices``, sequence of (name, array_like of shape (K, K)): name of a run and its samples or weights, rows actual,
        columns predicted; best first.
    ``labels``, sequence of length K: class names in the order of the rows and columns.
    ``max_matrices``: matrices that are drawn at most.
    ``title``: title of the figure.
    """
    n = min(len(matrices), max_matrices)
    counts = [np.asarray(matrix, dtype=np.float64) for _, matrix in matrices[:n]]
    size = len(labels)
    cell = _cell(size)
    side = size * cell.points / 72
    wide = max(12, int(text.characters(72 * side, TEXT_SIZE)))
    titles = text.short_names([name for name, _ in matrices], min(44, int(2.2 * wide)))[:n]
    columns = {1: 1, 2: 2, 4: 2}.get(n, 3)
    n_rows = math.ceil(n / columns)
    places = [
        (
            (i % columns) * (side + _ACROSS),
            (n_rows - 1 - i // columns) * (side + _ABOVE),
            side,
            side,
        )
        for i in range(n)
    ]
    figure, panels = inch_figure(places)
    names = text.short_names(labels, 30)
    totals = [values.sum(axis=1) for values in counts]
    alike = all(np.allclose(total, totals[0]) for total in totals)
    row_names = (
        [f"{k} (n={digits.short_count(t)})" for k, t in zip(names, totals[0], strict=True)]
        if alike
        else names
    )
    longest = max(
        text.text_width(digits.short_count(value), _font(cell))
        for values in counts
        for value in values.flat
    )
    write = cell.points >= 20 and longest <= 0.95 * cell.points
    norm, ticks, scale = heat.share_scale(write)
    step, last = 1, panels[0]
    for i, (ax, values, total) in enumerate(zip(panels, counts, totals, strict=True)):
        shares = heat.row_shares(values, total)
        image = heat.draw_image(
            ax, shares, hit_map(), norm, strength=heat.row_strength(heat.pale_rows(total))
        )
        heat.hatch_rows(ax, np.flatnonzero(total <= 0), size)
        heat.frame_cells(ax, [(k, k) for k in range(size) if total[k] > 0], cell)
        if write:
            heat.write_cells(ax, image, shares, _content(values, shares, cell), _font(cell))
        step = heat.name_ticks(ax, names, row_names, cell, range(size))
        ax.tick_params(labelleft=i % columns == 0, labelbottom=i + columns >= n)
        name = text.wrap(titles[i], wide)
        ax.set_title(
            name, fontsize=TEXT_SIZE if name.count("\n") < 2 else SMALL_SIZE, color=INK, pad=5
        )
        if i == min(columns, n) - 1:
            heat.colour_bar(ax, image, f"share of the actual class{scale}", ticks)
        across = "predicted class" + heat.thinned(step) if i + columns >= n else ""
        name_axes(ax, across, "actual class" + heat.thinned(step) if i % columns == 0 else "", None)
        last = ax if i % columns == 0 else last
    few = int(heat.pale_rows(totals[0]).sum())
    lines = left_out(len(matrices), n, "matrices") + heat.notes(
        names, int((totals[0] <= 0).sum()), few
    )
    width = columns * (side + _ACROSS) * 72
    caption_under(last, last.xaxis.label, lines, max(width, 200.0))
    if title is not None:
        pad = 12 + 14 * max(1, panels[0].get_title().count("\n") + 1)
        write_beside(
            panels[0], title, (0, 1), (0, pad), "axes fraction", va="bottom", size=TITLE_SIZE
        )
    return fit(figure)


def _cell(size: int) -> heat.Cell:
    """The cell size, smaller than for a single matrix."""
    if size <= 3:
        return heat.Cell(56.0)
    if size <= 12:
        return heat.Cell(max(27.0, 200.0 / size))
    return heat.Cell(max(3.5, 330.0 / size))


def _font(cell: heat.Cell) -> float:
    return float(np.clip(cell.points / 5.0, 6.5, 9.5))


def _content(counts: FloatArray, shares: FloatArray, cell: heat.Cell) -> Callable[[int, int], str]:
    def content(i: int, j: int) -> str:
        if np.isnan(shares[i, j]):
            return ""
        count = digits.short_count(counts[i, j])
        two = cell.holds_two_lines and counts[i, j] > 0
        return f"{count}\n{digits.whole_percent(float(shares[i, j]))}" if two else count

    return content


NOT_SIGNIFICANT = 0.2
"""Opacity of differences that may be chance."""


def plot_matrix_difference(
    difference: npt.ArrayLike,
    labels: Sequence[object],
    *,
    first: object,
    second: object,
    significant: BoolArray | None = None,
    counts: FloatArray | None = None,
    totals: npt.ArrayLike | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the difference of two row-normalised confusion matrices; blue is good for the second, orange bad.

    Only significant differences have full colours and a triangle, upwards for better; others are pale, paler still in
    rows of fewer than 20 samples, where one sample is many percentage points.

    Good is more on the diagonal (hits) and less off it (confusions), so the colour does not follow the sign of the
    number: fewer confusions are a negative number in a blue cell. Numbers are percentage points of the actual class,
    written up to about 30 classes; larger matrices are an image on a colour scale of square roots.

    ``difference``, shape (K, K): share of the actual class in `second` minus that in `first`, in [-1, 1]; NaN in rows
        without samples.
    ``labels``, sequence of length K: class names in the order of the rows and columns.
    ``first``, ``second``: names of the two runs.
    ``significant``, shape (K, K): cells whose difference is significant: framed, with a bold number. By default all are
        drawn in full colours.
    ``counts``, shape (K, K): samples of `second` minus those of `first`, written below the points where there is room.
    ``totals``, shape (K,): samples of each actual class, written beside its name.
    ``title``, ``ax``: of the axes; by default those of a new figure, which pyplot does not know.
    """
    values = np.asarray(difference, dtype=np.float64)
    size = len(values)
    marked = np.zeros((size, size), dtype=bool) if significant is None else significant
    good = np.where(np.eye(size, dtype=bool), values, -values)
    cell = heat.cell_for(size, ax)
    page, ax = heat.matrix_sheet(size, cell, ax)
    names = text.short_names(labels, 30)
    sizes = np.full(size, np.inf) if totals is None else np.asarray(totals, dtype=np.float64)
    row_names = names if totals is None else heat.with_totals(names, sizes, cell)
    a, b = map(quoted, text.short_names([first, second], 40))

    steady = values if (sizes < heat.FEW).all() else values[sizes >= heat.FEW]
    top = _top(
        values[marked] if marked.any() else steady,
        tested=significant is not None and not marked.any(),
    )
    strength = (
        np.where(marked, 1.0, NOT_SIGNIFICANT) if significant is not None else np.ones((size, size))
    )
    strength = strength * heat.row_strength(heat.pale_rows(sizes))
    image = heat.draw_image(
        ax, good, difference_map(), _norm(top, linear=cell.holds_text), strength=strength
    )
    empty = np.flatnonzero(np.isnan(values).all(axis=1))
    heat.hatch_rows(ax, empty, size)
    heat.frame_cells(ax, [(i, i) for i in range(size) if i not in empty], cell, edge=FRAME)
    if cell.holds_text:
        font = float(np.clip(cell.points / 4.6, 6.5, 10.0))
        content = _change_text(values, counts if cell.holds_two_lines else None)
        heat.write_cells(ax, image, good, content, font, bold=marked)
        heat.frame_cells(ax, np.argwhere(marked)[:, ::-1].tolist(), cell)
    for marker, label, cells in (
        ("^", "_better", marked & (good > 0)),
        ("v", "_worse", marked & (good < 0)),
    ):
        _mark(ax, cells, marker, label, cell)
    step = heat.name_ticks(ax, names, row_names, cell, range(size))
    scale = "" if cell.holds_text else " on a square-root scale"
    heat.colour_bar(ax, image, f"← worse | percentage points{scale} | better →", _bar_ticks(top))
    name_axes(
        ax, "predicted class" + heat.thinned(step), "actual class" + heat.thinned(step), title
    )
    caption_below(
        ax,
        _reading(a, b, cell, marked, significant is not None, counts is not None)
        + heat.notes(names, empty.size, int(heat.pale_rows(sizes).sum())),
    )
    return page.finish()


def _top(values: FloatArray, *, tested: bool) -> float:
    """Upper end of the colour scale: the largest difference, at least 5 % if no tested one is significant."""
    sizes = np.abs(values[~np.isnan(values)])
    return max(float(sizes.max()) if sizes.size else 0.0, 0.05 if tested else 0.01)


def _mark(ax: Axes, cells: BoolArray, marker: str, label: str, cell: heat.Cell) -> None:
    """Triangles that mark better and worse without colour: in a corner beside a number, else centred."""
    rows, columns = np.nonzero(cells)
    if not rows.size:
        return
    aside = 0.36 if cell.holds_text else 0.0
    size = (
        float(np.clip(0.12 * cell.points, 3.0, 6.0))
        if cell.holds_text
        else float(np.clip(0.4 * cell.points, 2, 5))
    )
    ax.plot(
        columns + aside,
        rows - aside,
        linestyle="none",
        marker=marker,
        markersize=size,
        color=INK,
        markeredgecolor="white",
        markeredgewidth=0.4,
        zorder=3.2,
        label=label,
    )


def difference_map() -> Colormap:
    """Orange (bad) over white (no difference) to blue (good)."""
    return ramp(
        "cmtrack_difference",
        "#b34e00",
        "#e07b2e",
        "#f8c9a0",
        "#ffffff",
        "#a8d0ec",
        "#3a94cc",
        "#0067a3",
    )


def _norm(top: float, *, linear: bool) -> Normalize:
    if linear:
        return Normalize(-top, top)
    roots = (lambda x: np.sign(x) * np.sqrt(np.abs(x)), lambda x: np.sign(x) * np.square(x))
    return FuncNorm(roots, -top, top)


def _change_text(values: FloatArray, samples: FloatArray | None) -> Callable[[int, int], str]:
    def content(i: int, j: int) -> str:
        if np.isnan(values[i, j]):
            return ""
        if values[i, j] == 0:
            return "0"
        points = 100 * values[i, j]
        shown = digits.fixed(points, 1 if abs(points) < 99.95 else 0, sign=True)
        if samples is None:
            return shown
        count = digits.short_count(abs(samples[i, j]))
        return f"{shown}\n({'−' if samples[i, j] < 0 else '+' if samples[i, j] > 0 else ''}{count})"

    return content


def _bar_ticks(top: float) -> dict[float, str]:
    step = next(s for s in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if top / s <= 4.5)
    marks = [step * k for k in range(1, int(top / step + 1e-9) + 1)]
    names = {mark: digits.significant(mark, 3, 2) for mark in marks}
    return {-mark: name for mark, name in reversed(names.items())} | {0.0: "0"} | names


def _reading(
    first: str, second: str, cell: heat.Cell, marked: BoolArray, tested: bool, counted: bool
) -> list[str]:
    lines = [
        f"Blue ▲: {second} does better than {first} here (more on the diagonal, less off it). Orange ▼: it does worse."
    ]
    if cell.holds_text:
        below = " (in brackets: samples)" if counted and cell.holds_two_lines else ""
        lines.append(
            f"Numbers: percentage points of the actual class{below}, {second} minus {first}."
        )
    if tested:
        sign = "bold number" if cell.holds_text else "triangle"
        cells = f"{int(marked.sum())} of {marked.size} cells"
        lines.append(
            f"Full colour, {sign}: significant difference ({cells}). Pale: not significant."
        )
    return lines
