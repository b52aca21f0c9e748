"""Rough sets: granules of rows, approximations of classes, and bounds by a confusion matrix.

This room computes what follows from rows that attributes cannot separate. Figures are in
``cmtrack.plots``. Start with :class:`GranuleTable` (``table``), which counts granules by class. Its
approximations, and the bounds from a confusion matrix alone, are in ``approximations``. The section
``rough/`` of an evaluation is in ``metrics``.
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
