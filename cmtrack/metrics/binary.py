"""Metrics of section ``binary/`` that are computed from the six counts of a 2x2+IM matrix.

Source: Markoulidakis et al. (2021), Tables 2 and 5 and equations 24-36, in the corrected forms:
predicted negatives are TN + FN + IMN (equation 27 prints IMP) and the numerator of Matthews'
correlation is (TP+IMP)(TN+IMN) - FN FP (equation 28 lacks TP IMN). In a negative group of one
class, IMN is 0, so the published Table 8 cannot be correct: its specificity, negative predictive
value, fall-out and false omission rate contradict equations 34 and 36.

Some metrics can be written with several formulas, which give the same number unless a matrix
contains mismatches. ``informedness`` is recall - fall-out and ``markedness`` is precision - false
omission rate, as in the source. ``threat_score`` counts mismatches as failures, TP/(P_act + P_pred
- TP) = F1/(2-F1). ``prevalence_threshold`` is sqrt(FPR)/(sqrt(TPR)+sqrt(FPR)), which is the formula
that follows from its derivation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.metrics.function import Fraction, Function
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.multiclass import MATTHEWS
from cmtrack.metrics.precision_recall import PRECISION_RECALL
from cmtrack.metrics.roc import AREAS
from cmtrack.statistics import BinaryCounts
from cmtrack.statistics.inputs import FloatArray


@dataclass(frozen=True)
class Proportion(Fraction):
    """A share of rows: the sum of the counts ``above`` divided by the sum of the counts ``below``.

    Both lists contain names of the six counts tp, fn, imp, fp, tn and imn.
    """

    above: tuple[str, ...]
    below: tuple[str, ...]

    def __call__(self, b: BinaryCounts) -> Any:
        above = sum(getattr(b, part) for part in self.above)
        below = sum(getattr(b, part) for part in self.below)
        return above / below

    def denominator(self, b: BinaryCounts) -> FloatArray:
        """Return a mask of the cells that the denominator counts, as an array of shape (6,)."""
        return _indicator(self.below)

    def influence(self, b: BinaryCounts) -> FloatArray:
        """Return the influence that a row in each cell has, as an array of shape (6,)."""
        above = _indicator(self.above)
        below = _indicator(self.below)
        weight = np.array(b, dtype=np.float64)
        base = float(weight @ below)
        return (above - float(weight @ above) / base * below) * (float(weight.sum()) / base)


@dataclass(frozen=True)
class Count(Function):
    """One of the six counts."""

    part: str

    def __call__(self, b: BinaryCounts) -> Any:
        return getattr(b, self.part)

    def influence(self, b: BinaryCounts) -> FloatArray:
        """Return n times the influence on the count's share of all rows, shape (6,)."""
        return float(sum(b)) * _indicator((self.part,)) - float(self(b))


ACTUAL_POSITIVE = ("tp", "fn", "imp")
ACTUAL_NEGATIVE = ("fp", "tn", "imn")
PREDICTED_POSITIVE = ("tp", "fp", "imp")
PREDICTED_NEGATIVE = ("tn", "fn", "imn")
RECALL = Proportion(("tp",), ACTUAL_POSITIVE)
FALL_OUT = Proportion(("fp",), ACTUAL_NEGATIVE)
SPECIFICITY = Proportion(("tn",), ACTUAL_NEGATIVE)
PRECISION = Proportion(("tp",), PREDICTED_POSITIVE)
FALSE_OMISSION = Proportion(("fn",), PREDICTED_NEGATIVE)


def _indicator(parts: tuple[str, ...]) -> FloatArray:
    """Return an array of shape (6,) with 1 for the counts in ``parts`` and 0 for the others."""
    return np.array([name in parts for name in BinaryCounts._fields], dtype=np.float64)


def _prevalence_threshold(b: BinaryCounts) -> Any:
    fall_out = np.sqrt(FALL_OUT(b))
    recall = np.sqrt(RECALL(b))
    return fall_out / (recall + fall_out)


def _matthews(b: BinaryCounts) -> Any:
    actual = np.sqrt(b.actual_positives * b.predicted_positives)
    predicted = np.sqrt(b.actual_negatives * b.predicted_negatives)
    return ((b.tp + b.imp) * (b.tn + b.imn) - b.fn * b.fp) / (actual * predicted)


def _binary(name: str, value: Any, formula: str, source: str, **words: Any) -> Metric:
    """Declare a metric of the section, which is a share of rows unless ``words`` say otherwise."""
    usual = {
        "low": 0.0,
        "high": 1.0,
        "interval": "wilson",
        "headline": False,
        "title": _TITLES.get(name, ""),
    }
    source = f"Markoulidakis et al. (2021), {source}"
    return Metric(
        f"binary/{name}", value, of="binary", formula=formula, source=source, **{**usual, **words}
    )


def _count(part: str, formula: str) -> Metric:
    return _binary(part, Count(part), formula, "fig. 5", high=math.inf, better="", interval="count")


_TITLES = {
    "tp": "true positives",
    "fn": "false negatives",
    "imp": "mismatches of the positive group",
    "fp": "false positives",
    "tn": "true negatives",
    "imn": "mismatches of the negative group",
    "npv": "negative predictive value",
    "fnr": "false negative rate",
    "fpr": "false positive rate",
    "fdr": "false discovery rate",
    "for": "false omission rate",
    "pimr": "mismatch rate of actual positives",
    "nimr": "mismatch rate of actual negatives",
    "ppimr": "mismatch rate of predicted positives",
    "npimr": "mismatch rate of predicted negatives",
}
"""Titles for the metrics whose names are abbreviations."""
_TABLE_2 = "Table 2"
_TABLE_5 = "Table 5"
_RATES = "eq. 29-32"
_ERROR_OF_A_SIDE = {"better": "lower", "one_sided": True}
"""Arguments that declare a metric that is 0 if every row is predicted as the opposite group."""

SIX = (
    _count("tp", "hits of the positive group"),
    _count("fn", "actual positives predicted negative"),
    _count("imp", "intragroup mismatches of the positive group"),
    _count("fp", "actual negatives predicted positive"),
    _count("tn", "hits of the negative group"),
    _count("imn", "intragroup mismatches of the negative group"),
    _binary("accuracy", Proportion(("tp", "tn"), BinaryCounts._fields), "(TP + TN) / n", _TABLE_5),
    _binary("recall", RECALL, "TP / (TP + FN + IMP)", _TABLE_5, headline=True, one_sided=True),
    _binary(
        "specificity", SPECIFICITY, "TN / (TN + FP + IMN)", _TABLE_5, headline=True, one_sided=True
    ),
    _binary("precision", PRECISION, "TP / (TP + FP + IMP)", _TABLE_5, headline=True),
    _binary("npv", Proportion(("tn",), PREDICTED_NEGATIVE), "TN / (TN + FN + IMN)", _TABLE_5),
    _binary(
        "fnr",
        Proportion(("fn",), ACTUAL_POSITIVE),
        "FN / (TP + FN + IMP)",
        _TABLE_5,
        **_ERROR_OF_A_SIDE,
    ),
    _binary("fpr", FALL_OUT, "FP / (TN + FP + IMN)", _TABLE_5, **_ERROR_OF_A_SIDE),
    _binary(
        "fdr",
        Proportion(("fp",), PREDICTED_POSITIVE),
        "FP / (TP + FP + IMP)",
        _TABLE_5,
        better="lower",
    ),
    _binary("for", FALSE_OMISSION, "FN / (TN + FN + IMN)", _TABLE_5, better="lower"),
    _binary(
        "pimr",
        Proportion(("imp",), ACTUAL_POSITIVE),
        "IMP / (TP + FN + IMP)",
        _RATES,
        **_ERROR_OF_A_SIDE,
    ),
    _binary(
        "nimr",
        Proportion(("imn",), ACTUAL_NEGATIVE),
        "IMN / (TN + FP + IMN)",
        _RATES,
        **_ERROR_OF_A_SIDE,
    ),
    _binary(
        "ppimr",
        Proportion(("imp",), PREDICTED_POSITIVE),
        "IMP / (TP + FP + IMP)",
        _RATES,
        **_ERROR_OF_A_SIDE,
    ),
    _binary(
        "npimr",
        Proportion(("imn",), PREDICTED_NEGATIVE),
        "IMN / (TN + FN + IMN)",
        _RATES,
        **_ERROR_OF_A_SIDE,
    ),
    _binary(
        "f1",
        lambda b: 2 * b.tp / (b.actual_positives + b.predicted_positives),
        "2 TP / (P_actual + P_predicted)",
        _TABLE_2,
        interval="wald",
        headline=True,
    ),
    _binary(
        "fowlkes_mallows",
        lambda b: b.tp / np.sqrt(b.actual_positives * b.predicted_positives),
        "TP / √(P_actual · P_predicted)",
        _TABLE_2,
        interval="wald",
        title="Fowlkes-Mallows index",
    ),
    _binary(
        "balanced_accuracy",
        lambda b: (RECALL(b) + SPECIFICITY(b)) / 2,
        "(recall + specificity) / 2",
        _TABLE_2,
        interval="wald",
    ),
    _binary(
        "threat_score",
        lambda b: b.tp / (b.actual_positives + b.predicted_positives - b.tp),
        "TP / (P_actual + P_predicted − TP)",
        _TABLE_2,
        interval="wald",
    ),
    _binary(
        "prevalence_threshold",
        _prevalence_threshold,
        "√FPR / (√TPR + √FPR)",
        _TABLE_2,
        interval="wald",
        better="lower",
    ),
    _binary(
        "informedness",
        lambda b: RECALL(b) - FALL_OUT(b),
        "recall − fall-out",
        _TABLE_2,
        low=-1.0,
        interval="wald",
    ),
    _binary(
        "markedness",
        lambda b: PRECISION(b) - FALSE_OMISSION(b),
        "precision − false omission rate",
        _TABLE_2,
        low=-1.0,
        interval="wald",
    ),
    _binary(
        "matthews_corrcoef",
        _matthews,
        "((TP + IMP)(TN + IMN) − FN · FP) / √(P_act P_pred N_act N_pred)",
        "eq. 28 corrected",
        low=-1.0,
        interval="atanh",
        headline=True,
        association=True,
        **MATTHEWS,
    ),
)
"""The metrics that are computed from the six counts."""

BINARY = Section(
    "binary",
    "Positive group against the rest (2×2+IM)",
    (*SIX, *AREAS, *PRECISION_RECALL),
    of_positive=True,
)
