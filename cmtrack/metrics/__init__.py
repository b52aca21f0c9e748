"""Metrics, which are computed from statistics by pure functions that use NumPy and SciPy.

This package defines every metric, with its influence, its standard error and its interval. It also
computes the curves and tests of one evaluation, and the differences between evaluations of the same
rows. Other packages count the rows (``statistics``), decide in which order numbers are computed and
which of them an evaluation shows (``evaluation``), and write the texts and figures of a page.

Start with ``metric``, which defines :class:`Metric`, and then read the section ``multiclass`` from
top to bottom. ``views`` turns an evaluation's statistics into
:class:`~cmtrack.metrics.samples.Samples`, the argument of a metric's function, and ``results``
collects the numbers. ``catalog`` finds metrics by name. Comparisons of evaluations use ``paired``
and ``influence``.

Names are imported when they are first used. The packages for rough sets and prevalence build on
modules of this package. You can also import their names from here.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
