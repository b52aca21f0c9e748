"""Statistical inference about runs, based on their values and the covariance of their errors.

This module computes differences between runs, the set of runs that may be the best, the probability
of each rank, and the interval of a selected run. The input of all functions is a vector of R
values, of which larger values are better, and the (R, R) covariance matrix of their errors. The
source of the covariance (paired rows, independent rows, several metrics) does not matter.

Random draws use a fixed seed, so the same input always gives the same results.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from cmtrack._lazy import cached_property
from cmtrack.metrics.intervals import holm, normal_quantile
from cmtrack.metrics.paired import SAME, Paired, as_normal, cut, over, root, students
from cmtrack.statistics.counting import row_blocks
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

_FEW_RUNS = 64
"""Number of runs below which leads are computed run by run."""
N_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of R runs, estimated from random draws of their true values.

    ``probability_best``, of shape (R,): share of draws in which the run is first.
    ``expected``, of shape (R,): mean rank of each run over the draws; rank 1 is the best.
    ``low``, ``high``, of shape (R,): lower and upper limit of the interval of each run's rank.
    ``distribution``, of shape (R, R): the entry ``[run, rank - 1]`` is the share of draws in which
    the run has this rank. Each row and each column of the matrix sums to 1.
    """

    probability_best: FloatArray
    expected: FloatArray
    low: IntArray
    high: IntArray
    distribution: FloatArray


@dataclass(frozen=True, eq=False)
class Pairs:
    """All pairwise differences between R runs.

    ``difference``, of shape (R, R): value of the run in the row minus value of the run in the
    column.
    ``standard_error``, of shape (R, R): standard error of each pair's difference.
    ``statistic``, of shape (R, R): normal statistic with the same p-value as the difference;
    infinite if two runs differ although their difference has no error, and 0 if the runs are
    identical.
    ``pvalue``, of shape (R, R): unadjusted two-sided p-values.
    ``holm``, of shape (R, R): p-values adjusted for the number of pairs by Holm's method (1979).
    ``max_t``, of shape (R, R): p-values adjusted by the distribution of the largest statistic among
    all pairs, which takes the correlation between pairs into account.
    ``reach``: normal quantile of the simultaneous intervals.
    ``upper_ends``: function of a quantile and of places of runs, which returns the upper ends of
    the intervals of the differences of these runs from all runs.
    ``without_interval``, of shape (R, R), bool: pairs in which no row differs, or whose standard
    error is unknown.
    ``rival``, of shape (R,), int64: position of the best other run, ignoring runs that are
    identical to this run; if no other run remains, the position of the run itself.
    ``may_be_best``, of shape (R,): p-value of the hypothesis that no other run is better.
    ``tied``, of shape (R,), bool: whether ``may_be_best`` is above ``1 - confidence_level``. A run
    whose entry is True may be the best, and a run whose entry is False is ruled out.
    ``critical``, of shape (R,): smallest lead of another run, in standard errors, that rules the
    run out.
    ``best_low``, ``best_high``, of shape (R,): simultaneous intervals of each run's value minus the
    value of the best other run. The upper end of a run's interval is exactly 0 if and only if the
    run is ruled out as the best. The lower end is exactly 0 if and only if all other runs are ruled
    out.
    """

    difference: FloatArray
    standard_error: FloatArray
    statistic: FloatArray
    pvalue: FloatArray
    holm: FloatArray
    max_t: FloatArray
    reach: float
    upper_ends: Callable[[float, IntArray], FloatArray]
    without_interval: BoolArray
    rival: IntArray
    may_be_best: FloatArray
    tied: BoolArray
    critical: FloatArray
    best_low: FloatArray
    best_high: FloatArray

    @cached_property
    def high(self) -> FloatArray:
        """Upper ends of simultaneous intervals of all differences, of shape (R, R)."""
        high = self.upper_ends(self.reach, np.arange(len(self.rival)))
        return np.where(self.without_interval, np.nan, high)

    @property
    def low(self) -> FloatArray:
        """Lower ends of simultaneous intervals of all differences, of shape (R, R)."""
        return -self.high.T


def error_draws(covariance: FloatArray, n_draws: int = N_DRAWS, seed: int = 0) -> FloatArray:
    """Draw normally distributed errors with a given covariance, shape (n_draws, R).

    If the difference between two runs has no error, their draws are equal.
    """
    values, vectors = np.linalg.eigh(covariance)
    # The symmetric square root of the covariance is unique. It does not depend on the signs of
    # eigenvectors, which change with rounding errors.
    root = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    standard = np.random.default_rng(seed).standard_normal((n_draws, len(covariance)))
    draws: FloatArray = standard @ root
    return draws[:, representatives(covariance)]


def representatives(covariance: FloatArray, values: FloatArray | None = None) -> IntArray:
    """Find, for each run, the first run with the same errors; return its position, shape (R,).

    If values are given, the two runs must also have the same value.
    """
    variance = np.diag(covariance)
    difference = variance[:, None] + variance[None, :] - 2 * covariance
    same = difference <= SAME * max(float(variance.max(initial=0)), np.finfo(float).tiny)
    if values is not None:
        same &= np.abs(values[:, None] - values) <= SAME * np.abs(values).max(initial=0)
    return np.asarray(same.argmax(axis=1))


def ranks(drawn: FloatArray, confidence_level: float, folded: bool = False) -> Ranks:
    """Compute the ranks of runs from draws of their true values.

    ``drawn``, of shape (n_draws, R): draws from :func:`posterior_draws`. Runs that are equal in a
    draw are ranked in random order.
    ``folded``: whether the value nearest to zero, instead of the largest value, is best.
    """
    if folded:
        drawn = -np.abs(drawn)
    size = drawn.shape[1]
    has_equal = len(np.unique(drawn[0])) < size
    rng = np.random.default_rng(1)
    flat = np.zeros(size * size, dtype=np.int64)
    for part in row_blocks(len(drawn), size):
        descending = -drawn[part]
        if has_equal:
            # Runs with equal values and errors are equal in every draw, so their order is random.
            order = np.lexsort((rng.random(descending.shape), descending), axis=1)
        else:
            order = np.argsort(descending, axis=1)
        cells = order * size + np.arange(size)
        flat += np.bincount(cells.ravel(), minlength=size * size)
    distribution = flat.reshape(size, size) / len(drawn)
    cumulative = distribution.cumsum(axis=1)
    tail = (1 - confidence_level) / 2
    return Ranks(
        probability_best=distribution[:, 0],
        expected=distribution @ np.arange(1, size + 1),
        low=1 + (cumulative <= tail).sum(axis=1),
        # Rounding may make a sum of shares that equals 1 - tail slightly smaller.
        high=1 + (cumulative < 1 - tail - 1e-12).sum(axis=1),
        distribution=distribution,
    )


# -- the posterior of the true values --------------------------------------------------------------

LEAST_FOR_SPREAD = 3
"""Smallest number of distinct runs from which the spread of true values can be estimated."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The posterior of τ, the standard deviation of the runs' true values.

    ``tau``, of shape (T,): grid of values of τ.
    ``weights``, of shape (T,): posterior probability of each value in the grid.
    ``basis``, of shape (R, R - 1): orthonormal contrasts of the runs, with independent errors.
    ``contrast``, of shape (R - 1,): contrasts of the observed values.
    ``variance``, of shape (R - 1,): variance of the error of each contrast.
    """

    tau: FloatArray
    weights: FloatArray
    basis: FloatArray
    contrast: FloatArray
    variance: FloatArray


def spread(values: FloatArray, covariance: FloatArray, steps: int = 200) -> Spread:
    """Return the posterior of the spread τ of the true values of exchangeable runs.

    The model assumes that the true values are distributed as N(μ, τ²), with flat priors for μ and
    τ.

    ``values``, of shape (R,): values of the runs, at least two of which are distinct.
    ``covariance``, of shape (R, R): covariance of the errors of the values.
    ``steps``: number of steps of the grid of τ, which is geometric up to 8 times the root mean
    square of the errors.
    """
    size = len(values)
    directions = np.vstack([np.ones(size), np.eye(size)[:-1]]).T
    # Drop the first column, which is the mean. The other columns are orthonormal contrasts.
    contrasts = np.linalg.qr(directions)[0][:, 1:]
    variance, rotation = np.linalg.eigh(contrasts.T @ covariance @ contrasts)
    # After the errors that all runs share are subtracted, rounding errors may remain. They must not
    # count as variance.
    rounding = size * np.finfo(float).eps * float(np.abs(covariance).max())
    variance = np.where(variance > max(SAME * float(variance.max()), rounding), variance, 0.0)
    basis = contrasts @ rotation
    contrast = basis.T @ values
    largest = 8 * math.sqrt(float(variance.mean()))
    if largest == 0:  # The values have no error.
        return Spread(np.zeros(1), np.ones(1), basis, contrast, variance)
    smallest = min(0.02 * largest, 0.2 * math.sqrt(float(variance[variance > 0].min())))
    edges = np.concatenate([[0.0], np.geomspace(smallest, largest, steps)])
    tau = (edges[1:] + edges[:-1]) / 2
    total = tau[:, None] ** 2 + variance
    log_likelihood = -0.5 * (np.log(total) + contrast**2 / total).sum(axis=1)
    # Weight each cell of the grid by its width, because the prior of τ is flat.
    log_weights = log_likelihood + np.log(np.diff(edges))
    weights = np.exp(log_weights - log_weights.max())
    return Spread(tau, weights / weights.sum(), basis, contrast, variance)


def posterior_draws(
    values: FloatArray,
    covariance: FloatArray,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    level: bool = False,
) -> FloatArray | None:
    """Return draws of the true values, shape (n_draws, R); None for fewer than 3 distinct runs.

    Bootstrap samples of the rows, or draws from ``N(values, covariance)``, do not account for the
    fact that the leader's observed value is partly luck. If six runs are equally good, bootstrap
    samples give the leader a probability of 0.4 to 0.5 of being the best, instead of 1/6. Therefore
    this function estimates the spread of the true values from the runs, and it shrinks the observed
    values towards their mean accordingly.

    ``values``, of shape (R,): values of the runs.
    ``covariance``, of shape (R, R): covariance of the errors of the values.
    ``level``: whether the draws include the uncertainty of the mean of all runs. The mean of all
    runs does not affect ranks by size, but it affects ranks by distance from zero.
    """
    if len(values) == 1:
        return np.tile(values, (n_draws, 1))
    distinct, run_of_distinct = np.unique(representatives(covariance, values), return_inverse=True)
    if len(distinct) < LEAST_FOR_SPREAD:
        return None
    values = values[distinct]
    covariance = covariance[np.ix_(distinct, distinct)]
    posterior = spread(values, covariance)
    rng = np.random.default_rng(seed)
    # Evenly spaced quantiles of τ cause less random variation than random draws of τ.
    quantiles = (np.arange(n_draws) + 0.5) / n_draws
    cell = np.searchsorted(posterior.weights.cumsum()[:-1], quantiles)
    if level:
        slope, residual = _mean_error(posterior, covariance)
    draws = np.empty((n_draws, len(run_of_distinct)))
    for part in row_blocks(n_draws, len(values)):
        squares = (posterior.tau**2)[cell[part], None]
        total = squares + posterior.variance
        share = np.divide(squares, total, out=np.ones_like(total), where=total > 0)
        noise = rng.standard_normal(total.shape)
        contrasts = share * posterior.contrast + np.sqrt(share * posterior.variance) * noise
        drawn = contrasts @ posterior.basis.T + values.mean()
        if level:
            drawn -= ((posterior.contrast - contrasts) @ slope)[:, None]
        draws[part] = drawn[:, run_of_distinct]
    if level:
        draws -= residual * rng.standard_normal(n_draws)[:, None]
    return draws


def _mean_error(posterior: Spread, covariance: FloatArray) -> tuple[FloatArray, float]:
    """Regress the error of the mean of all values on the errors of the contrasts.

    Returns the slopes, of shape (R - 1,), and the standard deviation of the residual.
    """
    mean = np.full(len(covariance), 1 / len(covariance))
    with_mean = posterior.basis.T @ covariance @ mean
    slope = np.divide(
        with_mean,
        posterior.variance,
        out=np.zeros_like(with_mean),
        where=posterior.variance > 0,
    )
    residual = math.sqrt(max(float(mean @ covariance @ mean - slope @ with_mean), 0.0))
    return slope, residual


def reach_of_best(
    errors: FloatArray, variance: FloatArray, confidence_level: float, others: int = 0
) -> tuple[float, float]:
    """Return two normal quantiles for the interval of a run that was selected by its value.

    The first quantile is one-sided and accounts for the selection of the largest value; the second
    quantile is two-sided.

    The run with the largest of R values has the interval ``[value - c · se, value + z · se]``,
    where c is the first quantile and z the ordinary quantile. The error of the run with the largest
    value is at most the largest of all R errors, and selecting the largest value cannot decrease
    the error (after Fuentes, Casella and Wells 2018). For a run that was selected by a different
    rule, both ends use the second quantile.

    ``errors``, of shape (n_draws, R): drawn errors of the runs.
    ``variance``, of shape (R,): variance of each run's error.
    ``others``: number of further runs from which the run was selected and whose errors are unknown.
    The unknown errors are treated as independent, which gives the largest quantile unless errors
    are negatively correlated (Šidák; Slepian).
    """
    has_error = variance > SAME * variance.max(initial=0)  # Ignore rounding.
    largest = np.zeros((2, 0))
    if has_error.any():
        ratio = errors / np.where(has_error, np.sqrt(variance), np.inf)
        largest = np.stack([ratio.max(axis=1), -ratio.min(axis=1)])
    alpha = 1 - confidence_level
    return (
        _reach_of_largest(largest[0], 1 - alpha / 2, others, sides=1),
        _reach_of_largest(largest.max(axis=0), 1 - alpha, others, sides=2),
    )


def _reach_of_largest(largest: FloatArray, level: float, others: int, sides: int) -> float:
    """Return the quantile of the largest error among drawn and ``others`` independent errors.

    ``largest``: the largest error of each draw, divided by its standard error, as an absolute
    value if ``sides`` is 2.
    """
    # The quantile must be at least the quantile for a single run together with the other runs.
    quantile = float(ndtri(1 - (1 - level ** (1 / (1 + others))) / sides))
    if not len(largest):
        return quantile
    ordered = np.sort(largest)
    below_others = np.maximum(1 - sides * ndtr(-ordered), 0.0) ** others
    reached = (np.arange(len(ordered)) + 0.5) / len(ordered) * below_others
    place = min(int(np.searchsorted(reached, level)), len(ordered) - 1)
    return max(quantile, float(ordered[place]))


# -- differences -----------------------------------------------------------------------------------


def pairs(
    values: FloatArray,
    covariance: FloatArray,
    errors: FloatArray,
    confidence_level: float,
    folded: bool = False,
    degrees: FloatArray | None = None,
    known: BoolArray | None = None,
    widest: float = math.inf,
    rows: Paired | None = None,
    row_runs: IntArray | None = None,
) -> Pairs:
    """Return all pairwise differences between runs, and the runs that may be the best.

    The differences have family-wise p-values and simultaneous intervals.

    ``values``, of shape (R,): values of the runs.
    ``covariance``, of shape (R, R): covariance of the errors of the values.
    ``errors``, of shape (n_draws, R): drawn errors; each draw is used with both signs.
    ``folded``: whether values have a sign, so that the value nearest to zero is best. If ``folded``
    is true, a difference is the difference between two distances from zero, which is positive if
    the run in the row is nearer to zero. A difference between distances is significant only if it
    is significant for both relative signs of the two values.
    ``degrees``, of shape (R, R), optional: degrees of freedom of the differences' standard errors;
    by default infinite.
    ``known``, of shape (R,), bool, optional: whether the errors of a run are known. Runs with
    unknown errors neither rule out a run nor are ruled out. By default, the errors of all runs are
    known.
    ``widest``: largest possible difference between two values of the metric.
    ``rows``: paired differences between some runs, signed so that larger values are better. The
    statistics and intervals in ``rows`` are used unchanged.
    ``row_runs``: positions of the runs that ``rows`` compares.

    ``may_be_best`` is computed by multiple comparisons with the best (Hsu 1984, 1996; Edwards and
    Hsu 1983) in two steps, as in moment selection (Romano, Shaikh and Wolf 2014). The first step of
    the test uses a tenth of the error rate. For each run, the first step drops the rivals that
    cannot be better: those whose lead over the run has a simultaneous upper limit below 0. The
    second step of the test uses the rest of the error rate, and compares the largest lead over the
    run with the distribution that this lead would have if all remaining rivals were equal to the
    run. The truly best run is kept with a probability of at least the confidence level. If there
    are two runs, the p-value is the ordinary two-sided p-value; if there are more runs, the p-value
    is at least as large.

    A difference that is computed from few rows, such as the rows of a rare class, is not normally
    distributed. Each statistic, which follows Student's t distribution, is therefore converted to
    the normal statistic with the same tail probability.
    """
    size = len(values)
    signs = np.where(values < 0, 1.0, -1.0) if folded else np.ones(size)
    gain = values * signs
    gain_covariance = covariance * signs * signs[:, None]
    variance = np.diag(gain_covariance)
    difference = gain[:, None] - gain[None, :]
    error = root(variance[:, None] + variance[None, :] - 2 * gain_covariance, variance)
    alike = (error == 0) & (np.abs(difference) <= SAME * np.abs(gain).max(initial=0))
    difference = np.where(alike, 0.0, difference)  # Rounding is not a lead.
    statistic = over(difference, error)
    if folded:
        # The test with the opposite relative sign of the two values must also be significant.
        total = np.abs(gain[:, None]) + np.abs(gain[None, :])
        total_error = root(variance[:, None] + variance[None, :] + 2 * gain_covariance, variance)
        total_statistic = over(np.sign(difference) * total, total_error)
        weaker = np.abs(total_statistic) < np.abs(statistic)
        statistic = np.where(weaker, total_statistic, statistic)
        # The interval must agree with the less significant test, so a larger standard error is
        # used.
        error = np.where(weaker, np.abs(over(difference, np.abs(statistic))), error)
    if degrees is None:
        degrees = np.full_like(error, np.inf)
    statistic = as_normal(statistic, degrees)
    counted = ~alike
    without_interval = alike & ~np.eye(size, dtype=bool)
    if rows is not None and row_runs is not None:
        inside = np.ix_(row_runs, row_runs)
        difference[inside] = rows.difference
        error[inside] = rows.error
        # A difference with an unknown standard error does not count as a lead.
        statistic[inside] = np.where(rows.without_interval, 0.0, rows.statistic)
        without_interval[inside] = rows.without_interval
        # Shares have an interval around 0 if no row differs; for other metrics, runs that are alike
        # count as one.
        has_interval = ~(rows.without_interval | np.eye(len(row_runs), dtype=bool))
        counted[inside] = has_interval | ~rows.alike

    def upper_ends(quantile: FloatArray | float, places: IntArray) -> FloatArray:
        """Return the upper ends of the differences of the runs at ``places`` from all runs.

        The lower end for a pair of runs is minus the upper end for the same pair in reverse order.
        """
        quantiles = np.broadcast_to(quantile, error.shape)[places]
        reach = students(quantiles, degrees[places]) * error[places]
        high: FloatArray = cut(difference[places], reach, (0.0, widest))[1]
        if rows is not None and row_runs is not None:
            is_row = np.isin(places, row_runs)
            inside = np.ix_(is_row, row_runs)
            of_rows = np.searchsorted(row_runs, places[is_row])
            high[inside] = rows.upper(quantiles[inside], of_rows)
        return high

    both_known = np.ones(error.shape, dtype=bool)
    if known is not None:
        both_known = known[:, None] & known
    steps = _two_steps(errors * signs, error, statistic, both_known, confidence_level)
    upper = np.triu_indices(size, 1)
    height = np.abs(statistic[upper])
    single = 2 * ndtr(-height)
    if size == 2:  # A single pair needs no draws.
        reach = normal_quantile(confidence_level)
        adjusted = single
    else:
        reach = float(np.quantile(steps.largest, confidence_level)) if size > 1 else 0.0
        n_draws = len(steps.largest)
        n_reached = n_draws - np.searchsorted(np.sort(steps.largest), height, side="left")
        adjusted = np.where(height == 0, 1.0, (1 + n_reached) / (1 + n_draws))
    tied = steps.pvalue > 1 - confidence_level
    # Only runs that may be the best are compared with all others.
    places = np.flatnonzero(tied)
    best_low, best_high = _from_best(
        upper_ends(steps.quantile, places), counted & both_known, places
    )
    rival_gains = np.where(counted, gain, -np.inf)
    return Pairs(
        difference=difference,
        standard_error=error,
        statistic=statistic,
        pvalue=_square(single, upper, size),
        holm=_square(holm(single), upper, size),
        max_t=_square(np.maximum(adjusted, single), upper, size),
        reach=reach,
        upper_ends=upper_ends,
        without_interval=without_interval,
        rival=np.where(counted.any(axis=1), rival_gains.argmax(axis=1), np.arange(size)),
        may_be_best=steps.pvalue,
        tied=tied,
        critical=steps.critical,
        best_low=best_low,
        best_high=best_high,
    )


@dataclass(frozen=True, eq=False)
class _Steps:
    """Result of the two-step test for R runs.

    ``pvalue``, of shape (R,): p-value of each run.
    ``critical``, of shape (R,): critical value of the largest lead over each run; NaN if no draw
    reaches the lead over the run.
    ``quantile``, of shape (R, R): quantile of the lead of each rival (column) over each run (row).
    ``largest``, of shape (n_draws,): the largest |t| of all pairs in each draw.
    """

    pvalue: FloatArray
    critical: FloatArray
    quantile: FloatArray
    largest: FloatArray


def _two_steps(
    errors: FloatArray,
    error: FloatArray,
    statistic: FloatArray,
    both_known: BoolArray,
    confidence_level: float,
) -> _Steps:
    """Test each run against the rivals that remain after the first step."""
    size = len(error)
    least = normal_quantile(confidence_level)
    alpha = 1 - confidence_level
    # The first step of the test uses a tenth of the error rate. With a single pair, it has no
    # rivals to drop.
    first_alpha = alpha / 10 if size > 2 else 0.0
    n_leads = 2 * len(errors)
    # Number of leads that reach the critical value, and the limit of the first step.
    n_critical = max(int((alpha - first_alpha) * (1 + n_leads)), 1)
    n_bound = n_leads + 1 - min(int(np.ceil((1 - alpha / 10) * n_leads)), n_leads)
    drawn = _DrawnLeads.of(errors, np.where(both_known, error, 0.0))
    pvalue = np.zeros(size)
    critical = np.full(size, least)
    quantile = np.full(error.shape, least)
    rival_statistics = np.where(both_known & ~np.eye(size, dtype=bool), statistic, -np.inf)
    lead_over = rival_statistics.max(axis=0, initial=-np.inf)
    largest = drawn.largest_by_extremes()
    for i in range(size if size > 2 else 0):
        rivals = drawn.scale[i] > 0
        if not rivals.any():  # Nothing is uncertain: any lead over the run is real.
            continue
        limits = drawn.limits(i)
        above = np.flatnonzero(limits > largest)
        largest[above] = np.maximum(largest[above], drawn.leads(i, rivals, above).max(axis=0))
        pvalue[i] = first_alpha + 1 / (1 + n_leads)
        reaching = np.flatnonzero(limits >= lead_over[i])
        if not len(reaching):
            critical[i] = math.nan
            continue
        bound = max(drawn.nth_largest(i, rivals, limits, n_bound), least)
        near = rivals & (statistic[:, i] + bound > 0)
        critical[i] = max(drawn.nth_largest(i, near, limits, n_critical), least)
        quantile[i] = np.where(near, critical[i], bound)
        n_reached = (drawn.leads(i, near, reaching) >= lead_over[i]).sum()
        pvalue[i] += n_reached / (1 + n_leads)
    plain = 2 * ndtr(-np.maximum(lead_over, 0.0))
    pvalue = np.where(lead_over > 0, np.maximum(pvalue, plain), 1.0)
    return _Steps(pvalue, critical, quantile, largest.astype(np.float64))


@dataclass(frozen=True, eq=False)
class _DrawnLeads:
    """Leads between R runs in draws of their errors; each draw is used with both signs.

    A lead is a difference of errors, divided by its standard error. Most leads are not computed:
    :meth:`limits` are inexpensive upper limits of all leads over a run, and they show in which
    draws a lead can be large.

    ``by_draw``, of shape (n_draws, R): drawn errors of each run.
    ``scale``, of shape (R, R): inverse standard error of each difference; 0 for pairs that are not
    compared.
    ``highest``, ``lowest``, of shape (n_draws,): largest and smallest error of each draw.
    """

    by_draw: Any
    scale: Any
    highest: Any
    lowest: Any

    @classmethod
    def of(cls, errors: FloatArray, error: FloatArray) -> _DrawnLeads:
        """Return the leads for drawn errors (n_draws, R) and standard errors (R, R)."""
        # Single precision halves the amount of memory to read, and it is sufficient here.
        by_draw: Any = errors.astype(np.float32)
        scale = np.divide(1, error, out=np.zeros_like(error), where=error > 0).astype(np.float32)
        is_compared = scale.any(axis=1)
        highest = by_draw.max(axis=1, where=is_compared, initial=-np.inf)
        lowest = by_draw.min(axis=1, where=is_compared, initial=np.inf)
        return cls(by_draw, scale, highest, lowest)

    def limits(self, i: int) -> Any:
        """Return a number that no lead over run i exceeds, with either sign, for each draw."""
        scale = self.scale[i]
        # Similar runs have a small standard error. Their leads are computed, so that they do not
        # increase the limit of all other leads.
        is_close = scale > 1.25 * np.median(scale)
        own = self.by_draw[:, i]
        reach = np.maximum(self.highest - own, own - self.lowest)
        limits = reach * scale.max(where=~is_close, initial=0)
        for j in np.flatnonzero(is_close).tolist():
            limits = np.maximum(limits, np.abs(self.by_draw[:, j] - own) * scale[j])
        return limits

    def leads(self, i: int, rivals: BoolArray, draws: Any) -> Any:
        """Return the largest lead of rivals over run i, shape (2, number of draws).

        The two rows are the leads in the draws and in the draws with the opposite sign. A negative
        lead counts as 0.
        """
        largest = np.zeros((2, len(draws)), dtype=self.by_draw.dtype)
        places = np.flatnonzero(rivals)
        if not len(places):
            return largest
        # Runs between the rivals get a scale of 0, because a slice is faster than an index.
        between = slice(int(places[0]), int(places[-1]) + 1)
        scale = (self.scale[i] * rivals)[between]
        for part in row_blocks(len(draws), len(scale)):
            lead = self.by_draw[draws[part], between]
            if len(scale) < _FEW_RUNS:
                # Reductions over few columns are fast only if each column is contiguous.
                lead = np.asfortranarray(lead)
            lead -= self.by_draw[draws[part], i, None]
            lead *= scale
            largest[0, part] = lead.max(axis=1)
            largest[1, part] = -lead.min(axis=1)
        return largest

    def nth_largest(self, i: int, rivals: BoolArray, limits: Any, n: int) -> float:
        """Return the n-th largest lead of rivals over run i among all draws with both signs.

        ``limits``: from :meth:`limits`.
        """
        every = np.arange(len(limits))
        if n < len(limits):
            # The n-th largest lead in a few draws is not larger than the result, so only draws
            # whose limits reach it matter.
            few = np.argpartition(limits, -n)[-n:]
            every = np.flatnonzero(limits >= _nth_largest(self.leads(i, rivals, few), n))
        return _nth_largest(self.leads(i, rivals, every), n)

    def largest_by_extremes(self) -> Any:
        """Return, for each draw, the largest |t| of the runs with the extreme errors.

        The shape is (n_draws,). The result is a lower limit of the largest |t| of all pairs.
        """
        largest = np.zeros(len(self.by_draw), dtype=self.by_draw.dtype)
        for extreme in (self.by_draw.argmax(axis=1), self.by_draw.argmin(axis=1)):
            for run in np.unique(extreme).tolist():
                draws = np.flatnonzero(extreme == run)
                leads = self.leads(run, self.scale[run] > 0, draws).max(axis=0)
                largest[draws] = np.maximum(largest[draws], leads)
        return largest


def _nth_largest(numbers: Any, n: int) -> float:
    """Return the n-th largest of an array of numbers."""
    return float(np.partition(numbers, -n, axis=None)[-n])


def _from_best(
    high: FloatArray, counted: BoolArray, places: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return the interval of each run's value minus the best other value (Hsu 1984).

    ``high``, of shape (S, R): upper ends of the intervals of the differences between the runs that
    may be the best and all runs.
    ``counted``, of shape (R, R): whether each difference is taken into account.
    ``places``, of shape (S,): the runs that may be the best.
    """
    tiny = np.finfo(float).tiny  # The end must be 0 only if a run is ruled out.
    best_high = np.zeros(len(counted))
    ends = np.where(counted[places], high, np.inf).min(axis=1)
    best_high[places] = np.maximum(ends, tiny)
    low = np.where(counted[places], np.minimum(-high, -tiny), np.inf).min(axis=0, initial=np.inf)
    alone = ~counted.any(axis=1)
    best_low = np.where(alone | np.isinf(low), 0.0, low)
    return best_low, np.where(alone, 0.0, best_high)


def _square(values: FloatArray, upper: tuple[IntArray, IntArray], size: int) -> FloatArray:
    """Return the values of all pairs as a symmetric matrix with 1 on the diagonal."""
    full = np.ones((size, size))
    full[upper] = values
    full.T[upper] = values
    return full
