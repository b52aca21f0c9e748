"""The command line. Heavy libraries are imported by the commands, so that help is quick."""

from __future__ import annotations

from typing import Any

import click

from cmtrack.cli.at import at_command, plan_command
from cmtrack.cli.compare import compare_command
from cmtrack.cli.demo import demo_command
from cmtrack.cli.evaluate import evaluate_command
from cmtrack.cli.gate import gate_command
from cmtrack.cli.push import push_command, spool_command
from cmtrack.cli.regroup import regroup_command
from cmtrack.cli.review import review_command
from cmtrack.cli.rows import rows_command
from cmtrack.cli.segments import segments_command
from cmtrack.cli.show import price_command, show_command, threshold_command
from cmtrack.cli.verify import verify_command
from cmtrack.cli.view import view_command

__all__ = ["main"]


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("cmtrack")
    except PackageNotFoundError:
        number = "(not installed)"
    click.echo(f"cmtrack {number}")
    context.exit()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Show the version."
)
def main(**_: Any) -> None:
    """Judge a classifier properly, and see it in MLflow.

    Exit codes: 0 success, 1 the work failed (no such run, no server), 2 wrong usage or bad input.
    """


for _command in (
    at_command,
    plan_command,
    compare_command,
    demo_command,
    evaluate_command,
    gate_command,
    price_command,
    push_command,
    regroup_command,
    spool_command,
    review_command,
    rows_command,
    segments_command,
    show_command,
    threshold_command,
    verify_command,
    view_command,
):
    main.add_command(_command)
