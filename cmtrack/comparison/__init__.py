"""Many evaluations: which differences are real, which run to take."""

from cmtrack.comparison.differences import Difference, Differences, McNemar, mcnemar, paired_differences
from cmtrack.comparison.randomization import randomization_test
from cmtrack.comparison.ranking import RankedRun, Ranking
from cmtrack.comparison.result import Comparison, LeftOut, ModelComparison, RunComparison

__all__ = [
    "Comparison",
    "Difference",
    "Differences",
    "LeftOut",
    "McNemar",
    "ModelComparison",
    "RankedRun",
    "Ranking",
    "RunComparison",
    "mcnemar",
    "paired_differences",
    "randomization_test",
]
