"""Reports on an evaluation, each a single HTML page for reviewers who did not run the model.

The MLflow UI shows the page in a frame with ``sandbox="allow-scripts"``, which allows neither
network access nor storage. The page therefore contains all of its resources, and shows the same
text if its script does not run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack import archive, notebook
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.names import as_sentence
from cmtrack.report import evaluation_page, families_page, narrative, segments
from cmtrack.report.evaluation_page import headline
from cmtrack.report.formatting import (
    BETWEEN,
    level,
    markdown_table,
    markdown_text,
    metric_title,
    missing_with_reason,
    samples,
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
    """Functions that make the report for one kind of evaluation.

    ``template``: name of the page's template.
    ``content``: function that returns the template values that only this kind of page needs.
    ``told``: function that returns the sentences with their sections, most important first.
    ``table``: function that returns the table that MLflow's views show and compare.
    """

    template: str
    content: Callable[[Any], dict[str, Any]]
    told: Callable[..., list[tuple[str, str]]]
    table: Callable[[Any], list[dict[str, Any]]]


_FIRST = 4
"""Maximum number of metrics on the first screen."""

_VIEWS = {
    archive.CLASSES: View(
        "report.html",
        evaluation_page.content,
        narrative.told,
        evaluation_page.class_table,
    ),
    archive.FAMILIES: View(
        "families.html",
        families_page.content,
        families_page.told,
        families_page.code_table,
    ),
}


def view_of(evaluation: BaseEvaluation) -> View:
    """Return the View for an evaluation; raise TypeError if the object is not an evaluation."""
    if not isinstance(evaluation, BaseEvaluation):
        raise TypeError(
            f"an evaluation must be of a kind among {list(_VIEWS)}, got {evaluation!r:.60}"
        )
    return _VIEWS[evaluation.kind]


def verdict(evaluation: BaseEvaluation) -> list[str]:
    """Return the sentences on an evaluation, the most important first."""
    sentences = [sentence for _, sentence in view_of(evaluation).told(evaluation)]
    # The sentence on the worst segment is both at the top of the page and in its section.
    return list(dict.fromkeys(sentences))


def lead(evaluation: BaseEvaluation) -> list[str]:
    """Return the sentences at the top of the page, which state the result."""
    return [sentence for _, sentence in view_of(evaluation).told(evaluation, top=True)]


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
    """Return the report as one HTML document without external references.

    ``pictures``: the figures to embed.
    ``title``: the title of the page; by default "Evaluation".
    ``problems``: sentences about figures that could not be drawn.
    ``rows``: the evaluation with the rows that the page may list; by default, the page lists no
        rows.
    ``joined``: columns of the user's table to show next to the rows.
    """
    view = view_of(evaluation)
    statements = view.told(evaluation)
    content = view.content(evaluation)
    problems = list(problems)
    behind = None
    # lists_rows may add a problem, so call it before the page lists the problems.
    if rows is not None and lists_rows(problems):
        behind = behind_confusions(rows, joined=joined)
    opens = opened(behind)
    blocks = {name: figure_block(picture, opens) for name, picture in pictures.items()}
    first = blocks.pop(_first_figure(blocks), None)
    numbers = _first_numbers(evaluation)
    tables = _metric_tables(evaluation, content["key_metrics"], {row["name"] for row in numbers})
    n_worse = segments.count_worse(evaluation) if isinstance(evaluation, Evaluation) else 0
    questions = []
    for key in narrative.QUESTIONS:
        sentences = [sentence for section, sentence in statements if section == key]
        figures = [block for block in blocks.values() if block["section"] == key]
        has_tables = key in _WITH_TABLES or (key == "failures" and content.get("segments"))
        if sentences or figures or has_tables or tables[key]:
            question = {
                "key": key,
                "text": narrative.question(key, evaluation),
                "sentences": sentences,
                "metrics": tables[key],
                "has_arrows": any(
                    row["better"] in ("higher", "lower")
                    for table in tables[key]
                    for row in table["rows"]
                ),
                "warnings": narrative.warnings_about(evaluation, key),
                "problems": n_worse if key == "failures" else 0,
                "figures": figures,
            }
            questions.append(question)
    return render_page(
        view.template,
        title=title or "Evaluation",
        tab=title or f"Evaluation of {samples(evaluation)}",
        subtitle=subtitle,
        lead=[sentence for section, sentence in statements if not section],
        warnings=[
            *narrative.first_warnings(evaluation),
            *(f"Not drawn: {problem}." for problem in problems),
        ],
        level=level(evaluation.confidence_level),
        numbers=numbers,
        first=first,
        questions=questions,
        behind=behind,
        opens=opens,
        all_metrics=evaluation_page.all_metrics(evaluation),
        n_metrics=len(evaluation.metrics),
        **content,
    )


_WITH_TABLES = ("good", "confusions", "facts")
"""Sections that every page contains because they have tables."""


def _metric_tables(
    evaluation: BaseEvaluation,
    sections: Sequence[Mapping[str, Any]],
    on_first_screen: Collection[str],
) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of headline metrics for each question that the metrics answer.

    Metrics that are on the first screen are not listed again.
    """
    tables: dict[str, list[dict[str, Any]]] = {key: [] for key in narrative.QUESTIONS}
    for section in sections:
        rows = [row for row in section["rows"] if row["name"] not in on_first_screen]
        if rows:
            key = narrative.question_of_metric(evaluation, rows[0]["name"])
            tables[key].append({"name": section["name"], "rows": rows})
    return tables


def _first_figure(names: Collection[str]) -> str:
    """Return the name of the first screen's figure: the last reduced matrix, or else any figure.

    The name is empty if there are no figures.
    """
    reduced = [name for name in names if name.startswith("reduced_")]
    if reduced:
        return reduced[-1]
    return next(iter(names), "")


def _first_numbers(evaluation: BaseEvaluation) -> list[dict[str, Any]]:
    """Return the metrics for the first screen, with titles that name the positive class."""
    positive = evaluation.positive if isinstance(evaluation, Evaluation) else None
    rows = []
    for name in evaluation.headline[:_FIRST]:
        title = metric_title(name, positive, catalog=evaluation.catalog)
        rows.append(evaluation_page.metric_row(evaluation, name) | {"title": title})
    return rows


def notebook_html(evaluation: BaseEvaluation) -> str:
    """Return the HTML of an evaluation for a notebook: sentences, numbers, matrix and warnings."""
    view = view_of(evaluation)
    head = BETWEEN.join(view.content(evaluation)["head"])
    sentences = [*lead(evaluation), head]
    tiles = []
    for row in _first_numbers(evaluation):
        title = escape(row["title"])
        number = f"<b>{escape(row['value'])}</b> {escape(row['interval'])}"
        tiles.append(f"<td>{title}<br>{number}</td>")
    matrix = ""
    if isinstance(evaluation, Evaluation):
        if not evaluation.reduced and len(evaluation.labels) <= notebook.ROWS:
            matrix = notebook.matrix(evaluation.confusion_matrix.to_frame())
        for step in evaluation.reduced[-1:]:
            if len(step.labels) <= notebook.ROWS:
                matrix = step.html_table()
    rest = (
        f"{len(evaluation.metrics)} metrics: .to_frame(); figures: .figures(); "
        "the whole report: .report()."
    )
    return notebook.view(
        f"<p><b>{escape(sentences[0])}</b></p>",
        *map(notebook.sentence, sentences[1:]),
        f"<table><tr>{''.join(tiles)}</tr></table>",
        matrix,
        notebook.sentence(rest),
        notes=evaluation.warnings,
    )


def card(evaluation: BaseEvaluation, title: str) -> str:
    """Return the Markdown of :meth:`BaseEvaluation.card`, which uses the words of the report."""
    view = view_of(evaluation)
    statements = view.told(evaluation)
    content = view.content(evaluation)
    lines = [f"## {markdown_text(title)}"]
    for section, sentence in statements:
        if not section:
            lines += ["", markdown_text(sentence)]
    lines += ["", *_card_metrics(evaluation), "", f"### {narrative.QUESTIONS['facts']}", ""]
    lines += [f"- {markdown_text(name)}: {markdown_text(fact)}" for name, fact in content["facts"]]
    failures = [sentence for section, sentence in statements if section == "failures"]
    tables = content.get("segments", ())
    if failures or tables:
        lines += ["", f"### {narrative.QUESTIONS['failures']}"]
    if failures:
        lines += ["", *_markdown_list(failures)]
    for table in tables:
        lines += ["", *_card_segments(table), "", *_markdown_list(table["gaps"])]
    if evaluation.warnings:
        lines += [
            "",
            "### What not to trust",
            "",
            *_markdown_list(map(as_sentence, evaluation.warnings)),
        ]
    return "\n".join(lines) + "\n"


def _markdown_list(texts: Iterable[str]) -> list[str]:
    return [f"- {markdown_text(text)}" for text in texts]


def _card_metrics(evaluation: BaseEvaluation) -> list[str]:
    """Return the lines of a card's table of metrics."""
    interval = f"{level(evaluation.confidence_level)} interval"
    keys = ("title", "value", "interval", "better")
    rows = [[markdown_text(row[key]) for key in keys] for row in _card_rows(evaluation)]
    return markdown_table(["metric", "value", interval, "better"], rows)


def _card_segments(table: Mapping[str, Any]) -> list[str]:
    """Return the lines of a card's table of segments."""
    rows = []
    for row in table["rows"]:
        cells = [markdown_text(f"{cell['value']} {cell['interval']}") for cell in row["cells"]]
        rows.append([markdown_text(row["shown"]), row["rows"], *cells])
    return markdown_table([table["name"], "rows", *table["heads"]], rows)


def _card_rows(evaluation: BaseEvaluation) -> list[dict[str, Any]]:
    """Return table rows for the headline metrics.

    If several have the same title, the titles name the sections.
    """
    rows = [evaluation_page.metric_row(evaluation, name) for name in headline(evaluation)]
    uses = Counter(row["title"] for row in rows)
    for row in rows:
        name = row["name"]
        if uses[row["title"]] > 1:
            section, _, _ = name.partition("/")
            row["title"] += f" ({section})"
        if not math.isfinite(evaluation.metrics[name]):
            row["value"] = missing_with_reason(evaluation, name)
    return rows


def table_json(evaluation: BaseEvaluation) -> str:
    """Return the table of classes or codes in the JSON format that MLflow's views read."""
    return split_json(view_of(evaluation).table(evaluation))


def segments_json(evaluation: Evaluation) -> str:
    """Return the table of segments in the JSON format that MLflow's views read."""
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
            f"a report must end in .html, got {path.name!r}; .save writes the numbers as JSON"
        )
    joined = joined_table(evaluation, rows, table, row_ids, images)
    problems: list[str] = []
    # Draw the figures first, because the page lists figures that could not be drawn.
    pictures = drawn(evaluation, problems)
    page = report_html(
        evaluation,
        pictures,
        title=title,
        problems=problems,
        rows=evaluation if rows else None,
        joined=joined,
    )
    return write_text(path, page)
