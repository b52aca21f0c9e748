"""Intervals with sampling weights where few rows are errors: no narrower than without an error."""

from __future__ import annotations

import numpy as np
import pytest

from cmtrack import Accumulator, Metric, compare, evaluate
from cmtrack.metrics import wilson

ACTUAL = np.arange(100) % 2
WEIGHTS = np.where(np.arange(100) == 0, 0.05, 1.0)
ONE_WRONG = np.where(np.arange(100) == 0, 1, ACTUAL)
KISH = WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum()


def _width(interval):
    return interval[1] - interval[0]


@pytest.mark.parametrize(
    "metric",
    [
        "multiclass/accuracy",
        "multiclass/balanced_accuracy",
        "multiclass/f1_macro",
        "class/0/recall",
        "binary/specificity",
        "binary/balanced_accuracy",
        "binary/fp",
    ],
)
def test_one_light_error_makes_no_interval_narrower_than_none(metric):
    wrong = evaluate(ACTUAL, ONE_WRONG, sample_weight=WEIGHTS)
    right = evaluate(ACTUAL, ACTUAL, sample_weight=WEIGHTS)
    assert _width(wrong.intervals[metric]) > 0.98 * _width(right.intervals[metric])


def test_the_size_of_a_share_is_the_smaller_one():
    found = evaluate(ACTUAL, ONE_WRONG, sample_weight=WEIGHTS)
    share = found.metrics["multiclass/accuracy"]
    assert found.size_of("multiclass/accuracy") == pytest.approx(KISH)
    assert found.intervals["multiclass/accuracy"] == pytest.approx(wilson(share, KISH))
    # errors of heavy rows only: the standard error says more
    heavy = np.where(np.arange(100) < 30, 5.5, 1.0)
    predicted = np.where(np.arange(100) < 8, 1 - ACTUAL, ACTUAL)
    other = evaluate(ACTUAL, predicted, sample_weight=heavy)
    share, error = (part["multiclass/accuracy"] for part in (other.metrics, other.standard_errors))
    assert other.size_of("multiclass/accuracy") == pytest.approx(share * (1 - share) / error**2)
    without = evaluate(ACTUAL, ACTUAL, sample_weight=WEIGHTS)
    assert without.size_of("multiclass/accuracy") == pytest.approx(KISH)


def test_the_standard_error_stays_that_of_the_sandwich():
    found = evaluate(ACTUAL, ONE_WRONG, sample_weight=WEIGHTS)
    wrong = (ACTUAL != ONE_WRONG) - (1 - found.metrics["multiclass/accuracy"])
    sandwich = np.sqrt(((WEIGHTS * wrong) ** 2).sum()) / WEIGHTS.sum()
    assert found.standard_errors["multiclass/accuracy"] == pytest.approx(sandwich)


def test_counts_of_equal_rows_change_nothing():
    times = np.where(np.arange(100) % 7 == 0, 3, 1)
    counted = evaluate(ACTUAL, ONE_WRONG, sample_weight=times)
    repeated = evaluate(np.repeat(ACTUAL, times), np.repeat(ONE_WRONG, times))
    for metric, interval in repeated.intervals.items():
        assert counted.intervals[metric] == pytest.approx(interval), metric
    assert counted.warnings == repeated.warnings


def test_a_custom_share_is_no_narrower_either():
    share = Metric(
        "custom/accuracy", lambda counts: counts.trace() / counts.sum(), interval="wilson"
    )
    found = evaluate(ACTUAL, ONE_WRONG, sample_weight=WEIGHTS, extra_metrics=[share])
    assert found.intervals["custom/accuracy"][0] < 0.98


def test_the_warning_counts_effective_rows_and_names_metrics_of_labels():
    (few,) = [
        text
        for text in evaluate(ACTUAL, ONE_WRONG, sample_weight=WEIGHTS).warnings
        if "errors" in text
    ]
    assert few == (
        "Only 1 effective rows are errors: the intervals of accuracy, recall, specificity "
        "and balanced accuracy are approximate"
    )
    assert not [text for text in evaluate(ACTUAL, ONE_WRONG).warnings if "errors" in text]


def test_one_light_broken_row_makes_no_flips_narrower_than_none():
    runs = {
        "old": evaluate(ACTUAL, ACTUAL, sample_weight=WEIGHTS, row_ids=range(100)),
        "new": evaluate(ACTUAL, ONE_WRONG, sample_weight=WEIGHTS, row_ids=range(100)),
    }
    frame = compare(runs).flips("old", "new").to_frame()
    assert frame["broken"][0] == pytest.approx(0.05 / WEIGHTS.sum())
    assert frame["broken_high"][0] > 0.98 * frame["fixed_high"][0]


def test_rejected_rows_use_the_smaller_size_too():
    scores = np.where(ONE_WRONG == 1, 0.9, 0.1)
    found = evaluate(ACTUAL, y_prob=scores, sample_weight=WEIGHTS)
    assert found.reject(0.0).high > 0.03


@pytest.mark.parametrize(
    "weights", [np.full(100, 1e300), np.full(100, 1e-320), np.r_[1e300, np.ones(99)]]
)
def test_extreme_weights_are_refused_with_the_rule(weights):
    for door in (
        evaluate,
        lambda *rows, **words: Accumulator(labels=[0, 1]).update(*rows, **words),
    ):
        with pytest.raises(
            ValueError,
            match=r"sample_weight must be 0 or between 1e-30 and 1e\+30, got .* at row 0",
        ):
            door(ACTUAL, ONE_WRONG, sample_weight=weights)


@pytest.mark.parametrize(
    "weights",
    [
        np.full(100, 1e30),
        np.full(100, 1e-30),
        np.r_[
            1e30,
            np.full(99, 1e-30),
        ],
    ],
)
def test_weights_within_the_range_give_intervals(weights):
    scores = np.linspace(0.01, 0.99, 100)
    found = evaluate(ACTUAL, y_prob=scores, sample_weight=weights)
    assert np.isfinite(found.intervals["multiclass/accuracy"]).all()
