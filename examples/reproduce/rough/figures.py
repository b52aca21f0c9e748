"""Alpha as printed against alpha corrected, and how sharp the bounds are, in the product's look."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cmtrack.plots.style import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    TITLE_SIZE,
    legend_below,
    name_axes,
    new_figure,
    open_axes,
    plain_axes,
)
from cmtrack.plots.style import sheet as new_sheet


def alpha_figure(numbers: pd.DataFrame, example: tuple[float, float, float]) -> Figure:
    """Alpha against accuracy (columns accuracy, printed, corrected, gamma).

    Parameters
    ----------
    numbers : DataFrame
    example : (float, float, float)
        Accuracy, alpha as printed and alpha corrected of Table 7.
    """
    page, ax = new_sheet(None, (5.8, 4.3))
    open_axes(ax)
    g = np.linspace(0, 1, 101)
    ax.plot(g, g / (2 - g), color=INK, lw=1, label="g / (2 − g)")
    ax.plot(
        numbers["accuracy"],
        numbers["printed"],
        "o",
        ms=3,
        mew=0,
        alpha=0.5,
        color=ORANGE,
        label="equation 3.5 as printed",
    )
    ax.plot(
        numbers["accuracy"],
        numbers["corrected"],
        "o",
        ms=3,
        mew=0,
        alpha=0.5,
        color=BLUE,
        label="with the weights n_i. + n_.i − n_ii",
    )
    x, printed, corrected = example
    ax.plot([x, x], [printed, corrected], "*", ms=12, color=INK, mec="white", label="Table 7")
    ax.axhline(1, color=MUTED, lw=1, ls="--", label="largest possible accuracy of approximation")
    ax.set(xlim=(0, 1.02), ylim=(0, 2.05))
    name_axes(
        ax,
        "accuracy g of the classifier",
        "weighted alpha",
        "Alpha of equation 3.5 on random tables",
    )
    legend_below(ax)
    return page.finish()


def sharpness_figure(numbers: pd.DataFrame) -> Figure:
    """Boxes of what each bound misses, as a share of the samples."""
    figure = new_figure((8.6, 3.8), "constrained")
    figure.suptitle(
        "How far the bounds are from the approximations", fontsize=TITLE_SIZE, color=INK
    )
    sides = (
        ("lower approximations", ("nl*", "nl**", "nl^m"), "bound less sum of nl"),
        ("upper approximations", ("nu*", "nu**", "nu^m"), "sum of nu less bound"),
    )
    top = 1.05 * float(numbers[[name for _, names, _ in sides for name in names]].to_numpy().max())
    for ax, (title, names, words) in zip(figure.subplots(1, 2), sides, strict=True):
        plain_axes(ax)
        open_axes(ax)
        look = {"color": INK, "linewidth": 1.0}
        ax.boxplot(
            [numbers[name] for name in names],
            tick_labels=list(names),
            widths=0.55,
            patch_artist=True,
            whis=(5, 95),
            showfliers=False,
            boxprops={"facecolor": BLUE, "alpha": 0.45},
            medianprops=look,
            whiskerprops=look,
            capprops=look,
        )
        ax.set_ylim(-0.02, top)
        name_axes(ax, "bound", f"{words} / samples", title)
    return figure
