"""Display of objects in a notebook as sentences and short tables in the notebook's colours."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
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
_SENTENCE = 20
"""Number of characters above which a text that all rows share is printed once."""
_ONE_LINE = 30
"""Maximum number of characters of a text that is kept on one line."""
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


def table(frame: pd.DataFrame, rows: int = ROWS, *, of: int | None = None) -> str:
    """Return the first rows of a frame as an HTML table with rounded numbers.

    ``of``: number of rows of the object's frame, if ``frame`` is a selection of them.

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
    # A sentence that all rows share is said once, below the table.
    repeated = {name: cells[0] for name, cells in columns.items() if _is_repeated(cells)}
    columns = {name: cells for name, cells in columns.items() if name not in repeated}
    texts = {name for name in columns if _is_text(shown, name)}
    heads = "".join(_cell("th", _heading(name), name in texts) for name in columns)
    lines = ""
    for row in zip(*columns.values(), strict=True):
        pairs = zip(columns, row, strict=True)
        lines += f"<tr>{''.join(_cell('td', text, name in texts) for name, text in pairs)}</tr>"
    html = f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>"
    html += "".join(sentence(as_sentence(text)) for text in repeated.values())
    total = len(frame) if of is None else of
    if total > len(shown):
        html += f"<p>{len(shown)} of {total:,} rows; <code>.to_frame()</code> returns all.</p>"
    return html


def _cell(tag: str, text: str, is_text: bool) -> str:
    """Return a cell; text is aligned left, because notebooks align all cells right."""
    if not is_text:
        return f"<{tag}>{escape(text)}</{tag}>"
    style = "text-align: left"
    if len(text) <= _ONE_LINE:
        style += "; white-space: nowrap"
    return f'<{tag} style="{style}">{escape(text)}</{tag}>'


def _is_text(shown: pd.DataFrame, name: str) -> bool:
    """Return whether a column has texts, and no numbers or truth values."""
    return any(isinstance(value, str) for value in shown.get(name, ()))


def _is_repeated(cells: Sequence[str]) -> bool:
    """Return whether all rows of a column have the same sentence."""
    return len(cells) > 1 and len(set(cells)) == 1 and len(cells[0]) > _SENTENCE


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
    return f'<img alt="" src="data:image/png;base64,{content}" style="max-width: min(100%, 480px)">'


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
