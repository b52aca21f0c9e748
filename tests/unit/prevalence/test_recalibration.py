"""The share if a score means the same as in the labelled rows, next to an estimate or instead of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cmtrack
from cmtrack import PrevalenceEstimate, estimate_prevalence
from cmtrack.report import verdict

BINS = np.array([0.1, 0.3, 0.6, 0.9])
Y = np.repeat([1, 0], [100, 200])
SCORES = np.concatenate((np.repeat(BINS, [2, 8, 30, 60]), np.repeat(BINS, [140, 40, 16, 4])))
OTHER_SHARES = np.repeat(BINS, [1300, 420, 190, 90])
OTHER_SCORES = np.repeat(BINS, [120, 60, 400, 20])
LIKE_LABELLED = np.repeat(BINS, [142, 48, 46, 64])
ADVICE = "labelled rows of the target would show which share is correct"


def binned(target: Any, **options: Any) -> PrevalenceEstimate:
    found = estimate_prevalence(target, calibration=(Y, SCORES), density="bins", **options)
    assert isinstance(found, PrevalenceEstimate)
    return found


def test_both_shares_of_a_target_whose_intervals_are_disjoint() -> None:
    """TV-N7, with the interval for the population."""
    estimate = binned(OTHER_SHARES)
    assert estimate.shift.value == pytest.approx(0.04241632138)
    value, low, high = estimate.calibration
    assert value == pytest.approx(0.1494016338)
    error = 2.244437858e-4 + 3.113333802e-5
    size = value * (1 - value) / error
    z = 1.959963984540054
    middle = (value + z**2 / 2 / size) / (1 + z**2 / size)
    reach = z / (1 + z**2 / size) * np.sqrt(value * (1 - value) / size + (z / 2 / size) ** 2)
    assert (low, high) == pytest.approx((middle - reach, middle + reach))
    assert estimate.value == estimate.shift.value
    assert estimate.warnings[-1] == (
        "the share of “1” is 4.2% [0.9, 8.5] if within each class the scores are distributed as in the "
        "labelled rows, and 14.9% [12.1, 18.3] if a score means the same as in the labelled rows; "
        f"about 44 {ADVICE}"
    )
    assert repr(estimate).endswith(
        "; 0.149 [0.121, 0.183] if a score means the same as in the labelled rows; "
        f"about 44 {ADVICE})"
    )
    page = estimate._repr_html_()
    assert "14.9% [12.1, 18.3]" in page
    assert f"about 44 {ADVICE}" in page
    # This evaluation has other rows than the target.
    evaluation = cmtrack.evaluate(Y, y_prob=SCORES, target=OTHER_SHARES)
    assert evaluation.metrics["prevalence/calibrated"] == pytest.approx(estimate.value)
    assert evaluation.metrics["prevalence/recalibrated"] == pytest.approx(value)
    assert evaluation.warnings.count(estimate.warnings[-1]) == 1
    words = " ".join(verdict(evaluation))
    assert (
        "If a score means the same as in the labelled rows, the share of “1” is 14.9% [12.1, "
        "18.3]. "
        f"About 44 {ADVICE}." in words
    )


def test_shares_that_agree_are_said_once() -> None:
    estimate = binned(LIKE_LABELLED)
    assert estimate.calibration.low < estimate.value < estimate.calibration.high
    assert not [warning for warning in estimate.warnings if ADVICE in warning]
    assert estimate.other_share() == ""
    assert "a score means" not in repr(estimate) + estimate._repr_html_()


def test_a_refused_estimate_states_the_other_share() -> None:
    """The second target of TV-N7, with the labelled rows of TV-N1's cell a."""
    y = np.repeat([1, 0], [34, 62])
    scores = np.concatenate((np.repeat(BINS, [1, 4, 9, 20]), np.repeat(BINS, [40, 15, 5, 2])))
    estimate = estimate_prevalence(OTHER_SCORES, calibration=(y, scores), density="bins")
    assert estimate.shift.value == pytest.approx(0.6968775883)
    assert estimate.fit_pvalue == pytest.approx(3.219646771e-15)
    assert np.isnan([estimate.value, estimate.low, estimate.high, estimate.count]).all()
    assert repr(estimate).startswith("PrevalenceEstimate(1: no estimate of 600; the target's")
    assert "labelled rows: 0.473 [0.314, 0.639]. About 280 labelled rows of this" in repr(estimate)
    page = estimate._repr_html_()
    assert "<img" not in page
    assert "the share of “1” is 47.3% [31.4, 63.9]. About 280 labelled rows of this target" in page


def test_the_number_does_not_depend_on_the_labels_of_the_classes() -> None:
    turned = estimate_prevalence(
        1 - OTHER_SCORES, calibration=(1 - Y, 1 - SCORES), density="bins", positive=1
    )
    value, low, high = binned(OTHER_SCORES).calibration
    assert turned.calibration == pytest.approx((1 - value, 1 - high, 1 - low))


def three_classes(power: float) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.6, 0.6, 0.6], 2_000)
    y = (rng.random(2_000)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    target = p[1_000:] ** power
    return y[:1_000], p[:1_000], target / target.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("density", ["auto", "bins"])
def test_each_of_three_classes_has_its_share_even_if_none_is_estimated(density: str) -> None:
    y, p, target = three_classes(4)
    estimate = estimate_prevalence(target, calibration=(y, p), density=density)
    assert estimate.refused is not None
    shares = estimate.calibration_by_class
    assert list(shares) == [0, 1, 2]
    assert sum(share.value for share in shares.values()) == pytest.approx(1)
    assert estimate.calibration == shares[2]
    assert all(share.low < share.value < share.high for share in shares.values())
    assert "If a score means the same as in the labelled rows: 0: 0." in repr(estimate)
    assert "labelled rows of this target would give ±0.05" in repr(estimate)
    page = estimate._repr_html_()
    assert "they are as listed below" in page
    assert f"{shares[1].value:.3f}" in page
    assert list(estimate.to_frame()["calibration"]) == [share.value for share in shares.values()]

    evaluation = cmtrack.evaluate(y, y_prob=p, target=target)
    for label, share in shares.items():
        name = f"prevalence/{label}/recalibrated"
        assert np.isnan(evaluation.metrics[f"prevalence/{label}/calibrated"])
        assert evaluation.metrics[name] == pytest.approx(share.value)
        assert evaluation.intervals[name] == pytest.approx(share[1:])


def test_a_class_without_labelled_rows_has_no_share() -> None:
    y, p, _ = three_classes(1)
    evaluation = cmtrack.evaluate(y[y < 2], y_prob=p[y < 2], labels=[0, 1, 2])
    name = "prevalence/2/recalibrated"
    assert np.isnan(evaluation.metrics[name])
    assert evaluation.undefined[name] == "no labelled rows of this class"


def test_weights_count_as_effective_rows() -> None:
    """Weights that are all equal change nothing, and uneven weights widen the interval."""
    rng = np.random.default_rng(0)
    plain = cmtrack.evaluate(Y, y_prob=SCORES)
    equal = cmtrack.evaluate(Y, y_prob=SCORES, sample_weight=np.full(len(Y), 2.5))
    uneven = cmtrack.evaluate(Y, y_prob=SCORES, sample_weight=rng.lognormal(size=len(Y)))
    name = "prevalence/recalibrated"
    assert equal.metrics[name] == pytest.approx(plain.metrics[name])
    assert equal.intervals[name] == pytest.approx(plain.intervals[name])
    widths = [np.ptp(evaluation.intervals[name]) for evaluation in (plain, uneven)]
    assert widths[1] > 1.2 * widths[0]
    # If the target consists of the labelled rows, the share is almost their own share.
    assert plain.metrics[name] == pytest.approx(1 / 3, abs=0.002)
    assert name not in plain.headline


def test_neither_number_of_a_refused_estimate_is_ranked() -> None:
    options = {"calibration": (Y, SCORES)}
    y = np.repeat([0, 1], [250, 350])
    evaluation = cmtrack.evaluate(y, y_prob=OTHER_SCORES, **options)
    assert np.isnan(evaluation.metrics["prevalence/calibrated_bias"])
    assert np.isfinite(evaluation.metrics["prevalence/recalibrated"])
    # The labels of these rows are known, so nobody needs to label more of them.
    words = " ".join(verdict(evaluation))
    assert "the share of “1” is 48.1% [38.8, 57.6]." in words
    assert "About" not in words.partition("48.1%")[2]
    runs = {"a": evaluation, "b": cmtrack.evaluate(y, y_prob=np.sqrt(OTHER_SCORES), **options)}
    for name in ("prevalence/calibrated", "prevalence/recalibrated"):
        with pytest.raises(ValueError, match="runs cannot be ranked by it"):
            cmtrack.compare(runs, rank_by=name)
    ranked = cmtrack.compare(runs, rank_by="prevalence/calibrated_bias")
    assert list(ranked.to_frame()["status"]) == ["left out", "left out"]
    gated = cmtrack.compare(runs, require=["prevalence/calibrated_bias.abs <= 1"])
    assert list(gated.to_frame()["status"]) == ["stopped by a gate", "stopped by a gate"]
