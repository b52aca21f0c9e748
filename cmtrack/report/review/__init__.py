"""The review of a comparison: its decision in words, as tables, figures, a report and a run."""

from cmtrack._lazy import lazy

__getattr__, __all__ = lazy(__name__, __file__)
