"""Numbers on rows across runs: vectors of independent programs, and brute force on small problems."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from cmtrack.rows import Flips


def flipped(
    n: Sequence[int], broken: Sequence[int], fixed: Sequence[int], parts: bool = False, **given: Any
) -> Flips:
    """Flips of parts of n rows, of which so many are broken and fixed."""
    marks = []
    for rows, b, f in zip(n, broken, fixed, strict=True):
        marks.append(np.repeat([[1, 0], [0, 1], [1, 1]], (b, f, rows - b - f), axis=0))
    first, second = np.concatenate(marks).astype(bool).T
    part = (tuple(range(len(n))), np.repeat(np.arange(len(n)), n)) if parts else None
    return Flips.of(first, second, first != second, part, **given)


def unlike_pvalue(broken: Sequence[int], fixed: Sequence[int]) -> float:
    """The p-value of the hypothesis that parts are alike in their broken and fixed rows."""
    return flipped(np.add(broken, fixed), broken, fixed, parts=True).pvalue


def exact_ends(broken: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The interval of the share of broken rows, of which no others are in the part."""
    row = flipped([n], [broken], [0], confidence_level=level).to_frame().iloc[0]
    return float(row["broken_low"]), float(row["broken_high"])


VECTOR = (60, 200, 90, 150), (0, 4, 1, 9), (3, 10, 0, 2)


def test_flips_of_all_rows() -> None:
    row = flipped(*VECTOR).to_frame().iloc[0]
    names = "part n broken broken_low broken_high fixed fixed_low fixed_high pvalue"
    assert list(row.index) == names.split()
    assert (row["n"], row["broken"], row["fixed"]) == (500, 14 / 500, 15 / 500)
    ends = [row[name] for name in ("broken_low", "broken_high", "fixed_low", "fixed_high")]
    assert ends == pytest.approx([0.0153906, 0.0465333, 0.0168860, 0.0489982], abs=1e-7)
    assert row["pvalue"] == pytest.approx(0.8555355519, abs=1e-10)


def test_flips_by_part_hold_together_and_are_unlike_where_the_total_is_not() -> None:
    flips = flipped(*VECTOR, parts=True)
    frame = flips.to_frame()
    assert frame["broken_low"].tolist() == pytest.approx(
        [0, 0.0029575, 0.0000348, 0.0197365], abs=1e-7
    )
    assert frame["broken_high"].tolist() == pytest.approx(
        [0.0916620, 0.0647298, 0.0851154, 0.1332520], abs=1e-7
    )
    assert flips.alone.tolist() == pytest.approx([0.125, 0.1184692, 0.5, 0.0385742], abs=1e-7)
    assert frame["pvalue"].tolist() == pytest.approx([0.3554, 0.3554, 0.5, 0.1543], abs=1e-4)
    assert flips.pvalue == pytest.approx(0.0031933079, abs=1e-10)


def test_unlike_by_all_tables_is_the_sum_over_all_orders() -> None:
    broken, fixed = np.array([2, 0, 3]), np.array([1, 3, 1])
    sizes, signs = broken + fixed, np.repeat([1, 0], (5, 5))
    share = 0.5

    def square(counts: np.ndarray) -> float:
        return float(((counts - sizes * share) ** 2 / (sizes * share * (1 - share))).sum())

    codes, hits = np.repeat(np.arange(3), sizes), 0
    orders = list(itertools.combinations(range(10), 5))
    for ones in orders:
        hits += square(np.bincount(codes[list(ones)], minlength=3)) >= square(broken) - 1e-9
    assert signs.sum() == 5
    assert unlike_pvalue(broken, fixed) == pytest.approx(hits / len(orders), abs=1e-12)


def test_unlike_by_draws_is_near_that_by_chi_square() -> None:
    broken, fixed = np.full(12, 8), np.full(12, 8)
    broken[0], fixed[0] = 15, 1
    wide = unlike_pvalue(np.append(broken, 1), np.append(fixed, 0))  # an expected count is below 5
    assert wide == pytest.approx(unlike_pvalue(broken, fixed), abs=0.05)
    assert math.isnan(unlike_pvalue([3, 2], [0, 0]))


@pytest.mark.parametrize(("broken", "n"), [(0, 368), (1, 555), (2, 720), (5, 1164)])
def test_rows_that_a_gate_of_one_percent_needs(broken: int, n: int) -> None:
    assert exact_ends(broken, n)[1] <= 0.01 < exact_ends(broken, n - 1)[1]


@pytest.mark.slow
@given(
    st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.sampled_from([0.8, 0.95, 0.999]),
)
def test_exact_ends_leave_half_of_alpha_on_each_side(of: tuple[int, int], level: float) -> None:
    hits, n = of
    low, high = exact_ends(hits, n, level)
    assert low <= hits / n <= high
    if hits:
        assert binom.sf(hits - 1, n, low) == pytest.approx((1 - level) / 2, rel=1e-6)
    if hits < n:
        assert binom.cdf(hits, n, high) == pytest.approx((1 - level) / 2, rel=1e-6)


def test_flips_of_repeated_and_clustered_rows() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 300)) < 0.8
    weights = rng.integers(0, 3, 300)
    repeated, plain = (
        Flips.of(first, second, first != second, None, weights),
        Flips.of(*(np.repeat(column, weights) for column in (first, second, first != second))),
    )
    assert repeated.to_frame().equals(plain.to_frame())
    rows = Flips.of(first, second, first != second)
    twice = Flips.of(
        *(np.tile(c, 2) for c in (first, second, first != second)),
        None,
        None,
        np.tile(np.arange(300), 2),
    )
    for name in ("broken", "fixed"):
        assert twice.rates[name][0] == pytest.approx(rows.rates[name][0])
        assert [end[0] for end in twice.rates[name][1:]] == pytest.approx(
            [end[0] for end in rows.rates[name][1:]], abs=2e-4
        )
    assert twice.alone[0] == pytest.approx(rows.alone[0], abs=0.02)
