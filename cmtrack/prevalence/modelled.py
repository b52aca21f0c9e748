"""Prevalence from any model of the density ratio: cells, cross-fitted ratio, moment matching, one interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval, normal_quantile
from cmtrack.prevalence.binned import binned_estimate, fit_diagnostic, warnings_of
from cmtrack.prevalence.densities import n_bins, quantile_bins
from cmtrack.prevalence.estimate import PrevalenceEstimate
from cmtrack.prevalence.folds import Folding, at_random, in_turn
from cmtrack.prevalence.mixture import Mixture, Variance
from cmtrack.prevalence.moment_match import MomentMatch
from cmtrack.prevalence.score_cells import ScoreCells, score_cells
from cmtrack.prevalence.stacking import FOLDS, MEMBERS, FittedRatio, fit_ratio
from cmtrack.prevalence.two_foldings import TwoFoldings
from cmtrack.statistics import ScoreCounts
from cmtrack.statistics.inputs import FloatArray

_RANDOM_FOLDS = 5

RatioFunction = Callable[[FloatArray], FloatArray]
DensityRatio = Callable[[FloatArray, FloatArray], RatioFunction]
"""Of the labelled negatives' and the labelled positives' scores: a function of scores, the ratio f1 / f0 there."""


def modelled_estimate(
    labelled: ScoreCounts,
    target: FloatArray | ScoreCounts,
    *,
    positive: Label,
    density: str | DensityRatio = "auto",
    interval: str = "adjusted",
    confidence_level: float = 0.95,
    effective: float | None = None,
) -> PrevalenceEstimate:
    """Estimate with the ratio of "auto" (a stack), of one named model, or of a function.

    Parameters
    ----------
    labelled : ScoreCounts with two channels
        Negatives, positives, by distinct score.
    target : ndarray of shape (n,), or ScoreCounts with one channel
        The target's scores.
    effective : float, optional
        Effective size of the target, where its samples are weighted.
    """
    if isinstance(target, ScoreCounts) and labelled.exact != target.exact:
        labelled, target = labelled.to_grid(), target.to_grid()
    if density == "auto" and few_distinct(labelled):
        counts = target if isinstance(target, ScoreCounts) else ScoreCounts.from_scores(target, exact=True)
        m0, m1 = labelled.counts.sum(axis=1).tolist()
        sizes = None if effective is None else (effective, m1, m0)
        return binned_estimate(
            labelled, counts, positive=positive, interval=interval, confidence_level=confidence_level, sizes=sizes
        )
    cells = score_cells(labelled)
    counted = cells.count(target)
    total, m1, m0 = float(counted.sum()), cells.cells.m1, cells.cells.m0
    n = total if effective is None else effective
    name = density if isinstance(density, str) else getattr(density, "__name__", "function")
    make = partial(
        PrevalenceEstimate, confidence_level=confidence_level, positive=positive, n_target=total, interval=interval,
        target_scores=target, density=name,
    )  # fmt: skip
    if np.allclose(cells.positives / m1, cells.negatives / m0, rtol=0, atol=1e-12):
        reason = "not identified: positives and negatives have the same scores"
        known = Mixture(cells.cells.p, cells.cells.q, counted)
        return make(
            value=math.nan, low=math.nan, high=math.nan, variance=Variance(math.inf, math.inf, math.inf, 0.0),
            mixture=known, densities=cells.cells,
            undefined=dict.fromkeys(("value", "low", "high", "fit_pvalue"), reason),
        )  # fmt: skip
    matches = []
    for folding, folds in ((in_turn, FOLDS), (at_random, _RANDOM_FOLDS)):
        if isinstance(density, str):
            fitted = fit_ratio(cells, MEMBERS if density == "auto" else (density,), folding, folds)
        else:
            fitted = _of_function(density, labelled, cells, folding, folds)
        shares = (fitted.positives / m1, fitted.negatives / m0)
        matches.append((fitted.members, MomentMatch(fitted.left, counted / total, *shares, (n, m1, m0))))
    match = TwoFoldings(*(found for _, found in matches))
    value = match.solve()
    spread = match.variance(value)
    if not math.isfinite(spread.total):
        ends = realised = (0.0, 1.0)
    else:
        realised = match.interval("realised", confidence_level)
        ends = _interval(match, interval, value, spread, realised, confidence_level)
    p, q = match.densities
    ranks = ScoreCounts(np.arange(len(p), dtype=np.float64), np.stack((cells.negatives, cells.positives)), exact=True)
    bands = quantile_bins(ranks)
    binned = np.bincount(bands.bin_of(ranks.values), counted, len(bands.p)).astype(np.float64)
    fit = fit_diagnostic(bands, binned * (n / total), value, m1, m0)
    return make(
        value=value, low=ends[0], high=ends[1], variance=spread, realised=realised,
        mixture=Mixture(p, q, counted), densities=replace(cells.cells, p=p, q=q),
        deviance=match.deviance, members=matches[0][0],
        warnings=warnings_of(bands, spread, fit.get("fit_pvalue", math.nan)), **fit,
    )  # fmt: skip


def few_distinct(labelled: ScoreCounts) -> bool:
    """Whether each distinct labelled score can have a bin of its own, so that bins smear nothing."""
    negatives, positives = labelled.counts.sum(axis=1)
    used = int(np.count_nonzero(labelled.counts.sum(axis=0)))
    return bool(min(negatives, positives) > 0) and used <= n_bins(float(positives), float(negatives))


def _interval(
    match: TwoFoldings, method: str, value: float, spread: Variance, realised: Interval, level: float
) -> Interval:
    if method == "realised":
        return realised
    if method == "wald":
        reach = normal_quantile(level) * math.sqrt(spread.total)
        return max(0.0, value - reach), min(1.0, value + reach)
    if method == "bootstrap":
        return match.bootstrap(level)
    return match.interval(method, level)


def _of_function(
    density: DensityRatio, labelled: ScoreCounts, cells: ScoreCells, folding: Folding, most: int
) -> FittedRatio:
    """Ratios by a user's function, fitted without each fold of labelled scores."""
    negatives, positives = labelled.counts.astype(np.float64)
    at = 1 / (1 + np.exp(-cells.place)) if cells.cells.unit else cells.cells.centres

    def log_ratio(without0: FloatArray, without1: FloatArray) -> FloatArray:
        samples = [np.repeat(labelled.values, np.rint(c).astype(np.int64)) for c in (without0, without1)]
        ratio = np.asarray(density(samples[0], samples[1])(at), dtype=np.float64)
        if ratio.shape != at.shape or not (ratio >= 0).all():
            raise ValueError(
                "density must be a function of (negatives' scores, positives' scores) that returns a function of "
                f"scores with one ratio >= 0 for each, got {ratio.shape} for {at.shape}"
            )
        with np.errstate(divide="ignore"):
            out: FloatArray = np.log(ratio)
        return out

    folds = int(min(most, positives.sum(), negatives.sum()))
    members = {"function": 1.0}
    if folds < 2:
        return FittedRatio(log_ratio(negatives, positives)[None], cells.positives[None], cells.negatives[None], members)
    held1, held0 = folding(positives, folds), folding(negatives, folds)
    left = np.stack([log_ratio(negatives - out0, positives - out1) for out0, out1 in zip(held0, held1, strict=True)])
    index = cells.cells.bin_of(labelled.values)
    size = len(cells.place)
    by_cell = [np.zeros((folds, size)), np.zeros((folds, size))]
    for own, held in zip(by_cell, (held1, held0), strict=True):
        for out, row in zip(own, held, strict=True):
            out += np.bincount(index, row, size)
    return FittedRatio(left, by_cell[0], by_cell[1], members)
