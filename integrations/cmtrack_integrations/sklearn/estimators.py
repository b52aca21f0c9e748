"""Evaluate a fitted classifier on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from cmtrack.evaluation import Evaluation, evaluate
from cmtrack.evaluation.spec import Options, takes_options
from cmtrack.grouping import Label
from cmtrack.statistics.inputs import align_rows
from cmtrack.tracking import LoggedEvaluation, log_evaluation
from cmtrack.tracking._warn import tell
from cmtrack_integrations._hook import DataOptions
from cmtrack_integrations.sklearn.cross_validation import CrossValidated
from cmtrack_integrations.sklearn.predictions import (
    Predicted,
    known_labels,
    predict,
    probabilities,
    with_notes,
)

_OF_THE_RUN = ("run_id", "model_id", "prefix", "metrics", "predictions", "strict")


@takes_options
def evaluate_estimator(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    labels: Sequence[Label] | None = None,
    calibration: Any = None,
    target: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    row_ids: Any = None,
    segments: Any = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Judge a fitted classifier on rows that it was not fitted on.

    Parameters
    ----------
    estimator : classifier, pipeline or fitted search
        A search (``GridSearchCV``, ...) answers with its best candidate, refitted. Without ``predict_proba``
        labels are judged, and ranking by ``decision_function`` where there is one; a note in ``Evaluation.warnings``
        says so.
    X : array-like of shape (n, n_features)
        Held-out features, in any form that the estimator takes.
    y : array-like of shape (n,)
        Actual labels. Classes that the classifier has not seen have the probability 0.
    labels : sequence, optional
        All classes in order; by default ``estimator.classes_`` and those of ``y``.
    calibration : (X_cal, y_cal) or CrossValidated, optional
        Labelled rows that the classifier was **not** fitted on, in scikit-learn's order, or the out-of-fold scores of
        :func:`cross_validate_evaluation` on its training rows. These come from other fits than the classifier, and a
        warning says so where it scores the target.
    target : array-like of shape (m, n_features), optional
        Features of unlabelled rows whose prevalence is wanted. With a ``CrossValidated`` that kept its models these
        score them, as they did the labelled rows, and not the classifier.
    sample_weight, groups, row_ids, segments
        As in :func:`cmtrack.evaluate`. The decisions judged are those of ``predict``, or of the option ``threshold``.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        Wrong input, or several outputs.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cmtrack_integrations.sklearn import evaluate_estimator
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> model = LogisticRegression().fit(X[:100], y[:100])
    >>> evaluation = evaluate_estimator(model, X[100:], y[100:])
    >>> evaluation.metrics["binary/roc_auc"] > 0.95
    True
    """
    predicted, given = _arguments(estimator, X, y, labels, calibration, target, options)
    evaluation = evaluate(
        y,
        sample_weight=sample_weight,
        groups=groups,
        row_ids=row_ids,
        segments=segments,
        **options,
        **given,
    )
    return with_notes(evaluation, predicted.notes)


def log_estimator(
    estimator: Any, X: Any, y: Any, *, step: int | None = None, **options: Unpack[DataOptions]
) -> LoggedEvaluation:
    """Judge a fitted classifier on held-out rows and log it to the active MLflow run.

    The line after ``fit``. Nothing that fails here ends the script (unless ``strict=True``): there is a warning.

    Parameters
    ----------
    estimator, X, y
        As in :func:`evaluate_estimator`. Of a fitted search the best candidate is logged; :func:`log_candidates` logs
        the others as nested runs.
    step : int, optional
    **options
        Those of :func:`evaluate_estimator`, and ``run_id``, ``model_id``, ``prefix``, ``metrics``, ``predictions``
        and ``strict`` of :func:`cmtrack.log_evaluation`.

    Returns
    -------
    LoggedEvaluation

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cmtrack_integrations.sklearn import log_estimator
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> with mlflow.start_run():
    ...     model = LogisticRegression().fit(X[:100], y[:100])
    ...     logged = log_estimator(model, X[100:], y[100:])
    >>> logged.status
    'completed'
    """
    run: Any = {name: value for name, value in options.items() if name in _OF_THE_RUN}
    judging: Any = {name: value for name, value in options.items() if name not in _OF_THE_RUN}
    unknown = sorted(set(judging) - set(DataOptions.__annotations__))
    if unknown:
        raise TypeError(
            f"there is no option {unknown[0]!r}; the options are {sorted(DataOptions.__annotations__)}"
        )
    source = {name: judging.pop(name, None) for name in ("labels", "calibration", "target")}
    try:
        predicted, given = _arguments(estimator, X, y, **source, options=judging)
    except Exception as error:
        if run.get("strict"):
            raise
        tell(f"the evaluation failed: {error}", stacklevel=3)
        return LoggedEvaluation(None, run.get("run_id"), "failed", error=str(error))
    try:
        evaluation = with_notes(evaluate(y, **given, **judging), predicted.notes)
    except Exception:  # which says what is wrong, and keeps the inputs
        return log_evaluation(y, **given, **judging, **run, step=step)
    return log_evaluation(evaluation, **run, step=step)


def _arguments(
    estimator: Any,
    X: Any,
    y: Any,
    labels: Sequence[Label] | None,
    calibration: Any,
    target: Any,
    options: Mapping[str, Any],
) -> tuple[Predicted, dict[str, Any]]:
    """Arguments of ``evaluate`` that the classifier gives."""
    X = align_rows({"y": y, "X": X})["X"]
    predicted = predict(estimator, X, y, labels)
    given, order = predicted.given(options), predicted.labels
    if predicted.y_prob is None and (calibration is not None or target is not None):
        raise ValueError(f"calibration and target need probabilities: {predicted.notes[0]}")
    if calibration is not None:
        given["calibration"] = _calibration(estimator, calibration, order)
    if target is not None:
        by_folds = isinstance(calibration, CrossValidated) and calibration.models is not None
        given["target"] = (
            calibration.score(target, order)
            if by_folds
            else probabilities(estimator, target, order)
        )
    return predicted, given


def _calibration(estimator: Any, calibration: Any, order: Sequence[Label] | None) -> Any:
    if isinstance(calibration, CrossValidated):
        return calibration.calibration_for(order)
    if isinstance(calibration, str):
        return calibration
    try:
        X, y = calibration
    except (TypeError, ValueError):
        raise ValueError(
            f"calibration must be (X_cal, y_cal), got {type(calibration).__name__}"
        ) from None
    y, X = align_rows({"calibration y": y, "calibration X": X}).values()
    return y, probabilities(estimator, X, order if order is not None else known_labels(estimator))
