"""Tables of individual rows on pages, such as the rows that a confusion consists of."""

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
from cmtrack.grouping import Label
from cmtrack.report import formatting as fmt
from cmtrack.report.narrative import other_within
from cmtrack.rows.join import column_called
from cmtrack.statistics.factorize import is_missing
from cmtrack.statistics.predictions import Predictions
from cmtrack.untrusted import MAX_ADDRESS, web_address

if TYPE_CHECKING:
    import pandas as pd

NUMBERED = "Row numbers start at 0."
MAX_CELLS = 20
"""Maximum number of matrix cells for which a page contains a table of rows."""
MAX_LISTED = 5
"""Maximum number of row tables that a page lists.

The listed tables belong to the largest errors of a single matrix, so that a reader can compare them
with this matrix. The page shows each further table if a reader clicks the table's matrix cell.
"""
PER_CELL = 5
"""Maximum number of rows in the table of a matrix cell."""
_MAX_SEGMENTS = 6
_MAX_COLUMNS = 12
_TEXT = 200
"""Maximum length, in characters, of a text in a table of rows."""


class Joined(NamedTuple):
    """Columns of a user's table that contain one entry for each row of an evaluation.

    ``images``: name of the column with the addresses of images, or None if there is no such column.
    """

    columns: Mapping[str, Any] = MappingProxyType({})
    images: str | None = None


NOTHING_JOINED = Joined()


def lists_rows(problems: list[str]) -> bool:
    """Return whether pages can list rows; if pandas is missing, add a note to ``problems``."""
    try:
        import cmtrack._pandas  # noqa: F401
    except ImportError as error:
        problems.append(str(error))
        return False
    return True


def joined_table(
    evaluation: Any, rows: bool, table: Any, row_ids: Any, images: str | None
) -> Joined:
    """Return the columns of the user's table that a page shows next to its rows.

    If the rows are matched with a column of ids, the page does not show this column.

    Raises ValueError if the page lists no rows, if the rows of the table do not match the evaluated
    rows, if the table has too many columns, or if an image address is not a web address.
    """
    if table is None and images is not None:
        raise ValueError(f"images= needs table=, got only images={images!r:.80}")
    if table is not None and not rows:
        raise ValueError("table= needs a page that lists rows, got rows=False")
    columns = joined_columns(evaluation, table, row_ids, stacklevel=5)
    if images is not None:
        for address in column_called("images", images, columns).dropna():
            web_address(address, f"images={images!r:.80}")
    if isinstance(row_ids, str) and row_ids != images:
        columns.pop(row_ids, None)
    if len(columns) > _MAX_COLUMNS:
        raise ValueError(
            f"a page shows at most {_MAX_COLUMNS} columns of table= (ids do not count), got "
            f"{len(columns):,}"
        )
    return Joined(columns, images)


def rows_table(
    frame: pd.DataFrame,
    heads: Mapping[str, str],
    probabilities: Collection[str] = (),
    joined: Joined = NOTHING_JOINED,
) -> dict[str, Any]:
    """Return a table of a frame's rows, followed by the columns of the user's table.

    Long texts are cut.

    ``heads``: the frame's columns to show, each with its heading.
    ``probabilities``: the names of columns with probabilities.
    """
    titles = []
    columns = []
    links = []
    for name, head in heads.items():
        is_number = name == "row" or name in probabilities
        titles.append((head, is_number))
        columns.append([(_text(value, name in probabilities), is_number) for value in frame[name]])
    for name, column in joined.columns.items():
        most = _TEXT
        if name == joined.images:
            most = MAX_ADDRESS
            links.append(len(columns))
        titles.append((fmt.short(name), False))
        values = column.iloc[frame["row"]]
        columns.append([(_text(value, most=most), False) for value in values])
    return {"heads": titles, "rows": list(zip(*columns, strict=True)), "links": links}


def _text(value: Any, probability: bool = False, most: int = _TEXT) -> str:
    if is_missing(value):
        return ""
    return fixed(value, 3) if probability else fmt.short(value, most)


def shows_ids(rows: Predictions) -> bool:
    """Return whether a page may show row ids, because the settings allow storing them."""
    return rows.ids is not None and rows.ids.stored


def has_probabilities(rows: Predictions) -> bool:
    """Return whether rows have probabilities, not just decision values that rank the rows."""
    return rows.source is not None and not rows.source.ranking_only


class _Cell(NamedTuple):
    """A matrix cell that contains rows, with its matrix, step, label codes and count."""

    matrix: str
    step: str | None
    actual: int
    predicted: int | str
    rows: int
    right: bool


def behind_confusions(
    evaluation: BaseEvaluation | None, most: int = MAX_CELLS, joined: Joined = NOTHING_JOINED
) -> dict[str, Any] | None:
    """Return a table of the most confident rows in each of the most important matrix cells.

    The page lists the largest errors of the positive group's matrix, or else of the class matrix.
    The other tables open by a click on their cells. The matrices take turns to contribute their
    next cell until there are ``most`` tables. In each matrix, confusions come before correct
    predictions, and larger cells come before smaller cells. The cells of correct predictions in the
    class matrix come last. Returns None if there are no rows or no errors.
    """
    if not isinstance(evaluation, Evaluation) or not isinstance(evaluation.rows, Predictions):
        return None
    rows = evaluation.rows
    class_cells = _cells(evaluation, rows, None, CLASSES)
    wrong = [cell for cell in class_cells if not cell.right]
    if not wrong:
        return None
    step_cells = {
        step.name: _cells(evaluation, rows, step.name, f"{STEP}{place}")
        for place, step in enumerate(evaluation.reduced)
    }
    matrix_name = "the confusion matrix"
    errors = wrong
    for step in evaluation.reduced:
        step_errors = [cell for cell in step_cells[step.name] if not cell.right]
        # Readers ask about the positive group first. Without errors there, its list would be empty.
        if step.positive is not None and step_errors:
            matrix_name = f"the reduced confusion matrix {fmt.named(step.name)}"
            errors = step_errors
    listed = errors[: min(MAX_LISTED, most)]
    by_turns = _take_turns([class_cells, *step_cells.values()])
    with_table = list(dict.fromkeys([*listed, *by_turns]))[:most]

    def make_tables(cells: Iterable[_Cell]) -> list[dict[str, Any]]:
        return [
            _behind(evaluation, rows, cell, joined) | {"on_click": cell not in listed}
            for cell in cells
            if cell in with_table
        ]

    confusions = make_tables(wrong)
    groups = [(f"Grouped: {name}", make_tables(cells)) for name, cells in step_cells.items()]
    groups.append(("Correct", make_tables(cell for cell in class_cells if cell.right)))
    extent = "each kind of error"
    if len(listed) < len(errors):
        extent = f"the {len(listed)} most frequent errors"
    order = ""
    if has_probabilities(rows):
        order = ", with the most confident predictions first"
    return {
        "reading": (
            f"The list shows rows of {extent} in {matrix_name}{order}. To see rows of other cells, "
            f"click a cell with many rows in a matrix. {NUMBERED}"
        ),
        "cells": confusions,
        "others": [(head, tables) for head, tables in groups if tables],
    }


def _take_turns(matrices: Sequence[Sequence[_Cell]]) -> list[_Cell]:
    """Return the cells: first the first cell of every matrix, then the second, and so on.

    The cells of correct predictions in the first matrix come last.
    """
    turns = [
        (cell.right and place == 0, turn, place)
        for place, cells in enumerate(matrices)
        for turn, cell in enumerate(cells)
    ]
    return [matrices[place][turn] for _, turn, place in sorted(turns)]


def opened(behind: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the titles of the tables by the table ids to which matrix cells link."""
    if behind is None:
        return {}
    groups = [behind["cells"], *(tables for _, tables in behind["others"])]
    return {table["id"]: table["title"] for tables in groups for table in tables}


def _cells(evaluation: Evaluation, rows: Predictions, step: str | None, matrix: str) -> list[_Cell]:
    """Return the matrix cells that contain rows, errors first, sorted by the number of rows."""
    actual = rows.actual
    predicted = rows.predicted
    composed = None
    labels = evaluation.labels
    if step is not None:
        composed = step_called(evaluation, step)
        actual = composed.group_of_class[actual]
        predicted = composed.group_of_class[predicted]
        labels = composed.labels
    size = len(labels)
    # Mismatches (a wrong class in the correct group) have a column after the groups.
    is_mismatch = (actual == predicted) & ~right_rows(rows, composed)
    predicted = np.where(is_mismatch, size, predicted)
    codes = actual * (size + 1) + predicted
    places, counts = np.unique(codes[rows.design.counted], return_counts=True)
    cells = []
    for place, count in zip(places.tolist(), counts.tolist(), strict=True):
        i, j = divmod(place, size + 1)
        if j < size:
            cells.append(_Cell(matrix, step, i, j, count, i == j))
        elif step is None or MISMATCH not in labels:
            # rows_where finds mismatches by a reserved name. If a group has this name, skip them.
            cells.append(_Cell(matrix, step, i, ASIDE, count, False))
    return sorted(cells, key=lambda cell: (cell.right, -cell.rows))


def _behind(
    evaluation: Evaluation, rows: Predictions, cell: _Cell, joined: Joined
) -> dict[str, Any]:
    """Return the table of a cell's rows."""
    groups = evaluation.labels if cell.step is None else step_called(evaluation, cell.step).labels
    actual_name = fmt.named(groups[cell.actual])
    predicted: Label
    if isinstance(cell.predicted, str):
        predicted = MISMATCH
        answer = "predicted as another class of the same group"
        if cell.step is not None:
            answer = f"predicted as {other_within(evaluation, cell.step)} within this group"
    else:
        predicted = groups[cell.predicted]
        answer = f"predicted as {fmt.named(predicted)}"
    frame = evaluation.rows_where(groups[cell.actual], predicted, cell.step, limit=PER_CELL)
    probabilities = {}
    if has_probabilities(rows):
        probabilities = _probability_heads(cell, fmt.named(predicted), actual_name)
    heads = {"row": "Row"}
    if shows_ids(rows):
        heads["id"] = "Id"
    if cell.step is not None:
        heads |= {"actual": "Actual", "predicted": "Predicted"}
    heads |= probabilities
    # The last columns of the frame are the segments.
    segment_columns = [str(name) for name in frame][len(frame.columns) - len(rows.segments) :]
    for name, segments in zip(segment_columns[:_MAX_SEGMENTS], rows.segments, strict=False):
        heads[name] = fmt.short(segments.name)
    first = "" if cell.rows == len(frame) else f" (the first {len(frame)})"
    table = rows_table(frame, heads, probabilities, joined)
    return table | {
        "title": f"{fmt.counted(cell.rows, 'row')}: {actual_name} {answer}{first}",
        "reading": "",
        "id": f"rows-{cell.matrix}-{cell.actual}-{cell.predicted}",
    }


def _probability_heads(cell: _Cell, predicted: str, actual: str) -> dict[str, str]:
    """Return a mapping from a cell's probability columns to their headings."""
    if cell.step is not None:
        # A group consists of several classes, so the columns show the probabilities of the classes
        # of each row.
        return {
            "probability": "Probability",
            "probability_actual": "Probability of actual",
        }
    heads = {"probability": f"Probability of {predicted}"}
    if not cell.right:
        heads["probability_actual"] = f"Probability of {actual}"
    return heads
