"""Evaluation of rows that arrive in batches, for example in training loops or data streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, Unpack

import numpy as np

from cmtrack.evaluation.compute import deciding, scored_step, scores_first
from cmtrack.evaluation.from_arrays import assemble, one_of_both, prices_of
from cmtrack.evaluation.input_remarks import input_warnings, warn_of_input
from cmtrack.evaluation.result import Evaluation
from cmtrack.evaluation.spec import Options, Spec, takes_options
from cmtrack.grouping import Label
from cmtrack.statistics.collected import Statistics, collect, with_segments
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.counting import Codes, compact
from cmtrack.statistics.inputs import (
    FREQUENCY,
    FloatArray,
    IntArray,
    align_rows,
    as_weights,
    kind_of_weights,
    same_kind_of_weights,
)
from cmtrack.statistics.labels import number_labels
from cmtrack.statistics.probabilities import as_probabilities, in_memory
from cmtrack.statistics.segment_values import (
    Divisions,
    SegmentRows,
    check_length,
    declared,
    divided,
    division_name,
)
from cmtrack.statistics.segmented import Segmented

_MOST_WAITING = 1 << 16
"""Number of rows to buffer, because counting many rows takes about as long as counting a few."""


@takes_options
class Accumulator:
    """Collector of predictions that arrive in batches and are evaluated together.

    An accumulator keeps statistics and at most 65,536 rows that wait to be counted, so its memory
    does not grow with the number of batches. Accumulators with equal options can be added (``a +
    b``) and pickled. In distributed training, each process fills its accumulator, and one process
    adds all of them.

    The result is the same as calling :func:`cmtrack.evaluate` on all rows at once. Counts are
    identical, and moments agree up to rounding. Ranks of scores are exact for up to 2**18 distinct
    scores. If there are more distinct scores, they are counted on a grid, and a warning states the
    largest error.

    Parameters
    ----------
    labels : sequence of length K
        All classes in order. A batch need not contain every class.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Notes
    -----
    Cost: Adding a row takes O(K) time, and the memory contains at most 65,536 rows and the
    statistics. Evaluating 10⁶ rows with 11 probabilities each, in batches of 10,000, takes about
    0.5 s.

    Examples
    --------
    >>> from cmtrack import Accumulator
    >>> seen = Accumulator(labels=["no", "yes"])
    >>> seen.update(["no", "yes"], y_prob=[0.2, 0.9])
    >>> seen.update(["yes"], y_prob=[0.4])
    >>> seen.compute().confusion_matrix.counts.tolist()
    [[1, 0], [1, 1]]
    """

    def __init__(
        self,
        labels: Sequence[Label],
        **options: Unpack[Options],
    ) -> None:
        self.spec = Spec.of(options, Accumulator)
        self.labels = number_labels({"labels": list(labels)}, labels).labels
        step = scored_step(self.labels, self.spec.grouping, self.spec.positive)
        # The first batch shows if the threshold applies to probabilities or to decision values.
        scores_name = "y_score" if len(self.labels) == 2 else "y_prob"
        self._step = deciding(step, self.spec.threshold, self.labels, [scores_name])
        self._prices = prices_of(self.spec, self.labels)
        self._columns: tuple[str, ...] | None = None
        self._weights_are: str | None = None
        self._waiting: list[_Batch] = []
        self._n_waiting = 0
        self._collected: list[tuple[int, Statistics]] = []
        self._scaled_rows = 0

    @property
    def n_rows(self) -> int:
        """Number of rows in all batches that were added so far."""
        return self._n_waiting + sum(part.digest.rows for _, part in self._collected)

    def update(
        self,
        y_true: Any,
        y_pred: Any = None,
        *,
        y_prob: Any = None,
        y_score: Any = None,
        sample_weight: Any = None,
        segments: Any = None,
    ) -> None:
        """Add a batch of rows, in any form that :func:`cmtrack.evaluate` accepts.

        The accumulator copies the batch. An empty batch changes nothing.

        Raises
        ------
        ValueError
            If the input is invalid, or if the columns differ from the columns of earlier batches.
            The accumulator stays unchanged if an error is raised.

        Examples
        --------
        >>> from cmtrack import Accumulator
        >>> seen = Accumulator(labels=["no", "yes"])
        >>> for batch in ([0.2, 0.9], [0.4, 0.6]):
        ...     seen.update(["no", "yes"], y_prob=batch)
        >>> seen.n_rows
        4
        """
        scores_name, scores, normalize = one_of_both(y_pred, y_prob, y_score, self.spec.normalize)
        segment_data = None
        divisions: Divisions = ()
        if segments is not None:
            segment_data, divisions = declared(segments)
        aligned = align_rows(
            {
                "y_true": y_true,
                "y_pred": y_pred,
                scores_name: scores,
                "sample_weight": sample_weight,
                "segments": segment_data,
            }
        )
        scores = aligned[scores_name]
        columns = {"y_true": aligned["y_true"]}
        if aligned["y_pred"] is not None:
            columns["y_pred"] = aligned["y_pred"]
        names = list(columns)
        if scores is not None:
            names.append(scores_name)
        names += [f"segments {division_name(division)!r}" for division in divisions]
        self._check_columns(tuple(names))
        if not len(aligned["y_true"]):
            return
        codes = number_labels(columns, self.labels).codes
        n_rows = len(codes["y_true"])
        weights = as_weights(
            aligned["sample_weight"], n_rows, self.spec.weights_are, may_be_zero=True
        )
        weights_are = same_kind_of_weights(
            self._weights_are, kind_of_weights(weights), "every batch"
        )
        divided_rows = self._segments(aligned["segments"], divisions, n_rows)
        probabilities = None
        scaled_rows = 0
        if scores is not None:
            first = scores_first(self.labels, self._step)
            read = as_probabilities(scores, self.labels, n_rows, first, scores_name, normalize)
            probabilities = read.array  # reading the array counts the scaled rows
            scaled_rows = read.scaled_rows
        # The accumulator changes only after all checks of the batch.
        batch = _Batch(
            self._compact(codes["y_true"]),
            self._compact(codes["y_pred"]) if "y_pred" in codes else None,
            None if probabilities is None else probabilities.copy(),
            divided_rows,
            None if weights is None else weights.copy(),
        )
        self._waiting.append(batch)
        self._columns = tuple(names)
        self._weights_are = weights_are
        self._n_waiting += n_rows
        self._scaled_rows += scaled_rows
        if self._n_waiting >= _MOST_WAITING:
            self._collect()

    def compute(self) -> Evaluation:
        """Evaluate the rows of all batches that were added so far.

        Raises
        ------
        ValueError
            If the accumulator contains no rows.

        Warns
        -----
        UserWarning
            The warnings of :func:`cmtrack.evaluate`, except the warning about probability columns
            whose order does not match the predictions.
        """
        self._collect()
        if not self._collected:
            raise ValueError("at least one row is needed, got none: call update first")
        total = reduce(add, (part for _, part in self._collected))
        total = with_segments(total, Segmented.checked)
        total = replace(total, scaled_rows=self._scaled_rows or None)
        warn_of_input(input_warnings(total))
        return assemble(total, self._step, self.spec, self._weights_are)

    def reset(self) -> None:
        """Remove all rows from the accumulator."""
        self._waiting = []
        self._n_waiting = 0
        self._collected = []
        self._columns = None
        self._scaled_rows = 0
        self._weights_are = None

    def __add__(self, other: Accumulator) -> Accumulator:
        """Merge two accumulators with the same options, columns and kind of weights.

        Both accumulators stay unchanged.
        """
        if not isinstance(other, Accumulator):
            return NotImplemented
        theirs = {"labels": other.labels, **other.spec.given()}
        for name, mine in {"labels": self.labels, **self.spec.given()}.items():
            if mine != theirs[name]:
                raise ValueError(
                    f"accumulators must have the same {name} to be merged, got {mine!r} and "
                    f"{theirs[name]!r}"
                )
        has_columns = self._columns is not None and other._columns is not None
        if has_columns and self._columns != other._columns:
            raise ValueError(
                f"accumulators must have the same columns to be merged, got {self._columns} and "
                f"{other._columns}"
            )
        weights_are = same_kind_of_weights(self._weights_are, other._weights_are, "accumulators")
        merged = Accumulator(self.labels, **self.spec.given())
        merged._weights_are = weights_are
        merged._columns = self._columns or other._columns
        merged._scaled_rows = self._scaled_rows + other._scaled_rows
        for side in (self, other):
            side._collect()
            for size, part in side._collected:
                merged._add(size, part)
        return merged

    def __radd__(self, other: object) -> Accumulator:
        return self if other == 0 else NotImplemented  # lets sum(...) start at 0

    def __repr__(self) -> str:
        return f"Accumulator({len(self.labels)} classes, {self.n_rows} rows)"

    def _check_columns(self, names: tuple[str, ...]) -> None:
        """Raise ValueError if columns differ from earlier batches or do not suit the threshold."""
        step = scored_step(self.labels, self.spec.grouping, self.spec.positive)
        deciding(step, self.spec.threshold, self.labels, names)
        if self._columns not in (None, names):
            raise ValueError(
                f"every batch must have the same columns, got {names} after {self._columns}"
            )

    def _compact(self, codes: Codes) -> IntArray:
        return compact(codes.all(), len(self.labels)).copy()

    @staticmethod
    def _segments(data: Any, divisions: Divisions, n_rows: int) -> tuple[SegmentRows, ...]:
        """Return the segments of a batch's rows, with one entry for each column or crossing."""
        columns = {name: SegmentRows.read(name, column) for name, column in (data or {}).items()}
        for name, column in columns.items():
            check_length(name, len(column.codes), n_rows)
        return divided(columns, divisions)

    def _collect(self) -> None:
        """Flush the buffer of rows into the statistics."""
        if not self._waiting:
            return
        batches = self._waiting
        predicted = _joined([batch.predicted for batch in batches])
        probabilities = _joined([batch.probabilities for batch in batches])
        if probabilities is not None:
            probabilities = in_memory(probabilities, "y_score" in (self._columns or ()))
        segments = zip(*(batch.segments for batch in batches), strict=True)
        part, _ = collect(
            Counting(self.labels, self._step, self.spec.grouping, self._prices, self.spec.ordered),
            Codes(np.concatenate([batch.actual for batch in batches])),
            None if predicted is None else Codes(predicted),
            probabilities=probabilities,
            weights=self._joined_weights(),
            segments=[SegmentRows.joined(parts) for parts in segments],
        )
        self._waiting = []
        self._n_waiting = 0
        self._add(0, part)

    def _joined_weights(self) -> FloatArray | IntArray | None:
        """Return the weights of the buffered rows; all weights of an unweighted batch are 1."""
        if all(batch.weights is None for batch in self._waiting):
            return None
        kind: Any = np.int64 if self._weights_are == FREQUENCY else np.float64
        weights = []
        for batch in self._waiting:
            if batch.weights is None:
                weights.append(np.ones(len(batch.actual), kind))
            else:
                weights.append(batch.weights)
        return np.concatenate(weights)

    def _add(self, size: int, part: Statistics) -> None:
        """Add statistics, and merge parts of equal size like the carries of a binary counter.

        Merging in this order involves each row in only log n merges.
        """
        while self._collected and self._collected[-1][0] <= size:
            smaller, before = self._collected.pop()
            part = before + part
            size = max(size, smaller) + 1
        self._collected.append((size, part))


@dataclass(eq=False)
class _Batch:
    """The columns of a batch of rows that are not yet counted."""

    actual: IntArray
    predicted: IntArray | None
    probabilities: FloatArray | None
    segments: tuple[SegmentRows, ...]
    weights: FloatArray | IntArray | None


def _joined(parts: Sequence[Any]) -> Any:
    """Join a column of all batches; None if the column is missing.

    All batches have the same columns, so only the first batch is checked.
    """
    return None if parts[0] is None else np.concatenate(parts)
