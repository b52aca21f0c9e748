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
    """Normal errors with a covariance, shape (n_draws, R); runs whose difference has no error get equal draws."""
    values, vectors = np.linalg.eigh(covariance)
    # the symmetric one: no sign is left to rounding
    root = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    draws: FloatArray = (
        np.random.default_rng(seed).standard_normal((n_draws, len(covariance))) @ root
    )
    return draws[:, representatives(covariance)]


def representatives(covariance: FloatArray, values: FloatArray | None = None) -> IntArray:
    """The first run with the same errors (and the same value, if values are given) for each run, shape (R,)."""
    variance = np.diag(covariance)
    apart = variance[:, None] + variance[None, :] - 2 * covariance
    same = apart <= SAME * max(float(variance.max(initial=0)), np.finfo(float).tiny)
    if values is not None:
        same &= np.abs(values[:, None] - values) <= SAME * np.abs(values).max(initial=0)
    return np.asarray(same.argmax(axis=1))


def ranks(drawn: FloatArray, confidence_level: float, folded: bool = False) -> Ranks:
    """Ranks over draws of the true values.

    ``drawn``, of shape (n_draws, R): from :func:`posterior_draws`. Runs that are equal in a draw
    get their places by lot.
    ``folded``: nearest to zero is best, not largest.
    """
    if folded:
        drawn = -np.abs(drawn)
    size = drawn.shape[1]
    if len(np.unique(drawn[0])) == size:
        order = np.argsort(-drawn, axis=1)
    else:  # runs of the same values and errors: neither is before the other
        order = np.lexsort((np.random.default_rng(1).random(drawn.shape), -drawn), axis=1)
    place = np.empty_like(order)
    np.put_along_axis(place, order, np.arange(size)[None, :], axis=1)
    flat = np.bincount((np.arange(size) * size + place).ravel(), minlength=size * size)
    distribution = flat.reshape(size, size) / len(drawn)
    below = distribution.cumsum(axis=1)
    tail = (1 - confidence_level) / 2
    return Ranks(
        distribution[:, 0],
        distribution @ np.arange(1, size + 1),
        1 + (below <= tail).sum(axis=1),
        1 + (below < 1 - tail - 1e-12).sum(axis=1),
        distribution,
    )


# -- the posterior of the true values --------------------------------------------------------------------------------

LEAST_FOR_SPREAD = 3
"""Distinct runs from which how far true values spread can be learned at all; of two, the p-value says what there is."""


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
    """The posterior of how far the true values of exchangeable runs spread: N(μ, τ²), with flat μ and flat τ.

    ``values``, ``covariance``, of shape (R,) and (R, R): of distinct runs, at least two.
    ``steps``: of the grid of τ, geometric up to 8 times the errors' root mean square.
    """
    size = len(values)
    raw = np.vstack([np.ones(size), np.eye(size)[:-1]]).T
    contrasts = np.linalg.qr(raw)[0][:, 1:]  # orthonormal, and orthogonal to the mean
    variance, turn = np.linalg.eigh(contrasts.T @ covariance @ contrasts)
    # errors that all runs share leave it
    rounding = size * np.finfo(float).eps * float(np.abs(covariance).max())
    variance = np.where(variance > max(SAME * float(variance.max()), rounding), variance, 0.0)
    basis = contrasts @ turn
    z = basis.T @ values
    most = 8 * math.sqrt(float(variance.mean()))
    if most == 0:  # nothing is uncertain
        return Spread(np.zeros(1), np.ones(1), basis, z, variance)
    least = min(0.02 * most, 0.2 * math.sqrt(float(variance[variance > 0].min())))
    edges = np.concatenate([[0.0], np.geomspace(least, most, steps)])
    tau = (edges[1:] + edges[:-1]) / 2
    total = tau[:, None] ** 2 + variance
    loglik = -0.5 * (np.log(total) + z**2 / total).sum(axis=1) + np.log(np.diff(edges))
    weights = np.exp(loglik - loglik.max())
    return Spread(tau, weights / weights.sum(), basis, z, variance)


def posterior_draws(
    values: FloatArray,
    covariance: FloatArray,
    n_draws: int = N_DRAWS,
    seed: int = 0,
    level: bool = False,
) -> FloatArray | None:
    """Draws of the true values, shape (n_draws, R); None for fewer than three distinct runs.

    Resamples of the rows, or draws of ``N(values, covariance)``, take the leader's luck for merit:
    of equal runs they give it .4 to .5 where one in six is true. The spread of the true values is
    therefore learned from the runs, and the values are shrunk by it.

    ``values``, ``covariance``, of shape (R,) and (R, R).
    ``level``: whether the common level is drawn, too; it moves no rank by size, but ranks by
    distance from zero.
    """
    group = representatives(covariance, values)
    distinct, back = np.unique(group, return_inverse=True)
    if len(values) == 1:
        return np.tile(values, (n_draws, 1))
    if len(distinct) < LEAST_FOR_SPREAD:
        return None
    values, covariance = values[distinct], covariance[np.ix_(distinct, distinct)]
    posterior = spread(values, covariance)
    rng = np.random.default_rng(seed)
    at = np.searchsorted(posterior.weights.cumsum()[:-1], (np.arange(n_draws) + 0.5) / n_draws)
    squares = (posterior.tau**2)[at][:, None]
    total = squares + posterior.variance
    share = np.divide(squares, total, out=np.ones_like(total), where=total > 0)
    noise = rng.standard_normal(total.shape)
    drawn = share * posterior.contrast + np.sqrt(share * posterior.variance) * noise
    out = drawn @ posterior.basis.T
    out += values.mean()
    if level:  # what the contrasts' errors say of the mean's, and what they leave
        mean = np.full(len(values), 1 / len(values))
        with_mean = posterior.basis.T @ covariance @ mean
        slope = np.divide(
            with_mean,
            posterior.variance,
            out=np.zeros_like(with_mean),
            where=posterior.variance > 0,
        )
        residual = math.sqrt(max(float(mean @ covariance @ mean - slope @ with_mean), 0.0))
        out -= ((posterior.contrast - drawn) @ slope + residual * rng.standard_normal(n_draws))[
            :, None
        ]
    return np.asarray(out[:, back])


def reach_of_best(
    errors: FloatArray, variance: FloatArray, confidence_level: float, others: int = 0
) -> tuple[float, float]:
    """Normal quantiles for the interval of a selected run: one-sided against the selection, and two-sided.

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
    has_error = variance > SAME * variance.max(initial=0)  # rounding is no error
    ratio = errors[:, has_error] / np.sqrt(variance[has_error])
    quantiles = []
    for sides in (1, 2):
        level = 1 - (1 - confidence_level) * sides / 2
        # of a single one and the others
        least = float(ndtri(1 - (1 - level ** (1 / (1 + others))) / sides))
        if has_error.any():
            ordered = np.sort((ratio if sides == 1 else np.abs(ratio)).max(axis=1))
            of_others = np.maximum(1 - sides * ndtr(-ordered), 0.0) ** others
            reached = (np.arange(len(ordered)) + 0.5) / len(ordered) * of_others
            least = max(
                least, float(ordered[min(int(np.searchsorted(reached, level)), len(ordered) - 1)])
            )
        quantiles.append(least)
    return quantiles[0], quantiles[1]


# -- differences -----------------------------------------------------------------------------------------------------


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
    """All pairwise differences with family-wise p-values and simultaneous intervals; the runs that may be best.

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
    gain, moved = values * signs, covariance * signs * signs[:, None]
    variance = np.diag(moved)
    difference = gain[:, None] - gain[None, :]
    error = root(variance[:, None] + variance[None, :] - 2 * moved, variance)
    alike = (error == 0) & (np.abs(difference) <= SAME * np.abs(gain).max(initial=0))
    difference = np.where(alike, 0.0, difference)  # rounding is no lead
    statistic = over(difference, error)
    if folded:  # the pair with the other relative sign must say so, too
        total = np.abs(gain[:, None]) + np.abs(gain[None, :])
        other = over(
            np.sign(difference) * total,
            root(variance[:, None] + variance[None, :] + 2 * moved, variance),
        )
        weaker = np.abs(other) < np.abs(statistic)
        statistic = np.where(weaker, other, statistic)
        # the interval says the same
        error = np.where(weaker, np.abs(over(difference, np.abs(statistic))), error)
    degrees = np.full_like(error, np.inf) if degrees is None else degrees
    statistic = as_normal(statistic, degrees)
    counted = ~alike
    without_interval = alike & ~np.eye(size, dtype=bool)
    if rows is not None and row_runs is not None:
        inside = np.ix_(row_runs, row_runs)
        difference[inside] = rows.difference
        error[inside] = rows.error
        # an unknown error is no lead
        statistic[inside] = np.where(rows.without_interval, 0.0, rows.statistic)
        without_interval[inside] = rows.without_interval
        # shares have an interval about 0 if no row differs; other runs that are alike count as one
        counted[inside] = ~(rows.without_interval | np.eye(len(row_runs), dtype=bool)) | ~rows.alike

    def upper_ends(quantile: FloatArray | float) -> FloatArray:
        """Upper ends; the lower ones are minus those of the transposed pair."""
        reach = np.broadcast_to(quantile, error.shape)
        high: FloatArray = cut(difference, students(reach, degrees) * error, (0.0, widest))[1]
        if rows is not None:
            high[inside] = rows.upper(reach[inside])
        return high

    both = np.ones(error.shape, dtype=bool) if known is None else known[:, None] & known
    steps = _two_steps(errors * signs, error, statistic, both, confidence_level)
    upper = np.triu_indices(size, 1)
    height = np.abs(statistic[upper])
    single = 2 * ndtr(-height)
    if size == 2:  # a single pair needs no draws
        reach, adjusted = normal_quantile(confidence_level), single
    else:
        reach = float(np.quantile(steps.largest, confidence_level)) if size > 1 else 0.0
        at_least = len(steps.largest) - np.searchsorted(np.sort(steps.largest), height, side="left")
        adjusted = np.where(height == 0, 1.0, (1 + at_least) / (1 + len(steps.largest)))
    tied = steps.pvalue > 1 - confidence_level
    best_low, best_high = _from_best(upper_ends(steps.quantile), counted & both, tied)
    others = np.where(counted, gain, -np.inf)
    high = np.where(without_interval, np.nan, upper_ends(reach))
    rival = np.where(counted.any(axis=1), others.argmax(axis=1), np.arange(size))
    tests = (single, holm(single), np.maximum(adjusted, single))
    pvalue, by_holm, max_t = (_square(one, upper, size) for one in tests)
    of_pairs = (difference, error, statistic, pvalue, by_holm, max_t, reach, -high.T, high, rival)
    return Pairs(*of_pairs, steps.pvalue, tied, steps.critical, best_low, best_high)


@dataclass(frozen=True, eq=False)
class _Steps:
    """Each run's p-value, critical value and quantile for each rival, and each draw's largest |t|."""

    pvalue: FloatArray
    critical: FloatArray
    quantile: FloatArray
    largest: FloatArray


def _two_steps(
    errors: FloatArray,
    error: FloatArray,
    statistic: FloatArray,
    both: BoolArray,
    confidence_level: float,
) -> _Steps:
    """Two-step test of each run against the rivals that remain after the first step."""
    size, alpha, least = len(error), 1 - confidence_level, normal_quantile(confidence_level)
    first = alpha / 10  # of the error, for the first step
    if size == 2:
        first = 0.0
    draws = 2 * len(errors)
    # place of the critical value among the ordered leads
    reached = draws - max(int((alpha - first) * (1 + draws)), 1)
    held = min(int(np.ceil((1 - alpha / 10) * draws)), draws) - 1
    by_run: Any = np.ascontiguousarray(errors.T, dtype=np.float32)
    largest = np.zeros(len(errors))
    pvalue, critical = np.ones(size), np.full(size, least)
    quantile = np.full(error.shape, least)
    most = np.where(both & ~np.eye(size, dtype=bool), statistic, -np.inf).max(
        axis=0, initial=-np.inf
    )
    for i in range(size if size > 2 else 0):
        rivals = np.flatnonzero((error[i] > 0) & both[i])
        if not len(rivals):
            pvalue[i] = 0.0  # nothing is uncertain
            continue
        leads = _leads(by_run, error[i], i, rivals)
        np.maximum(largest, leads.max(axis=0), out=largest)
        bound = max(float(np.partition(leads.ravel(), held)[held]), least)
        quantile[i] = bound
        near = rivals[statistic[rivals, i] + bound > 0]
        if len(near) < len(rivals):
            leads = _leads(by_run, error[i], i, near)
        critical[i] = max(float(np.partition(leads.ravel(), reached)[reached]), least)
        quantile[i, near] = critical[i]
        pvalue[i] = first + (1 + (leads >= most[i]).sum()) / (1 + draws)
    pvalue = pvalue if size > 2 else np.zeros(size)
    plain = 2 * ndtr(-np.maximum(most, 0.0))
    return _Steps(np.where(most > 0, np.maximum(pvalue, plain), 1.0), critical, quantile, largest)


def _leads(by_run: Any, error: FloatArray, i: int, rivals: IntArray) -> FloatArray:
    """The largest lead of some rivals over run i in each draw, in standard errors, with both signs, (2, n_draws)."""
    largest = np.zeros((2, by_run.shape[1]), dtype=by_run.dtype)  # a lead below 0 is none
    if not len(rivals):
        return largest
    scale = (1 / error[rivals, None]).astype(by_run.dtype)
    for start in range(0, by_run.shape[1], _DRAWS):
        part = slice(start, start + _DRAWS)
        lead = by_run[rivals, part] - by_run[i, part]
        lead *= scale
        largest[0, part] = lead.max(axis=0)
        largest[1, part] = -lead.min(axis=0)
    return largest


_DRAWS = 1000  # at a time: those of many runs stay near the processor


def _from_best(
    high: FloatArray, counted: BoolArray, tied: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of each run's value less the best other one (Hsu 1984), by the upper ends of the differences that count."""
    best_high = np.where(counted, high, np.inf).min(axis=1)
    tiny = np.finfo(float).tiny  # an end is exactly 0 only where a run is ruled out
    best_high = np.where(tied, np.maximum(best_high, tiny), 0.0)
    best_low = np.where(counted & tied, np.minimum(-high.T, -tiny), np.inf).min(axis=1)
    alone = ~counted.any(axis=1)
    return np.where(alone | np.isinf(best_low), 0.0, best_low), np.where(alone, 0.0, best_high)


def _square(values: FloatArray, upper: tuple[IntArray, IntArray], size: int) -> FloatArray:
    full = np.ones((size, size))
    full[upper] = values
    full.T[upper] = values
    return full
