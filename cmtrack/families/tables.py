"""Tables of a family evaluation: codes and families."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from cmtrack.families.counts import (
    ACTUAL,
    ACTUAL_OUTSIDE,
    HITS,
    MATCHINGS,
    PREDICTED,
    PREDICTED_OUTSIDE,
    UNIT,
)
from cmtrack.families.metrics import FEW, code_ratios
from cmtrack.grouping import Label
from cmtrack.metrics.cells import ratio
from cmtrack.metrics.names import encode_label
from cmtrack.statistics.inputs import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from cmtrack.families.result import FamilyEvaluation

_SIDES = (("predicted", PREDICTED, PREDICTED_OUTSIDE, "row"), ("actual", ACTUAL, ACTUAL_OUTSIDE, "column"))


def code_table(evaluation: FamilyEvaluation) -> pd.DataFrame:
    """One row per code (see :meth:`FamilyEvaluation.code_table`)."""
    import pandas as pd

    statistics = evaluation.statistics
    codes, families = statistics.codes, statistics.families
    names = np.array([*families.names, None], dtype=object)[:-1]
    columns: dict[str, Any] = {"code": list(families.codes), "family": names[families.family_of_code]}
    columns |= {"predicted": codes[:, PREDICTED], "actual": codes[:, ACTUAL], **code_ratios(codes)}
    for side, total, outside, matching in _SIDES:
        n, hits, beyond = (codes[:, column].astype(np.float64) for column in (total, HITS, outside))
        columns[f"match_given_{side}"] = ratio(hits, n)
        columns[f"confused_given_{side}"] = ratio(n - hits - beyond, n)
        columns[f"oof_given_{side}"] = ratio(beyond, n)
        partner, mass = most_frequent_partners(evaluation, matching)
        columns[f"partner_given_{side}"] = [families.codes[j] if j >= 0 else None for j in partner.tolist()]
        columns[f"partner_share_given_{side}"] = ratio(mass, n)
        columns[f"too_few_{side}"] = codes[:, total] < FEW
    return pd.DataFrame(columns)


def most_frequent_partners(evaluation: FamilyEvaluation, matching: str) -> tuple[IntArray, FloatArray]:
    """Each code's most frequent sibling on the other side, shape (L,), -1 where there is none, and its mass.

    ``matching`` is "row" for predicted codes (their actual siblings) and "column" for actual ones.
    """
    pairs, size = evaluation.statistics.pairs, len(evaluation.codes)
    mass = pairs.masses[:, MATCHINGS.index(matching)]
    actual, predicted = pairs.keys // size, pairs.keys % size
    own, other = (predicted, actual) if matching == "row" else (actual, predicted)
    partner, most = np.full(size, -1, dtype=np.int64), np.zeros(size)
    order = np.lexsort((-other, mass, own))  # the last of each code has the largest mass, the first code on ties
    partner[own[order]] = other[order]
    most[own[order]] = mass[order] / UNIT
    return partner, most


def family_table(evaluation: FamilyEvaluation) -> pd.DataFrame:
    """One row per family (see :meth:`FamilyEvaluation.family_table`)."""
    import pandas as pd

    rows = [
        _family_row(evaluation, family, n) for family, n in zip(evaluation.families, _sizes(evaluation), strict=True)
    ]
    return pd.DataFrame(rows)


def _sizes(evaluation: FamilyEvaluation) -> list[int]:
    return [int(n) for n in np.diff(evaluation.statistics.families.starts)]


def _family_row(evaluation: FamilyEvaluation, family: Label, codes: int) -> dict[str, Any]:
    prefix, metrics, intervals = (
        f"family/{encode_label(family)}",
        evaluation._results.metrics,
        evaluation._results.intervals,
    )
    row: dict[str, Any] = {"family": family, "codes": codes, "support": metrics[f"{prefix}/support"]}
    for name in ("f1_micro", "precision_micro", "recall_micro", "confusion_share", "oof_share"):
        low, high = intervals.get(f"{prefix}/{name}", (math.nan, math.nan))
        row |= {name: metrics[f"{prefix}/{name}"], f"{name}_low": low, f"{name}_high": high}
    return row
