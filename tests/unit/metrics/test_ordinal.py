"""The section of ordered classes, against the specification, scipy, scikit-learn and hand values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau
from sklearn.metrics import mean_absolute_error

import cmtrack
from cmtrack import Accumulator, Evaluation, Grouping, evaluate
from support.problems import evaluate_counts

NAMES = ["mae", "within_1", "kendall_tau_b", "ranked_probability_score"]
TV1 = [[7, 2, 1, 0], [1, 12, 3, 2], [0, 4, 9, 1], [2, 1, 0, 15]]
Y = [0, 1, 2, 2, 0, 2]
P = [
    [0.7, 0.2, 0.1],
    [0.1, 0.6, 0.3],
    [0.2, 0.3, 0.5],
    [0.05, 0.15, 0.8],
    [0.4, 0.4, 0.2],
    [0.3, 0.5, 0.2],
]
TABLES = (
    st.integers(2, 6)
    .flatmap(
        lambda k: st.lists(st.integers(0, 5), min_size=k * k, max_size=k * k).map(
            lambda counts: np.reshape(counts, (k, k))
        )
    )
    .filter(np.any)
)
some = settings(max_examples=40, deadline=None)


def ordinal(evaluation: Evaluation) -> dict[str, float]:
    names = [name for name in evaluation.metrics if name.startswith("ordinal/")]
    return {name.removeprefix("ordinal/"): evaluation.metrics[name] for name in names}


def random_rows(seed: int, n: int = 80, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    y = np.concatenate((np.arange(k), rng.integers(0, k, n - k)))
    return y, p


# --- the vectors of the specification, and hand values -----------------------------------------


def test_tv_r7() -> None:
    evaluation = evaluate_counts(TV1, ordered=True)
    assert list(ordinal(evaluation)) == NAMES[:3]
    values = {"mae": 0.4166666667, "within_1": 0.9, "kendall_tau_b": 0.6329698169}
    errors = {"mae": 0.0980126598, "within_1": 0.0387298335, "kendall_tau_b": 0.0995710215}
    for name, value in values.items():
        assert evaluation.metrics[f"ordinal/{name}"] == pytest.approx(value, abs=6e-11)
        error = evaluation.standard_errors[f"ordinal/{name}"]
        assert error == pytest.approx(errors[name], abs=6e-11)


def test_tv_r8() -> None:
    evaluation = evaluate(Y, y_prob=P, ordered=True)
    name = "ordinal/ranked_probability_score"
    assert list(ordinal(evaluation)) == NAMES
    assert evaluation.metrics[name] == pytest.approx(0.1385416667, abs=6e-11)
    assert evaluation.standard_errors[name] == pytest.approx(0.0484592618, abs=6e-11)
    assert "the interval of the ranked probability score is too narrow: 6 rows, fewer than 100" in (
        evaluation.warnings
    )


def test_hand_values() -> None:
    # The distances are 0, 2, 1 and 0.
    actual = [0, 0, 1, 2]
    predicted = [0, 2, 0, 2]
    evaluation = evaluate(actual, predicted, ordered=True)
    pairs = [(i, j) for i in range(4) for j in range(i)]
    signs = [
        np.sign(actual[i] - actual[j]) * np.sign(predicted[i] - predicted[j]) for i, j in pairs
    ]
    untied = [sum(row[i] != row[j] for i, j in pairs) for row in (actual, predicted)]
    assert ordinal(evaluation) == pytest.approx(
        {"mae": 3 / 4, "within_1": 3 / 4, "kendall_tau_b": sum(signs) / math.sqrt(np.prod(untied))}
    )


def test_without_an_error_the_interval_of_mae_is_exact() -> None:
    evaluation = evaluate(list(range(4)) * 10, list(range(4)) * 10, ordered=True)
    high = 3 * (1 - 0.025 ** (1 / 40))
    assert evaluation.metrics["ordinal/mae"] == 0
    assert evaluation.intervals["ordinal/mae"] == pytest.approx((0, high))


def test_a_constant_prediction_has_no_rank_correlation() -> None:
    evaluation = evaluate([0, 1, 2] * 5, [1] * 15, ordered=True)
    assert math.isnan(evaluation.metrics["ordinal/kendall_tau_b"])
    assert evaluation.undefined["ordinal/kendall_tau_b"] == (
        "all rows have the same actual class or the same predicted class"
    )


# --- other libraries, and properties ------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_scipy_and_sklearn(seed: int) -> None:
    y, p = random_rows(seed)
    evaluation = evaluate(y, y_prob=p, ordered=True)
    predicted = p.argmax(axis=1)
    found = ordinal(evaluation)
    assert found["kendall_tau_b"] == pytest.approx(kendalltau(y, predicted).statistic)
    assert found["mae"] == pytest.approx(mean_absolute_error(y, predicted))
    assert found["within_1"] == pytest.approx(np.mean(abs(y - predicted) <= 1))
    reached = y[:, None] <= np.arange(4)
    squares = (p.cumsum(axis=1)[:, :-1] - reached) ** 2
    assert found["ranked_probability_score"] == pytest.approx(squares.sum(axis=1).mean() / 4)


@some
@given(TABLES)
def test_a_reversed_order_changes_nothing(counts: np.ndarray) -> None:
    forward = ordinal(evaluate_counts(counts, labels=range(len(counts)), ordered=True))
    backward = ordinal(evaluate_counts(counts[::-1, ::-1], labels=range(len(counts)), ordered=True))
    assert backward == pytest.approx(forward, nan_ok=True, abs=1e-12)


@some
@given(TABLES)
def test_an_interval_holds_its_value_inside_the_range(counts: np.ndarray) -> None:
    evaluation = evaluate_counts(counts, labels=range(len(counts)), ordered=True)
    highest = {"mae": len(counts) - 1, "within_1": 1, "kendall_tau_b": 1}
    lowest = {"mae": 0, "within_1": 0, "kendall_tau_b": -1}
    for name, value in ordinal(evaluation).items():
        low, high = evaluation.intervals.get(f"ordinal/{name}", (value, value))
        if math.isnan(value):
            continue
        assert lowest[name] - 1e-12 <= low <= value <= high <= highest[name] + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_two_classes_have_the_known_metrics(seed: int) -> None:
    y, p = random_rows(seed, k=2)
    evaluation = evaluate(y, y_prob=p, ordered=True)
    metrics = evaluation.metrics
    found = ordinal(evaluation)
    assert found["mae"] == pytest.approx(1 - metrics["multiclass/accuracy"])
    assert found["kendall_tau_b"] == pytest.approx(metrics["multiclass/matthews_corrcoef"])
    assert found["ranked_probability_score"] == pytest.approx(metrics["probability/brier"])


@pytest.mark.parametrize("name", NAMES)
def test_the_influence_is_the_derivative_in_the_weight_of_a_row(name: str) -> None:
    y, p = random_rows(4, n=30, k=4)
    weights = np.ones(30)
    psi = evaluate(y, y_prob=p, ordered=True).influence(f"ordinal/{name}")
    assert psi is not None
    for row in (3, 11, 29):
        values = []
        for step in (-1e-4, 1e-4):
            weights[row] = 1 + step
            moved = evaluate(
                y, y_prob=p, sample_weight=weights, weights_are="sampling", ordered=True
            )
            values.append(ordinal(moved)[name])
        weights[row] = 1
        assert psi[row] == pytest.approx(30 * (values[1] - values[0]) / 2e-4, abs=1e-5)


# --- where the rows and the counts come from ----------------------------------------------------


def test_absent_without_the_option() -> None:
    assert ordinal(evaluate(Y, y_prob=P)) == {}


def test_saved_regrouped_and_merged(tmp_path) -> None:
    y, p = random_rows(0)
    evaluation = evaluate(y, y_prob=p, ordered=True, segments={"half": np.arange(80) < 40})
    loaded = Evaluation.load(evaluation.save(tmp_path, rows=False), rows=False)
    assert loaded == evaluation
    assert loaded.spec.ordered
    grouping = Grouping({"low": [0, 1], "high": [2, 3, 4]})
    for copy in (loaded, evaluation):
        assert ordinal(copy.regroup(grouping)) == ordinal(evaluation)
    parts = [
        evaluate(y[s], y_prob=p[s], labels=range(5), ordered=True) for s in (np.s_[:30], np.s_[30:])
    ]
    assert ordinal(parts[0] + parts[1]) == pytest.approx(ordinal(evaluation))
    segments = evaluation.segments["half"]
    half = evaluate(y[:40], y_prob=p[:40], labels=range(5), ordered=True)
    assert ordinal(segments[True]) == pytest.approx(ordinal(half))


def test_accumulator_and_table_count_the_same() -> None:
    y, p = random_rows(1)
    evaluation = evaluate(y, y_prob=p, ordered=True)
    accumulator = Accumulator(labels=range(5), ordered=True)
    for start in range(0, 80, 27):
        accumulator.update(y[start : start + 27], y_prob=p[start : start + 27])
    assert ordinal(accumulator.compute()) == pytest.approx(ordinal(evaluation))
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"y": y} | {f"p{k}": p[:, k] for k in range(5)})
    table = cmtrack.evaluate_table(
        frame, y_true="y", y_prob=[f"p{k}" for k in range(5)], labels=range(5), ordered=True
    )
    assert ordinal(table) == pytest.approx(ordinal(evaluation))


def test_runs_are_compared_by_mae() -> None:
    y, p = random_rows(2, n=200)
    q = 0.8 * np.eye(5)[y] + 0.2 * p
    runs = {
        "good": evaluate(y, y_prob=q, ordered=True),
        "poor": evaluate(y, y_prob=p, ordered=True),
    }
    comparison = cmtrack.compare(runs, rank_by="ordinal/mae")
    assert [entry.name for entry in comparison.ranking.standings] == ["good", "poor"]


def test_another_order_of_the_classes_is_undefined() -> None:
    moved = evaluate(Y, y_prob=P, ordered=True).with_label_order([1, 0, 2])
    found = ordinal(moved)
    assert [name for name in found if math.isnan(found[name])] == list(found)
    assert moved.undefined["ordinal/mae"] == (
        "it depends on the order of the classes, which was [0, 1, 2]"
    )


def test_parts_with_different_orders_are_not_merged() -> None:
    first = evaluate(Y, y_prob=P, labels=[0, 1, 2], ordered=True)
    second = evaluate(Y, y_prob=P, labels=[1, 0, 2], ordered=True)
    with pytest.raises(ValueError, match=r"ordered evaluations must have the same order"):
        first + second


def test_at_other_shares() -> None:
    y, p = random_rows(3)
    evaluation = evaluate(y, y_prob=p, ordered=True)
    shares = np.bincount(y) / len(y)
    there = evaluation.at(dict(enumerate(shares)))
    found = {name: there.metrics[f"ordinal/{name}"] for name in NAMES}
    assert found == pytest.approx(ordinal(evaluation))


# --- bad input ----------------------------------------------------------------------------------


def test_texts_need_their_order() -> None:
    rating = ["1", "2", "10"]
    with pytest.raises(
        ValueError, match=r"needs labels= .* '10' would come before '2'; got \['1', '10', '2'\]"
    ):
        evaluate(rating, rating, ordered=True)
    evaluation = evaluate(rating, ["1", "10", "10"], labels=rating, ordered=True)
    assert evaluation.metrics["ordinal/mae"] == pytest.approx(1 / 3)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"y": rating, "q": rating})
    with pytest.raises(ValueError, match="ordered=True needs labels="):
        cmtrack.evaluate_table(frame, y_true="y", y_pred="q", ordered=True)


def test_only_true_or_false() -> None:
    with pytest.raises(TypeError, match="ordered must be True or False, got 'yes'"):
        evaluate([0, 1], [0, 1], ordered="yes")
