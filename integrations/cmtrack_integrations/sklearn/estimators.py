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
    known_labels,
    predict,
    probabilities,
    with_notes,
)

_RUN_OPTIONS = ("run_id", "model_id", "prefix", "metrics", "predictions", "strict")


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
    """Evaluate a fitted classifier on rows that were not used to fit it.

    Parameters
    ----------
    estimator : classifier, pipeline or fitted search
        For a search such as ``GridSearchCV``, the refitted best candidate is evaluated. If the
        classifier does not provide ``predict_proba``, its predicted labels are evaluated. Ranking
        metrics then use ``decision_function``, if the classifier has this method. A note in
        ``Evaluation.warnings`` says so.
    X : array-like of shape (n, n_features)
        Features of held-out rows, in any form that the estimator accepts.
    y : array-like of shape (n,)
        Actual labels. The probability of a class that did not occur in the training rows is 0.
    labels : sequence, optional
        All classes in order; by default the classes in ``estimator.classes_`` and in ``y``.
    calibration : (X_cal, y_cal) or CrossValidated, optional
        Labelled rows that were **not** used to fit the classifier, with the features first as in
        scikit-learn, or the result of :func:`cross_validate_evaluation` on the training rows. The
        out-of-fold scores in a ``CrossValidated`` come from the models of the folds, so you get a
        warning if the classifier itself scores the target.
    target : array-like of shape (m, n_features), optional
        Features of the unlabelled rows in which the prevalence is estimated. If ``calibration`` is
        a ``CrossValidated`` that kept its models, these models score the unlabelled rows instead of
        the classifier.
    sample_weight, groups, row_ids, segments
        As in :func:`cmtrack.evaluate`. The evaluated decisions come from ``predict`` or, if set,
        from the option ``threshold``.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If the input is invalid, or the classifier returns several outputs.
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
    sources = {"labels": labels, "calibration": calibration, "target": target}
    arguments, notes = _predict(estimator, X, y, sources, options)
    evaluation = evaluate(
        y,
        sample_weight=sample_weight,
        groups=groups,
        row_ids=row_ids,
        segments=segments,
        **options,
        **arguments,
    )
    return with_notes(evaluation, notes)


def log_estimator(
    estimator: Any, X: Any, y: Any, *, step: int | None = None, **options: Unpack[DataOptions]
) -> LoggedEvaluation:
    """Evaluate a fitted classifier on held-out rows, and log it to the active MLflow run.

    Add this line after ``fit``. If it fails, you get a warning and the script continues, unless
    ``strict=True``.

    Parameters
    ----------
    estimator, X, y
        As in :func:`evaluate_estimator`. For a fitted search, the best candidate is logged. To log
        several candidates as nested runs, use :func:`log_candidates`.
    step : int, optional
    **options
        Options of :func:`evaluate_estimator`, and ``run_id``, ``model_id``, ``prefix``,
        ``metrics``, ``predictions`` and ``strict`` of :func:`cmtrack.log_evaluation`.

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
    run_options: Any = {name: value for name, value in options.items() if name in _RUN_OPTIONS}
    questions: Any = {name: value for name, value in options.items() if name not in _RUN_OPTIONS}
    unknown = sorted(set(questions) - set(DataOptions.__annotations__))
    if unknown:
        raise TypeError(
            f"there is no option {unknown[0]!r}; the options are "
            f"{sorted(DataOptions.__annotations__)}"
        )
    sources = {name: questions.pop(name, None) for name in ("labels", "calibration", "target")}
    try:
        arguments, notes = _predict(estimator, X, y, sources, questions)
    except Exception as error:
        if run_options.get("strict"):
            raise
        tell(f"the evaluation failed: {error}")
        return LoggedEvaluation(None, run_options.get("run_id"), "failed", error=str(error))
    try:
        evaluation = with_notes(evaluate(y, **arguments, **questions), notes)
    except Exception:
        # log_evaluation runs into the same error. It reports the error and saves the inputs.
        return log_evaluation(y, **arguments, **questions, **run_options, step=step)
    return log_evaluation(evaluation, **run_options, step=step)


def _predict(
    estimator: Any,
    X: Any,
    y: Any,
    sources: Mapping[str, Any],
    options: Mapping[str, Any],
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments for ``evaluate`` that the classifier determines, and notes on them.

    ``sources`` contains the caller's arguments ``labels``, ``calibration`` and ``target``.
    """
    X = align_rows({"y": y, "X": X})["X"]
    predicted = predict(estimator, X, y, sources["labels"])
    arguments = predicted.arguments(options)
    calibration = sources["calibration"]
    target = sources["target"]
    if predicted.y_prob is None and (calibration is not None or target is not None):
        raise ValueError(f"calibration and target need probabilities: {predicted.notes[0]}")
    if calibration is not None:
        arguments["calibration"] = _calibration(estimator, calibration, predicted.labels)
    if target is not None:
        # The calibration scores come from the models of the folds, so these must also score the
        # target.
        if isinstance(calibration, CrossValidated) and calibration.models is not None:
            arguments["target"] = calibration.score(target, predicted.labels)
        else:
            arguments["target"] = probabilities(estimator, target, predicted.labels)
    return arguments, predicted.notes


def _calibration(estimator: Any, calibration: Any, labels: Sequence[Label] | None) -> Any:
    """Return the labels and scores to pass to ``evaluate`` as ``calibration``."""
    if isinstance(calibration, CrossValidated):
        return calibration.calibration_for(labels)
    if isinstance(calibration, str):
        return calibration
    try:
        X, y = calibration
    except (TypeError, ValueError):
        raise ValueError(
            f"calibration must be (X_cal, y_cal), got {type(calibration).__name__}"
        ) from None
    y, X = align_rows({"calibration y": y, "calibration X": X}).values()
    order = known_labels(estimator) if labels is None else labels
    return y, probabilities(estimator, X, order)
