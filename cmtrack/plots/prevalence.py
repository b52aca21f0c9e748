"""The likelihood of a prevalence, and a metric against the share of positives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter
from scipy.special import chdtri, expit, logit

from cmtrack import digits
from cmtrack.metrics.intervals import check_level
from cmtrack.removed import refuse_removed

from . import _text as text
from .style import (
    BLUE,
    CURVE,
    DOT,
    EMPTY,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PINK,
    SKY,
    YELLOW,
    FloatArray,
    curve_sheet,
    extent_points,
    fold,
    legend_below,
    name_axes,
    of_one_shape,
    of_shape,
)

_REFERENCE_MARKS = (("s", YELLOW), ("^", PINK), ("v", GREEN), ("P", SKY), ("X", MUTED))
_FAR = 3.0  # beyond this number of interval widths, a reference is drawn as an arrowhead


@refuse_removed
def plot_prevalence_likelihood(
    prevalence: npt.ArrayLike,
    deviance: npt.ArrayLike,
    *,
    value: float,
    low: float,
    high: float,
    confidence_level: float,
    inflation: float = 1.0,
    adjusted: npt.ArrayLike | None = None,
    actual: float | None = None,
    references: Mapping[str, float] | None = None,
    caption: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the profile deviance of a prevalence, and the interval that follows from it.

    The interval contains every prevalence whose adjusted deviance (solid curve) is at most the
    chi-square quantile. The deviance without adjustment (thin dashed curve) treats the score
    densities of the classes as known exactly, so its interval would be too short. The dot and the
    thick bar show the estimate and its interval.

    Parameters
    ----------
    prevalence : array_like of shape (P,)
        Ascending grid of prevalences in [0, 1], which should be fine near the interval.
    deviance : array_like of shape (P,)
        ``2 * (l_max - l)`` at each prevalence, where l is the log-likelihood if the densities are
        treated as known. Infinite values are not drawn.
    value, low, high : float
        Estimate and limits of its interval, as shares; NaN if the prevalence is not identified.
    confidence_level : float
        Confidence level of the interval, such as 0.95.
    inflation : float, default 1.0
        Total variance divided by the variance caused by sampling the target. The adjusted deviance
        is the deviance divided by this factor.
    adjusted : array_like of shape (P,), optional
        The adjusted deviance, if it is not the deviance divided by a constant. `inflation` is then
        ignored.
    actual : float, optional
        Prevalence computed from the labels, if they are known.
    references : mapping of str to float, optional
        Estimates to compare, by name, which are drawn as marks on the axis. If an estimate is far
        from the interval, the axis does not extend to it. Instead, an arrowhead at the end of the
        axis points to it.
    caption : str, default ""
        A sentence below the figure, such as a caution.
    title, ax : optional
        Title of the axes, and axes to draw into. By default, a new figure is created, which is not
        registered with pyplot.

    Raises
    ------
    ValueError
        If the shapes do not match, `confidence_level` is not in (0, 1), or `inflation` is not
        positive.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.plots import plot_prevalence_likelihood
    >>> share = np.linspace(0, 0.2, 101)
    >>> figure = plot_prevalence_likelihood(
    ...     share,
    ...     ((share - 0.08) / 0.015) ** 2,
    ...     value=0.08,
    ...     low=0.051,
    ...     high=0.109,
    ...     confidence_level=0.95,
    ... )
    >>> figure.savefig("prevalence.png")
    """
    x, y = of_one_shape(prevalence=prevalence, deviance=deviance)
    check_level(confidence_level)
    if not inflation > 0:
        raise ValueError(f"inflation must be positive, got {inflation}")
    solid = y / inflation if adjusted is None else of_shape("adjusted", adjusted, x.shape)
    marks = {name: share for name, share in (references or {}).items() if math.isfinite(share)}
    share = math.nan if actual is None else actual
    left, right = _limits(x, value, low, high, [*marks.values(), share])
    page, ax = curve_sheet(ax, (5.8, 3.6))

    cut = float(chdtri(1, 1 - confidence_level))
    if math.isfinite(low) and math.isfinite(high):
        _draw_interval(ax, low, high, confidence_level)
    width = extent_points(ax)[0]
    words = "deviance"
    if not np.array_equal(solid, y):
        words = "adjusted deviance: with the error of the densities"
        finite = np.isfinite(y)
        naive = "deviance with densities taken as known"
        ax.plot(x[finite], y[finite], color=INK, linewidth=0.9, linestyle="--", label=naive)
    finite = np.isfinite(solid)
    ax.plot(x[finite], solid[finite], color=BLUE, linewidth=2.0, label=fold(words, width))
    words = f"cut at χ² quantile {digits.fixed(cut, 2)}"
    ax.axhline(cut, color=MUTED, linewidth=0.9, linestyle=":", label=words)
    if math.isfinite(value):
        words = f"estimate: {digits.short_percent(value)}"
        ax.plot([value], [0], color=BLUE, marker="o", markersize=8, zorder=5, label=words, **DOT)
    if math.isfinite(share):
        _mark_actual(ax, share, left, right)
    _mark_references(ax, marks, left, right)
    # The curves rise steeply, and only the points at which they cross the cut matter.
    ax.set(xlim=(left, right), ylim=(0, 2.6 * cut))
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    name_axes(ax, "prevalence of the positive class", "deviance: 2 (max ℓ − ℓ)", title)
    handles = ax.get_legend_handles_labels()[0]
    if caption:
        handles.append(Line2D([], [], linestyle="none", label=fold(caption, width)))
    legend_below(ax, handles)
    return page.finish()


def _draw_interval(ax: Axes, low: float, high: float, confidence_level: float) -> None:
    """Shade the interval, and also draw it as a bar on the axis."""
    level = digits.short_percent(confidence_level)
    words = f"{level} interval: {digits.short_percent(low)} to {digits.short_percent(high)}"
    ax.axvspan(low, high, color=BLUE, alpha=0.14, linewidth=0, label=words)
    bar: dict[str, Any] = {"linewidth": 4.0, "solid_capstyle": "butt", "clip_on": False}
    ax.plot([low, high], [0, 0], color=BLUE, zorder=4, label="_interval", **bar)


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
    title, ax : optional
        Title of the axes, and axes to draw into. By default, a new figure is created, which is not
        registered with pyplot.

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
    page, ax = curve_sheet(ax, (5.8, 3.6))
    ax.set_xscale("logit")
    drawn = [y]
    if constant is not None:
        best = np.asarray(constant, dtype=np.float64)
        drawn.append(best)
        _shade(ax, x, y - best if lower_is_better else best - y)
        words = "best constant answer"
        ax.plot(x, best, color=MUTED, linewidth=1.2, linestyle="--", zorder=2, label=words)
    if band is not None:
        low, high = np.asarray(band, dtype=np.float64)
        words = f"interval at each share ({digits.short_percent(level)})"
        ax.fill_between(x, low, high, color=SKY, alpha=0.35, linewidth=0, zorder=1, label=words)
        drawn += [low, high]
    ax.plot(x, y, label=text.verbatim(metric), **CURVE)
    _mark_share(ax, here, "test set", INK, ":")
    _mark_share(ax, target, "target", ORANGE, "-")
    values = np.concatenate(drawn)
    finite = values[np.isfinite(values)]
    margin = 0.04 * (np.ptp(finite) or 1.0)
    ax.set(xlim=(x[0], x[-1]), ylim=(finite.min() - margin, finite.max() + margin))
    ax.set_xticks([tick for tick in _TICKS if x[0] - _SAME <= tick <= x[-1] + _SAME])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    name = "positives" if positive is None else text.verbatim(text.brief(positive, 40))
    name_axes(ax, f"share of {name}", text.verbatim(metric), title)
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
        label="a constant answer is as good",
        **look,
    )


def _limits(
    grid: FloatArray, value: float, low: float, high: float, others: list[float]
) -> tuple[float, float]:
    """Return axis limits around the interval and nearby estimates, within [0, 1] plus a margin."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return float(grid.min()), float(grid.max())
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


def _place(share: float, left: float, right: float) -> tuple[float, str, str]:
    """Return the position and marker of a share, and a hint if it is beyond the axis."""
    if share > right:
        return right, ">", " (further right)"
    if share < left:
        return left, "<", " (further left)"
    return share, "", ""


def _mark_actual(ax: Axes, actual: float, left: float, right: float) -> None:
    place, arrow, hint = _place(actual, left, right)
    label = f"actual: {digits.short_percent(actual)}{hint}"
    if not arrow:
        ax.axvline(place, color=ORANGE, linewidth=1.6, label=label)
        return
    look: dict[str, Any] = {"markersize": 9, "linestyle": "none", "clip_on": False}
    across = ax.get_xaxis_transform()
    ax.plot([place], [0.5], transform=across, marker=arrow, color=ORANGE, label=label, **look)


def _mark_references(ax: Axes, marks: Mapping[str, float], left: float, right: float) -> None:
    n_beyond = 0
    for i, (name, share) in enumerate(marks.items()):
        place, arrow, hint = _place(share, left, right)
        marker, colour = _REFERENCE_MARKS[i % len(_REFERENCE_MARKS)]
        height = 0.0
        if arrow:
            # Arrowheads at the same end of the axis are stacked.
            n_beyond += 1
            height = 0.06 * n_beyond
        ax.plot(
            [place],
            [height],
            transform=ax.get_xaxis_transform(),
            marker=arrow or marker,
            markersize=7,
            color=colour,
            markeredgecolor=INK,
            markeredgewidth=0.5,
            linestyle="none",
            clip_on=False,
            zorder=4,
            label=f"{text.verbatim(name)}: {digits.short_percent(share)}{hint}",
        )
