"""The evaluated rows themselves, where they are at hand: paired comparisons and clusters need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.grouping import Label
from cmtrack.statistics.inputs import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked arrays of one evaluation, row by row.

    Attributes
    ----------
    labels : tuple of length K
    actual, predicted : ndarray of shape (n,), int64
        Class codes.
    probabilities : ndarray of shape (n, K), optional
    weights : ndarray of shape (n,), optional
    """

    labels: tuple[Label, ...]
    actual: IntArray
    predicted: IntArray
    probabilities: FloatArray | None = None
    weights: FloatArray | IntArray | None = None

    def __len__(self) -> int:
        return len(self.actual)

    def __add__(self, other: Predictions) -> Predictions:
        """The rows of both, one after the other."""

        def joined(name: str) -> FloatArray | None:
            parts = getattr(self, name), getattr(other, name)
            return None if parts[0] is None or parts[1] is None else np.concatenate(parts)

        weights: npt.NDArray[Any] | None = None
        if self.weights is not None or other.weights is not None:
            ones = [np.ones(len(p), dtype=np.int64) if p.weights is None else p.weights for p in (self, other)]
            weights = np.concatenate(ones)
        return Predictions(
            self.labels,
            np.concatenate((self.actual, other.actual)),
            np.concatenate((self.predicted, other.predicted)),
            joined("probabilities"),
            weights,
        )
