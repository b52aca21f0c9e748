"""Checks, changes, ratios and totals of domains: vectors, and properties of the joint error."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cmtrack.prevalence.domains import (
    Assumption,
    DomainShares,
    DomainTables,
    Step,
    change,
    changes,
    combination,
    leave_out,
    no_change,
    ratio,
    ratio_interval,
    score,
    total,
)

A = ([40, 15, 5, 2], [1, 4, 9, 20])
B = ([60, 10, 4, 1], [2, 3, 4, 6])
C = ([10, 5, 3, 1], [0, 2, 2, 2])
NONE = ([0, 0, 0, 0], [0, 0, 0, 0])
POSITIVE = np.array([0.0, 1.0])
NPS = np.array([-1.0, 0.0, 1.0])
A1 = ("a",)
B1 = ("b",)
C1 = ("c",)


def close(found: Any, wanted: Any, relative: float = 1e-9) -> None:
    """Vectors are printed with ten digits."""
    np.testing.assert_allclose(found, wanted, rtol=relative)


def printed(found: Any, wanted: Any, error: float = 6e-11) -> None:
    """Some vectors are printed with ten decimals."""
    np.testing.assert_allclose(found, wanted, rtol=0, atol=error)


def tables(*cells: tuple[Any, Any, Any], columns: tuple[str, ...] = ("region",)) -> DomainTables:
    """Tables of cells, each with its key, its labelled rows by class and bin, and its target."""
    keys, labelled, target = zip(*cells, strict=True)
    counts = np.array(labelled, dtype=float).transpose(0, 2, 1)
    return DomainTables.from_bins(columns, keys, counts, np.array(target, dtype=float))


@pytest.fixture(scope="module")
def regions() -> DomainShares:
    return DomainShares(
        tables(
            (A1, A, [300, 220, 180, 300]),
            (B1, B, [500, 250, 150, 100]),
            (C1, C, [50, 20, 20, 10]),
        )
    )


def test_change_and_growth(regions: DomainShares) -> None:
    found = change(regions, A1, B1)
    close([found.value, found.standard_error], [-0.1968869822, 0.04591353939])
    close(change(regions, A1, B1, own=True).standard_error, 0.04646719841)
    both = combination(regions, {A1: 1, B1: 1}).standard_error ** 2
    close((both - found.standard_error**2) / 4, 2.455683295e-4)
    growth = ratio(regions, A1, B1)
    close([growth.value, growth.low, growth.high], [0.5473098686, 0.3877313623, 0.7277013607])


def test_total_and_no_change(regions: DomainShares) -> None:
    found = total(regions)
    close([found.value, found.standard_error], [693.687352, 57.1490581])
    test = no_change(regions)
    close([test.statistic, test.degrees, test.pvalue], [20.20077662, 2, 4.106360672e-5])


def test_labelled_cells_left_out(regions: DomainShares) -> None:
    found = leave_out(regions.tables, Step.DOMAINS, Assumption.CALIBRATION, POSITIVE)
    close(found.errors, [-0.0576801904, 0.001986950573, 0.05456892258])
    close(found.variances, [3.183219021e-3, 1.333715790e-3, 5.851023935e-3])
    close(
        [found.statistic(), found.pvalue, found.allowance],
        [1.557060898, 0.6691646765, 0.0065147102],
    )
    found = leave_out(regions.tables, Step.DOMAINS, Assumption.SHIFT, POSITIVE)
    close(found.errors, [0.1491645975, -0.1211847122, 0.1079892626])
    close(found.variances, [7.660309946e-3, 3.666502964e-3, 8.755439511e-3])
    close(
        [found.statistic(), found.pvalue, found.allowance],
        [8.241906935, 0.04126803259, 0.07649694741],
    )


def test_change_into_a_month_without_labels() -> None:
    """The allowance is left out, because one month cannot be checked."""
    cells = (
        (("a", 1), A, [300, 220, 180, 300]),
        (("a", 2), NONE, [250, 230, 200, 320]),
        (("b", 1), B, [500, 250, 150, 100]),
        (("c", 1), C, [50, 20, 20, 10]),
    )
    months = tables(*cells, columns=("region", "month"))
    assert math.isnan(change(DomainShares(months), ("a", 1), ("a", 2)).value)
    found = change(DomainShares(months, Assumption.CALIBRATION), ("a", 1), ("a", 2))
    close([found.value, found.standard_error], [0.02891319909, 0.01515677212])


def test_the_allowance_of_a_month_without_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vector takes the allowance of another table."""
    months = tables(
        (("a", 1), A, [300, 220, 180, 300]),
        (("a", 2), NONE, [250, 230, 200, 320]),
        (("b", 1), B, [500, 250, 150, 100]),
        (("c", 1), C, [50, 20, 20, 10]),
        columns=("region", "month"),
    )
    monkeypatch.setattr(
        DomainShares, "allowance", lambda _, cell, *_rest: 0.0065147102 * (cell == 1)
    )
    shares = DomainShares(months, Assumption.CALIBRATION)
    close(change(shares, ("a", 1), ("a", 2)).standard_error, 0.08212452704)
    found = shares.cells[1]
    close([found.own_share.low, found.own_share.high], [0.3022468538, 0.6334007000])


def test_allowances_add_in_a_total_and_half_cancels_in_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    months = tables(
        (("a", 1), A, [300, 220, 180, 300]),
        (("a", 2), NONE, [250, 230, 200, 320]),
        (("a", 3), NONE, [250, 230, 200, 320]),
        columns=("region", "month"),
    )
    second = ("a", 2)
    third = ("a", 3)
    plain = DomainShares(months, Assumption.CALIBRATION)
    errors = [
        change(plain, second, third).standard_error,
        total(plain, [second, third]).standard_error,
    ]
    monkeypatch.setattr(DomainShares, "allowance", lambda *_: 0.01)
    allowed = DomainShares(months, Assumption.CALIBRATION)
    added = change(allowed, second, third).standard_error ** 2 - errors[0] ** 2
    close(added, 0.01)  # of two allowances, one remains
    added = total(allowed, [second, third]).standard_error ** 2 - errors[1] ** 2
    close(added, (2 * 1000 * 0.1) ** 2)


COUNTS = ([140, 40, 16, 4], [2, 8, 30, 60])
FIRST = ("x", 1)
SECOND = ("x", 2)


@pytest.fixture(scope="module")
def shifted() -> DomainShares:
    cells = (
        (("y", 1), COUNTS, [1, 1, 1, 1]),
        (FIRST, NONE, [1300, 420, 190, 90]),
        (SECOND, NONE, [1180, 430, 240, 150]),
    )
    return DomainShares(tables(*cells, columns=("region", "month")), Assumption.SHIFT)


def test_shift_from_one_labelled_set(shifted: DomainShares) -> None:
    shares = [cell.share.value for cell in shifted.cells[1:]]
    printed(shares, [0.0424163214, 0.1056331081])
    found = change(shifted, FIRST, SECOND)
    printed([found.value, found.standard_error], [0.0632167867, 0.0133531425])
    printed(change(shifted, FIRST, SECOND, own=True).standard_error, 0.0105242790)
    growth = ratio(shifted, FIRST, SECOND)
    close([growth.value, growth.low, growth.high], [2.490388243, 1.591910739, 15.48196005])
    found = total(shifted, [FIRST, SECOND])
    close([found.value, found.standard_error], [296.0988589, 73.2745876])
    assert list(changes(shifted)) == [(FIRST, SECOND)]
    close(no_change(shifted).statistic, 22.41289051)


def test_scores_of_three_classes() -> None:
    e = np.array([[20, 6, 2], [8, 15, 7], [2, 5, 25]]).T
    f = np.array([[15, 4, 1], [5, 9, 6], [1, 4, 12]]).T
    shares = DomainShares(tables((("e",), e, [300, 350, 350]), (("f",), f, [500, 300, 200])))
    found = score(shares, NPS, [("e",)])
    close([found.value, found.standard_error], [0.04792275187, 0.06980958257])
    difference = change(shares, ("e",), ("f",), NPS)
    close([difference.value, difference.standard_error], [-0.2472027121, 0.1121806990])
    both = combination(shares, {("e",): 1, ("f",): 1}, NPS).standard_error ** 2
    close((both - difference.standard_error**2) / 4, -3.374610259e-5)
    close(
        [cell.share.value for cell in shares.cells[:3]], [0.3293080171, 0.2934612140, 0.377230769]
    )


def test_shift_of_three_classes() -> None:
    """The shares of more than two classes are found by iterations that stop within 2e-9."""
    labelled = [[40, 12, 6, 2], [5, 30, 20, 5], [2, 8, 12, 38]]
    none = np.zeros((3, 4))
    cells = (
        (("y", 1), labelled, [1, 1, 1, 1]),
        (FIRST, none, [300, 250, 250, 200]),
        (SECOND, none, [240, 240, 260, 260]),
    )
    shares = DomainShares(tables(*cells, columns=("region", "month")), Assumption.SHIFT)
    second = [cell.share.value for cell in shares.cells[6:]]
    printed(second, [0.2953873470, 0.3375618488, 0.3670508041], 2e-9)
    scores = [score(shares, NPS, [key], own) for key in (FIRST, SECOND) for own in (False, True)]
    printed([found.value for found in scores[::2]], [-0.1296717255, 0.0716634571], 2e-9)
    errors = [0.0722710918, 0.0677494336, 0.0723485111, 0.0676535627]
    printed([found.standard_error for found in scores], errors, 2e-9)
    found = change(shares, FIRST, SECOND, NPS)
    printed([found.value, found.standard_error], [0.2013351826, 0.0542278085], 2e-9)
    printed(change(shares, FIRST, SECOND, NPS, own=True).standard_error, 0.0406229955, 2e-9)


def test_growth_may_be_open_above() -> None:
    # The middle number is the covariance with the negative denominator.
    variances = (6e-5, -5e-5, 6.4e-5)
    low, high = ratio_interval(0.03, 0.0102, variances, 1.959963984540054)
    close(low, 1.513204612)
    assert high == math.inf
    assert ratio_interval(0.0131, 0.0102, variances, 1.959963984540054) == (0, math.inf)
