"""The small matrices of the source in its own orientation, and truth beside estimates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from cmtrack.plots.style import (
    BLUE,
    EMPTY,
    FRAME,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    SMALL_SIZE,
    TEXT_SIZE,
    TITLE_SIZE,
    name_axes,
    new_figure,
    open_axes,
    plain_axes,
)
from discharge_codes.published import OOF, Cells
from discharge_codes.truth import OUTSIDE

_YELLOW = "#e69f00"
_KINDS = {"match": GREEN, "confused within the family": _YELLOW, "out of family": ORANGE}
_OTHER = "pair across families"


def cells_figure(panels: Sequence[tuple[str, Cells, Sequence[str]]], title: str) -> Figure:
    """Matrices of one document side by side, predictions as rows like in the source.

    Parameters
    ----------
    panels : sequence of (words, cells, codes along the axes)
    title : str
    """
    figure = new_figure((3.3 * len(panels) + 0.3, 4.4), "constrained")
    figure.suptitle(title, fontsize=TITLE_SIZE, color=INK)
    axes = np.atleast_1d(figure.subplots(1, len(panels)))
    for ax, (words, cells, codes) in zip(axes, panels, strict=True):
        _cells(ax, cells, codes)
        name_axes(ax, "gold code", "predicted code" if ax is axes[0] else "", None)
        ax.set_title(words, fontsize=TEXT_SIZE, color=INK)
    drawn = {_kind(pair) for _, cells, _ in panels for pair in cells}
    handles = [
        Patch(facecolor=colour, alpha=0.55, label=kind)
        for kind, colour in (*_KINDS.items(), (_OTHER, MUTED))
        if kind in drawn
    ]
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=len(handles),
        frameon=False,
        fontsize=SMALL_SIZE,
    )
    return figure


def recovery_figure(frame: pd.DataFrame, title: str) -> Figure:
    """Estimates with intervals against true probabilities (columns given, outcome, true, estimate, low, high)."""
    figure = new_figure((9.6, 4.9), "constrained")
    figure.suptitle(title, fontsize=TITLE_SIZE, color=INK)
    colours = {"right": GREEN, "a sibling": BLUE, OUTSIDE: ORANGE}
    for ax, given in zip(figure.subplots(1, 2), ("predicted", "actual"), strict=True):
        plain_axes(ax)
        open_axes(ax)
        ax.plot([0, 1], [0, 1], color=MUTED, lw=1, zorder=1)
        some = frame[frame["given"] == given]
        for kind, colour in colours.items():
            part = (
                some[some["outcome"] == kind]
                if kind in ("right", OUTSIDE)
                else some[~_named(some["outcome"])]
            )
            ends = np.maximum(
                0, np.array([part["estimate"] - part["low"], part["high"] - part["estimate"]])
            )
            ax.errorbar(
                part["true"],
                part["estimate"],
                yerr=np.nan_to_num(ends),
                fmt="o",
                ms=3.5,
                lw=1.1,
                color=colour,
            )
        missed = some[~some["contained"]]
        ax.plot(missed["true"], missed["estimate"], "o", ms=10, mfc="none", mec=INK, mew=0.9)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        name_axes(
            ax, "true probability", "estimate, with 95% interval", f"a code is {given}: what then?"
        )
    handles = [
        Line2D([], [], color=colour, marker="o", ms=4, label=kind)
        for kind, colour in colours.items()
    ]
    handles.append(
        Line2D(
            [],
            [],
            ls="none",
            marker="o",
            ms=9,
            mfc="none",
            mec=INK,
            label="truth outside the interval",
        )
    )
    handles.append(Line2D([], [], color=MUTED, lw=1, label="estimate = truth"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=SMALL_SIZE
    )
    return figure


def several_codes_figure(frame: pd.DataFrame, title: str) -> Figure:
    """Shares given an actual code against how many codes of the family a document has at once.

    Parameters
    ----------
    frame : DataFrame
        Columns at_once, outcome ("right", "a sibling", "out of family"), law, estimate: means over codes.
    """
    figure = new_figure((6.4, 4.2), "constrained")
    ax = figure.subplots()
    plain_axes(ax)
    open_axes(ax)
    for (outcome, part), colour in zip(
        frame.groupby("outcome", sort=False), (GREEN, BLUE, ORANGE), strict=True
    ):
        ax.plot(part["at_once"], part["estimate"], "-o", color=colour, label=f"{outcome}: estimate")
        ax.plot(part["at_once"], part["law"], ls=":", color=colour, lw=1.6, label=f"{outcome}: law")
    ax.set(ylim=(0, 1), xticks=sorted(frame["at_once"].unique()))
    name_axes(
        ax,
        "codes of the family that a document has at once",
        "share of actual codes, mean over codes",
        title,
    )
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL_SIZE)
    return figure


def _named(outcomes: pd.Series) -> pd.Series:
    return outcomes.isin(["right", OUTSIDE])


def _kind(pair: tuple[str, str]) -> str:
    if OOF in pair:
        return "out of family"
    if pair[0] == pair[1]:
        return "match"
    return (
        "confused within the family" if pair[0].split(".")[0] == pair[1].split(".")[0] else _OTHER
    )


def _cells(ax: Axes, cells: Cells, codes: Sequence[str]) -> None:
    plain_axes(ax)
    size = len(codes)
    for k in range(1, size):
        ax.axhline(k - 0.5, color=EMPTY, lw=0.8)
        ax.axvline(k - 0.5, color=EMPTY, lw=0.8)
    families = [code.split(".")[0] for code in codes]
    for k in range(1, size):
        if families[k] != families[k - 1]:
            ax.axhline(k - 0.5, color=FRAME, lw=1.6)
            ax.axvline(k - 0.5, color=FRAME, lw=1.6)
    for predicted, gold in cells:
        x, y = codes.index(gold), codes.index(predicted)
        colour = _KINDS.get(_kind((predicted, gold)), MUTED)
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, alpha=0.55, lw=0))
        ax.text(x, y, "1", ha="center", va="center", fontsize=SMALL_SIZE, color=INK)
    ax.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal")
    ax.set_xticks(range(size), codes, rotation=90, fontsize=SMALL_SIZE)
    ax.set_yticks(range(size), codes, fontsize=SMALL_SIZE)
    ax.tick_params(length=0)
