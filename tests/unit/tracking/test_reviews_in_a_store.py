"""What a comparison writes into a store: the review as a run, tags and aliases, and saved views."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Iterator
from typing import Any

import mlflow
import pytest
from mlflow.exceptions import MlflowException
from mlflow.store.artifact.local_artifact_repo import LocalArtifactRepository

from cmtrack import Grouping, compare, evaluate, log_evaluation
from cmtrack.tracking import quiet, tracking_store
from support.stores import sqlite_store

ACCURACY = "multiclass/accuracy"
Y = [0, 1] * 20
NOTE = "mlflow.note.content"
REQUIRED = f"{ACCURACY} > 0.3"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, str]]:
    """A store with three runs of two parameters, a model and some model versions; and the ids of the runs."""
    folder = tmp_path_factory.mktemp("world")
    with (
        pytest.MonkeyPatch.context() as patch,
        quiet(),
        tracking_store(sqlite_store(folder / "mlflow.db")) as uri,
    ):
        patch.chdir(folder)
        client = mlflow.MlflowClient()
        experiment = client.create_experiment("e", artifact_location=folder.as_uri())
        mlflow.set_experiment("e")
        model = mlflow.create_external_model(name="m")
        ids = {"model": model.model_id}
        for name, count in (("a", 40), ("b", 31), ("c", 11)):
            run = client.create_run(experiment, run_name=name)
            ids[name] = run.info.run_id
            client.log_param(ids[name], "depth", count)
            client.log_param(ids[name], "same", 1)
            client.set_tag(ids[name], NOTE, "By Ann.")
            client.set_tag(ids[name], "cmtrack.criterion", "of an earlier version")
            predicted = Y[:count] + [1 - label for label in Y[count:]]
            log_evaluation(
                evaluate(Y, predicted),
                run_id=ids[name],
                model_id=model.model_id if name == "a" else None,
                figures=False,
                strict=True,
            )
        for registered, run in (("v", "a"), ("w", "b"), ("w", "b"), ("x", "b")):
            if registered not in {one.name for one in client.search_registered_models()}:
                client.create_registered_model(registered)
            client.create_model_version(registered, f"runs:/{ids[run]}/m", ids[run])
    return uri, ids


@pytest.fixture
def ids(world: tuple[str, dict[str, str]]) -> Iterator[dict[str, str]]:
    with quiet(), tracking_store(world[0]):
        yield world[1]


def compared(**options: Any) -> Any:
    options = {"rank_by": ACCURACY, "experiment_names": ["e"], "require": REQUIRED} | options
    return compare(**options)


def tags_of(run_id: str) -> dict[str, str]:
    return dict(mlflow.get_run(run_id).data.tags)


# -- reviews ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_review_is_a_run_and_its_runs_models_and_versions_are_tagged(ids: dict[str, str]) -> None:
    client = mlflow.MlflowClient()
    began = time.time() * 1000
    comparison = compared(experiment_names=None, runs=[ids[name] for name in "abc"])
    logged = comparison.log(alias="winner")
    assert logged.alias == "models:/v@winner (version 1)"
    assert logged.problems == ()
    assert set(logged.tagged_runs) == {ids[name] for name in "abc"}
    assert logged.tagged_models == (ids["model"],)
    assert set(logged.versions) == {"models:/v/1", "models:/w/1", "models:/w/2", "models:/x/1"}
    review = client.get_run(logged.run_id)
    assert client.get_experiment(logged.experiment_id).name == "e: reviews"
    assert (review.info.run_name, review.info.status) == (f"review: {ACCURACY}", "FINISHED")
    expected = {
        "kind": "review",
        "rank_by": ACCURACY,
        "best": ids["a"],
        "best_name": "a",
        "tied": "“a”",
        "ranked": "2",
        "stopped": "1",
        "gates": REQUIRED,
    }
    tags = review.data.tags
    assert {name: tags[f"cmtrack.{name}"] for name in expected} == expected
    assert tags[NOTE].startswith("## Review by accuracy")
    assert "`review/tied` the number of runs that may be the best" in tags[NOTE]
    assert review.data.metrics == {
        "review/runs": 2,
        "review/stopped": 1,
        "review/tied": 1,
        "review/best": 1.0,
    }
    [point] = client.get_metric_history(logged.run_id, "review/runs")
    assert began - 1 <= point.timestamp <= time.time() * 1000
    params = review.data.params
    assert (params["rank_by"], params["require"]) == (ACCURACY, REQUIRED)
    files = {item.path for item in client.list_artifacts(logged.run_id)}
    ends = (".html", ".json", ".md", "_ranking.json")
    assert {f"cmtrack_review{end}" for end in ends} <= files
    link = f"](#/experiments/{logged.experiment_id}/runs/{logged.run_id}/artifacts/cmtrack_review.h"
    for name, rank, beginning in (
        ("a", "1", f"Rank 1 by {ACCURACY} in the [review of "),
        ("b", "2", f"Rank 2 by {ACCURACY} in the [review of "),
        ("c", "stopped by a gate", "Stopped by a gate in the [review of "),
    ):
        tags = tags_of(ids[name])
        assert (tags["cmtrack.rank"], tags["cmtrack.review"]) == (rank, logged.run_id)
        assert "cmtrack.criterion" not in tags
        assert tags[NOTE].startswith(f"By Ann.\n\n{beginning}")
        assert link in tags[NOTE]
    model = client.get_logged_model(ids["model"])
    assert (model.tags["cmtrack.rank"], model.tags["cmtrack.review"]) == ("1", logged.run_id)
    assert tags_of(logged.run_id)["cmtrack.alias"] == "v@winner"
    assert client.get_model_version_by_alias("v", "winner").run_id == ids["a"]
    version = client.get_model_version("w", "1")
    assert version.description.startswith("Rank 2 by ")
    assert (version.tags["cmtrack.rank"], version.tags["cmtrack.rank_by"]) == ("2", ACCURACY)


@pytest.mark.slow
def test_what_a_store_refuses_is_a_problem_of_the_review(
    ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = mlflow.MlflowClient.log_batch

    def log_batch(self: Any, run_id: str, *given: Any, **how: Any) -> Any:
        if run_id == ids["b"]:
            raise MlflowException("not this run\nat all")
        return original(self, run_id, *given, **how)

    def refuse(*_: Any, **__: Any) -> None:
        raise MlflowException("it may not")

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", log_batch)
    monkeypatch.setattr(mlflow.MlflowClient, "set_logged_model_tags", refuse)
    monkeypatch.setattr(mlflow.MlflowClient, "create_experiment", refuse)
    monkeypatch.setattr(mlflow.MlflowClient, "get_experiment_by_name", lambda *_: None)
    comparison = compared(experiment_names=None, runs=[ids["a"], ids["b"]])
    logged = comparison.log()
    assert logged.experiment_id == mlflow.get_run(ids["a"]).info.experiment_id
    assert logged.tagged_runs == (ids["a"],)
    assert logged.problems == (
        "the review is in the experiment of its runs: it may not",
        f"tags of model {ids['model']}: it may not",
        f"tags of run {ids['b']}: not this run",
    )


@pytest.mark.slow
def test_a_review_whose_files_cannot_be_written_has_failed(
    ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(LocalArtifactRepository, "log_artifacts", refuse)
    with pytest.raises(OSError, match="no room"):
        compared().log(run_name="without files", experiment_name="mine")
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("mine")
    [run] = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == ("without files", "FAILED")


@pytest.mark.parametrize(
    ("runs", "options", "says"),
    [
        ("ab", {"registered_model": "v"}, "registered_model needs alias, got 'v' alone"),
        ("c", {"alias": "x"}, "no run is chosen, so the alias 'x' cannot be set: "),
        ("b", {"alias": "x"}, "3 registered versions come from run 'b' .*choose the model with"),
        (
            "b",
            {"alias": "x", "registered_model": "w"},
            "2 registered versions of 'w' come from run 'b' .*set the alias by hand",
        ),
        (
            "b",
            {"alias": "x", "registered_model": "v"},
            "no registered version of 'v' comes from run 'b'",
        ),
    ],
)
def test_what_cannot_be_set_is_refused_before_anything_is_written(
    ids: dict[str, str], runs: str, options: dict[str, str], says: str
) -> None:
    comparison = compared(experiment_names=None, runs=[ids[name] for name in runs])
    before = {name: tags_of(ids[name]) for name in runs}
    with pytest.raises(ValueError, match=says):
        comparison.log(**options)
    assert {name: tags_of(ids[name]) for name in runs} == before


def test_evaluations_in_no_run_have_no_store_for_a_review() -> None:
    comparison = compare({"a": evaluate(Y, Y)}, rank_by=ACCURACY)
    with pytest.raises(
        ValueError, match="these evaluations are not in a run, so there is no store"
    ):
        comparison.log()


# -- saved views -----------------------------------------------------------------------------------------------------


def state_of(view: Any) -> dict[str, Any]:
    """The state of a saved view, in either form."""
    tags = mlflow.MlflowClient().get_experiment(view.experiment_id).tags
    text = tags[f"mlflow.sharedViewState.{view.key}"]
    if text.startswith("{"):
        text = json.loads(text)["state"]
    state: dict[str, Any] = json.loads(
        zlib.decompress(base64.b64decode(text.removeprefix("deflate;")))
    )
    return state


@pytest.mark.parametrize(
    ("options", "condition", "notes"),
    [
        ({"filter_string": " params.depth != '1' "}, "params.depth != '1' and {status}", []),
        (
            {"rank_by": "multiclass/precision_macro_zero"},
            "{status}",
            ["The runs did not log multiclass/precision_macro_zero, so"],
        ),
        (
            {"grouping": Grouping({"no": [0], "yes": [1]}, positive="yes")},
            "{status}",
            ["The view shows the logged values, but the ranking uses values recomputed"],
        ),
    ],
)
def test_a_view_says_what_it_cannot_show(
    ids: dict[str, str],
    options: dict[str, Any],
    condition: str,
    notes: list[str],
) -> None:
    view = compared(require=(), **options).view("asked")
    state = state_of(view)
    status = "tags.`cmtrack.status` = 'completed'"
    assert state["searchFilter"] == condition.format(status=status)
    assert len(view.notes) == len(notes)
    for note, beginning in zip(view.notes, notes, strict=True):
        assert note.startswith(beginning)


def test_the_experiment_links_to_the_five_newest_views(ids: dict[str, str]) -> None:
    comparison = compared()
    client = mlflow.MlflowClient()
    experiment_id = mlflow.get_run(ids["a"]).info.experiment_id
    client.set_experiment_tag(experiment_id, NOTE, "mine")
    links = {number: comparison.view(f"v{number}").link for number in range(7)}

    def described(*numbers: int) -> str:
        line = " · ".join(f"[v{number}]({links[number]})" for number in numbers)
        return f"{line} <!-- cmtrack views -->\n\nmine"

    assert client.get_experiment(experiment_id).tags[NOTE] == described(6, 5, 4, 3, 2)
    comparison.view("v4")
    assert client.get_experiment(experiment_id).tags[NOTE] == described(4, 6, 5, 3, 2)
