"""A family evaluation on the terminal, and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cmtrack.cli.frame import plain
from cmtrack.cli.summary import MAX_ROWS, cell, headline_table, new_table
from cmtrack.families.result import FamilyEvaluation
from cmtrack.metrics.names import encode_label
from cmtrack.report import families_words, words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def as_data(evaluation: FamilyEvaluation) -> dict[str, Any]:
    """Plain data of an evaluation for scripts, as JSON can hold it."""
    return {
        "kind": "families",
        "n_documents": evaluation.n_samples,
        "families": [str(family) for family in evaluation.families],
        "matching": evaluation.matching,
        "confidence_level": evaluation.confidence_level,
        "labels_digest": evaluation.labels_digest,
        "metrics": evaluation.metrics,
        "intervals": evaluation.intervals,
        "undefined": evaluation.undefined,
        "warnings": list(evaluation.warnings),
    }


def print_evaluation(console: Console, evaluation: FamilyEvaluation) -> None:
    """Print verdict, headline metrics, families and warnings."""
    from rich.text import Text

    for sentence in families_words.verdict(evaluation):
        console.print(plain(sentence))
    console.print(headline_table(evaluation))
    console.print(_families(evaluation))
    for warning in evaluation.warnings:
        console.print(Text.assemble(("Warning: ", "yellow"), warning))


def _families(evaluation: FamilyEvaluation) -> Table:
    m, ends = evaluation.metrics, evaluation.intervals
    prefixes = {family: f"family/{encode_label(family)}" for family in evaluation.families}
    order = sorted(prefixes, key=lambda f: -m[f"{prefixes[f]}/support"])
    title = "Families"
    if len(order) > MAX_ROWS:
        order, title = order[:MAX_ROWS], f"The {MAX_ROWS} families with the most labels, of {len(order)}"
    table = new_table(title)
    table.add_column("family", overflow="fold")
    table.add_column("labels", justify="right")
    for name in ("F1", "confused", "out of family"):
        table.add_column(name, justify="left")
    for family in order:
        names = (f"{prefixes[family]}/{name}" for name in ("f1_micro", "confusion_share", "oof_share"))
        shown = (cell(m[name], ends.get(name)) for name in names)
        table.add_row(plain(words.short(family)), words.count(m[f"{prefixes[family]}/support"]), *shown)
    return table
