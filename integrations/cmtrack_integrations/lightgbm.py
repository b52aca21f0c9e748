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
    """Callback that evaluates a model on a validation set at the end of a training.

    With ``every`` it also evaluates every few rounds.

    LightGBM does not notify its callbacks if a training stops early. Pass early stopping to this
    callback instead of a second callback: ``EvaluationCallback(X, y, early_stopping=50)``. The best
    iteration is then evaluated at the end. The tag ``cmtrack.rounds`` shows its number (``"24 of
    74, by early stopping"``).

    Parameters
    ----------
    X : features in any form that ``Booster.predict`` takes
        Features of the validation set. LightGBM cannot predict rows of a ``Dataset``.
    y : array-like of shape (n,), or lightgbm.Dataset
        Labels of the rows, or the Dataset that contains the labels and weights of the rows. These
        weights are used unless ``sample_weight`` is given. The groups in a Dataset identify the
        queries of a ranking and are not used as clusters. If ``labels`` are names, ``y`` may
        contain class numbers.
    every : int, optional
        Also log an evaluation after each multiple of this number of rounds. The step is the number
        of rounds.
    early_stopping : int or callback, optional
        Number of rounds without improvement after which the training stops, or the result of
        ``lightgbm.early_stopping(...)``.
    predict : callable, optional
        Function that you need for custom objectives, because their outputs are margins.
        ``predict(booster, X, num_iteration)`` must return probabilities of shape (n,) or (n, K).
    **options
        Options of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``sample_weight``, ``groups``, ``row_ids``, ``segments``, ``run_id``, ``model_id``,
        ``prefix``, ``metrics``, ``predictions``, ``strict``, as in :func:`cmtrack.log_evaluation`.

    Attributes
    ----------
    logged : LoggedEvaluation or None
        Result of logging the last evaluation.
    rounds_used, rounds_trained : int
        Number of rounds of the model that was evaluated last, and number of rounds of the training.

    Notes
    -----
    The cost is one call of :func:`cmtrack.log_evaluation` and one prediction of the validation
    set. ``every`` adds the same cost for each evaluated round.

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
        """Evaluate after every ``every``-th round and after the last round."""
        if env.iteration == env.begin_iteration:
            with self._hook.guarded():
                self._hook.begin()
            if self._stopping is None and any((env.params or {}).get(name) for name in _STOPPING):
                tell(
                    "if LightGBM stops early by its parameters, the callback is not told that the "
                    "training has ended "
                    "and logs no evaluation of it: give early_stopping= to the callback instead",
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
    """Warn, when a callback is deleted, if the end of its training was not evaluated."""
    if rounds.open:
        tell(
            "a training ended early, and no evaluation of its end is logged, as LightGBM does not "
            "tell callbacks: "
            "give early_stopping= to EvaluationCallback instead of a second callback"
        )


def _stopping(stopping: Any) -> Any:
    """Return LightGBM's callback for early stopping; make one from a number of rounds."""
    if stopping is None or callable(stopping):
        return stopping
    if isinstance(stopping, bool) or not isinstance(stopping, int) or stopping < 1:
        raise ValueError(
            "early_stopping must be a number of rounds or lightgbm.early_stopping(...), got "
            f"{stopping!r}"
        )
    return early_stopping(stopping, verbose=False)
