"""Evaluations that arrive late, or in parts, do not mix with those that are in the run."""

from __future__ import annotations

import mlflow
import numpy as np
import pytest

from cmtrack import evaluate, load_evaluation, log_evaluation
from cmtrack.tracking import EvaluationWarning, deliver
from cmtrack.tracking.push import push

pytestmark = pytest.mark.usefixtures("undrawn", "store")

Y = np.arange(36) % 3
OLDER, NEWER = (evaluate(Y, np.where(np.arange(36) < wrong, (Y + 1) % 3, Y)) for wrong in (6, 12))


def refuse(*_: object) -> None:
    raise ConnectionError("the tracking server does not answer")


def test_an_evaluation_that_waited_does_not_take_the_place_of_a_newer_one():
    run_id = mlflow.MlflowClient().create_run("1").info.run_id
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliver, "probe", refuse)
        with pytest.warns(EvaluationWarning, match="does not answer"):
            log_evaluation(OLDER, run_id=run_id)
    log_evaluation(NEWER, run_id=run_id, strict=True)
    (pushed,) = push()
    assert pushed.status == "sent"
    assert pushed.problems == (f"run {run_id} holds a newer evaluation, which stays",)
    assert load_evaluation(run_id) == NEWER
    assert mlflow.get_run(run_id).data.metrics["multiclass/accuracy"] == NEWER.metrics["multiclass/accuracy"]
    assert push() == []


def test_metrics_of_an_evaluation_that_was_cut_off_are_named_where_another_one_takes_its_place():
    client = mlflow.MlflowClient()
    run_id = client.create_run("1").info.run_id
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cmtrack.tracking.send.datasets.log", refuse)
        with pytest.warns(EvaluationWarning, match="does not answer"):
            log_evaluation(OLDER, run_id=run_id, metrics=["multiclass/accuracy", "multiclass/f1_macro"])
    log_evaluation(NEWER, run_id=run_id, metrics=["multiclass/accuracy"], strict=True)
    run = client.get_run(run_id)
    assert run.data.tags["cmtrack.stale_metrics"] == "multiclass/f1_macro"
    assert load_evaluation(run_id) == NEWER
