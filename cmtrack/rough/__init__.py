"""Rough sets: granules of rows, approximations of classes, and bounds from confusion matrices.

This package analyses rows that have the same attribute values and therefore cannot be separated by
a model. The figures are in ``cmtrack.plots``. Start with :class:`GranuleTable` (``table``), which
counts granules by class. The module ``approximations`` computes the approximations of the classes
from these counts, and bounds of the approximations from a confusion matrix alone. The module
``metrics`` defines the metrics whose names start with ``rough/``.
"""

from cmtrack.rough.approximations import RoughApproximations, RoughBounds, rough_bounds
from cmtrack.rough.table import GranuleTable, granule_table

__all__ = [
    "GranuleTable",
    "RoughApproximations",
    "RoughBounds",
    "granule_table",
    "rough_bounds",
]
