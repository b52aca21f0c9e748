"""The overview of all studies in `examples/README.md` and on the site, made of what they wrote down.

``python -m study.overview REPORTS [SOURCE ...]`` (in `examples/reproduce`) copies full reports, of all sources or of
those that are named, to `reports/` and renews the tables.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from study.report import PICTURES, escaped, table_of

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
_COLUMNS = ("published", "reproduced", "how near", "what cannot be, and why")


def overview(
    reports: Path = REPORTS, link: str = "reproduce/reports/{name}/report.md", heading: str = "###"
) -> str:
    """The sources in Markdown: for each a table with a row for each published table or figure.

    Parameters
    ----------
    reports : Path
        The folder with a folder for each source.
    link : str
        Where a source's report is from the page that shows this.
    heading : str
        The mark of a source's heading on that page.

    Raises
    ------
    ValueError
        If a report was written in fast mode.
    """
    parts = []
    for name in sorted(SOURCES):
        summary = json.loads((reports / name / "outcomes.json").read_text(encoding="utf-8"))
        if summary["mode"] != "full":
            raise ValueError(
                f"the overview is made of full reports; {name} was written in {summary['mode']} mode"
            )
        rows = [_COLUMNS, (":--",) * len(_COLUMNS), *map(_row, summary["outcomes"])]
        parts += [
            f"{heading} {summary['title']}",
            f"`{name}.py`: [its report]({link.format(name=name)})",
            table_of(rows),
        ]
    return "\n\n".join(parts)


def _row(outcome: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        escaped(outcome[key]) for key in ("item", "reproduced", "near", "not possible, and why")
    )


def with_overview(text: str, table: str) -> str:
    """The README's text with the table between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{table}\n\n{END}{after}"


def main(written: Path, *names: str) -> None:
    """Take over the reports of a full run and renew the README."""
    for name in names or SOURCES:
        shutil.rmtree(REPORTS / name, ignore_errors=True)
        shutil.copytree(written / name, REPORTS / name, ignore=shutil.ignore_patterns(PICTURES))
    README.write_text(
        with_overview(README.read_text(encoding="utf-8"), overview()), encoding="utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
