"""Scorers that scikit-learn's searches and cross-validation functions accept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cmtrack.evaluation import evaluate
from cmtrack.evaluation.catalog import CATALOG, lookup
from cmtrack.grouping import Costs, Grouping, Label, as_costs
from cmtrack.metrics.names import near
from cmtrack.statistics.inputs import align_rows
from cmtrack_integrations.sklearn.predictions import (
    has_probabilities,
    known_labels,
    no_probabilities,
    probabilities,
)


@dataclass(frozen=True)
class CmtrackScorer:
    """Scorer that scikit-learn accepts, for one metric; larger scores are always better.

    :func:`get_scorer` returns such a scorer. Call it as ``scorer(estimator, X, y)``.

    Examples
    --------
    >>> from cmtrack_integrations.sklearn import get_scorer
    >>> get_scorer("multiclass/accuracy")
    get_scorer('multiclass/accuracy')
    """

    metric: str
    grouping: Grouping | None = None
    positive: Label | None = None
    labels: tuple[Label, ...] | None = None
    costs: Costs | None = None

    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None) -> float:
        """Return the score of a fitted classifier on the given rows.

        The result is NaN if the metric is undefined, and minus infinity if a loss is infinite.

        Raises
        ------
        ValueError
            If the metric needs probabilities and the classifier does not return them, or if the
            evaluation of the rows does not contain the metric.
        """
        entry = lookup(self.metric)
        X = align_rows({"y_true": y_true, "X": X})["X"]
        order = known_labels(estimator, y_true, self.labels)
        predictions: dict[str, Any] = {}
        if entry.needs == "probabilities":
            if not has_probabilities(estimator):
                raise ValueError(
                    f"{self.metric} needs probabilities; {no_probabilities(estimator)}"
                )
            predictions["y_prob"] = probabilities(estimator, X, order)
        if entry.needs != "probabilities" or self.metric == "prevalence/classify_and_count":
            predictions["y_pred"] = estimator.predict(X)
        evaluation = evaluate(
            y_true,
            labels=order,
            grouping=self.grouping,
            positive=self.positive,
            sample_weight=sample_weight,
            costs=self.costs,
            **predictions,
        )
        metrics = evaluation.metrics
        if self.metric not in metrics:
            hint = near(self.metric, metrics) or f"; they have {sorted(metrics)[:60]}"
            raise ValueError(f"these data have no metric {self.metric!r}{hint}")
        value = metrics[self.metric]
        if self.metric in evaluation.infinite:
            return -math.inf
        if math.isnan(value) or entry.better == "higher":
            return value
        if entry.better == "nearest zero":
            return -abs(value)
        return -value

    def __repr__(self) -> str:
        options = [
            f", {name}={value!r}"
            for name, value in vars(self).items()
            if name != "metric" and value is not None
        ]
        return f"get_scorer({self.metric!r}{''.join(options)})"


def get_scorer(
    metric: str,
    *,
    grouping: Grouping | None = None,
    positive: Label | None = None,
    labels: Sequence[Label] | None = None,
    costs: Costs | Mapping[tuple[Any, Any], float] | None = None,
) -> CmtrackScorer:
    """Return a scorer for the argument ``scoring`` of scikit-learn's searches and cross-validation.

    Larger scores are always better. If lower values of a metric are better, the score is the
    negated metric. If the best value of a metric is zero, as for ``prevalence/bias``, the score is
    the negated absolute value. The scorer uses ``predict_proba`` only if the metric needs it.

    Parameters
    ----------
    metric : str
        Name of a metric in the registry, such as ``"binary/matthews_corrcoef"`` or
        ``"class/3/recall"``. Higher or lower values of the metric must be better.
    grouping, positive
        As in :func:`cmtrack.evaluate`.
    labels : sequence, optional
        All classes in order; by default all classes of the classifier and all labels in the rows.
    costs : Costs or mapping of (actual, predicted) to float, optional
        Costs of decisions, which metrics such as ``cost/mean`` need.

    Returns
    -------
    CmtrackScorer
        A scorer that can be copied and pickled.

    Raises
    ------
    ValueError
        If the metric does not exist, if neither higher nor lower values are better, if the metric
        is not computed from a classifier's predictions, or if it needs ``costs`` and you did not
        pass them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from cmtrack_integrations.sklearn import get_scorer
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> scorer = get_scorer("binary/matthews_corrcoef")
    >>> scores = cross_val_score(LogisticRegression(), X, y, scoring=scorer, cv=3)
    >>> bool((scores > 0.8).all())
    True
    """
    try:
        entry = lookup(metric)
    except KeyError as error:
        similar = near(metric, (known.name for known in CATALOG))
        hint = similar or "; docs/reference/metrics.md lists them"
        raise ValueError(f"{error.args[0]}{hint}") from None
    if not entry.better:
        raise ValueError(
            f"metric must have a direction, got {metric}, for which neither high nor low "
            "values are better"
        )
    if entry.needs == "costs" and costs is None:
        raise ValueError(
            f"{metric} needs costs: get_scorer({metric!r}, costs={{(actual, predicted): cost}})"
        )
    if entry.needs not in ("labels", "two groups", "probabilities", "costs"):
        raise ValueError(
            f"{metric} is computed from {entry.needs}, not from a classifier's predictions"
        )
    order = None if labels is None else tuple(labels)
    cost_table = None if costs is None else as_costs(costs)
    return CmtrackScorer(metric, grouping, positive, order, cost_table)
