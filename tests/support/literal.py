"""Literal readings of the source's Table 2, which differ from the metrics if there are mismatches."""

from __future__ import annotations

import math

from cmtrack.metrics import SIX, SixCells
from cmtrack.statistics import BinaryCounts, Counted


def binary_metrics(counts: BinaryCounts) -> dict[str, float]:
    """Return all ``binary/`` metrics that follow from the six counts, by short name; NaN if a denominator is zero."""
    six = SixCells.of_counts(Counted.unweighted(counts))
    values = {metric.name.removeprefix("binary/"): metric.number(six.argument()) for metric in SIX}
    return {name: value if math.isfinite(value) else math.nan for name, value in values.items()}


def literal_forms(counts: BinaryCounts) -> dict[str, float]:
    """Return the readings of Table 2 that differ from :func:`binary_metrics` if there are mismatches.

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
