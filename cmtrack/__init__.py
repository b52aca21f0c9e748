"""Judge a classifier properly after every training run, and see it in MLflow.

Names are imported when they are first used, so that ``import cmtrack`` is quick and has no side effect.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {  # and in __init__.pyi, with their types
    "Accumulator": "cmtrack.evaluation.accumulator",
    "AttributeSubsets": "cmtrack.rough",
    "Comparison": "cmtrack.comparison",
    "ConfusionMatrix": "cmtrack.statistics",
    "Costs": "cmtrack.grouping",
    "Evaluation": "cmtrack.evaluation",
    "FamilyEvaluation": "cmtrack.families.result",
    "GranuleTable": "cmtrack.rough",
    "Grouping": "cmtrack.grouping",
    "LoggedEvaluation": "cmtrack.tracking",
    "Metric": "cmtrack.metrics",
    "Prefix": "cmtrack.families.hierarchy",
    "PrevalenceEstimate": "cmtrack.prevalence",
    "ReducedConfusionMatrix": "cmtrack.statistics",
    "RoughApproximations": "cmtrack.rough",
    "RoughBounds": "cmtrack.rough",
    "Threshold": "cmtrack.evaluation.threshold",
    "Tree": "cmtrack.families.hierarchy",
    "attribute_subsets": "cmtrack.rough",
    "compare": "cmtrack.tracking.comparing",
    "estimate_prevalence": "cmtrack.prevalence",
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
    "segment_runs": "cmtrack.tracking",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("cmtrack")
    if name not in _HOME:
        raise AttributeError(f"module 'cmtrack' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
