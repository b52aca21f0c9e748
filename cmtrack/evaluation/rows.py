"""Rows of an evaluation as frames: selections, and columns of a table joined by id."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.grouping import ComposedStep
from cmtrack.metrics.names import near
from cmtrack.rows.join import by_ids, column_called, places_in
from cmtrack.statistics.attributes import attribute_columns
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, align_rows, listed
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.segment_values import SEGMENTS, plain_value, value_texts

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.evaluation.result import Evaluation

CONFIDENT = 0.9
MISMATCH = "mismatch"
"""What ``predicted`` may be of a step: the right group, by a pair of classes that it does not accept."""
CLASSES, STEP, ASIDE, OTHER = "c", "s", "m", "o"
"""Codes in names of cells: matrix of classes, of a step (before its place), mismatches, other classes."""
TOTAL = "total"
"""Entry of a frame's ``attrs``: how many rows there are, of which the frame has the first."""


def rows_of(evaluation: Evaluation) -> Predictions:
    """The rows by their classes; ValueError if they are not here, or are of spans."""
    rows = evaluation.rows
    if rows is None:
        raise ValueError(
            "the rows are not here: they were not kept, or not loaded (load_evaluation(run, rows=True) loads them); an "
            "evaluation of a table or a sum of evaluations has none"
        )
    if not isinstance(rows, Predictions):
        raise ValueError(
            f"rows must each have one actual and one predicted class, got {evaluation!r:.120}"
        )
    return rows


def rows_where(
    evaluation: Evaluation,
    actual: Any = None,
    predicted: Any = None,
    step: str | None = None,
    right: bool | None = None,
    segment: Mapping[str, Any] | None = None,
    confident: float | bool | None = None,
    table: Any = None,
    row_ids: Any = None,
    limit: int | None = 25,
) -> pd.DataFrame:
    """The rows behind a number: those of a cell, of a segment, the wrong ones that are certain.

    Every condition narrows the choice. The most certain rows come first, by the probability or the decision value of
    the predicted class; without scores, and among equals, the first ones.

    Parameters
    ----------
    actual, predicted : label, optional
        A class, or a group of the step. Of a step ``predicted`` may be "mismatch": the right group, by a pair of
        classes that it does not accept.
    step : str, optional
        The name of a step of the grouping; by default the classes themselves count.
    right : bool, optional
        Whether the step accepts the pair; of classes whether they are equal.
    segment : mapping of column to value, optional
        Of declared segments, or of columns of the table.
    confident : float or bool, optional
        The least probability of the predicted class; True for 0.9. With ``right=False``: wrong and certain.
    table : frame, mapping of columns, or path of a Parquet or CSV file, optional
        Attributes of the rows, which are joined to them.
    row_ids : str or array-like of shape (n,), optional
        The table's column of ids: in any order if the evaluation has its rows' ids (in memory, or in a run that was
        logged under ``CMTRACK_ROW_IDS``), otherwise in the order of the rows. Or the ids themselves, in the order
        of the rows, which are looked up in a DataFrame's index, as in :func:`cmtrack.segment_runs`.
    limit : int or None, default 25
        Rows of the frame; None for all.

    Returns
    -------
    DataFrame
        row (from 0), id, weight and group where there are some, actual, predicted, probability (of the predicted
        class) and probability_actual (of the label) if there are probabilities, the segments, and the columns of the
        table. ``attrs["total"]`` is the number of rows that meet the conditions.

    Raises
    ------
    ValueError
        If the rows are not here, a name or value does not exist, or the table has other rows.

    Warns
    -----
    UserWarning
        If rows are not in the table, or are matched by their place alone.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> evaluation = evaluate([0, 0, 1, 1, 1], y_prob=[0.1, 0.95, 0.4, 0.9, 0.02])
    >>> evaluation.rows_where(actual=1, predicted=0)
       row  actual  predicted  probability  probability_actual
    0    4       1          0         0.98                0.02
    1    2       1          0         0.60                0.40
    >>> evaluation.rows_where(right=False, confident=0.9).row.tolist()
    [4, 1]
    """
    rows = rows_of(evaluation)
    if limit is not None and (
        isinstance(limit, bool) or not isinstance(limit, (int, np.integer)) or limit < 0
    ):
        raise ValueError(f"limit must be a number of rows, or None for all, got {limit!r}")
    if right is not None and not isinstance(right, (bool, np.bool_)):
        raise ValueError(f"right must be True, False or None, got {right!r:.80}")
    if segment is not None and not isinstance(segment, Mapping):
        raise ValueError(
            f"segment must map columns to values, such as {{'region': 'north'}}, got {segment!r:.80}"
        )
    composed = None if step is None else step_called(evaluation, step)
    hit = right_rows(rows, composed)
    chosen = np.ones(len(rows), dtype=bool) if right is None else hit == right
    chosen &= rows.design.repeats > 0
    groups = evaluation.labels if composed is None else composed.labels
    for name, given, codes in (
        ("actual", actual, rows.actual),
        ("predicted", predicted, rows.predicted),
    ):
        if given is None:
            continue
        codes = codes if composed is None else composed.group_of_class[codes]
        if (
            name == "predicted"
            and composed is not None
            and given == MISMATCH
            and MISMATCH not in groups
        ):
            chosen &= ~hit & (composed.group_of_class[rows.actual] == codes)
            continue
        if given not in groups:
            choices = f"{listed(groups, 12)}{near(str(given), map(str, groups))}"
            raise ValueError(f"{name} must be one of {choices}, got {given!r:.80}")
        chosen &= codes == groups.index(given)
        if name == "predicted" and composed is not None and actual == given:
            chosen &= hit  # as the cell of the matrix, whose mismatches are apart
    joined = joined_columns(evaluation, table, row_ids, stacklevel=3)
    for column, value in (segment or {}).items():
        chosen &= _in_segment(rows, joined, column, value)
    places = np.flatnonzero(chosen)
    certain = certainty(rows, places)
    if confident is not None and confident is not False:
        least = CONFIDENT if confident is True else confident
        if certain is None or evaluation.statistics.ranking_only:
            raise ValueError("confident needs probabilities of the rows, which are not here")
        if not isinstance(least, (int, float, np.number)) or not 0 < least <= 1:
            raise ValueError(
                f"confident must be a probability above 0 and at most 1, got {confident!r}"
            )
        places, certain = places[certain >= least], certain[certain >= least]
    if certain is not None:
        places = places[np.argsort(-certain, kind="stable")]
    frame = frame_of(rows, places[:limit], {"": rows}, joined)
    frame.attrs[TOTAL] = len(places)
    return frame


def steps_of(evaluation: Evaluation) -> Mapping[str, ComposedStep]:
    """The steps of the grouping by their encoded names."""
    return evaluation._views.composed


def step_called(evaluation: Evaluation, name: str) -> ComposedStep:
    """The step of the grouping of that name; ValueError if there is none."""
    steps = steps_of(evaluation).values()
    for step in steps:
        if step.name == name:
            return step
    raise ValueError(f"step must be one of {[step.name for step in steps]}, got {name!r:.80}")


def right_rows(rows: Predictions, step: ComposedStep | None) -> BoolArray:
    """Rows that are right, shape (n,): the pairs that the step accepts, of classes the equal ones."""
    if step is None:
        return np.asarray(rows.actual == rows.predicted)
    return np.asarray(step.accept[rows.actual, rows.predicted])


def certainty(rows: Predictions, places: IntArray, label: bool = False) -> FloatArray | None:
    """Probability, or decision value, of the predicted class, or of the label, of some rows; None without scores."""
    if rows.probabilities is None:
        return None
    return np.asarray(
        rows.probabilities[places, (rows.actual if label else rows.predicted)[places]]
    )


def frame_of(
    rows: Predictions,
    places: IntArray,
    sides: Mapping[str, Predictions],
    joined: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """A frame of some rows: number, id, weight, group, label; what each side says; segments; columns of a table."""
    from cmtrack._pandas import pd

    labels = np.fromiter(rows.labels, dtype=object, count=len(rows.labels))
    columns: dict[str, Any] = {"row": places}
    if rows.ids is not None:
        ids = rows.ids.values[places]
        columns["id"] = [f"{one:016x}" for one in ids.tolist()] if rows.ids.hashed else ids
    for name, column in (("weight", rows.design.weights), ("group", rows.design.clusters)):
        if column is not None:
            columns[name] = column[places]
    columns["actual"] = labels[rows.actual[places]]
    for name, side in sides.items():
        end = f"_{name}" if name else ""
        columns[f"predicted{end}"] = labels[side.predicted[places]]
        if side.source is not None and not side.source.ranking_only:
            columns[f"probability{end}"] = certainty(side, places)
            columns[f"probability_actual{end}"] = certainty(side, places, label=True)
    for one in rows.segments:
        columns[f"segment_{one.name}" if one.name in columns else one.name] = one.take(
            places
        ).column
    for name, column in (joined or {}).items():
        columns[f"table_{name}" if name in columns else name] = column.iloc[places].to_numpy()
    return pd.DataFrame(columns).infer_objects()


def joined_columns(
    evaluation: Evaluation, table: Any, row_ids: Any, stacklevel: int = 4
) -> dict[str, Any]:
    """The columns of a table, each as a series with one entry per row of the evaluation; null without a match.

    ValueError if the rows of the table are not those of the evaluation, or are not here.

    ``table``: a frame, a mapping of columns or the path of a file; without one there are no columns.
    """
    if table is None and row_ids is not None:
        raise ValueError(f"row_ids goes with table=, got {row_ids!r:.80} alone")
    if table is None:
        return {}
    from cmtrack._pandas import pd

    # pyarrow, which a light environment does not have
    from cmtrack.sources.table_file import read_frame

    table = read_frame(Path(table)) if isinstance(table, (str, Path)) else table
    table = align_rows({"the evaluation": None, "table": table})["table"]
    given: dict[Hashable, Any] = attribute_columns(table, None, SEGMENTS)
    columns = {str(name): pd.Series(np.asarray(column)) for name, column in given.items()}
    rows = rows_of(evaluation)
    n_rows, ids = len(rows), rows.ids
    if isinstance(row_ids, str) and ids is not None:
        places = by_ids(column_called("row_ids", row_ids, columns), ids, row_ids)
        lacking = int((places < 0).sum())
        if lacking:
            without = f"{lacking:,} of {n_rows:,} rows are not in the table, and have no values of its columns"
            warnings.warn(without, UserWarning, stacklevel=stacklevel)
        places = np.where(places < 0, len(columns[row_ids]), places)
        return {
            name: column.reindex(places).reset_index(drop=True) for name, column in columns.items()
        }
    order = places_in(
        table, columns, row_ids, n_rows, evaluation.statistics.row_ids, "evaluate with row_ids="
    )
    if row_ids is None:
        warnings.warn(
            "rows of the table are matched by their place alone: give row_ids= to have that checked",
            UserWarning,
            stacklevel=stacklevel,
        )
    return (
        columns if order is None else {name: column.iloc[order] for name, column in columns.items()}
    )


def _in_segment(rows: Predictions, joined: Mapping[str, Any], column: str, value: Any) -> BoolArray:
    """Mask of the rows in a segment, by a declared column or a column of the table."""
    for one in rows.segments:
        if one.name == column:
            for values, wanted in (
                (one.values, plain_value(value)),
                (value_texts(one.values), str(value)),
            ):
                if wanted in values:
                    return np.asarray(one.codes == values.index(wanted))
            texts = value_texts(one.values)
            raise ValueError(
                f"{column!r:.80} has no segment {value!r:.80}{near(str(value), texts)}"
            )
    if column in joined:
        return np.asarray(joined[column].isna() if value is None else joined[column] == value)
    names = [*(one.name for one in rows.segments), *joined]
    raise ValueError(f"segment must be of one of the columns {names[:20]}, got {column!r:.80}")
