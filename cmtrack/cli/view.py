"""``cmtrack view``: save a comparison as an MLflow view of runs and charts."""

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
@click.option(
    "--name", metavar="TEXT", help="Name of the view. By default, it names the ranking metric."
)
def view_command(name: str | None, csv_file: Path | None, **options: Any) -> Answer:
    """Rank runs and save the ranking as an MLflow view.

    The view shows MLflow's list of runs and charts, ordered by the ranking's metric, with the
    columns and charts that matter for the ranking. The command prints a link to the view and puts
    it at the top of the experiment's description. If a view with the same name exists, it is
    replaced. You can use all options of `cmtrack compare`.
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
        echo("  (append these to the address of your MLflow server)")
    for note in view.notes:
        warn(note)
