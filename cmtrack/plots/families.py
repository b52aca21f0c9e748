"""Figures of a family evaluation: matrices of families, and distributions of a code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from cmtrack import digits
from cmtrack.families.metrics import family_tallies
from cmtrack.families.tables import worst_code
from cmtrack.metrics.names import encode_label
from cmtrack.names import elide
from cmtrack.untrusted import one_line

from . import _heatmap as heat
from . import _text as text
from ._text import columns, use_fallbacks
from .confusion import chart_words, plot_confusion_chart
from .style import (
    BLUE,
    FRAME,
    GREEN,
    INK,
    MUTED,
    SMALL_SIZE,
    TEXT_SIZE,
    FloatArray,
    caption_below,
    hit_map,
    mismatch_map,
    new_figure,
    of_shape,
    open_axes,
    plain_axes,
)

if TYPE_CHECKING:
    from cmtrack.families.result import FamilyEvaluation
    from cmtrack.families.tables import CodeAnswer
    from cmtrack.grouping import Label

_ROOTS = {0.0: "0%", 0.01: "1%", 0.05: "5%", 0.1: "10%", 0.25: "25%", 0.5: "50%", 1.0: "100%"}
_RULE = (
    "A code that is both actual and predicted in a document is a match. An unmatched code is "
    "paired with the unmatched codes of its family on the other side. If there are none, it is "
    "out of family."
)
_ALL_PAIRS = (
    "Counts include all pairs of an actual and a predicted code of a document, even of matched "
    "codes. Shares omit matched codes. If a code is paired with several codes, its share is split."
)
_SPLIT = "Counts are pairs of codes. If a code is paired with several codes, its share is split."
_ASIDE = {
    "actual": "The bottom row shows, for each predicted code, the share of its documents without "
    "an unmatched actual code of the family.",
    "predicted": "The right column shows, for each actual code, the share of its documents without "
    "an unmatched predicted code of the family.",
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
    """Draw a family's confusion matrix; its out-of-family column and row have a different hue.

    Parameters
    ----------
    values : array_like of shape (k + 1, k + 1)
        Values by actual code (rows) and predicted code (columns). The last row and column contain
        the out-of-family values.
    codes : sequence of length k
    shares : array_like of shape (k + 1, k + 1), optional
        The shares that the colours show. If `given` is "actual", rows sum to 1 and the diagonal is
        recall. If `given` is "predicted", columns sum to 1 and the diagonal is precision. By
        default, each value is divided by the sum of its row or column. The out-of-family row (or
        column) is not a code, so its shares are conditioned on the opposite code.
    given : "actual" or "predicted"
        The code on which the shares are conditioned.
    matches_removed : bool, default True
        Whether the values exclude pairs that contain a code which is both actual and predicted in
        its document. The caption explains this.
    title : str, optional
        Title of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw into. By default, a new figure is created, which is not registered with pyplot.

    Raises
    ------
    ValueError
        If the shapes do not match, or if a value is negative or not finite.

    Examples
    --------
    >>> from cmtrack.plots import plot_family_matrix
    >>> figure = plot_family_matrix([[30, 2, 1], [4, 20, 3], [2, 2, 0]], ["I21.0", "I21.1"])
    >>> figure.savefig("family.png")
    """
    size = len(codes)
    counts = of_shape("values", values, (size + 1, size + 1))
    heat.check_counts("values", counts)
    if given not in ("actual", "predicted"):
        raise ValueError(f"given must be 'actual' or 'predicted', got {given!r}")
    share = _shares(counts, given) if shares is None else of_shape("shares", shares, counts.shape)
    cell = heat.cell_for(size + 1, ax)
    names = text.short_names(codes, 30)
    page, ax = heat.matrix_sheet(size + 1 + heat.GAP, cell, ax)
    norm, _, scale = heat.share_scale(cell.holds_two_lines)
    # The diagonal share of a code is undefined if no document contains the code.
    is_empty = np.isnan(np.diag(share)[:size])
    empty = np.flatnonzero(is_empty)
    # matplotlib cannot scale the colours of an image that contains only NaN.
    drawn = share.copy()
    for block in (drawn[:size, :size], drawn[:size, size:], drawn[size:, :size]):
        if not np.isfinite(block).any():
            block[:] = 0.0
    image = heat.draw_with_aside(ax, drawn, heat.cell_texts(counts, share, cell), cell, norm)
    _hatch(ax, empty, size, given)
    heat.frame_cells(ax, heat.diagonal(~is_empty), cell)
    aside = "out of\nfamily" if cell.holds_text else "out of family"
    step = heat.name_ticks(ax, names, names, cell, range(size), aside)
    if not cell.holds_two_lines:
        heat.colour_bar(ax, image, f"share of the documents with the {given} code{scale}", _ROOTS)
    heat.name_matrix_axes(ax, "code", step, title)
    notes = [_RULE, _SPLIT] if matches_removed else [_ALL_PAIRS]
    notes += [_ASIDE[given], *heat.notes(names)]
    if empty.size:
        other = "predicted" if given == "actual" else "actual"
        notes.append(
            f"Hatched codes have no {given} labels ({empty.size} of {size} codes). "
            f"Grey codes have no {other} labels."
        )
    caption_below(ax, notes)
    return page.finish()


@dataclass(frozen=True)
class FamilyPanel:
    """A family that :func:`plot_worst_families` draws.

    Attributes
    ----------
    name : object
    codes : sequence of length k
    shares : ndarray of shape (k + 1, k + 1)
        Shares given the actual code, so rows sum to 1.
    headline : str
        The text below the name, such as ``"41% confused, n=1,204"``.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.plots import FamilyPanel
    >>> FamilyPanel("I21", ["I21.0", "I21.1"], np.eye(3), headline="0% confused, n=40").headline
    '0% confused, n=40'
    """

    name: object
    codes: Sequence[object]
    shares: FloatArray
    headline: str = ""


def plot_worst_families(panels: Sequence[FamilyPanel], *, title: str | None = None) -> Figure:
    """Draw the matrices of several families side by side, in the given order.

    Parameters
    ----------
    panels : sequence of FamilyPanel
        The panels, at least one.
    title : str, optional

    Raises
    ------
    ValueError
        If `panels` is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from cmtrack.plots import FamilyPanel, plot_worst_families
    >>> shares = np.array([[0.9, 0.1, 0.0], [0.3, 0.6, 0.1], [0.5, 0.5, 0.0]])
    >>> panel = FamilyPanel("I21", ["I21.0", "I21.1"], shares, headline="22% confused, n=60")
    >>> plot_worst_families([panel, panel]).savefig("worst_families.png")
    """
    if not panels:
        raise ValueError("panels must contain at least one family, got none")
    n_columns = min(3, len(panels))
    n_rows = math.ceil(len(panels) / n_columns)
    height = 3.9 * n_rows
    if title:
        height += 0.4
    figure = new_figure((4.1 * n_columns, height), "constrained")
    grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel().tolist()
    for ax in grid[len(panels) :]:
        ax.set_visible(False)
    images = []
    for place, panel in enumerate(panels):
        is_left = place % n_columns == 0
        is_bottom = place + n_columns >= len(panels)
        images.append(_draw_panel(grid[place], panel, is_left=is_left, is_bottom=is_bottom))
    bar = figure.colorbar(images[0], ax=grid, shrink=0.6, aspect=30, pad=0.02)
    bar.set_ticks(list(_ROOTS), labels=list(_ROOTS.values()))
    words = "share of documents\n(square-root colour scale)"
    bar.set_label(words, fontsize=SMALL_SIZE, color=INK)
    bar.ax.tick_params(labelsize=SMALL_SIZE, labelcolor=INK, color=FRAME)
    bar.ax.spines[:].set(color=FRAME, linewidth=0.8)
    if title:
        figure.suptitle(title, fontsize=12, color=INK)
    use_fallbacks(figure)
    return figure


def _shares(counts: FloatArray, given: str) -> FloatArray:
    """Divide counts by the totals of their rows or columns."""
    rows = heat.row_shares(counts, counts.sum(axis=1))
    columns = heat.row_shares(counts.T, counts.sum(axis=0)).T
    return _crossed(rows, columns, given)


def _crossed(rows: FloatArray, columns: FloatArray, given: str) -> FloatArray:
    """Return the shares in the given direction, but out-of-family shares in the opposite one.

    The out-of-family row or column has no code on which shares could be conditioned.
    """
    if given == "actual":
        return np.vstack((rows[:-1], columns[-1]))
    return np.column_stack((columns[:, :-1], rows[:, -1]))


def _hatch(ax: Axes, empty: npt.NDArray[np.intp], size: int, given: str) -> None:
    """Hatch the rows or columns of codes without documents, including their out-of-family cells."""
    areas = []
    for start, length in ((0.0, size), (size + heat.GAP, 1)):
        for k in empty.tolist():
            if given == "actual":
                areas.append(Rectangle((start - 0.5, k - 0.5), length, 1))
            else:
                areas.append(Rectangle((k - 0.5, start - 0.5), 1, length))
    heat.hatch(ax, areas)


def _draw_panel(ax: Axes, panel: FamilyPanel, *, is_left: bool, is_bottom: bool) -> AxesImage:
    size = len(panel.codes)
    plain_axes(ax)
    norm = PowerNorm(0.5, 0.0, 1.0)
    apart = size + heat.GAP
    image = heat.draw_image(ax, panel.shares[:size, :size], hit_map(), norm)
    heat.draw_image(ax, panel.shares[:size, size:], mismatch_map(), norm, at=(apart, 0.0))
    ax.set(xlim=(-0.5, apart + 0.5), ylim=(size - 0.5, -0.5))
    points = 190.0 / (size + 1)
    width = min(1.0, points / 28)
    for i in range(size):
        frame = Rectangle((i - 0.5, i - 0.5), 1, 1, fill=False, edgecolor=INK, lw=width)
        ax.add_patch(frame)
    step = text.tick_step(points, SMALL_SIZE)
    names = text.short_names(panel.codes, 14)
    ax.set_yticks(range(0, size, step), names[::step], fontsize=SMALL_SIZE)
    ax.set_xticks(
        [*range(0, size, step), apart], [*names[::step], "OOF"], fontsize=SMALL_SIZE, rotation=90
    )
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    name = text.brief(panel.name, 34)
    ax.set_title(f"{name}\n{panel.headline}", fontsize=TEXT_SIZE, color=INK)
    if is_bottom:
        ax.set_xlabel("predicted", fontsize=SMALL_SIZE, color=INK)
    if is_left:
        ax.set_ylabel("actual", fontsize=SMALL_SIZE, color=INK)
    return image


def plot_code_shares(
    code: object,
    given_predicted: Sequence[tuple[str, float, float, float]],
    given_actual: Sequence[tuple[str, float, float, float]],
    documents: tuple[int, int],
    *,
    confidence_level: float = 0.95,
    few: tuple[bool, bool] = (False, False),
    most: int = 8,
) -> Figure:
    """Plot what happens when a code is predicted, and when it is the true code.

    Parameters
    ----------
    code : object
    given_predicted, given_actual : sequence of (name, share, low, high)
        One entry for each bar. The code itself is first, siblings follow in descending order of
        their share, and out of family is last.
    documents : (int, int)
        Number of documents in which the code is predicted, and number of documents in which it is
        an actual code.
    confidence_level : float
        Confidence level of the intervals.
    few : (bool, bool)
        For each number of documents, whether it is too small to rely on.
    most : int
        Number of siblings to show. All other siblings are combined in one bar.

    Examples
    --------
    >>> from cmtrack.plots import plot_code_shares
    >>> right, wrong = ("I21.0", 0.8, 0.7, 0.87), ("I21.1", 0.2, 0.13, 0.3)
    >>> plot_code_shares("I21.0", [right, wrong], [right, wrong], (80, 85)).savefig("code.png")
    """
    sides = [_shortened(side, most) for side in (given_predicted, given_actual)]
    bars = [bar for side in sides for bar in side]
    widest = max((columns(one_line(name)) for name, *_ in bars), default=8)
    n_rows = max(1, *map(len, sides))
    figure = new_figure((7.2 + 0.11 * min(widest, 28), 1.75 + 0.34 * n_rows), "constrained")
    figure.suptitle(text.brief(code, 40), fontsize=12, color=INK)
    headings = ("True codes if this code is predicted", "Predicted codes if this is the true code")
    for ax, side, n, heading, is_rare in zip(
        figure.subplots(1, 2), sides, documents, headings, few, strict=True
    ):
        _draw_bars(ax, side, n_rows)
        heading += f"\n{n:,} document"
        if n != 1:
            heading += "s"
        colour = INK
        if is_rare:
            heading += " – too few to rely on"
            colour = MUTED
        ax.set_title(heading, fontsize=TEXT_SIZE, color=colour)
    figure.supxlabel(
        f"share of these documents, with {100 * confidence_level:g}% intervals",
        fontsize=SMALL_SIZE,
        color=INK,
    )
    use_fallbacks(figure)
    return figure


def _shortened(
    side: Sequence[tuple[str, float, float, float]], most: int
) -> list[tuple[str, float, float, float]]:
    """Keep the most frequent siblings, and combine all others in a bar without an interval."""
    if len(side) <= most + 2:
        return list(side)
    pooled = side[most:-1]
    total = sum(share for _, share, *_ in pooled)
    bar = (f"{len(pooled)} more siblings", total, math.nan, math.nan)
    return [*side[:most], bar, side[-1]]


def _draw_bars(ax: Axes, side: Sequence[tuple[str, float, float, float]], n_rows: int) -> None:
    open_axes(ax, "x")
    places = np.arange(len(side))
    shares = np.array([share for _, share, *_ in side])
    # the code itself, its siblings, out of family
    colours = np.full(len(side), BLUE)
    colours[-1:] = MUTED
    colours[:1] = GREEN
    ax.barh(places, np.nan_to_num(shares), color=colours.tolist(), height=0.62, zorder=2)
    for place, (_, share, low, high) in enumerate(side):
        end = share
        if math.isfinite(low):
            ax.plot([low, high], [place, place], color=INK, lw=1.1, solid_capstyle="butt", zorder=3)
            end = high
        if math.isfinite(share):
            number = digits.whole_percent(share)
            ax.text(end + 0.015, place, number, va="center", fontsize=SMALL_SIZE, color=INK)
    names = text.short_names([name for name, *_ in side], 28)
    ax.set_yticks(places, names, fontsize=SMALL_SIZE, color=INK)
    ax.set(xlim=(0, 1.14), ylim=(n_rows - 0.5, -0.5))  # keeps room for numbers next to full bars
    ax.set_xticks(list(heat.SHARES), list(heat.SHARES.values()), fontsize=SMALL_SIZE)
    if not np.isfinite(shares).any():
        look: dict[str, Any] = {"ha": "center", "va": "center", "color": MUTED}
        ax.text(0.5, 0.5, "no documents", transform=ax.transAxes, **look)


MOST_FAMILIES = 6
MOST_CODES = 60
"""Number of codes above which the least frequent codes of a family are not drawn."""
_MOST_PANEL_CODES = 25
"""Largest number of codes that are drawn if families are side by side."""


def family_matrix_figure(
    evaluation: FamilyEvaluation,
    family: Label,
    *,
    given: str = "actual",
    matching: str | None = None,
) -> Figure:
    """Draw the confusion matrix of one family.

    Parameters
    ----------
    evaluation : FamilyEvaluation
    family : label
    given : "actual" or "predicted"
        "actual": colours show shares given the actual code, so the diagonal is recall. "predicted":
        colours show shares given the predicted code, so the diagonal is precision.
    matching : str, optional
        The rule for pairing codes, which determines the counts in the cells.

    Examples
    --------
    >>> from cmtrack import Prefix, evaluate_families
    >>> from cmtrack.plots import family_matrix_figure
    >>> actual, predicted = [["I21.0"], ["I21.1"], ["J45.0"]], [["I21.0"], ["I21.0"], ["J45.0"]]
    >>> evaluation = evaluate_families(actual, predicted, Prefix("."))
    >>> family_matrix_figure(evaluation, "I21").savefig("family.png")
    """
    matrix = evaluation.matrix(family, matching)
    rows = evaluation.distribution(family, "actual").values
    columns = evaluation.distribution(family, "predicted").values
    shares = _crossed(rows, columns, given)
    n_codes = len(matrix.codes)
    frequent = _most_frequent(evaluation, family, MOST_CODES)
    places = [*frequent, n_codes]
    cells = np.ix_(places, places)
    title = f"Family {_short_name(family)}"
    if len(frequent) < n_codes:
        title += f" (the {len(frequent)} most frequent of {n_codes} codes)"
    return plot_family_matrix(
        matrix.values[cells],
        [matrix.codes[i] for i in frequent],
        shares=shares[cells],
        given=given,
        title=title,
        matches_removed=evaluation.statistics.together is None,
    )


def code_figure(evaluation: FamilyEvaluation, code: Label) -> Figure:
    """Plot what happens when a code is predicted, and when it is the true code.

    Examples
    --------
    >>> from cmtrack import Prefix, evaluate_families
    >>> from cmtrack.plots import code_figure
    >>> actual, predicted = [["I21.0"], ["I21.1"], ["J45.0"]], [["I21.0"], ["I21.0"], ["J45.0"]]
    >>> code_figure(evaluate_families(actual, predicted, Prefix(".")), "I21.0").savefig("code.png")
    """
    predicted = evaluation.given_predicted(code)
    actual = evaluation.given_actual(code)
    return plot_code_shares(
        code,
        _outcomes(predicted),
        _outcomes(actual),
        (predicted.documents, actual.documents),
        confidence_level=evaluation.confidence_level,
        few=(predicted.too_few, actual.too_few),
    )


def _outcomes(answer: CodeAnswer) -> list[tuple[str, float, float, float]]:
    """Return name, share and interval of the bars: for the code, its siblings and out of family."""
    bars = [(f"{_short_name(answer.code)} (correct)", answer.right, *answer.right_interval)]
    for (code, share), interval in zip(answer.siblings, answer.sibling_intervals, strict=True):
        bars.append((_short_name(code), share, *interval))
    bars.append(("no code of its family", answer.outside, *answer.outside_interval))
    return bars


def _worst(evaluation: FamilyEvaluation) -> list[Label]:
    """Return the families with confused labels; families with the most such labels are first."""
    sums, _ = family_tallies(evaluation.statistics)
    confused = sums[:, 1] + sums[:, 2]
    return [evaluation.families[f] for f in np.argsort(-confused, kind="stable") if confused[f] > 0]


def worst_matrix_figure(evaluation: FamilyEvaluation) -> Figure | None:
    """Draw the family with the most confused labels; return None if no labels are confused."""
    worst = _worst(evaluation)
    if not worst:
        return None
    return family_matrix_figure(evaluation, worst[0])


def family_chart(evaluation: FamilyEvaluation, run: str = "", step: str = "") -> Figure | None:
    """Draw the worst family for MLflow's charts; the title names the run and its F1."""
    worst = _worst(evaluation)
    if not worst:
        return None
    panel = _panel_of(evaluation, worst[0])
    words = chart_words(step, "F1", evaluation.metrics.get("family/f1_micro", math.nan))
    shares = np.nan_to_num(panel.shares)
    return plot_confusion_chart(shares, [*panel.codes, "OOF"], run=run, value=words)


def worst_families_figure(evaluation: FamilyEvaluation) -> Figure | None:
    """Draw the families with the most confused labels; return None for fewer than two families."""
    worst = _worst(evaluation)[:MOST_FAMILIES]
    if len(worst) < 2:
        return None
    panels = [_panel_of(evaluation, family) for family in worst]
    return plot_worst_families(panels, title="Families with the most confused labels")


def _panel_of(evaluation: FamilyEvaluation, family: Label) -> FamilyPanel:
    shares = evaluation.distribution(family, "actual")
    n_codes = len(shares.codes)
    frequent = _most_frequent(evaluation, family, _MOST_PANEL_CODES)
    places = [*frequent, n_codes]
    prefix = f"family/{encode_label(family)}"
    confused = digits.whole_percent(evaluation.metrics[f"{prefix}/confusion_share"])
    n = digits.short_count(evaluation.metrics[f"{prefix}/support"])
    headline = f"{confused} of labels confused, n={n}"
    if len(frequent) < n_codes:
        headline += f", {len(frequent)} of {n_codes} codes"
    codes = [shares.codes[i] for i in frequent]
    return FamilyPanel(_short_name(family), codes, shares.values[np.ix_(places, places)], headline)


def _most_frequent(evaluation: FamilyEvaluation, family: Label, most: int) -> list[int]:
    """Return the indices of the family's most frequent codes, in ascending order."""
    families = evaluation.statistics.families
    start, stop = families.starts[families.family_place(family) :][:2]
    labels = evaluation.statistics.codes[start:stop, 1:3].sum(axis=1)
    return sorted(int(i) for i in np.argsort(-labels, kind="stable")[:most])


def worst_code_figure(evaluation: FamilyEvaluation) -> Figure | None:
    """Draw the code with the largest share of confused labels; None if no labels are confused."""
    worst = worst_code(evaluation.statistics)
    if worst is None:
        return None
    return code_figure(evaluation, evaluation.codes[worst])


def _short_name(label: object) -> str:
    return elide(one_line(label), 48) or "(empty)"
