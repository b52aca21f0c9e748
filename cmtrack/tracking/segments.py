"""Evaluation of past runs by new segments, using row attributes and the stored predictions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.comparison.comparability import of_classes
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.from_arrays import with_segments
from cmtrack.report.views import segments_json
from cmtrack.rows.join import places_in
from cmtrack.statistics.attributes import attribute_columns
from cmtrack.statistics.inputs import align_rows
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.segment_values import SEGMENTS, divisions_of
from cmtrack.tracking import names
from cmtrack.tracking.artifacts import filing
from cmtrack.tracking.load import evaluation_of, plain_reason, with_predictions
from cmtrack.tracking.runs import TrackedRun, with_clients
from cmtrack.tracking.shared_tags import list_table

if TYPE_CHECKING:
    from mlflow import MlflowClient

_INSTEAD = "match the rows by y_true=, the table's actual labels"


def segment_runs(
    runs: Any,
    table: Any,
    *,
    segments: Sequence[Any],
    row_ids: Any = None,
    y_true: str | None = None,
    prefix: str = "",
    log: bool = False,
) -> list[Evaluation]:
    """Evaluate past runs by segments, from their stored predictions and a table of row attributes.

    A run stores its rows in their original order, but it stores only a digest of the row ids.
    Therefore the rows of the table must be matched to the rows of the run in one of three ways:
    with ``row_ids``, with ``y_true``, or by their order alone, which gives a warning.

    Parameters
    ----------
    runs : run references
        References as in :func:`cmtrack.compare`; all runs must be evaluated on the same rows.
    table : frame or mapping of columns
        The attributes of the rows.
    segments : list of str, or of tuples of str
        Columns of the table that divide the rows into segments. A tuple of columns divides the rows
        by all its columns at once.
    row_ids : str or array-like of shape (n,), optional
        If the table's rows are in the order of the run, pass the name of the column that contains
        the row ids. Alternatively, pass the row ids in the order of the run. They are then looked
        up in the index of a DataFrame, whose rows may be in any order. The ids are checked against
        the run's digest.
    y_true : str, optional
        The name of the table column that contains the actual labels, if the rows of the table are
        in the order of the run. The labels are checked against the labels of the run.
    prefix : str, default ""
        The prefix under which the evaluations were logged.
    log : bool, default False
        Write the table of segments, ``cmtrack_segments.json``, to each run, and replace an earlier
        table. By default nothing is written.

    Returns
    -------
    list of Evaluation
        Evaluations with segments, in the order of the runs.

    Raises
    ------
    ValueError
        If a run does not exist or contains no rows, or if rows of the table do not match the rows
        of the run. The message gives the number of rows that do not match, if this number is known.
    TypeError
        If segments are not a list of names.
    ConnectionError
        If the tracking server does not answer.

    Warns
    -----
    UserWarning
        If the rows are matched by their order alone.

    Examples
    --------
    >>> import mlflow
    >>> from cmtrack import log_evaluation, segment_runs
    >>> y, regions = [0, 1] * 50, ["north"] * 60 + ["south"] * 40
    >>> with mlflow.start_run() as run:
    ...     logged = log_evaluation(y, [0, 1] * 30 + [0, 0] * 20)
    >>> table = {"region": regions, "y": y}
    >>> evaluation = segment_runs(run.info.run_id, table, segments=["region"], y_true="y")[0]
    >>> evaluation.segments.named("segment/region/*/multiclass/accuracy")
    {'segment/region/north/multiclass/accuracy': 1.0, 'segment/region/south/multiclass/accuracy':
    0.5}
    """
    table = align_rows({"the run": None, "table": table})["table"]
    columns = attribute_columns(table, None, SEGMENTS)
    divisions = divisions_of(segments)
    for name in (*(name for division in divisions for name in division), y_true):
        if name is not None and name not in columns:
            raise ValueError(f"table must have the column {name!r:.80}, got {list(columns)[:20]}")
    done = []
    for run, client in with_clients(runs):
        logged = run.logged_prefix(prefix)
        try:
            evaluation = of_classes(
                with_predictions(evaluation_of(run, client, logged), run, client, logged)
            )
            places = _places(evaluation, columns, table, row_ids, y_true)
            chosen = {name: columns[name] for division in divisions for name in division}
            if places is not None:  # the row ids were looked up in the index of a frame
                chosen = {name: column.iloc[places] for name, column in chosen.items()}
            divided = with_segments(evaluation, (chosen, list(segments)))
        except ValueError as error:
            raise ValueError(f"run {run.run_id}: {plain_reason(error, run)}") from None
        if log:
            _log(divided, run, client, logged)
        done.append(divided)
    return done


def _places(
    evaluation: Evaluation, columns: Any, table: Any, row_ids: Any, y_true: str | None
) -> Any:
    """Return the position in the table for each row of a run.

    Returns None if the order is the same. Raises ValueError if the rows of the table do not match
    the rows of the run.
    """
    statistics = evaluation.statistics
    places = places_in(
        table, columns, row_ids, statistics.digest.rows, statistics.row_ids, _INSTEAD
    )
    if places is None and y_true is not None:
        _check_labels(evaluation, columns[y_true])
    elif places is None and row_ids is None:
        warnings.warn(
            "the rows of the table are matched to the rows of the run only by their order: "
            "give row_ids= or y_true= to check the match",
            UserWarning,
            stacklevel=4,
        )
    return places


def _check_labels(evaluation: Evaluation, column: Any) -> None:
    if not isinstance(evaluation.rows, Predictions):
        raise ValueError(f"segments need rows with labels, got {evaluation!r:.120}")
    texts = [str(label) for label in evaluation.labels]
    actual = np.array(texts)[evaluation.rows.actual]
    stated = np.asarray(column).astype(str)
    differs = stated != actual
    if differs.any():
        row = int(differs.argmax())
        raise ValueError(
            f"the table must have the actual labels of the run: {int(differs.sum()):,} of "
            f"{len(actual):,} rows do not match, the first is row {row} with "
            f"{stated[row]!s:.80} instead of {actual[row]!s:.80}"
        )


def _log(evaluation: Evaluation, run: TrackedRun, client: MlflowClient, prefix: str) -> None:
    """Write the table of segments to a run, and add it to the list for MLflow's artifact view."""
    file = names.file_name(names.SEGMENTS_FILE, prefix)
    filing(client, run.artifact_uri).log_text(run.run_id, segments_json(evaluation), file)
    list_table(client, run.run_id, prefix, file)
