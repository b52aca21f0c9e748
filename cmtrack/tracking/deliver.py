"""Sending with an end to the waiting: a training does not stand still because a store does not answer."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from cmtrack.tracking import spool
from cmtrack.tracking.package import Package
from cmtrack.tracking.send import probe, send

if TYPE_CHECKING:
    from mlflow import MlflowClient

PATIENCE = 10.0
"""Seconds without an answer after which the script goes on."""

_AGAIN = 0.5
_PASSING = ("TEMPORARILY_UNAVAILABLE", "REQUEST_LIMIT_EXCEEDED")
_LOCKED = "database is locked"


class NoAnswer(ConnectionError):
    """The store has not answered for a while; sending goes on behind the script."""


def deliver(package: Package, client: MlflowClient | None = None) -> tuple[str, ...]:
    """Send a spooled package, and take it out of the spool when it has arrived.

    The sending runs in a thread of its own. As long as the store answers, one call after the other, it is waited for;
    when nothing has come for :data:`PATIENCE` seconds the caller goes on. The thread goes on, too, as long as the
    process lives; what it does not finish stays in the spool.

    Parameters
    ----------
    package : Package
        Its folder is the spool's entry.
    client : mlflow.MlflowClient, optional

    Returns
    -------
    tuple of str
        What had to be left out.

    Raises
    ------
    NoAnswer
        If the store does not answer for so long.
    Exception
        What the store said.
    """
    from mlflow import MlflowClient

    client = client or MlflowClient()
    probe(client.tracking_uri)
    attempt = _Attempt(package, client, PATIENCE)
    threading.Thread(target=attempt.run, name="cmtrack-send", daemon=True).start()
    return attempt.outcome()


class _Attempt:
    """One sending, and how far it has come."""

    def __init__(self, package: Package, client: MlflowClient, patience: float) -> None:
        self._package, self._client, self._patience = package, client, patience
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._problems: tuple[str, ...] = ()
        self._last = time.monotonic()

    def outcome(self) -> tuple[str, ...]:
        """Wait for the end, or for the patience's."""
        while not self._ended.wait(max(0.01, self._last + self._patience - time.monotonic())):
            if time.monotonic() - self._last >= self._patience:
                raise NoAnswer(f"the tracking store has not answered for {self._patience:g} seconds")
        if self._error is not None:
            raise self._error
        return self._problems

    def run(self) -> None:
        """Send until it is done, refused, or hopeless."""
        began = time.monotonic()
        while True:
            try:
                self._problems = send(self._package, self._client, self._answered)
                spool.remove(self._package.folder)
                break
            except BaseException as error:
                if not _passes(error) or time.monotonic() - began > self._patience:
                    self._error = error
                    break
            time.sleep(_AGAIN)
        self._ended.set()

    def _answered(self) -> None:
        self._last = time.monotonic()


def _passes(error: BaseException) -> bool:
    """Whether it may go better in a moment."""
    return getattr(error, "error_code", None) in _PASSING or _LOCKED in str(error)
