"""Data and options -> :class:`Evaluation`."""

from cmtrack.evaluation.from_arrays import evaluate
from cmtrack.evaluation.result import Evaluation

__all__ = ["Evaluation", "evaluate"]
