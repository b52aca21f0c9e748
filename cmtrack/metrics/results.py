"""Statistics -> every number: the sections of ``Evaluation.metrics``, their intervals, and why some are NaN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cmtrack.metrics import binary, multiclass
from cmtrack.metrics import spcc as correlation
from cmtrack.metrics.catalog import lookup
from cmtrack.metrics.cells import Cells
from cmtrack.metrics.class_shares import ClassShares
from cmtrack.metrics.densities import quantile_bins
from cmtrack.metrics.intervals import Interval, on_scale, wilson
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.prevalence import PrevalenceEstimate
from cmtrack.metrics.roc import RocCurve
from cmtrack.statistics import BinaryCounts, ReducedConfusionMatrix, ScoreMoments
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.inputs import FloatArray


@dataclass
class Results:
    """Collects values by full name; finite ones get the interval that their scale allows."""

    confidence_level: float = 0.95
    metrics: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)

    def put(
        self, name: str, value: float, *, error: float | None = None, n: float | None = None, reason: str = ""
    ) -> None:
        """Add a metric with its standard error, or the (effective) size of its denominator for Wilson."""
        self.metrics[name] = float(value)
        if not math.isfinite(value):
            self.metrics[name] = math.nan
            self.undefined[name] = reason or "its denominator is zero"
            return
        metric = lookup(name)
        interval = None
        if metric.scale == "wilson" and n is not None:
            interval = wilson(value, n, self.confidence_level)
        elif error is not None and metric.scale in ("wald", "atanh", "logit"):
            interval = on_scale(metric.scale, value, error, self.confidence_level, (metric.low, metric.high))
        if interval is not None:
            self.intervals[name] = interval


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
        results.put(f"class/{encode_label(label)}/support", count)


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
        results.put(f"{group}/mismatches", count)


def put_binary(results: Results, counts: BinaryCounts, squares: BinaryCounts | None) -> None:
    """``binary/`` as far as the six counts give it."""
    for name, value in binary.binary_metrics(counts).items():
        error = n = None
        if name in binary.PROPORTIONS:
            n = binary.denominator(name, counts)
            if squares is not None and n > 0:
                n = n * n / binary.denominator(name, squares)
        elif name in binary.FORMULAS and math.isfinite(value):
            error = binary.standard_error(name, counts, squares)
        results.put(f"binary/{name}", value, error=error, n=n)


def put_roc(results: Results, roc: RocCurve, effective_positives: float) -> None:
    """The area, its ceiling and its normalised form."""
    reason = "a group has no samples"
    results.put("binary/roc_auc", roc.auc, error=roc.auc_standard_error, reason=reason)
    results.put("binary/roc_auc_ceiling", roc.ceiling, n=effective_positives, reason=reason)
    error = roc.auc_normalized_standard_error
    results.put("binary/roc_auc_normalized", roc.auc_normalized, error=error, reason=f"{reason} or the ceiling is 0")


def put_binary_spcc(results: Results, statistics: Statistics) -> None:
    """``spcc/binary`` and the separation indices of the positive group's score."""
    moments = statistics.score_moments
    assert moments is not None  # the caller's choice of section
    squares = statistics.squares.score_moments if statistics.squares else None
    reason = "a class has no samples or the score does not vary"
    error = correlation.spcc_standard_error(moments, squares)
    results.put("spcc/binary", correlation.spcc(moments), error=error, reason=reason)
    d_a, d_e = correlation.separation_indices(moments, squares)
    reason = "a class has fewer than two samples, or no score varies in its class"
    results.put("spcc/d_a", d_a, reason=reason)
    results.put("spcc/d_e", d_e, reason=reason)
    results.put("spcc/d_b", _bayes_index(statistics), reason="a class has no samples")


def put_multiclass_spcc(results: Results, statistics: Statistics, labels: Sequence[object]) -> FloatArray:
    """One-vs-rest and one-vs-one correlations; returns the one-vs-one matrix (K, K)."""
    moments = statistics.moments
    assert moments is not None  # the caller's choice of section
    pairs = correlation.one_vs_rest(moments)
    squares: Sequence[ScoreMoments | None] = [None] * len(pairs)
    if statistics.squares is not None and statistics.squares.moments is not None:
        squares = correlation.one_vs_rest(statistics.squares.moments)
    rest = np.array([correlation.spcc(pair) for pair in pairs])
    reason = "a class has no samples or its score does not vary"
    for label, value, pair, square in zip(labels, rest, pairs, squares, strict=True):
        error = correlation.spcc_standard_error(pair, square)
        results.put(f"spcc/ovr/{encode_label(label)}", value, error=error, reason=reason)
    matrix = correlation.spcc_ovo(moments)
    for name, values in (("ovr", rest), ("ovo", correlation.off_diagonal(matrix))):
        known = values[~np.isnan(values)]
        results.put(f"spcc/{name}_fisher", correlation.fisher_mean(values), reason=reason)
        results.put(f"spcc/{name}_min", known.min() if known.size else math.nan, reason=reason)
    return matrix


def put_counts_of_positives(results: Results, moments: ScoreMoments, scale: float = 1.0) -> None:
    """``prevalence/`` actual, expected and bias, from class-wise means of the positive group's score.

    ``scale`` is effective over nominal sample size, where samples are weighted.
    """
    n = float(moments.n.sum())
    value, error = correlation.bias(moments)
    error /= math.sqrt(scale)
    expected = float(moments.n @ moments.mean[:, 0])
    pooled = moments.pooled()
    results.put("prevalence/actual", float(moments.n[1]) / n, n=n * scale)
    results.put("prevalence/expected", expected / n, error=math.sqrt(float(pooled.m2[0, 0]) / scale) / n)
    results.put("prevalence/expected_count", expected)
    results.put("prevalence/bias", value, error=error)


def put_calibrated(results: Results, estimate: PrevalenceEstimate, actual: float | None) -> None:
    """``prevalence/`` calibrated and what belongs to it; ``actual`` where the target is the evaluated set."""
    reason = estimate.undefined.get("value", "")
    results.put("prevalence/calibrated", estimate.value, reason=reason)
    if math.isfinite(estimate.value):
        results.intervals["prevalence/calibrated"] = (estimate.low, estimate.high)
    results.put("prevalence/calibrated_low", estimate.low, reason=reason)
    results.put("prevalence/calibrated_high", estimate.high, reason=reason)
    results.put("prevalence/calibrated_count", estimate.count, reason=reason)
    if actual is not None:
        results.put("prevalence/calibrated_bias", estimate.value - actual, reason=reason)
    for name, share in zip(("target", "positives", "negatives"), estimate.shares, strict=True):
        results.put(f"prevalence/share_{name}", share, reason=reason)
    fit_reason = estimate.undefined.get("fit_pvalue", "two bins leave no degree of freedom")
    results.put("prevalence/fit_pvalue", estimate.fit_pvalue, reason=fit_reason)


def put_uncalibrated(results: Results, with_bias: bool) -> None:
    """The same names where one class has no labelled scores: nothing to estimate from."""
    names = ["calibrated", "calibrated_low", "calibrated_high", "calibrated_count"]
    names += ["calibrated_bias"] * with_bias
    for name in (*names, "share_target", "share_positives", "share_negatives", "fit_pvalue"):
        results.put(f"prevalence/{name}", math.nan, reason="a class has no labelled scores")


def put_class_prevalence(
    results: Results,
    moments: ScoreMoments,
    labels: Sequence[object],
    shares: ClassShares | None,
    scale: float,
) -> None:
    """``prevalence/<label>/`` where there are more than two classes and no two groups."""
    n = float(moments.n.sum())
    pooled = moments.pooled()
    for k, label in enumerate(labels):
        prefix = f"prevalence/{encode_label(label)}"
        actual, expected = float(moments.n[k]) / n, float(pooled.mean[0, k])
        gap = moments.mean[:, k] - (np.arange(len(moments.n)) == k)
        squares = float(moments.m2[:, k].sum() + moments.n @ (gap - (expected - actual)) ** 2)
        results.put(f"{prefix}/actual", actual, n=n * scale)
        results.put(f"{prefix}/expected", expected, error=math.sqrt(float(pooled.m2[0, k]) / scale) / n)
        results.put(f"{prefix}/bias", expected - actual, error=math.sqrt(squares / scale) / n)
        if shares is None:
            continue
        reason = "no labelled samples of this class"
        results.put(f"{prefix}/calibrated", shares.values[k], reason=reason)
        results.put(f"{prefix}/calibrated_low", shares.low[k], reason=reason)
        results.put(f"{prefix}/calibrated_high", shares.high[k], reason=reason)
        if math.isfinite(shares.values[k]):
            results.intervals[f"{prefix}/calibrated"] = (float(shares.low[k]), float(shares.high[k]))


def _bayes_index(statistics: Statistics) -> float:
    assert statistics.scores is not None  # the caller's choice of section
    sides = statistics.scores.channels((2, 3), (0, 1))
    if not (sides.counts.sum(axis=1) > 0).all():
        return math.nan
    if statistics.squares is not None:  # half a count is half an effective sample, whatever the scale of the weights
        scale = statistics.matrix.total / statistics.squares.matrix.total
        sides = replace(sides, counts=sides.counts * scale)
    bands = quantile_bins(sides)
    return correlation.bayes_index(bands.p, bands.q)
