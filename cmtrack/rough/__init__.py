"""Rough sets: granules of rows, approximations of classes, and bounds for approximations.

This package analyses rows with identical attribute values, which a model cannot distinguish. The
figures are in ``cmtrack.plots``. Start with :class:`GranuleTable` (``table``), which counts
granules by class. The module ``approximations`` computes the approximations of the classes from
these counts. It also computes bounds for the approximations if only a confusion matrix is
available. The module ``metrics`` defines the metrics whose names start with ``rough/``.
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
