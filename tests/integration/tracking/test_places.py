"""From wherever a training runs: nested runs, threads, forked and spawned workers, MLflow's async mode."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mlflow
import numpy as np
import pytest

from cmtrack import evaluate, load_evaluation, log_evaluation
from cmtrack.tracking import EvaluationWarning

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

Y = np.arange(40) % 3


def predicted(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(Y)


def test_a_nested_run_gets_its_own_evaluation_and_the_parent_none(store):
    with mlflow.start_run() as parent:
        for seed in range(2):
            with mlflow.start_run(nested=True) as run:
                log_evaluation(Y, predicted(seed), strict=True)
            assert load_evaluation(run.info.run_id) == evaluate(Y, predicted(seed))
            assert (
                store.get_run(run.info.run_id).data.tags["mlflow.parentRunId"] == parent.info.run_id
            )
        assert store.get_run(parent.info.run_id).data.metrics == {}
        assert mlflow.active_run().info.run_id == parent.info.run_id


def test_threads_write_into_their_own_runs(store):
    ids = [store.create_run("1").info.run_id for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        done = list(
            pool.map(
                lambda seed: log_evaluation(Y, predicted(seed), run_id=ids[seed], strict=True),
                range(4),
            )
        )
    assert [logged.run_id for logged in done] == ids
    for seed, run_id in enumerate(ids):
        assert load_evaluation(run_id) == evaluate(Y, predicted(seed))
    assert len(store.search_runs(["1"])) == 4


def test_a_thread_without_a_run_opens_none(store):
    def elsewhere() -> None:
        thread = threading.Thread(target=lambda: log_evaluation(Y, predicted(0)))
        thread.start()
        thread.join()

    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="no run is active in this thread"),
    ):
        elsewhere()
    assert len(store.search_runs(["1"])) == 1


def work(uri: str, run_id: str, seed: int, out: Any) -> None:
    try:
        mlflow.set_tracking_uri(uri)
        out.put(log_evaluation(Y, predicted(seed), run_id=run_id, strict=True).status)
    except Exception:
        out.put(traceback.format_exc())


@pytest.mark.parametrize("how", ["fork", "spawn"])
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # forking beside threads: what users do all the same
def test_workers_write_into_the_run_of_their_parent(store, how):
    context = multiprocessing.get_context(how)
    with mlflow.start_run() as run:
        log_evaluation(Y, predicted(7), prefix="parent/", strict=True)
        out = context.Queue()
        worker = context.Process(target=work, args=(store.tracking_uri, run.info.run_id, 1, out))
        worker.start()
        assert out.get(timeout=120) == "completed"
        worker.join(timeout=60)
        assert worker.exitcode == 0
    assert load_evaluation(run.info.run_id) == evaluate(Y, predicted(1))
    assert load_evaluation(run.info.run_id, prefix="parent/") == evaluate(Y, predicted(7))
    assert len(store.search_runs(["1"])) == 1
    assert store.get_run(run.info.run_id).info.status == "FINISHED"


def test_in_mlflows_async_mode_everything_is_there_when_the_line_returns(store):
    mlflow.config.enable_async_logging(True)
    try:
        with mlflow.start_run() as run:
            log_evaluation(Y, predicted(0), strict=True)
            assert store.get_run(run.info.run_id).data.metrics[
                "multiclass/accuracy"
            ] == pytest.approx(float((predicted(0) == Y).mean()))
            assert load_evaluation(run.info.run_id) == evaluate(Y, predicted(0))
    finally:
        mlflow.config.enable_async_logging(False)
    assert len(store.search_runs(["1"])) == 1


def test_the_artifacts_may_lie_elsewhere_than_the_runs(store, tmp_path):
    experiment = store.create_experiment(
        "apart", artifact_location=(tmp_path / "another disk").as_uri()
    )
    run_id = store.create_run(experiment).info.run_id
    log_evaluation(Y, predicted(0), run_id=run_id, strict=True)
    assert load_evaluation(run_id) == evaluate(Y, predicted(0))
    assert list((tmp_path / "another disk").rglob("cmtrack_report.html"))


def test_a_run_that_somebody_else_opened_is_left_open(store):
    run_id = store.create_run("1").info.run_id
    log_evaluation(Y, predicted(0), run_id=run_id, strict=True)
    assert store.get_run(run_id).info.status == "RUNNING"
    assert mlflow.active_run() is None


def forking(test: Any) -> Any:
    test = pytest.mark.filterwarnings("ignore::DeprecationWarning")(test)
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")(test)


def code_of_worker(task: Callable[[], bool]) -> int:
    """Exit code of a forked worker: 0 where the task gave True, -14 where it hung."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        code = 2
        try:
            code = 0 if task() else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@forking
def test_a_worker_forked_while_another_thread_logs_completes_its_own(store):
    log_evaluation(Y, predicted(0), run_id=store.create_run("1").info.run_id, strict=True)
    ids = [store.create_run("1").info.run_id for _ in range(3)]
    ended = threading.Event()

    def log_again_and_again() -> None:
        prefix = 0
        while not ended.is_set():
            log_evaluation(Y, predicted(0), run_id=ids[0], prefix=f"{prefix}/")
            prefix += 1

    thread = threading.Thread(target=log_again_and_again)
    thread.start()
    codes = []
    for run_id in ids[1:]:
        time.sleep(0.2)
        codes.append(
            code_of_worker(
                lambda run_id=run_id: (
                    log_evaluation(Y, predicted(1), run_id=run_id).status in ("completed", "saved")
                )
            )
        )
    ended.set()
    thread.join(60)
    assert codes == [0, 0]
