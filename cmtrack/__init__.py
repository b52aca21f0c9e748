"""Judge a classifier properly after every training run, and see it in MLflow.

Names are imported when they are first used, so that ``import cmtrack`` is quick and has no side effect.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmtrack.comparison import Comparison, paired_differences
    from cmtrack.evaluation import Evaluation, evaluate
    from cmtrack.evaluation.accumulator import Accumulator
    from cmtrack.evaluation.from_tables import evaluate_table
    from cmtrack.evaluation.spans import evaluate_spans
    from cmtrack.families.evaluate import evaluate_families, evaluate_family_levels
    from cmtrack.families.hierarchy import Prefix, Tree
    from cmtrack.families.result import FamilyEvaluation
    from cmtrack.grouping import Grouping
    from cmtrack.metrics import Metric, PrevalenceEstimate, estimate_prevalence
    from cmtrack.rough import (
        AttributeSubsets,
        GranuleTable,
        RoughApproximations,
        RoughBounds,
        attribute_subsets,
        granule_table,
        rough_bounds,
    )
    from cmtrack.statistics import ConfusionMatrix, ReducedConfusionMatrix
    from cmtrack.tracking import LoggedEvaluation, compare, load_evaluation, log_evaluation, regroup_runs

_HOME = {
    "Accumulator": "cmtrack.evaluation.accumulator",
    "AttributeSubsets": "cmtrack.rough",
    "Comparison": "cmtrack.comparison",
    "ConfusionMatrix": "cmtrack.statistics",
    "Evaluation": "cmtrack.evaluation",
    "FamilyEvaluation": "cmtrack.families.result",
    "GranuleTable": "cmtrack.rough",
    "Grouping": "cmtrack.grouping",
    "LoggedEvaluation": "cmtrack.tracking",
    "Metric": "cmtrack.metrics",
    "Prefix": "cmtrack.families.hierarchy",
    "PrevalenceEstimate": "cmtrack.metrics",
    "ReducedConfusionMatrix": "cmtrack.statistics",
    "RoughApproximations": "cmtrack.rough",
    "RoughBounds": "cmtrack.rough",
    "Tree": "cmtrack.families.hierarchy",
    "attribute_subsets": "cmtrack.rough",
    "compare": "cmtrack.tracking",
    "estimate_prevalence": "cmtrack.metrics",
    "evaluate": "cmtrack.evaluation",
    "evaluate_families": "cmtrack.families.evaluate",
    "evaluate_family_levels": "cmtrack.families.evaluate",
    "evaluate_spans": "cmtrack.evaluation.spans",
    "evaluate_table": "cmtrack.evaluation.from_tables",
    "granule_table": "cmtrack.rough",
    "load_evaluation": "cmtrack.tracking",
    "log_evaluation": "cmtrack.tracking",
    "paired_differences": "cmtrack.comparison",
    "regroup_runs": "cmtrack.tracking",
    "rough_bounds": "cmtrack.rough",
}

__all__ = [
    "Accumulator",
    "AttributeSubsets",
    "Comparison",
    "ConfusionMatrix",
    "Evaluation",
    "FamilyEvaluation",
    "GranuleTable",
    "Grouping",
    "LoggedEvaluation",
    "Metric",
    "Prefix",
    "PrevalenceEstimate",
    "ReducedConfusionMatrix",
    "RoughApproximations",
    "RoughBounds",
    "Tree",
    "attribute_subsets",
    "compare",
    "estimate_prevalence",
    "evaluate",
    "evaluate_families",
    "evaluate_family_levels",
    "evaluate_spans",
    "evaluate_table",
    "granule_table",
    "load_evaluation",
    "log_evaluation",
    "paired_differences",
    "regroup_runs",
    "rough_bounds",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cmtrack")
    if name not in _HOME:
        raise AttributeError(f"module 'cmtrack' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
