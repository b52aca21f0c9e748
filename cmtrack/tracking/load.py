"""``load_evaluation``: the evaluation that a run holds."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.face import loads
from cmtrack.tracking import cache
from cmtrack.tracking.names import EVALUATION_FILE, PREDICTIONS_FILE, ROWS_FILE, digest_tag, file_name, tag
from cmtrack.tracking.runs import TrackedRun, find, first_line
from cmtrack.tracking.send import probe
from cmtrack.tracking.views import views_of

if TYPE_CHECKING:
    from mlflow import MlflowClient


def load_evaluation(
    run_id: Any, *, prefix: str = "", rows: bool = False, client: MlflowClient | None = None
) -> Evaluation | Any:
    """Read the evaluation that :func:`cmtrack.log_evaluation` left in a run.

    Parameters
    ----------
    run_id : str or object
        A run id, ``runs:/<id>``, the id or URI of a logged or registered model (``models:/name@alias``), or an object
        with a ``run_id``: whatever :func:`cmtrack.compare` takes.
    prefix : str, default ""
        As it was logged; ``"test"`` is enough where that was ``"test/"``.
    rows : bool, default False
        Whether the rows' predictions are loaded too, for paired comparisons.
    client : mlflow.MlflowClient, optional
        By default one for the current tracking URI.

    Returns
    -------
    Evaluation or FamilyEvaluation
        Equal to the one that was logged.

    Raises
    ------
    ValueError
        If there is no such run, the run holds no evaluation (or no predictions), or it is damaged or of a newer
        schema.
    ConnectionError
        If the tracking server does not answer.
    """
    from mlflow import MlflowClient

    client = client or MlflowClient()
    probe(client.tracking_uri)
    found = find(run_id, [client])
    prefix = found.logged_prefix(prefix)
    try:
        evaluation = evaluation_of(found, client, prefix)
    except ValueError as error:
        why = "" if found.status(prefix) else found.why_incomplete(prefix)
        raise ValueError(f"{error}; {why}" if why else str(error)) from None
    return with_predictions(evaluation, found, client, prefix) if rows else evaluation


def evaluation_of(run: TrackedRun, client: MlflowClient, prefix: str = "") -> Evaluation | Any:
    """The evaluation of a run that is at hand.

    Raises
    ------
    ValueError
        If the run holds none, or it is damaged or of a newer schema.
    """
    content = read_artifact(run, client, EVALUATION_FILE, prefix)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"run {run.run_id}: the evaluation is damaged: {error}") from None
    try:
        return loads(text)
    except ValueError as error:
        raise ValueError(f"run {run.run_id}: {error}") from None


def with_predictions(
    evaluation: Evaluation | Any, run: TrackedRun, client: MlflowClient, prefix: str = ""
) -> Evaluation | Any:
    """The same evaluation with its rows.

    Raises
    ------
    ValueError
        If the run holds no predictions, or they are damaged.
    """
    content = read_artifact(run, client, PREDICTIONS_FILE, prefix)
    return replace(evaluation, rows=views_of(evaluation).read_rows(content, evaluation))


def with_kept_predictions(
    evaluation: Evaluation | Any, run: TrackedRun, client: MlflowClient, prefix: str = ""
) -> tuple[Evaluation | Any, str]:
    """The same evaluation with its rows, where they were kept; and what is wrong with those that were."""
    try:
        return with_predictions(evaluation, run, client, prefix), ""
    except ValueError as error:
        return evaluation, str(error) if digest_tag(PREDICTIONS_FILE, prefix) in run.tags else ""


def plain_reason(error: Exception, run: TrackedRun) -> str:
    """Why a run cannot be read, said where its name stands already."""
    known = isinstance(error, (ValueError, OSError))
    text = first_line(error) if known else f"{type(error).__name__}: {first_line(error)}"
    return text.removeprefix(f"run {run.run_id}: ").removeprefix(f"run {run.run_id} ")


def rows_file(run: TrackedRun, prefix: str = "") -> str:
    """The file of a run that holds the predictions by row of an evaluation.

    A regrouped evaluation has no file of its own: a tag names that of the evaluation it was made from.
    """
    elsewhere = PurePosixPath(run.tags.get(tag(ROWS_FILE, prefix), "")).name  # a tag leads to no other folder
    return elsewhere or file_name(PREDICTIONS_FILE, prefix)


def read_artifact(run: TrackedRun, client: MlflowClient, name: str, prefix: str = "") -> bytes:
    """A file that an evaluation left in a run: from its folder, from the cache, or from the artifact store.

    Raises
    ------
    ValueError
        If the run does not hold it, or it is not the file that was logged.
    """
    file = rows_file(run, prefix) if name == PREDICTIONS_FILE else file_name(name, prefix)
    digest = run.tags.get(digest_tag(name, prefix))
    local = _local_folder(run.artifact_uri)
    if local is not None:
        try:
            return _checked((local / file).read_bytes(), digest, run, file)
        except OSError as error:
            raise ValueError(f"run {run.run_id} holds no {file}: {error.strerror}") from None
    if digest is not None:
        content = cache.cached(digest)
        if content is not None:
            return content
    with tempfile.TemporaryDirectory(prefix="cmtrack-") as scratch:
        try:
            content = Path(client.download_artifacts(run.run_id, file, scratch)).read_bytes()
        except Exception as error:
            raise ValueError(f"run {run.run_id} holds no {file}: {first_line(error)}") from None
    _checked(content, digest, run, file)
    if digest is not None:
        cache.keep(digest, content)
    return content


def _checked(content: bytes, digest: str | None, run: TrackedRun, file: str) -> bytes:
    if digest is not None and cache.digest_of(content) != digest:
        raise ValueError(f"run {run.run_id}: {file} is damaged: it is not the file that was logged")
    return content


def _local_folder(uri: str) -> Path | None:
    """The folder of artifacts that lie on this machine."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path)) if parts.netloc in ("", "localhost") else None
    return Path(uri) if uri and not parts.scheme else None
