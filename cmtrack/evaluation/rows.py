"""Frames of an evaluation's rows, which are selected by conditions and joined to a table by id."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.grouping import ComposedStep, Label
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
"""Value of ``predicted`` that selects mismatches: a wrong class in the correct group."""
CLASSES = "c"
"""Code that, in the name of a cell, stands for the confusion matrix of the classes."""
STEP = "s"
"""Code that, in the name of a cell and followed by a number, stands for the matrix of a step."""
ASIDE = "m"
"""Code that, in the name of a cell, stands for mismatches."""
OTHER = "o"
"""Code that, in the name of a cell, stands for all classes without their own row or column."""
TOTAL = "total"
"""Key in a frame's ``attrs`` for the number of rows found, which may exceed the frame's length."""


def rows_of(evaluation: Evaluation) -> Predictions:
    """Return an evaluation's rows; raise ValueError if they are missing or consist of spans."""
    rows = evaluation.rows
    if rows is None:
        raise ValueError(
            "the evaluation does not have its rows: they were not stored, or not loaded "
            "(load_evaluation(run, rows=True) loads them); an evaluation that was made from a "
            "table or merged from others has no rows"
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
    """Return the rows behind a number, for example the rows of a cell, or confident errors.

    The returned rows meet all of the given conditions. The rows are sorted by the probability or
    decision value of the predicted class, from highest to lowest. Rows with equal scores, or
    without scores, keep their order.

    Parameters
    ----------
    actual, predicted : label, optional
        A class, or a group if ``step`` is given. If ``step`` is given, ``predicted`` may also be
        "mismatch": the correct group, but a class that the step does not accept.
    step : str, optional
        The name of a step of the grouping. By default, ``actual`` and ``predicted`` refer to
        classes.
    right : bool, optional
        Whether the prediction is correct. If ``step`` is given, a prediction is correct if the step
        accepts it; otherwise the predicted class must equal the actual class.
    segment : mapping of column to value, optional
        Values that rows must have in declared segments or in columns of the table.
    confident : float or bool, optional
        The lowest probability of the predicted class; True means 0.9. Together with
        ``right=False``, this option finds confident errors.
    table : frame, mapping of columns, or path of a Parquet or CSV file, optional
        A table whose columns are joined to the rows.
    row_ids : str or array-like of shape (n,), optional
        The name of the table's id column. The table may be in any order if the evaluation contains
        the ids of its rows (in memory, or in a run that was logged with ``CMTRACK_ROW_IDS``).
        If the evaluation contains no ids, the table must be in the order of the rows. You can also
        pass an array of ids in the order of the rows. Ids in an array are looked up in the index of
        a DataFrame, as in :func:`cmtrack.segment_runs`.
    limit : int or None, default 25
        Largest number of rows in the frame; None means all rows.

    Returns
    -------
    DataFrame
        The columns are row (the position, from 0), actual, predicted, probability (of the predicted
        class), probability_actual (of the actual class), the segments, and the columns of the
        table. The columns id, weight, group, probability and probability_actual exist only if the
        evaluated rows contain them. ``attrs["total"]`` is the number of rows that meet the
        conditions.

    Raises
    ------
    ValueError
        If the evaluation does not contain its rows, a name or value does not exist, or the table
        does not contain the same rows.

    Warns
    -----
    UserWarning
        If rows are missing in the table, or if rows are matched only by their order.

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
    _check_conditions(limit, right, segment)
    composed = None if step is None else step_called(evaluation, step)
    is_right = right_rows(rows, composed)
    chosen = np.ones(len(rows), dtype=bool) if right is None else is_right == right
    chosen &= rows.design.repeats > 0
    groups: Sequence[Label] = evaluation.labels
    actual_codes = rows.actual
    predicted_codes = rows.predicted
    if composed is not None:
        groups = composed.labels
        actual_codes = composed.group_of_class[actual_codes]
        predicted_codes = composed.group_of_class[predicted_codes]
    if actual is not None:
        chosen &= _has_label("actual", actual, groups, actual_codes)
    if composed is not None and predicted == MISMATCH and MISMATCH not in groups:
        chosen &= ~is_right & (actual_codes == predicted_codes)
    elif predicted is not None:
        chosen &= _has_label("predicted", predicted, groups, predicted_codes)
        if composed is not None and actual == predicted:
            chosen &= is_right  # as in the matrix, whose cells do not count mismatches
    joined = joined_columns(evaluation, table, row_ids, stacklevel=3)
    for column, value in (segment or {}).items():
        chosen &= _in_segment(rows, joined, column, value)
    positions = np.flatnonzero(chosen)
    scores = certainty(rows, positions)
    if confident is not None and confident is not False:
        least = CONFIDENT if confident is True else confident
        if scores is None or evaluation.statistics.ranking_only:
            raise ValueError("confident= needs probabilities, which the rows do not have")
        if not isinstance(least, (int, float, np.number)) or not 0 < least <= 1:
            raise ValueError(
                f"confident must be a probability above 0 and at most 1, got {confident!r}"
            )
        is_confident = scores >= least
        positions = positions[is_confident]
        scores = scores[is_confident]
    if scores is not None:
        positions = positions[np.argsort(-scores, kind="stable")]
    frame = frame_of(rows, positions[:limit], {"": rows}, joined)
    frame.attrs[TOTAL] = len(positions)
    return frame


def _check_conditions(limit: Any, right: Any, segment: Any) -> None:
    if limit is not None:
        is_number = isinstance(limit, (int, np.integer)) and not isinstance(limit, bool)
        if not is_number or limit < 0:
            raise ValueError(f"limit must be a number of rows, or None for all, got {limit!r}")
    if right is not None and not isinstance(right, (bool, np.bool_)):
        raise ValueError(f"right must be True, False or None, got {right!r:.80}")
    if segment is not None and not isinstance(segment, Mapping):
        raise ValueError(
            "segment must map columns to values, such as {'region': 'north'}, "
            f"got {segment!r:.80}"
        )


def _has_label(argument: str, label: Any, labels: Sequence[Label], codes: IntArray) -> BoolArray:
    """Return the mask of the rows with a label; raise ValueError if the label does not exist."""
    if label not in labels:
        choices = f"{listed(labels, 12)}{near(str(label), map(str, labels))}"
        raise ValueError(f"{argument} must be one of {choices}, got {label!r:.80}")
    return np.asarray(codes == labels.index(label))


def steps_of(evaluation: Evaluation) -> Mapping[str, ComposedStep]:
    """Return the steps of the grouping, by encoded name."""
    return evaluation._views.composed


def step_called(evaluation: Evaluation, name: str) -> ComposedStep:
    """Find a step of the grouping by name; raise ValueError if it does not exist."""
    steps = steps_of(evaluation).values()
    for step in steps:
        if step.name == name:
            return step
    raise ValueError(f"step must be one of {[step.name for step in steps]}, got {name!r:.80}")


def right_rows(rows: Predictions, step: ComposedStep | None) -> BoolArray:
    """Return the mask of correctly predicted rows, shape (n,).

    A row is correct if the step accepts its prediction. If there is no step, the predicted class
    must equal the actual class.
    """
    if step is None:
        return np.asarray(rows.actual == rows.predicted)
    return np.asarray(step.accept[rows.actual, rows.predicted])


def certainty(rows: Predictions, places: IntArray, label: bool = False) -> FloatArray | None:
    """Return the scores of some rows' predicted or actual classes; None if scores are missing.

    A score is a probability or a decision value.
    ``label``: True to return the scores of the actual classes.
    """
    if rows.probabilities is None:
        return None
    classes = rows.actual if label else rows.predicted
    return np.asarray(rows.probabilities[places, classes[places]])


def frame_of(
    rows: Predictions,
    places: IntArray,
    sides: Mapping[str, Predictions],
    joined: Mapping[str, Any] | None = None,
) -> pd.DataFrame:
    """Return a frame of some rows that contains the predictions of each evaluation.

    The columns are row number, id, weight, group and actual class, then the predictions and
    probabilities of each evaluation, the segments, and the columns of a table.
    """
    from cmtrack._pandas import pd

    labels = np.fromiter(rows.labels, dtype=object, count=len(rows.labels))
    columns: dict[str, Any] = {"row": places}
    if rows.ids is not None:
        ids: Any = rows.ids.values[places]
        if rows.ids.hashed:
            ids = [f"{row_id:016x}" for row_id in ids.tolist()]
        columns["id"] = ids
    for name, column in (("weight", rows.design.weights), ("group", rows.design.clusters)):
        if column is not None:
            columns[name] = column[places]
    columns["actual"] = labels[rows.actual[places]]
    for name, side in sides.items():
        suffix = f"_{name}" if name else ""
        columns[f"predicted{suffix}"] = labels[side.predicted[places]]
        if side.source is not None and not side.source.ranking_only:
            columns[f"probability{suffix}"] = certainty(side, places)
            columns[f"probability_actual{suffix}"] = certainty(side, places, label=True)
    for segments in rows.segments:
        prefix = "segment_" if segments.name in columns else ""
        columns[f"{prefix}{segments.name}"] = segments.take(places).column
    for name, column in (joined or {}).items():
        prefix = "table_" if name in columns else ""
        columns[f"{prefix}{name}"] = column.iloc[places].to_numpy()
    return pd.DataFrame(columns).infer_objects()


def joined_columns(
    evaluation: Evaluation, table: Any, row_ids: Any, stacklevel: int = 4
) -> dict[str, Any]:
    """Return the columns of a table as series that contain an entry for each evaluated row.

    If a row is not in the table, its entry is a missing value. Raises ValueError if the table does
    not contain the same rows as the evaluation, or if the evaluation does not contain its rows.

    ``table``: a frame, a mapping of columns or the path of a file; None means that there are no
        columns to join.
    """
    if table is None and row_ids is not None:
        raise ValueError(f"row_ids= needs table=, got only row_ids={row_ids!r:.80}")
    if table is None:
        return {}
    from cmtrack._pandas import pd

    # This module imports pyarrow, which a light environment may lack.
    from cmtrack.sources.table_file import read_frame

    if isinstance(table, (str, Path)):
        table = read_frame(Path(table))
    table = align_rows({"the evaluation": None, "table": table})["table"]
    attributes: dict[Hashable, Any] = attribute_columns(table, None, SEGMENTS)
    columns = {str(name): pd.Series(np.asarray(column)) for name, column in attributes.items()}
    rows = rows_of(evaluation)
    n_rows = len(rows)
    if isinstance(row_ids, str) and rows.ids is not None:
        order = by_ids(column_called("row_ids", row_ids, columns), rows.ids, row_ids)
        n_missing = int((order < 0).sum())
        if n_missing:
            warnings.warn(
                f"{n_missing:,} of {n_rows:,} rows are not in the table, so the table's columns "
                "have no values for them",
                UserWarning,
                stacklevel=stacklevel,
            )
        # A position after the last row of the table stands for a missing value.
        order = np.where(order < 0, len(columns[row_ids]), order)
        return {
            name: column.reindex(order).reset_index(drop=True) for name, column in columns.items()
        }
    digest = evaluation.statistics.row_ids
    row_order = places_in(table, columns, row_ids, n_rows, digest, "evaluate with row_ids=")
    if row_ids is None:
        warnings.warn(
            "the rows of the table are matched only by their order: pass row_ids= to check the "
            "match",
            UserWarning,
            stacklevel=stacklevel,
        )
    if row_order is None:
        return columns
    return {name: column.iloc[row_order] for name, column in columns.items()}


def _in_segment(rows: Predictions, joined: Mapping[str, Any], column: str, value: Any) -> BoolArray:
    """Return the mask of the rows with a given value in a declared column or a table's column."""
    for segments in rows.segments:
        if segments.name != column:
            continue
        plain = plain_value(value)
        if plain in segments.values:
            return np.asarray(segments.codes == segments.values.index(plain))
        texts = value_texts(segments.values)
        if str(value) in texts:
            return np.asarray(segments.codes == texts.index(str(value)))
        raise ValueError(f"{column!r:.80} has no segment {value!r:.80}{near(str(value), texts)}")
    if column in joined:
        values = joined[column]
        return np.asarray(values.isna() if value is None else values == value)
    names = [*(segments.name for segments in rows.segments), *joined]
    raise ValueError(f"segment must name one of the columns {names[:20]}, got {column!r:.80}")
