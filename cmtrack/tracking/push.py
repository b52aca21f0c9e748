"""``push``: the evaluations in the spool are sent to their stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack import untrusted
from cmtrack.evaluation.loading import loads
from cmtrack.tracking import mlflow_inside, settings, spool
from cmtrack.tracking import package as packages
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.artifacts import origin
from cmtrack.tracking.dataset import checked_name
from cmtrack.tracking.deliver import BusyEntry, NoAnswer, deliver, within_patience
from cmtrack.tracking.manifest import MAX_BYTES, destination, read
from cmtrack.tracking.names import EVALUATION_FILE, PREDICTIONS_FILE, file_name
from cmtrack.tracking.runs import ABSENT, client_for
from cmtrack.tracking.store import end_run, experiment_named

if TYPE_CHECKING:
    from mlflow import MlflowClient


_NAME_ONE = "name an experiment for it (--experiment NAME, or experiment_name=)"
HOW_TO_EVALUATE = (
    f"the inputs of an evaluation that failed: load {spool.INPUTS} with numpy.load, correct the arrays (y_true, "
    "y_pred, y_prob, sample_weight), give them to cmtrack.log_evaluation, and remove the folder"
)


@dataclass(frozen=True)
class PushedEntry:
    """The outcome of pushing an entry.

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
    replace_newer: bool = False,
    progress: Callable[[str, int, int], object] | None = None,
) -> list[PushedEntry]:
    """Send the evaluations that wait in the spool to the runs that they were meant for.

    Sending twice leaves a run as sending once does; an entry that was half sent is sent whole. An entry for which the
    store does not answer within ten seconds is kept, and so are, without asking, all others of a store that gave no
    connection or twice no answer.

    ``folder``: by default every folder in which :func:`cmtrack.log_evaluation` may have put entries:
        ``./cmtrack_spool``, or what ``CMTRACK_SPOOL`` names, the user's data folder and private temporary folders.
    ``tracking_uri``: by default the store that each was meant for; its credentials come from MLflow's variables, or
        from the tracking URI that is set.
    ``experiment_name``: where an evaluation that was meant for no run, or for one that does not exist, gets a new one;
        without it such entries are kept.
    ``replace_newer``: whether an evaluation takes the place of one that its run holds with a later time, such as by the
        clock of another machine; else it is kept.
    ``progress``: called with (what is being done, done, in all).
    The result: in the order of their age; without entries that another push has sent meanwhile.
    """
    waiting = spool.entries(None if folder is None else Path(folder))
    tell = progress or (lambda *_: None)
    job = _Push(tracking_uri, experiment_name, replace_newer)
    out = []
    for done, entry in enumerate(waiting):
        tell(f"sending {entry.name}", done, len(waiting))
        pushed = job.push(entry)
        if pushed.status == "sent" or pushed.entry.exists():  # else another push has sent it
            out.append(pushed)
    tell("done", len(waiting), len(waiting))
    return out


@dataclass
class _Push:
    """One pass over the entries, with the state of their stores."""

    tracking_uri: str | None
    experiment_name: str | None
    replace_newer: bool = False
    clients: dict[str, MlflowClient] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    unanswered: Counter[str] = field(default_factory=Counter)

    def push(self, entry: spool.Entry) -> PushedEntry:
        """Send one entry; on an error it stays in the spool."""
        try:
            if entry.kind == "inputs":
                raise ValueError(HOW_TO_EVALUATE)
            if entry.foreign and self.tracking_uri is None:
                raise ValueError("it belongs to another user: name the store with tracking_uri")
            package = _rebuilt(entry) if entry.kind == "unfinished" else read(entry.folder)
        except Exception as error:
            status = "kept" if isinstance(error, BusyEntry) else "refused"
            return PushedEntry(entry.folder, status, reason=first_line(error))
        folder, run_id, uri = package.folder, package.run_id, ""
        assert folder is not None
        try:
            uri = self.tracking_uri or _with_credentials(package.tracking_uri) or ""
            if uri in self.silent:
                raise ConnectionError(self.silent[uri])
            client = self.clients.get(uri) or self.clients.setdefault(uri, client_for(uri or None))
            if run_id is None or not within_patience(lambda _: _exists(str(run_id), client)):
                if self.experiment_name is None:
                    missing = (
                        "it was meant for no run"
                        if run_id is None
                        else f"there is no run {run_id!r}"
                    )
                    raise ValueError(f"{missing}: {_NAME_ONE}")
                name = self.experiment_name
                package = within_patience(lambda _: _with_run(package, client, name))
                run_id = package.run_id
            package, taken = settings.allowed(package)
            sent = deliver(package, client, waited=not self.replace_newer)
        except Exception as error:
            reason, slow = first_line(error), isinstance(error, NoAnswer)
            self.unanswered[uri] += slow
            if isinstance(error, ConnectionError) and not (slow and self.unanswered[uri] == 1):
                self.silent[uri] = reason
            return PushedEntry(folder, "kept", run_id, reason)
        problems = (*taken, *package.problems, *sent.problems, *filter(None, [sent.replaced]))
        return PushedEntry(entry.folder, "sent", run_id, problems=problems)


def _with_credentials(uri: str | None) -> str | None:
    """The tracking URI of an entry, with the credentials of the current one if it is the same store.

    ValueError if it is another server, which would get the user's password or token because a file names it.
    """
    import mlflow

    current = mlflow.get_tracking_uri()
    if uri is None or untrusted.without_credentials(current) == uri:
        return current if uri else uri
    served = uri.lower().startswith(("http:", "https:"))
    if (
        served
        and mlflow_inside.has_secret(uri)
        and not (current.startswith("http") and origin(uri) == origin(current))
    ):
        shown = untrusted.without_credentials(uri)
        raise ValueError(
            f"it names the server {shown!r:.80}, which is not the one that is set and would get your password or "
            "token: name it with tracking_uri (--tracking-uri), or set MLFLOW_TRACKING_URI"
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


def _with_run(
    package: packages.Package, client: MlflowClient, experiment_name: str
) -> packages.Package:
    """Create a run for an evaluation without one; its id is stored in the entry before anything is sent."""
    assert package.folder is not None
    run = client.create_run(experiment_named(client, experiment_name), run_name=package.folder.name)
    package = replace(package, run_id=run.info.run_id)
    packages.rewrite(package)
    end_run(client, run.info.run_id)
    return package


def _rebuilt(entry: spool.Entry) -> packages.Package:
    """Rebuild the package that a killed process left unfinished, from its evaluation and rows.

    ValueError if not even the evaluation is whole; BusyEntry if somebody else does the same.
    """
    intent = spool.read_intent(entry.folder)
    place = destination(intent, spool.INTENT)
    file = entry.folder / spool.ARTIFACTS / file_name(EVALUATION_FILE, place["prefix"])
    try:
        evaluation = loads(untrusted.read_file(file, MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"it was interrupted before the evaluation was complete: {first_line(error)}"
        ) from None
    rows: bytes | None = None
    try:
        rows = untrusted.read_file(
            file.with_name(file_name(PREDICTIONS_FILE, place["prefix"])), MAX_BYTES
        )
        evaluation = evaluation.with_rows(rows)
    except (OSError, ValueError):
        rows = None
    to = packages.Destination(
        **place,
        metrics=intent.get("metrics", "headline"),
        on_existing="error" if intent.get("on_existing") == "error" else "replace",
        dataset=checked_name(intent.get("dataset")),
    )
    asked: dict[str, Any] = (
        {} if rows is None else {"rows": lambda file: file.write(rows), "listed": evaluation}
    )
    problems = ["the rows: it was interrupted before they were written"] * bool(
        intent.get("rows") and not rows
    )
    with spool.claimed(entry.folder) as ours:
        if not ours:
            raise BusyEntry("it is being sent already")
        with spool.new_entry(of=entry.folder) as draft:
            package = packages.build(
                evaluation,
                draft.write,
                to,
                **asked,
                problems=problems,
                timestamp=spool.made(entry.name),
            )
            folder = draft.settle()
        if folder is None:
            raise OSError(f"it could not be rewritten: {'; '.join(draft.refusals)}")
    spool.remove(entry.folder)
    return replace(package, folder=folder)
