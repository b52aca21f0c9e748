"""A confusion table as its cells: what full and reduced matrices have in common.

Every metric of a table depends on which cell a sample falls into. A cell has an actual and a predicted class
(or group) and is a hit or not; in a reduced matrix the mismatches are cells of their own, on the diagonal and
no hit. So one implementation serves both, values and influence functions alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cmtrack.statistics import ConfusionMatrix, ReducedConfusionMatrix
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Cells:
    """The non-empty cells of a table of K classes.

    Attributes
    ----------
    actual, predicted : ndarray of shape (C,), int64
    hit : ndarray of shape (C,), bool
    weight : ndarray of shape (C,), float64
        Sum of the samples' weights (their number where there are none).
    squares : ndarray of shape (C,), float64
        Sum of the squared weights; equals ``weight`` where weights are whole numbers, which mean repeated
        rows.
    size : int
        K.
    """

    actual: IntArray
    predicted: IntArray
    hit: BoolArray
    weight: FloatArray
    squares: FloatArray
    size: int

    @classmethod
    def of_matrix(cls, matrix: ConfusionMatrix, squares: ConfusionMatrix | None = None) -> Cells:
        """The cells of a full matrix; ``squares`` holds the squared weights where they are fractions."""
        counts = matrix.counts
        actual, predicted = np.nonzero(counts)
        other = counts if squares is None else squares.counts
        weight, square = _floats(counts[actual, predicted]), _floats(other[actual, predicted])
        return cls(actual, predicted, actual == predicted, weight, square, len(matrix.labels))

    @classmethod
    def of_reduced(cls, reduced: ReducedConfusionMatrix, squares: ReducedConfusionMatrix | None = None) -> Cells:
        """The cells of a reduced matrix, its mismatches among them."""
        size = len(reduced.labels)
        actual, predicted = (grid.ravel() for grid in np.indices((size, size)))
        own = np.arange(size)
        actual, predicted = np.concatenate((actual, own)), np.concatenate((predicted, own))
        hit = np.concatenate(((own[:, None] == own[None, :]).ravel(), np.zeros(size, dtype=bool)))
        weight = np.concatenate((reduced.counts.ravel(), reduced.mismatches))
        other = reduced if squares is None else squares
        square = np.concatenate((other.counts.ravel(), other.mismatches))
        kept = weight > 0
        return cls(actual[kept], predicted[kept], hit[kept], _floats(weight[kept]), _floats(square[kept]), size)

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    def by_actual(self, values: FloatArray) -> FloatArray:
        """Sum values (C,) over the cells of each actual class, shape (K,)."""
        return np.bincount(self.actual, values, self.size).astype(np.float64, copy=False)

    def by_predicted(self, values: FloatArray) -> FloatArray:
        """Sum values (C,) over the cells of each predicted class, shape (K,)."""
        return np.bincount(self.predicted, values, self.size).astype(np.float64, copy=False)

    def standard_error(self, influence: FloatArray) -> float:
        """Standard error of a metric from its influence value in each cell.

        ``sqrt(sum of w_i^2 (psi_i - mean psi)^2) / sum of w_i``, the sandwich form.
        """
        mean = float(self.weight @ influence) / self.total
        return math.sqrt(float(self.squares @ (influence - mean) ** 2)) / self.total

    def effective(self, denominator: BoolArray | FloatArray) -> float:
        """Effective sample size of the samples in a denominator: their number, or Kish's for weights."""
        weight, squares = float(self.weight @ denominator), float(self.squares @ denominator)
        return weight * weight / squares if squares > 0 else 0.0


def _floats(counts: Counts) -> FloatArray:
    return counts.astype(np.float64)


def ratio(numerator: FloatArray, denominator: FloatArray, undefined: float = math.nan) -> FloatArray:
    """Elementwise ratio; ``undefined`` where the denominator is zero."""
    out = np.full(np.shape(numerator), undefined)
    quotient: FloatArray = np.divide(numerator, denominator, out=out, where=denominator > 0)
    return quotient
