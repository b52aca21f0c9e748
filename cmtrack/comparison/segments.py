"""Differences between two models by segment, with simultaneous intervals and a joint test.

If there are many segments, even a better model seems worse in some of them by chance. A review
therefore reports that a model is better overall but worse in a segment only if the test by Gail and
Simon (1985) and the simultaneous interval of the segment agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.base import BaseEvaluation
from cmtrack.comparison.comparability import Traits, why_apart, why_unpaired
from cmtrack.comparison.differences import Difference, paired, paired_differences, why_no_error
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.evaluation.gates import Gate, GateResult, with_rows_more
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.intervals import ROUNDING, holm, normal_quantile
from cmtrack.metrics.names import encode_label, near
from cmtrack.metrics.paired import Paired
from cmtrack.names import quoted
from cmtrack.segments import (
    Estimates,
    Interaction,
    differences,
    order_of_segments,
    qualitative_interaction,
    simultaneous_level,
)
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.evaluation.segments import SegmentTable

MAX_OTHERS = 5
"""Largest number of runs with which the leader is compared by segment."""
FEWEST_CLUSTERS = 5
"""Smallest effective number of clusters for which a segment's interval can decide a gate."""


@dataclass(frozen=True, eq=False)
class SegmentDifferences:
    """Differences of one metric between two evaluations in each of S segments.

    Attributes
    ----------
    column, metric : str
    first, second : str
        Names of the two runs; the first is the leader of a ranking.
    segments : tuple of str
        Texts of the segments, sorted so that the worst segment of the first run comes first.
    rows : ndarray of shape (S,)
        Number of rows of each segment, without weights.
    first_values, second_values : ndarray of shape (S,)
        Values of the metric in each segment; NaN if undefined.
    differences, errors : ndarray of shape (S,)
        First value minus second value, and the standard error of the difference; NaN if a value is
        undefined or the standard error is unknown.
    low, high : ndarray of shape (S,)
        Lower and upper ends of the intervals of the differences. The intervals are simultaneous for
        all segments and for all pairs of runs in a comparison.
    overall : Difference
        Difference between the two runs on all rows.
    interaction : Interaction
        Result of the test whether some differences are positive and others negative.
    p_adjusted : float
        p-value of the test in ``interaction``, adjusted by Holm's method (1979) for the number of
        pairs of runs in a comparison.
    paired : bool
        Whether the standard errors pair the rows of both evaluations.
    reason : str
        Reason why the rows of the two runs are not paired; empty if they are paired.
    confidence_level : float
    reasons : tuple of str
        For each segment, the reason why its interval is undefined, such as "no row differs"; empty
        if the interval is defined.
    catalog : Catalog
        Catalog that defines the metric.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y, region = [0, 1] * 100, ["north"] * 100 + ["south"] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10, segments={"region": region})
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30, segments={"region": region})
    >>> both = {"forest": forest, "linear": linear}
    >>> pair = compare(both, rank_by="multiclass/accuracy", segments="region").segments[0]
    >>> pair.first, pair.second, pair.differences.round(2).tolist(), pair.contrary
    ('forest', 'linear', [0.4, 0.0], ())
    """

    column: str
    metric: str
    first: str
    second: str
    segments: tuple[str, ...]
    rows: IntArray
    first_values: FloatArray
    second_values: FloatArray
    differences: FloatArray
    errors: FloatArray
    low: FloatArray
    high: FloatArray
    overall: Difference
    interaction: Interaction
    p_adjusted: float
    paired: bool
    reason: str
    confidence_level: float
    reasons: tuple[str, ...] = ()
    catalog: Catalog = field(default=BUILT_IN, repr=False)

    @property
    def gain(self) -> float:
        """The overall difference, with the sign chosen so that larger values are better."""
        lower_is_better = self.catalog.lookup(self.metric).better == "lower"
        return self.overall.difference * (-1.0 if lower_is_better else 1.0)

    @cached_property
    def contrary(self) -> tuple[int, ...]:
        """Positions of the segments whose difference is significant and has the opposite sign.

        The interval of such a segment and the overall difference are on opposite sides of 0, and
        the adjusted p-value of the test is at most 1 - ``confidence_level``.
        """
        difference = self.overall.difference
        has_both_signs = self.p_adjusted <= 1 - self.confidence_level + ROUNDING
        if not has_both_signs or difference == 0:
            return ()
        opposite = self.high < 0 if difference > 0 else self.low > 0
        return tuple(np.flatnonzero(opposite).tolist())

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per segment.

        The column p_interaction is the same in all rows of a pair of runs, and it is adjusted for
        the number of pairs.
        """
        from cmtrack._pandas import pd

        return pd.DataFrame(
            {
                "column": self.column,
                "segment": self.segments,
                "metric": self.metric,
                "first": self.first,
                "second": self.second,
                "rows": self.rows,
                "first_value": self.first_values,
                "second_value": self.second_values,
                "difference": self.differences,
                "low": self.low,
                "high": self.high,
                "p_interaction": self.p_adjusted,
                "paired": self.paired,
                "reason": [self.reason or why for why in self.reasons] or self.reason,
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the differences as plain data that still contain NumPy arrays."""
        return {
            "column": self.column,
            "metric": self.metric,
            "first": self.first,
            "second": self.second,
            "segments": self.segments,
            "rows": self.rows,
            "first_values": self.first_values,
            "second_values": self.second_values,
            "differences": self.differences,
            "standard_errors": self.errors,
            "low": self.low,
            "high": self.high,
            "overall": vars(self.overall),
            "interaction": self.interaction._asdict() | {"p_adjusted": self.p_adjusted},
            "contrary": [self.segments[place] for place in self.contrary],
            "paired": self.paired,
            "reason": self.reason,
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, eq=False)
class SegmentComparison(Sequence[SegmentDifferences]):
    """Differences by segment between the leader of a ranking and other runs.

    Attributes
    ----------
    pairs : tuple of SegmentDifferences
        Differences between the leader and another run, one entry for each column, metric and run.
    notes : tuple of str
        Notes on runs and metrics that are not compared by segment, with the reasons.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y, region = [0, 1] * 100, ["north"] * 100 + ["south"] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10, segments={"region": region})
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30, segments={"region": region})
    >>> both = {"forest": forest, "linear": linear}
    >>> found = compare(both, rank_by="multiclass/accuracy", segments="region").segments
    >>> found, found[0].segments
    (SegmentComparison(forest minus linear by region), ('south', 'north'))
    """

    pairs: tuple[SegmentDifferences, ...] = ()
    notes: tuple[str, ...] = ()

    def __getitem__(self, place: Any) -> Any:
        return self.pairs[place]

    def __iter__(self) -> Iterator[SegmentDifferences]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def tables(self) -> list[list[SegmentDifferences]]:
        """The pairs of runs, grouped into one list for each column and metric."""
        by_table: dict[tuple[str, str], list[SegmentDifferences]] = {}
        for pair in self.pairs:
            by_table.setdefault((pair.column, pair.metric), []).append(pair)
        return list(by_table.values())

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per column, metric, other run and segment."""
        from cmtrack._pandas import pd

        if not self.pairs:
            return pd.DataFrame()
        return pd.concat([pair.to_frame() for pair in self.pairs], ignore_index=True)

    def __repr__(self) -> str:
        pairs = [f"{pair.first} minus {pair.second} by {pair.column}" for pair in self.pairs]
        return printable(f"SegmentComparison({', '.join(pairs)})")

    def _repr_html_(self) -> str:
        content = notebook.sentence("No segments")
        if self.pairs:
            content = notebook.table(self.to_frame())
        return notebook.view(content, notes=self.notes)


def by_segment(
    sides: Sequence[tuple[str, BaseEvaluation]],
    columns: Sequence[str],
    metrics: Sequence[str],
    confidence_level: float,
) -> SegmentComparison:
    """Compare an evaluation with up to five other evaluations in each segment of the rows.

    ``sides``: names and evaluations; the first evaluation, such as the leader of a ranking, is
        compared with each of the others.
    ``columns``: names of columns, or of combinations of columns, that define the segments.
    ``confidence_level``: confidence level at which all intervals for a column and a metric hold
        simultaneously.

    Raises ValueError if one of the columns does not define segments in any run.
    """
    available = dict.fromkeys(name for _, evaluation in sides for name in _tables(evaluation))
    for column in columns:
        if column not in available:
            why = "the runs were evaluated without segments"
            if available:
                why = f"the columns are {list(available)}"
            raise ValueError(f"no run has segments by {column!r}{near(column, available)}; {why}")
    compared: list[SegmentDifferences] = []
    notes: list[str] = []
    if len(sides) - 1 > MAX_OTHERS:
        notes.append(
            f"The leader is compared by segment with the next {MAX_OTHERS} of {len(sides) - 1} "
            "runs."
        )
    for column in columns:
        for metric in metrics:
            pairs, reasons = _pairs(
                sides[0], sides[1 : MAX_OTHERS + 1], column, metric, confidence_level
            )
            compared += pairs
            notes += reasons
    return SegmentComparison(tuple(compared), tuple(dict.fromkeys(notes)))


def _pairs(
    leader: tuple[str, BaseEvaluation],
    others: Iterable[tuple[str, BaseEvaluation]],
    column: str,
    metric: str,
    confidence_level: float,
) -> tuple[list[SegmentDifferences], list[str]]:
    """Return the pairs of runs for a column and a metric, and notes on runs that are left out.

    The intervals are simultaneous for all pairs.
    """
    samples: list[tuple[str, Difference, _Sample]] = []
    notes = []
    name, first = leader
    options = first.catalog.depends_on(metric)
    for other, second in others:
        different = why_apart(Traits.of(first), Traits.of(second), options)
        sample: _Sample | str
        if different is None:
            sample = _sample(first, second, column, metric)
        else:
            sample = f"they were evaluated {different.value}"
        if isinstance(sample, str):
            pair = f"{quoted(name)} and {quoted(other)}"
            notes.append(f"{pair} are not compared by {quoted(column)}: {sample}.")
            continue
        all_rows = paired_differences(
            first, second, metrics=[metric], confidence_level=confidence_level
        )
        samples.append((other, all_rows[metric], sample))
    better = "lower" if first.catalog.lookup(metric).better == "lower" else "higher"
    together = sum(sample.defined for *_, sample in samples)
    tests = [
        qualitative_interaction(sample.differences, sample.normal_errors) for *_, sample in samples
    ]
    pvalues = np.array([test.pvalue for test in tests])
    tested = np.isfinite(pvalues)
    pvalues[tested] = holm(pvalues[tested])
    pairs = []
    for (other, overall, sample), test, pvalue in zip(
        samples, tests, pvalues.tolist(), strict=True
    ):
        low, high = sample.intervals(together, confidence_level)
        order = order_of_segments(sample.first, sample.rows, better)
        pairs.append(
            SegmentDifferences(
                column,
                metric,
                name,
                other,
                segments=tuple(sample.segments[k] for k in order.tolist()),
                rows=sample.rows[order],
                first_values=sample.first.values[order],
                second_values=sample.second.values[order],
                differences=sample.differences[order],
                errors=sample.errors[order],
                low=low[order],
                high=high[order],
                overall=overall,
                interaction=test,
                p_adjusted=pvalue,
                paired=sample.reason == "",
                reason=sample.reason,
                confidence_level=confidence_level,
                reasons=tuple(sample.reasons[k] for k in order.tolist()),
                catalog=first.catalog,
            )
        )
    return pairs, notes


# -- one pair --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Sample:
    """Values and standard errors of two evaluations by segment, without intervals."""

    segments: tuple[str, ...]
    rows: IntArray
    first: Estimates
    second: Estimates
    errors: FloatArray
    pairs: tuple[Paired | None, ...] | None
    reason: str

    @property
    def reasons(self) -> tuple[str, ...]:
        """For each segment, the reason why its interval is undefined; empty if it is defined."""
        return tuple(
            "" if pair is None else pair.reason()
            for pair in self.pairs or (None,) * len(self.segments)
        )

    @property
    def normal_errors(self) -> FloatArray:
        """Standard errors for the test of opposite signs, which assumes normal distributions.

        A standard error is NaN if the segment has no interval or, unless the metric is a share, if
        the two runs differ in only a few rows of the segment.
        """
        if self.pairs is None:
            return self.errors
        errors = np.full(len(self.errors), math.nan)
        for k, pair in enumerate(self.pairs):
            if pair is None or pair.reason():
                continue
            if pair.shares is not None or math.isinf(pair.sign_test[0, 1]):
                errors[k] = self.errors[k]
        return errors

    @property
    def differences(self) -> FloatArray:
        return self.first.values - self.second.values

    @property
    def defined(self) -> int:
        """Number of segments whose difference is defined."""
        return int(np.isfinite(self.differences).sum())

    def intervals(self, together: int, confidence_level: float) -> tuple[FloatArray, FloatArray]:
        """Compute intervals that hold simultaneously for ``together`` differences.

        If the rows are paired, the intervals are computed by
        :class:`~cmtrack.metrics.paired.Paired`. If the rows are not paired, the two evaluations are
        treated as independent.
        """
        if self.pairs is None:
            unpaired = differences(self.first, self.second, confidence_level, together)
            return unpaired.low, unpaired.high
        quantile = normal_quantile(simultaneous_level(max(together, 1), confidence_level))
        low = np.full(len(self.pairs), math.nan)
        high = low.copy()
        for k, pair in enumerate(self.pairs):
            if pair is not None:
                pair_low, pair_high = pair.interval(quantile)
                low[k] = pair_low[0, 1]
                high[k] = pair_high[0, 1]
        return low, high


def _sample(
    first: BaseEvaluation, second: BaseEvaluation, column: str, metric: str
) -> _Sample | str:
    """Return the values of two evaluations by segment, or the reason why they are not compared.

    The evaluations are compared row by row if both still contain their rows.
    """
    tables = []
    for name, side in (("first", first), ("second", second)):
        if not isinstance(side, Evaluation) or column not in side.segments:
            return f"the {name} has no such segments"
        if metric not in side.metrics:
            return f"the {name} has no {metric}"
        tables.append(side.segments[column])
    first_table, second_table = tables
    if first.catalog.lookup(metric).better == "nearest zero":
        others = "only metrics whose highest or lowest value is best"
        return f"{metric} is best near 0, but {others} are compared by segment"
    place = {value: k for k, value in enumerate(second_table.values)}
    if set(place) != set(first_table.values):
        return "their rows are divided into different segments"
    order = np.array([place[value] for value in first_table.values])
    if not np.array_equal(first_table.sizes, second_table.sizes[order]):
        return "their rows are divided differently"
    unpaired = why_unpaired(first, second)
    if unpaired:
        reason = unpaired.between(first, second)
    else:
        reason = _why_segments_unpaired(first_table, second_table, order)
    for side in (first, second):
        if not reason and side.influence(metric) is None:
            reason = why_no_error(side, metric)
    if not reason:
        return _sample_by_rows(first_table, second_table, order, metric)
    try:
        a = first_table.estimates(metric)
        b = second_table.estimates(metric)
    except ValueError as error:
        return str(error)
    b = replace(
        b,
        values=b.values[order],
        errors=b.errors[order],
        n=None if b.n is None else b.n[order],
        degrees=None if b.degrees is None else b.degrees[order],
    )
    errors = np.hypot(a.errors, b.errors)
    return _Sample(first_table.texts, first_table.sizes, a, b, errors, None, reason)


def _tables(evaluation: BaseEvaluation) -> Mapping[str, SegmentTable]:
    return evaluation.segments if isinstance(evaluation, Evaluation) else {}


def _why_segments_unpaired(first: SegmentTable, second: SegmentTable, order: IntArray) -> str:
    """Return the reason why the rows of segments are not paired; empty if they are paired.

    ``order``: for each segment of the first table, the position of this segment in the second
    table.
    """
    if first.codes is None or second.codes is None:
        return (
            "the segments of the rows are unknown (an earlier version kept rows without segments)"
        )
    if not np.array_equal(order[first.codes], second.codes):
        return "the rows are in different segments"
    return ""


def _sample_by_rows(
    first: SegmentTable, second: SegmentTable, order: IntArray, metric: str
) -> _Sample:
    """Return the values by segment, with standard errors of the differences from paired rows."""
    first_parts = first.by_rows(metric)
    second_parts = second.by_rows(metric)
    size = len(first_parts)
    values = np.full((2, size), math.nan)
    errors = np.full(size, math.nan)
    pairs: list[Paired | None] = [None] * size
    for k, a in enumerate(first_parts):
        b = second_parts[order[k]]
        values[:, k] = [side.metrics.get(metric, math.nan) for side in (a, b)]
        if not np.isfinite(values[:, k]).all():
            continue
        pair = paired((a, b), metric, None if a.rows is None else a.rows.design)
        if pair is not None:
            pairs[k] = pair
            errors[k] = pair.error[0, 1]
    return _Sample(
        segments=first.texts,
        rows=first.sizes,
        first=replace(first.estimates(metric), values=values[0]),
        second=Estimates(values[1], np.full(size, math.nan)),
        errors=errors,
        pairs=tuple(pairs),
        reason="",
    )


# -- gates -----------------------------------------------------------------------------------------


def judged_by_segment(
    gate: Gate, evaluation: BaseEvaluation, baseline: BaseEvaluation | None
) -> GateResult:
    """Return the result of a gate on segments, such as ``segment/region/*/binary/recall >= 0.6``.

    A gate on all segments is tested with simultaneous intervals. A gate on a single segment is
    tested with the ordinary interval of this segment.
    """
    failed = partial(GateResult, gate, math.nan, False, undecided=True)
    if gate.difference and baseline is None:
        return failed("there is no baseline to take a difference from")
    tables = _tables(evaluation)
    name = _called(gate.column, tables)
    if name is None:
        return failed(f"the run has no segments by {quoted(gate.column)}")
    table = tables[name]
    if gate.metric not in evaluation.metrics:
        return failed(f"the run has no {gate.metric}")
    chosen = None
    if gate.segment != "*":
        chosen = _called(gate.segment, table.texts)
        if chosen is None:
            hint = near(gate.segment, table.texts)
            return failed(f"{quoted(name)} has no segment {quoted(gate.segment)}{hint}")
    level = evaluation.confidence_level
    if gate.difference and baseline is not None:
        if gate.metric not in baseline.metrics:
            return failed(f"the baseline has no {gate.metric}")
        sample = _sample(evaluation, baseline, name, gate.metric)
        if isinstance(sample, str):
            return failed(f"the run and the baseline are not compared by {quoted(name)}: {sample}")
        values = sample.differences
        reasons = list(sample.reasons)
        low, high = sample.intervals(sample.defined if chosen is None else 1, level)
    else:
        try:
            estimates = table.estimates(gate.metric)
            if chosen is None:
                low, high = table.intervals(gate.metric)
            else:
                low, high = table.own_intervals(gate.metric, level)
        except ValueError as error:
            return failed(str(error))
        values = estimates.values
        reasons = too_few_clusters(estimates)
    few = {text: reason for text, reason in zip(table.texts, reasons, strict=True) if reason}
    numbers = {
        text: (float(values[k]), (float(low[k]), float(high[k])))
        for k, text in enumerate(table.texts)
        if chosen in (None, text)
    }
    result = gate.check_segments(numbers, few)
    if not result.segment:
        return result
    value, ends = numbers[result.segment]
    half_width = (ends[1] - ends[0]) / 2
    standard_error = half_width / normal_quantile(level)
    return with_rows_more(result, value, standard_error, evaluation.n_samples, level)


def too_few_clusters(estimates: Estimates) -> list[str]:
    """Return a note for each segment with too few clusters for a standard error, or ''."""
    notes = [""] * len(estimates.values)
    if estimates.degrees is None:
        return notes
    for k, n in enumerate((estimates.degrees + 1).tolist()):
        if n < FEWEST_CLUSTERS:
            notes[k] = f"only about {math.floor(n)} clusters, too few for an interval"
    return notes


def _called(wanted: str, names: Iterable[str]) -> str | None:
    """Find a name, given in plain form or as encoded in metric names; None if not found."""
    return next((name for name in names if wanted in (name, encode_label(name))), None)


__all__ = [
    "MAX_OTHERS",
    "SegmentComparison",
    "SegmentDifferences",
    "by_segment",
    "judged_by_segment",
]
