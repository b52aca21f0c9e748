"""Segments of an evaluation: tables of metrics by segment, disparity, and a search.

Most numbers are computed from the statistics that an evaluation stores for each segment. ROC,
calibration curves and cluster-robust errors cannot be computed from the stored statistics. Curves
and cluster-robust errors are computed from the rows of a segment, and are missing if the evaluation
does not contain its rows.
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
from cmtrack.statistics import BinaryCounts
from cmtrack.statistics.collected import Statistics, collect_rows, of_segments
from cmtrack.statistics.design import cluster_degrees
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray, align_rows
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.segment_values import CROSSED, SegmentRows, plain_value, value_texts
from cmtrack.statistics.segmented import SegmentCounts
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.evaluation.result import Evaluation

DEFAULT_METRICS = ("multiclass/accuracy", "binary/recall", "binary/precision")
_MEANS = ("probability/log_loss", "probability/brier", "probability/spherical", "cost/mean")
_ROWS_AWAY = "without the rows, the intervals of this segment ignore which rows belong together"


class Segments(Mapping[str, "SegmentTable"]):
    """Mapping from the name of each column that divides the rows to its table of segments.

    To look up crossed columns, use a tuple of names, or the joined name such as ``"region ×
    age_band"``.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> region = ["north", "north", "south", "south"]
    >>> evaluation = evaluate([0, 1, 1, 0], [0, 1, 0, 0], segments={"region": region})
    >>> list(evaluation.segments), evaluation.segments["region"]
    (['region'], SegmentTable(region: 2 segments of 4 rows))
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self._tables: dict[str, SegmentTable] = {}
        segments = evaluation.statistics.segments
        if segments is not None:
            self._tables = {name: SegmentTable(evaluation, name) for name in segments.columns}

    def __getitem__(self, name: Any) -> SegmentTable:
        text = CROSSED.join(map(str, name)) if isinstance(name, tuple) else str(name)
        if text in self._tables:
            return self._tables[text]
        if not self._tables:
            raise KeyError(
                f"there are no segments by {text!r} or any other column: the rows were evaluated "
                "without segments"
            )
        raise KeyError(
            f"there are no segments by {text!r}{near(text, self._tables)}; "
            f"the columns are {list(self)}"
        )

    @property
    def note(self) -> str:
        """Sentence that states that segments lack intervals because clustered rows are missing."""
        if any(table.without_clusters for table in self._tables.values()):
            return (
                "the metrics of the segments have no intervals: rows belong to clusters, so "
                "the intervals need the rows"
            )
        return ""

    def named(self, name: str) -> dict[str, float]:
        """Return the values of a metric in segments, by the full name of each value.

        Parameters
        ----------
        name : str
            A name such as ``segment/region/north/binary/recall``, which follows the pattern
            ``segment/<column>/<value>/<metric>``. The column and the value are encoded in the same
            way as labels in metric names. A ``*`` instead of the value selects all segments of the
            column.

        Raises
        ------
        KeyError
            If the column, segment or metric does not exist.
        ValueError
            If the name does not follow the pattern, or if the metric needs rows that the evaluation
            does not contain.
        """
        parts = segment_parts(name)
        if parts is None:
            raise ValueError(
                "a metric of segments must have the form segment/<column>/<value>/<metric>, "
                f"got {name!r}"
            )
        column, value, metric = parts
        by_encoded = {encode_label(table_name): table_name for table_name in self}
        table = self[by_encoded.get(column, column)]
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
        sizes = [f"{name}: {len(table)}" for name, table in self._tables.items()]
        return printable(f"Segments({', '.join(sizes)})")

    def _repr_html_(self) -> str:
        tables = [table._repr_html_() for table in self._tables.values()]
        if not tables:
            tables = [notebook.sentence("No segments")]
        return notebook.view(*tables, notebook.sentence(self.note))


@dataclass(frozen=True, eq=False)
class SegmentTable:
    """The segments into which one column, or a crossing of columns, divides the rows.

    ``table["north"]`` is the evaluation of a segment. The counts of all segments add up to the
    counts of all rows.

    Attributes
    ----------
    evaluation : Evaluation
        The evaluation of all rows.
    name : str
        The name of the column, or the joined names of crossed columns.

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
        """The value of each segment: text, number, boolean or None, or a tuple for a crossing."""
        return self._counts.values

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The values as distinct texts for display; "(missing)" stands for rows without a value."""
        return value_texts(self.values)

    @property
    def sizes(self) -> IntArray:
        """Unweighted number of rows in each segment, shape (S,)."""
        return self._counts.sizes

    @property
    def binary(self) -> list[BinaryCounts]:
        """The six counts of 2x2+IM in each segment; empty without two groups or classes."""
        return [part.binary.sums for part in self._parts if part.binary is not None]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __getitem__(self, value: Any) -> Evaluation:
        """Return the evaluation of one segment, computed from its rows if they are available.

        Parameters
        ----------
        value : object
            An entry of :attr:`values` or of :attr:`texts`.
        """
        plain = plain_value(value)
        if plain in self.values:
            return self._evaluation(self.values.index(plain))
        if str(value) in self.texts:
            return self._evaluation(self.texts.index(str(value)))
        raise KeyError(f"{self.name!r} has no segment {value!r:.80}{near(str(value), self.texts)}")

    def to_frame(self, metrics: str | Sequence[str] | None = None) -> pd.DataFrame:
        """Return a table with a row for each metric and segment; a metric's worst segment is first.

        If all differences between segments can be explained by chance, the largest segment is
        first.

        Parameters
        ----------
        metrics : str or list of str, optional
            Full names of metrics. The default is accuracy and, if there are two groups, also recall
            and precision.

        Returns
        -------
        DataFrame
            The columns are segment, metric, rows (the number of rows, not weighted), value, low,
            high, rest (the value for all rows outside the segment), difference (value minus rest),
            difference_low, difference_high, and undefined (the reason why the metric is undefined).
            The intervals [low, high] hold for all segments of all columns together. The intervals
            of the differences hold for all segments of one column together. The intervals of the
            differences include 0 if :meth:`disparity` returns a gap whose interval includes 0.

        Raises
        ------
        KeyError
            If the evaluation does not contain the metric.
        ValueError
            If a metric needs rows that the evaluation does not contain.
        """
        from cmtrack._pandas import pd

        names = self._choose_metrics(metrics)
        # Compute all metrics together, so that the rows of each segment are counted only once.
        self._compute(names, outside=False)
        self._compute(names, outside=True)
        blocks = []
        for metric in names:
            inside = self.estimates(metric)
            outside = self._estimates(metric, outside=True)
            low, high = self.intervals(metric)
            gaps = self._to_rest(inside, outside)
            is_lower_better = self.evaluation.catalog.lookup(metric).better == "lower"
            better = "lower" if is_lower_better else "higher"
            order = order_of_segments(inside, self.sizes, better)
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
                "undefined": [
                    results.undefined.get(metric, "") for results in self._results_of(metric)
                ],
            }
            blocks.append(pd.DataFrame(table).iloc[order])
        return pd.concat(blocks, ignore_index=True)

    def _to_rest(self, inside: Estimates, outside: Estimates) -> Differences:
        """Return differences from all other rows; if the gap may be 0, all intervals include 0."""
        level = self.evaluation.confidence_level
        gaps = differences(inside, outside, level)
        low, high = with_zero(gaps.low, gaps.high, disparity(inside, level).gap_low <= 0)
        return replace(gaps, low=low, high=high)

    def disparity(self, metric: str) -> Disparity:
        """Return the difference and the ratio between the values of the best and the worst segment.

        The intervals account for the fact that the best and the worst segment were selected.
        ``lowest`` and ``highest`` are positions in :attr:`values`.

        Raises
        ------
        KeyError, ValueError
            Under the conditions that :meth:`to_frame` lists.
        """
        return disparity(self.estimates(metric), self.evaluation.confidence_level)

    def estimates(self, metric: str) -> Estimates:
        """Return the values and standard errors of a metric, in the order of :attr:`values`.

        Raises
        ------
        KeyError, ValueError
            Under the conditions that :meth:`to_frame` lists.
        """
        return self._estimates(metric)

    def order_of(self, metric: str) -> str:
        """Describe the row order of :meth:`to_frame` in words."""
        direction = self.evaluation.catalog.lookup(metric).better
        return "the worst first" if direction in ("higher", "lower") else "the lowest first"

    def intervals(self, metric: str) -> tuple[FloatArray, FloatArray]:
        """Return the limits of intervals that hold for all segments of all columns together.

        The intervals are computed on the scale of the metric.

        Raises
        ------
        KeyError, ValueError
            Under the conditions that :meth:`to_frame` lists.
        """
        inside = self.estimates(metric)
        n_intervals = int(inside.known.sum())
        for table in self.evaluation.segments.values():
            if table.name != self.name:
                n_intervals += int(table.estimates(metric).known.sum())
        level = simultaneous_level(max(n_intervals, 1), self.evaluation.confidence_level)
        if inside.n is None or n_intervals < 2:
            return self.own_intervals(metric, level)
        return inside.ends(level)

    def own_intervals(self, metric: str, level: float) -> tuple[FloatArray, FloatArray]:
        """Return intervals whose confidence level holds for each segment individually."""
        inside = self.estimates(metric)
        if inside.n is not None:
            down, up = inside.arms(level)
            return inside.values - down, inside.values + up
        undefined = (math.nan, math.nan)
        ends = [
            results.intervals.get(metric, undefined) for results in self._at_level(metric, level)
        ]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])

    @property
    def codes(self) -> IntArray | None:
        """Position of each row's segment in :attr:`values`, shape (n,); None if rows are lost."""
        return None if self._rows is None else self._rows.codes

    def by_rows(self, metric: str) -> list[Evaluation]:
        """Evaluate the rows of each segment, but compute only one metric.

        The evaluation must contain its rows (see :attr:`codes`).
        """
        return [self._evaluate_rows(k, (metric,)) for k in range(len(self))]

    def __repr__(self) -> str:
        return printable(
            f"SegmentTable({self.name}: {len(self)} segments of {int(self.sizes.sum())} rows)"
        )

    def _repr_html_(self) -> str:
        metric = self._choose_metrics(None)[0]
        frame = self.to_frame(metric).drop(columns=["metric", "undefined"])
        n_undefined = int(frame["value"].isna().sum())
        title = self.evaluation.catalog.lookup(metric).heading()
        head = f"{title} by {quoted(self.name)}: {len(self)} segments, {self.order_of(metric)}"
        if n_undefined:
            head += f"; undefined in {n_undefined}"
        return notebook.view(notebook.sentence(head), notebook.table(frame))

    # -- evaluations of segments -----------------------------------------------------------------

    @property
    def _counts(self) -> SegmentCounts:
        segments = self.evaluation.statistics.segments
        if segments is None:
            raise ValueError("the rows were evaluated without segments")
        return segments.columns[self.name]

    @property
    def _rows(self) -> SegmentRows | None:
        rows = self.evaluation.rows
        if isinstance(rows, Predictions):
            for segments in rows.segments:
                if segments.name == self.name:
                    return segments
        return None

    @property
    def without_clusters(self) -> bool:
        """True if rows have clusters but are missing, so that segments lack standard errors."""
        return self.evaluation.cluster_errors is not None and self._rows is None

    def _evaluation(self, k: int) -> Evaluation:
        """Return the evaluation of the k-th segment."""
        if self._rows is not None:
            return self._evaluate_rows(k, None)
        whole = self.evaluation
        statistics = of_segments(whole.statistics, self.name, whole.scored, [k])[0]
        part = _like(whole, statistics, None)
        return replace(part, remarks=(_ROWS_AWAY,)) if self.without_clusters else part

    def _evaluate_rows(
        self, k: int, sections: tuple[str, ...] | None, outside: bool = False
    ) -> Evaluation:
        """Evaluate the rows of the k-th segment, or the rows outside this segment.

        ``sections``: names of sections or metrics; None means the sections of the whole evaluation.
        """
        whole = self.evaluation
        segments = self._rows
        if segments is None or not isinstance(whole.rows, Predictions):
            raise ValueError(
                f"this evaluation does not contain the rows of the segments by {self.name!r}"
            )
        rows = replace(whole.rows, segments=()).take((segments.codes == k) != outside)
        statistics = collect_rows(rows, whole.counting)
        return replace(_like(whole, statistics, sections), rows=rows).with_cluster_errors()

    @cached_property
    def _parts(self) -> list[EvaluationViews]:
        """The views of each segment's statistics, from which metrics are computed."""
        return self._views(False)

    @cached_property
    def _rests(self) -> list[EvaluationViews]:
        """The views of the statistics of all rows outside each segment."""
        return self._views(True)

    def _views(self, outside: bool) -> list[EvaluationViews]:
        whole = self.evaluation
        parts = of_segments(whole.statistics, self.name, whole.scored, outside=outside)
        return [whole._views.of_part(one, whole.confidence_level) for one in parts]

    @cached_property
    def _computed(self) -> dict[tuple[str, bool], list[Results]]:
        """The results of all segments, by metric and by whether they cover the rows outside."""
        return {}

    @cached_property
    def _evaluated(self) -> dict[str, list[Evaluation]]:
        """The evaluations of all segments, computed from their rows, by metric."""
        return {}

    def _compute(self, metrics: Sequence[str], outside: bool) -> None:
        """Compute metrics that are still missing, for all segments or for the rows outside each."""
        missing = [
            metric for metric in dict.fromkeys(metrics) if (metric, outside) not in self._computed
        ]
        by_rows = tuple(metric for metric in missing if self._needs_rows(metric))
        if by_rows:
            results = []
            for k in range(len(self)):
                part = self._evaluate_rows(k, by_rows, outside)
                results.append(part._results)
                if not outside:  # copies of all rows outside each segment need much memory
                    for metric in by_rows:
                        self._evaluated.setdefault(metric, []).append(part)
            for metric in by_rows:
                self._computed[metric, outside] = results
        for metric in missing:
            if metric not in by_rows:
                views = self._rests if outside else self._parts
                self._computed[metric, outside] = [self._alone(metric, part) for part in views]

    def _results_of(self, metric: str, outside: bool = False) -> list[Results]:
        """Return the results of a metric for all segments, or for the rows outside each segment."""
        self._compute([metric], outside)
        return self._computed[metric, outside]

    def _at_level(self, metric: str, level: float) -> list[Results]:
        """Return the results of a metric for all segments at a given confidence level."""
        self._compute([metric], outside=False)
        if metric in self._evaluated:
            return [part.at_level(level)._results for part in self._evaluated[metric]]
        return [self._alone(metric, part.at_level(level)) for part in self._parts]

    def _alone(self, metric: str, part: EvaluationViews) -> Results:
        catalog = self.evaluation.catalog.with_own(_with_functions(self.evaluation))
        results = compute_single(part, catalog, (metric,), Clusters(), {})
        if self.without_clusters:
            return replace(results, errors={}, intervals={}, sizes={})
        return results

    def _needs_rows(self, metric: str) -> bool:
        """Return True if a metric must be computed from the rows of segments.

        Raises KeyError, and suggests similar names, if the evaluation does not contain the metric.
        """
        whole = self.evaluation
        whole.metrics[metric]
        if whole.without_function(metric):
            raise ValueError(f"{metric} of segments: {UNKNOWN}")
        if whole.cluster_errors is not None and self._rows is not None:
            return True
        if metric in self._alone(metric, self._parts[int(self.sizes.argmax())]).metrics:
            return False
        if self._rows is None:
            raise ValueError(
                f"{metric} of segments needs the rows, which this evaluation does not have: for "
                "segments, only counts and moments of probabilities are stored"
            )
        return True

    # -- numbers ---------------------------------------------------------------------------------

    def _choose_metrics(self, metrics: str | Sequence[str] | None) -> list[str]:
        if isinstance(metrics, str):
            return [metrics]
        if metrics is not None:
            return list(metrics)
        available = self.evaluation.metrics
        usual = [name for name in DEFAULT_METRICS if name in available]
        return usual or list(available)[:1]

    def _estimates(self, metric: str, outside: bool = False) -> Estimates:
        results = self._results_of(metric, outside)
        entry = self.evaluation.catalog.lookup(metric)
        values = np.array([part.metrics.get(metric, math.nan) for part in results])
        errors = np.array([part.errors.get(metric, math.nan) for part in results])
        if entry.interval == "count":
            errors[:] = math.nan
        n = None
        if entry.interval == "wilson":
            n = np.array([part.sizes.get(metric, math.nan) for part in results])
        degrees = None
        clusters = [part.clusters for part in results]
        if any(part.n is not None for part in clusters):
            effective = np.array([part.effective.get(metric, math.inf) for part in clusters])
            numbers = np.array([part.n for part in clusters], dtype=np.float64)  # NaN for None
            degrees = cluster_degrees(effective, numbers)
        return Estimates(values, errors, n, degrees, (entry.low, entry.high))


def _with_functions(whole: Evaluation) -> tuple[Metric, ...]:
    """Return the custom metrics whose functions are available."""
    return tuple(metric for metric in whole.extra_metrics if metric.value is not None)


def _like(
    whole: Evaluation, statistics: Statistics, sections: tuple[str, ...] | None
) -> Evaluation:
    """Evaluate some of the rows with the options of the whole evaluation."""
    if sections is None:
        sections = whole.sections
    spec = replace(whole.spec, sections=sections, extra_metrics=_with_functions(whole))
    return type(whole)(statistics, spec)


FEWEST_SEARCHED = 100
"""Smallest number of rows in a searched segment; bad values from fewer rows are mostly chance."""


# -- search --------------------------------------------------------------------------------------


def search(
    evaluation: Evaluation,
    metric: str,
    depth: int,
    min_rows: int | None,
    columns: Any,
    n_permutations: int,
    seed: int,
) -> SegmentSearch:
    """Find the segments in which a metric is worst (see :meth:`Evaluation.worst_segments`)."""
    rows = evaluation.rows
    if not isinstance(rows, Predictions):
        raise ValueError(
            "worst_segments needs the rows, which this evaluation does not have: it was loaded "
            "without rows (rows=True loads them), merged, or made from a table or from spans"
        )
    where, values = _row_values(evaluation, metric)
    searched = _searched_columns(rows, columns)
    if min_rows is None:
        n_rows = len(values) if where is None else int(where.sum())
        min_rows = min(FEWEST_SEARCHED, max(n_rows // 5, 1))
    return worst_segments(
        searched,
        values,
        better=evaluation.catalog.lookup(metric).better,
        where=where,
        weights=rows.design.weights,
        clusters=rows.design.clusters,
        depth=depth,
        min_rows=min_rows,
        n_permutations=n_permutations,
        confidence_level=evaluation.confidence_level,
        seed=seed,
    )


def _row_values(evaluation: Evaluation, metric: str) -> tuple[BoolArray | None, FloatArray]:
    """Return the mask of the rows that a mean covers (None: all rows), and each row's value.

    Raises ValueError if the metric is not a mean over rows.
    """
    value = evaluation.metrics[metric]
    entry = evaluation.catalog.lookup(metric)
    psi = evaluation.influence(metric)
    is_mean = entry.interval == "wilson" or metric in _MEANS
    if entry.better not in ("higher", "lower") or psi is None or not is_mean:
        raise ValueError(
            "worst_segments searches metrics that are means over rows: shares such as "
            f"binary/recall, and {', '.join(_MEANS)}; got {metric!r}"
        )
    if not math.isfinite(value):
        raise ValueError(f"{metric} is undefined: {evaluation.undefined[metric]}")
    if metric in _MEANS:
        return None, psi + value  # the influence of a row is its value minus the mean
    # The influence on a share is 0 for rows outside its denominator, above 0 for correct rows and
    # below 0 for incorrect rows.
    is_counted = np.abs(psi) > 1e-12
    if not is_counted.any():  # the share is exactly 0 or 1
        return None, np.full(len(psi), value)
    return is_counted, (psi > 0).astype(np.float64)


def _searched_columns(rows: Predictions, columns: Any) -> tuple[SegmentColumn, ...]:
    """Return the columns to search, which are the given columns or else all declared columns."""
    if columns is not None:
        columns = align_rows({"the evaluation": None, "columns": columns})["columns"]
        searched = search_columns(columns, len(rows))
    else:
        searched = tuple(
            SegmentColumn(
                declared.name, declared.values, value_texts(declared.values), declared.codes
            )
            for declared in rows.segments
            if not any(isinstance(value, tuple) for value in declared.values)
        )
    if not searched:
        raise ValueError(
            "worst_segments needs columns to search, got none: pass columns=, or evaluate(..., "
            "segments=)"
        )
    return searched


__all__ = ["N_PERMUTATIONS", "SegmentTable", "Segments", "search"]
