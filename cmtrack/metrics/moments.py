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

from dataclasses import dataclass

import numpy as np

from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.mixture import Variance, deviance_limit
from cmtrack.statistics.inputs import FloatArray

_CLIP = 30.0
_POINTS = 161


@dataclass(frozen=True, eq=False)
class MomentMatch:
    """Three count vectors over cells, and the log density ratio of each cell.

    Attributes
    ----------
    log_ratio : ndarray of shape (B,)
    target, positives, negatives : ndarray of shape (B,) or (R, B)
        Shares of target samples and of labelled samples of each class.
    sizes : (n, m1, m0)
        (Effective) numbers of samples.
    """

    log_ratio: FloatArray
    target: FloatArray
    positives: FloatArray
    negatives: FloatArray
    sizes: tuple[float, float, float]

    @property
    def densities(self) -> tuple[FloatArray, FloatArray]:
        """Class densities (positives, negatives) that have the ratio and the labelled scores' pooled mass."""
        odds = np.exp(np.clip(self.log_ratio, -_CLIP, _CLIP))
        mass = (self.positives + self.negatives) / 2
        p, q = mass * odds / (1 + odds), mass / (1 + odds)
        return p / p.sum(), q / q.sum()

    def weights(self, prevalence: FloatArray) -> FloatArray:
        """The function h at each prevalence (rows), scaled by 1/n."""
        n, m1, m0 = self.sizes
        pi = prevalence[:, None]
        odds = np.exp(np.clip(self.log_ratio, -_CLIP, _CLIP))
        h: FloatArray = (odds - 1) / ((pi + pi**2 * n / m1) * odds + (1 - pi) + (1 - pi) ** 2 * n / m0)
        return h

    def equation(self, prevalence: FloatArray) -> FloatArray:
        """mean_target h - pi mean_positives h - (1-pi) mean_negatives h; 0 at the estimate, falling."""
        pi = prevalence[:, None]
        gap = self.target - pi * self.positives - (1 - pi) * self.negatives
        value: FloatArray = (gap * self.weights(prevalence)).sum(axis=1)
        return value

    def solve(self, rows: int = 1) -> FloatArray:
        """The root in [0, 1], or the end where there is none, by bisection (Regula falsi is no faster here)."""
        low, high = np.zeros(rows), np.ones(rows)
        at_low, at_high = self.equation(low), self.equation(high)
        for _ in range(46):
            middle = (low + high) / 2
            rising = self.equation(middle) > 0
            low, high = np.where(rising, middle, low), np.where(rising, high, middle)
        inside = (low + high) / 2
        return np.where(at_low <= 0, 0.0, np.where(at_high >= 0, 1.0, inside))

    def spread(self, prevalence: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Variances of the equation due to (target, positives, negatives), and minus its slope, at each prevalence."""
        n, m1, m0 = self.sizes
        h, pi = self.weights(prevalence), prevalence
        p, q = self.densities
        own1, own0 = _moments(h, self.positives), _moments(h, self.negatives)
        model1, model0 = _moments(h, p), _moments(h, q)
        v1, v0 = np.maximum(own1[1], model1[1]), np.maximum(own0[1], model0[1])
        slope = own1[0] - own0[0]
        of_target = pi * v1 + (1 - pi) * v0 + pi * (1 - pi) * slope**2
        return of_target / n, pi**2 * v1 / m1, (1 - pi) ** 2 * v0 / m0, slope

    def variance(self, prevalence: float) -> Variance:
        """Variance of the estimate by source."""
        target, positives, negatives, slope = (float(part[0]) for part in self.spread(np.array([prevalence])))
        if not slope > 0:
            return Variance(np.inf, np.inf, np.inf, 0.0)
        square = slope**2
        return Variance(target / square, positives / square, negatives / square, square / (self.sizes[0] * target))

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


def _moments(h: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = h @ shares
    return mean, np.maximum(h**2 @ shares - mean**2, 0.0)


def _end(estimate: float, limit_at: float, reach: float, limit: float, outside: object) -> float:
    """Where the deviance first passes the limit on the way from the estimate to 0 or 1."""
    assert callable(outside)
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
