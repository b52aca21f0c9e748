"""Metrics: from statistics to numbers, by pure functions on NumPy and SciPy.

What belongs here: the definition of every metric, its influence, its standard error and its
interval; curves and tests of one evaluation; differences between evaluations of the same rows.
What does not: counting rows (``statistics``), the order of computations and what an evaluation
shows (``evaluation``), and any word or figure of a page.

Start with ``metric``, which has :class:`Metric`, and with ``multiclass``, a section that is read
from top to bottom. A function of a metric is called with :class:`~cmtrack.metrics.samples.Samples`,
which ``views`` makes of an evaluation's statistics, and ``results`` collects the numbers.
``catalog`` finds metrics by name. ``paired`` and ``influence`` serve comparisons.

Names are imported when they are first used. Those of rough sets and of prevalence live in packages
of their own, which stand on modules of this one, and can be imported from here as well.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
