"""The calibration test for rows in clusters.

The labels of rows in the same cluster are not independent. The test therefore sums the differences
between labels and scores by cluster, and draws the signs of the sums. These sums can only be
computed from the rows. A test with drawn signs rejects too often if positive labels are rare or
scores are close to 0 or 1, because a sum of many small values and a few large ones does not have a
symmetric distribution. A test with drawn labels does not have this problem, so the result is the
larger p-value of the two tests. If there are more than a thousand clusters, the total sums are
drawn from a normal distribution with the same covariance. Sums with drawn signs approach this
distribution as the number of clusters increases.
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
"""Number of groups of neighbouring scores with equal variance. The running sums of differences are
compared at the end of each group.
"""
_MOST_SIGNS = 1000
"""Largest number of clusters for which signs are drawn. If there are more clusters, sums are drawn
from a normal distribution.
"""
_AT_ONCE = 1 << 14
"""Number of clusters in each chunk, which limits how much memory is used."""
_LEAST_VARIANCE = 1e-300
"""A number above 0 that is used as the divisor for sums that do not vary."""
_SEED = 15


def row_pvalues(
    rows: Predictions, views: EvaluationViews, only: Sequence[str] = ()
) -> dict[str, float]:
    """Return the p-values of all applicable calibration tests, by the full names of the metrics.

    ``rows``: rows with clusters and probabilities.
    ``only``: full names of metrics. If it is empty, all tests are performed.
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
    """Yield the name, the score, the event (0 or 1) and the counts for each applicable test."""
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
    """Perform the test with Kuiper's and Cox's statistics, and draw one sign for each cluster.

    ``score``, shape (n,): predicted probability.
    ``event``, shape (n,): 1 if the predicted event occurred, otherwise 0.
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
    """Return the sum of all differences and the sum of all moments, shape (2, n)."""
    return np.stack((sums[:, :-1].sum(axis=1), sums[:, -1]))


def _runs(score: FloatArray, weights: FloatArray) -> IntArray:
    """Return the index of the group of equal variance to which each score belongs, shape (n,).

    Equal scores, or scores in the same cell of the grid, belong to the same group.
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
    """Yield the sums by cluster in chunks of c clusters, as arrays of shape (c, runs + 1).

    The columns contain the sum of the differences in each group of scores, and the moment over all
    groups.
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
