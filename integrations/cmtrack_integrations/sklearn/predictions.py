"""Predictions of a fitted classifier: labels, and probabilities if it returns them.

Start with :func:`predict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.spec import unless_decided
from cmtrack.grouping import Label
from cmtrack.statistics.inputs import FloatArray, listed


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of n rows.

    Attributes
    ----------
    y_pred : ndarray of shape (n,)
        Labels that ``predict`` returned. If the classifier uses a tuned threshold, a predicted
        label is not always the most probable class.
    y_prob : ndarray of shape (n, K) or None
        Probabilities in the order of ``labels``.
    y_score : ndarray of shape (n, K) or None
        Decision values in the order of ``labels``. None if the classifier returns probabilities.
    labels : tuple of length K or None
        The classes of the classifier, and additional classes that occur in the rows.
    notes : tuple of str
        Notes that say what the classifier could not return, and why.
    model : classifier or None
        The model that made the predictions, if it is kept.
    """

    y_pred: Any
    y_prob: FloatArray | None
    labels: tuple[Label, ...] | None
    notes: tuple[str, ...] = ()
    model: Any = None
    y_score: FloatArray | None = None

    def arguments(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments for ``evaluate``; omit the labels if ``options`` sets a threshold."""
        return {
            "y_pred": unless_decided(self.y_pred, options),
            "y_prob": self.y_prob,
            "y_score": self.y_score,
            "labels": self.labels,
        }


def with_notes(evaluation: Evaluation, notes: tuple[str, ...]) -> Evaluation:
    """Return the evaluation with additional notes."""
    if not notes:
        return evaluation
    return replace(evaluation, remarks=(*evaluation.remarks, *notes))


def predict(
    estimator: Any, X: Any, y: Any = None, labels: Sequence[Label] | None = None
) -> Predicted:
    """Predict labels and probabilities with a fitted classifier, pipeline or search.

    If a class in ``y`` or ``labels`` did not occur in the training rows, its probability is 0. If
    the classifier was fitted on class numbers 0 to K - 1, their names come from ``labels``.

    Raises
    ------
    ValueError
        If the classifier returns several outputs, or if one of its classes is not in ``labels``.
    """
    class_names = encoded_names(estimator, labels)
    order = known_labels(estimator, y, labels)
    y_pred = np.asarray(estimator.predict(X))
    if class_names is not None and y_pred.ndim == 1:
        y_pred = class_names[y_pred.astype(np.int64)]
    if y_pred.ndim == 2 and y_pred.shape[1] == 1:
        y_pred = y_pred[:, 0]
    if y_pred.ndim != 1:
        raise ValueError(
            f"predict must return one label per row, got shape {y_pred.shape}: models with "
            "several outputs are not supported"
        )
    if not has_probabilities(estimator):
        scores = decision_values(estimator, X, order)
        note = no_probabilities(estimator, scores is not None)
        return Predicted(y_pred, None, order, (note,), y_score=scores)
    return Predicted(y_pred, probabilities(estimator, X, order), order)


def has_probabilities(estimator: Any) -> bool:
    """Return whether the classifier provides ``predict_proba`` in its current configuration."""
    return hasattr(estimator, "predict_proba")


def decision_values(estimator: Any, X: Any, labels: Sequence[Label] | None) -> FloatArray | None:
    """Return decision values (n, K) in the order of ``labels``; None if a label has no such value.

    A binary classifier returns one value per row. This value is used as the score of the second
    class, and the negated value as the score of the first class.
    """
    classes = _fitted_classes(estimator)
    if classes is None or not hasattr(estimator, "decision_function") or _has_pairs(estimator):
        return None
    values = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if values.ndim == 1 and len(classes) == 2:
        values = np.stack((-values, values), axis=1)
    if values.shape[1:] != (len(classes),):
        return None
    if encoded_names(estimator, labels) is not None:
        return values
    if labels is not None and set(classes) != set(labels):
        return None
    return align(values, classes, labels)


def _has_pairs(estimator: Any) -> bool:
    """Return whether the decision values compare pairs of classes, as can happen with an SVC."""
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    return any(
        name.endswith("decision_function_shape") and value == "ovo"
        for name, value in parameters.items()
    )


def probabilities(estimator: Any, X: Any, labels: Sequence[Label] | None) -> FloatArray:
    """Return probabilities of shape (n, K) in the order of ``labels``."""
    columns = estimator.predict_proba(X)
    if isinstance(columns, list):
        raise ValueError(
            f"predict_proba must return one array, got a list of {len(columns)}: models with "
            "several outputs are not supported"
        )
    values = np.asarray(columns, dtype=np.float64)
    classes = getattr(estimator, "classes_", None)
    if classes is None or encoded_names(estimator, labels) is not None:
        return values
    return align(values, np.asarray(classes).tolist(), labels)


def align(values: FloatArray, classes: Sequence[Any], labels: Sequence[Label] | None) -> FloatArray:
    """Reorder the classifier's columns to ``labels``; unknown classes get columns of zeros."""
    if labels is None or list(classes) == list(labels):
        return values
    column_by_label = {label: column for column, label in enumerate(labels)}
    missing = [label for label in classes if label not in column_by_label]
    if missing:
        raise ValueError(
            f"labels must contain every class of the classifier, got none for {listed(missing)}"
        )
    aligned = np.zeros((len(values), len(labels)))
    aligned[:, [column_by_label[label] for label in classes]] = values
    return aligned


def encoded_names(estimator: Any, labels: Sequence[Label] | None) -> Any:
    """Return the K class names if the classifier was fitted on 0 to K - 1; otherwise None.

    If ``labels`` contains K entries and none of them is a number, the entries are the class names
    in this order.
    """
    classes = _fitted_classes(estimator)
    if classes is None or labels is None or len(labels) != len(classes):
        return None
    if classes != list(range(len(classes))):
        return None
    if any(isinstance(label, (int, float, np.number)) for label in labels):
        return None
    # If labels are sequences, NumPy would convert their list to a two-dimensional array.
    names = np.empty(len(classes), dtype=object)
    names[:] = list(labels)
    return names


def known_labels(
    estimator: Any, y: Any = None, labels: Sequence[Label] | None = None
) -> tuple[Label, ...] | None:
    """Return ``labels`` if given, otherwise the sorted classes of the classifier and of ``y``."""
    if labels is not None:
        return tuple(labels)
    classes = _fitted_classes(estimator)
    if classes is None:
        return None
    seen = [] if y is None else np.unique(np.asarray(y)).tolist()
    unseen = [label for label in seen if label not in classes]
    if not unseen:
        return tuple(classes)
    try:
        return tuple(sorted([*classes, *unseen]))
    except TypeError:
        raise ValueError(
            "y must contain the labels that the classifier was fitted on, got "
            f"{listed(unseen, 3)} for the classes {listed(classes, 5)}; if these are numbers of "
            "encoded labels, name the labels in this order: "
            f"labels={sorted(map(str, seen))[:5]!r}"
        ) from None


def _fitted_classes(estimator: Any) -> list[Any] | None:
    """Return a classifier's classes; None if it stores no classes or returns several outputs."""
    classes = getattr(estimator, "classes_", None)
    if classes is None or isinstance(classes, list):
        return None
    return np.asarray(classes).tolist()


def name_of(estimator: Any) -> str:
    """Return the class name of an estimator; for a pipeline or search, of its final estimator."""
    inner = getattr(estimator, "best_estimator_", None)
    if inner is None and hasattr(estimator, "cv_results_"):
        inner = getattr(estimator, "estimator", None)
    if inner is not None:
        return name_of(inner)
    steps = getattr(estimator, "steps", None)
    if steps:
        return name_of(steps[-1][1])
    return type(estimator).__name__


def no_probabilities(estimator: Any, ranked: bool = False) -> str:
    """Return the note for a classifier that returns no probabilities."""
    instead = ""
    if hasattr(estimator, "decision_function"):
        instead = ", only a decision_function, whose values are not probabilities"
    left_out = "ROC, sPCC and prevalence"
    if ranked:
        left_out = "log loss, calibration, sPCC and prevalence"
    return (
        f"{name_of(estimator)} has no predict_proba{instead}: {left_out} are left out; "
        "sklearn.calibration.CalibratedClassifierCV gives it probabilities"
    )
