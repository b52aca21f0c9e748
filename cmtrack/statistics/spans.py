"""Spans of text: which predicted span stands for which actual one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cmtrack.grouping import Label
from cmtrack.grouping.step import plain
from cmtrack.statistics.design import Design
from cmtrack.statistics.digest import LabelDigest, label_hashes
from cmtrack.statistics.factorize import is_missing
from cmtrack.statistics.inputs import FloatArray, IntArray
from cmtrack.statistics.labels import encode_values
from cmtrack.statistics.predictions import Predictions

OTHER_DOCUMENTS = 1 << 14


class Span(NamedTuple):
    """A labelled part of a document, from ``start`` up to but without ``end``."""

    document: Label
    start: float
    end: float
    label: Label


class Match(NamedTuple):
    """A matched pair of a document's actual and predicted label; None without a partner."""

    document: Label
    actual: Label | None
    predicted: Label | None


def read_spans(name: str, spans: Any, columns: Sequence[str] = Span._fields) -> list[Span]:
    """Read spans.

    ``name``: the argument's name in error texts.
    ``spans``, frame, or iterable of (document, start, end, label).
    ``columns``, (str, str, str, str): the frame's columns.
    """
    if hasattr(spans, "columns"):
        missing = [column for column in columns if column not in list(spans.columns)]
        if len(columns) != 4 or missing:
            raise ValueError(
                f"{name} must have the columns {list(columns)} (columns= names them), got {list(spans.columns)[:10]}"
            )
        rows: Iterable[Any] = zip(
            *(_column(f"{name}[{c!r}]", spans[c]) for c in columns), strict=True
        )
    else:
        rows = spans
    out = []
    for place, row in enumerate(rows):
        if isinstance(row, str) or not isinstance(row, Iterable) or len(values := tuple(row)) != 4:
            raise ValueError(
                f"{name} must hold (document, start, end, label), got {row!r:.60} at {place}"
            )
        document, start, end, label = map(plain, values)
        if any(map(is_missing, (document, start, end, label))):
            raise ValueError(f"{name} must not have missing values, got {values!r:.80} at {place}")
        if (
            not isinstance(start, (int, float))
            or not isinstance(end, (int, float))
            or not start < end
        ):
            raise ValueError(
                f"a span must end after it starts, got {start!r} to {end!r} in {name} at {place}"
            )
        out.append(Span(document, start, end, label))
    return out


@dataclass(frozen=True, eq=False)
class SpanRows:
    """The judged documents: what pairs two evaluations of the same actual spans.

    How many matches there are depends on the predictions, so it is documents that two models share. Those with actual
    spans are numbered in the order of their names; the others, in which only spans were predicted, have 16,384 places
    behind them, by a hash of their names, so that they are the same for every model.

    Attributes
    ----------
    matches : Predictions
        A row for each actual span and each predicted one without a partner. The clusters of their design are the
        documents.
    size : int
        Number of places.
    """

    matches: Predictions
    size: int

    def __len__(self) -> int:
        return self.size

    def by_document(self, psi: FloatArray) -> FloatArray:
        """Influence values of documents, shape (size,), from those of matches."""
        return np.asarray(
            np.bincount(self.documents, psi, self.size) * (self.size / len(self.matches)),
            dtype=np.float64,
        )

    @property
    def design(self) -> Design:
        """The design of the documents: they have no weights and stand for themselves."""
        return Design(self.size)

    @property
    def documents(self) -> IntArray:
        """The place of each match's document."""
        return self.matches.design.units


def places_of(
    documents: Sequence[Label], actual: Iterable[Span], match: str
) -> tuple[IntArray, LabelDigest]:
    """The place of each match's document in :class:`SpanRows`, and the digest of all actual spans.

    How spans are matched is part of the digest: evaluations that match in two ways are of different things.
    """
    held: defaultdict[Label, list[str]] = defaultdict(list)
    for span in actual:
        held[span.document].append(f"{float(span.start)!r} {float(span.end)!r} {span.label}")
    names = sorted(held, key=str)
    place = {name: number for number, name in enumerate(names)}
    for name in dict.fromkeys(documents):
        if name not in place:
            place[name] = len(names) + int(label_hashes([name])[0] % np.uint64(OTHER_DOCUMENTS))
    texts = ["\n".join((match, str(name), *sorted(held[name]))) for name in names]
    return np.array([place[name] for name in documents], dtype=np.int64), LabelDigest.from_hashes(
        label_hashes(texts)
    )


def match_spans(
    actual: Iterable[Span], predicted: Iterable[Span], match: str = "overlap"
) -> list[Match]:
    """Pair the spans of each document, one to one.

    Spans of the same extent first, those of the same label before others; then, unless ``match="exact"``, spans that
    overlap, the longest overlap first and, of equal ones, the same label first. What is left has no partner. Documents,
    and within them actual before only predicted spans, stand in the order in which they came.
    """
    sides: dict[Label, tuple[list[Span], list[Span]]] = defaultdict(lambda: ([], []))
    for which, spans in enumerate((actual, predicted)):
        for span in spans:
            sides[span.document][which].append(span)
    exact = match == "exact"
    return [
        matched
        for document, (held, called) in sides.items()
        for matched in _match(document, held, called, exact)
    ]


def _match(document: Label, held: list[Span], called: list[Span], exact: bool) -> list[Match]:
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for (shifted, _, _), i, j in sorted(_candidates(held, called)):
        if shifted and exact:
            break
        if i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)
    out = [
        Match(document, span.label, called[partner[i]].label if i in partner else None)
        for i, span in enumerate(held)
    ]
    return out + [
        Match(document, None, span.label) for j, span in enumerate(called) if j not in taken
    ]


def _candidates(
    held: list[Span], called: list[Span]
) -> Iterable[tuple[tuple[bool, float, bool], int, int]]:
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
