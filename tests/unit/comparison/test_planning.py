"""Resolution, equivalence, the ledger and rankings at other shares: published vectors, statuses, bad input."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import multivariate_normal

from cmtrack import Costs, Evaluation, Grouping, compare, evaluate, paired_differences
from cmtrack.cli import main
from cmtrack.comparison import CompareOptions
from cmtrack.report.review import html, markdown, notebook_html
from support.contradictions import in_review
from support.problems import random_models, random_problem

Y = np.array([0, 1] * 100)


def wrong(rows: list[int]):
    """The evaluation of predictions that are wrong in these rows."""
    predicted = Y.copy()
    predicted[rows] = 1 - predicted[rows]
    return evaluate(Y, predicted)


BOTH = list(range(30, 40))
PAIR = {"a": wrong([*BOTH, *range(15)]), "b": wrong([*BOTH, *range(15, 22)])}
"""Of 200 rows 7 that only one, and 15 that only the other gets right."""


def test_the_smallest_difference_is_that_of_the_vector() -> None:
    """Vector TV-D15: b = 7, c = 15, n = 200."""
    resolution = compare(PAIR, rank_by="multiclass/accuracy").resolution
    assert resolution.errors["a"] == pytest.approx(0.0232808935, abs=1e-10)
    assert resolution.smallest_difference == pytest.approx(0.0652234070, abs=1e-10)
    assert resolution.rows_for(0.02) == pytest.approx(2127.0464, abs=1e-4)
    table = resolution.to_frame().set_index("name")
    assert table.loc["a", "rows_more"] == np.ceil(resolution.rows_for(0.04, "a") - 200)


def test_a_copy_of_the_leader_needs_no_rows() -> None:
    alone = compare(PAIR, rank_by="multiclass/matthews_corrcoef")
    leader = alone.best.name
    comparison = compare(
        PAIR | {f"{leader}2": PAIR[leader]}, rank_by="multiclass/matthews_corrcoef"
    )
    assert comparison.resolution.errors == pytest.approx(alone.resolution.errors)
    assert comparison.resolution.smallest_difference > 0
    assert f"between “{leader}” and “{leader}2”" not in comparison.summary()
    only = compare({"x": PAIR[leader], "y": PAIR[leader]}, rank_by="multiclass/accuracy")
    assert math.isnan(only.resolution.smallest_difference)


def test_the_smallest_difference_of_other_metrics_is_that_of_their_errors() -> None:
    """Vector TV-16: of its pair 2.8015852181 standard errors are 0.3629491777."""
    resolution = replace(
        compare(PAIR, rank_by="multiclass/accuracy").resolution,
        rows=10,
        errors={"b": 0.1295513609},
        differences={"b": -0.1852184437},
        quantile=1.959963984540054,
    )
    assert resolution.smallest_difference == pytest.approx(0.3629491777, abs=1e-9)


def test_more_runs_need_more() -> None:
    runs = PAIR | {"c": wrong([*BOTH, *range(10, 30)])}
    more = compare(runs, rank_by="multiclass/accuracy").resolution
    assert list(more.errors) == ["a", "c"]
    # less than Bonferroni's: both differences are from the leader
    assert 1.96 < more.quantile < 2.2414
    apart = compare(runs, rank_by="multiclass/accuracy", confidence_level=0.9).resolution
    assert apart.quantile < more.quantile
    psi = [
        run.evaluation.influence("multiclass/accuracy")
        for run in compare(runs, rank_by="multiclass/accuracy").runs
    ]
    rho = np.corrcoef(psi[1] - psi[0], psi[2] - psi[0])[0, 1]
    both = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    corner = [-more.quantile] * 2
    assert both.cdf([more.quantile] * 2, lower_limit=corner) == pytest.approx(0.95, abs=0.006)


@pytest.mark.parametrize("difference", [0, -0.1, float("nan"), float("inf"), "x"])
def test_a_difference_must_be_above_0(difference: float) -> None:
    resolution = compare(PAIR, rank_by="multiclass/accuracy").resolution
    with pytest.raises(ValueError, match="difference must be a finite number above 0, got"):
        resolution.rows_for(difference)
    with pytest.raises(ValueError, match=r"run must be one of \['a'\], got 'x'"):
        resolution.rows_for(0.1, "x")
    with pytest.raises(ValueError, match="a resolution needs two or more runs"):
        compare({"a": PAIR["a"]}).resolution  # noqa: B018 - it raises


def test_equivalence_is_a_status_of_its_own() -> None:
    wide, narrow = (
        compare(PAIR, rank_by="multiclass/accuracy", equivalence=margin) for margin in (0.1, 0.05)
    )
    assert wide.to_frame()["status"].tolist() == ["chosen", "equivalent"]
    assert narrow.to_frame()["status"].tolist() == ["chosen", "tied"]
    assert "| a | equivalent within 0.1 |" in markdown(wide)
    assert (wide["a"].equivalent_within, np.isnan(narrow["a"].equivalent_within)) == (0.1, True)
    assert compare(PAIR, rank_by="multiclass/accuracy").to_frame()["status"].tolist() == [
        "chosen",
        "tied",
    ]


@pytest.mark.slow
def test_a_review_says_equivalent(tmp_path) -> None:
    page = (
        compare(PAIR, rank_by="multiclass/accuracy", equivalence=0.1)
        .report(tmp_path / "review.html")
        .read_text()
    )
    assert "equivalent within 0.1" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"equivalence": 0.05}, {"equivalence": 0.2, "rank_by": "probability/log_loss"}]
)
def test_a_review_says_what_choosing_is_worth_and_which_rows_would_decide(options) -> None:
    y, models = random_models((2.0, 1.9, 1.9, 1.8), n=300)
    runs = {name: evaluate(y, y_prob=p) for name, p in zip("abcd", models, strict=True)}
    comparison = compare(runs, **{"rank_by": "multiclass/accuracy"} | options)
    said = comparison.summary()
    page = html(comparison, pictures={})
    assert in_review(comparison) == []
    assert (
        "est of at least 4 runs evaluated on these rows, this value is probably about "
        f"{comparison.looks.optimism:.2g} too " in said
    )
    equal = {run.name for run in comparison.runs if np.isfinite(run.equivalent_within)}
    needed = {
        run.name: comparison.resolution.rows_more(run.name)
        for run in comparison.runs[1:]
        if run.tied
    }
    for name, more in needed.items():
        shown = re.search(rf"about [\d,]+ for “{name}”", said) is not None
        assert shown == (name not in equal and more > 0)
    assert ("needed to separate “a” from another run" in said) == (not equal.issuperset(needed))
    assert (" equivalent to “" in said) == bool(equal)
    for run in [run for run in comparison.runs if run.name in equal]:
        word = f"{'' if run.tied else 'ruled out, but '}equivalent within {run.equivalent_within:g}"
        assert f">{word}</span>" in page
        assert f" {run.name} | {word} |" in markdown(comparison)


def test_a_review_of_one_run_or_two_metrics_has_nothing_of_it() -> None:
    alone, front = (
        compare({"a": PAIR["a"]}),
        compare(PAIR, rank_by=["multiclass/accuracy", "binary/recall"]),
    )
    for comparison in (alone, front):
        assert "selection" not in comparison.summary()
        assert "Additional rows needed" not in comparison.summary()
        assert comparison.to_dict()["resolution"] is None
    assert front.to_dict()["looks"] is None


def equal_runs(n_runs: int, n: int, seed: int) -> dict[str, Evaluation]:
    """Runs with an accuracy of 75%."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    answers = [np.where(rng.random(n) < 0.75, y, 1 - y) for _ in range(n_runs)]
    return {
        f"r{k:02d}": evaluate(y, answer, labels=[0, 1], positive=1)
        for k, answer in enumerate(answers)
    }


@pytest.mark.parametrize(
    ("gate", "has_baseline"),
    [
        ("multiclass/accuracy >= 0.77", False),
        ("multiclass/accuracy.low >= 0.705", False),
        ("binary/recall >= 0.75", False),
        ("multiclass/accuracy.difference >= 0", True),
    ],
)
def test_runs_that_a_gate_stopped_count_for_the_selection(gate: str, has_baseline: bool) -> None:
    """The best of 12 is as much too high whether or not a gate then stops some of the others."""
    runs = equal_runs(12, 200, 1)
    free = compare(runs, rank_by="multiclass/accuracy")
    assert free.ranking is not None
    against = free.ranking.runs[6].name if has_baseline else None
    gated = compare(runs, rank_by="multiclass/accuracy", require=gate, against=against)
    assert gated.ranking is not None
    assert gated.ranking.leader.name == free.ranking.leader.name
    assert len(gated.failed) > 2
    assert len(gated.failed) + len(gated.runs) == 12
    assert gated.ranking.picked_from == gated.looks.runs == gated.looks.chosen_from == 12
    assert gated.looks.optimism == pytest.approx(free.looks.optimism, rel=0.25)
    assert gated.ranking.leader.interval == pytest.approx(free.ranking.leader.interval, abs=1e-3)
    said = gated.summary()
    assert "As the highest of at least 12 runs evaluated on these rows, this value" in said
    assert "(* The interval is wider because the highest of 12 values was selected.)" in said


def test_the_only_run_that_a_gate_lets_pass_was_chosen_from_all() -> None:
    runs = equal_runs(12, 200, 1)
    best = compare(runs, rank_by="multiclass/accuracy").runs[0].value
    comparison = compare(
        runs, rank_by="multiclass/accuracy", require=f"multiclass/accuracy >= {best - 1e-9}"
    )
    assert len(comparison.runs) == 1
    said = comparison.summary()
    assert "it is the only run that passes the gates." in said
    assert "As the highest of at least 12 runs evaluated on these rows, this value" in said
    assert "]*. " in said
    assert "(* The interval is wider because the highest of 12 values was selected.)" in said


def test_a_run_without_a_value_is_not_counted_among_those_that_were_chosen_from() -> None:
    runs = equal_runs(4, 300, 0)
    actual = runs["r00"].rows.actual
    runs["never"] = evaluate(actual, np.zeros(300, int), labels=[0, 1], positive=1)
    comparison = compare(runs, rank_by="binary/matthews_corrcoef")
    assert (comparison.looks.runs, comparison.ranking.picked_from) == (4, 4)
    said = comparison.summary()
    assert "As the highest of at least 4 runs evaluated on these rows, this value" in said
    assert "(* The interval is wider because the highest of 4 values was selected.)" in said
    assert "5 runs" not in said


@pytest.mark.parametrize("margin", [0, -0.01, float("inf"), "x", True])
def test_a_margin_of_equivalence_is_above_0(margin: float) -> None:
    with pytest.raises(ValueError, match="equivalence must be a finite margin above 0, got"):
        compare(PAIR, equivalence=margin)


def test_the_ledger_of_a_comparison() -> None:
    y, models = random_models((2.0, 1.9, 1.9, 1.8), n=300)
    runs = {name: evaluate(y, y_prob=p) for name, p in zip("abcd", models, strict=True)}
    comparison = compare(runs, rank_by="multiclass/accuracy")
    looks, leader = comparison.looks, comparison.ranking.leader
    assert (looks.runs, looks.reviews, looks.value) == (4, 0, leader.value)
    assert 0 < looks.optimism < 0.1
    assert looks.corrected == looks.value - looks.optimism
    assert (looks.low, looks.high) == leader.interval
    assert looks.low < looks.corrected < looks.high
    loss = compare(runs, rank_by="probability/log_loss").looks
    assert loss.corrected > loss.value  # the least loss is too low
    gated = compare(
        runs, rank_by="multiclass/accuracy", require=f"multiclass/accuracy >= {looks.value}"
    )
    assert gated.looks.runs == 4
    # a gate at its very value speaks for luck
    assert looks.optimism < gated.looks.optimism < 2 * looks.optimism
    with pytest.raises(
        ValueError, match="the selection bias is computed only for runs ranked by one metric"
    ):
        compare(runs, rank_by=["multiclass/accuracy", "probability/log_loss"]).looks  # noqa: B018 - it raises


# -- where it is used --------------------------------------------------------------------------------------


def two_models():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], [600, 300])
    careful, eager = (1 / (1 + np.exp(-(rng.normal(2.0 * y - shift)))) for shift in (1.6, 0.6))
    return {"careful": evaluate(y, y_prob=careful), "eager": evaluate(y, y_prob=eager)}


@pytest.mark.slow
def test_runs_are_ranked_where_they_are_used() -> None:
    runs = two_models()
    here, rare = (
        compare(runs, rank_by="multiclass/accuracy"),
        compare(runs, rank_by="multiclass/accuracy", at=0.02),
    )
    for run in rare.runs:
        assert run.value == pytest.approx(runs[run.name].at(0.02).metrics["multiclass/accuracy"])
        assert run.standard_error > 0
        assert not run.unpaired
    common = compare(runs, rank_by="multiclass/accuracy", at={1: 0.9})
    assert [c.best.name for c in (rare, common)] == ["careful", "eager"]
    assert abs(here["eager"].difference) < abs(rare["eager"].difference)
    assert "class shares that differ from the test rows: 2% positives." in " ".join(rare.notes)
    assert "class shares that differ from the test rows: 90% of “1”." in " ".join(common.notes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("at", "shares"), [(0.02, "2% of “1”"), ({0: 0.25, 1: 0.75}, "25% of “0”, 75% of “1”")]
)
def test_the_head_of_a_review_says_at_which_shares(at, shares: str) -> None:
    comparison = compare(two_models(), rank_by="multiclass/accuracy", at=at)
    assert f"<li>evaluated at {shares}</li>" in html(comparison)
    condition = {"2% of “1”": "If 2% of the rows were “1”"}.get(
        shares, "If 25% of the rows were “0” and 75% of the rows were “1”"
    )
    assert comparison.summary().startswith(f"{condition}: ")
    assert f"<title>Review by accuracy, {condition[0].lower()}{condition[1:]}" in html(comparison)
    assert f"; evaluated at {shares}; ranked by accuracy" in markdown(comparison)
    head = "accuracy at 2%" if at == 0.02 else "accuracy at other shares"
    assert f"| Status | {head.capitalize()} |" in markdown(comparison)
    assert f"<p>Evaluated at {shares}.</p>" in notebook_html(comparison)
    for text in (html(comparison), markdown(comparison)):
        assert "2 runs on 900 rows" in text
        assert "sampling weight" not in text
    here = compare(two_models(), rank_by="multiclass/accuracy")
    assert not any("udged at" in text for text in (html(here), markdown(here), notebook_html(here)))
    y, weights = np.tile([0, 1], 50), np.full(100, 1.5)
    weighted = {name: evaluate(y, y, sample_weight=weights) for name in ("one", "other")}
    assert "(sampling weight 150)" in markdown(
        compare(weighted, rank_by="multiclass/accuracy", at=at)
    )


@pytest.mark.slow
def test_gates_and_costs_are_those_there() -> None:
    runs = two_models()
    gated = compare(runs, rank_by="binary/recall", require="binary/precision >= 0.3", at=0.02)
    assert [run.name for run in gated.failed] == [
        name for name in runs if runs[name].at(0.02).metrics["binary/precision"] < 0.3
    ]
    costs = Costs({(1, 0): 5, (0, 1): 1})
    priced = compare(runs, rank_by="cost/mean", costs=costs, at=0.02)
    for run in priced.runs:
        assert run.value == pytest.approx(runs[run.name].price(costs).at(0.02).metrics["cost/mean"])


def test_a_paired_difference_there_has_the_error_of_the_rows() -> None:
    runs = two_models()
    careful, eager = (runs[name].at(0.02).reweighted for name in ("careful", "eager"))
    weights, psi = (
        careful.rows.design.weights,
        careful.influence("binary/f1") - eager.influence("binary/f1"),
    )
    expected = np.sqrt(((weights * psi) ** 2).sum()) / weights.sum()
    ranked = compare(runs, rank_by="binary/f1", at=0.02)
    assert ranked["eager"].standard_error == pytest.approx(expected, rel=1e-6)


def test_groups_have_shares_too() -> None:
    y, _, p = random_problem(4, n=300, k=4)
    grouping = Grouping({"low": [0, 1], "high": [2, 3]})
    runs = {"one": evaluate(y, y_prob=p), "other": evaluate(y, y_prob=np.roll(p, 1, axis=0))}
    found = compare(
        runs, rank_by="binary/precision", grouping=grouping, positive="high", at={"high": 0.1}
    )
    expected = (
        runs["one"].regroup(grouping, positive="high").at({"high": 0.1}).metrics["binary/precision"]
    )
    assert found["one"].value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"at": 2}, "at must be a share between 0 and 1"),
        ({"at": True}, "at must be a share between 0 and 1"),
        ({"at": 0.1, "segments": "region"}, "segments cannot be combined with at"),
        ({"equivalence": 0.1, "block": "params.fold"}, "equivalence cannot be combined with block"),
    ],
    ids=str,
)
def test_bad_options(options, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        CompareOptions(**options)


@pytest.mark.parametrize("at", [0.1, pytest.param({1: 0.2}, marks=pytest.mark.slow)], ids=str)
def test_a_bundle_is_computed_again_there(tmp_path, at) -> None:
    file = compare(two_models(), rank_by="binary/f1", at=at, equivalence=0.2).bundle(
        tmp_path / "review.zip"
    )
    run = CliRunner().invoke(main, ["verify", str(file)])
    assert (run.exit_code, run.stdout.splitlines()[0]) == (0, "review.zip: verified.")


# -- where two models cross --------------------------------------------------------------------------------


def of_cells(cells) -> list:
    """Two evaluations of rows by actual class (rows) and both answers (columns 00, 01, 10, 11)."""
    counts = np.asarray(cells)
    actual, both = (np.repeat(part, counts.ravel()) for part in np.divmod(np.arange(8), 4))
    return [evaluate(actual, both // 2), evaluate(actual, both % 2)]


def test_paired_differences_there_are_those_of_the_vector() -> None:
    """Vector TV-D9: errors are those within the classes, whose shares are given."""
    first, second = (
        side.at(0.1).reweighted for side in of_cells([[560, 42, 35, 63], [18, 15, 12, 255]])
    )
    expected = {
        "multiclass/accuracy": (0.0080000000, 0.0114090607),
        "binary/precision": (0.0139534884, 0.0214009502),
        "binary/f1": (0.0112332112, 0.0212022302),
        "binary/matthews_corrcoef": (0.0088660839, 0.0220203784),
    }
    for row in paired_differences(first, second, metrics=expected).rows:
        assert (row.difference, row.standard_error) == pytest.approx(
            expected[row.metric], abs=6e-11
        ), row.metric
