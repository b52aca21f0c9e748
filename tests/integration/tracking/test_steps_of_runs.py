"""Evaluations of several steps in one run: MLflow's metrics and the files are of the highest step."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import mlflow
import numpy as np
import pytest
from click.testing import CliRunner

from cmtrack import Evaluation, compare, evaluate, load_evaluation, log_evaluation
from cmtrack.cli import main
from cmtrack.tracking import EvaluationWarning
from support.faults import make_pending_reports, store_is_down, wait_between_reports
from support.stores import push

pytestmark = pytest.mark.usefixtures("undrawn", "store")

ACCURACY = "multiclass/accuracy"
Y = np.arange(36) % 3
FIRST, SECOND, THIRD = (
    evaluate(Y, np.where(np.arange(36) < wrong, (Y + 1) % 3, Y)) for wrong in (12, 6, 3)
)
STAYS = "holds the evaluation of step {}, which stays"


@pytest.fixture
def run_id() -> str:
    return mlflow.MlflowClient().create_run("1").info.run_id


def shown(run_id: str) -> float:
    return mlflow.get_run(run_id).data.metrics[ACCURACY]


def assert_holds(run_id: str, evaluation: Evaluation) -> None:
    """What MLflow shows, what is loaded and what runs are compared and checked by are one evaluation."""
    expected = evaluation.metrics[ACCURACY]
    assert load_evaluation(run_id, rows=True) == evaluation
    assert shown(run_id) == expected
    [ranked] = compare([run_id], rank_by=ACCURACY).judged
    assert ranked.evaluation.metrics[ACCURACY] == expected


def history(run_id: str) -> list[tuple[int, float]]:
    points = mlflow.MlflowClient().get_metric_history(run_id, ACCURACY)
    return sorted((point.step, point.value) for point in points)


def wait_in_the_spool(evaluation: Evaluation, run_id: str, step: int | None) -> None:
    with store_is_down(), pytest.warns(EvaluationWarning, match="does not answer"):
        log_evaluation(evaluation, run_id=run_id, step=step)


@pytest.mark.slow
def test_steps_in_ascending_order_replace_each_other_without_a_warning(run_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step, evaluation in ((1, FIRST), (2, SECOND), (10, THIRD)):
            assert log_evaluation(evaluation, run_id=run_id, step=step, strict=True).problems == ()
            assert_holds(run_id, evaluation)


@pytest.mark.slow
def test_a_lower_step_logs_only_its_metrics(run_id):
    log_evaluation(SECOND, run_id=run_id, step=2, strict=True)
    files = {item.path for item in mlflow.MlflowClient().list_artifacts(run_id)}
    with pytest.warns(EvaluationWarning, match=STAYS.format(2)):
        logged = log_evaluation(FIRST, run_id=run_id, step=1, strict=True)
    assert (logged.status, logged.problems) == ("completed", (f"run {run_id} {STAYS.format(2)}",))
    assert_holds(run_id, SECOND)
    shown_run = CliRunner().invoke(main, ["show", run_id, "--json"])
    assert json.loads(shown_run.stdout)["metrics"][ACCURACY] == SECOND.metrics[ACCURACY]
    assert (
        CliRunner().invoke(main, ["gate", run_id, "--require", f"{ACCURACY} >= 0.8"]).exit_code == 0
    )
    assert (
        CliRunner().invoke(main, ["gate", run_id, "--require", f"{ACCURACY} <= 0.8"]).exit_code == 1
    )
    assert history(run_id) == [(1, FIRST.metrics[ACCURACY]), (2, SECOND.metrics[ACCURACY])]
    assert {item.path for item in mlflow.MlflowClient().list_artifacts(run_id)} == files


@pytest.mark.slow
def test_a_resumed_training_takes_its_place_once_it_reaches_the_highest_step(run_id):
    log_evaluation(FIRST, run_id=run_id, step=-1, strict=True)
    log_evaluation(SECOND, run_id=run_id, step=2, strict=True)
    with pytest.warns(EvaluationWarning, match=STAYS.format(2)):
        log_evaluation(THIRD, run_id=run_id, step=1, strict=True)
    assert_holds(run_id, SECOND)
    assert log_evaluation(THIRD, run_id=run_id, step=2, strict=True).problems == ()
    assert_holds(run_id, THIRD)
    log_evaluation(FIRST, run_id=run_id, step=3, strict=True)
    assert_holds(run_id, FIRST)


@pytest.mark.slow
def test_an_evaluation_without_a_step_is_logged_at_the_highest_step(run_id):
    log_evaluation(FIRST, run_id=run_id, step=2, strict=True)
    with pytest.warns(EvaluationWarning, match="which was replaced"):
        logged = log_evaluation(SECOND, run_id=run_id, strict=True)
    assert logged.problems == ()
    assert_holds(run_id, SECOND)
    assert {step for step, _ in history(run_id)} == {2}
    with pytest.warns(EvaluationWarning, match=STAYS.format(2)):
        log_evaluation(THIRD, run_id=run_id, step=1, strict=True)
    assert_holds(run_id, SECOND)


@pytest.mark.slow
def test_a_step_after_an_evaluation_without_one_takes_its_place(run_id):
    log_evaluation(FIRST, run_id=run_id, strict=True)
    assert "cmtrack.step" not in mlflow.get_run(run_id).data.tags
    log_evaluation(SECOND, run_id=run_id, step=0, strict=True)
    assert_holds(run_id, SECOND)
    log_evaluation(THIRD, run_id=run_id, step=4, strict=True)
    assert_holds(run_id, THIRD)
    assert mlflow.get_run(run_id).data.tags["cmtrack.step"] == "4"


def test_metrics_of_other_names_and_prefixes_have_steps_of_their_own(run_id):
    mlflow.MlflowClient().log_metric(run_id, "loss", 0.1, step=100)
    log_evaluation(FIRST, run_id=run_id, prefix="val", step=50, strict=True)
    log_evaluation(SECOND, run_id=run_id, step=2, metrics=["multiclass/f1_macro"], strict=True)
    with pytest.warns(EvaluationWarning, match=STAYS.format(2)):
        log_evaluation(THIRD, run_id=run_id, step=1, strict=True)
    assert load_evaluation(run_id) == SECOND
    assert load_evaluation(run_id, prefix="val") == FIRST


def test_a_run_of_an_earlier_version_has_no_tag_of_the_step(run_id):
    log_evaluation(SECOND, run_id=run_id, step=2, strict=True)
    mlflow.MlflowClient().delete_tag(run_id, "cmtrack.step")
    with pytest.warns(EvaluationWarning, match=STAYS.format(2)):
        log_evaluation(FIRST, run_id=run_id, step=1, strict=True)
    assert_holds(run_id, SECOND)


@pytest.mark.slow
def test_a_higher_step_that_waited_takes_the_place_of_a_lower_one(run_id):
    wait_in_the_spool(SECOND, run_id, 2)
    log_evaluation(FIRST, run_id=run_id, step=1, strict=True)
    [pushed] = push()
    assert (pushed.status, pushed.problems) == ("sent", ())
    assert_holds(run_id, SECOND)


def test_a_lower_step_that_waited_logs_only_its_metrics(run_id):
    wait_in_the_spool(FIRST, run_id, 1)
    log_evaluation(SECOND, run_id=run_id, step=2, strict=True)
    [pushed] = push()
    assert (pushed.status, pushed.problems) == ("sent", (f"run {run_id} {STAYS.format(2)}",))
    assert_holds(run_id, SECOND)
    assert len(history(run_id)) == 2


def gone(*_: object, **__: object) -> None:
    raise ConnectionError("gone")


@pytest.mark.slow
def test_a_higher_step_that_was_cut_off_is_named_until_it_is_pushed(run_id):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mlflow.MlflowClient, "log_inputs", gone)
        with pytest.warns(EvaluationWarning, match="gone"):
            log_evaluation(THIRD, run_id=run_id, step=5)
    for step, evaluation in ((3, FIRST), (4, SECOND)):
        with pytest.warns(EvaluationWarning, match="has metrics of step 5, but not its evaluation"):
            log_evaluation(evaluation, run_id=run_id, step=step, strict=True)
        assert load_evaluation(run_id) == evaluation
    assert [pushed.status for pushed in push()] == ["sent"]
    assert_holds(run_id, THIRD)


@pytest.mark.slow
def test_the_report_of_a_higher_step_is_made_although_a_lower_step_follows(run_id, monkeypatch):
    wait_between_reports(monkeypatch, 3600.0)
    for step, evaluation in ((1, FIRST), (3, THIRD)):
        log_evaluation(evaluation, run_id=run_id, step=step, figures="auto", strict=True)
    with pytest.warns(EvaluationWarning, match=STAYS.format(3)):
        log_evaluation(SECOND, run_id=run_id, step=2, figures="auto", strict=True)
    make_pending_reports()
    report = Path(
        mlflow.artifacts.download_artifacts(f"runs:/{run_id}/cmtrack_report.html")
    ).read_text("utf-8")
    assert f"{THIRD.metrics[ACCURACY]:.3f}" in report
    assert f"{FIRST.metrics[ACCURACY]:.3f}" not in report


def test_a_step_adds_the_dataset_only_if_the_run_lacks_it(run_id, monkeypatch):
    added = []
    real = mlflow.MlflowClient.log_inputs

    def counted(client, *args, **kwargs):
        added.append(args)
        return real(client, *args, **kwargs)

    monkeypatch.setattr(mlflow.MlflowClient, "log_inputs", counted)
    for step, evaluation in enumerate((FIRST, SECOND, THIRD)):
        log_evaluation(evaluation, run_id=run_id, step=step, strict=True)
    assert len(added) == 1
    other_rows = evaluate(Y[:30], Y[:30])
    log_evaluation(other_rows, run_id=run_id, step=3, strict=True)
    assert len(added) == 2
    assert_holds(run_id, other_rows)
