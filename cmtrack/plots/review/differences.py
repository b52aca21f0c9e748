"""Where one confusion matrix is better than another, and where it is worse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, FuncNorm, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from cmtrack.names import quoted
from cmtrack.plots import heatmap as heat
from cmtrack.plots import labels as text
from cmtrack.plots.style import EMPTY, FRAME, INK, FloatArray, caption_below, name_axes

from . import checks
from .layout import number

NOT_SIGNIFICANT = 0.2
"""Opacity of differences that may be chance."""


def plot_matrix_difference(
    difference: npt.ArrayLike,
    labels: Sequence[object],
    *,
    first: object,
    second: object,
    significant: npt.ArrayLike | None = None,
    counts: npt.ArrayLike | None = None,
    totals: npt.ArrayLike | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the difference of two row-normalised confusion matrices; blue is good for the second, orange bad.

    Only significant differences have full colours and a triangle, upwards for better; others are pale, paler still in
    rows of fewer than 20 samples, where one sample is many percentage points.

    Good is more on the diagonal (hits) and less off it (confusions), so the colour does not follow the sign of
    the number: fewer confusions are a negative number in a blue cell. Numbers are percentage points of the actual
    class, written up to about 30 classes; larger matrices are an image on a colour scale of square roots.

    Parameters
    ----------
    difference : array_like of shape (K, K)
        Share of the actual class in `second` minus that in `first`, in [-1, 1]; NaN in rows without samples.
    labels : sequence of length K
        Class names in the order of the rows and columns.
    first, second : object
        Names of the two runs.
    significant : array_like of bool of shape (K, K), optional
        Cells whose difference is significant: framed, with a bold number. By default all are drawn in full colours.
    counts : array_like of shape (K, K), optional
        Samples of `second` minus those of `first`, written below the points where there is room.
    totals : array_like of shape (K,), optional
        Samples of each actual class, written beside its name.
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
        If shapes do not fit together or a difference lies outside [-1, 1].
    """
    values = heat.check_matrix("difference", difference, labels)
    size = len(values)
    known = values[~np.isnan(values)]
    if known.size and np.abs(known).max() > 1 + 1e-9:
        raise ValueError(f"difference must be of shares, in [-1, 1], got {known[np.abs(known).argmax()]}")
    marked = np.zeros((size, size), dtype=bool)
    if significant is not None:
        marked = checks.check_flags("significant", significant, (size, size))
    samples = None if counts is None else checks.check_numbers("counts", counts, (size, size))
    good = np.where(np.eye(size, dtype=bool), values, -values)
    cell = heat.cell_for(size, ax)
    page = heat.matrix_sheet(size, cell, ax)
    ax = page.ax
    names = text.short_names(labels, 30)
    sizes = np.full(size, np.inf) if totals is None else checks.check_numbers("totals", totals, (size,))
    row_names = names
    if totals is not None:
        row_names = [heat.with_total(name, total, cell) for name, total in zip(names, sizes, strict=True)]
    a, b = map(quoted, text.short_names([first, second], 40))

    steady = values if (sizes < heat.FEW).all() else values[sizes >= heat.FEW]
    top = _top(values[marked] if marked.any() else steady, tested=significant is not None and not marked.any())
    strength = np.where(marked, 1.0, NOT_SIGNIFICANT) if significant is not None else np.ones((size, size))
    strength = strength * heat.row_strength(sizes)
    image = heat.draw_image(ax, good, difference_map(), _norm(top, linear=cell.holds_text), strength=strength)
    empty = np.flatnonzero(np.isnan(values).all(axis=1))
    heat.hatch_rows(ax, empty, size)
    heat.frame_cells(ax, [(i, i) for i in range(size) if i not in empty], cell, edge=FRAME)
    if cell.holds_text:
        font = float(np.clip(cell.points / 4.6, 6.5, 10.0))
        content = _content(values, samples if cell.holds_two_lines else None)
        heat.write_cells(ax, image, good, content, font, bold=marked)
        heat.frame_cells(ax, np.argwhere(marked)[:, ::-1].tolist(), cell)
    for marker, label, cells in (("^", "_better", marked & (good > 0)), ("v", "_worse", marked & (good < 0))):
        _mark(ax, cells, marker, label, cell)
    step = heat.name_ticks(ax, names, row_names, cell, range(size))
    heat.colour_bar(ax, image, _bar_label(cell), _bar_ticks(top))
    thinned = "" if step == 1 else f" (every {text.ordinal(step)} is named)"
    name_axes(ax, "predicted class" + thinned, "actual class" + thinned, title)
    caption_below(ax, _reading(a, b, cell, marked, significant is not None, samples is not None)
                  + heat.notes(names, empty.size, int(heat.few_samples(sizes).sum())))  # fmt: skip
    return page.finish()


def _top(values: FloatArray, *, tested: bool) -> float:
    """Where the colours end: at the largest difference, but where none of those tested is significant not below 5 %."""
    known = np.abs(values[~np.isnan(values)])
    return max(float(known.max()) if known.size else 0.0, 0.05 if tested else 0.01)


def _mark(ax: Axes, cells: checks.BoolArray, marker: str, label: str, cell: heat.Cell) -> None:
    """Triangles that say better or worse without colour: in a corner beside a number, else in the middle."""
    rows, columns = np.nonzero(cells)
    if not rows.size:
        return
    aside = 0.36 if cell.holds_text else 0.0
    size = float(np.clip(0.12 * cell.points, 3.0, 6.0)) if cell.holds_text else float(np.clip(0.4 * cell.points, 2, 5))
    ax.plot(
        columns + aside, rows - aside, linestyle="none", marker=marker, markersize=size, color=INK,
        markeredgecolor="white", markeredgewidth=0.4, zorder=3.2, label=label,
    )  # fmt: skip


def difference_map() -> Colormap:
    """Orange (bad) over white (no difference) to blue (good)."""
    ramp = ["#b34e00", "#e07b2e", "#f8c9a0", "#ffffff", "#a8d0ec", "#3a94cc", "#0067a3"]
    return LinearSegmentedColormap.from_list("cmtrack_difference", ramp, N=512).with_extremes(bad=EMPTY)


def _norm(top: float, *, linear: bool) -> Normalize:
    if linear:
        return Normalize(-top, top)

    def root(x: FloatArray) -> FloatArray:
        return np.sign(x) * np.sqrt(np.abs(x))

    def square(x: FloatArray) -> FloatArray:
        return np.sign(x) * np.square(x)

    return FuncNorm((root, square), -top, top)


def _content(values: FloatArray, samples: FloatArray | None) -> Callable[[int, int], str]:
    def content(i: int, j: int) -> str:
        if np.isnan(values[i, j]):
            return ""
        if values[i, j] == 0:
            return "0"
        points = 100 * values[i, j]
        shown = number(points, 1 if abs(points) < 99.95 else 0, sign=True)
        if samples is None:
            return shown
        count = text.count_text(abs(samples[i, j]))
        return f"{shown}\n({'−' if samples[i, j] < 0 else '+' if samples[i, j] > 0 else ''}{count})"

    return content


def _bar_ticks(top: float) -> dict[float, str]:
    step = next(s for s in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5) if top / s <= 4.5)
    marks = [step * k for k in range(1, int(top / step + 1e-9) + 1)]
    names = {mark: f"{100 * mark:.3g}" for mark in marks}
    return {-mark: name for mark, name in reversed(names.items())} | {0.0: "0"} | names


def _bar_label(cell: heat.Cell) -> str:
    scale = "" if cell.holds_text else " on a square-root scale"
    return f"← worse | percentage points{scale} | better →"


def _reading(
    first: str, second: str, cell: heat.Cell, marked: checks.BoolArray, tested: bool, counted: bool
) -> list[str]:
    lines = [
        f"Blue ▲: {second} does better than {first} here (more on the diagonal, less off it). Orange ▼: it does worse."
    ]
    if cell.holds_text:
        below = " (in brackets: samples)" if counted and cell.holds_two_lines else ""
        lines.append(f"Numbers: percentage points of the actual class{below}, {second} minus {first}.")
    if tested and cell.holds_text:
        lines.append(
            f"Full colour, bold number: significant difference ({int(marked.sum())} of {marked.size} cells). Pale: not "
            "significant."
        )
    elif tested:
        lines.append(
            f"Full colour, triangle: significant difference ({int(marked.sum())} of {marked.size} cells). Pale: not "
            "significant."
        )
    return lines
