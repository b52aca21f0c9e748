"""Entries of the spool, as `cmtrack spool` lists and `cmtrack push` sends them: whole, damaged, unfinished, busy."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from cmtrack import Evaluation, evaluate, load_evaluation, log_evaluation
from cmtrack.cli import main
from cmtrack.tracking import EvaluationWarning, build_into, tracking_store
from support.stores import sqlite_store

pytestmark = pytest.mark.usefixtures("undrawn")

EVALUATION = evaluate([0, 1, 1, 0, 2, 2], [0, 1, 0, 0, 2, 1])
NAME = "20260102T030405000006-abc"
MADE = 1767323045000
"""The time in that name, in milliseconds since 1970."""
CLOSED = "http://127.0.0.1:9"
"""A server that nobody runs: the system's port of `discard`."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole entry, without rows and figures, to be copied."""
    folder = tmp_path_factory.mktemp("filled") / NAME
    build_into(
        EVALUATION,
        folder,
        run_id="a" * 32,
        step=3,
        tracking_uri=CLOSED,
        figures=False,
        metrics=["multiclass/accuracy"],
    )
    return folder


@pytest.fixture
def entry(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That entry in a spool of the test's own."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(filled, tmp_path / "spool" / NAME))


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tracking store for the whole file, with the experiments "e" and "deleted"."""
    folder = tmp_path_factory.mktemp("database")
    with (
        pytest.MonkeyPatch.context() as patch,
        tracking_store(sqlite_store(folder / "mlflow.db")) as uri,
    ):
        patch.chdir(folder)  # artifacts of other experiments are below it
        mlflow.create_experiment("e", artifact_location=(folder / "artifacts").as_uri())
        mlflow.delete_experiment(mlflow.create_experiment("deleted"))
    return uri


@pytest.fixture
def client(database: str) -> Iterator[mlflow.MlflowClient]:
    """A client of that store, which is the current one."""
    with tracking_store(database):
        yield mlflow.MlflowClient()


def new_run(client: mlflow.MlflowClient) -> str:
    return str(client.create_run("1").info.run_id)


def called(command: str, folder: Path, *options: str) -> list[dict[str, Any]]:
    """The entries of a command's JSON."""
    where = ["--folder", str(folder)]
    if not folder.is_absolute():
        where = []
    done = CliRunner().invoke(main, [command, "--json", *where, *options])
    entries: list[dict[str, Any]] = json.loads(done.stdout)["entries"]
    return entries


def only_pushed(entry: Path, *options: str) -> dict[str, Any]:
    [pushed] = called("push", entry.parent, *options)
    return pushed


def change(entry: Path, **values: Any) -> None:
    """Give an entry's file other values."""
    file = entry / "entry.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | values))


@contextmanager
def held(lock: Path) -> Iterator[None]:
    """Hold a lock as another process does."""
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- whole entries ---------------------------------------------------------------------------------------------------


def test_an_entry_is_listed_with_what_it_holds_and_where_it_goes(entry: Path) -> None:
    [listed] = called("spool", entry.parent)
    assert listed["name"] == NAME
    assert listed["kind"] == "evaluation"
    assert listed["made"] == "2026-01-02 03:04:05"
    assert listed["what"] == "evaluation of 6 rows"
    assert listed["meant_for"] == f"run {'a' * 32} in {CLOSED}"
    assert listed["size"] == sum(p.stat().st_size for p in entry.rglob("*") if p.is_file())
    change(entry, run_id=None)
    [listed] = called("spool", entry.parent)
    assert listed["meant_for"] == "no run"


def test_an_entry_is_sent_as_it_was_written_and_goes(
    entry: Path, client: mlflow.MlflowClient, database: str
) -> None:
    run_id = new_run(client)
    change(entry, run_id=run_id, tracking_uri=database, problems=["figure roc: no ink"])
    leftovers = [f".{NAME}.1234", f".{NAME}.sent", f".{NAME}"]
    for name in leftovers:
        (entry.parent / name).mkdir()
    pushed = only_pushed(entry)
    assert (pushed["status"], pushed["run_id"]) == ("sent", run_id)
    assert pushed["problems"] == ["figure roc: no ink"]
    assert not entry.parent.exists()
    assert load_evaluation(run_id) == EVALUATION
    [point] = client.get_metric_history(run_id, "multiclass/accuracy")
    assert (point.value, point.step) == (pytest.approx(4 / 6), 3)
    assert abs(point.timestamp - time.time() * 1000) < 3_600_000


@pytest.mark.parametrize("step", [(1 << 63) - 1, 0, -7, None])
def test_steps_of_64_bits_are_read(entry: Path, step: int | None) -> None:
    change(entry, step=step, metrics={"a": sys.float_info.max})
    assert "does not answer" in only_pushed(entry)["reason"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"run_id": "a/b"}, "run_id must be an id"),
        ({"run_id": 1}, "run_id must be a str, got int"),
        ({"model_id": ".."}, "model_id must be an id"),
        ({"prefix": "../"}, "prefix must start with"),
        ({"step": True}, "step must be a whole number, got True"),
        ({"step": 1.0}, "step must be a whole number, got 1.0"),
        ({"step": 1 << 63}, "step must be a number of at most 64 bits, got 64"),
        ({"timestamp": None}, "timestamp must be a int, got NoneType"),
        ({"timestamp": -(1 << 63)}, "timestamp must be a number of at most 64 bits"),
        ({"tracking_uri": "ftp://a"}, "a tracking URI must have one of the schemes"),
        ({"metrics": {"a": True}}, "metrics must be finite numbers, got True"),
        ({"metrics": {"a": "1"}}, "metrics must be finite numbers, got '1'"),
        ({"metrics": {"a": 10**400}}, "metrics must be finite numbers"),
        ({"tags": {"mlflow.user": "x"}}, "tags must be named cmtrack"),
        ({"tags": {"cmtrack.a": 1}}, "tags must contain texts"),
        ({"tags": {}}, "is damaged: it is not the file that was written"),
        ({"images": {"a": "absent.png"}}, "names a file that is not in the entry"),
        ({"table": "../a"}, "table must be a plain name"),
        ({"dataset": {"name": "d"}}, "dataset must have name and digest"),
        ({"dataset": {"name": "d", "digest": "e", "x": ""}}, "dataset must have name and digest"),
        ({"problems": "p"}, "problems must be a list"),
        ({"schema": 3}, "reads up to 1"),
    ],
)
def test_an_entry_with_a_wrong_value_is_refused(
    entry: Path, values: dict[str, Any], says: str
) -> None:
    change(entry, **values)
    pushed = only_pushed(entry)
    assert pushed["status"] == "refused"
    assert says in pushed["reason"]
    [listed] = called("spool", entry.parent)
    assert listed["kind"] == "damaged"
    assert says in listed["what"]


def no_mapping(entry: Path) -> None:
    (entry / "entry.json").write_text("[]")


def no_json(entry: Path) -> None:
    (entry / "entry.json").write_text("{")


def no_number(entry: Path) -> None:
    (entry / "entry.json").write_text('{"a": NaN}')


def long_file(entry: Path) -> None:
    with (entry / "entry.json").open("r+b") as file:
        file.truncate((16 << 20) + 1)


def folder_among_files(entry: Path) -> None:
    (entry / "artifacts" / "folder").mkdir()


def link_among_files(entry: Path) -> None:
    (entry / "artifacts" / "link").symlink_to(entry / "entry.json")


def files_elsewhere(entry: Path) -> None:
    (entry / "artifacts").rename(entry / "elsewhere")
    (entry / "artifacts").symlink_to(entry / "elsewhere")


def many_files(entry: Path) -> None:
    for number in range(1001):
        (entry / "artifacts" / f"{number}").touch()


def many_bytes(entry: Path) -> None:
    with (entry / "artifacts" / "sparse").open("wb") as file:
        file.truncate((4 << 30) + 1)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (no_mapping, "must be a mapping, got list"),
        (no_json, "is damaged"),
        (no_number, "not a finite number"),
        (long_file, "must not be larger than 16 MB"),
        (folder_among_files, "artifacts must be plain files, got 'folder'"),
        (link_among_files, "artifacts must be plain files, got 'link'"),
        (files_elsewhere, "an entry must have a folder 'artifacts'"),
        (many_files, "an entry may contain at most 1000 files and 4 GB"),
        (many_bytes, "an entry may contain at most 1000 files and 4 GB"),
    ],
)
def test_an_entry_with_other_files_is_refused(
    entry: Path, damage: Callable[[Path], None], says: str
) -> None:
    damage(entry)
    pushed = only_pushed(entry)
    assert pushed["status"] == "refused"
    assert says in pushed["reason"]
    assert entry.exists()


@pytest.mark.parametrize("part", ["charts", "artifacts"])
def test_images_lie_in_their_own_folder_or_among_the_files(
    entry: Path, client: mlflow.MlflowClient, database: str, part: str
) -> None:
    """Earlier versions had no folder of images."""
    (entry / part).mkdir(exist_ok=True)
    Image.new("RGB", (8, 8)).save(entry / part / "a.png")
    run_id = new_run(client)
    change(entry, run_id=run_id, tracking_uri=database, images={"cmtrack/a": "a.png"})
    assert only_pushed(entry)["status"] == "sent"
    assert len(client.list_artifacts(run_id, "images")) == 2  # the image and its thumbnail


def test_other_folders_and_links_are_no_entries(entry: Path) -> None:
    (entry.parent / "0-other").mkdir()
    (entry.parent / "0-other" / "notes.txt").touch()
    (entry.parent / "1-link").symlink_to(entry)
    shutil.copytree(entry, entry.parent / "2-gone.sent")
    assert [one["name"] for one in called("spool", entry.parent)] == [NAME]


# -- entries with rows -----------------------------------------------------------------------------------------------


@pytest.fixture
def spooled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: mlflow.MlflowClient) -> Path:
    """An entry with rows, of an evaluation that was logged without a run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    with pytest.warns(EvaluationWarning, match="no run is active"):
        logged = log_evaluation(
            EVALUATION, prefix="val/", metrics="all", dataset=" d ", figures=False
        )
    assert logged.path is not None
    return logged.path


ROWS = "val_cmtrack_predictions.parquet"


def remove_rows(entry: Path) -> None:
    (entry / "artifacts" / ROWS).unlink()


def damage_rows(entry: Path) -> None:
    (entry / "artifacts" / ROWS).write_bytes(b"damaged")


def rows_are_whole(entry: Path) -> None:
    assert (entry / "artifacts" / ROWS).exists()


@pytest.mark.parametrize("damage", [remove_rows, damage_rows])
def test_rows_that_are_gone_or_damaged_cost_the_rows_only(
    spooled: Path, client: mlflow.MlflowClient, damage: Callable[[Path], None]
) -> None:
    damage(spooled)
    pushed = only_pushed(spooled, "--experiment", "e")
    assert pushed["status"] == "sent"
    [listed, lost] = pushed["problems"]
    assert listed.startswith("the rows listed in val_cmtrack_report.html")
    assert lost.startswith(f"the rows in {ROWS}: ")
    assert load_evaluation(pushed["run_id"], prefix="val/") == EVALUATION
    with pytest.raises(ValueError, match="predictions by row were not kept"):
        load_evaluation(pushed["run_id"], prefix="val/", rows=True)


def test_what_waits_is_private_and_has_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    with (
        tracking_store("http://me:secret@127.0.0.1:9"),
        pytest.warns(EvaluationWarning, match="the tracking server 127.0.0.1:9 does not answer"),
    ):
        path = log_evaluation(EVALUATION, run_id="r", figures=False).path
    assert path is not None
    assert path.parent.stat().st_mode & 0o777 == 0o700
    files = [file for file in path.rglob("*") if file.is_file()]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert not any(b"secret" in file.read_bytes() for file in files)
    kept = json.loads((path / "entry.json").read_text())
    assert (kept["run_id"], kept["tracking_uri"]) == ("r", CLOSED)


# -- unfinished entries ----------------------------------------------------------------------------------------------


@pytest.fixture
def unfinished(spooled: Path) -> Path:
    """What a process left that was killed before the entry was whole."""
    return spooled.rename(spooled.with_name(f".{NAME}"))


@pytest.mark.parametrize("damage", [rows_are_whole, remove_rows, damage_rows])
def test_what_was_interrupted_is_made_whole_and_sent(
    unfinished: Path,
    client: mlflow.MlflowClient,
    damage: Callable[[Path], None],
) -> None:
    run_id = new_run(client)
    change(unfinished, run_id=run_id)
    damage(unfinished)
    [listed] = called("spool", unfinished.parent)
    assert (listed["name"], listed["kind"]) == (NAME, "unfinished")
    pushed = only_pushed(unfinished)
    assert (pushed["status"], pushed["run_id"]) == ("sent", run_id)
    with_rows = damage is rows_are_whole
    problems = [] if with_rows else ["the rows: the process was interrupted before it wrote them"]
    assert pushed["problems"] == problems
    assert not unfinished.parent.exists()
    assert load_evaluation(run_id, prefix="val/", rows=with_rows) == EVALUATION
    run = client.get_run(run_id)
    assert "val/class/0/recall" in run.data.metrics
    assert run.inputs.dataset_inputs[0].dataset.name == "d"
    [point] = client.get_metric_history(run_id, "val/multiclass/accuracy")
    assert point.timestamp == MADE


def test_without_a_whole_evaluation_it_is_refused_and_stays(unfinished: Path) -> None:
    for content in (b"{", None):
        file = unfinished / "artifacts" / "val_cmtrack_evaluation.json"
        if content is None:
            file.unlink()
        else:
            file.write_bytes(content)
        pushed = only_pushed(unfinished)
        assert pushed["status"] == "refused"
        assert "it was interrupted before the evaluation was complete" in pushed["reason"]
    for text in ("[]", "{"):
        (unfinished / "entry.json").write_text(text)
        assert only_pushed(unfinished)["status"] == "refused"
    for name, limit in (("entry.json", 16), ("intent.json", 1)):
        with (unfinished / name).open("wb") as file:
            file.truncate((limit << 20) + 1)
        assert f"must not be larger than {limit} MB" in only_pushed(unfinished)["reason"]
        (unfinished / name).unlink()


def test_what_is_being_written_is_not_listed(unfinished: Path) -> None:
    with held(unfinished / ".lock"):
        assert called("spool", unfinished.parent) == []
    assert len(called("spool", unfinished.parent)) == 1
    shutil.copytree(unfinished, unfinished.with_name(NAME))  # now the finished one is there
    assert [one["kind"] for one in called("spool", unfinished.parent)] == ["evaluation"]


def test_without_a_lock_an_entry_is_left_when_nobody_has_written_for_ten_minutes(
    unfinished: Path,
) -> None:
    (unfinished / ".lock").unlink()
    for minutes, kinds in ((0, []), (9, []), (11, ["unfinished"])):
        for path in (*unfinished.rglob("*"), unfinished):
            os.utime(path, (time.time() - 60 * minutes,) * 2)
        assert [one["kind"] for one in called("spool", unfinished.parent)] == kinds


# -- who sends, and where to -----------------------------------------------------------------------------------------


def test_an_entry_that_another_process_sends_is_left_to_it(
    entry: Path, client: mlflow.MlflowClient
) -> None:
    run_id = new_run(client)
    change(entry, run_id=run_id, tracking_uri=client.tracking_uri)
    with held(entry / ".lock"):
        pushed = only_pushed(entry)
    assert (pushed["status"], pushed["reason"]) == ("kept", "it is already being sent")
    assert only_pushed(entry)["status"] == "sent"


@pytest.mark.parametrize("run_id", [None, "gone"])
def test_what_was_meant_for_no_run_waits_until_an_experiment_is_named(
    entry: Path, client: mlflow.MlflowClient, run_id: str | None
) -> None:
    change(entry, run_id=run_id, tracking_uri=client.tracking_uri)
    missing = f"there is no run {run_id!r}" if run_id else "it has no run"
    pushed = only_pushed(entry)
    assert pushed["status"] == "kept"
    assert pushed["reason"].startswith(f"{missing}: name an experiment for it (--experiment NAME")
    pushed = only_pushed(entry, "--experiment", "deleted")
    assert pushed["status"] == "kept"
    assert "the experiment 'deleted' is deleted and accepts no runs" in pushed["reason"]
    pushed = only_pushed(entry, "--experiment", f"new for {run_id}")
    assert pushed["status"] == "sent"
    run = client.get_run(pushed["run_id"])
    assert (run.info.run_name, run.info.status) == (NAME, "FINISHED")
    experiment = client.get_experiment(run.info.experiment_id)
    assert experiment.name == f"new for {run_id}"


def test_inputs_that_could_not_be_evaluated_are_listed_and_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    given = np.array(["a", None, "b"], dtype=object)
    with pytest.warns(EvaluationWarning, match="`cmtrack spool` explains how to log them"):
        logged = log_evaluation(given, ["a", "b"])
    assert logged.path is not None
    with np.load(logged.path / "inputs.npz") as arrays:
        assert arrays["y_true"].tolist() == ["a", "None", "b"]
        assert arrays["y_pred"].tolist() == ["a", "b"]
    [listed] = called("spool", tmp_path / "spool")
    assert (listed["kind"], listed["what"]) == (
        "inputs",
        "the inputs of a failed evaluation",
    )
    pushed = only_pushed(logged.path)
    assert pushed["status"] == "refused"
    assert "load inputs.npz with numpy.load, correct the arrays" in pushed["reason"]


def test_an_entry_of_another_user_does_not_say_where_to_send(
    entry: Path, client: mlflow.MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(entry, run_id=new_run(client), tracking_uri=client.tracking_uri)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    pushed = only_pushed(entry)
    assert pushed["status"] == "refused"
    assert pushed["reason"].startswith("it belongs to another user: name the store")
    assert only_pushed(entry, "--tracking-uri", client.tracking_uri)["status"] == "sent"


SILENT = "the tracking server 127.0.0.1:9 does not answer"
ASKS = "which is not the current tracking server and would get your password or token"


@pytest.mark.parametrize(
    ("uri", "current", "secret", "says"),
    [
        (CLOSED, "http://u:p@127.0.0.1:9", "TOKEN", SILENT),
        (CLOSED, "http://127.0.0.1:9/", "TOKEN", SILENT),
        (CLOSED, "http://other", "", SILENT),
        (CLOSED, "http://other", "TOKEN", ASKS),
        (CLOSED, "http://other", "PASSWORD", ASKS),
        (CLOSED, "http://other", "AUTH", ASKS),
        (CLOSED, "http://other", "AWS_SIGV4", ASKS),
        (CLOSED, "http://other", "CLIENT_CERT_PATH", ASKS),
        ("HTTPS://127.0.0.1:9", "http://127.0.0.1:9", "TOKEN", ASKS),
        (CLOSED, "sqlite:///a.db", "TOKEN", ASKS),
    ],
)
def test_a_password_goes_to_no_server_that_a_file_names(
    entry: Path,
    monkeypatch: pytest.MonkeyPatch,
    uri: str,
    current: str,
    secret: str,
    says: str,
) -> None:
    for name in ("USERNAME", "PASSWORD", "TOKEN", "AUTH", "AWS_SIGV4", "CLIENT_CERT_PATH"):
        monkeypatch.delenv(f"MLFLOW_TRACKING_{name}", raising=False)
    if secret:
        monkeypatch.setenv(f"MLFLOW_TRACKING_{secret}", "true")
    change(entry, tracking_uri=uri)
    with tracking_store(current):
        pushed = only_pushed(entry)
    assert pushed["status"] == "kept"
    assert says in pushed["reason"]


def test_a_silent_store_is_asked_once_for_all_entries(entry: Path) -> None:
    connections: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def hang_up() -> None:
            while True:
                connection, address = listening.accept()
                connections.append(address[1])
                connection.close()

        threading.Thread(target=hang_up, daemon=True).start()
        change(entry, tracking_uri=f"http://127.0.0.1:{listening.getsockname()[1]}")
        for place in ("1", "2"):
            shutil.copytree(entry, entry.with_name(f"{NAME}{place}"))
        done = CliRunner().invoke(main, ["push", "--folder", str(entry.parent)])
    assert done.exit_code == 1
    assert "0 of 3 sent." in done.output
    assert len(connections) == 1


# -- places ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which neither the working folder's nor the user's spool can be made, as a file is in their way."""
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CMTRACK_SPOOL", str(file / "spool"))
    monkeypatch.setenv("XDG_DATA_HOME", str(file))
    return file


def test_a_place_that_refuses_is_left_for_the_user_s_own(
    without_places: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    with pytest.warns(EvaluationWarning) as warned:
        logged = log_evaluation(EVALUATION, figures=False)
    [refused, not_logged] = [str(one.message) for one in warned]
    assert f"the local copy could not be written to {without_places}/spool: " in refused
    assert refused.endswith(f"; written instead to {tmp_path}/home/cmtrack/spool")
    assert "the evaluation is kept in" in not_logged
    assert logged.path is not None
    assert logged.path.parent == tmp_path / "home" / "cmtrack" / "spool"
    listed = called("spool", Path())
    assert str(logged.path) in [one["path"] for one in listed]


def test_with_no_place_at_all_the_metrics_are_sent_and_it_is_said_that_no_copy_is_kept(
    without_places: Path, client: mlflow.MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> str:
        raise OSError("No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # temporary spools are another's
    run_id = new_run(client)
    for meant_for in (run_id, "0" * 32):
        with pytest.warns(EvaluationWarning) as warned:
            logged = log_evaluation(EVALUATION, run_id=meant_for, figures=False)
        assert str(warned[0].message).endswith("; no copy is kept")
        assert "no folder on this machine could be written" in str(warned[-1].message)
        assert (logged.status, logged.path) == ("failed", None)
    run = client.get_run(run_id)
    assert run.data.metrics["multiclass/accuracy"] == EVALUATION.metrics["multiclass/accuracy"]
    assert run.data.tags["cmtrack.status"] == "metrics only"


@pytest.mark.parametrize(("method", "kept"), [("to_json", False), ("write_rows", True)])
def test_an_interrupt_keeps_an_evaluation_that_was_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, kept: bool
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(Evaluation, method, interrupt)
    with pytest.raises(KeyboardInterrupt) as raised:
        log_evaluation(EVALUATION, run_id="r", figures=False)
    notes = getattr(raised.value, "__notes__", [])
    assert [f"the evaluation is kept in {tmp_path}" in note for note in notes] == [True] * kept
    monkeypatch.undo()
    listed = called("spool", tmp_path / "spool")
    assert [one["kind"] for one in listed] == ["unfinished"] * kept


def test_an_error_leaves_no_half_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no text")

    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(Evaluation, "to_json", fail)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        logged = log_evaluation(EVALUATION, run_id="r", figures=False)
    assert logged.status == "failed"
    assert "could not be kept either: no text" in str(warned[-1].message)
    assert not (tmp_path / "spool").exists()
