"""Statistics -> numbers, by pure functions. Needs NumPy and SciPy only."""

from cmtrack.metrics.catalog import CATALOG, lookup
from cmtrack.metrics.metric import Metric
from cmtrack.metrics.roc import RocCurve, roc_curve
from cmtrack.prevalence.estimate import PrevalenceEstimate
from cmtrack.prevalence.mixture import em_shares, prior_corrected
from cmtrack.prevalence.quantify import estimate_prevalence
from cmtrack.rough import (
    AttributeSubsets,
    GranuleTable,
    RoughApproximations,
    RoughBounds,
    attribute_subsets,
    granule_table,
    rough_bounds,
)

__all__ = [
    "CATALOG",
    "AttributeSubsets",
    "GranuleTable",
    "Metric",
    "PrevalenceEstimate",
    "RocCurve",
    "RoughApproximations",
    "RoughBounds",
    "attribute_subsets",
    "em_shares",
    "estimate_prevalence",
    "granule_table",
    "lookup",
    "prior_corrected",
    "roc_curve",
    "rough_bounds",
]
