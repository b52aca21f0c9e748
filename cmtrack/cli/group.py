"""The click group that contains all commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from cmtrack.cli.frame import plain_errors
from cmtrack.cli.spellings import Command
from cmtrack.removed import reason

TASKS: Mapping[str, Sequence[str]] = {
    "Evaluate and log": ("demo", "evaluate", "regroup", "count"),
    "Look at a run": ("show", "rows", "segments", "at"),
    "Compare and choose": ("compare", "gate", "threshold", "price", "plan"),
    "Share and check the decision": ("review", "view", "verify"),
    "The months after": ("promote", "history"),
    "Send saved evaluations": ("spool", "push"),
}
"""The commands by task, in the order in which ``cmtrack --help`` lists them."""


class Commands(click.Group):
    """Group of commands that report each error in one sentence."""

    command_class = Command

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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section per task, and align the descriptions of all sections."""
        longest = max(map(len, self.commands))
        # The section indents by 2, and 2 spaces separate a name from its description.
        room = formatter.width - longest - 4
        for task, names in TASKS.items():
            rows = [
                (name.ljust(longest), self.commands[name].get_short_help_str(room))
                for name in names
            ]
            with formatter.section(task):
                formatter.write_dl(rows)


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
    """Evaluate classifiers, compare them, and see the results in MLflow.

    Exit codes: 0 success, 1 the work failed (no such run, no server), 2 wrong usage or bad input.
    """
