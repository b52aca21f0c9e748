"""Promotions of models that MLflow loads: the switch that forbids it, labels only, and stored predictions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVC

import cmtrack
from cmtrack.comparison import Answer, Promotion, canonical_json
from cmtrack.tracking import quiet, tracking_store
from support.faults import draw_no_review
from support.promotions import ACCURACY, champion_of
from support.stores import sqlite_store

pytestmark = pytest.mark.slow

SWITCH = "MLFLOW_ALLOW_PICKLE_DESERIALIZATION"
LOG_LOSS = "probability/log_loss"
STORED = "v{version}_p_*"


def rows(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["y"] = np.where(frame.sum(axis=1) + rng.normal(size=n) > 0, "yes", "no")
    frame["id"] = np.arange(n)
    return frame


TRAINING = rows(400, 0)
JUNE = rows(500, 1)


class Majority(mlflow.pyfunc.PythonModel):
    """A model that always predicts "no"."""

    def predict(self, context, model_input, params=None):
        return np.full(len(model_input), "no")


@pytest.fixture(scope="module", autouse=True)
def no_figures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        draw_no_review(patch)
        yield


def signature_of(features: list[str]) -> Any:
    return mlflow.models.infer_signature(TRAINING[features].head(2))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory):
    """Versions 1 to 5 of "party": two with probabilities, labels only, a Python model, and numbers."""
    folder = tmp_path_factory.mktemp("registry")
    few = ["a"]
    all_features = ["a", "b", "c"]
    weak = LogisticRegression().fit(TRAINING[few], TRAINING["y"])
    strong = LogisticRegression().fit(TRAINING[all_features], TRAINING["y"])
    labels_only = LinearSVC().fit(TRAINING[all_features], TRAINING["y"])
    numbers = Ridge().fit(TRAINING[all_features], TRAINING["y"] == "yes")
    with quiet(), tracking_store(sqlite_store(folder / "mlflow.db")):
        mlflow.create_experiment("parties", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("parties")
        logged = {"name": "model", "registered_model_name": "party"}
        for model, features in (
            (weak, few),
            (strong, all_features),
            (labels_only, all_features),
            (Majority(), all_features),
            (numbers, all_features),
        ):
            # Otherwise, MLflow starts a process that finds out the requirements.
            given = logged | {"signature": signature_of(features), "pip_requirements": ["mlflow"]}
            with mlflow.start_run():
                if isinstance(model, Majority):
                    mlflow.pyfunc.log_model(python_model=model, **given)
                else:
                    mlflow.sklearn.log_model(model, serialization_format="pickle", **given)
        client = mlflow.MlflowClient()
        client.set_registered_model_alias("party", "champion", 1)
        june = JUNE.copy()
        for version, model, features in ((1, weak, few), (2, strong, all_features)):
            chances = model.predict_proba(june[features])
            june[[f"v{version}_p_no", f"v{version}_p_yes"]] = chances
        yield {"client": client, "june": june, "folder": folder}


def promote(version: int, data: Any, **options: Any) -> Promotion:
    given = {"data": data, "y_true": "y", "row_ids": "id", "name": "june"}
    return cmtrack.promote(f"models:/party/{version}", **given | options)


def facts(promotion: Promotion) -> bytes:
    """A record without the time, runs and digests of files with runs."""
    data = promotion.record.to_data()
    models = {
        number: {name: value for name, value in one.items() if name != "run"}
        for number, one in data["models"].items()
    }
    without = {"made": None, "bundle": None, "previous": None, "models": models}
    return canonical_json(data | without)


@pytest.mark.parametrize("rank_by", [ACCURACY, LOG_LOSS, None])
def test_scored_rows_and_stored_predictions_give_the_same_record(store, monkeypatch, rank_by):
    scored = promote(2, JUNE, rank_by=rank_by, dry_run=True)
    assert scored.answer is Answer.PROMOTE
    monkeypatch.setenv(SWITCH, "false")
    stored = promote(2, store["june"], y_prob=STORED, rank_by=rank_by, dry_run=True)
    assert facts(stored) == facts(scored)


def test_a_switch_that_forbids_code_names_the_way_out(store, monkeypatch) -> None:
    monkeypatch.setenv(SWITCH, "false")
    for version in (2, 3, 4):
        with pytest.raises(ValueError, match=r".") as raised:
            promote(version, JUNE, rank_by=ACCURACY)
        assert str(raised.value) == (
            f"version {version} cannot be loaded: {SWITCH}=false forbids it. Score the rows "
            "elsewhere and name the columns: --y-prob 'v{version}_p_*'"
        )


def test_a_dry_run_leaves_the_models_unchanged(store) -> None:
    files = {path: path.read_bytes() for path in store["folder"].rglob("*") if path.is_file()}
    promote(2, JUNE, rank_by=ACCURACY, dry_run=True)
    with pytest.raises(ValueError, match="version 2 needs the column"):
        promote(2, JUNE.drop(columns="b"), rank_by=ACCURACY, dry_run=True)
    after = {path: path.read_bytes() for path in store["folder"].rglob("*") if path.is_file()}
    assert after == files


@pytest.mark.parametrize("version", [3, 4])
def test_labels_are_enough_for_metrics_of_labels(store, version: int) -> None:
    promotion = promote(version, JUNE, rank_by=ACCURACY, dry_run=True)
    assert promotion.answer is {3: Answer.PROMOTE, 4: Answer.KEEP}[version]
    note = f"version {version} gives labels only, so metrics of probabilities are missing"
    assert note in promotion.notes
    with pytest.raises(
        ValueError, match=f"ranks by {LOG_LOSS}, and version {version} gives labels"
    ):
        promote(version, JUNE, rank_by=LOG_LOSS)
    # Without a rule, the metric is one that all versions have.
    default = promote(version, JUNE, dry_run=True).record.rule.rank_by
    assert default == "binary/matthews_corrcoef"


def test_a_model_that_predicts_numbers_is_refused(store) -> None:
    with pytest.raises(
        ValueError, match=r"version 5 predicts numbers such as .*compares classifiers"
    ):
        promote(5, JUNE, rank_by=ACCURACY)


def test_a_missing_feature_and_an_unknown_label(store) -> None:
    with pytest.raises(
        ValueError, match="version 2 needs the column 'b', which the table does not"
    ):
        promote(2, JUNE.drop(columns="b"), rank_by=ACCURACY)
    june = JUNE.copy()
    june.loc[:2, "y"] = "maybe"
    promotion = promote(2, june, rank_by=ACCURACY, dry_run=True)
    assert [note for note in promotion.notes if "maybe" in note] == [
        "3 rows have the label 'maybe', which version 2 does not know",
        "3 rows have the label 'maybe', which version 1 does not know",
    ]


def test_an_earlier_champion_without_the_metric_is_named(store) -> None:
    client = store["client"]
    cmtrack.promote("models:/party/3", force="a champion with labels only", alias="other")
    cmtrack.promote("models:/party/1", force="rollback", alias="other")
    promotion = promote(2, JUNE, rank_by=LOG_LOSS, alias="other", move=True)
    assert promotion.moved
    assert set(promotion.record.models) == {"2", "1"}
    assert f"version 3, the previous champion, has no {LOG_LOSS}" in promotion.notes
    assert champion_of(client) == "1"
