"""Curves of each class against all other classes: ROC, precision-recall and gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack.metrics.precision_recall import steps

from . import _text as text
from .review.overlays import IN_COLOUR, line_style
from .style import (
    DOTTED,
    INK,
    RUN,
    TEXT_SIZE,
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

    Only the first curves of a row have colours and names; all others are grey.

    Raises ValueError if ``rows`` is empty.

    ``rows``: pairs of a name and a sequence of ClassCurve. All rows must contain the same lines in
        the same order. If there is only one row, its name may be empty.
    """
    if not rows:
        raise ValueError("rows must contain at least one (name, curves), got none")
    n_lines = min(len(rows[0][1]), IN_COLOUR + 1)
    figure = new_figure((11.4, 3.6 * len(rows) + 0.19 * n_lines + 0.45))
    panels = figure.subplots(len(rows), 3, squeeze=False)
    for (name, curves), (roc, precision, gains) in zip(rows, panels, strict=True):
        for ax in (roc, precision, gains):
            open_axes(ax)
        for place, curve in enumerate(curves):
            recall = np.append(0.0, curve.recall)
            fpr = np.append(0.0, np.clip(curve.fpr, 0, 1))
            _line(roc, fpr, recall, curve, place, label=_label(curves, place))
            x, y = steps(curve.recall, curve.precision)
            _line(precision, x, y, curve, place, drawstyle="steps-pre")
            _line(gains, np.append(0.0, curve.called), recall, curve, place)
        for ax in (roc, gains):
            ax.plot([0, 1], [0, 1], label="_chance", **DOTTED)
        _draw_prevalences(precision, curves)
        unit_square(roc, "false positive rate", "recall", None)
        unit_square(precision, "recall", "precision", None)
        unit_square(gains, "share predicted positive", "recall", None)
        if name:
            roc.set_title(name, loc="left", fontsize=TEXT_SIZE, color=INK)
    legend = legend_of_panels(figure, panels[0, 0].get_legend_handles_labels()[0], 1)
    arrange(figure, panels.tolist(), legend, title=title)
    return figure


def _label(curves: Sequence[ClassCurve], place: int) -> str:
    """Return the legend text of a line: its name, or one text for all grey lines together."""
    if place < IN_COLOUR:
        return text.verbatim(curves[place].name)
    if place > IN_COLOUR:
        return "_other"
    return f"others ({len(curves) - IN_COLOUR})"


def _draw_prevalences(ax: Axes, curves: Sequence[ClassCurve]) -> None:
    """Draw the chance lines of precision, in the colours of their classes."""
    colours = {}
    for place, curve in enumerate(curves[:IN_COLOUR]):
        colours[curve.prevalence] = line_style(place)["color"]
    for prevalence, colour in colours.items():
        look = dict(DOTTED)
        if len(colours) > 1:
            look["color"] = colour
        ax.plot([0, 1], [prevalence, prevalence], label="_chance", **look)


def _line(
    ax: Axes,
    x: FloatArray,
    y: FloatArray,
    curve: ClassCurve,
    place: int,
    *,
    label: str = "_same",
    drawstyle: str = "default",
) -> None:
    cells = np.floor(_GRID * np.stack((x, y)))
    # If a point is in the same grid cell as the previous point, it would be hidden.
    apart = np.append(True, (np.diff(cells) != 0).any(axis=0))
    apart[-1] = True
    ax.plot(
        x[apart],
        y[apart],
        clip_on=False,
        drawstyle=drawstyle,
        label=label,
        gid=None if curve.run is None else f"{RUN}{curve.run}",
        **line_style(place if curve.run is None else curve.run),
    )
