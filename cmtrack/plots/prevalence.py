"""An estimated prevalence, and a metric against the share of positives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter
from scipy.special import expit, logit

from cmtrack import digits
from cmtrack.metrics.intervals import check_level

from . import _text as text
from .style import (
    BLUE,
    CURVE,
    DOT,
    DOTTED,
    EMPTY,
    INK,
    MUTED,
    SKY,
    TEXT_SIZE,
    FloatArray,
    caption_below,
    curve_sheet,
    legend_below,
    name_axes,
    of_one_shape,
    open_axes,
    sheet,
    write_beside,
)

_FAR = 3.0  # beyond this number of interval widths, a reference is drawn as an arrowhead


_ROW = 0.32  # inches
ACTUAL = "actual share"


def plot_prevalence(
    value: float,
    low: float,
    high: float,
    *,
    confidence_level: float,
    actual: float | None = None,
    references: Mapping[str, float] | None = None,
    caption: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw an estimated prevalence and its interval, above the actual share and simpler estimates.

    Parameters
    ----------
    value, low, high : float
        Estimate and limits of its interval, as shares; NaN if the prevalence is not identified.
    confidence_level : float
        Confidence level of the interval, such as 0.95.
    actual : float, optional
        Prevalence computed from the labels, if they are known.
    references : mapping of str to float, optional
        Estimates to compare, by name.
    caption : str, default ""
        A sentence below the figure, such as a caution.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If `confidence_level` is not in (0, 1).

    Examples
    --------
    >>> from cmtrack.plots import plot_prevalence
    >>> figure = plot_prevalence(0.08, 0.05, 0.11, confidence_level=0.95, actual=0.07)
    >>> figure.savefig("prevalence.png")
    """
    check_level(confidence_level)
    level = digits.level(confidence_level)
    estimate = f"estimate, with {level} interval"
    rows = {estimate: value}
    if actual is not None:
        rows[ACTUAL] = actual
    defined = {name: share for name, share in (references or {}).items() if math.isfinite(share)}
    rows |= defined
    names = [text.verbatim(name) for name in rows]
    shares = list(rows.values())
    left, right = _limits(value, low, high, shares)
    page, ax = sheet(ax, (2.8, _ROW * len(rows)))
    open_axes(ax, "x")
    ax.spines["left"].set_visible(False)
    bar: dict[str, Any] = {"color": BLUE, "linewidth": 4.0, "solid_capstyle": "butt"}
    ax.plot([low, high], [0, 0], alpha=0.5, label="_interval", **bar)
    for row, (name, share) in enumerate(rows.items()):
        colour = {estimate: BLUE, ACTUAL: INK}.get(name, MUTED)
        place, marker = _place(share, left, right)
        ax.plot([place], [row], color=colour, marker=marker, markersize=8, zorder=3, **DOT)
        words = digits.short_percent(share)
        if name == estimate and math.isfinite(low + high):
            words += f" [{digits.significant(low, 3, 2)}, {digits.significant(high, 3, 2)}]"
        write_beside(ax, words, (1.0, row), (8, 0), ax.get_yaxis_transform())
    if actual is not None and left <= actual <= right:
        ax.axvline(actual, **DOTTED)
    ax.set_yticks(range(len(rows)), names, fontsize=TEXT_SIZE, color=INK)
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(left, right), ylim=(len(rows) - 0.5, -0.5))
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.xaxis.set_major_formatter(lambda share, _: digits.short_percent(share))
    name_axes(ax, "share of positives", "", title)
    caption_below(ax, [caption])
    return page.finish()


_SAME = 1e-9  # rounding error of a grid that was computed from log-odds
_TICKS = (0.001, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.999)


def plot_at_prevalence(
    shares: npt.ArrayLike,
    value: npt.ArrayLike,
    *,
    metric: str,
    band: npt.ArrayLike | None = None,
    constant: npt.ArrayLike | None = None,
    lower_is_better: bool = False,
    here: float | None = None,
    target: float | None = None,
    level: float = 0.95,
    positive: object | None = None,
    is_share: bool = False,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a metric against the share of positives, on a log-odds scale.

    Parameters
    ----------
    shares, value : array_like of shape (P,)
        Ascending shares between 0 and 1, and the value of the metric at each share.
    metric : str
        Name of the metric.
    band : array_like of shape (2, P), optional
        Lower and upper limits of the interval at each share.
    constant : array_like of shape (P,), optional
        The best possible value at each share if all rows get the same prediction. Shares at which
        this value is at least as good as the metric are shaded.
    lower_is_better : bool, default False
    here, target : float, optional
        The share of positives in the test set (`here`) and in the target.
    level : float, default 0.95
        Confidence level of the intervals.
    positive : object, optional
        Name of the positive class or group.
    is_share : bool, default False
        Whether the metric is a share, whose axis is in per cent.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If the shapes do not match, or if a share is not between 0 and 1.

    Examples
    --------
    >>> from cmtrack.plots import plot_at_prevalence
    >>> figure = plot_at_prevalence([0.1, 0.3, 0.6], [0.4, 0.7, 0.9], metric="precision", here=0.3)
    >>> figure.savefig("at_prevalence.png")
    """
    x, y = of_one_shape(shares=shares, value=value)
    if not (x.min() > 0 and x.max() < 1):
        raise ValueError(f"shares must be between 0 and 1, got {x.min():g} to {x.max():g}")
    page, ax = curve_sheet(ax, (5.2, 3.6))
    ax.set_xscale("logit")
    drawn = [y]
    if constant is not None:
        best = np.asarray(constant, dtype=np.float64)
        drawn.append(best)
        _shade(ax, x, y - best if lower_is_better else best - y)
        words = "always positive or always negative, whichever is better"
        ax.plot(x, best, color=MUTED, linewidth=1.2, linestyle="--", zorder=2, label=words)
    if band is not None:
        low, high = np.asarray(band, dtype=np.float64)
        words = f"interval at each share ({digits.short_percent(level)})"
        ax.fill_between(x, low, high, color=SKY, alpha=0.35, linewidth=0, zorder=1, label=words)
        drawn += [low, high]
    ax.plot(x, y, label=text.verbatim(metric), **CURVE)
    _mark_share(ax, here, "test set", INK, ":")
    _mark_share(ax, target, "target", INK, "-")
    values = np.concatenate(drawn)
    finite = values[np.isfinite(values)]
    margin = 0.04 * (np.ptp(finite) or 1.0)
    ax.set(xlim=(x[0], x[-1]), ylim=(finite.min() - margin, finite.max() + margin))
    ax.set_xticks([tick for tick in _TICKS if x[0] - _SAME <= tick <= x[-1] + _SAME])
    ax.xaxis.set_major_formatter(lambda share, _: digits.short_percent(share))
    ax.xaxis.set_minor_formatter(NullFormatter())
    if is_share:
        ax.yaxis.set_major_formatter(lambda share, _: digits.short_percent(share))
    name = "positives" if positive is None else text.verbatim(text.brief(positive, 40))
    name_axes(ax, f"share of {name} (log-odds scale)", text.verbatim(metric), title)
    legend_below(ax)
    return page.finish()


def _mark_share(ax: Axes, share: float | None, name: str, colour: str, style: str) -> None:
    if share is None or not math.isfinite(share):
        return
    words = f"{name}: {digits.short_percent(share)}"
    ax.axvline(share, color=colour, linewidth=1.2, linestyle=style, zorder=2, label=words)


def _shade(ax: Axes, shares: FloatArray, gain: FloatArray) -> None:
    """Shade the shares at which a constant prediction is at least as good as the metric."""
    log_odds = logit(shares)
    fine = np.linspace(log_odds[0], log_odds[-1], 600)
    is_as_good = np.interp(fine, log_odds, gain) >= 0
    if not is_as_good.any():
        return
    look: dict[str, Any] = {"color": EMPTY, "alpha": 0.6, "linewidth": 0, "zorder": 0}
    ax.fill_between(
        expit(fine),
        0,
        1,
        where=is_as_good.tolist(),
        transform=ax.get_xaxis_transform(),
        label="there, a constant prediction is as good or better",
        **look,
    )


def _limits(value: float, low: float, high: float, others: list[float]) -> tuple[float, float]:
    """Return axis limits around the interval and nearby estimates, within [0, 1] plus a margin."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return 0.0, 1.0
    inner = [low, high]
    if math.isfinite(value):
        inner.append(value)
    width = max(max(inner) - min(inner), 1e-6)
    inner += [other for other in others if low - _FAR * width <= other <= high + _FAR * width]
    left = max(min(inner) - 0.6 * width, 0.0)
    right = min(max(inner) + 0.6 * width, 1.0)
    # A margin at 0 and 1 keeps the curve away from the frame.
    margin = 0.03 * (right - left)
    if left == 0.0:
        left -= margin
    if right == 1.0:
        right += margin
    return left, right


def _place(share: float, left: float, right: float) -> tuple[float, str]:
    """Return the position and marker of a share; an arrowhead if it is beyond the axis."""
    if share > right:
        return right, ">"
    if share < left:
        return left, "<"
    return share, "o"
