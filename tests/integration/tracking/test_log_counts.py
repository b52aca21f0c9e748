"""``log_counts``: files, metrics and steps in a run, and what happens if the store fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlflow
import numpy as np
import pytest

from cmtrack import estimate_prevalence, log_counts
from cmtrack.prevalence.domains import DomainPrevalence
from cmtrack.tracking import EvaluationWarning, tracking_store
from support.stores import sqlite_store


def counted(**by: Any) -> DomainPrevalence:
    """Cells of 3,000 rows, of which 600 are labelled."""
    rng = np.random.default_rng(0)
    columns = {name: rng.choice(values, 3_000) for name, values in by.items()}
    score = rng.random(3_000)
    y = rng.random(3_000) < score
    return estimate_prevalence(
        score[600:],
        by={name: column[600:] for name, column in columns.items()},
        calibration=(y[:600], score[:600]),
        calibration_by={name: column[:600] for name, column in columns.items()},
        positive=True,
    )


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    with tracking_store(sqlite_store(tmp_path / "mlflow.db")) as uri:
        yield uri


def started_run() -> Any:
    """A run of the default experiment, whatever experiment other tests have set."""
    return mlflow.start_run(experiment_id="0")


def history(run_id: str, name: str) -> list[tuple[int, float]]:
    metrics = mlflow.MlflowClient().get_metric_history(run_id, name)
    return [(metric.step, metric.value) for metric in metrics]


def test_a_run_gets_the_files_and_a_metric_with_a_step_for_each_year(store: str) -> None:
    table = counted(region=["east", "north"], year=[2017, 2018])
    with started_run() as run:
        logged = log_counts(table)
    assert (logged.run_id, logged.path, logged.error) == (run.info.run_id, None, "")
    shares = table.to_frame().set_index(["region", "year"])["value"]
    for region in ("east", "north"):
        assert history(run.info.run_id, f"count/{region}/share") == [
            (year, shares[region, year]) for year in (2017, 2018)
        ]
    folder = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id))
    assert {path.name for path in folder.iterdir()} == {"counts.html", "counts.json"}
    read = DomainPrevalence.from_dict(json.loads((folder / "counts.json").read_text("utf-8")))
    change = (("east", 2017), ("east", 2018))
    assert read.change(*change) == table.change(*change)
    assert table.lead in (folder / "counts.html").read_text("utf-8")


def test_cells_without_a_number_are_no_metrics_and_names_are_legal(store: str) -> None:
    table = counted(region=["a/b", "north"])
    with started_run() as run:
        log_counts(table)
    names = set(mlflow.get_run(run.info.run_id).data.metrics)
    assert names == {"count/a_u2f_b/share", "count/north/share"}


def test_more_than_50_cells_are_no_metrics(store: str) -> None:
    rng = np.random.default_rng(0)
    score = rng.random(9_000)
    cell = rng.integers(0, 60, 9_000)
    y = rng.random(9_000) < score
    options: dict[str, Any] = {"positive": True, "calibration": (y[:6_000], score[:6_000])}
    table = estimate_prevalence(
        score[6_000:], by={"cell": cell[6_000:]}, calibration_by={"cell": cell[:6_000]}, **options
    )
    assert table.to_frame()["value"].notna().sum() == 60
    with started_run() as run:
        log_counts(table)
    assert mlflow.get_run(run.info.run_id).data.metrics == {}


def test_a_failure_warns_and_keeps_the_files(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    table = counted(region=["east", "north"])
    with pytest.warns(EvaluationWarning, match="the counts were not logged: no run is active"):
        logged = log_counts(table)
    assert logged.run_id is None
    assert logged.path is not None
    assert logged.path.parent == tmp_path / "spool"
    assert {path.name for path in logged.path.iterdir()} == {"counts.html", "counts.json"}
    with pytest.warns(EvaluationWarning, match="the counts were not logged: no run is active"):
        assert log_counts(counted(region=["south"])).path != logged.path
    with pytest.warns(EvaluationWarning, match="needs a table by cell, got int"):
        assert log_counts(7).error == "not a table by cell"  # type: ignore[arg-type]
