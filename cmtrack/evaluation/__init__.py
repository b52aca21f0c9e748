"""Data and a question -> :class:`Evaluation`."""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
