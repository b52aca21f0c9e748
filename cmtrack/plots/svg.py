"""Figures as SVG for pages: text stays text, and colours follow the page's colour scheme.

This small renderer replaces matplotlib's SVG renderer, which reads parameters of the whole process,
creates random ids and writes every style in full. The module neither reads nor changes global
state, so several threads can draw at the same time.
"""
# ruff: noqa: D102  # matplotlib documents the methods of a renderer

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import wraps
from html import escape
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import weight_dict
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Transform

from ._text import SIDE, text_side
from .style import (
    BAND,
    BLUE,
    EMPTY,
    FRAME,
    GRID,
    INK,
    MUTED,
    ORANGE,
    RUN,
    FloatArray,
    png_file,
    raster_of,
)

Box: TypeAlias = tuple[float, float, float, float]

_UNITS = 10  # units of the drawing per pixel of the figure, so that all numbers are integers
CSS_DPI = 96
_LEAST = 0.75  # smallest share of its size to which a figure shrinks; then it scrolls
_MOST_SQUARES = 30 * 30  # if there are more cells, an image is smaller than paths
_HATCH = 72  # width and height of a tile of hatching in pixels
_TOP = 0.4  # inches at the top of a figure that contain its title
_UNDER = 5.0  # points from the baseline of the title to the content below
_BOLD = 600  # font weight from which a browser uses bold type
_BOLD_TEXT = ' font-weight="700"'
# A dark page inverts the colours of cells and of their texts. The brightness of the cells keeps the
# contrast of the texts, which are white or black.
_CELLS = ' class="cells"'
_ON_CELLS = ' class="on-cells"'
_NO_ID = re.compile(r"[^A-Za-z0-9_]")

MOST_CELLS = 40_000
"""Largest number of cells that are drawn separately; if there are more cells, they are tiny."""
VARIABLES = {
    INK: "ink",
    MUTED: "soft",
    FRAME: "frame",
    GRID: "grid",
    EMPTY: "empty",
    "#ffffff": "page",
    BAND: "band",
    BLUE.lower(): "data-blue",
}
"""Names of the page's colour variables, by the figure colour that each variable replaces."""
# Orange lines keep their colour, but orange words must be readable in both colour schemes.
_TEXT_VARIABLES = VARIABLES | {ORANGE.lower(): "data-orange-text"}
_CAPS = {"projecting": "square", "round": "round"}
_ANCHORS = {"center": "middle", "right": "end"}


def as_svg(figure: Figure, name: str = "figure", title: str = "", raster: Any = None) -> str:
    """Return the figure as an ``<svg>`` element for an HTML page.

    The element is as wide as its box, but not wider than its full size. The element never becomes
    so narrow that its text is unreadable, so the box must be able to scroll. The element contains
    no style sheet, no date and no random id. Texts use the font of the page. Parts that belong to a
    run have the attribute ``data-run``, which is the position of the run, counted from 0.

    ``name``: a prefix of all ids, which must be unique in the page.
    ``title``: a description for people who cannot see the figure.
    ``raster``: a renderer of images that draws the same figure at the same time.
    """
    width, height = figure.get_size_inches() * figure.dpi
    prefix = _NO_ID.sub(lambda match: f"-{ord(match[0]):x}-", name)
    renderer = SvgRenderer(
        width,
        height,
        figure.dpi,
        prefix,
        raster or raster_of(figure),
        drawn=raster is not None,
        title=title,
    )
    figure.draw(renderer)
    visible_height = height - renderer.top
    css_width = width * CSS_DPI / figure.dpi
    css_height = visible_height * CSS_DPI / figure.dpi
    view = [round(pixels * _UNITS) for pixels in (renderer.top, width, visible_height)]
    label = ""
    if title:
        label = f"<title>{escape(title)}</title>"
    return (
        f'<svg role="img" width="{css_width:.0f}" height="{css_height:.0f}" '
        f'viewBox="0 {view[0]} {view[1]} {view[2]}" fill="none" '
        f'style="min-width:{_LEAST * css_width:.0f}px;max-width:100%;height:auto" '
        f'stroke-linejoin="round">{label}{renderer.content()}</svg>'
    )


def as_svg_and_png(
    figure: Figure, name: str = "figure", title: str = "", signature: str = ""
) -> tuple[str, bytes]:
    """Draw a figure once, and return the element of :func:`as_svg` and a PNG file."""
    raster = raster_of(figure, *(figure.get_size_inches() * figure.dpi))
    svg = as_svg(figure, name, title, raster)
    return svg, png_file(raster.buffer_rgba(), figure.dpi, signature=signature)


def _in_both(draw: Callable[..., None]) -> Callable[..., None]:
    """Wrap a drawing method so that it also draws into the image, if there is one."""

    @wraps(draw)
    def draw_both(self: SvgRenderer, *args: Any, **kwargs: Any) -> None:
        if self.raster is not None:
            getattr(self.raster, draw.__name__)(*args, **kwargs)
        draw(self, *args, **kwargs)

    return draw_both


def _matrix(transform: Transform) -> FloatArray:
    return np.asarray(transform.get_matrix())


class SvgRenderer(RendererBase):
    """A renderer that converts matplotlib's artists to elements of an SVG drawing.

    ``width``, ``height``: the size of the drawing in pixels.
    ``prefix``: the prefix of all ids.
    ``image``: a renderer of images that measures the texts.
    ``drawn``: True to also draw into the image, so that the layout is computed once for both.
    ``title``: the title that the page writes next to the element. If the figure's title consists of
        the same words, it is not drawn.
    """

    def __init__(
        self,
        width: float,
        height: float,
        dpi: float,
        prefix: str,
        image: Any,
        *,
        drawn: bool,
        title: str = "",
    ) -> None:
        super().__init__()
        self.width = width
        self.height = height
        self.dpi = dpi
        self.prefix = prefix
        self.raster = image if drawn else None
        self._measure = image
        self._title = title.casefold()
        self._title_end = 0.0
        self._text_top = float(height)
        self._elements: list[str] = []
        self._groups: list[bool] = []
        self._side = "left"
        self._ids: dict[object, str] = {}
        self._links: list[str] = []

    def content(self) -> str:
        """Return all elements of the drawing.

        The last elements are empty. These elements are placed over the matrices whose cells have
        names, so that a page can turn the cells into links.
        """
        return "".join(self._elements + self._links)

    # -- methods that matplotlib calls -------------------------------------------------------------

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self.width, self.height

    def flipy(self) -> bool:
        return True

    def option_image_nocomposite(self) -> bool:
        return True  # draw each image separately

    def points_to_pixels(self, points: Any) -> Any:
        return points * self.dpi / 72

    def get_text_width_height_descent(
        self, s: str, prop: Any, ismath: Any
    ) -> tuple[float, float, float]:
        size: tuple[float, float, float] = self._measure.get_text_width_height_descent(
            s, prop, ismath
        )
        return size

    def _get_font_height_metrics(self, prop: Any) -> Any:
        return self._measure._get_font_height_metrics(prop)

    def open_group(self, s: str, gid: str | None = None) -> None:
        # matplotlib draws each line of a text without saying to which text it belongs.
        self._side = "left"
        if gid is not None and gid.startswith(SIDE):
            self._side = gid.removeprefix(SIDE)
        # matplotlib closes every group that it opens, including groups without an element here.
        if gid is None or not gid.startswith(RUN):
            self._groups.append(False)
            return
        self._groups.append(True)
        self._elements.append(f'<g data-run="{escape(gid.removeprefix(RUN))}">')

    def close_group(self, s: str) -> None:
        has_element = self._groups.pop()
        if has_element:
            self._elements.append("</g>")

    @_in_both
    def draw_path(
        self, gc: GraphicsContextBase, path: Path, transform: Transform, rgbFace: Any = None
    ) -> None:
        # Only lines are clipped at the frame, because the cut edge of an area would get an outline.
        clip = None
        if rgbFace is None and gc.get_hatch() is None:
            clip = self._clip_box(gc)
        self._draw(gc, [_Outline(path, self._flipped(transform), clip)], rgbFace)

    @_in_both
    def draw_path_collection(self, gc: GraphicsContextBase, *args: Any, **kwargs: Any) -> None:
        # matplotlib calls draw_path for each path, but the image already contains the whole
        # collection.
        with self._without_raster():
            super().draw_path_collection(gc, *args, **kwargs)

    @_in_both
    def draw_markers(
        self,
        gc: GraphicsContextBase,
        marker_path: Path,
        marker_trans: Transform,
        path: Path,
        trans: Transform,
        rgbFace: Any = None,
    ) -> None:
        centres = np.asarray(trans.transform(path.vertices), dtype=np.float64).reshape(-1, 2)
        shape = _Outline(marker_path, Affine2D(_matrix(marker_trans)).scale(1, -1))
        # Skip markers far outside, which are invisible. Comparisons with NaN are false.
        upper = (self.width + _HATCH, self.height + _HATCH)
        inside = ((centres > -_HATCH) & (centres < upper)).all(axis=1)
        markers = [shape.moved_to(x, self.height - y) for x, y in centres[inside].tolist()]
        self._draw(gc, markers, rgbFace)

    @_in_both
    def draw_quad_mesh(
        self,
        gc: GraphicsContextBase,
        master_transform: Transform,
        meshWidth: int,
        meshHeight: int,
        coordinates: npt.ArrayLike,
        offsets: Any,
        offsetTrans: Any,
        facecolors: Any,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Draw the cells of a colour bar; all columns of a colour bar are identical."""
        points = np.asarray(coordinates, dtype=np.float64).reshape(-1, 2)
        corners = master_transform.transform(points).reshape(meshHeight + 1, meshWidth + 1, 2)
        colours = np.asarray(facecolors, dtype=np.float64).reshape(meshHeight, meshWidth, 4)
        y = corners[:, 0, 1]
        # Draw a row for each pixel of the height, in the colour of the cell at the pixel's centre.
        n_pixels = max(1, round(abs(y[-1] - y[0])))
        pixel_centres = np.linspace(y[0], y[-1], 2 * n_pixels + 1)[1::2]
        cells = np.clip(np.searchsorted(y, pixel_centres) - 1, 0, meshHeight - 1)
        box = (corners[0, 0, 0], y[0], corners[0, -1, 0], y[-1])
        self._image(np.rint(255 * colours[cells][::-1]).astype(np.uint8), box, _CELLS)

    @property
    def top(self) -> float:
        """Number of pixels to cut off at the top, where the figure contained only its title."""
        return max(min(self._title_end, self._text_top), 0.0)

    @_in_both
    def draw_image(self, gc: GraphicsContextBase, x: float, y: float, im: Any) -> None:
        self._image(np.asarray(im)[::-1], (x, y, x + im.shape[1], y + im.shape[0]), "")

    @_in_both
    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: Any,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        if ismath:  # cmtrack writes no formulas; matplotlib draws formulas on axes as paths
            with self._without_raster():
                super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
            return
        if s.casefold() == self._title and y < _TOP * self.dpi:
            self._title_end = y + self.points_to_pixels(_UNDER)
            return
        points = prop.get_size_in_points()
        if not angle:
            self._text_top = min(self._text_top, y - self.points_to_pixels(1.2 * points))
        side = self._side if mtext is None else text_side(mtext)
        attributes = ""
        if side != "left":
            # Text widths differ in a browser's font. If the anchor is right, centred and
            # right-aligned text stays aligned.
            distance = self.get_text_width_height_descent(s, prop, ismath)[0]
            if side == "center":
                distance *= 0.5
            turn = np.deg2rad(angle)
            x += distance * np.cos(turn)
            y -= distance * np.sin(turn)
            attributes = f' text-anchor="{_ANCHORS[side]}"'
        if angle:
            attributes += f' transform="rotate({-angle:g} {_whole(x)} {_whole(y)})"'
        if weight_dict.get(prop.get_weight(), prop.get_weight()) >= _BOLD:
            attributes += _BOLD_TEXT
        self._text(s, (x, y), points, gc.get_rgb(), attributes)

    # -- methods that artists of cmtrack call ------------------------------------------------------

    def draw_cells(self, rgba: FloatArray, box: Box, names: str = "") -> None:
        """Draw cells from an array of shape (rows, columns, 4); row 0 is at the top.

        ``box``: left, bottom, right and top of all cells in pixels.
        ``names``: the names of the cells for links, see
            :func:`cmtrack.plots._heatmap.name_cells`.
        """
        left, low, right, top = box
        pixels = np.rint(255 * rgba).astype(np.uint8)
        rows, columns = pixels.shape[:2]
        corner = f"{_whole(left)} {_whole(self.height - top)}"
        size = f"{(right - left) * _UNITS / columns:.4g} {(top - low) * _UNITS / rows:.4g}"
        if names:
            self._links.append(f'<g data-cells="{escape(names)} {corner} {size}"></g>')
        if rows * columns > _MOST_SQUARES:
            self._image(pixels, box, f'{_CELLS} style="image-rendering:pixelated"')
            return
        self._elements.append(
            f'<g{_CELLS} transform="translate({corner})scale({size})" shape-rendering="crispEdges">'
            f"{_squares(pixels)}</g>"
        )

    def draw_words(
        self,
        texts: Sequence[str],
        places: FloatArray,
        colours: Sequence[str],
        size: float,
        bold: Sequence[bool],
        line: float,
        middle: float,
    ) -> None:
        """Draw the texts of cells; their centres are at the given positions in pixels.

        ``size``: the size of the font in points.
        ``line``: the distance between baselines, relative to the font size.
        ``middle``: the distance from the centre of a line down to its baseline, relative to the
        font size.
        """
        font = self.points_to_pixels(size)
        self._elements.append(f'<g{_ON_CELLS} text-anchor="middle" font-size="{_whole(font)}">')
        for text, (x, y), colour, is_bold in zip(
            texts, places.tolist(), colours, bold, strict=True
        ):
            lines = text.split("\n")
            baseline = self.height - y + font * (middle - (len(lines) - 1) * line / 2)
            style = f'fill="{to_hex(colour)}"'
            if is_bold:
                style += _BOLD_TEXT
            for number, words in enumerate(lines):
                self._elements.append(
                    f'<text x="{_whole(x)}" y="{_whole(baseline + number * line * font)}" '
                    f"{style}>{escape(words, quote=False)}</text>"
                )
        self._elements.append("</g>")

    @contextmanager
    def _without_raster(self) -> Iterator[None]:
        """Draw only SVG elements inside this context, and nothing into the image."""
        raster = self.raster
        self.raster = None
        yield
        self.raster = raster

    # -- elements ----------------------------------------------------------------------------------

    def _text(
        self, words: str, place: tuple[float, float], points: float, rgba: Any, attributes: str
    ) -> None:
        x, y = place
        fill = _colour("fill", rgba, text=True)
        if rgba[3] < 1:
            fill += f' fill-opacity="{rgba[3]:.2g}"'
        font = _whole(self.points_to_pixels(points))
        self._elements.append(
            f'<text x="{_whole(x)}" y="{_whole(y)}" font-size="{font}"'
            f"{attributes}{fill}>{escape(words, quote=False)}</text>"
        )

    def _image(self, pixels: npt.NDArray[np.uint8], box: Box, style: str) -> None:
        left, low, right, top = box
        data = base64.b64encode(png_file(pixels, compression=9)).decode("ascii")
        self._elements.append(
            f'<image x="{_whole(left)}" y="{_whole(self.height - top)}" '
            f'width="{_whole(right - left)}" height="{_whole(top - low)}" '
            f'preserveAspectRatio="none"{style} href="data:image/png;base64,{data}"/>'
        )

    def _flipped(self, transform: Transform) -> Affine2D | Transform:
        return transform + Affine2D().scale(1, -1).translate(0, self.height)

    def _clip_box(self, gc: GraphicsContextBase) -> Box | None:
        """Return left, top, right and bottom of the clip rectangle; y increases downwards."""
        box = gc.get_clip_rectangle()
        if box is None:
            return None
        return box.x0, self.height - box.y1, box.x1, self.height - box.y0

    def _draw(self, gc: GraphicsContextBase, outlines: Sequence[_Outline], face: Any) -> None:
        visible = [outline for outline in outlines if outline.box]
        if not visible:
            return
        boxes = np.array([outline.box for outline in visible])
        left, top = boxes[:, :2].min(axis=0).tolist()
        right, low = boxes[:, 2:].max(axis=0).tolist()
        style = self._style(gc, face)
        if not style:
            return
        clip_attribute = self._clip_attribute(gc, (left, top, right, low))
        if clip_attribute is None:
            return
        data = "".join(outline.data for outline in visible)
        self._elements.append(f'<path d="{data}"{style}{clip_attribute}/>')

    def _clip_attribute(self, gc: GraphicsContextBase, box: Box) -> str | None:
        """Return the attribute that clips a path, given its bounding box; None if it is invisible.

        Most paths are inside their clip rectangle, so they do not need the attribute.
        """
        clip_path: Any
        clip_path, transform = gc.get_clip_path()
        if clip_path is not None and transform is not None:
            return self._define_clip(_Outline(clip_path, self._flipped(transform)).data)
        clip = self._clip_box(gc)
        if clip is None:
            return ""
        left, top, right, low = clip
        # the distances by which the box extends beyond each side of the rectangle
        beyond = (left - box[0], top - box[1], box[2] - right, box[3] - low)
        if box[2] < left - 1 or box[0] > right + 1 or box[3] < top - 1 or box[1] > low + 1:
            return None
        if max(beyond) <= 1 + self.points_to_pixels(gc.get_linewidth()):
            return ""
        x, y, to_x, to_y = map(_whole, clip)
        return self._define_clip(f"M{x} {y}H{to_x}V{to_y}H{x}z")

    def _define_clip(self, data: str) -> str:
        name = self._ids.get(data)
        if name is None:
            name = self._new_id(data)
            self._elements.append(f'<clipPath id="{name}"><path d="{data}"/></clipPath>')
        return f' clip-path="url(#{name})"'

    def _new_id(self, key: object) -> str:
        name = f"{self.prefix}-{len(self._ids)}"
        self._ids[key] = name
        return name

    def _style(self, gc: GraphicsContextBase, face: Any) -> str:
        """Return the style attributes; an empty text if nothing would be visible."""
        # A forced alpha applies to the whole path. Otherwise, each colour contains its own alpha.
        alpha = gc.get_alpha() if gc.get_forced_alpha() else None
        style = self._fill(gc, face, alpha) + self._stroke(gc, alpha)
        if style and alpha is not None and alpha < 1:
            style += f' opacity="{alpha:.2g}"'
        return style

    def _fill(self, gc: GraphicsContextBase, face: Any, alpha: float | None) -> str:
        if gc.get_hatch() is not None:
            return f' fill="url(#{self._define_hatch(gc, face)})"'
        if face is None:
            return ""
        opacity = face[3] if len(face) == 4 else 1
        if opacity == 0:
            return ""
        fill = _colour("fill", face)
        if alpha is None and opacity < 1:
            fill += f' fill-opacity="{opacity:.2g}"'
        return fill

    def _stroke(self, gc: GraphicsContextBase, alpha: float | None) -> str:
        width = self.points_to_pixels(gc.get_linewidth())
        rgba = gc.get_rgb()
        if not width or (len(rgba) == 4 and rgba[3] == 0):
            return ""
        stroke = f'{_colour("stroke", rgba)} stroke-width="{_whole(width)}"'
        if alpha is None and rgba[3] < 1:
            stroke += f' stroke-opacity="{rgba[3]:.2g}"'
        offset, dashes = gc.get_dashes()
        if dashes is not None:
            lengths = " ".join(map(_whole, self.points_to_pixels(np.array(dashes))))
            stroke += f' stroke-dasharray="{lengths}"'
            if offset:
                stroke += f' stroke-dashoffset="{_whole(self.points_to_pixels(offset))}"'
        if gc.get_joinstyle() != "round":
            stroke += f' stroke-linejoin="{gc.get_joinstyle()}"'
        cap = _CAPS.get(gc.get_capstyle())
        if cap is not None:
            stroke += f' stroke-linecap="{cap}"'
        return stroke

    def _define_hatch(self, gc: GraphicsContextBase, face: Any) -> str:
        ground = "" if face is None else _colour("fill", face)
        lines = _colour("stroke", gc.get_hatch_color())
        key = (gc.get_hatch(), ground, lines)
        name = self._ids.get(key)
        if name is not None:
            return name
        name = self._new_id(key)
        upside_down = Affine2D().scale(_HATCH, -_HATCH).translate(0, _HATCH)
        outline = _Outline(gc.get_hatch_path(), upside_down)
        side = _whole(_HATCH)
        width = _whole(self.points_to_pixels(gc.get_hatch_linewidth()))
        tile = f'<path d="{outline.data}"{lines} stroke-width="{width}"/>'
        if ground:
            tile = f'<path d="M0 0h{side}v{side}h-{side}z"{ground}/>{tile}'
        self._elements.append(
            f'<pattern id="{name}" patternUnits="userSpaceOnUse" width="{side}" height="{side}">'
            f"{tile}</pattern>"
        )
        return name


def _colour(attribute: str, rgba: Any, *, text: bool = False) -> str:
    """Return the attribute of a colour: a variable if the colour follows the page's scheme."""
    colour = to_hex(rgba[:3])
    variable = (_TEXT_VARIABLES if text else VARIABLES).get(colour)
    # White text is on a dark background in both schemes, so it must not follow the page's
    # background.
    if variable is None or (text and variable == "page"):
        return f' {attribute}="{colour}"'
    return f' {attribute}="var(--{variable})"'


def _whole(pixels: Any) -> str:
    """Convert a length in pixels to the units of the drawing."""
    return str(round(float(pixels) * _UNITS))


class _Outline:
    """A path in pixels: its start, relative steps, and bounding box, which may be empty."""

    def __init__(self, path: Path, transform: Transform, clip: Box | None = None) -> None:
        self.box: tuple[float, ...] = ()
        self.start = (0, 0)
        self.steps = ""
        if path is Path.unit_circle():
            matrix = _matrix(transform)
            # A circle stays a circle under a transform that keeps angles. Two arcs are shorter than
            # curves.
            sides = [abs(matrix[0, 0]), matrix[0, 1]]
            if np.allclose(sides, [abs(matrix[1, 1]), matrix[1, 0]]):
                self._set_circle(matrix[0, 2], matrix[1, 2], float(np.hypot(*matrix[0, :2])))
                return
        # Clipped paths are lines and can be simplified. All other paths are areas, whose edges must
        # stay.
        simplify = bool(path.should_simplify) and clip is not None
        cleaned = path.cleaned(
            transform=transform, remove_nans=True, clip=clip, simplify=simplify, curves=True
        )
        codes = np.asarray(cleaned.codes)
        vertices = np.asarray(cleaned.vertices)
        # The vertex of both codes is (0, 0), which is not drawn.
        points = vertices[(codes != Path.STOP) & (codes != Path.CLOSEPOLY)]
        if len(points):
            self.box = (*points.min(axis=0).tolist(), *points.max(axis=0).tolist())
            self.start, self.steps = _data(np.rint(_UNITS * vertices), codes)

    def _set_circle(self, x: float, y: float, radius: float) -> None:
        if not np.isfinite([x, y, radius]).all():
            return
        self.box = (x - radius, y - radius, x + radius, y + radius)
        self.start = (round(_UNITS * (x - radius)), round(_UNITS * y))
        units = round(_UNITS * radius)
        arc = f"a{units} {units} 0 1 0"
        self.steps = f"{arc} {2 * units} 0{arc} {-2 * units} 0z"

    @property
    def data(self) -> str:
        """The data (attribute ``d``) of a path element."""
        return f"M{self.start[0]} {self.start[1]}{self.steps}"

    def moved_to(self, x: float, y: float) -> _Outline:
        """Return the outline, moved so that its origin is at a position in pixels."""
        moved = copy(self)
        if self.box:
            left, top, right, low = self.box
            moved.box = (left + x, top + y, right + x, low + y)
            moved.start = (self.start[0] + round(_UNITS * x), self.start[1] + round(_UNITS * y))
        return moved


_CURVES = {Path.CURVE3: ("q", 2), Path.CURVE4: ("c", 3)}


def _data(vertices: FloatArray, codes: npt.NDArray[Any]) -> tuple[tuple[int, int], str]:
    """Return SVG path data in integers: the start, and the steps relative to it."""
    points = vertices.astype(np.int64)
    edges = _run_edges(codes)
    # If several moves follow each other, only the last move counts.
    start = points[edges[1] - 1] if codes[0] == Path.MOVETO else points[0]
    position = subpath_start = points[0]
    steps: list[str] = []
    for first, stop in pairwise(edges):
        kind = codes[first]
        run = points[first:stop]
        if kind == Path.STOP:
            break
        if kind == Path.CLOSEPOLY:
            steps.append("z")
            position = subpath_start  # in SVG, the next step starts at the start of the closed part
            continue
        if kind == Path.MOVETO:
            if first:
                steps.append("m{} {}".format(*(run[-1] - position).tolist()))
            subpath_start = run[-1]
        elif kind == Path.LINETO:
            steps.append(_lines(np.diff(run, axis=0, prepend=position[None])))
        else:
            # All points of a curve are relative to the end of the previous curve.
            letter, n_points = _CURVES[kind]
            ends = np.concatenate([position[None], run[n_points - 1 : -1 : n_points]])
            numbers = (run - ends.repeat(n_points, axis=0)).ravel().tolist()
            steps.append(letter + " ".join(map(str, numbers)))
        position = run[-1]
    return (int(start[0]), int(start[1])), "".join(steps).replace(" -", "-")


def _run_edges(codes: npt.NDArray[Any]) -> list[int]:
    """Return the start of each sequence of equal neighbours, and the end of the last sequence."""
    return [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]


def _lines(moves: npt.NDArray[np.int64]) -> str:
    """Return steps as line segments; merge horizontal or vertical steps in the same direction."""
    moves = moves[moves.any(axis=1)]
    if not len(moves):
        return "h0"
    # -1 and 1: left and right; -2 and 2: up and down; 0: slanted, which is never merged
    horizontal, vertical = np.sign(moves).T
    direction = np.where(horizontal == 0, 2 * vertical, np.where(vertical == 0, horizontal, 0))
    starts_piece = np.concatenate(
        [[True], (direction[1:] != direction[:-1]) | (direction[1:] == 0)]
    )
    pieces = np.add.reduceat(moves, np.flatnonzero(starts_piece), axis=0).tolist()
    return "".join([_line(x, y) for x, y in pieces])


def _line(x: int, y: int) -> str:
    if not y:
        return f"h{x}"
    if not x:
        return f"v{y}"
    return f"l{x} {y}"


def _squares(pixels: npt.NDArray[np.uint8]) -> str:
    """Return unit cells as a path for each colour; neighbours in a row are merged."""
    rows, columns = pixels.shape[:2]
    pieces: dict[bytes, list[str]] = {}
    for row, cells in enumerate(pixels):
        # It is fast to compare the four bytes of a colour as a single number.
        for start, stop in pairwise(_run_edges(cells.view(np.uint32)[:, 0])):
            piece = f"M{start} {row}h{stop - start}v1h{start - stop}z"
            pieces.setdefault(cells[start].tobytes(), []).append(piece)
    if all(colour[3] == 255 for colour in pieces):
        # The most frequent colour becomes a single rectangle, over which all other cells are drawn.
        ground = max(pieces, key=lambda colour: len(pieces[colour]))
        del pieces[ground]
        pieces = {ground: [f"M0 0h{columns}v{rows}h-{columns}z"], **pieces}
    paths: list[str] = []
    for colour, data in pieces.items():
        if colour[3] == 0:
            continue
        shown = colour if colour[3] < 255 else colour[:3]
        paths.append(f'<path fill="#{shown.hex()}" d="{"".join(data)}"/>')
    return "".join(paths)
