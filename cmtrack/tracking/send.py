"""Sending an entry to an existing run, in place of the evaluation that it replaces."""

from __future__ import annotations

import contextlib
import errno
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from cmtrack import untrusted
from cmtrack._lazy import needs
from cmtrack.evaluation.catalog import lookup
from cmtrack.names import some_of
from cmtrack.tracking import artifacts, mlflow_inside, names, spool
from cmtrack.tracking import dataset as datasets
from cmtrack.tracking._warn import first_line
from cmtrack.tracking.cache import digest_of
from cmtrack.tracking.description import MAX_NOTE, NOTE, has_block, with_block, with_links
from cmtrack.tracking.entry import Entry

if TYPE_CHECKING:
    from mlflow import MlflowClient

PROBE_SECONDS = (3.0, 10.0)
"""To connect, and to answer."""
METRICS_ONLY = "metrics only"
"""Status of an evaluation whose file is not in the run."""
TABLES = "mlflow.loggedArtifacts"
"""Tag that lists the tables which MLflow's artifact view compares."""
_BATCH = 1000
_PASSING = (408, 425, 429)
_DATABASES = ("sqlite", "postgresql", "mysql", "mssql")


@dataclass(frozen=True)
class Sent:
    """The outcome of sending.

    ``problems``: what had to be left out, such as a refused file or the link to a model that does
    not exist. ``replaced``: which other evaluation had to make room, in a sentence; empty where
    none had. ``stays``: whether the run keeps the evaluation that it held, of a higher step or a
    newer one.
    """

    problems: tuple[str, ...] = ()
    replaced: str = ""
    stays: bool = False


def send(
    entry: Entry,
    client: MlflowClient | None = None,
    answered: Callable[[], object] = lambda: None,
    late: Callable[[], bool] = lambda: False,
) -> Sent:
    """Send an entry to its run: the evaluation and all metrics first, then the other files, then the closing tags.

    The run is never opened, closed or re-opened, and nothing depends on an active run. The tag
    ``cmtrack.status`` goes from ``started`` to ``completed``, so half-written runs can be told
    apart. Sending twice leaves the run as sending once. A file other than the evaluation that the
    store refuses, such as one larger than a proxy lets through, is left out and named in the tag
    ``cmtrack.left_out``. ``answered`` is called whenever the store has taken something; ``late``
    says whether the entry is late, as one that has waited: it then leaves a newer evaluation in its
    place. MlflowException if the run does not exist, is deleted, or refuses a write; ValueError if
    the run is deleted or holds another evaluation that must not be replaced, or the store refuses
    the evaluation's file: then the run has the metrics only.

    MLflow shows the metrics of a run's highest step, so its files are also those of the highest
    step. An evaluation of a lower step logs only its metrics. An evaluation without a step is
    logged at the highest step.
    """
    from mlflow import MlflowClient

    client = client or MlflowClient()
    run_id = entry.run_id
    if run_id is None:
        raise ValueError("an entry must have a run to be sent to, got none")
    run = client.get_run(run_id)
    answered()
    if run.info.lifecycle_stage != "active":
        raise ValueError(f"run {run_id} is {run.info.lifecycle_stage}: it accepts no metrics")
    shown_step = highest_step(run, entry)
    held_step = step_of_evaluation(run, entry)
    step = entry.step
    if step is None:  # then the highest one: MLflow shows the metrics of that step
        step = max((known for known in (shown_step, held_step) if known is not None), default=0)
    newest = _newest(run, entry, step)
    if is_there(run, entry):
        # perhaps another one of this place, made in between
        others = (folder != entry.folder for folder in spool.waiting())
        if newest < entry.timestamp and any(others):
            client.set_tag(run_id, names.tag(AGAIN, entry.prefix), str(entry.timestamp))
        return Sent()
    there = what_is_there(run, entry)
    if there and entry.on_existing == "error":
        raise ValueError(
            f"run {run_id} holds {there}: use prefix= for another one, or on_existing='replace'"
        )
    status = run.data.tags.get(names.tag("status", entry.prefix))
    is_late = late()
    is_outdated = newest > entry.timestamp and (held_step is None or step <= held_step)
    if is_outdated and entry.step is None and not is_late:
        entry = replace(entry, timestamp=newest + 1)  # MLflow shows the latest of each metric
    metrics, problems = _metrics(client, run, entry, step)

    newer = ""
    if held_step is not None and step < held_step:
        newer = f"the evaluation of step {held_step}"
    elif is_outdated and is_late:
        newer = f"a later evaluation of step {step}"
    if newer and status == "completed":
        if entry.step is None:
            _check_is_held(run, entry)
            return Sent()
        _log_metrics(client, run_id, metrics, answered)
        return Sent((f"run {run_id} holds {newer}, which stays", *problems), stays=True)
    if shown_step is not None and step < shown_step:
        problems += (f"run {run_id} has metrics of step {shown_step}, but not its evaluation",)

    files = entry.files
    client = artifacts.filing(client, run.info.artifact_uri)
    client.set_tag(run_id, names.tag("status", entry.prefix), "started")
    refusal = _send_evaluation(client, entry, metrics, answered)
    if refusal:
        client.set_tag(run_id, names.tag("status", entry.prefix), METRICS_ONLY)
        raise ValueError(f"{refusal} has the metrics only")
    left_out = dict(_optional(client, run, replace(entry, step=step), files[1:], answered, late))
    sent = [name for name in files if name not in left_out]
    datasets.log(client, run_id, entry.dataset, _evaluated_elsewhere(run, metrics))
    answered()
    problems += _read_back(client, run, entry, sent)
    answered()

    tags = _closing_tags(entry, step, left_out)
    if left_out:
        problems += (f"refused by the store: {_named(left_out)}",)
    # a sending that was cut off perhaps left files and metrics of another evaluation
    is_cut_off = entry.step is None and status not in (None, "completed")
    stale: list[str] = []
    if there or is_cut_off:
        problems += _remove_old_files(client, run, entry, files)
        stale = stale_metrics(run, entry)
    if stale:
        tags[names.tag(STALE, entry.prefix)] = names.tag_text(", ".join(stale))
    problems += _close(client, run, entry, tags, sent)
    answered()
    for name in old_tags(run, entry, tags):
        client.delete_tag(run_id, name)
    return Sent(problems, _replacement(run_id, there, stale) if there else "")


def _check_is_held(run: Any, entry: Entry) -> None:
    """Raise ValueError if a run holds a later evaluation that is not the same one."""
    # one that was cut off before it had its rows lacks only what is there
    if not _holds_all_of(run, entry):
        raise ValueError(
            f"run {run.info.run_id} holds an evaluation with a later time, which stays: `cmtrack "
            f"push --replace` puts "
            "this one in its place, and removing its folder discards it"
        )


def _send_evaluation(
    client: MlflowClient, entry: Entry, metrics: list[Any], answered: Callable[[], object]
) -> str:
    """Send the evaluation's file, then its metrics; return why the run has no file, up to the run itself."""
    run_id = str(entry.run_id)
    refusal = f"no folder could be written: run {run_id}"
    if entry.folder is not None:
        file = entry.files[0]
        reason = _refusal(lambda: _upload(client, entry, file))
        refusal = f"the store refused {file} ({reason}): the run" if reason else ""
    answered()
    _log_metrics(client, run_id, metrics, answered)
    return refusal


def _closing_tags(entry: Entry, step: int, left_out: Mapping[str, str]) -> dict[str, str]:
    """The tags of an entry that was sent, with what the store refused."""
    rows = names.file_name(names.PREDICTIONS_FILE, entry.prefix)
    tags = entry.tags_with_rows(None) if rows in left_out else dict(entry.tags)
    if left_out:
        tags[names.tag(LEFT_OUT, entry.prefix)] = names.tag_text(_named(left_out))
    if entry.step is not None or step:
        tags[names.tag(STEP, entry.prefix)] = str(step)
    return tags | {names.tag("status", entry.prefix): "completed"}


class NotThere(OSError):
    """The store has taken a file, and does not hold it."""


class MixedUp(ConnectionError):
    """Another process has sent an evaluation to the same place at the same time: this one has to be sent again."""


def _read_back(client: MlflowClient, run: Any, entry: Entry, sent: list[str]) -> tuple[str, ...]:
    """Compare the files of the run with those that were sent; return a problem if the store shows none.

    A proxy may answer "200" with a page of its own, or send to a login: the copy in the spool must
    not go on its word. Of a store that lists no files the evaluation's own is read. NotThere if a
    file is missing; MixedUp if one has another size, as that of another writer has.
    """
    try:
        items = client.list_artifacts(run.info.run_id)
    except Exception:
        # Of whatever kind: MLflow lists no plain HTTP server, and some stores may not be listed.
        return _read_evaluation_back(client, run, entry, sent[0])
    sizes = {item.path: item.file_size for item in items if not item.is_dir}
    for name in sent:
        if name not in sizes:
            raise NotThere(f"the store has accepted {name}, and does not hold it")
        size = entry.path_of(name).stat().st_size
        if sizes[name] is not None and sizes[name] != size:
            raise MixedUp(
                f"the store has accepted {name}, and holds {sizes[name]:,} bytes in place of "
                f"{size:,}"
            )
    return ()


def _read_evaluation_back(
    client: MlflowClient, run: Any, entry: Entry, name: str
) -> tuple[str, ...]:
    """Compare the evaluation's file; NotThere if it is not the one that was sent."""
    try:
        content = artifacts.read(run.info.artifact_uri, name, client.tracking_uri)
    except FileNotFoundError:
        content = b""
    except (OSError, ValueError) as error:
        return (
            f"the store shows no files ({first_line(error)}), so that they could not be compared",
        )
    if digest_of(content) != entry.digest(names.EVALUATION_FILE):
        raise NotThere(f"the store has accepted {name}, and does not hold it")
    return ()


_EMPTY = {NOTE: "", TABLES: "[]"}
_ROUNDS = 5
"""Times that shared tags are written: whoever writes last has seen what the others wrote."""


def _close(
    client: MlflowClient, run: Any, entry: Entry, tags: dict[str, str], sent: list[str]
) -> tuple[str, ...]:
    """Write the closing tags, and read back that neither they nor the evaluation's file are another writer's.

    MLflow has no transactions. Tags that several evaluations share, the description and the list of
    tables, are made of what the run holds just before, and made again if another process has
    written them meanwhile. In a run with several evaluations each writes its part of them into a
    tag of its own as well, with which any of them can make the shared tags whole: of two writers at
    the same time, the later one reads after both parts were written. MixedUp if the evaluation's
    file is another one's.
    """
    segments = names.file_name(names.SEGMENTS_FILE, entry.prefix)
    tables = tuple(table for table in (entry.table, segments) if table in sent)
    gone = () if segments in entry.files else (segments,)
    links = {quote(name) for name in sent}
    block = with_links(entry.description, str(run.info.experiment_id), str(entry.run_id), links)
    part = Part(entry.prefix, block, tables)
    after, lacking = _write_shared_tags(
        client, str(entry.run_id), part, tags=tags, gone=gone, alone=lambda: _only_writer(entry)
    )
    own = [name for prefix, name in lacking if prefix == entry.prefix]
    problems: tuple[str, ...] = (f"{some_of(own, 3)}: MLflow takes no more",) if own else ()
    if entry.step is None:  # the next step takes the place of this one in any case
        problems += _as_it_was_sent(client, run, entry, after, sent[0])
    return problems


def list_table(client: MlflowClient, run_id: str, prefix: str, table: str) -> None:
    """Add a file to the list of tables of a run, in which an evaluation under the prefix is already."""
    tags = client.get_run(run_id).data.tags
    part = Part.from_text(tags.get(names.tag(PART, prefix), "")) or Part(prefix, "", ())
    tables = (*(name for name in part.tables if name != table), table)
    _write_shared_tags(client, run_id, replace(part, tables=tables), renews_block=False)


def _write_shared_tags(
    client: MlflowClient,
    run_id: str,
    part: Part,
    *,
    tags: Mapping[str, str] = MappingProxyType({}),
    gone: Iterable[str] = (),
    renews_block: bool = True,
    alone: Callable[[], contextlib.AbstractContextManager[object]] = contextlib.nullcontext,
) -> tuple[Mapping[str, str], list[tuple[str, str]]]:
    """Write a part into the tags that all evaluations of a run share, until the run holds it.

    ``tags``: others to write with them.
    ``gone``: tables to take from the list.
    ``renews_block``: whether the part's block takes the place of its earlier version in the
    description. ``alone``: the context of reading and writing. The result: the run's tags, and what
    they lack, by prefix.
    """
    from mlflow.entities import RunTag

    part_tag: dict[str, str] = {}
    for attempt in range(_ROUNDS):
        time.sleep(random.uniform(0.05, 0.3) * attempt)
        with alone():
            before = client.get_run(run_id).data.tags
            if _is_shared(before, part.prefix):
                part_tag = {names.tag(PART, part.prefix): part.text}
            others = _other_parts(before, part.prefix)
            shared = _shared_tags(before, others, part, gone, renews_block)
            changed = {
                name: text
                for name, text in shared.items()
                if text != before.get(name, _EMPTY[name])
            }
            closing = [
                RunTag(name, text) for name, text in ({**tags, **part_tag, **changed}).items()
            ]
            client.log_batch(run_id, tags=closing, synchronous=True)
            after = client.get_run(run_id).data.tags
        lacking = _lacking(shared, [*others, part])
        is_known = bool(part_tag) or not _is_shared(after, part.prefix)
        if is_known and _lacking(after, [*_other_parts(after, part.prefix), part]) == lacking:
            break
    return after, lacking


_WAIT = 5.0
"""Seconds that a writer waits for another one of the same spool."""


@contextlib.contextmanager
def _only_writer(entry: Entry) -> Iterator[None]:
    """Wait until no other thread or process of this spool writes the shared tags of the run."""
    if entry.folder is None:
        yield
        return
    ends = time.monotonic() + _WAIT
    while True:
        with spool.claimed(entry.folder, f"{entry.run_id}\nshared tags") as alone:
            if alone or time.monotonic() > ends:
                yield
                return
        time.sleep(0.02)


@dataclass(frozen=True)
class Part:
    """An evaluation's part of the tags that all evaluations of a run share."""

    prefix: str
    block: str
    """Its block of the description; empty if only its tables are known."""
    tables: tuple[str, ...]
    """Its files in the list of tables."""

    @property
    def text(self) -> str:
        """The value of its tag, as JSON: with the first line of the block only if MLflow takes no more."""
        for block in (self.block, self.block.split("\n", 1)[0]):
            text = json.dumps(
                {"prefix": self.prefix, "block": block, "tables": self.tables}, ensure_ascii=False
            )
            if len(text) <= MAX_NOTE:
                break
        return text

    @classmethod
    def from_text(cls, text: str) -> Part | None:
        """The part that a tag holds; None if it is damaged."""
        try:
            data = untrusted.parsed_json(text)
            prefix = names.check_prefix(data["prefix"])
            tables = tuple(untrusted.file_name(table) for table in data["tables"])
            block = data["block"]
        except (KeyError, TypeError, ValueError):
            return None
        return cls(prefix, block, tables) if isinstance(block, str) else None


def _is_shared(tags: Mapping[str, str], prefix: str) -> bool:
    """True if a run holds an evaluation under another prefix, or is about to."""
    return any(_STATUS.fullmatch(name) and name != names.tag("status", prefix) for name in tags)


def _other_parts(tags: Mapping[str, str], prefix: str) -> list[Part]:
    """The parts of a run's evaluations under other prefixes, in the order of their tags' names."""
    own = names.tag(PART, prefix)
    parts = [
        Part.from_text(text)
        for name, text in sorted(tags.items())
        if _PART.fullmatch(name) and name != own
    ]
    return [part for part in parts if part is not None]


def _shared_tags(
    before: Mapping[str, str],
    others: Iterable[Part],
    part: Part,
    gone: Iterable[str],
    renews_block: bool,
) -> dict[str, str]:
    """The description and the list of tables with all parts: the blocks of others only where they are missing."""
    note = before.get(NOTE, _EMPTY[NOTE])
    listed = before.get(TABLES, _EMPTY[TABLES])
    for other in others:
        if _lacks_block(note, other):
            note = with_block(note, other.block, other.prefix)
        listed = with_tables(listed, other.tables)
    listed = with_tables(listed, part.tables, gone)
    if renews_block or _lacks_block(note, part):
        note = with_block(note, part.block, part.prefix)
    return {NOTE: note, TABLES: listed}


def _lacks_block(note: str, part: Part) -> bool:
    """True if a description is without the block of a part that has one."""
    return bool(part.block) and not has_block(note, part.prefix)


def _lacking(tags: Mapping[str, str], parts: Iterable[Part]) -> list[tuple[str, str]]:
    """Return what the shared tags lack of the parts, by prefix: MLflow takes 8,000 characters of each tag."""
    note = tags.get(NOTE, _EMPTY[NOTE])
    listed = tags.get(TABLES, _EMPTY[TABLES])
    lacking: list[tuple[str, str]] = []
    for part in parts:
        if _lacks_block(note, part):
            lacking.append((part.prefix, "its block of the description"))
        unlisted = [table for table in part.tables if json.dumps(table) not in listed]
        lacking += [(part.prefix, f"{table} in the list of tables") for table in unlisted]
    return lacking


def _as_it_was_sent(
    client: MlflowClient, run: Any, entry: Entry, tags: Mapping[str, str], file: str
) -> tuple[str, ...]:
    """Compare the evaluation's file with the tag that names it; return a problem if another one has taken its place."""
    key = names.digest_key(names.EVALUATION_FILE)
    ours = entry.digest(names.EVALUATION_FILE)
    if ours is None:
        return ()
    if names.digests(tags, entry.prefix).get(key) != ours:
        return ("another evaluation was sent to its place at the same time, and has taken it",)
    try:
        content = artifacts.read(run.info.artifact_uri, file, client.tracking_uri)
    except (OSError, ValueError):  # a store that may be written and not read
        return ()
    if digest_of(content) == ours:
        return ()
    client.set_tag(run.info.run_id, names.tag("status", entry.prefix), "started")
    raise MixedUp("another evaluation was sent to its place at the same time")


def _replacement(run_id: str, replaced: str, stale: list[str]) -> str:
    """The sentence on an evaluation that made room for another one."""
    text = f"run {run_id} held {replaced}, which is replaced: use prefix= for several evaluations in one run"
    if stale:
        text += f"; MLflow keeps these metrics of it: {some_of(stale, 5)}"
    return text


def client_for(tracking_uri: str | None = None) -> MlflowClient:
    """A client for one store, by default the current one, which keeps the model registry that is set.

    ConnectionError if the tracking server does not answer, ImportError if mlflow-skinny has no code
    for the store.
    """
    from mlflow import MlflowClient, get_tracking_uri

    usual = get_tracking_uri()
    uri = tracking_uri or usual
    import_what_reaches(uri)
    client = MlflowClient() if uri == usual else MlflowClient(uri, registry_uri=uri)
    probe(client.tracking_uri)
    return client


def import_what_reaches(tracking_uri: str) -> None:
    """Import MLflow's code for a kind of store, which takes seconds the first time; ImportError if there is none."""
    if urlsplit(tracking_uri).scheme.partition("+")[0] in _DATABASES:
        with needs(
            "a tracking store in a database (mlflow-skinny reaches servers: MLFLOW_TRACKING_URI)",
            "mlflow",
        ):
            import_module("sqlalchemy")  # MLflow's, not cmtrack's
        import_module(mlflow_inside.DATABASE_STORE)


def probe(tracking_uri: str) -> None:
    """Ask once whether the tracking server answers; MLflow itself would retry for minutes.

    ConnectionError if no connection is made within three seconds, or nothing is answered within
    ten. The answer's body is not read: a server may send it byte by byte.
    """
    parts = urlsplit(tracking_uri)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return
    try:
        mlflow_inside.get(
            tracking_uri, "/health", max_retries=0, timeout=PROBE_SECONDS, stream=True
        ).close()
    except Exception as error:
        host, innermost = parts.netloc.rpartition("@")[2], [*_chain(error)][-1]
        raise ConnectionError(
            f"the tracking server {host} does not answer: {first_line(innermost)}"
        ) from None


# -- files -----------------------------------------------------------------------------------------


def _optional(
    client: MlflowClient,
    run: Any,
    entry: Entry,
    files: list[str],
    answered: Callable[[], object],
    late: Callable[[], bool],
) -> Iterator[tuple[str, str]]:
    """Upload the optional files of an evaluation; return those that the store refuses, with the reason."""
    run_id = run.info.run_id
    for name in files:
        reason = _refusal(
            lambda name=name: _upload(client, entry, name),  # type: ignore[misc]
            lambda: client.get_run(run_id),
        )
        if reason:
            yield name, reason
        answered()
    reason = _refusal(lambda: _log_images(client, run, entry, late()))
    if reason:
        yield "the image of the chart view", reason
    answered()


def _upload(client: MlflowClient, entry: Entry, name: str) -> None:
    client.log_artifact(str(entry.run_id), str(entry.path_of(name)))


def _refusal(upload: Callable[[], object], asked: Callable[[], object] | None = None) -> str:
    """The reason why a store refuses an upload; empty if it accepts.

    A proxy may close the connection instead of answering that a file is too large: where the store
    answers ``asked`` meanwhile, and the second try ends as the first, that is a refusal, too.
    Exception if it may go better another time.
    """
    for again in (False, True):
        try:
            upload()
            return ""
        except Exception as error:
            reason = _status_of(error)
            if reason:
                return reason
            if asked is None or not _is_closed(error):
                raise
        if not again:
            asked()
    return "the connection was closed"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status_of(error: BaseException) -> str:
    """The HTTP status of a permanent refusal by a store or a proxy, or its reason; empty for other errors."""
    for one in _chain(error):
        response = getattr(one, "response", None)
        if isinstance(response, dict):  # of an S3 client
            status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
            reason = response.get("Error", {}).get("Code")
        else:
            status, reason = (
                getattr(response, "status_code", None),
                getattr(response, "reason", None),
            )
        if isinstance(status, int) and 400 <= status < 500 and status not in _PASSING:
            return untrusted.printable(f"{status} {reason or ''}".strip())
        if isinstance(one, OSError) and one.errno == errno.EFBIG:
            return "file too large"
        if isinstance(one, artifacts.NoFolder):
            return str(one)
    return ""


def _is_closed(error: BaseException) -> bool:
    from requests.exceptions import ConnectionError as Closed

    return any(
        isinstance(one, (Closed, ConnectionResetError, BrokenPipeError)) for one in _chain(error)
    )


def _named(left_out: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({reason})" for name, reason in left_out.items())


def _log_images(client: MlflowClient, run: Any, entry: Entry, is_late: bool) -> None:
    run_id, step = run.info.run_id, entry.step or 0
    paths: list[str] = []
    # Only a sending that was cut off, or an entry that has waited, may have left images: a run of thousands of steps
    # has thousands of them, and listing them takes longer at each step.
    status = run.data.tags.get(names.tag("status", entry.prefix))
    if entry.images and status is not None and (is_late or status != "completed"):
        paths = [file.path for file in client.list_artifacts(run_id, "images")]
    for key, file in entry.images.items():
        # MLflow names an image by these three and a number of its own: one that is there already was sent before
        parts = (
            "images/" + "[~#]".join(map(re.escape, key.split("/"))),
            "step",
            str(step),
            "timestamp",
        )
        name = re.compile("[+%]".join((*parts, str(entry.timestamp), r"[^/]*")))
        there, content = [path for path in paths if name.fullmatch(path)], entry.image(file)
        # the last of its two files
        if content is None or any(path.endswith(".webp") for path in there):
            continue
        # brings Pillow, which is there where a figure could be drawn
        from cmtrack.tracking.images import DrawnImage

        with DrawnImage(content) as image:
            client.log_image(
                run_id, image, key=key, step=step, timestamp=entry.timestamp, synchronous=True
            )
        # the first file of one that was cut off; some stores remove nothing
        with contextlib.suppress(Exception):
            for path in there:
                artifacts.repository_for(
                    run.info.artifact_uri, client.tracking_uri
                ).delete_artifacts(path)


# -- metrics, tags ---------------------------------------------------------------------------------


def _log_metrics(
    client: MlflowClient, run_id: str, metrics: list[Any], answered: Callable[[], object]
) -> None:
    for start in range(0, len(metrics), _BATCH):
        client.log_batch(run_id, metrics=metrics[start : start + _BATCH], synchronous=True)
        answered()


def _metrics(
    client: MlflowClient, run: Any, entry: Entry, step: int
) -> tuple[list[Any], tuple[str, ...]]:
    """Return the points of an entry's metrics at a step, and the problems."""
    from mlflow.entities import Metric
    from mlflow.exceptions import MlflowException

    now = entry.timestamp
    model_id = entry.model_id or _only_model(run, entry.step or 0)
    problems: tuple[str, ...] = ()
    if entry.model_id is not None:
        try:
            client.get_logged_model(entry.model_id)
        except MlflowException as error:  # one unknown model would have the whole batch refused
            model_id, problems = None, (f"link to model {entry.model_id!r}: {error}",)
    link: dict[str, str] = {}
    if model_id is not None:
        data = entry.dataset
        link = {
            "model_id": model_id,
            "dataset_name": data["name"],
            "dataset_digest": data["digest"],
        }
    return [
        Metric(name, value, now, step, **link) for name, value in entry.metrics.items()
    ], problems


def _evaluated_elsewhere(run: Any, metrics: list[Any]) -> str | None:
    """Return the model that the metrics are linked to, if another run logged it; else None."""
    model_id = next((metric.model_id for metric in metrics), None)
    outputs = getattr(getattr(run, "outputs", None), "model_outputs", None) or []
    return None if model_id in {output.model_id for output in outputs} else model_id


def _only_model(run: Any, step: int) -> str | None:
    """The model that this run logged at this step, as MLflow's fluent functions link it."""
    outputs = getattr(getattr(run, "outputs", None), "model_outputs", None) or []
    models = [output.model_id for output in outputs if output.step == step]
    return models[0] if len(models) == 1 else None


def with_tables(listed: str, tables: Iterable[str], gone: Iterable[str] = ()) -> str:
    """The tag with a run's list of tables, with some added and others removed.

    A list that is damaged is begun again. MLflow cuts a tag at 8,000 characters, in the middle of a
    name: the oldest tables leave a list that gets longer.
    """
    try:
        entries = json.loads(listed)
    except (ValueError, RecursionError):
        entries = []
    entries = entries if isinstance(entries, list) else []
    more, less = ([{"path": table, "type": "table"} for table in some] for some in (tables, gone))
    left = [entry for entry in entries if entry not in less]
    entries = [*left, *(entry for entry in more if entry not in left)]
    while len(json.dumps(entries)) > MAX_NOTE:
        entries.pop(0)
    return json.dumps(entries)


AGAIN = "logged_again"
"""Tag with the time, in milliseconds, at which what a run holds was logged once more while others waited."""
STALE = "stale_metrics"
"""Tag that names metrics of a replaced evaluation: MLflow removes none."""
LEFT_OUT = "left_out"
"""Tag that names the files which the store refused."""
PART = "part"
"""Tag with what an evaluation adds to the shared tags, as JSON; only in runs with several evaluations."""
_PART = re.compile(r"cmtrack\.(?:.*\.)?part")
_STATUS = re.compile(r"cmtrack\.(?:.*\.)?status")
STEP = "step"
"""Tag with the step of the evaluation that the run holds."""
_STEP = re.compile(r"-?\d{1,19}")
_TAGS = (
    *names.TAGS_BEFORE.values(),
    names.DIGESTS,
    "costs",
    "families",
    "grouping",
    "kind",
    "positive",
    "regrouped_from",
    "samples",
    "undefined",
    "warnings",
    AGAIN,
    LEFT_OUT,
    STALE,
    STEP,
)


def is_there(run: Any, entry: Entry) -> bool:
    """True if the run already holds the whole entry."""
    tags, metrics = run.data.tags, run.data.metrics
    if (
        tags.get(names.tag("status", entry.prefix)) != "completed"
        or names.tag(LEFT_OUT, entry.prefix) in tags
    ):
        return False
    return (
        entry.step is None
        and entry.model_id is None
        and _same(run, entry)
        and datasets.is_there(run, entry.dataset)
        and all(tags.get(name) == text for name, text in entry.tags.items())
        and all(metrics.get(name) == value for name, value in entry.metrics.items())
    )


def _same(run: Any, entry: Entry) -> bool:
    digest = entry.digest(names.EVALUATION_FILE)
    held = names.digests(run.data.tags, entry.prefix)
    return digest is not None and held.get(names.digest_key(names.EVALUATION_FILE)) == digest


def _holds_all_of(run: Any, entry: Entry) -> bool:
    """True if a run holds the same evaluation of the same dataset, and every file of the entry with a digest."""
    held = names.digests(run.data.tags, entry.prefix)
    sent = names.digests(entry.tags, entry.prefix)
    return (
        _same(run, entry) and sent.items() <= held.items() and datasets.is_there(run, entry.dataset)
    )


def what_is_there(run: Any, entry: Entry) -> str:
    """Description of another evaluation under the entry's prefix; empty if there is none.

    An evaluation of a step takes the place of that of an earlier step: that is no other one.
    """
    tags = run.data.tags
    status = tags.get(names.tag("status", entry.prefix), "")
    if status != "completed" or _same(run, entry) or entry.step is not None:
        return ""
    samples = untrusted.printable(tags.get(names.tag("samples", entry.prefix), "?"))
    labels = [names.digests(known, entry.prefix).get("labels") for known in (tags, entry.tags)]
    rows = "the same rows" if labels[0] == labels[1] else "other rows"
    under = f" under the prefix {entry.prefix!r}" if entry.prefix else ""
    return f"an evaluation of {samples} samples ({rows}){under}"


def highest_step(run: Any, entry: Entry) -> int | None:
    """Highest step at which a run has metrics of evaluations under an entry's prefix; None without metrics."""
    points = mlflow_inside.latest_metrics(run)
    return max((point.step for point in points if _is_of(point.key, entry)), default=None)


def step_of_evaluation(run: Any, entry: Entry) -> int | None:
    """Step of the evaluation that a run holds under an entry's prefix; None where it holds no metrics of it."""
    logged_step = run.data.tags.get(names.tag(STEP, entry.prefix), "")
    if _STEP.fullmatch(logged_step):
        return int(logged_step)
    return highest_step(run, entry)  # earlier versions wrote no such tag


def _is_of(name: str, entry: Entry) -> bool:
    """True for the name of a metric of the entry, or of another evaluation under its prefix."""
    if name in entry.metrics:
        return True
    if not name.startswith(entry.prefix):
        return False
    try:
        lookup(name.removeprefix(entry.prefix))
    except KeyError:  # of the script's own
        return False
    return True


def _newest(run: Any, entry: Entry, step: int) -> int:
    """Timestamp (ms) of the newest metric shared with the run at a step, or of its tag ``logged_again``; else 0."""
    again = run.data.tags.get(names.tag(AGAIN, entry.prefix), "")
    times = [int(again)] if again.isdecimal() and len(again) <= 15 else []
    points = [point for point in mlflow_inside.latest_metrics(run) if point.step == step]
    times += [point.timestamp for point in points if point.key in entry.metrics]
    return max(times, default=0)


def stale_metrics(run: Any, entry: Entry) -> list[str]:
    """Metrics of an earlier evaluation that the new one lacks."""
    others = run.data.metrics.keys() - entry.metrics.keys()
    return sorted(name for name in others if _is_of(name, entry))


def old_tags(run: Any, entry: Entry, new: Iterable[str]) -> list[str]:
    """Tags of an earlier evaluation that the new one does not write."""
    ours = {names.tag(name, entry.prefix) for name in _TAGS}
    ours |= {names.former_tag(name, entry.prefix) for name in names.SHORT}
    return sorted((ours & set(run.data.tags)) - set(new))


def _remove_old_files(
    client: MlflowClient, run: Any, entry: Entry, files: Iterable[str]
) -> tuple[str, ...]:
    """Remove the other files of an earlier evaluation; return a problem if the store cannot."""
    start = names.file_name("cmtrack_", entry.prefix)
    try:
        listed = [item.path for item in client.list_artifacts(run.info.run_id) if not item.is_dir]
        old = [path for path in listed if path.startswith(start) and path not in files]
        for path in [untrusted.file_name(path) for path in old]:
            store = artifacts.repository_for(run.info.artifact_uri, client.tracking_uri)
            store.delete_artifacts(path)
    except Exception as error:  # of whatever kind: some stores remove nothing
        return (f"files of the replaced evaluation could not be removed: {first_line(error)}",)
    return ()
