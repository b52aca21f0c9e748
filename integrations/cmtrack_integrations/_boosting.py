"""Shared parts of the boosting hooks: evaluations every few rounds, and of the rounds in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cmtrack.tracking._warn import tell
from cmtrack_integrations._hook import Hook, Logging, check_every

Predictions = dict[str, Any]
"""Arguments of ``log_evaluation``: labels, y_true, and y_prob or y_pred."""


class Rounds(Hook):
    """Evaluations of a model after some of its rounds, on a validation set.

    Parameters
    ----------
    every : int or None
    options : mapping
        As in ``cmtrack_integrations._hook.DataOptions``.

    Attributes
    ----------
    trained, used : int
        Rounds of the training, and rounds of the model that was evaluated last.
    """

    def __init__(self, every: int | None, options: Any) -> None:
        super().__init__(options, by_row=True)
        self.every = check_every(every)
        self.trained = self.used = 0
        self.open = False
        """True if a training has begun whose end was not evaluated."""

    def begin(self, run_id: str | None = None, tracking_uri: str | None = None) -> None:
        super().begin(run_id, tracking_uri)
        self.open = True

    def after_round(self, trained: int, predict: Callable[[int], Predictions]) -> None:
        """Evaluate after a round if due; ``predict`` predicts with the first n rounds."""
        self.trained = trained
        if self.every is not None and trained % self.every == 0:
            with self.guarded():
                self.evaluate(trained, trained, predict)

    def finish(self, used: int, predict: Callable[[int], Predictions]) -> None:
        """Evaluate the final rounds in use, and tag their number."""
        step = None if self.every is None else self.trained
        self.open = False
        with self.guarded():
            if (
                self.logged is None
                or self.every is None
                or self.used != used
                or self.trained % self.every
            ):
                self.evaluate(used, step, predict)
            self.tag(
                "rounds",
                f"{used} of {self.trained}"
                + (", by early stopping" if used < self.trained else ""),
            )

    def weights(self, kept: Any, source: str) -> Predictions:
        """Return the weights that a framework keeps with its rows, as an argument of ``log_evaluation``.

        The option ``sample_weight`` comes first, with a warning if it differs.

        Parameters
        ----------
        kept : array-like of shape (n,) or None
            The framework's weights; None or empty without any.
        source : str
            Where they are, in words, such as "the DMatrix".
        """
        if kept is None or not len(kept):
            return {}
        own = self.options.get("sample_weight")
        if own is None:
            return {"sample_weight": kept}
        own = np.asarray(own, dtype=np.float64)
        # the framework keeps float32
        if own.shape != np.shape(kept) or not np.allclose(own, kept, rtol=1e-6):
            tell(
                f"sample_weight= differs from the weights of {source}; the evaluation uses sample_weight="
            )
        return {}

    def evaluate(self, used: int, step: int | None, predict: Callable[[int], Predictions]) -> None:
        """Log the evaluation of the first ``used`` rounds."""
        self.used = used
        given = predict(used)
        self.log(given.pop("y_true"), step=step, **given)


class Boosting(Logging):
    """A callback whose hook logs a model after some of its rounds."""

    _hook: Rounds

    @property
    def rounds_used(self) -> int:
        """Rounds of the logged model."""
        return self._hook.used

    @property
    def rounds_trained(self) -> int:
        """Rounds of the whole training."""
        return self._hook.trained
