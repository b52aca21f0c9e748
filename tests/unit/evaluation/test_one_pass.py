"""The fast ways through the rows against plain ones: labels, pairs, probabilities, moments, scores."""

from __future__ import annotations

import operator
from functools import reduce
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix

from cmtrack import ConfusionMatrix, Grouping, evaluate
from cmtrack.statistics import ScoreCounts, ScoreMoments, grid, scores, top_scores
from cmtrack.statistics.counting import count_integer_pairs
from cmtrack.statistics.factorize import number_fixed_width
from cmtrack.statistics.moments import ClassBlock, CrossMoments, features_of, products
from cmtrack.statistics.scores import ScoreTally
from support.problems import random_problem

RNG = np.random.default_rng(5)


# -- labels and pairs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
@pytest.mark.parametrize(("low", "classes"), [(0, 2), (0, 13), (0, 14), (3, 11), (0, 100)])
def test_integer_pairs_are_counted_as_scikit_learn_does(dtype: Any, low: int, classes: int) -> None:
    y, p = (RNG.integers(low, low + classes, 20_001).astype(dtype) for _ in range(2))
    found = ConfusionMatrix.from_predictions(y, p)
    assert found.counts.tolist() == confusion_matrix(y, p).tolist()
    assert found.labels == tuple(range(low, low + classes))
    mixed = ConfusionMatrix.from_predictions(y.astype(np.int64), p)
    assert mixed == found


@given(
    pairs=st.lists(st.tuples(st.integers(-5, 20), st.integers(-5, 20)), min_size=1, max_size=200),
    far=st.lists(st.integers(-3000, 3000), max_size=3),
)
@settings(max_examples=200, deadline=None)
def test_the_range_is_found_on_the_way(pairs: list[tuple[int, int]], far: list[int]) -> None:
    rows = [*pairs, *((value, 0) for value in far)]
    a, b = np.array(rows).T.copy()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cmtrack.statistics.counting._LONG_BLOCK", 7)
        found = count_integer_pairs(a, b)
    if found is None:
        assert max(a.max(), b.max()) - min(a.min(), b.min()) >= 2048
        return
    low, table = found
    expected = np.zeros_like(table)
    np.add.at(expected, (a - low, b - low), 1)
    assert np.array_equal(table, expected)


@pytest.mark.parametrize(
    "y",
    [
        np.array([0, 5_000, 5_000, 0]),
        np.array([0, 3_000_000, 0, 3_000_000]),
        np.array([-(1 << 60), 1 << 60, 1 << 60, -(1 << 60)]),
        np.array([1, (1 << 64) - 1, 1, (1 << 64) - 1], dtype=np.uint64),
    ],
)
def test_integers_far_apart(y: np.ndarray) -> None:
    p = y[[0, 1, 1, 1]]
    assert (
        ConfusionMatrix.from_predictions(y, p).counts.tolist()
        == confusion_matrix(y, p, labels=np.unique(y)).tolist()
    )


def test_sorted_labels_widen_the_table() -> None:
    y = np.repeat(np.arange(40), 10_000)
    assert (
        ConfusionMatrix.from_predictions(y, y[::-1]).counts.tolist()
        == confusion_matrix(y, y[::-1]).tolist()
    )


def test_integers_are_not_copied() -> None:
    y, p = np.array([0, 1, 2, 1]), np.array([0, 1, 1, 1])
    rows = evaluate(y, p).rows
    assert rows is not None
    assert rows.actual_codes.raw is y
    assert np.shares_memory(rows.actual, y)
    category = pd.Series(["a", "b", "a"], dtype="category")
    rows = evaluate(category, category).rows
    assert rows is not None
    assert rows.actual_codes.raw.dtype == np.int8


@pytest.mark.parametrize("kind", ["U", "S", "object", "str", "category"])
def test_strings_are_numbered_alike(kind: str) -> None:
    names = np.array(
        ["", "b", "bb", "long name " * 4, "ä", "日本"]
        if kind != "S"
        else [b"", b"a", b"abc", b"abcdefg"]
    )
    y, p = names[RNG.integers(0, len(names), 40_000)], names[RNG.integers(0, len(names), 40_000)]
    expected = confusion_matrix(*(np.searchsorted(np.sort(names), one) for one in (y, p)))
    given = {"U": lambda a: a, "S": lambda a: a, "object": lambda a: a.astype(object)}.get(
        kind, lambda a: pd.Series(a.astype(object)).astype(kind)
    )
    found = ConfusionMatrix.from_predictions(given(y), given(p), labels=np.sort(names).tolist())
    assert found.counts.tolist() == expected.tolist()


@given(st.lists(st.text(max_size=6), min_size=1, max_size=120))
@settings(max_examples=200, deadline=None)
def test_fixed_width_strings(texts: list[str]) -> None:
    array = np.array(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cmtrack.statistics.factorize._BLOCK", 8)
        found = number_fixed_width(array)
    assert found is not None
    codes, distinct = found
    assert [distinct[code] for code in codes] == array.tolist()
    assert distinct == list(dict.fromkeys(array.tolist()))


@pytest.mark.slow
def test_many_strings_and_strings_of_one_hash_go_the_long_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = np.array([f"class {i}" for i in range(1000)])
    assert number_fixed_width(many) is None
    assert evaluate(many, many).metrics["multiclass/accuracy"] == 1
    monkeypatch.setattr("cmtrack.statistics.factorize._MIX", np.uint64(0))  # every hash in one slot
    two = np.array(["a", "b", "a"])
    assert number_fixed_width(two) is None
    assert evaluate(two, two[[0, 0, 0]]).confusion_matrix.counts.tolist() == [[2, 0], [1, 0]]


# -- moments -----------------------------------------------------------------------------------------------


def weights_of(kind: str, n: int) -> Any:
    return {"no": None, "whole": RNG.integers(0, 3, n), "fractions": RNG.random(n)}[kind]


def products_of(y: np.ndarray, s: np.ndarray, classes: int, w: Any) -> np.ndarray:
    block = ClassBlock.sort(y, classes, w)
    features = np.ones((2 * s.shape[1] + 1, len(y)))
    features[1 : s.shape[1] + 1] = s.T.take(block.order, axis=1)
    return CrossMoments.of_products(block, *products(block, features)).sums


@pytest.mark.parametrize("kind", ["no", "whole", "fractions"])
@pytest.mark.parametrize(
    ("classes", "spread", "around"), [(2, 0.3, 0.3), (5, 1e-4, 0.999), (70, 0.5, 0.0)]
)
def test_moments_and_products_are_those_of_long_doubles(
    kind: str, classes: int, spread: float, around: float
) -> None:
    n = 90_000
    y, s, w = (
        RNG.integers(0, classes - 1, n),
        around + spread * RNG.random((n, 3)),
        weights_of(kind, n),
    )
    s[:, 1] = around  # a score that does not vary
    found = ScoreMoments.from_scores(y, s, classes, w)
    crossed = sum(
        products_of(y[i], s[i], classes, None if w is None else w[i])
        for i in np.split(np.arange(n), 4)
    )
    weight = np.ones(n) if w is None else w
    for k in range(classes):
        own = y == k
        if k == classes - 1:
            assert found.n[k] == 0
            assert not found.mean[k].any()
            continue
        x, v = s[own].astype(np.longdouble), weight[own].astype(np.longdouble)[:, None]
        mean = (x * v).sum(axis=0) / v.sum()
        assert found.n[k] == pytest.approx(float(v.sum()), rel=1e-12)
        assert found.mean[k] == pytest.approx(mean.astype(float), rel=1e-14)
        for power in (2, 3, 4):
            expected, scale = ((v * f((x - mean)) ** power).sum(axis=0) for f in (lambda d: d, abs))
            error = np.abs(getattr(found, f"m{power}")[k] - expected)
            assert (error[[0, 2]] <= 1e-11 * scale[[0, 2]]).all()
        assert found.m2[k, 1] == found.m3[k, 1] == found.m4[k, 1] == 0
        assert found.mean[k, 1] == around
        features = features_of(s[own])
        expected = features.T @ (features * weight[own][:, None])
        assert crossed[k] == pytest.approx(expected, rel=1e-9, abs=1e-9 * np.abs(expected).max())


# -- scores ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["no", "whole", "fractions"])
def test_scores_are_counted_exactly_and_by_cell(kind: str) -> None:
    n = 5_000
    s = np.concatenate(
        (np.round(RNG.random(n - 6), 2), [0.0, -0.0, 1.0, 0.5, np.nextafter(0.5, 0), 5e-324])
    )
    channel, w = RNG.integers(0, 4, n), weights_of(kind, n)
    values, place = np.unique(s, return_inverse=True)
    expected = np.zeros((4, len(values)))
    np.add.at(expected, (channel, place), 1 if w is None else w)

    def tally(limit: int, *parts: slice) -> ScoreCounts:
        tallies = [ScoreTally(1, 4, limit) for _ in parts]
        for one, part in zip(tallies, parts, strict=True):
            one.add(s[None, part], channel[part], None if w is None else w[part])
        return reduce(operator.add, tallies).result()

    exact = tally(n, slice(n))
    assert np.array_equal(exact.values, values)
    assert exact.counts == pytest.approx(expected, rel=1e-12)
    assert not np.signbit(exact.values).any()
    for parts in ([slice(n)], [slice(2000), slice(2000, n)], [slice(2000, n), slice(2000)]):
        cells = tally(2000, *parts)
        assert not cells.exact  # 0.5 and its neighbour below are in two cells, 0 and 5e-324 in one
        assert cells.counts == pytest.approx(exact.to_grid().counts, rel=1e-12)
        assert cells.sums == pytest.approx(exact.to_grid().sums, abs=1e-10)
        held = cells.counts.sum(axis=0) > 0
        number = grid.cells_of(s)
        weight = np.ones(n) if w is None else w
        means = np.bincount(number, s * weight)[held] / np.bincount(number, weight)[held]
        assert cells.means[held] == pytest.approx(means, rel=1e-12, abs=1e-12)
    rounded = np.round(s, 2)
    alone = ScoreTally(1, 1, 0)
    alone.add(rounded[None], np.zeros(n, dtype=np.int8), w)
    assert alone.result().exact  # no cell holds two
    assert np.array_equal(alone.result().values, np.unique(rounded))


def test_cells_are_those_of_a_search_in_the_edges() -> None:
    edges = grid.grid_edges()
    near = [np.nextafter(edges, 0), edges, np.nextafter(edges, 1), [0.0, 1.0, 5e-324, 1 - 2.0**-53]]
    s = np.concatenate(
        [*near, RNG.random(50_000), RNG.random(50_000) ** 20, 1 - RNG.random(50_000) ** 20]
    )
    assert np.array_equal(grid.cells_of(s), np.searchsorted(edges, s, side="right"))


GROUPED = [
    None,
    Grouping({"low": range(3), "high": range(3, 7)}),
    Grouping({"low": range(3), "high": range(3, 7)}, mode="strict"),
    Grouping(
        {"low": range(5), "high": range(5, 7)}, mode={"low": [(0, 1), (2, 4)], "high": "strict"}
    ),
]


@pytest.mark.parametrize("kind", ["no", "whole", "fractions"])
@pytest.mark.parametrize("grouping", GROUPED)
def test_blocks_threads_and_rows_in_another_order_change_nothing(
    grouping: Grouping | None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, _, p = random_problem(RNG, 3_000, 7)
    w = weights_of(kind, len(y))
    whole = evaluate(y, y_prob=p, grouping=grouping, sample_weight=w)
    monkeypatch.setattr("cmtrack.statistics.probabilities.Probabilities.block_rows", 100)
    monkeypatch.setattr(top_scores, "_MOST_CODES", 1)
    pieces = evaluate(y, y_prob=p, grouping=grouping, sample_weight=w)
    turned = evaluate(
        y[::-1],
        y_prob={k: p[::-1, k] for k in range(7)},
        grouping=grouping,
        sample_weight=None if w is None else w[::-1],
    )
    for other in (pieces, turned):
        for name, value in whole.metrics.items():
            assert other.metrics[name] == pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True), (
                name
            )
        if kind != "fractions":
            assert other.statistics.scores == whole.statistics.scores
            assert other.statistics.tops == whole.statistics.tops
            assert other.confusion_matrix == whole.confusion_matrix


def test_predictions_are_the_first_maximum() -> None:
    y, _, p = random_problem(RNG, 40_000, 5)
    p = np.round(p, 1)
    p[:, 4] = 1 - p[:, :4].sum(axis=1)
    p = np.clip(p, 0, 1)
    keep = np.abs(p.sum(axis=1) - 1) < 1e-9
    rows = evaluate(y[keep], y_prob=p[keep]).rows
    assert rows is not None
    assert np.array_equal(rows.predicted, p[keep].argmax(axis=1))


@pytest.mark.parametrize("change", ["as they are", "beyond 1", "scaled"])
def test_single_precision_is_read_as_it_is(change: str) -> None:
    y, _, p = random_problem(RNG, 5_000, 6)
    p[::7] = np.eye(6)[y[::7]]  # as many are that were rounded
    p = p.astype(np.float32) * np.float32({"beyond 1": 1 + 1e-6, "scaled": 0.99}.get(change, 1))
    for how in (
        {},
        {"grouping": Grouping({"low": range(3), "high": range(3, 6)}), "threshold": 0.4},
    ):
        single, double = (
            evaluate(y, y_prob=one, normalize=True, **how) for one in (p, p.astype(float))
        )
        assert single.statistics.to_plain() == double.statistics.to_plain()
    rows = single.rows
    assert rows is not None
    assert rows.source is not None
    assert rows.source.columns[0].dtype == np.float32


def test_many_rows_are_counted_on_the_grid_within_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    y, _, p = random_problem(RNG, 20_000, 2)
    y = np.where(RNG.random(len(y)) < 0.2, 1 - y, y)
    exact = evaluate(y, y_prob=p)
    monkeypatch.setattr(scores, "EXACT_ROWS", 19_999)
    grid = evaluate(y, y_prob=p)
    assert exact.roc is not None
    assert grid.roc is not None
    assert exact.roc.auc_error_bound == 0 < grid.roc.auc_error_bound < 1e-3
    assert abs(grid.roc.auc - exact.roc.auc) <= grid.roc.auc_error_bound
    rounded = np.round(p[:, 1], 2)
    assert evaluate(y, y_prob=rounded).statistics.scores == scores_of(y, rounded)


def scores_of(y: np.ndarray, s: np.ndarray) -> scores.ScoreCounts:
    return scores.ScoreCounts.from_scores(s, np.where(y == 1, 0, 2), 4, exact=True)


@pytest.mark.parametrize("rows", [5, 30_000])
@pytest.mark.parametrize(
    ("row", "values", "match"),
    [
        (3, [np.nan, 0.5, 0.5], "y_prob must be finite, got nan at row 3"),
        (4, [np.inf, 0.5, 0.5], "y_prob must be finite, got inf at row 4"),
        (-1, [1.2, -0.1, -0.1], r"y_prob must lie in \[0, 1\], got 1.2 at row"),
        (2, [0.5, 0.5, 0.5], "each row of y_prob must sum to 1, row 2 sums to 1.5"),
    ],
)
def test_a_wrong_row_is_named(rows: int, row: int, values: list[float], match: str) -> None:
    y, _, p = random_problem(RNG, rows, 3)
    p[row] = values
    with pytest.raises(ValueError, match=match):
        evaluate(y, y_prob=p, labels=[0, 1, 2])


def test_rounding_beyond_one_is_cut_and_the_rows_too() -> None:
    rows = evaluate([0, 1], y_prob=np.array([[1 + 1e-9, -1e-9], [0.25, 0.75]])).rows
    assert rows is not None
    assert rows.probabilities is not None
    assert rows.probabilities.tolist() == [[1.0, 0.0], [0.25, 0.75]]
