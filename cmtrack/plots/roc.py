"""The ROC curve of a reduced matrix, and the ceiling that intragroup mismatches cause."""

from __future__ import annotations

import math

import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack import digits

from . import _text as text
from .style import (
    CURVE,
    DASHED,
    DOT,
    DOTTED,
    INK,
    curve_sheet,
    extent_points,
    fold,
    legend_below,
    of_one_shape,
    unit_square,
    write_beside,
)

_FEW_POINTS = 30


def plot_roc(
    fpr: npt.ArrayLike,
    tpr: npt.ArrayLike,
    *,
    auc: float,
    ceiling: float = 1.0,
    normalized_auc: float | None = None,
    auc_interval: tuple[float, float] | None = None,
    operating_point: tuple[float, float] | None = None,
    positive: object | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a ROC curve, which intragroup mismatches limit to a ceiling below 1.

    If the class within the group is wrong, a positive row is never a hit, whatever the threshold.
    The ceiling is therefore the largest reachable true positive rate. If a score contains no
    information, its curve is the line from (0, 0) to (1, ceiling).

    Parameters
    ----------
    fpr, tpr : array_like of shape (T,)
        False and true positive rates, from the highest threshold to the lowest. Straight lines join
        the points, in line with the area, which is computed from trapezoids.
    auc : float
        Area under the curve; NaN if it is undefined.
    ceiling : float, default 1.0
        Share of the positives whose class within the group is correct.
    normalized_auc : float, optional
        ``auc / ceiling``.
    auc_interval : (float, float), optional
        Confidence interval of `auc`.
    operating_point : (float, float), optional
        The values (false positive rate, recall) for the predicted labels. In general, this point is
        not on the curve.
    positive : object, optional
        Name of the positive class or group.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If `fpr` and `tpr` are not one-dimensional, or if their lengths differ.

    References
    ----------
    Markoulidakis et al. (2021), "Multiclass Confusion Matrix Reduction Method and Its Application
    on Net Promoter Score Classification Problem", section 5.4 and figures 9 and 10. cmtrack adds
    the ceiling and the normalised area, because areas under different ceilings are not comparable.

    Examples
    --------
    >>> from cmtrack.plots import plot_roc
    >>> figure = plot_roc([0, 0, 0.5, 0.5, 1], [0, 0.5, 0.5, 1, 1], auc=0.75, positive="ill")
    >>> figure.savefig("roc.png")
    """
    x, y = of_one_shape(0, fpr=fpr, tpr=tpr)
    page, ax = curve_sheet(ax, (4.7, 4.7))
    top = ceiling if math.isfinite(ceiling) else 1.0
    words = f"AUC {digits.number(auc)}{interval_words(auc_interval)}"
    if normalized_auc is not None and top < 1:
        words += f"\nnormalised AUC {digits.number(normalized_auc)} (AUC / ceiling)"
    marker = "o" if len(x) <= _FEW_POINTS else ""
    ax.plot(x, y, marker=marker, markersize=3.5, label=words, clip_on=False, **CURVE)
    ax.plot([0, 1], [0, top], label=f"chance: AUC {digits.number(top / 2)}", **DOTTED)
    if top < 1:
        ax.axhline(top, **DASHED)
        words = fold(ceiling_words(top), extent_points(ax)[0])
        write_beside(ax, words, (0.0, top), (5, 3), va="bottom")
    if operating_point is not None:
        names = ("false positive rate", "recall")
        mark_operating_point(ax, operating_point, names, operating_point)
    unit_square(ax, "false positive rate", "recall" + of_positive(positive), title)
    legend_below(ax)
    return page.finish()


def mark_operating_point(
    ax: Axes, point: tuple[float, float], names: tuple[str, str], shares: tuple[float, float]
) -> None:
    """Mark the operating point of the predicted labels; the legend shows its shares.

    ``shares``: the coordinates of the point before they were moved into the axes.
    """
    rates = [
        f"{name} {digits.short_percent(share)}" for name, share in zip(names, shares, strict=True)
    ]
    words = fold(f"predicted labels: {', '.join(rates)}", extent_points(ax)[0])
    x, y = point
    ax.plot([x], [y], color=INK, marker="D", markersize=7, zorder=4, label=words, **DOT)


def interval_words(interval: tuple[float, float] | None) -> str:
    """Return the text that follows an area in the legend: its interval."""
    if interval is None or not all(map(math.isfinite, interval)):
        return ""
    low, high = interval
    return f" [{digits.fixed(low, 3)}, {digits.fixed(high, 3)}]"


def ceiling_words(ceiling: float) -> str:
    """Return the text that gives the largest recall at any threshold, and the reason for it."""
    return (
        f"ceiling {digits.fixed(ceiling, 3)}: {digits.short_percent(1 - ceiling)} of positives "
        "would be mismatches even if all rows were predicted positive"
    )


def of_positive(positive: object | None) -> str:
    """Return the positive class or group in brackets, which follows the name of an axis."""
    if positive is None:
        return ""
    return f" (positive: {text.brief(positive, 28)})"
