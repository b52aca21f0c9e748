"""Tables and sentences on the segments of an evaluation, for people and for MLflow.

A sentence calls a segment worse only if the interval of its difference from all other rows excludes
0. The intervals of segment differences hold for all segments of a column together. If the interval
of the gap between the best and the worst segment includes 0, a note states this.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack._lazy import cached_property
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.segments import DEFAULT_METRICS, SegmentTable
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.report import formatting as fmt
from cmtrack.statistics import BinaryCounts

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 20
"""Maximum number of segments per column that the report shows."""
MAX_SENTENCES = 3
"""Maximum number of sentences about one column of segments."""


@dataclass(frozen=True)
class SegmentView:
    """The segments of one column, and the metrics to show for them.

    ``metrics``: names of the metrics; the segments are sorted by the first metric.
    """

    table: SegmentTable
    metrics: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.table.name

    @cached_property
    def rows(self) -> dict[str, dict[str, dict[str, Any]]]:
        """The rows of :meth:`SegmentTable.to_frame` for each metric and segment, worst first."""
        by_metric: dict[str, dict[str, dict[str, Any]]] = {metric: {} for metric in self.metrics}
        frame = self.table.to_frame(self.metrics)
        rows: list[dict[str, Any]] = frame.to_dict("records")  # type: ignore[assignment]
        for row in rows:
            by_metric[row["metric"]][row["segment"]] = row
        return by_metric

    @property
    def order(self) -> list[str]:
        """The texts of the segments, sorted by the first metric with the worst segment first."""
        return list(self.rows[self.metrics[0]])

    @property
    def order_text(self) -> str:
        """Text that describes the order of the segments, such as "by accuracy, the worst first"."""
        return f"by {self.title_of(self.metrics[0])}, {self.table.order_of(self.metrics[0])}"

    @cached_property
    def cells(self) -> dict[str, BinaryCounts]:
        """The counts of each segment in 2x2+IM; empty if no metric is about the positive group."""
        if not any(metric.startswith("binary/") for metric in self.metrics):
            return {}
        return dict(zip(self.table.texts, self.table.binary, strict=True))

    def title_of(self, metric: str, *, brief: bool = False) -> str:
        """Return a metric's title for a sentence, or for a table's heading if ``brief``."""
        evaluation = self.table.evaluation
        return fmt.metric_title(
            metric, evaluation.positive, brief=brief, catalog=evaluation.catalog
        )

    @cached_property
    def worse(self) -> list[str]:
        """A sentence for each segment that is worse than the rest in at least one metric.

        The sentence is about the first metric in which the segment is worse. The sentences are
        sorted in the order of the metrics. Among the sentences on one metric, the segment with the
        largest difference comes first.
        """
        by_segment: dict[str, str] = {}
        for metric in self.metrics:
            worse = [row for text, row in self.rows[metric].items() if self.side(metric, text) < 0]
            for row in sorted(worse, key=lambda row: -abs(row["difference"])):
                by_segment.setdefault(row["segment"], self._sentence(metric, row))
        return list(by_segment.values())

    def sentences(self, most: int = MAX_SENTENCES) -> list[str]:
        """Return the sentences on segments that are worse than the rest, or a number of them."""
        sentences = self.worse
        # A sentence on "1 more segment" would be as long as the sentence on that segment.
        if len(sentences) <= most + 1:
            return sentences
        rest = len(sentences) - most
        column = fmt.named(self.name)
        return [*sentences[:most], f"{rest} more segments of {column} are worse than the rest."]

    def _sentence(self, metric: str, row: dict[str, Any]) -> str:
        """Return the sentence on a segment that is worse than the rest."""
        interval = (row["difference_low"], row["difference_high"])
        if self._is_share(metric):
            difference = fmt.points(row["difference"], interval)
        else:
            difference = fmt.signed(row["difference"], interval)
        rows = fmt.counted(row["rows"], "row")
        value, rest = self._texts(metric, row["value"], row["rest"], interval)
        counts = self.counts_text(metric, row["segment"])
        if counts:
            value += f" ({counts})"
        return (
            f"Segment {fmt.named(row['segment'])} of {fmt.named(self.name)} ({rows}) is worse "
            f"than the rest: its {self.title_of(metric)} is {value} instead of {rest} "
            f"(difference {difference})."
        )

    def counts_text(self, metric: str, text: str) -> str:
        """Return the counts behind a recall or precision that few rows determine: "2 of 31".

        The text is empty if there are many rows, or if the metric has no such counts.
        """
        if metric not in ("binary/recall", "binary/precision"):
            return ""
        cells = self.cells[text]
        total = cells.predicted_positives
        if metric == "binary/recall":
            total = cells.actual_positives
        if not fmt.needs_counts(cells.tp, total):
            return ""
        return f"{fmt.count(cells.tp)} of {fmt.count(total)}"

    def gap(self, metric: str) -> str:
        """Return the gap between the best and the worst segment in words.

        The interval of the gap takes into account that the best and the worst segment were
        selected.
        """
        disparity = self.table.disparity(metric)
        title = fmt.capital(self.title_of(metric))
        if disparity.lowest < 0:
            return f"{title}: {disparity.reason}."
        lowest = self.table.texts[disparity.lowest]
        highest = self.table.texts[disparity.highest]
        interval = (disparity.gap_low, disparity.gap_high)
        rows = self.rows[metric]
        high, low = self._texts(metric, rows[highest]["value"], rows[lowest]["value"], interval)
        if lowest == highest:
            values = f"is {low} in every segment that has a value"
        else:
            values = f"ranges from {low} ({fmt.named(lowest)}) to {high} ({fmt.named(highest)})"
        if self._is_share(metric):
            gap = fmt.points(disparity.gap, interval)
        else:
            gap = fmt.with_interval(disparity.gap, interval)
        ratio = ""
        if math.isfinite(disparity.ratio):
            ratio_interval = (disparity.ratio_low, disparity.ratio_high)
            ratio = f" and a ratio of {fmt.with_interval(disparity.ratio, ratio_interval)}"
        note = ""
        if math.isnan(disparity.gap_low):
            note = f" There is no interval: {disparity.reason}."
        elif disparity.gap_low <= 0:
            note = " The interval of the gap includes 0, so no difference is shown."
        elif not any(self.side(metric, text) for text in self.order):
            note = (
                " The two segments differ significantly from each other, although no segment "
                "differs significantly from the rest."
            )
        return f"{title} {values}, a gap of {gap}{ratio}.{note}"

    def _metric(self, metric: str) -> Metric:
        return self.table.evaluation.catalog.lookup(metric)

    def _is_share(self, metric: str) -> bool:
        """Return whether a metric is a share of rows, which is written in percent."""
        return self._metric(metric).interval == "wilson"

    def _texts(
        self, metric: str, first: float, second: float, interval: Interval
    ) -> tuple[str, str]:
        """Return two values of a metric as they are written in a sentence.

        ``interval``: the interval of the difference between the two values.
        """
        if self._is_share(metric):
            return fmt.percents_apart(first, second, interval)
        return fmt.number(first), fmt.number(second)

    def side(self, metric: str, text: str) -> int:
        """Return -1 if a segment is clearly worse than the rest, 1 if it is better, else 0."""
        row = self.rows[metric][text]
        sign = int(row["difference_low"] > 0) - int(row["difference_high"] < 0)
        return -sign if self._metric(metric).better == "lower" else sign


def views(evaluation: Evaluation, metrics: Sequence[str] = ()) -> Iterator[SegmentView]:
    """Yield the segments of each column with the given metrics.

    The default metrics are accuracy and, if there is a positive group, recall and precision.
    """
    chosen = tuple(metrics) or tuple(name for name in DEFAULT_METRICS if name in evaluation.metrics)
    if chosen:
        for table in evaluation.segments.values():
            yield SegmentView(table, chosen)


def sentences(evaluation: Evaluation) -> list[str]:
    """Return sentences on segments that are worse than the rest, the worst segment first."""
    return [sentence for view in views(evaluation) for sentence in view.sentences()]


def count_worse(evaluation: Evaluation) -> int:
    """Return the number of segments that are worse than the rest."""
    return sum(len(view.worse) for view in views(evaluation))


# -- the page --------------------------------------------------------------------------------------


def page_tables(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return a table for each column of segments on the report's page, with sentences on gaps."""
    return [
        {
            "name": fmt.named(view.name),
            "heads": [fmt.capital(view.title_of(metric, brief=True)) for metric in view.metrics],
            "order": view.order_text,
            "total": len(view.table),
            "rows": [_page_row(view, text) for text in view.order[:MAX_ROWS]],
            "gaps": [view.gap(metric) for metric in view.metrics],
        }
        for view in views(evaluation)
    ]


def _page_row(view: SegmentView, text: str) -> dict[str, Any]:
    """Return the row of a segment for the table on the page."""
    size = view.rows[view.metrics[0]][text]["rows"]
    positives = ""
    if view.cells:
        positives = f"{fmt.count(view.cells[text].actual_positives)} positive"
    return {
        "label": text,
        "shown": fmt.short(text),
        "rows": fmt.count(size),
        "positives": positives,
        "sort": size,
        "cells": [_page_cell(view, metric, text) for metric in view.metrics],
    }


def _page_cell(view: SegmentView, metric: str, text: str) -> dict[str, Any]:
    """Return a table cell with a segment's metric and the difference from all other rows."""
    row = view.rows[metric][text]
    value = row["value"]
    interval = (row["low"], row["high"])
    cell = {
        "value": fmt.number(value, interval),
        "interval": fmt.interval(value, interval),
        "counts": view.counts_text(metric, text),
        "sort": value if math.isfinite(value) else "",
        "undefined": row["undefined"],
        "difference": "–",
        "reach": "",
        "difference_sort": "",
        "apart": view.side(metric, text) != 0,
    }
    difference = row["difference"]
    if math.isfinite(difference):
        difference_interval = (row["difference_low"], row["difference_high"])
        reach = fmt.interval(difference, difference_interval)
        signed = fmt.signed(difference, difference_interval)
        # The page shows the interval below the difference.
        cell["difference"] = signed.removesuffix(reach).rstrip()
        cell["reach"] = reach
        cell["difference_sort"] = difference
    return cell


# -- the table for MLflow's views ------------------------------------------------------------------


def segment_table(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return a row for each segment of each column.

    The segment comes first, because MLflow's artifact view groups runs by the first column.
    """
    return [_view_row(view, text) for view in views(evaluation) for text in view.table.texts]


def _view_row(view: SegmentView, text: str) -> dict[str, Any]:
    """Return a segment's row in the table that MLflow's views show."""
    results = []
    numbers: dict[str, float | None] = {}
    for metric in view.metrics:
        row = view.rows[metric][text]
        name = metric.rpartition("/")[2]
        numbers[name] = fmt.rounded(row["value"])
        for key in ("low", "high", "difference", "difference_low", "difference_high"):
            numbers[f"{name}_{key}"] = fmt.rounded(row[key])
        results.append(fmt.named_value(name, row["value"], row["low"], row["high"]))
    return {
        "segment": f"{view.name}: {text}",
        "result": fmt.BETWEEN.join(results),
        "rows": view.rows[view.metrics[0]][text]["rows"],
        **numbers,
    }


# -- the figure ------------------------------------------------------------------------------------


def segments_figure(evaluation: Evaluation, view: SegmentView) -> Figure:
    """Draw the segments of a column, with a panel for each metric."""
    # Import Matplotlib only if a figure is drawn.
    from cmtrack.plots.segments import SegmentPanel, plot_segments

    panels = []
    for metric in view.metrics:
        rows = [view.rows[metric][text] for text in view.order]
        panels.append(
            SegmentPanel(
                fmt.capital(view.title_of(metric)),
                [row["value"] for row in rows],
                [row["low"] for row in rows],
                [row["high"] for row in rows],
                evaluation.metrics[metric],
                [view.side(metric, text) for text in view.order],
            )
        )
    sizes = [view.rows[view.metrics[0]][text]["rows"] for text in view.order]
    positives = None
    if view.cells:
        positives = [view.cells[text].actual_positives for text in view.order]
    return plot_segments(
        view.order,
        sizes,
        panels,
        positives=positives,
        confidence_level=evaluation.confidence_level,
        order=view.order_text,
        title=f"Segments by {fmt.named(view.name, 40)}",
    )
