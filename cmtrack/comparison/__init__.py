"""Comparison of evaluations: differences, rankings of runs and of models, gates and verdicts.

This package computes numbers only. The texts, tables and pages of a comparison are in
:mod:`cmtrack.report`, the figures in :mod:`cmtrack.plots`, and all code that reads or writes MLflow
in :mod:`cmtrack.tracking`. ``spec`` declares each option once.

Start with ``compare.compare_runs``, which goes through the steps of a comparison. It ranks runs
with ``ranking`` (the arithmetic is in ``inference``), and models over folds or seeds with
``blocks`` and ``repeated``. Only ``comparability`` decides if two evaluations can be compared.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
