"""Figures that are drawn from computed data.

Every function takes plain arrays, draws into the given axes or into a new figure, and returns the
:class:`matplotlib.figure.Figure`. No function uses pyplot or process-wide parameters, so figures
work without a display and in threads, and Python frees them like any other object.

The data are computed elsewhere: the properties of an :class:`~cmtrack.Evaluation` compute the data
of its figures, and :mod:`cmtrack.report` computes the data of a review. Start reading with
``evaluation.py``, which draws the figures of an evaluation. ``style.py`` defines the axes, legends
and layout that all figures share. ``_heatmap.py`` defines the parts of matrix figures, and
``svg.py`` defines the renderer for pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmtrack._lazy import found_in, needs

with needs("drawing figures", "matplotlib"):
    import matplotlib  # noqa: F401
from .confusion import plot_confusion_matrix, plot_reduced_matrix
from .counts import CountedCell, plot_counts
from .decisions import plot_decision_curve, plot_gains, plot_risk_coverage
from .evaluation import evaluation_figures, prevalence_figure, reliability_figure
from .evaluation import evaluation_figures as family_figures
from .families import (
    FamilyPanel,
    code_figure,
    family_matrix_figure,
    plot_code_shares,
    plot_family_matrix,
    plot_worst_families,
)
from .history import GainMonth, VersionMonth, plot_gain_by_month, plot_history
from .precision_recall import plot_precision_recall
from .prevalence import plot_at_prevalence, plot_prevalence
from .reliability import ReliabilityPanel, plot_reliability, plot_reliability_panels
from .roc import plot_roc
from .rough import plot_rough_approximations
from .scores import plot_score_histogram
from .segments import SegmentPanel, plot_segments
from .spcc import PairSeparation, plot_spcc_matrix, plot_spcc_pairs
from .style import BLUE, ORANGE, as_png, new_figure
from .svg import as_svg, as_svg_and_png
from .thresholds import plot_thresholds, threshold_figure

__all__ = [
    "BLUE",
    "ORANGE",
    "CountedCell",
    "FamilyPanel",
    "GainMonth",
    "PairSeparation",
    "ReliabilityPanel",
    "SegmentPanel",
    "VersionMonth",
    "as_png",
    "as_svg",
    "as_svg_and_png",
    "code_figure",
    "evaluation_figures",
    "family_figures",
    "family_matrix_figure",
    "new_figure",
    "plot_at_prevalence",
    "plot_code_shares",
    "plot_confusion_matrix",
    "plot_counts",
    "plot_decision_curve",
    "plot_family_matrix",
    "plot_gain_by_month",
    "plot_gains",
    "plot_history",
    "plot_precision_recall",
    "plot_prevalence",
    "plot_reduced_matrix",
    "plot_reliability",
    "plot_reliability_panels",
    "plot_risk_coverage",
    "plot_roc",
    "plot_rough_approximations",
    "plot_score_histogram",
    "plot_segments",
    "plot_spcc_matrix",
    "plot_spcc_pairs",
    "plot_thresholds",
    "plot_worst_families",
    "prevalence_figure",
    "reliability_figure",
    "threshold_figure",
]

if not TYPE_CHECKING:  # a type checker would otherwise accept every name
    # a removed name raises an error that names its replacement
    __getattr__ = found_in(__name__, {})
