"""``compare`` on evaluations at hand: order, errors, ties, gates, splits, repeated runs."""

from __future__ import annotations

import math
from dataclasses import replace

import mlflow
import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import cmtrack
from cmtrack import Grouping, compare, evaluate, log_evaluation, paired_differences
from cmtrack.comparison import constant_answer
from cmtrack.statistics import Design
from cmtrack.tracking import quiet
from support.problems import random_labels, random_models, random_scores

MCC = "multiclass/matthews_corrcoef"
ACCURACY = "multiclass/accuracy"


def classifiers(skills, n=800, k=4, seed=0):
    """Labels and, for each skill, probabilities of classifiers that find the same rows hard."""
    return random_models(skills, n, k, seed, common=0.7, slope=1.3)


@pytest.fixture(scope="module")
def three():
    y, ps = classifiers([1.6, 1.1, 1.6])
    return {name: evaluate(y, y_prob=p) for name, p in zip("abc", ps, strict=True)}


def test_runs_stand_in_the_order_of_the_metric_with_the_metrics_intervals(three):
    comparison = compare(three, rank_by=MCC)
    values = [run.value for run in comparison.runs]
    assert values == sorted((e.metrics[MCC] for e in three.values()), reverse=True)
    for run in comparison.runs:
        assert (run.low, run.high) == three[run.name].intervals[MCC]
        assert comparison[run.name] is run
    assert [run.rank for run in comparison.runs] == [1, 2, 3]
    assert comparison.best is comparison.ranking.leader


def test_differences_from_the_leader_are_the_paired_ones(three):
    comparison = compare(three, rank_by=MCC)
    leader, *others = comparison.runs
    assert comparison.ranking.paired
    assert leader.difference == -others[0].difference == leader.value - others[0].value
    assert leader.pvalue == others[0].pvalue
    assert others[0].tied
    assert leader.difference_low == pytest.approx(-others[0].difference_high, rel=0.1)
    for run in others:
        gap = paired_differences(run.evaluation, leader.evaluation, metrics=[MCC])[MCC]
        assert run.difference == pytest.approx(gap.difference)
        assert run.pvalue == pytest.approx(gap.pvalue)
        # from the best run, whichever that is: wider than the pair's own, and cut at 0
        assert 1 - 1e-9 < (run.difference - run.difference_low) / (gap.difference - gap.low) < 1.45
        assert run.difference_high == 0 if not run.tied else run.difference_high > 0
        place = comparison.runs.index(run)
        assert comparison.ranking.pair_intervals[0, place, 0] < gap.low < gap.high
        assert comparison.ranking.pair_intervals[1, place, 0] > gap.high
        assert run.p_max_t >= run.pvalue
        assert run.p_holm >= run.pvalue


def test_a_comparison_iterates_over_the_ranked_runs(three):
    comparison = compare(three, rank_by=ACCURACY)
    assert list(comparison) == list(comparison.runs)
    assert [run.name for run in comparison] == [run.name for run in comparison.runs]


def test_evaluations_without_names_are_refused_with_the_form_that_is_wanted(three):
    with pytest.raises(
        TypeError,
        match=r'got Evaluation; give evaluations names: compare\(\{"a": first, "b": second\}\)',
    ):
        compare(list(three.values()))


def test_a_clear_loser_is_told_apart_and_a_close_one_is_tied(three):
    comparison = compare(three, rank_by=ACCURACY)
    tied = {run.name for run in comparison.ranking.tied}
    assert tied == {"a", "c"}
    # what the first of two steps takes
    assert comparison["b"].p_set == pytest.approx(0.005, abs=0.001)
    assert comparison["b"].difference_high == 0
    assert sum(run.probability_best for run in comparison.runs) == pytest.approx(1)
    assert comparison["b"].probability_best == 0
    assert (comparison["b"].rank_low, comparison["b"].rank_high) == (3, 3)


def test_without_rows_differences_are_unpaired_and_wider(three):
    stripped = {name: _without_rows(evaluation) for name, evaluation in three.items()}
    paired, unpaired = compare(three, rank_by=ACCURACY), compare(stripped, rank_by=ACCURACY)
    assert not unpaired.ranking.paired
    assert {run.unpaired for run in unpaired.runs} == {"its predictions by row were not kept"}
    for run in unpaired.runs[1:]:
        own = paired[run.name]
        assert run.difference == pytest.approx(own.difference)
        assert run.difference - run.difference_low > 1.1 * (own.difference - own.difference_low)


def _without_rows(evaluation):
    return replace(evaluation, rows=None)


def test_one_run_without_rows_does_not_unpair_the_others(three):
    mixed = {**three, "d": _without_rows(three["b"])}
    comparison = compare(mixed, rank_by=MCC)
    assert comparison["d"].unpaired == "its predictions by row were not kept"
    assert comparison["a"].unpaired == comparison["c"].unpaired == ""
    gap = paired_differences(three["c"], three["a"], metrics=[MCC])[MCC]
    assert comparison[comparison.runs[1].name].pvalue == pytest.approx(gap.pvalue)


def test_the_same_predictions_twice_are_a_tie(three):
    comparison = compare(
        {"one": three["a"], "two": three["a"], "b": three["b"], "c": three["c"]}, rank_by=MCC
    )
    first, second = (run for run in comparison.runs if run.name in ("one", "two"))
    assert first.rank == second.rank
    assert first.tied
    assert second.tied
    assert first.difference == second.difference
    assert first.difference_low == second.difference_low
    # four standard errors of a share of 20,000 draws
    assert first.probability_best == pytest.approx(second.probability_best, abs=0.03)
    assert comparison["b"].rank == 4
    # two distinct runs: nothing can be learned of how far true values spread
    two = compare({"one": three["a"], "two": three["a"], "b": three["b"]}, rank_by=MCC)
    assert all(math.isnan(run.probability_best) for run in two.runs)
    assert [(run.rank_low, run.rank_high) for run in two.runs] == [(1, 3), (1, 3), (2, 3)]


def test_lower_is_better_where_it_is():
    y, ps = classifiers([2.0, 0.8], k=2)
    comparison = compare(
        {n: evaluate(y, y_prob=p) for n, p in zip("ab", ps, strict=True)}, rank_by="binary/fpr"
    )
    assert comparison.best.name == "a"
    assert comparison["b"].difference > 0
    assert comparison["b"].difference_low == 0 < comparison["b"].difference_high
    assert (
        comparison["a"].difference_high
        == 0
        > comparison["a"].difference
        > comparison["a"].difference_low
    )


def test_nearest_to_zero_ranks_by_the_distance_and_shows_the_sign():
    y = random_labels(2000)
    p = random_scores(y, 2.0, 1)
    shifted = {"low": -0.1, "near": 0.0, "high": 0.04}
    evaluations = {
        name: evaluate(y, y_prob=np.clip(p + shift, 0, 1)) for name, shift in shifted.items()
    }
    comparison = compare(evaluations, rank_by="prevalence/bias")
    assert [run.name for run in comparison.runs] == ["near", "high", "low"]
    low = comparison["low"]
    assert low.value < 0
    assert low.value == evaluations["low"].metrics["prevalence/bias"]
    assert low.difference == pytest.approx(abs(low.value) - abs(comparison["near"].value))
    assert (low.tied, low.difference_low) == (False, 0)


def test_a_pareto_front_holds_what_nothing_beats():
    y, (sharp, blunt, worse) = classifiers([2.0, 1.6, 0.8], n=3000, k=2)
    biased = np.column_stack((sharp[:, 0] * 0.5, 1 - sharp[:, 0] * 0.5))
    evaluations = {
        "biased": evaluate(y, y_prob=biased),
        "fair": evaluate(y, y_prob=blunt),
        "bad": evaluate(y, y_prob=worse),
    }
    comparison = compare(evaluations, rank_by=["binary/roc_auc", "prevalence/bias"])
    assert comparison.criterion.pareto
    assert {run.name for run in comparison.runs if run.rank == 1} >= {"biased", "fair"}
    assert comparison["biased"].tied
    assert comparison["fair"].tied
    assert math.isnan(comparison["fair"].value)
    assert comparison["fair"].values == {
        m: evaluations["fair"].metrics[m] for m in comparison.criterion.metrics
    }


def test_a_run_that_is_worse_in_everything_is_off_the_front(three):
    comparison = compare(three, rank_by=[ACCURACY, "spcc/ovr_min"])
    assert comparison["b"].rank > 1
    assert not comparison["b"].tied
    for run in comparison.runs:
        assert np.isnan(
            [run.pvalue, run.p_holm, run.p_set, run.probability_best, run.expected_rank]
        ).all()
    assert np.isnan(comparison.ranking.pvalues).all()


def test_a_front_is_of_the_values_alone():
    """A run that is no more than one row worse in both metrics is dominated, though no test could tell."""
    y = [0, 1] * 50
    ahead, behind = list(y), list(y)
    ahead[:4] = 1, 0, 1, 0
    behind[:6] = 1, 0, 1, 0, 1, 0
    front = compare(
        {"ahead": evaluate(y, ahead), "behind": evaluate(y, behind)},
        rank_by=[ACCURACY, "binary/recall"],
    )
    assert [(run.name, run.rank, run.tied) for run in front.runs] == [
        ("ahead", 1, True),
        ("behind", 2, False),
    ]
    said = (
        "“behind” is dominated: another run is at least as good in every metric and better in one."
    )
    assert said in front.summary()
    assert front.summary().startswith("Take “ahead”: the other run is dominated.")


def test_gates_stop_runs_and_say_why(three):
    comparison = compare(
        three, rank_by=MCC, require=["multiclass/accuracy >= 0.6", "class/0/recall.low > 0.1"]
    )
    assert [run.name for run in comparison.failed] == ["b"]
    assert [str(result) for result in comparison.failed[0].gates if not result.passed] == [
        f"multiclass/accuracy >= 0.6 (is {three['b'].metrics[ACCURACY]:.3g})"
    ]
    assert all(run.passed for run in comparison.runs)


def test_no_run_passes(three):
    comparison = compare(three, rank_by=MCC, require="multiclass/accuracy > 0.99")
    assert comparison.best is None
    assert comparison.rankings == ()
    assert len(comparison.failed) == 3


def test_a_gate_against_a_baseline(three):
    comparison = compare(three, rank_by=MCC, against="b", require=f"{MCC}.difference.low > 0.01")
    assert {run.name for run in comparison.runs} == {"a", "c"}
    assert comparison.baseline.name == "b"
    with pytest.raises(ValueError, match="needs against="):
        compare(three, require=f"{MCC}.difference > 0")
    with pytest.raises(ValueError, match="against must be one of"):
        compare(three, against="z")


def test_tie_breakers_decide_among_the_tied_only(three):
    comparison = compare(three, rank_by=ACCURACY, tie_breakers="prevalence/0/bias", margin=0.2)
    biases = {
        run.name: abs(run.evaluation.metrics["prevalence/0/bias"])
        for run in comparison.ranking.tied
    }
    assert comparison.best.name == min(biases, key=biases.get)
    assert comparison.best.name != "b"
    assert str(comparison.ranking.decision.by) == "nearest zero prevalence/0/bias"
    assert [run.chosen for run in comparison.runs].count(True) == 1


def test_different_data_are_never_in_one_order(three):
    y, (p,) = classifiers([1.5], seed=9)
    comparison = compare({**three, "other": evaluate(y, y_prob=p)}, rank_by=MCC)
    assert sorted(len(ranking.runs) for ranking in comparison.rankings) == [1, 3]
    assert "different evaluation data" in comparison.notes[-1]
    assert comparison.best is None  # as many rows in both: neither is the one to decide by
    more = compare({**three, "other": evaluate(y[:-1], y_prob=p[:-1])}, rank_by=MCC)
    assert more.best.name in three


def test_row_ids_that_differ_are_different_data():
    y, (p, q) = classifiers([1.5, 1.4])
    ids = np.arange(len(y))
    evaluations = {
        "a": evaluate(y, y_prob=p, row_ids=ids),
        "b": evaluate(y, y_prob=q, row_ids=ids + len(y)),
        "c": evaluate(y, y_prob=q, row_ids=ids),
    }
    assert sorted(len(r.runs) for r in compare(evaluations, rank_by=MCC).rankings) == [1, 2]


def test_groupings_are_split_or_all_reduced_again():
    y, (p, q) = classifiers([1.5, 1.2])
    halves = Grouping({"low": [0, 1], "high": [2, 3]}, name="half")
    ends = Grouping({"ends": [0, 3], "middle": [1, 2]}, name="half")
    evaluations = {
        "a": evaluate(y, y_prob=p, grouping=halves),
        "b": evaluate(y, y_prob=q, grouping=ends),
    }
    apart = compare(evaluations)
    assert len(apart.rankings) == 2
    assert "under different groupings" in apart.notes[-1]
    together = compare(evaluations, grouping=halves)
    assert apart.criterion == together.criterion
    assert str(together.criterion) == "binary/matthews_corrcoef"
    assert len(together.rankings) == 1
    assert together["b"].value == pytest.approx(
        evaluate(y, y_prob=q, grouping=halves).metrics["binary/matthews_corrcoef"]
    )
    assert together.ranking.paired
    other = compare(evaluations, grouping=halves, positive="low", rank_by="binary/recall")
    assert other["a"].evaluation.positive == "low"


def test_an_undefined_metric_leaves_the_run_out_with_the_reason(three):
    y = three["a"].rows.actual
    comparison = compare(
        {**three, "constant": evaluate(y, np.zeros_like(y), labels=range(4))}, rank_by=MCC
    )
    assert len(comparison) == 3
    (out,) = comparison.left_out
    assert out.run.name == "constant"
    assert "undefined" in out.reason
    no_scores = compare({**three, "labels": evaluate(y, y)}, rank_by="spcc/ovr_min")
    assert (
        no_scores.left_out[0].reason
        == "it has no spcc/ovr_min: evaluate it with y_prob= (--y-prob)"
    )


def test_the_level_is_that_of_the_comparison(three):
    wide, narrow = compare(three, confidence_level=0.99), compare(three, confidence_level=0.8)
    assert wide.runs[0].high - wide.runs[0].low > narrow.runs[0].high - narrow.runs[0].low
    assert wide.confidence_level == wide.ranking.confidence_level == 0.99


def test_one_run_is_a_ranking_of_one(three):
    comparison = compare({"a": three["a"]}, rank_by=MCC)
    assert comparison.best.name == "a"
    assert comparison.best.probability_best == 1
    assert comparison.best.unpaired == ""


def test_clusters_widen_the_differences():
    y, (p, q) = classifiers([1.5, 1.2], n=400)
    y, p, q = np.tile(y, 5), np.tile(p, (5, 1)), np.tile(q, (5, 1))
    person = np.tile(np.arange(400), 5)
    plain = compare({"a": evaluate(y, y_prob=p), "b": evaluate(y, y_prob=q)}, rank_by=ACCURACY)
    both = {"a": evaluate(y, y_prob=p, groups=person), "b": evaluate(y, y_prob=q, groups=person)}
    grouped = compare(both, rank_by=ACCURACY)
    widths = [np.ptp(c.ranking.pair_intervals[:, 0, 1]) for c in (plain, grouped)]
    assert widths[1] / widths[0] == pytest.approx(math.sqrt(5), rel=0.02)  # and Student's quantile
    grouped = compare(both, rank_by=MCC)
    gap = paired_differences(grouped["a"].evaluation, grouped["b"].evaluation, metrics=[MCC])[MCC]
    difference = (both["a"].influence(MCC) - both["b"].influence(MCC))[:400]
    effective = Design(400, clusters=np.arange(400)).effective_clusters(difference)
    degrees = 3 * effective / (1 + 2 * effective / 400) - 1
    z = student.ppf(0.975, degrees)
    assert (gap.high - gap.difference) / gap.standard_error == pytest.approx(z)
    assert gap.pvalue == pytest.approx(
        2 * student.sf(abs(gap.difference) / gap.standard_error, degrees)
    )
    assert grouped.runs[1].pvalue == pytest.approx(gap.pvalue)
    assert grouped.runs[1].p_set >= gap.pvalue * (1 - 1e-9)


def test_the_leaders_interval_allows_for_its_having_been_picked():
    y, ps = classifiers([1.5] * 6, n=500)
    evaluations = {f"m{k}": evaluate(y, y_prob=p) for k, p in enumerate(ps)}
    comparison = compare(evaluations, rank_by=ACCURACY)
    first, *others = comparison.runs
    assert first.picked
    assert first.interval == (first.adjusted_low, first.adjusted_high)
    assert first.adjusted_low < first.low
    assert first.adjusted_high == first.high  # picking the largest cannot push it down
    assert not any(run.picked for run in others)
    assert others[0].interval == (others[0].low, others[0].high)
    assert comparison.ranking.picked_from == 6
    # the metric's own interval at the level of the quantile
    psi = np.column_stack([e.influence(ACCURACY) for e in evaluations.values()])
    draws = np.random.default_rng(0).multivariate_normal(np.zeros(6), np.corrcoef(psi.T), 200_000)
    c = np.quantile(draws.max(axis=1), 0.975)
    level = 2 * norm.cdf(c) - 1
    assert first.adjusted_low == pytest.approx(
        first.evaluation.at_level(level).intervals[ACCURACY][0], abs=5e-4
    )
    frame = comparison.to_frame()
    assert frame["adjusted_low"].notna().tolist() == [True, *[False] * 5]
    assert comparison.to_dict()["rankings"][0]["runs"][0]["adjusted_low"] == first.adjusted_low


def test_where_lower_is_better_the_upper_end_allows_for_the_picking():
    y, ps = classifiers([1.5] * 4, n=400, k=2)
    first = compare(
        {f"m{k}": evaluate(y, y_prob=p) for k, p in enumerate(ps)}, rank_by="binary/fpr"
    ).runs[0]
    assert first.adjusted_high > first.high
    assert first.adjusted_low == first.low


def test_a_chosen_run_that_does_not_lead_has_both_ends_adjusted():
    y, ps = classifiers([1.5, 1.52, 1.5, 1.5], n=500)
    evaluations = {f"m{k}": evaluate(y, y_prob=p) for k, p in enumerate(ps)}
    comparison = compare(evaluations, rank_by=ACCURACY, tie_breakers="class/1/recall", margin=0.5)
    best = comparison.best
    assert best is not comparison.ranking.leader
    assert best.adjusted_low < best.low < best.high < best.adjusted_high
    assert comparison.ranking.leader.picked


def test_the_distance_from_zero_has_an_adjusted_interval(three):
    near = compare(three, rank_by="prevalence/0/bias").runs[0]
    assert near.adjusted_low < near.low < near.high < near.adjusted_high


def test_runs_without_a_rival_or_on_a_front_are_not_picked(three):
    assert not compare({"a": three["a"]}, rank_by=MCC).runs[0].picked
    assert not any(run.picked for run in compare(three, rank_by=[ACCURACY, "spcc/ovr_min"]).runs)


def test_a_metric_that_few_rows_decide_needs_more_to_be_told_apart():
    y = np.repeat([0, 1], [300, 30])
    good = y.copy()
    good[300:306] = 0
    for rows, p in ((5, 1 / 16), (6, 1 / 32)):  # the exact sign test's
        worse = good.copy()
        worse[306 : 306 + rows] = 0
        runs = {"good": evaluate(y, good), "worse": evaluate(y, worse)}
        second = compare(runs, rank_by="class/1/recall").runs[1]
        assert second.pvalue == pytest.approx(p)
        assert second.p_set == pytest.approx(p)
        assert second.tied == (p > 0.05)
        # so it does of a metric that is no share of the same rows
        second = compare(runs, rank_by="class/1/f1").runs[1]
        assert second.tied == (p > 0.05)
        assert second.pvalue == pytest.approx(p)
        assert (second.reason, second.difference_high == 0) == ("", not second.tied)


def test_a_run_that_differs_in_two_rows_has_no_interval_of_150():
    # b = 2, c = 0 of 899: Student's of two effective rows gave -0.002 [-74.638, 74.634] among 200 runs
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 899)
    base = np.where(rng.random(899) < 0.03, 1 - y, y)
    runs = {"base": evaluate(y, base)}
    for k in range(12):
        other = base.copy()
        right = np.flatnonzero(base == y)
        moved = rng.choice(right, 2 if k == 0 else 12, replace=False)
        other[moved] = 1 - other[moved]
        runs[f"run {k}"] = evaluate(y, other)
    ranking = compare(runs, rank_by=ACCURACY).ranking
    low, high = ranking.pair_intervals
    assert ranking.runs[0].name == "base"
    assert np.abs(ranking.pair_intervals).max() < 0.05
    assert (low[0, 1], high[0, 1]) == (
        pytest.approx(-0.01, abs=0.004),
        pytest.approx(0.017, abs=0.004),
    )
    assert np.allclose(low, -high.T)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"rank_by": "binary/recall"}, ValueError, "no run has the metric 'binary/recall'"),
        (
            {"require": "class/9/recall > 0.5"},
            ValueError,
            "no run has 'class/9/recall'; did you mean 'class/",
        ),
        (
            {"confidence_level": 1.0},
            ValueError,
            "confidence_level must be between 0 and 1, got 1.0",
        ),
        ({"limit": 0}, ValueError, "limit must be at least 1, got 0"),
        ({"positive": 3}, ValueError, "positive needs grouping"),
        ({"block": "fold"}, ValueError, "block must read 'params"),
        ({"block": "params.fold", "block_kind": "weeks"}, ValueError, "block_kind must be one of"),
        ({"block": "params.fold"}, ValueError, "must have a model in two blocks"),
    ],
)
def test_wrong_options(three, options, error, words):
    with pytest.raises(error, match=words):
        compare(three, **options)


def test_runs_by_name_must_be_evaluations():
    with pytest.raises(TypeError, match="must be Evaluations, got int for 'a'"):
        compare({"a": 3})
    with pytest.raises(ValueError, match="no run was found"):
        compare({})


def test_public_names():
    assert cmtrack.compare is compare
    assert isinstance(
        compare({"a": evaluate([0, 1], [0, 1])}, rank_by=ACCURACY), cmtrack.Comparison
    )


# -- one ranking or several ----------------------------------------------------------------------------


def grouped(y, ps, names, grouping, positive=None):
    return {
        name: evaluate(y, y_prob=p, grouping=grouping, positive=positive)
        for name, p in zip(names, ps, strict=True)
    }


def test_runs_are_split_by_what_is_read_and_by_nothing_else():
    """A review recommended a run that its own method calls behind: another grouping had set the better ones aside."""
    y, ps = classifiers([1.0, 1.1, 2.0, 2.1])
    halves, ends = (
        Grouping({"low": [0, 1], "high": [2, 3]}, name="half"),
        Grouping({"x": [0, 3], "y": [1, 2]}, name="e"),
    )
    runs = grouped(y, ps[:2], "ab", halves, "low") | grouped(y, ps[2:], "cd", ends, "x")
    together = compare(runs, rank_by=MCC)
    assert len(together.rankings) == 1
    assert together.best.name in "cd"
    assert {run.name for run in together.runs if not run.tied} == {"a", "b"}
    assert "different positive groups: “x” in" in together.summary()
    assert "roc" not in together.figures()
    for options in (
        {"rank_by": "binary/f1"},
        {"rank_by": MCC, "require": "binary/recall > 0"},
        {"rank_by": MCC, "tie_breakers": "binary/recall"},
    ):
        assert len(compare(runs, **options).rankings) == 2
    other = grouped(y, ps[2:], "cd", halves, "high")
    assert (
        len(
            compare(
                grouped(y, ps[:2], "ab", halves, "low") | other, rank_by="reduced/half/accuracy"
            ).rankings
        )
        == 1
    )


def test_no_ranking_is_picked_where_none_has_more_rows():
    y, ps = classifiers([1.0, 1.1, 2.0])
    halves, ends = (
        Grouping({"low": [0, 1], "high": [2, 3]}, name="half"),
        Grouping({"x": [0, 3], "y": [1, 2]}, name="e"),
    )
    runs = grouped(y, ps[:2], "ab", halves, "low") | grouped(y, ps[2:], "c", ends, "x")
    comparison = compare(runs, rank_by="binary/f1")
    assert comparison.best is None
    assert not any(run.chosen for run in comparison.runs)
    assert comparison.summary().startswith(
        "No decision: the 2 rankings have the same number of rows (800)"
    )
    page = comparison.summary()
    assert "grouped by “half”; positive group “low”" in page
    assert "grouped by “e”; positive group “x”" in page
    assert set(comparison.to_frame()["status"]) == {"leads", "tied"}


def test_the_ranking_of_the_most_rows_decides_not_that_of_the_most_runs():
    y, ps = classifiers([1.0, 1.1, 1.2])
    small = {f"fold {k}": evaluate(y[:200], y_prob=p[:200]) for k, p in enumerate(ps)}
    comparison = compare(small | {"pooled": evaluate(y, y_prob=ps[0])}, rank_by=MCC)
    assert comparison.best.name == "pooled"
    assert (
        "This covers only ranking 1 of 2: the rankings were not compared with each other."
        in comparison.summary()
    )


@pytest.fixture
def nested(store):
    """Ids of a run with two runs nested in it, which are on other rows and grouped differently, and of a lone run."""
    halves = Grouping({"low": [0, 1], "high": [2, 3]}, "relaxed", name="half")
    ends = Grouping({"x": [0, 3], "y": [1, 2]}, "relaxed", name="e")
    options = {"child 1": (halves, "low"), "child 2": (ends, "x")}
    ids = {}

    def log(name, seed):
        grouping, positive = options.get(name, (None, None))
        y, (p,) = classifiers([1.0 + len(ids) / 10], n=200, seed=seed)
        run_id = ids[name] = mlflow.active_run().info.run_id
        mlflow.log_metric("seconds", len(ids))
        log_evaluation(
            y, y_prob=p, grouping=grouping, positive=positive, run_id=run_id, strict=True
        )

    with quiet():
        for name in ("lone", "top"):
            with mlflow.start_run(run_name=name):
                log(name, seed=2)
                for child in ("child 1", "child 2") if name == "top" else ():
                    with mlflow.start_run(run_name=child, nested=True):
                        log(child, seed=1)
    return ids


@pytest.mark.slow
def test_what_a_store_knows_of_runs_decides_which_are_ranked_together(nested):
    def ranked(*names, **options):
        return compare([nested[name] for name in names], rank_by=MCC, **options)

    # parents stand before the runs nested in them, and decide
    family = ranked("child 1", "top", "child 2")
    names = [[run.name for run in ranking.runs] for ranking in family.rankings]
    assert (names[0], sorted(names[1])) == (["top"], ["child 1", "child 2"])
    assert family.best.name == "top"
    assert ranked("child 1", "lone", "child 2").best is None
    # a logged metric of a positive group depends on the grouping
    children = ("child 1", "child 2")
    assert len(ranked(*children, tie_breakers="metrics.seconds").rankings) == 1
    assert len(ranked(*children, tie_breakers="metrics.binary/recall").rankings) == 2
    # runs that were passed over by their logged value count for the selection
    every, best = ranked(*children), ranked(*children, limit=1)
    assert [one.ranking.picked_from for one in (every, best)] == [2, 2]
    assert best.ranking.leader.picked
    assert best.ranking.leader.adjusted_low < best.ranking.leader.low
    alone = constant_answer(best.ranking.leader.evaluation, MCC)
    (constant,) = best.ranking.constants
    assert constant.pvalue == pytest.approx(min(1, 2 * alone.pvalue))
    assert constant.not_tested == 1
    assert not constant.none_shown


def test_the_order_of_the_runs_changes_nothing(three):
    turned = dict(reversed(list(three.items())))
    for rank_by in (MCC, [MCC, "class/0/recall"]):
        first, second = (compare(runs, rank_by=rank_by).to_dict() for runs in (three, turned))
        for data in (first, second):
            del data["how"]
        assert first == second


def test_identical_predictions_are_said_to_be(three):
    comparison = compare({**three, "a again": three["a"]}, rank_by=MCC)
    assert "“a” and “a again” have identical predictions." in comparison.summary()
    assert "identical" not in compare(three, rank_by=MCC).summary()


# -- tie-breakers and margins --------------------------------------------------------------------------


def test_a_tie_breaker_chooses_among_runs_of_one_value_that_few_rows_tell_apart():
    rows = np.arange(200)
    runs = {
        name: evaluate(rows < 150, rows < called)
        for name, called in (("a", 197), ("b", 194), ("c", 100))
    }
    comparison = compare(runs, rank_by="binary/npv", tie_breakers="binary/specificity")
    a, b, c = comparison.ranking.runs
    assert (a.value, b.value) == (1.0, 1.0)
    assert b.standard_error > 0.1, "of three rows and of six"
    assert (b.within_margin, c.within_margin, b.chosen) == (True, False, True)
    assert "Among the 2 runs within one standard error of the leader" in comparison.summary()


@pytest.mark.slow
def test_a_tie_breaker_chooses_within_one_standard_error_only():
    """Runs that are not shown to differ are not equal: the cheapest of them may be far behind."""
    y, ps = classifiers([1.6, 1.59, 1.3], n=400)
    runs = {
        name: evaluate(y, y_prob=p) for name, p in zip(("best", "near", "far"), ps, strict=True)
    }
    comparison = compare(runs, rank_by=ACCURACY, confidence_level=0.9999)
    assert len(comparison.ranking.tied) == 3
    for run in comparison.runs[1:]:
        assert run.within_margin == (-run.difference <= run.standard_error)
        gap = paired_differences(
            run.evaluation, comparison.ranking.leader.evaluation, metrics=[ACCURACY]
        )[ACCURACY]
        assert run.standard_error == pytest.approx(gap.standard_error)
    assert not comparison["far"].within_margin
    # "far" has the least recall of class 0 of all: the rule would take it, were it within the margin
    rules = [
        f"class/{k}/{kind} {way}"
        for k in range(4)
        for kind in ("recall", "precision")
        for way in ("asc", "desc")
    ]
    wide = [
        compare(runs, rank_by=ACCURACY, confidence_level=0.9999, tie_breakers=rule, margin=1)
        for rule in rules
    ]
    narrow = [
        compare(runs, rank_by=ACCURACY, confidence_level=0.9999, tie_breakers=rule)
        for rule in rules
    ]
    assert "far" in {found.best.name for found in wide}
    assert "far" not in {found.best.name for found in narrow}
    assert all("within one standard error of the leader" in found.summary() for found in narrow)


def test_a_margin_is_one_of_non_inferiority(three):
    for margin in (0.0, 0.02, 0.05, 0.2):
        comparison = compare(three, rank_by=ACCURACY, margin=margin)
        for run in comparison.runs[1:]:
            assert run.within_margin == (run.tied and run.difference_low >= -margin)
        assert comparison.to_dict()["rankings"][0]["margin"] == margin
    with pytest.raises(
        ValueError, match=r"margin must be a finite number that is not negative, got -0\.1"
    ):
        compare(three, margin=-0.1)


def test_parameters_that_differ_are_columns_of_the_frame(three):
    comparison = compare(three, rank_by=MCC)
    ranking = comparison.ranking
    runs = tuple(
        replace(r, run=replace(r.run, params={"depth": r.name, "same": "1"})) for r in ranking.runs
    )
    frame = replace(comparison, rankings=(replace(ranking, runs=runs),)).to_frame()
    assert list(frame["params.depth"]) == list(frame["name"])
    assert "params.same" not in frame


def test_a_metric_of_a_positive_group_that_no_run_has_asks_for_a_group():
    y = np.arange(60) % 3
    runs = {"a": evaluate(y, y), "b": evaluate(y, (y + 1) % 3)}
    with pytest.raises(
        ValueError, match=r"'binary/recall': it needs a positive .* give a grouping of two groups"
    ):
        compare(runs, rank_by="binary/recall")


def test_of_two_runs_the_ranks_say_what_the_statuses_say():
    y = [0, 1] * 100
    runs = {
        "good": evaluate(y, [0, 1] * 95 + [1, 0] * 5),
        "bad": evaluate(y, [0, 1] * 60 + [1, 0] * 40),
    }
    first, second = compare(runs, rank_by="multiclass/accuracy").runs
    assert (first.tied, first.rank_low, first.rank_high) == (True, 1, 1)
    assert (second.tied, second.rank_low, second.rank_high) == (False, 2, 2)
    first, second = compare(runs | {"bad": runs["good"]}, rank_by="multiclass/accuracy").runs
    assert [(run.tied, run.rank_low, run.rank_high) for run in (first, second)] == [
        (True, 1, 2),
        (True, 1, 2),
    ]
