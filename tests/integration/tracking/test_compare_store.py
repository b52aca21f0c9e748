"""``compare`` over runs of a tracking store: finding, reading, leaving out."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import mlflow
import pytest

from cmtrack import Grouping, compare, evaluate, log_evaluation
from cmtrack.report.review import Review, verdict
from cmtrack.tracking import quiet, tracking_store

# No user has the two gigabytes at which the cache forgets.
from cmtrack.tracking.cache import trim
from support.problems import random_labels, random_probabilities
from support.stores import sqlite_store

pytestmark = pytest.mark.usefixtures("undrawn")

ACCURACY = "multiclass/accuracy"
SKILLS = {"strong": 2.2, "medium": 1.4, "weak": 0.6}


Y = random_labels(300, 3, seed=5)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A store with three complete runs, one half-written, one without an evaluation; and what they are called."""
    folder = tmp_path_factory.mktemp("world")
    with quiet(), tracking_store(sqlite_store(folder / "mlflow.db")) as uri:
        mlflow.create_experiment("models", artifact_location=(folder / "artifacts").as_uri())
        mlflow.create_experiment("empty")
        mlflow.set_experiment("models")
        ids = {}
        for seed, (name, skill) in enumerate(SKILLS.items()):
            y, p = Y, random_probabilities(Y, 3, skill, seed)
            with mlflow.start_run(run_name=name) as run:
                mlflow.log_params({"skill": skill, "depth": 10 - seed})
                log_evaluation(y, y_prob=p, strict=True)
            ids[name] = run.info.run_id
        with mlflow.start_run(run_name="half") as run:
            mlflow.set_tag("cmtrack.status", "started")
        with mlflow.start_run(run_name="nothing"):
            mlflow.log_metric("loss", 1.0)
        yield uri, ids, folder


@pytest.fixture
def uri(world):
    with tracking_store(world[0]):
        yield world[0]


def names(comparison):
    return [run.name for run in comparison.runs]


@pytest.mark.slow
def test_an_experiment_is_ranked_and_what_is_incomplete_is_named(world, uri):
    comparison = compare(experiment_names=["models"], rank_by=ACCURACY)
    assert names(comparison) == ["strong", "medium", "weak"]
    assert comparison.ranking.paired
    assert comparison.best.run_id == world[1]["strong"]
    assert {out.run.name: out.reason for out in comparison.left_out} == {
        "half": "its evaluation was not finished (status 'started')",
        "nothing": "it has no evaluation",
    }


def test_the_store_filters(uri):
    assert names(
        compare(experiment_names=["models"], filter_string="params.depth = '9'", rank_by=ACCURACY)
    ) == ["medium"]
    with pytest.raises(ValueError, match="refused the search"):
        compare(experiment_names=["models"], filter_string="params.depth ~ 9")
    with pytest.raises(
        ValueError, match=r"no run was found in sqlite:.*: the experiments are empty"
    ):
        compare(experiment_names=["models"], filter_string="params.depth = '77'")


def test_the_active_experiment_is_the_default(uri):
    mlflow.set_experiment("models")
    assert len(compare(rank_by=ACCURACY)) == 3


def test_the_active_experiment_is_that_of_the_environment(uri, monkeypatch):
    monkeypatch.delenv("MLFLOW_EXPERIMENT_ID", raising=False)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "models")
    assert len(compare(rank_by=ACCURACY)) == 3
    # set_experiment leaves the id there, and it is the later word
    empty = mlflow.get_experiment_by_name("empty").experiment_id
    monkeypatch.setenv("MLFLOW_EXPERIMENT_ID", empty)
    with pytest.raises(ValueError, match="no run was found"):
        compare(rank_by=ACCURACY)


@pytest.mark.slow
def test_runs_are_named_in_many_ways(world, uri):
    client, ids = mlflow.MlflowClient(), world[1]
    forms = [
        ids["weak"],
        f"runs:/{ids['weak']}",
        client.get_run(ids["weak"]),
        client.get_run(ids["weak"]).info,
    ]
    for form in forms:
        assert names(compare([form, ids["strong"]], rank_by=ACCURACY)) == ["strong", "weak"]
    assert names(compare(ids["weak"], rank_by=ACCURACY)) == ["weak"]
    frame = mlflow.search_runs(experiment_names=["models"], filter_string="params.skill != '0'")
    assert len(compare(frame, rank_by=ACCURACY)) == 3
    assert len(compare([ids["weak"], ids["weak"]], rank_by=ACCURACY)) == 1


@pytest.mark.slow
def test_logged_models_and_registered_versions_stand_for_their_runs(tmp_path, world):
    with quiet(), tracking_store(sqlite_store(tmp_path / "models.db")):
        mlflow.create_experiment("m", artifact_location=(tmp_path / "a").as_uri())
        mlflow.set_experiment("m")
        client = mlflow.MlflowClient()
        models, runs = [], []
        for seed in range(2):
            model = mlflow.create_external_model(name=f"model{seed}")
            with mlflow.start_run() as run:
                log_evaluation(*_labels(1.0 + seed, seed), model_id=model.model_id, strict=True)
            models.append(model.model_id)
            runs.append(run.info.run_id)
        comparison = compare(models, rank_by=ACCURACY)
        assert {run.run_id for run in comparison.runs} == set(runs)
        assert {run.run.model_ids[0] for run in comparison.runs} == set(models)
        client.create_registered_model("party")
        version = client.create_model_version(
            "party", source=f"runs:/{runs[0]}/model", run_id=runs[0]
        )
        client.set_registered_model_alias("party", "champion", version.version)
        for uri in ("models:/party/1", "models:/party@champion", f"models:/{models[0]}"):
            assert compare([uri], rank_by=ACCURACY).best.run_id == runs[0]
        with pytest.raises(ValueError, match="there is no model 'models:/party@nobody'"):
            compare(["models:/party@nobody"])


def _labels(skill, seed):
    y, p = Y, random_probabilities(Y, 3, skill, seed)
    return y, p.argmax(axis=1)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"runs": ["0" * 32]}, ValueError, "there is no run '0{32}'"),
        ({"runs": [""]}, ValueError, "got an empty text"),
        ({"runs": [3]}, TypeError, "must be an id, a name, a model URI"),
        ({"runs": 3}, TypeError, "runs must be run ids"),
        (
            {"experiment_names": ["modles"]},
            ValueError,
            "no experiment 'modles' .*did you mean 'models'",
        ),
        ({"experiment_names": ["empty"]}, ValueError, "no run was found"),
        (
            {"experiment_names": ["models"], "filter_string": "tags.`mlflow.runName` = 'half'"},
            ValueError,
            "the run has no complete evaluation",
        ),
        (
            {"experiment_names": ["models"], "rank_by": "binary/recall"},
            ValueError,
            "no run has the metric 'binary/recall'",
        ),
        (
            {"experiment_names": ["models"], "prefix": "val/"},
            ValueError,
            "none of the 5 runs .*prefix 'val/'",
        ),
        (
            {"experiment_names": ["models"], "against": "1" * 32},
            ValueError,
            "there is no run '1{32}'",
        ),
    ],
)
def test_what_is_not_there_is_said(uri, arguments, error, words):
    with pytest.raises(error, match=words):
        compare(**arguments)


def test_an_unreachable_server_is_said_at_once():
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:9 does not answer"):
        compare(["0" * 32], tracking_uri="http://127.0.0.1:9")


@pytest.mark.slow
def test_damaged_and_newer_evaluations_are_left_out_and_named(tmp_path, world):
    with quiet(), tracking_store(sqlite_store(tmp_path / "d.db")):
        mlflow.create_experiment("d", artifact_location=(tmp_path / "a").as_uri())
        mlflow.set_experiment("d")
        files = {}
        for seed, name in enumerate(["good", "damaged", "newer", "gone", "rows"]):
            with mlflow.start_run(run_name=name) as run:
                y, p = Y, random_probabilities(Y, 3, 1.0, seed)
                log_evaluation(y, y_prob=p, strict=True)
            files[name] = Path(
                tmp_path / "a" / run.info.run_id / "artifacts" / "cmtrack_evaluation.json"
            )
            if name == "newer":  # written whole by a later version: its digest is right
                data = json.loads(files[name].read_text())
                files[name].write_text(json.dumps({**data, "schema": 99}))
                digest = hashlib.blake2b(files[name].read_bytes(), digest_size=16).hexdigest()
                mlflow.MlflowClient().set_tag(
                    run.info.run_id, "cmtrack.digests", json.dumps({"evaluation": digest})
                )
        files["damaged"].write_bytes(files["damaged"].read_bytes()[:-20])
        files["gone"].unlink()
        rows = files["rows"].with_name("cmtrack_predictions.parquet")
        rows.write_bytes(rows.read_bytes()[:-20])
        comparison = compare(experiment_names=["d"], rank_by=ACCURACY)
    assert {run.name for run in comparison.runs} == {"good", "rows"}
    reasons = {out.run.name: out.reason for out in comparison.left_out}
    assert "is not the file that was logged" in reasons["damaged"]
    assert "schema" in reasons["newer"]
    assert "99" in reasons["newer"]
    assert "has no cmtrack_evaluation.json" in reasons["gone"]
    assert any("rows: compared without its predictions by row" in note for note in comparison.notes)
    assert not comparison.ranking.paired


@pytest.fixture
def unread(world):
    """The evaluation of the weak run cannot be read."""
    file = world[2] / "artifacts" / world[1]["weak"] / "artifacts" / "cmtrack_evaluation.json"
    away = file.rename(file.with_suffix(".away"))
    yield
    away.rename(file)


@pytest.mark.usefixtures("unread")
def test_the_short_list_is_the_best_by_the_logged_value(uri):
    comparison = compare(experiment_names=["models"], rank_by=ACCURACY, limit=2)
    assert names(comparison) == ["strong", "medium"]
    assert [run.name for run in comparison.passed_over] == ["weak"]
    assert comparison.notes == ()
    assert any(said.endswith("(limit): “weak”.") for said in verdict(Review(comparison)))


@pytest.mark.slow
def test_a_metric_that_was_not_logged_is_read_from_the_evaluations(world, uri):
    comparison = compare(experiment_names=["models"], rank_by="class/1/recall", limit=2)
    assert names(comparison) == ["strong", "medium"]
    assert [run.name for run in comparison.passed_over] == ["weak"]
    assert comparison.ranking.paired


@pytest.mark.usefixtures("unread")
def test_gates_on_logged_values_need_no_evaluation(world, uri):
    comparison = compare(
        experiment_names=["models"], rank_by=ACCURACY, require=f"{ACCURACY} >= 0.6"
    )
    assert names(comparison) == ["strong", "medium"]
    assert [run.name for run in comparison.failed] == ["weak"]
    value = mlflow.MlflowClient().get_run(world[1]["weak"]).data.metrics[ACCURACY]
    assert str(comparison.failed[0].gates[0]) == f"{ACCURACY} >= 0.6 (is {value:.3g})"


def test_at_most_so_many_runs_are_listed_the_best_first(uri):
    comparison = compare(experiment_names=["models"], rank_by=ACCURACY, max_runs=2)
    assert names(comparison) == ["strong", "medium"]
    assert "has more runs than the 2" in comparison.notes[0]


@pytest.mark.slow
def test_parameters_break_ties(world, uri):
    chosen = [world[1][name] for name in ("strong", "medium")]
    # at so high a level everything is tied
    comparison = compare(
        chosen, rank_by=ACCURACY, tie_breakers="params.depth", margin=1, confidence_level=1 - 1e-9
    )
    assert comparison.ranking.leader.name == "strong"
    assert comparison.best.name == "medium"
    assert comparison.ranking.decision.values == (10.0, 9.0)
    assert compare(chosen, rank_by=ACCURACY, tie_breakers="params.depth").best.name == "strong"


@pytest.mark.slow
def test_another_grouping_for_runs_of_the_past(uri):
    grouping = Grouping({"one": [0, 1], "two": [2]}, name="two")
    comparison = compare(experiment_names=["models"], grouping=grouping)
    assert str(comparison.criterion) == "binary/matthews_corrcoef"
    y, p = Y, random_probabilities(Y, 3, SKILLS["strong"])
    assert (
        comparison["strong"].value
        == evaluate(y, y_prob=p, grouping=grouping).metrics["binary/matthews_corrcoef"]
    )
    assert "binary/roc_auc" in comparison["strong"].evaluation.metrics  # the rows were kept


@pytest.mark.slow
def test_runs_of_two_stores_are_compared(tmp_path, world):
    with quiet(), tracking_store(sqlite_store(tmp_path / "second.db")) as second:
        mlflow.create_experiment("elsewhere", artifact_location=(tmp_path / "a").as_uri())
        mlflow.set_experiment("elsewhere")
        y, p = Y, random_probabilities(Y, 3, 3.0, 8)
        with mlflow.start_run(run_name="strong") as run:  # the same name as in the first store
            log_evaluation(y, y_prob=p, strict=True)
    comparison = compare(
        [world[1]["strong"], run.info.run_id], rank_by=ACCURACY, tracking_uri=[world[0], second]
    )
    assert len(comparison.rankings) == 1
    assert comparison.ranking.paired
    assert [run.run.tracking_uri for run in comparison.runs] == [second, world[0]]
    assert names(comparison) == [
        f"strong ({run.info.run_id[:4]})",
        f"strong ({world[1]['strong'][:4]})",
    ]
    found = compare(
        experiment_names=["models", "elsewhere"], rank_by=ACCURACY, tracking_uri=[world[0], second]
    )
    assert len(found) == 4
    with pytest.raises(ValueError, match="no experiment 'nowhere' in"):
        compare(experiment_names=["nowhere"], tracking_uri=[world[0], second])


def test_a_baseline_from_elsewhere_is_ranked_with_the_others(world, uri):
    ids = world[1]
    comparison = compare(
        [ids["medium"]],
        against=ids["weak"],
        rank_by=ACCURACY,
        require=f"{ACCURACY}.difference.low > 0",
    )
    assert comparison.baseline.run_id == ids["weak"]
    assert names(comparison) == ["medium"]
    assert [run.name for run in comparison.failed] == ["weak"]  # it is not better than itself


def test_the_cache_forgets_what_was_used_longest_ago(tmp_path, monkeypatch):
    monkeypatch.setenv("CMTRACK_CACHE", str(tmp_path))
    paths = [tmp_path / f"{age:02}" / ("0" * 32) for age in range(4)]
    for age, path in enumerate(paths):
        path.parent.mkdir()
        path.write_bytes(bytes(100))
        os.utime(path, (1000 + age, 1000 + age))
    trim(250)
    assert [path.exists() for path in paths] == [False, False, True, True]


@pytest.mark.slow
def test_runs_of_the_same_rows_are_counted_in_the_store(uri, world, monkeypatch):
    ids = [world[1]["medium"], world[1]["weak"]]
    looks = compare(ids, rank_by=ACCURACY).looks
    assert (looks.runs, looks.chosen_from, looks.reviews) == (3, 2, 0)
    assert looks.among == "2 of at least 3 runs evaluated on these rows"
    assert (
        compare(rank_by=ACCURACY, experiment_names="models").looks.among
        == "at least 3 runs evaluated on these rows"
    )

    def refused(*_, **__):
        raise ValueError("the store does not answer")

    monkeypatch.setattr(mlflow.MlflowClient, "search_runs", refused)
    assert compare(ids, rank_by=ACCURACY).looks.runs == 2
