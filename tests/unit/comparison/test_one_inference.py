"""Gates, rankings, tie-breakers and equivalence read one inference of two runs on the same rows."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from cmtrack import Costs, compare, evaluate, paired_differences
from cmtrack.comparison import judge

MCC, ACCURACY = "binary/matthews_corrcoef", "multiclass/accuracy"
N = 2000
Y = np.arange(N) % 2


def run(changed=()):
    """A run that is wrong in the first 100 rows, except that it answers these rows the other way."""
    wrong = np.arange(N) < 100
    wrong[list(changed)] ^= True
    return evaluate(Y, np.where(wrong, 1 - Y, Y), positive=1)


@pytest.mark.parametrize("metric", [MCC, ACCURACY])
@pytest.mark.parametrize(
    ("changed", "passed"),
    [
        ([0], True),
        (range(5), True),
        (range(8), True),
        ([500], True),
        (range(500, 505), True),
        (range(500, 507), False),
    ],
)
def test_the_default_gate_decides_however_few_rows_differ(metric, changed, passed):
    verdict = judge(run(changed), run(), rank_by=metric)
    assert verdict.not_judged is None
    assert verdict.passed == passed
    check = verdict.checks[0]
    assert check.low <= check.difference <= check.high
    assert (check.high < 0) == (not passed)


def test_a_run_that_agrees_in_every_row_is_neither_worse_nor_known_to_be_equal():
    verdict = judge(run(), run())
    assert verdict.passed
    assert verdict.checks[0].to_dict()["reason"] == "no row differs"
    gate = judge(run(), run(), require=[f"{MCC}.difference.low >= -0.01"])
    assert not gate.passed
    assert gate.checks[0].undecided
    comparison = compare({"a": run(), "b": run()}, rank_by=MCC)
    for row in comparison.runs:
        assert (row.difference, row.pvalue, row.tied, row.reason) == (0, 1, True, "no row differs")
        assert math.isnan(row.difference_low)
        assert math.isnan(row.difference_high)
    comparison = compare({"a": run(), "b": run()}, rank_by=ACCURACY)
    reach = 1.96**2 / (N + 1.96**2)
    assert comparison.runs[0].difference_low == pytest.approx(-reach, rel=1e-4)
    assert judge(run(), run(), require=[f"{ACCURACY}.difference.low >= -0.01"]).passed
    assert not judge(run(), run(), require=[f"{ACCURACY}.difference.low >= -0.001"]).passed


@pytest.mark.slow
def test_no_page_shows_an_interval_of_width_0(tmp_path):
    region = np.where(np.arange(N) % 4 < 2, "north", "south")
    sides = {}
    for name, changed in (("a", ()), ("b", range(0, 40, 4))):  # in one region alone
        wrong = np.arange(N) < 100
        wrong[list(changed)] ^= True
        sides[name] = evaluate(
            Y, np.where(wrong, 1 - Y, Y), positive=1, segments={"region": region}
        )
    comparison = compare(sides | {"c": sides["a"]}, rank_by=MCC, segments="region")
    page = comparison.report(tmp_path / "review.html").read_text(encoding="utf-8")
    assert not re.search(r"\[0\.0*, 0\.0*\]", page)
    frame = comparison.segments.to_frame()
    assert not ((frame["low"] == 0) & (frame["high"] == 0)).any()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    "metric", [MCC, ACCURACY, "binary/roc_auc", "spcc/binary", "probability/log_loss"]
)
def test_a_gate_and_a_review_of_two_runs_agree(metric, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [190, [5, 10, 60][seed % 3]])
    shared = rng.normal(size=len(y))
    probabilities = []
    for skill in (1.0, 2.5):
        score = 0.7 * shared + 0.7 * rng.normal(size=len(y)) + skill * y - 1
        probabilities.append(1 / (1 + np.exp(-score)))
    a, b = (evaluate(y, y_prob=p, positive=1) for p in probabilities)
    pair = paired_differences(a, b, metrics=[metric])[metric]
    comparison = compare({"a": a, "b": b}, rank_by=metric)
    ours = comparison["a"]
    assert ours.pvalue == pytest.approx(pair.pvalue)
    told_apart = pair.low > 0 or pair.high < 0
    assert told_apart == (pair.pvalue <= 0.05) == (len(comparison.ranking.tied) == 1)
    place, other = comparison.runs.index(ours), 1 - comparison.runs.index(ours)
    low, high = comparison.ranking.pair_intervals[:, place, other]
    assert (low, high) == pytest.approx((pair.low, pair.high), rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_an_area_of_few_positives_has_a_usable_interval():
    # with degrees of freedom from fourth moments some of these were wider than 1
    widths = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = np.repeat([0, 1], [190, 10])
        sides = [
            evaluate(y, y_prob=1 / (1 + np.exp(-rng.normal(1.6 * y, 1))), positive=1)
            for _ in range(2)
        ]
        row = paired_differences(*sides, metrics=["binary/roc_auc"])["binary/roc_auc"]
        widths.append(row.high - row.low)
    assert max(widths) < 0.9


@pytest.mark.parametrize(("positives", "shown"), [(19, False), (20, True)])
def test_runs_are_equivalent_only_with_20_rows_of_each_class(positives, shown):
    y = np.repeat([0, 1], [400, positives])
    first, second = y.copy(), y.copy()
    first[:12] = 1
    second[3:15] = 1
    runs = {"a": evaluate(y, first, positive=1), "b": evaluate(y, second, positive=1)}
    found = compare(runs, rank_by=MCC, equivalence=0.2).runs[1]
    assert math.isfinite(found.equivalent_within) == shown
    # of 419 rows, whatever their class
    found = compare(runs, rank_by=ACCURACY, equivalence=0.2).runs[1]
    assert math.isfinite(found.equivalent_within)


def test_twenty_rows_without_a_difference_are_not_equivalent():
    y = np.arange(20) % 2
    runs = {name: evaluate(y, np.where(np.arange(20) < 1, 1 - y, y), positive=1) for name in "ab"}
    for metric in (ACCURACY, MCC):
        assert math.isnan(compare(runs, rank_by=metric, equivalence=0.01).runs[1].equivalent_within)


def test_a_tie_breaker_may_choose_a_run_that_differs_in_few_rows():
    wrong = [range(7), [*range(3, 7), *range(20, 25)]]  # right alone on 5 rows against 3
    y = np.arange(228) % 2
    runs = {}
    for name, rows in zip("ab", wrong, strict=True):
        predicted = y.copy()
        predicted[list(rows)] = 1 - predicted[list(rows)]
        runs[name] = evaluate(y, predicted, positive=1)
    comparison = compare(runs, rank_by=MCC, tie_breakers=[ACCURACY])
    assert [one.within_margin for one in comparison.runs] == [True, True]
    assert "Among the 2 runs within one standard error of the leader" in comparison.summary()


def test_a_difference_of_mean_costs_stays_within_the_costs():
    # one row of a class leaves a single degree of freedom, and decides the cost
    y = np.arange(60) < 1
    costs = Costs.from_dict({"costs": [[True, False, 500], [False, True, 5]]})
    first, second = y.copy(), ~y & (np.arange(60) < 2)
    sides = [evaluate(y, predicted, positive=True, costs=costs) for predicted in (first, second)]
    row = paired_differences(*sides, metrics=["cost/mean"], confidence_level=0.999)["cost/mean"]
    assert (row.low, row.high) == (-500, 500)


def test_a_log_loss_that_few_rows_decide_has_their_degrees_of_freedom():
    y = np.repeat([0, 1], 100)
    sides = []
    for k in (0, 100):  # each run is far off in one row of its own
        p = np.where(y == 1, 0.99, 0.01) + np.linspace(0, 0.005, 200)
        p[k] = 1 - p[k]
        sides.append(evaluate(y, y_prob=p, positive=1))
    wide = paired_differences(*sides, metrics=["probability/log_loss"])["probability/log_loss"]
    # of about 5, not 198
    assert (wide.high - wide.low) / (2 * wide.standard_error) == pytest.approx(2.57, abs=0.15)
    bounded = paired_differences(*sides, metrics=["probability/brier"])["probability/brier"]
    assert (bounded.high - bounded.low) / (2 * bounded.standard_error) < 2
