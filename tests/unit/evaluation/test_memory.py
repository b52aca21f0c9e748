"""Many classes: memory follows the rows' probabilities, and tables that are nearly empty keep what is not 0."""

import math
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from cmtrack import Evaluation, evaluate
from cmtrack.comparison import constant_answer
from cmtrack.statistics import counting, moments, plain
from cmtrack.statistics.counting import SparseCounts

K = 1100
"""More than 512, from which moments have the rows of the classes with samples only."""


def many(n: int, seed: int = 0, **options: object) -> tuple[Evaluation, int]:
    """An evaluation of n rows, and the bytes of its probabilities."""
    rng = np.random.default_rng(seed)
    y, p = rng.integers(0, K, n), rng.random((n, K))
    p[np.arange(n), y] += 2 * rng.random(n)
    p /= p.sum(axis=1, keepdims=True)
    return evaluate(y, y_prob=p, labels=range(K), **options), p.nbytes


def peak_of(action: Callable[[], object]) -> tuple[int, int]:
    """The most bytes that it had beside what was there, and what is left when its result is gone."""
    tracemalloc.start()
    try:
        action()
        left, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return most, left


@pytest.mark.slow
def test_numbers_take_at_most_twelve_times_the_probabilities_and_give_it_back() -> None:
    assert many(2)[0].metrics  # imports
    size = many(1000)[1]

    def numbers() -> None:
        evaluation, _ = many(1000)
        assert evaluation.metrics.keys()
        assert evaluation.intervals.keys()

    most, left = peak_of(numbers)
    assert most <= (12 + 2) * size  # with the probabilities, and what they are made of
    assert left <= size


def test_a_constant_answer_takes_a_few_matrices_not_one_for_each_class() -> None:
    evaluation = many(1000, sections=["multiclass"])[0]
    wanted = constant_answer(evaluation, "multiclass/accuracy")
    assert wanted is not None
    assert wanted.value == evaluation.confusion_matrix.counts.sum(axis=1).max() / 1000
    most, _ = peak_of(lambda: constant_answer(evaluation, "multiclass/accuracy"))
    assert most <= 8 * 8 * K**2


def test_numbers_are_those_of_whole_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    sparse = many(300)[0]
    assert sparse.statistics.moments is not None
    assert sparse.statistics.moments.present is not None
    with monkeypatch.context() as whole:
        for module in (counting, moments):
            whole.setattr(module, "AT_ONCE", 1 << 40)
        dense = many(300)[0]
        expected, matrix = dict(dense.metrics), dense.spcc_matrix
    assert dense.statistics.moments is not None
    assert dense.statistics.moments.present is None
    assert dict(sparse.metrics) == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert dict(sparse.standard_errors) == pytest.approx(
        dict(dense.standard_errors), rel=1e-9, nan_ok=True
    )
    np.testing.assert_array_equal(sparse.spcc_matrix, matrix)


@pytest.mark.slow
def test_an_evaluation_of_many_classes_is_saved_merged_and_put_in_order(tmp_path) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    one, other = (
        many(150, seed, sample_weight=rng.random(150), weights_are="sampling")[0] for seed in (1, 2)
    )
    one.save(tmp_path)
    again = Evaluation.load(tmp_path)
    assert again == one
    assert dict(again.metrics) == pytest.approx(dict(one.metrics), nan_ok=True)
    both = one + other
    assert both.statistics.tops == one.statistics.tops + other.statistics.tops
    turned = both.with_label_order(tuple(reversed(both.labels)))
    assert turned.with_label_order(both.labels).statistics == both.statistics
    for name in (
        "spcc/ovo_fisher",
        "spcc/ovo_min",
        "prevalence/7/calibrated",
        "multiclass/recall_macro",
    ):
        assert turned.metrics[name] == pytest.approx(both.metrics[name], rel=1e-6, nan_ok=True)


def test_sparse_counts_are_the_table() -> None:
    rng = np.random.default_rng(3)
    shape, codes = (50, 40, 64), rng.integers(0, 50 * 40 * 64, (2, 300))
    weights = rng.integers(0, 3, (2, 300))
    one, other = (SparseCounts.of_codes(c, shape, w) for c, w in zip(codes, weights, strict=True))
    whole = [
        np.bincount(c, w, math.prod(shape)).reshape(shape)
        for c, w in zip(codes, weights, strict=True)
    ]
    for table, array in zip(
        (one, other, one + other, one + other - other), (*whole, sum(whole), whole[0]), strict=True
    ):
        np.testing.assert_array_equal(table.array(), array)
        assert table == SparseCounts.of_array(array.astype(np.int64))
        assert table.sums.all()
    assert plain.decode_table(plain.encode_table(one), (None, 40, 64)) == one


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [1 << 40, 500, 64]},
        {"shape": [500, 500, 63]},
        {"shape": [-1, 500, 64]},
        {"steps": [0, 0, 1]},
        {"steps": [5, -1, 1]},
        {"steps": [1 << 62, 1 << 62, 1 << 62]},
        {"steps": [0, 1, 500 * 500 * 64]},
        {"steps": [0, 1]},
        {"steps": [0.0, 1.0, 2.5]},
        {"sums": [1, 0, 1]},
        {"sums": [1, -1, 1]},
    ],
)
def test_a_damaged_table_is_refused(change: dict[str, object]) -> None:
    good = {"shape": [500, 500, 64], "steps": [0, 1, 1], "sums": [1, 2, 3]}
    assert plain.decode_table(good, (None, 500, 64)).sums.sum() == 6
    with pytest.raises(ValueError, match=r"must"):
        plain.decode_table(good | change, (None, 500, 64))
