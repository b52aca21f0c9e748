"""The evaluated rows themselves, where they are at hand: paired comparisons and clusters need them."""

from __future__ import annotations

from dataclasses import dataclass

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
    clusters : ndarray of shape (n,), int64, optional
        Codes of rows that belong together.
    """

    labels: tuple[Label, ...]
    actual: IntArray
    predicted: IntArray
    probabilities: FloatArray | None = None
    weights: FloatArray | IntArray | None = None
    clusters: IntArray | None = None

    def __len__(self) -> int:
        return len(self.actual)
