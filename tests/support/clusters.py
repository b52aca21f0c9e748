"""Clusters of several processes on this machine, and the loss of a worker in the middle of a query."""

from __future__ import annotations

import contextlib
import multiprocessing.resource_tracker
import os
import shutil
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import cmtrack
from support import tables

PATIENCE = 60.0
"""Seconds to wait before a test fails."""


def find_java() -> str | None:
    """Return the command that Spark would start, from ``JAVA_HOME`` or ``PATH``."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")


def need_java() -> None:
    """Skip a test if there is no Java; in CI, fail it."""
    if find_java() is None:
        missing = "Spark needs Java 17 or newer, and neither JAVA_HOME nor PATH leads to one"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)


def wait_until(condition: Callable[[], Any], what: str) -> None:
    """Check a condition again and again until it is true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE:.0f} s in vain until {what}")
        time.sleep(0.02)


@contextlib.contextmanager
def processes() -> Iterator[Callable[[str], list[psutil.Process]]]:
    """Yield a function that finds processes started in the block by a word of their command line.

    At the end, all of them must have ended. They inherit an environment variable, which also finds processes whose parent
    is gone.
    """
    multiprocessing.resource_tracker.ensure_running()  # stays until Python ends
    name = f"CMTRACK_TEST_{uuid.uuid4().hex}"

    def started(word: str = "") -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                own = process.pid != os.getpid() and name in process.environ()
                if (
                    own
                    and word in " ".join(process.cmdline())
                    and process.status() != psutil.STATUS_ZOMBIE
                ):
                    found.append(process)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(name, "1")
        try:
            yield started
        finally:
            try:
                wait_until(lambda: not started(), "all processes of the cluster had ended")
            finally:
                for process in started():
                    process.kill()


# -- Spark ------------------------------------------------------------------------------------------------------------


class SparkCluster:
    """Two executors, each a separate JVM with one core."""

    def __init__(self, session: Any, started: Callable[[str], list[psutil.Process]]) -> None:
        self.session = session
        self._started = started

    def read(self, folder: Path) -> Any:
        return self.session.read.parquet(str(folder))

    def workers(self) -> list[int]:
        """Return the process ids of the executors that Spark knows and that run."""
        # the list includes the driver
        known = self.session._jsc.sc().getExecutorMemoryStatus().size() - 1
        pids = [process.pid for process in self._started("CoarseGrainedExecutorBackend")]
        return pids if known == len(pids) else []

    def only_the_frozen_one_is_left(self, frozen: int) -> bool:
        """Return whether all tasks of a stage are done except the frozen executor's task."""
        tracker = self.session.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(
            stage is not None
            and stage.numActiveTasks == 1
            and stage.numCompletedTasks == stage.numTasks - 1 > 0
            for stage in stages
        )

    def executions(self) -> list[Any]:
        """Return everything that Spark has executed since its start."""
        found = self.session._jsparkSession.sharedState().statusStore().executionsList()
        return [found.apply(number) for number in range(found.size())]


@contextlib.contextmanager
def spark_cluster(folder: Path) -> Iterator[SparkCluster]:
    """Yield Spark's ``local-cluster``; other sessions of this process end first."""
    need_java()
    import pyspark
    from pyspark.sql import SparkSession

    close_spark()
    home = folder / "spark"  # Spark's workers write next to its programs
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": tables.QUICK_START,
        "spark.executor.memory": "1g",
        "spark.executorEnv.PYTHONPATH": str(
            Path(cmtrack.__file__).parents[1]
        ),  # workers need the same cmtrack
        "spark.executor.extraJavaOptions": tables.QUICK_START,
        "spark.local.dir": str(folder / "local"),
        "spark.shuffle.io.retryWait": "200ms",
        "spark.sql.files.minPartitionNum": "6",
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with processes() as started, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("cmtrack")
        for name, value in options.items():
            builder = builder.config(name, value)
        try:
            session = builder.getOrCreate()
            session.sparkContext.setLogLevel("OFF")
            cluster = SparkCluster(session, started)
            wait_until(lambda: len(cluster.workers()) == 2, "both executors ran")
            yield cluster
        finally:
            close_spark()


def close_spark() -> None:
    """End Spark and its JVM in this process; a session that other tests share starts again when they need it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    tables.spark.cache_clear()
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(PATIENCE)
        SparkContext._gateway = SparkContext._jvm = None


# -- Dask -------------------------------------------------------------------------------------------------------------


class DaskCluster:
    """Two workers, each a separate process with one thread and a nanny that restarts it."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster

    def read(self, folder: Path) -> Any:
        import dask.dataframe as dd

        return dd.read_parquet(str(folder))

    def workers(self) -> list[int]:
        """Return the process ids of the workers that the scheduler knows."""
        nannies = [
            nanny for nanny in self.cluster.workers.values() if nanny.status.name == "running"
        ]
        known = self.cluster.scheduler.workers
        return [nanny.pid for nanny in nannies if nanny.worker_address in known]

    def only_the_frozen_one_is_left(self, frozen: int) -> bool:
        """Return whether the frozen worker has tasks and the other worker has done all that it can."""
        workers = self.cluster.scheduler.workers
        own = [
            nanny.worker_address for nanny in self.cluster.workers.values() if nanny.pid == frozen
        ]
        if len(own) != 1 or len(workers) != 2:
            return False
        other = next(state for address, state in workers.items() if address != own[0])
        return bool(workers[own[0]].processing and not other.processing and other.has_what)


@contextlib.contextmanager
def dask_cluster(folder: Path) -> Iterator[DaskCluster]:
    """Yield Dask's ``LocalCluster``; it computes all frames while it is open."""
    import dask.config
    from distributed import Client, LocalCluster

    with (
        processes(),
        # LocalCluster drops a worker for good if it happens to be away this long after an earlier loss.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 hour"}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(folder),
        ) as cluster,
        Client(cluster),
    ):
        yield DaskCluster(cluster)


# -- a loss -----------------------------------------------------------------------------------------------------------


class NothingLost(Exception):
    """The scheduler gave the frozen worker no task, so no worker could be killed in the middle."""


@contextlib.contextmanager
def one_lost(cluster: SparkCluster | DaskCluster, which: str) -> Iterator[list[int]]:
    """Kill one of two workers in the middle of the query in the block.

    One worker is frozen before the query, so that the query cannot end without it. When the other worker has finished
    its part, one of them is killed: either the worker ``at work``, which has an unfinished task, or the worker that is
    ``done``, whose results the rest of the query needs. In that case the frozen worker continues.

    Yields
    ------
    list of int
        Contains the process id of the killed worker at the end.

    Raises
    ------
    NothingLost
        If the query ends before that.
    """
    wait_until(lambda: len(cluster.workers()) == 2, "both workers ran")
    frozen, other = cluster.workers()
    lost: list[int] = []
    failures: list[Exception] = []

    def kill() -> None:
        try:
            wait_until(
                lambda: cluster.only_the_frozen_one_is_left(frozen),
                "only the frozen worker had a task",
            )
            lost.append(frozen if which == "at work" else other)
            os.kill(lost[0], signal.SIGKILL)
        except Exception as error:
            failures.append(error)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(frozen, signal.SIGCONT)

    os.kill(frozen, signal.SIGSTOP)
    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield lost
    finally:
        thread.join()
    if isinstance(next(iter(failures), None), TimeoutError):
        raise NothingLost(str(failures[0]))
    if failures:
        raise failures[0]
