"""Entries that are waiting in the spool: ``listing`` describes them, and ``push`` sends them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cmtrack import untrusted
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation.loading import loads
from cmtrack.tracking import mlflow_inside, settings, spool
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.artifacts import origin
from cmtrack.tracking.contents import make
from cmtrack.tracking.deliver import BusyEntry, NoAnswer, answer_of, deliver
from cmtrack.tracking.entry import ARTIFACTS, Entry, State, state_of
from cmtrack.tracking.entry_file import MAX_BYTES, read
from cmtrack.tracking.names import EVALUATION_FILE, PREDICTIONS_FILE, file_name, tag
from cmtrack.tracking.runs import client_for
from cmtrack.tracking.store import ABSENT, end_run, experiment_named

if TYPE_CHECKING:
    from mlflow import MlflowClient


_NAME_ONE = "name an experiment for it (--experiment NAME, or experiment_name=)"
HOW_TO_EVALUATE = (
    f"the inputs of a failed evaluation: load {spool.INPUTS} with numpy.load, correct "
    "the arrays (y_true, y_pred, y_prob, sample_weight), pass them to cmtrack.log_evaluation, and "
    "remove the folder"
)


@dataclass(frozen=True)
class PushedEntry:
    """Result of pushing an entry.

    Attributes
    ----------
    entry : Path
    status : "sent", "kept" or "refused"
        "sent" means that the entry is in the run and no longer in the spool. "kept" means that the
        entry is still in the spool and can be sent later. "refused" means that the entry is
        damaged, or is not an evaluation.
    run_id : str or None
    reason : str
        The reason why the entry was not sent.
    problems : tuple of str
        Parts of the entry that were not sent.
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
    replace_newer: bool = False,
    progress: Callable[[str, int, int], object] | None = None,
) -> list[PushedEntry]:
    """Send the evaluations that are waiting in the spool to their runs.

    Sending an entry twice has the same effect as sending it once, and an entry that was only partly
    sent is sent again in full. If the store does not answer within ten seconds, the entry is kept.
    If a connection to a store fails, or if the store does not answer for two entries, all remaining
    entries for that store are kept without another attempt.

    ``folder``: the spool folder to send. By default, entries are sent from every folder in which
    :func:`cmtrack.log_evaluation` may have put them: ``CMTRACK_SPOOL`` or ``./cmtrack_spool``, the
    user's data folder and private temporary folders.
    ``tracking_uri``: the store to send to; by default the store that each entry names. Credentials
    are taken from MLflow's environment variables or from the current tracking URI.
    ``experiment_name``: the experiment in which a new run is created for an entry without a run, or
    for an entry whose run does not exist. If it is not given, such entries are kept.
    ``replace_newer``: whether to replace an evaluation in the run that is newer than the entry. An
        evaluation may seem newer only because another machine's clock is ahead. If False, the
    entry is kept.
    ``progress``: a function that is called with (current activity, number of finished entries,
    total number of entries).

    Returns the results in order of creation, without the entries that another push has sent in the
    meantime.
    """
    waiting = spool.waiting(folder)
    tell = progress or (lambda *_: None)
    job = _Push(tracking_uri, experiment_name, replace_newer)
    outcomes = []
    for done, path in enumerate(waiting):
        tell(f"sending {path.name.lstrip('.')}", done, len(waiting))
        pushed = job.push(path)
        if pushed.status == "sent" or pushed.entry.exists():  # otherwise another push has sent it
            outcomes.append(pushed)
    tell("done", len(waiting), len(waiting))
    return outcomes


@dataclass
class _Push:
    """A single pass over the waiting entries, which remembers the stores that do not answer."""

    tracking_uri: str | None
    experiment_name: str | None
    replace_newer: bool = False
    clients: dict[str, MlflowClient] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    unanswered: Counter[str] = field(default_factory=Counter)

    def push(self, path: Path) -> PushedEntry:
        """Send an entry; if this fails, the entry stays in the spool."""
        try:
            entry = self._whole(path)
        except Exception as error:
            status = "kept" if isinstance(error, BusyEntry) else "refused"
            return PushedEntry(path, status, reason=first_line(error))
        uri = ""
        removed: tuple[str, ...] = ()
        try:
            uri = self.tracking_uri or _with_credentials(entry.tracking_uri) or ""
            client = self._client(uri)
            self._find_run(entry, client)
            removed = settings.remove_forbidden_rows(entry)
            sent = deliver(entry, client, is_late=not self.replace_newer)
        except Exception as error:
            self._note_silence(uri, error)
            # Report removed rows, which are no longer in the entry although it was not sent.
            return PushedEntry(
                entry.written_folder, "kept", entry.run_id, first_line(error), problems=removed
            )
        problems = removed + entry.problems + sent.problems
        if sent.replaced:
            problems += (sent.replaced,)
        return PushedEntry(path, "sent", entry.run_id, problems=problems)

    def _whole(self, path: Path) -> Entry:
        """Read an entry, and complete it if it is unfinished."""
        state = state_of(path)
        if state is State.INPUTS:
            raise ValueError(HOW_TO_EVALUATE)
        if spool.is_foreign(path) and self.tracking_uri is None:
            raise ValueError("it belongs to another user: name the store with tracking_uri")
        entry = read(path)
        if state is State.UNFINISHED:
            return _rebuilt(entry, path)
        return entry

    def _client(self, uri: str) -> MlflowClient:
        """Return the client of a store; raise ConnectionError if the store stopped answering."""
        if uri in self.silent:
            raise ConnectionError(self.silent[uri])
        if uri not in self.clients:
            self.clients[uri] = client_for(uri or None)
        return self.clients[uri]

    def _find_run(self, entry: Entry, client: MlflowClient) -> None:
        """Create a run for an entry if the entry's run does not exist."""
        run_id = entry.run_id
        if run_id is not None and answer_of(partial(_exists, run_id, client)):
            return
        name = self.experiment_name
        if name is None:
            missing = "it has no run" if run_id is None else f"there is no run {run_id!r}"
            raise ValueError(f"{missing}: {_NAME_ONE}")
        answer_of(partial(_create_run, entry, client, name))

    def _note_silence(self, uri: str, error: Exception) -> None:
        """Stop using a store after a failed connection or after two entries without an answer."""
        if isinstance(error, NoAnswer):
            self.unanswered[uri] += 1
            if self.unanswered[uri] == 1:
                return
        if isinstance(error, ConnectionError):
            self.silent[uri] = first_line(error)


def _with_credentials(uri: str | None) -> str | None:
    """Return an entry's tracking URI; credentials are added for the current store.

    Raises ValueError if the entry names a different server, because otherwise a file could cause
    the user's password or token to be sent to any server.
    """
    import mlflow

    if not uri:
        return uri
    current = mlflow.get_tracking_uri()
    if untrusted.without_credentials(current) == uri:
        return current
    is_server = uri.lower().startswith(("http:", "https:"))
    if is_server and mlflow_inside.has_secret(uri):
        is_current = current.startswith("http") and origin(uri) == origin(current)
        if not is_current:
            shown = untrusted.without_credentials(uri)
            raise ValueError(
                f"it names the server {shown!r:.80}, which is not the current tracking server and "
                "would get your password or token: to allow this, give tracking_uri "
                "(--tracking-uri) or set MLFLOW_TRACKING_URI"
            )
    return uri


def _exists(run_id: str, client: MlflowClient) -> bool:
    from mlflow.exceptions import MlflowException

    try:
        client.get_run(run_id)
    except MlflowException as error:
        if error.error_code in ABSENT:
            return False
        raise
    return True


def _create_run(entry: Entry, client: MlflowClient, experiment_name: str) -> None:
    """Create the run of an entry, and store the run's id in the entry before anything is sent."""
    experiment_id = experiment_named(client, experiment_name)
    run = client.create_run(experiment_id, run_name=entry.written_folder.name)
    entry.run_id = run.info.run_id
    entry.rewrite()
    end_run(client, run.info.run_id)


def _rebuilt(unfinished: Entry, folder: Path) -> Entry:
    """Complete the unfinished entry of a killed process from its evaluation and rows.

    Raises ValueError if the evaluation is not complete, and BusyEntry if another process is already
    completing the entry.
    """
    evaluation, rows = _rescued(unfinished, folder)
    entry = replace(unfinished, folder=None, timestamp=spool.made(folder.name.lstrip(".")) or 0)
    if entry.has_rows and rows is None:
        entry.problems = ("the rows: the process was interrupted before it wrote them",)

    with spool.claimed(folder) as is_ours:
        if not is_ours:
            raise BusyEntry("it is already being sent")
        with entry.writing(folder):
            if rows is None:
                make(entry, evaluation)
            else:
                content = rows
                make(entry, evaluation, rows=lambda file: file.write(content), listed=evaluation)
            entry.finish()
        if entry.folder is None:
            raise OSError(f"it could not be rewritten: {'; '.join(entry.refusals)}")
    spool.remove(folder)
    return entry


def _rescued(unfinished: Entry, folder: Path) -> tuple[BaseEvaluation, bytes | None]:
    """Return the evaluation of an unfinished entry, and its rows if their file is complete."""
    artifacts = folder / ARTIFACTS
    file = artifacts / file_name(EVALUATION_FILE, unfinished.prefix)
    try:
        evaluation = loads(untrusted.read_file(file, MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"it was interrupted before the evaluation was complete: {first_line(error)}"
        ) from None
    try:
        file = artifacts / file_name(PREDICTIONS_FILE, unfinished.prefix)
        rows = untrusted.read_file(file, MAX_BYTES)
        return evaluation.with_rows(rows), rows
    except (OSError, ValueError):
        return evaluation, None


# -- listing ---------------------------------------------------------------------------------------

_WHAT = {
    State.INPUTS: "the inputs of a failed evaluation",
    State.UNFINISHED: "interrupted while it was written",
}


@dataclass(frozen=True)
class Waiting:
    """Description of an entry in the spool.

    ``kind``: "evaluation", "inputs", "unfinished" or "damaged".
    ``made``: creation time in UTC; empty if the time is not known.
    ``what``: a description of the entry's content.
    ``meant_for``: the run and the store to which the entry will be sent.
    ``size``: the total size of the entry's files in bytes.
    """

    name: str
    path: Path
    kind: str
    made: str
    what: str
    meant_for: str
    size: int


def listing(folder: str | Path | None = None) -> list[Waiting]:
    """List the entries in the spool, oldest first; damaged entries are marked.

    An entry that is sent in the meantime is omitted from the list.
    """
    waiting = []
    for path in spool.waiting(folder):
        with suppress(FileNotFoundError):
            described = _described(path)
            if path.exists():
                waiting.append(described)
    return waiting


def _described(path: Path) -> Waiting:
    state = state_of(path)
    kind = state.value
    meant_for = ""
    if state is State.READY:
        try:
            entry = read(path)
        except ValueError as error:
            kind = "damaged"
            what = str(error)
        else:
            what = _content_of(entry)
            meant_for = _run_of(entry)
    else:
        what = _WHAT[state]
    name = path.name.lstrip(".")
    return Waiting(name, path, kind, _time_of(name), what, meant_for, spool.size_of(path))


def _content_of(entry: Entry) -> str:
    n_rows = entry.tags.get(tag("samples", entry.prefix), "?")
    under = f", prefix {entry.prefix!r}" if entry.prefix else ""
    return f"evaluation of {n_rows} rows{under}"


def _run_of(entry: Entry) -> str:
    if entry.run_id is None:
        return "no run"
    store = f" in {entry.tracking_uri}" if entry.tracking_uri else ""
    return f"run {entry.run_id}{store}"


def _time_of(name: str) -> str:
    """Return the time in an entry's name, or an empty string if the name contains no time."""
    made = spool.made(name)
    if made is None:
        return ""
    return datetime.fromtimestamp(made / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
