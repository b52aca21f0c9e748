"""A fork waits for the locks and imports that other threads have under way, so that its worker does not hang."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

# Inside: how long a fork waits cannot be seen from a training; integration tests fork one that logs.
from cmtrack.tracking import parallel

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@contextmanager
def busy(once: str = "", *, imports: bool = False, seconds: float = 60.0) -> Iterator[None]:
    """Another thread that is at work for so long, at most until the block ends."""
    begun = threading.Event()
    ended = threading.Event()

    def work() -> None:
        with parallel.forks_wait(once, imports=imports):
            begun.set()
            ended.wait(seconds)

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait(60)
    yield
    ended.set()
    thread.join()


def seconds_of_a_fork() -> float:
    began = time.monotonic()
    child = os.fork()
    if child == 0:
        os._exit(0)
    took = time.monotonic() - began
    os.waitpid(child, 0)
    return took


@pytest.mark.parametrize("imports", [False, True])
def test_a_fork_waits_for_what_another_thread_has_under_way(imports: bool) -> None:
    with busy(imports=imports, seconds=0.3):
        assert seconds_of_a_fork() > 0.1


@pytest.mark.parametrize(
    ("imports", "longest"), [(False, "FORK_PATIENCE"), (True, "IMPORT_PATIENCE")]
)
def test_a_fork_does_not_wait_for_ever_and_the_next_one_not_at_all(
    monkeypatch: pytest.MonkeyPatch, imports: bool, longest: str
) -> None:
    monkeypatch.setattr(parallel, "FORK_PATIENCE", 0.0)
    monkeypatch.setattr(parallel, "IMPORT_PATIENCE", 0.0)
    monkeypatch.setattr(parallel, longest, 0.2)
    with busy(imports=imports, seconds=60):
        assert 0.1 < seconds_of_a_fork() < 30
        monkeypatch.setattr(parallel, longest, 60.0)
        assert seconds_of_a_fork() < 30


def test_a_thread_that_forks_does_not_wait_for_itself() -> None:
    with parallel.forks_wait(), parallel.forks_wait(imports=True):
        assert seconds_of_a_fork() < 2


def test_what_ended_well_once_holds_back_no_fork() -> None:
    with pytest.raises(KeyError), parallel.forks_wait("a test of forks"):
        raise KeyError
    for waits in (True, False):
        with busy("a test of forks", seconds=0.3):
            assert (seconds_of_a_fork() > 0.1) == waits
