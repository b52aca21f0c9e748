"""The design of rows: frequencies are repeated rows, sampling weights have no scale, clusters are summed."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from cmtrack.statistics import Design

RNG = np.random.default_rng(3)
VALUES = RNG.normal(size=(60, 3))
ACTUAL = np.arange(60) % 3
TIMES = RNG.integers(0, 4, 60)
CLUSTERS = RNG.integers(0, 12, 60)


def test_plain_rows_hold_no_array() -> None:
    design = Design(60).take(ACTUAL > 0)
    assert (design.n_rows, design.weights, design.clusters) == (40, None, None)
    assert (design.total, design.n_units, design.effective_size) == (40.0, 40, 40.0)
    values = VALUES[ACTUAL > 0]
    assert design.weighted(values) is values
    error = values[:, 0].std() / math.sqrt(40)
    assert design.standard_error(values[:, 0]) == pytest.approx(error, rel=1e-12)


def test_frequencies_are_repeated_rows() -> None:
    design = Design(60, TIMES)
    rows = np.repeat(np.arange(60), TIMES)
    repeated = Design(len(rows))
    assert design.is_independent
    assert (design.total, design.n_units) == (repeated.total, repeated.n_units)
    assert design.effective_size == pytest.approx(len(rows), rel=1e-12)
    for found, expected in (
        (design.mean(VALUES), repeated.mean(VALUES[rows])),
        (design.covariance(VALUES), repeated.covariance(VALUES[rows])),
        (design.degrees(VALUES), repeated.degrees(VALUES[rows])),
        (design.degrees(VALUES, ACTUAL), repeated.degrees(VALUES[rows], ACTUAL[rows])),
    ):
        assert found == pytest.approx(expected, rel=1e-12)
    statistic = repeated.sum_statistic(VALUES[rows, 0])
    assert design.sum_statistic(VALUES[:, 0]) == pytest.approx(statistic, rel=1e-12)


@pytest.mark.parametrize("clusters", [None, CLUSTERS])
def test_the_scale_of_sampling_weights_does_not_matter(clusters: np.ndarray | None) -> None:
    one, other = (Design(60, scale * (0.5 + TIMES), clusters) for scale in (1.0, 7.0))
    assert one.is_sampled
    assert one.covariance(VALUES) == pytest.approx(other.covariance(VALUES), rel=1e-12)
    assert one.effective_size == pytest.approx(other.effective_size, rel=1e-12)


def test_clusters_are_summed_and_numbered_again() -> None:
    design = Design(4, np.array([1.0, 2.0, 0.0, 3.0]), np.array([0, 0, 5, 2]))
    assert design.by_cluster(np.array([1.0, 1.0, 9.0, 2.0])).tolist() == [3, 0, 6, 0, 0, 0]
    assert design.n_units == 2  # the third row has no weight
    assert design.effective_size == 36 / (9 + 9)
    assert design.take(np.array([3, 2])).clusters.tolist() == [0, 1]
    assert pickle.loads(pickle.dumps(design)).n_units == 2
    assert design.with_groups(None) is design
    assert design.with_groups(["a", "b", "a", "b"]).n_units == 2


@pytest.mark.parametrize(
    ("weights", "clusters", "text"),
    [
        (np.ones(3), None, "weights of a design must be numbers of shape (4,)"),
        (None, np.zeros(4), "clusters of a design must be numbers of shape (4,), got float64"),
    ],
)
def test_columns_have_one_number_for_each_row(weights, clusters, text) -> None:
    with pytest.raises(ValueError, match=text.replace("(", r"\(").replace(")", r"\)")):
        Design(4, weights, clusters)
