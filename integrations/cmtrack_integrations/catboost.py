"""CatBoost: ``log_fitted`` evaluates a model after ``fit``.

CatBoost passes the iteration and the losses to its callbacks, but neither the model nor its
predictions, so a callback cannot evaluate the model during training. After training, the fitted
model can still make predictions from only its first rounds, so ``log_fitted`` can evaluate every
earlier stage.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

import numpy as np

from cmtrack.evaluation.spec import unless_decided
from cmtrack.tracking import LoggedEvaluation
from cmtrack_integrations._boosting import Predictions, Rounds
from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import DataOptions, name_classes

with needs("catboost"):
    from catboost import CatBoost, Pool


def log_fitted(
    model: Any, X: Any, y: Any = None, *, every: int | None = None, **options: Unpack[DataOptions]
) -> LoggedEvaluation | None:
    """Evaluate a fitted model on a validation set, and log the evaluation to the active run.

    If you set ``every``, earlier stages of the model are also evaluated.

    The evaluation uses the same rounds as the model's ``predict``. After ``fit(eval_set=...)``, the
    model uses only the rounds up to the best iteration, unless ``use_best_model=False``. The tag
    ``cmtrack.rounds`` contains the number of rounds used, such as ``"24 of 50, by early
    stopping"``.

    If you have changed the model's threshold with ``set_probability_threshold``, the decisions at
    the new threshold are evaluated, unless you pass the option ``threshold``.

    Parameters
    ----------
    model : catboost.CatBoostClassifier or catboost.CatBoost
        A model that was fitted for classification.
    X : catboost.Pool, or features in any form that the model takes
        The validation set. If the validation set is a Pool, its weights are used unless you pass
        ``sample_weight``. CatBoost uses a Pool's group ids for ranking queries, so the evaluation
        does not use them as clusters. If the rows are clustered, pass their clusters as ``groups``.
    y : array-like of shape (n,), optional
        Labels of the rows; by default the labels in the Pool.
    every : int, optional
        Number of rounds between evaluated stages. By default, only the whole model is evaluated.
        The logged step is the number of rounds.
    **options
        Options of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``sample_weight``, ``groups``, ``row_ids``, ``segments``, ``run_id``, ``model_id``,
        ``prefix``, ``metrics``, ``predictions``, ``strict``, as in :func:`cmtrack.log_evaluation`.
        By default, ``labels`` are the model's classes.

    Returns
    -------
    LoggedEvaluation or None
        Result of logging the evaluation of the whole model; None if the prediction failed.

    Notes
    -----
    The cost is one call of :func:`cmtrack.log_evaluation` and one prediction on the validation set.
    With ``every``, each evaluated stage adds the same cost again.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> from catboost import CatBoostClassifier
    >>> from cmtrack_integrations.catboost import log_fitted
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> with mlflow.start_run():
    ...     model = CatBoostClassifier(iterations=5, verbose=0, allow_writing_files=False)
    ...     model = model.fit(X[:100], y[:100])
    ...     logged = log_fitted(model, X[100:], y[100:])
    >>> logged.status, logged.evaluation.metrics["binary/roc_auc"] > 0.9
    ('completed', True)
    """
    rounds = Rounds(every, options)
    with rounds.guarded():
        rounds.begin()
        if not isinstance(model, CatBoost) or not model.is_fitted():
            raise ValueError(f"model must be a fitted CatBoost model, got {type(model).__name__}")
        predict = _predictions(model, X, y, rounds)
        used = int(model.tree_count_)
        if every is not None:
            stages = model.staged_predict(X, prediction_type="Probability", eval_period=every)
            for stage, y_prob in enumerate(stages, 1):
                # The whole model is evaluated below, so it is skipped here.
                if stage * every < used:
                    rounds.after_round(stage * every, partial(predict, y_prob))
        losses = [
            values
            for losses_of_set in (model.get_evals_result() or {}).values()
            for values in losses_of_set.values()
        ]
        # The model contains only the rounds up to the best iteration. The losses cover all rounds.
        rounds.trained = max([used, *map(len, losses)])
        y_prob = model.predict(X, prediction_type="Probability")
        rounds.finish(used, partial(predict, y_prob))
    return rounds.logged


def _predictions(model: Any, X: Any, y: Any, rounds: Rounds) -> Callable[[Any, int], Predictions]:
    """Return a function that converts probabilities to arguments for ``log_evaluation``."""
    y_true = y
    weights: Predictions = {}
    if isinstance(X, Pool):
        weights = rounds.weights(_pool_weights(X), "the Pool")
        y_true = X.get_label() if y is None else y
    if y_true is None:
        raise ValueError(
            "the validation set must have labels, got none: give y, or a Pool with label"
        )
    classes = _classes(model)
    y_true, labels = name_classes(_like(y_true, classes), rounds.options.get("labels") or classes)
    decide = _decision(model, labels)

    def predict(y_prob: Any, used: int) -> Predictions:
        predictions = {"y_true": y_true, "labels": labels, "y_prob": y_prob, **weights}
        if decide is not None:
            predictions["y_pred"] = unless_decided(decide(y_prob), rounds.options)
        return predictions

    return predict


def _classes(model: Any) -> list[Any] | None:
    """Return the model's classes as plain Python values; None if the model stores no classes."""
    classes = getattr(model, "classes_", None)
    if classes is None or not len(classes):
        return None
    return [label.item() if hasattr(label, "item") else label for label in classes]


def _pool_weights(pool: Any) -> Any:
    """Return the weights in a Pool; None if all weights are 1, which is CatBoost's default."""
    weights = np.asarray(pool.get_weight())
    return None if (weights == 1).all() else weights


def _decision(model: Any, labels: Any) -> Callable[[Any], list[Any]] | None:
    """Return a function that applies the model's threshold; None if the threshold is 0.5."""
    classes = [0, 1] if labels is None else labels
    # Only CatBoostClassifier has a threshold.
    if len(classes) != 2 or not hasattr(model, "get_probability_threshold"):
        return None
    threshold = model.get_probability_threshold()
    if threshold == 0.5:
        return None

    def decide(y_prob: Any) -> list[Any]:
        # CatBoost predicts the second class only if the probability is above the threshold.
        is_positive = y_prob[:, 1] > threshold
        return [classes[1] if positive else classes[0] for positive in is_positive]

    return decide


def _like(y: Any, classes: list[Any] | None) -> Any:
    """Convert the labels of a Pool, which are strings, to the model's classes of the same name."""
    array = np.asarray(y)
    if classes is None or array.dtype.kind not in "OUS":
        return y
    if all(isinstance(label, str) for label in classes):
        return y
    class_by_text = {str(label): label for label in classes}
    return [class_by_text.get(str(value), value) for value in array.tolist()]
