"""A tracking server, or a proxy before it, fails at the Nth request: an evaluation is complete or waits."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import pytest

from cmtrack import Evaluation, evaluate, load_evaluation, log_evaluation
from cmtrack.tracking import tracking_store
from support.components import tracking_server
from support.faults import (
    DRIP,
    DROP,
    LOGIN,
    PAGE,
    PASS,
    FaultyProxy,
    draw_one,
    forget_silences,
    wait_for_stores,
)
from support.problems import random_problem
from support.stores import push, waiting

pytestmark = pytest.mark.slow

ALL = os.environ.get("CMTRACK_TEST_ALL")
COMPLETE = "complete"
WAITING = "waiting"
LOST = "lost"
ANSWERS: dict[str, Any] = {
    "error": 500,
    "page": PAGE,
    "login": LOGIN,
    "nothing": DROP,
    "drip": DRIP,
}
KINDS = [(answer, is_lasting) for is_lasting in (False, True) for answer in ANSWERS]
"""How a request is answered, and whether all later ones are answered so as well."""
FILES = {
    "cmtrack_evaluation.json",
    "cmtrack_predictions.parquet",
    "cmtrack_report.html",
    "cmtrack_classes.json",
    "cmtrack_confusion_matrix.png",
}
LONGEST_SECONDS = 60
"""For one evaluation, also on a busy machine: MLflow alone would ask again for minutes."""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultyProxy]:
    """A tracking server with its own artifact store, behind a proxy; each failed request is an error at once."""
    folder = tmp_path_factory.mktemp("served")
    with tracking_server(folder) as running, pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMTRACK_SPOOL", str(folder / "spool"))
        patch.setenv("CMTRACK_CACHE", str(folder / "cache"))
        patch.setenv("XDG_DATA_HOME", str(folder / "home"))
        patch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        wait_for_stores(patch, 1.5)  # shorter than a dripping answer
        draw_one(patch)
        made = FaultyProxy(running.port)
        with tracking_store(made.url):
            yield made
        made.close()


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    y, _, p = random_problem(0, n=120, k=3, skill=1.2)
    return evaluate(y, y_prob=p)


def is_complete(run_id: str, evaluation: Evaluation) -> bool:
    """True if the run has all files, metrics and tags of an evaluation."""
    client = mlflow.MlflowClient()
    data = client.get_run(run_id).data
    if data.tags.get("cmtrack.status") != "completed" or "cmtrack.left_out" in data.tags:
        return False
    files = {file.path for file in client.list_artifacts(run_id) if not file.is_dir}
    images = {Path(file.path).suffix for file in client.list_artifacts(run_id, "images")}
    if (
        files != FILES
        or images != {".png", ".webp"}
        or "<!-- /cmtrack" not in data.tags["mlflow.note.content"]
    ):
        return False
    loaded = load_evaluation(run_id, rows=True)
    return (
        loaded == evaluation
        and data.metrics["multiclass/accuracy"] == evaluation.metrics["multiclass/accuracy"]
    )


def outcome_of(
    proxy: FaultyProxy, evaluation: Evaluation, answer: Any, at: int, is_lasting: bool
) -> str:
    """Log an evaluation to a new run while the request ``at`` fails; return what has become of it after a push."""
    run_id = str(mlflow.MlflowClient().create_run("0").info.run_id)
    forget_silences()
    proxy.requests.clear()
    proxy.fault = lambda _, __, number: (
        answer if number == at or (is_lasting and number > at) else PASS
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            began = time.monotonic()
            logged = log_evaluation(evaluation, run_id=run_id)  # raises nothing
            assert time.monotonic() - began < LONGEST_SECONDS
        for thread in threading.enumerate():  # a sender that was left behind goes on
            if thread.name == "cmtrack-send":
                thread.join(LONGEST_SECONDS)
    finally:
        proxy.fault = lambda *_: PASS
    outcome = COMPLETE if is_complete(run_id, evaluation) else WAITING
    if logged.status == "completed" and outcome != COMPLETE:
        return LOST
    entries = waiting()
    if outcome == WAITING and not entries:
        return LOST
    pushed = push()
    if [entry.status for entry in pushed] != ["sent"] * len(entries) or waiting():
        return LOST
    return outcome if is_complete(run_id, evaluation) else LOST


def test_no_answer_to_any_request_loses_an_evaluation(
    proxy: FaultyProxy, evaluation: Evaluation
) -> None:
    assert outcome_of(proxy, evaluation, PASS, 0, False) == COMPLETE
    proxy.requests.clear()
    log_evaluation(
        evaluation, run_id=str(mlflow.MlflowClient().create_run("0").info.run_id), strict=True
    )
    total = len(proxy.requests) - 1  # the first one has made the run
    images = [
        at
        for at, (method, path) in enumerate(proxy.requests)
        if method == "PUT" and "/images/" in path
    ]
    assert len(images) == 2
    assert total > 10
    cases = [(*kind, at) for at in range(1, total + 1) for kind in KINDS]
    if not ALL:
        cases = [(*kind, 1 + place * total // len(KINDS)) for place, kind in enumerate(KINDS)]
        cases += [("page", False, at) for at in images]  # their names are not looked for afterwards
    counts = {kind: Counter[str]() for kind in KINDS}
    lost = []
    for answer, is_lasting, at in cases:
        outcome = outcome_of(proxy, evaluation, ANSWERS[answer], at, is_lasting)
        counts[answer, is_lasting][outcome] += 1
        if outcome == LOST:
            lost.append((answer, is_lasting, at))
    for (answer, is_lasting), outcomes in counts.items():
        until = "from there on" if is_lasting else "once"
        print(f"TABLE {total} requests, {answer} {until}: {dict(outcomes)}")
    assert lost == []
