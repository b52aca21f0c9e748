"""Registered model versions stand for the evaluation of their logged model, not for the run that trained it."""

from __future__ import annotations

import mlflow
import numpy as np
import pytest
from click.testing import CliRunner
from mlflow.entities import LoggedModelOutput

from cmtrack import compare, load_evaluation, log_evaluation
from cmtrack.cli import main
from cmtrack.tracking import quiet, tracking_store
from support.stores import sqlite_store

pytestmark = pytest.mark.usefixtures("undrawn")

ACCURACY = "multiclass/accuracy"
CHAMPION = "models:/party@champion"
Y = np.random.default_rng(0).integers(0, 2, 400)


def answers(correct, seed):
    hits = np.random.default_rng(seed).random(len(Y)) < correct
    return np.where(hits, Y, 1 - Y)


@pytest.fixture
def client(tmp_path):
    """A client of a new store, with the active experiment "parties"."""
    with quiet(), tracking_store(sqlite_store(tmp_path / "mlflow.db")):
        mlflow.create_experiment("parties", artifact_location=(tmp_path / "artifacts").as_uri())
        mlflow.set_experiment("parties")
        yield mlflow.MlflowClient()


@pytest.fixture
def runs(client):
    """The ids of a training run, which logged two models, of an evaluation of one of them, and of a challenger."""
    with mlflow.start_run(run_name="training") as training:
        models = [mlflow.initialize_logged_model(name=name) for name in ("checkpoint", "party")]
        for model in models:
            mlflow.finalize_logged_model(model.model_id, "READY")
        client.log_outputs(
            training.info.run_id, [LoggedModelOutput(model.model_id, step=0) for model in models]
        )
        log_evaluation(Y[:300], answers(0.7, 1)[:300], strict=True)
    with mlflow.start_run(run_name="evaluation") as evaluation:
        log_evaluation(Y, answers(0.95, 2), model_id=model.model_id, strict=True)
    with mlflow.start_run(run_name="challenger") as challenger:
        log_evaluation(Y, answers(0.6, 3), strict=True)
    return {
        "training": training.info.run_id,
        "evaluation": evaluation.info.run_id,
        "challenger": challenger.info.run_id,
        "checkpoint": models[0].model_id,
        "model": models[1].model_id,
    }


def registered(client, name, source, run_id=None):
    client.create_registered_model(name)
    version = client.create_model_version(name, source, run_id)
    client.set_registered_model_alias(name, "champion", version.version)
    return version


def named_by_its_model(client, runs):
    return registered(client, "party", f"models:/{runs['model']}")


def named_by_its_run(client, runs):
    return registered(client, "party", f"runs:/{runs['training']}/party", runs["training"])


def named_by_its_folder(client, runs):
    folder = client.get_logged_model(runs["model"]).artifact_location
    return registered(client, "party", folder, runs["training"])


def copied_from_another_model(client, runs):
    first = registered(client, "development", f"models:/{runs['model']}")
    return registered(client, "party", f"models:/development/{first.version}", runs["training"])


SOURCES = [named_by_its_model, named_by_its_run, named_by_its_folder, copied_from_another_model]
FIRST_SOURCE = [SOURCES[0], *(pytest.param(one, marks=pytest.mark.slow) for one in SOURCES[1:])]
"""How a source is read has a test of its own: one of them shows what follows of it."""


@pytest.mark.slow
@pytest.mark.parametrize("register", SOURCES)
def test_a_version_stands_for_the_evaluation_of_its_model(client, runs, register):
    # the open-source registry leaves the field empty
    assert register(client, runs).model_id is None
    expected = float(np.mean(answers(0.95, 2) == Y))
    for reference in (CHAMPION, "models:/party/1"):
        assert load_evaluation(reference).metrics[ACCURACY] == expected
    comparison = compare([CHAMPION, runs["challenger"]], rank_by=ACCURACY)
    assert [run.run_id for run in comparison.runs] == [runs["evaluation"], runs["challenger"]]
    assert comparison.best.runs[0].run.model_ids == (runs["model"],)


@pytest.mark.slow
@pytest.mark.parametrize("register", FIRST_SOURCE)
def test_the_evaluated_version_gets_the_alias(client, runs, register):
    register(client, runs)
    for references in ([CHAMPION, runs["challenger"]], [runs["evaluation"], runs["challenger"]]):
        logged = compare(references, rank_by=ACCURACY).log(alias="winner", registered_model="party")
        assert logged.alias == "models:/party@winner (version 1)"
        assert logged.problems == ()
        assert logged.tagged_models == (runs["model"],)
    found = compare(experiment_names=["parties"], rank_by=ACCURACY).log(
        alias="listed", registered_model="party"
    )
    assert found.alias == "models:/party@listed (version 1)"


@pytest.mark.slow
def test_the_gate_judges_against_the_version_of_the_alias(client, runs):
    named_by_its_model(client, runs)
    command = [
        "gate",
        runs["challenger"],
        "--against",
        CHAMPION,
        "--require",
        f"{ACCURACY}.difference >= 0",
    ]
    arguments = [*command, "--tracking-uri", client.tracking_uri]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1, result.output
    assert "against “evaluation (" in result.output


@pytest.mark.slow
def test_a_model_without_a_run_has_its_versions(client, runs):
    model = mlflow.create_external_model(name="hosted")
    with mlflow.start_run(run_name="hosted") as run:
        log_evaluation(Y, answers(0.9, 4), model_id=model.model_id, strict=True)
    assert named_by_its_model(client, runs | {"model": model.model_id}).run_id in (None, "")
    assert load_evaluation(CHAMPION) == load_evaluation(run.info.run_id)
    logged = compare([CHAMPION, runs["challenger"]], rank_by=ACCURACY).log(alias="winner")
    assert logged.alias == "models:/party@winner (version 1)"


@pytest.mark.slow
def test_a_version_of_another_model_of_the_run_gets_no_alias(client, runs):
    registered(client, "party", f"models:/{runs['checkpoint']}")
    comparison = compare([f"models:/{runs['model']}", runs["challenger"]], rank_by=ACCURACY)
    with pytest.raises(ValueError, match="no registered version comes from run 'evaluation'"):
        comparison.log(alias="winner")


@pytest.mark.slow
def test_the_run_lists_the_model_that_it_evaluated(client, runs):
    inputs = client.get_run(runs["evaluation"]).inputs
    assert [model.model_id for model in inputs.model_inputs] == [runs["model"]]
    assert client.get_run(runs["training"]).inputs.model_inputs == []
    with mlflow.start_run(runs["evaluation"]):  # evaluated again
        log_evaluation(Y, answers(0.9, 5), model_id=runs["model"], prefix="test/", strict=True)
    assert len(client.get_run(runs["evaluation"]).inputs.model_inputs) == 1
