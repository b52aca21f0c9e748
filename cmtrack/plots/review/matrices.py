"""Confusion matrices of several runs side by side, and the difference between two matrices."""

from __future__ import annotations

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
    ramp,
    write_beside,
)

from ._layout import BoolArray, caption_under, left_out

# inches between matrices; a name above a matrix has room for three lines
_ACROSS = 0.22
_ABOVE = 0.6
_PAGE = 918.0  # points, the width of a page at 1440 pixels
_BESIDE = 140.0  # points for the names of axes, the gaps between matrices, and the colour bar


def plot_matrices(
    matrices: Sequence[tuple[object, npt.ArrayLike]],
    labels: Sequence[object],
    *,
    max_matrices: int = 6,
    title: str | None = None,
) -> Figure:
    """Draw confusion matrices side by side; colours show shares of the actual class.

    All matrices use the same colour scale. Cells show counts, and also shares if both fit. If
    matrices are too large for numbers, they are drawn as images on a square-root colour scale.
    Class names are written only on the left and at the bottom of the figure.

    ``matrices``: for each run, from best to worst, its name and an array of shape (K, K), which
        contains numbers (or total weights) of rows by actual and predicted class.
    ``labels``: the K class names in the order of the rows and columns.
    ``max_matrices``: largest number of matrices to draw.
    ``title``: title of the figure.
    """
    n = min(len(matrices), max_matrices)
    counts = [np.asarray(matrix, dtype=np.float64) for _, matrix in matrices[:n]]
    size = len(labels)
    names = text.short_names(labels, 30)
    row_names = _row_names(names, [values.sum(axis=1) for values in counts])
    cell = _cell(row_names)
    side = size * cell.points / 72
    wide = max(12, int(text.characters(72 * side, TEXT_SIZE)))
    titles = text.short_names([name for name, _ in matrices], min(44, int(2.2 * wide)))[:n]
    columns = {1: 1, 2: 2, 4: 2}.get(n, 3)
    figure, panels = inch_figure(_matrix_places(n, columns, side))
    totals = [values.sum(axis=1) for values in counts]
    is_written = cell.points >= 20 and _widest_count(counts) <= 0.95 * cell.points
    norm, ticks, scale = heat.share_scale(is_written)
    for i, (ax, values, total) in enumerate(zip(panels, counts, totals, strict=True)):
        is_left = i % columns == 0
        is_bottom = i + columns >= n
        shares = heat.row_shares(values, total)
        strength = heat.row_strength(heat.pale_rows(total))
        image = heat.draw_image(ax, shares, hit_map(), norm, strength=strength)
        heat.hatch_rows(ax, np.flatnonzero(total <= 0), size)
        heat.frame_cells(ax, heat.diagonal(total > 0), cell)
        if is_written:
            heat.write_cells(ax, image, shares, _cell_text(values, shares, cell), SMALL_SIZE)
        step = heat.name_ticks(ax, names, row_names, cell, range(size))
        ax.tick_params(labelleft=is_left, labelbottom=is_bottom)
        heat.name_matrix_axes(ax, "class", step, None)
        if not is_left:
            ax.set_ylabel("")
        if not is_bottom:
            ax.set_xlabel("")
        name = text.wrap(titles[i], wide)
        font = TEXT_SIZE if name.count("\n") < 2 else SMALL_SIZE
        ax.set_title(name, fontsize=font, color=INK, pad=5)
        if i == min(columns, n) - 1 and not cell.holds_two_lines:
            heat.colour_bar(ax, image, f"share of the actual class{scale}", ticks)
    n_empty = int((totals[0] <= 0).sum())
    n_few = int(heat.pale_rows(totals[0]).sum())
    lines = left_out(len(matrices), n, "matrices") + heat.notes(names, n_empty, n_few)
    last = panels[(n - 1) // columns * columns]  # the first panel of the last row
    width = columns * (side + _ACROSS) * 72
    caption_under(last, last.xaxis.label, lines, max(width, 200.0))
    if title is not None:
        _write_title(panels[0], title)
    return fit(figure)


def _row_names(names: Sequence[str], totals: Sequence[FloatArray]) -> Sequence[str]:
    """Return the row names, followed by the totals if all matrices have the same totals."""
    if not all(np.allclose(total, totals[0]) for total in totals):
        return names
    sizes = map(digits.short_count, totals[0])
    return [f"{name} (n={size})" for name, size in zip(names, sizes, strict=True)]


def _write_title(ax: Axes, title: str) -> None:
    """Write the title of the figure above the name of its first matrix."""
    n_lines = ax.get_title().count("\n") + 1
    above = (0, 12 + 14 * n_lines)
    write_beside(ax, title, (0, 1), above, "axes fraction", va="bottom", size=TITLE_SIZE)


def _matrix_places(n: int, columns: int, side: float) -> list[tuple[float, float, float, float]]:
    """Return left, bottom, width and height of each matrix in inches, starting with the top row."""
    last_row = (n - 1) // columns
    places = []
    for i in range(n):
        left = i % columns * (side + _ACROSS)
        bottom = (last_row - i // columns) * (side + _ABOVE)
        places.append((left, bottom, side, side))
    return places


def _widest_count(counts: Sequence[FloatArray]) -> float:
    """Return the width of the widest count in a matrix, in points."""
    values = np.concatenate([matrix.ravel() for matrix in counts])
    return max(text.text_width(digits.short_count(value), SMALL_SIZE) for value in values)


def _cell(row_names: Sequence[str]) -> heat.Cell:
    """Return the cell size, which is smaller than in a figure of a single matrix."""
    widest = max(text.text_width(name, SMALL_SIZE) for name in row_names)
    # Three matrices and their names must fit on a page without being scaled down.
    room = _PAGE - _BESIDE - widest
    return heat.Cell(min(56.0, max(3.5, room / 3 / len(row_names))))


def _cell_text(
    counts: FloatArray, shares: FloatArray, cell: heat.Cell
) -> Callable[[int, int], str]:
    def cell_text(i: int, j: int) -> str:
        if np.isnan(shares[i, j]):
            return ""
        words = digits.short_count(counts[i, j])
        if cell.holds_two_lines and counts[i, j] > 0:
            words += f"\n{digits.whole_percent(float(shares[i, j]))}"
        return words

    return cell_text


NOT_SIGNIFICANT = 0.2
"""Opacity of the colours of differences that are not significant."""


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
    """Draw the difference between two row-normalised matrices; blue is better, orange is worse.

    Only significant differences are drawn in full colours and with a triangle, which points up if
    the difference is an improvement. All other differences are pale. Classes with fewer than 20
    rows are even paler, because a single row changes their shares by many percentage points.

    A larger share is better on the diagonal (correct predictions) and worse off the diagonal
    (confusions). Therefore the colour does not depend only on the sign of the number: if there are
    fewer confusions, the number is negative and the cell is blue. With up to about 30 classes,
    cells show percentage points of the actual class. Larger matrices are drawn as an image on a
    square-root colour scale.

    ``difference``, shape (K, K): share of the actual class in `second` minus the share in `first`,
        in [-1, 1]; NaN for classes without data.
    ``labels``, sequence of length K: class names in the order of the rows and columns.
    ``first``, ``second``: names of the two runs.
    ``significant``, shape (K, K): mask of the cells whose difference is significant. These cells
        are framed and their numbers are bold. By default, all cells are drawn in full colours.
    ``counts``, shape (K, K): number of rows of data in `second` minus the number in `first`. The
        result is written below the percentage points if there is room.
    ``totals``, shape (K,): number of rows of data of each actual class, which is written next to
        the class name.
    ``title``, ``ax``: title of the axes, and axes to draw into; by default, a new figure is
        created, which is not registered with pyplot.
    """
    values = np.asarray(difference, dtype=np.float64)
    size = len(values)
    is_tested = significant is not None
    marked = np.zeros((size, size), dtype=bool) if significant is None else significant
    good = np.where(np.eye(size, dtype=bool), values, -values)
    cell = heat.cell_for(size, ax)
    page, ax = heat.matrix_sheet(size, cell, ax)
    names = text.short_names(labels, 30)
    sizes = np.full(size, np.inf) if totals is None else np.asarray(totals, dtype=np.float64)
    row_names = names if totals is None else heat.with_totals(names, sizes, cell)
    a, b = map(quoted, text.short_names([first, second], 40))

    top = _top_difference(values, marked, sizes, is_tested)
    strength = np.ones((size, size)) * heat.row_strength(heat.pale_rows(sizes))
    if is_tested:
        strength[~marked] *= NOT_SIGNIFICANT
    norm = _norm(top, linear=cell.holds_text)
    image = heat.draw_image(ax, good, difference_map(), norm, strength=strength)
    is_empty = np.asarray(np.isnan(values).all(axis=1))
    empty = np.flatnonzero(is_empty)
    heat.hatch_rows(ax, empty, size)
    heat.frame_cells(ax, heat.diagonal(~is_empty), cell, edge=FRAME)
    if cell.holds_text:
        font = float(np.clip(cell.points / 4.6, SMALL_SIZE, TEXT_SIZE))
        cell_text = _change_text(values, counts if cell.holds_two_lines else None)
        heat.write_cells(ax, image, good, cell_text, font, bold=marked)
        heat.frame_cells(ax, np.argwhere(marked)[:, ::-1].tolist(), cell)
    _mark(ax, marked & (good > 0), "^", "_better", cell)
    _mark(ax, marked & (good < 0), "v", "_worse", cell)
    step = heat.name_ticks(ax, names, row_names, cell, range(size))
    if not cell.holds_text:
        words = "← worse | percentage points on a square-root scale | better →"
        heat.colour_bar(ax, image, words, _bar_ticks(top))
    heat.name_matrix_axes(ax, "class", step, title)
    has_counts = counts is not None and cell.holds_two_lines
    lines = [
        f"{b} does better than {a} in blue cells (▲: more on the diagonal, less off it) and "
        "worse in orange cells (▼)."
    ]
    if cell.holds_text:
        below = " (in brackets: rows)" if has_counts else ""
        lines.append(f"Numbers are percentage points of the actual class{below}: {b} minus {a}.")
    if is_tested:
        lines.append(_explain_marks(marked, "bold number" if cell.holds_text else "triangle"))
    lines += heat.notes(names, empty.size, int(heat.pale_rows(sizes).sum()))
    caption_below(ax, lines)
    return page.finish()


def _explain_marks(marked: BoolArray, sign: str) -> str:
    """Return the sentence that explains marked cells."""
    n_marked = f"{int(marked.sum())} of {marked.size} cells"
    return (
        f"Cells with full colour and a {sign} differ significantly ({n_marked}); pale cells do not."
    )


def _top_difference(
    values: FloatArray, marked: BoolArray, sizes: FloatArray, is_tested: bool
) -> float:
    """Return the upper limit of the colour scale: the largest difference that is reliable.

    In classes with few rows, differences can be large by chance, which would make all other
    differences look pale.
    """
    least = 0.01
    if marked.any():
        values = values[marked]
    else:
        if is_tested:
            least = 0.05
        if (sizes >= heat.FEW).any():
            values = values[sizes >= heat.FEW]
    return float(np.nanmax(np.abs(values), initial=least))


def _mark(ax: Axes, cells: BoolArray, marker: str, label: str, cell: heat.Cell) -> None:
    """Mark better and worse cells with triangles, for readers who cannot see the colours."""
    rows, columns = np.nonzero(cells)
    if not rows.size:
        return
    aside = 0.0
    size = float(np.clip(0.4 * cell.points, 2, 5))
    if cell.holds_text:  # place it in a corner next to the number
        aside = 0.36
        size = float(np.clip(0.12 * cell.points, 3.0, 6.0))
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
    """Return the colour map from orange (worse) through white (no difference) to blue (better)."""
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
    def cell_text(i: int, j: int) -> str:
        if np.isnan(values[i, j]):
            return ""
        if values[i, j] == 0:
            return "0"
        points = 100 * values[i, j]
        decimals = 1 if abs(points) < 99.95 else 0
        words = digits.fixed(points, decimals, sign=True)
        if samples is None:
            return words
        change = digits.short_count(abs(samples[i, j]))
        if samples[i, j] < 0:
            change = f"−{change}"
        elif samples[i, j] > 0:
            change = f"+{change}"
        return f"{words}\n({change})"

    return cell_text


_BAR_STEPS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5)


def _bar_ticks(top: float) -> dict[float, str]:
    """Return the names of the colour bar's ticks, by value; at most four on each side of 0."""
    step = next(step for step in _BAR_STEPS if top / step <= 4.5)
    marks = [step * k for k in range(1, int(top / step + 1e-9) + 1)]
    names = {mark: digits.significant(mark, 3, 2) for mark in marks}
    return {-mark: name for mark, name in reversed(names.items())} | {0.0: "0"} | names
