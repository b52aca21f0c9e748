"""``cmtrack segments``: print one or two runs by segment, and find the worst segments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cmtrack.cli.flags import FILE, Answer, asking, of_compare
from cmtrack.cli.frame import BadInput, bad_input, passing_on, print_text, terminal
from cmtrack.cli.group import main
from cmtrack.cli.stored import Store, of_stored, print_table
from cmtrack.digits import significant

if TYPE_CHECKING:
    from rich.console import Console

    from cmtrack.base import BaseEvaluation
    from cmtrack.comparison import SegmentComparison, SegmentDifferences
    from cmtrack.evaluation import Evaluation
    from cmtrack.report.segments import SegmentView
    from cmtrack.segments import SegmentSearch

_SHOWN = 20
_NAME = 12


@main.command("segments", cls=asking(of_compare, "extra_metrics"))
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN_B]")
@click.option(
    "--segment",
    "by",
    multiple=True,
    metavar="COLUMN",
    help="Column that divides the rows; repeatable. By default, all columns of the run are used.",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="METRIC", help="Metric to show; repeatable."
)
@click.option(
    "--worst",
    is_flag=True,
    help="Search the columns, and crossings of two columns, for the worst segments of RUN.",
)
@click.option(
    "--min-rows",
    type=click.IntRange(1),
    metavar="N",
    help="Minimum number of rows in a searched segment. Only rows that the metric uses count. "
    "By default 100, or a fifth of these rows if there are fewer than 500.",
)
@click.option(
    "--leave-out",
    multiple=True,
    metavar="COLUMN",
    help="Column that --worst should not search; repeatable.",
)
@click.option(
    "--table",
    type=FILE,
    help="Parquet or CSV file with more columns of the rows, in the order of the run.",
)
@click.option(
    "--row-ids",
    metavar="COLUMN",
    help="Column of --table with the row ids, which must match the row ids of the run.",
)
@click.option(
    "--y-true",
    metavar="COLUMN",
    help="Column of --table with the actual labels, which must match the labels of the run.",
)
@click.option("--log", is_flag=True, help="Also write the table of segments to the run.")
@of_stored
def segments_command(
    runs: tuple[str, ...],
    by: tuple[str, ...],
    metrics: tuple[str, ...],
    worst: bool,
    min_rows: int | None,
    leave_out: tuple[str, ...],
    table: Path | None,
    extra_metrics: tuple[str, ...],
    store: Store,
    **of_table: Any,
) -> Answer:
    """Print the metrics of RUN by segment.

    RUN is a run, or a folder that `cmtrack evaluate --output` wrote. With RUN_B, the command also
    prints the differences between the two runs. The runs are compared row by row if both contain
    their row-level predictions. The segments come from the evaluation or, with --table, from
    columns of a file that are joined to the predictions. The command writes nothing unless you pass
    --log. If the rows of the run are clustered (--groups), --worst replaces missing values of a
    column with the value in other rows of the same cluster.

    Exit codes: 0 success, 1 the work failed, 2 wrong usage or bad input, such as rows that do not
    match.
    """
    if len(runs) > 2:
        raise click.UsageError(f"name one or two runs, got {len(runs)}")
    if leave_out and not worst:
        raise click.UsageError("--leave-out needs --worst")
    _check_table_flags(table, by, of_table)
    from cmtrack.cli.reading import read_metrics
    from cmtrack.comparison.segments import by_segment
    from cmtrack.names import distinct
    from cmtrack.report.segments import views

    extra = read_metrics(extra_metrics)
    evaluations = [
        evaluation.with_metrics(extra) for evaluation in _load(store, runs, by, table, **of_table)
    ]
    searched = None
    failure = ""
    with bad_input(KeyError):
        shown = [
            [view for view in views(evaluation, metrics) if not by or view.name in by]
            for evaluation in evaluations
        ]
        columns = [view.name for view in shown[0]]
        if not columns and not by:
            raise BadInput("the rows were evaluated without segments; use --table and --segment")
        for name in (*by, *leave_out):
            if name not in columns:
                evaluations[0].segments[name]  # raises an error with the names of the columns
        chosen = shown[0][0].metrics
        for evaluation in evaluations:
            for metric in chosen:
                evaluation.metrics[metric]  # raises an error with similar names
        if worst:
            others = set(columns) - set(leave_out)
            try:
                searched = _search(evaluations[0], others, chosen[0], min_rows)
            except ValueError as error:
                failure = _with_flags(str(error))
        names = distinct(runs, _NAME)
        sides = list(zip(names, evaluations, strict=True))
        compared = by_segment(sides, columns, chosen, evaluations[0].confidence_level)
        run_names = dict(zip(names, store.names_of(runs), strict=True))
        found = _Segments(runs, run_names, evaluations, shown, compared, searched)
        data = found.data()
    return Answer(lambda: data, found.print, BadInput(failure) if failure else None)


def _check_table_flags(table: Path | None, by: Sequence[str], of_table: dict[str, Any]) -> None:
    if table is None and any(of_table.values()):
        raise click.UsageError("--row-ids, --y-true and --log need --table")
    if table is not None and not by:
        raise click.UsageError("--table needs --segment, a column that divides the rows")


def _with_flags(error: str) -> str:
    """Replace argument names by flags in a search's error message."""
    error = error.replace("min_rows", "--min-rows")
    return error.replace("leave this column out", "leave this column out (--leave-out)")


class _Segments(NamedTuple):
    """Views of each run by column, differences between two runs, and the result of a search."""

    runs: tuple[str, ...]
    names: dict[str, str]
    """The name of each run, by its name in ``compared``."""
    evaluations: Sequence[Evaluation]
    views: list[list[SegmentView]]
    compared: SegmentComparison
    searched: SegmentSearch | None

    def data(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        data: dict[str, Any] = {"runs": []}
        for run, views, evaluation in zip(self.runs, self.views, self.evaluations, strict=True):
            run_data = {"run": run, "columns": [_as_data(view) for view in views]}
            if evaluation.segments.note:
                run_data["note"] = evaluation.segments.note
            data["runs"].append(run_data)
        if len(self.runs) == 2:
            data["differences"] = _as_differences(self.compared)
        if self.searched is not None:
            data["worst"] = {
                "searched": self.searched.searched,
                "notes": list(self.searched.notes),
                "segments": self.searched.to_frame().to_dict("records"),
            }
        return data

    def print(self) -> None:
        """Print tables and sentences, column by column."""
        console = terminal()
        compared = [
            replace(pair, first=self.names[pair.first], second=self.names[pair.second])
            for pair in self.compared
        ]
        for view in self.views[0]:
            others = [
                other for views in self.views[1:] for other in views if other.name == view.name
            ]
            pairs = [pair for pair in compared if pair.column == view.name]
            _print_view(console, [view, *others], [*self.names.values()], pairs)
        for note in self.compared.notes:
            print_text(console, note)
        if self.searched is not None:
            _print_worst(self.searched)


def _search(
    evaluation: Evaluation, columns: Collection[str], metric: str, min_rows: int | None
) -> SegmentSearch:
    """Search some columns for the worst segments."""
    from cmtrack.statistics.predictions import Predictions

    rows = evaluation.rows
    if isinstance(rows, Predictions):
        segments = tuple(column for column in rows.segments if column.name in columns)
        rows = replace(rows, segments=segments)
    return replace(evaluation, rows=rows).worst_segments(metric, min_rows=min_rows)


def _load(
    store: Store, runs: tuple[str, ...], by: tuple[str, ...], table: Path | None, **of_table: Any
) -> list[Evaluation]:
    """Return the evaluations of runs, with segments from a table if a table is given."""
    from cmtrack.comparison.comparability import of_classes

    if table is None:
        return [of_classes(store.load(run, _has_segments)[1]) for run in runs]
    from cmtrack.cli.reading import read_columns
    from cmtrack.tracking import segment_runs
    from cmtrack.tracking.runs import client_for, find
    from cmtrack.tracking.store import quiet, tracking_store

    store.step("reading the table and the runs", 0, 1)
    frame = read_columns(table, [*by, *filter(None, (of_table["row_ids"], of_table["y_true"]))])
    flags = {"row_ids": "--row-ids", "y_true": "--y-true"}
    with quiet(), tracking_store(store.tracking_uri), passing_on(**flags), bad_input():
        client = client_for()
        store.names.update({run: find(run, [client]).name for run in runs})
        return segment_runs(list(runs), frame, segments=list(by), prefix=store.prefix, **of_table)


def _has_segments(evaluation: BaseEvaluation) -> bool:
    return bool(getattr(evaluation, "segments", None))


def _as_data(view: SegmentView) -> dict[str, Any]:
    rows = [row for metric in view.metrics for row in view.rows[metric].values()]
    gaps = {metric: vars(view.table.disparity(metric)) for metric in view.metrics}
    return {
        "column": view.name,
        "sentences": view.sentences(),
        "segments": rows,
        "disparity": gaps,
    }


def _as_differences(compared: SegmentComparison) -> dict[str, Any]:
    from cmtrack.report.review.data import as_plain

    sentences = [_sentence(pair, compared) for pair in compared]
    return {
        "pairs": as_plain([pair.to_dict() for pair in compared]),
        "sentences": [sentence for sentence in sentences if sentence],
        "notes": list(compared.notes),
    }


def _sentence(pair: SegmentDifferences, compared: Sequence[SegmentDifferences]) -> str:
    from cmtrack.names import quoted
    from cmtrack.report.review.narrative import segment_sentence

    metrics = {other.metric for other in compared}
    columns = {other.column for other in compared}
    return segment_sentence(
        pair,
        quoted,
        unsure=not (pair.overall.low > 0 or pair.overall.high < 0),
        single=len(metrics) == 1,
        several=len(columns) > 1,
    )


def _print_view(
    console: Console,
    views: list[SegmentView],
    names: Sequence[str],
    pairs: Sequence[SegmentDifferences],
) -> None:
    """Print the results for one column: a table per metric, worse segments and gaps.

    For two runs, the differences between them are also printed.
    """
    from cmtrack.names import quoted
    from cmtrack.report import formatting as fmt
    from cmtrack.report.review.narrative import segment_reading

    view = views[0]
    by_metric = {pair.metric: pair for pair in pairs}
    alone = [metric for metric in view.metrics if metric not in by_metric]
    for metric in view.metrics:
        if metric in by_metric:
            _print_pair(console, view, by_metric[metric], pairs)
        else:
            _print_values(views, names, metric)
    if pairs:
        print_text(
            console, f"{segment_reading(pairs, quoted)} * marks an interval that excludes 0."
        )
    if alone:
        level = fmt.level(view.table.evaluation.confidence_level)
        text = (
            f"The {level} intervals hold for all segments at once. * marks an interval that "
            "excludes 0."
        )
        notes = {run_view.table.evaluation.segments.note for run_view in views} - {""}
        if notes:  # the notes say why the segments have no intervals
            text = f"{fmt.capital(notes.pop())}."
        print_text(console, text)
    for run_view, name in zip(views, names, strict=False):
        head = f"{fmt.named(name)}: " if len(names) > 1 else ""
        gaps = [run_view.gap(metric) for metric in run_view.metrics]
        for sentence in (*run_view.sentences(), *gaps):
            print_text(console, head + sentence)


def _print_values(views: list[SegmentView], names: Sequence[str], metric: str) -> None:
    """Print a run's values by segment, and the differences between each segment and the rest.

    If a second run is not paired with the first, its values are in the next column.
    """
    from cmtrack.report import formatting as fmt

    view = views[0]
    heads = ["value", "difference to the rest"]
    if len(views) > 1:
        heads = [*names[: len(views)], "the first: to the rest"]
    rows = []
    for segment, row in list(view.rows[metric].items())[:_SHOWN]:
        values = []
        for run_view in views:
            run_row = run_view.rows[metric].get(segment)
            if run_row is None:
                values.append("–")
            else:
                interval = (run_row["low"], run_row["high"])
                values.append(fmt.with_interval(run_row["value"], interval))
        interval = (row["difference_low"], row["difference_high"])
        difference = fmt.signed(row["difference"], interval)
        mark = " *" if view.side(metric, segment) else "  "
        rows.append((segment, row["rows"], *values, difference + mark))
    _print_table(view, metric, view.table.order_of(metric), heads, rows)


def _print_pair(
    console: Console,
    view: SegmentView,
    pair: SegmentDifferences,
    compared: Sequence[SegmentDifferences],
) -> None:
    """Print the values of two runs, and the differences between the runs."""
    from cmtrack.names import quoted
    from cmtrack.report import formatting as fmt
    from cmtrack.report.review.narrative import segment_test

    rows = []
    for k, segment in enumerate(pair.segments[:_SHOWN]):
        low = float(pair.low[k])
        high = float(pair.high[k])
        values = (fmt.number(float(side[k])) for side in (pair.first_values, pair.second_values))
        gap = fmt.signed_or_why(float(pair.differences[k]), (low, high), pair.reasons[k])
        gap += " *" if low > 0 or high < 0 else "  "
        rows.append((segment, pair.rows[k], *values, gap))
    order = f"the worst of {quoted(pair.first)} first"
    _print_table(view, pair.metric, order, (pair.first, pair.second, "difference"), rows)
    overall = pair.overall
    difference = fmt.signed_or_why(overall.difference, (overall.low, overall.high), overall.reason)
    text = f"Over all rows the difference is {difference}. {segment_test([pair], quoted)}"
    print_text(console, text.rstrip())
    sentence = _sentence(pair, compared)
    if sentence:
        print_text(console, sentence)


def _print_table(
    view: SegmentView,
    metric: str,
    order: str,
    heads: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Print the segments of one metric; ``rows`` contains names, row counts and ``heads`` cells."""
    from cmtrack.report import formatting as fmt

    title = f"{fmt.capital(view.title_of(metric))} by {fmt.named(view.name)}, {order}"
    if len(rows) < len(view.table):
        title += f", {len(rows)} of {len(view.table)}"
    cells = [(fmt.short(name, 40), fmt.count(size), *others) for name, size, *others in rows]
    print_table(title, ("segment", "rows", *heads), cells)


def _print_worst(searched: SegmentSearch) -> None:
    from cmtrack.report import formatting as fmt

    # The search is one-sided and the intervals of segments are two-sided, so half of the level is
    # an equally strict limit.
    level = (1 - searched.confidence_level) / 2
    worst = searched.found(level)
    verb = "is" if len(worst) == 1 else "are"
    head = f"{len(worst)} of {searched.searched:,} searched segments {verb} significantly worse"
    test = (
        "in a one-sided test over all searched segments, with a p-value of at most "
        f"{significant(level)}"
    )
    rows = [
        (
            segment.text,
            fmt.count(segment.rows),
            fmt.number(segment.value),
            fmt.p_text(segment.p_adjusted),
        )
        for segment in searched.segments[:_SHOWN]
    ]
    print_table(f"{head} ({test})", ("segment", "rows", "value", "adjusted p"), rows)
    for note in searched.notes:
        print_text(terminal(), note)
