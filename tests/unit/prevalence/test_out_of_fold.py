"""Prevalence with out-of-fold scores: targets scored by the models of all folds, and by one model."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_gaussian_quantiles
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from cmtrack import estimate_prevalence, evaluate, evaluate_table
from cmtrack.evaluation import loads
from cmtrack.statistics import ScoreCounts
from support.problems import random_labels, random_problem, random_scores

FOLDS = 5
EXPOSED = (
    "the labelled scores are out of fold and come from other fits than the target's scores: if the fits differ, "
    "the estimate can be far off and its interval is not valid; "
    "to correct this, pass the target's scores by each fold's model"
)


def two(seed: int = 0, shift: float = 0.0) -> tuple[Any, Any, Any, list[Any]]:
    """Labels, scores and fold ids, and a target by five models whose scores differ by ``shift``; share .2."""
    rng = np.random.default_rng(seed)
    y, folds = random_labels(503, 2, rng), np.arange(503) % FOLDS
    offsets = shift * rng.normal(size=FOLDS)
    s = random_scores(y, 2.0, rng, shift=offsets[folds])
    return (
        y,
        s,
        folds,
        [random_scores(np.arange(800) < 160, 2.0, [seed, 1], shift=offset) for offset in offsets],
    )


def three(seed: int = 0) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(seed)
    y, _, held = random_problem(rng, 600, 3, 2.0)
    return (
        y,
        held,
        np.arange(600) % FOLDS,
        random_problem(rng, 700, 3, 2.0, shares=[0.6, 0.3, 0.1])[2],
    )


def numbers(e: Any) -> tuple[Any, ...]:
    e = e.refused or e  # some of the problems below do not fit, and are compared nevertheless
    return e.value, e.low, e.high, e.count, *e.realised, e.n_target, e.fit_pvalue, e.variance


@pytest.mark.parametrize("density", ["auto", "bins"])
@pytest.mark.parametrize("form", ["list", "array", "classes", "frames"])
def test_fold_models_that_are_one_model_give_the_very_estimate_of_one_target(
    density: str, form: str
) -> None:
    y, s, folds, (target, *_) = two()
    sets: Any = {
        "list": [target] * FOLDS,
        "array": np.stack([target] * FOLDS),
        "classes": np.stack([np.column_stack((1 - target, target))] * FOLDS),
        "frames": [pd.DataFrame({"0": 1 - target, "1": target})] * FOLDS,
    }[form]
    plain = estimate_prevalence(target, calibration=(y, s), density=density)
    mixed = estimate_prevalence(sets, calibration=(y, s, folds), density=density)
    assert numbers(mixed) == numbers(plain)
    assert mixed.n_target == 800  # not five times as many
    assert mixed.warnings == plain.warnings


@pytest.mark.parametrize("density", ["auto", "bins"])
def test_fold_models_that_are_one_model_of_three_classes(density: str) -> None:
    y, held, folds, target = three()
    plain = estimate_prevalence(target, calibration=(y, held), density=density)
    for sets in ([target] * FOLDS, np.stack([target] * FOLDS)):
        mixed = estimate_prevalence(sets, calibration=(y, held, folds), density=density)
        for label, ends in plain.by_class.items():
            assert mixed.by_class[label] == pytest.approx(ends, rel=1e-6)
        assert mixed.n_target == pytest.approx(700, rel=1e-12)
        if density != "bins":
            assert mixed.sd_labels_only == pytest.approx(plain.sd_labels_only, rel=1e-6)


def test_the_order_of_folds_and_their_names_change_nothing() -> None:
    y, s, folds, sets = two(shift=0.7)
    first = estimate_prevalence(sets, calibration=(y, s, folds))
    order = np.array([3, 0, 4, 1, 2])
    moved = estimate_prevalence(
        [sets[k] for k in order], calibration=(y, s, np.argsort(order)[folds])
    )
    assert numbers(moved) == numbers(first)
    named = estimate_prevalence(
        sets, calibration=(y, s, np.array(["a", "b", "c", "d", "e"])[folds])
    )
    assert numbers(named) == numbers(first)
    rows = np.random.default_rng(1).permutation(len(y))
    assert numbers(
        estimate_prevalence(sets, calibration=(y[rows], s[rows], folds[rows]))
    ) == numbers(first)


def test_a_fold_weighs_in_the_target_as_among_the_labelled_rows() -> None:
    """Weights by hand: the target's counts are the mean of the fold models', by labelled rows of the fold."""
    y, s, _, sets = two(shift=0.7)
    folds = np.repeat(np.arange(FOLDS), [300, 100, 50, 50, 3])
    found = estimate_prevalence(sets, calibration=(y, s, folds))
    values = np.concatenate(sets)
    weights = np.repeat(np.array([300, 100, 50, 50, 3]) / 503, 800)
    expected = ScoreCounts.from_scores(values, weights=weights, exact=True)
    np.testing.assert_array_equal(found.target.values, expected.values)
    np.testing.assert_allclose(found.target.counts, expected.counts, rtol=1e-12)
    assert found.n_target == pytest.approx(800, rel=1e-12)


@pytest.mark.slow
def test_fold_models_mend_a_learner_whose_fits_differ() -> None:
    """Logistic regression on one class around the other: its sign is chance, and out of fold it is another one."""
    errors = []
    for seed in range(6):
        x, y = make_gaussian_quantiles(n_samples=4000, n_features=2, n_classes=2, random_state=seed)
        x, y, rest, actual = x[:400], y[:400], x[400:], y[400:]
        rows = np.concatenate((np.flatnonzero(actual == 1)[:180], np.flatnonzero(actual == 0)[:20]))
        s, folds, models = np.empty(400), np.empty(400, dtype=int), []
        for k, (train, test) in enumerate(
            StratifiedKFold(10, shuffle=True, random_state=seed).split(x, y)
        ):
            models.append(LogisticRegression().fit(x[train], y[train]))
            s[test], folds[test] = models[-1].predict_proba(x[test])[:, 1], k
        sets = [model.predict_proba(rest[rows])[:, 1] for model in models]
        mixed = estimate_prevalence(sets, calibration=(y, s, folds))
        one = LogisticRegression().fit(x, y).predict_proba(rest[rows])[:, 1]
        exposed = estimate_prevalence(one, calibration=(y, s, folds))
        assert mixed.shift.low <= 0.9 <= mixed.shift.high
        assert EXPOSED not in mixed.warnings
        assert exposed.warnings[0] == EXPOSED
        errors.append((abs(mixed.shift.value - 0.9), abs(exposed.shift.value - 0.9)))
    mean = np.mean(errors, axis=0)
    assert mean[0] < 0.1
    assert mean[1] > 2 * mean[0]


@pytest.mark.slow
@pytest.mark.parametrize("interval", ["adjusted", "naive"])
def test_one_target_is_warned_of_and_its_interval_covers_the_estimates_without_each_fold(
    interval: str,
) -> None:
    y, s, folds, (target, *_) = two()
    s = np.where(folds == 0, s**8, s)  # a fold whose model is far off
    plain = estimate_prevalence(target, calibration=(y, s), interval=interval)
    exposed = estimate_prevalence(target, calibration=(y, s, folds), interval=interval)
    values = [
        estimate_prevalence(
            target, calibration=(y[folds != k], s[folds != k]), interval=interval
        ).shift.value
        for k in range(FOLDS)
    ]
    assert exposed.warnings == (EXPOSED, *plain.warnings)
    plain, exposed = plain.refused or plain, exposed.refused or exposed
    assert exposed.value == plain.value
    assert (exposed.low, exposed.high) == (min(plain.low, *values), max(plain.high, *values))
    assert exposed.realised == (min(plain.realised[0], *values), max(plain.realised[1], *values))
    if interval == "naive":
        assert (exposed.low, exposed.high) != (plain.low, plain.high)


@pytest.mark.slow
def test_one_target_of_three_classes_is_warned_of_and_covered() -> None:
    y, held, folds, target = three()
    held = np.where((folds == 0)[:, None], held[:, [1, 0, 2]], held)
    plain = estimate_prevalence(target, calibration=(y, held))
    exposed = estimate_prevalence(target, calibration=(y, held, folds))
    assert exposed.warnings[0] == EXPOSED
    # The shares differ so much that the wider intervals are also disjoint.
    for estimate in (plain, exposed):
        assert "the share of “0” is 74.8%" in estimate.warnings[-1]
    assert len(exposed.warnings) == len(plain.warnings) + 1
    parts = [
        estimate_prevalence(target, calibration=(y[folds != k], held[folds != k]))
        for k in range(FOLDS)
    ]
    for label, (value, low, high) in plain.by_class.items():
        values = [part.by_class[label][0] for part in parts]
        assert exposed.by_class[label] == (value, min(low, *values), max(high, *values))
        values = [part.calibration_by_class[label].value for part in parts]
        value, low, high = plain.calibration_by_class[label]
        assert exposed.calibration_by_class[label] == (value, min(low, *values), max(high, *values))
    assert (exposed.low, exposed.high) == exposed.by_class[2][1:]
    assert exposed.by_class[1][2] > plain.by_class[1][2]


def check_exposed(
    target: Any, calibration: tuple[Any, Any, Any], left_out: list[Any], **options: Any
) -> Any:
    """Check that an interval reaches over the estimates without each of some groups of rows, and no others."""
    y, s, _ = calibration
    plain = estimate_prevalence(target, calibration=(y, s), **options).shift
    exposed = estimate_prevalence(target, calibration=calibration, **options)
    values = [
        estimate_prevalence(target, calibration=(y[~rows], s[~rows]), **options).shift.value
        for rows in left_out
    ]
    assert exposed.warnings[0] == EXPOSED
    expected = min(plain.low, *values), max(plain.high, *values)
    assert expected != (plain.low, plain.high)
    assert (exposed.shift.low, exposed.shift.high) == expected
    return exposed


@pytest.mark.slow
def test_a_fold_that_holds_a_whole_class_is_not_left_out() -> None:
    y = np.repeat([0, 1], [40, 10])
    s, folds = np.linspace(0, 1, 50), np.repeat([0, 1, 2], [20, 20, 10])
    target = np.linspace(0, 1, 30)
    left_out = [folds == 0, folds == 1]
    check_exposed(target, (y, s, folds), left_out, interval="naive", confidence_level=0.1)
    exposed = estimate_prevalence(target, calibration=(y, s, folds))
    inside = evaluate([0, 1], y_prob=[0.2, 0.7], calibration=(y, s, folds), target=target)
    assert numbers(inside.prevalence) == numbers(exposed)


@pytest.mark.slow
def test_of_many_folds_several_are_left_out_together() -> None:
    """Of 500 folds of one row each, ten neighbours at a time: 50 estimates."""
    y = np.arange(500) % 2
    s = random_scores(y, 1.5, 3, digits=1)
    target = random_scores(np.arange(20_000) < 4_000, 1.5, 4, digits=1)
    left_out = [np.arange(500) // 10 == k for k in range(50)]
    options = {"density": "bins", "interval": "naive", "confidence_level": 0.1}
    check_exposed(target, (y, s, np.arange(500)), left_out, **options)


@pytest.mark.parametrize("how", ["models", "one", pytest.param("rows", marks=pytest.mark.slow)])
def test_evaluate_agrees_with_estimate_prevalence_and_keeps_it(how: str) -> None:
    y, s, folds, sets = two(shift=0.7)
    actual = random_labels(300, seed=2)
    p = random_scores(actual, 2.0, 3)
    target = {"models": sets, "one": sets[0], "rows": None}[how]
    found = evaluate(actual, y_prob=p, calibration=(y, s, folds), target=target)
    expected = estimate_prevalence(p if target is None else target, calibration=(y, s, folds))
    assert numbers(found.prevalence)[:7] == pytest.approx(numbers(expected)[:7], rel=1e-9)
    assert (EXPOSED in found.warnings) == (how != "models")
    assert found.metrics["prevalence/calibrated"] == pytest.approx(
        found.prevalence.value, abs=0, nan_ok=True
    )
    back = loads(found.to_json())
    assert back == found
    assert numbers(back.prevalence) == numbers(found.prevalence)
    assert back.warnings == found.warnings
    table = pd.DataFrame({"y": actual, "p": p})
    of_table = evaluate_table(
        table, y_true="y", y_prob="p", calibration=(y, s, folds), target=target
    )
    assert numbers(of_table.prevalence)[:7] == pytest.approx(
        numbers(found.prevalence)[:7], rel=1e-9
    )
    assert of_table.warnings == found.warnings


@pytest.mark.parametrize("how", ["models", "one"])
def test_evaluate_of_three_classes(how: str) -> None:
    y, held, folds, target = three()
    held = np.where((folds == 0)[:, None], held[:, [1, 0, 2]], held)
    plain = evaluate(y, y_prob=held, calibration=(y, held), target=target)
    found = evaluate(
        y,
        y_prob=held,
        calibration=(y, held, folds),
        target=[target] * FOLDS if how == "models" else target,
    )
    name = "prevalence/1/calibrated"
    assert found.metrics[name] == pytest.approx(plain.metrics[name], rel=1e-9)
    assert (EXPOSED in found.warnings) == (how == "one")
    if how == "models":
        assert found.intervals[name] == pytest.approx(plain.intervals[name], rel=1e-9)
    else:
        expected = estimate_prevalence(
            target, calibration=(y, held, folds), density="bins"
        ).by_class[1]
        assert found.intervals[name] == pytest.approx(expected[1:], rel=1e-9)
    assert EXPOSED not in found.with_sections(["multiclass"]).warnings
    back = loads(found.to_json())
    assert back == found
    assert back.intervals == found.intervals
    assert back.warnings == found.warnings


@pytest.mark.slow
def test_sums_of_evaluations_keep_the_folds() -> None:
    y, s, folds, _ = two()
    parts = [
        evaluate(y[rows], y_prob=s[rows], calibration=(y, s, folds))
        for rows in (slice(0, 200), slice(200, None))
    ]
    whole = evaluate(y, y_prob=s, calibration=(y, s, folds))
    assert numbers((parts[0] + parts[1]).prevalence)[:7] == pytest.approx(
        numbers(whole.prevalence)[:7], rel=1e-9
    )
    assert whole.statistics.labelled is not None
    assert (
        len(whole.statistics.labelled.counts) == 2 * FOLDS
    )  # of each fold the negatives and positives


@pytest.mark.parametrize("classes", [2, 3])
def test_blocks_of_folds_that_are_no_blocks_are_refused(classes: int) -> None:
    y, s, folds, target = (*two()[:3], two()[3][0]) if classes == 2 else three()
    data = json.loads(evaluate(y, y_prob=s, calibration=(y, s, folds), target=target).to_json())
    name = "labelled" if classes == 2 else "labelled_tops"
    # a single row
    data["statistics"][name] = data["statistics"]["target" if classes == 2 else "target_tops"]
    with pytest.raises(ValueError, match=f"{name} must have one row for each of {classes} classes"):
        loads(json.dumps(data))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"ids": [0] * 503}, "fold_ids must name at least two folds, got \\[0\\]"),
        ({"ids": [0, 1]}, "fold_ids must have one id for each of the 503 labelled rows, got 2"),
        ({"ids": [0.5, np.nan] * 251 + [0.5]}, "fold_ids"),
        (
            {"sets": 4},
            "must be one score array for each fold, in the sorted order of the fold ids: 5, got 4",
        ),
        (
            {"short": True},
            "must have the same number of rows \\(at least one\\) for each fold, got \\[800, 800, 800, 800, 799\\]",
        ),
        ({"empty": True}, "must"),
        (
            {"calibration": (1,)},
            "calibration must be \\(y, scores\\) or \\(y, scores, fold_ids\\).*got 1 values",
        ),
        (
            {"calibration": 7},
            "calibration must be \\(y, scores\\) or \\(y, scores, fold_ids\\).*got 7",
        ),
        ({"calibration": "abc"}, "calibration must be .*got 'abc'"),
    ],
    ids=["one fold", "few ids", "missing", "few sets", "lengths", "empty", "one", "number", "text"],
)
def test_wrong_folds_are_refused(change: dict[str, Any], text: str) -> None:
    y, s, folds, sets = two()
    if change.get("short"):
        sets[4] = sets[4][:-1]
    if change.get("empty"):
        sets = [one[:0] for one in sets]
    sets = sets[: change.get("sets", FOLDS)]
    calibration = change.get("calibration", (y, s, change.get("ids", folds)))
    with pytest.raises(ValueError, match=text):
        estimate_prevalence(sets, calibration=calibration)
    with pytest.raises(ValueError, match=text):
        evaluate(y, y_prob=s, calibration=calibration, target=sets)


def test_rows_of_pandas_go_by_their_index() -> None:
    y, s, folds, sets = two(shift=0.7)
    index = pd.Index(np.arange(503)[::-1] + 10)
    rows = np.random.default_rng(3).permutation(503)
    shuffled = pd.Series(folds, index).iloc[rows]
    found = evaluate(
        y, y_prob=s, calibration=(pd.Series(y, index), pd.Series(s, index), shuffled), target=sets
    )
    assert found == evaluate(y, y_prob=s, calibration=(y, s, folds), target=sets)
