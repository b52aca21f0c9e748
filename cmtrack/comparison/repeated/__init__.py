"""Repeated runs: the same models over seeds, cross-validation folds or data sets."""

from cmtrack.comparison.repeated._analysis import BLOCK, Gap, Kind, RepeatedResult, analyse
from cmtrack.comparison.repeated._bayes import RopeProbabilities, bayesian_correlated_t, bayesian_signed_rank
from cmtrack.comparison.repeated._pairs import (
    Pair,
    Pairwise,
    RepeatedDifference,
    corrected_resampled_t,
    seed_differences,
    wilcoxon_holm,
    wilcoxon_signed_rank,
)
from cmtrack.comparison.repeated._ranks import Friedman, Nemenyi, friedman, nemenyi
from cmtrack.comparison.repeated._scores import ModelSummary, Summary, summary
from cmtrack.metrics.intervals import holm

__all__ = [
    "BLOCK",
    "Friedman",
    "Gap",
    "Kind",
    "ModelSummary",
    "Nemenyi",
    "Pair",
    "Pairwise",
    "RepeatedDifference",
    "RepeatedResult",
    "RopeProbabilities",
    "Summary",
    "analyse",
    "bayesian_correlated_t",
    "bayesian_signed_rank",
    "corrected_resampled_t",
    "friedman",
    "holm",
    "nemenyi",
    "seed_differences",
    "summary",
    "wilcoxon_holm",
    "wilcoxon_signed_rank",
]
