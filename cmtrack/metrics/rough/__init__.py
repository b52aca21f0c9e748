"""Rough sets: what attributes or a confusion matrix say of classes that they cannot separate."""

from cmtrack.metrics.rough.approximations import RoughApproximations
from cmtrack.metrics.rough.bounds import RoughBounds, rough_bounds
from cmtrack.metrics.rough.reducts import AttributeSubsets
from cmtrack.metrics.rough.table import GranuleTable, attribute_subsets, granule_table

__all__ = [
    "AttributeSubsets",
    "GranuleTable",
    "RoughApproximations",
    "RoughBounds",
    "attribute_subsets",
    "granule_table",
    "rough_bounds",
]
