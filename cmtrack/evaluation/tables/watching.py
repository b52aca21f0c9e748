"""Queries under a progress bar."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import narwhals as nw

from cmtrack.evaluation.tables.opening import Tables
from cmtrack.statistics.tables import Run, run

_INTERVAL = 0.25


@contextlib.contextmanager
def watched(show: bool | None, tables: Tables, n_queries: int) -> Iterator[Run]:
    """A way to run queries that says on stderr which one runs, which of how many, and for how long.

    Parameters
    ----------
    show : bool, optional
        By default where stderr is a terminal.
    tables : Tables
        Whose connection knows how far a query of files is.
    n_queries : int
        How many queries there will be, where all is well.
    """
    if show is False:
        yield run
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    terminal = console.is_terminal
    bar = Progress(*columns, console=console, transient=terminal, disable=not (show or terminal))
    task = bar.add_task("opening", total=n_queries)
    done = 0

    def run_watched(name: str, query: nw.LazyFrame[Any]) -> Mapping[str, list[Any]]:
        nonlocal done
        bar.update(task, description=f"{name} ({done + 1} of {max(n_queries, done + 1)})", completed=done)
        finished = threading.Event()
        watcher = threading.Thread(target=_watch, args=(tables, bar, task, done, finished), daemon=True)
        watcher.start()
        try:
            return run(name, query)
        finally:
            finished.set()
            watcher.join()
            done += 1
            bar.update(task, completed=done)

    with bar:
        yield run_watched


def _watch(tables: Tables, bar: Any, task: Any, done: int, finished: threading.Event) -> None:
    """Move the bar while DuckDB works; other engines do not say how far they are."""
    while not finished.wait(_INTERVAL):
        progress = getattr(tables.connection, "query_progress", None)
        share = progress() if progress is not None else -1.0
        if 0 <= share <= 100:
            bar.update(task, completed=done + share / 100)
