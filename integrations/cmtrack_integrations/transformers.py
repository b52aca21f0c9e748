"""Hugging Face Transformers: ``compute_metrics`` and ``EvaluationCallback`` for the ``Trainer``."""

from __future__ import annotations

import math
import re
from typing import Any, Unpack

import numpy as np

from cmtrack.evaluation import Evaluation, evaluate
from cmtrack.evaluation.catalog import CATALOG
from cmtrack.statistics.inputs import as_array
from cmtrack.tracking.names import chosen_metrics
from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import (
    Hook,
    Logging,
    Options,
    check_every,
    class_codes,
    is_counted,
    name_classes,
)

with needs("transformers"):
    from transformers import TrainerCallback

    from cmtrack_integrations.torch import probabilities


class ComputeMetrics:
    """Callable that computes metrics for the ``Trainer`` and stores the most recent evaluation.

    To create a ``ComputeMetrics`` object, call :func:`compute_metrics`.

    Attributes
    ----------
    evaluation : Evaluation or None
        The most recent evaluation; None if it failed.

    Notes
    -----
    The object keeps the most recent evaluation in memory. If ``batch_eval_metrics=True``, it also
    keeps the rows of all batches.

    Examples
    --------
    >>> import numpy as np
    >>> from transformers import EvalPrediction
    >>> from cmtrack_integrations.transformers import compute_metrics
    >>> judge = compute_metrics(labels=["negative", "positive"])
    >>> logits = np.array([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    >>> prediction = EvalPrediction(predictions=logits, label_ids=np.array([0, 1, 1]))
    >>> found = judge(prediction)  # as a Trainer calls it
    >>> found["multiclass/accuracy"] == judge.evaluation.metrics["multiclass/accuracy"]
    True
    """

    def __init__(self, options: Any, from_logits: bool = True) -> None:
        self.hook = Hook(options)
        self.from_logits = from_logits
        self.evaluation: Evaluation | None = None
        self._batches: list[tuple[Any, Any]] = []
        # If an evaluation fails, these metrics are reported as NaN.
        self._names = _expected_names(options)

    def __call__(self, prediction: Any, compute_result: bool = True) -> dict[str, float]:
        """Return the metrics of an ``EvalPrediction``.

        A metric is NaN if it is undefined. All metrics are NaN if the evaluation failed.

        Parameters
        ----------
        prediction : transformers.EvalPrediction
        compute_result : bool, default True
            Whether this batch is the last one; used only with ``batch_eval_metrics=True``.
        """
        try:
            return self._compute(prediction, compute_result)
        except Exception:
            with self.hook.guarded():
                raise
        # The trainer looks up metric_for_best_model, and raises an error if it is missing.
        return dict.fromkeys(self._names, math.nan)

    def _compute(self, prediction: Any, is_last: bool) -> dict[str, float]:
        """Add a batch to the collected rows, and evaluate all rows after the last batch."""
        self.evaluation = None
        try:
            self._batches.append(self._rows(prediction))
            if not is_last:
                return {}
            labels_by_batch, scores_by_batch = zip(*self._batches, strict=True)
            y = np.concatenate(labels_by_batch)
            y_prob = np.concatenate(scores_by_batch)
        finally:
            if is_last:
                self._batches = []
        options = self.hook.evaluate_options
        y_true, labels = name_classes(y, options.get("labels"), y_prob)
        evaluation = evaluate(y_true, y_prob=y_prob, **{**options, "labels": labels})
        metrics = chosen_metrics(evaluation, self.hook.options.get("metrics", "headline"))
        self.evaluation = evaluation
        self._names = list(metrics)
        return metrics

    def _rows(self, prediction: Any) -> tuple[Any, Any]:
        """Return the labels (n,) and probabilities (n, K) of the rows or tokens to evaluate."""
        output = _first_array(prediction.predictions)
        y = _first_array(prediction.label_ids)
        if output.ndim == 3:
            if y.shape != output.shape[:2]:
                raise ValueError(
                    f"label_ids must have shape {output.shape[:2]}, as the predictions, got "
                    f"{y.shape}"
                )
            output = output.reshape(-1, output.shape[-1])
            y = y.reshape(-1)
        y = class_codes(y)
        if len(y) != len(output):
            raise ValueError(
                f"label_ids must have one label per row of the predictions, {len(output)}, got "
                f"{len(y)}"
            )
        is_row = is_counted(y, self.hook.options.get("labels"))
        output = output[is_row]
        y_prob = as_array(probabilities(output)) if self.from_logits else output
        return y[is_row], y_prob


def _first_array(part: Any) -> Any:
    """Return the first array of a tuple (hidden states may follow it), or the array itself."""
    return as_array(part[0] if isinstance(part, (tuple, list)) else part)


def _expected_names(options: Any) -> list[str]:
    """Return the names of the metrics that an evaluation with ``options`` will contain."""
    chosen = options.get("metrics", "headline")
    if not isinstance(chosen, str):
        return [name for name in chosen if not name.endswith("/*")]
    absent = ["label sets", "granules"]
    if not options.get("costs"):
        absent.append("costs")
    headline = [entry for entry in CATALOG if entry.headline and entry.needs not in absent]
    return [entry.name for entry in headline if "<" not in entry.name]


def compute_metrics(*, from_logits: bool = True, **options: Unpack[Options]) -> ComputeMetrics:
    """Return a ``compute_metrics`` function for a ``Trainer``, which reports headline metrics.

    The trainer adds the prefix ``eval_`` to each metric name, so
    ``metric_for_best_model="multiclass/matthews_corrcoef"`` works. The trainer includes these
    metrics in all its reports. The function supports sequence and token classification. Logits are
    converted to probabilities by softmax or, for a single column, by the sigmoid function. Rows and
    tokens with the label -100 are not evaluated. If ``batch_eval_metrics=True``, the function
    collects the batches and evaluates them together. If the evaluation fails, you get a warning,
    and the metrics are NaN.

    Parameters
    ----------
    from_logits : bool, default True
        Whether the model's outputs are logits. Pass False if the model returns probabilities.
    **options
        Options of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``metrics``, and for :class:`EvaluationCallback` ``run_id``, ``model_id``, ``prefix``,
        ``predictions``, ``strict``, as in :func:`cmtrack.log_evaluation`. ``labels`` may be class
        names, in the order of the model's outputs.

    Returns
    -------
    ComputeMetrics
        A callable that you pass to the trainer. Its attribute ``evaluation`` contains the most
        recent evaluation.

    Examples
    --------
    >>> import torch
    >>> from transformers import Trainer, TrainingArguments
    >>> from cmtrack_integrations.transformers import compute_metrics
    >>> class Linear(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(1, 3)
    ...     def forward(self, x, labels):
    ...         logits = self.layer(x)
    ...         return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}
    >>> rows = [{"x": torch.tensor([k / 30]), "labels": k // 10} for k in range(30)]
    >>> judge = compute_metrics(labels=["food", "music", "sport"])
    >>> arguments = TrainingArguments("out", use_cpu=True, report_to="none")
    >>> found = Trainer(Linear(), arguments, eval_dataset=rows, compute_metrics=judge).evaluate()
    >>> found["eval_multiclass/accuracy"] == judge.evaluation.metrics["multiclass/accuracy"]
    True
    """
    return ComputeMetrics(options, from_logits)


class EvaluationCallback(Logging, TrainerCallback):  # type: ignore[misc]
    """Callback that logs the evaluations of a ``Trainer`` to MLflow, from world rank 0.

    When training ends, the callback logs the last evaluation. If ``load_best_model_at_end=True``,
    it logs the evaluation of the best checkpoint instead, and the tag ``cmtrack.best_step``
    contains the step of this checkpoint. Outside training, calls of ``trainer.evaluate()`` and
    ``trainer.predict()`` are logged immediately. If the trainer's ``metric_key_prefix`` is not
    "eval", it becomes the prefix of the logged metrics, such as ``test/``. The prefix may also
    contain the name of one of several evaluation sets.

    The evaluations are logged to the run that is active when training starts. You can start this
    run yourself or let the ``MLflowCallback`` of Transformers start it.

    Parameters
    ----------
    judge : ComputeMetrics
        The object that you pass to the trainer as ``compute_metrics``. The callback uses the
        options of this object when it logs.
    every : int, optional
        If set, every ``every``-th evaluation during training is also logged. The logged step is the
        trainer's global step.

    Attributes
    ----------
    logged : LoggedEvaluation or None
        Result of logging the most recent evaluation.

    Notes
    -----
    The cost is one call of :func:`cmtrack.log_evaluation` for each evaluation set and, if ``every``
    is set, one call for each further logged evaluation.

    Examples
    --------
    >>> import mlflow
    >>> import torch
    >>> from transformers import Trainer, TrainingArguments
    >>> from cmtrack_integrations.transformers import EvaluationCallback, compute_metrics
    >>> class Linear(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(1, 2)
    ...     def forward(self, x, labels):
    ...         logits = self.layer(x)
    ...         return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}
    >>> rows = [{"x": torch.tensor([k / 30]), "labels": k // 15} for k in range(30)]
    >>> judge = compute_metrics(labels=["negative", "positive"])
    >>> arguments = TrainingArguments(
    ...     "out", num_train_epochs=1, use_cpu=True, report_to="none", disable_tqdm=True,
    ...     eval_strategy="epoch", save_strategy="no",
    ... )
    >>> callback = EvaluationCallback(judge)
    >>> trainer = Trainer(
    ...     Linear(), arguments, train_dataset=rows, eval_dataset=rows, compute_metrics=judge,
    ...     callbacks=[callback],
    ... )
    >>> with mlflow.start_run() as run:
    ...     done = trainer.train()  # doctest: +ELLIPSIS
    {...
    >>> "multiclass/accuracy" in mlflow.get_run(run.info.run_id).data.metrics
    True
    """

    def __init__(self, judge: ComputeMetrics, *, every: int | None = None) -> None:
        if not isinstance(judge, ComputeMetrics):
            raise TypeError(
                "judge must be the object that compute_metrics(...) returns, got "
                f"{type(judge).__name__}"
            )
        self._judge = judge
        self._hook = judge.hook
        self._every = check_every(every)
        self._is_training = False
        # For each evaluation set: the number of evaluations, the last evaluation, and the best
        # evaluation with its step.
        self._count: dict[str, int] = {}
        self._last: dict[str, tuple[int, Evaluation]] = {}
        self._best: dict[str, tuple[int, Evaluation]] = {}

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Remember the active run."""
        self._is_training = True
        self._count = {}
        self._last = {}
        self._best = {}
        if state.is_world_process_zero:
            with self._hook.guarded():
                self._hook.begin()

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **kwargs: Any
    ) -> None:
        """Store the evaluation after an evaluation loop, and log every ``every``-th evaluation."""
        evaluation = self._judge.evaluation
        # If the next evaluation fails, this one must not be logged a second time.
        self._judge.evaluation = None
        if evaluation is None or not state.is_world_process_zero:
            return
        key = _key(metrics)
        if not self._is_training:
            with self._hook.guarded():
                self._hook.follow()
            self._log(key, evaluation, None)
            return
        self._keep_best(state)
        step = int(state.global_step)
        self._last[key] = (step, evaluation)
        self._count[key] = self._count.get(key, 0) + 1
        if self._every is not None and self._count[key] % self._every == 0:
            self._log(key, evaluation, step)

    on_predict = on_evaluate

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log the best or the last evaluation made during training."""
        self._is_training = False
        if not state.is_world_process_zero:
            return
        self._keep_best(state)
        final_step = None if self._every is None else int(state.global_step)
        for key, (_, evaluation) in self._last.items():
            if args.load_best_model_at_end and key in self._best:
                best_step, best_evaluation = self._best[key]
                self._log(key, best_evaluation, final_step)
                self._hook.tag("best_step", f"{best_step} of {state.global_step}")
            else:
                self._log(key, evaluation, final_step)
        self._last = {}
        self._best = {}

    def _keep_best(self, state: Any) -> None:
        """Store the best evaluation; the trainer records the best step only after evaluating it."""
        best = _best_step(state)
        for key, (step, evaluation) in self._last.items():
            if step == best:
                self._best[key] = (step, evaluation)

    def _log(self, key: str, evaluation: Evaluation, step: int | None) -> None:
        with self._hook.guarded():
            prefix = self._hook.options.get("prefix", "")
            if key != "eval":
                prefix = f"{prefix}{key}/"
            self._hook.log(evaluation, step=step, prefix=prefix)


def _key(metrics: Any) -> str:
    """Return the name of the evaluation set: "a" if the trainer's metrics begin with "eval_a"."""
    for name in metrics or ():
        found = re.fullmatch(r"(.+)_(runtime|model_preparation_time)", name)
        if found:
            key = re.sub(r"[^0-9A-Za-z_.-]", "_", found[1])
            return key.removeprefix("eval_")
    return "eval"


def _best_step(state: Any) -> int | None:
    """Return the step of the best checkpoint; older trainers record only its path."""
    step = getattr(state, "best_global_step", None)
    if step is None and getattr(state, "best_model_checkpoint", None):
        found = re.search(r"-(\d+)/?$", str(state.best_model_checkpoint))
        step = None if found is None else int(found[1])
    return step or None
