"""The CatBoost hook on the real framework."""

from __future__ import annotations

import mlflow
import numpy as np
import pytest

from cmtrack import evaluate, load_evaluation
from cmtrack.tracking import EvaluationWarning
from support.problems import learning_problem
from support.stores import runs_of

catboost = pytest.importorskip(
    "catboost", reason="needs pip install '.[catboost]'", exc_type=ImportError
)
from cmtrack_integrations.catboost import log_fitted  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

OPTIONS = {
    "depth": 3,
    "learning_rate": 0.5,
    "thread_count": 1,
    "verbose": False,
    "allow_writing_files": False,
    "random_seed": 0,
}


@pytest.mark.parametrize("names", [None, ["c", "a", "b"], [1, 2, 3]])
def test_stages_are_steps_and_the_run_holds_the_models_own_predictions(store, names):
    x, y, x_val, y_val = learning_problem(3)
    if names is not None:
        y, y_val = np.array(names)[y], np.array(names)[y_val]
    with mlflow.start_run() as run:
        model = catboost.CatBoostClassifier(iterations=7, **OPTIONS).fit(x, y)
        logged = log_fitted(model, x_val, y_val, every=3, strict=True)
    expected = evaluate(y_val, y_prob=model.predict_proba(x_val), labels=model.classes_.tolist())
    assert load_evaluation(run.info.run_id) == expected == logged.evaluation
    history = store.get_metric_history(run.info.run_id, "multiclass/accuracy")
    assert [point.step for point in history] == [3, 6, 7]
    for point in history:
        part = evaluate(
            y_val,
            y_prob=model.predict_proba(x_val, ntree_end=point.step),
            labels=model.classes_.tolist(),
        )
        assert point.value == part.metrics["multiclass/accuracy"]
    assert store.get_run(run.info.run_id).data.tags["cmtrack.rounds"] == "7 of 7"
    assert len(runs_of(store)) == 1


def test_the_best_iteration_is_what_is_evaluated(store):
    x, y, x_val, y_val = learning_problem(2)
    with mlflow.start_run() as run:
        model = catboost.CatBoostClassifier(iterations=80, early_stopping_rounds=5, **OPTIONS)
        model.fit(x, y, eval_set=(x_val, y_val))
        log_fitted(model, catboost.Pool(x_val, y_val), strict=True)
    best = model.get_best_iteration() + 1
    assert best < 75
    assert load_evaluation(run.info.run_id) == evaluate(y_val, y_prob=model.predict_proba(x_val))
    tags = store.get_run(run.info.run_id).data.tags
    assert tags["cmtrack.rounds"] == f"{best} of {best + 5}, by early stopping"


def test_texts_in_a_pool_and_the_plain_class(store):
    x, y, x_val, y_val = learning_problem(2)
    names = np.array(["no", "yes"])
    with mlflow.start_run() as run:
        model = catboost.CatBoost({"loss_function": "Logloss", "iterations": 4, **OPTIONS}).fit(
            x, names[y]
        )
        log_fitted(model, catboost.Pool(x_val, names[y_val]), strict=True)
    expected = evaluate(names[y_val], y_prob=model.predict(x_val, prediction_type="Probability"))
    assert load_evaluation(run.info.run_id) == expected


def test_what_fails_is_a_warning_unless_strict(store):
    x, y, x_val, y_val = learning_problem(2)
    model = catboost.CatBoostClassifier(iterations=2, **OPTIONS)
    with pytest.warns(EvaluationWarning, match="must be a fitted CatBoost model"):
        assert log_fitted(model, x_val, y_val) is None
    model.fit(x, y)
    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="y_prob must have one row per label"),
    ):
        assert log_fitted(model, x_val, y_val[:-1]).status == "failed"
    with mlflow.start_run(), pytest.warns(EvaluationWarning, match="must have labels"):
        assert log_fitted(model, x_val) is None
    with mlflow.start_run(), pytest.raises(ValueError, match="y_prob must have one row per label"):
        log_fitted(model, x_val, y_val[:-1], strict=True)
    with pytest.warns(EvaluationWarning, match="no run is active"):
        assert log_fitted(model, x_val, y_val).status == "saved"
    assert not any(run.data.metrics for run in runs_of(store))


def test_the_weights_of_a_pool_and_the_threshold_of_the_model_count(store):
    x, y, x_val, y_val = learning_problem(2)
    weights = np.where(y_val == 1, 5.0, 1.0)
    model = catboost.CatBoostClassifier(iterations=4, **OPTIONS).fit(x, y)
    model.set_probability_threshold(0.8)
    with mlflow.start_run():
        logged = log_fitted(model, catboost.Pool(x_val, y_val, weight=weights), strict=True)
    y_prob = model.predict_proba(x_val)
    expected = evaluate(
        y_val, model.predict(x_val), y_prob=y_prob, labels=[0, 1], sample_weight=weights
    )
    assert logged.evaluation.confusion_matrix == expected.confusion_matrix
    assert logged.evaluation.metrics["binary/roc_auc"] == expected.metrics["binary/roc_auc"]
