"""Predictions of a fitted classifier: labels, and probabilities where it has them."""

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
        What ``predict`` says; a classifier with a tuned threshold does not say the most probable class.
    y_prob : ndarray of shape (n, K) or None
        In the order of ``labels``.
    y_score : ndarray of shape (n, K) or None
        Decision values in that order, of a classifier that has no probabilities.
    labels : tuple of length K or None
        The classes that the classifier knows, and those of the rows that it does not.
    notes : tuple of str
        What is missing, and why.
    model : classifier or None
        What predicted them, where it is kept.
    """

    y_pred: Any
    y_prob: FloatArray | None
    labels: tuple[Label, ...] | None
    notes: tuple[str, ...] = ()
    model: Any = None
    y_score: FloatArray | None = None

    def given(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of ``evaluate``: decisions, unless ``options`` decide, scores and labels."""
        decided = unless_decided(self.y_pred, options)
        return {
            "y_pred": decided,
            "y_prob": self.y_prob,
            "y_score": self.y_score,
            "labels": self.labels,
        }


def with_notes(evaluation: Evaluation, notes: tuple[str, ...]) -> Evaluation:
    """The evaluation with further notes."""
    return replace(evaluation, remarks=(*evaluation.remarks, *notes)) if notes else evaluation


def predict(
    estimator: Any, X: Any, y: Any = None, labels: Sequence[Label] | None = None
) -> Predicted:
    """Ask a fitted classifier (also a pipeline or a search) for labels and probabilities.

    Classes of ``y`` or ``labels`` that it has not seen in training get the probability 0, as it can never name them.
    A classifier that was fitted on class numbers 0 to K - 1 gets their names from ``labels``.

    Raises
    ------
    ValueError
        If it has several outputs, or knows a class that ``labels`` lack.
    """
    own = encoded_names(estimator, labels)
    order = known_labels(estimator, y, labels)
    y_pred = np.asarray(estimator.predict(X))
    if own is not None and y_pred.ndim == 1:
        y_pred = own[y_pred.astype(np.int64)]
    if y_pred.ndim == 2 and y_pred.shape[1] == 1:
        y_pred = y_pred[:, 0]
    if y_pred.ndim != 1:
        raise ValueError(
            f"predict must give one label per row, got shape {y_pred.shape}: several outputs have several"
        )
    if not has_probabilities(estimator):
        scores = decision_values(estimator, X, order)
        return Predicted(
            y_pred, None, order, (no_probabilities(estimator, scores is not None),), y_score=scores
        )
    return Predicted(y_pred, probabilities(estimator, X, order), order)


def has_probabilities(estimator: Any) -> bool:
    """True if the classifier, as configured, has ``predict_proba``."""
    return hasattr(estimator, "predict_proba")


def decision_values(estimator: Any, X: Any, labels: Sequence[Label] | None) -> FloatArray | None:
    """Decision values of shape (n, K) in the order of ``labels``; None if a label lacks one.

    The one value of two classes is taken with both signs.
    """
    own = getattr(estimator, "classes_", None)
    if not hasattr(estimator, "decision_function") or own is None or isinstance(own, list):
        return None
    parameters = estimator.get_params() if hasattr(estimator, "get_params") else {}
    if any(
        name.endswith("decision_function_shape") and value == "ovo"
        for name, value in parameters.items()
    ):
        return None  # values of pairs of classes
    found = np.asarray(estimator.decision_function(X), dtype=np.float64)
    if found.ndim == 1 and len(own) == 2:
        found = np.stack((-found, found), axis=1)
    named = encoded_names(estimator, labels) is None
    known = labels is None or (set(np.asarray(own).tolist()) == set(labels) if named else True)
    if found.shape[1:] != (len(own),) or not known:
        return None
    return align(found, own if named else None, labels)


def probabilities(estimator: Any, X: Any, labels: Sequence[Label] | None) -> FloatArray:
    """Probabilities of shape (n, K) in the order of ``labels``."""
    found = estimator.predict_proba(X)
    if isinstance(found, list):
        raise ValueError(
            f"predict_proba must give one array, got a list of {len(found)}: several outputs"
        )
    own = getattr(estimator, "classes_", None) if encoded_names(estimator, labels) is None else None
    return align(np.asarray(found, dtype=np.float64), own, labels)


def align(found: FloatArray, own: Any, labels: Sequence[Label] | None) -> FloatArray:
    """Reorder the classifier's columns to ``labels``, with 0 for classes unknown to it."""
    if (
        own is None
        or labels is None
        or (len(own) == len(labels) and all(a == b for a, b in zip(own, labels)))  # noqa: B905
    ):
        return found
    place = {label: column for column, label in enumerate(labels)}
    missing = [label for label in np.asarray(own).tolist() if label not in place]
    if missing:
        raise ValueError(
            f"labels must hold every class of the classifier, got none for {listed(missing)}"
        )
    out = np.zeros((len(found), len(labels)))
    out[:, [place[label] for label in np.asarray(own).tolist()]] = found
    return out


def encoded_names(estimator: Any, labels: Sequence[Label] | None) -> Any:
    """Names (K,) of the classes 0 to K - 1 of a classifier fitted on label codes; else None.

    ``labels`` are taken for these names, in this order, where they are as many and none of them is a number.
    """
    own = getattr(estimator, "classes_", None)
    if own is None or isinstance(own, list) or labels is None:
        return None
    numbers = np.asarray(own).tolist() == list(range(len(own)))
    if (
        not numbers
        or len(labels) != len(own)
        or any(isinstance(label, (int, float, np.number)) for label in labels)
    ):
        return None
    names = np.empty(len(own), dtype=object)
    names[:] = list(labels)
    return names


def known_labels(
    estimator: Any, y: Any = None, labels: Sequence[Label] | None = None
) -> tuple[Label, ...] | None:
    """All classes in order: the given ones, or the sorted union of the classifier's and those of ``y``."""
    if labels is not None:
        return tuple(labels)
    own = getattr(estimator, "classes_", None)
    if own is None or isinstance(own, list):
        return None
    classes = np.asarray(own).tolist()
    seen = [] if y is None else np.unique(np.asarray(y)).tolist()
    unseen = [label for label in seen if label not in classes]
    try:
        return tuple(sorted([*classes, *unseen]) if unseen else classes)
    except TypeError:
        raise ValueError(
            f"y must hold the labels that the classifier was fitted on, got {listed(unseen, 3)} for the classes "
            f"{listed(classes, 5)}; where these are numbers of encoded labels, name them in their order: "
            f"labels={sorted(map(str, seen))[:5]!r}"
        ) from None


def name_of(estimator: Any) -> str:
    """The class name of an estimator, or of the final one inside a pipeline or search."""
    inner = getattr(estimator, "best_estimator_", None)
    if inner is None:
        inner = getattr(estimator, "estimator", None) if hasattr(estimator, "cv_results_") else None
    if inner is not None:
        return name_of(inner)
    steps = getattr(estimator, "steps", None)
    return name_of(steps[-1][1]) if steps else type(estimator).__name__


def no_probabilities(estimator: Any, ranked: bool = False) -> str:
    """The note for a classifier that gives labels only, or decision values that rank rows."""
    ranks = hasattr(estimator, "decision_function")
    instead = ", only a decision_function, whose values are no probabilities" if ranks else ""
    left_out = (
        "log loss, calibration, sPCC and prevalence" if ranked else "ROC, sPCC and prevalence"
    )
    return (
        f"{name_of(estimator)} has no predict_proba{instead}: {left_out} are left out; "
        "sklearn.calibration.CalibratedClassifierCV gives it probabilities"
    )
