"""The first four moments of the scores in each class, as arguments of metrics.

The influence of a row on a smooth function of counts, means and sums of squares by class is a
quadratic function of the row's score. The coefficients of this quadratic function depend on the
row's class and follow from the derivatives of the smooth function. The variance of the quadratic
function is computed exactly from the moments, and its values are computed from the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from cmtrack.metrics.metric import Metric
from cmtrack.metrics.samples import Samples, gradient
from cmtrack.statistics import ScoreMoments
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.views import EvaluationViews


class TwoClasses(NamedTuple):
    """Moments of a score in two classes, as numbers, or as arrays of shape (K,) for K scores.

    Metrics that are computed from moments take this class as their argument.

    ``labels_variance``: sum of s (1 - s) over all rows.
    ``inflation0``, ``inflation1``: n / (n - 1) for each class, with the effective number of rows n.
        If n is below 2, the number is NaN. Derivatives treat these numbers as constants.
    """

    n0: Any
    n1: Any
    mean0: Any
    mean1: Any
    m20: Any
    m21: Any
    labels_variance: Any
    inflation0: Any
    inflation1: Any

    @property
    def n(self) -> Any:
        """Number of rows in both classes together."""
        return self.n0 + self.n1

    @property
    def gap(self) -> Any:
        """The mean score of the positive rows, minus the mean score of the negative rows."""
        return self.mean1 - self.mean0

    @property
    def score_sum(self) -> Any:
        """Sum of all scores."""
        return self.n0 * self.mean0 + self.n1 * self.mean1

    @property
    def variances(self) -> tuple[Any, Any]:
        """Unbiased variances of the score among the negative rows and among the positive rows."""
        return self.m20 / self.n0 * self.inflation0, self.m21 / self.n1 * self.inflation1


@dataclass(frozen=True, eq=False)
class Sides:
    """Moments of a score in two classes, shape (2,), or of K scores, shape (2, K).

    The two classes may be different for each of the K scores.
    """

    n: FloatArray
    mean: FloatArray
    m2: FloatArray
    m3: FloatArray
    m4: FloatArray

    @classmethod
    def of_score(cls, moments: ScoreMoments) -> Sides:
        """Return the moments of one score among the negative rows and among the positive rows."""
        if moments.mean.shape != (2, 1):
            shape = moments.mean.shape
            raise ValueError(f"two classes and one score are needed, got shape {shape}")
        return cls.of_classes(moments)

    @classmethod
    def of_classes(cls, moments: ScoreMoments) -> Sides:
        """Return the moments of one score in C classes, as arrays of shape (C,)."""
        powers = (moments.rows(name)[:, 0] for name in ("mean", "m2", "m3", "m4"))
        return cls(moments.n.astype(np.float64), *powers)

    @classmethod
    def one_vs_rest(cls, moments: ScoreMoments) -> Sides:
        """Return the moments of each class's score, in the class and in all other classes together.

        The first row of each array is for the other classes, and the second row for the class.
        """
        powers = map(moments.diagonal, ("mean", "m2", "m3", "m4"))
        n = moments.n.astype(np.float64)
        return cls(*map(np.stack, zip(moments.others(), (n, *powers), strict=True)))

    @classmethod
    def of_pairs(cls, moments: ScoreMoments, own: IntArray, other: IntArray) -> Sides:
        """Return the moments of P scores in pairs of classes, as arrays of shape (2, P).

        The scores are those of the classes ``own``. The first row of each array contains the
        moments among rows of the classes ``other``, and the second row among rows of the classes
        ``own``.
        """
        classes = np.stack((other, own))
        # If there are many classes, the arrays of moments contain rows only for classes with data.
        rows = np.searchsorted(moments.classes, classes)
        powers = [getattr(moments, name)[rows, own] for name in ("mean", "m2", "m3", "m4")]
        return cls(moments.n[classes].astype(np.float64), *powers)

    def take(self, scores: IntArray) -> Sides:
        """Select some of the scores, and return their moments."""
        return Sides(*(part[:, scores] for part in vars(self).values()))

    def mixed(self, part: Any) -> Sides:
        """Return the moments after adding a ``part`` of all rows, once as is and once flipped."""
        sides = []
        for factor, order in ((1 + part, slice(None)), (part, slice(None, None, -1))):
            powers = [power[order] * factor for power in (self.m2, self.m3, self.m4)]
            sides.append((self.n[order] * factor, self.mean[order], *powers))
        (n, mean, *_), (added, other_mean, *_) = sides
        total = n + added
        sums = n * mean + added * other_mean
        centre = np.divide(sums, total, out=np.zeros_like(total), where=total > 0)
        moments = np.zeros((3, *total.shape))
        for count, side_mean, m2, m3, m4 in sides:
            d = side_mean - centre
            moments += (
                m2 + count * d**2,
                m3 + 3 * d * m2 + count * d**3,
                m4 + 4 * d * m3 + 6 * d**2 * m2 + count * d**4,
            )
        return Sides(total, centre, *moments)

    @classmethod
    def of_means(cls, moments: ScoreMoments, positive: BoolArray) -> Sides:
        """Return the mean of the summed scores of the positive classes, in both groups of classes.

        The higher moments of the sum are unknown.
        """
        sums = np.zeros(len(positive))
        sums[moments.classes] = moments.n[moments.classes] * moments.mean[:, positive].sum(axis=1)
        sides = np.stack((~positive, positive)).astype(np.float64)
        n = sides @ moments.n
        mean = np.divide(sides @ sums, n, out=np.zeros(2), where=n > 0)
        return cls(n, mean, *np.full((3, 2), np.nan))


class ScoreSamples(Samples):
    """Rows described by one score and two classes, for functions of :class:`TwoClasses`.

    ``labels_variance``: sum of s (1 - s) over all rows.
    """

    kinds: ClassVar[tuple[str, ...]] = ("spread", "moments", "means")

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> ScoreSamples | None:
        statistics = views.statistics
        two_groups = views.step
        if kind == "spread":
            moments = statistics.counted("score_moments")
            if moments is None or two_groups is None:
                return None
            return cls(moments.map(Sides.of_score), statistics.labels_variance or 0.0)
        spread = views.seen(cls)
        if kind == "moments":
            # Metrics that are computed from moments also need counted scores, like all other
            # metrics of their section.
            if statistics.scores is None:
                return None
            return spread
        means = statistics.counted("moments")
        if spread is not None or two_groups is None or means is None:
            return spread
        return cls(means.map(partial(Sides.of_means, positive=two_groups.in_positive)))

    def __init__(self, sides: Counted[Sides], labels_variance: float = np.nan) -> None:
        self.counted = sides
        self.sides = sides.sums
        self.squares = sides.squares
        self.labels_variance = labels_variance
        self.total = self.sides.n.sum(axis=0)
        self.fractional = sides.fractional
        size = sides.map(lambda part: part.n).effective_size()
        with np.errstate(all="ignore"):
            self._inflation = np.where(size > 1 + 1e-9, size / (size - 1), np.nan)

    def argument(self) -> TwoClasses:
        n0, n1 = self.sides.n
        mean0, mean1 = self.sides.mean
        m20, m21 = self.sides.m2
        return TwoClasses(n0, n1, mean0, mean1, m20, m21, self.labels_variance, *self._inflation)

    def effective(self, denominator: None) -> Any:
        return self.total**2 / self.squares.n.sum(axis=0)

    def informing(self, metric: Metric) -> Any:
        """Return the effective number of rows, or :attr:`equal_sides` for a correlation."""
        return self.equal_sides if metric.interval == "atanh" else self.effective(None)

    @property
    def equal_sides(self) -> Any:
        """Number of rows that two sides of equal size need to contain the same information."""
        with np.errstate(all="ignore"):
            n0, n1 = self.sides.n**2 / self.squares.n
            return 4 * n0 * n1 / (n0 + n1)

    def with_flipped(self, size: Any) -> ScoreSamples:
        part = size / self.effective(None) / 2
        mixed = self.counted.map(lambda sides: sides.mixed(part))
        return ScoreSamples(mixed, self.labels_variance)

    def influence(self, metric: Metric) -> FloatArray:
        """Return the coefficients of (1, d, d^2), in which d is a score minus the mean of its side.

        The array has the shape (3, 2), or (3, 2, K) for K scores.
        """
        return self.quadratic(metric.value_function)

    def quadratic(self, function: Any) -> FloatArray:
        """Return the influence on a function of :class:`TwoClasses`; see :meth:`influence`."""
        s = self.sides
        # Derivatives are computed with respect to the first seven fields of TwoClasses. The
        # remaining fields are the inflations.
        slopes = gradient(function, self.argument(), 7)
        by_n = slopes[:2]
        by_mean = slopes[2:4]
        by_m2 = slopes[4:6]
        by_labels = slopes[6]
        with np.errstate(all="ignore"):
            constant = by_n + by_labels * s.mean * (1 - s.mean)
            linear = np.where(s.n > 0, by_mean / s.n, 0.0) + by_labels * (1 - 2 * s.mean)
            # If a side has no variance, none of its rows deviates from the mean.
            square = np.where(s.m2 == 0, 0.0, by_m2 - by_labels)
            average = (s.n * constant + np.nan_to_num(s.m2) * square).sum(axis=0) / self.total
        return self.total * np.stack((constant - average, linear, square))

    def standard_error(self, influence: FloatArray) -> Any:
        return quadratic_error(influence, self.counted) / self.total

    def within(
        self, influence: FloatArray, strata: IntArray
    ) -> tuple[FloatArray, FloatArray] | None:
        if self.sides.n.ndim > 1 and len(np.unique(strata)) < len(strata):
            return None  # Strata with several classes are coarser than a class against the rest.
        n = self.sides.n
        m2 = self.sides.m2
        variance = np.divide(m2, n, out=np.zeros_like(m2), where=n > 0)
        # If there is no quadratic term, the variance does not matter and may be unknown.
        means = influence[0] + np.where(influence[2] == 0, 0.0, influence[2] * variance)
        centred = influence.copy()
        centred[0] -= means
        return centred, means

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        influence = metric.influence_in(self)
        if influence is None:
            return None
        mean = self.sides.mean
        if k is not None:
            influence = influence[..., k]
            mean = mean[:, k]
        constant, linear, square = influence
        positive, score = at.score(k)
        deviation = score - mean[positive]
        psi = constant[positive] + linear[positive] * deviation + square[positive] * deviation**2
        # A correlation has no derivative at a constant score.
        if np.isnan(psi).all():
            return None
        return psi


def quadratic_error(coefficients: FloatArray, moments: Counted[Sides]) -> Any:
    """Return the square root of the sum over all rows of (weight × quadratic function)^2.

    ``coefficients``, shape (3, C, ...): coefficients of (1, d, d^2) by class, in which d is a score
        minus the mean of its class.
    """
    squares = moments.squares
    n = squares.n
    m2 = squares.m2
    m3 = squares.m3
    m4 = squares.m4
    shift = np.zeros_like(squares.mean)
    if moments.fractional:
        # The moments with squared weights are centred at the mean with squared weights. The
        # quadratic functions are centred at the mean with plain weights.
        shift = np.where(n > 0, squares.mean - moments.sums.mean, 0.0)
        m4 = m4 + 4 * shift * m3 + 6 * shift**2 * m2 + n * shift**4
        m3 = m3 + 3 * shift * m2 + n * shift**3
        m2 = m2 + n * shift**2
    a, b, c = np.where(n > 0, coefficients, 0.0)
    total = a * a * n + 2 * a * b * n * shift
    for factor, moment in ((b * b + 2 * a * c, m2), (2 * b * c, m3), (c * c, m4)):
        # If only the means are known, all other moments are NaN.
        total = total + np.where(factor == 0, 0.0, factor * moment)
    return np.sqrt(np.maximum(total.sum(axis=0), 0.0))
