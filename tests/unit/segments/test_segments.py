"""Segments: test vectors 26 to 28, statsmodels, properties of the search, bad input."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact, norm

import cmtrack
from cmtrack import evaluate
from cmtrack.metrics import wilson
from cmtrack.segments import (
    Estimates,
    SegmentSearch,
    cut_at_quantiles,
    differences,
    disparity,
    order_of_segments,
    qualitative_interaction,
    search_columns,
    segment_columns,
    simultaneous_level,
    worst_segments,
)

# Inside: thousands of exact tests are compared with SciPy's; evaluations for them would take minutes.
from cmtrack.segments.inference import FEW, _fisher

# Inside: how two columns are crossed, before any row is counted.
from cmtrack.statistics.segment_values import SegmentRows, value_texts

N = np.array([6, 7, 5, 2])
HITS = np.array([5, 3, 5, 1])
"""Segments of test vector 26: data D20, called positive from .5 on."""
SHARES = Estimates.of_shares(HITS, N)
REST = Estimates.of_shares(HITS.sum() - HITS, N.sum() - N)


def near(expected: Any) -> Any:
    return pytest.approx(expected, abs=6e-11)


# -- inference ---------------------------------------------------------------------------------------------------------


def test_vector_26_intervals_that_hold_together():
    assert norm.interval(simultaneous_level(4))[1] == near(2.4909151310)
    assert SHARES.values.tolist() == near([5 / 6, 3 / 7, 1, 1 / 2])
    low, high = SHARES.intervals("wilson")
    assert low.tolist() == near([0.3487113572, 0.1212531756, 0.4462429746, 0.0651908360])
    assert high.tolist() == near([0.9790323565, 0.8030159736, 1, 0.9348091640])
    assert (low[1], high[1]) == pytest.approx(wilson(3 / 7, 7, simultaneous_level(4)), abs=1e-15)


def test_vector_26_differences_to_the_rest():
    found = differences(SHARES, REST)
    assert found.values.tolist() == near([0.1904761905, -0.4175824176, 0.4, -0.2222222222])
    assert found.low.tolist() == near([-0.3439391327, -0.7481410930, -0.2024803890, -0.6916224491])
    assert found.high.tolist() == near([0.5357242086, 0.0918572896, 0.6958732396, 0.3008594690])


def test_differences_equal_statsmodels():
    proportion = pytest.importorskip("statsmodels.stats.proportion", exc_type=ImportError)
    found = differences(SHARES, REST)
    for k in range(4):
        rest = int(HITS.sum() - HITS[k]), int(N.sum() - N[k])
        ends = proportion.confint_proportions_2indep(
            HITS[k], N[k], *rest, method="newcomb", alpha=1 - found.level
        )
        assert (found.low[k], found.high[k]) == pytest.approx(ends, abs=1e-12)


def test_fisher_equals_scipy():
    rng = np.random.default_rng(0)
    few, many = rng.integers(1, FEW, 200), rng.integers(1, 500, 200)
    tables = np.array([rng.integers(0, few + 1), few, rng.integers(0, many + 1), many], dtype=float)
    tables[:, ::2] = tables[[2, 3, 0, 1], ::2]
    wanted = [fisher_exact([[a, n - a], [b, m - b]]).pvalue for a, n, b, m in tables.T]
    assert _fisher(*tables) == pytest.approx(wanted, rel=1e-9)


def test_vector_26_gap_and_ratio():
    found = disparity(SHARES)
    assert norm.interval(simultaneous_level(6))[1] == near(2.6310382845)
    assert (found.gap, found.ratio, found.pairs) == (near(4 / 7), near(3 / 7), 6)
    assert (found.gap_low, found.gap_high) == (0, near(0.9404100705))
    assert (found.lowest, found.highest) == (1, 2)
    assert 0 < found.ratio_low < found.ratio < found.ratio_high == 1


def test_clear_gaps_have_limits_above_0_and_ratios_below_1():
    found = disparity(Estimates.of_shares([900, 500, 880], [1000, 1000, 1000]))
    assert 0.33 < found.gap_low < found.gap == 0.4 < found.gap_high < 0.46
    assert found.ratio == pytest.approx(5 / 9)
    assert 0.5 < found.ratio_low < found.ratio < found.ratio_high < 0.65
    others = Estimates(np.array([2.0, 1.0, 1.9]), np.array([0.05, 0.04, 0.05]))
    wald = disparity(others)
    reach = norm.interval(simultaneous_level(3))[1] * math.hypot(0.05, 0.04)
    assert (wald.gap_low, wald.gap_high) == near((1 - reach, 1 + reach))
    reach = norm.interval(simultaneous_level(3))[1] * math.hypot(0.05 / 2, 0.04)
    assert (wald.ratio_low, wald.ratio_high) == pytest.approx(
        (0.5 * math.exp(-reach), 0.5 * math.exp(reach)), abs=1e-12
    )


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=8))
def test_gaps_are_the_extremes_and_their_limits_hold_them(counts: list[tuple[int, int]]) -> None:
    hits, n = np.array([a for a, _ in counts]), np.array([a + b for a, b in counts])
    found = disparity(Estimates.of_shares(hits, n))
    shares = [a / m for a, m in zip(hits.tolist(), n.tolist(), strict=True) if m]
    if len(shares) < 2:
        assert math.isnan(found.gap)
        assert "needs two" in found.reason
        return
    assert found.gap == max(shares) - min(shares)
    assert 0 <= found.gap_low <= found.gap + 1e-12
    assert found.gap <= found.gap_high + 1e-12 <= 1 + 2e-12
    if max(shares) > 0:
        assert found.ratio == min(shares) / max(shares)
        assert 0 <= found.ratio_low <= found.ratio + 1e-12
        assert found.ratio <= found.ratio_high + 1e-12 <= 1 + 2e-12
    else:
        assert math.isnan(found.ratio)
        assert "not 0" in found.reason


def test_segments_without_value_or_error():
    found = Estimates(np.array([0.5, math.nan, 0.7]), np.array([0.1, math.nan, 0.1]))
    low, high = found.intervals("wald")
    assert np.isnan([low[1], high[1]]).all()
    assert high[0] - 0.5 == pytest.approx(0.1 * norm.interval(math.sqrt(0.95))[1])
    assert disparity(found).pairs == 1
    without = disparity(Estimates(np.array([0.5, 1.0]), np.array([0.1, 0.0])))
    assert without.gap == 0.5
    assert math.isnan(without.gap_high)
    assert without.reason == "1 of 2 segments have no standard error"
    signed = disparity(Estimates(np.array([0.5, -0.1]), np.array([0.1, 0.1])))
    assert math.isnan(signed.ratio)
    assert "not negative" in signed.reason
    few = Estimates(np.array([0.5, 0.6]), np.array([0.1, 0.1]), None, np.array([4.0, math.inf]))
    assert few.arms(0.95)[0].tolist() == near([0.1 * 2.7764451052, 0.1 * 1.9599639845])


@pytest.mark.parametrize("scale", ["atanh", "logit", "log", "wald"])
def test_intervals_on_other_scales_hold_their_values(scale: str) -> None:
    found = Estimates(np.array([0.3, 0.6]), np.array([0.02, 0.03]))
    low, high = found.intervals(scale, bounds=(0.0, 1.0))
    assert (low < found.values).all()
    assert (found.values < high).all()


def test_vector_27_order():
    estimates = Estimates(
        np.array([0.70, 0.75, 0.62, 0.81, 0.77]), np.array([0.03, 0.02, 0.05, 0.04, 0.01])
    )
    assert order_of_segments(estimates, np.ones(5)).tolist() == [2, 0, 1, 4, 3]
    assert order_of_segments(estimates, np.ones(5), "lower").tolist() == [3, 4, 1, 0, 2]


def test_segments_are_in_the_order_of_their_values_and_unknown_ones_are_last():
    shares = Estimates.of_shares([10, 9, 20, 0], [20, 20, 40, 0])
    # of equal ones the larger segment first
    assert order_of_segments(shares, shares.n).tolist() == [1, 2, 0, 3]
    # the least value, though its error is large
    small = Estimates.of_shares([98, 984, 996], [102, 1000, 1000])
    assert order_of_segments(small, small.n).tolist() == [0, 1, 2]


def test_vector_27b_qualitative_interaction():
    found = qualitative_interaction(
        [0.04, 0.03, -0.05, 0.02, -0.01], [0.012, 0.02, 0.02, 0.015, 0.02]
    )
    assert found[:3] == near((15.1388888889, 6.5, 0.0499522152))
    assert qualitative_interaction([0.06, -0.05], [0.02, 0.02]).pvalue == near(0.0062096653)
    assert qualitative_interaction([0.06, 0.05], [0.02, 0.02]).pvalue == 1
    left_out = qualitative_interaction([0.06, -0.05, math.nan, 1], [0.02, 0.02, 1, 0])
    assert (left_out.pvalue, left_out.segments) == (near(0.0062096653), 2)
    assert math.isnan(qualitative_interaction([0.06], [0.02]).pvalue)


@pytest.mark.parametrize(
    ("segments", "critical"),
    [(2, 2.7055), (3, 4.2306), (4, 5.4345), (5, 6.4979), (6, 7.4797), (8, 9.2948), (10, 10.9855)],
)
def test_critical_values_of_the_interaction(segments: int, critical: float) -> None:
    d = np.full(segments, 100.0)
    d[0] = -math.sqrt(critical)
    assert qualitative_interaction(d, np.ones(segments)).pvalue == pytest.approx(0.05, abs=2e-6)


# -- columns -----------------------------------------------------------------------------------------------------------


def test_missing_values_are_a_segment():
    frame = pd.DataFrame(
        {"region": ["south", None, "north", "south"], "age": [1.0, 2.0, math.nan, 1.0]}
    )
    region, age = segment_columns(frame, 4)
    assert (region.values, region.texts) == (
        ("north", "south", None),
        ("north", "south", "(missing)"),
    )
    assert region.codes.tolist() == [1, 2, 0, 1]
    assert age.texts == ("1.0", "2.0", "(missing)")
    assert region.sizes.tolist() == [1, 2, 1]
    first, second = (SegmentRows.of(one.name, one.values, one.codes) for one in (region, age))
    both = first.crossed(second)
    assert both.name == "region × age"
    assert both.values == (("north", None), ("south", 1.0), (None, 2.0))
    assert value_texts(both.values) == ("north × (missing)", "south × 1.0", "(missing) × 2.0")
    assert segment_columns(frame, 4, ["age"])[0].name == "age"


def test_texts_of_segments_differ():
    column = segment_columns({"x": [1, "1", None, "(missing)"]}, 4)[0]
    assert sorted(column.texts) == sorted({"1 (int)", "1 (str)", "((missing))", "(missing)"})
    assert column.texts[column.codes[2]] == "((missing))"


def test_categories_keep_their_order_and_empty_ones_are_left_out():
    values = pd.Series(pd.Categorical(["b", "a", None], categories=["c", "b", "a"]))
    column = segment_columns({"x": values}, 3)[0]
    assert column.texts == ("b", "a", "(missing)")
    assert column.codes.tolist() == [0, 1, 2]


def test_the_largest_segments_stay():
    values = np.concatenate([np.repeat(np.arange(999), 3), np.arange(999, 1500), [7]])
    column = segment_columns({"zip": values}, len(values))[0]
    assert len(column.texts) == 1000
    assert column.texts[-1] == "(others)"
    assert column.sizes.tolist() == [*[3] * 7, 4, *[3] * 991, 501]
    assert column.note == (
        "“zip” has 1,500 values: the 999 most frequent values are segments, and the other 501 "
        "with 501 rows together are the segment “(others)”."
    )


def test_numbers_are_cut_at_quantiles_for_a_search():
    age = np.arange(100, dtype=float)
    age[5] = math.nan
    column, few = search_columns({"age": age, "level": np.arange(100) % 7}, 100, bins=4)
    assert column.texts == ("≤ 25", "25 to 50", "50 to 75", "> 75", "(missing)")
    assert column.sizes.tolist() == [25, 25, 25, 24, 1]
    assert column.values[1] == (25.0, 50.0)
    assert column.note == "“age” is cut at its quantiles 25, 50, 75 into 4 parts."
    assert few.texts == ("0", "1", "2", "3", "4", "5", "6")
    mostly = cut_at_quantiles("x", [0, 1, 1, 1, 1, 1, 1, 1], 8)
    assert mostly.texts == ("≤ 0", "> 0")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"x": ["a", "b"]}, "'x' must have one value per row, got 2 for 30 rows"),
        ({"x": ["a"] * 30}, "'x' must contain at least two values, got only 'a' in 30 rows"),
        (
            {"x": [None] * 30},
            "'x' must contain at least two values, got only '(missing)' in 30 rows",
        ),
        (
            {"x": np.linspace(0, 1, 30)},
            "'x' must contain categories, got 30 numbers such as 0.0344828: bin it first",
        ),
    ],
    ids=["length", "one value", "missing", "continuous"],
)
def test_bad_columns(columns: Any, says: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared as it is
        segment_columns(columns, 30)
    assert says in str(caught.value)


def test_more_bad_columns():
    with pytest.raises(ValueError, match=r"\['y'\] are not in \['x'\]"):
        segment_columns({"x": ["a", "b"]}, 2, ["y"])
    with pytest.raises(ValueError, match="a different value in each of 1,200 rows: is it a row id"):
        segment_columns({"id": [f"row {k}" for k in range(1200)]}, 1200)
    with pytest.raises(TypeError, match="'x' must contain numbers to be cut"):
        cut_at_quantiles("x", ["a", "b"], 2)
    with pytest.raises(ValueError, match="bins must be a whole number of at least 2, got 1"):
        cut_at_quantiles("x", [1, 2], 2, 1)
    with pytest.raises(ValueError, match="at least two values, got only 'all numbers' in 2 rows"):
        cut_at_quantiles("x", [1, 1], 2)
    with pytest.raises(ValueError, match="masked"):
        segment_columns({"x": np.ma.array([1, 2], mask=[True, False])}, 2)


# -- search ------------------------------------------------------------------------------------------------------------

X28 = np.array([1, 0, 0, 1, 1, 0, 0, 0, 1, 0])


def columns_of_rows(*chosen: list[int]) -> Any:
    """Columns of which one value of each has the given rows, every other value one row."""
    table = {}
    for k, rows in enumerate(chosen):
        table[f"S{k + 1}"] = ["in" if i in rows else str(i) for i in range(10)]
    return segment_columns(table, 10)


def by_name(found: SegmentSearch) -> dict[str, Any]:
    return {one.text: one for one in found.segments}


@pytest.mark.slow
def test_vector_28_exact():
    columns = columns_of_rows([0, 1, 3, 4], [0, 2, 3, 6, 8])
    options: dict[str, Any] = {"depth": 1, "min_rows": 4}
    found = worst_segments(columns, X28, n_permutations=19_999, **options)
    assert [one.text for one in found.segments] == ["S1 = in", "S2 = in"]
    assert [one.z for one in found.segments] == near([1.75, 1.2247448714])
    assert found.segments[0].p_adjusted == pytest.approx(
        0.1428571429, abs=4 * math.sqrt(0.1429 * 0.8571 / 20_000)
    )
    as_large = 0
    for errors in combinations(range(10), 4):
        x = np.zeros(10)
        x[list(errors)] = 1
        as_large += (
            worst_segments(columns, x, n_permutations=1, **options).segments[0].z >= 1.75 - 1e-9
        )
    assert as_large / 210 == near(0.1428571429)


def slices_by_hand(table: pd.DataFrame, x: np.ndarray, least: int) -> dict[str, tuple[int, float]]:
    """Rows and z of every slice, one by one."""
    found, e, n = {}, x - x.mean(), len(x)
    for depth in (1, 2):
        for names in combinations(table.columns, depth):
            for values, rows in table.groupby(list(names), dropna=False).indices.items():
                m = len(rows)
                if least <= m < n:
                    own = values if isinstance(values, tuple) else (values,)
                    z = e[rows].sum() / math.sqrt(m * (n - m) / (n - 1) * (e @ e) / n)
                    found[", ".join(f"{a} = {b}" for a, b in zip(names, own, strict=True))] = (m, z)
    return found


@pytest.mark.parametrize("wide", [False, True], ids=["few cells", "many cells"])
@pytest.mark.parametrize("costs", [False, True], ids=["errors", "costs"])
def test_every_slice_is_searched(wide: bool, costs: bool) -> None:
    rng = np.random.default_rng(1)
    n = 2000
    table = pd.DataFrame({f"c{k}": rng.integers(0, 3 + 2 * k, n) for k in range(5)})
    if wide:
        table["a"], table["b"] = rng.geometric(0.02, n), rng.geometric(0.02, n)
    x = rng.exponential(size=n) if costs else (rng.random(n) < 0.2).astype(float)
    found = worst_segments(segment_columns(table, n), x, min_rows=15, n_permutations=49)
    expected = slices_by_hand(table, x, 15)
    assert {one.text: one.rows for one in found.segments} == {
        text: m for text, (m, _) in expected.items()
    }
    assert {one.text: one.z for one in found.segments} == pytest.approx(
        {t: z for t, (_, z) in expected.items()}, abs=2e-9
    )
    assert found.searched == len(expected)
    first = found.segments[0]
    assert first.z == max(one.z for one in found.segments)


def test_what_is_told_of_a_segment():
    proportion = pytest.importorskip("statsmodels.stats.proportion", exc_type=ImportError)
    rng = np.random.default_rng(2)
    n = 1000
    region = rng.choice(["north", "south", "west"], n)
    x = (rng.random(n) < np.where(region == "south", 0.5, 0.2)).astype(int)
    found = worst_segments(segment_columns({"region": region}, n), x, n_permutations=199)
    south = found.segments[0]
    assert south.text == "region = south"
    assert south.p_adjusted == 1 / 200
    inside = region == "south"
    assert (south.rows, south.value, south.rest) == (
        inside.sum(),
        near(x[inside].mean()),
        near(x[~inside].mean()),
    )
    level = simultaneous_level(3)
    assert (south.low, south.high) == pytest.approx(
        wilson(x[inside].mean(), inside.sum(), level), abs=1e-12
    )
    counts = x[inside].sum(), inside.sum(), x[~inside].sum(), (~inside).sum()
    ends = proportion.confint_proportions_2indep(*counts, method="newcomb", alpha=1 - level)
    assert (south.difference_low, south.difference_high) == pytest.approx(ends, abs=1e-12)
    assert south.divergence == near(x[inside].mean() - x.mean())
    score = 0.95 * (x[inside].mean() / x.mean() - 1) - 0.05 * (n / inside.sum() - 1)
    assert south.score == near(score)
    frame = found.to_frame()
    assert frame["segment"].tolist()[0] == "region = south"
    assert (frame["p_adjusted"] > 0).all()
    assert found.found() == (south,)
    assert repr(found) == (
        "SegmentSearch(1 of 3 searched segments have an adjusted p-value of at most .05 (1,000 rows, 199 permutations))"
    )
    assert "the segment was chosen for its extreme value" in found._repr_html_()


def test_higher_is_better_mirrors_errors():
    rng = np.random.default_rng(3)
    columns = segment_columns({"a": rng.integers(0, 4, 800), "b": rng.integers(0, 3, 800)}, 800)
    errors = (rng.random(800) < 0.3).astype(int)
    low = worst_segments(columns, errors, min_rows=20, n_permutations=99)
    high = worst_segments(columns, 1 - errors, better="higher", min_rows=20, n_permutations=99)
    for a, b in zip(low.segments, high.segments, strict=True):
        assert (a.text, a.z, a.p_adjusted) == (b.text, near(b.z), b.p_adjusted)
        assert (a.value, a.score, a.low) == (near(1 - b.value), near(b.score), near(1 - b.high))


def test_only_the_metrics_own_rows():
    rng = np.random.default_rng(4)
    region, x, own = (
        rng.integers(0, 3, 600),
        rng.integers(0, 2, 600).astype(float),
        rng.random(600) < 0.5,
    )
    x_with_gaps = np.where(own, x, math.nan)
    found = worst_segments(
        segment_columns({"r": region}, 600), x_with_gaps, where=own, min_rows=10, n_permutations=99
    )
    alone = worst_segments(
        segment_columns({"r": region[own]}, own.sum()), x[own], min_rows=10, n_permutations=99
    )
    assert found.to_frame().equals(alone.to_frame())
    assert found.rows == own.sum()


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 3)), min_size=12, max_size=40
    )
)
def test_whole_weights_are_repeated_rows(rows: list[tuple[int, int, int]]) -> None:
    region, x, w = (np.array(column) for column in zip(*rows, strict=True))
    times = np.repeat(np.arange(len(w)), w)
    if len(set(region[times].tolist())) < 2 or len(set(region.tolist())) < 2:
        return
    weighted = worst_segments(
        segment_columns({"r": region}, len(x)), x, weights=w, min_rows=1, n_permutations=9
    )
    repeated = worst_segments(
        segment_columns({"r": region[times]}, len(times)), x[times], min_rows=1, n_permutations=9
    )
    for a, b in zip(weighted.segments, repeated.segments, strict=True):
        assert a.where == b.where
        ours, theirs = (
            [value for value in vars(one).values() if isinstance(value, float)] for one in (a, b)
        )
        assert ours == pytest.approx(theirs, abs=1e-12, nan_ok=True)


def clustered(nested: bool) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    person = np.arange(900) // 3
    table = {"a": rng.integers(0, 3, 300)[person], "b": rng.integers(0, 3, 300)[person]}
    if not nested:
        table["b"] = rng.integers(0, 3, 900)
    return segment_columns(table, 900), (rng.random(300)[person] < 0.3).astype(float), person


def test_clusters_are_exchanged_whole():
    columns, x, person = clustered(True)
    found = worst_segments(
        columns, x, clusters=[f"p{k}" for k in person], min_rows=30, n_permutations=199
    )
    alone = worst_segments(columns, x, min_rows=30, n_permutations=199)
    one, by_rows = by_name(found)["a = 0"], by_name(alone)["a = 0"]
    assert one.clusters == one.rows / 3
    assert one.z == pytest.approx(by_rows.z / math.sqrt(3), rel=0.01)
    assert one.high - one.low > 1.6 * (by_rows.high - by_rows.low)
    assert "clusters" in found.to_frame()
    crossing, x, person = clustered(False)
    with pytest.raises(
        ValueError,
        match=r"one segment of every column, 2\d\d of 300 are in several segments of 'b'",
    ):
        worst_segments(crossing, x, clusters=person, min_rows=30)


def test_a_missing_value_is_no_second_segment_of_a_cluster():
    """The search is that of the table in which a person's other rows give the value; persons without any stay apart."""
    rng = np.random.default_rng(4)
    person = np.arange(900) // 9
    site = np.array(["a", "b", "c"], dtype=object)[person % 3]
    errors = (rng.random(900) < np.where(site == "b", 0.5, 0.1)).astype(float)
    unknown, away = person < 6, rng.random(900) < 0.05
    whole = np.where(unknown, None, site)
    options = {"clusters": person, "min_rows": 20, "n_permutations": 99}
    wanted = worst_segments(segment_columns({"site": whole}, 900), errors, **options)
    found = worst_segments(
        segment_columns({"site": np.where(away, None, whole)}, 900), errors, **options
    )
    assert found.to_frame().equals(wanted.to_frame())
    assert [one.text for one in found.segments if one.p_adjusted <= 0.05] == ["site = b"]
    assert (
        f"{(away & ~unknown).sum()} rows without a value of 'site' are searched with the value of their cluster."
        in found.notes
    )
    moved = segment_columns({"site": np.where(np.arange(900) == 899, "b", whole)}, 900)
    with pytest.raises(ValueError, match="1 of 100 are in several segments of 'site'"):
        worst_segments(moved, errors, **options)


def test_nothing_that_varies_is_no_error():
    columns = segment_columns({"a": np.arange(300) % 2}, 300)
    found = worst_segments(columns, np.zeros(300), n_permutations=9)
    assert [one.p_adjusted for one in found.segments] == [1, 1]
    assert all(math.isnan(one.z) for one in found.segments)
    assert found.notes == ("All 300 rows have the same value: no segment differs.",)


def test_p_values_are_the_same_for_the_same_seed_and_any_order_of_columns():
    rng = np.random.default_rng(9)
    table = {f"c{k}": rng.integers(0, 4, 1500) for k in range(4)}
    x = rng.exponential(size=1500)
    a = worst_segments(segment_columns(table, 1500), x, n_permutations=99)
    b = worst_segments(segment_columns(dict(reversed(table.items())), 1500), x, n_permutations=99)
    by_set = {frozenset(one.where): one.p_adjusted for one in b.segments}
    assert {frozenset(one.where): one.p_adjusted for one in a.segments} == by_set


def test_a_search_of_differences_finds_where_one_of_two_models_is_worse():
    rng = np.random.default_rng(8)
    region = rng.integers(0, 4, 2000)
    columns = segment_columns({"region": region, "other": rng.integers(0, 4, 2000)}, 2000)
    first = (rng.random(2000) < np.where(region == 2, 0.4, 0.2)).astype(int)
    second = (rng.random(2000) < 0.2).astype(int)
    found = worst_segments(columns, first - second, n_permutations=199)
    assert found.segments[0].text == "region = 2"
    assert found.segments[0].p_adjusted == 1 / 200


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"columns": []}, "at least one segment column, got none"),
        ({"values": np.zeros(29)}, "values must have one number per row, got (29,) for 30 rows"),
        ({"values": np.full(30, math.nan)}, "values must be finite, got nan at row 0"),
        (
            {"where": np.zeros(30, dtype=bool)},
            "the metric must have rows to search, got none of 30",
        ),
        (
            {"where": np.ones(30)},
            "where must be True or False for each of 30 rows, got float64 of (30,)",
        ),
        ({"weights": np.zeros(30)}, "sample_weight must be above 0 in at least one row"),
        ({"clusters": np.zeros(29)}, "groups must have one entry per row, got 29 for 30 rows"),
        (
            {"depth": 3},
            "depth must be 1 or 2, got 3: a search crosses at most two columns",
        ),
        (
            {"weights": np.full(30, 2.5)},
            "integer weights, which count identical rows; for sampling weights, "
            "evaluation.segments",
        ),
        (
            {"min_rows": 16},
            "min_rows must be at most 15, the size of the largest of 2 segments, got 16;",
        ),
        ({"min_rows": 0}, "min_rows must be a whole number of at least 1, got 0"),
        ({"n_permutations": 9.5}, "n_permutations must be a whole number of at least 1, got 9.5"),
        ({"confidence_level": 95}, "confidence_level must be between 0 and 1, got 95"),
        ({"better": "larger"}, 'better must be "higher" or "lower", got \'larger\''),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_searches(changed: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {
        "columns": segment_columns({"x": np.arange(30) % 2}, 30),
        "values": np.arange(30) % 3,
        "min_rows": 5,
    } | changed
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared as it is
        worst_segments(given.pop("columns"), given.pop("values"), **given)
    assert says in str(caught.value)


@pytest.mark.parametrize(("given", "shown"), [("hue", "'hue'"), (3, "3")], ids=["text", "number"])
def test_segments_that_are_no_columns_are_refused_with_what_is_allowed(
    given: Any, shown: str
) -> None:
    allowed = f"segments must be a table, a mapping of name to column, a series or an array, got {shown}; "
    with pytest.raises(
        TypeError, match=rf"^{allowed}segments=\(table, \['region'\]\) takes a column of a table by"
    ):
        evaluate([0, 1, 1], [0, 1, 0], segments=given)


def test_columns_of_one_name_or_of_other_kinds():
    column = segment_columns({"x": np.arange(30) % 2}, 30)[0]
    with pytest.raises(ValueError, match="must not repeat, got 'x' more than once"):
        worst_segments([column, column], np.arange(30))
    with pytest.raises(
        TypeError, match=r"must be segment columns, as search_columns makes them, got \['str'\]"
    ):
        worst_segments(["x"], np.arange(30))  # type: ignore[list-item]
    with pytest.raises(
        ValueError, match="segment columns must have the same length, got 30 and 20"
    ):
        worst_segments([column, segment_columns({"y": np.arange(20) % 2}, 20)[0]], np.arange(30))


@pytest.mark.parametrize("rate", [0.005, 0.01, 0.03, 0.1])
def test_intervals_of_rare_shares_hold_together(rate: float) -> None:
    """Ten segments of 90 rows: Wilson's at the simultaneous level hold all ten in .81 to .94 of samples."""
    hits = np.random.default_rng(3).binomial(90, rate, (1500, 10))
    level, covered = simultaneous_level(10), []
    for row in hits:
        low, high = Estimates.of_shares(row, np.full(10, 90)).ends(level)
        covered.append(((low <= rate) & (rate <= high)).all())
    assert np.mean(covered) >= 0.94


def test_a_table_of_several_segments_has_exact_intervals_of_rare_events() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion", exc_type=ImportError)
    part = np.repeat(["a", "b"], 500)
    wrong = np.isin(np.arange(1000), [0, 1, *range(500, 620)])
    table = evaluate(
        np.zeros(1000, int), wrong.astype(int), labels=[0, 1], segments={"part": part}
    ).segments["part"]
    low, high = table.intervals("multiclass/accuracy")
    level = simultaneous_level(2)
    exact = proportion.proportion_confint([498], [500], 1 - level, "beta")
    assert (low[0], high[0]) == pytest.approx((exact[0][0], exact[1][0]), abs=1e-12)
    assert (low[1], high[1]) == pytest.approx(wilson(0.76, 500, level), abs=1e-12)


def rare(rows: int, positives: int) -> cmtrack.Evaluation:
    rng = np.random.default_rng(2)
    y = np.r_[np.ones(positives, dtype=int), np.zeros(rows - positives, dtype=int)]
    site = rng.integers(0, 3, rows)
    return cmtrack.evaluate(y, y * (rng.random(rows) < 0.6), positive=1, segments={"site": site})


def test_the_least_size_of_a_searched_segment_follows_the_metrics_own_rows():
    assert rare(1200, 49).worst_segments("binary/recall").min_rows == 9  # a fifth of 49
    assert rare(1200, 49).worst_segments("multiclass/accuracy").min_rows == 100
    assert rare(1200, 49).worst_segments("binary/recall", min_rows=12).min_rows == 12
    with pytest.raises(KeyError, match="did you mean 'binary/recall'"):
        rare(1200, 49).worst_segments("binary/recal")


def test_a_list_of_names_is_no_column_of_segments():
    y = np.arange(300) % 2
    with pytest.raises(
        TypeError,
        match=r"segments must map names to columns, such as \{'region': one value per row\}",
    ):
        cmtrack.evaluate(y, y, segments=["region"])
