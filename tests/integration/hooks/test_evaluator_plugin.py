"""cmtrack inside `mlflow.models.evaluate`: when it runs, what it reads, what it returns and logs."""

from __future__ import annotations

import json
import logging
import math
import re
import subprocess
import sys
from importlib import metadata

import mlflow
import numpy as np
import pandas as pd
import pytest
from mlflow.exceptions import MlflowException
from mlflow.models import MetricThreshold, infer_signature
from mlflow.models import evaluate as mlflow_evaluate
from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry as registry
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmtrack import Grouping, evaluate, load_evaluation
from cmtrack.evaluation import Spec
from cmtrack.tracking import EvaluationWarning
from cmtrack_integrations.mlflow_evaluator import CmtrackEvaluator, options
from support.problems import learning_problem
from support.stores import runs_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]

LEVEL = Grouping({"low": [0, 1, 2, 3], "high": [4, 5, 6]}, name="level")
COLUMNS = [f"p_{k}" for k in range(7)]

logging.getLogger("mlflow").setLevel(logging.ERROR)


@pytest.fixture(autouse=True)
def plugin(store):
    """The evaluator as the installed entry point registers it (or would)."""
    if not registry.is_registered("cmtrack"):
        registry.register("cmtrack", CmtrackEvaluator)
    return store


@pytest.fixture
def frame(seven_classes):
    """Labels, predictions and probabilities as a frame."""
    y, p = seven_classes
    return pd.DataFrame(p, columns=COLUMNS).assign(
        y=y, predicted=p.argmax(axis=1), weight=1.0 + y % 2
    )


@pytest.fixture(scope="module")
def problem():
    """Features, labels and a fitted pipeline of three classes."""
    x, y, _, _ = learning_problem(3, 240, held=0, width=3, skill=1.2, seed=3)
    x = pd.DataFrame(x, columns=["a", "b", "c"])
    return x, y, make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)


def static(data, **options):
    """A static evaluation of `frame`."""
    config = {"y_prob": "p_*", "grouping": LEVEL} | options.pop("config", {})
    return mlflow_evaluate(
        data=data,
        targets="y",
        predictions="predicted",
        model_type="classifier",
        evaluators=["cmtrack"],
        evaluator_config={"cmtrack": config},
        **options,
    )


def only_run(client):
    (run,) = runs_of(client)
    return run


def headline(evaluation):
    return {
        n: evaluation.metrics[n]
        for n in evaluation.headline
        if math.isfinite(evaluation.metrics[n])
    }


# -- when it runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"log_model_explainability": False},
        {"classifier": {"pos_label": 1}},
        {"labels": [0, 1], "another": 1},
        {"cmtrack": {}},
    ],
)
def test_nobody_who_did_not_ask_gets_it(store, frame, config):
    mlflow_evaluate(
        data=frame[["y", "predicted"]],
        targets="y",
        predictions="predicted",
        model_type="classifier",
        evaluator_config=config,
    )
    run = only_run(store)
    assert "accuracy_score" in run.data.metrics
    assert not [
        name for name in {**run.data.metrics, **run.data.tags} if "/" in name or "cmtrack" in name
    ]
    assert not [
        item.path for item in store.list_artifacts(run.info.run_id) if "cmtrack" in item.path
    ]


@pytest.mark.parametrize(
    ("evaluators", "config"),
    [
        ("cmtrack", None),
        (["cmtrack"], None),
        (["default", "cmtrack"], None),
        ("cmtrack", {"grouping": LEVEL}),
        ("cmtrack", {"cmtrack": {"grouping": LEVEL}}),
        (["default", "cmtrack"], {"cmtrack": {"grouping": LEVEL}}),
        (None, {"cmtrack": {"grouping": LEVEL}}),
    ],
)
def test_asked_for_by_name_or_by_configuration(store, frame, evaluators, config):
    result = mlflow_evaluate(
        data=frame[["y", "predicted"]],
        targets="y",
        predictions="predicted",
        model_type="classifier",
        evaluators=evaluators,
        evaluator_config=config,
    )
    expected = headline(
        evaluate(frame["y"], frame["predicted"], grouping=LEVEL if config else None)
    )
    logged = only_run(store).data.metrics
    assert expected.items() <= logged.items()
    assert expected.items() <= result.metrics.items()
    assert ("accuracy_score" in logged) == (evaluators is None or "default" in evaluators)


def test_a_regressor_is_not_for_cmtrack(frame):
    with pytest.raises(MlflowException, match="could not be evaluated by any"):
        mlflow_evaluate(
            data=frame,
            targets="y",
            predictions="predicted",
            model_type="regressor",
            evaluators="cmtrack",
        )


def test_the_installed_package_registers_it():
    found = metadata.entry_points(group="mlflow.model_evaluator", name="cmtrack")
    if not found:
        pytest.skip("cmtrack runs from its folder here, it is not installed")
    assert {entry.value for entry in found} == {
        "cmtrack_integrations.mlflow_evaluator:CmtrackEvaluator"
    }
    assert isinstance(registry.get_evaluator("cmtrack"), CmtrackEvaluator)


def test_the_module_that_mlflow_loads_is_trivial():
    code = (
        "import sys, mlflow.models.evaluation.base\n"
        "before = set(sys.modules)\n"
        "import cmtrack_integrations.mlflow_evaluator\n"
        "print([name for name in set(sys.modules) - before if not name.startswith('cmtrack')])\n"
        "print(sorted(name for name in sys.modules if name.startswith('cmtrack')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines()[-2:] == [
        "[]",
        "['cmtrack_integrations', 'cmtrack_integrations.mlflow_evaluator']",
    ]


# -- static predictions --------------------------------------------------------------------------------------


def test_static_predictions_give_the_evaluation_of_the_same_arrays(store, frame):
    result = static(frame)
    run = only_run(store)
    expected = evaluate(
        frame["y"], frame["predicted"], y_prob=frame[COLUMNS].to_numpy(), grouping=LEVEL
    )
    assert load_evaluation(run.info.run_id) == expected
    assert result.metrics == run.data.metrics == headline(expected)
    assert run.info.status == "FINISHED"
    assert run.data.tags["cmtrack.status"] == "completed"


def test_a_threshold_decides_in_place_of_the_predictions(store, frame):
    result = static(frame, config={"threshold": 0.3})
    expected = evaluate(frame["y"], y_prob=frame[COLUMNS].to_numpy(), grouping=LEVEL, threshold=0.3)
    assert result.metrics == headline(expected)
    assert load_evaluation(only_run(store).info.run_id).decision_threshold == 0.3


@pytest.mark.parametrize("wanted", ["p_*", COLUMNS, dict(enumerate(COLUMNS))])
def test_ways_to_name_the_probabilities(store, frame, wanted):
    result = static(frame.drop(columns="weight"), config={"y_prob": wanted})
    assert result.metrics["multiclass/accuracy"] == pytest.approx(
        (frame["y"] == frame["predicted"]).mean()
    )
    assert "binary/roc_auc" in result.metrics


def test_one_column_is_the_positive_class(store, frame):
    rows = pd.DataFrame(
        {"y": (frame["y"] > 3).map({True: "yes", False: "no"}), "s": frame[COLUMNS[4:]].sum(axis=1)}
    )
    result = mlflow_evaluate(
        data=rows,
        targets="y",
        model_type="classifier",
        evaluators="cmtrack",
        evaluator_config={"y_prob": "s", "positive": "yes", "labels": ["yes", "no"]},
    )
    expected = evaluate(rows["y"], y_prob=rows["s"], positive="yes", labels=["yes", "no"])
    assert result.metrics == headline(expected)


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("as_file", [False, True])
def test_columns_and_plain_data_as_options(store, frame, tmp_path, as_file):
    grouping = LEVEL.to_dict()
    if as_file:
        grouping = tmp_path / "level.json"
        grouping.write_text(json.dumps(LEVEL.to_dict()))
    config = {
        "grouping": str(grouping) if as_file else grouping,
        "sample_weight": "weight",
        "groups": np.arange(400) // 2,
        "row_ids": np.arange(400),
        "prefix": "test/",
        "metrics": ["multiclass/accuracy", "class/*"],
        "step": 3,
        "predictions": False,
        "confidence_level": 0.9,
    }
    result = static(frame, config=config)
    run = only_run(store)
    evaluation = load_evaluation(run.info.run_id, prefix="test/")
    assert evaluation.confidence_level == 0.9
    assert evaluation.n_samples == frame["weight"].sum()
    assert evaluation.statistics.row_ids is not None
    assert evaluation.cluster_errors
    assert set(result.metrics) == set(run.data.metrics)
    assert {"test/multiclass/accuracy", "test/class/6/recall"} <= set(result.metrics)
    assert [
        point.step
        for point in store.get_metric_history(run.info.run_id, "test/multiclass/accuracy")
    ] == [3]
    assert "test_cmtrack_confusion_matrix" in result.artifacts
    assert "test_cmtrack_predictions" not in result.artifacts


def test_numpy_data_with_feature_names(store, seven_classes):
    y, p = seven_classes
    result = mlflow_evaluate(
        data=p,
        targets=y,
        feature_names=COLUMNS,
        model_type="classifier",
        evaluators="cmtrack",
        evaluator_config={"y_prob": "p_*"},
    )
    assert result.metrics == headline(evaluate(y, y_prob=p))


def test_an_mlflow_dataset(store, frame):
    dataset = mlflow.data.from_pandas(frame, targets="y", predictions="predicted", name="holdout")
    result = mlflow_evaluate(
        data=dataset,
        model_type="classifier",
        evaluators="cmtrack",
        evaluator_config={"y_prob": "p_*"},
    )
    assert result.metrics == headline(evaluate(frame["y"], y_prob=frame[COLUMNS].to_numpy()))
    names = {given.dataset.name for given in only_run(store).inputs.dataset_inputs}
    assert "holdout" in names
    assert any(re.fullmatch(r"\d+ rows of \d+ classes", name) for name in names)


def test_held_out_scores_calibrate(store, frame, seven_classes):
    held = (frame["y"][:200], frame[COLUMNS][:200].to_numpy())
    result = static(frame[200:], config={"calibration": held})
    expected = evaluate(
        frame["y"][200:],
        frame["predicted"][200:],
        y_prob=frame[COLUMNS][200:].to_numpy(),
        grouping=LEVEL,
        calibration=held,
    )
    assert result.metrics["prevalence/calibrated"] == expected.metrics["prevalence/calibrated"]


# -- models --------------------------------------------------------------------------------------------------


def logged_model(estimator, x):
    with mlflow.start_run(run_name="training"):
        return mlflow.sklearn.log_model(
            estimator,
            name="model",
            signature=infer_signature(x, estimator.predict(x)),
            pip_requirements=[],
        )


def evaluated_model(model, problem, **options):
    x, y, _ = problem
    data = options.pop("data", x.assign(y=y))
    with mlflow.start_run(run_name="evaluation") as run:
        result = mlflow_evaluate(
            model,
            data,
            targets=y if isinstance(data, np.ndarray) else "y",
            model_type="classifier",
            evaluators=options.pop("evaluators", "cmtrack"),
            evaluator_config=options.pop("config", None),
            **options,
        )
    return result, run.info.run_id


def test_a_logged_model_is_asked_for_probabilities_and_nothing_is_logged_twice(store, problem):
    x, y, estimator = problem
    info = logged_model(estimator, x)
    result, run_id = evaluated_model(
        info.model_uri,
        problem,
        evaluators=["classifier", "cmtrack"],
        config={"classifier": {"log_model_explainability": False, "log_explainer": False}},
    )
    expected = headline(evaluate(y, estimator.predict(x), y_prob=estimator.predict_proba(x)))
    assert expected.items() <= result.metrics.items()
    run = store.get_run(run_id)
    assert set(run.data.metrics) == set(result.metrics)
    for name in expected:
        assert len(store.get_metric_history(run_id, name)) == 1
    linked = {m.key: m.value for m in store.get_logged_model(info.model_id).metrics}
    assert expected.items() <= linked.items()
    assert load_evaluation(run_id).metrics["multiclass/accuracy"] == expected["multiclass/accuracy"]
    assert run.data.tags["cmtrack.status"] == "completed"


def test_a_model_id_with_static_predictions(store, frame):
    model = mlflow.create_external_model(name="m")
    with mlflow.start_run() as run:
        result = static(frame, model_id=model.model_id)
    assert "binary/roc_auc" in result.metrics
    for name in result.metrics:
        assert len(store.get_metric_history(run.info.run_id, name)) == 1
    linked = store.get_logged_model(model.model_id).metrics
    assert sorted(m.key for m in linked) == sorted(result.metrics)


def test_undefined_metrics_stay_named_with_a_model_id(store):
    model = mlflow.create_external_model(name="m")
    rows = pd.DataFrame({"y": [0, 0, 1, 1], "predicted": [0, 0, 0, 0]})
    result = static(
        rows, model_id=model.model_id, config={"y_prob": None, "grouping": None, "labels": [0, 1]}
    )
    assert all(map(math.isfinite, result.metrics.values()))
    assert "multiclass/matthews_corrcoef" in only_run(store).data.tags["cmtrack.nan"]


def test_a_model_in_memory_and_numpy_features(store, problem):
    x, y, _ = problem
    estimator = make_pipeline(StandardScaler(), LogisticRegression()).fit(x.to_numpy(), y)
    model = mlflow.pyfunc.load_model(logged_model(estimator, x.to_numpy()).model_uri)
    result, _ = evaluated_model(model, problem, data=x.to_numpy())
    assert result.metrics == headline(evaluate(y, y_prob=estimator.predict_proba(x.to_numpy())))


def test_predict_proba_as_the_pyfunc_function(store, problem):
    x, y, estimator = problem
    with mlflow.start_run():
        info = mlflow.sklearn.log_model(
            estimator, name="model", pyfunc_predict_fn="predict_proba", pip_requirements=[]
        )
    result, _ = evaluated_model(info.model_uri, problem)
    assert result.metrics == headline(
        evaluate(y, estimator.predict(x), y_prob=estimator.predict_proba(x))
    )


def test_columns_that_are_options_are_no_features(store, problem):
    x, y, estimator = problem
    info = logged_model(estimator, x)
    weights = 1.0 + y
    result, _ = evaluated_model(
        info.model_uri, problem, data=x.assign(y=y, w=weights), config={"sample_weight": "w"}
    )
    expected = evaluate(y, y_prob=estimator.predict_proba(x), sample_weight=weights)
    assert result.metrics["multiclass/accuracy"] == pytest.approx(
        expected.metrics["multiclass/accuracy"]
    )


def test_a_function_that_returns_probabilities_labels_or_a_frame(store, problem):
    x, y, estimator = problem
    full = headline(evaluate(y, y_prob=estimator.predict_proba(x)))
    result, _ = evaluated_model(lambda frame: estimator.predict_proba(frame), problem)
    assert result.metrics == full
    names = [f"p_{k}" for k in range(3)]

    def table(frame):
        return pd.DataFrame(estimator.predict_proba(frame), columns=names).assign(
            label=estimator.predict(frame)
        )

    result, _ = evaluated_model(table, problem, predictions="label", config={"y_prob": "p_*"})
    assert result.metrics == full
    with pytest.warns(EvaluationWarning, match="only labels"):
        result, _ = evaluated_model(lambda frame: estimator.predict(frame), problem)
    assert result.metrics == headline(evaluate(y, estimator.predict(x)))


def test_an_output_that_is_the_probability_of_the_positive_class(store, problem):
    x, y, _ = problem
    binary = (y == 2).astype(int)
    estimator = LogisticRegression().fit(x, binary)
    result, _ = evaluated_model(
        lambda frame: estimator.predict_proba(frame)[:, 1],
        problem,
        data=x.assign(y=binary),
        config={"y_prob": "output"},
    )
    expected = headline(evaluate(binary, y_prob=estimator.predict_proba(x)[:, 1]))
    # of a frame in other memory BLAS may round otherwise
    assert result.metrics == pytest.approx(expected, rel=1e-12)


def test_inference_parameters_reach_the_model(store, problem):
    x, y, estimator = problem

    class Tempered(mlflow.pyfunc.PythonModel):
        def predict(self, context, model_input, params=None):
            p = estimator.predict_proba(model_input) ** float((params or {}).get("power", 1.0))
            return p / p.sum(axis=1, keepdims=True)

    signature = infer_signature(x, estimator.predict_proba(x), params={"power": 1.0})
    with mlflow.start_run():
        info = mlflow.pyfunc.log_model(
            name="model", python_model=Tempered(), signature=signature, pip_requirements=[]
        )
    result, _ = evaluated_model(info.model_uri, problem, config={"params": {"power": 2.0}})
    p = estimator.predict_proba(x) ** 2.0
    expected = evaluate(y, y_prob=p / p.sum(axis=1, keepdims=True))
    assert result.metrics["spcc/ovr_fisher"] == pytest.approx(expected.metrics["spcc/ovr_fisher"])


def test_a_classifier_without_probabilities(store, problem):
    x, y, _ = problem
    estimator = RidgeClassifier().fit(x, y)
    info = logged_model(estimator, x)
    with pytest.warns(EvaluationWarning, match="only labels"):
        result, _ = evaluated_model(info.model_uri, problem)
    assert result.metrics == headline(evaluate(y, estimator.predict(x)))


# -- what it returns -----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("drawn")
def test_artifacts_open(store, frame, tmp_path):
    result = static(frame)
    assert result.artifacts["cmtrack_confusion_matrix"].content.size[0] > 100
    assert result.artifacts["cmtrack_evaluation"].content["schema"] == 2
    assert len(result.artifacts["cmtrack_predictions"].content) == 400
    assert "<html" in result.artifacts["cmtrack_report"].content
    assert result.tables["cmtrack_classes"]["label"].tolist() == list(range(7))
    result.save(tmp_path / "saved")
    again = type(result).load(tmp_path / "saved")
    assert again.metrics == result.metrics
    assert set(again.artifacts) == set(result.artifacts)


def test_mlflow_validates_what_it_returns(store, frame):
    result = static(frame)
    name = "binary/matthews_corrcoef"
    value = result.metrics[name]
    worse = static(
        frame.assign(predicted=frame["predicted"].sample(frac=1, random_state=1).to_numpy())
    )
    kept = {
        name: MetricThreshold(
            threshold=value - 0.01, min_absolute_change=0.05, greater_is_better=True
        )
    }
    mlflow.validate_evaluation_results(kept, result, worse)
    broken = {name: MetricThreshold(threshold=value + 0.01, greater_is_better=True)}
    with pytest.raises(MlflowException, match=name):
        mlflow.validate_evaluation_results(broken, result)


# -- failures ------------------------------------------------------------------------------------------------


@pytest.mark.thin(4)
@pytest.mark.parametrize(
    ("config", "text", "with_model"),
    [
        ({"groupng": LEVEL}, "got 'groupng'", False),
        ({"y_prob": "q_*"}, "no column matches", True),
        ({"y_prob": "q"}, "y_prob must name a column", False),
        ({"y_prob": 3}, "y_prob must be a column", False),
        ({"grouping": 3}, "grouping must be a Grouping", False),
        ({"grouping": "none.yaml"}, "No such file", False),
        ({"sample_weight": "w"}, "sample_weight must name a column", False),
        ({"metrics": ["multiclass/acuracy"]}, "no metric 'multiclass/acuracy'", True),
        ({"prefix": "../"}, "prefix must", False),
        ({"positive": "middle"}, "positive must be one of", False),
    ],
)
def test_a_failure_warns_and_leaves_the_run_and_the_other_evaluators_alone(
    store, frame, config, text, with_model
):
    model_id = mlflow.create_external_model(name="m").model_id if with_model else None
    with pytest.warns(EvaluationWarning, match=text):
        result = mlflow_evaluate(
            data=frame,
            targets="y",
            predictions="predicted",
            model_type="classifier",
            model_id=model_id,
            evaluators=["default", "cmtrack"],
            evaluator_config={"cmtrack": {"y_prob": "p_*", "grouping": LEVEL} | config},
        )
    run = only_run(store)
    assert run.info.status == "FINISHED"
    assert "accuracy_score" in result.metrics
    assert run.data.metrics.keys() == result.metrics.keys()


def test_bad_probabilities_are_kept_in_the_local_folder(store, frame, tmp_path):
    with pytest.warns(EvaluationWarning, match="must sum to 1"):
        result = static(frame.assign(p_0=1.0))
    assert result.metrics == {}
    assert only_run(store).info.status == "FINISHED"
    assert len(list((tmp_path / "cmtrack_spool").iterdir())) == 1


def test_strict_raises(store, frame):
    with pytest.raises(ValueError, match="got 'groupng'"):
        static(frame, config={"groupng": 1, "strict": True})
    with pytest.raises(ValueError, match="must sum to 1"):
        static(frame.assign(p_0=1.0), config={"strict": True})


def test_the_options_are_those_of_the_docstring():
    of_evaluate = f"{Spec.__module__}.{Spec.__name__}"
    for name in (*(options() - Spec.options().keys()), of_evaluate):
        assert name in str(CmtrackEvaluator.__doc__)


def test_columns_of_the_data_are_segments(frame, problem):
    """They divide the rows, and a model is not given them."""
    where = np.where(np.arange(len(frame)) % 3 == 0, "north", "south")
    names = ["region", ["region", "half"]]
    with mlflow.start_run() as run:
        static(
            frame.assign(region=where, half=np.arange(len(frame)) % 2), config={"segments": names}
        )
    found = load_evaluation(run.info.run_id)
    assert list(found.segments) == ["region", "region × half"]
    expected = evaluate(frame["y"], frame["predicted"], segments={"region": where}).segments[
        "region"
    ]
    for value in ("north", "south"):
        own = found.segments["region"][value].metrics["multiclass/accuracy"]
        assert own == expected[value].metrics["multiclass/accuracy"]
    x, y, model = problem
    info = logged_model(model, x)
    with mlflow.start_run() as run:
        data = x.assign(y=y, region=np.arange(len(y)) % 2)
        mlflow_evaluate(
            model=info.model_uri,
            data=data,
            targets="y",
            model_type="classifier",
            evaluators=["cmtrack"],
            evaluator_config={"cmtrack": {"segments": ["region"], "strict": True}},
        )
    assert load_evaluation(run.info.run_id).segments["region"].sizes.tolist() == [120, 120]
