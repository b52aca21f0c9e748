"""What runs are ranked by, gates and tie-breakers: how they read, and what they say of wrong ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cmtrack import Evaluation, Grouping, Metric, evaluate
from cmtrack.comparison import Blocks, Candidate, Criterion, Difference, TieBreaker, rank_models
from cmtrack.evaluation import Gate
from cmtrack.removed import RemovedFeature
from cmtrack.tracking import TrackedRun

# -- criterion -------------------------------------------------------------------------------------------------------


def test_a_metric_knows_its_direction():
    assert Criterion.of("multiclass/accuracy").direction == "higher"
    assert Criterion.of("binary/fpr").direction == "lower"
    assert Criterion.of("prevalence/bias").direction == "nearest zero"


def test_names_are_a_front():
    front = Criterion.of(["multiclass/accuracy", "prevalence/bias", "multiclass/accuracy"])
    assert (front.metrics, front.pareto) == (("multiclass/accuracy", "prevalence/bias"), True)
    assert not Criterion.of(["multiclass/accuracy"]).pareto
    assert str(front) == "the Pareto front of multiclass/accuracy, prevalence/bias"


@pytest.mark.parametrize(
    ("unknown", "meant"),
    {
        "f1": "binary/f1",
        "f1_score": "binary/f1",
        "recall_score": "binary/recall",
        "accuracy_score": "multiclass/accuracy",
        "binary/f1_score": "binary/f1",
        "multiclass/f1": "multiclass/f1_macro",
        "multiclass/log_loss": "probability/log_loss",
        "roc_auc_score": "binary/roc_auc",
        "brier_score_loss": "probability/brier",
        "mcc": "multiclass/matthews_corrcoef",
        "spans/f1": "spans/f1_micro",
        "class/2/recal": "class/<label>/recall",
    }.items(),
)
def test_an_unknown_metric_gets_the_name_that_was_meant_first(unknown, meant):
    with pytest.raises(
        ValueError, match=f"there is no metric named '{unknown}'; did you mean '{meant}'"
    ):
        Criterion.of(unknown)


@pytest.mark.parametrize(
    ("rank_by", "error", "words"),
    [
        ("multiclass/acuracy", ValueError, "did you mean 'multiclass/accuracy'"),
        ("class/3/support", ValueError, "neither high nor low values are better"),
        ("prevalence/actual", ValueError, "neither high nor low values are better"),
        ([], ValueError, "at least one"),
        ({"multiclass/accuracy": 2}, RemovedFeature, "rank by one metric, or by a cost"),
        ([3], TypeError, "the name of a metric must be a string"),
        (3, TypeError, "rank_by must be"),
    ],
)
def test_wrong_criteria(rank_by, error, words):
    with pytest.raises(error, match=words):
        Criterion.of(rank_by)


@pytest.mark.parametrize("option", ["grouping", "positive"])
def test_a_metric_that_an_option_changes_depends_on_it(option):
    y = np.arange(60) % 3
    probabilities = np.random.default_rng(0).dirichlet(np.ones(3), 60) + np.eye(3)[y] / 3
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    halves = Grouping({"low": [0, 1], "high": [2]}, name="halves")
    options = {"grouping": halves, "positive": "high", "costs": {(0, 1): 2, (2, 0): 5}}
    other = {
        "grouping": Grouping({"low": [0], "high": [1, 2]}, name="halves"),
        "positive": "low",
    }
    first = evaluate(y, y_prob=probabilities, **options)
    second = evaluate(y, y_prob=probabilities, **options | {option: other[option]})
    changed = [
        name for name, value in first.metrics.items() if second.metrics.get(name, value) != value
    ]
    assert len(changed) > 20
    assert {name for name in changed if option not in first.catalog.depends_on(name)} == set()
    assert first.catalog.depends_on("multiclass/accuracy") == set()
    assert first.catalog.depends_on("cost/mean") == {"costs"}


def test_a_custom_metric_of_all_classes_depends_on_no_option():
    custom = [
        Metric("custom/rows", lambda counts: counts.sum()),
        Metric("custom/gain", lambda b: b.tp - b.fp, of="binary"),
    ]
    catalog = evaluate([0, 1, 1], [0, 1, 0], extra_metrics=custom).catalog
    assert catalog.depends_on("custom/rows") == set()
    assert catalog.depends_on("custom/gain") == {"grouping", "positive"}


# -- gates -----------------------------------------------------------------------------------------------------------

METRICS = {
    "prevalence/bias": -0.02,
    "class/3/recall": 0.7,
    "binary/roc_auc": math.nan,
    "class/b.low/recall": 0.4,
}
INTERVALS = {"prevalence/bias": (-0.05, 0.01), "class/3/recall": (0.6, 0.8)}


@pytest.mark.parametrize(
    ("text", "value", "passed"),
    [
        ("prevalence/bias.abs <= 0.02", 0.02, True),
        ("prevalence/bias.abs<0.02", 0.02, False),
        ("prevalence/bias >= -0.02", -0.02, True),
        ("prevalence/bias.abs.high <= 0.05", 0.05, True),
        ("prevalence/bias.abs.low > 0", 0.0, False),
        ("class/3/recall.low >= 0.6", 0.6, True),
        ("class/3/recall.high < .8", 0.8, False),
        ("class/b.low/recall >= 4e-1", 0.4, True),
    ],
)
def test_gates(text, value, passed):
    result = Gate.parse(text).check(METRICS, INTERVALS)
    assert result.value == pytest.approx(value)
    assert result.passed is passed
    assert text.strip() in str(result)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("binary/roc_auc >= 0.5", "binary/roc_auc is undefined"),
        ("class/4/recall >= 0.5", "the run has no class/4/recall"),
        ("class/b.low/recall.low >= 0.1", "class/b.low/recall has no interval"),
        ("prevalence/bias.difference <= 0.1", "there is no baseline to take a difference from"),
    ],
)
def test_a_gate_without_a_value_is_not_passed(text, reason):
    result = Gate.parse(text).check(METRICS, INTERVALS)
    assert not result.passed
    assert math.isnan(result.value)
    assert result.reason == reason


def test_a_gate_on_the_difference_from_a_baseline():
    gap = Difference("prevalence/bias", 0.1, 0.2, -0.1, 0.05, -0.2, 0.0, 0.05)
    assert (
        Gate.parse("prevalence/bias.difference.low >= -0.2").check(METRICS, INTERVALS, gap).passed
    )
    assert Gate.parse("prevalence/bias.difference.abs <= 0.1").check(METRICS, INTERVALS, gap).passed
    assert (
        not Gate.parse("prevalence/bias.difference.high < 0").check(METRICS, INTERVALS, gap).passed
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prevalence/bias", "expected a comparison"),
        ("prevalence/bias == 0.1", "expected <=, >=, < or > at character 17, got '=='"),
        ("prevalence/bias = 0.1", "at character 17, got '='"),
        (
            "prevalence/bias <= a tenth",
            "expected a number after '<=' (character 19), got 'a tenth'",
        ),
        ("prevalence/bias <= nan", "expected a number"),
        ("prevalence/bias <=", "expected a number"),
        (">= 0.1", "expected a metric before"),
        ("prevalence/bais <= 0.1", "did you mean 'prevalence/bias'"),
        ("prevalence/bias.low.abs <= 0.1", "unexpected '.low' at character 16"),
        ("prevalence/bias.low.high <= 0.1", "unexpected '.low' at character 16"),
        ("prevalence/bias.abs.abs <= 0.1", "unexpected '.abs' at character 16"),
        ("prevalence/bias.width <= 0.1", "there is no metric named 'prevalence/bias.width'"),
    ],
)
def test_gates_that_do_not_parse_say_where(text, words):
    with pytest.raises(ValueError, match="gate ") as raised:
        Gate.parse(text)
    assert words in str(raised.value)
    assert repr(text) in str(raised.value)


def test_a_gate_is_a_text():
    with pytest.raises(TypeError, match="a gate must be a string"):
        Gate.parse(0.5)


# -- tie-breakers ----------------------------------------------------------------------------------------------------


def biased(bias: float, seed: int) -> Evaluation:
    """An evaluation of 40 rows, of which two of each class are wrong; its mean score is this far from the share."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1, 0], 20)
    wrong = [*rng.choice(20, 2, replace=False), *(20 + rng.choice(20, 2, replace=False))]
    predicted = y.copy()
    predicted[wrong] = 1 - predicted[wrong]
    return evaluate(y, y_prob=0.4 + 0.2 * predicted + bias, positive=1)


def chosen(runs: dict[str, dict[str, str]], *rules: str, biases: tuple[float, ...] = ()) -> str:
    """The model that tie-breakers choose among models of the same accuracy, by the parameters of their runs."""
    candidates = [
        Candidate(
            TrackedRun(f"{name} {seed}", name, params={"m": name, "seed": str(seed), **params}),
            biased(bias, seed=3 * place + seed),
        )
        for place, ((name, params), bias) in enumerate(
            zip(runs.items(), biases or [0.0] * len(runs), strict=True)
        )
        for seed in range(3)
    ]
    ranking, _, _ = rank_models(
        candidates,
        Criterion.of("multiclass/accuracy"),
        Blocks("params.seed", model="params.m"),
        tie_breakers=[TieBreaker.parse(rule) for rule in rules],
        margin=0.1,
    )
    assert all(model.tied for model in ranking.models)
    return ranking.chosen.name


@pytest.mark.slow
def test_the_least_parameter_wins_and_numbers_are_not_texts():
    runs = {"a": {"depth": "10"}, "b": {"depth": "9"}, "c": {}}
    assert chosen(runs, "params.depth") == "b"
    assert chosen(runs, "params.depth DESC") == "a"
    assert str(TieBreaker.parse("params.depth")) == "smallest params.depth"
    assert chosen({"a": {"kind": "b"}, "b": {"kind": "c"}}, "params.kind desc") == "b"


@pytest.mark.slow
def test_metrics_know_their_direction():
    runs: dict[str, dict[str, str]] = {"a": {}, "b": {}}
    biases = (-0.08, 0.05)
    assert chosen(runs, "prevalence/bias", biases=biases) == "b"
    assert chosen(runs, "prevalence/bias asc", biases=biases) == "a"
    assert str(TieBreaker.parse("prevalence/bias")) == "nearest zero prevalence/bias"
    assert TieBreaker.parse("multiclass/accuracy").descending


@pytest.mark.slow
def test_the_next_rule_decides_among_equals_and_else_the_order():
    runs = {
        "a": {"seconds": "3.0", "model": "x"},
        "b": {"seconds": "3", "model": "w"},
        "c": {"seconds": "4.0", "model": "a"},
    }
    assert chosen(runs, "params.seconds", "params.model") == "b"
    assert chosen(runs, "params.seconds") == "a"
    assert chosen(runs) == "a"


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("depth", ValueError, "a tie-breaker must be a metric, 'params"),
        ("multiclass/acuracy", ValueError, "did you mean"),
        ("", ValueError, "must name"),
        (3, TypeError, "must be a string"),
    ],
)
def test_wrong_tie_breakers(text, error, words):
    with pytest.raises(error, match=words):
        TieBreaker.parse(text)
