"""A block of rows in the order of their classes, so that sums by class are sums over neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cmtrack.statistics.codes import compact
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.inputs import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class ClassBlock:
    """The rows of one block, sorted by actual class; C of the K classes are present.

    Attributes
    ----------
    n_classes : int
    order : ndarray of shape (b,)
        The rows in the order of their classes.
    codes : ndarray of shape (b,)
        The class of each row, in that order.
    present : ndarray of shape (C,)
        The classes that the block holds.
    starts, stops : ndarray of shape (C,)
        Where each begins and ends.
    weights : ndarray of shape (b,), optional
        In that order; the first row of a class has a weight, if any of it has.
    sums : ndarray of shape (C,)
        Rows, or weight, of each.
    """

    n_classes: int
    order: IntArray
    codes: IntArray
    present: IntArray
    starts: IntArray
    stops: IntArray
    weights: FloatArray | IntArray | None
    sums: Counts

    @classmethod
    def sort(cls, actual: IntArray, n_classes: int, weights: FloatArray | IntArray | None = None) -> ClassBlock:
        """Sort rows by class; rows of a class keep their order."""
        if weights is None:
            order = np.argsort(compact(actual, n_classes), kind="stable")
        else:  # rows without weight come last in their class
            order = np.argsort(compact(2 * actual + (weights == 0), 2 * n_classes), kind="stable")
        counts = np.bincount(actual, minlength=n_classes)
        present = np.flatnonzero(counts)
        sizes = counts[present]
        stops = np.cumsum(sizes)
        starts = stops - sizes
        own = None if weights is None else weights.take(order)
        sums = sizes if own is None else np.add.reduceat(own, starts)
        return cls(n_classes, order, np.repeat(present, sizes), present, starts, stops, own, sums)

    def total(self, values: FloatArray) -> FloatArray:
        """Weighted sums of ``values`` (L, b) by class, shape (L, C)."""
        weighed = values if self.weights is None else values * self.weights
        sums: FloatArray = np.add.reduceat(weighed, self.starts, axis=1)
        return sums

    def centre(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The class means (L, C) of ``values`` (L, b), and what is left without them, in the same memory."""
        means = self.total(values) / np.where(self.sums > 0, self.sums, 1)
        if len(self.present) <= 64:
            for place, (start, stop) in enumerate(zip(self.starts, self.stops, strict=True)):
                values[:, start:stop] -= means[:, place, None]
        else:
            values -= np.repeat(means, self.stops - self.starts, axis=1)
        return means, values

    def spread(self, values: npt.NDArray[Any], dtype: Any = np.float64) -> npt.NDArray[Any]:
        """Values of the present classes (..., C) as those of all, shape (K, ...); 0 for the absent."""
        whole = np.zeros((self.n_classes, *values.shape[:-1]), dtype=dtype)
        whole[self.present] = values.T
        return whole
