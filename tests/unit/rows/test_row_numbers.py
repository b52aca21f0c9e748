"""Numbers on rows across runs: vectors of independent programs, and brute force on small problems."""

from __future__ import annotations

import itertools
import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from cmtrack import Costs, compare, evaluate
from cmtrack.comparison import Comparison
from cmtrack.metrics.intervals import exact_ends
from cmtrack.rows import Flips, Pair, corrected, expected_by_difficulty, transitions
from cmtrack.rows.deciding import fewest, fewest_by_moves, fewest_to_tie, probability_of_any_row
from cmtrack.rows.flips import unlike_pvalue

CODES = tuple(np.array(list(map(int, text))) for text in ("0001122210", "0011120220", "0201022111"))


def flipped(n: tuple[int, ...], broken: tuple[int, ...], fixed: tuple[int, ...], parts: bool = False) -> Flips:
    """Flips of parts of n rows, of which so many are broken and fixed."""
    marks = []
    for rows, b, f in zip(n, broken, fixed, strict=True):
        marks.append(np.repeat([[1, 0], [0, 1], [1, 1]], (b, f, rows - b - f), axis=0))
    first, second = np.concatenate(marks).astype(bool).T
    part = (tuple("abcd"), np.repeat(np.arange(4), n)) if parts else None
    return Flips.of(first, second, first != second, part)


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
    assert frame["broken_low"].tolist() == pytest.approx([0, 0.0029575, 0.0000348, 0.0197365], abs=1e-7)
    assert frame["broken_high"].tolist() == pytest.approx([0.0916620, 0.0647298, 0.0851154, 0.1332520], abs=1e-7)
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


@given(
    st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.sampled_from([0.8, 0.95, 0.999])
)
def test_exact_ends_leave_half_of_alpha_on_each_side(of: tuple[int, int], level: float) -> None:
    hits, n = of
    low, high = (float(end) for end in exact_ends(hits, n, level))
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
    twice = Flips.of(*(np.tile(c, 2) for c in (first, second, first != second)), None, None, np.tile(np.arange(300), 2))
    for name in ("broken", "fixed"):
        assert twice.rates[name][0] == pytest.approx(rows.rates[name][0])
        assert [end[0] for end in twice.rates[name][1:]] == pytest.approx(
            [end[0] for end in rows.rates[name][1:]], abs=2e-4
        )
    assert twice.alone[0] == pytest.approx(rows.alone[0], abs=0.02)


# -- wrong labels that would decide ----------------------------------------------------------------------------


def of_counts(a: int, b: int, w: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    y = np.zeros(a + b + w, dtype=np.int64)
    return y, np.repeat([0, 1, 1], (a, b, w)), np.repeat([1, 0, 2], (a, b, w))


def of_runs(a: int, b: int, w: int) -> Comparison:
    y, *answers = of_counts(a, b, w)
    runs = {name: evaluate(y, answer, labels=range(4)) for name, answer in zip("AB", answers, strict=True)}
    return compare(runs, rank_by="multiclass/accuracy")


def test_corrected_lead_and_its_probability() -> None:
    found = corrected(*of_counts(12, 9, 3), transitions(0.05, 4))
    assert found.value == pytest.approx(3.2142857143, abs=1e-10)
    assert (found.variance, found.probability) == pytest.approx((2.4642857143, 0.0203010316), abs=1e-10)
    assert probability_of_any_row(12, 9, 3, 0.05, 4) == pytest.approx(0.0268577419, abs=1e-10)
    given = [[0.98, 0.01, 0.01], [0.02, 0.96, 0.02], [0.05, 0.15, 0.80]]
    found = corrected(*CODES, transitions(given, 3))
    numbers = found.value, found.variance, found.probability
    assert numbers == pytest.approx((1.1633960753, 1.9768922725, 0.2039940846), abs=1e-10)


def test_order_tie_and_leaning_of_accuracy() -> None:
    deciding = of_runs(12, 9, 3).deciding("B", "A", noise=0.05)
    assert (deciding.leader, deciding.order, deciding.follow, deciding.exact) == ("A", 2, 0.125, True)
    assert (deciding.corrected, deciding.probability) == pytest.approx((3.2142857143, 0.0203010316), abs=1e-10)
    assert fewest_to_tie(60, 30) == 6
    deciding = of_runs(60, 30, 10).deciding("A", "B")
    assert (deciding.order, deciding.tied) == (16, 6)


COSTS = [[0, 1, 4], [2, 0, 1], [6, 2, 0]]
PRICED = Costs.from_dict({"costs": [[i, j, COSTS[i][j]] for i in range(3) for j in range(3) if i != j]})


def test_order_of_a_cost() -> None:
    y, a, b = (np.array(list(map(int, text))) for text in ("00112201", "00112211", "02102112"))
    runs = {"A": evaluate(y, a, costs=PRICED), "B": evaluate(y, b, costs=PRICED)}
    deciding = compare(runs, rank_by="cost/mean").deciding("A", "B", metric="cost/mean")
    assert (deciding.order, deciding.exact) == (1, True)
    assert fewest([0, 10, 0, 3, 0, 5, 0, 3], 9) == 1
    gap = runs["B"].metrics["cost/mean"] - runs["A"].metrics["cost/mean"]
    assert gap * len(y) == pytest.approx(9)


TYPES = "000:20 001:5 010:2 111:14 110:3 101:2 121:1 222:8 221:3 212:1 211:2 011:1"


@pytest.mark.parametrize(
    ("metric", "values", "labels"),
    [
        ("multiclass/f1_macro", (0.8486474766, 0.7737102361), 2),
        ("multiclass/matthews_corrcoef", (0.7753848854, 0.6601969951), 3),
    ],
)
def test_order_of_a_metric_of_matrices(metric: str, values: tuple[float, float], labels: int) -> None:
    rows = [(kind, int(number)) for kind, number in (text.split(":") for text in TYPES.split())]
    y, a, b = np.repeat([list(map(int, kind)) for kind, _ in rows], [number for _, number in rows], axis=0).T
    runs = {"A": evaluate(y, a), "B": evaluate(y, b)}
    assert [run.metrics[metric] for run in runs.values()] == pytest.approx(values, abs=1e-10)
    deciding = compare(runs, rank_by=metric).deciding("A", "B", metric=metric)
    assert (deciding.order, deciding.exact, deciding.tied) == (labels, False, None)
    assert f"at most {labels} labels are wrong" in deciding.sentence


def relabelled(y: np.ndarray, size: int, most: int):
    """All ways of giving up to so many rows other labels, with their number."""
    for k in range(1, most + 1):
        for places in itertools.combinations(range(len(y)), k):
            for labels in itertools.product(range(size), repeat=k):
                other = y.copy()
                other[list(places)] = labels
                yield k, other


def brute(y: np.ndarray, lead, most: int) -> int | None:
    """Fewest labels after which the lead is negative."""
    return next((k for k, other in relabelled(y, 3, most) if lead(other) < -1e-12), None)


MANY = bool(os.environ.get("CMTRACK_TEST_ALL"))


@pytest.mark.parametrize("seed", range(125 if MANY else 8))
def test_fewest_labels_of_additive_metrics_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y, a, b = rng.integers(0, 3, (3, 6))
    costs = np.array(COSTS, dtype=np.float64)
    p, q = rng.dirichlet(np.ones(3), (2, 6))
    leads = {
        "multiclass/accuracy": lambda y: ((a == y).sum() - (b == y).sum()) / 6,
        "cost/mean": lambda y: (costs[y, b] - costs[y, a]).sum(),
        "probability/brier": lambda y: ((q - np.eye(3)[y]) ** 2).sum() - ((p - np.eye(3)[y]) ** 2).sum(),
        "probability/log_loss": lambda y: np.log(p[range(6), y]).sum() - np.log(q[range(6), y]).sum(),
    }
    for metric, lead in leads.items():
        scored = metric.startswith("probability")
        sides = [{"y_prob": p}, {"y_prob": q}] if scored else [{"y_pred": a}, {"y_pred": b}]
        runs = [evaluate(y, **side, labels=[0, 1, 2], costs=PRICED) for side in sides]
        deciding = compare(dict(zip("AB", runs, strict=True)), rank_by=metric).deciding("A", "B", metric=metric)
        sign = 1 if deciding.leader == "A" else -1
        expected = brute(y, lambda other, sign=sign, lead=lead: sign * lead(other), 3)
        found = deciding.order
        assert found == expected or (expected is None and (found is None or found > 3)), (metric, seed)


def test_greedy_moves_are_the_fewest_by_brute_force() -> None:
    for seed in range(90 if MANY else 12):
        rng = np.random.default_rng(seed)
        y = rng.integers(0, 3, 12)
        a, b = (np.where(rng.random(12) < 0.6, y, rng.integers(0, 3, 12)) for _ in range(2))

        def kappa(table: np.ndarray) -> float:
            total, chance = table.sum(), table.sum(0) @ table.sum(1) / table.sum() ** 2
            return float((np.trace(table) / total - chance) / (1 - chance)) if chance < 1 else math.nan

        def table_of(y: np.ndarray, answer: np.ndarray) -> np.ndarray:
            return np.bincount(3 * y + answer, minlength=9).reshape(3, 3).astype(float)

        if kappa(table_of(y, a)) < kappa(table_of(y, b)):
            a, b = b, a
        types, counts = np.unique(np.column_stack((y, a, b)), axis=0, return_counts=True)
        found = fewest_by_moves(types, counts, 3, lambda one, two: kappa(one) - kappa(two))
        best = brute(y, lambda other, a=a, b=b: kappa(table_of(other, a)) - kappa(table_of(other, b)), 2)
        assert found is None or best is None or found >= best
        assert best != 1 or found == 1
        if best == 2:
            assert found == 2, seed


@settings(max_examples=50)
@given(st.integers(0, 60), st.integers(0, 60))
def test_labels_that_tie_are_the_fewest(a: int, b: int) -> None:
    from cmtrack.comparison import mcnemar

    k = fewest_to_tie(max(a, b), min(a, b))
    a, b = max(a, b), min(a, b)
    assert not mcnemar(a - k, b + k).midp_pvalue <= 0.05
    assert k == 0 or mcnemar(a - k + 1, b + k - 1).midp_pvalue <= 0.05


# -- suspects and pairs --------------------------------------------------------------------------------------------


def test_rows_that_difficulty_lets_all_miss() -> None:
    alpha, beta, expected = expected_by_difficulty([800, 90, 40, 25, 18, 12, 30])
    assert (alpha, beta, expected) == pytest.approx((0.118098, 1.573502, 6.065378), abs=1e-6)
    assert expected_by_difficulty([0, 0, 0, 0, 4])[2] == 0.0


def test_two_together() -> None:
    first, second = (np.repeat(right, (780, 60, 40, 20)) == 1 for right in ([1, 0, 1, 0], [1, 1, 0, 0]))
    pair = Pair.of(first, second)
    assert (pair.both, pair.only_first, pair.only_second, pair.neither) == (780, 40, 60, 20)
    assert (pair.either, *pair.either_ends) == pytest.approx((0.9777777778, 0.9659251204, 0.9855691839), abs=1e-10)
    assert (pair.kappa, pair.kappa_error) == pytest.approx((0.2268041237, 0.0523644023), abs=1e-10)
    assert pair.gain_ends == pytest.approx((0.0319385, 0.0600316), abs=1e-7)
    alike = Pair.of(*(np.tile(c, 2) for c in (first, second)), clusters=np.tile(np.arange(900), 2))
    assert alike.kappa_error == pytest.approx(pair.kappa_error, rel=2e-3)
    assert alike.either_ends == pytest.approx(pair.either_ends, abs=1e-4)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (0.9, "rate from 0 to below 0.6667"),
        ([[1, 0], [0, 1]], "matrix of shape (3, 3)"),
        (np.full((3, 3), 1 / 3), "inverse"),
        ("x", "a rate or a matrix of numbers, got 'x'"),
    ],
)
def test_noise_that_says_nothing(noise: object, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(").replace(")", r"\)")):
        transitions(noise, 3)
