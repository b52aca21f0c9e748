"""Label sets in families of codes -> :class:`FamilyEvaluation`."""

from cmtrack.evaluation.families.answers import CodeAnswer
from cmtrack.evaluation.families.evaluate import evaluate_families, evaluate_family_levels
from cmtrack.evaluation.families.matrix import FamilyMatrix
from cmtrack.evaluation.families.result import FamilyEvaluation

__all__ = ["CodeAnswer", "FamilyEvaluation", "FamilyMatrix", "evaluate_families", "evaluate_family_levels"]
