"""Statistics: small sums that merge exactly, and from which every number is computed.

This package turns checked rows into statistics, wherever the rows are. It reads input once
(``labels``, ``factorize``, ``inputs``, ``probabilities``, ``attributes``) and stores statistics as
plain data (``plain``). It does not depend on metrics, tables of other libraries or files.

Start with ``collected``. There ``Statistics`` lists everything that is kept, and ``count_rows`` is
the kernel that every source of rows uses. ``score_pass`` reads probabilities block by block, and
each statistic has its own module (``confusion``, ``moments``, ``scores``, ``actual_class``,
``class_scores``, ``top_scores``, ``decisions``, ``segmented``). ``kernel`` counts batches of
tables. ``predictions`` has the rows themselves, and ``design`` has their weights and clusters.

To add a statistic, write a class that merges, add a field to ``Statistics``, and count it in
``count_rows`` or ``score_pass``.
"""

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
