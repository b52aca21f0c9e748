"""Evaluations that are logged, spooled, pushed, cut off and regrouped in any order: none lost, doubled or mixed.

A machine takes random steps, beside a dictionary of what each run should hold in the end: the newest evaluation of each
prefix, with its files, tags and metrics once. An older one that has waited stays in the spool until it is wanted.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings, strategies
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cmtrack import (
    Evaluation,
    Grouping,
    compare,
    evaluate,
    load_evaluation,
    log_evaluation,
    regroup_runs,
)
from cmtrack.evaluation import loads
from cmtrack.tracking import digests, quiet, tag, tracking_store
from support import ROOT
from support.faults import DIES, as_another_process, stay_in_this_thread, with_file_fault
from support.stores import Pushed, push, sqlite_store, waiting

pytestmark = pytest.mark.usefixtures("undrawn")

GOLDEN = ROOT / "tests" / "golden" / "0.1.0-1d9853f" / "spool" / "20261122T012540780945-125680ed"
GROUPING = Grouping({"low": [0, 1], "high": [2]}, name="two")
REGROUPED = "two/"
Y = np.arange(36) % 3
EVALUATIONS = [
    evaluate(
        Y,
        np.where(np.random.default_rng(seed).random(36) < 0.3, (Y + 1) % 3, Y),
        sections=["multiclass", "binary"],
    )
    for seed in range(6)
]
RUNS = 3
CALLS = (
    "get_run",
    "set_tag",
    "delete_tag",
    "log_artifact",
    "log_batch",
    "log_inputs",
    "list_artifacts",
    "log_image",
)
EXAMPLES, STEPS = (200, 50) if os.environ.get("CMTRACK_TEST_ALL") else (6, 30)

runs = strategies.integers(0, RUNS - 1)
prefixes = strategies.sampled_from(["", "val/"])
chosen = strategies.integers(0, len(EVALUATIONS) - 1)
"""An evaluation."""
moments = strategies.integers(0, 14)
"""Calls of the store after which something fails."""
operations = strategies.integers(1, 120)
"""File operations in the spool, at one of which a process dies."""


class Killed(BaseException):
    """The end of a process."""


class World:
    """A store that may be down, and a process that may die at one of its steps."""

    def __init__(self) -> None:
        self.up = True
        self.left: int | None = None
        """Calls of the store that are left before :attr:`fault`."""
        self.fault: Callable[[], object] = self.disconnect

    def ask(self) -> None:
        """Answer a call of the store, or fail."""
        if not self.up:
            self.disconnect()
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.fault()

    def disconnect(self) -> None:
        """What a store does that is down."""
        raise ConnectionError("the tracking server does not answer")

    def kill(self) -> None:
        """End the process."""
        raise Killed

    @contextlib.contextmanager
    def after(self, calls: int, fault: Callable[[], object]) -> Iterator[None]:
        """Have something happen at a call of the store."""
        self.left, self.fault = calls, fault
        try:
            yield
        finally:
            self.left = None

    def beside(self, action: Callable[[], object]) -> Callable[[], None]:
        """What another process does, once and whole, between two calls of this one."""

        def act() -> None:
            self.left = None
            with as_another_process():
                action()

        return act

    @contextlib.contextmanager
    def patched(self) -> Iterator[None]:
        """Give every call of a client a chance to fail."""
        with pytest.MonkeyPatch.context() as patch:

            def asked(call: Callable[..., Any]) -> Callable[..., Any]:
                def ask_and_call(*args: Any, **options: Any) -> Any:
                    self.ask()
                    return call(*args, **options)

                return ask_and_call

            for name in CALLS:
                patch.setattr(mlflow.MlflowClient, name, asked(getattr(mlflow.MlflowClient, name)))
            # no threads, and nobody waits: a step is the same each time
            stay_in_this_thread(patch)
            yield


class Tracking(RuleBasedStateMachine):
    """The store, the spool, and what they should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(next(FOLDERS))
        self.folder.mkdir()
        self.world = World()
        self.open = contextlib.ExitStack()
        patch = self.open.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("CMTRACK_SPOOL", str(self.folder / "spool"))
        patch.setenv("CMTRACK_CACHE", str(self.folder / "cache"))
        patch.setenv("XDG_DATA_HOME", str(self.folder / "data"))
        patch.chdir(self.folder)
        self.open.enter_context(quiet())
        self.open.enter_context(tracking_store(sqlite_store(self.folder / "mlflow.db")))
        self.client = mlflow.MlflowClient()
        self.place = self.client.create_experiment(
            "e", artifact_location=(self.folder / "artifacts").as_uri()
        )
        self.runs = [self.client.create_run(self.place).info.run_id for _ in range(RUNS)]
        self.expected: dict[tuple[int, str], Evaluation] = {}
        self.cut_off = 0
        """Entries without a whole evaluation, which no push can send."""
        self.reviews = 0
        self.numbers = itertools.count()
        self.open.enter_context(self.world.patched())

    # -- steps ---------------------------------------------------------------------------------------------------------

    def log(self, run: int, prefix: str, evaluation: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            log_evaluation(EVALUATIONS[evaluation], run_id=self.runs[run], prefix=prefix)

    @initialize(evaluations=strategies.lists(chosen, min_size=RUNS, max_size=RUNS))
    def begin(self, evaluations: list[int]) -> None:
        """Each run has an evaluation."""
        for run, evaluation in enumerate(evaluations):
            self.log_one(run, "", evaluation)

    @rule(run=runs, prefix=prefixes, evaluation=chosen)
    def log_one(self, run: int, prefix: str, evaluation: int) -> None:
        """Log, also in the place of an evaluation that is there, or waits."""
        self.log(run, prefix, evaluation)
        self.expected[run, prefix] = EVALUATIONS[evaluation]

    @rule(run=runs, evaluation=chosen, calls=moments)
    def lose_the_store(self, run: int, evaluation: int, calls: int) -> None:
        """Log to a store that goes down meanwhile."""
        with self.world.after(calls, self.world.disconnect):
            self.log_one(run, "", evaluation)

    @rule(run=runs, prefix=prefixes, evaluation=chosen, calls=moments)
    def die_while_sending(self, run: int, prefix: str, evaluation: int, calls: int) -> None:
        """Log, and be killed while it is sent."""
        with self.world.after(calls, self.world.kill), contextlib.suppress(Killed):
            self.log(run, prefix, evaluation)
        self.expected[run, prefix] = EVALUATIONS[evaluation]

    @rule(run=runs, prefix=prefixes, evaluation=chosen, at=operations)
    def die_while_writing(self, run: int, prefix: str, evaluation: int, at: int) -> None:
        """Log while the store is down, and be killed at a file operation: what is written whole can be pushed."""
        before = {entry.name for entry in self.spooled()}
        up, self.world.up = self.world.up, False
        with_file_fault(lambda: self.log(run, prefix, evaluation), self.folder / "spool", DIES, at)
        self.world.up = up
        for entry in self.spooled():
            if entry.name not in before:
                file = prefix.replace("/", "_") + "cmtrack_evaluation.json"
                try:
                    written = Evaluation.load(entry / "artifacts" / file)
                except (OSError, ValueError):
                    self.cut_off += (entry / "entry.json").is_file()
                else:
                    assert written == EVALUATIONS[evaluation]
                    self.expected[run, prefix] = written

    def spooled(self) -> list[Path]:
        """What the spool holds: entries, and what became none."""
        return [path for path in (self.folder / "spool").glob("*") if path.is_dir()]

    @rule()
    def push_all(self) -> None:
        """Send what waits."""
        push()

    @rule(calls=moments)
    def die_while_pushing(self, calls: int) -> None:
        """Be killed while sending what waits."""
        with self.world.after(calls, self.world.kill), contextlib.suppress(Killed):
            push()

    @rule(calls=moments)
    def push_twice_at_once(self, calls: int) -> None:
        """Send what waits while another process does so, too."""
        with self.world.after(calls, self.world.beside(push)):
            push()

    @rule(run=runs, prefix=prefixes, older=chosen, newer=chosen, calls=moments)
    def log_beside_a_push(self, run: int, prefix: str, older: int, newer: int, calls: int) -> None:
        """Log while another process sends what waits for the same place."""
        up, self.world.up = self.world.up, False
        self.log_one(run, prefix, older)
        self.world.up = up
        with self.world.after(calls, self.world.beside(lambda: self.log_one(run, prefix, newer))):
            push()

    @rule(run=runs, prefix=prefixes, evaluation=chosen, calls=moments)
    def push_beside_a_log(self, run: int, prefix: str, evaluation: int, calls: int) -> None:
        """Send what waits while another process logs, perhaps to the same place."""
        with self.world.after(calls, self.world.beside(push)):
            self.log_one(run, prefix, evaluation)

    @rule()
    def go_down_or_up(self) -> None:
        """The store ends, or begins, to answer."""
        self.world.up = not self.world.up

    @rule(run=runs)
    def find_an_entry_of_an_earlier_version(self, run: int) -> None:
        """An entry of an earlier schema lies in the spool, older than all others."""
        folder = self.folder / "spool" / f"20000101T000000{next(self.numbers):06d}-00000000"
        shutil.copytree(GOLDEN, folder)
        about = json.loads((folder / "manifest.json").read_text())
        about |= {
            "run_id": self.runs[run],
            "step": None,
            "tracking_uri": mlflow.get_tracking_uri(),
            "timestamp": 1,
        }
        (folder / "manifest.json").write_text(json.dumps(about))
        text = (folder / "artifacts" / "val_cmtrack_evaluation.json").read_text()
        self.expected.setdefault((run, "val/"), loads(text))

    @precondition(lambda self: self.world.up)
    @rule(run=runs)
    def regroup(self, run: int) -> None:
        """Judge what a run holds by groups."""
        (done,) = regroup_runs([self.runs[run]], GROUPING, prefix=REGROUPED, figures=False)
        if done.status != "left out":
            self.expected[run, REGROUPED] = load_evaluation(self.runs[run]).regroup(GROUPING)

    @precondition(lambda self: self.world.up and self.reviews < 2)
    @rule()
    def review(self) -> None:
        """Compare the runs that hold an evaluation, and log the review."""
        complete = [
            run
            for run in self.runs
            if self.client.get_run(run).data.tags.get("cmtrack.status") == "completed"
        ]
        if not complete:
            return
        logged = compare(complete, rank_by="multiclass/accuracy").log()
        self.reviews += 1
        for run in logged.tagged_runs:
            assert self.client.get_run(run).data.tags["cmtrack.review"] == logged.run_id

    # -- the end -------------------------------------------------------------------------------------------------------

    def teardown(self) -> None:
        """Send all, and hold the store to the dictionary."""
        try:
            self.world.up = True
            push()
            # an older one may have met an evaluation that a later one has replaced since
            done = push()
            older = [one for one in done if one.status == "kept"]
            assert {one.status for one in done} <= {"sent", "refused", "kept"}, done
            assert len(waiting()) == self.cut_off + len(older), done
            for one in older:
                self.check_older(one)
            for (run, prefix), evaluation in self.expected.items():
                self.check(run, prefix, evaluation)
            for place, run_id in enumerate(self.runs):
                tags = self.client.get_run(run_id).data.tags
                held = {
                    prefix for prefix in ("", "val/", REGROUPED) if tag("status", prefix) in tags
                }
                assert held == {prefix for run, prefix in self.expected if run == place}
            assert "kept" not in {one.status for one in push(replace_newer=True)}
            assert len(waiting()) == self.cut_off
        finally:
            self.open.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def check(self, run: int, prefix: str, evaluation: Evaluation) -> None:
        """One evaluation is whole and alone: its file, digest, tags and metrics, each once."""
        run_id = self.runs[run]
        assert load_evaluation(run_id, prefix=prefix) == evaluation
        data = self.client.get_run(run_id).data
        assert data.tags[tag("status", prefix)] == "completed"
        assert data.tags[tag("samples", prefix)] == str(evaluation.n_samples)
        ours = {
            name.removeprefix(prefix): name
            for name in data.metrics
            if self.prefix_of(name) == prefix
        }
        assert "multiclass/accuracy" in ours
        stale = set(data.tags.get(tag("stale_metrics", prefix), "").split(", "))
        for name, full in ours.items():
            if full not in stale:
                assert data.metrics[full] == pytest.approx(evaluation.metrics[name]), full
            points = [
                (point.timestamp, point.step)
                for point in self.client.get_metric_history(run_id, full)
            ]
            assert len(points) == len(set(points)), full
        tables = json.loads(data.tags["mlflow.loggedArtifacts"])
        assert len(tables) == len({table["path"] for table in tables})

    def check_older(self, entry: Pushed) -> None:
        """Only an evaluation in whose place the run holds a later one, or one with fewer files, stays in the spool."""
        assert "holds an evaluation with a later time, which stays" in entry.reason, entry
        files = (entry.entry / name for name in ("entry.json", "manifest.json"))
        file = next(path for path in files if path.exists())
        older = json.loads(file.read_text(encoding="utf-8"))
        run_id, prefix = older["run_id"], older["prefix"]
        file = prefix.replace("/", "_") + "cmtrack_evaluation.json"
        evaluation = loads((entry.entry / "artifacts" / file).read_text(encoding="utf-8"))
        held = digests(self.client.get_run(run_id).data.tags, prefix)
        # such as rows
        has_more = not digests(older["tags"], prefix).items() <= held.items()
        is_another = evaluation != self.expected[self.runs.index(run_id), prefix]
        assert is_another or has_more

    @staticmethod
    def prefix_of(name: str) -> str:
        """The prefix of a metric."""
        return next((prefix for prefix in ("val/", REGROUPED) if name.startswith(prefix)), "")


FOLDERS: Iterator[str] = iter(())


@pytest.mark.slow
def test_no_order_of_steps_loses_doubles_or_mixes_an_evaluation(tmp_path):
    global FOLDERS
    FOLDERS = (str(tmp_path / f"{number}") for number in itertools.count())
    run_state_machine_as_test(
        Tracking,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[
                Phase.generate
            ],  # what fails is told as it is: to make it small would take minutes
        ),
    )
