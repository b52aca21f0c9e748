"""The two reductions of section 5.3, and which of the product's metrics stand in which row of Tables 6 to 8."""

from __future__ import annotations

import numpy as np

from cmtrack import Evaluation, Grouping, evaluate
from nps import published

POSITIVE, NEGATIVE = "not detractor", "detractor"
STEP_1, STEP_2 = "nps", "recommend"

RECOMMEND = Grouping(
    {NEGATIVE: [NEGATIVE], POSITIVE: ["passive", "promoter"]},
    mode="strict",
    positive=POSITIVE,
    name=STEP_2,
)
"""Equation 46: strict, detractors negative, passives and promoters together positive."""
NPS = Grouping.nps().then(RECOMMEND)
"""Equation 45 (relaxed), then equation 46."""

ROWS_6 = {
    "Accuracy": "multiclass/accuracy",
    "Precision": "multiclass/precision_macro",
    "Recall": "multiclass/recall_macro",
    "F1-score": "multiclass/f1_macro",
    "F1 of macro means": "multiclass/f1_of_macro_means",
    "Precision, weighted": "multiclass/precision_weighted",
    "F1, weighted": "multiclass/f1_weighted",
    "Cohen's kappa": "multiclass/cohen_kappa",
    "Cohen's kappa, quadratic": "multiclass/cohen_kappa_quadratic",
    "Matthews correlation": "multiclass/matthews_corrcoef",
}
"""Weighted recall is the accuracy, balanced accuracy the macro recall."""
ROWS_8 = {
    "Accuracy": "binary/accuracy",
    "Precision": "binary/precision",
    "Recall": "binary/recall",
    "F1-Score": "binary/f1",
    "Specificity": "binary/specificity",
    "Miss Rate": "binary/fnr",
    "Negative Predictive Value": "binary/npv",
    "Fall Out Rate": "binary/fpr",
    "False Discovery Rate": "binary/fdr",
    "False Omission Rate": "binary/for",
    "Fowlkes-Mallows index": "binary/fowlkes_mallows",
    "Mathews Correlation Coefficient": "binary/matthews_corrcoef",
    "PIMR": "binary/pimr",
    "PPIMR": "binary/ppimr",
    "NIMR": "binary/nimr",
    "NPIMR": "binary/npimr",
    "Balanced accuracy": "binary/balanced_accuracy",
    "Prevalence threshold": "binary/prevalence_threshold",
    "Informedness": "binary/informedness",
    "Markedness": "binary/markedness",
    "Threat score": "binary/threat_score",
}
ROWS_ROC = {
    "AUC": "binary/roc_auc",
    "ceiling": "binary/roc_auc_ceiling",
    "normalised AUC": "binary/roc_auc_normalized",
}


def rows_7(grouping: Grouping) -> dict[str, str]:
    """The rows of Table 7, and the recall, precision and F1 of each group, for a chain's first step."""
    first = grouping.steps[0]
    names = {
        "Accuracy": "accuracy",
        "Precision": "precision_macro",
        "Recall": "recall_macro",
        "F1-score": "f1_macro",
        "F1 of macro means": "f1_of_macro_means",
        "Matthews correlation": "matthews_corrcoef",
        "Mismatch rate": "mismatch_rate",
    }
    rows = {row: f"reduced/{first.name}/{name}" for row, name in names.items()}
    for group in first.labels:
        rows |= {
            f"{kind}, {group}": f"reduced/{first.name}/{group}/{kind}"
            for kind in ("precision", "recall", "f1")
        }
    return rows


def expanded(counts: np.ndarray) -> Evaluation:
    """The published 3 x 3 matrix as 509 customers of known and predicted group, evaluated and reduced."""
    actual, predicted = np.meshgrid(published.GROUPS, published.GROUPS, indexing="ij")
    times = np.asarray(counts).ravel()
    return evaluate(
        np.repeat(actual.ravel(), times),
        np.repeat(predicted.ravel(), times),
        labels=published.GROUPS,
        grouping=RECOMMEND,
    )
