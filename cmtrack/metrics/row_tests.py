"""The test of calibration for clustered rows.

The labels of clustered rows are not independent. So the differences of labels and scores are summed
by cluster, and the signs of the sums are drawn. This needs the rows. Drawn signs reject too often
if labels are sparse or scores are close to 0 or 1, because a sum of many small values and a few
large ones is not symmetric. Drawn labels do not have this problem, so the result is the larger of
the two p-values. With more than a thousand clusters, the total sums are drawn from a normal
distribution with their covariance, which is the limit of drawn signs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import logit

from cmtrack.metrics._calibration import (
    DRAWS,
    MAX_BLOCKS,
    CalibrationTest,
    combined,
    reach,
    refused,
)
from cmtrack.metrics.calibration import ReliabilityTable
from cmtrack.metrics.class_curves import ClassCurves
from cmtrack.metrics.confidence import HitTable
from cmtrack.metrics.views import EvaluationViews
from cmtrack.statistics.collected import group_scores, is_positive
from cmtrack.statistics.design import Design
from cmtrack.statistics.grid import cells_of
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.predictions import Predictions

_BLOCKS = 64
"""Number of runs of scores with equal variance, after which sums of differences are compared."""
_MOST_SIGNS = 1000
"""Most clusters for which signs are drawn; more use a normal distribution."""
_AT_ONCE = 1 << 14
"""Clusters per chunk, which limits the memory."""
_LEAST_VARIANCE = 1e-300
"""A divisor above 0 for sums that do not vary."""
_SEED = 15


def row_pvalues(
    rows: Predictions, views: EvaluationViews, only: Sequence[str] = ()
) -> dict[str, float]:
    """Return the applicable p-values of calibration, confidence and classes, by full name.

    ``rows``: rows with clusters and probabilities.
    ``only``: full names of metrics; empty for all.
    """
    _, clusters = np.unique(rows.design.units, return_inverse=True)
    design = replace(rows.design, clusters=clusters)
    counted = design.counted
    pvalues = {}
    for name, score, event, table in _tests(rows, views):
        if only and name not in only:
            continue
        if not event[counted].any() or event[counted].all():
            continue
        by_signs = sign_test(score, event, design)
        if by_signs is None:
            continue
        pvalues[name] = by_signs.pvalue
        by_labels = table.test
        if by_labels is not None:
            pvalues[name] = max(by_signs.pvalue, by_labels.pvalue)
    return pvalues


def _tests(
    rows: Predictions, views: EvaluationViews
) -> Iterator[tuple[str, FloatArray, IntArray, ReliabilityTable]]:
    """Yield name, score, event (0 or 1) and counts of each applicable test."""
    probabilities = rows.probabilities
    if probabilities is None:
        raise ValueError("a test of calibration needs rows with probabilities")
    reliability = views.seen(ReliabilityTable)
    if reliability is not None and views.step is not None:
        score = group_scores(probabilities, views.step)
        yield "calibration/pvalue", score, is_positive(rows.actual, views.step), reliability
    for step in ("", *views.steps):
        table = views.seen(HitTable, step=step)
        if table is not None:
            score, hit = table.of_rows(rows.actual, rows.predicted, probabilities)
            name = f"confidence/{step}/pvalue" if step else "confidence/pvalue"
            yield name, score, hit.astype(np.int64), table
    curves = views.seen(ClassCurves)
    if curves is not None:
        for k, label in views.held.items():
            event = (rows.actual == k).astype(np.int64)
            yield f"class/{label}/calibration_pvalue", probabilities[:, k], event, curves.tables[k]


def sign_test(score: FloatArray, event: IntArray, design: Design) -> CalibrationTest | None:
    """Return the test with Kuiper's and Cox's statistics and signs drawn by cluster.

    ``score``, shape (n,): predicted probability.
    ``event``, shape (n,): 0 or 1.
    """
    weights = design.row_weights
    inner = (score > 0) & (score < 1) & (weights > 0)
    outer = ~inner & (weights > 0)
    if (outer & (event != (score >= 1))).any():
        return refused(DRAWS)
    if not inner.any():
        return None
    score = score[inner]
    difference = weights[inner] * (event[inner] - score)
    block = _runs(score, weights[inner])
    size = np.abs(difference)
    x = logit(score)
    x -= float(x @ size) / max(float(size.sum()), _LEAST_VARIANCE)
    cluster = design.units[inner]
    n_clusters = 1 + int(cluster.max())
    rng = np.random.default_rng(_SEED)
    drawn = np.zeros((DRAWS, _BLOCKS + 1))
    total = np.zeros(_BLOCKS + 1)
    covariance = np.zeros((_BLOCKS + 1, _BLOCKS + 1))
    spread = np.zeros((2, 2))
    for sums in _by_cluster(cluster, n_clusters, block, difference, difference * x):
        total += sums.sum(axis=0)
        ends = _ends(sums)
        spread += ends @ ends.T
        if n_clusters <= _MOST_SIGNS:
            drawn += rng.choice([-1.0, 1.0], (DRAWS, len(sums))) @ sums
        else:
            covariance += sums.T @ sums
    if n_clusters > _MOST_SIGNS:
        variances, axes = np.linalg.eigh(covariance)
        root = axes * np.sqrt(np.maximum(variances, 0.0))
        drawn = rng.standard_normal((DRAWS, _BLOCKS + 1)) @ root.T
    sums = np.vstack((total, drawn))
    ends = _ends(sums)
    cox = np.einsum("ad,ab,bd->d", ends, np.linalg.pinv(spread, hermitian=True), ends)
    kuiper = reach(sums[:, :-1]) / math.sqrt(max(float(spread[0, 0]), _LEAST_VARIANCE))
    return combined(kuiper, cox)


def _ends(sums: FloatArray) -> FloatArray:
    """Return the sums of all differences and of all moments, shape (2, n)."""
    return np.stack((sums[:, :-1].sum(axis=1), sums[:, -1]))


def _runs(score: FloatArray, weights: FloatArray) -> IntArray:
    """Return the index of each score's run of equal variance, shape (n,).

    Equal scores, or scores in the same cell of the grid, are in the same run.
    """
    if len(score) > MAX_BLOCKS:
        cell = cells_of(score)
    else:
        _, cell = np.unique(score, return_inverse=True)
    variance = np.bincount(cell, weights**2 * score * (1 - score)).astype(np.float64)
    middle = np.cumsum(variance) - variance / 2
    run = np.minimum(np.floor(_BLOCKS * middle / variance.sum()), _BLOCKS - 1).astype(np.int64)
    return run[cell]


def _by_cluster(
    number: IntArray, n_clusters: int, block: IntArray, difference: FloatArray, moment: FloatArray
) -> Iterator[FloatArray]:
    """Yield sums by cluster in chunks of c clusters, shape (c, runs + 1).

    The columns are the differences in each run, and the moment over all runs.
    """
    order = np.argsort(number, kind="stable")
    starts = np.arange(0, n_clusters, _AT_ONCE)
    bounds = np.searchsorted(number[order], np.append(starts, n_clusters))
    for first, start, stop in zip(starts.tolist(), bounds[:-1], bounds[1:], strict=True):
        rows = order[start:stop]
        n_chunk = min(_AT_ONCE, n_clusters - first)
        cluster = number[rows] - first
        cell = cluster * _BLOCKS + block[rows]
        sums = np.empty((n_chunk, _BLOCKS + 1))
        of_runs = np.bincount(cell, difference[rows], n_chunk * _BLOCKS)
        sums[:, :-1] = of_runs.reshape(n_chunk, -1)
        sums[:, -1] = np.bincount(cluster, moment[rows], n_chunk)
        yield sums
