"""Bootstrap intervals of count metrics: multinomial tables instead of resampled rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cmtrack.evaluation.compute import metric_values
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.views import EvaluationViews
from cmtrack.statistics import ConfusionMatrix
from cmtrack.statistics.collected import Statistics


def resample_tables(
    views: EvaluationViews, n_resamples: int, seed: int, own: Sequence[Metric] = ()
) -> dict[str, Interval]:
    """Percentile intervals of every metric of the counts, by name.

    Raises
    ------
    ValueError
        If weights are fractions.
    """
    statistics, level = views.statistics, views.level
    counts = statistics.matrix.counts
    if counts.dtype.kind != "i":
        raise ValueError("a bootstrap of tables needs whole counts; with fractional weights use method='influence'")
    rng = np.random.default_rng(seed)
    total = int(counts.sum())
    drawn = rng.multinomial(total, counts.ravel() / total, n_resamples)
    names: list[str] = []
    values = np.empty((0, 0))
    for b, table in enumerate(drawn):
        matrix = ConfusionMatrix(table.reshape(counts.shape), statistics.matrix.labels)
        plain = Statistics(matrix, statistics.digest)
        metrics = metric_values(EvaluationViews(plain, views.grouping, views.step, views.over, level), own)
        if b == 0:
            names = list(metrics)
            values = np.empty((n_resamples, len(names)))
        values[b] = [metrics[name] for name in names]
    tails = [(1 - level) / 2, (1 + level) / 2]
    out: dict[str, Interval] = {}
    for name, column in zip(names, values.T, strict=True):
        known = column[~np.isnan(column)]
        if known.size:
            low, high = np.quantile(known, tails)
            if not math.isnan(low):
                out[name] = (float(low), float(high))
    return out
