"""Comparison of evaluations: differences, rankings of runs and of models, gates and verdicts.

Numbers only: words, tables and pages of a comparison are in :mod:`cmtrack.report`, its figures in
:mod:`cmtrack.plots`, and whatever reads or writes MLflow in :mod:`cmtrack.tracking`. Options are
declared once, in ``spec``.

Start with ``compare.compare_runs``, which reads as a list of what a comparison does. It ranks runs
by ``ranking`` (with the arithmetic in ``inference``) and models over folds or seeds by ``blocks``
and ``repeated``. Whether two evaluations may be compared is decided in ``comparability`` alone.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
