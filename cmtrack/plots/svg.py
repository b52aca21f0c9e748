"""Figures as SVG for pages: text stays text, and ink, frames and background follow a dark scheme.

The renderer is a small one of its own and not matplotlib's, which reads process-wide parameters, makes random ids and
writes every style in full. Nothing global is read or written, so that threads may draw at once.
"""
# ruff: noqa: D102  # the methods of a renderer are matplotlib's

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import wraps
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.backend_bases import GraphicsContextBase, RendererBase
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import weight_dict
from matplotlib.path import Path
from matplotlib.transforms import Affine2D, Transform

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

_UNITS = 10  # of the drawing in a pixel of the figure: all numbers are whole
CSS_DPI = 96
_LEAST = 0.75  # part of its size below which a figure is scrolled, as its text would be too small
_SQUARES = 30 * 30  # cells, beyond which they are an image
_HATCH = 72  # pixels of a tile
_TOP = 0.4  # inches in which a figure has its title
_UNDER = 5.0  # points from its baseline to what is below
_NO_ID = re.compile(r"[^A-Za-z0-9_]")

MOST_CELLS = 40_000
"""Of a matrix that is drawn as cells; beyond, they are smaller than pixels."""
TURNED = {
    INK: "ink",
    MUTED: "soft",
    FRAME: "frame",
    GRID: "grid",
    EMPTY: "empty",
    "#ffffff": "page",
    BAND: "band",
    BLUE.lower(): "data-blue",
}
"""Colours that are those of the page, by the name of its variable."""
_TURNED_TEXT = TURNED | {ORANGE.lower(): "data-orange-text"}
_CAPS = {"projecting": "square", "round": "round"}
_ANCHORS = {"left": "", "center": "middle", "right": "end"}
_ALONG = {"top": "right", "bottom": "left"}  # of upright text: where it ends, where it begins


def as_svg(figure: Figure, name: str = "figure", title: str = "", raster: Any = None) -> str:
    """The figure as an ``<svg>`` element for an HTML page.

    ``name``: distinct in the page: ids begin with it.
    ``title``: what it shows, for those who do not see it.
    The result: an element that is as wide as its box, but at most its own size, and never so narrow that its text
        cannot be read: the box around it is to scroll. It holds no style sheet, no date and no random id. Texts have
        the font of the page. What belongs to a run has ``data-run``, the run's place from 0 on.
    ``raster``: a renderer of images that draws the same.
    """
    width, height = figure.get_size_inches() * figure.dpi
    prefix = _NO_ID.sub(lambda found: f"-{ord(found[0]):x}-", name)
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
    top, scale = renderer.top, CSS_DPI / figure.dpi
    across, high = width * scale, (height - top) * scale
    box = f"{round(width * _UNITS)} {round((height - top) * _UNITS)}"
    label = f"<title>{escape(title)}</title>" if title else ""
    return (
        f'<svg role="img" width="{across:.0f}" height="{high:.0f}" viewBox="0 {round(top * _UNITS)} {box}" fill="none" '
        f'style="min-width:{_LEAST * across:.0f}px;max-width:100%;height:auto" stroke-linejoin="round">'
        f"{label}{renderer.content()}</svg>"
    )


def as_svg_and_png(
    figure: Figure, name: str = "figure", title: str = "", signature: str = ""
) -> tuple[str, bytes]:
    """The element of :func:`as_svg` and the PNG file with a caption strip, in one drawing."""
    raster = raster_of(figure, *(figure.get_size_inches() * figure.dpi))
    svg = as_svg(figure, name, title, raster)
    return svg, png_file(raster.buffer_rgba(), figure.dpi, signature=signature)


def _in_both(draw: Callable[..., None]) -> Callable[..., None]:
    """Have a method of a renderer called of its image, too, where that gets the same."""

    @wraps(draw)
    def drawn(self: SvgRenderer, *args: Any, **kwargs: Any) -> None:
        if self.raster is not None:
            getattr(self.raster, draw.__name__)(*args, **kwargs)
        draw(self, *args, **kwargs)

    return drawn


def _matrix(transform: Transform) -> FloatArray:
    return np.asarray(transform.get_matrix())


class SvgRenderer(RendererBase):
    """Elements of an SVG drawing from matplotlib's artists.

    ``width``, ``height``: in pixels.
    ``prefix``: of all ids.
    ``image``: texts are laid out as in an image.
    ``drawn``: whether the image gets the same, so that laying out and drawing happen once for both.
    ``title``: a page has it beside the element: the same words at the top are left out.
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
        self.width, self.height, self.dpi, self.prefix = width, height, dpi, prefix
        self._measure, self.raster = image, image if drawn else None
        self._title, self._under_title, self._highest = title.casefold(), 0.0, float(height)
        self._parts: list[str] = []
        self._groups: list[bool] = []
        self._defined: dict[object, str] = {}
        self._areas: list[tuple[float, float, float, float]] = []
        self._named: list[str] = []

    def content(self) -> str:
        """The elements, and above all others an empty one for each matrix whose cells have names, with its place."""
        return "".join(self._parts + self._named)

    # -- what matplotlib asks a renderer ---------------------------------------------------------------------

    def get_canvas_width_height(self) -> tuple[float, float]:
        return self.width, self.height

    def flipy(self) -> bool:
        return True

    def option_image_nocomposite(self) -> bool:
        return True  # each image by itself

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
        run = gid is not None and gid.startswith(RUN)
        self._groups.append(run)
        if gid is not None and run:
            self._parts.append(f'<g data-run="{escape(gid.removeprefix(RUN))}">')

    def close_group(self, s: str) -> None:
        if self._groups.pop():
            self._parts.append("</g>")

    @_in_both
    def draw_path(
        self, gc: GraphicsContextBase, path: Path, transform: Transform, rgbFace: Any = None
    ) -> None:
        clip = None if rgbFace is not None or gc.get_hatch() is not None else self._clip_box(gc)
        self._draw(gc, [_Outline(path, self._flipped(transform), clip)], rgbFace)

    @_in_both
    def draw_path_collection(self, gc: GraphicsContextBase, *args: Any, **kwargs: Any) -> None:
        with self._alone():
            super().draw_path_collection(gc, *args, **kwargs)  # each by draw_path

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
        places = np.asarray(trans.transform(path.vertices), dtype=np.float64).reshape(-1, 2)
        shape = _Outline(marker_path, Affine2D(_matrix(marker_trans)).scale(1, -1))
        seen = (places > -_HATCH).all(axis=1) & (
            places < (self.width + _HATCH, self.height + _HATCH)
        ).all(axis=1)
        self._draw(gc, [shape.at(x, self.height - y) for x, y in places[seen].tolist()], rgbFace)

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
        """Draw axis-aligned cells, as those of a colour bar."""
        corners = master_transform.transform(
            np.asarray(coordinates, dtype=np.float64).reshape(-1, 2)
        )
        corners = corners.reshape(meshHeight + 1, meshWidth + 1, 2)
        rows = np.asarray(facecolors, dtype=np.float64).reshape(meshHeight, meshWidth, 4)
        y = corners[:, 0, 1]
        high = max(1, round(abs(y[-1] - y[0])))
        middle = np.linspace(y[0], y[-1], 2 * high + 1)[1::2]
        rows_at = np.clip(np.searchsorted(y, middle) - 1, 0, meshHeight - 1)
        box = (corners[0, 0, 0], y[0], corners[0, -1, 0], y[-1])
        self._areas.append(box)
        self._image(np.rint(255 * rows[rows_at][::-1]).astype(np.uint8), box, "")

    @property
    def top(self) -> float:
        """The end of what is left out at the top, in pixels: above every other text."""
        return max(min(self._under_title, self._highest), 0.0)

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
        if ismath:  # no text of ours is a formula
            with self._alone():
                super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
            return
        if s.casefold() == self._title and y < _TOP * self.dpi:
            self._under_title = y + self.points_to_pixels(_UNDER)
            return
        if not angle:
            self._highest = min(
                self._highest, y - self.points_to_pixels(1.2 * prop.get_size_in_points())
            )
        side = "left" if mtext is None else _side(mtext, angle)
        if side != "left":  # a browser's font is not as wide: what is flush or centred stays so
            across = self.get_text_width_height_descent(s, prop, ismath)[0] * (
                0.5 if side == "center" else 1.0
            )
            turn = np.deg2rad(angle)
            x, y = x + across * np.cos(turn), y - across * np.sin(turn)
        attributes = f' text-anchor="{_ANCHORS[side]}"' if side != "left" else ""
        if angle:
            attributes += f' transform="rotate({-angle:g} {self._whole(x)} {self._whole(y)})"'
        bold = weight_dict.get(prop.get_weight(), prop.get_weight()) >= 600
        self._text(s, x, y, prop.get_size_in_points(), bold, gc.get_rgb(), attributes)

    # -- what artists of our own ask ---------------------------------------------------------------------------

    def draw_cells(
        self, rgba: FloatArray, box: tuple[float, float, float, float], names: str = ""
    ) -> None:
        """Cells of shape (rows, columns, 4), row 0 on top, that fill (left, bottom, right, top) in pixels."""
        left, low, right, top = box
        self._areas.append((min(left, right), min(low, top), max(left, right), max(low, top)))
        pixels = np.rint(255 * rgba).astype(np.uint8)
        rows, columns = pixels.shape[:2]
        across, high = (right - left) * _UNITS / columns, (top - low) * _UNITS / rows
        place = f"{self._whole(left)} {self._whole(self.height - top)}"
        if names:
            self._named.append(
                f'<g data-cells="{escape(names)} {place} {across:.4g} {high:.4g}"></g>'
            )
        if rows * columns <= _SQUARES:
            self._parts.append(
                f'<g transform="translate({place})scale({across:.4g} {high:.4g})" shape-rendering="crispEdges">'
                f"{_squares(pixels)}</g>"
            )
            return
        self._image(pixels, box, ' style="image-rendering:pixelated"')

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
        """Texts centred at places in pixels, `line` font sizes a line, the baseline `middle` below the centre."""
        font = self.points_to_pixels(size)
        self._parts.append(f'<g text-anchor="middle" font-size="{self._whole(font)}">')
        for text, (x, y), colour, heavy in zip(texts, places.tolist(), colours, bold, strict=True):
            lines = text.split("\n")
            down = self.height - y + font * (middle - (len(lines) - 1) * line / 2)
            for number, words in enumerate(lines):
                weight = ' font-weight="700"' if heavy else ""
                self._parts.append(
                    f'<text x="{self._whole(x)}" y="{self._whole(down + number * line * font)}" '
                    f'fill="{to_hex(colour)}"{weight}>{escape(words, quote=False)}</text>'
                )
        self._parts.append("</g>")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude everything drawn meanwhile from the image."""
        raster, self.raster = self.raster, None
        yield
        self.raster = raster

    # -- elements ----------------------------------------------------------------------------------------------

    def _text(
        self, words: str, x: float, y: float, points: float, bold: bool, rgba: Any, attributes: str
    ) -> None:
        weight = ' font-weight="700"' if bold else ""
        opacity = f' fill-opacity="{rgba[3]:.2g}"' if rgba[3] < 1 else ""
        fill = self._colour("fill", rgba, self._is_on_cells(x, self.height - y), text=True)
        self._parts.append(
            f'<text x="{self._whole(x)}" y="{self._whole(y)}" font-size="{self._whole(self.points_to_pixels(points))}"'
            f"{attributes}{weight}{fill}{opacity}>{escape(words, quote=False)}</text>"
        )

    def _image(
        self, pixels: npt.NDArray[np.uint8], box: tuple[float, float, float, float], style: str
    ) -> None:
        left, low, right, top = box
        data = base64.b64encode(png_file(pixels, compression=9)).decode("ascii")
        self._parts.append(
            f'<image x="{self._whole(left)}" y="{self._whole(self.height - top)}" '
            f'width="{self._whole(right - left)}" height="{self._whole(top - low)}" preserveAspectRatio="none"{style} '
            f'href="data:image/png;base64,{data}"/>'
        )

    def _flipped(self, transform: Transform) -> Affine2D | Transform:
        return transform + Affine2D().scale(1, -1).translate(0, self.height)

    def _clip_box(self, gc: GraphicsContextBase) -> tuple[float, float, float, float] | None:
        box = gc.get_clip_rectangle()
        return None if box is None else (box.x0, self.height - box.y1, box.x1, self.height - box.y0)

    def _draw(self, gc: GraphicsContextBase, outlines: Sequence[_Outline], face: Any) -> None:
        drawn = [outline for outline in outlines if outline.box]
        if not drawn:
            return
        boxes = np.array([outline.box for outline in drawn])
        left, top = boxes[:, :2].min(axis=0).tolist()
        right, low = boxes[:, 2:].max(axis=0).tolist()
        style = self._style(
            gc, face, self._is_on_cells((left + right) / 2, self.height - (top + low) / 2)
        )
        if not style:
            return
        clip = self._clip_box(gc)
        clip_path: Any = gc.get_clip_path()
        limit = ""
        if clip_path[0] is not None:
            limit = self._define_clip(_Outline(clip_path[0], self._flipped(clip_path[1])).data)
        elif clip is not None:
            if right < clip[0] - 1 or left > clip[2] + 1 or low < clip[1] - 1 or top > clip[3] + 1:
                return
            slack = 1 + self.points_to_pixels(gc.get_linewidth())
            if (
                left < clip[0] - slack
                or top < clip[1] - slack
                or right > clip[2] + slack
                or low > clip[3] + slack
            ):
                x, y, to_x, to_y = map(self._whole, clip)
                limit = self._define_clip(f"M{x} {y}H{to_x}V{to_y}H{x}z")
        self._parts.append(
            f'<path d="{"".join(outline.data for outline in drawn)}"{style}{limit}/>'
        )

    def _define_clip(self, data: str) -> str:
        name = self._defined.get(data)
        if name is None:
            name = self._defined[data] = f"{self.prefix}-{len(self._defined)}"
            self._parts.append(f'<clipPath id="{name}"><path d="{data}"/></clipPath>')
        return f' clip-path="url(#{name})"'

    def _style(self, gc: GraphicsContextBase, face: Any, fixed: bool) -> str:
        """The style attributes; empty if nothing would be visible."""
        parts = []
        alpha = gc.get_alpha() if gc.get_forced_alpha() else None
        if gc.get_hatch() is not None:
            parts.append(f' fill="url(#{self._define_hatch(gc, face, fixed)})"')
        elif face is not None and not (len(face) == 4 and face[3] == 0):
            parts.append(self._colour("fill", face, fixed))
            if alpha is None and len(face) == 4 and face[3] < 1:
                parts.append(f' fill-opacity="{face[3]:.2g}"')
        width, rgb = self.points_to_pixels(gc.get_linewidth()), gc.get_rgb()
        if width and (len(rgb) < 4 or rgb[3] > 0):
            parts.append(
                f'{self._colour("stroke", rgb, fixed)} stroke-width="{self._whole(width)}"'
            )
            if alpha is None and rgb[3] < 1:
                parts.append(f' stroke-opacity="{rgb[3]:.2g}"')
            start, dashes = gc.get_dashes()
            if dashes is not None:
                parts.append(
                    f' stroke-dasharray="{" ".join(map(self._whole, self.points_to_pixels(np.array(dashes))))}"'
                )
                if start:
                    parts.append(
                        f' stroke-dashoffset="{self._whole(self.points_to_pixels(start))}"'
                    )
            if gc.get_joinstyle() != "round":
                parts.append(f' stroke-linejoin="{gc.get_joinstyle()}"')
            if gc.get_capstyle() in _CAPS:
                parts.append(f' stroke-linecap="{_CAPS[gc.get_capstyle()]}"')
        if parts and alpha is not None and alpha < 1:
            parts.append(f' opacity="{alpha:.2g}"')
        return "".join(parts)

    def _define_hatch(self, gc: GraphicsContextBase, face: Any, fixed: bool) -> str:
        key = (
            gc.get_hatch(),
            None if face is None else tuple(face),
            tuple(gc.get_hatch_color()),
            fixed,
        )
        name = self._defined.get(key)
        if name is None:
            name = self._defined[key] = f"{self.prefix}-{len(self._defined)}"
            outline = _Outline(
                gc.get_hatch_path(), Affine2D().scale(_HATCH, -_HATCH).translate(0, _HATCH)
            )
            side = self._whole(_HATCH)
            ground = (
                ""
                if face is None
                else f'<path d="M0 0h{side}v{side}h-{side}z"{self._colour("fill", face, fixed)}/>'
            )
            lines = self._colour("stroke", gc.get_hatch_color(), fixed)
            width = self._whole(self.points_to_pixels(gc.get_hatch_linewidth()))
            self._parts.append(
                f'<pattern id="{name}" patternUnits="userSpaceOnUse" width="{side}" height="{side}">{ground}'
                f'<path d="{outline.data}"{lines} stroke-width="{width}"/></pattern>'
            )
        return name

    def _colour(self, what: str, rgba: Any, fixed: bool, *, text: bool = False) -> str:
        """A colour as an attribute: a variable of the page; on cells, whose colours are fixed, the colour itself."""
        shown = to_hex(rgba[:3])
        turned = (_TURNED_TEXT if text else TURNED).get(shown)
        if turned is None or fixed or (text and turned == "page"):
            return f' {what}="{shown}"'
        return f' {what}="var(--{turned})"'

    def _is_on_cells(self, x: float, y: float) -> bool:
        return any(left <= x <= right and low <= y <= top for left, low, right, top in self._areas)

    @staticmethod
    def _whole(pixels: Any) -> str:
        return str(round(float(pixels) * _UNITS))


class _Outline:
    """A path in pixels: start, relative steps, and bounding box."""

    def __init__(
        self,
        path: Path,
        transform: Transform,
        clip: tuple[float, float, float, float] | None = None,
    ) -> None:
        self.box: tuple[float, ...] = ()  # of nothing
        self.start, self.rest = (0, 0), ""
        matrix = _matrix(transform) if path is Path.unit_circle() else None
        if matrix is not None and np.allclose(
            [abs(matrix[0, 0]), matrix[0, 1]], [abs(matrix[1, 1]), matrix[1, 0]]
        ):
            x, y, r = matrix[0, 2], matrix[1, 2], float(np.hypot(matrix[0, 0], matrix[0, 1]))
            if np.isfinite([x, y, r]).all():
                self.box = (x - r, y - r, x + r, y + r)
                self.start, radius = (round(_UNITS * (x - r)), round(_UNITS * y)), round(_UNITS * r)
                self.rest = f"a{radius} {radius} 0 1 0 {2 * radius} 0a{radius} {radius} 0 1 0 {-2 * radius} 0z"
            return
        simple = bool(path.should_simplify) and clip is not None
        cleaned = path.cleaned(
            transform=transform, remove_nans=True, clip=clip, simplify=simple, curves=True
        )
        codes, vertices = np.asarray(cleaned.codes), np.asarray(cleaned.vertices)
        seen = vertices[(codes != Path.STOP) & (codes != Path.CLOSEPOLY)]
        if len(seen):
            self.box = (*seen.min(axis=0).tolist(), *seen.max(axis=0).tolist())
            self.start, self.rest = _data(np.rint(_UNITS * vertices), codes)

    @property
    def data(self) -> str:
        """Of a path element."""
        return f"M{self.start[0]} {self.start[1]}{self.rest}"

    def at(self, x: float, y: float) -> _Outline:
        """The same elsewhere."""
        moved = copy(self)
        if self.box:
            left, top, right, low = self.box
            moved.box = (left + x, top + y, right + x, low + y)
            moved.start = (self.start[0] + round(_UNITS * x), self.start[1] + round(_UNITS * y))
        return moved


_LETTERS = {Path.CURVE3: ("q", 2), Path.CURVE4: ("c", 3)}


def _data(vertices: FloatArray, codes: npt.NDArray[Any]) -> tuple[tuple[int, int], str]:
    """SVG path data in integers: the start, then relative steps."""
    points = vertices.astype(np.int64)
    # runs of points of one kind
    edges = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
    here = begin = points[0]
    out: list[str] = []
    for start, stop in pairwise(edges):
        kind, run = codes[start], points[start:stop]
        if kind == Path.STOP:
            break
        if kind == Path.MOVETO:
            if start:
                out.append("m{} {}".format(*(run[-1] - here).tolist()))
            here = begin = run[-1]
        elif kind == Path.CLOSEPOLY:
            out.append("z")
            here = begin  # there the next part begins to count
        else:
            if kind == Path.LINETO:
                out.append(_lines(np.diff(run, axis=0, prepend=here[None])))
            else:
                letter, step = _LETTERS[kind]
                origins = np.concatenate([here[None], run[step - 1 : -1 : step]]).repeat(
                    step, axis=0
                )
                out.append(letter + " ".join(map(str, (run - origins).ravel().tolist())))
            here = run[-1]
    first = points[0] if codes[0] != Path.MOVETO else points[edges[1] - 1]
    return (int(first[0]), int(first[1])), "".join(out).replace(" -", "-")


def _lines(moves: npt.NDArray[np.int64]) -> str:
    """Line segments; consecutive horizontal or vertical ones in one direction are merged."""
    moved = moves[moves.any(axis=1)]
    if not len(moved):
        return "h0"
    way = np.where(
        moved[:, 1] == 0,
        np.sign(moved[:, 0]),
        np.where(moved[:, 0] == 0, 2 * np.sign(moved[:, 1]), 0),
    )
    other = np.concatenate([[True], (way[1:] != way[:-1]) | (way[1:] == 0)])
    pieces = np.add.reduceat(moved, np.flatnonzero(other), axis=0).tolist()
    return "".join([f"h{x}" if not y else f"v{y}" if not x else f"l{x} {y}" for x, y in pieces])


def _squares(pixels: npt.NDArray[np.uint8]) -> str:
    """Unit cells as one path per colour, with neighbours in a row merged; the most frequent colour lies below."""
    rows, columns = pixels.shape[:2]
    pieces: dict[tuple[int, ...], list[str]] = {}
    for row, cells in enumerate(pixels):
        edges = np.concatenate(
            [[0], np.flatnonzero((cells[1:] != cells[:-1]).any(axis=1)) + 1, [columns]]
        ).tolist()
        for start, stop in pairwise(edges):
            pieces.setdefault(tuple(cells[start].tolist()), []).append(
                f"M{start} {row}h{stop - start}v1h{start - stop}z"
            )
    if all(colour[3] == 255 for colour in pieces):
        most = max(pieces, key=lambda colour: len(pieces[colour]))
        pieces = {most: [f"M0 0h{columns}v{rows}h-{columns}z"]} | {
            c: p for c, p in pieces.items() if c != most
        }
    return "".join(
        f'<path fill="#{"".join(f"{part:02x}" for part in (colour if colour[3] < 255 else colour[:3]))}" '
        f'd="{"".join(parts)}"/>'
        for colour, parts in pieces.items()
        if colour[3]
    )


def _side(text: Any, angle: float) -> str:
    """The text anchor of an alignment."""
    if angle and text.get_rotation_mode() != "anchor":
        if angle % 180 == 90:
            side = _ALONG.get(text.get_va(), "center")
            return (
                side
                if angle % 360 == 90 or side == "center"
                else {"left": "right", "right": "left"}[side]
            )
        return "left"
    return str(getattr(text, "_multialignment", None) or text.get_ha())
