"""``cmtrack regroup``: evaluate past runs under another grouping."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.compare import (
    check_prefix,
    parsed,
    read_grouping,
)
from cmtrack.cli.flags import FILE, Answer, answering, asking, of_compare, tracking_uri_option
from cmtrack.cli.frame import Step, WorkFailed, echo, print_text, terminal, working
from cmtrack.cli.group import main

if TYPE_CHECKING:
    from rich.console import Console

    from cmtrack.cli.comparison_table import TerminalColumn
    from cmtrack.grouping import Grouping
    from cmtrack.tracking import RegroupedRun

_OTHER_QUESTION = (
    "The two numbers answer different questions about the same predictions. No run became better "
    "or worse."
)
_MOST_WARNINGS = 5
_SHOWN = ("binary/matthews_corrcoef", "binary/roc_auc", "prevalence/calibrated")


@main.command("regroup", cls=asking(of_compare, "experiment_names", "filter_string", "positive"))
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option(
    "--grouping",
    "grouping_file",
    type=FILE,
    required=True,
    help="YAML or JSON file with the new grouping.",
)
@click.option(
    "--prefix",
    metavar="TEXT",
    help="Prefix of the new metrics and files. By default the name of the last step and an "
    "underscore.",
)
@click.option(
    "--source-prefix",
    metavar="TEXT",
    default="",
    help="Prefix of the evaluations to regroup.",
)
@click.option(
    "--figures/--no-figures",
    default=None,
    callback=lambda context, option, value: "auto" if value is None else value,
    help="Draw the figures or not. By default they are drawn for up to 100 runs.",
)
@click.option("--force", is_flag=True, help="Also regroup runs that already have this grouping.")
@click.option("--dry-run", is_flag=True, help="Show the new numbers and write nothing.")
@tracking_uri_option
@answering
def regroup_command(
    runs: tuple[str, ...],
    experiment_names: tuple[str, ...] | None,
    filter_string: str,
    grouping_file: Path,
    positive: str | None,
    prefix: str | None,
    source_prefix: str,
    dry_run: bool,
    tracking_uri: str | None,
    **options: Any,
) -> Answer:
    """Evaluate past runs with a different grouping.

    The command needs neither data nor models. It adds the new numbers to the same runs under a
    prefix, and changes nothing else. `cmtrack compare --prefix PREFIX` then ranks the runs by the
    new numbers. After an interruption, run the same command again to continue.

    Exit codes: 0 runs were regrouped, 1 no run was regrouped or the work failed, 2 wrong usage or
    bad input.
    """
    experiments = experiment_names or ()
    if not runs and not experiments:
        raise click.UsageError("name runs, or an experiment with --experiment")
    if filter_string and not experiments:
        raise click.UsageError("--filter limits the runs of --experiment; give an experiment")
    with working() as step:
        step("loading libraries", 0, 1)
        from cmtrack.tracking.regroup import default_prefix, regroup_runs
        from cmtrack.tracking.store import quiet, tracking_store

        grouping, group = read_grouping(grouping_file, positive)
        if grouping is None:
            raise click.UsageError("give the new grouping with --grouping")
        if prefix is None:
            prefix = parsed(default_prefix, grouping)
        check_prefix(prefix)
        check_prefix(source_prefix)
        with quiet(), tracking_store(tracking_uri):
            chosen = _chosen(runs, experiments, filter_string, source_prefix, step)
            options |= {
                "prefix": prefix,
                "source_prefix": source_prefix,
                "dry_run": dry_run,
                "progress": step,
            }
            out = regroup_runs(chosen, grouping, positive=group, **options)
    data = {"prefix": prefix, "dry_run": dry_run, "runs": [vars(run) for run in out]}
    failed = None
    if all(run.status == "left out" for run in out):
        failed = WorkFailed("no run was regrouped")

    def show() -> None:
        _print(out, grouping, prefix)
        _print_command(out, experiments, prefix, tracking_uri)

    return Answer(lambda: data, show, failed)


def _chosen(
    names: Sequence[str],
    experiments: Sequence[str],
    filter_string: str,
    source_prefix: str,
    step: Step,
) -> list[Any]:
    """Return the named runs, and all evaluated runs in the experiments."""
    from cmtrack.comparison.compare import NO_RUN
    from cmtrack.tracking.runs import client_for, experiment_ids, find_all, search, shown_uri

    client = client_for()
    by_id = {run.run_id: run for run in find_all(names, lambda _: [client])}
    if experiments:
        ids = experiment_ids(client, experiments)
        found = search(
            client, ids, filter_string, progress=lambda done: step("listing runs", done, 0)
        )
        for run in found:
            by_id.setdefault(run.run_id, run)
    if not by_id:
        raise WorkFailed(NO_RUN.format(f" in {shown_uri(client)}"))
    return list(by_id.values())


def _print(out: Sequence[RegroupedRun], grouping: Grouping, prefix: str) -> None:
    """Print the results of the regrouped runs, the excluded runs, and warnings."""
    from cmtrack.cli.comparison_table import print_left_out, print_table

    console = terminal()
    done = [run for run in out if run.status != "left out"]
    left_out = [(run.name, run.reason) for run in out if run.status == "left out"]
    if done:
        title = f"Under the former grouping → under {grouping.name!r}"
        print_table(console, title, _columns(done), done)
        print_text(console, _OTHER_QUESTION)
    print_left_out(console, left_out, "Left out")
    _print_common_warnings(console, done)
    if done:
        print_text(console, _summarize(done, len(out), prefix))


def _print_common_warnings(console: Console, runs: Sequence[RegroupedRun]) -> None:
    """Print the most frequent warnings, and the number of affected runs if not all are affected."""
    from collections import Counter

    from rich.text import Text

    from cmtrack.cli.summary import print_warnings

    counts = Counter(warning for run in runs for warning in run.warnings)
    warnings = []
    for warning, n_runs in counts.most_common(_MOST_WARNINGS):
        if n_runs < len(runs):
            warning += f" ({n_runs} of {len(runs)} runs)"
        warnings.append(warning)
    print_warnings(console, warnings)
    if len(counts) > _MOST_WARNINGS:
        text = f"and {len(counts) - _MOST_WARNINGS} more warnings; --json lists them"
        console.print(Text(text, style="dim"))


def _summarize(done: Sequence[RegroupedRun], n_runs: int, prefix: str) -> str:
    """Return a sentence that gives the number of regrouped runs."""
    planned = any(run.status == "planned" for run in done)
    if planned:
        verb = "would be"
    elif len(done) == 1:
        verb = "was"
    else:
        verb = "were"
    noun = "run" if n_runs == 1 else "runs"
    text = f"{len(done)} of {n_runs} {noun} {verb} regrouped under the prefix {prefix!r}"
    if planned:
        return f"{text}; nothing was written."
    earlier = sum(run.already_done for run in done)
    if earlier:
        return f"{text}. {earlier} already had this grouping; --force regroups them again."
    return f"{text}."


def _print_command(
    out: Sequence[RegroupedRun], experiments: Sequence[str], prefix: str, tracking_uri: str | None
) -> None:
    """Print the command that ranks the runs by their new numbers, if new numbers were written."""
    import shlex

    written = [run.run_id for run in out if run.status not in ("left out", "planned")]
    if not written:
        return
    command = ["cmtrack", "compare"]
    if not experiments:
        command += written
    for experiment in experiments:
        command += ["--experiment", experiment]
    command += ["--prefix", prefix]
    if tracking_uri is not None:
        command += ["--tracking-uri", tracking_uri]
    echo(f"To rank the runs by the new numbers:\n  {shlex.join(command)}")


def _columns(runs: Sequence[RegroupedRun]) -> list[TerminalColumn]:
    """Return the columns of the table: the run, and each number before and after regrouping."""
    from cmtrack.cli.comparison_table import ALWAYS, TerminalColumn
    from cmtrack.evaluation.catalog import lookup
    from cmtrack.report import formatting as fmt

    def as_text(value: float | None) -> str:
        return "–" if value is None else fmt.number(value)

    def shift(
        key: str, head: str, keep: int, value: Callable[[dict[str, float]], float | None]
    ) -> TerminalColumn:
        return TerminalColumn(
            key,
            head,
            lambda run: f"{as_text(value(run.before))} → {as_text(value(run.after))}",
            keep,
        )

    metrics = [
        shift(name, lookup(name).heading(brief=True), 50, methodcaller("get", name))
        for name in _SHOWN
        if any(name in run.before or name in run.after for run in runs)
    ]
    return [
        TerminalColumn("name", "run", lambda run: str(run.name), ALWAYS, folds=True),
        shift("accuracy", "accuracy\nof the groups", 60, partial(_last, name="accuracy")),
        *metrics,
        shift("mismatch_rate", "mismatch\nrate", 40, partial(_last, name="mismatch_rate")),
    ]


def _last(metrics: dict[str, float], name: str) -> float | None:
    """Return a metric for the last step of a grouping."""
    found = None
    for key, value in metrics.items():
        if key.startswith("reduced/") and key.endswith(f"/{name}"):
            found = value
    return found
