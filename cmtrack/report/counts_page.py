"""The static page of counts by cell: the total, the figure, the table and the check."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmtrack.prevalence.domains import DomainPrevalence
from cmtrack.prevalence.figures import counts_figure
from cmtrack.report import formatting as fmt
from cmtrack.report.html import aligned_cells, figure_block, render_page, write_text

if TYPE_CHECKING:
    import pandas as pd

MOST_IN_SIGHT = 20
"""Maximum number of rows of a table that does not scroll."""
MOST_ROWS = 1000
"""Maximum number of rows of a table, so that the page stays below 1 MB."""
MOST_NOTES = 12
"""Maximum number of remarks about cells."""


def write_page(table: DomainPrevalence, path: Path) -> Path:
    """Write the counts as one HTML page without scripts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return write_text(path, counts_page(table))


def counts_page(table: DomainPrevalence) -> str:
    """Return the page of counts by cell."""
    problems = list(table.warnings)
    figures = _figures(table, problems)
    cells = table.shares.cells
    n_labelled = sum({cell.key: cell.labelled for cell in cells}.values())
    name = " and ".join(table.shares.tables.columns)
    return render_page(
        "tables.html",
        tab=f"Counts by {name}",
        title=f"Counts by {name}",
        facts=[
            f"positive: {fmt.short(table.positive, 40)}",
            fmt.counted(len({cell.key for cell in cells}), "cell"),
            f"{fmt.counted(n_labelled, 'labelled row')} in them",
            f"{fmt.level(table.shares.confidence_level)} intervals",
        ],
        lead=table.lead,
        sentences=[],
        notes=[*table.sentences, *(f"{note}." for note in table.remarks(MOST_NOTES))],
        problems=[fmt.capital(problem) + "." for problem in problems],
        figures=figures,
        tables=list(_tables(table)),
        proof="",
        newest=[],
    )


def _figures(table: DomainPrevalence, problems: list[str]) -> list[dict[str, Any]]:
    """Return the figure if a cell has a number or a range.

    If Matplotlib is missing, add a note to ``problems``.
    """
    if all(math.isnan(cell.share.low) for cell in table.shares.cells):
        return []
    try:
        from cmtrack.plots.svg import CSS_DPI, as_svg
        from cmtrack.report.figures import Picture
    except ImportError as error:
        problems.append(str(error))
        return []
    figure = counts_figure(table, with_notes=False)
    title = f"Share of “{fmt.short(table.positive, 40)}” by cell"
    if len(table.labels) > 2:
        title = "Shares of the classes by cell"
    svg = as_svg(figure, "counts", title)
    width = float(figure.get_size_inches()[0]) * CSS_DPI
    reading = "A cell without a dot has no number; the remarks below the table say why."
    if all(math.isfinite(cell.share.value) for cell in table.shares.cells):
        reading = ""
    return [figure_block(Picture("counts", title, reading, "", svg=svg, width=width))]


def _tables(table: DomainPrevalence) -> Iterator[dict[str, Any]]:
    """Yield the table of cells, and the table of the check if there was one."""
    n_cells = len(table.shares.cells)
    yield {
        "id": "cells",
        "name": "Cells",
        "tall": n_cells > MOST_IN_SIGHT,
        "heads": [(heading.text, heading.right) for heading in table.headings],
        "rows": aligned_cells(table.lines(MOST_ROWS), [one.right for one in table.headings]),
        "reading": "The share describes the population of a cell, and the number these very rows. "
        "The last column is the number of further labelled rows of the cell." + _cut(n_cells),
    }
    check = table.check
    if len(check):
        rows = _check_lines(check, list(table.shares.tables.columns))
        heads = [(name, False) for name in table.shares.tables.columns]
        heads += [("left out", False), ("assumption", False), ("error, points", True)]
        heads.append(("standard error, points", True))
        yield {
            "id": "check",
            "name": "Labelled cells, estimated without their own labelled rows",
            "tall": len(rows) > MOST_IN_SIGHT,
            "heads": heads,
            "rows": aligned_cells(rows[:MOST_ROWS], [right for _, right in heads]),
            "reading": "Estimate less labelled share. Either the rows of the whole domain were "
            "left out, or only those of the cell." + _cut(len(rows)),
        }


def _cut(n_rows: int) -> str:
    if n_rows <= MOST_ROWS:
        return ""
    return f" Shows {MOST_ROWS:,} of {n_rows:,} rows."


def _check_lines(check: pd.DataFrame, columns: Sequence[str]) -> list[list[str]]:
    left_out = {"domains": "its domain", "periods": "the cell"}
    return [
        [
            *(str(row[name]) for name in columns),
            left_out[row["left_out"]],
            row["assumption"],
            fmt.fixed(row["error"], 1, 2, sign=True),
            fmt.fixed(row["standard_error"], 1, 2),
        ]
        for row in check.to_dict("records")
    ]
