"""What is wrong in Tables 6 to 8: recomputed from Figure 7, and from the published numbers themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from cmtrack import Evaluation
from nps import published
from nps.reductions import ROWS_8, expanded

CAUSES = {
    "Specificity": "IMN set to IMP: TN / (TN + FP + IMP)",
    "Negative Predictive Value": "IMN set to IMP: TN / (TN + FN + IMP)",
    "Fall Out Rate": "FP over the actual positives: FP / (TP + FN + IMP)",
    "False Omission Rate": "IMN set to IMP: FN / (TN + FN + IMP)",
    "Mathews Correlation Coefficient": "equation 28 as printed, with IMN set to IMP",
}
IDENTITIES = {
    "TPR + PIMR + FNR (eq. 33)": ("Recall", "PIMR", "Miss Rate"),
    "TNR + FPR (eq. 34, NIMR = 0)": ("Specificity", "Fall Out Rate"),
    "PPV + PPIMR + FDR (eq. 35)": ("Precision", "PPIMR", "False Discovery Rate"),
    "NPV + FOR (eq. 36, NPIMR = 0)": ("Negative Predictive Value", "False Omission Rate"),
}
SEARCHED = ("Recall", "Miss Rate", "Precision", "False Discovery Rate")
"""Rows by which the search for matrices is narrowed down, so that none of them can be left out of it."""
ROUNDING = 0.005
Number = Any
"""A number or an array of numbers."""


def misread_rates(tp: Number, fn: Number, imp: Number, fp: Number, tn: Number) -> dict[str, Number]:
    """The five rows of Table 8 as they come out with IMN set to IMP, and FPR over the actual positives."""
    roots = np.sqrt((tp + fn + imp) * (tp + fp + imp) * 1.0) * np.sqrt(
        (fn + tn + imp) * (fp + tn + imp) * 1.0
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "Specificity": np.divide(tn, tn + fp + imp),
            "Negative Predictive Value": np.divide(tn, tn + fn + imp),
            "Fall Out Rate": np.divide(fp, tp + fn + imp),
            "False Omission Rate": np.divide(fn, tn + fn + imp),
            "Mathews Correlation Coefficient": np.divide(
                imp * imp + (tp + imp) * tn - fn * fp, roots
            ),
        }


def misread_of(evaluation: Evaluation) -> dict[str, float]:
    """The same from an evaluation."""
    counts = evaluation.binary
    if counts is None:
        raise ValueError("the evaluation has no two groups")
    rates = misread_rates(counts.tp, counts.fn, counts.imp, counts.fp, counts.tn)
    return {name: float(value) for name, value in rates.items()}


def table_8(evaluation: Evaluation) -> pd.DataFrame:
    """Table 8's logistic regression: published, correct, and where a published number comes from."""
    origin = misread_of(evaluation)
    rows = []
    for row, value in published.TABLE_8["Logistic Regr."].items():
        correct = evaluation.metrics[ROWS_8[str(row)]]
        wrong = abs(correct - value) > ROUNDING
        rows.append(
            {
                "metric": row,
                "published": f"{value:.2f}",
                "correct": correct,
                "as published it comes from": CAUSES[str(row)] if wrong else "the correct formula",
                "which gives": origin[str(row)] if wrong else correct,
            }
        )
    return pd.DataFrame(rows).set_index("metric")


def identities() -> pd.DataFrame:
    """Sums of the published rates of each algorithm, all of which must be 1."""
    sums = {
        name: sum(
            (published.TABLE_8.loc[row] for row in rows),
            start=pd.Series(0.0, index=published.ALGORITHMS),
        )
        for name, rows in IDENTITIES.items()
    }
    return pd.DataFrame(sums).T.rename_axis("sum of published rates")


def holds(sums: pd.DataFrame) -> pd.Series:
    """In how many of the columns a sum is 1, as far as rounding lets one see."""
    parts = pd.Series({name: len(rows) for name, rows in IDENTITIES.items()})
    return ((sums - 1).abs().le(parts * ROUNDING + 1e-9, axis=0)).sum(axis=1)


def f1_rows() -> pd.DataFrame:
    """F1 of Tables 6 to 8, published and by Table 3's definition from the published precision and recall."""
    out = {}
    for name, table, row in (
        ("Table 6", published.TABLE_6, "F1-score"),
        ("Table 7", published.TABLE_7, "F1-score"),
        ("Table 8", published.TABLE_8, "F1-Score"),
    ):
        precision, recall = table.loc["Precision"], table.loc["Recall"]
        out[f"{name}, published"] = table.loc[row]
        out[f"{name}, from published precision and recall"] = (
            2 * precision * recall / (precision + recall)
        )
        low = _f1(precision - ROUNDING, recall - ROUNDING) - ROUNDING
        high = _f1(precision + ROUNDING, recall + ROUNDING) + ROUNDING
        possible = table.loc[row].between(low, high)
        out[f"{name}, can be equal"] = possible.map({True: "yes", False: "no"})
    return pd.DataFrame(out).T.rename_axis("F1 of")


def matrices_that_fit(
    column: str, *, misread: bool, leave_out: tuple[str, ...] = (), rows: int = 509
) -> pd.DataFrame:
    """All 2x2+IM matrices of whole customers that give all of an algorithm's published numbers, rounded.

    The validation set of one algorithm need not be that of another, so that every number of positives is tried.

    Parameters
    ----------
    column : str
        Of Table 8.
    misread : bool
        Whether the rows of `CAUSES` are computed as in :func:`misread_rates` instead of correctly.
    leave_out : tuple of str
        Rows that need not fit.
    rows : int
        Customers in the validation set; IMN is 0.

    Returns
    -------
    DataFrame
        Columns tp, fn, imp, fp, tn, imn.
    """
    known = published.TABLE_8[column]
    asked = known.drop(list(leave_out))
    tried = np.concatenate([_tried(known, positives, rows) for positives in range(1, rows)])
    frame = pd.DataFrame(tried, columns=["tp", "fn", "imp", "fp", "tn"]).query(
        "imp >= 0 and tn >= 0"
    )
    return frame[_fits(asked, frame, misread)].reset_index(drop=True).assign(imn=0)


def _tried(known: pd.Series, positives: int, rows: int) -> np.ndarray:
    tp, fn, fp = (a.ravel() for a in np.meshgrid(*_ranges(known, positives, rows), indexing="ij"))
    return np.column_stack((tp, fn, positives - tp - fn, fp, rows - positives - fp))


def _ranges(
    known: pd.Series, positives: int, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole numbers of TP, FN and FP that the published recall, miss rate and false discovery rate allow."""
    tp = _whole(known["Recall"], positives)
    fn = _whole(known["Miss Rate"], positives)
    if not len(tp):
        return tp, fn, tp
    predicted = tp[0] / (known["Precision"] + ROUNDING), tp[-1] / (known["Precision"] - ROUNDING)
    least = math.floor(predicted[0] * (known["False Discovery Rate"] - ROUNDING))
    most = math.ceil(predicted[1] * (known["False Discovery Rate"] + ROUNDING))
    return tp, fn, np.arange(max(least, 0), min(most, rows - positives) + 1)


def _whole(rate: float, total: int) -> np.ndarray:
    return np.arange(
        max(math.ceil((rate - ROUNDING) * total), 0), math.floor((rate + ROUNDING) * total) + 1
    )


def _fits(asked: pd.Series, tried: pd.DataFrame, misread: bool) -> np.ndarray:
    tp, fn, imp, fp, tn = (
        tried[name].to_numpy(dtype=float) for name in ("tp", "fn", "imp", "fp", "tn")
    )
    actual, predicted, n_act, n_pred = tp + fn + imp, tp + fp + imp, fp + tn, fn + tn
    with np.errstate(invalid="ignore", divide="ignore"):
        computed = {
            "Accuracy": (tp + tn) / (actual + n_act),
            "Precision": tp / predicted,
            "Recall": tp / actual,
            "F1-Score": 2 * tp / (actual + predicted),
            "Specificity": tn / n_act,
            "Miss Rate": fn / actual,
            "Negative Predictive Value": tn / n_pred,
            "Fall Out Rate": fp / n_act,
            "False Discovery Rate": fp / predicted,
            "False Omission Rate": fn / n_pred,
            "Fowlkes-Mallows index": tp / np.sqrt(actual * predicted),
            "Mathews Correlation Coefficient": ((tp + imp) * tn - fn * fp)
            / np.sqrt(actual * predicted * n_act * n_pred),
            "PIMR": imp / actual,
            "PPIMR": imp / predicted,
        }
        if misread:
            computed |= misread_rates(tp, fn, imp, fp, tn)
        inside = [
            np.abs(computed[str(row)] - value) <= ROUNDING + 1e-9 for row, value in asked.items()
        ]
    return np.logical_and.reduce(inside)


def _f1(precision: pd.Series, recall: pd.Series) -> pd.Series:
    return 2 * precision * recall / (precision + recall)


def recovered(algorithms: tuple[str, ...], positives: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What Table 8 should say: corrected rows from the matrices that give the published numbers when misread.

    Parameters
    ----------
    algorithms : tuple of str
    positives : int
        Actual positives of the validation set, which Figure 7 gives.

    Returns
    -------
    (how many matrices fit, ranges of the corrected rows)
    """
    fits, ranges = {}, {}
    for name in algorithms:
        found = matrices_that_fit(name, misread=True)
        inside = found[found[["tp", "fn", "imp"]].sum(axis=1) == positives]
        fits[name] = {
            "formulas of Table 5": len(matrices_that_fit(name, misread=False)),
            "IMN set to IMP, FPR over positives": len(found),
            f"of these, with {positives} positives": len(inside),
        }
        metrics = [evaluation_of(*row).metrics for row in inside.itertuples(index=False)]
        ranges[name] = {row: _range([m[ROWS_8[row]] for m in metrics]) for row in CAUSES}
    counted = pd.DataFrame(fits).rename_axis("matrices that give all 14 numbers")
    return counted, pd.DataFrame(ranges).rename_axis("metric")


def evaluation_of(tp: int, fn: int, imp: int, fp: int, tn: int, imn: int = 0) -> Evaluation:
    """An evaluation with these six counts (IMN must be 0, as for a group of one class)."""
    if imn:
        raise ValueError(f"a negative group of one class has no mismatches, got imn={imn}")
    return expanded(np.array([[tn, fp, 0], [fn, tp, imp], [0, 0, 0]]))


def _range(found: list[float]) -> str:
    if not found:
        return "–"
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return low if low == high else f"{low}–{high}"
