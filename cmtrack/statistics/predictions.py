"""The evaluated rows themselves: paired comparisons and clusters need them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from cmtrack._lazy import cached_property
from cmtrack.grouping import Label
from cmtrack.statistics.counting import Codes
from cmtrack.statistics.design import Design
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray
from cmtrack.statistics.probabilities import Probabilities, in_memory
from cmtrack.statistics.segment_values import SegmentRows


@dataclass(frozen=True, eq=False)
class RowIds:
    """Ids of rows, as they were given or as hashes of them.

    Attributes
    ----------
    values : ndarray of shape (n,)
        As they were given; texts once they were read from a file; uint64 of hashes.
    hashed : bool
    stored : bool
        Whether files of the rows hold them: only where a setting asks for it.
    """

    values: npt.NDArray[Any]
    hashed: bool = False
    stored: bool = False


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked rows of one evaluation, held as they were given.

    Attributes
    ----------
    labels : tuple of length K
    actual_codes, predicted_codes : Codes of n rows
    design : Design
        Weights and clusters of the rows.
    source : Probabilities, optional
    segments : tuple of SegmentRows
        Columns that divide the rows, with the values of the statistics; none where a file of an
        earlier version did not hold them.
    ids : RowIds, optional
        Names of the rows, which are the same in every order.
    """

    labels: tuple[Label, ...]
    actual_codes: Codes
    predicted_codes: Codes
    design: Design
    source: Probabilities | None = None
    segments: tuple[SegmentRows, ...] = ()
    ids: RowIds | None = None

    @classmethod
    def from_arrays(
        cls,
        labels: tuple[Label, ...],
        actual: IntArray,
        predicted: IntArray,
        design: Design,
        probabilities: FloatArray | None = None,
        ranking_only: bool = False,
    ) -> Predictions:
        """Make rows from class numbers (n,) and probabilities (n, K), or decision values."""
        source = None if probabilities is None else in_memory(probabilities, ranking_only)
        return cls(labels, Codes(actual), Codes(predicted), design, source)

    def __len__(self) -> int:
        return len(self.actual_codes)

    def take(self, rows: BoolArray | IntArray) -> Predictions:
        """Return some of the rows."""
        source = self.source
        if source is not None:
            source = in_memory(source.array[rows], source.ranking_only)
        ids = self.ids
        if ids is not None:
            ids = replace(ids, values=ids.values[rows])
        return Predictions(
            self.labels,
            replace(self.actual_codes, raw=self.actual_codes.raw[rows]),
            replace(self.predicted_codes, raw=self.predicted_codes.raw[rows]),
            self.design.take(rows),
            source,
            tuple(column.take(rows) for column in self.segments),
            ids,
        )

    @cached_property
    def actual(self) -> IntArray:
        """Actual class of each row, shape (n,), int64."""
        return self.actual_codes.all()

    @cached_property
    def predicted(self) -> IntArray:
        """Predicted class of each row, shape (n,), int64."""
        return self.predicted_codes.all()

    @property
    def probabilities(self) -> FloatArray | None:
        """Probabilities, or decision values, of each row, shape (n, K), float64."""
        return None if self.source is None else self.source.array
