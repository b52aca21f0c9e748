"""Work in threads: the same on many runs at once, and what workers that are forked meanwhile must not inherit."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

WORKERS = 8
"""Runs at once: below the ten connections to a server that MLflow keeps open."""

_importing = threading.RLock()
_done: set[str] = set()

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    action: Callable[[Item], Result],
    items: Sequence[Item],
    told: Callable[[Item, int], object] = lambda *_: None,
    workers: int = WORKERS,
) -> list[Future[Result]]:
    """Do the same with many items in several threads.

    An interrupt, or an error that ``told`` raises, ends the work: what is under way is done whole, nothing else is
    begun, and it is raised.

    Parameters
    ----------
    action : callable
    items : sequence
    told : callable, optional
        Called in this thread with an item that is done and the number of those that are.
    workers : int
        Threads.

    Returns
    -------
    list of concurrent.futures.Future
        In the order of the items, all done: ``result()`` gives what the action gave, or raises what it raised.
    """
    pool = ThreadPoolExecutor(workers, thread_name_prefix="cmtrack")
    try:
        jobs = {pool.submit(copy_context().run, action, item): item for item in items}
        for done, job in enumerate(as_completed(jobs), 1):
            told(jobs[job], done)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return list(jobs)


@contextmanager
def forks_wait_once(what: str) -> Iterator[None]:
    """Hold back forks of this process while something is done for the first time, and imports much.

    A worker that another thread forks in the middle of an import inherits the import's lock, and waits for it for ever.
    """
    if what in _done or not hasattr(os, "register_at_fork"):
        yield
        return
    with _importing:
        if "handlers" not in _done:
            os.register_at_fork(
                before=_importing.acquire, after_in_parent=_importing.release, after_in_child=_importing.release
            )
            _done.add("handlers")
        yield
        _done.add(what)
