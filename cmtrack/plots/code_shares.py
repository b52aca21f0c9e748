"""What stands behind one code: bars of the two distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack.untrusted import one_line

from . import labels as text
from .fonts import columns, use_fallbacks
from .style import BLUE, GREEN, INK, MUTED, ORANGE, SMALL_SIZE, TEXT_SIZE, open_axes, panel_figure, plain_axes

_SHARES = {0.0: "0%", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "100%"}


def plot_code_shares(
    code: object,
    given_predicted: Sequence[tuple[str, float, float, float]],
    given_actual: Sequence[tuple[str, float, float, float]],
    documents: tuple[int, int],
    *,
    confidence_level: float = 0.95,
    few: tuple[bool, bool] = (False, False),
    most: int = 8,
) -> Figure:
    """Draw two distributions: the actual codes where a code is predicted, and the predicted ones where it is actual.

    Parameters
    ----------
    code : object
    given_predicted, given_actual : sequence of (name, share, low, high)
        The code itself first, then siblings by their share, out of family last.
    documents : (int, int)
        With the code predicted, and actual.
    confidence_level : float
        Of the intervals.
    few : (bool, bool)
        Whether there are too few documents to rely on.
    most : int
        Siblings that are shown; the others are put together.

    Returns
    -------
    matplotlib.figure.Figure
    """
    sides = [_shortened(side, most) for side in (given_predicted, given_actual)]
    widest = max((columns(one_line(name)) for side in sides for name, *_ in side), default=8)
    rows = max(1, *map(len, sides))
    figure = panel_figure((7.2 + 0.11 * min(widest, 28), 1.75 + 0.34 * rows))
    figure.suptitle(text.brief(code, 40), fontsize=12, color=INK)
    titles = ("Actual codes where it is predicted", "Predicted codes where it is actual")
    for ax, side, n, words, rare in zip(figure.subplots(1, 2), sides, documents, titles, few, strict=True):
        _bars(ax, side, rows)
        many = f"{n:,} document{'s' if n != 1 else ''}"
        ax.set_title(
            f"{words}\n{many}{' – too few to rely on' if rare else ''}",
            fontsize=TEXT_SIZE,
            color=ORANGE if rare else INK,
        )
    figure.supxlabel(
        f"share of these documents, with {100 * confidence_level:g}% intervals", fontsize=SMALL_SIZE, color=INK
    )
    use_fallbacks(figure)
    return figure


def _shortened(side: Sequence[tuple[str, float, float, float]], most: int) -> list[tuple[str, float, float, float]]:
    """The most frequent siblings, the others put together in one bar without an interval."""
    if len(side) <= most + 2:
        return list(side)
    own, siblings, outside = side[0], side[1:-1], side[-1]
    rest = siblings[most - 1 :]
    together = (f"{len(rest)} more siblings", sum(share for _, share, *_ in rest), math.nan, math.nan)
    return [own, *siblings[: most - 1], together, outside]


def _bars(ax: Axes, side: Sequence[tuple[str, float, float, float]], rows: int) -> None:
    plain_axes(ax)
    open_axes(ax)
    ax.grid(False, axis="y")
    places = np.arange(len(side))
    shares = np.nan_to_num([share for _, share, *_ in side])
    colours = [GREEN, *[BLUE] * max(0, len(side) - 2), MUTED][: len(side)]
    ax.barh(places, shares, color=colours, height=0.62, zorder=2)
    for place, (_, share, low, high) in enumerate(side):
        end = share
        if math.isfinite(low):
            ax.plot([low, high], [place, place], color=INK, lw=1.1, solid_capstyle="butt", zorder=3)
            end = high
        if math.isfinite(share):
            ax.text(end + 0.015, place, text.share_text(share), va="center", fontsize=SMALL_SIZE, color=INK)
    names = text.short_names([name for name, *_ in side], 28)
    ax.set_yticks(places, names, fontsize=SMALL_SIZE, color=INK)
    ax.set(xlim=(0, 1.14), ylim=(rows - 0.5, -0.5))
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1.0], list(_SHARES.values()), fontsize=SMALL_SIZE)
    if not any(math.isfinite(share) for _, share, *_ in side):
        ax.text(0.5, 0.5, "no documents", transform=ax.transAxes, ha="center", va="center", color=MUTED)
