"""Data and a question -> :class:`Evaluation`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmtrack.evaluation.from_arrays import evaluate as evaluate
    from cmtrack.evaluation.result import Evaluation as Evaluation

_HOME = {"Evaluation": "cmtrack.evaluation.result", "evaluate": "cmtrack.evaluation.from_arrays"}

__all__ = ["Evaluation", "evaluate"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
