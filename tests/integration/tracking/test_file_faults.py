"""A process dies, or gets an error, at its Nth file operation: what it wrote is whole, waiting, or that is said."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import shutil
import sqlite3
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pyarrow.parquet as pq
import pytest

from cmtrack import Comparison, Evaluation, compare, evaluate, load_evaluation, log_evaluation
from cmtrack.tracking import quiet, tracking_store
from support.faults import (
    FILE_FAULTS,
    INTERRUPTED,
    Ended,
    draw_one,
    keep_memory_in,
    store_is_down,
    with_file_fault,
)
from support.problems import random_problem
from support.stores import push, sqlite_store, waiting

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

ALL = os.environ.get("CMTRACK_TEST_ALL")
WHOLE, WAITING, SAID, NOTHING, ELSE = "whole", "waiting", "said", "nothing was begun", "else"
ROWS = "cmtrack_predictions.parquet"


def judged(seed: int) -> Evaluation:
    y, _, p = random_problem(seed, n=120, k=3, skill=1.2)
    return evaluate(y, y_prob=p)


FIRST, SECOND = judged(0), judged(1)


@dataclass(eq=False)
class Bench:
    """A store, and places for everything that is written, below one folder."""

    root: Path
    client: mlflow.MlflowClient

    def new_run(self) -> str:
        return str(self.client.create_run("1").info.run_id)

    def emptied(self) -> None:
        os.environ.update(
            CMTRACK_CACHE=str(self.root / "cache"), XDG_DATA_HOME=str(self.root / "home")
        )
        for place in ("cmtrack_spool", "home", "temporary", "memory", "cache", "out"):
            shutil.rmtree(self.root / place, ignore_errors=True)
            if place in ("temporary", "memory", "out"):
                (self.root / place).mkdir()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    root = tmp_path_factory.mktemp("faults")
    with (
        pytest.MonkeyPatch.context() as patch,
        quiet(),
        tracking_store(sqlite_store(root / "mlflow.db")),
    ):
        patch.chdir(root)
        patch.delenv("CMTRACK_SPOOL", raising=False)
        patch.setattr(tempfile, "tempdir", str(root / "temporary"))
        keep_memory_in(patch, root / "memory")
        draw_one(patch)
        mlflow.create_experiment("e", artifact_location=(root / "artifacts").as_uri())
        made = Bench(root, mlflow.MlflowClient())
        made.emptied()
        yield made


Check = Callable[[Ended], str]


# -- logging and pushing ---------------------------------------------------------------------------------------------


def log(run_id: str, **options: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        logged = log_evaluation(FIRST, run_id=run_id, **options)
    return (
        logged.status,
        [str(one.message) for one in caught if "cmtrack" in str(one.message)],
        logged.problems,
    )


def is_complete(run_id: str, rows: set[str]) -> bool:
    """True where the run has all of it, with rows of one of these kinds: "all", "labels" or "off"."""
    client = mlflow.MlflowClient()
    tags = client.get_run(run_id).data.tags
    if tags.get("cmtrack.status") != "completed" or "cmtrack.left_out" in tags:
        return False
    files = {file.path for file in client.list_artifacts(run_id) if not file.is_dir}
    images = [file.path for file in client.list_artifacts(run_id, "images")]
    wanted = {
        "cmtrack_evaluation.json",
        "cmtrack_report.html",
        "cmtrack_classes.json",
        "cmtrack_confusion_matrix.png",
    }
    whole = files - {ROWS} == wanted and {Path(path).suffix for path in images} == {".png", ".webp"}
    return whole and sent_rows(run_id) in rows and load_evaluation(run_id) == FIRST


def sent_rows(run_id: str) -> str:
    """The rows that a run has: "all", "labels", or "off" where it has none."""
    client = mlflow.MlflowClient()
    if ROWS not in {file.path for file in client.list_artifacts(run_id)}:
        return "off"
    names = pq.read_table(client.download_artifacts(run_id, ROWS)).column_names
    return "all" if any(name.startswith("p_") or "prob" in name for name in names) else "labels"


def is_doubled(bench: Bench, run_id: str) -> bool:
    with contextlib.closing(sqlite3.connect(bench.root / "mlflow.db")) as connection:
        most = connection.execute(
            "SELECT max(n) FROM (SELECT count(*) AS n FROM metrics WHERE run_uuid = ? GROUP BY key)",
            [run_id],
        ).fetchone()[0]
    images = mlflow.MlflowClient().list_artifacts(run_id, "images")
    return (most or 0) > 1 or len([file for file in images if file.path.endswith(".webp")]) > 1


def delivered(bench: Bench, run_id: str, ended: Ended, limit: str = "all") -> str:
    """The outcome of logging or pushing: rows may be those of the limit, or all where they are pushed later."""
    if limit != "all":
        assert sent_rows(run_id) in (limit, "off"), "what must not be sent was sent"
    if is_complete(run_id, {limit}):
        outcome = WHOLE
    elif not waiting() and not ended.died:
        return SAID if ended.result[1] or ended.result[2] or ended.result[0] == "failed" else ELSE
    else:
        outcome = WAITING
    pushed = push()
    assert not [entry for entry in waiting() if entry.kind == "evaluation"], pushed
    assert not is_doubled(bench, run_id), "metrics or images are doubled"
    if is_complete(run_id, {limit, "all"}):
        if sent_rows(run_id) != "off":
            assert load_evaluation(run_id, rows=True).rows is not None
        return outcome
    if any(entry.reason or entry.problems for entry in pushed):
        return SAID
    return NOTHING if "cmtrack.status" not in mlflow.get_run(run_id).data.tags else ELSE


def logging(bench: Bench) -> tuple[Callable[[], Any], Check]:
    run_id = bench.new_run()
    return lambda: log(run_id), lambda ended: delivered(bench, run_id, ended)


def leave_an_entry(bench: Bench, run_id: str, finished: bool = True) -> None:
    """An entry that waits for a run, or one whose writer was killed at the figures."""
    kept = bench.root / "kept"
    if not kept.exists():
        with store_is_down(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            logged = log_evaluation(FIRST, run_id="0" * 32)
        shutil.copytree(logged.path, kept)
        bench.emptied()
    entry = (
        bench.root / "cmtrack_spool" / f"{'' if finished else '.'}20260101T000000000000-00000000"
    )
    shutil.copytree(kept, entry)
    file = entry / "entry.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"run_id": run_id}))
    if not finished:
        (entry / "artifacts" / "cmtrack_report.html").write_text("half of i")
        (entry / ".lock").touch()


def pushing(
    setting: str, finished: bool = True
) -> Callable[[Bench], tuple[Callable[[], Any], Check]]:
    def prepared(bench: Bench) -> tuple[Callable[[], Any], Check]:
        run_id = bench.new_run()
        leave_an_entry(bench, run_id, finished)

        def act() -> Any:
            os.environ["CMTRACK_PREDICTIONS"] = setting
            pushed = push()
            return (
                "",
                [entry.reason for entry in pushed if entry.reason],
                [p for one in pushed for p in one.problems],
            )

        return act, lambda ended: delivered(
            bench, run_id, ended, {"auto": "all"}.get(setting, setting)
        )

    return prepared


# -- files of a person's own -----------------------------------------------------------------------------------------


def saving(rows: bool, over: bool) -> Callable[[Bench], tuple[Callable[[], Any], Check]]:
    def prepared(bench: Bench) -> tuple[Callable[[], Any], Check]:
        folder = bench.root / "out" / "saved"
        if over:
            SECOND.save(folder)

        def check(ended: Ended) -> str:
            try:
                found = Evaluation.load(folder)
            except (ValueError, FileNotFoundError) as error:
                if isinstance(error, ValueError):
                    return SAID
                return ELSE if over or is_done(ended) else NOTHING if ended.died else SAID
            if found == FIRST and (found.rows is not None) == rows:
                return WHOLE
            if found == SECOND and over and found.rows is not None and not is_done(ended):
                return NOTHING if ended.died else SAID  # what was there is there
            return SAID if is_error(ended) and found == FIRST and not rows else ELSE

        return lambda: str(FIRST.save(folder, rows=rows)), check

    return prepared


def is_error(ended: Ended) -> bool:
    return not ended.died and "Error" in str(ended.result)


def is_done(ended: Ended) -> bool:
    return not ended.died and not is_error(ended)


def bundling(bench: Bench) -> tuple[Callable[[], Any], Check]:
    path = bench.root / "out" / "review.zip"
    path.write_bytes(b"the one before")
    comparison, whole = bundled(bench)

    def check(ended: Ended) -> str:
        content = path.read_bytes()
        if content == whole:
            return WHOLE
        assert content == b"the one before", "a part of a bundle"
        return NOTHING if ended.died else SAID if is_error(ended) else ELSE

    return lambda: str(comparison.bundle(path)), check


@functools.cache
def bundled(bench: Bench) -> tuple[Comparison, bytes]:
    """A small comparison, and its bundle, which has the same bytes each time."""
    actual = [0, 1, 1, 0, 1, 0] * 5
    one, other = (evaluate(actual, [*wrong, *actual[len(wrong) :]]) for wrong in ([1], [1, 0]))
    comparison = compare({"one": one, "other": other}, rank_by="multiclass/accuracy")
    path = comparison.bundle(bench.root / "whole.zip")
    return comparison, path.read_bytes()


OPERATIONS: dict[str, Callable[[Bench], tuple[Callable[[], Any], Check]]] = {
    "log": logging,
    "push": pushing("auto"),
    "push under labels": pushing("labels"),
    "push under off": pushing("off"),
    "push of what was cut off": pushing("auto", finished=False),
    "save": saving(rows=True, over=False),
    "save over another": saving(rows=True, over=True),
    "save without rows over another": saving(rows=False, over=True),
    "bundle over another": bundling,
}


def once(bench: Bench, name: str, kind: str, at: int) -> tuple[str, Ended]:
    bench.emptied()
    act, check = OPERATIONS[name](bench)
    ended = with_file_fault(act, bench.root, kind, at)
    try:
        return check(ended), ended
    except Exception as error:
        return f"{ELSE}: {type(error).__name__}: {error}", ended


@pytest.mark.parametrize("name", OPERATIONS)
def test_whole_waiting_or_said_wherever_it_fails(bench: Bench, name: str) -> None:
    outcome, ended = once(bench, name, "EIO", 0)
    assert (outcome, ended.died) == (WHOLE, False), ended.result
    total = ended.operations
    assert total > 1
    cases = [(kind, at) for at in range(1, total + 1) for kind in FILE_FAULTS]
    if not ALL:
        cases = [
            (kind, 1 + place * total // len(FILE_FAULTS)) for place, kind in enumerate(FILE_FAULTS)
        ]
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in FILE_FAULTS}
    wrong = []
    for kind, at in cases:
        outcome, ended = once(bench, name, kind, at)
        counts[kind][outcome.split(":")[0]] += 1
        if outcome.startswith(ELSE):
            wrong.append((kind, at, ended.last, outcome, str(ended.result)[:300]))
    if ALL:
        print(
            f"TABLE {name}: {total} operations, {len(cases)} tried",
            {kind: dict(n) for kind, n in counts.items()},
        )
    assert wrong == []


def test_an_interrupt_leaves_an_evaluation_that_was_begun_and_says_where(bench: Bench) -> None:
    begun = False
    for at in itertools.count(1):
        bench.emptied()
        run_id = bench.new_run()
        ended = with_file_fault(lambda run_id=run_id: log(run_id), bench.root, INTERRUPTED, at)
        # it had fewer operations, or the evaluation is written
        if not ended.last or (not ALL and ROWS in ended.last):
            break
        begun |= "artifacts" in ended.last
        assert ended.result.startswith("KeyboardInterrupt")
        assert begun == ("is kept in" in ended.result), ended
        push()
        assert not begun or load_evaluation(run_id) == FIRST, ended
        assert not [entry for entry in waiting() if entry.kind == "evaluation"]
    assert begun
