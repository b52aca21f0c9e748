"""Averages over classes that are undefined, and values at the ends of their range."""

from __future__ import annotations

import ast
import importlib
import math
import re
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from sklearn.metrics import f1_score, precision_score

from cmtrack import Evaluation, Grouping, Metric, compare, evaluate, paired_differences
from cmtrack.metrics import lookup, on_scale, wilson
from support import ROOT
from support.problems import evaluate_counts, random_guesses, random_problem

Y = np.repeat([0, 1, 2], 50)
LAZY = np.r_[np.zeros(50, int), np.ones(100, int)]  # gives up on class 2
HONEST = random_guesses(Y, 3, 0.6)
ZERO = {
    "precision_macro_zero": lambda y, p, w: precision_score(
        y, p, average="macro", zero_division=0, sample_weight=w
    ),
    "precision_weighted_zero": lambda y, p, w: precision_score(
        y, p, average="weighted", zero_division=0, sample_weight=w
    ),
    "f1_macro_zero": lambda y, p, w: f1_score(
        y, p, average="macro", zero_division=0, sample_weight=w
    ),
}


@pytest.mark.parametrize("metric", ZERO)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_zero_counted_averages_are_those_of_scikit_learn(
    metric: str, seed: int, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    y, p = rng.integers(0, 5, 60), rng.integers(0, 3, 60)  # two classes are never predicted
    weights = rng.gamma(1, 1, 60) if weighted else None
    found = evaluate(y, p, sample_weight=weights).metrics[f"multiclass/{metric}"]
    assert found == pytest.approx(ZERO[metric](y, p, weights), abs=1e-14)


def test_the_reported_example() -> None:
    metrics = evaluate(Y, LAZY).metrics
    assert metrics["multiclass/precision_macro"] == 0.75
    assert metrics["multiclass/precision_macro_zero"] == 0.5


@pytest.mark.thin(3)
@pytest.mark.slow
@pytest.mark.parametrize("metric", ZERO)
def test_errors_of_zero_counted_averages_are_those_of_a_bootstrap_and_of_the_rows(
    metric: str,
) -> None:
    y, p, _ = random_problem(1, n=400, k=5)
    p = np.where(p == 4, 3, p)
    evaluation = evaluate(y, p)
    name = f"multiclass/{metric}"
    psi = evaluation.influence(name)
    assert psi is not None
    assert math.sqrt(float((psi - psi.mean()) @ (psi - psi.mean()))) / 400 == pytest.approx(
        evaluation.standard_errors[name], rel=1e-9
    )
    low, high = evaluation.count_intervals("bootstrap", n_resamples=800)[name]
    assert (high - low) / 3.92 == pytest.approx(evaluation.standard_errors[name], rel=0.12)


def test_a_step_of_a_grouping_has_them_too() -> None:
    evaluation = evaluate(Y, LAZY, grouping=Grouping({"a": [0], "b": [1], "c": [2]}, name="abc"))
    assert evaluation.metrics["reduced/abc/precision_macro"] == 0.75
    assert evaluation.metrics["reduced/abc/precision_macro_zero"] == 0.5
    assert evaluation.classes_passed_over("reduced/abc/precision_macro") == ("c",)
    assert any("“c”" in text and "of the step “abc”" in text for text in evaluation.warnings)
    assert evaluation.influence("reduced/abc/precision_macro_zero") is not None


def test_an_average_that_leaves_out_a_class_with_samples_is_a_warning() -> None:
    (told,) = [text for text in evaluate(Y, LAZY).warnings if "“2”" in text]
    assert "multiclass/precision_macro" in told
    assert "precision_macro_zero" in told
    assert not any("predicted" in text for text in evaluate(Y, HONEST).warnings)
    assert evaluate(Y, LAZY).classes_passed_over("multiclass/precision_macro") == (2,)
    assert evaluate(Y, LAZY).classes_passed_over("multiclass/precision_macro_zero") == ()


def test_a_run_that_leaves_out_more_classes_is_not_ranked() -> None:
    runs = {"lazy": evaluate(Y, LAZY), "honest": evaluate(Y, HONEST)}
    for metric in (
        "multiclass/precision_macro",
        "multiclass/precision_weighted",
        "multiclass/f1_of_macro_means",
    ):
        comparison = compare(runs, rank_by=metric)
        assert [run.name for run in comparison.ranking.runs] == ["honest"]
        (left,) = comparison.left_out
        other = "multiclass/f1_macro" if metric.endswith("means") else f"{metric}_zero"
        assert left.run.name == "lazy"
        assert left.reason == (
            f"{metric} ignores “2”, which this run never predicts but another run does; "
            f"rank by {other}, which counts it as 0"
        )
        assert not comparison.notes
    comparison = compare(runs, rank_by="multiclass/precision_macro_zero")
    assert not comparison.notes
    assert comparison.best.name == "honest"
    pair = paired_differences(
        runs["honest"], runs["lazy"], metrics=["multiclass/precision_macro_zero"]
    )
    assert pair["multiclass/precision_macro_zero"].standard_error > 0


def test_a_ranking_of_runs_that_all_leave_out_the_same_classes_says_so() -> None:
    runs = {"lazy": evaluate(Y, LAZY), "again": evaluate(Y, LAZY)}
    comparison = compare(runs, rank_by="multiclass/precision_macro")
    assert not comparison.left_out
    (note,) = comparison.notes
    assert note == (
        "Ranked by multiclass/precision_macro, which ignores classes that a run never predicts: 1 of “again”, 1 of “lazy”; "
        "multiclass/precision_macro_zero counts them as 0."
    )


def test_a_tie_breaker_does_not_reward_leaving_out_a_class() -> None:
    y = np.arange(300) % 3
    first = np.where(np.arange(300) < 30, (y + 1) % 3, y)
    second = np.where(y == 2, np.arange(300) % 2, y)  # never predicts 2
    runs = {"all": evaluate(y, first), "two": evaluate(y, second)}
    found = compare(
        runs, rank_by="multiclass/accuracy", tie_breakers=["multiclass/precision_macro"], margin=1.0
    )
    assert found.best.name == "all"


def test_a_ranking_by_correlations_names_classes_without_rows() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    runs = {
        name: evaluate(y, y_prob=rng.dirichlet(np.ones(4), 90), labels=range(4)) for name in "ab"
    }
    assert "Ranked by spcc/ovr_fisher, which ignores classes without rows: “3”." in (
        compare(runs, rank_by="spcc/ovr_fisher").notes
    )
    assert not compare(runs, rank_by="multiclass/accuracy").notes


def test_the_intercept_of_a_run_with_scores_of_0_or_1_is_not_ranked() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    soft = np.clip(0.3 + 0.4 * y + 0.2 * rng.normal(size=200), 0.05, 0.95)
    hard = np.where(rng.random(200) < 0.2, 1.0 - y, soft)  # surely wrong in a fifth of the rows
    comparison = compare(
        {"soft": evaluate(y, y_prob=soft), "hard": evaluate(y, y_prob=hard)},
        rank_by="calibration/intercept",
    )
    assert [run.name for run in comparison.ranking.runs] == ["soft"]
    assert "exactly 0 or 1" in comparison.left_out[0].reason


AVERAGES = (
    "precision_macro",
    "precision_weighted",
    "f1_macro",
    "f1_of_macro_means",
    "recall_macro",
    "f1_weighted",
)
CORRELATIONS = ("spcc/ovr_fisher", "spcc/ovo_fisher", "spcc/ovr_min", "spcc/ovo_min")
AREAS = tuple(f"multiclass/roc_auc_{how}" for how in ("ovr_macro", "ovr_weighted", "ovo_macro"))


@pytest.mark.slow
@pytest.mark.thin(8)
@pytest.mark.parametrize("seed", range(25))
def test_losing_a_class_never_improves_an_average_that_ranks(seed: int) -> None:
    """A run that never predicts a class, or gives it a constant score, is at most as good as with worst honest values.

    Otherwise it is not ranked.
    """
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 6))
    y = np.concatenate((np.repeat(np.arange(size), 4), rng.choice(size, 150)))
    scores = rng.dirichlet(np.ones(size), len(y)) + rng.random() * np.eye(size)[y]
    scores /= scores.sum(axis=1, keepdims=True)
    lost = int(rng.integers(size))
    without = scores.copy()
    without[:, lost] = 0.0
    without /= without.sum(axis=1, keepdims=True)
    runs = {"whole": evaluate(y, y_prob=scores), "lost": evaluate(y, y_prob=without)}
    assert (runs["whole"].confusion_matrix.counts.sum(axis=0) > 0).all()
    values = runs["lost"].metrics
    for name in AVERAGES:
        metric = f"multiclass/{name}"
        ranked = [run.name for run in compare(runs, rank_by=metric).ranking.runs]
        if runs["lost"].classes_passed_over(metric):
            assert ranked == ["whole"]
        else:
            assert sorted(ranked) == ["lost", "whole"]
    recalls = [values[f"class/{k}/recall"] for k in range(size)]
    f1 = [values[f"class/{k}/f1"] for k in range(size)]
    assert values["multiclass/recall_macro"] == pytest.approx(np.mean(recalls))
    assert values["multiclass/f1_macro"] == pytest.approx(np.mean(f1))
    assert f1[lost] == recalls[lost] == values[f"spcc/ovr/{lost}"] == 0
    correlations = [values[f"spcc/ovr/{k}"] for k in range(size)]
    assert values["spcc/ovr_fisher"] == pytest.approx(math.tanh(np.arctanh(correlations).mean()))
    assert values["spcc/ovr_min"] == min(correlations)
    areas = [values[f"class/{k}/roc_auc"] for k in range(size)]
    assert areas[lost] == 0.5
    assert values["multiclass/roc_auc_ovr_macro"] == pytest.approx(np.mean(areas))
    for name in (*CORRELATIONS, *AREAS):
        assert math.isfinite(values[name])
        assert len(compare(runs, rank_by=name).ranking.runs) == 2


def test_the_report_shows_the_warning() -> None:
    from cmtrack.report import report_html

    assert "precision_macro_zero" in report_html(evaluate(Y, LAZY), {}).split('class="metrics')[0]


# --- ends of ranges --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4, 5, 7, 11])
def test_a_perfect_correlation_is_one(k: int) -> None:
    y = np.random.default_rng(k).integers(0, k, 97)
    evaluation = evaluate(y, y, labels=list(range(k)))
    for name in ("multiclass/matthews_corrcoef", "multiclass/cohen_kappa"):
        assert evaluation.metrics[name] == 1
        low, high = evaluation.intervals.get(name, (1.0, 1.0))
        assert low <= 1 <= high


@pytest.mark.parametrize("seed", range(6))
def test_a_constant_prediction_has_no_kappa(seed: int) -> None:
    y = np.random.default_rng(seed).integers(0, 4, 101)
    evaluation = evaluate(y, np.full(101, 2), labels=[0, 1, 2, 3])
    for name in ("cohen_kappa", "cohen_kappa_linear", "cohen_kappa_quadratic"):
        assert evaluation.metrics[f"multiclass/{name}"] == 0
        low, high = evaluation.intervals.get(f"multiclass/{name}", (0.0, 0.0))
        assert low <= 0 <= high


def test_values_within_rounding_of_an_end_are_the_end() -> None:
    tiny = evaluate([0, 1], [0, 0], sample_weight=[1e-15, 1.0])
    # a share may be that small
    assert tiny.metrics["multiclass/accuracy"] == pytest.approx(1e-15, rel=1e-9)
    assert on_scale("wald", -1e-16, 1e-17, 0.95, (0.0, 1.0)) is None
    assert on_scale("atanh", 1 - 2e-16, 1e-17) is None
    assert wilson(1 - 1e-16, 50) == wilson(1.0, 50)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 5),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["none", "whole", "fraction"]),
    st.data(),
)
def test_every_interval_holds_its_value_and_stays_in_range(
    k: int, seed: int, weights: str, data: Any
) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (k, k)) * rng.integers(0, 2, (k, k))
    if data.draw(st.booleans(), label="perfect"):
        counts = np.diag(np.diag(counts) + 1)
    if counts.sum() == 0:
        counts[0, 0] = 1
    n = int(counts.sum())
    given: dict[str, Any] = {"labels": list(range(k))}
    if weights != "none":
        given["sample_weight"] = (
            rng.integers(1, 4, n) if weights == "whole" else rng.gamma(1, 1, n) + 1e-3
        )
    evaluation: Evaluation = evaluate_counts(counts, **given)
    for name, (low, high) in evaluation.intervals.items():
        metric, value = lookup(name), evaluation.metrics[name]
        assert low <= value <= high, name
        assert metric.low <= low <= high <= metric.high, name
        assert metric.low <= value <= metric.high, name


# --- tables and words ------------------------------------------------------------------------------------------


def test_the_class_table_has_a_row_per_class() -> None:
    table = evaluate(Y, LAZY).class_table().set_index("label")
    assert table["support"].tolist() == [50, 50, 50]
    assert table["predicted"].tolist() == [50, 100, 0]
    assert table.loc[1, "precision"] == 0.5
    assert table.loc[1, "precision_low"] < 0.5 < table.loc[1, "precision_high"]
    assert math.isnan(table.loc[2, "precision"])
    assert list(table.columns[2:5]) == ["precision", "precision_low", "precision_high"]


def test_the_estimate_of_many_classes_names_them_all() -> None:
    from cmtrack import estimate_prevalence

    y, _, p = random_problem(3, n=600, k=3)
    shown = repr(estimate_prevalence(p, calibration=(y, p)))
    assert all(f"{k}: 0." in shown for k in range(3)), shown


def test_an_interval_that_needs_what_is_not_kept_is_missed_aloud() -> None:
    y, _, p = random_problem(4, n=800, k=31)
    evaluation = evaluate(y, y_prob=p)
    assert "spcc/ovr_fisher" not in evaluation.intervals
    assert any(
        "spcc/ovr_fisher and spcc/ovo_fisher have no interval" in text
        for text in evaluation.warnings
    )


# -- the examples of the guide to contributors -------------------------------------------------------------------

EXAMPLES = re.findall(
    r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL
)
DECLARED_IN = {"_binary(": "binary", "_spcc(": "spcc", "_multiclass(": "multiclass"}
"""By the function that declares a metric: the module of its section, in which the example belongs."""


def metric_of(function: str) -> Metric:
    """The metric that the guide's example of a section declares."""
    (example,) = [code for code in EXAMPLES if function in code]
    module = importlib.import_module(f"cmtrack.metrics.{DECLARED_IN[function]}")
    declared = ast.parse(example)
    (metric,) = [node for node in declared.body if isinstance(node, ast.Expr)]
    declared.body.remove(metric)
    space = dict(vars(module))
    exec(compile(declared, "CONTRIBUTING.md", "exec"), space)
    made = eval(compile(ast.Expression(metric.value), "CONTRIBUTING.md", "eval"), space)
    assert isinstance(made, Metric)
    return made


@pytest.mark.parametrize("function", DECLARED_IN)
def test_the_examples_of_the_guide_declare_metrics_with_numbers(function: str) -> None:
    metric = metric_of(function)
    y, _, p = random_problem(0, k=2)
    samples = evaluate(y, y_prob=p)._views.of(metric)
    assert math.isfinite(metric.number(samples.argument()))


@pytest.mark.parametrize(
    ("recalls", "mean"), [((0.5, 0.8), math.sqrt(0.4)), ((0.5, 0.0), 0.0), ((0.5, None), 0.5)]
)
def test_a_metric_of_class_sums_may_be_singular_where_there_are_no_hits(recalls, mean):
    counts = np.zeros((2, 2))
    for k, recall in enumerate(recalls):
        if recall is not None:
            counts[k] = 10 * (1 - recall)
            counts[k, k] = 10 * recall
    table = evaluate_counts(np.rint(counts))._views.table
    assert metric_of("_multiclass(").number(table) == pytest.approx(mean, abs=1e-15)
