"""Many evaluations: which differences are real."""

from cmtrack.comparison.differences import Difference, Differences, McNemar, mcnemar, paired_differences
from cmtrack.comparison.randomization import randomization_test

__all__ = ["Difference", "Differences", "McNemar", "mcnemar", "paired_differences", "randomization_test"]
