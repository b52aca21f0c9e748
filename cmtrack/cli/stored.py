"""Code shared by commands that read stored evaluations: options, loading and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from cmtrack.cli.compare import one_run
from cmtrack.cli.flags import Answer, answering, asking, of_compare, tracking_uri_option
from cmtrack.cli.frame import Step, plain, terminal, warn, working
from cmtrack.cli.group import main
from cmtrack.untrusted import printable

if TYPE_CHECKING:
    from cmtrack.base import BaseEvaluation

_prefix_option = click.option(
    "--prefix",
    metavar="TEXT",
    default="",
    help="Prefix of the evaluation, if a run has several.",
)


class Store(NamedTuple):
    """A store of evaluations, and a function that reports progress."""

    step: Step
    prefix: str
    tracking_uri: str | None
    names: dict[str, str]
    """The names of the loaded runs, by the text with which the user named them."""

    def names_of(self, runs: Sequence[str]) -> list[str]:
        """Return the names of loaded runs, or what the user typed if several have one name."""
        names = [self.names[run] for run in runs]
        return names if len(set(names)) == len(names) else list(runs)

    def load(
        self, run: str, needs_rows: Callable[[BaseEvaluation], bool] = lambda _: False
    ) -> tuple[dict[str, str], BaseEvaluation]:
        """Return the name and the evaluation of a run or folder; load saved rows if needed."""
        if Path(run).exists():
            self.names[run] = run
            return {"folder": run}, self._load_folder(Path(run), needs_rows)
        self.step("reading the run", 0, 1)
        from cmtrack.tracking import load_evaluation
        from cmtrack.tracking.load import with_kept_predictions
        from cmtrack.tracking.runs import client_for, find
        from cmtrack.tracking.store import quiet, tracking_store

        with quiet(), tracking_store(self.tracking_uri):
            client = client_for()
            found = find(run, [client])
            self.names[run] = found.name
            prefix = found.logged_prefix(self.prefix)
            evaluation = load_evaluation(found, prefix=prefix)
            if needs_rows(evaluation):
                evaluation, problem = with_kept_predictions(evaluation, found, client, prefix)
                if problem:
                    warn(f"{problem}; the run is shown without its rows")
        return {"run_id": found.run_id, "prefix": prefix}, evaluation

    def _load_folder(
        self, folder: Path, needs_rows: Callable[[BaseEvaluation], bool]
    ) -> BaseEvaluation:
        self.step("reading the folder", 0, 1)
        from cmtrack import archive
        from cmtrack.evaluation.loading import loads

        evaluation = loads(archive.read_file(folder))
        return archive.with_rows(evaluation, folder) if needs_rows(evaluation) else evaluation


def of_stored(function: Callable[..., Answer]) -> Callable[..., None]:
    """Add the options for stored evaluations to a command, and pass a :class:`Store` to it."""

    @wraps(function)
    def wrapped(*, prefix: str, tracking_uri: str | None, **options: Any) -> Answer:
        with working() as step:
            return function(store=Store(step, prefix, tracking_uri, {}), **options)

    return _prefix_option(tracking_uri_option(answering(wrapped)))


def run_command(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator that creates a command for a single run, which is named or the newest."""

    def made(function: Callable[..., None]) -> click.Command:
        command = main.command(name, cls=asking(of_compare, "experiment_names", "filter_string"))
        return command(one_run(function))

    return made


def print_table(
    title: str,
    heads: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    right: int | None = None,
    notes: Iterable[str] = (),
) -> None:
    """Print a table without interpreting its cells as markup, followed by warnings."""
    from rich.text import Text

    from cmtrack.cli.summary import new_table, print_warnings

    console = terminal()
    # A title of the table itself would be as narrow as the table.
    console.print(Text(printable(title), style="bold"))
    table = new_table("", *heads, right=right)
    for cells in rows:
        table.add_row(*map(plain, cells))
    console.print(table)
    print_warnings(console, notes)
