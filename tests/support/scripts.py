"""Scripts that tests run as a user runs them; :func:`warm` runs them in a fork of a process with the imports.

Otherwise, their imports of MLflow, scikit-learn, Matplotlib and cmtrack take four processor seconds.
"""

from __future__ import annotations

import functools
import json
import os
import select
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support import ROOT

SERVER = """
import gc
gc.disable()
import contextlib, json, os, runpy, select, signal, socket, sys
import cmtrack.cli.comparison_table, cmtrack.report.review.page, cmtrack.tracking.comparing, cmtrack.tracking.log
import cmtrack.tracking.publish, matplotlib.pyplot, mlflow.cli, mlflow.server.fastapi_app
import sklearn.ensemble, sklearn.linear_model, sklearn.pipeline
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
ended, ending = socket.socketpair()
ending.setblocking(False)
signal.set_wakeup_fd(ending.fileno())
signal.signal(signal.SIGCHLD, lambda *_: None)
gc.freeze()
gc.set_threshold(50_000, 20, 20)
gc.enable()
print("ready", flush=True)
clients = {}
while True:
    ready = select.select([0, listening, ended, *clients], [], [])[0]
    for client in clients.keys() & ready:  # it has gone
        os.killpg(clients[client], signal.SIGKILL)
        os.waitpid(clients.pop(client), 0)
        client.close()
    if 0 in ready:  # so has who started this process
        for process in clients.values():
            os.killpg(process, signal.SIGKILL)
        sys.exit()
    if ended in ready:
        ended.recv(1 << 10)
        for client, process in list(clients.items()):
            if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                code = os.waitstatus_to_exitcode(os.waitpid(clients.pop(client), 0)[1])
                with contextlib.suppress(OSError):
                    client.send(f"{code}\\n".encode())
                client.close()
    if listening in ready:
        client, _ = listening.accept()
        asked, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
        process = os.fork()
        if process == 0:
            break
        for stream in streams:
            os.close(stream)
        os.setpgid(process, process)
        client.send(f"{process}\\n".encode())
        clients[client] = process
signal.set_wakeup_fd(-1)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
for one in (listening, ended, ending, client, *clients):
    one.close()
for place, stream in enumerate(streams):
    os.dup2(stream, place)
    os.close(stream)
asked = json.loads(asked)
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["environment"])
if "JPY_PARENT_PID" in os.environ:
    os.environ["JPY_PARENT_PID"] = str(os.getppid())  # a kernel ends without its parent
sys.path += os.environ.get("PYTHONPATH", "").split(os.pathsep)
if "MPLBACKEND" in os.environ:
    matplotlib.rcParams["backend"] = os.environ["MPLBACKEND"]
program, *sys.argv = asked["words"]


def serve(command, extra_env, **_):  # the server itself, which MLflow's command line starts
    os.environ.update(extra_env)
    if command[1:3] != ["-m", "uvicorn"]:
        os.execvp(command[0], command)
    for name in [name for name in sys.modules if name == "mlflow.server" or name.startswith("mlflow.server.")]:
        del sys.modules[name]  # they read the environment as they are imported
    sys.argv = command[2:]
    runpy.run_module("uvicorn", run_name="__main__", alter_sys=True)


if program == "cmtrack":
    sys.argv = [program, *sys.argv]
    cmtrack.cli.main()
elif program == "mlflow":
    sys.argv = [program, *sys.argv]
    mlflow.server._exec_cmd = serve
    mlflow.cli.cli()
elif sys.argv[0] == "-m":
    sys.argv = sys.argv[1:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
elif sys.argv[0] == "-c":
    exec(sys.argv.pop(1), {"__name__": "__main__"})
else:
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
CLIENT = """
import json, os, signal, socket, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
asked = {"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}
socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
answer = b""
while answer.count(b"\\n") < 2 and (part := server.recv(20)):  # its process id, and its exit code as it ends
    answer += part
sys.exit(int(answer.split()[1]))
"""


@functools.cache
def _warm() -> tuple[Path, Any]:
    """Return the socket of the process that forks. It starts at its first use and ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="cmtrack-warm-")
    path = Path(folder.name, "socket")
    Path(folder.name, "client.py").write_text(CLIENT)
    log = path.with_name("log")
    with log.open("w") as errors:
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment_without() | {"MLFLOW_DISABLE_TELEMETRY": "true"},
        )
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n", log.read_text()
    return path, (folder, server)


def warm(program: str, *words: str) -> list[str]:
    """Return the command that runs ``python``, ``cmtrack`` or ``mlflow server`` with these arguments in a fork."""
    path, _ = _warm()
    return [
        sys.executable,
        "-I",
        "-S",
        str(path.with_name("client.py")),
        str(path),
        program,
        *words,
    ]


class Forked:
    """``mlflow server`` in a fork, in its own process group, with the methods of ``Popen`` that a service needs."""

    def __init__(
        self, words: Sequence[str], folder: Path, environment: Mapping[str, str], log: int
    ) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(str(_warm()[0]))
        asked = {"words": list(words), "folder": str(folder), "environment": dict(environment)}
        with open(os.devnull) as nothing:
            socket.send_fds(
                self._socket, [json.dumps(asked).encode()], [nothing.fileno(), log, log]
            )
        self._lines = self._socket.makefile()
        self.pid = int(self._lines.readline())
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, if the fork has ended."""
        return (
            self.wait()
            if self._code is not None or select.select([self._socket], [], [], 0)[0]
            else None
        )

    def wait(self) -> int:
        """Wait until the fork ends, and return its exit code."""
        if self._code is None:
            self._code = int(self._lines.readline())
        return self._code


def quick_commands(folder: Path) -> Path:
    """Make a folder with ``python`` and ``cmtrack`` for a shell's path, each run in a fork of the warm process.

    ``python`` takes the name of a script. ``pip`` does nothing.
    """
    commands = folder / "commands"
    commands.mkdir()
    forked = {name: f'exec {shlex.join(warm(name))} "$@"' for name in ("python", "cmtrack")}
    for name, line in {"pip": "exit 0", **forked}.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    return commands


def environment_without(*prefixes: str) -> dict[str, str]:
    """Return the environment with this checkout on the path, without variables that begin with MLFLOW_ or a prefix."""
    paths = os.pathsep.join(
        [str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")]
    )
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MLFLOW_", *prefixes))
    }
    return kept | {"PYTHONPATH": paths}
