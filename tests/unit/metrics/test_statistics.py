"""Inner parts against the definition: influences by differentiation, moments by sample, bins and cells by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cmtrack import ConfusionMatrix, Grouping
from cmtrack.metrics import Cells, ScoreSamples, Sides, Table
from cmtrack.metrics.multiclass import MULTICLASS
from cmtrack.metrics.multiclass import REDUCED as REDUCED_METRICS
from cmtrack.metrics.quantile_bins import leave_one_out, n_bins, quantile_bins
from cmtrack.metrics.spcc import correlation
from cmtrack.statistics import ScoreCounts, ScoreMoments, grid_edges, scores
from cmtrack.statistics.actual_class import ranks_of
from cmtrack.statistics.counting import sums_of_codes
from cmtrack.statistics.grid import cells_of
from cmtrack.statistics.top_scores import CELLS, TopScoreCounts
from support.problems import random_problem

TABLE = ConfusionMatrix(
    np.array([[9, 2, 1, 0], [1, 12, 3, 0], [0, 4, 7, 0], [2, 1, 3, 0]]), tuple("abcd")
)
REDUCED = TABLE.reduce(Grouping({"x": ["a", "b"], "y": ["c"], "z": ["d"]}, "strict"))
METRICS = [
    m for m in (*MULTICLASS.metrics, *REDUCED_METRICS.metrics) if m.of in ("table", "whole table")
]


def all_metrics(cells: Cells) -> dict[str, tuple[float, Any]]:
    table = Table(cells)
    return {metric.name: (metric.number(table), metric.influence_in(table)) for metric in METRICS}


@pytest.mark.parametrize("kind", ["full", "reduced"])
@pytest.mark.parametrize("name", list(all_metrics(Cells.of_matrix(TABLE))))
def test_influence_is_the_derivative(name: str, kind: str) -> None:
    """psi of a cell is n times the derivative by its weight; one class is never predicted."""
    cells = Cells.of_matrix(TABLE) if kind == "full" else Cells.of_reduced(REDUCED)
    _, influence = all_metrics(cells)[name]
    for c in range(len(cells.weight)):
        ends = []
        for step in (1e-5, -1e-5):
            weight = cells.weight.copy()
            weight[c] += step
            ends.append(all_metrics(replace(cells, weight=weight))[name][0])
        slope = (ends[0] - ends[1]) / 2e-5 * cells.total
        assert influence[c] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_spcc_error_from_moments_is_that_of_the_samples(weighted: bool) -> None:
    y, _, p = random_problem(8, n=60, k=2)
    s = p[:, 1]
    w = np.random.default_rng(8).gamma(1.0, 1.0, 60) if weighted else np.ones(60)
    standard = []
    for v in ((y == 1).astype(float), s):
        mean = np.average(v, weights=w)
        standard.append((v - mean) / np.sqrt(np.average((v - mean) ** 2, weights=w)))
    r = np.average(standard[0] * standard[1], weights=w)
    psi = standard[0] * standard[1] - r / 2 * (standard[0] ** 2 + standard[1] ** 2)
    expected = np.sqrt((w**2 * psi**2).sum()) / w.sum()
    moments, squares = (ScoreMoments.from_scores(y, s[:, None], 2, v) for v in (w, w**2))
    samples = ScoreSamples(Sides.of_score(moments), Sides.of_score(squares) if weighted else None)
    assert samples.standard_error(samples.quadratic(correlation)) == pytest.approx(
        expected, rel=1e-12
    )


def test_quantile_bins_are_class_balanced() -> None:
    """100 positives above 200 negatives: both together, each of weight one half, cut into equal quarters."""
    values = np.arange(300.0)
    counts = np.stack(([1] * 200 + [0] * 100, [0] * 200 + [1] * 100))
    bands = quantile_bins(ScoreCounts(values, counts, exact=True), bins=4)
    assert bands.negatives.tolist() == [100, 100, 0, 0]
    assert bands.positives.tolist() == [0, 0, 50, 50]
    assert bands.edges.tolist() == [99, 199, 249]
    assert bands.bin_of(np.array([-1e9, 99, 99.5, 249, 1e9])).tolist() == [0, 0, 1, 2, 3]
    assert bands.p == pytest.approx(np.array([0.5, 0.5, 50.5, 50.5]) / 102)
    assert [n_bins(m, 10**6) for m in (1, 100, 2400, 10**6)] == [4, 7, 20, 30]


def test_leaving_one_out() -> None:
    assert leave_one_out(np.array([3.0, 1.0, 0.0])) == pytest.approx(
        [2.5 / 4.5, 0.5 / 4.5, 0.5 / 5.5]
    )


def test_top_scores_are_counted_by_the_largest() -> None:
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0], [0.4, 0.4, 0.2]])
    counts = TopScoreCounts.from_scores(np.array([0, 2, 2, 1]), p, 3).counts
    assert counts.shape == (3, 3, CELLS)
    assert counts.sum(axis=2).tolist() == [[1, 0, 0], [1, 0, 0], [0, 1, 1]]
    cell = int((np.log(0.7 / 0.3) + 4) * 4)
    assert counts[0, 0, cell] == 1
    assert counts[2, 1, CELLS - 1] == 1


def test_cells_of_the_grid_are_closed_on_the_left() -> None:
    edges = grid_edges()
    middle = int(np.flatnonzero(edges == 0.5)[0])
    grid = ScoreCounts.from_scores(np.array([0.5, np.nextafter(0.5, 0), 0.0, 1.0])).to_grid()
    assert grid.counts[0, middle + 1] == 1
    assert grid.counts[0, middle] == 1
    assert grid.counts[0, 0] == grid.counts[0, -1] == 1
    exact = ScoreCounts.from_scores(np.array([0.5, np.nextafter(0.5, 0), 0.0, 1.0]))
    assert exact.to_grid() == grid
    assert exact + grid == grid + exact
    assert (exact + grid).counts.sum() == 8


def test_every_score_is_in_the_cell_that_a_search_of_the_edges_gives() -> None:
    edges, rng = grid_edges(), np.random.default_rng(1)
    near = [edges]
    for _ in range(3):
        near = [np.nextafter(near[0], 0.0), *near, np.nextafter(near[-1], 1.0)]
    ends = np.array([0.0, -0.0, 5e-324, 1e-300, 1e-6, np.nextafter(1.0, 0.0), 1.0])
    logits = rng.normal(0, 6, (3, 20_000))
    for values in (
        *near,
        ends,
        1 / (1 + np.exp(-logits)),
        np.arange(1001) / 1000,
        rng.random(999)[::2],
    ):
        for given in (
            values,
            values.astype(np.float32),
            np.nextafter(values.astype(np.float32), np.float32(0.5)),
        ):
            cells = np.empty(given.shape, dtype=np.int32)
            assert np.array_equal(
                cells_of(given, out=cells), np.searchsorted(edges, given, side="right")
            )
            assert np.array_equal(cells_of(given), cells)


def test_sums_by_code_are_those_of_bincount_to_the_last_bit() -> None:
    rng = np.random.default_rng(2)
    codes, values = rng.integers(0, 40, (3, 5000), dtype=np.int32), rng.random((3, 5000)) ** 9
    for n in (5000, 700):
        pairs = zip(codes[:, :n], values[:, :n], strict=True)
        sums = sums_of_codes(codes[:, :n], values[:, :n], 41)
        assert sums.tolist() == [np.bincount(c, v, 41).tolist() for c, v in pairs]


def test_equal_probabilities_rank_in_the_order_of_the_classes() -> None:
    values = np.random.default_rng(3).integers(0, 3, (6, 400)) / 2
    codes = np.random.default_rng(4).integers(0, 6, 400)
    order = np.argsort(-values, axis=0, kind="stable")
    assert ranks_of(values, codes).tolist() == (order == codes).argmax(axis=0).tolist()


def test_merging_goes_to_the_grid_where_the_whole_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scores, "EXACT_ROWS", 5)
    a, b = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0.2, 0.5001, 0.5002])
    whole = ScoreCounts.from_scores(np.concatenate((a, b)))
    merged = ScoreCounts.from_scores(a) + ScoreCounts.from_scores(b)
    assert not whole.exact
    assert merged == whole


def test_class_densities_leave_the_own_sample_out() -> None:
    from cmtrack.prevalence import em_shares
    from cmtrack.prevalence.class_shares import _most_likely

    # each class's own samples see their own density without themselves, half a count in each of two bins: by hand
    rows = np.array([[2.5 / 3, 1.5 / 4], [3.5 / 4, 0.5 / 3], [0.5 / 4, 1.5 / 3]])
    expected = em_shares(rows, np.array([3.0, 1.0, 2.0]))
    assert _most_likely(np.array([[3.0, 0.0], [1.0, 2.0]]), None) == pytest.approx(
        expected, abs=1e-6
    )
