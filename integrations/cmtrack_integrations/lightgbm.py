"""LightGBM: ``EvaluationCallback`` for the callbacks of ``train`` and ``LGBMClassifier.fit``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Unpack
from weakref import finalize

from cmtrack.tracking._warn import tell
from cmtrack_integrations._boosting import Boosting, Predictions, Rounds
from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import DataOptions, name_classes

with needs("lightgbm"):
    from lightgbm import Booster, Dataset, early_stopping
    from lightgbm.callback import EarlyStopException

_STOPPING = ("early_stopping_round", "early_stopping_rounds", "early_stopping", "n_iter_no_change")


class EvaluationCallback(Boosting):
    """Callback that evaluates a model on a validation set at the end of training.

    If you set ``every``, the model is also evaluated at regular intervals during training.

    LightGBM does not notify its callbacks if training stops early. Set early stopping in this
    callback, ``EvaluationCallback(X, y, early_stopping=50)``, instead of adding LightGBM's callback
    for early stopping. The best iteration is then evaluated when training ends. The tag
    ``cmtrack.rounds`` contains the number of rounds used, such as ``"24 of 74, by early
    stopping"``.

    Parameters
    ----------
    X : features in any form that ``Booster.predict`` takes
        Features of the validation set. A ``Dataset`` is not accepted here, because LightGBM cannot
        predict from it.
    y : array-like of shape (n,), or lightgbm.Dataset
        The labels of the rows, or a Dataset that contains their labels and weights. The Dataset's
        weights are used unless you pass ``sample_weight``. LightGBM uses a Dataset's groups for
        ranking queries, so the evaluation does not use them as clusters. If ``labels`` are names,
        ``y`` may contain class numbers.
    every : int, optional
        Number of rounds between evaluations during training. By default, only the final model is
        evaluated. The logged step is the number of rounds.
    early_stopping : int or callback, optional
        Number of rounds without improvement after which training stops, or the result of
        ``lightgbm.early_stopping(...)``.
    predict : callable, optional
        Prediction function, which you need only for custom objectives, because models trained with
        them output margins. ``predict(booster, X, num_iteration)`` must return probabilities of
        shape (n,) or (n, K).
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
    >>> import lightgbm
    >>> import mlflow
    >>> import numpy as np
    >>> from cmtrack_integrations.lightgbm import EvaluationCallback
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> callback = EvaluationCallback(X[300:], y[300:])
    >>> with mlflow.start_run():
    ...     model = lightgbm.LGBMClassifier(n_estimators=5, verbose=-1)
    ...     model = model.fit(X[:300], y[:300], callbacks=[callback])
    >>> callback.rounds_used, callback.logged.evaluation.metrics["binary/roc_auc"] > 0.9
    (5, True)
    """

    before_iteration = False

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        every: int | None = None,
        early_stopping: Any = None,
        predict: Callable[[Any, Any, int], Any] | None = None,
        **options: Unpack[DataOptions],
    ) -> None:
        self._hook = Rounds(every, options)
        self._x = X
        self._y = y
        self._predict = predict or _predict
        self._stopping = _stopping(early_stopping)
        # LightGBM runs callbacks in ascending ``order``. Its own early stopping uses 30. If this
        # callback stops the training, it takes the same place, and otherwise it runs later.
        self.order = 30 if self._stopping else 31
        if self._stopping is None:
            finalize(self, _tell_if_open, self._hook)

    def __call__(self, env: Any) -> None:
        """Evaluate the model after the last round, and after each multiple of ``every`` rounds."""
        if env.iteration == env.begin_iteration:
            with self._hook.guarded():
                self._hook.begin()
            if self._stopping is None and any((env.params or {}).get(name) for name in _STOPPING):
                tell(
                    "if LightGBM's own parameters stop the training early, LightGBM does not "
                    "notify the callback, so the last evaluation is not logged: give "
                    "early_stopping= to the callback instead",
                )
                self._hook.open = False  # prevents a second warning
        predict = partial(self._predictions, env.model)
        self._hook.after_round(env.iteration + 1, predict)
        try:
            if self._stopping is not None:
                self._stopping(env)
        except EarlyStopException as stop:
            self._hook.finish(stop.best_iteration + 1, predict)
            raise
        if env.iteration + 1 == env.end_iteration:
            self._hook.finish(env.iteration + 1, predict)

    def _predictions(self, model: Any, rounds: int) -> Predictions:
        if not isinstance(model, Booster):
            raise ValueError(
                "lightgbm.cv trains several models at once: evaluate each with log_evaluation"
            )
        y = self._y
        weights: Predictions = {}
        if isinstance(y, Dataset):
            weights = self._hook.weights(y.get_weight(), "the Dataset")
            y = y.get_label()
            if y is None:
                raise ValueError("the validation set must have labels, got a Dataset without label")
        y_true, labels = name_classes(y, self._hook.options.get("labels"))
        return {
            "y_true": y_true,
            "y_prob": self._predict(model, self._x, rounds),
            "labels": labels,
            **weights,
        }


def _predict(model: Any, x: Any, rounds: int) -> Any:
    return model.predict(x, num_iteration=rounds)


def _tell_if_open(rounds: Rounds) -> None:
    """Warn, when a callback is deleted, if the final model of its training was not evaluated."""
    if rounds.open:
        tell(
            "training ended early, but its last evaluation is not logged, because LightGBM "
            "does not notify callbacks: give early_stopping= to EvaluationCallback instead of "
            "a second callback"
        )


def _stopping(stopping: Any) -> Any:
    """Return LightGBM's callback for early stopping; create one if given a number of rounds."""
    if stopping is None or callable(stopping):
        return stopping
    if isinstance(stopping, bool) or not isinstance(stopping, int) or stopping < 1:
        raise ValueError(
            "early_stopping must be a number of rounds or lightgbm.early_stopping(...), got "
            f"{stopping!r}"
        )
    return early_stopping(stopping, verbose=False)
