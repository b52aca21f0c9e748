"""Tables that the MLflow UI shows and compares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cmtrack.evaluation import Evaluation

if TYPE_CHECKING:
    import pandas as pd

BETWEEN = " · "
"""Between the numbers of a cell: line breaks are lost in MLflow's view."""


def class_table(evaluation: Evaluation) -> pd.DataFrame:
    """One row per class, the label first: the artifact view groups runs by the first column."""
    import pandas as pd

    rows = []
    for row in evaluation.class_table().to_dict("records"):
        shown: list[str] = []
        numbers: dict[str, float | None] = {}
        for name in ("recall", "precision", "f1"):
            value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
            numbers |= {name: _rounded(value), f"{name}_low": _rounded(low), f"{name}_high": _rounded(high)}
            shown.append(_shown(name, value, low, high))
        # the view that compares runs opens with the second column, and shows it on one line
        result = BETWEEN.join(shown)
        rows.append({"label": str(row["label"]), "result": result, "support": row["support"], **numbers})
    return pd.DataFrame(rows)


def _shown(name: str, value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return f"{name} undefined"
    return f"{name} {value:.3f} [{low:.3f}, {high:.3f}]" if math.isfinite(low + high) else f"{name} {value:.3f}"


def _rounded(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
