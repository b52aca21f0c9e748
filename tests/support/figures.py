"""The content of a figure, read from the SVG element on a page."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass

from matplotlib.figure import Figure

from cmtrack.plots import as_svg


@dataclass(frozen=True)
class CellText:
    """The text of a cell of a matrix, with its lines, position and colour."""

    text: str
    x: float
    y: float
    colour: str


def shown_texts(figure: Figure) -> list[str]:
    """Return every text of the figure, line by line."""
    root = ET.fromstring(as_svg(figure))
    return ["".join(node.itertext()) for node in root.iter("text")]


def drawn_cells(figure: Figure) -> list[CellText]:
    """Return the texts in the cells of the figure's matrices, in the order of the cells."""
    cells: list[CellText] = []
    root = ET.fromstring(as_svg(figure))
    for group in root.iter("g"):
        if group.get("text-anchor") != "middle" or group.get("font-size") is None:
            continue  # names and captions have another size
        line = 1.5 * float(group.attrib["font-size"])
        last_y = float("-inf")
        for node in group.findall("text"):
            x, y = float(node.attrib["x"]), float(node.attrib["y"])
            text = "".join(node.itertext())
            if cells and cells[-1].x == x and 0 < y - last_y < line:
                first = cells.pop()
                text = f"{first.text}\n{text}"
            cells.append(CellText(text, x, y, node.attrib["fill"]))
            last_y = y
    return cells


def cell_texts(figure: Figure) -> list[str]:
    """Return the texts in the cells; line breaks join the lines of a cell."""
    return [cell.text for cell in drawn_cells(figure)]
