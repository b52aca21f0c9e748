"""``y_score``: decision values of an SVC or Ridge rank rows, and give metrics of ranking only."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from scipy.special import expit
from sklearn.datasets import load_digits, make_classification
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.svm import SVC, LinearSVC

from cmtrack import Accumulator, Evaluation, Grouping, compare, evaluate, evaluate_table
from cmtrack.cli import main
from cmtrack.statistics import EXACT_ROWS, ScoreCounts
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


@pytest.mark.slow
def test_two_classes():
    found = evaluate(Y, y_score=D)
    assert found.metrics["binary/roc_auc"] == pytest.approx(roc_auc_score(Y, D), abs=1e-12)
    assert found.metrics["binary/average_precision"] == pytest.approx(
        average_precision_score(Y, D), abs=1e-12
    )
    assert found.metrics["multiclass/accuracy"] == np.mean((D > 0) == Y)
    assert not [name for name in found.metrics if name.startswith(NOT_OF_RANKING)]
    assert any(
        "only ranking metrics are computed: no log loss, calibration, sPCC or calibrated" in text
        for text in found.warnings
    )
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
        assert found.metrics[f"class/{k}/roc_auc"] == pytest.approx(
            roc_auc_score(k == Y4, D4[:, k]), abs=1e-12
        )
        expected = average_precision_score(k == Y4, D4[:, k])
        assert found.metrics[f"class/{k}/average_precision"] == pytest.approx(expected, abs=1e-12)
        assert f"class/{k}/calibration_error" not in found.metrics
    assert found.metrics["multiclass/accuracy"] == np.mean(D4.argmax(axis=1) == Y4)
    assert 0 < found.metrics["multiclass/top_2_accuracy"] <= 1
    assert "binary/recall" in found.metrics  # from the predicted classes
    assert "binary/roc_auc" not in found.metrics  # decision values of several classes have no sum
    assert found.statistics.ranking_only


SCALES = {
    "as they are": lambda scores: scores,
    "far from 0": lambda scores: scores + 1e10,
    "below 0": lambda scores: scores - 1e12,
    "near 0": lambda scores: scores * 1e-17,
    "very near 0": lambda scores: scores * 1e-290,
    "large": lambda scores: scores * 1e20,
    "a power": lambda scores: np.sinh(scores * 10),
}
"""Increasing maps, after which no two of a hundred rounded scores are equal."""


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_every_increasing_map_gives_the_same_metrics_of_ranking(scale: Any, tmp_path: Path) -> None:
    scores = np.round(D, 2)
    expected = evaluate(Y, scores > 0, y_score=scores).metrics
    assert expected["binary/roc_auc"] == pytest.approx(roc_auc_score(Y, scores), abs=1e-12)
    moved = evaluate(Y, scores > 0, y_score=scale(scores))
    assert moved.metrics == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert moved.roc is not None
    assert moved.roc.thresholds[1:].tolist() == sorted(set(scale(scores)), reverse=True)
    moved.save(tmp_path)
    loaded = Evaluation.load(tmp_path)
    assert loaded == moved
    assert np.array_equal(loaded.rows.probabilities, moved.rows.probabilities)
    assert moved.influence("binary/roc_auc") == pytest.approx(
        evaluate(Y, y_score=scores).influence("binary/roc_auc")
    )
    batches = Accumulator([0, 1])
    for rows in (slice(130), slice(130, 500)):
        batches.update(Y[rows], (scores > 0)[rows].astype(int), y_score=scale(scores)[rows])
    frame = pd.DataFrame({"y": Y, "z": (scores > 0).astype(int), "d": scale(scores)})
    table = evaluate_table(frame, y_true="y", y_pred="z", y_score="d")
    for other in (batches.compute(), table):
        assert other.metrics == pytest.approx(expected, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_every_increasing_map_gives_the_same_predicted_classes(scale: Any) -> None:
    scores = np.round(D4, 2)
    expected = evaluate(Y4, y_score=scores)
    moved = evaluate(Y4, y_score=scale(scores))
    assert moved.metrics == pytest.approx(expected.metrics, abs=1e-12, nan_ok=True)
    assert moved.confusion_matrix == expected.confusion_matrix


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["as they are", "far from 0", "very near 0"])
def test_many_decision_values_lose_only_their_last_bits_whatever_the_order_of_batches(
    scale: str,
) -> None:
    """More of them than are counted one by one."""
    rng = np.random.default_rng(0)
    parts = [SCALES[scale](rng.normal(k, 1.0 + k, 50_000)) for k in range(6)]
    truth = [rng.integers(0, 2, 50_000) for _ in range(6)]
    together = evaluate(np.concatenate(truth), y_score=np.concatenate(parts), sections=["binary"])
    assert len(together.rows) > EXACT_ROWS
    counted = together.statistics.scores
    assert not counted.exact
    assert 1000 < len(counted.values) <= 4096
    for order in ([0, 1, 2, 3, 4, 5], [3, 5, 0, 4, 1, 2]):
        batches = Accumulator([0, 1], sections=["binary"])
        for k in order:
            batches.update(truth[k], y_score=parts[k])
        assert batches.compute().statistics.scores == counted
    area, bound = together.roc.auc, together.roc.auc_error_bound
    expected = roc_auc_score(np.concatenate(truth), np.concatenate(parts))
    assert abs(area - expected) <= bound < 2e-3


def test_few_of_many_decision_values_are_counted_one_by_one() -> None:
    rows = np.arange(EXACT_ROWS + 1)
    counted = evaluate(rows % 2, y_score=1e10 + rows % 11, sections=["binary"]).statistics.scores
    assert counted.exact
    assert counted.values.tolist() == [1e10 + k for k in range(11)]


@pytest.mark.parametrize("weights", [None, "whole", "fractions"])
def test_weights_of_many_decision_values(weights: Any) -> None:
    rng = np.random.default_rng(0)
    rows = EXACT_ROWS + 1
    y = rng.integers(0, 2, rows)
    scores = rng.normal(y)
    w = {"whole": rng.integers(1, 4, rows), "fractions": rng.random(rows)}.get(weights)
    found = evaluate(y, y_score=scores, sample_weight=w, sections=["binary"])
    positives, negatives = found.statistics.scores.counts.reshape(2, 2, -1).sum(axis=(1, 2))
    assert [negatives, positives] == pytest.approx(np.bincount(y, w))
    assert not found.statistics.scores.exact
    expected = roc_auc_score(y, scores, sample_weight=w)
    assert abs(found.roc.auc - expected) <= found.roc.auc_error_bound < 2e-3


def test_decision_values_of_two_columns_and_of_one_are_ranked_alike() -> None:
    two = evaluate(Y, y_score=np.column_stack([-D, D]) + 1e9)
    one = evaluate(Y, two.rows.predicted, y_score=D + 1e9)
    assert two.metrics == pytest.approx(one.metrics, nan_ok=True)
    first = evaluate(Y, y_score=-D, positive=0)
    assert first.metrics["binary/roc_auc"] == evaluate(Y, y_score=D).metrics["binary/roc_auc"]


def test_a_threshold_is_on_the_scale_of_the_decision_values() -> None:
    deciles = np.round(D * 2).astype(int) + 5
    found = evaluate(Y, y_score=deciles, threshold=4.5)
    assert found.rows.predicted.tolist() == (deciles >= 4.5).astype(int).tolist()
    assert found.decision_threshold == 4.5
    again = Evaluation.from_data(json.loads(found.to_json()))
    assert again.decision_threshold == 4.5
    batches = Accumulator([0, 1], threshold=4.5)
    batches.update(Y, y_score=deciles)
    table = evaluate_table(
        pd.DataFrame({"y": Y, "d": deciles}), y_true="y", y_score="d", threshold=4.5
    )
    for other in (batches.compute(), table):
        assert other.metrics == pytest.approx(found.metrics, nan_ok=True)
    assert evaluate(Y, y_score=deciles, threshold=-99).rows.predicted.all()
    with pytest.raises(ValueError, match=r"threshold must be between 0 and 1, .*, as y_score"):
        evaluate(Y, y_prob=(deciles > 4).astype(float), threshold=4.5)
    with pytest.raises(
        ValueError,
        match="decision values of 4 classes cannot be summed; pass the predictions as y_pred",
    ):
        evaluate(Y4, y_score=D4, grouping=Grouping({"a": [0, 1], "b": [2, 3]}), threshold=0.5)


def as_of_old(found: Evaluation) -> dict[str, Any]:
    """The data that cmtrack 0.2 wrote of an evaluation of decision values: v as 1/2 + v / (1 + |v|) / 2."""
    data = json.loads(found.to_json())
    kept = found.statistics
    tables = []
    if kept.scores is not None:
        tables.append((data["statistics"]["scores"], kept.scores))
    if kept.class_scores is not None:
        by_class = [kept.class_scores.one_vs_rest(k) for k in range(len(found.labels))]
        tables += zip(data["statistics"]["class_scores"], by_class, strict=True)
    for table, counts in tables:
        del table["dropped_bits"]
        table["values"] = (0.5 + 0.5 * counts.values / (1 + np.abs(counts.values))).tolist()
    return data


def test_files_of_cmtrack_0_2_are_read_on_the_scale_of_the_decision_values(tmp_path: Path) -> None:
    for y, scores in ((Y, D), (Y4, D4)):
        found = evaluate(y, y_score=scores)
        old = Evaluation.from_data(as_of_old(found))
        assert old.metrics == pytest.approx(found.metrics, abs=1e-12, nan_ok=True)
        if found.roc is not None and old.roc is not None:
            assert old.roc.thresholds == pytest.approx(found.roc.thresholds, rel=1e-9)
        assert (old + found).n_samples == 2 * len(y)
    found = evaluate(Y, y_score=D)
    rows = pa.table(
        {
            "y_true": Y.astype(str),
            "y_pred": (D > 0).astype(int).astype(str),
            **{
                f"prob/{k}": (0.5 + 0.5 * s * D / (1 + np.abs(D))).astype(np.float32)
                for k, s in ((0, -1), (1, 1))
            },
        }
    )
    found.save(tmp_path)
    pq.write_table(rows, tmp_path / "cmtrack_predictions.parquet")
    (tmp_path / "cmtrack_evaluation.json").write_text(json.dumps(as_of_old(found)))
    old = Evaluation.load(tmp_path)
    assert old.rows.probabilities[:, 1] == pytest.approx(D, rel=1e-4, abs=1e-6)
    assert old.influence("binary/roc_auc") == pytest.approx(found.influence("binary/roc_auc"))
    comparison = compare({"old": old, "new": found}, rank_by="binary/roc_auc")
    frame = comparison.to_frame()
    assert frame.paired.all()
    assert frame.difference.abs().max() < 1e-12


def test_old_counts_on_the_grid_are_not_merged_with_new_ones() -> None:
    rng = np.random.default_rng(0)
    old = ScoreCounts.from_scores(
        rng.random(300_000), rng.integers(0, 4, 300_000), 4
    ).of_decisions()
    assert not old.exact
    assert (old + old).counts.sum() == 600_000
    new = evaluate(Y, y_score=D).statistics.scores
    with pytest.raises(ValueError, match="cannot be merged with new ones: evaluate them again"):
        old + new
    assert old.places_of(np.array([-1e99, 0.0, 1e99])).tolist() == [0, 800, 1599]


def test_no_probability_of_decision_values_is_shown(tmp_path: Path) -> None:
    found = evaluate(Y, y_score=D)
    assert not [name for name in found.rows_where(right=False) if "probability" in name]
    found.save(tmp_path)
    run = CliRunner().invoke(main, ["rows", str(tmp_path), "--max-rows", "3"])
    assert run.exit_code == 0, run.output
    assert "p of actual" not in run.output
    wrong = np.flatnonzero((D > 0) != Y)
    surest = wrong[np.argsort(-np.abs(D[wrong]), kind="stable")][:3]
    assert found.rows_where(right=False, limit=3)["row"].tolist() == surest.tolist()


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
    many = evaluate_table(
        str(tmp_path / "many.parquet"), y_true="y", y_score="d_*", labels=range(4)
    )
    assert many.metrics == pytest.approx(
        evaluate(Y4, y_score=D4, labels=range(4)).metrics, nan_ok=True
    )
    run = CliRunner().invoke(
        main, ["evaluate", str(tmp_path / "rows.parquet"), "--y-true", "y", "--y-score", "d"]
    )
    assert run.exit_code == 0, run.output
    assert f"{whole.metrics['binary/roc_auc']:.3f}" in run.output
    assert "only ranking metrics" in " ".join(run.output.split())


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
    assert merged.metrics["binary/roc_auc"] == pytest.approx(
        evaluate(Y, y_score=D).metrics["binary/roc_auc"]
    )
    with pytest.raises(ValueError, match="must contain the same statistics"):
        evaluate(Y, y_score=D) + evaluate(Y, y_prob=expit(D))


def test_runs_with_and_without_probabilities_are_ranked_by_what_both_have():
    runs = {"svc": evaluate(Y, y_score=D), "model": evaluate(Y, y_prob=expit(D / 2))}
    comparison = compare(runs, rank_by="binary/roc_auc")
    assert len(comparison.to_frame()) == 2


def test_classifiers_without_probabilities_are_ranked_by_their_decision_function():
    X, y = make_classification(400, random_state=0)
    model = RidgeClassifier().fit(X[:200], y[:200])
    found = evaluate_estimator(model, X[200:], y[200:])
    expected = roc_auc_score(y[200:], model.decision_function(X[200:]))
    assert found.metrics["binary/roc_auc"] == pytest.approx(expected, abs=1e-12)
    assert any(
        "log loss, calibration, sPCC and prevalence are left out" in text for text in found.warnings
    )
    first = evaluate_estimator(model, X[200:], y[200:], positive=0)
    assert first.metrics["binary/roc_auc"] == pytest.approx(expected, abs=1e-12)
    X, y = load_digits(return_X_y=True)
    several = LinearSVC(dual="auto").fit(X[:600] / 16, y[:600])
    found = evaluate_estimator(several, X[600:1000] / 16, y[600:1000])
    areas = [
        roc_auc_score(y[600:1000] == k, several.decision_function(X[600:1000] / 16)[:, k])
        for k in range(10)
    ]
    assert found.metrics["multiclass/roc_auc_ovr_macro"] == pytest.approx(np.mean(areas), abs=1e-12)
    three = y < 3
    pairs = SVC(decision_function_shape="ovo").fit(X[three][:200], y[three][:200])
    assert (
        "class/1/roc_auc" not in evaluate_estimator(pairs, X[three][200:], y[three][200:]).metrics
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y_score": [0.1, math.nan, 1]}, "y_score must be finite, got nan at row 1"),
        ({"y_score": [0.1, math.inf, 1]}, "y_score must be finite, got inf at row 1"),
        (
            {"y_score": [0.1, -1e101, 1]},
            r"y_score must be between -1e\+100 and 1e\+100, got -1e\+101 at row 1",
        ),
        (
            {"y_score": [0.1, 2, 1], "y_prob": [0.1, 0.2, 1]},
            "pass either y_prob or y_score, got both",
        ),
        ({"y_score": [0.1, 2]}, "y_score must have one row per label, got 2 rows and 3 labels"),
        ({"y_score": [0.1, 2, 3], "target": [0.2]}, "calibration and target need y_prob, got none"),
        ({"y_prob": [0.1, 2, 3]}, "decision values of an SVC or Ridge as y_score"),
        (
            {"y_prob": [-4.1, 2, 3]},
            r"convert logits of a network with softmax \(sigmoid for two classes\)",
        ),
    ],
)
def test_bad_input(given, said):
    with pytest.raises(ValueError, match=said):
        evaluate([0, 1, 1], **given)


def test_what_needs_probabilities_says_so():
    found = evaluate(Y, y_score=D)
    for ask in (
        lambda: found.threshold({(1, 0): 5.0}),
        found.net_benefit,
        lambda: found.reject(0.1),
    ):
        with pytest.raises(ValueError, match=r"needs (the )?probabilit(y|ies) (of|that)"):
            ask()
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
    with pytest.raises(
        ValueError,
        match=r"y_score must be between -1e\+100 and 1e\+100, got values such as 1e\+101 in 1",
    ):
        evaluate_table(frame.fillna(1e101), y_true="y", y_score="d")
    with pytest.raises(
        ValueError,
        match=r"logits of a network .*; pass decision values of an SVC or Ridge as y_score",
    ):
        evaluate_table(frame.fillna(2.0), y_true="y", y_prob="d")
