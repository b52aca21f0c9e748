"""Score moments by actual class, up to the fourth, merged without loss of digits.

Never sums of squares: the mean is taken first, central powers after it, and shards merge by the formulas of
Chan, Golub and LeVeque (1983), extended to orders three and four by Pébay (2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cmtrack.statistics.counting import Counts, count_codes
from cmtrack.statistics.inputs import FloatArray, IntArray

_TINY = 2.0**-100
"""Variance over squared mean below which a score is taken for constant."""


@dataclass(frozen=True, eq=False)
class ScoreMoments:
    """Count, mean and central power sums of each score component in each actual class.

    Attributes
    ----------
    n : ndarray of shape (K,)
        Samples (or weight) of each actual class.
    mean : ndarray of shape (K, L)
        Mean of component l over the samples of class k; 0 where the class has no samples.
    m2, m3, m4 : ndarray of shape (K, L)
        Sums of ``(s - mean)**p`` over the samples of the class.
    """

    n: Counts
    mean: FloatArray
    m2: FloatArray
    m3: FloatArray
    m4: FloatArray

    @classmethod
    def from_scores(
        cls,
        actual: IntArray,
        scores: FloatArray,
        n_classes: int,
        weights: FloatArray | IntArray | None = None,
    ) -> ScoreMoments:
        """Collect the moments of ``scores`` (n, L) by the codes ``actual`` (n,)."""
        n: Counts = count_codes(actual, n_classes, weights)
        safe = np.where(n > 0, n, 1)
        shape = (n_classes, scores.shape[1])
        mean, m2, m3, m4 = (np.zeros(shape) for _ in range(4))
        for component in range(shape[1]):
            column = scores[:, component]

            def total(values: FloatArray) -> FloatArray:
                weighed = values if weights is None else values * weights
                return np.bincount(actual, weighed, n_classes).astype(np.float64, copy=False)

            rough = total(column) / safe
            # a second pass takes out what rounding left in the first mean
            mean[:, component] = rough + total(column - rough[actual]) / safe
            deviation = column - mean[actual, component]
            square = deviation * deviation
            m2[:, component] = total(square)
            m3[:, component] = total(square * deviation)
            m4[:, component] = total(square * square)
            for k in np.flatnonzero((m2[:, component] > 0) & (m2[:, component] <= n * _TINY * mean[:, component] ** 2)):
                first = column[np.argmax(actual == k)]  # nothing but rounding: the score does not vary here
                mean[k, component], m2[k, component], m3[k, component], m4[k, component] = first, 0.0, 0.0, 0.0
        return cls(n, mean, m2, m3, m4)

    def __add__(self, other: ScoreMoments) -> ScoreMoments:
        """Merge disjoint samples of the same classes and components."""
        if self.mean.shape != other.mean.shape:
            raise ValueError(f"moments must have the same shape, got {self.mean.shape} and {other.mean.shape}")
        count_a, count_b = self.n[:, None].astype(float), other.n[:, None].astype(float)
        a = (count_a, self.mean, self.m2, self.m3, self.m4)
        b = (count_b, other.mean, other.m2, other.m3, other.m4)
        _, mean, m2, m3, m4 = _merge(a, b)
        return ScoreMoments(self.n + other.n, mean, m2, m3, m4)

    def pooled(self) -> ScoreMoments:
        """The moments of all classes taken as one, shape (1, L)."""
        n = self.n[:, None].astype(np.float64)
        total = n.sum()
        base = self.mean[np.argmax(self.n > 0)]  # so that equal means stay equal
        mean = base + (n * np.where(n > 0, self.mean - base, 0.0)).sum(axis=0) / (total or 1.0)
        e = np.where(n > 0, self.mean - mean, 0.0)
        m2 = (self.m2 + n * e**2).sum(axis=0)
        m3 = (self.m3 + 3 * e * self.m2 + n * e**3).sum(axis=0)
        m4 = (self.m4 + 4 * e * self.m3 + 6 * e**2 * self.m2 + n * e**4).sum(axis=0)
        return ScoreMoments(self.n.sum(keepdims=True), mean[None], m2[None], m3[None], m4[None])

    def select(self, classes: Sequence[int] | IntArray) -> ScoreMoments:
        """The moments of some classes only."""
        index = np.asarray(classes, dtype=np.int64)
        return ScoreMoments(*(getattr(self, name)[index] for name in ("n", "mean", "m2", "m3", "m4")))

    def component(self, index: int) -> ScoreMoments:
        """One score component, shape (K, 1)."""
        columns = (getattr(self, name)[:, index : index + 1] for name in ("mean", "m2", "m3", "m4"))
        return ScoreMoments(self.n, *columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ScoreMoments):
            return NotImplemented
        names = ("n", "mean", "m2", "m3", "m4")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)


_State = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


def _merge(a: _State, b: _State) -> _State:
    """Pairwise merge of (n, mean, M2, M3, M4), elementwise; empty parts change nothing."""
    na, ma, a2, a3, a4 = a
    nb, mb, b2, b3, b4 = b
    n = na + nb
    with np.errstate(invalid="ignore", divide="ignore"):
        fa, fb = np.where(n > 0, na / n, 0.0), np.where(n > 0, nb / n, 0.0)
    delta = np.where((na > 0) & (nb > 0), mb - ma, 0.0)
    mean = np.where(na > 0, np.where(nb > 0, ma + delta * fb, ma), mb)
    shift = delta * delta * na * fb
    m2 = a2 + b2 + shift
    m3 = a3 + b3 + shift * delta * (fa - fb) + 3 * delta * (fa * b2 - fb * a2)
    m4 = (
        a4
        + b4
        + shift * delta * delta * (fa * fa - fa * fb + fb * fb)
        + 6 * delta * delta * (fa * fa * b2 + fb * fb * a2)
        + 4 * delta * (fa * b3 - fb * a3)
    )
    return n, mean, m2, m3, m4
