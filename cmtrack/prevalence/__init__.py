"""Estimates of the share and the number of positives, with confidence intervals and sample plans.

This package estimates the share and the number of positives, or of rows in each class. The
estimates are computed from the scores of a target and from labelled scores. Start with
:func:`estimate_prevalence`, which reads scores and options. It returns one of the classes in
``results``. ``estimators`` contains the estimation methods. They use the modules ``densities`` (two
classes), ``mixture`` (maximum likelihood of shares), ``class_shares`` (K classes, by bins) and
``class_moments`` (K classes, by recalibrated probabilities). ``metrics`` defines the section
``prevalence/`` of an evaluation. ``cmtrack.statistics`` counts the scores, and
``cmtrack.evaluation`` converts the metrics of an evaluation to an estimated prevalence.
"""

from cmtrack.prevalence.domains import DomainPrevalence
from cmtrack.prevalence.estimate import estimate_prevalence
from cmtrack.prevalence.mixture import em_shares, prior_corrected
from cmtrack.prevalence.results import BasePrevalence, ClassPrevalenceEstimate, PrevalenceEstimate

__all__ = [
    "BasePrevalence",
    "ClassPrevalenceEstimate",
    "DomainPrevalence",
    "PrevalenceEstimate",
    "em_shares",
    "estimate_prevalence",
    "prior_corrected",
]
