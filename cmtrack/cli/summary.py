"""Functions that print an evaluation on the terminal or return it as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cmtrack import archive
from cmtrack.base import BaseEvaluation
from cmtrack.cli.frame import plain, print_text
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.names import decode_label, encode_label
from cmtrack.names import as_sentence
from cmtrack.report import formatting as fmt
from cmtrack.report import narrative
from cmtrack.report.views import verdict

if TYPE_CHECKING:
    from rich.console import Console, OverflowMethod
    from rich.table import Table

    from cmtrack.evaluation.segments import SegmentTable

MAX_SENTENCES = 4
MAX_ROWS = 40
MAX_WORST = 10
ENOUGH = 5
"""Minimum number of rows of a class listed as worst; with fewer rows, F1 is mostly chance."""
MAX_GROUPS = 8


def as_data(evaluation: BaseEvaluation) -> dict[str, Any]:
    """Return an evaluation as JSON data for scripts."""
    parts: dict[str, Any] = {}
    if evaluation.kind == archive.FAMILIES:
        parts = {
            "kind": evaluation.kind,
            "n_documents": evaluation.n_samples,
            "families": [decode_label(family) for family in _families_of(evaluation)],
            **evaluation.spec.given(),
        }
    if isinstance(evaluation, Evaluation):
        parts = {
            "n_samples": evaluation.n_samples,
            "labels": list(evaluation.labels),
            "positive": evaluation.positive,
            "grouping": None if evaluation.grouping is None else evaluation.grouping.to_dict(),
            "confusion_matrix": evaluation.confusion_matrix.counts.tolist(),
            "reduced": {
                step.name: {
                    "labels": list(step.labels),
                    "counts": step.counts.tolist(),
                    "mismatches": step.mismatches.tolist(),
                }
                for step in evaluation.reduced
            },
        }
        if evaluation.segments:
            parts["segments"] = {
                name: table.to_frame().to_dict("records")
                for name, table in evaluation.segments.items()
            }
    return parts | {
        "confidence_level": evaluation.confidence_level,
        "labels_digest": evaluation.labels_digest,
        "metrics": evaluation.metrics,
        "intervals": evaluation.intervals,
        "undefined": evaluation.undefined,
        "warnings": list(evaluation.warnings),
    }


def print_evaluation(console: Console, evaluation: BaseEvaluation) -> None:
    """Print sentences, headline metrics, classes or families, reduced matrices and warnings."""
    from rich.padding import Padding
    from rich.text import Text

    sentences = verdict(evaluation)
    if isinstance(evaluation, Evaluation):
        sentences = sentences[:MAX_SENTENCES]
    for sentence in sentences:
        print_text(console, sentence)
    console.print(_headline(evaluation))
    if evaluation.kind == archive.FAMILIES:
        console.print(_families(evaluation))
    if isinstance(evaluation, Evaluation):
        if evaluation.has_section("class"):
            console.print(_classes(evaluation))
        for step in evaluation.reduced:
            if len(step.labels) <= MAX_GROUPS:
                console.print(_reduced(step))
        for segments in evaluation.segments.values():
            console.print(_segments(segments))
        if any(step.mismatches.any() for step in evaluation.reduced):
            console.print(Padding(Text(narrative.MISMATCHES, style="dim"), (0, 2, 1, 2)))
    print_warnings(console, evaluation.warnings)


def print_warnings(console: Console, warnings: Iterable[str]) -> None:
    """Print each warning on a separate line."""
    for warning in warnings:
        print_text(console, as_sentence(warning), label="Warning:")


def new_table(
    title: str, *heads: str, right: int | None = None, overflow: OverflowMethod = "ellipsis"
) -> Table:
    """Return a table in the style of all commands.

    ``right`` columns after the first column are right-aligned; by default, all of them are.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    last_right = len(heads) if right is None else right
    for k, head in enumerate(heads):
        table.add_column(
            plain(head),
            justify="right" if 0 < k <= last_right else "left",
            overflow=overflow if k else "fold",
        )
    return table


def _headline(evaluation: BaseEvaluation) -> Table:
    """Return a table of the headline metrics with their intervals."""
    title = "Headline metrics"
    if evaluation.positive is not None:
        title += f" (positive: {fmt.short(evaluation.positive, 30)})"
    level = f"{fmt.level(evaluation.confidence_level)} interval"
    table = new_table(title, "metric", "value", level, "better", right=1)
    table.columns[-1].style = "dim"
    for name in evaluation.headline:
        entry = evaluation.catalog.lookup(name)
        value = evaluation.metrics[name]
        interval = evaluation.intervals.get(name)
        if math.isnan(value):
            text = fmt.missing_word(evaluation, name)
        else:
            text = fmt.metric_value(entry, value, interval)
        shown_interval = plain(fmt.metric_interval(entry, value, interval))
        table.add_row(plain(name), text, shown_interval, entry.better)
    return table


def _classes(evaluation: Evaluation) -> Table:
    """Return precision, recall and F1 of all classes, or of the classes with the lowest F1."""
    metrics = evaluation.metrics
    labels = list(evaluation.classes)
    title = "Classes"
    if len(labels) > MAX_ROWS:
        prefix_by_label = {label: f"class/{encode_label(label)}" for label in labels}
        enough = [
            label for label in labels if metrics[f"{prefix_by_label[label]}/support"] >= ENOUGH
        ]
        title = f"Classes with the lowest F1: {MAX_WORST} of {len(labels)}"
        n_rare = len(labels) - len(enough)
        if n_rare:
            title += f" ({n_rare} with fewer than {ENOUGH} rows are not shown)"
        f1 = {label: metrics[f"{prefix_by_label[label]}/f1"] for label in enough}
        # An undefined F1 comes last.
        enough.sort(key=lambda label: math.inf if math.isnan(f1[label]) else f1[label])
        labels = enough[:MAX_WORST]
    table = new_table(title, "class", "rows", "precision", "recall", "F1", right=1)
    for label in labels:
        prefix = f"class/{encode_label(label)}"
        n = metrics[f"{prefix}/support"]
        size = "1 (single)" if n == 1 else fmt.count(n)
        scores = (
            _metric_cell(evaluation, f"{prefix}/{name}") for name in ("precision", "recall", "f1")
        )
        table.add_row(plain(fmt.short(label)), size, *scores)
    return table


def _segments(segments: SegmentTable) -> Table:
    """Return a table of the first segments, ordered by their first metric."""
    frame = segments.to_frame().head(len(segments))
    metric = frame["metric"].iloc[0]
    shown = frame.head(MAX_WORST)
    order = segments.order_of(metric)
    if len(frame) > len(shown):
        order = f"{len(shown)} of {len(frame)} segments, {order}"
    title = f"By {fmt.short(segments.name, 40)}: {order}"
    table = new_table(title, "segment", "rows", metric, "difference to the rest", right=1)
    for row in shown.to_dict("records"):
        value = _cell(row["value"], (row["low"], row["high"]))
        difference = _cell(row["difference"], (row["difference_low"], row["difference_high"]))
        table.add_row(plain(fmt.short(row["segment"])), fmt.count(row["rows"]), value, difference)
    return table


def _metric_cell(evaluation: BaseEvaluation, name: str) -> Any:
    return _cell(evaluation.metrics[name], evaluation.intervals.get(name))


def _cell(value: float, interval: tuple[float, float] | None) -> Any:
    """Format a cell with two digits, so that three intervals fit into 80 columns."""
    if math.isnan(value):
        return plain("undefined")
    text = fmt.two_places(value)
    if interval is not None and not math.isnan(interval[0]):
        text = f"{text} {fmt.two_places_interval(interval)}".rstrip()
    return plain(text)


def _reduced(step: Any) -> Table:
    """Return the confusion matrix between a step's groups, including the mismatches (IM)."""
    groups = [fmt.short(group, 20) for group in step.labels]
    has_mismatches = step.mismatches.any()
    if has_mismatches:
        groups.append("IM")
    title = f"Grouped: {fmt.short(step.name)}"
    table = new_table(title, "actual / predicted", *groups, overflow="fold")
    mismatches = [fmt.count(count) for count in step.mismatches.tolist()]
    rows = zip(step.labels, step.counts.tolist(), mismatches, strict=True)
    for group, counts, mismatch in rows:
        cells = [*map(fmt.count, counts), mismatch]
        table.add_row(plain(fmt.short(group, 30)), *cells[: len(groups)])
    if has_mismatches:
        table.add_row("IM", *mismatches, "0", style="dim")
    return table


def _families_of(evaluation: BaseEvaluation) -> list[str]:
    """Return the encoded names of the families."""
    return [name.split("/")[1] for name in evaluation.metrics if name.endswith("/support")]


def _families(evaluation: BaseEvaluation) -> Table:
    """Return a table of the families and their confusions, starting with the largest families."""
    metrics = evaluation.metrics
    families = _families_of(evaluation)
    families.sort(key=lambda family: -metrics[f"family/{family}/support"])
    title = "Families"
    if len(families) > MAX_ROWS:
        title = f"Families with the most labels: {MAX_ROWS} of {len(families)}"
    table = new_table(title, "family", "labels", "F1", "confused", "out of family", right=1)
    for family in families[:MAX_ROWS]:
        prefix = f"family/{family}"
        names = ("f1_micro", "confusion_share", "oof_share")
        cells = (_metric_cell(evaluation, f"{prefix}/{name}") for name in names)
        size = fmt.count(metrics[f"{prefix}/support"])
        table.add_row(plain(fmt.short(decode_label(family))), size, *cells)
    return table
