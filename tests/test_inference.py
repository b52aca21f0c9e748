"""Ranking from values and covariance: against published numbers, brute force, a row bootstrap and SciPy."""

from __future__ import annotations

from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.stats import multivariate_normal, norm
from statsmodels.stats.multitest import multipletests

from cmtrack.comparison import inference

EQUAL = np.full((6, 6), 0.5) + 0.5 * np.eye(6)  # six runs, errors correlated by a half


def _infer(values, covariance, level=0.95, folded=False):
    values, covariance = np.asarray(values, dtype=float), np.asarray(covariance, dtype=float)
    errors = inference.error_draws(covariance)
    pairs = inference.pairs(values, covariance, errors, level, folded)
    return errors, pairs, inference.ranks(values, errors, level, folded)


def test_two_runs_have_the_plain_test_and_the_normal_probability():
    _, pairs, ranks = _infer([1.0, 0.0], np.diag([0.3, 0.2]))
    z = 1 / np.sqrt(0.5)
    assert pairs.statistic[0, 1] == pytest.approx(z)
    assert pairs.pvalue[0, 1] == pytest.approx(2 * norm.sf(z))
    assert pairs.holm[0, 1] == pytest.approx(2 * norm.sf(z))
    assert pairs.max_t[0, 1] == pytest.approx(2 * norm.sf(z), abs=0.01)
    assert pairs.reach == pytest.approx(1.96, abs=0.05)
    assert ranks.probability_best[0] == pytest.approx(norm.cdf(z), abs=0.012)


def test_the_largest_of_all_pairs_is_the_studentised_range():
    # q(0.95; k, inf) / sqrt 2: 2.344 for 3 and 2.850 for 6 equally correlated runs (tables of Tukey's test)
    for size, expected in ((3, 2.344), (6, 2.850)):
        assert _infer(np.zeros(size), EQUAL[:size, :size])[1].reach == pytest.approx(expected, abs=0.04)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_that_of_statsmodels(pvalues):
    with mock.patch("gc.collect"):  # statsmodels collects all garbage of the process at each call
        expected = multipletests(pvalues, method="holm")[1]
    assert inference.holm(np.array(pvalues)) == pytest.approx(expected)


def test_probability_of_being_best_is_the_orthant_probability():
    values = np.array([0.0, 0.3, -0.2])
    covariance = np.array([[1.0, 0.4, 0.2], [0.4, 0.8, 0.1], [0.2, 0.1, 1.2]])
    contrast = np.array([[1, -1, 0], [0, -1, 1]])  # run 1 is best where both are negative
    exact = multivariate_normal(contrast @ values, contrast @ covariance @ contrast.T).cdf([0, 0])
    assert _infer(values, covariance)[2].probability_best[1] == pytest.approx(exact, abs=0.015)


def test_rank_distribution_is_doubly_stochastic_and_its_parts_agree():
    _, _, ranks = _infer([0.2, 0.0, 0.1, 0.4], 0.05 * np.eye(4))
    assert ranks.distribution.sum(axis=0) == pytest.approx(np.ones(4))
    assert ranks.distribution.sum(axis=1) == pytest.approx(np.ones(4))
    assert ranks.expected == pytest.approx(ranks.distribution @ [1, 2, 3, 4])
    for run in range(4):
        low, high = ranks.low[run], ranks.high[run]
        assert ranks.distribution[run, low - 1 : high].sum() >= 0.95 - 1e-9
        assert ranks.distribution[run, : low - 1].sum() <= 0.025
        assert ranks.distribution[run, high:].sum() <= 0.025 + 1e-9


def test_runs_that_are_the_same_share_everything():
    same = np.array([[1.0, 1.0, 0.3], [1.0, 1.0, 0.3], [0.3, 0.3, 1.0]])
    errors, pairs, ranks = _infer([0.5, 0.5, 0.4], same)
    assert np.array_equal(errors[:, 0], errors[:, 1])
    assert pairs.statistic[0, 1] == 0
    assert pairs.max_t[0, 1] == pairs.holm[0, 1] == 1
    assert ranks.probability_best[0] == pytest.approx(ranks.probability_best[1], abs=0.02)


def test_a_difference_without_any_error_is_certain():
    _, pairs, ranks = _infer([1.0, 0.0], np.ones((2, 2)))
    assert pairs.statistic[0, 1] == np.inf
    assert pairs.pvalue[0, 1] == 0
    assert ranks.probability_best.tolist() == [1, 0]


def test_the_confidence_set_of_equal_runs_loses_one_in_five_percent():
    rng = np.random.default_rng(0)
    errors = inference.error_draws(EQUAL)
    dropped, alone = 0, 0
    for _ in range(600):
        values = rng.multivariate_normal(np.zeros(6), EQUAL)
        pairs = inference.pairs(values, EQUAL, errors, 0.95)
        pvalues = inference.model_confidence_set(pairs.statistic, errors, pairs.standard_error)
        dropped += not inference.in_set(pvalues, 0.95).all()
        alone += not inference.in_set(pvalues, 0.95)[values.argmax()]
    assert dropped / 600 <= 0.07  # .05 and its noise
    assert alone == 0  # the best value is never left out


def test_the_confidence_set_agrees_with_brute_force():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(5, 5))
    covariance = root @ root.T
    values = 3 * rng.normal(size=5)
    errors, pairs, _ = _infer(values, covariance)
    found = inference.model_confidence_set(pairs.statistic, errors, pairs.standard_error)
    alive, running, expected = list(range(5)), 0.0, np.ones(5)
    while len(alive) > 1:
        lag = {i: max(pairs.statistic[j, i] for j in alive if j != i) for i in alive}
        worst = max(lag, key=lag.get)
        drawn = np.max(
            [np.abs(errors[:, i] - errors[:, j]) / pairs.standard_error[i, j] for i in alive for j in alive if i < j],
            axis=0,
        )
        running = max(running, (1 + (drawn >= lag[worst]).sum()) / (1 + len(drawn)))
        expected[worst] = running
        alive.remove(worst)
    assert found == pytest.approx(expected)


def test_nearest_to_zero_needs_both_signs():
    # |.05| and |−.06| of independent errors .1: far apart with their signs, alike in distance
    _, pairs, ranks = _infer([0.05, -0.06], np.diag([0.01, 0.01]), folded=True)
    assert pairs.difference[0, 1] == pytest.approx(0.01)
    assert abs(pairs.statistic[0, 1]) < 0.1
    assert pairs.pvalue[0, 1] > 0.9
    assert ranks.probability_best[0] == pytest.approx(0.5, abs=0.05)
    # a far one against one at zero is told apart, whatever its sign
    for far in (1.0, -1.0):
        _, pairs, ranks = _infer([0.01, far], np.diag([0.01, 0.01]), folded=True)
        assert pairs.max_t[0, 1] < 0.001
        assert ranks.probability_best[0] == 1


def test_nearest_to_zero_keeps_its_level_at_zero():
    rng = np.random.default_rng(2)
    covariance = 0.01 * (0.5 * np.eye(2) + 0.5)
    errors = inference.error_draws(covariance)
    found = [
        inference.pairs(rng.multivariate_normal(np.zeros(2), covariance), covariance, errors, 0.95, True).pvalue[0, 1]
        for _ in range(800)
    ]
    assert np.mean(np.array(found) < 0.05) <= 0.065


@given(st.permutations(range(4)))
def test_the_order_of_the_runs_does_not_matter(order):
    values = np.array([0.3, 0.1, 0.25, -0.4])
    covariance = 0.02 * np.array([[2, 1, 0.5, 0], [1, 2, 0.3, 0.2], [0.5, 0.3, 1, 0], [0, 0.2, 0, 3]])
    order = list(order)
    _, pairs, ranks = _infer(values, covariance)
    _, moved, other = _infer(values[order], covariance[np.ix_(order, order)])
    assert moved.statistic == pytest.approx(pairs.statistic[np.ix_(order, order)])
    assert moved.holm == pytest.approx(pairs.holm[np.ix_(order, order)])
    assert moved.max_t == pytest.approx(pairs.max_t[np.ix_(order, order)], abs=0.03)  # other draws
    assert other.probability_best == pytest.approx(ranks.probability_best[order], abs=0.03)
