"""Thread pools over many runs, and what forked processes forget."""

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
"""Runs at once: below the ten connections to a server that MLflow keeps open."""

_in_workers: list[Callable[[], object]] = []

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    action: Callable[[Item], Result],
    items: Sequence[Item],
    report_progress: Callable[[Item, int], object] = lambda *_: None,
    workers: int = WORKERS,
) -> list[Future[Result]]:
    """Apply an action to many items in a thread pool.

    An interrupt, or an error that ``report_progress`` raises, ends the work: what is under way is
    done whole, nothing else is begun, and it is raised.

    ``report_progress``: called in this thread with an item that is done and the number of those
    that are. ``workers``: threads. The result: in the order of the items, all done: ``result()``
    gives what the action gave, or raises what it raised.
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

    It runs once :func:`watch_forks` was called. A forked process inherits locks, timers and
    threads' records of its parent, but none of the threads.
    """
    _in_workers.append(action)


@functools.cache
def watch_forks() -> None:
    """Register what happens in a forked process: when the first lock is taken, not at import."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forked)


def _forked() -> None:
    for action in _in_workers:
        action()
    # Matplotlib draws all figures of a process under one lock, which another thread may have held.
    figures = sys.modules.get("matplotlib.figure")
    if figures is not None:
        figures.Figure._render_lock = threading.RLock()
