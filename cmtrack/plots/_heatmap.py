"""Shared parts of the matrix figures: cell sizes, class ticks, cell texts, frames, hatches, colour bar."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import PatchCollection
from matplotlib.colors import Colormap, Normalize, PowerNorm
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from cmtrack import digits
from cmtrack.untrusted import one_line

from . import _text as text
from ._text import columns
from ._text_artist import Words
from .style import (
    EMPTY,
    FRAME,
    INK,
    MUTED,
    SMALL_SIZE,
    TEXT_SIZE,
    TINY_SIZE,
    FloatArray,
    PlacedAxes,
    Sheet,
    extent_points,
    fold,
    hit_map,
    mismatch_map,
    root_figure,
    sheet,
)
from .svg import MOST_CELLS, SvgRenderer

Cells = Sequence[tuple[float, float]]

GAP = 0.14
"""Between a matrix and what stands apart, in cells."""
FEW = 20
"""Samples below which a class's shares are drawn pale, as a single sample would look like a finding."""
PALE = 0.35
SHARES = {0.0: "0%", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "100%"}
"""Ticks of a colour bar."""
ROOTS = {
    0.0: "0%",
    0.01: "1%",
    0.05: "5%",
    0.1: "10%",
    0.25: "25%",
    0.5: "50%",
    0.75: "75%",
    1.0: "100%",
}
"""Ticks of a square-root colour bar."""


@dataclass(frozen=True)
class Cell:
    """The size of a matrix cell in points and what fits into it."""

    points: float

    @property
    def font(self) -> float:
        """Size of class names beside such cells."""
        return float(np.clip(0.8 * self.points, TINY_SIZE, TEXT_SIZE))

    @property
    def text_font(self) -> float:
        """Size of the texts in such cells."""
        return float(np.clip(self.points / 5.0, 6.5, TEXT_SIZE + 1))

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
        return Cell(min(extent_points(ax)) / n_classes)
    if n_classes <= 3:
        return Cell(92.0)
    if n_classes <= 12:
        return Cell(max(44.0, 300.0 / n_classes))
    if n_classes <= 30:
        return Cell(26.0)
    return Cell(
        float(np.clip(840.0 / n_classes, 5.0, 15.0)) if n_classes <= 200 else 1000.0 / n_classes
    )


def matrix_sheet(n_cells: float, cell: Cell, ax: Axes | None) -> tuple[Sheet, Axes]:
    """Axes for a square of `n_cells` cells on each side."""
    side = n_cells * cell.points / 72
    return sheet(ax, (side, side))


def notes(names: Sequence[str], empty: int = 0, few: int = 0) -> list[str]:
    """Explanations under the matrix: hatched rows, pale rows and numbered names."""
    lines = (
        [f"Hatched: no samples of this class ({empty} of {len(names)} classes)."] if empty else []
    )
    if few:
        lines.append(f"Pale rows: fewer than {FEW} samples ({few} of {len(names)} rows).")
    return lines + text.numbered(names)


def pale_rows(
    totals: FloatArray, labels: Sequence[object] = (), positive: object | None = None
) -> npt.NDArray[np.bool_]:
    """Rows with few samples, shape (K,); never the positive one, and never with fractional weights."""
    if not (totals == np.round(totals)).all():
        return np.zeros(totals.shape, dtype=np.bool_)
    few = (totals > 0) & (totals < FEW)
    return few & [label != positive for label in labels] if positive is not None else few


def row_strength(pale: npt.NDArray[np.bool_]) -> FloatArray:
    """Opacity of each row's colours, shape (K, 1)."""
    return np.where(pale, PALE, 1.0)[:, None]


def with_totals(names: Sequence[str], totals: FloatArray, cell: Cell) -> list[str]:
    """The names of rows with the numbers of their samples."""
    ends = ["\n" if columns(name) > 14 and cell.holds_text else " " for name in names]
    return [
        f"{k}{end}(n={digits.short_count(n)})"
        for k, end, n in zip(names, ends, totals, strict=True)
    ]


def share_scale(linear: bool) -> tuple[Normalize, Mapping[float, str], str]:
    """Norm of shares, ticks of its colour bar, and the end of its label: linear, or that of square roots."""
    if linear:
        return Normalize(0.0, 1.0), SHARES, ""
    return PowerNorm(0.5, 0.0, 1.0), ROOTS, " (square-root colour scale)"


def thinned(step: int) -> str:
    """The part of an axis name that says that names are thinned out."""
    return "" if step == 1 else f" (every {text.ordinal(step)} is named)"


def check_matrix(name: str, matrix: npt.ArrayLike, labels: Sequence[object]) -> FloatArray:
    """`matrix` as a (K, K) float64 array with one label per class; ValueError otherwise."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ValueError(f"{name} must have shape (n_classes, n_classes), got {values.shape}")
    if len(labels) != len(values):
        raise ValueError(
            f"labels must name the {len(values)} classes of {name}, got {len(labels)} labels"
        )
    return values


def check_counts(name: str, counts: FloatArray) -> None:
    """Validate that all `counts` are finite and not negative."""
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError(f"{name} must be finite and not negative, got minimum {counts.min()}")


def cell_texts(counts: FloatArray, shares: FloatArray, cell: Cell) -> Callable[[int, int], str]:
    """The count and the share of each cell, as far as there is room."""

    def content(i: int, j: int) -> str:
        if counts[i, j] == 0:
            return "" if np.isnan(shares[i, j]) else "0"
        if np.isnan(shares[i, j]):
            return digits.short_count(counts[i, j])
        share = digits.whole_percent(float(shares[i, j]))
        return f"{digits.short_count(counts[i, j])}\n{share}" if cell.holds_two_lines else share

    return content


def row_shares(counts: FloatArray, totals: FloatArray) -> FloatArray:
    """`counts` over the actual total of their row, NaN in rows without samples."""
    share = np.full(counts.shape, np.nan)
    np.divide(counts, totals[:, None], out=share, where=totals[:, None] > 0)
    return share


def draw_image(
    ax: Axes,
    values: FloatArray,
    cmap: Colormap,
    norm: Normalize,
    at: tuple[float, float] = (0.0, 0.0),
    strength: FloatArray | None = None,
    aspect: Literal["equal", "auto"] = "equal",
) -> AxesImage:
    """One cell per value, row 0 on top; `at` is the centre (x, y) of the first cell, `strength` the opacity."""
    rows, across = values.shape
    x, y = at[0] - 0.5, at[1] - 0.5
    image = _Cells(
        ax,
        cmap=cmap,
        norm=norm,
        interpolation="antialiased",
        origin="upper",
        extent=(x, x + across, y + rows, y),
    )
    image.set_data(np.ma.masked_invalid(values))
    if strength is not None and bool((strength < 1).any()):
        image.set_alpha(np.broadcast_to(strength, values.shape).copy())
    ax.set_aspect(aspect)
    ax.add_image(image)
    image.set_clip_path(ax.patch)
    image.set_extent(image.get_extent())  # and with it the limits of the axes
    return image


def name_cells(
    image: AxesImage, matrix: str, rows: Iterable[object], columns: Iterable[object]
) -> None:
    """Name the cells of a drawn matrix, so that a page can make links of them: rows and columns by short codes."""
    image.cells = f"{matrix} {','.join(map(str, rows))} {','.join(map(str, columns))}"  # type: ignore[attr-defined]


class _Cells(AxesImage):
    """An image that stays vector cells in SVG."""

    cells = ""

    def draw(self, renderer: RendererBase, *args: Any, **kwargs: Any) -> None:
        shown = self.get_array()
        if isinstance(renderer, SvgRenderer) and shown is not None and shown.size <= MOST_CELLS:
            left, right, low, top = self.get_extent()
            (x, y), (to_x, to_y) = self.axes.transData.transform([(left, low), (right, top)])
            renderer.draw_cells(_on_white(self, shown), (x, y, to_x, to_y), self.cells)
            if renderer.raster is None:
                return
            renderer = renderer.raster
        super().draw(renderer, *args, **kwargs)


def _on_white(image: AxesImage, values: Any) -> FloatArray:
    # as they are seen on white, which texts are chosen for
    colours, opacity = np.asarray(image.to_rgba(values), dtype=np.float64), image.get_alpha()
    return colours if opacity is None else 1 - np.asarray(opacity)[..., None] * (1 - colours)


def write_cells(
    ax: Axes,
    image: AxesImage,
    values: FloatArray,
    texts: Callable[[int, int], str],
    size: float,
    at: tuple[float, float] = (0.0, 0.0),
    bold: npt.NDArray[np.bool_] | None = None,
) -> None:
    """Write a text into each cell of `image`, in the colour that reads best, `bold` where that is true."""
    colours = contrast(_on_white(image, np.ma.masked_invalid(values)).reshape(-1, 4))
    words = [texts(i, j) for i, j in np.ndindex(values.shape)]
    inks = [MUTED if word == "0" else colour for word, colour in zip(words, colours, strict=True)]
    places = np.argwhere(np.ones(values.shape, dtype=np.bool_))[:, ::-1] + np.asarray(at)
    heavy = [False] * len(words) if bold is None else bold.ravel().tolist()
    ax.add_collection(Words(words, places, inks, size, heavy, ax), autolim=False)


def name_ticks(
    ax: Axes,
    names: Sequence[str],
    row_names: Sequence[str],
    cell: Cell,
    positions: Sequence[float],
    aside: str = "",
) -> int:
    """Label columns and rows, rotated and thinned out as needed; returns the step between labels.

    ``aside``: the name of a last column and row that stand apart; it is never left out.
    """
    size = cell.font
    step = text.tick_step(cell.points, size)
    shown = slice(None, None, step)
    named = [text.wrap(name, int(text.characters(0.95 * cell.points, size))) for name in names]
    turn: dict[str, Any]
    if max(text.text_width(name, size) for name in named) <= 0.95 * cell.points:
        turn = {"rotation": 0.0, "ha": "center"}
    else:
        named = [one_line(name) for name in names]
        slanted = cell.points >= 22
        turn = (
            {"rotation": 40.0, "ha": "right", "rotation_mode": "anchor"}
            if slanted
            else {"rotation": 90.0}
        )
    last = [aside] if aside else []
    places = [*positions[shown], *(len(names) + GAP for _ in last)]
    ax.set_xticks(places, [*named[shown], *last], fontsize=size, color=INK, **turn)
    ax.set_yticks(places, [*row_names[shown], *last], fontsize=size, color=INK)
    ax.tick_params(length=3 if cell.points < 22 else 0)
    return step


def frame_cells(ax: Axes, cells: Cells, cell: Cell, *, face: str = "none", edge: str = INK) -> None:
    """Draw a thin frame around each of the cells at the given centres (x, y)."""
    if not cells:
        return
    width = float(np.clip(cell.points / 28, 0.25, 1.3))
    inset = 0.5 * width / cell.points if face == "none" else 0.0
    side = 1 - 2 * inset
    squares = [Rectangle((x - side / 2, y - side / 2), side, side) for x, y in cells]
    ax.add_collection(
        PatchCollection(squares, facecolor=face, edgecolor=edge, linewidth=width, zorder=2.5),
        autolim=False,
    )


def hatch_rows(ax: Axes, rows: npt.NDArray[np.intp], columns: int, start: float = 0.0) -> None:
    """Grey hatching over the rows of classes without samples, from the column centred at `start`."""
    hatch(ax, [Rectangle((start - 0.5, float(row) - 0.5), columns, 1) for row in rows])


def hatch(ax: Axes, areas: Sequence[Rectangle]) -> None:
    """Grey hatching over some areas."""
    look: dict[str, Any] = {
        "facecolor": EMPTY,
        "edgecolor": FRAME,
        "linewidth": 0.0,
        "hatch": "////",
        "zorder": 2.2,
    }
    if areas:
        ax.add_collection(PatchCollection(areas, **look), autolim=False)


def colour_bar(ax: Axes, image: AxesImage, label: str, ticks: Mapping[float, str]) -> None:
    """A colour bar as high as the matrix, whatever room the axes got; `ticks` maps values to names."""
    across, high = extent_points(ax)
    width = min(0.035, 18.0 / across)
    place = ax.inset_axes((1 + width, 0.0, width, 1.0), axes_class=PlacedAxes)
    bar = root_figure(ax).colorbar(image, cax=place)
    bar.set_ticks(list(ticks), labels=list(ticks.values()))
    bar.set_label(fold(label, high), fontsize=SMALL_SIZE, color=INK)
    place.tick_params(labelsize=SMALL_SIZE, labelcolor=INK, color=FRAME, length=3, width=0.8)
    place.spines[:].set(color=FRAME, linewidth=0.8)


def contrast(rgba: FloatArray) -> list[str]:
    """The text colour, white or ink, that reads best on each of the (N, 4) background colours."""
    linear = np.where(
        rgba[:, :3] <= 0.04045, rgba[:, :3] / 12.92, ((rgba[:, :3] + 0.055) / 1.055) ** 2.4
    )
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return ["white" if light < 0.24 else INK for light in luminance]


def draw_with_aside(
    ax: Axes,
    shares: FloatArray,
    texts: Callable[[int, int], str],
    cell: Cell,
    norm: Normalize,
    strength: FloatArray | None = None,
) -> AxesImage:
    """Draw a matrix whose last column and row stand apart in another hue, without their corner.

    ``strength``, shape (K, 1): opacity of the rows, and of the places in the last one.
    The result: the image of the part in front.
    """
    size = len(shares) - 1
    images = []
    for row, column in ((0, 0), (0, size), (size, 0)):
        part = shares[row : row + 1 if row else size, column : column + 1 if column else size]
        at = (column and column + GAP, row and row + GAP)
        opacity = strength.T if strength is not None and row else strength
        images.append(
            draw_image(ax, part, mismatch_map() if row or column else hit_map(), norm, at, opacity)
        )
        if cell.holds_text:
            content = lambda i, j, row=row, column=column: texts(i + row, j + column)  # noqa: E731
            write_cells(ax, images[-1], part, content, cell.text_font, at)
        high, across = part.shape
        corner = (at[0] - 0.5, at[1] - 0.5)
        ax.add_patch(
            Rectangle(
                corner, across, high, fill=False, edgecolor=FRAME, linewidth=0.8, clip_on=False
            )
        )
    ax.set(xlim=(-0.5, size + GAP + 0.5), ylim=(size + GAP + 0.5, -0.5))
    ax.spines[:].set_visible(False)
    return images[0]
