"""Families of codes: one family's matrix, and the worst families side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from . import heatmap as heat
from . import labels as text
from .fonts import use_fallbacks
from .style import (
    EMPTY,
    FRAME,
    INK,
    SMALL_SIZE,
    TEXT_SIZE,
    FloatArray,
    caption_below,
    hit_map,
    mismatch_map,
    name_axes,
    panel_figure,
    plain_axes,
)

_GAP = 0.14  # between the codes and out of family, in cells
_OUT = "out of\nfamily"
_SHARES = {0.0: "0%", 0.25: "25%", 0.5: "50%", 0.75: "75%", 1.0: "100%"}
_ROOTS = {0.0: "0%", 0.01: "1%", 0.05: "5%", 0.1: "10%", 0.25: "25%", 0.5: "50%", 1.0: "100%"}
_RULE = (
    "A code that is both actual and predicted in a document is a match. Any other code is paired with the unmatched "
    "codes of its family on the other side; without one it is out of family."
)
_ALL_PAIRS = (
    "Counts: all pairs of an actual and a predicted code of a document, including matched codes. Shares leave matched "
    "codes out and split a code that is paired with several codes among these."
)
_SPLIT = "Counts: pairs. Shares: a code that is paired with several codes is split among these."
_ASIDE = {
    "actual": "Row below: share of the documents with the predicted code that have no unmatched actual code of the "
    "family.",
    "predicted": "Column at the right: share of the documents with the actual code that have no unmatched predicted "
    "code of the family.",
}


def plot_family_matrix(
    values: npt.ArrayLike,
    codes: Sequence[object],
    *,
    shares: npt.ArrayLike | None = None,
    given: str = "actual",
    matches_removed: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw a family's confusion matrix with its out-of-family column and row, which stand apart in another hue.

    Parameters
    ----------
    values : array_like of shape (k + 1, k + 1)
        Rows actual, columns predicted, out of family last.
    codes : sequence of length k
    shares : array_like of shape (k + 1, k + 1), optional
        What the colours show: shares given the actual code (rows sum to 1, the diagonal is recall) or the predicted one
        (columns sum to 1, the diagonal is precision). By default the values over the sum of their row or column. The
        row (or column) of what is not given holds shares of the other direction.
    given : "actual" or "predicted"
        Of the shares.
    matches_removed : bool, default True
        Whether the values leave out pairs with a code that is on both sides of its document, as the caption says.
    title : str, optional
    ax : matplotlib.axes.Axes, optional
        Axes to draw into; by default a new figure of a fitting size.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If shapes do not fit together, or a value is negative or not finite.
    """
    counts = np.asarray(values, dtype=np.float64)
    size = len(codes)
    if counts.shape != (size + 1, size + 1):
        raise ValueError(f"values must have shape ({size + 1}, {size + 1}) for {size} codes, got {counts.shape}")
    heat.check_counts("values", counts)
    if given not in ("actual", "predicted"):
        raise ValueError(f"given must be 'actual' or 'predicted', got {given!r}")
    share = _shares(counts, given) if shares is None else np.array(shares, dtype=np.float64)
    if share.shape != counts.shape:
        raise ValueError(f"shares must have the shape of values, {counts.shape}, got {share.shape}")
    cell = heat.cell_for(size + 1, ax)
    names = text.short_names(codes, 30)
    page = heat.matrix_sheet(size + 1 + _GAP, cell, ax)
    ax = page.ax
    apart = size + _GAP
    norm = Normalize(0.0, 1.0) if cell.holds_two_lines else PowerNorm(0.5, 0.0, 1.0)
    parts = [  # values, shares, hue, centre of the first cell
        (counts[:size, :size], share[:size, :size], hit_map(), (0.0, 0.0)),
        (counts[:size, size:], share[:size, size:], mismatch_map(), (apart, 0.0)),
        (counts[size:, :size], share[size:, :size], mismatch_map(), (0.0, apart)),
    ]
    own = np.diag(share)[:size]  # undefined where no document has the code
    empty = np.flatnonzero(np.isnan(own))
    images = []
    for count, part, hue, at in parts:
        shown = part if np.isfinite(part).any() else np.zeros_like(part)
        images.append(heat.draw_image(ax, shown, hue, norm, at=at))
        if cell.holds_text:
            heat.write_cells(ax, images[-1], shown, _texts(count, part, cell), _font(cell), at=at)
    ax.set(xlim=(-0.5, apart + 0.5), ylim=(apart + 0.5, -0.5))
    _hatch(ax, empty, size, apart, given)
    heat.frame_cells(ax, [(i, i) for i in range(size) if i not in set(empty.tolist())], cell)
    for spine in ax.spines.values():
        spine.set_visible(False)
    for x, y, width, height in ((0, 0, size, size), (apart, 0, 1, size), (0, apart, size, 1)):
        ax.add_patch(Rectangle((x - 0.5, y - 0.5), width, height, fill=False, edgecolor=FRAME, lw=0.8, clip_on=False))
    last = [_OUT] if cell.points >= 22 else ["out of family"]
    step = heat.name_ticks(ax, names, names, cell, range(size))
    _tick_outside(ax, names, last[0], apart, step, cell)
    said = "the documents with the actual code" if given == "actual" else "the documents with the predicted code"
    scale = "" if cell.holds_two_lines else " (square-root colour scale)"
    heat.colour_bar(ax, images[0], f"share of {said}{scale}", _SHARES if cell.holds_two_lines else _ROOTS)
    thinned = "" if step == 1 else f" (every {text.ordinal(step)} is named)"
    name_axes(ax, "predicted code" + thinned, "actual code" + thinned, title)
    rule = [_RULE, _SPLIT] if matches_removed else [_ALL_PAIRS]
    notes = [*rule, _ASIDE[given], *heat.notes(names)]
    if empty.size:
        other = "predicted" if given == "actual" else "actual"
        notes.append(f"Hatched: never {given} ({empty.size} of {size} codes). Grey: never {other}.")
    caption_below(ax, notes)
    return page.finish()


@dataclass(frozen=True)
class FamilyPanel:
    """One family for :func:`plot_worst_families`.

    Attributes
    ----------
    name : object
    codes : sequence of length k
    shares : ndarray of shape (k + 1, k + 1)
        Given the actual code: rows sum to 1.
    headline : str
        Under the name, such as ``"41% confused, n=1,204"``.
    """

    name: object
    codes: Sequence[object]
    shares: FloatArray
    headline: str = ""


def plot_worst_families(panels: Sequence[FamilyPanel], *, title: str | None = None) -> Figure:
    """Draw several families side by side, in the order given.

    Parameters
    ----------
    panels : sequence of FamilyPanel
        At least one.
    title : str, optional

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is none.
    """
    if not panels:
        raise ValueError("panels must hold at least one family, got none")
    columns = min(3, len(panels))
    rows = math.ceil(len(panels) / columns)
    figure = panel_figure((4.1 * columns, 3.9 * rows + (0.4 if title else 0.0)))
    grid = figure.subplots(rows, columns, squeeze=False)
    for ax in grid.ravel()[len(panels) :]:
        ax.set_visible(False)
    images = [
        _panel(ax, panel, left=place % columns == 0, bottom=place + columns >= len(panels))
        for place, (ax, panel) in enumerate(zip(grid.ravel(), panels, strict=False))
    ]
    bar = figure.colorbar(images[0], ax=grid.ravel().tolist(), shrink=0.6, aspect=30, pad=0.02)
    bar.set_ticks(list(_ROOTS), labels=list(_ROOTS.values()))
    bar.set_label("share of the documents with the actual code (square-root colour scale)", fontsize=SMALL_SIZE)
    bar.ax.tick_params(labelsize=SMALL_SIZE)
    if title:
        figure.suptitle(title, fontsize=12, color=INK)
    use_fallbacks(figure)
    return figure


def _shares(counts: FloatArray, given: str) -> FloatArray:
    rows, columns = (
        np.asarray(np.divide(counts, totals, out=np.full(counts.shape, np.nan), where=totals > 0))
        for totals in (counts.sum(axis=1, keepdims=True), counts.sum(axis=0, keepdims=True))
    )
    if given == "actual":
        rows[-1] = columns[-1]
        return rows
    columns[:, -1] = rows[:, -1]
    return columns


def _texts(counts: FloatArray, shares: FloatArray, cell: heat.Cell) -> Callable[[int, int], str]:
    def content(i: int, j: int) -> str:
        if counts[i, j] == 0:
            return "" if np.isnan(shares[i, j]) else "0"
        if np.isnan(shares[i, j]):
            return text.count_text(counts[i, j])
        share = text.share_text(float(shares[i, j]))
        return f"{text.count_text(counts[i, j])}\n{share}" if cell.holds_two_lines else share

    return content


def _font(cell: heat.Cell) -> float:
    return float(np.clip(cell.points / 5.0, 6.5, TEXT_SIZE + 1))


def _hatch(ax: Axes, empty: npt.NDArray[np.intp], size: int, apart: float, given: str) -> None:
    if given == "actual":
        heat.hatch_rows(ax, empty, size)
        heat.hatch_rows(ax, empty, 1, start=apart)
        return
    for place in empty.tolist():
        for start, height in ((0.0, size), (apart, 1)):
            ax.add_patch(
                Rectangle(
                    (place - 0.5, start - 0.5),
                    1,
                    height,
                    facecolor=EMPTY,
                    edgecolor=FRAME,
                    lw=0,
                    hatch="////",
                    zorder=2.2,
                )
            )


def _tick_outside(ax: Axes, names: list[str], last: str, apart: float, step: int, cell: heat.Cell) -> None:
    """One more tick for out of family, which is named even where codes are thinned out."""
    for axis in (ax.xaxis, ax.yaxis):
        shown = [label.get_text() for label in axis.get_ticklabels()]
        kept = list(range(0, len(names), step))
        look = axis.get_ticklabels()[0] if shown else None
        axis.set_ticks([*kept, apart], [*shown, last])
        for label in axis.get_ticklabels():
            label.set(fontsize=cell.font, color=INK)
            if look is not None and axis is ax.xaxis:
                label.set(
                    rotation=look.get_rotation(),
                    ha=look.get_horizontalalignment(),
                    rotation_mode=look.get_rotation_mode(),
                )


def _panel(ax: Axes, panel: FamilyPanel, *, left: bool, bottom: bool) -> AxesImage:
    size = len(panel.codes)
    plain_axes(ax)
    norm = PowerNorm(0.5, 0.0, 1.0)
    apart = size + _GAP
    image = heat.draw_image(ax, panel.shares[:size, :size], hit_map(), norm)
    heat.draw_image(ax, panel.shares[:size, size:], mismatch_map(), norm, at=(apart, 0.0))
    ax.set(xlim=(-0.5, apart + 0.5), ylim=(size - 0.5, -0.5))
    points = 190.0 / (size + 1)
    for i in range(size):
        ax.add_patch(Rectangle((i - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=INK, lw=min(1.0, points / 28)))
    font = float(np.clip(0.8 * points, 5.5, SMALL_SIZE))
    step = text.tick_step(points, font)
    names = text.short_names(panel.codes, 14)
    ax.set_yticks(range(0, size, step), names[::step], fontsize=font)
    ax.set_xticks([*range(0, size, step), apart], [*names[::step], "OOF"], fontsize=font, rotation=90)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    name = text.brief(panel.name, 34)
    ax.set_title(f"{name}\n{panel.headline}", fontsize=TEXT_SIZE, color=INK)
    ax.set_xlabel("predicted" if bottom else "", fontsize=SMALL_SIZE, color=INK)
    ax.set_ylabel("actual" if left else "", fontsize=SMALL_SIZE, color=INK)
    return image
