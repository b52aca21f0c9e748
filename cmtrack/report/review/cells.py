"""Cells of a review's tables: text, what they are sorted by, and an interval beside."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cmtrack.report import formatting as fmt

Cell = dict[str, Any]
Table = dict[str, Any]


def cell(text: str, sort: float | str | None = None, beside: str | None = None, title: str = "") -> Cell:
    """One cell; ``beside`` is its interval, in a narrow column."""
    if isinstance(sort, float) and not math.isfinite(sort):
        sort = ""
    return {
        "text": text, "sort": "" if sort is None else sort, "beside": beside, "title": title, "bar": None, "short": "",
    }  # fmt: skip


def with_intervals(heads: Sequence[str], rows: Sequence[dict[str, Any]], **more: Any) -> Table:
    """A table, with the places of the cells that have an interval."""
    places = {place for row in rows for place, one in enumerate(row["cells"]) if one["beside"] is not None}
    return {"heads": heads, "rows": rows, "with_interval": places} | more


def name_cell(name: str, run_id: str) -> Cell:
    """A run's name, and its id."""
    has_id = run_id and run_id != name
    return cell(name, name.lower(), title=name) | {
        "id": fmt.short_id(run_id) if has_id else "",
        "run_id": run_id if has_id else "",
        "short": name,
    }
