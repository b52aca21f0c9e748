"""Scores of shares, such as the net promoter score, as results and as metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest

import cmtrack
from cmtrack import Evaluation, Grouping, evaluate
from support.problems import evaluate_counts, rows_of

COUNTS = [[50, 8, 2], [10, 60, 15], [3, 12, 140]]
INDEX = {0: -1, 1: 0, 2: 1}


def test_tv_c7() -> None:
    found = evaluate_counts(COUNTS).score(INDEX)
    values = {"actual": 0.3166666667, "predicted": 0.3133333333, "bias": -0.0033333333}
    errors = {"actual": 0.0453280226, "predicted": 0.0460128806, "bias": 0.0268735034}
    for name, value in values.items():
        assert getattr(found, name) == pytest.approx(value, abs=6e-11)
        assert found.standard_errors[name] == pytest.approx(errors[name], abs=6e-11)
        reach = 1.959963984540054 * errors[name]
        assert found.intervals[name] == pytest.approx((value - reach, value + reach), abs=1e-9)
    assert repr(found) == (
        "Score(actual 0.317 [0.228, 0.406], predicted 0.313 [0.223, 0.404], "
        "bias −0.00333 [−0.05600, 0.04930])"
    )
    frame = found.to_frame()
    assert list(frame["score"]) == ["actual", "predicted", "bias"]
    assert frame["value"].tolist() == [found.actual, found.predicted, found.bias]
    assert found.to_dict()["values"] == [[0, -1.0], [1, 0.0], [2, 1.0]]
    assert "predicted" in found._repr_html_()


def test_the_metrics_are_the_score(tmp_path) -> None:
    y, q = rows_of(COUNTS)
    evaluation = evaluate(y, q, scores={"index": INDEX})
    found = evaluation.score(INDEX)
    for name, kind in (("score/index", "predicted"), ("score/index_bias", "bias")):
        assert evaluation.metrics[name] == getattr(found, kind)
        assert evaluation.standard_errors[name] == found.standard_errors[kind]
        assert evaluation.intervals[name] == found.intervals[kind]
        assert name in evaluation.headline
    psi = evaluation.influence("score/index_bias")
    values = np.array([-1, 0, 1])
    np.testing.assert_allclose(psi, values[q] - values[y] - found.bias, atol=1e-12)
    loaded = Evaluation.load(evaluation.save(tmp_path, rows=False), rows=False)
    assert loaded == evaluation
    assert loaded.scores == {"index": INDEX}
    assert loaded.metrics["score/index"] == found.predicted
    assert (loaded + loaded).metrics["score/index"] == pytest.approx(found.predicted)
    moved = evaluation.with_label_order([2, 0, 1])
    assert moved.metrics["score/index_bias"] == pytest.approx(found.bias)
    regrouped = loaded.regroup(Grouping({"low": [0, 1], "high": [2]}))
    assert regrouped.metrics["score/index"] == found.predicted


def test_runs_are_ranked_and_gated_by_the_bias() -> None:
    y, q = rows_of(COUNTS)
    runs = {
        "good": evaluate(y, q, scores={"index": INDEX}),
        "poor": evaluate(y, np.minimum(q, 1), scores={"index": INDEX}),
    }
    gate = "score/index_bias >= -0.1"
    comparison = cmtrack.compare(runs, rank_by="score/index_bias", require=[gate])
    assert [entry.name for entry in comparison.ranking.standings] == ["good"]
    difference = cmtrack.compare(runs, rank_by="score/index_bias").ranking.standings
    assert [entry.name for entry in difference] == ["good", "poor"]
    runs["poor"] = evaluate(y, q, scores={"index": {0: -1, 1: 0.5, 2: 1}})
    with pytest.raises(ValueError, match="all runs must have the same values of 'score/index'"):
        cmtrack.compare(runs, rank_by="score/index_bias")


@pytest.mark.slow
def test_the_metrics_of_a_score_are_logged(store) -> None:
    mlflow = pytest.importorskip("mlflow")
    with mlflow.start_run() as run:
        cmtrack.log_evaluation(*rows_of(COUNTS), scores={"index": INDEX})
    metrics = mlflow.get_run(run.info.run_id).data.metrics
    assert metrics["score/index"] == pytest.approx(47 / 150)
    assert metrics["score/index_bias"] == pytest.approx(-1 / 300)


# --- classes, groups and presets ----------------------------------------------------------------


def test_groups_of_a_step_may_have_the_values() -> None:
    y = [10, 9, 8, 3, 0, 7]
    q = [9, 8, 8, 7, 0, 6]
    evaluation = evaluate(y, q, labels=range(11), grouping=Grouping.nps())
    found = evaluation.score({"promoter": 1, "passive": 0, "detractor": -1})
    assert (found.actual, found.predicted) == pytest.approx((0, (1 - 2) / 6))
    assert evaluation.score({"promoter": 1, "detractor": -1}, others=0) == found
    assert evaluation.score("nps") == found
    groups = ["promoter", "promoter", "passive", "detractor", "detractor", "passive"]
    assert evaluate(groups, groups).score("nps").actual == found.actual
    texts = evaluate(list(map(str, y)), list(map(str, q))).score("nps")
    assert (texts.actual, texts.bias) == pytest.approx((found.actual, found.bias))


def test_the_mean_of_ratings() -> None:
    evaluation = evaluate([1, 2, 5, 4], [2, 2, 5, 3], labels=range(1, 6), scores=["mean"])
    found = evaluation.score("mean")
    assert (found.actual, found.predicted, found.bias) == pytest.approx((3, 3, 0))
    assert evaluation.metrics["score/mean"] == pytest.approx(3)
    low, high = evaluate([5, 5, 4], [5, 5, 5]).score("mean").intervals["predicted"]
    assert 4 <= low < high == 5


def test_a_file_has_the_values(tmp_path) -> None:
    file = tmp_path / "scores.yaml"
    file.write_text("index: {0: -1, 1: 0, 2: 1}\n")
    evaluation = evaluate(*rows_of(COUNTS), scores=[str(file), "mean"])
    assert evaluation.scores == {"index": INDEX, "mean": {0: 0, 1: 1, 2: 2}}


def test_clusters_and_weights() -> None:
    y, q = rows_of(COUNTS)
    groups = np.arange(len(y)) // 3
    found = evaluate(y, q, groups=groups).score(INDEX)
    values = np.array([-1.0, 0.0, 1.0])
    gaps = values[q] - values[y]
    sums = np.array([gaps[k : k + 3] - gaps.mean() for k in range(0, len(y), 3)]).sum(axis=1)
    n = len(sums)
    error = math.sqrt((sums**2).sum() * n / (n - 1)) / len(y)
    assert found.standard_errors["bias"] == pytest.approx(error, rel=1e-2)
    weights = np.linspace(0.5, 2, len(y))
    weighted = evaluate(y, q, sample_weight=weights, weights_are="sampling").score(INDEX)
    assert weighted.bias == pytest.approx(np.average(gaps, weights=weights))


# --- bad input ----------------------------------------------------------------------------------

BAD = [
    ({"x": 1}, ValueError, r"unknown class or group 'x'; it must be one of \[0, 1, 2\]"),
    ({0: 1, 1: 2}, ValueError, "score has no value for 2; give it or others=0"),
    ({0: 1, 1: math.inf, 2: 0}, ValueError, "must be finite numbers, got inf for 1"),
    ({0: True, 1: 0, 2: 0}, ValueError, "must be finite numbers, got True for 0"),
    ({0: 1, 1: 1, 2: 1}, ValueError, "at least two different values, got 1 for all classes"),
    ({}, ValueError, "must have values of classes or groups, got none"),
    ("npss", ValueError, "there is no score 'npss'; did you mean 'nps'"),
    (5, TypeError, "must map classes or groups to numbers"),
]


@pytest.mark.parametrize(("values", "error", "message"), BAD)
def test_bad_values(values, error, message) -> None:
    with pytest.raises(error, match=message):
        evaluate_counts(COUNTS).score(values)


def test_presets_need_their_classes() -> None:
    with pytest.raises(ValueError, match="'mean' needs classes that are numbers, got 'a'"):
        evaluate(["a", "b"], ["b", "a"]).score("mean")
    with pytest.raises(ValueError, match=r"'nps' needs whole numbers from 0 to 10 .* got 11"):
        evaluate([9, 11], [9, 11]).score("nps")
    mixed = evaluate([9, 3], [9, 3], labels=range(11), grouping=Grouping.nps())
    with pytest.raises(ValueError, match="only classes, or only the groups of one step"):
        mixed.score({"promoter": 1, 3: 0})


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ({"a b": INDEX}, ValueError, "a score's name must consist of letters"),
        ({"a_bias": INDEX}, ValueError, "must not end with _bias, got 'a_bias'"),
        ({"a": {0: 1}}, ValueError, "score has no value for 1"),
        (["npss"], ValueError, "there is no score 'npss'; did you mean 'nps'"),
        (5, TypeError, "scores must map the name of each score"),
    ],
)
def test_bad_scores(scores, error, message) -> None:
    with pytest.raises(error, match=message):
        evaluate(*rows_of(COUNTS), scores=scores)


def test_a_custom_metric_has_another_name() -> None:
    metric = cmtrack.Metric("score/index", lambda counts: counts.sum())
    with pytest.raises(ValueError, match="extra_metrics and scores must have different names"):
        evaluate(*rows_of(COUNTS), scores={"index": INDEX}, extra_metrics=[metric])
