"""The constant answer of an evaluation, and what a model gains over it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact, norm
from sklearn.dummy import DummyClassifier
from sklearn.metrics import brier_score_loss, f1_score, log_loss

from cmtrack import Evaluation, Grouping, Metric, compare, evaluate, paired_differences
from cmtrack.comparison import constant_answer, judge
from cmtrack.metrics import wilson
from cmtrack.report import verdict
from cmtrack.report.review import markdown

FEW = np.r_[np.zeros(24, int), 1], np.r_[np.ones(5, int), np.zeros(20, int)]
"""19 of 25 are right; the most frequent class is right in 24: 5 rows only by it, none only by the model."""
COSTS = {("worse", "well"): 10.0, ("well", "worse"): 1.0}


def scored(n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(k, n, p=np.arange(k, 0, -1) / np.arange(1, k + 1).sum())
    p = rng.dirichlet(np.ones(k), n)
    p[np.arange(n), y] += 0.5
    return y, p / p.sum(axis=1, keepdims=True)


def test_few_rows_that_only_the_most_frequent_class_gets_right_do_not_make_a_clear_difference():
    constant = constant_answer(evaluate(*FEW, labels=[0, 1]), "multiclass/accuracy")
    assert (constant.answer, constant.value) == (0, 0.96)
    assert constant.difference == pytest.approx(-0.2)
    assert constant.pvalue == pytest.approx(binomtest(0, 5).pvalue)  # exact: 2 / 2^5 = .0625
    assert constant.low < -0.2 < 0 <= constant.high
    assert not constant.shown_worse
    assert not constant.shown_better
    assert constant.warns
    (said,) = (
        sentence
        for sentence in verdict(evaluate(*FEW, labels=[0, 1], positive=0))
        if "accuracy" in sentence
    )
    assert "76.0% [" in said  # both numbers, and the p that decides
    assert said.endswith(
        "not clearly different from always predicting the most frequent class, “0” (96.0%; p = 0.062)."
    )


@pytest.mark.parametrize("right", [5, 9, 10, 20])
def test_the_word_the_p_and_the_interval_agree(right):
    y = np.r_[np.zeros(20, int), np.ones(20, int), 1]  # “1” is one row ahead
    q = np.where(np.arange(41) < right, y, 1)
    constant = constant_answer(evaluate(y, q, labels=[0, 1]), "multiclass/accuracy")
    exact = binomtest(right, right).pvalue
    assert (constant.pvalue <= 0.05) == (exact <= 0.05)
    if right <= 8:
        assert constant.pvalue == pytest.approx(exact)
    assert constant.shown_better == (constant.pvalue <= 0.05) == (constant.low > 0)


def test_statistics_without_rows_are_paired_by_the_cells():
    y, p = scored(300, 4, 1)
    evaluation = evaluate(y, y_prob=p, labels=range(4))
    merged = evaluate(y[:150], y_prob=p[:150], labels=range(4)) + evaluate(
        y[150:], y_prob=p[150:], labels=range(4)
    )
    assert merged.rows is None
    for metric in ("multiclass/accuracy", "multiclass/f1_macro", "class/1/f1"):
        rows, cells = (constant_answer(one, metric) for one in (evaluation, merged))
        assert cells.unpaired == ""
        assert cells.answer == rows.answer
        assert cells.difference == pytest.approx(rows.difference)
        assert cells.standard_error == pytest.approx(rows.standard_error)
    losses = constant_answer(merged, "probability/log_loss")
    assert losses.unpaired == "the predictions by row were not kept"
    assert 0 < losses.pvalue < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, np.arange(300) // 6])
def test_the_difference_is_that_of_a_dummy_of_the_same_rows(groups):
    y, p = scored(300, 3, 2)
    model = evaluate(y, y_prob=p, labels=range(3), groups=groups)
    dummy = evaluate(y, np.zeros(300, int), labels=range(3), groups=groups)
    shares = evaluate(
        y, y_prob=np.tile(np.bincount(y) / 300, (300, 1)), labels=range(3), groups=groups
    )
    for metric, other in (
        ("multiclass/f1_macro", dummy),
        ("probability/brier", shares),
        ("probability/log_loss", shares),
    ):
        constant, paired = (
            constant_answer(model, metric),
            paired_differences(model, other, metrics=[metric])[metric],
        )
        assert constant.value == pytest.approx(other.metrics[metric])
        assert constant.difference == pytest.approx(paired.difference)
        assert constant.standard_error == pytest.approx(paired.standard_error)


def test_values_against_scikit_learn():
    y, p = scored(400, 2, 3)
    evaluation = evaluate(y, y_prob=p, labels=[0, 1], positive=1)
    flat = DummyClassifier(strategy="prior").fit(y[:, None], y).predict_proba(y[:, None])
    for metric, value in {
        "probability/log_loss": log_loss(y, flat),
        "probability/brier": brier_score_loss(y, flat[:, 1]),
        "binary/roc_auc": 0.5,
        "binary/average_precision": y.mean(),
        "binary/f1": f1_score(y, np.ones(400)),
        "binary/precision": y.mean(),
        "multiclass/cohen_kappa": 0.0,
        "multiclass/accuracy": max(y.mean(), 1 - y.mean()),
    }.items():
        assert constant_answer(evaluation, metric).value == pytest.approx(value), metric


def test_the_cheapest_answer_and_not_the_most_frequent_one():
    y = np.array(["well"] * 60 + ["worse"] * 40)
    q = np.where(np.arange(100) % 2, y, np.where(y == "well", "worse", "well"))
    constant = constant_answer(evaluate(y, q, costs=COSTS), "cost/mean")
    assert (constant.words, constant.value) == ("always “worse”", 0.6)
    assert constant.difference == pytest.approx(30 / 100 + 20 * 10 / 100 - 0.6)
    assert constant.shown_worse


def test_an_undefined_correlation_is_held_against_guessing_and_a_best_value_against_nothing():
    y, p = scored(300, 2, 4)
    evaluation = evaluate(y, y_prob=p, labels=[0, 1], positive=1)
    constant = constant_answer(evaluation, "binary/matthews_corrcoef")
    assert math.isnan(constant.value)
    assert "zero" in constant.reason
    assert constant.difference == evaluation.metrics["binary/matthews_corrcoef"]
    assert constant.shown_better
    recall = constant_answer(evaluation, "binary/recall")
    assert recall.value == 1
    assert recall.unbeatable
    assert not recall.warns
    assert math.isnan(recall.pvalue)


def test_classes_by_group_weights_and_metrics_of_ones_own():
    y, p = scored(300, 4, 5)
    weights = np.random.default_rng(0).uniform(0.5, 2, 300)
    grouping = Grouping({"low": [0, 1], "high": [2, 3]}, positive="high", name="side")
    gain = Metric("custom/gain", lambda b: 5 * b.tp - b.fp, of="binary")
    one = evaluate(
        y, y_prob=p, labels=range(4), grouping=grouping, sample_weight=weights, extra_metrics=[gain]
    )
    high = weights[y > 1].sum() / weights.sum()
    accuracy, own = (
        constant_answer(one, metric) for metric in ("reduced/side/accuracy", "custom/gain")
    )
    assert accuracy.value == pytest.approx(max(high, 1 - high))
    assert 0 <= accuracy.pvalue <= 1
    assert own.value == pytest.approx(max(5 * weights[y > 1].sum() - weights[y < 2].sum(), 0))
    assert constant_answer(one, "prevalence/bias") is None


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "n"),
    [((0.7, 0.3), 200), ((0.5, 0.5), 200), ((0.4, 0.35, 0.25), 1000), ((0.2,) * 5, 100)],
)
def test_a_model_as_right_as_the_most_frequent_class_is_seldom_called_clearly_different(shares, n):
    rng, k, clear = np.random.default_rng(1), len(shares), 0
    for _ in range(300):
        y = rng.choice(k, n, p=shares)
        q = np.where(rng.random(n) < max(shares), y, (y + rng.integers(1, k, n)) % k)
        constant = constant_answer(
            evaluate(y, q, labels=range(k), sections=["multiclass"]), "multiclass/accuracy"
        )
        clear += constant.shown_better or constant.shown_worse
    assert clear / 300 <= 0.07 + 2 * math.sqrt(0.05 * 0.95 / 300)


def priced_runs() -> dict[str, Evaluation]:
    """A model that takes "b" for "a" costs 10 each time: always answering "a" is cheaper than both."""
    y = np.array(["a"] * 70 + ["b"] * 30)
    dear, dearer = y.copy(), y.copy()
    dear[:40], dearer[:60] = "b", "b"
    costs = {("a", "b"): 10.0, ("b", "a"): 1.0}
    return {"m1": evaluate(y, dearer, costs=costs), "m2": evaluate(y, dear, costs=costs)}


@pytest.mark.slow
def test_a_ranking_by_cost_says_first_that_a_constant_answer_is_cheaper(tmp_path):
    comparison = compare(priced_runs(), rank_by="cost/mean")
    (constant,) = comparison.ranking.constants
    assert (constant.words, constant.value, constant.run) == (
        "always “a”",
        pytest.approx(0.3),
        "m2",
    )
    assert constant.difference == pytest.approx(4.0 - 0.3)
    assert constant.shown_worse
    first = "No run has a lower mean cost than always predicting “a”, which needs no model (0.300): “m2” has 4 "
    first += "(p < 0.001)."
    assert comparison.summary().startswith(f"{first} Of the runs, take “m2”: ")
    assert repr(comparison).endswith("not better than always “a”)")
    page, text = (
        comparison.report(tmp_path / f"review.{ending}").read_text() for ending in ("html", "md")
    )
    assert "No run has a lower mean cost than always predicting “a”" in page
    assert "| always “a” | constant | 0.300 |" in text
    assert comparison.to_dict()["rankings"][0]["constants"][0]["value"] == pytest.approx(0.3)
    assert "always “a”" in comparison._repr_html_()
    assert list(comparison.to_frame()["name"]) == ["m2", "m1"]  # a program reads runs


def test_what_has_no_matthews_correlation_is_only_in_the_list_of_unranked_runs(tmp_path):
    y, p = scored(300, 2, 4)
    runs = {"model": evaluate(y, p.argmax(axis=1)), "dummy": evaluate(y, np.zeros(300, int))}
    comparison = compare(runs, rank_by="multiclass/matthews_corrcoef")
    text = comparison.report(tmp_path / "review.md").read_text()
    ranking = text[
        text.index("### Ranking") : text.index("### Notes") if "### Notes" in text else None
    ]
    assert "always “0”" not in ranking
    assert "| dummy | not ranked | undefined |" not in ranking
    listed = text[text.index("### Not ranked") :]
    assert r"| dummy | not ranked | multiclass/matthews\_corrcoef is undefined: " in listed
    assert "guessing" not in comparison.summary()  # the model is better than that


@pytest.mark.slow
def test_the_best_of_many_runs_without_merit_is_not_called_better():
    rng, better = np.random.default_rng(0), 0
    for _ in range(20):
        y = rng.choice(2, 200, p=[0.6, 0.4])
        runs = {
            f"r{k}": evaluate(y, np.where(rng.random(200) < 0.6, y, 1 - y), labels=[0, 1])
            for k in range(20)
        }
        ranking = compare(runs, rank_by="multiclass/accuracy").ranking
        better += ranking.constants[0].shown_better
        alone = constant_answer(ranking.leader.evaluation, "multiclass/accuracy")
        assert alone.pvalue <= ranking.constants[0].pvalue
    assert better <= 3


def test_several_metrics_have_a_constant_answer_each():
    comparison = compare(
        priced_runs(), rank_by=["multiclass/accuracy", "cost/mean", "class/a/recall"]
    )
    accuracy, cost, recall = comparison.ranking.constants
    assert accuracy.warns
    assert cost.warns
    assert recall.unbeatable
    assert comparison.summary().count("which needs no model") == 2
    # no constant answer is set against a recall: it is 1 for whoever always answers “a”
    assert "| always “a” | constant | 0.700 | 0.300 |  |" in markdown(comparison)


def test_a_gate_notes_that_the_run_is_no_better_than_a_constant_answer_and_passes_it():
    judged = judge(priced_runs()["m2"], require=["cost/mean <= 5", "class/a/recall >= 0.1"])
    assert judged.passed
    cost, recall = judged.to_dict()["constants"]
    assert (cost["words"], cost["shown_better"]) == ("always “a”", False)
    assert recall["unbeatable"]


def two_by_two(tp: int, fn: int, fp: int, tn: int) -> Evaluation:
    y, predicted = [1] * (tp + fn) + [0] * (fp + tn), [1] * tp + [0] * fn + [1] * fp + [0] * tn
    return evaluate(y, predicted, positive=1)


RARE = {"few": (3, 43, 0, 8954), "many": (43, 3, 900, 8054)}
"""Of 46 positives 3 are found without a false alarm, and 43 with 900."""


@pytest.mark.parametrize("metric", ["binary/matthews_corrcoef", "multiclass/cohen_kappa"])
def test_rare_positives_are_tested_by_fishers_exact_test(metric):
    comparison = compare({name: two_by_two(*table) for name, table in RARE.items()}, rank_by=metric)
    (constant,) = comparison.ranking.constants
    exact = {name: fisher_exact([table[:2], table[2:]]).pvalue for name, table in RARE.items()}
    larger = max(exact, key=lambda name: exact[name])
    # Holm: the largest stays, the smallest counts twice
    assert constant.by_run[larger] == pytest.approx(exact[larger])
    other = next(name for name in exact if name != larger)
    assert constant.by_run[other] == pytest.approx(2 * exact[other])
    assert set(constant.shown) == {"few", "many"}
    assert "higher" not in comparison.summary().replace("scores highest", "")
    run = next(run for run in comparison.runs if run.name == constant.run)
    # one interval of one number
    assert (constant.low, constant.high) == run.evaluation.intervals[metric]


def test_a_sentence_names_the_leader_if_another_run_is_shown_to_be_better():
    y = np.r_[np.ones(4, int), np.zeros(4000, int), np.ones(400, int)]
    guess = np.zeros(len(y), int)
    leader, second = guess.copy(), guess.copy()
    leader[:1] = 1  # a precision of 1, from one row
    second[:30], second[-300:] = 1, 1
    comparison = compare(
        {"one": evaluate(y, leader, positive=1), "many": evaluate(y, second, positive=1)},
        rank_by="binary/precision",
    )
    (constant,) = comparison.ranking.constants
    assert (constant.run, constant.shown) == ("one", ("many",))
    said = comparison.summary()
    assert said.startswith(
        "“one” is not shown to have a higher precision for “1” than always predicting “1”"
    )
    assert "No run" not in said


def test_the_constant_answer_is_rounded_like_the_run():
    y = [1] * 39 + [0] * 8961
    runs = {
        "a": evaluate(y, [1] + [0] * 8999, positive=1),
        "b": evaluate(y, [0] * 9000, positive=1),
    }
    comparison = compare(runs, rank_by="multiclass/accuracy")
    assert "which needs no model (0.9957): “a” has 0.9958 (p = 1.000)." in comparison.summary()
    assert "| always “0” | constant | 0.9957 |" in markdown(comparison)


STRICT = Grouping(
    {"above": ["c", "d"], "low": ["a", "b"]}, positive="above", mode="strict", name="side"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric",
    [
        "binary/recall",
        "binary/specificity",
        "binary/fnr",
        "binary/fpr",
        "class/c/recall",
        "reduced/side/above/recall",
        "reduced/side/mismatch_rate",
        "calibration/error",
    ],
)
def test_a_one_sided_metric_is_compared_with_no_constant_answer(metric):
    y, p = scored(400, 4, 6)
    names = np.array(list("abcd"))
    runs = {}
    for name, power in (("x", 1.0), ("y", 2.0)):
        sharper = p**power / (p**power).sum(axis=1, keepdims=True)
        runs[name] = evaluate(names[y], y_prob=sharper, labels=list("abcd"), grouping=STRICT)
    comparison = compare(runs, rank_by=metric)
    constant = constant_answer(runs["x"], metric)
    # with strict mismatches no constant answer has a recall of exactly 1
    assert constant.unbeatable
    assert not constant.warns
    assert math.isnan(constant.pvalue)
    assert "needs no model" not in comparison.summary()
    assert "| constant |" not in markdown(comparison)
    assert not any(one.warns for one in judge(runs["x"], require=[f"{metric} >= 0"]).constants)


@pytest.mark.parametrize(("hits", "shown"), [(1, False), (3, False), (10, True)])
def test_a_precision_of_1_is_that_of_the_rows_that_are_called(hits, shown):
    # by chance 3 of 10 are right: .3, .027 and 6e-6 of the time all of them
    y = np.arange(100) < 30
    constant = constant_answer(evaluate(y, np.arange(100) < hits), "binary/precision")
    low, _ = wilson(1.0, hits)
    assert (constant.value, constant.difference) == pytest.approx((0.3, 0.7))
    own = (1 - low) / 1.959963984540054
    assert constant.standard_error == pytest.approx(math.hypot(own, math.sqrt(0.3 * 0.7 / 100)))
    assert (constant.shown_better, constant.low > 0) == (shown, shown)
    # of all rows: McNemar's statistic
    right = constant_answer(evaluate(y, y), "multiclass/accuracy")
    assert right.pvalue == pytest.approx(2 * norm.sf(math.sqrt(30)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric", ["multiclass/accuracy", "multiclass/f1_macro", "probability/log_loss"]
)
@pytest.mark.parametrize("weights", [None, "sampling"])
def test_many_runs_have_the_p_values_of_their_paired_differences(metric, weights):
    rng = np.random.default_rng(3)
    y = rng.choice(3, 240, p=(0.5, 0.3, 0.2))
    w = rng.gamma(2, 1, len(y)) if weights else None
    shares = np.bincount(y, w) / np.bincount(y, w).sum()
    runs = {}
    for k in range(12):
        scores = np.exp(rng.normal(size=(len(y), 3)) + 0.1 * k * np.eye(3)[y])
        probabilities = scores / scores.sum(axis=1, keepdims=True)
        runs[f"r{k:02d}"] = evaluate(y, y_prob=probabilities, labels=range(3), sample_weight=w)
    (constant,) = compare(runs, rank_by=metric).ranking.constants
    if constant.answer is None:
        answered = evaluate(
            y, y_prob=np.tile(shares, (len(y), 1)), labels=range(3), sample_weight=w
        )
    else:
        answered = evaluate(y, np.full(len(y), constant.answer), labels=range(3), sample_weight=w)
    pairs = {
        name: paired_differences(run, answered, metrics=[metric])[metric]
        for name, run in runs.items()
    }
    sign = -1 if constant.better == "lower" else 1
    assert set(constant.by_run) == set(runs)
    for name in constant.shown:
        assert sign * pairs[name].difference > 0
        assert pairs[name].pvalue <= constant.by_run[name] <= 0.05
    least = min(pairs, key=lambda name: pairs[name].pvalue)
    # whoever is worse is held against the best of three answers
    worse = sign * pairs[least].difference < 0
    answers = 3 if worse and constant.answer is not None else 1
    assert constant.by_run[least] == pytest.approx(
        min(1.0, answers * len(runs) * pairs[least].pvalue), rel=1e-6
    )
    own = pairs[constant.run]
    assert (constant.low, constant.high) == pytest.approx((own.low, own.high))


def test_guesses_of_few_positives_are_not_worse_by_balanced_accuracy():
    y = np.array([1] * 9 + [0] * 291)
    guesses = np.array([0] * 9 + [1] * 9 + [0] * 282)
    constant = constant_answer(evaluate(y, guesses, labels=[0, 1]), "multiclass/balanced_accuracy")
    assert constant.value == 0.5
    assert constant.difference == pytest.approx(282 / 291 / 2 - 0.5)
    assert constant.pvalue == pytest.approx(fisher_exact([[282, 9], [9, 0]]).pvalue)
    assert not constant.shown_worse
    found = constant_answer(
        evaluate(y, np.r_[guesses[9:18], guesses[:9], guesses[18:]], labels=[0, 1]), constant.metric
    )
    assert found.difference == pytest.approx(0.5)
    assert found.shown_better
