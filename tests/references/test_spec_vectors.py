"""Reference values, from the published examples and from independent computation, through the public face.

TV-n numbers the reference vectors. The numbers are compared to all the digits that they are written with.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cmtrack
from cmtrack import ConfusionMatrix, Grouping, estimate_prevalence, evaluate
from cmtrack.metrics import (
    ScoreSamples,
    Sides,
    d_a,
    em_shares,
    fisher_mean,
    lookup,
    on_scale,
    prior_corrected,
    standardised_spcc,
    tango,
)
from cmtrack.statistics import Counted, ScoreMoments
from support.literal import literal_forms
from support.problems import evaluate_counts, rows_of, standard_error

TEN = 6e-11  # vectors are written with ten decimals


def close(value: Any, expected: Any, tolerance: float = TEN) -> None:
    np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance)


def check(evaluation: cmtrack.Evaluation, section: str, expected: dict[str, float]) -> None:
    got = {name: evaluation.metrics[f"{section}/{name}"] for name in expected}
    assert got == pytest.approx(expected, rel=0, abs=TEN)


# --- TV-1: all multiclass metrics, with standard errors ----------------------------------------------------

TV1 = [[7, 2, 1, 0], [1, 12, 3, 2], [0, 4, 9, 1], [2, 1, 0, 15]]


def test_tv1_multiclass() -> None:
    evaluation = evaluate_counts(TV1)
    check(evaluation, "multiclass", {
        "accuracy": 0.7166666667, "recall_macro": 0.7107142857, "balanced_accuracy": 0.7107142857,
        "precision_macro": 0.7143049933, "f1_macro": 0.7121621622, "f1_of_macro_means": 0.7125051156,
        "f1_weighted": 0.7168168168, "cohen_kappa": 0.6153846154, "cohen_kappa_linear": 0.6518105850,
        "cohen_kappa_quadratic": 0.6762589928, "matthews_corrcoef": 0.6156178434,
    })  # fmt: skip
    recall = [0.7, 0.6666666667, 0.6428571429, 0.8333333333]
    precision = [0.7, 0.6315789474, 0.6923076923, 0.8333333333]
    f1 = [0.7, 0.6486486486, 0.6666666667, 0.8333333333]
    for k in range(4):
        check(
            evaluation, f"class/{k}", {"recall": recall[k], "precision": precision[k], "f1": f1[k]}
        )
    assert [evaluation.metrics[f"class/{k}/support"] for k in range(4)] == [10, 18, 14, 18]
    assert evaluation.n_samples == 60


@pytest.mark.parametrize(
    ("name", "scale", "error"),
    [
        ("cohen_kappa", "wald", 0.0788919444),
        ("matthews_corrcoef", "atanh", 0.0788454047),
        ("f1_macro", "wald", 0.0590219479),
        ("balanced_accuracy", "wald", 0.0599276362),
        ("cohen_kappa_quadratic", "wald", 0.1025146074),
    ],
)
def test_tv1_standard_errors(name: str, scale: str, error: float) -> None:
    close(standard_error(evaluate_counts(TV1), f"multiclass/{name}", scale), error)


# --- TV-2: kappa of 74 dishes ------------------------------------------------------------------------------

TV2 = np.array([[7, 6, 2], [2, 32, 5], [1, 3, 16]])


def test_tv2_kappa() -> None:
    check(
        evaluate_counts(TV2), "multiclass", {"cohen_kappa": 0.5696357515, "accuracy": 0.7432432432}
    )
    matrix = ConfusionMatrix.from_predictions(*rows_of(TV2))
    terms = matrix.counts.sum(axis=1) * matrix.counts.sum(axis=0) / matrix.total**2
    close(terms, [0.0273922571, 0.2920014609, 0.0840029218])
    close(terms.sum(), 0.4033966399)


# --- TV-3: Markoulidakis et al. (2021), figure 7 -----------------------------------------------------------

TV3 = [[20, 59, 1], [4, 185, 23], [2, 127, 88]]
TV3_STRICT = Grouping({"negative": [0], "positive": [1, 2]}, mode="strict")


def test_tv3_strict() -> None:
    evaluation = evaluate_counts(TV3, grouping=TV3_STRICT)
    assert evaluation.binary is not None
    assert evaluation.binary._asdict() == {
        "tp": 273,
        "fn": 6,
        "imp": 150,
        "fp": 60,
        "tn": 20,
        "imn": 0,
    }
    assert evaluation.n_samples == 509
    check(evaluation, "binary", {
        "tp": 273, "fn": 6, "imp": 150, "fp": 60, "tn": 20, "imn": 0,
        "accuracy": 0.5756385069, "recall": 0.6363636364, "precision": 0.5652173913, "specificity": 0.25,
        "npv": 0.7692307692, "fnr": 0.0139860140, "fpr": 0.75, "fdr": 0.1242236025, "for": 0.2307692308,
        "pimr": 0.3496503497, "ppimr": 0.3105590062, "nimr": 0, "npimr": 0, "f1": 0.5986842105,
        "fowlkes_mallows": 0.5997364375, "balanced_accuracy": 0.4431818182, "matthews_corrcoef": 0.3901675441,
        "informedness": -0.1136363636, "markedness": 0.3344481605, "threat_score": 0.4272300469,
        "prevalence_threshold": 0.5205263386,
    })  # fmt: skip
    close(literal_forms(evaluation.binary)["threat_literal"], 0.8053097345)
    close(standard_error(evaluation, "binary/matthews_corrcoef", "atanh"), 0.0589602345)
    close(standard_error(evaluation, "binary/f1", "wald"), 0.0223259438)


def test_tv3_relaxed() -> None:
    evaluation = evaluate_counts(TV3, grouping=Grouping({"negative": [0], "positive": [1, 2]}))
    check(evaluation, "binary", {
        "tp": 423, "imp": 0, "accuracy": 0.8703339882, "recall": 0.9860139860, "precision": 0.8757763975,
        "f1": 0.9276315789, "matthews_corrcoef": 0.3901675441,
    })  # fmt: skip


def test_tv3_three_classes() -> None:
    evaluation = evaluate_counts(TV3)
    recall, precision = (
        [0.25, 0.8726415094, 0.4055299539],
        [0.7692307692, 0.4986522911, 0.7857142857],
    )
    for k in range(3):
        check(evaluation, f"class/{k}", {"recall": recall[k], "precision": precision[k]})
    check(
        evaluation,
        "multiclass",
        {
            "recall_macro": 0.5093904878,
            "precision_macro": 0.6845324487,
            "f1_macro": 0.5156537561,
            "f1_of_macro_means": 0.5841152846,
        },
    )


# --- TV-4: mismatches in both groups -----------------------------------------------------------------------

TV4 = [[5, 2, 1, 0], [1, 6, 0, 2], [1, 0, 7, 3], [0, 2, 1, 9]]


def test_tv4_strict() -> None:
    grouping = Grouping(
        {"positive": [0, 1], "negative": [2, 3]}, mode="strict", positive="positive"
    )
    evaluation = evaluate_counts(TV4, grouping=grouping)
    assert evaluation.binary is not None
    check(evaluation, "binary", {
        "tp": 11, "fn": 3, "imp": 3, "fp": 3, "tn": 16, "imn": 4, "accuracy": 0.675,
        "recall": 0.6470588235, "precision": 0.6470588235, "f1": 0.6470588235, "fowlkes_mallows": 0.6470588235,
        "specificity": 0.6956521739, "npv": 0.6956521739, "fpr": 0.1304347826, "for": 0.1304347826,
        "nimr": 0.1739130435, "matthews_corrcoef": 0.6930946292, "informedness": 0.5166240409,
        "threat_score": 0.4782608696, "prevalence_threshold": 0.3098582817,
    })  # fmt: skip
    literal = literal_forms(evaluation.binary)
    close(literal["informedness_consistent"], 0.3427109974)
    close(literal["threat_literal"], 0.6470588235)
    close(literal["prevalence_threshold_literal"], 0.4068185688)
    m = evaluation.metrics
    close(literal["markedness_consistent"], m["binary/markedness"] - m["binary/npimr"])


def test_tv4_hybrid() -> None:
    mode = {"positive": [(0, 0), (1, 1), (0, 1)], "negative": "strict"}
    grouping = Grouping({"positive": [0, 1], "negative": [2, 3]}, mode=mode, positive="positive")
    check(evaluate_counts(TV4, grouping=grouping), "binary", {
        "tp": 13, "imp": 1, "accuracy": 0.725, "recall": 0.7647058824, "f1": 0.7647058824, "pimr": 0.0588235294,
        "threat_score": 0.6190476190,
    })  # fmt: skip


# --- TV-5: three groups of three kinds, and a second step --------------------------------------------------

TV5 = [
    [11, 9, 7, 5, 5, 10], [1, 18, 2, 1, 6, 11], [8, 9, 18, 9, 6, 1],
    [10, 5, 6, 14, 2, 11], [9, 7, 4, 9, 16, 5], [5, 2, 1, 6, 10, 10],
]  # fmt: skip
TV5_FIRST = Grouping(
    {"G1": [0, 1], "G2": [2, 3], "G3": [4, 5]},
    mode={"G1": "strict", "G2": "relaxed", "G3": [(4, 4), (5, 5), (5, 4)]},
    name="first",
)


def test_tv5_three_groups() -> None:
    evaluation = evaluate_counts(TV5, grouping=TV5_FIRST)
    reduced = evaluation.reduced[0]
    assert reduced.counts.tolist() == [[29, 15, 32], [32, 47, 20], [23, 20, 36]]
    assert reduced.mismatches.tolist() == [10, 0, 5]
    assert reduced.actual.tolist() == [86, 99, 84]
    assert reduced.predicted.tolist() == [94, 82, 93]
    assert reduced == ConfusionMatrix.from_predictions(*rows_of(TV5)).reduce(TV5_FIRST)
    check(
        evaluation,
        "reduced/first",
        {"accuracy": 0.4163568773, "f1_macro": 0.4161129666, "mismatch_rate": 15 / 269},
    )
    recall, precision = (
        [0.3372093023, 0.4747474747, 0.4285714286],
        [0.3085106383, 0.5731707317, 0.3870967742],
    )
    for k, group in enumerate(("G1", "G2", "G3")):
        check(
            evaluation, f"reduced/first/{group}", {"recall": recall[k], "precision": precision[k]}
        )
        assert evaluation.metrics[f"reduced/first/{group}/mismatches"] == [10, 0, 5][k]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("strict", {"tp": 76, "imp": 57, "fn": 52, "fp": 43, "tn": 36, "imn": 5}),
        ("relaxed", {"tp": 123, "imp": 10, "fn": 52, "fp": 43, "tn": 36, "imn": 5}),
    ],
)
def test_tv5_second_step(mode: str, expected: dict[str, int]) -> None:
    second = Grouping({"H": ["G1", "G2"], "rest": ["G3"]}, mode=mode, positive="H", name="second")
    evaluation = evaluate_counts(TV5, grouping=TV5_FIRST.then(second))
    assert evaluation.binary is not None
    assert evaluation.binary._asdict() == expected
    by_steps = ConfusionMatrix.from_predictions(*rows_of(TV5)).reduce(TV5_FIRST).reduce(second)
    assert by_steps.as_binary()._asdict() == expected


# --- TV-6: the sweep of the threshold ----------------------------------------------------------------------

TV6_Y = [0, 1, 1, 2, 0, 2, 2, 1]
TV6_P = [
    [0.50, 0.30, 0.20], [0.10, 0.60, 0.30], [0.20, 0.30, 0.50], [0.40, 0.35, 0.25],
    [0.70, 0.10, 0.20], [0.30, 0.25, 0.45], [0.05, 0.15, 0.80], [0.60, 0.30, 0.10],
]  # fmt: skip
TV6_MODES: dict[str, Any] = {
    "strict": "strict",
    "relaxed": "relaxed",
    "hybrid": {"positive": [(1, 1), (2, 2), (2, 1)], "negative": [(0, 0)]},
}


@pytest.mark.parametrize(
    ("mode", "tp", "auc", "ceiling", "normalized", "variance"),
    [
        ("strict", [0, 1, 2, 2, 3, 3, 3, 4, 4], 0.5833333333, 0.6666666667, 0.875, 0.0472222222),
        ("relaxed", [0, 1, 2, 3, 4, 5, 5, 6, 6], 0.9166666667, 1, 0.9166666667, 0.0138888889),
        ("hybrid", [0, 1, 2, 2, 3, 4, 4, 5, 5], 0.75, 0.8333333333, 0.9, 0.0361111111),
    ],
)
def test_tv6_roc(
    mode: str, tp: list[int], auc: float, ceiling: float, normalized: float, variance: float
) -> None:
    grouping = Grouping({"negative": [0], "positive": [1, 2]}, mode=TV6_MODES[mode])
    evaluation = evaluate(TV6_Y, y_prob=TV6_P, grouping=grouping)
    roc = evaluation.roc
    assert roc is not None
    assert roc.thresholds.tolist() == [math.inf, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    assert roc.fpr.tolist() == [0, 0, 0, 0, 0, 0, 0.5, 0.5, 1]
    assert roc.tp.tolist() == tp
    check(
        evaluation,
        "binary",
        {"roc_auc": auc, "roc_auc_ceiling": ceiling, "roc_auc_normalized": normalized},
    )
    close(roc.auc_standard_error**2, variance)
    close(evaluation.standard_errors["binary/roc_auc"] ** 2, variance)
    assert roc.auc_interval == evaluation.intervals["binary/roc_auc"]
    if mode == "strict":
        assert roc.imp.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
        assert roc.fn.tolist() == [6, 5, 4, 3, 2, 1, 1, 0, 0]
        assert roc.tn.tolist() == [2, 2, 2, 2, 2, 2, 1, 1, 0]


# --- TV-7: Gubbels (2023), binary sPCC, bias and separation ------------------------------------------------

TV7_Y = [1, 0, 0, 1, 0, 1, 0, 0, 0, 1]
TV7_S = [0.9, 0.2, 0.4, 0.6, 0.1, 0.3, 0.35, 0.05, 0.5, 0.8]


def moments_of(y: list[int], s: list[float]) -> ScoreMoments:
    return ScoreMoments.from_scores(np.array(y), np.array(s)[:, None], 2)


def test_tv7_spcc() -> None:
    evaluation = evaluate(TV7_Y, y_prob=TV7_S)
    check(evaluation, "spcc", {"binary": 0.6993821988, "d_a": 1.7002089232, "d_e": 1.7324765381})
    check(evaluation, "binary", {"roc_auc": 0.875})
    check(
        evaluation,
        "prevalence",
        {"bias": 0.02, "expected_count": 4.2, "expected_count_sd_labels_only": 1.3095800854},
    )
    close(evaluation.standard_errors["spcc/binary"], 0.1523937522)
    plain = on_scale(
        "atanh", evaluation.metrics["spcc/binary"], evaluation.standard_errors["spcc/binary"]
    )
    close(plain, [0.2742206160, 0.8958427352])
    # of 10 rows, and of one more, half of it flipped
    low, high = evaluation.intervals["spcc/binary"]
    assert 0.1 < low < 0.2742206160
    close(high, 0.8958427352)
    moments = evaluation.statistics.score_moments
    assert moments is not None
    close(moments.mean[:, 0], [0.2666666667, 0.65])
    close(moments.m2[:, 0], [0.1583333333, 0.21])
    standardised = [standardised_spcc(moments, prevalence) for prevalence in (0.0023, 0.01, 0.5)]
    close(standardised, [0.1121980808, 0.2275120060, 0.6944236804])


def test_tv7_merged_moments() -> None:
    first, second = moments_of([1, 1], [0.9, 0.6]), moments_of([1, 1], [0.3, 0.8])
    for part, (mean, m2) in (
        (first, (0.75, 0.045)),
        (second, (0.55, 0.125)),
        (first + second, (0.65, 0.21)),
    ):
        close((part.mean[1, 0], part.m2[1, 0]), (mean, m2), 1e-15)
    assert (first + second).n.tolist() == [0, 4]


def test_unequal_normals_separation() -> None:
    """N(1.3, 2^2) against N(0, 0.5^2), by quantiles of a fine grid."""
    from scipy.special import ndtri

    z = ndtri((np.arange(200_000) + 0.5) / 200_000)
    moments = ScoreMoments.from_scores(
        np.repeat([0, 1], len(z)), np.concatenate((z * 0.5, z * 2 + 1.3))[:, None], 2
    )
    score = ScoreSamples(Counted.unweighted(Sides.of_score(moments))).argument()
    close((d_a(score), lookup("spcc/d_e").number(score)), (0.8917926, 1.04), 1e-3)


# --- TV-8: one-vs-rest and one-vs-one ----------------------------------------------------------------------

TV8_Y = [0, 0, 0, 0, 1, 1, 1, 2, 2]
TV8_P = [
    [0.7, 0.2, 0.1], [0.5, 0.4, 0.1], [0.6, 0.1, 0.3], [0.4, 0.35, 0.25], [0.3, 0.6, 0.1],
    [0.2, 0.5, 0.3], [0.45, 0.4, 0.15], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3],
]  # fmt: skip


def test_tv8_multiclass_spcc() -> None:
    evaluation = evaluate(TV8_Y, y_prob=TV8_P)
    check(evaluation, "spcc", {
        "ovr/0": 0.7721384064, "ovr/1": 0.6965977657, "ovr/2": 0.7240995676, "ovr_fisher": 0.7325263593,
        "ovo_fisher": 0.7566477918, "ovr_min": 0.6965977657, "ovo_min": 0.7205766921,
    })  # fmt: skip
    close(evaluation.spcc_matrix, [
        [0, 0.7302967433, 0.8366600265], [0.7463904913, 0, 0.7205766921], [0.7378647874, 0.7492686493, 0]
    ])  # fmt: skip
    close(fisher_mean(np.array([0.9237, 0.9145, 0.0231])), 0.7870782, 6e-8)


# --- TV-9: calibrated prevalence with four bins ------------------------------------------------------------

A, C, W = [2, 8, 30, 60], [140, 40, 16, 4], [1300, 420, 190, 90]
BINS = np.array([0.1, 0.3, 0.6, 0.9])  # any four increasing scores


def repeated(counts: Any) -> Any:
    return np.repeat(BINS[: len(counts)], counts)


def labelled(positives: list[int], negatives: list[int]) -> tuple[Any, Any]:
    y = np.repeat([1, 0], [sum(positives), sum(negatives)])
    return y, np.concatenate((repeated(positives), repeated(negatives)))


def estimate(interval: str = "adjusted", target: Any = W) -> cmtrack.PrevalenceEstimate:
    return estimate_prevalence(
        repeated(target), calibration=labelled(A, C), density="bins", interval=interval
    )


def test_tv9_estimate() -> None:
    e = estimate()
    assert e.densities.positives.tolist() == A
    assert e.densities.negatives.tolist() == C
    assert e.mixture.w.tolist() == W
    close(e.densities.p, [0.0245098039, 0.0833333333, 0.2990196078, 0.5931372549])
    close(e.densities.q, [0.6955445545, 0.2004950495, 0.0816831683, 0.0222772277])
    close(e.value, 0.0424163214)
    v = e.variance
    close(v.information, 8.2743967800)
    close(v.positives * e.n_positives * v.information**2, 0.0511171883)
    close(v.negatives * e.n_negatives * v.information**2, 4.1064879726)
    close((v.target, v.positives, v.negatives), (6.04274e-05, 7.4661e-06, 2.998941e-04), 6e-11)
    close(v.total, 3.677875e-04, 6e-11)
    close(math.sqrt(v.total), 0.0191777877)
    close(e.inflation, 6.0864400887)
    close(e.shares, np.array((6.04274e-05, 7.4661e-06, 2.998941e-04)) / 3.677875e-04, 3e-7)
    close(e.implied_spcc, 0.5797263484)
    close(e.sd_labels_only, 7.3916996083)
    close(e.sd_labels_only / e.implied_spcc, 12.7503, 1e-4)
    known = math.sqrt(v.target - e.value * (1 - e.value) / e.n_target)
    close(e.n_target * known, 12.6678770359, 2e-9)
    close(e.count_sd, 37.2815746659, 6e-10)
    close(e.count, 84.8326427593, 6e-10)
    close((e.fit_statistic, e.fit_pvalue), (0.3443584089, 0.8418283003))
    assert e.fit_df == 2
    mix = 0.0424163214 * e.densities.p + (1 - 0.0424163214) * e.densities.q
    gaps = (np.array(W) / 2000 - mix) ** 2 / (
        mix / 2000
        + 0.0424163214**2 * e.densities.p / 100
        + (1 - 0.0424163214) ** 2 * e.densities.q / 200
    )
    assert [b for b, _ in e.fit_contributions] == np.argsort(gaps)[:0:-1].tolist()
    close([part for _, part in e.fit_contributions], np.sort(gaps)[:0:-1], 1e-8)
    likelihood = [e.mixture.log_likelihood(p) for p in (e.value, 0.0, 0.1)]
    close(likelihood, [-1943.54269135, -1965.21339219, -1963.22452503], 6e-9)


def test_tv9_posteriors() -> None:
    e = estimate()
    tau = e.posterior(BINS, method="bins")
    close(tau, [0.0015584533, 0.0180779172, 0.1395276496, 0.5411519426])
    close(np.array(W) @ tau, 84.8326427593, 6e-10)
    close(np.array(W) @ e.posterior(BINS), e.count, 1e-6)


@pytest.mark.parametrize(
    ("interval", "low", "high"),
    [
        ("naive", 0.0278122471, 0.0586718456),
        ("adjusted", 0.0094233561, 0.0854010565),
    ],
)
def test_tv9_intervals(interval: str, low: float, high: float) -> None:
    e = estimate(interval)
    close((e.low, e.high), (low, high))
    if interval == "adjusted":
        close((e.count_low / 2000, e.count_high / 2000), (0.0102082430, 0.0840681682))
    realised = (e.variance.total - e.value * (1 - e.value) / 2000) / e.variance.target
    close(realised, 5.7503574496)


def test_tv9_boundary() -> None:
    e = estimate(target=[1800, 160, 30, 10])
    assert np.isnan([e.value, e.low, e.high]).all()  # the test of the fit refuses it
    assert e.fit_pvalue < 0.01
    assert (e.shift.value, e.shift.low) == (0, 0)
    close(e.shift.high, 0.013684463, 6e-10)
    close(e.inflation, 11.0, 0.05)


def test_tv9_is_what_the_default_gives() -> None:
    found = estimate_prevalence(repeated(W), calibration=labelled(A, C))
    assert (found.value, found.low, found.high) == pytest.approx(
        (0.0424163214, 0.0094233561, 0.0854010565), abs=TEN
    )


def test_tv9_through_evaluate() -> None:
    y, scores = labelled(A, C)
    evaluation = evaluate(y, y_prob=scores, calibration=(y, scores), target=repeated(W))
    check(
        evaluation,
        "prevalence",
        {
            "calibrated": 0.0424163214,
            "calibrated_low": 0.0094233561,
            "calibrated_high": 0.0854010565,
            "calibrated_count": 84.8326427593,
            "fit_pvalue": 0.8418283003,
        },
    )
    close(evaluation.intervals["prevalence/calibrated"], (0.0094233561, 0.0854010565))
    shares = [
        evaluation.metrics[f"prevalence/share_{name}"]
        for name in ("target", "positives", "negatives")
    ]
    close(shares, np.array((6.04274e-05, 7.4661e-06, 2.998941e-04)) / 3.677875e-04, 3e-7)


# --- TV-D4, TV-C2: three classes over four bins, one pseudo-count for each class ----------------------------


def test_tvd4_shares_by_bins() -> None:
    """A bin is a predicted class, and of the third class one of two probabilities."""
    counts = np.array([[40, 12, 6, 2], [5, 30, 20, 5], [2, 8, 12, 38]])
    of_bins = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6], [0.05, 0.05, 0.9]])
    labelled = np.repeat(np.tile(of_bins, (3, 1)), counts.ravel(), axis=0)
    y = np.repeat([0, 1, 2], counts.sum(axis=1))
    target = np.repeat(of_bins, [300, 250, 250, 200], axis=0)
    found = estimate_prevalence(target, calibration=(y, labelled), density="bins").class_shares
    close(found.values, [0.38980572, 0.35006029, 0.26013399], 1e-8)
    error = math.sqrt(found.covariance[2, 2])
    close(error, 0.0470995628, 1e-8)
    share = found.values[2]
    close(math.sqrt(error**2 - share * (1 - share) / 1000), 0.0450100491, 1e-8)
    reach = (found.realised[1, 2] - found.realised[0, 2]) / 2 / 1.959963984540054
    close(reach, 0.0450100491, 1e-8)


# --- TV-10 to TV-13: other estimators ----------------------------------------------------------------------


def test_tv10_two_bins_are_adjusted_count() -> None:
    densities = np.array([[0.9, 0.2], [0.1, 0.8]])
    value = em_shares(densities, np.array([0.75, 0.25]), tolerance=1e-14)[1]
    close(value, 0.2142857143, 1e-9)
    close(value, (0.25 - 0.1) / (0.8 - 0.1), 1e-9)


def test_two_bins_from_counts_near_adjusted_count() -> None:
    y = np.repeat([0, 0, 1, 1], [18_000, 2_000, 2_000, 8_000])
    scores = np.repeat([0.0, 1.0, 0.0, 1.0], [18_000, 2_000, 2_000, 8_000])
    target = np.repeat([0.0, 1.0], [7_500, 2_500])
    found = estimate_prevalence(target, calibration=(y, scores), density="bins")
    assert found.value == pytest.approx(0.2142857143, abs=1e-4)


def test_tv11_raw_posteriors() -> None:
    """Posteriors at equal shares are the densities of both classes, up to a factor."""
    target = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.8, 0.9, 0.15, 0.4, 0.25])
    shares = em_shares(np.column_stack((1 - target, target)), np.ones(10), tolerance=1e-13)
    close(shares[1], 0.1751429581)


TV12 = np.array([[0.70, 0.10, 0.05], [0.20, 0.30, 0.15], [0.08, 0.50, 0.20], [0.02, 0.10, 0.60]])


def test_tv12_three_classes() -> None:
    w = np.array([0.40, 0.25, 0.20, 0.15])
    shares = em_shares(TV12, w, tolerance=1e-13)
    close(shares, (0.5381988153, 0.2734833933, 0.1883177914), 1e-9)
    mix = TV12 @ shares
    close(TV12.T @ (w / mix), [1, 1, 1], 1e-9)
    close(w @ np.log(mix), -1.3227443956)


def test_tv12_default_tolerance_is_within_its_promise() -> None:
    w = np.array([0.40, 0.25, 0.20, 0.15])
    gap = -1.3227443956 - w @ np.log(TV12 @ em_shares(TV12, w))
    assert gap <= 1.1e-9


def test_tv13_prior_correction() -> None:
    close(
        prior_corrected(np.array([0.2, 0.5, 0.9]), 0.3, 0.05),
        [0.0297872340, 0.1093750000, 0.5250000000],
    )


# --- TV-17: Wilson -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("recall", 0.5898193324, 0.6804874916),
        ("precision", 0.5206647663, 0.6087408109),
        ("specificity", 0.1680623186, 0.3548467462),
        ("for", 0.1103384941, 0.4205155408),
    ],
)
def test_tv17_wilson(name: str, low: float, high: float) -> None:
    """Recall 273/429, precision 273/483, specificity 20/80, false omission 6/26 of TV-3."""
    close(evaluate_counts(TV3, grouping=TV3_STRICT).intervals[f"binary/{name}"], (low, high))


# --- TV-M3: score intervals of differences of shares of the same rows (Tango 1998) -----------------------------


@pytest.mark.parametrize(
    ("counts", "quantile", "expected"),
    [
        ((12, 5, 200), 1.959963984540054, (-0.0060025169, 0.0806556569)),
        ((2, 0, 899), 1.959963984540054, (-0.0020396259, 0.0080750074)),
        ((2, 0, 899), 3.5, (-0.0112482853, 0.0175545006)),
        ((0, 0, 100), 1.959963984540054, (-0.0369934982, 0.0369934982)),
        ((7, 15, 200), 1.959963984540054, (-0.0902622571, 0.0064485339)),
    ],
)
def test_the_score_interval_of_a_difference_of_shares(
    counts: tuple[int, int, int], quantile: float, expected: tuple[float, float]
) -> None:
    b, c, n = counts
    close(
        [-tango(c, b, n, quantile), tango(b, c, n, quantile)], expected, 1e-10
    )  # the upper end of the third is written 0.7e-10 off
