"""The likelihood of a prevalence, with an interval that includes the error of the densities."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter, PercentFormatter
from scipy.special import chdtri

from cmtrack import digits
from cmtrack.metrics.intervals import check_level
from cmtrack.removed import refuse_removed

from . import _text as text
from .style import (
    BLUE,
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
_FAR = 3.0  # interval widths beyond which a reference is only pointed at


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
    """Draw the profile deviance of a prevalence and the interval it gives.

    The interval holds every prevalence whose adjusted deviance (solid curve) is at most the chi-square quantile.
    Without the adjustment (thin dashed curve) the class-wise score densities would count as known exactly, and the
    interval would be too short. The dot with the thick bar is the estimate with its interval.

    Parameters
    ----------
    prevalence : array_like of shape (P,)
        Ascending grid of prevalences in [0, 1], fine near the interval.
    deviance : array_like of shape (P,)
        ``2 * (l_max - l)`` at each of them, with the densities taken as known; infinite values are left out.
    value, low, high : float
        Estimate and limits of its interval, as shares. NaN where not identified.
    confidence_level : float
        Level of the interval, such as 0.95.
    inflation : float, default 1.0
        Total variance over the variance from sampling the target: the adjusted deviance is the deviance over it.
    adjusted : array_like of shape (P,), optional
        The adjusted deviance itself, where it is not the deviance over a constant. `inflation` is not read then.
    actual : float, optional
        Prevalence among the labels, where they are known.
    references : mapping of str to float, optional
        Other estimates by name, drawn as marks on the axis. One that is far from the interval does not
        stretch the axis; its mark points at the side where it lies.
    caption : str, default ""
        A sentence below, such as what to be careful with.
    title, ax : optional
        Of the axes; by default those of a new figure, which pyplot does not know.

    Raises
    ------
    ValueError
        If shapes do not fit, `confidence_level` is not in (0, 1) or `inflation` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.plots import plot_prevalence_likelihood
    >>> share = np.linspace(0, 0.2, 101)
    >>> figure = plot_prevalence_likelihood(
    ...     share, ((share - 0.08) / 0.015) ** 2, value=0.08, low=0.051, high=0.109, confidence_level=0.95
    ... )
    >>> figure.savefig("prevalence.png")
    """
    x, y = of_one_shape(prevalence=prevalence, deviance=deviance)
    check_level(confidence_level)
    if not inflation > 0:
        raise ValueError(f"inflation must be positive, got {inflation}")
    solid = y / inflation if adjusted is None else of_shape("adjusted", adjusted, x.shape)
    marks = {name: share for name, share in (references or {}).items() if math.isfinite(share)}
    truth = actual if actual is not None and math.isfinite(actual) else None
    left, right = _limits(
        x, value, low, high, [*marks.values(), *([] if truth is None else [truth])]
    )
    page, ax = curve_sheet(ax, (5.8, 3.6))

    cut = float(chdtri(1, 1 - confidence_level))
    level = digits.figure_percent(confidence_level)
    if math.isfinite(low) and math.isfinite(high):
        words = f"{level} interval: {digits.figure_percent(low)} to {digits.figure_percent(high)}"
        ax.axvspan(low, high, color=BLUE, alpha=0.14, linewidth=0, label=words)
        ax.plot(
            [low, high],
            [0, 0],
            color=BLUE,
            linewidth=4.0,
            solid_capstyle="butt",
            clip_on=False,
            zorder=4,
            label="_interval",
        )
    differ = not np.array_equal(solid, y)
    if differ:
        known_exactly = np.isfinite(y)
        naive = "deviance with densities taken as known"
        ax.plot(
            x[known_exactly],
            y[known_exactly],
            color=INK,
            linewidth=0.9,
            linestyle="--",
            label=naive,
        )
    keep = np.isfinite(solid)
    curve = "adjusted deviance: with the error of the densities" if differ else "deviance"
    ax.plot(
        x[keep], solid[keep], color=BLUE, linewidth=2.0, label=fold(curve, extent_points(ax)[0])
    )
    ax.axhline(
        cut,
        color=MUTED,
        linewidth=0.9,
        linestyle=":",
        label=f"cut at χ² quantile {digits.fixed(cut, 2)}",
    )
    top = 2.6 * cut
    if math.isfinite(value):
        ax.plot(
            [value],
            [0],
            marker="o",
            markersize=8,
            color=BLUE,
            markeredgecolor="white",
            linestyle="none",
            label=f"estimate: {digits.figure_percent(value)}",
            clip_on=False,
            zorder=5,
        )
    if truth is not None:
        _mark_actual(ax, truth, left, right)
    _mark_references(ax, marks, left, right)
    ax.set(xlim=(left, right), ylim=(0, top))
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    name_axes(ax, "prevalence of the positive class", "deviance: 2 (max ℓ − ℓ)", title)
    below = (
        [Line2D([], [], linestyle="none", label=fold(caption, extent_points(ax)[0]))]
        if caption
        else []
    )
    legend_below(ax, [*ax.get_legend_handles_labels()[0], *below])
    return page.finish()


_SAME = 1e-9
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
    """Draw a metric against the share of positives, on a scale of odds.

    Parameters
    ----------
    shares, value : array_like of shape (P,)
        Ascending shares between 0 and 1, and the metric at each.
    metric : str
        Its name.
    band : array_like of shape (2, P), optional
        Lower and upper ends of its interval.
    constant : array_like of shape (P,), optional
        The value of the best answer that is the same for all rows; shares where it is as good are shaded.
    lower_is_better : bool, default False
    here, target : float, optional
        The share of positives in the test set, and in a target.
    level : float, default 0.95
        Of the intervals.
    positive : object, optional
        Name of the positive class or group.
    title, ax : optional
        Of the axes; by default those of a new figure, which pyplot does not know.

    Raises
    ------
    ValueError
        If shapes do not fit, or a share does not lie between 0 and 1.

    Examples
    --------
    >>> from cmtrack.plots import plot_at_prevalence
    >>> figure = plot_at_prevalence([0.1, 0.3, 0.6], [0.4, 0.7, 0.9], metric="precision", here=0.3)
    >>> figure.savefig("at_prevalence.png")
    """
    x, y = of_one_shape(shares=shares, value=value)
    if not (x.min() > 0 and x.max() < 1):
        raise ValueError(f"shares must lie between 0 and 1, got {x.min():g} to {x.max():g}")
    page, ax = curve_sheet(ax, (5.8, 3.6))
    ax.set_xscale("logit")
    drawn = [y]
    if constant is not None:
        same = np.asarray(constant, dtype=np.float64)
        drawn.append(same)
        line = np.log(x / (1 - x))
        fine = np.linspace(line[0], line[-1], 600)
        gain = np.interp(fine, line, same - y) * (-1 if lower_is_better else 1)
        if (gain >= 0).any():
            ax.fill_between(
                1 / (1 + np.exp(-fine)),
                0,
                1,
                where=(gain >= 0).tolist(),
                transform=ax.get_xaxis_transform(),
                color=EMPTY,
                alpha=0.6,
                linewidth=0,
                zorder=0,
                label="a constant answer is as good",
            )
        ax.plot(
            x,
            same,
            color=MUTED,
            linewidth=1.2,
            linestyle="--",
            zorder=2,
            label="best constant answer",
        )
    if band is not None:
        low, high = np.asarray(band, dtype=np.float64)
        words = f"interval at each share ({digits.figure_percent(level)})"
        ax.fill_between(x, low, high, color=SKY, alpha=0.35, linewidth=0, zorder=1, label=words)
        drawn += [low, high]
    ax.plot(x, y, color=BLUE, linewidth=1.8, zorder=3, label=text.verbatim(metric))
    for share, name, colour, style in (
        (here, "test set", INK, ":"),
        (target, "target", ORANGE, "-"),
    ):
        if share is not None and math.isfinite(share):
            words = f"{name}: {digits.figure_percent(share)}"
            ax.axvline(share, color=colour, linewidth=1.2, linestyle=style, zorder=2, label=words)
    finite = np.concatenate(drawn)[np.isfinite(np.concatenate(drawn))]
    margin = 0.04 * (np.ptp(finite) or 1.0)
    ax.set(xlim=(x[0], x[-1]), ylim=(finite.min() - margin, finite.max() + margin))
    ax.set_xticks([tick for tick in _TICKS if x[0] - _SAME <= tick <= x[-1] + _SAME])
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:g}%"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    of = "positives" if positive is None else text.verbatim(text.brief(positive, 40))
    name_axes(ax, f"share of {of}", text.verbatim(metric), title)
    legend_below(ax)
    return page.finish()


def _limits(
    grid: FloatArray, value: float, low: float, high: float, others: list[float]
) -> tuple[float, float]:
    """Axis limits around the interval and nearby estimates, within [0, 1] and a small margin."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return float(grid.min()), float(grid.max())
    inner = [low, high, value] if math.isfinite(value) else [low, high]
    width = max(max(inner) - min(inner), 1e-6)
    inner += [other for other in others if low - _FAR * width <= other <= high + _FAR * width]
    left, right = min(inner) - 0.6 * width, max(inner) + 0.6 * width
    left, right = max(left, 0.0), min(right, 1.0)
    margin = 0.03 * (right - left)
    return left - margin * (left == 0.0), right + margin * (right == 1.0)


def _place(share: float, left: float, right: float) -> tuple[float, str, str]:
    """The position of a share's marker; the marker and a hint if it is clipped to the axis."""
    if share > right:
        return right, ">", " (further right)"
    return (left, "<", " (further left)") if share < left else (share, "", "")


def _mark_actual(ax: Axes, actual: float, left: float, right: float) -> None:
    where, arrow, hint = _place(actual, left, right)
    label = f"actual: {digits.figure_percent(actual)}{hint}"
    if arrow:
        ax.plot(
            [where],
            [0.5],
            transform=ax.get_xaxis_transform(),
            marker=arrow,
            markersize=9,
            color=ORANGE,
            linestyle="none",
            label=label,
            clip_on=False,
        )
    else:
        ax.axvline(where, color=ORANGE, linewidth=1.6, label=label)


def _mark_references(ax: Axes, marks: Mapping[str, float], left: float, right: float) -> None:
    beyond = 0
    for i, (name, share) in enumerate(marks.items()):
        where, arrow, hint = _place(share, left, right)
        marker, colour = _REFERENCE_MARKS[i % len(_REFERENCE_MARKS)]
        beyond += bool(arrow)
        height = 0.06 * beyond if arrow else 0.0
        ax.plot(
            [where],
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
            label=f"{text.verbatim(name)}: {digits.figure_percent(share)}{hint}",
        )
