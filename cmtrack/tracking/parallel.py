"""Functions that process many runs in a thread pool, and that clean up forked processes."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextvars import copy_context
from typing import TypeVar

WORKERS = 8
"""Number of runs processed at the same time.

MLflow keeps at most ten connections to a server open.
"""

_in_workers: list[Callable[[], object]] = []

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    action: Callable[[Item], Result],
    items: Sequence[Item],
    report_progress: Callable[[Item, int], object] = lambda *_: None,
    workers: int = WORKERS,
) -> list[Future[Result]]:
    """Apply ``action`` to many items in a thread pool.

    If the user interrupts the work, or ``report_progress`` raises an error, items in progress are
    completed, no further items are started, and the error is raised.

    ``report_progress``: a function that is called in this thread with a finished item and the
    number of finished items.
    ``workers``: number of threads.

    Returns finished futures in the order of the items. ``result()`` returns the action's result or
    raises its error.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="cmtrack")
    try:
        jobs = {pool.submit(copy_context().run, action, item): item for item in items}
        for done, job in enumerate(as_completed(jobs), 1):
            report_progress(jobs[job], done)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return list(jobs)


def in_forked_workers(action: Callable[[], object]) -> None:
    """Register a function to run at the start of each forked process.

    The function runs only if :func:`watch_forks` has been called. A forked process inherits locks,
    timers and records of threads from its parent, but not the threads.
    """
    _in_workers.append(action)


@functools.cache
def watch_forks() -> None:
    """Register the cleanup in forked processes when the first lock is created, not at import."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    for action in _in_workers:
        action()
    # Matplotlib uses one lock for all figures of a process, which another thread may hold.
    figures = sys.modules.get("matplotlib.figure")
    if figures is not None:
        figures.Figure._render_lock = threading.RLock()
