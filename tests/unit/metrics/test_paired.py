"""Differences of the same rows: shares by their discordant rows, all else within its range or not at all."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from cmtrack import Metric, compare, evaluate, paired_differences
from cmtrack.comparison import mcnemar
from cmtrack.metrics import tango

Z = 1.959963984540054


def tangos(b: int, c: int, n: int) -> tuple[float, float]:
    """Tango's interval of a difference of shares of n rows: b only the first gets right, c only the second."""
    return -float(tango(c, b, n, Z)), float(tango(b, c, n, Z))


def discordant(b: int, c: int, n: int, both_wrong: int = 10, **options):
    """Two evaluations of n rows of two classes: b only the first gets right, c only the second."""
    y = np.arange(n) % 2
    first, second = y.copy(), y.copy()
    second[:b] = 1 - y[:b]
    first[b : b + c] = 1 - y[b : b + c]
    for side in (first, second):
        side[n - both_wrong :] = 1 - y[n - both_wrong :]
    return evaluate(y, first, **options), evaluate(y, second, **options)


@pytest.mark.parametrize(
    ("b", "c", "n", "ends"),
    [  # Tango (1998), computed with the share under the hypothesis by brute force
        (12, 5, 200, (-0.0060025169, 0.0806556569)),
        (2, 0, 899, (-0.0020396259, 0.0080750074)),
        (7, 15, 200, (-0.0902622571, 0.0064485339)),
    ],
)
def test_a_difference_of_accuracies_has_the_score_interval(b, c, n, ends):
    row = paired_differences(*discordant(b, c, n), metrics=["multiclass/accuracy"])[
        "multiclass/accuracy"
    ]
    assert (row.low, row.high) == pytest.approx(ends, abs=1e-8)
    exact = mcnemar(b, c).exact_pvalue if b + c <= 8 else 0.0  # of few rows
    assert row.pvalue == pytest.approx(
        max(math.erfc(abs(b - c) / math.sqrt(2 * (b + c))), exact), rel=1e-9
    )
    assert row.reason == ""
    assert mcnemar(b, c).statistic == pytest.approx((b - c) ** 2 / (b + c))


def test_other_levels_widen_it():
    runs = discordant(2, 0, 899)
    row = paired_differences(*runs, confidence_level=1 - 2 * norm.sf(3.5))["multiclass/accuracy"]
    assert (row.low, row.high) == pytest.approx((-0.0112482853, 0.0175545006), abs=1e-8)
    back = paired_differences(*reversed(runs))["multiclass/accuracy"]
    assert (-back.high, -back.low) == pytest.approx((-0.0020396259, 0.0080750074), abs=1e-8)


def test_shares_of_actual_labels_count_the_rows_of_their_denominator():
    first, second = discordant(24, 10, 400)  # of each two rows one is of class 1
    y = np.arange(400) % 2 == 1
    right = [side.rows.predicted == side.rows.actual for side in (first, second)]
    found = paired_differences(first, second)
    for name, side in (("class/1/recall", y), ("binary/specificity", ~y)):
        b, c = int((right[0] & ~right[1] & side).sum()), int((~right[0] & right[1] & side).sum())
        assert (b, c) == (12, 5)
        assert (found[name].low, found[name].high) == pytest.approx(tangos(b, c, 200), abs=1e-9)
    for error, share in (("fnr", "recall"), ("fpr", "specificity")):
        lower, higher = found[f"binary/{error}"], found[f"binary/{share}"]
        assert (lower.low, lower.high) == pytest.approx((-higher.high, -higher.low))
    for name in ("class/1/precision", "binary/precision", "class/1/f1", MCC):
        # the denominator differs, or there is none: the interval is symmetric, which Tango's is not
        row = found[name]
        assert (row.low + row.high) / 2 == pytest.approx(row.difference, abs=1e-12), name
    share = found["class/1/recall"]
    assert abs((share.low + share.high) / 2 - share.difference) > 1e-4


def test_a_perfect_model_is_a_share_too():
    first, second = discordant(9, 0, 100, both_wrong=0)
    assert first.metrics["multiclass/accuracy"] == 1
    row = paired_differences(first, second, metrics=["multiclass/accuracy"])["multiclass/accuracy"]
    assert (row.low, row.high) == pytest.approx(tangos(9, 0, 100), abs=1e-9)


MCC = "multiclass/matthews_corrcoef"


@pytest.mark.parametrize("name", ["multiclass/accuracy", MCC])
@pytest.mark.parametrize(
    ("b", "c", "sure"),
    [(1, 0, False), (5, 0, False), (6, 0, True), (7, 1, False), (8, 0, True), (8, 1, True)],
)
def test_few_rows_that_differ_also_need_the_exact_sign_test(name, b, c, sure):
    row = paired_differences(*discordant(b, c, 899), metrics=[name])[name]
    assert row.low < row.difference < row.high
    assert row.reason == ""
    assert (row.pvalue <= 0.05) == (row.low > 0) == sure
    exact = mcnemar(b, c).exact_pvalue
    assert (row.pvalue >= exact * (1 - 1e-9)) == (b + c <= 8)
    if b + c <= 8 and not sure:
        assert row.low <= 0
    other = paired_differences(*reversed(discordant(b, c, 899)), metrics=[name])[name]
    assert (other.low, other.high, other.pvalue) == pytest.approx(
        (-row.high, -row.low, row.pvalue), abs=1e-12
    )


def test_rows_of_integer_weights_count_as_often_as_they_are():
    weights = np.ones(899, dtype=np.int64)
    weights[0] = 6
    row = paired_differences(*discordant(1, 0, 899, sample_weight=weights), metrics=[MCC])[MCC]
    assert row.pvalue >= mcnemar(6, 0).exact_pvalue * (1 - 1e-9)
    assert row.low > 0
    sampled = paired_differences(*discordant(1, 0, 899, sample_weight=weights / 2), metrics=[MCC])[
        MCC
    ]
    assert sampled.pvalue == 1  # a single row, however heavy


def test_few_clusters_that_differ_count_as_their_number():
    groups = np.arange(900) // 30
    # 4 and 8 clusters, all of them better in the first
    for rows, sure in ((100, False), (220, True)):
        row = paired_differences(*discordant(rows, 0, 900, groups=groups), metrics=[MCC])[MCC]
        assert -2 <= row.low < row.high <= 2
        assert row.reason == ""
        assert (row.pvalue <= 0.05) == (row.low > 0) == sure


@pytest.mark.parametrize("rows", [5, 6])
def test_clusters_of_one_row_say_no_more_than_rows(rows):
    groups = np.arange(899)
    plain = paired_differences(*discordant(rows, 0, 899), metrics=[MCC])[MCC]
    row = paired_differences(*discordant(rows, 0, 899, groups=groups), metrics=[MCC])[MCC]
    assert (row.pvalue <= 0.05) == (plain.pvalue <= 0.05)


def test_equal_predictions_are_not_known_to_be_equal():
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, 3, 200), rng.dirichlet(np.ones(3), 200)
    found = paired_differences(evaluate(y, y_prob=p), evaluate(y, y_prob=p))
    for row in found.rows:
        if math.isfinite(row.standard_error):
            assert (row.difference, row.standard_error, row.pvalue) == (0, 0, 1)
            assert (row.low, row.high) != (0, 0)
            assert math.isnan(row.low) == (row.reason == "no row differs")
    accuracy = found["multiclass/accuracy"]
    assert (-accuracy.low, accuracy.high) == pytest.approx(
        (1.96**2 / (200 + 1.96**2),) * 2, abs=1e-5
    )
    assert math.isnan(found[MCC].low)


def test_no_difference_in_clusters_tells_as_much_as_their_number():
    y, groups = np.arange(200) % 2, np.arange(200) // 10
    both = [evaluate(y, y, groups=groups) for _ in range(2)]
    row = paired_differences(*both, metrics=["multiclass/accuracy"])["multiclass/accuracy"]
    assert row.high == pytest.approx(1.96**2 / (20 + 1.96**2), abs=1e-5)


def test_clusters_count_as_the_rows_that_they_are_worth():
    # five rows of a cluster that are always right or wrong together are one row
    first, second = discordant(12, 5, 200)
    single = paired_differences(first, second, metrics=["multiclass/accuracy"])[
        "multiclass/accuracy"
    ]
    y, a, b = (
        np.repeat(x, 5) for x in (first.rows.actual, first.rows.predicted, second.rows.predicted)
    )
    groups = np.repeat(np.arange(200), 5)
    both = evaluate(y, a), evaluate(y, b)
    whole = paired_differences(*both, groups=groups)["multiclass/accuracy"]
    assert (whole.low, whole.high, whole.pvalue) == pytest.approx(
        (single.low, single.high, single.pvalue), abs=1e-9
    )
    # D / sqrt(sum of D_g^2), by hand
    gains = np.array([2, -1, 3, 1, 1, -2, 1, 2, 1, -1, 1, 2])
    y, a, b = np.arange(120) % 2, np.arange(120) % 2, np.arange(120) % 2
    for g, gain in enumerate(gains):
        side = b if gain > 0 else a
        side[10 * g : 10 * g + abs(gain)] ^= 1
    both = evaluate(y, a), evaluate(y, b)
    found = paired_differences(*both, groups=np.arange(120) // 10)["multiclass/accuracy"]
    statistic = gains.sum() / math.sqrt((gains**2).sum())
    assert found.pvalue == pytest.approx(math.erfc(statistic / math.sqrt(2)))


def test_whole_weights_are_rows_and_fractional_ones_their_worth():
    first, second = discordant(12, 5, 200)
    y, a, b = first.rows.actual, first.rows.predicted, second.rows.predicted
    counts = np.arange(200) % 3 + 1
    weighted = [evaluate(y, x, sample_weight=counts) for x in (a, b)]
    repeated = [evaluate(np.repeat(y, counts), np.repeat(x, counts)) for x in (a, b)]
    ours, theirs = (
        paired_differences(*two, metrics=["multiclass/accuracy"])["multiclass/accuracy"]
        for two in (weighted, repeated)
    )
    assert (ours.low, ours.high, ours.pvalue) == pytest.approx(
        (theirs.low, theirs.high, theirs.pvalue)
    )
    plain = paired_differences(first, second, metrics=["multiclass/accuracy"])[
        "multiclass/accuracy"
    ]
    for factor in (0.5, 7.25):  # only the ratios of fractional weights count
        halves = [evaluate(y, x, sample_weight=np.full(200, factor)) for x in (a, b)]
        row = paired_differences(*halves, metrics=["multiclass/accuracy"])["multiclass/accuracy"]
        assert (row.low, row.high, row.pvalue) == pytest.approx(
            (plain.low, plain.high, plain.pvalue)
        )
    shares = np.random.default_rng(1).uniform(0.2, 3, 200)
    row = paired_differences(*(evaluate(y, x, sample_weight=shares) for x in (a, b)))[
        "multiclass/accuracy"
    ]
    gain = shares * ((a == y).astype(float) - (b == y))
    # one further row of the mean weight and mean square counts as discordant
    differ = np.abs(gain).sum()
    spread = ((gain**2).sum() + (shares**2).mean()) * differ / (differ + shares.mean())
    assert row.pvalue == pytest.approx(math.erfc(abs(gain.sum()) / math.sqrt(2 * spread)))
    assert row.low < row.difference < row.high


def weights_of(kind: str, rng: np.random.Generator, n: int) -> np.ndarray:
    return (
        np.where(rng.random(n) < 0.8, 1.0, 50.0)
        if kind == "1 to 50"
        else np.exp(rng.normal(0, 1, n))
    )


def accuracies(hits: np.ndarray, weights=None, clusters=None):
    """The difference of the accuracies of two runs that are right in these rows, shape (n, 2)."""
    y = np.arange(len(hits)) % 2
    sides = (
        evaluate(
            y,
            np.where(hit, y, 1 - y),
            sample_weight=weights,
            groups=clusters,
            labels=[0, 1],
            sections=["multiclass"],
        )
        for hit in hits.T
    )
    return paired_differences(*sides, metrics=["multiclass/accuracy"])["multiclass/accuracy"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["log-normal", "1 to 50", "clusters"])
def test_an_interval_holds_0_exactly_where_the_p_value_is_above_the_level(kind):
    rng, apart = np.random.default_rng(2), 0
    for _ in range(20):
        n, b, c = 200, 0.11, 0.04
        u = rng.random(n)
        hits = np.column_stack((u >= c, (u < c) | (u >= b + c)))
        hits[u > 0.8] = False
        weights = None if kind == "clusters" else weights_of(kind, rng, n)
        row = accuracies(hits, weights, np.arange(n) // 20 if kind == "clusters" else None)
        assert (row.low > 0 or row.high < 0) == (row.pvalue < 0.05)
        apart += row.low > 0 or row.high < 0
    assert 1 < apart < 19  # both are tried


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "b"), [("log-normal", 0.02), ("1 to 50", 0.04)])
def test_few_discordant_rows_of_small_weight_do_not_speak_for_the_heavy_ones(kind, b):
    # by the weights of the discordant rows alone: .90 (log-normal), .75
    rng, held, times = np.random.default_rng(3), 0, 0
    for _ in range(120):
        u = rng.random(200)
        hits = np.column_stack((u < 0.8, (u >= b) & (u < 0.8)))
        row = accuracies(hits, weights_of(kind, rng, 200))
        held += row.low <= b <= row.high
        times += bool((u < b).any())
    assert held / times >= 0.92


def one_call(hits: int, of: int, n: int = 1000):
    """The first calls so many rows positive, all rightly; of the second's so many some are wrong."""
    y = np.arange(2 * n) < n
    first, second = np.arange(2 * n) < hits, np.arange(2 * n) < of
    second[n : n + of // 9] = True
    return evaluate(y, first, labels=[False, True]), evaluate(y, second, labels=[False, True])


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize(("hits", "shown"), [(1, False), (3, False), (20, False), (200, True)])
def test_a_precision_of_1_counts_the_rows_that_it_is_of(hits, shown, rows):
    # 900 of 1,000 against hits of hits: exactly (Fisher) p = 1, 1, .25 and 1e-8
    sides = [one if rows else replace(one, rows=None) for one in one_call(hits, 900)]
    row = paired_differences(*sides)["binary/precision"]
    assert (row.first, row.second) == (1, 0.9)
    assert (row.pvalue < 0.05) == (row.low > 0) == shown
    best = compare(dict(zip("ab", sides, strict=True)), rank_by="binary/precision").runs[1]
    assert (best.tied, best.difference_high == 0) == (not shown, shown)
    # the error is that of the own interval's samples, and Student's degrees of freedom are these less one
    low, _ = sides[0].intervals["binary/precision"]
    own = (1 - low) / 1.959963984540054
    assert row.standard_error == pytest.approx(
        math.hypot(own, sides[1].standard_errors["binary/precision"])
    )


@pytest.mark.thin(2)
@pytest.mark.slow
@pytest.mark.parametrize("calls", [(0.02, 0.2), (0.2, 0.01, 0.05, 0.2, 0.01, 0.05)])
def test_equal_precisions_of_few_and_of_many_rows_are_told_apart_seldom(calls):
    # a given best is ruled out in 6% of reviews at most, another is the only one in 5%; by the rows alone .5 to .6
    rng, n, lost, alone = np.random.default_rng(5), 400, 0, 0
    for _ in range(150):
        y, runs = rng.random(n) < 0.3, {}
        for r, share in enumerate(calls):
            size = rng.binomial(n, share)
            right = min(rng.binomial(size, 0.8), int(y.sum()))
            called = np.zeros(n, dtype=bool)
            called[rng.choice(np.flatnonzero(y), right, replace=False)] = True
            called[rng.choice(np.flatnonzero(~y), size - right, replace=False)] = True
            if size:
                runs[str(r)] = evaluate(y, called)
        tied = [run.name for run in compare(runs, rank_by="binary/precision").runs if run.tied]
        lost, alone = lost + ("0" in runs and "0" not in tied), alone + (len(tied) == 1)
    assert lost / 150 <= 0.06
    assert alone / 150 <= 0.05


def test_one_row_of_a_class_rules_no_run_out():
    y = np.arange(60) == 0
    first, second = y.copy(), np.zeros(60, dtype=bool)
    first[30:50] = True
    runs = {"finds it": evaluate(y, first), "misses it": evaluate(y, second)}
    comparison = compare(runs, rank_by="binary/recall")
    assert [run.tied for run in comparison.runs] == [True, True]
    row = paired_differences(*runs.values())["binary/recall"]
    assert (row.first, row.second, row.low, row.high) == (1, 0, -1, 1)


def test_right_in_the_same_rows_is_not_equal_unless_the_answers_are():
    y = np.repeat([0, 1, 2], 20)
    first, second = y.copy(), y.copy()
    first[:10], second[:10] = 1, 2
    row = paired_differences(evaluate(y, first), evaluate(y, second))["multiclass/accuracy"]
    ends = float(tango(0, 0, 60, 1.959963984540054))
    assert (row.difference, row.pvalue, row.low, row.high) == pytest.approx((0, 1, -ends, ends))
    for factor in (1e-9, 1.5, 1e9):  # only the ratios of fractional weights count
        sides = (evaluate(y, side, sample_weight=np.full(60, factor)) for side in (first, second))
        assert paired_differences(*sides, metrics=["multiclass/accuracy"])[
            "multiclass/accuracy"
        ].high == pytest.approx(ends)
    # both find all three of a class, and call other rows so, too: that says little of the next three
    y = np.arange(60) < 3
    sides = [y | ((np.arange(60) >= k) & (np.arange(60) < k + 10)) for k in (10, 40)]
    runs = dict(zip("ab", (evaluate(y, side) for side in sides), strict=True))
    assert math.isnan(
        compare(runs, rank_by="binary/recall", equivalence=0.01).runs[1].equivalent_within
    )
    assert paired_differences(*runs.values())["binary/recall"].high > 0.5


def test_rows_without_weight_change_nothing():
    rng = np.random.default_rng(4)
    y = np.arange(40) % 2
    first, second = y.copy(), np.where(rng.random(40) < 0.5, 1 - y, y)
    first[30:] = 1 - y[30:]  # right wherever a row has weight
    weights = np.where(np.arange(40) < 30, 1 + np.arange(40) % 3, 0)
    ours = paired_differences(*(evaluate(y, x, sample_weight=weights) for x in (first, second)))
    held = slice(0, 30)
    theirs = paired_differences(
        *(evaluate(y[held], x[held], sample_weight=weights[held]) for x in (first, second))
    )
    for name in ("multiclass/accuracy", "binary/recall", "binary/precision"):
        one, other = ours[name], theirs[name]
        assert (one.low, one.high, one.pvalue) == pytest.approx(
            (other.low, other.high, other.pvalue)
        )


def test_a_run_that_is_always_right_and_one_that_never_is_have_an_interval():
    y = np.arange(100) % 2
    row = paired_differences(evaluate(y, y), evaluate(y, 1 - y))["multiclass/accuracy"]
    assert (row.difference, row.high, row.reason) == (1, 1, "")
    assert 0.9 < row.low < 1
    assert row.pvalue < 1e-20


def test_the_ends_are_where_the_score_statistic_is_the_quantile():
    # the definition, with the share of c under the hypothesis found by its likelihood
    b, c, n, z = 12, 5, 200, 1.959963984540054
    row = paired_differences(*discordant(b, c, n), metrics=["multiclass/accuracy"])[
        "multiclass/accuracy"
    ]

    def statistic(delta: float) -> float:
        def slope(q: float) -> float:  # of the log likelihood in q = P(only second right)
            return b / (q + delta) + c / q - 2 * (n - b - c) / (1 - 2 * q - delta)

        q = brentq(slope, max(0, -delta) + 1e-9, (1 - delta) / 2 - 1e-9)
        return (b - c - n * delta) / math.sqrt(n * (2 * q + delta * (1 - delta)))

    assert abs(statistic(row.low)) == pytest.approx(z, abs=1e-5)
    assert abs(statistic(row.high)) == pytest.approx(z, abs=1e-5)


def _triage(b):
    return 3 * b.tp / (b.tp + b.fn + b.imp)


def test_no_interval_leaves_the_range_of_a_metric_of_ones_own():
    own = Metric("custom/triage", _triage, of="binary", low=0, high=3)
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 60)
    sides = [np.where(rng.random(60) < 0.4, 1 - y, y) for _ in range(2)]
    groups = np.arange(60) // 10
    row = paired_differences(*(evaluate(y, x, extra_metrics=[own], groups=groups) for x in sides))[
        "custom/triage"
    ]
    assert -3 <= row.low <= row.difference <= row.high <= 3
    bare = paired_differences(
        *(evaluate(part, part[::-1], extra_metrics=[own]) for part in (y[:8], y[8:16])),
        metrics=["custom/triage"],
    )
    assert not bare.paired
    assert -3 <= bare["custom/triage"].low <= bare["custom/triage"].high <= 3
