"""Display of objects in a notebook as sentences and short tables in the notebook's colours."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.digits import interval, number, p_text
from cmtrack.names import as_sentence, elide
from cmtrack.untrusted import for_page, one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ROWS = 12
"""Maximum number of rows in a notebook table; the frame contains all rows."""
_WIDTH = 60
"""Maximum number of characters of a text in a cell."""


def view(*parts: str, notes: Iterable[str] = ()) -> str:
    """Return an HTML element that shows the parts one below the other, followed by the notes."""
    content = "".join(parts)
    remarks = "".join(f"<li>{escape(as_sentence(note))}</li>" for note in notes)
    if remarks:
        content += f"<ul>{remarks}</ul>"
    return for_page(f"<div>{content}</div>")


def sentence(text: object) -> str:
    """Return a text as an HTML paragraph; an empty text stays empty."""
    words = escape(str(text))
    if not words:
        return ""
    return f"<p>{words}</p>"


def table(frame: pd.DataFrame, rows: int = ROWS) -> str:
    """Return the first rows of a frame as an HTML table with rounded numbers.

    The two columns of an interval become one column: ``share_low`` and ``share_high`` become "share
    interval". An index with a name is shown as a column.
    """
    shown = frame.head(rows)
    if any(shown.index.names):
        shown = shown.reset_index()
    columns = {str(name): [_text(name, value) for value in shown[name]] for name in shown.columns}
    for name in [name for name in columns if _is_low(name)]:
        high = name.removesuffix("low") + "high"
        if high in columns:
            columns[name] = _intervals(shown, name, high)
            del columns[high]
    columns = {name: cells for name, cells in columns.items() if not _is_empty(cells)}
    heads = "".join(f"<th>{escape(_heading(name))}</th>" for name in columns)
    lines = ""
    for row in zip(*columns.values(), strict=True):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
        lines += f"<tr>{cells}</tr>"
    html = f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
    if len(frame) > rows:
        html += f"<p>{len(shown)} of {len(frame):,} rows; <code>.to_frame()</code> returns all.</p>"
    return html


def matrix(frame: pd.DataFrame) -> str:
    """Return the first rows and columns of a matrix as an HTML table."""
    shown = frame.iloc[:, :ROWS].rename_axis(index=f"{frame.index.name} / {frame.columns.name}")
    html = table(shown)
    if frame.shape[1] > ROWS:
        html += f"<p>{ROWS} of {frame.shape[1]:,} columns.</p>"
    return html


def picture(figure: Figure) -> str:
    """Return a figure as an HTML image that contains the PNG data."""
    content = base64.b64encode(figure._repr_png_()).decode()  # type: ignore[attr-defined]
    return f'<img alt="" src="data:image/png;base64,{content}" style="max-width: 480px">'


def _is_empty(cells: Iterable[str]) -> bool:
    """Return whether all cells of a column are empty."""
    return all(cell in ("", "–") for cell in cells)


def _is_low(name: str) -> bool:
    """Return whether a column contains the lower limits of intervals."""
    return name == "low" or name.endswith("_low")


def _intervals(shown: pd.DataFrame, low: str, high: str) -> list[str]:
    """Format the cells ``[low, high]`` for the column of an interval.

    The number of digits depends on the column of values to which the interval belongs. This column
    is ``share`` for ``share_low``, and ``value`` or ``difference`` for ``low``.
    """
    stem = low.removesuffix("low").removesuffix("_")
    names = [stem] if stem else ["value", "difference"]
    name = next((name for name in names if name in shown), low)
    rows = zip(shown[name], shown[low], shown[high], strict=True)
    return [interval(value, (least, most)) or "–" for value, least, most in rows]


def _heading(name: str) -> str:
    if _is_low(name):
        name = name.removesuffix("low") + "interval"
    return {"pvalue": "p", "index": ""}.get(name, name.replace("_", " "))


def _text(name: object, value: Any) -> str:
    """Format a cell: numbers are rounded, and truth values become "yes" or "no"."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, float):
        return p_text(value) if str(name).startswith(("pvalue", "p_")) else number(value)
    if isinstance(value, (int, np.integer)):
        return f"{int(value):,}"
    return elide(one_line(value), _WIDTH)
