"""``y_score``: decision values of an SVC or Ridge rank rows, and give metrics of ranking only."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.svm import SVC, LinearSVC

from cmtrack import Accumulator, Evaluation, Grouping, compare, evaluate, evaluate_table
from cmtrack.cli import main
from cmtrack.evaluation.compute import DECISION_VALUES
from cmtrack.statistics.probabilities import from_decisions, to_decisions
from cmtrack_integrations.sklearn import evaluate_estimator
from support.problems import random_features, random_labels

RNG = np.random.default_rng(2)
Y = random_labels(500, 2, RNG)
D = random_features(Y, 2, 1.2, RNG) @ [-1, 1]
Y4 = random_labels(600, 4, RNG)
D4 = random_features(Y4, 4, 2.0, RNG)
NOT_OF_RANKING = (
    "probability/",
    "calibration/",
    "confidence/",
    "spcc/b",
    "spcc/o",
    "prevalence/calibrated",
    "cost/bayes",
)


def test_two_classes():
    found = evaluate(Y, y_score=D)
    assert found.metrics["binary/roc_auc"] == pytest.approx(roc_auc_score(Y, D), abs=1e-12)
    assert found.metrics["binary/average_precision"] == pytest.approx(average_precision_score(Y, D), abs=1e-12)
    assert found.metrics["multiclass/accuracy"] == np.mean((D > 0) == Y)
    assert not [name for name in found.metrics if name.startswith(NOT_OF_RANKING)]
    assert DECISION_VALUES in found.warnings
    assert found.calibration is None
    assert found.prevalence is None
    roc, curve = found.roc, found.precision_recall
    assert roc is not None
    assert curve is not None
    assert sorted(roc.thresholds[1:]) == pytest.approx(sorted(D), rel=1e-9)
    assert math.isinf(roc.thresholds[0])
    assert sorted(curve.thresholds) == pytest.approx(sorted(D), rel=1e-9)
    assert set(found.figures()) >= {"roc", "precision_recall"}
    assert not set(found.figures()) & {"reliability", "scores"}


def test_several_classes():
    found = evaluate(Y4, y_score=D4, labels=range(4), grouping=Grouping({"a": [0, 1], "b": [2, 3]}))
    for k in range(4):
        assert found.metrics[f"class/{k}/roc_auc"] == pytest.approx(roc_auc_score(k == Y4, D4[:, k]), abs=1e-12)
        expected = average_precision_score(k == Y4, D4[:, k])
        assert found.metrics[f"class/{k}/average_precision"] == pytest.approx(expected, abs=1e-12)
        assert f"class/{k}/calibration_error" not in found.metrics
    assert found.metrics["multiclass/accuracy"] == np.mean(D4.argmax(axis=1) == Y4)
    assert 0 < found.metrics["multiclass/top_2_accuracy"] <= 1
    assert "binary/recall" in found.metrics  # from the predicted classes
    assert "binary/roc_auc" not in found.metrics  # decision values of several classes have no sum
    assert found.statistics.ranking_only


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50), st.floats(0.01, 100))
def test_order_is_kept_and_any_increasing_map_gives_the_same(values, scale):
    placed = from_decisions(np.array(values))
    assert ((placed >= 0) & (placed <= 1)).all()
    assert to_decisions(placed) == pytest.approx(values, rel=1e-3, abs=1e-9)
    d = np.round(D * scale, 3)
    shifted = evaluate(Y, y_score=d).metrics["binary/roc_auc"]
    assert shifted == pytest.approx(roc_auc_score(Y, d), abs=1e-9)


def test_every_way_gives_the_same(tmp_path: Path):
    whole = evaluate(Y, y_score=D)
    seen = Accumulator([0, 1])
    for rows in (slice(200), slice(200, 500)):
        seen.update(Y[rows], y_score=D[rows])
    frame = pd.DataFrame({"y": Y, "d": D})
    frame.to_parquet(tmp_path / "rows.parquet")
    table = evaluate_table(str(tmp_path / "rows.parquet"), y_true="y", y_score="d")
    for other in (seen.compute(), table):
        assert other.metrics == pytest.approx(whole.metrics, nan_ok=True)
    lists = pd.DataFrame({"y": Y4, **{f"d_{k}": D4[:, k] for k in range(4)}})
    lists.to_parquet(tmp_path / "many.parquet")
    many = evaluate_table(str(tmp_path / "many.parquet"), y_true="y", y_score="d_*", labels=range(4))
    assert many.metrics == pytest.approx(evaluate(Y4, y_score=D4, labels=range(4)).metrics, nan_ok=True)
    run = CliRunner().invoke(main, ["evaluate", str(tmp_path / "rows.parquet"), "--y-true", "y", "--y-score", "d"])
    assert run.exit_code == 0, run.output
    assert f"{whole.metrics['binary/roc_auc']:.3f}" in run.output
    assert "metrics of ranking only" in run.output.replace("\n", " ")


def test_they_are_stored_with_their_rows(tmp_path: Path):
    found = evaluate(Y4, y_score=D4, labels=range(4), groups=np.arange(600) // 2)
    found.save(tmp_path)
    loaded = Evaluation.load(tmp_path)
    assert loaded == found
    influence = loaded.influence("multiclass/roc_auc_ovr_macro")
    assert influence == pytest.approx(found.influence("multiclass/roc_auc_ovr_macro"), abs=0.05)
    regrouped = found.regroup(Grouping({"a": [0, 1], "b": [2, 3]}))
    assert regrouped.metrics["class/1/roc_auc"] == found.metrics["class/1/roc_auc"]
    merged = evaluate(Y, y_score=D) + evaluate(Y, y_score=D)
    assert merged.metrics["binary/roc_auc"] == pytest.approx(evaluate(Y, y_score=D).metrics["binary/roc_auc"])
    with pytest.raises(ValueError, match="must hold the same statistics"):
        evaluate(Y, y_score=D) + evaluate(Y, y_prob=from_decisions(D))


def test_runs_with_and_without_probabilities_are_ranked_by_what_both_have():
    runs = {"svc": evaluate(Y, y_score=D), "model": evaluate(Y, y_prob=from_decisions(D / 2))}
    comparison = compare(runs, rank_by="binary/roc_auc")
    assert len(comparison.to_frame()) == 2


def test_classifiers_without_probabilities_are_ranked_by_their_decision_function():
    X, y = make_classification(400, random_state=0)
    model = RidgeClassifier().fit(X[:200], y[:200])
    found = evaluate_estimator(model, X[200:], y[200:])
    expected = roc_auc_score(y[200:], model.decision_function(X[200:]))
    assert found.metrics["binary/roc_auc"] == pytest.approx(expected, abs=1e-12)
    assert any("log loss, calibration, sPCC and prevalence are left out" in text for text in found.warnings)
    first = evaluate_estimator(model, X[200:], y[200:], positive=0)
    assert first.metrics["binary/roc_auc"] == pytest.approx(expected, abs=1e-12)
    X, y = load_digits(return_X_y=True)
    several = LinearSVC(dual="auto").fit(X[:600] / 16, y[:600])
    found = evaluate_estimator(several, X[600:1000] / 16, y[600:1000])
    areas = [roc_auc_score(y[600:1000] == k, several.decision_function(X[600:1000] / 16)[:, k]) for k in range(10)]
    assert found.metrics["multiclass/roc_auc_ovr_macro"] == pytest.approx(np.mean(areas), abs=1e-12)
    three = y < 3
    pairs = SVC(decision_function_shape="ovo").fit(X[three][:200], y[three][:200])
    assert "class/1/roc_auc" not in evaluate_estimator(pairs, X[three][200:], y[three][200:]).metrics


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y_score": [0.1, math.nan, 1]}, "y_score must be finite, got nan at row 1"),
        ({"y_score": [0.1, math.inf, 1]}, "y_score must be finite, got inf at row 1"),
        ({"y_score": [0.1, 2, 1], "y_prob": [0.1, 0.2, 1]}, "y_prob and y_score must not both be given"),
        ({"y_score": [0.1, 2]}, "y_score must have one row per label, got 2 rows and 3 labels"),
        ({"y_score": [0.1, 2, 3], "target": [0.2]}, "calibration and target need y_prob, got none"),
        ({"y_prob": [0.1, 2, 3]}, "decision values of an SVC or Ridge go to y_score"),
        ({"y_prob": [-4.1, 2, 3]}, "logits of a network become probabilities by softmax, of two classes by sigmoid"),
    ],
)
def test_bad_input(given, said):
    with pytest.raises(ValueError, match=said):
        evaluate([0, 1, 1], **given)


def test_what_needs_probabilities_says_so():
    found = evaluate(Y, y_score=D)
    for ask in (lambda: found.threshold({(1, 0): 5.0}), found.net_benefit, lambda: found.reject(0.1)):
        with pytest.raises(ValueError, match=r"needs (the )?probabilities of"):
            ask()
    with pytest.raises(ValueError, match="threshold needs y_prob and no y_pred"):
        evaluate(Y, y_score=D, threshold=0.3)
    assert found.risk_coverage is None
    assert found.gains is not None


def test_costs_know_no_decisions_of_decision_values():
    costs = {(0, 1): 1.0, (1, 0): 5.0}
    priced = evaluate(Y, y_score=D, costs=costs)
    assert evaluate(Y, y_score=D).price(costs) == priced
    assert "cost/mean" in priced.metrics
    assert "cost/bayes" not in priced.metrics


def test_bad_tables():
    frame = pd.DataFrame({"y": [0, 1, 1], "d": [0.1, math.nan, 3]})
    with pytest.raises(ValueError, match="y_score must be finite"):
        evaluate_table(frame, y_true="y", y_score="d")
    with pytest.raises(ValueError, match=r"logits of a network .*; decision values of an SVC or Ridge go to y_score"):
        evaluate_table(frame.fillna(2.0), y_true="y", y_prob="d")
