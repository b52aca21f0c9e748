"""Custom metrics, which are checked when you pass them, and stored with the computed numbers.

Files do not store functions. If you load an evaluation without the function of a custom metric, it
uses the stored numbers. To compute the metric from different counts or from rows, the function is
needed. If the function is missing, the metric is undefined, and the reason says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cmtrack.metrics.catalog import OWN_NAME, RESERVED, may_be_own
from cmtrack.metrics.cells import Cells, SixCells
from cmtrack.metrics.intervals import Interval, wilson, within_bounds
from cmtrack.metrics.metric import BETTER, RANGES, Metric, Spread
from cmtrack.metrics.names import near_metric
from cmtrack.metrics.results import Results

INTERVALS = ("wald", "wilson", "atanh", "logit", "log")
TEXTS = ("better", "interval", "of", "title", "brief", "source", "formula")
_GIVE = (
    "pass extra_metrics=[...] to load or compare it, or --extra-metrics FILE.py:NAME in the shell"
)
UNKNOWN = f"its function is unknown here, so only the stored numbers are available; {_GIVE}"

_LONGEST = 2000
"""Largest number of characters in a stored text. An edited file may contain a longer text."""


@dataclass(frozen=True)
class Kept:
    """The stored numbers of a metric whose function is unknown.

    ``ends``, (float, float) or None: the interval of the metric at the confidence level ``level``.
    ``reason``: the reason why the metric is undefined. It is empty if the metric is defined.
    """

    value: float
    error: float | None
    ends: Interval | None
    level: float
    reason: str


def own_metrics(extra_metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Check custom metrics and return them as a tuple."""
    if isinstance(extra_metrics, Metric):
        raise TypeError(
            "extra_metrics must be a list of Metric objects, got the Metric "
            f"{extra_metrics.name!r} itself"
        )
    if not isinstance(extra_metrics, Iterable):
        raise TypeError(
            f"extra_metrics must be a list of Metric objects, got {type(extra_metrics).__name__}"
        )
    metrics: dict[str, Metric] = {}
    twice = []
    for metric in extra_metrics:
        if not isinstance(metric, Metric):
            raise TypeError(
                f"extra_metrics must contain Metric objects, got {type(metric).__name__}"
            )
        _check(metric)
        if not callable(metric.value):
            raise TypeError(
                f"the metric {metric.name!r} needs a function, got {metric.value!r:.40}"
            )
        if metric.name in metrics:
            twice.append(metric.name)
        metrics[metric.name] = metric
    if twice:
        raise ValueError(f"extra_metrics must have different names, got {twice[0]!r} twice")
    return tuple(metrics.values())


def near_or_own(name: str, known: Iterable[str]) -> str:
    """Return a hint with similar metric names, or with the way to pass a custom metric."""
    near = near_metric(name, known)
    if near or not may_be_own(name):
        return near
    return f"; if it is a custom metric, {_GIVE}"


def _check(metric: Metric) -> None:
    name = metric.name
    if not isinstance(name, str) or not OWN_NAME.fullmatch(name):
        raise ValueError(
            "a metric's name must be 'section/metric' of letters, digits, _ and -, "
            f"got {name!r:.100}"
        )
    if metric.section in RESERVED:
        raise ValueError(
            f"the section {metric.section!r} is reserved for built-in metrics; use another one, "
            f"such as 'custom/{name.split('/')[1]}', got {name!r}"
        )
    if metric.of not in ("counts", "binary"):
        raise ValueError(
            f"the metric {name!r} must be computed from 'counts' or 'binary' (of=), got "
            f"{metric.of!r:.40}"
        )
    if metric.better and metric.better not in BETTER:
        raise ValueError(
            f"better of the metric {name!r} must be one of {[*BETTER, '']}, "
            f"got {metric.better!r:.40}"
        )
    if metric.interval not in INTERVALS:
        raise ValueError(
            f"the interval of the metric {name!r} must be one of {INTERVALS}, "
            f"got {metric.interval!r:.40}"
        )
    lowest, highest = RANGES.get(metric.interval, (-math.inf, math.inf))
    if not lowest <= metric.low < metric.high <= highest:
        raise ValueError(
            f"low and high of the metric {name!r} must be between {lowest:g} and {highest:g} "
            f"for the interval {metric.interval!r}, low first, got {metric.low!r} and "
            f"{metric.high!r}"
        )


def put_own(
    results: Results,
    metrics: Iterable[Metric],
    kept: Mapping[str, Kept],
    cells: Cells,
    six: SixCells | None,
) -> tuple[str, ...]:
    """Compute the values, standard errors and intervals of custom metrics, and return warnings."""
    warnings = []
    for metric in metrics:
        samples = cells if metric.of == "counts" else six
        name = metric.name
        if name in kept:
            put_kept(results, metric, kept[name])
        elif metric.value is None:
            results.put_undefined(name, UNKNOWN)
        elif samples is None:
            results.put_undefined(name, "it needs two groups, and there are none")
        else:
            computed = results.compute(metric, samples, [name])
            value = computed.value
            # Rounding may put a value slightly outside its range.
            _check_range(metric, value, 1e-9 * max(1.0, abs(value)))
            if results.clusters.n is not None and name not in results.clusters.errors:
                computed = computed._replace(spread=Spread())
            elif results.with_errors and math.isfinite(value) and computed.spread == Spread():
                warnings.append(
                    f"no standard error of {name}: the derivatives with respect to the "
                    f"{len(samples.weight):,} counts would take too long; pass the metric's "
                    "influence"
                )
            reason = metric.reason or "its function does not return a finite number"
            results.put(name, computed, reason=reason)
    return tuple(warnings)


def _check_range(metric: Metric, value: float, slack: float = 0.0) -> None:
    low = metric.low
    high = metric.high
    if math.isfinite(value) and not low - slack <= value <= high + slack:
        raise ValueError(
            f"the metric {metric.name!r} must be between {low:g} and {high:g}, got {value!r}"
        )


def put_kept(results: Results, metric: Metric, kept: Kept) -> None:
    """Add the stored numbers of a metric to the results, instead of computed numbers."""
    name = metric.name
    value = kept.value
    for computed in (results.errors, results.intervals, results.sizes):
        computed.pop(name, None)
    results.metrics[name] = value
    if not math.isfinite(value):
        results.undefined[name] = kept.reason or "the reason is unknown"
        return
    if kept.error is None:
        return
    results.errors[name] = kept.error
    ends = kept.ends
    if kept.level != results.confidence_level:
        ends = _interval_at(metric, value, kept.error, results.confidence_level)
    if ends is not None:
        results.intervals[name] = ends


def _interval_at(metric: Metric, value: float, error: float, level: float) -> Interval | None:
    """Compute an interval from stored numbers for a different level than the stored one."""
    if metric.interval != "wilson":
        return within_bounds(metric.interval, value, error, level, (metric.low, metric.high))
    # The file does not contain the effective size of a share, which is needed if the standard error
    # is 0.
    if not 0 < value < 1 or not error > 0:
        return None
    return wilson(value, value * (1 - value) / error**2, level)


def to_data(metrics: Iterable[Metric], results: Results) -> list[dict[str, Any]]:
    """Convert the declarations and numbers of custom metrics to plain data."""
    items = []
    for metric in metrics:
        name = metric.name
        ends = results.intervals.get(name)
        items.append(
            {
                "name": name,
                **{text: getattr(metric, text) for text in TEXTS},
                "low": _finite(metric.low),
                "high": _finite(metric.high),
                "headline": metric.headline,
                "value": _finite(results.metrics[name]),
                "standard_error": results.errors.get(name),
                "ends": None if ends is None else list(ends),
                "undefined": results.undefined.get(name, ""),
            }
        )
    return items


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def from_data(data: Any, level: float) -> tuple[tuple[Metric, ...], dict[str, Kept]]:
    """Read the declarations and numbers that :func:`to_data` returned."""
    if not isinstance(data, list):
        raise ValueError(f"extra_metrics must be a list, got {data!r:.40}")
    metrics = []
    numbers: dict[str, Kept] = {}
    for item in data:
        metric = _read_declaration(item)
        if metric.name in numbers:
            raise ValueError(f"extra_metrics must have different names, got {metric.name!r} twice")
        numbers[metric.name] = _read_numbers(item, metric, level)
        metrics.append(metric)
    return tuple(metrics), numbers


def _read_declaration(item: Any) -> Metric:
    texts = {name: item[name] for name in TEXTS}
    if any(not isinstance(text, str) or len(text) > _LONGEST for text in texts.values()):
        raise ValueError(f"the descriptions of a metric must be strings, got {texts!r:.80}")
    low = _number(item["low"], -math.inf)
    high = _number(item["high"], math.inf)
    headline = item["headline"] is True
    metric = Metric(item["name"], None, low=low, high=high, headline=headline, **texts)
    _check(metric)
    return metric


def _read_numbers(item: Any, metric: Metric, level: float) -> Kept:
    value = _number(item["value"], math.nan)
    _check_range(metric, value)
    error = None
    if item["standard_error"] is not None:
        error = _number(item["standard_error"], math.nan)
        if not error >= 0:
            raise ValueError(
                f"the standard error of {metric.name!r} must not be negative, got {error!r}"
            )
    interval = None
    if item["ends"] is not None:
        first, last = item["ends"]
        interval = (_number(first, math.nan), _number(last, math.nan))
        if not interval[0] <= interval[1]:
            raise ValueError(
                f"the interval of {metric.name!r} must start with its lower limit, got "
                f"{item['ends']!r:.80}"
            )
    return Kept(value, error, interval, level, str(item["undefined"])[:_LONGEST])


def _number(value: Any, missing: float) -> float:
    if value is None:
        return missing
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"a number of a metric must be finite, got {value!r:.40}")
    return float(value)
