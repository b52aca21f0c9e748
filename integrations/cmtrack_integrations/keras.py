"""Keras 3 (any backend): ``EvaluationCallback`` for ``model.fit(callbacks=...)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from scipy.special import expit, softmax

from cmtrack.statistics.inputs import as_array
from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import (
    DataOptions,
    Hook,
    Logging,
    check_every,
    is_main_process,
    name_classes,
)

with needs("keras"):
    import keras

Arrays = tuple[Any, Any, Any]


class EvaluationCallback(Logging, keras.callbacks.Callback):  # type: ignore[misc]
    """Callback that evaluates a model on validation data at the end of training.

    If you set ``every``, the model is also evaluated at regular intervals during training.

    The final evaluation uses the model's weights at the end of training. To evaluate the best
    epoch, put the callback **after** ``EarlyStopping(restore_best_weights=True)`` in the list of
    callbacks.

    Parameters
    ----------
    validation_data : (x, y), (x, y, sample_weight), or data of batches of these
        Data in any form that ``fit`` accepts: arrays, a ``keras.utils.PyDataset``, a finite
        ``tf.data.Dataset``, or a torch ``DataLoader``. ``y`` contains class numbers or one-hot
        rows.
    every : int, optional
        Number of epochs between evaluations during training. By default, only the final model is
        evaluated. The logged step is the epoch number, which Keras counts from 0.
    from_logits : bool, default False
        Whether the model's outputs are logits. Logits are converted to probabilities by softmax or,
        for a single output, by the sigmoid function.
    predict : callable, optional
        Prediction function, which you need only if the model has several outputs. ``predict(model,
        x)`` must return probabilities of shape (n,) or (n, K).
    batch_size : int, optional
        Batch size for prediction; used only if the validation data are arrays.
    **options
        Options of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``sample_weight``, ``groups``, ``row_ids``, ``segments``, ``run_id``, ``model_id``,
        ``prefix``, ``metrics``, ``predictions``, ``strict``, as in :func:`cmtrack.log_evaluation`.
        By default, ``labels`` are 0 to K - 1. If ``labels`` are names, ``y`` must contain class
        numbers.

    Attributes
    ----------
    logged : LoggedEvaluation or None
        Result of logging the most recent evaluation.

    Notes
    -----
    The cost is one call of :func:`cmtrack.log_evaluation` and one prediction on the validation
    data. With ``every``, each evaluated epoch adds the same cost again.

    Examples
    --------
    >>> import keras
    >>> import mlflow
    >>> import numpy as np
    >>> from cmtrack_integrations.keras import EvaluationCallback
    >>> x, y = np.linspace(-1, 1, 100)[:, None], np.arange(100) // 50
    >>> model = keras.Sequential([keras.layers.Dense(2, activation="softmax")])
    >>> model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy")
    >>> callback = EvaluationCallback((x, y), every=5)
    >>> with mlflow.start_run():
    ...     history = model.fit(x, y, epochs=10, callbacks=[callback], verbose=0)
    >>> callback.logged.status
    'completed'
    """

    def __init__(
        self,
        validation_data: Any,
        *,
        every: int | None = None,
        from_logits: bool = False,
        predict: Callable[[Any, Any], Any] | None = None,
        batch_size: int | None = None,
        **options: Unpack[DataOptions],
    ) -> None:
        super().__init__()
        self._hook = Hook(options, by_row=True)
        self._data = validation_data
        self._every = check_every(every)
        self._from_logits = from_logits
        self._predict = predict
        self._batch_size = batch_size
        self._epoch = -1

    def on_train_begin(self, logs: Any = None) -> None:
        """Remember the active run."""
        self._epoch = -1
        with self._hook.guarded():
            self._hook.begin()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Evaluate the model if the number of completed epochs is a multiple of ``every``."""
        self._epoch = epoch
        if self._every is not None and (epoch + 1) % self._every == 0:
            self._evaluate()

    def on_train_end(self, logs: Any = None) -> None:
        """Evaluate the final model."""
        self._evaluate()

    def _evaluate(self) -> None:
        if not is_main_process():
            return
        with self._hook.guarded():
            y, y_prob, weights = self._predict_rows()
            y_true, labels = name_classes(y, self._hook.options.get("labels"), y_prob)
            predictions: dict[str, Any] = {"y_prob": y_prob, "labels": labels}
            if weights is not None:
                predictions["sample_weight"] = weights
            step = None if self._every is None else self._epoch
            self._hook.log(y_true, step=step, **predictions)

    def _predict_rows(self) -> Arrays:
        """Return the labels, probabilities and weights of all validation rows."""
        data = self._data
        if isinstance(data, (tuple, list)):
            if len(data) not in (2, 3):
                raise ValueError(
                    "validation_data must be (x, y) or (x, y, sample_weight), got "
                    f"{len(data)} parts"
                )
            return self._predict_part(
                data, lambda x: self.model.predict(x, batch_size=self._batch_size, verbose=0)
            )
        parts = [
            self._predict_part(batch, lambda x: self.model.predict_on_batch(x))
            for batch in _batches(data)
        ]
        if not parts:
            raise ValueError("validation_data must have at least one batch, got none")
        labels, scores, weights = zip(*parts, strict=True)
        if weights[0] is None:
            return np.concatenate(labels), np.concatenate(scores), None
        row_weights = np.concatenate([as_array(batch_weights) for batch_weights in weights])
        return np.concatenate(labels), np.concatenate(scores), row_weights

    def _predict_part(self, part: Any, predict: Callable[[Any], Any]) -> Arrays:
        """Return labels, probabilities and weights for data (x, y) or (x, y, sample_weight)."""
        x, y, *weights = part
        output = predict(x) if self._predict is None else self._predict(self.model, x)
        return as_array(y), self._probabilities(output), weights[0] if weights else None

    def _probabilities(self, output: Any) -> Any:
        if isinstance(output, (dict, list, tuple)):
            raise ValueError(
                "the model must have one output, got several: give predict=, a function of "
                "(model, x)"
            )
        array = np.asarray(keras.ops.convert_to_numpy(output))
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if not self._from_logits:
            return array
        # In single precision, the sigmoid of any logit above 17 is exactly 1, so rows would be
        # tied.
        logits = array.astype(np.float64)
        return expit(logits) if logits.ndim == 1 else softmax(logits, axis=-1)


def _batches(data: Any) -> Any:
    """Return an iterator over the batches of a data set, for one pass.

    The batches of a ``PyDataset`` are read by index, because a ``PyDataset`` is not an iterator.
    """
    if isinstance(data, keras.utils.PyDataset):
        return (data[number] for number in range(data.num_batches))
    return iter(data)
