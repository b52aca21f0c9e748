"""The one look of all figures, given explicitly so that no global matplotlib state is read or written.

Not even ``matplotlib.rc_context`` is used: it swaps the process-wide parameters for a moment, which two
threads drawing at once can leave changed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend

FloatArray = npt.NDArray[np.float64]

DPI = 130
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
BLUE = "#0072B2"
ORANGE = "#D55E00"
SKY = "#56B4E9"
GREEN = "#009E73"
PINK = "#CC79A7"
YELLOW = "#E69F00"


def _ramp(name: str, *colours: str) -> Colormap:
    ramp = LinearSegmentedColormap.from_list(name, list(colours), N=512)
    ramp.set_bad(EMPTY)
    return ramp


def hit_map() -> Colormap:
    """White to dark blue: shares of an actual class."""
    return _ramp("cmtrack_share", "#ffffff", "#d3e6f3", "#7fb8da", "#2b7bba", "#0b3c6b")


def mismatch_map() -> Colormap:
    """White to dark orange: shares of intragroup mismatches."""
    return _ramp("cmtrack_mismatch", "#ffffff", "#fde3c8", "#f6a860", "#d55e00", "#7f3300")


def separation_map() -> Colormap:
    """Near-black (-1) over red (0) to near-white (1), lightness always rising: trouble is dark."""
    return _ramp("cmtrack_separation", "#1b0a2a", "#5a0f4d", "#b3123f", "#ee7b32", "#fbd48a", "#fdfaf0")


def figure_and_axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """The figure and axes to draw into: those of `ax`, or new ones of `size` inches without pyplot."""
    if ax is None:
        figure = new_figure(size)
        ax = figure.add_subplot()
    else:
        figure = root_figure(ax)
    plain_axes(ax)
    return figure, ax


def new_figure(size: tuple[float, float]) -> Figure:
    """A figure that belongs to no pyplot registry and makes room for its own labels."""
    return Figure(figsize=size, dpi=DPI, facecolor="white", layout="constrained")


def root_figure(ax: Axes) -> Figure:
    """The figure that holds `ax`, also where `ax` stands in a subfigure."""
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
    for spine in ax.spines.values():
        spine.set(visible=True, color=FRAME, linewidth=0.8)
    ax.tick_params(
        which="both", direction="out", color=FRAME, labelcolor=INK, labelsize=SMALL_SIZE, width=0.8, length=3
    )


def open_axes(ax: Axes) -> None:
    """Curve axes: no upper and right frame, a light grid."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(True, color=GRID, linewidth=0.7, linestyle="-")


def name_axes(ax: Axes, x: str, y: str, title: str | None) -> None:
    """Axis labels and, where given, the title."""
    ax.set_xlabel(x, fontsize=TEXT_SIZE, color=INK)
    ax.set_ylabel(y, fontsize=TEXT_SIZE, color=INK)
    if title is not None:
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, pad=9)


def caption_below(ax: Axes, text: str) -> None:
    """A small explanation under the x axis' label; the layout makes room for it."""
    ax.annotate(
        text, xy=(0.5, 0.0), xycoords=ax.xaxis.label, xytext=(0, -7), textcoords="offset points",
        ha="center", va="top", fontsize=SMALL_SIZE, color=MUTED, annotation_clip=False,
    )  # fmt: skip


def legend_below(ax: Axes, handles: list[Artist] | None = None) -> Legend:
    """A legend under the axes, where it can hide no data."""
    options: dict[str, Any] = {} if handles is None else {"handles": handles}
    return ax.legend(
        loc="upper left", bbox_to_anchor=(0.0, -0.13), borderaxespad=0.0, frameon=False,
        fontsize=SMALL_SIZE, labelcolor=INK, handlelength=2.4, **options,
    )  # fmt: skip
