"""Requests and seconds of `compare` and `regroup_runs` on many runs, read through a tracking server.

    python benchmarks/store_speed.py [--runs 2000] [--backend-store-uri postgresql+psycopg2://...] [--regroup 2000]

It starts `mlflow server --serve-artifacts` on a database (by default SQLite; the database is filled, so name an empty
one), and fills it with runs of 300 rows and 7 classes. Their files are written where the server looks for them. This
process counts the requests that it sends. MLflow's own `download_artifacts` of the same 100 files is the comparison.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from measure import say, table
from mlflow import MlflowClient
from mlflow.entities import Metric, RunTag
from requests.adapters import HTTPAdapter

import cmtrack
from cmtrack.evaluation.storage import write_predictions
from cmtrack.tracking import regroup_runs
from cmtrack.tracking.contents import make as make_entry
from cmtrack.tracking.entry import ARTIFACTS, Entry
from cmtrack.tracking.names import EVALUATION_FILE, PREDICTIONS_FILE, file_name, tag
from cmtrack.tracking.store import quiet, tracking_store

METRIC, ROWS, CLASSES, WRITERS = "multiclass/matthews_corrcoef", 300, 7, 8
HALVES = cmtrack.Grouping({"low": range(3), "high": range(3, CLASSES)}, name="half")
PARITY = cmtrack.Grouping(
    {"even": range(0, CLASSES, 2), "odd": range(1, CLASSES, 2)}, name="parity"
)


def fill(backend: str, artifacts: Path, runs: int) -> None:
    """Make complete runs: their numbers through the database's own store, their files in the server's folder."""
    client = MlflowClient(backend)
    experiment = client.create_experiment("many", artifact_location="mlflow-artifacts:/many")
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    shared = rng.normal(size=(ROWS, CLASSES))
    skills = rng.uniform(0.5, 1.5, runs)

    def make(number: int) -> None:
        own = np.random.default_rng(number + 1).normal(size=shared.shape)
        p = np.exp(0.8 * shared + 0.6 * own + skills[number] * np.eye(CLASSES)[y])
        p = (p / p.sum(axis=1, keepdims=True)).astype(np.float32)
        evaluation = cmtrack.evaluate(y, y_prob=p, grouping=HALVES)
        run_id = client.create_run(experiment, run_name=f"run {number}").info.run_id
        folder = artifacts / "many" / run_id / "artifacts"
        folder.mkdir(parents=True)

        entry = Entry(run_id=run_id, figures=False)
        make_entry(entry, evaluation, rows=lambda file: write_predictions(file, evaluation.rows))
        for name, content in entry.contents.items():
            if name.startswith(ARTIFACTS):
                (folder / Path(name).name).write_bytes(content)
        metrics = [Metric(name, value, entry.timestamp, 0) for name, value in entry.metrics.items()]
        tags = [RunTag(name, text) for name, text in entry.tags.items()]
        client.log_batch(run_id, metrics=metrics, tags=[*tags, RunTag(tag("status"), "completed")])
        client.set_terminated(run_id)

    with ThreadPoolExecutor(WRITERS) as pool:
        for done, _ in enumerate(pool.map(make, range(runs)), 1):
            if done % 200 == 0:
                say(f"{done} runs made")


@contextlib.contextmanager
def server(backend: str, scratch: Path) -> Iterator[str]:
    """A tracking server on a database, with its artifacts in a folder; yields its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "server",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--workers",
        "2",
    ]
    command += [
        "--backend-store-uri",
        backend,
        "--artifacts-destination",
        str(scratch / "artifacts"),
    ]
    with (scratch / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=scratch, stdout=log, stderr=log, start_new_session=True
        )
        try:
            for _ in range(240):
                with contextlib.suppress(OSError):
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
                    break
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """Yield a counter of the requests that this process sends in the block, by method and kind of address."""
    kinds: Counter[str] = Counter()
    send = HTTPAdapter.send

    def counting(self, request, *args, **options):  # type: ignore[no-untyped-def]
        where = request.path_url.partition("?")[0].partition("/api/2.0/")[2].split("/")
        what = where[:2] if where[0] == "mlflow-artifacts" else where[1:3]
        kinds[" ".join((request.method, *what))] += 1
        return send(self, request, *args, **options)

    HTTPAdapter.send = counting  # type: ignore[method-assign]
    try:
        yield kinds
    finally:
        HTTPAdapter.send = send  # type: ignore[method-assign]


def measured(name: str, action: Callable[[], object]) -> list[str]:
    """Return a line of the table: the action, its requests, its seconds."""
    with counted() as kinds:
        start = time.perf_counter()
        action()
        took = time.perf_counter() - start
    say(f"{name}: {took:.1f} s, {sum(kinds.values())} requests: {dict(kinds)}")
    return [name, f"{sum(kinds.values()):,}", f"{took:.1f}"]


def by_mlflow(runs: list[str], folder: Path) -> None:
    """Download the same files with MLflow's own function and as many threads."""
    client = MlflowClient()

    def read(run_id: str) -> None:
        place = folder / run_id
        place.mkdir(parents=True)
        for name in (EVALUATION_FILE, PREDICTIONS_FILE):
            client.download_artifacts(run_id, file_name(name), str(place))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(read, runs))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--regroup", type=int, help="of how many runs; by default all")
    parser.add_argument(
        "--backend-store-uri", help="an empty database; by default SQLite in a temporary folder"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scratch = Path(folder)
        os.environ["CMTRACK_CACHE"] = str(scratch / "cache")
        backend = options.backend_store_uri or f"sqlite:///{scratch}/mlflow.db"
        with quiet(), server(backend, scratch) as uri:
            fill(backend, scratch / "artifacts", options.runs)
            with tracking_store(uri):
                _report(options.regroup or options.runs, scratch)


def _report(regrouped: int, scratch: Path) -> None:
    def compare(limit: int) -> Callable[[], object]:
        return lambda: cmtrack.compare(experiment_names=["many"], rank_by=METRIC, limit=limit)

    best = [run.run_id for run in cmtrack.compare(experiment_names=["many"], rank_by=METRIC).runs]
    shutil.rmtree(scratch / "cache")
    lines = [
        measured(
            f"the files of {len(best)} runs by MLflow's `download_artifacts`",
            lambda: by_mlflow(best, scratch / "by"),
        ),
        measured("`compare`, best 50, empty cache", compare(50)),
        measured("`compare`, best 50, again", compare(50)),
        measured("`compare`, best 200, 150 of them not read yet", compare(200)),
    ]
    shutil.rmtree(scratch / "cache")
    client = MlflowClient()
    experiment = client.get_experiment_by_name("many").experiment_id
    from cmtrack.tracking.runs import search

    def regroup() -> None:
        results = regroup_runs(list(search(client, [experiment], max_runs=regrouped)), PARITY)
        left_out = [run.reason for run in results if run.status != "completed"]
        if left_out:
            raise RuntimeError(f"{len(left_out)} runs were left out: {left_out[0]}")

    lines.append(measured(f"`regroup_runs` of {regrouped}", regroup))
    lines.append(measured("the same again", regroup))
    table(["what", "requests", "s"], lines)


if __name__ == "__main__":
    main()
