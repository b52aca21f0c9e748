"""Evaluated studies of the real Optuna."""

from __future__ import annotations

import math
import time

import mlflow
import numpy as np
import pytest

from cmtrack import evaluate, load_evaluation
from cmtrack.tracking import EvaluationWarning
from support.problems import random_labels, random_scores

optuna = pytest.importorskip("optuna", reason="needs pip install '.[optuna]'", exc_type=ImportError)
from cmtrack_integrations.optuna import EvaluatedTrials, compare_study, directions  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

optuna.logging.set_verbosity(optuna.logging.ERROR)
Y = random_labels(300, seed=3)


def scores(skill: float) -> np.ndarray:
    return random_scores(Y, 2 * skill, seed=4)


def sampled(*values: float):
    return optuna.samplers.GridSampler({"skill": list(values)}, seed=0)


def test_every_trial_has_a_run_under_the_parent_and_the_study_is_ranked(store):
    with mlflow.start_run() as parent:
        judge = EvaluatedTrials("binary/matthews_corrcoef", strict=True)
        study = judge.create_study(study_name='o\'clock "x"', sampler=sampled(0.1, 0.5, 2.0))
        study.optimize(
            lambda t: judge(t, Y, y_prob=scores(t.suggest_float("skill", 0, 3))),
            n_trials=3,
            n_jobs=2,
        )
        assert mlflow.active_run().info.run_id == parent.info.run_id
    assert study.best_params == {"skill": 2.0}
    found = {t.number: store.get_run(t.user_attrs["cmtrack_run_id"]) for t in study.trials}
    assert len(store.search_runs([parent.info.experiment_id])) == 4
    for number, run in found.items():
        trial = study.trials[number]
        expected = evaluate(Y, y_prob=scores(trial.params["skill"]))
        assert load_evaluation(run.info.run_id) == expected
        assert trial.value == expected.metrics["binary/matthews_corrcoef"]
        assert run.data.params == {"skill": str(trial.params["skill"])}
        assert run.data.tags["study"] == study.study_name
        assert run.data.tags["trial"] == str(number)
        assert run.data.tags["mlflow.parentRunId"] == parent.info.run_id
        assert run.info.status == "FINISHED"
        assert run.info.run_name == f"trial {number}"
    comparison = compare_study(study, require=["binary/roc_auc > 0.3"])
    assert comparison.best.name == f"trial {study.best_trial.number}"
    assert str(comparison.criterion) == "binary/matthews_corrcoef"


def test_directions_come_from_the_catalog_and_several_metrics_are_a_pareto_front(store):
    assert directions(["binary/fpr", "spcc/binary", "prevalence/bias"]) == [
        "minimize",
        "maximize",
        "minimize",
    ]
    judge = EvaluatedTrials(["binary/roc_auc", "prevalence/bias"], strict=True)
    study = judge.create_study(sampler=sampled(0.5, 1.0))
    study.optimize(lambda t: judge(t, Y, y_prob=scores(t.suggest_float("skill", 0, 3))), n_trials=2)
    for trial in study.trials:
        metrics = evaluate(Y, y_prob=scores(trial.params["skill"])).metrics
        assert trial.values == [metrics["binary/roc_auc"], abs(metrics["prevalence/bias"])]
    assert compare_study(study).criterion.pareto
    # no parent
    assert len(store.search_runs([store.get_experiment_by_name("e").experiment_id])) == 2


def test_a_trial_whose_evaluation_fails_is_failed_and_the_study_goes_on(store):
    judge = EvaluatedTrials("binary/roc_auc")
    study = judge.create_study(sampler=sampled(0.5, 1.0))

    def objective(trial):
        p = scores(trial.suggest_float("skill", 0, 3))
        return judge(trial, Y, y_prob=p[:-1] if trial.number == 0 else p)

    with pytest.warns(EvaluationWarning, match="y_prob must have one row per label"):
        study.optimize(objective, n_trials=2)
    assert [t.state.name for t in study.trials] == ["FAIL", "COMPLETE"]
    first = store.get_run(study.trials[0].user_attrs["cmtrack_run_id"])
    assert (first.info.status, first.data.metrics) == ("FAILED", {})
    assert compare_study(study).best.name == "trial 1"


def test_a_store_that_is_down_costs_no_trial(store, tmp_path):
    judge = EvaluatedTrials("binary/roc_auc")
    study = judge.create_study(sampler=sampled(0.5))
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    start = time.monotonic()
    with pytest.warns(EvaluationWarning, match="trial 0 has no run"):
        study.optimize(
            lambda t: judge(t, Y, y_prob=scores(t.suggest_float("skill", 0, 3))), n_trials=1
        )
    assert time.monotonic() - start < 30
    assert study.best_value == evaluate(Y, y_prob=scores(0.5)).metrics["binary/roc_auc"]
    assert len(list((tmp_path / "cmtrack_spool").iterdir())) == 1


def test_what_is_wrong_is_said(store):
    with pytest.raises(ValueError, match="there is no metric named 'binary/auc'"):
        EvaluatedTrials("binary/auc")
    with pytest.raises(ValueError, match="was evaluated by EvaluatedTrials"):
        compare_study(optuna.create_study())
    judge = EvaluatedTrials("binary/roc_auc")
    study = judge.create_study()
    with pytest.warns(EvaluationWarning, match="no metric 'binary/roc_auc'"):
        assert math.isnan(judge(study.ask(), Y, Y))
    with pytest.raises(ValueError, match="no metric 'binary/roc_auc'"):
        EvaluatedTrials("binary/roc_auc", strict=True)(study.ask(), Y, Y)
