"""The main paths with what a plain installation brings: no extra, no framework, no other table engine."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import tomllib
from importlib import import_module
from pathlib import Path

import mlflow
import pytest
from click.testing import CliRunner

import cmtrack
from cmtrack import (
    Evaluation,
    Grouping,
    compare,
    evaluate,
    evaluate_table,
    load_evaluation,
    log_evaluation,
)
from cmtrack.cli import main
from support import ROOT
from support.problems import random_problem

BARE = bool(os.environ.get("CMTRACK_BARE"))
"""True where .ci/minimal runs this file, in an environment that has nothing else."""
EXTRAS = {"ibis", "polars", "pyspark", "statsmodels"} | set(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
) - {"server", "test", "docs", "dev"}
PARTY = Grouping({"low": [0, 1], "high": [2]}, name="party")


@pytest.mark.skipif(not BARE, reason=".ci/minimal runs it in an empty environment")
def test_nothing_but_the_wheel_and_its_dependencies_is_here() -> None:
    assert [name for name in EXTRAS if importlib.util.find_spec(name)] == []
    assert ROOT not in Path(str(cmtrack.__file__)).parents


def test_every_public_name_can_be_had() -> None:
    rooms = [
        import_module(f"cmtrack.{found.name}") for found in pkgutil.iter_modules(cmtrack.__path__)
    ]
    for room in (cmtrack, *rooms):
        for name in getattr(room, "__all__", ()):
            assert getattr(room, name) is not None


@pytest.mark.slow
def test_evaluations_are_computed_saved_and_shown(tmp_path) -> None:
    y, _, p = random_problem(0, k=3)
    evaluation = evaluate(y, y_prob=p, grouping=PARTY)
    assert evaluation.metrics["multiclass/accuracy"] == (p.argmax(axis=1) == y).mean()
    assert Evaluation.load(evaluation.save(tmp_path)) == evaluation
    assert "multiclass/accuracy" in evaluation.to_frame().to_string()
    assert "</html>" in evaluation.report(tmp_path / "report.html").read_text(encoding="utf-8")


def test_tables_of_pandas_arrow_and_files_give_the_same(tmp_path) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    y, _, p = random_problem(1, k=3)
    frame = pd.DataFrame({"y": y, "guess": p.argmax(axis=1)})
    frame.to_parquet(tmp_path / "rows.parquet")
    expected = evaluate(y, p.argmax(axis=1)).metrics
    for table in (frame, pa.Table.from_pandas(frame), tmp_path / "rows.parquet"):
        assert evaluate_table(table, y_true="y", y_pred="guess").metrics == expected


@pytest.mark.slow
def test_runs_are_logged_compared_and_reviewed_from_the_command_line(store, tmp_path) -> None:
    for seed in range(2):
        p = random_problem(seed, k=3)[2]
        with mlflow.start_run(run_name=f"model {seed}") as run:
            logged = log_evaluation(
                random_problem(0, k=3)[0], y_prob=p, grouping=PARTY, strict=True
            )
        assert load_evaluation(run.info.run_id) == logged.evaluation
    ranked = compare(experiment_names=["e"], rank_by="multiclass/accuracy")
    assert len(ranked.to_frame()) == 2
    page = tmp_path / "review.html"
    done = CliRunner().invoke(
        main,
        [
            "review",
            "--tracking-uri",
            mlflow.get_tracking_uri(),
            "--experiment",
            "e",
            "--output",
            str(page),
        ],
    )
    assert done.exit_code == 0, done.output
    assert "model 0" in page.read_text(encoding="utf-8")
