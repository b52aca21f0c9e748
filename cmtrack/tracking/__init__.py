"""Evaluation <-> MLflow."""

from cmtrack.tracking._warn import EvaluationWarning
from cmtrack.tracking.contents import build_into
from cmtrack.tracking.load import load_evaluation
from cmtrack.tracking.log import LoggedEvaluation, log_evaluation
from cmtrack.tracking.names import digests, tag
from cmtrack.tracking.regroup import RegroupedRun, regroup_runs
from cmtrack.tracking.runs import TrackedRun
from cmtrack.tracking.segments import segment_runs
from cmtrack.tracking.store import quiet, tracking_store

__all__ = [
    "EvaluationWarning",
    "LoggedEvaluation",
    "RegroupedRun",
    "TrackedRun",
    "build_into",
    "digests",
    "load_evaluation",
    "log_evaluation",
    "quiet",
    "regroup_runs",
    "segment_runs",
    "tag",
    "tracking_store",
]
