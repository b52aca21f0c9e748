"""Repeated runs: the same models over seeds, cross-validation folds or data sets."""

from cmtrack.comparison.repeated.analysis import analyse
from cmtrack.comparison.repeated.bayes import RopeProbabilities, bayesian_correlated_t, bayesian_signed_rank
from cmtrack.comparison.repeated.pairs import Pair, Pairwise, holm
from cmtrack.comparison.repeated.rank_tests import Friedman, Nemenyi, friedman, nemenyi
from cmtrack.comparison.repeated.result import Gap, RepeatedResult
from cmtrack.comparison.repeated.signed_ranks import wilcoxon_holm, wilcoxon_signed_rank
from cmtrack.comparison.repeated.student import RepeatedDifference, corrected_resampled_t, seed_differences
from cmtrack.comparison.repeated.summaries import ModelSummary, Summary, summary

__all__ = [
    "Friedman",
    "Gap",
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
