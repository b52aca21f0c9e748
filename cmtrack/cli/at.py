"""``cmtrack at`` and ``plan``: metrics at different class shares, and required test rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.flags import Answer
from cmtrack.cli.frame import bad_input, print_text, terminal
from cmtrack.cli.group import main
from cmtrack.cli.stored import Store, of_stored, print_table, run_command
from cmtrack.digits import short_percent, significant

if TYPE_CHECKING:
    from cmtrack.evaluation.transport import Transported

_MOST_SHARES = 8


@run_command("at")
@click.option(
    "--at",
    "shares",
    multiple=True,
    metavar="[NAME=]SHARE",
    help="Share of the positive class or group, or of the class or group NAME; repeatable.",
)
@click.option(
    "--rows",
    type=click.FloatRange(min=1),
    metavar="N",
    help=(
        "Number of rows in the target data. The intervals then describe the metrics on that "
        "many rows."
    ),
)
@of_stored
def at_command(run: str, shares: Sequence[str], rows: float | None, store: Store) -> Answer:
    """Print the metrics of RUN for different class shares.

    RUN is a run or a folder. The command needs neither the data nor the model, and writes nothing.
    The numbers are valid if, within each class, the model predicts new rows as well as the rows in
    RUN.
    """
    if not shares:
        raise click.UsageError("give the shares with --at")
    where, evaluation = store.load(run)
    from cmtrack.comparison.comparability import of_classes
    from cmtrack.comparison.spec import shares_of

    with bad_input():
        transported = of_classes(evaluation).at(shares_of(shares, "--at"), rows=rows)
    metrics = transported.to_frame().to_dict("records")
    data = {
        **where,
        "shares": transported.shares,
        "fit_pvalue": transported.fit_pvalue,
        "metrics": metrics,
        "warnings": transported.warnings,
    }
    return Answer(lambda: data, lambda: _print(transported, metrics))


def _print(transported: Transported, metrics: list[dict[Any, Any]]) -> None:
    """Print the headline metrics for the class shares in the run and for the requested shares."""
    from cmtrack.cli.summary import print_warnings
    from cmtrack.names import join_names
    from cmtrack.report import formatting as fmt

    evaluation = transported.evaluation
    shares = [f"{name} {short_percent(share)}" for name, share in transported.by_name.items()]
    listed = ", ".join(shares[:_MOST_SHARES])
    if len(shares) > _MOST_SHARES:
        listed += ", …"
    level = f"{fmt.level(evaluation.confidence_level)} interval"
    heads = ["metric", "here", "there", level]
    if len(shares) > 2:
        heads.append("why")
    headline = [row for row in metrics if row["metric"] in evaluation.headline]
    rows = []
    unchanged = []
    for row in sorted(headline, key=_smallest_change_last):
        title_of = partial(
            fmt.metric_title, row["metric"], evaluation.positive, catalog=evaluation.catalog
        )
        if row["change"] == 0:
            unchanged.append(title_of())
            continue
        interval = (row["low"], row["high"])
        numbers = (fmt.number(row["here"]), fmt.number(row["there"], interval))
        cells = (title_of(brief=True), *numbers, fmt.interval(row["there"], interval), row["why"])
        rows.append(cells[: len(heads)])
    title = f"If the shares are: {listed}"
    if rows:
        print_table(title, heads, rows, right=2)
    if unchanged:
        listed = join_names(unchanged, len(unchanged))
        print_text(terminal(), f"These shares do not change: {listed}.")
    print_warnings(terminal(), transported.warnings)


def _smallest_change_last(row: dict[Any, Any]) -> float:
    """Return a sort key that puts metrics that change most first, and undefined metrics last."""
    change = row["change"]
    return math.inf if math.isnan(change) else -abs(change)


@main.command("plan")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]")
@click.option(
    "--difference", type=float, required=True, help="Difference that a test should detect."
)
@click.option(
    "--metric",
    metavar="METRIC",
    default="multiclass/accuracy",
    show_default=True,
    help="Metric of the difference.",
)
@of_stored
def plan_command(runs: Sequence[str], difference: float, metric: str, store: Store) -> Answer:
    """Print how many test rows you need to detect a difference.

    With the printed number of rows, a test detects the difference in 80% of cases. For two runs on
    the same rows, the number is computed from the standard error of their difference. For a single
    run, a range is printed, because the number depends on how many errors the other model shares
    with RUN.
    """
    if len(runs) > 2:
        raise click.UsageError(f"name one RUN or two, got {len(runs)}")
    evaluations = [store.load(run, lambda _: len(runs) > 1)[1] for run in runs]
    from cmtrack.comparison import CompareOptions, compare_evaluations
    from cmtrack.comparison.planning import rows_of_one

    n = evaluations[0].n_samples
    shows = f"rows are needed to detect a difference of {difference:g} in {metric}"
    with bad_input(KeyError):
        if len(evaluations) == 1:
            smallest = math.nan
            low, high = map(math.ceil, rows_of_one(evaluations[0], metric, difference))
            sentence = (
                f"{low:,} to {high:,} {shows}. You need fewer rows if the other model makes "
                f"the same errors. This run has {n:,.0f} rows."
            )
        else:
            pair = dict(zip(("first", "second"), evaluations, strict=True))
            resolution = compare_evaluations(pair, CompareOptions(rank_by=metric)).resolution
            smallest = resolution.smallest_difference
            low = high = math.ceil(resolution.rows_for(difference))
            missing = "no more than you have"
            if low > n:
                missing = f"{low - n:,.0f} more than you have"
            sentence = (
                f"{low:,} {shows}, {missing}. With your {n:,.0f} rows you can detect a "
                f"difference of {significant(smallest)}."
            )
    data = {
        "rows": n,
        "rows_needed": [low, high],
        "smallest_difference": smallest,
        "metric": metric,
    }
    return Answer(lambda: data, lambda: print_text(terminal(), sentence))
