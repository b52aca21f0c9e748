"""Thread pools over many runs, and forks of the process while locks are held."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

WORKERS = 8
"""Runs at once: below the ten connections to a server that MLflow keeps open."""

FORK_PATIENCE = 2.0
"""Seconds that a fork waits at most for what other threads have under way."""

IMPORT_PATIENCE = 30.0
"""The same for modules that they import, which ends by itself, but takes long on a busy machine."""

_gate = threading.Condition()
_under_way: dict[object, tuple[int, bool]] = {}
_done: set[str] = set()
_in_workers: list[Callable[[], object]] = []

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(
    action: Callable[[Item], Result],
    items: Sequence[Item],
    told: Callable[[Item, int], object] = lambda *_: None,
    workers: int = WORKERS,
) -> list[Future[Result]]:
    """Apply an action to many items in a thread pool.

    An interrupt, or an error that ``told`` raises, ends the work: what is under way is done whole, nothing else is
    begun, and it is raised.

    ``told``: called in this thread with an item that is done and the number of those that are.
    ``workers``: threads.
    The result: in the order of the items, all done: ``result()`` gives what the action gave, or raises what it raised.
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
def forks_wait(once: str = "", *, imports: bool = False) -> Iterator[None]:
    """Delay forks by other threads while this block holds locks and imports modules.

    A worker inherits locks that nobody in it will ever release: of a module that is being imported, of a figure that is
    being drawn, of a property that is being computed. So a fork waits for what is under way, at most
    :data:`FORK_PATIENCE` seconds; what takes longer holds back no further fork. Nothing is registered before the first
    use. A worker that inherits the lock of a module could never import it: imports have :data:`IMPORT_PATIENCE`.

    ``once``: what is done: after the first time that it ended well it holds back nothing any more.
    ``imports``: whether the block does nothing but import.
    """
    if once in _done:
        yield
        return
    watch_forks()
    work = object()
    with _gate:
        _under_way[work] = threading.get_ident(), imports
    try:
        yield
        if once:
            _done.add(once)
    finally:
        with _gate:
            _under_way.pop(work, None)
            _gate.notify_all()


def in_forked_workers(action: Callable[[], object]) -> None:
    """Register a function to run at the start of each forked process, once :func:`watch_forks` was called."""
    _in_workers.append(action)


@functools.cache
def watch_forks() -> None:
    """Register what happens at a fork: when the first log begins, or the first lock is taken, not at import."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_before_fork, after_in_parent=lambda: _gate.release(), after_in_child=_forked
        )


def _before_fork() -> None:
    forking = threading.get_ident()
    _gate.acquire()
    _gate.wait_for(
        lambda: not any(imports and thread != forking for thread, imports in _under_way.values()),
        IMPORT_PATIENCE,
    )
    if not _gate.wait_for(
        lambda: all(thread == forking for thread, _ in _under_way.values()), FORK_PATIENCE
    ):
        _under_way.clear()


def _forked() -> None:
    global _gate
    _gate = threading.Condition()
    _under_way.clear()
    for action in _in_workers:
        action()
