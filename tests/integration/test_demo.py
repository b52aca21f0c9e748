"""The demo and the examples, end to end on real data."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from support import ROOT
from support.scripts import environment_without, warm
from support.stores import sqlite_store

pytest.importorskip("statsmodels")

from cmtrack import load_evaluation
from cmtrack.cli import main
from cmtrack.demo import EXPERIMENT, FEATURES, RANK_BY, DemoResult, load, models, question, run_demo
from cmtrack.tracking import digests

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    before = os.environ.get("MLFLOW_TRACKING_URI")
    done = run_demo(tmp_path_factory.mktemp("with a space") / "demo", quick=True)
    assert os.environ.get("MLFLOW_TRACKING_URI") == before
    return done


def test_each_model_is_a_complete_run(demo: DemoResult) -> None:
    from mlflow import MlflowClient

    client = MlflowClient(demo.tracking_uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    runs = client.search_runs([experiment.experiment_id], "tags.cmtrack.status = 'completed'")
    assert {run.info.run_id for run in runs} == {run.run_id for run in demo.runs}
    for run in runs:
        assert run.info.status == "FINISHED"
        assert run.data.tags["cmtrack.status"] == "completed"
        assert run.data.tags["cmtrack.positive"] == "not democrat"
        assert "party" in run.data.tags["cmtrack.groups"]
        assert run.data.params["model"] == run.info.run_name
        assert 10 <= len(run.data.metrics) <= 30
        files = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert {
            "cmtrack_evaluation.json",
            "cmtrack_report.html",
            "cmtrack_confusion_matrix.png",
        } <= files
        assert run.inputs.dataset_inputs
    assert len({digests(run.data.tags)["labels"] for run in runs}) == 1  # the same people


def test_the_stored_evaluation_is_the_one_ranked(demo: DemoResult) -> None:
    from cmtrack.tracking import tracking_store

    with tracking_store(demo.tracking_uri):
        for run in demo.runs:
            assert load_evaluation(run.run_id) == run.evaluation
            assert run.report.is_file()


def test_the_question_shows_mismatches_and_a_ceiling(demo: DemoResult) -> None:
    *others, last = demo.runs
    assert last.name == "baseline"
    assert RANK_BY in last.evaluation.undefined
    values = [run.evaluation.metrics[RANK_BY] for run in others]
    assert values == sorted(values, reverse=True)
    for run in others:
        assert run.evaluation.metrics["binary/imp"] > 0
        assert run.evaluation.metrics["binary/roc_auc_ceiling"] < 1
        assert run.evaluation.metrics["prevalence/fit_pvalue"] > 0.001  # held-out scores fit
        assert run.evaluation.intervals[RANK_BY][0] > 0
    assert [out.run.name for out in demo.comparison.left_out] == ["baseline"]


def test_the_models_are_reviewed(demo: DemoResult) -> None:
    from mlflow import MlflowClient

    assert [run.run_id for run in demo.comparison.runs] == [run.run_id for run in demo.runs[:-1]]
    assert demo.comparison.ranking is not None
    assert demo.comparison.ranking.paired
    assert demo.runs[0].name in demo.review.read_text(encoding="utf-8")
    client = MlflowClient(demo.tracking_uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    reviews = client.get_experiment_by_name(f"{EXPERIMENT}: reviews")
    assert reviews.artifact_location == experiment.artifact_location
    (review,) = client.search_runs([reviews.experiment_id], "tags.cmtrack.kind = 'review'")
    assert review.info.status == "FINISHED"
    assert "cmtrack_review.html" in {
        file.path for file in client.list_artifacts(review.info.run_id)
    }
    assert client.get_run(demo.runs[0].run_id).data.tags["cmtrack.rank"] == "1"


@pytest.fixture
def without_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs without pictures, which the other demo's have."""
    from support.faults import draw_nothing

    draw_nothing(monkeypatch)


def test_the_caller_keeps_its_own_store(
    demo: DemoResult, tmp_path: Path, without_pictures: None
) -> None:
    import mlflow

    own = sqlite_store(tmp_path / "own.db")
    mlflow.set_tracking_uri(own)
    try:
        again = run_demo(demo.directory, quick=True)
        assert mlflow.get_tracking_uri() == own
        assert mlflow.active_run() is None
    finally:
        mlflow.set_tracking_uri(None)
    client = mlflow.MlflowClient(demo.tracking_uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    both = client.search_runs([experiment.experiment_id], "tags.cmtrack.status = 'completed'")
    assert len(both) == len(demo.runs) + len(again.runs)
    assert [r.evaluation.metrics[RANK_BY] for r in again.runs[:-1]] == [
        r.evaluation.metrics[RANK_BY] for r in demo.runs[:-1]
    ]


def test_the_command_prints_what_to_do_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, without_pictures: None
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(main, ["demo", "--quick"])
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.split("\nReview of the decision")[0].splitlines())) <= 80
    assert "logistic regression" in result.stdout
    assert "mlflow ui --backend-store-uri sqlite:///cmtrack-demo/mlflow.db" in result.stdout
    flat = " ".join(result.stdout.split())
    assert re.search(
        r"\. ((Either run|Any of the \d+ runs|\w+ of the \d+ runs) may be the best: |Take “)", flat
    )
    review = re.search(r"Review of the decision:\n  (.+)\n", result.stdout)
    assert review is not None
    assert (tmp_path / review.group(1)).is_file()
    report = re.search(r"Report of the leader:\n  (.+)\n", result.stdout)
    assert report is not None
    assert (tmp_path / report.group(1)).is_file()
    show = re.search(r"\bcmtrack (show .+)\n", result.stdout)
    assert show is not None
    assert CliRunner().invoke(main, show.group(1).split()).exit_code == 0


def test_the_command_says_which_extra_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    monkeypatch.setitem(sys.modules, "statsmodels.datasets", None)
    result = CliRunner().invoke(main, ["demo", "--output", str(tmp_path / "demo"), "--json"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert (
        result.stderr
        == "Error: the demo's data come with statsmodels: pip install '.[demo]' in the folder of cmtrack's source\n"
    )


def test_the_data_are_split_without_overlap() -> None:
    data = load()
    sizes = [len(part) for part in (data.y_fit, data.y_held, data.y_test)]
    assert sum(sizes) == 944
    assert sizes[2] == 189
    assert data.x_test.shape == (189, len(FEATURES))
    assert "vote" not in FEATURES
    assert set(data.y_test) == set(range(7))
    assert question().positive == "not democrat"
    assert len(models()) == 8
    assert len(models(quick=True)) == 3


def test_the_example_of_counts_has_the_truth_in_its_interval(tmp_path: Path) -> None:
    done = subprocess.run(
        warm("python", str(ROOT / "examples" / "digits_count.py")),
        cwd=tmp_path,
        env=environment_without(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "EvaluationWarning" not in done.stderr
    assert (tmp_path / "cmtrack-examples.db").is_file()
    truth = float(re.search(r"truth +([\d.]+)", done.stdout).group(1))  # type: ignore[union-attr]
    value, low, high = map(
        float,
        re.search(r"calibrated +([\d.]+) +\[([\d.]+), ([\d.]+)\]", done.stdout).groups(),  # type: ignore[union-attr]
    )
    assert low <= truth <= high
    summed = float(re.search(r"summed +([\d.]+)", done.stdout).group(1))  # type: ignore[union-attr]
    assert abs(value - truth) < abs(summed - truth)


def test_the_example_of_scores_by_month_has_the_truth_in_its_intervals(tmp_path: Path) -> None:
    done = subprocess.run(
        warm("python", str(ROOT / "examples" / "nps_by_month.py")),
        cwd=tmp_path,
        env=environment_without(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    months = re.findall(
        r"^2026-0\d  ([+-]\d+) \[([+-]\d+), ([+-]\d+)\]  in truth ([+-]\d+)$", done.stdout, re.M
    )
    assert len(months) == 3
    for _, low, high, truth in months:
        assert int(low) <= int(truth) <= int(high)
    last_change = re.search(r"2026-02 to 2026-03  \S+ \[(\S+), (\S+)\]", done.stdout)
    assert last_change is not None
    assert int(last_change[2]) < 0, "customers are less happy in March"


def test_the_example_of_segments_finds_tests_draws_and_tells(tmp_path: Path) -> None:
    done = subprocess.run(
        warm("python", str(ROOT / "examples" / "segments.py")),
        cwd=tmp_path,
        env=environment_without(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    found, tested, gap = done.stdout.splitlines()
    assert "The worst is ideology = middle: 69% of 256 people" in found
    assert tested.startswith(
        "By ideology, 'middle' is worst: 69% correct, against 84% of the rest, a difference of -15 "
    )
    assert (
        gap
        == "By education, the best and the worst segment are 10 points apart [3, 17], more than chance explains."
    )
    assert (tmp_path / "segments_ideology.png").stat().st_size > 10_000
    assert "Segments by “education”" in (tmp_path / "segments_report.html").read_text(
        encoding="utf-8"
    )
