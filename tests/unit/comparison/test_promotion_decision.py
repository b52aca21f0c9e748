"""The decision on a challenger: one look, joined looks, the third look, and the rule."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from cmtrack import Evaluation, evaluate
from cmtrack.comparison import (
    Answer,
    Candidate,
    Chain,
    Challenge,
    Looks,
    ModelFacts,
    PairFacts,
    PromotionRecord,
    PromotionRule,
    RecordedPromotion,
    RowsFacts,
    RuleFacts,
    Run,
    decide,
)
from cmtrack.evaluation import Gate, GateOutcome

# The rule takes a catalog, and the built-in one has no public name.
from cmtrack.evaluation.catalog import BUILT_IN

ACCURACY = "multiclass/accuracy"
LOG_LOSS = "probability/log_loss"
IMPROVED = f"{ACCURACY}.difference.low > 0"
Z = 1.959963984540054
SHA256 = "a" * 64
STATED = {"made": "2026-06-01T08:00:00Z", "author": "", "versions": {}}


def tango_by_hand(only_new: float, only_old: float, n: float, z: float = Z) -> tuple[float, float]:
    """Tango's score interval (1998, Statistics in Medicine 17, 891-908), by roots of its statistic."""

    def statistic(difference: float) -> float:
        b = -only_new - only_old + (2 * n - only_new + only_old) * difference
        c = -only_old * difference * (1 - difference)
        share = (math.sqrt(b * b - 8 * n * c) - b) / (4 * n)
        variance = n * (2 * share + difference * (1 - difference))
        return (only_new - only_old - n * difference) / math.sqrt(max(variance, 1e-300))

    estimate = (only_new - only_old) / n
    low = brentq(lambda d: statistic(d) - z, -1 + 1e-9, estimate, xtol=1e-14)
    high = brentq(lambda d: statistic(d) + z, estimate, 1 - 1e-9, xtol=1e-14)
    return low, high


def sides(only_new: int, only_old: int, n: int, level: float = 0.95) -> tuple[Evaluation, ...]:
    """A challenger and a champion that differ in a number of rows; both are wrong on ten rows."""
    actual = np.arange(n) % 2
    predicted = [np.where(np.arange(n) >= n - 10, 1 - actual, actual) for _ in range(2)]
    predicted[1][:only_new] = 1 - actual[:only_new]
    rows = slice(only_new, only_new + only_old)
    predicted[0][rows] = 1 - actual[rows]
    return tuple(evaluate(actual, one, positive=1, confidence_level=level) for one in predicted)


def decided(
    evaluations: Sequence[Evaluation],
    gates: Sequence[str] = (IMPROVED,),
    looks: Looks | None = None,
    rank_by: str = ACCURACY,
) -> Challenge:
    """The decision on version 5 against version 3."""
    new, old = evaluations
    candidate = Candidate(Run("3", "3"), old)
    parsed = [Gate.parse(text) for text in gates]
    return decide(("5", new), ("3", candidate), parsed, rank_by, looks or Looks("5"))


def recorded(number: int, challenge: Challenge, n: int) -> RecordedPromotion:
    """A record of an answer, on rows of its own."""
    record = PromotionRecord(
        "party",
        "champion",
        challenge.answer,
        None,
        None,
        **STATED,
        rule=RuleFacts(None, SHA256, ACCURACY, (), 0.95),
        rows=RowsFacts(f"month {number}", n, f"{n}.month.{number}"),
        models={
            "5": ModelFacts("challenger", None, None, 0, challenge.answer),
            "3": ModelFacts("champion", None, None, 0),
        },
        pairs=challenge.pairs,
    )
    return RecordedPromotion(f"r{number}", record, record.to_bytes())


def life(months: Sequence[tuple[int, int, int]], **options: object) -> list[Challenge]:
    """The decisions on one pair of versions, month after month."""
    recordings: list[RecordedPromotion] = []
    challenges = []
    for number, month in enumerate(months):
        looks = Looks("5", tuple(recordings))
        challenge = decided(sides(*month), looks=looks, **options)
        challenges.append(challenge)
        recordings.append(recorded(number, challenge, month[2]))
    return challenges


# -- one look --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "answer"),
    [
        ((60, 20, 1000), Answer.PROMOTE),
        ((20, 60, 1000), Answer.KEEP),
        ((40, 36, 1000), Answer.CANNOT_TELL),
    ],
)
def test_one_look_is_decided_by_tangos_interval(
    counts: tuple[int, int, int], answer: Answer
) -> None:
    challenge = decided(sides(*counts))
    assert challenge.answer is answer
    (pair,) = challenge.pairs
    only_new, only_old, n = counts
    assert (pair.low, pair.high) == pytest.approx(tango_by_hand(*counts), abs=1e-8)
    assert pair.difference == pytest.approx((only_new - only_old) / n, abs=1e-12)
    assert pair.counts == (only_new, only_old, only_new + only_old, n)
    assert (challenge.look, challenge.joined, challenge.looks) == (1, (), ())


@given(st.integers(30, 90), st.integers(30, 90), st.sampled_from([0.95, 0.975, 1 - 0.05 / 3]))
def test_the_answer_follows_from_the_interval(only_new: int, only_old: int, level: float) -> None:
    # HISTORY, vector TV-H12: quantiles of 1 - 0.05/m.
    z = {0.95: Z, 0.975: 2.2414027276, 1 - 0.05 / 3: 2.39397979982}[level]
    low, high = tango_by_hand(only_new, only_old, 1000, z)
    challenge = decided(sides(only_new, only_old, 1000, level))
    expected = Answer.CANNOT_TELL
    if low > 0:
        expected = Answer.PROMOTE
    elif high <= 0:
        expected = Answer.KEEP
    assert challenge.answer is expected
    assert challenge.difference(ACCURACY).low == pytest.approx(low, abs=1e-8)


def test_the_number_of_rows_that_would_decide() -> None:
    # HISTORY, vector TV-H11, in which the bounds are 0, -0.01 and 0.01.
    evaluations = sides(31, 22, 400)
    numbers = [
        decided(evaluations, [f"{ACCURACY}.difference.{gate}"]).rows_more
        for gate in ("low > 0", "low >= -0.01", "low >= 0.01")
    ]
    assert numbers == [1647, 581, 6231]
    # Of several open gates, the one that needs most rows counts.
    both = decided(evaluations, [IMPROVED, f"{ACCURACY}.difference.low >= -0.01"])
    assert both.rows_more == 1647


def test_every_gate_must_hold_and_one_refuted_gate_is_enough() -> None:
    better = sides(60, 20, 1000)
    holds = "binary/recall.low >= 0.5"
    refuted = "binary/recall.high <= 0.5"
    is_open = "binary/recall.low >= 0.96"
    assert decided(better, [IMPROVED, holds]).answer is Answer.PROMOTE
    assert decided(better, [IMPROVED, is_open]).answer is Answer.CANNOT_TELL
    assert decided(better, [IMPROVED, is_open, refuted]).answer is Answer.KEEP


def test_no_row_differs() -> None:
    challenge = decided(sides(0, 0, 1000))
    assert challenge.answer is Answer.CANNOT_TELL
    assert challenge.pairs[0].difference == 0
    assert math.isnan(challenge.rows_more)


def test_an_undefined_metric_names_the_version_and_the_reason() -> None:
    actual = np.repeat(["yes", "no"], [200, 800])
    constant = evaluate(actual, np.repeat("no", 1000), positive="yes")
    predicted = actual.copy()
    predicted[190:230] = np.where(actual[190:230] == "yes", "no", "yes")
    other = evaluate(actual, predicted, positive="yes")
    gate = "binary/precision.difference.low > 0"
    for pair, version in (((constant, other), "5"), ((other, constant), "3")):
        challenge = decided(pair, [gate])
        assert challenge.answer is Answer.CANNOT_TELL
        (check,) = challenge.checks
        assert check.outcome is GateOutcome.OPEN
        assert check.reason == (
            f"binary/precision of version {version} is undefined: it predicts only “no”"
        )
    # The version's own value is undefined as well.
    (check,) = decided((constant, other), ["binary/precision.low > 0.5"]).checks
    assert check.reason.startswith("binary/precision of version 5 is undefined")


def test_a_metric_that_is_better_if_lower() -> None:
    rng = np.random.default_rng(3)
    actual = rng.integers(0, 2, 600)
    losses = []
    for skill in (2.0, 1.2):
        p = 1 / (1 + np.exp(-skill * (2 * actual - 1) - rng.normal(size=600)))
        losses.append(evaluate(actual, y_prob=np.column_stack([1 - p, p]), positive=1))
    gate = f"{LOG_LOSS}.difference.high < 0"
    challenge = decided(losses, [gate], rank_by=LOG_LOSS)
    assert challenge.answer is Answer.PROMOTE
    (pair,) = challenge.pairs
    assert pair.counts is None
    assert pair.high < 0
    # By hand: the mean difference of the losses of the rows, with its standard error.
    chances = [one.rows.probabilities[np.arange(600), actual] for one in losses]
    rows = np.log(chances[1]) - np.log(chances[0])
    assert pair.difference == pytest.approx(rows.mean(), abs=1e-6)
    error = rows.std(ddof=0) / math.sqrt(600)
    assert pair.standard_error == pytest.approx(error, rel=2e-3)
    # The interval uses Student's quantile, which is slightly larger.
    assert pair.low == pytest.approx(pair.difference - Z * pair.standard_error, rel=1e-3)
    assert decided(losses[::-1], [gate], rank_by=LOG_LOSS).answer is Answer.KEEP


# -- joined looks ----------------------------------------------------------------------------------


def test_open_looks_are_joined() -> None:
    # HISTORY, vector TV-H10.
    first, second = life([(31, 22, 400), (58, 33, 700)])
    assert first.answer is Answer.CANNOT_TELL
    assert (first.pairs[0].low, first.pairs[0].high) == pytest.approx(
        (-0.0135652428518, 0.0594501255205), abs=1e-8
    )
    assert second.answer is Answer.PROMOTE
    assert second.look == 2
    assert [one.run_id for one in second.looks] == ["r0"]
    (joined,) = second.joined
    assert (joined.low, joined.high) == pytest.approx((0.00964826626578, 0.0526560726195), abs=1e-8)
    assert (joined.low, joined.high) == pytest.approx(tango_by_hand(89, 55, 1100), abs=1e-8)
    assert joined.difference == pytest.approx(34 / 1100, abs=1e-12)
    # This month alone is also recorded, for the looks and the history of later months.
    assert second.pairs[0].counts == (58, 33, 91, 700)
    assert second.difference(ACCURACY) == joined


def test_a_mean_of_months_is_joined_by_rows() -> None:
    kappa = "multiclass/cohen_kappa"
    gate = f"{kappa}.difference.low > 0"
    months = [(31, 22, 400), (58, 33, 700)]
    _, second = life(months, gates=[gate], rank_by=kappa)
    pairs = [decided(sides(*month), [gate], rank_by=kappa).pairs[0] for month in months]
    rows = [month[2] for month in months]
    mean = sum(n * pair.difference for n, pair in zip(rows, pairs, strict=True)) / 1100
    squares = [(n * pair.standard_error) ** 2 for n, pair in zip(rows, pairs, strict=True)]
    error = math.sqrt(sum(squares)) / 1100
    (joined,) = second.joined
    assert joined.difference == pytest.approx(mean, abs=1e-12)
    assert joined.standard_error == pytest.approx(error, abs=1e-12)
    assert (joined.low, joined.high) == pytest.approx((mean - Z * error, mean + Z * error))


def test_only_gates_on_a_plain_difference_are_joined() -> None:
    own = "binary/recall.low >= 0.95"
    month = (40, 36, 1000)
    challenges = life([month, month], gates=[IMPROVED, own])
    alone = decided(sides(*month), [own])
    assert [challenge.checks[1].value for challenge in challenges] == [alone.checks[0].value] * 2
    joined = challenges[1].checks[0]
    assert joined.value > challenges[0].checks[0].value
    assert joined.value == pytest.approx(tango_by_hand(80, 72, 2000)[0], abs=1e-8)


def test_the_third_look_that_cannot_decide_keeps_the_champion() -> None:
    challenges = life([(40, 36, 1000), (36, 40, 1000), (40, 38, 1000)])
    assert [one.answer for one in challenges] == [
        Answer.CANNOT_TELL,
        Answer.CANNOT_TELL,
        Answer.KEEP,
    ]
    assert [one.look for one in challenges] == [1, 2, 3]
    last = challenges[-1]
    assert last.is_closed
    assert last.checks[0].outcome is GateOutcome.OPEN
    assert (last.joined[0].low, last.joined[0].high) == pytest.approx(
        tango_by_hand(116, 114, 3000), abs=1e-8
    )


def test_the_third_look_may_decide() -> None:
    for month, answer in (((130, 60, 1000), Answer.PROMOTE), ((60, 130, 1000), Answer.KEEP)):
        last = life([(40, 36, 1000), (36, 40, 1000), month])[-1]
        assert last.answer is answer
        assert not last.is_closed


def test_a_look_that_decided_is_not_joined() -> None:
    # Nobody moved the alias after the first answer, so the pair is looked at again.
    challenges = life([(60, 20, 1000), (40, 36, 1000), (38, 36, 1000)])
    assert [one.answer for one in challenges[:2]] == [Answer.PROMOTE, Answer.CANNOT_TELL]
    assert challenges[1].looks == ()
    assert challenges[1].look == 2
    assert [one.run_id for one in challenges[2].looks] == ["r1"]


def test_a_month_without_a_value_does_not_hide_the_others() -> None:
    gate = "binary/precision.difference.low > 0"
    actual = np.arange(1000) % 2
    constant = evaluate(actual, np.zeros(1000, dtype=int), positive=1)
    first = decided((constant, sides(20, 5, 1000)[1]), [gate], rank_by="binary/precision")
    looks = Looks("5", (recorded(0, first, 1000),))
    second = decided(sides(40, 36, 1000), [gate], looks, rank_by="binary/precision")
    alone = decided(sides(40, 36, 1000), [gate], rank_by="binary/precision")
    assert second.joined[0].difference == pytest.approx(alone.pairs[0].difference)


def test_a_month_that_was_looked_at_twice_counts_once() -> None:
    first = decided(sides(40, 36, 1000))
    looks = Looks("5", (recorded(0, first, 1000), recorded(0, first, 1000)))
    assert looks.n_months == len(looks.open) == 1
    assert decided(sides(40, 36, 1000), looks=looks).look == 2


# -- the rule --------------------------------------------------------------------------------------


def test_the_level_is_corrected_for_several_challengers() -> None:
    settled = PromotionRule.from_arguments(None, (), ACCURACY, None).settled(BUILT_IN, {ACCURACY})
    levels = [settled.facts(m).level for m in (1, 2, 3, 5)]
    assert levels == pytest.approx([0.95, 0.975, 1 - 0.05 / 3, 0.99])
    assert len({settled.facts(m).sha256 for m in (1, 2)}) == 1
    higher = PromotionRule.from_arguments(None, (), ACCURACY, 0.99)
    assert higher.settled(BUILT_IN, {ACCURACY}).facts(1).level == 0.99


def test_without_gates_the_metric_must_improve() -> None:
    def gates(metric: str) -> list[str]:
        rule = PromotionRule.from_arguments(None, (), metric, None)
        return [gate.text for gate in rule.settled(BUILT_IN, {metric}).gates]

    assert gates(ACCURACY) == [IMPROVED]
    assert gates(LOG_LOSS) == [f"{LOG_LOSS}.difference.high < 0"]
    with pytest.raises(ValueError, match="prevalence/bias has no direction that is better: give"):
        gates("prevalence/bias")


def test_two_rules_by_arguments_have_different_digests() -> None:
    arguments = [
        ((), ACCURACY, None),
        ((f"{ACCURACY}.difference.low > 0.01",), ACCURACY, None),
        ((), LOG_LOSS, None),
        ((), ACCURACY, 0.9),
    ]
    digests = {
        PromotionRule.from_arguments(None, *one)
        .settled(BUILT_IN, {ACCURACY, LOG_LOSS})
        .facts(1)
        .sha256
        for one in arguments
    }
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        ("block: params.fold\n", {}, "rule.yaml: a rule with 'block' is for repeated runs"),
        ("against: a1\n", {}, "rule.yaml: leave out 'against', because the alias names the cham"),
        (f"rank_by: [{ACCURACY}, {LOG_LOSS}]\n", {}, "a promotion ranks by one metric, got multi"),
        (
            f"rank_by: {ACCURACY}\n",
            {"require": IMPROVED},
            "a rule file contains the whole rule; le",
        ),
        (
            f"rank_by: {ACCURACY}\n",
            {"rank_by": ACCURACY},
            "a rule file contains the whole rule; le",
        ),
        (
            f"rank_by: {ACCURACY}\n",
            {"confidence_level": 0.9},
            "leave out require, rank_by and conf",
        ),
        ("require: accuracy\n", {}, "gate 'accuracy'"),
        ("nonsense: 1\n", {}, "nonsense"),
    ],
)
def test_a_rule_that_does_not_fit_a_promotion_is_refused(
    tmp_path: Path, text: str, arguments: dict[str, object], says: str
) -> None:
    path = tmp_path / "rule.yaml"
    path.write_text(text)
    given = {"require": (), "rank_by": None, "confidence_level": None} | arguments
    with pytest.raises(ValueError, match=says):
        PromotionRule.from_arguments(path, **given)


def test_a_rule_file_is_recorded_by_its_name_and_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "rule.yaml"
    text = f"rank_by: {ACCURACY}\nrequire: {IMPROVED}\nconfidence_level: 0.9\n"
    path.write_text(text)
    rule = PromotionRule.from_arguments(path, (), None, None)
    facts = rule.settled(BUILT_IN, {ACCURACY}).facts(1)
    assert (facts.file, facts.require, facts.level) == ("rule.yaml", (IMPROVED,), 0.9)
    path.write_text(f"# why\n{text}")
    other = PromotionRule.from_arguments(path, (), None, None)
    assert other.settled(BUILT_IN, {ACCURACY}).facts(1).sha256 != facts.sha256


def test_a_pair_keeps_its_counts_and_other_differences_do_not_have_any() -> None:
    pair = PairFacts("5", "3", LOG_LOSS, -0.1, 0.02, -0.14, -0.06)
    estimate = pair.estimate(1000)
    assert (estimate.rows, estimate.value) == (1000, -0.1)
    assert math.isnan(estimate.only_new)
    assert Chain().looks("5", "3", SHA256) == Looks("5")
