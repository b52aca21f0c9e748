"""Texts in cells, panels without a layout engine, and figures as files."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from cmtrack.plots import as_png, plot_confusion_matrix, plot_score_histogram


def pixels(figure: Figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba()).astype(int)


@pytest.mark.parametrize("count", [0, 7, 12_345], ids=["0", "7", "12,345"])
def test_the_text_of_a_cell_is_in_its_middle(count: int) -> None:
    """The box around the ink of a count and its share has its centre near the cell's."""
    figure = plot_confusion_matrix([[count, 0], [0, 10**9]], ["a", "b"])
    empty = plot_confusion_matrix([[count, 0], [0, 10**9]], ["a", "b"])
    for collection in list(empty.axes[0].collections):
        collection.remove()
    ink = np.abs(pixels(figure) - pixels(empty)).sum(axis=2)
    ax = figure.axes[0]
    height = ink.shape[0]
    for x, y in np.ndindex(2, 2):
        (left, low), (right, high) = ax.transData.transform(
            [(x - 0.4, y + 0.4), (x + 0.4, y - 0.4)]
        )
        part = ink[round(height - high) : round(height - low), round(left) : round(right)]
        assert part.sum() > 0
        for axis, inked in enumerate(np.nonzero(part > 100)):
            centre = (inked.min() + inked.max()) / 2
            assert centre == pytest.approx((part.shape[axis] - 1) / 2, abs=3)


def test_png_files_know_their_density() -> None:
    image = Image.open(BytesIO(as_png(plot_confusion_matrix(np.eye(2) + 1, range(2)))))
    width, height = plot_confusion_matrix(np.eye(2) + 1, range(2)).get_size_inches()
    assert image.width / image.info["dpi"][0] == pytest.approx(width, abs=0.02)
    assert image.height / image.info["dpi"][1] == pytest.approx(height, abs=0.02)


@pytest.mark.slow
def test_figures_can_still_be_saved_in_other_ways() -> None:
    figure = plot_confusion_matrix(np.eye(12) + 1, range(12))
    for kind in ("png", "svg", "pdf"):
        stream = BytesIO()
        figure.savefig(stream, format=kind, dpi=70)
        assert len(stream.getvalue()) > 1000


@pytest.mark.parametrize("length", [1, 36])
def test_panels_hide_nothing(length: int) -> None:
    counts = np.array([[40_000_000, 300, 100], [1, 2, 6]])
    names = ["n" * length, "y" * length]
    figure = plot_score_histogram(
        [0.1, 0.5, 0.9], counts, names, calibrated=[0, 0.4, 1], title="Scores"
    )
    renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [ax.get_tightbbox(renderer) for ax in figure.axes] + [
        figure.legends[0].get_window_extent(renderer)
    ]
    for i, box in enumerate(boxes):
        assert box.x0 >= 0 <= box.y0
        assert box.x1 <= figure.bbox.x1
        assert box.y1 <= figure.bbox.y1
        assert not any(box.overlaps(other) for other in boxes[:i])


def test_a_figure_shows_itself_in_a_notebook_without_pyplot() -> None:
    picture = plot_confusion_matrix(np.array([[3, 1], [0, 4]]), ["a", "b"])._repr_png_()
    width, height = Image.open(BytesIO(picture)).size
    assert width > 300
    assert height > 200
