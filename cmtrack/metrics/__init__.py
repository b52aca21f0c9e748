"""Metrics: from statistics to numbers, by pure functions on NumPy and SciPy.

Names are imported when they are first used: the catalog reads the sections of other packages, which stand on modules of
this one. The names of rough sets and of prevalence live in packages of their own and can be imported from here as well.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {  # and in __init__.pyi, with their types
    "AttributeSubsets": "cmtrack.rough",
    "CATALOG": "cmtrack.metrics.catalog",
    "GranuleTable": "cmtrack.rough",
    "Metric": "cmtrack.metrics.metric",
    "PrevalenceEstimate": "cmtrack.prevalence",
    "RocCurve": "cmtrack.metrics.roc",
    "RoughApproximations": "cmtrack.rough",
    "RoughBounds": "cmtrack.rough",
    "attribute_subsets": "cmtrack.rough",
    "em_shares": "cmtrack.prevalence",
    "estimate_prevalence": "cmtrack.prevalence",
    "granule_table": "cmtrack.rough",
    "lookup": "cmtrack.metrics.catalog",
    "prior_corrected": "cmtrack.prevalence",
    "roc_curve": "cmtrack.metrics.roc",
    "rough_bounds": "cmtrack.rough",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cmtrack.metrics' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
