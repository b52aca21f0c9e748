"""Markdown blocks inside an MLflow description, which users can also edit.

Each block is enclosed in two comments, which MLflow does not display. Therefore cmtrack can rewrite
its blocks without changing text that people wrote. Links to a run's files are added as soon as the
run is known. The links contain no host name, so they still work after the server has moved.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.report import narrative
from cmtrack.report.evaluation_page import headline
from cmtrack.report.formatting import counted, level, markdown_text, metric_interval, metric_value
from cmtrack.report.views import lead
from cmtrack.tracking.names import REPORT_FILE, file_name

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture

NOTE = "mlflow.note.content"
"""The tag that MLflow shows as the description of a run, an experiment or a logged model."""
MAX_NOTE = 8000
ROWS = 6
"""Maximum number of rows in the table of metrics."""
_WARNINGS = 2
_FILE = "artifact:"
_LINK = re.compile(rf"( ?)(!?)\[([^\[\]\n]*)\]\({_FILE}([^()\s]*)\)")
_ANY_BLOCK = re.compile(r"^[^\n]*<!-- cmtrack", re.MULTILINE)
_WHOLE_BLOCK = re.compile(
    r"^(?P<head>[^\n]*<!-- (?P<name>cmtrack[^\n]*?) -->)\n.*?(?P<end><!-- /(?P=name) -->)",
    re.DOTALL | re.MULTILINE,
)
_FIRST_VERSION = re.compile(r"\A\| cmtrack \|.*\n(?:\|.*(?:\n|\Z))*\n*")


def description(
    evaluation: BaseEvaluation, prefix: str, pictures: Mapping[str, Picture], *, report: bool
) -> str:
    """Return the block for an evaluation: result, warnings, confusion matrix, headline metrics.

    MLflow shows the first four lines of a description above its "Show more" button. The link to the
    report is on the first line.

    ``prefix``: the prefix under which the evaluation is logged.
    ``pictures``: the figures that were drawn.
    ``report``: whether the block links to a report.

    Returns Markdown with preliminary links, which :func:`with_links` completes.
    """
    title = "Evaluation"
    under = prefix.strip("/ ._-")
    if under:
        title += f" “{markdown_text(under)}”"
    first, *other_lines = map(markdown_text, lead(evaluation))
    lines = [f"**{title}**: {first}", *other_lines]
    if report:
        lines[0] += f" [Report]({_FILE}{quote(file_name(REPORT_FILE, prefix))})"
    warnings = narrative.first_warnings(evaluation)[:_WARNINGS]
    lines += [f"**Warning:** {markdown_text(warning)}" for warning in warnings]
    n_others = len(evaluation.warnings) - len(warnings)
    if n_others:
        noun = "more warning" if warnings else "warning"
        lines[-1] += f" ({counted(n_others, noun)} in the report.)"
    picture = _matrix(evaluation, pictures)
    if picture is not None:
        # A pattern finds the links later, and it does not allow brackets in a title.
        words = re.sub(r"[\[\]\\]", "", markdown_text(picture.title))
        lines.append(f"![{words}]({_FILE}{quote(file_name(picture.file, prefix))})")
    return "\n\n".join([*lines, _table(evaluation, prefix)])


def _matrix(evaluation: BaseEvaluation, pictures: Mapping[str, Picture]) -> Picture | None:
    """Return the matrix of the last step that has two groups, or else the matrix for the charts."""
    steps = evaluation.reduced if isinstance(evaluation, Evaluation) else ()
    of_two_groups = [f"reduced_{step.name}" for step in steps if step.positive is not None]
    shown = of_two_groups[-1:] + [name for name, picture in pictures.items() if picture.chart]
    return next((pictures[name] for name in shown if name in pictures), None)


def _table(evaluation: BaseEvaluation, prefix: str) -> str:
    metrics = evaluation.metrics
    shown = [name for name in headline(evaluation) if math.isfinite(metrics[name])]
    lines = [f"| metric | value | {level(evaluation.confidence_level)} interval |", "|---|---|---|"]
    for name in shown[:ROWS]:
        metric = evaluation.catalog.lookup(name)
        interval = evaluation.intervals.get(name)
        value = metric_value(metric, metrics[name], interval)
        interval_text = metric_interval(metric, metrics[name], interval)
        lines.append(f"| {prefix}{name} | {value} | {interval_text} |")
    return "\n".join(lines)


# -- links -----------------------------------------------------------------------------------------


def artifact_link(experiment_id: str, run_id: str, file: str) -> str:
    """Return the address of a file's page in MLflow, relative to the server."""
    return f"#/experiments/{quote(experiment_id)}/runs/{quote(run_id)}/artifacts/{file}"


def with_links(block: str, experiment_id: str, run_id: str, files: Container[str]) -> str:
    """Complete a block's links to the given files, and remove all other links from the block.

    The block must come from :func:`description`.
    """

    def link(match: re.Match[str]) -> str:
        space, picture, words, file = match.groups()
        if file not in files:
            return ""
        address = artifact_link(experiment_id, run_id, file)
        if picture:
            address = f"get-artifact?path={file}&run_uuid={quote(run_id)}"
        return f"{space}{picture}[{words}]({address})"

    return re.sub(r"\n{3,}", "\n\n", _LINK.sub(link, block))


# -- blocks ----------------------------------------------------------------------------------------


def with_block(note: str, block: str, prefix: str = "", *, first: bool = False) -> str:
    """Insert a labelled block into a description; a block with the same label is replaced.

    A new block is added at the end. Text that people wrote is not changed. The label is at the end
    of the block's first line, because MLflow's lists show this line as plain text and it should
    begin with words. If the description becomes too long for MLflow, cmtrack's longest blocks are
    cut to their first lines. If the description is still too long, the new block is omitted; use
    :func:`has_block` to check. If the first version of cmtrack wrote an unlabelled block, this
    block is removed.

    ``prefix``: the prefix of the evaluation, used as the label. A review's label is in brackets,
    which prefixes cannot contain.
    ``first``: whether to insert a new block before all other blocks of cmtrack.
    """
    begin, end = _marks(prefix)
    head, *rest = block.split("\n", 1)
    marked = "\n".join([f"{head} {begin}", *rest, "", end])
    earlier = re.compile(f"^[^\n]*{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL | re.MULTILINE)
    note = _FIRST_VERSION.sub("", note)
    other = _ANY_BLOCK.search(note) if first else None
    if earlier.search(note):
        new = earlier.sub(lambda _: marked, note, count=1)
    elif other is not None:
        new = f"{note[: other.start()]}{marked}\n\n{note[other.start() :]}"
    else:
        new = f"{note.rstrip()}\n\n{marked}" if note.strip() else marked
    new = _shortened(new)
    return new if len(new) <= MAX_NOTE else note


def has_block(note: str, prefix: str = "") -> bool:
    """Return True if a description contains the block labelled with a prefix."""
    return _marks(prefix)[1] in note


def _marks(prefix: str) -> tuple[str, str]:
    name = f"cmtrack {prefix}".strip()
    return f"<!-- {name} -->", f"<!-- /{name} -->"


def _shortened(note: str) -> str:
    """Shorten the longest blocks to their first lines until the description is short enough."""
    blocks = sorted(_WHOLE_BLOCK.finditer(note), key=lambda block: len(block[0]), reverse=True)
    for block in blocks:
        if len(note) <= MAX_NOTE:
            break
        note = note.replace(block[0], f"{block['head']}\n\n{block['end']}")
    return note
