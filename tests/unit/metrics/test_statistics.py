"""Statistics against the definition: influences by differentiation, moments by sample, bins and cells by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from cmtrack import ConfusionMatrix, Grouping, estimate_prevalence, evaluate
from cmtrack.metrics import CATALOG, Cells, ScoreSamples, Sides, Table, em_shares, lookup
from cmtrack.statistics import EXACT_ROWS, Counted, ScoreCounts, ScoreMoments, grid_edges
from support.problems import random_problem

TABLE = ConfusionMatrix(
    np.array([[9, 2, 1, 0], [1, 12, 3, 0], [0, 4, 7, 0], [2, 1, 3, 0]]), tuple("abcd")
)
CELLS = Cells.of_matrix(Counted.unweighted(TABLE.counts))
REDUCED = TABLE.reduce(Grouping({"x": ["a", "b"], "y": ["c"], "z": ["d"]}, "strict"))
METRICS = [
    m
    for m in CATALOG
    if m.section in ("multiclass", "reduced") and m.of in ("table", "whole table")
]


def all_metrics(cells: Cells) -> dict[str, tuple[float, Any]]:
    table = Table(cells)
    return {metric.name: (metric.number(table), metric.influence_in(table)) for metric in METRICS}


@pytest.mark.parametrize("kind", ["full", "reduced"])
@pytest.mark.parametrize("name", list(all_metrics(CELLS)))
def test_influence_is_the_derivative(name: str, kind: str) -> None:
    """psi of a cell is n times the derivative by its weight; one class is never predicted."""
    cells = CELLS if kind == "full" else Cells.of_reduced(Counted.unweighted(REDUCED))
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
    weights = Counted(w, w**2 if weighted else w)
    moments = weights.map(lambda v: ScoreMoments.from_scores(y, s[:, None], 2, v))
    samples = ScoreSamples(moments.map(Sides.of_score))
    psi = lookup("spcc/binary").influence_in(samples)
    assert samples.standard_error(psi) == pytest.approx(expected, rel=1e-12)


def densities_of(positives: int, negatives: int) -> Any:
    """The densities of labelled scores, all of them different, those of the positives above the others."""
    y = np.arange(positives + negatives) >= negatives
    scores = np.arange(len(y)) / len(y)
    return estimate_prevalence(scores, calibration=(y, scores), density="bins").densities


def test_quantile_bins_are_class_balanced() -> None:
    """10 positives above 20 negatives: both together, each of weight one half, cut into equal quarters."""
    bands = densities_of(10, 20)
    assert bands.negatives.tolist() == [10, 10, 0, 0]
    assert bands.positives.tolist() == [0, 0, 5, 5]
    assert bands.edges == pytest.approx(np.array([9, 19, 24]) / 30)
    places = np.array([-1e9, 9, 9.5, 24, 1e9]) / 30
    assert bands.bin_of(places).tolist() == [0, 0, 1, 2, 3]
    # half a count in each bin
    assert bands.p == pytest.approx(np.array([0.5, 0.5, 5.5, 5.5]) / 12)
    assert bands.q == pytest.approx(np.array([10.5, 10.5, 0.5, 0.5]) / 22)
    assert [len(densities_of(m, 30_000).p) for m in (20, 100, 2400)] == [4, 7, 20]


def test_the_bayes_index_is_that_of_the_bins() -> None:
    y = np.arange(30) >= 20
    found = evaluate(y, y_prob=np.arange(30) / 30, labels=[False, True]).metrics["spcc/d_b"]
    error = (2 * 0.5 / 12 + 2 * 0.5 / 22) / 2
    assert found == pytest.approx(-2 * ndtri(error))


def test_densities_leave_the_own_sample_out() -> None:
    """The labelled samples are the target: each sees the density of its own class without itself."""
    y = np.arange(30) >= 20
    y[[3, 22]] = ~y[[3, 22]]
    scores = np.arange(30) / 30
    bands = estimate_prevalence(scores, calibration=(y, scores), density="bins").densities
    rows, counts = [], []
    for own, (left, other) in enumerate(((bands.negatives, bands.p), (bands.positives, bands.q))):
        alone = (left - 0.5) / (left.sum() - 1 + len(left) / 2)
        both = (alone, other) if own == 0 else (other, alone)
        rows.append(np.column_stack(both)[left > 0])
        counts.append(left[left > 0])
    shares = em_shares(np.concatenate(rows), np.concatenate(counts), tolerance=1e-13)
    judged = evaluate(y, y_prob=scores, labels=[False, True])
    assert judged.metrics["prevalence/calibrated"] == pytest.approx(shares[1], abs=1e-6)


def test_densities_of_classes_leave_the_own_sample_out() -> None:
    """Three classes, told apart by what is predicted: of three bins each has a third of a count more."""
    counts = np.array([[6.0, 2, 1], [1, 7, 2], [2, 1, 8]])
    y, best = (
        np.repeat(part, counts.ravel().astype(int))
        for part in (np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3))
    )
    rows = []
    for k in range(3):
        for b in range(3):
            sizes, own = counts.sum(axis=1) + 1, counts[:, b] + 1 / 3
            sizes[k] -= 1
            own[k] -= 1
            rows.append(own / sizes)
    shares = em_shares(np.array(rows), counts.ravel(), tolerance=1e-13)
    metrics = evaluate(y, y_prob=0.2 + 0.4 * np.eye(3)[best]).metrics
    found = [metrics[f"prevalence/{k}/calibrated"] for k in range(3)]
    assert found == pytest.approx(shares, abs=1e-6)


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
    logits = rng.normal(0, 6, 20_000)
    for values in (*near, ends, 1 / (1 + np.exp(-logits)), np.arange(1001) / 1000):
        for given in (values, values.astype(np.float32).astype(np.float64)):
            cells = np.searchsorted(edges, given, side="right")
            found = ScoreCounts.from_scores(given).to_grid().counts[0]
            assert found.tolist() == np.bincount(cells, minlength=len(edges) + 1).tolist()


def test_equal_probabilities_rank_in_the_order_of_the_classes() -> None:
    values = np.random.default_rng(3).integers(1, 4, (400, 6))
    y = np.random.default_rng(4).integers(0, 6, 400)
    order = np.argsort(-values, axis=1, kind="stable")
    rank = 1 + (order == y[:, None]).argmax(axis=1)
    metrics = evaluate(y, y_prob=values / values.sum(axis=1, keepdims=True)).metrics
    assert metrics["multiclass/mean_reciprocal_rank"] == pytest.approx((1 / rank).mean())
    for k in (2, 3, 5):
        name = f"multiclass/top_{k}_accuracy"
        if name in metrics:
            assert metrics[name] == pytest.approx((rank <= k).mean()), name
    assert "multiclass/top_2_accuracy" in metrics


def test_merging_goes_to_the_grid_where_the_whole_would() -> None:
    scores = np.random.default_rng(5).random(EXACT_ROWS + 3)
    whole = ScoreCounts.from_scores(scores)
    merged = ScoreCounts.from_scores(scores[:4]) + ScoreCounts.from_scores(scores[4:])
    assert not whole.exact
    assert (merged.counts == whole.counts).all()
    assert merged.values.tolist() == whole.values.tolist()
    assert ScoreCounts.from_scores(scores[:EXACT_ROWS]).exact
