"""``cmtrack history``: print the promotions of a registered model, and verify their records."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.compare import write_csv
from cmtrack.cli.flags import NEW_FILE, Answer, answering, tracking_uri_option
from cmtrack.cli.frame import BadInput, echo, first_line, print_text, terminal, working, writing
from cmtrack.cli.group import main

if TYPE_CHECKING:
    from rich.console import Console

    from cmtrack.comparison.history import History, Term


_HEADING = 12
"""Number of characters in a line of a heading."""
_PRIORITIES = {
    "champion_from": 100,
    "version": 100,
    "difference_since": 100,
    "supported": 90,
    "answer": 80,
    "difference": 70,
    "rows_since": 30,
    "rows": 20,
}
"""Priorities of the columns on a narrow terminal."""


@main.command("history")
@click.argument("model")
@click.option(
    "--alias",
    metavar="NAME",
    default="champion",
    show_default=True,
    help="Alias whose champions are listed.",
)
@click.option(
    "--over",
    metavar="VERSION",
    default="first",
    show_default=True,
    help="Version with which today's champion is compared: first, previous or a number.",
)
@click.option(
    "--metric",
    metavar="METRIC",
    help="Metric of all differences.  [default: the metric of the newest rule]",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Recompute every record from the files of its promotion run.",
)
@click.option("--output", type=NEW_FILE, help="Write the history as one HTML page without scripts.")
@click.option(
    "--csv", "csv_file", type=NEW_FILE, help="Write a CSV file with one row for each champion."
)
@tracking_uri_option
@answering
def history_command(
    model: str,
    alias: str,
    over: str,
    metric: str | None,
    verify: bool,
    output: Path | None,
    csv_file: Path | None,
    tracking_uri: str | None,
) -> Answer:
    """Print the champions of a registered model, and what they gained.

    MODEL is the name of a registered model, such as models:/party. A gain is stated only from rows
    that did not choose the champion.

    \b
    Exit codes:
      0  the history was read; with --verify, every record was verified
      1  --verify: a record was changed or is missing, or cannot be read
      2  wrong usage, no such model, no server
      3  --verify: a record could not be recomputed, because its rows are not stored
    """
    with working() as step:
        step("loading libraries", 0, 1)
        story = _read(model, tracking_uri, alias=alias, over=over, metric=metric, verify=verify)
        step("writing the history", 0, 0)
        if output is not None:
            with writing(output, BadInput):
                story.report(output)
        if csv_file is not None:
            write_csv(story, csv_file)
    code = _exit_code(story)

    def show() -> None:
        print_history(terminal(), story)
        if output is not None:
            echo(f"The page: {output}")

    if code == 0:
        return Answer(story.to_dict, show)
    return Answer(story.to_dict, show, click.exceptions.Exit(code))


def _read(model: str, tracking_uri: str | None, **options: Any) -> History:
    """Read a history; every error is bad input, because exit code 1 means a changed record."""
    from cmtrack.tracking.history import history
    from cmtrack.tracking.store import quiet, tracking_store

    try:
        with quiet(), tracking_store(tracking_uri):
            return history(model, **options)
    except Exception as error:  # MLflow and its stores may raise anything
        raise BadInput(first_line(error)) from None


def _exit_code(story: History) -> int:
    from cmtrack.comparison.history import BROKEN, ProblemKind

    kinds = {problem.kind for problem in story.problems}
    if story.verified is None:
        return 0
    if kinds & BROKEN:
        return 1
    if ProblemKind.NOT_RECOMPUTED in kinds:
        return 3
    return 0


def print_history(console: Console, story: History) -> None:
    """Print the paragraphs, the table of champions, and what to check."""
    from cmtrack.report import history as words

    for text in words.paragraphs(story):
        print_text(console, text)
    console.print()
    if story.terms:
        _print_champions(console, story)
    for text in words.notes(story):
        print_text(console, text)
    if story.problems:
        print_text(console, "To check:")
        for problem in story.problems:
            print_text(console, problem.sentence, indent=2)
    for text in (words.false_promotions(story), *words.verified_sentences(story)):
        if text:
            print_text(console, text)


def _print_champions(console: Console, story: History) -> None:
    from cmtrack.cli.comparison_table import TerminalColumn, print_table
    from cmtrack.report import formatting as fmt
    from cmtrack.report import history as words

    columns = []
    for column in words.COLUMNS:
        full = TerminalColumn(
            column.key,
            textwrap.fill(column.heading(story), _HEADING),
            partial(_cell, column.cell, story),
            keep=_PRIORITIES[column.key],
            right=column.right,
            folds=column.key == "answer",
        )
        if column.brief is not None:
            brief = replace(full, cell=partial(_cell, column.brief, story))
            full = replace(full, brief=brief)
        columns.append(full)
    level = fmt.level(story.life.confidence_level)
    metric = words.title_of_metric(story)
    title = f"Versions that were {story.alias}, by {metric} [{level} interval]"
    print_table(console, title, columns, story.terms)


def _cell(cell: Callable[[Term, History], str], story: History, term: Term) -> str:
    return cell(term, story)
