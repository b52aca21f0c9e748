"""A figure of cost and metrics by threshold, which marks the chosen threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter
from scipy.special import expit, logit

from cmtrack import digits
from cmtrack.evaluation.catalog import lookup
from cmtrack.evaluation.threshold_rules import COST, values_of

from . import _text as text
from .reliability import reach_of
from .style import (
    BLUE,
    DASHED,
    DOT,
    DOTTED,
    GREEN,
    INK,
    MUTED,
    PINK,
    PURPLE,
    SKY,
    TEXT_SIZE,
    FloatArray,
    arrange,
    fold,
    legend_below,
    logit_axis,
    name_axes,
    new_figure,
    open_axes,
)

if TYPE_CHECKING:
    from cmtrack.evaluation.threshold import Threshold

_NEAR_AN_END = 0.03  # a threshold closer to 0 or 1 is hard to see on a linear axis
_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
_COLOURS = (GREEN, PINK, SKY, PURPLE, MUTED)
_COST = "mean cost of a decision"
_WIDE = 330.0  # width of a legend line in points


def plot_thresholds(
    thresholds: npt.ArrayLike,
    *,
    value: float,
    cost: npt.ArrayLike | None = None,
    metrics: Mapping[str, npt.ArrayLike] | None = None,
    judged: Mapping[str, tuple[float, float, float]] | None = None,
    calibrated: float = math.nan,
    bound: tuple[str, float] | None = None,
    positive: object | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the cost at each threshold, and metrics below it; one of the two may be missing.

    Parameters
    ----------
    thresholds : array_like of shape (T,)
        Thresholds in ascending order. The last threshold may be infinity, at which no row is
        predicted positive.
    value : float
        The chosen threshold.
    cost : array_like of shape (T,), optional
        Mean cost at each threshold, computed from the rows on which the threshold was chosen.
    metrics : mapping of str to array_like of shape (T,), optional
        Metrics at each threshold, by title, computed from the rows on which the threshold was
        chosen; NaN if undefined.
    judged : mapping of str to (value, low, high), optional
        The cost (key "cost") or metrics of the chosen threshold on held-out rows, and the limits of
        their intervals. Limits are NaN if there is no interval.
    calibrated : float
        The threshold with the least cost for calibrated scores; NaN if it does not exist.
    bound : (str, float), optional
        The requested bound in words, and the number in the bound.
    positive : object, optional
        Name of the positive class or group.
    title : str, optional

    Raises
    ------
    ValueError
        If there is neither a cost nor a metric, or if the shapes differ.

    Examples
    --------
    >>> from cmtrack.plots import plot_thresholds
    >>> figure = plot_thresholds([0.1, 0.4, 0.9], value=0.4, cost=[0.5, 0.25, 2.5], positive="ill")
    >>> figure.savefig("thresholds.png")
    """
    x = np.asarray(thresholds, dtype=np.float64)
    costs = [] if cost is None else [np.asarray(cost, dtype=np.float64)]
    curves = {name: np.asarray(curve, dtype=np.float64) for name, curve in (metrics or {}).items()}
    _check_shapes(x, [*costs, *curves.values()])
    n_panels = len(costs) + min(len(curves), 1)
    figure = new_figure((5.6, 1.7 + 2.7 * n_panels))
    panels = [figure.add_subplot(2, 1, k + 1) for k in range(n_panels)]
    low, high = _ends(x, [value, calibrated])
    x = np.concatenate(([low], np.clip(x, low, high)))
    chosen = float(np.clip(value, low, high))
    for ax in panels:
        open_axes(ax)
        _set_score_axis(ax, low, high)
        ax.axvline(chosen, **DASHED)
    panels[0].lines[0].set_label(f"chosen: {_score_words(value)}")
    held_out = judged or {}
    if costs:
        _draw_cost(panels[0], x, costs[0], calibrated)
        _draw_judged(panels[0], chosen, "cost", held_out.get("cost"), INK)
    if curves:
        for (name, curve), colour in zip(curves.items(), _COLOURS, strict=False):
            _draw_steps(panels[-1], x, curve, colour, text.verbatim(name))
            _draw_judged(panels[-1], chosen, name, held_out.get(name), colour)
        _finish_metrics(panels[-1], curves, bound)
    panels[-1].set_xlabel(_score_title(positive), fontsize=TEXT_SIZE, color=INK)
    handles = [handle for ax in panels for handle in ax.get_legend_handles_labels()[0]]
    arrange(figure, [[ax] for ax in panels], legend_below(panels[-1], handles), title=title)
    return figure


def _score_words(threshold: float) -> str:
    """Write a threshold as text; infinity becomes "no row", because no score reaches it."""
    return "no row" if math.isinf(threshold) else digits.significant(threshold)


def _score_title(positive: object | None) -> str:
    """Return the name of the threshold axis."""
    if positive is None:
        return "threshold of the score"
    return f"threshold of the score: probability of {text.brief(positive, 28)}"


def _check_shapes(thresholds: FloatArray, curves: Sequence[FloatArray]) -> None:
    """Raise ``ValueError`` if there is no curve, or if the shape of a curve is wrong."""
    shapes = [curve.shape for curve in curves]
    if thresholds.ndim != 1 or set(shapes) != {thresholds.shape}:
        raise ValueError(
            f"cost or metrics must have the shape of thresholds, {thresholds.shape}, got {shapes}"
        )


def _draw_cost(ax: Axes, x: FloatArray, cost: FloatArray, calibrated: float) -> None:
    """Draw the cost at each threshold, and mark the best threshold for calibrated scores."""
    label = "cost on the rows that chose the threshold (too optimistic at its minimum)"
    _draw_steps(ax, x, cost, BLUE, label)
    if math.isfinite(calibrated):
        place = float(np.clip(calibrated, *ax.get_xlim()))
        score = digits.significant(calibrated)
        words = f"cheapest threshold for calibrated scores: {score}"
        ax.axvline(place, label=words, **DOTTED)
    name_axes(ax, "", _COST, None)


def threshold_figure(threshold: Threshold, *, title: str | None = None) -> Figure:
    """Draw metrics (and cost, if costs are given) by threshold, and mark the chosen threshold.

    Parameters
    ----------
    threshold : Threshold
        The result of :meth:`cmtrack.Evaluation.threshold`.
    title : str, optional
        Title of the figure. The default title contains the name of the positive class or group.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.plots import threshold_figure
    >>> evaluation = evaluate(["no", "no", "yes", "yes"] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20)
    >>> threshold_figure(evaluation.threshold({("yes", "no"): 10})).savefig("threshold.png")
    """
    names = ["binary/recall", "binary/precision", "binary/specificity"]
    held_out = {}
    for goal in (threshold.objective, threshold.bounded):
        if goal is None:
            continue
        heading = "cost"
        if goal.name != COST:
            names.append(goal.name)
            heading = lookup(goal.name).heading()
        held_out[heading] = (goal.value, goal.low, goal.high)
    metrics = {
        lookup(name).heading(): values_of(lookup(name), threshold.counts)
        for name in dict.fromkeys(names)
    }
    cost = None
    if threshold.costs is not None:
        cost = threshold.costs.of(threshold.counts)
    if title is None:
        title = f"Threshold of {text.brief(threshold.positive, 40)}"
    return plot_thresholds(
        threshold.thresholds,
        value=threshold.value,
        cost=cost,
        metrics=metrics,
        judged=held_out,
        calibrated=threshold.calibrated,
        bound=threshold.bound_in_words,
        positive=threshold.positive,
        title=title,
    )


def _ends(thresholds: FloatArray, marks: list[float]) -> tuple[float, float]:
    """Return the limits of the axis; the lower limit is above 0 on a log-odds scale.

    The axis has a log-odds scale if a mark is close to 0 or 1.
    """
    finite = thresholds[np.isfinite(thresholds)].tolist()
    finite_marks = [mark for mark in marks if math.isfinite(mark)]
    between = [mark for mark in finite_marks if 0 < mark < 1]
    if not any(min(mark, 1 - mark) < _NEAR_AN_END for mark in between):
        return 0.0, 1.02 * reach_of(max([*(finite or [1.0]), *finite_marks]))
    between += [score for score in finite if 0 < score < 1]
    left, right = logit((max(min(between), 1e-6), min(max(between), 1 - 1e-6)))
    edge = 0.04 * (right - left) + 0.1
    return float(expit(left - edge)), float(expit(right + edge))


def _set_score_axis(ax: Axes, low: float, high: float) -> None:
    if low > 0:
        logit_axis(ax.xaxis, [tick for tick in _TICKS if low < tick < high], digits.short_percent)
    else:
        ax.xaxis.set_major_formatter(FuncFormatter(lambda score, _: digits.short_percent(score)))
    ax.set_xlim(low, high)


def _draw_steps(ax: Axes, x: FloatArray, y: FloatArray, colour: str, label: str) -> None:
    """Draw a step curve that is constant between a threshold and the next lower threshold."""
    ax.plot(
        x,
        np.append(y[:1], y),
        drawstyle="steps-pre",
        color=colour,
        linewidth=1.6,
        zorder=3,
        label=fold(label, _WIDE),
    )


def _draw_judged(
    ax: Axes, x: float, name: str, judged: tuple[float, float, float] | None, colour: str
) -> None:
    """Draw the held-out performance of the chosen threshold, and its interval."""
    if judged is None or not math.isfinite(judged[0]):
        return
    value, low, high = judged
    arms = None
    words = f"{name} on rows that did not choose the threshold: {digits.significant(value)}"
    if math.isfinite(low + high):
        arms = [[value - low], [high - value]]
        words += f" [{digits.significant(low)}, {digits.significant(high)}]"
    ax.errorbar(
        [x],
        [value],
        yerr=arms,
        color=colour,
        marker="o",
        markersize=5.5,
        capsize=3,
        linewidth=1.6,
        zorder=4,
        label=fold(words, _WIDE),
        **DOT,
    )


def _finish_metrics(
    ax: Axes, curves: Mapping[str, FloatArray], bound: tuple[str, float] | None
) -> None:
    if bound is not None:
        words, height = bound
        label = f"required: {text.verbatim(words)}"
        ax.axhline(height, color=MUTED, linewidth=1.0, linestyle="-.", label=label)
    values = np.concatenate(list(curves.values()))
    ax.set_ylim(np.nanmin(values[np.isfinite(values)], initial=0.0), 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    name_axes(ax, "", "metric on the rows that chose", None)
