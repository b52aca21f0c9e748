"""The published figures that the product does not draw by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from cmtrack import Evaluation
from cmtrack.plots import plot_score_histogram, style
from rare_events.variants import Scored

NAMES = ("other website", "platform")
DASHES = {"labels": "--", "probabilities": "-"}
LINES = {
    ("none", "labels"): ("No", "No", style.BLUE, "not calibrated, labels"),
    ("none", "probabilities"): ("No", "Yes", style.SKY, "not calibrated, probabilities"),
    ("in-sample", "labels"): ("Yes", "No", style.ORANGE, "calibrated in-sample, labels"),
    ("in-sample", "probabilities"): (
        "Yes",
        "Yes",
        "#e69f00",
        "calibrated in-sample, probabilities",
    ),
    ("out-of-fold", "probabilities"): (
        None,
        None,
        style.GREEN,
        "calibrated out-of-fold, probabilities",
    ),
    ("held-out", "probabilities"): (None, None, style.PINK, "calibrated held-out, probabilities"),
}


def histograms(y: np.ndarray, scored: Scored, calibration: str, title: str) -> Figure:
    """Figures 2.1, 2.4 and 2.5: the score by class, before and after calibration, linear and logarithmic."""
    values, where = np.unique(scored.target, return_inverse=True)
    counts = np.stack([np.bincount(where[y == k], minlength=len(values)) for k in (0, 1)])
    after = np.clip(scored.estimate(calibration).posterior(values), 0.0, 1.0)
    return plot_score_histogram(values, counts, NAMES, calibrated=after, title=title)


def rates(evaluation: Evaluation, title: str) -> tuple[Figure, float]:
    """Figure 2.2a: true positive and true negative rate by threshold; also the threshold at which they meet."""
    roc: Any = evaluation.roc
    thresholds = np.asarray(roc.thresholds, dtype=float)
    inside = np.isfinite(thresholds)
    t, tpr, tnr = thresholds[inside], np.asarray(roc.tpr)[inside], 1 - np.asarray(roc.fpr)[inside]
    meet = t[int(np.argmin(np.abs(tpr - tnr)))]
    t, tpr, tnr = np.r_[1.0, t, 0.0], np.r_[0.0, tpr, 1.0], np.r_[1.0, tnr, 0.0]
    figure = style.new_figure((5.6, 4.2), "constrained")
    ax = figure.subplots()
    style.plain_axes(ax)
    style.open_axes(ax)
    ax.step(t, tpr, color=style.BLUE, where="post", label="true positive rate")
    ax.step(t, tnr, color=style.ORANGE, where="post", label="true negative rate")
    ax.axvline(
        meet, color=style.MUTED, linewidth=1.0, linestyle=":", label=f"they meet at {meet:.2f}"
    )
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    style.name_axes(ax, "threshold (predicted probability)", "rate (share of the class)", title)
    figure.legend(
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=style.SMALL_SIZE,
        labelcolor=style.INK,
    )
    return figure, float(meet)


def by_weight(ours: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Figure 2.3: bias and sPCC by the positive class's weight, ours as lines and published as open circles.

    Parameters
    ----------
    ours : DataFrame
        Means, by weight, calibration and output.
    published : DataFrame
        By weight, BayesCal? and Proba?.
    """
    figure = style.new_figure((11.0, 4.6), "constrained")
    panels = figure.subplots(1, 3)
    _weight_panel(panels[0], ours, published, "Bias", list(LINES)[:2])
    _weight_panel(panels[1], ours, published, "Bias", list(LINES)[2:])
    _weight_panel(panels[2], ours, published, "sPCC", list(LINES))
    titles = ("not calibrated", "calibrated", "all variants")
    for ax, title, name in zip(panels, titles, ("bias", "bias", "sPCC"), strict=True):
        style.name_axes(ax, "weight of the positive class (log scale)", name, title)
    handles = [
        Line2D([], [], color=colour, linestyle=DASHES[key[1]], label=words)
        for key, (*_, colour, words) in LINES.items()
    ]
    handles.append(
        Line2D(
            [],
            [],
            color=style.MUTED,
            marker="o",
            markerfacecolor="white",
            linestyle="none",
            label="published",
        )
    )
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=4,
        frameon=False,
        fontsize=style.SMALL_SIZE,
        labelcolor=style.INK,
    )
    return figure


def _weight_panel(
    ax: Axes, ours: pd.DataFrame, published: pd.DataFrame, column: str, which: list[tuple[str, str]]
) -> None:
    style.plain_axes(ax)
    style.open_axes(ax)
    ax.axhline(0, color=style.MUTED, linewidth=1.0, linestyle=":")
    for key in which:
        calibrated, proba, colour, _ = LINES[key]
        line = ours.xs(key, level=("calibration", "output"))[column]
        ax.plot(line.index, line.to_numpy(), color=colour, linewidth=1.6, linestyle=DASHES[key[1]])
        if calibrated is not None:
            points = published.xs((calibrated, proba), level=("BayesCal?", "Proba?"))[column]
            ax.plot(
                [float(weight) for weight in points.index],
                points.to_numpy(),
                color=colour,
                marker="o",
                markerfacecolor="white",
                markersize=4.5,
                linestyle="none",
            )
    ax.set_xscale("log")
    ax.set_xticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
    ax.minorticks_off()


def caterpillar(simulated: pd.DataFrame, machine: str, share: float) -> Figure:
    """Estimates of one machine with their intervals over the draws, calibrated in three ways."""
    ways = ("in-sample", "out-of-fold", "held-out")
    chosen = simulated[(simulated["machine"] == machine) & (simulated["density"] == "bins")]
    figure = style.new_figure((10.0, 4.0), "constrained")
    for ax, way in zip(figure.subplots(1, 3, sharey=True), ways, strict=True):
        style.plain_axes(ax)
        style.open_axes(ax)
        rows = chosen[chosen["calibration"] == way].sort_values("count")
        place = np.arange(len(rows))
        for hit, colour in ((True, style.BLUE), (False, style.ORANGE)):
            own = (rows["count contains"] == hit).to_numpy()
            ax.vlines(
                place[own],
                rows["count_low"][own],
                rows["count_high"][own],
                color=colour,
                linewidth=1.0,
            )
            ax.plot(
                place[own],
                rows["count"][own],
                color=colour,
                marker="o",
                markersize=2.5,
                linestyle="none",
            )
        ax.plot(place, rows["actual"], color=style.INK, marker="_", markersize=3, linestyle="none")
        inside = 100 * rows["count contains"].mean()
        ax.set_xticks([])
        style.name_axes(
            ax, "draws, by their estimate", "", f"{way}: {inside:.0f}% contain the truth"
        )
    figure.axes[0].set_ylabel("platforms in the target", fontsize=style.TEXT_SIZE, color=style.INK)
    handles = [
        Line2D(
            [],
            [],
            color=style.BLUE,
            marker="o",
            markersize=3,
            label="estimate and 95% interval with the truth",
        ),
        Line2D([], [], color=style.ORANGE, marker="o", markersize=3, label="without it"),
        Line2D(
            [],
            [],
            color=style.INK,
            marker="_",
            linestyle="none",
            label=f"actual number, about {share:.0f}",
        ),
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=style.SMALL_SIZE,
        labelcolor=style.INK,
    )
    return figure
