"""What MLflow's evaluator makes of data, models and options, by hand and without a store."""

from __future__ import annotations

import json
import warnings
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmtrack import Grouping, LoggedEvaluation, evaluate
from cmtrack.tracking import evaluator

FRAME = pd.DataFrame({
    "x": [1, 2, 3, 4], "w": [1.0, 2.0, 1.0, 2.0], "g": list("aabb"), "region": list("nsns"),
    "p_0": [0.9, 0.2, 0.4, 0.1], "p_1": [0.1, 0.8, 0.6, 0.9],
})  # fmt: skip
Y, GUESSES = np.array([0, 1, 1, 1]), np.array([0, 1, 0, 1])
TWO = Grouping({"low": [0], "high": [1]})
KNOWN = frozenset(
    {
        "y_prob",
        "segments",
        "grouping",
        "labels",
        "threshold",
        "params",
        "sample_weight",
        "groups",
        "row_ids",
    }
)


def data(features: Any = FRAME, labels: Any = Y, guesses: Any = GUESSES) -> Any:
    names = list(getattr(features, "columns", ["a", "b"]))
    return SimpleNamespace(
        labels_data=labels, features_data=features, feature_names=names, predictions_data=guesses
    )


def plain(value: Any) -> Any:
    """Arrays and frames as lists."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return (
        [plain(one) for one in value]
        if isinstance(value, (list, tuple, np.ndarray))
        else getattr(value, "item", lambda: value)()
    )


@pytest.mark.parametrize(
    ("config", "gives"),
    [
        ({}, {"y_pred": [0, 1, 0, 1], "y_prob": None}),
        ({"labels": [0, 1], "grouping": TWO.to_dict()}, {"labels": [0, 1], "grouping": TWO}),
        ({"y_prob": "p_*"}, {"y_prob": {"0": [0.9, 0.2, 0.4, 0.1], "1": [0.1, 0.8, 0.6, 0.9]}}),
        ({"y_prob": "p_1"}, {"y_prob": [0.1, 0.8, 0.6, 0.9]}),
        ({"y_prob": {1: "p_1"}}, {"y_prob": {1: [0.1, 0.8, 0.6, 0.9]}}),
        ({"y_prob": ["p_0", "p_1"]}, {"y_prob": [[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.1, 0.9]]}),
        (
            {"sample_weight": "w", "groups": [1, 1, 2, 2]},
            {"sample_weight": [1, 2, 1, 2], "groups": [1, 1, 2, 2]},
        ),
        ({"segments": ["region"]}, {"segments": [{"region": list("nsns")}, ["region"]]}),
        (
            {"segments": [("region", "g")]},
            {"segments": [{"region": list("nsns"), "g": list("aabb")}, [["region", "g"]]]},
        ),
        ({"segments": {"r": [1, 2]}}, {"segments": {"r": [1, 2]}}),
        ({"threshold": 0.3, "y_prob": "p_1"}, {"y_pred": None, "threshold": 0.3}),
    ],
)
def test_columns_of_the_data_are_what_the_options_name(
    config: dict[str, Any], gives: dict[str, Any]
) -> None:
    given = evaluator.read_inputs(data(), config, KNOWN, None, None)
    assert plain(given["y_true"]) == [0, 1, 1, 1]
    assert {name: plain(given[name]) for name in gives} == {
        name: plain(value) for name, value in gives.items()
    }
    assert given.keys() == {"y_true", "y_pred", "y_prob"} | (config.keys() & given.keys())


@pytest.mark.parametrize(
    ("config", "of", "says"),
    [
        ({"nonsense": 1}, data(), "must hold options of cmtrack, got 'nonsense'"),
        ({}, data(labels=None), "the evaluation needs labels, got no targets"),
        ({}, data(guesses=None), "the data have neither predictions nor probabilities"),
        ({"sample_weight": "v"}, data(), "sample_weight must name a column of the data, got 'v'"),
        ({"segments": ["v"]}, data(), "segments must name a column of the data, got 'v'"),
        ({"y_prob": "q_*"}, data(), r"no column is called like y_prob='q_\*'"),
        ({"y_prob": "q"}, data(), "y_prob must name a column of the data, got 'q'"),
        (
            {"y_prob": [1]},
            data(),
            "y_prob must be a column, a pattern with one star, a list or a mapping",
        ),
    ],
)
def test_data_that_lack_something_are_refused(config: dict[str, Any], of: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        evaluator.read_inputs(of, config, KNOWN, None, None)


class Raw:
    classes_ = np.array([0, 1])

    def __init__(self, probabilities: bool = True) -> None:
        if probabilities:
            self.predict_proba = lambda features: np.tile([0.25, 0.75], (len(features), 1))

    def predict(self, features: Any) -> Any:
        self.seen = list(features.columns)
        return np.ones((len(features), 1))


class Model:
    """A model of MLflow around another, or with an output of its own."""

    def __init__(self, output: Any = None, raw: Any = None) -> None:
        self.output, self.raw, self.params = output, raw, "none"

    def get_raw_model(self) -> Any:
        if self.raw is None:
            raise TypeError("it has none")
        return self.raw

    def predict(self, features: Any, **params: Any) -> Any:
        self.params, self.seen = params, list(features.columns)
        return self.output


PROBABILITIES = np.tile([0.25, 0.75], (4, 1))
OUTPUT = pd.DataFrame({"label": GUESSES, "p_0": PROBABILITIES[:, 0], "p_1": PROBABILITIES[:, 1]})
TABLE = OUTPUT[["p_0", "p_1"]]


@pytest.mark.parametrize(
    ("model", "config", "predictions", "gives"),
    [
        (
            Model(raw=Raw()),
            {},
            None,
            {"y_pred": [1] * 4, "y_prob": PROBABILITIES, "labels": [0, 1]},
        ),
        (
            Model(raw=Raw()),
            {"labels": [1, 0]},
            None,
            {"y_pred": [1] * 4, "labels": [1, 0], "y_prob": PROBABILITIES},
        ),
        (
            Model(PROBABILITIES, Raw()),
            {"params": {"k": 1}},
            None,
            {"y_prob": PROBABILITIES, "labels": [0, 1]},
        ),
        (
            Model(PROBABILITIES, Raw(False)),
            {"labels": [1, 0]},
            None,
            {"y_prob": PROBABILITIES, "labels": [1, 0]},
        ),
        (Model(PROBABILITIES), {"y_prob": "output"}, None, {"y_prob": PROBABILITIES}),
        (
            Model(OUTPUT),
            {"y_prob": "p_*"},
            "label",
            {"y_pred": GUESSES, "y_prob": {"0": [0.25] * 4, "1": [0.75] * 4}},
        ),
        (Model(OUTPUT), {}, "label", {"y_pred": GUESSES, "y_prob": None}),
        (
            Model(OUTPUT),
            {"y_prob": ["p_0", "p_1"]},
            None,
            {"y_pred": None, "y_prob": PROBABILITIES},
        ),
        (Model(PROBABILITIES), {}, None, {"y_prob": PROBABILITIES}),
        (Model(TABLE, Raw(False)), {}, None, {"y_prob": PROBABILITIES, "labels": [0, 1]}),
        (Model(GUESSES), {}, None, {"y_pred": GUESSES}),
        (Model(GUESSES[:, None]), {}, None, {"y_pred": GUESSES}),
    ],
)
def test_a_model_gives_labels_or_probabilities(
    model: Any, config: Any, predictions: Any, gives: Any
) -> None:
    config = config | {"sample_weight": "w", "segments": ["region"]}
    labels_only = isinstance(model.output, np.ndarray) and model.output.size == 4
    with (
        pytest.warns(UserWarning, match="the model gives labels only")
        if labels_only
        else nullcontext()
    ):
        given = evaluator.read_inputs(data(), config, KNOWN, model, predictions)
    gives = {"y_pred": None} | gives
    assert {name: plain(given[name]) for name in gives} == {
        name: plain(value) for name, value in gives.items()
    }
    assert given.keys() - {"y_true", "sample_weight", "segments"} == gives.keys()
    assert plain(given["sample_weight"]) == [1, 2, 1, 2]
    seen = getattr(model, "seen", getattr(model.raw, "seen", None))
    assert seen == ["x", "g", "p_0", "p_1"]
    assert model.params == (
        {"params": {"k": 1}} if "params" in config else "none" if model.output is None else {}
    )


def test_a_table_without_classes_stays_one() -> None:
    assert evaluator._predicted(Model(TABLE), FRAME, {}, None, None)["y_prob"] is TABLE
    array = data(np.array([[1, 2], [3, 4], [5, 6], [7, 8]]))
    given = evaluator.read_inputs(array, {"sample_weight": "b"}, KNOWN, None, None)
    assert plain(given["sample_weight"]) == [2, 4, 6, 8]


def test_a_grouping_is_one_or_plain_data_or_a_file(tmp_path: Any) -> None:
    (tmp_path / "two.json").write_text(json.dumps(TWO.to_dict()))
    for given in (TWO, TWO.to_dict(), tmp_path / "two.json", str(tmp_path / "two.json")):
        assert evaluator.as_grouping(given) == TWO
    with pytest.raises(
        TypeError, match="grouping must be a Grouping, a mapping or a path, got int"
    ):
        evaluator.as_grouping(5)


def test_the_result_has_the_finite_metrics_and_names_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tagged: list[Any] = []
    monkeypatch.setattr(
        evaluator, "MlflowClient", lambda: SimpleNamespace(set_tag=lambda *tag: tagged.append(tag))
    )
    one = evaluate([0, 0, 0], [0, 0, 1], labels=[0, 1])
    done = LoggedEvaluation(one, "r", "completed")
    metrics = evaluator._metrics(done, "all", "val/", with_tag=True)
    finite = {f"val/{name}" for name, value in one.metrics.items() if np.isfinite(value)}
    assert metrics.keys() == finite
    undefined = ", ".join(name for name, value in one.metrics.items() if not np.isfinite(value))
    assert tagged == [("r", "cmtrack.val.nan", undefined[:4000])]
    assert len(undefined) > 10
    for logged, tag in ((done, False), (LoggedEvaluation(one, "r", "saved"), True)):
        assert evaluator._metrics(logged, "all", "val/", with_tag=tag).keys() == finite
    assert evaluator._metrics(done, ["multiclass/accuracy"], "", with_tag=True) == {
        "multiclass/accuracy": 2 / 3
    }
    assert evaluator._metrics(LoggedEvaluation(None, "r", "failed"), "all", "", with_tag=True) == {}
    assert len(tagged) == 1


@pytest.mark.parametrize(
    ("status", "model_id", "strict"),
    [
        ("completed", None, False),
        ("completed", "m", False),
        ("saved", None, False),
        ("failed", "m", True),
    ],
)
def test_mlflow_logs_the_metrics_of_a_model_itself(
    monkeypatch: pytest.MonkeyPatch, status: str, model_id: str | None, strict: bool
) -> None:
    asked: list[Any] = []

    def log(*given: Any, **how: Any) -> LoggedEvaluation:
        asked.append(how)
        return LoggedEvaluation(evaluate([0, 1], [0, 1]), "r", status)

    monkeypatch.setattr(evaluator, "log_evaluation", log)
    monkeypatch.setattr(evaluator, "_artifacts", lambda *which: {which: "file"})
    config = {"metrics": ["multiclass/accuracy"], "strict": strict}
    known = KNOWN | config.keys() | {"prefix"}
    result = evaluator.evaluate_dataset(
        data(), config=config, known=known, run_id="r", model_id=model_id
    )
    assert (result.metrics, dict(result.artifacts)) == (
        {"multiclass/accuracy": 1.0},
        {("r", ""): "file"} if status == "completed" else {},
    )
    [how] = asked
    assert how["metrics"] == ([] if model_id else ["multiclass/accuracy"])
    assert (how["run_id"], how["model_id"], how["strict"]) == ("r", model_id, strict)
    defaults = {
        "step": None,
        "prefix": "",
        "predictions": "auto",
        "on_existing": "replace",
        "dataset": None,
    }
    assert {name: how[name] for name in defaults} == defaults
    assert how["figures"] == "auto"


def test_a_failure_is_a_warning_or_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(of: Any, **config: Any) -> Any:
        return evaluator.evaluate_dataset(
            of, config=config, known=KNOWN | config.keys(), run_id="r"
        )

    with pytest.warns(UserWarning, match="the evaluation failed: the evaluation needs labels"):
        assert run(data(labels=None)).metrics == {}
    with pytest.raises(ValueError, match="the evaluation needs labels"):
        run(data(labels=None), strict=True)
    statuses = ["completed", "saved", "completed"]
    one = evaluate([0, 1], [0, 1])
    monkeypatch.setattr(
        evaluator, "log_evaluation", lambda *_, **__: LoggedEvaluation(one, "r", statuses.pop(0))
    )
    with pytest.warns(
        UserWarning,
        match="is logged, but MLflow's result of it is empty: this evaluation has no metric",
    ):
        assert run(data(), metrics=["no/such"]).metrics == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(data(), metrics=["no/such"]).metrics == {}
    with pytest.raises(ValueError, match="this evaluation has no metric"):
        run(data(), metrics=["no/such"], strict=True)
