"""Ranks: how certain they are over draws of the rows, and their averages over data sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmtrack.plots import _heatmap as heat
from cmtrack.plots import _text as text
from cmtrack.plots import style
from cmtrack.plots.style import (
    BLUE,
    FRAME,
    INK,
    ORANGE,
    SMALL_SIZE,
    TEXT_SIZE,
    TITLE_SIZE,
    caption_below,
    hit_map,
    name_axes,
    of_shape,
    sheet,
)


def plot_rank_distribution(
    names: Sequence[object],
    probabilities: npt.ArrayLike,
    *,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the probability of each rank (columns, 1 is the best) of each run (rows, best on top).

    Up to about 30 runs a probability of at least 1% is written into its cell; more runs are an image on a square-root
    colour scale.

    ``names``, sequence of length R: names of the runs, best first.
    ``probabilities``, shape (R, R): ``[run, rank - 1]``; each row adds up to 1.
    ``title``, ``ax``: of the axes; by default those of a new figure, which pyplot does not know.
    """
    n_runs, shares = len(names), np.asarray(probabilities, dtype=np.float64)
    cell = heat.Cell(60.0) if n_runs <= 3 and ax is None else heat.cell_for(n_runs, ax)
    if ax is None and 3 < n_runs <= 30:
        cell = heat.Cell(min(40.0, max(26.0, 300.0 / n_runs)))
    page, ax = heat.matrix_sheet(n_runs, cell, ax)
    norm, ticks, scale = heat.share_scale(cell.holds_text)
    image = heat.draw_image(ax, shares, hit_map(), norm)
    if cell.holds_text:
        font = float(np.clip(cell.points / 4.2, 6.5, 9.5))
        heat.write_cells(ax, image, shares, lambda i, j: _entry(float(shares[i, j])), font)
    size = cell.font
    row_step = text.tick_step(cell.points, size)
    rank_step = text.tick_step(cell.points, 1.6 * size)
    short = text.short_names(names, 40)
    ranks = [i for i in range(n_runs) if i == 0 or (i + (rank_step != 2)) % rank_step == 0]
    ax.set_xticks(ranks, [str(i + 1) for i in ranks], fontsize=size)
    ax.set_yticks(range(0, n_runs, row_step), short[::row_step], fontsize=size)
    ax.tick_params(length=0 if cell.holds_text else 3)
    heat.colour_bar(ax, image, f"probability of the rank{scale}" if scale else "probability", ticks)
    name_axes(ax, "rank (1: best)", "" if row_step == 1 else f"run{heat.thinned(row_step)}", title)
    small = cell.holds_text and bool(((shares > 0) & (shares < 0.01)).any())
    caption_below(ax, ["Below 1%: no number."] * small + text.numbered(short))
    return page.finish()


def _entry(share: float) -> str:
    return text.share_text(share) if share >= 0.01 else ""


_ROW = 0.215  # inches between names, the unit of the vertical axis
_BARS = 0.55  # rows between bars
_WIDTH = 5.2


def plot_critical_difference(
    names: Sequence[object],
    average_ranks: npt.ArrayLike,
    *,
    groups: Sequence[Sequence[int]],
    critical_difference: float | None = None,
    caption: str = "",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw the average ranks of runs on a line, with thick bars that join runs not significantly different.

    Rank 1, the best, is at the left. The better half of the runs is named on the left, the other on the right; dots on
    a bar show which runs belong to it. ValueError if there are fewer than two runs, a rank lies outside [1, R], a group
    names no run, or `critical_difference` is not positive.

    ``names``, sequence of length R: names of the runs, in any order.
    ``average_ranks``, shape (R,): rank of each run, averaged over data sets, folds or resamples, in [1, R].
    ``groups``: indices of runs that are not significantly different; groups of one run draw nothing.
    ``critical_difference``: least difference of two average ranks that is significant, drawn as a ruler.
    ``caption``: a sentence below, such as what the ranks are averaged over and which test made the groups.
    ``title``: title of the axes.
    ``ax``: axes to draw into; by default a new figure. Names are written beside the axes.

    References
    ----------
    Demšar (2006), "Statistical Comparisons of Classifiers over Multiple Data Sets", figure 1.
    """
    n_runs = len(names)
    if n_runs < 2:
        raise ValueError(f"names must name at least 2 runs, got {n_runs}")
    ranks = of_shape("average_ranks", average_ranks, (n_runs,))
    if not ((ranks >= 1) & (ranks <= n_runs)).all():
        wrong = ranks[np.flatnonzero(~((ranks >= 1) & (ranks <= n_runs)))[0]]
        raise ValueError(f"average_ranks must lie in [1, {n_runs}], got {wrong}")
    wrong_places = [index for group in groups for index in group if not 0 <= index < n_runs]
    if wrong_places:
        raise ValueError(f"groups must be an index from 0 to {n_runs - 1}, got {wrong_places[0]}")
    if critical_difference is not None and not (np.isfinite(critical_difference) and critical_difference > 0):
        raise ValueError(f"critical_difference must be positive, got {critical_difference}")
    low, high = float(np.floor(ranks.min())), float(np.ceil(ranks.max()))
    high = max(high, low + 1.0, low + (critical_difference or 0.0))
    bars = _stack([sorted(ranks[list(group)].tolist()) for group in groups if len(set(group)) > 1])
    first = 0.5 + _BARS * (1 + max((level for level, _ in bars), default=-1)) + 0.5
    half = (n_runs + 1) // 2
    bottom = first + half - (0.5 if n_runs % 2 else 0.0)
    top = -3.4 if critical_difference is not None else -1.9
    page, ax = sheet(ax, (_WIDTH, (bottom - top) * _ROW))
    ax.set_axis_off()
    ax.set(xlim=(low, high), ylim=(bottom, top))
    _draw_scale(ax, low, high, n_runs)
    if critical_difference is not None:
        _draw_ruler(ax, low, critical_difference)
    order = np.argsort(ranks, kind="stable")
    short = text.short_names(names, 40)
    sides = ((order[:half], first, low), (order[half:][::-1], first + 0.5, high))  # no line at another's height
    for runs, begin, edge in sides:
        for level, index in enumerate(runs):
            _draw_run(ax, short[index], float(ranks[index]), begin + level, edge)
    for level, members in bars:
        _draw_bar(ax, members, 0.5 + _BARS * level)
    lines = [caption] if caption else []
    if bars:
        lines.append("Thick bars join runs (dots) that are not significantly different.")
    style.caption(ax, lines + text.numbered(short), 72 * _WIDTH, "axes fraction", x=0.5, gap=8.0)
    if title is not None:
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, pad=9)
    return page.finish()


def _stack(spans: list[list[float]]) -> list[tuple[int, list[float]]]:
    """Give each sorted list of ranks the highest level where it touches no other."""
    ends: list[float] = []
    stacked = []
    for members in sorted(spans, key=lambda span: (span[0], span[-1])):
        level = next((i for i, end in enumerate(ends) if end < members[0]), len(ends))
        ends[level:] = [members[-1], *ends[level + 1 :]]
        stacked.append((level, members))
    return stacked


def _draw_scale(ax: Axes, low: float, high: float, last: int) -> None:
    ax.plot([low, high], [0, 0], color=INK, linewidth=1.0, clip_on=False, solid_capstyle="projecting")
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 1000) if (high - low) / s <= 16)
    marks = [mark for mark in range(int(low), min(int(np.floor(high)), last) + 1) if mark == low or mark % step == 0]
    for mark in marks:
        ax.plot([mark, mark], [0, -0.35], color=INK, linewidth=1.0, clip_on=False)
        ax.text(mark, -0.5, str(mark), ha="center", va="bottom", fontsize=SMALL_SIZE, color=INK)
    ax.text(
        (low + high) / 2, -1.35, "average rank (1 is the best: further left is better)", ha="center", va="bottom",
        fontsize=TEXT_SIZE, color=INK,
    )  # fmt: skip


def _draw_ruler(ax: Axes, low: float, length: float) -> None:
    ax.plot([low, low + length], [-2.7, -2.7], color=ORANGE, linewidth=1.6, clip_on=False)
    for end in (low, low + length):
        ax.plot([end, end], [-2.9, -2.5], color=ORANGE, linewidth=1.6, clip_on=False)
    style.write_beside(ax, f"critical difference {length:.3g}", (low + length, -2.7), (6, 0))


def _draw_run(ax: Axes, name: str, rank: float, level: float, edge: float) -> None:
    left = edge == ax.get_xlim()[0]
    ax.plot([rank, rank, edge], [0, level, level], color=FRAME, linewidth=0.8, clip_on=False, zorder=1.5)
    words, side = (f"{name}  {rank:.2f}", "right") if left else (f"{rank:.2f}  {name}", "left")
    style.write_beside(ax, words, (edge, level), (-5 if left else 5, 0), ha=side)


def _draw_bar(ax: Axes, members: list[float], height: float) -> None:
    ax.plot(
        [members[0], members[-1]], [height, height], color=BLUE, linewidth=3.6, solid_capstyle="round",
        clip_on=False, zorder=2.5, label="_bar",
    )  # fmt: skip
    ax.plot(
        members, np.full(len(members), height), linestyle="none", marker="o", markersize=5.0, color="white",
        markeredgecolor=BLUE, markeredgewidth=1.2, clip_on=False, zorder=2.6, label="_members",
    )  # fmt: skip
