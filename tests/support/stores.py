"""Tracking stores: an empty store for each test, all runs of a store, and entries that wait to be sent to it."""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import sqlite3
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run


@functools.cache
def _empty_store() -> tuple[tempfile.TemporaryDirectory[str], Path]:
    """Return a database in which MLflow has made its tables, and its folder."""
    import mlflow

    from cmtrack.tracking import quiet

    folder = tempfile.TemporaryDirectory(prefix="cmtrack-empty-store-")
    path = Path(folder.name, "mlflow.db")
    with quiet():
        mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        # the default experiment, which contains the path of this folder's artifacts
        connection.execute("DELETE FROM experiments")
    return folder, path


def sqlite_store(path: Path) -> str:
    """Return the URI of a new tracking store in this file.

    It is a copy, because MLflow makes the tables by all migrations since its first version, which takes seconds.
    """
    shutil.copyfile(_empty_store()[1], path)
    return f"sqlite:///{path}"


def runs_of(client: MlflowClient) -> list[Run]:
    """Return all runs of a store, including deleted ones, the latest first."""
    from mlflow.entities import ViewType

    experiments = [e.experiment_id for e in client.search_experiments(view_type=ViewType.ALL)]
    return list(client.search_runs(experiments, run_view_type=ViewType.ALL))


@dataclass(frozen=True)
class Pushed:
    """An entry of the spool in the answer of ``cmtrack push --json``."""

    entry: Path
    status: str
    run_id: str | None
    reason: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Waiting:
    """An entry of the spool in the list of ``cmtrack spool --json``."""

    name: str
    path: Path
    kind: str
    made: str
    what: str
    meant_for: str
    size: int


def push(
    folder: Path | None = None,
    *,
    tracking_uri: str | None = None,
    experiment_name: str | None = None,
    replace_newer: bool = False,
) -> list[Pushed]:
    """Run ``cmtrack push`` in this process, and return its answer for each entry."""
    options = {"--tracking-uri": tracking_uri, "--experiment": experiment_name}
    flags = [part for flag, text in options.items() if text is not None for part in (flag, text)]
    answers = _entries("push", folder, *flags, *(["--replace"] if replace_newer else []))
    return [
        Pushed(**{**one, "entry": Path(one["entry"]), "problems": tuple(one["problems"])})
        for one in answers
    ]


def waiting(folder: Path | None = None) -> list[Waiting]:
    """Return the entries that ``cmtrack spool`` lists, the oldest first."""
    return [Waiting(**{**one, "path": Path(one["path"])}) for one in _entries("spool", folder)]


def _entries(command: str, folder: Path | None, *flags: str) -> list[dict[str, Any]]:
    from click.testing import CliRunner

    from cmtrack.cli import main

    place = [] if folder is None else ["--folder", str(folder)]
    done = CliRunner().invoke(main, [command, "--json", *place, *flags], catch_exceptions=False)
    try:
        return list(json.loads(done.stdout)["entries"])
    except ValueError:
        raise AssertionError(
            f"cmtrack {command} ended with {done.exit_code}: {done.output}"
        ) from None
