"""Joint moments of all scores within each class: what the error of an average of correlations needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cmtrack.statistics.class_blocks import ClassBlock
from cmtrack.statistics.inputs import FloatArray

MAX_CLASSES = 30
"""The table grows with the cube of the number of classes; above this it is not kept."""


_ALONE = 1 << 18
"""Multiplications up to which OpenBLAS works in the calling thread."""


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
    def of_products(cls, block: ClassBlock, means: FloatArray, sums: FloatArray) -> CrossMoments:
        """The moments of one block from the :func:`products` (C, 2L+1, 2L+1) about the class means (L, C)."""
        shift = means.T - 1 / len(means)
        moved = _shifted(_shifted(sums, shift).swapaxes(1, 2), shift)
        return cls(block.spread(moved.transpose(1, 2, 0)))

    def __add__(self, other: CrossMoments) -> CrossMoments:
        return CrossMoments(self.sums + other.sums)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CrossMoments) and np.array_equal(self.sums, other.sums)

    __hash__ = None  # type: ignore[assignment]


def products(block: ClassBlock, features: FloatArray) -> FloatArray:
    """Sums of products of (1, d, d^2) by class, shape (C, 2L+1, 2L+1); writes the squares of the deviations d."""
    size = len(features) // 2
    np.multiply(features[1 : size + 1], features[1 : size + 1], out=features[size + 1 :])
    sums = np.empty((len(block.present), len(features), len(features)))
    for gram, start, stop in zip(sums, block.starts, block.stops, strict=True):
        own = features[:, start:stop]
        gram[...] = _product(own, own if block.weights is None else own * block.weights[start:stop])
    return sums


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """``left @ right.T``, in pieces too small for BLAS to share them out.

    Its threads and those that read the blocks would be in each other's way.
    """
    length = left.shape[1]
    step = max(16, _ALONE // (len(left) * len(right)))
    whole = length // step
    a, b = (x[:, : whole * step].reshape(len(x), whole, step).swapaxes(0, 1) for x in (left, right))
    total: FloatArray = np.matmul(a, b.swapaxes(1, 2)).sum(axis=0)
    total += left[:, whole * step :] @ right[:, whole * step :].T
    return total


def _shifted(sums: FloatArray, shift: FloatArray) -> FloatArray:
    """The rows of (1, d, d^2) in ``sums`` (C, 2L+1, ...) become those of (1, d + shift, (d + shift)^2)."""
    size = shift.shape[1]
    delta = shift[:, :, None]
    moved = sums.copy()
    moved[:, 1 : size + 1] += delta * sums[:, :1]
    moved[:, size + 1 :] += 2 * delta * sums[:, 1 : size + 1] + delta * delta * sums[:, :1]
    return moved


def features_of(scores: FloatArray) -> FloatArray:
    """The features (n, 2L+1) of scores (n, L)."""
    centred = scores - 1 / scores.shape[1]
    return np.concatenate((np.ones((len(scores), 1)), centred, centred**2), axis=1)
