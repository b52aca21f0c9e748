"""Segments of an evaluation in tables and words: for the report, MLflow's views and the command line.

A sentence says that a segment is worse only where the interval of its difference to the rest, which holds for all
segments of the column together, excludes 0; it never does where that of the gap between the segments holds 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cmtrack._lazy import cached_property
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.segments import DEFAULT_METRICS, SegmentTable
from cmtrack.metrics.metric import Metric
from cmtrack.report import formatting as fmt

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_ROWS = 20
"""Segments of a column that the report shows."""
MAX_SENTENCES = 3
"""Sentences on one column."""


@dataclass(frozen=True)
class SegmentView:
    """The segments of one column as they are shown.

    ``metrics``: of which the first one orders the segments.
    """

    table: SegmentTable
    metrics: tuple[str, ...]

    @property
    def name(self) -> str:
        """Of the column."""
        return self.table.name

    @cached_property
    def rows(self) -> dict[str, dict[str, dict[str, Any]]]:
        """By metric and text of the segment the row of :meth:`SegmentTable.to_frame`, the worst first by the metric."""
        by_metric: dict[str, dict[str, dict[str, Any]]] = {metric: {} for metric in self.metrics}
        rows: list[dict[str, Any]] = self.table.to_frame(self.metrics).to_dict("records")  # type: ignore[assignment]
        for row in rows:
            by_metric[row["metric"]][row["segment"]] = row
        return by_metric

    @property
    def order(self) -> list[str]:
        """Texts of the segments, the worst first by the first metric."""
        return list(self.rows[self.metrics[0]])

    @property
    def order_text(self) -> str:
        """The same in words: "by accuracy, the worst first"."""
        return f"by {self.title_of(self.metrics[0])}, {self.table.order_of(self.metrics[0])}"

    def title_of(self, metric: str, *, brief: bool = False) -> str:
        """A metric's name in a sentence, or a table's head."""
        evaluation = self.table.evaluation
        return fmt.metric_title(
            metric, evaluation.positive, brief=brief, catalog=evaluation.catalog
        )

    def sentences(self, most: int = MAX_SENTENCES) -> list[str]:
        """A sentence for each segment that is worse than the rest, of the first metric in which it is.

        Metrics come in their order, and of each the segment with the largest difference first.
        """
        by_segment: dict[str, str] = {}
        for metric in self.metrics:
            worse = [row for text, row in self.rows[metric].items() if self.side(metric, text) < 0]
            for row in sorted(worse, key=lambda row: -abs(row["difference"])):
                by_segment.setdefault(row["segment"], self._sentence(metric, row))
        sentences = list(by_segment.values())
        if len(sentences) > most + 1:
            more = f"{len(sentences) - most} more segments by {fmt.named(self.name)} are worse than the rest."
            return [*sentences[:most], more]
        return sentences

    def _sentence(self, metric: str, row: dict[str, Any]) -> str:
        ends = row["difference_low"], row["difference_high"]
        share = self._entry(metric).interval == "wilson"
        shown = fmt.percent if share else fmt.number
        difference = (
            fmt.points(row["difference"], ends) if share else fmt.signed(row["difference"], ends)
        )
        return (
            f"{fmt.named(row['segment'])} (by {fmt.named(self.name)}, {fmt.counted(row['rows'], 'sample')}) is worse: "
            f"{self.title_of(metric)} {shown(row['value'])} against {shown(row['rest'])} of the rest "
            f"(difference {difference})."
        )

    def gap(self, metric: str) -> str:
        """The difference of the best and the worst segment in words, with an interval that allows for their choice."""
        disparity = self.table.disparity(metric)
        title = fmt.capital(self.title_of(metric))
        if disparity.lowest < 0:
            return f"{title}: {disparity.reason}."
        share = self._entry(metric).interval == "wilson"
        shown = fmt.percent if share else fmt.number
        ends = disparity.gap_low, disparity.gap_high
        rows, texts = self.rows[metric], self.table.texts
        low, high = (
            f"{fmt.named(texts[k])} ({shown(rows[texts[k]]['value'])})"
            for k in (disparity.lowest, disparity.highest)
        )
        places = f"from {low} to {high}"
        if disparity.lowest == disparity.highest:
            places = (
                f"{shown(rows[texts[disparity.lowest]]['value'])} in every segment that has a value"
            )
        gap = fmt.points(disparity.gap, ends) if share else fmt.with_interval(disparity.gap, ends)
        why = "; the interval includes 0" if disparity.gap_low <= 0 else ""
        if math.isnan(disparity.gap_low):
            why = f"; no interval: {disparity.reason}"
        ratio = ""
        if math.isfinite(disparity.ratio):
            ratio = f", ratio {fmt.with_interval(disparity.ratio, (disparity.ratio_low, disparity.ratio_high))}"
        return f"{title}: {places}, a gap of {gap}{ratio}{why}."

    def _entry(self, metric: str) -> Metric:
        return self.table.evaluation.catalog.lookup(metric)

    def side(self, metric: str, text: str) -> int:
        """-1 for a segment that is worse than the rest, 1 for a better one, 0 if the interval contains 0."""
        row = self.rows[metric][text]
        sign = int(row["difference_low"] > 0) - int(row["difference_high"] < 0)
        return -sign if self._entry(metric).better == "lower" else sign


def views(evaluation: Evaluation, metrics: Sequence[str] = ()) -> Iterator[SegmentView]:
    """The segments of each column with some metrics, by default accuracy and, of two groups, recall and precision."""
    chosen = tuple(metrics) or tuple(name for name in DEFAULT_METRICS if name in evaluation.metrics)
    if chosen:
        yield from (SegmentView(table, chosen) for table in evaluation.segments.values())


def sentences(evaluation: Evaluation) -> list[str]:
    """Sentences on segments that are worse than the rest; none where no interval excludes 0."""
    return [sentence for view in views(evaluation) for sentence in view.sentences()]


# -- the page ----------------------------------------------------------------------------------------------------


def page_tables(evaluation: Evaluation) -> list[dict[str, Any]]:
    """The table of each column for the report's page, and its gaps in words."""
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
    cells = []
    for metric in view.metrics:
        row = view.rows[metric][text]
        ends, apart = (row["low"], row["high"]), (row["difference_low"], row["difference_high"])
        defined, reach = math.isfinite(row["difference"]), fmt.interval(row["difference"], apart)
        cells.append(
            {
                "value": fmt.number(row["value"], ends),
                "interval": fmt.interval(row["value"], ends),
                "sort": row["value"] if math.isfinite(row["value"]) else "",
                "undefined": row["undefined"],
                "difference": fmt.signed(row["difference"], apart).removesuffix(reach).rstrip()
                if defined
                else "–",
                "reach": reach if defined else "",
                "difference_sort": row["difference"] if defined else "",
                "apart": view.side(metric, text) != 0,
            }
        )
    rows = view.rows[view.metrics[0]][text]["rows"]
    return {
        "label": text,
        "shown": fmt.short(text),
        "rows": fmt.count(rows),
        "sort": rows,
        "cells": cells,
    }


# -- the table of MLflow's views -----------------------------------------------------------------------------------


def segment_table(evaluation: Evaluation) -> list[dict[str, Any]]:
    """One row per segment, its column and value first: the artifact view groups runs by the first column."""
    rows = []
    for view in views(evaluation):
        for text in view.table.texts:
            shown: list[str] = []
            numbers: dict[str, float | None] = {}
            for metric in view.metrics:
                row, name = view.rows[metric][text], metric.rpartition("/")[2]
                parts = ("low", "high", "difference", "difference_low", "difference_high")
                numbers |= {name: fmt.rounded(row["value"])}
                numbers |= {f"{name}_{part}": fmt.rounded(row[part]) for part in parts}
                shown.append(fmt.named_value(name, row["value"], row["low"], row["high"]))
            sizes = view.rows[view.metrics[0]][text]["rows"]
            segment = f"{view.name}: {text}"
            rows.append(
                {"segment": segment, "result": fmt.BETWEEN.join(shown), "rows": sizes, **numbers}
            )
    return rows


# -- the figure ------------------------------------------------------------------------------------------------


def segments_figure(evaluation: Evaluation, view: SegmentView) -> Figure:
    """The segments of a column with the intervals of all metrics side by side."""
    # Matplotlib, only where a figure is drawn
    from cmtrack.plots.segments import SegmentPanel, plot_segments

    panels = []
    for metric in view.metrics:
        rows = [view.rows[metric][text] for text in view.order]
        values, low, high = ([row[name] for row in rows] for name in ("value", "low", "high"))
        apart = [view.side(metric, text) for text in view.order]
        title = fmt.capital(view.title_of(metric))
        panels.append(SegmentPanel(title, values, low, high, evaluation.metrics[metric], apart))
    sizes = [view.rows[view.metrics[0]][text]["rows"] for text in view.order]
    title = f"Segments by {fmt.named(view.name, 40)}"
    level = evaluation.confidence_level
    return plot_segments(
        view.order, sizes, panels, confidence_level=level, order=view.order_text, title=title
    )
