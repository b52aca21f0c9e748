"""Promote, keep or cannot tell: outcomes of gates, the answer, and the rows that would decide."""

from __future__ import annotations

import itertools
import math
import operator
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cmtrack
from cmtrack import compare, evaluate
from cmtrack.comparison import Answer, judge
from cmtrack.evaluation import Gate, GateOutcome

# The words for a number of rows are in messages and on the terminal only.
from cmtrack.report.assertions import rows_would_decide

ACCURACY = "multiclass/accuracy"
MCC = "binary/matthews_corrcoef"
N = 2000
Y = np.arange(N) % 2
HOLDS = GateOutcome.HOLDS
REFUTED = GateOutcome.REFUTED
OPEN = GateOutcome.OPEN
OPERATORS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
BOUND = 0.5


@cache
def run(correct_only: int = 0, wrong_only: int = 0) -> cmtrack.Evaluation:
    """A run that differs from ``run()`` in a number of rows, correct or wrong."""
    wrong = np.arange(N) < 300
    wrong[:correct_only] = False
    wrong[300 : 300 + wrong_only] = True
    return evaluate(Y, np.where(wrong, 1 - Y, Y), positive=1)


# -- outcomes of gates -----------------------------------------------------------------------------


def outcome(text: str, value: float, ends: tuple[float, float]) -> GateOutcome:
    return Gate.parse(text).check({ACCURACY: value}, {ACCURACY: ends}).outcome


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("part", ["", ".low", ".high", ".abs"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        (0.1, 0.2),
        (0.6, 0.9),
        (0.4, 0.6),
        (0.5, 0.6),
        (0.4, 0.5),
        (0.5, 0.5),
        (0.4, 0.4),
        (0.6, 0.6),
        (math.nan, math.nan),
    ],
)
def test_each_gate_has_the_outcome_of_its_interval(
    sign: str, part: str, low: float, high: float
) -> None:
    value = 0.45 if math.isnan(low) else (low + high) / 2
    found = outcome(f"{ACCURACY}{part} {sign} {BOUND}", value, (low, high))
    keeps = OPERATORS[sign]
    if part not in (".low", ".high"):
        assert found is (HOLDS if keeps(value, BOUND) else REFUTED)
    elif math.isnan(low):
        assert found is OPEN
    elif (part == ".low") == sign.startswith(">"):
        # The lower end of ``.low >=`` is the far one: the rows decide unless the bound is inside.
        expected = {(True, True): HOLDS, (False, False): REFUTED}
        assert found is expected.get((keeps(low, BOUND), keeps(high, BOUND)), OPEN)
    else:
        number = low if part == ".low" else high
        assert found is (HOLDS if keeps(number, BOUND) else REFUTED)


def test_a_smallest_gain_is_a_gate_on_the_far_end() -> None:
    text = f"{ACCURACY}.difference.high >= 0.01"
    assert judge(run(60, 40), run(), require=[text]).answer is Answer.PROMOTE
    assert judge(run(40, 60), run(), require=[text]).answer is Answer.KEEP


@given(
    st.sampled_from(list(OPERATORS)),
    st.sampled_from(["", ".low", ".high", ".abs", ".difference.low", ".difference.high"]),
    st.lists(st.sampled_from([-0.1, 0.0, 0.1, 0.2, math.nan]), min_size=3, max_size=3),
    st.sampled_from([-0.1, 0.0, 0.05, 0.1]),
)
def test_only_a_gate_that_holds_passes(
    sign: str, part: str, numbers: list[float], bound: float
) -> None:
    value, low, high = numbers
    low, high = sorted((low, high)) if low < high else (low, high)
    gate = Gate.parse(f"{ACCURACY}{part} {sign} {bound}")
    result = gate.check({ACCURACY: value}, {ACCURACY: (low, high)})
    assert result.passed == (result.outcome is HOLDS)
    if result.undecided:
        assert result.outcome is OPEN
    if result.outcome is REFUTED:
        assert math.isfinite(result.value)
        assert not OPERATORS[sign](result.value, bound)


# -- exit codes stay -------------------------------------------------------------------------------


def exit_code_of_0_2(checks: list[tuple[bool, bool]]) -> int:
    """The rule of 0.2: 2 if only missing intervals stop the run, 1 if a gate fails, else 0.

    ``checks``: for each gate, whether its number meets the bound, and whether it has no number.
    """
    if any(missing for _, missing in checks) and all(any(check) for check in checks):
        return 2
    return int(not all(passed for passed, _ in checks))


def test_exit_codes_are_those_of_0_2() -> None:
    rng = np.random.default_rng(7)
    parts = ["", ".low", ".high", ".abs", ".difference", ".difference.low", ".difference.high"]
    codes = set()
    for _ in range(200):
        metrics = rng.choice([ACCURACY, MCC, "binary/recall"], size=rng.integers(1, 4))
        new = run(*rng.choice([0, 0, 0, 40], size=2).tolist())
        texts = []
        checks = []
        for metric in metrics.tolist():
            part = str(rng.choice(parts))
            sign = str(rng.choice(list(OPERATORS)))
            around = 0.0 if "difference" in part else new.metrics[metric]
            bound = round(float(around + rng.choice([-0.02, 0.0, 0.02])), 3)
            texts.append(f"{metric}{part} {sign} {bound}")
            difference = cmtrack.paired_differences(new, run(), metrics=[metric])[metric]
            low, high = new.intervals[metric]
            number = {
                "": new.metrics[metric],
                ".low": low,
                ".high": high,
                ".abs": abs(new.metrics[metric]),
                ".difference": difference.difference,
                ".difference.low": difference.low,
                ".difference.high": difference.high,
            }[part]
            checks.append((bool(OPERATORS[sign](number, bound)), math.isnan(number)))
        verdict = judge(new, run(), require=texts)
        code = 2 if verdict.not_judged is not None else int(not verdict.passed)
        assert code == exit_code_of_0_2(checks), texts
        assert (verdict.answer is Answer.PROMOTE) == (code == 0)
        if code == 2:
            assert verdict.answer is Answer.CANNOT_TELL
        codes.add(code)
    assert codes == {0, 1, 2}


# -- the answer and the rows that would decide -----------------------------------------------------


def test_the_answer_follows_from_all_gates() -> None:
    better = f"{ACCURACY}.difference.low > 0"
    good = f"{ACCURACY} >= 0.5"
    bad = f"{ACCURACY} >= 0.99"
    assert judge(run(60, 20), run(), require=[better, good]).answer is Answer.PROMOTE
    assert judge(run(40, 36), run(), require=[better, good]).answer is Answer.CANNOT_TELL
    assert judge(run(40, 36), run(), require=[better, bad]).answer is Answer.KEEP
    assert judge(run(20, 60), run(), require=[better]).answer is Answer.KEEP
    assert judge(run(20, 60), run()).answer is Answer.KEEP
    assert judge(run(40, 36), run()).answer is Answer.PROMOTE


def test_further_rows_of_a_difference_and_of_a_value() -> None:
    new = run(31, 22)
    verdict = judge(new, run(), require=[f"{ACCURACY}.difference.low > 0"])
    difference = cmtrack.paired_differences(new, run(), metrics=[ACCURACY])[ACCURACY]
    z = 1.959963984540054 + 0.8416212335729143
    needed = N * (z * difference.standard_error / difference.difference) ** 2
    assert verdict.rows_more == math.ceil(needed - N)
    recall = "binary/recall"
    gate = f"{recall}.low >= {new.metrics[recall] - 0.01}"
    own = judge(new, require=[gate])
    error = new.standard_errors[recall]
    assert own.rows_more == math.ceil(N * (z * error / 0.01) ** 2 - N)
    # Of several open gates, the one that needs most rows counts.
    both = judge(new, run(), require=[f"{ACCURACY}.difference.low > 0", gate])
    assert both.rows_more == max(verdict.rows_more, own.rows_more)
    assert both.to_dict()["answer"] == "cannot tell"
    assert both.to_dict()["rows_more"] == both.rows_more


def test_recall_on_300_of_2000_rows() -> None:
    actual = np.repeat([1, 0], [300, 1700])
    predicted = np.repeat([1, 0, 0], [174, 126, 1700])
    evaluation = evaluate(actual, predicted, positive=1)
    verdict = judge(evaluation, require=["binary/recall.low >= 0.55"])
    assert verdict.rows_more == 12_163


@pytest.mark.parametrize(
    ("new", "gate"),
    [
        ((30, 30), f"{ACCURACY}.difference.low > 0"),  # the estimate equals the bound
        ((0, 0), f"{ACCURACY}.difference.low > 0"),  # no row differs
        ((0, 0), f"{MCC}.difference.low > 0"),
    ],
)
def test_no_number_if_no_rows_would_decide(new: tuple[int, int], gate: str) -> None:
    verdict = judge(run(*new), run(), require=[gate])
    assert verdict.answer is Answer.CANNOT_TELL
    assert math.isnan(verdict.rows_more)


def test_an_undefined_metric_cannot_be_told() -> None:
    constant = evaluate(Y, np.zeros(N, dtype=int), positive=1)
    verdict = judge(constant, run(), require=["binary/precision.difference.low > 0"])
    assert verdict.answer is Answer.CANNOT_TELL
    assert not verdict.passed


def test_segments_and_flips_have_outcomes_and_rows() -> None:
    region = np.where(np.arange(N) < 1000, "north", "south")
    sides = [
        evaluate(Y, np.where(wrong, 1 - Y, Y), positive=1, segments={"region": region})
        for wrong in (np.arange(N) % 10 == 0, np.arange(N) % 9 == 0)
    ]
    open_gate = f"segment/region/*/{ACCURACY}.difference.low >= -0.01"
    verdict = judge(*sides, require=[open_gate])
    assert verdict.checks[0].outcome is OPEN
    assert verdict.rows_more > 0
    refuted = judge(*sides, require=[f"segment/region/*/{ACCURACY}.low >= 0.99"])
    assert refuted.answer is Answer.KEEP
    flips = judge(*sides, require=["flips/broken.high <= 0.1"])
    assert flips.answer is Answer.CANNOT_TELL
    assert flips.rows_more > 0
    assert judge(*sides, require=["flips/broken.high <= 0.01"]).answer is Answer.KEEP


def test_rows_are_written_with_two_digits() -> None:
    evaluation = run()
    assert rows_would_decide(6873, evaluation) == "about 6,900 more rows would decide"
    assert rows_would_decide(20 * N, evaluation) == "about 40,000 more rows would decide"
    many = "more than 20 times these rows would be needed"
    assert rows_would_decide(20 * N + 1, evaluation) == many
    assert rows_would_decide(math.nan, evaluation) == ""


# -- assertions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "margin"),
    list(
        itertools.product(
            [(0, 0), (40, 36), (36, 40), (60, 20), (20, 60), (3, 0)], [0.0, 0.01, 0.05]
        )
    ),
)
@pytest.mark.parametrize("metric", [ACCURACY, "binary/fnr", MCC])
def test_an_assertion_raises_exactly_if_the_gate_does_not_hold(
    counts: tuple[int, int], margin: float, metric: str
) -> None:
    runs = {"new": run(*counts), "champion": run()}
    comparison = compare(runs, rank_by=ACCURACY)
    lower = runs["new"].catalog.lookup(metric).better == "lower"
    not_worse = f"{metric}.difference." + (f"high <= {margin}" if lower else f"low >= {-margin}")
    better = f"{metric}.difference." + ("high < 0" if lower else "low > 0")
    for gate, check in (
        (not_worse, lambda: comparison.assert_not_worse("champion", margin=margin, metric=metric)),
        (better, lambda: comparison.assert_better("champion", metric=metric)),
    ):
        verdict = judge(runs["new"], runs["champion"], require=[gate])
        if verdict.passed:
            assert check() is None
        else:
            with pytest.raises(AssertionError) as raised:
                check()
            is_open = verdict.answer is Answer.CANNOT_TELL
            assert str(raised.value).startswith("cannot tell whether “new” is") == is_open


def test_a_failed_assertion_says_why_and_how_many_rows_would_decide() -> None:
    comparison = compare({"new": run(57, 63), "champion": run()}, rank_by=ACCURACY)
    with pytest.raises(AssertionError) as raised:
        comparison.assert_not_worse("champion", margin=0.01)
    assert str(raised.value) == (
        "cannot tell whether “new” is at most 0.01 worse than “champion” in accuracy: the "
        "difference is −0.3 percentage points [−1.4, 0.8] on 2,000 rows. About 7,600 more rows "
        "would decide."
    )
    with pytest.raises(AssertionError) as raised:
        compare({"new": run(20, 90), "champion": run()}, rank_by=ACCURACY).assert_not_worse(
            "champion", margin=0.01
        )
    assert str(raised.value).startswith("“new” is more than 0.01 worse than “champion” in accuracy")
    assert "more rows" not in str(raised.value)
    with pytest.raises(AssertionError, match="“new” is not better than “champion” in accuracy"):
        compare({"new": run(20, 90), "champion": run()}, rank_by=ACCURACY).assert_better("champion")
    same = compare({"new": run(), "champion": run()}, rank_by=MCC)
    with pytest.raises(AssertionError, match=r"cannot tell whether .*: no row differs"):
        same.assert_better("champion")


def test_an_assertion_takes_the_best_other_run() -> None:
    runs = {"champion": run(60, 0), "good": run(50, 0), "poor": run(0, 90)}
    comparison = compare(runs, rank_by=ACCURACY)
    comparison.assert_not_worse("champion", margin=0.02)
    with pytest.raises(AssertionError, match="“poor” is more than"):
        comparison.assert_not_worse("champion", margin=0.02, run="poor")
    comparison.assert_better("poor")
    comparison.assert_better("poor", run="good")


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"baseline": "nobody"}, KeyError, "there is no ranked run named 'nobody'"),
        ({"baseline": "champion", "run": "champion"}, ValueError, "run must be one of .*'new'"),
        ({"baseline": "champion", "margin": -0.1}, ValueError, "margin must be a number of at"),
        ({"baseline": "champion", "margin": math.nan}, ValueError, "margin must be a number of"),
        (
            {"baseline": "champion", "metric": "prevalence/bias"},
            ValueError,
            "prevalence/bias has no direction that is better",
        ),
    ],
)
def test_assertions_that_cannot_be_checked(
    arguments: dict[str, object], error: type[Exception], says: str
) -> None:
    comparison = compare({"new": run(40, 36), "champion": run()}, rank_by=ACCURACY)
    with pytest.raises(error, match=says):
        comparison.assert_not_worse(**{"margin": 0.01} | arguments)
