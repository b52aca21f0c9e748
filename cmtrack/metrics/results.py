"""Collecting numbers: values by name, standard errors, intervals, and why some are undefined."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from cmtrack.metrics.catalog import lookup
from cmtrack.metrics.cells import Weighted
from cmtrack.metrics.intervals import ROUNDING, Interval, on_scale, settled, wilson
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.names import near


class ByName(dict[str, Any]):
    """Values by a metric's full name; of a name that is not there, those most like it are named.

    A plain dict otherwise: equal to one, written as one, and the pickle of one.
    """

    def __init__(self, values: Mapping[str, Any], what: str = "metric") -> None:
        super().__init__(values)
        self._what = what

    def __missing__(self, name: object) -> Any:
        raise KeyError(f"there is no {self._what} {name!r}{near(str(name), self)}")

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


@dataclass
class Results:
    """Collects values by full name; finite ones get the standard error and the interval that their scale allows.

    ``overrides`` are standard errors that know more than the statistics do (rows that belong together). Without
    ``with_errors`` metrics that bring their functions get their values only.
    """

    confidence_level: float = 0.95
    overrides: Mapping[str, float] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    intervals: dict[str, Interval] = field(default_factory=dict)
    undefined: dict[str, str] = field(default_factory=dict)
    with_errors: bool = True

    def put_metric(self, metric: Metric, argument: Any, cells: Weighted, name: str = "") -> None:
        """Add a metric of counts by its function.

        Parameters
        ----------
        metric : Metric
        argument
            What its function is given.
        cells : Weighted
            The cells that the argument was made of.
        name : str, optional
            The full name, where the declaration stands for several.
        """
        value, error, n = metric.number(argument), None, None
        if self.with_errors and math.isfinite(value):
            error, n = metric.spread(argument, cells, value)
        self.put(name or metric.name, value, error=error, n=n, metric=metric)

    def put(
        self,
        name: str,
        value: float,
        *,
        error: float | None = None,
        n: float | None = None,
        reason: str = "",
        metric: Metric | None = None,
    ) -> None:
        """Add a metric.

        Parameters
        ----------
        error : float, optional
            Its standard error.
        n : float, optional
            For proportions, the (effective) size of the denominator.
        reason : str
            Why it is undefined, if it is; by default what the metric says.
        metric : Metric, optional
            Its declaration; by default that of its name.
        """
        metric = lookup(name) if metric is None else metric
        value = settled(float(value), metric.low, metric.high)
        self.metrics[name] = value
        if not math.isfinite(value):
            self.metrics[name] = math.nan
            self.undefined[name] = reason or metric.reason or "its denominator is zero"
            return
        spread = value * (1 - value)
        if metric.interval == "wilson" and n:
            error = math.sqrt(max(spread, 0.0) / n)
        if name in self.overrides:
            error = self.overrides[name]
            n = spread / error**2 if error > 0 else n
        if error is None or not math.isfinite(error):
            return
        if error <= ROUNDING and value in (metric.low, 0.0, metric.high):
            error = 0.0
        self.errors[name] = float(error)
        interval = None
        if metric.interval == "wilson":
            interval = wilson(value, n, self.confidence_level) if n is not None else None
        elif metric.interval in ("wald", "atanh", "logit"):
            interval = on_scale(metric.interval, value, error, self.confidence_level, (metric.low, metric.high))
        if interval is not None:
            self.intervals[name] = interval

    def keep(self, sections: Collection[str]) -> None:
        """Forget the metrics of other sections."""
        for numbers in (self.metrics, self.errors, self.intervals, self.undefined):
            for name in [name for name in numbers if name.split("/")[0] not in sections]:
                del numbers[name]

    def put_count(self, name: str, count: float, total: float, effective: float | None = None) -> None:
        """Add a count of ``total`` samples: its interval is that of its share."""
        self.metrics[name] = float(count)
        n = total if effective is None else effective
        if not n > 0:
            return
        share = float(count) / total
        error = total * math.sqrt(share * (1 - share) / n)
        if name in self.overrides:
            error = self.overrides[name]
            n = share * (1 - share) * total**2 / error**2 if error > 0 else n
        self.errors[name] = error
        ends = wilson(share, n, self.confidence_level)
        if ends is not None:
            self.intervals[name] = (ends[0] * total, ends[1] * total)

    def put_ends(self, name: str, value: float, ends: Interval, reason: str = "") -> None:
        """Add a metric whose interval is already known."""
        self.put(name, value, reason=reason)
        value = self.metrics[name]
        if math.isfinite(value) and all(map(math.isfinite, ends)):
            self.intervals[name] = (min(float(ends[0]), value), max(float(ends[1]), value))
