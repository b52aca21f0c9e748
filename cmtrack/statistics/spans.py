"""Spans of text: which predicted span stands for which actual one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.labels import encode_values


class Span(NamedTuple):
    """A labelled part of a document, from ``start`` up to but without ``end``."""

    document: Label
    start: float
    end: float
    label: Label


class Match(NamedTuple):
    """A document's actual and predicted label that stand for each other; None where there is no partner."""

    document: Label
    actual: Label | None
    predicted: Label | None


def read_spans(name: str, spans: Any, columns: Sequence[str] = Span._fields) -> list[Span]:
    """Read spans.

    Parameters
    ----------
    name : str
        The argument's name in error texts.
    spans : frame, or iterable of (document, start, end, label)
    columns : (str, str, str, str)
        The frame's columns.

    Raises
    ------
    ValueError
        If a column or a value is missing, a span is no such tuple, or does not end after it starts.
    """
    if hasattr(spans, "columns"):
        missing = [column for column in columns if column not in list(spans.columns)]
        if len(columns) != 4 or missing:
            raise ValueError(
                f"{name} must have the columns {list(columns)} (columns= names them), got {list(spans.columns)[:10]}"
            )
        rows: Iterable[Any] = zip(*(_column(f"{name}[{c!r}]", spans[c]) for c in columns), strict=True)
    else:
        rows = spans
    out = []
    for place, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, Iterable) or len(values := tuple(row)) != 4:
            raise ValueError(f"{name} must hold (document, start, end, label), got {row!r:.60} at {place}")
        document, start, end, label = map(plain, values)
        if any(_missing(value) for value in (document, start, end, label)):
            raise ValueError(f"{name} must not have missing values, got {values!r:.80} at {place}")
        if not isinstance(start, (int, float)) or not isinstance(end, (int, float)) or not start < end:
            raise ValueError(f"a span must end after it starts, got {start!r} to {end!r} in {name} at {place}")
        out.append(Span(document, start, end, label))
    return out


def match_spans(actual: Iterable[Span], predicted: Iterable[Span]) -> list[Match]:
    """Pair the spans of each document, one to one.

    Spans of the same extent first, those of the same label before others; then spans that overlap, the longest overlap
    first and, of equal ones, the same label first. What is left has no partner. Documents, and within them actual
    before only predicted spans, stand in the order in which they came.
    """
    sides: dict[Label, tuple[list[Span], list[Span]]] = defaultdict(lambda: ([], []))
    for which, spans in enumerate((actual, predicted)):
        for span in spans:
            sides[span.document][which].append(span)
    return [match for document, (held, called) in sides.items() for match in _match(document, held, called)]


def _match(document: Label, held: list[Span], called: list[Span]) -> list[Match]:
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in sorted(_candidates(held, called)):
        if i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)
    out = [
        Match(document, span.label, called[partner[i]].label if i in partner else None) for i, span in enumerate(held)
    ]
    return out + [Match(document, None, span.label) for j, span in enumerate(called) if j not in taken]


def _candidates(held: list[Span], called: list[Span]) -> Iterable[tuple[tuple[bool, float, bool], int, int]]:
    """Pairs that overlap, with what they are sorted by."""
    order = sorted(range(len(called)), key=lambda j: called[j].start)
    starts = np.array([called[j].start for j in order])
    longest = max((span.end - span.start for span in called), default=0)
    for i, a in enumerate(held):
        first, last = np.searchsorted(starts, [a.start - longest, a.end])
        for j in order[first:last]:
            b = called[j]
            overlap = min(a.end, b.end) - max(a.start, b.start)
            if overlap > 0:
                exact = (a.start, a.end) == (b.start, b.end)
                yield (not exact, -overlap, a.label != b.label), i, j


def _column(name: str, values: Any) -> list[Any]:
    codes, distinct = encode_values(name, values)
    return [distinct[i] for i in codes]


def _missing(value: Any) -> bool:
    return value is None or value != value
