"""A past evaluation under another grouping: counts as if evaluated anew, and what is lost is said."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import cmtrack
from cmtrack import Evaluation, Grouping
from support.problems import random_problem

Y, PRED, P = random_problem(11, n=240, k=5)
HELD_Y, _, HELD_P = random_problem(12, n=200, k=5)
WEIGHTS = np.random.default_rng(0).gamma(2.0, 1.0, 240)

THREE = Grouping({"a": [0, 1], "b": [2], "c": [3, 4]}, {"a": "strict", "c": [(3, 4)]})
LOW_HIGH = Grouping({"low": [0, 1], "high": [2, 3, 4]}, "strict")
RELAXED = Grouping({"low": [0, 1], "high": [2, 3, 4]}, "relaxed", name="other")
HYBRID = Grouping({"low": [0, 1], "high": [2, 3, 4]}, {"high": [(2, 3)], "low": "strict"})
ODD_EVEN = Grouping({"even": [0, 2, 4], "odd": [1, 3]}, "strict")
CHAIN = THREE.then(Grouping({"rest": ["a"], "high": ["b", "c"]}, "relaxed"))
GROUPINGS = {
    "none": None,
    "three": THREE,
    "low_high": LOW_HIGH,
    "relaxed": RELAXED,
    "hybrid": HYBRID,
    "odd_even": ODD_EVEN,
    "chain": CHAIN,
}

HELD_OUT: dict[str, dict[str, Any]] = {
    "calibration": {"calibration": (HELD_Y, HELD_P)},
    "target": {"target": HELD_P},
    "both": {"calibration": (HELD_Y, HELD_P), "target": HELD_P},
}

FROM_SCORES = (
    "binary/roc",
    "binary/average",
    "binary/ks",
    "spcc/binary",
    "spcc/d_",
    "prevalence/",
    "probability/",
    "calibration/",
    "confidence/",
)


def evaluate(*args: Any, **options: Any) -> Evaluation:
    """An evaluation as it is loaded: statistics only."""
    return replace(cmtrack.evaluate(*args, **options), rows=None)


@cache
def evaluated(
    grouping: str, given: str = "", probabilities: bool = True, weighted: bool = False
) -> Evaluation:
    """One with its rows, made once for all tests that have it."""
    return cmtrack.evaluate(
        Y,
        PRED,
        y_prob=P if probabilities else None,
        grouping=GROUPINGS[grouping],
        sample_weight=WEIGHTS if weighted else None,
        **HELD_OUT.get(given, {}),
    )


@cache
def loaded(grouping: str, probabilities: bool, weighted: bool) -> Evaluation:
    return replace(evaluated(grouping, "", probabilities, weighted), rows=None)


def from_counts(evaluation: Evaluation) -> dict[str, float]:
    return {name: v for name, v in evaluation.metrics.items() if not name.startswith(FROM_SCORES)}


@pytest.mark.thin(5)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("probabilities", [False, True])
@pytest.mark.parametrize("after", [name for name in GROUPINGS if name != "none"])
@pytest.mark.parametrize("before", GROUPINGS)
def test_counts_are_those_of_a_fresh_evaluation(
    before: str, after: str, probabilities: bool, weighted: bool
) -> None:
    grouping = GROUPINGS[after]
    assert grouping is not None
    fresh = loaded(after, probabilities, weighted)
    regrouped = loaded(before, probabilities, weighted).regroup(grouping)
    assert regrouped.reduced == fresh.reduced
    assert regrouped.binary == fresh.binary
    assert regrouped.positive == fresh.positive
    assert regrouped.grouping == grouping
    assert from_counts(regrouped) == pytest.approx(from_counts(fresh), rel=1e-12, nan_ok=True)
    assert set(regrouped.metrics) <= set(fresh.metrics)
    left_out = set(fresh.metrics) - set(regrouped.metrics)
    assert bool(left_out) == bool(regrouped.notes)
    assert not left_out or any(
        "are missing" in warning or "is missing" in warning for warning in regrouped.warnings
    )
    shared = {
        name: regrouped.intervals[name] for name in regrouped.intervals if name in fresh.intervals
    }
    for name, ends in shared.items():
        assert ends == pytest.approx(fresh.intervals[name], rel=1e-9), name
    if not probabilities:
        assert not left_out


def lost_parts(evaluation: Evaluation) -> list[str]:
    """Return the names of what a regrouping lost, as they are stored."""
    return sorted(part.name for part in evaluation.lost)


@pytest.mark.slow
@pytest.mark.parametrize("given", [False, True])
def test_scores_of_the_same_group_stay(given: bool) -> None:
    options: dict[str, Any] = {"calibration": (HELD_Y, HELD_P), "target": HELD_P} if given else {}
    strict = evaluate(Y, y_prob=P, grouping=LOW_HIGH, **options)
    relaxed = evaluate(Y, y_prob=P, grouping=RELAXED, **options)
    loosened = strict.regroup(RELAXED)
    # now hits of other pairs
    of_hits = {name for name in relaxed.metrics if name.startswith("confidence/other/")}
    expected = {name: value for name, value in relaxed.metrics.items() if name not in of_hits}
    assert loosened.metrics == pytest.approx(expected, rel=1e-12, nan_ok=True)
    assert loosened.intervals.keys() == relaxed.intervals.keys() - of_hits
    assert loosened.roc is not None
    assert relaxed.roc is not None
    np.testing.assert_array_equal(loosened.roc.tp, relaxed.roc.tp)
    assert lost_parts(loosened) == ["HITS"]
    (note,) = loosened.notes
    assert note.startswith(
        "regrouped without the data: the calibration of the confidence is missing for"
    )
    assert strict.regroup(LOW_HIGH) == strict
    weighted = evaluate(Y, y_prob=P, grouping=LOW_HIGH, sample_weight=WEIGHTS).regroup(RELAXED)
    fresh = evaluate(Y, y_prob=P, grouping=RELAXED, sample_weight=WEIGHTS)
    assert weighted.intervals["binary/roc_auc"] == pytest.approx(
        fresh.intervals["binary/roc_auc"], rel=1e-10
    )


@pytest.mark.parametrize(
    "path",
    [("relaxed", "low_high"), ("low_high", "odd_even"), ("relaxed", "hybrid"), ("none", "relaxed")],
)
def test_what_is_lost_stays_said(path: tuple[str, str]) -> None:
    before, after = (GROUPINGS[name] for name in path)
    assert after is not None
    first = evaluate(Y, y_prob=P, grouping=before).regroup(after)
    assert first.roc is None
    assert first.prevalence is None
    assert "binary/roc_auc" not in first.metrics
    assert any("ROC, sPCC and calibrated prevalence" in warning for warning in first.warnings)
    again = first.regroup(after)
    assert again.roc is None
    assert again.notes == first.notes


def test_class_prevalence_is_said_to_be_lost() -> None:
    regrouped = evaluate(Y, y_prob=P, grouping=LOW_HIGH).regroup(THREE)
    assert "prevalence/0/expected" in regrouped.metrics
    assert "prevalence/0/calibrated" not in regrouped.metrics
    assert any(
        "calibrated prevalence of each class is missing" in warning
        for warning in regrouped.warnings
    )
    kept = evaluate(Y, y_prob=P).regroup(THREE)
    assert "prevalence/0/calibrated" in kept.metrics
    assert lost_parts(kept) == ["HITS", "LOSSES"]
    losses, hits = kept.notes
    assert "log loss and Brier score are missing" in losses
    assert "the calibration of the confidence" in hits


def test_another_positive_group() -> None:
    evaluation = evaluate(Y, y_prob=P, grouping=LOW_HIGH)
    turned = evaluation.regroup(LOW_HIGH, positive="low")
    assert turned.positive == "low"
    assert turned.negative == "high"
    assert turned.metrics["binary/recall"] == evaluation.metrics["binary/specificity"]
    assert turned.metrics["prevalence/expected"] == pytest.approx(
        1 - evaluation.metrics["prevalence/expected"]
    )
    assert turned.notes
    fresh = evaluate(Y, y_prob=P, grouping=LOW_HIGH, positive="low")
    assert fresh.binary == turned.binary
    assert fresh.grouping == turned.grouping


def test_regrouped_shards_merge() -> None:
    halves = [
        evaluate(Y[i], y_prob=P[i], grouping=LOW_HIGH).regroup(ODD_EVEN)
        for i in (slice(120), slice(120, 240))
    ]
    merged = halves[0] + halves[1]
    whole = evaluate(Y, y_prob=P, grouping=LOW_HIGH).regroup(ODD_EVEN)
    assert merged.metrics == pytest.approx(whole.metrics, rel=1e-10)
    assert merged.warnings == whole.warnings


def test_regrouped_is_saved(tmp_path: Any) -> None:
    regrouped = evaluate(Y, y_prob=P, grouping=LOW_HIGH).regroup(ODD_EVEN)
    regrouped.save(tmp_path)
    loaded = Evaluation.load(tmp_path)
    assert loaded == regrouped
    assert loaded.warnings == regrouped.warnings


@pytest.mark.parametrize("after", [name for name in GROUPINGS if name != "none"])
@pytest.mark.parametrize("before", GROUPINGS)
def test_with_its_rows_nothing_is_lost(before: str, after: str) -> None:
    grouping = GROUPINGS[after]
    assert grouping is not None
    regrouped = evaluated(before).regroup(grouping)
    assert regrouped == evaluated(after)
    assert regrouped.notes == ()


def test_a_calibration_set_of_the_old_group_is_not_used_for_a_new_one() -> None:
    after = evaluate(Y, y_prob=P, grouping=LOW_HIGH, calibration=(HELD_Y, HELD_P)).regroup(ODD_EVEN)
    assert after.prevalence is None
    assert after.notes


def test_what_a_regrouping_lost_is_stored_by_name() -> None:
    first = evaluate(Y, y_prob=P, grouping=LOW_HIGH, calibration=(HELD_Y, HELD_P))
    stored = json.loads(first.regroup(ODD_EVEN).to_json())
    assert stored["lost"] == ["LOSSES", "SCORES"]
    bare = cmtrack.Evaluation.from_data(stored)
    assert lost_parts(bare) == ["LOSSES", "SCORES"]
    scores, losses = bare.notes
    assert "ROC, sPCC and calibrated prevalence of the positive group are missing" in scores
    assert "log loss and Brier score are missing" in losses
    assert lost_parts(first) == []


@pytest.mark.thin(5)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("after", ["three", "odd_even", "chain"])
@pytest.mark.parametrize("before", ["none", "low_high", "relaxed"])
@pytest.mark.parametrize("given", HELD_OUT)
def test_with_its_rows_only_the_calibrated_prevalence_falls_back(
    given: str, before: str, after: str, weighted: bool
) -> None:
    grouping = GROUPINGS[after]
    assert grouping is not None
    regrouped = evaluated(before, given, weighted=weighted).regroup(grouping)
    fresh = evaluated(after, weighted=weighted)
    # alike: all still serves
    if (before, after) in (("none", "three"), ("low_high", "chain"), ("relaxed", "chain")):
        fresh = evaluated(after, given, weighted=weighted)
        assert regrouped.notes == ()
    else:
        (note,) = regrouped.notes
        assert "scores were stored for the former grouping only" in note
        assert ("target" in note) == (given != "calibration")
        assert "cross-fitted" in note
        again = regrouped.regroup(grouping)
        assert again.notes == regrouped.notes, "what was lost once stays lost"
    assert regrouped.statistics == fresh.statistics
    assert regrouped.metrics == pytest.approx(fresh.metrics, nan_ok=True)
    assert regrouped.intervals.keys() == fresh.intervals.keys()


@pytest.mark.parametrize("given", HELD_OUT)
@pytest.mark.parametrize("after", ["relaxed", "hybrid", "low_high"])
def test_labelled_scores_of_the_same_group_still_serve(after: str, given: str) -> None:
    grouping = GROUPINGS[after]
    assert grouping is not None
    regrouped = evaluated("low_high", given).regroup(grouping)
    assert regrouped == evaluated(after, given)
    assert regrouped.notes == ()
    assert regrouped.prevalence is not None


def test_the_note_goes_where_the_prevalence_goes() -> None:
    first = cmtrack.evaluate(Y, y_prob=P, grouping=LOW_HIGH, calibration=(HELD_Y, HELD_P)).regroup(
        ODD_EVEN
    )
    assert any("cross-fitted" in note for note in replace(first, rows=None).regroup(ODD_EVEN).notes)
    lost = replace(first, rows=None).regroup(LOW_HIGH)
    assert lost.prevalence is None
    assert not any("cross-fitted" in note for note in lost.notes)


@pytest.mark.slow
def test_rows_that_belong_together_are_known_with_a_calibration_set() -> None:
    options: dict[str, Any] = {"groups": np.arange(240) // 3}
    first = cmtrack.evaluate(
        Y, PRED, y_prob=P, grouping=LOW_HIGH, calibration=(HELD_Y, HELD_P), **options
    )
    regrouped = first.regroup(ODD_EVEN)
    fresh = cmtrack.evaluate(Y, PRED, y_prob=P, grouping=ODD_EVEN, **options)
    assert regrouped.cluster_errors == fresh.cluster_errors
