"""Lightning, including ``pytorch_lightning``: ``EvaluationCallback`` for the ``Trainer``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import Hook, Logging, Options, check_every

with needs("lightning"):
    from cmtrack_integrations.torch import EpochAccumulator

    _PACKAGES = ["lightning.pytorch", "pytorch_lightning"]
    # A trainer refuses callbacks of the other package, so the package that is already imported is
    # tried first.
    _PACKAGES.sort(key=lambda name: name not in sys.modules)
    try:
        Callback = importlib.import_module(_PACKAGES[0]).Callback
    except ModuleNotFoundError:
        Callback = importlib.import_module(_PACKAGES[1]).Callback

_PARTS = frozenset(
    {"y_true", "y_pred", "y_prob", "logits", "sample_weight", "groups", "row_ids", "segments"}
)


class EvaluationCallback(Logging, Callback):  # type: ignore[misc, valid-type]
    """Callback that evaluates a model on the validation or test batches of all ranks.

    Your ``validation_step`` or ``test_step`` must return a mapping that contains ``"y_true"`` and
    one of the keys ``"logits"``, ``"y_prob"`` and ``"y_pred"``. Optional keys are
    ``"sample_weight"``, ``"groups"``, ``"row_ids"`` and ``"segments"`` (a mapping of columns). If
    the step returns something else, ``collect`` must build such a mapping from the batch and the
    value that the step returned.

    Rank 0 logs the evaluation to the run ``run_id``. If ``run_id`` is not set, the evaluation is
    logged to the run of the trainer's ``MLFlowLogger`` or, if the trainer does not use this logger,
    to the run that is active when the trainer starts. After ``fit``, the evaluation of the last
    validation epoch is logged. To log the evaluation of the best checkpoint instead, call
    ``trainer.validate(ckpt_path="best")``. Batches of the trainer's sanity check are not evaluated.

    Parameters
    ----------
    on : "validate" or "test", default "validate"
        The stage to evaluate. To evaluate both stages, use two callbacks, each with a different
        ``prefix``.
    every : int, optional
        Number of epochs between logged evaluations. By default, only the evaluation of the last
        validation epoch is logged. The logged step is the epoch number.
    collect : callable, optional
        Function that returns the mapping described above: ``collect(outputs, batch)``.
    dataloader : int, default 0
        Index of the dataloader to evaluate, if you use several.
    **options
        Options of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``run_id``, ``model_id``, ``prefix``, ``metrics``, ``predictions``,
        ``strict``, as in :func:`cmtrack.log_evaluation`. See
        :class:`cmtrack_integrations.torch.EpochAccumulator` for how the rows of several ranks are
        combined.

    Attributes
    ----------
    logged : LoggedEvaluation or None
        Result of logging the most recent evaluation; set only on rank 0.

    Notes
    -----
    The cost is one call of :func:`cmtrack.log_evaluation` on rank 0, and the memory for the rows of
    one epoch. The callback makes no additional predictions.

    Examples
    --------
    >>> import lightning
    >>> import torch
    >>> from lightning.pytorch.loggers import MLFlowLogger
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> from cmtrack_integrations.lightning import EvaluationCallback
    >>> class Net(lightning.LightningModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(1, 2)
    ...     def training_step(self, batch, batch_idx):
    ...         return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])
    ...     def validation_step(self, batch, batch_idx):
    ...         return {"y_true": batch[1], "logits": self.layer(batch[0])}
    ...     def configure_optimizers(self):
    ...         return torch.optim.SGD(self.parameters(), lr=0.1)
    >>> rows = TensorDataset(torch.linspace(-1, 1, 60)[:, None], torch.arange(60) // 30)
    >>> callback = EvaluationCallback(every=2)
    >>> logger = MLFlowLogger(experiment_name="hooks", tracking_uri="sqlite:///mlflow.db")
    >>> trainer = lightning.Trainer(
    ...     max_epochs=2, logger=logger, callbacks=[callback], accelerator="cpu",
    ...     enable_progress_bar=False, enable_model_summary=False,
    ... )
    >>> trainer.fit(Net(), DataLoader(rows, 20), DataLoader(rows, 20))
    >>> callback.logged.status
    'completed'
    """

    def __init__(
        self,
        *,
        on: str = "validate",
        every: int | None = None,
        collect: Callable[[Any, Any], Mapping[str, Any]] | None = None,
        dataloader: int = 0,
        **options: Unpack[Options],
    ) -> None:
        super().__init__()
        if on not in ("validate", "test"):
            raise ValueError(f"on must be 'validate' or 'test', got {on!r}")
        self._stage = on
        self._every = check_every(every)
        self._collect = collect
        self._dataloader = dataloader
        self._hook = Hook(options)
        self._rows = EpochAccumulator(**options)
        self._epoch: int | None = None  # the epoch of the rows that are not logged yet

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Remember the active run."""
        if trainer.is_global_zero:
            with self._hook.guarded():
                logger = next(filter(_is_mlflow_logger, trainer.loggers), None)
                if logger is None or self._hook.options.get("run_id") is not None:
                    self._hook.begin()
                else:
                    self._hook.begin(logger.run_id, getattr(logger, "_tracking_uri", None))

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Start collecting the batches to evaluate."""
        if self._collects(trainer):
            self._rows.reset()
            self._epoch = None

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Collect one of the batches to evaluate."""
        if not self._collects(trainer) or dataloader_idx != self._dataloader:
            return
        try:
            parts = outputs if self._collect is None else self._collect(outputs, batch)
            if not isinstance(parts, Mapping) or "y_true" not in parts:
                raise ValueError(_describe_outputs(self._stage, parts))
            parts = {name: values for name, values in parts.items() if name in _PARTS}
        except Exception as error:
            self._rows.fail(error)
            return
        self._rows.update(**parts)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log an evaluation if the epoch is a multiple of ``every``, and always outside ``fit``."""
        if not self._collects(trainer):
            return
        self._epoch = int(trainer.current_epoch)
        # The text is "fit" or "TrainerFn.FITTING", depending on the version of Lightning.
        is_fitting = str(trainer.state.fn).rsplit(".", 1)[-1].lower().startswith("fit")
        is_due = self._every is not None and (self._epoch + 1) % self._every == 0
        if is_due or not is_fitting:
            self._log(trainer)

    on_test_start = on_validation_start
    on_test_batch_end = on_validation_batch_end
    on_test_epoch_end = on_validation_epoch_end

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the evaluation of the last validation epoch, unless it is already logged."""
        if self._epoch is not None:
            self._log(trainer)

    def _collects(self, trainer: Any) -> bool:
        """Return whether the trainer is running the stage that this callback evaluates."""
        stage = "test" if trainer.testing else "validate"
        return stage == self._stage and not trainer.sanity_checking

    def _log(self, trainer: Any) -> None:
        """Evaluate on all ranks, and log on rank 0."""
        step = None if self._every is None else self._epoch
        self._epoch = None
        evaluation = self._rows.compute()
        self._rows.reset()
        if evaluation is not None and trainer.is_global_zero:
            with self._hook.guarded():
                self._hook.log(evaluation, step=step)


def _is_mlflow_logger(logger: Any) -> bool:
    """Return whether a logger is an ``MLFlowLogger`` from either of the two packages."""
    return any(kind.__name__ == "MLFlowLogger" for kind in type(logger).__mro__)


def _describe_outputs(stage: str, parts: Any) -> str:
    """Return an error text that states what a step must return and what the step did return."""
    step = "validation_step" if stage == "validate" else "test_step"
    text = (
        f'{step} must return {{"y_true": ..., "logits" or "y_prob" or "y_pred": ...}}, or '
        f"collect= must make this from (outputs, batch); got {type(parts).__name__}"
    )
    if isinstance(parts, Mapping):
        text += f" with {list(parts)[:8]}"
    return text
