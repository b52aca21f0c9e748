"""The rule that gives each cell its number, on rows that are counted into tables."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmtrack import estimate_prevalence
from cmtrack.prevalence.domains import (
    Assumption,
    CellCounts,
    DomainShares,
    DomainTables,
    Source,
    Step,
    change,
    changes,
    no_change,
    score,
    tabulate,
    total,
)

KEYS = tuple(product(("north", "east", "south"), (2017, 2018)))
COLUMNS = ("region", "year")


class World:
    """Rows of cells: the share of each domain, and the scores of each class."""

    def __init__(self, shares: list[float], seed: int = 0) -> None:
        self.shares = shares
        self.rng = np.random.default_rng(seed)

    def rows(self, sizes: list[int]) -> CellCounts:
        cells = np.repeat(np.arange(len(sizes)), sizes)
        chance = np.array(self.shares)[cells // (len(sizes) // len(self.shares))]
        classes = (self.rng.random(len(cells)) < chance).astype(np.int64)
        scores = 1 / (1 + np.exp(-self.rng.normal(2 * classes - 1, 1.2)))
        return CellCounts.from_rows(cells, classes, scores.round(3))


def as_target(rows: CellCounts) -> CellCounts:
    return replace(rows, classes=np.zeros_like(rows.classes))


def tables_of(labelled: CellCounts, target: CellCounts) -> DomainTables:
    return tabulate(COLUMNS, KEYS, labelled, as_target(target))


def example(sizes: list[int], shares: list[float], seed: int = 0) -> DomainTables:
    world = World(shares, seed)
    return tables_of(world.rows(sizes), world.rows([800] * 6))


SPREAD = [0.2, 0.5, 0.75]
BOTH_YEARS = [300, 200, 300, 200, 300, 200]
FIRST_YEAR = [300, 0, 300, 0, 300, 0]


def test_own_rows_need_no_assumption():
    shares = DomainShares(example(BOTH_YEARS, SPREAD))
    assert [cell.basis.source for cell in shares.cells] == [Source.OWN_ROWS] * 6
    rows = 150  # about this many give a half-width of 5 points
    for cell, truth in zip(shares.cells, np.repeat(SPREAD, 2), strict=True):
        assert cell.share.low < truth < cell.share.high
        assert cell.own_share.value == cell.share.value == cell.calibration.value
        assert cell.rows_needed == pytest.approx(max(rows - cell.labelled, 0), abs=60)
    assert len(changes(shares)) == 3
    assert no_change(shares).degrees == 3
    assert total(shares).low < 800 * 2 * sum(SPREAD) < total(shares).high


def test_one_labelled_period_checks_no_change_over_periods():
    tables = example(FIRST_YEAR, SPREAD)
    cells = DomainShares(tables).cells
    assert [cell.basis.source for cell in cells] == [Source.OWN_ROWS, Source.NONE] * 3
    for cell in cells[1::2]:
        assert math.isnan(cell.share.value)
        assert math.isnan(cell.share.low)
        assert cell.why.startswith(
            "no labelled rows; cells with 20 labelled rows have only one value of year"
        )
        assert math.isfinite(cell.shift.value)
        assert math.isfinite(cell.calibration.value)
    for assumption in Assumption:
        forced = DomainShares(tables, assumption).cells[1::2]
        assert all(
            cell.why == f"{assumption} is assumed as requested; not checked" for cell in forced
        )
        assert all(cell.share == getattr(cell, assumption.value) for cell in forced)
    with_calibration = DomainShares(tables, Assumption.CALIBRATION)
    assert math.isfinite(change(with_calibration, KEYS[0], KEYS[1]).value)
    unstated = change(DomainShares(tables), KEYS[0], KEYS[1])
    assert math.isnan(unstated.value)
    assert unstated.why.startswith("north 2018: no labelled rows")


def test_a_period_step_adds_the_allowance():
    sizes = [300, 300, 300, 300, 300, 0]
    shares = DomainShares(example(sizes, SPREAD))
    cell = shares.cells[5]
    assert cell.basis.steps == (Step.PERIODS,)
    assert cell.basis.source is Source.OTHER_PERIODS
    assert cell.share.low < 0.75 < cell.share.high
    values = np.array([0.0, 1.0])
    allowance = shares.allowance(5, cell.basis.assumption, values)
    assert allowance == shares.check(Step.PERIODS, cell.basis.assumption, values).allowance
    plain = getattr(cell, cell.basis.assumption.value)
    assert cell.share.high - cell.share.low >= plain.high - plain.low


def test_prior_shift_between_domains_refuses_calibration():
    """The domain without labelled rows differs from the others in its share only."""
    keys = tuple((name,) for name in "abcde")
    world = World([0.1, 0.35, 0.65, 0.9, 0.5])
    labelled = world.rows([600, 600, 600, 600, 0])
    tables = tabulate(("region",), keys, labelled, as_target(world.rows([2000] * 5)))
    cell = DomainShares(tables).cells[4]
    assert cell.basis.source is Source.OTHER_DOMAINS
    assert cell.basis.assumption is Assumption.SHIFT
    assert cell.share.low < 0.5 < cell.share.high


def test_imprecise_estimates_by_shift_do_not_win_because_nothing_refuses_them():
    """A weak model whose scores differ between the domains: shift is far off, but imprecise."""
    keys = tuple((name,) for name in "abcdef")
    shares = [0.3, 0.4, 0.5, 0.6, 0.7, 0.5]
    offsets = [0.1, -0.1, 0.1, -0.1, 0.1, 0.15]

    def rows(n: list[int], seed: int) -> CellCounts:
        rng = np.random.default_rng(seed)
        cells = np.repeat(np.arange(6), n)
        classes = (rng.random(len(cells)) < np.array(shares)[cells]).astype(np.int64)
        scores = rng.normal(0.3 * classes + np.array(offsets)[cells])
        return CellCounts.from_rows(cells, classes, scores.round(2))

    tables = tabulate(("site",), keys, rows([80] * 5 + [0], 0), as_target(rows([2000] * 6, 1)))
    found = DomainShares(tables)
    checks = [found.check(Step.DOMAINS, one, np.array([0.0, 1.0])) for one in Assumption]
    pvalues = dict(zip(Assumption, [check.pvalue for check in checks], strict=True))
    allowances = dict(zip(Assumption, [check.allowance for check in checks], strict=True))
    assert pvalues[Assumption.CALIBRATION] < 0.01 <= pvalues[Assumption.SHIFT]
    assert allowances[Assumption.CALIBRATION] < allowances[Assumption.SHIFT]
    cell = found.cells[5]
    assert cell.basis.assumption is Assumption.CALIBRATION
    assert cell.share.low < 0.5 < cell.share.high


def test_an_assumption_that_fails_between_domains_is_not_used_over_periods():
    """The scores are calibrated: shift fails between the regions, but not over the months."""
    rng = np.random.default_rng(11)
    keys = tuple(product("abc", (1, 2, 3, 4)))

    def rows(sizes: list[int]) -> CellCounts:
        cells = np.repeat(np.arange(12), sizes)
        offset = np.repeat([-1.3, 0.0, 1.3], 4)[cells]
        chances = 1 / (1 + np.exp(-(rng.normal(size=len(cells)) + offset)))
        classes = (rng.random(len(cells)) < chances).astype(np.int64)
        return CellCounts.from_rows(cells, classes, chances.round(3))

    tables = tabulate(COLUMNS, keys, rows([150, 150, 150, 0] * 3), as_target(rows([500] * 12)))
    shares = DomainShares(tables)
    values = np.array([0.0, 1.0])
    assert shares.check(Step.DOMAINS, Assumption.SHIFT, values).pvalue < 0.01
    by_shift, by_calibration = (
        shares.check(Step.PERIODS, one, values).allowance for one in Assumption
    )
    assert by_shift < by_calibration
    for cell in shares.cells[3::4]:
        assert cell.basis.steps == (Step.PERIODS,)
        assert cell.basis.assumption is Assumption.CALIBRATION


def test_domains_that_differ_in_nothing_leave_both_assumptions():
    keys = tuple((name,) for name in "abcde")
    world = World([0.4] * 5)
    labelled = world.rows([300, 300, 300, 300, 0])
    tables = tabulate(("region",), keys, labelled, as_target(world.rows([2000] * 5)))
    cell = DomainShares(tables).cells[4]
    assert cell.basis.source is Source.UNDECIDED
    assert math.isnan(cell.share.value)
    assert cell.share.low <= min(cell.shift.low, cell.calibration.low)
    assert cell.share.high >= max(cell.shift.high, cell.calibration.high)
    assert "if classes look the same" in cell.why


def test_equal_shares_under_both_assumptions_ask_for_no_labelled_rows():
    keys = tuple((name,) for name in "abcde")
    labelled = np.array([[[40.0, 10.0], [20.0, 30.0]]] * 4 + [[[0.0, 0.0], [0.0, 0.0]]])
    target = np.full((5, 2), 500.0)
    cell = DomainShares(DomainTables.from_bins(("region",), keys, labelled, target)).cells[4]
    assert cell.basis.source is Source.UNDECIDED
    assert cell.why.endswith("; the difference is too small to show which")


def test_a_new_domain_in_a_new_period_takes_both_steps():
    """The two allowances add."""
    keys = tuple(product("abcd", (2017, 2018, 2019)))
    world = World([0.2, 0.4, 0.6, 0.5])
    labelled = world.rows([200, 200, 0] * 3 + [0] * 3)
    tables = tabulate(COLUMNS, keys, labelled, as_target(world.rows([500] * 12)))
    shares = DomainShares(tables, Assumption.CALIBRATION)
    steps = [cell.basis.steps for cell in shares.cells]
    assert steps[9:] == [(Step.DOMAINS,), (Step.DOMAINS,), (Step.DOMAINS, Step.PERIODS)]
    assert steps[2] == (Step.PERIODS,)
    values = np.array([0.0, 1.0])
    parts = [shares.allowance(cell, Assumption.CALIBRATION, values) for cell in (9, 2, 11)]
    assert parts[2] == parts[0] + parts[1]


def test_more_than_two_classes_use_calibration():
    keys = tuple(product("abc", (1, 2)))
    rng = np.random.default_rng(2)

    def rows(sizes: list[int]) -> CellCounts:
        cells = np.repeat(np.arange(6), sizes)
        y = rng.integers(0, 3, len(cells))
        p = np.exp(rng.normal(0, 1, (len(cells), 3)) + 2 * np.eye(3)[y])
        return CellCounts.from_rows(cells, y, p / p.sum(axis=1, keepdims=True))

    labelled = rows([200, 200, 200, 200, 200, 0])
    tables = tabulate(COLUMNS, keys, labelled, as_target(rows([300] * 6)), 3)
    cells = DomainShares(tables).cells[15:]
    assert [cell.basis.assumption for cell in cells] == [Assumption.CALIBRATION] * 3
    assert [cell.basis.source for cell in cells] == [Source.OTHER_PERIODS] * 3
    assert sum(cell.share.value for cell in cells) == pytest.approx(1)
    assert all(cell.share.low < 1 / 3 < cell.share.high for cell in cells)


def test_remarks_about_few_rows():
    world = World(SPREAD)
    labelled = world.rows([100, 100, 100, 100, 100, 24])
    labelled.classes[labelled.cells == 5] = 0
    target = world.rows([800, 800, 800, 800, 800, 25])
    cell = DomainShares(tables_of(labelled, target)).cells[5]
    assert cell.why == "only 25 rows: read the total; all 24 labelled rows belong to one class"
    assert math.isfinite(cell.share.value)


def test_labelled_rows_that_are_no_random_part_of_their_cell():
    world = World(SPREAD)
    labelled = world.rows(BOTH_YEARS)
    target = world.rows([800] * 6)
    assert DomainShares(tables_of(labelled, target)).unlike == []
    high = (labelled.cells == 3) & (labelled.scores > 0.5)
    only_high = labelled.chosen(high | (labelled.cells != 3))
    assert DomainShares(tables_of(only_high, target)).unlike == [KEYS[3]]


def test_cells_without_target_rows_are_not_shown():
    world = World(SPREAD)
    tables = tables_of(world.rows(BOTH_YEARS), world.rows([800, 0, 800, 800, 800, 800]))
    shares = DomainShares(tables)
    assert [cell.key for cell in shares.cells] == [KEYS[0], *KEYS[2:]]
    with pytest.raises(KeyError, match=r"no rows of \('north', 2018\); cells are \('north', 2017"):
        change(shares, KEYS[0], KEYS[1])


@pytest.mark.parametrize("sizes", [FIRST_YEAR, [30, 0, 300, 0, 300, 0]])
def test_shift_is_the_single_estimate(sizes: list[int]):
    """North of the second case has too few rows of a class, so that all labelled rows are used."""
    world = World(SPREAD, 3)
    labelled = world.rows(sizes)
    target = world.rows([400, 900, 400, 900, 400, 900])
    shares = DomainShares(tables_of(labelled, target), Assumption.SHIFT)
    for number, cell in enumerate(shares.cells):
        rows = labelled.cells // 2 == number // 2
        if np.bincount(labelled.classes[rows]).min() < 20:
            rows = np.ones(len(labelled.cells), dtype=bool)
        calibration = (labelled.classes[rows], labelled.scores[rows])
        single = estimate_prevalence(
            target.scores[target.cells == number], calibration=calibration, density="bins"
        )
        assert cell.shift == single.shift
        assert cell.fit_pvalue == pytest.approx(single.fit_pvalue, rel=1e-9)
        if cell.basis.assumption is Assumption.SHIFT:
            assert cell.share == single.shift
            assert cell.own_share.low * cell.n == pytest.approx(single.count_low, rel=1e-12)
            assert cell.own_share.high * cell.n == pytest.approx(single.count_high, rel=1e-12)


def test_shift_of_three_classes_is_the_single_estimate():
    rng = np.random.default_rng(5)

    def draw(size: int, shares: list[float]) -> tuple[np.ndarray, np.ndarray]:
        y = rng.choice(3, size, p=shares)
        p = np.exp(rng.normal(0, 1, (size, 3)) + 2 * np.eye(3)[y])
        return y, p / p.sum(axis=1, keepdims=True)

    y, labelled = draw(600, [0.3, 0.3, 0.4])
    _, target = draw(500, [0.6, 0.2, 0.2])
    tables = tabulate(
        ("region", "month"),
        (("a", 1), ("a", 2)),
        CellCounts.from_rows(np.zeros(600, dtype=int), y, labelled),
        CellCounts.from_rows(np.ones(500, dtype=int), np.zeros(500, dtype=int), target),
        3,
    )
    cells = DomainShares(tables, Assumption.SHIFT).cells
    single = estimate_prevalence(target, calibration=(y, labelled), density="bins")
    assert [cell.k for cell in cells] == [0, 1, 2]
    for cell in cells:
        assert tuple(cell.share) == single.by_class[cell.k]
    assert score(DomainShares(tables, Assumption.SHIFT), np.array([-1.0, 0, 1])).low > -1


@given(seed=st.integers(0, 10), order=st.permutations(range(6)))
@settings(max_examples=5)
def test_the_order_of_cells_and_rows_changes_nothing(seed: int, order: list[int]):
    world = World(SPREAD, seed)
    labelled = world.rows([60, 0, 60, 40, 50, 10])
    target = world.rows([200] * 6)
    first = DomainShares(tables_of(labelled, target))
    place = np.argsort(order)
    moved = [
        replace(rows, cells=place[rows.cells]).chosen(np.random.default_rng(seed).permutation(n))
        for rows, n in ((labelled, len(labelled.cells)), (as_target(target), len(target.cells)))
    ]
    keys = tuple(KEYS[i] for i in order)
    second = DomainShares(tabulate(COLUMNS, keys, *moved))
    by_key = {cell.key: cell for cell in second.cells}
    for cell in first.cells:
        np.testing.assert_allclose(by_key[cell.key].share, cell.share, rtol=1e-9, atol=1e-12)
        assert by_key[cell.key].basis == cell.basis
    wanted = {pair: found.standard_error for pair, found in changes(first).items()}
    assert {pair: found.standard_error for pair, found in changes(second).items()} == pytest.approx(
        wanted, rel=1e-9, nan_ok=True
    )


@given(seed=st.integers(0, 10))
@settings(max_examples=5)
def test_counted_rows_give_the_tables_of_rows(seed: int):
    """Rows are counted in two parts, each by distinct cell, class and score."""
    world = World(SPREAD, seed)
    labelled = world.rows([60, 0, 60, 40, 50, 10])
    target = world.rows([200] * 6)
    parts = np.random.default_rng(seed).random(len(labelled.cells)) < 0.5
    merged = counted(labelled.chosen(parts)) + counted(labelled.chosen(~parts))
    first = tables_of(labelled, target)
    second = tables_of(merged, counted(target))
    assert (first.labelled == second.labelled).all()
    assert (first.target == second.target).all()
    assert (first.bins == second.bins).all()


def counted(rows: CellCounts) -> CellCounts:
    """Return one entry for each distinct cell, class and score."""
    columns = np.stack((rows.cells, rows.classes, rows.scores))
    distinct, counts = np.unique(columns, axis=1, return_counts=True)
    cells, classes, scores = distinct
    return CellCounts(
        cells.astype(np.int64), classes.astype(np.int64), scores, counts.astype(float)
    )


@given(seed=st.integers(0, 10))
@settings(max_examples=5)
def test_a_cell_with_own_rows_does_not_depend_on_other_targets(seed: int):
    """It depends on other labelled rows only through bins and their chances."""
    world = World(SPREAD, seed)
    labelled = world.rows([60, 0, 60, 40, 50, 10])
    target = world.rows([200] * 6)
    others = world.rows([0, 300, 50, 10, 1000, 3])
    first = DomainShares(tables_of(labelled, target)).cells[0]
    changed = target.chosen(target.cells == 0) + others
    second = DomainShares(tables_of(labelled, changed)).cells[0]
    np.testing.assert_allclose(first.share, second.share, rtol=1e-12)
    np.testing.assert_allclose(first.own_share, second.own_share, rtol=1e-12)
