"""Code that the boosting hooks share: they evaluate during training and after the last round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cmtrack.tracking._warn import tell
from cmtrack_integrations._hook import Hook, Logging, check_every

Predictions = dict[str, Any]
"""Arguments for ``log_evaluation``: ``labels``, ``y_true``, and ``y_prob`` or ``y_pred``."""


class Rounds(Hook):
    """Hook that evaluates a boosting model on a validation set after selected rounds.

    Parameters
    ----------
    every : int or None
    options : mapping
        As in ``cmtrack_integrations._hook.DataOptions``.

    Attributes
    ----------
    trained : int
        Number of training rounds that were completed so far.
    used : int
        Number of rounds that the last evaluated model uses.
    """

    def __init__(self, every: int | None, options: Any) -> None:
        super().__init__(options, by_row=True)
        self.every = check_every(every)
        self.trained = 0
        self.used = 0
        self.open = False
        """True if training has started and the final model has not been evaluated yet."""

    def begin(self, run_id: str | None = None, tracking_uri: str | None = None) -> None:
        super().begin(run_id, tracking_uri)
        self.open = True

    def after_round(self, trained: int, predict: Callable[[int], Predictions]) -> None:
        """Evaluate the model if the number of trained rounds is a multiple of ``every``."""
        self.trained = trained
        if self.every is not None and trained % self.every == 0:
            with self.guarded():
                self.evaluate(trained, trained, predict)

    def finish(self, used: int, predict: Callable[[int], Predictions]) -> None:
        """Evaluate the final model, and log the number of rounds that it uses as a tag."""
        self.open = False
        with self.guarded():
            if not self._is_evaluated(used):
                self.evaluate(used, None if self.every is None else self.trained, predict)
            rounds = f"{used} of {self.trained}"
            if used < self.trained:
                rounds += ", by early stopping"
            self.tag("rounds", rounds)

    def _is_evaluated(self, used: int) -> bool:
        """Return whether the first ``used`` rounds were already evaluated after the last round."""
        if self.logged is None or self.every is None:
            return False
        return self.used == used and self.trained % self.every == 0

    def weights(self, row_weights: Any, source: str) -> Predictions:
        """Return the framework's row weights as an argument for ``log_evaluation``.

        If the option ``sample_weight`` is set, it replaces the framework's weights. If the two sets
        of weights differ, you get a warning.

        Parameters
        ----------
        row_weights : array-like of shape (n,) or None
            The weights that the framework stores; None or an empty array if it stores no weights.
        source : str
            Name of the object that contains the weights, such as "the DMatrix".
        """
        if row_weights is None or not len(row_weights):
            return {}
        option = self.options.get("sample_weight")
        if option is None:
            return {"sample_weight": row_weights}
        option = np.asarray(option, dtype=np.float64)
        # Frameworks store weights in single precision, which has a relative error of up to 6e-8.
        if option.shape != np.shape(row_weights) or not np.allclose(option, row_weights, rtol=1e-6):
            tell(
                f"sample_weight= differs from the weights of {source}; the evaluation uses "
                "sample_weight="
            )
        return {}

    def evaluate(self, used: int, step: int | None, predict: Callable[[int], Predictions]) -> None:
        """Log the evaluation of a model that uses only its first ``used`` rounds."""
        self.used = used
        predictions = predict(used)
        self.log(predictions.pop("y_true"), step=step, **predictions)


class Boosting(Logging):
    """Callback that logs evaluations of a boosting model after selected rounds."""

    _hook: Rounds

    @property
    def rounds_used(self) -> int:
        """Number of rounds that the logged model uses."""
        return self._hook.used

    @property
    def rounds_trained(self) -> int:
        """Total number of training rounds."""
        return self._hook.trained
