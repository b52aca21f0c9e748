"""``cmtrack segments``: one run or two by segments, declared or not, and the worst segments."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.flags import FILE, Answer, asking, of_compare
from cmtrack.cli.frame import BadInput, bad_input, echo, passing_on, plain, terminal
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
    "--by",
    multiple=True,
    metavar="COLUMN",
    help="Column that divides the rows; repeatable. By default all.",
)
@click.option(
    "--metric", "metrics", multiple=True, metavar="METRIC", help="Metric to show; repeatable."
)
@click.option(
    "--worst",
    is_flag=True,
    help="Search the columns and their crossings for the worst segments of RUN.",
)
@click.option(
    "--min-rows",
    type=click.IntRange(1),
    help="Smallest number of the metric's rows in a searched segment. By default 100, or a fifth of these rows if "
    "there are fewer than 500.",
)
@click.option(
    "--leave-out",
    multiple=True,
    metavar="COLUMN",
    help="Column that --worst does not search; repeatable.",
)
@click.option(
    "--table",
    type=FILE,
    help="Parquet or CSV file with attributes of the rows, in the order of the run.",
)
@click.option(
    "--row-ids",
    metavar="COLUMN",
    help="Column of --table with the row ids; they must have the run's digest.",
)
@click.option(
    "--y-true",
    metavar="COLUMN",
    help="Column of --table with the actual labels; they must be those of the run.",
)
@click.option("--log", is_flag=True, help="Write the table of segments to the run, too.")
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

    With RUN_B their differences are printed, too. RUN is a run, or a folder that `cmtrack evaluate --output` wrote. Its
    segments are those that were declared, or, with --table, any column of a file: the run's kept predictions are joined
    to it. Two runs are compared row by row where both kept their rows. Nothing is written without --log. Where rows
    belong together, --worst gives those without a value in a column the value of the others of their group.

    Exit codes: 0 success, 1 the work failed, 2 wrong usage or bad input, such as rows that do not match.
    """
    if len(runs) > 2:
        raise click.UsageError(f"name one run or two, got {len(runs)}")
    if table is None and any(of_table.values()):
        raise click.UsageError("--row-ids, --y-true and --log need --table")
    if table is not None and not by:
        raise click.UsageError("--table needs --by, the columns that divide the rows")
    if leave_out and not worst:
        raise click.UsageError("--leave-out is of the columns that --worst searches")
    from cmtrack.cli.reading import read_metrics
    from cmtrack.comparison.segments import by_segment
    from cmtrack.names import distinct
    from cmtrack.report.segments import views

    extra = read_metrics(extra_metrics)
    evaluations = [
        evaluation.with_metrics(extra)
        for evaluation in _evaluations(store, runs, by, table, **of_table)
    ]
    first = evaluations[0]
    names = distinct(runs, _NAME)
    searched = None
    failure = ""
    with bad_input(KeyError):
        shown = [
            [view for view in views(evaluation, metrics) if not by or view.name in by]
            for evaluation in evaluations
        ]
        columns = [view.name for view in shown[0]]
        if not columns and not by:
            raise BadInput("the rows were evaluated without segments: --table with --by gives some")
        for name in (*by, *leave_out):
            if name not in columns:
                first.segments[name]
        chosen = shown[0][0].metrics
        if worst:
            try:
                searched = _searched(first, set(columns) - set(leave_out), chosen[0], min_rows)
            except ValueError as error:
                failure = str(error).replace("min_rows", "--min-rows")
                failure = failure.replace(
                    "leave this column out", "leave this column out (--leave-out)"
                )
        data = [[_as_data(view) for view in some] for some in shown]
        sides = list(zip(names, evaluations, strict=True))
        compared = by_segment(sides, columns, chosen, first.confidence_level)

    def as_data() -> dict[str, Any]:
        out: dict[str, Any] = {"runs": []}
        for run, columns_of_run, evaluation in zip(runs, data, evaluations, strict=True):
            remark = {"note": evaluation.segments.note} if evaluation.segments.note else {}
            out["runs"].append({"run": run, "columns": columns_of_run} | remark)
        if len(runs) == 2:
            out["differences"] = _as_differences(compared)
        if searched is not None:
            out["worst"] = {"searched": searched.searched, "notes": list(searched.notes)}
            out["worst"]["segments"] = searched.to_frame().to_dict("records")
        return out

    def show() -> None:
        console = terminal()
        for view in shown[0]:
            same = [one for some in shown[1:] for one in some if one.name == view.name]
            _print_view(
                console,
                [view, *same],
                names,
                [pair for pair in compared if pair.column == view.name],
            )
        for note in compared.notes:
            console.print(plain(note))
        if searched is not None:
            _print_worst(searched)

    return Answer(as_data, show, BadInput(failure) if failure else None)


def _searched(
    evaluation: Evaluation, columns: Collection[str], metric: str, min_rows: int | None
) -> SegmentSearch:
    """Search some columns for the worst segments."""
    from cmtrack.statistics.predictions import Predictions

    rows = evaluation.rows
    if isinstance(rows, Predictions):
        rows = replace(rows, segments=tuple(one for one in rows.segments if one.name in columns))
    return replace(evaluation, rows=rows).worst_segments(metric, min_rows=min_rows)


def _evaluations(
    store: Store, runs: tuple[str, ...], by: tuple[str, ...], table: Path | None, **of_table: Any
) -> list[Evaluation]:
    from cmtrack.comparison.comparability import of_classes

    if table is None:
        return [of_classes(store.load(run, _has_segments)[1]) for run in runs]
    from cmtrack.cli.reading import read_columns
    from cmtrack.tracking import segment_runs
    from cmtrack.tracking.store import quiet, tracking_store

    store.step("reading the table and the runs", 0, 1)
    frame = read_columns(table, [*by, *filter(None, (of_table["row_ids"], of_table["y_true"]))])
    flags = {"row_ids": "--row-ids", "y_true": "--y-true"}
    with quiet(), tracking_store(store.tracking_uri), passing_on(**flags), bad_input():
        return segment_runs(list(runs), frame, segments=list(by), prefix=store.prefix, **of_table)


def _has_segments(evaluation: BaseEvaluation) -> bool:
    return bool(getattr(evaluation, "segments", None))


def _as_data(view: SegmentView) -> dict[str, Any]:
    rows = [row for metric in view.metrics for row in view.rows[metric].values()]
    gaps = {metric: vars(view.table.disparity(metric)) for metric in view.metrics}
    return {"column": view.name, "sentences": view.sentences(), "segments": rows, "disparity": gaps}


def _as_differences(compared: SegmentComparison) -> dict[str, Any]:
    from cmtrack.report.review.data import as_plain

    words = [sentence for pair in compared if (sentence := _sentence(pair, compared))]
    return {
        "pairs": as_plain([pair.to_dict() for pair in compared]),
        "sentences": words,
        "notes": list(compared.notes),
    }


def _sentence(pair: SegmentDifferences, compared: Sequence[SegmentDifferences]) -> str:
    from cmtrack.names import quoted
    from cmtrack.report.review.narrative import segment_sentence

    unsure = not (pair.overall.low > 0 or pair.overall.high < 0)
    one_metric, one_column = (
        len({getattr(p, name) for p in compared}) == 1 for name in ("metric", "column")
    )
    return segment_sentence(pair, quoted, unsure=unsure, single=one_metric, several=not one_column)


def _print_view(
    console: Console,
    views: list[SegmentView],
    names: Sequence[str],
    pairs: Sequence[SegmentDifferences],
) -> None:
    """Print one column: a table per metric, worse segments and gaps; for two runs their differences."""
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
        console.print(plain(f"{segment_reading(pairs, quoted)} * excludes 0."))
    if alone:
        level = fmt.level(view.table.evaluation.confidence_level)
        lacking = {one.table.evaluation.segments.note for one in views} - {""}
        together = f"The {level} intervals of all segments hold together; * excludes 0."
        console.print(plain(f"{fmt.capital(lacking.pop())}." if lacking else together))
    for one, name in zip(views, names, strict=False):
        head = f"{fmt.named(name)}: " if len(names) > 1 else ""
        for sentence in (*one.sentences(), *(one.gap(metric) for metric in one.metrics)):
            console.print(plain(head + sentence))


def _print_values(views: list[SegmentView], names: Sequence[str], metric: str) -> None:
    """The values of one run and its differences to the rest; those of a second, unpaired run alongside."""
    from cmtrack.report import formatting as fmt

    view, several = views[0], len(views) > 1
    shown = list(view.rows[metric].items())[:_SHOWN]
    heads = (
        [*names[: len(views)], "the first: to the rest"]
        if several
        else ["value", "difference to the rest"]
    )
    rows = []
    for text, row in shown:
        others = [one.rows[metric].get(text) for one in views]
        values = [
            "–" if one is None else fmt.with_interval(one["value"], (one["low"], one["high"]))
            for one in others
        ]
        apart = fmt.signed(row["difference"], (row["difference_low"], row["difference_high"]))
        rows.append(
            (text, row["rows"], *values, apart + (" *" if view.side(metric, text) else "  "))
        )
    _print_table(view, metric, view.table.order_of(metric), heads, rows)


def _print_pair(
    console: Console,
    view: SegmentView,
    pair: SegmentDifferences,
    compared: Sequence[SegmentDifferences],
) -> None:
    """The values of two runs, and their differences."""
    from cmtrack.names import quoted
    from cmtrack.report import formatting as fmt
    from cmtrack.report.review.narrative import segment_test

    rows = []
    for k, text in enumerate(pair.segments[:_SHOWN]):
        low, high = float(pair.low[k]), float(pair.high[k])
        values = (fmt.number(float(side[k])) for side in (pair.first_values, pair.second_values))
        gap = fmt.signed_or_why(float(pair.differences[k]), (low, high), pair.reasons[k])
        gap += " *" if low > 0 or high < 0 else "  "
        rows.append((text, pair.rows[k], *values, gap))
    order = f"the worst of {quoted(pair.first)} first"
    _print_table(view, pair.metric, order, (pair.first, pair.second, "difference"), rows)
    ends = pair.overall.low, pair.overall.high
    whole = f"Of all samples the difference is {fmt.signed_or_why(pair.overall.difference, ends, pair.overall.reason)}."
    for text in (f"{whole} {segment_test([pair], quoted)}".rstrip(), _sentence(pair, compared)):
        if text:
            console.print(plain(text))


def _print_table(
    view: SegmentView,
    metric: str,
    order: str,
    heads: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
) -> None:
    """Print the segments of one metric; ``rows`` has name, rows and the cells below ``heads``."""
    from cmtrack.report import formatting as fmt

    of = f", {len(rows)} of {len(view.table)}" if len(rows) < len(view.table) else ""
    title = f"{fmt.capital(view.title_of(metric))} by {fmt.named(view.name)}, {order}{of}"
    cells = [(fmt.short(text, 40), fmt.count(size), *others) for text, size, *others in rows]
    print_table(title, ("segment", "rows", *heads), cells)


def _print_worst(searched: SegmentSearch) -> None:
    from cmtrack.report import formatting as fmt

    # The search looks at one side, the intervals of segments at both: half the level is the same bar for a gap.
    level = (1 - searched.confidence_level) / 2
    worst = searched.found(level)
    are = "is" if len(worst) == 1 else "are"
    head = f"{len(worst)} of {searched.searched:,} searched segments {are} significantly worse"
    test = f"one-sided test over all that were searched, p at most {significant(level)}"
    rows = [
        (one.text, fmt.count(one.rows), fmt.number(one.value), fmt.p_text(one.p_adjusted))
        for one in searched.segments[:_SHOWN]
    ]
    print_table(f"{head} ({test})", ("segment", "rows", "value", "adjusted p"), rows)
    for note in searched.notes:
        echo(note)
