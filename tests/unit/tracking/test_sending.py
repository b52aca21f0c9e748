"""What arrives in a run when a store refuses, closes the connection, is locked or silent, or holds another evaluation."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow
import pytest
from click.testing import CliRunner
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from cmtrack import LoggedEvaluation, evaluate, load_evaluation, log_evaluation
from cmtrack.cli import main

# Inside: the ten seconds that a script waits for a silent store, which no test should last.
from cmtrack.tracking import EvaluationWarning, deliver, digests, tracking_store
from support.stores import sqlite_store

pytestmark = pytest.mark.usefixtures("undrawn")

THREE = evaluate([0, 1, 1, 0, 2, 2], [0, 1, 0, 0, 2, 1])
TWO = evaluate([0, 1, 1, 0], [0, 1, 0, 0])
EVALUATION = "cmtrack_evaluation.json"
CLASSES = "cmtrack_classes.json"
ROWS = "cmtrack_predictions.parquet"
REPORT = "cmtrack_report.html"
TABLES = "mlflow.loggedArtifacts"
NOTE = "mlflow.note.content"
ACCURACY = "multiclass/accuracy"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("database")
    with (
        pytest.MonkeyPatch.context() as patch,
        tracking_store(sqlite_store(folder / "mlflow.db")) as uri,
    ):
        patch.chdir(folder)  # artifacts of other experiments are below it
        mlflow.create_experiment("e", artifact_location=(folder / "artifacts").as_uri())
    return uri


@pytest.fixture
def client(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[mlflow.MlflowClient]:
    """A client of the store; the test has a spool of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    with tracking_store(database):
        yield mlflow.MlflowClient()


@pytest.fixture
def run_id(client: mlflow.MlflowClient) -> str:
    return str(client.create_run("1").info.run_id)


def log(run_id: str, evaluation: Any = THREE, **options: Any) -> LoggedEvaluation:
    return log_evaluation(evaluation, run_id=run_id, figures=False, **options)


def tags_of(run_id: str) -> dict[str, str]:
    return dict(mlflow.get_run(run_id).data.tags)


def files_of(run_id: str) -> set[str]:
    return {item.path for item in mlflow.MlflowClient().list_artifacts(run_id)}


def pushed(*options: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, ["push", "--json", "--folder", "spool", *options])
    entries: list[dict[str, Any]] = json.loads(done.stdout)["entries"]
    return entries


# -- what a store refuses --------------------------------------------------------------------------------------------


class Answered(Exception):
    """An answer of a server or of an object store, as its client raises it."""

    def __init__(self, response: Any) -> None:
        self.response = response


def status(number: int, reason: str = "") -> Answered:
    return Answered(SimpleNamespace(status_code=number, reason=reason))


def failing(monkeypatch: pytest.MonkeyPatch, file: str, *errors: Exception) -> None:
    """Uploads of a file fail with these errors, one after the other, before one succeeds."""
    left = list(errors)
    upload = LocalArtifactRepository.log_artifact

    def log_artifact(self: Any, path: str, folder: str | None = None) -> None:
        if Path(path).name == file and left:
            raise left.pop(0)
        upload(self, path, folder)

    monkeypatch.setattr(LocalArtifactRepository, "log_artifact", log_artifact)


DENIED = {"ResponseMetadata": {"HTTPStatusCode": 403}, "Error": {"Code": "AccessDenied"}}


@pytest.mark.parametrize(
    ("errors", "reason"),
    [
        ([status(413, "too\x1b large")], "413 too\\x1b large"),
        ([status(400)], "400"),
        ([Answered(DENIED)], "403 AccessDenied"),
        ([OSError(errno.EFBIG, "x")], "file too large"),
        # a proxy may close the connection in place of answering that a file is too large
        ([ConnectionResetError(), BrokenPipeError()], "the connection was closed"),
        ([ConnectionResetError(), status(413)], "413"),
    ],
)
def test_a_file_that_is_refused_for_good_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, run_id: str, errors: list[Exception], reason: str
) -> None:
    failing(monkeypatch, CLASSES, *errors)
    with pytest.warns(EvaluationWarning, match="missing in the logged evaluation: refused by"):
        logged = log(run_id)
    assert logged.status == "completed"
    assert logged.problems == (f"refused by the store: {CLASSES} ({reason})",)
    tags = tags_of(run_id)
    assert (tags["cmtrack.status"], tags["cmtrack.left_out"]) == (
        "completed",
        f"{CLASSES} ({reason})",
    )
    assert CLASSES not in tags.get(TABLES, "")
    assert files_of(run_id) == {EVALUATION, REPORT, ROWS}


@pytest.mark.parametrize(
    "error",
    [
        status(500),
        status(429),
        Answered({}),
        OSError(errno.ENOSPC, "No space left on device"),
        TimeoutError(),
    ],
    ids=["500", "429", "object store", "full", "slow"],
)
def test_an_evaluation_waits_where_a_refusal_may_pass(
    monkeypatch: pytest.MonkeyPatch, run_id: str, error: Exception
) -> None:
    failing(monkeypatch, CLASSES, error)
    with pytest.warns(EvaluationWarning, match="was not logged: .*`cmtrack push` sends it"):
        assert log(run_id).status == "saved"
    assert tags_of(run_id)["cmtrack.status"] == "started"
    [sent] = pushed()
    assert (sent["status"], sent["run_id"]) == ("sent", run_id)
    assert load_evaluation(run_id, rows=True) == THREE


def test_a_connection_that_was_closed_once_costs_nothing(
    monkeypatch: pytest.MonkeyPatch, run_id: str
) -> None:
    failing(monkeypatch, CLASSES, ConnectionResetError())
    assert log(run_id, strict=True).problems == ()
    assert CLASSES in files_of(run_id)


def test_without_its_rows_a_run_does_not_say_that_it_has_them(
    monkeypatch: pytest.MonkeyPatch, run_id: str
) -> None:
    failing(monkeypatch, ROWS, status(413))
    with pytest.warns(EvaluationWarning):
        log(run_id)
    assert "predictions" not in digests(tags_of(run_id))
    with pytest.raises(ValueError, match="predictions by row were not kept"):
        load_evaluation(run_id, rows=True)


def test_without_the_evaluation_s_file_a_run_has_the_metrics_only(
    monkeypatch: pytest.MonkeyPatch, run_id: str
) -> None:
    failing(monkeypatch, EVALUATION, status(413, "Too Large"))
    says = rf"the store refused {EVALUATION} \(413 Too Large\): the run has only the metrics"
    with pytest.warns(EvaluationWarning, match=says):
        assert log(run_id).status == "saved"
    assert tags_of(run_id)["cmtrack.status"] == "metrics only"
    assert mlflow.get_run(run_id).data.metrics[ACCURACY] == pytest.approx(4 / 6)
    assert files_of(run_id) == set()


def test_a_run_is_written_in_an_order_that_shows_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch, run_id: str
) -> None:
    events: list[str] = []

    def recorded(kind: type, method: str, name: Any) -> None:
        original = getattr(kind, method)

        def call(self: Any, *given: Any, **how: Any) -> Any:
            events.append(name(*given, **how))
            return original(self, *given, **how)

        monkeypatch.setattr(kind, method, call)

    def batch(_: str, metrics: Any = (), tags: Any = (), **__: Any) -> str:
        if metrics:
            return "metrics"
        return "status " + {tag.key: tag.value for tag in tags}["cmtrack.status"]

    recorded(mlflow.MlflowClient, "set_tag", lambda _, key, text: f"{key[8:]} {text}")
    recorded(mlflow.MlflowClient, "log_batch", batch)
    recorded(mlflow.MlflowClient, "log_inputs", lambda *_: "data set")
    recorded(LocalArtifactRepository, "log_artifact", lambda path, *_: Path(path).name)
    log(run_id, strict=True)
    files = events[3:-2]
    assert events[:3] == ["status started", EVALUATION, "metrics"]
    assert sorted(files) == sorted([CLASSES, REPORT, ROWS])
    assert events[-2:] == ["data set", "status completed"]


# -- a store that is locked or silent --------------------------------------------------------------------------------


def test_a_locked_database_is_tried_again(monkeypatch: pytest.MonkeyPatch, run_id: str) -> None:
    left = [RuntimeError("database is locked")] * 2
    original = mlflow.MlflowClient.log_batch

    def log_batch(*given: Any, **how: Any) -> Any:
        if left:
            raise left.pop()
        return original(*given, **how)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", log_batch)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    assert log(run_id, strict=True).status == "completed"
    left.append(RuntimeError("disk I/O error"))
    with pytest.raises(RuntimeError, match="disk I/O error") as raised:
        log(run_id, TWO, prefix="val/", strict=True)
    assert "`cmtrack push` sends it" in raised.value.__notes__[0]


def test_a_silent_store_is_not_waited_for_and_gets_it_later(
    monkeypatch: pytest.MonkeyPatch, run_id: str, tmp_path: Path
) -> None:
    answers = threading.Event()
    original = mlflow.MlflowClient.get_run

    def get_run(*given: Any) -> Any:
        answers.wait(60)
        return original(*given)

    monkeypatch.setattr(deliver, "PATIENCE", 0.1)
    monkeypatch.setattr(mlflow.MlflowClient, "get_run", get_run)
    with pytest.warns(EvaluationWarning, match="the tracking store did not answer"):
        logged = log(run_id)
    assert logged.status == "saved"
    assert logged.path is not None
    assert logged.path.exists()
    answers.set()
    ends = time.monotonic() + 60
    while (tmp_path / "spool").exists() and time.monotonic() < ends:
        time.sleep(0.01)
    assert load_evaluation(run_id) == THREE


# -- a run that holds an evaluation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [None, 0])
def test_what_was_cut_off_is_cleared_and_is_no_other_evaluation(
    run_id: str, step: int | None
) -> None:
    client = mlflow.MlflowClient()
    client.set_tag(run_id, "cmtrack.status", "started")
    client.set_tag(run_id, "cmtrack.positive", "x")
    client.log_metric(run_id, "binary/f1", 1.0)
    client.log_text(run_id, "x", "cmtrack_old.png")
    assert log(run_id, THREE, step=step, strict=True).replaced == ""
    tags = tags_of(run_id)
    assert "cmtrack.positive" not in tags
    # a step leaves the files of the steps before
    assert ("cmtrack_old.png" in files_of(run_id)) == (step is not None)
    assert tags.get("cmtrack.stale_metrics") == (None if step is not None else "binary/f1")


@pytest.mark.slow
def test_tables_that_are_gone_are_listed_no_more(run_id: str) -> None:
    mine = {"path": "mine.json", "type": "table"}
    segments = {"path": "cmtrack_segments.json", "type": "table"}
    classes = {"path": CLASSES, "type": "table"}
    client = mlflow.MlflowClient()
    client.set_tag(run_id, TABLES, json.dumps([mine]))
    y = [0, 1, 1, 0]
    log(run_id, evaluate(y, y, segments={"region": list("nsns")}), strict=True)
    listed = json.loads(tags_of(run_id)[TABLES])
    assert listed[0] == mine
    assert sorted(listed[1:], key=str) == [classes, segments]
    with pytest.warns(EvaluationWarning, match="was replaced"):
        log(run_id, TWO)
    assert json.loads(tags_of(run_id)[TABLES]) == [mine, classes]
    client.set_tag(run_id, TABLES, '{"a": 1}')  # damaged
    log(run_id, TWO, step=1, strict=True)
    assert json.loads(tags_of(run_id)[TABLES]) == [classes]


def test_a_description_keeps_a_person_s_words_and_what_mlflow_has_room_for(run_id: str) -> None:
    client = mlflow.MlflowClient()
    words = "By Ann.\n" * 937  # 7,496 of the 8,000 characters that MLflow takes
    client.set_tag(run_id, NOTE, words)
    log(run_id, TWO, prefix="val/", strict=True)
    note = tags_of(run_id)[NOTE]
    assert note.startswith(words.rstrip())
    assert "Evaluation “val”" in note
    assert "val/multiclass/accuracy" not in note  # the first line of the block, no table
    client.set_tag(run_id, NOTE, "x" * 7990)
    with pytest.warns(
        EvaluationWarning, match="its block of the description: no room in MLflow's tag"
    ):
        log(run_id, THREE, prefix="test/")
    assert tags_of(run_id)[NOTE] == "x" * 7990
