"""Collecting numbers: values by name, standard errors, intervals, and why some are undefined."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cmtrack.metrics.intervals import (
    ROUNDING,
    Interval,
    cluster_degrees,
    settled,
    size_of_share,
    wilson,
    within_bounds,
)
from cmtrack.metrics.metric import UNKNOWN_SPREAD, Metric, Spread
from cmtrack.metrics.names import near_metric
from cmtrack.metrics.samples import Samples

_DEPENDENT = "rows belong together in groups, and it holds for independent rows"
_PLACE = re.compile("<(?:label|group|family)>")


class ByName(dict[str, Any]):
    """Values by a metric's full name; the error for a missing name lists those most like it.

    Otherwise a plain dict: it equals one, and is written and pickled as one.
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
    """Cluster-robust standard errors, p-values and effective numbers.

    ``n``: number of clusters; None in evaluations that an earlier version wrote.
    ``effective``: effective number of clusters of each error.
    ``pvalues``: those of tests that were made with the rows.
    """

    errors: Mapping[str, float] = field(default_factory=dict)
    n: int | None = None
    effective: Mapping[str, float] = field(default_factory=dict)
    pvalues: Mapping[str, float] = field(default_factory=dict)

    def informing(self, n: Any, by_rows: float | None, error: float) -> Any:
        """The samples that tell where an error is 0: at most the clusters; of an area, sides of as much information."""
        if self.n is None:
            return n
        if isinstance(n, np.ndarray):
            share = (by_rows / error) ** 2 if by_rows and error > 0 else self.n / float(n.sum())
            return n * min(share, 1.0)
        return self.n if n is None else min(n, self.n)

    def degrees(self, name: str) -> float:
        """Degrees of freedom of an error, by its effective number of clusters; infinite without clusters."""
        return cluster_degrees(self.effective[name], self.n) if name in self.effective else math.inf


@dataclass
class Results:
    """Collects values by full name; finite ones get the standard error and the interval that their scale allows.

    Errors of ``clusters`` take the place of those by rows. Without ``with_errors`` metrics that bring their functions
    get their values only. ``sizes`` are the (effective) numbers of samples that shares are of.
    """

    confidence_level: float = 0.95
    clusters: Clusters = field(default_factory=lambda: Clusters())
    metrics: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    infinite: set[str] = field(default_factory=set)
    one_sided: dict[str, Interval] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
    with_errors: bool = True

    def put_metric(self, metric: Metric, samples: Samples, name: str = "") -> None:
        """Add a metric by its function; ``name`` is the full name of one of a declared pattern."""
        pvalue = self.clusters.pvalues.get(name or metric.name, math.nan)
        if self._is_left_out(metric) or pvalue == pvalue:
            self.put(name or metric.name, pvalue, reason=_DEPENDENT, metric=metric)
            return
        value = metric.number(samples.argument())
        spread = (
            metric.spread(samples, value) if self.with_errors and math.isfinite(value) else Spread()
        )
        more = self._with_flipped(metric, samples, [name or metric.name], spread)
        ends = self._ends(metric, samples, value)
        self._put_computed(
            metric, samples, name or metric.name, value, spread, more=more, ends=ends
        )

    def _is_left_out(self, metric: Metric) -> bool:
        """True for numbers that hold for independent rows only, if the rows are clustered."""
        return self.clusters.n is not None and metric.function.independent == "value"

    def put_each(
        self, metrics: Sequence[tuple[Metric, Samples]], names: Mapping[int, str], step: str = ""
    ) -> None:
        """Add metrics of each class, group or family; ``names`` are their encoded names by number."""
        columns = []
        for metric, samples in metrics:
            alone = self._is_left_out(metric)
            values = (
                np.full(1 + max(names, default=0), math.nan) if alone else metric.of_each(samples)
            )
            spread = metric.spread(samples, values) if self.with_errors and not alone else Spread()
            spreads = [None if part is None else _of_each(part, values) for part in spread]
            head, tail = _PLACE.split(metric.name.replace("<step>", step))
            everyone = [f"{head}{names.get(k, '')}{tail}" for k in range(len(values))]
            more = [
                _of_each(part, values)
                for part in self._with_flipped(metric, samples, everyone, spread)
            ]
            ends = self._ends(metric, samples, values)
            columns.append((metric, samples, head, tail, values.tolist(), spreads, more, ends))
        for k, name in names.items():
            for metric, samples, head, tail, numbers, spreads, more, ends in columns:
                of_class = Spread(*(None if part is None else part[k] for part in spreads))
                one = tuple(part[k] for part in more)
                both = ends and (ends[0][k], ends[1][k])
                self._put_computed(
                    metric, samples, f"{head}{name}{tail}", numbers[k], of_class, k, one, both
                )

    def _ends(self, metric: Metric, samples: Samples, values: Any) -> tuple[Any, Any] | None:
        """The ends that are made with the value, or with those of each class."""
        alone = self.clusters.n is not None and metric.function.independent
        return (
            None
            if alone or not np.isfinite(values).any()
            else metric.function.ends(samples.argument())
        )

    def _with_flipped(
        self, metric: Metric, samples: Samples, names: Sequence[str], spread: Spread
    ) -> tuple[Any, ...]:
        """Value and error with one more sample, half of it flipped, if the metric's interval uses these; else nothing.

        With clusters the one stands for as many samples as their errors are alike, at most a cluster.
        """
        if not metric.few_errors or spread.error is None:
            return ()
        wider: Any = np.ones(np.shape(spread.error))
        if self.clusters.n is not None:
            errors = np.reshape(
                [self.clusters.errors.get(name, math.nan) for name in names], wider.shape
            )
            wider = np.divide(
                errors, spread.error, out=wider, where=(spread.error > 0) & (errors > 0)
            )
        with np.errstate(all="ignore"):
            most = (
                1.0
                if self.clusters.n is None
                else max(float(np.max(samples.total)) / self.clusters.n, 1.0)
            )
            more = samples.with_flipped(np.clip(wider**2, 1.0, most))
            if more is None:
                return ()
            single = np.ndim(wider) == 0 and len(names) == 1
            value = metric.number(more.argument()) if single else metric.of_each(more)
            error = metric.spread(more, value).error if np.isfinite(value).any() else math.nan
            return value, error * wider

    def _put_computed(
        self,
        metric: Metric,
        samples: Samples,
        name: str,
        value: float,
        spread: Spread,
        k: int | None = None,
        more: tuple[float, ...] = (),
        ends: tuple[Any, Any] | None = None,
    ) -> None:
        """Add a value; ``spread`` is what :meth:`Metric.spread` gives; ``more`` is for :meth:`put`."""
        value = self.clusters.pvalues.get(name, value)
        if metric.interval == "count":
            self._put_count(name, value, samples, spread)
            return
        function = metric.function
        reason = "" if math.isfinite(value) else function.why(samples.argument(), k)
        reason = _DEPENDENT if self._is_left_out(metric) else reason
        self.put(
            name,
            value,
            spread=spread,
            weighted=samples.fractional,
            reason=reason,
            metric=metric,
            more=more,
        )
        if function.scale and name in self.errors:
            self._put_made(metric, name, samples, spread.error or 0.0)
        value = self.metrics[name]
        if ends is not None and math.isfinite(value):
            low, high = map(float, ends)
            if math.isfinite(low) and math.isfinite(high):
                self.intervals[name] = (
                    max(metric.low, min(low, value)),
                    min(metric.high, max(high, value)),
                )

    def _put_made(self, metric: Metric, name: str, samples: Samples, by_rows: float) -> None:
        """Store the interval that a metric's function computes; one-sided intervals separately.

        The function has errors by rows: with clusters all are taken to be wider by the metric's own ratio.
        """
        wider = 1.0
        if name in self.clusters.errors and self.clusters.n is not None:
            error = self.clusters.errors[name]
            alike = math.sqrt(max(float(samples.total) / self.clusters.n, 1.0))
            wider = error / by_rows if error > 0 and by_rows > 0 else alike
        self.intervals.pop(name, None)
        ends = metric.function.bracket(
            samples.argument(), self.confidence_level, wider, self.clusters.degrees(name)
        )
        if ends is None:
            return
        low, high = ends
        if math.isinf(metric.high) and (low <= metric.low or math.isinf(high)):
            self.one_sided[name] = ends
        else:
            self.intervals[name] = ends

    def put(
        self,
        name: str,
        value: float,
        *,
        spread: Spread = UNKNOWN_SPREAD,
        weighted: bool = False,
        reason: str = "",
        metric: Metric,
        more: tuple[float, ...] = (),
    ) -> None:
        """Add a metric.

        ``spread``: its standard error and sizes.
        ``weighted``: whether rows have sampling weights.
        ``reason``: why it is undefined, if it is; by default what the metric says.
        ``metric``: its declaration.
        ``more``, (value, error): those that its interval is made of, where they are others.
        """
        value = settled(float(value), metric.low, metric.high)
        self.metrics[name] = value
        if not math.isfinite(value):
            self.metrics[name] = math.nan
            if math.isinf(value) and metric.better == ("lower" if value > 0 else "higher"):
                self.infinite.add(name)
            self.undefined[name] = reason or metric.reason or "its denominator is zero"
            return
        error, n, least = spread
        if metric.interval == "wilson" and n and error is None:
            error = math.sqrt(max(value * (1 - value), 0.0) / n)
        if name in self.clusters.errors:
            by_rows = error
            error = self.clusters.errors[name]
            if metric.interval == "wilson" and error > 0:
                n = size_of_share(value, error, 0.0, n if weighted and n else math.inf)
            else:
                n = self.clusters.informing(n, by_rows, error)
        if error is None or not math.isfinite(error):
            return
        if error <= ROUNDING and (
            value in (metric.low, 0.0, metric.high) or math.isfinite(metric.high - metric.low)
        ):
            error = 0.0  # of what has a range: no fewer than 10^26 rows make a smaller one
        self.errors[name] = float(error)
        interval = None
        if metric.interval == "wilson" and n is not None:
            self.sizes[name] = float(n)
        if metric.interval == "wilson":
            interval = (
                wilson(value, n, self.confidence_level, self.clusters.degrees(name))
                if n is not None
                else None
            )
        elif metric.interval in ("wald", "atanh", "logit", "log"):
            bounds, degrees = (metric.low, metric.high), self.clusters.degrees(name)
            wide = error if least is None else max(error, least)
            interval = within_bounds(
                metric.interval, value, wide, self.confidence_level, bounds, n, degrees
            )
            if more and np.isfinite(more).all() and (error > 0 or interval is None):
                at, around = more
                other = within_bounds(
                    metric.interval, at, around, self.confidence_level, bounds, n, degrees
                )
                both = [ends for ends in (interval, other) if ends is not None]
                if both:  # what either leaves open stays open
                    interval = (
                        min(value, *(low for low, _ in both)),
                        max(value, *(high for _, high in both)),
                    )
        if interval is not None:
            self.intervals[name] = interval

    def _put_count(self, name: str, count: float, samples: Samples, spread: Spread) -> None:
        """Add a count: its interval is that of its share of all samples."""
        self.metrics[name] = float(count)
        n = spread.size or 0.0
        if not n > 0:
            return
        total = samples.total
        share = float(count) / total
        error = (
            total * math.sqrt(share * (1 - share) / n)
            if spread.error is None
            else float(spread.error)
        )
        if name in self.clusters.errors:
            error = self.clusters.errors[name]
            if error > 0:
                n = size_of_share(share, error / total, 0.0, n if samples.fractional else math.inf)
            else:
                n = self.clusters.informing(n, None, error)
        self.errors[name] = error
        ends = wilson(share, n, self.confidence_level, self.clusters.degrees(name))
        if ends is not None:
            self.intervals[name] = (ends[0] * total, ends[1] * total)


def _of_each(part: Any, values: Any) -> list[Any]:
    """Errors or sizes of each class; sizes may be of both sides, shape (K, 2)."""
    return list(part) if np.ndim(part) > 1 else np.broadcast_to(part, values.shape).tolist()
