"""Temporary tracking URI and quiet mode, and the start and end of runs; settings are restored."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cmtrack import untrusted

if TYPE_CHECKING:
    from mlflow import MlflowClient

_ENV = "MLFLOW_TRACKING_URI"
_NO_LINKS = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
_BARS = "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"
_LOGGERS = ("mlflow", "alembic")


@contextmanager
def tracking_store(uri: str | None) -> Iterator[str]:
    """Use a tracking URI inside the block (None: the current one), and yield it.

    MLflow keeps the URI per process and in an environment variable; both are put back.
    """
    import mlflow

    if uri is None:
        yield mlflow.get_tracking_uri()
        return
    before = mlflow.get_tracking_uri() if mlflow.is_tracking_uri_set() else None
    with _environment(_ENV) as in_environment:
        mlflow.set_tracking_uri(uri)
        try:
            yield uri
        finally:
            mlflow.set_tracking_uri(None if before == in_environment else before)  # type: ignore[arg-type, unused-ignore]


@contextmanager
def _environment(name: str, value: str | None = None) -> Iterator[str | None]:
    """Restore an environment variable after the block; inside it has the value, if given. Yields the former one."""
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield before
    finally:
        os.environ.pop(name, None)
        os.environ.update({} if before is None else {name: before})


@contextmanager
def quiet() -> Iterator[None]:
    """Silence MLflow's progress bars, and log messages below errors of MLflow and its database migrations."""
    import mlflow  # noqa: F401 - its import sets the levels

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


made_runs: dict[str, str] = {}
"""Names of the runs that this process made, by id."""


def experiment_named(client: MlflowClient, name: str, location: str | None = None) -> str:
    """The id of an experiment, which is created if absent, with an artifact location or the store's default.

    ValueError if it is deleted.
    """
    experiment = client.get_experiment_by_name(name)
    if experiment is None:
        return str(client.create_experiment(name, location))
    if experiment.lifecycle_stage != "active":
        stage = experiment.lifecycle_stage
        raise ValueError(
            f"the experiment {name!r} is {stage}: it accepts no run; restore it, or choose another "
            f"name"
        )
    return str(experiment.experiment_id)


def create_run(
    client: MlflowClient, experiment_id: str, name: str, tags: dict[str, str] | None = None
) -> Any:
    """Create a run, and cache its name for figures."""
    run = client.create_run(experiment_id, run_name=name, tags=tags)
    made_runs[str(run.info.run_id)] = name
    return run


def end_run(client: MlflowClient, run_id: str, status: str = "FINISHED") -> None:
    """End a run, without the link that MLflow prints if it would show a password."""
    secret = untrusted.without_credentials(client.tracking_uri) != client.tracking_uri
    with _environment(_NO_LINKS, "true" if secret else None):
        client.set_terminated(run_id, status)
