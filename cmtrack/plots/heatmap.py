"""Parts that the matrix figures share: cell sizes, class ticks, cell texts, frames, hatches, colour bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from . import labels as text
from .style import EMPTY, FRAME, INK, MUTED, SMALL_SIZE, TEXT_SIZE, TINY_SIZE, FloatArray

Cells = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Cell:
    """The size of a matrix cell in points and what fits into it."""

    points: float

    @property
    def font(self) -> float:
        """Size of class names beside such cells."""
        return float(np.clip(0.8 * self.points, TINY_SIZE, TEXT_SIZE))

    @property
    def holds_two_lines(self) -> bool:
        """Room for a count and a share."""
        return self.points >= 40

    @property
    def holds_text(self) -> bool:
        """Room for a share."""
        return self.points >= 22


def cell_for(n_classes: int, ax: Axes | None) -> Cell:
    """The cell that `n_classes` classes get in the given axes, or in a figure made for them."""
    if ax is not None:
        box = ax.get_window_extent()
        return Cell(min(box.width, box.height) * 72 / root_dpi(ax) / n_classes)
    if n_classes <= 3:
        return Cell(92.0)
    if n_classes <= 12:
        return Cell(max(44.0, 300.0 / n_classes))
    if n_classes <= 30:
        return Cell(26.0)
    return Cell(float(np.clip(840.0 / n_classes, 5.0, 15.0)) if n_classes <= 200 else 1000.0 / n_classes)


def root_dpi(ax: Axes) -> float:
    """Dots per inch of the figure that holds `ax`."""
    return float(ax.figure.dpi) if ax.figure is not None else 72.0


def figure_size(n_classes: int, cell: Cell, names: Sequence[str], below: float = 0.5) -> tuple[float, float]:
    """Inches for the cells, the names on the left and below, the colour bar, and `below` more."""
    side = n_classes * cell.points / 72
    name = max(text.text_width(n, cell.font) for n in names) / 72
    slanted = name if cell.points < 22 else 0.75 * name
    return max(side + name + 1.5, 4.6), max(side + slanted + 1.0, 2.6) + below


def check_matrix(name: str, matrix: npt.ArrayLike, labels: Sequence[object]) -> FloatArray:
    """`matrix` as a (K, K) float64 array with one label per class; ValueError otherwise."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ValueError(f"{name} must have shape (n_classes, n_classes), got {values.shape}")
    if len(labels) != len(values):
        raise ValueError(f"labels must name the {len(values)} classes of {name}, got {len(labels)} labels")
    return values


def check_counts(name: str, counts: FloatArray) -> None:
    """ValueError unless all `counts` are finite and none is negative."""
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError(f"{name} must be finite and not negative, got minimum {counts.min()}")


def row_shares(counts: FloatArray, totals: FloatArray) -> FloatArray:
    """`counts` over the actual total of their row, NaN in rows without samples."""
    share = np.full(counts.shape, np.nan)
    np.divide(counts, totals[:, None], out=share, where=totals[:, None] > 0)
    return share


def draw_image(
    ax: Axes, values: FloatArray, cmap: Colormap, norm: Normalize, at: tuple[float, float] = (0.0, 0.0)
) -> AxesImage:
    """One cell per value, row 0 on top; `at` is the centre (x, y) of the first cell."""
    rows, columns = values.shape
    x, y = at[0] - 0.5, at[1] - 0.5
    return ax.imshow(
        np.ma.masked_invalid(values), cmap=cmap, norm=norm, interpolation="antialiased", origin="upper",
        aspect="equal", extent=(x, x + columns, y + rows, y),
    )  # fmt: skip


def write_cells(
    ax: Axes,
    image: AxesImage,
    values: FloatArray,
    texts: Callable[[int, int], str],
    size: float,
    at: tuple[float, float] = (0.0, 0.0),
) -> None:
    """Write a text into each cell of `image`, in the colour that reads best; empty texts are left out."""
    norm = np.ma.masked_invalid(values)
    colours = text.contrast(np.asarray(image.to_rgba(norm), dtype=np.float64).reshape(-1, 4))
    for (i, j), colour in zip(np.ndindex(values.shape), colours, strict=True):
        content = texts(i, j)
        if content:
            ax.text(
                at[0] + j, at[1] + i, content, ha="center", va="center", fontsize=size,
                color=MUTED if content == "0" else colour, linespacing=1.15,
            )  # fmt: skip


def name_ticks(
    ax: Axes, names: Sequence[str], row_names: Sequence[str], cell: Cell, positions: Sequence[float]
) -> int:
    """Name the columns and rows, rotated and thinned out as needed; returns the step between names."""
    size = cell.font
    step = text.tick_step(cell.points, size)
    shown = slice(None, None, step)
    widest = max(text.text_width(name, size) for name in names)
    lines = max(name.count("\n") + 1 for name in names)
    if widest <= 0.95 * cell.points:
        turn = {"rotation": 0.0, "ha": "center"}
    elif cell.points >= 22 and lines == 1:
        turn = {"rotation": 40.0, "ha": "right", "rotation_mode": "anchor"}
    else:
        turn = {"rotation": 90.0, "ha": "center"}
    ax.set_xticks(positions[shown], names[shown], fontsize=size, color=INK, **turn)
    ax.set_yticks(positions[shown], row_names[shown], fontsize=size, color=INK)
    ax.tick_params(length=3 if cell.points < 22 else 0)
    return step


def frame_cells(ax: Axes, cells: Cells, cell: Cell, *, face: str = "none", edge: str = INK) -> None:
    """One thin frame around each of the cells given by their centres (x, y)."""
    squares = [Rectangle((x - 0.5, y - 0.5), 1, 1) for x, y in cells]
    width = float(np.clip(cell.points / 28, 0.25, 1.3))
    ax.add_collection(
        PatchCollection(squares, facecolor=face, edgecolor=edge, linewidth=width, zorder=2.5), autolim=False
    )


def hatch_rows(ax: Axes, rows: npt.NDArray[np.intp], columns: int) -> None:
    """Grey hatching over the rows of classes without samples."""
    if rows.size:
        bars = [Rectangle((-0.5, float(row) - 0.5), columns, 1) for row in rows]
        ax.add_collection(
            PatchCollection(bars, facecolor=EMPTY, edgecolor=FRAME, linewidth=0.0, hatch="////", zorder=2.2),
            autolim=False,
        )


def colour_bar(ax: Axes, image: AxesImage, label: str, ticks: Sequence[float], names: Sequence[str]) -> None:
    """A colour bar as high as the matrix, whatever room the axes got."""
    width = 0.035
    place = ax.inset_axes((1.03, 0.0, width, 1.0))
    bar = ax.figure.colorbar(image, cax=place)
    bar.set_ticks(list(ticks), labels=list(names))
    bar.set_label(label, fontsize=SMALL_SIZE, color=INK)
    bar.outline.set(edgecolor=FRAME, linewidth=0.8)  # type: ignore[operator]
    place.tick_params(labelsize=SMALL_SIZE, labelcolor=INK, color=FRAME, length=3, width=0.8)
