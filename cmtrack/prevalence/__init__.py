"""Estimates of the share and number of positives, with intervals and plans.

This room estimates the share or number of positives, or of each class, from scores and labelled
scores. Start with :func:`estimate_prevalence`, which reads scores and options. It returns a result
of ``results``. ``estimators`` has the ways to an estimate. They use ``densities`` (two classes),
``mixture`` (maximum likelihood of shares), ``class_shares`` (K classes, by bins) and
``class_moments`` (K classes, by recalibrated probabilities). ``metrics`` is the section
``prevalence/`` of an evaluation. Scores are counted in ``cmtrack.statistics``, and
``cmtrack.evaluation`` moves the metrics of an evaluation to an estimated prevalence.
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
