"""ROC curves of several runs in one picture."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack.plots import _text as text
from cmtrack.plots.roc import of_positive
from cmtrack.plots.style import (
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
    legend_below,
    open_axes,
    sheet,
    unit_square,
)

from . import _layout as layout
from ._layout import caption_under, left_out

_COLOURS = (BLUE, ORANGE, GREEN, PINK, SKY, YELLOW, INK, MUTED)
_DASHES: tuple[tuple[float, ...], ...] = (
    (), (6, 2), (1.2, 1.6), (7, 2, 1.2, 2), (3, 1.5), (7, 2, 1.2, 2, 1.2, 2), (9, 4), (4, 1.5, 4, 1.5, 1.2, 1.5),
)  # fmt: skip


def plot_roc_overlay(
    curves: Sequence[tuple[object, npt.ArrayLike, npt.ArrayLike]],
    *,
    areas: npt.ArrayLike,
    intervals: npt.ArrayLike | None = None,
    ceilings: npt.ArrayLike | None = None,
    normalized: npt.ArrayLike | None = None,
    positive: object | None = None,
    max_curves: int = 8,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw several ROC curves over each other, told apart by colour and by line style.

    Parameters
    ----------
    curves : sequence of (name, fpr, tpr)
        Best first; false and true positive rates as two sequences of one length, from the highest threshold to
        the lowest.
    areas : array_like of shape (R,)
        Area under each curve; NaN where undefined.
    intervals : array_like of shape (R, 2), optional
        Limits of the areas; NaN where there are none.
    ceilings : array_like of shape (R,), optional
        Largest reachable true positive rate of each curve; one below 1 is marked by a short dashed line to the
        right of the frame, and has its own line of chance.
    normalized : array_like of shape (R,), optional
        Area over ceiling, by default computed; written where a ceiling is below 1.
    positive : object, optional
        Name of the positive class or group.
    max_curves : int, default 8
        Curves that are drawn at most.
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
        If there is no curve or shapes do not fit together.
    """
    n_runs = len(curves)
    if not n_runs:
        raise ValueError("curves must hold at least one (name, fpr, tpr), got none")
    layout.check_limit("max_curves", max_curves)
    area = layout.check_numbers("areas", areas, (n_runs,))
    limits = layout.check_intervals(
        "intervals", np.full((n_runs, 2), np.nan) if intervals is None else intervals, n_runs
    )
    tops = layout.check_numbers("ceilings", np.ones(n_runs) if ceilings is None else ceilings, (n_runs,))
    relative = area / np.where(tops > 0, tops, np.nan)
    if normalized is not None:
        relative = layout.check_numbers("normalized", normalized, (n_runs,))
    points = [_points(name, fpr, tpr) for name, fpr, tpr in curves]
    names = text.short_names([name for name, _, _ in curves], 40)
    n = min(n_runs, max_curves)
    page = sheet(ax, (5.0, 5.0))
    ax = page.ax
    open_axes(ax)
    reached = np.where(np.isfinite(tops[:n]), tops[:n], 1.0)
    for top in sorted(set(reached.tolist()), reverse=True):
        ax.plot([0, 1], [0, top], color=MUTED, linewidth=0.8, linestyle=":", zorder=1, label="_chance")
    for i in range(n):
        colour = _COLOURS[i % len(_COLOURS)]
        dashes = _DASHES[(i + i // len(_COLOURS)) % len(_DASHES)]
        label = f"{names[i]}: {_area_text(area[i], limits[i], tops[i], relative[i])}"
        ax.plot(
            *points[i], color=colour, linestyle=(0, dashes) if dashes else "-", linewidth=1.7, label=label,
            zorder=3 - i / n_runs, clip_on=False,
        )  # fmt: skip
        if tops[i] < 1:
            ax.plot(
                [1.01, 1.06], [tops[i], tops[i]], color=colour, linewidth=1.7, linestyle=(0, (2.5, 1)),
                clip_on=False, label="_ceiling",
            )  # fmt: skip
    unit_square(ax, "false positive rate", "true positive rate" + of_positive(positive), title)
    capped = bool((tops[:n] < 1).any())
    chance = "Dotted lines: chance, up to the ceiling of each curve." if capped else "Dotted diagonal: chance."
    lines = [chance, *left_out(n_runs, n, "curves")]
    lines += text.numbered(names[:n])
    if np.isfinite(limits[:n]).any():
        lines.append("In brackets: the interval of each area by itself.")
    if capped:
        lines.append(
            "Dashes right of the frame: the ceiling, the largest share of positives that a curve can reach. Compare "
            "normalised areas (area / ceiling; chance is 0.5): areas under different ceilings are not comparable."
        )
    caption_under(ax, legend_below(ax), lines, extent_points(ax)[0] + 30)
    return page.finish()


def _points(name: object, fpr: npt.ArrayLike, tpr: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    x, y = np.asarray(fpr, dtype=np.float64), np.asarray(tpr, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or not x.size:
        raise ValueError(f"fpr and tpr of {name!r} must have one shape (n_points,), got {x.shape} and {y.shape}")
    return x, y


def _area_text(area: float, limits: FloatArray, ceiling: float, normalized: float) -> str:
    parts = f"AUC {text.number_text(area)}"
    if math.isfinite(area) and np.isfinite(limits).all():
        parts += f" ({limits[0]:.3f} to {limits[1]:.3f})"
    return parts + (f", ceiling {ceiling:.3f}, normalised {text.number_text(normalized)}" if ceiling < 1 else "")
