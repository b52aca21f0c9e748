"""Counts by score: by the score itself where there are few rows, else by cell of the fixed grid.

The cells must be those of :func:`cmtrack.statistics.scores.cells_of`, whatever the last bit of an engine's logarithm.
Rows are therefore grouped by a key that the engine computes, finer than the cells, and rows next to an edge by their
score as well. The least and the greatest score of each group come back, and tell the cell of the whole group.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from cmtrack.grouping import ComposedStep
from cmtrack.statistics import scores as grid
from cmtrack.statistics import top_scores
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.scores import ScoreCounts
from cmtrack.statistics.tables.expressions import in_order, is_label, logit, near_edge, rounded, with_highest
from cmtrack.statistics.tables.tallies import ACTUAL, Rows
from cmtrack.statistics.top_scores import TopScoreCounts

SCORE = "score"
_GRID_END = 1e-7  # beyond the outermost edges, logit -12 and 12
_TOP_END = 1e-12


def with_score(rows: Rows, step: ComposedStep) -> tuple[nw.LazyFrame[Any], str]:
    """The table with the positive group's score, and the column's name."""
    members = np.flatnonzero(step.in_positive)
    if len(members) == 1:
        return rows.frame, f"p{members[0]}"
    summed = in_order([nw.col(f"p{k}") for k in members]) if len(members) else nw.col("p0") * 0.0
    return rows.frame.with_columns(**{SCORE: rounded(summed).clip(upper_bound=1.0)}), SCORE


def count_two_groups(rows: Rows, step: ComposedStep, score: str) -> list[ScoreCounts]:
    """Accepted and rejected positives, accepted and rejected negatives by score, for each of the weights."""
    return count_scores(rows, _channels(rows, step), 4, score)


def count_sides(rows: Rows, step: ComposedStep, score: str) -> list[ScoreCounts]:
    """Negatives and positives by score."""
    return count_scores(rows, rows.frame.with_columns(channel=_is_positive(rows, step)), 2, score)


def count_scores(rows: Rows, frame: nw.LazyFrame[Any], n_channels: int, score: str) -> list[ScoreCounts]:
    """Counts of the column ``score`` by the column ``channel``, for each of the weights."""
    if rows.n_rows <= grid.EXACT_ROWS:
        groups, counts = rows.tally("scores", frame, ["channel", score])
        values, place = np.unique(np.array(groups[score], dtype=np.float64) + 0.0, return_inverse=True)
        channel = np.array(groups["channel"], dtype=np.int64)
        return [ScoreCounts(values, _spread(n, channel, place, (n_channels, len(values))), exact=True) for n in counts]
    frame = frame.with_columns(place=(logit(nw.col(score), _GRID_END) + 12) * 50, step=nw.col(score) * 400)
    near = near_edge(nw.col("place"), 0, 1200) | near_edge(nw.col("step"), 1, 399)
    key = (nw.col("place").floor().clip(-1, 1200) + 1) * 512 + nw.col("step").floor()
    frame = frame.with_columns(key=key.cast(nw.Int64), near=nw.when(near).then(nw.col(score)).otherwise(nw.lit(-1.0)))
    groups, counts = rows.tally("scores", frame, ["channel", "key", "near"], score)
    low, high, cells = _cells(groups, grid.cells_of)
    size = len(grid.grid_centres())
    lowest, highest = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(lowest, cells, low)
    np.maximum.at(highest, cells, high)
    channel = np.array(groups["channel"], dtype=np.int64)
    return [ScoreCounts.from_cells(_spread(n, channel, cells, (n_channels, size)), lowest, highest) for n in counts]


def count_tops(rows: Rows, by_actual: bool = True) -> list[TopScoreCounts]:
    """Rows by actual class, most probable class and cell of its probability, for each of the weights."""
    names = rows.probabilities
    size = len(names)
    frame = with_highest(rows.frame, names, range(size), "top", "best")
    frame = frame.with_columns(place=(logit(nw.col("top"), _TOP_END) + 4) * 4)
    near = near_edge(nw.col("place"), 1, top_scores.CELLS - 1)
    frame = frame.with_columns(
        key=nw.col("place").floor().clip(0, top_scores.CELLS - 1).cast(nw.Int64),
        near=nw.when(near).then(nw.col("top")).otherwise(nw.lit(-1.0)),
    )
    keys = ["best", "key", "near"]
    groups, counts = rows.tally("most probable classes", frame, [ACTUAL, *keys] if by_actual else keys, "top")
    cells = _cells(groups, top_scores.cells_of)[2]
    best = np.array(groups["best"]).astype(np.int64)
    actual = rows.place(groups[ACTUAL]) if by_actual else np.zeros_like(best)
    shape = (size if by_actual else 1, size * top_scores.CELLS)
    return [
        TopScoreCounts(_spread(n, actual, best * top_scores.CELLS + cells, shape).reshape(shape[0], size, -1))
        for n in counts
    ]


def _channels(rows: Rows, step: ComposedStep) -> nw.LazyFrame[Any]:
    """The table with 0 and 1 for accepted and rejected positives, 2 and 3 for negatives."""
    size = len(rows.labels)
    inside = step.group_of_class[:, None] == step.group_of_class[None, :]
    frame = rows.frame.with_columns(positive=_is_positive(rows, step))
    base = 2 - 2 * nw.col("positive")
    if (step.accept | ~inside).all():
        return frame.with_columns(channel=base)
    code = in_order([is_label(ACTUAL, label) * float(k) for k, label in enumerate(rows.labels)])
    frame = frame.with_columns(code=code)
    positive = step.in_positive
    sides = {"own": np.flatnonzero(positive).tolist(), "other": np.flatnonzero(~positive).tolist()}
    held = [side for side, own in sides.items() if own]
    for side in held:
        frame = with_highest(frame, [f"p{k}" for k in sides[side]], sides[side], f"{side}_top", side)
    within = nw.when(nw.col("positive") == 1).then(nw.col("own")).otherwise(nw.col("other"))
    within = within if len(held) == 2 else nw.col(held[0])
    frame = frame.with_columns(pair=(nw.col("code") * size + within).cast(nw.Int64))
    actual, predicted = np.nonzero(step.accept & inside)
    accepted = nw.col("pair").is_in([int(pair) for pair in actual * size + predicted])
    return frame.with_columns(channel=base + nw.when(accepted).then(nw.lit(0)).otherwise(nw.lit(1)))


def _is_positive(rows: Rows, step: ComposedStep) -> nw.Expr:
    """1 where the actual class belongs to the positive group, else 0."""
    own = [rows.labels[k] for k in np.flatnonzero(step.in_positive)]
    return nw.when(nw.col(ACTUAL).is_in(own)).then(nw.lit(1)).otherwise(nw.lit(0))


def _cells(groups: dict[str, list[Any]], cells_of: Any) -> tuple[FloatArray, FloatArray, IntArray]:
    low, high = (np.array(groups[end], dtype=np.float64) + 0.0 for end in ("low", "high"))
    cells: IntArray = cells_of(low)
    if not np.array_equal(cells, cells_of(high)):
        raise RuntimeError("scores of two cells came back as one group: the engine's logarithm is not precise")
    return low, high, cells


def _spread(counts: Counts, row: IntArray, column: IntArray, shape: tuple[int, int]) -> Counts:
    table = np.zeros(shape, dtype=counts.dtype)
    np.add.at(table, (row, column), counts)
    return table
