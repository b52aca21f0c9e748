"""Comparison of evaluations: differences, rankings of runs and of models, gates and verdicts.

This package computes numbers only. The texts, tables and pages of a comparison are in
:mod:`cmtrack.report`, the figures in :mod:`cmtrack.plots`, and all code that reads or writes MLflow
in :mod:`cmtrack.tracking`. The module ``spec`` declares the options of a comparison.

Start with ``compare.compare_runs``, which goes through the steps of a comparison. It uses
``ranking`` to rank runs (the arithmetic is in ``inference``), and it uses ``blocks`` and
``repeated`` to rank models over folds or seeds. All checks if two evaluations can be compared are
in ``comparability``.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
