"""``cmtrack show``, ``price`` and ``threshold``: a stored evaluation, its costs, and the choice of a threshold."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.compare import one_run
from cmtrack.cli.flags import FILE, Answer, Place, asking, of_compare, of_stored
from cmtrack.cli.frame import bad_input, plain, terminal, warn, working
from cmtrack.cli.group import main

if TYPE_CHECKING:
    from cmtrack.base import BaseEvaluation
    from cmtrack.cli.frame import Step
    from cmtrack.evaluation import Evaluation
    from cmtrack.evaluation.threshold import Threshold


@main.command("show", cls=asking(of_compare, "experiment_names", "filter_string"))
@one_run
@of_stored
@click.option(
    "--card", is_flag=True, help="Print a section of Markdown for a model card and nothing else."
)
def show_command(run: str, place: Place, card: bool) -> Answer:
    """Print the evaluation that RUN holds.

    RUN is a run id, a logged model's id, a URI such as models:/name@champion, or a folder that `cmtrack evaluate
    --output` wrote.
    """
    if card and click.get_current_context().params["as_json"]:
        raise click.UsageError("--card and --json exclude each other")
    with working() as step:
        where, evaluation = held(step, run, place)
        from cmtrack.cli import summary

        section = evaluation.card() if card else ""
    shown = (
        partial(click.echo, section, nl=False)
        if card
        else partial(summary.print_evaluation, terminal(), evaluation)
    )
    return Answer(lambda: where | summary.as_data(evaluation), shown)


@main.command("price", cls=asking(of_compare, "experiment_names", "filter_string"))
@one_run
@click.option(
    "--costs",
    "costs_file",
    type=FILE,
    required=True,
    help="YAML or JSON file with what decisions cost, of classes or groups.",
)
@of_stored
def price_command(run: str, costs_file: Path, place: Place) -> Answer:
    """Print what the decisions of RUN cost.

    RUN is a run or a folder. Neither its data nor its model is needed, and nothing is written. The file holds
    `costs: [[actual, predicted, cost], ...]`, and optionally `default` (1) for other wrong pairs and
    `mismatch: {group: cost}` for wrong classes inside the right group.
    """
    with working() as step:
        where, evaluation = held(step, run, place, needs_rows=_of_dependent)
        from cmtrack.cli.reading import read_file
        from cmtrack.comparison.comparability import of_classes
        from cmtrack.grouping import Costs

        costs = read_file(Costs.from_file, costs_file)
        with bad_input(say=lambda text: f"{costs_file.name}: {text}"):
            priced = of_classes(evaluation).price(costs)
        frame = priced.costs_by_class().astype(object)
        by_class = [
            dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)
        ]
    parts = {
        part: {
            name: value
            for name, value in getattr(priced, part).items()
            if name in ("cost/mean", "cost/saved")
        }
        for part in ("metrics", "intervals", "undefined")
    }
    more = {"classes": by_class, "notes": list(priced.notes)}
    return Answer(
        lambda: where | {"costs": costs.to_dict()} | parts | more,
        lambda: _print_costs(priced, by_class),
    )


@main.command("threshold", cls=asking(of_compare, "experiment_names", "filter_string"))
@one_run
@click.option(
    "--costs",
    "costs_file",
    type=FILE,
    help="YAML or JSON file with what decisions cost: the threshold of least cost is chosen.",
)
@click.option(
    "--maximize",
    metavar="METRIC",
    help="Metric of the six counts to maximize, such as binary/recall.",
)
@click.option(
    "--subject-to", metavar="BOUND", help="Bound to keep, such as 'binary/precision >= 0.9'."
)
@click.option(
    "--calibration",
    metavar="RUN",
    help="Run or folder whose rows choose the threshold; those of RUN judge it.",
)
@of_stored
def threshold_command(
    run: str,
    costs_file: Path | None,
    maximize: str | None,
    subject_to: str | None,
    calibration: str | None,
    place: Place,
) -> Answer:
    """Choose the threshold of RUN by cost or by a metric.

    RUN is a run or a folder. Neither its data nor its model is needed, and nothing is written. Without --calibration
    the rows of RUN choose the threshold and judge it by cross-fitting.
    """
    with working() as step:
        where, evaluation = held(step, run, place, needs_rows=lambda _: False)
        other = None if calibration is None else held(step, calibration, place)[1]
        from cmtrack.cli.reading import read_file
        from cmtrack.comparison.comparability import of_classes
        from cmtrack.grouping import Costs

        costs = None if costs_file is None else read_file(Costs.from_file, costs_file)
        with bad_input():
            held_out = None if other is None else of_classes(other)
            chosen = of_classes(evaluation).threshold(
                costs, maximize=maximize, subject_to=subject_to, calibration=held_out
            )
    return Answer(lambda: where | chosen.to_dict(), lambda: _print_threshold(chosen))


def _of_segments(evaluation: BaseEvaluation) -> bool:
    segments = getattr(evaluation, "segments", None)
    return bool(segments and segments.note)


def held(
    step: Step,
    run: str,
    place: Place,
    *,
    needs_rows: Callable[[BaseEvaluation], bool] = _of_segments,
) -> tuple[dict[str, str], BaseEvaluation]:
    """The evaluation of a run or folder, its name, and its rows if needed (by default: by its segments) and kept."""
    if Path(run).exists():
        step("reading the folder", 0, 1)
        from cmtrack import archive
        from cmtrack.evaluation.loading import loads

        evaluation = loads(archive.read_file(Path(run)))
        return {"folder": run}, archive.with_rows(evaluation, Path(run)) if needs_rows(
            evaluation
        ) else evaluation
    step("reading the run", 0, 1)
    from cmtrack.tracking import load_evaluation
    from cmtrack.tracking.load import with_kept_predictions
    from cmtrack.tracking.runs import client_for, find
    from cmtrack.tracking.store import quiet, tracking_store

    with quiet(), tracking_store(place.tracking_uri):
        client = client_for()
        one = find(run, [client])
        prefix = one.logged_prefix(place.prefix)
        evaluation = load_evaluation(one, prefix=prefix)
        if needs_rows(evaluation):
            evaluation, problem = with_kept_predictions(evaluation, one, client, prefix)
            if problem:
                warn(f"{problem}; the run is shown without its rows")
        return {"run_id": one.run_id, "prefix": prefix}, evaluation


def _of_dependent(evaluation: BaseEvaluation) -> bool:
    """True if costs need the rows: they are clustered, or have sampling weights."""
    from cmtrack.evaluation import Evaluation
    from cmtrack.evaluation.threshold import has_independent_rows

    return isinstance(evaluation, Evaluation) and not has_independent_rows(evaluation)


def _print_costs(priced: Evaluation, by_class: list[dict[str, Any]]) -> None:
    from cmtrack.cli.summary import new_table, print_warnings
    from cmtrack.report import formatting as fmt
    from cmtrack.report import narrative

    console = terminal()
    for sentence in narrative.costs(priced):
        console.print(plain(sentence))
    heads = ("class", "samples", "mean cost", "standard error", "part of the cost of a decision")
    table = new_table("Costs by actual class", *heads)
    for row in sorted(by_class, key=lambda row: -row["part"]):
        numbers = (fmt.number(row[name]) for name in ("cost", "standard_error", "part"))
        table.add_row(plain(fmt.short(row["label"])), fmt.count(row["support"]), *numbers)
    console.print(table)
    print_warnings(console, priced.notes)


def _print_threshold(chosen: Threshold) -> None:
    from cmtrack.cli.summary import new_table, print_warnings
    from cmtrack.report import formatting as fmt

    console = terminal()
    console.print(plain(chosen.sentence()))
    title = "Outcomes" if chosen.separate else "Outcomes, cross-fitted"
    table = new_table(title, "outcome", "samples")
    names = (fmt.named(chosen.negative), fmt.named(chosen.positive))
    for part, actual, called, more in _OUTCOMES:
        n = getattr(chosen.held_out, part)
        if n > 0 or not more:
            table.add_row(
                plain(f"{names[actual]} called {names[called]}{more}"), fmt.count(round(n, 1))
            )
    console.print(table)
    print_warnings(console, chosen.warnings)


_OUTCOMES = (
    ("tp", True, True, ""),
    ("imp", True, True, ", wrong class"),
    ("fn", True, False, ""),
    ("fp", False, True, ""),
    ("tn", False, False, ""),
    ("imn", False, False, ", wrong class"),
)
"""Outcomes: actually positive, called positive, and an additional error."""
