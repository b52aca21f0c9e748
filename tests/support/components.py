"""Components that companies run next to MLflow, started for the tests: PostgreSQL, S3, nginx, tracking servers.

Each component listens on a free port of the loopback interface and writes to a given folder. A :class:`Service` is a
context manager. It ends with its block, together with all processes that it started. A test can kill it and start it
again in between.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import mlflow

from support.scripts import Forked
from support.stores import sqlite_store

START_SECONDS = 120
BUCKET = "companys"
KEYS = {
    "AWS_ACCESS_KEY_ID": "test-key",
    "AWS_SECRET_ACCESS_KEY": "test-secret",
    "AWS_DEFAULT_REGION": "us-east-1",
}
HOSTS = ("--allowed-hosts", "*")
ADMIN = ("admin", "admin-password-1234")
REQUIRED = "CMTRACK_REQUIRE_COMPONENTS"
"""Environment variable: if it is set, a missing component fails its tests instead of skipping them."""


def missing(*wanted: str) -> str:
    """Return which of "postgresql", "nginx", "s3" and "basic-auth" are missing, as a sentence; empty if none is."""
    found = {
        "postgresql": (_postgres("postgres") is not None, "Debian's postgresql"),
        "nginx": (shutil.which("nginx", path=_path()) is not None, "Debian's nginx-light"),
        "s3": (_importable("moto", "flask", "boto3"), "moto[server] and boto3"),
        "basic-auth": (_importable("flask_wtf"), "mlflow[auth]"),
    }
    if "postgresql" in wanted and not _importable("psycopg2"):
        found["postgresql"] = (False, "Debian's postgresql and psycopg2-binary")
    absent = [found[name][1] for name in wanted if not found[name][0]]
    return f"needs {', '.join(absent)}" if absent else ""


def need(*wanted: str) -> None:
    """Skip a test that needs a missing component, or fail it if CMTRACK_REQUIRE_COMPONENTS is set."""
    import pytest

    lacking = missing(*wanted)
    if lacking and os.environ.get(REQUIRED):
        pytest.fail(f"{REQUIRED} is set, and this {lacking}")
    if lacking:
        pytest.skip(lacking)


def free_port() -> int:
    """Return a free port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Service:
    """A program that listens on a port, in a separate process group.

    Attributes
    ----------
    command : sequence of str
    port : int
    folder : Path
        Working folder; the program's output is in ``<name>.log``.
    ready : callable
        Whether the program answers.
    environment : dict of str to str
        Variables added to this process's environment.
    user : str, optional
        The user that runs the program, if it is not the caller.
    farewell : str
        The signal that ends the program and all processes that it started.
    forked : bool
        Whether it is ``mlflow server`` in a fork of the warm process (:mod:`support.scripts`).
    """

    command: Sequence[str]
    port: int
    folder: Path
    name: str
    ready: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    farewell: str = "TERM"
    forked: bool = False
    _process: subprocess.Popen[bytes] | Forked | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def killed(self) -> bool:
        return self._process is None

    def __enter__(self) -> Service:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start the program, or restart it after it was killed, and wait until it answers."""
        setpriv = shutil.which("setpriv")  # it ends with this process, even if that is killed
        bound = [setpriv, f"--pdeathsig={self.farewell}", "--"] if setpriv else []
        environment = {**os.environ, **self.environment}
        with (self.folder / f"{self.name}.log").open("ab") as log:
            if self.forked:
                self._process = Forked(self.command, self.folder, environment, log.fileno())
            else:
                self._process = subprocess.Popen(
                    [*bound, *self.command],
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment,
                    start_new_session=True,
                    **({"user": self.user, "extra_groups": []} if self.user else {}),
                )
        try:
            _until(
                lambda: (
                    (self._process is not None and self._process.poll() is not None) or self.ready()
                )
            )
            assert self._process.poll() is None
        except BaseException:
            self.kill()
            print((self.folder / f"{self.name}.log").read_text()[-4000:], file=sys.stderr)
            raise

    def kill(self) -> None:
        """Kill the program and its processes with SIGKILL; do nothing if it has ended."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    @contextlib.contextmanager
    def silent(self) -> Iterator[None]:
        """In the block, the program accepts connections and answers nothing."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self._process.pid, signal.SIGCONT)


def tracking_server(
    folder: Path,
    *arguments: str,
    store: str | None = None,
    artifacts: str | None = None,
    name: str = "mlflow",
    environment: Mapping[str, str] | None = None,
    forked: bool = True,
) -> Service:
    """Return MLflow's tracking server, by default on SQLite with its artifacts in the folder.

    It runs no jobs, because the start of their seven consumers takes several times the processor time of the server.
    ``mlflow server`` runs in a fork of a process that has imported its modules, or as a separate process.
    """
    port = free_port()
    settings = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", **(environment or {})}
    command = ["mlflow"] if forked else [sys.executable, "-m", "mlflow"]
    command += ["server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", store or sqlite_store(folder / "server.db")]
    command += [
        "--artifacts-destination",
        artifacts or str(folder / "server_artifacts"),
        *arguments,
    ]
    return Service(
        command, port, folder, name, lambda: _answers(port, "/health"), settings, forked=forked
    )


def basic_auth(
    folder: Path, *arguments: str, environment: Mapping[str, str] | None = None, **options: Any
) -> Service:
    """Return a tracking server that asks for a password; users without their own permission may read."""
    settings = folder / "auth.ini"
    settings.write_text(
        f"[mlflow]\ndefault_permission = READ\ndatabase_uri = sqlite:///{folder}/auth.db\n"
        f"admin_username = {ADMIN[0]}\nadmin_password = {ADMIN[1]}\n"
        "authorization_function = mlflow.server.auth:authenticate_request_basic_auth\nauth_cache_ttl_seconds = 60\n"
    )
    environment = {
        "MLFLOW_AUTH_CONFIG_PATH": str(settings),
        "MLFLOW_FLASK_SERVER_SECRET_KEY": "secret-of-the-tests",
        **(environment or {}),
    }
    arguments = ("--app-name", "basic-auth", *arguments)
    return tracking_server(folder, *arguments, name="auth", environment=environment, **options)


def postgresql() -> Service:
    """Return a new PostgreSQL cluster in a new folder; :func:`database` returns its URI.

    PostgreSQL refuses to run as root, so the user ``postgres`` or ``nobody`` runs it instead.
    """
    # other users cannot read pytest's folders
    user, home = None, Path(tempfile.mkdtemp(prefix="cmtrack-pg-"))
    if os.getuid() == 0:
        user = next(
            name
            for name in ("postgres", "nobody")
            if name in {entry.pw_name for entry in pwd.getpwall()}
        )
        os.chown(home, pwd.getpwnam(user).pw_uid, -1)
    port, initdb, postgres = free_port(), _postgres("initdb"), _postgres("postgres")
    assert initdb is not None
    assert postgres is not None
    made = [
        initdb,
        "--pgdata",
        str(home / "data"),
        "--username",
        "cmtrack",
        "--auth",
        "trust",
        "--no-sync",
    ]
    other: dict[str, Any] = {"user": user, "extra_groups": []} if user else {}
    subprocess.run(
        [*made, "--encoding", "UTF8"], cwd=home, check=True, capture_output=True, **other
    )
    options = {
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "fsync": "off",
        "max_connections": "200",
    }
    command = [postgres, "-D", str(home / "data"), "-p", str(port)]
    command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    return _Cluster(
        command, port, home, "postgresql", lambda: _takes_queries(port), user=user, farewell="QUIT"
    )


class _Cluster(Service):
    def __exit__(self, *_: object) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self) -> None:
        """Kill the postmaster with SIGKILL, and wait for its children. They notice, and have separate process groups."""
        import psutil

        children = (
            []
            if self._process is None
            else psutil.Process(self._process.pid).children(recursive=True)
        )
        super().kill()
        for child in psutil.wait_procs(children, timeout=5)[1]:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()


def database(cluster: Service) -> str:
    """Return the URI of a cluster's database."""
    return f"postgresql+psycopg2://cmtrack@127.0.0.1:{cluster.port}/postgres"


def s3(folder: Path) -> Service:
    """Return moto's S3 server, which has one bucket after :func:`filled`."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    return Service(command, port, folder, "s3", lambda: _answers(port, "/moto-api/"), KEYS)


def filled(store: Service) -> dict[str, str]:
    """Make the bucket, and return the environment variables with which a program can reach it."""
    import boto3

    settings = {**KEYS, "MLFLOW_S3_ENDPOINT_URL": store.url}
    client = boto3.client(
        "s3",
        endpoint_url=store.url,
        region_name=KEYS["AWS_DEFAULT_REGION"],
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )
    client.create_bucket(Bucket=BUCKET)
    return settings


def nginx(folder: Path, target: int, *, body: str = "1m", seconds: int = 60) -> Service:
    """Return nginx in front of a server, with limits for the size of a request and for the waiting time."""
    port, home = free_port(), folder / "nginx"
    home.mkdir()
    paths = "".join(
        f"{kind}_temp_path {home}/{kind}; "
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (home / "nginx.conf").write_text(
        f"daemon off; pid {home}/pid; error_log {home}/error.log; worker_processes 1;\n"
        + ("user root;\n" if os.getuid() == 0 else "")
        + "events { worker_connections 256; }\n"
        f"http {{ access_log off; {paths} client_max_body_size {body};\n"
        f"proxy_connect_timeout {seconds}s; proxy_read_timeout {seconds}s; proxy_send_timeout {seconds}s;\n"
        f"client_body_timeout {seconds}s; send_timeout {seconds}s;\n"
        f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{target}; }} }} }}\n"
    )
    program = shutil.which("nginx", path=_path()) or "nginx"
    command = [program, "-p", str(home), "-e", f"{home}/error.log", "-c", str(home / "nginx.conf")]
    return Service(command, port, folder, "nginx", lambda: _answers(port, "/health"))


class Company:
    """PostgreSQL, S3 and a tracking server on both, as one context manager.

    Attributes
    ----------
    cluster, store, server : Service
        PostgreSQL, S3, and MLflow's tracking server; a run's artifacts go through the server to S3.
    reach : dict of str to str
        Environment variables with which a client can reach S3 itself.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Company:
        with contextlib.ExitStack() as stack:
            self.cluster = stack.enter_context(postgresql())
            self.store = stack.enter_context(s3(self.folder))
            self.reach = filled(self.store)
            self.server = stack.enter_context(
                tracking_server(self.folder, *HOSTS, **self.stores, forked=False)
            )
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def stores(self) -> dict[str, Any]:
        """Return the options of another tracking server on the same stores."""
        return {
            "store": database(self.cluster),
            "artifacts": f"s3://{BUCKET}/proxied",
            "environment": self.reach,
        }

    def direct_experiment(self, name: str) -> str:
        """Return a new experiment to which clients write files directly in S3."""
        return str(mlflow.MlflowClient(self.url).create_experiment(name, f"s3://{BUCKET}/{name}"))


def state_of(run_id: str) -> dict[str, Any]:
    """Return everything about a run that must not change if it is sent twice."""
    client = mlflow.MlflowClient()
    run = client.get_run(run_id)
    return {
        "metrics": {
            name: len(client.get_metric_history(run_id, name)) for name in run.data.metrics
        },
        "values": run.data.metrics,
        "tags": {k: v for k, v in run.data.tags.items() if k.startswith("cmtrack")},
        "files": sorted(file.path for file in client.list_artifacts(run_id)),
        "images": len(client.list_artifacts(run_id, "images")),
        "datasets": len(run.inputs.dataset_inputs),
        "status": run.info.status,
    }


def _answers(port: int, path: str) -> bool:
    try:
        # a proxy in the environment does not know this machine's ports
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        opener.open(f"http://127.0.0.1:{port}{path}", timeout=1).close()
    except OSError:
        return False
    return True


def _takes_queries(port: int) -> bool:
    import psycopg2

    try:
        psycopg2.connect(
            host="127.0.0.1", port=port, user="cmtrack", dbname="postgres", connect_timeout=2
        ).close()
    except psycopg2.OperationalError:
        return False
    return True


def _until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + START_SECONDS
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(f"it does not answer after {START_SECONDS} seconds")
        time.sleep(0.1)


def _postgres(program: str) -> str | None:
    """Return the newest version of a program of PostgreSQL's server, which Debian does not put on the path."""
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name)
    )
    return shutil.which(program, path=os.pathsep.join([*map(str, reversed(versions)), _path()]))


def _path() -> str:
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])


def _importable(*modules: str) -> bool:
    return all(importlib.util.find_spec(module) is not None for module in modules)
