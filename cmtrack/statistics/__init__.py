"""Statistics: small sums that can be merged, and from which all results are computed.

This package checks rows and computes statistics from them, in this process or on workers. The
package reads input once (``labels``, ``factorize``, ``inputs``, ``probabilities``, ``attributes``)
and stores statistics as plain data (``plain``). The package does not depend on metrics, tables from
other libraries or files.

Start with ``collected``. In it, ``Statistics`` lists all statistics, and ``count_rows`` is the
kernel that every source of rows uses. ``score_pass`` reads probabilities block by block, and each
statistic is defined in a separate module (``confusion``, ``moments``, ``scores``, ``actual_class``,
``class_scores``, ``top_scores``, ``decisions``, ``segmented``). ``kernel`` counts batches of
tables. ``predictions`` defines a container for the rows, and ``design`` for their weights and
clusters.

To add a statistic, write a class whose objects can be merged, add a field to ``Statistics``, and
compute the statistic in ``count_rows`` or ``score_pass``.
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
