"""The parts of a forest plot: rows of dots and intervals, and their numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from cmtrack.plots.style import BLUE, GRID, INK, ORANGE, FloatArray, open_axes

from . import checks
from .layout import decimals, number

FONT = 7.5  # of the numbers
_BAND = "#e4eff7"
_FAR = 6.0  # times the median distance from the first row: beyond, a row does not stretch the axis


def _range(centres: FloatArray, limits: FloatArray, zero: bool) -> tuple[float, float]:
    """Axis limits around all rows but those that are many times further from the first than the others."""
    distance = np.abs(centres - centres[0])
    others = distance[1:][np.isfinite(distance[1:]) & (distance[1:] > 0)]
    near = distance <= (_FAR * np.median(others) if others.size else np.inf)
    kept = np.concatenate([centres[near], limits[near].ravel(), limits[:1].ravel(), [0.0] * zero])
    kept = kept[np.isfinite(kept)]
    if not kept.size:
        return -1.0, 1.0
    low, high = float(kept.min()), float(kept.max())
    margin = 0.06 * (high - low) or 0.05 * abs(high) or 0.1
    return low - margin, high + margin


def draw_panel(
    ax: Axes,
    centres: FloatArray,
    limits: FloatArray,
    tied: checks.BoolArray,
    bands: checks.BoolArray,
    star: int | None,
    reach: float,
    *,
    zero: bool,
) -> bool:
    """Dots and intervals in rows, bands up to `reach` panel widths; `zero`: with a line there.

    Returns whether a row lies beyond the axis.
    """
    open_axes(ax)
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)
    low, high = _range(centres, limits, zero)
    for top in np.flatnonzero(bands) - 0.5:
        ax.add_patch(
            Rectangle(
                (0.0, float(top)), reach, 1, transform=ax.get_yaxis_transform(), clip_on=False, facecolor=_BAND,
                edgecolor="none", zorder=0.2,
            )
        )  # fmt: skip
    beyond = False
    for row, (centre, (start, stop)) in enumerate(zip(centres, limits, strict=True)):
        colour, marker = (BLUE, "o") if tied[row] else (ORANGE, "s")
        if np.isfinite(start) and np.isfinite(stop):
            ax.plot([start, stop], [row, row], color=colour, linewidth=1.6, solid_capstyle="butt", zorder=2)
        if not np.isfinite(centre):
            continue
        where = float(np.clip(centre, low, high))
        size = 5.5
        if where != centre:
            beyond = True
            marker, size = (">" if centre > high else "<"), 7.0
        elif row == star:
            marker, size = "*", 12.0
        ax.plot([where], [row], marker=marker, markersize=size, color=colour, markeredgecolor="white",
                markeredgewidth=0.6, linestyle="none", zorder=3, clip_on=False)  # fmt: skip
    if zero:
        ax.axvline(0.0, color=INK, linewidth=0.9, zorder=1.5)
    ax.set_xlim(low, high)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.ticklabel_format(axis="x", style="plain", useOffset=False)  # no "+8.7e-1" at the axis
    ax.grid(True, axis="x", color=GRID, linewidth=0.7)
    return beyond


def numbers(centres: FloatArray, limits: FloatArray, *, sign: bool) -> list[str]:
    places = decimals(centres)
    texts = []
    for centre, (low, high) in zip(centres, limits, strict=True):
        words = number(centre, places, sign=sign) if np.isfinite(centre) else "undefined"
        if np.isfinite([centre, low, high]).all():
            words += f" ({number(low, places, sign=sign)} to {number(high, places, sign=sign)})"
        texts.append(words)
    return ["leader", *texts[1:]] if sign else texts


def write_numbers(ax: Axes, texts: Sequence[str]) -> None:
    beside = ax.get_yaxis_transform() + ScaledTranslation(8 / 72, 0, ax.figure.dpi_scale_trans)
    for row, words in enumerate(texts):
        ax.text(1.0, row, words, transform=beside, va="center", ha="left", fontsize=FONT, color=INK)
