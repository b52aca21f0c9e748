"""Inference on many runs from their values and the covariance of their errors.

Differences, the runs that may be the best, the probability of each rank, and how far to trust the
value of a selected run. Everything here is NumPy on a vector of R values and an (R, R) covariance;
larger is better. What the statistics are taken from (paired rows, independent samples, several
metrics) does not matter to it.

The draws are seeded: the same values give the same answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from cmtrack.metrics.intervals import holm, normal_quantile
from cmtrack.metrics.paired import SAME, Paired, as_normal, cut, over, root, students
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

N_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class Ranks:
    """Ranks of R runs over draws of their true values.

    ``probability_best``, of shape (R,): share of the draws in which the run is first.
    ``expected``, of shape (R,): mean rank, 1 the best.
    ``low``, ``high``, of shape (R,): interval of the rank.
    ``distribution``, of shape (R, R): ``[run, rank - 1]``: share of the draws; rows and columns sum
    to 1.
    """

    probability_best: FloatArray
    expected: FloatArray
    low: IntArray
    high: IntArray
    distribution: FloatArray


@dataclass(frozen=True, eq=False)
class Pairs:
    """All differences of R runs.

    ``difference``, ``standard_error``, of shape (R, R): row less column.
    ``statistic``, of shape (R, R): the normal statistic of the same p-value as that of the
    difference; infinite where runs differ without any error, 0 where they are the same.
    ``pvalue``, ``holm``, ``max_t``, of shape (R, R): two-sided: unadjusted; adjusted over all pairs
    by Holm (1979); by the largest of all pairs' statistics under equality, which uses how the pairs
    are correlated.
    ``reach``: normal quantile of the simultaneous intervals.
    ``low``, ``high``, of shape (R, R): simultaneous intervals of all differences; NaN where no row
    differs, or no error is known.
    ``rival``, of shape (R,), int64: the best of the other runs that are not the same as each one;
    the run itself where there is none.
    ``may_be_best``, of shape (R,): p-value of "no other run is better".
    ``tied``, of shape (R,), bool: runs of which it is above ``1 - confidence_level``: they may be
    the best, the others are ruled out.
    ``critical``, of shape (R,): lead, in standard errors, of another run from which on a run is
    ruled out.
    ``best_low``, ``best_high``, of shape (R,): intervals of each run's value less the best other
    one, which hold together. The upper end is 0 exactly where a run is ruled out, the lower end of
    a run exactly where it alone may be the best.
    """

    difference: FloatArray
    standard_error: FloatArray
    statistic: FloatArray
    pvalue: FloatArray
    holm: FloatArray
    max_t: FloatArray
    reach: float
    low: FloatArray
    high: FloatArray
    rival: IntArray
    may_be_best: FloatArray
    tied: BoolArray
    critical: FloatArray
    best_low: FloatArray
    best_high: FloatArray


def error_draws(covariance: FloatArray, n_draws: int = N_DRAWS, seed: int = 0) -> FloatArray:
    """Return normal errors with a covariance, shape (n_draws, R).

    Runs whose difference has no error get equal draws.
    """
    values, vectors = np.linalg.eigh(covariance)
    # The symmetric root is unique. Signs of eigenvectors, which rounding decides, do not matter.
    root = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    standard = np.random.default_rng(seed).standard_normal((n_draws, len(covariance)))
    draws: FloatArray = standard @ root
    return draws[:, representatives(covariance)]


def representatives(covariance: FloatArray, values: FloatArray | None = None) -> IntArray:
    """Return for each run the first run with the same errors, shape (R,).

    If values are given, the value must also be the same.
    """
    variance = np.diag(covariance)
    difference = variance[:, None] + variance[None, :] - 2 * covariance
    same = difference <= SAME * max(float(variance.max(initial=0)), np.finfo(float).tiny)
    if values is not None:
        same &= np.abs(values[:, None] - values) <= SAME * np.abs(values).max(initial=0)
    return np.asarray(same.argmax(axis=1))


def ranks(drawn: FloatArray, confidence_level: float, folded: bool = False) -> Ranks:
    """Return the ranks over draws of the true values.

    ``drawn``, of shape (n_draws, R): from :func:`posterior_draws`. Runs that are equal in a draw
    get their places by lot.
    ``folded``: nearest to zero is best, not largest.
    """
    if folded:
        drawn = -np.abs(drawn)
    size = drawn.shape[1]
    if len(np.unique(drawn[0])) == size:
        order = np.argsort(-drawn, axis=1)
    else:
        # Runs of equal values and errors are equal in every draw: neither is before the other.
        lots = np.random.default_rng(1).random(drawn.shape)
        order = np.lexsort((lots, -drawn), axis=1)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(size)[None, :], axis=1)
    cells = np.arange(size) * size + place
    flat = np.bincount(cells.ravel(), minlength=size * size)
    distribution = flat.reshape(size, size) / len(drawn)
    cumulative = distribution.cumsum(axis=1)
    tail = (1 - confidence_level) / 2
    return Ranks(
        probability_best=distribution[:, 0],
        expected=distribution @ np.arange(1, size + 1),
        low=1 + (cumulative <= tail).sum(axis=1),
        # A sum of shares that equals 1 - tail may fall below it by rounding.
        high=1 + (cumulative < 1 - tail - 1e-12).sum(axis=1),
        distribution=distribution,
    )


# -- the posterior of the true values --------------------------------------------------------------

LEAST_FOR_SPREAD = 3
"""Fewest distinct runs that show how far true values spread; of two, the p-value says it."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The posterior of τ, the standard deviation of the runs' true values.

    ``tau``, ``weights``, of shape (T,): a grid and its probabilities.
    ``basis``, of shape (R, R - 1): orthonormal contrasts of the runs whose errors are independent.
    ``contrast``, ``variance``, of shape (R - 1,): the values' contrasts, and the variances of their
    errors.
    """

    tau: FloatArray
    weights: FloatArray
    basis: FloatArray
    contrast: FloatArray
    variance: FloatArray


def spread(values: FloatArray, covariance: FloatArray, steps: int = 200) -> Spread:
    """Return the posterior of the spread τ of the true values of exchangeable runs.

    The true values are N(μ, τ²), with flat priors of μ and τ.

    ``values``, ``covariance``, of shape (R,) and (R, R): of distinct runs, at least two.
    ``steps``: of the grid of τ, geometric up to 8 times the errors' root mean square.
    """
    size = len(values)
    directions = np.vstack([np.ones(size), np.eye(size)[:-1]]).T
    # Without its first column, the mean, the basis is orthonormal and orthogonal to the mean.
    contrasts = np.linalg.qr(directions)[0][:, 1:]
    variance, rotation = np.linalg.eigh(contrasts.T @ covariance @ contrasts)
    # Subtracting the errors that all runs share leaves rounding, which is no variance.
    rounding = size * np.finfo(float).eps * float(np.abs(covariance).max())
    variance = np.where(variance > max(SAME * float(variance.max()), rounding), variance, 0.0)
    basis = contrasts @ rotation
    contrast = basis.T @ values
    largest = 8 * math.sqrt(float(variance.mean()))
    if largest == 0:  # The values have no errors.
        return Spread(np.zeros(1), np.ones(1), basis, contrast, variance)
    smallest = min(0.02 * largest, 0.2 * math.sqrt(float(variance[variance > 0].min())))
    edges = np.concatenate([[0.0], np.geomspace(smallest, largest, steps)])
    tau = (edges[1:] + edges[:-1]) / 2
    total = tau[:, None] ** 2 + variance
    log_likelihood = -0.5 * (np.log(total) + contrast**2 / total).sum(axis=1)
    # A cell of the grid counts by its width, because the prior of τ is flat.
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

    Resamples of the rows, or draws of ``N(values, covariance)``, take the leader's luck for merit:
    of equal runs they give it .4 to .5 where one in six is true. The spread of the true values is
    therefore learned from the runs, and the values are shrunk by it.

    ``values``, ``covariance``, of shape (R,) and (R, R).
    ``level``: whether the common level is drawn, too; it moves no rank by size, but ranks by
    distance from zero.
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
    # Evenly spaced quantiles of τ have less noise than a random sample of it.
    quantiles = (np.arange(n_draws) + 0.5) / n_draws
    cell = np.searchsorted(posterior.weights.cumsum()[:-1], quantiles)
    squares = (posterior.tau**2)[cell][:, None]
    total = squares + posterior.variance
    share = np.divide(squares, total, out=np.ones_like(total), where=total > 0)
    noise = rng.standard_normal(total.shape)
    contrasts = share * posterior.contrast + np.sqrt(share * posterior.variance) * noise
    draws = contrasts @ posterior.basis.T
    draws += values.mean()
    if level:
        noise = rng.standard_normal(n_draws)
        draws -= _mean_errors(posterior, covariance, contrasts, noise)[:, None]
    return np.asarray(draws[:, run_of_distinct])


def _mean_errors(
    posterior: Spread, covariance: FloatArray, contrasts: FloatArray, noise: FloatArray
) -> FloatArray:
    """Return draws of the error of the mean of all values, shape (n_draws,).

    The error of the mean is regressed on the errors of the contrasts, which each draw of the true
    ``contrasts`` implies; ``noise``, standard normal, becomes the residual.
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
    return np.asarray((posterior.contrast - contrasts) @ slope + residual * noise)


def reach_of_best(
    errors: FloatArray, variance: FloatArray, confidence_level: float, others: int = 0
) -> tuple[float, float]:
    """Return two normal quantiles for the interval of a selected run.

    The first is one-sided against the selection, the second two-sided.

    The run of the largest of R values has ``[value - c · se, value + z · se]`` with the first
    quantile for c and the ordinary z: its error is at most the largest of all R errors, and
    selecting a largest value cannot push it down (after Fuentes, Casella and Wells 2018). A run
    that was selected by another rule has the second one at both ends.

    ``errors``, of shape (n_draws, R).
    ``variance``, of shape (R,).
    ``others``: runs that were selected from, too, of which no errors are known; taken as
    independent, which is the most that errors that are not negatively correlated can do (Šidák;
    Slepian).
    """
    has_error = variance > SAME * variance.max(initial=0)  # Rounding is no error.
    ratio = errors[:, has_error] / np.sqrt(variance[has_error])
    alpha = 1 - confidence_level
    return (
        _reach_of_largest(ratio, 1 - alpha / 2, others, sides=1),
        _reach_of_largest(np.abs(ratio), 1 - alpha, others, sides=2),
    )


def _reach_of_largest(ratio: FloatArray, level: float, others: int, sides: int) -> float:
    """Return the quantile of the largest of some errors, drawn ones and independent others.

    ``ratio``: the drawn errors by their standard errors, shape (n_draws, R), without their signs if
    both ``sides`` count.
    """
    # One run must be exceeded in any case, and so must the others.
    quantile = float(ndtri(1 - (1 - level ** (1 / (1 + others))) / sides))
    if ratio.shape[1] == 0:
        return quantile
    ordered = np.sort(ratio.max(axis=1))
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
    """Return all pairwise differences of runs, and the runs that may be the best.

    The differences have family-wise p-values and simultaneous intervals.

    ``values``, ``covariance``, of shape (R,) and (R, R).
    ``errors``, of shape (n_draws, R): each draw counts with both signs.
    ``folded``: the values are signed and nearest to zero is best: the difference is that of the
    distances, larger where the row's run is nearer to zero, and is taken for real only where it is
    for either sign that it may have.
    ``degrees``, of shape (R, R), optional: degrees of freedom of the differences' standard errors;
    infinite without them.
    ``known``, of shape (R,), bool, optional: runs whose errors are known; the others take no part
    in what may be best. By default all.
    ``widest``: the most that two values can differ by.
    ``rows``: the paired differences of some runs, larger is better: their statistics and intervals
    count as they are.
    ``row_runs``: the places of these runs.

    ``may_be_best`` is the rule of multiple comparisons with the best (Hsu 1984, 1996; Edwards and
    Hsu 1983) in two steps, as in moment selection (Romano, Shaikh and Wolf 2014). With a tenth of
    the error first the runs are dropped that are out of the question as rivals of a run: all upper
    bounds of leads over it hold together, and theirs lie below 0. With the rest, the largest lead
    over the run is set against the largest that would be seen if the remaining rivals were equal to
    it. The best run is kept with at least the confidence level. Of two runs the p-value is the
    plain two-sided one, and of more at least that.

    A difference that few rows carry, such as those of a rare class, is not normal. A statistic
    therefore counts as the normal one of the same tail in Student's distribution with its degrees
    of freedom.
    """
    size = len(values)
    signs = np.where(values < 0, 1.0, -1.0) if folded else np.ones(size)
    gain = values * signs
    gain_covariance = covariance * signs * signs[:, None]
    variance = np.diag(gain_covariance)
    difference = gain[:, None] - gain[None, :]
    error = root(variance[:, None] + variance[None, :] - 2 * gain_covariance, variance)
    alike = (error == 0) & (np.abs(difference) <= SAME * np.abs(gain).max(initial=0))
    difference = np.where(alike, 0.0, difference)  # Rounding is no lead.
    statistic = over(difference, error)
    if folded:
        # The test with the other relative sign of the two values must also find the difference.
        total = np.abs(gain[:, None]) + np.abs(gain[None, :])
        total_error = root(variance[:, None] + variance[None, :] + 2 * gain_covariance, variance)
        total_statistic = over(np.sign(difference) * total, total_error)
        weaker = np.abs(total_statistic) < np.abs(statistic)
        statistic = np.where(weaker, total_statistic, statistic)
        # The interval must agree with the weaker test, so its error is widened.
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
        # A difference of unknown error is no lead.
        statistic[inside] = np.where(rows.without_interval, 0.0, rows.statistic)
        without_interval[inside] = rows.without_interval
        # Shares have an interval about 0 if no row differs; other runs that are alike count as one.
        has_interval = ~(rows.without_interval | np.eye(len(row_runs), dtype=bool))
        counted[inside] = has_interval | ~rows.alike

    def upper_ends(quantile: FloatArray | float) -> FloatArray:
        """Return upper ends; the lower ones are minus those of the transposed pair."""
        quantiles = np.broadcast_to(quantile, error.shape)
        high: FloatArray = cut(difference, students(quantiles, degrees) * error, (0.0, widest))[1]
        if rows is not None:
            high[inside] = rows.upper(quantiles[inside])
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
    best_low, best_high = _from_best(upper_ends(steps.quantile), counted & both_known, tied)
    rival_gains = np.where(counted, gain, -np.inf)
    high = np.where(without_interval, np.nan, upper_ends(reach))
    return Pairs(
        difference=difference,
        standard_error=error,
        statistic=statistic,
        pvalue=_square(single, upper, size),
        holm=_square(holm(single), upper, size),
        max_t=_square(np.maximum(adjusted, single), upper, size),
        reach=reach,
        low=-high.T,
        high=high,
        rival=np.where(counted.any(axis=1), rival_gains.argmax(axis=1), np.arange(size)),
        may_be_best=steps.pvalue,
        tied=tied,
        critical=steps.critical,
        best_low=best_low,
        best_high=best_high,
    )


@dataclass(frozen=True, eq=False)
class _Steps:
    """The result of the two steps, for R runs.

    ``pvalue``, ``critical``, of shape (R,): p-value and critical value of each run.
    ``quantile``, of shape (R, R): quantile of each run's lead for each rival.
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
    # The first step spends a tenth of the error. A single pair has no rivals to drop.
    first_alpha = alpha / 10 if size > 2 else 0.0
    n_leads = 2 * len(errors)
    # Places of the critical value and of the bound of the first step among the ordered leads.
    critical_place = n_leads - max(int((alpha - first_alpha) * (1 + n_leads)), 1)
    bound_place = min(int(np.ceil((1 - alpha / 10) * n_leads)), n_leads) - 1
    # Single precision halves the memory that the loop reads, and leads need no more digits.
    by_run: Any = np.ascontiguousarray(errors.T, dtype=np.float32)
    largest = np.zeros(len(errors))
    pvalue = np.zeros(size)
    critical = np.full(size, least)
    quantile = np.full(error.shape, least)
    rival_statistics = np.where(both_known & ~np.eye(size, dtype=bool), statistic, -np.inf)
    lead_over = rival_statistics.max(axis=0, initial=-np.inf)
    for i in range(size if size > 2 else 0):
        rivals = np.flatnonzero((error[i] > 0) & both_known[i])
        if not len(rivals):  # Nothing is uncertain, and a lead over the run is one for certain.
            continue
        leads = _leads(by_run, error[i], i, rivals)
        np.maximum(largest, leads.max(axis=0), out=largest)
        bound = max(float(np.partition(leads.ravel(), bound_place)[bound_place]), least)
        quantile[i] = bound
        near = rivals[statistic[rivals, i] + bound > 0]
        if len(near) < len(rivals):
            leads = _leads(by_run, error[i], i, near)
        reached = np.partition(leads.ravel(), critical_place)[critical_place]
        critical[i] = max(float(reached), least)
        quantile[i, near] = critical[i]
        pvalue[i] = first_alpha + (1 + (leads >= lead_over[i]).sum()) / (1 + n_leads)
    plain = 2 * ndtr(-np.maximum(lead_over, 0.0))
    pvalue = np.where(lead_over > 0, np.maximum(pvalue, plain), 1.0)
    return _Steps(pvalue, critical, quantile, largest)


_DRAWS_AT_ONCE = 1000
"""Draws of a step of the loop in :func:`_leads`: those of many runs fit the processor's cache."""


def _leads(by_run: Any, error: FloatArray, i: int, rivals: IntArray) -> FloatArray:
    """Return the largest lead of some rivals over run i in each draw, shape (2, n_draws).

    Leads are in standard errors. Each draw counts with both signs.
    """
    largest = np.zeros((2, by_run.shape[1]), dtype=by_run.dtype)  # A lead below 0 is none.
    if not len(rivals):
        return largest
    scale = (1 / error[rivals, None]).astype(by_run.dtype)
    for start in range(0, by_run.shape[1], _DRAWS_AT_ONCE):
        part = slice(start, start + _DRAWS_AT_ONCE)
        lead = by_run[rivals, part] - by_run[i, part]
        lead *= scale
        largest[0, part] = lead.max(axis=0)
        largest[1, part] = -lead.min(axis=0)
    return largest


def _from_best(
    high: FloatArray, counted: BoolArray, tied: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of each run's value less the best other one (Hsu 1984).

    ``high``, ``counted``, of shape (R, R): upper ends of all differences, and which of them count.
    """
    best_high = np.where(counted, high, np.inf).min(axis=1)
    tiny = np.finfo(float).tiny  # An end is exactly 0 only if a run is ruled out.
    best_high = np.where(tied, np.maximum(best_high, tiny), 0.0)
    best_low = np.where(counted & tied, np.minimum(-high.T, -tiny), np.inf).min(axis=1)
    alone = ~counted.any(axis=1)
    best_low = np.where(alone | np.isinf(best_low), 0.0, best_low)
    return best_low, np.where(alone, 0.0, best_high)


def _square(values: FloatArray, upper: tuple[IntArray, IntArray], size: int) -> FloatArray:
    """Return the values of all pairs as a symmetric array, with 1 on its diagonal."""
    full = np.ones((size, size))
    full[upper] = values
    full.T[upper] = values
    return full
