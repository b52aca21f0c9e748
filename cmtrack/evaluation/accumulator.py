"""Evaluations of rows that come in batches: training loops, streams, the ranks of a distributed training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from cmtrack.evaluation.compute import deciding, scored_step, scores_first
from cmtrack.evaluation.from_arrays import assemble, one_of_both, prices_of
from cmtrack.evaluation.input_remarks import input_warnings, warn_of_input
from cmtrack.evaluation.result import Evaluation
from cmtrack.evaluation.spec import Options, Spec, takes_options
from cmtrack.grouping import ComposedStep, Label
from cmtrack.statistics.collected import Statistics, collect, with_segments
from cmtrack.statistics.counted_for import Counting
from cmtrack.statistics.counting import Codes, compact
from cmtrack.statistics.inputs import (
    FREQUENCY,
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


@takes_options
class Accumulator:
    """Take predictions batch by batch, and judge them together.

    Only statistics are kept, and at most 65,536 rows that wait to be added to them, so that memory does not grow with
    the number of batches. Accumulators of the same options merge (``a + b``) and can be pickled: each rank of a
    distributed training fills one, and one rank adds them up. The result is that of :func:`cmtrack.evaluate` on all
    rows at once: counts exactly, moments up to rounding, ranks of scores exactly up to 2**18 distinct scores and beyond
    that on a grid; the warnings give the bound of its error.

    Parameters
    ----------
    labels : sequence of length K
        All classes in order; a batch need not hold each of them.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Notes
    -----
    Cost: O(K) per row; memory of at most 65,536 rows and the statistics. 10⁶ rows of 11 probabilities in batches of
    10,000 take about 0.5 s.

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
        # Whether the threshold is on the scale of probabilities is not known before the first batch.
        scores_name = "y_score" if len(self.labels) == 2 else "y_prob"
        self._step = deciding(step, self.spec.threshold, self.labels, [scores_name])
        self._prices = prices_of(self.spec, self.labels)
        self._given: tuple[str, ...] | None = None
        self._weights_are: str | None = None
        self._waiting: list[tuple[Any, ...]] = []
        self._n_waiting = 0
        self._collected: list[tuple[int, Statistics]] = []
        self._scaled = 0

    @property
    def n_rows(self) -> int:
        """Number of rows that were given."""
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
        """Take a batch, in the forms of :func:`cmtrack.evaluate`; it is copied. An empty batch changes nothing.

        Raises
        ------
        ValueError
            Wrong input, or a batch with other columns than those before it. The accumulator is then as it was.

        Examples
        --------
        >>> from cmtrack import Accumulator
        >>> seen = Accumulator(labels=["no", "yes"])
        >>> for batch in ([0.2, 0.9], [0.4, 0.6]):
        ...     seen.update(["no", "yes"], y_prob=batch)
        >>> seen.n_rows
        4
        """
        what, scores, normalize = one_of_both(y_pred, y_prob, y_score, self.spec.normalize)
        data, divisions = (None, ()) if segments is None else declared(segments)
        aligned = {
            "y_true": y_true,
            "y_pred": y_pred,
            what: scores,
            "sample_weight": sample_weight,
            "segments": data,
        }
        y_true, y_pred, scores, sample_weight, data = align_rows(aligned).values()
        columns = {"y_true": y_true} if y_pred is None else {"y_true": y_true, "y_pred": y_pred}
        names = [f"segments {division_name(division)!r}" for division in divisions]
        given = (*columns, *([what] if scores is not None else []), *names)
        self._deciding(given)
        if self._given not in (None, given):
            raise ValueError(
                f"every batch must have the same columns, got {given} after {self._given}"
            )
        if not len(y_true):
            return
        codes = number_labels(columns, self.labels).codes
        n_rows = len(codes["y_true"])
        weights = as_weights(sample_weight, n_rows, self.spec.weights_are, may_be_zero=True)
        weights_are = same_kind_of_weights(
            self._weights_are, kind_of_weights(weights), "every batch"
        )
        divided_rows = self._segments(data, divisions, n_rows)
        probabilities, scaled = None, 0
        if scores is not None:
            first = scores_first(self.labels, self._step)
            read = as_probabilities(scores, self.labels, n_rows, first, what, normalize)
            probabilities, scaled = read.array, read.scaled_rows
        held = [compact(codes[name].all(), len(self.labels)).copy() for name in columns]
        self._waiting.append(
            (
                held[0],
                held[1] if y_pred is not None else None,
                _copied(probabilities),
                divided_rows,
                _copied(weights),
            )
        )
        self._given, self._weights_are = given, weights_are
        self._n_waiting += n_rows
        self._scaled += scaled
        if self._n_waiting >= _MOST_WAITING:
            self._collect()

    def compute(self) -> Evaluation:
        """Judge the rows that were given so far.

        Raises
        ------
        ValueError
            If there are none.

        Warns
        -----
        UserWarning
            As :func:`cmtrack.evaluate`, but for columns of probabilities in another order than the predictions.
        """
        self._collect()
        if not self._collected:
            raise ValueError("at least one row is needed, got none: call update first")
        total = self._collected[0][1]
        for _, part in self._collected[1:]:
            total += part
        total = replace(with_segments(total, Segmented.checked), scaled_rows=self._scaled or None)
        warn_of_input(input_warnings(total))
        return assemble(total, self._step, self.spec, self._weights_are)

    def reset(self) -> None:
        """Forget all rows."""
        self._waiting, self._n_waiting, self._collected, self._given = [], 0, [], None
        self._scaled, self._weights_are = 0, None

    def __add__(self, other: Accumulator) -> Accumulator:
        """Merge two accumulators of one question, with the same columns and kind of weights; neither changes."""
        if not isinstance(other, Accumulator):
            return NotImplemented
        mine, others = ({"labels": one.labels, **one.spec.given()} for one in (self, other))
        for name, ours in mine.items():
            theirs = others[name]
            if ours != theirs:
                raise ValueError(
                    f"accumulators must have the same {name} to be merged, got {ours!r} and {theirs!r}"
                )
        if None not in (self._given, other._given) and self._given != other._given:
            raise ValueError(
                f"accumulators must have taken the same columns, got {self._given} and {other._given}"
            )
        weights_are = same_kind_of_weights(self._weights_are, other._weights_are, "accumulators")
        merged = Accumulator(self.labels, **self.spec.given())
        merged._weights_are = weights_are
        merged._given = self._given or other._given
        merged._scaled = self._scaled + other._scaled
        for one in (self, other):
            one._collect()
            for size, part in one._collected:
                merged._keep(size, part)
        return merged

    def __radd__(self, other: object) -> Accumulator:
        return self if other == 0 else NotImplemented  # lets sum(...) start at 0

    def __repr__(self) -> str:
        return f"Accumulator({len(self.labels)} classes, {self.n_rows} rows)"

    def _deciding(self, given: Sequence[str]) -> ComposedStep | None:
        """The scored step and its threshold, checked against the columns that are given."""
        step = scored_step(self.labels, self.spec.grouping, self.spec.positive)
        return deciding(step, self.spec.threshold, self.labels, given)

    @staticmethod
    def _segments(data: Any, divisions: Divisions, n_rows: int) -> tuple[SegmentRows, ...]:
        """The rows of a batch by each column or crossing."""
        columns = {name: SegmentRows.read(name, column) for name, column in (data or {}).items()}
        for name, column in columns.items():
            check_length(name, len(column.codes), n_rows)
        return divided(columns, divisions)

    def _collect(self) -> None:
        """Flush the buffer of rows into the statistics."""
        if not self._waiting:
            return
        actual, predicted, probabilities, segments, weights = self._columns()
        part, _ = collect(
            Counting(self.labels, self._step, self.spec.grouping, self._prices),
            Codes(actual),
            None if predicted is None else Codes(predicted),
            probabilities=None
            if probabilities is None
            else in_memory(probabilities, "y_score" in (self._given or ())),
            weights=weights,
            segments=segments,
        )
        self._waiting, self._n_waiting = [], 0
        self._keep(0, part)

    def _columns(self) -> list[Any]:
        """The columns of the buffered rows; None for absent ones."""
        *columns, segments, weights = (list(parts) for parts in zip(*self._waiting, strict=True))
        if any(part is not None for part in weights):  # a batch without weights has weight 1
            kind = np.int64 if self._weights_are == FREQUENCY else np.float64
            sizes = (len(part) for part in columns[0])
            weights = [
                np.ones(n, kind) if part is None else part
                for n, part in zip(sizes, weights, strict=True)
            ]
        joined = [
            None if parts[0] is None else np.concatenate(parts) for parts in (*columns, weights)
        ]
        return [
            *joined[:-1],
            [SegmentRows.joined(parts) for parts in zip(*segments, strict=True)],
            joined[-1],
        ]

    def _keep(self, size: int, kept: Statistics) -> None:
        """Add statistics; those of equal size merge, like carries of a binary counter."""
        while self._collected and self._collected[-1][0] <= size:
            smaller, before = self._collected.pop()
            kept, size = before + kept, max(size, smaller) + 1
        self._collected.append((size, kept))


def _copied(array: Any) -> Any:
    return None if array is None else array.copy()
