"""The evaluator for `mlflow.models.evaluate`: what it makes of data, models and options, and what it returns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlflow
import numpy as np
import pandas as pd
import pytest

from cmtrack import Evaluation, Grouping, evaluate, load_evaluation
from cmtrack.tracking import EvaluationWarning, tracking_store
from cmtrack_integrations.mlflow_evaluator import CmtrackEvaluator
from support.stores import sqlite_store

FRAME = pd.DataFrame({
    "x": [1, 2, 3, 4], "w": [1.0, 2.0, 1.0, 2.0], "g": list("aabb"), "region": list("nsns"),
    "p_0": [0.9, 0.2, 0.4, 0.1], "p_1": [0.1, 0.8, 0.6, 0.9],
})  # fmt: skip
Y = np.array([0, 1, 1, 1])
PREDICTED = np.array([0, 1, 0, 1])
P = FRAME[["p_0", "p_1"]].to_numpy()
TWO = Grouping({"low": [0], "high": [1]})


def data(features: Any = FRAME, labels: Any = Y, predictions: Any = PREDICTED) -> Any:
    """What MLflow hands over as its dataset."""
    names = list(getattr(features, "columns", ["a", "b"]))
    return SimpleNamespace(
        labels_data=labels,
        features_data=features,
        feature_names=names,
        predictions_data=predictions,
    )


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("database")
    with (
        pytest.MonkeyPatch.context() as patch,
        tracking_store(sqlite_store(folder / "mlflow.db")) as uri,
    ):
        patch.chdir(folder)  # artifacts of other experiments are below it
        mlflow.create_experiment("e", artifact_location=(folder / "artifacts").as_uri())
    return uri


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run_id(database: str) -> Iterator[str]:
    """A new run."""
    with tracking_store(database):
        mlflow.set_experiment("e")
        yield mlflow.MlflowClient().create_run("1").info.run_id


def evaluated(run_id: str, dataset: Any, config: dict[str, Any], **options: Any) -> Any:
    """MLflow's result; without figures, and an error is raised unless the options say otherwise."""
    config = {"figures": False, "strict": True} | config
    return CmtrackEvaluator().evaluate(
        dataset=dataset, run_id=run_id, evaluator_config=config, **options
    )


def kept(dataset: Any, config: dict[str, Any], **options: Any) -> tuple[Any, Any, list[str]]:
    """MLflow's result, the evaluation and the warnings, where no server answers: that is fast."""
    with (
        tracking_store("http://127.0.0.1:9"),
        pytest.warns(EvaluationWarning, match="127.0.0.1:9 does not answer") as warned,
    ):
        result = evaluated("r", dataset, config | {"strict": False}, **options)
    [entry] = Path("cmtrack_spool").iterdir()
    return result, Evaluation.load(entry / "artifacts"), [str(one.message) for one in warned]


def finite(evaluation: Any) -> dict[str, float]:
    """The headline metrics that MLflow gets."""
    metrics = {name: evaluation.metrics[name] for name in evaluation.headline}
    return {name: value for name, value in metrics.items() if np.isfinite(value)}


# -- data ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "means"),
    [
        (
            {"labels": [1, 0], "grouping": TWO.to_dict()},
            {"y_pred": PREDICTED, "labels": [1, 0], "grouping": TWO},
        ),
        ({"y_prob": "p_*"}, {"y_pred": PREDICTED, "y_prob": P}),
        ({"y_prob": {1: "p_1", 0: "p_0"}}, {"y_pred": PREDICTED, "y_prob": P}),
        ({"y_prob": ["p_0", "p_1"]}, {"y_pred": PREDICTED, "y_prob": P}),
        (
            {"sample_weight": "w", "groups": [1, 1, 2, 2]},
            {"y_pred": PREDICTED, "sample_weight": FRAME["w"], "groups": [1, 1, 2, 2]},
        ),
        ({"segments": ["region"]}, {"y_pred": PREDICTED, "segments": FRAME[["region"]]}),
        (
            {"segments": [("region", "g")]},
            {"y_pred": PREDICTED, "segments": (FRAME[["region", "g"]], [("region", "g")])},
        ),
        (
            {"segments": {"r": [1, 2, 1, 2]}},
            {"y_pred": PREDICTED, "segments": {"r": [1, 2, 1, 2]}},
        ),
        ({"threshold": 0.3, "y_prob": "p_1"}, {"y_prob": P[:, 1], "threshold": 0.3}),
    ],
)
def test_columns_of_the_data_are_what_the_options_name(
    config: dict[str, Any], means: dict[str, Any]
) -> None:
    result, evaluation, _ = kept(data(), config)
    expected = evaluate(Y, **means)
    assert evaluation == expected
    assert result.metrics == finite(expected)
    assert result.artifacts == {}


def test_columns_of_an_array_have_the_names_of_its_features() -> None:
    array = np.array([[1, 2], [3, 4], [5, 6], [7, 8]])
    _, evaluation, _ = kept(data(array), {"sample_weight": "b"})
    assert evaluation == evaluate(Y, PREDICTED, sample_weight=[2, 4, 6, 8])


@pytest.mark.parametrize("file", [Path("two.json"), "two.json"])
def test_a_grouping_may_be_in_a_file(file: Any) -> None:
    Path("two.json").write_text(json.dumps(TWO.to_dict()))
    _, evaluation, _ = kept(data(), {"grouping": file})
    assert evaluation.grouping == TWO


@pytest.mark.parametrize(
    ("config", "dataset", "says"),
    [
        ({"nonsense": 1}, data(), "must contain options of cmtrack, got 'nonsense'"),
        ({}, data(labels=None), "the evaluation needs labels, got no targets"),
        ({}, data(predictions=None), "the data have neither predictions nor probabilities"),
        ({"sample_weight": "v"}, data(), "sample_weight must name a column of the data, got 'v'"),
        ({"segments": ["v"]}, data(), "segments must name a column of the data, got 'v'"),
        ({"y_prob": "q_*"}, data(), r"no column matches y_prob='q_\*'"),
        ({"y_prob": "q"}, data(), "y_prob must name a column of the data, got 'q'"),
        ({"y_prob": [1]}, data(), "y_prob must be a column, a pattern with one star, a list or a"),
        ({"grouping": 5}, data(), "grouping must be a Grouping, a mapping or a path, got int"),
    ],
)
def test_data_that_lack_something_are_refused(
    config: dict[str, Any], dataset: Any, says: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=says):
        evaluated("r", dataset, config)
    with pytest.warns(EvaluationWarning, match=f"the evaluation failed: .*{says}"):
        result = evaluated("r", dataset, config | {"strict": False})
    assert (result.metrics, result.artifacts) == ({}, {})


# -- models ----------------------------------------------------------------------------------------------------------

FIXED = np.tile([0.25, 0.75], (4, 1))


class Raw:
    """A classifier inside MLflow's wrapper."""

    classes_ = np.array([0, 1])

    def predict_proba(self, features: Any) -> Any:
        return FIXED

    def predict(self, features: Any) -> Any:
        self.seen = list(features.columns)
        return np.ones((len(features), 1))


class Model:
    """A model of MLflow around another one, or with an output of its own."""

    def __init__(self, output: Any = None, raw: Any = None) -> None:
        self.output = output
        self.raw = raw
        self.params: Any = "not asked"

    def get_raw_model(self) -> Any:
        if self.raw is None:
            raise TypeError("it has none")
        return self.raw

    def predict(self, features: Any, **params: Any) -> Any:
        self.params = params
        self.seen = list(features.columns)
        return self.output


OUTPUT = pd.DataFrame({"label": PREDICTED, "p_0": FIXED[:, 0], "p_1": FIXED[:, 1]})
TABLE = OUTPUT[["p_0", "p_1"]]
CLASSES = SimpleNamespace(classes_=np.array([0, 1]))


@pytest.mark.parametrize(
    ("model", "config", "column", "means"),
    [
        (Model(raw=Raw()), {}, None, {"y_pred": [1] * 4, "y_prob": FIXED, "labels": [0, 1]}),
        (
            Model(raw=Raw()),
            {"labels": [1, 0]},
            None,
            {"y_pred": [1] * 4, "y_prob": FIXED[:, ::-1], "labels": [1, 0]},
        ),
        (
            Model(FIXED, Raw()),
            {"params": {"k": 1}},
            None,
            {"y_prob": FIXED, "labels": [0, 1]},
        ),
        (
            Model(FIXED, CLASSES),
            {"labels": [1, 0]},
            None,
            {"y_prob": FIXED[:, ::-1], "labels": [1, 0]},
        ),
        (Model(FIXED[:, 1]), {"y_prob": "output"}, None, {"y_prob": FIXED[:, 1]}),
        (Model(OUTPUT), {"y_prob": "p_*"}, "label", {"y_pred": PREDICTED, "y_prob": FIXED}),
        (Model(OUTPUT), {}, "label", {"y_pred": PREDICTED}),
        (Model(OUTPUT), {"y_prob": ["p_0", "p_1"]}, None, {"y_prob": FIXED}),
        (Model(FIXED), {}, None, {"y_prob": FIXED}),
        (Model(TABLE, CLASSES), {}, None, {"y_prob": FIXED, "labels": [0, 1]}),
        (Model(PREDICTED), {}, None, {"y_pred": PREDICTED}),
        (Model(PREDICTED[:, None]), {}, None, {"y_pred": PREDICTED}),
    ],
)
def test_a_model_gives_labels_or_probabilities(
    model: Any, config: dict[str, Any], column: str | None, means: dict[str, Any]
) -> None:
    own = {"sample_weight": "w", "segments": ["region"]}
    _, evaluation, warned = kept(data(), config | own, model=model, predictions=column)
    expected = evaluate(Y, **means, sample_weight=FRAME["w"], segments=FRAME[["region"]])
    assert evaluation == expected
    gives_labels_only = column is None and "y_prob" not in means
    assert ("the model returns only labels" in warned[0]) == gives_labels_only
    # columns that are options are no features
    seen = model.raw.seen if model.output is None else model.seen
    assert seen == ["x", "g", "p_0", "p_1"]
    if "params" in config:
        assert model.params == {"params": {"k": 1}}


# -- the result ------------------------------------------------------------------------------------------------------


def test_a_result_has_the_metrics_and_the_files_of_the_run(run_id: str) -> None:
    result = evaluated(run_id, data(), {"y_prob": "p_*", "prefix": "val/"})
    expected = evaluate(Y, PREDICTED, y_prob=P)
    assert load_evaluation(run_id, prefix="val") == expected
    assert result.metrics == {f"val/{name}": value for name, value in finite(expected).items()}
    assert result.metrics == mlflow.get_run(run_id).data.metrics
    assert result.artifacts.keys() == {
        "val_cmtrack_evaluation",
        "val_cmtrack_predictions",
        "val_cmtrack_report",
        "val_cmtrack_classes",
    }
    assert result.artifacts["val_cmtrack_evaluation"].content == json.loads(expected.to_json())


def test_with_a_model_id_mlflow_logs_the_metrics_and_undefined_ones_are_named(run_id: str) -> None:
    model = mlflow.create_external_model(name="m")
    sparse = data(labels=np.zeros(4, int))
    config = {"labels": [0, 1], "prefix": "val"}
    result = evaluated(run_id, sparse, config, model_id=model.model_id)
    expected = evaluate(np.zeros(4, int), PREDICTED, labels=[0, 1])
    assert result.metrics == {f"val/{name}": value for name, value in finite(expected).items()}
    run = mlflow.get_run(run_id)
    assert run.data.metrics == {}
    undefined = set(expected.headline) - finite(expected).keys()
    assert set(run.data.tags["cmtrack.val.nan"].split(", ")) == undefined
    assert undefined


def test_a_result_that_cannot_be_made_is_empty_and_said_once(run_id: str) -> None:
    model = mlflow.create_external_model(name="m")
    config = {"metrics": ["no/such"], "strict": False}
    with pytest.warns(EvaluationWarning, match="is logged, but the result for MLflow is empty"):
        result = evaluated(run_id, data(), config, model_id=model.model_id)
    assert (result.metrics, result.artifacts) == ({}, {})
    assert load_evaluation(run_id) == evaluate(Y, PREDICTED)
    with pytest.warns(EvaluationWarning, match="was not logged: .* has no metric") as warned:
        assert evaluated(run_id, data(), config).metrics == {}
    assert len(warned) == 1
    with pytest.raises(ValueError, match="has no metric"):
        evaluated(run_id, data(), {"metrics": ["no/such"]}, model_id=model.model_id)
