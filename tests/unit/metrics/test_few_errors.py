"""Intervals of near-perfect models: one more sample, half of it flipped, and the warning that names them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from cmtrack import Evaluation, evaluate
from cmtrack.evaluation import loads
from cmtrack.metrics import on_scale

LOSSES = ("log_loss", "brier", "spherical", "log_skill", "brier_skill")
FEW = (
    *(f"probability/{name}" for name in LOSSES),
    "binary/average_precision",
    "spcc/binary",
    "spcc/d_a",
)
Z = 1.959963984540054


def near_perfect(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores that are sure and right, but for .6% that are sure and wrong."""
    y = (rng.random(n) < 0.4) * 1
    s = np.where(rng.random(n) < 0.006, -1, 1) * (2 * y - 1) * rng.gamma(3, 1.5, n)
    return y, 1 / (1 + np.exp(-s))


def judged(y: np.ndarray, p: np.ndarray, **options: object) -> Evaluation:
    return evaluate(y, y_prob=np.column_stack([1 - p, p]), labels=[0, 1], positive=1, **options)


def test_losses_of_one_size_by_hand() -> None:
    """50 rows give their class .98: half a row more of that loss, half a row of the loss of .02, then the log scale."""
    y = np.arange(50) % 2
    found = judged(y, np.where(y == 1, 0.98, 0.02))
    cases = {"log_loss": (-math.log(0.98), -math.log(0.02)), "brier": (0.02**2, 0.98**2)}
    for name, (loss, flipped) in cases.items():
        mean = (50.5 * loss + 0.5 * flipped) / 51
        error = math.sqrt(50.5 * (loss - mean) ** 2 + 0.5 * (flipped - mean) ** 2) / 51
        low, high = mean * math.exp(-Z * error / mean), mean * math.exp(Z * error / mean)
        assert found.metrics[f"probability/{name}"] == pytest.approx(loss)
        assert found.intervals[f"probability/{name}"] == pytest.approx(
            (min(low, loss), high), rel=1e-9
        )


def test_a_skill_has_the_log_scale_of_its_ratio_of_losses() -> None:
    assert on_scale("log", 0.8, 0.1, 0.95, (-math.inf, 1.0)) == pytest.approx(
        (1 - 0.2 * math.exp(Z * 0.5), 1 - 0.2 * math.exp(-Z * 0.5))
    )


@pytest.mark.slow
def test_intervals_of_near_perfect_models_hold_the_truth() -> None:
    """Of 120 samples of 60 rows; .58 to .74 did while only the rows themselves counted."""
    y, p = near_perfect(np.random.default_rng(1), 200_000)
    truth = judged(y, p, sections=["probability", "binary", "spcc"]).metrics
    hits = dict.fromkeys(FEW[:-1], 0)
    rng = np.random.default_rng(2)
    for _ in range(120):
        rows = rng.integers(0, len(y), 60)
        found = judged(y[rows], p[rows], sections=["probability", "binary", "spcc"]).intervals
        for name in hits:
            low, high = found[name]
            hits[name] += low <= truth[name] <= high
    assert min(hits.values()) >= 0.88 * 120, hits


def test_ordinary_intervals_stay_as_they_are() -> None:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 2_000)
    p = 1 / (1 + np.exp(-rng.normal(2 * y - 1, 1.4)))
    found = judged(y, p)
    for name in (
        "probability/log_loss",
        "probability/brier",
        "spcc/binary",
        "binary/average_precision",
    ):
        low, high = found.intervals[name]
        scale = {"p": "log", "s": "atanh", "b": "logit"}[name[0]]
        plain = on_scale(
            scale, found.metrics[name], found.standard_errors[name], 0.95, (0.0, math.inf)
        )
        assert plain is not None
        assert (low, high) == pytest.approx(plain, abs=0.05 * (plain[1] - plain[0]))


@pytest.mark.slow
def test_weights_merging_and_storing_give_the_same_intervals() -> None:
    y, p = near_perfect(np.random.default_rng(4), 90)
    times = np.random.default_rng(5).integers(1, 4, 90)
    whole = judged(y, p, sample_weight=times)
    repeated = judged(y.repeat(times), p.repeat(times))
    merged = judged(y[:40], p[:40], sample_weight=times[:40]) + judged(
        y[40:], p[40:], sample_weight=times[40:]
    )
    alike = judged(y, p, sample_weight=np.full(90, 2.5), weights_are="sampling")
    plain = judged(y, p)
    for name in FEW:
        assert whole.intervals[name] == pytest.approx(repeated.intervals[name], rel=1e-9)
        assert merged.intervals[name] == pytest.approx(whole.intervals[name], rel=1e-9)
        assert alike.intervals[name] == pytest.approx(plain.intervals[name], rel=1e-9)
        assert loads(plain.to_json()).intervals[name] == pytest.approx(
            plain.intervals[name], rel=1e-9
        )


def test_clusters_of_equal_rows_count_once() -> None:
    y, p = near_perfect(np.random.default_rng(6), 60)
    once = judged(y, p)
    ten = judged(y.repeat(10), p.repeat(10), groups=np.arange(60).repeat(10))
    for name in ("probability/log_loss", "probability/brier", "spcc/binary"):
        ours, theirs = (one.intervals[name] for one in (ten, once))
        assert ours[1] - ours[0] >= 0.95 * (theirs[1] - theirs[0])  # and Student's quantile more


def test_without_the_moments_of_old_files_losses_keep_their_own_interval() -> None:
    y, p = near_perfect(np.random.default_rng(7), 60)
    found = judged(y, p)
    old = replace(found, statistics=replace(found.statistics, moments=None))
    low, high = old.intervals["probability/log_loss"]
    value, error = (
        found.metrics["probability/log_loss"],
        found.standard_errors["probability/log_loss"],
    )
    assert (low, high) == pytest.approx(on_scale("log", value, error, 0.95, (0.0, math.inf)))
    assert found.intervals["probability/log_loss"][1] > high


def test_the_warning_names_what_few_errors_decide() -> None:
    y, p = near_perfect(np.random.default_rng(1), 400)
    wrong = int((y != (p > 0.5)).sum())
    expected = (
        f"Only {wrong} errors: the intervals of log loss, Brier score, spherical score, skills, average precision, "
        "sPCC, d_b, calibration error and calibration slope are approximate"
    )
    assert 1 < wrong < 20
    assert expected in judged(y, p).warnings
    assert not any("errors:" in text for text in evaluate(y, y).warnings)  # counts have Wilson's
    few = judged(y, p, sections=["probability"]).warnings
    assert any(text.endswith("spherical score and skills are approximate") for text in few)


def test_an_infinite_log_loss_is_named_and_has_no_approximate_interval() -> None:
    y, p = near_perfect(np.random.default_rng(1), 400)
    p = np.clip(p, 0.01, 0.99)
    p[0] = 1 - y[0]
    remarks = judged(y, p).warnings
    assert "the log loss is infinite: 1 row gives the actual class the probability 0" in remarks
    assert not any("intervals of log loss" in text for text in remarks)
    assert any("intervals of Brier score, spherical score" in text for text in remarks)
