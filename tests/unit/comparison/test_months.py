"""Statistics over months: joined looks, gains from rows that did not choose, months alike or not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, t
from statsmodels.stats.meta_analysis import combine_effects

from cmtrack import evaluate, paired_differences
from cmtrack.comparison import (
    Gain,
    Life,
    Month,
    MonthEstimate,
    Shown,
    challenger_level,
    join_months,
    months_of,
)
from cmtrack.evaluation import Gate, GateOutcome

COUNTS = [(60, 40, 1000), (220, 160, 4000), (55, 52, 1000), (118, 70, 2000)]
EXACT = 1e-9
TANGO = 1e-8


def of_counts(*months: tuple[float, ...]) -> list[MonthEstimate]:
    return [MonthEstimate.of_counts(*month) for month in months]


def named(estimates: list[MonthEstimate]) -> dict[str, MonthEstimate]:
    return {str(place): estimate for place, estimate in enumerate(estimates)}


def shares(*months: tuple[int, int]) -> dict[str, MonthEstimate]:
    """Accuracies from numbers of correct predictions and of rows."""
    values = [(hits / n, math.sqrt(hits / n * (1 - hits / n) / n), n) for hits, n in months]
    return named([MonthEstimate(*value) for value in values])


def near(found: object, expected: object, error: float = EXACT) -> None:
    assert found == pytest.approx(expected, abs=error, rel=0)


# -- vectors TV-H1 to TV-H14 -----------------------------------------------------------------------


def test_shares_are_joined_by_their_sums() -> None:
    joined = join_months(of_counts(*COUNTS))
    near((joined.value, joined.statistic), (0.016375, 4.7056589131))
    near((joined.low, joined.high), (0.00957942361651, 0.0232279744706), TANGO)
    alone = [join_months(of_counts(month)) for month in COUNTS]
    expected = [
        (0.000407423753652, 0.040106157103),
        (0.00547498985682, 0.0246323006065),
        (-0.0175200248161, 0.0235895650877),
        (0.0106714739635, 0.0376741626708),
    ]
    for found, ends in zip(alone, expected, strict=True):
        near((found.low, found.high), ends, TANGO)


def test_clusters_widen_a_joined_interval() -> None:
    months = [(*counts, s) for counts, s in zip(COUNTS[:3], (188, 640, 171), strict=True)]
    joined = join_months(of_counts(*months))
    near((joined.value, joined.statistic), (0.0138333333333, 2.62600378825))
    near((joined.low, joined.high), (0.00352701296216, 0.0242471453225), TANGO)
    # Differences that cancel within clusters do not make the interval narrower.
    cancelling = join_months(of_counts((60, 40, 1000, 50)))
    rows = join_months(of_counts((60, 40, 1000)))
    assert (cancelling.low, cancelling.high) == (rows.low, rows.high)


def test_any_other_metric_is_the_mean_of_the_months() -> None:
    estimates = [MonthEstimate(m.value, m.standard_error, m.rows) for m in of_counts(*COUNTS)]
    joined = join_months(estimates)
    near(joined.standard_error, 0.00347432322546)
    near((joined.low, joined.high), (0.00956545160744, 0.0231845483926))


def test_months_that_differ_by_chance() -> None:
    months = months_of(named(of_counts(*COUNTS)), bounds=(-1, 1))
    near((months.variance, months.Q, months.p), (0.096567375, 3.27103227151, 0.351694805607))
    near((months.I2, months.tau), (0.0828583300356, 0.00223278067078))
    near((months.typical, months.typical_error), (0.0163739743444, 0.00373538239486))
    near((months.typical_low, months.typical_high), (0.00448632044305, 0.0282616282457))


def test_months_that_differ_more_than_chance_allows() -> None:
    hits = [(870, 1000), (3400, 4000), (830, 1000), (441, 500), (1790, 2000), (845, 1000)]
    months = months_of(shares(*hits))
    near((months.variance, months.joined.value), (0.119490842105, 0.860631578947))
    near(months.Q, 36.0965782007)
    near((months.p, months.I2), (9.08482969467e-7, 0.861482715281))
    near((months.tau, months.typical), (0.022953452249, 0.861723073014))
    near((months.typical_low, months.typical_high), (0.835900425126, 0.887545720903))


def test_a_month_without_an_error_does_not_decide_alone() -> None:
    months = months_of(shares((996, 1000), (1000, 1000), (989, 1000), (998, 1000)))
    near((months.variance, months.Q), (0.00421475, 16.3117622635))
    near((months.p, months.tau), (0.000978717906259, 0.00432457126969))
    near((months.typical_low, months.typical_high), (0.988132599096, 1.0))
    uncut = months.typical + t.ppf(0.975, 3) * months.typical_error
    near(uncut, 1.0033674009)


def test_months_of_a_correlation() -> None:
    numbers = [(0.412, 0.021, 900), (0.455, 0.018, 1400), (0.390, 0.030, 500)]
    months = months_of(named([MonthEstimate(*month) for month in numbers]), bounds=(-1, 1))
    near((months.joined.value, months.joined.standard_error), (0.429571428571, 0.012460396446))
    near((months.Q, months.tau, months.typical), (4.52252207846, 0.0252396809365, 0.423782965763))
    near((months.typical_low, months.typical_high), (0.341510761419, 0.506055170108))


def test_a_typical_month_has_the_wider_of_two_intervals() -> None:
    pairs = of_counts((150, 104, 4000), (158, 101, 4000), (149, 96, 4000))
    months = months_of(named(pairs), bounds=(-1, 1))
    near(months.Q, 0.246045903435)
    reach = t.ppf(0.975, 2) * months.typical_error
    near(months.typical - reach, 0.00954222664404)
    near(months.typical + reach, 0.016457773356)
    near((months.typical_low, months.typical_high), (0.00850928754339, 0.0174907124566))


def months_in_order(*months: tuple[str, dict[tuple[str, str], MonthEstimate]]) -> list[Month]:
    return [Month(str(k), champion, 1000, pairs) for k, (champion, pairs) in enumerate(months)]


def counted(b: float, c: float, n: float = 1000) -> MonthEstimate:
    return MonthEstimate.of_counts(b, c, n)


def test_a_chain_adds_each_champion_over_the_one_before_on_the_next_month() -> None:
    months = months_in_order(
        ("1", {("3", "1"): counted(90, 10)}),  # chose 3: never used
        ("3", {("3", "1"): counted(112, 90), ("5", "3"): counted(80, 20)}),  # chose 5
        ("5", {("5", "3"): counted(400, 352, 4000), ("7", "5"): counted(70, 30)}),  # chose 7
        ("7", {("7", "5"): counted(95, 101)}),
        ("7", {("7", "5"): counted(500, 0)}),  # not the next month
    )
    gain = Life(months, "7").gain()
    assert gain is not None
    assert (gain.how, gain.version, gain.over, gain.rows, gain.months) == (
        "chain",
        "7",
        "1",
        6000,
        3,
    )
    near(gain.difference, 0.028)
    near((gain.low, gain.high), (-0.0133196481605, 0.0693196481605))
    near((gain.high - gain.low) / 2 / norm.ppf(0.975), 0.0210818405269)
    previous = Life(months, "7").gain("previous")
    assert previous is not None
    assert (previous.how, previous.over, previous.months) == ("direct", "5", 2)


def test_in_use_compares_each_champion_with_the_first() -> None:
    months = months_in_order(
        ("1", {}),
        ("1", {("2", "1"): counted(80, 20)}),
        ("2", {("2", "1"): counted(60, 40)}),
        ("2", {("2", "1"): counted(75, 43)}),
        ("3", {("3", "1"): counted(88, 41), ("3", "2"): counted(0, 0)}),
    )
    gain = Life(months, "1").in_use()
    assert gain is not None
    near((gain.difference, gain.more_correct, gain.rows), (0.0198, 99, 5000))
    near((gain.low, gain.high), (0.0125363089524, 0.0270636910476))
    assert (gain.version, gain.over, gain.how) == ("3", "1", "in use")


def test_a_second_look_is_joined_with_the_first() -> None:
    first = join_months(of_counts((31, 22, 400)))
    near((first.low, first.high), (-0.0135652428518, 0.0594501255205), TANGO)
    joined = join_months(of_counts((31, 22, 400), (58, 33, 700)))
    near(joined.statistic, 2.83333333333)
    near((joined.low, joined.high), (0.00964826626578, 0.0526560726195), TANGO)
    gate = Gate.parse("multiclass/accuracy.difference.low > 0")
    assert first.check(gate).outcome is GateOutcome.OPEN
    assert joined.check(gate).outcome is GateOutcome.HOLDS
    assert math.isnan(joined.check(gate).rows_more)


@pytest.mark.parametrize(("bound", "more"), [("0", 1647), ("-0.01", 581), ("0.01", 6231)])
def test_rows_that_would_decide_a_joined_gate(bound: str, more: int) -> None:
    first = join_months(of_counts((31, 22, 400)))
    result = first.check(Gate.parse(f"multiclass/accuracy.difference.low >= {bound}"))
    assert result.rows_more == more


@pytest.mark.parametrize(
    ("challengers", "quantile"),
    [(1, 1.95996398454), (2, 2.2414027276), (3, 2.39397979982), (5, 2.57582930355)],
)
def test_several_challengers_share_the_level(challengers: int, quantile: float) -> None:
    near(norm.ppf(0.5 + challenger_level(challengers) / 2), quantile)


# -- which months count ----------------------------------------------------------------------------


def test_the_gain_uses_only_months_after_the_champion_was_chosen() -> None:
    months = months_in_order(
        ("1", {("2", "1"): counted(200, 0)}),
        ("2", {("2", "1"): counted(60, 40)}),
        ("2", {("1", "2"): counted(43, 75)}),  # stored the other way round
    )
    gain = Life(months, "2").gain()
    assert gain is not None
    near(gain.difference, (60 - 40 + 75 - 43) / 2000)
    assert (gain.rows, gain.months, gain.more_correct) == (2000, 2, 52)
    assert Life(months, "2").since() == [gain]
    # A hand-moved alias counts like a promotion: the month before the move may have chosen it.
    moved = Life(months, "9").gain()
    assert moved == gain


def test_without_later_rows_the_gain_of_the_champion_before_is_stated() -> None:
    months = months_in_order(
        ("1", {("2", "1"): counted(200, 0)}),
        (
            "2",
            {("2", "1"): counted(60, 40), ("3", "2"): counted(90, 10), ("3", "1"): counted(99, 0)},
        ),
    )
    gain = Life(months, "3").gain()
    assert gain is not None
    assert (gain.version, gain.over) == ("2", "1")
    near(gain.difference, 0.02)
    assert Life(months, "3").since()[1] is None


def test_a_champion_has_no_gain_over_itself() -> None:
    months = months_in_order(
        ("1", {("2", "1"): counted(200, 0)}),
        ("2", {("2", "1"): counted(60, 40)}),
        ("1", {("1", "2"): counted(50, 40)}),
    )
    back = Life(months, "1")
    assert back.gain() is None
    assert back.gain("1") is None
    gain = back.gain("previous")
    assert gain is not None
    assert (gain.over, gain.rows) == ("2", 1000)


def test_nothing_is_stated_without_two_evaluated_versions() -> None:
    assert Life([], "1").gain() is None
    assert Life([], "1").in_use() is None
    alone = months_in_order(("1", {}), ("1", {}))
    assert Life(alone, "1").gain() is None
    assert Life(alone, "1").in_use() is None
    assert Life(alone, "1").since() == []
    replaced = months_in_order(("1", {}), ("2", {}))
    assert Life(replaced, "2").gain() is None
    assert Life(replaced, "2").gain("8") is None
    assert Life(replaced, "2").since() == [None]
    # A version that never was champion has no chain, but may have been evaluated.
    named_version = months_in_order(("1", {}), ("2", {("2", "8"): counted(30, 10)}))
    assert Life(named_version, "2").gain("8") is not None


def test_a_gain_is_shown_by_its_interval() -> None:
    def gain(low: float, high: float) -> Gain:
        return Gain((low + high) / 2, low, high, 1000, 1, "2", "1")

    assert gain(0.01, 0.02).shown() is Shown.BETTER
    assert gain(-0.02, -0.01).shown() is Shown.WORSE
    assert gain(-0.02, -0.01).shown("lower") is Shown.BETTER
    assert gain(-0.01, 0.01).shown() is Shown.NOT_SHOWN
    assert gain(0.01, 0.02).shown("") is Shown.NOT_SHOWN
    assert gain(math.nan, math.nan).shown() is Shown.NOT_SHOWN


def test_results_are_data_and_print_plainly() -> None:
    gain = Life(months_in_order(("1", {}), ("2", {("2", "1"): counted(60, 40)})), "2").gain()
    assert gain is not None
    assert repr(gain) == (
        "Gain(version 2 over version 1: 0.020 [0.0004, 0.040], direct, on 1,000 rows of one month)"
    )
    assert gain.to_dict()["how"] == "direct"
    assert gain.to_frame()["more_correct"].tolist() == [20]
    months = months_of(named(of_counts(*COUNTS)), bounds=(-1, 1))
    assert repr(months).startswith("Months(four months: 0.016 [0.010, 0.023], typical month ")
    assert "alike: p = 0.352" in repr(months)
    assert months.to_frame()["rows"].tolist() == [1000, 4000, 1000, 2000]
    assert months.to_dict()["joined"]["months"] == 4
    for result in (gain, months):
        assert result._repr_html_().startswith("<div>")


def test_months_that_cannot_vary_have_no_test() -> None:
    perfect = months_of(shares((100, 100), (200, 200), (50, 50)))
    assert all(math.isnan(x) for x in (perfect.Q, perfect.p, perfect.typical, perfect.joined.low))
    single = months_of(shares((90, 100)))
    assert math.isnan(single.Q)
    two = months_of(shares((90, 100), (170, 200)))
    assert math.isfinite(two.p)
    assert math.isnan(two.typical_low)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: MonthEstimate(0.5, 0.1, 0), "rows must be a number above 0, got 0"),
        (lambda: counted(-1, 3), "counts must be at least 0"),
        (lambda: counted(600, 500), "at most 1000 together, got 600 and 500"),
        (lambda: join_months([]), "at least one month"),
        (lambda: challenger_level(0), "challengers must be at least 1, got 0"),
        (
            lambda: join_months([counted(9, 1)]).check(Gate.parse("binary/recall.low >= 0.5")),
            "only a gate on .difference is joined",
        ),
    ],
)
def test_bad_months_are_refused(make: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make()  # type: ignore[operator]


# -- one inference with paired differences -----------------------------------------------------------


@pytest.mark.parametrize("metric", ["multiclass/accuracy", "binary/recall"])
@pytest.mark.parametrize("wrong", [3, 40])
@pytest.mark.parametrize("clusters", [False, True])
def test_one_month_has_the_interval_of_a_paired_difference(
    metric: str, wrong: int, clusters: bool
) -> None:
    rng = np.random.default_rng(wrong)
    actual = rng.integers(0, 2, 600)
    groups = np.repeat(np.arange(120), 5) if clusters else None
    new, old = (np.where(rng.permutation(600) < k, 1 - actual, actual) for k in (wrong, 2 * wrong))
    first, second = (evaluate(actual, predicted, groups=groups) for predicted in (new, old))
    month = MonthEstimate.of_pair(first, second, metric)
    expected = paired_differences(first, second, metrics=[metric])[metric]
    joined = join_months([month])
    near(joined.value, expected.difference)
    near(month.standard_error, expected.standard_error)
    if month.squares >= month.only_new + month.only_old:
        near((joined.low, joined.high), (expected.low, expected.high), TANGO)


def test_a_month_of_a_correlation_has_no_counts() -> None:
    actual = [0, 1] * 50
    new, old = (evaluate(actual, [0, 1] * k + [1, 0] * (50 - k)) for k in (45, 40))
    month = MonthEstimate.of_pair(new, old, "binary/matthews_corrcoef")
    assert math.isnan(month.only_new)
    assert month.rows == 100
    unpaired = MonthEstimate.of_pair(
        new, evaluate([0, 1] * 60, [0, 1] * 55 + [1, 0] * 5), "multiclass/accuracy"
    )
    assert math.isnan(unpaired.only_new)


# -- properties ------------------------------------------------------------------------------------

month_counts = st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(130, 5000))


@given(st.lists(month_counts, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_joining_does_not_depend_on_order_or_on_how_months_are_cut(
    counts: list[tuple[int, int, int]], random: object
) -> None:
    joined = join_months(of_counts(*counts))
    random.shuffle(counts)  # type: ignore[attr-defined]
    shuffled = join_months(of_counts(*counts))
    near((joined.low, joined.high, joined.value), (shuffled.low, shuffled.high, shuffled.value))
    whole = join_months(of_counts(tuple(np.sum(counts, axis=0).tolist())))
    near((joined.low, joined.high, joined.value), (whole.low, whole.high, whole.value))


@given(st.lists(month_counts, min_size=1, max_size=6))
def test_an_interval_contains_its_value_and_mirrors(counts: list[tuple[int, int, int]]) -> None:
    estimates = of_counts(*counts)
    joined = join_months(estimates)
    assert -1 <= joined.low <= joined.value <= joined.high <= 1
    other = join_months([month.reversed for month in estimates])
    near((other.value, other.low, other.high), (-joined.value, -joined.high, -joined.low))
    wider = join_months(estimates, confidence_level=challenger_level(3))
    assert wider.low <= joined.low
    assert wider.high >= joined.high


@given(
    st.lists(
        st.tuples(st.floats(-1, 1), st.floats(0.001, 0.2), st.integers(1, 5000)),
        min_size=3,
        max_size=12,
    ),
    st.floats(0.1, 0.9),
)
def test_months_agree_with_statsmodels(
    numbers: list[tuple[float, float, int]], scale: float
) -> None:
    months = months_of(named([MonthEstimate(*m) for m in numbers]), bounds=(-9, 9))
    values = np.array([value for value, _, _ in numbers])
    variances = months.variance / np.array([rows for _, _, rows in numbers])
    with np.errstate(all="ignore"):
        reference = combine_effects(values, variances, method_re="dl", use_t=True)
    assert pytest.approx(reference.q, rel=1e-7, abs=1e-9) == months.Q
    tau2 = max(reference.tau2, 0.0)
    assert months.tau**2 == pytest.approx(tau2, rel=1e-6, abs=1e-9)
    assert months.joined.value == pytest.approx(reference.mean_effect_fe, abs=1e-9)
    if tau2 > 0:
        assert months.typical == pytest.approx(reference.mean_effect_re, abs=1e-7)
        assert months.typical_error == pytest.approx(reference.sd_eff_w_re_hksj, rel=1e-5)
    scaled = [MonthEstimate(scale * v, scale * s, n) for v, s, n in numbers]
    again = months_of(named(scaled), bounds=(-9, 9))
    assert pytest.approx(months.Q, rel=1e-7, abs=1e-9) == again.Q
    assert again.typical_low == pytest.approx(scale * months.typical_low, rel=1e-6, abs=1e-9)
    assert months.typical_high - months.typical_low >= (months.joined.high - months.joined.low) * (
        1 - 1e-9
    )
