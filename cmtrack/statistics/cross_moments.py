"""Joint moments of all scores within each class: what the error of an average of correlations needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack.statistics.inputs import FloatArray, IntArray

MAX_CLASSES = 30
"""The table grows with the cube of the number of classes; above this it is not kept."""


@dataclass(frozen=True, eq=False)
class CrossMoments:
    """Sums of products of the features (1, s_1 .. s_L, s_1^2 .. s_L^2) over the samples of each class.

    Attributes
    ----------
    sums : ndarray of shape (K, 2L+1, 2L+1)
        Scores are taken less their centre 1/L, which keeps digits and merges by addition.
    """

    sums: FloatArray

    @classmethod
    def from_scores(
        cls, actual: IntArray, scores: FloatArray, n_classes: int, weights: FloatArray | IntArray | None = None
    ) -> CrossMoments:
        """Collect from ``scores`` (n, L) by the codes ``actual`` (n,)."""
        size = 2 * scores.shape[1] + 1
        sums = np.zeros((n_classes, size, size))
        for k in range(n_classes):
            own = actual == k
            features = features_of(scores[own])
            weighted = features if weights is None else features * weights[own][:, None]
            sums[k] = features.T @ weighted
        return cls(sums)

    def __add__(self, other: CrossMoments) -> CrossMoments:
        return CrossMoments(self.sums + other.sums)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CrossMoments) and np.array_equal(self.sums, other.sums)

    __hash__ = None  # type: ignore[assignment]


def features_of(scores: FloatArray) -> FloatArray:
    """The features (n, 2L+1) of scores (n, L)."""
    centred = scores - 1 / scores.shape[1]
    return np.concatenate((np.ones((len(scores), 1)), centred, centred**2), axis=1)
