"""How long a review of many runs takes.

    python benchmarks/review_speed.py [--runs 1000]

It fills an SQLite store with runs. The best 50 have a whole evaluation (10,000 rows, 11 classes, with the rows'
predictions), the others only its metrics, parameters and tags. It ranks all runs by a logged metric with a gate, and
reviews the best 50, paired and with every figure, to an HTML file. To show the growth, it also lists half and a quarter.
Then it compares 50, 200 and 1,000 evaluations in memory (10,000 rows, 3 classes), each in a fresh process, and prints
the processor time a run and the peak memory above the evaluations.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import Peak, in_fresh_process, table
from mlflow import MlflowClient
from mlflow.entities import Metric, Param, RunTag

import cmtrack
from cmtrack.comparison.criterion import Criterion
from cmtrack.evaluation.gates import Gate
from cmtrack.tracking.listed import Listed, LoggedValues, shortlist
from cmtrack.tracking.runs import client_for, search
from cmtrack.tracking.store import quiet, tracking_store

METRIC, ROWS, CLASSES, WHOLE = "multiclass/matthews_corrcoef", 10_000, 11, 50
GATE = "multiclass/accuracy >= 0.3"


def fill(folder: Path, runs: int) -> None:
    """Make the runs; runs without files are marked complete and rank behind the others."""
    client = MlflowClient()
    experiment = client.create_experiment("many", artifact_location=(folder / "artifacts").as_uri())
    rng = np.random.default_rng(0)
    y = rng.integers(0, CLASSES, ROWS)
    shared = rng.normal(size=(ROWS, CLASSES))
    data = None
    for i in range(runs):
        run_id = client.create_run(experiment, run_name=f"run {i}").info.run_id
        params = [Param(f"p{j}", str(rng.integers(10))) for j in range(10)]
        if i < WHOLE:
            logits = 0.8 * shared + 0.6 * rng.normal(size=shared.shape)
            logits[np.arange(ROWS), y] += 1.6 + 0.02 * rng.random()
            p = np.exp(logits)
            grouping = cmtrack.Grouping({"low": range(6), "high": range(6, CLASSES)}, name="half")
            cmtrack.log_evaluation(
                y,
                y_prob=p / p.sum(axis=1, keepdims=True),
                grouping=grouping,
                run_id=run_id,
                strict=True,
            )
            client.log_batch(run_id, params=params)
            data = client.get_run(run_id).data
        elif data is not None:
            worse = float(rng.uniform(0.3, 0.9))
            metrics = [Metric(name, value * worse, 0, 0) for name, value in data.metrics.items()]
            tags = [
                RunTag(name, text)
                for name, text in data.tags.items()
                if name.startswith("cmtrack.")
            ]
            client.log_batch(run_id, metrics=metrics, tags=tags, params=params)
        client.set_terminated(run_id)


def compare_in_memory(runs: int) -> tuple[float, float, int]:
    """Return the seconds of the processor for the comparison and for its page, and the peak memory in bytes."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, ROWS)
    shared = rng.normal(size=(ROWS, 3))
    evaluations = {}
    for i in range(runs):
        logits = 0.8 * shared + 0.6 * rng.normal(size=shared.shape)
        logits[np.arange(ROWS), y] += 1 + 0.6 * rng.random()
        evaluations[f"run {i}"] = cmtrack.evaluate(y, logits.argmax(axis=1))
        evaluations[f"run {i}"].metrics  # noqa: B018 - computed before the clock starts
    with tempfile.TemporaryDirectory() as scratch, Peak() as peak:
        start = time.process_time()
        comparison = cmtrack.compare(evaluations)
        middle = time.process_time()
        comparison.report(Path(scratch) / "review.html")
        end = time.process_time()
    return middle - start, end - middle, peak.bytes


def print_growth() -> None:
    """Print how the time and the memory of a comparison grow with the number of runs."""
    rows = []
    for runs in (50, 200, 1000):
        seconds, page, peak = in_fresh_process(compare_in_memory, runs)
        per_run = f"{1e3 * seconds / runs:.1f}"
        rows.append((runs, f"{seconds:.2f}", per_run, f"{page:.2f}", f"{peak / 1e6:.0f}"))
    table(("runs", "compare, s", "ms a run", "page, s", "peak, MB"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    with (
        tempfile.TemporaryDirectory() as scratch,
        quiet(),
        tracking_store(f"sqlite:///{scratch}/mlflow.db") as uri,
    ):
        fill(Path(scratch), runs)
        client = client_for(uri)
        logged = len(client.search_runs(["1"], max_results=1)[0].data.metrics)
        print(f"{runs} runs with {logged} metrics, 10 parameters each", flush=True)
        for part in (runs // 4, runs // 2, runs):
            start = time.perf_counter()
            listed = search(client, ["1"], order_by=[f"metrics.`{METRIC}` DESC"], max_runs=part)
            criterion = Criterion.of(METRIC)
            short = shortlist(
                Listed(tuple(listed)),
                LoggedValues(criterion.catalog),
                criterion,
                [Gate.parse(GATE)],
                limit=WHOLE,
            )
            took = time.perf_counter() - start
            stopped = len(short.stopped)
            print(
                f"  {part} runs listed, gated and ranked by the logged value: {took:.2f} s ({stopped} stopped)"
            )
        start = time.perf_counter()
        comparison = cmtrack.compare(experiment_names=["many"], rank_by=METRIC, require=GATE)
        middle = time.perf_counter()
        comparison.report(Path(scratch) / "review.html")
        end = time.perf_counter()
        size = (Path(scratch) / "review.html").stat().st_size / 1e6
        print(
            f"  compare: {middle - start:.2f} s, {len(comparison)} runs, paired: {comparison.rankings[0].paired}"
        )
        print(f"  its review with figures: {end - middle:.2f} s more, {size:.1f} MB")
    print_growth()


if __name__ == "__main__":
    main()
