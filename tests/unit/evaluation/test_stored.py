"""Files that earlier versions stored are read for good: evaluations, reviews and what waits in the spool."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import mlflow
import numpy as np
import pytest
from click.testing import CliRunner

import cmtrack
from cmtrack import Evaluation, FamilyEvaluation, Grouping, compare, evaluate, log_evaluation
from cmtrack.cli import main
from cmtrack.evaluation import loads
from cmtrack.schemas import ENTRY, EVALUATION, INTENT, MANIFEST, REVIEW, Stored
from cmtrack.tracking import tracking_store
from support import TESTS

GOLDEN = TESTS / "golden"
VERSIONS = sorted(path.parent.name for path in GOLDEN.glob("*/evaluation"))
SPOOLS = sorted(path.parent.name for path in GOLDEN.glob("*/spool"))


@pytest.fixture(params=VERSIONS)
def golden(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / request.param


@pytest.fixture(params=SPOOLS)
def golden_spool(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / request.param / "spool"


def stored_metrics(file: Path) -> dict[str, float]:
    found = json.loads(file.read_text(encoding="utf-8"))["metrics"]
    return {name: np.nan if value is None else value for name, value in found.items()}


def test_an_evaluation_has_its_numbers_and_everything_else(golden: Path) -> None:
    evaluation = Evaluation.load(golden / "evaluation")
    stored = stored_metrics(golden / "evaluation" / "cmtrack_evaluation.json")
    assert {name: evaluation.metrics[name] for name in stored} == pytest.approx(
        stored, abs=1e-9, nan_ok=True
    )
    assert evaluation.labels == ("ant", "bee", "wasp")
    assert (evaluation.positive, evaluation.sections) == ("stings", None)
    assert (evaluation.rows is not None) == (
        golden / "evaluation" / "cmtrack_predictions.parquet"
    ).exists()
    assert evaluation.n_samples == 60
    assert evaluation.grouping is not None
    assert evaluation.grouping.compose(evaluation.labels)[0].labels == ("harmless", "stings")
    assert evaluation.statistics.row_ids is not None
    assert evaluation.roc is not None
    assert evaluation.prevalence is not None
    assert evaluation.figures()
    assert (evaluation + evaluation).n_samples == 120


def test_a_class_with_one_row_is_stored() -> None:
    """The error of the area of such a class is undefined."""
    probabilities = [
        [0.7, 0.2, 0.1],
        [0.3, 0.5, 0.2],
        [0.1, 0.6, 0.3],
        [0.2, 0.2, 0.6],
        [0.4, 0.1, 0.5],
    ]
    one = evaluate([0, 1, 1, 2, 2], y_prob=probabilities)
    stored = loads(one.to_json())
    assert isinstance(stored, Evaluation)
    errors, again = one.row_facts.errors, stored.row_facts.errors
    assert errors is not None
    assert again is not None
    assert np.isnan(errors["multiclass/roc_auc_ovr_macro"])
    assert (stored, again.keys()) == (one, errors.keys())
    np.testing.assert_array_equal(list(again.values()), list(errors.values()))


def test_an_old_evaluation_is_saved_as_a_new_one(golden: Path, tmp_path: Path) -> None:
    old = Evaluation.load(golden / "evaluation")
    old.save(tmp_path)
    assert Evaluation.load(tmp_path) == old
    assert (
        json.loads((tmp_path / "cmtrack_evaluation.json").read_text(encoding="utf-8"))["schema"]
        == EVALUATION.newest
    )


def test_a_regrouping_without_the_data_says_what_it_lost() -> None:
    kept = Evaluation.load(GOLDEN / "0.2.0-03dc774" / "regrouped")
    stored = json.loads(
        (GOLDEN / "0.2.0-03dc774" / "regrouped" / "cmtrack_evaluation.json").read_text("utf-8")
    )
    assert stored["schema"] == 1
    lost = {part.name for part in kept.lost}
    assert lost == {"SCORES", "LOSSES", "HITS", "COSTS", "THRESHOLD", "ROWS"}
    assert set(kept.notes) == {part.value for part in kept.lost}
    assert len(kept.notes) == len(stored["notes"])
    in_todays_words = {
        text.replace("fewer than 20 samples", "fewer than 20 rows") for text in stored["warnings"]
    }
    assert set(kept.warnings) - set(kept.notes) == in_todays_words - set(stored["notes"])
    assert kept.remarks == ()
    assert {name: kept.metrics[name] for name in stored["metrics"]} == pytest.approx(
        {name: np.nan if value is None else value for name, value in stored["metrics"].items()},
        nan_ok=True,
    )
    assert kept.reference == (0.5, 0.25, 0.25)
    again = kept.regroup(Grouping({"flies": ["wasp", "bee"], "crawls": ["ant"]}))
    assert "THRESHOLD" in {part.name for part in again.lost}


def test_a_family_evaluation_has_its_numbers(golden: Path) -> None:
    evaluation = FamilyEvaluation.load(golden / "families")
    stored = stored_metrics(golden / "families" / "cmtrack_evaluation.json")
    assert {name: evaluation.metrics[name] for name in stored} == pytest.approx(
        stored, abs=1e-9, nan_ok=True
    )
    assert evaluation.n_samples == 5


OF_REMOVED_FEATURES = {".criterion.weights", ".how.rope"}
"""Weighted sums of metrics, and posteriors of a region of practical equivalence, which only 0.2 has."""


def test_a_review_says_what_a_reader_of_the_old_one_looks_for(golden: Path, tmp_path: Path) -> None:
    # nothing in cmtrack reads reviews; programs of others do: within a schema keys stay, with their kinds of values
    old = json.loads((golden / "review.json").read_text(encoding="utf-8"))
    assert 1 <= old["schema"] <= REVIEW.newest
    y = np.repeat(["ant", "bee", "wasp"], (30, 18, 12))
    other = np.where(np.arange(60) % 5 == 0, "ant", y)
    file = compare({"first": evaluate(y, y), "second": evaluate(y, other)}).report(
        tmp_path / "review.json"
    )
    new = json.loads(file.read_text(encoding="utf-8"))
    if old["schema"] == new["schema"]:
        assert set(missing(old, new)) <= OF_REMOVED_FEATURES


def missing(old: Any, new: Any, where: str = "") -> list[str]:
    """Places of the old data that the new ones have not, or of another kind; null stands for any."""
    if old is None or new is None or where in (".how.runs", ".rankings[].runs[].values"):
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [f"{where}.{key}" for key in old if key not in new]
        return gone + [
            text
            for key in old
            if key in new
            for text in missing(old[key], new[key], f"{where}.{key}")
        ]
    if isinstance(old, list) and isinstance(new, list):
        return missing(old[0], new[0], f"{where}[]") if old and new else []
    number = (int, float)
    alike = isinstance(new, type(old)) or (
        isinstance(old, number)
        and isinstance(new, number)
        and not isinstance(new, bool)
        and not isinstance(old, bool)
    )
    return [] if alike else [f"{where}: {type(old).__name__} is {type(new).__name__}"]


def waiting_in(folder: Path) -> list[dict[str, Any]]:
    """The entries of a spool, as ``cmtrack spool`` lists them."""
    run = CliRunner().invoke(main, ["spool", "--folder", str(folder), "--json"])
    assert run.exit_code == 0, run.output
    entries: list[dict[str, Any]] = json.loads(run.stdout)["entries"]
    return entries


def push(folder: Path, uri: str, *more: str) -> list[dict[str, Any]]:
    """The outcome of every entry that ``cmtrack push`` sends, where one is left."""
    command = ["push", "--folder", str(folder), "--tracking-uri", uri, *more, "--json"]
    run = CliRunner().invoke(main, command)
    assert run.exit_code == 1, run.output
    entries: list[dict[str, Any]] = json.loads(run.stdout)["entries"]
    return entries


def test_what_an_earlier_version_left_in_the_spool_is_pushed(
    golden_spool: Path, store: mlflow.MlflowClient, tmp_path: Path
) -> None:
    folder = tmp_path / "spool"
    shutil.copytree(golden_spool, folder)
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (0, 0))  # whoever wrote it is long gone
    entries = {entry["kind"]: Path(entry["path"]) for entry in waiting_in(folder)}
    assert sorted(entries) == ["evaluation", "inputs", "unfinished"]
    whole = entries["evaluation"]
    file = next(path for path in (whole / "entry.json", whole / "manifest.json") if path.exists())
    stored = json.loads(file.read_text(encoding="utf-8"))["metrics"]
    metrics = {name: float(value) for name, value in stored.items()}
    done = push(folder, mlflow.get_tracking_uri(), "--experiment", "golden")
    by_status = {entry["status"]: entry for entry in done}
    assert sorted(entry["status"] for entry in done) == ["refused", "sent", "sent"]
    assert "inputs of a failed evaluation" in by_status["refused"]["reason"]
    sent = [entry for entry in done if entry["status"] == "sent"]
    assert [entry["problems"] for entry in sent] == [[], []]
    runs = [mlflow.get_run(entry["run_id"]) for entry in sent]
    whole = next(run for run in runs if "val/multiclass/accuracy" in run.data.metrics)
    rebuilt = next(run for run in runs if "test/multiclass/accuracy" in run.data.metrics)
    assert whole.data.metrics == pytest.approx(metrics)
    evaluation = cmtrack.load_evaluation(whole.info.run_id, prefix="val/")
    assert (evaluation.labels, evaluation.n_samples) == (("ant", "other"), 60)
    again = cmtrack.load_evaluation(rebuilt.info.run_id, prefix="test/")
    assert (again.labels, again.n_samples) == (("ant", "bee", "wasp"), 60)
    files = {file.path for file in mlflow.MlflowClient().list_artifacts(whole.info.run_id)}
    assert {
        "val_cmtrack_report.html",
        "val_cmtrack_predictions.parquet",
        "val_cmtrack_confusion_matrix.png",
    } <= files
    assert [entry["kind"] for entry in waiting_in(folder)] == ["inputs"]


def test_what_an_earlier_version_left_keeps_the_run_that_it_was_given(
    golden_spool: Path, store: mlflow.MlflowClient, tmp_path: Path
) -> None:
    folder = tmp_path / "spool"
    shutil.copytree(golden_spool, folder)
    uri = mlflow.get_tracking_uri()
    with mock.patch("mlflow.MlflowClient.log_batch", side_effect=ConnectionError("gone")):
        first = push(folder, uri, "--experiment", "golden")
    never = {None, "0" * 31 + "1", "0" * 31 + "2"}
    [given] = {entry["run_id"] for entry in first} - never
    second = push(folder, uri, "--experiment", "golden")
    assert given in [entry["run_id"] for entry in second if entry["status"] == "sent"]


def test_the_spool_says_its_schema(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CMTRACK_SPOOL", str(tmp_path / "spool"))
    with tracking_store("http://127.0.0.1:9"), pytest.warns(UserWarning, match="kept in"):
        logged = log_evaluation([0, 1, 1], [0, 1, 0], run_id="1" * 32)
    assert logged.path is not None
    file = logged.path / "entry.json"
    kept = json.loads(file.read_text())
    assert (kept["schema"], kept["on_existing"]) == (ENTRY.newest, "replace")
    file.write_text(json.dumps(kept | {"schema": ENTRY.newest + 1}))
    store = f"sqlite:///{tmp_path}/any.db"
    (refused,) = push(tmp_path / "spool", store)
    assert refused["status"] == "refused"
    newer = "entry.json has schema 2, this version of cmtrack reads up to 1: upgrade cmtrack"
    assert newer in refused["reason"]
    assert logged.path.is_dir()  # kept for the version that can
    # cut off before it was whole
    unfinished = logged.path.rename(logged.path.with_name(f".{logged.path.name}"))
    for path in (unfinished, *unfinished.rglob("*")):
        os.utime(path, (0, 0))
    (refused,) = push(tmp_path / "spool", store)
    assert refused["status"] == "refused"
    assert newer in refused["reason"]


@pytest.mark.parametrize("schema", [0, -1, 3, True, "1", None, 1.0])
def test_schemas_that_are_none(schema: Any) -> None:
    with pytest.raises(ValueError, match="this version of cmtrack reads up to 2"):
        Stored("a file", 2, {1: dict}).migrated({"schema": schema})


def test_migrations_go_step_by_step() -> None:
    kind = Stored(
        "a file", 3, {1: lambda d: d | {"a": 1}, 2: lambda d: d | {"b": d["a"] + 1}}, unnumbered=1
    )
    assert kind.migrated({}) == {"schema": 3, "a": 1, "b": 2}
    assert kind.migrated({"schema": 2, "a": 5}) == {"schema": 3, "a": 5, "b": 6}
    assert kind.migrated({"schema": 3}) == {"schema": 3}


@pytest.mark.parametrize(
    "kind", [EVALUATION, REVIEW, ENTRY, MANIFEST, INTENT], ids=lambda kind: kind.name
)
def test_every_older_schema_has_its_migration(kind: Stored) -> None:
    assert sorted(kind.migrations) == list(range(1, kind.newest))


def test_files_of_the_spool_without_a_number_are_of_the_first_schema() -> None:
    assert MANIFEST.migrated({"run_id": "a"}) == {
        "schema": 2,
        "run_id": "a",
        "on_existing": "replace",
    }
    assert MANIFEST.migrated({"schema": 1, "on_existing": "skip"}) == {
        "schema": 2,
        "on_existing": "skip",
    }
    assert MANIFEST.migrated({"schema": 2}) == {"schema": 2}
    assert INTENT.migrated({}) == {"schema": 1}
    for numbered in (EVALUATION, REVIEW, ENTRY):
        with pytest.raises(ValueError, match="has schema None"):
            numbered.migrated({})


def test_an_evaluation_is_pickled_after_its_metrics_were_read() -> None:
    evaluation = evaluate([0, 1, 2] * 20, [0, 1, 1] * 20)
    assert evaluation.intervals
    again = pickle.loads(pickle.dumps(evaluation))
    assert again == evaluation
    assert again.intervals == evaluation.intervals


@pytest.mark.parametrize("power", ["m2", "m4"])
def test_negative_sums_of_squares_are_refused_unless_they_are_rounding(power: str) -> None:
    y_true = np.arange(60) % 3
    p = np.random.default_rng(0).dirichlet(np.ones(3), 60)
    fields = json.loads(evaluate(y_true, y_prob=p).to_json())
    fields["statistics"]["moments"][power][2][2] = -1e-12
    loads(json.dumps(fields))
    fields["statistics"]["moments"][power][2][2] = -1e-3
    with pytest.raises(ValueError, match="moments must be moments of scores between 0 and 1"):
        loads(json.dumps(fields))
