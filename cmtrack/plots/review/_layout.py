"""Captions and notes of the review figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from cmtrack.plots.style import caption


def caption_under(ax: Axes, anchor: Artist, lines: Sequence[str], points: float) -> None:
    """Write explanations, `points` wide, below `anchor`, starting at the left edge of the axes."""
    caption(ax, lines, points, ("axes fraction", anchor))


def left_out(total: int, shown: int, what: str) -> list[str]:
    """Return a note about the items that a figure does not show; empty if it shows all items."""
    return [f"{shown} of {total} {what} are shown."] if total > shown else []


BoolArray = npt.NDArray[np.bool_]
