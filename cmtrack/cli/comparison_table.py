"""A comparison on the terminal: sentences, a table for each ranking, and unranked runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from cmtrack.cli.frame import plain
from cmtrack.cli.summary import new_table
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.metrics.catalog import Catalog
from cmtrack.names import quoted, some_of
from cmtrack.report import formatting as fmt
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod
    from rich.table import Table

    from cmtrack.comparison import Comparison, Ranking, SegmentComparison, SegmentDifferences
    from cmtrack.comparison.ranking import Ranked
    from cmtrack.report.constant import UnrankedRow

MAX_LISTED = 10
ALWAYS = 100
DECIDES = 50
_NAME = 18
"""Characters of a name that there must be room for; a longer one is folded."""
_ANY_WIDTH = 10_000


@dataclass(frozen=True)
class Column:
    """A column of a table of runs.

    ``cell``: what it shows of a run.
    ``keep``: where there is no room for all, those of the largest number stay; ``ALWAYS`` whatever the room. Those from
        ``DECIDES`` on go only when brief forms and folded names make no room.
    ``right``: whether it is set to the right.
    ``brief``: its replacement if columns that decide do not fit.
    ``folds``: whether it is a name, which may go on over several lines.
    """

    head: str
    cell: Callable[[Any], str]
    keep: int
    right: bool = False
    brief: Column | None = None
    folds: bool = False


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print everything that ``cmtrack compare`` shows."""
    from cmtrack.report.constant import beside
    from cmtrack.report.review.narrative import heading
    from cmtrack.report.review.phrases import at_shares, explained

    print_sentences(console, comparison)
    console.print()
    for place, ranking in enumerate(comparison.rankings):
        title = f"{heading(comparison, place)}, by {comparison.criterion}{at_shares(comparison)}"
        below = beside(comparison, ranking)
        print_table(
            console, title, _columns(ranking), ranking.standings, below, ranking.criterion.catalog
        )
        if len(ranking.standings) > 1 and not (ranking.criterion.pareto or ranking.over):
            console.print(plain(explained(ranking.confidence_level)))
        # the differences that do not use that the rows are the same, and why
        unpaired = ((run.name, run.unpaired) for run in ranking.standings if run.unpaired)
        print_left_out(console, unpaired, "Not compared row by row")
    print_segments(console, comparison.segments)
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


def print_sentences(console: Console, comparison: Comparison) -> None:
    """Print the decision and its evidence."""
    from cmtrack.report.review.record import rule_of

    rule = rule_of(comparison)
    console.print(
        plain(comparison.summary() if rule is None else f"{comparison.summary()}\n{rule.sentence}")
    )


def print_segments(console: Console, compared: SegmentComparison) -> None:
    """Print the leader and its differences from the other runs by segment, a table for each column and metric."""
    from cmtrack.report.review.narrative import segment_reading

    for pairs in compared.tables:
        first = pairs[0]
        metric = fmt.metric_title(first.metric, brief=True, catalog=first.catalog)
        title = f"By segment: {metric} by {quoted(first.column)}"
        print_table(console, title, _segment_columns(pairs), range(len(first.segments)))
        console.print(plain(segment_reading(pairs, quoted)))
        console.print()
    for note in compared.notes:
        console.print(plain(note))


def _segment_columns(pairs: Sequence[SegmentDifferences]) -> list[Column]:
    """The columns of a table whose rows are the places of the segments in the first pair."""
    first = pairs[0]
    columns = [
        Column("segment", lambda k: first.segments[k], ALWAYS, folds=True),
        Column("rows", lambda k: fmt.count(first.rows[k]), ALWAYS, right=True),
        Column(
            one_line(first.first),
            lambda k: fmt.number(float(first.first_values[k])),
            ALWAYS,
            right=True,
        ),
    ]
    for place, pair in enumerate(pairs):
        difference = partial(_segment_difference, pair, first.segments)
        columns.append(
            Column(f"difference from\n{one_line(pair.second)}", difference, DECIDES - 1 - place)
        )
    return columns


def _segment_difference(pair: SegmentDifferences, segments: Sequence[str], k: int) -> str:
    """The difference in the segment at place k of the given order, which another pair may not share."""
    place = pair.segments.index(segments[k])
    ends = (float(pair.low[place]), float(pair.high[place]))
    return fmt.signed_or_why(float(pair.differences[place]), ends, pair.reasons[place])


def print_left_out(
    console: Console, left_out: Iterable[tuple[str, str]], head: str = "Not ranked"
) -> None:
    """Print excluded runs by reason, the most frequent first."""
    by_reason = fmt.by_reason((quoted(name), reason) for name, reason in left_out)
    lines = [f"{some_of(names, MAX_LISTED)}: {reason}" for reason, names in by_reason.items()]
    _print_list(console, head, lines, "reasons")


def print_table(
    console: Console,
    title: str,
    columns: Sequence[Column],
    rows: Sequence[Any],
    below: Sequence[UnrankedRow] = (),
    catalog: Catalog = BUILT_IN,
) -> None:
    """Print a title and a table with as many columns as fit; rows below the line are unranked."""
    from rich.text import Text

    shown_columns = _kept(console, columns, rows)
    if any(column.keep >= DECIDES and column not in shown_columns for column in columns):
        shown_columns = _kept(console, [column.brief or column for column in columns], rows)
    console.print(Text(title, style="bold"))
    table = _table(shown_columns, rows)
    table.rows[-1].end_section = bool(below)
    for row in below:
        named = (
            f"{fmt.metric_title(name, brief=True, catalog=catalog)} {value}"
            for name, value in row.values.items()
        )
        value = next(iter(row.values.values()), "") if len(row.values) < 2 else "; ".join(named)
        shown = dict.fromkeys(("run", "model"), row.name) | dict.fromkeys(
            ("value", "mean ± sd"), value
        )
        shown |= {"status": row.standing} | row.values
        heads = (column.head.replace("/\n", "/").split("\n")[0] for column in shown_columns)
        table.add_row(*(plain(one_line(shown.get(head, ""))) for head in heads))
    console.print(table)
    hidden = [
        column
        for column in columns
        if column not in shown_columns and column.brief not in shown_columns
    ]
    if hidden:
        heads_of_hidden = ", ".join(
            column.head.replace("/\n", "/").replace("\n", " ") for column in hidden
        )
        console.print(
            plain(f"The terminal is too narrow to show: {heads_of_hidden}. --json has everything.")
        )


def _kept(console: Console, columns: Sequence[Column], rows: Sequence[Any]) -> list[Column]:
    some = [column for column in columns if column.keep >= ALWAYS]
    for column in sorted(columns, key=lambda column: -column.keep):
        more = [one for one in columns if one in some or one is column]
        wide = console.measure(
            _table(more, rows, _NAME), options=console.options.update(max_width=_ANY_WIDTH)
        ).maximum
        some = more if wide <= console.width else some
    return some


def _table(columns: Sequence[Column], rows: Sequence[Any], longest: int | None = None) -> Table:
    """A table; names that fold are at most ``longest`` wide."""
    table = new_table("")
    for column in columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(
            plain(column.head), justify=justify, overflow="fold", no_wrap=not column.folds
        )
    for row in rows:
        cells = (
            one_line(column.cell(row))[: longest if column.folds else None] for column in columns
        )
        table.add_row(*map(plain, cells))
    return table


# -- rankings --------------------------------------------------------------------------------------------------


def _columns(ranking: Ranking) -> list[Column]:
    from cmtrack.report.review.phrases import standing, standing_word

    criterion, several, leader = ranking.criterion, len(ranking.standings) > 1, ranking.leader
    level = f"[{100 * ranking.confidence_level:g} % interval]"
    columns = [
        Column("front" if criterion.pareto else "", lambda one: str(one.rank), ALWAYS, right=True),
        Column(ranking.noun, lambda one: str(one.name), ALWAYS, folds=True),
    ]
    if ranking.over:
        columns.append(Column("mean ± sd", _mean, ALWAYS))
    elif criterion.pareto:
        columns += [
            _metric(name, level, 60 - place) for place, name in enumerate(criterion.metrics)
        ]
    else:
        alone = Column("value", lambda one: fmt.number(one.value, one.interval), ALWAYS, right=True)
        columns.append(
            Column(
                f"value\n{level}",
                lambda one: fmt.with_interval(one.value, one.interval),
                ALWAYS,
                brief=alone,
            )
        )
    if several and criterion.single:
        which = "from the\nleader" if ranking.over else "from the best other\nrun"
        shown = leader if ranking.over else None
        columns.append(
            Column(f"{which} {level}", lambda one: "" if one is shown else _difference(one), 95)
        )
        head = "p (all\npairs)" if ranking.over else "p (of being\nthe best)"
        columns.append(
            Column(head, lambda one: "" if one is leader else fmt.p_text(one.p_set), 70, right=True)
        )
    if ranking.over:
        columns.append(Column("runs", lambda one: str(len(one.runs)), 20, right=True))
    return [
        *columns,
        Column("status", lambda one: standing_word(standing(one, ranking), ranking, one.tied), 90),
    ]


def _metric(name: str, level: str, keep: int) -> Column:
    *section, last = name.rsplit("/", 1)
    brief = Column("/\n".join((*section, last)), lambda one: fmt.number(one.metrics[name]), keep)
    return Column(
        f"{name}\n{level}",
        lambda one: fmt.with_interval(one.metrics[name], one.evaluation.intervals.get(name)),
        keep,
        brief=brief,
    )


def _difference(one: Ranked) -> str:
    ends = (one.difference_low, one.difference_high)
    shown = fmt.with_interval(one.difference, ends)
    return shown if all(map(math.isfinite, ends)) else f"{shown} ({one.reason or 'no error known'})"


def _mean(one: Ranked) -> str:
    return fmt.number(one.value) + ("" if math.isnan(one.sd) else f" ± {fmt.number(one.sd)}")


# -- runs that are in no ranking -------------------------------------------------------------------------------


def _print_list(console: Console, head: str, lines: Sequence[str], what: str) -> None:
    from rich.padding import Padding

    if not lines:
        return
    console.print(plain(f"{head}:"))
    more = [f"and {len(lines) - MAX_LISTED} more {what}"] if len(lines) > MAX_LISTED else []
    for line in [*lines[:MAX_LISTED], *more]:
        console.print(Padding(plain(line), (0, 0, 0, 2), expand=False))
    console.print()
