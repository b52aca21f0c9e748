"""Sending in a thread with a timeout, so that a slow store does not stop a training."""

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
"""Seconds without an answer after which the script goes on."""

Result = TypeVar("Result")

_AGAIN = 0.5
"""Seconds before another try."""
_MOST_MIXED = 3
"""Times that an evaluation is sent again because another writer was at the same place."""
_PASSING = ("TEMPORARILY_UNAVAILABLE", "REQUEST_LIMIT_EXCEEDED")
_LOCKED = "database is locked"
_sending: dict[Path, threading.Event] = {}
"""By the folder of an entry, the event that stops the thread which sends it."""
in_forked_workers(_sending.clear)  # a forked process has none of these threads


class NoAnswer(ConnectionError):
    """The store has not answered before the timeout; sending continues in its own thread."""


class BusyEntry(Exception):
    """Another process or thread is sending this entry, or another entry to the same place."""


def deliver(entry: Entry, client: MlflowClient | None = None, *, is_late: bool = False) -> Sent:
    """Send a spooled entry, and remove it from the spool when it has arrived.

    The sending runs in a thread of its own. As long as the store answers, one call after the other,
    it is waited for; when nothing has come for :data:`PATIENCE` seconds the caller goes on. The
    thread goes on, too, as long as the process lives; what it does not finish stays in the spool.
    The end of the process does not wait for it, nor for the thread pools of the store's client that
    it has begun. NoAnswer if the store does not answer for so long; BusyEntry if the entry is being
    sent already, or another one to the same prefix of its run; Exception: what the store said.

    ``entry``: its folder is the spool's entry, or None.
    ``client``: one whose store is known to answer; by default one of MLflow's own choice, which is
    asked first. ``is_late``: whether it was made earlier; it then leaves a newer evaluation in its
    place.
    """
    from mlflow import get_tracking_uri

    late = threading.Event()
    if is_late:
        late.set()
    if client is None:
        silences.check(entry.tracking_uri)
        # Imported before the clock starts: on a busy machine the first import alone may take as
        # long as the patience.
        import_what_reaches(get_tracking_uri())
    try:
        sent = within_patience(partial(_send_alone, entry, client, late))
    except (ConnectionError, BusyEntry) as error:
        if isinstance(error, NoAnswer):
            late.set()
        # After a failure the place is busy because the earlier sender still waits for the store.
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
    """Send an entry as the only sender of its folder and of its place in the run.

    The folder is removed when the entry has arrived.
    """
    folder = entry.folder
    if folder is None:
        return _send_until_taken(entry, client, late, answered)
    taken_over = threading.Event()
    earlier = _sending.get(folder)
    if earlier is not None:
        # Its caller has left this thread of the process, which stops with its next answer.
        earlier.set()
    _sending[folder] = taken_over

    def answered_to_us() -> None:
        if taken_over.is_set():
            raise BusyEntry("somebody else sends it now")
        answered()

    try:
        # This thread takes the lock, since it may go on when the caller has gone.
        with spool.claimed(folder) as is_ours:
            if not is_ours and earlier is None:
                raise BusyEntry("it is being sent already")
            with _place(entry, folder, anew=not is_ours):
                sent = _send_until_taken(entry, client, late, answered_to_us)
            # Removed under the lock, so that nobody sends what is being removed.
            spool.remove(folder)
        # And again without it: on Windows the open file of the lock keeps its folder.
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
    """Send an entry, again after an error that passes."""
    # The client is made in this thread: a server may keep a connection open for ever.
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
                # Two writers must not wait for each other in step.
                pause *= random.uniform(0.5, 1.5)
            time.sleep(pause)


class Silences:
    """The stores that have not answered lately: the next evaluations go to the spool at once.

    Else each epoch of a training would wait for a dead server. After two failures in a row a store
    is left alone for half a minute, and for twice as long after each further one, up to ten
    minutes.
    """

    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._until: dict[str, float] = {}

    def check(self, tracking_uri: str | None) -> None:
        """Raise ConnectionError while a store is left alone."""
        seconds = self._until.get(tracking_uri or "", 0.0) - time.monotonic()
        if seconds > 0:
            raise ConnectionError(
                f"the tracking store has not answered twice, and is asked again in {seconds:.0f} s"
            )

    def has_failed(self, tracking_uri: str | None) -> bool:
        """True if the last call to a store had no answer."""
        return self._failures[tracking_uri or ""] > 0

    def add(self, tracking_uri: str | None) -> None:
        """Count a call without an answer."""
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
        """Forget the failures of a store that has answered."""
        self._failures.pop(tracking_uri or "", None)
        self._until.pop(tracking_uri or "", None)


_PAUSE = 30.0
"""Seconds for which a store is left alone after two failures."""
_LONGEST_PAUSE = 600.0
silences = Silences()


@contextlib.contextmanager
def _place(entry: Entry, folder: Path, *, anew: bool) -> Iterator[None]:
    """Lock a run's prefix for one sender of this spool: two evaluations sent at once would mix.

    ``anew`` takes the place from the thread that sends this entry, and stops with its next answer.
    BusyEntry if somebody else sends to it for half of :data:`PATIENCE`.
    """
    ends = time.monotonic() + PATIENCE / 2
    while True:
        with spool.claimed(folder, f"{entry.run_id}\n{entry.prefix}", anew=anew) as alone:
            if alone:
                yield
                return
        if time.monotonic() > ends:
            raise BusyEntry(f"another evaluation is being sent to its place in run {entry.run_id}")
        time.sleep(_AGAIN)


def within_patience(ask: Callable[[Callable[[], object]], Result]) -> Result:
    """Return the store's answer to a question that is asked in a separate thread.

    NoAnswer if there is no answer for :data:`PATIENCE` seconds; the question is then left to
    itself.

    ``ask``: gets a function to call whenever the store has answered something: the patience then
    begins anew.
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
            raise NoAnswer(f"the tracking store has not answered for {PATIENCE:g} seconds")
        wait([future], seconds_left)
    return future.result()


def answer_of(request: Callable[[], Result]) -> Result:
    """The store's answer to one request; NoAnswer as by :func:`within_patience`."""
    return within_patience(lambda _: request())


class _Sender(threading.Thread):
    """A daemon thread that tracks the threads that its work starts."""

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
        """Record daemon threads that were started meanwhile: mostly pools that delay the exit."""
        threads = set(threading.enumerate()) - self._threads_before
        self.begun.update(thread for thread in threads if thread.daemon)


def _let_end() -> None:
    """Let the process exit while thread pools of the store's client, begun by a sender, still wait.

    Python waits for the work of such pools: with boto3, which waits 60 s for an answer of S3 and
    tries five times, for minutes. What they have in hand waits in the spool.
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
    """Register :func:`_let_end` at exit, to run before Python's own wait for thread pools."""
    if hasattr(threading, "_register_atexit") and hasattr(pools, "_threads_queues"):
        with contextlib.suppress(RuntimeError):  # the process ends already
            threading._register_atexit(_let_end)


def _passes(error: BaseException) -> bool:
    """True for an error that may be temporary."""
    if isinstance(error, MixedUp):
        return True
    return getattr(error, "error_code", None) in _PASSING or _LOCKED in str(error)
