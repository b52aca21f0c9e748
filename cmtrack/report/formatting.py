"""Functions that format numbers and names as texts for people."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
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
from cmtrack.digits import signed_points as signed_points
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

LEAST_WITHOUT_COUNTS = 50
"""Smallest number of rows for which a share is written without its counts.

If there are fewer rows, a single row changes the share by more than 2 percentage points.
"""
SHORT = 60
BETWEEN = " · "
"""Separator between numbers in a cell of MLflow's tables, which do not show line breaks."""
_MARKS = "\\`*_{}[]|#!"
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""HTML entities for characters that a backslash cannot escape on MLflow's pages."""
_ESCAPED_INTERVAL = re.compile(r"\\\[([−∞\d.,%]+, [−∞\d.,%]+)\\\](?![(\[:])")
"""Matches an interval of numbers, which is not a link because no address follows."""

# -- names -----------------------------------------------------------------------------------------


def named(label: object, most: int = SHORT) -> str:
    """Return a label for use in a sentence: shortened, and in quotation marks."""
    return quoted(short(label, most))


def by_reason(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Group (name, reason) pairs by reason, and return them with the most frequent reason first."""
    names: dict[str, list[str]] = {}
    for name, reason in pairs:
        names.setdefault(reason, []).append(name)
    return dict(sorted(names.items(), key=lambda item: -len(item[1])))


def in_row(names: Iterable[object], most: int) -> str:
    """Return names as ``a, b, c``; after ``most`` names, only count the remaining names."""
    return some_of([short(name, 40) for name in names], most)


def short(label: object, most: int = SHORT) -> str:
    """Return a label on a single line; the middle of a long label is cut out."""
    text = " ".join(str(label).split()) or "(empty)"
    if len(text) <= most:
        return text
    start = most // 2
    end = most - start - 1
    return f"{text[:start]}…{text[-end:]}"


def percents_apart(first: float, second: float, ends: Interval | None) -> tuple[str, str]:
    """Return two shares in percent, with enough digits for readers who subtract them.

    The texts differ by the number that :func:`points` shows for the difference with this interval.
    """
    shown, _, _ = points(first - second, ends).partition(" ")
    places = len(shown.partition(".")[2])
    for more_places in range(places, places + 3):
        texts = [fixed(share, more_places, 2) for share in (first, second)]
        error = float(texts[0]) - float(texts[1]) - 100 * (first - second)
        adds_up = abs(error) < 0.5 * 10**-places
        if adds_up and not look_certain((first, second), texts):
            return f"{texts[0]}%", f"{texts[1]}%"
    return percent(first), percent(second)


def look_certain(values: Sequence[float], texts: Sequence[str]) -> bool:
    """Return whether a share other than 0 and 1 would be written as 0% or 100%."""
    return any(
        value not in (0, 1) and not 0 < float(text) < 100
        for value, text in zip(values, texts, strict=True)
    )


def needs_counts(hits: float, total: float) -> bool:
    """Return whether counts must accompany a share, because there are few unweighted rows."""
    if not total > 0:
        return False
    are_counts = hits == round(hits) and total == round(total)
    return are_counts and min(hits, total) < LEAST_WITHOUT_COUNTS


def markdown_text(text: object) -> str:
    """Return a text on a single line, escaped so that Markdown shows the text unchanged."""
    escaped = []
    for mark in one_line(text):
        if mark in _MARKS:
            escaped.append(f"\\{mark}")
        else:
            escaped.append(_ENTITIES.get(mark, mark))
    return for_page("".join(escaped))


def markdown_sentence(text: object) -> str:
    """Return a sentence as Markdown: escaped, except for the brackets of intervals."""
    return _ESCAPED_INTERVAL.sub(r"[\1]", markdown_text(text))


def markdown_code(text: object) -> str:
    """Return a text on a single line as code, which may be in a table."""
    code = one_line(text).replace("`", "'").replace("|", "\\|")
    return for_page(f"`{code}`")


def markdown_table(heads: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table from cells that are already escaped."""
    lines = [f"| {' | '.join(map(markdown_text, heads))} |", f"|{'---|' * len(heads)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in body)]


def split_json(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as JSON for MLflow's table views, with a list of columns and a list of rows."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    data = [[_finite_or_none(row.get(name)) for name in names] for row in rows]
    return json.dumps({"columns": names, "data": data}, ensure_ascii=False, separators=(",", ":"))


def _finite_or_none(value: Any) -> Any:
    """Return the value, or None if it is a number that JSON cannot represent."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def short_id(run_id: str) -> str:
    """Return the first 8 characters of a run's id."""
    return run_id[:8]


def capital(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def counted(n: float, noun: str) -> str:
    """Return a number with its noun, such as ``1,200 rows``; fractions have one decimal."""
    if n == 1:
        return f"{count(n)} {noun}"
    ending = "es" if noun.endswith(("s", "ch")) else "s"
    return f"{count(n)} {noun}{ending}"


def samples(evaluation: BaseEvaluation, weighed: bool = True) -> str:
    """Return the number of evaluated rows or documents and, if ``weighed``, their weight."""
    rows = evaluation.statistics.digest.rows
    weight = evaluation.n_samples
    text = counted(rows, evaluation.unit)
    if not isinstance(evaluation, Evaluation):
        return text
    if evaluation.none is not None:
        return f"{counted(weight, 'span')} in {counted(rows, 'document')}"
    if not weighed or evaluation.weights_are is None:
        return text
    return f"{text} ({evaluation.weights_are} weight {count(weight)})"


# -- metrics ---------------------------------------------------------------------------------------


def metric_title(
    name: str, positive: Label | None = None, *, brief: bool = False, catalog: Catalog = BUILT_IN
) -> str:
    """Return a metric's title, such as "recall for “promoter”".

    ``brief``: whether to return the shorter title for the heading of a table.
    """
    title_label: Callable[[object], str] = quoted
    shown_positive = "" if positive is None else quoted(positive)
    if brief:
        title_label = partial(short, most=30)
        shown_positive = "" if positive is None else short(positive, 16)
    return catalog.title(name, title_label, shown_positive, brief)


def shown(evaluation: BaseEvaluation, name: str, write: Callable[..., str] = with_interval) -> str:
    """Return a metric's value with its interval, such as ``0.712 [0.610, 0.804]``."""
    return write(evaluation.metrics[name], evaluation.intervals.get(name))


def metric_value(metric: Metric, value: float, ends: Interval | None) -> str:
    """Return a metric's value as text: a count, a number, or a range that starts at 0.

    The interval of a number decides with how many digits the number is written.
    """
    # A metric without an upper limit and without a better direction is a count of rows.
    is_unbounded = math.isinf(metric.high) and not metric.better
    if is_unbounded and metric.section not in ("calibration", "cost"):
        return count(value)
    return _range_of_zero(metric, value, ends) or number(value, ends)


def missing_word(evaluation: BaseEvaluation, name: str) -> str:
    """Return "infinite" or "undefined" for a metric that has no finite value."""
    return "infinite" if name in evaluation.infinite else "undefined"


def missing_with_reason(evaluation: BaseEvaluation, name: str) -> str:
    """Return "infinite" or "undefined", and the reason why a metric has no finite value.

    An example is "infinite: 1 row gives …".
    """
    word = missing_word(evaluation, name)
    reason = evaluation.undefined.get(name, "")
    if not reason:
        return word
    if reason.startswith(f"{word}: "):
        return reason
    return f"{word}: {reason}"


def metric_interval(metric: Metric, value: float, ends: Interval | None) -> str:
    """Return a metric's interval.

    The text is empty if :func:`metric_value` already shows a range.
    """
    return "" if _range_of_zero(metric, value, ends) else interval(value, ends)


def _range_of_zero(metric: Metric, value: float, ends: Interval | None) -> str:
    """Return a range such as ``0 to 0.070`` if a calibration error is estimated as 0."""
    return upper_bound(value, ends) if metric.interval == "square" else ""
