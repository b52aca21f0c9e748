"""Costs of a confusion matrix: the vectors of the specification, laws, files, bad input."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import cmtrack
from cmtrack import Costs, Evaluation, Grouping, compare, evaluate, paired_differences
from cmtrack.comparison import break_even
from cmtrack.report import verdict
from cmtrack.statistics import Design
from support.problems import random_guesses, random_labels, random_problem

TV1 = np.array([[7, 2, 1, 0], [1, 12, 3, 2], [0, 4, 9, 1], [2, 1, 0, 15]])
TV1_COSTS = np.abs(np.subtract.outer(np.arange(4), np.arange(4))).astype(float)
TV1_COSTS[3, 0], TV1_COSTS[0, 0] = 10, -1
TV4 = np.array([[5, 2, 1, 0], [1, 6, 0, 2], [1, 0, 7, 3], [0, 2, 1, 9]])
TV4_GROUPS = Grouping({"neg": [2, 3], "pos": [0, 1]}, "strict", name="two")
TV4_COSTS = Costs({("pos", "neg"): 5, ("neg", "pos"): 1}, mismatch={"pos": 2, "neg": 0.5})


def rows_of(counts):
    actual, predicted = np.nonzero(counts)
    times = counts[actual, predicted]
    return np.repeat(actual, times), np.repeat(predicted, times)


def costs_in_words(evaluation):
    """The sentences on costs of an evaluation's verdict."""
    return [sentence for sentence in verdict(evaluation) if sentence.startswith("A decision costs")]


def log_likelihood_ratio(mean, values, weights):
    """Twice the logarithm by which weights of values are less likely where their mean is another one (Owen 1988)."""
    gap = values - mean
    ends = sorted((-1 / gap.max(), -1 / gap.min()))
    slope = brentq(
        lambda x: weights @ (gap / (1 + x * gap)), ends[0] * 0.999999, ends[1] * 0.999999
    )
    return 2 * float(weights @ np.log1p(slope * gap))


def priced(counts, costs, **options):
    return evaluate(*rows_of(counts), labels=list(range(len(counts))), costs=costs, **options)


@pytest.fixture(scope="module")
def tv1():
    return priced(TV1, Costs.from_matrix(TV1_COSTS, range(4)))


def test_the_vector_of_a_cost_matrix(tv1):
    assert tv1.metrics["cost/mean"] == pytest.approx(0.5333333333, abs=5e-11)
    assert tv1.standard_errors["cost/mean"] == pytest.approx(0.2454776146, abs=5e-11)
    assert tv1.metrics["cost/saved"] == pytest.approx(0.3636363636, abs=5e-11)
    assert tv1.standard_errors["cost/saved"] == pytest.approx(0.2268256727, abs=5e-11)
    # the best constant answer, and the best of all, decide what is saved
    actual, _ = rows_of(TV1)
    answers = [np.full(60, k) for k in range(4)] + [actual]
    answered = [evaluate(actual, own, labels=range(4), costs=tv1.costs) for own in answers]
    np.testing.assert_allclose(
        [one.metrics["cost/mean"] for one in answered],
        [3.6, 1.0, 0.9333333333, 1.3333333333, -0.1666666667],
        atol=5e-11,
    )
    frame = tv1.costs_by_class()
    np.testing.assert_allclose(
        frame["cost"], [-0.3, 0.4444444444, 0.3571428571, 1.2222222222], atol=5e-11
    )
    assert frame["part"].sum() == pytest.approx(tv1.metrics["cost/mean"])
    moved = tv1.cost_at([0.4, 0.3, 0.2, 0.1])
    assert moved[:2] == (
        pytest.approx(0.2069841270, abs=5e-11),
        pytest.approx(0.1668174092, abs=5e-11),
    )
    assert moved[2:] == pytest.approx(
        [moved[0] - 1.959964 * moved[1], moved[0] + 1.959964 * moved[1]], rel=1e-6
    )
    assert tv1.cost_at({0: 0.4, 1: 0.3, 2: 0.2, 3: 0.1}) == moved
    own_shares = TV1.sum(axis=1) / TV1.sum()
    assert tv1.cost_at(own_shares).value == pytest.approx(tv1.metrics["cost/mean"])
    with pytest.raises(ValueError, match="between 0 and 1 that sum to 1"):
        tv1.cost_at([0.4, 0.3, 0.2, 0.2])
    with pytest.raises(ValueError, match="needs costs, got none"):
        evaluate([0, 1], [0, 1]).cost_at([0.5, 0.5])


Y8 = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2])
P8 = np.array([
    [.7, .2, .1], [.5, .4, .1], [.6, .1, .3], [.4, .35, .25], [.3, .6, .1], [.2, .5, .3], [.45, .4, .15], [.1, .3, .6],
    [.3, .4, .3],
])  # fmt: skip
COSTS8 = Costs.from_matrix([[0, 1, 4], [2, 0, 1], [6, 3, 0]], range(3))
"""The second part of test vector 23: rows of test vector 8."""


def test_the_vector_of_decisions_from_probabilities():
    found = evaluate(Y8, y_prob=P8, costs=COSTS8)
    metrics, errors = found.metrics, found.standard_errors
    decided = [0, 1, 1, 1, 1, 1, 1, 2, 1]  # row 1 is a tie of 1.0 and 1.0
    each = COSTS8.matrix((0, 1, 2))[Y8, decided]
    assert metrics["cost/bayes"] == pytest.approx(each.mean())
    np.testing.assert_allclose(found.influence("cost/bayes"), each - each.mean(), atol=1e-12)
    assert metrics["cost/bayes"] == pytest.approx(0.6666666667, abs=5e-11)
    assert metrics["cost/expected"] == pytest.approx(0.9944444444, abs=5e-11)
    assert (metrics["cost/gap"], errors["cost/gap"]) == (
        pytest.approx(-0.3277777778, abs=5e-11),
        pytest.approx(0.2823087259, abs=5e-11),
    )
    assert metrics["cost/mean"] == pytest.approx(0.5555555556, abs=5e-11)
    difference = found.influence("cost/bayes") - found.influence("cost/mean")
    assert Design(len(difference)).standard_error(difference) == pytest.approx(
        0.2916299213, abs=5e-11
    )
    for name in ("cost/bayes", "cost/expected", "cost/gap"):
        assert found.rows.design.standard_error(found.influence(name)) == pytest.approx(
            errors[name], rel=1e-9
        )


@pytest.mark.slow
def test_decisions_need_the_probabilities(tmp_path):
    rows = evaluate(Y8, y_prob=P8)
    assert rows.price(COSTS8) == evaluate(Y8, y_prob=P8, costs=COSTS8)
    rows.save(tmp_path)
    past = Evaluation.load(tmp_path, rows=False).price(COSTS8)
    assert "cost/mean" in past.metrics
    assert "cost/bayes" not in past.metrics
    priced_before = replace(rows.price(COSTS8), rows=None)
    assert "cost/bayes" in priced_before.price(COSTS8).metrics
    assert "cost/bayes" not in priced_before.price(Costs({(0, 1): 7.0})).metrics
    w = np.arange(1, 10)
    whole = evaluate(Y8, y_prob=P8, costs=COSTS8, sample_weight=w)
    repeated = evaluate(np.repeat(Y8, w), y_prob=np.repeat(P8, w, axis=0), costs=COSTS8)
    half = evaluate(Y8, y_prob=P8, sample_weight=w / 2.0).price(COSTS8)
    for name in ("cost/bayes", "cost/expected", "cost/gap"):
        assert whole.metrics[name] == pytest.approx(repeated.metrics[name])
        assert whole.standard_errors[name] == pytest.approx(repeated.standard_errors[name])
        assert half.metrics[name] == pytest.approx(repeated.metrics[name])
        assert half.standard_errors[name] == pytest.approx(
            half.rows.design.standard_error(half.influence(name)), rel=1e-9
        )


@pytest.mark.parametrize("engine", ["parquet", "duckdb", "polars", "pandas", "accumulator"])
def test_decisions_are_counted_wherever_the_rows_are(engine, tmp_path):
    y, _, p = random_problem(4, n=3000, k=4)
    costs = Costs.from_matrix(
        np.random.default_rng(1).integers(1, 9, (4, 4)) * (1 - np.eye(4)), range(4)
    )
    whole = evaluate(y, y_prob=p, costs=costs)
    frame = pd.DataFrame({"y": y, **{f"p_{k}": p[:, k] for k in range(4)}})
    if engine == "accumulator":
        seen = cmtrack.Accumulator(range(4), costs=costs)
        for rows in np.array_split(np.arange(3000), 3):
            seen.update(y[rows], y_prob=p[rows])
        found = seen.compute()
    else:
        table = frame
        if engine == "parquet":
            table = str(tmp_path / "rows.parquet")
            frame.to_parquet(table)
        elif engine == "polars":
            table = pytest.importorskip("polars").from_pandas(frame)
        elif engine == "duckdb":
            table = pytest.importorskip("duckdb").from_df(frame)
        found = cmtrack.evaluate_table(
            table, y_true="y", y_prob="p_*", labels=range(4), costs=costs
        )
    for name in ("cost/mean", "cost/bayes", "cost/expected", "cost/gap"):
        assert found.metrics[name] == pytest.approx(whole.metrics[name], rel=1e-12), name
        assert found.standard_errors[name] == pytest.approx(
            whole.standard_errors[name], rel=1e-10
        ), name
        assert found.intervals[name] == pytest.approx(whole.intervals[name], rel=1e-9), name


def test_spans_have_no_costs():
    spans = cmtrack.evaluate_spans([("d", 0, 1, "a")], [("d", 0, 1, "a")])
    with pytest.raises(ValueError, match="costs need rows"):
        spans.price({("a", "b"): 1.0})


def test_the_vector_of_costs_of_groups_with_mismatches():
    found = priced(TV4, TV4_COSTS, grouping=TV4_GROUPS)
    assert found.metrics["cost/mean"] == pytest.approx(0.65, abs=5e-11)
    assert found.standard_errors["cost/mean"] == pytest.approx(0.2152033922, abs=5e-11)
    np.testing.assert_allclose(
        found.intervals["cost/mean"], [0.3255207825, 1.1797484641], atol=5e-11
    )


PROFILES = [
    ([[18, 2], [0, 0]], [[0, 1], [10, 0]], (0.0173600866, 1.0109014502)),
    ([[12, 6], [2, 0]], [[0, 1], [5, 0]], (0.3410490337, 1.6430593475)),
    ([[17, 3], [0, 0]], [[0, 1], [5, 0]], (0.0395786382, 0.6073622133)),
    ([[14, 3, 2], [1, 0, 0], [0, 0, 0]], [[0, 1, 2], [5, 0, 0], [0, 0, 0]], (0.2305756287, 1.3395813570)),
    ([[18, 2], [0, 0]], [[0, 1], [0, 0]], (0.0173600866, 0.2779423745)),
    ([[20, 0], [0, 0]], [[0, 1], [0, 0]], (0.0, 0.0915691155)),
    ([[8, 7], [5, 0]], [[0, 1], [5, 0]], (0.8647745905, 2.5722986041)),
]  # fmt: skip
"""Counts, their costs, and the interval of the mean cost: what no row costs counts as what one may."""


@pytest.mark.parametrize(("counts", "costs", "interval"), PROFILES)
def test_the_vectors_of_the_profile_likelihood(counts, costs, interval):
    found = priced(np.array(counts), Costs.from_matrix(costs, range(len(costs))))
    np.testing.assert_allclose(found.intervals["cost/mean"], interval, atol=5e-11)


def test_the_profile_likelihood_is_the_empirical_one_where_every_outcome_occurs():
    descriptive = pytest.importorskip("statsmodels.emplike.descriptive", exc_type=ImportError)
    counts, costs, _ = PROFILES[1]
    found = priced(np.array(counts), Costs.from_matrix(costs, [0, 1])).intervals["cost/mean"]
    known = descriptive.DescStat(np.repeat([0.0, 1, 5], [12, 6, 2])).ci_mean(epsilon=1e-10)
    np.testing.assert_allclose(found, known, rtol=1e-6)


def test_the_interval_of_few_or_fractional_counts_ends_inside_the_support():
    few = evaluate([0, 0], [0, 1], labels=[0, 1], sample_weight=[0.01, 0.01], costs={})
    low, high = few.intervals["cost/mean"]
    assert 0 <= low < 0.5 < high <= 1
    found = priced(np.array([[0, 7], [0, 0]]), Costs.from_matrix([[2, 2], [2, 2]], [0, 1]))
    assert found.intervals["cost/mean"] == (2.0, 2.0)
    gain = priced(np.array([[0, 9], [0, 0]]), Costs.from_matrix([[-3, 0], [0, 0]], [0, 1]))
    assert gain.intervals["cost/mean"][1] == 0.0


def test_the_report_says_what_decisions_cost_and_by_which_costs(tmp_path, tv1):
    said = tv1.report(tmp_path / "report.html").read_text()
    assert "A decision costs 0.533 [" in said
    assert "Always predicting “2”, the best constant answer, would cost 0.933" in said
    assert "which is not clearly different" in said
    assert "“3” as “0” 10" in said
    (sentence,) = costs_in_words(priced(np.diag([10, 10, 10]), {}))
    assert sentence.endswith(
        "would cost 0.667. The decisions save 100.0% [90.3, 100.0] of the avoidable cost."
    )
    (sentence,) = costs_in_words(priced(np.fliplr(np.diag([10, 1, 10])), {}))
    assert sentence.endswith(
        "the best constant answer, would cost 0.524, which is less (p = 0.013)."
    )
    (sentence,) = costs_in_words(priced(np.array([[5, 1], [0, 0]]), {}))
    assert sentence.endswith("would cost 0.000, the least possible cost.")
    assert costs_in_words(evaluate(*rows_of(TV1))) == []


def test_mean_cost_without_costs_of_ones_own_is_the_error_rate():
    found = priced(TV1, {})
    assert found.metrics["cost/mean"] == pytest.approx(1 - found.metrics["multiclass/accuracy"])
    assert found.metrics["cost/saved"] == pytest.approx(1 - (17 / 60) / (42 / 60))


def test_costs_of_groups_are_costs_of_classes():
    matrix = TV4_COSTS.matrix([0, 1, 2, 3], TV4_GROUPS)
    assert matrix.tolist() == [[0, 2, 5, 5], [2, 0, 5, 5], [1, 1, 0, 0.5], [1, 1, 0.5, 0]]
    relaxed = Grouping({"neg": [2, 3], "pos": [0, 1]}, name="two")
    assert TV4_COSTS.matrix([0, 1, 2, 3], relaxed)[:2, :2].tolist() == [[0, 0], [0, 0]]
    unsaid = Costs({("pos", "neg"): 5}, default=3)
    # no mismatch is free by oversight
    assert unsaid.matrix([0, 1, 2, 3], TV4_GROUPS)[0].tolist() == [0, 3, 5, 5]


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(0, 9), min_size=9, max_size=9).filter(lambda cells: sum(cells) > 0),
    st.lists(st.integers(-5, 20), min_size=9, max_size=9),
    st.lists(st.integers(-50, 50), min_size=3, max_size=3),
)
def test_a_constant_added_to_a_row_of_costs_leaves_what_is_saved(cells, costs, added):
    counts, matrix = np.array(cells).reshape(3, 3), np.array(costs, dtype=float).reshape(3, 3)
    one, other = (
        priced(counts, Costs.from_matrix(own, range(3))) for own in (matrix, matrix + np.c_[added])
    )
    for first, second in (
        (one.metrics, other.metrics),
        (one.standard_errors, other.standard_errors),
    ):
        assert first.get("cost/saved", -1.0) == pytest.approx(
            second.get("cost/saved", -1.0), abs=1e-9, nan_ok=True
        )
    if not math.isnan(one.metrics["cost/saved"]):
        assert one.metrics["cost/saved"] <= 1
    low, high = one.intervals["cost/mean"]
    assert matrix.min() - 1e-9 <= low <= one.metrics["cost/mean"] <= high <= matrix.max() + 1e-9


def test_whole_weights_are_repeated_rows_and_equal_fractions_are_rows(tv1):
    actual, predicted = np.nonzero(TV1)
    weights = TV1[actual, predicted]
    costs = Costs.from_matrix(TV1_COSTS, range(4))
    repeated = evaluate(actual, predicted, sample_weight=weights, costs=costs)
    halves = evaluate(*rows_of(TV1), sample_weight=np.full(60, 0.5), costs=costs)
    for name in ("cost/mean", "cost/saved"):
        for other in (repeated, halves):
            assert other.metrics[name] == pytest.approx(tv1.metrics[name])
            assert other.standard_errors[name] == pytest.approx(tv1.standard_errors[name])
            np.testing.assert_allclose(other.intervals[name], tv1.intervals[name], rtol=1e-9)


def test_fractional_weights_count_as_many_rows_as_kish_says():
    rng = np.random.default_rng(2)
    y, p, w = rng.integers(0, 3, 300), rng.integers(0, 3, 300), rng.exponential(1.0, 300)
    costs = Costs({(0, 2): 9})
    found = evaluate(y, p, sample_weight=w, costs=costs)
    matrix = costs.matrix([0, 1, 2])
    each = matrix[y, p]
    mean = float(w @ each / w.sum())
    assert found.metrics["cost/mean"] == pytest.approx(mean)
    assert found.standard_errors["cost/mean"] == pytest.approx(
        math.sqrt(w**2 @ (each - mean) ** 2) / w.sum()
    )
    kish = w * w.sum() / (w @ w)
    for end in found.intervals["cost/mean"]:
        assert log_likelihood_ratio(end, each, kish) == pytest.approx(3.841458820694124, rel=1e-6)


def test_clusters_have_walds_interval_from_their_sums():
    rng = np.random.default_rng(3)
    y, p = rng.integers(0, 3, 300), rng.integers(0, 3, 300)
    groups = np.repeat(np.arange(60), 5)
    found = evaluate(y, p, groups=groups, costs={(0, 2): 9})
    psi = found.influence("cost/mean")
    sums = np.bincount(groups, psi)
    error = math.sqrt(float(sums @ sums) * 60 / 59) / 300
    assert found.standard_errors["cost/mean"] == pytest.approx(error)
    low, high = found.intervals["cost/mean"]
    assert (low + high) / 2 == pytest.approx(found.metrics["cost/mean"])
    assert 1.95 < (high - low) / 2 / error < 2.1
    later = evaluate(y, p, groups=groups).price({(0, 2): 9})
    assert later == found


@pytest.mark.parametrize("name", ["cost/mean", "cost/saved"])
def test_influence_is_the_derivative_by_a_rows_weight(tv1, name):
    y, p = rows_of(TV1)
    psi, step = tv1.influence(name), 1e-4
    assert psi.mean() == pytest.approx(0, abs=1e-12)
    for row in (0, 8, 30, 45, 59):
        w = np.ones(60)
        ends = []
        for sign in (1, -1):
            w[row] = 1 + sign * step
            ends.append(evaluate(y, p, sample_weight=w, costs=tv1.costs).metrics[name])
        assert (ends[0] - ends[1]) / (2 * step) * 60 == pytest.approx(psi[row], abs=1e-5)


def test_a_perfect_answer_has_an_interval_and_no_avoidable_cost_has_a_reason():
    perfect = priced(np.diag([10, 10, 10]), Costs({(0, 2): 5}))
    assert perfect.metrics["cost/mean"] == 0
    assert perfect.metrics["cost/saved"] == 1
    assert perfect.intervals["cost/mean"] == (
        0,
        pytest.approx(5 * (1 - math.exp(-3.841458820694124 / 60))),
    )
    low, high = perfect.intervals["cost/saved"]
    assert low < 1 == high
    alone = priced(np.array([[5, 1], [0, 0]]), {})
    assert math.isnan(alone.metrics["cost/saved"])
    assert "best constant" in alone.undefined["cost/saved"]


def test_pricing_later_is_pricing_at_once_also_of_a_stored_evaluation(tmp_path, tv1):
    plain = evaluate(*rows_of(TV1))
    assert plain.price(tv1.costs) == tv1
    assert not any(name.startswith("cost/") for name in plain.metrics)
    plain.save(tmp_path / "plain")
    loaded = Evaluation.load(tmp_path / "plain", rows=False)
    assert loaded.costs is None
    assert loaded.price(tv1.costs).metrics == tv1.metrics
    assert loaded.price(tv1.costs).intervals == tv1.intervals
    tv1.save(tmp_path / "priced")
    again = Evaluation.load(tmp_path / "priced", rows=False)
    assert again == tv1
    assert again.costs == tv1.costs
    assert again.metrics["cost/mean"] == tv1.metrics["cost/mean"]


def test_pricing_adds_its_section_where_others_were_chosen():
    plain = evaluate(*rows_of(TV1), sections=["multiclass"])
    assert {name.split("/")[0] for name in plain.price({}).metrics} == {"multiclass", "cost"}


def test_clusters_without_rows_are_said_not_to_reach_the_costs(tmp_path):
    evaluate(*rows_of(TV1), groups=np.arange(60) // 2).save(tmp_path)
    found = Evaluation.load(tmp_path, rows=False).price({})
    assert "cost/mean" in found.standard_errors
    assert any("ignore which rows belong together" in note for note in found.warnings)


def test_evaluations_add_up_with_equal_costs_only(tv1):
    both = tv1 + tv1
    assert both.metrics["cost/mean"] == pytest.approx(tv1.metrics["cost/mean"])
    assert both.standard_errors["cost/mean"] == pytest.approx(
        tv1.standard_errors["cost/mean"] / math.sqrt(2)
    )
    with pytest.raises(ValueError, match="same costs to be merged"):
        tv1 + tv1.price({})


def test_regrouping_keeps_costs_of_classes_and_drops_those_of_groups_that_are_gone():
    other = Grouping({"low": [0, 1], "high": [2, 3]}, name="other")
    by_class = priced(TV4, {(0, 3): 7}, grouping=TV4_GROUPS).regroup(other)
    assert by_class.metrics["cost/mean"] == pytest.approx(13 / 40)
    by_group = priced(TV4, TV4_COSTS, grouping=TV4_GROUPS).regroup(other)
    assert by_group.costs is None
    assert "cost/mean" not in by_group.metrics
    assert any("cost/ is missing" in note for note in by_group.notes)
    assert by_group.price({("low", "high"): 2}).notes == ()


@pytest.mark.slow
def test_the_bootstrap_of_tables_knows_costs(tv1):
    low, high = tv1.count_intervals("bootstrap", n_resamples=200)["cost/mean"]
    assert low < tv1.metrics["cost/mean"] < high


# -- comparing ------------------------------------------------------------------------------------------------------


def test_runs_are_ranked_by_their_cost_and_those_priced_differently_stand_apart():
    y = random_labels(400, 3, 5)
    good, bad = random_guesses(y, 3, 0.8, 6), random_guesses(y, 3, 0.3, 7)
    costs = {(0, 2): 9}
    runs = {"bad": evaluate(y, bad, costs=costs), "good": evaluate(y, good, costs=costs)}
    ranked = compare(runs, rank_by="cost/mean")
    assert ranked.best.name == "good"
    assert len(ranked.rankings) == 1
    apart = compare(runs | {"other": evaluate(y, good, costs={(0, 2): 8})}, rank_by="cost/mean")
    assert len(apart.rankings) == 2
    assert "with different costs" in " ".join(apart.notes)
    together = compare(
        runs | {"other": evaluate(y, good, costs={(0, 2): 8})}, rank_by="multiclass/accuracy"
    )
    assert len(together.rankings) == 1


@pytest.mark.slow
def test_a_comparison_prices_its_runs(tmp_path):
    y = random_labels(400, 3, 5)
    good, bad = random_guesses(y, 3, 0.8, 6), random_guesses(y, 3, 0.3, 7)
    runs = {"bad": evaluate(y, bad), "good": evaluate(y, good, costs={(0, 2): 8})}
    costs = Costs({(0, 2): 9}, name="2026")
    compared = compare(runs, rank_by="cost/mean", costs=costs, require="cost/saved > -9")
    assert [run.name for run in compared.rankings[0].runs] == ["good", "bad"]
    assert (
        compared.best.evaluation.metrics["cost/mean"]
        == evaluate(y, good, costs=costs).metrics["cost/mean"]
    )
    said = compared.report(tmp_path / "review.html").read_text()
    assert "The costs: “2026”: “0” as “2” 9; other wrong pairs 1." in said
    assert "costs=Costs.from_dict({" in said.replace("&#39;", "'").replace("&#x27;", "'")
    assert compare(runs, rank_by="cost/mean", costs={(0, 2): 9}).best.name == "good"
    with pytest.raises(TypeError, match="costs must be Costs, a file, or map"):
        compare(runs, costs=3)


def test_differences_of_costs_need_equal_costs():
    one, other = (
        evaluate(*rows_of(TV1), costs={(0, 2): 9}),
        evaluate(*rows_of(TV1), costs={(0, 2): 8}),
    )
    assert not any(row.metric.startswith("cost/") for row in paired_differences(one, other).rows)
    with pytest.raises(ValueError, match="need the same costs in both evaluations"):
        paired_differences(one, other, metrics=["cost/mean"])
    (row,) = paired_differences(one, other.price({(0, 2): 9}), metrics=["cost/mean"]).rows
    assert (row.difference, row.standard_error) == (0, 0)


def test_a_run_holds_which_costs_it_was_priced_by(tmp_path):
    from cmtrack.tracking import build_into

    one = evaluate(*rows_of(TV1), costs={(0, 2): 9})
    package = build_into(one, tmp_path / "one", figures=False)
    assert package.tags["cmtrack.costs"] == dict(one.design)["costs"]
    assert package.metrics["cost/mean"] == one.metrics["cost/mean"]
    assert (
        "cmtrack.costs"
        not in build_into(evaluate(*rows_of(TV1)), tmp_path / "none", figures=False).tags
    )


# -- break-even -----------------------------------------------------------------------------------------------------


def two_models(**options):
    """The 400 rows of the specification: (error of the first, error of the second)."""
    truth = {"FN": 1, "FP": 0}
    rows = [
        ("FN", "FN", 9),
        ("FN", "", 3),
        ("", "FN", 11),
        ("FP", "FP", 6),
        ("FP", "", 24),
        ("", "FP", 2),
        ("", "", 345),
    ]
    y = np.concatenate([np.full(n, truth.get(a or b, 0)) for a, b, n in rows])
    wrong = [np.concatenate([np.full(row[2], bool(row[side])) for row in rows]) for side in (0, 1)]
    return [evaluate(y, np.where(own, 1 - y, y), positive=1, **options) for own in wrong]


def test_the_vector_of_the_break_even():
    found = break_even(*two_models())
    assert (found.false_alarms, found.misses) == (pytest.approx(0.055), pytest.approx(-0.02))
    assert found.value == pytest.approx(2.75)
    np.testing.assert_allclose(found.covariance, (1.549375e-4, 2.75e-6, 8.65e-5), rtol=1e-9)
    assert found.kind == "interval"
    np.testing.assert_allclose(found.pieces, [(1.1330964360, 31.6686017344)], atol=5e-10)
    expected = (
        "“new” is cheaper than “old” if a miss costs more than 2.75 [1.13, 31.7] false alarms."
    )
    assert found.sentence("new", "old") == expected
    back = break_even(*reversed(two_models()))
    assert back.sentence("old", "new") == expected
    chosen = break_even(*two_models(sections=["multiclass"]))
    assert chosen.pieces == found.pieces


def test_the_break_even_is_where_the_costs_are_equal():
    one, other = two_models()
    costs = {(1, 0): 2.75, (0, 1): 1}
    assert one.price(costs).metrics["cost/mean"] == pytest.approx(
        other.price(costs).metrics["cost/mean"]
    )


def test_the_break_even_knows_weights_and_groups():
    one = break_even(*two_models())
    twice = break_even(*two_models(sample_weight=np.full(400, 2)))
    np.testing.assert_allclose(np.array(twice.covariance) * 2, one.covariance)
    pairs = break_even(*two_models(), groups=np.arange(400) // 2)
    assert pairs.value == one.value
    assert pairs.covariance[0] > one.covariance[0]


@pytest.mark.parametrize(
    ("alarms", "misses", "kind", "pieces"),
    [
        ((24, 2), (3, 11), "interval", 1),
        ((3, 2), (3, 11), "down to 0", 1),
        ((24, 2), (5, 6), "up to infinity", 1),
        ((3, 2), (5, 6), "every ratio", 1),
        ((24, 2), (11, 3), "empty", 0),
        ((5, 1), (5, 1), "two pieces", 2),
    ],
)
def test_the_form_of_the_set_is_said(alarms, misses, kind, pieces):
    """Of 400 rows those that only the first, or only the second, gets wrong, by kind of error."""
    y = np.repeat([0, 1], 200)
    sides = [y.copy(), y.copy()]
    for start, (only_first, only_second) in ((0, alarms), (200, misses)):
        middle = start + only_first
        sides[0][start:middle] ^= 1
        sides[1][middle : middle + only_second] ^= 1
    found = break_even(*(evaluate(y, own, positive=1) for own in sides))
    assert found.kind == kind
    assert len(found.pieces) == pieces
    of_alarms, joint, of_misses = found.covariance
    ratios = np.geomspace(1e-3, 1e3, 4001)
    gap = found.false_alarms + ratios * found.misses
    inside = gap**2 <= 1.959963984540054**2 * (
        of_alarms + 2 * ratios * joint + ratios**2 * of_misses
    )
    told = np.any(
        [(low <= ratios) & (ratios <= high) for low, high in found.pieces] or [ratios < 0], axis=0
    )
    np.testing.assert_array_equal(inside, told)


def test_where_one_model_is_better_at_both_there_is_no_break_even():
    y = np.r_[np.ones(100, int), np.zeros(100, int)]
    good, bad = y.copy(), y.copy()
    bad[:30], bad[-30:] = 0, 1
    found = break_even(evaluate(y, good), evaluate(y, bad))
    assert math.isnan(found.value)
    assert found.kind == "empty"
    assert found.sentence() == "“A” is cheaper than “B” whatever a miss costs."
    same = break_even(evaluate(y, good), evaluate(y, good))
    assert "the same misses and the same false alarms" in same.sentence()


def test_a_break_even_needs_paired_rows_and_two_groups():
    one, other = two_models()
    with pytest.raises(ValueError, match="needs paired rows: the second evaluation has no rows"):
        break_even(one, Evaluation.from_data(json.loads(other.to_json())))
    many = priced(TV1, {})
    with pytest.raises(ValueError, match="needs two groups or two classes, got 4 classes"):
        break_even(many, many)
    with pytest.raises(ValueError, match="for different positive groups"):
        break_even(one, evaluate(other.rows.actual, other.rows.predicted, positive=0))


# -- the record -----------------------------------------------------------------------------------------------------


def test_costs_are_written_and_read(tmp_path):
    costs = Costs(
        {("pos", "neg"): 5, ("neg", "pos"): 1},
        default=2,
        mismatch={"pos": 2},
        step="two",
        name="2026",
    )
    assert Costs.from_dict(json.loads(json.dumps(costs.to_dict()))) == costs
    (tmp_path / "costs.yaml").write_text(
        "costs:\n  - [pos, neg, 5]\n  - [neg, pos, 1]\ndefault: 2\nmismatch: {pos: 2}\nstep: two\n"
    )
    assert Costs.from_file(tmp_path / "costs.yaml") == costs  # the name is for people
    (tmp_path / "costs.json").write_text('{"labels": [0, 1], "matrix": [[0, 1], [3, 0]]}')
    assert Costs.from_file(tmp_path / "costs.json") == Costs.from_matrix([[0, 1], [3, 0]], [0, 1])
    assert priced(TV1[:2, :2], str(tmp_path / "costs.json")).metrics["cost/mean"] == pytest.approx(
        (2 + 3) / 22
    )
    assert repr(costs) == (
        "Costs({('neg', 'pos'): 1, ('pos', 'neg'): 5}, default=2, mismatch={'pos': 2}, step='two', name='2026')"
    )
    assert hash(Costs({(0, 1): 2, (1, 0): 3})) == hash(Costs({(1, 0): 3, (0, 1): 2}))


BAD = {
    "nan": (
        lambda: Costs({(0, 1): math.nan}),
        r"the cost of \(0, 1\) must be a finite number, got nan",
    ),
    "text": (lambda: Costs({(0, 1): "5"}), r"must be a finite number, got '5'"),
    "flag": (lambda: Costs({(0, 1): True}), r"must be a finite number, got True"),
    "default": (
        lambda: Costs({}, default=math.inf),
        r"the default cost must be a finite number, got inf",
    ),
    "mismatch": (
        lambda: Costs({}, mismatch={"a": None}),
        r"the mismatch of 'a' must be a finite number, got None",
    ),
    "pair": (lambda: Costs({0: 1}), r"a cost must be for a pair \(actual, predicted\), got 0"),
    "shape": (
        lambda: Costs.from_matrix([[0, 1, 2], [1, 0, 2]], [0, 1]),
        r"shape \(2, 2\), got \(2, 3\)",
    ),
    "ragged": (lambda: Costs.from_matrix([[0, 1], [1]], [0, 1]), r"shape \(2, 2\), got \(2,\)"),
    "matrix": (
        lambda: Costs.from_matrix(np.full((2, 2), np.nan), [0, 1]),
        r"finite number, got nan",
    ),
    "twice": (lambda: Costs.from_matrix(np.zeros((2, 2)), [1, 1]), r"distinct, got \[1, 1\]"),
    "key": (
        lambda: Costs.from_dict({"costs": [], "cost": 1}),
        r"costs must have 'costs' or 'matrix'",
    ),
    "row": (
        lambda: Costs.from_dict({"costs": [[0, 1]]}),
        r"\[actual, predicted, cost\], got \[0, 1\]",
    ),
    "repeated": (
        lambda: Costs.from_dict({"costs": [[0, 1, 2], [0, 1, 3]]}),
        r"once, got \(0, 1\) twice",
    ),
    "class": (lambda: priced(TV1, {(0, 7): 2}), r"got \[7\]; the classes are \[0, 1, 2, 3\]"),
    "no groups": (
        lambda: priced(TV1, Costs({}, mismatch={"a": 1})),
        r"mismatch costs are for groups",
    ),
    "no step": (
        lambda: priced(TV4, Costs({("pos", "neg"): 1}, step="three"), grouping=TV4_GROUPS),
        r"of the step 'three', got \['pos', 'neg'\]",
    ),
    "file": (lambda: priced(TV1, "nowhere.yaml"), r"the file of costs cannot be read"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_costs_are_refused_with_the_rule_and_the_value(case):
    make, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        make()


def test_what_is_no_costs_at_all_is_refused():
    with pytest.raises(TypeError, match="costs must be Costs, a file, or map"):
        evaluate([0, 1], [0, 1], costs=5)
    with pytest.raises(ValueError, match="costs by class need costs, got none"):
        evaluate([0, 1], [0, 1]).costs_by_class()


def test_costs_of_groups_of_two_steps_ask_which():
    chain = Grouping({"a": [0], "b": [1, 2], "c": [3]}, name="one").then(
        Grouping({"a": ["a", "b"], "c": ["c"]}, name="two")
    )
    costs = Costs({("a", "c"): 5})
    with pytest.raises(
        ValueError,
        match=(
            r"for one step, which you name with step=: .* in the steps \['one', 'two'\], got "
            r"step=None"
        ),
    ):
        costs.matrix([0, 1, 2, 3], chain)
    assert Costs({("a", "c"): 5}, step="two").matrix([0, 1, 2, 3], chain)[1].tolist() == [
        0,
        0,
        0,
        5,
    ]


def test_a_damaged_file_of_costs_is_refused(tmp_path, tv1):
    data = json.loads(tv1.to_json())
    for damaged in ({"costs": [[0, 9, 1.0]]}, {"costs": [[0, 1, None]]}, [1]):
        with pytest.raises(ValueError, match="damaged"):
            Evaluation.from_data(data | {"costs": damaged})


@pytest.mark.slow
def test_the_interval_of_the_saved_cost_covers_when_few_rows_are_costly() -> None:
    """Rows of 2% cost up to 200; Wald's interval covers .83 of 300 rows, and three simulation errors are allowed."""
    prices = np.array([[0.0, 1, 5], [10, 0, 5], [200, 100, 0]])
    shares = np.array([0.7, 0.28, 0.02])[:, None] * [
        [0.9, 0.08, 0.02],
        [0.15, 0.8, 0.05],
        [0.2, 0.1, 0.7],
    ]
    constant, ideal = (shares.sum(axis=1) @ prices).min(), 0.0
    truth = (constant - (shares * prices).sum()) / (constant - ideal)
    tables = np.random.default_rng(1).multinomial(300, shares.ravel(), 60).reshape(-1, 3, 3)
    costs = Costs.from_matrix(prices, range(3))
    found = [
        priced(table, costs, sections=["cost"]).intervals.get("cost/saved") for table in tables
    ]
    assert np.mean([ends is None or ends[0] <= truth <= ends[1] for ends in found]) > 0.86
