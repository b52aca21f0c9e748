"""Rough sets: what attributes or a confusion matrix say of classes that they cannot separate."""

from cmtrack.rough.approximations import RoughApproximations, RoughBounds, rough_bounds
from cmtrack.rough.reducts import AttributeSubsets
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
