"""Exit codes of `cmtrack gate` on random gates, compared with those of cmtrack 0.2.

    python benchmarks/gate_codes.py [--old cd9a3d0c] [--cases 200]

The older code comes from the repository's history, by `git archive`. It logs runs to a new store, of which some are equal,
some differ in few rows, and one predicts a single class. Then each version checks the same random gates in a process of its
own. If no row differs from the baseline, 0.2 gave intervals without a width, and today such a gate is undecided. Exits with 1
if an exit code differs for any other reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from measure import say, table

ROOT = Path(__file__).parents[1]
RELEASE = "cd9a3d0c"
"""The commit of version 0.2.0, for which there is no tag."""
RUNS = {"same": (0, 0), "better": (60, 20), "alike": (40, 36), "worse": (20, 60), "few": (3, 1)}
"""Number of rows of 2,000 that only the run and only the baseline predicts correctly."""
METRICS = ("multiclass/accuracy", "binary/matthews_corrcoef", "binary/recall", "binary/precision")
PARTS = ("", ".low", ".high", ".abs", ".difference", ".difference.low", ".difference.high")
SIGNS = ("<", "<=", ">", ">=")

LOG = """
    import json, sys
    import mlflow
    import numpy as np
    from cmtrack import log_evaluation
    mlflow.set_tracking_uri(sys.argv[1])
    ids = {{}}
    runs = {runs!r}
    actual = np.arange(2000) % 2
    for name, (better, worse) in (runs | {{"base": (0, 0)}}).items():
        wrong = np.arange(2000) < 300
        wrong[:better] = False
        wrong[300 : 300 + worse] = True
        with mlflow.start_run() as run:
            log_evaluation(actual, np.where(wrong, 1 - actual, actual), positive=1)
        ids[name] = run.info.run_id
    with mlflow.start_run() as run:
        log_evaluation(actual, np.zeros(2000, dtype=int), positive=1)
    ids["constant"] = run.info.run_id
    print("result", json.dumps(ids))
"""
CHECK = """
    import json, sys, warnings
    warnings.simplefilter("ignore")
    from click.testing import CliRunner
    from cmtrack.cli import main
    ids = json.loads(sys.argv[3])
    codes = []
    for case in json.loads(open(sys.argv[2]).read()):
        arguments = ["gate", ids[case["run"]], "--against", ids["base"]]
        arguments += ["--tracking-uri", sys.argv[1]]
        for gate in case["gates"]:
            arguments += ["--require", gate]
        codes.append(CliRunner().invoke(main, arguments).exit_code)
    print("result", json.dumps(codes))
"""


def python(code: str, package: Path, *arguments: str) -> Any:
    """Run code with a version of the package in a process of its own, and return its result."""
    places = [str(package), str(package / "integrations")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = subprocess.run(
        command, env=environment, cwd=package, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    line = next(one for one in done.stdout.splitlines() if one.startswith("result "))
    return json.loads(line.removeprefix("result "))


def random_cases(rng: np.random.Generator, number: int) -> list[dict[str, Any]]:
    """Return runs with one to three random gates whose bounds are near the values."""
    cases = []
    for _ in range(number):
        gates = []
        for metric in rng.choice(METRICS, size=rng.integers(1, 4)).tolist():
            part = str(rng.choice(PARTS))
            # The baseline has 300 errors of 2,000 rows, which are evenly divided between classes.
            value = 0.7 if "matthews" in metric else 0.85
            around = 0.0 if "difference" in part else value
            bound = around + rng.choice([-0.02, -0.005, 0.0, 0.005, 0.02])
            gates.append(f"{metric}{part} {rng.choice(SIGNS)} {bound:.3f}")
        cases.append({"run": str(rng.choice([*RUNS, "constant"])), "gates": gates})
    return cases


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--old", default=RELEASE)
    parser.add_argument("--cases", type=int, default=200)
    given = parser.parse_args()
    cases = random_cases(np.random.default_rng(2), given.cases)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        old = scratch / "old"
        old.mkdir()
        archived = subprocess.run(
            ["git", "archive", given.old], cwd=ROOT, capture_output=True, check=True
        )
        subprocess.run(["tar", "x", "-C", str(old)], input=archived.stdout, check=True)
        uri = f"sqlite:///{scratch / 'mlflow.db'}"
        os.environ["MLFLOW_ARTIFACT_ROOT"] = str(scratch / "artifacts")
        ids = json.dumps(python(LOG.format(runs=RUNS), old, uri))
        path = scratch / "cases.json"
        path.write_text(json.dumps(cases))
        before, now = (python(CHECK, one, uri, str(path), ids) for one in (old, ROOT))
    for case, was, is_now in zip(cases, before, now, strict=True):
        if was != is_now:
            say(f"{case['run']} {'; '.join(case['gates'])}: {was} in 0.2, {is_now} now")
    counts = Counter(before)
    other = [
        case["run"] for case, was, is_now in zip(cases, before, now, strict=True) if was != is_now
    ]
    n_same = other.count("same")
    heads = ["cases", "equal", "no row differs", "other", "0 in 0.2", "1 in 0.2", "2 in 0.2"]
    numbers = [len(cases), len(cases) - len(other), n_same, len(other) - n_same]
    table(heads, [[str(number) for number in (*numbers, counts[0], counts[1], counts[2])]])
    raise SystemExit(int(n_same < len(other)))


if __name__ == "__main__":
    main()
