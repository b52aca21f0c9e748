"""Rows of an evaluation as frames: selections, and columns of a table joined by id."""

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
"""Value of ``predicted`` with a step: the right group, by a pair that is not accepted."""
CLASSES = "c"
"""Code in names of cells: the matrix of classes."""
STEP = "s"
"""Code in names of cells: the matrix of a step, whose number follows."""
ASIDE = "m"
"""Code in names of cells: mismatches."""
OTHER = "o"
"""Code in names of cells: other classes."""
TOTAL = "total"
"""Entry of a frame's ``attrs``: the number of rows, of which the frame has the first."""


def rows_of(evaluation: Evaluation) -> Predictions:
    """Return rows of one actual and one predicted class; ValueError without such rows."""
    rows = evaluation.rows
    if rows is None:
        raise ValueError(
            "the rows are not here: they were not kept, or not loaded (load_evaluation(run, "
            "rows=True) loads them); an evaluation of a table or a sum of evaluations has none"
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
    """Return the rows behind a number: rows of a cell or a segment, or confident errors.

    Every condition narrows the choice. The most certain rows come first, by the probability or the
    decision value of the predicted class; without scores, and among equals, the first ones.

    Parameters
    ----------
    actual, predicted : label, optional
        A class, or a group of the step. Of a step ``predicted`` may be "mismatch": the right group,
        by a pair of classes that it does not accept.
    step : str, optional
        The name of a step of the grouping; by default the classes themselves count.
    right : bool, optional
        Whether the step accepts the pair; of classes whether they are equal.
    segment : mapping of column to value, optional
        Of declared segments, or of columns of the table.
    confident : float or bool, optional
        The least probability of the predicted class; True for 0.9. With ``right=False``: wrong and
        certain.
    table : frame, mapping of columns, or path of a Parquet or CSV file, optional
        Attributes of the rows, which are joined to them.
    row_ids : str or array-like of shape (n,), optional
        The table's column of ids: in any order if the evaluation has its rows' ids (in memory, or
        in a run that was logged under ``CMTRACK_ROW_IDS``), otherwise in the order of the rows. Or
        the ids themselves, in the order of the rows, which are looked up in a DataFrame's index, as
        in :func:`cmtrack.segment_runs`.
    limit : int or None, default 25
        Rows of the frame; None for all.

    Returns
    -------
    DataFrame
        row (from 0), id, weight and group where there are some, actual, predicted, probability (of
        the predicted class) and probability_actual (of the label) if there are probabilities, the
        segments, and the columns of the table. ``attrs["total"]`` is the number of rows that meet
        the conditions.

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
            chosen &= is_right  # as in the cell of the matrix, whose mismatches are apart
    joined = joined_columns(evaluation, table, row_ids, stacklevel=3)
    for column, value in (segment or {}).items():
        chosen &= _in_segment(rows, joined, column, value)
    positions = np.flatnonzero(chosen)
    scores = certainty(rows, positions)
    if confident is not None and confident is not False:
        least = CONFIDENT if confident is True else confident
        if scores is None or evaluation.statistics.ranking_only:
            raise ValueError("confident needs probabilities of the rows, which are not here")
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
    """Return the mask of the rows with a label; ValueError if there is no such label."""
    if label not in labels:
        choices = f"{listed(labels, 12)}{near(str(label), map(str, labels))}"
        raise ValueError(f"{argument} must be one of {choices}, got {label!r:.80}")
    return np.asarray(codes == labels.index(label))


def steps_of(evaluation: Evaluation) -> Mapping[str, ComposedStep]:
    """Return the steps of the grouping by their encoded names."""
    return evaluation._views.composed


def step_called(evaluation: Evaluation, name: str) -> ComposedStep:
    """Return the step of the grouping of that name; ValueError if there is none."""
    steps = steps_of(evaluation).values()
    for step in steps:
        if step.name == name:
            return step
    raise ValueError(f"step must be one of {[step.name for step in steps]}, got {name!r:.80}")


def right_rows(rows: Predictions, step: ComposedStep | None) -> BoolArray:
    """Return the mask of correct rows (n,): pairs that the step accepts, or equal classes."""
    if step is None:
        return np.asarray(rows.actual == rows.predicted)
    return np.asarray(step.accept[rows.actual, rows.predicted])


def certainty(rows: Predictions, places: IntArray, label: bool = False) -> FloatArray | None:
    """Return the score of the predicted class, or of the label, of some rows; None without scores.

    A score is a probability or a decision value.
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
    """Return a frame of some rows, with the predictions of each side.

    Its columns are number, id, weight, group and label; the predictions and probabilities of each
    side; segments; and the columns of a table.
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
    """Return the columns of a table as series with an entry for each row of the evaluation.

    A row without a match has no value. ValueError if the rows of the table are not those of the
    evaluation, or are not here.

    ``table``: a frame, a mapping of columns or the path of a file; without one there are no
        columns.
    """
    if table is None and row_ids is not None:
        raise ValueError(f"row_ids goes with table=, got {row_ids!r:.80} alone")
    if table is None:
        return {}
    from cmtrack._pandas import pd

    # pyarrow, which a light environment does not have
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
                f"{n_missing:,} of {n_rows:,} rows are not in the table, and have no values of its "
                "columns",
                UserWarning,
                stacklevel=stacklevel,
            )
        # A number beyond the table's last row gives a missing value.
        order = np.where(order < 0, len(columns[row_ids]), order)
        return {
            name: column.reindex(order).reset_index(drop=True) for name, column in columns.items()
        }
    digest = evaluation.statistics.row_ids
    row_order = places_in(table, columns, row_ids, n_rows, digest, "evaluate with row_ids=")
    if row_ids is None:
        warnings.warn(
            "rows of the table are matched by their place alone: give row_ids= to have that "
            "checked",
            UserWarning,
            stacklevel=stacklevel,
        )
    if row_order is None:
        return columns
    return {name: column.iloc[row_order] for name, column in columns.items()}


def _in_segment(rows: Predictions, joined: Mapping[str, Any], column: str, value: Any) -> BoolArray:
    """Return the mask of the rows in a segment, by a declared column or a column of the table."""
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
    raise ValueError(f"segment must be of one of the columns {names[:20]}, got {column!r:.80}")
