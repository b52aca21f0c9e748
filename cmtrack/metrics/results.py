"""The results of an evaluation: values, standard errors, intervals and undefined metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cmtrack.metrics.intervals import (
    ROUNDING,
    Interval,
    settled,
    size_of_share,
    wilson,
    within_bounds,
)
from cmtrack.metrics.metric import Metric, Spread
from cmtrack.metrics.names import near_metric
from cmtrack.metrics.samples import Samples
from cmtrack.statistics.design import cluster_degrees

_DEPENDENT = "rows are in clusters, and the metric is valid for independent rows only"
_PLACE = re.compile("<(?:label|group|family)>")


class ByName(dict[str, Any]):
    """Values by the full name of a metric. The error for an unknown name lists similar names.

    In all other ways, including comparing, printing and pickling, it behaves like a plain dict.
    """

    def __init__(self, values: Mapping[str, Any], what: str = "metric") -> None:
        super().__init__(values)
        self._what = what

    def __missing__(self, name: object) -> Any:
        raise KeyError(f"there is no {self._what} {name!r}{near_metric(str(name), self)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@dataclass(frozen=True)
class Clusters:
    """Cluster-robust standard errors, p-values and effective numbers of clusters.

    ``n``: number of clusters. It is None if rows are not in clusters, or if an earlier version
        wrote the file.
    ``effective``: effective number of clusters for each standard error.
    ``pvalues``: p-values from tests that use the rows.
    """

    errors: Mapping[str, float] = field(default_factory=dict)
    n: int | None = None
    effective: Mapping[str, float] = field(default_factory=dict)
    pvalues: Mapping[str, float] = field(default_factory=dict)

    def informing(self, n: Any, by_rows: float | None, error: float) -> Any:
        """Return the number of rows from which the interval is computed if the standard error is 0.

        It is at most the number of clusters. For an area, there are two numbers, which are both
        reduced by the same factor.
        """
        if self.n is None:
            return n
        if n is None:
            return self.n
        if not isinstance(n, np.ndarray):
            return min(n, self.n)
        share = self.n / float(n.sum())
        if by_rows and error > 0:
            share = (by_rows / error) ** 2
        return n * min(share, 1.0)

    def degrees(self, name: str) -> float:
        """Return the degrees of freedom of a standard error.

        They are infinite if the standard error is not computed by cluster.
        """
        if name not in self.effective:
            return math.inf
        return cluster_degrees(self.effective[name], self.n)


class Computed(NamedTuple):
    """The numbers that a metric's functions return, as single numbers or as lists by class.

    ``flipped``, (value, error): value and standard error after adding one row, half of which is
        flipped. It is empty if no interval uses these numbers.
    ``ends``: low and high limits of the interval, if the function computes it together with the
        value, and otherwise None.
    """

    metric: Metric
    samples: Samples
    value: Any
    spread: Spread
    flipped: tuple[Any, ...]
    ends: tuple[Any, Any] | None

    def listed(self) -> Computed:
        """Convert the numbers of all classes to lists, and return them.

        Sizes have the shape (K, 2) if there is one size for each side.
        """
        size = len(self.value)

        def by_class(part: Any) -> Any:
            if part is None:
                return [None] * size
            if np.ndim(part) > 1:
                return list(part)
            return np.broadcast_to(part, size).tolist()

        return self._replace(
            value=self.value.tolist(),
            spread=Spread(*map(by_class, self.spread)),
            flipped=tuple(map(by_class, self.flipped)),
        )

    def of_class(self, k: int) -> Computed:
        """Select the numbers of class k from the lists."""
        return self._replace(
            value=self.value[k],
            spread=Spread(*(part[k] for part in self.spread)),
            flipped=tuple(part[k] for part in self.flipped),
            ends=self.ends and (self.ends[0][k], self.ends[1][k]),
        )


@dataclass
class Results:
    """Values by full name, with a standard error and an interval for each finite value.

    The standard errors in ``clusters`` replace standard errors that are computed by row. If
    ``with_errors`` is false, only the values of metrics with a function are computed. ``sizes`` are
    the (effective) numbers of rows in the denominators of shares.
    """

    confidence_level: float = 0.95
    clusters: Clusters = field(default_factory=Clusters)
    metrics: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    infinite: set[str] = field(default_factory=set)
    one_sided: dict[str, Interval] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
    with_errors: bool = True

    def put_metric(self, metric: Metric, samples: Samples, name: str = "") -> None:
        """Compute a metric and add it; pass its full ``name`` if the declared name is a pattern."""
        name = name or metric.name
        self.put(name, self.compute(metric, samples, [name]))

    def put_each(
        self, metrics: Sequence[tuple[Metric, Samples]], names: Mapping[int, str], step: str = ""
    ) -> None:
        """Compute a metric for each class, group or family, and add the results.

        ``names``: the encoded name of each class, group or family, by index.
        """
        computed = []
        numbers_of_classes = range(1 + max(names, default=0))
        for metric, samples in metrics:
            head, tail = _PLACE.split(metric.name.replace("<step>", step))
            full_names = [f"{head}{names.get(k, '')}{tail}" for k in numbers_of_classes]
            numbers = self.compute(metric, samples, full_names, of_each=True)
            computed.append((full_names, numbers.listed()))
        for k in names:
            for full_names, numbers in computed:
                self.put(full_names[k], numbers.of_class(k), k)

    def compute(
        self, metric: Metric, samples: Samples, names: Sequence[str], of_each: bool = False
    ) -> Computed:
        """Compute a metric with a single value, or with a value for each class if ``of_each``.

        ``names``: full names of the values.
        """
        if self._is_left_out(metric) or all(name in self.clusters.pvalues for name in names):
            missing: Any = np.full(len(names), math.nan) if of_each else math.nan
            return Computed(metric, samples, missing, Spread(), (), None)
        value = metric.of_samples(samples, of_each)
        if not np.isfinite(value).any():
            return Computed(metric, samples, value, Spread(), (), None)
        spread = metric.spread(samples, value) if self.with_errors else Spread()
        flipped = self._with_flipped(metric, samples, names, spread)
        ends = None
        if self.clusters.n is None or not metric.function.independent:
            ends = metric.function.ends(samples.argument())
        return Computed(metric, samples, value, spread, flipped, ends)

    def _is_left_out(self, metric: Metric) -> bool:
        """Return whether rows are in clusters and a metric is valid only for independent rows."""
        return self.clusters.n is not None and metric.function.independent == "value"

    def _with_flipped(
        self, metric: Metric, samples: Samples, names: Sequence[str], spread: Spread
    ) -> tuple[Any, ...]:
        """Return the value and standard error after adding a half-flipped row, if they are needed.

        If rows are in clusters, the weight of the added row is the variance by cluster divided by
        the variance by row, but at most the mean size of a cluster.
        """
        if not metric.few_errors or spread.error is None:
            return ()
        wider: Any = np.ones(np.shape(spread.error))
        most = 1.0
        if self.clusters.n is not None:
            errors = [self.clusters.errors.get(name, math.nan) for name in names]
            by_cluster = np.reshape(errors, wider.shape)
            has_both = (spread.error > 0) & (by_cluster > 0)
            wider = np.divide(by_cluster, spread.error, out=wider, where=has_both)
            most = max(float(np.max(samples.total)) / self.clusters.n, 1.0)
        with np.errstate(all="ignore"):
            flipped = samples.with_flipped(np.clip(wider**2, 1.0, most))
            if flipped is None:
                return ()
            of_each = np.ndim(wider) > 0 or len(names) > 1
            value = metric.of_samples(flipped, of_each)
            error = metric.spread(flipped, value).error if np.isfinite(value).any() else math.nan
            return value, error * wider

    def put(self, name: str, computed: Computed, k: int | None = None, reason: str = "") -> None:
        """Add the numbers of a metric, or of its class k.

        ``reason``: why the metric is undefined. The default is the reason in the metric's
            declaration.
        """
        metric = computed.metric
        value = float(self.clusters.pvalues.get(name, computed.value))
        value = settled(value, metric.low, metric.high)
        if not math.isfinite(value):
            worst = "lower" if value > 0 else "higher"
            if math.isinf(value) and metric.better == worst:
                self.infinite.add(name)
            self.put_undefined(name, self._reason(computed, k, reason))
            return
        self.metrics[name] = value
        if metric.interval in ("wilson", "count"):
            self._put_share(name, value, computed)
        else:
            self._put_error(name, value, computed)
        if metric.function.scale and name in self.errors:
            self._put_made(metric, name, computed.samples, computed.spread.error or 0.0)
        if computed.ends is not None and np.isfinite(computed.ends).all():
            low, high = map(float, computed.ends)
            self.intervals[name] = (
                max(metric.low, min(low, value)),
                min(metric.high, max(high, value)),
            )

    def _reason(self, computed: Computed, k: int | None, reason: str) -> str:
        """Return why a value is undefined.

        The reason is that rows are in clusters, or it is the passed reason or the metric's reason.
        """
        metric = computed.metric
        if self._is_left_out(metric):
            return _DEPENDENT
        if reason:
            return reason
        reason = metric.function.why(computed.samples.argument(), k)
        return reason or metric.reason or "its denominator is zero"

    def put_undefined(self, name: str, reason: str) -> None:
        """Add an undefined metric with its reason."""
        self.metrics[name] = math.nan
        self.undefined[name] = reason

    def _put_share(self, name: str, value: float, computed: Computed) -> None:
        """Store the standard error and Wilson's interval of a share or a count.

        The standard error of a count is n times the standard error of its share of all n rows.
        """
        metric = computed.metric
        total = computed.samples.total if metric.interval == "count" else 1.0
        share = value / total
        error, n, _ = computed.spread
        if n and error is None:
            error = total * math.sqrt(max(share * (1 - share), 0.0) / n)
        if name in self.clusters.errors:
            error = self.clusters.errors[name]
            n = self._share_size(share, error / total, n, computed.samples)
        if error is None or not math.isfinite(error):
            return
        if error <= ROUNDING:
            error = 0.0
        self.errors[name] = float(error)
        if n is None:
            return
        if metric.interval == "wilson":
            self.sizes[name] = float(n)
        ends = wilson(share, n, self.confidence_level, self.clusters.degrees(name))
        if ends is not None:
            self.intervals[name] = (ends[0] * total, ends[1] * total)

    def _share_size(self, share: float, error: float, n: Any, samples: Samples) -> Any:
        """Return the effective size of a share with a standard error by cluster.

        ``n``: the effective number of rows if the rows were independent.
        """
        if not error > 0:
            return self.clusters.informing(n, None, error)
        kish = n if samples.fractional and n else math.inf
        return size_of_share(share, error, 0.0, kish)

    def _put_error(self, name: str, value: float, computed: Computed) -> None:
        """Store the standard error and the interval of a value that is not a share."""
        metric = computed.metric
        error, n, least = computed.spread
        if name in self.clusters.errors:
            by_rows = error
            error = self.clusters.errors[name]
            n = self.clusters.informing(n, by_rows, error)
        if error is None or not math.isfinite(error):
            return
        bounds = (metric.low, metric.high)
        # If the range of a metric is limited and there are fewer than 10^26 rows, a smaller
        # standard error is only rounding error.
        is_bounded = value in (0.0, *bounds) or math.isfinite(metric.high - metric.low)
        smallest = ROUNDING if is_bounded else 0.0
        if error <= smallest:
            error = 0.0
        self.errors[name] = float(error)
        if metric.interval not in ("wald", "atanh", "logit", "log"):
            return

        def interval_of(value: float, error: float) -> Interval | None:
            degrees = self.clusters.degrees(name)
            level = self.confidence_level
            return within_bounds(metric.interval, value, error, level, bounds, n, degrees)

        larger = max(error, least or 0.0)
        if larger <= smallest:
            larger = 0.0
        interval = interval_of(value, larger)
        flipped = computed.flipped
        if flipped and np.isfinite(flipped).all() and (error > 0 or interval is None):
            interval = _hull(value, [interval, interval_of(*flipped)])
        if interval is not None:
            self.intervals[name] = interval

    def _put_made(self, metric: Metric, name: str, samples: Samples, by_rows: float) -> None:
        """Store the interval that a metric's function computes.

        One-sided intervals are stored separately. The function computes the interval from standard
        errors by row. If rows are in clusters, it multiplies all of them by the ratio of the
        metric's standard error by cluster to its standard error by row.
        """
        wider = 1.0
        if name in self.clusters.errors and self.clusters.n is not None:
            error = self.clusters.errors[name]
            # If the standard error is unknown, all rows in a cluster are assumed to be equal.
            wider = math.sqrt(max(float(samples.total) / self.clusters.n, 1.0))
            if error > 0 and by_rows > 0:
                wider = error / by_rows
        self.intervals.pop(name, None)
        degrees = self.clusters.degrees(name)
        argument = samples.argument()
        ends = metric.function.bracket(argument, self.confidence_level, wider, degrees)
        if ends is None:
            return
        low, high = ends
        # An interval that starts at the value, such as [0, 0.1] for 0 errors, has two limits.
        is_open_below = low <= metric.low < self.metrics[name]
        if math.isinf(metric.high) and (is_open_below or math.isinf(high)):
            self.one_sided[name] = ends
        else:
            self.intervals[name] = ends


def _hull(value: float, intervals: Sequence[Interval | None]) -> Interval | None:
    """Return the smallest interval that contains a value and several intervals.

    The result is None if there are no intervals.
    """
    ends = [interval for interval in intervals if interval is not None]
    if not ends:
        return None
    return min(value, *(low for low, _ in ends)), max(value, *(high for _, high in ends))
