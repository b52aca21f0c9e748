"""``cmtrack demo``: train, evaluate, track and rank models on data from a real survey."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cmtrack.cli.flags import FOLDER, Answer, answering
from cmtrack.cli.frame import echo, plain, terminal, working
from cmtrack.cli.group import main

if TYPE_CHECKING:
    from cmtrack.demo import DemoResult


@main.command("demo")
@click.option(
    "--output",
    type=FOLDER,
    default=Path("cmtrack-demo"),
    show_default=True,
    help="Folder for the tracking store and its artifacts. A second demo adds its runs to it.",
)
@click.option("--quick", is_flag=True, help="Train three models instead of eight.")
@answering
def demo_command(output: Path, quick: bool) -> Answer:
    """Train, evaluate, track and compare models on a real survey.

    The survey is the 1996 American National Election Study. The models predict party identification
    in seven classes, and these classes are also grouped by party. The demo needs the extra
    cmtrack[demo].
    """
    with working() as step:
        step("loading libraries", 0, 1)
        from cmtrack.demo import RANK_BY, run_demo

        result = run_demo(output, quick=quick, progress=step)
    command = f"{_tool('mlflow')} ui --backend-store-uri {shlex.quote(_pasteable(result))}"
    runs = [
        {
            "name": run.name,
            "run_id": run.run_id,
            "report": str(run.report),
            "metrics": run.evaluation.metrics,
        }
        for run in result.runs
    ]
    review = {"verdict": result.comparison.summary(), "file": str(result.review)}
    about = {"tracking_uri": result.tracking_uri, "rank_by": RANK_BY, "mlflow_ui": command}
    return Answer(lambda: about | {"review": review, "runs": runs}, lambda: _print(result, command))


def _pasteable(result: DemoResult) -> str:
    """Return the store's URI, as a relative path if the store is below the working directory."""
    store = result.directory / "mlflow.db"
    relative = os.path.relpath(store)
    if relative.startswith(".."):
        return result.tracking_uri
    return f"sqlite:///{Path(relative).as_posix()}"


def _print(result: DemoResult, command: str) -> None:
    from cmtrack.cli.comparison_table import print_comparison
    from cmtrack.demo import QUESTION

    console = terminal()
    console.print(
        plain(
            f"{QUESTION} The models were evaluated on people who were not in their training data.\n"
        )
    )
    print_comparison(console, result.comparison)
    leader = result.runs[0]
    echo(f"\nReview of the decision:\n  {_shown(result.review)}")
    echo(f"Report of the leader:\n  {_shown(leader.report)}")
    store = shlex.quote(_pasteable(result))
    show = f"{_tool('cmtrack')} show {leader.run_id} --tracking-uri {store}"
    echo(f"The leader's numbers in the terminal:\n  {show}")
    echo(f"To see all runs in the browser:\n  {command}")


def _tool(name: str) -> str:
    """Return the name of this environment's program, or its path if the shell finds another one."""
    program = Path(sys.executable).with_name(name)
    found = shutil.which(name)
    is_found = found is not None and Path(found).resolve() == program.resolve()
    if is_found or not program.exists():
        return name
    return shlex.quote(_shown(program))


def _shown(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
