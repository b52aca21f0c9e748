"""Check the main paths and the size of the light environment of docs/reference/install.md, for ``.ci/minimal``.

light.py MLFLOW FOLDER      the command that starts a server (from another environment), and a folder to create
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

MOST = 350e6
"""Most bytes of the installed packages, including the byte code that pip compiles."""
ABSENT = ("duckdb", "flask", "matplotlib", "pandas", "pyarrow", "sklearn", "sqlalchemy")


@contextmanager
def server(mlflow: str, folder: Path) -> Iterator[str]:
    """Yield a tracking server that answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    how = ("--workers", "1", "--backend-store-uri", f"sqlite:///{folder}/mlflow.db")
    artifacts = ("--artifacts-destination", str(folder / "artifacts"))
    process = subprocess.Popen(
        [mlflow, "server", "--port", str(port), *how, *artifacts], cwd=folder
    )
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def refused(what: Callable[[], object], install: str) -> None:
    """Check that an error of a call says in one sentence what to install."""
    sentence = ""
    try:
        what()
    except ImportError as error:
        sentence = str(error)
    assert sentence.endswith(f"pip install {install}"), f"{what} must name {install}: {sentence!r}"
    assert "\n" not in sentence


def check(mlflow_command: str, folder: Path) -> None:
    """Evaluate, log, load, compare, review and gate."""
    present = [name for name in ABSENT if find_spec(name)]
    assert not present, f"the environment is not light: {present}"
    packages = Path(sysconfig.get_path("purelib"))
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file())
    assert any(packages.rglob("*.pyc")), "the packages must be compiled, as pip does"
    assert size <= MOST, f"the packages must have at most {MOST / 1e6:.0f} MB, got {size / 1e6:.0f}"
    folder.mkdir()
    with server(mlflow_command, folder) as uri:
        os.environ.update(MLFLOW_TRACKING_URI=uri, CMTRACK_SPOOL=str(folder / "spool"))
        import mlflow
        import numpy as np
        from click.testing import CliRunner

        import cmtrack
        from cmtrack import compare, evaluate, load_evaluation, log_evaluation
        from cmtrack.cli import main

        random = np.random.default_rng(0)
        y = random.integers(3, size=400)
        mlflow.set_experiment("light")
        for skill in (1, 2):
            logits = random.normal(size=(400, 3)) + skill * (y[:, None] == np.arange(3))
            p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            with (
                mlflow.start_run(run_name=f"skill {skill}") as run,
                warnings.catch_warnings(record=True) as told,
            ):
                warnings.simplefilter("always")
                logged = log_evaluation(y, y_prob=p, strict=True)
            sentences = " ".join(str(one.message) for one in told)
            assert all(f"pip install {name}" in sentences for name in ("pyarrow", "matplotlib")), (
                sentences
            )
            files = {file.path for file in mlflow.MlflowClient().list_artifacts(run.info.run_id)}
            assert {"cmtrack_report.html", "cmtrack_classes.json"} <= files, sentences
            assert load_evaluation(run.info.run_id) == logged.evaluation
        ranked = compare(experiment_names=["light"], rank_by="multiclass/accuracy")
        assert getattr(ranked.best, "name", None) == "skill 2"
        assert "pip install matplotlib" in ranked.report(folder / "review.html").read_text(
            encoding="utf-8"
        )
        evaluation = evaluate(y, y_prob=p)
        page = evaluation.report(folder / "report.html").read_text(encoding="utf-8")
        assert all(f"pip install {name}" in page for name in ("matplotlib", "pandas"))
        page = (
            compare({"one": evaluation, "two": logged.evaluation})
            .report(folder / "two.html")
            .read_text("utf-8")
        )
        assert "pip install pandas" in page
        summary = folder / "summary.md"
        gate = (
            "gate",
            "--experiment",
            "light",
            "--latest",
            "--require",
            "multiclass/accuracy > 0.5",
        )
        assert CliRunner().invoke(main, [*gate, "--summary", str(summary)]).exit_code == 0
        assert "Gate: passed" in summary.read_text(encoding="utf-8")
        refused(evaluation.figures, "matplotlib")
        refused(evaluation.to_frame, "pandas")
        refused(lambda: cmtrack.evaluate_table, "pyarrow")
        refused(
            lambda: compare(experiment_names=["light"], tracking_uri=f"sqlite:///{folder}/x.db"),
            "mlflow",
        )
    print(f"light: {size / 1e6:.0f} MB, all that must work works")


if __name__ == "__main__":
    check(sys.argv[1], Path(sys.argv[2]))
