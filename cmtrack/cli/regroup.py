"""``cmtrack regroup``: past runs under another grouping."""

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
from cmtrack.cli.frame import Step, WorkFailed, echo, plain, terminal, working
from cmtrack.cli.group import main

if TYPE_CHECKING:
    from cmtrack.cli.comparison_table import TerminalColumn
    from cmtrack.grouping import Grouping
    from cmtrack.tracking import RegroupedRun

_OTHER_QUESTION = "The two numbers answer different questions about the same predictions: no run got better or worse."
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
    help="Prefix of new metrics and files; by default the last step's name and an underscore.",
)
@click.option(
    "--source-prefix",
    default="",
    help="Prefix that the evaluations to start from were logged under.",
)
@click.option(
    "--figures/--no-figures",
    default=None,
    callback=lambda context, option, value: "auto" if value is None else value,
    help="Draw the figures, too; by default for up to 100 runs.",
)
@click.option(
    "--force", is_flag=True, help="Regroup also the runs that hold this regrouping already."
)
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
    """Judge past runs under another grouping.

    Neither data nor models are needed. The new numbers go into the same runs under a prefix; the runs are not changed
    otherwise. Afterwards `cmtrack compare --prefix PREFIX` ranks by them. After an interruption the same command goes
    on where it stopped.

    Exit codes: 0 runs were regrouped, 1 every run was left out or the work failed, 2 wrong usage or bad input.
    """
    experiments = experiment_names or ()
    if not runs and not experiments:
        raise click.UsageError("name runs, or an experiment with --experiment")
    if filter_string and not experiments:
        raise click.UsageError("--filter chooses among the runs of --experiment: name one")
    with working() as step:
        step("loading libraries", 0, 1)
        from cmtrack.tracking.regroup import default_prefix, regroup_runs
        from cmtrack.tracking.store import quiet, tracking_store

        grouping, group = read_grouping(grouping_file, positive)
        assert grouping is not None  # the option is required
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
    failed = (
        WorkFailed("no run was regrouped") if all(run.status == "left out" for run in out) else None
    )
    return Answer(
        lambda: data, lambda: _print(out, grouping, prefix, experiments, tracking_uri), failed
    )


def _chosen(
    names: Sequence[str],
    experiments: Sequence[str],
    filter_string: str,
    source_prefix: str,
    step: Step,
) -> list[Any]:
    """The named runs, and all runs of the experiments that hold an evaluation."""
    from cmtrack.comparison.compare import NO_RUN
    from cmtrack.tracking.runs import client_for, experiment_ids, find_all, search, shown_uri

    client = client_for()
    by_id = {run.run_id: run for run in find_all(names, lambda _: [client])}
    if experiments:
        ids = experiment_ids(client, experiments)
        for run in search(
            client, ids, filter_string, progress=lambda done: step("listing runs", done, 0)
        ):
            by_id.setdefault(run.run_id, run)
    if not by_id:
        raise WorkFailed(NO_RUN.format(f" in {shown_uri(client)}"))
    return list(by_id.values())


def _print(
    out: Sequence[RegroupedRun],
    grouping: Grouping,
    prefix: str,
    experiments: Sequence[str],
    tracking_uri: str | None,
) -> None:
    import shlex
    from collections import Counter

    from rich.text import Text

    from cmtrack.cli.comparison_table import print_left_out, print_table
    from cmtrack.cli.summary import print_warnings

    console = terminal()
    done = [run for run in out if run.status != "left out"]
    planned = any(run.status == "planned" for run in done)
    if done:
        print_table(
            console, f"Under the former grouping → under {grouping.name!r}", _columns(done), done
        )
        console.print(plain(_OTHER_QUESTION))
    print_left_out(
        console, [(run.name, run.reason) for run in out if run.status == "left out"], "Left out"
    )
    counts = Counter(warning for run in done for warning in run.warnings)
    of = {
        warning: "" if n == len(done) else f" ({n} of {len(done)} runs)"
        for warning, n in counts.items()
    }
    print_warnings(console, (f"{warning}{of[warning]}" for warning, _ in counts.most_common(5)))
    if len(counts) > 5:
        console.print(Text(f"and {len(counts) - 5} more warnings: --json lists them", style="dim"))
    if not done:
        return
    verb = "would be" if planned else "were" if len(done) != 1 else "was"
    noun = "run" if len(out) == 1 else "runs"
    text = f"{len(done)} of {len(out)} {noun} {verb} regrouped under the prefix {prefix!r}"
    earlier = sum(run.already_done for run in done)
    more = f" {earlier} of them earlier: --force regroups them again." if earlier else ""
    console.print(plain(f"{text}; nothing was written." if planned else f"{text}.{more}"))
    if not planned:
        command = ["cmtrack", "compare", *([] if experiments else [run.run_id for run in done])]
        flags = [*(("--experiment", name) for name in experiments), ("--prefix", prefix)]
        flags += [] if tracking_uri is None else [("--tracking-uri", tracking_uri)]
        command += [part for flag in flags for part in flag]
        echo(f"To rank by it:\n  {shlex.join(command)}")


def _columns(runs: Sequence[RegroupedRun]) -> list[TerminalColumn]:
    from cmtrack.cli.comparison_table import ALWAYS, TerminalColumn
    from cmtrack.evaluation.catalog import lookup
    from cmtrack.report import formatting as fmt

    def shift(before: float | None, after: float | None) -> str:
        return " → ".join("–" if value is None else fmt.number(value) for value in (before, after))

    def moved(
        key: str, head: str, keep: int, value: Callable[[dict[str, float]], float | None]
    ) -> TerminalColumn:
        return TerminalColumn(
            key, head, lambda run: shift(value(run.before), value(run.after)), keep
        )

    shown = [
        name for name in _SHOWN if any(name in run.before or name in run.after for run in runs)
    ]
    accuracy = partial(_last, name="accuracy")
    mismatches = partial(_last, name="mismatch_rate")
    return [
        TerminalColumn("name", "run", lambda run: str(run.name), ALWAYS, folds=True),
        moved("accuracy", "accuracy\nof the groups", 60, accuracy),
        *(
            moved(name, lookup(name).heading(brief=True), 50, methodcaller("get", name))
            for name in shown
        ),
        moved("mismatch_rate", "mismatch\nrate", 40, mismatches),
    ]


def _last(metrics: dict[str, float], name: str) -> float | None:
    """A metric of the last step of a grouping."""
    values = [
        value
        for key, value in metrics.items()
        if key.startswith("reduced/") and key.endswith(f"/{name}")
    ]
    return values[-1] if values else None
