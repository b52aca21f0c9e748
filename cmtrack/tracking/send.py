"""Functions that send an entry to a run, where the entry may replace an earlier evaluation."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cmtrack import untrusted
from cmtrack.names import some_of
from cmtrack.tracking import artifacts, names, spool
from cmtrack.tracking import dataset as datasets
from cmtrack.tracking._warn import causes, first_line
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.description import with_links
from cmtrack.tracking.entry import Entry
from cmtrack.tracking.held import AGAIN, LEFT_OUT, STALE, STEP, Held
from cmtrack.tracking.shared_tags import Part, write_shared_tags

if TYPE_CHECKING:
    from mlflow import MlflowClient

METRICS_ONLY = "metrics only"
"""Status of an evaluation whose metrics are in the run, but whose file is missing."""
_BATCH = 1000
"""Maximum number of metrics in one request to MLflow."""
_PASSING = (408, 425, 429)
"""HTTP status codes between 400 and 499 after which the request may succeed if repeated."""


@dataclass(frozen=True)
class Sent:
    """Result of sending an entry.

    ``problems``: parts that were not sent, such as a file that the store refused or a link to a
        model that does not exist.
    ``replaced``: a sentence that describes the replaced evaluation; empty if no evaluation was
    replaced.
    ``stays``: whether the run keeps its earlier evaluation, because that evaluation is newer than
    the entry or belongs to a higher step.
    """

    problems: tuple[str, ...] = ()
    replaced: str = ""
    stays: bool = False


class NotThere(OSError):
    """Error raised if the store has accepted a file but does not contain it."""


class MixedUp(ConnectionError):
    """Error raised if another process sent an evaluation to the same place at the same time.

    This process must send its evaluation again.
    """


def send(
    entry: Entry,
    client: MlflowClient | None = None,
    answered: Callable[[], object] = lambda: None,
    late: Callable[[], bool] = lambda: False,
) -> Sent:
    """Send an entry to its run: first the evaluation and metrics, then all other files, then tags.

    The run is never opened, closed or re-opened, and no active run is needed. The tag
    ``cmtrack.status`` changes from ``started`` to ``completed``, so incomplete evaluations can be
    recognized. Sending an entry twice has the same effect as sending it once. If the store refuses
    any file except the evaluation, perhaps because a proxy limits the size of uploads, the file is
    skipped and listed in the tag ``cmtrack.left_out``.

    MLflow shows the metrics of a run's highest step. Therefore the run's files also come from the
    highest step, and for an evaluation of a lower step only the metrics are logged. An evaluation
    without a step is logged at the highest step.

    Raises MlflowException if the run does not exist, if it is deleted, or if the store refuses a
    write. Raises ValueError if the run is deleted, or if it contains a different evaluation that
    must not be replaced. Also raises ValueError if the store refuses the evaluation's file; in that
    case only the metrics are added to the run.

    ``answered``: called after each response of the store.
    ``late``: function that returns True if the entry was waiting; a late entry does not replace a
        newer evaluation.
    """
    from mlflow import MlflowClient

    client = client or MlflowClient()
    run_id = entry.run_id
    if run_id is None:
        raise ValueError("an entry must have a run to be sent to, got none")
    run = client.get_run(run_id)
    answered()
    if run.info.lifecycle_stage != "active":
        raise ValueError(f"run {run_id} is {run.info.lifecycle_stage}, so it accepts no metrics")
    held = Held(run, entry)
    if held.has_whole_entry:
        _tell_waiting_senders(client, held)
        return Sent()
    if held.other_evaluation and entry.on_existing == "error":
        raise ValueError(
            f"run {run_id} holds {held.other_evaluation}: use prefix= to keep both, "
            "or on_existing='replace'"
        )
    is_late = late()
    if held.is_newer and entry.step is None and not is_late:
        # MLflow shows the latest point of each metric.
        entry = replace(entry, timestamp=held.newest + 1)
    sending = _Sending(artifacts.filing(client, run.info.artifact_uri), held, entry, answered, late)
    metrics, problems = sending.make_metrics()
    staying = held.evaluation_that_stays(is_late)
    if not staying:
        return sending.send_whole(metrics, problems)
    if entry.step is None:
        _check_has_same_files(held)
        return Sent()
    sending.log_metrics(metrics)
    return Sent((f"run {run_id} holds {staying}, which stays", *problems), stays=True)


def _tell_waiting_senders(client: MlflowClient, held: Held) -> None:
    """Tag the run with the entry's time if other entries, which may be older, are waiting.

    Otherwise an older entry could later replace an evaluation that was just logged again.
    """
    entry = held.entry
    others = (folder != entry.folder for folder in spool.waiting())
    if held.newest < entry.timestamp and any(others):
        client.set_tag(entry.run_id, names.tag(AGAIN, entry.prefix), str(entry.timestamp))


def _check_has_same_files(held: Held) -> None:
    """Raise ValueError if a run contains a later evaluation whose files differ from the entry's."""
    # An entry left by a killed process may lack files, but the run contains all of them.
    if not held.has_same_files:
        raise ValueError(
            f"run {held.entry.run_id} holds an evaluation with a later time, which stays: "
            "`cmtrack push --replace` replaces it; to discard this entry, remove its folder"
        )


@dataclass(frozen=True, eq=False)
class _Sending:
    """An entry that is being sent to a run.

    ``client``: a client that reads and writes the run's files only on allowed servers.
    ``held``: the content of the run before sending.
    ``answered``: called after each response of the store.
    ``late``: function that returns True if the entry has become late.
    """

    client: MlflowClient
    held: Held
    entry: Entry
    answered: Callable[[], object]
    late: Callable[[], bool]

    @property
    def run_id(self) -> str:
        return str(self.entry.run_id)

    def send_whole(self, metrics: list[Any], problems: tuple[str, ...]) -> Sent:
        """Send metrics, files and final tags, and remove the files of the earlier evaluation."""
        entry = self.entry
        held = self.held
        shown_step = held.metrics_step
        if shown_step is not None and held.step < shown_step:
            problems += (
                f"run {self.run_id} has metrics of step {shown_step}, but not its evaluation",
            )
        files = entry.files
        self._set_status("started")
        refusal = self._send_evaluation(metrics)
        if refusal:
            self._set_status(METRICS_ONLY)
            raise ValueError(f"{refusal} has only the metrics")
        left_out = self._send_other_files(files[1:])
        sent_files = [name for name in files if name not in left_out]
        model_id = _model_of_another_run(held.run, metrics)
        # A training logs the same rows at each step, which MLflow would compare and skip.
        if model_id is not None or not datasets.is_there(held.run, entry.dataset):
            datasets.log(self.client, self.run_id, entry.dataset, model_id)
            self.answered()
        problems += self._read_back(sent_files)
        self.answered()

        tags = self._closing_tags(left_out)
        if left_out:
            problems += (f"refused by the store: {_named(left_out)}",)
        # An interrupted sender may have left files and metrics of another evaluation.
        is_cut_off = entry.step is None and held.tag("status") not in (None, "completed")
        stale_metrics: list[str] = []
        if held.other_evaluation or is_cut_off:
            problems += self._remove_old_files(files)
            stale_metrics = held.stale_metrics()
        if stale_metrics:
            tags[names.tag(STALE, entry.prefix)] = names.tag_text(", ".join(stale_metrics))
        problems += self._close(tags, sent_files)
        self.answered()
        for name in held.old_tags(tags):
            self.client.delete_tag(self.run_id, name)
        if not held.other_evaluation:
            return Sent(problems)
        return Sent(problems, _replacement(self.run_id, held.other_evaluation, stale_metrics))

    def _set_status(self, status: str) -> None:
        self.client.set_tag(self.run_id, names.tag("status", self.entry.prefix), status)

    # -- metrics -----------------------------------------------------------------------------------

    def make_metrics(self) -> tuple[list[Any], tuple[str, ...]]:
        """Return the entry's metric points, and any problems with linking them to a model."""
        from mlflow.entities import Metric

        entry = self.entry
        model_id, problems = self._model_to_link()
        link = {}
        if model_id is not None:
            link = {
                "model_id": model_id,
                "dataset_name": entry.dataset["name"],
                "dataset_digest": entry.dataset["digest"],
            }
        points = [
            Metric(name, value, entry.timestamp, self.held.step, **link)
            for name, value in entry.metrics.items()
        ]
        return points, problems

    def _model_to_link(self) -> tuple[str | None, tuple[str, ...]]:
        """Return the model to which the metrics belong, and a problem if linking is impossible."""
        from mlflow.exceptions import MlflowException

        entry = self.entry
        if entry.model_id is None:
            # Like MLflow's fluent functions, link the model that the run logged at this step.
            step = entry.step or 0
            models = [model for model in _logged_models(self.held.run) if model.step == step]
            model_id = models[0].model_id if len(models) == 1 else None
            return model_id, ()
        try:
            self.client.get_logged_model(entry.model_id)
        except MlflowException as error:
            # MLflow would refuse the whole batch of metrics because of one unknown model.
            return None, (f"link to model {entry.model_id!r}: {error}",)
        return entry.model_id, ()

    def log_metrics(self, metrics: list[Any]) -> None:
        """Log metric points in batches."""
        for start in range(0, len(metrics), _BATCH):
            batch = metrics[start : start + _BATCH]
            self.client.log_batch(self.run_id, metrics=batch, synchronous=True)
            self.answered()

    # -- files -------------------------------------------------------------------------------------

    def _send_evaluation(self, metrics: list[Any]) -> str:
        """Send the evaluation's file, then its metrics; return the reason if the file is refused.

        The returned text ends with the run's name, so that the caller can append a description of
        what the run contains.
        """
        refusal = f"no folder could be written: run {self.run_id}"
        if self.entry.folder is not None:
            file = self.entry.files[0]
            reason = _refusal(lambda: self._upload(file))
            refusal = f"the store refused {file} ({reason}): the run" if reason else ""
        self.answered()
        self.log_metrics(metrics)
        return refusal

    def _send_other_files(self, files: Iterable[str]) -> dict[str, str]:
        """Upload the other files and the image; return a mapping from refused files to reasons."""
        left_out = {}
        for name in files:
            reason = _refusal(
                lambda name=name: self._upload(name),  # type: ignore[misc]
                lambda: self.client.get_run(self.run_id),
            )
            if reason:
                left_out[name] = reason
            self.answered()
        reason = _refusal(self._log_images)
        if reason:
            left_out["the image of the chart view"] = reason
        self.answered()
        return left_out

    def _upload(self, name: str) -> None:
        self.client.log_artifact(self.run_id, str(self.entry.path_of(name)))

    def _log_images(self) -> None:
        """Log the images for MLflow's charts, unless the run already contains them."""
        entry = self.entry
        status = self.held.tag("status")
        paths: list[str] = []
        # Earlier images are possible only after an interrupted sender, or for an entry that has
        # waited. A run with thousands of steps contains thousands of images, and listing them would
        # take longer at each step.
        if entry.images and status is not None and (self.late() or status != "completed"):
            paths = [file.path for file in self.client.list_artifacts(self.run_id, "images")]
        for key, file in entry.images.items():
            name = self._image_name(key)
            logged = [path for path in paths if name.fullmatch(path)]
            content = entry.image(file)
            # MLflow writes two files for an image, and the WebP file is the second.
            if content is None or any(path.endswith(".webp") for path in logged):
                continue
            self._log_image(key, content)
            # Remove the first file of an incomplete image, although some stores cannot remove
            # files.
            with contextlib.suppress(Exception):
                for path in logged:
                    self._delete_file(path)

    def _image_name(self, key: str) -> re.Pattern[str]:
        """Return a pattern for the paths that MLflow gives an image, with key, step and time."""
        parts = (
            "images/" + "[~#]".join(map(re.escape, key.split("/"))),
            "step",
            str(self.held.step),
            "timestamp",
            str(self.entry.timestamp),
            r"[^/]*",
        )
        return re.compile("[+%]".join(parts))

    def _log_image(self, key: str, content: bytes) -> None:
        # This import requires Pillow, which is installed if the figure could be drawn.
        from cmtrack.tracking.images import DrawnImage

        with DrawnImage(content) as image:
            self.client.log_image(
                self.run_id,
                image,
                key=key,
                step=self.held.step,
                timestamp=self.entry.timestamp,
                synchronous=True,
            )

    def _delete_file(self, path: str) -> None:
        uri = self.held.run.info.artifact_uri
        artifacts.repository_for(uri, self.client.tracking_uri).delete_artifacts(path)

    def _remove_old_files(self, files: Iterable[str]) -> tuple[str, ...]:
        """Remove the earlier evaluation's remaining files; return a problem if this fails."""
        start = names.file_name("cmtrack_", self.entry.prefix)
        try:
            items = self.client.list_artifacts(self.run_id)
            listed = [item.path for item in items if not item.is_dir]
            old = [path for path in listed if path.startswith(start) and path not in files]
            # Check all names before the first file is removed.
            for path in [untrusted.file_name(path) for path in old]:
                self._delete_file(path)
        except Exception as error:  # any error, because some stores cannot remove files
            reason = first_line(error)
            return (f"files of the replaced evaluation could not be removed: {reason}",)
        return ()

    # -- reading back ------------------------------------------------------------------------------

    def _read_back(self, sent_files: list[str]) -> tuple[str, ...]:
        """Compare the run's files with the sent files; return a problem if this is impossible.

        A proxy may respond with status 200 and its own page, or redirect to a login page. Therefore
        the copy in the spool must not be removed before the files are checked. If a store cannot
        list its files, the evaluation's file is read instead. Raises NotThere if a file is missing,
        and MixedUp if the size of a file is different because another writer sent it.
        """
        try:
            items = self.client.list_artifacts(self.run_id)
        except Exception:
            # Errors of any type: MLflow cannot list plain HTTP servers, and some stores forbid it.
            return self._read_evaluation_back(sent_files[0])
        sizes = {item.path: item.file_size for item in items if not item.is_dir}
        for name in sent_files:
            if name not in sizes:
                raise NotThere(f"the store has accepted {name}, but does not contain it")
            size = self.entry.path_of(name).stat().st_size
            if sizes[name] is not None and sizes[name] != size:
                raise MixedUp(
                    f"the store has accepted {name}, but has {sizes[name]:,} bytes "
                    f"instead of {size:,}"
                )
        return ()

    def _read_evaluation_back(self, name: str) -> tuple[str, ...]:
        """Check the evaluation's file; raise NotThere if it is not the file that was sent."""
        try:
            content = self._read(name)
        except FileNotFoundError:
            content = b""
        except (OSError, ValueError) as error:
            reason = first_line(error)
            return (f"the store does not list its files ({reason}), so they could not be compared",)
        if digest_of(content) != self.entry.digest(names.EVALUATION_FILE):
            raise NotThere(f"the store has accepted {name}, but does not contain it")
        return ()

    def _read(self, name: str) -> bytes:
        return artifacts.read(self.held.run.info.artifact_uri, name, self.client.tracking_uri)

    # -- closing -----------------------------------------------------------------------------------

    def _closing_tags(self, left_out: Mapping[str, str]) -> dict[str, str]:
        """Return the tags to write at the end, including the names of refused files."""
        entry = self.entry
        rows = names.file_name(names.PREDICTIONS_FILE, entry.prefix)
        tags = entry.tags_with_rows(None) if rows in left_out else dict(entry.tags)
        if left_out:
            tags[names.tag(LEFT_OUT, entry.prefix)] = names.tag_text(_named(left_out))
        if entry.step is not None or self.held.step:
            tags[names.tag(STEP, entry.prefix)] = str(self.held.step)
        tags[names.tag("status", entry.prefix)] = "completed"
        return tags

    def _close(self, tags: dict[str, str], sent_files: list[str]) -> tuple[str, ...]:
        """Write the final tags, and check that no other writer has replaced the tags or the file.

        Raises MixedUp if the evaluation's file comes from another writer.
        """
        entry = self.entry
        segments = names.file_name(names.SEGMENTS_FILE, entry.prefix)
        experiment_id = str(self.held.run.info.experiment_id)
        links = {quote(name) for name in sent_files}
        block = with_links(entry.description, experiment_id, self.run_id, links)
        tables = tuple(table for table in (entry.table, segments) if table in sent_files)
        tags_after, missing = write_shared_tags(
            self.client,
            self.run_id,
            Part(entry.prefix, block, tables),
            tags=tags,
            removed_tables=() if segments in entry.files else (segments,),
            folder=entry.folder,
        )
        problems: tuple[str, ...] = ()
        if missing:
            problems = (f"{some_of(missing, 3)}: no room in MLflow's tag",)
        if entry.step is None:  # otherwise, the next step replaces it anyway
            problems += self._compare_with_tags(tags_after, sent_files[0])
        return problems

    def _compare_with_tags(self, tags: Mapping[str, str], file: str) -> tuple[str, ...]:
        """Compare the evaluation's file with its tag; return a problem if the file was replaced."""
        sent_digest = self.entry.digest(names.EVALUATION_FILE)
        if sent_digest is None:
            return ()
        key = names.digest_key(names.EVALUATION_FILE)
        if names.digests(tags, self.entry.prefix).get(key) != sent_digest:
            return ("another evaluation was sent at the same time, and has replaced it",)
        try:
            content = self._read(file)
        except (OSError, ValueError):  # the store allows writing but not reading
            return ()
        if digest_of(content) == sent_digest:
            return ()
        self._set_status("started")
        raise MixedUp("another evaluation was sent to the same place at the same time")


def _logged_models(run: Any) -> list[Any]:
    """Return the models that a run logged, or an empty list in MLflow 2."""
    return getattr(getattr(run, "outputs", None), "model_outputs", None) or []


def _model_of_another_run(run: Any, metrics: list[Any]) -> str | None:
    """Return the model linked to the metrics if a different run logged it, otherwise None."""
    model_id = next((metric.model_id for metric in metrics), None)
    is_of_run = model_id in {model.model_id for model in _logged_models(run)}
    return None if is_of_run else model_id


def _replacement(run_id: str, replaced: str, stale_metrics: list[str]) -> str:
    """Return a sentence that describes the replaced evaluation."""
    text = (
        f"run {run_id} held {replaced}, which was replaced: "
        "use prefix= for several evaluations in the same run"
    )
    if stale_metrics:
        text += f"; MLflow keeps these old metrics: {some_of(stale_metrics, 5)}"
    return text


def _named(left_out: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({reason})" for name, reason in left_out.items())


# -- refusals --------------------------------------------------------------------------------------


def _refusal(upload: Callable[[], object], ask_store: Callable[[], object] | None = None) -> str:
    """Upload a file; return the reason if the store refuses it, otherwise an empty string.

    If a file is too large, a proxy may close the connection instead of sending an error. If the
    store answers ``ask_store`` but the connection is closed again at the second attempt, this
    counts as a refusal. All other exceptions are raised, because the upload may succeed later.
    """
    for is_second_try in (False, True):
        try:
            upload()
            return ""
        except Exception as error:
            reason = _reason_of(error)
            if reason:
                return reason
            if ask_store is None or not _is_closed(error):
                raise
        if not is_second_try:
            ask_store()
    return "the connection was closed"


def _reason_of(error: BaseException) -> str:
    """Return the reason if an error is a permanent refusal, or an empty string for other errors."""
    for cause in causes(error):
        response = getattr(cause, "response", None)
        if isinstance(response, dict):  # an error that an S3 client raised
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            reason = response.get("Error", {}).get("Code")
        else:
            status = getattr(response, "status_code", None)
            reason = getattr(response, "reason", None)
        if isinstance(status, int) and 400 <= status < 500 and status not in _PASSING:
            return untrusted.printable(f"{status} {reason or ''}".strip())
        if isinstance(cause, OSError) and cause.errno == errno.EFBIG:
            return "file too large"
        if isinstance(cause, artifacts.NoFolder):
            return str(cause)
    return ""


def _is_closed(error: BaseException) -> bool:
    from requests.exceptions import ConnectionError as Closed

    closed = (Closed, ConnectionResetError, BrokenPipeError)
    return any(isinstance(cause, closed) for cause in causes(error))
