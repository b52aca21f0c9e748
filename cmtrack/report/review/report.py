"""Export of a review as a self-contained HTML page, as Markdown, or as JSON.

The MLflow UI shows the page in a frame with ``sandbox="allow-scripts"``, which allows neither
network access nor storage. The page therefore contains all of its resources, and shows the same
text if its script does not run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack import notebook
from cmtrack.comparison.result import Comparison
from cmtrack.report.formatting import capital, markdown_table, split_json
from cmtrack.report.formatting import markdown_text as _plain
from cmtrack.report.html import drawn, render_page, write_text
from cmtrack.report.review.cells import Cell, GateCell, NameCell, Table
from cmtrack.report.review.data import to_dict
from cmtrack.report.review.narrative import decision
from cmtrack.report.review.page import choices, context, ranking_tables
from cmtrack.report.review.review import Review
from cmtrack.report.rows import NOTHING_JOINED, Joined, joined_table, lists_rows
from cmtrack.untrusted import for_page, printable, printable_json

if TYPE_CHECKING:
    from cmtrack.report.figures import Picture

SUFFIXES = (".html", ".md", ".json")
_COLOURS = ("#2a86d1", "#d9730d")
"""Colours of bars in a notebook: first for runs that may be the best, then for all other runs.

The contrast of each colour is at least 3:1 on white and on black.
"""


def write(
    comparison: Comparison,
    path: Path,
    title: str | None,
    rows: bool,
    table: Any,
    row_ids: Any,
    images: str | None,
) -> Path:
    """Write the review as HTML, Markdown or JSON, depending on the suffix of the file's name.

    The file is written atomically: a temporary file is written first and then renamed. Missing
    folders are created.

    Raises ValueError if the suffix is unknown, or if the rows of ``table`` do not match the
    evaluated rows.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"a review must end in one of {list(SUFFIXES)}, got {path.name!r}")
    ranking = comparison.ranking
    if table is not None and (suffix != ".html" or ranking is None or ranking.over):
        raise ValueError(
            f"table= needs an .html page of ranked runs, got {path.name!r:.80} of "
            f"{comparison!r:.80}"
        )
    evaluation = None if ranking is None else ranking.foremost.evaluation
    joined = joined_table(evaluation, rows, table, row_ids, images)
    if suffix == ".html":
        content = html(comparison, title, rows=rows, joined=joined)
    elif suffix == ".md":
        content = markdown(comparison, title)
    else:
        content = as_json(comparison)
    return write_text(path, content)


def html(
    comparison: Comparison,
    title: str | None = None,
    *,
    pictures: Mapping[str, Picture] | None = None,
    rows: bool = True,
    joined: Joined = NOTHING_JOINED,
) -> str:
    """Return the review as one HTML document without external references.

    ``pictures``: the figures, if they have already been drawn.
    ``rows``: whether to list individual rows.
    ``joined``: columns of the user's table to show next to the rows.
    """
    problems: list[str] = []
    shown = drawn(comparison, problems) if pictures is None else pictures
    review = Review(comparison)
    values = context(review, title, shown, rows and lists_rows(problems), joined)
    values["further"] += [f"Not drawn: {problem}." for problem in problems]
    return render_page("review.html", **values, **choices(review))


def notebook_html(comparison: Comparison) -> str:
    """Return the HTML of the review's first sentences and tables for a notebook.

    The HTML uses the notebook's own colours, and two colours that are visible on light and dark
    backgrounds.
    """
    review = Review(comparison)
    return render_page(
        "notebook.html",
        said=decision(review),
        at=capital(review.judged_at),
        tables=ranking_tables(review),
        rows=notebook.ROWS,
        colours=_COLOURS,
        noun=review.noun,
    )


def markdown(comparison: Comparison, title: str | None = None) -> str:
    """Return the review as Markdown, for a pull request or a run's description."""
    page = context(Review(comparison), title, {}, rows=False)
    lines = [f"## {_plain(page['title'])}", "", f"**{_plain(page['headline'])}**"]
    for sentence in page["evidence"]:
        lines += ["", _plain(sentence)]
    lines += ["", f"*{_plain('; '.join(page['facts']))}.*"]
    for table in page["tables"]:
        lines += _part(table.name, _table(table, is_ranking=True), reading=table.reading)
    for table in filter(None, (page["probabilities"], *page["segments"])):
        lines += _part(table.name, _table(table), reading=table.reading)
    if page["further"]:
        lines += _part("Notes", _list(page["further"]))
    if page["gates"]:
        lines += _part("Gates", _table(page["gates"]))
    pair = page["confusions"]
    if pair:
        heading = f"{pair['chosen']} compared with {pair['rival']}"
        lines += _part(heading, map(_plain, pair["sentences"]))
    if page["flips"]:
        lines += _part(page["flips"]["title"], _list(page["flips"]["sentences"]))
    if page["warnings"]:
        warnings = [f"{warning['text']} ({warning['runs']})" for warning in page["warnings"]]
        lines += _part("Evaluation warnings", _list(warnings))
    if page["aside"]:
        body = [[_plain(row["name"]), row["what"], _plain(row["why"])] for row in page["aside"]]
        lines += _part("Not ranked", markdown_table(["Run", "Status", "Reason"], body))
    lines += _record(page["record"])
    lines += ["", "### Reproduce this review", "", "```python", printable(page["python"]), "```"]
    if page["command"]:
        lines += ["", "```sh", printable(page["command"]), "```"]
    return "\n".join(lines) + "\n"


def _record(record: Mapping[str, Any]) -> list[str]:
    """Return the Markdown lines of the record and its tables."""
    facts = [
        f"- {line['name']}: {_plain(line['text'])}{_linked(line['href'])}"
        for line in record["lines"]
    ]
    lines = _part("Record", facts)
    for name, table in (("Runs", record["runs"]), ("Parameters that differ", record["params"])):
        if table:
            body = []
            for row in table["rows"]:
                texts = [_link_or_text(text, row["href"]) for text in row["cells"]]
                body.append([_plain(row["name"]), *texts])
            shown = markdown_table(table["heads"], body)
            lines += _part(name, shown, reading=table["reading"], level=4)
    return lines


def as_json(comparison: Comparison) -> str:
    """Return the review as JSON that ends with a newline."""
    text = json.dumps(to_dict(comparison), ensure_ascii=False, indent=1, allow_nan=False)
    return f"{printable_json(text)}\n"


def ranking_json(comparison: Comparison) -> str:
    """Return the rows of all rankings as JSON for MLflow's table views.

    The run comes first, because MLflow's artifact view groups rows by the first column.
    """
    review = Review(comparison)
    rows = []
    for number, ranking in enumerate(comparison.rankings, 1):
        columns = [column for column in review.columns if column.is_shown(ranking)]
        for entry in ranking.standings:
            texts = {column.key: column.text(entry, ranking) for column in columns}
            row = {"run": entry.name, "standing": texts["status"], "rank": entry.rank}
            if len(comparison.rankings) > 1:
                row["ranking"] = number
            for column in columns:
                if column.key not in ("name", "status", "rank"):
                    row[column.heading] = texts[column.key]
            # The id of an evaluation in memory is its name. The row of a model would show the id of
            # one of its runs.
            has_id = not ranking.over and entry.run_id != entry.name
            row["run_id"] = entry.run_id if has_id else ""
            rows.append(row)
    return split_json(rows)


def _part(name: str, body: Iterable[str], reading: str = "", level: int = 3) -> list[str]:
    """Return the Markdown lines of a part of the review: heading, body and reading instructions."""
    lines = ["", f"{'#' * level} {_plain(name)}", "", *body]
    if reading:
        lines += ["", f"*{_plain(reading)}*"]
    return lines


def _list(sentences: Iterable[str]) -> list[str]:
    return [f"- {_plain(sentence)}" for sentence in sentences]


def _linked(href: str) -> str:
    return f" <{for_page(href)}>" if href else ""


def _link_or_text(text: str, href: str) -> str:
    return _linked(href).strip() if href and text == href else _plain(text)


def _table(table: Table, is_ranking: bool = False) -> list[str]:
    """Return the lines of a Markdown table.

    In the table of a ranking, the chosen run is bold. All other tables show the ids of the runs.
    """
    body = []
    for row in table.rows + table.beside:
        texts = {key: _cell(cell) for key, cell in row.cells.items()}
        name = row.cells.get("name")
        if is_ranking and row.status == "chosen":
            texts["name"] = f"**{texts['name']}**"
        if not is_ranking and isinstance(name, NameCell) and name.run_id:
            texts["name"] += f" `{name.short_id}`"
        body.append(list(texts.values()))
    return markdown_table(list(table.heads.values()), body)


def _cell(cell: Cell) -> str:
    """Return the text of a cell, marked with the result if the cell is about a gate."""
    text = _plain(cell.with_interval)
    if not isinstance(cell, GateCell) or cell.passed is None:
        return text
    mark = "✓" if cell.passed else "✗"
    return f"{mark} {text}"
