"""Where the published sources cannot be right: the evidence, and what this library gives instead."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import lognorm, norm

from cmtrack import Grouping, evaluate
from cmtrack.metrics import ScoreSamples, Sides, d_a, fisher_mean, lookup, prior_corrected
from cmtrack.statistics import BinaryCounts, Counted, ScoreMoments
from support.literal import binary_metrics, literal_forms
from support.problems import evaluate_counts, random_labels, random_scores

# Markoulidakis et al. (2021), figure 7: logistic regression on the net promoter score
FIGURE_7 = [[20, 59, 1], [4, 185, 23], [2, 127, 88]]
STRICT = Grouping({"negative": [0], "positive": [1, 2]}, mode="strict")
LR = BinaryCounts(tp=273, fn=6, imp=150, fp=60, tn=20, imn=0)
CROSSED = [[5, 2, 1, 0], [1, 6, 0, 2], [1, 0, 7, 3], [0, 2, 1, 9]]
BOTH_SIDES = BinaryCounts(tp=11, fn=3, imp=3, fp=3, tn=16, imn=4)

# Table 8, logistic regression: published, correct
TABLE_8 = {
    "accuracy": (0.58, 0.575639),
    "precision": (0.57, 0.565217),
    "recall": (0.64, 0.636364),
    "f1": (0.60, 0.598684),
    "fnr": (0.01, 0.013986),
    "fdr": (0.12, 0.124224),
    "fowlkes_mallows": (0.60, 0.599736),
    "pimr": (0.35, 0.349650),
    "ppimr": (0.31, 0.310559),
}
TABLE_8_WRONG = {
    "specificity": (0.09, 0.250000),
    "npv": (0.11, 0.769231),
    "fpr": (0.14, 0.750000),
    "for": (0.03, 0.230769),
    "matthews_corrcoef": (0.33, 0.390168),
}


def test_figure_7_gives_the_counts_of_table_8() -> None:
    assert evaluate_counts(FIGURE_7, grouping=STRICT).binary == LR


@pytest.mark.parametrize("name", TABLE_8)
def test_table_8_where_it_is_right(name: str) -> None:
    published, correct = TABLE_8[name]
    value = evaluate_counts(FIGURE_7, grouping=STRICT).metrics[f"binary/{name}"]
    assert value == pytest.approx(correct, abs=6e-7)
    assert round(value, 2) == published


@pytest.mark.parametrize("name", TABLE_8_WRONG)
def test_table_8_where_it_is_wrong(name: str) -> None:
    published, correct = TABLE_8_WRONG[name]
    value = evaluate_counts(FIGURE_7, grouping=STRICT).metrics[f"binary/{name}"]
    assert value == pytest.approx(correct, abs=6e-7)
    assert round(value, 2) != published


def test_origin_of_the_wrong_values_of_table_8() -> None:
    """All five follow from IMN := IMP = 150 where the negative group has one class and no mismatches."""
    tp, fn, imp, fp, tn, _ = LR
    wrong_imn = imp
    assert tn / (tn + fp + wrong_imn) == pytest.approx(0.09, abs=0.005)
    assert tn / (tn + fn + wrong_imn) == pytest.approx(0.11, abs=0.005)
    assert fp / (tp + fn + imp) == pytest.approx(0.14, abs=0.005)
    assert fn / (tn + fn + wrong_imn) == pytest.approx(0.03, abs=0.005)
    numerator = tp * tn + imp * tn + imp * wrong_imn - fp * fn  # equation 28: no tp * imn
    denominator = math.sqrt(429 * 483 * (tn + fp + wrong_imn) * (tn + fn + wrong_imn))
    assert numerator / denominator == pytest.approx(0.334117, abs=6e-7)


# Table 8 row by row: specificity + fall-out, npv + false omission, published for eight algorithms
PUBLISHED_SUMS = (
    (0.23, 0.17, 0.26, 0.25, 0.23, 0.33, 0.28, 0.23),
    (0.14, 0.10, 0.29, 0.33, 0.24, 0.53, 0.29, 0.17),
)


@pytest.mark.parametrize("counts", [LR, BOTH_SIDES])
def test_identities_33_to_36(counts: BinaryCounts) -> None:
    m = binary_metrics(counts)
    for parts in (
        ("recall", "fnr", "pimr"),
        ("specificity", "fpr", "nimr"),
        ("precision", "fdr", "ppimr"),
        ("npv", "for", "npimr"),
    ):
        assert sum(m[part] for part in parts) == pytest.approx(1, abs=1e-12)
    if counts.imn == 0:
        assert m["nimr"] == m["npimr"] == 0
        for published, ours in zip(
            PUBLISHED_SUMS, (m["specificity"] + m["fpr"], m["npv"] + m["for"]), strict=True
        ):
            assert ours == pytest.approx(1)
            assert max(published) < 0.6


def test_hits_are_the_accepted_pairs() -> None:
    """Equations 19 and 20 exchange the membership signs: read as printed, TP and IMP trade places."""
    binary = evaluate_counts(FIGURE_7, grouping=STRICT).binary
    assert binary is not None
    assert (binary.tp, binary.imp) == (185 + 88, 127 + 23)


def test_predicted_negatives_are_a_column_sum() -> None:
    """Equation 27 prints IMP and the name of actual negatives: 176 instead of the column's 26."""
    assert LR.predicted_negatives == 20 + 4 + 2
    assert LR.tn + LR.fn + LR.imp == 176


def test_matthews_correlation_of_groups() -> None:
    """Equation 28 lacks TP IMN in the numerator; the correlation of the two group indicators decides."""
    actual, predicted = np.repeat(
        [[i, j] for i in range(4) for j in range(4)], np.ravel(CROSSED), axis=0
    ).T
    truth = np.corrcoef(actual < 2, predicted < 2)[0, 1]
    grouping = Grouping({"low": [0, 1], "high": [2, 3]}, mode="strict", positive="low")
    value = evaluate(actual, predicted, grouping=grouping).metrics["binary/matthews_corrcoef"]
    assert value == pytest.approx(truth, abs=1e-12)
    assert value == pytest.approx(0.693095, abs=6e-7)
    tp, fn, imp, fp, tn, imn = BOTH_SIDES
    sides = (tp + fn + imp, tp + fp + imp, tn + fp + imn, tn + fn + imn)
    as_printed = (tp * tn + imp * tn + imp * imn - fp * fn) / math.sqrt(math.prod(sides))
    assert as_printed == pytest.approx(0.580563, abs=6e-7)


def test_matthews_correlation_does_not_see_mismatches() -> None:
    relaxed = Grouping({"negative": [0], "positive": [1, 2]})
    values = [
        evaluate_counts(FIGURE_7, grouping=g).metrics["binary/matthews_corrcoef"]
        for g in (STRICT, relaxed)
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-15)
    assert values[0] == pytest.approx(0.390168, abs=6e-7)


def test_classical_identities_split_with_mismatches() -> None:
    m, literal = binary_metrics(BOTH_SIDES), literal_forms(BOTH_SIDES)
    assert m["informedness"] == pytest.approx(0.516624, abs=6e-7)
    assert literal["informedness_consistent"] == pytest.approx(0.342711, abs=6e-7)
    assert m["informedness"] - literal["informedness_consistent"] == pytest.approx(m["nimr"])
    assert m["markedness"] - literal["markedness_consistent"] == pytest.approx(m["npimr"])
    assert m["threat_score"] == pytest.approx(m["f1"] / (2 - m["f1"]))
    assert literal["threat_literal"] > m["threat_score"]


def test_two_macro_f1() -> None:
    """Table 3 defines F1 of the macro means; Table 7's .50 for this matrix is neither of the two."""
    m = evaluate_counts(FIGURE_7).metrics
    assert m["multiclass/f1_of_macro_means"] == pytest.approx(0.584115, abs=6e-7)
    assert m["multiclass/f1_macro"] == pytest.approx(0.515654, abs=6e-7)
    assert 0.50 not in (
        round(m["multiclass/f1_of_macro_means"], 2),
        round(m["multiclass/f1_macro"], 2),
    )


def test_threshold_limits() -> None:
    """With "positive if the score reaches the threshold" a low threshold makes everything positive."""
    roc = evaluate([0, 0, 1, 1], y_prob=[0.1, 0.6, 0.4, 0.9]).roc
    assert roc is not None
    assert (roc.fp[0], roc.tn[0], roc.tp[0]) == (0, 2, 0)
    assert (roc.fp[-1], roc.tn[-1], roc.tp[-1]) == (2, 0, 2)
    assert (np.diff(roc.thresholds) < 0).all()


# --- kappa of the article on multiclass metrics ------------------------------------------------------------


def test_kappa_of_74_dishes() -> None:
    table = [[7, 6, 2], [2, 32, 5], [1, 3, 16]]
    kappa = evaluate_counts(table).metrics["multiclass/cohen_kappa"]
    assert kappa == pytest.approx(0.569636, abs=6e-7)
    assert round(kappa, 2) != 0.56
    assert round((0.74 - 0.40) / (1 - 0.40), 2) == 0.57  # even from the article's own rounded parts
    assert evaluate_counts(table).metrics["class/0/recall"] == 7 / 15  # over *actual* dishes


def test_kappa_can_be_negative() -> None:
    m = evaluate_counts([[0, 5], [5, 0]]).metrics
    assert m["multiclass/cohen_kappa"] == -1


# --- Gubbels (2023) ----------------------------------------------------------------------------------------


def test_fisher_averages_have_a_mean_inside() -> None:
    """Table 1.7's one-vs-rest entries give Table 1.6's .7871 with the factor 1/m, .9966 without."""
    entries = np.array([0.9237, 0.9145, 0.0231])
    assert round(fisher_mean(entries), 4) == 0.7871
    assert round(math.tanh(np.arctanh(entries).sum()), 4) == 0.9966


def binary_moments(positives: Any, negatives: Any) -> ScoreMoments:
    y = np.repeat([1, 0], [len(positives), len(negatives)])
    return ScoreMoments.from_scores(y, np.concatenate((positives, negatives))[:, None], 2)


def spcc(moments: ScoreMoments) -> float:
    return lookup("spcc/binary").number(
        ScoreSamples(Counted.unweighted(Sides.of_score(moments))).argument()
    )


def test_matthews_correlation_has_a_square_root() -> None:
    m = evaluate_counts([[49, 9], [12, 30]]).metrics
    assert m["binary/matthews_corrcoef"] == pytest.approx(0.565772, abs=6e-7)
    scores = binary_moments([1] * 30 + [0] * 12, [1] * 9 + [0] * 49)
    assert spcc(scores) == pytest.approx(m["binary/matthews_corrcoef"], abs=1e-12)


def test_correlation_is_no_rank_metric() -> None:
    """The area stands every increasing transformation, the correlation only the affine ones."""
    y = random_labels(2000, seed=5)
    s = random_scores(y, 0.8, 6, slope=1.2, shift=0.5)
    base, bent, shrunk = (evaluate(y, y_prob=v).metrics for v in (s, s**10, 0.1 + s / 2))
    assert bent["binary/roc_auc"] == base["binary/roc_auc"]
    assert abs(bent["spcc/binary"] - base["spcc/binary"]) > 0.02
    assert shrunk["spcc/binary"] == pytest.approx(base["spcc/binary"], abs=1e-12)


def test_perfect_separation_is_not_correlation_one() -> None:
    """X against -X, X standard log-normal: area 1, correlation exp(-1/2); indices far from the normal relation."""
    x = lognorm.ppf((np.arange(400_000) + 0.5) / 400_000, 1)
    assert spcc(binary_moments(x, -x)) == pytest.approx(math.exp(-0.5), abs=1e-3)


def test_d_a_needs_normal_scores_not_equal_variances() -> None:
    z = norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    moments = binary_moments(1.3 + 2 * z, 0.5 * z)
    value = d_a(ScoreSamples(Counted.unweighted(Sides.of_score(moments))).argument())
    auc = norm.cdf(1.3 / math.hypot(2, 0.5))
    assert value == pytest.approx(math.sqrt(2) * norm.ppf(auc), abs=1e-3)
    assert value == pytest.approx(0.891793, abs=1e-3)


def test_average_index_takes_the_root() -> None:
    y, s = [1, 0, 0, 1, 0, 1, 0, 0, 0, 1], [0.9, 0.2, 0.4, 0.6, 0.1, 0.3, 0.35, 0.05, 0.5, 0.8]
    m = evaluate(y, y_prob=s).metrics
    r, v = m["spcc/binary"], np.var(s, ddof=1)
    v1, v0 = (np.var([x for x, c in zip(s, y, strict=True) if c == k], ddof=1) for k in (1, 0))
    a = 4 * 6 / (10 * 9)
    assert m["spcc/d_e"] ** 2 == pytest.approx(
        4 * v * r**2 / (a * (math.sqrt(v1) + math.sqrt(v0)) ** 2)
    )
    assert m["spcc/d_e"] ** 2 == pytest.approx(3.001475, abs=6e-7)
    assert m["spcc/d_a"] ** 2 == pytest.approx(2 * v * r**2 / (a * (v1 + v0)))


def test_bias_is_covariance_free_and_bounded() -> None:
    """Bias lies in [-pi, 1 - pi]: the 2.8372 of Table 1.2 is impossible."""
    y = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    assert evaluate(y, y_prob=[1.0] * 10).metrics["prevalence/bias"] == pytest.approx(0.9)
    assert evaluate(y, y_prob=[0.0] * 10).metrics["prevalence/bias"] == pytest.approx(-0.1)


def test_one_prior_on_both_sides() -> None:
    """Densities .6 and .2, trained at one half, wanted at one percent: mixed priors give a "probability" of 1.47."""
    score = 0.6 / (0.6 + 0.2)
    mixed = 0.6 * 0.5 / (0.6 * 0.01 + 0.2 * 0.99)
    assert mixed == pytest.approx(1.47, abs=0.005)
    corrected = prior_corrected(np.array([score]), 0.5, 0.01)[0]
    assert corrected == pytest.approx(0.6 * 0.01 / (0.6 * 0.01 + 0.2 * 0.99))


def test_spread_of_the_labels_is_not_the_error_of_the_count() -> None:
    """Table 2.4 gives sqrt(sum tau (1-tau)) as the error: too small by 1/sPCC even with known densities."""
    rng = np.random.default_rng(11)
    labels = np.repeat([0, 1], 4000)
    held = rng.normal(2.0 * labels)
    y = np.repeat([0, 1], [19_000, 1000])
    from cmtrack import estimate_prevalence

    e = estimate_prevalence(rng.normal(2.0 * y), calibration=(labels, held))
    assert e.sd_labels_only / e.implied_spcc < e.count_sd
    assert e.sd_labels_only < 0.75 * e.count_sd
    assert e.low < 0.05 < e.high
