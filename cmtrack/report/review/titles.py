"""Names as people read them: metrics, criteria, lists of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from cmtrack.comparison.criterion import Criterion
from cmtrack.comparison.result import Comparison
from cmtrack.grouping import Label
from cmtrack.metrics.catalog import lookup
from cmtrack.metrics.metric import BETTER
from cmtrack.metrics.names import decode_label
from cmtrack.names import distinct, quoted
from cmtrack.report import words
from cmtrack.untrusted import one_line

WIDTH = 60  # characters of a run's name in sentences and tables
Say: TypeAlias = Callable[[str], str]


def metric_title(name: str, positive: Label | None = None, *, brief: bool = False) -> str:
    """``binary/recall`` as "recall of promoter"; ``brief`` for a table's head."""
    head, *rest = name.split("/")
    last = lookup(name).heading(brief)
    if head == "binary" or name == "prevalence/bias":
        if positive is None:
            return last
        return f"{last}, {words.short(positive, 16)}" if brief else f"{last} for {quoted(positive)}"
    if head == "class":
        return f"{last} of {_label(rest[0], brief)}"
    if head == "reduced":
        step, *group = (_label(part, brief) for part in rest[:-1])
        return f"{last} of {group[0]} ({step})" if group else f"{last} ({step})"
    if head == "spcc" and rest[0] == "ovr":
        label = _label(rest[1], brief)
        return f"sPCC of {label}" if brief else f"separation of {label} from the rest (sPCC)"
    if head == "spcc" and rest[0] == "binary":
        return "sPCC" if brief else "separation of the two groups (sPCC)"
    if head in ("prevalence", "family") and len(rest) > 1:
        return f"{last} of {_label(rest[0], brief)}"
    return last


def criterion_title(criterion: Criterion, positive: Label | None = None) -> str:
    """What runs are ranked by, in words."""
    titles = [metric_title(name, positive) for name in criterion.metrics]
    if criterion.pareto:
        return f"{and_list(titles, 6)} side by side (Pareto front)"
    if criterion.single:
        return titles[0]
    parts = (f"{weight:g} × {title}" for weight, title in zip(criterion.weights, titles, strict=True))
    return f"the weighted sum {' + '.join(parts)}"


def direction(criterion: Criterion) -> str:
    """Which values are better."""
    if criterion.pareto:
        ways = {lookup(name).better for name in criterion.metrics}
        if len(ways) == 1:
            return BETTER[ways.pop()]
        return "; ".join(f"{metric_title(n, brief=True)}: {BETTER[lookup(n).better]}" for n in criterion.metrics)
    return BETTER[criterion.direction]


def level(confidence_level: float) -> str:
    """``95 %``."""
    return f"{round(100 * confidence_level, 6):g} %"


def say_of(comparison: Comparison) -> Say:
    """The names of a comparison's runs as its sentences write them: quoted, shortened by what they have in common."""
    full = [entry.name for entry in comparison.standings]
    full += [stop.name for stop in comparison.failed] + [left.run.name for left in comparison.left_out]
    full += [run.name for run in comparison.passed_over]
    short = dict(zip(full, distinct(full, WIDTH), strict=True))
    return lambda name: quoted(short.get(name, name))


def and_list(texts: Sequence[str], most: int = 3) -> str:
    """ "A, B and C", or "A, B, C and 9 more"."""
    if len(texts) > most + 1:
        return f"{', '.join(texts[:most])} and {len(texts) - most} more"
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}" if texts else ""


def short_id(run_id: str) -> str:
    """The beginning of a run's id."""
    return run_id[:8]


def plain_number(value: Any) -> str:
    """A tie-breaker's value or a gate's: numbers with four digits, texts whole."""
    if value is None:
        return "none"
    if isinstance(value, float):
        return "undefined" if math.isnan(value) else f"{value:.4g}".replace("-", "−")
    return one_line(value)


def signed(value: float, ends: tuple[float, float] | None = None) -> str:
    """A difference with its sign, and its interval."""
    shown = words.with_interval(value, ends)
    return f"+{shown}" if value > 0 and not shown.startswith("0.000 ") else shown


def p_text(value: float) -> str:
    """A p-value or a probability of simulated draws."""
    if math.isnan(value):
        return "–"
    if value == 0 or value < 0.001:
        return "< 0.001"
    return f"{value:.3f}"


def p_equals(value: float) -> str:
    """ "p = 0.012" or "p < 0.001"."""
    shown = p_text(value)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"


def _label(encoded: str, brief: bool) -> str:
    label = decode_label(encoded)
    return words.short(label, 30) if brief else quoted(label)
