"""Choice of a threshold for the positive group's score, and its evaluation on held-out rows.

A row is predicted positive if its score is at least the threshold. The predicted class is the most
probable class in the predicted group. A row that is a mismatch within its predicted group therefore
remains a mismatch.

The cost or metric of a threshold is too favourable if it is computed from the rows that chose the
threshold. Therefore the rows are split into folds, and each fold is evaluated with the threshold
that all other folds choose. The interval of the result is widened to include the variation between
splits. Because rows are independent, drawing from the counts at each score without replacement is
equivalent to splitting the rows. Individual rows are therefore not needed to split the data.

Source: Elkan (2001) derives the threshold that is best for calibrated probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmtrack.evaluation.catalog import OPEN, lookup
from cmtrack.evaluation.gates import OPERATORS, Gate
from cmtrack.grouping import ComposedStep
from cmtrack.metrics.binary import SIX
from cmtrack.metrics.cells import SixCells
from cmtrack.metrics.costs import profile_of_mean
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.results import Clusters, Results
from cmtrack.metrics.roc import six_counts
from cmtrack.names import quoted
from cmtrack.removed import BOUND_OF_LIMIT, RemovedFeature, reason
from cmtrack.statistics import BinaryCounts, ScoreCounts
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

FOLDS = 5
REPEATS = 10
SEED = 16_3
COST = "cost/mean"
_EQUAL = 1e-12
_MOST_DRAWN = 10**9  # NumPy's limit for draws without replacement
_OUTCOMES = BinaryCounts._fields
_OUTCOME = np.array([[1, 0], [1, 2], [4, 3], [5, 3]])
"""Indices of each score channel's outcome for negative and for positive predictions."""


@dataclass(frozen=True)
class OutcomeCosts:
    """Costs of the six possible outcomes of predicting one of two groups.

    ``costs``: the costs in the order of :class:`BinaryCounts`.
    ``possible``: False for mismatches that cannot occur in the grouping.
    """

    costs: tuple[float, ...]
    possible: tuple[bool, ...]

    @classmethod
    def of_matrix(cls, costs: FloatArray, step: ComposedStep) -> OutcomeCosts:
        """Convert costs between classes, shape (K, K), to costs of the six outcomes."""
        actual = step.in_positive[:, None]
        predicted = step.in_positive[None, :]
        where = {
            "tp": actual & predicted & step.accept,
            "fn": actual & ~predicted,
            "imp": actual & predicted & ~step.accept,
            "fp": ~actual & predicted,
            "tn": ~(actual | predicted) & step.accept,
            "imn": ~(actual | predicted) & ~step.accept,
        }
        prices = []
        for name in _OUTCOMES:
            distinct = np.unique(costs[where[name]])
            if len(distinct) > 1:
                pair = " and ".join(map(quoted, step.labels))
                raise ValueError(
                    f"a threshold needs costs of the two groups {pair}: all pairs of classes with "
                    f"the outcome {name.upper()} must cost the same, got {distinct[0]:g} to "
                    f"{distinct[-1]:g}"
                )
            prices.append(float(distinct[0]) if len(distinct) else 0.0)
        return cls(tuple(prices), tuple(bool(where[name].any()) for name in _OUTCOMES))

    @property
    def calibrated(self) -> float:
        """The threshold with the lowest cost for calibrated scores (Elkan 2001), or NaN."""
        tp, fn, _, fp, tn, _ = self.costs
        alarm = fp - tn
        miss = fn - tp
        if alarm < 0 or miss < 0 or alarm + miss == 0:
            return math.nan
        return alarm / (alarm + miss)

    @property
    def support(self) -> FloatArray:
        """All costs that a single row can cause, in ascending order."""
        return np.unique(np.array(self.costs)[list(self.possible)])

    def of(self, six: Any) -> Any:
        """Compute the mean cost from the six counts, which may be numbers or arrays."""
        return sum(c * n for c, n in zip(self.costs, six, strict=True)) / sum(six)

    def at_thresholds(self, counts: FloatArray) -> FloatArray:
        """Return the mean cost at each threshold, shape (..., U + 1), from counts (..., 4, U).

        A cumulative sum is faster than computing the six counts at each threshold.
        """
        prices = np.array(self.costs)[_OUTCOME]
        not_called = prices[:, 0]
        called = prices[:, 1]
        added = np.tensordot(called - not_called, counts, axes=(0, -2))
        added_from = np.zeros((*added.shape[:-1], added.shape[-1] + 1))
        np.cumsum(added[..., ::-1], axis=-1, out=added_from[..., -2::-1])
        samples = counts.sum(axis=-1)
        none_called = (samples @ not_called)[..., None]
        return np.asarray((none_called + added_from) / samples.sum(axis=-1)[..., None])


@dataclass(frozen=True)
class Rule:
    """A rule that chooses the threshold with the lowest cost or the largest metric within a bound.

    Exactly one of ``costs`` and ``maximize`` is set.

    ``maximize``: a metric that is computed from the six counts.
    """

    costs: OutcomeCosts | None
    maximize: Metric | None = None
    bound: Gate | None = None

    @property
    def objective(self) -> str:
        """Name of the cost that is minimized, or of the metric that is maximized."""
        return COST if self.maximize is None else self.maximize.name

    @property
    def bounds_from_below(self) -> bool:
        """True if the bound is a lower limit of the metric, not an upper limit."""
        return self.bound is not None and self.bound.operator.startswith(">")

    def check(self) -> None:
        """Raise ValueError if the metrics or the bound of the rule are not usable."""
        if self.maximize is not None:
            _check_six(self.maximize, "maximize")
            if self.maximize.better != "higher":
                raise ValueError(
                    "maximize must be a metric for which higher is better, got "
                    f"{self.maximize.name!r}: bound it by subject_to='{self.maximize.name} <= ...' "
                    "instead"
                )
        if self.bound is None:
            return
        metric = OPEN.lookup(self.bound.metric)
        _check_six(metric, "subject_to")
        if metric.interval == "count":
            raise ValueError(
                "subject_to must bound a share instead of a count, because a count grows with "
                f"the number of rows, got {self.bound.text!r}"
            )
        if self.bound.absolute or self.bound.difference or self.bound.column:
            raise ValueError(
                f"subject_to must bound the value of a metric for all rows, got {self.bound.text!r}"
            )
        if self.bound.end:
            raise RemovedFeature(reason(BOUND_OF_LIMIT))

    def bounded(self, six: BinaryCounts) -> FloatArray:
        """Compute the bounded metric from the six counts at each threshold, shape (..., T).

        If the metric is undefined at a threshold, its value is NaN.
        """
        if self.bound is None:
            raise ValueError("the rule has no bound")
        return values_of(lookup(self.bound.metric), six)

    def choose(self, thresholds: FloatArray, counts: FloatArray) -> IntArray:
        """Return the positions of the chosen thresholds, shape (...,); -1 if none meets the bound.

        If several thresholds have the same cost, the threshold nearest to the best threshold for
        calibrated scores is chosen. If several thresholds have the same value of the metric, the
        threshold that meets the bound with the largest margin is chosen. If ties remain, the
        largest threshold is chosen.

        ``thresholds``, shape (U + 1,): see :func:`thresholds_of`.
        ``counts``, shape (..., 4, U): counts by channel and score. A score is a candidate threshold
            only if at least one row has this score.
        """
        allowed = candidates(counts)
        if self.maximize is not None or self.bound is not None:
            six = six_counts(counts)
        if self.bound is not None:
            bounded = self.bounded(six)
            # Comparisons with NaN are False, so an undefined metric does not meet the bound.
            allowed &= OPERATORS[self.bound.operator](bounded, self.bound.bound)
        if self.costs is not None:
            largest_cost = max(map(abs, self.costs.costs))
            allowed = _largest(-self.costs.at_thresholds(counts), allowed, _EQUAL * largest_cost)
            if not math.isnan(self.costs.calibrated):
                allowed = _largest(-np.abs(thresholds - self.costs.calibrated), allowed, _EQUAL)
        if self.maximize is not None:
            values = values_of(self.maximize, six)
            allowed = _largest(values, allowed & np.isfinite(values), _EQUAL)
            if self.bound is not None:
                kept_best = bounded if self.bounds_from_below else -bounded
                allowed = _largest(kept_best, allowed, _EQUAL)
        last = len(thresholds) - 1 - np.argmax(allowed[..., ::-1], axis=-1)
        return np.where(allowed.any(axis=-1), last, -1)


def _largest(values: FloatArray, allowed: BoolArray, tolerance: float) -> BoolArray:
    """Return a mask of the allowed positions whose value is largest, up to a tolerance."""
    ranked = np.where(allowed, values, -np.inf)
    largest = ranked.max(axis=-1, keepdims=True)
    return np.asarray(allowed & (ranked >= largest - tolerance))


def values_of(metric: Metric, six: BinaryCounts) -> FloatArray:
    """Compute a metric from the six counts at each threshold; NaN if it is undefined."""
    if metric.value is None:
        raise ValueError(f"{metric.name} has no function of counts")
    with np.errstate(all="ignore"):
        value = np.asarray(metric.value(six), dtype=np.float64)
    return np.where(np.isfinite(value), value, np.nan)


def _check_six(metric: Metric, option: str) -> None:
    if metric.section != "binary" or metric.of != "binary":
        names = ", ".join(metric_of_six.name for metric_of_six in SIX)
        raise ValueError(
            f"{option} must be a metric that is computed from the six counts, got "
            f"{metric.name!r}; these metrics are {names}"
        )


def thresholds_of(scores: ScoreCounts) -> FloatArray:
    """Return all thresholds, shape (U + 1,): scores or lower edges of cells, and infinity."""
    lowest = scores.values if scores.exact else np.concatenate(([0.0], grid_edges()))
    return np.append(lowest, np.inf)


def candidates(counts: Any) -> BoolArray:
    """Return a mask, shape (..., U + 1), of the thresholds that are infinite or scores of rows.

    ``counts``, shape (..., 4, U): counts by channel and score.
    """
    has_samples = counts.sum(axis=-2) > 0
    infinity = np.ones((*has_samples.shape[:-1], 1), dtype=np.bool_)
    return np.concatenate((has_samples, infinity), axis=-1)


# -- evaluation on rows that did not choose --------------------------------------------------------


def split_counts(counts: Any, folds: int = FOLDS, repeats: int = REPEATS) -> Iterator[FloatArray]:
    """Split counts of independent rows at random into folds that are balanced by group.

    For each random split, yields the counts of the folds, shape (V, 4, U).

    ``counts``, shape (4, U): whole numbers.
    """
    rng = np.random.default_rng(SEED)
    size = counts.shape[1]
    sides = [counts[side : side + 2].astype(np.int64).ravel() for side in (0, 2)]
    totals = [int(side.sum()) for side in sides]
    by_row = sum(totals) <= 4 * counts.size
    for _ in range(repeats):
        parts = []
        taken = 0
        for side, total in zip(sides, totals, strict=True):
            if by_row:
                fold = rng.permutation((np.arange(total) + taken) % folds)
                cell = np.repeat(np.arange(2 * size), side)
                dealt = np.bincount(fold * 2 * size + cell, minlength=2 * size * folds)
            else:
                sizes = (total + folds - 1 - (np.arange(folds) - taken) % folds) // folds
                dealt = _drawn(rng, side, sizes)
            parts.append(dealt.reshape(folds, 2, size))
            taken += total
        yield np.concatenate(parts, axis=1).astype(np.float64)


def _drawn(rng: np.random.Generator, counts: IntArray, sizes: IntArray) -> IntArray:
    """Divide counts (C,) at random into parts of the given sizes (V,); return shape (V, C)."""
    if counts.sum() >= _MOST_DRAWN:  # approximate sizes suffice for large counts
        return rng.multinomial(counts, np.full(len(sizes), 1 / len(sizes))).T
    remaining = counts.copy()
    parts = []
    for size in sizes[:-1]:
        part = rng.multivariate_hypergeometric(remaining, size)
        parts.append(part)
        remaining = remaining - part
    return np.array([*parts, remaining])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Outcomes for rows that did not choose the threshold.

    ``counts``, shape (R, 6): the six counts of each repeat.
    ``folds_without``: the number of folds, over all repeats, that have no outcomes because no
        threshold meets the bound on the remaining folds.
    """

    counts: FloatArray
    folds_without: int = 0

    @property
    def mean(self) -> FloatArray:
        """The six counts, averaged over the repeats, shape (6,)."""
        return np.asarray(self.counts.mean(axis=0))


def cross_fit(splits: Iterable[FloatArray], thresholds: FloatArray, rule: Rule) -> HeldOut:
    """Evaluate each fold with the threshold that all other folds choose.

    ``splits``: for each split, the counts by fold, channel and score, shape (V, 4, U).
    ``thresholds``, shape (U + 1,): see :func:`thresholds_of`.
    """
    repeats = []
    folds_without = 0
    for folds in splits:
        places = rule.choose(thresholds, folds.sum(axis=0) - folds)
        outcomes = np.zeros(len(_OUTCOMES))
        for fold, place in zip(folds, places, strict=True):
            if place >= 0:
                outcomes += six_at(fold, place)
            else:
                folds_without += 1
        repeats.append(outcomes)
    return HeldOut(np.array(repeats), folds_without)


def six_at(counts: Any, place: int) -> FloatArray:
    """Compute the six counts at one threshold from counts by channel and score, shape (4, U)."""
    below = counts[:, :place].sum(axis=1)
    reached = counts[:, place:].sum(axis=1)
    six = np.zeros(len(_OUTCOMES))
    np.add.at(six, _OUTCOME.T, np.array([below, reached]))
    return six


def judged_cost(held: HeldOut, costs: OutcomeCosts, level: float) -> tuple[float, Interval]:
    """Return the mean cost of held-out outcomes and its profile-likelihood interval.

    The critical value of the interval is multiplied by the result of :func:`_wider`.
    """
    price = np.array(costs.costs)
    mean = held.mean
    n = float(mean.sum())
    value = float(mean @ price) / n
    variance = 0.0
    if np.ptp(price[list(costs.possible)]) > 0:
        variance = (float(mean @ price**2) / n - value**2) / n
    possible = np.array(costs.possible)
    place = np.searchsorted(costs.support, price[possible])
    counts: FloatArray = np.bincount(place, mean[possible], len(costs.support)).astype(np.float64)
    counts /= _wider(costs.of(held.counts.T), variance)
    low, high = profile_of_mean(costs.support, counts, level)
    return value, (min(low, value), max(high, value))


def judged_metric(held: HeldOut, metric: Metric, level: float) -> tuple[float, Interval | None]:
    """Return a metric of held-out outcomes and its interval, which :func:`_wider` widens."""
    weight = SixCells(held.mean, held.mean)
    if not math.isfinite(metric.number(weight.argument())):
        return math.nan, None
    influence = metric.influence_in(weight)
    clusters = Clusters()
    if influence is not None:
        error = weight.standard_error(influence)
        if error > 0:
            values = values_of(metric, BinaryCounts(*held.counts.T))
            clusters = Clusters({metric.name: error * math.sqrt(_wider(values, error**2))})
    results = Results(level, clusters)
    results.put_metric(metric, weight)
    return results.metrics[metric.name], results.intervals.get(metric.name)


def _wider(values: FloatArray, variance: float) -> float:
    """Return the factor by which the variation between repeated splits increases a variance.

    The factor is 1 + var(``values``) / ``variance``; ``values`` contains one value for each repeat.
    """
    defined = values[np.isfinite(values)]
    if len(defined) < 2 or variance <= 0:
        return 1.0
    return 1 + float(np.var(defined, ddof=1)) / variance
