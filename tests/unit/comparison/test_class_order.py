"""Evaluations of the same classes in several orders: one set of classes, one answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cmtrack import Evaluation, Grouping, Metric, compare, evaluate, paired_differences
from cmtrack.comparison import judge, randomization_test
from cmtrack.evaluation import loads
from support.problems import random_labels, random_probabilities

LABELS = np.array(["ash", "birch", "cedar", "dogwood"])
ORDER = np.array([2, 0, 3, 1])
GROUPS = Grouping({"hard": ["ash", "birch"], "other": ["cedar", "dogwood"]}, "strict", name="wood")
ORDINAL = ("multiclass/cohen_kappa_linear", "multiclass/cohen_kappa_quadratic")
ROUNDING = {"rel": 1e-9, "abs": 1e-12}


def made(
    order: Any = None, skill: float = 1.5, seed: int = 0, n: int = 400, **options: Any
) -> Evaluation:
    order = np.arange(4) if order is None else order
    y = random_labels(n, 4, 1, shares=[0.4, 0.3, 0.2, 0.1])
    p = random_probabilities(y, 4, skill, seed)
    given = dict(options)
    if given.pop("weighted", False):
        given["sample_weight"] = np.random.default_rng(2).uniform(0.5, 2, n)
    if given.pop("divided", False):
        given["segments"] = {"half": np.arange(n) % 2}
    if given.pop("calibrated", False):
        given |= {
            "calibration": (LABELS[y[:150]], p[:150][:, order]),
            "target": p[150:300][:, order],
        }
    return evaluate(LABELS[y], y_prob=p[:, order], labels=list(LABELS[order]), **given)


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "grouped": {"grouping": GROUPS, "positive": "hard"},
    "weights": {"weighted": True},
    "segments": {"divided": True, "grouping": GROUPS},
    "clusters": {"groups": np.arange(400) // 4},
    "a calibration set and a target": {"calibrated": True},
    "costs": {"costs": {("ash", "birch"): 2, ("cedar", "ash"): 5, ("dogwood", "cedar"): 1}},
    "shares": {"reference": {"ash": 0.25, "birch": 0.25, "cedar": 0.25, "dogwood": 0.25}},
}


def numbers(evaluation: Evaluation) -> dict[str, tuple[float, ...]]:
    ends, errors = evaluation.intervals, evaluation.standard_errors
    nothing = (math.nan, math.nan)
    return {
        n: (v, errors.get(n, math.nan), *ends.get(n, nothing))
        for n, v in evaluation.metrics.items()
    }


@pytest.mark.parametrize("with_rows", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_the_other_order_is_what_was_made_in_it(name: str, with_rows: bool) -> None:
    """Each statistic moves to where it would have been counted; every value, error and interval is the same."""
    expected, other = made(**CASES[name]), made(ORDER, **CASES[name])
    if not with_rows:
        expected, other = (loads(one.to_json()) for one in (expected, other))
    found = other.with_label_order(expected.labels)
    assert found.labels == expected.labels
    theirs, ours = numbers(expected), numbers(found)
    assert sorted(ours) == sorted(theirs)
    for metric in ORDINAL:
        assert math.isnan(ours.pop(metric)[0])
        assert theirs.pop(metric)[0] > 0
        assert (
            found.undefined[metric]
            == f"it depends on the order of the classes, which was {LABELS[ORDER].tolist()}"
        )
    for metric, values in theirs.items():
        assert ours[metric] == pytest.approx(values, nan_ok=True, **ROUNDING), metric
    assert found.confusion_matrix == expected.confusion_matrix
    if with_rows:
        for metric in (
            "multiclass/accuracy",
            "class/cedar/recall",
            "probability/log_loss",
            "spcc/ovr_macro",
        ):
            if metric in theirs:
                np.testing.assert_allclose(
                    found.influence(metric), expected.influence(metric), atol=1e-12
                )
    if expected.segments:
        for metric in ("multiclass/accuracy", "probability/log_loss"):
            frames = [one.segments["half"].to_frame(metric) for one in (found, expected)]
            np.testing.assert_allclose(*(frame["value"].to_numpy(float) for frame in frames))
    again = loads(found.to_json())
    assert again.with_label_order(other.labels).with_label_order(expected.labels) == again


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_same_predictions_in_two_orders_do_not_differ(name: str) -> None:
    first, second = made(**CASES[name]), made(ORDER, **CASES[name])
    found = paired_differences(first, second)
    assert found.paired
    for row in found.rows:
        if row.metric in ORDINAL:
            assert math.isnan(row.difference)
        elif math.isfinite(row.first):
            assert row.difference == pytest.approx(0, abs=1e-12), row.metric
            if math.isfinite(row.standard_error):
                assert row.standard_error == pytest.approx(0, abs=1e-12), row.metric
            # of a share, whose true difference may still be other than 0
            if math.isfinite(row.low):
                assert row.high == pytest.approx(-row.low), row.metric
                assert row.high > 0, row.metric
    accuracy = found["multiclass/accuracy"]
    assert (accuracy.difference, accuracy.standard_error) == (0, 0)


@pytest.mark.slow
def test_one_run_in_another_order_stands_with_the_others() -> None:
    runs = {f"run {k}": made(skill=1 + k / 10, seed=k) for k in range(4)}
    expected = compare(runs, rank_by="multiclass/accuracy")
    strayed = runs | {"run 3": made(ORDER, skill=1.3, seed=3)}
    for given in (strayed, dict(reversed(strayed.items()))):
        found = compare(given, rank_by="multiclass/accuracy")
        assert len(found.rankings) == 1
        assert {run.evaluation.labels for run in found.runs} == {tuple(LABELS)}
        np.testing.assert_allclose(
            found.to_frame().select_dtypes(float).to_numpy(),
            expected.to_frame().select_dtypes(float).to_numpy(),
        )
        assert found.summary() == expected.summary()


@pytest.mark.slow
def test_the_order_of_most_runs_wins_and_of_as_many_the_sorted_one() -> None:
    one, other = tuple(LABELS), tuple(LABELS[ORDER])
    two_and_one = {"a": made(ORDER), "b": made(ORDER, seed=1), "c": made(seed=2)}
    assert {
        run.evaluation.labels for run in compare(two_and_one, rank_by="multiclass/accuracy").runs
    } == {other}
    alike = {"a": made(ORDER), "b": made(seed=1)}
    assert {
        run.evaluation.labels for run in compare(alike, rank_by="multiclass/accuracy").runs
    } == {one}


@pytest.mark.slow
def test_gates_tests_and_merging_take_the_classes_in_any_order() -> None:
    first, second, other = made(), made(seed=1), made(ORDER, seed=1)
    for require in (
        (),
        ["multiclass/accuracy.difference >= -0.5"],
        ["class/cedar/recall.difference.low > -1"],
    ):
        expected, found = (judge(first, one, require=require) for one in (second, other))
        assert found.pairing is None
        assert (found.passed, found.to_dict()["gates"]) == (
            expected.passed,
            expected.to_dict()["gates"],
        )
    tests = [
        randomization_test(first, one, "multiclass/accuracy", n_resamples=20)
        for one in (second, other)
    ]
    assert tests[0] == tests[1]
    merged, straight = first + other, first + second
    assert merged.confusion_matrix == straight.confusion_matrix
    assert merged.metrics["probability/log_loss"] == pytest.approx(
        straight.metrics["probability/log_loss"]
    )


def test_two_classes_keep_their_positive_one() -> None:
    y, p = [0, 1] * 50, [0.2, 0.7, 0.6, 0.4] * 25
    straight = evaluate(y, y_prob=p, positive=1)
    turned = evaluate(y, y_prob=np.column_stack((p, 1 - np.array(p))), labels=[1, 0], positive=1)
    assert turned.labels == (1, 0)
    found = turned.with_label_order((0, 1))
    assert numbers(found) == {
        n: pytest.approx(v, nan_ok=True, **ROUNDING) for n, v in numbers(straight).items()
    }
    assert paired_differences(straight, turned)["binary/roc_auc"].standard_error == 0


@pytest.mark.slow
def test_a_metric_that_reads_the_order_says_so_and_others_stay() -> None:
    """Squared distance of the classes' places, an ordinal metric, means another thing in another order."""

    def distance(counts: np.ndarray) -> Any:
        k = np.arange(len(counts))
        return (counts * (k[:, None] - k) ** 2).sum() / counts.sum()

    own = [
        Metric("custom/distance", distance, better="lower"),
        Metric("custom/hits", lambda c: np.trace(c) / c.sum(), low=0, high=1),
    ]
    runs = {
        "a": made(extra_metrics=own),
        "b": made(seed=1, extra_metrics=own),
        "c": made(ORDER, extra_metrics=own),
    }
    found = compare(runs, rank_by="custom/distance")
    assert [run.name for run in found.runs] == ["a", "b"] or [run.name for run in found.runs] == [
        "b",
        "a",
    ]
    assert (
        "depends on the order of the classes, which was ['cedar', 'ash'" in found.left_out[0].reason
    )
    assert len(compare(runs, rank_by="custom/hits").runs) == 3
    for name in ORDINAL:
        weighted = compare(runs, rank_by=name)
        assert len(weighted.runs) == 2
        assert weighted.left_out[0].reason.startswith(
            f"{name} is undefined: it depends on the order of the classes"
        )
    two = evaluate([0, 1] * 20, [0, 1, 1, 1] * 10, positive=1)
    assert two.with_label_order([1, 0]).metrics[ORDINAL[0]] == two.metrics[ORDINAL[0]]
    moved = made().with_label_order(list(LABELS[ORDER]))
    assert loads(moved.to_json()) == moved
    assert math.isnan(loads(moved.to_json()).metrics[ORDINAL[1]])


def test_other_classes_are_refused() -> None:
    with pytest.raises(ValueError, match="labels must be the evaluation's labels"):
        made().with_label_order(["ash", "birch", "cedar"])
    y = ["a", "b"] * 10
    wide = paired_differences(
        evaluate(y, y), evaluate(y, y, labels=["a", "b", "c"]), metrics=["multiclass/accuracy"]
    )
    assert not wide.paired
    assert "different classes: ['a', 'b'] and ['a', 'b', 'c']" in wide.reason
