"""Change the code in small ways and see whether its tests notice: the share of mutants that they kill, by file.

Each mutant is one change of one expression or statement in a copy of the repository; the tests of its file run in a
process that is forked with the libraries already imported, until the first fails. A mutant that takes longer than
``--seconds`` counts as killed. The survivors are listed; the exit status is 1 where fewer than ``--least`` are killed.

python .ci/mutations.py [--each 30] [--only untrusted,inputs] [--seed 0] [--jobs 2] [--seconds 300] [--least 0.9]
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_STORED = ("tests/unit/evaluation/test_stored.py", "tests/properties/test_hostile.py")
_RUNS = ("tests/integration/tracking/test_tracking.py", "tests/integration/tracking/test_replacement.py")
_SPOOL = ("tests/integration/tracking/test_places.py", "tests/integration/tracking/test_hostile_spool.py", *_RUNS)
TESTS: dict[str, tuple[str, ...]] = {
    "cmtrack/untrusted.py": (
        "tests/unit/test_named_files.py", "tests/unit/report/test_unsafe_names.py",
        "tests/unit/comparison/test_bundle.py", *_STORED,
        "tests/integration/tracking/test_requests.py::test_an_address_that_is_none_of_a_folder_is_refused",
        "tests/integration/tracking/test_artifact_servers.py::test_a_reference_to_another_run_is_no_folder",
        "tests/integration/tracking/test_saved_views.py::test_a_version_of_a_server_is_not_trusted",
    ),
    "cmtrack/schemas.py": _STORED,
    "cmtrack/comparison/inference.py": (
        "tests/unit/comparison/test_inference.py", "tests/unit/comparison/test_compare.py",
        "tests/unit/comparison/test_differences.py", "tests/references/test_spec_vectors.py",
    ),
    "cmtrack/statistics/inputs.py": (
        "tests/unit/evaluation/test_inputs.py", "tests/unit/evaluation/test_bad_input.py",
        "tests/unit/evaluation/test_boundary.py", "tests/unit/metrics/test_weights.py",
    ),
    "cmtrack/tracking/log.py": _RUNS,
    "cmtrack/tracking/names.py": (*_RUNS, "tests/unit/test_names.py"),
    "cmtrack/tracking/send.py": _SPOOL,
    "cmtrack/tracking/spool.py": _SPOOL,
    "cmtrack/tracking/manifest.py": _SPOOL,
    "cmtrack/tracking/push.py": _SPOOL,
    "cmtrack/tracking/load.py": (*_RUNS, "tests/integration/tracking/test_rows_of_logged_runs.py"),
    "cmtrack/tracking/runs.py": ("tests/integration/tracking/test_compare_store.py", *_RUNS),
    "cmtrack/tracking/comparing.py": ("tests/integration/tracking/test_compare_store.py",),
    "cmtrack/tracking/regroup.py": ("tests/integration/tracking/test_regroup_runs.py",),
}  # fmt: skip
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
_SURVIVED = 0


@dataclass(frozen=True)
class Mutant:
    """One change of one file."""

    path: str
    line: int
    before: str
    after: str
    source: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one change; None where there is none to make."""
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in COMPARED:
        new.ops[0] = COMPARED[type(new.ops[0])]()
    elif isinstance(new, ast.BoolOp):
        new.op = ast.Or() if isinstance(new.op, ast.And) else ast.And()
    elif isinstance(new, ast.BinOp) and type(new.op) in COMPUTED and not isinstance(new.left, ast.JoinedStr):
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
    """Nodes that are no behaviour: annotations, decorators, and bases of classes."""
    outside: list[ast.AST | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            outside += [node.returns, *node.decorator_list]
        elif isinstance(node, ast.ClassDef):
            outside += [*node.bases, *node.decorator_list]
        elif isinstance(node, ast.arg | ast.AnnAssign):
            outside.append(node.annotation)
    return {id(inner) for node in outside if node is not None for inner in ast.walk(node)}


def mutants(path: str) -> Iterator[Mutant]:
    """Every mutant of a file."""
    source = (ROOT / path).read_bytes()
    tree = ast.parse(source)
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    outside = _left_out(tree)
    for node in ast.walk(tree):
        new = None if id(node) in outside or not hasattr(node, "lineno") else changed(node)
        if new is None:
            continue
        start = starts[node.lineno - 1] + node.col_offset
        stop = starts[node.end_lineno - 1] + node.end_col_offset
        text = ast.unparse(ast.fix_missing_locations(new))
        text = text if isinstance(new, ast.stmt) else f"({text})"
        whole = (source[:start] + text.encode() + source[stop:]).decode()
        try:
            ast.parse(whole)
        except SyntaxError:  # within an f-string of an older Python
            continue
        yield Mutant(path, node.lineno, source[start:stop].decode(), text, whole)


def run_tests(folder: Path, tests: tuple[str, ...]) -> int:
    """Run tests in the copy, in this process; pytest's exit status."""
    import pytest

    os.chdir(folder)
    os.setsid()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.environ["PYTHONPATH"] = os.pathsep.join(map(str, (folder, folder / "integrations", folder / "tests")))
    sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)
    return int(pytest.main(["-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]))


def fork(folder: Path, tests: tuple[str, ...]) -> int:
    """Start :func:`run_tests` in a child; its process number."""
    child = os.fork()
    if child:
        return child
    status = 3
    try:
        status = run_tests(folder, tests)
    finally:
        os._exit(status)


def judged(chosen: list[Mutant], folders: list[Path], seconds: float) -> Iterator[tuple[Mutant, int]]:
    """Each mutant with the exit status of its tests, as they end."""
    waiting, free = list(reversed(chosen)), list(folders)
    running: dict[int, tuple[Mutant, Path, float]] = {}
    while waiting or running:
        while waiting and free:
            mutant, folder = waiting.pop(), free.pop()
            (folder / mutant.path).write_text(mutant.source)
            running[fork(folder, TESTS[mutant.path])] = (mutant, folder, time.monotonic() + seconds)
        ended = 0
        while not ended:
            time.sleep(0.2)
            ended, status = os.waitpid(-1, os.WNOHANG)
            for child, (_, _, deadline) in running.items():
                if not ended and time.monotonic() > deadline:
                    os.killpg(child, signal.SIGKILL)
        mutant, folder, _ = running.pop(ended)
        shutil.copyfile(ROOT / mutant.path, folder / mutant.path)
        free.append(folder)
        yield mutant, os.waitstatus_to_exitcode(status)


def main() -> int:
    """Print the survivors and a table; 1 where too few are killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--each", type=int, default=30, help="mutants of a file, at most")
    parser.add_argument("--only", default="", help="parts of paths, by comma")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--least", type=float, default=0.9)
    options = parser.parse_args()
    paths = [path for path in TESTS if any(part in path for part in options.only.split(","))]
    chosen: list[Mutant] = []
    for path in paths:
        every = list(mutants(path))
        chosen += random.Random(options.seed).sample(every, min(options.each, len(every)))
    import hypothesis  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import mlflow  # noqa: F401
    import pandas as pd  # noqa: F401
    import pytest  # noqa: F401
    import scipy.stats  # noqa: F401
    import sklearn.metrics  # noqa: F401

    sys.dont_write_bytecode = True  # two mutants of one second would share a compiled file
    os.environ.update(PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg", MLFLOW_DISABLE_TELEMETRY="true")
    results: dict[str, list[int]] = {path: [] for path in paths}
    with tempfile.TemporaryDirectory() as room:
        folders = [Path(room) / str(job) for job in range(options.jobs)]
        for folder in folders:
            shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", "__pycache__", "mlruns", "*.db"))
        untouched = [Mutant(path, 0, "", "", (ROOT / path).read_text()) for path in paths]
        failing = [mutant.path for mutant, status in judged(untouched, folders, options.seconds) if status]
        if failing:
            print(f"the tests of {', '.join(failing)} must pass before anything is changed")
            return 2
        for mutant, status in judged(chosen, folders, options.seconds):
            results[mutant.path].append(status)
            if status == _SURVIVED:
                print(f"survives: {mutant}", flush=True)
    print("\n| file | mutants | killed | share |\n|---|---|---|---|")
    results["all"] = [status for statuses in results.values() for status in statuses]
    for path, statuses in results.items():
        killed = sum(status != _SURVIVED for status in statuses)
        print(f"| {path} | {len(statuses)} | {killed} | {killed / max(len(statuses), 1):.2f} |")
    every = results["all"]
    return int(sum(status != _SURVIVED for status in every) < options.least * len(every))


if __name__ == "__main__":
    sys.exit(main())
