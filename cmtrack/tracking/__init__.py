"""Evaluation <-> MLflow."""

from cmtrack.tracking._warn import EvaluationWarning
from cmtrack.tracking.load import load_evaluation
from cmtrack.tracking.log import LoggedEvaluation, log_evaluation
from cmtrack.tracking.regroup import RegroupedRun, regroup_runs
from cmtrack.tracking.segments import segment_runs

__all__ = [
    "EvaluationWarning",
    "LoggedEvaluation",
    "RegroupedRun",
    "load_evaluation",
    "log_evaluation",
    "regroup_runs",
    "segment_runs",
]
