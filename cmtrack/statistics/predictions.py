"""The evaluated rows themselves, which paired comparisons and clusters need."""

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
    """Ids of rows, which are either the original ids or hashes.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Original ids, texts if the ids were read from a file, or hashes (uint64).
    hashed : bool
    stored : bool
        Whether files of the rows include the ids, which needs a setting.
    """

    values: npt.NDArray[Any]
    hashed: bool = False
    stored: bool = False


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked rows of one evaluation, kept in their original form.

    Attributes
    ----------
    labels : tuple of length K
    actual_codes, predicted_codes : Codes of n rows
    design : Design
        Weights and clusters of the rows.
    source : Probabilities, optional
    segments : tuple of SegmentRows
        Columns that divide the rows into segments, with the same values as in the statistics. Empty
        for files from earlier versions, which did not store segments.
    ids : RowIds, optional
        Ids that identify the rows in any order.
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
        """Return rows from class numbers (n,) and probabilities or decision values (n, K)."""
        source = None if probabilities is None else in_memory(probabilities, ranking_only)
        return cls(labels, Codes(actual), Codes(predicted), design, source)

    def __repr__(self) -> str:
        return f"Predictions({len(self):,} rows, {len(self.labels)} classes)"

    def __len__(self) -> int:
        return len(self.actual_codes)

    def take(self, rows: BoolArray | IntArray) -> Predictions:
        """Return the selected rows."""
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
        """Actual class of each row as int64, shape (n,)."""
        return self.actual_codes.all()

    @cached_property
    def predicted(self) -> IntArray:
        """Predicted class of each row as int64, shape (n,)."""
        return self.predicted_codes.all()

    @property
    def probabilities(self) -> FloatArray | None:
        """Probabilities or decision values of each row as float64, shape (n, K)."""
        return None if self.source is None else self.source.array
