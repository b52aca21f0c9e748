"""Objects in a notebook: sentences and short tables, in the notebook's own colours."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.digits import interval, number, p_text
from cmtrack.names import elide
from cmtrack.untrusted import for_page, one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ROWS = 12
"""Of a table; the frame has all."""
_WIDTH = 60


def view(*parts: str, notes: Iterable[str] = ()) -> str:
    """Parts of HTML one below the other, and remarks as a list."""
    remarks = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return for_page(f"<div>{''.join(parts)}{f'<ul>{remarks}</ul>' if remarks else ''}</div>")


def sentence(text: object) -> str:
    """A paragraph."""
    return f"<p>{escape(str(text))}</p>" if str(text) else ""


def table(frame: pd.DataFrame, rows: int = ROWS) -> str:
    """The first rows of a frame with rounded numbers; ``low`` and ``high`` become one column beside their value.

    ``frame``: columns are named as in programs: ``share_low`` is shown as "share low". A named index is shown, too.
    """
    shown = frame.head(rows)
    if any(shown.index.names):
        shown = shown.reset_index()
    columns = {str(name): [_text(name, value) for value in shown[name]] for name in shown.columns}
    for name in [name for name in columns if name == "low" or name.endswith("_low")]:
        stem, high = name.removesuffix("low"), name.removesuffix("low") + "high"
        value = stem.removesuffix("_") or next(
            (word for word in ("value", "difference") if word in columns), "value"
        )
        if high in columns:
            centre = shown[value] if value in columns else shown[name]
            ends = zip(centre, shown[name], shown[high], strict=True)
            columns[name] = [interval(value, (low, high)) or "–" for value, low, high in ends]
            del columns[high]
    columns = {
        name: cells
        for name, cells in columns.items()
        if any(cell not in ("", "–") for cell in cells)
    }
    heads = "".join(f"<th>{escape(_heading(name))}</th>" for name in columns)
    cells = zip(*columns.values(), strict=True)
    lines = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells
    )
    more = (
        f"<p>{len(shown)} of {len(frame):,} rows; <code>.to_frame()</code> has all.</p>"
        if len(frame) > rows
        else ""
    )
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{more}"


def matrix(frame: pd.DataFrame) -> str:
    """The first classes of a matrix, with rows and columns that say what they are."""
    shown = frame.iloc[:, :ROWS].rename_axis(index=f"{frame.index.name} / {frame.columns.name}")
    more = f"<p>{ROWS} of {frame.shape[1]:,} columns.</p>" if frame.shape[1] > ROWS else ""
    return table(shown) + more


def picture(figure: Figure) -> str:
    """A figure as PNG, inside the text."""
    content = base64.b64encode(figure._repr_png_()).decode()  # type: ignore[attr-defined]
    return f'<img alt="" src="data:image/png;base64,{content}" style="max-width: 480px">'


def _heading(name: str) -> str:
    words = (
        name.removesuffix("low") + "interval" if name == "low" or name.endswith("_low") else name
    )
    return {"pvalue": "p", "index": ""}.get(words, words.replace("_", " "))


def _text(name: object, value: Any) -> str:
    """A cell: numbers as sentences have them, truth as yes or no."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, float):
        return p_text(value) if str(name).startswith(("pvalue", "p_")) else number(value)
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    return elide(one_line(value), _WIDTH)
