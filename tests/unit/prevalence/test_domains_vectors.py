"""Vectors of counts in domains: three domains with labelled rows in four bins, and targets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from cmtrack.prevalence.domains import (
    DifferenceEstimate,
    ShiftEstimate,
    difference_estimate,
    rows_needed,
    rows_to_tell,
    share_interval,
)
from cmtrack.segments import simultaneous_level

LABELLED = {
    "a": ([40, 15, 5, 2], [1, 4, 9, 20]),
    "b": ([60, 10, 4, 1], [2, 3, 4, 6]),
    "c": ([10, 5, 3, 1], [0, 2, 2, 2]),
}
TARGETS = {
    "a1": [300, 220, 180, 300],
    "b1": [500, 250, 150, 100],
    "c1": [50, 20, 20, 10],
    "a2": [250, 230, 200, 320],
    "d1": [400, 300, 200, 100],
}
POSITIVE = np.array([0.0, 1.0])
NPS = np.array([-1.0, 0.0, 1.0])


def close(found: Any, wanted: Any, relative: float = 1e-9) -> None:
    """Vectors are printed with ten digits."""
    np.testing.assert_allclose(found, wanted, rtol=relative)


def labelled(name: str) -> np.ndarray:
    return np.array(LABELLED[name], dtype=float).T


def total(*names: str) -> np.ndarray:
    return sum((labelled(name) for name in names), start=np.zeros((4, 2)))


def target(name: str) -> np.ndarray:
    return np.array(TARGETS[name], dtype=float)


def calibrated(cell: str, source: str | None) -> DifferenceEstimate:
    rows = None if source is None else labelled(source)
    return difference_estimate(total("a", "b", "c"), target(cell), POSITIVE, rows)


@pytest.mark.parametrize(
    ("cell", "numbers", "own", "population"),
    [
        (
            "a1",
            [
                0.4349266056,
                0.02039287471,
                1.245436394e-3,
                1.226986477e-3,
                1.320791713e-4,
                1.136862821e-4,
            ],
            [0.3643119785, 0.5082844084],
            [0.3647663544, 0.5077941669],
        ),
        (
            "b1",
            [
                0.2380396234,
                -0.001532608029,
                1.165755971e-3,
                8.38087702e-4,
                1.070656505e-4,
                7.431111059e-5,
            ],
            [0.1755732550, 0.3142589192],
            [0.1762841814, 0.3132031350],
        ),
        (
            "c1",
            [
                0.2072112293,
                -0.04803635759,
                5.547540683e-3,
                4.437467098e-3,
                9.595292084e-4,
                7.872717904e-4,
            ],
            [0.09359457022, 0.3981637848],
            [0.09458076853, 0.3953944670],
        ),
    ],
)
def test_shares_from_own_rows(
    cell: str, numbers: list[float], own: list[float], population: list[float]
) -> None:
    found = calibrated(cell, cell[0])
    close(
        [
            found.value,
            found.residual,
            found.row_variance,
            found.model_variance,
            found.own,
            found.population,
        ],
        numbers,
    )
    close(share_interval(found, own=True), own)
    close(share_interval(found, own=False), population)


def test_shares_from_other_rows() -> None:
    found = calibrated("a2", "a")
    close(
        [found.value, found.labelled, found.own, found.population],
        [0.4638398047, 1.362394692e-3, 1.387091503e-4, 1.099832900e-4],
    )
    close(share_interval(found, True, 0.0065147102), [0.3022468538, 0.6334007000])
    close(rows_needed(found.label_variance, 0.05, 0), 210.2329925)
    found = calibrated("d1", None)
    close([found.value, found.labelled, found.own], [0.2755390145, 8.557191701e-4, 1.26382321e-4])
    close(share_interval(found, True, 0.0065147102), [0.1426911642, 0.4649869650])
    close(rows_needed(found.label_variance, 0.05, 0), 194.1969928)


def test_both_assumptions_differ() -> None:
    counts = np.array([[140, 40, 16, 4], [2, 8, 30, 60]], dtype=float)
    window = np.array([1300.0, 420, 190, 90])
    found = difference_estimate(counts.T, window, POSITIVE)
    close(
        [found.value, found.labelled, found.own, found.population],
        [0.1494016338, 2.244437858e-4, 3.24070548e-5, 3.113333802e-5],
    )
    close(share_interval(found, own=True), [0.1206961520, 0.1835094099])
    shift = ShiftEstimate(counts, window)
    close(shift.share(1, own=False).value, 0.04241632138)
    distance = shift.share(1, own=False).value - found.value
    close(rows_to_tell(found.label_variance, distance), 44.4456145)
    close(rows_needed(found.label_variance, 0.05, 0), 99.59229321)


def test_scores_that_are_no_mixture() -> None:
    shift = ShiftEstimate(labelled("a").T, np.array([120.0, 60, 400, 20]))
    close(shift.share(1, own=False).value, 0.6968775883)
    close(shift.binned.statistic, 66.74621812)
    assert shift.binned.degrees == 2
    # Half of the statistic is the exponent, because there are two degrees of freedom.
    close(shift.fit_pvalue, math.exp(-66.74621812 / 2), 1e-8)


def test_three_classes_and_their_score() -> None:
    e = np.array([[20, 6, 2], [8, 15, 7], [2, 5, 25]], dtype=float)
    f = np.array([[15, 4, 1], [5, 9, 6], [1, 4, 12]], dtype=float)
    windows = {"e": np.array([300.0, 350, 350]), "f": np.array([500.0, 300, 200])}
    shares = {
        name: [difference_estimate(e + f, windows[name], row, rows).value for row in np.eye(3)]
        for name, rows in {"e": e, "f": f}.items()
    }
    close(shares["e"], [0.3293080171, 0.2934612140, 0.3772307690])
    close(shares["f"], [0.4561019493, 0.2870760617, 0.2568219890])
    first = difference_estimate(e + f, windows["e"], NPS, e)
    close(
        [first.value, first.row_variance, first.model_variance],
        [0.04792275187, 4.522735286e-3, 4.585364153e-3],
    )
    errors = [math.sqrt(first.variance(own)) for own in (True, False)]
    close(errors, [0.07071619534, 0.06980958257])
    second = difference_estimate(e + f, windows["f"], NPS, f)
    close(
        [second.value, second.row_variance, second.model_variance],
        [-0.1992799602, 7.374219810e-3, 7.301759983e-3],
    )
    errors = [math.sqrt(second.variance(own)) for own in (True, False)]
    close(errors, [0.0882242011, 0.08742790858])


def test_one_of_six_intervals() -> None:
    found = share_interval(calibrated("a1", "a"), True, 0.0, simultaneous_level(6))
    close(found, [0.3415166133, 0.5331976648])
