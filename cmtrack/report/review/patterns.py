"""Answers of every run to each row, for the review's script: rows that all runs answer alike are one pattern."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.comparison.comparability import unpaired_among
from cmtrack.evaluation import Evaluation
from cmtrack.statistics.collected import accepted_within, group_scores, is_positive
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions

MAX_RUNS = 60
"""Runs up to which a browser decides in less than a second."""
MAX_BYTES = 140_000
"""Of all patterns of a page; a third more as text."""
_MISMATCH = 128  # added to the place of a score where the row's own group is not accepted
_AT_A_TIME = 8


def patterns(evaluations: Sequence[Evaluation], columns: Sequence[str], offered: Sequence[float]) -> dict[str, Any]:
    """The rows by segment, actual class and each run's class; and by side and the place of each run's score.

    None of runs that are not paired, of rows that belong together, and of more than `MAX_RUNS` and `MAX_BYTES`.

    Parameters
    ----------
    evaluations : sequence of Evaluation
    columns : sequence of str
        Columns of segments.
    offered : sequence of float
        Thresholds, at most 127.
    """
    rows = [one.rows for one in evaluations if isinstance(one.rows, Predictions)]
    if not max(2, len(evaluations)) <= len(rows) <= MAX_RUNS:
        return {}
    if unpaired_among(evaluations) or rows[0].clusters is not None:
        return {}
    first, step, out, budget = rows[0], evaluations[0].scored, {}, MAX_BYTES
    held = [{one.name: one.codes for one in predictions.segments} for predictions in rows]
    divided = {
        name: held[0][name]
        for name in columns
        if all(name in segments and np.array_equal(segments[name], held[0][name]) for segments in held)
    }
    tables: dict[str, list[Any]] = {"rows": [*divided.values(), first.actual, *(one.predicted for one in rows)]}
    scored = len(first) * (len(rows) + 1) <= MAX_BYTES and all(one.source is not None for one in rows)
    if offered and step is not None and scored:
        tables["scored"] = [is_positive(first.actual, step), *(_places(one, step, offered) for one in rows)]
    for name, table in tables.items():
        made = _alike(np.column_stack([column.astype(np.uint8) for column in table]), first.weights)
        budget -= len(made[0]) * (len(table) + 2)
        if budget >= 0:
            codes, times, weights = made
            out[name] = {
                "width": len(table),
                "codes": base64.b64encode(codes.tobytes()).decode("ascii"),
                "times": times.tolist(),
                "weights": None if weights is None else weights.tolist(),
            }
    return out | {"columns": list(divided)} if "rows" in out else {}


def _places(rows: Predictions, step: Any, offered: Sequence[float]) -> IntArray:
    """Of each row how many thresholds its score reaches, and whether its own group is not accepted."""
    assert rows.probabilities is not None  # the caller has asked
    place = np.searchsorted(np.asarray(offered), group_scores(rows.probabilities, step), side="right")
    return np.asarray(np.where(accepted_within(rows.actual, rows.probabilities, step), place, place + _MISMATCH))


def _alike(
    codes: npt.NDArray[np.uint8], weights: FloatArray | IntArray | None
) -> tuple[npt.NDArray[np.uint8], IntArray, FloatArray | None]:
    """The distinct rows of codes, (P, W), how often each is there, and its weight where these are fractions."""
    there = slice(None) if weights is None else weights > 0
    codes, weights = codes[there], None if weights is None else weights[there]
    words = np.pad(codes, ((0, 0), (0, -codes.shape[1] % _AT_A_TIME))).view(np.uint64)
    key = np.zeros(len(codes), dtype=np.int64)
    fractions = weights if weights is not None and weights.dtype.kind == "f" else None
    for word in (*words.T, *([] if fractions is None else [fractions])):
        part = np.unique(word, return_inverse=True)[1]
        key = np.unique(key * (part.max(initial=0) + 1) + part, return_inverse=True)[1]
    places = np.unique(key, return_index=True)[1]
    times = np.bincount(key, None if fractions is not None else weights).astype(np.int64)
    return codes[places], times, None if fractions is None else fractions[places].astype(np.float64)
