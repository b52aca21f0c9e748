"""Statistics: what is kept of the data, small sums that merge exactly, and from which every number is computed."""

from cmtrack.statistics.confusion import ConfusionMatrix
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.design import Design
from cmtrack.statistics.digest import LabelDigest
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.moments import ScoreMoments
from cmtrack.statistics.predictions import Predictions, RowIds
from cmtrack.statistics.reduced import BinaryCounts, ReducedConfusionMatrix
from cmtrack.statistics.scores import EXACT_ROWS, ScoreCounts

__all__ = [
    "EXACT_ROWS",
    "BinaryCounts",
    "ConfusionMatrix",
    "Counted",
    "Design",
    "LabelDigest",
    "Predictions",
    "ReducedConfusionMatrix",
    "RowIds",
    "ScoreCounts",
    "ScoreMoments",
    "grid_edges",
]
