"""``cmtrack push`` and ``cmtrack spool``: send or list evaluations that are waiting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cmtrack.cli.flags import FOLDER, Answer, answering
from cmtrack.cli.frame import echo, plain, terminal, working
from cmtrack.cli.group import main

if TYPE_CHECKING:
    from cmtrack.tracking.push import PushedEntry, Waiting

_FOLDER = click.option(
    "--folder",
    type=FOLDER,
    help="Folder of the spool.  [default: $CMTRACK_SPOOL, or ./cmtrack_spool, and the folders "
    "that were used in its place]",
)


@main.command("push")
@_FOLDER
@click.option(
    "--tracking-uri",
    metavar="URI",
    help="Send all evaluations to this store. By default, each evaluation goes to the store for "
    "which it was written.",
)
@click.option(
    "--experiment",
    metavar="NAME",
    help="Experiment for evaluations that do not name a run. Each of them gets a new run.",
)
@click.option(
    "--replace",
    is_flag=True,
    help="Also send evaluations that are older than the evaluation in the run.",
)
@answering
def push_command(
    folder: Path | None, tracking_uri: str | None, experiment: str | None, replace: bool
) -> Answer:
    """Send the evaluations that are waiting in the spool.

    Sending an evaluation twice does not change its run. Exit codes: 0 every evaluation was sent, 1
    some could not be sent.
    """
    with working() as step:
        step("reading the spool", 0, 0)
        from cmtrack.tracking.push import push
        from cmtrack.tracking.store import quiet

        with quiet():
            done = push(
                folder,
                tracking_uri=tracking_uri,
                experiment_name=experiment,
                replace_newer=replace,
                progress=step,
            )
    n_sent = sum(entry.status == "sent" for entry in done)
    text = f"Nothing waits in {_where(folder)}."
    if done:
        text = "\n".join([*map(_line, done), f"{n_sent} of {len(done)} sent."])
    data = {
        "folder": _where(folder),
        "entries": [vars(entry) | {"entry": str(entry.entry)} for entry in done],
    }
    exit_code = click.exceptions.Exit(int(n_sent < len(done)))
    return Answer(lambda: data, lambda: echo(text), exit_code)


@main.command("spool")
@_FOLDER
@answering
def spool_command(folder: Path | None) -> Answer:
    """List the evaluations that are waiting to be sent."""
    from cmtrack.tracking.push import listing

    waiting = listing(folder)
    data = {
        "folder": _where(folder),
        "entries": [vars(entry) | {"path": str(entry.path)} for entry in waiting],
    }
    return Answer(lambda: data, lambda: _print(waiting, _where(folder)))


def _print(waiting: Sequence[Waiting], where: str) -> None:
    if not waiting:
        echo(f"Nothing waits in {where}.")
        return
    from cmtrack.cli.summary import new_table

    folders = dict.fromkeys(str(entry.path.parent) for entry in waiting)
    title = f"{len(waiting)} in {', '.join(folders)}"
    table = new_table(title, "entry", "made", "what", "meant for", "size", right=0, overflow="fold")
    for entry in waiting:
        size = f"{entry.size / 1e6:.1f} MB"
        table.add_row(*map(plain, (entry.name, entry.made, entry.what, entry.meant_for, size)))
    terminal().print(table)
    for line in _next_steps([entry.kind for entry in waiting]):
        echo(line)


def _where(folder: Path | None) -> str:
    """Return the folder that was searched."""
    from cmtrack.tracking.spool import spool_folder

    return str(folder or spool_folder())


def _next_steps(kinds: Sequence[str]) -> list[str]:
    """Return advice on what to do with entries of the given kinds."""
    from cmtrack.tracking.push import HOW_TO_EVALUATE

    n_inputs = kinds.count("inputs")
    n_damaged = kinds.count("damaged")
    n_evaluations = len(kinds) - n_inputs - n_damaged
    lines = []
    if n_evaluations == len(kinds):
        lines.append("`cmtrack push` sends them.")
    elif n_evaluations:
        lines.append("`cmtrack push` sends the evaluations.")
    if n_inputs:
        lines.append(f"It does not send {HOW_TO_EVALUATE}.")
    if n_damaged:
        lines.append("Damaged evaluations cannot be sent. Remove their folders.")
    return lines


def _line(entry: PushedEntry) -> str:
    """Return a sentence that says whether an entry was sent and, if not, why."""
    text = f"{entry.entry.name.lstrip('.')}: {entry.status}"
    if entry.status == "sent":
        text += f" to run {entry.run_id}"
    if entry.reason:
        text += f" ({entry.reason})"
    if entry.problems:
        text += f" (left out: {'; '.join(entry.problems)})"
    return text
