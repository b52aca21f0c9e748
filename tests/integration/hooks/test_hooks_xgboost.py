"""The XGBoost callback on the real framework."""

from __future__ import annotations

import warnings

import mlflow
import numpy as np
import pytest

from cmtrack import Grouping, evaluate, load_evaluation
from cmtrack.tracking import EvaluationWarning
from support.problems import learning_problem
from support.stores import runs_of

xgb = pytest.importorskip("xgboost", reason="needs pip install '.[xgboost]'", exc_type=ImportError)
from cmtrack_integrations.xgboost import EvaluationCallback  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

MULTI = {"objective": "multi:softprob", "num_class": 3, "max_depth": 2, "nthread": 1, "eta": 0.5}
BINARY = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1, "eta": 0.5}


def steps(client, run_id, name="multiclass/accuracy"):
    return [point.step for point in client.get_metric_history(run_id, name)]


@pytest.mark.parametrize("classes", [2, 3])
def test_the_run_holds_the_evaluation_of_the_models_own_predictions(store, classes):
    x, y, x_val, y_val = learning_problem(classes)
    grouping = Grouping({"low": [0], "rest": list(range(1, classes))}, name="level")
    callback = EvaluationCallback(x_val, y_val, grouping=grouping, strict=True)
    with mlflow.start_run() as run:
        model = xgb.train(
            MULTI if classes == 3 else BINARY, xgb.DMatrix(x, y), 5, callbacks=[callback]
        )
    expected = evaluate(y_val, y_prob=model.predict(xgb.DMatrix(x_val)), grouping=grouping)
    assert load_evaluation(run.info.run_id) == expected == callback.logged.evaluation
    assert store.get_run(run.info.run_id).data.tags["cmtrack.rounds"] == "5 of 5"
    assert steps(store, run.info.run_id) == [0]
    assert len(runs_of(store)) == 1


def test_rounds_are_steps(store):
    x, y, x_val, y_val = learning_problem(3)
    with mlflow.start_run() as run:
        model = xgb.train(
            MULTI,
            xgb.DMatrix(x, y),
            7,
            callbacks=[EvaluationCallback(xgb.DMatrix(x_val, y_val), every=3, strict=True)],
        )
    history = store.get_metric_history(run.info.run_id, "multiclass/accuracy")
    assert [point.step for point in history] == [3, 6, 7]
    for point in history:
        p = model.predict(xgb.DMatrix(x_val), iteration_range=(0, point.step))
        assert point.value == evaluate(y_val, y_prob=p).metrics["multiclass/accuracy"]


@pytest.mark.parametrize("save_best", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_the_best_iteration_is_what_is_evaluated_at_the_end(store, save_best, first):
    x, y, x_val, y_val = learning_problem(2)
    callback = EvaluationCallback(x_val, y_val, every=4, strict=True)
    stop = xgb.callback.EarlyStopping(rounds=3, save_best=save_best)
    valid = xgb.DMatrix(x_val, y_val)
    with mlflow.start_run() as run:
        model = xgb.train(
            {**BINARY, "max_depth": 6},
            xgb.DMatrix(x, y),
            60,
            evals=[(valid, "valid")],
            callbacks=[callback, stop] if first else [stop, callback],
            verbose_eval=False,
        )
    used = model.best_iteration + 1
    assert used < callback.rounds_trained < 60
    assert callback.rounds_used == used
    expected = evaluate(y_val, y_prob=model.predict(valid, iteration_range=(0, used)))
    assert load_evaluation(run.info.run_id) == expected
    data = store.get_run(run.info.run_id).data
    assert data.tags["cmtrack.rounds"] == f"{used} of {callback.rounds_trained}, by early stopping"
    assert data.metrics["binary/roc_auc"] == expected.metrics["binary/roc_auc"]
    assert steps(store, run.info.run_id)[-1] == callback.rounds_trained


@pytest.mark.parametrize("classes", [2, 3])
def test_the_wrapper_of_scikit_learn(store, classes):
    x, y, x_val, y_val = learning_problem(classes)
    names = ["red", "green", "blue"][:classes]
    callback = EvaluationCallback(x_val, y_val, labels=names, strict=True)
    model = xgb.XGBClassifier(
        n_estimators=30, max_depth=5, n_jobs=1, early_stopping_rounds=2, callbacks=[callback]
    )
    with mlflow.start_run() as run:
        model.fit(x, y, eval_set=[(x_val, y_val)], verbose=False)
    p = model.predict_proba(x_val) if classes > 2 else model.predict_proba(x_val)[:, 1]
    expected = evaluate(np.array(names)[y_val], y_prob=p, labels=names)
    assert load_evaluation(run.info.run_id) == expected
    assert callback.rounds_used == model.best_iteration + 1


def test_a_training_that_goes_on_from_a_stopped_one(store):
    x, y, x_val, y_val = learning_problem(2)
    train, valid = xgb.DMatrix(x, y), xgb.DMatrix(x_val, y_val)
    first = xgb.train(
        {**BINARY, "max_depth": 6},
        train,
        60,
        evals=[(valid, "v")],
        early_stopping_rounds=2,
        verbose_eval=False,
    )
    callback = EvaluationCallback(valid, strict=True)
    with mlflow.start_run() as run:
        model = xgb.train(BINARY, train, 4, xgb_model=first, callbacks=[callback])
    assert callback.rounds_used == model.num_boosted_rounds()
    assert load_evaluation(run.info.run_id) == evaluate(y_val, y_prob=model.predict(valid))


def test_labels_only_and_margins(store):
    x, y, x_val, y_val = learning_problem(3)
    with mlflow.start_run() as run:
        model = xgb.train(
            {**MULTI, "objective": "multi:softmax"},
            xgb.DMatrix(x, y),
            3,
            callbacks=[EvaluationCallback(x_val, y_val, strict=True)],
        )
    assert load_evaluation(run.info.run_id) == evaluate(
        y_val, model.predict(xgb.DMatrix(x_val)).astype(int)
    )
    own = {
        "predict": lambda booster, data, rounds: (
            1 / (1 + np.exp(-booster.predict(data, iteration_range=rounds)))
        )
    }
    x, y, x_val, y_val = learning_problem(2)
    for options in ({}, own):
        callback = EvaluationCallback(x_val, y_val, **options)
        with mlflow.start_run(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = xgb.train(
                {**BINARY, "objective": "binary:logitraw"},
                xgb.DMatrix(x, y),
                3,
                callbacks=[callback],
            )
        assert model.num_boosted_rounds() == 3
        told = [str(w.message) for w in caught if issubclass(w.category, EvaluationWarning)]
        assert bool(callback.logged) == bool(options)
        assert any("give predict=" in text for text in told) is not bool(options)


def test_what_fails_does_not_break_the_training_unless_strict(store):
    x, y, x_val, y_val = learning_problem(2)
    for given in ((["no", "features"], y_val), (x_val, y_val[:-1]), (x_val,)):
        with mlflow.start_run(), pytest.warns(EvaluationWarning, match="failed"):
            model = xgb.train(
                BINARY, xgb.DMatrix(x, y), 4, callbacks=[EvaluationCallback(*given, every=2)]
            )
        assert model.num_boosted_rounds() == 4
    with mlflow.start_run(), pytest.raises(ValueError, match="y_prob must have one row per label"):
        xgb.train(
            BINARY,
            xgb.DMatrix(x, y),
            4,
            callbacks=[EvaluationCallback(x_val, y_val[:-1], strict=True)],
        )
    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="xgboost.cv trains several models"),
    ):
        xgb.cv(BINARY, xgb.DMatrix(x, y), 3, callbacks=[EvaluationCallback(x_val, y_val)])
    assert not any(run.data.metrics for run in runs_of(store))


def test_without_a_run_it_is_kept_and_none_is_opened(store, tmp_path):
    x, y, x_val, y_val = learning_problem(2)
    callback = EvaluationCallback(x_val, y_val)
    with pytest.warns(EvaluationWarning, match="no run is active"):
        xgb.train(BINARY, xgb.DMatrix(x, y), 2, callbacks=[callback])
    assert callback.logged.status == "saved"
    assert runs_of(store) == []


def test_beside_mlflows_autolog(store):
    x, y, x_val, y_val = learning_problem(3)
    callback = EvaluationCallback(x_val, y_val, strict=True)
    mlflow.xgboost.autolog(log_models=False)
    try:
        xgb.train(MULTI, xgb.DMatrix(x, y), 3, callbacks=[callback])
    finally:
        mlflow.xgboost.autolog(disable=True)
    (run,) = runs_of(store)
    assert run.info.run_id == callback.logged.run_id
    assert run.info.status == "FINISHED"
    assert (
        run.data.metrics["multiclass/accuracy"]
        == callback.logged.evaluation.metrics["multiclass/accuracy"]
    )


def test_options_are_checked_before_the_training():
    with pytest.raises(TypeError, match="there is no option 'group'"):
        EvaluationCallback(None, None, group=1)
    with pytest.raises(ValueError, match="every must be a whole number of at least 1"):
        EvaluationCallback(None, None, every=0)
    with pytest.raises(ValueError, match="prefix must"):
        EvaluationCallback(None, None, prefix="../x")


def test_the_weights_of_a_dmatrix_count(store):
    x, y, x_val, y_val = learning_problem(2)
    weights = np.where(y_val == 1, 5.0, 1.0)
    callback = EvaluationCallback(xgb.DMatrix(x_val, y_val, weight=weights), strict=True)
    with mlflow.start_run():
        model = xgb.train(BINARY, xgb.DMatrix(x, y), 3, callbacks=[callback])
    expected = evaluate(y_val, y_prob=model.predict(xgb.DMatrix(x_val)), sample_weight=weights)
    assert callback.logged.evaluation == expected


def test_other_weights_than_those_of_the_dmatrix_come_first_with_a_warning(store):
    x, y, x_val, y_val = learning_problem(2)
    valid = xgb.DMatrix(x_val, y_val, weight=np.full(len(y_val), 2.0))
    callback = EvaluationCallback(valid, sample_weight=np.full(len(y_val), 3.0), strict=True)
    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="differs from the weights of the DMatrix"),
    ):
        xgb.train(BINARY, xgb.DMatrix(x, y), 3, callbacks=[callback])
    assert callback.logged.evaluation.n_samples == 3 * len(y_val)
