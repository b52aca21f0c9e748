"""``load_evaluation``: the evaluation that a run holds."""

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
    """Read the evaluation that :func:`cmtrack.log_evaluation` left in a run.

    Parameters
    ----------
    run_id : str or object
        A run id, ``runs:/<id>``, the id or URI of a logged or registered model
        (``models:/name@alias``), or an object with a ``run_id``: whatever :func:`cmtrack.compare`
        takes.
    prefix : str, default ""
        The prefix that it was logged under; ``"test"`` is enough for ``"test/"``.
    rows : bool, default False
        Whether the rows' predictions are loaded too, for paired comparisons. Where rows belong
        together (``groups=``) and have segments, they are always loaded, if they were kept: the
        segments' intervals need them.
    extra_metrics : sequence of Metric, optional
        The functions of custom metrics, which a run does not hold: without them the logged numbers
        are there, and what needs the functions (regrouping, merging, paired differences) is
        missing.
    client : mlflow.MlflowClient, optional
        By default one for the current tracking URI.

    Returns
    -------
    Evaluation or FamilyEvaluation
        Equal to the one that was logged.

    Raises
    ------
    ValueError
        If there is no such run, the run holds no evaluation (or no predictions), or it is damaged
        or of a newer schema.
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
    """The evaluation of a listed run.

    ValueError if the run holds none, or it is damaged or of a newer schema.
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
    """The evaluation with its rows; ValueError if there are no predictions, or damaged ones."""
    if not keeps_rows(run, prefix):
        raise ValueError(
            f"run {run.run_id} holds no {rows_file(run, prefix)}: predictions by row were not kept"
        )
    content = read_artifact(run, client, PREDICTIONS_FILE, prefix)
    return evaluation.with_rows(content)


def with_kept_predictions(
    evaluation: BaseEvaluation, run: TrackedRun, client: MlflowClient, prefix: str = ""
) -> tuple[BaseEvaluation, str]:
    """The evaluation with its kept rows, and why they cannot be read if so."""
    try:
        return with_predictions(evaluation, run, client, prefix), ""
    except (ValueError, ImportError) as error:  # PyArrow may be missing
        has_digest = digest_key(PREDICTIONS_FILE) in digests(run.tags, prefix)
        return evaluation, str(error) if has_digest else ""


def plain_reason(error: Exception, run: TrackedRun) -> str:
    """The reason why a run cannot be read, without the run's name."""
    return _said(error).removeprefix(f"run {run.run_id}: ").removeprefix(f"run {run.run_id} ")


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, (ValueError, OSError)):
        return first_line(error)
    return f"{type(error).__name__}: {first_line(error)}"


def rows_file(run: TrackedRun, prefix: str = "") -> str:
    """The name of the run's file with per-row predictions.

    A regrouped evaluation has no file of its own: a tag names that of the evaluation it was made
    from.
    """
    # Only the name is taken, so that a tag leads to no other folder.
    elsewhere = PurePosixPath(digests(run.tags, prefix).get(ROWS_FILE, "")).name
    return elsewhere or file_name(PREDICTIONS_FILE, prefix)


def keeps_rows(run: TrackedRun, prefix: str = "") -> bool:
    """True if the run may hold per-row predictions, by its tags.

    A run of an early version has no digests at all, and may hold them.
    """
    entries = digests(run.tags, prefix)
    if digest_key(EVALUATION_FILE) not in entries:
        return True
    return digest_key(PREDICTIONS_FILE) in entries or ROWS_FILE in entries


def read_artifact(run: TrackedRun, client: MlflowClient, name: str, prefix: str = "") -> bytes:
    """An artifact of an evaluation, read from a local folder, the cache or the artifact store.

    ValueError if the run does not hold it, it is not the file that was logged, or it cannot be
    read.
    """
    file = file_name(name, prefix)
    if name == PREDICTIONS_FILE:
        file = rows_file(run, prefix)
    digest = digests(run.tags, prefix).get(digest_key(name))
    try:
        if not file.endswith(name):  # a tag named it
            raise ValueError(f"such a file is called {name}")
        folder = artifacts.folder_of(run.artifact_uri, client.tracking_uri)
        # A file of this machine is read as fast as the cache.
        cache_key = digest if folder is None else None
        cached = None if cache_key is None else cache.cached(cache_key)
        if cached is not None:
            return cached
        content = artifacts.read(run.artifact_uri, file, client.tracking_uri)
    except FileNotFoundError as error:
        raise ValueError(f"run {run.run_id} holds no {file}: {_said(error)}") from None
    except Exception as error:
        raise ValueError(f"run {run.run_id}: {file} cannot be read: {_said(error)}") from None
    if digest is not None and cache.digest_of(content) != digest:
        raise ValueError(f"run {run.run_id}: {file} is damaged: it is not the file that was logged")
    if cache_key is not None:
        cache.keep(cache_key, content)
    return content
