"""Texts in cells, panels without a layout engine, and pictures that are sent as they are."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from cmtrack.plots import as_png, plot_confusion_matrix, plot_score_histogram
from cmtrack.plots._text_artist import Words
from cmtrack.plots.style import DPI
from cmtrack.tracking.images import DrawnImage


def pixels(figure: Figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba()).astype(int)


@pytest.mark.parametrize("content", ["12,345", "273\n64%", "−10.0\n(−10)"])
@pytest.mark.parametrize("bold", [False, True])
def test_words_are_drawn_where_texts_are_up_to_a_pixel(content: str, bold: bool) -> None:
    pictures = []
    for kind in ("words", "text"):
        figure = Figure(figsize=(2, 1), dpi=100)
        ax = figure.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, 2), ylim=(0, 1))
        ax.set_axis_off()
        if kind == "words":
            places = np.array([[1.0, 0.5], [0.1, 0.1]])
            ax.add_collection(Words([content, ""], places, ["black"] * 2, 10.0, [bold] * 2, ax))
        else:
            weight = "bold" if bold else "normal"
            ax.text(
                1,
                0.5,
                content,
                ha="center",
                va="center",
                fontsize=10,
                fontweight=weight,
                linespacing=1.15,
            )
        pictures.append(255 - pixels(figure)[..., 0])
    ink = [picture.sum() for picture in pictures]
    assert ink[0] == pytest.approx(ink[1], rel=0.25)  # outlines are not hinted
    for axis in (0, 1):
        one, other = ((p.sum(axis=1 - axis) @ np.arange(p.shape[axis])) / p.sum() for p in pictures)
        assert abs(one - other) < 1.5


def test_png_files_know_their_density() -> None:
    image = Image.open(BytesIO(as_png(plot_confusion_matrix(np.eye(2) + 1, range(2)))))
    assert image.info["dpi"] == pytest.approx((DPI, DPI), abs=0.1)


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


def test_a_drawn_image_is_sent_as_it_is(tmp_path: Any) -> None:
    path, copy = tmp_path / "a.png", tmp_path / "b.png"
    Image.fromarray(np.full((300, 600, 3), 200, dtype=np.uint8)).save(path)
    with DrawnImage(path.read_bytes()) as image:
        image.save(str(copy))
        small = image.resize((256, 128))
    assert copy.read_bytes() == path.read_bytes()
    assert small.size == (256, 128)
    assert small.getpixel((100, 60)) == (200, 200, 200)


def test_a_figure_shows_itself_in_a_notebook_without_pyplot() -> None:
    picture = plot_confusion_matrix(np.array([[3, 1], [0, 4]]), ["a", "b"])._repr_png_()
    width, height = Image.open(BytesIO(picture)).size
    assert width > 300
    assert height > 200
