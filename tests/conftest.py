"""Shared fixtures: a tracking store per test, problems with known answers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Before NumPy and the frameworks: the workers of the suite are as many as the cores, and each counts with one thread.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import hypothesis  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from samples import sqlite_store  # noqa: E402

os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

# PySpark, which MLflow looks at, takes a main module without a file (xdist's workers) for its doctests, and exits.
if not hasattr(sys.modules["__main__"], "__file__"):
    sys.modules["__main__"].__file__ = __file__

# In CI the same examples every time: a red run is then about the change, and new examples are sought at the desk. No
# example is timed: how long it takes is a matter of what else the machine does.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None)
hypothesis.settings.register_profile("desk", deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow tests first, so that no worker is left with a long file in the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True)
def own_places(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test looks into, or writes into, the user's own data and cache folders, or an earlier test's experiment."""
    home = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("CMTRACK_CACHE", str(home / "cache"))
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "")  # so that what mlflow.set_experiment leaves there ends with the test
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A fresh SQLite store with one experiment; the working directory is the test's own."""
    import mlflow

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CMTRACK_SPOOL", raising=False)
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path / "cache"))
    from cmtrack.tracking.store import tracking_store

    with tracking_store(sqlite_store(tmp_path / "mlflow.db")):
        mlflow.create_experiment("e", artifact_location=(tmp_path / "artifacts").as_uri())
        mlflow.set_experiment("e")
        yield mlflow.MlflowClient()
        while mlflow.active_run():
            mlflow.end_run()


@pytest.fixture
def seven_classes() -> tuple[np.ndarray, np.ndarray]:
    """Labels (400,) and probabilities (400, 7) of a fair classifier."""
    rng = np.random.default_rng(7)
    y = rng.integers(0, 7, 400)
    logits = rng.normal(size=(400, 7))
    logits[np.arange(400), y] += 1.5
    p = np.exp(logits)
    return y, p / p.sum(axis=1, keepdims=True)
