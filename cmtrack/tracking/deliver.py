"""Functions that send entries in a thread, so that a slow store does not stop training."""

from __future__ import annotations

import contextlib
import functools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from concurrent.futures import thread as pools
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar
from weakref import WeakSet

from cmtrack.tracking import spool
from cmtrack.tracking.entry import Entry
from cmtrack.tracking.parallel import in_forked_workers
from cmtrack.tracking.send import MixedUp, Sent, send
from cmtrack.tracking.store import client_for, import_what_reaches

if TYPE_CHECKING:
    from mlflow import MlflowClient

PATIENCE = 10.0
"""Seconds without a response after which the script continues."""

Result = TypeVar("Result")

_AGAIN = 0.5
"""Seconds between two attempts to send an entry, or to lock the place to which it is sent."""
_MOST_MIXED = 3
"""Maximum number of times that an entry is sent again because another writer interfered."""
_PASSING = ("TEMPORARILY_UNAVAILABLE", "REQUEST_LIMIT_EXCEEDED")
_LOCKED = "database is locked"
_sending: dict[Path, threading.Event] = {}
"""For each entry's folder, the event that stops the thread which sends the entry."""
in_forked_workers(_sending.clear)  # a forked process has none of these threads


class NoAnswer(ConnectionError):
    """Error raised if the store does not answer before the timeout.

    The thread keeps trying to send the entry.
    """


class BusyEntry(Exception):
    """Error raised if another sender is using this entry or the place to which it is sent."""


def deliver(entry: Entry, client: MlflowClient | None = None, *, is_late: bool = False) -> Sent:
    """Send an entry from the spool, and remove it from the spool after it has arrived.

    The entry is sent in a separate thread. The caller waits while the store answers requests, and
    continues after :data:`PATIENCE` seconds without a response. After that, the thread continues
    until the process ends. An entry that the thread does not finish sending stays in the spool.
    When the process ends, it waits neither for this thread nor for the thread pools that the
    store's client has started in the thread. Raises NoAnswer if the store does not respond for
    :data:`PATIENCE` seconds, and BusyEntry if this entry, or another entry to the same prefix of
    its run, is already being sent. All other exceptions come from the store.

    ``entry``: an entry in the spool, or without a folder.
    ``client``: a client whose store is known to answer; by default, a client for the current store,
        after a check that this store answers.
    ``is_late``: whether the entry was waiting in the spool. A late entry does not replace a newer
    evaluation.
    """
    from mlflow import get_tracking_uri

    late = threading.Event()
    if is_late:
        late.set()
    if client is None:
        silences.check(entry.tracking_uri)
        # Import before the timeout starts: on a busy machine the first import alone may take longer
        # than the timeout.
        import_what_reaches(get_tracking_uri())
    try:
        sent = within_patience(partial(_send_alone, entry, client, late))
    except (ConnectionError, BusyEntry) as error:
        if isinstance(error, NoAnswer):
            late.set()
        # After a failure, the place is busy because the earlier sender still waits for the store.
        if not isinstance(error, BusyEntry) or silences.has_failed(entry.tracking_uri):
            silences.add(entry.tracking_uri)
        raise
    silences.end(entry.tracking_uri)
    return sent


def _send_alone(
    entry: Entry,
    client: MlflowClient | None,
    late: threading.Event,
    answered: Callable[[], object],
) -> Sent:
    """Send an entry when no other sender is using the entry's folder or its place in the run.

    The folder is removed once the entry has arrived.
    """
    folder = entry.folder
    if folder is None:
        return _send_until_taken(entry, client, late, answered)
    taken_over = threading.Event()
    earlier = _sending.get(folder)
    if earlier is not None:
        # The caller no longer waits for that thread, which stops at its next response.
        earlier.set()
    _sending[folder] = taken_over

    def answered_to_us() -> None:
        if taken_over.is_set():
            raise BusyEntry("another thread sends it now")
        answered()

    try:
        # This thread takes the lock, because it may continue after the caller has left.
        with spool.claimed(folder) as is_ours:
            if not is_ours and earlier is None:
                raise BusyEntry("it is already being sent")
            with _place(entry, folder, anew=not is_ours):
                sent = _send_until_taken(entry, client, late, answered_to_us)
            # Remove the folder under the lock, so that no other process sends it meanwhile.
            spool.remove(folder)
        # Remove it again without the lock: on Windows an open lock file keeps its folder.
        spool.remove(folder)
        return sent
    finally:
        if _sending.get(folder) is taken_over:
            del _sending[folder]


def _send_until_taken(
    entry: Entry,
    client: MlflowClient | None,
    late: threading.Event,
    answered: Callable[[], object],
) -> Sent:
    """Send an entry, and try again after temporary errors."""
    # Make the client in this thread, because a server may keep a connection open forever.
    client = client or client_for()
    answered()
    ends = time.monotonic() + PATIENCE
    collisions = 0
    while True:
        try:
            return send(entry, client, answered, late.is_set)
        except Exception as error:
            collisions += isinstance(error, MixedUp)
            if not _passes(error) or collisions > _MOST_MIXED or time.monotonic() > ends:
                raise
            pause = _AGAIN
            if isinstance(error, MixedUp):
                # Two writers must not repeat at the same time.
                pause *= random.uniform(0.5, 1.5)
            time.sleep(pause)


class Silences:
    """Stores that recently did not answer; further evaluations for them stay in the spool.

    Without this record, every epoch would wait for a server that is down. After two failures in a
    row, a store gets no requests for half a minute. Each further failure doubles the pause, up to
    ten minutes.
    """

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._until: dict[str, float] = {}

    def check(self, tracking_uri: str | None) -> None:
        """Raise ConnectionError if requests to a store are paused because of earlier failures."""
        seconds = self._until.get(tracking_uri or "", 0.0) - time.monotonic()
        if seconds > 0:
            raise ConnectionError(
                "two requests to the tracking store got no answer; the next attempt is in "
                f"{seconds:.0f} s"
            )

    def has_failed(self, tracking_uri: str | None) -> bool:
        """Return True if the last request to a store got no response."""
        return self._failures[tracking_uri or ""] > 0

    def add(self, tracking_uri: str | None) -> None:
        """Record that a store did not respond to a request."""
        store = tracking_uri or ""
        self._failures[store] += 1
        doublings = self._failures[store] - 2
        if doublings >= 0:
            self._until[store] = time.monotonic() + min(_PAUSE * 2**doublings, _LONGEST_PAUSE)

    def forget(self) -> None:
        """Forget the failures of all stores."""
        self._failures.clear()
        self._until.clear()

    def end(self, tracking_uri: str | None) -> None:
        """Forget the failures of a store that is answering again."""
        self._failures.pop(tracking_uri or "", None)
        self._until.pop(tracking_uri or "", None)


_PAUSE = 30.0
"""Number of seconds for which a store gets no requests after two failures."""
_LONGEST_PAUSE = 600.0
silences = Silences()


@contextlib.contextmanager
def _place(entry: Entry, folder: Path, *, anew: bool) -> Iterator[None]:
    """Lock a run's prefix for one sender of this spool, so that two evaluations are not mixed up.

    If ``anew`` is True, the lock is taken from an earlier thread that is sending this entry and
    will stop at its next response. Raises BusyEntry if another sender holds the lock for half of
    :data:`PATIENCE`.
    """
    ends = time.monotonic() + PATIENCE / 2
    while True:
        with spool.claimed(folder, f"{entry.run_id}\n{entry.prefix}", anew=anew) as alone:
            if alone:
                yield
                return
        if time.monotonic() > ends:
            raise BusyEntry(
                f"another evaluation is being sent to the same place in run {entry.run_id}"
            )
        time.sleep(_AGAIN)


def within_patience(ask: Callable[[Callable[[], object]], Result]) -> Result:
    """Return the store's response to a request that is sent in a separate thread.

    Raises NoAnswer if the store does not respond for :data:`PATIENCE` seconds; the thread is
    abandoned.

    ``ask``: sends the request. The request receives a function that restarts the timeout, to be
        called after each response.
    """
    future: Future[Result] = Future()
    last_answer = time.monotonic()

    def answered() -> None:
        nonlocal last_answer
        last_answer = time.monotonic()

    def run() -> None:
        try:
            future.set_result(ask(answered))
        except BaseException as error:
            future.set_exception(error)

    _Sender(run).start()
    while not future.done():
        seconds_left = last_answer + PATIENCE - time.monotonic()
        if seconds_left <= 0:
            raise NoAnswer(f"the tracking store did not answer for {PATIENCE:g} seconds")
        wait([future], seconds_left)
    return future.result()


def answer_of(request: Callable[[], Result]) -> Result:
    """Return the store's response to a request, with the timeout of :func:`within_patience`."""
    return within_patience(lambda _: request())


class _Sender(threading.Thread):
    """A daemon thread that records which other threads are started during its work."""

    begun: ClassVar[WeakSet[threading.Thread]] = WeakSet()

    def __init__(self, action: Callable[[], object]) -> None:
        _at_end()
        super().__init__(name="cmtrack-send", daemon=True)
        self._action = action
        self._threads_before = frozenset(threading.enumerate())

    def run(self) -> None:
        self._action()
        self.look()

    def look(self) -> None:
        """Record new daemon threads, most of which belong to thread pools that delay the exit."""
        threads = set(threading.enumerate()) - self._threads_before
        self.begun.update(thread for thread in threads if thread.daemon)


def _let_end() -> None:
    """Let the process exit without waiting for the thread pools that senders have started.

    Python waits until such pools have finished their work. With boto3, this may take minutes,
    because boto3 waits 60 s for a response from S3 and tries five times. Evaluations that have not
    been sent stay in the spool.
    """
    senders = [thread for thread in threading.enumerate() if isinstance(thread, _Sender)]
    if not senders:
        return
    for sender in senders:
        sender.look()
    for worker in _Sender.begun:
        pools._threads_queues.pop(worker, None)  # type: ignore[attr-defined]


@functools.cache
def _at_end() -> None:
    """Register :func:`_let_end` to run at exit, before Python itself waits for thread pools."""
    if hasattr(threading, "_register_atexit") and hasattr(pools, "_threads_queues"):
        with contextlib.suppress(RuntimeError):  # the process is already ending
            threading._register_atexit(_let_end)


def _passes(error: BaseException) -> bool:
    """Return True for an error that may be temporary."""
    if isinstance(error, MixedUp):
        return True
    return getattr(error, "error_code", None) in _PASSING or _LOCKED in str(error)
