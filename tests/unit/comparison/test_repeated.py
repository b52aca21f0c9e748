"""Repeated runs: published examples, other implementations' numbers, hand values, levels by simulation."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from cmtrack.comparison.repeated import (
    analyse,
    bayesian_correlated_t,
    bayesian_signed_rank,
    corrected_resampled_t,
    friedman,
    holm,
    nemenyi,
    seed_differences,
    summary,
    wilcoxon_holm,
    wilcoxon_signed_rank,
)
from cmtrack.comparison.repeated._pairs import cliques

# Demšar (2006), JMLR 7, 1-30, Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets, and its ranks.
# On "voting" (the last but one) .975 and .975 are ranked 2 and 3, by digits that are not printed.
AUC = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9754, 0.9746],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
NAMES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")
GAP = AUC[:, 1] - AUC[:, 0]

whole = arrays(np.int64, st.tuples(st.integers(2, 12), st.integers(2, 6)), elements=st.integers(-5, 5))


def pvalues_of(matrix) -> np.ndarray:
    k = matrix.shape[1]
    found = wilcoxon_holm(matrix)
    return np.array([[1.0 if i == j else found[i, j].adjusted_pvalue for j in range(k)] for i in range(k)])


# --- ranks ---------------------------------------------------------------------------------------------------------


def test_friedman_of_the_published_example():
    # Section 3.2.4: average ranks 3.143, 2.000, 2.893, 1.964; chi-square 9.28, F 3.69 with 3 and 39 degrees
    found = friedman(AUC)
    assert found.ranks == pytest.approx((3.143, 2.000, 2.893, 1.964), abs=5e-4)
    assert found.uncorrected_chi_square == pytest.approx(9.28, abs=5e-3)
    plain = found.uncorrected_chi_square
    assert 13 * plain / (14 * 3 - plain) == pytest.approx(3.69, abs=5e-3)
    assert (found.f_df1, found.f_df2, found.blocks, found.left_out) == (3, 39, 14, 0)
    assert found.chi_square > plain  # ties, which the paper does not correct for
    assert found.f == pytest.approx(13 * found.chi_square / (42 - found.chi_square))
    assert found.f_pvalue == pytest.approx(stats.f.sf(found.f, 3, 39))
    assert found.to_frame()["pvalue"].tolist() == [found.pvalue, found.f_pvalue]


def test_nemenyi_of_the_published_example():
    # Section 3.2.4: at 0.10 (q = 2.291) the critical difference is 1.12; Table 5a
    found = nemenyi(AUC, 0.90)
    assert found.critical_difference == pytest.approx(2.291 * math.sqrt(4 * 5 / (6 * 14)), abs=5e-4)
    assert found.critical_difference == pytest.approx(1.12, abs=5e-3)
    assert found.order == (3, 1, 2, 0)
    # C4.5+m and C4.5+m+cf are better than C4.5 (differences 1.143 and 1.179), nothing else is told apart
    assert found.cliques == ((3, 1, 2), (2, 0))


@pytest.mark.parametrize(("k", "q"), [(2, 1.9600), (3, 2.3437), (4, 2.5690), (5, 2.7278), (10, 3.1637)])
def test_quantiles_of_the_critical_difference(k: int, q: float):
    # Demšar (2006), Table 5a at 0.05, with two more digits of the studentized range
    matrix = np.random.default_rng(k).normal(size=(12, k))
    assert nemenyi(matrix).critical_difference == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * 12)), abs=5e-5)


@pytest.mark.parametrize("seed", range(5))
def test_friedman_is_scipys(seed: int):
    matrix = np.random.default_rng(seed).integers(0, 4, (9, 5))  # with ties
    expected = stats.friedmanchisquare(*matrix.T)
    found = friedman(matrix)
    assert (found.chi_square, found.pvalue) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("seed", range(5))
def test_the_f_is_the_analysis_of_variance_of_the_ranks(seed: int):
    # with the correction for ties this is an identity (Conover 1999, Practical Nonparametric Statistics, 5.8)
    matrix = np.random.default_rng(seed).integers(0, 4, (9, 5))
    ranks = stats.rankdata(-matrix, axis=1)
    n, k = ranks.shape
    between = n * ((ranks.mean(axis=0) - (k + 1) / 2) ** 2).sum()
    rest = ((ranks - (k + 1) / 2) ** 2).sum() - between
    assert friedman(matrix).f == pytest.approx((between / (k - 1)) / (rest / ((n - 1) * (k - 1))))


def test_perfect_agreement_and_no_difference_at_all():
    agree = friedman(np.arange(3.0) + np.arange(4.0)[:, None])
    assert (agree.ranks, agree.chi_square, agree.f) == ((3.0, 2.0, 1.0), 8.0, math.inf)
    assert agree.f_pvalue == pytest.approx(6.0**-3)  # the first block's order three times again, of 3! orders
    tied = friedman([[1, 1, 2]] * 3)
    assert (tied.f, tied.f_pvalue) == (math.inf, pytest.approx(1 / 9))
    flat = friedman(np.ones((4, 3)))
    assert (flat.ranks, flat.chi_square, flat.f) == ((2.0, 2.0, 2.0), 0.0, 0.0)
    assert (flat.pvalue, flat.f_pvalue) == (1.0, 1.0)
    assert nemenyi(np.ones((4, 3))).cliques == ((0, 1, 2),)


def test_nemenyi_pvalues_are_those_of_scikit_posthocs():
    # scikit_posthocs.posthoc_nemenyi_friedman(-AUC) of release 0.17.1, and the studentized range itself
    found = nemenyi(AUC)
    ranks = np.array(found.ranks)
    for i, j in ((0, 1), (0, 3), (1, 2), (2, 3)):
        z = abs(ranks[i] - ranks[j]) / math.sqrt(4 * 5 / (12 * 14))
        assert found.pvalues[i, j] == pytest.approx(stats.studentized_range.sf(z, 4, math.inf), abs=1e-7)
    assert found.pvalues[0, 1] == pytest.approx(0.0886727, abs=1e-6)
    assert np.array_equal(found.pvalues, found.pvalues.T)
    assert len(found.to_frame()) == 6


@given(whole, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_ranks_go_with_their_columns(matrix, random):
    shuffled = list(range(matrix.shape[1]))
    random.shuffle(shuffled)
    one, other = friedman(matrix), friedman(matrix[:, shuffled])
    assert other.ranks == pytest.approx([one.ranks[i] for i in shuffled])
    assert (other.chi_square, other.f_pvalue) == pytest.approx((one.chi_square, one.f_pvalue))
    assert 0 <= one.pvalue <= 1
    assert 0 <= one.f_pvalue <= 1
    assert sum(one.ranks) == pytest.approx(matrix.shape[1] * (matrix.shape[1] + 1) / 2)


@given(whole, st.integers(-1000, 1000))
@settings(max_examples=15, deadline=None)
def test_a_block_may_be_easier_than_another(matrix, ease):
    moved = matrix + ease * np.arange(len(matrix))[:, None]
    assert friedman(moved) == friedman(matrix)
    assert pvalues_of(moved) == pytest.approx(pvalues_of(matrix))


# --- signed ranks --------------------------------------------------------------------------------------------------


def test_signed_ranks_of_the_published_example():
    # Demšar (2006), Table 2: the smaller sum of ranks is 12 when the two zeros' ranks are split; zeros are dropped here
    assert stats.wilcoxon(np.round(GAP, 12), zero_method="zsplit").statistic == 12
    found = wilcoxon_signed_rank(GAP)
    assert (found.method, found.blocks) == ("exact, ties", 14)
    assert (12 * 13 / 2 - found.statistic) / 2 == 6.5  # two of the twelve differences are negative: ranks 2.5 and 4
    # all 2^12 sign patterns of the twelve ranks, counted: 30 of them have a sum as extreme
    assert found.pvalue == pytest.approx(30 / 4096)


def test_signed_ranks_with_interval():
    # Hollander and Wolfe (1973), Table 3.1, depression scales; R's wilcox.test(x, y, paired = TRUE, conf.int = TRUE)
    # gives V = 40, p = 0.03906, pseudomedian 0.46, interval 0.010 to 0.786
    x = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    y = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    found = wilcoxon_signed_rank(x - y)
    assert (found.method, found.statistic) == ("exact", 40 - 5)
    assert found.pvalue == pytest.approx(0.0390625)
    assert (found.difference, found.low, found.high) == pytest.approx((0.46, 0.010, 0.786))
    assert repr(found.reversed()) == repr(wilcoxon_signed_rank(y - x))  # some of it is NaN


def test_signed_ranks_with_ties_are_counted_exactly():
    values = np.array([1.0, 1.0, 2.0, 2.0, -1.0, 3.0, -2.0])
    ranks = stats.rankdata(np.abs(values))
    signs = np.array(np.meshgrid(*[[-1, 1]] * 7)).reshape(7, -1)
    observed = abs((ranks * np.sign(values)).sum())
    expected = np.mean(np.abs(ranks @ signs) >= observed - 1e-9)
    assert wilcoxon_signed_rank(values).pvalue == pytest.approx(expected)
    assert wilcoxon_signed_rank(-values).pvalue == pytest.approx(expected)
    # five equal differences: 2 of 32 patterns, where the normal approximation says 0.025
    assert wilcoxon_signed_rank([0.1] * 5).pvalue == pytest.approx(2 / 32)


def test_many_signed_ranks_are_scipys():
    values = np.random.default_rng(1).normal(0.2, 1, 60)
    found = wilcoxon_signed_rank(values)
    assert found.method == "normal"
    assert found.pvalue == pytest.approx(stats.wilcoxon(values).pvalue)
    few = wilcoxon_signed_rank(values[:50])
    assert (few.method, few.pvalue) == ("exact", pytest.approx(stats.wilcoxon(values[:50], method="exact").pvalue))


def test_rounding_breaks_no_tie():
    assert 0.4 - 0.3 != 0.2 - 0.1
    matrix = np.array([[0.4, 0.3], [0.1, 0.2], [0.5, 0.5], [0.1 + 0.2, 0.3]])
    found = wilcoxon_holm(matrix)[0, 1].difference
    assert (found.statistic, found.pvalue, found.method) == (0.0, 1.0, "exact, ties")
    assert friedman(matrix).ranks == (1.5, 1.5)


@pytest.mark.parametrize(("n", "k", "needed"), [(5, 2, 6), (6, 3, 7), (4, 2, 6), (9, 10, 11)])
def test_too_few_blocks_are_told(n: int, k: int, needed: int):
    clear = np.arange(k) + 0.001 * np.random.default_rng(0).normal(size=(n, k))
    found = wilcoxon_holm(clear)
    assert not any(found.apart(0, j) for j in range(1, k))
    assert f"{n} blocks can reject nothing" in found.note
    assert f"{needed} are needed" in found.note
    enough = wilcoxon_holm(np.arange(k) + 0.001 * np.random.default_rng(0).normal(size=(needed, k)))
    assert enough.note == ""
    assert enough.apart(0, 1)


def test_holm_by_hand():
    assert holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx((0.03, 0.06, math.nan, 0.06), nan_ok=True)
    assert holm([math.nan]) == pytest.approx((math.nan,), nan_ok=True)


def test_cliques_are_maximal_runs():
    apart = np.zeros((5, 5), dtype=bool)
    apart[0, 2:] = apart[2:, 0] = True
    apart[1, 4] = apart[4, 1] = True
    assert cliques((0, 1, 2, 3, 4), apart) == ((0, 1), (1, 2, 3), (2, 3, 4))
    assert cliques((4, 3, 2, 1, 0), apart) == ((4, 3, 2), (3, 2, 1), (1, 0))
    assert cliques((0, 1, 2), ~np.eye(3, dtype=bool)) == ()


@given(whole)
@settings(max_examples=15, deadline=None)
def test_pairs_agree_with_each_other(matrix):
    found = wilcoxon_holm(matrix)
    for pair in found.pairs:
        assert 0 <= pair.difference.pvalue <= pair.adjusted_pvalue <= 1
        assert repr(found[pair.second, pair.first].reversed()) == repr(pair)
    doubled = np.column_stack([matrix, matrix[:, 0]])
    same = wilcoxon_holm(doubled)[0, matrix.shape[1]]
    assert (same.difference.difference, same.adjusted_pvalue) == (0, 1)
    assert friedman(doubled).ranks[0] == friedman(doubled).ranks[-1]


# --- folds and seeds -----------------------------------------------------------------------------------------------


def student_tail(t: float) -> float:
    """Two-sided tail of Student's distribution with 3 degrees of freedom, in closed form."""
    x = t / math.sqrt(3)
    return 1 - 2 / math.pi * (x / (1 + x * x) + math.atan(x))


def test_corrected_t_by_hand():
    found = corrected_resampled_t([0.01, 0.02, 0.03, 0.04], 1 / 3)
    error = math.sqrt((5e-4 / 3) * (1 / 4 + 1 / 3))
    assert (found.difference, found.standard_error, found.df) == pytest.approx((0.025, error, 3))
    assert found.pvalue == pytest.approx(student_tail(0.025 / error))
    assert (found.low, found.high) == pytest.approx((0.025 - 3.182446305 * error, 0.025 + 3.182446305 * error))
    assert found.reversed() == corrected_resampled_t([-0.01, -0.02, -0.03, -0.04], 1 / 3)
    assert found.to_frame().loc[0, "method"] == "corrected resampled t"
    with pytest.raises(FrozenInstanceError):
        found.df = 1.0


def test_corrected_t_without_variance_or_blocks():
    same, shifted = corrected_resampled_t([0.0] * 4, 0.25), corrected_resampled_t([0.5] * 4, 0.25)
    assert (same.pvalue, same.reason) == (1, "no block differs")
    assert np.isnan([same.low, same.high]).all()
    assert (shifted.pvalue, shifted.low, shifted.high, shifted.statistic) == (0, 0.5, 0.5, math.inf)
    one = corrected_resampled_t([0.1, math.nan], 0.25)
    assert (one.difference, one.blocks, one.left_out) == (0.1, 1, 1)
    assert math.isnan(one.pvalue)
    assert one.reason == "a variance needs two differences, there are 1"
    assert math.isnan(corrected_resampled_t([], 0.25).difference)


def test_seed_differences_by_hand():
    found = seed_differences([0.0, 0.02, 0.04], 0.01)
    variance = 1e-4 + 4e-4 / 3
    assert (found.difference, found.standard_error) == pytest.approx((0.02, math.sqrt(variance)))
    assert found.df == pytest.approx(6.125)  # 2 · (2.333 / 1.333)²
    assert found.pvalue == pytest.approx(2 * stats.t.sf(0.02 / math.sqrt(variance), 6.125))
    assert (found.method, found.reason) == ("seeds and test rows", "")
    alone = seed_differences([0.0, 0.02, 0.04])
    expected = stats.ttest_1samp([0.0, 0.02, 0.04], 0.0)
    assert (alone.pvalue, alone.df) == pytest.approx((expected.pvalue, 2))
    assert "these test rows only" in alone.reason
    rows_alone = seed_differences([0.02, 0.02], 0.01)
    assert (rows_alone.df, rows_alone.pvalue) == (math.inf, pytest.approx(2 * stats.norm.sf(2)))
    one = seed_differences([0.02], 0.01)
    assert math.isnan(one.standard_error)
    assert "needs two seeds" in one.reason
    assert (seed_differences([0.0, 0.0]).pvalue, seed_differences([0.1, 0.1]).pvalue) == (1, 0)


def test_the_corrected_t_keeps_its_level():
    # ten folds whose differences have the correlation n_test / (n_test + n_train) that the correction is made for
    rng, rho = np.random.default_rng(3), 0.1
    draws = math.sqrt(rho) * rng.normal(size=(2000, 1)) + math.sqrt(1 - rho) * rng.normal(size=(2000, 10))
    rejected = np.mean([corrected_resampled_t(d, 1 / 9).pvalue <= 0.05 for d in draws])
    assert 0.035 <= rejected <= 0.065
    assert np.mean(stats.ttest_1samp(draws, 0, axis=1).pvalue <= 0.05) > 0.12  # as if folds were independent


def test_seed_differences_keep_their_level():
    rng, n, seeds = np.random.default_rng(4), 300, 5
    rejected = {True: 0, False: 0}
    for _ in range(500):
        rows = rng.normal(0, 1.0, n)[:, None] + rng.normal(0, 0.05, seeds) + rng.normal(0, 0.5, (n, seeds))
        error = rows.mean(axis=1).std(ddof=1) / math.sqrt(n)
        for known in rejected:
            found = seed_differences(rows.mean(axis=0), error if known else math.nan)
            rejected[known] += found.pvalue <= 0.05
    assert rejected[True] / 500 <= 0.065
    assert rejected[False] / 500 > 0.2  # seeds alone say nothing of the population of rows


@pytest.mark.slow
def test_the_signed_ranks_keep_their_level():
    rng = np.random.default_rng(5)
    wrong = 0
    for turn in range(400):
        matrix = rng.normal(size=(12, 4)) + rng.normal(size=(12, 1))
        models = [(i, j) for i in range(4) for j in range(i + 1, 4)]
        least = min(wilcoxon_signed_rank(matrix[:, i] - matrix[:, j]).pvalue for i, j in models)
        wrong += 6 * least <= 0.05  # Holm rejects anything if and only if it rejects this
        if turn < 10:
            assert min(p.adjusted_pvalue for p in wilcoxon_holm(matrix).pairs) == pytest.approx(min(1, 6 * least))
    assert wrong / 400 <= 0.065


# --- posteriors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rope", "expected"),
    [
        (0.0, (0.00096, 0.0, 0.99904)),
        (0.0052, (1.5e-05, 0.050665, 0.94932)),
        (0.0103, (0.0, 0.330205, 0.669795)),
        (0.0203, (0.0, 0.895055, 0.104945)),
    ],
)
def test_signed_rank_posterior_is_baycomps(rope, expected):
    # baycomp 1.0.3: SignedRankTest(AUC[:, 0], AUC[:, 1], rope, nsamples=200_000, random_state=0).probs()
    found = bayesian_signed_rank(GAP, rope, n_draws=50_000)
    assert (found.left, found.inside, found.right) == pytest.approx(expected, abs=0.01)
    assert found == bayesian_signed_rank(GAP, rope, n_draws=50_000)
    mirrored = bayesian_signed_rank(-GAP, rope, n_draws=50_000)
    assert (mirrored.right, mirrored.inside, mirrored.left) == pytest.approx((found.left, found.inside, found.right))


def test_signed_rank_posterior_of_one_difference():
    # weight w of the one difference is Beta(1, s); its pair with itself lies right, all else inside: w² > 1/2
    found = bayesian_signed_rank([0.03], 0.02, n_draws=100_000, prior_strength=2.0)
    assert found.right == pytest.approx((1 - math.sqrt(0.5)) ** 2, abs=0.005)
    assert found.left == 0
    assert found.inside == pytest.approx(1 - found.right)


def test_signed_rank_posterior_at_the_edges():
    flat = bayesian_signed_rank([0.0] * 5, 0.0, n_draws=100)
    assert (flat.left, flat.inside, flat.right) == (0.5, 0, 0.5)
    assert bayesian_signed_rank([0.0] * 5, 0.01, n_draws=100).inside == 1
    none = bayesian_signed_rank([math.nan], 0.01)
    assert math.isnan(none.left)
    assert (none.left_out, none.reason) == (1, "there is no block with a difference")


def test_many_draws_of_many_blocks_are_the_same_in_chunks(monkeypatch):
    from cmtrack.comparison.repeated import _bayes as bayes

    values = np.random.default_rng(6).normal(0.005, 0.05, 200)
    found = bayesian_signed_rank(values, 0.01)
    monkeypatch.setattr(bayes, "_CELLS", 50_000)
    assert bayesian_signed_rank(values, 0.01) == found
    assert found.left + found.inside + found.right == pytest.approx(1)


@pytest.mark.parametrize(
    ("n", "rope", "correlation", "expected"),
    [
        (10, 0.0, 1 / 10, (0.13122737750181868, 0.0, 0.8687726224981813)),
        (10, 0.005, 1 / 10, (0.06148009560935889, 0.19264428667971945, 0.7458756177109217)),
        (14, 0.01, 1 / 7, (0.011763916936851143, 0.2830012838408702, 0.7052347992222786)),
    ],
)
def test_correlated_t_posterior_is_baycomps(n, rope, correlation, expected):
    # baycomp 1.0.3: CorrelatedTTest.probs(x, y, rope, runs) of the first n rows, with one run of ten folds and two
    # runs of seven
    found = bayesian_correlated_t(GAP[:n], rope, correlation)
    assert (found.left, found.inside, found.right) == pytest.approx(expected, abs=1e-9)
    # without a rope the posterior is the corrected t-test's one-sided p-value
    ratio = correlation / (1 - correlation)
    one_sided = bayesian_correlated_t(GAP[:n], 0, correlation).left
    assert 2 * one_sided == pytest.approx(corrected_resampled_t(GAP[:n], ratio).pvalue)


def test_correlated_t_posterior_without_variance():
    regions = [bayesian_correlated_t([v] * 3, rope, 0.1) for v, rope in ((0.0, 0.0), (0.5, 0.1), (-0.5, 0.1), (0, 0.1))]
    assert [(r.left, r.inside, r.right) for r in regions] == [(0.5, 0, 0.5), (0, 0, 1), (1, 0, 0), (0, 1, 0)]
    one = bayesian_correlated_t([0.5], 0.1, 0.1)
    assert math.isnan(one.right)
    assert "two differences" in one.reason
    assert one.to_frame().loc[0, "blocks"] == 1


# --- the whole -----------------------------------------------------------------------------------------------------


def test_summary_counts_what_is_missing():
    found = summary([[1.0, 2.0], [3.0, math.nan], [5.0, math.nan]], ["a", "b"])
    assert (found.blocks, found.left_out) == (1, 2)
    a, b = found["a"], found["b"]
    assert (a.mean, a.sd, a.minimum, a.maximum, a.blocks) == (3, 2, 1, 5, 3)
    assert (b.mean, b.minimum, b.blocks) == (2, 2, 1)
    assert math.isnan(b.sd)
    assert found.to_frame()["name"].tolist() == ["a", "b"]
    empty = summary([[1.0, math.nan]])["1"]
    assert empty.blocks == 0
    assert math.isnan(empty.mean)
    with pytest.raises(KeyError, match="no model 'c'"):
        found["c"]


def test_data_sets():
    found = analyse(AUC, NAMES, kind="datasets", rope=0.005)
    assert (found.best, found.order, found.blocks) == (3, (3, 1, 2, 0), 14)
    assert found.friedman == friedman(AUC)
    assert found.nemenyi is not None
    assert found.nemenyi.order == found.order
    gap = found["C4.5"]
    assert gap.difference < 0
    pair = wilcoxon_holm(AUC)[0, 3]
    assert (gap.pvalue, gap.adjusted_pvalue) == (pair.difference.pvalue, pair.adjusted_pvalue)
    assert found.cliques == wilcoxon_holm(AUC).cliques
    posterior = bayesian_signed_rank(AUC[:, 0] - AUC[:, 3], 0.005)
    assert (gap.worse, gap.equivalent, gap.better) == (posterior.left, posterior.inside, posterior.right)
    assert found.posteriors[3] is None
    assert [g.name for g in found.differences] == list(NAMES[:3])
    frame = found.to_frame()
    assert frame["name"].tolist() == [NAMES[i] for i in found.order]
    assert frame["best"].tolist() == [True, False, False, False]
    assert any("exact with ties for 6 pairs" in note for note in found.notes)
    assert "best 'C4.5+m+cf'" in repr(found)
    assert "<ul><li>" in found._repr_html_()
    with pytest.raises(KeyError, match="from the best"):
        found[NAMES[3]]


def test_folds():
    found = analyse(AUC, NAMES, kind="folds", test_train_ratio=1 / 13)
    assert (found.friedman, found.nemenyi) == (None, None)
    assert any("Rank tests" in note and "not shown" in note for note in found.notes)
    expected = corrected_resampled_t(AUC[:, 0] - AUC[:, 3], 1 / 13)
    assert found["C4.5"].pvalue == pytest.approx(expected.pvalue)
    assert found.best == int(AUC.mean(axis=0).argmax())
    posterior = bayesian_correlated_t(AUC[:, 0] - AUC[:, 3], 0.01, 1 / 14)
    assert found["C4.5"].worse == pytest.approx(posterior.left)
    raw = [found.pairwise[i, j].difference.pvalue for i in range(4) for j in range(i + 1, 4)]
    adjusted = [found.pairwise[i, j].adjusted_pvalue for i in range(4) for j in range(i + 1, 4)]
    assert adjusted == pytest.approx(holm(raw))
    assert len(found.pairwise.to_frame()) == 6


def test_seeds():
    scores = 0.8 + np.random.default_rng(8).normal(0, 0.002, (6, 3)) + np.array([0.0, 0.05, 0.0505])
    errors = np.full((3, 3), 0.004)
    found = analyse(scores, ["a", "b", "c"], kind="seeds", test_errors=errors, rope=None)
    best = found.best
    assert best in (1, 2)
    other = 3 - best
    expected = seed_differences(scores[:, 0] - scores[:, best], 0.004)
    assert (found["a"].low, found["a"].high) == pytest.approx((expected.low, expected.high))
    assert [found.tied[0], found.tied[best], found.tied[other]] == [False, True, True]
    assert found.posteriors == (None, None, None)
    assert math.isnan(found["a"].worse)
    assert "Standard errors hold both the variation over the seeds and the sampling of the test rows." in found.notes
    without = analyse(scores, kind="seeds")
    assert any("not known for every pair" in note for note in without.notes)
    assert without["0"].worse > 0.99
    assert without["0"].reason != ""


def test_missing_values_are_left_out_and_said():
    holes = AUC.copy()
    holes[3, 1] = math.nan
    found = analyse(holes, NAMES, kind="datasets")
    rest = analyse(np.delete(AUC, 3, axis=0), NAMES, kind="datasets")
    assert (found.blocks, found.left_out) == (13, 1)
    assert found.notes[0].startswith("1 of 14 data sets have no value")
    assert repr(found.differences) == repr(rest.differences)  # some of it is NaN
    assert (found.friedman.f, found.friedman.left_out) == (rest.friedman.f, 1)
    assert (found.summary["C4.5"].blocks, found.summary["C4.5+m"].blocks) == (14, 13)


@pytest.mark.parametrize("kind", ["folds", "seeds", "datasets"])
def test_one_block_tells_nothing_apart(kind):
    found = analyse([[0.1, 0.9, 0.5]], kind=kind, test_train_ratio=0.5 if kind == "folds" else None)
    assert found.tied == (True, True, True)
    assert found.best == 1
    assert found.cliques == ((1, 2, 0),)
    assert any("There is only one" in note for note in found.notes)
    assert len(found.to_frame()) == 3


@pytest.mark.parametrize("kind", ["folds", "seeds", "datasets"])
@given(matrix=whole)
@settings(max_examples=15, deadline=None)
def test_any_scores(kind, matrix):
    found = analyse(matrix, kind=kind, rope=0.5, test_train_ratio=0.1 if kind == "folds" else None)
    assert found.tied[found.best]
    assert sorted(found.order) == list(range(matrix.shape[1]))
    for gap in found.differences:
        assert 0 <= gap.pvalue <= gap.adjusted_pvalue <= 1
        assert gap.worse + gap.equivalent + gap.better == pytest.approx(1)
        assert not gap.low > gap.difference > gap.high
    for clique in found.cliques:
        assert not any(found.pairwise.apart(i, j) for i in clique for j in clique if i != j)


@pytest.mark.parametrize("kind", ["folds", "seeds", "datasets"])
def test_equal_models_tie(kind):
    column = np.random.default_rng(9).random((8, 1))
    found = analyse(np.repeat(column, 3, axis=1), kind=kind, test_train_ratio=0.1 if kind == "folds" else None)
    assert found.best == 0
    assert found.tied == (True, True, True)
    assert [gap.adjusted_pvalue for gap in found.differences] == [1, 1]
    assert [gap.equivalent for gap in found.differences] == [1, 1]


# --- bad input -----------------------------------------------------------------------------------------------------

TWO = [[0.1, 0.2], [0.3, 0.4]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: friedman([1, 2, 3]), r"scores must have shape \(blocks >= 1, models >= 2\), got \(3,\)"),
        (lambda: friedman([[1], [2]]), r"got \(2, 1\)"),
        (lambda: wilcoxon_holm([[1, math.inf]]), "must be finite or NaN, got inf in block 0 of model 1"),
        (lambda: nemenyi(TWO, 1.0), "confidence_level must lie between 0 and 1, got 1.0"),
        (lambda: wilcoxon_holm(TWO, 95), "between 0 and 1, got 95"),
        (lambda: summary(TWO, ["a"]), "got 1 names for 2 models"),
        (lambda: summary(TWO, ["a", "a"]), "names must differ, got 'a' twice"),
        (lambda: corrected_resampled_t([0.1, 0.2], 0), "test_train_ratio must be positive and finite, got 0"),
        (lambda: corrected_resampled_t([[0.1]], 0.1), r"differences must have shape \(blocks,\), got \(1, 1\)"),
        (lambda: corrected_resampled_t([0.1, math.inf], 0.1), "differences must be finite or NaN, got one in block 1"),
        (lambda: corrected_resampled_t([0.1, 0.2], 0.1, 0), "between 0 and 1, got 0"),
        (lambda: seed_differences([0.1, 0.2], -1), "test_error must be finite and not negative, or NaN, got -1"),
        (lambda: bayesian_signed_rank([0.1], -0.1), "rope must be finite and not negative, got -0.1"),
        (lambda: bayesian_signed_rank([0.1], 0.1, n_draws=0), "n_draws must be at least 1, got 0"),
        (lambda: bayesian_signed_rank([0.1], 0.1, prior_strength=0), "prior_strength must be positive"),
        (lambda: bayesian_correlated_t([0.1, 0.2], 0.1, 1.0), "correlation must be at least 0 and less than 1"),
        (lambda: analyse(TWO, kind="runs"), "kind must be one of .*, got 'runs'"),
        (lambda: analyse(TWO, kind="folds"), "test_train_ratio goes with kind 'folds'"),
        (lambda: analyse(TWO, kind="seeds", test_train_ratio=0.1), "and only there: got 0.1, 'seeds'"),
        (lambda: analyse(TWO, kind="datasets", test_errors=np.ones((2, 2))), "go with kinds 'seeds' and 'folds' only"),
        (lambda: analyse(TWO, kind="seeds", test_errors=[0.1]), r"must have shape \(2, 2\), .*got \(1,\)"),
        (lambda: analyse(TWO, kind="seeds", test_errors=[[0, -1], [-1, 0]]), "not negative, or NaN, got"),
        (lambda: analyse(TWO, kind="seeds", test_errors=[[0, 1], [2, 0]]), "got 1 and 2 for models 0 and 1"),
        (lambda: analyse(TWO, kind="seeds", rope=-1), "rope must be finite and not negative, got -1"),
        (lambda: analyse([[math.nan, 1]], ["a", "b"], kind="seeds"), "got none such; 'a' has the fewest values"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_slow_libraries_wait_until_they_are_needed():
    code = (
        "import sys, cmtrack.comparison.repeated as r\n"
        "r.corrected_resampled_t([.1, .2], .1), r.bayesian_signed_rank([.1, .2], .01), r.friedman([[1, 2], [2, 3]])\n"
        "print([m for m in ('statsmodels', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"
