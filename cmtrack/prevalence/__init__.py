"""Counting positives: densities of labelled scores, estimators, intervals, plans.

:func:`estimate_prevalence` is the door and ``results`` what comes out. ``estimators`` holds the
ways to an estimate. They stand on ``densities`` (of two classes), ``mixture`` (maximum likelihood
of shares), ``class_shares`` (of K classes, by bins) and ``class_moments`` (of K classes, by
recalibrated probabilities).
"""

from cmtrack.prevalence.estimate import estimate_prevalence
from cmtrack.prevalence.mixture import em_shares, prior_corrected
from cmtrack.prevalence.results import BasePrevalence, ClassPrevalenceEstimate, PrevalenceEstimate

__all__ = [
    "BasePrevalence",
    "ClassPrevalenceEstimate",
    "PrevalenceEstimate",
    "em_shares",
    "estimate_prevalence",
    "prior_corrected",
]
