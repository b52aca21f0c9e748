"""Thresholds: the vectors of the specification, laws, honest numbers against simple code, bad input, figures."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import chi2

from cmtrack import Accumulator, Costs, Evaluation, Grouping, Threshold, evaluate, evaluate_table

# the folds that a threshold is cross-fitted by are drawn at random, and no result shows them
from cmtrack.evaluation.threshold_rules import split_counts
from cmtrack.plots import plot_thresholds
from support.problems import B20, D20, random_labels, random_problem, random_scores

MISS_5 = {(1, 0): 5, (0, 1): 1}
TWO = Grouping({"neg": [2, 3], "pos": [0, 1]}, "strict", name="two")
TWO_COSTS = Costs({("pos", "neg"): 5, ("neg", "pos"): 1}, mismatch={"pos": 2, "neg": 0.5})


def drawn(seed=0, n=400, digits=None):
    """Labels and scores of two classes."""
    rng = np.random.default_rng(seed)
    y = random_labels(n, 2, rng, [0.7, 0.3])
    return y, random_scores(y, 1.5, rng, shift=-0.25, digits=digits)


def predicted(p, threshold, grouping=TWO):
    """The rule of a threshold, written out: the group by its score, the class inside it by its probability."""
    members = {
        "pos": list(grouping.steps[0].groups["pos"]),
        "neg": list(grouping.steps[0].groups["neg"]),
    }
    out = []
    for row in p:
        group = (
            "pos"
            if min(round(sum(row[c] for c in members["pos"]), 12), 1.0) >= threshold
            else "neg"
        )
        out.append(max(members[group], key=lambda c: (row[c], -c)))
    return np.array(out)


# -- vectors ---------------------------------------------------------------------------------------------------


def test_the_vector_of_the_cheapest_threshold():
    found = evaluate(B20, y_prob=D20).threshold(MISS_5)
    frame = found.to_frame().iloc[::-1]
    np.testing.assert_allclose(
        frame["cost"], [.5, .45, .65, .6, .5, .45, .7, .65, .9, 1.1, 1.3, 1.25, 1.5, 2, 2.25, 2.5], atol=1e-12
    )  # fmt: skip
    assert len(frame) == 16
    assert found.calibrated == pytest.approx(1 / 6)
    # not .35, which is further from 1/6
    assert (found.value, found.apparent) == (0.1, pytest.approx(0.45))


def test_the_vector_of_the_interval_of_a_mean_cost():
    """Of 8 free decisions, 7 alarms and 5 misses; and of as much information as 20 / 1.2 rows hold (Kish)."""
    y = np.repeat([0, 0, 1], [8, 7, 5])
    decided = np.repeat([0, 1, 0], [8, 7, 5])
    plain = evaluate(y, decided, costs=MISS_5).intervals["cost/mean"]
    np.testing.assert_allclose(plain, [0.8647745905, 2.5722986041], atol=5e-11)
    np.testing.assert_allclose(profile_interval([0, 1, 5], [8, 7, 5]), plain, atol=1e-9)
    apart = math.sqrt(4 / 18) * np.array([*[1, -1] * 4, *[1, -1] * 3, 0, *[1, -1] * 2, 0])
    wider = evaluate(y, decided, costs=MISS_5, sample_weight=1 + apart).intervals["cost/mean"]
    np.testing.assert_allclose(wider, [0.8103485249, 2.6696358310], atol=5e-11)


def profile_interval(values, counts, level=0.95):
    """The likelihood-ratio interval of a mean, by the empirical likelihood of all values that occur (Owen 1990)."""
    values, counts = np.asarray(values, dtype=float), np.asarray(counts, dtype=float)
    limit = chi2.ppf(level, 1)

    def deviance(mean):
        gaps = values - mean
        ends = -1 / gaps.max(), -1 / gaps.min()
        tilt = brentq(
            lambda tilt: counts @ (gaps / (1 + tilt * gaps)), *np.multiply(ends, 1 - 1e-12)
        )
        return 2 * counts @ np.log1p(tilt * gaps)

    estimate = values @ counts / counts.sum()
    return [
        brentq(lambda mean: deviance(mean) - limit, *sorted((estimate, end)))
        for end in (values.min() + 1e-9, values.max() - 1e-9)
    ]


def test_the_vector_of_bounded_metrics():
    evaluation = evaluate(B20, y_prob=D20)
    recall = evaluation.threshold(maximize="binary/recall", subject_to="binary/precision >= 0.8")
    assert (recall.value, recall.apparent, recall.bounded.apparent) == (0.75, 0.5, 1.0)
    precision = evaluation.threshold(maximize="binary/precision", subject_to="binary/recall >= 0.9")
    assert precision.value == 0.35
    assert precision.apparent == pytest.approx(0.6923076923, abs=5e-11)
    assert precision.bounded.apparent == 0.9


# -- choosing --------------------------------------------------------------------------------------------------


def priced_thresholds(y, s, miss, alarm):
    """Mean cost at every threshold, and the thresholds."""
    candidates = [*np.unique(s), math.inf]
    return [
        np.mean(miss * (y == 1) * (s < u) + alarm * (y == 0) * (s >= u)) for u in candidates
    ], candidates


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 10)), min_size=4, max_size=40),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_the_choice_is_the_best_of_all_thresholds(rows, miss, alarm):
    y, s = np.array([row[0] for row in rows]), np.array([row[1] for row in rows]) / 10
    if y.min() == y.max():
        return
    found = evaluate(y, y_prob=s, labels=[0, 1]).threshold({(1, 0): miss, (0, 1): alarm})
    costs, candidates = priced_thresholds(y, s, miss, alarm)
    assert found.apparent == pytest.approx(min(costs))
    tied = [u for u, cost in zip(candidates, costs, strict=True) if cost <= min(costs) + 1e-12]
    if miss + alarm:
        best = alarm / (miss + alarm)
        tied = [u for u in tied if abs(u - best) <= min(abs(u - best) for u in tied) + 1e-12]
    assert found.value == max(tied)


@pytest.mark.parametrize(
    "metric", ["binary/f1", "binary/matthews_corrcoef", "binary/informedness", "binary/npv"]
)
def test_metrics_over_thresholds_are_those_of_predictions(metric):
    y, s = drawn(digits=2)
    found = evaluate(y, y_prob=s).threshold(maximize=metric)
    frame = found.to_frame()
    assert list(frame["threshold"]) == sorted(frame["threshold"], reverse=True)
    assert len(frame) == len(np.unique(s)) + 1
    for _, row in frame.iloc[[0, 1, 20, 60, -1]].iterrows():
        own = evaluate(y, (s >= row["threshold"]).astype(int), labels=[0, 1])
        for name in (metric, "binary/tp", "binary/fp", "binary/recall", "binary/precision"):
            assert row[name.removeprefix("binary/")] == pytest.approx(
                own.metrics[name], nan_ok=True
            )
    assert found.apparent == pytest.approx(frame[metric.removeprefix("binary/")].max())


def test_the_least_cost_may_keep_a_bound():
    y, s = drawn()
    evaluation = evaluate(y, y_prob=s)
    free, bound = (
        evaluation.threshold(MISS_5),
        evaluation.threshold(MISS_5, subject_to="binary/precision >= 0.7"),
    )
    frame = bound.to_frame()
    assert free.to_frame().set_index("threshold").loc[free.value, "precision"] < 0.7
    assert bound.apparent == pytest.approx(frame[frame["precision"] >= 0.7]["cost"].min())
    assert bound.bounded.name == "binary/precision"
    assert bound.cost > free.cost
    assert "least cost with precision ≥ 0.7" in bound.sentence()


@pytest.mark.slow
def test_mismatches_keep_their_cost_at_every_threshold():
    y, _, p = random_problem(1, skill=1.4)
    evaluation = evaluate(y, y_prob=p, grouping=TWO)
    found = evaluation.threshold(TWO_COSTS)
    assert found.costs.costs == (0, 5, 2, 1, 0, 0.5)
    prices = TWO_COSTS.matrix([0, 1, 2, 3], TWO)
    scores = np.round(p[:, :2].sum(axis=1), 12)
    for u in (found.value, *np.quantile(scores, [0.2, 0.5, 0.9]), math.inf):
        expected = prices[y, predicted(p, u)].mean()
        frame = found.to_frame()
        at = frame[frame["threshold"] >= u]["cost"].iloc[-1]
        assert at == pytest.approx(expected)
    assert found.apparent == pytest.approx(
        min(prices[y, predicted(p, u)].mean() for u in [*np.unique(scores), 2])
    )


def test_costs_that_the_evaluation_has_are_taken():
    y, s = drawn()
    evaluation = evaluate(y, y_prob=s)
    assert evaluation.price(MISS_5).threshold() == evaluation.threshold(MISS_5)
    by_metric = evaluation.price(MISS_5).threshold(maximize="binary/f1")
    assert math.isnan(by_metric.cost)
    assert "cost" in by_metric.to_frame()
    assert "cost" not in evaluation.threshold(maximize="binary/f1").to_frame()


def test_the_threshold_of_calibrated_scores():
    def calibrated(**costs):
        pairs = {"tp": (1, 1), "fn": (1, 0), "fp": (0, 1), "tn": (0, 0)}
        matrix = {pairs[name]: cost for name, cost in costs.items()}
        return evaluate(B20, y_prob=D20).threshold(matrix).calibrated

    assert calibrated(fn=5, fp=1) == pytest.approx(1 / 6)
    assert calibrated(fn=5, fp=1, tp=-5, tn=-1) == pytest.approx(1 / 6)
    assert math.isnan(calibrated(fn=-1, fp=1))
    assert math.isnan(calibrated(fn=0, fp=0))


# -- honest numbers --------------------------------------------------------------------------------------------


def test_splits_of_counts_are_splits_of_rows():
    y, s = drawn(n=203, digits=1)
    counts = evaluate(y, y_prob=s).statistics.scores.counts
    for parts in (list(split_counts(counts)), list(split_counts(counts * 1000))):
        assert len(parts) == 10
        times = parts[0].sum() / counts.sum()
        for part in parts:
            np.testing.assert_array_equal(part.sum(axis=0), counts * times)
            sizes = part.reshape(5, 2, -1).sum(axis=2)
            assert (np.ptp(sizes, axis=0) <= 1).all()  # as many of each group
            assert np.ptp(sizes.sum(axis=1)) <= 1
        assert not np.array_equal(parts[0], parts[1])


def test_the_two_ways_to_split_counts_have_one_law():
    y, s = drawn(n=200, digits=1)
    scores = evaluate(y, y_prob=s).statistics.scores
    many = [np.array(list(split_counts(scores.counts * times, repeats=300))) for times in (1, 1000)]
    for parts, times in zip(many, (1, 1000), strict=True):
        mean = parts[:, 0].mean(axis=0)
        np.testing.assert_allclose(mean / times, scores.counts / 5, atol=0.35)
        n = scores.counts[2:].sum() * times
        cell = int(scores.counts[2].argmax())
        of_cell = scores.counts[2, cell] * times
        variance = of_cell * 0.2 * 0.8 * (n - of_cell) / (n - 1)
        assert parts[:, 0, 2, cell].var() / variance == pytest.approx(1, abs=0.3)


def cheapest_threshold(y, s):
    """The threshold of least cost; of equal ones the nearest to 1/6, then the larger."""
    costs, candidates = priced_thresholds(y, s, 5, 1)
    tied = [u for u, cost in zip(candidates, costs, strict=True) if cost <= min(costs) + 1e-12]
    return max(tied, key=lambda u: (-round(abs(u - 1 / 6), 12), u))


def test_the_honest_cost_is_that_of_a_loop_over_folds():
    """Its interval is that of the mean counts, with a limit widened by what the repeats differ by."""
    y, s = drawn(n=150)
    evaluation = evaluate(y, y_prob=s)
    found = evaluation.threshold(MISS_5)
    scores = evaluation.statistics.scores
    outcomes = []
    for parts in split_counts(scores.counts):
        free, alarms, misses = 0, 0, 0
        for own in parts:
            rest = (parts.sum(axis=0) - own).astype(int)
            others = [np.repeat(scores.values, rest[side]) for side in (0, 2)]
            chosen = cheapest_threshold(
                np.repeat([1, 0], [len(others[0]), len(others[1])]), np.concatenate(others)
            )
            reached = scores.values >= chosen
            misses += own[0, ~reached].sum()
            alarms += own[2, reached].sum()
            free += own[0, reached].sum() + own[2, ~reached].sum()
        outcomes.append((free, alarms, misses))
    mean = np.mean(outcomes, axis=0)
    price = np.array([0, 1, 5])
    each = np.array(outcomes) @ price / 150
    assert found.cost == pytest.approx(each.mean())
    assert (found.held_out.fp, found.held_out.fn) == pytest.approx((mean[1], mean[2]))
    variance = (mean @ price**2 / 150 - found.cost**2) / 150
    factor = 1 + each.var(ddof=1) / variance
    assert factor > 1.01
    assert (found.low, found.high) == pytest.approx(profile_interval(price, mean / factor))


def test_honest_costs_are_dearer_and_apparent_ones_a_warning():
    y, s = drawn(n=200)
    found = evaluate(y, y_prob=s).threshold({(1, 0): 10, (0, 1): 1})
    assert found.cost > found.apparent
    assert found.low < found.cost < found.high
    assert f"{found.apparent:.3g}, which is too favourable" in found.sentence()
    assert found.sentence().startswith(
        f"{found.value:.3g} is the threshold of least cost for “1”: a decision costs"
    )
    assert sum(found.held_out) == pytest.approx(200)
    assert found == evaluate(y, y_prob=s).threshold({(1, 0): 10, (0, 1): 1})  # the seed is fixed


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_neither_order_nor_repetition_of_rows_matters(seed):
    y, s = drawn(seed, n=60, digits=1)
    if y.min() == y.max():
        return
    rng = np.random.default_rng(seed)
    times = rng.integers(1, 4, 60)
    order = rng.permutation(60)
    first = evaluate(y, y_prob=s, labels=[0, 1]).threshold(MISS_5)
    other = evaluate(y[order], y_prob=s[order], labels=[0, 1]).threshold(MISS_5)
    assert other.value == first.value
    for name in ("cost", "low", "high", "apparent"):
        assert getattr(other, name) == pytest.approx(getattr(first, name))
    weighted = evaluate(y, y_prob=s, labels=[0, 1], sample_weight=times).threshold(MISS_5)
    repeated = evaluate(np.repeat(y, times), y_prob=np.repeat(s, times), labels=[0, 1]).threshold(
        MISS_5
    )
    assert weighted == repeated


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_with_a_calibration_set_the_evaluated_rows_are_priced_as_they_are(seed):
    y, _, p = random_problem(seed, 200, skill=1.4)
    other_y, _, other_p = random_problem(seed + 1, 150, skill=1.4)
    evaluation = evaluate(y, y_prob=p, grouping=TWO)
    found = evaluation.threshold(TWO_COSTS, calibration=(other_y, other_p))
    alone = evaluate(other_y, y_prob=other_p, grouping=TWO)
    assert found.value == alone.threshold(TWO_COSTS).value
    assert found.apparent == pytest.approx(alone.threshold(TWO_COSTS).apparent)
    assert evaluation.threshold(TWO_COSTS, calibration=alone) == found
    priced = evaluate(
        y, predicted(p, found.value), labels=[0, 1, 2, 3], grouping=TWO, costs=TWO_COSTS
    )
    assert found.cost == pytest.approx(priced.metrics["cost/mean"])
    np.testing.assert_allclose((found.low, found.high), priced.intervals["cost/mean"], rtol=1e-9)
    assert "on the evaluated rows" in found.sentence()


def test_held_out_metrics_have_the_intervals_of_their_kind():
    y, s = drawn(n=300)
    calibration = drawn(7, n=200)
    found = evaluate(y, y_prob=s).threshold(
        maximize="binary/recall", subject_to="binary/precision >= 0.5", calibration=calibration
    )
    judged = evaluate(y, (s >= found.value).astype(int))
    for part, name in ((found.objective, "binary/recall"), (found.bounded, "binary/precision")):
        assert part.value == pytest.approx(judged.metrics[name])
        np.testing.assert_allclose((part.low, part.high), judged.intervals[name], rtol=1e-9)
    crossed = evaluate(y, y_prob=s).threshold(maximize="binary/matthews_corrcoef")
    assert crossed.low < crossed.objective.value < crossed.high
    assert crossed.objective.value < crossed.apparent


def test_a_stored_evaluation_chooses_as_the_one_that_was_stored(tmp_path):
    y, s = drawn()
    evaluation = evaluate(y, y_prob=s)
    evaluation.save(tmp_path / "rows")
    assert Evaluation.load(tmp_path / "rows", rows=False).threshold(MISS_5) == evaluation.threshold(
        MISS_5
    )


def test_folds_without_a_threshold_are_counted():
    y, s = drawn(7, n=60)
    found = evaluate(y, y_prob=s).threshold(
        maximize="binary/recall", subject_to="binary/precision >= 0.83"
    )
    assert any("folds are left out" in text for text in found.warnings)
    assert 0 < sum(found.held_out) < 60


def test_a_metric_that_no_held_out_row_defines_is_undefined():
    """The calibration set chooses a threshold that none of the evaluated scores reaches."""
    y = np.repeat([1, 0], [5, 10])
    calibration = (np.repeat([1, 0], [50, 50]), np.repeat([0.9, 0.8], [50, 50]))
    found = evaluate(y, y_prob=np.full(15, 0.3)).threshold(
        maximize="binary/recall", subject_to="binary/precision >= 0.8", calibration=calibration
    )
    assert found.value == 0.9
    assert found.objective.value == 0
    assert math.isnan(found.bounded.value)
    assert math.isnan(found.bounded.low)
    assert math.isnan(found.bounded.high)
    assert str(found.bounded) == "undefined"


def test_scores_by_cell_have_edges_for_thresholds():
    y, s = drawn(n=3000)
    evaluation = evaluate(y, y_prob=s)

    by_cell = replace(
        evaluation,
        statistics=replace(evaluation.statistics, scores=evaluation.statistics.scores.to_grid()),
    )
    found = by_cell.threshold(MISS_5)
    assert any("counted on a grid" in text for text in found.warnings)
    frame = found.to_frame()
    for _, row in frame.iloc[[0, 5, 100, -1]].iterrows():
        # edges part the scores exactly
        assert row["fp"] == ((s >= row["threshold"]) & (y == 0)).sum()
    calibration = drawn(9, n=50)
    moved = by_cell.threshold(MISS_5, calibration=calibration)
    chosen = evaluation.threshold(MISS_5, calibration=calibration)
    assert abs(moved.value - chosen.value) < 0.01
    decided = evaluate(y, (s >= moved.value).astype(int), costs=MISS_5)
    assert moved.cost == pytest.approx(decided.metrics["cost/mean"])


@pytest.mark.slow
def test_extreme_models():
    y = np.repeat([0, 1], 50)
    perfect = evaluate(y, y_prob=np.where(y == 1, 0.95, 0.05)).threshold({(1, 0): 3, (0, 1): 1})
    assert (perfect.value, perfect.cost, perfect.apparent) == (0.95, 0, 0)
    assert perfect.low == 0 < perfect.high < 0.1
    assert "too favourable" not in perfect.sentence()
    always = evaluate(y, y_prob=np.full(100, 0.4)).threshold({(1, 0): 3, (0, 1): 1})
    assert (always.value, always.cost) == (0.4, 0.5)
    never = evaluate(y, y_prob=np.full(100, 0.4)).threshold({(1, 0): 1, (0, 1): 3})
    assert math.isinf(never.value)
    assert never.sentence().startswith("predicting “1” for no row gives")
    assert never.to_dict()["threshold"] == "infinity"
    json.dumps(never.to_dict())
    for found in (perfect, always, never):
        assert found.figure().axes


# -- bad input -------------------------------------------------------------------------------------------------


def of_scores():
    return evaluate(B20, y_prob=D20)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: evaluate(B20, B20).threshold(MISS_5),
            r"needs the probabilities of two groups \(y_prob\)",
        ),
        (
            lambda: evaluate(B20, y_score=D20 - 3).threshold(MISS_5),
            r"needs the probabilities of two groups \(y_prob\)",
        ),
        (
            lambda: evaluate([0, 1, 2], [0, 1, 2]).threshold(MISS_5),
            "needs two classes or a grouping step",
        ),
        (
            lambda: evaluate([0, 0], y_prob=[0.1, 0.2], labels=[0, 1]).threshold(MISS_5),
            "both groups, got 0 pos",
        ),
        (lambda: of_scores().threshold(), "needs costs, or a metric to maximize, got neither"),
        (
            lambda: of_scores().threshold(MISS_5, maximize="binary/recall"),
            "pass either costs or maximize",
        ),
        (lambda: of_scores().threshold(maximize="binary/recal"), "did you mean"),
        (
            lambda: of_scores().threshold(maximize="binary/roc_auc"),
            "must be a metric that is computed from the six counts",
        ),
        (
            lambda: of_scores().threshold(maximize="multiclass/accuracy"),
            "must be a metric that is computed from the six counts",
        ),
        (lambda: of_scores().threshold(maximize="binary/fpr"), "for which higher is better"),
        (
            lambda: of_scores().threshold(MISS_5, subject_to="binary/precision"),
            "expected a comparison",
        ),
        (
            lambda: of_scores().threshold(MISS_5, subject_to="binary/roc_auc >= .5"),
            "metric that is computed from the six counts",
        ),
        (lambda: of_scores().threshold(MISS_5, subject_to="binary/fp <= 3"), "must bound a share"),
        (
            lambda: of_scores().threshold(MISS_5, subject_to="binary/precision.low >= .5"),
            "set a bound on the metric itself, with a margin, such as 'binary/precision >= 0.93' for 0.9",
        ),
        (
            lambda: evaluate(B20, y_prob=D20, sample_weight=D20 + 1).threshold(MISS_5),
            "rows with sampling weights: choose it on rows without weights, and evaluate",
        ),
        (
            lambda: evaluate(B20, y_prob=D20, groups=np.arange(20) // 2).threshold(MISS_5),
            r"rows in clusters \(groups=\): choose it on one row of each cluster, and evaluate",
        ),
        (
            lambda: of_scores().threshold(
                MISS_5, calibration=evaluate(B20, y_prob=D20, groups=np.arange(20) // 2)
            ),
            "choose it on one row of each cluster",
        ),
        (
            lambda: of_scores().threshold(MISS_5, subject_to="binary/recall.difference >= 0"),
            "must bound the value of a metric for all rows",
        ),
        (
            lambda: of_scores().threshold(
                maximize="binary/specificity", subject_to="binary/f1 >= 0.9"
            ),
            r"no threshold has .* >= 0.9: binary/f1 is at most 0.782609, at the threshold 0.35",
        ),
        (
            lambda: of_scores().threshold(maximize="binary/recall", subject_to="binary/fdr < 0"),
            r"binary/fdr is at least 0, at the threshold",
        ),
        (lambda: of_scores().threshold({(1, 0): math.nan}), "finite number"),
        (lambda: of_scores().threshold({(7, 0): 1}), "must be for the classes"),
        (lambda: of_scores().threshold(MISS_5, calibration=[0, 1, 0]), "calibration must be"),
        (
            lambda: of_scores().threshold(MISS_5, calibration=([0, 0], [0.1, 0.2])),
            "both groups of the calibration set",
        ),
        (
            lambda: of_scores().threshold(MISS_5, calibration=([0, 1], [-0.1, 0.2])),
            "calibration scores",
        ),
        (
            lambda: of_scores().threshold(MISS_5, calibration=([0, 1], [math.nan, 0.2])),
            "calibration scores",
        ),
        (lambda: of_scores().threshold(MISS_5, calibration=([0, 5], [0.1, 0.2])), "calibration y"),
        (
            lambda: of_scores().threshold(MISS_5, calibration=evaluate([0, 2], y_prob=[0.1, 0.9])),
            "the same labels",
        ),
    ],
)
def test_bad_input_is_told_with_rule_and_value(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call()


def test_costs_of_classes_that_differ_inside_a_group_are_refused():
    y, _, p = random_problem(1, skill=1.4)
    evaluation = evaluate(y, y_prob=p, grouping=TWO)
    with pytest.raises(
        ValueError, match=r"the two groups “neg” and “pos”.*FN must cost the same, got 1 to 9"
    ):
        evaluation.threshold({(0, 2): 9})
    assert math.isnan(evaluation.price({(0, 2): 9}).threshold(maximize="binary/f1").cost)


# -- looks -----------------------------------------------------------------------------------------------------


def test_the_figure_draws_the_numbers_that_the_sentence_says():
    y, s = drawn(n=300)
    found = evaluate(y, y_prob=s).threshold(MISS_5)
    figure = found.figure()
    top, bottom = figure.axes
    curve = next(line for line in top.lines if str(line.get_label()).startswith("cost on the rows"))
    np.testing.assert_allclose(curve.get_ydata()[1:], found.to_frame()["cost"][::-1])
    said = " ".join(text.get_text() for text in bottom.get_legend().get_texts())
    assert f"chosen: {found.value:.3g}" in said
    assert f"{found.cost:.3g} [{found.low:.3g}, {found.high:.3g}]" in said.replace("\n", " ")
    assert f"{found.cost:.3g} [{found.low:.3g}, {found.high:.3g}]" in found.sentence()
    by_metric = (
        evaluate(y, y_prob=s)
        .threshold(maximize="binary/f1", subject_to="binary/precision >= 0.5")
        .figure()
    )
    assert len(by_metric.axes) == 1
    said = " ".join(text.get_text() for text in by_metric.axes[0].get_legend().get_texts())
    assert "required: precision ≥ 0.5" in said
    assert "F1 on rows that did not choose" in said


def test_thresholds_near_an_end_are_drawn_over_log_odds():
    y = np.zeros(20_000, dtype=int)
    y[:20] = 1
    s = random_scores(y, 4.0, shift=-5.0)
    found = evaluate(y, y_prob=s).threshold({(1, 0): 200, (0, 1): 1})
    ax = found.figure().axes[0]
    assert [text.get_text() for text in ax.get_xticklabels()][-1] in ("10%", "50%")
    low, high = ax.get_xlim()
    assert ax.get_xscale() == "logit"
    assert 0 < low < found.value < high < 1


def test_the_figure_refuses_shapes_that_differ():
    with pytest.raises(ValueError, match="must have the shape of thresholds"):
        plot_thresholds([0.1, 0.2], value=0.1, cost=[1.0])
    with pytest.raises(ValueError, match="must have the shape of thresholds"):
        plot_thresholds([0.1, 0.2], value=0.1)


def test_what_people_see():
    found = of_scores().threshold(MISS_5)
    assert isinstance(found, Threshold)
    assert repr(found).startswith("Threshold(0.1: cost/mean ")
    assert "apparent 0.45" in repr(found)
    assert "<li>" in found._repr_html_()  # of fewer than 20 rows
    assert any("the smaller group has 10 rows" in text for text in found.warnings)
    assert found.to_dict()["metrics"]["cost/mean"]["apparent"] == pytest.approx(0.45)


# -- predictions by a threshold --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_threshold_makes_the_predictions():
    y, _, p = random_problem(1, skill=1.4)
    for threshold in (0.0, 0.37, 0.9, 1.0, math.inf):
        found = evaluate(y, y_prob=p, grouping=TWO, threshold=threshold)
        direct = evaluate(y, predicted(p, threshold), y_prob=p, grouping=TWO)
        np.testing.assert_array_equal(found.rows.predicted, predicted(p, threshold))
        assert found.statistics == direct.statistics
        assert found.metrics == pytest.approx(direct.metrics, nan_ok=True)
        assert found.decision_threshold == threshold
    assert evaluate(y, y_prob=p, grouping=TWO).decision_threshold is None


def test_the_chosen_threshold_is_taken_as_it_is_and_reaches_what_it_showed():
    y, s = drawn()
    plain = evaluate(y, y_prob=s)
    chosen = plain.threshold(MISS_5)
    decided = evaluate(y, y_prob=s, threshold=chosen, costs=MISS_5)
    assert decided.metrics["cost/mean"] == pytest.approx(chosen.apparent)
    np.testing.assert_array_equal(decided.rows.predicted, s >= chosen.value)
    assert decided.threshold(MISS_5) == chosen
    assert decided.metrics["binary/roc_auc"] == plain.metrics["binary/roc_auc"]
    # the scores are those of the first class then
    first = evaluate(y, y_prob=s, positive=0, threshold=0.8)
    np.testing.assert_array_equal(first.rows.predicted == 0, s >= 0.8)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_every_way_to_evaluate_decides_alike(tmp_path, weighted):
    import pandas as pd

    y, _, p = random_problem(3, 400, skill=1.4)
    w = np.random.default_rng(0).exponential(size=400) if weighted else None
    direct = evaluate(y, y_prob=p, grouping=TWO, threshold=0.4, sample_weight=w)
    seen = [Accumulator([0, 1, 2, 3], grouping=TWO, threshold=0.4) for _ in range(2)]
    for start in range(0, 400, 50):
        rows = slice(start, start + 50)
        more = {} if w is None else {"sample_weight": w[rows]}
        seen[start >= 200].update(y[rows], y_prob=p[rows], **more)
    merged = (seen[0] + seen[1]).compute()
    frame = pd.DataFrame(p, columns=[f"p_{k}" for k in range(4)]).assign(y=y)
    frame = frame if w is None else frame.assign(w=w)
    frame.to_parquet(tmp_path / "rows.parquet")
    table = evaluate_table(
        str(tmp_path / "rows.parquet"),
        y_true="y",
        y_prob="p_*",
        sample_weight=None if w is None else "w",
        grouping=TWO,
        threshold=0.4,
    )
    for other in (merged, table):
        np.testing.assert_allclose(other.confusion_matrix.counts, direct.confusion_matrix.counts)
        assert other.decision_threshold == 0.4
        assert other.metrics["binary/recall"] == pytest.approx(direct.metrics["binary/recall"])


@pytest.mark.slow
def test_a_decision_is_stored_compared_and_merged(tmp_path):
    y, s = drawn()
    for threshold in (0.3, math.inf):
        found = evaluate(y, y_prob=s, threshold=threshold)
        found.save(tmp_path / str(threshold))
        assert Evaluation.load(tmp_path / str(threshold), rows=False) == found
        assert Evaluation.load(tmp_path / str(threshold)).decision_threshold == threshold
    found = evaluate(y, y_prob=s, threshold=0.3)
    assert (
        "With a threshold of 0.300, the model finds "
        in found.report(tmp_path / "r.html").read_text()
    )
    assert found != evaluate(y, (s >= 0.3).astype(int), y_prob=s)
    assert (found + found).decision_threshold == 0.3
    with pytest.raises(ValueError, match=r"same threshold to be merged, got 0.3 and 0.4"):
        found + evaluate(y, y_prob=s, threshold=0.4)
    # models with thresholds of their own are ranked together
    assert found.design == evaluate(y, y_prob=s).design
    text = json.loads(found.to_json())
    for wrong in (-1, 2, "never", [0.3], True):
        with pytest.raises(ValueError, match=r"damaged.*threshold must"):
            Evaluation.from_data(text | {"threshold": wrong})


def test_regrouping_keeps_the_predictions_and_says_so_where_the_groups_are_others():
    y, _, p = random_problem(1, skill=1.4)
    found = evaluate(y, y_prob=p, grouping=TWO, threshold=0.4)
    same = found.regroup(Grouping({"low": [2, 3], "high": [0, 1]}, name="other"))
    assert same.decision_threshold == 0.4
    other = found.regroup(Grouping({"even": [0, 2], "odd": [1, 3]}, name="parity"))
    assert other.decision_threshold is None
    assert other.confusion_matrix == found.confusion_matrix
    assert any(
        "threshold for the score of another positive group" in text for text in other.warnings
    )
    again = other.regroup(TWO)
    assert any(
        "threshold for the score of another positive group" in text for text in again.warnings
    )


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: evaluate(B20, y_prob=D20, threshold=1.5),
            r"must be between 0 and 1, or infinity, got 1.5",
        ),
        (lambda: evaluate(B20, y_prob=D20, threshold=-0.1), "must be between 0 and 1"),
        (
            lambda: evaluate(B20, y_prob=D20, threshold=math.nan),
            "must be finite, or infinity, got nan",
        ),
        (
            lambda: evaluate(B20, y_prob=D20, threshold="0.5"),
            "must be a number or a Threshold, got '0.5'",
        ),
        (lambda: evaluate(B20, y_prob=D20, threshold=True), "must be a number or a Threshold"),
        (lambda: evaluate(B20, B20, threshold=0.5), "from the scores; got y_pred"),
        (
            lambda: evaluate(
                np.arange(20) % 3, y_score=np.eye(3)[np.arange(20) % 3], threshold=0.5
            ),
            "threshold=0.5 needs y_prob, because decision values of 3 classes cannot be summed; pass .* as y_pred",
        ),
        (
            lambda: evaluate(B20, B20, y_prob=D20, threshold=0.5),
            "or y_score and no y_pred, .*; got y_pred and y_prob",
        ),
        (
            lambda: evaluate([0, 1, 2], y_prob=np.eye(3), threshold=0.5),
            r"threshold=0.5 needs two classes or a grouping step of two groups, got 3 classes",
        ),
        (lambda: Accumulator([0, 1, 2], threshold=0.5), "needs two classes"),
        (
            lambda: Accumulator([0, 1], threshold=0.5).update([0], [0]),
            "or y_score and no y_pred, .*; got y_pred",
        ),
    ],
)
def test_a_threshold_that_cannot_decide_is_refused(call, text):
    with pytest.raises((TypeError, ValueError), match=text):
        call()
