"""Thresholds of the positive group's score: the choice of one, and its value on rows that did not choose it.

A sample is called positive if its score reaches the threshold; inside the chosen group the most probable class is
taken, so that mismatches keep their place. The cost, or the metric, of a threshold on the rows that chose it is too
favourable. Here the rows are split into folds, each is judged by the threshold that the others choose, and the interval
of the result is widened by what differs from split to split. Where samples are independent, a split of rows is a split
of the counts at each score, drawn without replacement, so that no rows are needed.

Source: Elkan (2001) for the threshold that calibrated probabilities need.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cmtrack.evaluation.catalog import OPEN, lookup
from cmtrack.evaluation.gates import OPERATORS, Gate
from cmtrack.grouping import ComposedStep
from cmtrack.metrics.binary import SIX
from cmtrack.metrics.cells import SixCells
from cmtrack.metrics.costs import profile_of_mean
from cmtrack.metrics.function import Fraction
from cmtrack.metrics.intervals import (
    Interval,
    cluster_degrees,
    normal_quantile,
    on_scale,
    wilson_ends,
)
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.results import Clusters, Results
from cmtrack.metrics.roc import six_counts
from cmtrack.names import quoted
from cmtrack.statistics import BinaryCounts, ScoreCounts
from cmtrack.statistics.grid import grid_edges
from cmtrack.statistics.inputs import BoolArray, FloatArray, IntArray

FOLDS, REPEATS, SEED = 5, 10, 16_3
COST = "cost/mean"
_EQUAL = 1e-12
_MOST_DRAWN = 10**9  # samples that NumPy draws from without replacement
_OUTCOMES = BinaryCounts._fields
_OUTCOME = np.array([[1, 0], [1, 2], [4, 3], [5, 3]])
"""Number of the outcome of each channel of scores, not called and called positive."""


@dataclass(frozen=True)
class OutcomeCosts:
    """Costs of the six outcomes of two groups.

    ``costs``: in the order of :class:`BinaryCounts`.
    ``possible``: False for mismatches that the grouping does not have.
    """

    costs: tuple[float, ...]
    possible: tuple[bool, ...]

    @classmethod
    def of_matrix(cls, costs: FloatArray, step: ComposedStep) -> OutcomeCosts:
        """Costs (K, K) of classes as those of the two groups."""
        inside = step.in_positive
        actual, predicted = inside[:, None], inside[None, :]
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
                    f"a threshold needs costs of the two groups {pair}: pairs of classes with the outcome "
                    f"{name.upper()} must cost the same, got {distinct[0]:g} to {distinct[-1]:g}"
                )
            prices.append(float(distinct[0]) if len(distinct) else 0.0)
        return cls(tuple(prices), tuple(bool(where[name].any()) for name in _OUTCOMES))

    @property
    def calibrated(self) -> float:
        """The threshold of least cost where scores are calibrated (Elkan 2001); NaN where one answer is always best."""
        tp, fn, _, fp, tn, _ = self.costs
        alarm, miss = fp - tn, fn - tp
        return alarm / (alarm + miss) if alarm >= 0 and miss >= 0 and alarm + miss > 0 else math.nan

    @property
    def support(self) -> FloatArray:
        """All values that a cost can take, ascending."""
        return np.unique(
            [cost for cost, there in zip(self.costs, self.possible, strict=True) if there]
        )

    def of(self, six: Any) -> Any:
        """Mean cost of six counts, numbers or arrays."""
        return sum(c * n for c, n in zip(self.costs, six, strict=True)) / sum(six)

    def at_thresholds(self, counts: FloatArray) -> FloatArray:
        """Mean cost at each threshold of counts (..., 4, U), shape (..., U + 1)."""
        price = np.array(self.costs)[_OUTCOME]  # of each channel, not called and called
        added = np.tensordot(price[:, 1] - price[:, 0], counts, axes=(0, -2))
        out = np.zeros((*added.shape[:-1], added.shape[-1] + 1))
        np.cumsum(added[..., ::-1], axis=-1, out=out[..., -2::-1])
        channels = counts.sum(axis=-1)
        return np.asarray(
            (out + (channels @ price[:, 0])[..., None]) / channels.sum(axis=-1)[..., None]
        )


@dataclass(frozen=True)
class Rule:
    """The rule by which a threshold is chosen: least cost or largest metric, and maybe a bound of another metric.

    ``maximize``: a function of the six counts; exactly one of both.
    ``confidence_level``: of the limit that a bound such as ``binary/precision.low >= 0.9`` means.
    """

    costs: OutcomeCosts | None
    maximize: Metric | None = None
    bound: Gate | None = None
    confidence_level: float = 0.95

    @property
    def objective(self) -> str:
        """Name of the quantity that is minimised or maximised."""
        return COST if self.maximize is None else self.maximize.name

    def check(self) -> None:
        """Validate the rule."""
        if self.maximize is not None:
            _check_six(self.maximize, "maximize")
            if self.maximize.better != "higher":
                raise ValueError(
                    f"maximize must be a metric of which higher is better, got {self.maximize.name!r}: bound it by "
                    f"subject_to='{self.maximize.name} <= ...' instead"
                )
        if self.bound is None:
            return
        metric = OPEN.lookup(self.bound.metric)
        _check_six(metric, "subject_to")
        if metric.interval == "count":
            raise ValueError(
                f"subject_to must bound a share, which does not grow with the rows, got {self.bound.text!r}"
            )
        if self.bound.absolute or self.bound.difference or self.bound.column:
            raise ValueError(
                f"subject_to must bound a metric or its .low or .high, got {self.bound.text!r}"
            )
        if self.bound.end and not isinstance(metric.value, Fraction):
            raise ValueError(
                f"subject_to must bound .low and .high of shares only (Wilson's limits), got {self.bound.text!r}"
            )

    def bounded(self, six: BinaryCounts, effective: Any = 1.0) -> FloatArray:
        """The bounded number at each threshold; NaN where it is undefined.

        ``six``, BinaryCounts of ndarrays of shape (..., T).
        ``effective``, float or ndarray of shape (..., 1): effective samples a unit of weight (Kish).
        """
        assert self.bound is not None  # the caller's choice
        metric: Any = lookup(self.bound.metric)
        value = values_of(metric, six)
        if not self.bound.end:
            return value
        inside: FloatArray = metric.value.denominator(six)
        parts: Any = np.array(six)
        n = effective * np.tensordot(inside, parts, axes=1)
        with np.errstate(all="ignore"):
            ends = wilson_ends(value, n, normal_quantile(self.confidence_level))
        return np.asarray(np.clip(ends[self.bound.end == "high"], 0.0, 1.0))

    def choose(self, thresholds: FloatArray, counts: FloatArray, effective: Any = 1.0) -> IntArray:
        """Places of the chosen thresholds, shape (...,); -1 where none keeps the bound.

        Of equal costs the one nearest to the threshold of calibrated scores is taken, of equal metrics the one that
        keeps the bound best; then the larger.

        ``thresholds``, shape (U + 1,): see :func:`thresholds_of`.
        ``counts``, shape (..., 4, U): by channel and score; scores that no sample has are no candidates.
        ``effective``, float or ndarray of shape (..., 1): as in :meth:`bounded`.
        """
        allowed = candidates(counts)
        six = None if self.maximize is None and self.bound is None else six_counts(counts)
        keys: list[tuple[Any, float]]
        if self.costs is not None:
            keys = [(-self.costs.at_thresholds(counts), _EQUAL * max(map(abs, self.costs.costs)))]
            if not math.isnan(self.costs.calibrated):
                keys.append((-np.abs(thresholds - self.costs.calibrated), _EQUAL))
        else:
            assert self.maximize is not None  # one of both is given
            assert six is not None
            keys = [(values_of(self.maximize, six), _EQUAL)]
            allowed &= np.isfinite(keys[0][0])
        if self.bound is not None:
            assert six is not None
            read = self.bounded(six, effective)
            # an undefined value keeps no bound
            allowed &= OPERATORS[self.bound.operator](read, self.bound.bound)
            if self.maximize is not None:
                keys.append((read if self.bound.operator.startswith(">") else -read, _EQUAL))
        for key, near in keys:
            ranked = np.where(allowed, key, -np.inf)
            allowed &= ranked >= ranked.max(axis=-1, keepdims=True) - near
        last = len(thresholds) - 1 - np.argmax(allowed[..., ::-1], axis=-1)
        return np.where(allowed.any(axis=-1), last, -1)


def values_of(metric: Metric, six: BinaryCounts) -> FloatArray:
    """Values of a metric of the six counts at each threshold; NaN where it is undefined."""
    assert metric.value is not None  # the catalog's own
    with np.errstate(all="ignore"):
        value = np.asarray(metric.value(six), dtype=np.float64)
    return np.where(np.isfinite(value), value, np.nan)


def _check_six(metric: Metric, what: str) -> None:
    if metric.section != "binary" or metric.of != "binary":
        names = ", ".join(names.name for names in SIX)
        raise ValueError(
            f"{what} must be a metric of the six counts, got {metric.name!r}; they are {names}"
        )


def thresholds_of(scores: ScoreCounts) -> FloatArray:
    """The thresholds that counts can judge, shape (U + 1,): scores, or lower edges of cells, and infinity."""
    lowest = scores.values if scores.exact else np.concatenate(([0.0], grid_edges()))
    return np.append(lowest, np.inf)


def candidates(counts: Any) -> BoolArray:
    """Thresholds that are scores of samples, or infinity, of counts (..., 4, U); shape (..., U + 1)."""
    held = counts.sum(axis=-2) > 0
    return np.concatenate((held, np.ones((*held.shape[:-1], 1), dtype=np.bool_)), axis=-1)


# -- judging on rows that did not choose -----------------------------------------------------------------------


def split_counts(counts: Any, folds: int = FOLDS, repeats: int = REPEATS) -> Iterator[FloatArray]:
    """Split independent samples, given by their counts, into folds of as many of each group; again and again.

    ``counts``, shape (4, U): whole numbers.
    Each, shape (V, 4, U): the counts of each fold: those of samples that are dealt out at random.
    """
    rng = np.random.default_rng(SEED)
    size = counts.shape[1]
    sides = [counts[side : side + 2].astype(np.int64).ravel() for side in (0, 2)]
    totals = [int(side.sum()) for side in sides]
    by_row = sum(totals) <= 4 * counts.size
    rows = [np.repeat(np.arange(2 * size), side) for side in sides] if by_row else []
    for _ in range(repeats):
        parts, taken = [], 0
        for place, (side, total) in enumerate(zip(sides, totals, strict=True)):
            if by_row:
                fold = rng.permutation((np.arange(total) + taken) % folds)
                dealt = np.bincount(fold * 2 * size + rows[place], minlength=2 * size * folds)
            else:
                sizes = (total + folds - 1 - (np.arange(folds) - taken) % folds) // folds
                dealt = _drawn(rng, side, sizes)
            parts.append(dealt.reshape(folds, 2, size))
            taken += total
        yield np.concatenate(parts, axis=1).astype(np.float64)


def _drawn(rng: np.random.Generator, counts: IntArray, sizes: IntArray) -> IntArray:
    """Counts (C,) dealt into parts of these sizes (V,), shape (V, C)."""
    if counts.sum() >= _MOST_DRAWN:  # so many that the parts' sizes need not be exact
        return rng.multinomial(counts, np.full(len(sizes), 1 / len(sizes))).T
    remaining, out = counts.copy(), []
    for size in sizes[:-1]:
        out.append(rng.multivariate_hypergeometric(remaining, size))
        remaining = remaining - out[-1]
    return np.array([*out, remaining])


@dataclass(eq=False)
class RowSplits:
    """Splits of rows into folds, whole clusters together, the positives' weight alike in all folds.

    The splits are the same whatever the order of the rows: clusters are put in an order by what they hold.

    ``place``, shape (n,): the row's cell in counts of shape (4, U).
    ``thresholds``, shape (U + 1,).
    ``weights``, ``clusters``, shape (n,).
    """

    place: IntArray
    thresholds: FloatArray
    weights: FloatArray | IntArray | None = None
    clusters: IntArray | None = None
    folds: list[IntArray] = field(default_factory=list)
    """Fold of each row, shape (n,), of each split so far."""

    def __iter__(self) -> Iterator[FloatArray]:
        rng = np.random.default_rng(SEED)
        size = len(self.thresholds) - 1
        weights = (
            np.ones(len(self.place)) if self.weights is None else self.weights.astype(np.float64)
        )
        of_row = (
            np.arange(len(self.place))
            if self.clusters is None
            else np.unique(self.clusters, return_inverse=True)[1]
        )
        channel, block = self.place // size, self.place % size
        score = self.thresholds[block]
        holds = [np.bincount(of_row, weights * (channel < 2))]
        holds += [
            np.bincount(of_row, weights * part)
            for part in (1, score, score**2, channel, channel * score)
        ]
        order = np.lexsort(np.round(holds[::-1], 9))
        n, folds = len(order), self.n_folds
        for _ in range(REPEATS):
            dealt = order[np.lexsort((rng.random(n), np.round(holds[0], 9)[order]))]
            fold = np.empty(n, dtype=np.int64)
            fold[dealt] = rng.permuted(
                np.tile(np.arange(folds), (-(-n // folds), 1)), axis=1
            ).ravel()[:n]
            self.folds.append(fold[of_row])
            counts = np.bincount(self.folds[-1] * 4 * size + self.place, weights, 4 * size * folds)
            yield counts.reshape(folds, 4, size).astype(np.float64)

    @property
    def n_folds(self) -> int:
        """Folds: five, or as many as there are clusters."""
        return min(
            FOLDS, len(self.place) if self.clusters is None else len(np.unique(self.clusters))
        )

    def outcomes(self, places: IntArray) -> FloatArray:
        """Share of the splits in which each row has each outcome, shape (n, 6), by the place of each fold's threshold.

        ``places``, shape (R, V): -1 where a fold has no threshold: its rows have no outcome then.
        """
        size = len(self.thresholds) - 1
        channel, block = self.place // size, self.place % size
        out = np.zeros((len(self.place), len(_OUTCOMES)))
        row = np.arange(len(out))
        for fold, chosen in zip(self.folds, places, strict=True):
            of_fold = chosen[fold]
            out[row, _OUTCOME[channel, (block >= of_fold).astype(np.int64)]] += (
                of_fold >= 0
            ) / len(places)
        return out


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Outcomes on rows that did not choose the threshold.

    ``counts``, shape (R, 6): of each repeat.
    ``places``, shape (R, V): of the thresholds of the folds; -1 where none kept the bound.
    """

    counts: FloatArray
    places: IntArray

    @property
    def mean(self) -> FloatArray:
        """Counts averaged over the repeats, shape (6,)."""
        return np.asarray(self.counts.mean(axis=0))


def cross_fit(splits: Any, thresholds: FloatArray, rule: Rule, effective: float = 1.0) -> HeldOut:
    """Judge each fold by the threshold that the others choose.

    The limit of an interval that a bound asks for is read as if the others were as many as all samples are: it would be
    stricter with fewer, and the threshold another one.

    ``splits``, iterable of ndarrays of shape (V, 4, U): a split each.
    ``thresholds``, shape (U + 1,).
    ``effective``: as in :meth:`Rule.bounded`.
    """
    counts, places = [], []
    for parts in splits:
        everyone = parts.sum(axis=0)
        others = everyone - parts
        as_many = float(everyone.sum()) / others.sum(axis=(1, 2))
        chosen = rule.choose(thresholds, others, effective * as_many[:, None])
        counts.append(
            sum(
                (
                    six_at(part, place)
                    for part, place in zip(parts, chosen, strict=True)
                    if place >= 0
                ),
                start=np.zeros(len(_OUTCOMES)),
            )
        )
        places.append(chosen)
    return HeldOut(np.array(counts), np.array(places))


def six_at(counts: Any, place: int) -> FloatArray:
    """The six counts (6,) of counts (4, U) at one threshold."""
    called = counts[:, place:].sum(axis=1)
    out = np.zeros(len(_OUTCOMES))
    np.add.at(out, _OUTCOME.T, np.array([counts[:, :place].sum(axis=1), called]))
    return out


@dataclass(frozen=True)
class Dependence:
    """Dependence between samples: clusters and weights.

    ``effective``: effective samples a unit of weight (Kish); of clusters their number.
    ``by_cluster``: from an influence (6,) of the outcomes to its standard error and effective number of clusters.
    """

    effective: float = 1.0
    by_cluster: Any = None
    n_clusters: int | None = None


def judged_cost(
    held: HeldOut, costs: OutcomeCosts, level: float, design: Dependence
) -> tuple[float, Interval]:
    """The mean cost of held-out outcomes and its interval.

    The profile-likelihood interval of a mean cost, or Wald's from sums of clusters; its critical value is widened by
    one and the variance between the repeats over that of the mean.
    """
    price, mean = np.array(costs.costs), held.mean
    n = float(mean.sum())
    value = float(mean @ price) / n
    spread = np.ptp(price[list(costs.possible)]) > 0
    error, effective = (
        design.by_cluster(price - value) if design.by_cluster else (math.nan, math.inf)
    )
    if error > 0:
        wider = math.sqrt(_wider(costs.of(held.counts.T), error**2))
        degrees = cluster_degrees(effective, design.n_clusters)
        ends = on_scale(
            "wald", value, error * wider, level, (min(costs.support), max(costs.support)), degrees
        )
        assert ends is not None  # the error is above 0
        return value, ends
    n *= design.effective if design.n_clusters is None else design.n_clusters / n
    variance = (float(mean @ price**2) / float(mean.sum()) - value**2) / n if spread else 0.0
    at = np.searchsorted(costs.support, price)
    seen = np.array(costs.possible)
    counts: FloatArray = np.bincount(at[seen], mean[seen], len(costs.support)).astype(np.float64)
    counts *= n / float(mean.sum()) / _wider(costs.of(held.counts.T), variance)
    low, high = profile_of_mean(costs.support, counts, level)
    return value, (min(low, value), max(high, value))


def judged_metric(
    held: HeldOut, metric: Metric, level: float, design: Dependence
) -> tuple[float, Interval | None]:
    """A metric of held-out outcomes and its interval, on the metric's own scale, widened as that of a cost."""
    mean = held.mean
    weight = SixCells(mean, mean / design.effective)
    if not math.isfinite(metric.number(weight.argument())):
        return math.nan, None
    psi = metric.influence_in(weight)
    error, effective = math.nan, math.inf
    if psi is not None and design.by_cluster:
        error, effective = design.by_cluster(psi)
    elif psi is not None:
        error = weight.standard_error(psi)
    clusters = Clusters()
    if error > 0:
        wider = error * math.sqrt(_wider(values_of(metric, BinaryCounts(*held.counts.T)), error**2))
        clusters = Clusters({metric.name: wider}, design.n_clusters, {metric.name: effective})
    results = Results(level, clusters)
    results.put_metric(metric, weight)
    return results.metrics[metric.name], results.intervals.get(metric.name)


def _wider(values: FloatArray, variance: float) -> float:
    """Factor of a critical value: 1 and the variance between repeats over that of the mean."""
    defined = values[np.isfinite(values)]
    return (
        1 + float(np.var(defined, ddof=1)) / variance if len(defined) > 1 and variance > 0 else 1.0
    )
