"""Figures of a model-selection review: several classifiers compared on the same test rows.

Like all functions of :mod:`cmtrack.plots`, these functions take plain arrays and return a
:class:`matplotlib.figure.Figure` without using pyplot. Pass the runs in order, from best to worst.
"""

from __future__ import annotations

from .matrices import plot_matrices, plot_matrix_difference
from .metrics_heatmap import plot_metric_heatmap
from .overlays import plot_precision_recall_overlay, plot_reliability_overlay, plot_roc_overlay
from .parameter import plot_metric_against_parameter
from .ranking import plot_ranking
from .ranks import plot_rank_distribution

__all__ = [
    "plot_matrices",
    "plot_matrix_difference",
    "plot_metric_against_parameter",
    "plot_metric_heatmap",
    "plot_precision_recall_overlay",
    "plot_rank_distribution",
    "plot_ranking",
    "plot_reliability_overlay",
    "plot_roc_overlay",
]
