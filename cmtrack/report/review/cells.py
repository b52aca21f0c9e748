"""Cells of a review's tables: text, what they are sorted by, and an interval beside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cmtrack.names import distinct
from cmtrack.report import formatting as fmt

NAME = 30
"""Characters of a name in a table of the page, which are what it does not share with the others."""
FOLDED = 5
"""Ruled-out runs of a table that are seen at first."""

RANK = "rank"
RUN = "run"
STATUS = "status"
"""Keys of the columns that a ranking's table always has."""
DIFFERENCE = "difference"
"""Key of the column with the difference from the best other run, or from the leader."""

Cell = dict[str, Any]
Table = dict[str, Any]


def cell(
    text: str, sort: float | str | None = None, beside: str | None = None, title: str = ""
) -> Cell:
    """One cell; ``beside`` is its interval, in a narrow column."""
    if isinstance(sort, float) and not math.isfinite(sort):
        sort = ""
    return {
        "text": text,
        "sort": "" if sort is None else sort,
        "beside": beside,
        "title": title,
        "bar": None,
        "short": "",
    }


def with_intervals(heads: Sequence[str], rows: Sequence[dict[str, Any]], **more: Any) -> Table:
    """A table, with the places of the cells that have an interval."""
    places = {
        place for row in rows for place, one in enumerate(row["cells"]) if one["beside"] is not None
    }
    return {"heads": heads, "rows": rows, "with_interval": places} | more


def ranking_table(
    heads: Mapping[str, str],
    rows: list[dict[str, Any]],
    scales: Mapping[str, tuple[str, str]],
    **more: Any,
) -> Table:
    """Return the table of a ranking, whose heads, cells and scales are found by a column's key."""
    shorten_names([row["cells"][RUN] for row in rows])
    return {
        "heads": heads,
        "rows": rows,
        "numbers": [key for key in heads if key not in (RANK, RUN, STATUS)],
        "with_interval": {
            key
            for row in rows
            for key, shown in row["cells"].items()
            if shown["beside"] is not None
        },
        "scales": scales,
        "n_rest": fold(rows),
    } | more


def name_cell(name: str, run_id: str) -> Cell:
    """A run's name, and its id."""
    has_id = run_id and run_id != name
    return cell(name, name.lower(), title=name) | {
        "id": fmt.short_id(run_id) if has_id else "",
        "run_id": run_id if has_id else "",
        "short": name,
    }


def value_cell(value: float, interval: tuple[float, float]) -> Cell:
    """A metric of a run, its interval, and the ends that a drawing of it has."""
    return cell(fmt.number(value, interval), value, fmt.interval(value, interval)) | {
        "ends": (value, *interval)
    }


def p_cell(pvalue: float, is_leader: bool) -> Cell:
    """The p-value of a run; the leader, which the others are compared with, has none."""
    if is_leader:
        return cell("–")
    return cell(fmt.p_text(pvalue), pvalue)


def shorten_names(cells: Sequence[Cell]) -> None:
    """Give names the short form that the page shows on one line."""
    for name, short in zip(cells, distinct([name["text"] for name in cells], NAME), strict=True):
        name["short"] = short


def fold(rows: Sequence[dict[str, Any]]) -> int:
    """Mark the ruled-out runs of a table that are not seen at first, and return their number."""
    rest = [row for row in rows if row["status"] == "behind"][FOLDED:]
    for row in rest:
        row["rest"] = True
    return len(rest)
