"""An evaluation on the terminal, and as plain data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cmtrack.base import BaseEvaluation
from cmtrack.cli.frame import plain
from cmtrack.evaluation import Evaluation
from cmtrack.metrics.catalog import lookup
from cmtrack.metrics.names import encode_label
from cmtrack.report import words
from cmtrack.report.evaluation_page import is_count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MAX_ROWS = 40
MAX_WORST = 10
ENOUGH = 5
"""Samples without which a class is not among the worst: its F1 is luck."""
MAX_GROUPS = 8


def as_data(evaluation: Evaluation) -> dict[str, Any]:
    """Plain data of an evaluation for scripts, as JSON can hold it."""
    return {
        "n_samples": evaluation.n_samples,
        "labels": list(evaluation.labels),
        "positive": evaluation.positive,
        "grouping": None if evaluation.grouping is None else evaluation.grouping.to_dict(),
        "confidence_level": evaluation.confidence_level,
        "labels_digest": evaluation.labels_digest,
        "metrics": evaluation.metrics,
        "intervals": evaluation.intervals,
        "undefined": evaluation.undefined,
        "warnings": list(evaluation.warnings),
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


def print_evaluation(console: Console, evaluation: Evaluation) -> None:
    """Print verdict, headline metrics, classes, reduced matrices and warnings."""
    from rich.padding import Padding
    from rich.text import Text

    for sentence in words.verdict(evaluation)[:4]:
        console.print(plain(sentence))
    console.print(headline_table(evaluation))
    if evaluation.has_section("class"):
        console.print(_classes(evaluation))
    for step in evaluation.reduced:
        if len(step.labels) <= MAX_GROUPS:
            console.print(_reduced(step))
    if any(step.mismatches.any() for step in evaluation.reduced):
        console.print(Padding(Text(words.MISMATCHES, style="dim"), (0, 2, 1, 2)))
    for warning in evaluation.warnings:
        console.print(Text.assemble(("Warning: ", "yellow"), warning))


def new_table(title: str) -> Table:
    """A table in the one style of all commands."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    look = {"box": box.SIMPLE_HEAD, "pad_edge": False, "padding": (0, 1, 0, 0)}
    return Table(title=Text(title, style="bold"), title_justify="left", **look)  # type: ignore[arg-type]


def headline_table(evaluation: BaseEvaluation) -> Table:
    """The headline metrics with their intervals."""
    level = f"{100 * evaluation.confidence_level:g} % interval"
    named = "" if evaluation.positive is None else f" (positive: {words.short(evaluation.positive, 30)})"
    table = new_table(f"Headline metrics{named}")
    table.add_column("metric", overflow="fold")
    table.add_column("value", justify="right")
    table.add_column(level)
    table.add_column("better", style="dim")
    for name, value in evaluation.metrics.items():
        entry = lookup(name)
        if not entry.headline or name.endswith(("_low", "_high")):
            continue
        ends = evaluation.intervals.get(name)
        shown = words.count(value) if is_count(name) else words.number(value, ends)
        table.add_row(plain(name), shown, plain(words.interval(value, ends)), entry.better)
    return table


def _classes(evaluation: Evaluation) -> Table:
    m, ends = evaluation.metrics, evaluation.intervals
    labels = list(evaluation.classes)
    title = "Classes"
    if len(labels) > MAX_ROWS:
        enough = [label for label in labels if m[f"class/{encode_label(label)}/support"] >= ENOUGH]
        title = f"The {MAX_WORST} classes of lowest F1, of {len(labels)}"
        if len(enough) < len(labels):
            title += f" ({len(labels) - len(enough)} with fewer than {ENOUGH} samples are not shown)"
        enough.sort(key=lambda label: _last_if_undefined(m[f"class/{encode_label(label)}/f1"]))
        labels = enough[:MAX_WORST]
    table = new_table(title)
    table.add_column("class", overflow="fold")
    table.add_column("samples", justify="right")
    for name in ("precision", "recall", "F1"):
        table.add_column(name, justify="left")
    for label in labels:
        prefix = f"class/{encode_label(label)}"
        scores = (cell(m[f"{prefix}/{n}"], ends.get(f"{prefix}/{n}")) for n in ("precision", "recall", "f1"))
        table.add_row(plain(words.short(label)), _support(m[f"{prefix}/support"]), *scores)
    return table


def _support(n: float) -> str:
    return "1 (single)" if n == 1 else words.count(n)


def _last_if_undefined(value: float) -> float:
    return math.inf if math.isnan(value) else value


def cell(value: float, ends: tuple[float, float] | None) -> Any:
    """Format with two digits, to leave room for three intervals in 80 columns."""
    if math.isnan(value):
        return plain("undefined")
    return plain(f"{value:.2f}" if ends is None else f"{value:.2f} [{ends[0]:.2f}, {ends[1]:.2f}]")


def _reduced(step: Any) -> Table:
    table = new_table(f"Grouped: {words.short(step.name)}")
    table.add_column("actual / predicted", overflow="fold")
    for group in (*step.labels, "IM"):
        table.add_column(plain(words.short(group, 20)), justify="right", overflow="fold")
    for group, counts, im in zip(step.labels, step.counts, step.mismatches, strict=True):
        table.add_row(plain(words.short(group, 30)), *(words.count(v.item()) for v in counts), words.count(im.item()))
    table.add_row("IM", *(words.count(im.item()) for im in step.mismatches), "0", style="dim")
    return table
