"""Batches, shards and ranks give the evaluation of all rows at once."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmtrack import Accumulator, Evaluation, Grouping, evaluate
from support.problems import random_problem

LABELS = ["a", "b", "c", "d"]
PAIRS = Grouping({"low": ["a", "b"], "high": ["c", "d"]}, mode={"low": "strict", "high": "relaxed"})


def problem(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels, and probabilities with ties."""
    y, _, p = random_problem(0, n, digits=2)
    return np.array(LABELS)[y], p


def same(one: Evaluation, other: Evaluation) -> None:
    assert one.confusion_matrix.counts == pytest.approx(other.confusion_matrix.counts, rel=1e-12)
    if one.confusion_matrix.counts.dtype.kind == "i":
        assert one.confusion_matrix == other.confusion_matrix
        assert one.statistics.scores == other.statistics.scores
        assert one.statistics.tops == other.statistics.tops
    assert one.labels_digest == other.labels_digest
    assert one.positive == other.positive
    assert one.grouping == other.grouping
    assert list(one.metrics) == list(other.metrics)
    for name, value in one.metrics.items():
        assert value == pytest.approx(other.metrics[name], rel=1e-6, abs=1e-10, nan_ok=True), name
    assert one.intervals.keys() == other.intervals.keys()


def weights_of(kind: str, n: int) -> np.ndarray | None:
    """Weights of n rows: none, numbers of rows, or fractions."""
    rng = np.random.default_rng(1)
    if kind == "no":
        return None
    if kind == "whole":
        return rng.integers(0, 3, n) + (np.arange(n) == 0)
    return rng.random(n)


def check_batches(n: int, cuts: list[int], weights: np.ndarray | None, **options: Any) -> None:
    """Check that batches of n rows, cut at some places, are the rows at once."""
    y, p = problem(n)
    seen = Accumulator(LABELS, **options)
    for start, stop in pairwise([0, *sorted(min(cut, n) for cut in cuts), n]):
        part = slice(start, stop)
        own = None if weights is None else weights[part]
        seen.update(y[part], y_prob=p[part], sample_weight=own)
    assert seen.n_rows == n
    same(seen.compute(), evaluate(y, y_prob=p, labels=LABELS, sample_weight=weights, **options))


@pytest.mark.slow
@given(
    n=st.integers(1, 300),
    cuts=st.lists(st.integers(0, 300), max_size=6),
    grouped=st.booleans(),
    weighted=st.sampled_from(["no", "whole", "fractions"]),
)
@settings(max_examples=20, deadline=None)
def test_batches_are_the_whole(n: int, cuts: list[int], grouped: bool, weighted: str) -> None:
    grouping = PAIRS if grouped else None
    check_batches(n, cuts, weights_of(weighted, n), grouping=grouping)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", ["no", "whole", "fractions"])
def test_more_rows_than_may_wait_are_the_whole(weighted: str) -> None:
    """At most 65,536 rows wait: here they are added up on the way, more than once and unevenly."""
    n = 200_000
    cuts = [10, 60_000, 70_000, 150_000, 150_001]
    sections = ["multiclass", "class", "prevalence"]
    check_batches(n, cuts, weights_of(weighted, n), sections=sections)


@pytest.mark.slow
def test_ranks_merge_after_a_pickle_and_stay_as_they_were() -> None:
    y, p = problem(900)
    ranks = [Accumulator(LABELS, grouping=PAIRS, positive="low") for _ in range(3)]
    for rank, own in enumerate(ranks):
        for batch in range(3):
            part = slice(300 * rank + 100 * batch, 300 * rank + 100 * batch + 100)
            own.update(y[part], y_prob=p[part])
    merged = sum(pickle.loads(pickle.dumps(rank)) for rank in ranks)
    same(merged.compute(), evaluate(y, y_prob=p, labels=LABELS, grouping=PAIRS, positive="low"))
    assert [rank.n_rows for rank in ranks] == [300, 300, 300]
    same(
        ranks[0].compute(),
        evaluate(y[:300], y_prob=p[:300], labels=LABELS, grouping=PAIRS, positive="low"),
    )


def test_labels_alone_and_computing_on_the_way() -> None:
    y, p = problem(200)
    predicted = np.array(LABELS)[p.argmax(axis=1)]
    seen = Accumulator(LABELS)
    for start in range(0, 200, 40):
        seen.update(y[start : start + 40], predicted[start : start + 40])
        so_far = slice(0, start + 40)
        same(seen.compute(), evaluate(y[so_far], predicted[so_far], labels=LABELS))


def test_batches_are_copied() -> None:
    y, p = problem(50)
    expected = evaluate(y, y_prob=p, labels=LABELS)
    seen, room_y, room_p = Accumulator(LABELS), np.empty_like(y[:10]), np.empty_like(p[:10])
    for start in range(0, 50, 10):
        room_y[:], room_p[:] = y[start : start + 10], p[start : start + 10]
        seen.update(room_y, y_prob=room_p)
    same(seen.compute(), expected)


def test_memory_does_not_grow_with_the_number_of_batches() -> None:
    """An accumulator, as a rank sends it, of 63 batches that were added up, against one of one."""
    seen = Accumulator([0, 1])
    rows = 1 << 16
    y = np.arange(rows, dtype=np.int8) % 2
    sizes = []
    for _ in range(63):
        seen.update(y, np.zeros_like(y))
        sizes.append(len(pickle.dumps(seen)))
    assert max(sizes) <= 10 * sizes[0] < 100_000
    counts = seen.compute().confusion_matrix.counts
    assert counts.tolist() == [[63 * rows // 2, 0], [63 * rows // 2, 0]]


def test_a_batch_without_weights_weighs_one_each() -> None:
    seen = Accumulator([0, 1])
    seen.update([0, 1], [0, 1])
    seen.update([0], [1], sample_weight=[0.5])
    seen.update([1], [1], sample_weight=[0.0])
    assert seen.compute().confusion_matrix.counts.tolist() == [[1.0, 0.5], [0.0, 1.0]]


def test_reset_and_an_empty_batch() -> None:
    seen = Accumulator([0, 1])
    seen.update([0, 1], [0, 1])
    seen.reset()
    seen.update([], [])
    assert seen.n_rows == 0
    with pytest.raises(ValueError, match="at least one row is needed, got none"):
        seen.compute()


def test_wrong_input_is_told_at_once_and_changes_nothing() -> None:
    with pytest.raises(ValueError, match="confidence_level must be between 0 and 1, got 2"):
        Accumulator([0, 1], confidence_level=2)
    seen = Accumulator([0, 1])
    seen.update([0, 1], y_prob=[0.1, 0.8])
    for wrong, match in (
        (
            {"y_true": [0, 2], "y_prob": [0.1, 0.2]},
            r"y_true has labels that are not in \[0, 1\]: \[2\] \(1 rows\)",
        ),
        ({"y_true": [0, 1], "y_prob": [0.1, np.nan]}, "y_prob must be finite, got nan at row 1"),
        ({"y_true": [0, 1], "y_pred": [0, 1]}, "every batch must have the same columns"),
        ({"y_true": [0, 1]}, "evaluation needs y_pred or y_prob, got neither"),
        (
            {"y_true": [0], "y_prob": [0.1], "sample_weight": [-1.0]},
            "not negative, got -1.0 at row 0",
        ),
    ):
        with pytest.raises(ValueError, match=match):
            seen.update(**wrong)
    assert seen.n_rows == 2
    with pytest.raises(ValueError, match="accumulators must have the same labels to be merged"):
        seen + Accumulator([1, 0])
    other = Accumulator([0, 1])
    other.update([0], [1])
    with pytest.raises(ValueError, match="accumulators must have the same columns to be merged"):
        seen + other
