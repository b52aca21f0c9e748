"""The precision-recall curve of a reduced matrix, and the ceiling that mismatches cause."""

from __future__ import annotations

import math

import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack import digits
from cmtrack.metrics.precision_recall import steps

from .roc import ceiling_words, interval_words, mark_operating_point, of_positive
from .style import (
    CURVE,
    DASHED,
    DOTTED,
    curve_sheet,
    extent_points,
    fold,
    legend_below,
    of_one_shape,
    unit_square,
)


def plot_precision_recall(
    recall: npt.ArrayLike,
    precision: npt.ArrayLike,
    *,
    average_precision: float,
    prevalence: float,
    ceiling: float = 1.0,
    interval: tuple[float, float] | None = None,
    operating_point: tuple[float, float] | None = None,
    positive: object | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a precision-recall curve in steps; mismatches limit recall to a ceiling.

    Parameters
    ----------
    recall, precision : array_like of shape (T,)
        Recall and precision at each threshold, from the highest to the lowest. Each threshold is a
        step of the curve, because rows with equal scores get the same prediction. Linear
        interpolation would be wrong (Davis and Goadrich 2006).
    average_precision : float
        Area under the steps; NaN if it is undefined.
    prevalence : float
        Share of actual positives.
    ceiling : float, default 1.0
        Share of the positives whose class within the group is correct.
    interval : (float, float), optional
        Confidence interval of `average_precision`.
    operating_point : (float, float), optional
        The values (recall, precision) for the predicted labels.
    positive : object, optional
        Name of the positive class or group.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If `recall` and `precision` are not one-dimensional, or if their lengths differ.

    Examples
    --------
    >>> from cmtrack.plots import plot_precision_recall
    >>> recall, precision = [0, 0.5, 0.5, 1], [1, 1, 0.5, 0.67]
    >>> figure = plot_precision_recall(recall, precision, average_precision=0.83, prevalence=0.5)
    >>> figure.savefig("precision_recall.png")
    """
    x, y = of_one_shape(0, recall=recall, precision=precision)
    page, ax = curve_sheet(ax, (4.7, 4.7))
    top = ceiling if math.isfinite(ceiling) else 1.0
    words = f"average precision {digits.number(average_precision)}{interval_words(interval)}"
    ax.plot(*steps(x, y), drawstyle="steps-pre", clip_on=False, label=words, **CURVE)
    # A random positive prediction is a hit if the row is positive and its class within the group is
    # correct.
    chance = top * prevalence
    average = digits.number(top * chance)
    words = f"chance: precision {digits.short_percent(chance)}, average precision {average}"
    ax.plot([0, top], [chance, chance], label=words, **DOTTED)
    if top < 1:
        words = fold(ceiling_words(top), extent_points(ax)[0])
        ax.axvline(top, label=words, **DASHED)
    if operating_point is not None and all(map(math.isfinite, operating_point)):
        mark_operating_point(ax, operating_point, ("recall", "precision"), operating_point)
    unit_square(ax, "recall" + of_positive(positive), "precision", title)
    legend_below(ax)
    return page.finish()
