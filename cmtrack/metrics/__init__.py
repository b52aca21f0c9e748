"""Metrics: from statistics to numbers, by pure functions on NumPy and SciPy.

What belongs here: the definition of every metric, its influence, its standard error and its
interval; curves and tests of one evaluation; differences between evaluations of the same rows.
What does not: counting rows (``statistics``), the order of computations and what an evaluation
shows (``evaluation``), and any word or figure of a page.

Start with ``metric``, which has :class:`Metric`, and with ``multiclass``, a section that you can
read from top to bottom. ``views`` turns an evaluation's statistics into
:class:`~cmtrack.metrics.samples.Samples`, the argument of a metric's function, and ``results``
collects the numbers. ``catalog`` finds metrics by name. Comparisons use ``paired`` and
``influence``.

Names are imported when they are first used. Rough sets and prevalence have separate packages, which
build on modules of this one. Their names can also be imported from here.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
