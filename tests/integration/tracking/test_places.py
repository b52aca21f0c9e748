"""From wherever a training runs: nested runs, threads, forked and spawned workers, MLflow's async mode."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
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
from cmtrack.tracking import EvaluationWarning, deliver, parallel, spool

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


class Working:
    """A thread that holds forks back until it is told to end."""

    def __init__(self, once: str = "", imports: bool = False) -> None:
        self.order: list[str] = []
        self._begun, self._finish = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, args=(once, imports))
        self._thread.start()
        assert self._begun.wait(30)

    def _work(self, once: str, imports: bool) -> None:
        with parallel.forks_wait(once, imports=imports):
            self._begun.set()
            self._finish.wait(30)
            self.order.append("done")

    def end(self) -> None:
        self._finish.set()
        self._thread.join(30)


def holds_back_a_fork(working: Working) -> None:
    forked = threading.Thread(
        target=lambda: working.order.append(f"worker {code_of_worker(lambda: True)}")
    )
    forked.start()
    forked.join(0.3)
    assert working.order == []
    working.end()
    forked.join(30)
    assert working.order == ["done", "worker 0"]


@forking
def test_a_fork_waits_for_what_another_thread_has_under_way():
    holds_back_a_fork(Working())


@forking
def test_a_fork_goes_on_after_its_patience_and_the_next_one_does_not_wait(monkeypatch):
    assert parallel.FORK_PATIENCE <= 2
    working = Working()
    monkeypatch.setattr(parallel, "FORK_PATIENCE", 0.2)
    assert code_of_worker(lambda: True) == 0
    monkeypatch.setattr(parallel, "FORK_PATIENCE", 1e6)  # a fork that waited now would never end
    assert code_of_worker(lambda: True) == 0
    assert working.order == []
    working.end()


@forking
def test_a_fork_waits_longer_for_imports_and_not_for_ever(monkeypatch):
    monkeypatch.setattr(parallel, "FORK_PATIENCE", 0.0)
    holds_back_a_fork(Working(imports=True))
    monkeypatch.setattr(parallel, "IMPORT_PATIENCE", 0.2)
    working = Working(imports=True)
    assert code_of_worker(lambda: True) == 0
    working.end()


@forking
def test_a_thread_that_forks_does_not_wait_for_itself_and_its_worker_can_go_on(monkeypatch):
    monkeypatch.setattr(parallel, "FORK_PATIENCE", 1e6)

    def work_too() -> bool:
        with parallel.forks_wait():
            return True

    with parallel.forks_wait():
        assert code_of_worker(work_too) == 0


@forking
def test_what_was_done_once_holds_nothing_back(monkeypatch):
    monkeypatch.setattr(parallel, "_done", set())
    Working("a test's first time").end()
    monkeypatch.setattr(parallel, "FORK_PATIENCE", 1e6)
    again = Working("a test's first time")
    assert code_of_worker(lambda: True) == 0
    again.end()


@forking
@pytest.mark.parametrize(
    "part", ["log.evaluated", "log.chosen_run", "package.table_json", "deliver.send"]
)
def test_a_worker_forked_amid_an_import_of_another_threads_evaluation_completes_its_own(
    store, tmp_path, monkeypatch, part
):
    module = f"slow_part_of_{part.replace('.', '_')}"
    (tmp_path / f"{module}.py").write_text("import time\ntime.sleep(1)\nwhole = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(parallel, "_done", set())
    place, name = part.split(".")
    place = importlib.import_module(f"cmtrack.tracking.{place}")
    real = getattr(place, name)

    def importing(*args: Any, **options: Any) -> Any:
        assert importlib.import_module(module).whole
        return real(*args, **options)

    monkeypatch.setattr(place, name, importing)
    ids = [store.create_run("1").info.run_id for _ in range(2)]
    thread = threading.Thread(
        target=lambda: log_evaluation(Y, predicted(0), run_id=ids[0], strict=True)
    )
    thread.start()
    while module not in sys.modules:
        time.sleep(0.01)
    code = code_of_worker(
        lambda: log_evaluation(Y, predicted(1), run_id=ids[1]).status == "completed"
    )
    thread.join(60)
    assert code == 0
    assert [load_evaluation(run_id) for run_id in ids] == [
        evaluate(Y, predicted(seed)) for seed in range(2)
    ]


@forking
def test_a_worker_inherits_neither_the_locks_of_entries_nor_what_is_being_sent(tmp_path):
    entry = tmp_path / "entry"
    entry.mkdir()

    def free_of_both() -> bool:
        try:
            os.fstat(handle)
        except OSError:
            return not deliver._sending and not spool._held
        return False

    others = set(spool._held)  # of a log that an earlier test left under way
    with spool.claimed(entry) as ours:
        assert ours
        (handle,) = spool._held - others
        deliver._sending[entry] = threading.Event()
        try:
            assert code_of_worker(free_of_both) == 0
        finally:
            del deliver._sending[entry]
        with spool.claimed(entry) as also:  # the worker's end has released nothing
            assert not also
    with spool.claimed(entry) as again:
        assert again
