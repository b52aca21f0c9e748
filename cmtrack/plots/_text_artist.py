"""A single artist that draws many labels from cached glyph outlines."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.collections import PathCollection
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextPath, text_to_path
from matplotlib.transforms import Affine2D

from .style import FloatArray
from .svg import SvgRenderer

Outline: TypeAlias = tuple[FloatArray, npt.NDArray[np.uint8]]

_LINE = 1.28  # distance between baselines, in font sizes
_MIDDLE = 0.355  # height of the middle of digits and capitals above the baseline


class Words(PathCollection):
    """Texts of the same size, each centred at a position in data coordinates; skips empty texts.

    ``places``, shape (n, 2): the positions of the texts.
    """

    def __init__(
        self,
        texts: Sequence[str],
        places: FloatArray,
        colours: Sequence[str],
        size: float,
        bold: Sequence[bool],
        ax: Axes,
    ) -> None:
        written = [i for i, text in enumerate(texts) if text]
        self.texts = [texts[i] for i in written]
        self.bold = [bool(bold[i]) for i in written]
        self.colours = [colours[i] for i in written]
        self.places = places[written]
        fonts = [FontProperties(weight=weight, size=1.0) for weight in ("normal", "bold")]
        paths = [
            _block(text, fonts[heavy]) for text, heavy in zip(self.texts, self.bold, strict=True)
        ]
        super().__init__(
            paths,
            offsets=self.places,
            offset_transform=ax.transData,
            facecolors=self.colours,
            linewidths=0,
            zorder=3,
        )
        self._points = size
        self.set_in_layout(False)

    def draw(self, renderer: RendererBase) -> None:
        if isinstance(renderer, SvgRenderer):
            places = self.get_offset_transform().transform(self.places)
            renderer.draw_words(
                self.texts, places, self.colours, self._points, self.bold, _LINE, _MIDDLE
            )
            if renderer.raster is None:
                return
            renderer = renderer.raster
        pixels: Any = renderer.points_to_pixels(self._points)
        self.set_transform(Affine2D().scale(pixels))
        super().draw(renderer)


def _block(text: str, font: FontProperties) -> Path:
    """Return the outline of a text of several lines at font size 1; its centre is at (0, 0)."""
    lines = text.split("\n")
    below = np.arange(len(lines) - 1, -1, -1) * _LINE - (len(lines) - 1) * _LINE / 2 - _MIDDLE
    parts = [_line(line, font) for line in lines]
    vertices = [
        outline + np.array([0.0, height]) for (outline, _), height in zip(parts, below, strict=True)
    ]
    return Path(np.concatenate(vertices), np.concatenate([codes for _, codes in parts]))


def _line(text: str, font: FontProperties) -> Outline:
    glyphs = [_glyph(character, font) for character in text]
    ends = np.cumsum([width for _, _, width in glyphs])
    starts = ends - [width for _, _, width in glyphs] - ends[-1] / 2
    outlines = [
        outline + np.array([start, 0.0])
        for (outline, _, _), start in zip(glyphs, starts, strict=True)
    ]
    return np.concatenate(outlines), np.concatenate([codes for _, codes, _ in glyphs])


@lru_cache(maxsize=512)
def _glyph(character: str, font: FontProperties) -> tuple[FloatArray, npt.NDArray[np.uint8], float]:
    path = TextPath((0.0, 0.0), character, size=1.0, prop=font)
    width, _, _ = text_to_path.get_text_width_height_descent(character, font, ismath=False)
    return (
        np.asarray(path.vertices).reshape(-1, 2),
        np.asarray(path.codes, dtype=np.uint8),
        width / font.get_size(),
    )
