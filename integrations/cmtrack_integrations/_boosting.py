"""Code that the boosting hooks share: they evaluate during a training and after its last round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cmtrack.tracking._warn import tell
from cmtrack_integrations._hook import Hook, Logging, check_every

Predictions = dict[str, Any]
"""Arguments for ``log_evaluation``: ``labels``, ``y_true``, and ``y_prob`` or ``y_pred``."""


class Rounds(Hook):
    """Hook that evaluates a boosting model on a validation set after some of its rounds.

    Parameters
    ----------
    every : int or None
    options : mapping
        As in ``cmtrack_integrations._hook.DataOptions``.

    Attributes
    ----------
    trained : int
        Number of rounds that were trained.
    used : int
        Number of rounds of the model that was evaluated last.
    """

    def __init__(self, every: int | None, options: Any) -> None:
        super().__init__(options, by_row=True)
        self.every = check_every(every)
        self.trained = 0
        self.used = 0
        self.open = False
        """True if a training has begun and its final model has not been evaluated yet."""

    def begin(self, run_id: str | None = None, tracking_uri: str | None = None) -> None:
        super().begin(run_id, tracking_uri)
        self.open = True

    def after_round(self, trained: int, predict: Callable[[int], Predictions]) -> None:
        """Evaluate after every ``every``-th round; ``predict`` uses only the first n rounds."""
        self.trained = trained
        if self.every is not None and trained % self.every == 0:
            with self.guarded():
                self.evaluate(trained, trained, predict)

    def finish(self, used: int, predict: Callable[[int], Predictions]) -> None:
        """Evaluate the rounds that the final model uses, and log their number as a tag."""
        self.open = False
        with self.guarded():
            if not self._is_evaluated(used):
                self.evaluate(used, None if self.every is None else self.trained, predict)
            rounds = f"{used} of {self.trained}"
            if used < self.trained:
                rounds += ", by early stopping"
            self.tag("rounds", rounds)

    def _is_evaluated(self, used: int) -> bool:
        """Return whether the last evaluation used these rounds and came after the last round."""
        if self.logged is None or self.every is None:
            return False
        return self.used == used and self.trained % self.every == 0

    def weights(self, row_weights: Any, source: str) -> Predictions:
        """Return the row weights that the framework stores as an argument for ``log_evaluation``.

        If the option ``sample_weight`` is set, it replaces them, and a warning says if they differ.

        Parameters
        ----------
        row_weights : array-like of shape (n,) or None
            The weights that the framework stores; None or empty if it stores none.
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
    """Callback that logs an evaluation of a boosting model after some of its rounds."""

    _hook: Rounds

    @property
    def rounds_used(self) -> int:
        """Number of rounds of the logged model."""
        return self._hook.used

    @property
    def rounds_trained(self) -> int:
        """Number of rounds of the whole training."""
        return self._hook.trained
