"""The sections of ``Evaluation.metrics`` that need scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cmtrack.metrics import score_errors
from cmtrack.metrics import spcc as correlation
from cmtrack.metrics.fisher import fisher_standard_error
from cmtrack.metrics.names import encode_label
from cmtrack.metrics.results import Results
from cmtrack.metrics.roc import RocCurve
from cmtrack.prevalence.densities import BinnedDensities, quantile_bins
from cmtrack.statistics import ScoreCounts, ScoreMoments
from cmtrack.statistics.collected import Statistics
from cmtrack.statistics.inputs import FloatArray

if TYPE_CHECKING:
    from cmtrack.prevalence.class_shares import ClassShares
    from cmtrack.prevalence.results import PrevalenceEstimate


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
    d_a, d_e = correlation.separation_indices(moments, squares)
    no_spread = "a class has fewer than two samples, or no score varies in its class"
    reason = "a class has no samples or the score does not vary"
    error = score_errors.standard_error("spcc", moments, squares)
    results.put("spcc/binary", correlation.spcc(moments), error=error, reason=reason)
    for name, value in (("d_a", d_a), ("d_e", d_e)):
        error = score_errors.standard_error(name, moments, squares)
        results.put(f"spcc/{name}", value, error=error, reason=no_spread)
    _put_bayes_index(results, statistics)


def put_multiclass_spcc(results: Results, statistics: Statistics, labels: Sequence[object]) -> FloatArray:
    """One-vs-rest and one-vs-one correlations; returns the one-vs-one matrix (K, K)."""
    moments, squares = statistics.moments, statistics.squares
    assert moments is not None  # the caller's choice of section
    pairs = correlation.one_vs_rest(moments)
    squared: Sequence[ScoreMoments | None] = [None] * len(pairs)
    if squares is not None and squares.moments is not None:
        squared = correlation.one_vs_rest(squares.moments)
    rest = np.array([correlation.spcc(pair) for pair in pairs])
    errors = np.array([score_errors.standard_error("spcc", *both) for both in zip(pairs, squared, strict=True)])
    reason = "a class has no samples or its score does not vary"
    for label, value, error in zip(labels, rest, errors, strict=True):
        results.put(f"spcc/ovr/{encode_label(label)}", value, error=error, reason=reason)
    matrix = correlation.spcc_ovo(moments)
    for kind, values in (("ovr", rest), ("ovo", correlation.off_diagonal(matrix))):
        error = math.nan
        if statistics.cross is not None:
            error = fisher_standard_error(moments, statistics.cross, kind, squares.cross if squares else None)
        results.put(f"spcc/{kind}_fisher", correlation.fisher_mean(values), error=error, reason=reason)
    _put_least(results, "spcc/ovr_min", rest, errors, reason)
    least = correlation.least_pair(matrix)
    if least is None:
        results.put("spcc/ovo_min", math.nan, reason=reason)
    else:
        both = [None if m is None else _pair(m, *least) for m in (moments, squares.moments if squares else None)]
        assert both[0] is not None  # made of moments
        results.put("spcc/ovo_min", matrix[least], error=score_errors.standard_error("spcc", both[0], both[1]))
    return matrix


def _put_least(results: Results, name: str, values: FloatArray, errors: FloatArray, reason: str) -> None:
    if np.isnan(values).all():
        results.put(name, math.nan, reason=reason)
    else:
        least = int(np.nanargmin(values))
        results.put(name, values[least], error=errors[least])


def _pair(moments: ScoreMoments, c: int, d: int) -> ScoreMoments:
    """Class d and class c by the score of class c."""
    return moments.select([d, c]).component(c)


def put_counts_of_positives(
    results: Results, moments: ScoreMoments, labels_sd: float, squares: ScoreMoments | None = None
) -> None:
    """``prevalence/`` actual, expected and bias, from class-wise means of the positive group's score."""
    n = float(moments.n.sum())
    effective = n if squares is None else n * n / float(squares.n.sum())
    expected = float(moments.n @ moments.mean[:, 0])
    results.put("prevalence/actual", float(moments.n[1]) / n, n=effective)
    values = {
        "expected": expected / n,
        "expected_count": expected,
        "bias": correlation.bias(moments),
        "expected_count_sd_labels_only": labels_sd,
    }
    for name, value in values.items():
        results.put(f"prevalence/{name}", value, error=score_errors.standard_error(name, moments, squares))


def put_calibrated(results: Results, estimate: PrevalenceEstimate, actual: float | None) -> None:
    """``prevalence/`` calibrated and what belongs to it; ``actual`` where the target is the evaluated set."""
    reason = estimate.undefined.get("value", "")
    ends, realised = (estimate.low, estimate.high), estimate.realised
    results.put_ends("prevalence/calibrated", estimate.value, ends, reason)
    results.put("prevalence/calibrated_low", estimate.low, reason=reason)
    results.put("prevalence/calibrated_high", estimate.high, reason=reason)
    count_ends = (estimate.count_low, estimate.count_high)
    results.put_ends("prevalence/calibrated_count", estimate.count, count_ends, reason)
    if actual is not None:
        gap = (realised[0] - actual, realised[1] - actual)
        results.put_ends("prevalence/calibrated_bias", estimate.value - actual, gap, reason)
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
    results: Results, statistics: Statistics, labels: Sequence[object], shares: ClassShares | None
) -> None:
    """``prevalence/<label>/`` where there are more than two classes and no two groups."""
    assert statistics.moments is not None  # the caller's choice of section
    squares = statistics.squares.moments if statistics.squares else None
    pairs = correlation.one_vs_rest(statistics.moments)
    squared: Sequence[ScoreMoments | None] = [None] * len(pairs)
    if squares is not None:
        squared = correlation.one_vs_rest(squares)
    for k, (label, pair, square) in enumerate(zip(labels, pairs, squared, strict=True)):
        prefix = f"prevalence/{encode_label(label)}"
        n = float(pair.n.sum())
        effective = n if square is None else n * n / float(square.n.sum())
        results.put(f"{prefix}/actual", float(pair.n[1]) / n, n=effective)
        for name, value in (("expected", float(pair.n @ pair.mean[:, 0]) / n), ("bias", correlation.bias(pair))):
            results.put(f"{prefix}/{name}", value, error=score_errors.standard_error(name, pair, square))
        if shares is None:
            continue
        reason = "no labelled samples of this class"
        if not shares.identified[k]:
            reason = "not identified: the scores do not tell this class from others"
        ends = (float(shares.low[k]), float(shares.high[k]))
        results.put_ends(f"{prefix}/calibrated", shares.values[k], ends, reason)
        results.put(f"{prefix}/calibrated_low", ends[0], reason=reason)
        results.put(f"{prefix}/calibrated_high", ends[1], reason=reason)


def _put_bayes_index(results: Results, statistics: Statistics) -> None:
    assert statistics.scores is not None  # the caller's choice of section
    sides = statistics.scores.channels((2, 3), (0, 1))
    if not (sides.counts.sum(axis=1) > 0).all():
        results.put("spcc/d_b", math.nan, reason="a class has no samples")
        return
    squares = None
    if statistics.squares is not None:  # half a count is half an effective sample, whatever the weights' scale
        scale = statistics.matrix.total / statistics.squares.matrix.total
        sides = replace(sides, counts=sides.counts * scale)
        assert statistics.squares.scores is not None  # as the sums themselves
        squares = statistics.squares.scores.channels((2, 3), (0, 1))
        squares = replace(squares, counts=squares.counts * scale**2)
    bands = quantile_bins(sides)
    value = correlation.bayes_index(bands.p, bands.q)
    results.put("spcc/d_b", value, error=bayes_index_error(bands, squares))


def bayes_index_error(bands: BinnedDensities, squares: ScoreCounts | None) -> float:
    """Standard error of d_b, the bins taken as given."""
    slope, error = correlation.bayes_index_slope(bands.p, bands.q), 0.0
    sums = [bands.negatives, bands.positives]
    if squares is not None:
        place = bands.bin_of(squares.values)
        sums = [np.bincount(place, own, len(bands.p)).astype(np.float64) for own in squares.counts]
    for counts, weights, lower in zip(
        (bands.negatives, bands.positives), sums, (bands.q <= bands.p, bands.p < bands.q), strict=True
    ):
        mean = float(counts @ lower) / float(counts.sum())
        error += float(weights @ (lower - mean) ** 2) / float(counts.sum()) ** 2
    return abs(slope) / 2 * math.sqrt(error)
