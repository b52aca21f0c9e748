"""The style of all figures, given explicitly so that no global matplotlib state is read or written.

Not even ``matplotlib.rc_context`` is used: it swaps the process-wide parameters for a moment, which two
threads drawing at once can leave changed.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis, YAxis
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.legend import Legend
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter
from matplotlib.transforms import ScaledTranslation
from PIL import Image, ImageChops

from cmtrack.names import elide, join_names
from cmtrack.untrusted import one_line

from ._text import boxed, columns, drawable, families_for, use_fallbacks

FloatArray = npt.NDArray[np.float64]

DPI = 130
NOTEBOOK_DPI = 90
_COMPRESSION = 1
"""Of PNG files: plain areas and straight lines are small at any."""
PAD = 0.1  # inches around a figure
TITLE_SIZE = 12.0
TEXT_SIZE = 9.5
SMALL_SIZE = 8.0
TINY_SIZE = 6.5

# Okabe and Ito's colours: told apart with any common colour vision.
INK = "#222222"
MUTED = "#6b6b6b"
FRAME = "#9a9a9a"
GRID = "#e3e3e3"
EMPTY = "#dedede"
BAND = "#e4eff7"  # behind rows that belong together
BLUE = "#0072B2"
ORANGE = "#D55E00"
SKY = "#56B4E9"
GREEN = "#009E73"
PINK = "#CC79A7"
YELLOW = "#E69F00"

RUN = "run-"
"""Begins the id (``gid``) of an artist that shows one run; the run's place, from 0 on, ends it."""


def ramp(name: str, *colours: str) -> Colormap:
    """A map that runs over the colours; grey where there is no value."""
    return LinearSegmentedColormap.from_list(name, list(colours), N=512).with_extremes(bad=EMPTY)


def hit_map() -> Colormap:
    """White to dark blue: shares of an actual class."""
    return ramp("cmtrack_share", "#ffffff", "#d3e6f3", "#7fb8da", "#2b7bba", "#0b3c6b")


def mismatch_map() -> Colormap:
    """White to dark orange: shares of intragroup mismatches."""
    return ramp("cmtrack_mismatch", "#ffffff", "#fde3c8", "#f6a860", "#d55e00", "#7f3300")


def separation_map() -> Colormap:
    """Near-black (-1) over red (0) to near-white (1), lightness always rising: trouble is dark."""
    return ramp(
        "cmtrack_separation", "#1b0a2a", "#5a0f4d", "#b3123f", "#ee7b32", "#fbd48a", "#fdfaf0"
    )


@dataclass(frozen=True)
class Sheet:
    """Axes to draw into and the figure that holds them; `own` if the figure was made for them."""

    figure: Figure
    ax: Axes
    own: bool

    def finish(self) -> Figure:
        """Resize an own figure to the axes and the texts around them."""
        if self.own:
            return fit(self.figure)
        use_fallbacks(self.ax)
        return self.figure


def sheet(ax: Axes | None, size: tuple[float, float]) -> tuple[Sheet, Axes]:
    """The given axes, or new ones of `size` inches in a figure of their own without pyplot, and their sheet."""
    if ax is None:
        figure, (ax,) = inch_figure([(0.0, 0.0, *size)])
        return Sheet(figure, ax, own=True), ax
    plain_axes(ax)
    return Sheet(root_figure(ax), ax, own=False), ax


def curve_sheet(ax: Axes | None, size: tuple[float, float]) -> tuple[Sheet, Axes]:
    """A sheet for curves, and its axes."""
    page, ax = sheet(ax, size)
    open_axes(ax)
    return page, ax


def of_shape(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """The values as float64; ValueError if they have another shape."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def of_one_shape(least: int = 1, /, **arrays: npt.ArrayLike) -> list[FloatArray]:
    """The arrays as float64, one-dimensional and of one length; ValueError otherwise."""
    values = [np.asarray(array, dtype=np.float64) for array in arrays.values()]
    if (
        values[0].ndim != 1
        or len(values[0]) < least
        or any(array.shape != values[0].shape for array in values)
    ):
        names = join_names([*arrays], len(arrays))
        got = join_names([str(array.shape) for array in values], len(arrays))
        raise ValueError(f"{names} must have one shape (n_points,), got {got}")
    return values


def extent_points(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes in points, estimated if a layout engine will shrink them."""
    figure = root_figure(ax)
    box = ax.get_window_extent()
    scale = 72.0 / figure.dpi * (1.0 if figure.get_layout_engine() is None else 0.6)
    return float(box.width * scale), float(box.height * scale)


def fold(text: str, points: float, size: float = SMALL_SIZE) -> str:
    """Break a sentence of font `size` into lines of about `points`."""
    width = points / (0.52 * size) * len(text) / max(1.0, columns(text))
    return "\n".join(textwrap.wrap(text, max(24, int(width))))


def as_png(figure: Figure, dpi: float = DPI) -> bytes:
    """The figure's PNG file."""
    if dpi == figure.dpi:
        raster = raster_of(figure, *figure.bbox.size)
        figure.draw(raster)
        return png_file(raster.buffer_rgba(), dpi)
    # letters are not equally wide at any resolution, so that names could be cut off
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, bbox_inches="tight", pad_inches=PAD)
    return buffer.getvalue()


def png_file(
    pixels: Any, dpi: float = DPI, compression: int = _COMPRESSION, signature: str = ""
) -> bytes:
    """An image of shape (rows, columns, 3 or 4), row 0 on top, as a PNG file.

    ``signature``: what an opaque figure is of, on one line in small grey type below it; it is cut in its middle to the
        figure's width.
    """
    shown = np.asarray(pixels)
    if shown.shape[2] == 4 and (shown[..., 3] == 255).all():
        shown = np.asarray(Image.fromarray(shown).convert("RGB"))  # quicker than a slice
    if signature:
        line = np.asarray(_strip(one_line(signature), shown.shape[1]))
        left, (high, across) = round(PAD * DPI), line.shape[:2]
        below = np.full((high, shown.shape[1], 3), 255, dtype=np.uint8)
        below[:, left : left + across] = line
        shown = np.concatenate((shown, below))
    encoded = io.BytesIO()
    Image.fromarray(shown).save(encoded, "PNG", dpi=(dpi, dpi), compress_level=compression)
    return encoded.getvalue()


@lru_cache(maxsize=8)
def _line(words: str) -> Image.Image:
    """A line of small grey text on white, cropped to its width."""
    font = FontProperties(size=TINY_SIZE)
    font.set_family(families_for(words, font.get_family()))
    height = 1.8 * TINY_SIZE / 72 * DPI
    raster: Any = Raster(columns(words) * TINY_SIZE / 72 * DPI + DPI, height, DPI)  # type: ignore[no-untyped-call]
    high, below = raster.get_text_width_height_descent(words, font, False)[1:]
    tall, deep = raster.get_text_width_height_descent("lp", font, False)[1:]
    middle = (max(high - below, tall - deep) - max(below, deep)) / 2
    pixels = np.asarray(raster.buffer_rgba())
    pixels[:] = 255
    ink = raster.new_gc()
    ink.set_foreground(MUTED)
    raster.draw_text(ink, 0.0, 0.6 * height + middle, words, font, 0.0)
    drawn = Image.fromarray(pixels).convert("RGB")
    inked = ImageChops.invert(drawn).getbbox() or (0, 0, 1, 1)
    return drawn.crop((0, 0, inked[2], drawn.height))


def _strip(words: str, width: int) -> Image.Image:
    """Caption strip of a given width in pixels; elided in the middle."""
    room = max(width - 2 * round(PAD * DPI), 1)
    wide = _MEASURE.get_text_width_height_descent(words, FontProperties(size=TINY_SIZE), False)[0]
    line = _line(words if wide <= room else elide(words, max(1, int(len(words) * room / wide) - 1)))
    return line.crop((0, 0, min(line.width, room), line.height))


_sizes: dict[tuple[Any, ...], tuple[float, float, float]] = {}
_MOST_SIZES = 20_000


class Raster(RendererAgg):
    """A renderer of images, with boxes for characters that no font has.

    It measures each text once in a process: figures of a kind have most of theirs alike.
    """

    def draw_text(self, gc: Any, x: float, y: float, s: str, *args: Any, **kwargs: Any) -> None:
        """Draw what can be drawn of a text."""
        super().draw_text(gc, x, y, drawable(s), *args, **kwargs)  # type: ignore[no-untyped-call]

    def get_text_width_height_descent(
        self, s: str, prop: Any, ismath: Any
    ) -> tuple[float, float, float]:
        """Size of a text in pixels."""
        s = boxed(s)
        key = (s, hash(prop), bool(ismath), self.dpi)
        size = _sizes.get(key)
        if size is None:
            if len(_sizes) > _MOST_SIZES:
                _sizes.clear()
            size = super().get_text_width_height_descent(s, prop, ismath)  # type: ignore[no-untyped-call]
            _sizes[key] = size
        return size

    def _get_font_height_metrics(
        self, prop: Any
    ) -> tuple[float | None, float | None, float | None]:
        """Ascent, descent and gap of lines in pixels, which matplotlib would read from the font for every text."""
        return _heights(prop, self.dpi)


@lru_cache
def _heights(prop: Any, dpi: float) -> tuple[float | None, float | None, float | None]:
    font = get_font(findfont(prop))
    lines, head = font.get_sfnt_table("OS/2"), font.get_sfnt_table("head")
    if lines is None or head is None:
        return None, None, None
    scale = 1 / head["unitsPerEm"] * prop.get_size_in_points() * dpi / 72
    return (
        lines["sTypoAscender"] * scale,
        -lines["sTypoDescender"] * scale,
        lines["sTypoLineGap"] * scale,
    )


def raster_of(figure: Figure, width: float = 1, height: float = 1) -> Any:
    """A renderer in the figure's resolution, for an image of a given size in pixels."""
    make: Any = Raster
    return make(width, height, figure.dpi)


_MEASURE = Raster(1, 1, DPI)  # type: ignore[no-untyped-call]


class _Canvas(FigureCanvasAgg):
    """A canvas of such images."""

    _raster: Any = None

    def get_renderer(self) -> Any:
        width, height = self.figure.bbox.size
        now = self._raster
        if now is None or (now.width, now.height, now.dpi) != (width, height, self.figure.dpi):
            self._raster = raster_of(self.figure, width, height)
        return self._raster


@contextmanager
def placed_once(figure: Any) -> Iterator[None]:
    """Place ticks once while nothing that moves them happens to the figure."""
    figure.places = {}
    try:
        yield
    finally:
        figure.places = None


class _Placed(Axis):
    """An axis whose ticks and labels are placed once per drawing, not once for each part beside them."""

    def _once(self, name: str, *args: Any) -> Any:
        places, place = getattr(root_figure(self.axes), "places", None), getattr(super(), name)
        if places is None:
            return place(*args)
        key = (self, name, *self.get_view_interval(), *self.axes.bbox.bounds)
        if key not in places:
            places[key] = place(*args)
        return places[key]

    def _update_ticks(self) -> Any:
        return self._once("_update_ticks")

    def _get_ticklabel_bboxes(self, *args: Any) -> Any:
        return self._once("_get_ticklabel_bboxes", *args)

    def _copy_tick_props(self, src: Any, dest: Any) -> None:
        """Copy the look of a tick's labels; its lines look as the axis says, and copies of them are slow."""
        dest.label1.update_from(src.label1)
        dest.label2.update_from(src.label2)
        dest.set_clip_path(self.axes.patch)


class _XAxis(_Placed, XAxis):
    pass


class _YAxis(_Placed, YAxis):
    pass


class PlacedAxes(Axes):
    """Axes with a :class:`_Placed` axis on each side."""

    def _init_axis(self) -> None:
        super()._init_axis()  # type: ignore[misc]
        self.xaxis.__class__, self.yaxis.__class__ = _XAxis, _YAxis


class ShownFigure(Figure):
    """A figure that a notebook shows, although it belongs to no pyplot registry."""

    places: dict[Any, Any] | None = None

    def add_subplot(self, *args: Any, **kwargs: Any) -> Any:
        """Add such axes in a grid."""
        return super().add_subplot(*args, **{"axes_class": PlacedAxes, **kwargs})

    def add_axes(self, *args: Any, **kwargs: Any) -> Any:
        """Add such axes at a place."""
        return super().add_axes(*args, **{"axes_class": PlacedAxes, **kwargs})

    def draw(self, renderer: Any) -> None:
        """Draw all that is on it."""
        with placed_once(self):
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        return as_png(self, NOTEBOOK_DPI)


def new_figure(size: tuple[float, float], layout: Literal["constrained"] | None = None) -> Figure:
    """A figure that belongs to no pyplot registry; "constrained" makes room for the labels of several axes."""
    figure = ShownFigure(figsize=size, dpi=DPI, facecolor="white", layout=layout)
    _Canvas(figure)  # texts are measured by what draws them
    return figure


def inch_figure(places: Sequence[tuple[float, float, float, float]]) -> tuple[Figure, list[Axes]]:
    """A figure without pyplot with axes at (left, bottom, width, height), all in inches; see :func:`fit`."""
    width = max(left + across for left, _, across, _ in places)
    height = max(bottom + high for _, bottom, _, high in places)
    figure = new_figure((width, height))
    panels = []
    for left, bottom, across, high in places:
        panels.append(
            figure.add_axes((left / width, bottom / height, across / width, high / height))
        )
        plain_axes(panels[-1])
    return figure, panels


def fit(figure: Figure) -> Figure:
    """Resize the figure to its axes and the texts around them; no axes change their size."""
    width, height = figure.get_size_inches()
    with placed_once(figure):
        use_fallbacks(figure)
        box = figure.get_tightbbox(raster_of(figure))
    left, low = PAD - box.x0, PAD - box.y0
    full = box.width + 2 * PAD, box.height + 2 * PAD
    places = [ax.get_position(original=True).bounds for ax in figure.axes]
    figure.set_size_inches(*full)
    for ax, (x, y, across, high) in zip(figure.axes, places, strict=True):
        ax.set_position(
            (
                (x * width + left) / full[0],
                (y * height + low) / full[1],
                across * width / full[0],
                high * height / full[1],
            )
        )
    return figure


def root_figure(ax: Axes) -> Figure:
    """The figure that holds `ax`, also through a subfigure."""
    parent: Any = ax.figure
    while isinstance(parent, SubFigure):
        parent = parent.figure
    if not isinstance(parent, Figure):
        raise ValueError("ax must belong to a figure, got an Axes that was removed from it")
    return parent


def plain_axes(ax: Axes) -> None:
    """Set what the process-wide parameters could have changed: background, grid, frame and text colours."""
    ax.set_facecolor("white")
    ax.grid(False)
    ax.set_axisbelow(True)
    ax.spines[:].set(visible=True, color=FRAME, linewidth=0.8)
    ax.tick_params(
        which="both",
        direction="out",
        color=FRAME,
        labelcolor=INK,
        labelsize=SMALL_SIZE,
        width=0.8,
        length=3,
    )


def open_axes(ax: Axes, grid: Literal["both", "x"] = "both") -> None:
    """Curve axes: no upper and right frame, a light grid."""
    plain_axes(ax)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, axis=grid, color=GRID, linewidth=0.7, linestyle="-")


def name_axes(ax: Axes, x: str, y: str, title: str | None) -> None:
    """Axis labels and, where given, the title."""
    ax.set_xlabel(x, fontsize=TEXT_SIZE, color=INK)
    ax.set_ylabel(y, fontsize=TEXT_SIZE, color=INK)
    if title is not None:
        # nothing above the axes to be measured
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, pad=9, y=1.0)


def unit_square(ax: Axes, x: str, y: str, title: str | None) -> None:
    """Axes of two shares: from 0 to 1, in per cent, with their names."""
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set_yticks(np.linspace(0, 1, 6))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    name_axes(ax, x, y, title)


def logit_axis(axis: XAxis | YAxis, ticks: Sequence[float], show: Callable[[float], str]) -> None:
    """A scale of log-odds with ticks at these shares."""
    (axis.axes.set_xscale if isinstance(axis, XAxis) else axis.axes.set_yscale)("logit")
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda share, _: show(share)))


def write_beside(
    ax: Axes,
    words: str,
    at: tuple[float, float],
    offset: tuple[float, float],
    coords: Any = "data",
    *,
    ha: str = "left",
    va: str = "center",
    size: float = SMALL_SIZE,
    colour: str = INK,
) -> None:
    """Write words, `offset` points from a place, also outside of the axes."""
    ax.annotate(
        words,
        xy=at,
        xycoords=coords,
        xytext=offset,
        textcoords="offset points",
        ha=ha,
        va=va,
        fontsize=size,
        color=colour,
        annotation_clip=False,
    )


def caption(
    ax: Axes, lines: Sequence[str], points: float, under: Any, x: float = 0.0, gap: float = 7.0
) -> None:
    """Small explanations, if any, `points` wide, at the left or the middle (x) of the coordinates `under`."""
    if lines:
        folded = "\n".join(fold(line, points) for line in lines)
        write_beside(
            ax,
            folded,
            (x, 0.0),
            (0, -gap),
            under,
            ha="center" if x else "left",
            va="top",
            colour=MUTED,
        )


def caption_below(ax: Axes, lines: Sequence[str]) -> None:
    """Small explanations under the x axis label, as wide as the names on the left and the colour bar allow."""
    caption(ax, lines, extent_points(ax)[0] + 110, ax.xaxis.label, x=0.5)


def legend_below(
    ax: Axes,
    handles: Sequence[Artist] | None = None,
    points: float = 38,
    handlelength: float = 2.4,
    ncols: int = 1,
) -> Legend:
    """A legend `points` under the axes, of the given artists in their order, else of all."""
    below = ScaledTranslation(0, -points / 72, root_figure(ax).dpi_scale_trans)
    return ax.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + below,
        ncols=ncols,
        borderaxespad=0.0,
        frameon=False,
        fontsize=SMALL_SIZE,
        labelcolor=INK,
        handlelength=handlelength,
    )


def legend_of_panels(
    figure: Figure, handles: Sequence[Artist], ncols: int, size: float = SMALL_SIZE
) -> Legend:
    """A legend at the foot of a figure of several panels."""
    return figure.legend(
        handles=handles,
        loc="lower center",
        ncols=ncols,
        frameon=False,
        fontsize=size,
        labelcolor=INK,
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=0.4,
    )


def arrange(
    figure: Figure,
    panels: Sequence[Sequence[Axes]],
    below: Artist | None = None,
    heights: Sequence[float] | None = None,
    title: str | None = None,
) -> None:
    """Lay out panels in the space left by labels, the figure's title and `below`.

    All panels of a column are equally wide, all of a row equally high; the rows are as high as each other, or as
    `heights` to each other. Everything is measured once, in its place.
    """
    if title is not None:
        figure.suptitle(
            title, fontsize=TITLE_SIZE, color=INK, y=1 - 0.5 * PAD / figure.get_figheight()
        )
    renderer = raster_of(figure)
    full = figure.get_size_inches() * figure.dpi
    pad = PAD * figure.dpi
    head = (TITLE_SIZE * 1.6 if figure.get_suptitle() else 3.0) / 72 * figure.dpi
    with placed_once(figure):
        use_fallbacks(figure)
        low = below.get_window_extent(renderer).height + pad if below is not None else pad
        around = np.array([[_around(ax, renderer) for ax in row] for row in panels])
    left, right = around[..., 0].max(axis=0) + pad, around[..., 1].max(axis=0)
    top, bottom = around[..., 2].max(axis=1), around[..., 3].max(axis=1) + pad
    width = (full[0] - pad - left.sum() - right.sum()) / len(left)
    parts = np.ones(len(top)) if heights is None else np.asarray(heights, dtype=np.float64)
    each = (full[1] - low - head - top.sum() - bottom.sum()) * parts / parts.sum()
    y = full[1] - head
    for row, height, above, under in zip(panels, each, top, bottom, strict=True):
        y -= above + height
        x = 0.0
        for ax, before, after in zip(row, left, right, strict=True):
            ax.set_position(
                ((x + before) / full[0], y / full[1], width / full[0], height / full[1])
            )
            x += before + width + after
        y -= under


def _around(ax: Axes, renderer: Any) -> tuple[float, float, float, float]:
    """Extent of the texts to the left, right, above and below the axes."""
    inner, outer = ax.get_window_extent(renderer), ax.get_tightbbox(renderer, bbox_extra_artists=[])
    if outer is None:
        return 0.0, 0.0, 0.0, 0.0
    return inner.x0 - outer.x0, outer.x1 - inner.x1, outer.y1 - inner.y1, inner.y0 - outer.y0
