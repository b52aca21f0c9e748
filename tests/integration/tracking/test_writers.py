"""Stores that swallow what they accept, and several writers of one run: no part and no evaluation is lost."""

from __future__ import annotations

import http.server
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from mlflow import MlflowClient
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from cmtrack import evaluate, load_evaluation, log_evaluation, segment_runs
from support.faults import store_is_down
from support.stores import push

Y, HALF = [0, 1] * 20, [0, 0] * 20
NOTE = "mlflow.note.content"
TABLES = "mlflow.loggedArtifacts"


@pytest.fixture
def run_id(store: MlflowClient) -> str:
    return store.create_run(store.get_experiment_by_name("e").experiment_id).info.run_id


class Swallowing(http.server.BaseHTTPRequestHandler):
    """A proxy before an artifact store, which keeps nothing or half of what it accepts."""

    mode = "page"
    held: dict[str, int] = {}  # noqa: RUF012 - of one server

    def do_PUT(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.mode == "half":
            self.held[self.path.rsplit("/", 1)[-1]] = len(content) // 2
        page = b"<html>Please accept our terms</html>"
        self.send_response(302 if self.mode == "login" else 200)
        self.send_header("Location", "/login")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def do_GET(self) -> None:
        files = [
            {"path": name, "is_dir": False, "file_size": size} for name, size in self.held.items()
        ]
        content = json.dumps({"files": files}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Swallowing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("CMTRACK_ARTIFACT_HOSTS", address)
    yield address
    server.shutdown()
    server.server_close()


LISTED = "/api/2.0/mlflow-artifacts/artifacts/e"
"""A folder that MLflow lists; of plain HTTP servers it lists none."""


ACCEPTED = "the store has accepted cmtrack_evaluation.json, but "
SENT_ON = "the store answers 302 and redirects the request to another address"


@pytest.mark.parametrize(
    ("mode", "folder", "reason"),
    [
        ("page", "/files", f"{ACCEPTED}does not contain it"),
        ("page", LISTED, f"{ACCEPTED}does not contain it"),
        ("login", "/files", SENT_ON),
        ("login", LISTED, SENT_ON),
        ("half", LISTED, f"{ACCEPTED}has [0-9,]+ bytes instead of "),
    ],
)
def test_what_a_store_only_says_to_hold_stays_in_the_spool(
    store: MlflowClient,
    proxy: str,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    folder: str,
    reason: str,
) -> None:
    monkeypatch.setattr(Swallowing, "mode", mode)
    monkeypatch.setattr(Swallowing, "held", {})
    experiment = store.create_experiment(mode, artifact_location=f"{proxy}{folder}")
    run_id = store.create_run(experiment).info.run_id
    with pytest.warns(UserWarning, match=reason):
        logged = log_evaluation(Y, Y, run_id=run_id, figures=False)
    assert (logged.status, logged.path.exists()) == ("saved", True)
    assert store.get_run(run_id).data.tags["cmtrack.status"] == "started"


class Passing(http.server.BaseHTTPRequestHandler):
    """A server that sends every upload on to another one, or takes it."""

    to = ""
    taken: list[str] = []  # noqa: RUF012 - of one server

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if not self.to:
            self.taken.append(self.path)
        self.send_response(307 if self.to else 200)
        self.send_header("Location", f"{self.to}{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


def test_no_file_goes_to_a_server_that_an_upload_is_sent_on_to(
    store: MlflowClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = type("Other", (Passing,), {"taken": []})
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), other)]
    address = f"http://127.0.0.1:{servers[0].server_port}"
    servers.append(
        http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), type("First", (Passing,), {"to": address})
        )
    )
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    allowed = f"http://127.0.0.1:{servers[1].server_port}"
    monkeypatch.setenv("CMTRACK_ARTIFACT_HOSTS", allowed)
    run_id = store.create_run(
        store.create_experiment("on", artifact_location=f"{allowed}/files")
    ).info.run_id
    with pytest.warns(
        UserWarning, match="the store answers 307 and redirects the request to another address"
    ):
        logged = log_evaluation(Y, Y, run_id=run_id, figures=False)
    for server in servers:
        server.shutdown()
        server.server_close()
    assert (logged.status, other.taken) == ("saved", [])


class Signing(http.server.BaseHTTPRequestHandler):
    """A tracking server that gives files only by signed addresses, which another server answers."""

    to = ""
    content = b""
    heads: list[tuple[str, str | None]] = []  # noqa: RUF012 - of one server

    def do_GET(self) -> None:
        self.heads.append((self.path, self.headers.get("Authorization")))
        status, content = 403, b"{}"
        if "/presigned/" in self.path:
            status, content = (
                200,
                json.dumps({"url": f"{self.to}/bucket/signed?x=1", "headers": {}}).encode(),
            )
        if self.path.startswith("/bucket/") or "/mlflow/runs/get" in self.path:
            status, content = 200, self.content
        if self.path == "/health":
            status, content = 200, b"OK"
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_file_is_read_from_the_address_that_the_tracking_server_signs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluation, run_id = evaluate(Y, HALF), "0" * 32
    info = {
        "run_id": run_id,
        "run_uuid": run_id,
        "experiment_id": "1",
        "status": "FINISHED",
        "artifact_uri": f"mlflow-artifacts:/1/{run_id}/artifacts",
        "lifecycle_stage": "active",
    }
    run = {"run": {"info": info, "data": {}, "inputs": {}}}
    bucket = type("Bucket", (Signing,), {"content": evaluation.to_json().encode(), "heads": []})
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), bucket)]
    address = f"http://127.0.0.1:{servers[0].server_port}"
    answers = {"to": address, "content": json.dumps(run).encode(), "heads": []}
    tracking = type("Tracking", (Signing,), answers)
    servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), tracking))
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "T0KEN")
    uri = f"http://127.0.0.1:{servers[1].server_port}"
    try:
        assert load_evaluation(run_id, client=MlflowClient(uri)) == evaluation
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
    file = f"1/{run_id}/artifacts/cmtrack_evaluation.json"
    asked = [
        path.partition("/mlflow-artifacts")[2] for path, _ in tracking.heads if "artifacts/" in path
    ]
    assert asked == [f"/artifacts/{file}", f"/presigned/{file}"]
    assert bucket.heads == [("/bucket/signed?x=1", None)]  # once, and without the token


ROWS = b"<!-- rows -->"


class Killed(BaseException):
    """The end of a process."""


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["nothing", "cut", "gone", "killed"])
@pytest.mark.parametrize("setting", ["off", "labels"])
def test_a_page_lists_no_rows_that_may_not_be_sent(
    run_id: str, monkeypatch: pytest.MonkeyPatch, damage: str, setting: str
) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    with pytest.warns(UserWarning, match="on_existing must be"):
        waiting = log_evaluation(y, y_prob=rng.random(200), run_id=run_id, on_existing="?").path
    rows, page = (
        waiting / "artifacts" / f"cmtrack_{name}" for name in ("predictions.parquet", "report.html")
    )
    assert ROWS in page.read_bytes()
    if damage == "cut":
        rows.write_bytes(rows.read_bytes()[:-9])
    if damage == "gone":
        rows.unlink()
    monkeypatch.setenv("CMTRACK_PREDICTIONS", setting)
    if damage == "killed":
        with (
            mock.patch("os.replace", side_effect=Killed),
            pytest.raises(Killed),
        ):
            push()
    (pushed,) = push()
    assert pushed.status == "sent"
    folder = Path(MlflowClient().get_run(run_id).info.artifact_uri.removeprefix("file://"))
    assert ROWS not in (folder / "cmtrack_report.html").read_bytes()


def test_a_later_evaluation_is_kept_where_a_clock_was_ahead(run_id: str) -> None:
    with mock.patch("time.time", return_value=time.time() + 3600):
        log_evaluation(Y, Y, run_id=run_id, figures=False, strict=True)
    with store_is_down(), pytest.warns(UserWarning, match="does not answer"):
        waiting = log_evaluation(Y, HALF, run_id=run_id, figures=False)
    (pushed,) = push()
    assert (pushed.status, waiting.path.exists()) == ("kept", True)
    assert "holds an evaluation with a later time" in pushed.reason
    assert load_evaluation(run_id) == evaluate(Y, Y)
    (pushed,) = push(replace_newer=True)
    assert (pushed.status, waiting.path.exists()) == ("sent", False)
    assert load_evaluation(run_id) == evaluate(Y, HALF)


def test_an_older_entry_goes_where_the_run_holds_the_same_evaluation_and_more(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, store_is_down():
        patch.setenv("CMTRACK_PREDICTIONS", "off")
        with pytest.warns(UserWarning, match="does not answer"):
            waiting = log_evaluation(Y, HALF, run_id=run_id, figures=False).path
    log_evaluation(Y, HALF, run_id=run_id, figures=False, strict=True)
    assert waiting.exists()
    (pushed,) = push()
    assert (pushed.status, waiting.exists()) == ("sent", False)
    files = {file.path for file in MlflowClient().list_artifacts(run_id)}
    assert "cmtrack_predictions.parquet" in files


def between(monkeypatch: pytest.MonkeyPatch, action: Any) -> list[Any]:
    """Do something once, after the files of an evaluation were sent and before its tags are."""
    real, done = MlflowClient.log_inputs, []

    def log_inputs(*given: Any, **options: Any) -> Any:
        if not done:
            done.append(None)
            done[0] = action()
        return real(*given, **options)

    monkeypatch.setattr(MlflowClient, "log_inputs", log_inputs)
    return done


def test_two_spools_leave_an_evaluation_that_can_be_read(
    run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other() -> str:
        with mock.patch.dict(os.environ, {"CMTRACK_SPOOL": str(tmp_path / "other")}):
            return log_evaluation(Y, HALF, run_id=run_id, figures=False, strict=True).status

    done = between(monkeypatch, other)
    assert log_evaluation(Y, Y, run_id=run_id, figures=False).status == "completed"
    assert done == ["completed"]
    assert load_evaluation(run_id) == evaluate(Y, Y)
    assert MlflowClient().get_run(run_id).data.metrics["multiclass/accuracy"] == 1


def test_writers_under_other_prefixes_keep_each_others_blocks_and_tables(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def others() -> list[str]:
        return [
            log_evaluation(
                Y, HALF, run_id=run_id, prefix=f"part{k}/", figures=False, strict=True
            ).status
            for k in (1, 2)
        ]

    done = between(monkeypatch, others)
    log_evaluation(Y, Y, run_id=run_id, prefix="part0/", figures=False, strict=True)
    assert done == [["completed", "completed"]]
    tags = MlflowClient().get_run(run_id).data.tags
    for k in range(3):
        assert f"<!-- /cmtrack part{k}/ -->" in tags[NOTE]
        assert f'"part{k}_cmtrack_classes.json"' in tags[TABLES]


def test_a_writer_that_read_before_another_one_wrote_keeps_its_part(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = MlflowClient.log_batch
    others: list[str] = []

    def log_batch(self: MlflowClient, run: str, **given: Any) -> Any:
        closes = any(tag.key == NOTE for tag in given.get("tags", ()))
        # another one writes all of its own between the reading and the writing of this one
        if closes and not others:
            others.append("")
            with mock.patch.dict(os.environ, {"CMTRACK_SPOOL": os.path.abspath("other")}):
                others.append(
                    log_evaluation(Y, HALF, run_id=run, prefix="part1/", figures=False).status
                )
        return real(self, run, **given)

    monkeypatch.setattr(MlflowClient, "log_batch", log_batch)
    assert (
        log_evaluation(Y, Y, run_id=run_id, prefix="part0/", figures=False, strict=True).problems
        == ()
    )
    assert others == ["", "completed"]
    tags = MlflowClient().get_run(run_id).data.tags
    assert [f"<!-- /cmtrack part{k}/ -->" in tags[NOTE] for k in range(2)] == [True] * 2
    assert [f'"part{k}_cmtrack_classes.json"' in tags[TABLES] for k in range(2)] == [True] * 2


@pytest.mark.parametrize("prefix", ["", "part0/"])
def test_a_table_of_segments_and_another_writers_tables_are_both_listed(
    run_id: str, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    log_evaluation(Y, Y, run_id=run_id, prefix=prefix, figures=False, strict=True)
    statuses: list[str] = []

    def beside(name: str) -> None:
        write = getattr(MlflowClient, name)

        def write_second(self: MlflowClient, *args: Any, **options: Any) -> Any:
            """Let another writer read and write its tags between the reading and the writing of this one."""
            if not statuses and TABLES in f"{args}{options}":
                statuses.append("begun")
                statuses.append(
                    log_evaluation(Y, HALF, run_id=run_id, prefix="part1/", figures=False).status
                )
            return write(self, *args, **options)

        monkeypatch.setattr(MlflowClient, name, write_second)

    beside("set_tag")
    beside("log_batch")
    table = {"y": Y, "site": ["a", "b", "b", "a"] * 10}
    segment_runs(run_id, table, segments=["site"], y_true="y", prefix=prefix, log=True)
    assert statuses == ["begun", "completed"]
    tags = MlflowClient().get_run(run_id).data.tags
    first = prefix.replace("/", "_")
    files = [
        f"{first}cmtrack_classes.json",
        f"{first}cmtrack_segments.json",
        "part1_cmtrack_classes.json",
    ]
    assert [f'"{file}"' in tags[TABLES] for file in files] == [True] * 3
    assert [
        f"<!-- /cmtrack{label} -->" in tags[NOTE] for label in (f" {prefix}".rstrip(), " part1/")
    ] == [True] * 2


def test_the_part_of_an_evaluation_is_read_with_care(run_id: str) -> None:
    damaged = [
        "",
        "[]",
        "{}",
        '{"prefix": "a/", "block": 3, "tables": []}',
        '{"prefix": "..", "block": "", "tables": []}',
    ]
    damaged.append('{"prefix": "a/", "block": "", "tables": ["../a"]}')
    for number, text in enumerate(damaged):
        MlflowClient().set_tag(run_id, f"cmtrack.p{number}.part", text)
    assert log_evaluation(Y, Y, run_id=run_id, figures=False, strict=True).problems == ()
    tags = MlflowClient().get_run(run_id).data.tags
    assert "cmtrack.part" not in tags  # the run has one evaluation
    assert tags[NOTE].count("<!-- /cmtrack") == 1


@pytest.mark.slow
def test_threads_with_other_prefixes_keep_each_others_parts(run_id: str) -> None:
    def log(k: int) -> None:
        log_evaluation(Y, Y, run_id=run_id, prefix=f"part{k}/", figures=False)

    threads = [threading.Thread(target=log, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    push()  # what a slow machine has left
    tags = MlflowClient().get_run(run_id).data.tags
    assert [f"<!-- /cmtrack part{k}/ -->" in tags[NOTE] for k in range(4)] == [True] * 4
    assert [f'"part{k}_cmtrack_classes.json"' in tags[TABLES] for k in range(4)] == [True] * 4


@pytest.mark.slow
def test_fourteen_prefixes_have_a_block_each(run_id: str) -> None:
    for k in range(14):
        assert (
            log_evaluation(
                Y, Y, run_id=run_id, prefix=f"fold{k}/", figures=False, strict=True
            ).problems
            == ()
        )
    note = MlflowClient().get_run(run_id).data.tags[NOTE]
    assert [f"<!-- /cmtrack fold{k}/ -->" in note for k in range(14)] == [True] * 14
    assert len(note) <= 8000


def test_what_mlflow_has_no_room_for_is_named(run_id: str) -> None:
    client = MlflowClient()
    client.set_tag(
        run_id,
        TABLES,
        json.dumps([{"path": f"tables/{k:04}.json", "type": "table"} for k in range(170)]),
    )
    client.set_tag(run_id, NOTE, "x" * 7900)
    with pytest.warns(UserWarning, match="its block of the description: no room in MLflow's tag"):
        logged = log_evaluation(Y, Y, run_id=run_id, figures=False)
    assert logged.status == "completed"
    tags = client.get_run(run_id).data.tags
    assert tags[NOTE] == "x" * 7900
    assert json.loads(tags[TABLES])[-1]["path"] == "cmtrack_classes.json"


@pytest.mark.slow
def test_a_step_does_not_list_the_images_of_the_steps_before(
    run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, real = [], LocalArtifactRepository.list_artifacts

    def listed(self: Any, path: str | None = None) -> Any:
        asked.append(path)
        return real(self, path)

    monkeypatch.setattr(LocalArtifactRepository, "list_artifacts", listed)
    one = evaluate(np.arange(40) % 2, np.arange(40) % 2)
    for step in range(3):
        log_evaluation(one, run_id=run_id, step=step, strict=True)
    assert "images" not in asked
