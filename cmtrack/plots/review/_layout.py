"""Parts of the review figures: captions, numbers in columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from cmtrack.plots.style import FloatArray, caption


def caption_under(ax: Axes, anchor: Artist, lines: Sequence[str], points: float) -> None:
    """Small explanations, `points` wide, below `anchor`, aligned with the left edge of the axes."""
    caption(ax, lines, points, ("axes fraction", anchor))


def decimals(values: FloatArray) -> int:
    """Decimals that distinguish `values`: three for shares, more if they are close, fewer for large ones."""
    there = values[np.isfinite(values)]
    if not there.size:
        return 3
    largest, spread = float(np.abs(there).max()), float(np.ptp(there))
    least = max(0, 3 - max(0, math.ceil(math.log10(largest)))) if largest > 1 else 3
    return least if spread == 0 else int(np.clip(1 + math.ceil(-math.log10(spread)), least, 5))


def number(value: float, places: int, *, sign: bool = False) -> str:
    """A number with a real minus; "–" for NaN. With `sign` a value that is rounded to 0 keeps its sign."""
    if not math.isfinite(value):
        return "–"
    shown = f"{value:+.{places}f}" if sign and value else f"{round(value, places) + 0.0:.{places}f}"
    return shown.replace("-", "−")


def left_out(total: int, shown: int, what: str) -> list[str]:
    """The note on items that a figure leaves out, if any."""
    return [f"{shown} of {total} {what} are shown."] if total > shown else []


BoolArray = npt.NDArray[np.bool_]
