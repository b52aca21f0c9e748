"""Risk by coverage and rejecting: test vector 25, numerical derivatives, mismatches, cells, clusters, bad input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmtrack import Evaluation, Grouping, evaluate
from cmtrack.evaluation import loads
from cmtrack.metrics import ScoreTable, lookup, wilson
from cmtrack.statistics import Counted, ScoreCounts
from support.problems import random_labels, random_scores

K25 = np.array([0.99, 0.95, 0.9, 0.9, 0.8, 0.7, 0.7, 0.6, 0.55, 0.5])
L25 = np.array([0, 0, 1, 0, 0, 0, 1, 1, 0, 1])
W25 = np.array([1, 2, 1, 1, 3, 1, 1, 2, 1, 1])
Y8 = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
P8 = np.array([[.7, .2, .1], [.5, .4, .1], [.6, .1, .3], [.4, .35, .25], [.3, .6, .1], [.2, .5, .3], [.45, .4, .15],
               [.1, .3, .6], [.3, .4, .3]])  # fmt: skip
PSI = [-.5615833234, -.5615833234, .8547074084, -.3684361429, -.2150097332, -.1261833191, .3893110333, .3099013291,
       .0867577778, .1921182934]  # fmt: skip


def near(expected: Any, digits: float = 6e-11) -> Any:
    return pytest.approx(expected, abs=digits)


AURC, EXCESS = lookup("confidence/aurc"), lookup("confidence/aurc_excess")


def table_of(confidence: Any, losses: Any, weights: Any = None) -> Any:
    """Hits and misses by confidence, as the metrics take them: hits are channel 0 of four, misses channel 2."""
    whole = weights is None or np.asarray(weights).dtype.kind == "i"
    counted = Counted(weights, weights if whole else weights**2)
    return ScoreTable(counted.map(lambda w: ScoreCounts.from_scores(confidence, 2 * losses, 4, w)))


def by_row(table: Any, values: Any, confidence: Any, losses: Any) -> Any:
    size = len(table.scores.values)
    return values[2 * size * losses + np.searchsorted(table.scores.values, confidence)]


def judged(confidence: Any, losses: Any, weights: Any = None) -> Evaluation:
    """An evaluation of three classes whose predictions have these confidences: class 0 always, and class 1 is the miss."""
    confidence, losses = np.asarray(confidence, dtype=float), np.asarray(losses)
    rest = (1 - confidence)[:, None] / [2, 2]
    return evaluate(
        losses,
        np.zeros(len(losses), int),
        y_prob=np.column_stack((confidence, rest)),
        labels=range(3),
        sample_weight=weights,
    )


def area_by_definition(confidence: Any, losses: Any, weights: Any) -> float:
    """Mean risk of the most confident over all shares of them, where rows of one confidence come at random."""
    values = np.unique(confidence)[::-1]
    size, lost = (
        np.array([part[confidence == value].sum() for value in values])
        for part in (weights, weights * losses)
    )
    before, missed = np.cumsum(size) - size, np.cumsum(lost) - lost
    area = 0.0
    for start, misses, n, m in zip(before, missed, size, lost, strict=True):
        share = m / n
        logarithm = math.log((start + n) / start) if start else 0.0
        area += share * n + (misses - share * start) * logarithm
    return area / float(size.sum())


def test_vector_25():
    evaluation = judged(K25, L25)
    found = evaluation.risk_coverage
    assert (found.aurc, found.standard_error, found.aurc - found.excess) == near(
        (0.2078817066, 0.1360592255, 0.0935046257)
    )
    assert evaluation.metrics["confidence/aurc"] == found.aurc
    assert evaluation.metrics["confidence/aurc_excess"] == found.excess
    assert evaluation.standard_errors["confidence/aurc"] == near(found.standard_error)
    assert [found.risk_at(a) for a in (0.35, 0.5)] == near([0.2142857143, 0.2])
    assert [found.coverage_at(r) for r in (0.25, 0.3, 1.0)] == near([0.6, 0.7142857143, 1])
    assert found.coverage == near([0.1, 0.2, 0.4, 0.5, 0.7, 0.8, 0.9, 1])
    assert found.risk == near([0, 0, 1 / 4, 1 / 5, 2 / 7, 3 / 8, 3 / 9, 4 / 10])
    assert found.interval == near(
        tuple(
            found.aurc * math.exp(s * 1.959963984540054 * found.standard_error / found.aurc)
            for s in (-1, 1)
        )
    )
    assert judged(K25, L25, W25).risk_coverage.aurc == near(0.1592115119)
    shown = "aurc=0.208, excess=0.114, risk 0.4 of all and 0.375 of the most confident 80%, 8 confidences"
    assert repr(found) == f"RiskCoverage({shown})"
    assert list(found.to_frame()) == ["confidence", "coverage", "risk"]


def test_vector_25_of_the_metrics():
    table = table_of(K25, L25)
    area, excess = AURC.number(table), EXCESS.number(table)
    assert (area, area - excess) == near((0.2078817066, 0.0935046257))
    psi = AURC.influence_in(table)
    assert by_row(table, psi, K25, L25) == near(PSI)
    assert table.standard_error(psi) == near(0.1360592255)
    assert judged(K25, L25).influence("confidence/aurc") == near(PSI)
    assert AURC.number(table_of(K25, L25, W25)) == near(0.1592115119)


def test_vector_25_of_the_rows_of_vector_8():
    found = evaluate(Y8, y_prob=P8).risk_coverage
    assert found is not None
    assert (found.aurc, found.standard_error) == near((0.0496455389, 0.0526751161))


@pytest.mark.parametrize("metric", [AURC, EXCESS], ids=["aurc", "excess"])
def test_the_influence_is_the_derivative_by_a_rows_weight(metric: Any) -> None:
    w = np.random.default_rng(0).random(10) + 0.5
    table = table_of(K25, L25, w)
    slopes = []
    for i in range(10):
        ends = [
            metric.number(table_of(K25, L25, w + sign * 1e-6 * (np.arange(10) == i)))
            for sign in (1, -1)
        ]
        slopes.append((ends[0] - ends[1]) / 2e-6 * w.sum())
    assert by_row(table, metric.influence_in(table), K25, L25) == near(slopes, 1e-8)
    found = judged(K25, L25, w).risk_coverage
    assert (found.aurc, found.excess) == near((AURC.number(table), EXCESS.number(table)))
    assert found.aurc == near(area_by_definition(K25, L25, w), 1e-12)
    assert found.standard_error == near(table.standard_error(AURC.influence_in(table)))


@pytest.mark.slow
@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_the_area_is_that_of_repeated_rows_and_between_the_perfect_and_the_constant_order(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    kappa, loss = rng.integers(4, 10, n) / 10, rng.integers(0, 2, n)
    w = rng.integers(1, 4, n)
    one, many = (
        judged(*rows).risk_coverage
        for rows in ((kappa, loss, w), [np.repeat(part, w) for part in (kappa, loss)])
    )
    assert (one.aurc, one.excess, one.standard_error) == near(
        (many.aurc, many.excess, many.standard_error), 1e-9
    )
    assert one.aurc == near(area_by_definition(kappa, loss, w), 1e-12)
    assert one.excess >= 0
    assert judged(np.ones(n), loss, w).risk_coverage.aurc == near(one.total_risk, 1e-12)
    grid = (np.arange(4000) + 0.5) / 4000
    assert np.mean([one.risk_at(a) for a in grid]) == near(one.aurc, 0.04)
    for risk in (0.0, 0.3 * one.total_risk, one.total_risk, 1.5):
        share = one.coverage_at(risk)
        assert share == 0 or one.risk_at(share) <= risk + 1e-9
        assert share == 1 or all(
            one.risk_at(a) > risk for a in np.linspace(share + 1e-6, 1, 20) if a <= 1
        )


def test_perfect_and_constant_orders():
    share = 0.25 + 0.75 * math.log(0.75)  # of a quarter of misses that all come last
    perfect = table_of(np.array([0.9, 0.8, 0.7, 0.1]), np.array([0, 0, 0, 1]))
    assert EXCESS.number(perfect) == near(0)
    assert AURC.number(perfect) == near(share)
    found = judged([0.9, 0.8, 0.7, 0.4], [0, 0, 0, 1]).risk_coverage
    assert (found.aurc, found.excess) == near((share, 0))
    wrong = table_of(np.array([0.9, 0.8]), np.array([1, 1]))
    assert (AURC.number(wrong), EXCESS.number(wrong)) == near((1, 0))
    assert np.isfinite(EXCESS.influence_in(wrong)).all()
    right = evaluate([0, 1, 1], y_prob=[0.1, 0.9, 0.8]).risk_coverage
    assert (right.aurc, right.excess, right.interval) == (0, 0, None)


def test_hits_in_the_groups_of_a_step():
    """Class 1 predicted for class 0 is a hit of the relaxed group, and none of the strict one."""
    y, p = np.array([0, 2]), np.array([[0.3, 0.5, 0.2], [0.1, 0.1, 0.8]])
    for mode, risk, confidence in (("relaxed", 0.0, [0.8]), ("strict", 0.5, [0.8, 0.5])):
        evaluation = evaluate(
            y, y_prob=p, grouping=Grouping({"low": [0, 1], "high": [2]}, mode=mode, name="level")
        )
        found = evaluation.risk_coverage_of("level")
        assert (found.total_risk, found.confidence.tolist()) == (risk, confidence)
        assert evaluation.risk_coverage.total_risk == evaluation.reject(0).risk == 0.5
        assert evaluation.reject(0, step="level").risk == risk
    with pytest.raises(ValueError, match=r"step must be one of \['level'\], got 'other'"):
        evaluation.risk_coverage_of("other")


def test_scores_on_a_grid():
    rng = np.random.default_rng(1)
    s = rng.beta(2, 2, 5000)
    y = (rng.random(5000) < s).astype(int)
    evaluation = evaluate(y, y_prob=s)
    assert not evaluation.statistics.hits.of().exact
    table = table_of(np.maximum(s, 1 - s), ((s > 0.5) != y).astype(int))
    assert table.scores.exact
    exact = AURC.number(table), table.standard_error(AURC.influence_in(table))
    found = evaluation.risk_coverage
    assert (found.aurc, found.standard_error) == near(exact, 1e-4)
    rejected = evaluation.reject(0.3)
    accepted = np.maximum(s, 1 - s) >= rejected.threshold
    assert rejected.accepted == near(accepted.mean(), 1e-12)
    assert 0.7 <= rejected.accepted < 0.71
    assert rejected.misses == ((s > 0.5) != y)[accepted].sum()


# --- rejecting --------------------------------------------------------------------------------------------


def test_what_handing_over_rows_leaves():
    # confidences .7 .6 .6 .6 .5 .5 .45 .4 .4, misses at .45 and .4
    evaluation = evaluate(Y8, y_prob=P8)
    found = evaluation.reject(0.4)
    assert (found.accepted, found.threshold, found.risk) == near((6 / 9, 0.5, 0.0))
    assert (found.hits, found.misses, found.rejected_hits, found.rejected_misses) == (6, 0, 1, 2)
    assert (found.low, found.high) == near(wilson(0.0, 6))
    assert found.total_risk == near(2 / 9)
    assert found.sentence() == (
        "66.7% of the answers are accepted, because their confidence is at least 0.5. 0% [0, 39] of them are wrong, "
        "compared with 22.2% of all answers. 33.3% of the rows are handed over, and 66.7% of their answers are wrong."
    )
    assert evaluation.reject(0.2).sentence() == (
        "No row is handed over, because more than 20% of the rows have the lowest confidence, 0.4. "
        "22.2% [6.32, 54.7] of all answers are wrong."
    )
    assert (
        evaluation.reject(0).sentence()
        == "No row is handed over. 22.2% [6.32, 54.7] of all answers are wrong."
    )
    # the share itself, whatever its rounding
    assert judged(K25, L25).reject(0.3).accepted == 0.7
    for share in (1, -0.1, math.nan):
        with pytest.raises(ValueError, match="must be from 0 to below 1, got"):
            evaluation.reject(share)


def test_weights_are_repeated_rows():
    w = W25[:9]
    weighted = evaluate(Y8, y_prob=P8, sample_weight=w)
    repeated = evaluate(np.repeat(Y8, w), y_prob=np.repeat(P8, w, axis=0))
    one, other = weighted.reject(0.4), repeated.reject(0.4)
    assert (one.accepted, one.low, one.high) == near((other.accepted, other.low, other.high))
    assert weighted.risk_coverage.standard_error == near(repeated.risk_coverage.standard_error)


def clustered() -> tuple[Evaluation, Evaluation]:
    y = random_labels(60)
    s = random_scores(y, 0.0, 4, digits=3)
    return evaluate(y.repeat(4), y_prob=s.repeat(4), groups=np.repeat(np.arange(60), 4)), evaluate(
        y, y_prob=s
    )


def test_rows_that_belong_together_count_as_few():
    """Four equal rows of each of 60 groups know what 60 rows know."""
    together, once = clustered()
    assert together.risk_coverage.aurc == near(once.risk_coverage.aurc, 1e-12)
    few = math.sqrt(60 / 59)
    assert together.risk_coverage.standard_error == near(
        few * once.risk_coverage.standard_error, 1e-12
    )
    found, alone = together.reject(0.5), once.reject(0.5)
    assert found.risk == near(alone.risk)
    assert found.high - found.low == near(alone.high - alone.low, 0.03)
    assert found.high - found.low > alone.high - alone.low


def test_without_the_rows_that_belong_together_there_is_no_interval():
    stored = loads(clustered()[0].to_json())
    assert stored.risk_coverage.interval is None
    assert math.isnan(stored.risk_coverage.standard_error)
    found = stored.reject(0.5)
    assert math.isnan(found.low)
    assert "unknown if the rows are missing" in found.reason
    assert "[" not in found.sentence()


def test_bad_questions():
    found = judged(K25, L25).risk_coverage
    for share in (0, 1.1, math.nan):
        with pytest.raises(ValueError, match="coverage must be above 0 and at most 1, got"):
            found.risk_at(share)
    with pytest.raises(ValueError, match="risk must be a number, got nan"):
        found.coverage_at(math.nan)
    with pytest.raises(
        ValueError, match="needs the probability that each prediction is correct, got Evaluation"
    ):
        evaluate([0, 1], [0, 1]).reject(0.1)
    assert evaluate([0, 1], [0, 1]).risk_coverage is None


def test_a_sum_of_classes_ties_with_a_single_class_of_the_same_probability() -> None:
    """All groups' hit probabilities are 2/3; those of two classes are sums, which rounding would set apart."""
    step = Grouping({"a": [0, 1], "b": [2]}, positive="a", name="g")
    p = np.array([[1 / 3, 1 / 3, 1 / 3], [1 / 6, 1 / 6, 2 / 3]] * 20)
    found = evaluate(
        np.zeros(40, int), np.array([0, 2] * 20), y_prob=p, labels=[0, 1, 2], grouping=step
    )
    # one tie: the risk of all rows at any coverage
    assert found.metrics["confidence/g/aurc"] == 0.5
    assert found.risk_coverage_of("g").confidence == near([2 / 3])
