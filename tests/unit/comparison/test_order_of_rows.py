"""Evaluations of the same rows in another order are paired by their ids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mlflow
import numpy as np
import pytest

from cmtrack import (
    Evaluation,
    compare,
    evaluate,
    load_evaluation,
    log_evaluation,
    paired_differences,
)
from cmtrack.comparison import break_even, randomization_test

RNG = np.random.default_rng(0)
N = 300
Y = RNG.integers(0, 2, N)
FIRST, SECOND, THIRD = (
    np.clip(0.4 * Y + share * RNG.random(N), 0, 1) for share in (0.55, 0.6, 0.7)
)
REGION, PERSON = RNG.integers(0, 3, N), RNG.integers(0, 60, N)
IDS = np.array([f"row {number}" for number in range(N)])
SHUFFLED, OTHER = RNG.permutation(N), RNG.permutation(N)
IN_ORDER = np.arange(N)


def judged(prob: Any, order: Any = IN_ORDER, ids: Any = IDS, y: Any = Y, **more: Any) -> Evaluation:
    by_row = {name: values[order] for name, values in more.items()}
    return evaluate(
        y[order], y_prob=prob[order], row_ids=None if ids is None else ids[order], **by_row
    )


def by_metric(differences: Any) -> dict[str, tuple[float, ...]]:
    return {
        row.metric: (row.difference, row.standard_error, row.low, row.high)
        for row in differences.rows
    }


@pytest.mark.slow
@pytest.mark.parametrize("ids", [IDS, np.arange(N) * 7, np.arange(N).astype(object)])
def test_differences_of_shuffled_rows_equal_those_of_rows_in_order(ids):
    first, second = (judged(prob, ids=ids, groups=PERSON) for prob in (FIRST, SECOND))
    shuffled = judged(SECOND, SHUFFLED, ids, groups=PERSON)
    expected, found = (paired_differences(first, other) for other in (second, shuffled))
    assert (found.paired, found.reason) == (True, "")
    assert found.mcnemar == expected.mcnemar
    for row, numbers in by_metric(expected).items():
        assert by_metric(found)[row] == pytest.approx(numbers, rel=1e-9, abs=1e-12, nan_ok=True), (
            row
        )


def test_rows_whose_classes_are_also_in_another_order_are_paired():
    first = judged(FIRST)
    second = evaluate(Y, y_prob=SECOND, row_ids=IDS, labels=[0, 1])
    flipped = evaluate(
        Y[SHUFFLED],
        y_prob=np.column_stack([SECOND, 1 - SECOND])[SHUFFLED],
        row_ids=IDS[SHUFFLED],
        labels=[1, 0],
    )
    names = ["multiclass/accuracy", "multiclass/f1_macro"]
    expected, found = (
        paired_differences(first, other, metrics=names) for other in (second, flipped)
    )
    assert found.paired
    for name in names:
        assert by_metric(found)[name] == pytest.approx(by_metric(expected)[name], abs=1e-12)


@pytest.mark.slow
def test_a_comparison_of_shuffled_rows_is_one_paired_ranking_with_the_same_numbers():
    runs = {}
    for name, order in (("in order", (IN_ORDER,) * 3), ("shuffled", (SHUFFLED, IN_ORDER, OTHER))):
        runs[name] = {
            run: evaluate(
                Y[rows], y_prob=prob[rows], row_ids=IDS[rows], segments={"region": REGION[rows]}
            )
            for run, prob, rows in zip("abc", (FIRST, SECOND, THIRD), order, strict=True)
        }
    gate = "binary/recall.difference.low >= -0.5"
    options = {"rank_by": "binary/roc_auc", "require": [gate], "against": "b"}
    expected, found = (compare(runs[name], **options) for name in runs)
    assert len(found.rankings) == len(expected.rankings) == 1
    assert found.ranking.paired
    assert expected.ranking.paired
    for one, other in zip(found.ranking.runs, expected.ranking.runs, strict=True):
        assert one.name == other.name
        numbers = [(run.difference, run.standard_error, run.p_set) for run in (one, other)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-9, abs=1e-12, nan_ok=True)
        assert one.gates[0].value == pytest.approx(other.gates[0].value, abs=1e-12)
    flips = [comparison.flips("a", "c").rates for comparison in (found, expected)]
    assert flips[0] == flips[1]
    pairs = [comparison.segments.pairs for comparison in (found, expected)]
    for one, other in zip(*pairs, strict=True):
        assert (one.paired, one.reason) == (True, "")
        assert one.errors == pytest.approx(other.errors, abs=1e-12)


def test_the_order_of_the_runs_does_not_decide_the_order_of_the_rows():
    runs = {"a": judged(FIRST, SHUFFLED), "b": judged(SECOND), "c": judged(THIRD)}
    for names in ("abc", "cba"):
        found = compare({name: runs[name] for name in names}, rank_by="binary/roc_auc")
        orders = {run.evaluation.labels_digest for run in found.judged}
        assert orders == {runs["b"].labels_digest}  # two of the three have this order


def test_a_reordered_evaluation_keeps_its_numbers():
    found = compare({"a": judged(FIRST, SHUFFLED), "b": judged(SECOND), "c": judged(THIRD)})
    [moved] = [run.evaluation for run in found.judged if run.name == "a"]
    first = judged(FIRST, SHUFFLED)
    assert moved.metrics == first.metrics
    assert moved.intervals == first.intervals
    assert moved.rows.ids.values.tolist() == IDS.tolist()
    assert moved.rows.actual.tolist() == Y.tolist()
    assert moved.rows.probabilities[:, 1].tolist() == FIRST.tolist()


@pytest.mark.slow
def test_functions_of_two_evaluations_pair_rows_in_another_order():
    first, second, shuffled = judged(FIRST), judged(SECOND), judged(SECOND, SHUFFLED)
    expected, found = (break_even(first, other) for other in (second, shuffled))
    assert (found.false_alarms, found.misses) == pytest.approx(
        (expected.false_alarms, expected.misses)
    )
    assert found.covariance == pytest.approx(expected.covariance)
    assert found.covariance[0] > 0
    pvalues = [
        randomization_test(first, other, "binary/f1", n_resamples=9) for other in (second, shuffled)
    ]
    assert pvalues[0] == pvalues[1]


def test_rows_without_ids_are_of_other_rows():
    for ids in (None, IDS):
        found = paired_differences(judged(FIRST, ids=ids), judged(SECOND, SHUFFLED, ids=None))
        assert (found.paired, found.reason) == (
            False,
            "the evaluations have different rows (the digests of their labels differ)",
        )
    runs = {"a": judged(FIRST, ids=None), "b": judged(SECOND, SHUFFLED, ids=None)}
    assert len(compare(runs, rank_by="binary/f1").rankings) == 2


def without_ids(evaluation: Evaluation) -> Evaluation:
    return replace(evaluation, rows=replace(evaluation.rows, ids=None))


def test_digests_of_one_set_of_ids_give_one_unpaired_ranking():
    first, second = judged(FIRST), judged(SECOND, SHUFFLED)
    without_rows = "rows (load it with its predictions, or evaluate again)"
    not_kept = "the rows are in a different order, and their ids were not kept"
    for other, reason in (
        (replace(second, rows=None), f"the second evaluation has no {without_rows}"),
        (without_ids(second), not_kept),
    ):
        assert paired_differences(first, other).reason == reason
        found = compare({"a": first, "b": other}, rank_by="binary/roc_auc")
        assert len(found.rankings) == 1
        assert not found.ranking.paired


def test_other_ids_are_other_data():
    ids = np.array([f"row {number + 1}" for number in range(N)])
    first, second = judged(FIRST), judged(SECOND, SHUFFLED, ids)
    assert not paired_differences(first, second).paired
    assert len(compare({"a": first, "b": second}, rank_by="binary/roc_auc").rankings) == 2


def test_other_actual_labels_of_the_same_ids_are_refused():
    relabelled = Y.copy()
    swapped = [np.flatnonzero(Y == 0)[0], np.flatnonzero(Y == 1)[0]]
    relabelled[swapped] = [1, 0]
    found = paired_differences(judged(FIRST), judged(SECOND, SHUFFLED, y=relabelled))
    assert (found.paired, found.reason) == (
        False,
        "some row ids have different actual labels in the two evaluations",
    )
    in_order = {"a": judged(FIRST), "b": judged(SECOND, y=relabelled)}
    assert len(compare(in_order, rank_by="binary/roc_auc").rankings) == 2


def test_ids_that_repeat_or_that_only_one_side_has_hashed_are_not_paired(monkeypatch):
    monkeypatch.delenv("CMTRACK_ID_KEY", raising=False)
    first, second = judged(FIRST), judged(SECOND, SHUFFLED)
    ids = first.rows.ids
    with pytest.raises(ValueError, match="row_ids must not repeat"):
        judged(FIRST, ids=np.array(["a"] * N))
    repeated = np.where(np.arange(N) < 2, IDS[0], IDS)
    twice = replace(first, rows=replace(first.rows, ids=replace(ids, values=repeated)))
    assert (
        paired_differences(twice, second).reason
        == "the rows are in a different order, and some of their ids repeat"
    )
    hashes = replace(ids, values=np.arange(N, dtype=np.uint64), hashed=True)
    hashed = replace(first, rows=replace(first.rows, ids=hashes))
    only_one = "the rows are in a different order, and only the ids of one evaluation are hashed"
    assert paired_differences(hashed, second).reason == only_one
    others = replace(hashes, values=np.arange(N, dtype=np.uint64) + np.uint64(1))
    other_key = replace(second, rows=replace(second.rows, ids=others))
    assert paired_differences(hashed, other_key).reason.endswith("(their row ids differ)")


@pytest.mark.slow
def test_weights_of_the_same_ids_must_agree():
    weight = RNG.integers(1, 4, N)
    first = judged(FIRST, sample_weight=weight)
    expected = paired_differences(first, judged(SECOND, sample_weight=weight))
    found = paired_differences(first, judged(SECOND, SHUFFLED, sample_weight=weight))
    assert found.paired
    name = "multiclass/accuracy"
    assert by_metric(found)[name] == pytest.approx(by_metric(expected)[name])
    other = paired_differences(first, judged(SECOND, SHUFFLED, sample_weight=np.roll(weight, 1)))
    assert (other.paired, other.reason) == (False, "the sample weights differ")


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn", "store")
@pytest.mark.parametrize("setting", ["hashed", "on", "off"])
def test_stored_runs_are_paired_if_their_ids_are_kept(setting, monkeypatch):
    monkeypatch.setenv("CMTRACK_ROW_IDS", setting)
    monkeypatch.setenv("CMTRACK_ID_KEY", "a key")
    first, second = judged(FIRST), judged(SECOND, SHUFFLED)
    runs = [mlflow.MlflowClient().create_run("1").info.run_id for _ in range(2)]
    for run_id, evaluation in zip(runs, (first, second), strict=True):
        log_evaluation(evaluation, run_id=run_id, strict=True)
    found = compare(runs, rank_by="binary/roc_auc")
    assert len(found.rankings) == 1
    assert found.ranking.paired == (setting != "off")
    stored = [load_evaluation(run_id, rows=True) for run_id in runs]
    if setting == "off":
        assert (
            paired_differences(*stored).reason
            == "the rows are in a different order, and their ids were not kept"
        )
        return
    expected = by_metric(paired_differences(first, judged(SECOND)))["multiclass/accuracy"]
    # hashes and ids, with the key
    for one, other in (stored, (first, stored[1]), (stored[0], second)):
        assert by_metric(paired_differences(one, other))["multiclass/accuracy"] == pytest.approx(
            expected
        )
