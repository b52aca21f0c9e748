"""Rows on the pages: tables of a few rows, and those behind the confusions of an evaluation."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.digits import fixed
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.rows import (
    ASIDE,
    CLASSES,
    MISMATCH,
    STEP,
    joined_columns,
    right_rows,
    step_called,
)
from cmtrack.report import formatting as fmt
from cmtrack.rows.join import column_called
from cmtrack.statistics.factorize import is_missing
from cmtrack.statistics.predictions import Predictions
from cmtrack.untrusted import MAX_ADDRESS, web_address

if TYPE_CHECKING:
    import pandas as pd

NUMBERED = "Row numbers count from 0."
MAX_CELLS, PER_CELL = 20, 25
"""Cells of a matrix, and rows of each."""
_MAX_SEGMENTS, _MAX_COLUMNS = 6, 12
_TEXT = 200


class Joined(NamedTuple):
    """Columns of a table, an entry for each row of an evaluation; one of them may have addresses of images."""

    columns: Mapping[str, Any] = MappingProxyType({})
    images: str | None = None


NOTHING_JOINED = Joined()


def lists_rows(problems: list[str]) -> bool:
    """True where pages can list rows; without pandas a sentence more in ``problems``."""
    try:
        import cmtrack._pandas  # noqa: F401
    except ImportError as error:
        problems.append(str(error))
        return False
    return True


def joined_table(
    evaluation: Any, rows: bool, table: Any, row_ids: Any, images: str | None
) -> Joined:
    """Columns of a table that the author of a page asks for; a column of ids joins the rows, and is not shown.

    ValueError if the page lists no rows, the table has other rows or too many columns, or an address is none.
    """
    if table is None and images is not None:
        raise ValueError(f"images goes with table=, got {images!r:.80} alone")
    if table is not None and not rows:
        raise ValueError("table= needs a page that lists rows, got rows=False")
    columns = joined_columns(evaluation, table, row_ids, stacklevel=5)
    for address in () if images is None else column_called("images", images, columns).dropna():
        web_address(address, f"images={images!r:.80}")
    if isinstance(row_ids, str) and row_ids != images:
        columns.pop(row_ids, None)
    if len(columns) > _MAX_COLUMNS:
        raise ValueError(
            f"a page shows at most {_MAX_COLUMNS} columns of a table beside ids, got {len(columns):,}"
        )
    return Joined(columns, images)


def rows_table(
    frame: pd.DataFrame,
    heads: Mapping[str, str],
    probabilities: Collection[str] = (),
    joined: Joined = NOTHING_JOINED,
) -> dict[str, Any]:
    """Columns of a frame of rows by their heads, and those of a table; texts are cut where they are long."""
    numbers = {"row", *probabilities}
    columns = [
        [(_text(value, name in probabilities), name in numbers) for value in frame[name]]
        for name in heads
    ]
    for name, column in joined.columns.items():
        values, most = column.iloc[frame["row"]], MAX_ADDRESS if name == joined.images else _TEXT
        columns.append([(_text(value, most=most), False) for value in values])
    titles = [(head, name in numbers) for name, head in heads.items()]
    links = [
        len(heads) + place for place, name in enumerate(joined.columns) if name == joined.images
    ]
    return {
        "heads": [*titles, *((fmt.short(name), False) for name in joined.columns)],
        "rows": list(zip(*columns, strict=True)),
        "links": links,
    }


def _text(value: Any, probability: bool = False, most: int = _TEXT) -> str:
    if is_missing(value):
        return ""
    return fixed(value, 3) if probability else fmt.short(value, most)


def shows_ids(rows: Predictions) -> bool:
    """True where a setting asked for the ids of rows to be written."""
    return rows.ids is not None and rows.ids.stored


def has_probabilities(rows: Predictions) -> bool:
    """True of probabilities; not of decision values, which only rank."""
    return rows.source is not None and not rows.source.ranking_only


class _Cell(NamedTuple):
    """A cell of a matrix that has rows: its matrix and step, its codes there, and how many."""

    matrix: str
    step: str | None
    actual: int
    predicted: int | str
    rows: int
    right: bool


def behind_confusions(
    evaluation: BaseEvaluation | None, most: int = MAX_CELLS, joined: Joined = NOTHING_JOINED
) -> dict[str, Any] | None:
    """The surest rows of cells of the matrices, a table for each; None without rows or without errors.

    The matrices take turns until there are so many tables: confusions first, the largest first, then what is right;
    the classes that are right are the last of all.
    """
    if not isinstance(evaluation, Evaluation) or not isinstance(evaluation.rows, Predictions):
        return None
    rows = evaluation.rows
    of_classes = _cells(evaluation, rows, None, CLASSES)
    wrong = [cell for cell in of_classes if not cell.right]
    if not wrong:
        return None
    of_steps = {
        step.name: _cells(evaluation, rows, step.name, f"{STEP}{place}")
        for place, step in enumerate(evaluation.reduced)
    }
    listed = _taken_in_turn([of_classes, *of_steps.values()], most)

    def tables(cells: Iterable[_Cell]) -> list[dict[str, Any]]:
        return [_behind(evaluation, rows, cell, joined) for cell in cells if cell in listed]

    confusions = tables(wrong)
    others = [(f"Grouped: {name}", tables(cells)) for name, cells in of_steps.items()]
    others.append(("Right", tables(cell for cell in of_classes if cell.right)))
    reading = NUMBERED
    if has_probabilities(rows):
        reading = f"The surest rows first. {reading}"
    if len(wrong) > len(confusions):
        reading += f" The {len(confusions)} most frequent of {len(wrong):,} confusions."
    return {
        "reading": reading,
        "cells": confusions,
        "others": [(head, cells) for head, cells in others if cells],
    }


def _taken_in_turn(matrices: Sequence[Sequence[_Cell]], most: int) -> set[_Cell]:
    """The first cell of each matrix, then the second of each, and so on; right cells of the first matrix come last."""
    turns = [
        (cell.right and place == 0, turn, place)
        for place, cells in enumerate(matrices)
        for turn, cell in enumerate(cells)
    ]
    return {matrices[place][turn] for _, turn, place in sorted(turns)[:most]}


def opened(behind: Mapping[str, Any] | None) -> dict[str, str]:
    """Title of each table of rows by its id, which a cell of a matrix opens."""
    parts = [] if behind is None else [behind["cells"], *(cells for _, cells in behind["others"])]
    return {table["id"]: table["title"] for part in parts for table in part}


def _cells(evaluation: Evaluation, rows: Predictions, step: str | None, matrix: str) -> list[_Cell]:
    """The cells of a matrix that have rows, wrong ones first, those of the most rows first."""
    composed = None if step is None else step_called(evaluation, step)
    actual, predicted, size = rows.actual, rows.predicted, len(evaluation.labels)
    right = right_rows(rows, composed)
    if composed is not None:
        actual, predicted = (composed.group_of_class[codes] for codes in (actual, predicted))
        size = len(composed.labels)
    predicted = np.where((actual == predicted) & ~right, size, predicted)  # a mismatch
    codes = actual * (size + 1) + predicted
    places, counts = np.unique(codes[rows.design.counted], return_counts=True)
    cells = []
    for place, count in zip(places.tolist(), counts.tolist(), strict=True):
        i, j = divmod(place, size + 1)
        # of a group of that name they are not found
        if j < size or MISMATCH not in getattr(composed, "labels", ()):
            cells.append(_Cell(matrix, step, i, ASIDE if j == size else j, count, i == j))
    return sorted(cells, key=lambda cell: (cell.right, -cell.rows))


def _behind(
    evaluation: Evaluation, rows: Predictions, cell: _Cell, joined: Joined
) -> dict[str, Any]:
    groups = evaluation.labels if cell.step is None else step_called(evaluation, cell.step).labels
    aside = cell.predicted == ASIDE
    predicted = MISMATCH if isinstance(cell.predicted, str) else groups[cell.predicted]
    frame = evaluation.rows_where(groups[cell.actual], predicted, cell.step, limit=PER_CELL)
    names = [fmt.named(label) for label in (groups[cell.actual], predicted)]
    heads = {"row": "Row"} | ({"id": "Id"} if shows_ids(rows) else {})
    if cell.step is None:
        of = names[1:] if cell.right else names[::-1]
    else:
        heads |= {"actual": "Actual", "predicted": "Predicted"}
        of = ["predicted", "actual"]
    scores = ("probability", "probability_actual")[: len(of)] if has_probabilities(rows) else ()
    heads |= dict(zip(scores, (f"p of {name}" for name in of), strict=False))
    columns = [str(name) for name in frame][len(frame.columns) - len(rows.segments) :]
    heads |= {
        name: fmt.short(one.name)
        for name, one in zip(columns[:_MAX_SEGMENTS], rows.segments, strict=False)
    }
    called = f"called {names[1]}" if not aside else "called another class of it"
    most = "" if cell.rows == len(frame) else f": the first {len(frame)}"
    title = f"{cell.rows:,} {names[0]} {called}{most}"
    words = {
        "title": title,
        "reading": "",
        "id": f"rows-{cell.matrix}-{cell.actual}-{cell.predicted}",
    }
    return rows_table(frame, heads, scores, joined) | words
