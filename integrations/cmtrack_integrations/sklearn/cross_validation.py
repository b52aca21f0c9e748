"""Cross-validation: each row is predicted by a model that was not fitted on this row.

:class:`FoldedRows` splits the rows, fits the models and makes predictions. :func:`log_candidates`
also uses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from cmtrack.evaluation import Evaluation, evaluate
from cmtrack.evaluation.from_arrays import divided_by, segment_rows
from cmtrack.evaluation.spec import Options, Spec, takes_options
from cmtrack.grouping import Label
from cmtrack.statistics.inputs import FloatArray, IntArray, align_rows
from cmtrack.statistics.predictions import Predictions
from cmtrack.statistics.segment_values import declared
from cmtrack.tracking import LoggedEvaluation, log_evaluation
from cmtrack.tracking.log import NestedEvaluation, log_nested
from cmtrack.tracking.mlflow_inside import without_autologging
from cmtrack_integrations.sklearn.predictions import (
    Predicted,
    align,
    has_probabilities,
    name_of,
    predict,
    probabilities,
    with_notes,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Out-of-fold evaluation of a classifier by cross-validation.

    Attributes
    ----------
    evaluation : Evaluation
        Evaluation of all rows, in which each row is predicted by the model of its fold. For the
        calibrated prevalence, the score density at each row is estimated without this row.
    folds : tuple of Evaluation
        One evaluation for the test rows of each fold. In each of these evaluations, the prevalence
        is calibrated on the out-of-fold scores of the other folds.
    tests : tuple of ndarray
        The test rows of each fold.
    y : ndarray of shape (n,)
    y_pred : ndarray of shape (n,)
    y_prob : ndarray of shape (n, K) or None
        Out-of-fold probabilities, in the order of ``evaluation.labels``.
    name : str
        The name of the estimator's class.
    models : tuple of classifier, or None
        For each fold, the model that was fitted on the other folds. None if the models were not
        kept.
    y_score : ndarray of shape (n, K) or None
        Out-of-fold decision values in the order of ``evaluation.labels``. None if the classifier
        returns probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cmtrack_integrations.sklearn import cross_validate_evaluation
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> validated = cross_validate_evaluation(LogisticRegression(), X, y)
    >>> len(validated.folds), validated.y_prob.shape, np.bincount(validated.fold_ids).tolist()
    (5, (100, 2), [20, 20, 20, 20, 20])
    """

    evaluation: Evaluation
    folds: tuple[Evaluation, ...]
    tests: tuple[IntArray, ...]
    y: Any
    y_pred: Any
    y_prob: FloatArray | None
    name: str
    models: tuple[Any, ...] | None = field(default=None, repr=False)
    y_score: FloatArray | None = None

    @property
    def fold_ids(self) -> IntArray:
        """Index of the fold whose test part contains each row, shape (n,)."""
        return _fold_ids(self.tests)

    @property
    def calibration(self) -> tuple[Any, FloatArray, IntArray]:
        """The out-of-fold ``(y, scores, fold_ids)``, which you can pass as ``calibration``.

        Use it with ``target=self.score(X_target)``, so that the same models score the calibration
        rows and the target. If ``target`` contains scores from a model that was fitted on all rows,
        you get a warning.

        Raises
        ------
        ValueError
            If the classifier does not return probabilities.
        """
        return self.calibration_for(None)

    def calibration_for(self, labels: Sequence[Label] | None) -> tuple[Any, FloatArray, IntArray]:
        """Return the calibration data, with the score columns in the order of ``labels``."""
        if self.y_prob is None:
            raise ValueError(f"{self.name} has no probabilities to calibrate with")
        return self.y, align(self.y_prob, self.evaluation.labels, labels), self.fold_ids

    def score(self, X: Any, labels: Sequence[Label] | None = None) -> list[FloatArray]:
        """Score new rows with the model of each fold, and return the probabilities.

        Pass the result as ``target`` together with :attr:`calibration`.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Features of rows that were not used to fit any of the models.
        labels : sequence, optional
            The order of the columns; by default ``evaluation.labels``.

        Returns
        -------
        list of ndarray of shape (m, K)
            The probabilities that the model of each fold returns.

        Raises
        ------
        ValueError
            If the models were not kept, or do not return probabilities.
        """
        if self.models is None:
            raise ValueError(
                "scores from the models of the folds need keep_models=True, got keep_models=False"
            )
        order = self.evaluation.labels if labels is None else labels
        return _score_by_models(self.models, X, order, self.name)

    def log(
        self,
        *,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        run_id: str | None = None,
        model_id: str | None = None,
        metrics: str | Sequence[str] = "headline",
        predictions: bool | str = "auto",
        strict: bool = False,
    ) -> tuple[LoggedEvaluation, ...]:
        """Log the evaluation of all rows to the active run, and each fold to a nested run.

        The parameter ``fold`` is added to each nested run. ``cmtrack.compare(block="params.fold",
        model="params.model")`` ranks models over the folds.

        Parameters
        ----------
        name : str, optional
            Value of the parameter ``model``, which is added to each nested run; by default the name
            of the run.
        params : mapping, optional
            Additional parameters for each nested run.
        run_id, model_id, metrics, predictions, strict
            As in :func:`cmtrack.log_evaluation`. The evaluation of all rows is linked to the model
            ``model_id``.

        Returns
        -------
        tuple of LoggedEvaluation
            The logged evaluation of all rows, followed by the logged evaluation of each fold.
        """
        common: dict[str, Any] = {"metrics": metrics, "predictions": predictions, "strict": strict}
        parent = log_evaluation(self.evaluation, run_id=run_id, model_id=model_id, **common)
        children = (
            NestedEvaluation(f"fold {number}", fold, {"fold": number, **(params or {})}, model=name)
            for number, fold in enumerate(self.folds)
        )
        return parent, *log_nested(children, run_id=run_id or parent.run_id, **common)

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row per fold and metric; the fold "all" contains all rows.

        The columns are fold, metric, value, low, high, better and undefined.
        """
        import pandas as pd

        frames: dict[Any, Evaluation] = {"all": self.evaluation, **dict(enumerate(self.folds))}
        tables = [evaluation.to_frame().assign(fold=fold) for fold, evaluation in frames.items()]
        table = pd.concat(tables, ignore_index=True)
        table.insert(0, "fold", table.pop("fold"))
        return table

    def __repr__(self) -> str:
        return f"CrossValidated({self.name}, {len(self.folds)} folds: {self.evaluation!r})"


@takes_options
def cross_validate_evaluation(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    labels: Sequence[Label] | None = None,
    target: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    row_ids: Any = None,
    segments: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    keep_models: bool = True,
    **options: Unpack[Options],
) -> CrossValidated:
    """Fit a classifier on the training part of each fold and evaluate it on the test part.

    Parameters
    ----------
    estimator : classifier, pipeline or search
        The classifier to clone. It is not changed. If the classifier does not have
        ``predict_proba``, its ``decision_function`` is used to rank the rows. The rows of all folds
        are ranked together, which assumes that the decision values of all models have the same
        scale.
    X, y : array-like of n rows
    cv : int, splitter or iterable of (train, test), optional
        The splits, in any form that scikit-learn accepts; by default 5 stratified folds. Every row
        must be in exactly one test part.
    target : array-like of shape (m, n_features), or list of K arrays, optional
        Features of the unlabelled rows in which the prevalence is estimated, or the scores that the
        model of each fold assigns to these rows. Pass scores as a list that contains one array per
        fold, in the form of ``y_prob``, or as one three-dimensional array. The evaluation of all
        rows is calibrated on the out-of-fold scores, which contain each row once.
    groups : array-like of shape (n,), optional
        Cluster of each row. The clusters are passed to the splitter, and the intervals take them
        into account.
    fit_params : mapping, optional
        Parameters that are passed to ``fit``. If a value contains one entry per row, only the
        entries of the training rows are passed.
    n_jobs : int, optional
        Number of folds to fit in parallel.
    keep_models : bool, default True
        Whether to keep the fitted models, so that :meth:`CrossValidated.score` can score new rows.
    labels, sample_weight, row_ids, segments
        As in :func:`cmtrack.evaluate`. ``sample_weight`` only affects the evaluation. Pass weights
        for fitting in ``fit_params``. If a segment column has only one value in a fold, the
        evaluation of this fold omits the column, and a note says so.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    CrossValidated

    Raises
    ------
    ValueError
        If a row is missing from the test parts or is in more than one test part, or if the input is
        invalid. To use repeated splits, call the function once for each repetition.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from cmtrack_integrations.sklearn import cross_validate_evaluation
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = np.where(X[:, 0] > 0, "pass", "fail")
    >>> validated = cross_validate_evaluation(LogisticRegression(), X, y, cv=4, positive="pass")
    >>> validated.evaluation.metrics["binary/roc_auc"] > 0.95, len(validated.folds)
    (True, 4)
    """
    columns = {
        "y": y,
        "X": X,
        "sample_weight": sample_weight,
        "groups": groups,
        "row_ids": row_ids,
        "segments": segments,
        "fit_params": fit_params,
    }
    rows = FoldedRows.from_columns(columns, labels, cv)
    # Fitting may take hours, so the options are checked first.
    Spec.of(options, cross_validate_evaluation)
    has_scores = _are_scores(target, len(rows.splits))
    needs_models = keep_models or (target is not None and not has_scores)
    parts = rows.fit_and_predict(estimator, n_jobs, keep_models=needs_models)
    models = tuple(part.model for part in parts)
    name = name_of(estimator)
    predicted = rows.join(parts)
    prevalence: dict[str, Any] = {}
    if target is not None:
        if predicted.y_prob is None:
            raise ValueError(f"target needs probabilities: {predicted.notes[0]}")
        scores = target if has_scores else _score_by_models(models, target, rows.labels, name)
        prevalence["target"] = scores
        prevalence["calibration"] = (rows.y, predicted.y_prob, _fold_ids(rows.tests))
    evaluation = evaluate(
        rows.y, **predicted.arguments(options), **prevalence, **options, **rows.columns
    )
    evaluation = with_notes(evaluation, predicted.notes)
    folds = []
    for part, test in zip(parts, rows.tests, strict=True):
        arguments = rows.columns_at(test)
        other_rows = np.setdiff1d(np.arange(len(rows.y)), test)
        if predicted.y_prob is not None and _has_both_groups(rows.y[other_rows], evaluation):
            arguments["calibration"] = (rows.y[other_rows], predicted.y_prob[other_rows])
        fold = evaluate(rows.y[test], **part.arguments(options), **options, **arguments)
        folds.append(_divide_like(evaluation, with_notes(fold, part.notes), test))
    return CrossValidated(
        evaluation=evaluation,
        folds=tuple(folds),
        tests=rows.tests,
        y=rows.y,
        y_pred=predicted.y_pred,
        y_prob=predicted.y_prob,
        name=name,
        models=models if keep_models else None,
        y_score=predicted.y_score,
    )


RANKED_TOGETHER = (
    "decision values of the models of all folds are ranked together, as if they had one scale; "
    "the evaluation of each fold ranks the values of one model"
)
Splits = list[tuple[IntArray, IntArray]]


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """Rows for a cross-validation, with methods that fit and predict fold by fold.

    Attributes
    ----------
    X : array-like of shape (n, n_features)
    y : ndarray of shape (n,)
    columns : dict
        The arguments of ``evaluate`` that contain one entry per row, including the segments.
    fit_params : mapping
        Parameters that are passed to ``fit``. If a value contains one entry per row, only the
        entries of the training rows are passed.
    labels : tuple of length K
        All classes in order.
    splits : list of (train, test)
        Indices of the training and test rows of each fold. Each row is in exactly one test part.
    """

    X: Any
    y: Any
    columns: dict[str, Any]
    fit_params: Mapping[str, Any]
    labels: tuple[Label, ...]
    splits: Splits

    @classmethod
    def from_columns(
        cls, columns: Mapping[str, Any], labels: Sequence[Label] | None, cv: Any
    ) -> FoldedRows:
        """Align columns with the labels' index as :func:`cmtrack.evaluate` does, and split them.

        Raises
        ------
        ValueError
            If columns cannot be aligned, a segment column has only one value, or a row is not in
            exactly one test part.
        """
        segments = columns["segments"]
        data, divisions = (None, ()) if segments is None else declared(segments)
        aligned = align_rows({**columns, "segments": data})
        y = np.asarray(aligned.pop("y"))
        X = aligned.pop("X")
        fit_params = aligned.pop("fit_params") or {}
        if divisions:
            segment_rows(aligned["segments"], divisions, len(y))
            aligned["segments"] = (aligned["segments"], divisions)
        splits = _split(X, y, cv, aligned["groups"])
        order = np.unique(y).tolist() if labels is None else labels
        return cls(X, y, aligned, fit_params, tuple(order), splits)

    @property
    def tests(self) -> tuple[IntArray, ...]:
        """Indices of the test rows of each fold."""
        return tuple(test for _, test in self.splits)

    def columns_at(self, test: IntArray) -> dict[str, Any]:
        """Return all columns except segments for a fold's test rows (see ``_divide_like``)."""
        return {
            name: None if values is None else cut(values, test)
            for name, values in self.columns.items()
            if name != "segments"
        }

    def fit_and_predict(
        self, estimator: Any, n_jobs: int | None, *, keep_models: bool = False
    ) -> list[Predicted]:
        """Fit an estimator on the training part of each fold, and predict the test part."""
        from sklearn.utils.parallel import Parallel, delayed

        fit_fold = delayed(_fit_fold)
        with without_autologging():
            parts: list[Predicted] = Parallel(n_jobs=n_jobs)(
                fit_fold(
                    estimator, self.X, self.y, split, self.labels, self.fit_params, keep_models
                )
                for split in self.splits
            )
        return parts

    def join(self, parts: Sequence[Predicted]) -> Predicted:
        """Return the predictions for all rows, with scores if every fold returned scores."""
        order = np.argsort(np.concatenate(self.tests), kind="stable")

        def join_column(name: str) -> Any:
            columns = [getattr(part, name) for part in parts]
            if any(column is None for column in columns):
                return None
            return np.concatenate(columns)[order]

        y_score = join_column("y_score")
        # If some fold has no decision values, its notes are used, because they give the reason.
        noted = next((part for part in parts if part.y_score is None), parts[0])
        notes = noted.notes
        if y_score is not None:
            notes = (*notes, RANKED_TOGETHER)
        return Predicted(
            join_column("y_pred"), join_column("y_prob"), self.labels, notes, y_score=y_score
        )


def _split(X: Any, y: Any, cv: Any, groups: Any) -> Splits:
    """Return the training and test rows of each fold.

    Raises
    ------
    ValueError
        If a row is in no test part or in several test parts.
    """
    from sklearn.model_selection import check_cv

    splits = [
        (np.asarray(train), np.asarray(test))
        for train, test in check_cv(cv, y, classifier=True).split(X, y, groups)
    ]
    times = np.bincount(np.concatenate([test for _, test in splits]), minlength=len(y))
    if (times != 1).any():
        row = int(np.flatnonzero(times != 1)[0])
        raise ValueError(
            f"every row must be in exactly one test part, got row {row} in {times[row]}: run "
            "repeated splits one repetition at a time"
        )
    return splits


def _fit_fold(
    estimator: Any,
    X: Any,
    y: Any,
    split: tuple[IntArray, IntArray],
    labels: tuple[Label, ...],
    fit_params: Mapping[str, Any],
    keep_model: bool,
) -> Predicted:
    """Fit a clone on the training part of a fold, and predict its test part."""
    from sklearn.base import clone

    train, test = split
    train_params = {
        name: cut(values, train) if _has_entry_per_row(values, len(y)) else values
        for name, values in fit_params.items()
    }
    fitted = clone(estimator).fit(cut(X, train), y[train], **train_params)
    predicted = predict(fitted, cut(X, test), labels=labels)
    # A worker process would have to send the model back, so the model is returned only on request.
    return replace(predicted, model=fitted) if keep_model else predicted


def _divide_like(evaluation: Evaluation, fold: Evaluation, test: IntArray) -> Evaluation:
    """Return a fold's evaluation with the same segment columns as the evaluation of all rows.

    Segment columns that do not divide the rows of the fold are omitted, with a note.
    """
    if not isinstance(evaluation.rows, Predictions) or not isinstance(fold.rows, Predictions):
        return fold
    segments = []
    notes = []
    for column in evaluation.rows.segments:
        fold_column = column.take(test)
        codes = np.unique(fold_column.codes).tolist()
        if len(codes) > 1:
            segments.append(fold_column.arranged(codes))
        else:
            notes.append(
                f"segments: “{column.name}” has only one value in this fold, so this fold is "
                "not divided by it"
            )
    divided = divided_by(fold, fold.rows, tuple(segments)) if segments else fold
    return with_notes(divided, tuple(notes))


def cut(values: Any, rows: Any) -> Any:
    """Select rows from an array, a frame, a sparse matrix or a list."""
    from sklearn.utils import _safe_indexing

    return _safe_indexing(values, rows)


def _fold_ids(tests: Sequence[IntArray]) -> IntArray:
    """Return the index of the fold whose test part contains each row, shape (n,)."""
    ids: IntArray = np.empty(sum(map(len, tests)), dtype=np.int64)
    for fold, test in enumerate(tests):
        ids[test] = fold
    return ids


def _score_by_models(
    models: Sequence[Any], X: Any, labels: Sequence[Label], name: str
) -> list[FloatArray]:
    """Return one array of probabilities for each model, of shape (m, K)."""
    if not all(map(has_probabilities, models)):
        raise ValueError(f"{name} has no probabilities to score a target with")
    return [probabilities(model, X, labels) for model in models]


def _are_scores(target: Any, n_folds: int) -> bool:
    """Return whether ``target`` contains scores from the folds' models rather than features."""
    if not isinstance(target, (list, tuple)):
        return getattr(target, "ndim", 0) == 3
    # Features may be a list of lists, one for each row. The scores of a fold are an array.
    return len(target) == n_folds and all(
        np.ndim(scores) > 0 and not isinstance(scores, (list, tuple)) for scores in target
    )


def _has_entry_per_row(values: Any, n_rows: int) -> bool:
    """Return whether a parameter of ``fit`` contains one entry per row."""
    shape = getattr(values, "shape", None)
    if shape:
        return bool(shape[0] == n_rows)
    return isinstance(values, (list, tuple)) and len(values) == n_rows


def _has_both_groups(y: Any, evaluation: Evaluation) -> bool:
    """Return whether both groups or classes occur in the labels, as calibration requires."""
    classes = np.unique(y).tolist()
    step = evaluation.scored
    if step is None:
        return len(classes) > 1
    group_by_label = dict(zip(evaluation.labels, step.group_of_class.tolist(), strict=True))
    return len({group_by_label[label] for label in classes}) > 1
