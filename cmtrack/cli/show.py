"""``cmtrack show``: the evaluation that a run holds; ``cmtrack price``: what its decisions cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.frame import BadInput, echo_json, first_line, plain, plain_errors, terminal, working

if TYPE_CHECKING:
    from cmtrack.base import BaseEvaluation
    from cmtrack.cli.frame import Step
    from cmtrack.evaluation import Evaluation

_prefix = click.option("--prefix", default="", help="As it was logged, where a run holds several evaluations.")
_tracking_uri = click.option("--tracking-uri", metavar="URI", help="Tracking store; by default MLflow's own choice.")
_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


@click.command("show")
@click.argument("run")
@_prefix
@_tracking_uri
@_json
@plain_errors
def show_command(run: str, prefix: str, tracking_uri: str | None, as_json: bool) -> None:
    """Print the evaluation that RUN holds: a run id, a logged model's id, or a URI such as models:/name@champion."""
    with working() as step:
        run_id, prefix, evaluation = _held(step, run, prefix, tracking_uri)
        from cmtrack.cli import summary

        data = summary.as_data(evaluation)
    if as_json:
        echo_json({"run_id": run_id, "prefix": prefix} | data)
        return
    summary.print_evaluation(terminal(), evaluation)


@click.command("price")
@click.argument("run")
@click.option(
    "--costs",
    "costs_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="YAML or JSON file with what decisions cost, of classes or groups.",
)
@_prefix
@_tracking_uri
@_json
@plain_errors
def price_command(run: str, costs_file: Path, prefix: str, tracking_uri: str | None, as_json: bool) -> None:
    """Print what the decisions of RUN cost, without its data or model. Nothing is written.

    Costs are those of the file: `costs: [[actual, predicted, cost], ...]`, and maybe `default` (1) for other wrong
    pairs, and `mismatch: {group: cost}` for wrong classes inside the right group.
    """
    with working() as step:
        run_id, prefix, evaluation = _held(step, run, prefix, tracking_uri)
        from cmtrack.cli.reading import read_costs_file
        from cmtrack.comparison.comparability import of_classes

        costs = read_costs_file(costs_file)
        try:
            priced = of_classes(evaluation).price(costs)
        except (TypeError, ValueError) as error:
            raise BadInput(f"{costs_file.name}: {first_line(error)}") from None
        frame = priced.costs_by_class().astype(object)
        by_class = [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)]
    if as_json:
        names = ("cost/mean", "cost/saved")
        parts: dict[str, Any] = {
            part: {name: value for name, value in getattr(priced, part).items() if name in names}
            for part in ("metrics", "intervals", "undefined")
        }
        assert priced.costs is not None  # it was priced
        own = {"run_id": run_id, "prefix": prefix, "costs": priced.costs.to_dict()}
        echo_json(own | parts | {"classes": by_class, "notes": list(priced.notes)})
        return
    _print_costs(priced, by_class)


def _held(step: Step, run: str, prefix: str, tracking_uri: str | None) -> tuple[str, str, BaseEvaluation]:
    """The id of a run, the prefix that its evaluation was logged with, and the evaluation."""
    step("reading the run", 0, 1)
    from cmtrack.tracking import load_evaluation
    from cmtrack.tracking.runs import client_for, find
    from cmtrack.tracking.store import quiet, tracking_store

    with quiet(), tracking_store(tracking_uri):
        found = find(run, [client_for()])
        prefix = found.logged_prefix(prefix)
        return found.run_id, prefix, load_evaluation(found, prefix=prefix)


def _print_costs(priced: Evaluation, by_class: list[dict[str, Any]]) -> None:
    from rich.text import Text

    from cmtrack.cli.summary import new_table
    from cmtrack.report import formatting as fmt
    from cmtrack.report import narrative

    console = terminal()
    for sentence in narrative.costs(priced):
        console.print(plain(sentence))
    table = new_table("Costs by actual class")
    table.add_column("class", overflow="fold")
    for head in ("samples", "mean cost", "standard error", "part of the cost of a decision"):
        table.add_column(head, justify="right")
    for row in sorted(by_class, key=lambda row: -row["part"]):
        numbers = (fmt.number(row[name]) for name in ("cost", "standard_error", "part"))
        table.add_row(plain(fmt.short(row["label"])), fmt.count(row["support"]), *numbers)
    console.print(table)
    for note in priced.notes:
        console.print(Text.assemble(("Warning: ", "yellow"), note))
