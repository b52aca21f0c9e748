"""``cmtrack at`` and ``plan``: an evaluation at other shares of its classes, and the rows that a difference needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.flags import Answer
from cmtrack.cli.frame import bad_input, echo
from cmtrack.cli.group import main
from cmtrack.cli.stored import Store, of_stored, print_table, run_command
from cmtrack.digits import short_percent, significant

if TYPE_CHECKING:
    from cmtrack.evaluation.transport import Transported

_MOST_SHARES = 8


@run_command("at")
@click.option(
    "--prevalence",
    multiple=True,
    metavar="[NAME=]SHARE",
    help="Share of the positive class or group, or of the class or group of this NAME; repeatable.",
)
@click.option("--rows", type=click.FloatRange(min=1), help="Rows of the target.")
@of_stored
def at_command(run: str, prevalence: Sequence[str], rows: float | None, store: Store) -> Answer:
    """Print the metrics of RUN where its classes have other shares.

    RUN is a run or a folder. Neither its data nor its model is needed, and nothing is written. The numbers hold if,
    within each class, the model answers as on the rows of RUN.
    """
    if not prevalence:
        raise click.UsageError("give the shares by --prevalence")
    where, evaluation = store.load(run)
    from cmtrack.comparison.comparability import of_classes
    from cmtrack.comparison.spec import shares_of

    with bad_input():
        there = of_classes(evaluation).at(shares_of(prevalence, "--prevalence"), rows=rows)
    metrics = there.to_frame().to_dict("records")
    about = where | {"shares": there.shares, "fit_pvalue": there.fit_pvalue}
    about |= {"metrics": metrics, "warnings": there.warnings}
    return Answer(lambda: about, lambda: _print(there, metrics))


def _print(found: Transported, metrics: list[dict[Any, Any]]) -> None:
    from cmtrack.report import formatting as fmt

    evaluation = found.evaluation
    shares = [f"{name} {short_percent(share)}" for name, share in found.by_name.items()]
    more = ", …" if len(shares) > _MOST_SHARES else ""
    title = f"Where the shares are: {', '.join(shares[:_MOST_SHARES])}{more}"
    heads = ["metric", "here", "there", "low", "high"]
    if len(shares) > 2:
        heads.append("why")
    rows = []
    for row in metrics:
        if row["metric"] in evaluation.headline:
            heading = fmt.metric_title(
                row["metric"], evaluation.positive, catalog=evaluation.catalog
            )
            numbers = (fmt.number(row[name]) for name in ("here", "there", "low", "high"))
            cells = (heading, *numbers, row["why"])
            rows.append(cells[: len(heads)])
    print_table(title, heads, rows, right=4, notes=found.warnings)


@main.command("plan")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]")
@click.option(
    "--difference", type=float, required=True, help="True difference that is to be shown."
)
@click.option(
    "--metric", default="multiclass/accuracy", show_default=True, help="Metric of the difference."
)
@of_stored
def plan_command(runs: Sequence[str], difference: float, metric: str, store: Store) -> Answer:
    """Print how many test rows show a difference in 80 % of cases.

    For two runs on the same rows it follows from the error of their difference. For one run it is a range, since it
    depends on how alike the errors of another model are.
    """
    if len(runs) > 2:
        raise click.UsageError(f"name one RUN or two, got {len(runs)}")
    sides = [store.load(run, lambda _: len(runs) > 1)[1] for run in runs]
    from cmtrack.comparison import CompareOptions, compare_evaluations
    from cmtrack.comparison.planning import rows_of_one

    n = sides[0].n_samples
    shows = f"rows show a difference of {difference:g} in {metric}"
    with bad_input(KeyError):
        if len(sides) == 1:
            smallest = math.nan
            low, high = map(math.ceil, rows_of_one(sides[0], metric, difference))
            alike = "the fewer, the more another model errs where this one does"
            sentence = f"{low:,} to {high:,} {shows}: {alike}. There are {n:,.0f}."
        else:
            pair = dict(zip(("first", "second"), sides, strict=True))
            resolution = compare_evaluations(pair, CompareOptions(rank_by=metric)).resolution
            smallest = resolution.smallest_difference
            low = high = math.ceil(resolution.rows_for(difference))
            more = f"{low - n:,.0f} more than there are" if low > n else "no more than there are"
            sentence = f"{low:,} {shows}, {more}; these {n:,.0f} show {significant(smallest)}."
    data = {
        "rows": n,
        "rows_needed": [low, high],
        "smallest_difference": smallest,
        "metric": metric,
    }
    return Answer(lambda: data, lambda: echo(sentence))
