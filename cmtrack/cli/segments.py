"""``cmtrack segments``: an evaluation by segments, also by attributes that were not declared, and the worst ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.compare import FILE, json_option
from cmtrack.cli.frame import BadInput, echo, echo_json, first_line, plain, plain_errors, terminal, warn, working

if TYPE_CHECKING:
    from rich.console import Console

    from cmtrack.evaluation import Evaluation
    from cmtrack.report.segments import SegmentView

_SHOWN = 20


@click.command("segments")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN_B]")
@click.option("--by", multiple=True, metavar="COLUMN", help="Column that divides the rows; repeatable. By default all.")
@click.option("--metric", "metrics", multiple=True, metavar="METRIC", help="Metric to show; repeatable.")
@click.option("--worst", is_flag=True, help="Search the columns of --table and their crossings for the worst segments.")
@click.option("--min-rows", type=click.IntRange(1), default=100, help="Rows that a searched segment must have.")
@click.option("--table", type=FILE, help="Parquet or CSV file with attributes of the rows, in the order of the run.")
@click.option("--row-ids", metavar="COLUMN", help="Column of --table with the row ids, which the run's digest checks.")
@click.option("--y-true", metavar="COLUMN", help="Column of --table with the actual labels, which the run's check.")
@click.option("--log", is_flag=True, help="Write the table of segments to the run, too.")
@click.option("--prefix", default="", help="As it was logged, where a run holds several evaluations.")
@click.option("--tracking-uri", metavar="URI", help="Tracking store; by default MLflow's own choice.")
@json_option
@plain_errors
def segments_command(
    runs: tuple[str, ...],
    by: tuple[str, ...],
    metrics: tuple[str, ...],
    worst: bool,
    min_rows: int,
    table: Path | None,
    row_ids: str | None,
    y_true: str | None,
    log: bool,
    prefix: str,
    tracking_uri: str | None,
    as_json: bool,
) -> None:
    """Print the metrics of RUN (and RUN_B) by segment.

    RUN is a run, or a folder that `cmtrack evaluate --output` wrote. Its segments are those that were declared, or,
    with --table, any column of a file: the run's kept predictions are joined to it. Nothing is written without --log.

    Exit codes: 0 all is well, 1 the work failed, 2 wrong usage or bad input, such as rows that do not match.
    """
    if len(runs) > 2:
        raise click.UsageError(f"name one run or two, got {len(runs)}")
    if table is None and (row_ids or y_true or log or worst):
        raise click.UsageError("--row-ids, --y-true, --log and --worst need --table")
    if table is not None and not by:
        raise click.UsageError("--table needs --by, the columns that divide the rows")
    with working() as step:
        evaluations = _evaluations(step, runs, by, table, row_ids, y_true, log, prefix, tracking_uri)
        from cmtrack.report.segments import views

        try:
            found = [list(views(evaluation, metrics)) for evaluation in evaluations]
            found = [[view for view in some if not by or view.name in by] for some in found]
            searched = evaluations[0].worst_segments(
                metrics[0] if metrics else found[0][0].metrics[0], min_rows=min_rows
            ) if worst else None  # fmt: skip
            lacking = [name for name in by if name not in [view.name for view in found[0]]]
            if lacking or not found[0]:
                evaluations[0].segments[lacking[0] if lacking else "any column"]
            data = [[_as_data(view) for view in some] for some in found]
        except (KeyError, ValueError) as error:
            raise BadInput(str(error.args[0]) if error.args else first_line(error)) from None
    if as_json:
        names = ("run", "columns")
        out: dict[str, Any] = {"runs": [dict(zip(names, one, strict=True)) for one in zip(runs, data, strict=True)]}
        if searched is not None:
            out["worst"] = {"searched": searched.searched, "notes": list(searched.notes)}
            out["worst"]["segments"] = searched.to_frame().to_dict("records")
        echo_json(out)
        return
    console = terminal()
    for views_of_column in zip(*found, strict=True):
        _print_view(console, list(views_of_column), runs)
    if searched is not None:
        _print_worst(console, searched)


def _evaluations(
    step: Any,
    runs: tuple[str, ...],
    by: tuple[str, ...],
    table: Path | None,
    row_ids: str | None,
    y_true: str | None,
    log: bool,
    prefix: str,
    tracking_uri: str | None,
) -> list[Evaluation]:
    import warnings

    from cmtrack.comparison.comparability import of_classes

    if table is None:
        from cmtrack.cli.show import held

        return [of_classes(held(step, run, prefix, tracking_uri)[1]) for run in runs]
    from cmtrack.cli.reading import read_columns
    from cmtrack.tracking import segment_runs
    from cmtrack.tracking.store import quiet, tracking_store

    step("reading the table and the runs", 0, 1)
    frame = read_columns(table, [*by, *filter(None, (row_ids, y_true))])
    with quiet(), tracking_store(tracking_uri), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UserWarning)
        try:
            done = segment_runs(
                list(runs), frame, segments=list(by), row_ids=row_ids, y_true=y_true, prefix=prefix, log=log
            )
        except ValueError as error:
            raise BadInput(first_line(error)) from None
    for text in dict.fromkeys(str(one.message) for one in told if one.category is UserWarning):
        warn(text.replace("row_ids=", "--row-ids").replace("y_true=", "--y-true"))
    return done


def _as_data(view: SegmentView) -> dict[str, Any]:
    rows = [row for metric in view.metrics for row in view.rows[metric].values()]
    gaps = {metric: vars(view.table.disparity(metric)) for metric in view.metrics}
    return {"column": view.name, "sentences": view.sentences(), "segments": rows, "disparity": gaps}


def _print_view(console: Console, found: list[SegmentView], runs: tuple[str, ...]) -> None:
    """One column: a table, the gaps and what is worse, of the first run and the values of the second beside it."""
    from cmtrack.cli.summary import new_table
    from cmtrack.report import formatting as fmt

    view = found[0]
    shown = view.order[:_SHOWN]
    of = f", {len(shown)} of {len(view.order)} shown" if len(shown) < len(view.order) else ""
    table = new_table(f"Segments by {fmt.named(view.name)}, the worst first by {view.title_of(view.metrics[0])}{of}")
    table.add_column("segment", overflow="fold")
    table.add_column("samples", justify="right")
    for metric in view.metrics:
        for place, run in zip(range(len(found)), runs, strict=True):
            name = view.title_of(metric, brief=True)
            table.add_column(name if len(found) == 1 else f"{name}, {fmt.short(run, 12)}", justify="right")
            if not place:
                table.add_column("to the rest", justify="right")
    for text in shown:
        cells = [plain(fmt.short(text, 40)), fmt.count(view.rows[view.metrics[0]][text]["rows"])]
        for metric in view.metrics:
            for place, one in enumerate(found):
                row = one.rows[metric].get(text)
                if row is None:
                    cells.append("–")
                    continue
                cells.append(fmt.with_interval(row["value"], (row["low"], row["high"])))
                if not place:
                    apart = fmt.signed(row["difference"], (row["difference_low"], row["difference_high"]))
                    cells.append(f"{apart} *" if one.side(metric, text) else apart)
        table.add_row(*cells)
    console.print(table)
    level = fmt.level(view.table.evaluation.confidence_level)
    console.print(plain(f"The {level} intervals of all segments hold together; * excludes 0."))
    for one, run in zip(found, runs, strict=True):
        head = f"{fmt.short(run, 12)}: " if len(found) > 1 else ""
        for sentence in (*one.sentences(), *(one.gap(metric) for metric in one.metrics)):
            console.print(plain(head + sentence))


def _print_worst(console: Console, searched: Any) -> None:
    from cmtrack.cli.summary import new_table
    from cmtrack.report import formatting as fmt

    found = searched.found(1 - searched.confidence_level)
    head = f"{len(found)} of {searched.searched:,} searched segments are worse by more than chance explains"
    table = new_table(f"{head} (family-wise)")
    table.add_column("segment", overflow="fold")
    for name in ("rows", "value", "adjusted p"):
        table.add_column(name, justify="right")
    for one in searched.segments[:_SHOWN]:
        table.add_row(plain(one.text), fmt.count(one.rows), fmt.number(one.value), fmt.p_text(one.p_adjusted))
    console.print(table)
    for note in searched.notes:
        echo(note)
