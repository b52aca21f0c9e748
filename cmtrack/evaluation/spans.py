"""``evaluate_spans``: the function that turns labelled spans into an :class:`Evaluation`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cmtrack.evaluation.from_arrays import evaluate
from cmtrack.evaluation.result import Evaluation
from cmtrack.grouping import Grouping, Label
from cmtrack.metrics.metric import Metric
from cmtrack.statistics.inputs import listed
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.spans import (
    OTHER_DOCUMENTS,
    Span,
    SpanRows,
    match_spans,
    places_of,
    read_spans,
)


def evaluate_spans(
    true_spans: Any,
    predicted_spans: Any,
    *,
    match: str = "overlap",
    none: Label = "none",
    labels: Sequence[Label] | None = None,
    grouping: Grouping | None = None,
    positive: Label | None = None,
    columns: tuple[str, str, str, str] = Span._fields,
    confidence_level: float = 0.95,
    extra_metrics: Sequence[Metric] = (),
) -> Evaluation:
    """Evaluate labelled spans, such as entities in texts.

    Missed spans, and predicted spans that match no actual span, are counted as confusions with the
    extra class ``none``.

    Averages are taken over the labels of spans. The section ``spans/`` contains the micro and macro
    averages that are usual for span labelling. If ``match="exact"``, the micro averages and the
    class values of precision, recall and F1 equal the results of seqeval.

    Parameters
    ----------
    true_spans, predicted_spans : frame, or iterable of (document, start, end, label)
        Spans as (document, start, end, label). A span starts at ``start`` and ends before ``end``.
    match : "overlap" or "exact", default "overlap"
        Rule for pairing predicted and actual spans: two spans must overlap, or start and end at the
        same positions.
    none : label, default "none"
        The name of the extra class, which is the last class. In the confusion matrix, the row of
        ``none`` counts predicted spans that match no actual span, and the column of ``none`` counts
        missed spans.
    labels : sequence, optional
        All labels in order, without ``none``. By default, the labels that occur in the spans, in
        sorted order.
    grouping, positive
        As in :func:`cmtrack.evaluate`. The groups must also include ``none``.
    columns : (str, str, str, str), default ("document", "start", "end", "label")
        The names of the columns in frames.
    confidence_level : float, default 0.95
    extra_metrics : sequence of Metric, optional
        As in :func:`cmtrack.evaluate`. Metrics computed from counts receive the counts of all
        labels, of which ``none`` is the last.

    Returns
    -------
    Evaluation
        The rows are all actual spans, and all predicted spans that match no actual span. Intervals
        assume independent documents, not independent rows. Evaluations with the same actual spans
        and the same ``match`` are paired by document.

    Raises
    ------
    ValueError
        If the input is invalid. The error message states the violated rule and the invalid value.

    Notes
    -----
    Spans are paired one to one. Spans with the same start and end are paired first, followed by the
    spans with the longest overlap. ``none`` is not a real class, because nobody counts the places
    where there is neither an actual nor a predicted span. Therefore the recall of ``none`` and
    agreement beyond chance (kappa, Matthews) are not defined.

    Labelled spans are the middle case in Falis, Hierarchical Confusion Matrices, in which
    predictions and labels belong to spans of text, and an extra class represents the absence of a
    label.

    Examples
    --------
    >>> from cmtrack import evaluate_spans
    >>> actual = [("a", 0, 5, "person"), ("a", 9, 14, "place"), ("b", 3, 7, "place")]
    >>> predicted = [("a", 0, 5, "person"), ("a", 10, 14, "person")]
    >>> evaluation = evaluate_spans(actual, predicted)
    >>> evaluation.confusion_matrix.to_frame()
    predicted  person  place  none
    actual
    person          1      0     0
    place           1      0     1
    none            0      0     0
    >>> evaluation.metrics["spans/f1_micro"]
    0.4
    """
    if match not in ("overlap", "exact"):
        raise ValueError(f"match must be 'overlap' or 'exact', got {match!r}")
    actual = read_spans("true_spans", true_spans, columns)
    predicted = read_spans("predicted_spans", predicted_spans, columns)
    matches = match_spans(actual, predicted, match)
    if not matches:
        raise ValueError("evaluation needs at least one span, got none")
    seen = list(dict.fromkeys(span.label for span in (*actual, *predicted)))
    names = seen if labels is None else [*seen, *labels]
    if str(none) in [str(name) for name in names]:
        raise ValueError(
            f'no span may have the label {none!r}, which means "no span": choose another none='
        )
    if labels is None:
        try:
            labels = sorted(seen)  # type: ignore[type-var]
        except TypeError:
            raise ValueError(
                f"labels must be of one type that can be sorted, got {listed(seen)}"
            ) from None
    strange = [label for label in seen if label not in labels]
    if strange:
        raise ValueError(
            f"labels must include every label of the spans, {listed(strange)} not in "
            f"{listed(list(labels), 20)}"
        )
    plain = evaluate(
        [none if pair.actual is None else pair.actual for pair in matches],
        [none if pair.predicted is None else pair.predicted for pair in matches],
        labels=[*labels, none],
        grouping=grouping,
        positive=positive,
        confidence_level=confidence_level,
        extra_metrics=extra_metrics,
    )
    if not isinstance(plain.rows, Predictions):
        raise TypeError("an evaluation of arrays must have rows")
    places, digest = places_of([pair.document for pair in matches], actual, match)
    design = replace(plain.rows.design, clusters=places)
    rows = SpanRows(replace(plain.rows, design=design), digest.rows + OTHER_DOCUMENTS)
    # Without groups, no label is positive by default: `none` is the last of two labels, but not a
    # real class.
    asked = plain.asking(positive=None if grouping is None else plain.positive, none=none)
    statistics = replace(plain.statistics, digest=digest)
    return replace(asked, statistics=statistics, rows=rows).with_cluster_errors()
