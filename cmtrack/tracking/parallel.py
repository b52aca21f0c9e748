"""The same work on many runs at once, with kept order, progress, and an interrupt that leaves no run half done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextvars import copy_context
from typing import TypeVar

WORKERS = 8
"""Runs at once: below the ten connections to a server that MLflow keeps open."""

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
