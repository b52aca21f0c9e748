"""``push``: what waits in the spool goes to the store."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.evaluation.face import loads
from cmtrack.tracking import package as packages
from cmtrack.tracking import spool
from cmtrack.tracking.manifest import read
from cmtrack.tracking.names import EVALUATION_FILE, file_name
from cmtrack.tracking.runs import ABSENT, client_for, first_line
from cmtrack.tracking.send import send

if TYPE_CHECKING:
    from mlflow import MlflowClient


@dataclass(frozen=True)
class PushedEntry:
    """What became of an entry.

    Attributes
    ----------
    entry : Path
    status : "sent", "kept" or "refused"
        In the run, and no longer in the spool; still there, to be sent later; damaged, or nothing that can be sent.
    run_id : str or None
    reason : str
        Why it was not sent.
    problems : tuple of str
        What had to be left out.
    """

    entry: Path
    status: str
    run_id: str | None = None
    reason: str = ""
    problems: tuple[str, ...] = ()


def push(
    folder: str | Path | None = None,
    *,
    tracking_uri: str | None = None,
    experiment_name: str | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> list[PushedEntry]:
    """Send the evaluations that wait in the spool to the runs that they were meant for.

    Sending twice leaves a run as sending once does; an entry that was half sent is sent whole. A store that does not
    answer is asked once.

    Parameters
    ----------
    folder : path, optional
        By default ``./cmtrack_spool``, or what ``CMTRACK_SPOOL`` names.
    tracking_uri : str, optional
        By default the store that each was meant for.
    experiment_name : str, optional
        Where an evaluation that was meant for no run, or for one that does not exist, gets a new one; without it such
        entries are kept.
    progress : callable, optional
        Called with (what is being done, done, in all).

    Returns
    -------
    list of PushedEntry
        In the order of their age.
    """
    waiting = spool.entries(None if folder is None else Path(folder))
    tell = progress or (lambda *_: None)
    silent: dict[str, str] = {}
    clients: dict[str, MlflowClient] = {}
    out = []
    for done, entry in enumerate(waiting):
        tell(f"sending {entry.name}", done, len(waiting))
        out.append(_push(entry, tracking_uri, experiment_name, clients, silent))
    tell("done", len(waiting), len(waiting))
    return out


def _push(
    entry: spool.Entry,
    tracking_uri: str | None,
    experiment_name: str | None,
    clients: dict[str, MlflowClient],
    silent: dict[str, str],
) -> PushedEntry:
    run_id = None
    try:
        if entry.kind == "inputs":
            return PushedEntry(entry.folder, "refused", reason="the inputs of an evaluation that failed: evaluate them")
        package = _rebuilt(entry) if entry.kind == "unfinished" else read(entry.folder)
    except Exception as error:
        return PushedEntry(entry.folder, "refused", reason=first_line(error))
    uri = tracking_uri or package.tracking_uri or ""
    run_id = package.run_id
    if uri in silent:
        return PushedEntry(entry.folder, "kept", run_id, silent[uri])
    try:
        client = clients.get(uri) or clients.setdefault(uri, client_for(uri or None))
        if run_id is None or not _exists(run_id, client):
            if experiment_name is None:
                missing = "it was meant for no run" if run_id is None else f"there is no run {run_id!r}"
                return PushedEntry(package.folder, "kept", run_id, f"{missing}: name an experiment for it")
            package = _with_run(package, client, experiment_name)
            run_id = package.run_id
        problems = send(package, client)
    except ConnectionError as error:
        silent[uri] = first_line(error)
        return PushedEntry(package.folder, "kept", run_id, first_line(error))
    except Exception as error:
        return PushedEntry(package.folder, "kept", run_id, first_line(error))
    spool.remove(package.folder)
    return PushedEntry(entry.folder, "sent", run_id, problems=(*package.problems, *problems))


def _exists(run_id: str, client: MlflowClient) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        client.get_run(run_id)
    except MlflowException as error:
        if error.error_code in ABSENT:
            return False
        raise
    return True


def _with_run(package: packages.Package, client: MlflowClient, experiment_name: str) -> packages.Package:
    """A new run for an evaluation that has none; the entry remembers it before anything is sent."""
    experiment = client.get_experiment_by_name(experiment_name)
    where = client.create_experiment(experiment_name) if experiment is None else experiment.experiment_id
    run = client.create_run(where, run_name=package.folder.name)
    package = replace(package, run_id=run.info.run_id)
    packages.write_manifest(package)
    client.set_terminated(run.info.run_id, "FINISHED")
    return package


def _rebuilt(entry: spool.Entry) -> packages.Package:
    """A whole package from what a killed process left: its evaluation, which is written first.

    Raises
    ------
    ValueError
        If not even the evaluation is whole.
    """
    intent = _intent(entry.folder)
    file = entry.folder / "artifacts" / file_name(EVALUATION_FILE, str(intent.get("prefix") or ""))
    try:
        evaluation = loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"it was cut off before the evaluation was whole: {first_line(error)}") from None
    options: dict[str, Any] = {name: intent.get(name) for name in ("run_id", "step", "model_id", "tracking_uri")}
    with spool.new_entry(**intent) as partial:
        package = packages.build(evaluation, partial, prefix=str(intent.get("prefix") or ""), **options)
        settled = replace(package, folder=spool.settle(partial))
    spool.remove(entry.folder)
    return settled


def _intent(folder: Path) -> dict[str, Any]:
    path = folder / spool.INTENT
    if os.path.getsize(path) > 1 << 20:
        raise ValueError(f"{spool.INTENT} is larger than 1 MB")
    data = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError(f"{spool.INTENT} must hold a mapping, got {type(data).__name__}")
    return data
