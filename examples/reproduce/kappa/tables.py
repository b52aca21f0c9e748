"""The tables of the report: one row per number, class, or set of margins."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from cmtrack import Evaluation
from kappa import published
from kappa.margins import extreme
from kappa.ratings import Counts, chance_terms, judged, margins, readings
from kappa.simulated import ACCURACY, KAPPA
from study import beside

GRADES = published.GRADES


def reading_table() -> tuple[pd.DataFrame, list[Counts]]:
    """Every reading of the digits with its numbers, the published total first; the tables in the same order."""
    tables = sorted(
        readings(published.DIGITS), key=lambda counts: abs(int(counts.sum()) - published.DISHES)
    )
    rows = []
    for counts in tables:
        terms, metrics = chance_terms(counts), judged(counts, GRADES).metrics
        row: dict[str, object] = {
            "rows": counts.tolist(),
            "dishes": int(counts.sum()),
            "p_o": metrics[ACCURACY],
        }
        row |= {f"chance {grade}": float(term) for grade, term in zip(GRADES, terms, strict=True)}
        rows.append(row | {"p_e": float(terms.sum()), "kappa": metrics[KAPPA]})
    return pd.DataFrame(rows), tables


def class_table(evaluation: Evaluation) -> pd.DataFrame:
    """What recall and precision are divided by, for each class."""
    counts, metrics, rows = evaluation.confusion_matrix.counts, evaluation.metrics, []
    for k, grade in enumerate(evaluation.labels):
        hits, actual, predicted = int(counts[k, k]), int(counts[k].sum()), int(counts[:, k].sum())
        rows.append(
            {
                "class": grade,
                "TP": hits,
                "FN": actual - hits,
                "total actual": actual,
                "total predicted": predicted,
                "recall": metrics[f"class/{grade}/recall"],
                "precision": metrics[f"class/{grade}/precision"],
                "TP / total predicted": hits / predicted,
                "F1": metrics[f"class/{grade}/f1"],
            }
        )
    return pd.DataFrame(rows)


def kappa_table(evaluation: Evaluation) -> pd.DataFrame:
    """Every number on the way to kappa, ours and as published."""
    counts = evaluation.confusion_matrix.counts
    terms = dict(zip(GRADES, chance_terms(counts), strict=True))
    of_b, of_a = (dict(zip(GRADES, shares, strict=True)) for shares in margins(counts))
    items: list[tuple[str, float, float | None, int]] = [
        ("ChanceA(Exquisite)", of_a["Exquisite"], None, 2),
        ("ChanceB(Exquisite)", of_b["Exquisite"], published.CHANCE_B_EXQUISITE, 2),
        *((f"Chance({grade})", terms[grade], published.CHANCE[grade], 2) for grade in GRADES),
        ("chance agreement p_e", sum(terms.values()), published.CHANCE_AGREEMENT, 1),
        ("agreement p_o", evaluation.metrics[ACCURACY], None, 2),
        ("kappa", evaluation.metrics[KAPPA], published.KAPPA, 2),
    ]
    return pd.DataFrame(
        [
            {"number": n, "ours": float(v), "ours (published)": beside(v, p, digits=d)}
            for n, v, p, d in items
        ]
    )


def range_table(cases: Mapping[str, npt.ArrayLike]) -> pd.DataFrame:
    """Chance, and least and most accuracy and kappa, for the margins of each table."""
    rows = []
    for words, table in cases.items():
        chance = float(chance_terms(table).sum())
        (low, least), (high, most) = (point(extreme(table, most=flag)) for flag in (False, True))
        row = {
            "margins": words,
            "p_e": chance,
            "−p_e / (1 − p_e)": -chance / (1 - chance),
            "least accuracy": low,
        }
        rows.append(row | {"least kappa": least, "most accuracy": high, "most kappa": most})
    return pd.DataFrame(rows)


def interval_table(
    evaluation: Evaluation, held: Mapping[str, npt.NDArray[np.bool_]]
) -> pd.DataFrame:
    """Values and intervals of metrics, with the share of simulated intervals that hold the value."""
    rows = []
    for name, flags in held.items():
        low, high = evaluation.intervals[name]
        share = float(flags.mean())
        error = float(np.sqrt(share * (1 - share) / len(flags)))
        rows.append({"metric": name, "value": evaluation.metrics[name], "low": low, "high": high})
        rows[-1] |= {"coverage": share, "± (simulation)": error}
    return pd.DataFrame(rows)


def point(counts: npt.ArrayLike) -> tuple[float, float]:
    """Accuracy and kappa of a table."""
    metrics = judged(counts, [f"class {k}" for k in range(len(np.asarray(counts)))]).metrics
    return metrics[ACCURACY], metrics[KAPPA]
