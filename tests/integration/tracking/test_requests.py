"""How runs are read from a tracking server: few requests over kept connections, and nothing that a store may not do."""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import mlflow
import numpy as np
import pytest
from mlflow.entities import Metric, RunTag

from cmtrack import Grouping, compare, evaluate, load_evaluation, log_evaluation, untrusted
from cmtrack.evaluation.storage import write_predictions
from cmtrack.tracking import artifacts, regroup_runs, tracking_store
from cmtrack.tracking.names import ROWS_FILE, with_digests
from cmtrack.tracking.package import Destination, build
from cmtrack.tracking.parallel import each
from cmtrack.tracking.runs import client_for, from_entity, search
from support.components import free_port, tracking_server
from support.faults import DROP, PASS, FaultyProxy
from support.problems import random_labels, random_probabilities

pytestmark = pytest.mark.slow

RUNS, ROWS = 20, 120
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
        self.name = name
        self._behind, self._artifacts = mlflow.MlflowClient(uri), folder / "server_artifacts"
        self.experiment_id = self._behind.create_experiment(name)

    def filled(self, runs: int, rows: bool = True) -> list[str]:
        """Runs with complete evaluations."""
        out = []
        for seed in range(runs):
            evaluation = judged(seed)
            run_id = self._behind.create_run(self.experiment_id, run_name=f"run {seed}").info.run_id
            files: dict[str, bytes] = {}
            package = build(
                evaluation,
                files.__setitem__,
                Destination(run_id),
                rows=(lambda file, kept=evaluation.rows: write_predictions(file, kept))
                if rows
                else None,
            )
            folder = self._artifacts / self.experiment_id / run_id / "artifacts"
            folder.mkdir(parents=True)
            for name in (FILE, "cmtrack_predictions.parquet"):
                if f"artifacts/{name}" in files:
                    (folder / name).write_bytes(files[f"artifacts/{name}"])
            metrics = [Metric(name, value, 0, 0) for name, value in package.metrics.items()]
            tags = [
                RunTag(name, text)
                for name, text in (package.tags | {"cmtrack.status": "completed"}).items()
            ]
            self._behind.log_batch(run_id, metrics=metrics, tags=tags)
            out.append(run_id)
        return out

    def listed(self) -> list[Any]:
        return list(search(client_for(), [self.experiment_id]))


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
    proxy.requests.clear()
    proxy.connections = 0
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


def test_predictions_that_were_not_kept_are_not_asked_for(proxy: Counted) -> None:
    runs = proxy.filled(2, rows=False)
    proxy.requests.clear()
    compare(experiment_names=[proxy.name], rank_by="multiclass/accuracy")
    assert kinds(proxy)["GET file"] == 2
    with pytest.raises(
        ValueError, match=r"holds no cmtrack_predictions\.parquet: predictions by row were not kept"
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
        runs[2]: f"holds no {FILE}: there is no such file",
    }


def test_regrouping_asks_little_and_goes_on_where_it_stopped(proxy: Counted) -> None:
    proxy.filled(10)
    told: list[tuple[str, int, int]] = []

    def stopping(*step: Any) -> None:
        told.append(step)
        if step[1] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        regroup_runs(proxy.listed(), PARITY, progress=stopping)
    states = Counter(run.status("parity_") for run in proxy.listed())
    assert set(states) <= {"completed", ""}, "an interrupt left a run half written"
    assert states["completed"] >= 3

    done = states["completed"]
    proxy.requests.clear()
    results = regroup_runs(proxy.listed(), PARITY)
    assert [run.status for run in results] == ["completed"] * 10
    assert sum(run.already_done for run in results) == done
    assert len(proxy.requests) <= 4 + 14 * (10 - done), kinds(proxy)
    runs = proxy.listed()
    assert [run.run_id for run in results] == [run.run_id for run in runs]
    for run, result in zip(runs, results, strict=True):
        assert result.after["binary/roc_auc"] == run.metrics["parity_binary/roc_auc"]
        assert result.before["multiclass/accuracy"] == run.metrics["multiclass/accuracy"]

    proxy.requests.clear()
    assert all(run.already_done for run in regroup_runs(runs, PARITY))
    assert len(proxy.requests) <= 1


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
    path = (
        artifacts.folder_of(store.get_run(run_id).info.artifact_uri) / "cmtrack_predictions.parquet"
    )
    whole = path.read_bytes()
    path.write_bytes(b"cut")
    assert [again(force=True), again()] == [False, False], (
        "without its rows it is not done for good"
    )
    path.write_bytes(whole)
    assert [again(), again()] == [False, True]


def test_work_on_many_keeps_its_order_and_an_interrupt_begins_nothing_more() -> None:
    def work(number: int) -> int:
        begun.append(number)
        gate.wait(0.01 * (5 - number % 5))
        if number == 3:
            raise OSError("three")
        return number * number

    begun: list[int] = []
    gate = threading.Event()
    jobs = each(work, range(10), workers=4)
    assert [None if job.exception() else job.result() for job in jobs] == [
        0,
        1,
        4,
        None,
        16,
        25,
        36,
        49,
        64,
        81,
    ]

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    begun.clear()
    with pytest.raises(KeyboardInterrupt):
        each(work, range(100), stop, workers=2)
    assert len(begun) < 10


# -- what a store may not do -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link"])
def test_only_a_regular_file_is_read_and_a_pipe_is_not_waited_for(store: Any, kind: str) -> None:
    with mlflow.start_run() as active:
        log_evaluation(judged(1), strict=True)
    path = artifacts.folder_of(store.get_run(active.info.run_id).info.artifact_uri) / FILE
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero" if kind == "device" else __file__)
    with pytest.raises(ValueError, match=rf"run {active.info.run_id}: {FILE} cannot be read: "):
        load_evaluation(active.info.run_id)


def test_a_file_larger_than_the_limit_is_not_read(proxy: Counted, tmp_path: Path) -> None:
    (run_id,) = proxy.filled(1)
    client = mlflow.MlflowClient()
    uri = client.get_run(run_id).info.artifact_uri
    content = artifacts.read(uri, FILE, proxy.url)
    assert artifacts.read(uri, FILE, proxy.url, limit=len(content)) == content
    with pytest.raises(ValueError, match="larger than 0 MiB"):
        artifacts.read(uri, FILE, proxy.url, limit=len(content) - 1)
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(ValueError, match="must not be larger"):
        artifacts.read(str(tmp_path), FILE, proxy.url, limit=len(content) - 1)


def test_another_server_is_not_asked_unless_it_is_listed(
    proxy: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "secret")
    (run_id,) = proxy.filled(1)
    uri = mlflow.MlflowClient().get_run(run_id).info.artifact_uri
    assert uri.startswith("mlflow-artifacts:/")
    proxy.headers.clear()
    content = artifacts.read(uri, FILE, proxy.url)
    assert "Authorization" in proxy.headers[-1]
    elsewhere = proxy.url.replace("127.0.0.1", "localhost")
    for there in (
        uri.replace("mlflow-artifacts:/", f"mlflow-artifacts://{urlsplit(elsewhere).netloc}/"),
        uri.replace("mlflow-artifacts:", f"{elsewhere}/api/2.0/mlflow-artifacts/artifacts"),
    ):
        proxy.headers.clear()
        with pytest.raises(
            ValueError, match=r"must lie on the tracking server, .* got http://localhost:"
        ):
            artifacts.read(there, FILE, proxy.url)
        assert proxy.headers == []
        with monkeypatch.context() as listed:
            listed.setenv("CMTRACK_ARTIFACT_HOSTS", elsewhere)
            assert artifacts.read(there, FILE, proxy.url) == content


def test_a_server_that_is_gone_is_said_without_the_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(OSError, match="Connection refused") as caught:
        artifacts.read(
            "mlflow-artifacts:/0/r/artifacts", FILE, f"http://me:secret@127.0.0.1:{free_port()}"
        )
    assert "secret" not in str(caught.value)


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


@pytest.mark.parametrize(
    "uri", ["//host/share", r"\\host\share", "file://host/share", "file:////host/share"]
)
def test_a_server_names_no_folder_of_another_machine(uri: str) -> None:
    with pytest.raises(ValueError, match="its artifacts lie on another machine"):
        artifacts.folder_of(uri, "https://tracking")


def test_files_of_a_run_have_names_of_their_own(store: Any, tmp_path: Path) -> None:
    with mlflow.start_run() as active:
        log_evaluation(judged(1), strict=True)
    run = from_entity(store.get_run(active.info.run_id), store)
    folder = artifacts.folder_of(run.artifact_uri)
    (folder / "secret.parquet").write_bytes(b"s")
    changed = with_digests(store.get_run(run.run_id).data.tags, "", {ROWS_FILE: "secret.parquet"})
    store.set_tag(run.run_id, "cmtrack.digests", changed["cmtrack.digests"])
    with pytest.raises(ValueError, match="such a file is called cmtrack_predictions"):
        load_evaluation(run.run_id, rows=True)
