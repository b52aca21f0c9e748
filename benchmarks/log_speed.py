"""Time the logging of one evaluation, with its figures, compared with MLflow's own evaluator in the same kind of store.

Every evaluation is logged to its own run in a new local SQLite store, with files in a temporary folder. The time is the
run's time from start to end, including computation and figures. MLflow's evaluator gets the rows in both of its ways:
as static predictions (a frame with the labels, the predictions and the probability columns, which it stores as features
and does not use), and as a scikit-learn model from which it computes the probabilities itself.

An epoch is logged with `step=`, compared with three scikit-learn scores and `mlflow.log_metrics`. The last table shows
the cost of a step late in a run, compared with the cost of an early step.

python benchmarks/log_speed.py [--rows 10000] [--repeats 7] [--large 1000000] [--large-repeats 2]
    [--first-repeats 5] [--late-step 5000] [--profile 15]
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import functools
import io
import itertools
import logging
import os
import pstats
import re
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import mlflow
import numpy as np
import pandas as pd
from measure import Action, in_fresh_process, interleaved, numbers, say, shown, table
from mlflow import MlflowClient
from mlflow.entities import Metric
from sklearn.linear_model import LogisticRegression

from cmtrack import Grouping, evaluate, log_evaluation

EVALUATOR = "MLflow's evaluator"
NAMES = ("log_evaluation", f"{EVALUATOR}, static predictions", f"{EVALUATOR}, model")


class Rows:
    """Features, labels and the probabilities of a fitted model that is also in the store."""

    def __init__(self, rows: int, classes: int) -> None:
        rng = np.random.default_rng(0)
        self.y = rng.integers(0, classes, rows)
        features = rng.normal(size=(rows, classes))
        features[np.arange(rows), self.y] += 1.5
        model = LogisticRegression().fit(features[:2000], self.y[:2000])
        self.probabilities = model.predict_proba(features)
        self.grouping = Grouping.nps() if classes == 11 else None
        names = [f"p{i}" for i in range(classes)]
        self.static = pd.DataFrame(self.probabilities, columns=names).assign(
            y_true=self.y, y_pred=self.probabilities.argmax(axis=1)
        )
        self.features = pd.DataFrame(features, columns=[f"x{i}" for i in range(classes)]).assign(
            y_true=self.y
        )
        with mlflow.start_run(run_name="the model"):
            self.model = mlflow.sklearn.log_model(
                model, name="model", serialization_format="pickle"
            ).model_uri


def ways(rows: Rows, kept: dict[str, str]) -> dict[str, Action]:
    """Return ways to log the rows, by name; each puts the last run that it made into `kept`."""

    def in_a_run(name: str, log: Action) -> Action:
        def action() -> None:
            with mlflow.start_run() as run:
                log()
            kept[name] = run.info.run_id

        return action

    def ours() -> None:
        logged = log_evaluation(
            rows.y, y_prob=rows.probabilities, grouping=rows.grouping, strict=True
        )
        if logged.problems:
            raise RuntimeError(f"not everything was logged: {logged.problems}")

    def static() -> None:
        mlflow.models.evaluate(
            data=rows.static,
            targets="y_true",
            predictions="y_pred",
            model_type="classifier",
            evaluators=["default"],
        )

    def with_a_model() -> None:
        mlflow.models.evaluate(
            rows.model,
            data=rows.features,
            targets="y_true",
            model_type="classifier",
            evaluators=["default"],
        )

    return {
        name: in_a_run(name, log)
        for name, log in zip(NAMES, (ours, static, with_a_model), strict=True)
    }


@contextlib.contextmanager
def store() -> Iterator[Path]:
    """Yield the folder of the files of a new local store."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch,
        contextlib.chdir(scratch),
    ):
        mlflow.set_tracking_uri(f"sqlite:///{scratch}/mlflow.db")
        mlflow.set_registry_uri(f"sqlite:///{scratch}/mlflow.db")
        MlflowClient().create_experiment(
            "speed", artifact_location=(Path(scratch) / "artifacts").as_uri()
        )
        mlflow.set_experiment("speed")
        yield Path(scratch) / "artifacts"


def left(folder: Path, run_id: str) -> tuple[int, str, str]:
    """Return the number of a run's artifacts, a list of them, and the number of its metrics."""
    files = [path for path in (folder / run_id / "artifacts").rglob("*") if path.is_file()]
    kinds = Counter(path.suffix for path in files)
    size = sum(path.stat().st_size for path in files) / 1e6
    listed = ", ".join(f"{number} {kind}" for kind, number in kinds.most_common())
    metrics = len(MlflowClient().get_run(run_id).data.metrics)
    return len(files), f"{listed}; {size:.1f} MB", str(metrics)


def whole(sizes: list[int], classes: list[int], repeats: int) -> None:
    """Print the time of complete logging, with figures, and its results in the store."""
    lines = []
    for n in sizes:
        for k in classes:
            say(f"{n:,} rows, {k} classes")
            kept: dict[str, str] = {}
            with store() as folder:
                actions = ways(Rows(n, k), kept)
                for action in actions.values():
                    action()  # what is imported and set up once a process
                times = interleaved(actions, repeats)
                ours = times["log_evaluation"]
                for name, took in times.items():
                    ratios = [f"{shown(took.over(ours, clock))}×" for clock in ("wall", "cpu")]
                    lines.append(
                        (
                            n,
                            k,
                            name,
                            shown(took.median),
                            *ratios,
                            len(took.wall),
                            *left(folder, kept[name]),
                        )
                    )
    print("A run with its figures\n")
    head = ("rows", "classes", "logged by", "s", "wall, / ours", "processor, / ours", "rounds")
    table((*head, "artifacts", "of which", "metrics"), lines)


def first_calls(rows: int, classes: list[int], repeats: int) -> None:
    """Print the time of the single call that a training script makes: in a new process, including imports."""
    lines = []
    for k in classes:
        had: dict[str, list[float]] = {}
        for _ in range(repeats):
            for name in NAMES:
                had.setdefault(name, []).append(in_fresh_process(first_call, name, rows, k))
                say(f"first call, {k} classes, {name}: {had[name][-1]:.2f} s")
        for name, took in had.items():
            over = np.median(np.array(took) / np.array(had[NAMES[0]]))
            lines.append(
                (rows, k, name, shown(float(np.median(took))), f"{shown(float(over))}×", repeats)
            )
    print("The first call of a process, imports included\n")
    table(("rows", "classes", "logged by", "s", "wall, / ours", "rounds"), lines)


def first_call(name: str, rows: int, classes: int) -> float:
    """Seconds of the first call in this process."""
    silence()
    with store():
        action = ways(Rows(rows, classes), {})[name]
        start = time.perf_counter()
        action()
        return time.perf_counter() - start


def large(rows: int, classes: int, repeats: int) -> None:
    """Print the time of the evaluator on many rows, of all metrics with their intervals, and of logging them."""
    say(f"{rows:,} rows, {classes} classes")
    kept: dict[str, str] = {}
    with store():
        data = Rows(rows, classes)

        def metrics() -> None:
            evaluate(data.y, y_prob=data.probabilities, grouping=data.grouping).metrics  # noqa: B018

        metrics()
        times = interleaved({"evaluate": metrics} | ways(data, kept), repeats, patience=120)
    lines = []
    for ours in ("evaluate", "log_evaluation"):
        for name in times:
            if name.startswith(EVALUATOR):
                theirs = times[name]
                faster = f"{shown(theirs.over(times[ours]))}×"
                lines.append(
                    (
                        rows,
                        classes,
                        ours,
                        name,
                        faster,
                        f"{times[ours].median:.2f} / {theirs.median:.2f}",
                    )
                )
    print("Many rows\n")
    table(
        ("rows", "classes", "cmtrack", "against", "faster, wall", "s", "rounds"),
        [(*row, repeats) for row in lines],
    )


def epochs(rows: int, classes: list[int], repeats: int, late_step: int) -> None:
    """Print the time of an epoch that is logged with `step=`, and how the time grows with the step."""
    lines = []
    growth = []
    for k in classes:
        say(f"epochs, {k} classes")
        with store() as folder:
            data = Rows(rows, k)
            steps = itertools.count()

            def ours(data: Rows = data, steps: Iterator[int] = steps) -> None:
                logged = log_evaluation(
                    data.y,
                    y_prob=data.probabilities,
                    grouping=data.grouping,
                    step=next(steps),
                    strict=True,
                )
                if logged.problems:
                    raise RuntimeError(f"not everything was logged: {logged.problems}")

            def scores(data: Rows = data, steps: Iterator[int] = steps) -> None:
                mlflow.log_metrics(three_scores(data), step=next(steps))

            with mlflow.start_run() as run:
                actions = {"log_evaluation, step=": ours, "three scores": scores}
                for action in actions.values():
                    action()
                times = interleaved(actions, repeats)
                for name, took in times.items():
                    ratio = f"{shown(took.over(times['three scores'], 'cpu'))}×"
                    lines.append((rows, k, name, shown(took.median), ratio, repeats))
                early = interleaved({"early": ours}, repeats)["early"]
                fill_steps(run.info.run_id, folder, late_step)
                steps = itertools.count(late_step)
                late = interleaved({"late": functools.partial(ours, steps=steps)}, repeats)["late"]
                grown = np.median(late.cpu) / np.median(early.cpu)
                growth.append((rows, k, late_step, f"{shown(float(grown))}×", repeats))
    print("An epoch\n")
    table(("rows", "classes", "logged by", "s", "processor, / three scores", "rounds"), lines)
    print("A late step, compared with an early step\n")
    table(("rows", "classes", "late step", "processor, / early", "rounds"), growth)


def three_scores(rows: Rows) -> dict[str, float]:
    """Return three scores by scikit-learn."""
    from sklearn import metrics as sk

    predicted = rows.probabilities.argmax(axis=1)
    return {
        "accuracy": sk.accuracy_score(rows.y, predicted),
        "f1": sk.f1_score(rows.y, predicted, average="macro"),
        "log_loss": sk.log_loss(rows.y, rows.probabilities),
    }


def fill_steps(run_id: str, folder: Path, steps: int) -> None:
    """Give a run a value of each metric for every step, and two images for every step."""
    client = MlflowClient()
    now = int(time.time() * 1000)
    names = list(client.get_run(run_id).data.metrics)
    for start in range(0, steps, 10):
        many = [Metric(name, 0.5, now, step) for step in range(start, start + 10) for name in names]
        for place in range(0, len(many), 1000):
            client.log_batch(run_id, metrics=many[place : place + 1000])
    images = folder / run_id / "artifacts" / "images"
    for image in list(images.glob("*"))[:2]:
        for step in range(steps):
            copy = re.sub(r"step(.)\d+", rf"step\g<1>{step}", image.name)
            (images / copy).write_bytes(image.read_bytes())


def profile(rows: int, classes: int, depth: int) -> None:
    """Print where the time of `log_evaluation` goes, including the thread that sends."""
    with store():
        data = Rows(rows, classes)
        action = ways(data, {})["log_evaluation"]
        action()
        with profiled() as collected:
            action()
    for order in ("cumulative", "tottime"):
        text = io.StringIO()
        pstats.Stats(*collected, stream=text).sort_stats(order).print_stats(
            "cmtrack|savefig|mlflow.tracking", depth
        )
        print(text.getvalue())


@contextlib.contextmanager
def profiled() -> Iterator[list[cProfile.Profile]]:
    """Yield profiles of this thread and of the threads that start in the block."""
    own = cProfile.Profile()
    collected = [own]
    run: Callable[[threading.Thread], None] = threading.Thread.run

    def watched(thread: threading.Thread) -> None:
        profile = cProfile.Profile()
        collected.append(profile)
        profile.runcall(run, thread)

    threading.Thread.run = watched  # type: ignore[method-assign, assignment]
    own.enable()
    try:
        yield collected
    finally:
        own.disable()
        threading.Thread.run = run  # type: ignore[method-assign, assignment]


def silence() -> None:
    """Switch off MLflow's progress bars and warnings between the lines."""
    os.environ["GIT_PYTHON_REFRESH"] = "quiet"
    os.environ["MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR"] = "false"
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=numbers, default=[10_000])
    parser.add_argument("--classes", type=numbers, default=[2, 11])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--large", type=int, default=1_000_000, help="rows of the comparison with evaluate; 0: none"
    )
    parser.add_argument("--large-repeats", type=int, default=2)
    parser.add_argument(
        "--first-repeats", type=int, default=5, help="processes for the first call; 0: none"
    )
    parser.add_argument("--late-step", type=int, default=5000, help="0: no epochs")
    parser.add_argument(
        "--profile", type=int, default=0, help="print only where the time goes, so many lines"
    )
    options = parser.parse_args()
    silence()
    if options.profile:
        for k in options.classes:
            profile(options.rows[0], k, options.profile)
        return
    whole(options.rows, options.classes, options.repeats)
    if options.first_repeats:
        first_calls(options.rows[0], options.classes, options.first_repeats)
    if options.late_step:
        epochs(options.rows[0], options.classes, options.repeats, options.late_step)
    if options.large:
        large(options.large, 11, options.large_repeats)


if __name__ == "__main__":
    main()
