"""Labelled spans as an ordinary evaluation with a class for "no span"."""

from __future__ import annotations

import hypothesis.strategies as st
import pandas as pd
import polars as pl
import pytest
from hypothesis import given

from cmtrack import evaluate_spans
from cmtrack.statistics.spans import Span, match_spans

COLUMNS = ["document", "start", "end", "label"]
TRUE = [(1, 0, 5, "drug"), (1, 8, 12, "dose"), (2, 0, 4, "drug"), (2, 10, 20, "form")]
PREDICTED = [(1, 0, 5, "drug"), (1, 9, 12, "form"), (2, 10, 14, "drug"), (2, 12, 20, "form"), (3, 0, 3, "dose")]


def test_matches_confusions_over_and_under_prediction():
    matrix = evaluate_spans(TRUE, PREDICTED).confusion_matrix
    assert matrix.labels == ("dose", "drug", "form", "none")
    # the dose is called a form; the second drug is missed; the form keeps the longer overlap; what is left is "none"
    assert matrix.counts.tolist() == [[0, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0], [1, 1, 0, 0]]


def test_the_same_extent_counts_before_a_longer_overlap_and_the_same_label_before_another():
    def pairs(actual, predicted):
        found = match_spans([Span(1, *a) for a in actual], [Span(1, *p) for p in predicted])
        return [(match.actual, match.predicted) for match in found]

    assert pairs([(0, 10, "a"), (0, 4, "b")], [(0, 4, "c")]) == [("a", None), ("b", "c")]
    assert pairs([(0, 4, "a")], [(0, 4, "b"), (0, 4, "a")]) == [("a", "a"), (None, "b")]
    assert pairs([(0, 10, "a")], [(0, 2, "a"), (3, 10, "b")]) == [("a", "b"), (None, "a")]
    assert pairs([(0, 4, "a")], [(4, 8, "a")]) == [("a", None), (None, "a")]  # they touch, and share nothing


def test_frames_give_the_same_as_tuples():
    expected = evaluate_spans(TRUE, PREDICTED)
    frames = [pd.DataFrame(spans, columns=COLUMNS) for spans in (TRUE, PREDICTED)]
    assert evaluate_spans(*frames) == expected
    assert evaluate_spans(*map(pl.from_pandas, frames)) == expected
    renamed = [frame.set_axis(list("defg"), axis=1) for frame in frames]
    assert evaluate_spans(*renamed, columns=tuple("defg")) == expected


def test_intervals_hold_for_documents():
    """Every document twice over as one: no more is known than from one copy."""
    once = [(d, *rest) for d, *rest in TRUE * 1], [(d, *rest) for d, *rest in PREDICTED]
    shifted = [[(d, s + 100, e + 100, label) for d, s, e, label in spans] for spans in once]
    single = evaluate_spans(*once)
    double = evaluate_spans(once[0] + shifted[0], once[1] + shifted[1])
    assert double.metrics["multiclass/accuracy"] == single.metrics["multiclass/accuracy"]
    assert double.standard_errors["multiclass/accuracy"] == pytest.approx(single.standard_errors["multiclass/accuracy"])


spans = st.lists(
    st.builds(
        lambda document, start, length, label: Span(document, start, start + length, label),
        st.integers(0, 2),
        st.integers(0, 12),
        st.integers(1, 6),
        st.sampled_from("abc"),
    ),
    max_size=12,
)


@given(spans, spans)
def test_every_span_stands_once_and_partners_overlap(actual, predicted):
    found = match_spans(actual, predicted)
    for side, given_spans in (("actual", actual), ("predicted", predicted)):
        labels = sorted((m.document, getattr(m, side)) for m in found if getattr(m, side) is not None)
        assert labels == sorted((span.document, span.label) for span in given_spans)
    unmatched = {(m.document, m.actual) for m in found if m.predicted is None}
    left = {(m.document, m.predicted) for m in found if m.actual is None}
    for a in actual:
        for p in predicted:
            same = a.document == p.document and (a.start, a.end) == (p.start, p.end)
            twins = [s for s in actual if s.document == a.document and s.label == a.label]
            others = [s for s in predicted if s.document == p.document and s.label == p.label]
            if same and len(twins) == len(others) == 1:  # of one extent: not both without a partner
                assert not ((a.document, a.label) in unmatched and (p.document, p.label) in left)


@pytest.mark.parametrize(
    ("true", "predicted", "options", "message"),
    [
        ([], [], {}, "at least one span"),
        ([(1, 5, 5, "a")], [], {}, "must end after it starts, got 5 to 5"),
        ([(1, 0, 5)], [], {}, r"must hold \(document, start, end, label\)"),
        (["spans"], [], {}, r"must hold \(document, start, end, label\)"),
        ([(1, 0, 5, None)], [], {}, "missing"),
        ([(1, 0, 5, "none")], [], {}, "choose another none="),
        ([(1, 0, 5, "a")], [(1, 0, 5, "b")], {"labels": ["a"]}, r"not in labels=: \['b'\]"),
        ([(1, 0, 5, "a"), (1, 0, 5, 1)], [], {}, "one kind"),
        (pd.DataFrame({"document": [1]}), [], {}, "columns= names them"),
    ],
)
def test_bad_spans_are_told(true, predicted, options, message):
    with pytest.raises(ValueError, match=message):
        evaluate_spans(true, predicted, **options)
