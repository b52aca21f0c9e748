"""Rough sets: granules of rows, approximations of classes, and bounds by a confusion matrix."""

from cmtrack.rough.approximations import RoughApproximations, RoughBounds, rough_bounds
from cmtrack.rough.table import GranuleTable, granule_table

__all__ = [
    "GranuleTable",
    "RoughApproximations",
    "RoughBounds",
    "granule_table",
    "rough_bounds",
]
