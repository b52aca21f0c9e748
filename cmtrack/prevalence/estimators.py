"""Prevalence estimators: by bins, by models of the density ratio, and of more than two classes.

* :func:`binned_estimate`: maximum likelihood over class-balanced quantile bins.
* :func:`modelled_estimate`: a stack of density ratios, cross-fitted, by matching a moment of the
  scores.
* :func:`class_estimate`: shares of K classes.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

import numpy as np
from scipy.special import chdtrc

from cmtrack.digits import significant
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.quantile_bins import BinnedDensities, leave_one_out, n_bins, quantile_bins
from cmtrack.prevalence._cross_fitting import (
    FOLDS,
    MomentMatch,
    TwoFoldings,
    at_random,
    fit_ratio,
    in_turn,
)
from cmtrack.prevalence.class_moments import fit_scaling, folds_for, scaled_shares
from cmtrack.prevalence.class_shares import BinnedShares, class_shares
from cmtrack.prevalence.densities import score_cells
from cmtrack.prevalence.fit import doubt
from cmtrack.prevalence.mixture import Mixture, Variance, profile_interval, variance
from cmtrack.prevalence.results import ClassPrevalenceEstimate, PrevalenceEstimate
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.top_scores import TopScoreCounts

_SAME_ROWS = "labelled scores and target are the same rows: the fit cannot be tested"
_AT_END = (
    "the interval {ends} at {end}: a share of {end} is not excluded, and shares so near to {end} are estimated too "
    "{way} on average, because no estimate is {beyond} {end}; the {other} end is on the safe side"
)
_NOT_IDENTIFIED = "not identified: positives and negatives have the same scores"
_RANDOM_FOLDS = 5


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
    """Estimate by maximum likelihood over class-balanced quantile bins of counted scores.

    ``labelled``: negatives, positives; scores that the scorer was not trained on.
    ``target``: None: the labelled scores are the target too. Each is then left out of its own
        class's density (:func:`leave_one_out`).
    ``sizes``, (n, m1, m0): effective sizes where samples are weighted; the counts by default.
    """
    if target is not None and labelled.exact != target.exact:
        labelled, target = labelled.to_grid(), target.to_grid()
    same = target is None
    target = labelled.channels((0, 1)) if target is None else target
    # half a count is half an effective sample, whatever the scale of the weights
    if sizes is not None:
        factor = (sizes[1] + sizes[2]) / float(labelled.counts.sum())
        labelled = replace(labelled, counts=labelled.counts * factor)
    bands = quantile_bins(labelled, bins)
    binned = np.bincount(bands.bin_of(target.values), target.counts[0], len(bands.p)).astype(
        np.float64
    )
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
        PrevalenceEstimate,
        positive=positive,
        n_target=float(binned.sum()),
        confidence_level=confidence_level,
        interval=interval,
        mixture=mixture,
        densities=bands,
        target_scores=target,
        density="bins",
    )
    if math.isnan(value):
        return make(**_not_identified())
    spread = variance(bands.p, bands.q, value, n, m1, m0)
    scaled = Mixture(mixture.p, mixture.q, mixture.w * (n / mixture.w.sum()))
    whole = spread.naive if interval == "naive" else spread
    ends, realised = (
        profile_interval(scaled, value, total / spread.target, confidence_level)
        for total in (whole.total, whole.about_target(value, n))
    )
    fit: _Fit = {} if same else fit_diagnostic(bands, binned * (n / binned.sum()), value, m1, m0)
    return make(
        value=value,
        low=ends[0],
        high=ends[1],
        variance=spread,
        realised=realised,
        undefined={"fit_pvalue": _SAME_ROWS} if same else _untested(fit),
        warnings=warnings_of(
            bands, spread, fit.get("fit_pvalue", math.nan), None if same else ends
        ),
        **fit,
    )


def _untested(fit: _Fit) -> dict[str, str]:
    reason = "two bins leave no degree of freedom: the fit cannot be tested"
    return {"fit_pvalue": reason} if math.isnan(fit["fit_pvalue"]) else {}


def fit_diagnostic(
    bands: BinnedDensities, binned: FloatArray, value: float, m1: float, m0: float
) -> _Fit:
    """Goodness of fit of the target's bin counts to the mixture (chi-square with B - 2 degrees of freedom)."""
    n, df = float(binned.sum()), len(bands.p) - 2
    mix = value * bands.p + (1 - value) * bands.q
    parts = (binned / n - mix) ** 2 / (
        mix / n + value**2 * bands.p / m1 + (1 - value) ** 2 * bands.q / m0
    )
    worst = np.argsort(parts)[::-1][:3]
    total = float(parts.sum())
    return {
        "fit_statistic": total,
        "fit_df": df,
        "fit_pvalue": float(chdtrc(df, total)) if df > 0 else math.nan,
        "fit_contributions": tuple((int(b), float(parts[b])) for b in worst),
    }


def warnings_of(
    bands: BinnedDensities, spread: Variance, fit_pvalue: float, ends: Interval | None
) -> tuple[str, ...]:
    """Reasons to distrust an estimate, or to read it with care; with interval ends, also those at 0 and 1."""
    out = []
    distance = 0.5 * float(np.abs(bands.p - bands.q).sum())
    if spread.total > 1 / 12 or distance < math.sqrt(len(bands.p) / min(bands.m1, bands.m0)):
        out.append("the prevalence is weakly identified: the scores hardly separate the classes")
    if min(bands.m1, bands.m0) < 20:
        fewest = significant(min(bands.m1, bands.m0), 2)
        out.append(
            f"only {fewest} labelled scores of one class (< 20): the interval is approximate"
        )
    if doubtful := doubt(fit_pvalue):
        out.append(doubtful)
    if ends is not None and ends[0] == 0 and ends[1] < 1:
        out.append(_AT_END.format(ends="begins", end=0, way="high", beyond="below", other="upper"))
    if ends is not None and ends[1] == 1 and ends[0] > 0:
        out.append(_AT_END.format(ends="ends", end=1, way="low", beyond="above", other="lower"))
    return tuple(out)


def modelled_estimate(
    labelled: ScoreCounts,
    target: FloatArray | ScoreCounts,
    *,
    positive: Label,
    interval: str = "adjusted",
    confidence_level: float = 0.95,
    effective: float | None = None,
) -> PrevalenceEstimate:
    """Estimate with a stack of density ratios, or by bins where each distinct labelled score can have its own.

    ``labelled``: negatives, positives, by distinct score.
    ``target``, shape (n,), or ScoreCounts with one channel: the target's scores.
    ``effective``: effective size of the target, where its samples are weighted.
    """
    if isinstance(target, ScoreCounts) and labelled.exact != target.exact:
        labelled, target = labelled.to_grid(), target.to_grid()
    if few_distinct(labelled):
        counts = (
            target
            if isinstance(target, ScoreCounts)
            else ScoreCounts.from_scores(target, exact=True)
        )
        m0, m1 = labelled.counts.sum(axis=1).tolist()
        sizes = None if effective is None else (effective, m1, m0)
        return binned_estimate(
            labelled,
            counts,
            positive=positive,
            interval=interval,
            confidence_level=confidence_level,
            sizes=sizes,
        )
    cells = score_cells(labelled)
    counted = cells.count(target)
    total, m1, m0 = float(counted.sum()), cells.cells.m1, cells.cells.m0
    n = total if effective is None else effective
    make = partial(
        PrevalenceEstimate,
        confidence_level=confidence_level,
        positive=positive,
        n_target=total,
        interval=interval,
        target_scores=target,
        density="auto",
    )
    if np.allclose(cells.positives / m1, cells.negatives / m0, rtol=0, atol=1e-12):
        mixture = Mixture(cells.cells.p, cells.cells.q, counted)
        return make(mixture=mixture, densities=cells.cells, **_not_identified())
    matches = []
    for folding, folds in ((in_turn, FOLDS), (at_random, _RANDOM_FOLDS)):
        fitted = fit_ratio(cells, folding, folds)
        shares = (fitted.positives / m1, fitted.negatives / m0)
        matches.append(
            (fitted.members, MomentMatch(fitted.left, counted / total, *shares, (n, m1, m0)))
        )
    match = TwoFoldings(*(found for _, found in matches))
    value = match.solve()
    spread = match.variance(value)
    ends: Interval = (0.0, 1.0)
    realised = ends
    if math.isfinite(spread.total):
        ends = match.interval(interval, confidence_level)
        realised = match.interval(interval, confidence_level, realised=True)
    p, q = match.densities
    ranks = ScoreCounts(
        np.arange(len(p), dtype=np.float64),
        np.stack((cells.negatives, cells.positives)),
        exact=True,
    )
    bands = quantile_bins(ranks)
    binned = np.bincount(bands.bin_of(ranks.values), counted, len(bands.p)).astype(np.float64)
    fit = fit_diagnostic(bands, binned * (n / total), value, m1, m0)
    return make(
        value=value,
        low=ends[0],
        high=ends[1],
        variance=spread,
        realised=realised,
        mixture=Mixture(p, q, counted),
        densities=replace(cells.cells, p=p, q=q),
        deviance=match.deviance,
        members=matches[0][0],
        undefined=_untested(fit),
        warnings=warnings_of(bands, spread, fit.get("fit_pvalue", math.nan), ends),
        **fit,
    )


def few_distinct(labelled: ScoreCounts) -> bool:
    """True where each distinct labelled score can have a bin of its own, so that bins lose no detail."""
    negatives, positives = labelled.counts.sum(axis=1)
    used = int(np.count_nonzero(labelled.counts.sum(axis=0)))
    return bool(min(negatives, positives) > 0) and used <= n_bins(
        float(positives), float(negatives)
    )


def class_estimate(
    actual: IntArray,
    held: FloatArray,
    target: FloatArray,
    labels: tuple[Label, ...],
    *,
    positive: Label,
    density: str,
    interval: str,
    confidence_level: float,
    weights: FloatArray | None = None,
) -> ClassPrevalenceEstimate:
    """Estimate the shares of more than two classes in a target (n, K) from labelled probabilities (m, K).

    With weights (n,) the target's rows count for as many samples as these sum to.
    """
    if interval != "adjusted":
        raise ValueError(f"for more than two classes interval must be 'adjusted', got {interval!r}")
    size, n = len(labels), float(len(target) if weights is None else weights.sum())
    labelled = np.bincount(actual, minlength=size).astype(np.float64)
    if labelled.min() < 2:
        few = [label for label, m in zip(labels, labelled, strict=True) if m < 2]
        raise ValueError(
            f"calibration needs at least two labelled samples of each class, too few of {few[:10]}"
        )
    tops = TopScoreCounts.from_scores(actual, held, size)
    wanted = TopScoreCounts.from_scores(np.zeros(len(target), dtype=np.int64), target, 1, weights)
    scaling = None
    if density == "bins":
        shares = class_shares(tops, wanted, confidence_level)
    else:
        scaling, ratios = fit_scaling(actual, held, folds_for(target))
        shares = scaled_shares(scaling, (actual, ratios), target, confidence_level, weights)
    k = labels.index(positive)
    own, every = float(shares.of_labelled[k, k]), float(shares.of_labelled[:, k].sum())
    total = float(shares.covariance[k, k])
    value = float(shares.values[k])
    spread = Variance(max(total - every, 0.0), own, every - own, math.nan)
    undefined = {}
    binned, statistic, df, pvalue = None, math.nan, 0, math.nan
    if shares.identified.all():
        binned = BinnedShares.of_tops(tops, wanted, shares.values)
        statistic, df, pvalue = binned.statistic, binned.degrees, binned.fit_pvalue
    else:
        lost = [
            label
            for label, identified in zip(labels, shares.identified, strict=True)
            if not identified
        ]
        undefined["by_class"] = (
            f"not identified, because scores do not tell these classes apart: {lost[:10]}"
        )
        if math.isnan(value):
            undefined |= dict.fromkeys(("value", "low", "high"), undefined["by_class"])
    warnings = []
    if labelled.min() < 20:
        warnings.append(
            f"a class has only {labelled.min():g} labelled samples (< 20): the intervals are approximate"
        )
    if doubtful := doubt(pvalue):
        warnings.append(doubtful)
    return ClassPrevalenceEstimate(
        value,
        float(shares.low[k]),
        float(shares.high[k]),
        confidence_level=confidence_level,
        positive=positive,
        n_target=n,
        variance=spread,
        interval=interval,
        density=density,
        fit_statistic=statistic,
        fit_df=df,
        fit_pvalue=pvalue,
        realised=(float(shares.realised[0, k]), float(shares.realised[1, k])),
        undefined=undefined,
        warnings=tuple(warnings),
        classes=labels,
        class_shares=shares,
        n_labelled=labelled,
        scaling=scaling,
        at_target=target,
        target_weights=weights,
        binned=binned,
    )


def _not_identified() -> dict[str, Any]:
    """Fields of an estimate from scores that do not tell the classes apart."""
    reasons = dict.fromkeys(("value", "low", "high", "fit_pvalue"), _NOT_IDENTIFIED)
    unknown = dict.fromkeys(("value", "low", "high"), math.nan)
    return {
        **unknown,
        "variance": Variance(math.inf, math.inf, math.inf, 0.0),
        "undefined": reasons,
    }
