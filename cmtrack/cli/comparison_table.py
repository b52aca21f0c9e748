"""Functions that print a comparison: sentences, a table for each ranking, and unranked runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cmtrack.cli.frame import plain, print_text
from cmtrack.cli.summary import new_table
from cmtrack.names import quoted, some_of
from cmtrack.report import formatting as fmt
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod
    from rich.table import Table

    from cmtrack.comparison import Comparison, Ranking, SegmentComparison, SegmentDifferences
    from cmtrack.report.constant import UnrankedRow
    from cmtrack.report.review import Review
    from cmtrack.report.review.columns import Column, OnTerminal

MAX_LISTED = 10
ALWAYS = 100
DECIDES = 50
_NAME = 18
"""Minimum width of a column of names; longer names continue on the next line."""
_ANY_WIDTH = 10_000
_GAP = 2
"""Number of spaces between columns if the terminal is wide enough."""


_PRIORITIES = {
    "rank": ALWAYS,
    "name": ALWAYS,
    "value": ALWAYS,
    "mean": ALWAYS,
    "difference": 95,
    "status": 90,
    "p_set": 52,
}
"""Priorities of a ranking's columns by key. All other columns have lower priorities."""
_METRICS = 60
_OTHERS = 20
_STATUS_STYLES = {"chosen": "bold green", "leads": "bold green", "tied": "green", "behind": "dim"}
_LAST = {"runs": 1, "status": 2}
"""The columns that come last in a ranking's table, and their order."""


def _no_style(row: Any) -> str:
    return ""


@dataclass(frozen=True)
class TerminalColumn:
    """A column of a table that is printed on the terminal.

    ``key``: key of the column in the unranked rows below the table.
    ``cell``: function from a row to the text of its cell.
    ``keep``: priority of the column if not all columns fit. ``ALWAYS`` keeps a column at any width.
        A column with priority ``DECIDES`` or higher is dropped only if the table is too wide even
        with brief forms and folded names.
    ``right``: whether the column is right-aligned.
    ``brief``: shorter replacement if a column with priority ``DECIDES`` or higher does not fit.
    ``folds``: whether the column contains names that may continue on the next line.
    ``style``: function from a row to the style of its cell.
    """

    key: str
    head: str
    cell: Callable[[Any], str]
    keep: int
    right: bool = False
    brief: TerminalColumn | None = None
    folds: bool = False
    style: Callable[[Any], str] = _no_style


_ID = TerminalColumn("run_id", "id", lambda run: fmt.short_id(run.run_id), keep=55)


def print_comparison(console: Console, comparison: Comparison, verbose: bool = False) -> None:
    """Print the rankings, the decision, and the runs without a rank.

    ``verbose``: whether to print the evidence, the notes and the meaning of each status.
    """
    from cmtrack.report.review import Review

    review = Review(comparison)
    for place in range(len(comparison.rankings)):
        _print_ranking(console, review, place)
    print_decision(console, comparison, verbose)
    console.print()
    for ranking in comparison.rankings:
        # Runs on different rows have no paired difference; the list gives the reason.
        unpaired = ((run.name, run.unpaired) for run in ranking.standings if run.unpaired)
        print_left_out(console, unpaired, "Not compared row by row")
    print_segments(console, comparison.segments)
    _print_runs_without_rank(console, comparison)


def _print_ranking(console: Console, review: Review, place: int) -> None:
    """Print the table of a ranking."""
    from cmtrack.report.constant import CONSTANT, beside
    from cmtrack.report.review.narrative import heading

    comparison = review.comparison
    ranking = comparison.rankings[place]
    title = f"{heading(review, place)}, by {comparison.criterion}{review.at}"
    columns = [column for column in review.columns if column.is_shown(ranking)]
    columns.sort(key=lambda column: _LAST.get(column.key, 0))
    # The lists below name the runs without a rank.
    constants = [row for row in beside(comparison, ranking) if row.standing == CONSTANT]
    below = [_texts_below(row, columns) for row in constants]
    printed = [
        _terminal_column(column, column.terminal, ranking)
        for column in columns
        if column.terminal is not None
    ]
    # Models have several runs. The id of an evaluation in memory is its name.
    if not ranking.over and any(run.run_id != run.name for run in ranking.standings):
        printed.append(_ID)
    print_table(console, title, printed, ranking.standings, below)


def _print_runs_without_rank(console: Console, comparison: Comparison) -> None:
    """Print the runs that fail a gate, that could not be ranked, or that were not read."""
    lines = [
        f"{quoted(run.name)}: {'; '.join(str(g) for g in run.gates if not g.passed)}"
        for run in comparison.failed
    ]
    _print_list(console, "Failed a gate", lines, "runs")
    for head, last in (("Last", True), ("Not ranked", False)):
        names = [
            (entry.run.name, entry.reason) for entry in comparison.left_out if entry.last == last
        ]
        print_left_out(console, names, head)
    not_read = [(run.name, "worse logged value (limit)") for run in comparison.passed_over]
    print_left_out(console, not_read, "Not read")


def print_decision(console: Console, comparison: Comparison, verbose: bool) -> None:
    """Print the decision in at most three sentences, and how many rows would decide between two.

    ``verbose``: whether to print the evidence, the notes and the meaning of each status.
    """
    from cmtrack.report.review import Review
    from cmtrack.report.review.narrative import brief, evidence, explained, rows_would_decide
    from cmtrack.report.review.record import rule_of

    review = Review(comparison)
    sentences = brief(review)
    if not any(candidate.run.tracking_uri for candidate in comparison.judged):
        # Files have no page, which would say how many rows would decide.
        sentences = [*filter(None, [*sentences, rows_would_decide(review)])]
    paragraphs = [" ".join(sentences)]
    if verbose:
        paragraphs = evidence(review)
        ranking = review.ranking
        if ranking is not None and len(ranking.standings) > 1 and not ranking.criterion.pareto:
            paragraphs.append(explained(ranking.confidence_level, ranking.noun))
    rule = rule_of(comparison)
    if rule is not None:
        paragraphs.append(rule.sentence)
    for paragraph in paragraphs:
        print_text(console, paragraph)


def print_segments(console: Console, compared: SegmentComparison) -> None:
    """Print, for each segment, the differences between the leader and all other runs.

    A separate table is printed for each combination of a column and a metric.
    """
    from cmtrack.report.review.narrative import segment_reading

    for pairs in compared.tables:
        first = pairs[0]
        metric = fmt.metric_title(first.metric, brief=True, catalog=first.catalog)
        title = f"By segment: {metric} by {quoted(first.column)}"
        print_table(console, title, _segment_columns(pairs), range(len(first.segments)))
        print_text(console, segment_reading(pairs, quoted))
        console.print()
    for note in compared.notes:
        print_text(console, note)


def _segment_columns(pairs: Sequence[SegmentDifferences]) -> list[TerminalColumn]:
    """Return the columns of a table with one row per segment, in the order of the first pair."""
    first = pairs[0]
    columns = [
        TerminalColumn("segment", "segment", lambda k: first.segments[k], ALWAYS, folds=True),
        TerminalColumn("rows", "rows", lambda k: fmt.count(first.rows[k]), ALWAYS, right=True),
        TerminalColumn(
            "value",
            one_line(first.first),
            lambda k: fmt.number(float(first.first_values[k])),
            ALWAYS,
            right=True,
        ),
    ]
    for place, pair in enumerate(pairs):
        head = f"difference from\n{one_line(pair.second)}"
        difference = partial(_segment_difference, pair, first.segments)
        columns.append(TerminalColumn(f"difference_{place}", head, difference, DECIDES - 1 - place))
    return columns


def _segment_difference(pair: SegmentDifferences, segments: Sequence[str], k: int) -> str:
    """Return a pair's difference in the segment that is at position ``k`` of the first pair.

    Other pairs may list their segments in a different order.
    """
    place = pair.segments.index(segments[k])
    ends = (float(pair.low[place]), float(pair.high[place]))
    return fmt.signed_or_why(float(pair.differences[place]), ends, pair.reasons[place])


def print_left_out(
    console: Console, left_out: Iterable[tuple[str, str]], head: str = "Not ranked"
) -> None:
    """Print the excluded runs by reason, starting with the most frequent reason."""
    by_reason = fmt.by_reason((quoted(name), reason) for name, reason in left_out)
    lines = [f"{some_of(names, MAX_LISTED)}: {reason}" for reason, names in by_reason.items()]
    _print_list(console, head, lines, "reasons")


def print_table(
    console: Console,
    title: str,
    columns: Sequence[TerminalColumn],
    rows: Sequence[Any],
    below: Sequence[Mapping[str, str]] = (),
) -> None:
    """Print a title and a table with as many columns as fit.

    ``below``: the texts of the unranked rows, by column key.
    """
    from rich.text import Text

    brief = [column.brief or column for column in columns]
    for forms, gap in ((columns, _GAP), (columns, 1), (brief, _GAP), (brief, 1)):
        shown_columns = _kept(console, forms, rows, gap)
        if all(column in shown_columns for column in forms if column.keep >= DECIDES):
            break
    console.print(Text(title, style="bold"))
    table = _table(shown_columns, rows, gap)
    table.rows[-1].end_section = bool(below)
    for texts in below:
        cells = (one_line(texts.get(column.key, "")) for column in shown_columns)
        table.add_row(*map(plain, cells))
    console.print(table)
    keys = {column.key for column in shown_columns}
    heads = [
        column.head.replace("/\n", "/").replace("\n", " ")
        for column in columns
        if column.key not in keys
    ]
    if heads:
        text = f"The terminal is too narrow to show: {', '.join(heads)}. --json has everything."
        print_text(console, text)
    console.print()


def _kept(
    console: Console, columns: Sequence[TerminalColumn], rows: Sequence[Any], gap: int
) -> list[TerminalColumn]:
    """Return the columns that fit, by their priority."""
    some = [column for column in columns if column.keep >= ALWAYS]
    for column in sorted(columns, key=lambda column: -column.keep):
        more = [one for one in columns if one in some or one is column]
        wide = console.measure(
            _table(more, rows, gap, _NAME), options=console.options.update(max_width=_ANY_WIDTH)
        ).maximum
        some = more if wide <= console.width else some
    return some


def _table(
    columns: Sequence[TerminalColumn], rows: Sequence[Any], gap: int, longest: int | None = None
) -> Table:
    """Return a table with a gap between columns.

    ``longest``: the maximum number of characters of foldable names.
    """
    table = new_table("")
    table.show_edge = False
    table.padding = (0, gap - 1, 0, 0)
    for column in columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(
            plain(column.head), justify=justify, overflow="fold", no_wrap=not column.folds
        )
    for row in rows:
        cells = []
        for column in columns:
            text = one_line(column.cell(row))
            cell = plain(text[:longest] if column.folds else text)
            cell.stylize(column.style(row))
            cells.append(cell)
        table.add_row(*cells)
    return table


# -- rankings --------------------------------------------------------------------------------------


def _terminal_column(column: Column, form: OnTerminal, ranking: Ranking) -> TerminalColumn:
    """Return the column of a ranking in its form for the terminal."""
    metrics = ranking.criterion.metrics
    keep = _PRIORITIES.get(column.key, _OTHERS)
    if column.key in metrics:
        keep = _METRICS - metrics.index(column.key)
    text = form.text or column.text
    brief = None
    if form.brief is not None:
        brief = _terminal_column(column, form.brief, ranking)
    return TerminalColumn(
        column.key,
        column.heading.lower() if form.heading is None else form.heading,
        lambda entry: text(entry, ranking),
        keep,
        right=form.right,
        brief=brief,
        folds=column.key == "name",
        style=partial(_status_style, ranking) if column.key == "status" else _no_style,
    )


def _status_style(ranking: Ranking, entry: Any) -> str:
    """Return the style of a status, so that runs that may be the best stand out."""
    from cmtrack.report.review.phrases import standing

    return _STATUS_STYLES.get(standing(entry, ranking), "")


def _texts_below(row: UnrankedRow, columns: Sequence[Column]) -> dict[str, str]:
    """Return the texts of an unranked row, by column key."""
    texts = {column.key: row.values.get(column.metric, "") for column in columns}
    return texts | {"name": row.name, "status": row.standing, "run_id": fmt.short_id(row.run_id)}


# -- runs that are in no ranking -------------------------------------------------------------------


def _print_list(console: Console, head: str, lines: Sequence[str], what: str) -> None:
    from rich.padding import Padding

    if not lines:
        return
    console.print(plain(f"{head}:"))
    more = [f"and {len(lines) - MAX_LISTED} more {what}"] if len(lines) > MAX_LISTED else []
    for line in [*lines[:MAX_LISTED], *more]:
        console.print(Padding(plain(line), (0, 0, 0, 2), expand=False))
    console.print()
