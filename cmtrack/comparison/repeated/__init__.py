"""Analysis of models whose runs are repeated over seeds or cross-validation folds."""

from cmtrack.comparison.repeated._analysis import BLOCK as BLOCK
from cmtrack.comparison.repeated._analysis import Gap as Gap
from cmtrack.comparison.repeated._analysis import Kind as Kind
from cmtrack.comparison.repeated._analysis import RepeatedResult as RepeatedResult
from cmtrack.comparison.repeated._analysis import analyse as analyse
from cmtrack.comparison.repeated._pairs import Pair as Pair
from cmtrack.comparison.repeated._pairs import Pairwise as Pairwise
from cmtrack.comparison.repeated._pairs import RepeatedDifference as RepeatedDifference
from cmtrack.comparison.repeated._pairs import corrected_resampled_t as corrected_resampled_t
from cmtrack.comparison.repeated._pairs import seed_differences as seed_differences
from cmtrack.comparison.repeated._scores import ModelSummary as ModelSummary
from cmtrack.comparison.repeated._scores import Summary as Summary
from cmtrack.comparison.repeated._scores import summary as summary
from cmtrack.metrics.intervals import holm as holm
