"""XGBoost: ``EvaluationCallback`` for the callbacks of ``xgboost.train`` and ``XGBClassifier``."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any, Unpack

from cmtrack_integrations._boosting import Boosting, Predictions, Rounds
from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import DataOptions, name_classes

with needs("xgboost"):
    from xgboost import Booster, DMatrix, collective
    from xgboost.callback import TrainingCallback

_PROBABILITIES = ("binary:logistic", "reg:logistic", "multi:softprob")
_LABELS = ("multi:softmax", "binary:hinge")


class EvaluationCallback(Boosting, TrainingCallback):  # type: ignore[misc]
    """Callback that evaluates a model on a validation set at the end of training.

    If you set ``every``, the model is also evaluated at regular intervals during training.

    If you use early stopping, the best iteration is evaluated when training ends. The tag
    ``cmtrack.rounds`` contains the number of rounds used, such as ``"24 of 50, by early
    stopping"``. The evaluation is logged to the run that is active when training starts. You can
    start this run yourself or let ``mlflow.xgboost.autolog()`` start it. The callback's position in
    the list of callbacks does not matter.

    Parameters
    ----------
    X : xgboost.DMatrix, or features in any form that a DMatrix accepts
        The validation set. If the validation set is a DMatrix, its weights are used unless you pass
        ``sample_weight``. XGBoost uses a DMatrix's groups for ranking queries, so the evaluation
        does not use them as clusters. If the rows are clustered, pass their clusters as ``groups``.
    y : array-like of shape (n,), optional
        Labels of the rows; by default the labels in the DMatrix. If ``labels`` are names, ``y`` may
        contain class numbers.
    every : int, optional
        Number of rounds between evaluations during training. By default, only the final model is
        evaluated. The logged step is the number of rounds.
    predict : callable, optional
        Prediction function, which you need only for custom objectives, because models trained with
        them output margins. ``predict(booster, dmatrix, iteration_range)`` must return
        probabilities of shape (n,) or (n, K).
    **options
        Options of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``sample_weight``, ``groups``, ``row_ids``, ``segments``, ``run_id``, ``model_id``,
        ``prefix``, ``metrics``, ``predictions``, ``strict``, as in :func:`cmtrack.log_evaluation`.

    Attributes
    ----------
    logged : LoggedEvaluation or None
        Result of logging the most recent evaluation.
    rounds_used, rounds_trained : int
        The number of rounds that the last evaluated model uses, and the total number of training
        rounds.

    Notes
    -----
    The cost is one call of :func:`cmtrack.log_evaluation` and one prediction on the validation set.
    With ``every``, each additional evaluation adds the same cost again.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> import xgboost
    >>> from cmtrack_integrations.xgboost import EvaluationCallback
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> callback = EvaluationCallback(X[300:], y[300:])
    >>> with mlflow.start_run():
    ...     model = xgboost.XGBClassifier(n_estimators=5, callbacks=[callback])
    ...     model = model.fit(X[:300], y[:300])
    >>> callback.rounds_used, callback.logged.evaluation.metrics["binary/roc_auc"] > 0.9
    (5, True)
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        *,
        every: int | None = None,
        predict: Callable[[Any, Any, tuple[int, int]], Any] | None = None,
        **options: Unpack[DataOptions],
    ) -> None:
        super().__init__()
        self._hook = Rounds(every, options)
        self._data = X
        self._y = y
        self._predict = predict or _predict
        # If the training continues an earlier one, the model already has rounds and a best one.
        self._rounds_before = 0
        self._best_before: str | None = None

    def before_training(self, model: Any) -> Any:
        """Remember the active run, and the rounds for which the model was already trained."""
        with self._hook.guarded():
            self._hook.begin()
            if isinstance(model, Booster):
                self._rounds_before = model.num_boosted_rounds()
                self._best_before = model.attr("best_iteration")
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Evaluate the model if ``every`` requires it; return False so that training continues."""
        if collective.get_rank() == 0:
            trained = self._rounds_before + epoch + 1
            self._hook.after_round(trained, partial(self._predictions, model))
        return False

    def after_training(self, model: Any) -> Any:
        """Evaluate the best iteration or, if early stopping is not used, the whole model."""
        if collective.get_rank() == 0:
            used = self._hook.trained
            best = model.attr("best_iteration") if isinstance(model, Booster) else None
            # If the best iteration has not changed, it comes from an earlier training.
            if best is not None and best != self._best_before:
                used = int(best) + 1
            self._hook.finish(used, partial(self._predictions, model))
        return model

    def _predictions(self, model: Any, rounds: int) -> Predictions:
        """Predict with the first ``rounds`` rounds; return arguments for ``log_evaluation``."""
        if not isinstance(model, Booster):
            raise ValueError(
                "xgboost.cv trains several models at once: evaluate each with log_evaluation"
            )
        if not isinstance(self._data, DMatrix):
            self._data = DMatrix(self._data, label=None, enable_categorical=True)
        y = self._data.get_label() if self._y is None else self._y
        if not len(y):
            raise ValueError(
                "the validation set must have labels, got none: give y, or a DMatrix with label"
            )
        names = self._hook.options.get("labels")
        weights = self._hook.weights(self._data.get_weight(), "the DMatrix")
        output = self._predict(model, self._data, (0, rounds))
        if self._predict is _predict and _objective(model) in _LABELS:
            y_true, labels = name_classes(y, names)
            y_pred, _ = name_classes(output, names)
            return {"y_true": y_true, "y_pred": y_pred, "labels": labels, **weights}
        y_true, labels = name_classes(y, names, output)
        return {"y_true": y_true, "y_prob": output, "labels": labels, **weights}


def _predict(model: Any, data: Any, rounds: tuple[int, int]) -> Any:
    """Return probabilities or labels, depending on the model's objective.

    Raises
    ------
    ValueError
        If the outputs are neither probabilities nor labels.
    """
    objective = _objective(model)
    if objective not in (*_PROBABILITIES, *_LABELS):
        raise ValueError(
            "the outputs must be probabilities, got outputs of the objective "
            f"{objective!r}: give predict=, a function of (booster, dmatrix, iteration_range)"
        )
    return model.predict(data, iteration_range=rounds)


def _objective(model: Any) -> str:
    return str(json.loads(model.save_config())["learner"]["objective"]["name"])
