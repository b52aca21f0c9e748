"""The content of a review's page, for tests that read it as a browser would."""

from __future__ import annotations

import re
from html import unescape
from typing import Any, NamedTuple

WORDS = {
    "chosen": "chosen",
    "leads": "leads",
    "equivalent": "equivalent",
    "tied": "may be the best",
    "behind": "ruled out",
}
"""The word for a run in a ranking, by its status."""
BY_SCORE = {"higher": "highest score", "lower": "lowest score", "nearest zero": "nearest to zero"}
"""The word for a run that is chosen only for its score, by the better direction."""

_TABLES = r'(?s)<table class="sortable {kind}">(.*?)</table>'
_ROW = re.compile(r'(?s)<tr class="([\w ]+)"([^>]*)>(.*?)</tr>')
_CELL = re.compile(r"(?s)<td(?P<attributes>[^>]*)>(?P<inside>.*?)</td>")


class Cell(NamedTuple):
    """A cell of a table: its text, its sort key, and its tooltip."""

    text: str
    sort: str
    title: str


class Row(NamedTuple):
    """A row of a ranking: status, position of the run on the page, and cells."""

    status: str
    run: int
    cells: list[Cell]


def _attribute(attributes: str, name: str) -> str:
    found = re.search(rf'{name}="([^"]*)"', attributes)
    return unescape(found[1]) if found else ""


def _text(inside: str) -> str:
    return " ".join(unescape(re.sub("(?s)<.*?>", "", inside)).split())


def rows_of(page: str, kind: str = "ranking") -> list[Row]:
    """Return the rows of all tables of a kind: "ranking", or "answer" for the tables by other metrics."""
    found = []
    for table in re.findall(_TABLES.format(kind=kind), page):
        for status, attributes, inside in _ROW.findall(table):
            cells = [
                Cell(
                    _text(cell["inside"]),
                    *(_attribute(cell["attributes"], n) for n in ("data-sort", "title")),
                )
                for cell in _CELL.finditer(inside)
            ]
            found.append(Row(status.split()[0], int(_attribute(attributes, "data-run")), cells))
    return found


def other_metrics(page: str) -> dict[str, dict[str, Any]]:
    """Return the page's statements about the runs by each other metric: sentence and rows."""
    sentences = re.findall(r'(?s)<p data-metric="(.*?)" hidden>(.*?)</p>', page)
    tables = dict(
        re.findall(r'(?s)<div class="scroll" data-metric="(.*?)" hidden>(.*?</table>)', page)
    )
    return {
        unescape(metric): {
            "sentence": _text(sentence),
            "rows": rows_of(tables[metric], "answer"),
        }
        for metric, sentence in sentences
    }


def pairs(page: str) -> dict[int, dict[str, Any]]:
    """Return, by the rival's position, the statements about the chosen run against it: sentences and table cells."""
    (part,) = re.findall(r'(?s)<section id="pair">(.*?)</section>', page) or [""]
    found = {}
    for number, inside in re.findall(
        r'(?s)<div data-pair="(\d+)"[^>]*>(.*?)(?=<div data-pair|<div id="pair-charts|\Z)', part
    ):
        table = "".join(re.findall(_TABLES.format(kind="confusions"), inside)).partition("<tbody>")[
            2
        ]
        found[int(number)] = {
            "sentences": [_text(sentence) for sentence in re.findall(r"(?s)<p>(.*?)</p>", inside)],
            "rows": [
                [_text(cell["inside"]) for cell in _CELL.finditer(row)]
                for row in re.findall(r"(?s)<tr>(.*?)</tr>", table)
            ],
        }
    return found


def charts(page: str) -> dict[str, dict[int, str]]:
    """Return, by title, the paths of the curves of a pair by the position of their run."""
    return {
        unescape(title): {
            int(_attribute(path, "data-run")): _attribute(path, " d")
            for path in re.findall(r'<path class="line[^>]*data-run[^>]*>', inside)
        }
        for title, inside in re.findall(
            r'(?s)<figure class="chart"><figcaption>(.*?)</figcaption>(.*?)</figure>', page
        )
    }


def questions(page: str) -> dict[str, str]:
    """By title the command of each other question, or its Python if evaluations are in memory."""
    return {
        unescape(title): unescape(text)
        for title, text in re.findall(
            r'(?s)<section class="question">\s*<h3>(.*?)</h3>\s*<pre>(.*?)</pre>', page
        )
    }
