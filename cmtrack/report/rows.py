"""Rows on the pages: tables of a few rows, as text that is cut where it is long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cmtrack.report import formatting as fmt
from cmtrack.statistics.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

NUMBERED = "Row numbers count from 0."
_TEXT = 200


def rows_table(frame: pd.DataFrame, heads: Mapping[str, str]) -> dict[str, Any]:
    """Columns of a frame of rows by their heads; those that it has not are left out."""
    names = [name for name in heads if name in frame]
    return {
        "heads": [(heads[name], name.startswith(_NUMBERS)) for name in names],
        "rows": [
            [(_text(value, name), name.startswith(_NUMBERS)) for name, value in zip(names, row, strict=True)]
            for row in frame[names].itertuples(index=False, name=None)
        ],
    }


_NUMBERS = ("row", "probability")


def _text(value: Any, name: str) -> str:
    return f"{value:.3f}" if name.startswith("probability") else fmt.short(value, _TEXT)


def shows_ids(rows: Predictions) -> bool:
    """True where a setting asked for the ids of rows to be written."""
    return rows.ids is not None and rows.ids.stored


def has_probabilities(rows: Predictions) -> bool:
    """True of probabilities; not of decision values, which only rank."""
    return rows.source is not None and not rows.source.ranking_only
