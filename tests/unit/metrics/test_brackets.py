"""Intervals that are brackets: of the least correlation, of the Bayes index; and Fisher means of tiny pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, ndtri

from cmtrack import Evaluation, evaluate
from cmtrack.metrics import on_scale
from support.problems import random_labels, random_probabilities, random_problem, random_scores

LEAST = ("ovr_min", "ovo_min")


# --- the least of several correlations ----------------------------------------------------------------------


def ends_of_least(values: Any, errors: Any) -> tuple[float, float]:
    """By hand: the lowest lower end, and the lowest of all upper ends at the level that Bonferroni shares out."""
    found = list(zip(values, errors, strict=True))
    level = 1 - 0.05 / len(found)
    low = min(on_scale("atanh", value, error)[0] for value, error in found)  # type: ignore[index]
    return low, min(on_scale("atanh", value, error, level)[1] for value, error in found)  # type: ignore[index]


def test_the_least_correlation_runs_from_the_lowest_lower_end_to_the_lowest_simultaneous_upper_end() -> (
    None
):
    y, _, p = random_problem(1, 150, 4, 0.5)
    absent = np.column_stack((p, np.zeros(150)))  # of the fifth class there is no row
    # so often that one more row, half of it flipped, does not count
    judged = evaluate(y, y_prob=absent, labels=range(5), sample_weight=np.full(150, 10_000))
    parts = [
        [found[f"spcc/ovr/{k}"] for k in range(4)]
        for found in (judged.metrics, judged.standard_errors)
    ]
    found = judged.intervals["spcc/ovr_min"]
    assert math.isnan(judged.metrics["spcc/ovr/4"])
    assert found == pytest.approx(ends_of_least(*parts), abs=1e-6)
    least = judged.intervals[f"spcc/ovr/{int(np.argmin(parts[0]))}"]
    assert found[1] > least[1]  # its own upper end holds for one class, not for all


@pytest.mark.parametrize("weights", [None, "integers", "floats"])
def test_the_interval_of_the_worst_class_reads_all_classes(weights: str | None) -> None:
    y, _, p = random_problem(1, 150, 4, 0.5)
    rng = np.random.default_rng(2)
    given = {"integers": rng.integers(1, 4, 150), "floats": rng.gamma(2, 1, 150)}.get(weights or "")
    judged = evaluate(y, y_prob=p, sample_weight=given)
    values, errors = (
        [part[f"spcc/ovr/{k}"] for k in range(4)]
        for part in (judged.metrics, judged.standard_errors)
    )
    low, high = ends_of_least(values, errors)
    found = judged.intervals["spcc/ovr_min"]
    # one more row, half of it flipped
    assert found == pytest.approx((low, high), abs=0.02)
    assert found[0] <= low < high <= found[1] + 1e-12
    assert found[0] == pytest.approx(min(judged.intervals[f"spcc/ovr/{k}"][0] for k in range(4)))
    assert judged.metrics["spcc/ovr_min"] == min(values)


def test_each_pair_of_classes_counts_with_the_error_of_its_own_samples() -> None:
    y, _, p = random_problem(3, 120, 3, 0.5)
    judged = evaluate(y, y_prob=p)
    values, errors, lows = [], [], []
    for own in range(3):
        for other in set(range(3)) - {own}:
            rows = (y == own) | (y == other)
            pair = evaluate(y[rows] == own, y_prob=p[rows, own])
            values.append(pair.metrics["spcc/binary"])
            errors.append(pair.standard_errors["spcc/binary"])
            lows.append(pair.intervals["spcc/binary"][0])
    low, high = ends_of_least(values, errors)
    assert judged.intervals["spcc/ovo_min"] == pytest.approx((min(lows), high))
    assert min(lows) == pytest.approx(low, abs=0.02)


@pytest.mark.slow
def test_groups_widen_the_interval_of_the_least() -> None:
    y, _, p = random_problem(4, 200, 3, 0.5)
    twice = np.repeat(np.arange(200), 5)
    rows, persons = evaluate(y, y_prob=p), evaluate(y[twice], y_prob=p[twice], groups=twice)
    for name in LEAST:
        width, wide = (np.ptp(e.intervals[f"spcc/{name}"]) for e in (rows, persons))
        assert 0.95 * width < wide < 1.2 * width, name
        assert np.ptp(evaluate(y[twice], y_prob=p[twice]).intervals[f"spcc/{name}"]) < 0.6 * wide


@pytest.mark.slow
def test_of_many_classes_the_pairs_that_may_be_the_least_are_read() -> None:
    """Of 20,880 pairs, more than are read with their errors: each by hand, by all rows of both classes."""
    k, n = 145, 870
    y = np.arange(n) % k
    p = random_probabilities(y, k, 1.0, 5)
    values, errors = [], []
    for own in range(k):
        inside = (y == own) | (y == np.delete(np.arange(k), own)[:, None])
        size = inside.sum(axis=1)
        standard = []
        for column in ((y == own).astype(float), p[:, own]):
            gap = column - (inside @ column / size)[:, None]
            standard.append(gap / np.sqrt((inside * gap**2).sum(axis=1) / size)[:, None])
        r = (inside * standard[0] * standard[1]).sum(axis=1) / size
        psi = standard[0] * standard[1] - r[:, None] / 2 * (standard[0] ** 2 + standard[1] ** 2)
        values.append(r)
        errors.append(np.sqrt((inside * psi**2).sum(axis=1)) / size)
    often = np.full(n, 10_000)
    judged = evaluate(y, y_prob=p, sample_weight=often, sections=["spcc"])
    low, high = ends_of_least(np.concatenate(values), np.concatenate(errors) / 100)
    assert judged.metrics["spcc/ovo_min"] == pytest.approx(np.min(values))
    assert judged.intervals["spcc/ovo_min"] == pytest.approx((low, high), abs=1e-3)


@pytest.mark.slow
def test_the_worst_of_equal_classes_is_covered() -> None:
    """Near chance the interval of the arg-min covers .83 to .86 of the samples; the least is biased downward."""
    repeats, n, k = 200, 150, 4
    rng = np.random.default_rng(0)
    hits = dict.fromkeys(LEAST, 0)
    for _ in range(repeats):
        y, _, p = random_problem(rng, n, k, 0.0)  # it knows nothing: every correlation is 0
        judged = evaluate(y, y_prob=p, labels=range(k), sections=["spcc"])
        for name in LEAST:
            low, high = judged.intervals[f"spcc/{name}"]
            hits[name] += low <= 0 <= high
    assert min(hits.values()) >= 0.92 * repeats


# --- the Bayes index ------------------------------------------------------------------------------------------


def two_normal(seed: int, n: int, distance: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = random_labels(n, 2, rng)
    return y, random_scores(y, distance, rng)


def remarks(judged: Evaluation) -> list[str]:
    return [text for text in judged.warnings if "spcc/d_b" in text]


def test_a_bayes_index_that_is_not_told_from_0_has_no_interval_and_says_why() -> None:
    y, s = two_normal(0, 300, 0.0)
    judged = evaluate(y, y_prob=s)
    assert judged.metrics["spcc/d_b"] > 0.1
    assert "spcc/d_b" not in judged.intervals
    (said,) = remarks(judged)
    assert said.startswith("spcc/d_b is at most 0.")
    assert "not significantly above 0" in said


def test_scores_that_part_the_groups_have_no_upper_end() -> None:
    y = np.repeat([0, 1], 60)
    judged = evaluate(y, y_prob=np.linspace(0, 1, 120))
    assert "spcc/d_b" not in judged.intervals
    (said,) = remarks(judged)
    assert said.startswith("spcc/d_b is at least 3.")


@pytest.mark.parametrize(
    "distance",
    [pytest.param(1.0, marks=pytest.mark.slow), pytest.param(2.0, marks=pytest.mark.slow), 3.5],
)
def test_the_bracket_holds_the_true_index(distance: float) -> None:
    """At 3.5 the interval of the estimate held it in .02 of the samples: it was of the bins, not of the scores."""
    repeats, hits = 50, 0
    for seed in range(repeats):
        y, s = two_normal(seed, 300, distance)
        judged = evaluate(y, y_prob=s, sections=["spcc"])
        low, high = judged.intervals.get("spcc/d_b", (0.0, math.inf))
        assert low <= judged.metrics["spcc/d_b"] <= high
        hits += low <= distance <= high
    assert hits >= 0.92 * repeats


@pytest.mark.slow
def test_densities_that_cross_twice_are_bracketed() -> None:
    hits = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 2, 400)
        s = expit(np.where(y == 1, rng.normal(1.3, 2, 400), rng.normal(0, 0.5, 400)))
        low, high = evaluate(y, y_prob=s, sections=["spcc"]).intervals["spcc/d_b"]
        hits += low <= 1.8569223 <= high
    assert hits >= 27


def test_the_upper_end_is_that_of_the_error_of_the_best_two_thresholds() -> None:
    y, s = two_normal(1, 400, 2.0)
    order = np.argsort(s)
    curve = np.r_[0, np.cumsum(np.where(y[order] == 1, 1 / y.sum(), -1 / (1 - y).sum()))]
    least = (1 - (curve.max() - curve.min())) / 2
    high = evaluate(y, y_prob=s).intervals["spcc/d_b"][1]
    assert high > -2 * ndtri(least) > evaluate(y, y_prob=s).metrics["spcc/d_b"]


@pytest.mark.parametrize("kind", ["monotone", "repeated", "scaled", "grid"])
def test_what_does_not_matter_to_the_bracket(kind: str) -> None:
    y, s = two_normal(2, 300, 1.5)
    usual: dict[str, Any] = {"y_true": y, "y_prob": s}
    first = evaluate(**usual).intervals["spcc/d_b"]
    if kind == "monotone":
        assert evaluate(y, y_prob=s**3).intervals["spcc/d_b"] == pytest.approx(first)
    elif kind == "repeated":
        weights = np.arange(300) % 3 + 1
        one = evaluate(**usual, sample_weight=weights).intervals["spcc/d_b"]
        rows = np.repeat(np.arange(300), weights)
        assert evaluate(y[rows], y_prob=s[rows]).intervals["spcc/d_b"] == pytest.approx(one)
    elif kind == "scaled":
        weights = np.random.default_rng(0).gamma(1, 1, 300)
        one, other = (
            evaluate(**usual, sample_weight=w).intervals["spcc/d_b"]
            for w in (weights, 50 * weights)
        )
        assert one == pytest.approx(other)
        assert np.ptp(one) > np.ptp(first)
    else:
        y, s = two_normal(2, 3000, 1.5)  # more scores than the rules are made of
        fine, coarse = (evaluate(y, y_prob=one).intervals["spcc/d_b"] for one in (s, s.round(2)))
        assert fine == pytest.approx(coarse, abs=0.05)


def test_groups_widen_the_bracket() -> None:
    y, s = two_normal(3, 100, 2.0)
    twice = np.repeat(np.arange(100), 5)
    low, high = evaluate(y[twice], y_prob=s[twice], groups=twice).intervals["spcc/d_b"]
    by_rows = evaluate(y[twice], y_prob=s[twice]).intervals["spcc/d_b"]
    assert low < by_rows[0] < by_rows[1] < high


# --- Fisher means --------------------------------------------------------------------------------------------


def with_single_samples() -> tuple[np.ndarray, np.ndarray]:
    """Three classes of 50 samples, and two of one sample each."""
    y = np.r_[np.repeat([0, 1, 2], 50), 3, 4]
    return y, random_probabilities(y, 5, 0.4, 6)


def test_pairs_of_single_samples_do_not_count_in_the_fisher_mean() -> None:
    y, p = with_single_samples()
    judged = evaluate(y, y_prob=p)
    matrix = judged.spcc_matrix
    kept = ~np.eye(5, dtype=bool)
    kept[3, 4] = kept[4, 3] = False
    assert abs(matrix[3, 4]) == abs(matrix[4, 3]) == 1
    wanted = np.tanh(np.arctanh(matrix[kept]).mean())
    assert judged.metrics["spcc/ovo_fisher"] == pytest.approx(wanted)
    assert judged.standard_errors["spcc/ovo_fisher"] < 0.2
    assert np.ptp(judged.intervals["spcc/ovo_fisher"]) < 0.6
    said = (
        "spcc/ovo_fisher and spcc/ovo_min leave out 2 correlations between two classes that "
        "together have fewer than 4 rows"
    )
    assert said in judged.warnings
    whole = evaluate(y[:150], y_prob=p[:150], labels=range(5))
    assert not any("leave out" in text and "correlations" in text for text in whole.warnings)


def test_pairs_of_single_samples_do_not_decide_the_least() -> None:
    y, p = with_single_samples()
    p[-2:] = p[[-1, -2]]
    judged = evaluate(y, y_prob=p)
    matrix = judged.spcc_matrix
    kept = ~np.eye(5, dtype=bool)
    kept[3, 4] = kept[4, 3] = False
    assert matrix[3, 4] == matrix[4, 3] == -1  # two rows are always on a line
    assert judged.metrics["spcc/ovo_min"] == matrix[kept].min() > -0.5
    assert judged.intervals["spcc/ovo_min"][0] > -1


def test_single_samples_of_sampling_weight_are_single() -> None:
    y, p = with_single_samples()
    judged = evaluate(y, y_prob=p, sample_weight=np.full(152, 7.0))
    assert judged.metrics["spcc/ovo_fisher"] == pytest.approx(
        evaluate(y, y_prob=p).metrics["spcc/ovo_fisher"]
    )


def test_a_mean_of_tiny_pairs_alone_is_undefined() -> None:
    judged = evaluate([0, 1, 2], y_prob=[[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
    for name in ("spcc/ovo_fisher", "spcc/ovo_min"):
        assert math.isnan(judged.metrics[name])
        assert "4 rows" in judged.undefined[name]


def test_correlations_of_1_are_clipped_and_said_to_be() -> None:
    y = np.repeat([0, 1, 2], 20)
    p = random_probabilities(y, 3, 0.0, 7)
    p[y == 0] = [0.8, 0.1, 0.1]
    p[y == 1, 0] = 0.2
    p[y == 1, 1:] *= (0.8 / p[y == 1, 1:].sum(axis=1))[:, None]
    judged = evaluate(y, y_prob=p)
    assert judged.spcc_matrix[0, 1] == pytest.approx(1)
    assert math.isfinite(judged.standard_errors["spcc/ovo_fisher"])
    assert judged.standard_errors["spcc/ovo_fisher"] < 1
    assert any(
        text.startswith("1 of the correlations in spcc/ovo_fisher are exactly 1")
        for text in judged.warnings
    )
