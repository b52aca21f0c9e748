"""What runs are ranked by, gates and tie-breakers: how they read, and what they say of wrong ones."""

from __future__ import annotations

import math

import pytest

from cmtrack.comparison import Criterion, Difference, TieBreaker
from cmtrack.comparison.tie_breakers import decide
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
        ValueError, match=f"no metric is called '{unknown}'; did you mean '{meant}'"
    ):
        Criterion.of(unknown)


@pytest.mark.parametrize(
    ("rank_by", "error", "words"),
    [
        ("multiclass/acuracy", ValueError, "did you mean 'multiclass/accuracy'"),
        ("class/3/support", ValueError, "has no better or worse"),
        ("prevalence/actual", ValueError, "has no better or worse"),
        ([], ValueError, "at least one"),
        ({"multiclass/accuracy": 2}, RemovedFeature, "rank by one metric, or by a cost"),
        ([3], TypeError, "named by a text"),
        (3, TypeError, "rank_by must be"),
    ],
)
def test_wrong_criteria(rank_by, error, words):
    with pytest.raises(error, match=words):
        Criterion.of(rank_by)


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
        ("prevalence/bias.width <= 0.1", "no metric is called 'prevalence/bias.width'"),
    ],
)
def test_gates_that_do_not_parse_say_where(text, words):
    with pytest.raises(ValueError, match="gate ") as raised:
        Gate.parse(text)
    assert words in str(raised.value)
    assert repr(text) in str(raised.value)


def test_a_gate_is_a_text():
    with pytest.raises(TypeError, match="a gate must be a text"):
        Gate.parse(0.5)


# -- tie-breakers ----------------------------------------------------------------------------------------------------


def _run(name, params=None, metrics=None):
    return TrackedRun(name, name, params=params or {}, metrics=metrics or {})


def test_the_least_parameter_wins_and_numbers_are_not_texts():
    runs = [(_run("a", {"depth": "10"}), {}), (_run("b", {"depth": "9"}), {}), (_run("c"), {})]
    decision = decide(runs, [TieBreaker.parse("params.depth")])
    assert (decision.place, str(decision.by)) == (1, "smallest params.depth")
    assert decision.values == (10.0, 9.0, None)
    assert decide(runs, [TieBreaker.parse("params.depth DESC")]).place == 0


def test_metrics_know_their_direction():
    runs = [(_run("a"), {"prevalence/bias": -0.1}), (_run("b"), {"prevalence/bias": 0.05})]
    assert decide(runs, [TieBreaker.parse("prevalence/bias")]).place == 1
    assert decide(runs, [TieBreaker.parse("prevalence/bias asc")]).place == 0
    assert str(TieBreaker.parse("prevalence/bias")) == "nearest zero prevalence/bias"
    assert TieBreaker.parse("multiclass/accuracy").descending


def test_the_next_rule_decides_among_equals_and_else_the_order():
    runs = [
        (_run("a", {"model": "x"}, {"seconds": 3.0}), {}),
        (_run("b", {"model": "w"}, {"seconds": 3.0}), {}),
        (_run("c", {"model": "a"}, {"seconds": 4.0}), {}),
    ]
    rules = [TieBreaker.parse("metrics.seconds"), TieBreaker.parse("params.model")]
    assert decide(runs, rules).place == 1
    undecided = decide(runs[:2], rules[:1])
    assert (undecided.place, undecided.by) == (0, None)
    assert decide(runs, []).place == 0
    assert decide(
        [(_run("a", {"m": "b"}), {}), (_run("b", {"m": "c"}), {})],
        [TieBreaker.parse("params.m desc")],
    ).place


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("depth", ValueError, "a tie-breaker must be a metric, 'params"),
        ("multiclass/acuracy", ValueError, "did you mean"),
        ("", ValueError, "must name"),
        (3, TypeError, "must be a text"),
    ],
)
def test_wrong_tie_breakers(text, error, words):
    with pytest.raises(error, match=words):
        TieBreaker.parse(text)
