"""Many classes: memory follows the rows' probabilities, and tables that are nearly empty keep what is not 0."""

import json
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from cmtrack import Evaluation, evaluate
from cmtrack.comparison import constant_answer
from cmtrack.evaluation import loads

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


@pytest.mark.slow
def test_a_constant_answer_takes_a_few_matrices_not_one_for_each_class() -> None:
    evaluation = many(1000, sections=["multiclass"])[0]
    wanted = constant_answer(evaluation, "multiclass/accuracy")
    assert wanted is not None
    assert wanted.value == evaluation.confusion_matrix.counts.sum(axis=1).max() / 1000
    most, _ = peak_of(lambda: constant_answer(evaluation, "multiclass/accuracy"))
    assert most <= 8 * 8 * K**2


WITH_ABSENT_CLASSES = (
    "multiclass/precision_macro_zero",
    "multiclass/f1_macro_zero",
    "multiclass/cohen_kappa_linear",
    "multiclass/cohen_kappa_quadratic",
)
"""Metrics in which classes without rows count: as a 0, or by their places between the others."""


@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_numbers_are_those_without_the_absent_classes(weighted: bool) -> None:
    """A quarter of the classes have rows; the others alone fit into whole tables."""
    rng = np.random.default_rng(0)
    y, p = rng.integers(0, K, 300), rng.random((300, K))
    p[np.arange(300), y] += 2 * rng.random(300)
    present = np.unique(y)
    p[:, np.setdiff1d(np.arange(K), present)] = 0
    p /= p.sum(axis=1, keepdims=True)
    weights = rng.random(300) if weighted else None
    sparse = evaluate(y, y_prob=p, labels=range(K), sample_weight=weights)
    whole = evaluate(y, y_prob=p[:, present], labels=present.tolist(), sample_weight=weights)
    assert sparse.statistics.moments is not None
    assert whole.statistics.moments is not None
    assert sparse.statistics.moments.present is not None
    assert whole.statistics.moments.present is None
    metrics, errors = (
        {name: value for name, value in numbers.items() if name not in WITH_ABSENT_CLASSES}
        for numbers in (whole.metrics, whole.standard_errors)
    )
    assert len(metrics) > 3000
    for name, value in metrics.items():
        rel = 1e-7 if name.endswith("calibrated") else 1e-9  # the former ends an iteration
        assert sparse.metrics[name] == pytest.approx(value, rel=rel, abs=1e-12, nan_ok=True), name
    found = {name: sparse.standard_errors[name] for name in errors}
    assert found == pytest.approx(errors, rel=1e-9, nan_ok=True)
    assert sparse.spcc_matrix is not None
    np.testing.assert_allclose(
        sparse.spcc_matrix[np.ix_(present, present)], whole.spcc_matrix, rtol=1e-9
    )


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
    rows = [part.rows for part in (one, other)]
    whole = evaluate(
        np.concatenate([part.actual for part in rows]),
        y_prob=np.concatenate([part.probabilities for part in rows]),
        labels=range(K),
        sample_weight=np.concatenate([part.design.weights for part in rows]),
    )
    assert both.statistics.tops == whole.statistics.tops
    assert both.confusion_matrix == whole.confusion_matrix
    turned = both.with_label_order(tuple(reversed(both.labels)))
    assert turned.with_label_order(both.labels).statistics == both.statistics
    for name in (
        "spcc/ovo_fisher",
        "spcc/ovo_min",
        "prevalence/7/calibrated",
        "multiclass/recall_macro",
    ):
        assert turned.metrics[name] == pytest.approx(both.metrics[name], rel=1e-6, nan_ok=True)


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
def test_a_damaged_table_is_refused(damaged: str, change: dict[str, object]) -> None:
    data = json.loads(damaged)
    data["statistics"]["tops"] |= change
    with pytest.raises(ValueError, match=r"the evaluation is damaged: .*must"):
        loads(json.dumps(data))


@pytest.fixture(scope="module")
def damaged() -> str:
    """An evaluation whose table of the most probable classes has three counts, ready to be damaged."""
    p = np.zeros((6, 500))
    p[:, :2] = [0.7, 0.3]
    p[1:3] = p[1:3, ::-1]
    p[1:3, [0, 499]] = p[1:3, [499, 0]]
    stored = evaluate([0, 1, 1, 2, 2, 2], y_prob=p, labels=range(500)).to_json()
    tops = json.loads(stored)["statistics"]["tops"]
    assert (tops["shape"], tops["sums"]) == ([500, 500, 64], [1, 2, 3])
    assert loads(stored).n_samples == 6
    return stored
