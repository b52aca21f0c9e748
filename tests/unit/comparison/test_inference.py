"""Ranking from values and covariance: against published numbers, brute force, a row bootstrap and SciPy."""

from __future__ import annotations

from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student

# Inside: the published vectors are values and a covariance, which no evaluations could be made to have.
from cmtrack.comparison import inference

# Inside: the selection's worth has a vector of the same kind.
from cmtrack.comparison.planning import optimism
from cmtrack.statistics import Design

EQUAL = np.full((6, 6), 0.5) + 0.5 * np.eye(6)  # six runs, errors correlated by a half


def _infer(values, covariance, level=0.95, folded=False):
    values, covariance = np.asarray(values, dtype=float), np.asarray(covariance, dtype=float)
    errors = inference.error_draws(covariance)
    pairs = inference.pairs(values, covariance, errors, level, folded)
    drawn = inference.posterior_draws(values, covariance, level=folded)
    return errors, pairs, None if drawn is None else inference.ranks(drawn, level, folded)


def test_two_runs_have_the_plain_test_and_no_probability():
    _, pairs, ranks = _infer([1.0, 0.0], np.diag([0.3, 0.2]))
    z = 1 / np.sqrt(0.5)
    assert pairs.statistic[0, 1] == pytest.approx(z)
    assert pairs.pvalue[0, 1] == pytest.approx(2 * norm.sf(z))
    assert pairs.holm[0, 1] == pytest.approx(2 * norm.sf(z))
    assert pairs.max_t[0, 1] == pytest.approx(2 * norm.sf(z))
    assert pairs.may_be_best == pytest.approx([1, 2 * norm.sf(z)])
    assert pairs.reach == pytest.approx(norm.ppf(0.975))
    assert ranks is None  # nothing can be learned of how far true values spread


def test_the_largest_of_all_pairs_is_the_studentised_range():
    # q(0.95; k, inf) / sqrt 2: 2.344 for 3 and 2.850 for 6 equally correlated runs (tables of Tukey's test)
    for size, expected in ((3, 2.344), (6, 2.850)):
        assert _infer(np.zeros(size), EQUAL[:size, :size])[1].reach == pytest.approx(
            expected, abs=0.04
        )


@pytest.mark.slow
@given(st.lists(st.floats(-4, 4), min_size=2, max_size=8))
def test_holm_is_that_of_statsmodels(values):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    pairs = _infer(values, np.eye(len(values)))[1]
    upper = np.triu_indices(len(values), 1)
    with mock.patch("gc.collect"):  # statsmodels collects all garbage of the process at each call
        expected = multitest.multipletests(pairs.pvalue[upper], method="holm")[1]
    assert pairs.holm[upper] == pytest.approx(expected)


def test_where_runs_are_far_apart_nothing_is_shrunk():
    # many values far apart: the spread is learned to be large, and what is left is the orthant probability
    values = np.array([0.0, 0.3, -40.0, 40.0, -80.0, 80.0])[[0, 1, 2, 4]]
    covariance = np.diag([1.0, 0.8, 1.2, 1.0])
    exact = multivariate_normal([-0.3], [[1.8]]).cdf([0])
    assert _infer(values, covariance)[2].probability_best[1] == pytest.approx(exact, abs=0.04)


@pytest.mark.slow
def test_the_posterior_of_the_spread_and_the_ranks_agree_with_deployment_tv_d14():
    values, covariance = np.array([0.850, 0.846, 0.858, 0.841]), 1e-4 * (0.5 + 0.5 * np.eye(4))
    spread = inference.spread(values, covariance)
    assert spread.tau @ spread.weights == pytest.approx(0.00962, abs=5e-6)
    drawn = inference.posterior_draws(values, covariance, n_draws=1_000_000)
    found = inference.ranks(drawn, 0.95).probability_best
    assert found == pytest.approx([0.2244, 0.1401, 0.5548, 0.0807], abs=0.0015)


def test_the_quantile_of_a_picked_run_agrees_with_deployment_tv_d14():
    covariance = 1e-4 * (0.5 + 0.5 * np.eye(4))
    of_best, of_any = inference.reach_of_best(
        inference.error_draws(covariance, 1_000_000), np.diag(covariance), 0.95
    )
    assert of_best == pytest.approx(2.441, abs=0.005)
    assert [0.858 - of_best * 0.01, 0.858 + norm.ppf(0.975) * 0.01] == pytest.approx(
        [0.8336, 0.8776], abs=1e-4
    )
    assert of_any > of_best


@pytest.mark.slow
def test_runs_that_were_passed_over_count_as_independent_ones():
    independent = inference.error_draws(np.eye(3), 1_000_000)
    of_best, of_any = inference.reach_of_best(independent, np.ones(3), 0.95, others=7)
    assert of_best == pytest.approx(norm.ppf(0.975 ** (1 / 10)), abs=0.02)  # Šidák
    assert of_any == pytest.approx(norm.ppf(0.5 + 0.95 ** (1 / 10) / 2), abs=0.02)
    assert inference.reach_of_best(independent[:, :1], np.ones(1), 0.95) == pytest.approx(
        [1.96, 1.96], abs=0.01
    )
    rounded = np.column_stack(
        (independent[:, :1], np.full(len(independent), 1e-9))
    )  # and one of which it leaves a rest
    assert inference.reach_of_best(rounded, np.array([1, 4e-33]), 0.95) == pytest.approx(
        [1.96, 1.96], abs=0.01
    )
    # without any error of their own
    none = inference.reach_of_best(np.zeros((9, 2)), np.zeros(2), 0.95, others=3)
    assert none == pytest.approx([norm.ppf(0.975 ** (1 / 4)), norm.ppf(0.5 + 0.95 ** (1 / 4) / 2)])


def test_the_posterior_is_that_of_brute_force():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(4, 4))
    covariance, values = 0.3 * np.eye(4) + 0.1 * root @ root.T, np.array([0.4, -0.2, 1.1, 0.3])
    # importance sampling of μ, τ and the true values, with a wide μ in place of the flat one
    n = 400_000
    spread = 8 * np.sqrt(np.linalg.eigvalsh(covariance - covariance.mean(axis=0))[1:].mean())
    truth = (
        values.mean()
        + rng.uniform(-4, 4, (n, 1))
        + rng.uniform(0, spread, (n, 1)) * rng.normal(size=(n, 4))
    )
    gap = values - truth
    loglik = -0.5 * np.einsum("ni,ij,nj->n", gap, np.linalg.inv(covariance), gap)
    weight = np.exp(loglik - loglik.max())
    weight /= weight.sum()
    drawn = inference.posterior_draws(values, covariance, n_draws=200_000, level=True)
    assert drawn.mean(axis=0) == pytest.approx(weight @ truth, abs=0.03)
    for ours, theirs in ((drawn, truth), (-np.abs(drawn), -np.abs(truth))):
        exact = np.bincount(theirs.argmax(axis=1), weight, minlength=4)
        assert np.bincount(ours.argmax(axis=1), minlength=4) / len(ours) == pytest.approx(
            exact, abs=0.03
        )


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
    same = 0.3 + 0.7 * np.eye(5)
    same[:2, :2] = 1.0
    errors, pairs, ranks = _infer([0.5, 0.5, 0.4, 0.45, 0.3], same)
    assert np.array_equal(errors[:, 0], errors[:, 1])
    assert pairs.statistic[0, 1] == 0
    assert pairs.max_t[0, 1] == pairs.holm[0, 1] == pairs.may_be_best[1] == 1
    assert ranks.probability_best[0] == pytest.approx(ranks.probability_best[1], abs=0.02)
    # and count once where the spread is learned
    keep = [0, 2, 3, 4]
    once = _infer([0.5, 0.4, 0.45, 0.3], same[np.ix_(keep, keep)])[2]
    assert ranks.probability_best[:2].sum() == pytest.approx(once.probability_best[0], abs=0.01)


def test_a_difference_without_any_error_is_certain():
    _, pairs, ranks = _infer([1.0, 0.0, -1.0], np.ones((3, 3)))
    assert pairs.statistic[0, 1] == np.inf
    assert pairs.pvalue[0, 1] == 0
    assert ranks.probability_best.tolist() == [1, 0, 0]
    assert pairs.tied.tolist() == [True, False, False]
    assert (pairs.best_low.tolist(), pairs.best_high.tolist()) == ([0, -1, -2], [1, 0, 0])


@pytest.mark.slow
def test_a_given_one_of_equal_runs_is_lost_in_one_of_twenty_and_the_leader_never():
    rng = np.random.default_rng(0)
    errors = inference.error_draws(EQUAL)
    lost, alone = 0.0, 0
    for _ in range(300):
        pairs = inference.pairs(rng.multivariate_normal(np.zeros(6), EQUAL), EQUAL, errors, 0.95)
        assert np.array_equal(pairs.best_high == 0, ~pairs.tied)
        assert (pairs.best_low <= 0).all()
        lost += 1 - pairs.tied.mean()
        alone += pairs.tied.sum() == 1
    assert 0.02 <= lost / 300 <= 0.07  # at most .05, and its noise
    assert alone <= 4


VECTORS = {
    # values, variance of a value (errors correlated by a half), p, low and high ends, critical values
    "near": (
        (0.850, 0.846, 0.858, 0.841), 0.25e-4, (0.135, 0.0268, 1, 0.0061), (-0.01783, -0.02183, -0.00255, -0.03162),
        (0.00255, 0, 0.01783, 0), (2.110, 2.105, 1.966, 2.108),
    ),
    "far": (
        (0.90, 0.88, 0.80, 0.79, 0.78, 0.60), 0.5e-4, (1, 0.0073, 0.005, 0.005, 0.005, 0.005),
        (0, -0.03386, -0.12162, -0.13162, -0.14162, -0.32162), (0.03386, 0, 0, 0, 0, 0), (1.96, 1.96),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", VECTORS)
def test_the_two_steps_and_the_interval_from_the_best_agree_with_the_reference_program(case):
    values, variance, pvalues, low, high, critical = VECTORS[case]
    covariance = variance * (0.5 + 0.5 * np.eye(len(values)))
    pairs = inference.pairs(
        np.array(values), covariance, inference.error_draws(covariance, 200_000), 0.95
    )
    assert pairs.may_be_best == pytest.approx(pvalues, abs=0.002)
    assert pairs.tied.tolist() == [p > 0.05 for p in pvalues]
    assert pairs.best_low == pytest.approx(low, rel=0.02)
    assert pairs.best_high == pytest.approx(high, rel=0.02)
    assert pairs.critical[: len(critical)] == pytest.approx(critical, abs=0.01)


def test_the_two_steps_agree_with_brute_force():
    rng = np.random.default_rng(4)
    root = rng.normal(size=(5, 5))
    covariance = root @ root.T
    for values in 3 * rng.normal(size=(4, 5)):
        errors, pairs, _ = _infer(values, covariance)
        both = np.concatenate([errors, -errors])
        for i in range(5):
            others = [j for j in range(5) if j != i]
            leads = {j: (both[:, j] - both[:, i]) / pairs.standard_error[i, j] for j in others}
            bound = np.quantile(np.max([-lead for lead in leads.values()], axis=0), 0.995)
            near = [j for j in others if pairs.statistic[j, i] + bound > 0]
            lead = max(pairs.statistic[j, i] for j in others)
            expected = 1.0
            if lead > 0:
                chance = np.max([leads[j] for j in near], axis=0)
                expected = max(
                    0.005 + (1 + (chance >= lead).sum()) / (1 + len(chance)), 2 * norm.sf(lead)
                )
            assert pairs.may_be_best[i] == pytest.approx(expected)


def test_the_critical_value_is_that_of_dunnetts_one_sided_test():
    # one-sided, 5 comparisons with one of six equally correlated runs, all near, at 5% less the first step's .5%:
    # the multivariate normal's upper 4.5% point, all correlations a half
    shared = multivariate_normal(np.zeros(5), 0.5 + 0.5 * np.eye(5))
    critical = inference.pairs(
        np.zeros(6), EQUAL, inference.error_draws(EQUAL, 200_000), 0.95
    ).critical
    assert [shared.cdf(np.full(5, one)) for one in critical] == pytest.approx(
        [0.955] * 6, abs=0.002
    )


def test_runs_that_are_out_of_the_question_cost_the_contenders_nothing():
    # two runs 3 standard errors apart among 18 far ones: without the first step the second run has p = .03
    values = np.array([3.0, 0.0, *[-40.0] * 18])
    covariance = 0.5 + 0.5 * np.eye(20)
    pairs = _infer(values, covariance)[1]
    assert pairs.may_be_best[1] == pytest.approx(0.005 + norm.sf(3), abs=0.001)
    assert pairs.best_low[0] == 0
    assert pairs.best_high[0] == pytest.approx(3 + 1.96, abs=0.01)


def test_runs_that_are_far_behind_need_no_leads_of_pairs():
    # Inside: only a count of computed leads shows that the work does not grow with the square of the runs.
    computed = inference._DrawnLeads.leads

    def count_leads(size):
        """Return how many leads are computed for runs that are one standard error apart."""
        counts = []

        def counting(drawn, i, rivals, draws):
            counts.append(int(rivals.sum()) * len(draws))
            return computed(drawn, i, rivals, draws)

        covariance = 0.5 + 0.5 * np.eye(size)
        errors = inference.error_draws(covariance, 1000)
        with mock.patch.object(inference._DrawnLeads, "leads", counting):
            pairs = inference.pairs(-np.arange(size), covariance, errors, 0.95)
        assert np.isnan(pairs.critical[-size // 2 :]).all()
        assert pairs.may_be_best[-1] == pytest.approx(0.005 + 1 / 2001)
        return sum(counts)

    few, many = count_leads(40), count_leads(160)
    assert many < 6 * few
    assert many < 0.1 * 160 * 159 * 1000


def test_of_two_runs_the_interval_is_that_of_the_pair_cut_at_zero():
    for lead, cut in ((1.0, False), (3.0, True)):
        _, pairs, _ = _infer([lead, 0.0], np.diag([0.5, 0.5]))
        z = norm.ppf(0.975)
        assert pairs.best_low == pytest.approx([0 if cut else lead - z, -lead - z])
        assert pairs.best_high == pytest.approx([lead + z, 0 if cut else z - lead])
        assert [pairs.low[0, 1], pairs.high[0, 1]] == pytest.approx([lead - z, lead + z])


def test_a_run_without_a_known_error_rules_nobody_out():
    values = np.array([0.0, 3.0, -9.0])
    errors = inference.error_draws(np.eye(3))
    known = np.array([True, False, True])
    pairs = inference.pairs(values, np.eye(3), errors, 0.95, known=known)
    assert pairs.tied.tolist() == [True, True, False]


def test_few_effective_rows_widen_what_holds_for_many_comparisons():
    values, degrees = np.array([2.6, 0.0, -0.1, 0.2, 0.1, 0.0]), np.full((6, 6), 9.0)
    errors = inference.error_draws(EQUAL)
    many, few = (
        inference.pairs(values, EQUAL, errors, 0.95, False, *more) for more in ((), (degrees,))
    )
    assert few.may_be_best[1] > 0.05 > many.may_be_best[1]
    assert many.pvalue[0, 1] == pytest.approx(2 * norm.sf(2.6))
    assert few.pvalue[0, 1] == pytest.approx(2 * student.sf(2.6, 9))
    assert few.high[0, 1] - 2.6 == pytest.approx(-student.ppf(norm.sf(many.reach), 9))
    assert few.high[0, 1] > many.high[0, 1]
    assert -2.6 - few.best_low[1] == pytest.approx(-student.ppf(norm.sf(few.critical[0]), 9))
    assert few.best_high[1] > 0 == many.best_high[1]


@pytest.mark.parametrize(
    "weights", [None, np.tile([1, 2, 3, 1, 1], 40), np.tile([0.5, 1.7, 1.0, 2.2, 0.3], 40)]
)
@pytest.mark.parametrize("folded", [False, True])
def test_degrees_of_pairs_are_welchs_over_the_classes(weights, folded):
    rng = np.random.default_rng(5)
    psi = rng.standard_t(4, size=(200, 3))
    psi[:, 2] = psi[:, 0]
    actual = rng.permutation(np.repeat([0, 1, 2], [20, 60, 120]))
    found = Design(200, weights).degrees(psi, actual, folded)
    repeats = np.ones(200, dtype=int) if weights is None or weights.dtype.kind == "f" else weights
    sampling = np.repeat(
        np.ones(200) if weights is None or weights.dtype.kind == "i" else weights, repeats
    )
    gap, total = (np.repeat(psi[:, 0] + sign * psi[:, 1], repeats) for sign in (-1, 1))
    expected = []
    for column in (gap, total) if folded else (gap,):
        squares = (sampling * (column - np.average(column, weights=sampling))) ** 2
        parts = []
        for k in range(3):
            inside = np.repeat(actual, repeats) == k
            size = sampling[inside].sum() ** 2 / (sampling[inside] ** 2).sum()
            parts.append(squares[inside].sum() ** 2 / (size - 1))
        expected.append(squares.sum() ** 2 / sum(parts))
    assert [found[0, 1], found[1, 0]] == pytest.approx([min(expected)] * 2)
    assert np.isinf(np.diag(found)).all()
    if not folded:
        assert np.isinf(found[0, 2])


@pytest.mark.parametrize(
    "weights", [None, np.tile([1, 2, 3, 1, 1], 40), np.tile([0.5, 1.7, 1.0, 2.2, 0.3], 40)]
)
def test_degrees_of_pairs_of_clusters_are_those_of_each_difference(weights):
    psi = np.random.default_rng(5).standard_t(4, size=(200, 2))
    clusters = np.repeat(np.arange(20), 10)
    design = Design(200, weights, clusters)
    found = design.degrees(psi, np.arange(200) % 3)
    effective = design.effective_clusters(psi[:, 0] - psi[:, 1])
    assert [found[0, 1], found[1, 0]] == pytest.approx(
        [3 * effective / (1 + 2 * effective / 20) - 1] * 2
    )


def test_a_single_row_of_one_of_two_classes_leaves_one_degree_of_freedom():
    psi = np.column_stack((np.r_[0.0, np.arange(50.0)], np.zeros(51)))
    assert Design(51).degrees(psi, np.r_[1, np.zeros(50, dtype=int)])[0, 1] == 1
    # of many classes it counts with the part of the variance that it has
    assert Design(51).degrees(psi, np.r_[2, np.arange(50) % 2])[0, 1] > 10


def test_nearest_to_zero_needs_both_signs():
    # |.05| and |−.06| of independent errors .1: far apart with their signs, alike in distance
    _, pairs, ranks = _infer([0.05, -0.06], np.diag([0.01, 0.01]), folded=True)
    assert pairs.difference[0, 1] == pytest.approx(0.01)
    assert abs(pairs.statistic[0, 1]) < 0.1
    assert pairs.pvalue[0, 1] > 0.9
    assert ranks is None
    # a far one against one at zero is told apart, whatever its sign
    for far in (1.0, -1.0):
        _, pairs, _ = _infer([0.01, far], np.diag([0.01, 0.01]), folded=True)
        assert pairs.max_t[0, 1] < 0.001
        _, _, ranks = _infer([0.01, far, 2 * far], np.diag([0.01, 0.01, 0.01]), folded=True)
        assert ranks.probability_best[0] == 1


@pytest.mark.slow
def test_nearest_to_zero_keeps_its_level_at_zero():
    rng = np.random.default_rng(2)
    covariance = 0.01 * (0.5 * np.eye(2) + 0.5)
    errors = inference.error_draws(covariance)
    found = [
        inference.pairs(
            rng.multivariate_normal(np.zeros(2), covariance), covariance, errors, 0.95, True
        ).pvalue[0, 1]
        for _ in range(800)
    ]
    assert np.mean(np.array(found) < 0.05) <= 0.065


@pytest.mark.slow
@given(st.permutations(range(4)))
def test_the_order_of_the_runs_does_not_matter(order):
    values = np.array([0.3, 0.1, 0.25, -0.4])
    covariance = 0.02 * np.array(
        [[2, 1, 0.5, 0], [1, 2, 0.3, 0.2], [0.5, 0.3, 1, 0], [0, 0.2, 0, 3]]
    )
    order = list(order)
    _, pairs, ranks = _infer(values, covariance)
    _, moved, other = _infer(values[order], covariance[np.ix_(order, order)])
    assert moved.statistic == pytest.approx(pairs.statistic[np.ix_(order, order)])
    assert moved.holm == pytest.approx(pairs.holm[np.ix_(order, order)])
    assert moved.max_t == pytest.approx(pairs.max_t[np.ix_(order, order)], abs=0.03)  # other draws
    assert other.probability_best == pytest.approx(ranks.probability_best[order], abs=0.03)


BANDED = (
    np.array([[3, 1, 0, 0, 1], [1, 2, 1, 0, 0], [0, 1, 4, 1, 0], [0, 0, 1, 2, 1], [1, 0, 0, 1, 3]])
    / 10
)
SEEDED = {
    # values, options, what comes out
    "plain": (
        (0.5, 0.1, 0.9, 0.85, -0.7), {},
        {
            "statistic": (-1.51186, 0.0, -2.3094, -2.37171, 2.06559),
            "max_t": (0.45813, 1.0, 0.10959, 0.0938, 0.18429),
            "high": (0.29605, 0.0, 0.11135, 0.08194, 1.81892),
            "may_be_best": (0.36616, 0.03555, 1.0, 0.88523, 0.00502),
            "critical": (2.04526, 2.22156, 2.02852, 2.10084, 2.15018),
            "best_low": (-1.45405, -1.5027, -0.67775, -0.7527, -3.12153),
            "best_high": (0.44213, 0.0, 0.7527, 0.67775, 0.0),
            "probability_best": (0.17195, 0.0, 0.34405, 0.484, 0.0),
            "expected": (2.4537, 3.99025, 1.98445, 1.60885, 4.96275),
        },
    ),
    "folded": (
        (0.5, -0.1, 0.9, 0.2, -0.7), {"folded": True},
        {
            "statistic": (0.7698, 0.0, 1.33333, 0.26726, 1.54919),
            "max_t": (0.9064, 1.0, 0.59387, 0.99755, 0.45513),
            "high": (1.76973, 0.0, 2.38163, 1.08632, 1.62094),
            "may_be_best": (0.43971, 1.0, 0.08665, 0.82168, 0.1567),
            "critical": (2.15268, 2.18062, 2.10827, 2.18837, 2.14824),
            "best_low": (-1.53308, -0.71881, -2.10837, -0.91591, -1.63711),
            "best_high": (0.53373, 0.91591, 0.10498, 0.71881, 0.23201),
            "probability_best": (0.10595, 0.40715, 0.0525, 0.348, 0.0864),
            "expected": (3.3645, 2.04725, 3.98355, 2.0044, 3.6003),
        },
    ),
    "clusters": (
        (0.5, 0.1, 0.9, 0.8, -0.7),
        {"degrees": np.full((5, 5), 7.0), "known": np.arange(5) != 3, "widest": 2.0},
        {
            "statistic": (-1.35843, 0.0, -1.92496, -1.86298, 1.76407),
            "max_t": (0.46443, 1.0, 0.18389, 0.20864, 0.24919),
            "high": (0.48327, 0.0, 0.35647, 0.35571, 2.0),
            "may_be_best": (0.4666, 0.07925, 1.0, 1.0, 0.01325),
            "critical": (2.10085, 2.14315, 1.97737, 1.95996, 2.05644),
            "best_low": (-1.64312, -1.62875, -0.9487, 0.0, -2.0),
            "best_high": (0.9487, 0.12416, 1.62875, 0.0, 0.0),
            "probability_best": (0.1942, 0.0, 0.3848, 0.421, 0.0),
            "expected": (2.41135, 3.98955, 1.9328, 1.70485, 4.96145),
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", SEEDED)
def test_the_same_values_give_the_same_answers_in_every_version(case):
    values, options, expected = SEEDED[case]
    values, covariance = np.array(values), BANDED @ BANDED.T
    errors, folded = inference.error_draws(covariance), options.get("folded", False)
    pairs = inference.pairs(values, covariance, errors, 0.95, **options)
    ranks = inference.ranks(
        inference.posterior_draws(values, covariance, level=folded), 0.95, folded
    )
    for name, numbers in expected.items():
        found = getattr(pairs if hasattr(pairs, name) else ranks, name)
        assert (found if found.ndim == 1 else found[1]) == pytest.approx(numbers, abs=1e-5), name
    assert pairs.low == pytest.approx(-pairs.high.T)
    assert (pairs.pvalue <= pairs.holm).all()
    assert [
        inference.reach_of_best(errors, np.diag(covariance), 0.9, others)[1] for others in (0, 3)
    ] == pytest.approx([2.23293, 2.44392], abs=1e-5)


def test_the_grid_of_the_spread_goes_to_eight_times_the_error_and_begins_at_a_fiftieth_of_that():
    spread = inference.spread(np.array([0.5, 0.1, 0.9]), 0.04 * np.eye(3))
    edges = np.geomspace(0.032, 1.6, 200)  # 0.02 · 1.6 to 8 · 0.2
    assert spread.tau[[0, 1, -1]] == pytest.approx(
        [edges[0] / 2, edges[:2].mean(), edges[-2:].mean()]
    )
    assert spread.weights.sum() == pytest.approx(1)
    # of all runs alike: nothing is uncertain, whatever rounding leaves
    for error in (1.0, 3e-7, 1234.5):
        assert inference.spread(np.array([0.5, 0.1]), np.full((2, 2), error)).tau.tolist() == [0]
        assert inference.spread(np.array([0.5, 0.1, 0.3]), np.full((3, 3), error)).tau.tolist() == [
            0
        ]


def test_of_one_run_the_draws_are_its_value_and_of_two_there_are_none():
    assert inference.posterior_draws(np.array([0.3]), np.eye(1), n_draws=4).tolist() == [[0.3]] * 4
    assert inference.posterior_draws(np.array([0.3, 0.2]), np.eye(2)) is None
    same = np.array([[1, 1, 0], [1, 1, 0], [0, 0, 1.0]])
    assert inference.posterior_draws(np.array([0.3, 0.3, 0.2]), same) is None  # two distinct ones
    assert inference.posterior_draws(np.array([0.3, 0.4, 0.2]), same) is not None
    assert inference.representatives(same).tolist() == [0, 0, 2]
    assert inference.representatives(same, np.array([0.3, 0.4, 0.4])).tolist() == [0, 1, 2]


def test_a_single_run_is_the_best_of_itself():
    pairs = inference.pairs(
        np.array([0.7]), np.array([[0.01]]), inference.error_draws(np.array([[0.01]])), 0.95
    )
    assert (pairs.reach, pairs.rival.tolist(), pairs.tied.tolist()) == (0, [0], [True])
    assert (pairs.best_low.tolist(), pairs.best_high.tolist(), pairs.max_t.tolist()) == (
        [0],
        [0],
        [[1]],
    )


def test_optimism_as_in_the_vector() -> None:
    """Vector TV-D14: .00716 ± .00003; the interval of the leader is there the one that allows for the picking."""
    covariance = 1e-4 * (np.full((4, 4), 0.5) + 0.5 * np.eye(4))
    found = optimism(np.array([0.850, 0.846, 0.858, 0.841]), covariance)
    assert found == pytest.approx(0.00716, abs=2e-4)
    assert optimism(np.array([0.9]), np.eye(1)) == 0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("variance", [0.00622504, 1 / 3, 0.1, 1e-300])
def test_optimism_of_runs_with_equal_predictions_is_zero(variance: float) -> None:
    covariance = np.full((9, 9), variance)
    assert optimism(np.ones(9), covariance) == pytest.approx(0, abs=1e-8)


@pytest.mark.slow
def test_optimism_is_what_choosing_among_equal_runs_is_worth() -> None:
    """Of 20 equal runs with independent errors the highest is 1.867 errors too high; corrected it is right."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(200, 20))
    bias = values.max(axis=1) - [optimism(own, np.eye(20), seed) for seed, own in enumerate(values)]
    assert values.max(axis=1).mean() == pytest.approx(1.867, abs=0.12)
    assert abs(bias.mean()) < 0.2


def test_ranks_of_draws_by_hand():
    drawn = np.array([[3.0, 2, 1], [3, 1, 2], [3, 2, 1], [1, 2, 3]])
    ranks = inference.ranks(drawn, 0.5)
    assert ranks.distribution.tolist() == [[0.75, 0, 0.25], [0, 0.75, 0.25], [0.25, 0.25, 0.5]]
    assert ranks.probability_best.tolist() == [0.75, 0, 0.25]
    assert ranks.expected.tolist() == [1.5, 2.25, 2.25]
    assert (ranks.low.tolist(), ranks.high.tolist()) == ([1, 2, 2], [1, 2, 3])
    assert inference.ranks(np.array([[-1.0, 0.5, 2]]), 0.5, True).expected.tolist() == [2, 1, 3]
    many = inference.ranks(np.zeros((4000, 2)), 0.95)  # by lot
    assert many.probability_best == pytest.approx([0.5, 0.5], abs=0.04)
