"""The default prevalence estimate: maximum likelihood over class-balanced quantile bins, and its intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TypedDict

import numpy as np
from scipy.special import chdtrc

from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval, normal_quantile
from cmtrack.prevalence.densities import BinnedDensities, leave_one_out, quantile_bins
from cmtrack.prevalence.estimate import PrevalenceEstimate
from cmtrack.prevalence.mixture import Mixture, Variance, profile_interval, score_interval, variance
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray

INTERVALS = ("adjusted", "realised", "wald", "score", "bootstrap", "naive")
_SAME_ROWS = "labelled scores and target are the same rows: the fit cannot be tested"


class _Fit(TypedDict, total=False):
    fit_statistic: float
    fit_df: int
    fit_pvalue: float
    fit_contributions: tuple[tuple[int, float], ...]


def binned_estimate(
    labelled: ScoreCounts,
    target: ScoreCounts | None,
    *,
    positive: Label,
    interval: str = "adjusted",
    confidence_level: float = 0.95,
    sizes: tuple[float, float, float] | None = None,
    bins: int | None = None,
) -> PrevalenceEstimate:
    """Estimate from counted scores.

    Parameters
    ----------
    labelled : ScoreCounts with two channels
        Negatives, positives; scores that the scorer was not trained on.
    target : ScoreCounts with one channel, or None
        None: the labelled scores are the target too. Each is then left out of its own class's density
        (:func:`leave_one_out`).
    sizes : (n, m1, m0), optional
        Effective sizes where samples are weighted; the counts by default.
    """
    if interval not in INTERVALS:
        raise ValueError(f"interval must be one of {INTERVALS}, got {interval!r}")
    if target is not None and labelled.exact != target.exact:
        labelled, target = labelled.to_grid(), target.to_grid()
    same = target is None
    target = labelled.channels((0, 1)) if target is None else target
    if sizes is not None:  # half a count is half an effective sample, whatever the scale of the weights
        factor = (sizes[1] + sizes[2]) / float(labelled.counts.sum())
        labelled = replace(labelled, counts=labelled.counts * factor)
    bands = quantile_bins(labelled, bins)
    binned = np.bincount(bands.bin_of(target.values), target.counts[0], len(bands.p)).astype(np.float64)
    mixture = Mixture(bands.p, bands.q, binned)
    if same:
        own = np.concatenate((bands.positives, bands.negatives))
        mixture = Mixture(
            np.concatenate((leave_one_out(bands.positives), bands.p)),
            np.concatenate((bands.q, leave_one_out(bands.negatives))),
            own * (binned.sum() / own.sum()),
        )
    n, m1, m0 = sizes or (float(binned.sum()), bands.m1, bands.m0)
    value = math.nan if np.array_equal(bands.p, bands.q) else mixture.maximise()
    make = partial(
        PrevalenceEstimate, positive=positive, n_target=float(binned.sum()), confidence_level=confidence_level,
        interval=interval, mixture=mixture, densities=bands, target_scores=target, density="bins",
    )  # fmt: skip
    if math.isnan(value):
        reason = "not identified: positives and negatives have the same scores"
        return make(
            value=math.nan, low=math.nan, high=math.nan, variance=Variance(math.inf, math.inf, math.inf, 0.0),
            undefined=dict.fromkeys(("value", "low", "high", "fit_pvalue"), reason),
        )  # fmt: skip
    spread = variance(bands.p, bands.q, value, n, m1, m0)
    scaled = Mixture(mixture.p, mixture.q, mixture.w * (n / mixture.w.sum()))
    realised = spread.about_target(value, n)
    ends = profile_interval(scaled, value, realised / spread.target, confidence_level)
    low, high = _interval(interval, scaled, bands, value, spread, (n, m1, m0), confidence_level, ends)
    fit: _Fit = {} if same else fit_diagnostic(bands, binned * (n / binned.sum()), value, m1, m0)
    return make(
        value=value, low=low, high=high, variance=spread, realised=ends,
        undefined={"fit_pvalue": _SAME_ROWS} if same else {},
        warnings=warnings_of(bands, spread, fit.get("fit_pvalue", math.nan)), **fit,
    )  # fmt: skip


def _interval(
    method: str,
    mixture: Mixture,
    bands: BinnedDensities,
    value: float,
    spread: Variance,
    sizes: tuple[float, float, float],
    level: float,
    realised: Interval,
) -> Interval:
    if method == "realised":
        return realised
    if method == "wald":
        reach = normal_quantile(level) * math.sqrt(spread.total)
        return max(0.0, value - reach), min(1.0, value + reach)
    binned = Mixture(bands.p, bands.q, mixture.w)
    if len(mixture.p) != len(bands.p):  # left out one by one: add the two classes' parts
        binned = Mixture(bands.p, bands.q, mixture.w.reshape(2, -1).sum(axis=0))
    if method == "score":
        return score_interval(binned, value, *sizes[1:], level)
    if method == "bootstrap":
        return _bootstrap(binned, bands, level)
    inflation = 1.0 if method == "naive" else spread.total / spread.target
    return profile_interval(mixture, value, inflation, level)


def _bootstrap(binned: Mixture, bands: BinnedDensities, level: float, replicates: int = 1000) -> Interval:
    """Percentiles over multinomial resamples of the three count vectors (fixed seed)."""
    rng = np.random.default_rng(20230813)

    def resample(counts: FloatArray) -> FloatArray:
        return rng.multinomial(round(counts.sum()), counts / counts.sum(), replicates).astype(np.float64)

    def densities(counts: FloatArray) -> FloatArray:
        drawn = resample(counts)
        shares: FloatArray = (drawn + 0.5) / (drawn.sum(axis=1, keepdims=True) + len(counts) / 2)
        return shares

    p, q, w = densities(bands.positives), densities(bands.negatives), resample(binned.w)
    low_end, high_end = np.zeros(replicates), np.ones(replicates)
    for _ in range(45):  # the score falls in the prevalence: bisection on all replicates at once
        values = (low_end + high_end) / 2
        rising = (w * (p - q) / (values[:, None] * p + (1 - values[:, None]) * q)).sum(axis=1) > 0
        low_end, high_end = np.where(rising, values, low_end), np.where(rising, high_end, values)
    values = (low_end + high_end) / 2
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def fit_diagnostic(bands: BinnedDensities, binned: FloatArray, value: float, m1: float, m0: float) -> _Fit:
    """Goodness of fit of the target's bin counts to the mixture (chi-square with B - 2 degrees of freedom)."""
    n, df = float(binned.sum()), len(bands.p) - 2
    mix = value * bands.p + (1 - value) * bands.q
    parts = (binned / n - mix) ** 2 / (mix / n + value**2 * bands.p / m1 + (1 - value) ** 2 * bands.q / m0)
    worst = np.argsort(parts)[::-1][:3]
    total = float(parts.sum())
    return {
        "fit_statistic": total,
        "fit_df": df,
        "fit_pvalue": float(chdtrc(df, total)) if df > 0 else math.nan,
        "fit_contributions": tuple((int(b), float(parts[b])) for b in worst),
    }


def warnings_of(bands: BinnedDensities, spread: Variance, fit_pvalue: float) -> tuple[str, ...]:
    """What an estimate should be distrusted for."""
    out = []
    distance = 0.5 * float(np.abs(bands.p - bands.q).sum())
    if spread.total > 1 / 12 or distance < math.sqrt(len(bands.p) / min(bands.m1, bands.m0)):
        out.append("the prevalence is weakly identified: the scores hardly separate the classes")
    if min(bands.m1, bands.m0) < 20:
        out.append(f"only {min(bands.m1, bands.m0):g} labelled scores of one class (< 20): the interval is approximate")
    if fit_pvalue < 0.05:
        out.append(
            f"the target's scores do not fit the labelled ones (p = {fit_pvalue:.2g}): not only the prevalence "
            "changed, or the labelled scores are training scores; do not trust the estimate"
        )
    return tuple(out)
