"""Every class's probability and the hit probability: kept, merged, judged; test vectors 20 and 22, scikit-learn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from cmtrack import Costs, Evaluation, Grouping, evaluate
from cmtrack.evaluation import loads
from cmtrack.metrics import ReliabilityTable

# A figure shows these errors only as widths of its lines.
from cmtrack.metrics.spcc import pair_errors
from cmtrack.statistics import Counted, Design, ScoreMoments
from support.problems import random_problem

Y8 = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
P8 = np.array([
    [.7, .2, .1], [.5, .4, .1], [.6, .1, .3], [.4, .35, .25], [.3, .6, .1], [.2, .5, .3], [.45, .4, .15], [.1, .3, .6],
    [.3, .4, .3],
])  # fmt: skip
"""Rows of test vector 8."""
GROUPING = Grouping({"low": [0, 1], "high": [2]})
AVERAGES = ("roc_auc_ovr_macro", "roc_auc_ovr_weighted", "roc_auc_ovo_macro")
FEW_ROWS = 2048
"""Rows up to which the scores of each class are kept one by one."""


def near(expected: Any) -> Any:
    return pytest.approx(expected, abs=6e-11)


def averages(evaluation: Evaluation) -> list[float]:
    return [evaluation.metrics[f"multiclass/{name}"] for name in AVERAGES]


def test_vector_22():
    evaluation = evaluate(Y8, y_prob=P8)
    metrics, errors = evaluation.metrics, evaluation.standard_errors
    names = [f"class/{k}/roc_auc" for k in range(3)]
    assert [metrics[name] for name in names] == near([0.95, 0.9444444444, 0.9285714286])
    assert [errors[name] for name in names] == near([0.0707106781, 0.0657342198, 0.0850170051])
    assert averages(evaluation) == near([0.9410052910, 0.9433862434, 0.9409722222])
    by_rows = [errors[f"multiclass/{name}"] for name in AVERAGES]
    assert by_rows == near([0.0457178434, 0.0470667656, 0.0501572886])
    assert [
        evaluation.rows.design.standard_error(evaluation.influence(f"multiclass/{name}"))
        for name in AVERAGES
    ] == near(by_rows)
    bound = replace(evaluation, rows=None).standard_errors
    assert bound["multiclass/roc_auc_ovr_macro"] == near(0.0738206343)  # from the counts
    for name, exact in zip(AVERAGES, by_rows, strict=True):
        assert bound[f"multiclass/{name}"] >= exact
    expected = {
        (0, 1): 0.9166666667,
        (0, 2): 1.0,
        (1, 0): 0.9583333333,
        (1, 2): 0.9166666667,
        (2, 0): 0.9375,
        (2, 1): 0.9166666667,
    }
    for (own, other), area in expected.items():
        rows = np.isin(Y8, (own, other))
        pair = evaluate(Y8[rows] == own, y_prob=P8[rows, own])
        assert pair.metrics["binary/roc_auc"] == near(area)
    assert metrics["multiclass/roc_auc_ovo_macro"] == near(np.mean(list(expected.values())))


def test_vector_20_of_the_hit_probabilities():
    relaxed = evaluate(Y8, y_prob=P8, grouping=GROUPING)
    scores, hit = [.7, .5, .6, .4, .6, .5, .45, .6, .4], np.array([1, 1, 1, 1, 1, 1, 0, 1, 0])  # fmt: skip
    assert hits_and_misses(relaxed.risk_coverage) == counted(scores, hit)
    scores, hit = [.9, .9, .7, .75, .9, .7, .85, .6, .7], np.array([1, 1, 1, 1, 1, 1, 1, 1, 0])  # fmt: skip
    assert hits_and_misses(relaxed.risk_coverage_of("2_groups")) == counted(scores, hit)
    strict = evaluate(Y8, y_prob=P8, grouping=Grouping({"low": [0, 1], "high": [2]}, mode="strict"))
    # nothing but the class itself is accepted
    of_step = hits_and_misses(strict.risk_coverage_of("2_groups"))
    assert of_step == hits_and_misses(strict.risk_coverage)


def counted(scores: Any, hit: Any) -> list[tuple[float, int, int]]:
    """Hit probabilities in descending order, and the hits and misses of each."""
    scores = np.array(scores)
    return [
        (s, int(hit[scores == s].sum()), int((1 - hit)[scores == s].sum()))
        for s in sorted(set(scores.tolist()), reverse=True)
    ]


def hits_and_misses(curve: Any) -> list[tuple[float, int, int]]:
    """The same of a curve of the nine rows."""
    rows = np.diff(9 * curve.coverage, prepend=0).round(9)
    misses = np.diff(9 * curve.coverage * curve.risk, prepend=0).round(9)
    confidence = curve.confidence.round(9).tolist()
    return list(zip(confidence, (rows - misses).tolist(), misses.tolist(), strict=True))


@pytest.mark.parametrize(("n", "classes"), [(300, 3), (300, 13), (FEW_ROWS + 1, 7)])
def test_areas_are_scikit_learns(n: int, classes: int) -> None:
    y, _, p = random_problem(n + classes, n, classes)
    p = np.round(p, 3)
    p /= p.sum(axis=1, keepdims=True)
    evaluation = evaluate(y, y_prob=p, labels=range(classes), normalize=True)
    exact = n <= FEW_ROWS
    close = 1e-12 if exact else 2e-3
    for k in range(classes):
        assert evaluation.metrics[f"class/{k}/roc_auc"] == pytest.approx(
            roc_auc_score(y == k, p[:, k]), abs=close
        )
        expected = average_precision_score(y == k, p[:, k])
        assert evaluation.metrics[f"class/{k}/average_precision"] == pytest.approx(
            expected, abs=close * 10
        )
    expected = [
        roc_auc_score(y, p, multi_class="ovr", average=how) for how in ("macro", "weighted")
    ]
    assert averages_of_rest(evaluation) == pytest.approx(expected, abs=close)
    if classes <= 12:
        one = roc_auc_score(y, p, multi_class="ovo", average="macro")
        assert evaluation.metrics["multiclass/roc_auc_ovo_macro"] == pytest.approx(one, abs=close)
    else:
        assert "multiclass/roc_auc_ovo_macro" not in evaluation.metrics


def averages_of_rest(evaluation: Evaluation) -> list[float]:
    return [evaluation.metrics[f"multiclass/{name}"] for name in AVERAGES[:2]]


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_parts_merge_to_the_whole(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, _, p = random_problem(seed, 60, 4)
    weights = [None, rng.integers(1, 4, 60), rng.random(60) + 0.1][seed % 3]
    costs = Costs({(0, 1): 2.0, (3, 0): 5.0})
    grouping = Grouping({"a": [0, 1], "b": [2, 3]}, mode="strict")

    def judge(rows: slice) -> Evaluation:
        return evaluate(
            y[rows],
            y_prob=p[rows],
            labels=range(4),
            grouping=grouping,
            costs=costs,
            sample_weight=None if weights is None else weights[rows],
        )

    whole, merged = (
        judge(slice(60)).statistics,
        (judge(slice(25)) + judge(slice(25, 60))).statistics,
    )
    for one, other in ((whole, merged), (whole.squares, merged.squares)):
        if one is None:
            assert other is None
            continue
        assert other is not None
        for name in ("hits", "class_scores"):
            for ours, theirs in zip(
                getattr(one, name).tables, getattr(other, name).tables, strict=True
            ):
                assert ours.values.tolist() == theirs.values.tolist()
                assert ours.counts == pytest.approx(theirs.counts, rel=1e-12)
        assert one.decisions.counts == pytest.approx(other.decisions.counts, rel=1e-12)
        assert one.decisions.mean == pytest.approx(other.decisions.mean, rel=1e-9, abs=1e-12)
        assert one.decisions.m2 == pytest.approx(other.decisions.m2, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", ["none", "whole", "fractions"])
def test_influences_by_row_give_the_errors_of_the_counts(kind: str) -> None:
    rng = np.random.default_rng(4)
    y, _, p = random_problem(3, 500, 4)
    weights = {"none": None, "whole": rng.integers(1, 4, 500), "fractions": rng.random(500) + 0.1}[
        kind
    ]
    evaluation = evaluate(y, y_prob=p, labels=range(4), sample_weight=weights)
    for k in range(4):
        for name in ("roc_auc", "average_precision"):
            full = f"class/{k}/{name}"
            found = evaluation.rows.design.standard_error(evaluation.influence(full))
            assert found == pytest.approx(evaluation.standard_errors[full], rel=2e-3), full


def test_repeated_rows_are_whole_weights():
    rng = np.random.default_rng(9)
    y, _, p = random_problem(8, 200, 3)
    w = rng.integers(1, 4, 200)
    weighted = evaluate(y, y_prob=p, labels=range(3), sample_weight=w)
    repeated = evaluate(np.repeat(y, w), y_prob=np.repeat(p, w, axis=0), labels=range(3))
    for name, value in repeated.metrics.items():
        if name.startswith(("class/", "confidence/", "multiclass/roc")):
            assert weighted.metrics[name] == pytest.approx(value, rel=1e-9, abs=1e-12), name
            error = repeated.standard_errors.get(name, math.nan)
            assert weighted.standard_errors.get(name, math.nan) == pytest.approx(
                error, rel=1e-9, nan_ok=True
            ), name


def test_confidence_is_the_calibration_of_the_hits():
    y, _, p = random_problem(2, 800, 5)
    evaluation = evaluate(y, y_prob=p, labels=range(5))
    best = p.argmax(axis=1)
    binary = evaluate(
        (best == y).astype(int), (p.max(axis=1) > 0.5).astype(int), y_prob=p.max(axis=1)
    )
    for name in ("error", "miscalibration"):
        found = evaluation.metrics[f"confidence/{name}"]
        assert found == pytest.approx(binary.metrics[f"calibration/{name}"], rel=1e-9, abs=1e-12)
    assert evaluation.intervals["confidence/error"] == pytest.approx(
        binary.intervals["calibration/error"]
    )
    assert evaluation.metrics["confidence/pvalue"] == pytest.approx(
        binary.metrics["calibration/pvalue"], abs=0.03
    )


@pytest.mark.slow
def test_mismatches_lower_the_hits_and_the_hit_probability():
    y, _, p = random_problem(5, 1500, 6)
    chain = Grouping({"a": [0, 1, 2], "b": [3, 4, 5]}, name="relaxed")
    strict = Grouping({"a": [0, 1, 2], "b": [3, 4, 5]}, name="strict", mode="strict")
    loose, firm = (evaluate(y, y_prob=p, labels=range(6), grouping=one) for one in (chain, strict))
    assert "confidence/relaxed/error" in loose.metrics
    assert "confidence/strict/error" in firm.metrics
    assert firm.metrics["confidence/strict/error"] == firm.metrics["confidence/error"]
    assert loose.metrics["confidence/relaxed/error"] != loose.metrics["confidence/error"]


def test_a_perfect_and_an_absent_class():
    y = np.array([0, 0, 1, 1, 0, 1])
    p = np.eye(3)[y]
    evaluation = evaluate(y, y_prob=p, labels=range(3))
    assert averages(evaluation) == [1.0, 1.0, 1.0]
    assert (
        evaluation.undefined["class/2/roc_auc"]
        == "no rows of the class, or no rows of other classes"
    )
    assert evaluation.metrics["class/0/roc_auc"] == 1.0
    low, high = evaluation.intervals["class/0/roc_auc"]
    assert low < 0.75
    assert high == 1.0
    assert math.isnan(evaluation.metrics["class/2/calibration_pvalue"])
    assert math.isnan(evaluation.metrics["confidence/pvalue"])  # every score is 1, and each a hit
    alone = evaluate([1, 1, 1], y_prob=P8[:3], labels=range(3))
    assert math.isnan(alone.metrics["multiclass/roc_auc_ovo_macro"])


def test_constant_scores_and_ties():
    y = np.array([0, 1, 2] * 30)
    evaluation = evaluate(y, y_prob=np.full((90, 3), 1 / 3))
    assert averages(evaluation) == near([0.5, 0.5, 0.5])
    assert evaluation.metrics["confidence/error"] == near(0.0)
    assert evaluation.metrics["class/1/calibration_error"] == near(0.0)
    assert evaluation.metrics["class/1/average_precision"] == near(1 / 3)


def test_calibrated_classes_are_not_refused_and_others_are():
    y, _, p = random_problem(1, 6000, slope=1.5)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    right, wrong = (evaluate(y, y_prob=one, labels=range(4)).metrics for one in (p, sharp))
    for k in range(4):
        assert right[f"class/{k}/calibration_pvalue"] > 0.01
        assert wrong[f"class/{k}/calibration_pvalue"] == pytest.approx(0.001)
        assert wrong[f"class/{k}/calibration_error"] > 3 * right[f"class/{k}/calibration_error"]
    assert right["confidence/pvalue"] > 0.01
    assert wrong["confidence/pvalue"] == pytest.approx(0.001)


@pytest.mark.slow
def test_the_test_has_its_size_on_cells_and_pooled_blocks():
    """Rounded scores beside the grid's edges: with the cells' centres 14% of calibrated models were refused."""
    rng = np.random.default_rng(3)
    pvalues, pooled = [], []
    for _ in range(40):
        s = np.clip(rng.integers(1, 40, 20_000) / 40 + rng.uniform(-1, 1, 20_000) * 1e-6, 0, 1)
        counted = evaluate((rng.random(20_000) < s).astype(int), y_prob=s).statistics.scores
        assert counted is not None
        cells = Counted.unweighted(counted.to_grid())
        assert not cells.sums.exact
        pvalues.append(ReliabilityTable(cells).test.pvalue)  # type: ignore[union-attr]
        pooled.append(ReliabilityTable(cells, most=32).test.pvalue)  # type: ignore[union-attr]
    for found in (np.array(pvalues), np.array(pooled)):
        assert (found <= 0.05).sum() <= 6  # of 40, 2 are expected
        assert found.min() < 0.3
        assert found.max() > 0.7


def test_with_clusters_averages_have_errors_by_rows():
    rng = np.random.default_rng(7)
    y, _, p = random_problem(6, 400, 4)
    groups = rng.integers(0, 80, 400)
    evaluation = evaluate(y, y_prob=p, labels=range(4), groups=groups)
    for name in (
        *(f"multiclass/{one}" for one in AVERAGES),
        "class/2/roc_auc",
        "class/2/average_precision",
    ):
        psi = evaluation.influence(name)
        assert evaluation.standard_errors[name] == pytest.approx(
            Design(len(psi), clusters=groups).standard_error(psi), rel=1e-9
        )
    assert "class/2/calibration_error" not in evaluation.intervals


def test_two_classes_and_many_have_no_tables():
    two = evaluate([0, 1, 1], y_prob=[0.2, 0.6, 0.7])
    assert two.statistics.class_scores is None
    assert two.statistics.hits is not None
    assert not any(name.startswith("confidence/") for name in two.metrics)
    y, _, p = random_problem(1, 200, 31)
    many = evaluate(y, y_prob=p, labels=range(31))
    assert many.statistics.class_scores is None
    assert "multiclass/roc_auc_ovr_macro" not in many.metrics
    assert "confidence/error" in many.metrics


@pytest.mark.slow
def test_files_hold_them(tmp_path):
    y, _, p = random_problem(11, 3000, 5)
    evaluation = evaluate(
        y,
        y_prob=p,
        labels=range(5),
        grouping=Grouping({"a": [0, 1], "b": [2, 3, 4]}),
        costs={(0, 1): 3.0},
    )
    evaluation.save(tmp_path)
    found = Evaluation.load(tmp_path, rows=False)
    assert found == evaluation
    assert found.statistics.class_scores == evaluation.statistics.class_scores
    assert found.statistics.hits == evaluation.statistics.hits
    assert found.metrics == pytest.approx(evaluation.metrics, nan_ok=True)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [None, "whole", "fractional"])
def test_errors_of_averages_are_the_jackknifes(weighted: str | None) -> None:
    """Derivatives of scikit-learn's averages by each row's weight: Efron's infinitesimal jackknife.

    Areas as sums over pairs of rows are scikit-learn's, here and after a step of a few rows, in a tenth of its time.
    """
    n = 160
    rng = np.random.default_rng(8)
    y, _, p = random_problem(8, n, 4)
    w = {None: np.ones(n), "whole": rng.integers(1, 4, n), "fractional": rng.random(n) + 0.2}[
        weighted
    ]
    evaluation = evaluate(
        y, y_prob=p, labels=range(4), sample_weight=None if weighted is None else w
    )

    wins = [np.sign(p[:, None, k] - p[None, :, k]) / 2 + 0.5 for k in range(4)]

    def area(one: Any, k: int, weights: Any) -> float:
        w_one, w_other = weights * (one & (y == k)), weights * (one & (y != k))
        return float(w_one @ wins[k] @ w_other / (w_one.sum() * w_other.sum()))

    def peers(one: Any, k: int, weights: Any) -> float:
        return float(roc_auc_score(y[one] == k, p[one, k], sample_weight=weights[one]))

    def averages_at(weights: Any, area: Callable[[Any, int, Any], float] = area) -> Any:
        areas = [area(np.ones(n, bool), k, weights) for k in range(4)]
        pairs = [
            area((y == k) | (y == j), k, weights) for k, j in itertools.permutations(range(4), 2)
        ]
        shares = np.bincount(y, weights, 4) / weights.sum()
        return np.array([np.mean(areas), shares @ areas, np.mean(pairs)])

    slopes, step = np.empty((n, 3)), 1e-4
    for row in range(n):
        moved = np.arange(n) == row
        slopes[row] = (averages_at(w + step * moved) - averages_at(w - step * moved)) / (2 * step)
        if row % 40 == 0:
            assert averages_at(w + step * moved) == pytest.approx(
                averages_at(w + step * moved, peers), rel=1e-12
            )
    expected = np.sqrt((w if weighted == "whole" else w**2) @ slopes**2)
    found = [evaluation.standard_errors[f"multiclass/{name}"] for name in AVERAGES]
    # ours spends a degree of freedom on each side
    assert found == pytest.approx(expected, rel=0.03)
    bound = [
        replace(evaluation, rows=None).standard_errors[f"multiclass/{name}"] for name in AVERAGES
    ]
    assert (np.array(bound) > 1.2 * expected).all()


@pytest.mark.slow
def test_errors_of_averages_by_rows_outlive_the_rows_but_not_a_merge() -> None:
    y, _, p = random_problem(3, 200, 4)
    names = [f"multiclass/{name}" for name in AVERAGES]
    evaluation = evaluate(y, y_prob=p, labels=range(4))
    errors = [evaluation.standard_errors[name] for name in names]
    loaded = loads(evaluation.to_json())
    assert loaded.rows is None
    assert [loaded.standard_errors[name] for name in names] == pytest.approx(errors, rel=1e-12)
    assert [loaded.intervals[name] for name in names] == [
        pytest.approx(evaluation.intervals[name]) for name in names
    ]
    # areas of classes know no groups
    regrouped = loaded.regroup(Grouping({"a": [0, 1], "b": [2, 3]}))
    assert [regrouped.standard_errors[name] for name in names] == pytest.approx(errors, rel=1e-12)
    merged = evaluation + evaluation
    again = evaluate(np.r_[y, y], y_prob=np.r_[p, p], labels=range(4))
    for name in names:
        assert merged.standard_errors[name] > 1.2 * again.standard_errors[name]
    off = evaluation.without_probabilities()
    assert [off.standard_errors[name] for name in names] == pytest.approx(errors, rel=1e-12)


def test_errors_of_averages_of_many_rows_come_from_drawn_ones() -> None:
    y, _, p = random_problem(4, 20_000, 3)  # more than twice the rows that errors are made of
    evaluation = evaluate(y, y_prob=p, labels=range(3))
    for name in AVERAGES:
        exact = evaluation.rows.design.standard_error(evaluation.influence(f"multiclass/{name}"))
        assert evaluation.standard_errors[f"multiclass/{name}"] == pytest.approx(exact, rel=0.04)


@pytest.mark.parametrize("names", [[1, 2, 3], [30, 10, 20], ["c", "a", "b"]])
def test_errors_of_averaged_areas_do_not_depend_on_the_names_of_the_classes(
    names: list[object],
) -> None:
    y, _, p = random_problem(5, 90, len(names))
    plain, named = evaluate(y, y_prob=p), evaluate([names[k] for k in y], y_prob=p, labels=names)
    for name in AVERAGES:
        assert (
            named.standard_errors[f"multiclass/{name}"]
            == plain.standard_errors[f"multiclass/{name}"]
            > 0
        )


def test_errors_of_pairs_are_of_their_classes_where_many_classes_have_no_rows():
    labels = np.array([2, 300, 411, 519])
    rng = np.random.default_rng(3)
    actual = rng.choice(labels, 200)
    moments = ScoreMoments.from_scores(actual, rng.random((200, 520)), n_classes=520)
    powers = {name: getattr(moments, name)[labels] for name in ("mean", "m2", "m3", "m4")}
    # An evaluation of more than 512 classes keeps the rows of those with samples only.
    with_samples = replace(moments, present=labels, **powers)
    own = labels[[0, 1, 3]]
    other = labels[[2, 0, 1]]
    errors = pair_errors(moments, own, other)
    assert np.isfinite(errors).all()
    np.testing.assert_array_equal(pair_errors(with_samples, own, other), errors)
