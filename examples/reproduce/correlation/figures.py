"""Figures of the source that cmtrack has no drawing for, in its look."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cmtrack.plots.style import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    SMALL_SIZE,
    TEXT_SIZE,
    TITLE_SIZE,
    name_axes,
    new_figure,
    open_axes,
    plain_axes,
)
from correlation.data import FloatArray, IntArray, Sample
from correlation.images import ImageSet
from correlation.trials import CALIBRATED, Judged

COLOURS = (BLUE, ORANGE, GREEN)


def class_histogram(
    sample: Sample,
    names: Sequence[str],
    title: str,
    x_name: str = "feature x",
    *,
    limits: tuple[float, float],
) -> Figure:
    """How the classes of one feature are distributed: Figures 1.1, 1.3 and 1.5."""
    figure = new_figure((7.0, 3.6), "constrained")
    ax = figure.subplots()
    _classes(ax, sample.x[:, 0], sample.y, np.unique(sample.y), limits)
    beyond = int(((sample.x < limits[0]) | (sample.x > limits[1])).sum())
    note = f" ({beyond} of {len(sample.y)} lie beyond the axis)" if beyond else ""
    name_axes(ax, x_name + note, "samples per bin", title)
    _legend(figure, _sized(names, sample.y))
    return figure


def dimension_histograms(sample: Sample, names: Sequence[str], title: str) -> Figure:
    """The same for each dimension, on a logarithmic axis for the rare class: Figure 1.9."""
    size = sample.x.shape[1]
    figure = new_figure((10.0, 3.6), "constrained")
    for k, ax in enumerate(figure.subplots(1, size, sharey=True)):
        _classes(ax, sample.x[:, k], sample.y, np.unique(sample.y), (-2.5, 6.5), log=True)
        name_axes(
            ax, f"x{k + 1}", "samples per bin (log scale)" if k == 0 else "", f"Dimension {k + 1}"
        )
    figure.suptitle(title, fontsize=TITLE_SIZE, color=INK)
    _legend(figure, _sized(names, sample.y))
    return figure


def probability_panels(judged: Sequence[Judged], names: Sequence[str], title: str) -> Figure:
    """Histograms of the predicted probabilities, plain above and calibrated below: Figures 1.2, 1.4, 1.7 and 1.8."""
    figure = new_figure((12.0, 5.6), "constrained")
    panels = figure.subplots(2, len(judged), sharex=True, sharey=True)
    for column, one in enumerate(judged):
        plain, calibrated = panels[:, column]
        _classes(plain, one.scored.test, one.y, (0, 1), (0.0, 1.0), log=True)
        name_axes(plain, "", "samples (log scale)" if column == 0 else "", one.machine.name)
        if one.calibrated is None:
            plain_axes(calibrated)
            reason = "not identified:\nboth classes have\nthe same scores"
            calibrated.text(
                0.5,
                0.5,
                reason,
                ha="center",
                va="center",
                transform=calibrated.transAxes,
                color=INK,
            )
        else:
            _classes(
                calibrated,
                one.estimate.posterior(one.scored.test),
                one.y,
                (0, 1),
                (0.0, 1.0),
                log=True,
            )
        y_name = "samples (log scale)" if column == 0 else ""
        name_axes(calibrated, "probability of class 2", y_name, one.machine.name + CALIBRATED)
    panels[0, 0].set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
    figure.suptitle(title, fontsize=TITLE_SIZE, color=INK)
    _legend(figure, _sized(names, judged[0].y))
    return figure


def image_samples(images: ImageSet) -> Figure:
    """One image per class, the classes of the two problems marked: Figure 1.6."""
    figure = new_figure((10.0, 1.85), "constrained")
    colours = dict.fromkeys(images.easy.codes, (GREEN, "easy")) | dict.fromkeys(
        images.hard.codes, (ORANGE, "hard")
    )
    for code in set(images.easy.codes) & set(images.hard.codes):
        colours[code] = (BLUE, "easy, hard")
    for code, ax in enumerate(figure.subplots(1, len(images.shown))):
        ax.imshow(images.shown[code], cmap="gray_r", vmin=0, vmax=1)
        if images.rows_used < len(images.shown[code]):
            ax.axhline(images.rows_used - 0.5, color=BLUE, linewidth=1.5, linestyle="--")
        ax.set(xticks=[], yticks=[])
        colour, word = colours.get(code, ("#dddddd", ""))
        for spine in ax.spines.values():
            spine.set(color=colour, linewidth=2.5 if word else 1.0)
        ax.set_title(images.class_names[code], fontsize=TEXT_SIZE, color=INK)
        ax.set_xlabel(word, fontsize=SMALL_SIZE, color=colour)
    figure.suptitle(
        f"A sample of each class of {images.name}, and the two pairs",
        fontsize=TITLE_SIZE,
        color=INK,
    )
    return figure


def _classes(
    ax: Axes,
    values: FloatArray,
    y: IntArray,
    classes: Sequence[int],
    limits: tuple[float, float],
    *,
    log: bool = False,
) -> None:
    plain_axes(ax)
    open_axes(ax)
    edges, most = np.linspace(*limits, 41 if log else 71), 1
    shared = bool(len(ax.get_shared_y_axes().get_siblings(ax)) > 1)
    for k, colour in zip(classes, COLOURS, strict=False):
        counts, _ = np.histogram(values[y == k], edges)
        most = max(most, counts.max())
        ax.stairs(counts, edges, fill=True, color=colour, alpha=0.35, linewidth=0)
        # none where empty
        ax.stairs(np.where(counts > 0, counts, np.nan), edges, color=colour, linewidth=1.2)
    ax.set_xlim(*limits)
    if log:
        ax.set_yscale("log", nonpositive="clip")
    low, high = (0.7, 1.5 * most) if log else (0.0, 1.05 * most)
    ax.set_ylim(low, max(high, ax.get_ylim()[1] if shared else 0.0))


def _sized(names: Sequence[str], y: IntArray) -> list[str]:
    return [f"{name} (n = {(y == k).sum()})" for name, k in zip(names, np.unique(y), strict=True)]


def _legend(figure: Figure, names: Sequence[str]) -> None:
    handles = [
        Patch(facecolor=(c, 0.35), edgecolor=c, label=name)
        for c, name in zip(COLOURS, names, strict=False)
    ]
    figure.legend(
        handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=SMALL_SIZE + 1
    )
