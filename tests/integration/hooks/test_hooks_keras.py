"""The Keras callback on the real framework (any backend; the one with PyTorch where none is chosen)."""

from __future__ import annotations

import importlib.util
import os

import mlflow
import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import roc_auc_score

from cmtrack import Grouping, evaluate, load_evaluation
from cmtrack.tracking import EvaluationWarning
from support.problems import learning_problem
from support.stores import runs_of

if importlib.util.find_spec("tensorflow") is None and importlib.util.find_spec("torch") is not None:
    os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip(
    "keras", reason="needs pip install '.[keras]' and a backend", exc_type=ImportError
)
from cmtrack_integrations.keras import EvaluationCallback  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


def problem(classes: int = 3):
    x, y, x_val, y_val = learning_problem(classes, 160, held=60)
    return x.astype("float32"), y, x_val.astype("float32"), y_val


def model_of(classes: int = 3, activation="softmax", loss="sparse_categorical_crossentropy"):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(classes, activation=activation)]
    )
    model.compile(keras.optimizers.SGD(0.5), loss)
    return model


def test_epochs_are_steps_and_the_run_holds_the_models_own_predictions(store):
    x, y, x_val, y_val = problem()
    grouping = Grouping({"a": [0], "b": [1, 2]}, name="ab")
    model = model_of()
    callback = EvaluationCallback((x_val, y_val), every=2, grouping=grouping, strict=True)
    with mlflow.start_run() as run:
        model.fit(x, y, epochs=5, verbose=0, callbacks=[callback])
    expected = evaluate(y_val, y_prob=model.predict(x_val, verbose=0), grouping=grouping)
    assert load_evaluation(run.info.run_id) == expected == callback.logged.evaluation
    assert [p.step for p in store.get_metric_history(run.info.run_id, "multiclass/accuracy")] == [
        1,
        3,
        4,
    ]
    assert len(runs_of(store)) == 1


def test_early_stopping_that_restores_the_best_weights(store):
    x, y, x_val, y_val = problem()
    model = model_of()
    stop = keras.callbacks.EarlyStopping(
        monitor="loss", mode="max", patience=1, restore_best_weights=True
    )
    with mlflow.start_run() as run:
        model.fit(
            x,
            y,
            epochs=9,
            verbose=0,
            callbacks=[stop, EvaluationCallback((x_val, y_val), strict=True)],
        )
    assert load_evaluation(run.info.run_id) == evaluate(
        y_val, y_prob=model.predict(x_val, verbose=0)
    )


@pytest.mark.parametrize("one_hot", [False, True])
def test_names_one_hot_rows_and_weights(store, one_hot):
    x, y, x_val, y_val = problem()
    names = ["a", "b", "c"]
    weight = np.arange(60) % 3
    model = model_of()
    data = (x_val, np.eye(3)[y_val] if one_hot else y_val[:, None], weight)
    with mlflow.start_run() as run:
        model.fit(
            x,
            y,
            epochs=1,
            verbose=0,
            callbacks=[EvaluationCallback(data, labels=names, strict=True)],
        )
    expected = evaluate(
        np.array(names)[y_val],
        y_prob=model.predict(x_val, verbose=0),
        labels=names,
        sample_weight=weight,
    )
    assert load_evaluation(run.info.run_id) == expected


@pytest.mark.parametrize("activation", ["sigmoid", None])
def test_two_classes_and_logits(store, activation):
    x, y, x_val, y_val = problem(2)
    model = model_of(1, activation, keras.losses.BinaryCrossentropy(from_logits=activation is None))
    callback = EvaluationCallback((x_val, y_val), from_logits=activation is None, strict=True)
    with mlflow.start_run() as run:
        model.fit(x, y, epochs=2, verbose=0, callbacks=[callback])
    output = model.predict(x_val, verbose=0)[:, 0]
    if activation is None:
        output = expit(output.astype(np.float64))
    assert load_evaluation(run.info.run_id) == evaluate(y_val, y_prob=output)


@pytest.mark.parametrize("columns", [1, 2])
def test_confident_logits_keep_their_order(store, columns):
    x, y, x_val, y_val = problem(2)
    score = (x_val.sum(axis=1) + 25).astype("float32")
    logits = np.stack((np.zeros_like(score), score), 1)[:, -columns:]
    callback = EvaluationCallback(
        (x_val, y_val),
        from_logits=True,
        strict=True,
        predict=lambda model, rows: keras.ops.convert_to_tensor(logits),
    )
    with mlflow.start_run() as run:
        model_of(2).fit(x, y, epochs=1, verbose=0, callbacks=[callback])
    found = load_evaluation(run.info.run_id).metrics["binary/roc_auc"]
    assert found == pytest.approx(roc_auc_score(y_val, score), abs=1e-12)


def test_data_in_batches(store):
    x, y, x_val, y_val = problem()

    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 3

        def __getitem__(self, place):
            part = slice(place * 20, (place + 1) * 20)
            return x_val[part], y_val[part]

    for data in (Batches(), [(x_val[:30], y_val[:30]), (x_val[30:], y_val[30:])].__iter__()):
        model = model_of()
        with mlflow.start_run() as run:
            model.fit(x, y, epochs=1, verbose=0, callbacks=[EvaluationCallback(data, strict=True)])
        found = load_evaluation(run.info.run_id)
        expected = evaluate(y_val, y_prob=model.predict(x_val, verbose=0))
        assert found.labels_digest == expected.labels_digest
        assert found.metrics == pytest.approx(expected.metrics, nan_ok=True, abs=1e-5)


def test_what_fails_does_not_break_the_training_unless_strict(store):
    x, y, x_val, y_val = problem()
    for given in ((x_val, y_val[:-1]), (x_val[:, :2], y_val), (x_val,)):
        with mlflow.start_run(), pytest.warns(EvaluationWarning, match="failed"):
            history = model_of().fit(
                x, y, epochs=2, verbose=0, callbacks=[EvaluationCallback(given)]
            )
        assert len(history.epoch) == 2
    with mlflow.start_run(), pytest.raises(ValueError, match="y_prob must have one row per label"):
        model_of().fit(
            x,
            y,
            epochs=1,
            verbose=0,
            callbacks=[EvaluationCallback((x_val, y_val[:-1]), strict=True)],
        )
    assert not any(run.data.metrics for run in runs_of(store))
    callback = EvaluationCallback((x_val, y_val))
    with pytest.warns(EvaluationWarning, match="no run is active"):
        model_of().fit(x, y, epochs=1, verbose=0, callbacks=[callback])
    assert callback.logged.status == "saved"
    assert len(runs_of(store)) == 4
