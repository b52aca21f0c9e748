"""Calibration of the positive group's score: test vector 20, statsmodels, properties, bad cases."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.metrics import brier_score_loss, log_loss
from statsmodels.stats.proportion import proportion_confint

from cmtrack import Accumulator, Evaluation, Grouping, evaluate
from cmtrack.evaluation import loads
from cmtrack.metrics import CATALOG

# with more draws than an evaluation makes, so that an exact p-value shows
from cmtrack.metrics._calibration import calibration_test
from cmtrack.plots import reliability_figure
from support.problems import B20, D20, W20, random_labels, random_problem, random_scores

OTHER = np.array([0, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 0])
"""Other labels of the data D20."""
PARTS = (
    "miscalibration",
    "discrimination",
    "uncertainty",
    *(f"log_{x}" for x in ("miscalibration", "discrimination", "uncertainty")),
)


NAMES = [metric.name for metric in CATALOG if metric.section == "calibration"]


def near(expected: Any) -> Any:
    return pytest.approx(expected, abs=6e-11)


def numbers(evaluation: Evaluation, *names: str) -> list[float]:
    return [evaluation.metrics[f"calibration/{name}"] for name in names]


def test_vector_20_of_the_parts():
    evaluation = evaluate(B20, y_prob=D20)
    expected = [0.0365833333, 0.1083333333, 0.25, 0.1221668566, 0.2807199457, 0.6931471806]
    assert numbers(evaluation, *PARTS) == near(expected)
    curve = evaluation.calibration
    assert curve is not None
    assert [curve.brier.score, curve.log.score] == near([0.17825, 0.5345940915])
    recalibrated = dict(zip(curve.scores.tolist(), curve.recalibrated.tolist(), strict=True))
    assert len(recalibrated) == 15
    assert [recalibrated[s] for s in (0.05, 0.1, 0.3, 0.35, 0.7, 0.75, 0.95)] == near(
        [0, 1 / 6, 1 / 6, 0.5, 0.5, 1, 1]
    )


def test_vector_20_of_weights():
    evaluation = evaluate(B20, y_prob=D20, sample_weight=W20)
    expected = [0.0347378118, 0.1319444444, 0.2487244898, 0.1154116559, 0.3395444115, 0.6905939865]
    assert numbers(evaluation, *PARTS) == near(expected)
    curve = evaluation.calibration
    assert curve is not None
    assert [curve.brier.score, curve.log.score] == near([0.1515178571, 0.4664612309])


def test_vector_20_of_the_error():
    curve = evaluate(B20, y_prob=D20).calibration
    other = evaluate(OTHER, y_prob=D20).calibration
    assert curve is not None
    assert other is not None
    found = curve.error(bins=4)
    assert (found.squared, found.standard_error) == near((-0.0212208333, 0.0332664334))
    assert found.sizes.tolist() == [4, 6, 5, 5]
    assert found.differences == near([0.15, 0.0166666667, -0.18, 0.16])
    assert found.variances == near([0.0629166667, 0.0351111111, 0.0674, 0.00135])
    assert found.value == 0
    assert (other.error(4).squared, other.error(4).standard_error) == near(
        (0.0851958333, 0.0719265112)
    )
    assert other.error(4).value == near(math.sqrt(0.0851958333))
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        curve.error(0)


@pytest.mark.parametrize(
    ("labels", "statistics", "pvalues"),
    [
        (B20, (0.5125783215, 0.1273276825), (0.9982441597, 0.9350645048, 0.9872257210)),
        (OTHER, (2.562891607, 24.217698137), (0.0180936818, 0.0001721905, 0.0002865113)),
    ],
    ids=["calibrated", "not"],
)
def test_vector_20_of_the_test(labels: Any, statistics: Any, pvalues: Any) -> None:
    evaluation = evaluate(labels, y_prob=D20)
    curve = evaluation.calibration
    assert curve is not None
    test = curve.test
    assert test is not None
    assert (test.kuiper, test.cox) == pytest.approx(statistics, abs=1e-9)
    assert (test.kuiper_pvalue, test.cox_pvalue, test.pvalue) == pytest.approx(pvalues, abs=0.03)
    assert evaluation.metrics["calibration/pvalue"] == test.pvalue
    more = calibration_test(curve.table.blocks, 99_999)
    for found, exact in zip(
        (more.kuiper_pvalue, more.cox_pvalue, more.pvalue), pvalues, strict=True
    ):
        assert abs(found - exact) <= 4 * math.sqrt(exact * (1 - exact) / 99_999) + 1e-5


def test_vector_20_of_the_slope():
    evaluation = evaluate(B20, y_prob=D20)
    assert numbers(evaluation, "slope", "intercept") == near([0.9379793756, 0.1632287314])
    errors = evaluation.standard_errors
    assert [errors["calibration/slope"], errors["calibration/intercept"]] == near(
        [0.4430310146, 0.5191795794]
    )
    assert evaluation.metrics["prevalence/bias"] == near(-0.03)


def scored(seed: int, n: int = 400, wrong: float = 1.3) -> tuple[np.ndarray, np.ndarray]:
    """Labels and over-confident scores, too low on average, some of them equal."""
    rng = np.random.default_rng(seed)
    y = random_labels(n, 2, rng)
    return y, random_scores(y, 1.0, rng, slope=wrong, shift=-0.2 * wrong, digits=3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_is_statsmodels(seed: int, weighted: bool) -> None:
    sm = pytest.importorskip("statsmodels.api")
    y, s = scored(seed)
    weights = (
        np.random.default_rng(seed).integers(1, 4, len(y))
        if weighted
        else np.ones(len(y), dtype=int)
    )
    evaluation = evaluate(y, y_prob=s, sample_weight=weights if weighted else None)
    rows, scores = np.repeat(y, weights), np.repeat(s, weights)
    x = np.log(scores / (1 - scores))
    fit = sm.Logit(rows, sm.add_constant(x)).fit(disp=0, method="newton", tol=1e-13, cov_type="HC0")
    assert numbers(evaluation, "intercept", "slope") == pytest.approx(fit.params, abs=1e-9)
    errors = [evaluation.standard_errors[f"calibration/{name}"] for name in ("intercept", "slope")]
    assert errors == pytest.approx(fit.bse, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_parts_add_up_to_the_scores_of_scikit_learn(seed: int) -> None:
    y, s = scored(seed)
    mcb, dsc, unc, log_mcb, log_dsc, log_unc = numbers(evaluate(y, y_prob=s), *PARTS)
    assert mcb - dsc + unc == pytest.approx(brier_score_loss(y, s), abs=1e-12)
    assert log_mcb - log_dsc + log_unc == pytest.approx(log_loss(y, s), abs=1e-12)


def everything(evaluation: Evaluation) -> Any:
    found = [evaluation.metrics[name] for name in NAMES] + [
        evaluation.standard_errors.get(name, 0) for name in NAMES
    ]
    return pytest.approx(found, rel=1e-9, abs=1e-11, nan_ok=True)


ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 19), st.integers(1, 3)), min_size=4, max_size=40
)


@pytest.mark.slow
@settings(max_examples=15)
@given(ROWS, st.randoms(use_true_random=False))
def test_repeated_rows_are_whole_weights_in_any_order(rows: Any, random: Any) -> None:
    y, s, w = (np.array(column) for column in zip(*rows, strict=True))
    s = s / 20
    evaluation = evaluate(y, y_prob=s, sample_weight=w, labels=[0, 1])
    order = list(range(int(w.sum())))
    random.shuffle(order)
    repeated = evaluate(np.repeat(y, w)[order], y_prob=np.repeat(s, w)[order], labels=[0, 1])
    assert [evaluation.metrics[name] for name in NAMES] + [
        evaluation.standard_errors.get(name, 0) for name in NAMES
    ] == everything(repeated)
    assert evaluation.metrics["calibration/miscalibration"] >= 0
    assert evaluation.metrics["calibration/discrimination"] >= 0
    curve = evaluation.calibration
    assert curve is not None
    assert (np.diff(curve.recalibrated) >= -1e-12).all()


def test_parts_of_the_rows_merge_and_survive_saving():
    y, s = scored(5)
    whole = evaluate(y, y_prob=s)
    merged = evaluate(y[:100], y_prob=s[:100]) + evaluate(y[100:], y_prob=s[100:])
    batches = Accumulator(labels=[0, 1])
    for part in np.array_split(np.arange(len(y)), 7):
        batches.update(y[part], y_prob=s[part])
    for other in (merged, batches.compute(), loads(whole.to_json())):
        for name in NAMES:
            assert other.metrics[name] == whole.metrics[name], name
            assert other.intervals.get(name) == whole.intervals.get(name), name


def test_mismatches_play_no_part():
    y, _, p = random_problem(2, 200)
    grouping = Grouping({"a": [0, 1], "b": [2, 3]}, "strict", positive="b")
    four = evaluate(y, y_prob=p, grouping=grouping)
    two = evaluate((y > 1).astype(int), y_prob=p[:, 2:].sum(axis=1).round(12))
    assert four.binary is not None
    assert four.binary.imp + four.binary.imn > 0
    assert [four.metrics[name] for name in NAMES] == pytest.approx(
        [two.metrics[name] for name in NAMES], abs=1e-9
    )


def test_one_group_only():
    evaluation = evaluate([0] * 8, y_prob=np.linspace(0.1, 0.8, 8), labels=[0, 1])
    assert numbers(
        evaluation, "discrimination", "uncertainty", "log_discrimination", "log_uncertainty"
    ) == [0, 0, 0, 0]
    assert evaluation.metrics["calibration/miscalibration"] == pytest.approx(
        np.mean(np.linspace(0.1, 0.8, 8) ** 2)
    )
    assert "a group has no rows" in evaluation.undefined["calibration/slope"]
    assert 0 < evaluation.metrics["calibration/pvalue"] < 0.1


def test_a_constant_score():
    evaluation = evaluate(B20, y_prob=np.full(20, 0.5))
    assert numbers(evaluation, "error", "pvalue", "miscalibration", "discrimination") == [
        0,
        1,
        0,
        0,
    ]
    assert {"calibration/slope", "calibration/intercept"} <= set(evaluation.undefined)
    far = evaluate(B20, y_prob=np.full(20, 0.9))
    assert far.metrics["calibration/error"] > 0.3
    assert far.metrics["calibration/pvalue"] == 0.001


def test_scores_that_part_the_groups_have_no_slope():
    evaluation = evaluate([0, 0, 0, 1, 1, 1], y_prob=[0.1, 0.2, 0.4, 0.4, 0.7, 0.8])
    assert "separate the groups" in evaluation.undefined["calibration/slope"]
    assert math.isfinite(evaluation.metrics["calibration/pvalue"])


def test_scores_of_exactly_0_and_1():
    y, s = np.append(B20, [0, 0, 1]), np.append(D20, [0.0, 0.0, 1.0])
    evaluation = evaluate(y, y_prob=s)
    assert numbers(evaluation, "slope", "intercept") == near([0.9379793756, 0.1632287314])
    assert any(
        text.startswith("13% of the rows have a score of exactly 0 or 1")
        for text in evaluation.warnings
    )
    assert evaluation.metrics["calibration/pvalue"] > 0.9
    wrong = evaluate(np.append(B20, [1, 1, 0]), y_prob=s)
    assert wrong.metrics["calibration/pvalue"] == 0.001
    assert wrong.undefined["calibration/log_miscalibration"] == (
        "infinite: 3 rows have probability 0 for their actual group"
    )
    assert math.isfinite(wrong.metrics["calibration/log_discrimination"])
    perfect = evaluate([0, 1, 1, 0], y_prob=[0.0, 1.0, 1.0, 0.0])
    assert perfect.undefined["calibration/pvalue"].startswith("every score is 0 or 1")
    assert numbers(perfect, "error", "miscalibration", "log_miscalibration") == [0, 0, 0]


@pytest.mark.slow
def test_what_needs_independent_rows_says_so():
    y, s = scored(1)
    groups = evaluate(y, y_prob=s, groups=np.arange(len(y)) // 4)
    merged = replace(groups, rows=None)
    assert "in clusters" in merged.undefined["calibration/pvalue"]
    assert "calibration/error" not in groups.intervals
    by_rows = evaluate(y, y_prob=s)
    for name in ("error", "slope"):
        assert groups.metrics[f"calibration/{name}"] == by_rows.metrics[f"calibration/{name}"]
    copies = evaluate(
        np.repeat(y, 4), y_prob=np.repeat(s, 4), groups=np.repeat(np.arange(len(y)), 4)
    )
    error = by_rows.standard_errors["calibration/slope"]
    assert copies.standard_errors["calibration/slope"] == pytest.approx(error, rel=0.01)
    fractions = evaluate(y, y_prob=s, sample_weight=np.random.default_rng(0).gamma(2, 1, len(y)))
    low, high = fractions.intervals["calibration/error"]
    assert low <= fractions.metrics["calibration/error"] <= high


def test_equal_fractional_weights_are_rows():
    y, s = scored(3)
    rows, halves = evaluate(y, y_prob=s), evaluate(y, y_prob=s, sample_weight=np.full(len(y), 0.5))
    for name in NAMES:
        if name != "calibration/pvalue":
            assert halves.metrics[name] == pytest.approx(rows.metrics[name], abs=1e-11), name
            ends = rows.intervals.get(name)
            assert halves.intervals.get(name) == (None if ends is None else pytest.approx(ends)), (
                name
            )


def test_a_grid_of_scores_is_judged_by_its_means_and_has_no_test_without_them() -> None:
    y, s = scored(4, 3000)
    exact = evaluate(y, y_prob=s + 1e-7 * np.arange(3000) / 3000)
    assert exact.statistics.scores is not None
    grid = replace(
        exact,
        statistics=replace(exact.statistics, scores=exact.statistics.scores.to_grid()),
        rows=None,
    )
    for name in NAMES:
        assert grid.metrics[name] == pytest.approx(exact.metrics[name], abs=0.01), name
    assert not any("centre" in text for text in grid.warnings)
    assert grid.statistics.scores is not None
    old = replace(
        grid, statistics=replace(grid.statistics, scores=replace(grid.statistics.scores, sums=None))
    )
    assert "grid" in old.undefined["calibration/pvalue"]
    assert any(
        "the calibration/ metrics use the centre of each score's cell" in text
        for text in old.warnings
    )


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("weights", ["groups", "fractions"])
def test_dependent_rows_and_fractions_have_tests_of_their_own_size(weights):
    """Of labels that are alike in clusters of 5, independent draws refuse calibrated scores in .11 to .17 of cases."""
    rng, refused, found = np.random.default_rng(8), 0, []
    for _ in range(40):
        s = rng.beta(2, 2, 400)
        groups = np.repeat(np.arange(80), 5)
        together = np.sqrt(0.4) * np.repeat(rng.standard_normal(80), 5) + np.sqrt(
            0.6
        ) * rng.standard_normal(400)
        y = (norm.cdf(together if weights == "groups" else rng.standard_normal(400)) < s).astype(
            int
        )
        options = (
            {"groups": groups} if weights == "groups" else {"sample_weight": rng.gamma(1, 1, 400)}
        )
        found.append(evaluate(y, y_prob=s, **options).metrics["calibration/pvalue"])
        refused += found[-1] <= 0.05
    assert refused <= 6  # 2 are expected; 7 or more have a chance of .003
    assert min(found) < 0.2
    assert max(found) > 0.8
    sharp = s**2 / (s**2 + (1 - s) ** 2)
    assert evaluate(y, y_prob=sharp, **options).metrics["calibration/pvalue"] <= 0.05


def sparse(rng, n=500):
    """Calibrated scores, of which about six in 500 come true, and their labels."""
    s = 1 / (1 + np.exp(-rng.normal(-5, 1.5, n)))
    return (rng.random(n) < s).astype(int), s


@pytest.mark.thin(3)
@pytest.mark.slow
@pytest.mark.parametrize("beside", ["groups", "weights", "case-control"])
def test_sparse_labels_beside_groups_or_weights_are_not_refused_too_often(beside):
    """Drawn signs alone refused .170 (groups of 5), .185 (random weights) and .18 to .27 (case-control)."""
    refused, repeats = 0, 60
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        y, s = sparse(rng, 1500 if beside == "case-control" else 500)
        options = {"groups": np.arange(len(y)) // 5}
        if beside == "weights":
            options = {"sample_weight": rng.gamma(2, 0.5, len(y)), "weights_are": "sampling"}
        if beside == "case-control":
            there = (y == 1) | (rng.random(len(y)) < 0.02)
            y, s = y[there], s[there]
            options = {"sample_weight": np.where(y == 1, 1.0, 50.0), "weights_are": "sampling"}
        made = evaluate(y, y_prob=s, labels=[0, 1], sections=["calibration"], **options)
        refused += made.metrics["calibration/pvalue"] <= 0.05
    assert refused <= 0.07 * repeats + 4  # a size of .07 has 8 or fewer with a chance of .98


def test_weighted_rows_of_one_score_that_all_come_out_as_expected_are_not_refused():
    """No positive was expected and none came; 25 rows of one score and of several weights are one block."""
    weights = np.random.default_rng(1).gamma(2, 0.5, 100)
    few = evaluate(
        np.zeros(100, int),
        y_prob=(1 + np.arange(100) % 4) * 1e-9,
        labels=[0, 1],
        sample_weight=weights,
        weights_are="sampling",
    )
    assert few.metrics["calibration/pvalue"] == 1


def test_signs_are_drawn_by_cluster():
    """By all 1,024 signs: of ten clusters of five equal rows eight are too high by 2.5 and two too low."""
    y = np.repeat([1] * 8 + [0] * 2, 5)
    options = {"y_prob": np.full(50, 0.5), "labels": [0, 1]}
    evaluation = evaluate(y, groups=np.arange(50) // 5, **options)
    exact = 2 * sum(math.comb(10, k) for k in range(3)) / 2**10
    assert evaluation.metrics["calibration/pvalue"] == pytest.approx(exact, abs=0.04)
    assert evaluate(y, **options).metrics["calibration/pvalue"] == 0.001


def test_p_values_beside_groups_are_the_larger_ones_of_drawn_labels_and_drawn_signs():
    y, _, p = random_problem(0, k=3, n=300)
    y, p, groups = np.repeat(y[:150], 2), np.repeat(p[:150], 2, axis=0), np.arange(300) // 2
    evaluation = evaluate(y, y_prob=p, groups=groups)
    alone = evaluate(y, y_prob=p)
    names = ["confidence/pvalue", *(f"class/{k}/calibration_pvalue" for k in range(3))]
    by_signs = [evaluation.metrics[name] > alone.metrics[name] for name in names]
    assert all(evaluation.metrics[name] >= alone.metrics[name] for name in names)
    assert 0 < sum(by_signs) < len(by_signs)  # either test has the last word somewhere


def test_labels_are_drawn_as_weights_by_label_have_it():
    """All outcomes of nine rows, of which a sampled one is positive with the odds s / (1 - s) * 4."""
    rng = np.random.default_rng(3)
    s, y = np.sort(rng.uniform(0.05, 0.6, 9)), np.array([0, 0, 1, 0, 0, 1, 1, 1, 1])
    curve = evaluate(
        y, y_prob=s, sample_weight=np.where(y == 1, 0.5, 2.0), weights_are="sampling"
    ).calibration
    test = calibration_test(curve.table.blocks, 99_999)
    b = (np.arange(2**9)[:, None] >> np.arange(9)) & 1
    chance = 4 * s / (4 * s + 1 - s)
    each = np.where(b == 1, chance, 1 - chance).prod(axis=1)
    d = np.where(b == 1, 0.5 * (1 - s), -2 * s)
    assert each @ d == near(np.zeros(9))
    variance = each @ d**2
    x = np.log(s / (1 - s))
    x -= variance @ x / variance.sum()
    cox = d.sum(axis=1) ** 2 / variance.sum() + (d @ x) ** 2 / (variance @ x**2)
    mine = int(y @ 2 ** np.arange(9))
    assert test.cox == pytest.approx(cox[mine])
    exact = each[cox >= cox[mine] - 1e-9].sum()
    assert test.cox_pvalue == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 99_999))


@pytest.mark.parametrize(
    ("y", "s"),
    [
        (
            [0] * 59 + [1],
            [0.02] * 59 + [0.9],
        ),  # all labels of a bin alike: [.0200, .0200] by what is seen alone
        ([0] * 30 + [1] * 30, [0.3] * 30 + [0.7] * 30),
        ([0] * 30 + [1] * 30, [0.0] * 30 + [1.0] * 30),
        (([0] * 9 + [1]) * 6, [0.1] * 60),  # as many as expected: the squared error is far below 0
    ],
)
@pytest.mark.parametrize("weight", [1, 0.5])
def test_the_interval_of_the_error_has_a_width(y, s, weight):
    weights = np.full(60, weight, dtype=float)
    evaluation = evaluate(
        y, y_prob=np.array(s), sample_weight=weights if weight != 1 else None, labels=[0, 1]
    )
    low, high = evaluation.intervals["calibration/error"]

    assert low <= evaluation.metrics["calibration/error"] < high - 0.01
    assert (
        evaluation.calibration.error().standard_error < 1e-9
        or evaluation.calibration.error().squared < 0
    )


def test_p_values_of_groups_stay_with_the_file(tmp_path):
    y, s = scored(1)
    evaluation = evaluate(y, y_prob=s, groups=np.arange(len(y)) // 4)
    evaluation.save(tmp_path)
    loaded = Evaluation.load(tmp_path, rows=False)
    assert loaded == evaluation
    assert loaded.metrics["calibration/pvalue"] == evaluation.metrics["calibration/pvalue"]
    assert math.isnan((loaded + loaded).metrics["calibration/pvalue"])


def test_many_scores_are_pooled_for_the_test():
    y, s = scored(6, 6000, wrong=1.0)
    s = np.clip(s + np.random.default_rng(1).uniform(-4e-4, 4e-4, 6000), 1e-6, 1 - 1e-6)
    assert len(np.unique(s.round(12))) > 4096
    test = evaluate(y, y_prob=s).calibration.test
    assert test.pvalue <= 0.01  # shifted by 0.2 in logit


def test_the_band_holds_a_calibrated_curve_and_not_a_wrong_one():
    rng = np.random.default_rng(8)
    s = rng.beta(2, 2, 500)
    right = evaluate((rng.random(500) < s).astype(int), y_prob=s).calibration
    low, high = right.band()
    assert (
        (low <= right.recalibrated + 1e-12) & (right.recalibrated <= high + 1e-12)
    ).mean() > 0.97
    assert (low <= right.scores + 0.05).all()
    wrong = evaluate((rng.random(500) < 1 - s).astype(int), y_prob=s).calibration
    low, high = wrong.band()
    assert ((wrong.recalibrated < low) | (wrong.recalibrated > high)).any()
    assert right.to_frame()["positive"].sum() + right.to_frame()["negative"].sum() == 500
    grouped = evaluate([0, 1], y_prob=[0.2, 0.7], sample_weight=[0.5, 0.7]).calibration
    with pytest.raises(ValueError, match="rows have sampling weights"):
        grouped.band()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"groups": np.arange(200) // 4}, "clusters"),
        ({"sample_weight": np.linspace(0.5, 1.5, 200)}, "sampling weights"),
    ],
)
def test_dependent_or_weighted_rows_have_a_test_and_no_band(options: Any, why: str) -> None:
    """The band takes labels to be independent, so the figure draws none."""
    y, s = scored(1, 200)
    evaluation = evaluate(y, y_prob=s, **options)
    curve = evaluation.calibration
    assert curve is not None
    assert 0 < evaluation.metrics["calibration/pvalue"] <= 1
    assert (curve.test is None) == ("groups" in options)
    assert curve.leaves_band is None
    assert why in curve.no_band
    with pytest.raises(ValueError, match=f"there is no consistency band: {curve.no_band}"):
        curve.band()
    assert math.isnan(curve.ece().if_calibrated)
    assert not reliability_figure(evaluation).axes[0].collections


def test_vector_20_of_the_ece():
    found = evaluate(B20, y_prob=D20).calibration.ece()
    assert found.value == near(0.21)
    assert 0.2 < found.if_calibrated < 0.3


@pytest.mark.parametrize(("n", "expected"), [(200, 0.0891), (500, 0.0573), (2000, 0.0288)])
def test_a_calibrated_score_shows_an_ece(n: int, expected: float) -> None:
    s = np.random.default_rng(n).beta(2, 2, n)
    curve = evaluate((np.random.default_rng(1).random(n) < s).astype(int), y_prob=s).calibration
    assert curve.ece().if_calibrated == pytest.approx(expected, rel=0.03)
    assert math.isnan(
        evaluate([0, 1], y_prob=[0.2, 0.7], sample_weight=[0.5, 0.7])
        .calibration.ece()
        .if_calibrated
    )
    with pytest.raises(ValueError, match="bins must be at least 1, got 0"):
        curve.ece(0)


def test_the_bins_of_the_ece_are_closed_above():
    curve = evaluate([1, 0, 1, 0], y_prob=[0.0, 0.2, 0.4, 1.0]).calibration
    assert curve.ece(5).value == near((1 - 0.2 + 0.6 + 1) / 4)  # 0 and 0.2 are of one bin
    assert curve.ece(2).value == near((abs(2 - 0.6) + 1) / 4)


def test_the_figure_draws_the_band_that_is_asked_for():
    y, s = scored(0, 120)
    evaluation = evaluate(y, y_prob=s)
    with_band, without_band = (
        [line.get_label() for line in reliability_figure(evaluation, band=band).axes[0].lines]
        for band in ("consistency", None)
    )
    assert "95% band of a perfectly calibrated model" in with_band
    assert not any("band" in label for label in without_band)
    with pytest.raises(ValueError, match="band must be 'consistency' or None, got 'both'"):
        reliability_figure(evaluation, band="both")


def test_many_scores_are_drawn_by_cell_with_their_band():
    """Labels are drawn for at most 4,096 scores: more are put together for the figure."""
    s = np.random.default_rng(3).beta(2, 2, 6000)
    evaluation = evaluate((np.random.default_rng(4).random(6000) < s).astype(int), y_prob=s)
    curve = evaluation.calibration
    with pytest.raises(
        ValueError,
        match=(
            r"at most 4096 distinct scores, got 6000: use CalibrationCurve.drawn, which has "
            r"fewer"
        ),
    ):
        curve.band()
    pooled = curve.drawn
    assert len(pooled.scores) < 1600
    assert pooled.scores @ pooled.table.blocks.total == pytest.approx(s.sum(), rel=1e-12)
    assert (pooled.brier.score, pooled.brier.miscalibration) == pytest.approx(
        (curve.brier.score, curve.brier.miscalibration), abs=5e-4
    )
    low, high = pooled.band()
    assert ((low <= pooled.recalibrated + 1e-9) & (pooled.recalibrated <= high + 1e-9)).all()
    top = reliability_figure(evaluation).axes[0]
    drawn = {line.get_label(): line.get_ydata() for line in top.lines}
    np.testing.assert_array_equal(drawn["95% band of a perfectly calibrated model"], low)
    line = next(line for line in top.lines if line.get_label().startswith("isotonic curve"))
    np.testing.assert_array_equal(line.get_data(), [pooled.scores, pooled.recalibrated])


def test_labels_alone_have_no_calibration():
    evaluation = evaluate([0, 1, 1], [0, 1, 0])
    assert evaluation.calibration is None
    assert not any(name.startswith("calibration/") for name in evaluation.metrics)


def test_the_curve_that_is_drawn_is_the_one_that_is_computed():
    rng = np.random.default_rng(0)
    scores = rng.random(300).round(2)
    evaluation = evaluate((rng.random(300) < scores).astype(int), y_prob=scores)
    top, bottom = evaluation.figures()["reliability"].axes
    curve = evaluation.calibration
    line = next(line for line in top.lines if line.get_label().startswith("isotonic curve"))
    np.testing.assert_array_equal(line.get_data(), [curve.scores, curve.recalibrated])
    low, high = evaluation.intervals["calibration/error"]
    value = evaluation.metrics["calibration/error"]
    words = " ".join(line.get_label().split())
    assert f"calibration error {value:.3f} [{low:.3f}, {high:.3f}]" in words
    (dots,) = top.containers
    (arms,) = dots.lines[2]
    cells = np.minimum(np.floor(10 * scores), 9)
    y = evaluation.calibration.table.blocks.positive
    for cell, (low, high) in enumerate(segment[:, 1] for segment in arms.get_segments()):
        n = int((cells == cell).sum())
        hits = y[np.minimum(np.floor(10 * curve.scores), 9) == cell].sum()
        assert (low, high) == pytest.approx(proportion_confint(hits, n, method="wilson"))
    counts = evaluation.confusion_matrix.counts.sum(axis=1)
    said = [label.get_text() for label in bottom.get_legend().get_texts()]
    assert said[-2:] == [f"0 (n={counts[0]})", f"1 (n={counts[1]})"]
    assert said[0] == "95% band of a perfectly calibrated model"
    assert "reliability" not in evaluate([1, 1], y_prob=[0.5, 0.7], labels=[0, 1]).figures()
