"""A run's description: one labelled block for each evaluation, beside a person's own words.

The marks around a block are comments of Markdown, which the MLflow UI does not show.
"""

from __future__ import annotations

import math
import re

from cmtrack.base import BaseEvaluation
from cmtrack.metrics.catalog import CATALOG
from cmtrack.report.formatting import level

NOTE = "mlflow.note.content"
MAX_NOTE = 8000

_FIRST_VERSION = re.compile(r"\A\| cmtrack \|.*\n(?:\|.*(?:\n|\Z))*\n*")


def description(evaluation: BaseEvaluation, prefix: str = "") -> str:
    """The block of an evaluation: which one it is, and its headline numbers as a table."""
    headline = [metric.name for metric in CATALOG if metric.headline and "<" not in metric.name]
    metrics, intervals = evaluation.metrics, evaluation.intervals
    percent = level(evaluation.confidence_level)
    lines = [_title(evaluation, prefix), "", f"| metric | value | {percent} interval |", "|---|---|---|"]
    for name in headline:
        value = metrics.get(name, math.nan)
        if math.isfinite(value) and not name.endswith(("_low", "_high")):
            ends = intervals.get(name)
            shown = f"{ends[0]:.4g} to {ends[1]:.4g}" if ends else ""
            lines.append(f"| {prefix}{name} | {value:.4g} | {shown} |")
    return "\n".join(lines)


def with_block(note: str, block: str, prefix: str = "") -> str:
    """A description with the block of one prefix in it: in the place of its earlier one, else at the end.

    Nothing else is touched. A block that would make the text longer than MLflow takes is left out; one that the first
    version of cmtrack wrote, without a label, goes.
    """
    name = f"cmtrack {prefix}".strip()
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    marked = f"{begin}\n{block}\n\n{end}"
    known = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    note = _FIRST_VERSION.sub("", note)
    if known.search(note):
        new = known.sub(lambda _: marked, note, count=1)
    else:
        new = f"{note.rstrip()}\n\n{marked}" if note.strip() else marked
    return new if len(new) <= MAX_NOTE else note


def _title(evaluation: BaseEvaluation, prefix: str) -> str:
    what = f"Evaluation “{prefix.strip('/ ._-')}”" if prefix.strip("/ ._-") else "Evaluation"
    facts = [f"{evaluation.n_samples:.15g} samples"]
    if evaluation.positive is not None:
        facts.append(f"positive group “{evaluation.positive}”")
    return f"**{what}**: {', '.join(facts)}"
