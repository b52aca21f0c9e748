"""The table of codes that the MLflow UI shows and compares."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.families.result import FamilyEvaluation
from cmtrack.report.tables import BETWEEN

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 2000


def code_table(evaluation: FamilyEvaluation) -> pd.DataFrame:
    """One row per code, the code first: the artifact view groups runs by the first column.

    Of more than 2,000 codes those with the most labels.
    """
    import pandas as pd

    table = evaluation.code_table()
    if len(table) > MAX_ROWS:
        labels = (table["predicted"] + table["actual"]).to_numpy()
        table = table.iloc[np.sort(np.argsort(-labels, kind="stable")[:MAX_ROWS])]
    rows = []
    for row in table.to_dict("records"):
        numbers = {name: _rounded(row[name]) for name in ("recall", "precision", "f1")}
        shown = [f"{name} {value:.3f}" if value is not None else f"{name} undefined" for name, value in numbers.items()]
        if row["partner_given_predicted"] is not None:
            shown.append(f"instead actual {row['partner_given_predicted']} {row['partner_share_given_predicted']:.3f}")
        rows.append(
            {
                "label": str(row["code"]),
                "result": BETWEEN.join(shown),  # the view that compares runs opens with the second column
                "family": str(row["family"]),
                "support": int(row["actual"]),
                "predicted": int(row["predicted"]),
                **numbers,
                **{
                    f"{share}_given_{side}": _rounded(row[f"{share}_given_{side}"])
                    for side in ("predicted", "actual")
                    for share in ("confused", "oof")
                },
                **{f"partner_given_{side}": _text(row[f"partner_given_{side}"]) for side in ("predicted", "actual")},
                "few": bool(row["too_few_predicted"] or row["too_few_actual"]),
            }
        )
    return pd.DataFrame(rows)


def _rounded(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None


def _text(code: Any) -> str:
    return "" if code is None or code != code else str(code)
