"""Metrics: from statistics to numbers, by pure functions on NumPy and SciPy.

Names are imported when they are first used. Those of rough sets and of prevalence live in packages
of their own, which stand on modules of this one, and can be imported from here as well.
"""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
