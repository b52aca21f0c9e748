"""Prevalence estimators: bins, models of the density ratio, and more than two classes.

* :func:`binned_estimate`: maximum likelihood over class-balanced quantile bins.
* :func:`modelled_estimate`: a cross-fitted stack of density ratios that matches a moment of the
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
    FittedRatio,
    MomentMatch,
    TwoFoldings,
    at_random,
    fit_ratio,
    in_turn,
)
from cmtrack.prevalence.class_moments import fit_scaling, folds_for, scaled_shares
from cmtrack.prevalence.class_shares import (
    GROUPS,
    BinnedShares,
    ClassShares,
    class_shares,
    counts_by_bin,
)
from cmtrack.prevalence.densities import score_cells
from cmtrack.prevalence.fit import doubt
from cmtrack.prevalence.mixture import Mixture, Variance, profile_interval, variance
from cmtrack.prevalence.recalibration import Recalibrated, recalibrated_classes
from cmtrack.prevalence.results import ClassPrevalenceEstimate, PrevalenceEstimate
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.top_scores import TopScoreCounts

_SAME_ROWS = "labelled scores and target are the same rows, so the fit cannot be tested"
_AT_END = (
    "the interval {ends} at {end}, so a share of {end} is not excluded; estimates of shares "
    "this close to {end} are on average too {way}, because no estimate is {beyond} {end}, and "
    "the {other} limit is conservative"
)
_NOT_IDENTIFIED = "not identified: positives and negatives have the same scores"
_RANDOM_FOLDS = 5


class _Fit(TypedDict):
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

    ``labelled``: counts of the negatives and of the positives, by score. The scorer must not have
        been trained on these rows.
    ``target``: None if the target consists of the labelled rows. Each row is then left out of the
        density of its class (:func:`leave_one_out`).
    ``sizes``, (n, m1, m0): effective numbers of rows, if rows have weights. By default, the numbers
        of rows are used.
    """
    is_same = target is None
    if target is None:
        target = labelled.channels((0, 1))
    elif labelled.exact != target.exact:
        labelled = labelled.to_grid()
        target = target.to_grid()
    if sizes is not None:
        # Half a count is half an effective row at any scale of the weights.
        factor = (sizes[1] + sizes[2]) / float(labelled.counts.sum())
        labelled = replace(labelled, counts=labelled.counts * factor)
    bands = quantile_bins(labelled, bins)
    index = bands.bin_of(target.values)
    binned = np.bincount(index, target.counts[0], len(bands.p)).astype(np.float64)
    n_rows = float(binned.sum())
    n, m1, m0 = sizes or (n_rows, bands.m1, bands.m0)
    mixture = Mixture(bands.p, bands.q, binned)
    if is_same:
        own = np.concatenate((bands.positives, bands.negatives))
        mixture = Mixture(
            np.concatenate((leave_one_out(bands.positives), bands.p)),
            np.concatenate((bands.q, leave_one_out(bands.negatives))),
            own * (n_rows / own.sum()),
        )
    make = partial(
        PrevalenceEstimate,
        positive=positive,
        n_target=n_rows,
        confidence_level=confidence_level,
        interval=interval,
        mixture=mixture,
        densities=bands,
        target_scores=target,
        density="bins",
        recalibrated={positive: _recalibrated(bands, binned * (n / n_rows), confidence_level)},
    )
    value = math.nan if np.array_equal(bands.p, bands.q) else mixture.maximise()
    if math.isnan(value):
        return make(**_not_identified())
    spread = variance(bands.p, bands.q, value, n, m1, m0)
    scaled = Mixture(mixture.p, mixture.q, mixture.w * (n / mixture.w.sum()))
    stated = spread.naive if interval == "naive" else spread
    inflation = stated.total / spread.target
    ends = profile_interval(scaled, value, inflation, confidence_level)
    inflation = stated.about_target(value, n) / spread.target
    realised = profile_interval(scaled, value, inflation, confidence_level)
    make = partial(make, value=value, low=ends[0], high=ends[1], variance=spread, realised=realised)
    if is_same:
        return make(
            undefined={"fit_pvalue": _SAME_ROWS},
            warnings=warnings_of(bands, spread, math.nan, None),
        )
    fit = fit_diagnostic(bands, binned * (n / n_rows), value, m1, m0)
    return make(
        undefined=_untested(fit),
        warnings=warnings_of(bands, spread, fit["fit_pvalue"], ends),
        **fit,
    )


def _recalibrated(
    bands: BinnedDensities, binned: FloatArray, confidence_level: float
) -> Recalibrated:
    """Return the share of positives if a score means the same as in the labelled rows.

    ``binned``, shape (B,): effective number of target rows in each bin.
    """
    labelled = np.stack((bands.negatives, bands.positives), axis=1)
    return Recalibrated.from_counts(labelled, binned, confidence_level)


def _untested(fit: _Fit) -> dict[str, str]:
    """Return the reason why the fit has no p-value; empty if there is a p-value."""
    if not math.isnan(fit["fit_pvalue"]):
        return {}
    return {"fit_pvalue": "two bins leave no degree of freedom, so the fit cannot be tested"}


def fit_diagnostic(
    bands: BinnedDensities, binned: FloatArray, value: float, m1: float, m0: float
) -> _Fit:
    """Test the fit of the mixture to the target's bin counts, by chi-square with B - 2 degrees."""
    n = float(binned.sum())
    df = len(bands.p) - 2
    mix = value * bands.p + (1 - value) * bands.q
    noise = mix / n + value**2 * bands.p / m1 + (1 - value) ** 2 * bands.q / m0
    parts = (binned / n - mix) ** 2 / noise
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
    """Return reasons to be cautious about an estimate.

    ``ends``: the interval. One such reason is an interval that ends at 0 or 1.
    """
    warnings = []
    fewest = min(bands.m1, bands.m0)
    distance = 0.5 * float(np.abs(bands.p - bands.q).sum())
    # 1/12 is the variance of a uniform distribution, so such an estimate adds no information.
    if spread.total > 1 / 12 or distance < math.sqrt(len(bands.p) / fewest):
        warnings.append(
            "the prevalence is weakly identified: the scores hardly separate the classes"
        )
    if fewest < 20:
        warnings.append(
            f"only {significant(fewest, 2)} labelled scores of one class (< 20): "
            "the interval is approximate"
        )
    doubtful = doubt(fit_pvalue)
    if doubtful:
        warnings.append(doubtful)
    low, high = ends or (math.nan, math.nan)
    if low == 0 and high < 1:
        warnings.append(
            _AT_END.format(ends="begins", end=0, way="high", beyond="below", other="upper")
        )
    if high == 1 and low > 0:
        warnings.append(
            _AT_END.format(ends="ends", end=1, way="low", beyond="above", other="lower")
        )
    return tuple(warnings)


def modelled_estimate(
    labelled: ScoreCounts,
    target: FloatArray | ScoreCounts,
    *,
    positive: Label,
    interval: str = "adjusted",
    confidence_level: float = 0.95,
    effective: float | None = None,
) -> PrevalenceEstimate:
    """Estimate with a stack of density ratios.

    If there are enough bins for all distinct labelled scores, bins are used instead.

    ``labelled``: counts of the negatives and of the positives, by distinct score.
    ``target``, shape (n,), or ScoreCounts with one channel: the target's scores.
    ``effective``: effective number of target rows, if these rows have weights.
    """
    if isinstance(target, ScoreCounts) and labelled.exact != target.exact:
        labelled = labelled.to_grid()
        target = target.to_grid()
    if few_distinct(labelled):
        counts = target
        if not isinstance(counts, ScoreCounts):
            counts = ScoreCounts.from_scores(counts, exact=True)
        m0, m1 = labelled.counts.sum(axis=1).tolist()
        return binned_estimate(
            labelled,
            counts,
            positive=positive,
            interval=interval,
            confidence_level=confidence_level,
            sizes=None if effective is None else (effective, m1, m0),
        )
    cells = score_cells(labelled)
    densities = cells.cells
    counted = cells.count(target)
    n_rows = float(counted.sum())
    n = n_rows if effective is None else effective
    make = partial(
        PrevalenceEstimate,
        confidence_level=confidence_level,
        positive=positive,
        n_target=n_rows,
        interval=interval,
        target_scores=target,
        density="auto",
    )
    m1 = densities.m1
    m0 = densities.m0
    # The fit is tested in bins of cells, because a single cell has too few rows.
    ranks = ScoreCounts(
        np.arange(len(counted), dtype=np.float64),
        np.stack((cells.negatives, cells.positives)),
        exact=True,
    )
    bands = quantile_bins(ranks)
    binned = np.bincount(bands.bin_of(ranks.values), counted, len(bands.p)).astype(np.float64)
    binned *= n / n_rows
    make = partial(make, recalibrated={positive: _recalibrated(bands, binned, confidence_level)})
    if np.allclose(cells.positives / m1, cells.negatives / m0, rtol=0, atol=1e-12):
        mixture = Mixture(densities.p, densities.q, counted)
        return make(mixture=mixture, densities=densities, **_not_identified())
    stack = fit_ratio(cells, in_turn, FOLDS)
    sizes = (n, m1, m0)
    match = TwoFoldings(
        _match(stack, counted / n_rows, sizes),
        _match(fit_ratio(cells, at_random, _RANDOM_FOLDS), counted / n_rows, sizes),
    )
    value = match.solve()
    spread = match.variance(value)
    ends: Interval = (0.0, 1.0)
    realised = ends
    if math.isfinite(spread.total):
        ends = match.interval(interval, confidence_level)
        realised = match.interval(interval, confidence_level, realised=True)
    fit = fit_diagnostic(bands, binned, value, m1, m0)
    p, q = match.densities
    return make(
        value=value,
        low=ends[0],
        high=ends[1],
        variance=spread,
        realised=realised,
        mixture=Mixture(p, q, counted),
        densities=replace(densities, p=p, q=q),
        deviance=match.deviance,
        members=stack.members,
        undefined=_untested(fit),
        warnings=warnings_of(bands, spread, fit["fit_pvalue"], ends),
        **fit,
    )


def _match(
    fitted: FittedRatio, target: FloatArray, sizes: tuple[float, float, float]
) -> MomentMatch:
    """Return the moments of a target in which the cells contain the given shares of the rows."""
    _, m1, m0 = sizes
    return MomentMatch(fitted.left, target, fitted.positives / m1, fitted.negatives / m0, sizes)


def few_distinct(labelled: ScoreCounts) -> bool:
    """Return whether there are enough bins for all distinct labelled scores."""
    negatives, positives = labelled.counts.sum(axis=1).tolist()
    n_used = int(np.count_nonzero(labelled.counts.sum(axis=0)))
    return min(negatives, positives) > 0 and n_used <= n_bins(float(positives), float(negatives))


def class_estimate(
    actual: IntArray,
    labelled: FloatArray,
    target: FloatArray,
    labels: tuple[Label, ...],
    *,
    positive: Label,
    density: str,
    interval: str,
    confidence_level: float,
    weights: FloatArray | None = None,
) -> ClassPrevalenceEstimate:
    """Estimate the shares of more than two classes in a target (n, K).

    ``labelled``, shape (m, K): probabilities of the labelled rows.
    ``weights``, shape (n,): weights of the target rows. Their sum is the number of rows that the
        target counts as.
    """
    if interval != "adjusted":
        raise ValueError(f"for more than two classes interval must be 'adjusted', got {interval!r}")
    size = len(labels)
    n_labelled = np.bincount(actual, minlength=size).astype(np.float64)
    if n_labelled.min() < 2:
        few = [label for label, m in zip(labels, n_labelled, strict=True) if m < 2]
        raise ValueError(
            f"calibration needs at least two labelled rows of each class, got fewer of {few[:10]}"
        )
    labelled_tops = TopScoreCounts.from_scores(actual, labelled, size)
    one_class = np.zeros(len(target), dtype=np.int64)
    target_tops = TopScoreCounts.from_scores(one_class, target, 1, weights)
    scaling = None
    if density == "bins":
        shares = class_shares(labelled_tops, target_tops, confidence_level)
    else:
        scaling, ratios = fit_scaling(actual, labelled, folds_for(target))
        shares = scaled_shares(scaling, (actual, ratios), target, confidence_level, weights)
    k = labels.index(positive)
    value = float(shares.values[k])
    undefined: dict[str, str] = {}
    counts, target_counts = counts_by_bin(labelled_tops, target_tops, GROUPS)
    binned = None
    fit: dict[str, Any] = {}
    if shares.identified.all():
        binned = BinnedShares.of_tops(labelled_tops, target_tops, shares.values)
        fit = {
            "fit_statistic": binned.statistic,
            "fit_df": binned.degrees,
            "fit_pvalue": binned.fit_pvalue,
        }
    else:
        alike = [label for label, sure in zip(labels, shares.identified, strict=True) if not sure]
        undefined["by_class"] = (
            f"not identified, because the scores do not separate these classes: {alike[:10]}"
        )
        if math.isnan(value):
            undefined |= dict.fromkeys(("value", "low", "high"), undefined["by_class"])
    warnings = []
    if n_labelled.min() < 20:
        warnings.append(
            f"a class has only {n_labelled.min():g} labelled rows (< 20), "
            "so the intervals are approximate"
        )
    doubtful = doubt(fit.get("fit_pvalue", math.nan))
    if doubtful:
        warnings.append(doubtful)
    return ClassPrevalenceEstimate(
        value,
        float(shares.low[k]),
        float(shares.high[k]),
        confidence_level=confidence_level,
        positive=positive,
        n_target=float(len(target) if weights is None else weights.sum()),
        variance=_variance_of_class(shares, k),
        interval=interval,
        density=density,
        realised=(float(shares.realised[0, k]), float(shares.realised[1, k])),
        undefined=undefined,
        warnings=tuple(warnings),
        classes=labels,
        class_shares=shares,
        n_labelled=n_labelled,
        scaling=scaling,
        at_target=target,
        target_weights=weights,
        binned=binned,
        recalibrated=recalibrated_classes(labels, counts, target_counts, confidence_level),
        **fit,
    )


def _variance_of_class(shares: ClassShares, k: int) -> Variance:
    """Return the variance of the share of one class, divided by source."""
    total = float(shares.covariance[k, k])
    of_class = float(shares.of_labelled[k, k])
    of_labelled = float(shares.of_labelled[:, k].sum())
    return Variance(max(total - of_labelled, 0.0), of_class, of_labelled - of_class, math.nan)


def _not_identified() -> dict[str, Any]:
    """Return the fields of an estimate whose scores do not separate the classes."""
    reasons = dict.fromkeys(("value", "low", "high", "fit_pvalue"), _NOT_IDENTIFIED)
    unknown = dict.fromkeys(("value", "low", "high"), math.nan)
    return {
        **unknown,
        "variance": Variance(math.inf, math.inf, math.inf, 0.0),
        "undefined": reasons,
    }
