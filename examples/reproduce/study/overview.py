"""The overview of all studies in `examples/README.md`, made of what they wrote down.

``python -m study.overview REPORTS`` (in `examples/reproduce`) copies full reports to `reports/` and renews the table.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from study.report import escaped, table_of

HERE = Path(__file__).parents[1]
README = HERE.parent / "README.md"
REPORTS = HERE / "reports"
BEGIN, END = "<!-- overview: begin -->", "<!-- overview: end -->"

SOURCES = (  # the longest first
    "gubbels_2023_rare_events",
    "gubbels_2023_correlation",
    "markoulidakis_2021",
    "family_confusion",
    "duntsch_gediga_2019",
    "kappa_article",
)
_COLUMNS = ("source", "published", "reproduced", "script", "how near", "what cannot be, and why")


def overview(reports: Path = REPORTS) -> str:
    """The table in Markdown: a row for each published table or figure.

    Raises
    ------
    ValueError
        If a report was written in fast mode.
    """
    rows = [_COLUMNS, (":--",) * len(_COLUMNS)]
    for name in sorted(SOURCES):
        summary = json.loads((reports / name / "outcomes.json").read_text(encoding="utf-8"))
        if summary["mode"] != "full":
            raise ValueError(f"the overview is made of full reports; {name} was written in {summary['mode']} mode")
        rows += [_row(name, summary["title"], outcome) for outcome in summary["outcomes"]]
    return table_of(rows)


def _row(name: str, title: str, outcome: dict[str, Any]) -> tuple[str, ...]:
    link = f"[{title}](reproduce/reports/{name}/report.md)"
    words = (outcome["item"], outcome["reproduced"], f"`{name}.py`", outcome["near"], outcome["not possible, and why"])
    return (link, *map(escaped, words))


def with_overview(text: str, table: str) -> str:
    """The README's text with the table between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main(written: Path) -> None:
    """Take over the reports of a full run and renew the README."""
    for name in SOURCES:
        shutil.rmtree(REPORTS / name, ignore_errors=True)
        shutil.copytree(written / name, REPORTS / name)
    README.write_text(with_overview(README.read_text(encoding="utf-8"), overview()), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
