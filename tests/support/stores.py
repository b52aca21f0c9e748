"""Tracking stores: an empty one of each test's own, and all runs of one."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


@functools.cache
def _empty_store() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """A database in which MLflow has made its tables, and the folder that goes with it."""
    import mlflow

    from cmtrack.tracking import quiet

    folder = tempfile.TemporaryDirectory(prefix="cmtrack-empty-store-")
    path = Path(folder.name, "mlflow.db")
    with quiet():
        mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        # the default one: it says where this folder's artifacts are
        connection.execute("DELETE FROM experiments")
    return folder, path


def sqlite_store(path: Path) -> str:
    """The URI of a new tracking store in this file.

    It is a copy: MLflow makes the tables of a database by all migrations since its first version, which takes seconds.
    """
    shutil.copyfile(_empty_store()[1], path)
    return f"sqlite:///{path}"


def runs_of(client: MlflowClient) -> list[Run]:
    """All runs of a store, deleted ones as well, the latest first."""
    from mlflow.entities import ViewType

    experiments = [e.experiment_id for e in client.search_experiments(view_type=ViewType.ALL)]
    return list(client.search_runs(experiments, run_view_type=ViewType.ALL))
