"""Proxies and file operations that fail on demand, and processes to kill."""

from __future__ import annotations

import builtins
import contextlib
import errno
import http.client
import io
import os
import pickle
import socket
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import pytest

# The pictures of reviews are left out here.
from cmtrack.report import Picture, figures

# A store that hangs, another process in the middle of this one, and the ten seconds between two reports cannot be
# produced from outside at a reasonable cost. These seams exist only for them, and to leave out the pictures.
from cmtrack.tracking import contents, deliver, spool, steps
from support import ROOT

HERE = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
CHILD = textwrap.dedent("""
    import sys, time
    import numpy as np
    import mlflow
    from cmtrack import log_evaluation
    mlflow.set_tracking_uri(sys.argv[1])
    rng = np.random.default_rng(int(sys.argv[3]))
    y = rng.integers(0, 3, 60)
    y[:3] = range(3)
    if sys.argv[4] == "impatient":
        import cmtrack.tracking.deliver as deliver
        deliver.PATIENCE = 3.0
    if sys.argv[4] == "slow":
        import cmtrack.tracking.contents as contents
        contents._draw = lambda *_: (print("drawing", flush=True), time.sleep(60))
    logged = log_evaluation(y, rng.permutation(y), y_prob=rng.dirichlet(np.ones(3), 60), run_id=sys.argv[2])
    print(logged.status)
""")


def child(
    store_uri: str,
    run_id: str,
    seed: int,
    how: str = "plain",
    within: Sequence[str] = (),
    environment: Mapping[str, str] = MappingProxyType({}),
) -> subprocess.Popen[str]:
    """Return a training script that logs one evaluation, started by ``within``.

    ``how``: "plain", "impatient" (waits for 3 seconds), or "slow" (stops before the figures).
    """
    return subprocess.Popen(
        [*within, sys.executable, "-W", "ignore", "-c", CHILD, store_uri, run_id, str(seed), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": HERE, **environment},
    )


WORKERS = textwrap.dedent("""
    import os, sys
    import mlflow.data, mlflow.store.tracking.sqlalchemy_store
    import numpy as np
    from cmtrack import evaluate, log_evaluation
    evaluate([0, 1, 2], [0, 1, 1]).report("imports_what_draws.html")
    mlflow.set_tracking_uri(sys.argv[1])
    if sys.argv[2] == "after a request":
        mlflow.MlflowClient().get_run(sys.argv[3])
    workers = []
    for seed, run_id in enumerate(sys.argv[3:]):
        workers.append(os.fork())
        if workers[-1] == 0:
            rng = np.random.default_rng(seed)
            y = np.concatenate((np.arange(3), rng.integers(0, 3, 57)))
            logged = log_evaluation(y, rng.permutation(y), run_id=run_id)
            os._exit(0 if logged.status == "completed" else 1)
    print(*(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers))
""")


def forked_workers(
    store_uri: str, run_ids: Sequence[str], when: str
) -> subprocess.CompletedProcess[str]:
    """Return a process whose workers log an evaluation each at the same time; it prints their exit codes (0 is success).

    It forks them "at first", or "after a request" to the store, as a training with workers does: the session is open.
    """
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORKERS, store_uri, when, *run_ids],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "PYTHONPATH": HERE},
    )


PASS, DROP, HANG, PAGE, LOGIN, DRIP = "pass", "drop", "hang", "page", "login", "drip"


@dataclass(frozen=True)
class LeadsTo:
    """An answer that redirects to another address."""

    address: str
    status: int = 302


HTML = b"<html>Please sign in</html>"
DRIPS, DRIP_SECONDS = 20, 0.1


class FaultyProxy:
    """A proxy to a server; ``fault(method, path, number)`` decides what to do with each request.

    It returns PASS, DROP (close the connection without an answer), HANG (no answer until the end), a status such as
    500 or 429, PAGE (200 with a foreign page), LOGIN (a redirect to such a page), LeadsTo (a redirect to another
    address), or DRIP (an answer that comes byte by byte and never ends).
    """

    def __init__(self, port: int) -> None:
        self.fault: Callable[[str, str, int], Any] = lambda *_: PASS
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.connections = 0
        self._target, self._ended = port, threading.Event()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        self.requests.append((handler.command, handler.path))
        self.headers.append(dict(handler.headers))
        what = self.fault(handler.command, handler.path, len(self.requests))
        if what in _STRANGE or handler.path == "/login":
            _STRANGE.get(what, _reply_with_page)(handler)
            return
        if isinstance(what, LeadsTo):
            self._reply(handler, what.status, b"", {"Location": what.address})
            return
        if what == HANG:
            self._ended.wait()
        if what in (DROP, HANG):
            handler.close_connection = True
            handler.connection.close()
            return
        if what != PASS:
            self._reply(
                handler, int(what), b'{"error_code": "INTERNAL_ERROR", "message": "made up"}', {}
            )
            return
        try:
            port, path = self.place(handler.path)
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            headers = {
                k: v for k, v in handler.headers.items() if k.lower() not in ("host", "connection")
            }
            connection.request(handler.command, path, body, headers)
            reply = connection.getresponse()
            kept = {
                k: v
                for k, v in reply.getheaders()
                if k.lower() in ("content-type", "content-disposition")
            }
            self._reply(handler, reply.status, reply.read(), kept)
            connection.close()
        except (
            OSError,
            http.client.HTTPException,
        ):  # the server was killed: the client sees the same as without the proxy
            handler.close_connection = True
            handler.connection.close()

    def place(self, path: str) -> tuple[int, str]:
        """Return the port and path of a request; a forward proxy uses the target for every host."""
        parts = urlsplit(path)
        return self._target, parts._replace(scheme="", netloc="").geturl() or "/"

    def tunnel(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer a CONNECT request."""
        self.requests.append((handler.command, handler.path))
        self._reply(handler, 405, b"", {})

    @staticmethod
    def _reply(
        handler: BaseHTTPRequestHandler, status: int, content: bytes, headers: dict[str, str]
    ) -> None:
        handler.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | headers).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


def _reply_with_page(handler: BaseHTTPRequestHandler) -> None:
    FaultyProxy._reply(handler, 200, HTML, {"Content-Type": "text/html"})


def _lead_to_login(handler: BaseHTTPRequestHandler) -> None:
    FaultyProxy._reply(handler, 302, HTML, {"Content-Type": "text/html", "Location": "/login"})


def _drip(handler: BaseHTTPRequestHandler) -> None:
    """Answer byte by byte, and close the connection before the last byte."""
    handler.close_connection = True
    with contextlib.suppress(OSError):  # the client has gone
        handler.send_response(200)
        handler.send_header("Content-Length", str(DRIPS + 1))
        handler.end_headers()
        for _ in range(DRIPS):
            handler.wfile.write(b" ")
            time.sleep(DRIP_SECONDS)
    handler.connection.close()


_STRANGE = {PAGE: _reply_with_page, LOGIN: _lead_to_login, DRIP: _drip}


class ForwardProxy(FaultyProxy):
    """An HTTP proxy that knows where some hosts are; nobody else does, and it knows no others.

    Parameters
    ----------
    hosts : dict of str to int
        This machine's port by the host's name.
    """

    def __init__(self, hosts: Mapping[str, int]) -> None:
        super().__init__(0)
        self.hosts = dict(hosts)

    def place(self, path: str) -> tuple[int, str]:
        parts = urlsplit(path)
        if parts.hostname not in self.hosts:
            raise OSError(f"there is no host {parts.hostname!r}")
        return self.hosts[parts.hostname], parts._replace(scheme="", netloc="").geturl() or "/"

    def tunnel(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append((handler.command, handler.path))
        port = self.hosts.get(handler.path.rpartition(":")[0])
        if port is None:
            handler.send_error(502)
            return
        with socket.create_connection(("127.0.0.1", port)) as there:
            handler.send_response(200)
            handler.end_headers()
            handler.close_connection = True
            back = threading.Thread(target=_pump, args=(there, handler.connection), daemon=True)
            back.start()
            _pump(handler.connection, there)
            back.join()


class Recorder:
    """A server that always answers with the same text, or redirects to another address, and stores the headers."""

    def __init__(self, leads_to: str = "", status: int = 302) -> None:
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                recorder.requests.append((self.command, self.path, dict(self.headers)))
                self.send_response(status if leads_to else 200)
                if leads_to:
                    self.send_header("Location", leads_to)
                content = b'{"files": []}'
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.place = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def secrets(self) -> list[str]:
        """Return what the requests revealed about the sender."""
        return [
            headers["Authorization"] for *_, headers in self.requests if "Authorization" in headers
        ]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class SlowLink:
    """A connection to a port with a limited number of bytes per second in each direction, shared by all its users."""

    def __init__(self, port: int, bytes_per_second: float) -> None:
        self._target, self._seconds = port, 1 / bytes_per_second
        self._free = {"there": 0.0, "back": 0.0}
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # it was closed
            while True:
                here, _ = self._listening.accept()
                there = socket.create_connection(("127.0.0.1", self._target))
                for way, pair in (("there", (here, there)), ("back", (there, here))):
                    threading.Thread(
                        target=_pump, args=(*pair, self._wait_for(way)), daemon=True
                    ).start()

    def _wait_for(self, way: str) -> Callable[[int], None]:
        def wait(size: int) -> None:
            with self._lock:
                start = max(time.monotonic(), self._free[way])
                self._free[way] = start + size * self._seconds
            time.sleep(max(0.0, self._free[way] - time.monotonic()))

        return wait


def _pump(
    source: socket.socket, target: socket.socket, wait: Callable[[int], None] = lambda _: None
) -> None:
    """Carry bytes until one side ends."""
    with contextlib.suppress(OSError):
        while data := source.recv(4096):
            wait(len(data))
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: FaultyProxy

    def setup(self) -> None:
        self.proxy.connections += 1
        super().setup()

    def do_GET(self) -> None:
        self.proxy.answer(self)

    def do_CONNECT(self) -> None:
        self.proxy.tunnel(self)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        pass


PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8ffff3f0005fe02fe0def46b8"
    "0000000049454e44ae426082"
)


# -- seams -----------------------------------------------------------------------------------------------------------

_draw = contents._draw


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Give reports no pictures, which take most of the time and have separate tests."""
    patch.setattr(contents, "_draw", lambda *_: None)


def draw_no_review(patch: pytest.MonkeyPatch) -> None:
    """Give reports, reviews and bundles no pictures."""
    draw_nothing(patch)
    patch.setattr(figures, "draw_pictures", lambda *_, **__: {})


def draw_everything(patch: pytest.MonkeyPatch) -> None:
    """Give reports their pictures, in a test of a module whose other tests have none."""
    patch.setattr(contents, "_draw", _draw)


def draw_one(patch: pytest.MonkeyPatch) -> None:
    """Give reports a single picture of one pixel."""
    patch.setattr(contents, "_draw", _draw_one_picture)


def wait_for_stores(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set how long to wait for a store, instead of ten seconds."""
    patch.setattr(deliver, "PATIENCE", seconds)


def forget_silences() -> None:
    """Contact stores again that did not answer twice."""
    deliver.silences.forget()


def keep_memory_in(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """Put the last place of the spool, which is in memory, into a folder of the test."""
    patch.setattr(spool, "_MEMORY", folder)


def stay_in_this_thread(patch: pytest.MonkeyPatch) -> None:
    """Send without a thread and without waiting, so that the calls of the store always have the same order."""
    wait_for_stores(patch, -1.0)
    patch.setattr(deliver, "within_patience", lambda ask: ask(lambda: None))


@contextlib.contextmanager
def as_another_process() -> Iterator[None]:
    """Act as another process in the block, without knowledge of what this process is sending."""
    with mock.patch.object(deliver, "_sending", {}):
        yield


def wait_between_reports(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the time between the reports of two steps, instead of ten seconds."""
    patch.setattr(steps, "QUIET", seconds)


def make_pending_reports() -> None:
    """Make the waiting reports of steps, as the end of the process does."""
    steps.finish()


@contextlib.contextmanager
def store_is_down(error: BaseException | None = None) -> Iterator[mock.Mock]:
    """Make each request about a run fail in the block; yields the mock that counts them."""
    error = error or ConnectionError("the tracking server does not answer")
    with mock.patch("mlflow.MlflowClient.get_run", side_effect=error) as asked:
        yield asked


def full(*_: object, **__: object) -> None:
    """Fail like a full disk."""
    raise OSError(errno.ENOSPC, "No space left on device")


@contextlib.contextmanager
def failing_files(
    fails: Callable[[Path], bool], fault: Callable[[], object] = full
) -> Iterator[None]:
    """In the block, moving some files into place fails, because of a full disk or another fault."""
    move = os.replace

    def move_or_fail(source: Any, target: Any) -> None:
        if fails(Path(target)):
            fault()
        move(source, target)

    with mock.patch("os.replace", move_or_fail):
        yield


def _draw_one_picture(_: Any, pictures: dict[str, Picture], *__: Any) -> None:
    """Draw one picture instead of all; drawing has separate tests."""
    pictures["confusion_matrix"] = Picture(
        "confusion_matrix",
        "Confusion matrix",
        "",
        "cmtrack_confusion_matrix.png",
        PIXEL,
        "<svg></svg>",
        chart=PIXEL,
    )


# -- file operations -------------------------------------------------------------------------------------------------

DIES, FULL, INTERRUPTED = "dies", "every place is full", "Ctrl-C"
FILE_FAULTS: dict[str, int] = {
    DIES: 0,
    "ENOSPC": errno.ENOSPC,
    "EIO": errno.EIO,
    "EINTR": errno.EINTR,
    FULL: errno.ENOSPC,
}
"""From the Nth operation on, there is no space in its first folder ("ENOSPC") or in any; EIO and EINTR happen once."""
_WITH_PATH = {
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.chmod",
    "os.truncate",
    "os.utime",
    "os.listdir",
    "os.scandir",
    "os.link",
    "os.symlink",
    "os.chown",
}


@dataclass(frozen=True)
class Ended:
    """End of a forked process: the result or error of its action, or nothing, and the file operations that it began."""

    died: bool
    result: Any
    operations: int
    last: str


class _FileFaults:
    """Counts this process's file operations below a folder, and makes the Nth fail. It cannot be uninstalled."""

    def __init__(self, root: Path, kind: str, at: int) -> None:
        self.root, self.kind, self.at = os.path.realpath(root) + os.sep, kind, at
        self.count, self.last, self.full = 0, "", ""

    def install(self) -> None:
        sys.addaudithook(self.hear)
        fsync, opened = os.fsync, io.open

        def synced(handle: int) -> None:
            if path := self.below(handle):
                self.reach("fsync", path, True)
            fsync(handle)

        def open_whole(
            file: Any, mode: str = "r", buffering: int = -1, *args: Any, **more: Any
        ) -> Any:
            if set(mode) & set("wxa+") and "b" in mode and buffering != 0 and self.below(file):
                return io.BufferedWriter(_Raw(self, file, mode.replace("b", ""), *args[3:], **more))
            return opened(file, mode, buffering, *args, **more)

        os.fsync = synced
        io.open = builtins.open = open_whole  # type: ignore[assignment]

    def below(self, path: Any) -> str:
        """Return the path, or the path of an open file, if it is below the folder; else an empty text."""
        try:
            text = (
                os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.fsdecode(path)
            )
        except (TypeError, OSError):
            return ""
        text = os.path.abspath(text)
        return text if (text + os.sep).startswith(self.root) else ""

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "fcntl.flock":
            self.reach("flock", self.root, False)
        elif event in _WITH_PATH:
            taken_from_folder = event in ("os.remove", "os.rmdir") and args[1] not in (-1, None)
            path = self.root if taken_from_folder else self.below(args[0])
            if path:
                makes = event == "os.mkdir" or (
                    event == "open" and bool((args[2] or 0) & os.O_CREAT)
                )
                self.reach(event, path, makes)

    def reach(
        self, operation: str, path: str, makes: bool, torn: Callable[[], object] = lambda: None
    ) -> None:
        """Count an operation; fail if it is the Nth, or needs space and there is none."""
        self.count += 1
        hit, place = self.count == self.at, path.removeprefix(self.root).split(os.sep)[0]
        if hit:
            self.last = f"{operation} {path.removeprefix(self.root)}"
            if self.kind == DIES:
                torn()
                os._exit(9)
            if self.kind == INTERRUPTED:
                raise KeyboardInterrupt
            if self.kind in ("ENOSPC", FULL):
                self.full = place if self.kind == "ENOSPC" else "*"
        if makes and self.full in ("*", place) if self.full else hit:
            if self.kind != "EINTR":  # Python repeats an interrupted write
                torn()
            raise OSError(FILE_FAULTS[self.kind], os.strerror(FILE_FAULTS[self.kind]), path)


class _Raw(io.FileIO):
    """A file that writes half of the data if writing fails."""

    def __init__(self, faults: _FileFaults, *args: Any, **more: Any) -> None:
        self.faults = faults
        super().__init__(*args, **more)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        path = self.faults.below(self.fileno())
        self.faults.reach(
            "write", path, True, lambda: io.FileIO.write(self, view[: len(view) // 2])
        )
        return super().write(view)


def with_file_fault(action: Callable[[], Any], root: Path, kind: str = DIES, at: int = 0) -> Ended:
    """Run an action in a fork of this process, in which the Nth file operation below a folder fails (0: none).

    Returns
    -------
    Ended
        ``result`` is the action's result, which must be data that can be pickled, or its error as text.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        faults = _FileFaults(root, kind, at)
        content = b""
        try:
            faults.install()
            try:
                result = action()
            except (Exception, KeyboardInterrupt) as error:
                result = f"{type(error).__name__}: {error} {' '.join(getattr(error, '__notes__', ()))}".strip()
            content = pickle.dumps((result, faults.count, faults.last))
        except BaseException:
            content = pickle.dumps(traceback.format_exc())
        finally:
            os.write(write, content)
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        content = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 9:
        return Ended(True, None, at, "")
    assert content, f"the forked process ended with {code}"
    ended = pickle.loads(content)
    assert not isinstance(ended, str), ended
    return Ended(False, *ended)
