"""``cmtrack view``: a comparison as a saved view in MLflow's run list and charts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cmtrack.cli.compare import compared, comparison_command, in_store_of, write_csv
from cmtrack.cli.flags import Answer
from cmtrack.cli.frame import echo, warn, working

if TYPE_CHECKING:
    from cmtrack.tracking.views import SavedView


@comparison_command("view")
@click.option("--name", metavar="TEXT", help="Name of the view. By default it says the criterion.")
def view_command(name: str | None, csv_file: Path | None, **options: Any) -> Answer:
    """Rank evaluated runs, and save a view of the experiment for it.

    The view is MLflow's own list of runs and charts: ordered by the metric that decides, with the
    columns and the charts that matter for the ranking. Its link is printed, and put first in the
    experiment's description. A view of the same name is replaced. The options are those of `cmtrack
    compare`, and --name.
    """
    with working() as step:
        comparison = compared(step, **options)
        write_csv(comparison, csv_file)
        step("writing the view", 0, 0)
        with in_store_of(options):
            view = comparison.view(name)
    return Answer(lambda: vars(view), lambda: _print(view))


def _print(view: SavedView) -> None:
    echo(f"Saved view “{view.name}”, for MLflow {view.mlflow_version}:")
    echo(f"  runs    {view.link}")
    echo(f"  charts  {view.charts}")
    if view.link.startswith("#"):
        echo("  (append these to the address of mlflow server)")
    for note in view.notes:
        warn(note)
