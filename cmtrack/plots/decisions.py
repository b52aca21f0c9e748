"""Curves for decisions: net benefit by threshold, gains by share called, risk by coverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from cmtrack import digits

from .roc import ceiling_words, mark_operating_point, of_positive
from .style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
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

_RARE = 0.02
"""Share of positives below which the share called is drawn on a logarithmic axis."""
_FEW = 20
_POINTS = 400


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
    """Draw net benefit by threshold, with those of calling all and of calling no sample positive.

    Parameters
    ----------
    thresholds : array_like of shape (T,)
        Between 0 and 1.
    value, everyone : array_like of shape (T,)
        Net benefit of the score, and of calling every sample positive.
    band : (array_like, array_like) of shape (T,), optional
        Simultaneous band of `value`.
    level : float, default 0.95
        Of the band.
    positive : object, optional
        Name of the positive class or group.
    title, ax : optional
        Of the axes; by default those of a new figure, which pyplot does not know.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional and of equal length.

    References
    ----------
    Vickers and Elkin (2006), "Decision curve analysis".

    Examples
    --------
    >>> from cmtrack.plots import plot_decision_curve
    >>> figure = plot_decision_curve([0.1, 0.3, 0.5], [0.28, 0.21, 0.15], [0.22, 0.0, -0.4], positive="ill")
    >>> figure.savefig("decision_curve.png")
    """
    t, by_score, all_ = of_one_shape(thresholds=thresholds, value=value, everyone=everyone)
    order = np.argsort(t, kind="stable")
    t, by_score, all_ = t[order], by_score[order], all_[order]
    page, ax = curve_sheet(ax, (5.2, 4.2))
    highest = [by_score.max(), all_.max(), 0.0]
    if band is not None:
        low, high = (np.asarray(end, dtype=np.float64)[order] for end in band)
        words = f"band of the whole curve ({digits.level(level)})"
        ax.fill_between(t, low, high, color=SKY, alpha=0.35, linewidth=0, zorder=1, label=words)
        highest.append(high.max())
    ax.plot(
        t,
        by_score,
        color=BLUE,
        linewidth=1.8,
        zorder=3,
        label="positive where the score reaches the threshold",
    )
    ax.plot(t, all_, color=MUTED, linewidth=1.2, linestyle="--", zorder=2, label="all positive")
    ax.axhline(0.0, color=INK, linewidth=1.0, linestyle=":", zorder=2, label="none positive: 0")
    top = max(highest) or 1.0
    ax.set(xlim=(0, t[-1]), ylim=(-0.3 * top, 1.06 * top))
    ax.xaxis.set_major_locator(MaxNLocator(6, prune="lower"))
    ax.xaxis.set_major_formatter(FuncFormatter(_odds_text))
    x = "threshold, with hits : false alarms of equal worth"
    name_axes(ax, x, "net benefit per sample" + of_positive(positive), title)
    legend_below(ax, points=38 + 1.2 * SMALL_SIZE)  # the ticks have two lines
    return page.finish()


def _odds_text(threshold: float, place: object = None) -> str:
    """A threshold with its odds: ``20% / 1:4``."""
    if not 0 < threshold < 1:
        return f"{100 * threshold:g}%"
    odds = threshold / (1 - threshold)
    pair = f"1:{_short(1 / odds)}" if odds <= 1 else f"{_short(odds)}:1"
    return f"{digits.figure_percent(threshold)}\n{pair}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 99.5 else digits.significant(number, 2)


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
    """Draw the gains curve: recall of the positives by the share of samples called positive.

    Parameters
    ----------
    called, gain : array_like of shape (T,)
        From the highest threshold to the lowest. Points are joined by straight lines: samples of one score are called
        in random order. Below a prevalence of 2 % the share called is drawn on a logarithmic scale.
    prevalence : float
        Share of actual positives.
    ceiling : float, default 1.0
        Share of the positives whose class within the group is right.
    operating_point : (float, float), optional
        (called, gain) of the predicted labels (the most probable class).
    positive : object, optional
        Name of the positive class or group.
    title, ax : optional
        Of the axes; by default those of a new figure, which pyplot does not know.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional and of equal length.

    Examples
    --------
    >>> from cmtrack.plots import plot_gains
    >>> plot_gains([0, 0.2, 0.5, 1], [0, 0.7, 0.9, 1], prevalence=0.25, positive="ill").savefig("gains.png")
    """
    x, y = (np.append(0.0, part) for part in of_one_shape(called=called, gain=gain))
    page, ax = curve_sheet(ax, (4.7, 4.7))
    rare = prevalence < _RARE
    least = max(min(x[1], prevalence) / 2, 1e-12) if rare else 0.0
    grid = np.geomspace(least, 1.0, 4 * _POINTS) if rare else x
    best = min(ceiling * prevalence, 1.0)
    share = min(0.1, 10.0 ** math.ceil(math.log10(prevalence))) if prevalence > 0 else 0.1
    lift = float(np.interp(share, x, y)) / share
    words = (
        f"by the score: lift {digits.significant(lift)} at {digits.figure_percent(share)} called"
    )
    ax.plot(
        grid, np.interp(grid, x, y), color=BLUE, linewidth=1.8, zorder=3, clip_on=False, label=words
    )
    ends = (
        np.unique(np.append(grid[:: len(grid) // _POINTS + 1], [best, 1.0]))
        if rare
        else np.array([0.0, best, 1.0])
    )
    ax.plot(
        ends,
        np.interp(ends, [0.0, best, 1.0], [0.0, ceiling, ceiling]),
        color=GREEN,
        linewidth=1.2,
        linestyle="--",
        zorder=2,
        label=f"perfect order: {digits.figure_percent(ceiling)} found at {digits.figure_percent(best)} called",
    )
    ax.plot(
        ends,
        ceiling * ends,
        color=MUTED,
        linewidth=1.0,
        linestyle=":",
        label="chance: lift " + digits.significant(ceiling),
    )
    if ceiling < 1:
        ax.axhline(
            ceiling,
            color=INK,
            linewidth=1.0,
            linestyle="--",
            label=fold(ceiling_words(ceiling), 300),
        )
    if operating_point is not None and all(map(math.isfinite, operating_point)):
        place = max(operating_point[0], least), operating_point[1]  # no logarithm of 0
        mark_operating_point(
            ax, place, ("called", "found"), tuple(map(digits.figure_percent, operating_point))
        )
    unit_square(
        ax,
        "share called" + (" (log scale)" if rare else ""),
        "share found" + of_positive(positive),
        title,
    )
    if rare:
        ax.set_aspect("auto")
        ax.set_xscale("log")
        ax.set_xlim(least, 1.0)
        ax.xaxis.set_major_formatter(
            FuncFormatter(lambda value, place: digits.figure_percent(value))
        )
    legend_below(ax)
    return page.finish()


class Point(NamedTuple):
    """An operating point of a risk-coverage curve: the share accepted, its risk with interval, the least confidence."""

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
    """Draw the risk-coverage curve: error rate of accepted predictions by share accepted, most confident first.

    Parameters
    ----------
    coverage, risk : array_like of shape (U,)
        From the most confident answers to all; answers of one confidence enter evenly.
    size : array_like of shape (U,)
        Effective number of the accepted answers: where there are fewer than 20, the curve is pale.
    aurc : float
        Area under the curve.
    interval : (float, float), optional
        Of `aurc`.
    points : sequence of Point
        Operating points, marked with their intervals.
    title, ax : optional
        Of the axes; by default those of a new figure, which pyplot does not know.

    Raises
    ------
    ValueError
        If the arrays are not one-dimensional and of equal length.

    Examples
    --------
    >>> from cmtrack.plots import plot_risk_coverage
    >>> figure = plot_risk_coverage([0.2, 0.6, 1.0], [0.0, 0.05, 0.12], [100, 300, 500], aurc=0.05)
    >>> figure.savefig("risk_coverage.png")
    """
    a, r, n = of_one_shape(coverage=coverage, risk=risk, size=size)
    page, ax = curve_sheet(ax, (4.9, 4.2))
    few = float(np.interp(_FEW, np.append(0.0, n), np.append(0.0, a)))
    grid = np.unique(np.concatenate((a, np.linspace(0.0, 1.0, _POINTS)[1:], [few])))
    grid = grid[grid > 0]
    lost = np.interp(grid, np.append(0.0, a), np.append(0.0, a * r))
    wrong, total = lost / grid, float(r[-1])
    sure = grid >= min(few, 1.0)
    ends = (
        ""
        if interval is None
        else f" (interval {digits.significant(interval[0])} to {digits.significant(interval[1])})"
    )
    ax.plot(
        grid[sure],
        wrong[sure],
        color=BLUE,
        linewidth=1.8,
        zorder=3,
        clip_on=False,
        label=f"most confident first: AURC {digits.significant(aurc)}{ends}",
    )
    ax.plot(grid[~sure], wrong[~sure], color=BLUE, linewidth=1.4, alpha=0.35, zorder=2)
    ideal = np.maximum(grid - (1 - total), 0.0) / grid
    ax.plot(
        grid,
        ideal,
        color=GREEN,
        linewidth=1.2,
        linestyle="--",
        zorder=2,
        label="perfect order: all wrong ones last",
    )
    ax.axhline(
        total,
        color=MUTED,
        linewidth=1.0,
        linestyle=":",
        label=f"no order: {digits.figure_percent(total)} wrong",
    )
    for place, point in enumerate(points):
        label = (
            f"{digits.figure_percent(point.coverage)} accepted: {digits.figure_percent(point.risk)} wrong (confidence from "
            f"{digits.significant(point.confidence)})"
        )
        ax.errorbar(
            [point.coverage],
            [point.risk],
            yerr=[[point.risk - point.low], [point.high - point.risk]],
            color=ORANGE,
            marker="Dos"[place % 3],
            markersize=6,
            markeredgecolor="white",
            capsize=2.5,
            linewidth=1.0,
            zorder=4,
            clip_on=False,
            label=fold(label, extent_points(ax)[0]),
            linestyle="none",
        )
    highest = max(
        [total, *wrong[sure], *(point.high for point in points if math.isfinite(point.high))]
    )
    ax.set(xlim=(0, 1), ylim=(0, min(1.0, 1.08 * highest) or 1.0))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0))
    name_axes(ax, "share of the answers that is accepted", "wrong among the accepted", title)
    legend_below(ax)
    return page.finish()
