"""Panels in rows and columns, each as large as what is written around all of them allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .fonts import use_fallbacks
from .style import PAD, TITLE_SIZE


def arrange(figure: Figure, panels: Sequence[Sequence[Axes]], below: Artist | None = None) -> None:
    """Give the panels the room that their names and numbers, the figure's title and `below` leave.

    All panels of a column are equally wide, all of a row equally high. Everything is measured once, where it stands.
    """
    use_fallbacks(figure)
    renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    full = figure.get_size_inches() * figure.dpi
    pad = PAD * figure.dpi
    title = TITLE_SIZE / 72 * 1.6 * figure.dpi if figure.get_suptitle() else 0.0
    low = below.get_window_extent(renderer).height + pad if below is not None else pad
    around = np.array([[_around(ax, renderer) for ax in row] for row in panels])
    left, right = around[..., 0].max(axis=0) + pad, around[..., 1].max(axis=0)
    top, bottom = around[..., 2].max(axis=1), around[..., 3].max(axis=1) + pad
    width = (full[0] - pad - left.sum() - right.sum()) / len(left)
    height = (full[1] - low - title - top.sum() - bottom.sum()) / len(top)
    y = full[1] - title
    for row, above, under in zip(panels, top, bottom, strict=True):
        y -= above + height
        x = 0.0
        for ax, before, after in zip(row, left, right, strict=True):
            ax.set_position(((x + before) / full[0], y / full[1], width / full[0], height / full[1]))
            x += before + width + after
        y -= under


def _around(ax: Axes, renderer: Any) -> tuple[float, float, float, float]:
    """How far left, right, above and below of the axes something is written."""
    inner, outer = ax.get_window_extent(renderer), ax.get_tightbbox(renderer, bbox_extra_artists=[])
    if outer is None:
        return 0.0, 0.0, 0.0, 0.0
    return inner.x0 - outer.x0, outer.x1 - inner.x1, outer.y1 - inner.y1, inner.y0 - outer.y0
