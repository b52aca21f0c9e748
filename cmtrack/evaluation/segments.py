"""Segments of an evaluation: tables of metrics by segment, disparity, and the search for the worst ones.

Everything follows from the statistics that are kept of each segment; where the rows are at hand, what these do not
hold (ROC, the curve of calibration, errors of rows that belong together) comes from the segment's rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack import notebook
from cmtrack._lazy import cached_property
from cmtrack.evaluation.compute import compute_single
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import OF_SEGMENTS, encode_label, near, segment_parts
from cmtrack.metrics.own import UNKNOWN
from cmtrack.metrics.results import Clusters, Results
from cmtrack.metrics.views import EvaluationViews
from cmtrack.names import quoted
from cmtrack.segments import (
    Disparity,
    Estimates,
    SegmentColumn,
    SegmentSearch,
    differences,
    disparity,
    order_of_segments,
    search_columns,
    simultaneous_level,
    worst_segments,
)
from cmtrack.segments.inference import Differences, with_zero
from cmtrack.segments.search import N_PERMUTATIONS
from cmtrack.statistics.collected import Statistics, collect_rows, of_segments
from cmtrack.statistics.design import cluster_degrees
from cmtrack.statistics.inputs import FloatArray, IntArray, align_rows
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.segment_values import CROSSED, SegmentRows, plain_value, value_texts
from cmtrack.statistics.segmented import SegmentCounts
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.evaluation.result import Evaluation

DEFAULT_METRICS = ("multiclass/accuracy", "binary/recall", "binary/precision")
_MEANS = ("probability/log_loss", "probability/brier", "probability/spherical", "cost/mean")
_ROWS_AWAY = "the rows are not here, and its intervals do not know which of them belong together"


class Segments(Mapping[str, "SegmentTable"]):
    """The segments of an evaluation, by the name of the column that divides the rows.

    Crossings are found by a tuple of names, or by their joined name such as ``"region × age_band"``.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> region = ["north", "north", "south", "south"]
    >>> evaluation = evaluate([0, 1, 1, 0], [0, 1, 0, 0], segments={"region": region})
    >>> list(evaluation.segments), evaluation.segments["region"]
    (['region'], SegmentTable(region: 2 segments of 4 rows))
    """

    def __init__(self, evaluation: Evaluation) -> None:
        held = evaluation.statistics.segments
        self._tables = {
            name: SegmentTable(evaluation, name) for name in (held.columns if held else ())
        }

    def __getitem__(self, name: Any) -> SegmentTable:
        text = CROSSED.join(map(str, name)) if isinstance(name, tuple) else str(name)
        if text in self._tables:
            return self._tables[text]
        if not self._tables:
            raise KeyError(
                f"there are no segments, by {text!r} or otherwise: the rows were evaluated without segments"
            )
        raise KeyError(
            f"there are no segments by {text!r}{near(text, self._tables)}; there are by {list(self)}"
        )

    @property
    def note(self) -> str:
        """A sentence for clustered rows that are not available: metrics then have values and no intervals."""
        lacking = any(table.without_clusters for table in self._tables.values())
        return (
            "metrics of segments have no intervals: rows belong together, and they are not here"
            if lacking
            else ""
        )

    def named(self, name: str) -> dict[str, float]:
        """The values of a metric of segments, by full name.

        Parameters
        ----------
        name : str
            ``segment/<column>/<value>/<metric>``, such as ``segment/region/north/binary/recall``, with column and value
            spelled as labels in metric names are; ``*`` in the place of the value stands for all of them.

        Raises
        ------
        KeyError
            If there is no such column, segment or metric.
        ValueError
            If the name has other parts, or the metric needs rows that are not here.
        """
        parts = segment_parts(name)
        if parts is None:
            raise ValueError(
                f"a metric of segments must be called segment/<column>/<value>/<metric>, got {name!r}"
            )
        column, value, metric = parts
        table = self[next((one for one in self if encode_label(one) == column), column)]
        texts = [encode_label(text) for text in table.texts]
        if value != "*" and value not in texts:
            raise KeyError(f"{table.name!r} has no segment {value!r:.80}{near(value, texts)}")
        values = zip(texts, table.estimates(metric).values.tolist(), strict=True)
        return {
            f"{OF_SEGMENTS}{column}/{text}/{metric}": number
            for text, number in values
            if value in ("*", text)
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)

    def __repr__(self) -> str:
        return printable(
            f"Segments({', '.join(f'{name}: {len(table)}' for name, table in self._tables.items())})"
        )

    def _repr_html_(self) -> str:
        tables = [table._repr_html_() for table in self._tables.values()] or [
            notebook.sentence("No segments")
        ]
        return notebook.view(*tables, notebook.sentence(self.note))


@dataclass(frozen=True, eq=False)
class SegmentTable:
    """The segments of the rows by one column, or by crossed ones.

    ``table["north"]`` is the evaluation of a segment; the counts of all segments sum to those of all rows.

    Attributes
    ----------
    evaluation : Evaluation
        Of all rows.
    name : str
        Of the column.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> region = ["north", "north", "south", "south"]
    >>> table = evaluate([0, 1, 1, 0], [0, 1, 0, 0], segments={"region": region}).segments["region"]
    >>> table.values, table.sizes.tolist(), table["south"].metrics["multiclass/accuracy"]
    (('north', 'south'), [2, 2], 0.5)
    """

    evaluation: Evaluation
    name: str

    @property
    def values(self) -> tuple[Any, ...]:
        """The value of each segment: a text, number or boolean, None for rows without one, tuples of crossings."""
        return self._counts.values

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The values as texts for people, all different: "(missing)" for rows without a value."""
        return value_texts(self.values)

    @property
    def sizes(self) -> IntArray:
        """Rows of each segment, shape (S,), whatever their weight."""
        return self._counts.sizes

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, value: Any) -> Evaluation:
        """The evaluation of one segment, from its rows if they are available.

        Parameters
        ----------
        value : object
            One of :attr:`values`, or of :attr:`texts`.
        """
        for names, wanted in ((self.values, plain_value(value)), (self.texts, str(value))):
            if wanted in names:
                return self._evaluation(names.index(wanted))
        raise KeyError(f"{self.name!r} has no segment {value!r:.80}{near(str(value), self.texts)}")

    def to_frame(self, metrics: str | Sequence[str] | None = None) -> pd.DataFrame:
        """One row per metric and segment; of each metric the worst segment first.

        Where chance explains all differences, the largest segment stands first.

        Parameters
        ----------
        metrics : str or list of str, optional
            Full names; by default accuracy and, of two groups, recall and precision.

        Returns
        -------
        DataFrame
            segment, metric, rows (of the segment, whatever their weight), value, low and high (an interval that holds
            for all segments of all columns together), rest (the value of all rows outside), difference to the rest
            with difference_low and difference_high (which hold for all segments of this column together, and hold 0
            where the interval of the gap of :meth:`disparity` does), and why the metric is undefined.

        Raises
        ------
        KeyError
            If the evaluation has no such metric.
        ValueError
            If a metric needs rows that are not here.
        """
        from cmtrack._pandas import pd

        blocks, chosen = [], self._chosen(metrics)
        for side in (False, True):
            self._judge(chosen, side)
        for metric in chosen:
            inside, outside = self.estimates(metric), self._estimates(metric, outside=True)
            low, high = self.intervals(metric)
            gaps = self._to_rest(inside, outside)
            better = (
                "lower" if self.evaluation.catalog.lookup(metric).better == "lower" else "higher"
            )
            order = order_of_segments(inside, self.sizes, better)
            undefined = [one.undefined.get(metric, "") for one in self._judged(metric)]
            table = {
                "segment": self.texts,
                "metric": metric,
                "rows": self.sizes,
                "value": inside.values,
                "low": low,
                "high": high,
                "rest": outside.values,
                "difference": gaps.values,
                "difference_low": gaps.low,
                "difference_high": gaps.high,
                "undefined": undefined,
            }
            blocks.append(pd.DataFrame(table).iloc[order])
        return pd.concat(blocks, ignore_index=True)

    def _to_rest(self, inside: Estimates, outside: Estimates) -> Differences:
        """The differences to the rest; none is shown if the gap may be 0."""
        level = self.evaluation.confidence_level
        gaps = differences(inside, outside, level)
        low, high = with_zero(gaps.low, gaps.high, disparity(inside, level).gap_low <= 0)
        return replace(gaps, low=low, high=high)

    def disparity(self, metric: str) -> Disparity:
        """The difference and the ratio of the best and the worst segment, with intervals that allow for the choice.

        ``lowest`` and ``highest`` are places in :attr:`values`.

        Raises
        ------
        KeyError, ValueError
            As :meth:`to_frame` does.
        """
        return disparity(self.estimates(metric), self.evaluation.confidence_level)

    def estimates(self, metric: str) -> Estimates:
        """The values of a metric with their standard errors, in the order of :attr:`values`.

        Raises
        ------
        KeyError, ValueError
            As :meth:`to_frame` does.
        """
        return self._estimates(metric)

    def order_of(self, metric: str) -> str:
        """The order of :meth:`to_frame` for people."""
        direction = self.evaluation.catalog.lookup(metric).better
        return "the worst first" if direction in ("higher", "lower") else "the lowest first"

    def intervals(self, metric: str) -> tuple[FloatArray, FloatArray]:
        """Simultaneous intervals over all segments of all columns, on the metric's own scale: low and high ends.

        Raises
        ------
        KeyError, ValueError
            As :meth:`to_frame` does.
        """
        inside, tables = self.estimates(metric), self.evaluation.segments.values()
        together = sum(
            int((inside if one.name == self.name else one.estimates(metric)).known.sum())
            for one in tables
        )
        level = simultaneous_level(max(together, 1), self.evaluation.confidence_level)
        return (
            self.own_intervals(metric, level)
            if inside.n is None or together < 2
            else inside.ends(level)
        )

    def own_intervals(self, metric: str, level: float) -> tuple[FloatArray, FloatArray]:
        """Intervals for each segment alone, not simultaneous."""
        inside = self.estimates(metric)
        if inside.n is not None:
            down, up = inside.arms(level)
            return inside.values - down, inside.values + up
        none = (math.nan, math.nan)
        ends = [one.intervals.get(metric, none) for one in self._at_level(metric, level)]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    @property
    def codes(self) -> IntArray | None:
        """Place of each row's segment in :attr:`values`, shape (n,); None without the rows."""
        return None if self._rows is None else self._rows.codes

    def by_rows(self, metric: str) -> list[Evaluation]:
        """The evaluations of all segments from their rows, with a metric alone.

        The rows must be at hand: see :attr:`codes`.
        """
        return [self._of_rows(place, (metric,)) for place in range(len(self))]

    def __repr__(self) -> str:
        return printable(
            f"SegmentTable({self.name}: {len(self)} segments of {int(self.sizes.sum())} rows)"
        )

    def _repr_html_(self) -> str:
        metric = self._chosen(None)[0]
        frame = self.to_frame(metric).drop(columns=["metric", "undefined"])
        lacking = int(frame["value"].isna().sum())
        title = self.evaluation.catalog.lookup(metric).heading()
        head = f"{title} by {quoted(self.name)}: {len(self)} segments, {self.order_of(metric)}"
        head += f"; undefined in {lacking}" if lacking else ""
        return notebook.view(notebook.sentence(head), notebook.table(frame))

    # -- evaluations of segments ---------------------------------------------------------------------------

    @property
    def _counts(self) -> SegmentCounts:
        held = self.evaluation.statistics.segments
        assert held is not None  # Segments has asked
        return held.columns[self.name]

    @property
    def _rows(self) -> SegmentRows | None:
        rows = self.evaluation.rows
        columns = rows.segments if isinstance(rows, Predictions) else ()
        return next((one for one in columns if one.name == self.name), None)

    @property
    def without_clusters(self) -> bool:
        """True for clustered rows that are not available, so that no segment's value has an error."""
        return self.evaluation.cluster_errors is not None and self._rows is None

    def _evaluation(self, place: int) -> Evaluation:
        if self._rows is not None:
            return self._of_rows(place, None)
        whole = self.evaluation
        part = _like(
            whole, of_segments(whole.statistics, self.name, whole.scored, [place])[0], None
        )
        return replace(part, remarks=(_ROWS_AWAY,)) if self.without_clusters else part

    def _of_rows(
        self, place: int, sections: tuple[str, ...] | None, outside: bool = False
    ) -> Evaluation:
        """The evaluation of the rows of one segment, or outside it, with sections of the whole or single metrics."""
        whole, segments = self.evaluation, self._rows
        assert segments is not None  # the caller has asked
        assert isinstance(whole.rows, Predictions)
        chosen = replace(whole.rows, segments=()).take((segments.codes == place) != outside)
        statistics = collect_rows(chosen, whole.counting)
        return replace(_like(whole, statistics, sections), rows=chosen).with_cluster_errors()

    @cached_property
    def _parts(self) -> list[EvaluationViews]:
        """The statistics of each segment as metrics see them."""
        return self._views(False)

    @cached_property
    def _rests(self) -> list[EvaluationViews]:
        """Those of the rows outside each."""
        return self._views(True)

    def _views(self, outside: bool) -> list[EvaluationViews]:
        whole = self.evaluation
        parts = of_segments(whole.statistics, self.name, whole.scored, outside=outside)
        return [whole._views.of_part(one, whole.confidence_level) for one in parts]

    @cached_property
    def _known(self) -> dict[tuple[str, bool], list[Results]]:
        """By metric, and whether outside of the segments, the results of all segments that hold it."""
        return {}

    @cached_property
    def _kept(self) -> dict[str, list[Evaluation]]:
        """The evaluations of the segments from their rows, by the metric that they hold."""
        return {}

    def _judge(self, metrics: Sequence[str], outside: bool = False) -> None:
        """Compute metrics that are missing, of all segments or of the rows outside each."""
        wanted = tuple(
            metric for metric in dict.fromkeys(metrics) if (metric, outside) not in self._known
        )
        by_rows = tuple(metric for metric in wanted if self._needs_rows(metric))
        if by_rows:
            results = []
            for place in range(len(self)):
                part = self._of_rows(place, by_rows, outside)
                results.append(part._results)
                if not outside:  # the rows outside all segments are too many to be kept
                    for metric in by_rows:
                        self._kept.setdefault(metric, []).append(part)
            self._known.update({(metric, outside): results for metric in by_rows})
        for metric in wanted:
            if metric not in by_rows:
                views = self._rests if outside else self._parts
                self._known[metric, outside] = [self._alone(metric, part) for part in views]

    def _judged(self, metric: str, outside: bool = False) -> list[Results]:
        """The results of all segments, or of the rows outside each, that hold a metric."""
        self._judge([metric], outside)
        return self._known[metric, outside]

    def _at_level(self, metric: str, level: float) -> list[Results]:
        """The results of all segments that hold a metric, at another level."""
        self._judge([metric])
        if metric in self._kept:
            return [part.at_level(level)._results for part in self._kept[metric]]
        return [self._alone(metric, part.at_level(level)) for part in self._parts]

    def _alone(self, metric: str, part: EvaluationViews) -> Results:
        catalog = self.evaluation.catalog.with_own(_with_functions(self.evaluation))
        results = compute_single(part, catalog, (metric,), Clusters(), {})
        return (
            replace(results, errors={}, intervals={}, sizes={})
            if self.without_clusters
            else results
        )

    def _needs_rows(self, metric: str) -> bool:
        """True where a metric of segments comes from their rows."""
        whole = self.evaluation
        whole.metrics[metric]  # names those like it
        if whole.without_function(metric):
            raise ValueError(f"{metric} of segments: {UNKNOWN}")
        if whole.cluster_errors is not None and self._rows is not None:
            return True
        if metric in self._alone(metric, self._parts[int(self.sizes.argmax())]).metrics:
            return False
        if self._rows is None:
            raise ValueError(
                f"{metric} of segments needs the rows, which this evaluation does not have: of segments the counts and "
                "the moments of probabilities are kept"
            )
        return True

    # -- numbers -------------------------------------------------------------------------------------------

    def _chosen(self, metrics: str | Sequence[str] | None) -> list[str]:
        if metrics is None:
            metrics_there = self.evaluation.metrics
            return [name for name in DEFAULT_METRICS if name in metrics_there] or list(
                metrics_there
            )[:1]
        return [metrics] if isinstance(metrics, str) else list(metrics)

    def _estimates(self, metric: str, outside: bool = False) -> Estimates:
        judged, entry = self._judged(metric, outside), self.evaluation.catalog.lookup(metric)
        values = np.array([one.metrics.get(metric, math.nan) for one in judged])
        errors = np.array([one.errors.get(metric, math.nan) for one in judged])
        if entry.interval == "count":
            errors[:] = math.nan
        n = degrees = None
        if entry.interval == "wilson":
            n = np.array([one.sizes.get(metric, math.nan) for one in judged])
        if any(one.clusters.n is not None for one in judged):
            clusters = [one.clusters.effective.get(metric, math.inf) for one in judged]
            numbers = np.array(
                [math.nan if one.clusters.n is None else one.clusters.n for one in judged]
            )
            degrees = cluster_degrees(np.array(clusters), numbers)
        return Estimates(values, errors, n, degrees, (entry.low, entry.high))


def _with_functions(whole: Evaluation) -> tuple[Metric, ...]:
    """The custom metrics that can be computed for other rows."""
    return tuple(metric for metric in whole.extra_metrics if metric.value is not None)


def _like(
    whole: Evaluation, statistics: Statistics, sections: tuple[str, ...] | None
) -> Evaluation:
    """The evaluation of a part of the rows of another one."""
    sections = whole.sections if sections is None else sections
    spec = replace(whole.spec, sections=sections, extra_metrics=_with_functions(whole))
    return type(whole)(statistics, spec)


FEWEST_SEARCHED = 100
"""Rows of a segment below which a search passes it over: of fewer rows a bad value is mostly chance."""


# -- search --------------------------------------------------------------------------------------------


def search(
    evaluation: Evaluation,
    metric: str,
    depth: int,
    min_rows: int | None,
    columns: Any,
    n_permutations: int,
    seed: int,
) -> SegmentSearch:
    """Find the segments where a metric is worst (see :meth:`Evaluation.worst_segments`)."""
    rows = evaluation.rows
    if not isinstance(rows, Predictions):
        cause = "it was loaded without them (rows=True loads them), merged, or made of a table or of spans"
        raise ValueError(
            f"worst_segments needs the rows, which this evaluation does not have: {cause}"
        )
    value, entry = evaluation.metrics[metric], evaluation.catalog.lookup(metric)
    psi = evaluation.influence(metric)
    if (
        entry.better not in ("higher", "lower")
        or psi is None
        or not (entry.interval == "wilson" or metric in _MEANS)
    ):
        raise ValueError(
            f"worst_segments searches metrics that are means over rows: shares such as binary/recall, and "
            f"{', '.join(_MEANS)}; got {metric!r}"
        )
    if not math.isfinite(value):
        raise ValueError(f"{metric} is undefined: {evaluation.undefined[metric]}")
    where = None
    if metric in _MEANS:
        values = psi + value
    else:
        where, values = np.abs(psi) > 1e-12, (psi > 0).astype(np.float64)
        if not where.any():
            where, values = None, np.full(len(psi), value)
    if columns is not None:
        columns = align_rows({"the evaluation": None, "columns": columns})["columns"]
        chosen = search_columns(columns, len(rows))
    else:
        held = [one for one in rows.segments if not any(isinstance(v, tuple) for v in one.values)]
        chosen = tuple(
            SegmentColumn(one.name, one.values, value_texts(one.values), one.codes) for one in held
        )
    if not chosen:
        raise ValueError(
            "worst_segments needs columns to search, got none: give columns=, or evaluate(..., segments=)"
        )
    if min_rows is None:
        own_rows = len(values) if where is None else int(where.sum())
        min_rows = min(FEWEST_SEARCHED, max(own_rows // 5, 1))
    return worst_segments(
        chosen,
        values,
        better=entry.better,
        where=where,
        weights=rows.design.weights,
        clusters=rows.design.clusters,
        depth=depth,
        min_rows=min_rows,
        n_permutations=n_permutations,
        confidence_level=evaluation.confidence_level,
        seed=seed,
    )


__all__ = ["N_PERMUTATIONS", "SegmentTable", "Segments", "search"]
