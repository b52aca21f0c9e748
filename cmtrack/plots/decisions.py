"""Curves that support decisions: net benefit by threshold, gains, and risk by coverage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from cmtrack import digits

from .roc import ceiling_words, mark_operating_point, of_positive
from .style import (
    BLUE,
    CURVE,
    DASHED,
    DOT,
    DOTTED,
    GREEN,
    INK,
    MUTED,
    SKY,
    SMALL_SIZE,
    curve_sheet,
    extent_points,
    fold,
    legend_below,
    name_axes,
    of_one_shape,
    unit_square,
)

_PERFECT: dict[str, Any] = {"color": GREEN, "linewidth": 1.2, "linestyle": "--", "zorder": 2}
"""The style of the curve of a perfect ranking."""
_LEAST_BENEFIT = 0.03
"""Part of the largest net benefit below which the right part of a decision curve is not shown."""
_RARE = 0.02
"""Share of positives below which the axis of predicted positives is logarithmic."""
_FEW = 20
"""Effective number of predictions below which the risk is drawn in a pale colour."""
_POINTS = 400
"""Number of points in a line that is straight on a linear axis but curved on a logarithmic axis."""


def plot_decision_curve(
    thresholds: npt.ArrayLike,
    value: npt.ArrayLike,
    everyone: npt.ArrayLike,
    *,
    band: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    level: float = 0.95,
    positive: object | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw net benefit by threshold; compare it with predicting all or no rows as positive.

    Parameters
    ----------
    thresholds : array_like of shape (T,)
        Thresholds between 0 and 1.
    value, everyone : array_like of shape (T,)
        Net benefit of the score, and net benefit if all rows are predicted positive.
    band : (array_like, array_like) of shape (T,), optional
        Lower and upper limits of the simultaneous band around `value`.
    level : float, default 0.95
        Confidence level of the band.
    positive : object, optional
        Name of the positive class or group.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional, or if their lengths differ.

    References
    ----------
    Vickers and Elkin (2006), "Decision curve analysis".

    Examples
    --------
    >>> from cmtrack.plots import plot_decision_curve
    >>> by_score, everyone = [0.28, 0.21, 0.15], [0.22, 0.0, -0.4]
    >>> figure = plot_decision_curve([0.1, 0.3, 0.5], by_score, everyone, positive="ill")
    >>> figure.savefig("decision_curve.png")
    """
    curves = np.stack(of_one_shape(thresholds=thresholds, value=value, everyone=everyone))
    order = np.argsort(curves[0], kind="stable")
    t, by_score, by_all = curves[:, order]
    page, ax = curve_sheet(ax, (5.2, 4.2))
    highest = [by_score.max(), by_all.max(), 0.0]
    if band is not None:
        low, high = (np.asarray(end, dtype=np.float64)[order] for end in band)
        words = f"band of the whole curve ({digits.level(level)})"
        ax.fill_between(t, low, high, color=SKY, alpha=0.35, linewidth=0, zorder=1, label=words)
        highest.append(high.max())
    words = "positive if the score reaches the threshold"
    ax.plot(t, by_score, label=words, **CURVE)
    ax.plot(t, by_all, color=MUTED, linewidth=1.2, linestyle="--", zorder=2, label="all positive")
    ax.axhline(0.0, color=INK, linewidth=1.0, linestyle=":", zorder=2, label="none positive: 0")
    top = max(highest) or 1.0
    lowest = -0.3 * top
    # The right part of a curve of rare positives is close to 0 or below the axes.
    is_informative = (by_score > _LEAST_BENEFIT * top) | (by_all > lowest)
    right = t[-1]
    if is_informative.any():
        right = min(right, 1.2 * t[is_informative].max())
    ax.set(xlim=(0, right), ylim=(lowest, 1.06 * top))
    ax.xaxis.set_major_locator(MaxNLocator(6, prune="lower"))
    ax.xaxis.set_major_formatter(FuncFormatter(_odds_text))
    x = "threshold (1:4 means that one hit is worth four false alarms)"
    name_axes(ax, x, "net benefit per row" + of_positive(positive), title)
    legend_below(ax, points=38 + 1.2 * SMALL_SIZE)  # tick labels have two lines
    return page.finish()


def _odds_text(threshold: float, place: object = None) -> str:
    """Write a threshold and its odds: ``20% / 1:4``."""
    if not 0 < threshold < 1:
        return f"{100 * threshold:g}%"
    odds = threshold / (1 - threshold)
    percent = digits.short_percent(threshold)
    if odds <= 1:
        return f"{percent}\n1:{_short(1 / odds)}"
    return f"{percent}\n{_short(odds)}:1"


def _short(number: float) -> str:
    if number >= 99.5:
        return f"{number:,.0f}"
    return digits.significant(number, 2)


def plot_gains(
    called: npt.ArrayLike,
    gain: npt.ArrayLike,
    *,
    prevalence: float,
    ceiling: float = 1.0,
    operating_point: tuple[float, float] | None = None,
    positive: object | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the gains curve: recall against the share of rows that are predicted positive.

    Parameters
    ----------
    called, gain : array_like of shape (T,)
        Share of rows that are predicted positive, and recall, from the highest threshold to the
        lowest. Straight lines join the points, as if rows with equal scores were in random order.
        If the prevalence is below 2%, the axis of predicted positives is logarithmic.
    prevalence : float
        Share of actual positives.
    ceiling : float, default 1.0
        Share of the positives whose class within the group is correct.
    operating_point : (float, float), optional
        The values (called, gain) for the predicted labels.
    positive : object, optional
        Name of the positive class or group.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional, or if their lengths differ.

    Examples
    --------
    >>> from cmtrack.plots import plot_gains
    >>> figure = plot_gains([0, 0.2, 0.5, 1], [0, 0.7, 0.9, 1], prevalence=0.25, positive="ill")
    >>> figure.savefig("gains.png")
    """
    x, y = (np.append(0.0, values) for values in of_one_shape(called=called, gain=gain))
    page, ax = curve_sheet(ax, (4.7, 4.7))
    is_rare = prevalence < _RARE
    best = min(ceiling * prevalence, 1.0)
    left = 0.0
    grid = x
    corners = np.array([0.0, best, 1.0])
    x_title = "share predicted positive"
    if is_rare:
        # On a logarithmic axis, straight lines become curves, and 0 cannot be shown.
        left = max(min(x[1], prevalence) / 2, 1e-12)
        grid = np.geomspace(left, 1.0, 4 * _POINTS)
        corners = np.unique(np.append(grid[:: len(grid) // _POINTS + 1], [best, 1.0]))
        x_title += " (log scale)"
    # The caption gives the lift at a round share near the prevalence.
    share = 0.1
    if prevalence > 0:
        share = min(share, 10.0 ** math.ceil(math.log10(prevalence)))
    lift = digits.significant(float(np.interp(share, x, y)) / share)
    words = f"score: lift {lift} if {digits.short_percent(share)} are predicted positive"
    found = np.interp(grid, x, y)
    ax.plot(grid, found, clip_on=False, label=words, **CURVE)
    perfect = np.interp(corners, [0.0, best, 1.0], [0.0, ceiling, ceiling])
    at_best = f"recall {digits.short_percent(ceiling)} at {digits.short_percent(best)}"
    words = f"perfect order: {at_best}"
    ax.plot(corners, perfect, label=words, **_PERFECT)
    words = f"chance: lift {digits.significant(ceiling)}"
    ax.plot(corners, ceiling * corners, label=words, **DOTTED)
    if ceiling < 1:
        words = fold(ceiling_words(ceiling), 300)
        ax.axhline(ceiling, label=words, **DASHED)
    if operating_point is not None and all(map(math.isfinite, operating_point)):
        place = (max(operating_point[0], left), operating_point[1])
        mark_operating_point(ax, place, ("predicted positive", "recall"), operating_point)
    unit_square(ax, x_title, "recall" + of_positive(positive), title)
    if is_rare:
        ax.set_aspect("auto")
        ax.set_xscale("log")
        ax.set_xlim(left, 1.0)
        ax.xaxis.set_major_formatter(lambda share, _: digits.short_percent(share))
    legend_below(ax)
    return page.finish()


class Point(NamedTuple):
    """An operating point of a risk-coverage curve: accepted share, risk and lowest confidence."""

    coverage: float
    risk: float
    low: float
    high: float
    confidence: float


def plot_risk_coverage(
    coverage: npt.ArrayLike,
    risk: npt.ArrayLike,
    size: npt.ArrayLike,
    *,
    aurc: float,
    interval: tuple[float, float] | None = None,
    points: Sequence[Point] = (),
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the error rate of the most confident predictions against the accepted share.

    Parameters
    ----------
    coverage, risk : array_like of shape (U,)
        Share of accepted predictions, and their error rate. The values start with the most
        confident predictions and end with all predictions. Predictions of equal confidence are
        accepted together.
    size : array_like of shape (U,)
        Effective number of accepted predictions. If this number is below 20, the curve is pale.
    aurc : float
        Area under the curve.
    interval : (float, float), optional
        Confidence interval of `aurc`.
    points : sequence of Point
        Operating points, which are marked together with their intervals.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional, or if their lengths differ.

    Examples
    --------
    >>> from cmtrack.plots import plot_risk_coverage
    >>> figure = plot_risk_coverage([0.2, 0.6, 1.0], [0.0, 0.05, 0.12], [100, 300, 500], aurc=0.05)
    >>> figure.savefig("risk_coverage.png")
    """
    a, r, n = of_one_shape(coverage=coverage, risk=risk, size=size)
    page, ax = curve_sheet(ax, (4.9, 4.2))
    from_zero = np.append(0.0, a)
    few = float(np.interp(_FEW, np.append(0.0, n), from_zero))
    grid = np.unique(np.concatenate((a, np.linspace(0.0, 1.0, _POINTS)[1:], [few])))
    grid = grid[grid > 0]
    # Between two points, predictions have equal confidence, so the number of errors grows linearly.
    # The risk does not.
    errors = np.interp(grid, from_zero, np.append(0.0, a * r))
    wrong = errors / grid
    total = float(r[-1])
    is_sure = grid >= min(few, 1.0)
    words = f"most confident first: AURC {digits.significant(aurc)}"
    if interval is not None:
        low, high = map(digits.significant, interval)
        words += f" [{low}, {high}]"
    look: dict[str, Any] = {"linewidth": 1.8, "zorder": 3, "clip_on": False}
    ax.plot(grid[is_sure], wrong[is_sure], color=BLUE, label=words, **look)
    ax.plot(grid[~is_sure], wrong[~is_sure], color=BLUE, linewidth=1.4, alpha=0.35, zorder=2)
    ideal = np.maximum(grid - (1 - total), 0.0) / grid
    words = "perfect order: all errors last"
    ax.plot(grid, ideal, label=words, **_PERFECT)
    words = f"uninformative confidence: {digits.short_percent(total)} errors"
    ax.axhline(total, label=words, **DOTTED)
    for point, marker in zip(points, itertools.cycle("Dos"), strict=False):
        _mark_point(ax, point, marker)
    highest = [total, *wrong[is_sure], *(point.high for point in points)]
    top = max(height for height in highest if math.isfinite(height))
    ax.set(xlim=(0, 1), ylim=(0, min(1.0, 1.08 * top) or 1.0))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda share, _: digits.short_percent(share))
    name_axes(ax, "share of the predictions accepted", "errors among accepted predictions", title)
    legend_below(ax)
    return page.finish()


def _mark_point(ax: Axes, point: Point, marker: str) -> None:
    """Mark an operating point, and draw the interval of its risk."""
    coverage = digits.short_percent(point.coverage)
    risk = digits.short_percent(point.risk)
    confidence = digits.short_percent(point.confidence)
    words = f"{coverage} accepted: {risk} errors (confidence of at least {confidence})"
    ax.errorbar(
        [point.coverage],
        [point.risk],
        yerr=[[point.risk - point.low], [point.high - point.risk]],
        color=INK,
        marker=marker,
        markersize=6,
        capsize=2.5,
        linewidth=1.0,
        zorder=4,
        label=fold(words, extent_points(ax)[0]),
        **DOT,
    )
