"""Figures as elements of pages: text stays text, colours are the page's, and nothing depends on the moment."""

from __future__ import annotations

import re
import threading
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from cmtrack.plots import (
    BLUE,
    ORANGE,
    as_png,
    as_svg,
    as_svg_and_png,
    new_figure,
    plot_confusion_matrix,
    plot_reduced_matrix,
    plot_roc,
)
from support.figures import drawn_cells

INK = "#222222"  # of texts, wherever they stand on the colours of data
HOSTILE = [
    "<script>alert(1)</script>",
    "a\"b'&amp; ]]> <svg onload=x>",
    "left \u202etfel",
    "混同 한국어",
    "]]>",
]


def counts(k: int) -> np.ndarray:
    return np.random.default_rng(k).integers(0, 60, (k, k)) + 90 * np.eye(k, dtype=np.int64)


def matrix(k: int = 3, names: list[str] | None = None):
    return plot_confusion_matrix(counts(k), names or [f"class {i}" for i in range(k)])


def roc():
    t = np.linspace(0, 1, 200)
    return plot_roc(t**3, t, auc=0.75, operating_point=(0.2, 0.6))


def parts(svg: str, tag: str) -> list[ET.Element]:
    return [node for node in ET.fromstring(svg).iter() if node.tag == tag]


def test_the_element_says_its_size_and_what_it_is():
    figure = roc()
    width, height = figure.get_size_inches() * 96
    root = ET.fromstring(as_svg(figure, "roc", "ROC <curve>"))
    assert (root.tag, root.get("role")) == ("svg", "img")
    assert root.find("title").text == "ROC <curve>"
    assert (float(root.get("width")), float(root.get("height"))) == (round(width), round(height))
    assert [float(part) for part in root.get("viewBox").split()][2:] == pytest.approx(
        [width * 1300 / 96, height * 1300 / 96], abs=1
    )
    assert f"min-width:{0.75 * width:.0f}px;max-width:100%;height:auto" in root.get("style")


def test_nothing_is_global_or_of_the_moment():
    before = dict(mpl.rcParams)
    svg = as_svg(roc(), "roc", "ROC")
    assert dict(mpl.rcParams) == before
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "x", "svg.image_inline": False}):
        assert as_svg(roc(), "roc", "ROC") == svg
    assert not re.search(r"<style|<metadata|xlink|xmlns|font-family|<\?xml|\d{4}-\d\d-\d\d", svg)


def test_threads_draw_the_same():
    figures = [roc() for _ in range(4)]
    made: list[str] = []
    threads = [threading.Thread(target=lambda f=f: made.append(as_svg(f, "roc"))) for f in figures]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(made) == {as_svg(roc(), "roc")}
    assert len(made) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure", [matrix, lambda: matrix(31), roc], ids=["matrix", "large matrix", "curve"]
)
def test_one_drawing_gives_the_element_and_the_file_of_two(figure):
    svg, png = as_svg_and_png(figure(), "name", "title")
    assert svg == as_svg(figure(), "name", "title")
    assert png == as_png(figure())


def test_text_stays_text_whatever_is_in_it():
    svg = as_svg(matrix(5, HOSTILE), "m", "<b>")
    words = ["".join(node.itertext()) for node in parts(svg, "text")]
    assert words.count(HOSTILE[0]) == words.count(HOSTILE[1]) == 2  # of its row and of its column
    assert "left \\u202etfel" in words  # nothing turns the text around it
    assert "<script" not in svg
    assert "<svg onload" not in svg
    assert str(counts(5)[2, 2]) in words


def test_ids_begin_with_the_name_of_the_figure():
    figure = matrix(2, ["none here", "b"])
    figure.axes[0].add_patch(
        mpl.patches.Rectangle((-2, -2), 8, 8, hatch="//", facecolor="red", alpha=0.5)
    )
    svgs = [as_svg(figure, name) for name in ("a b", "a_b", 'a"b')]
    ids = [re.findall(r' id="(.*?)"', svg) for svg in svgs]
    assert all(ids)
    assert len({i for found in ids for i in found}) == sum(map(len, ids))
    for svg, found in zip(svgs, ids, strict=True):
        assert set(re.findall(r"url\(#(.*?)\)", svg)) == set(found)
        assert all(re.fullmatch(r"[A-Za-z0-9_-]+", name) for name in found)


def test_ink_is_the_pages_and_data_are_not():
    svg = as_svg(roc(), "roc")
    assert {"var(--ink)", "var(--page)", "var(--frame)", "var(--grid)", "var(--data-blue)"} <= set(
        re.findall(r'"(var\(.*?\))"', svg)
    )
    assert f'fill="{ORANGE.lower()}"' not in svg  # orange means bad
    assert INK not in svg
    assert BLUE.lower() not in svg


def test_a_dark_page_can_invert_cells_with_their_texts():
    svg = as_svg(matrix(3), "m")
    groups = {node.get("class"): node for node in parts(svg, "g")}
    # The cells have a light background.
    assert "#000000" in {node.get("fill") for node in groups["on-cells"]}
    assert all(node.get("fill").startswith("#") for node in groups["cells"])
    frames = [node for node in parts(svg, "path") if node.get("stroke") == "var(--ink)"]
    assert len(frames) == 3  # of the diagonal, which follow the page
    (bar,) = parts(as_svg(matrix(20), "m"), "image")
    assert bar.get("class") == "cells"


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of a colour as "#aabbcc"."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


@pytest.mark.parametrize("k", [2, 11])
def test_cells_have_the_colours_of_the_image(k):
    figure = matrix(k)
    (image,) = figure.axes[0].images
    shown = np.rint(255 * image.to_rgba(image.get_array())[..., :3]).astype(int)
    found = {rgb(colour) for colour in re.findall(r'fill="(#[0-9a-f]{6})"', as_svg(figure))}
    assert {tuple(colour) for colour in shown.reshape(-1, 3).tolist()} <= found


def test_the_cells_of_many_classes_are_one_image():
    svg = as_svg(matrix(31))
    assert len(parts(svg, "image")) == 2  # the matrix and its colour bar


def luminance(colour: tuple[int, int, int]) -> float:
    """Relative luminance by WCAG 2."""
    shares = np.array(colour) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_texts_can_be_read_on_every_colour_of_a_cell():
    shares = np.linspace(0, 1, 11)
    figure = plot_confusion_matrix(
        1000 * np.diag(shares) + 1000 * np.roll(np.diag(1 - shares), 1, axis=1), range(11)
    )
    (image,) = figure.axes[0].images
    colours = np.rint(255 * image.to_rgba(image.get_array())[..., :3]).astype(int)
    for cell, colour in zip(drawn_cells(figure), colours.reshape(-1, 3).tolist(), strict=True):
        if cell.text != "0":  # is pale, so that other counts stand out
            dark, light = sorted([luminance(rgb(cell.colour)), luminance(colour)])
            assert (light + 0.05) / (dark + 0.05) > 3.5


def test_several_images_stand_where_they_belong():
    figure = plot_reduced_matrix([[9, 1], [2, 8]], [3, 4], ["a", "b"])
    ax = figure.axes[0]
    svg = as_svg(figure)
    places = re.findall(r"translate\((\d+) (\d+)\)scale\(([\d.]+) ([\d.]+)\)", svg)
    height = figure.get_size_inches()[1] * 1300
    expected = []
    for image in ax.images:
        left, right, low, top = image.get_extent()
        (x, y), (to_x, to_y) = ax.transData.transform([(left, top), (right, low)]) * 1300 / 130
        rows, columns = image.get_array().shape
        expected.append([x, height - y, (to_x - x) / columns, (y - to_y) / rows])
    found = [[float(number) for number in place] for place in places]
    np.testing.assert_allclose(found, expected, atol=6)


def test_lines_end_at_the_frame_and_areas_are_clipped():
    figure = new_figure((2.0, 2.0))
    ax = figure.add_axes((0.25, 0.25, 0.5, 0.5))
    ax.plot([0, 10], [0, 0.5], color=ORANGE)
    ax.fill_between([0, 10], [0, 0], [3, 3], color=BLUE)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    svg = as_svg(figure, "f")
    (line,) = (node for node in parts(svg, "path") if node.get("stroke") == ORANGE.lower())
    # from the corner to the right edge, and not ten times as far
    assert line.get("d").startswith("M650 1950l13")
    assert line.get("clip-path") is None
    (area,) = (node for node in parts(svg, "path") if node.get("clip-path"))
    assert area.get("fill") == "var(--data-blue)"
    assert re.search(r'<clipPath id="f-0"><path d="M650 650H1950V1950H650z"', svg)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "most"), [(2, 8_000), (11, 25_000), (31, 30_000)], ids=["2", "11", "31"]
)
def test_an_element_is_smaller_than_its_image(k, most):
    svg, png = as_svg_and_png(matrix(k))
    assert len(svg) < min(most, len(png) * 4 / 3)
