"""``cmtrack compare``, and the options that all commands on several runs share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cmtrack.cli.frame import (
    BadInput,
    Function,
    Step,
    WorkFailed,
    echo,
    echo_json,
    first_line,
    plain_errors,
    terminal,
    working,
)

if TYPE_CHECKING:
    from cmtrack.comparison import Comparison
    from cmtrack.comparison.rule import Rule
    from cmtrack.grouping import Grouping

Parsed = TypeVar("Parsed")
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

experiment_option = click.option(
    "--experiment", "experiments", multiple=True, metavar="NAME", help="Take the runs of this experiment; repeatable."
)
filter_option = click.option(
    "--filter",
    "filter_string",
    default="",
    metavar="TEXT",
    help="Take only the runs that match this filter of MLflow, such as \"params.model = 'forest'\".",
)
require_option = click.option(
    "--require",
    multiple=True,
    metavar="GATE",
    help="Require this of every run, such as 'class/3/recall >= 0.6', 'prevalence/bias.abs <= 0.01', "
    "'binary/roc_auc.low > 0.8', 'multiclass/accuracy.difference.low > -0.01' or, of all segments, "
    "'segment/region/*/binary/recall.low >= 0.6'; a run that fails it is not ranked; repeatable.",
)
rank_by_option = click.option(
    "--rank-by",
    multiple=True,
    metavar="METRIC[=WEIGHT]",
    help="Rank by this metric, by default the Matthews correlation. Several make a Pareto front; with weights, a "
    "weighted sum in units of their standard errors.",
)
grouping_option = click.option(
    "--grouping", "grouping_file", type=FILE, help="Judge every run under the grouping of this YAML or JSON file."
)
positive_option = click.option("--positive", metavar="GROUP", help="Take this as the positive group of the grouping.")
costs_option = click.option(
    "--costs", "costs_file", type=FILE, help="Price every run by the costs of this YAML or JSON file (cost/mean)."
)
confidence_option = click.option(
    "--confidence-level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Use this confidence level for the intervals and the ties.",
)
prefix_option = click.option("--prefix", default="", help="Read the evaluations that were logged under this prefix.")
rule_option = click.option(
    "--rule",
    "rule_file",
    type=FILE,
    help="Decide by this YAML file (rank_by, require, margin and more), written before the results are seen; its "
    "digest is printed.",
)
metrics_option = click.option(
    "--metrics",
    "extra_metrics",
    multiple=True,
    metavar="FILE.py:NAME",
    help="Take metrics of your own from this file, or module: NAME is a Metric, or a list or dict of them. The file is "
    "executed, with all that you may do; repeatable.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.argument("runs", nargs=-1, metavar="[RUN]..."),
    experiment_option,
    filter_option,
    rank_by_option,
    require_option,
    click.option(
        "--tie-breaker",
        "tie_breakers",
        multiple=True,
        metavar="RULE",
        help="Choose among runs that may be the best, within the margin, by this: a metric, 'params.depth', "
        "'metrics.seconds asc' or 'tags.size desc'; repeatable.",
    ),
    click.option(
        "--margin",
        type=click.FloatRange(min=0),
        help="Largest loss for a tie-breaker, in units of the metric: it chooses among runs that are shown not to be "
        "worse than the best by more. By default it chooses among runs within one standard error of the leader.",
    ),
    grouping_option,
    positive_option,
    costs_option,
    click.option(
        "--segment",
        "segments",
        multiple=True,
        metavar="COLUMN",
        help="Compare the leader with the next runs by this column that the runs were evaluated by; repeatable.",
    ),
    click.option("--against", metavar="RUN", help="Take differences from this run or model URI."),
    click.option(
        "--block",
        metavar="NAME",
        help="Compare models over repeated runs, numbered by this, such as 'params.fold'.",
    ),
    click.option(
        "--model", metavar="NAME", help="Tell the models of repeated runs apart by this, such as 'params.model'."
    ),
    click.option(
        "--block-kind",
        type=click.Choice(["auto", "folds", "seeds", "datasets"]),
        default="auto",
        show_default=True,
        help="Treat the repeated runs as this kind.",
    ),
    rule_option,
    metrics_option,
    prefix_option,
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        default=50,
        show_default=True,
        help="Read and test at most this many runs of one data set, the best by their logged values.",
    ),
    confidence_option,
    click.option(
        "--tracking-uri",
        "tracking_uris",
        multiple=True,
        metavar="URI",
        help="Ask this tracking store, by default MLflow's own choice; repeatable.",
    ),
    click.option("--csv", "csv_file", type=click.Path(dir_okay=False, path_type=Path), help="Write a row per run."),
    json_option,
)


def one_run(function: Function) -> Function:
    """Give a command the argument RUN, and --latest in its place."""

    @plain_errors
    @functools.wraps(function)
    def wrapped(run: str | None, latest: bool, experiments: Sequence[str], filter_string: str, **options: Any) -> Any:
        if latest == (run is not None):
            raise click.UsageError("name a RUN, or take the newest with --latest")
        if not latest and (experiments or filter_string):
            raise click.UsageError("--experiment and --filter go with --latest")
        return function(run=_newest(experiments, filter_string, **options) if run is None else run, **options)

    latest = "Take the finished run with an evaluation that started last; --experiment and --filter choose among them."
    for option in (
        filter_option,
        experiment_option,
        click.option("--latest", is_flag=True, help=latest),
        click.argument("run", required=False),
    ):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[return-value]


def _newest(experiments: Sequence[str], filter_string: str, prefix: str, tracking_uri: str | None, **_: Any) -> str:
    """The id of the newest run, which is named on stderr."""
    with working() as step:
        step("looking for the newest run", 0, 0)
        from cmtrack.names import quoted
        from cmtrack.tracking.runs import client_for, newest
        from cmtrack.tracking.store import quiet, tracking_store

        check_prefix(prefix)
        with quiet(), tracking_store(tracking_uri):
            run = newest(client_for(), experiments, filter_string, prefix)
    when = datetime.fromtimestamp(run.start_time / 1000, UTC)
    echo(f"The newest run is {run.run_id}, {quoted(run.name)}, started {when:%Y-%m-%d %H:%M:%S} UTC.", err=True)
    return run.run_id


def comparison_options(function: Function) -> Function:
    """Give a command the options of a comparison."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def compared(
    step: Step,
    *,
    runs: Sequence[str],
    experiments: Sequence[str] = (),
    rank_by: Sequence[str] = (),
    grouping_file: Path | None = None,
    positive: str | None = None,
    costs_file: Path | None = None,
    segments: Sequence[str] = (),
    tracking_uris: Sequence[str] = (),
    rule: Rule | None = None,
    rule_file: Path | None = None,
    extra_metrics: Sequence[str] = (),
    **same: Any,
) -> Comparison:
    """The comparison that the options ask for; what they hold is checked before a store is asked.

    ``same`` are options that :class:`~cmtrack.comparison.CompareOptions` has by the same names.
    """
    if runs and same.get("filter_string") and not experiments:
        raise click.UsageError("--filter chooses among the runs of --experiment: leave it out for named runs")
    if same.get("block") is None and (same.get("model") is not None or same.get("block_kind", "auto") != "auto"):
        raise click.UsageError("--model and --block-kind go with --block")
    step("loading libraries", 0, 1)
    from cmtrack.cli.reading import read_costs_file, read_metrics, read_rule_file
    from cmtrack.comparison import CompareOptions
    from cmtrack.comparison.tie_breakers import NothingToDecideBy, TieBreaker
    from cmtrack.metrics.catalog import OPEN
    from cmtrack.tracking.comparing import compare_by
    from cmtrack.tracking.store import quiet, tracking_store

    grouping, group = read_grouping(grouping_file, positive)
    costs = None if costs_file is None else read_costs_file(costs_file)
    rule = read_rule_file(rule_file) if rule_file is not None else rule
    if rule is None:
        check_gates(same.get("require", ()), same.get("against"))
    for text in same.get("tie_breakers", ()):
        parsed(lambda given: TieBreaker.parse(given, OPEN), text)
    criterion = read_rank_by(rank_by)
    check_prefix(same.get("prefix", ""))
    with quiet(), tracking_store(tracking_uris[0] if len(tracking_uris) == 1 else None):
        given = {
            "experiment_names": list(experiments) or None,
            "rank_by": criterion,
            "grouping": grouping,
            "positive": group,
            "costs": costs,
            "segments": list(segments) or None,
            "tracking_uri": list(tracking_uris) or None,
            "rule": rule,
            "extra_metrics": read_metrics(extra_metrics),
        }
        options = parsed(lambda more: CompareOptions(**given, **more), same)
        try:
            comparison = compare_by(options, list(runs) or None, step)
            return replace(comparison, how=comparison.how | {"extra_metrics": list(extra_metrics)})
        except NothingToDecideBy as error:
            raise BadInput(f"--tie-breaker: {first_line(error)}") from None
        except ValueError as error:
            raise WorkFailed(f"{first_line(error)}{_named(runs, experiments, error)}") from None


def _named(runs: Sequence[str], experiments: Sequence[str], error: ValueError) -> str:
    """A hint where nothing was named and nothing was found."""
    from cmtrack.comparison.compare import NothingFound

    by_environment = {"MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"} & set(os.environ)
    if runs or experiments or by_environment or not isinstance(error, NothingFound):
        return ""
    return "; --experiment names an experiment"


def parsed(parse: Callable[[Any], Parsed], given: Any) -> Parsed:
    """The meaning of a text of the command line; an error is the user's."""
    try:
        return parse(given)
    except (TypeError, ValueError) as error:
        raise BadInput(first_line(error)) from None


def check_gates(require: Sequence[str], against: str | None) -> None:
    """Refuse gates that do not parse, or that need a baseline where there is none."""
    from cmtrack.metrics.gates import Gate

    gates = [parsed(Gate.parse, text) for text in require]
    if against is None and any(gate.difference for gate in gates):
        raise click.UsageError("a .difference gate needs --against, the run to take the difference from")


def check_prefix(prefix: str) -> None:
    """Refuse a prefix that no evaluation can have."""
    from cmtrack.tracking import names

    parsed(names.check_prefix, prefix)


def read_rank_by(given: Sequence[str]) -> str | list[str] | dict[str, float] | None:
    """One metric, several, or weights by metric."""
    if not given:
        return None
    from cmtrack.comparison.criterion import Criterion
    from cmtrack.metrics.catalog import OPEN

    weighted = [text for text in given if "=" in text]
    if not weighted:
        asked: Any = list(given) if len(given) > 1 else given[0]
    elif len(weighted) < len(given):
        plain = next(text for text in given if "=" not in text)
        raise BadInput(f"--rank-by: give every metric a weight or none, {plain!r} has none")
    else:
        asked = dict(map(_weight, weighted))
        if len(asked) < len(given):
            names = [_weight(text)[0] for text in weighted]
            twice = next(name for name in names if names.count(name) > 1)
            raise BadInput(f"--rank-by: give a metric one weight, {twice!r} has {names.count(twice)}")
    parsed(lambda given: Criterion.of(given, OPEN), asked)
    return asked  # type: ignore[no-any-return]


def _weight(text: str) -> tuple[str, float]:
    name, _, weight = text.rpartition("=")
    try:
        return name.strip(), float(weight)
    except ValueError:
        raise BadInput(f"--rank-by: expected the metric's weight after '=', got {text!r}") from None


def read_grouping(path: Path | None, positive: str | None) -> tuple[Grouping | None, Any]:
    """The grouping of a file, and the positive group by its name."""
    if path is None:
        if positive is not None:
            raise click.UsageError("--positive needs --grouping: without one, runs keep their positive group")
        return None, None
    from cmtrack.cli.reading import read_grouping_file

    grouping = read_grouping_file(path)
    if positive is None:
        return grouping, None
    two = [step for step in grouping.steps if len(step.labels) == 2]
    if not two:
        return grouping, positive  # the runs may have two classes
    found = [group for group in two[-1].labels if str(group) == positive]
    if not found:
        raise BadInput(f"--positive must be one of {list(map(str, two[-1].labels))}, got {positive!r}")
    return grouping, found[0]


def write_csv(comparison: Comparison, path: Path | None) -> None:
    """A row per run."""
    if path is None:
        return
    try:
        comparison.to_frame().to_csv(path, index=False)
    except OSError as error:
        raise WorkFailed(f"{path} cannot be written: {error.strerror or first_line(error)}") from None


@click.command("compare")
@comparison_options
@plain_errors
def compare_command(csv_file: Path | None, as_json: bool, **options: Any) -> None:
    """Rank evaluated runs, and say which differences are real.

    RUN is a run id or its first 8 characters, a logged model's id, or a model URI such as models:/name@champion. Runs
    that were judged on different data, or in different ways, get rankings of their own.

    Exit codes: 0 there is a ranking or every run was stopped by a gate, 1 the work failed (no such run, no server),
    2 wrong usage or bad input.
    """
    with working() as step:
        comparison = compared(step, **options)
        write_csv(comparison, csv_file)
        data = comparison.to_dict() if as_json else {}
    if as_json:
        echo_json(data)
        return
    from cmtrack.cli.comparison_table import print_comparison

    print_comparison(terminal(), comparison)
