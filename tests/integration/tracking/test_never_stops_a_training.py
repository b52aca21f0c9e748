"""What people pass, and what their process does, neither stops a training nor loses an evaluation."""

from __future__ import annotations

import io
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
import warnings
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest
from mlflow import MlflowClient

from cmtrack import evaluate, load_evaluation, log_evaluation
from support.faults import store_is_down
from support.stores import push

pytestmark = pytest.mark.slow

Y = [0, 1] * 20


@pytest.fixture
def run_id(store: MlflowClient) -> str:
    return store.create_run(store.get_experiment_by_name("e").experiment_id).info.run_id


@pytest.mark.parametrize(
    "step", [np.int64(3), np.int32(3), np.uint8(3), 3], ids=lambda step: type(step).__name__
)
def test_whole_numbers_of_every_type_are_steps(run_id: str, step: Any) -> None:
    logged = log_evaluation(Y, Y, run_id=run_id, step=step, figures=False, strict=True)
    assert logged.status == "completed"
    (point,) = MlflowClient().get_metric_history(run_id, "multiclass/accuracy")
    assert (point.value, point.step) == (1.0, 3)


@pytest.mark.parametrize("step", [2.0, True, "3", 2**70], ids=str)
def test_what_is_no_step_is_refused_with_the_value_and_kept(run_id: str, step: Any) -> None:
    with pytest.warns(UserWarning, match="step must be a"):
        logged = log_evaluation(Y, Y, run_id=run_id, step=step, figures=False)
    assert (logged.status, logged.path.exists()) == ("saved", True)
    assert [pushed.status for pushed in push()] == ["sent"]
    assert load_evaluation(run_id) == evaluate(Y, Y)


@pytest.mark.parametrize("wrong", [12345, "../x", "a b"], ids=str)
def test_what_is_no_run_id_is_kept_for_an_experiment(store: MlflowClient, wrong: Any) -> None:
    with pytest.warns(UserWarning, match="run_id must be an id"):
        logged = log_evaluation(Y, Y, run_id=wrong, figures=False)
    assert (logged.status, logged.path.exists()) == ("saved", True)
    (pushed,) = push(experiment_name="e")
    assert pushed.status == "sent"
    assert load_evaluation(pushed.run_id) == evaluate(Y, Y)


def test_a_failed_evaluation_names_its_run_and_the_line_of_the_script(run_id: str) -> None:
    too_short = Y[:-1]
    failed = pytest.warns(UserWarning, match="the evaluation failed")
    with mlflow.start_run(run_id=run_id), failed as caught:
        logged = log_evaluation(Y, too_short)
    assert (logged.status, logged.run_id) == ("failed", run_id)
    assert [warning.filename for warning in caught] == [__file__]
    saved = pytest.warns(UserWarning, match="on_existing must be")
    with mlflow.start_run(run_id=run_id), saved as caught:
        logged = log_evaluation(Y, Y, on_existing="keep")
    assert (logged.status, logged.run_id) == ("saved", run_id)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_uuid_is_the_id_of_a_run(run_id: str) -> None:
    assert (
        log_evaluation(Y, Y, run_id=uuid.UUID(run_id), figures=False, strict=True).run_id == run_id
    )


def test_no_prefix_may_be_none_and_a_long_one_is_kept(run_id: str) -> None:
    assert (
        log_evaluation(Y, Y, run_id=run_id, prefix=None, figures=False, strict=True).status
        == "completed"
    )
    for length in (151, 230, 300):
        with pytest.warns(
            UserWarning, match=f"prefix must have at most 150 characters, got {length}"
        ):
            logged = log_evaluation(Y, Y, run_id=run_id, prefix="x" * length, figures=False)
        assert (logged.status, logged.path.exists()) == ("saved", True)
    assert {pushed.status for pushed in push(experiment_name="e")} == {"sent"}


def test_a_deleted_working_folder_does_not_matter(
    run_id: str, tmp_path: Path, monkeypatch: Any
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert log_evaluation(Y, Y, run_id=run_id, figures=False, strict=True).status == "completed"


class Failing(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise RuntimeError("the log server is down")


def test_a_logging_handler_that_raises_does_not_matter(run_id: str, monkeypatch: Any) -> None:
    log = logging.getLogger("cmtrack")
    monkeypatch.setattr(log, "handlers", [Failing()])
    monkeypatch.setattr(log, "level", logging.INFO)
    assert log_evaluation(Y, Y, run_id=run_id, figures=False, strict=True).status == "completed"


def raising(*_: Any, **__: Any) -> None:
    raise RuntimeError("no")


@pytest.mark.parametrize("stream", ["latin-1", "closed", "no write"])
@pytest.mark.parametrize("shown", [warnings.showwarning, raising], ids=["usual", "raising"])
def test_where_nothing_can_be_told_the_training_goes_on(
    store: MlflowClient, monkeypatch: Any, stream: str, shown: Any
) -> None:
    stderr: Any = io.TextIOWrapper(io.BytesIO(), "latin-1")
    if stream == "closed":
        stderr.close()
    if stream == "no write":
        stderr.write = raising
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(warnings, "showwarning", shown)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if shown is raising else "always")
        assert log_evaluation(Y, Y, run_id="\u2713/../", figures=False).status == "saved"


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("an error without a text")


class Labels:
    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise Odd


def test_an_error_without_a_text_is_told_by_its_type(run_id: str) -> None:
    with pytest.warns(UserWarning, match="the evaluation failed: Odd"):
        logged = log_evaluation(Labels(), [0, 1], run_id=run_id)
    assert (logged.status, logged.error) == ("failed", "Odd")


class TimeIsUp(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs an alarm")
def test_the_scripts_own_signal_handler_is_not_swallowed(run_id: str, monkeypatch: Any) -> None:
    def handler(*_: Any) -> None:
        raise TimeIsUp("the time limit of the job")

    real = MlflowClient.set_tag
    monkeypatch.setattr(
        MlflowClient, "set_tag", lambda *given, **more: (time.sleep(1.5), real(*given, **more))[1]
    )
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.7)
    try:
        with pytest.raises(TimeIsUp) as raised:
            log_evaluation(evaluate(Y, Y), run_id=run_id, figures=False)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert "cmtrack push" in raised.value.__notes__[0]
    for thread in threading.enumerate():  # what was begun goes on, and ends
        if thread.name == "cmtrack-send":
            thread.join(30)
    assert load_evaluation(run_id) == evaluate(Y, Y)


def test_a_silent_store_is_left_alone_after_two_failures(run_id: str) -> None:
    states = []
    with store_is_down() as asked:
        for step in range(4):
            with pytest.warns(
                UserWarning,
                match="does not answer"
                if step < 2
                else "two requests to the tracking store got no answer",
            ):
                states.append(log_evaluation(Y, Y, run_id=run_id, step=step, figures=False).status)
    assert (states, asked.call_count) == (["saved"] * 4, 2)
    # by hand it is asked at once, and has answered
    assert {pushed.status for pushed in push()} == {"sent"}
    assert (
        log_evaluation(Y, Y, run_id=run_id, step=4, figures=False, strict=True).status
        == "completed"
    )


FIRST_LOG = """
import sys, threading
import mlflow
from cmtrack import log_evaluation

def start(thread):
    if thread.name == "cmtrack-send":  # from here on the store is waited for
        print([name for name in ("sqlalchemy", "mlflow.store.tracking.sqlalchemy_store") if name not in sys.modules])
    begin(thread)

begin, threading.Thread.start = threading.Thread.start, start
mlflow.set_tracking_uri(sys.argv[1])
print(log_evaluation([0, 1] * 20, [0, 1] * 20, run_id=sys.argv[2], figures=False).status)
"""


def test_what_reaches_a_store_is_imported_before_the_patience_begins(run_id: str) -> None:
    """Else the first evaluation of a process on a busy machine stays in the spool."""
    command = [sys.executable, "-W", "ignore", "-c", FIRST_LOG, mlflow.get_tracking_uri(), run_id]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert result.stdout.splitlines() == ["[]", "completed"]


def test_a_misspelt_argument_keeps_arrays_that_can_be_read(run_id: str) -> None:
    with pytest.warns(UserWarning, match="did you mean 'y_prob'"):
        logged = log_evaluation(Y, y_probs=np.linspace(0, 1, 40), run_id=run_id)
    assert logged.status == "failed"
    assert np.load(os.fspath(logged.path / "inputs.npz"))["y_true"].tolist() == Y
    assert not mlflow.get_run(run_id).data.metrics
