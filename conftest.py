"""Surroundings of every test and of every example in a docstring: places of its own, and a tracking store."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

# Before NumPy and the frameworks: the workers of the suite are as many as the cores, and each counts with one thread.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")

import pandas  # noqa: E402, F401  # xdist's threads would import it, all at once, when workers send its warnings
import pytest  # noqa: E402

from support.stores import sqlite_store  # noqa: E402

# PySpark, which MLflow looks at, takes a main module without a file (xdist's workers) for its doctests, and exits.
if not hasattr(sys.modules["__main__"], "__file__"):
    sys.modules["__main__"].__file__ = __file__


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Leave what collecting imports out of garbage collection: each round looks at 600,000 objects that stay anyway.

    What tests leave is looked at seldom, which spares a fourteenth of their processor time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


@pytest.fixture(autouse=True, scope="session")
def own_fonts() -> None:
    """Matplotlib draws with the fonts that it brings: those of a machine would change where names are cut."""
    from matplotlib import font_manager, get_data_path

    listed = font_manager.fontManager.ttflist
    font_manager.fontManager.ttflist = [
        font for font in listed if font.fname.startswith(get_data_path())
    ]
    font_manager.findSystemFonts = lambda *_, **__: []


@pytest.fixture(autouse=True)
def own_places(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """No test looks into, or writes into, the user's own data and cache folders, or an earlier test's experiment.

    Reports of steps that wait end with it: their store does.
    """
    home = tmp_path_factory.getbasetemp() / "home"
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("CMTRACK_CACHE", str(home / "cache"))
    # so that what mlflow.set_experiment leaves there ends with the test
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", "")
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID")
    yield
    if "cmtrack.tracking.steps" in sys.modules:
        sys.modules["cmtrack.tracking.steps"].forget()
    if "cmtrack.tracking.deliver" in sys.modules:
        sys.modules["cmtrack.tracking.deliver"].silences.forget()


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


USES_A_STORE = (
    "mlflow",
    "log_",
    "cmtrack.compare",
    "regroup_runs",
    "segment_runs",
    "load_evaluation",
)


@pytest.fixture(autouse=True)
def example_places(request: pytest.FixtureRequest, own_places: None) -> Iterator[None]:
    """An example in a docstring runs in an empty folder, and may log runs."""
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    code = "".join(example.source for example in request.node.dtest.examples)
    if any(word in code for word in USES_A_STORE):
        request.getfixturevalue("store")
    else:
        request.getfixturevalue("monkeypatch").chdir(request.getfixturevalue("tmp_path"))
    yield
