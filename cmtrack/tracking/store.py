"""Tracking stores: clients, temporary MLflow settings, experiments and runs.

Context managers restore the settings that they change.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from cmtrack import untrusted
from cmtrack._lazy import needs
from cmtrack.tracking import mlflow_inside
from cmtrack.tracking._warn import causes, first_line

if TYPE_CHECKING:
    from mlflow import MlflowClient

ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE", "NOT_FOUND")
"""MLflow's error codes for something that the store does not have."""
PROBE_SECONDS = (3.0, 10.0)
"""Timeouts, in seconds, for connecting to a server and for its response."""
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")
_ENV = "MLFLOW_TRACKING_URI"
_NO_LINKS = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
_BARS = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"
_LOGGERS = ("mlflow", "alembic")


# -- clients ---------------------------------------------------------------------------------------


def client_for(tracking_uri: str | None = None) -> MlflowClient:
    """Return a client for a store (by default the current store) after checking that it answers.

    The client of the current store uses the current model registry. Raises ConnectionError if the
    tracking server does not answer, and ImportError if mlflow-skinny does not support the store.
    """
    from mlflow import MlflowClient, get_tracking_uri

    current_uri = get_tracking_uri()
    uri = tracking_uri or current_uri
    import_what_reaches(uri)
    client = MlflowClient() if uri == current_uri else MlflowClient(uri, registry_uri=uri)
    probe(client.tracking_uri)
    return client


def import_what_reaches(tracking_uri: str) -> None:
    """Import MLflow's code for a type of store, or raise ImportError if a package is missing.

    The first import takes several seconds, which must not count as time without a response.
    """
    if urlsplit(tracking_uri).scheme.partition("+")[0] in _DATABASES:
        with needs(
            "a tracking store in a database (mlflow-skinny reaches servers: MLFLOW_TRACKING_URI)",
            "mlflow",
        ):
            import_module("sqlalchemy")  # a dependency of MLflow, not of cmtrack
        import_module(mlflow_inside.DATABASE_STORE)


def probe(tracking_uri: str) -> None:
    """Check with a single request that the server answers; MLflow would retry for minutes.

    Raises ConnectionError if connecting takes more than three seconds, or the response more than
    ten seconds. The body of the response is not read, because a server may send it byte by byte.
    """
    parts = urlsplit(tracking_uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return
    try:
        mlflow_inside.get(
            tracking_uri, "/health", max_retries=0, timeout=PROBE_SECONDS, stream=True
        ).close()
    except Exception as error:
        host = parts.netloc.rpartition("@")[2]
        first_cause = list(causes(error))[-1]
        raise ConnectionError(
            f"the tracking server {host} does not answer: {first_line(first_cause)}"
        ) from None


# -- settings --------------------------------------------------------------------------------------


@contextmanager
def tracking_store(uri: str | None) -> Iterator[str]:
    """Use a tracking URI inside the block, and yield this URI; None stands for the current URI.

    MLflow stores the URI in the process and in an environment variable; both are restored.
    """
    import mlflow

    if uri is None:
        yield mlflow.get_tracking_uri()
        return
    before = None
    if mlflow.is_tracking_uri_set():
        before = mlflow.get_tracking_uri()
    with _environment(_ENV) as in_environment:
        mlflow.set_tracking_uri(uri)
        try:
            yield uri
        finally:
            # MLflow reads the environment again if no URI is set.
            own_uri: Any = None if before == in_environment else before
            mlflow.set_tracking_uri(own_uri)


@contextmanager
def _environment(name: str, value: str | None = None) -> Iterator[str | None]:
    """Set an environment variable inside the block if a value is given, and yield the old value."""
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield before
    finally:
        os.environ.pop(name, None)
        if before is not None:
            os.environ[name] = before


@contextmanager
def quiet() -> Iterator[None]:
    """Silence MLflow's progress bars, and log messages from MLflow and Alembic except errors."""
    import mlflow  # noqa: F401 - the import sets the levels

    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with _environment(_BARS, "false"):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


# -- experiments and runs --------------------------------------------------------------------------

made_runs: dict[str, str] = {}
"""Names of the runs that this process has created, by run id."""


def experiment_named(client: MlflowClient, name: str, location: str | None = None) -> str:
    """Return an experiment's id, and create it if necessary; raise ValueError if it is deleted.

    ``location``: artifact location of a new experiment; by default, the store chooses it.
    """
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return str(client.create_experiment(name, location))
    stage = experiment.lifecycle_stage
    if stage != "active":
        raise ValueError(
            f"the experiment {name!r} is {stage} and accepts no runs: restore it, or choose "
            "another name"
        )
    return str(experiment.experiment_id)


def location_like(experiment: Any) -> str | None:
    """Return the artifact location for a new experiment in the same place as another experiment.

    The result is None if the store chooses the location: a folder, or an address on its server.
    """
    location = experiment.artifact_location
    if urlsplit(location or "").scheme in ("", "http", "https", "mlflow-artifacts"):
        return None
    return str(location)


def create_run(
    client: MlflowClient, experiment_id: str, name: str, tags: dict[str, str] | None = None
) -> Any:
    """Create a run, and remember its name, because figures show the name."""
    run = client.create_run(experiment_id, run_name=name, tags=tags)
    made_runs[str(run.info.run_id)] = name
    return run


def end_run(
    client: MlflowClient, run_id: str, status: str = "FINISHED", *, link: bool = True
) -> None:
    """End a run, and suppress the link that MLflow prints if the link would show a password.

    ``link``: whether MLflow may print a link at all.
    """
    has_password = untrusted.without_credentials(client.tracking_uri) != client.tracking_uri
    with _environment(_NO_LINKS, "true" if has_password or not link else None):
        client.set_terminated(run_id, status)
