"""Scripts that the tests run as a user runs them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from support import ROOT

SERVER = """
import json, os, runpy, signal, socket, sys
import cmtrack.cli.comparison_table, cmtrack.report.review.page, cmtrack.tracking.comparing, cmtrack.tracking.log
import cmtrack.tracking.publish, mlflow
listening = socket.socket(socket.AF_UNIX)
listening.bind(sys.argv[1])
listening.listen()
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("ready", flush=True)
while True:
    client, _ = listening.accept()
    if os.fork() == 0:
        break
    client.close()
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
asked, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
asked = json.loads(asked)
for place, stream in enumerate(streams):
    os.dup2(stream, place)
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["environment"])
sys.path += os.environ.get("PYTHONPATH", "").split(os.pathsep)
sys.argv = asked["words"]
code = 1
try:
    if sys.argv[0] == "cmtrack":
        cmtrack.cli.main()
    else:
        sys.path.insert(0, asked["folder"])
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
    code = 0
except SystemExit as error:
    code = error.code or 0
finally:
    client.send(str(code).encode())
"""
CLIENT = """
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
asked = {"words": sys.argv[2:], "folder": os.getcwd(), "environment": dict(os.environ)}
socket.send_fds(server, [json.dumps(asked).encode()], [0, 1, 2])
code = b""
while part := server.recv(9):  # until the process ends
    code += part
sys.exit(int(code))
"""


@contextlib.contextmanager
def quick_commands(folder: Path) -> Iterator[Path]:
    """A folder with ``python`` and ``cmtrack`` for the path of a shell, each run in a fork of a process of its own.

    The process has imported what takes seconds. ``python`` takes the name of a script, and ``pip`` does nothing.
    """
    commands = folder / "commands"
    commands.mkdir()
    (commands / "client.py").write_text(CLIENT)
    call = f"exec {sys.executable} -I -S {commands}/client.py {commands}/socket"
    for name, line in {"pip": "exit 0", "python": f'{call} python "$@"', "cmtrack": f'{call} cmtrack "$@"'}.items():
        (commands / name).write_text(f"#!/bin/sh\n{line}\n")
        (commands / name).chmod(0o755)
    asked = [sys.executable, "-c", SERVER, str(commands / "socket")]
    with subprocess.Popen(asked, env=environment_without(), stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield commands
        finally:
            server.kill()


def environment_without(*prefixes: str) -> dict[str, str]:
    """The environment with this checkout on the path, and no variable that begins with MLFLOW_ or such a prefix."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", *prefixes))}
    return kept | {"PYTHONPATH": paths}
