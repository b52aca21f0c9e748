"""Rough sets: granules of rows, approximations of classes, reducts, and bounds by a confusion matrix."""

from cmtrack.rough._reducts import AttributeSubsets
from cmtrack.rough.approximations import RoughApproximations, RoughBounds, rough_bounds
from cmtrack.rough.table import GranuleTable, attribute_subsets, granule_table

__all__ = [
    "AttributeSubsets",
    "GranuleTable",
    "RoughApproximations",
    "RoughBounds",
    "attribute_subsets",
    "granule_table",
    "rough_bounds",
]
