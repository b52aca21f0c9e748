"""A worker process for pages outside the server's threads, with a short queue.

A comparison takes seconds of processor time. In a thread of the server it would delay every answer of MLflow's API,
and a waiting request holds one of the server's threads. So each user has a few places in the queue, all users together
some more, and further requests are asked to retry. A request waits a short time; its page is rendered all the same, and
cached for the retry. A comparison that takes too long is stopped by ending its process.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

MOST_OF_USER = 2
"""Requests of one user that wait, and pages that are to be made for one user."""
MOST_IN_ALL = 4
"""The same for all users, in one process of the server."""
PATIENCE = 20.0
"""Seconds that a request waits for its page: less than the minute of usual proxies."""
MOST_SECONDS = 120.0
"""A page that takes longer is given up."""
TRIED_AGAIN = 600.0
"""Seconds after which a page that took too long is tried again."""
IDLE = 900.0
"""Seconds after which a process that nobody needs is ended."""
SOON = 5
"""Seconds after which one who was sent away may ask again."""


class Later(Exception):
    """No answer now: the reason, and the seconds after which to retry.

    Attributes
    ----------
    seconds : int
    worth_waiting : bool
        Whether the same request will probably be answered then.
    """

    def __init__(self, reason: str, seconds: int = SOON, *, worth_waiting: bool = True) -> None:
        super().__init__(reason)
        self.seconds = seconds
        self.worth_waiting = worth_waiting


@dataclass(eq=False)
class _Task:
    """A request, its user, and the answer: a status and a text, or None after a timeout."""

    question: str
    users: set[str] = field(default_factory=set)
    answer: Future[tuple[int, bytes] | None] = field(default_factory=Future)
    until: float = math.inf  # then it is forgotten


class Works:
    """Queue of requests that a separate process answers one after the other.

    Parameters
    ----------
    command : sequence of str
        Starts the process: for each line of JSON that it reads it writes a status, a length and that many bytes.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self._lock = threading.Lock()
        self._waiting: Counter[str] = Counter()
        self._tasks: dict[str, _Task] = {}
        self._queue: queue.Queue[_Task] = queue.Queue()
        self._maker = _Maker(command)
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def place(self, user: str) -> Iterator[None]:
        """Hold a place in the queue.

        Raises
        ------
        Later
            If the user holds enough of them, or all are taken.
        """
        with self._lock:
            _check(self._waiting[user], self._waiting.total())
            self._waiting[user] += 1
        try:
            yield
        finally:
            with self._lock:
                self._waiting[user] -= 1
                self._waiting += Counter()  # without those who have none

    def answer(self, user: str, question: dict[str, Any]) -> tuple[int, bytes]:
        """Status and text from the process; equal simultaneous requests share one answer.

        Raises
        ------
        Later
            If there is no answer in time.
        """
        text = json.dumps(question, sort_keys=True)
        with self._lock:
            now = time.monotonic()
            self._tasks = {key: task for key, task in self._tasks.items() if task.until > now}
            task = self._tasks.get(text) or _Task(text)
            if not task.answer.done():
                self._join(user, task)
        try:
            answer = task.answer.result(PATIENCE)
        except TimeoutError:
            raise Later("The page is still being made.") from None
        if answer is None:
            again = max(1, math.ceil(task.until - time.monotonic()))
            reason = f"It takes longer than {MOST_SECONDS:.0f} seconds to make this page: ask for fewer runs (limit)."
            raise Later(reason, again, worth_waiting=False)
        if answer[0] == 503:
            raise Later(answer[1].decode())
        return answer

    def _join(self, user: str, task: _Task) -> None:
        if user not in task.users:
            open_tasks = [other for other in self._tasks.values() if not other.answer.done()]
            in_all = len(open_tasks) if task.question not in self._tasks else 0
            _check(sum(user in other.users for other in open_tasks), in_all)
            task.users.add(user)
        if task.question not in self._tasks:
            self._tasks[task.question] = task
            self._queue.put(task)
            if self._thread is None:  # not before: a server may be forked after its app was made
                self._thread = threading.Thread(target=self._run, name="cmtrack-pages", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                task = self._queue.get(timeout=IDLE)
            except queue.Empty:
                self._maker.end()
                continue
            try:
                answer = self._maker.ask(task.question, MOST_SECONDS)
            except Exception:
                logging.getLogger(__name__).exception("the process that makes cmtrack's pages has failed")
                answer = (503, b"The process that makes the pages has failed. The server's log says why.")
            with self._lock:
                task.until = time.monotonic() + TRIED_AGAIN if answer is None else 0.0
                task.answer.set_result(answer)


def _check(of_user: int, in_all: int) -> None:
    if of_user >= MOST_OF_USER:
        raise Later(f"You wait for {of_user} other pages already.")
    if in_all >= MOST_IN_ALL:
        raise Later(f"The server makes {in_all} other pages at the moment.")


class _Maker:
    """The worker process, started on demand."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, question: str, seconds: float) -> tuple[int, bytes] | None:
        """The answer; None after a timeout, which ends the process.

        Raises
        ------
        OSError, EOFError
            If the process cannot be started, or ends.
        """
        if self._process is None:
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
        process, late = self._process, threading.Event()

        def stop() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, stop)
        timer.start()
        try:
            return _exchange(process, question)
        except (OSError, EOFError):
            self.end()
            if late.is_set():
                return None
            raise
        finally:
            timer.cancel()
            if late.is_set():
                self.end()

    def end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]


def _exchange(process: subprocess.Popen[bytes], question: str) -> tuple[int, bytes]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(question.encode() + b"\n")
    process.stdin.flush()
    status, _, length = process.stdout.readline().partition(b" ")
    text = process.stdout.read(int(length)) if length else b""
    if not length or len(text) < int(length):
        raise EOFError("the process has ended")
    return int(status), text


def serve(answer: Callable[[dict[str, Any]], tuple[int, str]]) -> None:
    """Answer requests of :class:`Works` in this process until its parent ends.

    Parameters
    ----------
    answer : callable
        Given a question, it returns a status and a text.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the server, too
    if hasattr(os, "nice"):
        os.nice(5)  # MLflow's API comes first
    questions: queue.Queue[bytes] = queue.Queue()

    def read() -> None:
        for line in sys.stdin.buffer:
            questions.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        status, text = answer(json.loads(questions.get()))
        content = text.encode("utf-8", "replace")
        answers.write(b"%d %d\n" % (status, len(content)) + content)
        answers.flush()
