"""Agreement with well-kept libraries, and with brute force where none has the metric."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import mannwhitneyu, pearsonr
from sklearn import metrics as sk

from cmtrack import ConfusionMatrix, Evaluation, Grouping, evaluate
from cmtrack.metrics import wilson
from support.problems import Array, random_guesses, random_labels, random_problem, random_scores


@pytest.fixture(autouse=True)
def _quiet_sklearn() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def weights_of(kind: str, n: int, seed: int) -> Any:
    rng = np.random.default_rng(seed + 1000)
    if kind == "none":
        return None
    return rng.integers(0, 4, n) if kind == "int" else rng.gamma(2.0, 0.7, n)


def problem(seed: int) -> tuple[Array, Array, list[int]]:
    """2 to 7 classes, some of them absent from the truth, the predictions, or both."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 8))
    n = int(rng.integers(8, 120))
    used = rng.permutation(k)[: max(2, k - seed % 3)]
    y_true = rng.choice(used, n)
    y_pred = random_guesses(y_true, k, 0.6, rng)
    if seed % 4 == 0:
        y_pred = np.where(y_pred == used[0], used[1], y_pred)
    return y_true, y_pred, list(range(k))


@pytest.mark.thin(2)
@pytest.mark.parametrize("kind", ["none", "int", "fraction"])
@pytest.mark.parametrize("seed", range(12))
def test_multiclass_agrees_with_sklearn(seed: int, kind: str) -> None:
    y_true, y_pred, labels = problem(seed)
    w = weights_of(kind, len(y_true), seed)
    evaluation = evaluate(y_true, y_pred, labels=labels, sample_weight=w)
    ours = evaluation.metrics
    both: dict[str, Any] = {"sample_weight": w}
    expected = {
        "accuracy": sk.accuracy_score(y_true, y_pred, **both),
        "balanced_accuracy": sk.balanced_accuracy_score(y_true, y_pred, **both),
        "matthews_corrcoef": sk.matthews_corrcoef(y_true, y_pred, **both),
        "cohen_kappa": sk.cohen_kappa_score(y_true, y_pred, labels=labels, **both),
        "cohen_kappa_linear": sk.cohen_kappa_score(
            y_true, y_pred, labels=labels, weights="linear", **both
        ),
        "cohen_kappa_quadratic": sk.cohen_kappa_score(
            y_true, y_pred, labels=labels, weights="quadratic", **both
        ),
    }
    for average in ("macro", "weighted"):
        three = sk.precision_recall_fscore_support(
            y_true, y_pred, labels=labels, average=average, zero_division=np.nan, **both
        )
        names = (f"precision_{average}", f"recall_{average}", f"f1_{average}")
        expected |= dict(zip(names, three[:3], strict=True))
    for name, value in expected.items():
        assert ours[f"multiclass/{name}"] == pytest.approx(value, abs=1e-12, nan_ok=True), name
    each = sk.precision_recall_fscore_support(
        y_true, y_pred, labels=labels, zero_division=np.nan, **both
    )
    for k in labels:
        for name, values in zip(("precision", "recall", "f1", "support"), each, strict=True):
            assert ours[f"class/{k}/{name}"] == pytest.approx(values[k], abs=1e-12, nan_ok=True), (
                k,
                name,
            )
    np.testing.assert_allclose(
        evaluation.confusion_matrix.counts,
        sk.confusion_matrix(y_true, y_pred, labels=labels, **both),
        atol=1e-12,
    )


@pytest.mark.parametrize("order", [[3, 1, 0, 2], [2, 0, 1, 3, 9]])
def test_confusion_matrix_in_a_given_order(order: list[int]) -> None:
    y_true, y_pred, _ = random_problem(3)
    matrix = ConfusionMatrix.from_predictions(y_true, y_pred, labels=order)
    assert matrix.labels == tuple(order)
    assert matrix.counts.dtype == np.int64
    np.testing.assert_array_equal(matrix.counts, sk.confusion_matrix(y_true, y_pred, labels=order))
    linear = evaluate(y_true, y_pred, labels=order).metrics["multiclass/cohen_kappa_linear"]
    assert linear == pytest.approx(
        sk.cohen_kappa_score(y_true, y_pred, labels=order, weights="linear"), abs=1e-12
    )


@pytest.mark.parametrize("kind", ["none", "int", "fraction"])
@pytest.mark.parametrize("seed", range(6))
def test_binary_and_roc_agree_with_sklearn(seed: int, kind: str) -> None:
    y, _, p = random_problem(seed, n=80, k=2, skill=0.8, digits=2 if seed % 2 else None)
    w = weights_of(kind, len(y), seed)
    scores = p[:, 1]
    evaluation = evaluate(y, y_prob=scores, sample_weight=w)
    ours = evaluation.metrics
    predicted = (scores > 0.5).astype(int)
    both: dict[str, Any] = {"sample_weight": w}
    expected = {
        "accuracy": sk.accuracy_score(y, predicted, **both),
        "recall": sk.recall_score(y, predicted, **both),
        "specificity": sk.recall_score(y, predicted, pos_label=0, **both),
        "precision": sk.precision_score(y, predicted, **both),
        "npv": sk.precision_score(y, predicted, pos_label=0, **both),
        "f1": sk.f1_score(y, predicted, **both),
        "balanced_accuracy": sk.balanced_accuracy_score(y, predicted, **both),
        "matthews_corrcoef": sk.matthews_corrcoef(y, predicted, **both),
        "threat_score": sk.jaccard_score(y, predicted, **both),
        "roc_auc": sk.roc_auc_score(y, scores, **both),
    }
    for name, value in expected.items():
        assert ours[f"binary/{name}"] == pytest.approx(value, abs=1e-12), name
    fm = np.sqrt(expected["precision"] * expected["recall"])
    assert ours["binary/fowlkes_mallows"] == pytest.approx(fm, abs=1e-12)
    assert (ours["binary/imp"], ours["binary/imn"], ours["binary/roc_auc_ceiling"]) == (0, 0, 1)
    assert ours["binary/roc_auc_normalized"] == ours["binary/roc_auc"]
    roc = evaluation.roc
    assert roc is not None
    fpr, tpr, thresholds = sk.roc_curve(y, scores, drop_intermediate=False, **both)
    kept = np.ones(len(roc.thresholds), dtype=bool)
    if kind == "int":  # scikit-learn leaves out rows of weight zero; they add no step
        kept = np.isin(roc.thresholds, thresholds)
    np.testing.assert_allclose(roc.thresholds[kept], thresholds, atol=1e-15)
    np.testing.assert_allclose(roc.fpr[kept], fpr, atol=1e-12)
    np.testing.assert_allclose(roc.tpr[kept], tpr, atol=1e-12)
    assert ours["prevalence/classify_and_count"] == pytest.approx(
        np.average(predicted, weights=w), abs=1e-12
    )
    assert ours["prevalence/expected"] == pytest.approx(np.average(scores, weights=w), abs=1e-12)
    assert ours["prevalence/actual"] == pytest.approx(np.average(y, weights=w), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_auc_is_the_rank_sum(seed: int) -> None:
    y, _, p = random_problem(seed, n=60, k=2, digits=1)
    u = mannwhitneyu(p[y == 1, 1], p[y == 0, 1]).statistic
    value = evaluate(y, y_prob=p).metrics["binary/roc_auc"]
    assert value == pytest.approx(u / ((y == 1).sum() * (y == 0).sum()), abs=1e-14)


def weighted_correlation(a: Array, b: Array, w: Any) -> float:
    if w is None:
        return float(pearsonr(a, b).statistic)
    covariance = np.cov(a, b, aweights=w)
    return float(covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1]))


@pytest.mark.parametrize("kind", ["none", "int", "fraction"])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_spcc_is_pearsons_correlation(k: int, kind: str) -> None:
    y, _, p = random_problem(k, n=90, k=k)
    w = weights_of(kind, len(y), k)
    evaluation = evaluate(y, y_prob=p, sample_weight=w)
    if k == 2:
        expected = weighted_correlation(y == 1, p[:, 1], w)
        assert evaluation.metrics["spcc/binary"] == pytest.approx(expected, abs=1e-12)
        assert evaluation.spcc_matrix is None
        return
    rest = [weighted_correlation(y == c, p[:, c], w) for c in range(k)]
    for c in range(k):
        assert evaluation.metrics[f"spcc/ovr/{c}"] == pytest.approx(rest[c], abs=1e-12)
    assert evaluation.metrics["spcc/ovr_min"] == pytest.approx(min(rest), abs=1e-12)
    assert evaluation.metrics["spcc/ovr_fisher"] == pytest.approx(
        np.tanh(np.arctanh(rest).mean()), abs=1e-12
    )
    assert evaluation.spcc_matrix is not None
    for c in range(k):
        for d in range(k):
            pair = np.isin(y, [c, d])
            own = None if w is None else w[pair]
            expected = 0 if c == d else weighted_correlation(y[pair] == c, p[pair, c], own)
            assert evaluation.spcc_matrix[c, d] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson_agrees_with_statsmodels(level: float) -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion", exc_type=ImportError)
    proportion_confint = proportion.proportion_confint
    for count, n in ((0, 7), (3, 7), (7, 7), (120, 3000), (1, 2)):
        expected = proportion_confint(count, n, 1 - level, method="wilson")
        assert wilson(count / n, n, level) == pytest.approx(expected, abs=1e-12)
    evaluation = evaluate([0, 0, 1, 1, 1], [0, 1, 1, 1, 0], confidence_level=level)
    expected = proportion_confint(3, 5, 1 - level, method="wilson")
    assert evaluation.intervals["multiclass/accuracy"] == pytest.approx(expected, abs=1e-12)


# --- brute force: mismatches in the sweep ------------------------------------------------------------------

LOW, HIGH = [0, 1], [2, 3, 4]
MODES: dict[str, Any] = {
    "strict": "strict",
    "relaxed": "relaxed",
    "hybrid": {"high": [(2, 3), (4, 3)], "low": lambda actual, predicted: predicted >= actual},
}


def accepts(mode: str, actual: int, predicted: int) -> bool:
    if mode == "relaxed" or actual == predicted:
        return True
    if mode == "strict":
        return False
    return (actual, predicted) in [(2, 3), (4, 3)] if actual in HIGH else predicted >= actual


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_sweep_against_brute_force(seed: int, mode: str, weighted: bool) -> None:
    y, _, p = random_problem(seed, n=70, k=5, skill=1.0, digits=1 if seed % 2 else None)
    w = (
        np.random.default_rng(seed).integers(0, 4, len(y))
        if weighted
        else np.ones(len(y), dtype=int)
    )
    grouping = Grouping({"low": LOW, "high": HIGH}, mode=MODES[mode])
    evaluation = evaluate(y, y_prob=p, grouping=grouping, sample_weight=w if weighted else None)
    roc = evaluation.roc
    assert roc is not None
    score = np.round(p[:, HIGH].sum(axis=1), 12)
    best_high = np.array(HIGH)[p[:, HIGH].argmax(axis=1)]
    best_low = np.array(LOW)[p[:, LOW].argmax(axis=1)]
    assert len(roc.thresholds) == 1 + len(np.unique(score))
    for t, threshold in enumerate(roc.thresholds):
        six = dict.fromkeys(("tp", "fn", "imp", "fp", "tn", "imn"), 0)
        for i in range(len(y)):
            says_high, is_high = score[i] >= threshold, y[i] in HIGH
            if says_high and is_high:
                cell = "tp" if accepts(mode, y[i], best_high[i]) else "imp"
            elif not says_high and not is_high:
                cell = "tn" if accepts(mode, y[i], best_low[i]) else "imn"
            else:
                cell = "fp" if says_high else "fn"
            six[cell] += w[i]
        assert {name: getattr(roc, name)[t] for name in six} == six
    area = total = hits = 0.0
    for i in np.flatnonzero(y >= 2):
        accepted = accepts(mode, y[i], best_high[i])
        hits += w[i] * accepted
        for j in np.flatnonzero(y < 2):
            total += w[i] * w[j]
            area += w[i] * w[j] * accepted * ((score[i] > score[j]) + 0.5 * (score[i] == score[j]))
    assert roc.auc == pytest.approx(area / total, abs=1e-12)
    assert roc.ceiling == pytest.approx(hits / w[y >= 2].sum(), abs=1e-12)
    assert roc.auc_normalized == pytest.approx(area / total / roc.ceiling, abs=1e-12)
    assert roc.auc == pytest.approx(trapezoid(roc.tpr, roc.fpr), abs=1e-12)
    assert roc.auc <= roc.ceiling + 1e-12
    assert roc.operating_point == (
        evaluation.metrics["binary/fpr"],
        evaluation.metrics["binary/recall"],
    )


def test_area_of_swapped_groups_sees_the_other_mismatches() -> None:
    y, _, p = random_problem(2, n=200, k=4)
    grouping = Grouping({"low": [0, 1], "high": [2, 3]}, mode={"low": "strict", "high": "relaxed"})
    high, low = (evaluate(y, y_prob=p, grouping=grouping, positive=g).roc for g in ("high", "low"))
    assert high is not None
    assert low is not None
    assert high.ceiling == 1
    assert low.ceiling < 1
    assert low.auc_normalized != pytest.approx(high.auc, abs=1e-3)


def grid_problem() -> tuple[Evaluation, Array, Array]:
    y = random_labels(4000, seed=9)
    s = random_scores(y, 1.2, 10, slope=1.3)
    return evaluate(y, y_prob=s), y, s


def test_area_from_the_grid_is_within_its_bound() -> None:
    from cmtrack.metrics import roc_curve
    from cmtrack.statistics import ScoreCounts

    exact, y, s = grid_problem()
    counted = ScoreCounts.from_scores(s, np.where(y == 1, 0, 2), 4).to_grid()
    assert not counted.exact
    assert counted.counts.shape == (4, 1600)
    assert counted.counts.sum() == 4000
    roc = roc_curve(counted)
    assert 0 < roc.auc_error_bound < 2e-3
    assert abs(roc.auc - exact.metrics["binary/roc_auc"]) <= roc.auc_error_bound
    assert roc.auc_standard_error == pytest.approx(exact.roc.auc_standard_error, rel=1e-2)  # type: ignore[union-attr]
    assert exact.statistics.scores is not None
    assert exact.statistics.scores.to_grid() == counted


def test_grid_has_1600_cells() -> None:
    from cmtrack.statistics import grid_edges

    edges = grid_edges()
    assert len(edges) == 1599
    assert (np.diff(edges) > 0).all()
    logits = (np.arange(1201) - 600) / 50
    assert np.isin(np.round(1 / (1 + np.exp(-logits)), 13), np.round(edges, 13)).all()
    assert np.isin(np.round(np.arange(1, 400) / 400, 13), np.round(edges, 13)).all()
