"""The numbers of an evaluation as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cmtrack.metrics.catalog import lookup

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.evaluation.face import Judged


def metric_frame(evaluation: Judged) -> pd.DataFrame:
    """One row per metric: metric, value, low, high, better, and why it is undefined."""
    import pandas as pd

    intervals, undefined, nothing = evaluation.intervals, evaluation.undefined, (math.nan, math.nan)
    rows = [
        (name, value, *intervals.get(name, nothing), lookup(name).better, undefined.get(name, ""))
        for name, value in evaluation.metrics.items()
    ]
    return pd.DataFrame(rows, columns=["metric", "value", "low", "high", "better", "undefined"])
