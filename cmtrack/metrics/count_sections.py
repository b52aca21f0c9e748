"""The sections of ``Evaluation.metrics`` that confusion counts give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cmtrack.metrics import binary, multiclass
from cmtrack.metrics.cells import Cells
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.results import Results
from cmtrack.statistics import BinaryCounts, ReducedConfusionMatrix


def put_multiclass(results: Results, cells: Cells, labels: Sequence[object]) -> None:
    """``multiclass/`` and ``class/<label>/``."""
    values = multiclass.averages(cells)
    values["balanced_accuracy"] = values["recall_macro"]
    values["cohen_kappa"] = multiclass.cohen_kappa(cells)
    values["cohen_kappa_linear"] = multiclass.cohen_kappa(cells, "linear")
    values["cohen_kappa_quadratic"] = multiclass.cohen_kappa(cells, "quadratic")
    values["matthews_corrcoef"] = multiclass.matthews_corrcoef(cells)
    everyone = cells.effective(np.ones(len(cells.weight)))
    for name, (value, influence) in values.items():
        reason = "all samples are of one actual or one predicted class"
        full = f"multiclass/{name}"
        results.put(full, value, error=cells.standard_error(influence), n=everyone, reason=reason)
    put_classes(results, cells, [f"class/{encode_label(label)}" for label in labels])
    support = multiclass.class_metrics(cells)["support"]
    for label, count in zip(labels, support, strict=True):
        results.put_count(f"class/{encode_label(label)}/support", count, cells.total, everyone)


def put_classes(results: Results, cells: Cells, prefixes: Sequence[str]) -> None:
    """Precision, recall and F1 of each class or group."""
    values, errors = multiclass.class_metrics(cells), multiclass.class_standard_errors(cells)
    for k, prefix in enumerate(prefixes):
        reason = "never predicted"
        results.put(f"{prefix}/precision", values["precision"][k], n=errors["precision_n"][k], reason=reason)
        reason = "no actual samples"
        results.put(f"{prefix}/recall", values["recall"][k], n=errors["recall_n"][k], reason=reason)
        reason = "neither actual nor predicted samples"
        results.put(f"{prefix}/f1", values["f1"][k], error=errors["f1"][k], reason=reason)


def put_reduced(results: Results, reduced: ReducedConfusionMatrix, squares: ReducedConfusionMatrix | None) -> None:
    """``reduced/<step>/``."""
    cells = Cells.of_reduced(reduced, squares)
    prefix = f"reduced/{encode_label(reduced.name)}"
    values = multiclass.averages(cells)
    everyone = cells.effective(np.ones(len(cells.weight)))
    values["matthews_corrcoef"] = multiclass.matthews_corrcoef(cells)
    for name in (
        "accuracy",
        "precision_macro",
        "recall_macro",
        "f1_macro",
        "f1_of_macro_means",
        "matthews_corrcoef",
    ):
        value, influence = values[name]
        results.put(f"{prefix}/{name}", value, error=cells.standard_error(influence), n=everyone)
    mismatch = float(reduced.mismatches.sum()) / reduced.total
    results.put(f"{prefix}/mismatch_rate", mismatch, n=everyone)
    groups = [f"{prefix}/{encode_label(group)}" for group in reduced.labels]
    put_classes(results, cells, groups)
    for group, count in zip(groups, reduced.mismatches, strict=True):
        results.put_count(f"{group}/mismatches", count, cells.total, everyone)


def put_binary(results: Results, counts: BinaryCounts, squares: BinaryCounts | None) -> None:
    """``binary/`` as far as the six counts give it."""
    effective = counts.total if squares is None else counts.total**2 / squares.total
    for name, value in binary.binary_metrics(counts).items():
        error = n = None
        if name in BinaryCounts._fields:
            results.put_count(f"binary/{name}", value, counts.total, effective)
            continue
        if name in binary.PROPORTIONS:
            n = binary.denominator(name, counts)
            if squares is not None and n > 0:
                n = n * n / binary.denominator(name, squares)
        elif name in binary.FORMULAS and math.isfinite(value):
            error = binary.standard_error(name, counts, squares)
        results.put(f"binary/{name}", value, error=error, n=n)
