"""Functions that log, load, list, compare, regroup and publish evaluations in MLflow.

All use of MLflow is in this package, and all use of undocumented MLflow functions is in
``mlflow_inside``. Numbers, texts and figures come from other packages: no module here computes a
metric or phrases a result.

Start with ``log``, which evaluates and then sends an ``Entry`` (``entry``). ``contents`` writes the
entry into a folder of the ``spool``, and ``deliver`` sends the entry in a thread. ``send`` replaces
the evaluation that is already in the run (``held``), and ``shared_tags`` writes the tags that all
evaluations of a run share. An entry that could not be sent stays in the spool until ``push``
validates it with ``entry_file`` and sends it. To read evaluations, ``runs`` finds runs, ``load``
reads one evaluation, ``listed`` chooses runs to compare, and ``comparing`` reads and compares them.
``publish`` and ``views`` write a comparison into a store. For registered models, ``registry`` finds
versions, ``scoring`` and ``model_rows`` evaluate them, ``promotion`` compares and records them, and
``history`` reads the records.
"""

from cmtrack.tracking._warn import EvaluationWarning
from cmtrack.tracking.contents import build_into
from cmtrack.tracking.load import load_evaluation
from cmtrack.tracking.log import LoggedEvaluation, log_evaluation
from cmtrack.tracking.names import digests, tag
from cmtrack.tracking.promotion import NotMoved
from cmtrack.tracking.regroup import RegroupedRun, regroup_runs
from cmtrack.tracking.runs import TrackedRun
from cmtrack.tracking.segments import segment_runs
from cmtrack.tracking.store import quiet, tracking_store

__all__ = [
    "EvaluationWarning",
    "LoggedEvaluation",
    "NotMoved",
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
