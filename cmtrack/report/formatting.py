"""Numbers and names as people read them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from cmtrack.base import BaseEvaluation
from cmtrack.digits import count as count
from cmtrack.digits import fixed as fixed
from cmtrack.digits import in_words as in_words
from cmtrack.digits import interval as interval
from cmtrack.digits import level as level
from cmtrack.digits import minus as minus
from cmtrack.digits import named_value as named_value
from cmtrack.digits import number as number
from cmtrack.digits import p_equals as p_equals
from cmtrack.digits import p_text as p_text
from cmtrack.digits import percent as percent
from cmtrack.digits import percent_with_interval as percent_with_interval
from cmtrack.digits import plain_numbers as plain_numbers
from cmtrack.digits import points as points
from cmtrack.digits import rounded as rounded
from cmtrack.digits import signed as signed
from cmtrack.digits import signed_or_why as signed_or_why
from cmtrack.digits import two_places as two_places
from cmtrack.digits import two_places_interval as two_places_interval
from cmtrack.digits import with_interval as with_interval
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.catalog import BUILT_IN
from cmtrack.grouping import Label
from cmtrack.metrics.calibration import upper_bound
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.metric import Metric
from cmtrack.names import join_names as join_names
from cmtrack.names import quoted, some_of
from cmtrack.untrusted import for_page, one_line

SHORT = 60
BETWEEN = " · "
"""Between the numbers of a cell of MLflow's tables, where line breaks are lost."""
_MARKS = "\\`*_{}[]|#!"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}  # MLflow's pages show the backslash of a "\\<"

# -- names -----------------------------------------------------------------------------------------------------


def named(label: object, most: int = SHORT) -> str:
    """A label in a sentence, quoted."""
    return quoted(short(label, most))


def by_reason(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Names by their reason, of (name, reason); the most frequent reason first."""
    names: dict[str, list[str]] = {}
    for name, reason in pairs:
        names.setdefault(reason, []).append(name)
    return dict(sorted(names.items(), key=lambda item: -len(item[1])))


def in_row(names: Iterable[object], most: int) -> str:
    """``a, b, c``; of many names the first ``most`` and the number of the others."""
    return some_of([short(name, 40) for name in names], most)


def short(label: object, most: int = SHORT) -> str:
    """A label on one line, cut in its middle where it is long."""
    text = " ".join(str(label).split()) or "(empty)"
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"


def markdown_text(text: object) -> str:
    """A text on one line that Markdown shows as it is."""
    return for_page(
        "".join(
            f"\\{mark}" if mark in _MARKS else _ENTITIES.get(mark, mark) for mark in one_line(text)
        )
    )


def markdown_table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; its cells are Markdown already."""
    lines = [f"| {' | '.join(map(markdown_text, heads))} |", f"|{'---|' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in body)]


def split_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as MLflow's views read a table: names of columns, and the values by row; NaN is null."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    values = ((row.get(name) for name in names) for row in rows)
    data = [
        [None if isinstance(v, float) and not math.isfinite(v) else v for v in row]
        for row in values
    ]
    return json.dumps({"columns": names, "data": data}, ensure_ascii=False, separators=(",", ":"))


def short_id(run_id: str) -> str:
    """The beginning of a run's id."""
    return run_id[:8]


def capital(text: str) -> str:
    """A text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def counted(n: float, noun: str) -> str:
    """``1 sample``, ``1,200 samples``; fractional weights keep a decimal."""
    return (
        f"{count(n)} {noun}"
        if n == 1
        else f"{count(n)} {noun}{'es' if noun.endswith('s') else 's'}"
    )


def samples(evaluation: BaseEvaluation, weighed: bool = True) -> str:
    """The number of evaluated samples or documents, and what they weigh, if they were ``weighed``."""
    rows = evaluation.statistics.digest.rows
    weight = evaluation.n_samples
    if isinstance(evaluation, Evaluation) and evaluation.none is not None:
        return f"{counted(weight, 'span')} in {counted(rows, 'document')}"
    kind = evaluation.weights_are if isinstance(evaluation, Evaluation) and weighed else None
    return counted(rows, evaluation.unit) + (
        "" if kind is None else f" ({kind} weight {count(weight)})"
    )


# -- metrics ---------------------------------------------------------------------------------------------------


def metric_title(
    name: str, positive: Label | None = None, *, brief: bool = False, catalog: Catalog = BUILT_IN
) -> str:
    """``binary/recall`` as "recall of promoter"; ``brief`` for a table's head."""
    shown = "" if positive is None else short(positive, 16) if brief else quoted(positive)
    return catalog.title(name, (lambda label: short(label, 30)) if brief else quoted, shown, brief)


def shown(evaluation: BaseEvaluation, name: str, write: Callable[..., str] = with_interval) -> str:
    """A metric of an evaluation with its interval: ``0.712 [0.610, 0.804]``."""
    return write(evaluation.metrics[name], evaluation.intervals.get(name))


def metric_value(metric: Metric, value: float, ends: Interval | None) -> str:
    """A metric's value: a count, a number with the digits that its interval makes sensible, or the range of a 0."""
    if (
        math.isinf(metric.high)
        and not metric.better
        and metric.section not in ("calibration", "cost")
    ):
        return count(value)
    return _range_of_zero(metric, value, ends) or number(value, ends)


def missing_word(evaluation: BaseEvaluation, name: str) -> str:
    """The word for a metric without a finite value: "infinite" or "undefined"."""
    return "infinite" if name in evaluation.infinite else "undefined"


def missing_with_reason(evaluation: BaseEvaluation, name: str) -> str:
    """The word for a metric without a finite value and its reason: "infinite: 1 row gives …"."""
    word, reason = missing_word(evaluation, name), evaluation.undefined.get(name, "")
    if not reason or reason.startswith(f"{word}: "):
        return reason or word
    return f"{word}: {reason}"


def metric_interval(metric: Metric, value: float, ends: Interval | None) -> str:
    """The interval of a metric beside :func:`metric_value`; empty where the value is the interval already."""
    return "" if _range_of_zero(metric, value, ends) else interval(value, ends)


def _range_of_zero(metric: Metric, value: float, ends: Interval | None) -> str:
    """``0 to 0.070`` of a calibration error that is estimated as 0; else empty."""
    return upper_bound(value, ends) if metric.interval == "square" else ""
