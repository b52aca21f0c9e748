"""The style of all figures, set explicitly without using global matplotlib state.

The module does not use ``matplotlib.rc_context`` either. This context changes the parameters of the
whole process for a moment, and two threads that draw at the same time can leave them changed.
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
"""Compression level of PNG files; plain areas and straight lines compress well at any level."""
_SHRUNK = 0.6
"""Approximate share of their size that axes keep if a layout engine makes room for texts."""
PAD = 0.1  # inches around a figure
TITLE_SIZE = 12.0
TEXT_SIZE = 9.5
SMALL_SIZE = 9.0
"""Size of the smallest text in a figure: 12 pixels on a page that shows the figure in full."""
_SIGNATURE_SIZE = 6.5

# Okabe and Ito's colours are distinguishable with any common form of colour vision. Orange always
# means bad: errors, runs that are ruled out, segments that are worse.
INK = "#222222"
MUTED = "#6b6b6b"
FRAME = "#9a9a9a"
GRID = "#e3e3e3"
EMPTY = "#dedede"
BAND = "#e4eff7"  # background of related rows
BLUE = "#0072B2"
ORANGE = "#D55E00"
SKY = "#56B4E9"
GREEN = "#009E73"
PINK = "#CC79A7"
PURPLE = "#8F6BC9"
BROWN = "#A6762B"

CURVE: dict[str, Any] = {"color": BLUE, "linewidth": 1.8, "zorder": 3}
"""The style of the main curve of a figure."""
DOTTED: dict[str, Any] = {"color": MUTED, "linewidth": 1.0, "linestyle": ":"}
"""The style of a reference line, such as the chance line."""
DASHED: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": "--"}
"""The style of a line that marks a limit or a chosen value."""
DOT: dict[str, Any] = {"linestyle": "none", "markeredgecolor": "white", "clip_on": False}
"""The style of individual points, each of which has a marker."""

RUN = "run-"
"""Prefix of the id (``gid``) of an artist that shows a run; the position of the run follows it."""


def ramp(name: str, *colours: str) -> Colormap:
    """Return a colour map that interpolates the colours; missing values are grey."""
    return LinearSegmentedColormap.from_list(name, list(colours), N=512).with_extremes(bad=EMPTY)


def hit_map() -> Colormap:
    """Return the colour map for shares of an actual class, from white to dark blue."""
    return ramp("cmtrack_share", "#ffffff", "#d3e6f3", "#7fb8da", "#2b7bba", "#0b3c6b")


def mismatch_map() -> Colormap:
    """Return the colour map for shares of intragroup mismatches, from white to dark purple."""
    return ramp("cmtrack_mismatch", "#ffffff", "#e4e0f0", "#b5a9d6", "#6a51a3", "#352060")


def separation_map() -> Colormap:
    """Return the colour map for sPCC: near-black (-1) through red (0) to near-white (1).

    Lightness increases with the value, so pairs of classes that are confused are dark.
    """
    return ramp(
        "cmtrack_separation", "#1b0a2a", "#5a0f4d", "#b3123f", "#ee7b32", "#fbd48a", "#fdfaf0"
    )


@dataclass(frozen=True)
class Sheet:
    """Axes to draw into, and their figure; `is_new` is True if the figure was just created."""

    figure: Figure
    ax: Axes
    is_new: bool

    def finish(self) -> Figure:
        """Resize the figure, if it is new, to the axes and the texts around them."""
        if self.is_new:
            return fit(self.figure)
        use_fallbacks(self.ax)
        return self.figure


def sheet(ax: Axes | None, size: tuple[float, float]) -> tuple[Sheet, Axes]:
    """Return a sheet and its axes: the given axes, or axes of `size` inches in a new figure."""
    if ax is None:
        figure, (ax,) = inch_figure([(0.0, 0.0, *size)])
        return Sheet(figure, ax, is_new=True), ax
    plain_axes(ax)
    return Sheet(root_figure(ax), ax, is_new=False), ax


def curve_sheet(ax: Axes | None, size: tuple[float, float]) -> tuple[Sheet, Axes]:
    """Return a sheet for curves, and its axes."""
    page, ax = sheet(ax, size)
    open_axes(ax)
    return page, ax


def of_shape(name: str, values: npt.ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Convert values to float64; raise ValueError if their shape is not the expected one."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {array.shape}")
    return array


def of_one_shape(least: int = 1, /, **arrays: npt.ArrayLike) -> list[FloatArray]:
    """Convert arrays to float64; raise ValueError unless all are 1-D and have the same length."""
    values = [np.asarray(array, dtype=np.float64) for array in arrays.values()]
    shapes = [array.shape for array in values]
    if len(set(shapes)) > 1 or values[0].ndim != 1 or len(values[0]) < least:
        names = join_names([*arrays], len(arrays))
        got = join_names([str(shape) for shape in shapes], len(arrays))
        raise ValueError(f"{names} must have one shape (n_points,), got {got}")
    return values


def extent_points(ax: Axes) -> tuple[float, float]:
    """Return the axes' width and height in points, or an estimate if the layout shrinks them."""
    figure = root_figure(ax)
    box = ax.get_window_extent()
    scale = 72.0 / figure.dpi
    if figure.get_layout_engine() is not None:
        scale *= _SHRUNK
    return float(box.width * scale), float(box.height * scale)


def fold(text: str, points: float, size: float = SMALL_SIZE) -> str:
    """Break a sentence in font `size` into lines that are about `points` wide."""
    width = points / (0.52 * size) * len(text) / max(1.0, columns(text))
    return "\n".join(textwrap.wrap(text, max(24, int(width))))


def as_png(figure: Figure, dpi: float = DPI) -> bytes:
    """Return the figure as the bytes of a PNG file."""
    if dpi == figure.dpi:
        raster = raster_of(figure, *figure.bbox.size)
        figure.draw(raster)
        return png_file(raster.buffer_rgba(), dpi)
    # Text widths change with the resolution, so the layout is computed again. Otherwise names could
    # be cut off.
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi, bbox_inches="tight", pad_inches=PAD)
    return buffer.getvalue()


def png_file(
    pixels: Any, dpi: float = DPI, compression: int = _COMPRESSION, signature: str = ""
) -> bytes:
    """Convert an image of shape (rows, columns, 3 or 4), with row 0 at the top, to a PNG file.

    ``signature``: a line in small grey type below an opaque figure that says what the figure shows.
        If the line is wider than the figure, its middle is elided.
    """
    image = np.asarray(pixels)
    if image.shape[2] == 4 and (image[..., 3] == 255).all():
        image = np.asarray(Image.fromarray(image).convert("RGB"))  # faster than a slice
    if signature:
        width = image.shape[1]
        words = np.asarray(_signature(one_line(signature), width))
        left = round(PAD * DPI)
        strip = np.full((len(words), width, 3), 255, dtype=np.uint8)
        strip[:, left : left + words.shape[1]] = words
        image = np.concatenate((image, strip))
    encoded = io.BytesIO()
    Image.fromarray(image).save(encoded, "PNG", dpi=(dpi, dpi), compress_level=compression)
    return encoded.getvalue()


@lru_cache(maxsize=8)
def _line(words: str) -> Image.Image:
    """Return an image of small grey text on white in one line, cropped to its width."""
    font = FontProperties(size=_SIGNATURE_SIZE)
    font.set_family(families_for(words, font.get_family()))
    size = _SIGNATURE_SIZE / 72 * DPI
    strip_height = 1.8 * size
    raster = _new_raster(columns(words) * size + DPI, strip_height, DPI)
    # All lines are centred as if they contained ascenders and descenders, so their baselines agree.
    _, height, descent = raster.get_text_width_height_descent(words, font, False)
    _, full_height, full_descent = raster.get_text_width_height_descent("lp", font, False)
    ascent = max(height - descent, full_height - full_descent)
    middle = (ascent - max(descent, full_descent)) / 2
    pixels = np.asarray(raster.buffer_rgba())
    pixels[:] = 255
    ink = raster.new_gc()
    ink.set_foreground(MUTED)
    raster.draw_text(ink, 0.0, 0.6 * strip_height + middle, words, font, 0.0)
    image = Image.fromarray(pixels).convert("RGB")
    inked = ImageChops.invert(image).getbbox() or (0, 0, 1, 1)
    return image.crop((0, 0, inked[2], image.height))


def _signature(words: str, width: int) -> Image.Image:
    """Return a line of text that fits below an image of the given width in pixels."""
    room = max(width - 2 * round(PAD * DPI), 1)
    font = FontProperties(size=_SIGNATURE_SIZE)
    text_width = _MEASURE.get_text_width_height_descent(words, font, False)[0]
    if text_width > room:
        words = elide(words, max(1, int(len(words) * room / text_width) - 1))
    line = _line(words)
    return line.crop((0, 0, min(line.width, room), line.height))


_sizes: dict[tuple[Any, ...], tuple[float, float, float]] = {}
_MOST_SIZES = 20_000


class Raster(RendererAgg):
    """A renderer of images that draws a box for each character without a glyph.

    The renderer measures each text only once per process, because similar figures share most of
    their texts.
    """

    def draw_text(self, gc: Any, x: float, y: float, s: str, *args: Any, **kwargs: Any) -> None:
        """Draw a text, with a box for each character without a glyph."""
        super().draw_text(gc, x, y, drawable(s), *args, **kwargs)  # type: ignore[no-untyped-call]

    def get_text_width_height_descent(
        self, s: str, prop: Any, ismath: Any
    ) -> tuple[float, float, float]:
        """Return the width, height and descent of a text in pixels."""
        s = boxed(s)
        key = (s, hash(prop), bool(ismath), self.dpi)
        size = _sizes.get(key)
        if size is not None:
            return size
        if len(_sizes) > _MOST_SIZES:
            _sizes.clear()
        measure: Any = super().get_text_width_height_descent
        measured: tuple[float, float, float] = measure(s, prop, ismath)
        _sizes[key] = measured
        return measured

    def _get_font_height_metrics(
        self, prop: Any
    ) -> tuple[float | None, float | None, float | None]:
        """Return the ascent and descent of a line and the gap between lines, in pixels.

        matplotlib would read these metrics from the font again for every text.
        """
        return _heights(prop, self.dpi)


@lru_cache
def _heights(prop: Any, dpi: float) -> tuple[float | None, float | None, float | None]:
    font = get_font(findfont(prop))
    metrics = font.get_sfnt_table("OS/2")
    head = font.get_sfnt_table("head")
    if metrics is None or head is None:
        return None, None, None
    scale = 1 / head["unitsPerEm"] * prop.get_size_in_points() * dpi / 72
    return (
        metrics["sTypoAscender"] * scale,
        -metrics["sTypoDescender"] * scale,
        metrics["sTypoLineGap"] * scale,
    )


def _new_raster(width: float, height: float, dpi: float) -> Any:
    """Return a renderer of images with the given size in pixels; it lacks type hints."""
    make: Any = Raster
    return make(width, height, dpi)


def raster_of(figure: Figure, width: float = 1, height: float = 1) -> Any:
    """Return a renderer with the figure's resolution and the given image size in pixels."""
    return _new_raster(width, height, figure.dpi)


_MEASURE = _new_raster(1, 1, DPI)


class _Canvas(FigureCanvasAgg):
    """A canvas that draws with :class:`Raster`."""

    _raster: Any = None

    def get_renderer(self) -> Any:
        width, height = self.figure.bbox.size
        raster = self._raster
        size = (width, height, self.figure.dpi)
        if raster is None or (raster.width, raster.height, raster.dpi) != size:
            self._raster = raster_of(self.figure, width, height)
        return self._raster


# Drawing with matplotlib's own axes takes 1.15 times as long, because they place their ticks again
# for the axis, for its label, for the title and for each tight box. Nothing moves between these
# steps, so an axis of cmtrack remembers its ticks while a figure is drawn.
@contextmanager
def placed_once(figure: Any) -> Iterator[None]:
    """Place ticks only once inside this context, in which nothing may move them."""
    figure.ticks = {}
    try:
        yield
    finally:
        figure.ticks = None


class _Placed(Axis):
    """An axis whose ticks and labels are placed once while a figure is drawn."""

    def _once(self, name: str, *args: Any) -> Any:
        remembered = getattr(root_figure(self.axes), "ticks", None)
        compute = getattr(super(), name)
        if remembered is None:
            return compute(*args)
        # The layout changes the limits and sizes of axes while a figure is drawn.
        key = (self, name, *self.get_view_interval(), *self.axes.bbox.bounds)
        if key not in remembered:
            remembered[key] = compute(*args)
        return remembered[key]

    def _update_ticks(self) -> Any:
        return self._once("_update_ticks")

    def _get_ticklabel_bboxes(self, *args: Any) -> Any:
        return self._once("_get_ticklabel_bboxes", *args)

    def _copy_tick_props(self, src: Any, dest: Any) -> None:
        """Copy the style of a tick's labels.

        The style of tick lines is set for the whole axis, and copying it is slow.
        """
        dest.label1.update_from(src.label1)
        dest.label2.update_from(src.label2)
        dest.set_clip_path(self.axes.patch)


class _XAxis(_Placed, XAxis):
    pass


class _YAxis(_Placed, YAxis):
    pass


class PlacedAxes(Axes):
    """Axes whose horizontal and vertical axis are :class:`_Placed`."""

    def _init_axis(self) -> None:
        super()._init_axis()  # type: ignore[misc]
        # matplotlib offers no option to choose the class of an axis.
        self.xaxis.__class__ = _XAxis
        self.yaxis.__class__ = _YAxis


class ShownFigure(Figure):
    """A figure that notebooks show although it is not registered with pyplot."""

    ticks: dict[Any, Any] | None = None

    def add_subplot(self, *args: Any, **kwargs: Any) -> Any:
        """Add :class:`PlacedAxes` at a position of a grid."""
        return super().add_subplot(*args, **{"axes_class": PlacedAxes, **kwargs})

    def add_axes(self, *args: Any, **kwargs: Any) -> Any:
        """Add :class:`PlacedAxes` at a position of the figure."""
        return super().add_axes(*args, **{"axes_class": PlacedAxes, **kwargs})

    def draw(self, renderer: Any) -> None:
        """Draw the figure."""
        with placed_once(self):
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        return as_png(self, NOTEBOOK_DPI)


def new_figure(size: tuple[float, float], layout: Literal["constrained"] | None = None) -> Figure:
    """Return a figure that is not registered with pyplot.

    ``layout``: pass "constrained" to make room for the labels of several axes.
    """
    figure = ShownFigure(figsize=size, dpi=DPI, facecolor="white", layout=layout)
    _Canvas(figure)  # the same renderer measures and draws the texts
    return figure


def inch_figure(places: Sequence[tuple[float, float, float, float]]) -> tuple[Figure, list[Axes]]:
    """Return a new figure and its axes; call :func:`fit` later to make room for texts.

    ``places``: left, bottom, width and height of each axes in inches.
    """
    full_width = max(left + width for left, _, width, _ in places)
    full_height = max(bottom + height for _, bottom, _, height in places)
    figure = new_figure((full_width, full_height))
    full = np.array([full_width, full_height, full_width, full_height])
    panels = []
    for place in places:
        ax = figure.add_axes(tuple(np.array(place) / full))
        plain_axes(ax)
        panels.append(ax)
    return figure, panels


def fit(figure: Figure) -> Figure:
    """Resize the figure to its axes and the texts around them; the axes keep their size."""
    width, height = figure.get_size_inches()
    with placed_once(figure):
        use_fallbacks(figure)
        box = figure.get_tightbbox(raster_of(figure))
    full_width = box.width + 2 * PAD
    full_height = box.height + 2 * PAD
    # Positions are relative to the figure, so read them before its size changes.
    places = [ax.get_position(original=True).bounds for ax in figure.axes]
    figure.set_size_inches(full_width, full_height)
    for ax, (left, bottom, across, high) in zip(figure.axes, places, strict=True):
        inches_left = left * width + (PAD - box.x0)
        inches_bottom = bottom * height + (PAD - box.y0)
        ax.set_position(
            (
                inches_left / full_width,
                inches_bottom / full_height,
                across * width / full_width,
                high * height / full_height,
            )
        )
    return figure


def root_figure(ax: Axes) -> Figure:
    """Return the figure of `ax`, even if `ax` is in a subfigure."""
    parent: Any = ax.figure
    while isinstance(parent, SubFigure):
        parent = parent.figure
    if not isinstance(parent, Figure):
        raise ValueError("ax must belong to a figure, got an Axes that was removed from it")
    return parent


def plain_axes(ax: Axes) -> None:
    """Set all colours explicitly, so that global matplotlib parameters do not affect them."""
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
    """Prepare axes for curves: remove the upper and right frame, and draw a light grid."""
    plain_axes(ax)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, axis=grid, color=GRID, linewidth=0.7, linestyle="-")


def name_axes(ax: Axes, x: str, y: str, title: str | None) -> None:
    """Set the axis labels and, if there is one, the title."""
    ax.set_xlabel(x, fontsize=TEXT_SIZE, color=INK)
    ax.set_ylabel(y, fontsize=TEXT_SIZE, color=INK)
    if title is not None:
        # If the title's position is fixed, matplotlib need not measure everything above the axes.
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, pad=9, y=1.0)


def unit_square(ax: Axes, x: str, y: str, title: str | None) -> None:
    """Prepare axes that both show shares: set names, limits from 0 to 1, and ticks in percent."""
    ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    ax.set_yticks(np.linspace(0, 1, 6))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    name_axes(ax, x, y, title)


def logit_axis(axis: XAxis | YAxis, ticks: Sequence[float], show: Callable[[float], str]) -> None:
    """Set a log-odds scale with ticks at the given shares."""
    if isinstance(axis, XAxis):
        axis.axes.set_xscale("logit")
    else:
        axis.axes.set_yscale("logit")
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
    """Write words at a distance of `offset` points from a position, even outside the axes."""
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
    """Write explanations, if there are any, in small type and `points` wide.

    ``under``: the coordinates or the artist below which the text is written.
    ``x``: the horizontal position in the coordinates of ``under``. If ``x`` is 0, the text is
        left-aligned. Otherwise, it is centred.
    """
    folded = "\n".join(fold(line, points) for line in lines if line)
    if not folded:
        return
    side = "center" if x else "left"
    write_beside(ax, folded, (x, 0.0), (0, -gap), under, ha=side, va="top", colour=MUTED)


def caption_below(ax: Axes, lines: Sequence[str]) -> None:
    """Write explanations in small type below the x axis label of a matrix."""
    # The explanations may also use the space below the names and the colour bar, 110 points.
    caption(ax, lines, extent_points(ax)[0] + 110, ax.xaxis.label, x=0.5)


def legend_below(
    ax: Axes,
    handles: Sequence[Artist] | None = None,
    points: float = 38,
    handlelength: float = 2.4,
    ncols: int = 1,
) -> Legend:
    """Add a legend `points` below the axes, for the given artists in order, or for all artists."""
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
    """Add a legend at the bottom of a figure that contains several panels."""
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
    """Arrange panels in the space that labels, the figure's title and a legend leave free.

    All panels in a column have the same width, and all panels in a row have the same height. The
    heights of the rows are equal, or proportional to `heights`. Each text is measured only once.
    """
    if title is not None:
        figure.suptitle(
            title, fontsize=TITLE_SIZE, color=INK, y=1 - 0.5 * PAD / figure.get_figheight()
        )
    renderer = raster_of(figure)
    full_width, full_height = figure.get_size_inches() * figure.dpi
    pad = PAD * figure.dpi
    title_points = 3.0
    if figure.get_suptitle():
        title_points = TITLE_SIZE * 1.6
    head = title_points / 72 * figure.dpi
    foot = pad
    with placed_once(figure):
        use_fallbacks(figure)
        if below is not None:
            foot = below.get_window_extent(renderer).height + pad
        around = np.array([[_around(ax, renderer) for ax in row] for row in panels])
    left = around[..., 0].max(axis=0) + pad
    right = around[..., 1].max(axis=0)
    top = around[..., 2].max(axis=1)
    bottom = around[..., 3].max(axis=1) + pad
    width = (full_width - pad - left.sum() - right.sum()) / len(left)
    ratios = np.ones(len(top)) if heights is None else np.asarray(heights, dtype=np.float64)
    room = full_height - foot - head - top.sum() - bottom.sum()
    y = full_height - head
    for row, height, above, under in zip(
        panels, room * ratios / ratios.sum(), top, bottom, strict=True
    ):
        y -= above + height
        x = 0.0
        for ax, before, after in zip(row, left, right, strict=True):
            box = ((x + before) / full_width, y / full_height)
            ax.set_position((*box, width / full_width, height / full_height))
            x += before + width + after
        y -= under


def _around(ax: Axes, renderer: Any) -> tuple[float, float, float, float]:
    """Return how far texts extend to the left, right, top and bottom of the axes."""
    inner = ax.get_window_extent(renderer)
    outer = ax.get_tightbbox(renderer, bbox_extra_artists=[])
    if outer is None:
        return 0.0, 0.0, 0.0, 0.0
    return inner.x0 - outer.x0, outer.x1 - inner.x1, outer.y1 - inner.y1, inner.y0 - outer.y0
