"""``cmtrack compare``, and the options shared by all commands that compare runs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cmtrack.cli.flags import NEW_FILE, Answer, answering, asking, check_goes_with, of_compare
from cmtrack.cli.frame import (
    BadInput,
    Function,
    Step,
    WorkFailed,
    bad_input,
    echo,
    first_line,
    terminal,
    working,
    writing,
)
from cmtrack.cli.group import main
from cmtrack.untrusted import one_line

if TYPE_CHECKING:
    from cmtrack.comparison import Comparison, History
    from cmtrack.comparison.rule import Rule
    from cmtrack.grouping import Grouping

Parsed = TypeVar("Parsed")
verbose_option = click.option(
    "--verbose",
    is_flag=True,
    help="Also print the evidence, the notes and the meaning of each status.",
)


def one_run(function: Function) -> Function:
    """Add the argument RUN and the option --latest to a command."""

    @functools.wraps(function)
    def wrapped(
        run: str | None,
        latest: bool,
        experiment_names: Sequence[str] | None,
        filter_string: str,
        **options: Any,
    ) -> Any:
        if latest == (run is not None):
            raise click.UsageError("name a RUN, or use --latest for the newest one")
        if not latest and (experiment_names or filter_string):
            raise click.UsageError("--experiment and --filter need --latest")
        if run is None:
            run = _newest(experiment_names or (), filter_string, **options)
        return function(run=run, **options)

    latest = click.option(
        "--latest",
        is_flag=True,
        help="Use the newest finished run that has an evaluation. --experiment and --filter limit "
        "the runs.",
    )
    return click.argument("run", required=False)(latest(wrapped))  # type: ignore[return-value]


def _newest(
    experiments: Sequence[str], filter_string: str, prefix: str, tracking_uri: str | None, **_: Any
) -> str:
    """Return the id of the newest run, and print the run's name on stderr."""
    with working() as step:
        step("looking for the newest run", 0, 0)
        from cmtrack.names import quoted
        from cmtrack.tracking.runs import client_for, newest
        from cmtrack.tracking.store import quiet, tracking_store

        check_prefix(prefix)
        with quiet(), tracking_store(tracking_uri):
            run = newest(client_for(), experiments, filter_string, prefix)
    when = datetime.fromtimestamp(run.start_time / 1000, UTC)
    echo(
        f"The newest run is {run.run_id}, {quoted(run.name)}, started {when:%Y-%m-%d %H:%M:%S} "
        f"UTC.",
        err=True,
    )
    return run.run_id


def comparison_command(name: str) -> Callable[[Callable[..., Answer]], click.Command]:
    """Return a decorator that creates a command with the options of a comparison."""

    def made(function: Callable[..., Answer]) -> click.Command:
        csv = click.option(
            "--csv", "csv_file", type=NEW_FILE, help="Write a CSV file with one row for each run."
        )
        with_csv = click.argument("runs", nargs=-1, metavar="[RUN]...")(csv(answering(function)))
        return main.command(name, cls=asking(of_compare))(with_csv)

    return made


def compared(
    step: Step, *, runs: Sequence[str], rule: Rule | Path | None = None, **options: Any
) -> Comparison:
    """Compare runs; validate all options before the first request to a store.

    ``options`` are the fields of :class:`~cmtrack.comparison.spec.CompareSpec` as they appear on
    the command line: a file is a path, and a custom metric is FILE.py:NAME.
    """
    experiments: Sequence[str] = options.get("experiment_names") or ()
    _check_selection(runs, experiments, options)
    step("loading libraries", 0, 1)
    from cmtrack.comparison import CompareOptions
    from cmtrack.comparison.tie_breakers import NothingToDecideBy
    from cmtrack.tracking.comparing import compare_by

    grouping, positive = read_grouping(options.get("grouping"), options.get("positive"))
    objects = _read_objects(rule, options) | {"grouping": grouping, "positive": positive}
    metric_files = options.get("extra_metrics", ())
    check_prefix(options.get("prefix", ""))
    with in_store_of(options):
        question = parsed(lambda given: CompareOptions(**given), options | objects)
        try:
            comparison = compare_by(question, list(runs) or None, step)
            # The review prints a command that repeats it. The command names the files of metrics.
            how = comparison.how | {"extra_metrics": list(metric_files)}
            return replace(comparison, how=how)
        except NothingToDecideBy as error:
            raise BadInput(f"--tie-breaker: {first_line(error)}") from None
        except ValueError as error:
            hint = "" if runs or experiments else _hint(error)
            raise WorkFailed(f"{first_line(error)}{hint}") from None


def compared_files(
    step: Step,
    columns: Mapping[str, str | None],
    *,
    runs: Sequence[str],
    rule: Rule | Path | None = None,
    **options: Any,
) -> Comparison:
    """Compare models whose predictions are in files.

    ``columns``: names of columns by argument of :func:`cmtrack.compare_tables`.
    ``runs``: the files.
    ``options``: as in :func:`compared`.
    """
    for flag, name in _OF_STORED_RUNS.items():
        if options.pop(name, None) not in (None, "", (), "auto"):
            raise click.UsageError(f"{flag} is for runs in a store, and --y-true is for files")
    if not runs:
        raise click.UsageError("--y-true needs files with predictions, got none")
    step("loading libraries", 0, 1)
    from cmtrack.cli import reading
    from cmtrack.comparison.tables import compare_tables
    from cmtrack.comparison.tie_breakers import NothingToDecideBy

    objects = _read_objects(rule, options)
    grouping_file = options.pop("grouping", None)
    positive = options.pop("positive", None)
    if grouping_file is not None:
        objects["grouping"], positive = read_grouping(grouping_file, positive)
    elif positive is not None:
        first = reading.read_columns(Path(runs[0]), [str(columns["y_true"])])
        positive = reading.label_reader(first.iloc[:, 0], str(columns["y_true"]))(positive)
    segments = reading.divisions(options.pop("segments", None) or (), ())
    given = {"positive": positive, "segments": segments, **columns, **options, **objects}
    stated = {name: value for name, value in given.items() if value not in (None, (), [])}
    step("reading and comparing", 0, 1)
    with bad_input(OSError, TypeError):
        try:
            return compare_tables(list(runs), **stated)
        except NothingToDecideBy as error:
            raise BadInput(f"--tie-breaker: {first_line(error)}") from None


_OF_STORED_RUNS = {
    "--experiment": "experiment_names",
    "--filter": "filter_string",
    "--prefix": "prefix",
    "--tracking-uri": "tracking_uri",
    "--block": "block",
    "--model": "model",
    "--block-kind": "block_kind",
}
"""Flags that do not apply to files, with their fields."""


def _read_objects(rule: Rule | Path | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that name files or must be parsed; raise an error if one is invalid."""
    from cmtrack.cli.reading import read_file, read_metrics
    from cmtrack.comparison.rule import Rule
    from cmtrack.comparison.tie_breakers import TieBreaker
    from cmtrack.evaluation.catalog import OPEN
    from cmtrack.grouping import Costs

    costs = None if options.get("costs") is None else read_file(Costs.from_file, options["costs"])
    if isinstance(rule, Path):
        rule = read_file(Rule.from_file, rule)
    if rule is None:
        check_gates(options.get("require", ()), options.get("against"))
    for text in options.get("tie_breakers", ()):
        parsed(lambda tie_breaker: TieBreaker.parse(tie_breaker, OPEN), text)
    return {
        "rank_by": read_rank_by(options.get("rank_by") or ()),
        "costs": costs,
        "rule": rule,
        "extra_metrics": read_metrics(options.get("extra_metrics", ())),
    }


def _check_selection(
    runs: Sequence[str], experiments: Sequence[str], options: Mapping[str, Any]
) -> None:
    """Refuse options that require another option if that option is missing."""
    if runs and options.get("filter_string") and not experiments:
        raise click.UsageError(
            "--filter limits the runs of --experiment; leave it out if you name runs"
        )
    names_models = options.get("model") is not None or options.get("block_kind", "auto") != "auto"
    if names_models and options.get("block") is None:
        raise click.UsageError("--model and --block-kind need --block")


@contextmanager
def in_store_of(options: Mapping[str, Any]) -> Iterator[None]:
    """Use the only store named in the options, or MLflow's default store; suppress its output."""
    from cmtrack.tracking.store import quiet, tracking_store

    stores: Sequence[str] = options.get("tracking_uri") or ()
    with quiet(), tracking_store(stores[0] if len(stores) == 1 else None):
        yield


def _hint(error: ValueError) -> str:
    """Return a hint if no run was found and the environment does not name an experiment."""
    from cmtrack.comparison.compare import NothingFound

    by_environment = {"MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"} & set(os.environ)
    if by_environment or not isinstance(error, NothingFound):
        return ""
    return "; use --experiment to name an experiment"


def parsed(parse: Callable[[Any], Parsed], given: Any) -> Parsed:
    """Parse text from the command line, and turn errors into usage errors."""
    with bad_input():
        return parse(given)


def check_gates(require: Sequence[str], against: str | None) -> None:
    """Check that each gate can be parsed, and that a baseline is given if a gate needs it."""
    from cmtrack.evaluation.gates import Gate

    gates = [parsed(Gate.parse, text) for text in require]
    if against is None and any(gate.against for gate in gates):
        raise click.UsageError(
            "a gate on flips or on a .difference needs a baseline: give --against"
        )


def check_prefix(prefix: str) -> None:
    """Raise a usage error if a prefix is invalid."""
    from cmtrack.tracking import names

    parsed(names.check_prefix, prefix)


def read_rank_by(metrics: Sequence[str]) -> str | list[str] | None:
    """Return a single metric as text, or several metrics as a list; None if no metric is given."""
    if not metrics:
        return None
    from cmtrack.comparison.criterion import Criterion
    from cmtrack.evaluation.catalog import OPEN
    from cmtrack.removed import WEIGHTS, reason

    if any("=" in text for text in metrics):
        raise BadInput(f"--rank-by: {reason(WEIGHTS)}")
    rank_by = list(metrics) if len(metrics) > 1 else metrics[0]
    parsed(lambda names: Criterion.of(names, OPEN), rank_by)
    return rank_by


def read_grouping(path: Path | None, positive: str | None) -> tuple[Grouping | None, Any]:
    """Read a grouping from a file, and look up the positive group by name."""
    if path is None:
        if positive is not None:
            raise click.UsageError(
                "--positive needs --grouping; without a grouping, runs keep their positive group"
            )
        return None, None
    from cmtrack.cli.reading import read_file, two_groups
    from cmtrack.grouping import Grouping

    grouping = read_file(Grouping.from_file, path)
    groups = two_groups(grouping)
    if positive is not None and groups and positive not in groups:
        raise BadInput(f"--positive must be one of {list(groups)}, got {positive!r}")
    # Without two groups, the runs themselves may have two classes.
    return grouping, groups.get(positive, positive)


def write_csv(result: Comparison | History, path: Path | None) -> None:
    """Write a result's frame as a CSV file, in which no name can run as a spreadsheet formula."""
    if path is not None:
        with writing(path):
            result.to_frame().map(_for_a_spreadsheet).to_csv(path, index=False)


def _for_a_spreadsheet(value: Any) -> Any:
    """Return a cell of a CSV file; put an apostrophe before text that looks like a formula."""
    if not isinstance(value, str):
        return value
    text = one_line(value)
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def _check_no_file(runs: Sequence[str]) -> None:
    """Refuse files of predictions whose column of labels is not named."""
    for run in runs:
        if Path(run).suffix.lower() in (".parquet", ".pq", ".csv", ".tsv") and Path(run).is_file():
            raise click.UsageError(
                f"{run!r} is a file: --y-true COLUMN compares files of predictions"
            )


_COLUMNS = {
    "y_true": click.option(
        "--y-true",
        metavar="COLUMN",
        help="Compare files of predictions instead of runs, without MLflow. This is their column "
        "of actual labels.",
    ),
    "y_pred": click.option(
        "--y-pred",
        metavar="COLUMN",
        help="Column of predicted labels in the files. {model} stands for the names of models "
        "whose predictions are in one file.",
    ),
    "y_prob": click.option(
        "--y-prob",
        metavar="'p_*'|COLUMN",
        help="Columns of probabilities in the files, in which * stands for the label.",
    ),
    "y_score": click.option(
        "--y-score",
        metavar="'d_*'|COLUMN",
        help="Columns of decision values in the files, instead of probabilities.",
    ),
    "sample_weight": click.option(
        "--weight",
        "sample_weight",
        metavar="COLUMN",
        help="Column of sample weights in the files.",
    ),
    "groups": click.option("--groups", metavar="COLUMN", help="Column of clusters in the files."),
    "row_ids": click.option(
        "--row-ids",
        metavar="COLUMN",
        help="Column of row ids, by which the rows of the files are paired. By default, all files "
        "must have the same rows in the same order.",
    ),
}
"""The options for files of predictions, by argument of :func:`cmtrack.compare_tables`."""


def with_columns(function: Function) -> Function:
    """Add the options for files of predictions to a command."""
    for option in reversed(_COLUMNS.values()):
        function = option(function)
    return function


@comparison_command("compare")
@with_columns
@verbose_option
def compare_command(csv_file: Path | None, verbose: bool, **options: Any) -> Answer:
    """Rank runs and report which differences are significant.

    RUN is a run id or its first 8 characters, a unique run name, a logged model's id, or a model
    URI such as models:/name@champion. Runs that were evaluated on different data or in different
    ways are ranked separately.

    With --y-true, each RUN is a file with the predictions of one model, and no store is needed.

    Exit codes: 0 runs were ranked, or a gate stopped every run; 1 the work failed (no such run, no
    server); 2 wrong usage or bad input.
    """
    columns = {name: options.pop(name) for name in _COLUMNS}
    if columns["y_true"] is None:
        check_goes_with("--y-true", False, **columns)
        _check_no_file(options["runs"])
    with working() as step:
        if columns["y_true"] is None:
            comparison = compared(step, **options)
        else:
            comparison = compared_files(step, columns, **options)
        write_csv(comparison, csv_file)
    from cmtrack.cli.comparison_table import print_comparison

    return Answer(comparison.to_dict, lambda: print_comparison(terminal(), comparison, verbose))
