"""XGBoost: ``EvaluationCallback`` for ``xgboost.train(callbacks=...)`` and ``XGBClassifier(callbacks=...)``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Unpack

from cmtrack_integrations._boosting import Boosting, Predictions, Rounds
from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import DataOptions, named

with needs("xgboost"):
    from xgboost import Booster, DMatrix, collective
    from xgboost.callback import TrainingCallback

_PROBABILITIES = ("binary:logistic", "reg:logistic", "multi:softprob")
_LABELS = ("multi:softmax", "binary:hinge")


class EvaluationCallback(Boosting, TrainingCallback):  # type: ignore[misc]
    """Callback that evaluates on a validation set at the end of the training, and every few rounds if asked.

    With early stopping the best iteration is what is evaluated at the end; the tag ``cmtrack.rounds`` says so
    (``"24 of 50, by early stopping"``). Wherever it is in the list of callbacks, and whether a run was opened by hand
    or by ``mlflow.xgboost.autolog()``: what is evaluated goes to the run that is active when the training starts.

    Parameters
    ----------
    X : xgboost.DMatrix, or features in any form that it takes
        The validation set. The weights of a DMatrix count unless ``sample_weight`` is given. Its groups are queries
        of a ranking and do not count as clusters: give ``groups`` for rows that belong together.
    y : array-like of shape (n,), optional
        Its labels; by default those of the DMatrix. Where ``labels`` are names, ``y`` may hold class numbers.
    every : int, optional
        Also log an evaluation each time after this number of rounds; the step is the number of rounds.
    predict : callable, optional
        ``predict(booster, dmatrix, iteration_range)`` gives probabilities, (n,) or (n, K); needed for objectives of
        your own, whose outputs are margins.
    **options
        Those of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``sample_weight``, ``groups``, ``row_ids``, ``segments``, ``run_id``, ``model_id``,
        ``prefix``, ``metrics``, ``predictions``, ``strict``, as in :func:`cmtrack.log_evaluation`.

    Attributes
    ----------
    logged : LoggedEvaluation or None
        What became of the last evaluation.
    rounds_used, rounds_trained : int
        Rounds of the model that was evaluated last, and rounds of the training.

    Notes
    -----
    Cost: that of :func:`cmtrack.log_evaluation`, and one prediction of the validation set; with ``every`` both for each
    such round.

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
    ...     model = xgboost.XGBClassifier(n_estimators=5, callbacks=[callback]).fit(X[:300], y[:300])
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
        self._data, self._y, self._own = X, y, predict
        self._before: tuple[int, str | None] = (0, None)

    def before_training(self, model: Any) -> Any:
        """Remember the active run and the rounds of an earlier training."""
        with self._hook.guarded():
            self._hook.begin()
            if isinstance(model, Booster):
                self._before = model.num_boosted_rounds(), model.attr("best_iteration")
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
        """Evaluate if due; never stops the training."""
        if collective.get_rank() == 0:
            self._hook.after_round(
                self._before[0] + epoch + 1, lambda rounds: self._predicted(model, rounds)
            )
        return False

    def after_training(self, model: Any) -> Any:
        """Evaluate the best iteration, or the whole model without early stopping."""
        if collective.get_rank() == 0:
            best = model.attr("best_iteration") if isinstance(model, Booster) else None
            used = self._hook.trained if best is None or best == self._before[1] else int(best) + 1
            self._hook.finish(used, lambda rounds: self._predicted(model, rounds))
        return model

    def _predicted(self, model: Any, rounds: int) -> Predictions:
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
        labels = self._hook.options.get("labels")
        weights = self._hook.weights(self._data.get_weight(), "the DMatrix")
        if self._own is not None:
            y_prob = self._own(model, self._data, (0, rounds))
        else:
            objective = json.loads(model.save_config())["learner"]["objective"]["name"]
            if objective not in (*_PROBABILITIES, *_LABELS):
                raise ValueError(
                    f"the outputs must be probabilities, got those of the objective {objective!r}: give predict=, a "
                    "function of (booster, dmatrix, iteration_range)"
                )
            y_prob = model.predict(self._data, iteration_range=(0, rounds))
            if objective in _LABELS:
                y_true, order = named(y, labels)
                return {
                    "y_true": y_true,
                    "y_pred": named(y_prob, labels)[0],
                    "labels": order,
                    **weights,
                }
        y_true, order = named(y, labels, y_prob)
        return {"y_true": y_true, "y_prob": y_prob, "labels": order, **weights}
