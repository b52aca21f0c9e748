"""Reports during training: at most one every ten seconds, and one for the last step.

Each step sends its metrics, its evaluation and the image for MLflow's charts to the run. Drawing
the report takes longer than sending all of these, and nobody reads a report for every step.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import TypeAlias

from cmtrack.tracking._warn import first_line, tell
from cmtrack.tracking.parallel import in_forked_workers, watch_forks

QUIET = 10.0
"""Number of seconds between two reports for a place, and between the last step and its report."""

Place: TypeAlias = tuple[str, str, str]
"""Place of an evaluation: tracking URI, run id and prefix."""

_waiting: dict[Place, tuple[Callable[[], object], threading.Timer, int]] = {}
_made: dict[Place, float] = {}
_at_work = threading.RLock()


def claim_report(place: Place, step: int | None = None) -> bool:
    """Claim the next report for a place, and return True if it should be created now.

    If a report for an earlier step is waiting, it is dropped. If a report for a higher step is
    waiting, it is kept, because a run contains the evaluation of its highest step.
    """
    with _at_work:
        waiting = _waiting.get(place)
        if waiting is not None and (step is None or step >= waiting[2]):
            _forget(place)
        last = _made.get(place)
        due = last is None or time.monotonic() - last >= QUIET
        if due:
            _made[place] = time.monotonic()
        return due


def later(place: Place, make: Callable[[], object], step: int = 0) -> None:
    """Schedule a report to be created if no further step follows, or when the process ends."""
    _register()
    timer = threading.Timer(QUIET, _make, (place,))
    timer.daemon = True
    with _at_work:
        _forget(place)
        _waiting[place] = (make, timer, step)
        timer.start()


def finish() -> None:
    """Create all pending reports."""
    for place in list(_waiting):
        _make(place)


def forget() -> None:
    """Discard all pending reports and the times of earlier reports."""
    for place in list(_waiting):
        _forget(place)
    _made.clear()


def _forget(place: Place) -> None:
    waiting = _waiting.pop(place, None)
    if waiting is not None:
        waiting[1].cancel()


def _make(place: Place) -> None:
    with _at_work:
        waiting = _waiting.pop(place, None)
    if waiting is None:
        return
    # No lock is held while the report is drawn, so that the next step does not wait and forked
    # workers do not inherit the lock.
    make, timer, _ = waiting
    timer.cancel()
    try:
        make()
    except Exception as error:  # the step itself is already in the run
        tell(f"the report of the last step in run {place[1]} was not logged: {first_line(error)}")
    _made[place] = time.monotonic()


@functools.cache
def _register() -> None:
    """Create pending reports at the end of the process, while threads can still be started."""
    watch_forks()
    getattr(threading, "_register_atexit", lambda _: None)(finish)


def _in_worker() -> None:
    """Discard the timers in a forked process."""
    global _at_work
    _at_work = threading.RLock()
    _waiting.clear()


in_forked_workers(_in_worker)
