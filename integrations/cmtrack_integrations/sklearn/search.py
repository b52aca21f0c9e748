"""Functions that log the candidates of a fitted search as nested runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from cmtrack.evaluation import evaluate
from cmtrack.evaluation.spec import Options, Spec, takes_options
from cmtrack.grouping import Label
from cmtrack.tracking import LoggedEvaluation
from cmtrack.tracking._warn import tell
from cmtrack.tracking.log import NestedEvaluation, chosen_run, log_nested
from cmtrack_integrations.sklearn.cross_validation import FoldedRows
from cmtrack_integrations.sklearn.predictions import with_notes


@takes_options
def log_candidates(
    search: Any,
    X: Any,
    y: Any,
    *,
    max_candidates: int | None = 10,
    labels: Sequence[Label] | None = None,
    sample_weight: Any = None,
    groups: Any = None,
    row_ids: Any = None,
    segments: Any = None,
    fit_params: Mapping[str, Any] | None = None,
    n_jobs: int | None = None,
    run_id: str | None = None,
    metrics: str | Sequence[str] = "headline",
    predictions: bool | str = "auto",
    strict: bool = False,
    **options: Unpack[Options],
) -> tuple[LoggedEvaluation, ...]:
    """Log the candidates of a fitted search as nested runs, evaluated on the **training** rows.

    The candidates are evaluated by cross-validation. A search stores the scores of its candidates,
    but not their predictions. Therefore, the best ``max_candidates`` candidates are fitted again on
    every fold. All candidates use the same folds, so that :func:`cmtrack.compare` can compare them
    row by row. Do not pass held-out rows here: rows that you use to choose a candidate cannot
    evaluate this candidate without bias. Use the held-out rows to evaluate the chosen candidate
    with :func:`log_estimator`.

    Parameters
    ----------
    search : fitted GridSearchCV, RandomizedSearchCV or the like
        Any fitted search with the attributes ``estimator``, ``cv`` and ``cv_results_``.
    X, y : array-like of n rows
        The rows on which the search was fitted.
    max_candidates : int or None, default 10
        Maximum number of candidates to log, starting with the best candidate. None logs all
        candidates.
    groups : array-like of shape (n,), optional
        Cluster of each row. The clusters are passed to the splitter, and the intervals take them
        into account.
    fit_params : mapping, optional
        Parameters that are passed to ``fit``. If a value contains one entry per row, only the
        entries of the training rows are passed.
    n_jobs : int, optional
        Number of folds to fit in parallel.
    labels, sample_weight, row_ids, segments
        As in :func:`cmtrack.evaluate`.
    run_id, metrics, predictions, strict
        As in :func:`cmtrack.log_evaluation`. The nested runs are created under the run ``run_id``,
        by default the active run. If no parent run exists, no candidate is fitted. You then get a
        warning and an empty result.
    **options
        As in :class:`cmtrack.evaluation.spec.Spec`.

    Returns
    -------
    tuple of LoggedEvaluation
        The logged candidates, best first. Each nested run stores the candidate's parameters, the
        position in ``cv_results_`` (as ``candidate``) and the ``rank``.

    Examples
    --------
    >>> import mlflow
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import GridSearchCV
    >>> from cmtrack_integrations.sklearn import log_candidates
    >>> X = np.random.default_rng(0).normal(size=(90, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> with mlflow.start_run():
    ...     search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, cv=3).fit(X, y)
    ...     logged = log_candidates(search, X, y)
    >>> [mlflow.get_run(one.run_id).data.params["C"] for one in logged]
    ['1.0', '0.01']
    """
    Spec.check_names(options, log_candidates)
    try:
        # Fitting may take hours, so the run is chosen first.
        run_id = chosen_run(run_id)
    except ValueError as error:
        if strict:
            raise
        tell(f"no candidate was fitted or evaluated: {error}")
        return ()

    def evaluate_candidates() -> Iterator[NestedEvaluation]:
        """Yield the candidates, best first; evaluate each candidate just before it is logged."""
        from sklearn.base import clone

        results = _check_search(search, max_candidates)
        columns = {
            "y": y,
            "X": X,
            "sample_weight": sample_weight,
            "groups": groups,
            "row_ids": row_ids,
            "segments": segments,
            "fit_params": fit_params,
        }
        rows = FoldedRows.from_columns(columns, labels, search.cv)
        ranks = _ranks(results, getattr(search, "refit", None))
        for candidate in np.argsort(ranks, kind="stable")[:max_candidates].tolist():
            params = results["params"][candidate]
            own_params = {name: clone(value, safe=False) for name, value in params.items()}
            estimator = clone(search.estimator).set_params(**own_params)
            predicted = rows.join(rows.fit_and_predict(estimator, n_jobs))
            evaluation = evaluate(rows.y, **predicted.arguments(options), **rows.columns, **options)
            logged_params = {**params, "candidate": candidate, "rank": int(ranks[candidate])}
            yield NestedEvaluation(
                f"candidate {candidate}", with_notes(evaluation, predicted.notes), logged_params
            )

    try:
        return log_nested(
            evaluate_candidates(),
            run_id=run_id,
            metrics=metrics,
            predictions=predictions,
            strict=strict,
        )
    except Exception as error:
        if strict:
            raise
        tell(f"the candidates were not evaluated: {error}")
        return ()


def _check_search(search: Any, max_candidates: int | None) -> Mapping[str, Any]:
    """Return the ``cv_results_`` of a search after checking the arguments.

    Raises
    ------
    ValueError
        If the search is not fitted, or ``max_candidates`` is less than 1.
    """
    results: Mapping[str, Any] | None = getattr(search, "cv_results_", None)
    if results is None or not hasattr(search, "estimator"):
        raise ValueError(
            f"search must be fitted, with cv_results_ and an estimator, got {type(search).__name__}"
        )
    if max_candidates is not None and max_candidates < 1:
        raise ValueError(f"max_candidates must be at least 1, or None, got {max_candidates}")
    return results


def _ranks(results: Mapping[str, Any], refit: Any) -> Any:
    """Return the rank of each candidate; with several metrics, the refit metric decides."""
    wanted = f"rank_test_{refit}" if isinstance(refit, str) else "rank_test_score"
    names = [name for name in results if name.startswith("rank_test_")]
    if wanted in results:
        return np.asarray(results[wanted])
    if names:
        return np.asarray(results[names[0]])
    # If the search has no scores, the candidates stay in the order in which they were tried.
    return np.arange(1, len(results["params"]) + 1)
