"""Statistics: what is kept of the data, small sums that merge exactly, and from which every number is computed."""

from cmtrack.statistics.confusion import ConfusionMatrix
from cmtrack.statistics.digest import LabelDigest
from cmtrack.statistics.moments import ScoreMoments
from cmtrack.statistics.reduced import BinaryCounts, ReducedConfusionMatrix
from cmtrack.statistics.scores import ScoreCounts

__all__ = [
    "BinaryCounts",
    "ConfusionMatrix",
    "LabelDigest",
    "ReducedConfusionMatrix",
    "ScoreCounts",
    "ScoreMoments",
]
