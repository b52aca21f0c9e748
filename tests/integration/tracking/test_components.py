"""Nothing lost and nothing leaked on what companies run: PostgreSQL, S3, nginx, passwords, proxies, containers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
import requests

import cmtrack
from cmtrack import compare, evaluate, load_evaluation, log_evaluation
from cmtrack.tracking import EvaluationWarning, tracking_store
from support.components import ADMIN, HOSTS, Company, Service, basic_auth, need, nginx, state_of
from support.faults import (
    HERE,
    PASS,
    FaultyProxy,
    ForwardProxy,
    child,
    forked_workers,
    wait_for_stores,
)
from support.problems import random_problem
from support.stores import push, waiting

pytestmark = [pytest.mark.components, pytest.mark.slow]
NAMELESS = "mlflow.corp.invalid"  # no resolver knows it (RFC 6761)


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    need("postgresql", "s3")
    with Company(tmp_path_factory.mktemp("company")) as running:
        yield running


@pytest.fixture(scope="module")
def judged() -> cmtrack.Evaluation:
    y, _, p = random_problem(0, n=120, k=3)
    return evaluate(y, y_prob=p)


@pytest.fixture(scope="module")
def large() -> cmtrack.Evaluation:
    """Rows that make a file of about 2 MB."""
    y, _, p = random_problem(1, n=60_000, k=7)
    return evaluate(y, y_prob=p)


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working folder, a home and a cache of the test's own; a busy machine is no fault."""
    wait_for_stores(monkeypatch, 60.0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CMTRACK_SPOOL", raising=False)
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))


@pytest.fixture
def on_company(company: Company, monkeypatch: pytest.MonkeyPatch) -> Iterator[Company]:
    for name, value in company.reach.items():
        monkeypatch.setenv(name, value)
    with tracking_store(company.server.url):
        yield company


def new_run(experiment: str = "0") -> str:
    return str(mlflow.MlflowClient().create_run(experiment).info.run_id)


def is_whole(run_id: str, judged: cmtrack.Evaluation, rows: bool = True) -> bool:
    """Whether a run holds an evaluation, once, with all that belongs to it."""
    assert load_evaluation(run_id) == judged
    state = state_of(run_id)
    assert state["tags"]["cmtrack.status"] == "completed"
    assert set(state["metrics"].values()) == {1}
    assert state["values"]["multiclass/accuracy"] == judged.metrics["multiclass/accuracy"]
    assert state["datasets"] == 1
    assert state["images"] == 2  # the image and its thumbnail
    assert {"cmtrack_report.html", "cmtrack_classes.json", "cmtrack_confusion_matrix.png"} <= set(
        state["files"]
    )
    assert ("cmtrack_predictions.parquet" in state["files"]) == rows
    return True


def sent_later(logged: Any, run_id: str, judged: cmtrack.Evaluation) -> bool:
    """Whether an evaluation waits in the spool, and is whole in its run after a push."""
    assert logged.status == "saved"
    assert [(entry.status, entry.run_id, entry.reason) for entry in push()] == [
        ("sent", run_id, "")
    ]
    assert not Path("cmtrack_spool").exists()
    return is_whole(run_id, judged)


# -- PostgreSQL and S3 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "way", ["through the server", "straight to S3"], ids=lambda way: way.replace(" ", "-")
)
def test_runs_are_logged_loaded_and_compared(on_company, judged, way):
    name = way.replace(" ", "-")
    client = mlflow.MlflowClient()
    experiment = (
        client.create_experiment(name)
        if way == "through the server"
        else on_company.direct_experiment(name)
    )
    y, _, p = random_problem(0, n=120, k=3)
    blunt = evaluate(y, y_prob=0.5 * p + 0.5 * np.roll(p, 1, axis=1))
    runs = {new_run(experiment): judged, new_run(experiment): blunt}
    for run_id, evaluation in runs.items():
        assert log_evaluation(evaluation, run_id=run_id, strict=True).status == "completed"
        assert is_whole(run_id, evaluation)
        assert np.array_equal(
            load_evaluation(run_id, rows=True).rows.actual, evaluation.rows.actual
        )
    comparison = compare(experiment_names=[name], rank_by="multiclass/accuracy")
    assert comparison.ranking.paired
    assert comparison.best.run_id == next(iter(runs))


def first_upload(method: str, path: str) -> bool:
    return method == "PUT" and "mlflow-artifacts" in path


def image(method: str, path: str) -> bool:
    return first_upload(method, path) and "/images/" in path


def closing_batch(method: str, path: str) -> bool:
    return path.endswith("runs/log-batch")


def kills(service: Service, moment: Callable[[str, str], bool]) -> Callable[[str, str, int], Any]:
    """A fault that kills a service with SIGKILL at the first request of a kind."""
    killed: list[str] = []

    def fault(method: str, path: str, _: int) -> Any:
        if not killed and moment(method, path):
            killed.append(path)
            service.kill()
        return PASS

    return fault


@pytest.mark.thin(2)
@pytest.mark.parametrize(
    ("who", "moment"),
    [("server", image), ("cluster", first_upload)],
    ids=["the-server-at-the-image", "PostgreSQL-at-the-first-upload"],
)
def test_what_a_killed_component_lacks_is_pushed_when_it_is_back(on_company, judged, who, moment):
    run_id, service = new_run(), getattr(on_company, who)
    proxy = FaultyProxy(on_company.server.port)
    proxy.fault = kills(service, moment)
    try:
        out, err = child(proxy.url, run_id, 1, "impatient").communicate(timeout=120)
        assert (out.strip(), service.killed) == ("saved", True), err
        (entry,) = waiting()
        logged = cmtrack.Evaluation.load(entry.path / "artifacts")
        service.start()
        assert [(entry.status, entry.run_id, entry.reason) for entry in push()] == [
            ("sent", run_id, "")
        ]
        assert not Path("cmtrack_spool").exists()
        assert is_whole(run_id, logged)
    finally:
        proxy.close()
        if service.killed:
            service.start()


def test_an_s3_that_hangs_costs_seconds_and_what_it_lacks_arrives(on_company, judged, monkeypatch):
    wait_for_stores(monkeypatch, 2.0)
    run_id = new_run(on_company.direct_experiment("hanging"))
    start = time.monotonic()
    with (
        on_company.store.silent(),
        pytest.warns(EvaluationWarning, match="`cmtrack push` sends it"),
    ):
        logged = log_evaluation(judged, run_id=run_id)
    assert time.monotonic() - start < 30
    assert logged.status == "saved"
    wait_for_stores(monkeypatch, 60.0)
    for _ in range(300):
        push()  # keeps what the thread behind still has in hand, or what S3 refuses for a moment
        if not Path("cmtrack_spool").exists():
            break
        time.sleep(0.1)
    assert is_whole(run_id, judged)


def test_two_pushes_of_one_spool_leave_the_run_as_one_does(on_company, judged):
    run_id = new_run()
    with (
        tracking_store("http://127.0.0.1:9"),
        pytest.warns(EvaluationWarning, match="cmtrack push"),
    ):
        log_evaluation(judged, run_id=run_id)
    command = [sys.executable, "-m", "cmtrack", "push", "--tracking-uri", on_company.url]
    environment = {**os.environ, "PYTHONPATH": HERE}
    both = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=120)[0].strip() for process in both]
    # the other one may have found nothing any more, or its entry gone
    assert any("1 of 1 sent" in answer for answer in answers)
    assert not Path("cmtrack_spool").exists()
    assert is_whole(run_id, judged)


def test_eight_forked_workers_log_at_once(on_company):
    ids = [new_run() for _ in range(8)]
    done = forked_workers(on_company.url, ids, "after a request")
    assert done.stdout.split() == ["0"] * 8, done.stderr
    assert {load_evaluation(run_id).n_samples for run_id in ids} == {60}
    assert not Path("cmtrack_spool").exists()


# -- what stands between -----------------------------------------------------------------------------------------------


def test_what_nginx_refuses_for_its_size_is_left_out_and_named(on_company, large):
    need("nginx")
    run_id, folder = new_run(), Path.cwd()
    with nginx(folder, on_company.server.port, body="1m") as proxy, tracking_store(proxy.url):
        with pytest.warns(EvaluationWarning, match="cmtrack_predictions.parquet"):
            logged = log_evaluation(large, run_id=run_id)
        assert logged.status == "completed"
        assert any("cmtrack_predictions.parquet" in problem for problem in logged.problems)
        assert push() == []
        assert is_whole(run_id, large, rows=False)
        assert "cmtrack_predictions.parquet" in state_of(run_id)["tags"]["cmtrack.left_out"]
        small = new_run()
        assert log_evaluation(evaluate([0, 1, 1], [0, 1, 0]), run_id=small).status == "completed"
        assert "cmtrack.left_out" not in state_of(small)["tags"]


def test_a_push_through_nginx_ends_without_what_it_refuses(on_company, large):
    need("nginx")
    run_id, folder = new_run(), Path.cwd()
    with (
        tracking_store("http://127.0.0.1:9"),
        pytest.warns(EvaluationWarning, match="cmtrack push"),
    ):
        log_evaluation(large, run_id=run_id)
    with nginx(folder, on_company.server.port, body="1m") as proxy, tracking_store(proxy.url):
        (sent,) = push(tracking_uri=proxy.url)
        assert (sent.status, sent.run_id, sent.reason) == ("sent", run_id, "")
        assert any("cmtrack_predictions.parquet" in problem for problem in sent.problems)
        assert push() == []
        assert is_whole(run_id, large, rows=False)


def test_a_server_that_only_an_http_proxy_knows(company, judged, monkeypatch):
    client = mlflow.MlflowClient(company.server.url)
    run_id = client.create_run(client.create_experiment("behind a proxy")).info.run_id
    proxy = ForwardProxy({NAMELESS: company.server.port})
    for name in ("NO_PROXY", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # S3 is near: MLflow may send its clients there
    try:
        with tracking_store(f"http://{NAMELESS}"):
            assert log_evaluation(judged, run_id=run_id, strict=True).status == "completed"
            assert is_whole(run_id, judged)
            assert [run.run_id for run in compare(experiment_names=["behind a proxy"]).runs] == [
                run_id
            ]
            proxy.hosts.clear()
            with pytest.warns(EvaluationWarning, match="cmtrack push"):
                assert log_evaluation(judged, run_id=run_id).status == "saved"
            proxy.hosts[NAMELESS] = company.server.port
            assert [entry.status for entry in push()] == ["sent"]
            assert is_whole(run_id, judged)
    finally:
        proxy.close()


# -- passwords ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded(company: Company, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A tracking server on the same stores, with the users "reader" and "writer"."""
    need("basic-auth")
    with basic_auth(tmp_path_factory.mktemp("guarded"), *HOSTS, **company.stores) as running:
        for name in ("reader", "writer"):
            user = {"username": name, "password": f"password-of-{name}"}
            requests.post(
                f"{running.url}/api/2.0/mlflow/users/create", json=user, auth=ADMIN
            ).raise_for_status()
        yield running


def be(name: str, password: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", name)
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", password)


def run_of_its_own(name: str) -> str:
    """A run in a new experiment: who makes one may write to it."""
    return new_run(mlflow.MlflowClient().create_experiment(name))


@pytest.mark.parametrize(
    ("user", "password", "said"),
    [
        ("reader", "password-of-reader", "[Pp]ermission denied|403"),
        ("writer", "guessed-wrongly", "401|authenticated"),
    ],
    ids=["who-may-only-read", "with-a-wrong-password"],
)
def test_what_is_not_allowed_is_kept_and_pushed_by_one_who_may(
    guarded, judged, monkeypatch, user, password, said
):
    be("writer", "password-of-writer", monkeypatch)
    with tracking_store(guarded.url):
        run_id = run_of_its_own(f"writer's, and not {user}'s with {password}")
        be(user, password, monkeypatch)
        with pytest.warns(EvaluationWarning, match=said):
            logged = log_evaluation(judged, run_id=run_id)
        assert logged.status == "saved"
        assert [entry.status for entry in push()] == ["kept"]
        be("writer", "password-of-writer", monkeypatch)
        assert sent_later(logged, run_id, judged)


def test_a_password_in_the_uri_is_used_and_written_nowhere(guarded, company, judged, capsys):
    password = "password-of-writer"
    uri = guarded.url.replace("http://", f"http://writer:{password}@")
    with tracking_store(uri), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        run_id = run_of_its_own("by a password in the URI")
        assert log_evaluation(judged, run_id=run_id, strict=True).status == "completed"
        guarded.kill()
        logged = log_evaluation(judged, run_id=run_id)
        guarded.start()
        assert logged.status == "saved"
        assert password not in " ".join([logged.error, *(str(warning.message) for warning in told)])
        files = [path for path in Path.cwd().rglob("*") if path.is_file()]
        assert logged.path / "entry.json" in files
        assert [path for path in files if password.encode() in path.read_bytes()] == []
        assert [path for path in logged.path.rglob("*") if path.stat().st_mode & 0o077] == []
        # it ends before the store does, whose variable it is
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MLFLOW_TRACKING_URI", uri)
            assert [entry.status for entry in push()] == ["sent"]
        assert is_whole(run_id, judged)
    assert password not in "".join(capsys.readouterr())


# -- disks and containers ----------------------------------------------------------------------------------------------


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 100 kB: the evaluation fits, its figures do not."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", str(disk)]
    if (
        shutil.which("mount") is None
        or subprocess.run(mount, check=False, capture_output=True).returncode
    ):
        pytest.skip("needs the right to mount a disk")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_spool_costs_nothing_where_the_store_answers(store, judged, full_disk, monkeypatch):
    monkeypatch.setenv("CMTRACK_SPOOL", str(full_disk / "spool"))
    run_id = store.create_run("1").info.run_id
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EvaluationWarning)
        assert log_evaluation(judged, run_id=run_id).status == "completed"
    assert is_whole(run_id, judged)


def test_a_full_spool_has_a_substitute_where_the_store_does_not_answer(
    store, judged, full_disk, monkeypatch
):
    monkeypatch.setenv("CMTRACK_SPOOL", str(full_disk / "spool"))
    run_id = store.create_run("1").info.run_id
    with tracking_store("http://127.0.0.1:9"), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        logged = log_evaluation(judged, run_id=run_id)
    assert ["No space left" in str(told[0].message), "cmtrack push" in str(told[-1].message)] == [
        True,
        True,
    ]
    assert logged.status == "saved"
    assert full_disk not in logged.path.parents
    assert [(entry.status, entry.run_id) for entry in push(tracking_uri=store.tracking_uri)] == [
        ("sent", run_id)
    ]
    assert is_whole(run_id, judged)


CONTAINER = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")


def test_what_a_killed_container_leaves_is_listed_and_pushed(store):
    if (
        shutil.which("unshare") is None
        or subprocess.run([*CONTAINER, "true"], check=False).returncode
    ):
        pytest.skip("needs the right to make process namespaces")
    run_id = store.create_run("1").info.run_id
    process = child(store.tracking_uri, run_id, 1, "slow", CONTAINER)  # its number is 1 there
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "drawing"
    assert waiting() == []  # it lives
    process.kill()
    process.wait()
    assert process.stdout.read() == ""  # until it is gone, too
    assert [entry.kind for entry in waiting()] == ["unfinished"]
    assert [(entry.status, entry.run_id) for entry in push()] == [("sent", run_id)]
    assert load_evaluation(run_id).n_samples == 60
    assert not Path("cmtrack_spool").exists()
