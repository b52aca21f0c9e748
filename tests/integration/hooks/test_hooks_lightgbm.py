"""The LightGBM callback on the real framework."""

from __future__ import annotations

import warnings

import mlflow
import numpy as np
import pytest

from cmtrack import evaluate, load_evaluation
from cmtrack.tracking import EvaluationWarning
from support.problems import learning_problem
from support.stores import runs_of

lgb = pytest.importorskip(
    "lightgbm", reason="needs pip install '.[lightgbm]'", exc_type=ImportError
)
from cmtrack_integrations.lightgbm import EvaluationCallback  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

QUIET = {
    "verbose": -1,
    "num_threads": 1,
    "min_data_in_leaf": 5,
    "learning_rate": 0.5,
    "deterministic": True,
}
MULTI = {**QUIET, "objective": "multiclass", "num_class": 3}
BINARY = {**QUIET, "objective": "binary"}


def test_rounds_are_steps_and_the_run_holds_the_models_own_predictions(store):
    x, y, x_val, y_val = learning_problem(3)
    callback = EvaluationCallback(x_val, y_val, every=3, strict=True)
    with mlflow.start_run() as run:
        model = lgb.train(MULTI, lgb.Dataset(x, y), 7, callbacks=[callback])
    history = store.get_metric_history(run.info.run_id, "multiclass/accuracy")
    assert [point.step for point in history] == [3, 6, 7]
    for point in history:
        p = model.predict(x_val, num_iteration=point.step)
        assert point.value == evaluate(y_val, y_prob=p).metrics["multiclass/accuracy"]
    assert load_evaluation(run.info.run_id) == evaluate(y_val, y_prob=model.predict(x_val))
    assert store.get_run(run.info.run_id).data.tags["cmtrack.rounds"] == "7 of 7"
    assert len(runs_of(store)) == 1


def test_the_best_iteration_is_what_is_evaluated_at_the_end(store):
    x, y, x_val, y_val = learning_problem(2)
    callback = EvaluationCallback(
        x_val, y_val, early_stopping=lgb.early_stopping(4, verbose=False), strict=True
    )
    with mlflow.start_run() as run:
        model = lgb.train(
            BINARY,
            lgb.Dataset(x, y),
            60,
            valid_sets=[lgb.Dataset(x_val, y_val)],
            callbacks=[callback],
        )
    assert callback.rounds_used == model.best_iteration == callback.rounds_trained - 4 < 56
    assert load_evaluation(run.info.run_id) == evaluate(y_val, y_prob=model.predict(x_val))
    tags = store.get_run(run.info.run_id).data.tags
    assert (
        tags["cmtrack.rounds"]
        == f"{model.best_iteration} of {model.best_iteration + 4}, by early stopping"
    )


def test_early_stopping_beside_the_callback_is_said_once_it_has_gone(store):
    x, y, x_val, y_val = learning_problem(2)
    for beside in ([lgb.early_stopping(4, verbose=False)], []):
        callback = EvaluationCallback(x_val, y_val, every=50)
        with mlflow.start_run():
            valid = [lgb.Dataset(x_val, y_val)]
            lgb.train(BINARY, lgb.Dataset(x, y), 3, valid_sets=valid, callbacks=[*beside, callback])
        assert (callback.logged is None) == bool(beside)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del callback
        told = [
            "give early_stopping= to EvaluationCallback" in str(warning.message)
            for warning in caught
        ]
        assert told == [True] * len(beside)


def test_the_wrapper_of_scikit_learn_with_labels_of_its_own(store):
    x, y, x_val, y_val = learning_problem(3)
    names = np.array(["c", "a", "b"])
    callback = EvaluationCallback(x_val, names[y_val], early_stopping=3, strict=True)
    model = lgb.LGBMClassifier(n_estimators=40, min_child_samples=5, n_jobs=1, verbose=-1)
    with mlflow.start_run() as run:
        model.fit(x, names[y], eval_set=[(x_val, names[y_val])], callbacks=[callback])
    assert callback.rounds_used == model.best_iteration_
    expected = evaluate(
        names[y_val], y_prob=model.booster_.predict(x_val), labels=list(model.classes_)
    )
    assert load_evaluation(run.info.run_id) == expected


def test_early_stopping_that_the_callback_cannot_see_is_told(store):
    x, y, x_val, y_val = learning_problem(2)
    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="give early_stopping= to the callback"),
    ):
        lgb.train(
            {**BINARY, "early_stopping_round": 2},
            lgb.Dataset(x, y),
            40,
            valid_sets=[lgb.Dataset(x_val, y_val)],
            callbacks=[EvaluationCallback(x_val, y_val)],
        )


def test_a_training_that_goes_on(store):
    x, y, x_val, y_val = learning_problem(2)
    first = lgb.train(BINARY, lgb.Dataset(x, y, free_raw_data=False), 5)
    callback = EvaluationCallback(x_val, y_val, strict=True)
    with mlflow.start_run() as run:
        model = lgb.train(
            BINARY,
            lgb.Dataset(x, y, free_raw_data=False),
            4,
            init_model=first,
            callbacks=[callback],
        )
    assert callback.rounds_used == model.current_iteration() == 9
    assert load_evaluation(run.info.run_id) == evaluate(y_val, y_prob=model.predict(x_val))


def test_what_fails_does_not_break_the_training_unless_strict(store):
    x, y, x_val, y_val = learning_problem(2)
    for given in ((x_val[:, :2], y_val), (x_val, y_val[:-1])):
        with mlflow.start_run(), pytest.warns(EvaluationWarning, match="failed"):
            model = lgb.train(
                BINARY, lgb.Dataset(x, y), 4, callbacks=[EvaluationCallback(*given, every=2)]
            )
        assert model.current_iteration() == 4
    with mlflow.start_run(), pytest.raises(ValueError, match="y_prob must have one row per label"):
        lgb.train(
            BINARY,
            lgb.Dataset(x, y),
            4,
            callbacks=[EvaluationCallback(x_val, y_val[:-1], strict=True)],
        )
    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="lightgbm.cv trains several models"),
    ):
        lgb.cv(BINARY, lgb.Dataset(x, y), 3, callbacks=[EvaluationCallback(x_val, y_val)])
    x, y, x_val, y_val = learning_problem(3)
    with (
        mlflow.start_run(),
        pytest.warns(EvaluationWarning, match="name all classes of the model with labels="),
    ):
        lgb.train(
            MULTI,
            lgb.Dataset(x, y),
            2,
            callbacks=[EvaluationCallback(x_val[y_val < 2], y_val[y_val < 2])],
        )
    assert not any(run.data.metrics for run in runs_of(store))


def test_without_a_run_it_is_kept_and_none_is_opened(store):
    x, y, x_val, y_val = learning_problem(2)
    callback = EvaluationCallback(x_val, y_val)
    with warnings.catch_warnings():
        # a warning that is an error does not break the training either
        warnings.simplefilter("error")
        lgb.train(BINARY, lgb.Dataset(x, y), 2, callbacks=[callback])
    assert callback.logged.status == "saved"
    assert runs_of(store) == []


def test_options_are_checked_before_the_training():
    with pytest.raises(TypeError, match="there is no option 'group'"):
        EvaluationCallback(None, None, group=1)
    with pytest.raises(ValueError, match="early_stopping must be a number of rounds"):
        EvaluationCallback(None, None, early_stopping=0)


def test_the_weights_of_a_dataset_count(store):
    x, y, x_val, y_val = learning_problem(2)
    weights = np.where(y_val == 1, 5.0, 1.0)
    train = lgb.Dataset(x, y)
    valid = lgb.Dataset(x_val, y_val, weight=weights, reference=train)
    callback = EvaluationCallback(x_val, valid, strict=True)
    with mlflow.start_run():
        model = lgb.train(BINARY, train, 3, valid_sets=[valid], callbacks=[callback])
    expected = evaluate(y_val, y_prob=model.predict(x_val), sample_weight=weights)
    assert callback.logged.evaluation == expected
