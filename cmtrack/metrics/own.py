"""Custom metrics: checked on entry, computed like the others, stored with their numbers.

A file holds no functions. An evaluation that is read where a function is not known keeps the
numbers that were written; whatever needs the function (other counts, rows) leaves the metric
undefined and says why.
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
_GIVE = "give extra_metrics=[...] to what loads or compares it, in the shell --metrics FILE.py:NAME"
UNKNOWN = f"its function is not known here, only the numbers that were written: {_GIVE}"

_LONGEST = 2000


@dataclass(frozen=True)
class Kept:
    """Stored numbers of a metric whose function is unknown.

    ``ends``, (float, float) or None: its interval at ``level``.
    ``reason``: why it is undefined, where it is.
    """

    value: float
    error: float | None
    ends: Interval | None
    level: float
    reason: str


def own_metrics(extra_metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """Check metrics that a caller gives."""
    if isinstance(extra_metrics, Metric):
        raise TypeError(
            f"extra_metrics must be a list of Metric, got the Metric {extra_metrics.name!r} itself"
        )
    if not isinstance(extra_metrics, Iterable):
        raise TypeError(
            f"extra_metrics must be a list of Metric, got {type(extra_metrics).__name__}"
        )
    metrics = tuple(extra_metrics)
    for metric in metrics:
        if not isinstance(metric, Metric):
            raise TypeError(f"extra_metrics must hold Metric objects, got {type(metric).__name__}")
        _check(metric)
        if not callable(metric.value):
            raise TypeError(
                f"the metric {metric.name!r} needs a function, got {metric.value!r:.40}"
            )
    names = [metric.name for metric in metrics]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"extra_metrics must have different names, got {twice!r} twice")
    return metrics


def near_or_own(name: str, known: Iterable[str]) -> str:
    """Return the metrics most like an unknown name, or how to pass a custom one."""
    return near_metric(name, known) or (
        f"; if it is a metric of your own, {_GIVE}" if may_be_own(name) else ""
    )


def _check(metric: Metric) -> None:
    name = metric.name
    if not isinstance(name, str) or not OWN_NAME.fullmatch(name):
        raise ValueError(
            f"a metric's name must be 'section/metric' of letters, digits, _ and -, got {name!r:.100}"
        )
    if metric.section in RESERVED:
        raise ValueError(
            f"the section {metric.section!r} is one of cmtrack's own: a metric needs another, such as "
            f"'custom/{name.split('/')[1]}', got {name!r}"
        )
    if metric.of not in ("counts", "binary"):
        raise ValueError(
            f"the metric {name!r} must be of 'counts' or 'binary', got {metric.of!r:.40}"
        )
    if metric.better and metric.better not in BETTER:
        raise ValueError(
            f"better of the metric {name!r} must be one of {[*BETTER, '']}, got {metric.better!r:.40}"
        )
    if metric.interval not in INTERVALS:
        raise ValueError(
            f"the interval of the metric {name!r} must be one of {INTERVALS}, got {metric.interval!r:.40}"
        )
    lowest, highest = RANGES.get(metric.interval, (-math.inf, math.inf))
    if not lowest <= metric.low < metric.high <= highest:
        raise ValueError(
            f"low and high of the metric {name!r} must lie between {lowest:g} and {highest:g} for the interval "
            f"{metric.interval!r}, low first, got {metric.low!r} and {metric.high!r}"
        )


def put_own(
    results: Results,
    metrics: Iterable[Metric],
    kept: Mapping[str, Kept],
    cells: Cells,
    six: SixCells | None,
) -> tuple[str, ...]:
    """Compute custom metrics: values, errors, intervals and warnings."""
    warnings = []
    for metric in metrics:
        samples = cells if metric.of == "counts" else six
        name = metric.name
        if name in kept:
            put_kept(results, metric, kept[name])
        elif metric.value is None:
            results.put_undefined(name, UNKNOWN)
        elif samples is None:
            results.put_undefined(name, "it is of two groups, and there are none")
        else:
            computed = results.compute(metric, samples, [name])
            value = computed.value
            slack = 1e-9 * max(1.0, abs(value))
            if math.isfinite(value) and not metric.low - slack <= value <= metric.high + slack:
                raise ValueError(
                    f"the metric {name!r} must lie between {metric.low:g} and {metric.high:g}, got {value!r}"
                )
            if results.clusters.n is not None and name not in results.clusters.errors:
                computed = computed._replace(spread=Spread())
            elif results.with_errors and math.isfinite(value) and computed.spread == Spread():
                warnings.append(
                    f"no standard error of {name}: taking the derivative by each of {len(samples.weight):,} counts "
                    "would take too long; give the metric its influence"
                )
            results.put(
                name, computed, reason=metric.reason or "its function gives no finite number"
            )
    return tuple(warnings)


def put_kept(results: Results, metric: Metric, kept: Kept) -> None:
    """Put stored numbers in place of computed ones."""
    name, value, error = metric.name, kept.value, kept.error
    for computed in (results.errors, results.intervals, results.sizes):
        computed.pop(name, None)
    results.metrics[name] = value
    if not math.isfinite(value):
        results.undefined[name] = kept.reason or "no reason is known"
        return
    if error is None:
        return
    results.errors[name] = error
    ends: Interval | None = kept.ends
    if kept.level != results.confidence_level:
        if metric.interval == "wilson":
            inside = 0 < value < 1 and error > 0
            ends = (
                wilson(value, value * (1 - value) / error**2, results.confidence_level)
                if inside
                else None
            )
        else:
            bounds = metric.low, metric.high
            ends = within_bounds(metric.interval, value, error, results.confidence_level, bounds)
    if ends is not None:
        results.intervals[name] = ends


def to_data(metrics: Iterable[Metric], results: Results) -> list[dict[str, Any]]:
    """Return declarations and numbers as plain data."""
    out = []
    for metric in metrics:
        name = metric.name
        ends, value = results.intervals.get(name), results.metrics[name]
        out.append(
            {
                "name": name,
                **{text: getattr(metric, text) for text in TEXTS},
                "low": metric.low if math.isfinite(metric.low) else None,
                "high": metric.high if math.isfinite(metric.high) else None,
                "headline": metric.headline,
                "value": value if math.isfinite(value) else None,
                "standard_error": results.errors.get(name),
                "ends": None if ends is None else list(ends),
                "undefined": results.undefined.get(name, ""),
            }
        )
    return out


def from_data(data: Any, level: float) -> tuple[tuple[Metric, ...], dict[str, Kept]]:
    """Read :func:`to_data`."""
    metrics, numbers = [], {}
    if not isinstance(data, list):
        raise ValueError(f"extra_metrics must be a list, got {data!r:.40}")
    for item in data:
        texts = {name: item[name] for name in TEXTS}
        if any(not isinstance(text, str) or len(text) > _LONGEST for text in texts.values()):
            raise ValueError(f"the words of a metric must be texts, got {texts!r:.80}")
        low, high = _number(item["low"], -math.inf), _number(item["high"], math.inf)
        metric = Metric(
            item["name"], None, low=low, high=high, headline=item["headline"] is True, **texts
        )
        _check(metric)
        if metric.name in numbers:
            raise ValueError(f"extra_metrics must have different names, got {metric.name!r} twice")
        value, ends = _number(item["value"], math.nan), item["ends"]
        if math.isfinite(value) and not low <= value <= high:
            raise ValueError(
                f"the metric {metric.name!r} must lie between {low:g} and {high:g}, got {value!r}"
            )
        error = (
            None if item["standard_error"] is None else _number(item["standard_error"], math.nan)
        )
        if error is not None and not error >= 0:
            raise ValueError(
                f"the standard error of {metric.name!r} must not be negative, got {error!r}"
            )
        between = None
        if ends is not None:
            first, last = ends
            between = _number(first, math.nan), _number(last, math.nan)
            if not between[0] <= between[1]:
                raise ValueError(
                    f"the interval of {metric.name!r} must have its lower end first, got {ends!r:.80}"
                )
        numbers[metric.name] = Kept(value, error, between, level, str(item["undefined"])[:_LONGEST])
        metrics.append(metric)
    return tuple(metrics), numbers


def _number(value: Any, missing: float) -> float:
    if value is None:
        return missing
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError(f"a number of a metric must be finite, got {value!r:.40}")
    return float(value)
