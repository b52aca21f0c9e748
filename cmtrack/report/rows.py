"""Rows on the pages: tables of a few rows, and those behind the confusions of an evaluation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.rows import TOTAL
from cmtrack.report import formatting as fmt
from cmtrack.statistics.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

NUMBERED = "Row numbers count from 0."
MAX_CELLS, PER_CELL = 20, 25
"""Cells of a matrix, and rows of each."""
_MAX_SEGMENTS = 6
_TEXT = 200


def rows_table(frame: pd.DataFrame, heads: Mapping[str, str], probabilities: Collection[str] = ()) -> dict[str, Any]:
    """Columns of a frame of rows by their heads; texts are cut where they are long."""
    numbers = {"row", *probabilities}
    return {
        "heads": [(head, name in numbers) for name, head in heads.items()],
        "rows": [
            [(_text(value, name in probabilities), name in numbers) for name, value in zip(heads, row, strict=True)]
            for row in frame[list(heads)].itertuples(index=False, name=None)
        ],
    }


def _text(value: Any, probability: bool) -> str:
    if value is None or value != value:
        return ""
    return f"{value:.3f}" if probability else fmt.short(value, _TEXT)


def shows_ids(rows: Predictions) -> bool:
    """True where a setting asked for the ids of rows to be written."""
    return rows.ids is not None and rows.ids.stored


def has_probabilities(rows: Predictions) -> bool:
    """True of probabilities; not of decision values, which only rank."""
    return rows.source is not None and not rows.source.ranking_only


def behind_confusions(evaluation: BaseEvaluation | None) -> dict[str, Any] | None:
    """The surest rows of the most frequent confusions, a table for each; None without rows or without errors."""
    if not isinstance(evaluation, Evaluation) or not isinstance(evaluation.rows, Predictions):
        return None
    rows, size = evaluation.rows, len(evaluation.labels)
    counted = rows.actual != rows.predicted
    if rows.weights is not None:
        counted &= rows.weights > 0
    cells, counts = np.unique(rows.actual[counted] * size + rows.predicted[counted], return_counts=True)
    if not len(cells):
        return None
    order = np.argsort(-counts, kind="stable")[:MAX_CELLS]
    scored = has_probabilities(rows)
    reading = f"{'The surest mistakes first. ' if scored else ''}{NUMBERED}"
    if len(cells) > len(order):
        reading += f" The {len(order)} most frequent of {len(cells):,} confusions."
    return {"reading": reading, "cells": [_behind(evaluation, rows, *divmod(int(cells[k]), size)) for k in order]}


def _behind(evaluation: Evaluation, rows: Predictions, actual: int, predicted: int) -> dict[str, Any]:
    labels = evaluation.labels[actual], evaluation.labels[predicted]
    frame = evaluation.rows_where(*labels, limit=PER_CELL)
    total, names = int(frame.attrs[TOTAL]), [fmt.named(label) for label in labels]
    heads = {"row": "Row"} | ({"id": "Id"} if shows_ids(rows) else {})
    scores = ("probability", "probability_actual") if has_probabilities(rows) else ()
    heads |= dict(zip(scores, (f"p of {names[1]}", f"p of {names[0]}"), strict=False))
    columns = [str(name) for name in frame][len(frame.columns) - len(rows.segments) :]
    heads |= {name: fmt.short(one.name) for name, one in zip(columns[:_MAX_SEGMENTS], rows.segments, strict=False)}
    most = "" if total == len(frame) else f": the first {len(frame)}"
    return rows_table(frame, heads, scores) | {"title": f"{total:,} {names[0]} called {names[1]}{most}", "reading": ""}
