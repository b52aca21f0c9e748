"""``cmtrack at`` and ``plan``: an evaluation at other shares of its classes, and the rows that a difference needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from cmtrack.cli.compare import one_run
from cmtrack.cli.flags import Answer, Place, asking, of_compare, of_stored
from cmtrack.cli.frame import bad_input, echo, plain, terminal, working
from cmtrack.cli.group import main
from cmtrack.cli.show import held
from cmtrack.digits import short_percent, significant

if TYPE_CHECKING:
    from cmtrack.evaluation.transport import Transported

_MOST_SHARES = 8


@main.command("at", cls=asking(of_compare, "experiment_names", "filter_string"))
@one_run
@click.option(
    "--prevalence",
    multiple=True,
    metavar="[NAME=]SHARE",
    help="Share of the positive class or group, or of the class or group of this NAME; repeatable.",
)
@click.option("--rows", type=click.FloatRange(min=1), help="Rows of the target.")
@of_stored
def at_command(run: str, prevalence: Sequence[str], rows: float | None, place: Place) -> Answer:
    """Print the metrics of RUN where its classes have other shares.

    RUN is a run or a folder. Neither its data nor its model is needed, and nothing is written. The numbers hold if,
    within each class, the model answers as on the rows of RUN.
    """
    if not prevalence:
        raise click.UsageError("give the shares by --prevalence")
    with working() as step:
        where, evaluation = held(step, run, place, needs_rows=lambda _: False)
        from cmtrack.comparison.comparability import of_classes
        from cmtrack.comparison.spec import shares_of

        with bad_input():
            there = of_classes(evaluation).at(shares_of(prevalence, "--prevalence"), rows=rows)
        frame = there.to_frame()
    about = where | {"shares": there.shares, "fit_pvalue": there.fit_pvalue}
    about |= {"metrics": frame.to_dict("records"), "warnings": there.warnings}
    return Answer(lambda: about, lambda: _print(there))


def _print(found: Transported) -> None:
    from cmtrack.cli.summary import new_table, print_warnings
    from cmtrack.report import formatting as fmt

    console, frame, shares = terminal(), found.to_frame(), found.by_name
    headline, several = set(found.evaluation.headline), len(shares) > 2
    where = ", ".join(
        f"{name} {short_percent(share)}" for name, share in list(shares.items())[:_MOST_SHARES]
    )
    title = f"Where the shares are: {where}{', …' if len(shares) > _MOST_SHARES else ''}"
    names = ["metric", "here", "there", "low", "high"]
    table = new_table(title, *names, *(["why"] if several else []), right=4)
    for row in frame.to_dict("records"):
        if row["metric"] in headline:
            heading = fmt.metric_title(
                row["metric"], found.evaluation.positive, catalog=found.evaluation.catalog
            )
            numbers = (fmt.number(row[name]) for name in names[1:])
            table.add_row(plain(heading), *numbers, *([plain(row["why"])] if several else []))
    if table.row_count:
        console.print(table)
    print_warnings(console, found.warnings)


@main.command("plan")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN]")
@click.option(
    "--difference", type=float, required=True, help="True difference that is to be shown."
)
@click.option(
    "--metric", default="multiclass/accuracy", show_default=True, help="Metric of the difference."
)
@of_stored
def plan_command(runs: Sequence[str], difference: float, metric: str, place: Place) -> Answer:
    """Print how many test rows show a difference in 80 % of cases.

    For two runs on the same rows it follows from the error of their difference. For one run it is a range, since it
    depends on how alike the errors of another model are.
    """
    if len(runs) > 2:
        raise click.UsageError(f"name one RUN or two, got {len(runs)}")
    with working() as step:
        sides = [held(step, run, place, needs_rows=lambda _: len(runs) > 1)[1] for run in runs]
        from cmtrack.comparison import CompareOptions, compare_evaluations
        from cmtrack.comparison.planning import rows_of_one

        with bad_input(KeyError):
            if len(sides) == 2:
                names = ("first", "second")
                options = CompareOptions(rank_by=metric)
                resolution = compare_evaluations(
                    dict(zip(names, sides, strict=True)), options
                ).resolution
                low = high = resolution.rows_for(difference)
                smallest = resolution.smallest_difference
            else:
                smallest, (low, high) = math.nan, rows_of_one(sides[0], metric, difference)
    n = sides[0].n_samples
    low, high = math.ceil(low), math.ceil(high)
    shows, more = f"rows show a difference of {difference:g} in {metric}", "no more than there are"
    if len(sides) == 2:
        more = f"{low - n:,.0f} more than there are" if low > n else more
        sentence = f"{low:,} {shows}, {more}; these {n:,.0f} show {significant(smallest)}."
    else:
        alike = "the fewer, the more another model errs where this one does"
        sentence = f"{low:,} to {high:,} {shows}: {alike}. There are {n:,.0f}."
    data = {
        "rows": n,
        "rows_needed": [low, high],
        "smallest_difference": smallest,
        "metric": metric,
    }
    return Answer(lambda: data, lambda: echo(sentence))
