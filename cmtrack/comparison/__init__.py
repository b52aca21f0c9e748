"""Comparison of evaluations: differences, rankings of runs and of models, gates and verdicts.

This package computes numbers only. The texts, tables and pages of a comparison are in
:mod:`cmtrack.report`, the figures in :mod:`cmtrack.plots`, and all code that reads or writes MLflow
in :mod:`cmtrack.tracking`. The module ``spec`` declares the options of a comparison.

Start reading the code at ``compare.compare_runs``, which runs all steps of a comparison. To rank
runs, this function calls ``ranking``, whose arithmetic is in ``inference``. To rank models over
folds or seeds, it calls ``blocks`` and ``repeated``. The module ``comparability`` checks whether
two evaluations can be compared.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
