"""Evaluations that arrive late, or in parts, do not mix with those that are in the run."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import mlflow
import numpy as np
import pytest

from cmtrack import Evaluation, evaluate, load_evaluation, log_evaluation
from cmtrack.tracking import EvaluationWarning
from support.faults import as_another_process, stay_in_this_thread, store_is_down
from support.stores import push, waiting

pytestmark = pytest.mark.usefixtures("undrawn", "store")

Y = np.arange(36) % 3
OLDER, NEWER = (evaluate(Y, np.where(np.arange(36) < wrong, (Y + 1) % 3, Y)) for wrong in (6, 12))


def refuse(*_: object, **__: object) -> None:
    raise ConnectionError("the tracking server does not answer")


@pytest.mark.slow
def test_an_evaluation_that_waited_does_not_take_the_place_of_a_newer_one():
    run_id = mlflow.MlflowClient().create_run("1").info.run_id
    wait_in_the_spool(OLDER, run_id)
    log_evaluation(NEWER, run_id=run_id, strict=True)
    (pushed,) = push()
    assert pushed.status == "kept"
    assert pushed.reason.startswith(
        f"run {run_id} holds an evaluation with a later time, which stays"
    )
    assert load_evaluation(run_id) == NEWER
    assert (
        mlflow.get_run(run_id).data.metrics["multiclass/accuracy"]
        == NEWER.metrics["multiclass/accuracy"]
    )
    # by its time it is older: what else it is nobody knows
    assert [one.status for one in push()] == ["kept"]


@pytest.mark.slow
def test_what_waited_does_not_take_the_place_of_an_evaluation_that_was_logged_once_more_meanwhile():
    client = mlflow.MlflowClient()
    run_id = client.create_run("1").info.run_id
    log_evaluation(NEWER, run_id=run_id, strict=True)
    assert "cmtrack.logged_again" not in client.get_run(run_id).data.tags
    wait_in_the_spool(OLDER, run_id)
    log_evaluation(NEWER, run_id=run_id, strict=True)
    (pushed,) = push()
    assert pushed.reason.startswith(
        f"run {run_id} holds an evaluation with a later time, which stays"
    )
    shutil.rmtree(pushed.entry)
    assert load_evaluation(run_id) == NEWER
    assert len(client.get_metric_history(run_id, "multiclass/accuracy")) == 1
    with pytest.warns(EvaluationWarning, match="which was replaced"):
        log_evaluation(OLDER, run_id=run_id, strict=True)
    assert load_evaluation(run_id) == OLDER
    assert "cmtrack.logged_again" not in client.get_run(run_id).data.tags


@pytest.mark.slow
def test_an_evaluation_that_is_logged_now_takes_the_place_of_one_whose_clock_was_ahead(monkeypatch):
    run_id = mlflow.MlflowClient().create_run("1").info.run_id
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 3600)
    log_evaluation(OLDER, run_id=run_id, strict=True)
    monkeypatch.setattr(time, "time", real)
    with pytest.warns(EvaluationWarning, match="which was replaced"):
        logged = log_evaluation(NEWER, run_id=run_id, strict=True)
    assert logged.problems == ()
    assert load_evaluation(run_id) == NEWER
    assert (
        mlflow.get_run(run_id).data.metrics["multiclass/accuracy"]
        == NEWER.metrics["multiclass/accuracy"]
    )


def test_metrics_of_an_evaluation_that_was_cut_off_are_named_where_another_one_takes_its_place():
    client = mlflow.MlflowClient()
    run_id = client.create_run("1").info.run_id
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_inputs", refuse)
        with pytest.warns(EvaluationWarning, match="does not answer"):
            log_evaluation(
                OLDER, run_id=run_id, metrics=["multiclass/accuracy", "multiclass/f1_macro"]
            )
    log_evaluation(NEWER, run_id=run_id, metrics=["multiclass/accuracy"], strict=True)
    run = client.get_run(run_id)
    assert run.data.tags["cmtrack.stale_metrics"] == "multiclass/f1_macro"
    assert load_evaluation(run_id) == NEWER


CALLS = ("get_run", "set_tag", "log_artifact", "log_batch", "log_inputs")


@contextlib.contextmanager
def in_the_middle(number: int, action: Callable[[], object]) -> Iterator[list[str]]:
    """Have another process do something before a call of the store, by its number; the calls are collected.

    Nothing waits, and nothing runs in a thread of its own: the other process has what it can get at that moment.
    """
    made: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        stay_in_this_thread(patch)

        def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
            def count_and_call(*args: Any, **options: Any) -> Any:
                made.append(name)
                if len(made) == number:
                    with as_another_process():
                        action()
                return call(*args, **options)

            return count_and_call

        for name in CALLS:
            patch.setattr(
                mlflow.MlflowClient, name, counted(name, getattr(mlflow.MlflowClient, name))
            )
        yield made


def wait_in_the_spool(evaluation: Evaluation, run_id: str) -> None:
    with store_is_down(), pytest.warns(EvaluationWarning, match="does not answer"):
        log_evaluation(evaluation, run_id=run_id)


@pytest.mark.slow
@pytest.mark.parametrize("another", ["a push", "a log"])
def test_two_evaluations_that_are_sent_to_one_place_at_once_do_not_mix(another):
    client = mlflow.MlflowClient()
    for number in itertools.count(1):
        run_id = client.create_run("1").info.run_id
        wait_in_the_spool(OLDER, run_id)
        if another == "a push":
            wait_in_the_spool(NEWER, run_id)

        def act(run_id: str = run_id) -> None:
            if another == "a push":
                push()
            else:
                with warnings.catch_warnings(record=True):
                    log_evaluation(NEWER, run_id=run_id)

        with in_the_middle(number, act) as made:
            push()
        if len(made) < number:
            break
        for one in push():  # the older one stays where it waits
            assert one.status == "sent" or "holds an evaluation with a later time" in one.reason
        assert load_evaluation(run_id) == NEWER, (number, made[number - 1])
        data = client.get_run(run_id).data
        assert data.metrics["multiclass/accuracy"] == NEWER.metrics["multiclass/accuracy"]
        assert data.tags["cmtrack.status"] == "completed"
        left = waiting()
        for entry in left:
            assert Evaluation.load(entry.path / "artifacts") == OLDER
            shutil.rmtree(entry.path)
    assert number > len(CALLS)
