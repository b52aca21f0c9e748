"""Evaluations in MLflow: logged, loaded, listed, compared, regrouped and published.

This is the only room that knows MLflow. What MLflow does not document is used in
``mlflow_inside`` alone. Numbers, words and figures come from the rooms below: nothing here computes
a metric or phrases a result.

Start with ``log``: it evaluates, has ``contents`` make an ``Entry`` (``entry``) in a folder of the
``spool``, and has ``deliver`` send it in a thread. ``send`` puts it into the run in place of what
the run holds (``held``), and ``shared_tags`` writes what several evaluations of a run share. An
entry that did not arrive waits for ``push``, which reads it with the suspicion of ``entry_file``.
The way back is ``runs`` (references to runs), ``load`` (one evaluation) and ``comparing`` (many, of
which ``listed`` chooses those to read). ``publish`` and ``views`` write a comparison into a store.
"""

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
