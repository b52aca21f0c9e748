"""Curves of each class against all other classes: ROC, precision-recall and gains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from . import _text as text
from .precision_recall import steps
from .review.overlays import line_style
from .style import (
    INK,
    MUTED,
    RUN,
    SMALL_SIZE,
    FloatArray,
    arrange,
    legend_of_panels,
    new_figure,
    open_axes,
    unit_square,
)

_GRID = 250
"""Number of grid cells on each axis. In each cell, only the first point of a curve is drawn."""


@dataclass(frozen=True)
class ClassCurve:
    """The curves of a class against all other classes, from the highest threshold to the lowest.

    ``name``: the name of the line for the legend.
    ``recall``, ``precision``, shape (T,): the metrics at each threshold.
    ``called``, shape (T,): the share of rows that are predicted as the class.
    ``prevalence``: the share of rows that belong to the class.
    ``run``: the position of the run to which the curve belongs.
    """

    name: str
    recall: FloatArray
    precision: FloatArray
    called: FloatArray
    prevalence: float
    run: int | None = None

    @property
    def fpr(self) -> FloatArray:
        """False positive rate at each threshold, shape (T,)."""
        return (self.called - self.recall * self.prevalence) / (1 - self.prevalence)


def plot_class_curves(
    rows: Sequence[tuple[str, Sequence[ClassCurve]]], title: str | None = None
) -> Figure:
    """Draw ROC, precision-recall and gains curves side by side, with one row per group.

    Raises ValueError if ``rows`` is empty.

    ``rows``: pairs of a name and a sequence of ClassCurve. All rows must contain the same lines in
        the same order. If there is only one row, its name may be empty.
    """
    if not rows:
        raise ValueError("rows must contain at least one (name, curves), got none")
    n_lines = len(rows[0][1])
    columns = 2 if n_lines > 4 else 1
    legend_height = 0.17 * math.ceil(n_lines / columns)
    figure = new_figure((8.4, 2.3 * len(rows) + legend_height + 0.45))
    panels = figure.subplots(len(rows), 3, squeeze=False)
    for (name, curves), (roc, precision, gains) in zip(rows, panels, strict=True):
        for ax in (roc, precision, gains):
            open_axes(ax)
        for place, curve in enumerate(curves):
            recall = np.append(0.0, curve.recall)
            fpr = np.append(0.0, np.clip(curve.fpr, 0, 1))
            _line(roc, fpr, recall, curve, place, name=True)
            x, y = steps(curve.recall, curve.precision)
            _line(precision, x, y, curve, place, drawstyle="steps-pre")
            _line(gains, np.append(0.0, curve.called), recall, curve, place)
        for ax in (roc, gains):
            ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=":", label="_chance")
        unit_square(roc, "false positive rate", "recall", None)
        unit_square(precision, "recall", "precision", None)
        unit_square(gains, "share predicted positive", "recall", None)
        if name:
            roc.set_title(name, loc="left", fontsize=SMALL_SIZE + 1, color=INK)
    legend = legend_of_panels(figure, panels[0, 0].get_legend_handles_labels()[0], columns)
    arrange(figure, panels.tolist(), legend, title=title)
    return figure


def _line(
    ax: Axes,
    x: FloatArray,
    y: FloatArray,
    curve: ClassCurve,
    place: int,
    *,
    name: bool = False,
    drawstyle: str = "default",
) -> None:
    colour, dashes = line_style(place if curve.run is None else curve.run)
    cells = np.floor(_GRID * np.stack((x, y)))
    # If a point is in the same grid cell as the previous point, it would be hidden.
    apart = np.append(True, (np.diff(cells) != 0).any(axis=0))
    apart[-1] = True
    ax.plot(
        x[apart],
        y[apart],
        color=colour,
        linestyle=dashes,
        linewidth=1.5,
        clip_on=False,
        drawstyle=drawstyle,
        label=text.verbatim(curve.name) if name else "_same",
        gid=None if curve.run is None else f"{RUN}{curve.run}",
    )
