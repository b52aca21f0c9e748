"""Spans of text, and the matching of predicted spans with actual spans."""

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
"""Number of positions that are reserved for documents without actual spans."""


class Span(NamedTuple):
    """A labelled part of a document from ``start`` (included) to ``end`` (excluded)."""

    document: Label
    start: float
    end: float
    label: Label


class Match(NamedTuple):
    """A matched pair of an actual and a predicted label; None for a missing partner."""

    document: Label
    actual: Label | None
    predicted: Label | None


def read_spans(name: str, spans: Any, columns: Sequence[str] = Span._fields) -> list[Span]:
    """Read spans from a frame or an iterable.

    ``name``: the argument's name in messages.
    ``spans``, frame, or iterable of (document, start, end, label).
    ``columns``, (str, str, str, str): the frame's columns.
    """
    rows: Iterable[Any] = spans
    if hasattr(spans, "columns"):
        missing = [column for column in columns if column not in list(spans.columns)]
        if len(columns) != 4 or missing:
            raise ValueError(
                f"{name} must have the columns {list(columns)} (columns= names them), got "
                f"{list(spans.columns)[:10]}"
            )
        values = (_column(f"{name}[{column!r}]", spans[column]) for column in columns)
        rows = zip(*values, strict=True)
    return [_read_span(name, i, row) for i, row in enumerate(rows)]


def _read_span(name: str, i: int, row: Any) -> Span:
    if isinstance(row, str) or not isinstance(row, Iterable) or len(values := tuple(row)) != 4:
        raise ValueError(
            f"{name} must contain (document, start, end, label), got {row!r:.60} at {i}"
        )
    # NumPy's scalars become plain Python values, whose types are checked below.
    fields: list[Any] = list(map(plain, values))
    span = Span(*fields)
    if any(map(is_missing, span)):
        raise ValueError(f"{name} must not have missing values, got {values!r:.80} at {i}")
    are_numbers = isinstance(span.start, (int, float)) and isinstance(span.end, (int, float))
    if not are_numbers or not span.start < span.end:
        raise ValueError(
            f"a span must end after it starts, got {span.start!r} to {span.end!r} in {name} at {i}"
        )
    return span


@dataclass(frozen=True, eq=False)
class SpanRows:
    """The evaluated documents, by which two evaluations of the same actual spans are paired.

    The number of matches depends on the predictions, so two runs are compared by document.
    Documents with actual spans are numbered in the order of their names. Other documents, which
    have only predicted spans, get one of 16,384 further places, which a hash of their name
    determines, so that their numbers are the same for every run.

    Attributes
    ----------
    matches : Predictions
        One row for each actual span, and one for each predicted span without a partner. The
        clusters of their design are the documents.
    size : int
        Number of places.
    """

    matches: Predictions
    size: int

    def __len__(self) -> int:
        return self.size

    def by_document(self, psi: FloatArray) -> FloatArray:
        """Return influence values of documents, shape (size,), from influence values of matches."""
        sums = np.bincount(self.documents, psi, self.size)
        return np.asarray(sums * (self.size / len(self.matches)), dtype=np.float64)

    @property
    def design(self) -> Design:
        """Design of the documents, which have no weights and no clusters."""
        return Design(self.size)

    @property
    def documents(self) -> IntArray:
        """Place of each match's document."""
        return self.matches.design.units


def places_of(
    documents: Sequence[Label], actual: Iterable[Span], match: str
) -> tuple[IntArray, LabelDigest]:
    """Return the place of each match's document in :class:`SpanRows`, and the spans' digest.

    The digest of the actual spans includes the kind of matching, because evaluations with different
    matching cannot be compared.
    """
    spans_by_document: defaultdict[Label, list[str]] = defaultdict(list)
    for span in actual:
        spans_by_document[span.document].append(
            f"{float(span.start)!r} {float(span.end)!r} {span.label}"
        )
    names = sorted(spans_by_document, key=str)
    place = {name: number for number, name in enumerate(names)}
    for name in dict.fromkeys(documents):
        if name not in place:
            place[name] = len(names) + int(label_hashes([name])[0] % np.uint64(OTHER_DOCUMENTS))
    texts = ["\n".join((match, str(name), *sorted(spans_by_document[name]))) for name in names]
    digest = LabelDigest.from_hashes(label_hashes(texts))
    return np.array([place[name] for name in documents], dtype=np.int64), digest


def match_spans(
    actual: Iterable[Span], predicted: Iterable[Span], match: str = "overlap"
) -> list[Match]:
    """Pair the spans of each document, one to one.

    Spans with the same start and end are paired first. Among them, spans with the same label come
    first. Then, unless ``match="exact"``, overlapping spans are paired, with the longest overlap
    first. Among overlaps of equal length, spans with the same label come first. All other spans
    have no partner. The results keep the order of the documents. Within a document, actual spans
    come before unmatched predicted spans.
    """
    documents: defaultdict[Label, tuple[list[Span], list[Span]]] = defaultdict(lambda: ([], []))
    for span in actual:
        documents[span.document][0].append(span)
    for span in predicted:
        documents[span.document][1].append(span)
    matches = []
    for document, sides in documents.items():
        matches += _match_in_document(document, *sides, is_exact=match == "exact")
    return matches


def _match_in_document(
    document: Label, actual: list[Span], predicted: list[Span], is_exact: bool
) -> list[Match]:
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for (has_other_extent, _, _), i, j in sorted(_candidates(actual, predicted)):
        if has_other_extent and is_exact:
            break
        if i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)
    matches = []
    for i, span in enumerate(actual):
        label = predicted[partner[i]].label if i in partner else None
        matches.append(Match(document, span.label, label))
    for j, span in enumerate(predicted):
        if j not in taken:
            matches.append(Match(document, None, span.label))
    return matches


def _candidates(
    actual: list[Span], predicted: list[Span]
) -> Iterable[tuple[tuple[bool, float, bool], int, int]]:
    """Yield pairs of overlapping spans with their sort key of extent, overlap and label."""
    order = sorted(range(len(predicted)), key=lambda j: predicted[j].start)
    starts = np.array([predicted[j].start for j in order])
    longest = max((span.end - span.start for span in predicted), default=0)
    for i, a in enumerate(actual):
        # A predicted span that starts before this point ends before the actual span starts.
        first, last = np.searchsorted(starts, [a.start - longest, a.end])
        for j in order[first:last]:
            b = predicted[j]
            overlap = min(a.end, b.end) - max(a.start, b.start)
            if overlap > 0:
                has_other_extent = (a.start, a.end) != (b.start, b.end)
                yield (has_other_extent, -overlap, a.label != b.label), i, j


def _column(name: str, values: Any) -> list[Any]:
    codes, distinct = encode_values(name, values)
    return [distinct[i] for i in codes]
