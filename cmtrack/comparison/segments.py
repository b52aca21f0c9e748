"""Two models by segment of the rows: differences with intervals that hold together, and the test of both signs.

"Better overall, worse for some" is said only where the test of Gail and Simon (1985) and the
segment's own simultaneous interval both show it: of many segments some always look worse.
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
from cmtrack.evaluation.gates import Gate, GateResult
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
"""Runs that the leader is compared with by segment."""
FEWEST_CLUSTERS = 5
"""Effective clusters of a segment, fewer of which do not decide a gate on an end of its own interval."""


@dataclass(frozen=True, eq=False)
class SegmentDifferences:
    """One metric of two evaluations by segment (S segments).

    Attributes
    ----------
    column, metric : str
    first, second : str
        Names of the two; the first leads a ranking.
    segments : tuple of str
        Texts of the segments, the worst of the first evaluation first.
    rows : ndarray of shape (S,)
        Rows of each segment, whatever their weight.
    first_values, second_values : ndarray of shape (S,)
        NaN where the metric is undefined.
    differences, errors : ndarray of shape (S,)
        First less second, and their standard errors; NaN where a side is undefined, or no error is
        known.
    low, high : ndarray of shape (S,)
        Intervals that hold together for all segments, and for all pairs of a comparison.
    overall : Difference
        Of all rows.
    interaction : Interaction
        The test that the differences have both signs.
    p_adjusted : float
        Its p-value, adjusted by Holm (1979) for all pairs of a comparison.
    paired : bool
        Whether the errors use that both judged the same rows.
    reason : str
        Why not.
    confidence_level : float
    reasons : tuple of str
        Why a segment has no interval, such as "no row differs"; empty where it has one.
    catalog : Catalog
        What the metric means.

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
        """The overall difference with the sign that makes larger better."""
        return self.overall.difference * (
            -1.0 if self.catalog.lookup(self.metric).better == "lower" else 1.0
        )

    @cached_property
    def contrary(self) -> tuple[int, ...]:
        """Places of the segments with a significant difference opposite to the overall one.

        Their intervals lie on the other side of 0 than the overall difference, and the adjusted
        p-value is at most one less the confidence level; none otherwise.
        """
        if (
            not self.p_adjusted <= 1 - self.confidence_level + ROUNDING
            or self.overall.difference == 0
        ):
            return ()
        other = self.high < 0 if self.overall.difference > 0 else self.low > 0
        return tuple(np.flatnonzero(other).tolist())

    def to_frame(self) -> pd.DataFrame:
        """One row per segment; p_interaction is that of the pair, adjusted for all pairs."""
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
        """Plain data; arrays as they are."""
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
    """The leader of a ranking against other runs, by segment.

    Attributes
    ----------
    pairs : tuple of SegmentDifferences
        One for each column, metric and other run.
    notes : tuple of str
        Runs and metrics that are not compared by segment, and why.

    Examples
    --------
    >>> from cmtrack import compare, evaluate
    >>> y, region = [0, 1] * 100, ["north"] * 100 + ["south"] * 100
    >>> forest = evaluate(y, [0, 1] * 90 + [1, 0] * 10, segments={"region": region})
    >>> linear = evaluate(y, [0, 1] * 70 + [1, 0] * 30, segments={"region": region})
    >>> both = {"forest": forest, "linear": linear}
    >>> found = compare(both, rank_by="multiclass/accuracy", segments="region").segments
    >>> found, found[0].segments
    (SegmentComparison(forest less linear by region), ('south', 'north'))
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
        """The pairs of each column and metric."""
        by_table: dict[tuple[str, str], list[SegmentDifferences]] = {}
        for pair in self.pairs:
            by_table.setdefault((pair.column, pair.metric), []).append(pair)
        return list(by_table.values())

    def to_frame(self) -> pd.DataFrame:
        """One row per column, metric, other run and segment."""
        from cmtrack._pandas import pd

        return (
            pd.concat([pair.to_frame() for pair in self.pairs], ignore_index=True)
            if self.pairs
            else pd.DataFrame()
        )

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{pair.first} less {pair.second} by {pair.column}" for pair in self.pairs
        )
        return printable(f"SegmentComparison({shown})")

    def _repr_html_(self) -> str:
        shown = notebook.table(self.to_frame()) if self.pairs else notebook.sentence("No segments")
        return notebook.view(shown, notes=self.notes)


def by_segment(
    sides: Sequence[tuple[str, BaseEvaluation]],
    columns: Sequence[str],
    metrics: Sequence[str],
    confidence_level: float,
) -> SegmentComparison:
    """Compare an evaluation with at most 5 next ones, by segment of the rows.

    ``sides``: the one to compare first, such as the leader of a ranking.
    ``columns``: names of columns, or of crossed ones.
    ``confidence_level``: at which the intervals of one column and metric hold together, for all
    segments and runs.

    ValueError if no run has segments by a column.
    """
    available = dict.fromkeys(name for _, evaluation in sides for name in _tables(evaluation))
    for column in columns:
        if column not in available:
            there = (
                f"there are by {list(available)}"
                if available
                else "the runs were evaluated without segments"
            )
            raise ValueError(f"no run has segments by {column!r}{near(column, available)}; {there}")
    compared: list[SegmentDifferences] = []
    notes: list[str] = []
    if len(sides) - 1 > MAX_OTHERS:
        notes.append(
            f"By segment the leader is compared with the next {MAX_OTHERS} of {len(sides) - 1} "
            "runs."
        )
    for column in columns:
        for metric in metrics:
            pairs, why = _pairs(
                sides[0], sides[1 : MAX_OTHERS + 1], column, metric, confidence_level
            )
            compared += pairs
            notes += why
    return SegmentComparison(tuple(compared), tuple(dict.fromkeys(notes)))


def _pairs(
    leader: tuple[str, BaseEvaluation],
    others: Iterable[tuple[str, BaseEvaluation]],
    column: str,
    metric: str,
    confidence_level: float,
) -> tuple[list[SegmentDifferences], list[str]]:
    """The pairs of one column and metric, with intervals that hold together for all of them, and notes."""
    samples: list[tuple[str, Difference, _Sample]] = []
    notes = []
    name, first = leader
    for other, second in others:
        options = first.catalog.depends_on(metric)
        apart = why_apart(Traits.of(first), Traits.of(second), options)
        sample = (
            _sample(first, second, column, metric)
            if apart is None
            else f"they were evaluated {apart.value}"
        )
        if isinstance(sample, str):
            notes.append(
                f"{quoted(name)} and {quoted(other)} are not compared by {quoted(column)}: "
                f"{sample}."
            )
        else:
            overall = paired_differences(
                first, second, metrics=[metric], confidence_level=confidence_level
            )[metric]
            samples.append((other, overall, sample))
    better = "lower" if first.catalog.lookup(metric).better == "lower" else "higher"
    together = sum(sample.defined for *_, sample in samples)
    tests = [qualitative_interaction(sample.differences, sample.told) for *_, sample in samples]
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


# -- one pair ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Sample:
    """Values and errors of two evaluations by segment, before any interval."""

    segments: tuple[str, ...]
    rows: IntArray
    first: Estimates
    second: Estimates
    errors: FloatArray
    pairs: tuple[Paired | None, ...] | None
    reason: str

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons why segments have no interval; empty where they have one."""
        return tuple(
            "" if pair is None else pair.reason()
            for pair in self.pairs or (None,) * len(self.segments)
        )

    @property
    def told(self) -> FloatArray:
        """Errors for the test of both signs, which takes differences for normal.

        NaN of segments without an interval and, except of shares, of those in which few rows
        differ.
        """
        if self.pairs is None:
            return self.errors
        normal = [
            pair is not None
            and not pair.reason()
            and (pair.shares is not None or math.isinf(pair.sign_test[0, 1]))
            for pair in self.pairs
        ]
        return np.where(normal, self.errors, math.nan)

    @property
    def differences(self) -> FloatArray:
        return self.first.values - self.second.values

    @property
    def defined(self) -> int:
        """Number of the differences."""
        return int(np.isfinite(self.differences).sum())

    def intervals(self, together: int, confidence_level: float) -> tuple[FloatArray, FloatArray]:
        """Intervals that hold with ``together`` others.

        Paired ones are those of :class:`~cmtrack.metrics.paired.Paired`, others those of two
        samples.
        """
        if self.pairs is None:
            unpaired = differences(self.first, self.second, confidence_level, together)
            return unpaired.low, unpaired.high
        quantile = normal_quantile(simultaneous_level(max(together, 1), confidence_level))
        none = np.full((2, 2), math.nan)
        ends = [(none, none) if pair is None else pair.interval(quantile) for pair in self.pairs]
        low, high = np.array([[end[0, 1] for end in both] for both in ends]).reshape(-1, 2).T
        return low, high


def _sample(
    first: BaseEvaluation, second: BaseEvaluation, column: str, metric: str
) -> _Sample | str:
    """Values of two evaluations by segment, and by row if the rows are available; otherwise a reason."""
    tables = []
    for side in (first, second):
        if column not in _tables(side):
            return f"the {'first' if side is first else 'second'} has no such segments"
        if metric not in side.metrics:
            return f"the {'first' if side is first else 'second'} has no {metric}"
        tables.append(_tables(side)[column])
    ours, theirs = tables
    if first.catalog.lookup(metric).better == "nearest zero":
        others = "only metrics that are best high or low"
        return f"{metric} is best near 0, and {others} are compared by segment"
    place = {value: k for k, value in enumerate(theirs.values)}
    if set(place) != set(ours.values):
        return "their rows are divided into different segments"
    order = np.array([place[value] for value in ours.values])
    if not np.array_equal(ours.sizes, theirs.sizes[order]):
        return "their rows are divided differently"
    assert isinstance(first, Evaluation)  # it has segments
    assert isinstance(second, Evaluation)
    reason = _why_unpaired(first, second, ours, theirs, order, metric)
    if not reason:
        return _by_rows(ours, theirs, order, metric)
    try:
        a, b = ours.estimates(metric), theirs.estimates(metric)
    except ValueError as error:
        return str(error)
    n, degrees = (None if one is None else one[order] for one in (b.n, b.degrees))
    b = replace(b, values=b.values[order], errors=b.errors[order], n=n, degrees=degrees)
    return _Sample(ours.texts, ours.sizes, a, b, np.hypot(a.errors, b.errors), None, reason)


def _tables(evaluation: BaseEvaluation) -> Mapping[str, SegmentTable]:
    return evaluation.segments if isinstance(evaluation, Evaluation) else {}


def _why_unpaired(
    first: Evaluation,
    second: Evaluation,
    ours: SegmentTable,
    theirs: SegmentTable,
    order: IntArray,
    metric: str,
) -> str:
    """The reason why segments are not compared row by row; empty if they are."""
    apart = why_unpaired(first, second)
    if apart:
        return apart.between(first, second)
    a, b = ours.codes, theirs.codes
    if a is None or b is None:
        return (
            "the segments of the rows are not known (an earlier version kept the rows without them)"
        )
    if not np.array_equal(order[a], b):
        return "the rows are in different segments"
    return next(
        (why_no_error(side, metric) for side in (first, second) if side.influence(metric) is None),
        "",
    )


def _by_rows(ours: SegmentTable, theirs: SegmentTable, order: IntArray, metric: str) -> _Sample:
    """The errors of the differences from the rows of each segment."""
    parts, others = ours.by_rows(metric), theirs.by_rows(metric)
    size = len(parts)
    values, errors = np.full((2, size), math.nan), np.full(size, math.nan)
    pairs: list[Paired | None] = [None] * size
    for k in range(size):
        a, b = parts[k], others[order[k]]
        values[:, k] = [side.metrics.get(metric, math.nan) for side in (a, b)]
        if not np.isfinite(values[:, k]).all():
            continue
        pair = paired((a, b), metric, None if a.rows is None else a.rows.design)
        if pair is not None:
            pairs[k], errors[k] = pair, pair.error[0, 1]
    first = replace(ours.estimates(metric), values=values[0])
    second = Estimates(values[1], np.full(size, math.nan))
    return _Sample(ours.texts, ours.sizes, first, second, errors, tuple(pairs), "")


# -- gates -------------------------------------------------------------------------------------------------------


def judged_by_segment(
    gate: Gate, evaluation: BaseEvaluation, baseline: BaseEvaluation | None
) -> GateResult:
    """The result of a gate on segments, such as ``segment/region/*/binary/recall.low >= 0.6``.

    Of all segments the intervals hold together; that of one that is named is its own.
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
    chosen = None if gate.segment == "*" else _called(gate.segment, table.texts)
    if gate.segment != "*" and chosen is None:
        return failed(
            f"{quoted(name)} has no segment {quoted(gate.segment)}{near(gate.segment, table.texts)}"
        )
    level = evaluation.confidence_level
    if gate.difference and baseline is not None:
        if gate.metric not in baseline.metrics:
            return failed(f"the baseline has no {gate.metric}")
        sample = _sample(evaluation, baseline, name, gate.metric)
        if isinstance(sample, str):
            return failed(f"the run and the baseline are not compared by {quoted(name)}: {sample}")
        values, reasons = sample.differences, list(sample.reasons)
        low, high = sample.intervals(sample.defined if chosen is None else 1, level)
    else:
        try:
            estimates = table.estimates(gate.metric)
            values, reasons = estimates.values, too_few_clusters(estimates)
            low, high = (
                table.intervals(gate.metric)
                if chosen is None
                else table.own_intervals(gate.metric, level)
            )
        except ValueError as error:
            return failed(str(error))
    numbers = zip(
        table.texts, values.tolist(), zip(low.tolist(), high.tolist(), strict=True), strict=True
    )
    few = {text: reason for text, reason in zip(table.texts, reasons, strict=True) if reason}
    return gate.check_segments(
        {text: (value, ends) for text, value, ends in numbers if chosen in (None, text)}, few
    )


def too_few_clusters(estimates: Estimates) -> list[str]:
    """A note for each segment with too few clusters for its error; empty for others."""
    if estimates.degrees is None:
        return [""] * len(estimates.values)
    counts = (estimates.degrees + 1).tolist()
    return [
        f"only about {math.floor(n)} clusters: too few to say" if n < FEWEST_CLUSTERS else ""
        for n in counts
    ]


def _called(wanted: str, names: Iterable[str]) -> str | None:
    """Match a segment by its raw name, or by its encoded name in a metric."""
    return next((name for name in names if wanted in (name, encode_label(name))), None)


__all__ = [
    "MAX_OTHERS",
    "SegmentComparison",
    "SegmentDifferences",
    "by_segment",
    "judged_by_segment",
]
