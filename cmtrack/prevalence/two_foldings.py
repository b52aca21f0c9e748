"""Two cross-fitted moment matches in one: a steady one that flatters itself, and an honest one that scatters more.

Folds that take the labelled samples in turn share their noise, so that the ratio of one fits the other too well: the
classes look farther apart than they are, and the estimate is pulled towards one half. That costs little where the
prevalence is neither rare nor nearly 1, and multiplies rare ones. Folds at random are free of it, and scatter more
where labelled samples are few. How far the two disagree says which matters here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cmtrack.metrics.intervals import Interval
from cmtrack.prevalence.mixture import Variance
from cmtrack.prevalence.moment_match import MomentMatch
from cmtrack.statistics.inputs import FloatArray


@dataclass(frozen=True, eq=False)
class TwoFoldings:
    """The same target and labelled samples, matched by folds in turn and by folds at random."""

    in_turn: MomentMatch
    at_random: MomentMatch

    @cached_property
    def estimates(self) -> tuple[float, float]:
        """By folds in turn, and at random."""
        return self.in_turn.solve(), self.at_random.solve()

    @cached_property
    def weight(self) -> float:
        """Of the estimate by folds in turn: its variance over variance plus squared disagreement."""
        steady, honest = self.estimates
        variance = self.in_turn.variance(steady).total
        if not np.isfinite(variance) or steady == honest:
            return 1.0
        return variance / (variance + (steady - honest) ** 2)

    @property
    def densities(self) -> tuple[FloatArray, FloatArray]:
        """Class densities (positives, negatives) by cell."""
        return self.in_turn.densities

    def solve(self) -> float:
        """The weighted mean of both estimates."""
        steady, honest = self.estimates
        return self.weight * steady + (1 - self.weight) * honest

    def variance(self, prevalence: float) -> Variance:
        """Weighted mean of both variances, and their disagreement, which the labelled samples cause."""
        steady, honest = (match.variance(prevalence) for match in (self.in_turn, self.at_random))
        if not np.isfinite(steady.total + honest.total):
            return Variance(np.inf, np.inf, np.inf, 0.0)
        w = self.weight
        target, positives, negatives = (
            w * getattr(steady, part) + (1 - w) * getattr(honest, part) for part in ("target", "positives", "negatives")
        )
        between = w * (1 - w) * (self.estimates[0] - self.estimates[1]) ** 2
        labelled = positives + negatives
        share = positives / labelled if labelled > 0 else 0.5
        return Variance(target, positives + share * between, negatives + (1 - share) * between, steady.information)

    def deviance(self, grid: FloatArray, kind: str = "adjusted") -> FloatArray:
        """The smaller of the two quasi-deviances, 0 between the two estimates: what either allows is allowed."""
        low, high = sorted(self.estimates)
        pair = zip((self.in_turn, self.at_random), self.estimates, strict=True)
        smaller = np.minimum(*(match.deviance(estimate, grid, kind) for match, estimate in pair))
        return np.where((low <= grid) & (grid <= high), 0.0, smaller)

    def interval(self, kind: str, confidence_level: float) -> Interval:
        """From the lower of the two lower ends to the upper of the two upper ones."""
        return _hull(
            self.in_turn.interval(kind, self.estimates[0], confidence_level),
            self.at_random.interval(kind, self.estimates[1], confidence_level),
        )

    def bootstrap(self, confidence_level: float) -> Interval:
        """As :meth:`interval`, by percentiles of multinomial resamples."""
        return _hull(
            self.in_turn.bootstrap(self.estimates[0], confidence_level),
            self.at_random.bootstrap(self.estimates[1], confidence_level),
        )


def _hull(one: Interval, other: Interval) -> Interval:
    return min(one[0], other[0]), max(one[1], other[1])
