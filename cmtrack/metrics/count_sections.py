"""The sections of ``Evaluation.metrics`` that confusion counts give."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from cmtrack.metrics import binary, multiclass
from cmtrack.metrics.cells import Cells
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.results import Results
from cmtrack.statistics import BinaryCounts, ReducedConfusionMatrix
from cmtrack.statistics.inputs import BoolArray

REDUCED = (
    "accuracy",
    "precision_macro",
    "precision_macro_zero",
    "recall_macro",
    "f1_macro",
    "f1_macro_zero",
    "f1_of_macro_means",
    "matthews_corrcoef",
)
"""The averages that are given of a reduced matrix, too."""


def put_multiclass(results: Results, cells: Cells, labels: Sequence[object], over: BoolArray | None = None) -> None:
    """``multiclass/`` and ``class/<label>/``; ``over`` are the classes that averages are taken over, by default all."""
    everyone = cells.effective(np.ones(len(cells.weight)))
    for name, (value, influence) in multiclass.table_metrics(cells, over).items():
        reason = "all samples are of one actual or one predicted class"
        full = f"multiclass/{name}"
        results.put(full, value, error=cells.standard_error(influence), n=everyone, reason=reason)
    classes = range(len(labels)) if over is None else np.flatnonzero(over).tolist()
    prefixes = {k: f"class/{encode_label(labels[k])}" for k in classes}
    put_classes(results, cells, prefixes)
    support = multiclass.class_metrics(cells)["support"]
    for k, prefix in prefixes.items():
        results.put_count(f"{prefix}/support", support[k], cells.total, everyone)


def put_spans(results: Results, cells: Cells, over: BoolArray) -> None:
    """``spans/``: averages over the labels of spans."""
    for name, (value, influence, n) in multiclass.span_metrics(cells, over).items():
        reason = "no predicted spans" if name.startswith("precision") else "no actual spans"
        results.put(f"spans/{name}", value, error=cells.standard_error(influence), n=n, reason=reason)


def put_classes(results: Results, cells: Cells, prefixes: Mapping[int, str]) -> None:
    """Precision, recall and F1 of each class or group, by its number."""
    values, errors = multiclass.class_metrics(cells), multiclass.class_standard_errors(cells)
    for k, prefix in prefixes.items():
        reason = "never predicted"
        results.put(f"{prefix}/precision", values["precision"][k], n=errors["precision_n"][k], reason=reason)
        reason = "no actual samples"
        results.put(f"{prefix}/recall", values["recall"][k], n=errors["recall_n"][k], reason=reason)
        reason = "neither actual nor predicted samples"
        results.put(f"{prefix}/f1", values["f1"][k], error=errors["f1"][k], reason=reason)


def put_reduced(
    results: Results,
    reduced: ReducedConfusionMatrix,
    squares: ReducedConfusionMatrix | None,
    over: BoolArray | None = None,
) -> None:
    """``reduced/<step>/``; ``over`` are the groups that averages are taken over, by default all."""
    cells = Cells.of_reduced(reduced, squares)
    prefix = f"reduced/{encode_label(reduced.name)}"
    values = multiclass.table_metrics(cells, over)
    everyone = cells.effective(np.ones(len(cells.weight)))
    for name in REDUCED:
        if name in values:
            value, influence = values[name]
            results.put(f"{prefix}/{name}", value, error=cells.standard_error(influence), n=everyone)
    mismatch = float(reduced.mismatches.sum()) / reduced.total
    results.put(f"{prefix}/mismatch_rate", mismatch, n=everyone)
    groups = {g: f"{prefix}/{encode_label(group)}" for g, group in enumerate(reduced.labels)}
    put_classes(results, cells, groups if over is None else {g: groups[g] for g in np.flatnonzero(over).tolist()})
    for g, group in groups.items():
        results.put_count(f"{group}/mismatches", float(reduced.mismatches[g]), cells.total, everyone)


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
