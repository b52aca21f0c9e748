"""The likelihood of a prevalence, with the interval that the error of the densities widens."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from scipy.stats import chi2

from . import labels as text
from .style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PINK,
    SKY,
    YELLOW,
    FloatArray,
    extent_points,
    fold,
    legend_below,
    name_axes,
    open_axes,
    sheet,
)

_REFERENCE_MARKS = (("s", YELLOW), ("^", PINK), ("v", GREEN), ("P", SKY), ("X", MUTED))
_FAR = 3.0  # interval widths beyond which a reference is only pointed at


def plot_prevalence_likelihood(
    prevalence: npt.ArrayLike,
    deviance: npt.ArrayLike,
    *,
    value: float,
    low: float,
    high: float,
    confidence_level: float,
    inflation: float = 1.0,
    actual: float | None = None,
    references: Mapping[str, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the profile deviance of a prevalence and the interval it gives.

    The interval holds every prevalence whose deviance, divided by `inflation`, is at most the chi-square
    quantile. Without the division (thin dashed curve) the class-wise score densities would count as known
    exactly, and the interval would be too short.

    Parameters
    ----------
    prevalence : array_like of shape (P,)
        Ascending grid of prevalences in [0, 1], fine near the interval.
    deviance : array_like of shape (P,)
        ``2 * (l_max - l)`` at each of them; infinite values are left out.
    value, low, high : float
        Estimate and limits of its interval, as shares. NaN where not identified.
    confidence_level : float
        Level of the interval, such as 0.95.
    inflation : float, default 1.0
        Total variance over the variance from sampling the target.
    actual : float, optional
        Prevalence among the labels, where they are known.
    references : mapping of str to float, optional
        Other estimates by name, drawn as marks on the axis. One that is far from the interval does not
        stretch the axis; its mark points at the side where it lies.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default a new figure.

    Returns
    -------
    matplotlib.figure.Figure
        The figure that holds the axes. It is not registered with pyplot.

    Raises
    ------
    ValueError
        If shapes do not fit, `confidence_level` is not in (0, 1) or `inflation` is not positive.
    """
    x, y = np.asarray(prevalence, dtype=np.float64), np.asarray(deviance, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not x.size:
        shapes = f"{x.shape} and {y.shape}"
        raise ValueError(f"prevalence and deviance must have one shape (n_points,), got {shapes}")
    if not 0 < confidence_level < 1:
        raise ValueError(f"confidence_level must lie between 0 and 1, got {confidence_level}")
    if not inflation > 0:
        raise ValueError(f"inflation must be positive, got {inflation}")
    marks = {name: share for name, share in (references or {}).items() if math.isfinite(share)}
    known = actual if actual is not None and math.isfinite(actual) else None
    left, right = _limits(x, value, low, high, [*marks.values(), *([] if known is None else [known])])
    page = sheet(ax, (5.8, 3.6))
    ax = page.ax
    open_axes(ax)

    cut = float(chi2.ppf(confidence_level, 1))
    keep = np.isfinite(y)
    level = text.percent_text(confidence_level)
    if math.isfinite(low) and math.isfinite(high):
        ax.axvspan(
            low, high, color=BLUE, alpha=0.14, linewidth=0,
            label=f"{level} interval: {text.percent_text(low)} to {text.percent_text(high)}",
        )  # fmt: skip
    curve = "adjusted deviance" if inflation != 1 else "deviance"
    if inflation != 1:
        curve += f" (divided by {inflation:.3g} for the error of the densities)"
        naive = "deviance with densities taken as known"
        ax.plot(x[keep], y[keep], color=INK, linewidth=0.9, linestyle="--", label=naive)
    ax.plot(x[keep], y[keep] / inflation, color=BLUE, linewidth=2.0, label=fold(curve, extent_points(ax)[0]))
    ax.axhline(cut, color=MUTED, linewidth=0.9, linestyle=":", label=f"cut at χ² quantile {cut:.2f}")
    top = 2.6 * cut
    if math.isfinite(value):
        ax.plot(
            [value], [0], marker="o", markersize=8, color=BLUE, markeredgecolor="white", linestyle="none",
            label=f"estimate: {text.percent_text(value)}", clip_on=False, zorder=5,
        )  # fmt: skip
    if known is not None:
        _mark_actual(ax, known, left, right)
    _mark_references(ax, marks, left, right)
    ax.set(xlim=(left, right), ylim=(0, top))
    ax.xaxis.set_major_formatter(PercentFormatter(1.0))
    name_axes(ax, "prevalence of the positive class", "deviance: 2 (max ℓ − ℓ)", title)
    legend_below(ax)
    return page.finish()


def _limits(grid: FloatArray, value: float, low: float, high: float, others: list[float]) -> tuple[float, float]:
    """Axis limits around the interval and what lies near it, within [0, 1] but for a small margin."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return float(grid.min()), float(grid.max())
    inner = [low, high, value] if math.isfinite(value) else [low, high]
    width = max(max(inner) - min(inner), 1e-6)
    inner += [other for other in others if low - _FAR * width <= other <= high + _FAR * width]
    left, right = min(inner) - 0.6 * width, max(inner) + 0.6 * width
    left, right = max(left, 0.0), min(right, 1.0)
    margin = 0.03 * (right - left)
    return left - margin * (left == 0.0), right + margin * (right == 1.0)


def _place(share: float, left: float, right: float) -> tuple[float, str]:
    """Where to mark a share, and a hint where that is only the axis' end."""
    if share > right:
        return right, " (further right)"
    if share < left:
        return left, " (further left)"
    return share, ""


def _mark_actual(ax: Axes, actual: float, left: float, right: float) -> None:
    where, hint = _place(actual, left, right)
    label = f"actual: {text.percent_text(actual)}{hint}"
    if hint:
        marker = ">" if where == right else "<"
        ax.plot([where], [0.5], transform=ax.get_xaxis_transform(), marker=marker, markersize=9, color=ORANGE,
                linestyle="none", label=label, clip_on=False)  # fmt: skip
    else:
        ax.axvline(where, color=ORANGE, linewidth=1.6, label=label)


def _mark_references(ax: Axes, marks: Mapping[str, float], left: float, right: float) -> None:
    beyond = 0
    for i, (name, share) in enumerate(marks.items()):
        where, hint = _place(share, left, right)
        marker, colour = _REFERENCE_MARKS[i % len(_REFERENCE_MARKS)]
        height = 0.0
        if hint:
            marker = ">" if where == right else "<"
            beyond += 1
            height = 0.06 * beyond
        ax.plot(
            [where], [height], transform=ax.get_xaxis_transform(), marker=marker, markersize=7, color=colour,
            markeredgecolor=INK, markeredgewidth=0.5, linestyle="none", clip_on=False, zorder=4,
            label=f"{text.verbatim(name)}: {text.percent_text(share)}{hint}",
        )  # fmt: skip
