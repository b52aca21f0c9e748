"""Cost and metrics by score threshold, with the chosen one and its held-out performance."""

from __future__ import annotations

import math
from collections.abc import Mapping
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
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PINK,
    SKY,
    YELLOW,
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

_NEAR_AN_END = 0.03
_TICKS = (1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
_COLOURS = (GREEN, PINK, SKY, YELLOW, MUTED)
_COST = "mean cost of a decision"
_WIDE = 330.0  # points of a line of the legend


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
    """Draw cost by threshold, and metrics below; either may be left out.

    Parameters
    ----------
    thresholds : array_like of shape (T,)
        Ascending; the last may be infinity: nothing is called positive.
    value : float
        The chosen threshold.
    cost : array_like of shape (T,), optional
        Mean cost on the rows that chose it.
    metrics : mapping of str to array_like of shape (T,), optional
        By their names for people, on the rows that chose the threshold; NaN where undefined.
    judged : mapping of str to (value, low, high), optional
        What the chosen threshold is worth on other rows, with an interval (NaN without one): of "cost", or of a metric.
    calibrated : float
        The threshold of least cost if the scores were calibrated; NaN for none.
    bound : (str, float), optional
        A bound that was asked for, in words, and its height.
    positive : object, optional
        Name of the positive class or group.
    title : str, optional

    Raises
    ------
    ValueError
        If there is neither a cost nor a metric, or shapes differ.

    Examples
    --------
    >>> from cmtrack.plots import plot_thresholds
    >>> figure = plot_thresholds([0.1, 0.4, 0.9], value=0.4, cost=[0.5, 0.25, 2.5], positive="ill")
    >>> figure.savefig("thresholds.png")
    """
    x = np.asarray(thresholds, dtype=np.float64)
    y = None if cost is None else np.asarray(cost, dtype=np.float64)
    curves = {name: np.asarray(curve, dtype=np.float64) for name, curve in (metrics or {}).items()}
    drawn = [*([] if y is None else [y]), *curves.values()]
    if not drawn or any(curve.shape != x.shape for curve in drawn) or x.ndim != 1:
        shapes = [curve.shape for curve in drawn]
        raise ValueError(
            f"cost or metrics must have the shape of thresholds, {x.shape}, got {shapes}"
        )
    n_panels = (y is not None) + bool(curves)
    figure = new_figure((5.6, 1.7 + 2.7 * n_panels))
    (low, high), dots = _ends(x, [value, calibrated]), dict(judged or {})
    x, chosen = np.concatenate(([low], np.clip(x, low, high))), float(np.clip(value, low, high))
    panels = [figure.add_subplot(2, 1, k + 1) for k in range(n_panels)]
    for ax in panels:
        open_axes(ax)
        at = "no row" if math.isinf(value) else digits.significant(value)
        ax.axvline(
            chosen,
            color=INK,
            linewidth=1.0,
            linestyle="--",
            label=f"chosen: {at}" if ax is panels[0] else None,
        )
        if low > 0:
            logit_axis(ax.xaxis, [tick for tick in _TICKS if low < tick < high], "{:g}".format)
        else:
            ax.xaxis.set_major_formatter(FuncFormatter(lambda score, _: f"{score:g}"))
        ax.set_xlim(low, high)
    if y is not None:
        label = "cost on the rows that chose the threshold: too favourable where it is lowest"
        _draw_steps(panels[0], x, y, BLUE, label)
        if math.isfinite(calibrated):
            panels[0].axvline(
                float(np.clip(calibrated, low, high)),
                color=MUTED,
                linewidth=1.0,
                linestyle=":",
                label=f"of least cost if the scores were calibrated: {digits.significant(calibrated)}",
            )
        _draw_judged(panels[0], chosen, "cost", dots.get("cost"), ORANGE)
        name_axes(panels[0], "", _COST, None)
    if curves:
        for (name, curve), colour in zip(curves.items(), _COLOURS, strict=False):
            _draw_steps(panels[-1], x, curve, colour, text.verbatim(name))
            _draw_judged(panels[-1], chosen, name, dots.get(name), colour)
        _finish_metrics(panels[-1], curves, bound)
    of = "" if positive is None else f": probability of {text.brief(positive, 28)}"
    panels[-1].set_xlabel(f"threshold of the score{of}", fontsize=9.5, color=INK)
    handles = [handle for ax in panels for handle in ax.get_legend_handles_labels()[0]]
    arrange(figure, [[ax] for ax in panels], legend_below(panels[-1], handles), title=title)
    return figure


def threshold_figure(threshold: Threshold, *, title: str | None = None) -> Figure:
    """Draw a chosen threshold: cost, if there are costs, and metrics by threshold.

    Parameters
    ----------
    threshold : Threshold
        What :meth:`cmtrack.Evaluation.threshold` returned.
    title : str, optional
        By default it names the positive class or group.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> from cmtrack.plots import threshold_figure
    >>> evaluation = evaluate(["no", "no", "yes", "yes"] * 20, y_prob=[0.1, 0.6, 0.4, 0.9] * 20)
    >>> threshold_figure(evaluation.threshold({("yes", "no"): 10})).savefig("threshold.png")
    """
    parts = [part for part in (threshold.objective, threshold.bounded) if part is not None]
    names = [
        "binary/recall",
        "binary/precision",
        "binary/specificity",
        *(p.name for p in parts if p.name != COST),
    ]
    metrics = {
        lookup(name).heading(): values_of(lookup(name), threshold.counts)
        for name in dict.fromkeys(names)
    }
    judged = {
        "cost" if p.name == COST else lookup(p.name).heading(): (p.value, p.low, p.high)
        for p in parts
    }
    return plot_thresholds(
        threshold.thresholds,
        value=threshold.value,
        cost=threshold.costs.of(threshold.counts) if threshold.costs is not None else None,
        metrics=metrics,
        judged=judged,
        calibrated=threshold.calibrated,
        bound=threshold.bound_in_words,
        positive=threshold.positive,
        title=f"Threshold of {text.brief(threshold.positive, 40)}" if title is None else title,
    )


def _ends(thresholds: FloatArray, marks: list[float]) -> tuple[float, float]:
    """Ends of the axis; the lower one is above 0 where the axis is of log-odds, as a mark is close to 0 or 1."""
    inner, there = (
        thresholds[np.isfinite(thresholds)],
        [mark for mark in marks if math.isfinite(mark)],
    )
    between = [mark for mark in there if 0 < mark < 1]
    if not any(min(mark, 1 - mark) < _NEAR_AN_END for mark in between):
        return 0.0, 1.02 * reach_of(max([inner.max() if len(inner) else 1.0, *there]))
    between += inner[(inner > 0) & (inner < 1)].tolist()
    left, right = logit((max(min(between), 1e-6), min(max(between), 1 - 1e-6)))
    edge = 0.04 * (right - left) + 0.1
    return float(expit(left - edge)), float(expit(right + edge))


def _draw_steps(ax: Axes, x: FloatArray, y: FloatArray, colour: str, label: str) -> None:
    """Draw a step curve, constant down to the next lower threshold."""
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
    """Draw the chosen threshold's held-out performance, with its interval."""
    if judged is None or not math.isfinite(judged[0]):
        return
    at, low, high = judged
    whole = math.isfinite(low + high)
    words = f"{name} on rows that did not choose the threshold: {digits.significant(at)}"
    ax.errorbar(
        [x],
        [at],
        yerr=[[at - low], [high - at]] if whole else None,
        color=colour,
        marker="o",
        markersize=5.5,
        markeredgecolor="white",
        capsize=3,
        linewidth=1.6,
        linestyle="none",
        zorder=4,
        clip_on=False,
        label=fold(
            words + (f" [{digits.significant(low)}, {digits.significant(high)}]" if whole else ""),
            _WIDE,
        ),
    )


def _finish_metrics(
    ax: Axes, curves: Mapping[str, FloatArray], bound: tuple[str, float] | None
) -> None:
    if bound is not None:
        words, height = bound
        ax.axhline(
            height,
            color=MUTED,
            linewidth=1.0,
            linestyle="-.",
            label=f"asked for: {text.verbatim(words)}",
        )
    there = np.concatenate([curve[np.isfinite(curve)] for curve in curves.values()])
    ax.set_ylim(min(0.0, there.min(initial=0.0)), 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    name_axes(ax, "", "metric on the rows that chose", None)
