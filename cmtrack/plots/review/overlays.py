"""Overlaid ROC, precision-recall and reliability curves of several runs.

A run is drawn in the same colour and line style in all figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack import digits
from cmtrack.metrics.calibration import upper_bound
from cmtrack.metrics.precision_recall import steps
from cmtrack.plots import _text as text
from cmtrack.plots.reliability import reach_of
from cmtrack.plots.roc import of_positive
from cmtrack.plots.style import (
    BLUE,
    FRAME,
    GREEN,
    INK,
    MUTED,
    PINK,
    RUN,
    FloatArray,
    extent_points,
    legend_below,
    open_axes,
    sheet,
    unit_square,
)

from ._layout import caption_under, left_out

Curves: TypeAlias = Sequence[tuple[object, npt.ArrayLike, npt.ArrayLike]]
_STYLES: tuple[tuple[str, Any], ...] = (
    (BLUE, "-"),
    (PINK, (0, (6, 2))),
    (GREEN, (0, (1.2, 1.6))),
    (INK, (0, (7, 2, 1.2, 2))),
)
IN_COLOUR = len(_STYLES)
"""Number of lines in colour. With more colours, nobody finds a line in the legend."""


def line_style(place: int) -> dict[str, Any]:
    """Return the style of the line of a run or class at a position; only the first have colours."""
    if place >= IN_COLOUR:
        return {"color": FRAME, "linestyle": "-", "linewidth": 1.0, "zorder": 1.5}
    colour, dashes = _STYLES[place]
    # The first line is drawn over all others.
    return {"color": colour, "linestyle": dashes, "linewidth": 1.8, "zorder": 3 - place / IN_COLOUR}


def plot_roc_overlay(
    curves: Curves,
    *,
    areas: npt.ArrayLike,
    intervals: npt.ArrayLike | None = None,
    ceilings: npt.ArrayLike | None = None,
    positive: object | None = None,
    places: Sequence[int] | None = None,
    max_curves: int = 8,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw several ROC curves in the same axes, in different colours and line styles.

    ``curves``: tuples (name, fpr, tpr) of the runs, from best to worst. False and true positive
        rates are sequences of equal length, from the highest threshold to the lowest.
    ``areas``, shape (R,): the area under each curve; NaN if it is undefined.
    ``intervals``, shape (R, 2): the limits of each area's interval; NaN if there is no interval.
    ``ceilings``, shape (R,): the largest reachable recall of each curve. If a ceiling is below 1, a
        short dashed line to the right of the frame marks it, a separate chance line is drawn, and
        the legend shows the area divided by the ceiling.
    ``positive``: name of the positive class or group.
    ``places``: the position of each run, counted from 0, which determines its colour and line
        style. The default is the position of the run's curve.
    ``max_curves``: largest number of curves to draw.
    ``title``, ``ax``: title of the axes, and axes to draw into; by default, a new figure is
        created, which is not registered with pyplot.
    """
    runs = _Runs(curves, areas, intervals, ceilings, max_curves, places)
    relative = runs.areas / np.where(runs.ceilings > 0, runs.ceilings, np.nan)
    page, ax = sheet(ax, (4.7, 4.7))
    for top in runs.reached:
        ax.plot([0, 1], [0, top], zorder=1, label="_chance", **_DOTTED)
    words = [
        f"AUC {runs.number(i)}{_ceiling_text(runs.ceilings[i], relative[i])}"
        for i in range(runs.shown)
    ]
    runs.draw(ax, words)
    for colour, top in runs.capped:
        ax.plot([1.01, 1.06], [top, top], color=colour, **_CEILING)
    unit_square(ax, "false positive rate", "recall" + of_positive(positive), title)
    chance = "The grey dotted diagonal shows random guessing."
    if runs.capped:
        chance = "The grey dotted lines show random guessing, up to the ceiling of each curve."
    ceiling = (
        "Dashes to the right of the frame mark ceilings, the largest recall that a curve can "
        "reach. Compare normalised areas (area / ceiling; chance is 0.5): areas under different "
        "ceilings are not comparable."
    )
    runs.explain(ax, chance, "interval of each area", ceiling)
    return page.finish()


def plot_precision_recall_overlay(
    curves: Curves,
    *,
    areas: npt.ArrayLike,
    prevalence: float,
    intervals: npt.ArrayLike | None = None,
    ceilings: npt.ArrayLike | None = None,
    positive: object | None = None,
    places: Sequence[int] | None = None,
    max_curves: int = 8,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the precision-recall curves of several runs as steps in different colours and styles.

    ``curves``: tuples (name, recall, precision) of the runs, from best to worst. Recall and
        precision are sequences from the highest threshold to the lowest.
    ``areas``, shape (R,): the average precision of each run; NaN if it is undefined.
    ``prevalence``: the share of actual positives, which is the precision of random predictions.
    ``intervals``, ``ceilings``, ``positive``, ``places``, ``max_curves``, ``title``, ``ax``: as in
        :func:`plot_roc_overlay`. Ceilings are marked above the frame.
    """
    runs = _Runs(curves, areas, intervals, ceilings, max_curves, places)
    page, ax = sheet(ax, (4.7, 4.7))
    for top in runs.reached:
        precision = top * prevalence
        ax.plot([0, top], [precision, precision], label="_chance", **_DOTTED)
    words = [
        f"average precision {runs.number(i)}{_ceiling_text(runs.ceilings[i])}"
        for i in range(runs.shown)
    ]
    runs.draw(ax, words, [steps(*points) for points in runs.points], "steps-pre")
    for colour, top in runs.capped:
        ax.plot([top, top], [1.01, 1.06], color=colour, **_CEILING)
    unit_square(ax, "recall" + of_positive(positive), "precision", title)
    ceiling = "Dashes above the frame mark ceilings, the largest recall that a curve can reach."
    runs.explain(
        ax,
        "The grey dotted line shows random guessing.",
        "interval of each average precision",
        ceiling,
    )
    return page.finish()


def plot_reliability_overlay(
    curves: Curves,
    *,
    errors: npt.ArrayLike,
    intervals: npt.ArrayLike | None = None,
    words: Sequence[str] | None = None,
    event: object | None = None,
    places: Sequence[int] | None = None,
    max_curves: int = 4,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the reliability curves of several runs in different colours and line styles.

    ``curves``: tuples (name, scores, recalibrated) of the runs, from best to worst. Scores are
        distinct and ascending. ``recalibrated`` is the observed share at each score, estimated by
        isotonic regression.
    ``errors``, shape (R,): the calibration error of each run; NaN if it is undefined.
    ``words``: a remark about each curve, which the legend shows.
    ``event``: the positive class or group; the scores are its probabilities.
    ``intervals``, ``places``, ``max_curves``, ``title``, ``ax``: as in :func:`plot_roc_overlay`,
        but the intervals belong to the calibration errors.
    """
    runs = _Runs(curves, errors, intervals, None, max_curves, places)
    page, ax = sheet(ax, (4.7, 4.7))
    ax.plot([0, 1], [0, 1], zorder=1, label="_perfect", **_DOTTED)
    legend = []
    for i in range(runs.shown):
        low, high = runs.limits[i].tolist()
        label = f"calibration error {upper_bound(runs.areas[i], (low, high)) or runs.number(i)}"
        if words is not None and words[i]:
            label += f"; {words[i]}"
        legend.append(label)
    runs.draw(ax, legend, drawstyle="steps-mid")
    score = "score" if event is None else f"score: probability of {text.brief(event, 28)}"
    unit_square(ax, score, "observed share", title)
    reach = reach_of(max(float(x[-1]) for x, _ in runs.points[: runs.shown]))
    ax.set(xlim=(0, reach), aspect=reach)
    perfect = "On the dotted line, scores are right on average; below it, they are too high."
    runs.explain(ax, perfect, "interval of each error")
    return page.finish()


_DOTTED: dict[str, Any] = {"color": MUTED, "linewidth": 0.8, "linestyle": ":"}
_CEILING: dict[str, Any] = {
    "linewidth": 1.7,
    "linestyle": (0, (2.5, 1)),
    "clip_on": False,
    "label": "_ceiling",
}


class _Runs:
    """Curves of runs, each with a number and its interval. Only the first curves are shown."""

    def __init__(
        self,
        curves: Curves,
        areas: npt.ArrayLike,
        intervals: npt.ArrayLike | None,
        ceilings: npt.ArrayLike | None,
        max_curves: int,
        places: Sequence[int] | None,
    ) -> None:
        n_runs = len(curves)
        self.names = text.short_names([name for name, _, _ in curves], 40)
        self.points = [
            (np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)) for _, x, y in curves
        ]
        if intervals is None:
            intervals = np.full((n_runs, 2), np.nan)
        if ceilings is None:
            ceilings = np.ones(n_runs)
        self.areas = np.asarray(areas, dtype=np.float64)
        self.limits = np.asarray(intervals, dtype=np.float64)
        self.ceilings = np.asarray(ceilings, dtype=np.float64)
        self.shown = min(n_runs, max_curves)
        self.places = range(n_runs) if places is None else places

    @property
    def reached(self) -> list[float]:
        """The distinct ceilings of the curves in colour, in descending order."""
        tops = self.ceilings[: min(self.shown, IN_COLOUR)]
        return sorted(set(np.where(np.isfinite(tops), tops, 1.0).tolist()), reverse=True)

    @property
    def capped(self) -> list[tuple[str, float]]:
        """Colour and ceiling of the curves in colour that cannot reach all positives."""
        tops = zip(self.places, self.ceilings[: self.shown], strict=False)
        return [
            (line_style(place)["color"], top)
            for place, top in tops
            if top < 1 and place < IN_COLOUR
        ]

    def number(self, i: int) -> str:
        """Format the number of a curve, such as its area, and the interval of the number."""
        value = self.areas[i]
        low, high = self.limits[i]
        words = digits.number(value)
        if np.isfinite([value, low, high]).all():
            words += f" [{digits.fixed(low, 3)}, {digits.fixed(high, 3)}]"
        return words

    def draw(
        self,
        ax: Axes,
        words: Sequence[str],
        points: Sequence[tuple[FloatArray, FloatArray]] | None = None,
        drawstyle: str = "default",
    ) -> None:
        """Draw the shown curves, or the given points instead, and label them for the legend."""
        open_axes(ax)
        points = points or self.points
        others = [i for i in range(self.shown) if self.places[i] >= IN_COLOUR]
        for i in range(self.shown):
            place = self.places[i]
            label = f"{self.names[i]}: {words[i]}"
            if i in others:
                label = "_other"
            if i in others[:1]:
                label = f"other runs ({len(others)})"
            ax.plot(
                *points[i],
                label=label,
                clip_on=False,
                drawstyle=drawstyle,
                gid=f"{RUN}{place}",
                **line_style(place),
            )

    def explain(self, ax: Axes, first: str, interval: str, ceiling: str = "") -> None:
        """Add the legend and the captions; the first caption explains the dotted line."""
        lines = [
            first,
            *left_out(len(self.names), self.shown, "curves"),
            *text.numbered(self.names[: self.shown]),
        ]
        if np.isfinite(self.limits[: self.shown]).any():
            lines.append(f"Brackets show a separate {interval}.")
        if self.capped:
            lines.append(ceiling)
        caption_under(ax, legend_below(ax), lines, extent_points(ax)[0] + 30)


def _ceiling_text(ceiling: float, normalized: float | None = None) -> str:
    if np.isnan(ceiling) or ceiling >= 1:
        return ""
    words = f", ceiling {digits.fixed(ceiling, 3)}"
    if normalized is not None:
        words += f", normalised {digits.number(normalized)}"
    return words
