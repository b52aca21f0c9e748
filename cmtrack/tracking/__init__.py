"""Evaluations in MLflow: logged, loaded, listed, compared, regrouped and published.

Only this package uses MLflow, and only ``mlflow_inside`` uses MLflow functions that are not
documented. Numbers, texts and figures come from other packages: no module here computes a metric or
phrases a result.

Start with ``log``, which evaluates and then sends an ``Entry`` (``entry``). ``contents`` makes the
entry in a folder of the ``spool``, and ``deliver`` sends it in a thread. ``send`` replaces the
evaluation that the run holds (``held``), and ``shared_tags`` writes the tags that all evaluations
of a run share. An entry that could not be sent waits for ``push``, which validates it with
``entry_file``. To read evaluations, ``runs`` finds runs, ``load`` reads one evaluation, ``listed``
chooses runs to compare, and ``comparing`` reads and compares them. ``publish`` and ``views`` write
a comparison into a store.
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
