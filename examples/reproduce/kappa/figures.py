"""Figures of kappa against accuracy and against Matthews' correlation, in the product's look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack.plots.style import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PINK,
    SMALL_SIZE,
    legend_below,
    name_axes,
    open_axes,
)
from cmtrack.plots.style import sheet as new_sheet

_SIZE = (5.6, 4.2)


def same_margins_figure(
    tables: pd.DataFrame, chance: float, named: Mapping[str, tuple[float, float]]
) -> Figure:
    """Kappa against accuracy of tables with the same margins.

    Parameters
    ----------
    tables : DataFrame
        Columns accuracy, kappa, and chance (whether the raters know nothing of each other).
    chance : float
        p_e of the margins.
    named : mapping of str to (accuracy, kappa)
        Tables to be marked.
    """
    page, ax = new_sheet(None, _SIZE)
    open_axes(ax)
    ax.plot(
        [0, 1],
        [-chance / (1 - chance), 1],
        color=MUTED,
        lw=1.2,
        label="(accuracy − p_e) / (1 − p_e)",
    )
    for independent, colour, words in (
        (False, BLUE, "tables with these margins"),
        (True, ORANGE, "raters by chance"),
    ):
        some = tables[tables["chance"] == independent]
        ax.plot(
            some["accuracy"], some["kappa"], "o", ms=4, color=colour, alpha=0.55, mew=0, label=words
        )
    _zero(ax)
    ax.axvline(chance, color=INK, lw=0.8, ls=":")
    ax.text(chance + 0.012, -0.98, f"p_e = {chance:.4f}", fontsize=SMALL_SIZE, color=INK)
    for (words, (x, y)), marker, colour in zip(
        named.items(), ("*", "v", "^"), (PINK, INK, GREEN), strict=True
    ):
        label = f"{words}: kappa {y:.3f}"
        ax.plot(
            [x],
            [y],
            marker,
            ms=12 if marker == "*" else 8,
            color=colour,
            mec="white",
            mew=0.6,
            label=label,
        )
    ax.set(xlim=(-0.02, 1.02), ylim=(-1.04, 1.04))
    name_axes(
        ax,
        "accuracy (share on which both agree)",
        "Cohen's kappa",
        "Kappa and accuracy, margins of the chefs",
    )
    legend_below(ax)
    return page.finish()


def many_margins_figure(lines: Sequence[tuple[str, float, tuple[float, float]]]) -> Figure:
    """Kappa against accuracy for several margins.

    Parameters
    ----------
    lines : sequence of (words, p_e, (least, most accuracy that the margins allow))
    """
    page, ax = new_sheet(None, _SIZE)
    open_axes(ax)
    for (words, chance, ends), colour in zip(lines, (BLUE, GREEN, ORANGE, PINK), strict=False):
        x = np.array(ends)
        ax.plot([0, 1], [-chance / (1 - chance), 1], color=colour, lw=0.9, ls=":")
        y = (x - chance) / (1 - chance)
        label = f"{words}: p_e {chance:.3f}, kappa {y[0]:.3f} to {y[1]:.3f}"
        ax.plot(x, y, "-o", color=colour, lw=2, ms=5, label=label)
    _zero(ax)
    ax.set(xlim=(-0.02, 1.02), ylim=(-1.08, 1.04))
    name_axes(
        ax, "accuracy", "Cohen's kappa", "The same accuracy is another kappa under other margins"
    )
    legend_below(ax)
    return page.finish()


def matthews_figure(tables: pd.DataFrame, chefs: tuple[float, float]) -> Figure:
    """Kappa against Matthews' correlation of random tables (columns kappa, matthews, gap)."""
    page, ax = new_sheet(None, _SIZE)
    open_axes(ax)
    ax.plot([-1, 1], [-1, 1], color=MUTED, lw=1, label="equal: both raters have the same margins")
    dots = ax.scatter(
        tables["matthews"], tables["kappa"], c=tables["gap"], s=14, cmap="viridis_r", linewidths=0
    )
    ax.plot(
        *chefs,
        "*",
        ms=13,
        color=PINK,
        mec="white",
        label=f"the chefs: kappa {chefs[1]:.4f}, R_K {chefs[0]:.4f}",
    )
    ax.axhline(0, color=INK, lw=0.8)
    ax.axvline(0, color=INK, lw=0.8)
    bar = ax.figure.colorbar(dots, cax=ax.inset_axes((1.03, 0, 0.035, 1)))
    bar.set_label("largest difference of the margins (share)", fontsize=SMALL_SIZE, color=INK)
    bar.ax.tick_params(labelsize=SMALL_SIZE)
    ax.set(xlim=(-1.02, 1.02), ylim=(-1.02, 1.02))
    name_axes(
        ax,
        "Matthews' correlation R_K",
        "Cohen's kappa",
        "Kappa is nearer to zero than R_K, never farther",
    )
    legend_below(ax)
    return page.finish()


def _zero(ax: Axes) -> None:
    ax.axhline(0, color=INK, lw=0.8)
    ax.text(0.0, 0.03, "0: chance", fontsize=SMALL_SIZE, color=INK)
