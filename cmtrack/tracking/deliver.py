"""Sending with a time limit, in a thread of its own, so that a slow store does not stop a training."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cmtrack.tracking import spool
from cmtrack.tracking.package import Package
from cmtrack.tracking.parallel import forks_wait, in_forked_workers
from cmtrack.tracking.send import Sent, probe, send

if TYPE_CHECKING:
    from mlflow import MlflowClient

PATIENCE = 10.0
"""Seconds without an answer after which the script goes on."""

Result = TypeVar("Result")

_AGAIN = 0.5
_sending: dict[Path, threading.Event] = {}
in_forked_workers(_sending.clear)  # their threads are not there
_PASSING = ("TEMPORARILY_UNAVAILABLE", "REQUEST_LIMIT_EXCEEDED")
_LOCKED = "database is locked"
_LATE_END = (
    "; its client still waits in threads of its own, and the end of this process may wait for them: about 3 minutes "
    "with boto3's default settings, 1 minute with AWS_MAX_ATTEMPTS=1"
)


class NoAnswer(ConnectionError):
    """The store has not answered within the time limit; sending goes on in its own thread."""


class BusyEntry(Exception):
    """Another process or thread is sending the entry."""


def deliver(package: Package, client: MlflowClient | None = None) -> Sent:
    """Send a spooled package, and remove it from the spool when it has arrived.

    The sending runs in a thread of its own. As long as the store answers, one call after the other, it is waited for;
    when nothing has come for :data:`PATIENCE` seconds the caller goes on. The thread goes on, too, as long as the
    process lives; what it does not finish stays in the spool. The end of the process does not wait for it, but for the
    thread pools of the store's client: boto3 uploads to S3 in one, waits 60 s for an answer and tries three times, and
    neither MLflow nor the environment sets another time-out. That is said.

    Parameters
    ----------
    package : Package
        Its folder is the spool's entry, or None.
    client : mlflow.MlflowClient, optional
        One whose store is known to answer; by default one of MLflow's own choice, which is asked first.

    Returns
    -------
    Sent

    Raises
    ------
    NoAnswer
        If the store does not answer for so long.
    BusyEntry
        If the entry is being sent already.
    Exception
        What the store said.
    """

    def until_it_is_sent(answered: Callable[[], object]) -> Sent:
        began = time.monotonic()
        while True:
            try:
                return send(package, known, answered)
            except Exception as error:
                if not _passes(error) or time.monotonic() - began > PATIENCE:
                    raise
                time.sleep(_AGAIN)

    def as_the_only_one(answered: Callable[[], object]) -> Sent:
        if package.folder is None:
            return until_it_is_sent(answered)
        taken_over, earlier = threading.Event(), _sending.get(package.folder)
        if earlier is not None:  # a thread of this process that its caller has left: it stops with its next answer
            earlier.set()
        _sending[package.folder] = taken_over

        def heard() -> None:
            if taken_over.is_set():
                raise BusyEntry("somebody else sends it now")
            answered()

        try:
            with spool.claimed(package.folder) as ours:  # by the thread: it may go on when the caller has gone
                if not ours and earlier is None:
                    raise BusyEntry("it is being sent already")
                sent = until_it_is_sent(heard)
            spool.remove(package.folder)
            return sent
        finally:
            if _sending.get(package.folder) is taken_over:
                del _sending[package.folder]

    with forks_wait(once=f"sending to {package.tracking_uri}"):  # the first time, which imports much
        from mlflow import MlflowClient

        if client is None:
            client = MlflowClient()
            probe(client.tracking_uri)
        known = client
        return within_patience(as_the_only_one)


def within_patience(ask: Callable[[Callable[[], object]], Result]) -> Result:
    """The answer of the store to a question, asked in a thread of its own.

    Parameters
    ----------
    ask : callable
        Gets a function to call whenever the store has answered something: the patience then begins anew.

    Raises
    ------
    NoAnswer
        If there is no answer for :data:`PATIENCE` seconds; the question is then left to itself.
    """
    future: Future[Result] = Future()
    before = set(threading.enumerate())
    last, patience = [time.monotonic()], PATIENCE

    def answered() -> None:
        last[0] = time.monotonic()

    def run() -> None:
        try:
            future.set_result(ask(answered))
        except BaseException as error:
            future.set_exception(error)

    sender = threading.Thread(target=run, name="cmtrack-send", daemon=True)
    sender.start()
    while not future.done():
        left = last[0] + patience - time.monotonic()
        if left <= 0:
            more = set(threading.enumerate()) - before - {sender}
            raise NoAnswer(f"the tracking store has not answered for {patience:g} seconds{_LATE_END if more else ''}")
        wait([future], left)
    return future.result()


def _passes(error: BaseException) -> bool:
    """True for an error that may be temporary."""
    return getattr(error, "error_code", None) in _PASSING or _LOCKED in str(error)
