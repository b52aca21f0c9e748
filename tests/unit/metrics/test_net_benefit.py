"""Net benefit and gains: test vectors 24 and 21, weights, cells, clusters, bad input; interval of many means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cmtrack import Accumulator, Grouping, evaluate
from cmtrack.evaluation import loads

# the arithmetic behind the band, which the band itself shows only through drawn numbers
from cmtrack.metrics.net_benefit import _covariance
from cmtrack.statistics import grid_edges
from support.problems import B20, D20, W20, random_labels, random_scores


def near(expected: Any, digits: float = 6e-11) -> Any:
    return pytest.approx(expected, abs=digits)


def test_vector_24():
    found = evaluate(B20, y_prob=D20).net_benefit([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert found.value == near([0.45, 0.3625, 0.3428571429, 0.2666666667, 0.2, 0.15])
    assert found.all == near([0.4444444444, 0.375, 0.2857142857, 0.1666666667, 0, -0.25])
    assert found.low == near(
        [0.2196044022, 0.1220886687, 0.0822227207, -0.0135151635, -0.1099402323, -0.2049582984]
    )
    assert found.high == near(
        [0.6800088067, 0.6118745758, 0.6023359351, 0.5404974605, 0.4841155327, 0.4376997105]
    )
    assert found.standardized == near(found.value / 0.5)
    assert found.avoided[:2] == near([(0.45 - 0.4444444444) * 9, -0.05], 1e-9)
    assert (found.band_low < found.low).all()
    assert (found.band_high > found.high).all()
    assert found.prevalence == 0.5
    assert (
        repr(found)
        == "NetBenefit(6 thresholds from 0.1 to 0.6, 5 of them above calling all and calling none positive)"
    )
    frame = found.to_frame()
    assert list(frame["thresholds"]) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert frame["band_low"].tolist() == found.band_low.tolist()


def test_vector_24_of_the_covariance():
    t = np.array([0.2, 0.4])
    for order in (slice(None), slice(None, None, -1)):
        at = t[order]
        hits, alarms = (
            np.array([(u <= D20)[b == B20].sum() for u in at], dtype=float) for b in (1, 0)
        )
        value = (hits - at / (1 - at) * alarms) / 20
        spread = _covariance(hits, alarms, 20.0, at, value) / 400
        assert spread == near(
            np.array([[0.0170234375, 0.0168333333], [0.0168333333, 0.0208888889]])[order, order]
        )


def test_the_covariance_is_that_of_rows_with_sampling_weights():
    rng = np.random.default_rng(3)
    t, w = np.array([0.15, 0.3, 0.55]), rng.gamma(2, 1, 20)
    odds = t / (1 - t)
    rows = (D20[:, None] >= t) * np.where(B20[:, None] == 1, 1.0, -odds)
    value = w @ rows / w.sum()
    sums = [np.array([(w**2)[(u <= D20) & (b == B20)].sum() for u in t]) for b in (1, 0)]
    found = _covariance(*sums, float((w**2).sum()), t, value) / w.sum() ** 2
    centred = w[:, None] * (rows - value)
    assert found == near(centred.T @ centred / w.sum() ** 2, 1e-12)
    assert evaluate(B20, y_prob=D20, sample_weight=w).net_benefit(t).value == near(value, 1e-12)


def test_whole_weights_are_repeated_rows():
    one = evaluate(B20, y_prob=D20, sample_weight=W20).net_benefit()
    other = evaluate(np.repeat(B20, W20), y_prob=np.repeat(D20, W20)).net_benefit()
    for name in ("value", "all", "low", "high", "band_low", "band_high"):
        assert getattr(one, name) == near(getattr(other, name), 1e-9)


def test_equal_sampling_weights_are_rows():
    rows, halves = (
        evaluate(B20, y_prob=D20, sample_weight=w).net_benefit() for w in (None, np.full(20, 0.5))
    )
    for name in ("value", "all", "low", "high", "band_low", "band_high"):
        assert getattr(halves, name) == near(getattr(rows, name), 1e-9)


def test_a_single_threshold_has_its_own_interval_as_band():
    found = evaluate(B20, y_prob=D20).net_benefit([0.3])
    assert (found.band_low[0], found.band_high[0]) == near((found.low[0], found.high[0]), 0.01)


def test_rejected_positives_earn_nothing():
    """A called positive whose class within the group is wrong is no hit and no false alarm."""
    y = np.array([0, 1, 2, 0])
    p = np.array([[0.6, 0.2, 0.2], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.1, 0.1, 0.8]])
    grouping = Grouping({"yes": [0, 1], "no": [2]}, positive="yes", mode="strict")
    found = evaluate(y, y_prob=p, grouping=grouping).net_benefit([0.5, 0.1])
    assert found.value == near([1 / 4, 2 / 4 - 1 / 9 / 4])
    assert found.all == near([2 / 4 - 1 / 4, 2 / 4 - 1 / 9 / 4])
    assert found.positive == "yes"


def test_thresholds_reach_scores_that_are_equal_but_for_rounding():
    found = evaluate([0, 1, 1], y_prob=[0.3, 0.3, 0.1]).net_benefit([0.1 + 0.2])
    assert found.value == near([1 / 3 - 3 / 7 / 3])


def test_thresholds_move_to_the_edges_of_the_grid():
    rng = np.random.default_rng(1)
    s = rng.beta(1, 3, 300_000)
    y = (rng.random(len(s)) < s).astype(int)
    evaluation = evaluate(y, y_prob=s)
    assert not evaluation.positive_scores.exact
    found = evaluation.net_benefit([0.1, 0.3331, 1e-9])
    assert set(found.thresholds) <= set(grid_edges())
    assert found.thresholds == near([0.1, 0.3331, grid_edges()[0]], 0.002)
    for t, value in zip(found.thresholds, found.value, strict=True):
        assert value == near(
            ((s >= t) & (y == 1)).mean() - t / (1 - t) * ((s >= t) & (y == 0)).mean(), 1e-12
        )


def usual_thresholds(positives: int, rows: int) -> Any:
    """The thresholds of a curve that is asked for none."""
    y = np.arange(rows) < positives
    return evaluate(y, y_prob=np.where(y, 0.9, 0.1), labels=[False, True]).net_benefit().thresholds


def test_usual_thresholds_follow_the_share_of_rare_positives():
    assert usual_thresholds(3, 10)[[0, 9, -1]].tolist() == [0.01, 0.1, 0.99]
    assert usual_thresholds(1, 1000)[[0, -1]].tolist() == [0.0001, 0.0099]
    assert usual_thresholds(123, 10_000)[-1] == 0.198
    assert usual_thresholds(0, 10)[-1] == usual_thresholds(1, 10)[-1] == 0.99


def clustered(rows: bool = True) -> Any:
    once = random_labels(40)
    y, s = once.repeat(3), random_scores(once, digits=2).repeat(3)
    evaluation = evaluate(y, y_prob=s, groups=np.repeat(np.arange(40), 3))
    return y, s, (evaluation if rows else loads(evaluation.to_json()))


def test_rows_that_belong_together_widen_the_intervals():
    y, s, evaluation = clustered()
    t = np.array([0.2, 0.5])
    found, alone = evaluation.net_benefit(t), evaluate(y, y_prob=s).net_benefit(t)
    assert (found.high - found.low > 1.5 * (alone.high - alone.low)).all()
    rows = (s[:, None] >= t) * np.where(y[:, None] == 1, 1.0, -t / (1 - t)) - found.value
    sums = rows.reshape(40, 3, 2).sum(axis=1)
    error = np.sqrt((sums**2).sum(axis=0) * 40 / 39) / 120
    assert (found.high - found.value) / error == near(
        [(found.high - found.value)[0] / error[0]] * 2, 1e-9
    )
    assert 1.96 < (found.high - found.value)[0] / error[0] < 2.3
    assert (found.band_high > found.high).all()


def test_without_the_rows_that_belong_together_there_are_no_intervals():
    found = clustered(rows=False)[2].net_benefit([0.2, 0.5])
    assert np.isfinite(found.value).all()
    assert np.isnan([found.low, found.high, found.band_low, found.band_high]).all()
    assert "unknown if the rows are missing" in found.reason


@pytest.mark.parametrize(
    ("thresholds", "words"),
    [
        ([], r"must have the shape \(n_thresholds,\), got \(0,\)"),
        ([[0.1]], r"got \(1, 1\)"),
        ([0.2, 1.0], "must be between 0 and 1, got 1"),
        ([0.0], "got 0"),
        ([float("nan")], "got nan"),
    ],
)
def test_bad_thresholds(thresholds: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        evaluate(B20, y_prob=D20).net_benefit(thresholds)


def test_a_net_benefit_needs_probabilities_of_two_groups():
    with pytest.raises(
        ValueError, match="needs probabilities of two groups or two classes, got Evaluation"
    ):
        evaluate([0, 1, 1], [0, 1, 0]).net_benefit()
    with pytest.raises(ValueError, match="needs probabilities of two groups"):
        evaluate([0, 1, 2], y_prob=np.eye(3)).net_benefit()
    margins = evaluate([0, 1, 1], y_score=[-1.5, 0.3, 2.0])
    with pytest.raises(ValueError, match="needs probabilities of two groups"):
        margins.net_benefit()
    assert margins.gains.thresholds == near([2.0, 0.3, -1.5])
    assert margins.risk_coverage is None
    figures = margins.figures()
    names = ("decision_curve", "gains", "risk_coverage")
    assert [name for name in names if name in figures] == ["gains"]


def test_one_group_alone_has_a_net_benefit():
    none, every = (
        evaluate([b, b, b], y_prob=[0.2, 0.4, 0.6], labels=[0, 1]).net_benefit([0.5])
        for b in (0, 1)
    )
    assert (none.value[0], every.value[0]) == near((-1 / 3, 1 / 3))
    assert np.isnan(none.standardized[0])
    assert none.low[0] < -1 / 3 < none.high[0]


def test_the_intervals_of_many_thresholds_are_those_of_each() -> None:
    y = random_labels(60, 2, 1)
    evaluation = evaluate(y, y_prob=random_scores(y, 1.0, 2, digits=2))
    found = evaluation.net_benefit()
    each = [evaluation.net_benefit([t]) for t in found.thresholds[::7]]
    assert found.low[::7] == near([one.low[0] for one in each], 1e-12)
    assert found.high[::7] == near([one.high[0] for one in each], 1e-12)
    assert (-found.odds - 1e-12 <= found.low).all()
    assert (found.low <= found.value).all()
    assert (found.value <= found.high).all()
    assert (found.high <= 1 + 1e-12).all()


# --- gains ------------------------------------------------------------------------------------------------


def test_vector_21_of_the_gains():
    found = evaluate(B20, y_prob=D20).gains
    assert found is not None
    assert found.called == near(
        [0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 0.85, 0.95, 1.0]
    )
    assert found.gain == near([.1, .2, .4, .5, .5, .6, .7, .8, .8, .9, .9, .9, .9, 1, 1])  # fmt: skip
    assert found.lift[:5] == near([2, 2, 2, 2, 0.5 / 0.3])
    assert [found.gain_at(q) for q in (0, 0.05, 0.15, 1)] == near([0, 0.1, 0.3, 1])
    assert list(found.to_frame()) == ["thresholds", "called", "gain", "lift"]
    assert repr(found) == "GainsCurve(gain 0.2, lift 2 at 10% called; 15 thresholds)"
    with pytest.raises(ValueError, match=r"must be in \[0, 1\], got 1\.5"):
        found.gain_at(1.5)


def test_gains_end_at_the_ceiling_and_mark_the_predicted_labels():
    y = np.array([0, 1, 2, 2, 0])
    p = np.array(
        [[0.6, 0.2, 0.2], [0.5, 0.3, 0.2], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]]
    )
    found = evaluate(
        y, y_prob=p, grouping=Grouping({"yes": [0, 1], "no": [2]}, positive="yes", mode="strict")
    ).gains
    assert found is not None
    assert found.gain[-1] == near(2 / 3) == found.ceiling
    assert found.operating_point == near((3 / 5, 1 / 3))
    assert evaluate([0, 1], [0, 1]).gains is None


def test_merged_and_stored_evaluations_have_the_same_curves():
    whole = evaluate(B20, y_prob=D20)
    parts = Accumulator([0, 1])
    for part in (slice(0, 7), slice(7, None)):
        parts.update(B20[part], y_prob=D20[part])
    for other in (parts.compute(), loads(whole.to_json())):
        assert other.net_benefit().to_frame().equals(whole.net_benefit().to_frame())
        assert other.gains.to_frame().equals(whole.gains.to_frame())
