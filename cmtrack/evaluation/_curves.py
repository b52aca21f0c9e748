"""Curves that are computed from the scores of an evaluation, and the table of classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cmtrack.grouping import Label
from cmtrack.metrics.calibration import CalibrationCurve, ReliabilityTable
from cmtrack.metrics.class_curves import ClassCalibration, ClassCurves, calibration_of_classes
from cmtrack.metrics.confidence import HitTable
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.precision_recall import GainsCurve, PrecisionRecallCurve
from cmtrack.metrics.precision_recall import precision_recall as curve_of_scores
from cmtrack.metrics.roc import RocCurve, ScoreTable, sweep

if TYPE_CHECKING:
    from cmtrack.evaluation.result import Evaluation

_OF_CLASS_CALIBRATION = (
    "support",
    "calibration_error",
    "calibration_pvalue",
    "roc_auc",
    "average_precision",
)


def _scores(evaluation: Evaluation) -> ScoreTable | None:
    """Return the scores of the positive group; None if they are missing or not evaluated."""
    if not evaluation.has_section("binary"):
        return None
    return evaluation._views.seen(ScoreTable)


def roc(evaluation: Evaluation) -> RocCurve | None:
    """Return the ROC curve of the positive group; None if its scores are missing."""
    table = _scores(evaluation)
    if table is None:
        return None
    metrics = evaluation.metrics
    return replace(
        sweep(table),
        auc_interval=evaluation.intervals.get("binary/roc_auc"),
        positive=evaluation.positive,
        operating_point=(metrics["binary/fpr"], metrics["binary/recall"]),
    )


def precision_recall(evaluation: Evaluation) -> PrecisionRecallCurve | None:
    """Return the precision-recall curve of the positive group; None if its scores are missing."""
    table = _scores(evaluation)
    if table is None:
        return None
    metrics = evaluation.metrics
    return replace(
        curve_of_scores(table),
        average_precision_interval=evaluation.intervals.get("binary/average_precision"),
        positive=evaluation.positive,
        operating_point=(metrics["binary/recall"], metrics["binary/precision"]),
    )


def gains(evaluation: Evaluation) -> GainsCurve | None:
    """Return the gains curve for the positive group's score; None if the score is missing."""
    curve = evaluation.precision_recall
    counts = evaluation.binary
    if curve is None or counts is None:
        return None
    predicted_share = (counts.tp + counts.imp + counts.fp) / sum(counts)
    return GainsCurve(
        curve.thresholds,
        curve.called,
        curve.recall,
        curve.ceiling,
        curve.prevalence,
        curve.positive,
        (float(predicted_share), evaluation.metrics["binary/recall"]),
    )


def calibration(evaluation: Evaluation) -> CalibrationCurve | None:
    """Return the reliability curve of the positive group's score; None if the score is missing."""
    step = evaluation.scored
    table = evaluation._views.seen(ReliabilityTable)
    if step is None or table is None:
        return None
    positive = None if step.positive is None else step.labels[step.positive]
    return _with_clusters(evaluation, table.curve(positive))


def confidence_calibration(evaluation: Evaluation) -> CalibrationCurve | None:
    """Return the reliability curve of the predicted class's probability; None if it is missing."""
    table = evaluation._views.seen(HitTable)
    return None if table is None else _with_clusters(evaluation, table.curve())


def calibration_of(evaluation: Evaluation, label: Label) -> CalibrationCurve:
    """Return the reliability curve of one class against all other classes."""
    curves = _class_curves(evaluation, "a calibration curve of a class")
    if label not in evaluation.labels:
        raise ValueError(f"label must be one of {list(evaluation.labels)}, got {label!r}")
    table = curves.tables[evaluation.labels.index(label)]
    return _with_clusters(evaluation, table.curve(label))


def has_class_calibration(evaluation: Evaluation) -> bool:
    """Return True if calibration curves exist for the classes and ``class/`` is computed."""
    curves = evaluation._views.seen(ClassCurves, "class calibration")
    return evaluation.has_section("class") and curves is not None


def class_calibration(evaluation: Evaluation) -> ClassCalibration:
    """Return the calibration of each class's probability, with adjusted p-values."""
    curves = _class_curves(evaluation, "calibration of classes")
    by_class = _with_class_section(evaluation)
    prefixes = [f"class/{encode_label(label)}/" for label in evaluation.labels]
    return calibration_of_classes(
        curves,
        evaluation.labels,
        [
            {name: by_class.metrics[prefix + name] for name in _OF_CLASS_CALIBRATION}
            for prefix in prefixes
        ],
        [by_class.intervals.get(f"{prefix}calibration_error") for prefix in prefixes],
        evaluation.confidence_level,
    )


def class_rows(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield each row of the table of classes, as a mapping from column name to value."""
    by_class = _with_class_section(evaluation)
    metrics = by_class.metrics
    predicted_counts = by_class.confusion_matrix.counts.sum(axis=0).tolist()
    for label, predicted in zip(by_class.labels, predicted_counts, strict=True):
        if label not in by_class.classes:
            continue
        prefix = f"class/{encode_label(label)}"
        row = {
            "label": label,
            "support": metrics[f"{prefix}/support"],
            "predicted": float(predicted),
        }
        for name in ("precision", "recall", "f1"):
            metric = f"{prefix}/{name}"
            low, high = by_class.intervals.get(metric, (math.nan, math.nan))
            row |= {name: metrics[metric], f"{name}_low": low, f"{name}_high": high}
        yield row


def _class_curves(evaluation: Evaluation, purpose: str) -> ClassCurves:
    curves = evaluation._views.seen(ClassCurves, "class calibration")
    if curves is None:
        raise ValueError(f"{purpose} needs probabilities of 3 to 30 classes, got {evaluation!r}")
    return curves


def _with_class_section(evaluation: Evaluation) -> Evaluation:
    return evaluation if evaluation.has_section("class") else evaluation.with_sections(["class"])


def _with_clusters(evaluation: Evaluation, curve: CalibrationCurve) -> CalibrationCurve:
    return replace(curve, clustered=evaluation.cluster_errors is not None)
