"""The function ``load_evaluation``, which reads an evaluation from a run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.loading import loads
from cmtrack.metrics.metric import Metric
from cmtrack.tracking import artifacts, cache
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.names import (
    EVALUATION_FILE,
    PREDICTIONS_FILE,
    ROWS_FILE,
    digest_key,
    digests,
    file_name,
)
from cmtrack.tracking.runs import TrackedRun, find
from cmtrack.tracking.store import client_for

if TYPE_CHECKING:
    from mlflow import MlflowClient


def load_evaluation(
    run_id: Any,
    *,
    prefix: str = "",
    rows: bool = False,
    extra_metrics: Sequence[Metric] = (),
    client: MlflowClient | None = None,
) -> BaseEvaluation:
    """Read an evaluation that :func:`cmtrack.log_evaluation` has written to a run.

    Parameters
    ----------
    run_id : str or object
        A run id, ``runs:/<id>``, the id or URI of a logged or registered model
        (``models:/name@alias``), or an object with the attribute ``run_id``, as in
        :func:`cmtrack.compare`.
    prefix : str, default ""
        The prefix under which the evaluation was logged; ``"test"`` also finds ``"test/"``.
    rows : bool, default False
        Whether to also load the row-level predictions, for paired comparisons. If the evaluation
        was computed with both ``groups=`` and segments, stored predictions are always loaded,
        because the segments' confidence intervals require them.
    extra_metrics : sequence of Metric, optional
        The custom metrics that were used in the evaluation, because a run does not store their
        functions. If you do not pass them, you can read the logged numbers, but you cannot regroup
        or merge the evaluation or compute paired differences.
    client : mlflow.MlflowClient, optional
        The client of the run's store; by default a client for the current tracking URI.

    Returns
    -------
    Evaluation or FamilyEvaluation
        The evaluation that was logged.

    Raises
    ------
    ValueError
        If the run does not exist, if it does not contain the evaluation or the requested
        predictions, or if the evaluation is damaged or uses a newer schema.
    ConnectionError
        If the tracking server does not answer.

    Examples
    --------
    >>> import mlflow
    >>> from cmtrack import load_evaluation, log_evaluation
    >>> with mlflow.start_run() as run:
    ...     logged = log_evaluation([0, 1, 1, 0], [0, 1, 0, 0])
    >>> load_evaluation(run.info.run_id, rows=True) == logged.evaluation
    True
    """
    client = client or client_for()
    run = find(run_id, [client])
    prefix = run.logged_prefix(prefix)
    try:
        evaluation = evaluation_of(run, client, prefix)
    except ValueError as error:
        reasons = filter(None, (str(error), run.why_incomplete(prefix)))
        raise ValueError("; ".join(reasons)) from None
    if rows:
        evaluation = with_predictions(evaluation, run, client, prefix)
    elif isinstance(evaluation, Evaluation) and evaluation.segments.note:
        evaluation, problem = with_kept_predictions(evaluation, run, client, prefix)
        if problem:
            warnings.warn(f"{problem}", UserWarning, stacklevel=2)
    return evaluation.with_metrics(extra_metrics)


def evaluation_of(run: TrackedRun, client: MlflowClient, prefix: str = "") -> BaseEvaluation:
    """Read the evaluation of a listed run.

    Raises ValueError if the run contains no evaluation, or if the evaluation is damaged or uses a
    newer schema.
    """
    content = read_artifact(run, client, EVALUATION_FILE, prefix)
    try:
        return loads(content.decode("utf-8"))
    except ValueError as error:
        reason = str(error)
        if isinstance(error, UnicodeDecodeError):
            reason = f"the evaluation is damaged: {reason}"
        raise ValueError(f"run {run.run_id}: {reason}") from None


def with_predictions(
    evaluation: BaseEvaluation, run: TrackedRun, client: MlflowClient, prefix: str = ""
) -> BaseEvaluation:
    """Return the evaluation with its rows, or raise ValueError if rows are missing or damaged."""
    if not keeps_rows(run, prefix):
        raise ValueError(
            f"run {run.run_id} has no {rows_file(run, prefix)}: predictions by row were not kept"
        )
    content = read_artifact(run, client, PREDICTIONS_FILE, prefix)
    return evaluation.with_rows(content)


def with_kept_predictions(
    evaluation: BaseEvaluation, run: TrackedRun, client: MlflowClient, prefix: str = ""
) -> tuple[BaseEvaluation, str]:
    """Return the evaluation with its stored rows, and a reason if the rows cannot be read."""
    try:
        return with_predictions(evaluation, run, client, prefix), ""
    except (ValueError, ImportError) as error:  # PyArrow may be missing
        has_digest = digest_key(PREDICTIONS_FILE) in digests(run.tags, prefix)
        return evaluation, str(error) if has_digest else ""


def plain_reason(error: Exception, run: TrackedRun) -> str:
    """Return a text, without the run's id, that says why the run cannot be read."""
    return _said(error).removeprefix(f"run {run.run_id}: ").removeprefix(f"run {run.run_id} ")


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, (ValueError, OSError)):
        return first_line(error)
    return f"{type(error).__name__}: {first_line(error)}"


def rows_file(run: TrackedRun, prefix: str = "") -> str:
    """Return the name of the run's file with row-level predictions.

    Regrouping does not write the rows again. A tag of the regrouped evaluation names the original
    evaluation's file of rows.
    """
    # Use only the name of the file, so that a tag cannot lead to a different folder.
    elsewhere = PurePosixPath(digests(run.tags, prefix).get(ROWS_FILE, "")).name
    return elsewhere or file_name(PREDICTIONS_FILE, prefix)


def keeps_rows(run: TrackedRun, prefix: str = "") -> bool:
    """Return True if, according to its tags, the run may contain row-level predictions.

    If an early version of cmtrack logged the run, the tags contain no digests, but the run may
    contain predictions.
    """
    entries = digests(run.tags, prefix)
    if digest_key(EVALUATION_FILE) not in entries:
        return True
    return digest_key(PREDICTIONS_FILE) in entries or ROWS_FILE in entries


def read_artifact(run: TrackedRun, client: MlflowClient, name: str, prefix: str = "") -> bytes:
    """Read an artifact of an evaluation from a local folder, the cache or the artifact store.

    Raises ValueError if the run does not contain the file, if the file cannot be read, or if its
    content differs from the file that was logged.
    """
    file = file_name(name, prefix)
    if name == PREDICTIONS_FILE:
        file = rows_file(run, prefix)
    digest = digests(run.tags, prefix).get(digest_key(name))
    try:
        if not file.endswith(name):  # the name comes from a tag
            raise ValueError(f"the file must be named {name}")
        folder = artifacts.folder_of(run.artifact_uri, client.tracking_uri)
        # A local file is not cached, because reading it is as fast as reading the cache.
        cache_key = digest if folder is None else None
        cached = None if cache_key is None else cache.cached(cache_key)
        if cached is not None:
            return cached
        content = artifacts.read(run.artifact_uri, file, client.tracking_uri)
    except FileNotFoundError as error:
        raise ValueError(f"run {run.run_id} has no {file}: {_said(error)}") from None
    except Exception as error:
        raise ValueError(f"run {run.run_id}: {file} cannot be read: {_said(error)}") from None
    if digest is not None and cache.digest_of(content) != digest:
        raise ValueError(f"run {run.run_id}: {file} is damaged: it is not the file that was logged")
    if cache_key is not None:
        cache.keep(cache_key, content)
    return content
