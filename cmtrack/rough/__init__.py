"""Rough sets: granules of rows, approximations of classes, and bounds by a confusion matrix.

Here belongs what follows from rows that attributes cannot separate. Figures are in
``cmtrack.plots``. Start with :class:`GranuleTable` (``table``), which counts granules by class; its
approximations, and the bounds that a confusion matrix alone gives, are in ``approximations``, and
the section ``rough/`` of an evaluation is in ``metrics``.
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
