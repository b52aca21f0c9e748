"""Comparison of evaluations: differences, rankings of runs and of models, verdicts; numbers only, without MLflow."""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
