"""``cmtrack demo``: models on a real survey, judged, tracked and ranked."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cmtrack.cli.frame import echo_json, plain_errors, working

if TYPE_CHECKING:
    from rich.table import Table

    from cmtrack.demo import DemoResult

_WIDE = 104  # columns of a terminal that has room for all of these; a narrower one gets the first
_SHOWN = {
    "reduced/party/accuracy": "accuracy\n3 parties",
    "multiclass/accuracy": "accuracy\n7 classes",
    "reduced/side/mismatch_rate": "IM\nrate",
    "binary/roc_auc": "ROC\nAUC",
}


@click.command("demo")
@click.option(
    "--directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("cmtrack-demo"),
    show_default=True,
    help="Folder for the tracking store and its artifacts; a second demo adds its runs.",
)
@click.option("--quick", is_flag=True, help="Three models instead of eight.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@plain_errors
def demo_command(directory: Path, quick: bool, as_json: bool) -> None:
    """Train, judge and track models on a real survey.

    The 1996 American National Election Study: which of seven party identifications, which party, and who is no
    democrat? Needs the extra cmtrack[demo].
    """
    with working() as step:
        step("loading libraries", 0, 1)
        from cmtrack.demo import run_demo

        result = run_demo(directory, quick=quick, progress=step)
    command = f"{_tool('mlflow')} ui --backend-store-uri {shlex.quote(_pasteable(result))}"
    if as_json:
        from cmtrack.demo.run import RANK_BY

        runs = [
            {"name": run.name, "run_id": run.run_id, "report": str(run.report), "metrics": run.evaluation.metrics}
            for run in result.runs
        ]
        echo_json({"tracking_uri": result.tracking_uri, "rank_by": RANK_BY, "mlflow_ui": command, "runs": runs})
        return
    _print(result, command)


def _pasteable(result: DemoResult) -> str:
    """The store's address; relative to the working directory where it lies below."""
    store = result.directory / "mlflow.db"
    relative = os.path.relpath(store)
    return result.tracking_uri if relative.startswith("..") else f"sqlite:///{Path(relative).as_posix()}"


def _print(result: DemoResult, command: str) -> None:
    from rich.console import Console
    from rich.text import Text

    from cmtrack.demo.run import RANK_BY

    console = Console()
    console.print(_ranking(result, list(_SHOWN) if console.width >= _WIDE else list(_SHOWN)[:1]))
    leader = result.runs[0]
    console.print(
        Text(
            f"Ranked by {RANK_BY}, the Matthews correlation of the question “who is no democrat?”, on the same "
            f"{leader.evaluation.n_samples:g} people, whom no model has seen."
        )
    )
    alike = result.like_the_leader
    if alike:
        text = (
            f"{_list(alike)} cannot be told from {leader.name}: the interval of the paired difference holds 0, so that "
            "on these people the order among them may be chance."
        )
    else:
        text = f"{leader.name} is ahead of every other model: no interval of a paired difference holds 0."
    console.print(Text(text[0].upper() + text[1:]))
    click.echo(f"\nReport of the leader:\n  {_shown(leader.report)}")
    show = f"{_tool('cmtrack')} show {leader.run_id} --tracking-uri {shlex.quote(_pasteable(result))}"
    click.echo(f"Its numbers on the terminal:\n  {show}")
    click.echo(f"All runs in the browser:\n  {command}")


def _ranking(result: DemoResult, shown: list[str]) -> Table:
    from cmtrack.cli.summary import cell, new_table
    from cmtrack.demo.run import RANK_BY

    table = new_table("Party identification, 1996: who is no democrat?")
    table.add_column("", justify="right")
    table.add_column("model", no_wrap=True)
    level = f"{100 * result.runs[0].evaluation.confidence_level:g} %"
    table.add_column(f"MCC\n\\[{level} interval]", no_wrap=True)
    table.add_column("paired difference\nfrom the first", no_wrap=True)
    for name in shown:
        table.add_column(_SHOWN[name], justify="right")
    for place, run in enumerate(result.runs, 1):
        metrics, ends = run.evaluation.metrics, run.evaluation.intervals
        others = (f"{metrics[name]:.3f}" for name in shown)
        gap = result.behind.get(run.name)
        behind = cell(gap.difference, (gap.low, gap.high)) if gap is not None and gap.low == gap.low else ""
        table.add_row(str(place), run.name, cell(metrics[RANK_BY], ends.get(RANK_BY)), behind, *others)
    return table


def _tool(name: str) -> str:
    """How to call a program of this environment from here: by its name where the shell finds that one."""
    own = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    if not own.exists() or (found is not None and Path(found).resolve() == own.resolve()):
        return name
    return shlex.quote(_shown(own))


def _list(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
