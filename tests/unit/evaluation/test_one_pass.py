"""The fast ways through the rows against plain ones: labels, pairs, probabilities, moments, scores."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, roc_auc_score

from cmtrack import ConfusionMatrix, Evaluation, Grouping, evaluate
from cmtrack.statistics import EXACT_ROWS, ScoreCounts, ScoreMoments, grid_edges
from support.problems import random_problem

RNG = np.random.default_rng(5)


# -- labels and pairs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
@pytest.mark.parametrize(("low", "classes"), [(0, 2), (0, 13), (0, 14), (3, 11), (0, 100)])
def test_integer_pairs_are_counted_as_scikit_learn_does(dtype: Any, low: int, classes: int) -> None:
    y, p = (RNG.integers(low, low + classes, 5_001).astype(dtype) for _ in range(2))
    found = ConfusionMatrix.from_predictions(y, p)
    assert found.counts.tolist() == confusion_matrix(y, p).tolist()
    assert found.labels == tuple(range(low, low + classes))
    mixed = ConfusionMatrix.from_predictions(y.astype(np.int64), p)
    assert mixed == found


@pytest.mark.slow
@given(
    pairs=st.lists(st.tuples(st.integers(-5, 20), st.integers(-5, 20)), min_size=2, max_size=200),
    far=st.lists(st.integers(-3000, 3000), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_integers_of_any_range_are_counted(pairs: list[tuple[int, int]], far: list[int]) -> None:
    rows = [*pairs, *((value, 0) for value in far)]
    y, p = np.array(rows).T.copy()
    labels = np.union1d(y, p)
    if len(labels) > 1:
        expected = confusion_matrix(y, p, labels=labels)
        assert np.array_equal(ConfusionMatrix.from_predictions(y, p).counts, expected)


LATE = {
    "wider in the second block": {140_000: 12},
    "below 0 in the third": {5: 3, 270_000: -7},
    "both ways": {131_071: 40, 131_072: -1, 299_999: 90},
    "too far at the end": {200_000: 1000, 299_999: 5000},
}
"""Values of single rows among zeros and ones; a block of integers has 131,072 rows."""


@pytest.mark.parametrize("late", LATE.values(), ids=LATE)
def test_the_range_is_found_on_the_way(late: dict[int, int]) -> None:
    y, p = (RNG.integers(0, 2, 300_000) for _ in range(2))
    for row, value in late.items():
        y[row] = value
    found = ConfusionMatrix.from_predictions(y, p)
    labels = np.array(found.labels)
    assert labels.tolist() == sorted({0, 1, *late.values()})
    expected = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(expected, (np.searchsorted(labels, y), np.searchsorted(labels, p)), 1)
    assert np.array_equal(found.counts, expected)


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


@pytest.mark.slow
@given(st.lists(st.text(max_size=6), min_size=2, max_size=120))
@settings(max_examples=60, deadline=None)
def test_fixed_width_strings(texts: list[str]) -> None:
    array = np.array(texts)
    counted = Counter(array.tolist())
    if len(counted) < 2 or "\0" in "".join(counted):
        return
    found = ConfusionMatrix.from_predictions(array, array[::-1], labels=sorted(counted))
    assert found.counts.sum(axis=1).tolist() == [counted[text] for text in sorted(counted)]
    assert found == ConfusionMatrix.from_predictions(
        array.tolist(), array[::-1].tolist(), labels=sorted(counted)
    )


def test_strings_that_come_late_are_numbered() -> None:
    """A block has 16,384 rows."""
    y = np.repeat([f"class {i}" for i in range(50)], 1_000)
    found = ConfusionMatrix.from_predictions(y, y[::-1])
    expected = np.fliplr(np.eye(50, dtype=int)) * 1_000
    order = np.argsort([f"class {i}" for i in range(50)])
    assert found.counts.tolist() == expected[np.ix_(order, order)].tolist()


def test_many_strings_go_the_long_way() -> None:
    many = np.array([f"class {i}" for i in range(1000)])
    found = ConfusionMatrix.from_predictions(many, np.roll(many, 1))
    assert found.labels == tuple(sorted(many.tolist()))
    assert (found.counts.sum(), found.counts.max()) == (1000, 1)
    assert found.counts.trace() == 0
    assert ConfusionMatrix.from_predictions(many, many).counts.trace() == 1000


# -- moments -----------------------------------------------------------------------------------------------


def weights_of(kind: str, n: int) -> Any:
    return {"no": None, "whole": RNG.integers(0, 3, n), "fractions": RNG.random(n)}[kind]


@pytest.mark.parametrize("kind", ["no", "whole", "fractions"])
@pytest.mark.parametrize(
    ("classes", "spread", "around"), [(2, 0.3, 0.3), (5, 1e-4, 0.999), (70, 0.5, 0.0)]
)
def test_moments_are_those_of_long_doubles(
    kind: str, classes: int, spread: float, around: float
) -> None:
    n = 40_000
    y = RNG.integers(0, classes - 1, n)
    s = around + spread * RNG.random((n, 3))
    w = weights_of(kind, n)
    s[:, 1] = around  # a score that does not vary
    found = ScoreMoments.from_scores(y, s, classes, w)
    weight = np.ones(n) if w is None else w
    for k in range(min(classes - 1, 5)):
        own = y == k
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
    assert found.n[classes - 1] == 0
    assert not found.mean[classes - 1].any()


@pytest.mark.parametrize("kind", ["no", "whole", "fractions"])
@pytest.mark.parametrize(("classes", "slope"), [(3, 1.0), (5, 1e-3)])
def test_joint_moments_of_an_evaluation_are_those_of_its_rows(
    kind: str, classes: int, slope: float
) -> None:
    """Sums of products of 1, of each probability, and of its square, about 1 / K, by actual class."""
    n = 9_000
    y, _, p = random_problem(RNG, n, classes - 1)
    p = np.column_stack((slope * p, np.full(n, 1 - slope)))  # the last class has no rows
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    w = weights_of(kind, n)
    statistics = evaluate(
        y, y_prob=p, labels=range(classes), sample_weight=w, sections=["spcc"]
    ).statistics
    centred = p - 1 / classes
    features = np.column_stack((np.ones(n), centred, centred**2))
    weight = np.ones(n) if w is None else w
    assert statistics.cross is not None
    for k in range(classes):
        own = y == k
        expected = features[own].T @ (features[own] * weight[own][:, None])
        assert statistics.cross.sums[k] == pytest.approx(
            expected, rel=1e-9, abs=1e-9 * np.abs(expected).max(initial=1e-12)
        )
    moments = ScoreMoments.from_scores(y, p, classes, w)
    assert statistics.moments is not None
    for name in ("n", "mean", "m2", "m3", "m4"):
        found, wanted = getattr(statistics.moments, name), getattr(moments, name)
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-12 * np.abs(wanted).max())


# -- scores ------------------------------------------------------------------------------------------------


def counted(
    channel: np.ndarray, place: np.ndarray, size: int, weights: Any, channels: int = 4
) -> np.ndarray:
    """Weights summed by channel and place, plainly."""
    table = np.zeros((channels, size))
    np.add.at(table, (channel, place), 1 if weights is None else weights)
    return table


@pytest.mark.parametrize("kind", ["no", "whole", "fractions"])
def test_scores_are_counted_exactly_and_by_cell(kind: str) -> None:
    n = 5_000
    edge = [0.0, -0.0, 1.0, 0.5, np.nextafter(0.5, 0), 5e-324]
    s = np.concatenate((np.round(RNG.random(n - 6), 2), edge))
    channel, w = RNG.integers(0, 4, n), weights_of(kind, n)
    exact = ScoreCounts.from_scores(s, channel, 4, w, exact=True)
    values, place = np.unique(s, return_inverse=True)
    assert np.array_equal(exact.values, values)
    assert not np.signbit(exact.values).any()
    assert exact.counts == pytest.approx(counted(channel, place, len(values), w), rel=1e-12)
    parts = []
    for rows in (slice(2000, n), slice(2000)):
        own = None if w is None else w[rows]
        parts.append(ScoreCounts.from_scores(s[rows], channel[rows], 4, own, exact=True))
    together = reduce(add, parts)
    assert np.array_equal(together.values, values)
    assert together.counts == pytest.approx(exact.counts, rel=1e-12)
    check_cells(exact.to_grid(), s, channel, w)


def check_cells(cells: ScoreCounts, s: np.ndarray, channel: np.ndarray, weights: Any) -> None:
    """Check counts and means by cell against a search in the edges."""
    assert not cells.exact
    place = np.searchsorted(grid_edges(), s, side="right")
    size = len(grid_edges()) + 1
    assert cells.counts == pytest.approx(counted(channel, place, size, weights), rel=1e-12)
    held = cells.counts.sum(axis=0) > 0
    weight = np.ones(len(s)) if weights is None else weights
    sums, sizes = (np.bincount(place, by, size)[held] for by in (s * weight, weight))
    assert cells.means[held] == pytest.approx(sums / sizes, rel=1e-12, abs=1e-12)


def test_cells_are_those_of_a_search_in_the_edges() -> None:
    edges = grid_edges()
    near = [np.nextafter(edges, 0), edges, np.nextafter(edges, 1), [0.0, 1.0, 5e-324, 1 - 2.0**-53]]
    rest = [RNG.random(50_000), RNG.random(50_000) ** 20, 1 - RNG.random(50_000) ** 20]
    s = np.concatenate([*near, *rest])
    channel = np.zeros(len(s), dtype=int)
    cells = ScoreCounts.from_scores(s, channel, 1, exact=True).to_grid()
    place = np.searchsorted(edges, s, side="right")
    assert np.array_equal(cells.counts[0], np.bincount(place, minlength=len(edges) + 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["no", "fractions"])
def test_more_scores_than_are_counted_one_by_one_are_counted_by_cell(kind: str) -> None:
    n = EXACT_ROWS + 1
    y, _, p = random_problem(RNG, n, 2)
    s, w = p[:, 1], weights_of(kind, n)
    found = evaluate(y, y_prob=s, sample_weight=w, sections=["binary"])
    scores = found.statistics.scores
    assert scores is not None
    check_cells(scores, s, np.where(y == 1, 0, 2), w)
    roc = found.roc
    assert roc is not None
    assert 0 < roc.auc_error_bound < 1e-3
    assert abs(roc.auc - roc_auc_score(y, s, sample_weight=w)) <= roc.auc_error_bound
    rounded = evaluate(y, y_prob=np.round(s, 2), sample_weight=w, sections=["binary"])
    assert rounded.roc is not None
    assert rounded.roc.auc_error_bound == 0  # no cell holds two values
    kept = rounded.statistics.scores
    assert kept is not None
    values, place = np.unique(np.round(s, 2), return_inverse=True)
    assert np.array_equal(kept.values, values)
    expected = counted(np.where(y == 1, 0, 2), place, len(values), w)
    assert kept.counts == pytest.approx(expected, rel=1e-9)


GROUPED = [
    None,
    Grouping({"low": range(3), "high": range(3, 7)}),
    Grouping({"low": range(3), "high": range(3, 7)}, mode="strict"),
    Grouping(
        {"low": range(5), "high": range(5, 7)}, mode={"low": [(0, 1), (2, 4)], "high": "strict"}
    ),
]


@pytest.mark.parametrize(
    ("grouping", "kind"),
    [
        (GROUPED[3], "fractions"),
        pytest.param(GROUPED[0], "whole", marks=pytest.mark.slow),
        pytest.param(GROUPED[1], "whole", marks=pytest.mark.slow),
        pytest.param(GROUPED[2], "no", marks=pytest.mark.slow),
    ],
)
def test_blocks_threads_and_rows_in_another_order_change_nothing(
    grouping: Grouping | None, kind: str
) -> None:
    """Seven probabilities of more rows than the 131,072 of a block."""
    y, _, p = random_problem(RNG, 140_000, 7)
    w = weights_of(kind, len(y))
    options = {"grouping": grouping, "labels": range(7)}
    whole = evaluate(y, y_prob=p, sample_weight=w, **options)
    turned = evaluate(
        y[::-1],
        y_prob={k: p[::-1, k] for k in range(7)},
        sample_weight=None if w is None else w[::-1],
        **options,
    )
    parts = []
    for rows in (slice(50_000), slice(50_000, None)):
        own = None if w is None else w[rows]
        parts.append(evaluate(y[rows], y_prob=p[rows], sample_weight=own, **options))
    for other in (turned, reduce(add, parts)):
        same_numbers(other, whole)
        if kind != "fractions":
            assert other.statistics.scores == whole.statistics.scores
            assert other.statistics.tops == whole.statistics.tops
            assert other.confusion_matrix == whole.confusion_matrix


def same_numbers(found: Evaluation, expected: Evaluation) -> None:
    for name, value in expected.metrics.items():
        near = pytest.approx(value, rel=1e-9, abs=1e-12, nan_ok=True)
        assert found.metrics[name] == near, name


def test_the_counts_of_many_classes_wait_for_the_end() -> None:
    """Of more than 127 classes the table of the most probable ones is not filled block by block."""
    k = 130
    y, _, p = random_problem(RNG, 10_000, k)  # more rows than the 8,192 of a block
    w = RNG.integers(0, 3, len(y))
    tops = evaluate(y, y_prob=p, sample_weight=w, sections=["prevalence"]).statistics.tops
    assert tops is not None
    best, top = p.argmax(axis=1), p.max(axis=1)
    cell = np.clip((np.log(top / (1 - top)) + 4) * 4, 0, 63).astype(int)  # of the logit on [-4, 12]
    expected = np.zeros((k, k, 64), dtype=int)
    np.add.at(expected, (y, best, cell), w)
    assert np.array_equal(tops.counts, expected)


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


@pytest.mark.parametrize("rows", [5, 30_000])
@pytest.mark.parametrize(
    ("row", "values", "match"),
    [
        (3, [np.nan, 0.5, 0.5], "y_prob must be finite, got nan at row 3"),
        (4, [np.inf, 0.5, 0.5], "y_prob must be finite, got inf at row 4"),
        (-1, [1.2, -0.1, -0.1], r"y_prob must be in \[0, 1\], got 1.2 at row"),
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


@pytest.mark.parametrize("weighted", [False, True])
def test_counts_of_many_classes_are_not_made_an_array_unless_it_is_read(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 600, 8_000) * 10
    predicted = np.where(rng.random(8_000) < 0.7, y, rng.permutation(y))
    weights = rng.random(8_000) + 0.5 if weighted else None
    evaluation = evaluate(y, predicted, sample_weight=weights)
    assert evaluation.metrics
    assert evaluation.intervals
    assert evaluation.warnings
    matrix = evaluation.confusion_matrix
    assert "counts" not in vars(matrix)
    codes = (
        [matrix.labels.index(label) for label in y],
        [matrix.labels.index(label) for label in predicted],
    )
    expected = np.zeros((len(matrix.labels),) * 2, float if weighted else int)
    np.add.at(expected, codes, 1 if weights is None else weights)
    np.testing.assert_allclose(matrix.counts, expected, rtol=1e-14)
    dense = ConfusionMatrix(matrix.counts, matrix.labels)
    assert matrix == dense
    assert matrix.total == pytest.approx(dense.total, rel=1e-14)
    first, second = (
        ConfusionMatrix.from_predictions(
            y[rows],
            predicted[rows],
            sample_weight=None if weights is None else weights[rows],
        )
        for rows in (slice(0, 3_000), slice(3_000, None))
    )
    merged = first + second
    assert "counts" not in vars(merged)
    np.testing.assert_allclose(merged.counts, dense.counts, rtol=1e-14)
    np.testing.assert_allclose(
        (first + ConfusionMatrix(second.counts, second.labels)).counts, dense.counts, rtol=1e-14
    )
