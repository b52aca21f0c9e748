"""``cmtrack show``, ``price`` and ``threshold``, which read a stored evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.flags import FILE, Answer
from cmtrack.cli.frame import bad_input, print_text, terminal
from cmtrack.cli.stored import Store, of_stored, print_table, run_command

if TYPE_CHECKING:
    from cmtrack.base import BaseEvaluation
    from cmtrack.evaluation import Evaluation
    from cmtrack.evaluation.threshold import Threshold


@run_command("show")
@of_stored
@click.option("--card", is_flag=True, help="Print only a Markdown section for a model card.")
def show_command(run: str, store: Store, card: bool) -> Answer:
    """Print the evaluation of RUN.

    RUN is a run id, a logged model's id, a URI such as models:/name@champion, or a folder that
    `cmtrack evaluate --output` wrote.
    """
    if card and click.get_current_context().params["as_json"]:
        raise click.UsageError("give --card or --json, not both")
    where, evaluation = store.load(run, _needs_rows_for_segments)
    from cmtrack.cli import summary

    if card:
        section = evaluation.card()
        return Answer(dict, lambda: click.echo(section, nl=False))
    return Answer(
        lambda: where | summary.as_data(evaluation),
        lambda: summary.print_evaluation(terminal(), evaluation),
    )


@run_command("price")
@click.option(
    "--costs",
    "costs_file",
    type=FILE,
    required=True,
    help="YAML or JSON file with the costs of decisions, by class or by group.",
)
@of_stored
def price_command(run: str, costs_file: Path, store: Store) -> Answer:
    """Print what the decisions of RUN cost.

    RUN is a run or a folder. The command needs neither the data nor the model, and writes nothing.
    The --costs file must contain `costs: [[actual, predicted, cost], ...]`. The file may also
    contain `default`, the cost of all other errors (1 if omitted), and `mismatch: {group: cost}`,
    the cost of another class of the correct group.
    """
    where, evaluation = store.load(run, _has_dependent_rows)
    from cmtrack.cli.reading import read_file
    from cmtrack.comparison.comparability import of_classes
    from cmtrack.grouping import Costs

    costs = read_file(Costs.from_file, costs_file)
    with bad_input(say=lambda text: f"{costs_file.name}: {text}"):
        priced = of_classes(evaluation).price(costs)
    by_class = priced.costs_by_class().astype(object).to_dict("records")

    def as_data() -> dict[str, Any]:
        return {
            **where,
            "costs": costs.to_dict(),
            "metrics": _of_costs(priced.metrics),
            "intervals": _of_costs(priced.intervals),
            "undefined": _of_costs(priced.undefined),
            "classes": by_class,
            "notes": list(priced.notes),
        }

    return Answer(as_data, lambda: _print_costs(priced, by_class))


def _of_costs(by_metric: Mapping[str, Any]) -> dict[str, Any]:
    return {name: by_metric[name] for name in by_metric if name in ("cost/mean", "cost/saved")}


@run_command("threshold")
@click.option(
    "--costs",
    "costs_file",
    type=FILE,
    help="YAML or JSON file with the costs of decisions, by class or by group. The threshold with "
    "the lowest cost is chosen.",
)
@click.option(
    "--maximize",
    metavar="METRIC",
    help="Metric to maximize, such as binary/recall. It must depend only on counts.",
)
@click.option(
    "--subject-to",
    metavar="BOUND",
    help="Bound on a metric that the threshold must meet, such as 'binary/precision >= 0.9'.",
)
@click.option(
    "--choose-on",
    metavar="RUN",
    help=(
        "Run or folder with the rows on which the threshold is chosen. The threshold is then "
        "evaluated on the rows of RUN."
    ),
)
@of_stored
def threshold_command(
    run: str,
    costs_file: Path | None,
    maximize: str | None,
    subject_to: str | None,
    choose_on: str | None,
    store: Store,
) -> Answer:
    """Choose the threshold of RUN by cost or by a metric.

    RUN is a run or a folder. The command needs neither the data nor the model, and writes nothing.
    Without --choose-on, the threshold is both chosen and evaluated on the rows of RUN, by
    cross-fitting.
    """
    where, evaluation = store.load(run)
    other = None
    if choose_on is not None:
        _, other = store.load(choose_on)
    from cmtrack.cli.reading import read_file
    from cmtrack.comparison.comparability import of_classes
    from cmtrack.grouping import Costs

    costs = None
    if costs_file is not None:
        costs = read_file(Costs.from_file, costs_file)
    with bad_input():
        chosen = of_classes(evaluation).threshold(
            costs,
            maximize=maximize,
            subject_to=subject_to,
            calibration=None if other is None else of_classes(other),
        )
    return Answer(lambda: where | chosen.to_dict(), lambda: _print_threshold(chosen))


def _needs_rows_for_segments(evaluation: BaseEvaluation) -> bool:
    """Return whether the rows are needed to count the segments."""
    segments = getattr(evaluation, "segments", None)
    return bool(segments and segments.note)


def _has_dependent_rows(evaluation: BaseEvaluation) -> bool:
    """Return whether costs need the rows because the data contain clusters or sampling weights."""
    from cmtrack.evaluation import Evaluation
    from cmtrack.evaluation.threshold import has_independent_rows

    return isinstance(evaluation, Evaluation) and not has_independent_rows(evaluation)


def _print_costs(priced: Evaluation, by_class: list[dict[Any, Any]]) -> None:
    from cmtrack.report import formatting as fmt
    from cmtrack.report import narrative

    for sentence in narrative.costs(priced):
        print_text(terminal(), sentence)
    rows = []
    for row in sorted(by_class, key=lambda row: -row["part"]):
        numbers = (fmt.number(row[name]) for name in ("cost", "standard_error", "part"))
        rows.append((fmt.short(row["label"]), fmt.count(row["support"]), *numbers))
    heads = ("class", "rows", "mean cost", "standard error", "part of the cost of a decision")
    print_table("Costs by actual class", heads, rows, notes=priced.notes)


def _print_threshold(chosen: Threshold) -> None:
    from cmtrack.report import formatting as fmt

    print_text(terminal(), chosen.sentence())
    names = {"negative": fmt.named(chosen.negative), "positive": fmt.named(chosen.positive)}
    rows = []
    for count, actual, predicted, error in _OUTCOMES:
        n = getattr(chosen.held_out, count)
        # Only a grouping has mismatches.
        if n > 0 or not error:
            outcome = f"{names[actual]} predicted {names[predicted]}{error}"
            rows.append((outcome, fmt.count(round(n, 1))))
    title = "Outcomes" if chosen.separate else "Outcomes, cross-fitted"
    print_table(title, ("outcome", "rows"), rows, notes=chosen.warnings)


_OUTCOMES = (
    ("tp", "positive", "positive", ""),
    ("imp", "positive", "positive", ", but another class"),
    ("fn", "positive", "negative", ""),
    ("fp", "negative", "positive", ""),
    ("tn", "negative", "negative", ""),
    ("imn", "negative", "negative", ", but another class"),
)
"""For each count: its actual side, its predicted side, and one additional error."""
