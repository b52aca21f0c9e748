"""A progress bar on stderr for readings of tables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from cmtrack.sources.source import Watch

Reading = Callable[[str, int | None], Watch]
"""Begins a reading, which has a name for people and maybe a known number of rows, and says who counts its rows."""


@contextlib.contextmanager
def watched(show: bool | None, n_readings: int) -> Iterator[Reading]:
    """Say on stderr which reading runs, which of how many, and how many rows it has counted.

    Parameters
    ----------
    show : bool, optional
        By default where stderr is a terminal.
    n_readings : int
        How many there will be, where all is well.
    """
    if show is False:
        yield lambda name, n_rows: lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    terminal = console.is_terminal
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )  # fmt: skip
    bar = Progress(*columns, console=console, transient=terminal, disable=not (show or terminal))
    task = bar.add_task("opening", total=None)
    begun = 0

    def begin(name: str, n_rows: int | None) -> Watch:
        nonlocal begun
        begun += 1
        bar.reset(task, total=n_rows, description=f"{name} ({begun} of {max(n_readings, begun)})")
        return lambda rows: bar.advance(task, rows)

    with bar:
        yield begin
