"""How runs are read from a tracking server: few requests over kept connections, and nothing that a store may not do."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import mlflow
import numpy as np
import pytest

from cmtrack import Grouping, compare, evaluate, load_evaluation, log_evaluation, untrusted
from cmtrack.tracking import digests, regroup_runs, tracking_store
from support.components import free_port, tracking_server
from support.faults import DROP, PASS, FaultyProxy
from support.problems import random_labels, random_probabilities

pytestmark = pytest.mark.slow

RUNS, ROWS = 8, 120
PARITY = Grouping({"even": [0, 2], "odd": [1, 3]}, "strict", name="parity")
Y = random_labels(ROWS, 4)
FILE = "cmtrack_evaluation.json"


def judged(seed: int) -> Any:
    return evaluate(Y, y_prob=random_probabilities(Y, 4, seed=seed).astype(np.float32))


@pytest.fixture(autouse=True)
def own_cache(undrawn: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tracking server's folder and address."""
    folder = tmp_path_factory.mktemp("served")
    with tracking_server(folder) as running:
        yield folder, running.url


class Counted(FaultyProxy):
    """A proxy before the server that counts; its own experiment is filled without it."""

    def __init__(self, folder: Path, uri: str, name: str) -> None:
        super().__init__(int(urlsplit(uri).port or 0))
        self.name, self.uri = name, uri
        self.files = folder / "server_artifacts"
        self.client = mlflow.MlflowClient(uri)
        self.experiment_id = self.client.create_experiment(name)

    def filled(self, runs: int, **options: Any) -> list[str]:
        """Runs with complete evaluations."""
        out = []
        with tracking_store(self.uri):
            for seed in range(runs):
                run = self.client.create_run(self.experiment_id, run_name=f"run {seed}")
                log_evaluation(
                    judged(seed), run_id=run.info.run_id, figures=False, strict=True, **options
                )
                out.append(run.info.run_id)
        self.requests.clear()
        self.headers.clear()
        self.connections = 0
        return out

    def tags(self, name: str) -> list[str]:
        """A tag of each run."""
        runs = self.client.search_runs([self.experiment_id])
        return [run.data.tags.get(name, "") for run in runs]


@pytest.fixture
def proxy(served: Any, request: pytest.FixtureRequest) -> Any:
    """The server behind a proxy that counts, in use as the tracking server."""
    made = Counted(*served, request.node.name)
    with tracking_store(made.url):
        yield made
    made.close()


def kinds(proxy: FaultyProxy) -> Counter[str]:
    """Requests by what they ask for: the last two parts of the API's path, or "file"."""
    out: Counter[str] = Counter()
    for method, path in proxy.requests:
        where = path.partition("?")[0].partition("/api/2.0/")[2].split("/")
        out[f"{method} file" if where[0] == "mlflow-artifacts" else "/".join(where[1:])] += 1
    return out


def test_a_file_is_one_request_over_kept_connections_and_none_the_second_time(
    proxy: Counted,
) -> None:
    runs = proxy.filled(RUNS)
    first = compare(experiment_names=[proxy.name], rank_by="multiclass/accuracy")
    assert first.ranking.paired
    assert len(first.runs) == RUNS
    asked = kinds(proxy)
    assert asked.pop("GET file") == 2 * RUNS
    assert asked.total() <= 4, asked
    assert proxy.connections <= 12  # eight threads, and the listing
    proxy.requests.clear()
    again = compare(experiment_names=[proxy.name], rank_by="multiclass/accuracy")
    assert [run.value for run in again.runs] == [run.value for run in first.runs]
    assert "GET file" not in kinds(proxy)
    assert len(proxy.requests) <= 4
    proxy.requests.clear()
    load_evaluation(runs[0], rows=True)
    assert len(proxy.requests) <= 2
    for kept in (path for path in Path(os.environ["CMTRACK_CACHE"]).rglob("*") if path.is_file()):
        kept.write_bytes(b"spoilt")
    proxy.requests.clear()
    assert load_evaluation(runs[0], rows=True) == judged(0)
    assert kinds(proxy)["GET file"] == 2


def test_predictions_that_were_not_kept_are_not_asked_for(proxy: Counted) -> None:
    runs = proxy.filled(2, predictions=False)
    compare(experiment_names=[proxy.name], rank_by="multiclass/accuracy")
    assert kinds(proxy)["GET file"] == 2
    with pytest.raises(
        ValueError, match=r"has no cmtrack_predictions\.parquet: predictions by row were not kept"
    ):
        load_evaluation(runs[0], rows=True)
    assert kinds(proxy)["GET file"] == 2


def test_a_file_that_cannot_be_read_leaves_its_run_out(proxy: Counted) -> None:
    runs = proxy.filled(4)
    faults = {runs[0]: 500, runs[1]: 403, runs[2]: 404}
    proxy.fault = lambda method, path, _: next(
        (what for run_id, what in faults.items() if run_id in path and path.endswith(FILE)), PASS
    )
    comparison = compare(experiment_names=[proxy.name], rank_by="multiclass/accuracy")
    reasons = {out.run.run_id: out.reason for out in comparison.left_out}
    assert reasons == {
        runs[0]: f"{FILE} cannot be read: 127.0.0.1 answers 500",
        runs[1]: f"{FILE} cannot be read: 127.0.0.1 answers 403",
        runs[2]: f"has no {FILE}: there is no such file",
    }


def test_regrouping_asks_little_and_goes_on_where_it_stopped(proxy: Counted) -> None:
    ids = proxy.filled(10)

    def stopping(*step: Any) -> None:
        if step[1] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        regroup_runs(ids, PARITY, progress=stopping)
    states = Counter(proxy.tags("cmtrack.parity.status"))
    assert set(states) <= {"completed", ""}, "an interrupt left a run half written"
    assert states["completed"] >= 3

    done = states["completed"]
    proxy.requests.clear()
    results = regroup_runs(ids, PARITY)
    assert [run.run_id for run in results] == ids
    assert [run.status for run in results] == ["completed"] * 10
    assert sum(run.already_done for run in results) == done
    # to find a run takes one request
    assert len(proxy.requests) <= 10 + 4 + 14 * (10 - done), kinds(proxy)
    for run_id, result in zip(ids, results, strict=True):
        metrics = proxy.client.get_run(run_id).data.metrics
        assert result.after["binary/roc_auc"] == metrics["parity_binary/roc_auc"]
        assert result.before["multiclass/accuracy"] == metrics["multiclass/accuracy"]

    proxy.requests.clear()
    assert all(run.already_done for run in regroup_runs(ids, PARITY))
    assert len(proxy.requests) <= 10 + 1


def folder_of(store: Any, run_id: str) -> Path:
    """The folder of a run's files, which is on this machine."""
    return Path(urlsplit(store.get_run(run_id).info.artifact_uri).path)


def test_only_the_same_regrouping_of_the_same_evaluation_is_done_already(store: Any) -> None:
    with mlflow.start_run() as active:
        log_evaluation(judged(1), strict=True)
    run_id = active.info.run_id

    def again(**options: Any) -> bool:
        (result,) = regroup_runs([run_id], options.pop("grouping", PARITY), prefix="p_", **options)
        assert result.status == "completed"
        return result.already_done

    assert [again(), again(), again(force=True), again()] == [False, True, False, True]
    other = Grouping({"even": [0, 2], "odd": [1, 3]}, "relaxed", name="parity")
    assert [again(positive="even"), again(positive="even"), again(grouping=other)] == [
        False,
        True,
        False,
    ]
    assert [again(figures=False), again(), again(figures=False), again(figures=True)] == [
        False,
        True,
        True,
        False,
    ]
    log_evaluation(judged(2), run_id=run_id, strict=True)
    assert [again(), again()] == [False, True]
    store.set_tag(run_id, "cmtrack.p.status", "started")
    assert [again(), again()] == [False, True]
    store.set_tag(run_id, "cmtrack.status", "started")  # another evaluation is half there
    (undone,) = regroup_runs([run_id], PARITY, prefix="p_")
    assert (undone.status, undone.reason) == (
        "left out",
        "its evaluation was not finished (status 'started')",
    )
    store.set_tag(run_id, "cmtrack.status", "completed")
    path = folder_of(store, run_id) / "cmtrack_predictions.parquet"
    whole = path.read_bytes()
    path.write_bytes(b"cut")
    assert [again(force=True), again()] == [False, False], (
        "without its rows it is not done for good"
    )
    path.write_bytes(whole)
    assert [again(), again()] == [False, True]


# -- what a store may not do -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link"])
def test_only_a_regular_file_is_read_and_a_pipe_is_not_waited_for(store: Any, kind: str) -> None:
    with mlflow.start_run() as active:
        log_evaluation(judged(1), strict=True)
    path = folder_of(store, active.info.run_id) / FILE
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else __file__)
    with pytest.raises(ValueError, match=rf"run {active.info.run_id}: {FILE} cannot be read: "):
        load_evaluation(active.info.run_id)


def test_a_server_that_is_gone_is_said_without_the_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    client = mlflow.MlflowClient(f"http://me:secret@127.0.0.1:{free_port()}")
    with pytest.raises(ConnectionError, match="did not answer") as caught:
        load_evaluation("0" * 32, client=client)
    assert "secret" not in str(caught.value)


def test_a_cache_that_cannot_be_written_costs_nothing(
    proxy: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = proxy.filled(1)
    (tmp_path / "a file").write_text("in the way")
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "a file" / "cache"))
    for _ in range(2):
        assert load_evaluation(run_id, rows=True) == judged(0)


def test_a_connection_that_is_cut_is_an_error_of_that_file(
    proxy: Counted, monkeypatch: Any
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    (run_id,) = proxy.filled(1)
    proxy.fault = lambda method, path, _: DROP if path.endswith(FILE) else PASS
    with pytest.raises(ValueError, match=rf"run {run_id}: {FILE} cannot be read: "):
        load_evaluation(run_id)


@pytest.mark.parametrize(
    "uri",
    [
        "mlflow-artifacts:/../../api/2.0/mlflow/runs/delete",
        "mlflow-artifacts:/0/%2e%2e/x",
        "http://tracking/api?run_id=1",
        "http://tracking/api#x",
        "s3://bucket/a\nb",
        "",
        "x" * 5000,
        None,
    ],
    ids=["climbs", "climbs encoded", "query", "fragment", "two lines", "empty", "long", "none"],
)
def test_an_address_that_is_none_of_a_folder_is_refused(uri: Any) -> None:
    with pytest.raises(ValueError, match=r"artifacts must"):
        untrusted.artifact_uri(uri)


def placed_elsewhere(folder: Path, run_id: str, uri: str) -> None:
    """Write another place of a run's files into the database, which MLflow itself refuses."""
    with (
        contextlib.closing(sqlite3.connect(folder / "server.db", timeout=30)) as connection,
        connection,
    ):
        connection.execute("UPDATE runs SET artifact_uri = ? WHERE run_uuid = ?", (uri, run_id))


def test_a_server_names_no_folder_of_another_machine(proxy: Counted, served: Any) -> None:
    (run_id,) = proxy.filled(1)
    for uri in ("//host/share", r"\\host\share", "file://host/share", "file:////host/share"):
        placed_elsewhere(served[0], run_id, uri)
        with pytest.raises(ValueError, match="its artifacts are on another machine"):
            load_evaluation(run_id)


def test_files_of_a_run_have_names_of_their_own(store: Any) -> None:
    with mlflow.start_run() as active:
        log_evaluation(judged(1), strict=True)
    run_id = active.info.run_id
    (folder_of(store, run_id) / "secret.parquet").write_bytes(b"s")
    changed = digests(store.get_run(run_id).data.tags) | {"predictions_file": "secret.parquet"}
    store.set_tag(run_id, "cmtrack.digests", json.dumps(changed))
    with pytest.raises(ValueError, match="the file must be named cmtrack_predictions"):
        load_evaluation(run_id, rows=True)
