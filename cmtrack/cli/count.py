"""``cmtrack count``: estimate the number of positives by cell from files."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.flags import NEW_FILE, Answer, answering
from cmtrack.cli.frame import (
    BadInput,
    bad_input,
    echo,
    print_text,
    terminal,
    warn,
    working,
    writing,
)
from cmtrack.cli.group import main
from cmtrack.cli.row_options import check_files
from cmtrack.names import join_names

if TYPE_CHECKING:
    from rich.console import Console

    from cmtrack.prevalence.domains import DomainPrevalence

_MOST_REMARKS = 5
_PRIORITIES = {"count": 70, "source": 60, "labelled": 50, "n": 40, "rows_needed": 30}
"""Priorities of the columns on a narrow terminal; the cell and its share are always shown."""


@main.command("count")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--by",
    "columns",
    required=True,
    metavar="A,B",
    help="Columns that form the cells, with the time last, such as region,month.",
)
@click.option(
    "--y-prob",
    required=True,
    metavar="'p_*'|COLUMN",
    help="Column with the score of the positive class, or columns with the probabilities of all "
    "classes.",
)
@click.option(
    "--labelled",
    required=True,
    metavar="FILE",
    help="File with labelled rows that the same model scored, and that it was not trained on.",
)
@click.option("--y-true", required=True, metavar="COLUMN", help="Column of labels in --labelled.")
@click.option("--positive", metavar="LABEL", help="The positive class. By default the last label.")
@click.option(
    "--assumption",
    type=click.Choice(["auto", "calibration", "shift"]),
    default="auto",
    show_default=True,
    help="Assumption for cells with fewer than 20 labelled rows. auto checks both on the labelled "
    "cells.",
)
@click.option(
    "--half-width",
    type=float,
    default=0.05,
    show_default=True,
    help="Half-width for which the table states how many labelled rows are missing.",
)
@click.option(
    "--confidence-level",
    type=float,
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)
@click.option("--total", is_flag=True, help="Also print the total of all cells.")
@click.option(
    "--changes", is_flag=True, help="Also print the changes between neighbours in the last column."
)
@click.option(
    "--missing",
    metavar="TEXT",
    multiple=True,
    help="Text that marks a missing value in a CSV file; repeatable.",
)
@click.option("-o", "--output", type=NEW_FILE, help="Write the counts as one HTML page.")
@answering
def count_command(
    files: Sequence[str],
    columns: str,
    labelled: str,
    total: bool,
    changes: bool,
    output: Path | None,
    **options: Any,
) -> Answer:
    """Estimate how many positives each cell of a file has.

    A cell is a combination of the values of the columns --by, such as a region in a month. A number
    comes from labelled rows of the cell if there are at least 20. Otherwise it comes from labelled
    rows of other cells, but only if the labelled cells could check this step. If a cell has no
    number, the output says why, and how many labelled rows give one.

    \b
    Exit codes:
      0  the cells were counted, even if some have no number
      2  wrong usage or bad input
    """
    check_files([*files, labelled], "FILE")
    with working() as step, bad_input(OSError, say=_with_flags):
        step("reading and counting", 0, 0)
        from cmtrack.prevalence.from_tables import count_table

        names = [name.strip() for name in columns.split(",")]
        table = count_table(list(files), labelled, by=names, **options)
        table.lead  # noqa: B018 - computed here, under the progress bar
        if output is not None:
            from cmtrack.report.counts_page import write_page

            step("writing the page", 0, 0)
            with writing(output, BadInput):
                write_page(table, output)

    def show() -> None:
        _print(table, total=total, changes=changes)
        if output is not None:
            echo(f"The page: {output}")

    return Answer(lambda: _data(table, changes=changes), show)


def _with_flags(text: str) -> str:
    """Return a message of the library with flags instead of arguments."""
    text = text.replace("half_width", "--half-width")
    text = text.replace("confidence_level", "--confidence-level")
    if text.startswith("by "):
        return f"--{text}"
    return text


def _data(table: DomainPrevalence, *, changes: bool) -> dict[str, Any]:
    """Return the table, the total, the check and, if requested, the changes as JSON data."""
    data: dict[str, Any] = {
        "cells": table.to_frame().to_dict("records"),
        "check": table.check.to_dict("records"),
        "sentences": [table.lead, *table.sentences],
        "warnings": list(table.warnings),
    }
    if len(table.labels) == 2:
        data["total"] = vars(table.total())
    if changes:
        data["changes"] = table.changes().to_dict("records")
    return data


def _print(table: DomainPrevalence, *, total: bool, changes: bool) -> None:
    """Print the table of cells and what it assumes."""
    from cmtrack.cli.comparison_table import ALWAYS, TerminalColumn, print_table

    console = terminal()
    for warning in table.warnings:
        warn(warning)
    columns = [
        TerminalColumn(
            heading.key,
            heading.text,
            itemgetter(place),
            _PRIORITIES.get(heading.key, ALWAYS),
            right=heading.right,
            folds=heading.key == "source",
        )
        for place, heading in enumerate(table.headings)
    ]
    title = f"Counts by {join_names(table.shares.tables.columns)}"
    print_table(console, title, columns, table.lines())
    if total:
        print_text(console, table.lead)
    if changes:
        _print_changes(console, table)
    for sentence in [*table.sentences, *(f"{note}." for note in table.remarks(_MOST_REMARKS))]:
        print_text(console, sentence)


def _print_changes(console: Console, table: DomainPrevalence) -> None:
    """Print the changes between neighbours in the last column."""
    from cmtrack.cli.comparison_table import ALWAYS, TerminalColumn, print_table
    from cmtrack.report.formatting import signed_points

    names = table.shares.tables.columns
    rows = []
    for row in table.changes().to_dict("records"):
        domain = [str(row[name]) for name in names[:-1]]
        shown = "–"
        if not row["why"]:
            shown = signed_points(row["value"], (row["low"], row["high"]))
        rows.append([*domain, f"{row['first']} → {row['second']}", shown])
    columns = [
        TerminalColumn(name, name, itemgetter(place), ALWAYS)
        for place, name in enumerate([*names, "change [simultaneous interval]"])
    ]
    print_table(console, "Changes in percentage points", columns, rows)
