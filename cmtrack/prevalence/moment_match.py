"""Prevalence by matching a moment of the scores: consistent for any density ratio, best for the right one.

For a function h of the score, mean_target h = pi mean_positives h + (1-pi) mean_negatives h whatever the
densities are. With density ratio r and sizes n, m1, m0 the h of least variance is

    h = (r - 1) / ((pi r + 1 - pi)/n + pi^2 r/m1 + (1-pi)^2/m0),

generalised least squares over the cells: it discounts cells where any of the three samples is noisy. Known
densities (m1, m0 large) give the likelihood score. An error of the ratio costs variance, not bias, so the
ratio's own error does not enter the variance to first order, and one interval serves every density model.
Relatives: PACC (Bella et al. 2010), h = the posterior; method of moments, Hansen (1982).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cmtrack.metrics.intervals import Interval
from cmtrack.prevalence.mixture import Variance, deviance_limit
from cmtrack.statistics.inputs import FloatArray

_CLIP = 30.0
_POINTS = 161


@dataclass(frozen=True, eq=False)
class MomentMatch:
    """Three count vectors over cells, and the log density ratio of each cell.

    With several folds every labelled sample is weighed by the h that was fitted without it, and the target by
    the mean of all h (cross-fitting): h that has seen a sample flatters it, which would bias small shares upwards.

    Attributes
    ----------
    log_ratio : ndarray of shape (F, B)
        By fold that was left out of the fit.
    target : ndarray of shape (B,)
        Shares of target samples.
    positives, negatives : ndarray of shape (F, B)
        Shares of labelled samples of each class, by fold; each sums to 1.
    sizes : (n, m1, m0)
        (Effective) numbers of samples.
    """

    log_ratio: FloatArray
    target: FloatArray
    positives: FloatArray
    negatives: FloatArray
    sizes: tuple[float, float, float]

    @cached_property
    def odds(self) -> FloatArray:
        """The density ratio, shape (F, B)."""
        out: FloatArray = np.exp(np.clip(self.log_ratio, -_CLIP, _CLIP))
        return out

    @cached_property
    def densities(self) -> tuple[FloatArray, FloatArray]:
        """Class densities (positives, negatives) that have the ratio and the labelled scores' pooled mass."""
        chance = (self.odds / (1 + self.odds)).mean(axis=0)
        mass = (self.positives.sum(axis=0) + self.negatives.sum(axis=0)) / 2
        p, q = mass * chance, mass * (1 - chance)
        return p / p.sum(), q / q.sum()

    def weights(self, prevalence: FloatArray) -> FloatArray:
        """n h at each prevalence, shape (len(prevalence), F, B)."""
        n, m1, m0 = self.sizes
        pi = prevalence[:, None, None]
        h: FloatArray = (self.odds - 1) / ((pi + pi**2 * n / m1) * self.odds + (1 - pi) + (1 - pi) ** 2 * n / m0)
        return h

    def equation(self, prevalence: FloatArray) -> FloatArray:
        """mean_target h - pi mean_positives h - (1-pi) mean_negatives h; 0 at the estimate, falling."""
        pi = prevalence[:, None, None]
        gap = self.target / len(self.odds) - pi * self.positives - (1 - pi) * self.negatives
        value: FloatArray = (gap * self.weights(prevalence)).sum(axis=(1, 2))
        return value

    def solve(self) -> float:
        """The root in [0, 1] next to a first estimate; the end of the range where there is none.

        The first estimate takes h at 1/2, which no cell dominates. Near 0 and 1 a few samples of extreme ratio can
        give the equation more roots.
        """
        h = self.weights(np.array([0.5]))[0]
        target, above, below = (float((h * x).sum()) for x in (self.target / len(h), self.positives, self.negatives))
        start = min(max((target - below) / (above - below), 0.0), 1.0) if above > below else 0.5
        rising = self.equation(np.array([start]))[0] > 0
        end = 1.0 if rising else 0.0
        path = start + (end - start) * (np.arange(_POINTS) / (_POINTS - 1)) ** 2
        turned = np.flatnonzero((self.equation(path) > 0) != rising)
        if not len(turned):
            return end
        low, high = sorted((float(path[turned[0] - 1]), float(path[turned[0]])))
        for _ in range(46):
            middle = (low + high) / 2
            low, high = (middle, high) if self.equation(np.array([middle]))[0] > 0 else (low, middle)
        return (low + high) / 2

    def spread(self, prevalence: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Variances of the equation due to (target, positives, negatives), and minus its slope, at each prevalence."""
        n, m1, m0 = self.sizes
        h, pi = self.weights(prevalence), prevalence
        p, q = self.densities
        mean1, own1 = _moments(h, self.positives)
        mean0, own0 = _moments(h, self.negatives)
        average = h.mean(axis=1, keepdims=True)
        v1 = np.maximum(own1, _moments(average, p)[1])
        v0 = np.maximum(own0, _moments(average, q)[1])
        slope = mean1 - mean0
        of_target = pi * v1 + (1 - pi) * v0 + pi * (1 - pi) * slope**2
        return of_target / n, pi**2 * v1 / m1, (1 - pi) ** 2 * v0 / m0, slope

    def variance(self, prevalence: float) -> Variance:
        """Variance of the estimate by source; the information is that of the likelihood."""
        target, positives, negatives, slope = (float(part[0]) for part in self.spread(np.array([prevalence])))
        if not slope > 0:
            return Variance(np.inf, np.inf, np.inf, 0.0)
        p, q = self.densities
        mix = prevalence * p + (1 - prevalence) * q
        information = float(((p - q)[mix > 0] ** 2 / mix[mix > 0]).sum())
        return Variance(target / slope**2, positives / slope**2, negatives / slope**2, information)

    def deviance(self, estimate: float, grid: FloatArray, kind: str = "adjusted") -> FloatArray:
        """Quasi-deviance 2 |integral of slope x equation / variance| from the estimate to each point of an even grid.

        "adjusted" takes the whole variance, "realised" leaves out pi(1-pi)/n, "naive" keeps the target's part only.
        """
        points = np.union1d(grid, [estimate])
        target, positives, negatives, slope = self.spread(points)
        whole = target + positives + negatives
        if kind == "naive":
            whole = target
        elif kind == "realised":
            whole = np.maximum(whole - slope**2 * points * (1 - points) / self.sizes[0], 1e-3 * whole)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(whole > 0, slope * self.equation(points) / whole, 0.0)
        area = np.concatenate(([0.0], np.cumsum((rate[1:] + rate[:-1]) / 2 * np.diff(points))))
        start = np.searchsorted(points, estimate)
        deviance: FloatArray = 2 * (area[start] - area)
        return deviance[np.searchsorted(points, grid)]

    def interval(self, kind: str, estimate: float, confidence_level: float) -> Interval:
        """Ends of the adjusted, realised, naive or score interval."""
        limit = deviance_limit(confidence_level)

        def outside(grid: FloatArray) -> FloatArray:
            if kind == "score":
                target, positives, negatives, _ = self.spread(grid)
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = self.equation(grid) ** 2 / (target + positives + negatives)
                return np.where(np.isfinite(ratio), ratio, 0.0)
            return self.deviance(estimate, grid, kind)

        reach = max(6 * float(np.sqrt(min(self.variance(estimate).total, 1.0))), 1e-6)
        return _end(estimate, 0.0, reach, limit, outside), _end(estimate, 1.0, reach, limit, outside)

    def bootstrap(self, estimate: float, confidence_level: float, replicates: int = 1000) -> Interval:
        """Percentiles over multinomial resamples of the three count vectors (fixed seed), with h as estimated."""
        rng = np.random.default_rng(20230813)
        h = self.weights(np.array([estimate]))[0]

        def resampled(size: float, shares: FloatArray, values: FloatArray) -> FloatArray:
            drawn = rng.multinomial(round(size), shares / shares.sum(), replicates)
            mean: FloatArray = drawn @ values / round(size)
            return mean

        used1, used0 = self.positives > 0, self.negatives > 0
        target = resampled(self.sizes[0], self.target, h.mean(axis=0))
        above = resampled(self.sizes[1], self.positives[used1], h[used1])
        below = resampled(self.sizes[2], self.negatives[used0], h[used0])
        with np.errstate(divide="ignore", invalid="ignore"):
            values = np.where(above > below, (target - below) / (above - below), estimate)
        level = [(1 - confidence_level) / 2, (1 + confidence_level) / 2]
        low, high = np.quantile(np.clip(values, 0.0, 1.0), level)
        return min(float(low), estimate), max(float(high), estimate)


def _moments(h: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = (h * shares).sum(axis=(1, 2))
    return mean, np.maximum((h**2 * shares).sum(axis=(1, 2)) - mean**2, 0.0)


def _end(
    estimate: float, limit_at: float, reach: float, limit: float, outside: Callable[[FloatArray], FloatArray]
) -> float:
    """Where the deviance first passes the limit on the way from the estimate to 0 or 1."""
    while True:
        edge = max(estimate - reach, 0.0) if limit_at == 0.0 else min(estimate + reach, 1.0)
        grid = np.linspace(estimate, edge, _POINTS)
        ascending = grid if edge >= estimate else grid[::-1]
        values = outside(ascending)
        values = values if edge >= estimate else values[::-1]
        beyond = np.flatnonzero(values > limit)
        if len(beyond):
            at = int(beyond[0])
            if at == 0:
                return estimate
            rest = (limit - values[at - 1]) / (values[at] - values[at - 1])
            return float(grid[at - 1] + rest * (grid[at] - grid[at - 1]))
        if edge == limit_at:
            return limit_at
        reach *= 2
