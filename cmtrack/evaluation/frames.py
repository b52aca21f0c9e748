"""The numbers of an evaluation as a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cmtrack.metrics.names import encode_label

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.evaluation.result import Evaluation


def class_frame(evaluation: Evaluation) -> pd.DataFrame:
    """One row per class: label, support, predicted, and precision, recall and F1 with the ends of their intervals."""
    import pandas as pd

    if not evaluation.has_section("class"):
        evaluation = evaluation.with_sections(["class"])
    metrics, intervals = evaluation.metrics, evaluation.intervals
    predicted = evaluation.confusion_matrix.counts.sum(axis=0)
    rows = []
    for label, called in zip(evaluation.labels, predicted.tolist(), strict=True):
        if label == evaluation.none and evaluation.none is not None:
            continue
        prefix = f"class/{encode_label(label)}"
        row = {"label": label, "support": metrics[f"{prefix}/support"], "predicted": float(called)}
        for name in ("precision", "recall", "f1"):
            low, high = intervals.get(f"{prefix}/{name}", (math.nan, math.nan))
            row |= {name: metrics[f"{prefix}/{name}"], f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    return pd.DataFrame(rows)
