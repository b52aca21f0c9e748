"""Count the instructions of evaluate, compare, log and import, here and at another commit; fail if they rise.

Instructions do not depend on other work of the machine, and hardly on the machine. ``perf`` counts them if it can read
the processor's counters, else valgrind does (which takes minutes). A repeated task is counted with two repetitions and
with one, and the difference is its cost. The exit status is 1 if a cost is more than ``--most`` times the other
commit's cost.

python .ci/instructions.py --against v0.2.0 [--most 1.05] [--only evaluate,import]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = """
import sys, warnings
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
y = rng.integers(0, {classes}, {rows})
def probabilities(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(({rows}, {classes})) + np.eye({classes})[y]
    return p / p.sum(axis=1, keepdims=True)
times = int(sys.argv[1])
"""
EVALUATE = (
    ROWS
    + """
from cmtrack import evaluate
p = probabilities(1)
for _ in range(times):
    evaluation = evaluate(y, y_prob=p)
    evaluation.metrics, evaluation.intervals, evaluation.warnings  # an evaluation is lazy
"""
)
COMPARE = (
    ROWS
    + """
from cmtrack import compare, evaluate
# Labels alone, because evaluating 200 runs with probabilities takes valgrind a quarter of an hour.
runs = {{f"run {{k}}": evaluate(y, probabilities(k).argmax(axis=1)) for k in range({runs})}}
for _ in range(times):
    compare(runs).to_frame()
"""
)
TASKS = {
    "import": "import cmtrack; cmtrack.evaluate",
    "evaluate": EVALUATE.format(rows=20_000, classes=11),
    "evaluate few": EVALUATE.format(rows=1_000, classes=2),
    "compare 20": COMPARE.format(rows=2_000, classes=3, runs=20),
    "compare 200": COMPARE.format(rows=500, classes=3, runs=200),
    "log": ROWS.format(rows=2_000, classes=2)
    + """
import mlflow
from cmtrack import log_evaluation
from cmtrack.tracking import deliver
deliver.PATIENCE = 3600.0  # a counted process may be fifty times slower: it would go on before the store has it all
mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("instructions")
p = probabilities(1)
for _ in range(times):
    with mlflow.start_run() as run:
        logged = log_evaluation(y, y_prob=p)
    if logged.status != "completed" or logged.problems:
        raise RuntimeError(f"{logged.status}: {logged.error} {logged.problems}")
    assert mlflow.get_run(run.info.run_id).data.tags["cmtrack.status"] == "completed"  # the store has it
""",
}


@contextmanager
def tree_at(commit: str) -> Iterator[Path]:
    """Yield a checkout of the commit, and remove it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["git", "worktree", "add", "-q", "--detach", folder, commit], cwd=ROOT, check=True
        )
        try:
            yield Path(folder)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", folder], cwd=ROOT, check=True)


def counted(command: list[str], environment: dict[str, str], folder: str) -> int:
    """Return the instructions of a process and its children."""
    with tempfile.NamedTemporaryFile("r", dir=folder) as said:
        if _counters_can_be_read():
            counter = ["perf", "stat", "-x,", "-e", "instructions:u", "-o", said.name]
            pattern = r"^(\d+),[^,]*,instructions"
        else:
            counter = [
                "valgrind",
                "--tool=cachegrind",
                "--cache-sim=no",
                "--cachegrind-out-file=/dev/null",
                "--trace-children=yes",
                f"--log-file={said.name}",
            ]
            pattern = r"I\s+refs:\s+([\d,]+)"
        subprocess.run(
            [*counter, *command], env=environment, cwd=folder, check=True, stdout=subprocess.DEVNULL
        )
        counts = re.findall(pattern, said.read(), re.MULTILINE)
    if not counts:
        raise RuntimeError(f"{counter[0]} counted nothing for {command[:2]}")
    return sum(int(count.replace(",", "")) for count in counts)


def _counters_can_be_read() -> bool:
    if shutil.which("perf") is None:
        return False
    tried = subprocess.run(
        ["perf", "stat", "-x,", "-e", "instructions:u", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return re.search(r"^\d+,", tried.stderr, re.MULTILINE) is not None


def cost(task: str, tree: Path) -> int:
    """Return the instructions of a task, run once with the package of this tree."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "PYTHONPATH": os.pathsep.join([str(tree), str(tree / "integrations")]),
    }
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", TASKS[task]]
        # compiles modules and builds caches
        subprocess.run([*command, "1"], env=environment, cwd=folder, check=True)
        once = counted([*command, "1"], environment, folder)
        return (
            once
            if "times" not in TASKS[task]
            else counted([*command, "2"], environment, folder) - once
        )


def main() -> int:
    """Print a table; return 1 if a task costs more than it may."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", default="HEAD~1", help="the commit to compare with")
    parser.add_argument("--most", type=float, default=1.05, help="times the instructions there")
    parser.add_argument("--only", default=",".join(TASKS), help="tasks, by comma")
    options = parser.parse_args()
    risen = []
    with tree_at(options.against) as before:
        print(f"| task | {options.against}, M instructions | here | ratio |\n|---|---|---|---|")
        for task in options.only.split(","):
            there, here = cost(task, before), cost(task, ROOT)
            print(
                f"| {task} | {there / 1e6:,.0f} | {here / 1e6:,.0f} | {here / there:.3f} |",
                flush=True,
            )
            if here > options.most * there:
                risen.append(task)
    if risen:
        print(
            f"{', '.join(risen)} must cost at most {options.most:g} times what it did at {options.against}"
        )
    return int(bool(risen))


if __name__ == "__main__":
    sys.exit(main())
