"""Data and options -> :class:`Evaluation`."""

from cmtrack.evaluation.evaluate import evaluate
from cmtrack.evaluation.result import Evaluation

__all__ = ["Evaluation", "evaluate"]
