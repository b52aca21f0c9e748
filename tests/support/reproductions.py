"""The fast mode of a reproduction, run as a user runs it but without the pictures of its MLflow runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from mlflow import MlflowClient
from mlflow.entities import Run

from support import ROOT
from support.scripts import environment_without, warm
from support.stores import sqlite_store

UNDRAWN = """
import runpy, sys
from pathlib import Path

from cmtrack.tracking import contents

contents._draw = lambda *_: None
sys.argv = sys.argv[1:]
sys.path[0] = str(Path(sys.argv[0]).parent)
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a script whose MLflow runs get reports without figures: these take most of the time and have separate tests."""


class FastRun(NamedTuple):
    """The results of a script: the folder of its report, the store, and its output on stderr."""

    name: str
    folder: Path
    store: str
    stderr: str

    @property
    def report(self) -> str:
        return (self.folder / "report.md").read_text(encoding="utf-8")

    @property
    def outcomes(self) -> dict[str, dict[str, str]]:
        """Return the rows of the overview by published item."""
        rows = json.loads((self.folder / "outcomes.json").read_text(encoding="utf-8"))["outcomes"]
        return {row["item"]: row for row in rows}

    def table(self, name: str, index_col: int | None = None) -> pd.DataFrame:
        """Return a table of the report."""
        return pd.read_csv(self.folder / f"{name}.csv", index_col=index_col)

    def runs(self) -> list[Run]:
        """Return the script's MLflow runs."""
        client = MlflowClient(self.store)
        return list(client.search_runs([client.get_experiment_by_name(self.name).experiment_id]))


def run_fast(name: str, output: Path, *without: str) -> FastRun:
    """Run ``examples/reproduce/<name>.py --fast`` `without` some environment variables; it must succeed."""
    output.mkdir(parents=True, exist_ok=True)
    store = output / "mlflow.db"
    if not store.exists():
        sqlite_store(store)
    script = ROOT / "examples" / "reproduce" / f"{name}.py"
    done = subprocess.run(
        warm("python", "-c", UNDRAWN, str(script), "--fast", "--output", str(output)),
        cwd=output.parent,
        env=environment_without(*without) | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return FastRun(name, output / "reports" / name, f"sqlite:///{store.as_posix()}", done.stderr)
