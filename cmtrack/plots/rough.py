"""A figure of the lower and upper approximations of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from cmtrack import digits

from . import _heatmap as heat
from . import _text as text
from .style import (
    BLUE,
    INK,
    SMALL_SIZE,
    TEXT_SIZE,
    FloatArray,
    curve_sheet,
    extent_points,
    fold,
    legend_below,
    name_axes,
    of_shape,
)

_BOUNDARY = "#a9cfe6"
_WIDTH = 5.2  # inches


def plot_rough_approximations(
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    sizes: npt.ArrayLike,
    labels: Sequence[object],
    *,
    condition: str | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the lower approximation, upper approximation and size of each class as bars.

    ``Evaluation.figures()`` does not include this figure. Every run draws and stores its figures,
    and this figure shows nothing that the confusion matrix does not already show.

    Parameters
    ----------
    lower, upper : array_like of shape (K,)
        Number of rows in the lower and in the upper approximation. You can also pass bounds: an
        upper bound of the lower approximation and a lower bound of the upper approximation.
    sizes : array_like of shape (K,)
        Number of rows of each class.
    labels : sequence of length K
        Class names.
    condition : str, optional
        If `lower` and `upper` are bounds, a sentence that says when these bounds hold. The sentence
        is printed below the figure.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If the shapes differ, a number is negative or not finite, or `lower` is above `upper` for a
        class.

    References
    ----------
    Pawlak (1982), Rough sets; Düntsch & Gediga (2019), Confusion matrices and rough set data
    analysis.

    Examples
    --------
    >>> from cmtrack.plots import plot_rough_approximations
    >>> plot_rough_approximations([30, 20], [45, 40], [38, 32], ["no", "yes"]).savefig("rough.png")
    """
    inner, outer, counts = _checked(lower, upper, sizes, labels)
    size = len(inner)
    page, ax = curve_sheet(ax, (_WIDTH, size * float(np.clip(12.0 / size, 0.07, 0.36))))
    ax.grid(False, axis="y")
    row = extent_points(ax)[1] / size
    font = float(np.clip(0.8 * row, SMALL_SIZE, TEXT_SIZE))
    places = np.arange(size)
    ax.barh(places, inner, 0.72, color=BLUE, linewidth=0)
    ax.barh(places, outer - inner, 0.72, left=inner, color=_BOUNDARY, linewidth=0)
    there = counts > 0
    ax.plot(
        counts[there],
        places[there],
        linestyle="none",
        marker="|",
        color=INK,
        zorder=3,
        clip_on=False,
        markersize=float(np.clip(0.9 * row, 3, 22)),
        markeredgewidth=float(np.clip(row / 9, 0.8, 2.2)),
    )
    ax.set(
        xlim=(0, 1.03 * max(float(outer.max()), float(counts.max()), 1e-9)), ylim=(size - 0.5, -0.5)
    )
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: digits.short_count(value)))
    step = text.tick_step(row, font)
    names = text.short_names(labels, 30)
    ax.set_yticks(places[::step], names[::step], fontsize=font, color=INK)
    ax.tick_params(axis="y", length=0 if step == 1 else 3)
    if step == 1:
        beside = ax.get_yaxis_transform() + ScaledTranslation(6 / 72, 0, ax.figure.dpi_scale_trans)
        look: dict[str, Any] = {
            "va": "center",
            "ha": "left",
            "fontsize": min(font, SMALL_SIZE),
            "color": INK,
        }
        for place, numbers in enumerate(zip(inner, counts, outer, strict=True)):
            ax.text(
                1.0, place, " | ".join(map(digits.short_count, numbers)), transform=beside, **look
            )
    name_axes(ax, "samples", f"class{heat.thinned(step)}", title)
    _explain(ax, condition, step == 1, heat.notes(names))
    return page.finish()


def _checked(
    lower: npt.ArrayLike, upper: npt.ArrayLike, sizes: npt.ArrayLike, labels: Sequence[object]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    if not len(labels):
        raise ValueError("labels must name at least one class, got none")
    given = {"lower": lower, "upper": upper, "sizes": sizes}
    arrays = {name: of_shape(name, values, (len(labels),)) for name, values in given.items()}
    for name, values in arrays.items():
        heat.check_counts(name, values)
    crossed = np.flatnonzero(arrays["lower"] > arrays["upper"])
    if crossed.size:
        k = crossed[0]
        shown = f"{arrays['lower'][k]:g} and {arrays['upper'][k]:g}"
        raise ValueError(f"lower must not exceed upper, got {shown} for {labels[k]!r}")
    return arrays["lower"], arrays["upper"], arrays["sizes"]


def _explain(ax: Axes, condition: str | None, numbers: bool, notes: Sequence[str]) -> None:
    """Add a legend that ends with an explanation of the bars."""
    lower = "lower approximation"
    upper = "boundary, up to the upper approximation"
    lines = ["The bars are exact, because they come from the granules."]
    reading = "Rows in the dark part certainly belong to the class; rows in the whole bar may."
    if condition is not None:
        lower += ": at most this"
        upper += ": at least this"
        lines = [f"The bars are bounds from the confusion matrix. {condition}"]
        reading = (
            "At most the dark part certainly belongs to the class; at least the whole bar may."
        )
    lines.append(reading)
    if numbers:
        lines.append("The numbers next to the bars are: dark part | class size | whole bar.")
    lines += notes
    width = extent_points(ax)[0] + 60
    handles: list[Artist] = [
        Patch(color=BLUE, label=lower),
        Patch(color=_BOUNDARY, label=upper),
        Line2D([], [], linestyle="none", marker="|", color=INK, ms=10, mew=2, label="class size"),
    ]
    handles += [Line2D([], [], linestyle="none", label=fold(line, width)) for line in lines]
    legend_below(ax, handles)
