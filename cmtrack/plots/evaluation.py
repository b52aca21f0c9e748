"""All figures that apply to an evaluation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from . import labels as text
from .confusion import plot_confusion_matrix, plot_reduced_matrix
from .prevalence import plot_prevalence_likelihood
from .roc import plot_roc
from .scores import plot_score_histogram
from .spcc import plot_spcc_matrix

if TYPE_CHECKING:
    from cmtrack.evaluation import Evaluation

_REFERENCES = {
    "prevalence/classify_and_count": "classify and count",
    "prevalence/expected": "sum of probabilities",
}


def evaluation_figures(evaluation: Evaluation) -> dict[str, Figure]:
    """Draw every figure that applies to `evaluation`.

    Parameters
    ----------
    evaluation : Evaluation
        What :func:`cmtrack.evaluate` returned.

    Returns
    -------
    dict of str to matplotlib.figure.Figure
        ``confusion_matrix``; ``reduced_<step>`` for each grouping step; and where the data allow them
        ``roc``, ``spcc_matrix``, ``score_histogram`` and ``prevalence_likelihood``.
    """
    matrix = evaluation.confusion_matrix
    title = "Confusion matrix"
    figures = {"confusion_matrix": plot_confusion_matrix(matrix.counts, matrix.labels, title=title)}
    for step in evaluation.reduced:
        figures[f"reduced_{step.name}"] = plot_reduced_matrix(
            step.counts, step.mismatches, step.labels, title=f"Reduced confusion matrix: {_shown(step.name)}"
        )
    optional = {
        "roc": _roc(evaluation),
        "spcc_matrix": _spcc_matrix(evaluation),
        "score_histogram": _score_histogram(evaluation),
        "prevalence_likelihood": _prevalence_likelihood(evaluation),
    }
    return figures | {name: figure for name, figure in optional.items() if figure is not None}


def _shown(name: object) -> str:
    return text.verbatim(text.elide(text.one_line(name), 40))


def _roc(evaluation: Evaluation) -> Figure | None:
    roc = evaluation.roc
    if roc is None:
        return None
    return plot_roc(
        roc.fpr, roc.tpr, auc=roc.auc, ceiling=roc.ceiling, normalized_auc=roc.auc_normalized,
        auc_interval=roc.auc_interval, operating_point=roc.operating_point, positive=roc.positive,
        title="ROC curve",
    )  # fmt: skip


def _spcc_matrix(evaluation: Evaluation) -> Figure | None:
    if evaluation.spcc_matrix is None:
        return None
    labels = evaluation.confusion_matrix.labels
    return plot_spcc_matrix(evaluation.spcc_matrix, labels, title="One-vs-one sPCC")


def _score_histogram(evaluation: Evaluation) -> Figure | None:
    scores, estimate = evaluation.positive_scores, evaluation.prevalence
    if scores is None:
        return None
    accepted, rejected, *negatives = scores.counts
    rows = {str(evaluation.negative): sum(negatives)}
    if rejected.any():
        rows[f"{evaluation.positive}, wrong class within it"] = rejected
        rows[f"{evaluation.positive}, right class within it"] = accepted
    else:
        rows[str(evaluation.positive)] = accepted
    identified = estimate is not None and estimate.positive is not None and math.isfinite(estimate.value)
    calibrated = estimate.posterior(scores.values) if estimate is not None and identified else None
    return plot_score_histogram(
        scores.values, list(rows.values()), list(rows), calibrated=calibrated,
        title=f"Scores for {_shown(evaluation.positive)} by actual class",
    )  # fmt: skip


def _prevalence_likelihood(evaluation: Evaluation) -> Figure | None:
    estimate = evaluation.prevalence
    if estimate is None or estimate.positive is None:
        return None
    grid, deviance = estimate.likelihood()
    metrics = evaluation.metrics
    return plot_prevalence_likelihood(
        grid, deviance, value=estimate.value, low=estimate.low, high=estimate.high,
        confidence_level=estimate.confidence_level, inflation=estimate.inflation,
        actual=metrics.get("prevalence/actual"),
        references={label: metrics[name] for name, label in _REFERENCES.items() if name in metrics},
        title=f"Prevalence of {_shown(estimate.positive)}",
    )  # fmt: skip
