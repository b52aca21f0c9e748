"""Faults between a training and its store: what happens to the evaluation, and how long it takes.

PostgreSQL, S3 (moto), nginx and tracking servers are started as in the tests (tests/support/components.py). Components
that this machine lacks are left out and listed. Seconds are the time of log_evaluation, in a training that continues.
Then the fault is fixed, and `push` sends what waits. "complete" is checked in the store: the final tag, every metric
once, the files, one image with its thumbnail, one dataset.

python benchmarks/faults.py [--only TEXTS]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from select import select
from typing import Any

import mlflow
import requests
from measure import say, table

TESTS = Path(__file__).parent.parent / "tests"
sys.path.insert(0, str(TESTS))

from cmtrack import evaluate, load_evaluation, log_evaluation  # noqa: E402
from cmtrack.tracking import spool  # noqa: E402
from cmtrack.tracking.push import push  # noqa: E402
from cmtrack.tracking.store import quiet, tracking_store  # noqa: E402
from support.components import ADMIN, HOSTS, Company, Service, basic_auth, missing, nginx, state_of  # noqa: E402
from support.faults import HERE, PASS, FaultyProxy, ForwardProxy, SlowLink  # noqa: E402
from support.problems import random_problem  # noqa: E402

ROWS, CLASSES = 2_000, 7
NAMELESS = "mlflow.corp.invalid"
SILENT = "http://127.0.0.1:9"
TRAINING = textwrap.dedent("""
    import json, os, sys, time, warnings
    warnings.simplefilter("ignore")
    sys.path.insert(0, os.environ["CMTRACK_TESTS"])
    import mlflow
    from support.problems import random_problem
    from cmtrack import evaluate, log_evaluation
    y, _, p = random_problem(0, n=2000, k=7)
    evaluate(y, y_prob=p).metrics
    mlflow.set_tracking_uri(sys.argv[1])
    exec(os.environ.get("CMTRACK_BEFORE", ""))
    print("begins", flush=True)
    start = time.monotonic()
    logged = log_evaluation(y, y_prob=p, run_id=sys.argv[2])
    print(json.dumps([logged.status, time.monotonic() - start]), flush=True)
""")
"""A training script; it runs CMTRACK_BEFORE before the evaluation."""

Result = tuple[str, float | None]
FAULTS: dict[str, tuple[tuple[str, ...], Callable[[Company], Result]]] = {}


def fault(
    name: str, *needed: str
) -> Callable[[Callable[[Company], Result]], Callable[[Company], Result]]:
    """Add a scenario to the table; ``needed``: its components in addition to PostgreSQL and S3."""

    def enter(scenario: Callable[[Company], Result]) -> Callable[[Company], Result]:
        FAULTS[name] = (needed, scenario)
        return scenario

    return enter


# -- what every scenario does ----------------------------------------------------------------------------------------


def new_run(experiment: str = "0") -> str:
    return str(mlflow.MlflowClient().create_run(experiment).info.run_id)


def logged(uri: str, run_id: str, rows: int = ROWS) -> Result:
    """Log in this process."""
    y, _, p = random_problem(0, n=rows, k=CLASSES)
    evaluation = evaluate(y, y_prob=p)
    evaluation.metrics  # noqa: B018
    with tracking_store(uri), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.monotonic()
        done = log_evaluation(evaluation, run_id=run_id)
        return done.status, time.monotonic() - start


def training(
    uri: str,
    run_id: str,
    before: str = "",
    within: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    script: str = TRAINING,
) -> subprocess.Popen[str]:
    """Start a training script that logs; it has printed "begins" when this returns."""
    process = subprocess.Popen(
        [*within, sys.executable, "-W", "ignore", "-c", script, uri, run_id],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "PYTHONPATH": HERE,
            "CMTRACK_TESTS": str(TESTS),
            "CMTRACK_BEFORE": before,
            **(environment or {}),
        },
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "begins", process.communicate()[1]
    return process


def ended(process: subprocess.Popen[str]) -> Result:
    """Return what a training script reports about its evaluation."""
    out, err = process.communicate(timeout=300)
    if process.returncode != 0 or not out.strip():
        return f"training ended with {process.returncode}: {err.strip().splitlines()[-1:]}", None
    status, seconds = json.loads(out.splitlines()[-1])
    return str(status), float(seconds)


def checked(run_id: str) -> str:
    """Describe the contents of a run."""
    state = state_of(run_id)
    wrong = (
        []
        if state["tags"].get("cmtrack.status") == "completed"
        else [f"{len(state['metrics'])} metrics only"]
    )
    if any(points > 1 for points in state["metrics"].values()):
        wrong.append("metrics twice")
    wrong += [f"{state['images']} images"] * (state["images"] != 2) + ["no dataset"] * (
        state["datasets"] != 1
    )
    left_out = state["tags"].get("cmtrack.left_out")
    return ", ".join(wrong) or ("complete" if left_out is None else f"complete without {left_out}")


def there(run_id: str, problems: Sequence[str] = ()) -> str:
    """Describe the contents of a run after a push, with the problems that the push reported."""
    undone, state = ", ".join(problem.partition(":")[0] for problem in problems), checked(run_id)
    if state == "0 images" and "figure" in undone:
        state = "complete"
    return f"{state} without {undone}, which it names" if undone else state


def pushed(done: Result, run_id: str, **options: Any) -> Result:
    """Push what waits, and describe the contents of the run afterwards."""
    status, seconds = done
    if status == "completed":
        return checked(run_id), seconds
    if not spool.waiting():
        return (
            f"{status}; nothing in the spool: {'LOST' if status != 'saved' else checked(run_id)}",
            seconds,
        )
    answers, problems = [], []
    for _ in range(3):  # a server that has only just been started may be slower than push waits
        with quiet():
            done_now = push(**options)
        answers.append("; ".join(f"{entry.status} {entry.reason}".strip() for entry in done_now))
        problems += [problem for entry in done_now for problem in entry.problems]
        if not spool.waiting():
            break
    return f"spooled; push: {', again: '.join(answers)}: {there(run_id, problems)}", seconds


@contextlib.contextmanager
def somewhere() -> Iterator[Path]:
    """Yield a working folder, a home and a cache for one scenario; restore the environment afterwards."""
    before, folder = dict(os.environ), Path.cwd()
    home = Path(tempfile.mkdtemp(prefix="cmtrack-fault-"))
    try:
        os.chdir(home)
        os.environ.update(CMTRACK_CACHE=str(home / "cache"), XDG_DATA_HOME=str(home / "home"))
        yield home
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(home, ignore_errors=True)


# -- nothing fails ---------------------------------------------------------------------------------------------------


@fault("none, artifacts through the server")
def _none(company: Company) -> Result:
    run_id = new_run()
    return pushed(logged(company.url, run_id), run_id)


@fault("none, artifacts straight to S3")
def _straight(company: Company) -> Result:
    run_id = new_run(company.direct_experiment("straight"))
    return pushed(logged(company.url, run_id), run_id)


# -- what stands between ---------------------------------------------------------------------------------------------


def _nginx(name: str, rows: int, body: str, seconds: int = 60) -> None:
    @fault(f"nginx, {name}", "nginx")
    def scenario(company: Company) -> Result:
        run_id = new_run()
        with nginx(Path.cwd(), company.server.port, body=body, seconds=seconds) as before:
            return pushed(logged(before.url, run_id, rows), run_id)


_nginx("1 MB, 2,000 rows", 2_000, "1m")
_nginx("1 MB, 60,000 rows", 60_000, "1m")
_nginx("10 MB and 5 s, 60,000 rows", 60_000, "10m", 5)


@fault("nginx, 5 s, and the server answers nothing for 8 s", "nginx")
def _times_out(company: Company) -> Result:
    run_id = new_run()
    with nginx(Path.cwd(), company.server.port, body="10m", seconds=5) as before:
        proxy = FaultyProxy(before.port)
        proxy.fault = lambda method, path, _: (
            _pause(company.server, 8) if _once("pause", method == "PUT") else PASS
        )
        _once.cache.clear()
        try:
            done = ended(training(proxy.url, run_id))
            return pushed(done, run_id, tracking_uri=company.url)
        finally:
            proxy.close()


def _behind_nginx(seconds: float) -> None:
    @fault(f"nginx, 5 s, and each file takes the server {seconds:g} s", "nginx")
    def scenario(company: Company) -> Result:
        run_id, proxy = new_run(), FaultyProxy(company.server.port)
        proxy.fault = lambda method, *_: time.sleep(seconds) or PASS if method == "PUT" else PASS
        try:
            with nginx(Path.cwd(), int(proxy.url.rpartition(":")[2]), seconds=5) as before:
                return pushed(ended(training(before.url, run_id)), run_id, tracking_uri=company.url)
        finally:
            proxy.close()


for _seconds in (3, 7):
    _behind_nginx(_seconds)


def _pause(service: Service, seconds: float) -> str:
    def sleep() -> None:
        with service.silent():
            time.sleep(seconds)

    threading.Thread(target=sleep).start()
    time.sleep(0.2)
    return PASS


class _Once:
    def __init__(self) -> None:
        self.cache: set[str] = set()

    def __call__(self, name: str, now: bool) -> bool:
        if not now or name in self.cache:
            return False
        self.cache.add(name)
        return True


_once = _Once()


@fault("a network of 50 kB/s")
def _slow(company: Company) -> Result:
    run_id, link = new_run(), SlowLink(company.server.port, 50e3)
    try:
        return pushed(ended(training(link.url, run_id)), run_id, tracking_uri=company.url)
    finally:
        link.close()


@fault("an HTTP proxy that alone knows the server")
def _proxy(company: Company) -> Result:
    run_id, proxy = new_run(), ForwardProxy({NAMELESS: company.server.port})
    for name in ("NO_PROXY", "HTTP_PROXY"):
        os.environ.pop(name, None)
    try:
        environment = {"http_proxy": proxy.url, "no_proxy": "127.0.0.1"}
        return pushed(
            ended(training(f"http://{NAMELESS}", run_id, environment=environment)),
            run_id,
            tracking_uri=company.url,
        )
    finally:
        proxy.close()


@fault("server down")
def _down(company: Company) -> Result:
    run_id = new_run()
    return pushed(logged(SILENT, run_id), run_id, tracking_uri=company.url)


@fault("a server whose name nobody knows")
def _nameless(company: Company) -> Result:
    run_id = new_run()
    return pushed(logged(f"http://{NAMELESS}", run_id), run_id, tracking_uri=company.url)


# -- passwords -------------------------------------------------------------------------------------------------------


def _auth(name: str, user: str, password: str) -> None:
    @fault(f"basic-auth, {name}", "basic-auth")
    def scenario(company: Company) -> Result:
        with guarded(company) as server:
            be("writer", "password-of-writer")
            with tracking_store(server.url):
                run_id = new_run(mlflow.MlflowClient().create_experiment(f"guarded, {name}"))
                be(user, password)
                done = logged(server.url, run_id)
                be("writer", "password-of-writer")
                return pushed(done, run_id)


_auth("who may write", "writer", "password-of-writer")
_auth("who may only read", "reader", "password-of-reader")
_auth("a wrong password", "writer", "guessed-wrongly")
_auth("no password", "", "")


def be(user: str, password: str) -> None:
    os.environ.update(MLFLOW_TRACKING_USERNAME=user, MLFLOW_TRACKING_PASSWORD=password)
    if not user:
        del os.environ["MLFLOW_TRACKING_USERNAME"], os.environ["MLFLOW_TRACKING_PASSWORD"]


_servers = contextlib.ExitStack()
_guarded: list[Service] = []


@contextlib.contextmanager
def guarded(company: Company) -> Iterator[Service]:
    """Yield one server with passwords for all scenarios; it ends with the script."""
    if not _guarded:
        folder = company.folder / "guarded"
        folder.mkdir()
        _guarded.append(_servers.enter_context(basic_auth(folder, *HOSTS, **company.stores)))
        for name in ("reader", "writer"):
            user = {"username": name, "password": f"password-of-{name}"}
            url = f"{_guarded[0].url}/api/2.0/mlflow/users/create"
            requests.post(url, json=user, auth=ADMIN).raise_for_status()
    yield _guarded[0]


# -- components that are killed, or hang -----------------------------------------------------------------------------


def _killed(name: str, who: Callable[[Company], Service], call: int) -> None:
    @fault(f"{name} kill -9 at request {call}")
    def scenario(company: Company) -> Result:
        run_id, service, proxy = new_run(), who(company), FaultyProxy(company.server.port)

        def kill(*request: Any) -> str:
            if request[2] == call:
                service.kill()
            return PASS

        proxy.fault = kill
        try:
            done = ended(training(proxy.url, run_id))
            service.start()
            proxy.fault = lambda *_: PASS
            return pushed(done, run_id)
        finally:
            proxy.close()
            if service.killed:
                service.start()


for _call in (2, 6, 12):
    _killed("MLflow's server", lambda company: company.server, _call)
for _call in (4, 12):
    _killed("PostgreSQL", lambda company: company.cluster, _call)


@fault("S3 hangs, artifacts straight to it")
def _hangs(company: Company) -> Result:
    run_id = new_run(company.direct_experiment("hangs"))
    with company.store.silent():
        done = ended(training(company.url, run_id))
    return pushed(done, run_id)


@fault("S3 hangs, artifacts through the server")
def _hangs_behind(company: Company) -> Result:
    run_id = new_run()
    with company.store.silent():
        done = ended(training(company.url, run_id))
    return pushed(done, run_id)


# -- this machine ----------------------------------------------------------------------------------------------------


def _full(name: str, up: bool) -> None:
    @fault(f"spool on a full disk, {name}")
    def scenario(company: Company) -> Result:
        disk, run_id = Path("disk").absolute(), new_run()
        disk.mkdir()
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)],
            check=True,
            capture_output=True,
        )
        try:
            os.environ["CMTRACK_SPOOL"] = str(disk / "spool")
            return pushed(
                logged(company.url if up else SILENT, run_id), run_id, tracking_uri=company.url
            )
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)


_full("server up", True)
_full("server down", False)


def _read_only(name: str, user: int) -> None:
    @fault(f"working folder read-only, {name}, server down")
    def scenario(company: Company) -> Result:
        if os.getuid() != 0:
            return "not run: needs root to become others", None
        run_id, home = new_run(), Path("home").absolute()
        home.mkdir(exist_ok=True)
        os.chmod(".", 0o755)
        os.chown(home, user, user)
        become = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]
        environment = {"XDG_DATA_HOME": str(home), "HOME": str(home), "MPLCONFIGDIR": str(home)}
        done = ended(training(SILENT, run_id, within=become, environment=environment))
        os.environ["XDG_DATA_HOME"] = str(home)
        return pushed(done, run_id, tracking_uri=company.url)


_read_only("one user", 12345)
_read_only("another user after it", 12346)


STOP = """
def stop(*_, **__): print('there', flush=True); time.sleep(600)
import cmtrack.tracking.{} as part; part.{} = stop
"""
"""Stops a training script at a function of ``cmtrack.tracking``, and reports when it is there."""


def _signalled(name: str, sign: signal.Signals, moment: str, module: str, function: str) -> None:
    @fault(f"{name} {moment}")
    def scenario(company: Company) -> Result:
        run_id = new_run()
        process = training(company.url, run_id, STOP.format(module, function))
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "there"
        process.send_signal(sign)
        process.communicate(timeout=120)
        if function == "evaluated" and not spool.waiting() and not state_of(run_id)["tags"]:
            return "there was no evaluation yet, and nothing is left of it", None
        return pushed(("killed", None), run_id)[0], None


for _name, _sign in (
    ("Ctrl-C", signal.SIGINT),
    ("SIGTERM", signal.SIGTERM),
    ("SIGKILL", signal.SIGKILL),
):
    _signalled(_name, _sign, "while it is computed", "log", "evaluated")
    _signalled(_name, _sign, "at the figures", "contents", "_draw")
    _signalled(_name, _sign, "while it is sent, after its metrics", "send", "_optional")


@fault("SIGKILL as process 1 of a container, at the figures")
def _container(company: Company) -> Result:
    run_id = new_run()
    container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    process = training(company.url, run_id, STOP.format("contents", "_draw"), container)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "there"
    process.kill()
    process.communicate()
    return pushed(("killed", None), run_id)


def _memory(megabytes: int) -> None:
    @fault(f"ulimit -v, {megabytes} MB above what the training has")
    def scenario(company: Company) -> Result:
        run_id = new_run()
        limit = (
            "import resource, cmtrack.plots\n"
            "size = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
            f"resource.setrlimit(resource.RLIMIT_AS, (size + ({megabytes} << 20),) * 2)"
        )
        return pushed(ended(training(company.url, run_id, limit)), run_id)


for _megabytes in (400, 100, 20):
    _memory(_megabytes)


SKEW = "real = time.time; time.time = lambda: real() {} 365 * 86400"


def _clock(name: str, sign: str) -> None:
    @fault(f"the clock is a year {name}")
    def scenario(company: Company) -> Result:
        run_id = new_run()
        return pushed(ended(training(company.url, run_id, SKEW.format(sign))), run_id)


_clock("ahead", "+")
_clock("behind", "-")


# -- many at once ----------------------------------------------------------------------------------------------------


@fault("16 processes at once")
def _sixteen(company: Company) -> Result:
    ids = [new_run() for _ in range(16)]
    wait = "import pathlib\nprint('ready', flush=True)\nwhile not pathlib.Path('go').exists(): time.sleep(0.05)"
    started = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", TRAINING, company.url, run_id],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": HERE,
                "CMTRACK_TESTS": str(TESTS),
                "CMTRACK_BEFORE": wait,
            },
        )
        for run_id in ids
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
    Path("go").touch()
    seconds = [
        json.loads(process.communicate(timeout=580)[0].splitlines()[-1])[1] for process in started
    ]
    waiting = len(spool.waiting())
    with quiet():
        push()
    found = [checked(run_id) for run_id in ids]
    return f"{found.count('complete')} of 16 complete, {waiting} of them by push", max(seconds)


@fault("8 workers forked while a thread logs")
def _forked(company: Company) -> Result:
    ids = [new_run() for _ in range(8)]
    fork = (
        "import threading\n"
        "import cmtrack.tracking.contents as contents\n"
        f"ids = {ids!r}\n"
        "draw, drawing = contents._draw, threading.Event()\n"
        "contents._draw = lambda *given: (drawing.set(), draw(*given))\n"
        "busy = threading.Thread(target=lambda: log_evaluation(y, y_prob=p, run_id=sys.argv[2])); busy.start()\n"
        "drawing.wait()  # it imports what draws, and then draws\n"
        "workers = []\n"
        "for one in ids:\n"
        "    workers.append(os.fork())\n"
        "    if not workers[-1]:\n"
        "        os._exit(0 if log_evaluation(y, y_prob=p, run_id=one).status == 'completed' else 1)\n"
        "for worker in workers: os.waitpid(worker, 0)\n"
        "busy.join()\n"
    )
    run_id = new_run()
    process = training(company.url, run_id, fork)
    _, seconds = ended(process)
    waiting = len(spool.waiting())
    with quiet():
        push()
    found = [checked(one) for one in ids]
    return f"{found.count('complete')} of 8 complete, {waiting} of them by push", seconds


LOGS, KILLS = 40, 9
MANY = f"""
n = {LOGS}
for number, one in enumerate(os.environ["CMTRACK_RUNS"].split()):
    y, _, p = random_problem(number, n=120, k=3)
    sys.stdin.readline()
    start = time.monotonic()
    print(json.dumps([log_evaluation(y, y_prob=p, run_id=one).status, time.monotonic() - start]), flush=True)
sys.exit()
"""


def _killed_often(name: str, who: Callable[[Company], Service], seed: int) -> None:
    @fault(f"{name} kill -9 {KILLS} times in {LOGS} logs (seed {seed})")
    def scenario(company: Company) -> Result:
        random, service, ids = Random(seed), who(company), [new_run() for _ in range(LOGS)]
        at = set(random.sample(range(1, LOGS - 1), KILLS))
        script = TRAINING.replace(
            'print("begins", flush=True)', f'print("begins", flush=True)\nexec({MANY!r})'
        )
        process = training(
            company.url, ids[0], environment={"CMTRACK_RUNS": " ".join(ids)}, script=script
        )
        assert process.stdin is not None
        assert process.stdout is not None
        done: list[tuple[str, float]] = []
        back = 0.0
        try:
            for number in range(LOGS):
                if number in at and service.killed:
                    time.sleep(max(0.0, back - time.monotonic()))
                    service.start()
                process.stdin.write("go\n")
                process.stdin.flush()
                if number in at:
                    time.sleep(random.uniform(0, 2))
                    service.kill()
                    back = time.monotonic() + random.uniform(0, 8)
                while (
                    service.killed
                    and not select([process.stdout], [], [], max(0.0, back - time.monotonic()))[0]
                ):
                    service.start()  # by this thread: it ends with the one that started it
                done.append(tuple(json.loads(process.stdout.readline())))
            code = process.wait(timeout=300)
        finally:
            if service.killed:
                service.start()
        assert code == 0, f"the training ended with {code}"
        waiting = len(spool.waiting())
        for _ in range(3):
            with quiet():
                push()
        found = [checked(one) for one in ids]
        for number, one in enumerate(ids):
            y, _, p = random_problem(number, n=120, k=3)
            if load_evaluation(one) != evaluate(y, y_prob=p):
                found[number] = "another evaluation"
        wrong = sorted({text for text in found if text != "complete"})
        at_once = sum(status == "completed" for status, _ in done)
        outcome = f"{LOGS}: {at_once} complete at once, {waiting} in the spool, {found.count('complete')} after push"
        return "; ".join(
            [outcome, *wrong, *[f"{len(spool.waiting())} left"] * bool(spool.waiting())]
        ), max(seconds for _, seconds in done)


for _seed in (1, 2, 3):
    _killed_often("PostgreSQL", lambda company: company.cluster, _seed)
    _killed_often("MLflow's server", lambda company: company.server, _seed)


PUSH = "from cmtrack.tracking.push import push; print(*(entry.status for entry in push({})))"


def _twice(name: str, copied: bool) -> None:
    @fault(f"two pushes at once, {name}")
    def scenario(company: Company) -> Result:
        run_id = new_run()
        _, seconds = logged(SILENT, run_id)
        folders = [Path("cmtrack_spool").absolute()] * 2
        if copied:
            folders[1] = Path("copy").absolute()
            shutil.copytree(*folders)
        both = []
        for folder in folders:
            code = PUSH.format(f"{str(folder)!r}, tracking_uri={company.url!r}")
            command = [sys.executable, "-W", "ignore", "-c", code]
            both.append(
                subprocess.Popen(
                    command,
                    stdout=subprocess.PIPE,
                    text=True,
                    env={**os.environ, "PYTHONPATH": HERE},
                )
            )
        answers = [process.communicate(timeout=200)[0].strip() or "nothing" for process in both]
        return f"{' and '.join(answers)}: {checked(run_id)}", seconds


_twice("of one spool", False)
_twice("of two copies of a spool", True)


def main() -> None:
    """Run the scenarios, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        default="",
        help="scenarios whose name holds one of these texts, with commas between",
    )
    words = [text.strip() for text in parser.parse_args().only.lower().split(",") if text.strip()]
    lacking = missing("postgresql", "s3")
    if lacking:
        raise SystemExit(f"this {lacking}")
    rows: list[tuple[str, str, str]] = []
    try:
        _all(words, rows)
    finally:  # also where it is cut short
        table(("fault", "outcome", "seconds"), rows)


def _all(words: Sequence[str], rows: list[tuple[str, str, str]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        Company(Path(folder)) as company,
        _servers,
        quiet(),
    ):
        for name, (needed, scenario) in FAULTS.items():
            if words and not any(word in name.lower() for word in words):
                continue
            outcome, seconds = missing(*needed), None
            if not outcome:
                with somewhere(), tracking_store(company.url):
                    os.environ.update(company.reach)
                    try:
                        outcome, seconds = scenario(company)
                    except Exception as error:
                        outcome = f"the scenario failed: {type(error).__name__}: {error}"
            rows.append((name, outcome, "–" if seconds is None else f"{seconds:.1f}"))
            say(" | ".join(rows[-1]))


if __name__ == "__main__":
    main()
