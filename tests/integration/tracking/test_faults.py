"""Nothing is lost and nobody waits: stores that fail in every way, and what is sent afterwards."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from unittest import mock

import mlflow
import pytest
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

import cmtrack
from cmtrack import Grouping, evaluate, load_evaluation, log_evaluation
from cmtrack.tracking import EvaluationWarning, digests, quiet, tracking_store
from support.components import BUCKET, KEYS, state_of, tracking_server
from support.faults import (
    CHILD,
    DROP,
    HANG,
    HERE,
    PASS,
    FaultyProxy,
    child,
    failing_files,
    forked_workers,
    full,
    store_is_down,
    wait_for_stores,
)
from support.problems import random_problem
from support.stores import push, waiting

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

GROUPING = Grouping({"low": [0, 1], "high": [2]}, name="two")


@pytest.fixture(scope="module")
def judged() -> cmtrack.Evaluation:
    y, _, p = random_problem(0, n=120, k=3, skill=1.2)
    return evaluate(y, y_prob=p, grouping=GROUPING)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    """A tracking server with its own artifact store, and a proxy before it that can fail."""
    with tracking_server(tmp_path_factory.mktemp("server")) as running:
        proxy = FaultyProxy(running.port)
        yield proxy
        proxy.close()


@pytest.fixture
def proxy(server: FaultyProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CMTRACK_SPOOL", raising=False)
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))
    wait_for_stores(monkeypatch, 2.0)
    server.fault = lambda *_: PASS
    with tracking_store(server.url):
        yield server
    server.fault = lambda *_: PASS


def new_run() -> str:
    return str(mlflow.MlflowClient().create_run("0").info.run_id)


def runs() -> int:
    return len(mlflow.MlflowClient().search_runs(["0"], max_results=1000))


def batch(method: str, path: str, _: int) -> bool:
    return path.endswith("runs/log-batch")


def upload(method: str, path: str, _: int) -> bool:
    return method == "PUT" and "mlflow-artifacts" in path


FAULTS = {
    "the server drops every connection": lambda *request: DROP,
    "the server hangs": lambda *request: HANG,
    "the server says 500": lambda *request: 500,
    "the server says 429": lambda *request: 429,
    "it is gone at the batch": lambda *request: DROP if batch(*request) else PASS,
    "it hangs at the batch": lambda *request: HANG if batch(*request) else PASS,
    "it says 500 at the batch": lambda *request: 500 if batch(*request) else PASS,
    "it is gone during the upload": lambda *request: DROP if upload(*request) else PASS,
    "it says 429 during the upload": lambda *request: 429 if upload(*request) else PASS,
    "it says 507 during the upload": lambda *request: 507 if upload(*request) else PASS,
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda name: name.replace(" ", "-"))
def test_a_server_that_fails_costs_seconds_and_what_it_lacks_is_pushed_later(
    proxy, judged, monkeypatch, fault
):
    run_id, before = new_run(), runs()
    proxy.fault = FAULTS[fault]
    start = time.monotonic()
    with pytest.warns(EvaluationWarning, match="cmtrack push"):
        logged = log_evaluation(judged, run_id=run_id)
    assert time.monotonic() - start < 30  # MLflow alone would have retried for minutes
    assert logged.status == "saved"
    assert logged.path is not None
    proxy.fault = lambda *_: PASS
    wait_for_stores(monkeypatch, 60.0)  # a busy machine is no fault
    (pushed,) = push()
    assert (pushed.status, pushed.run_id, pushed.reason) == ("sent", run_id, "")
    assert load_evaluation(run_id) == judged
    assert state_of(run_id)["status"] == "RUNNING"
    assert runs() == before
    assert not Path("cmtrack_spool").exists()


def test_a_server_that_fails_for_a_moment_is_waited_for(proxy, judged):
    run_id = new_run()
    failed: list[int] = []

    def once(method: str, path: str, number: int) -> object:
        if batch(method, path, number) and not failed:
            failed.append(number)
            return 503
        return PASS

    proxy.fault = once
    assert log_evaluation(judged, run_id=run_id, strict=True).status == "completed"
    assert failed


def test_it_goes_on_behind_the_script(proxy, judged):
    run_id = new_run()
    proxy.fault = lambda *request: HANG if batch(*request) else PASS
    released = threading.Event()

    def late(method: str, path: str, number: int) -> object:
        if batch(method, path, number):
            released.wait(30)
        return PASS

    proxy.fault = late
    with pytest.warns(EvaluationWarning, match="did not answer for 2 seconds"):
        logged = log_evaluation(judged, run_id=run_id)
    assert logged.path is not None
    assert logged.path.is_dir()
    released.set()
    for _ in range(200):
        if not logged.path.exists():
            break
        time.sleep(0.1)
    assert not logged.path.exists()  # it arrived after all, and is no longer in the spool
    assert load_evaluation(run_id) == judged


@pytest.mark.usefixtures("drawn")
def test_pushing_twice_is_pushing_once(proxy, judged, tmp_path):
    run_id = new_run()
    proxy.fault = lambda *request: DROP if batch(*request) else PASS
    with pytest.warns(EvaluationWarning):
        logged = log_evaluation(judged, run_id=run_id, prefix="val/", step=3)
    proxy.fault = lambda *_: PASS
    shutil.copytree(logged.path, tmp_path / "copy" / logged.path.name)
    assert [entry.status for entry in push()] == ["sent"]
    once = state_of(run_id)
    assert [entry.status for entry in push(tmp_path / "copy")] == ["sent"]
    assert state_of(run_id) == once
    assert once["images"]
    assert set(once["metrics"].values()) == {1}


@pytest.mark.usefixtures("drawn")
def test_an_image_that_was_cut_off_before_its_thumbnail_is_there_once_after_a_push(proxy, judged):
    run_id = new_run()
    proxy.fault = lambda method, path, _: (
        DROP if method == "PUT" and path.endswith(".webp") else PASS
    )
    with pytest.warns(EvaluationWarning):
        log_evaluation(judged, run_id=run_id)
    proxy.fault = lambda *_: PASS
    assert {
        Path(file.path).suffix for file in mlflow.MlflowClient().list_artifacts(run_id, "images")
    } == {".png"}
    assert [(entry.status, entry.problems) for entry in push()] == [("sent", ())]
    images = [file.path for file in mlflow.MlflowClient().list_artifacts(run_id, "images")]
    assert sorted(Path(path).suffix for path in images) == [".png", ".webp"]
    assert len({path.split("+")[5].partition(".")[0] for path in images}) == 1  # of one number


def test_a_dead_store_is_asked_once_for_all_entries(proxy, judged, monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    proxy.fault = lambda *_: DROP
    asked = {}
    for n_entries in (1, 2, 3):
        with pytest.warns(EvaluationWarning):
            log_evaluation(judged, run_id="0" * 32)
        proxy.requests.clear()
        pushed = push()
        assert [entry.status for entry in pushed] == ["kept"] * n_entries
        assert {"does not answer" in entry.reason for entry in pushed} == {True}
        asked[n_entries] = len(proxy.requests)
    assert asked[1] == asked[2] == asked[3] > 0


def test_an_evaluation_that_was_meant_for_no_run_gets_one_when_asked(proxy, judged):
    with pytest.warns(EvaluationWarning, match="no run is active"):
        log_evaluation(judged)
    before = runs()
    assert (
        push()[0].reason
        == "it has no run: name an experiment for it (--experiment NAME, or experiment_name=)"
    )
    assert runs() == before
    (sent,) = push(experiment_name="Default")
    assert sent.status == "sent"
    assert load_evaluation(sent.run_id) == judged
    assert mlflow.MlflowClient().get_run(sent.run_id).info.status == "FINISHED"
    assert runs() == before + 1


def test_an_evaluation_whose_run_does_not_exist_gets_one_when_asked(store, judged):
    with pytest.warns(EvaluationWarning, match="cmtrack push"):
        log_evaluation(judged, run_id="0" * 32)
    (kept,) = push()
    assert (kept.status, kept.reason) == (
        "kept",
        f"there is no run {'0' * 32!r}: name an experiment for it (--experiment NAME, or experiment_name=)",
    )
    (sent,) = push(experiment_name="e")
    assert sent.status == "sent"
    assert load_evaluation(sent.run_id) == judged


# -- what a store refuses, what a proxy hides, what a file must not hold -----------------------------------------------


def too_large(method: str, path: str, _: int) -> object:
    return 413 if method == "PUT" and path.endswith("cmtrack_predictions.parquet") else PASS


def test_a_file_that_is_refused_is_left_out_and_the_run_is_complete(proxy, judged):
    run_id = new_run()
    proxy.fault = too_large
    with pytest.warns(
        EvaluationWarning, match=r"refused by the store: cmtrack_predictions\.parquet \(413 "
    ):
        logged = log_evaluation(judged, run_id=run_id)
    assert (logged.status, logged.path) == ("completed", None)
    run = mlflow.MlflowClient().get_run(run_id)
    assert run.data.tags["cmtrack.status"] == "completed"
    assert run.data.tags["cmtrack.left_out"].startswith("cmtrack_predictions.parquet (413 ")
    assert "predictions" not in digests(run.data.tags)
    assert run.data.metrics["multiclass/accuracy"] == judged.metrics["multiclass/accuracy"]
    assert load_evaluation(run_id) == judged
    assert not Path("cmtrack_spool").exists()
    proxy.fault = lambda *_: PASS
    log_evaluation(judged, run_id=run_id, strict=True)
    assert "cmtrack.left_out" not in mlflow.MlflowClient().get_run(run_id).data.tags
    assert load_evaluation(run_id, rows=True).rows is not None


def test_push_ends_where_a_file_is_refused(proxy, judged):
    run_id = new_run()
    proxy.fault = lambda *_: DROP
    with pytest.warns(EvaluationWarning):
        log_evaluation(judged, run_id=run_id)
    proxy.fault = too_large
    (sent,) = push()
    assert sent.status == "sent"
    assert "cmtrack_predictions.parquet (413 " in sent.problems[0]
    assert push() == []


def test_without_the_evaluation_the_metrics_are_in_the_run_and_the_rest_is_kept(proxy, judged):
    run_id = new_run()
    proxy.fault = lambda *request: 413 if upload(*request) else PASS
    with pytest.warns(
        EvaluationWarning, match=r"refused cmtrack_evaluation\.json \(413 .*only the metrics"
    ):
        assert log_evaluation(judged, run_id=run_id).status == "saved"
    run = mlflow.MlflowClient().get_run(run_id)
    assert run.data.tags["cmtrack.status"] == "metrics only"
    assert run.data.metrics["multiclass/accuracy"] == judged.metrics["multiclass/accuracy"]
    (kept,) = push()
    assert (kept.status, "only the metrics" in kept.reason) == ("kept", True)
    proxy.fault = lambda *_: PASS
    assert [(entry.status, entry.reason) for entry in push()] == [("sent", "")]
    assert load_evaluation(run_id) == judged


def test_push_does_not_wait_for_ever_and_goes_on(proxy, judged, monkeypatch):
    proxy.fault = lambda *_: DROP
    ids = [new_run_behind(proxy) for _ in range(3)]
    for run_id in ids:
        with pytest.warns(EvaluationWarning):
            log_evaluation(judged, run_id=run_id)
    proxy.fault = lambda *request: 503 if upload(*request) and ids[0] in request[1] else PASS
    start = time.monotonic()
    done = {entry.run_id: entry for entry in push()}
    assert time.monotonic() - start < 60  # MLflow alone would have retried for minutes
    assert [done[run_id].status for run_id in ids] == ["kept", "sent", "sent"]
    assert "did not answer for 2 seconds" in done[ids[0]].reason


def new_run_behind(proxy: FaultyProxy) -> str:
    fault, proxy.fault = proxy.fault, lambda *_: PASS
    run_id, proxy.fault = new_run(), fault
    return run_id


def test_a_host_that_only_a_proxy_knows(proxy, judged, monkeypatch):
    run_id = new_run()
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("no_proxy", "")
    with tracking_store("http://mlflow.corp.invalid"):
        assert log_evaluation(judged, run_id=run_id, strict=True).status == "completed"
        assert load_evaluation(run_id) == judged
        assert cmtrack.compare([run_id]).best.run_id == run_id


def test_no_password_is_written_or_printed(proxy, judged, capsys):
    run_id = new_run()
    secret = proxy.url.replace("://", "://somebody:hunter2@")
    proxy.fault = lambda *_: DROP
    with tracking_store(secret), pytest.warns(EvaluationWarning) as warned:
        logged = log_evaluation(judged, run_id=run_id)
    written = b"".join(path.read_bytes() for path in logged.path.rglob("*") if path.is_file())
    listed = " ".join(entry.meant_for for entry in waiting())
    assert proxy.url.encode() in written
    assert proxy.url in listed
    proxy.fault = lambda *_: PASS
    with tracking_store(secret):
        assert [entry.status for entry in push()] == ["sent"]
        with pytest.raises(ValueError, match="there is no experiment") as missing:
            cmtrack.compare(experiment_names=["nowhere"])
        review = cmtrack.compare([run_id], tracking_uri=secret)
        published = review.log()
        pages = [review.report(f"review.{kind}").read_bytes() for kind in ("html", "md", "json")]
        note = mlflow.MlflowClient().get_run(published.run_id).data.tags["mlflow.note.content"]
    said = (
        " ".join(str(warning.message) for warning in warned)
        + capsys.readouterr().out
        + listed
        + note
    )
    said += str(missing.value) + repr(review) + repr(review.runs) + logged.error + review.summary()
    assert "hunter2" not in said
    assert all(b"hunter2" not in page for page in (*pages, written))


def test_what_waits_is_private(store, judged):
    with pytest.warns(EvaluationWarning, match="no run is active"):
        logged = log_evaluation(judged)
    for path in (logged.path.parent, logged.path, *logged.path.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_an_entry_of_another_user_does_not_say_where_to_send(store, judged, monkeypatch):
    run_id = store.create_run("1").info.run_id
    with pytest.warns(EvaluationWarning):
        logged = log_evaluation(judged, prefix="x/")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    (refused,) = push(experiment_name="e")
    assert (refused.status, refused.entry) == ("refused", logged.path)
    assert "belongs to another user" in refused.reason
    (sent,) = push(experiment_name="e", tracking_uri=store.tracking_uri)
    assert sent.status == "sent"
    assert sent.run_id != run_id


def test_what_a_container_left_is_found_whatever_its_process_was_called(store, judged, tmp_path):
    run_id = store.create_run("1").info.run_id
    folder = tmp_path / "cmtrack_spool" / ".20260101T000000000000-00000000"
    (folder / "artifacts").mkdir(parents=True)
    (folder / "artifacts" / "cmtrack_evaluation.json").write_text(judged.to_json())
    intent = {"run_id": run_id, "prefix": "", "tracking_uri": store.tracking_uri, "pid": 1}
    # as the first version wrote it
    (folder / "intent.json").write_text(json.dumps(intent))
    assert waiting() == []  # it may still be written
    old = time.time() - 3600
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (old, old))
    assert [entry.kind for entry in waiting()] == ["unfinished"]
    assert [entry.status for entry in push()] == ["sent"]
    assert load_evaluation(run_id) == judged


@pytest.mark.parametrize(
    "digest", ["/etc/passwd", "../../victim", "A" * 32, "0" * 31, "", "/dev/zero"]
)
@pytest.mark.parametrize("name", ["evaluation", "predictions"])
def test_a_tag_reaches_no_file_of_the_reader(proxy, judged, tmp_path, digest, name):
    run_id = new_run()
    log_evaluation(judged, run_id=run_id, strict=True)
    victim = tmp_path / "victim"
    victim.write_text("thesis")
    os.mkfifo(tmp_path / "pipe")
    for value in (digest, str(victim), str(tmp_path / "pipe")):
        mlflow.MlflowClient().set_tag(run_id, "cmtrack.digests", json.dumps({name: value}))
        with pytest.raises(ValueError, match="is damaged: it is not the file that was logged"):
            load_evaluation(run_id, rows=True)
    assert victim.read_text() == "thesis"


class Killed(BaseException):
    """The end of a process, where it is."""


@pytest.mark.parametrize("setting", ["labels", "off"])
@pytest.mark.parametrize("moves", [0, 1])
@pytest.mark.parametrize("how", [Killed, OSError])
def test_a_push_that_ends_while_it_takes_rows_out_loses_nothing(
    store, judged, monkeypatch, setting, moves, how
):
    run_id = store.create_run("1").info.run_id
    with store_is_down(), pytest.warns(EvaluationWarning):
        log_evaluation(judged, run_id=run_id)
    left = [moves]

    def is_over(_: Path) -> bool:
        left[0] -= 1
        return left[0] < 0

    def end() -> None:
        raise how("the end")

    monkeypatch.setenv("CMTRACK_PREDICTIONS", setting)
    with failing_files(is_over, end), contextlib.suppress(Killed):
        if how is OSError:
            assert [entry.status for entry in push()] == ["kept"]
        else:
            push()
    monkeypatch.delenv("CMTRACK_PREDICTIONS")
    (sent,) = push()  # not limited: what was taken out is not there any more
    assert (sent.status, load_evaluation(run_id)) == ("sent", judged)
    rows = load_evaluation(run_id, rows=True).rows
    assert len(rows) == judged.n_samples
    assert rows.probabilities is not None
    page = Path(store.download_artifacts(run_id, "cmtrack_report.html")).read_bytes()
    # the page comes first, then the rows, and the manifest
    assert (b"<!-- rows -->" in page) == (moves == 0)


@pytest.mark.parametrize("damage", ["gone", "cut"])
def test_an_entry_whose_rows_are_lost_is_sent_without_them(store, judged, damage):
    run_id = store.create_run("1").info.run_id
    with store_is_down(), pytest.warns(EvaluationWarning):
        logged = log_evaluation(judged, run_id=run_id)
    rows = logged.path / "artifacts" / "cmtrack_predictions.parquet"
    rows.unlink() if damage == "gone" else os.truncate(rows, 100)
    (sent,) = push()
    assert sent.status == "sent"
    assert any(
        problem.startswith("the rows in cmtrack_predictions.parquet: ") for problem in sent.problems
    )
    assert load_evaluation(run_id) == judged
    assert "cmtrack_predictions.parquet" not in {file.path for file in store.list_artifacts(run_id)}


def test_an_entry_that_another_push_takes_meanwhile_is_skipped(store, judged):
    ids = [store.create_run("1").info.run_id for _ in range(3)]
    with store_is_down(OSError("no answer")):
        for run_id in ids:
            with pytest.warns(EvaluationWarning):
                log_evaluation(judged, run_id=run_id)
    first, second, third = waiting()
    get_run = mlflow.MlflowClient.get_run

    def take_the_second(client: mlflow.MlflowClient, run_id: str) -> object:
        shutil.rmtree(second.path, ignore_errors=True)
        return get_run(client, run_id)

    with mock.patch("mlflow.MlflowClient.get_run", take_the_second):
        pushed = push()
    assert [(entry.entry, entry.status) for entry in pushed] == [
        (first.path, "sent"),
        (third.path, "sent"),
    ]


# -- local stores ----------------------------------------------------------------------------------------------------


def test_a_locked_database_is_waited_for(store, judged, tmp_path):
    run_id = store.create_run("1").info.run_id
    lock = sqlite3.connect(tmp_path / "mlflow.db", check_same_thread=False)
    lock.execute("BEGIN EXCLUSIVE")
    threading.Timer(2.0, lock.rollback).start()
    assert log_evaluation(judged, run_id=run_id, strict=True).status == "completed"
    lock.close()


def test_a_database_that_stays_locked_is_not(store, judged, tmp_path, monkeypatch):
    wait_for_stores(monkeypatch, 2.0)
    run_id = store.create_run("1").info.run_id
    lock = sqlite3.connect(tmp_path / "mlflow.db")
    lock.execute("BEGIN EXCLUSIVE")
    with pytest.warns(EvaluationWarning, match="cmtrack push"):
        assert log_evaluation(judged, run_id=run_id).status == "saved"
    lock.rollback()
    lock.close()
    time.sleep(6)  # what goes on behind ends first
    for entry in push():
        assert entry.status == "sent"
    assert load_evaluation(run_id) == judged


@pytest.mark.parametrize("kind", ["no folder can be made", "the disk is full"])
def test_an_artifact_folder_that_takes_nothing(store, judged, tmp_path, monkeypatch, kind):
    (tmp_path / "a file").write_text("in the way")
    experiment = store.create_experiment(
        "blocked", artifact_location=(tmp_path / "a file" / "artifacts").as_uri()
    )
    run_id = store.create_run(experiment if kind == "no folder can be made" else "1").info.run_id
    if kind == "the disk is full":
        monkeypatch.setattr(LocalArtifactRepository, "log_artifact", full)
    with pytest.warns(EvaluationWarning, match="cmtrack push"):
        logged = log_evaluation(judged, run_id=run_id)
    assert logged.status == "saved"
    assert store.get_run(run_id).data.tags["cmtrack.status"] == "started"
    with pytest.raises(ValueError, match=r"has no|cannot be read"):
        load_evaluation(run_id)


def test_a_spool_that_cannot_be_written_has_a_substitute(store, judged, tmp_path, monkeypatch):
    (tmp_path / "a file").write_text("in the way")
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "a file" / "spool"))
    with pytest.warns(EvaluationWarning) as warned:
        logged = log_evaluation(judged)
    assert logged.path.parent == Path(os.environ["XDG_DATA_HOME"]) / "cmtrack" / "spool"
    assert logged.status == "saved"
    said = [str(warning.message) for warning in warned]
    assert f"could not be written to {tmp_path / 'a file' / 'spool'}: Not a directory" in said[0]
    assert str(logged.path.parent) in said[0]
    assert "no run is active" in said[1]
    assert [entry.path for entry in waiting()] == [logged.path]  # push finds it there
    (sent,) = push(experiment_name="e")
    assert load_evaluation(sent.run_id) == judged


@pytest.mark.parametrize("file", ["cmtrack_evaluation.json", "cmtrack_report.html", "entry.json"])
def test_a_spool_that_is_full_at_any_file_is_left_for_another_place(store, judged, tmp_path, file):
    run_id = store.create_run("1").info.run_id
    with (
        failing_files(lambda path: path.name == file and "cmtrack_spool" in path.parts),
        pytest.warns(
            EvaluationWarning, match="cmtrack_spool: No space left on device; written instead to"
        ),
    ):
        logged = log_evaluation(judged, run_id=run_id, strict=True)
    assert (logged.status, logged.problems) == ("completed", ())
    assert load_evaluation(run_id) == judged
    assert not (tmp_path / "cmtrack_spool").exists()
    assert waiting() == []


def everywhere(_: Path) -> bool:
    return True


def test_with_no_place_at_all_the_run_gets_the_metrics_and_the_training_goes_on(store, judged):
    run_id = store.create_run("1").info.run_id
    with (
        failing_files(everywhere),
        pytest.warns(
            EvaluationWarning,
            match=f"run {run_id} has only the metrics .* could not be kept either",
        ),
    ):
        logged = log_evaluation(judged, run_id=run_id)
    assert logged.status == "failed"
    assert logged.evaluation is judged
    run = store.get_run(run_id)
    assert run.data.metrics["multiclass/accuracy"] == judged.metrics["multiclass/accuracy"]
    assert run.data.tags["cmtrack.status"] == "metrics only"


def test_what_has_no_run_is_pushed_into_an_experiment(store, judged):
    with pytest.warns(EvaluationWarning, match="`cmtrack push --experiment NAME` sends it"):
        assert log_evaluation(judged).status == "saved"
    assert [sent.status for sent in push(experiment_name="later")] == ["sent"]


def interrupt() -> None:
    raise KeyboardInterrupt


def test_an_interrupt_keeps_the_evaluation_and_is_passed_on(store, judged):
    run_id = store.create_run("1").info.run_id
    moments = iter(["first"])

    def is_first_report(path: Path) -> bool:
        return path.name == "cmtrack_report.html" and next(moments, "") == "first"

    with failing_files(is_first_report, interrupt), pytest.raises(KeyboardInterrupt) as caught:
        log_evaluation(judged, run_id=run_id)
    (entry,) = waiting()
    assert entry.kind == "unfinished"
    assert caught.value.__notes__ == [
        f"cmtrack: the evaluation is kept in {entry.path}; `cmtrack push` sends it"
    ]
    assert [sent.status for sent in push()] == ["sent"]
    assert load_evaluation(run_id) == judged


def test_a_second_interrupt_leaves_what_is_written_to_a_push(store, judged):
    run_id = new_run()

    def follows_the_evaluation(path: Path) -> bool:
        return path.parent.name == "artifacts" and path.name != "cmtrack_evaluation.json"

    with failing_files(follows_the_evaluation, interrupt), pytest.raises(KeyboardInterrupt):
        log_evaluation(judged, run_id=run_id)
    (sent,) = push()
    assert (sent.status, sent.run_id) == ("sent", run_id)
    assert load_evaluation(run_id) == judged


def test_an_interrupt_while_it_is_sent_keeps_it_too(store, judged):
    run_id = store.create_run("1").info.run_id
    with store_is_down(KeyboardInterrupt()), pytest.raises(KeyboardInterrupt) as caught:
        log_evaluation(judged, run_id=run_id)
    assert "is kept in" in caught.value.__notes__[0]
    assert [sent.status for sent in push()] == ["sent"]
    assert load_evaluation(run_id) == judged


def test_a_clock_that_jumps_changes_nothing(store, judged, monkeypatch):
    run_id = store.create_run("1").info.run_id
    times = iter([2e9, 1e9, 3e9, 5e8] * 1000)
    monkeypatch.setattr(time, "time", lambda: next(times))
    assert log_evaluation(judged, run_id=run_id, strict=True).status == "completed"
    assert load_evaluation(run_id) == judged


def test_what_is_misspelt_is_kept_too(store, judged, tmp_path):
    run_id = store.create_run("1").info.run_id
    for options in ({"metrics": ["multiclass/acuracy"]}, {"prefix": "../up"}):
        with pytest.warns(EvaluationWarning, match="cmtrack push"):
            logged = log_evaluation(judged, run_id=run_id, **options)
        assert logged.status == "saved"
        assert logged.path.parent == tmp_path / "cmtrack_spool"
    assert store.get_run(run_id).data.tags.get("cmtrack.status") is None
    assert [entry.status for entry in push(experiment_name="e")] == ["sent", "sent"]


# -- processes -------------------------------------------------------------------------------------------------------


def test_eight_processes_log_at_once(store, tmp_path):
    ids = [store.create_run("1").info.run_id for _ in range(8)]
    done = forked_workers(store.tracking_uri, ids, "at first")  # each opens the database itself
    assert done.stdout.split() == ["0"] * 8, done.stderr
    for run_id in ids:
        assert load_evaluation(run_id).n_samples == 60
    assert not Path("cmtrack_spool").exists()


@pytest.mark.usefixtures("drawn")
def test_a_process_that_is_killed_while_it_writes_leaves_what_can_be_pushed(store, tmp_path):
    run_id = store.create_run("1").info.run_id
    process = child(store.tracking_uri, run_id, 1, "slow")
    assert process.stdout is not None
    # the evaluation is written, the figures are not
    assert process.stdout.readline().strip() == "drawing"
    assert waiting() == []  # its process lives: it is nobody else's
    process.kill()
    process.wait()
    assert [entry.kind for entry in waiting()] == ["unfinished"]
    assert [(entry.status, entry.run_id) for entry in push()] == [("sent", run_id)]
    assert load_evaluation(run_id).n_samples == 60
    assert "cmtrack_confusion_matrix.png" in {file.path for file in store.list_artifacts(run_id)}
    assert not Path("cmtrack_spool").exists()


def test_the_training_script_ends_well_without_a_server(tmp_path):
    with quiet(), warnings.catch_warnings():
        process = subprocess.run(
            [sys.executable, "-c", CHILD, "http://127.0.0.1:9", "0" * 32, "1", "plain"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "PYTHONPATH": HERE},
        )
    assert process.returncode == 0
    assert process.stdout.strip() == "saved"
    assert "EvaluationWarning" in process.stderr
    assert len(list((tmp_path / "cmtrack_spool").iterdir())) == 1


def test_an_entry_that_another_process_sends_is_left_to_it(store, judged):
    with pytest.warns(EvaluationWarning, match="no run is active"):
        logged = log_evaluation(judged)
    with open(logged.path / ".lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (kept,) = push(experiment_name="e")
    assert (kept.status, kept.reason) == ("kept", "it is already being sent")
    assert [entry.status for entry in push(experiment_name="e")] == ["sent"]


@pytest.mark.usefixtures("drawn")
def test_a_push_takes_over_from_the_thread_behind_the_script(proxy, judged):
    run_id = new_run()
    released, held = threading.Event(), []

    def late(method: str, path: str, number: int) -> object:
        if batch(method, path, number) and not held:
            held.append(number)
            released.wait(60)
        return PASS

    proxy.fault = late
    with pytest.warns(EvaluationWarning, match="did not answer for 2 seconds"):
        log_evaluation(judged, run_id=run_id)
    assert [(entry.status, entry.reason) for entry in push()] == [("sent", "")]
    released.set()
    for _ in range(200):
        if not any(thread.name == "cmtrack-send" for thread in threading.enumerate()):
            break
        time.sleep(0.1)
    assert state_of(run_id)["images"] == 2  # the thread stopped: a picture and its thumbnail, once
    assert load_evaluation(run_id) == judged


def test_an_s3_that_hangs_does_not_hold_the_end_of_the_process(store):
    pytest.importorskip("boto3")
    experiment = store.create_experiment("on S3", artifact_location=f"s3://{BUCKET}/x")
    run_id = store.create_run(experiment).info.run_id
    # it takes connections, and answers nothing
    with socket.create_server(("127.0.0.1", 0)) as silent:
        where = {"MLFLOW_S3_ENDPOINT_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        process = child(store.tracking_uri, run_id, 1, "impatient", environment=KEYS | where)
        try:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "saved"
            assert process.wait(60) == 0  # the client alone waits for minutes
        finally:
            process.kill()
    (entry,) = waiting()
    assert entry.kind == "evaluation"
