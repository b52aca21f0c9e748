"""Texts of all figures on pages: their size at 1440 pixels, and the room between them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from cmtrack import Grouping, Prefix, compare, evaluate, evaluate_families
from cmtrack.plots import plot_confusion_matrix

# Only this function returns the SVG elements of all figures of a page.
from cmtrack.report.figures import draw_pictures
from support.problems import random_probabilities

LEAST = 12.0
HALF = 594.0
PAGE = 1224.0
"""Widths of half a page and of a page in pixels, if the window has 1440."""
ODD = [
    "🔥 fire & smoke",
    "🚒🚒🚒🚒",
    "日本語のとても長い名前です",
    "<b>rest</b>",
    "a name " * 9 + "at last",
]


def classes(k: int, names: list[Any] | None = None, **options: Any) -> Any:
    y = np.random.default_rng(k).integers(k, size=60 * k)
    labels = names or [f"Product category {i:02d} (electronics)" for i in range(k)]
    actual = [labels[i] for i in y]
    return evaluate(actual, y_prob=random_probabilities(y, k, 2.0), labels=labels, **options)


def groups() -> Any:
    rest = Grouping({"rest": ["a", "b"], "good": ["c", "d"]}, mode="strict", positive="good")
    segments = {"part": np.random.default_rng(0).choice(["south", "north"], 240).tolist()}
    return classes(4, list("abcd"), grouping=rest, segments=segments)


def two(strength: float = 2.0) -> Any:
    y = (np.random.default_rng(0).random(800) < 0.05).astype(int)
    return evaluate(y, y_prob=random_probabilities(y, 2, strength), positive=1)


def families() -> Any:
    rng = np.random.default_rng(0)
    codes = [f"{family}.{i}" for family in (250, 364, 401) for i in range(6)]
    documents = [[rng.choice(codes, 2).tolist() for _ in range(300)] for _ in range(2)]
    return evaluate_families(*documents, Prefix("."))


SUBJECTS = {
    "families": families,
    "two": two,
    "groups": groups,
    "12 classes": lambda: classes(12),
    "60 classes": lambda: classes(60),
    "odd names": lambda: classes(5, ODD),
    "review": lambda: compare({f"lightgbm depth={i}": two(2.0 - i / 5) for i in range(6)}),
    "review of classes": lambda: compare({"a run": classes(12), "a rival": classes(12)}),
}


@dataclass
class Box:
    """A text of an SVG element and the room that it takes, in units of the drawing."""

    words: str
    size: float
    left: float
    right: float
    top: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        """True if the boxes have more in common than their edges."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return width > 0.1 * self.size and height > 0.3 * self.size


def width_of(words: str) -> float:
    """Width of a text in font sizes; an emoji is wider than in any common font."""
    wide = sum(unicodedata.east_asian_width(c) == "W" for c in words)
    emoji = sum(ord(c) > 0xFFFF for c in words)
    return 0.58 * (len(words) - wide) + 1.0 * (wide - emoji) + 1.4 * emoji


def texts(svg: str) -> Iterator[Box]:
    """All texts that are level or upright."""
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        for node in parent.findall("text"):
            size = float(node.get("font-size") or parent.get("font-size") or "nan")
            x, y = (float(node.get(name) or "nan") for name in "xy")
            words = node.text or ""
            width = width_of(words) * size
            anchor = node.get("text-anchor") or parent.get("text-anchor") or "start"
            before = {"start": 0.0, "middle": width / 2, "end": width}[anchor]
            turn = re.match(r"rotate\((-?\d+)", node.get("transform") or "rotate(0")
            if turn is None or turn[1] not in ("0", "-90"):
                continue
            if turn[1] == "0":
                box = (x - before, x - before + width, y - 0.75 * size, y + 0.2 * size)
            else:
                box = (x - 0.75 * size, x + 0.2 * size, y - width + before, y + before)
            yield Box(words, size, *box)


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_no_text_is_smaller_than_12_pixels(name: str) -> None:
    pictures = draw_pictures(SUBJECTS[name](), files=False)
    assert len(pictures) >= 2
    for picture in pictures.values():
        element = re.match(r'<svg role="img" width="(\d+)" .*? viewBox="0 \d+ (\d+)', picture.svg)
        assert element is not None
        width, units = map(float, element.groups())
        room = HALF if width <= HALF else PAGE
        scale = min(width, room) / units
        sizes = {words.size * scale for words in texts(picture.svg)}
        # sizes are written in tenths of a pixel of the drawing
        assert min(sizes) > LEAST - 0.05, picture.name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["two", "groups", "12 classes", "60 classes", "odd names"])
def test_no_text_of_a_matrix_touches_another_text_or_a_cell(name: str) -> None:
    pictures = draw_pictures(SUBJECTS[name](), files=False)
    for picture in pictures.values():
        if "matrix" not in picture.name or picture.name.startswith("spcc"):
            continue
        boxes = list(texts(picture.svg))
        for one, other in combinations(boxes, 2):
            assert not one.overlaps(other), (one.words, other.words)
        _, rows, columns, x, y, width, height = re.search(
            r'data-cells="(\S+) (\S+) (\S+) (\S+) (\S+) (\S+) (\S+)"', picture.svg
        ).groups()  # type: ignore[union-attr]
        right = float(x) + float(width) * len(columns.split(","))
        low = float(y) + float(height) * len(rows.split(","))
        cells = Box("cells", 0.0, float(x), right, float(y), low)
        for box in boxes:
            is_inside = cells.left < (box.left + box.right) / 2 < cells.right and (
                cells.top < (box.top + box.bottom) / 2 < cells.bottom
            )
            assert is_inside or not box.overlaps(cells), box.words


def luminance(colour: str) -> float:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_numbers_in_cells_have_a_contrast_of_at_least_4_5() -> None:
    for share in np.linspace(0.01, 1, 100):
        figure = plot_confusion_matrix([[100 * share, 100 - 100 * share], [0, 30]], ["a", "b"])
        (image,) = figure.axes[0].images
        ground = image.to_rgba(image.get_array())[0, 0, :3]
        words = figure.axes[0].collections[-1]
        ink = luminance("#000000" if words.colours[0] == "black" else "#ffffff")
        paper = luminance("#" + "".join(f"{round(255 * part):02x}" for part in ground))
        assert (max(ink, paper) + 0.05) / (min(ink, paper) + 0.05) >= 4.5


def test_orange_is_only_for_what_is_bad() -> None:
    pictures = draw_pictures(two(), files=False)
    assert {"roc", "reliability", "confusion_matrix"} <= pictures.keys()
    for picture in pictures.values():
        assert "d55e00" not in picture.svg.lower(), picture.name
