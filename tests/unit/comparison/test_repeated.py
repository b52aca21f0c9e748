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
    corrected_resampled_t,
    holm,
    seed_differences,
    summary,
)

# Demšar (2006), JMLR 7, 1-30, Table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf, here as scores of 14 folds.
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

whole = arrays(
    np.int64, st.tuples(st.integers(2, 12), st.integers(2, 6)), elements=st.integers(-5, 5)
)


def test_holm_by_hand():
    assert holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx(
        (0.03, 0.06, math.nan, 0.06), nan_ok=True
    )
    assert holm([math.nan]) == pytest.approx((math.nan,), nan_ok=True)


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
    assert (found.low, found.high) == pytest.approx(
        (0.025 - 3.182446305 * error, 0.025 + 3.182446305 * error)
    )
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
    assert one.reason == "a variance needs at least two differences, got 1"
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
    assert "only for these test rows" in alone.reason
    rows_alone = seed_differences([0.02, 0.02], 0.01)
    assert (rows_alone.df, rows_alone.pvalue) == (math.inf, pytest.approx(2 * stats.norm.sf(2)))
    one = seed_differences([0.02], 0.01)
    assert math.isnan(one.standard_error)
    assert "needs at least two seeds" in one.reason
    assert (seed_differences([0.0, 0.0]).pvalue, seed_differences([0.1, 0.1]).pvalue) == (1, 0)


def test_the_corrected_t_keeps_its_level():
    # ten folds whose differences have the correlation n_test / (n_test + n_train) that the correction is made for
    rng, rho = np.random.default_rng(3), 0.1
    draws = math.sqrt(rho) * rng.normal(size=(2000, 1)) + math.sqrt(1 - rho) * rng.normal(
        size=(2000, 10)
    )
    rejected = np.mean([corrected_resampled_t(d, 1 / 9).pvalue <= 0.05 for d in draws])
    assert 0.035 <= rejected <= 0.065
    # as if folds were independent
    assert np.mean(stats.ttest_1samp(draws, 0, axis=1).pvalue <= 0.05) > 0.12


def test_seed_differences_keep_their_level():
    rng, n, seeds = np.random.default_rng(4), 300, 5
    rejected = {True: 0, False: 0}
    for _ in range(500):
        rows = (
            rng.normal(0, 1.0, n)[:, None]
            + rng.normal(0, 0.05, seeds)
            + rng.normal(0, 0.5, (n, seeds))
        )
        error = rows.mean(axis=1).std(ddof=1) / math.sqrt(n)
        for known in rejected:
            found = seed_differences(rows.mean(axis=0), error if known else math.nan)
            rejected[known] += found.pvalue <= 0.05
    assert rejected[True] / 500 <= 0.065
    assert rejected[False] / 500 > 0.2  # seeds alone say nothing of the population of rows


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
    with pytest.raises(KeyError, match="no model named 'c'"):
        found["c"]


def test_folds():
    found = analyse(AUC, NAMES, kind="folds", test_train_ratio=1 / 13)
    assert any("Nadeau and Bengio" in note for note in found.notes)
    expected = corrected_resampled_t(AUC[:, 0] - AUC[:, 3], 1 / 13)
    assert found["C4.5"].pvalue == pytest.approx(expected.pvalue)
    assert found.best == int(AUC.mean(axis=0).argmax())
    frame = found.to_frame()
    assert frame["name"].tolist() == [NAMES[i] for i in found.order]
    assert frame["best"].tolist() == [True, False, False, False]
    assert "best 'C4.5+m+cf'" in repr(found)
    assert "<ul><li>" in found._repr_html_()
    with pytest.raises(KeyError, match="from the best"):
        found[NAMES[3]]
    raw = [found.pairwise[i, j].difference.pvalue for i in range(4) for j in range(i + 1, 4)]
    adjusted = [found.pairwise[i, j].adjusted_pvalue for i in range(4) for j in range(i + 1, 4)]
    assert adjusted == pytest.approx(holm(raw))
    assert len(found.pairwise.to_frame()) == 6


def test_seeds():
    scores = 0.8 + np.random.default_rng(8).normal(0, 0.002, (6, 3)) + np.array([0.0, 0.05, 0.0505])
    errors = np.full((3, 3), 0.004)
    found = analyse(scores, ["a", "b", "c"], kind="seeds", test_errors=errors)
    best = found.best
    assert best in (1, 2)
    other = 3 - best
    expected = seed_differences(scores[:, 0] - scores[:, best], 0.004)
    assert (found["a"].low, found["a"].high) == pytest.approx((expected.low, expected.high))
    assert [found.tied[0], found.tied[best], found.tied[other]] == [False, True, True]
    assert (
        "Standard errors include both the variation over the seeds and the sampling of the test rows."
        in found.notes
    )
    without = analyse(scores, kind="seeds")
    assert any("the test rows is unknown" in note for note in without.notes)
    assert without["0"].reason != ""


def test_missing_values_are_left_out_and_said():
    holes = AUC.copy()
    holes[3, 1] = math.nan
    found = analyse(holes, NAMES, kind="folds", test_train_ratio=1 / 13)
    rest = analyse(np.delete(AUC, 3, axis=0), NAMES, kind="folds", test_train_ratio=1 / 13)
    assert (found.blocks, found.left_out) == (13, 1)
    assert found.notes[0].startswith("1 of 14 folds lack the value")
    assert repr(found.differences) == repr(rest.differences)
    assert (found.summary["C4.5"].blocks, found.summary["C4.5+m"].blocks) == (14, 13)


@pytest.mark.parametrize("kind", ["folds", "seeds"])
def test_one_block_tells_nothing_apart(kind):
    found = analyse([[0.1, 0.9, 0.5]], kind=kind, test_train_ratio=0.5 if kind == "folds" else None)
    assert found.tied == (True, True, True)
    assert found.best == 1
    assert found.order == (1, 2, 0)
    assert any("There is only one" in note for note in found.notes)
    assert len(found.to_frame()) == 3


@pytest.mark.parametrize("kind", ["folds", "seeds"])
@given(matrix=whole)
@settings(max_examples=15, deadline=None)
def test_any_scores(kind, matrix):
    found = analyse(matrix, kind=kind, test_train_ratio=0.1 if kind == "folds" else None)
    assert found.tied[found.best]
    assert sorted(found.order) == list(range(matrix.shape[1]))
    for gap in found.differences:
        assert 0 <= gap.pvalue <= gap.adjusted_pvalue <= 1
        assert not gap.low > gap.difference > gap.high


@pytest.mark.parametrize("kind", ["folds", "seeds"])
def test_equal_models_tie(kind):
    column = np.random.default_rng(9).random((8, 1))
    found = analyse(
        np.repeat(column, 3, axis=1), kind=kind, test_train_ratio=0.1 if kind == "folds" else None
    )
    assert found.best == 0
    assert found.tied == (True, True, True)
    assert [gap.adjusted_pvalue for gap in found.differences] == [1, 1]


# --- bad input -----------------------------------------------------------------------------------------------------

TWO = [[0.1, 0.2], [0.3, 0.4]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: summary([1, 2, 3]),
            r"scores must have shape \(blocks >= 1, models >= 1\), got \(3,\)",
        ),
        (lambda: summary([[1, math.inf]]), "must be finite or NaN, got inf in block 0 of model 1"),
        (lambda: analyse(TWO, kind="seeds", confidence_level=95), "between 0 and 1, got 95"),
        (lambda: summary(TWO, ["a"]), "got 1 names for 2 models"),
        (lambda: summary(TWO, ["a", "a"]), "names must differ, got 'a' twice"),
        (
            lambda: corrected_resampled_t([0.1, 0.2], 0),
            "test_train_ratio must be positive and finite, got 0",
        ),
        (
            lambda: corrected_resampled_t([[0.1]], 0.1),
            r"differences must have shape \(blocks,\), got \(1, 1\)",
        ),
        (
            lambda: corrected_resampled_t([0.1, math.inf], 0.1),
            "differences must be finite or NaN, got one in block 1",
        ),
        (lambda: corrected_resampled_t([0.1, 0.2], 0.1, 0), "between 0 and 1, got 0"),
        (
            lambda: seed_differences([0.1, 0.2], -1),
            "test_error must be finite and not negative, or NaN, got -1",
        ),
        (lambda: analyse(TWO, kind="runs"), "kind must be one of .*, got 'runs'"),
        (lambda: analyse(TWO, kind="folds"), "test_train_ratio is required for kind 'folds'"),
        (
            lambda: analyse(TWO, kind="seeds", test_train_ratio=0.1),
            "only used there, got 0.1 for 'seeds'",
        ),
        (
            lambda: analyse(TWO, kind="seeds", test_errors=[0.1]),
            r"must have shape \(2, 2\), .*got \(1,\)",
        ),
        (
            lambda: analyse(TWO, kind="seeds", test_errors=[[0, -1], [-1, 0]]),
            "not negative, or NaN, got",
        ),
        (
            lambda: analyse(TWO, kind="seeds", test_errors=[[0, 1], [2, 0]]),
            "got 1 and 2 for models 0 and 1",
        ),
        (lambda: analyse(TWO, kind="datasets"), "kind must be one of .*, got 'datasets'"),
        (
            lambda: analyse([[math.nan, 1]], ["a", "b"], kind="seeds"),
            "got none; 'a' has the fewest values",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.slow
def test_slow_libraries_wait_until_they_are_needed():
    code = (
        "import sys, cmtrack.comparison.repeated as r\n"
        "r.corrected_resampled_t([.1, .2], .1), r.analyse([[1, 2], [2, 4]], kind='seeds')\n"
        "print([m for m in ('statsmodels', 'sklearn', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"
