"""scikit-learn: estimators, searches, cross-validation, scorers and Displays.

These modules collect predictions and pass them to cmtrack. They do not call scikit-learn's metric
functions, because ``mlflow.sklearn.autolog()`` would log the results as additional metrics.
"""

from cmtrack_integrations.sklearn.cross_validation import CrossValidated, cross_validate_evaluation
from cmtrack_integrations.sklearn.displays import (
    PrecisionRecallDisplay,
    PrevalenceDisplay,
    ReducedConfusionMatrixDisplay,
    ReducedRocDisplay,
    ReliabilityDisplay,
)
from cmtrack_integrations.sklearn.estimators import evaluate_estimator, log_estimator
from cmtrack_integrations.sklearn.scorers import CmtrackScorer, get_scorer
from cmtrack_integrations.sklearn.search import log_candidates

__all__ = [
    "CmtrackScorer",
    "CrossValidated",
    "PrecisionRecallDisplay",
    "PrevalenceDisplay",
    "ReducedConfusionMatrixDisplay",
    "ReducedRocDisplay",
    "ReliabilityDisplay",
    "cross_validate_evaluation",
    "evaluate_estimator",
    "get_scorer",
    "log_candidates",
    "log_estimator",
]
