"""Repeated runs: the same models over seeds, cross-validation folds or data sets."""

from cmtrack.comparison.repeated._analysis import BLOCK as BLOCK
from cmtrack.comparison.repeated._analysis import Gap as Gap
from cmtrack.comparison.repeated._analysis import Kind as Kind
from cmtrack.comparison.repeated._analysis import RepeatedResult as RepeatedResult
from cmtrack.comparison.repeated._analysis import analyse as analyse
from cmtrack.comparison.repeated._bayes import RopeProbabilities as RopeProbabilities
from cmtrack.comparison.repeated._bayes import bayesian_correlated_t as bayesian_correlated_t
from cmtrack.comparison.repeated._bayes import bayesian_signed_rank as bayesian_signed_rank
from cmtrack.comparison.repeated._pairs import Pair as Pair
from cmtrack.comparison.repeated._pairs import Pairwise as Pairwise
from cmtrack.comparison.repeated._pairs import RepeatedDifference as RepeatedDifference
from cmtrack.comparison.repeated._pairs import corrected_resampled_t as corrected_resampled_t
from cmtrack.comparison.repeated._pairs import seed_differences as seed_differences
from cmtrack.comparison.repeated._pairs import wilcoxon_holm as wilcoxon_holm
from cmtrack.comparison.repeated._pairs import wilcoxon_signed_rank as wilcoxon_signed_rank
from cmtrack.comparison.repeated._ranks import Friedman as Friedman
from cmtrack.comparison.repeated._ranks import Nemenyi as Nemenyi
from cmtrack.comparison.repeated._ranks import friedman as friedman
from cmtrack.comparison.repeated._ranks import nemenyi as nemenyi
from cmtrack.comparison.repeated._scores import ModelSummary as ModelSummary
from cmtrack.comparison.repeated._scores import Summary as Summary
from cmtrack.comparison.repeated._scores import summary as summary
from cmtrack.metrics.intervals import holm as holm
