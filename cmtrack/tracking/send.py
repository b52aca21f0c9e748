"""The one place that writes to MLflow: a package goes into a run that exists."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cmtrack.tracking import names
from cmtrack.tracking.package import Package

if TYPE_CHECKING:
    from mlflow import MlflowClient

PROBE_SECONDS = 3.0
NOTE = "mlflow.note.content"
_TABLES = "mlflow.loggedArtifacts"


def send(
    package: Package, client: MlflowClient | None = None, answered: Callable[[], object] = lambda: None
) -> tuple[str, ...]:
    """Send a package to its run: files first, then all metrics in one batch with the closing tag.

    The run is never opened, closed or re-opened, and nothing depends on an active run. The tag
    ``cmtrack.status`` goes from ``started`` to ``completed``, so half-written runs can be told apart. Sending twice
    leaves the run as sending once. ``answered`` is called whenever the store has taken something.

    Returns
    -------
    tuple of str
        What had to be left out, such as the link to a model that does not exist.

    Raises
    ------
    ConnectionError
        If the tracking server does not answer.
    mlflow.exceptions.MlflowException
        If the run does not exist, is deleted, or refuses a write.
    """
    from mlflow import MlflowClient
    from mlflow.entities import RunTag

    client = client or MlflowClient()
    probe(client.tracking_uri)
    run_id = package.run_id
    if run_id is None:
        raise ValueError("a package needs a run to be sent to")
    run = client.get_run(run_id)
    answered()
    if run.info.lifecycle_stage != "active":
        raise ValueError(f"run {run_id} is {run.info.lifecycle_stage}: it takes no metrics")
    client.set_tag(run_id, names.tag("status", package.prefix), "started")
    for path in sorted(package.artifacts.iterdir(), key=lambda path: path.stat().st_size):
        client.log_artifact(run_id, str(path))
        answered()
    _log_images(client, run, package)
    answered()
    _log_dataset(client, run_id, package)
    answered()
    tags = dict(package.tags)
    tags[_TABLES] = _with_table(run.data.tags.get(_TABLES, "[]"), package.table)
    if run.data.tags.get(NOTE, "| cmtrack |").startswith("| cmtrack |"):  # never over a person's own words
        tags[NOTE] = package.description
    tags[names.tag("status", package.prefix)] = "completed"
    metrics, problems = _metrics(client, run, package)
    closing = [RunTag(name, text) for name, text in tags.items()]
    client.log_batch(run_id, metrics=metrics, tags=closing, synchronous=True)
    answered()
    return problems


def probe(tracking_uri: str) -> None:
    """Ask once whether the tracking server answers; MLflow itself would retry for minutes.

    Raises
    ------
    ConnectionError
        If no connection is made within three seconds.
    """
    parts = urlsplit(tracking_uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), timeout=PROBE_SECONDS).close()
    except OSError as error:
        raise ConnectionError(f"the tracking server {parts.hostname}:{port} does not answer: {error}") from None


def _metrics(client: MlflowClient, run: Any, package: Package) -> tuple[list[Any], tuple[str, ...]]:
    from mlflow.entities import Metric
    from mlflow.exceptions import MlflowException

    now, step = package.timestamp, package.step or 0
    model_id = package.model_id or _only_model(run, step)
    problems: tuple[str, ...] = ()
    if package.model_id is not None:
        try:
            client.get_logged_model(package.model_id)
        except MlflowException as error:  # one unknown model would have the whole batch refused
            model_id, problems = None, (f"link to model {package.model_id!r}: {error}",)
    link: dict[str, str] = {}
    if model_id is not None:
        data = package.dataset
        link = {"model_id": model_id, "dataset_name": data["name"], "dataset_digest": data["digest"]}
    return [Metric(name, value, now, step, **link) for name, value in package.metrics.items()], problems


def _only_model(run: Any, step: int) -> str | None:
    """The model that this run logged at this step, as MLflow's fluent functions link it."""
    outputs = getattr(getattr(run, "outputs", None), "model_outputs", None) or []
    found = [output.model_id for output in outputs if output.step == step]
    return found[0] if len(found) == 1 else None


def _log_images(client: MlflowClient, run: Any, package: Package) -> None:
    from cmtrack.tracking.images import DrawnImage

    run_id, step = run.info.run_id, package.step or 0
    known: list[str] = []
    if names.tag("status", package.prefix) in run.data.tags:  # else nothing of the kind was sent before
        known = [file.path for file in client.list_artifacts(run_id, "images")]
    for key, file in package.images.items():
        # MLflow names an image by these three and a number of its own: one that is there already was sent before
        parts = ("images/" + "[~#]".join(map(re.escape, key.split("/"))), "step", str(step), "timestamp")
        name = re.compile("[+%]".join((*parts, str(package.timestamp), "")))
        if any(map(name.match, known)):
            continue
        with DrawnImage(package.artifacts / file) as image:
            client.log_image(run_id, image, key=key, step=step, timestamp=package.timestamp, synchronous=True)


def _log_dataset(client: MlflowClient, run_id: str, package: Package) -> None:
    from mlflow.data.code_dataset_source import CodeDatasetSource
    from mlflow.data.meta_dataset import MetaDataset
    from mlflow.entities import DatasetInput, InputTag
    from mlflow.exceptions import MlflowException

    dataset = MetaDataset(CodeDatasetSource(tags={}), name=package.dataset["name"], digest=package.dataset["digest"])
    context = InputTag("mlflow.data.context", "evaluation")
    inputs = [DatasetInput(dataset._to_mlflow_entity(), tags=[context])]
    try:
        client.log_inputs(run_id, inputs)
    except MlflowException:  # another run may have written the same dataset at the same moment: now it is there
        client.log_inputs(run_id, inputs)


def _with_table(listed: str, table: str) -> str:
    """The tag that lists a run's tables, with one more."""
    entry = {"path": table, "type": "table"}
    entries = json.loads(listed)
    return json.dumps(entries if entry in entries else [*entries, entry])
