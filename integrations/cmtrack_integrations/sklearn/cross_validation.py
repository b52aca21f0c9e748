"""Cross-validation: every row is predicted by a model that has not seen it."""

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
    """A classifier judged out of fold.

    Attributes
    ----------
    evaluation : Evaluation
        Of all rows, each with the prediction of the model of its fold. Its calibrated prevalence leaves each row out
        of its own density.
    folds : tuple of Evaluation
        Of each fold's test rows; the prevalence is calibrated on the out-of-fold scores of the other folds.
    tests : tuple of ndarray
        The test rows of each fold.
    y : ndarray of shape (n,)
    y_pred : ndarray of shape (n,)
    y_prob : ndarray of shape (n, K) or None
        Out-of-fold probabilities, in the order of ``evaluation.labels``.
    name : str
        The class of the estimator.
    models : tuple of classifier, or None
        Those fitted without each fold, where they were kept.
    y_score : ndarray of shape (n, K) or None
        Out-of-fold decision values in that order, of a classifier that has no probabilities.

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
        """The fold that each row is tested in, shape (n,)."""
        return _fold_ids(self.tests)

    @property
    def calibration(self) -> tuple[Any, FloatArray, IntArray]:
        """``(y, scores, fold_ids)``, out of fold: the ``calibration=`` of an evaluation or a prevalence.

        With ``target=self.score(X_target)`` the prevalence is free of the differences between the fits; the scores of
        a model that was fitted on all rows are another matter, and a warning says so.

        Raises
        ------
        ValueError
            If the classifier has no probabilities.
        """
        return self.calibration_for(None)

    def calibration_for(self, labels: Sequence[Label] | None) -> tuple[Any, FloatArray, IntArray]:
        """The calibration, with columns in the order of ``labels``."""
        if self.y_prob is None:
            raise ValueError(f"{self.name} has no probabilities to calibrate with")
        return self.y, align(self.y_prob, self.evaluation.labels, labels), self.fold_ids

    def score(self, X: Any, labels: Sequence[Label] | None = None) -> list[FloatArray]:
        """Probabilities of other rows by the model of each fold: the ``target=`` that goes with :attr:`calibration`.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Features of rows that none of the models was fitted on.
        labels : sequence, optional
            The order of the columns, by default that of ``evaluation.labels``.

        Returns
        -------
        list of ndarray of shape (m, K)
            One for each fold.

        Raises
        ------
        ValueError
            If the models were not kept, or have no probabilities.
        """
        if self.models is None:
            raise ValueError(
                "scores by the models of the folds need keep_models=True, got keep_models=False"
            )
        return _scored(
            self.models, X, self.evaluation.labels if labels is None else labels, self.name
        )

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
        """Log the whole to the active run, and each fold to a nested run with the parameter ``fold``.

        ``cmtrack.compare(block="params.fold", model="params.model")`` ranks models over the folds.

        Parameters
        ----------
        name : str, optional
            The parameter ``model`` of the nested runs; by default the name of the run.
        params : mapping, optional
            Further parameters of the nested runs.
        run_id, model_id, metrics, predictions, strict
            As in :func:`cmtrack.log_evaluation`. The model is that of the whole.

        Returns
        -------
        tuple of LoggedEvaluation
            Of the whole, then of each fold.
        """
        common: dict[str, Any] = {"metrics": metrics, "predictions": predictions, "strict": strict}
        whole = log_evaluation(self.evaluation, run_id=run_id, model_id=model_id, **common)
        children = (
            NestedEvaluation(f"fold {place}", fold, {"fold": place, **(params or {})}, model=name)
            for place, fold in enumerate(self.folds)
        )
        return whole, *log_nested(children, run_id=run_id or whole.run_id, **common)

    def to_frame(self) -> pd.DataFrame:
        """One row per fold and metric: fold, metric, value, low, high, better, undefined; fold "all" is the whole."""
        import pandas as pd

        frames: dict[Any, Evaluation] = {"all": self.evaluation, **dict(enumerate(self.folds))}
        tables = [evaluation.to_frame().assign(fold=fold) for fold, evaluation in frames.items()]
        table = pd.concat(tables, ignore_index=True)
        return table.reindex(
            columns=["fold", *(column for column in table.columns if column != "fold")]
        )

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
    """Fit a classifier on each training part and judge it on the rows left out.

    Parameters
    ----------
    estimator : classifier, pipeline or search
        It is cloned; what is given stays as it is. Without ``predict_proba`` the values of its ``decision_function``
        rank the rows, those of all folds together as if their models had one scale.
    X, y : array-like of n rows
    cv : int, splitter or iterable of (train, test), optional
        As in scikit-learn; by default 5 stratified folds. Every row must be in exactly one test part.
    target : array-like of shape (m, n_features), or list of K arrays, optional
        Features of unlabelled rows whose prevalence is wanted, or their scores by the model of each fold: arrays in
        the form of ``y_prob`` or one array of three dimensions. The whole is then calibrated on the out-of-fold scores,
        each row counting once.
    groups : array-like of shape (n,), optional
        Rows that belong together: the splitter gets them, and intervals know of them.
    fit_params : mapping, optional
        Passed to ``fit``; values with one entry per row are cut to the training rows.
    n_jobs : int, optional
        Folds that are fitted at a time.
    keep_models : bool, default True
        Whether the fitted models are kept, so that :meth:`CrossValidated.score` can score other rows with them.
    labels, sample_weight, row_ids, segments
        As in :func:`cmtrack.evaluate`. ``sample_weight`` weighs the judgement; ``fit_params`` takes that of the fit. A
        fold is not divided by a column that has one value in it, and a note says so.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    CrossValidated

    Raises
    ------
    ValueError
        If a row is in no test part or in several (repeated splits are run one repetition at a time), or on wrong
        input.

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
    rows = {
        "X": X,
        "sample_weight": sample_weight,
        "groups": groups,
        "row_ids": row_ids,
        "segments": segments,
        "fit_params": fit_params,
    }
    actual, by_row = in_order(y, rows)
    X = by_row.pop("X")
    fit_params = by_row.pop("fit_params")
    splits = splits_of(estimator, X, actual, cv, by_row["groups"])
    order = tuple(labels) if labels is not None else tuple(np.unique(actual).tolist())
    Spec.of(options, cross_validate_evaluation)  # before the fits
    scored = _are_scores(target, len(splits))
    keep = keep_models or (target is not None and not scored)
    parts = fit_and_predict(estimator, X, actual, splits, order, fit_params, n_jobs, keep)
    tests = tuple(test for _, test in splits)
    name, models = name_of(estimator), tuple(part.model for part in parts)
    out = joined(parts, splits, order)
    given: dict[str, Any] = {}
    if target is not None:
        if out.y_prob is None:
            raise ValueError(f"target needs probabilities: {out.notes[0]}")
        given["target"] = target if scored else _scored(models, target, order, name)
        given["calibration"] = (actual, out.y_prob, _fold_ids(tests))
    whole = with_notes(
        evaluate(actual, **out.given(options), **given, **options, **by_row), out.notes
    )
    del by_row["segments"]
    folds = []
    for part, test in zip(parts, tests, strict=True):
        rest = np.setdiff1d(np.arange(len(actual)), test)
        own: dict[str, Any] = {
            name: None if values is None else cut(values, test) for name, values in by_row.items()
        }
        if out.y_prob is not None and _calibrates(actual[rest], whole):
            own["calibration"] = actual[rest], out.y_prob[rest]
        fold = evaluate(actual[test], **part.given(options), **options, **own)
        folds.append(_divided_like(whole, with_notes(fold, part.notes), test))
    return CrossValidated(
        whole,
        tuple(folds),
        tests,
        actual,
        out.y_pred,
        out.y_prob,
        name,
        models if keep_models else None,
        out.y_score,
    )


def in_order(y: Any, by_row: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Labels (n,) and row columns, aligned to the labels' index (see :func:`cmtrack.evaluate`).

    Raises
    ------
    ValueError
        If the order cannot be known, or a column does not divide the rows.
    """
    data, divisions = (None, ()) if by_row["segments"] is None else declared(by_row["segments"])
    given = align_rows({"y": y, **by_row, "segments": data})
    actual = np.asarray(given.pop("y"))
    if divisions:
        segment_rows(given["segments"], divisions, len(actual))
        given["segments"] = given["segments"], divisions
    return actual, given


def _divided_like(whole: Evaluation, fold: Evaluation, test: IntArray) -> Evaluation:
    """A fold's evaluation with the segments of the whole, and notes on columns that do not segment its rows."""
    if (
        not isinstance(whole.rows, Predictions)
        or not isinstance(fold.rows, Predictions)
        or not whole.rows.segments
    ):
        return fold
    segments, notes = [], []
    for one in whole.rows.segments:
        own = one.take(test)
        held = np.unique(own.codes).tolist()
        if len(held) > 1:
            segments.append(own.arranged(held))
        else:
            notes.append(
                f"segments: “{one.name}” has one value in this fold, which is not divided by it"
            )
    divided = divided_by(fold, fold.rows, tuple(segments)) if segments else fold
    return with_notes(divided, tuple(notes))


RANKED_TOGETHER = (
    "decision values of the models of all folds are ranked together, as if they had one scale; each fold's own "
    "evaluation ranks those of one model"
)
Splits = list[tuple[IntArray, IntArray]]


def splits_of(estimator: Any, X: Any, y: Any, cv: Any, groups: Any = None) -> Splits:
    """The parts of a cross-validation, fixed once.

    Raises
    ------
    ValueError
        If a row is in no test part or in several.
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
            f"every row must be in exactly one test part, got row {row} in {times[row]}: run repeated splits one "
            "repetition at a time"
        )
    return splits


def fit_and_predict(
    estimator: Any,
    X: Any,
    y: Any,
    splits: Splits,
    labels: Sequence[Label],
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    keep: bool = False,
) -> list[Predicted]:
    """Fit an estimator on each training part, and predict the test parts; ``keep``: with the fitted models."""
    from sklearn.utils.parallel import Parallel, delayed

    with without_autologging():
        done: list[Predicted] = Parallel(n_jobs=n_jobs)(
            delayed(_one_fold)(
                estimator, X, y, train, test, tuple(labels), dict(fit_params or {}), keep
            )
            for train, test in splits
        )
    return done


def _one_fold(
    estimator: Any,
    X: Any,
    y: Any,
    train: Any,
    test: Any,
    labels: tuple[Label, ...],
    params: dict[str, Any],
    keep: bool,
) -> Predicted:
    from sklearn.base import clone

    own = {
        name: cut(values, train) if _by_row(values, len(y)) else values
        for name, values in params.items()
    }
    fitted = clone(estimator).fit(cut(X, train), y[train], **own)
    predicted = predict(fitted, cut(X, test), labels=labels)
    return replace(predicted, model=fitted) if keep else predicted


def joined(parts: Sequence[Predicted], splits: Splits, labels: tuple[Label, ...]) -> Predicted:
    """Predictions of all rows, joined from the folds, with the scores that all folds have."""
    order = np.argsort(np.concatenate([test for _, test in splits]), kind="stable")

    def whole(name: str) -> Any:
        own = [getattr(part, name) for part in parts]
        return None if any(one is None for one in own) else np.concatenate(own)[order]

    y_score = whole("y_score")
    least = next((part for part in parts if part.y_score is None), parts[0])
    notes = least.notes if y_score is None else (*least.notes, RANKED_TOGETHER)
    return Predicted(whole("y_pred"), whole("y_prob"), labels, notes, y_score=y_score)


def cut(values: Any, rows: Any) -> Any:
    """Select rows of an array, a frame, a sparse matrix or a list."""
    from sklearn.utils import _safe_indexing

    return _safe_indexing(values, rows)


def _fold_ids(tests: Sequence[IntArray]) -> IntArray:
    """The fold that each row is tested in, shape (n,)."""
    ids: IntArray = np.empty(sum(map(len, tests)), dtype=np.int64)
    for fold, test in enumerate(tests):
        ids[test] = fold
    return ids


def _scored(models: Sequence[Any], X: Any, labels: Sequence[Label], name: str) -> list[FloatArray]:
    """Probabilities by each model, each of shape (m, K)."""
    if not all(map(has_probabilities, models)):
        raise ValueError(f"{name} has no probabilities to score a target with")
    return [probabilities(model, X, labels) for model in models]


def _are_scores(target: Any, folds: int) -> bool:
    """True for the scores of a target by the model of each fold, False for its features."""
    if isinstance(target, (list, tuple)):
        return len(target) == folds and all(
            np.ndim(one) > 0 and not isinstance(one, (list, tuple)) for one in target
        )
    return getattr(target, "ndim", 0) == 3


def _by_row(values: Any, n: int) -> bool:
    shape = getattr(values, "shape", None)
    return (shape[0] if shape else len(values) if isinstance(values, (list, tuple)) else -1) == n


def _calibrates(y: Any, like: Evaluation) -> bool:
    """True if labels hold both groups (or two classes), as a calibration needs."""
    step = like.scored
    if step is None:
        return len(np.unique(y)) > 1
    group = dict(zip(like.labels, step.group_of_class.tolist(), strict=True))
    return len({group[label] for label in np.unique(y).tolist()}) > 1
