"""Change the code in small ways and see whether its tests notice: the share of mutants that they kill, by file.

Each mutant is one change of one expression or statement. The tests of a room are collected and run once, to learn which
test runs which line. Then, for each mutant, a fork replaces the changed function and runs the tests of its lines until
one fails: quick tests first, and tests that killed other mutants. A change outside of functions needs a new import of
the module. The file in a copy of the repository is also changed, for processes that tests start. A mutant that takes
longer than ``--seconds`` counts as killed. The survivors are listed. The exit status is 1 if fewer than ``--least`` are
killed.

python .ci/mutations.py [--each 30] [--only untrusted,inputs] [--seed 0] [--jobs 2] [--seconds 300] [--least 0.9]
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import gc
import importlib
import itertools
import json
import math
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("cmtrack/untrusted.py", "cmtrack/schemas.py"): (
        "cmtrack/untrusted.py",
        "tests/unit/test_untrusted.py",
        "tests/unit/test_named_files.py",
        "tests/unit/report/test_unsafe_names.py",
        "tests/unit/comparison/test_bundle.py",
        "tests/unit/evaluation/test_stored.py",
        "tests/properties/test_hostile.py",
        "tests/integration/tracking/test_requests.py",
        "tests/integration/tracking/test_artifact_servers.py",
        "tests/integration/tracking/test_saved_views.py",
    ),
    ("cmtrack/comparison/inference.py",): (
        "tests/unit/comparison/test_inference.py",
        "tests/unit/comparison/test_compare.py",
        "tests/unit/comparison/test_differences.py",
        "tests/references/test_spec_vectors.py",
    ),
    ("cmtrack/statistics/inputs.py",): (
        "tests/unit/evaluation/test_inputs.py",
        "tests/unit/evaluation/test_bad_input.py",
        "tests/unit/evaluation/test_boundary.py",
        "tests/unit/metrics/test_weights.py",
    ),
    tuple(
        sorted(str(path.relative_to(ROOT)) for path in (ROOT / "cmtrack/tracking").glob("*.py"))
    ): (
        "cmtrack/tracking",
        "tests/unit/tracking",
        "tests/unit/test_names.py",
        "tests/unit/report/test_review.py",
        "tests/integration/tracking",
        "tests/integration/hooks/test_evaluator_plugin.py",
    ),
}
"""Files, and the tests that should notice a change in them."""
COMPARED = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
COMPUTED = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
}
_NO_BEHAVIOUR = ("strict", "stacklevel", "ensure_ascii", "indent", "synced")
"""Arguments that claim equal lengths, set the line of a warning or the form of JSON, or wait for a disk."""
_ELSEWHERE = ("sys.platform == 'win32'", "os.name == 'nt'")
"""Conditions of code that no test can run on this system."""
_SURVIVED, _TOO_LONG = 0, -signal.SIGKILL
_MOST = 20.0
"""Most processor seconds of tests per mutant: slow tests rarely notice what quick ones do not."""


@dataclass(frozen=True)
class Mutant:
    """A change of a file; ``function``: the first line of the function around it, if any."""

    path: str
    line: int
    before: str
    after: str
    source: str
    lines: range = range(0)
    function: int | None = None

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"


def changed(node: ast.AST) -> ast.AST | None:
    """Return the node with one change; None if no change is possible."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in COMPARED:
        new.ops[0] = COMPARED[type(new.ops[0])]()
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
    elif (
        isinstance(new, ast.BinOp)
        and type(new.op) in COMPUTED
        and not isinstance(new.left, ast.JoinedStr)
    ):
        new.op = COMPUTED[type(new.op)]()
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not):
        return new.operand
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Constant) and isinstance(new.value, int):
        new.value += 1
    elif isinstance(new, ast.IfExp):
        new.test = ast.UnaryOp(ast.Not(), new.test)
    elif isinstance(new, ast.Raise):
        return ast.Pass()
    else:
        return None
    return new


def _left_out(tree: ast.AST) -> set[int]:
    """Return nodes without behaviour: annotations, decorators, bases, error messages, some arguments, other systems."""
    outside: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            outside += [node.returns, *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            outside += [*node.bases, *node.decorator_list]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            outside.append(node.annotation)
        elif isinstance(node, ast.arguments):
            several = node.args[len(node.args) - len(node.defaults) :] + node.kwonlyargs
            defaults = zip(several, [*node.defaults, *node.kw_defaults], strict=True)
            outside += [default for argument, default in defaults if argument.arg in _NO_BEHAVIOUR]
        elif isinstance(node, ast.If) and ast.unparse(node.test) in _ELSEWHERE:
            outside += node.body
        elif isinstance(node, ast.Raise):
            outside += [inner for inner in ast.walk(node) if isinstance(inner, ast.JoinedStr)]
        elif isinstance(node, ast.keyword) and node.arg in _NO_BEHAVIOUR:
            outside.append(node)
    return {id(inner) for node in outside if node is not None for inner in ast.walk(node)}


def _places(
    tree: ast.AST, statement: int = 1, function: int | None = None
) -> Iterator[tuple[ast.AST, int, int | None]]:
    """Yield each node, the first line of its statement, and the first line of the outermost function around it."""
    for name, value in ast.iter_fields(tree):
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                first = node.lineno if isinstance(node, ast.stmt) else statement
                inside = function
                if function is None and name == "body" and isinstance(tree, ast.FunctionDef):
                    inside = min(part.lineno for part in [tree, *tree.decorator_list])
                yield node, first, inside
                yield from _places(node, first, inside)


def mutants(path: str, most: int, seed: int) -> Iterator[Mutant]:
    """Yield a sample of the mutants of a file."""
    source = (ROOT / path).read_bytes()
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    outside = _left_out(tree)
    every = [
        place
        for place in _places(tree)
        if id(place[0]) not in outside and changed(place[0]) is not None
    ]
    for node, first, function in random.Random(seed).sample(every, min(most, len(every))):
        new = changed(node)
        start = starts[node.lineno - 1] + node.col_offset
        stop = starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(ast.fix_missing_locations(new))
        text = text if isinstance(new, ast.stmt) else f"({text})"
        whole = (source[:start] + text.encode() + source[stop:]).decode()
        try:
            ast.parse(whole)
        except SyntaxError:  # within an f-string of an older Python
            continue
        lines = range(first, node.end_lineno + 1)
        yield Mutant(path, node.lineno, source[start:stop].decode(), text, whole, lines, function)


def _functions(code: CodeType) -> Iterator[tuple[tuple[int, str], CodeType]]:
    """Yield the code of each function of a module or class, by its first line and name."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield (inner.co_firstlineno, inner.co_name), inner
            yield from _functions(inner)


def functions_of(paths: Iterable[str], folder: Path) -> dict[tuple[str, int], list[FunctionType]]:
    """Return the functions of modules, by file and first line."""
    for path in paths:
        importlib.import_module(
            path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        )
    gc.unfreeze()
    functions = defaultdict(list)
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(folder)):
            functions[one.__code__.co_filename, one.__code__.co_firstlineno].append(one)
    gc.freeze()
    return functions


def put_in_place(
    mutant: Mutant, file: Path, functions: dict[tuple[str, int], list[FunctionType]]
) -> None:
    """Give the functions of an imported module the code of the mutant."""
    codes = dict(_functions(compile(mutant.source, str(file), "exec")))
    for function in functions[str(file), mutant.function or 0]:
        function.__code__ = codes[mutant.function or 0, function.__code__.co_name]


@dataclass
class Room:
    """A plugin of pytest that runs the collected tests once, and then some of them for each mutant."""

    folder: Path
    chosen: list[Mutant]
    seconds: float
    out: TextIO
    reach: Path | None
    results: list[tuple[str, int]] = field(default_factory=list)
    passing: bool = True
    functions: dict[tuple[str, int], list[FunctionType]] = field(default_factory=dict)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Find out which test runs which line, then try every mutant."""
        items = {item.nodeid: item for item in session.items}
        reached = self.reach or self.folder / "reached.json"
        if not reached.exists() and _ended(
            self._forked(lambda: self._first(session, reached)), 3600
        ):
            self.passing = False
            return True
        seconds, lines, imported = json.loads(reached.read_text())
        for name in imported:  # once, instead of in every fork
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        self.passing = math.inf not in seconds.values()
        self.functions = functions_of({mutant.path for mutant in self.chosen}, self.folder)
        kills: Counter[str] = Counter()
        for mutant in self.chosen:
            runs = lines.get(mutant.path, {})
            names = {name for line in mutant.lines for name in runs.get(str(line), ())}
            if mutant.function is None:
                names = {name for line in runs.values() for name in line}
            names |= items.keys() - seconds.keys()
            order = sorted(
                names & items.keys(), key=lambda name: seconds.get(name, 0) / (1 + kills[name])
            )
            ends = itertools.accumulate(seconds.get(name, 0) for name in order)
            tests = [
                items[name]
                for place, (name, end) in enumerate(zip(order, ends, strict=True))
                if not place or end <= _MOST
            ]
            status, killer = self.judged(mutant, session, tests)
            kills[killer] += 1
            self.results.append((mutant.path, status))
            (self.folder / "results.json").write_text(json.dumps(self.results))
            if status in (_SURVIVED, _TOO_LONG):
                why = (
                    "takes too long"
                    if status
                    else "survives"
                    if tests
                    else "survives, run by no test"
                )
                print(f"{why}: {mutant}", file=self.out, flush=True)
        return True

    def judged(
        self, mutant: Mutant, session: pytest.Session, tests: list[pytest.Item]
    ) -> tuple[int, str]:
        """Return the exit status of a mutant's tests, and the test that failed."""
        import pytest

        file, note = self.folder / mutant.path, self.folder / "killer"
        unchanged = file.read_bytes()  # somebody may edit the repository in the meantime
        note.write_text("")
        file.write_text(mutant.source)

        def run() -> int:
            if mutant.function is None:
                for name in [
                    *sys.modules
                ]:  # import our modules again, but not the libraries, which take seconds
                    if (getattr(sys.modules[name], "__file__", None) or "").startswith(
                        str(self.folder)
                    ):
                        del sys.modules[name]
                return pytest.main([*_OPTIONS, "-x", *(test.nodeid for test in tests)])
            put_in_place(mutant, file, self.functions)
            return _run(session, tests, note)

        status = _ended(self._forked(run), self.seconds) if tests else _SURVIVED
        file.write_bytes(unchanged)
        return status, note.read_text()

    def _first(self, session: pytest.Session, reached: Path) -> int:
        """Run every test; write its seconds and lines. The lines of a fixture count for each of its users."""
        import coverage

        measured = coverage.Coverage(
            data_file=None,
            config_file=False,
            messages=False,
            include=[str(self.folder / "cmtrack/*")],
        )
        seconds: dict[str, float] = {}
        shared: dict[Any, list[str]] = defaultdict(list)
        measured.start()
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            start = sum(os.times()[:4])  # processor time, so that a busy machine leaves out no test
            measured.switch_context(item.nodeid)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds[item.nodeid] = round(sum(os.times()[:4]) - start, 3)
            fixtures = item._fixtureinfo.name2fixturedefs if hasattr(item, "_fixtureinfo") else {}
            for definition in (one for several in fixtures.values() for one in several[-1:]):
                if definition.scope != "function":
                    shared[definition].append(item.nodeid)
            if session.testsfailed:
                session.testsfailed, seconds[item.nodeid] = 0, math.inf
                print(
                    f"is left out, as it fails before anything is changed: {item.nodeid}",
                    file=self.out,
                    flush=True,
                )
        measured.stop()
        others = {users[0]: users for users in shared.values()}
        lines: dict[str, dict[int, list[str]]] = {}
        for file in measured.get_data().measured_files():
            by_line = measured.get_data().contexts_by_lineno(file)
            lines[str(Path(file).relative_to(self.folder))] = {
                line: sorted({user for name in names for user in others.get(name, [name])})
                for line, names in by_line.items()
            }
        reached.write_text(
            json.dumps([seconds, lines, [name for name in sys.modules if name != "__main__"]])
        )
        return 0

    def _forked(self, work: Any) -> int:
        child = os.fork()
        if child:
            return child
        status = 3
        try:
            os.setsid()
            status = work()
        finally:
            os._exit(status)


def _run(session: pytest.Session, tests: list[pytest.Item], note: Path) -> int:
    """Run tests until one fails; return whether one failed."""
    for item, following in zip(tests, [*tests[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            note.write_text(item.nodeid)
            session._setupstate.teardown_exact(None)  # servers end
            return 1
    return 0


def _ended(child: int, seconds: float) -> int:
    """Return the exit status of a child, and end it with all its processes if it takes longer."""
    deadline = time.monotonic() + seconds
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)


_OPTIONS = (
    "-q",
    "-n",
    "0",
    "-p",
    "no:cacheprovider",
    "-m",
    "not spark and not browser and not components",
)


def judged(
    folder: Path,
    tests: tuple[str, ...],
    chosen: list[Mutant],
    options: argparse.Namespace,
    out: TextIO,
) -> int:
    """Collect a room's tests in the copy and try its mutants; return 0 if that was possible."""
    import pytest

    os.chdir(folder)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        map(str, (folder, folder / "integrations", folder / "tests"))
    )
    sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)
    room = Room(folder, chosen, options.seconds, out, options.reach)
    pytest.main([*_OPTIONS, f"--basetemp={folder}/temporary", *tests], plugins=[room])
    return 0 if room.passing and len(room.results) == len(chosen) else 2


def main() -> int:
    """Print the survivors and a table; return 1 if too few are killed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=30, help="mutants of a file, at most")
    parser.add_argument("--only", default="", help="parts of paths, by comma")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--least", type=float, default=0.9)
    parser.add_argument(
        "--reach", type=Path, help="file of which test of one room runs what: read, or else written"
    )
    options = parser.parse_args()
    import hypothesis  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import mlflow  # noqa: F401
    import pandas as pd  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.metrics  # noqa: F401

    sys.dont_write_bytecode = True  # two mutants of one second would share a compiled file
    os.environ.update(
        PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg", MLFLOW_DISABLE_TELEMETRY="true", CI="1"
    )
    results: dict[str, list[int]] = {}
    out = os.fdopen(os.dup(1), "w")
    wrong = False
    with tempfile.TemporaryDirectory() as place:
        waiting: list[tuple[Path, tuple[str, ...], list[Mutant]]] = []
        for paths, tests in ROOMS.items():
            chosen: list[Mutant] = []
            for path in (
                path for path in paths if any(part in path for part in options.only.split(","))
            ):
                chosen += mutants(path, options.each, options.seed)
                results[path] = []
            if chosen:
                waiting.append((Path(place).resolve() / str(len(waiting)), tests, chosen))
        rooms = [folder for folder, _, _ in waiting]
        running = 0
        while waiting or running:
            while waiting and running < options.jobs:
                folder, tests, chosen = waiting.pop(0)
                shutil.copytree(
                    ROOT,
                    folder,
                    ignore=shutil.ignore_patterns(".git", "__pycache__", "mlruns", "*.db"),
                )
                if not os.fork():
                    status = 3
                    try:
                        status = judged(folder, tests, chosen, options, out)
                    finally:
                        os._exit(status)
                running += 1
            wrong |= os.wait()[1] != 0
            running -= 1
        for folder in rooms:
            if (folder / "results.json").exists():
                for path, status in json.loads((folder / "results.json").read_text()):
                    results[path].append(status)
    print("\n| file | mutants | killed | share |\n|---|---|---|---|")
    results["all"] = [status for statuses in results.values() for status in statuses]
    for path, statuses in results.items():
        killed = sum(status != _SURVIVED for status in statuses)
        print(f"| {path} | {len(statuses)} | {killed} | {killed / max(len(statuses), 1):.2f} |")
    every = results["all"]
    return (
        2
        if wrong
        else int(sum(status != _SURVIVED for status in every) < options.least * len(every))
    )


if __name__ == "__main__":
    sys.exit(main())
