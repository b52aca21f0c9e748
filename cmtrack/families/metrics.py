"""Metrics of label sets in families of codes.

All but the macro averages are ratios of sums over documents, ``Σ_d a·t_d / Σ_d b·t_d`` with a document's tallies
``t_d``; documents are the sampling unit, so the standard error follows from the sums of products of the tallies.

Shares are of labels, predicted and actual ones together. A label is a match (on both sides of its document), confused
(not so, but an unmatched code of its family is on the other side), or out of family. Hierarchical measures count the
codes of a document with all their ancestors (Kiritchenko, Matwin, Famili 2005).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cmtrack.families.counts import ACTUAL, HITS, MACROS, PREDICTED, TALLIES, DocumentRows, FamilyStatistics
from cmtrack.metrics.cells import ratio
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.results import Results
from cmtrack.names import quoted
from cmtrack.statistics.inputs import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Ratio:
    """Numerator and denominator as weights (8,) of the tallies, and why the ratio may be undefined."""

    above: FloatArray
    below: FloatArray
    reason: str


def _weights(words: str) -> FloatArray:
    out = np.zeros(len(TALLIES))
    for word in words.split():
        times, name = (2.0, word[2:]) if word.startswith("2*") else (1.0, word)
        out[TALLIES.index(name)] = times
    return out


def _ratio(above: str, below: str, reason: str) -> Ratio:
    return Ratio(_weights(above), _weights(below), reason)


_PREDICTED = "hits predicted_confused predicted_outside"
_ACTUAL = "hits actual_confused actual_outside"
_LABELS = "2*hits predicted_confused predicted_outside actual_confused actual_outside"
_NO_PREDICTED, _NO_ACTUAL, _NO_LABEL = "no code was predicted", "no document has a code", "there is no code"

FAMILY_RATIOS = {
    "match_share": _ratio("2*hits", _LABELS, _NO_LABEL),
    "confusion_share": _ratio("predicted_confused actual_confused", _LABELS, _NO_LABEL),
    "oof_share": _ratio("predicted_outside actual_outside", _LABELS, _NO_LABEL),
    "precision_micro": _ratio("hits", _PREDICTED, _NO_PREDICTED),
    "recall_micro": _ratio("hits", _ACTUAL, _NO_ACTUAL),
    "f1_micro": _ratio("2*hits", _LABELS, _NO_LABEL),
}
"""Also of single families."""

RATIOS = FAMILY_RATIOS | {
    "confusion_share_predicted": _ratio("predicted_confused", _PREDICTED, _NO_PREDICTED),
    "oof_share_predicted": _ratio("predicted_outside", _PREDICTED, _NO_PREDICTED),
    "confusion_share_actual": _ratio("actual_confused", _ACTUAL, _NO_ACTUAL),
    "oof_share_actual": _ratio("actual_outside", _ACTUAL, _NO_ACTUAL),
    "hierarchical_precision": _ratio("shared_nodes", "predicted_nodes", _NO_PREDICTED),
    "hierarchical_recall": _ratio("shared_nodes", "actual_nodes", _NO_ACTUAL),
    "hierarchical_f1": _ratio("2*shared_nodes", "predicted_nodes actual_nodes", _NO_LABEL),
}


# -- values, errors, warnings -------------------------------------------------------------------------

FEW = 20


def family_results(
    statistics: FamilyStatistics, confidence_level: float = 0.95, macro_errors: Mapping[str, float] | None = None
) -> Results:
    """Every metric with its error and interval.

    Parameters
    ----------
    statistics : FamilyStatistics
    confidence_level : float
    macro_errors : mapping of name to float, optional
        Standard errors of the macro averages that know of the codes that share a document; by default codes count as
        independent of each other.
    """
    results = Results(confidence_level, macro_errors or {})
    n = statistics.digest.rows
    sums, products = statistics.tallies.sums.astype(np.float64), statistics.tallies.products.astype(np.float64)
    for name, part in RATIOS.items():
        value, error = _value(part, sums, products, n)
        results.put(f"family/{name}", value, error=error, reason=part.reason)
    for name, (value, error) in macro_averages(statistics.codes).items():
        results.put(f"family/{name}", value, error=error, reason="no code has a defined value")
    table, squares = family_tallies(statistics)
    for f, family in enumerate(statistics.families.names):
        prefix = f"family/{encode_label(family)}"
        for name, part in FAMILY_RATIOS.items():
            value, error = _value(part, table[f], squares[f], n)
            results.put(f"{prefix}/{name}", value, error=error, reason=part.reason)
        results.metrics[f"{prefix}/support"] = float(table[f][[0, 2, 4]].sum())
    return results


def influence(name: str, statistics: FamilyStatistics, rows: DocumentRows) -> FloatArray | None:
    """Influence values (n,) of an overall metric; None for those of a single family, which documents do not hold."""
    _, short = name.split("/", 1)
    if short in MACROS:
        return rows.macros[:, MACROS.index(short)]
    if short not in RATIOS:
        return None
    gradient = _gradient(RATIOS[short], statistics.tallies.sums.astype(np.float64))
    return None if gradient is None else np.asarray(len(rows) * (rows.tallies @ gradient))


def code_ratios(codes: IntArray) -> dict[str, FloatArray]:
    """Precision, recall and F1 of each code, shape (L,), NaN where undefined."""
    hits, predicted, actual = (codes[:, column].astype(np.float64) for column in (HITS, PREDICTED, ACTUAL))
    return {
        "precision": ratio(hits, predicted),
        "recall": ratio(hits, actual),
        "f1": ratio(2 * hits, predicted + actual),
    }


def macro_averages(codes: IntArray) -> dict[str, tuple[float, float]]:
    """Means over the codes where a ratio is defined, and standard errors with the codes taken as independent.

    Parameters
    ----------
    codes : ndarray of shape (L, 5)
        As in :class:`FamilyStatistics`.
    """
    hits, predicted, actual = (codes[:, column].astype(np.float64) for column in (HITS, PREDICTED, ACTUAL))
    values = code_ratios(codes)
    p, r, f = values["precision"], values["recall"], values["f1"]
    false, missed = predicted - hits, actual - hits
    variances = {
        "precision": ratio(p * (1 - p), predicted),
        "recall": ratio(r * (1 - r), actual),
        "f1": ratio(hits * (2 - 2 * f) ** 2 + (false + missed) * f**2, (predicted + actual) ** 2),
    }
    out = {}
    for name, value in values.items():
        known = np.isfinite(value)
        many = int(known.sum())
        error = math.sqrt(float(variances[name][known].sum())) / many if many else math.nan
        out[f"{name}_macro"] = (float(value[known].mean()) if many else math.nan), error
    return out


def document_errors(statistics: FamilyStatistics, rows: DocumentRows) -> dict[str, float]:
    """Standard errors of the macro averages by documents: codes of one document stand and fall together."""
    n = statistics.digest.rows
    return {f"family/{name}": float(np.linalg.norm(rows.macros[:, k])) / n for k, name in enumerate(MACROS)}


def family_tallies(statistics: FamilyStatistics) -> tuple[FloatArray, FloatArray]:
    """Sums (F, 5) and sums of products (F, 5, 5) of each family's first five tallies over documents."""
    family, matched, predicted, actual, documents = statistics.patterns.T
    both = (predicted > 0) & (actual > 0)
    table = np.stack((matched, predicted * both, actual * both, predicted * ~both, actual * ~both), axis=1).astype(
        np.float64
    )
    size = len(statistics.families.names)
    sums, products = np.zeros((size, 5)), np.zeros((size, 5, 5))
    np.add.at(sums, family, table * documents[:, None])
    np.add.at(products, family, table[:, :, None] * table[:, None, :] * documents[:, None, None])
    return sums, products


def family_warnings(statistics: FamilyStatistics) -> tuple[str, ...]:
    """What a reader should know: repeated codes, rare codes, codes without a defined ratio, rare families."""
    out = []
    for n, side in zip(statistics.repeated.tolist(), ("y_true_sets", "y_pred_sets"), strict=True):
        if n:
            out.append(
                f"{n} {'code' if n == 1 else 'codes'} of {side} {'occurs' if n == 1 else 'occur'} more than once in a "
                f"document and {'counts' if n == 1 else 'count'} once"
            )
    predicted, actual = statistics.codes[:, PREDICTED], statistics.codes[:, ACTUAL]
    total = len(actual)
    never_called, never_held = int((predicted == 0).sum()), int((actual == 0).sum())
    if never_called:
        out.append(f"{never_called} of {total} codes are never predicted: macro precision leaves them out")
    if never_held:
        out.append(f"{never_held} of {total} codes are in no document: macro recall leaves them out")
    rare = int(((actual > 0) & (actual < FEW)).sum())
    if rare:
        out.append(
            f"{rare} of {total} codes {'occurs' if rare == 1 else 'occur'} in fewer than {FEW} documents; "
            f"{'its' if rare == 1 else 'their'} shares are approximate"
            + (
                "; as most codes are that rare, the intervals of macro averages are too narrow"
                if 2 * rare > total
                else ""
            )
        )
    held = np.bincount(statistics.families.family_of_code, actual, len(statistics.families.names))
    few = [
        f"{quoted(name)} (n = {n:g})" for name, n in zip(statistics.families.names, held, strict=True) if 0 < n < FEW
    ]
    if few:
        shown = ", ".join(few[:8]) + (f" and {len(few) - 8} more" if len(few) > 8 else "")
        out.append(
            f"fewer than {FEW} labels of the {'family' if len(few) == 1 else 'families'} {shown}: approximate intervals"
        )
    return tuple(out)


def never_predicted(statistics: FamilyStatistics) -> IntArray:
    """Places of the codes that some document has and none is predicted to have."""
    predicted, actual = statistics.codes[:, PREDICTED], statistics.codes[:, ACTUAL]
    return np.asarray(np.flatnonzero((actual > 0) & (predicted == 0)))


def _value(part: Ratio, sums: FloatArray, products: FloatArray, n: int) -> tuple[float, float]:
    gradient = _gradient(part, sums)
    if gradient is None:
        return math.nan, math.nan
    size = len(sums)
    above, below = part.above[:size], part.below[:size]
    error = math.sqrt(max(0.0, float(gradient @ products @ gradient)))  # the mean of the influence is 0
    return float(above @ sums) / float(below @ sums), error


def _gradient(part: Ratio, sums: FloatArray) -> FloatArray | None:
    """Derivative by the sums; None where the denominator is zero."""
    size = len(sums)
    above, below = part.above[:size], part.below[:size]
    base = float(below @ sums)
    if base == 0:
        return None
    out: FloatArray = (above - float(above @ sums) / base * below) / base
    return out
