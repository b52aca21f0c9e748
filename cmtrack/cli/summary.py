"""An evaluation on the terminal, and as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cmtrack import archive
from cmtrack.base import BaseEvaluation
from cmtrack.cli.frame import plain
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.names import decode_label, encode_label
from cmtrack.report import formatting as fmt
from cmtrack.report import narrative
from cmtrack.report.views import view_of

if TYPE_CHECKING:
    from rich.console import Console, OverflowMethod
    from rich.table import Table

    from cmtrack.evaluation.segments import SegmentTable

MAX_SENTENCES = 4
MAX_ROWS = 40
MAX_WORST = 10
ENOUGH = 5
"""Samples without which a class is not among the worst: its F1 is luck."""
MAX_GROUPS = 8


def as_data(evaluation: BaseEvaluation) -> dict[str, Any]:
    """An evaluation as JSON data for scripts."""
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
    """Print verdict, headline metrics, classes or families, reduced matrices and warnings."""
    from rich.padding import Padding
    from rich.text import Text

    sentences = view_of(evaluation).verdict(evaluation)
    for sentence in sentences[:MAX_SENTENCES] if isinstance(evaluation, Evaluation) else sentences:
        console.print(plain(sentence))
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
    """Print warnings, a line each."""
    from rich.text import Text

    for warning in warnings:
        console.print(Text.assemble(("Warning: ", "yellow"), warning))


def new_table(
    title: str, *heads: str, right: int | None = None, overflow: OverflowMethod = "ellipsis"
) -> Table:
    """A table in the one style of all commands; the first ``right`` columns after the first, or all, align right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    look = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
    table = Table(title=Text(title, style="bold"), title_justify="left", **look)  # type: ignore[arg-type]
    for k, head in enumerate(heads):
        numbers = 0 < k <= (len(heads) if right is None else right)
        table.add_column(
            plain(head), justify="right" if numbers else "left", overflow=overflow if k else "fold"
        )
    return table


def _headline(evaluation: BaseEvaluation) -> Table:
    """The headline metrics with their intervals."""
    level = f"{fmt.level(evaluation.confidence_level)} interval"
    named = (
        "" if evaluation.positive is None else f" (positive: {fmt.short(evaluation.positive, 30)})"
    )
    table = new_table(f"Headline metrics{named}", "metric", "value", level, "better", right=1)
    table.columns[-1].style = "dim"
    for name in evaluation.headline:
        entry, value, ends = (
            evaluation.catalog.lookup(name),
            evaluation.metrics[name],
            evaluation.intervals.get(name),
        )
        shown = (
            fmt.missing_word(evaluation, name)
            if math.isnan(value)
            else fmt.metric_value(entry, value, ends)
        )
        table.add_row(
            plain(name), shown, plain(fmt.metric_interval(entry, value, ends)), entry.better
        )
    return table


def _classes(evaluation: Evaluation) -> Table:
    m, ends = evaluation.metrics, evaluation.intervals
    labels = list(evaluation.classes)
    title = "Classes"
    if len(labels) > MAX_ROWS:
        enough = [label for label in labels if m[f"class/{encode_label(label)}/support"] >= ENOUGH]
        title = f"The {MAX_WORST} classes of lowest F1, of {len(labels)}"
        if len(enough) < len(labels):
            title += (
                f" ({len(labels) - len(enough)} with fewer than {ENOUGH} samples are not shown)"
            )
        f1 = {label: m[f"class/{encode_label(label)}/f1"] for label in enough}
        enough.sort(key=lambda label: math.inf if math.isnan(f1[label]) else f1[label])
        labels = enough[:MAX_WORST]
    table = new_table(title, "class", "samples", "precision", "recall", "F1", right=1)
    for label in labels:
        prefix = f"class/{encode_label(label)}"
        scores = (
            _cell(m[f"{prefix}/{n}"], ends.get(f"{prefix}/{n}"))
            for n in ("precision", "recall", "f1")
        )
        n = m[f"{prefix}/support"]
        table.add_row(plain(fmt.short(label)), "1 (single)" if n == 1 else fmt.count(n), *scores)
    return table


def _segments(segments: SegmentTable) -> Table:
    """The first segments, by their first metric."""
    frame = segments.to_frame().head(len(segments))
    metric, shown = frame["metric"].iloc[0], frame.head(MAX_WORST)
    some = f"{len(shown)} of {len(frame)} segments, " if len(frame) > len(shown) else ""
    title = f"By {fmt.short(segments.name, 40)}: {some}{segments.order_of(metric)}"
    table = new_table(title, "segment", "rows", metric, "difference to the rest", right=1)
    for row in shown.to_dict("records"):
        cells = []
        for name, low, high in (
            ("value", "low", "high"),
            ("difference", "difference_low", "difference_high"),
        ):
            cells.append(_cell(row[name], None if math.isnan(row[low]) else (row[low], row[high])))
        table.add_row(plain(fmt.short(row["segment"])), fmt.count(row["rows"]), *cells)
    return table


def _cell(value: float, ends: tuple[float, float] | None) -> Any:
    """Format a cell with two digits, so that three intervals fit in 80 columns."""
    if math.isnan(value):
        return plain("undefined")
    shown = fmt.two_places(value)
    return plain(shown if ends is None else f"{shown} {fmt.two_places_interval(ends)}".rstrip())


def _reduced(step: Any) -> Table:
    groups = (fmt.short(group, 20) for group in (*step.labels, "IM"))
    table = new_table(
        f"Grouped: {fmt.short(step.name)}", "actual / predicted", *groups, overflow="fold"
    )
    for group, counts, im in zip(step.labels, step.counts, step.mismatches, strict=True):
        table.add_row(
            plain(fmt.short(group, 30)),
            *(fmt.count(v.item()) for v in counts),
            fmt.count(im.item()),
        )
    table.add_row("IM", *(fmt.count(im.item()) for im in step.mismatches), "0", style="dim")
    return table


def _families_of(evaluation: BaseEvaluation) -> list[str]:
    """The encoded names of the families."""
    return [name.split("/")[1] for name in evaluation.metrics if name.endswith("/support")]


def _families(evaluation: BaseEvaluation) -> Table:
    m, ends = evaluation.metrics, evaluation.intervals
    prefixes = {decode_label(family): f"family/{family}" for family in _families_of(evaluation)}
    order = sorted(prefixes, key=lambda f: -m[f"{prefixes[f]}/support"])
    title = "Families"
    if len(order) > MAX_ROWS:
        order, title = (
            order[:MAX_ROWS],
            f"The {MAX_ROWS} families with the most labels, of {len(order)}",
        )
    table = new_table(title, "family", "labels", "F1", "confused", "out of family", right=1)
    for family in order:
        names = (
            f"{prefixes[family]}/{name}" for name in ("f1_micro", "confusion_share", "oof_share")
        )
        shown = (_cell(m[name], ends.get(name)) for name in names)
        table.add_row(plain(fmt.short(family)), fmt.count(m[f"{prefixes[family]}/support"]), *shown)
    return table
