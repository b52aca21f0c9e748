"""A table of the metrics of all runs, whose colours show distances from the best run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from cmtrack import digits
from cmtrack.metrics.metric import BETTER
from cmtrack.names import MAY_BE_BEST
from cmtrack.plots import _heatmap as heat
from cmtrack.plots import _text as text
from cmtrack.plots.style import EMPTY, INK, SMALL_SIZE, TITLE_SIZE, FloatArray, extent_points, sheet

from ._layout import BoolArray, caption_under

_WIDTH = 0.72  # inches per cell
_HEIGHT = 0.25
_LARGEST = 16.0  # number of standard errors from the best at which the colour is deepest
_ARROWS = {"higher": "↑", "lower": "↓", "nearest zero": "→0"}
_WORDS = {arrow: BETTER[word] for word, arrow in _ARROWS.items()}


def plot_metric_heatmap(
    names: Sequence[object],
    metric_titles: Sequence[str],
    values: npt.ArrayLike,
    better: Sequence[str],
    *,
    errors: npt.ArrayLike | None = None,
    tied: BoolArray | None = None,
    tied_are: str = MAY_BE_BEST,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a table of runs and metrics; colours show distances from the best value of a column.

    The unit of the distance is a standard error, so random differences stay pale. The scale is
    logarithmic and ends at 16, so a bad run does not hide the differences between all other runs.
    The colours compare only the shown runs: a value in a white cell is near the best shown value,
    but may still be bad.

    ``names``, sequence of length R: names of the runs, best first.
    ``metric_titles``, sequence of length M: names of the metrics.
    ``values``, shape (R, M): the metrics; NaN if undefined.
    ``better``, sequence of length M: for each metric ``"higher"``, ``"lower"`` or ``"nearest
        zero"``.
    ``errors``, shape (R, M): standard errors of the values; NaN if unknown. The unit of a column's
        distances is the column's median standard error. If a column contains no standard errors,
        the unit is a quarter of the median distance.
    ``tied``, shape (R,): mask of the runs that may be the best; their names are bold.
    ``tied_are``: the meaning of bold names, in words.
    ``title``, ``ax``: title of the axes, and axes to draw into; by default, a new figure is
        created, which is not registered with pyplot.
    """
    table = np.asarray(values, dtype=np.float64)
    n_runs, n_metrics = table.shape
    page, ax = sheet(ax, (n_metrics * _WIDTH, n_runs * _HEIGHT))
    if errors is None:
        errors = np.full(table.shape, np.nan)
    spread = np.asarray(errors, dtype=np.float64)
    tones = column_tones(table, better, spread)
    image = heat.draw_image(ax, tones, _tone_map(), Normalize(0.0, 1.0), aspect="auto")
    decimals = [digits.places_apart(table[:, j].tolist()) for j in range(n_metrics)]
    heat.write_cells(ax, image, tones, lambda i, j: _number(table[i, j], decimals[j]), SMALL_SIZE)
    ax.set_xticks(np.arange(n_metrics + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n_runs + 1) - 0.5, minor=True)
    ax.grid(True, which="minor", color="white", linewidth=1.5)
    ax.tick_params(which="both", length=0)
    ax.spines[:].set_visible(False)
    shown = text.short_names(names, 40)
    ax.set_yticks(range(n_runs), shown, fontsize=SMALL_SIZE, color=INK)
    metrics = text.short_names(metric_titles, 36)
    _name_metrics(
        ax, [f"{name} {_ARROWS[word]}" for name, word in zip(metrics, better, strict=True)]
    )
    lines = _explanations(tones, better, spread)
    if tied is not None:
        for words, bold in zip(ax.get_yticklabels(), tied, strict=True):
            words.set_fontweight("bold" if bold else "normal")
        lines.append(f"Runs with a bold name {tied_are}.")
    lines += text.numbered(shown) or text.numbered(metrics)
    caption_under(ax, ax.patch, lines, max(extent_points(ax)[0], 330.0))
    if title is not None:
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, pad=9)
    return page.finish()


def column_tones(values: FloatArray, better: Sequence[str], errors: FloatArray) -> FloatArray:
    """Return the distance of each value from the best value of its column, scaled to [0, 1].

    Distances of up to one standard error become 0. Above this, the scale is logarithmic, and 16
    standard errors become 1.
    """
    tones = np.full(values.shape, np.nan)
    for j, direction in enumerate(better):
        goodness = values[:, j]
        if direction == "lower":
            goodness = -goodness
        elif direction == "nearest zero":
            goodness = -np.abs(goodness)
        defined = np.isfinite(goodness)
        if defined.any():
            behind = goodness[defined].max() - goodness[defined]
            steps = np.maximum(behind / _unit(behind, errors[:, j]), 1.0)
            tones[defined, j] = np.clip(np.log2(steps) / np.log2(_LARGEST), 0.0, 1.0)
    return tones


def _unit(behind: FloatArray, errors: FloatArray) -> float:
    """Return the unit of distances: the median error, or a quarter of the median distance."""
    sizes = errors[np.isfinite(errors) & (errors > 0)]
    if sizes.size:
        return float(np.median(sizes))
    if not behind.any():
        return 1.0
    return float(np.median(behind[behind > 0])) / 4


def _tone_map() -> Colormap:
    """Return the colour map from white to an orange that is light enough for numbers."""
    ramp = ["#ffffff", "#fde3c8", "#f6a860", "#d9752b"]
    return LinearSegmentedColormap.from_list("cmtrack_behind", ramp, N=256).with_extremes(bad=EMPTY)


def _name_metrics(ax: Axes, titles: Sequence[str]) -> None:
    """Write names above the columns: in up to three lines if they fit, otherwise slanted."""
    room = 0.95 * extent_points(ax)[0] / len(titles)
    shown = [text.wrap(name, int(text.characters(room, SMALL_SIZE))) for name in titles]
    turn: dict[str, Any] = {}
    if any(name.count("\n") > 2 or text.text_width(name, SMALL_SIZE) > room for name in shown):
        shown = list(titles)
        turn = {"rotation": 40, "ha": "left", "rotation_mode": "anchor"}
    ax.xaxis.tick_top()
    ax.set_xticks(range(len(shown)), shown, fontsize=SMALL_SIZE, color=INK, **turn)
    ax.tick_params(which="both", length=0)


def _explanations(tones: FloatArray, better: Sequence[str], errors: FloatArray) -> list[str]:
    arrows = [arrow for arrow in _WORDS if arrow in {_ARROWS[word] for word in better}]
    lines = ["; ".join(f"{arrow} {_WORDS[arrow]}" for arrow in arrows) + "."]
    measured = (np.isfinite(errors) & (errors > 0)).any(axis=0)
    unmeasured = "Orange values are behind the best of their column"
    if measured.any():
        unmeasured = "Columns without a standard error"
        scale = (
            "White values are at most one standard error behind the best of their column. "
            "The deeper the orange, the farther behind"
        )
        if np.nanmax(tones, initial=0) >= 1:
            scale += f", up to {_LARGEST:.0f} standard errors"
        lines.append(f"{scale}.")
    if not measured.all() and len(tones) > 1:
        lines.append(f"{unmeasured}: the middle tone shows the median distance.")
    undefined = int(np.isnan(tones).sum())
    if undefined:
        lines.append(f"Grey cells (–) are undefined ({undefined} of {tones.size}).")
    return lines


def _number(value: float, places: int) -> str:
    return digits.fixed(value, places) if math.isfinite(value) else "–"
