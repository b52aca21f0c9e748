"""``evaluate_spans``: labelled spans of text -> an ordinary :class:`Evaluation` with one class more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cmtrack.evaluation.from_arrays import evaluate
from cmtrack.evaluation.result import Evaluation
from cmtrack.grouping import Grouping, Label
from cmtrack.statistics.spans import Span, match_spans, read_spans


def evaluate_spans(
    true_spans: Any,
    predicted_spans: Any,
    *,
    none: Label = "none",
    labels: Sequence[Label] | None = None,
    grouping: Grouping | None = None,
    positive: Label | None = None,
    columns: tuple[str, str, str, str] = Span._fields,
    confidence_level: float = 0.95,
) -> Evaluation:
    """Judge labelled spans, such as entities in texts; over- and under-prediction are confusions with ``none``.

    Parameters
    ----------
    true_spans, predicted_spans : frame, or iterable of (document, start, end, label)
        A span reaches from ``start`` up to but without ``end``.
    none : label, default "none"
        The name of the extra class, the last one: in its row stand predicted spans without an actual one, in its column
        actual spans that were missed.
    labels : sequence, optional
        All labels in order, without ``none``; by default those seen, sorted.
    grouping, positive
        As in :func:`cmtrack.evaluate`; the groups must hold ``none`` as well.
    columns : (str, str, str, str), default ("document", "start", "end", "label")
        Of frames.
    confidence_level : float, default 0.95

    Returns
    -------
    Evaluation
        With a row for each actual span and each predicted one without a partner. Rows of one document belong together,
        so intervals hold for independent documents.

    Raises
    ------
    ValueError
        Wrong input; the text gives the rule and the value.

    Notes
    -----
    Spans are paired one to one: those of the same extent first, then by the longest overlap. How many rows there are
    depends on the predictions, so two models' evaluations are not of the same rows: they cannot be paired.

    This is the middle case of M. Falis, Hierarchical Confusion Matrices: predictions and labels are tied to spans of
    text, and an extra class stands for the absence of a label.
    """
    actual = read_spans("true_spans", true_spans, columns)
    predicted = read_spans("predicted_spans", predicted_spans, columns)
    matches = match_spans(actual, predicted)
    if not matches:
        raise ValueError("at least one span is needed, got none")
    seen = list(dict.fromkeys(span.label for span in (*actual, *predicted)))
    if str(none) in map(str, seen if labels is None else [*seen, *labels]):
        raise ValueError(f"no span may have the label {none!r}, which stands for no span: choose another none=")
    if labels is None:
        try:
            labels = sorted(seen)  # type: ignore[type-var]
        except TypeError:
            raise ValueError(f"labels must be of one kind that can be put in order, got {seen[:10]}") from None
    strange = [label for label in seen if label not in labels]
    if strange:
        raise ValueError(f"spans have labels that are not in labels=: {strange[:10]}")
    return evaluate(
        [none if match.actual is None else match.actual for match in matches],
        [none if match.predicted is None else match.predicted for match in matches],
        labels=[*labels, none],
        grouping=grouping,
        positive=positive,
        groups=[match.document for match in matches],
        confidence_level=confidence_level,
    )
