"""Words, the list of figures, and pages of an evaluation and of a comparison."""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
