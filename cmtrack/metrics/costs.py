"""Costs computed from a confusion matrix, for the section ``cost/``.

An evaluation contains this section if you pass costs. The cost matrix is defined as in Elkan
(2001), except that the actual class determines the row. The relative value ``saved`` follows
Richardson (2000). It does not change if a constant is added to a row of costs. The metric ``bayes``
is the cost of the decisions that the probabilities imply. It is available only if you pass the
costs together with the rows. The interval of a mean cost is a multinomial profile-likelihood
interval. It allows for all possible costs, including costs that did not occur in any row. This
interval is the empirical likelihood interval of Owen (1988), extended to outcomes that were not
observed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from scipy.special import logsumexp

from cmtrack._lazy import cached_property
from cmtrack.metrics.function import Function
from cmtrack.metrics.intervals import Interval, normal_quantile, on_scale
from cmtrack.metrics.metric import Metric, Section
from cmtrack.metrics.samples import Samples
from cmtrack.statistics.counted import Counted
from cmtrack.statistics.counting import Counts
from cmtrack.statistics.decisions import DecisionCounts, decide
from cmtrack.statistics.inputs import BoolArray, FloatArray

if TYPE_CHECKING:
    from cmtrack.metrics.influence import Influence
    from cmtrack.metrics.views import EvaluationViews

_STEPS = 200
"""Largest number of steps for regula falsi, which usually takes 15. If rounding hides a root, all
of these steps are used.
"""


class CostAtShares(NamedTuple):
    """The mean cost for different shares of the actual classes, with Wald's interval.

    The computation assumes that the error rates within each class stay the same, and that only the
    frequencies of the classes change.

    Examples
    --------
    >>> from cmtrack import evaluate
    >>> predicted = ["no", "yes", "yes", "no"] * 25
    >>> priced = evaluate(["no", "yes"] * 50, predicted, costs={("yes", "no"): 100})
    >>> found = priced.cost_at({"no": 0.99, "yes": 0.01})
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (0.995, 0.8, 1.19)
    """

    value: float
    standard_error: float
    low: float
    high: float


class Priced(Samples):
    """The counts and the costs of a full matrix, as the argument of this section's functions.

    The influence is an array of shape (K, K) that contains the influence of a row in each cell.

    ``counts``, shape (K, K): counts with actual classes in rows and predicted classes in columns.
    ``squares``, shape (K, K): sums of squared weights.
    ``costs``, shape (K, K): cost of a row in each cell.
    """

    kinds: ClassVar[tuple[str, ...]] = ("costs",)

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> Priced | None:
        if views.prices is None:
            return None
        return Priced(views.statistics.counts, views.prices)

    def __init__(self, counts: Counted[Counts], costs: FloatArray) -> None:
        self.counted = counts.map(lambda table: table.astype(np.float64))
        self.counts = self.counted.sums
        self.squares = self.counted.squares
        self.costs = costs
        self.total = float(self.counts.sum())
        self.fractional = self.counted.fractional

    def standard_error(self, influence: FloatArray) -> float:
        centred = influence - float((self.counts * influence).sum()) / self.total
        return math.sqrt(float((self.squares * centred**2).sum())) / self.total

    def effective(self, denominator: FloatArray | None) -> float:
        squares = float(self.squares.sum())
        return self.total**2 / squares if squares > 0 else 0.0

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        influence = metric.influence_in(self)
        if influence is None:
            raise TypeError(f"{metric.name} provides no influence")
        return influence[at.rows.actual, at.rows.predicted]

    @cached_property
    def mean(self) -> float:
        """The mean cost per row."""
        return float((self.counts * self.costs).sum()) / self.total

    @cached_property
    def constants(self) -> FloatArray:
        """Mean cost of predicting the same class for every row, for each class, shape (K,)."""
        return self.counts.sum(axis=1) @ self.costs / self.total

    @cached_property
    def ideal(self) -> float:
        """Mean cost if every row had the cheapest prediction for its actual class."""
        return float(self.counts.sum(axis=1) @ self.costs.min(axis=1)) / self.total

    def by_class(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean cost of each actual class and its standard error.

        Both are NaN for a class without rows.
        """
        n = self.counts.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = (self.counts * self.costs).sum(axis=1) / n
            errors = np.sqrt((self.squares * (self.costs - means[:, None]) ** 2).sum(axis=1)) / n
        return means, errors

    def at_shares(self, shares: FloatArray, level: float = 0.95) -> CostAtShares:
        """Return the mean cost that would result from different shares of the actual classes.

        The cost is NaN if a class with a share above 0 has no rows.
        """
        means, errors = self.by_class()
        # The mean cost of a class without rows is NaN, which matters only if its share is above 0.
        has_share = shares > 0
        value = float(shares[has_share] @ means[has_share])
        error = math.sqrt(float(shares[has_share] ** 2 @ errors[has_share] ** 2))
        least = float(shares @ self.costs.min(axis=1))
        most = float(shares @ self.costs.max(axis=1))
        interval = on_scale("wald", value, error, level, (least, most))
        return CostAtShares(value, error, *(interval or (math.nan, math.nan)))

    def profile(self, level: float, wider: float = 1.0) -> Interval:
        """Return the profile-likelihood interval of the mean cost.

        If rows have weights, the interval uses Kish's effective number of rows.
        """
        support, number = np.unique(self.costs, return_inverse=True)
        weights = np.bincount(number.ravel(), self.counts.ravel(), len(support))
        counts = weights * (self.effective(None) / self.total / wider**2)
        return profile_of_mean(support, counts, level)


class Decided(Priced):
    """Counts of the decisions that have the least expected cost, and sums of the expected costs."""

    kinds = ("decisions",)

    @classmethod
    def of_views(cls, views: EvaluationViews, kind: str, step: str) -> Decided | None:
        decisions = views.statistics.counted("decisions")
        if decisions is None or views.prices is None:
            return None
        # The decisions were counted for the original costs, and different costs would change them.
        if not np.array_equal(decisions.sums.costs, views.prices):
            return None
        return cls(decisions)

    def __init__(self, decisions: Counted[DecisionCounts]) -> None:
        super().__init__(decisions.map(lambda part: part.counts), decisions.sums.costs)
        self.decisions = decisions.sums
        self._squared = decisions.squares

    def mean_of(self, column: int) -> float:
        """Return the mean of a column: expected cost (0), or actual minus expected cost (1)."""
        return float(self.counts.sum(axis=1) @ self.decisions.mean[:, column]) / self.total

    def error_of(self, column: int) -> float:
        """Return the standard error of :meth:`mean_of`."""
        means = self._squared.mean[:, column]
        m2 = self._squared.m2[:, column]
        squares = m2 + self.squares.sum(axis=1) * (means - self.mean_of(column)) ** 2
        return math.sqrt(float(squares.sum())) / self.total

    def by_row(self, metric: Metric, at: Influence, step: str, k: int | None) -> FloatArray | None:
        """Return the influence of each row, shape (n,), from its decision or from its costs."""
        influence = metric.influence_in(self)
        if influence is None:
            raise TypeError(f"{metric.name} provides no influence")
        actual = at.rows.actual
        decided, expected = decide(at.probabilities.T, self.costs)
        if influence.ndim == 2:
            return influence[actual, decided]
        of_expected, of_gap, mean = influence
        gap = self.costs[actual, decided] - expected
        return of_expected * expected + of_gap * gap - mean


def profile_of_mean(support: FloatArray, counts: FloatArray, level: float = 0.95) -> Interval:
    """Return the multinomial profile-likelihood interval for a mean.

    ``support``, shape (R,): all values in ascending order, including values with a count of 0.
    ``counts``, shape (R,): how often each value occurs. Counts need not be whole numbers.
    """
    if len(support) == 1:
        return float(support[0]), float(support[0])
    low, high = profiles_of_means(support[None], counts[None], normal_quantile(level))
    return float(low[0]), float(high[0])


def profiles_of_means(
    support: FloatArray, counts: FloatArray, quantile: float
) -> tuple[FloatArray, FloatArray]:
    """Return the low and high limits of multinomial profile-likelihood intervals for T means.

    An interval is ``{mu : 2 (l(p_hat) - max l(p)) <= quantile^2}``, in which the maximum is taken
    over all p with the mean mu. At the maximum, p_k is ``n_k`` divided by a linear function of the
    value, and this function is never negative on the support. The remaining probability belongs to
    the lowest or the highest value of the support, if the count of this value is 0.

    ``support``, shape (T, R): all values in ascending order, including values with a count of 0. R
        must be at least 2.
    ``counts``, shape (T, R): how often each value occurs. Counts need not be whole numbers.
    ``quantile``: two-sided normal quantile for the confidence level.
    """
    first = support[:, 0]
    last = support[:, -1]
    span = last - first
    upward = (support - first[:, None]) / span[:, None]
    downward = ((last[:, None] - support) / span[:, None])[:, ::-1]
    # One call finds both ends of all intervals, because the low end is minus the high end for -x.
    places = np.concatenate((upward, downward))
    both_counts = np.concatenate((counts, counts[:, ::-1]))
    highest, lowest = np.split(_reach_up(places, both_counts, quantile**2), 2)
    return last - span * lowest, first + span * highest


def _reach_up(places: FloatArray, counts: FloatArray, reach: float) -> FloatArray:
    """Return the largest mean in each interval, shape (T,), for values on the scale from 0 to 1.

    The values must include both 0 and 1.
    """
    has_counts = counts > 0
    total = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_counts = np.log(counts)
        lower = np.log1p(-places)
        upper = np.log(places)
        log_shares = np.where(has_counts, log_counts - np.log(total)[:, None], 0.0)

    def logarithms(steep: FloatArray) -> FloatArray:
        """Return the logarithms of p if the line falls to exp(-steep) at the end."""
        with np.errstate(invalid="ignore"):
            weights = log_counts - np.logaddexp(lower, upper - steep[:, None])
        weights = np.where(has_counts, weights, -math.inf)
        return weights - logsumexp(weights, axis=1)[:, None]

    def means_at(steep: FloatArray) -> FloatArray:
        return (np.exp(logarithms(steep)) * places).sum(axis=1)

    def excess(steep: FloatArray) -> FloatArray:
        log_ratios = log_shares - np.where(has_counts, logarithms(steep), 0.0)
        return 2 * (counts * log_ratios).sum(axis=1) - reach

    ends_in_counts = has_counts[:, -1]
    means = np.ones(len(places))
    flat = np.where(ends_in_counts, 0.0, math.inf)
    left = np.where(ends_in_counts, -1.0, -excess(flat))
    # If the count of the highest value is 0, this value gets the probability that remains at the
    # flattest possible line.
    has_free_end = left >= 0
    share = np.exp(-np.maximum(left, 0.0) / (2 * total))
    flattest = np.where(has_free_end, math.inf, 0.0)
    means[has_free_end] = (share * means_at(flattest) + 1 - share)[has_free_end]
    # If all counts are at the highest value, the mean is already 1.
    inner = ~has_free_end & ~(ends_in_counts & (has_counts.sum(axis=1) == 1))
    means[inner] = means_at(_roots(excess, inner))[inner]
    return means


def _roots(excess: Callable[[FloatArray], FloatArray], wanted: BoolArray) -> FloatArray:
    """Return the roots of T increasing functions that start below 0, or 0 if a root is not wanted.

    The method is the Illinois version of regula falsi.
    """
    low = np.zeros(len(wanted))
    high = np.where(wanted, 1.0, 0.0)
    under = excess(low)
    over = excess(high)
    while (short := wanted & (over < 0)).any():
        low = np.where(short, high, low)
        under = np.where(short, over, under)
        high = np.where(short, 2 * high, high)
        over = excess(high)
    side = np.zeros(len(wanted))
    for _ in range(_STEPS):
        is_open = wanted & (over > 0) & (under < 0) & (high - low > 1e-14 * high)
        if not is_open.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            middle = np.where(is_open, (low * over - high * under) / (over - under), low)
        value = excess(middle)
        rises = is_open & (value >= 0)
        falls = is_open & (value < 0)
        # If one end of the bracket stays the same in two steps, the Illinois version halves the
        # function value at this end, so that the opposite end moves.
        under = np.where(rises & (side > 0), under / 2, np.where(falls, value, under))
        over = np.where(falls & (side < 0), over / 2, np.where(rises, value, over))
        low = np.where(falls, middle, low)
        high = np.where(rises, middle, high)
        side = np.where(rises, 1.0, np.where(falls, -1.0, side))
    return np.where(over == 0, high, np.where(-under < over, low, high))


class MeanCost(Function):
    """The mean cost per row."""

    scale = "profile likelihood"

    def __call__(self, priced: Priced) -> float:
        return priced.mean

    def influence(self, priced: Priced) -> FloatArray:
        """Return the influence of a row in each cell, as an array of shape (K, K)."""
        return priced.costs - priced.mean

    def bracket(
        self, priced: Priced, level: float, wider: float, degrees: float
    ) -> Interval | None:
        """Return the profile-likelihood interval, or Wald's interval if rows are in clusters."""
        error = wider * priced.standard_error(self.influence(priced))
        if error == 0 or (wider == 1 and math.isinf(degrees)):
            low, high = priced.profile(level, wider)
            return min(low, priced.mean), max(high, priced.mean)
        ends = (float(priced.costs.min()), float(priced.costs.max()))
        return on_scale("wald", priced.mean, error, level, ends, degrees)


class Saved(Function):
    """The share of the avoidable cost that the predictions avoid.

    The share is 0 for the best constant prediction and 1 for perfect predictions.
    """

    scale = "MOVER"

    def __call__(self, priced: Priced) -> float:
        best = float(priced.constants.min())
        avoidable = best - priced.ideal
        rounding = 1e-12 * float(np.abs(priced.costs).max())
        if not avoidable > rounding:
            return math.nan
        return (best - priced.mean) / avoidable

    def influence(self, priced: Priced) -> FloatArray:
        """Return the influence, shape (K, K), with the best constant prediction held fixed."""
        costs = priced.costs
        constant = int(priced.constants.argmin())
        best = float(priced.constants[constant])
        of_best = (costs[:, constant] - best)[:, None]
        of_ideal = (costs.min(axis=1) - priced.ideal)[:, None]
        of_cost = costs - priced.mean
        avoidable = best - priced.ideal
        return ((of_best - of_cost) - self(priced) * (of_best - of_ideal)) / avoidable

    def bracket(
        self, priced: Priced, level: float, wider: float, degrees: float
    ) -> Interval | None:
        """Compute the interval of a ratio from the intervals of its parts; see :func:`mover_ratio`.

        Saved is 1 - (mean cost - least cost) / (best constant cost - least cost). If a few rows
        have a high cost, the upper limit of the numerator's interval is much further from the
        estimate than the lower limit. The same is true for the interval of the mean cost.
        """
        excess = priced.costs - priced.costs.min(axis=1)[:, None]
        constant = int(priced.constants.argmin())
        above_least = Priced(priced.counted, excess)
        base = Priced(priced.counted, np.broadcast_to(excess[:, constant, None], excess.shape))
        ends = MeanCost().bracket(above_least, level, wider, degrees)
        base_ends = MeanCost().bracket(base, level, wider, degrees)
        if ends is None or base_ends is None:
            return None
        deviation = excess - above_least.mean
        base_deviation = base.costs - base.mean
        both_errors = above_least.standard_error(deviation) * base.standard_error(base_deviation)
        correlation = 0.0
        if both_errors > 0:
            joint = (priced.squares * deviation * base_deviation).sum() / priced.total**2
            correlation = float(np.clip(joint / both_errors, -1.0, 1.0))
        parts = (above_least.mean, base.mean)
        low, high = mover_ratio(parts, (ends, base_ends), correlation)
        if not math.isfinite(low + high):
            return None  # The avoidable cost may be 0.
        value = self(priced)
        return min(1 - high, value), min(max(1 - low, value), 1.0)

    def why(self, priced: Priced, k: int | None) -> str:
        """Return the reason why no cost can be avoided."""
        return "the best constant answer already has the least possible cost"


def mover_ratio(
    parts: tuple[float, float], ends: Sequence[Interval], correlation: float
) -> Interval:
    """Compute the interval of a ratio from the intervals of its parts, with the MOVER method.

    MOVER stands for the method of variance estimates recovery: Donner and Zou (2012), Closed-form
    confidence intervals for functions of the normal mean and standard deviation, Statistical
    Methods in Medical Research 21, 347-359. The method replaces the standard error of a part by the
    distance between the part and the relevant end of its interval. If the denominator may be 0, an
    end of the resulting interval is infinite.

    ``parts``: numerator and denominator. The denominator must be above 0.
    ``ends``: the intervals of the numerator and of the denominator.
    ``correlation``: the correlation between the errors of the two parts.
    """
    numerator, denominator = parts
    (low, high), (base_low, base_high) = ends

    def end(reach: float, base_reach: float, side: float) -> float:
        """Return the end r of the interval below (side -1) or above (side 1) the ratio.

        The end is the solution of (numerator - r denominator)^2 = reach^2 - 2 r correlation reach
        base_reach + (r base_reach)^2.
        """
        squared = denominator**2 - base_reach**2
        middle = numerator * denominator - correlation * reach * base_reach
        rest = numerator**2 - reach**2
        root = math.sqrt(max(middle**2 - squared * rest, 0.0))
        # This formula for the root is also valid if the upper end of the denominator's interval is
        # twice the denominator.
        if side < 0:
            return rest / (middle + root) if middle + root > 0 else 0.0
        return (middle + root) / squared if squared > 0 else math.inf

    return (
        end(numerator - low, base_high - denominator, -1.0),
        end(high - numerator, denominator - base_low, 1.0),
    )


class MeanOf(Function):
    """The mean expected cost (column 0), or the mean of actual minus expected cost (column 1)."""

    def __init__(self, column: int) -> None:
        self.column = column

    def __call__(self, decided: Decided) -> float:
        return decided.mean_of(self.column)

    def spread(self, decided: Decided) -> float:
        """Return the standard error."""
        return decided.error_of(self.column)

    def influence(self, decided: Decided) -> FloatArray:
        """Return the factor of each column in a row's influence, and the number to subtract."""
        return np.array([self.column == 0, self.column == 1, self(decided)], dtype=np.float64)


_FROM_PROBABILITIES = "if the class with the least expected cost is predicted"

COST = Section(
    "cost",
    "Costs",
    (
        Metric(
            "cost/mean",
            MeanCost(),
            of="costs",
            better="lower",
            formula="Σ C_ij c_ij / n, where c_ij is the cost of a pair of classes",
            title="mean cost",
            source="Elkan (2001)",
        ),
        Metric(
            "cost/saved",
            Saved(),
            of="costs",
            high=1.0,
            formula="(best constant − cost) / (best constant − least)",
            title="avoidable cost saved",
            brief="saved",
            source="Richardson (2000)",
        ),
        Metric(
            "cost/bayes",
            MeanCost(),
            of="decisions",
            better="lower",
            title="mean cost of the best decisions",
            formula=f"mean cost {_FROM_PROBABILITIES}",
            brief="Bayes cost",
            source="Elkan (2001)",
            headline=False,
        ),
        Metric(
            "cost/expected",
            MeanOf(0),
            of="decisions",
            better="",
            title="expected cost of the best decisions",
            formula=f"mean expected cost {_FROM_PROBABILITIES}",
            brief="expected cost",
            source="Elkan (2001)",
            headline=False,
        ),
        Metric(
            "cost/gap",
            MeanOf(1),
            of="decisions",
            better="nearest zero",
            brief="cost gap",
            headline=False,
            title="cost that the probabilities hide",
            formula="cost/bayes − cost/expected; 0 for calibrated probabilities",
            source="Elkan (2001)",
        ),
    ),
)
