"""The report of an evaluation, by its kind: one self-contained HTML page for a reviewer who did not run the model.

The MLflow UI shows it in a frame with ``sandbox="allow-scripts"``: no network, no storage. Everything is inline, and
the page reads the same without its script.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack import archive, notebook
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.report import evaluation_page, families_page, narrative, segments
from cmtrack.report.formatting import (
    BETWEEN,
    level,
    markdown_table,
    markdown_text,
    metric_title,
    missing_with_reason,
    split_json,
)
from cmtrack.report.html import drawn, figure_block, render_page, write_text
from cmtrack.report.rows import (
    NOTHING_JOINED,
    Joined,
    behind_confusions,
    joined_table,
    lists_rows,
    opened,
)

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture


@dataclass(frozen=True)
class View:
    """The views of one kind of evaluation; its figures stand in :mod:`cmtrack.report.figures`.

    ``template``: of the page.
    ``content``: what the template shows beside what every page does.
    ``told``: sentences, the most important first, each with its section.
    ``lead``: one or two of them: what came out, in brief.
    ``first``: the metrics of the first screen, by preference.
    ``table``: the table that MLflow's views show and compare.
    """

    template: str
    content: Callable[[Any], dict[str, Any]]
    told: Callable[[Any], list[tuple[str, str]]]
    lead: Callable[[Any], list[str]]
    first: tuple[str, ...]
    table: Callable[[Any], list[dict[str, Any]]]

    def verdict(self, evaluation: BaseEvaluation) -> list[str]:
        """The sentences alone."""
        return [sentence for _, sentence in self.told(evaluation)]


_OF_CLASSES = (
    "binary/matthews_corrcoef",
    "binary/recall",
    "binary/precision",
    "binary/roc_auc",
    "spans/f1_micro",
    "spans/recall_micro",
    "spans/precision_micro",
    "spans/f1_macro",
    "multiclass/accuracy",
    "multiclass/balanced_accuracy",
    "multiclass/matthews_corrcoef",
    "multiclass/f1_macro",
)
_OF_FAMILIES = (
    "family/f1_micro",
    "family/precision_micro",
    "family/recall_micro",
    "family/hierarchical_f1",
)
_FIRST = 4  # numbers of the first screen

_VIEWS = {
    archive.CLASSES: View(
        "report.html",
        evaluation_page.content,
        narrative.told,
        narrative.lead,
        _OF_CLASSES,
        evaluation_page.class_table,
    ),
    archive.FAMILIES: View(
        "families.html",
        families_page.content,
        families_page.told,
        families_page.lead,
        _OF_FAMILIES,
        families_page.code_table,
    ),
}


def view_of(evaluation: BaseEvaluation) -> View:
    """The views of an evaluation's kind.

    TypeError if it is of no known kind.
    """
    if not isinstance(evaluation, BaseEvaluation):
        raise TypeError(
            f"an evaluation must be of a kind among {list(_VIEWS)}, got {evaluation!r:.60}"
        )
    return _VIEWS[evaluation.kind]


def report_html(
    evaluation: BaseEvaluation,
    pictures: Mapping[str, Picture],
    *,
    title: str | None = None,
    subtitle: str = "",
    problems: Sequence[str] = (),
    rows: BaseEvaluation | None = None,
    joined: Joined = NOTHING_JOINED,
) -> str:
    """The report as one HTML document without any reference to the outside.

    ``pictures``: the figures, which are embedded.
    ``title``: by default "Evaluation".
    ``problems``: what could not be drawn.
    ``rows``: the evaluation with the rows that the page may list; by default it lists none.
    ``joined``: what stands beside them.
    """
    view = view_of(evaluation)
    statements, content = view.told(evaluation), view.content(evaluation)
    problems = list(problems)
    behind = (
        behind_confusions(rows, joined=joined)
        if rows is not None and lists_rows(problems)
        else None
    )
    opens = opened(behind)
    blocks = [figure_block(picture, opens) for picture in pictures.values()]
    reduced = [name for name in pictures if name.startswith("reduced_")]
    first = reduced[-1] if reduced else next(iter(pictures), None)
    questions = []
    for key in narrative.QUESTIONS:
        sentences = [sentence for section, sentence in statements if section == key]
        figures = [block for block in blocks if block["section"] == key and block["name"] != first]
        tables = key in ("good", "confusions", "facts") or (
            key == "failures" and content.get("segments")
        )
        if sentences or figures or tables:
            text = narrative.question(key, evaluation)
            questions.append({"key": key, "text": text, "sentences": sentences, "figures": figures})
    return render_page(
        view.template,
        title=title or "Evaluation",
        subtitle=subtitle,
        lead=[sentence for section, sentence in statements if not section],
        warnings=[*evaluation.warnings, *(f"Not drawn: {problem}." for problem in problems)],
        level=level(evaluation.confidence_level),
        numbers=_first_numbers(evaluation),
        first=next((block for block in blocks if block["name"] == first), None),
        questions=questions,
        behind=behind,
        opens=opens,
        all_metrics=evaluation_page.all_metrics(evaluation),
        n_metrics=len(evaluation.metrics),
        **content,
    )


def _first_numbers(evaluation: BaseEvaluation) -> list[dict[str, Any]]:
    """The metrics of the first screen, with titles that name the positive class."""
    shown = [name for name in view_of(evaluation).first if name in evaluation.metrics][:_FIRST]
    positive = evaluation.positive if isinstance(evaluation, Evaluation) else None
    return [
        evaluation_page.metric_row(evaluation, name)
        | {"title": metric_title(name, positive, catalog=evaluation.catalog)}
        for name in shown
    ]


def notebook_html(evaluation: BaseEvaluation) -> str:
    """An evaluation in a notebook: its first sentences, four numbers, the matrix, and warnings."""
    view = view_of(evaluation)
    first, *more = *view.lead(evaluation), BETWEEN.join(view.content(evaluation)["head"])
    tiles = "".join(
        f"<td>{escape(row['title'])}<br><b>{escape(row['value'])}</b> {escape(row['interval'])}</td>"
        for row in _first_numbers(evaluation)
    )
    matrix = ""
    if isinstance(evaluation, Evaluation):
        shown = (evaluation.reduced or [evaluation.confusion_matrix])[-1]
        matrix = notebook.matrix(shown.to_frame()) if len(shown.labels) <= notebook.ROWS else ""
    rest = f"{len(evaluation.metrics)} metrics: .to_frame(); figures: .figures(); the whole report: .report()."
    return notebook.view(
        f"<p><b>{escape(first)}</b></p>",
        *map(notebook.sentence, more),
        f"<table><tr>{tiles}</tr></table>",
        matrix,
        notebook.sentence(rest),
        notes=evaluation.warnings,
    )


def card(evaluation: BaseEvaluation, title: str) -> str:
    """The Markdown of :meth:`BaseEvaluation.card`, in the words of the report."""
    view, plain = view_of(evaluation), markdown_text
    statements, content = view.told(evaluation), view.content(evaluation)
    rows = _card_rows(evaluation)
    heads = ["metric", "value", f"{level(evaluation.confidence_level)} interval", "better"]
    body = [[plain(row[key]) for key in ("title", "value", "interval", "better")] for row in rows]
    lines = [
        f"## {plain(title)}",
        *(f"\n{plain(text)}" for section, text in statements if not section),
    ]
    lines += ["", *markdown_table(heads, body), "", f"### {narrative.QUESTIONS['facts']}", ""]
    lines += [f"- {plain(name)}: {plain(text)}" for name, text in content["facts"]]
    failures = [f"- {plain(text)}" for section, text in statements if section == "failures"]
    tables = content.get("segments", ())
    if failures or tables:
        lines += [
            "",
            f"### {narrative.QUESTIONS['failures']}",
            *([""] if failures else []),
            *failures,
        ]
    for table in tables:
        body = [
            [
                plain(row["shown"]),
                row["rows"],
                *(plain(f"{one['value']} {one['interval']}") for one in row["cells"]),
            ]
            for row in table["rows"]
        ]
        shown = markdown_table([table["name"], "rows", *table["heads"]], body)
        lines += ["", *shown, "", *(f"- {plain(text)}" for text in table["gaps"])]
    if evaluation.warnings:
        lines += [
            "",
            "### What not to trust",
            "",
            *(f"- {plain(text)}" for text in evaluation.warnings),
        ]
    return "\n".join(lines) + "\n"


def _card_rows(evaluation: BaseEvaluation) -> list[dict[str, Any]]:
    """The headline metrics, each title once: of two metrics of one title and number one, else with their sections."""
    rows = [evaluation_page.metric_row(evaluation, name) for name in evaluation.headline]
    by_title: dict[str, set[Any]] = {}
    for row in rows:
        by_title.setdefault(row["title"], set()).add((row["value"], row["interval"]))
    shown: dict[str, dict[str, Any]] = {}
    for row in rows:
        title = row["title"]
        if len(by_title[title]) > 1:
            title = f"{title} ({row['name'].partition('/')[0]})"
        if not math.isfinite(evaluation.metrics[row["name"]]):
            row["value"] = missing_with_reason(evaluation, row["name"])
        shown.setdefault(title, row | {"title": title})
    return list(shown.values())


def table_json(evaluation: BaseEvaluation) -> str:
    """The table of classes or codes as MLflow's views read it."""
    return split_json(view_of(evaluation).table(evaluation))


def segments_json(evaluation: Evaluation) -> str:
    """The table of segments as MLflow's views read it."""
    return split_json(segments.segment_table(evaluation))


def write_report(
    evaluation: BaseEvaluation,
    path: str | Path,
    title: str | None,
    rows: bool,
    table: Any,
    row_ids: Any,
    images: str | None,
) -> Path:
    """Write the report with its figures; see :meth:`BaseEvaluation.report`."""
    path = Path(path)
    if path.suffix.lower() != ".html":
        raise ValueError(
            f"a report must end in .html, got {path.name!r}; .save keeps the numbers as JSON"
        )
    joined = joined_table(evaluation, rows, table, row_ids, images)
    problems: list[str] = []
    pictures, listed = drawn(evaluation, problems), evaluation if rows else None
    page = report_html(
        evaluation, pictures, title=title, problems=problems, rows=listed, joined=joined
    )
    return write_text(path, page)
