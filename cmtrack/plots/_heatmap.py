"""Parts that all matrix figures share: cell sizes, ticks, texts, frames, hatches and colour bar."""

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
from cmtrack.names import quoted, without_common_words
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
    FloatArray,
    PlacedAxes,
    Sheet,
    extent_points,
    fold,
    hit_map,
    mismatch_map,
    name_axes,
    root_figure,
    sheet,
)
from .svg import MOST_CELLS, SvgRenderer

Cells = Sequence[tuple[float, float]]

GAP = 0.14
"""Gap between a matrix and its separate last column and row, in units of a cell."""
FEW = 20
"""Number of rows below which a class is pale, because a single row changes its shares a lot."""
PALE = 0.35
"""Opacity of the colours of a class that has few rows of data."""
DARK = 0.179
"""Luminance at which white and black text on a colour have the same contrast, 4.58 : 1."""
SHARES = {0.0: "0%", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "100%"}
"""Tick labels of a colour bar, by value."""
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
"""Tick labels of a colour bar on a square-root scale, by value."""


@dataclass(frozen=True)
class Cell:
    """The size of a matrix cell in points, and the texts that fit into it."""

    points: float

    @property
    def font(self) -> float:
        """Font size of the class names next to the cells."""
        return float(np.clip(0.8 * self.points, SMALL_SIZE, TEXT_SIZE))

    @property
    def text_font(self) -> float:
        """Font size of the texts in the cells."""
        return float(np.clip(self.points / 5.0, SMALL_SIZE, TEXT_SIZE + 1))

    @property
    def holds_two_lines(self) -> bool:
        """True if a count and a share fit into a cell."""
        return self.points >= 40

    @property
    def holds_text(self) -> bool:
        """True if a percentage without its sign fits into a cell."""
        return self.points >= 20


def cell_for(n_classes: int, ax: Axes | None) -> Cell:
    """Return the cell size that suits the number of classes, in given axes or a new figure."""
    if ax is not None:
        return Cell(min(extent_points(ax)) / n_classes)
    if n_classes <= 3:
        return Cell(92.0)
    if n_classes <= 12:
        return Cell(max(44.0, 300.0 / n_classes))
    if n_classes <= 30:
        return Cell(22.0)
    if n_classes <= 200:
        return Cell(float(np.clip(840.0 / n_classes, 5.0, 15.0)))
    return Cell(1000.0 / n_classes)


def matrix_sheet(n_cells: float, cell: Cell, ax: Axes | None) -> tuple[Sheet, Axes]:
    """Return a sheet and its axes, which have room for `n_cells` cells in each direction."""
    side = n_cells * cell.points / 72
    return sheet(ax, (side, side))


def notes(names: Sequence[str], empty: int = 0, few: int = 0, of: str = "class") -> list[str]:
    """Return the sentences that explain hatched rows, pale rows and numbered names."""
    lines = []
    if empty:
        lines.append(f"Hatched classes have no rows ({empty} of {len(names)} classes).")
    if few:
        nouns = "classes" if of == "class" else f"{of}s"
        lines.append(f"Paler lines: fewer than {FEW} rows of data ({few} of {len(names)} {nouns}).")
    return lines + text.numbered(names)


def pale_rows(
    totals: FloatArray, labels: Sequence[object] = (), positive: object | None = None
) -> npt.NDArray[np.bool_]:
    """Return a mask, shape (K,), of classes with few rows of data, except the positive class."""
    # Fractional weights do not show how many rows of data a class has.
    if not (totals == np.round(totals)).all():
        return np.zeros(totals.shape, dtype=np.bool_)
    few = (totals > 0) & (totals < FEW)
    if positive is None:
        return few
    return few & [label != positive for label in labels]


def row_strength(pale: npt.NDArray[np.bool_]) -> FloatArray:
    """Return the opacity of each row's colours, shape (K, 1)."""
    return np.where(pale, PALE, 1.0)[:, None]


_MANY = 12
"""Number of classes above which names are written without the words that all of them share."""


def name_classes(
    labels: Sequence[object], *, is_pooled: bool = False
) -> tuple[list[str], list[str]]:
    """Return short names of classes, and the sentences that explain them.

    ``is_pooled``: whether the last label combines other classes, so that it shares no words.
    """
    if len(labels) <= _MANY:
        return text.short_names(labels, 30), []
    own = labels[:-1] if is_pooled else labels
    bare, pattern = without_common_words(own)
    names = text.short_names([*bare, *labels[len(own) :]], 20)
    if not pattern:
        return names, []
    return names, [f"Names: {quoted(text.verbatim(pattern))}."]


def with_totals(names: Sequence[str], totals: FloatArray, cell: Cell) -> list[str]:
    """Append the number of rows of data to each class name."""
    labels = []
    for name, total in zip(names, totals, strict=True):
        is_two_lines = cell.points >= 30 and columns(name) > 14
        gap = "\n" if is_two_lines else " "
        labels.append(f"{name}{gap}(n={digits.short_count(total)})")
    return labels


def share_scale(linear: bool) -> tuple[Normalize, Mapping[float, str], str]:
    """Return the norm of shares, the ticks of the colour bar, and a suffix for its label.

    The scale is linear if the cells show numbers. Otherwise a square-root scale keeps small shares
    visible.
    """
    if linear:
        return Normalize(0.0, 1.0), SHARES, ""
    return PowerNorm(0.5, 0.0, 1.0), ROOTS, " (square-root colour scale)"


def thinned(step: int) -> str:
    """Return a suffix for an axis name that says how many names are written if some are skipped."""
    if step == 1:
        return ""
    return f" (every {text.ordinal(step)} is named)"


def name_matrix_axes(ax: Axes, kind: str, step: int, title: str | None) -> None:
    """Name the axes, and add a note if only every `step`-th row and column has a name."""
    suffix = thinned(step)
    name_axes(ax, f"predicted {kind}{suffix}", f"actual {kind}{suffix}", title)
    # The font of a page is not the font that measures names, and emoji are wider there than boxes.
    names = [name.get_text() for name in ax.get_yticklabels()]
    ax.yaxis.labelpad = 8 + 5 * max(map(text.count_emoji, names), default=0)


def diagonal(rows: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the centres of the diagonal cells in the selected rows."""
    return [(row, row) for row in np.flatnonzero(rows).tolist()]


def check_matrix(name: str, matrix: npt.ArrayLike, labels: Sequence[object]) -> FloatArray:
    """Convert a matrix to float64; raise ValueError unless its shape is (K, K) for K labels."""
    values = np.asarray(matrix, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1] or not values.size:
        raise ValueError(f"{name} must have shape (n_classes, n_classes), got {values.shape}")
    if len(labels) != len(values):
        raise ValueError(
            f"labels must name the {len(values)} classes of {name}, got {len(labels)} labels"
        )
    return values


def check_counts(name: str, counts: FloatArray) -> None:
    """Raise ValueError unless all `counts` are finite and not negative."""
    if not np.isfinite(counts).all() or (counts < 0).any():
        raise ValueError(f"{name} must be finite and not negative, got minimum {counts.min()}")


def cell_texts(counts: FloatArray, shares: FloatArray, cell: Cell) -> Callable[[int, int], str]:
    """Return a function that returns the text of a cell: its count and share, if they fit."""

    def cell_text(i: int, j: int) -> str:
        has_share = not np.isnan(shares[i, j])
        if counts[i, j] == 0:
            return "0" if has_share else ""
        count = digits.short_count(counts[i, j])
        if not has_share:
            return count
        share = digits.whole_percent(float(shares[i, j]))
        if cell.holds_two_lines:
            return f"{count}\n{share}"
        return share.removesuffix("%")  # small cells have no room for the sign

    return cell_text


def row_shares(counts: FloatArray, totals: FloatArray) -> FloatArray:
    """Divide counts by the actual total of their row; NaN for classes without data."""
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
    """Draw one cell for each value; row 0 is at the top.

    ``at``: the centre (x, y) of the top left cell.
    ``strength``: the opacity of the colours, an array that broadcasts to the shape of the values.
    """
    n_rows, n_columns = values.shape
    left = at[0] - 0.5
    top = at[1] - 0.5
    extent = (left, left + n_columns, top + n_rows, top)
    image = _Cells(
        ax, cmap=cmap, norm=norm, interpolation="antialiased", origin="upper", extent=extent
    )
    image.set_data(np.ma.masked_invalid(values))
    if strength is not None and bool((strength < 1).any()):
        image.set_alpha(np.broadcast_to(strength, values.shape).copy())
    ax.set_aspect(aspect)
    ax.add_image(image)
    image.set_clip_path(ax.patch)
    image.set_extent(extent)  # this also sets the limits of the axes
    return image


def name_cells(
    image: AxesImage, matrix: str, rows: Iterable[object], columns: Iterable[object]
) -> None:
    """Give short codes to the cells of a matrix, so that a page can turn cells into links."""
    if not isinstance(image, _Cells):
        raise TypeError(f"image must come from draw_image, got a {type(image).__name__}")
    image.cells = f"{matrix} {','.join(map(str, rows))} {','.join(map(str, columns))}"


class _Cells(AxesImage):
    """An image whose cells are drawn as vector graphics in SVG."""

    cells = ""

    def draw(self, renderer: RendererBase, *args: Any, **kwargs: Any) -> None:
        values = self.get_array()
        if isinstance(renderer, SvgRenderer) and values is not None and values.size <= MOST_CELLS:
            left, right, low, top = self.get_extent()
            corners = self.axes.transData.transform([(left, low), (right, top)])
            x, y, to_x, to_y = corners.ravel()
            renderer.draw_cells(_on_white(self, values), (x, y, to_x, to_y), self.cells)
            if renderer.raster is None:
                return
            renderer = renderer.raster
        super().draw(renderer, *args, **kwargs)


def _on_white(image: AxesImage, values: Any) -> FloatArray:
    """Return the colours of values as they appear on white, to choose readable text colours."""
    colours = np.asarray(image.to_rgba(values), dtype=np.float64)
    opacity = image.get_alpha()
    if opacity is None:
        return colours
    return 1 - np.asarray(opacity)[..., None] * (1 - colours)


def write_cells(
    ax: Axes,
    image: AxesImage,
    values: FloatArray,
    texts: Callable[[int, int], str],
    size: float,
    at: tuple[float, float] = (0.0, 0.0),
    bold: npt.NDArray[np.bool_] | None = None,
) -> None:
    """Write a text into each cell of `image`, in the colour that is easiest to read.

    ``bold``: mask of the cells whose text is bold; it has the shape of the values.
    """
    colours = contrast(_on_white(image, np.ma.masked_invalid(values)).reshape(-1, 4))
    cells = list(np.ndindex(values.shape))
    words = [texts(i, j) for i, j in cells]
    inks = [MUTED if word == "0" else colour for word, colour in zip(words, colours, strict=True)]
    places = np.array(cells)[:, ::-1] + np.asarray(at)
    if bold is None:
        bold = np.zeros(values.shape, dtype=np.bool_)
    ax.add_collection(Words(words, places, inks, size, bold.ravel().tolist(), ax), autolim=False)


def name_ticks(
    ax: Axes,
    names: Sequence[str],
    row_names: Sequence[str],
    cell: Cell,
    positions: Sequence[float],
    aside: str = "",
) -> int:
    """Label columns and rows, skipping names if needed; return the step between labels.

    ``aside``: the name of the last column and row if they are separate from the matrix. This name
        is always written.
    """
    size = cell.font
    step = text.tick_step(cell.points, size)
    room = 0.95 * cell.points
    column_names = [text.wrap(name, int(text.characters(room, size))) for name in names]
    turn: dict[str, Any] = {"rotation": 0.0, "ha": "center"}
    if max(text.text_width(name, size) for name in column_names) > room:
        column_names = [one_line(name) for name in names]
        turn = {"rotation": 90.0}
        if cell.holds_text:
            turn = {"rotation": 40.0, "ha": "right", "rotation_mode": "anchor"}
    places = list(positions[::step])
    columns_shown = list(column_names[::step])
    rows_shown = list(row_names[::step])
    if aside:
        places.append(len(names) + GAP)
        columns_shown.append(aside)
        rows_shown.append(aside)
    ax.set_xticks(places, columns_shown, fontsize=size, color=INK, **turn)
    ax.set_yticks(places, rows_shown, fontsize=size, color=INK)
    ax.tick_params(length=0 if cell.holds_text else 3)
    return step


def frame_cells(ax: Axes, cells: Cells, cell: Cell, *, face: str = "none", edge: str = INK) -> None:
    """Draw a thin frame around each of the cells at the given centres (x, y)."""
    if not cells:
        return
    width = float(np.clip(cell.points / 28, 0.25, 1.3))
    side = 1.0
    if face == "none":
        side -= width / cell.points  # the line must stay inside the cell
    squares = [Rectangle((x - side / 2, y - side / 2), side, side) for x, y in cells]
    ax.add_collection(
        PatchCollection(squares, facecolor=face, edgecolor=edge, linewidth=width, zorder=2.5),
        autolim=False,
    )


def hatch_rows(ax: Axes, rows: npt.NDArray[np.intp], columns: int, start: float = 0.0) -> None:
    """Hatch the rows of classes without data, from the column whose centre is `start`."""
    hatch(ax, [Rectangle((start - 0.5, float(row) - 0.5), columns, 1) for row in rows])


def hatch(ax: Axes, areas: Sequence[Rectangle]) -> None:
    """Draw grey hatching over rectangles."""
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
    """Add a colour bar as high as the matrix; `ticks` maps values to names."""
    across, high = extent_points(ax)
    width = min(0.035, 18.0 / across)
    bar_ax = ax.inset_axes((1 + width, 0.0, width, 1.0), axes_class=PlacedAxes)
    bar = root_figure(ax).colorbar(image, cax=bar_ax)
    bar.set_ticks(list(ticks), labels=list(ticks.values()))
    bar.set_label(fold(label, high), fontsize=SMALL_SIZE, color=INK)
    bar_ax.tick_params(labelsize=SMALL_SIZE, labelcolor=INK, color=FRAME, length=3, width=0.8)
    bar_ax.spines[:].set(color=FRAME, linewidth=0.8)


def contrast(rgba: FloatArray) -> list[str]:
    """Return the text colour, white or black, that is easiest to read on each of (N, 4) colours.

    The luminance of a colour is defined by WCAG 2.2: sRGB values are made linear and weighted.
    """
    rgb = rgba[:, :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.where(luminance < DARK, "white", "black").tolist()


def draw_with_aside(
    ax: Axes,
    shares: FloatArray,
    texts: Callable[[int, int], str],
    cell: Cell,
    norm: Normalize,
    strength: FloatArray | None = None,
) -> AxesImage:
    """Draw a matrix, and its separate last column and row in a different hue.

    The corner of the separate column and row is not drawn. Returns the image of the matrix itself.

    ``strength``, shape (K, 1): the opacity of each row, and of the cells in the separate row.
    """
    size = len(shares) - 1
    apart = size + GAP
    matrix = draw_image(ax, shares[:size, :size], hit_map(), norm, strength=strength)
    column = draw_image(ax, shares[:size, size:], mismatch_map(), norm, (apart, 0.0), strength)
    across = None if strength is None else strength.T
    row = draw_image(ax, shares[size:, :size], mismatch_map(), norm, (0.0, apart), across)
    if cell.holds_text:
        font = cell.text_font
        write_cells(ax, matrix, shares[:size, :size], texts, font)
        in_column = lambda i, j: texts(i, j + size)  # noqa: E731
        write_cells(ax, column, shares[:size, size:], in_column, font, (apart, 0.0))
        in_row = lambda i, j: texts(i + size, j)  # noqa: E731
        write_cells(ax, row, shares[size:, :size], in_row, font, (0.0, apart))
    look: dict[str, Any] = {"fill": False, "edgecolor": FRAME, "linewidth": 0.8, "clip_on": False}
    ax.add_patch(Rectangle((-0.5, -0.5), size, size, **look))
    ax.add_patch(Rectangle((apart - 0.5, -0.5), 1, size, **look))
    ax.add_patch(Rectangle((-0.5, apart - 0.5), size, 1, **look))
    ax.set(xlim=(-0.5, apart + 0.5), ylim=(apart + 0.5, -0.5))
    ax.spines[:].set_visible(False)
    return matrix
