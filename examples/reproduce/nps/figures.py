"""Figures 8, 9 and 10, in the product's look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack.plots.review import plot_roc_overlay
from cmtrack.plots.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    SMALL_SIZE,
    TEXT_SIZE,
    name_axes,
    new_figure,
    open_axes,
    plain_axes,
)
from nps.reductions import ROWS_ROC
from nps.trials import Trial, columns, spreads

_YELLOW = "#e69f00"
_STEPS = (("11 x 11", BLUE), ("3 x 3 + IM", GREEN), ("2 x 2 + IM", _YELLOW))


def steps_figure(ours: Sequence[pd.Series], known: Sequence[pd.Series], title: str) -> Figure:
    """Figure 8: four metrics of one algorithm for three matrices; bars ours (with spread), diamonds published.

    Parameters
    ----------
    ours : sequence of three Series of Spread
        By name of the metric, in one order.
    known : sequence of three Series of float
    title : str
    """
    figure = new_figure((7.2, 4.2), "constrained")
    ax = figure.subplots()
    plain_axes(ax)
    open_axes(ax)
    names = list(ours[0].index)
    at, width = np.arange(len(names)), 0.26
    for k, (label, colour) in enumerate(_STEPS):
        place = at + (k - 1) * width
        mean, sd = ([getattr(spread, part) for spread in ours[k]] for part in ("mean", "sd"))
        ax.bar(place, mean, 0.9 * width, color=colour, label=f"{label}, ours", zorder=2)
        ax.errorbar(
            place,
            mean,
            yerr=np.nan_to_num(sd),
            fmt="none",
            ecolor=INK,
            elinewidth=1.0,
            capsize=2.5,
            zorder=3,
        )
        points = known[k].to_numpy()
        ax.plot(
            place,
            points,
            "D",
            color=ORANGE,
            markersize=5.5,
            markeredgecolor="white",
            zorder=4,
            label="published" if k == 0 else None,
        )
    ax.set_xticks(at, names, fontsize=TEXT_SIZE)
    ax.set_ylim(0, 1)
    ax.grid(False, axis="x")
    name_axes(ax, "metric", "value", title)
    _legend(figure, ax)
    return figure


def roc_figure(trial: Trial, title: str) -> Figure:
    """Figure 9: the curves of all algorithms on one validation set, with their ceilings."""
    curves = {
        name: curve
        for name in columns([trial])
        if (curve := trial.evaluations[name].roc) is not None
    }
    return plot_roc_overlay(
        [(name, curve.fpr, curve.tpr) for name, curve in curves.items()],
        areas=[curve.auc for curve in curves.values()],
        ceilings=[curve.ceiling for curve in curves.values()],
        positive="not detractor",
        title=title,
    )


def area_figure(trials: Sequence[Trial], title: str) -> Figure:
    """Figure 10: area, ceiling and normalised area of each algorithm, mean and spread over the surveys."""
    table = spreads(trials, ROWS_ROC)
    names = columns(trials)
    figure = new_figure((7.2, 4.0), "constrained")
    ax = figure.subplots()
    plain_axes(ax)
    open_axes(ax)
    marks = {"AUC": (BLUE, "o"), "ceiling": (MUTED, "_"), "normalised AUC": (ORANGE, "D")}
    words = {
        "AUC": "AUC under the curve as it is (the published comparison)",
        "ceiling": "ceiling: share of positives whose class within the group is right",
        "normalised AUC": "normalised AUC: AUC / ceiling",
    }
    for k, (row, (colour, marker)) in enumerate(marks.items()):
        spread = table.loc[row, names]
        place = np.arange(len(names)) + (k - 1) * 0.16
        mean, sd = [s.mean for s in spread], np.nan_to_num([s.sd for s in spread])
        ax.errorbar(
            place,
            mean,
            yerr=sd,
            fmt=marker,
            color=colour,
            markersize=10 if marker == "_" else 6,
            elinewidth=1.0,
            markeredgewidth=2.0 if marker == "_" else 0.5,
            capsize=2.5,
            label=words[row],
            zorder=3,
        )
    ax.set_xticks(
        np.arange(len(names)), [name.replace(" ", "\n") for name in names], fontsize=SMALL_SIZE
    )
    ax.set_ylim(0, 1)
    ax.grid(False, axis="x")
    name_axes(ax, "algorithm", "area, or share of the positives", title)
    _legend(figure, ax)
    return figure


def _legend(figure: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=2,
        frameon=False,
        fontsize=SMALL_SIZE,
        labelcolor=INK,
    )
