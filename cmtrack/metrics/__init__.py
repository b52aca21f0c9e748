"""Statistics -> numbers, by pure functions. Needs NumPy and SciPy only."""

from cmtrack.metrics.catalog import CATALOG, Metric, lookup
from cmtrack.metrics.prevalence.estimate import PrevalenceEstimate
from cmtrack.metrics.prevalence.mixture import em_shares, prior_corrected
from cmtrack.metrics.prevalence.quantify import estimate_prevalence
from cmtrack.metrics.roc import RocCurve, roc_curve

__all__ = [
    "CATALOG",
    "Metric",
    "PrevalenceEstimate",
    "RocCurve",
    "em_shares",
    "estimate_prevalence",
    "lookup",
    "prior_corrected",
    "roc_curve",
]
