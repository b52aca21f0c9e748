"""The group of all commands."""

from __future__ import annotations

from typing import Any

import click

from cmtrack.cli.frame import plain_errors
from cmtrack.removed import reason


class Commands(click.Group):
    """Commands whose errors are one sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with plain_errors():
            try:
                return super().invoke(ctx)
            except click.NoSuchOption as error:
                command = error.ctx.command_path if error.ctx else ctx.command_path
                removed = reason(f"cmtrack {command.rpartition(' ')[2]} {error.option_name}")
                if removed is None:
                    raise
                raise click.UsageError(removed, ctx=error.ctx) from None


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


@click.group(
    cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Show the version.",
)
def main(**_: Any) -> None:
    """Judge a classifier properly, and see it in MLflow.

    Exit codes: 0 success, 1 the work failed (no such run, no server), 2 wrong usage or bad input.
    """
