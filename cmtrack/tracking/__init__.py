"""Evaluation <-> MLflow."""

from cmtrack.tracking.load import load_evaluation
from cmtrack.tracking.log import EvaluationWarning, LoggedEvaluation, log_evaluation

__all__ = ["EvaluationWarning", "LoggedEvaluation", "load_evaluation", "log_evaluation"]
