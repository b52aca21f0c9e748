"""Metrics of a 2x2+IM matrix.

Source: Markoulidakis et al. (2021), Tables 2 and 5 and equations 24-36, in the corrected forms: predicted
negatives are TN + FN + IMN (equation 27 prints IMP) and the numerator of Matthews' correlation is
(TP+IMP)(TN+IMN) - FN FP (equation 28 lacks TP IMN). With IMN = 0 for a one-class negative group the published
Table 8 cannot be right: specificity, negative predictive value, fall-out and false omission rate there break
equations 34 and 36.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from cmtrack.statistics import BinaryCounts

# Shares of 2x2+IM: numerator and denominator as members of (tp, fn, imp, fp, tn, imn).
_ACTUAL_POSITIVE, _ACTUAL_NEGATIVE = ("tp", "fn", "imp"), ("fp", "tn", "imn")
_PREDICTED_POSITIVE, _PREDICTED_NEGATIVE = ("tp", "fp", "imp"), ("tn", "fn", "imn")
PROPORTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "accuracy": (("tp", "tn"), BinaryCounts._fields),
    "recall": (("tp",), _ACTUAL_POSITIVE),
    "fnr": (("fn",), _ACTUAL_POSITIVE),
    "pimr": (("imp",), _ACTUAL_POSITIVE),
    "specificity": (("tn",), _ACTUAL_NEGATIVE),
    "fpr": (("fp",), _ACTUAL_NEGATIVE),
    "nimr": (("imn",), _ACTUAL_NEGATIVE),
    "precision": (("tp",), _PREDICTED_POSITIVE),
    "fdr": (("fp",), _PREDICTED_POSITIVE),
    "ppimr": (("imp",), _PREDICTED_POSITIVE),
    "npv": (("tn",), _PREDICTED_NEGATIVE),
    "for": (("fn",), _PREDICTED_NEGATIVE),
    "npimr": (("imn",), _PREDICTED_NEGATIVE),
}

Vector = npt.NDArray[np.float64] | npt.NDArray[np.complex128]


def binary_metrics(counts: BinaryCounts) -> dict[str, float]:
    """All ``binary/`` metrics that the six counts give, NaN where a denominator is zero.

    Notes
    -----
    Where mismatches exist the classical identities split. ``informedness`` is recall - fall-out and
    ``markedness`` is precision - false omission rate, the source's own forms; ``threat_score`` counts
    mismatches as failures, TP/(P_act + P_pred - TP) = F1/(2-F1); ``prevalence_threshold`` is
    sqrt(FPR)/(sqrt(TPR)+sqrt(FPR)), the form that its derivation needs. :func:`literal_forms` has the others.
    """
    vector = np.array(counts, dtype=np.float64)
    values = dict(zip(BinaryCounts._fields, map(float, vector), strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        values.update({name: float(_share(vector, name)) for name in PROPORTIONS})
        values.update({name: _real(formula(vector)) for name, formula in FORMULAS.items()})
    return values


def literal_forms(counts: BinaryCounts) -> dict[str, float]:
    """The readings of Table 2 that differ from :func:`binary_metrics` where mismatches exist.

    Returns
    -------
    dict
        ``threat_literal`` TP/(TP+FN+FP); ``prevalence_threshold_literal`` with 1 - specificity for fall-out;
        ``informedness_consistent`` recall + specificity - 1; ``markedness_consistent`` precision + npv - 1.
    """
    m = binary_metrics(counts)
    tp, fn, _, fp, *_ = counts
    fall_out, recall = 1 - m["specificity"], m["recall"]
    roots = math.sqrt(fall_out) + math.sqrt(recall) if fall_out >= 0 else math.nan
    return {
        "threat_literal": tp / (tp + fn + fp) if tp + fn + fp else math.nan,
        "prevalence_threshold_literal": math.sqrt(fall_out) / roots if roots else math.nan,
        "informedness_consistent": recall + m["specificity"] - 1,
        "markedness_consistent": m["precision"] + m["npv"] - 1,
    }


def influence(name: str, counts: BinaryCounts) -> npt.NDArray[np.float64]:
    """Influence value of a sample in each of the six cells, shape (6,), for any ``binary/`` metric of the counts.

    The derivative is taken by a complex step, exact to rounding.
    """
    vector = np.array(counts, dtype=np.float64)
    total = vector.sum()
    if name in BinaryCounts._fields:
        inside = np.array([field == name for field in BinaryCounts._fields], dtype=np.float64)
        own: npt.NDArray[np.float64] = total * inside - float(inside @ vector)
        return own
    formula = FORMULAS.get(name) or partial(_share, name=name)
    gradient = np.empty(6)
    with np.errstate(invalid="ignore", divide="ignore"):
        for cell in range(6):
            stepped = vector.astype(np.complex128)
            stepped[cell] += 1e-30j * total
            gradient[cell] = formula(stepped).imag / 1e-30
    gradient[vector == 0] = 0.0  # a cell without samples has no influence, whatever the derivative there
    return gradient


def standard_error(name: str, counts: BinaryCounts, squares: BinaryCounts | None = None) -> float:
    """Standard error by the influence of each of the six cells.

    ``squares`` holds the sums of squared weights where weights are fractions.
    """
    weight = np.array(counts if squares is None else squares, dtype=np.float64)
    return math.sqrt(float(weight @ influence(name, counts) ** 2)) / sum(counts)


def denominator(name: str, counts: BinaryCounts) -> float:
    """The denominator of one of :data:`PROPORTIONS`."""
    return float(sum(getattr(counts, part) for part in PROPORTIONS[name][1]))


def _index(parts: tuple[str, ...]) -> list[int]:
    return [BinaryCounts._fields.index(part) for part in parts]


def _share(c: Vector, name: str) -> np.complex128 | np.float64:
    numerator, below = PROPORTIONS[name]
    share: np.complex128 | np.float64 = c[_index(numerator)].sum() / c[_index(below)].sum()
    return share


def _sums(c: Vector) -> tuple[complex, complex, complex, complex]:
    tp, fn, imp, fp, tn, imn = c
    return tp + fn + imp, tp + fp + imp, tn + fp + imn, tn + fn + imn


def _f1(c: Vector) -> complex:
    actual, predicted, *_ = _sums(c)
    value: complex = 2 * c[0] / (actual + predicted)
    return value


def _fowlkes_mallows(c: Vector) -> complex:
    actual, predicted, *_ = _sums(c)
    value: complex = c[0] / np.sqrt(actual * predicted)
    return value


def _balanced_accuracy(c: Vector) -> complex:
    return (_share(c, "recall") + _share(c, "specificity")) / 2


def _matthews(c: Vector) -> complex:
    tp, fn, imp, fp, tn, imn = c
    p_act, p_pred, n_act, n_pred = _sums(c)
    value: complex = ((tp + imp) * (tn + imn) - fn * fp) / (np.sqrt(p_act * p_pred) * np.sqrt(n_act * n_pred))
    return value


def _prevalence_threshold(c: Vector) -> complex:
    fall_out, recall = np.sqrt(_share(c, "fpr")), np.sqrt(_share(c, "recall"))
    value: complex = fall_out / (recall + fall_out)
    return value


def _informedness(c: Vector) -> complex:
    return _share(c, "recall") - _share(c, "fpr")


def _markedness(c: Vector) -> complex:
    return _share(c, "precision") - _share(c, "for")


def _threat_score(c: Vector) -> complex:
    actual, predicted, *_ = _sums(c)
    value: complex = c[0] / (actual + predicted - c[0])
    return value


FORMULAS: dict[str, Callable[[Vector], complex]] = {
    "f1": _f1,
    "fowlkes_mallows": _fowlkes_mallows,
    "balanced_accuracy": _balanced_accuracy,
    "matthews_corrcoef": _matthews,
    "prevalence_threshold": _prevalence_threshold,
    "informedness": _informedness,
    "markedness": _markedness,
    "threat_score": _threat_score,
}


def _real(value: complex) -> float:
    return float(np.real(value))
