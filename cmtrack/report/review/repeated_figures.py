"""The figures of repeated runs."""

from __future__ import annotations

import math

from matplotlib.figure import Figure

from cmtrack.comparison.blocks import RepeatedRanking
from cmtrack.metrics.catalog import lookup
from cmtrack.plots import review as plots
from cmtrack.report.review.titles import metric_title


def critical_difference_figure(ranking: RepeatedRanking) -> Figure | None:
    """Average ranks over data sets, joined where the signed-rank tests tell no pair apart."""
    result = ranking.result
    if ranking.kind != "datasets" or result.friedman is None or len(result.names) < 2:
        return None
    return plots.plot_critical_difference(
        result.names,
        result.friedman.ranks,
        groups=result.cliques,
        caption=f"Average ranks over {result.blocks} data sets; signed-rank tests of all pairs, adjusted by Holm.",
    )


def metric_by_block_figure(ranking: RepeatedRanking) -> Figure | None:
    """Every model in every block."""
    values = ranking.scores.T.tolist()
    if not any(math.isfinite(value) for row in values for value in row):
        return None
    metric = ranking.criterion.metrics[0]
    return plots.plot_metric_heatmap(
        [model.name for model in ranking.models],
        list(ranking.block_names),
        values,
        [lookup(metric).better] * len(ranking.block_names),
        title=f"{metric_title(metric, brief=True)} by {ranking.blocks.by}",
    )
